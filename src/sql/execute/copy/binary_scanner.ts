/**
 * Scans data in PostgreSQL's binary format for COPY FROM. Numbers are big-endian.
 *
 *     head     "PGCOPY\n" FF 0D 0A 00 │ flags u32 │ length of the extension u32 │ extension
 *     row      number of cells i16 │ for each cell: length i32, bytes; a length of -1 is NULL
 *     tail     -1 as i16
 */
import type { CellRange, CopyCells, CopyScanner } from "./copy_cells.ts";
import { CopyCell } from "./copy_cells.ts";
import { copyFault } from "./copy_fault.ts";

/** The signature at the start of binary data. */
export const BINARY_SIGNATURE: Uint8Array<ArrayBuffer> = new Uint8Array([
  80, 71, 67, 79, 80, 89, 10, 255, 13, 10, 0,
]);

/** The total size of the signature, the flags and the length of the extension, in bytes. */
export const BINARY_HEAD_BYTES: number = BINARY_SIGNATURE.length + 8;

/** The flags in the head of binary data that a reader must not ignore. */
const CRITICAL_FLAGS = 0xffff_0000;

const UNFINISHED = -1;

export class BinaryScanner implements CopyScanner {
  isEnded = false;
  readonly isJson = false;
  readonly #columns: readonly string[];
  #row = 1;
  #isBeforeRows = true;
  #fault: Error | undefined;

  constructor(columns: readonly string[]) {
    this.#columns = columns;
  }

  scan(cells: CopyCells, from: number, isLast: boolean): number {
    if (this.#fault !== undefined) throw this.#fault;
    cells.rowCount = 0;
    let at = from;
    try {
      if (this.#isBeforeRows) {
        const end = this.#head(cells.bytes, at, isLast);
        if (end === UNFINISHED) return at;
        this.#isBeforeRows = false;
        at = end;
      }
      while (!this.isEnded && cells.rowCount < cells.rowsMax) {
        const end = this.#cells(cells, at, isLast);
        if (end === UNFINISHED) break;
        at = end;
        if (this.isEnded) break;
        cells.lines[cells.rowCount] = this.#row;
        cells.rowCount += 1;
        this.#row += 1;
      }
    } catch (error) {
      this.#fault = error as Error;
      if (cells.rowCount === 0) throw error;
    }
    return at;
  }

  #head(bytes: Buffer, from: number, isLast: boolean): number {
    const known = Math.min(BINARY_SIGNATURE.length, bytes.length - from);
    if (!bytes.subarray(from, from + known).equals(BINARY_SIGNATURE.subarray(0, known))) {
      throw this.#faultHere(
        "the data does not start with the signature of PostgreSQL's binary COPY format",
      );
    }
    const flagsAt = from + BINARY_SIGNATURE.length;
    const end = from + BINARY_HEAD_BYTES;
    if (bytes.length < end) return this.#unfinished(isLast);
    if ((bytes.readUInt32BE(flagsAt) & CRITICAL_FLAGS) !== 0) {
      throw this.#faultHere(`the flags ${bytes.readUInt32BE(flagsAt)} are unknown`);
    }
    const extensionBytes = bytes.readUInt32BE(flagsAt + 4);
    if (bytes.length < end + extensionBytes) return this.#unfinished(isLast);
    return end + extensionBytes;
  }

  /** Scans a row or the end marker of the data. Returns the offset after the row or marker. */
  #cells(cells: CopyCells, from: number, isLast: boolean): number {
    const { bytes, columnCount } = cells;
    const first = cells.rowCount * columnCount;
    if (from + 2 > bytes.length) return this.#unfinished(isLast);
    const count = bytes.readInt16BE(from);
    if (count === -1) {
      this.isEnded = true;
      return from + 2;
    }
    if (count !== columnCount) {
      throw this.#faultHere(`found ${count} cells instead of ${columnCount}`);
    }
    let at = from + 2;
    for (let column = 0; column < columnCount; column += 1) {
      if (at + 4 > bytes.length) return this.#unfinished(isLast);
      const length = bytes.readInt32BE(at);
      at += 4;
      const cell = first + column;
      if (length === -1) {
        cells.kinds[cell] = CopyCell.null;
        continue;
      }
      if (length < 0) {
        const name = this.#columns[column] ?? "";
        throw this.#faultHere(`the cell of column "${name}" has the invalid length ${length}`);
      }
      if (at + length > bytes.length) return this.#unfinished(isLast);
      cells.kinds[cell] = CopyCell.plain;
      cells.starts[cell] = at;
      at += length;
      cells.ends[cell] = at;
    }
    return at;
  }

  #unfinished(isLast: boolean): number {
    if (!isLast) return UNFINISHED;
    throw this.#faultHere("the data ends before the last row is complete");
  }

  #faultHere(what: string): unknown {
    return copyFault(what, { line: this.#row, isBinary: true });
  }

  decode(bytes: Buffer, { end, start }: CellRange): string {
    return bytes.toString("utf8", start, end);
  }
}
