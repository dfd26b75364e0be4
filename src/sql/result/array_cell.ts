/**
 * Formats the wire cell of an array as text in PostgreSQL's notation, for CSV and for human
 * readers.
 */
import type { DataTypeWord } from "../../protocol/mod.ts";
import {
  type ArrayValue,
  BYTES,
  DATE,
  DATETIME,
  type DataType,
  DOUBLE,
  outputText,
  TEXT,
  TIME,
  TIMESTAMP,
  textFromArray,
  type Value,
  wholeFromBigint,
} from "../../types/mod.ts";

/** The date and time types. In an array cell, their values are numbers rather than strings. */
const MOMENTS: ReadonlyMap<string, DataType> = new Map([
  ["Date", DATE],
  ["Time", TIME],
  ["Timestamp", TIMESTAMP],
  ["DateTime", DATETIME],
]);

/** Formats the wire cell of an array as text. */
export function textOfArrayCell(cell: unknown, element: DataTypeWord): string {
  const type = typeof element === "string" ? MOMENTS.get(element) : undefined;
  const isBytes = element === "Bytes";
  const items = isBytes ? bytesIn(cell as readonly unknown[]) : (cell as ArrayValue);
  const isFloat = element === "Double" || element === "Float";
  return textFromArray(items, (item) => {
    if (isFloat && typeof item === "number") return outputText(DOUBLE, item);
    if (type !== undefined && !isInfinityCell(item)) return outputText(type, momentOf(item));
    if (typeof item === "boolean") return item ? "t" : "f";
    return outputText(item instanceof Uint8Array ? BYTES : TEXT, item);
  });
}

/**
 * Converts each list of byte values within an array cell to a byte string. An empty list becomes
 * an empty byte string.
 */
function bytesIn(items: readonly unknown[]): ArrayValue {
  return items.map((item): Value => {
    if (!Array.isArray(item)) return null;
    const isBytes = item.every((byte) => typeof byte === "number");
    return isBytes ? Uint8Array.from(item) : bytesIn(item);
  });
}

/**
 * Whether the wire cell of a date or time is infinite. An infinite cell is a string instead of a
 * number.
 */
export function isInfinityCell(cell: unknown): cell is string {
  return cell === "infinity" || cell === "-infinity";
}

/**
 * Converts the wire cell of a date or time to a value. A number of microseconds above 2^53 arrives
 * as a string of decimal digits.
 */
function momentOf(cell: Value): Value {
  return typeof cell === "number" ? cell : wholeFromBigint(BigInt(cell as string));
}
