/**
 * What happened to the result of a live query since a position, for a client that resumes.
 *
 *     all      every version above the position, in order. One whose predecessor the client may
 *              hold (or that has none) is a row of a batch; one that follows another of this very
 *              replay, and each that takes a row away, is a change in its place.
 *     latest   of each key only its newest version: a row, or one delete if the client may hold it.
 *
 * No set of keys is remembered: `prev` says whether a predecessor was part of the replay, and what
 * a key was at the position is found by walking back along `prev`.
 * Invariant: what is handed out ascends by seq.
 */
import { assert } from "../base/assert.ts";
import type { Seq } from "../base/seq.ts";
import type { CellObject } from "../protocol/mod.ts";
import type { Store } from "../storage/mod.ts";
import { type Budget, READ_ROWS_MAX } from "./budget.ts";
import { FrameBudget } from "./frame_budget.ts";
import { LatestChanges } from "./latest_changes.ts";
import { resumeExpired } from "./live_errors.ts";
import type { LiveChange, LiveProgram } from "./live_program.ts";
import type { BatchStep, LoadReader, LoadStep } from "./load_reader.ts";
import { draftFrom } from "./messages.ts";
import type { RecentReplays, ReplayStart } from "./recent_replays.ts";
import { RowPage } from "./row_page.ts";
import type { ReplayMode } from "./subscribe_options.ts";

/** Rows of a batch that was made for another, for one unit: they are only handed to a socket. */
const SHARED_PER_UNIT = 4;

export interface ReplayOptions {
  readonly store: Store;
  readonly program: () => LiveProgram;
  readonly mode: ReplayMode;
  /** Exclusive: what the client has seen. */
  readonly position: Seq;
  /** Inclusive: where the replay ends. */
  readonly boundary: Seq;
  readonly batchSize: number;
  readonly frameBytesMax: number;
  /** `change` messages after which the loading phase closes; the rest follows as changes. */
  readonly changesMax: number;
  /** What others have replayed of late. */
  readonly recent: RecentReplays;
}

export class ReplayReader implements LoadReader {
  readonly #options: ReplayOptions;
  readonly #frame: FrameBudget;
  /** Everything up to here has been read. */
  #readSeq: Seq;
  /** Everything up to here waits in `#rows` or was handed out; up to `#sentSeq`, the latter. */
  #takenSeq: Seq;
  #sentSeq: Seq;
  /** Read and not yet handed out: those from `#ahead[#aheadStart]` on. */
  #ahead: readonly LiveChange[] = [];
  #aheadStart = 0;
  #rows: CellObject[] = [];
  readonly #latest = new LatestChanges();
  /** Versions that the open request still pays for. */
  #credit: number;
  #changesSent = 0;
  /** Steps that were handed out. */
  #stepCount = 0;

  constructor(options: ReplayOptions) {
    assert(options.position <= options.boundary, "a replay ends at or after its position");
    this.#options = options;
    this.#frame = new FrameBudget(options.frameBytesMax);
    this.#readSeq = options.position;
    this.#takenSeq = options.position;
    this.#sentSeq = options.position;
    this.#credit = options.batchSize;
  }

  next(budget: Budget): LoadStep | undefined {
    const isFirst = this.#stepCount === 0 && this.#options.mode === "all";
    const known = isFirst ? this.#known(budget) : undefined;
    const step = known ?? this.#next(budget);
    if (step === undefined) return undefined;
    this.#stepCount += 1;
    const isNew = isFirst && known === undefined && step.kind === "batch" && !step.isLast;
    return isNew ? this.#options.recent.keep(this.#start(), step) : step;
  }

  #next(budget: Budget): LoadStep | undefined {
    for (;;) {
      const change = this.#ahead[this.#aheadStart];
      if (change === undefined) {
        if (this.#readSeq === this.#options.boundary) return this.#close(this.#options.boundary);
        if (budget.isSpent) return undefined;
        this.#read(budget);
      } else if (this.#isRow(change)) {
        const { row } = change;
        assert(row !== undefined, "a batch row is a row");
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

  /** The first batch, if another replay has it: this one goes on behind it. */
  #known(budget: Budget): BatchStep | undefined {
    // Who has begun to read goes on.
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

  /** No scan is open between two steps. */
  close(): void {}

  #isRow(change: LiveChange): boolean {
    if (change.type === "delete") return false;
    return this.#options.mode === "latest" || change.prev <= this.#options.position;
  }

  /** Net effects cannot go on as changes: what they skipped may have been between two matches. */
  #isLongReplay(): boolean {
    return this.#options.mode === "all" && this.#changesSent >= this.#options.changesMax;
  }

  #change(): LoadStep {
    const draft = draftFrom(this.#ahead, this.#aheadStart, {
      countMax: this.#runOfChanges(),
      frameBytesMax: this.#options.frameBytesMax,
      store: this.#options.store,
    });
    this.#changesSent += 1;
    this.#advance(draft.lastSeq, draft.count);
    this.#sentSeq = draft.lastSeq;
    return { kind: "change", draft };
  }

  /** How many of the next versions travel as changes and are paid for. */
  #runOfChanges(): number {
    let count = 0;
    for (let index = this.#aheadStart; count < this.#credit; index += 1) {
      const change = this.#ahead[index];
      if (change === undefined || this.#isRow(change)) break;
      count += 1;
    }
    assert(count > 0, "a change is due");
    return count;
  }

  #advance(seq: Seq, count: number): void {
    assert(seq > this.#takenSeq, "a replay ascends by seq");
    this.#takenSeq = seq;
    this.#aheadStart += count;
    this.#credit -= count;
  }

  #cut(endsRequest: boolean): LoadStep {
    if (endsRequest) this.#credit = this.#options.batchSize;
    // A net effect skips what lay between, so its client is nowhere before it has everything.
    const { mode, position } = this.#options;
    const reachedSeq = mode === "latest" ? position : this.#takenSeq;
    return this.#batch(reachedSeq, { isLast: false, endsRequest });
  }

  #close(lastSeq: Seq): LoadStep {
    return this.#batch(lastSeq, { isLast: true, endsRequest: true });
  }

  #batch(lastSeq: Seq, ends: { isLast: boolean; endsRequest: boolean }): BatchStep {
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
    // Net effects look back as far as the position, the others no further than where they are.
    const neededSeq = mode === "latest" ? position : this.#readSeq;
    if (neededSeq < earliestSeq) throw resumeExpired(earliestSeq);
  }

  #read(budget: Budget): void {
    const { store, boundary, frameBytesMax, mode, position } = this.#options;
    const program = this.#options.program();
    const { tableId, owner } = program.plan;
    this.#checkHistory();
    const rowsMax = this.#latest.isWalking ? 1 : program.rowsAtOnce(READ_ROWS_MAX);
    const scan = store.changes(tableId, {
      owner,
      after: this.#readSeq,
      upTo: boundary,
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
      // What is evaluated is paid for, also what is evaluated again because a walk broke off.
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
      assert(lastSeq > this.#readSeq, "changes ascend by seq");
      this.#ahead = result;
      this.#readSeq = lastSeq;
    } finally {
      scan.close();
    }
  }
}

function rowCountOf({ rows }: BatchStep): number {
  return rows instanceof RowPage ? rows.rowCount : rows.length;
}
