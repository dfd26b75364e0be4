/**
 * Writes the changes of one statement: in the turn in which they were read when they are few, and
 * else over many turns, in which others run and the statement may be ended.
 *
 *     few       read ──► commit                          one turn, at the newest applied state
 *     many      read ─┬► stage ─┬► settle ──► commit      read at the state of the first turn
 *                     └─────────┘
 *     in a transaction: read all ──► stage in it
 *
 * - It is one commit or none: what is staged in the store is seen by nobody before its commit.
 * - A row that somebody else changed between its reading and the commit is SERIALIZATION_FAILURE:
 *   the caller runs the whole statement again.
 * - What RETURNING raises keeps all rows from being written, so it is evaluated before the commit;
 *   `_seq` is known only after, and makes a second pass.
 */
import { assert } from "../../../base/assert.ts";
import { BATCH_ROWS_MAX, TURN_MS_MAX } from "../../../base/limits.ts";
import { type Commit, SHARED_OWNER, type StagedCommit } from "../../../storage/mod.ts";
import type { Batch, Row, Value } from "../../../types/mod.ts";
import type { TableRuntime } from "../build/table_runtime.ts";
import { ownerOf } from "../operators/scan.ts";
import type { Operator } from "../run/operator.ts";
import { type Run, writeStoreOf } from "../run/run.ts";
import type { Steps, WaitingSteps } from "../run/step_turns.ts";
import type { StorageGrowth } from "../run/storage_meter.ts";
import { type Returning, returnRows } from "./returning.ts";
import {
  type Applied,
  applyChanges,
  growthOf,
  type RowChange,
  requireStageable,
  seqsOf,
  stageChanges,
  writesOf,
} from "./row_changes.ts";

/** Changes that are evaluated or staged at a step. */
const ROWS_PER_STEP = 256;

const NO_SEQS: readonly Value[] = [];

export interface DmlOutcome {
  /** Rows affected. */
  readonly rowCount: number;
  readonly applied: Applied;
  /** Of RETURNING, in order. */
  readonly returned: readonly Batch[] | undefined;
}

/** The rest of a statement. A step may yield what is to be waited for before the next. */
export type DmlSteps = WaitingSteps<DmlOutcome>;

/** Rows that a statement reads; they may come from elsewhere. */
export interface ReadRows extends Operator {
  /** Resolves once there is more; undefined while `next` need not be waited for. */
  readonly waiting?: Promise<void> | undefined;
}

/**
 * Runs a statement, if one turn is enough for it.
 *
 * @param read What it reads instead of the rows of its own plan.
 */
export type DmlProgram = (run: Run, read?: ReadRows) => DmlOutcome | LongChange;

/** Where changes come from. */
export interface ChangeSource {
  /** Hands on what a bounded piece of work yields. Returns false at the end. */
  next(): boolean;
  /** A promise to wait for before `next`; undefined if there is nothing to wait for. */
  waiting?(): Promise<void> | undefined;
  close(): void;
}

export interface WriterOptions {
  readonly run: Run;
  readonly returning: Returning | undefined;
  /** It reads nothing of the table that it writes: what happens to other rows is no matter. */
  readonly isBlind: boolean;
}

/** Writes what a source yields; in this turn, if that is enough. */
export function writeFrom(source: ChangeSource, writer: ChangeWriter): DmlOutcome | LongChange {
  // Nothing that is waited for comes in this turn.
  if (source.waiting?.() !== undefined) return new LongChange(source, writer, false);
  let isAtEnd = true;
  try {
    isAtEnd = writer.drainTurn(source);
  } finally {
    if (isAtEnd) source.close();
  }
  if (isAtEnd && writer.isShort) return writer.finishNow();
  return new LongChange(source, writer, isAtEnd);
}

/**
 * A statement that has read, but not staged, what one turn allows. In this turn it is to be gone on
 * with, or to be forgotten.
 */
export class LongChange {
  readonly #source: ChangeSource;
  readonly #writer: ChangeWriter;
  /** Whether all of its rows have been read. */
  readonly isRead: boolean;

  constructor(source: ChangeSource, writer: ChangeWriter, isRead: boolean) {
    this.#source = source;
    this.#writer = writer;
    this.isRead = isRead;
  }

