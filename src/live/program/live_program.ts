/**
 * The compiled form of a live query, shared by the members of its group.
 *
 * A program decides which versions match the plan, and builds their rows for the wire. Snapshots,
 * replays and live delivery use the same program, so that a single filter decides whether a row
 * belongs to the result, and rows have the same form in all three. A projection is evaluated only
 * on matching rows: `WHERE b <> 0` protects `10 / b`. Invariant: a filter is never evaluated on a
 * row version that does not exist, so it cannot raise an error for one.
 */
import { assert } from "../../base/assert.ts";
import type { Seq } from "../../base/seq.ts";
import type { WireCell, WireRow } from "../../protocol/mod.ts";
import type { CompiledExpression, LivePlan } from "../../sql/mod.ts";
import { type ChangeBatch, DELETED_COLUMN_ID, SEQ_COLUMN_ID } from "../../storage/mod.ts";
import {
  type Batch,
  constVector,
  type Selection,
  slice,
  take,
  type Vector,
  valueAt,
} from "../../types/mod.ts";
import {
  type MutableRow,
  rowShapeOf,
  type ShapedRows,
  setCell,
  type WireRowShape,
} from "../rows/row_shape.ts";
import type { TickBudget } from "../scheduler/tick_budget.ts";
import { ReadSize } from "./read_size.ts";

export type ChangeType = "insert" | "update" | "delete";

/** A change to the result of a live query, caused by a single row version. */
export interface LiveChange {
  readonly type: ChangeType;
  readonly seq: Seq;
  readonly commitSeq: number;
  /** The seq of the replaced version; 0 if there is none. */
  readonly prev: number;
  /** The full new row; undefined if the row leaves the result. */
  readonly row: WireRow | undefined;
  /** The old values of changed fields; undefined if the row enters the result. */
  readonly old: WireRow | undefined;
  /**
   * Why a row was deleted; absent if a statement deleted the row, or if the row no longer matches
   * the query.
   */
  readonly reason?: "expired";
}

/**
 * For each column of a plan, its index in the columns of a change batch, or SEQ_SOURCE or
 * DELETED_SOURCE.
 */
export type Sources = readonly number[];

const SEQ_SOURCE = -1;
const DELETED_SOURCE = -2;

/**
 * The minimum number of rows to read at once, however slow their evaluation is, because opening a
 * scan takes as long as reading a few rows.
 */
const READ_ROWS_MIN = 16;

/** How to evaluate the versions in a change batch. */
interface ChangeOptions {
  readonly sources: Sources;
  /** The filter that a version must pass; undefined keeps all versions. */
  readonly filter: CompiledExpression | undefined;
}

/** A result that covers only the first rows of a range. */
export interface PartialResult<T> {
  /** The number of rows that the result covers. */
  readonly rowCount: number;
  readonly result: T;
}

export class LiveProgram {
  readonly plan: LivePlan;
  /** The distinct stored columns of the plan, which are the columns to request from the store. */
  readonly storedColumnIds: readonly number[];
  /**
   * For each column of the plan, its index in a batch whose columns are exactly `storedColumnIds`.
   */
  readonly ownSources: Sources;
  readonly shape: WireRowShape;
  #readSize: ReadSize | undefined;

  constructor(plan: LivePlan) {
    this.plan = plan;
    this.storedColumnIds = [...new Set(plan.columnIds.filter((columnId) => columnId > 0))];
    this.ownSources = this.sourcesIn(this.storedColumnIds);
    this.shape = rowShapeOf(plan);
  }

  /** The read size for readers that serve a single subscription. Created on first use. */
  get readSize(): ReadSize {
    this.#readSize ??= new ReadSize();
    return this.#readSize;
  }

  /**
   * Returns the number of rows to read in one step: as many as a tick can evaluate, but at most
   * `rowsMax`.
   */
  rowsAtOnce(rowsMax: number): number {
    const { pace } = this.plan;
    if (pace === undefined) return rowsMax;
    return Math.min(rowsMax, Math.max(READ_ROWS_MIN, pace.rows.rowsMax));
  }

  /**
   * Evaluates as many of the first `rowCount` rows as fit into a tick, which normally means all of
   * them.
   */
  portion<T extends object>(
    { rowCount, budget }: { rowCount: number; budget: TickBudget },
    evaluate: (count: number) => T,
  ): PartialResult<T> {
    const { pace } = this.plan;
    if (pace === undefined) return { rowCount, result: evaluate(rowCount) };
    const count = Math.min(rowCount, pace.rows.rowsMax);
    const startMs = pace.monotonicMs();
    const result = evaluate(count);
    const tookMs = pace.monotonicMs() - startMs;
    // The size of the values is not counted, because a row that produces long values also takes a
    // long time to evaluate.
    pace.rows.note({ rowCount: count, tookMs, madeBytes: 0 });
    budget.spendMs(tookMs);
    return { rowCount: count, result };
  }

