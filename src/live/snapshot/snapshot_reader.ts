/**
 * Reads the rows of a live query as of its boundary, in ascending `_seq` order, batch by batch.
 *
 * Each request reads from the cursor onwards, so a slow client does not keep any file open. The
 * store yields the rows that were current at the boundary, even if they have been replaced since.
 * Invariant: every row up to the cursor has been returned or is waiting in `#page`.
 */
import { assert } from "../../base/assert.ts";
import type { Clock } from "../../base/clock.ts";
import { SEQ_ZERO, type Seq } from "../../base/seq.ts";
import type { SearchRange } from "../../sql/mod.ts";
import { type ScanBatch, SEQ_COLUMN_ID, type Store } from "../../storage/mod.ts";
import { type Batch, type Selection, slice, type Vector, valueAt } from "../../types/mod.ts";
import { resumeExpired } from "../contract/live_errors.ts";
import { type LiveProgram, selectionOf, sliceRows } from "../program/live_program.ts";
import { FrameBudget } from "../rows/frame_budget.ts";
import { RowPage, roughBytesOf } from "../rows/row_page.ts";
import type { ShapedRows } from "../rows/row_shape.ts";
import type { TickBudget } from "../scheduler/tick_budget.ts";
import type { BatchStep, LoadReader } from "../subscription/load_reader.ts";
import { SnapshotScan } from "./snapshot_scan.ts";
import { ELSEWHERE, SnapshotSearch } from "./snapshot_search.ts";

/**
 * The number of versions in a scan batch: enough for vectorised evaluation to pay off, and few
 * enough to be evaluated within a tick.
 */
const SCAN_ROWS_MAX = 1024;

/**
 * The number of rows projected at a time. It limits how much memory rows of maximum size take up,
 * in addition to a frame.
 */
const PROJECT_ROWS_MAX = 64;

/**
 * The length of the first interval that is searched for the newest rows: the range of seqs that
 * are issued in one minute.
 */
const WINDOW_SPAN_FIRST = 60_000 * 4096;

/** The factor by which each interval is longer than the previous interval. */
const WINDOW_GROWTH = 16;

export interface SnapshotOptions {
  readonly store: Store;
  readonly clock: Clock;
  readonly program: () => LiveProgram;
  /** The inclusive boundary: the snapshot contains the rows that are current at this seq. */
  readonly boundary: Seq;
  readonly batchSize: number;
  readonly frameBytesMax: number;
  /** The number of newest rows to which the snapshot is limited; undefined for all rows. */
  readonly lastRows: number | undefined;
  /** Called when rows may have become available after `next` returned "waiting". */
  readonly onArrived: () => void;
}

export class SnapshotReader implements LoadReader {
  readonly #options: SnapshotOptions;
  readonly #frame: FrameBudget;
  readonly #scan: SnapshotScan;
  readonly #search: SnapshotSearch;
  #finder: LastRowsFinder | undefined;
  /** The seq up to which the scan has examined the rows. */
  #cursor: Seq = SEQ_ZERO;
  /** The seq up to which all wanted rows have been returned. */
  #sentSeq: Seq = SEQ_ZERO;
  /** The page for the current batch, created with its first row. */
  #page: RowPage | undefined;
  /** The seq of the last row taken for a batch. */
  #takenSeq: Seq = SEQ_ZERO;

  constructor(options: SnapshotOptions) {
    this.#options = options;
    this.#frame = new FrameBudget(options.frameBytesMax);
    this.#scan = new SnapshotScan(options);
    this.#search = new SnapshotSearch(options.onArrived);
    const { lastRows } = options;
    if (lastRows !== undefined) this.#finder = new LastRowsFinder(options, this.#search, lastRows);
  }

