/**
 * The rows of a frame as they are written: see `format.ts` for how they look.
 */
import { assert } from "../../base/assert.ts";
import type { ByteWriter } from "../../base/byte_writer.ts";
import { DatabaseError } from "../../base/errors.ts";
import type { Row, Vector } from "../../types/mod.ts";
import type { StoredColumn, TableWrite } from "../contract/store.ts";
import { formOf } from "../memtable/convert.ts";
import { OPERATION_CODES, ROW_HAS_PREV, ROW_HAS_SEQ } from "./format.ts";
import { writeValue, writeValueAt } from "./value_codec.ts";

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

/** Of what was encoded so far. @throws {DatabaseError} LIMIT_EXCEEDED */
export function requireCommitFits(bytes: number, commitBytesMax: number): void {
  if (bytes <= commitBytesMax) return;
  throw new DatabaseError(
    "LIMIT_EXCEEDED",
    `Cannot write more than ${commitBytesMax} bytes in one commit`,
    { hint: "write fewer rows at a time" },
  );
}

/** What a row is written with beside its values. */
export interface RowHead {
  /** Undefined for the seq after that of the row before, which is not written. */
  readonly seq: number | undefined;
  /** 0 for none. */
  readonly prev: number;
  /** Bytes that a row may have. */
  readonly rowBytesMax: number;
}

/**
 * Writes a row; its seq, if it is given, is the eight bytes behind the first.
 *
 * @throws {DatabaseError} ROW_TOO_LARGE
 */
export function writeRow(into: ByteWriter, row: Row, head: RowHead): void {
  const start = into.length;
  writeRowHead(into, head);
  for (const value of row) writeValue(into, value);
  requireFits(into.length - start, head);
}

/** As {@linkcode writeRow}, for a row of columns. @throws {DatabaseError} ROW_TOO_LARGE */
export function writeRowAt(
  into: ByteWriter,
  { columns, row }: { columns: readonly Vector[]; row: number },
  head: RowHead,
): void {
  const start = into.length;
  writeRowHead(into, head);
  for (const column of columns) writeValueAt(into, column, row);
  requireFits(into.length - start, head);
}

function writeRowHead(into: ByteWriter, { prev, seq }: RowHead): void {
  into.u8((seq === undefined ? 0 : ROW_HAS_SEQ) | (prev === 0 ? 0 : ROW_HAS_PREV));
  if (seq !== undefined) into.u53(seq);
  if (prev !== 0) into.u53(prev);
}

function requireFits(bytes: number, { rowBytesMax }: RowHead): void {
  if (bytes <= rowBytesMax) return;
  throw new DatabaseError(
    "ROW_TOO_LARGE",
    `Cannot store a row of ${bytes} bytes: a row may have up to ${rowBytesMax}`,
  );
}