  /** Goes on. */
  steps(): DmlSteps {
    const steps = this.#furtherSteps();
    // In this turn: what the statement has read is the newest state now. And steps that were never
    // begun would not close the source, should the statement be ended before the next turn.
    steps.next();
    return steps;
  }

  forget(): void {
    if (!this.isRead) this.#source.close();
  }

  *#furtherSteps(): DmlSteps {
    const source = this.#source;
    const writer = this.#writer;
    try {
      yield* writer.beginSteps();
      yield true;
      if (!this.isRead) while (writer.takeNext(source)) yield source.waiting?.() ?? true;
    } finally {
      this.forget();
    }
    return yield* writer.finish();
  }
}

export class ChangeWriter {
  readonly #runtime: TableRuntime;
  readonly #run: Run;
  readonly #returning: Returning | undefined;
  readonly #isBlind: boolean;
  readonly #wantsSeqs: boolean;
  /** Not staged yet; all of them where they are needed again. */
  #changes: RowChange[] = [];
  #rowCount = 0;
  #staged: StagedCommit | undefined;
  /** The bytes that the staged changes add for their owner, if there is a limit. */
  #growth: StorageGrowth | undefined;
  readonly #returned: Batch[] = [];

  constructor(runtime: TableRuntime, { isBlind, returning, run }: WriterOptions) {
    this.#runtime = runtime;
    this.#run = run;
    this.#returning = returning;
    this.#isBlind = isBlind;
    this.#wantsSeqs = returning?.readsSystemColumns === true;
  }

  /** Whether what was added so far can be committed in one turn. */
  get isShort(): boolean {
    return this.#mustBeNow || this.#rowCount <= BATCH_ROWS_MAX;
  }

