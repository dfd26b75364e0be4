/**
 * The rows of a frame as they are written: see `format.ts` for how they look.
 */
import { assert } from "../../base/assert.ts";
import type { ByteWriter } from "../../base/bytes.ts";
import { DatabaseError } from "../../base/errors.ts";
import type { Row } from "../../types/mod.ts";
import { formOf } from "../convert.ts";
import type { StoredColumn, TableWrite } from "../store.ts";
import { OPERATION_CODES, ROW_HAS_PREV, ROW_HAS_SEQ } from "./format.ts";
import { writeValue } from "./value_codec.ts";

/** Writes the head of a write; returns where its count of rows, a u32, is to be filled in. */
export function writeHead(
  into: ByteWriter,
  { operation, owner, tableId }: Pick<TableWrite, "operation" | "owner" | "tableId">,
  columns: readonly StoredColumn[],
): number {
  into.u32(tableId);
  into.u53(owner);
  into.u8(OPERATION_CODES[operation]);
  into.u16(columns.length);
  for (const { columnId, type } of columns) {
    assert(columnId <= 65535, "a column id has 16 bits");
    into.u16(columnId);
    into.u8(formOf(type));
  }
  const rowCountOffset = into.length;
  into.u32(0);
  return rowCountOffset;
}

/**
 * Writes a row; its seq, if it is given, is the eight bytes behind the first.
 *
 * @throws {DatabaseError} ROW_TOO_LARGE
 */
export function writeRow(
  into: ByteWriter,
  row: Row,
  { prev, rowBytesMax, seq }: { seq: number | undefined; prev: number; rowBytesMax: number },
): void {
  const start = into.length;
  into.u8((seq === undefined ? 0 : ROW_HAS_SEQ) | (prev === 0 ? 0 : ROW_HAS_PREV));
  if (seq !== undefined) into.u53(seq);
  if (prev !== 0) into.u53(prev);
  for (const value of row) writeValue(into, value);
  if (into.length - start <= rowBytesMax) return;
  throw new DatabaseError(
    "ROW_TOO_LARGE",
    `Cannot store a row of ${into.length - start} bytes: a row may have up to ${rowBytesMax}`,
  );
}
