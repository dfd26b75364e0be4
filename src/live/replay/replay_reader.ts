/**
 * Replays how the result of a live query has changed since the position from which a client
 * resumes.
 *
 *     all      every version above the position, in order. A version that follows another version
 *              in the same replay is sent as a change, and so is each removal of a row. Any other
 *              version is sent as a row of a batch.
 *     latest   only the newest version of each key: a row, or one delete if the client may have
 *              the row.
 *
 * The reader keeps no set of keys: `prev` shows whether a predecessor was part of the replay, and
 * a walk back along `prev` finds the state of a key at the position. Invariant: rows and changes
 * are returned in ascending seq order.
 */
import { assert } from "../../base/assert.ts";
import type { Seq } from "../../base/seq.ts";
import type { WireRow } from "../../protocol/mod.ts";
import type { Store } from "../../storage/mod.ts";
import { resumeExpired } from "../contract/live_errors.ts";
import { pendingChangeFrom } from "../delivery/messages.ts";
import type { LiveChange, LiveProgram } from "../program/live_program.ts";
import { FrameBudget } from "../rows/frame_budget.ts";
import { RowPage } from "../rows/row_page.ts";
import { READ_ROWS_MAX, type TickBudget } from "../scheduler/tick_budget.ts";
import type { ChangeStep, LoadReader, PositionedBatch } from "../subscription/load_reader.ts";
import type { ReplayMode } from "../subscription/subscribe_options.ts";
import { LatestChanges } from "./latest_changes.ts";
import type { RecentReplays, ReplayStart } from "./recent_replays.ts";

/**
 * How many rows of a shared batch cost one budget unit. Such rows are cheap, because their
 * messages already exist.
 */
const SHARED_PER_UNIT = 4;

export interface ReplayOptions {
  readonly store: Store;
  readonly program: () => LiveProgram;
  readonly mode: ReplayMode;
  /** The exclusive start of the replay: the client has received everything up to this seq. */
  readonly position: Seq;
  /** The last seq of the replay (inclusive). */
  readonly boundary: Seq;
  readonly batchSize: number;
  readonly frameBytesMax: number;
  /**
   * How many `change` messages may be sent before the loading phase ends. The client receives the
   * rest as ordinary changes.
   */
  readonly changesMax: number;
  /** Recent replays for other subscriptions to the same query. */
  readonly recent: RecentReplays;
}

type ReplayStep = PositionedBatch | ChangeStep;

export class ReplayReader implements LoadReader {
  readonly #options: ReplayOptions;
  readonly #frame: FrameBudget;
  /** The seq up to which the replay has read. */
  #readSeq: Seq;
  /**
   * The seq up to which versions have been turned into rows or changes. The changes up to
   * `#sentSeq` have already been returned.
   */
  #takenSeq: Seq;
  #sentSeq: Seq;
  /**
   * The changes that were read ahead. Those before index `#aheadStart` have already been returned.
   */
  #ahead: readonly LiveChange[] = [];
  #aheadStart = 0;
  #rows: WireRow[] = [];
  readonly #latest = new LatestChanges();
  /** How many more versions may be sent for the current request. */
  #credit: number;
  #changesSent = 0;
  /** The number of steps returned so far. */
  #stepCount = 0;

  constructor(options: ReplayOptions) {
    assert(options.position <= options.boundary, "replay: start position is above the boundary");
    this.#options = options;
    this.#frame = new FrameBudget(options.frameBytesMax);
    this.#readSeq = options.position;
    this.#takenSeq = options.position;
    this.#sentSeq = options.position;
    this.#credit = options.batchSize;
  }

  next(budget: TickBudget): ReplayStep | undefined {
    const isFirst = this.#stepCount === 0 && this.#options.mode === "all";
    const known = isFirst ? this.#known(budget) : undefined;
    const step = known ?? this.#next(budget);
    if (step === undefined) return undefined;
    this.#stepCount += 1;
    const isNew = isFirst && known === undefined && step.kind === "batch" && !step.isLast;
    return isNew ? this.#options.recent.keep(this.#start(), step) : step;
  }

  #next(budget: TickBudget): ReplayStep | undefined {
    for (;;) {
      const change = this.#ahead[this.#aheadStart];
      if (change === undefined) {
        if (this.#readSeq === this.#options.boundary) return this.#close(this.#options.boundary);
        if (budget.isSpent) return undefined;
        this.#read(budget);
      } else if (this.#isRow(change)) {
        const { row } = change;
        assert(row !== undefined, "replay: batch lacks the row at the current index");
        if (this.#credit === 0 || !this.#frame.admits(row)) return this.#cut(true);
        this.#rows.push(row);
        this.#advance(change.seq, 1);
      } else if (this.#isLongReplay()) {
        return this.#close(this.#takenSeq);
      } else if (this.#credit === 0) {
        return this.#cut(true);
      } else if (this.#rows.length > 0) {
        return this.#cut(false);
      } else {
        return this.#change();
      }
    }
  }

  #start(): ReplayStart {
    const { batchSize, boundary, position, program } = this.#options;
    return { program: program(), position, batchSize, boundary };
  }

  /**
   * Returns the first batch if another replay has recently built it. In that case, this replay
   * continues after that batch.
   */
  #known(budget: TickBudget): PositionedBatch | undefined {
    // Once a replay has begun to read, it does not switch to a shared batch.
    if (this.#readSeq !== this.#options.position) return undefined;
    const step = this.#options.recent.find(this.#start());
    if (step === undefined) return undefined;
    this.#checkHistory();
    const rowCount = rowCountOf(step);
    budget.spend(Math.ceil(rowCount / SHARED_PER_UNIT));
    if (!step.endsRequest) this.#credit -= rowCount;
    this.#readSeq = step.lastSeq;
    this.#takenSeq = step.lastSeq;
    this.#sentSeq = step.lastSeq;
    return step;
  }

