/**
 * Implements external merge sort: sorted runs on disk, and their merge.
 *
 *     run 0: block block block …      each run ascends; among equal rows, the earlier run is first
 *     run 1: block block …            merged through a heap with one cursor per run
 *
 * At most `fanIn` runs are merged at the same time, which limits memory to one block of each. If
 * there are more, neighbouring runs are first merged with each other, which keeps equal rows in
 * order (Knuth, The Art of Computer Programming, volume 3, 5.4.1).
 */
import { assert, defined } from "../../base/assert.ts";
import { BATCH_ROWS_MAX } from "../../base/limits.ts";
import { MergeHeap } from "../../base/merge_heap.ts";
import {
  type Batch,
  type DataType,
  type Value,
  type Vector,
  valueAt,
  valuesOf,
  vectorFromValues,
} from "../../types/mod.ts";
import { type BlockRef, piecesOf, type SpillFile } from "./temporary_files.ts";

export type CompareValues = (left: Value, right: Value) => number;

export interface SortedRunsOptions {
  readonly types: readonly DataType[];
  /**
   * The index of the column that holds the first sort key. The columns of the other sort keys
   * follow it.
   */
  readonly keyStart: number;
  /** The comparison function for the values of each sort key. */
  readonly keys: readonly CompareValues[];
  readonly makeFile: () => SpillFile;
  /** The approximate size of one block in bytes. */
  readonly blockBytes: number;
  /** The number of runs that are merged at the same time, at least 2. */
  readonly fanIn: number;
}

type Run = BlockRef[];

export class SortedRuns {
  readonly #options: SortedRunsOptions;
  #file: SpillFile;
  #runs: Run[] = [];

  constructor(options: SortedRunsOptions) {
    assert(options.fanIn >= 2, "external sort: merge fan-in is less than two");
    this.#options = options;
    this.#file = options.makeFile();
  }

  /** Starts a new sorted run after the existing runs. */
  begin(): void {
    this.#runs.push([]);
  }

