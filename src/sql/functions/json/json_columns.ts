/**
 * Tests which JSON documents of a column contain a given document, without decoding every
 * document.
 *
 * Any document that contains the sought document must contain certain bytes. All rows are searched
 * for these bytes in one pass, so rows without them cost almost nothing. Only the remaining rows
 * are tested one by one. JSONB writes each string in only one way, but JSON may escape any
 * character, so a JSON row with a backslash is always tested.
 */
import {
  isJsonArray,
  isJsonObject,
  type JsonNode,
  type Utf8Vector,
  type Vector,
  withoutFractionZeros,
} from "../../../types/mod.ts";

/** The bytes that a document must contain in order to contain another document. */
export interface SoughtBytes {
  /**
   * The byte strings that a document must contain. A row that lacks any of them does not match.
   */
  readonly pieces: readonly Buffer[];
  /** Whether a row with a backslash may contain the byte strings in escaped form. */
  readonly mayBeEscaped: boolean;
}

/**
 * The maximum number of byte strings to search for. Further byte strings would rule out few
 * additional rows.
 */
const PIECES_MAX = 4;

/**
 * Returns the bytes that every document containing `inner` must contain.
 *
 * @param isCanonical Whether the searched documents are JSONB.
 * @returns undefined if no bytes are certain to occur.
 */
export function soughtBytes(inner: JsonNode, isCanonical: boolean): SoughtBytes | undefined {
  const found = new Set<string>();
  addPieces(inner, { before: "", isCanonical, into: found });
  // The longest byte strings of a document are usually the rarest.
  const pieces = [...found].toSorted((a, b) => b.length - a.length).slice(0, PIECES_MAX);
  if (pieces.length === 0) return undefined;
  return { pieces: pieces.map((piece) => Buffer.from(piece)), mayBeEscaped: !isCanonical };
}

interface ColumnKeyPosition {
  /**
   * The key of the value, including the colon, if the value is certain to follow it directly;
   * otherwise "".
   */
  readonly before: string;
  readonly isCanonical: boolean;
  readonly into: Set<string>;
}

function addPieces(node: JsonNode, place: ColumnKeyPosition): void {
  const { before, into, isCanonical } = place;
  if (isJsonArray(node)) {
    into.add(`${before}[`);
    for (const element of node) addPieces(element, { ...place, before: "" });
  } else if (isJsonObject(node)) {
    into.add(`${before}{`);
    for (const [key, value] of node) {
      const name = JSON.stringify(key);
      if (!isCanonical) into.add(name);
      addPieces(value, { ...place, before: isCanonical ? `${name}: ` : "" });
    }
  } else if (node !== null && typeof node === "object") {
    // Equal JSONB numbers have a common prefix, because they differ only in trailing zeros after
    // the decimal point. JSON numbers may also differ in their exponents.
    if (isCanonical) into.add(before + withoutFractionZeros(node.number));
  } else {
    into.add(before + JSON.stringify(node));
  }
}

const BACKSLASH = 0x5c;

/**
 * Runs a test only on the rows that contain all required bytes. Any other row does not contain the
 * sought document.
 */
export function testRowsWith(
  vector: Utf8Vector,
  { mayBeEscaped, pieces }: SoughtBytes,
  test: (text: string) => boolean,
): Vector {
  const { length, nulls, offsets } = vector;
  const { buffer, byteLength, byteOffset } = vector.bytes;
  const all = Buffer.from(buffer, byteOffset, byteLength);
  const searches = pieces.map((piece) => new PieceSearch(all, piece));
  const escapes = mayBeEscaped ? new PieceSearch(all, BACKSLASH) : undefined;
  const values = new Uint8Array(length);
  for (let row = 0; row < length; row += 1) {
    if (nulls?.[row] === 1) continue;
    const start = offsets[row] ?? 0;
    const end = offsets[row + 1] ?? start;
    const isCandidate =
      searches.every((search) => search.isWithin(start, end)) ||
      escapes?.isWithin(start, end) === true;
    if (isCandidate && test(all.toString("utf8", start, end))) values[row] = 1;
  }
  return { kind: "bool", length, values, nulls };
}

/**
 * Searches rows for a byte string. Rows must be visited in ascending order, so that each byte is
 * searched at most once.
 */
class PieceSearch {
  readonly #all: Buffer;
  readonly #piece: Buffer | number;
  readonly #length: number;
  /**
   * The first position of the byte string at or after the start of the row that was tested last.
   * It is beyond all bytes if the byte string does not occur again.
   */
  #next = -1;

  constructor(all: Buffer, piece: Buffer | number) {
    this.#all = all;
    this.#piece = piece;
    this.#length = typeof piece === "number" ? 1 : piece.length;
  }

  isWithin(start: number, end: number): boolean {
    if (this.#next < start) {
      const found = this.#all.indexOf(this.#piece, start);
      this.#next = found === -1 ? Number.MAX_SAFE_INTEGER : found;
    }
    return this.#next + this.#length <= end;
  }
}
