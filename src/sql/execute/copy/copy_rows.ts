/**
 * Turns the data of COPY FROM into the source of an INSERT. The bytes arrive in pieces, and are
 * passed on as whole columns of the table.
 *
 *     input ──pieces──► bytes that wait ──scan──► cells ──► columns ──► the writer of the INSERT
 *
 * - Pieces are requested one at a time, so the sender is never ahead by more than one piece.
 * - The first fault in the data is reported with its line and column.
 * - At most one row and one piece of the input are kept in memory.
 */
import { isUtf8 } from "node:buffer";
import { DatabaseError } from "../../../base/errors.ts";
import {
  type Batch,
  constVector,
  keepRows,
  partOf,
  type Row,
  UNKNOWN,
  type Value,
  type Vector,
  vectorFromValues,
} from "../../../types/mod.ts";
import { isFaultOfValue } from "../../bind/cell_error.ts";
import type { CopyColumns, CopySettings } from "../../parse/ast/ast.ts";
import type { TableRuntime } from "../build/table_runtime.ts";
import type { CopyInput, ExecutionContext } from "../context/execution_context.ts";
import { rowsFromBatch } from "../operators/filter.ts";
import { binaryValue, readBinaryColumn } from "./binary_columns.ts";
import { BinaryScanner } from "./binary_scanner.ts";
import { CopyCell, CopyCells, type CopyScanner } from "./copy_cells.ts";
import { copyValue, readCopyColumn } from "./copy_columns.ts";
import { atPlace, type CopyPlace, copyFault } from "./copy_fault.ts";
import { JsonScanner } from "./json_scanner.ts";
import { LineScanner } from "./line_scanner.ts";

/** The number of rows that are scanned and passed on in one step. Each row takes a microsecond. */
const ROWS_PER_STEP = 1024;

/**
 * The maximum size of a row, in bytes. Every row that can be stored is smaller, in any encoding.
 */
const ROW_BYTES_MAX: number = 32 * 1024 * 1024;

export interface CopyTarget {
  readonly runtime: TableRuntime;
  /** The table position of each column in the COPY data. */
  readonly targets: readonly number[];
  readonly options: CopySettings;
}

/** Receives the rows of a COPY. */
export interface CopySink {
  /** Receives rows as one vector per column of the table. */
  readonly onColumns: (batch: Batch) => void;
  readonly onRows: (rows: Row[]) => void | Promise<void>;
  readonly takesColumns: () => boolean;
}

/** Reads the rows of a COPY. */
export class CopyRows {
  readonly #target: CopyTarget;
  readonly #input: CopyInput;
  readonly #context: ExecutionContext;
  readonly #sink: CopySink;
  readonly #scanner: CopyScanner;
  readonly #cells: CopyCells;
  readonly #columnNames: readonly string[];
  /**
   * The bytes received so far. The bytes from `#from` onwards have not been completely scanned.
   */
  #bytes: Buffer = Buffer.alloc(0);
  #from = 0;
  /** The pieces of the input that have arrived since the last scan, and their total size. */
  #pieces: Uint8Array[] = [];
  #pieceBytes = 0;
  #isInputOver = false;
  #hasMore = false;

  constructor(
    target: CopyTarget,
    { context, input, sink }: { context: ExecutionContext; input: CopyInput; sink: CopySink },
  ) {
    this.#target = target;
    this.#context = context;
    this.#input = input;
    this.#sink = sink;
    this.#columnNames = target.targets.map((at) => target.runtime.table.columns[at]?.name ?? "");
    this.#scanner = scannerOf(target.options, this.#columnNames);
    this.#cells = new CopyCells(target.targets.length, ROWS_PER_STEP);
  }

  /**
   * Reads a piece of the input, or passes on the rows of one step. Returns false at the end of the
   * data.
   */
  next(): boolean | Promise<boolean> {
    this.#context.checkTime();
    if (this.#hasMore) return this.#step();
    if (this.#isInputOver || this.#scanner.isEnded) return this.#finish();
    return this.#input.next().then((piece) => {
      this.#take(piece);
      return true;
    });
  }

  close(): void {
    this.#bytes = Buffer.alloc(0);
    this.#pieces = [];
  }

