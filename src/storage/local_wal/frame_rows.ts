/** Encodes the rows of a log frame; see `format.ts` for the format. */
import { assert } from "../../base/assert.ts";
import type { ByteWriter } from "../../base/byte_writer.ts";
import { DatabaseError } from "../../base/errors.ts";
import { type Row, type Vector, writeValue } from "../../types/mod.ts";
import type { StoredColumn } from "../contract/table_definition.ts";
import type { TableWrite } from "../contract/writes.ts";
import { formOf } from "../memtable/convert.ts";
import { OPERATION_CODES, ROW_HAS_PREV, ROW_HAS_SEQ } from "./format.ts";
import { writeValueAt } from "./value_codec.ts";

/**
 * Encodes the head of a write. Returns the offset of the write's row count, a u32 that the caller
 * fills in later.
 */
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
    assert(columnId <= 65535, "frame encoder: column id does not fit in 16 bits");
    into.u16(columnId);
    into.u8(formOf(type));
  }
  const rowCountOffset = into.length;
  into.u32(0);
  return rowCountOffset;
}

/**
 * Checks that the bytes of a commit encoded so far do not exceed the limit.
 *
 * @throws {DatabaseError} LIMIT_EXCEEDED
 */
export function requireCommitFits(bytes: number, commitBytesMax: number): void {
  if (bytes <= commitBytesMax) return;
  throw new DatabaseError(
    "LIMIT_EXCEEDED",
    `Cannot write more than ${commitBytesMax} bytes in a single commit`,
    { hint: "write fewer rows at a time, or allow the server to use more memory" },
  );
}

/** The parts of a logged row other than its values. */
export interface RowHead {
  /**
   * The seq to write. Undefined if the seq directly follows the seq of the previous row, in which
   * case it is not written.
   */
  readonly seq: number | undefined;
  /** The seq of the version that the row replaces, or 0. */
  readonly prev: number;
  /** The maximum size of the row in bytes. */
  readonly rowBytesMax: number;
}

/**
 * Encodes a row. If the row's seq is written, it occupies the eight bytes after the first byte.
 *
 * @throws {DatabaseError} ROW_TOO_LARGE
 */
export function writeRow(into: ByteWriter, row: Row, head: RowHead): void {
  const start = into.length;
  writeRowHead(into, head);
  for (const value of row) writeValue(into, value);
  requireFits(into.length - start, head);
}

/**
 * Writes one row of a columnar batch in the same form as {@linkcode writeRow}.
 *
 * @throws {DatabaseError} ROW_TOO_LARGE
 */
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
    `Cannot store a row of ${bytes} bytes: the maximum is ${rowBytesMax}`,
    { hint: "put long values into columns of type FILE, or raise limits.max_row_bytes" },
  );
}