  /** Returns, for each column of the plan, its index in batches whose columns are `columnIds`. */
  sourcesIn(columnIds: readonly number[]): Sources {
    return this.plan.columnIds.map((columnId) => {
      if (columnId === SEQ_COLUMN_ID) return SEQ_SOURCE;
      if (columnId === DELETED_COLUMN_ID) return DELETED_SOURCE;
      const index = columnIds.indexOf(columnId);
      assert(index >= 0, "live program: batch lacks a column that the plan reads");
      return index;
    });
  }

  /**
   * Returns the new versions in a change batch, with the columns that the plan reads. The result
   * aliases the batch.
   */
  newSide(batch: ChangeBatch, sources: Sources): Batch {
    const columns: Vector[] = [];
    for (const source of sources) {
      if (source >= 0) columns.push(columnAt(batch.columns, source));
      else if (source === SEQ_SOURCE) columns.push(seqVector(batch.seqs, batch.rowCount));
      else columns.push(deletedVector(batch));
    }
    return { rowCount: batch.rowCount, columns };
  }

  /** Returns the replaced versions in a change batch. Rows without `hasOld` must not be read. */
  oldSide(batch: ChangeBatch, sources: Sources): Batch {
    const columns: Vector[] = [];
    for (const source of sources) {
      if (source >= 0) columns.push(columnAt(batch.oldColumns, source));
      else if (source === SEQ_SOURCE) columns.push(seqVector(batch.prevs, batch.rowCount));
      else columns.push(constVector(false, batch.rowCount));
    }
    return { rowCount: batch.rowCount, columns };
  }

  /**
   * Marks the rows that the filter keeps.
   *
   * @param eligible 1 for each row that may be evaluated; undefined if all rows may be.
   * @returns A new array with 1 for each kept row.
   */
  matches(batch: Batch, eligible: Uint8Array | undefined): Uint8Array {
    return flagsOf(batch, eligible, this.plan.filter);
  }

  /**
   * Returns the wire form of the chosen rows, in their order. An undefined `chosen` selects all
   * rows.
   */
  project(batch: Batch, chosen: Selection | undefined): MutableRow[] {
    return this.shape.rows(chosenOf(batch, chosen), this.plan.projections);
  }

  /** Returns the wire rows as columns, which may alias the batch. */
  shaped(batch: Batch, chosen: Selection): ShapedRows {
    return this.shape.shaped(chosenOf(batch, chosen), this.plan.projections);
  }

  /**
   * Computes the changes that a batch makes to the result, from row `start` onwards, for as many
   * rows as fit into a tick.
   */
  changesFrom(
    batch: ChangeBatch,
    start: number,
    options: ChangeOptions & { readonly budget: TickBudget },
  ): PartialResult<LiveChange[]> {
    const rowCount = batch.rowCount - start;
    return this.portion({ rowCount, budget: options.budget }, (count) =>
      this.#changesOf(sliceChanges(batch, start, start + count), options),
    );
  }

