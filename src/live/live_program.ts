/**
 * The program of a live query, which its group shares: which versions match the plan, and what
 * their rows look like on the wire.
 *
 * Snapshot, replay and live deliveries all end here, so a row is in the result by one filter and
 * looks one way. A projection is evaluated on rows that match only: `WHERE b <> 0` protects
 * `10 / b`. Invariant: a filter never sees a row that is not there, so it cannot raise on one.
 */
import { assert } from "../base/assert.ts";
import type { Seq } from "../base/seq.ts";
import type { Cell, CellObject } from "../protocol/mod.ts";
import type { CompiledExpression, LivePlan } from "../sql/mod.ts";
import { type ChangeBatch, DELETED_COLUMN_ID, SEQ_COLUMN_ID } from "../storage/mod.ts";
import {
  type Batch,
  constVector,
  type Selection,
  slice,
  take,
  type Vector,
  valueAt,
} from "../types/mod.ts";
import type { Budget } from "./budget.ts";
import { ReadSize } from "./read_size.ts";
import {
  type MutableRow,
  type RowShape,
  rowShapeOf,
  type ShapedRows,
  setCell,
} from "./row_shape.ts";

export type ChangeType = "insert" | "update" | "delete";

/** One version that changes the result, as the change matrix says. */
export interface LiveChange {
  readonly type: ChangeType;
  readonly seq: Seq;
  readonly commitSeq: number;
  /** Seq of the replaced version, 0 for none. */
  readonly prev: number;
  /** The full row; undefined for a delete. */
  readonly row: CellObject | undefined;
  /** What travels as the old values; undefined for an insert. */
  readonly old: CellObject | undefined;
}

/**
 * Where each column of a plan is found in a change batch: an index into its columns, or
 * SEQ_SOURCE or DELETED_SOURCE.
 */
export type Sources = readonly number[];

const SEQ_SOURCE = -1;
const DELETED_SOURCE = -2;

/** To open a scan costs as much as to read a few rows, however long each is evaluated. */
const READ_ROWS_MIN = 16;

/** How the versions of a change batch are evaluated. */
interface ChangeOptions {
  readonly sources: Sources;
  /** Keeps a version where it is true; undefined keeps all. */
  readonly filter: CompiledExpression | undefined;
}

/** What came of the first rows of a stretch. */
export interface Portion<T> {
  /** How many rows those were. */
  readonly rowCount: number;
  readonly result: T;
}

export class LiveProgram {
  readonly plan: LivePlan;
  /** The plan's columns that are stored, each once: what to ask the store for. */
  readonly storedColumnIds: readonly number[];
  /** Sources in a batch that holds exactly `storedColumnIds`. */
  readonly ownSources: Sources;
  readonly shape: RowShape;
  #readSize: ReadSize | undefined;

  constructor(plan: LivePlan) {
    this.plan = plan;
    this.storedColumnIds = [...new Set(plan.columnIds.filter((columnId) => columnId > 0))];
    this.ownSources = this.sourcesIn(this.storedColumnIds);
    this.shape = rowShapeOf(plan);
  }

  /** Of who reads versions for one subscription; made when somebody does. */
  get readSize(): ReadSize {
    this.#readSize ??= new ReadSize();
    return this.#readSize;
  }

  /** How many rows to read at once, of at most so many: what no turn evaluates is not read. */
  rowsAtOnce(rowsMax: number): number {
    const { pace } = this.plan;
    if (pace === undefined) return rowsMax;
    return Math.min(rowsMax, Math.max(READ_ROWS_MIN, pace.rows.rowsMax));
  }

  /** Evaluates over the first of so many rows, as many as fit a turn: all where none takes long. */
  portion<T extends object>(
    { rowCount, budget }: { rowCount: number; budget: Budget },
    evaluate: (count: number) => T,
  ): Portion<T> {
    const { pace } = this.plan;
    if (pace === undefined) return { rowCount, result: evaluate(rowCount) };
    const count = Math.min(rowCount, pace.rows.rowsMax);
    const startMs = pace.monotonicMs();
    const result = evaluate(count);
    const tookMs = pace.monotonicMs() - startMs;
    // A row that makes long values takes long, too.
    pace.rows.note({ rowCount: count, tookMs, madeBytes: 0 });
    budget.spendMs(tookMs);
    return { rowCount: count, result };
  }

  /** Finds the plan's columns in batches that hold `columnIds`. */
  sourcesIn(columnIds: readonly number[]): Sources {
    return this.plan.columnIds.map((columnId) => {
      if (columnId === SEQ_COLUMN_ID) return SEQ_SOURCE;
      if (columnId === DELETED_COLUMN_ID) return DELETED_SOURCE;
      const index = columnIds.indexOf(columnId);
      assert(index >= 0, "a batch holds the columns that the plan reads");
      return index;
    });
  }

  /** The new versions of a change batch as the plan reads them. Aliases the batch. */
  newSide(batch: ChangeBatch, sources: Sources): Batch {
    const columns: Vector[] = [];
    for (const source of sources) {
      if (source >= 0) columns.push(columnAt(batch.columns, source));
      else if (source === SEQ_SOURCE) columns.push(seqVector(batch.seqs, batch.rowCount));
      else columns.push(deletedVector(batch));
    }
    return { rowCount: batch.rowCount, columns };
  }

