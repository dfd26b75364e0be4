/**
 * Encodes columnar rows one column at a time. The length of each row is computed first, and then
 * each value is written at its offset. Each loop over a column processes values of a single type.
 * In measurements, this took about half as long as looping over rows. The output is identical to
 * that of `frame_rows.ts`.
 */
import type { ByteWriter } from "../../base/byte_writer.ts";
import { putU53 } from "../../base/bytes.ts";
import {
  type Batch,
  isNullAt,
  TAG_INT,
  TAG_NULL,
  TAG_NUMBER,
  TAG_SMALL,
  TAG_TEXT,
  type Vector,
} from "../../types/mod.ts";
import { ROW_HAS_PREV, ROW_HAS_SEQ } from "./format.ts";

/** The length of the longest string whose length is encoded in a single byte. */
const LENGTH_OF_ONE_BYTE_MAX = 127;
const LENGTH_OF_TWO_BYTES_MAX = 16_383;

/** The length in bytes up to which copying in a loop is faster than a call that copies a range. */
const SHORT_RANGE_BYTES_MAX = 16;

type NumberColumn = Extract<Vector, { kind: "i32" | "f64" }>;
type TextColumn = Extract<Vector, { kind: "utf8" }>;

export interface RowHeads {
  readonly seqs: Float64Array;
  /** For each row, the seq of the version that it replaces, or 0. */
  readonly prevs: Float64Array;
  /** The seq that a decoder would expect for the first row if no seq were written. */
  readonly nextSeq: number;
  /** The maximum size of a logged row in bytes. */
  readonly rowBytesMax: number;
  /** The maximum total size in bytes of the logged rows. */
  readonly bytesMax: number;
  /**
   * Called for each row whose seq has to be written because a decoder would not expect it. `at` is
   * the offset of the seq.
   */
  readonly onSeq?: (row: number, at: number) => void;
}

/**
 * Writes rows with only numeric and text columns. Writes nothing and returns false if there are
 * other columns, long strings, or rows that are too large. The caller then uses `writeRowAt`
 * instead.
 */
export function writeColumns(
  into: ByteWriter,
  { columns, rowCount }: Batch,
  heads: RowHeads,
): boolean {
  const places = headWidths(heads, rowCount);
  for (const column of columns) {
    if (column.kind === "utf8") {
      if (!addTextWidths(column, places)) return false;
    } else if (column.kind === "i32" || column.kind === "f64") addNumberWidths(column, places);
    else return false;
  }
  let byteCount = 0;
  for (let row = 0; row < rowCount; row += 1) {
    const width = places[row] ?? 0;
    if (width > heads.rowBytesMax) return false;
    places[row] = byteCount;
    byteCount += width;
  }
  if (byteCount > heads.bytesMax) return false;
  const start = into.length;
  const bytes = into.extend(byteCount);
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  putHeads({ bytes, view, places }, heads, start);
  for (const column of columns) {
    if (column.kind === "utf8") putTexts({ bytes, view, places }, column);
    else if (column.kind === "i32" || column.kind === "f64") {
      putNumbers({ bytes, view, places }, column);
    }
  }
  return true;
}

/** For each row of a batch, the offset at which the row's next value is to be written. */
interface Places {
  readonly bytes: Buffer;
  readonly view: DataView;
  readonly places: Uint32Array;
}

function headWidths({ nextSeq, prevs, seqs }: RowHeads, rowCount: number): Uint32Array {
  const widths = new Uint32Array(rowCount);
  let expected = nextSeq;
  for (let row = 0; row < rowCount; row += 1) {
    const seq = seqs[row] ?? 0;
    widths[row] = 1 + (seq === expected ? 0 : 8) + (prevs[row] === 0 ? 0 : 8);
    expected = seq + 1;
  }
  return widths;
}