  /**
   * Returns the changes that a batch makes to the result, in the order of the batch. Versions that
   * do not change the result are omitted.
   */
  #changesOf(batch: ChangeBatch, options: ChangeOptions): LiveChange[] {
    const { rowCount } = batch;
    if (rowCount === 1) return this.#changesOfOne(batch, options);
    const { filter, sources } = options;
    const newSide = this.newSide(batch, sources);
    const oldSide = this.oldSide(batch, sources);
    const isNew = flagsOf(newSide, inverted(batch.deleted, rowCount), filter);
    const isOld = flagsOf(oldSide, batch.hasOld, filter);
    const newChosen = selectionOf(isNew, rowCount);
    const oldChosen = selectionOf(isOld, rowCount);
    if (newChosen.count === 0 && oldChosen.count === 0) return [];
    const newRows = this.project(newSide, newChosen);
    const oldRows = this.project(oldSide, oldChosen);
    const changes: LiveChange[] = [];
    let newIndex = 0;
    let oldIndex = 0;
    for (let row = 0; row < rowCount; row += 1) {
      const newRow = isNew[row] === 1 ? newRows[newIndex++] : undefined;
      const oldRow = isOld[row] === 1 ? oldRows[oldIndex++] : undefined;
      if (newRow !== undefined || oldRow !== undefined) {
        changes.push(this.changeAt(batch, row, { newRow, oldRow }));
      }
    }
    return changes;
  }

  /**
   * A fast path for the most common case, a batch with a single version: it needs no flags and no
   * selections.
   */
  #changesOfOne(batch: ChangeBatch, { filter, sources }: ChangeOptions): LiveChange[] {
    const newSide = batch.deleted[0] === 1 ? undefined : this.newSide(batch, sources);
    const oldSide = batch.hasOld[0] === 1 ? this.oldSide(batch, sources) : undefined;
    const isNew = newSide !== undefined && isKept(newSide, filter);
    const isOld = oldSide !== undefined && isKept(oldSide, filter);
    if (!isNew && !isOld) return [];
    const { projections } = this.plan;
    const newRow = isNew ? this.shape.row(newSide, projections) : undefined;
    const oldRow = isOld ? this.shape.row(oldSide, projections) : undefined;
    return [this.changeAt(batch, 0, { newRow, oldRow })];
  }

  /**
   * Builds a change from the row before and the row after, at least one of which exists. The
   * change takes ownership of both rows.
   */
  changeAt(
    batch: ChangeBatch,
    row: number,
    { newRow, oldRow }: { newRow: MutableRow | undefined; oldRow: MutableRow | undefined },
  ): LiveChange {
    const seq = (batch.seqs[row] ?? 0) as Seq;
    const commitSeq = batch.commitSeqs[row] ?? 0;
    const prev = batch.prevs[row] ?? 0;
    assert(commitSeq >= seq, "live program: commit seq is lower than the seq of its row version");
    if (newRow === undefined) {
      assert(oldRow !== undefined, "live program: change has neither an old nor a new row");
      oldRow[this.shape.seqName] = seq;
      oldRow["_deleted"] = true;
      // In a table without a primary key, a row is identified by the seq of its insert.
      const isKeyless = this.plan.keyFieldIndexes.length === 0;
      const old = isKeyless && oldRow !== undefined ? { ...oldRow, _row_seq: prev } : oldRow;
      const isExpired = batch.deleted[row] === 1 && this.plan.isExpiry?.(prev, seq) === true;
      const change = { type: "delete" as const, seq, commitSeq, prev, row: undefined, old };
      return isExpired ? { ...change, reason: "expired" } : change;
    }
    if (oldRow === undefined) {
      return { type: "insert", seq, commitSeq, prev, row: newRow, old: undefined };
    }
    const old = this.#changedCells(oldRow, newRow);
    return { type: "update", seq, commitSeq, prev, row: newRow, old };
  }

  /** Returns the old values of an update: the primary key, `_seq`, and the columns that differ. */
  #changedCells(oldRow: WireRow, newRow: WireRow): WireRow {
    const changed: MutableRow = {};
    const { keyFieldIndexes, seqFieldIndex } = this.plan;
    for (let index = 0; index < this.shape.fieldCount; index += 1) {
      const name = this.shape.nameOf(index);
      const cell = oldRow[name] ?? null;
      const isWanted = index === seqFieldIndex || keyFieldIndexes.includes(index);
      if (isWanted || !isSameCell(cell, newRow[name] ?? null)) setCell(changed, name, cell);
    }
    return changed;
  }
}

/** Returns whether a filter keeps the only row of a batch. */
function isKept(batch: Batch, filter: CompiledExpression | undefined): boolean {
  return filter === undefined || valueAt(filter.evaluate(batch), 0) === true;
}

/** Marks the rows that `filter` keeps, as {@linkcode LiveProgram.matches} does. */
function flagsOf(
  batch: Batch,
  eligible: Uint8Array | undefined,
  filter: CompiledExpression | undefined,
): Uint8Array {
  const flags = new Uint8Array(batch.rowCount);
  const chosen = eligible === undefined ? undefined : selectionOf(eligible, batch.rowCount);
  if (chosen === undefined || chosen.count === batch.rowCount) {
    if (filter === undefined) return flags.fill(1);
    markTrue(filter.evaluate(batch), flags, undefined);
  } else if (chosen.count > 0) {
    if (filter === undefined) for (let i = 0; i < chosen.count; i += 1) flags[at(chosen, i)] = 1;
    else markTrue(filter.evaluate(takeBatch(batch, chosen)), flags, chosen);
  }
  return flags;
}

function chosenOf(batch: Batch, chosen: Selection | undefined): Batch {
  const isWhole = chosen === undefined || chosen.count === batch.rowCount;
  return isWhole ? batch : takeBatch(batch, chosen);
}

/**
 * Returns the chosen rows of every column. The result aliases the batch if the rows are adjacent.
 */
function takeBatch(batch: Batch, chosen: Selection): Batch {
  const first = at(chosen, 0);
  const end = at(chosen, chosen.count - 1) + 1;
  if (end - first === chosen.count) return sliceRows(batch, first, end);
  return { rowCount: chosen.count, columns: batch.columns.map((column) => take(column, chosen)) };
}

