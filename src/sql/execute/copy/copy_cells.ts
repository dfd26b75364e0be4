/**
 * Records where the cells of COPY FROM are located in the bytes that were read. Each format has a
 * scanner that records the cells, and `copy_columns.ts` converts them to columns.
 */
import { defined } from "../../../base/assert.ts";

/** The kinds of cells in COPY data. */
export const CopyCell = {
  null: 0,
  default: 1,
  /** A cell that contains its text as plain bytes. */
  plain: 2,
  /** A cell with encoded text, which the scanner has to decode. */
  encoded: 3,
  /** A cell that contains a JSON number, boolean, array or object. */
  json: 4,
} as const;

/** The bytes of a cell, from `start` (inclusive) to `end` (exclusive). */
export interface CellRange {
  readonly start: number;
  readonly end: number;
}

/** The cells found by a scan, in row order: cell = row × columnCount + column. */
export class CopyCells {
  readonly columnCount: number;
  readonly kinds: Uint8Array;
  readonly starts: Int32Array;
  readonly ends: Int32Array;
  /**
   * The line number at which each row begins, counted from 1. For binary data, which has no lines,
   * it is the number of the row.
   */
  readonly lines: Uint32Array;
  /** The bytes that contain the cells. */
  bytes: Buffer = Buffer.alloc(0);
  rowCount = 0;

  constructor(columnCount: number, rowsMax: number) {
    this.columnCount = columnCount;
    this.kinds = new Uint8Array(rowsMax * columnCount);
    this.starts = new Int32Array(rowsMax * columnCount);
    this.ends = new Int32Array(rowsMax * columnCount);
    this.lines = new Uint32Array(rowsMax);
  }

  get rowsMax(): number {
    return this.lines.length;
  }

  /** Returns the text of a plain cell. */
  plainText(cell: number): string {
    return this.bytes.toString("utf8", this.starts[cell] ?? 0, this.ends[cell] ?? 0);
  }

  lineOf(row: number): number {
    return defined(this.lines[row], "COPY reader: row has no line number");
  }
}

/** Scans the rows in data of a particular COPY FROM format. */
export interface CopyScanner {
  /**
   * Scans the rows in `cells.bytes`, starting at an offset, until `cells` is full, the bytes end
   * in the middle of a row, or the data ends. Returns the offset after the last whole row.
   *
   * A fault ends the scan. If the fault is in the first row, its error is thrown. Otherwise, the
   * rows before it are returned, and the next scan throws the error.
   *
   * @param isLast Whether no further bytes follow.
   * @throws {DatabaseError} INVALID_VALUE
   */
  scan(cells: CopyCells, from: number, isLast: boolean): number;
  /** Whether the end marker of the data has been read. All bytes after it are ignored. */
  readonly isEnded: boolean;
  /** Whether the format writes strings as JSON strings. */
  readonly isJson: boolean;
  /**
   * Returns the text of an encoded cell.
   * @throws {DatabaseError} INVALID_VALUE
   */
  decode(bytes: Buffer, range: CellRange): string;
}