  next(budget: TickBudget): BatchStep | "waiting" | undefined {
    checkHistory(this.#options);
    if (this.#finder !== undefined) {
      const start = this.#finder.next(budget);
      if (start === undefined || start === "waiting") return start;
      this.#finder = undefined;
      this.#cursor = start;
      this.#sentSeq = start;
    }
    const program = this.#options.program();
    const isElsewhere = this.#search.isElsewhere(program);
    let step = isElsewhere ? this.#readFound(program, budget) : this.#readHere(program, budget);
    if (step === ELSEWHERE) step = this.#readFound(program, budget);
    // If the other thread has refused the search, this thread reads the rows, starting with the
    // next tick.
    if (step === "spent" || step === "refused") return undefined;
    return step ?? this.#cut(this.#options.boundary, true);
  }

  /** Takes rows from a scan that runs in this thread. */
  #readHere(
    program: LiveProgram,
    budget: TickBudget,
  ): BatchStep | typeof ELSEWHERE | "spent" | undefined {
    const { boundary, batchSize } = this.#options;
    const isUnfiltered = program.plan.filter === undefined;
    const rowsMax = program.rowsAtOnce(SCAN_ROWS_MAX);
    const wantedCount = batchSize + 1 - this.#rowCount;
    const bounds = {
      after: this.#cursor,
      upTo: boundary,
      batchRows: isUnfiltered ? Math.min(rowsMax, wantedCount) : rowsMax,
    };
    const search = this.#search;
    const before = budget.left + this.#rowCount;
    const spent = (): number => before - budget.left - this.#rowCount;
    const step = this.#scan.read({ program, bounds, budget }, (batch) => {
      const taken = this.#takeFrom(batch, budget);
      return taken ?? (search.isTooLong(program, spent()) ? ELSEWHERE : undefined);
    });
    if (step === "spent") search.noteSpent(spent());
    return step;
  }

  /** Takes rows found by another thread. */
  #readFound(
    program: LiveProgram,
    budget: TickBudget,
  ): BatchStep | "waiting" | "spent" | "refused" | undefined {
    const range = (): SearchRange => ({
      after: this.#cursor,
      upTo: this.#options.boundary,
      // Reading one more row than the batch needs shows whether another batch follows.
      rowsMax: this.#options.batchSize + 1 - this.#rowCount,
      isOfSeqs: false,
    });
    return this.#search.read({ program, range, budget }, (batch) => {
      const seqs = seqsOf(program, batch);
      const found = { rows: planBatch(program, batch), chosen: allOf(batch.rowCount) };
      const step = this.#takeFound(found, seqs, budget);
      if (step === "spent") return countUpTo(seqs, this.#takenSeq);
      if (step !== undefined) return step;
      this.#cursor = this.#takenSeq;
      return batch.rowCount;
    });
  }

  close(): void {
    this.#scan.close();
    this.#search.close();
    this.#finder?.close();
  }

  release(): void {
    this.close();
    this.#search.noteFound();
    if (this.#page === undefined) return;
    this.#page = undefined;
    this.#frame.clear();
    this.#cursor = this.#sentSeq;
    this.#takenSeq = this.#sentSeq;
  }

  /** Takes the matching rows of a scan batch until a message is full or the budget is used up. */
  #takeFrom(batch: ScanBatch, budget: TickBudget): BatchStep | undefined {
    const program = this.#options.program();
    const all = planBatch(program, batch);
    const seqs = seqsOf(program, batch);
    for (let start = 0; start < batch.rowCount; ) {
      const rows = sliceRows(all, start, batch.rowCount);
      const looked = program.portion({ rowCount: rows.rowCount, budget }, (count) =>
        program.matches(sliceRows(rows, 0, count), undefined),
      );
      const end = start + looked.rowCount;
      budget.spendScanned(looked.rowCount);
      const found = { rows, chosen: selectionOf(looked.result, looked.rowCount) };
      const step = this.#takeFound(found, start === 0 ? seqs : slice(seqs, start, end), budget);
      if (step !== undefined) return step === "spent" ? undefined : step;
      this.#cursor = seqAt(seqs, end - 1);
      if (budget.isSpent) return undefined;
      start = end;
    }
    return undefined;
  }

  /**
   * Adds matching rows to the message. Returns undefined if neither the message nor the budget ran
   * out before all of them had been added.
   */
  #takeFound(
    { rows, chosen }: { rows: Batch; chosen: Selection },
    seqs: Vector,
    budget: TickBudget,
  ): BatchStep | "spent" | undefined {
    for (let start = 0; start < chosen.count; ) {
      const rowsLeft = this.#options.batchSize - this.#rowCount;
      if (rowsLeft === 0) return this.#cut(this.#takenSeq, false);
      const wanted = subselection(chosen, start, start + rowsLeft);
      const takenCount = this.#take(rows, wanted, budget);
      budget.spend(takenCount);
      if (takenCount === 0) return this.#cut(this.#takenSeq, false);
      this.#check(seqs, subselection(wanted, 0, takenCount));
      start += takenCount;
      if (budget.isSpent && start < chosen.count) {
        // All rows up to the last row taken have been examined.
        this.#cursor = this.#takenSeq;
        return "spent";
      }
    }
    return undefined;
  }

  /**
   * Takes as many wanted rows as fit, starting with the first. Returns their number, which is 0 if
   * the message is full.
   */
  #take(batch: Batch, wanted: Selection, budget: TickBudget): number {
    const program = this.#options.program();
    const { shape } = program;
    if (shape.isStored && wanted.count > PROJECT_ROWS_MAX) {
      const all = program.shaped(batch, wanted);
      if (this.#frame.admitsBytes(roughBytesOf(all, shape))) return this.#add(all);
    }
    const rowCount = Math.min(wanted.count, PROJECT_ROWS_MAX);
    const shaped = program.portion({ rowCount, budget }, (most) =>
      program.shaped(batch, subselection(wanted, 0, most)),
    );
    const some = shaped.result;
    if (this.#frame.admitsBytes(roughBytesOf(some, shape))) return this.#add(some);
    let count = 0;
    for (const row of shape.rowsOf(some)) {
      if (!this.#frame.admits(row)) break;
      count += 1;
    }
    return count === 0 ? 0 : this.#add(firstRows(some, count));
  }

  #add(rows: ShapedRows): number {
    this.#page ??= new RowPage(this.#options.program().shape);
    this.#page.add(rows);
    return rows.rowCount;
  }

  /** Checks that the rows ascend by seq, and records the last of them. */
  #check(seqs: Vector, { count, rows }: Selection): void {
    for (let i = 0; i < count; i += 1) {
      const seq = seqAt(seqs, rows[i] ?? 0);
      assert(seq > this.#takenSeq, "snapshot: rows are not in ascending order of seq");
      this.#takenSeq = seq;
    }
    assert(this.#takenSeq <= this.#options.boundary, "snapshot: row has a seq above the boundary");
  }

  get #rowCount(): number {
    return this.#page?.rowCount ?? 0;
  }

  #cut(lastSeq: Seq, isLast: boolean): BatchStep {
    const rows = this.#page ?? [];
    this.#page = undefined;
    this.#frame.clear();
    this.#cursor = lastSeq;
    this.#sentSeq = lastSeq;
    this.#search.close();
    this.#search.noteFound();
    return { kind: "batch", rows, lastSeq, isLast, endsRequest: true };
  }
}