/** Selects the rows whose flag is 1. */
export function selectionOf(flags: Uint8Array, rowCount: number): Selection {
  let count = 0;
  for (let row = 0; row < rowCount; row += 1) count += flags[row] ?? 0;
  const rows = new Uint32Array(count);
  let next = 0;
  for (let row = 0; next < count; row += 1) if (flags[row] === 1) rows[next++] = row;
  return { rows, count };
}

/**
 * Returns a range of adjacent rows of a change batch, with all their columns. The result aliases
 * the batch.
 */
export function sliceChanges(batch: ChangeBatch, start: number, end: number): ChangeBatch {
  if (start === 0 && end === batch.rowCount) return batch;
  return {
    rowCount: end - start,
    seqs: batch.seqs.subarray(start, end),
    commitSeqs: batch.commitSeqs.subarray(start, end),
    prevs: batch.prevs.subarray(start, end),
    deleted: batch.deleted.subarray(start, end),
    hasOld: batch.hasOld.subarray(start, end),
    columns: batch.columns.map((column) => slice(column, start, end)),
    oldColumns: batch.oldColumns.map((column) => slice(column, start, end)),
  };
}

/** Returns a range of adjacent rows of a batch. The result aliases the batch. */
export function sliceRows(batch: Batch, start: number, end: number): Batch {
  if (start === 0 && end === batch.rowCount) return batch;
  const columns = batch.columns.map((column) => slice(column, start, end));
  return { rowCount: end - start, columns };
}

/** Returns the chosen rows of a change batch, with all their columns. */
export function takeChanges(batch: ChangeBatch, chosen: Selection): ChangeBatch {
  const { rows, count } = chosen;
  const seqs = new Float64Array(count);
  const commitSeqs = new Float64Array(count);
  const prevs = new Float64Array(count);
  const deleted = new Uint8Array(count);
  const hasOld = new Uint8Array(count);
  for (let i = 0; i < count; i += 1) {
    const row = rows[i] ?? 0;
    seqs[i] = batch.seqs[row] ?? 0;
    commitSeqs[i] = batch.commitSeqs[row] ?? 0;
    prevs[i] = batch.prevs[row] ?? 0;
    deleted[i] = batch.deleted[row] ?? 0;
    hasOld[i] = batch.hasOld[row] ?? 0;
  }
  const columns = batch.columns.map((column) => take(column, chosen));
  const oldColumns = batch.oldColumns.map((column) => take(column, chosen));
  return { rowCount: count, seqs, commitSeqs, prevs, deleted, hasOld, columns, oldColumns };
}

function at({ rows }: Selection, index: number): number {
  return rows[index] ?? 0;
}

function columnAt(columns: readonly Vector[], index: number): Vector {
  const column = columns[index];
  assert(column !== undefined, "live program: batch lacks the requested column");
  return column;
}

function seqVector(seqs: Float64Array, length: number): Vector {
  const values = seqs.length === length ? seqs : seqs.subarray(0, length);
  return { kind: "f64", length, values, nulls: undefined };
}

function deletedVector({ deleted, rowCount }: ChangeBatch): Vector {
  const values = deleted.length === rowCount ? deleted : deleted.subarray(0, rowCount);
  return { kind: "bool", length: rowCount, values, nulls: undefined };
}

function inverted(flags: Uint8Array, length: number): Uint8Array {
  const result = new Uint8Array(length);
  for (let row = 0; row < length; row += 1) result[row] = flags[row] === 1 ? 0 : 1;
  return result;
}

/**
 * Sets the flag of each row for which a filter is true. `chosen` maps the positions in `verdict`
 * to rows.
 */
function markTrue(verdict: Vector, flags: Uint8Array, chosen: Selection | undefined): void {
  const count = chosen === undefined ? flags.length : chosen.count;
  assert(verdict.length === count, "live program: filter result count differs from the row count");
  if (verdict.kind === "bool") {
    const { values, nulls } = verdict;
    for (let i = 0; i < count; i += 1) {
      const isTrue = values[i] === 1 && (nulls === undefined || nulls[i] !== 1);
      if (isTrue) flags[chosen === undefined ? i : at(chosen, i)] = 1;
    }
  } else {
    for (let i = 0; i < count; i += 1) {
      if (valueAt(verdict, i) === true) flags[chosen === undefined ? i : at(chosen, i)] = 1;
    }
  }
}

function isSameCell(left: WireCell, right: WireCell): boolean {
  if (left === right) return true;
  if (!Array.isArray(left) || !Array.isArray(right)) return false;
  return (
    left.length === right.length && left.every((item, index) => isSameCell(item, right[index]))
  );
}
