/**
 * Presents a memtable as the rows of a segment, in ascending order of (owner, seq). Only one row
 * group is produced at a time, so a large memtable neither doubles its memory nor blocks the event
 * loop.
 */
import { assert } from "../../base/assert.ts";
import { BATCH_ROWS_MAX, ROW_GROUP_ROWS_MAX } from "../../base/limits.ts";
import { slice, take, type Vector } from "../../types/mod.ts";
import { DeletionVector, type DeletionVectorOptions } from "../deletions/deletion_vector.ts";
import { groupEnd } from "../segment/group_size.ts";
import {
  type SegmentColumn,
  type SegmentEnd,
  type SegmentOutline,
  type SegmentRows,
  SegmentWriter,
} from "../segment/writer.ts";
import type { Memtable } from "./memtable.ts";

const NO_BYTES: Uint8Array = new Uint8Array(0);

/** The number of rows processed between two yields. */
const STEP_ROWS = 65536;

/**
 * Sorts a memtable's row numbers by (owner, seq), yielding often. The rows already ascend by seq.
 */
export function* segmentOrder({
  owners,
  rowCount,
}: Pick<FrozenRows, "owners" | "rowCount">): Generator<void, Uint32Array<ArrayBuffer>> {
  /**
   * Owners are numbered in order of appearance. `counts` and positions are indexed by that number.
   */
  const numbers = new Map<number, number>();
  const numberOf = new Uint32Array(rowCount);
  const counts: number[] = [];
  for (let row = 0; row < rowCount; row += 1) {
    const owner = owners[row] as number;
    let number = numbers.get(owner);
    if (number === undefined) {
      number = numbers.size;
      numbers.set(owner, number);
      counts.push(0);
    }
    numberOf[row] = number;
    counts[number] = (counts[number] as number) + 1;
    if (row % STEP_ROWS === STEP_ROWS - 1) yield;
  }
  const places = new Uint32Array(counts.length);
  let place = 0;
  for (const owner of Float64Array.from(numbers.keys()).toSorted()) {
    const number = numbers.get(owner) as number;
    places[number] = place;
    place += counts[number] as number;
  }
  yield;
  assert(place === rowCount, "flush: some memtable rows have no position in the segment");
  const order = new Uint32Array(rowCount);
  for (let row = 0; row < rowCount; row += 1) {
    const number = numberOf[row] as number;
    order[places[number] as number] = row;
    places[number] = (places[number] as number) + 1;
    if (row % STEP_ROWS === STEP_ROWS - 1) yield;
  }
  return order;
}

/** A frozen memtable as plain data. A later ALTER TABLE does not affect it. */
export interface FrozenRows {
  readonly columns: readonly FrozenColumn[];
  readonly rowCount: number;
  readonly owners: Float64Array;
  readonly seqs: Float64Array;
  readonly prevs: Float64Array;
  readonly commitSeqs: Float64Array;
  readonly deleted: Uint8Array;
}

interface FrozenColumn extends SegmentColumn {
  readonly vector: Vector;
}

/** Returns the rows of a memtable that no longer grows. They share the memtable's memory. */
export function frozenRowsOf(memtable: Memtable): FrozenRows {
  const { commitSeqs, deleted, owners, prevs, rowCount, seqs } = memtable;
  const columns = memtable.columns.map((column) => {
    const { columnId, type } = column;
    return { columnId, type, vector: column.vector() };
  });
  return { columns, rowCount, owners, seqs, prevs, commitSeqs, deleted };
}

/**
 * Yields the bytes of the segment in order. Many of the pieces are empty, to let other work run in
 * between.
 *
 * @param order The result of `segmentOrder`.
 */
export function* frozenPieces(
  frozen: FrozenRows,
  order: Uint32Array,
  outline: SegmentOutline,
): Generator<Uint8Array, SegmentEnd> {
  const { columns } = frozen;
  const writer = new SegmentWriter(outline);
  for (let start = 0; start < order.length; start += ROW_GROUP_ROWS_MAX) {
    const rows = order.subarray(start, start + ROW_GROUP_ROWS_MAX);
    const vectors: Vector[] = [];
    for (const { vector } of columns) {
      vectors.push(rowsOf(vector, rows));
      yield NO_BYTES;
    }
    for (let from = 0; from < rows.length; ) {
      const to = groupEnd(vectors, from, rows.length);
      yield* writer.group(groupRows(frozen, rows.subarray(from, to), sliced(vectors, from, to)));
      from = to;
    }
  }
  return yield* writer.finish();
}

