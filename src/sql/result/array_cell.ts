/** Formats an array from a wire cell as PostgreSQL does, for CSV and for human readers. */
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

/** The types whose cells contain numbers instead of strings. */
const MOMENTS: ReadonlyMap<string, DataType> = new Map([
  ["Date", DATE],
  ["Time", TIME],
  ["Timestamp", TIMESTAMP],
  ["DateTime", DATETIME],
]);

/** Formats the cell of an array. @param element The type of the elements. */
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

/** Converts the lists of numbers within a cell to bytes. An empty list represents no bytes. */
function bytesIn(items: readonly unknown[]): ArrayValue {
  return items.map((item): Value => {
    if (!Array.isArray(item)) return null;
    const isBytes = item.every((byte) => typeof byte === "number");
    return isBytes ? Uint8Array.from(item) : bytesIn(item);
  });
}

/**
 * Returns whether the cell of a date or time is infinite, and therefore a string instead of a
 * number.
 */
export function isInfinityCell(cell: unknown): cell is string {
  return cell === "infinity" || cell === "-infinity";
}

/** Beyond 2^53 microseconds, a cell contains the digits as a string. */
function momentOf(cell: Value): Value {
  return typeof cell === "number" ? cell : wholeFromBigint(BigInt(cell as string));
}