/**
 * Finds the seq at which the newest n matching rows begin, by looking back over ever longer
 * intervals. A scan can only go forward, but a chat that needs only its last fifty messages must
 * not have to scan an entire year of them.
 */
class LastRowsFinder {
  readonly #options: SnapshotOptions;
  readonly #count: number;
  readonly #scan: SnapshotScan;
  readonly #search: SnapshotSearch;
  #span = WINDOW_SPAN_FIRST;
  /** The exclusive start of the interval being examined. */
  #after: Seq;
  #cursor: Seq;
  /**
   * The seqs of the newest matching rows in the interval; used as a ring buffer once it holds
   * `#count` seqs.
   */
  #ring: number[] = [];
  #ringStart = 0;

  constructor(options: SnapshotOptions, search: SnapshotSearch, count: number) {
    this.#options = options;
    this.#search = search;
    this.#count = count;
    this.#scan = new SnapshotScan(options);
    this.#after = Math.max(0, options.boundary - this.#span) as Seq;
    this.#cursor = this.#after;
  }

  /**
   * Returns the seq after which the newest rows begin; undefined if the budget was used up first.
   */
  next(budget: TickBudget): Seq | "waiting" | undefined {
    if (this.#count === 0) return this.#options.boundary;
    for (;;) {
      const program = this.#options.program();
      const isElsewhere = this.#search.isElsewhere(program);
      const end = isElsewhere
        ? this.#lookElsewhere(program, budget)
        : this.#lookHere(program, budget);
      if (end === "waiting") return end;
      if (end === "spent") return undefined;
      if (end === ELSEWHERE || end === "refused") continue;
      if (this.#ring.length === this.#count) {
        return ((this.#ring[this.#ringStart] ?? 0) - 1) as Seq;
      }
      if (this.#after === 0) return SEQ_ZERO;
      this.#lookFurther();
    }
  }

  close(): void {
    this.#scan.close();
  }

  #lookHere(program: LiveProgram, budget: TickBudget): typeof ELSEWHERE | "spent" | undefined {
    const batchRows = program.rowsAtOnce(SCAN_ROWS_MAX);
    const bounds = { after: this.#cursor, upTo: this.#options.boundary, batchRows };
    const before = budget.left;
    const end = this.#scan.read({ program, bounds, budget }, (batch) => {
      this.#look(batch, budget);
      return this.#search.isTooLong(program, before - budget.left) ? ELSEWHERE : undefined;
    });
    if (end === "spent") this.#search.noteSpent(before - budget.left);
    return end;
  }

  #lookElsewhere(
    program: LiveProgram,
    budget: TickBudget,
  ): "waiting" | "spent" | "refused" | undefined {
    const range = (): SearchRange => ({
      after: this.#cursor,
      upTo: this.#options.boundary,
      rowsMax: Number.MAX_SAFE_INTEGER,
      isOfSeqs: true,
    });
    return this.#search.read<never>({ program, range, budget }, ({ columns, rowCount }) => {
      const [seqs] = columns;
      assert(seqs !== undefined, "snapshot: search result lacks the seq column");
      for (let row = 0; row < rowCount; row += 1) this.#remember(seqAt(seqs, row));
      this.#cursor = seqAt(seqs, rowCount - 1);
      budget.spendScanned(rowCount);
      return rowCount;
    });
  }

  #lookFurther(): void {
    this.#span *= WINDOW_GROWTH;
    this.#after = Math.max(0, this.#options.boundary - this.#span) as Seq;
    this.#cursor = this.#after;
    this.#ring = [];
    this.#ringStart = 0;
  }

  /** Examines rows of a batch until the budget is used up. */
  #look(batch: ScanBatch, budget: TickBudget): void {
    const program = this.#options.program();
    const seqs = seqsOf(program, batch);
    const all = planBatch(program, batch);
    for (let start = 0; start < batch.rowCount; ) {
      const rows = sliceRows(all, start, batch.rowCount);
      const looked = program.portion({ rowCount: rows.rowCount, budget }, (count) =>
        program.matches(sliceRows(rows, 0, count), undefined),
      );
      const { result: flags, rowCount } = looked;
      for (let row = 0; row < rowCount; row += 1) {
        if (flags[row] === 1) this.#remember(seqAt(seqs, start + row));
      }
      start += rowCount;
      this.#cursor = seqAt(seqs, start - 1);
      budget.spendScanned(rowCount);
      if (budget.isSpent) return;
    }
  }

  #remember(seq: Seq): void {
    if (this.#ring.length < this.#count) this.#ring.push(seq);
    else {
      this.#ring[this.#ringStart] = seq;
      this.#ringStart = (this.#ringStart + 1) % this.#count;
    }
  }
}

