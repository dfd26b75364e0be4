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
import { assert, defined } from "../../../base/assert.ts";
import { BATCH_ROWS_MAX, TURN_MS_MAX } from "../../../base/limits.ts";
import {
  type Commit,
  SHARED_OWNER,
  type StagedCommit,
  type TableWrite,
} from "../../../storage/mod.ts";
import type { Batch, Row, Value } from "../../../types/mod.ts";
import type { TableRuntime } from "../build/table_runtime.ts";
import { ownerOf } from "../operators/scan.ts";
import { type Run, writeStoreOf } from "../run/run.ts";
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
const NO_ROWS: readonly Row[] = [];

export interface DmlOutcome {
  /** Rows affected. */
  readonly rowCount: number;
  readonly applied: Applied;
  /** The rows of RETURNING, in order; each batch is evaluated once, when it is asked for. */
  readonly returned: Iterable<Batch> | undefined;
}

/** Rows that a statement reads: from its own operators, or as they come from elsewhere. */
export interface ReadRows {
  next(): Batch | undefined | Promise<Batch | undefined>;
  close(): void;
}

/**
 * Runs a statement; what takes more than this turn comes in later ones.
 *
 * @param read What it reads instead of the rows of its own plan.
 * @throws TURN_OVER
 */
export type DmlProgram = (run: Run, read?: ReadRows) => DmlOutcome | Promise<DmlOutcome>;

/** Where changes come from. */
export interface ChangeSource {
  /** Hands on what a bounded piece of work yields. Returns false at the end. */
  next(): boolean | Promise<boolean>;
  close(): void;
}

export interface WriterOptions {
  readonly run: Run;
  readonly returning: Returning | undefined;
  /** It reads nothing of the table that it writes: what happens to other rows is no matter. */
  readonly isBlind: boolean;
}