  /**
   * Adds rows to the current run.
   *
   * @param bytes The size of the rows, as counted against the memory budget.
   */
  append(batch: Batch, bytes: number): void {
    const run = defined(this.#runs.at(-1), "external sort: no run has been started");
    for (const piece of piecesOf(batch, { bytes, bytesMax: this.#options.blockBytes })) {
      run.push(this.#file.append(piece));
    }
  }

  /**
   * Merges runs until few enough remain for a single final merge.
   *
   * @param checkTime Called for each batch. It may throw, in which case the files are removed at
   *   the end of the statement.
   */
  reduce(checkTime: () => void): void {
    const { fanIn, makeFile } = this.#options;
    while (this.#runs.length > fanIn) {
      const into = makeFile();
      const before = this.#file;
      const runs: Run[] = [];
      try {
        for (let first = 0; first < this.#runs.length; first += fanIn) {
          const run: Run = [];
          const merge = this.#mergeOf(this.#runs.slice(first, first + fanIn));
          for (let batch = merge.next(); batch !== undefined; batch = merge.next()) {
            // A batch produced by a merge is about the size of a block, so it becomes a block of
            // its own.
            run.push(into.append(batch));
            checkTime();
          }
          runs.push(run);
        }
      } catch (error) {
        into.close();
        throw error;
      }
      this.#runs = runs;
      this.#file = into;
      before.close();
    }
  }

  /** Returns all rows of all runs in order. {@linkcode reduce} must have been called first. */
  merged(): RunMerge {
    assert(
      this.#runs.length <= this.#options.fanIn,
      "external sort: more runs than the merge fan-in",
    );
    return this.#mergeOf(this.#runs);
  }

  /** The approximate memory, in bytes, that a merge of all runs needs. */
  get mergeBytes(): number {
    return this.#runs.length * this.#options.blockBytes;
  }

  close(): void {
    this.#file.close();
  }

  #mergeOf(runs: readonly Run[]): RunMerge {
    return new RunMerge(this.#file, runs, this.#options);
  }
}

/**
 * A block that is being merged. Its sort keys are extracted as values, because each key is
 * compared several times.
 */
interface LoadedBlock {
  readonly rowCount: number;
  readonly columns: readonly Vector[];
  readonly keys: readonly (readonly Value[])[];
}

interface MergeCursor {
  readonly run: Run;
  /**
   * The index of the run. Among equal rows, the row from the run with the lower index comes first.
   */
  readonly runIndex: number;
  blockIndex: number;
  block: LoadedBlock;
  row: number;
}

/** Merges several runs and returns the rows in order, one batch at a time. */
export class RunMerge {
  readonly #file: SpillFile;
  readonly #options: SortedRunsOptions;
  readonly #heap = new MergeHeap<MergeCursor>((left, right) => this.#isBefore(left, right));
  /**
   * The number of rows per batch. A batch is about the size of a block, so merging runs into a
   * longer run writes blocks of that size.
   */
  #rowsMax = BATCH_ROWS_MAX;

  constructor(file: SpillFile, runs: readonly Run[], options: SortedRunsOptions) {
    this.#file = file;
    this.#options = options;
    for (const [runIndex, run] of runs.entries()) {
      const block = this.#load(run, 0);
      if (block === undefined) continue;
      this.#heap.push({ run, runIndex, blockIndex: 0, block, row: 0 });
      this.#rowsMax = Math.min(this.#rowsMax, block.rowCount);
    }
  }

  /** Returns the next batch, which has at least one row; undefined at the end. */
  next(): Batch | undefined {
    const heap = this.#heap;
    const rowsMax = this.#rowsMax;
    const blocks: LoadedBlock[] = [];
    const rows = new Uint32Array(rowsMax);
    let count = 0;
    while (count < rowsMax) {
      const { first: cursor } = heap;
      if (cursor === undefined) break;
      blocks.push(cursor.block);
      rows[count] = cursor.row;
      count += 1;
      cursor.row += 1;
      if (cursor.row === cursor.block.rowCount && !this.#advance(cursor)) heap.removeFirst();
      else heap.restoreFirst();
    }
    if (count === 0) return undefined;
    const columns = this.#options.types.map((type, position): Vector => {
      const values: Value[] = Array.from({ length: count });
      for (let i = 0; i < count; i += 1) {
        const column = blocks[i]?.columns[position];
        values[i] = column === undefined ? null : valueAt(column, rows[i] ?? 0);
      }
      return vectorFromValues(type, values);
    });
    return { rowCount: count, columns };
  }

  /** Moves a cursor to its run's next block. Returns false if the run has no more blocks. */
  #advance(cursor: MergeCursor): boolean {
    const block = this.#load(cursor.run, cursor.blockIndex + 1);
    if (block === undefined) return false;
    cursor.blockIndex += 1;
    cursor.block = block;
    cursor.row = 0;
    return true;
  }

  #load(run: Run, index: number): LoadedBlock | undefined {
    const ref = run[index];
    if (ref === undefined) return undefined;
    const { columns, rowCount } = this.#file.read(ref);
    const { keys, keyStart } = this.#options;
    const keyColumns = columns.slice(keyStart, keyStart + keys.length);
    return { rowCount, columns, keys: keyColumns.map((column) => valuesOf(column)) };
  }

  #isBefore(left: MergeCursor, right: MergeCursor): boolean {
    const { keys } = this.#options;
    const leftKeys = left.block.keys;
    const rightKeys = right.block.keys;
    for (let i = 0; i < keys.length; i += 1) {
      const compare = keys[i];
      if (compare === undefined) break;
      const order = compare(leftKeys[i]?.[left.row] ?? null, rightKeys[i]?.[right.row] ?? null);
      if (order !== 0) return order < 0;
    }
    return left.runIndex < right.runIndex;
  }
}