  /** Files are listed in the turn of their commit. */
  get #mustBeNow(): boolean {
    return this.#run.uploads !== undefined;
  }

  /** Takes what a source yields until the turn is over. Returns whether that was all. */
  drainTurn(source: ChangeSource): boolean {
    const run = this.#run;
    const endMs = run.monotonicMs() + TURN_MS_MAX;
    for (;;) {
      if (!source.next()) return true;
      if (this.#mustBeNow) continue;
      if (!this.isShort || run.monotonicMs() >= endMs) return false;
    }
  }

  add(changes: readonly RowChange[]): void {
    this.#rowCount += changes.length;
    this.#run.effort.beginRows();
    if (this.#returning !== undefined) this.#run.checkResultRows(this.#rowCount);
    if (this.#staged === undefined) {
      for (const change of changes) this.#changes.push(change);
    } else {
      this.#stage(this.#staged, changes);
    }
  }

  /**
   * Takes what a source yields next, in any turn but the first. Returns whether there may be more.
   *
   * @throws {DatabaseError} SERIALIZATION_FAILURE when the table was altered or dropped meanwhile.
   */
  takeNext(source: ChangeSource): boolean {
    this.#run.requireUnaltered(this.#runtime.table);
    return source.next();
  }

  /** From now on changes are written over many turns, as if all were read in this one. */
  *beginSteps(): Steps<void> {
    const { snapshotSeq, transaction } = this.#run;
    const store = writeStoreOf(this.#run);
    // A transaction must not read what this very statement writes, so that comes at the end.
    if (transaction !== undefined) {
      requireStageable(this.#runtime, this.#run);
      return;
    }
    const wantsSeqs = this.#wantsSeqs;
    this.#staged = store.stage(this.#isBlind ? { wantsSeqs } : { wantsSeqs, snapshotSeq });
    const changes = this.#changes;
    this.#changes = [];
    for (let from = 0; from < changes.length; from += ROWS_PER_STEP) {
      yield true;
      this.#run.requireUnaltered(this.#runtime.table);
      this.#stage(this.#staged, changes.slice(from, from + ROWS_PER_STEP));
    }
  }

  /** Commits in this turn. @throws {DatabaseError} What {@linkcode applyChanges} throws. */
  finishNow(): DmlOutcome {
    const changes = this.#changes;
    const returning = this.#returning;
    const run = this.#run;
    // Nothing may leave a commit in the middle.
    run.stay();
    let returned = returning === undefined ? undefined : [this.#evaluated(changes, NO_SEQS)];
    if (run.uploads !== undefined) placeUploads(this.#runtime, changes, run);
    const applied = applyChanges(this.#runtime, changes, { run, wantsSeqs: this.#wantsSeqs });
    if (this.#wantsSeqs) returned = [this.#evaluated(changes, applied.seqs)];
    return { rowCount: changes.length, applied, returned };
  }

  /** Commits what was staged, or stages in the transaction. */
  *finish(): DmlSteps {
    const staged = this.#staged;
    if (staged === undefined) return yield* this.#stageInTransaction();
    let commit: Commit | undefined;
    // Also when there is nothing to write: what was read may have been taken back.
    while (!staged.settle()) yield true;
    if (staged.rowCount > 0) {
      this.#run.requireUnaltered(this.#runtime.table);
      const growth = this.#growth;
      const meter = this.#run.storageMeter;
      commit =
        meter === undefined || growth === undefined
          ? staged.commit()
          : meter.charge([growth], () => staged.commit());
    }
    const applied: Applied = { commit, seqs: NO_SEQS };
    if (this.#wantsSeqs) yield* this.#evaluateAgain(seqsOf(this.#changes, commit?.seqs));
    return { rowCount: this.#rowCount, applied, returned: this.#answer() };
  }

  *#stageInTransaction(): DmlSteps {
    const runtime = this.#runtime;
    const run = this.#run;
    const changes = this.#changes;
    for (let from = 0; from < changes.length; from += ROWS_PER_STEP) {
      const part = changes.slice(from, from + ROWS_PER_STEP);
      if (this.#returning !== undefined) this.#returned.push(this.#evaluated(part, NO_SEQS));
      yield true;
    }
    const seqs: Value[] = [];
    for (let from = 0; from < changes.length; from += ROWS_PER_STEP) {
      run.requireUnaltered(runtime.table);
      seqs.push(...stageChanges(runtime, changes.slice(from, from + ROWS_PER_STEP), run));
      yield true;
    }
    if (this.#wantsSeqs) yield* this.#evaluateAgain(seqs);
    const applied: Applied = { commit: undefined, seqs };
    return { rowCount: changes.length, applied, returned: this.#answer() };
  }

  *#evaluateAgain(seqs: readonly Value[]): Steps<void> {
    this.#returned.length = 0;
    for (let from = 0; from < this.#changes.length; from += ROWS_PER_STEP) {
      const to = from + ROWS_PER_STEP;
      this.#returned.push(this.#evaluated(this.#changes.slice(from, to), seqs.slice(from, to)));
      yield false;
    }
  }

  #answer(): readonly Batch[] | undefined {
    return this.#returning === undefined ? undefined : this.#returned;
  }

  #stage(staged: StagedCommit, changes: readonly RowChange[]): void {
    if (this.#returning !== undefined) this.#returned.push(this.#evaluated(changes, NO_SEQS));
    if (this.#wantsSeqs) for (const change of changes) this.#changes.push(change);
    for (const write of writesOf(this.#runtime, changes, this.#run)) staged.add(write);
    this.#measure(changes);
  }

  #measure(changes: readonly RowChange[]): void {
    const run = this.#run;
    const meter = run.storageMeter;
    if (meter === undefined) return;
    const growth = growthOf(this.#runtime, changes, { run });
    if (growth.owner === SHARED_OWNER) return;
    this.#growth = { ...growth, bytes: growth.bytes + (this.#growth?.bytes ?? 0) };
    // Other rows of the statement may free room, but never more than the owner uses now.
    if (this.#isBlind) meter.requireBelow(this.#growth.bytes);
  }

  #evaluated(changes: readonly RowChange[], seqs: readonly Value[]): Batch {
    assert(this.#returning !== undefined, "what is evaluated is asked for");
    return returnRows(this.#returning, changes, { run: this.#run, seqs });
  }
}

function placeUploads(runtime: TableRuntime, changes: readonly RowChange[], run: Run): void {
  const rows = changes.flatMap(({ operation, row }) => (operation === "delete" ? [] : [row]));
  const { filePositions, table } = runtime;
  const target = {
    table,
    owner: ownerOf(run.principal, table),
    filePositions,
    keyOf: (row: Row) => runtime.keyOf(row),
  };
  run.uploads?.place(target, rows);
  const fileBytes = run.uploads?.placedBytes ?? 0;
  if (fileBytes > 0 && target.owner !== SHARED_OWNER) {
    run.transaction?.grow(target, fileBytes, true);
  }
}
