/**
 * Defines the order of TSVECTOR and TSQUERY values, which is the same as in PostgreSQL: first by
 * the size of the value as PostgreSQL stores it, then by its parts. The order has no meaning to
 * people, but DISTINCT, keys and `<` depend on it.
 *
 * The comparison of two TSQUERY values ignores the weights and prefix marks of their lexemes.
 */
import { compareCodePoints } from "./code_points.ts";
import { type TsQuery, textFromTsQuery, tsQueryFromText } from "./tsquery.ts";
import { type TsPosition, type TsWord, tsVectorFromText } from "./tsvector.ts";

export function compareTsVectorTexts(left: string, right: string): number {
  const a = tsVectorFromText(left);
  const b = tsVectorFromText(right);
  return vectorBytes(a) - vectorBytes(b) || a.length - b.length || compareWords(a, b);
}

/**
 * Returns the size of a TSVECTOR without its header: the strings, and the positions, which start
 * at even offsets.
 */
function vectorBytes(words: readonly TsWord[]): number {
  let bytes = 4 * words.length;
  for (const { positions, word } of words) {
    bytes += Buffer.byteLength(word);
    if (positions.length > 0) bytes += (bytes % 2) + 2 + 2 * positions.length;
  }
  return bytes;
}

function compareWords(left: readonly TsWord[], right: readonly TsWord[]): number {
  for (const [index, a] of left.entries()) {
    const b = right[index];
    if (b === undefined) return 1;
    const order =
      Number(a.positions.length === 0) - Number(b.positions.length === 0) ||
      compareCodePoints(a.word, b.word) ||
      comparePositions(a.positions, b.positions);
    if (order !== 0) return order;
  }
  return 0;
}

function comparePositions(left: readonly TsPosition[], right: readonly TsPosition[]): number {
  if (left.length !== right.length) return right.length - left.length;
  for (const [index, a] of left.entries()) {
    const b = right[index];
    const order = b === undefined ? 0 : b.at - a.at || b.weight - a.weight;
    if (order !== 0) return order;
  }
  return 0;
}

export function compareTsQueryTexts(left: string, right: string): number {
  const a = tsQueryFromText(left);
  const b = tsQueryFromText(right);
  if (a === undefined || b === undefined) return Number(a !== undefined) - Number(b !== undefined);
  return (
    countOf(a, () => 1) - countOf(b, () => 1) ||
    countOf(a, wordBytes) - countOf(b, wordBytes) ||
    compareNodes(a, b)
  );
}

/**
 * Returns a key for grouping TSQUERY values: equal queries have the same key, and unequal queries
 * have different keys.
 */
export function tsQueryGroupKey(text: string): string {
  const query = tsQueryFromText(text);
  return query === undefined ? "" : textFromTsQuery(bare(query));
}

/** Returns a query without the weights and prefix marks of its lexemes. */
function bare(query: TsQuery): TsQuery {
  switch (query.kind) {
    case "word":
      return { ...query, isPrefix: false, weights: 0 };
    case "not":
      return { ...query, operand: bare(query.operand) };
    default:
      return { ...query, left: bare(query.left), right: bare(query.right) };
  }
}

function wordBytes(query: TsQuery): number {
  return query.kind === "word" ? Buffer.byteLength(query.word) + 1 : 0;
}

function countOf(query: TsQuery, ofNode: (node: TsQuery) => number): number {
  const parts = childrenOf(query).map((child) => countOf(child, ofNode));
  return parts.reduce((sum, part) => sum + part, ofNode(query));
}

/** Returns the operands of an operator, right operand first. */
function childrenOf(query: TsQuery): readonly TsQuery[] {
  if (query.kind === "word") return [];
  return query.kind === "not" ? [query.operand] : [query.right, query.left];
}

const RANKS = { word: 0, not: 1, and: 2, or: 3, phrase: 4 } as const;

/**
 * Compares two nodes of a query. Operators sort before lexemes. Higher ranks, checksums and
 * distances sort first.
 */
function compareNodes(left: TsQuery, right: TsQuery): number {
  if (left.kind !== right.kind) return RANKS[right.kind] - RANKS[left.kind];
  if (left.kind === "word" && right.kind === "word") {
    return checksum(right.word) - checksum(left.word) || compareCodePoints(left.word, right.word);
  }
  const others = childrenOf(right);
  for (const [index, child] of childrenOf(left).entries()) {
    const other = others[index];
    const order = other === undefined ? 1 : compareNodes(child, other);
    if (order !== 0) return order;
  }
  if (left.kind !== "phrase" || right.kind !== "phrase") return 0;
  return right.distance - left.distance;
}

const TABLE: Int32Array = Int32Array.from({ length: 256 }, (_, index) => {
  let entry = index;
  for (let bit = 0; bit < 8; bit += 1) entry = (entry >>> 1) ^ (entry & 1 ? 0xedb88320 : 0);
  return entry;
});

/**
 * Returns the checksum that PostgreSQL stores for a lexeme. It uses the table of the reflected
 * CRC-32 in the order of the unreflected CRC-32.
 */
function checksum(word: string): number {
  let crc = -1;
  for (const byte of Buffer.from(word)) {
    crc = (TABLE[((crc >>> 24) ^ byte) & 0xff] ?? 0) ^ (crc << 8);
  }
  return ~crc;
}