/** Throws if some of the versions that the snapshot needs have been discarded. */
function checkHistory({ store, program, boundary }: SnapshotOptions): void {
  const { tableId, owner } = program().plan;
  const earliestSeq = store.earliestSeq(tableId, owner);
  if (boundary < earliestSeq) throw resumeExpired(earliestSeq);
}

function planBatch({ plan }: LiveProgram, batch: ScanBatch): Batch {
  if (batch.columns.length === plan.columnIds.length) return batch;
  return { rowCount: batch.rowCount, columns: batch.columns.slice(0, plan.columnIds.length) };
}

function seqsOf({ plan }: LiveProgram, batch: ScanBatch): Vector {
  const index = plan.columnIds.indexOf(SEQ_COLUMN_ID);
  const seqs = batch.columns[index < 0 ? plan.columnIds.length : index];
  assert(seqs !== undefined, "snapshot: scan result lacks the seq column");
  return seqs;
}

function seqAt(seqs: Vector, row: number): Seq {
  if (seqs.kind === "f64") return (seqs.values[row] ?? 0) as Seq;
  const seq = valueAt(seqs, row);
  assert(typeof seq === "number", "snapshot: seq column contains a value that is not a number");
  return seq as Seq;
}

/** Counts the seqs less than or equal to `seq`. The seqs must ascend. */
function countUpTo(seqs: Vector, seq: Seq): number {
  let count = 0;
  while (count < seqs.length && seqAt(seqs, count) <= seq) count += 1;
  return count;
}

function allOf(rowCount: number): Selection {
  return { rows: Uint32Array.from({ length: rowCount }, (_, row) => row), count: rowCount };
}

function firstRows({ columns, rowCount }: ShapedRows, count: number): ShapedRows {
  if (count === rowCount) return { columns, rowCount };
  return { columns: columns.map((column) => slice(column, 0, count)), rowCount: count };
}

function subselection({ rows, count }: Selection, start: number, end: number): Selection {
  const part = rows.subarray(start, Math.min(end, count));
  return { rows: part, count: part.length };
}