  release(): void {
    this.#credit += this.#rows.length;
    this.#rows = [];
    this.#frame.clear();
    this.#takenSeq = this.#sentSeq;
    this.#ahead = [];
    this.#aheadStart = 0;
    this.#readSeq = this.#takenSeq;
  }

  /** There is nothing to close, because no scan stays open between two steps. */
  close(): void {}

  #isRow(change: LiveChange): boolean {
    if (change.type === "delete") return false;
    return this.#options.mode === "latest" || change.prev <= this.#options.position;
  }

  /**
   * Returns whether the rest of the replay is to be delivered as ordinary changes. This is not
   * possible in a "latest" replay, because it may have skipped a version between two matching
   * versions.
   */
  #isLongReplay(): boolean {
    return this.#options.mode === "all" && this.#changesSent >= this.#options.changesMax;
  }

  #change(): ReplayStep {
    const pending = pendingChangeFrom(this.#ahead, this.#aheadStart, {
      countMax: this.#runOfChanges(),
      frameBytesMax: this.#options.frameBytesMax,
      store: this.#options.store,
    });
    this.#changesSent += 1;
    this.#advance(pending.lastSeq, pending.count);
    this.#sentSeq = pending.lastSeq;
    return { kind: "change", pending };
  }

  /**
   * Returns how many of the next versions are to be sent as changes within the current request.
   */
  #runOfChanges(): number {
    let count = 0;
    for (let index = this.#aheadStart; count < this.#credit; index += 1) {
      const change = this.#ahead[index];
      if (change === undefined || this.#isRow(change)) break;
      count += 1;
    }
    assert(count > 0, "replay: no change is due for delivery");
    return count;
  }

  #advance(seq: Seq, count: number): void {
    assert(seq > this.#takenSeq, "replay: delivered changes are not in ascending order of seq");
    this.#takenSeq = seq;
    this.#aheadStart += count;
    this.#credit -= count;
  }

  #cut(endsRequest: boolean): ReplayStep {
    if (endsRequest) this.#credit = this.#options.batchSize;
    // A "latest" replay skips intermediate versions, so the client has no valid position until it
    // has received everything.
    const { mode, position } = this.#options;
    const reachedSeq = mode === "latest" ? position : this.#takenSeq;
    return this.#batch(reachedSeq, { isLast: false, endsRequest });
  }

  #close(lastSeq: Seq): ReplayStep {
    return this.#batch(lastSeq, { isLast: true, endsRequest: true });
  }

  #batch(lastSeq: Seq, ends: { isLast: boolean; endsRequest: boolean }): PositionedBatch {
    const rows = this.#rows;
    this.#rows = [];
    this.#frame.clear();
    this.#sentSeq = this.#takenSeq;
    return { kind: "batch", rows, lastSeq, ...ends };
  }

  #checkHistory(): void {
    const { mode, position, program, store } = this.#options;
    const { owner, tableId } = program().plan;
    const earliestSeq = store.earliestSeq(tableId, owner);
    // A "latest" replay looks back as far as the client's position. An "all" replay looks back
    // only to the seq up to which it has read.
    const neededSeq = mode === "latest" ? position : this.#readSeq;
    if (neededSeq < earliestSeq) throw resumeExpired(earliestSeq);
  }

  #read(budget: TickBudget): void {
    const { store, boundary, frameBytesMax, mode, position } = this.#options;
    const program = this.#options.program();
    const { tableId, owner } = program.plan;
    this.#checkHistory();
    const rowsMax = this.#latest.isWalking ? 1 : program.rowsAtOnce(READ_ROWS_MAX);
    const scan = store.changes(tableId, {
      owner,
      after: this.#readSeq,
      upTo: boundary,
      ...(mode === "latest" ? { prevsAfter: position } : {}),
      columnIds: program.storedColumnIds,
      batchRows: program.readSize.rowsOf({ rowsMax, frameBytesMax }),
    });
    try {
      const batch = scan.next();
      this.#aheadStart = 0;
      this.#ahead = [];
      if (batch === undefined) {
        this.#readSeq = boundary;
        return;
      }
      // Every evaluation is charged, even if an interrupted walk means that the same batch has to
      // be evaluated again.
      budget.spend(batch.rowCount);
      const reader = { store, program, position, budget };
      const portion =
        mode === "all"
          ? program.changesFrom(batch, 0, {
              sources: program.ownSources,
              filter: program.plan.filter,
              budget,
            })
          : this.#latest.changesFrom(batch, { ...reader, after: this.#readSeq, boundary });
      if (portion.rowCount === 0) return;
      const { result, rowCount } = portion;
      program.readSize.take({ batch, start: 0, end: rowCount }, result, budget);
      const lastSeq = (batch.seqs[rowCount - 1] ?? 0) as Seq;
      assert(lastSeq > this.#readSeq, "replay: changes read are not in ascending order of seq");
      this.#ahead = result;
      this.#readSeq = lastSeq;
    } finally {
      scan.close();
    }
  }
}

function rowCountOf({ rows }: PositionedBatch): number {
  return rows instanceof RowPage ? rows.rowCount : rows.length;
}