function putHeads(
  { bytes, places, view }: Places,
  { nextSeq, onSeq, prevs, seqs }: RowHeads,
  start: number,
): void {
  let expected = nextSeq;
  for (let row = 0; row < places.length; row += 1) {
    const seq = seqs[row] ?? 0;
    const prev = prevs[row] ?? 0;
    let at = places[row] ?? 0;
    bytes[at] = (seq === expected ? 0 : ROW_HAS_SEQ) | (prev === 0 ? 0 : ROW_HAS_PREV);
    at += 1;
    if (seq !== expected) {
      putU53(view, at, seq);
      onSeq?.(row, start + at);
      at += 8;
    }
    if (prev !== 0) {
      putU53(view, at, prev);
      at += 8;
    }
    places[row] = at;
    expected = seq + 1;
  }
}

function addNumberWidths(column: NumberColumn, widths: Uint32Array): void {
  const { nulls, values } = column;
  for (let row = 0; row < widths.length; row += 1) {
    const width = nulls !== undefined && isNullAt(column, row) ? 1 : numberWidth(values[row] ?? 0);
    widths[row] = (widths[row] ?? 0) + width;
  }
}

function numberWidth(value: number): number {
  if (!isShortWhole(value)) return 9;
  return value >= 0 && value < 256 ? 2 : 5;
}

function isShortWhole(value: number): boolean {
  return value === (value | 0) && (value !== 0 || !Object.is(value, -0));
}

function putNumbers({ bytes, places, view }: Places, column: NumberColumn): void {
  const { nulls, values } = column;
  for (let row = 0; row < places.length; row += 1) {
    const at = places[row] ?? 0;
    const value = values[row] ?? 0;
    let end = at + 9;
    if (nulls !== undefined && isNullAt(column, row)) {
      bytes[at] = TAG_NULL;
      end = at + 1;
    } else if (!isShortWhole(value)) {
      bytes[at] = TAG_NUMBER;
      view.setFloat64(at + 1, value, true);
    } else if (value >= 0 && value < 256) {
      bytes[at] = TAG_SMALL;
      bytes[at + 1] = value;
      end = at + 2;
    } else {
      bytes[at] = TAG_INT;
      view.setInt32(at + 1, value, true);
      end = at + 5;
    }
    places[row] = end;
  }
}

/** Adds the encoded lengths of strings to `widths`. Returns false if a string is too long. */
function addTextWidths(column: TextColumn, widths: Uint32Array): boolean {
  const { nulls, offsets } = column;
  for (let row = 0; row < widths.length; row += 1) {
    let width = 1;
    if (nulls === undefined || !isNullAt(column, row)) {
      const length = (offsets[row + 1] ?? 0) - (offsets[row] ?? 0);
      if (length > LENGTH_OF_TWO_BYTES_MAX) return false;
      width += length + (length > LENGTH_OF_ONE_BYTE_MAX ? 2 : 1);
    }
    widths[row] = (widths[row] ?? 0) + width;
  }
  return true;
}

function putTexts({ bytes, places }: Places, column: TextColumn): void {
  const { nulls, offsets } = column;
  const { buffer, byteLength, byteOffset } = column.bytes;
  const from = Buffer.from(buffer, byteOffset, byteLength);
  for (let row = 0; row < places.length; row += 1) {
    let at = places[row] ?? 0;
    if (nulls !== undefined && isNullAt(column, row)) {
      bytes[at] = TAG_NULL;
      places[row] = at + 1;
      continue;
    }
    const start = offsets[row] ?? 0;
    const length = (offsets[row + 1] ?? 0) - start;
    bytes[at] = TAG_TEXT;
    at += 1;
    if (length > LENGTH_OF_ONE_BYTE_MAX) {
      bytes[at] = (length & 127) | 128;
      at += 1;
    }
    bytes[at] = length > LENGTH_OF_ONE_BYTE_MAX ? length >>> 7 : length;
    at += 1;
    if (length > SHORT_RANGE_BYTES_MAX) from.copy(bytes, at, start, start + length);
    else
      for (let index = 0; index < length; index += 1) bytes[at + index] = from[start + index] ?? 0;
    places[row] = at + length;
  }
}