  #take(piece: Uint8Array | undefined): void {
    if (piece === undefined) this.#isInputOver = true;
    else {
      this.#pieces.push(piece);
      this.#pieceBytes += piece.length;
    }
    const waiting = this.#bytes.length - this.#from;
    // An incomplete row is scanned again only once the amount of data has doubled.
    const isTooLong = waiting + this.#pieceBytes > ROW_BYTES_MAX;
    this.#hasMore = this.#isInputOver || isTooLong || this.#pieceBytes >= waiting;
  }

  /** Scans and passes on the rows of one step. */
  #step(): boolean | Promise<boolean> {
    const cells = this.#cells;
    this.#joinPieces();
    cells.bytes = this.#bytes;
    const from = this.#from;
    this.#from = this.#scanner.scan(cells, from, this.#isInputOver);
    // If this scan found rows, the next scan finds further rows or throws the error of the fault
    // that follows them.
    this.#hasMore = cells.rowCount > 0;
    if (cells.rowCount === 0) {
      if (this.#bytes.length - this.#from <= ROW_BYTES_MAX || this.#scanner.isEnded) return true;
      throw copyFault(`the row is longer than ${ROW_BYTES_MAX} bytes`, this.#placeOf(0));
    }
    if (this.#target.options.format !== "binary") this.#requireText(cells, from);
    const scannedCount = cells.rowCount;
    const batch = this.#batchOf(cells);
    // The size of the rows is charged to the memory budget, because they stay in memory until the
    // commit.
    this.#context.memory.take(((this.#from - from) * batch.rowCount) / scannedCount);
    this.#input.note(batch.rowCount);
    if (batch.rowCount === 0) return true;
    return this.#handOn(batch);
  }

  #joinPieces(): void {
    if (this.#pieces.length === 0) return;
    const rest = this.#bytes.subarray(this.#from);
    this.#bytes = Buffer.concat([rest, ...this.#pieces]);
    this.#from = 0;
    this.#pieces = [];
    this.#pieceBytes = 0;
  }

  #finish(): boolean | Promise<boolean> {
    const rest = this.#bytes.subarray(this.#from);
    if (this.#scanner.isEnded && isBlank(rest) && this.#pieces.every(isBlank)) {
      return this.#isInputOver ? false : this.#skipRest();
    }
    if (this.#scanner.isEnded) {
      throw copyFault("there is data after the end marker", this.#placeOf(0));
    }
    if (rest.length > 0 || this.#target.options.format === "binary") {
      // If data is missing at the end, this scan reports the fault.
      this.#cells.bytes = this.#bytes;
      this.#from = this.#scanner.scan(this.#cells, this.#from, true);
      if (!this.#scanner.isEnded && this.#from < this.#bytes.length) {
        throw copyFault("there is data after the last row", this.#placeOf(0));
      }
    }
    return false;
  }

  /** Reads the rest of the input, which may continue after the end marker. */
  async #skipRest(): Promise<boolean> {
    this.#take(await this.#input.next());
    this.#hasMore = false;
    return true;
  }

  #placeOf(row: number): CopyPlace {
    const isBinary = this.#target.options.format === "binary";
    return { line: this.#cells.lines[row] ?? 1, isBinary };
  }

  /** Refuses text that is not UTF-8 or that contains NUL. */
  #requireText(cells: CopyCells, from: number): void {
    const bytes = cells.bytes.subarray(from, this.#from);
    if (isUtf8(bytes) && !bytes.includes(0)) return;
    for (let row = 0; row < cells.rowCount; row += 1) {
      for (let column = 0; column < cells.columnCount; column += 1) {
        const cell = row * cells.columnCount + column;
        if (cells.kinds[cell] === CopyCell.null || cells.kinds[cell] === CopyCell.default) continue;
        const part = cells.bytes.subarray(cells.starts[cell], cells.ends[cell]);
        const isText = isUtf8(part);
        if (isText && !part.includes(0)) continue;
        const what = isText ? "the text contains a NUL character" : "the text is not valid UTF-8";
        throw copyFault(what, { ...this.#placeOf(row), column: this.#columnNames[column] });
      }
    }
    throw copyFault("the text is not valid UTF-8, or contains a NUL character", this.#placeOf(0));
  }

  /**
   * Returns the scanned rows as one vector per column of the table, with defaults for columns that
   * are not in the data.
   */
  #batchOf(cells: CopyCells): Batch {
    const { options, runtime, targets } = this.#target;
    const { rowCount } = cells;
    const columns: Vector[] = runtime.types.map(() => constVector(null, rowCount));
    const slow: { column: number | undefined; position: number; values: Value[] }[] = [];
    for (const [column, position] of targets.entries()) {
      const type = runtime.types[position] ?? UNKNOWN;
      const vector =
        options.format === "binary"
          ? readBinaryColumn(cells, column, type)
          : readCopyColumn(cells, column, { scanner: this.#scanner, type });
      if (vector === undefined) slow.push({ column, position, values: [] });
      else columns[position] = vector;
    }
    for (const position of runtime.types.keys()) {
      if (targets.includes(position) || !runtime.hasDefault(position)) continue;
      slow.push({ column: undefined, position, values: [] });
    }
    const kept: number[] = [];
    for (let row = 0; slow.length > 0 && row < rowCount; row += 1) {
      const values = slow.map(({ column, position }) => this.#valueAt(row, column, position));
      const isFaulty = values.includes(undefined);
      if (!isFaulty) kept.push(row);
      for (const [i, each] of slow.entries()) each.values.push(values[i] ?? null);
    }
    for (const { position, values } of slow) {
      columns[position] = vectorFromValues(runtime.types[position] ?? UNKNOWN, values);
    }
    const batch = { rowCount, columns };
    if (slow.length === 0 || kept.length === rowCount) return batch;
    this.#input.noteSkipped(rowCount - kept.length);
    const rows = Uint32Array.from(kept);
    const remaining = keepRows(batch, { rows, count: rows.length });
    for (const [i, row] of kept.entries()) cells.lines[i] = cells.lineOf(row);
    return remaining;
  }

  /**
   * Returns the value of a cell; undefined if the value is faulty and its row is to be skipped.
   */
  #valueAt(row: number, column: number | undefined, position: number): Value | undefined {
    const { options, runtime } = this.#target;
    const cells = this.#cells;
    if (column === undefined) return runtime.defaultAt(position, this.#context);
    const cell = row * cells.columnCount + column;
    const type = runtime.types[position] ?? UNKNOWN;
    if (cells.kinds[cell] === CopyCell.null) return null;
    if (cells.kinds[cell] === CopyCell.default) return runtime.defaultAt(position, this.#context);
    try {
      if (options.format === "binary") {
        const range = { start: cells.starts[cell] ?? 0, end: cells.ends[cell] ?? 0 };
        return binaryValue(cells.bytes, range, type);
      }
      const { nowMicros } = this.#context.call;
      return copyValue(cells, cell, { scanner: this.#scanner, type, nowMicros });
    } catch (error) {
      if (options.skipsFaulty && isFaultOfValue(error)) return undefined;
      throw atPlace(error, { ...this.#placeOf(row), column: this.#columnNames[column] });
    }
  }

  #handOn(batch: Batch): boolean | Promise<boolean> {
    const { runtime } = this.#target;
    const handOn = (): void | Promise<void> =>
      this.#sink.takesColumns()
        ? this.#sink.onColumns(batch)
        : this.#sink.onRows(rowsFromBatch(batch));
    try {
      const taken = handOn();
      return taken === undefined ? true : taken.then(() => true);
    } catch (error) {
      throw this.#atRow(error, batch, runtime);
    }
  }

  /** Finds the row that violates a constraint by repeatedly halving the batch. */
  #atRow(error: unknown, batch: Batch, runtime: TableRuntime): unknown {
    const isViolation =
      error instanceof DatabaseError &&
      (error.code === "NOT_NULL_VIOLATION" || error.code === "CHECK_VIOLATION");
    if (!isViolation) return error;
    let from = 0;
    let to = batch.rowCount;
    while (to - from > 1) {
      const half = (from + to) >> 1;
      if (this.#isSound(partOf(batch, from, half), runtime)) from = half;
      else to = half;
    }
    return atPlace(error, this.#placeOf(from));
  }

  #isSound(batch: Batch, runtime: TableRuntime): boolean {
    try {
      if (runtime.isGenerated) {
        const rows = runtime.completed(rowsFromBatch(batch), this.#context);
        runtime.check(rows, this.#context);
      } else runtime.checkBatch(batch, this.#context);
      return true;
    } catch (error) {
      if (error instanceof DatabaseError) return false;
      throw error;
    }
  }
}

function scannerOf(options: CopySettings, columns: readonly string[]): CopyScanner {
  if (options.format === "ndjson") return new JsonScanner(columns);
  if (options.format === "binary") return new BinaryScanner(columns);
  const isIn = (named: CopyColumns): boolean[] =>
    columns.map((column) => named === "all" || named.some(({ name }) => name === column));
  const neverNull = isIn(options.forceNotNull);
  return new LineScanner({ options, columns, neverNull, alwaysNull: isIn(options.forceNull) });
}

function isBlank(bytes: Uint8Array): boolean {
  return bytes.every((code) => code === 32 || code === 10 || code === 13 || code === 9);
}
