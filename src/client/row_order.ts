/**
 * Orders the rows of a live query by key, or by the ORDER BY terms that the application specifies.
 * Cells are compared as the server sent them, without loss of precision. Nulls come last, or first
 * in descending order, as in PostgreSQL.
 */
import type { DataTypeWord, SchemaField, SortCollation, WireRow } from "../protocol/mod.ts";

export interface OrderTerm {
  readonly name: string;
  readonly isDescending: boolean;
  readonly areNullsFirst: boolean;
  /** The collation for text; absent to compare by code point. */
  readonly collation?: SortCollation | undefined;
}

export type CompareRows = (left: WireRow, right: WireRow) => number;

const TERM = /^(?:"((?:[^"]|"")+)"|([^\s",]+))(?:\s+(asc|desc))?(?:\s+nulls\s+(first|last))?$/i;

/**
 * Parses a list of columns, each with an optional direction.
 * @throws {TypeError} If the text is not a list of columns.
 */
export function orderFrom(text: string): OrderTerm[] {
  return text.split(/,(?=(?:[^"]*"[^"]*")*[^"]*$)/).map((part) => {
    const [, quoted, bare, direction = "asc", nulls] = TERM.exec(part.trim()) ?? [];
    const name = quoted?.replaceAll('""', '"') ?? bare;
    if (name === undefined) {
      throw new TypeError(
        `Cannot use orderBy: ${JSON.stringify(part.trim())} is not a column name; write, for ` +
          'example, "sent_at DESC, id", or pass a function that compares two rows',
      );
    }
    const isDescending = direction.toLowerCase() === "desc";
    const areNullsFirst = nulls === undefined ? isDescending : nulls.toLowerCase() === "first";
    return { name, isDescending, areNullsFirst };
  });
}

/** Returns the key columns, which define the default order. */
export function keyOrder(schema: readonly SchemaField[]): OrderTerm[] {
  const keys = schema.filter(({ flags }) => flags?.includes("pk") === true);
  return [...keys.map(({ name }) => name), "_seq"].map((name) => ({
    name,
    isDescending: false,
    areNullsFirst: false,
  }));
}

/** Returns the column to which a term refers; undefined if the rows have no such column. */
export function columnOf(
  { name }: OrderTerm,
  schema: readonly SchemaField[],
): SchemaField | undefined {
  return (
    schema.find((field) => field.name === name) ??
    schema.find((field) => field.name.toLowerCase() === name.toLowerCase())
  );
}

/**
 * Returns a function that compares two rows by the given terms.
 * @param terms Ordering terms, all of whose columns must be in the schema.
 */
export function comparerOf(
  terms: readonly OrderTerm[],
  schema: readonly SchemaField[],
): CompareRows {
  const parts = terms.map((term) => {
    const { data_type: word = "Text", name = term.name } = columnOf(term, schema) ?? {};
    const compare =
      term.collation === undefined ? comparerOfCells(word) : collatedComparer(term.collation);
    return { name, compare, term };
  });
  return (left, right) => {
    for (const { compare, name, term } of parts) {
      const order = ordered(left[name], right[name], { compare, term });
      if (order !== 0) return order;
    }
    return 0;
  };
}

type CompareCells = (left: never, right: never) => number;

function ordered(
  left: unknown,
  right: unknown,
  {
    compare,
    term,
  }: { compare: CompareCells; term: Pick<OrderTerm, "areNullsFirst" | "isDescending"> },
): number {
  const [isLeftNull, isRightNull] = [
    left === null || left === undefined,
    right === null || right === undefined,
  ];
  if (isLeftNull || isRightNull) {
    if (isLeftNull === isRightNull) return 0;
    return isLeftNull === term.areNullsFirst ? -1 : 1;
  }
  const order = compare(left as never, right as never);
  return term.isDescending ? -order : order;
}

const NUMBERS: ReadonlySet<string> = new Set([
  "SmallInt",
  "Int",
  "BigInt",
  "Float",
  "Double",
  "Decimal",
  "Timestamp",
  "DateTime",
  "Date",
  "Time",
]);

function comparerOfCells(word: DataTypeWord): CompareCells {
  if (typeof word !== "string" && "Array" in word) return listComparer(comparerOfCells(word.Array));
  const name = typeof word === "string" ? word : (Object.keys(word)[0] ?? "");
  if (NUMBERS.has(name)) return compareNumbers;
  return name === "Bytes" || name === "Embedding" ? compareLists : compareTexts;
}

/**
 * Compares arrays element by element, and then by length. A NULL element sorts above every value.
 */
function listComparer(compare: CompareCells): CompareCells {
  const term = { areNullsFirst: false, isDescending: false };
  const compareItems = (left: unknown, right: unknown): number => {
    if (!Array.isArray(left) || !Array.isArray(right)) {
      return ordered(left, right, { compare, term });
    }
    for (let i = 0; i < Math.min(left.length, right.length); i += 1) {
      const order = compareItems(left[i], right[i]);
      if (order !== 0) return order;
    }
    return left.length - right.length;
  };
  return compareItems;
}

/** Compares numbers, or decimal digits that may exceed the range of a double. */
function compareNumbers(left: number | string, right: number | string): number {
  const [a, b] = [numberOf(left), numberOf(right)];
  if (a < b) return -1;
  if (a > b) return 1;
  // NaN sorts above all other numbers.
  if (a !== b) return Number(Number.isNaN(a)) - Number(Number.isNaN(b));
  if (typeof left === "number" && typeof right === "number") return 0;
  const texts = [String(left), String(right)];
  const scale = Math.max(...texts.map((text) => fractionOf(text).length));
  const [exactLeft = 0n, exactRight = 0n] = texts.map((text) => unscaledOf(text, scale));
  return exactLeft === exactRight ? 0 : exactLeft < exactRight ? -1 : 1;
}

/** Returns the number in a cell. An infinite time or date arrives as `infinity` or `-infinity`. */
function numberOf(cell: number | string): number {
  return Number(typeof cell === "string" ? cell.replace("infinity", "Infinity") : cell);
}

function fractionOf(text: string): string {
  return text.split(".")[1] ?? "";
}

/**
 * Returns a decimal number multiplied by 10 to the power of `scale`, as an integer. Integers with
 * the same scale can be compared. Text that is not a decimal number yields 0.
 */
function unscaledOf(text: string, scale: number): bigint {
  if (!/^-?\d+(?:\.\d+)?$/.test(text)) return 0n;
  return BigInt(`${text.split(".")[0] ?? ""}${fractionOf(text).padEnd(scale, "0")}`);
}

/** Compares text by code point, as the server does, or booleans. */
function compareTexts(left: string | boolean, right: string | boolean): number {
  if (left === right) return 0;
  if (typeof left === "boolean" || typeof right === "boolean") return left < right ? -1 : 1;
  let at = 0;
  while (at < left.length && left.charCodeAt(at) === right.charCodeAt(at)) at += 1;
  return codePointRank(left, at) - codePointRank(right, at);
}

/**
 * Returns a rank for the UTF-16 code unit at a position, such that comparing ranks compares text
 * by code point: surrogates rank above all other code units, and the end of the text ranks below
 * every code unit.
 */
function codePointRank(text: string, at: number): number {
  if (at >= text.length) return -1;
  const unit = text.charCodeAt(at);
  if (unit < 0xd800) return unit;
  return unit <= 0xdfff ? unit + 0x2000 : unit - 0x800;
}

/** Compares text by the rules of a language, and breaks ties by code point. */
function collatedComparer({
  deterministic,
  ignore_punctuation: ignorePunctuation,
  locale,
  sensitivity,
}: SortCollation): (left: string, right: string) => number {
  const { compare } = new Intl.Collator(locale, { sensitivity, ignorePunctuation });
  return (left, right) => compare(left, right) || (deterministic ? compareTexts(left, right) : 0);
}

function compareLists(left: readonly number[], right: readonly number[]): number {
  for (const [index, item] of left.entries()) {
    const difference = item - (right[index] ?? Number.NEGATIVE_INFINITY);
    if (difference !== 0) return difference;
  }
  return left.length - right.length;
}