/** Writes what a source yields; in this turn, if that is enough. */
export function writeFrom(
  source: ChangeSource,
  writer: ChangeWriter,
): DmlOutcome | Promise<DmlOutcome> {
  let more: boolean | Promise<boolean>;
  try {
    do more = source.next();
    while (more === true && !writer.isTurnOver);
  } catch (error) {
    source.close();
    throw error;
  }
  if (more !== false || !writer.isShort) return writer.writeFurther(source, more);
  source.close();
  return writer.finishNow();
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
  readonly #turnEndMs: number;

  constructor(runtime: TableRuntime, { isBlind, returning, run }: WriterOptions) {
    this.#runtime = runtime;
    this.#run = run;
    this.#returning = returning;
    this.#isBlind = isBlind;
    this.#wantsSeqs = returning?.readsSystemColumns === true;
    this.#turnEndMs = run.monotonicMs() + TURN_MS_MAX;
    requireStageable(runtime, run);
  }

  /** Whether what was added so far can be committed in one turn. */
  get isShort(): boolean {
    return this.#mustBeNow || this.#rowCount <= BATCH_ROWS_MAX;
  }

  /** Whether the rest is to be read in other turns. */
  get isTurnOver(): boolean {
    return !this.#mustBeNow && this.#run.monotonicMs() >= this.#turnEndMs;
  }

  /** Files are listed in the turn of their commit. */
  get #mustBeNow(): boolean {
    return this.#run.uploads !== undefined;
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

  /** Whether changes are to be given by {@linkcode addColumns}: nobody needs them row by row. */
  get takesColumns(): boolean {
    const isRead = this.#returning !== undefined || this.#run.storageMeter !== undefined;
    return this.#staged !== undefined && !isRead;
  }

  /**
   * Adds changes of one kind.
   *
   * @param rowCount Rows affected; some of them may stay as they are.
   */
  addColumns(
    operation: TableWrite["operation"],
    columns: Pick<TableWrite, "replacedSeqs"> & { readonly batch: Batch },
    rowCount: number = columns.batch.rowCount,
  ): void {
    const { table } = this.#runtime;
    this.#run.requireUnaltered(table);
    this.#rowCount += rowCount;
    const owner = ownerOf(this.#run.principal, table);
    const write = { tableId: table.tableId, owner, operation, rows: NO_ROWS, ...columns };
    defined(this.#staged, "columns are staged").add(write);
  }

  /**
   * Goes on over many turns, as if all rows were read in this one.
   *
   * @param first Whether the source may have more: what its `next` returned last.
   * @throws {DatabaseError} SERIALIZATION_FAILURE when others changed or altered what it writes.
   */
  async writeFurther(source: ChangeSource, first: boolean | Promise<boolean>): Promise<DmlOutcome> {
    const run = this.#run;
    const { table } = this.#runtime;
    run.stay();
    try {
      // A transaction must not read what this very statement writes, so that comes at the end.
      if (run.transaction === undefined) await this.#beginStaging();
      for (let more = first; await more; more = source.next()) {
        await run.pause();
        run.requireUnaltered(table);
      }
    } finally {
      source.close();
    }
    return run.transaction === undefined ? await this.#commit() : await this.#stageInTransaction();
  }

  async #beginStaging(): Promise<void> {
    const run = this.#run;
    const wantsSeqs = this.#wantsSeqs;
    const { snapshotSeq } = run;
    const staged = writeStoreOf(run).stage(
      this.#isBlind ? { wantsSeqs } : { wantsSeqs, snapshotSeq },
    );
    this.#staged = staged;
    const changes = this.#changes;
    this.#changes = [];
    for (const part of parts(changes)) {
      await run.pause();
      this.#stage(staged, part);
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

  async #commit(): Promise<DmlOutcome> {
    const run = this.#run;
    const staged = defined(this.#staged, "rows are staged before they are committed");
    let commit: Commit | undefined;
    // Also when there is nothing to write: what was read may have been taken back.
    while (!staged.settle()) await run.pause();
    if (staged.rowCount > 0) {
      run.requireUnaltered(this.#runtime.table);
      const growth = this.#growth;
      const meter = run.storageMeter;
      commit =
        meter === undefined || growth === undefined
          ? staged.commit()
          : meter.charge([growth], () => staged.commit());
    }
    const seqs = this.#wantsSeqs ? seqsOf(this.#changes, commit?.seqs) : NO_SEQS;
    return this.#outcome({ commit, seqs });
  }

  async #stageInTransaction(): Promise<DmlOutcome> {
    const runtime = this.#runtime;
    const run = this.#run;
    if (this.#returning !== undefined) {
      for (const part of parts(this.#changes)) {
        await run.pause();
        this.#returned.push(this.#evaluated(part, NO_SEQS));
      }
    }
    const seqs: Value[] = [];
    for (const part of parts(this.#changes)) {
      await run.pause();
      run.requireUnaltered(runtime.table);
      seqs.push(...stageChanges(runtime, part, run));
    }
    return this.#outcome({ commit: undefined, seqs });
  }

  #outcome(applied: Applied): DmlOutcome {
    const rowCount = this.#rowCount;
    if (this.#returning === undefined) return { rowCount, applied, returned: undefined };
    const returned = this.#wantsSeqs ? this.#evaluatedWith(applied.seqs) : this.#returned;
    return { rowCount, applied, returned };
  }

  *#evaluatedWith(seqs: readonly Value[]): Iterable<Batch> {
    let from = 0;
    for (const part of parts(this.#changes)) {
      yield this.#evaluated(part, seqs.slice(from, from + part.length));
      from += part.length;
    }
  }

  #stage(staged: StagedCommit, changes: readonly RowChange[]): void {
    this.#run.requireUnaltered(this.#runtime.table);
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

/** Rows that are evaluated or staged between two pauses. */
function* parts(changes: readonly RowChange[]): Iterable<readonly RowChange[]> {
  for (let from = 0; from < changes.length; from += ROWS_PER_STEP) {
    yield changes.slice(from, from + ROWS_PER_STEP);
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
