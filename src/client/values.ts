/**
 * Converts cells from their wire form to JavaScript values:
 *
 *     TIMESTAMP, DATETIME   Date in UTC; microseconds are truncated to milliseconds
 *     DATE                  Date, at midnight UTC
 *                           infinity of these types is the number Infinity
 *     TIME                  text, "14:30:00.25": JavaScript has no time-of-day type
 *     JSON, JSONB           the parsed value
 *     BYTES                 Uint8Array
 *     REAL, DOUBLE          a number; NaN and infinity are text on the wire
 *     an array              a list of such values
 *
 * Values of all other types are returned in their wire form. `values: "wire"` converts nothing.
 */
import type {
  ChangeMessage,
  DataTypeWord,
  SchemaField,
  StatementEntry,
  WireRow,
} from "../protocol/mod.ts";

/**
 * A converted cell. Its type is unknown, because a JSON column may contain any value. Callers
 * declare the type they expect.
 */
export type Cell = unknown;

export type CellObject = Readonly<Record<string, Cell>>;

/**
 * The old values in a change. Only some columns are present, so a declared row type becomes
 * partial.
 */
type OldValues<Row> = string extends keyof Row ? Row : Partial<Row>;

/** The old and new rows of a change; a delete has only old rows. */
export interface Change<Row extends object = CellObject>
  extends Omit<ChangeMessage, "rows" | "old_values"> {
  readonly rows: readonly Row[];
  /** The old values of an update: the key, `_seq` and the changed columns. */
  readonly old_values?: readonly OldValues<Row>[];
}

/** The form in which cells are returned: JavaScript values or wire values. */
export type Values = "javascript" | "wire";

type CellReader = (cell: unknown) => unknown;

const MS_PER_DAY = 86_400_000;

const READERS: Readonly<Record<string, CellReader>> = {
  Float: numberFromCell,
  Double: numberFromCell,
  Timestamp: dateFromMicroseconds,
  DateTime: dateFromMicroseconds,
  Date: (days) => infinityOf(days) ?? new Date(Number(days) * MS_PER_DAY),
  Time: timeFromMicroseconds,
  Json: (text) => JSON.parse(String(text)) as unknown,
  Bytes: (bytes) => Uint8Array.from(bytes as readonly number[]),
};

function numberFromCell(cell: unknown): unknown {
  return typeof cell === "string" ? Number(cell) : cell;
}

/** Converts the cells of a row object. */
export type RowReader = (row: WireRow) => CellObject;

/**
 * Returns the function that converts the cells of a result's rows.
 * @returns Undefined if no cell needs conversion.
 */
export function rowReaderFor(
  schema: readonly SchemaField[],
  values: Values,
): RowReader | undefined {
  const readers = readersOf(schema, values);
  if (readers.length === 0) return undefined;
  return (row) => {
    const read: Record<string, Cell> = { ...row };
    for (const [, name, reader] of readers) {
      const cell = read[name];
      // Absent columns are skipped, because the old values of an update include only some columns.
      if (cell !== undefined && cell !== null) read[name] = reader(cell);
    }
    return read;
  };
}

/** Converts the cells in the results of statements. */
export function readEntries(
  entries: readonly StatementEntry[],
  values: Values,
): readonly StatementEntry[] {
  return values === "wire" ? entries : entries.map((entry) => readEntry(entry, values));
}

function readEntry(entry: StatementEntry, values: Values): StatementEntry {
  const readers = readersOf(entry.schema ?? [], values);
  if (readers.length === 0 || entry.rows === undefined) return entry;
  const rows = entry.rows.map((cells) => {
    const read = [...cells];
    for (const [index, , reader] of readers) {
      if (read[index] !== null) read[index] = reader(read[index]);
    }
    return read;
  });
  return { ...entry, rows };
}

function readersOf(schema: readonly SchemaField[], values: Values): [number, string, CellReader][] {
  if (values === "wire") return [];
  return schema.flatMap(({ data_type: word, name }, index): [number, string, CellReader][] => {
    const reader = readerOf(word);
    return reader === undefined ? [] : [[index, name, reader]];
  });
}

function readerOf(word: DataTypeWord): CellReader | undefined {
  if (typeof word === "object" && "Array" in word) return listReaderOf(word.Array);
  return typeof word === "string" && Object.hasOwn(READERS, word) ? READERS[word] : undefined;
}

/**
 * Returns a converter for arrays of a type. A value of type BYTES is itself a list of numbers, so
 * an empty list inside an array of BYTES is read as bytes.
 */
function listReaderOf(element: DataTypeWord): CellReader | undefined {
  const readElement = readerOf(element);
  if (readElement === undefined) return undefined;
  const isElement = (item: unknown): boolean =>
    !Array.isArray(item) || (element === "Bytes" && item.every((byte) => typeof byte === "number"));
  const read = (items: unknown): unknown =>
    (items as readonly unknown[]).map((item) => {
      if (item === null) return null;
      return isElement(item) ? readElement(item) : read(item);
    });
  return read;
}

/**
 * Returns the number for an infinite time, because a Date cannot be infinite; undefined for any
 * other cell.
 */
function infinityOf(cell: unknown): number | undefined {
  if (cell === "infinity") return Number.POSITIVE_INFINITY;
  return cell === "-infinity" ? Number.NEGATIVE_INFINITY : undefined;
}

/**
 * Converts microseconds since 1970 to a Date. Times far from the present exceed the range of exact
 * numbers and arrive as strings of digits.
 */
function dateFromMicroseconds(cell: unknown): Date | number {
  const infinity = infinityOf(cell);
  if (infinity !== undefined) return infinity;
  if (typeof cell === "number") return new Date(Math.floor(cell / 1000));
  const microseconds = BigInt(cell as string | bigint);
  const isCut = microseconds < 0n && microseconds % 1000n !== 0n;
  return new Date(Number(microseconds / 1000n) - (isCut ? 1 : 0));
}

function timeFromMicroseconds(cell: unknown): string {
  const microseconds = Number(cell);
  const seconds = Math.floor(microseconds / 1_000_000);
  const parts = [Math.floor(seconds / 3600), Math.floor(seconds / 60) % 60, seconds % 60];
  const clock = parts.map((part) => String(part).padStart(2, "0")).join(":");
  const rest = microseconds % 1_000_000;
  return rest === 0 ? clock : `${clock}.${String(rest).padStart(6, "0").replace(/0+$/, "")}`;
}
