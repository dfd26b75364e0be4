/**
 * Writes column values to the log and reads them back into columns, in the format of
 * `types/value_codec.ts`.
 */
import type { ByteReader } from "../../base/byte_reader.ts";
import type { ByteWriter } from "../../base/byte_writer.ts";
import {
  isNullAt,
  readTagged,
  TAG_NULL,
  TAG_TEXT,
  type Vector,
  valueAt,
  writeNumber,
  writeValue,
} from "../../types/mod.ts";
import type { MemColumn } from "../memtable/mem_column.ts";

/** Writes a column's value for one row, in the format of {@linkcode writeValue}. */
export function writeValueAt(into: ByteWriter, column: Vector, row: number): void {
  switch (column.kind) {
    case "utf8":
      if (isNullAt(column, row)) into.u8(TAG_NULL);
      else {
        into.u8(TAG_TEXT);
        into.blockOf(column.bytes, column.offsets[row] ?? 0, column.offsets[row + 1] ?? 0);
      }
      return;
    case "i32":
    case "f64":
      if (isNullAt(column, row)) into.u8(TAG_NULL);
      else writeNumber(into, column.values[row] ?? 0);
      return;
    default:
      writeValue(into, valueAt(column, row));
  }
}

/**
 * Reads the next value and appends it to a column of the same type.
 *
 * @throws {CorruptionError} If there is no value at this position.
 */
export function readValueInto(from: ByteReader, column: MemColumn): void {
  const tag = from.u8();
  if (tag === TAG_TEXT && column.isText) column.appendTextOf(from);
  else column.append(readTagged(from, tag));
}