/**
 * Tracks replacements of a frozen memtable's rows while its segment is being written. Newer
 * versions may replace these rows in that time. Each replacement is recorded under the row's
 * number in the segment.
 */
export class ReplacementCopy {
  readonly #memtable: Memtable;
  readonly #order: Uint32Array;
  readonly #all: DeletionVector;
  /** For each memtable row, the seq of its last known replacement. */
  readonly #seen: Float64Array;
  /** The value of the memtable's `replacementChanges` before the last pass over all rows. */
  #seenChanges = -1;

  constructor(memtable: Memtable, order: Uint32Array, options: DeletionVectorOptions) {
    this.#memtable = memtable;
    this.#order = order;
    this.#all = new DeletionVector(options);
    this.#seen = new Float64Array(order.length);
  }

  /** Copies replacements that are still missing, one batch of rows per step. */
  *refreshSteps(): Generator<void, void> {
    const seenChanges = this.#memtable.replacementChanges;
    for (let row = 0; row < this.#order.length; row += BATCH_ROWS_MAX) {
      this.#refreshRows(row, Math.min(row + BATCH_ROWS_MAX, this.#order.length));
      yield;
    }
    this.#seenChanges = seenChanges;
  }

  /** Copies all replacements that are still missing, within this tick. */
  refresh(): void {
    const { replacementChanges } = this.#memtable;
    if (this.#seenChanges === replacementChanges) return;
    this.#refreshRows(0, this.#order.length);
    this.#seenChanges = replacementChanges;
  }

  /**
   * Updates the recorded replacements of rows `start` (inclusive) to `end` (exclusive) of the
   * segment.
   */
  #refreshRows(start: number, end: number): void {
    const { replacedBy } = this.#memtable;
    const order = this.#order;
    const seen = this.#seen;
    for (let row = start; row < end; row += 1) {
      const replacement = replacedBy[order[row] ?? 0] ?? 0;
      const before = seen[row] ?? 0;
      if (replacement === before) continue;
      if (before !== 0) this.#all.revert(row);
      if (replacement !== 0) this.#all.replace(row, replacement);
      seen[row] = replacement;
    }
  }

  /** Returns all replacements recorded so far. */
  get deletions(): DeletionVector {
    return this.#all;
  }
}

function groupRows(frozen: FrozenRows, rows: Uint32Array, vectors: readonly Vector[]): SegmentRows {
  function numbers(values: Float64Array): Float64Array {
    return gathered(values, new Float64Array(rows.length), rows);
  }
  return {
    vectors,
    owners: numbers(frozen.owners),
    seqs: numbers(frozen.seqs),
    prevs: numbers(frozen.prevs),
    commitSeqs: numbers(frozen.commitSeqs),
    deleted: gathered(frozen.deleted, new Uint8Array(rows.length), rows),
  };
}

function rowsOf(vector: Vector, rows: Uint32Array): Vector {
  const first = rows[0] ?? 0;
  const last = rows.at(-1) ?? 0;
  // In a memtable with a single owner, the rows are contiguous, but they may still be permuted.
  if (last - first === rows.length - 1 && isAscending(rows)) return slice(vector, first, last + 1);
  return take(vector, { rows, count: rows.length });
}

function isAscending(rows: Uint32Array): boolean {
  for (let index = 1; index < rows.length; index += 1) {
    if ((rows[index] ?? 0) <= (rows[index - 1] ?? 0)) return false;
  }
  return true;
}

function sliced(vectors: readonly Vector[], from: number, to: number): readonly Vector[] {
  if (from === 0 && to === vectors[0]?.length) return vectors;
  return vectors.map((vector) => slice(vector, from, to));
}

/** Returns the elements of a column at the given rows, in the order of `rows`. */
export function gathered<T extends Float64Array | Uint8Array>(
  from: T,
  into: T,
  rows: Uint32Array,
): T {
  for (let index = 0; index < rows.length; index += 1) into[index] = from[rows[index] ?? 0] ?? 0;
  return into;
}