  /** The replaced versions of a change batch; rows without `hasOld` must not be looked at. */
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
   * @param eligible 1 for the rows that may be looked at; undefined for all of them.
   * @returns 1 a kept row, of its own.
   */
  matches(batch: Batch, eligible: Uint8Array | undefined): Uint8Array {
    return flagsOf(batch, eligible, this.plan.filter);
  }

  /** Makes the wire rows of the chosen rows, in their order; undefined chooses all. */
  project(batch: Batch, chosen: Selection | undefined): MutableRow[] {
    return this.shape.rows(chosenOf(batch, chosen), this.plan.projections);
  }

  /** The same as columns, which may alias the batch. */
  shaped(batch: Batch, chosen: Selection): ShapedRows {
    return this.shape.shaped(chosenOf(batch, chosen), this.plan.projections);
  }

  /** Says how rows of a change batch change the result: from `start` on, as many as fit a turn. */
  changesFrom(
    batch: ChangeBatch,
    start: number,
    options: ChangeOptions & { readonly budget: Budget },
  ): Portion<LiveChange[]> {
    const rowCount = batch.rowCount - start;
    return this.portion({ rowCount, budget: options.budget }, (count) =>
      this.#changesOf(sliceChanges(batch, start, start + count), options),
    );
  }

  /**
   * What a change batch does to the result, in its order; versions that do nothing are left out.
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

  /** The same for a batch of one version, which most wakes are: no flags, no selections. */
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

  /** Puts one change together from the rows before and after; at least one is there. Owns both. */
  changeAt(
    batch: ChangeBatch,
    row: number,
    { newRow, oldRow }: { newRow: MutableRow | undefined; oldRow: MutableRow | undefined },
  ): LiveChange {
    const seq = (batch.seqs[row] ?? 0) as Seq;
    const commitSeq = batch.commitSeqs[row] ?? 0;
    const prev = batch.prevs[row] ?? 0;
    assert(commitSeq >= seq, "a commit ends at or after its versions");
    if (newRow === undefined) {
      assert(oldRow !== undefined, "a change has a row before or after");
      oldRow[this.shape.seqName] = seq;
      oldRow["_deleted"] = true;
      // Without a key a row is known by the seq of its insert.
      const isKeyless = this.plan.keyFieldIndexes.length === 0;
      const old = isKeyless && oldRow !== undefined ? { ...oldRow, _row_seq: prev } : oldRow;
      return { type: "delete", seq, commitSeq, prev, row: undefined, old };
    }
    if (oldRow === undefined) {
      return { type: "insert", seq, commitSeq, prev, row: newRow, old: undefined };
    }
    const old = this.#changedCells(oldRow, newRow);
    return { type: "update", seq, commitSeq, prev, row: newRow, old };
  }

  /** The old values of an update: primary key, `_seq`, and what differs. */
  #changedCells(oldRow: CellObject, newRow: CellObject): CellObject {
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

/** Whether a filter keeps the only row of a batch. */
function isKept(batch: Batch, filter: CompiledExpression | undefined): boolean {
  return filter === undefined || valueAt(filter.evaluate(batch), 0) === true;
}

/** As {@linkcode LiveProgram.matches} does, by any filter. */
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

/** The chosen rows of every column; aliases the batch where they are neighbours. */
function takeBatch(batch: Batch, chosen: Selection): Batch {
  const first = at(chosen, 0);
  const end = at(chosen, chosen.count - 1) + 1;
  if (end - first === chosen.count) return sliceRows(batch, first, end);
  return { rowCount: chosen.count, columns: batch.columns.map((column) => take(column, chosen)) };
}

/** The rows whose flag is 1. */
export function selectionOf(flags: Uint8Array, rowCount: number): Selection {
  let count = 0;
  for (let row = 0; row < rowCount; row += 1) count += flags[row] ?? 0;
  const rows = new Uint32Array(count);
  let next = 0;
  for (let row = 0; next < count; row += 1) if (flags[row] === 1) rows[next++] = row;
  return { rows, count };
}

/** Rows that are neighbours in a change batch, with all their columns. Aliases the batch. */
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

/** Rows that are neighbours in a batch. Aliases it. */
export function sliceRows(batch: Batch, start: number, end: number): Batch {
  if (start === 0 && end === batch.rowCount) return batch;
  const columns = batch.columns.map((column) => slice(column, start, end));
  return { rowCount: end - start, columns };
}

/** Some rows of a change batch, with all their columns. */
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
  assert(column !== undefined, "a batch holds the columns asked for");
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

/** Sets the flag of each row where a filter is true; `chosen` says which row each value is of. */
function markTrue(verdict: Vector, flags: Uint8Array, chosen: Selection | undefined): void {
  const count = chosen === undefined ? flags.length : chosen.count;
  assert(verdict.length === count, "a filter gives one value a row");
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

function isSameCell(left: Cell, right: Cell): boolean {
  if (left === right) return true;
  if (!Array.isArray(left) || !Array.isArray(right)) return false;
  return left.length === right.length && left.every((item, index) => item === right[index]);
}
