/**
 * Writes the changes of a statement. A small number of changes is written in the tick in which the
 * rows were read. A larger number takes several ticks. Between these ticks, other statements run,
 * and the statement may be cancelled.
 *
 *     few       read ──► commit                          one tick, at the newest applied state
 *     many      read ─┬► stage ─┬► settle ──► commit      read at the state of the first time slice
 *                     └─────────┘
 *     in a transaction: read all ──► stage in it
 *
 * - A statement makes either a single commit or none: rows staged in the store are invisible
 *   before the commit.
 * - If another statement changes a row after it was read and before the commit,
 *   SERIALIZATION_FAILURE is raised, and the caller runs the whole statement again.
 * - An error in RETURNING must prevent all writes, so RETURNING is evaluated before the commit.
 *   `_seq` is known only after the commit, so outputs that read `_seq` are evaluated again.
 * - Uploaded files are listed in the same tick as the commit.
 */
import { defined } from "../../../base/assert.ts";
import { BATCH_ROWS_MAX, FIRST_SLICE_MS_MAX } from "../../../base/limits.ts";
import { settle } from "../../../base/waiting_steps.ts";
import {
  type Commit,
  SHARED_OWNER,
  type StagedCommit,
  type TableWrite,
} from "../../../storage/mod.ts";
import type { Batch, Row, Value } from "../../../types/mod.ts";
import type { TableRuntime } from "../build/table_runtime.ts";
import { type ExecutionContext, writeStoreOf } from "../context/execution_context.ts";
import { ReferenceClaims } from "../context/reference_claims.ts";
import type { StorageGrowth } from "../context/storage_meter.ts";
import { SLICE_OVER } from "../context/time_slice.ts";
import { ownerOf } from "../operators/scan.ts";
import { type Elsewhere, type EvaluationPlace, evaluated, whenThere } from "./evaluation.ts";
import { followAll } from "./followed_references.ts";
import { placeUploads } from "./placed_uploads.ts";
import { requireParents, requireUnbroken, requireUnreferenced, writtenIn } from "./references.ts";
import { type Returning, returnedRows } from "./returning.ts";
import {
  type Applied,
  applyChanges,
  growthOf,
  holdChanges,
  type RowChange,
  releaseKeys,
  requireStageable,
  seqsOf,
  stageChanges,
  writesOf,
} from "./row_changes.ts";
import type { RowGuard } from "./row_guard.ts";

/** The number of changes that are evaluated or staged in one step. */
const ROWS_PER_STEP = 256;

const NO_SEQS: readonly Value[] = [];
const NO_ROWS: readonly Row[] = [];

export interface DmlOutcome {
  /** The number of rows that the statement has affected. */
  readonly rowCount: number;
  readonly applied: Applied;
  /** The rows that RETURNING yields, in order. Each batch is evaluated once, on request. */
  readonly returned: Iterable<Batch> | undefined;
}

/**
 * Runs a statement. Any work that does not fit into this tick is done in later ticks.
 *
 * @param elsewhere The thread that reads the rows and runs the queries of the statement; undefined
 *   if the event loop does so itself.
 * @throws SLICE_OVER
 */
export type DmlProgram = (
  context: ExecutionContext,
  elsewhere?: Elsewhere,
) => DmlOutcome | Promise<DmlOutcome>;

/** Produces the changes of a statement in steps. */
export interface ChangeSource {
  /** Produces the changes of a bounded piece of work. Returns false if no work is left. */
  next(): boolean | Promise<boolean>;
  close(): void;
}

export interface WriterOptions extends EvaluationPlace {
  readonly returning: Returning | undefined;
  readonly guard: RowGuard | undefined;
  /**
   * Whether the statement reads no rows of its target table. If so, concurrent changes to other
   * rows do not affect it.
   */
  readonly isBlind: boolean;
  /** Whether any expression that the statement evaluates contains a query. */
  readonly mayTakeLong: boolean;
}

/**
 * Writes the changes from a source, in this tick if possible.
 * @throws SLICE_OVER
 */
export function writeFrom(
  source: ChangeSource,
  writer: ChangeWriter,
): DmlOutcome | Promise<DmlOutcome> {
  let more: boolean | Promise<boolean>;
  try {
    do more = source.next();
    while (more === true && !writer.isSliceOver);
    if (more !== false || !writer.isShort) {
      writer.requireTurns();
      return writer.writeFurther(source, more);
    }
  } catch (error) {
    source.close();
    throw error;
  }
  source.close();
  return writer.finishNow();
}

export class ChangeWriter {
  readonly #runtime: TableRuntime;
  readonly #context: ExecutionContext;
  readonly #returning: Returning | undefined;
  readonly #guard: RowGuard | undefined;
  readonly #isBlind: boolean;
  readonly #mayTakeLong: boolean;
  readonly #elsewhere: Elsewhere | undefined;
  readonly #wantsSeqs: boolean;
  /**
   * The changes that have not been staged yet, or all changes if they are still needed after
   * staging.
   */
  #changes: RowChange[] = [];
  #rowCount = 0;
  #staged: StagedCommit | undefined;
  /**
   * The number of bytes that the staged changes add to the storage used by their owner; undefined
   * if there is no storage limit.
   */
  #growth: StorageGrowth | undefined;
  readonly #sliceEndMs: number;
  readonly #operations = new Set<TableWrite["operation"]>();
  /** The parent keys that staged rows reference. */
  readonly #claims = new ReferenceClaims();

  constructor(runtime: TableRuntime, options: WriterOptions) {
    const { elsewhere, guard, isBlind, mayTakeLong, returning, context } = options;
    this.#runtime = runtime;
    this.#context = context;
    this.#elsewhere = elsewhere;
    this.#returning = returning;
    this.#guard = guard;
    this.#isBlind = isBlind;
    this.#mayTakeLong = mayTakeLong;
    this.#wantsSeqs = returning?.readsSystemColumns === true;
    this.#sliceEndMs = context.monotonicMs() + FIRST_SLICE_MS_MAX;
    requireStageable(runtime, context);
  }

  /** Whether the changes collected so far can be committed in one tick. */
  get isShort(): boolean {
    return this.#elsewhere === undefined && this.#rowCount <= BATCH_ROWS_MAX;
  }

  /**
   * Whether the time slice is over, so that the remaining changes have to be read in later ticks.
   */
  get isSliceOver(): boolean {
    return this.#context.monotonicMs() >= this.#sliceEndMs;
  }

  /**
   * Throws if the statement needs more ticks but may still be restarted in a reader. If the
   * statement continued on the event loop, any query in it would run to its end there.
   *
   * @throws SLICE_OVER
   */
  requireTurns(): void {
    const { mayLeave, parts: statementParts } = this.#context;
    if (mayLeave && (this.#mayTakeLong || statementParts !== undefined)) throw SLICE_OVER;
  }

  /**
   * Tests changes against policies, and adds them.
   * @throws {DatabaseError} PERMISSION_DENIED
   */
  add(changes: readonly RowChange[]): void | Promise<void> {
    const place = { context: this.#context, elsewhere: this.#elsewhere };
    return whenThere(this.#guard?.require(changes, place), () => this.#take(changes));
  }

  #take(changes: readonly RowChange[]): void {
    this.#rowCount += changes.length;
    this.#context.effort.beginRows();
    if (this.#returning !== undefined) this.#context.checkResultRows(this.#rowCount);
    if (this.#staged === undefined || this.#keepsChanges) {
      for (const change of changes) this.#changes.push(change);
    }
    if (this.#staged !== undefined) this.#stage(this.#staged, changes);
  }

  /** Whether changes are still needed after they have been staged. */
  get #keepsChanges(): boolean {
    return this.#returning !== undefined || this.#context.uploads !== undefined;
  }

  /**
   * Whether {@linkcode addColumns} may be used, because no later step needs the changes row by
   * row.
   */
  get takesColumns(): boolean {
    const isRead =
      this.#keepsChanges ||
      this.#guard !== undefined ||
      this.#context.storageMeter !== undefined ||
      this.#runtime.isByRow;
    return this.#staged !== undefined && !isRead;
  }

  /**
   * Adds changes of a single kind: all of them insert rows, all update rows, or all delete rows.
   *
   * @param rowCount The number of affected rows, some of which may stay unchanged.
   */
  addColumns(
    operation: TableWrite["operation"],
    columns: Pick<TableWrite, "replacedSeqs"> & { readonly batch: Batch },
    rowCount: number = columns.batch.rowCount,
  ): void {
    const { table } = this.#runtime;
    this.#context.requireUnaltered(table);
    this.#operations.add(operation);
    this.#rowCount += rowCount;
    const owner = ownerOf(this.#context.principal, table);
    const write = { tableId: table.tableId, owner, operation, rows: NO_ROWS, ...columns };
    defined(this.#staged, "change writer: columns added without a staged commit").add(write);
  }

  /**
   * Writes the remaining changes over many ticks. The statement reads all rows as of the current
   * tick.
   *
   * @param first The most recent result of the source's `next`. It indicates whether the source
   *   may have more changes.
   * @throws {DatabaseError} SERIALIZATION_FAILURE if other statements changed the rows or altered
   *   the table.
   */
  async writeFurther(source: ChangeSource, first: boolean | Promise<boolean>): Promise<DmlOutcome> {
    const context = this.#context;
    const { table } = this.#runtime;
    context.stay();
    try {
      // Changes are staged in the order in which they were read. If nothing has to wait, staging
      // begins in the same tick as reading.
      let more = first instanceof Promise ? await first : first;
      // In a transaction, changes are staged only after all rows have been read, because the
      // statement must not read its own writes.
      if (context.transaction === undefined) await this.#beginStaging();
      for (; more; more = await source.next()) {
        await context.pause();
        context.requireUnaltered(table);
      }
    } finally {
      source.close();
    }
    const returned = await this.#returned(NO_SEQS);
    if (context.uploads !== undefined) placeUploads(this.#runtime, this.#changes, context);
    const applied =
      context.transaction === undefined ? await this.#commit() : await this.#stageInTransaction();
    return { rowCount: this.#rowCount, applied, returned: await this.#renewed(returned, applied) };
  }

  async #beginStaging(): Promise<void> {
    const context = this.#context;
    const wantsSeqs = this.#wantsSeqs;
    const { snapshotSeq } = context;
    const staged = writeStoreOf(context).stage(
      this.#isBlind ? { wantsSeqs } : { wantsSeqs, snapshotSeq },
    );
    this.#staged = staged;
    for (const part of parts(this.#changes)) {
      await context.pause();
      this.#stage(staged, part);
    }
    if (!this.#keepsChanges) this.#changes = [];
  }

  /**
   * Commits in the current tick.
   *
   * @throws SLICE_OVER
   * @throws {DatabaseError} The errors of `applyChanges`.
   */
  finishNow(): DmlOutcome | Promise<DmlOutcome> {
    const changes = this.#changes;
    const returning = this.#returning;
    const context = this.#context;
    let returned = returning?.evaluation.evaluate(
      returnedRows(returning, changes, NO_SEQS),
      context,
    );
    // From here on, the statement stays in this thread, because nothing may interrupt a commit.
    // The changes of a WITH part are merely held back, so later parts may still move to a reader.
    if (context.parts === undefined) context.stay();
    if (context.uploads !== undefined) placeUploads(this.#runtime, changes, context);
    const made = applyChanges(this.#runtime, changes, { context, wantsSeqs: this.#wantsSeqs });
    return whenThere(made, (applied) => {
      if (this.#wantsSeqs && returning !== undefined && returned !== undefined) {
        const rows = returnedRows(returning, changes, applied.seqs);
        returned = returning.renew(returned, rows, context);
      }
      return { rowCount: changes.length, applied, returned: returned && [returned] };
    });
  }

  async #commit(): Promise<Applied> {
    const context = this.#context;
    const staged = defined(this.#staged, "change writer: commit without staged rows");
    // The staged rows must be settled even if nothing is written, because the rows that were read
    // may have been rolled back.
    while (!staged.settle()) await context.pause();
    const commit = staged.rowCount > 0 ? this.#commitNow(staged) : undefined;
    return { commit, seqs: this.#wantsSeqs ? seqsOf(this.#changes, commit?.seqs) : NO_SEQS };
  }

  #commitNow(staged: StagedCommit): Commit {
    const context = this.#context;
    const { storageMeter: meter, uploads } = context;
    context.requireUnaltered(this.#runtime.table);
    requireUnbroken(this.#claims, context);
    requireUnreferenced(this.#runtime.table, this.#operations, context);
    const make = (): Commit => {
      uploads?.list(context.call.clockMicros() / 1000);
      return staged.commit();
    };
    const growth = this.#growth;
    if (meter === undefined || growth === undefined) return make();
    const fileBytes = uploads?.placedBytes ?? 0;
    const bytes = growth.bytes + fileBytes;
    return meter.charge([{ ...growth, bytes, hasFiles: fileBytes > 0 }], make);
  }

  async #stageInTransaction(): Promise<Applied> {
    const runtime = this.#runtime;
    const context = this.#context;
    if (context.parts !== undefined) return holdChanges(runtime, this.#changes, context);
    const seqs: Value[] = [];
    for (const part of parts(this.#changes)) {
      await context.pause();
      context.requireUnaltered(runtime.table);
      releaseKeys(runtime, part, context);
    }
    for (const part of parts(this.#changes)) {
      await context.pause();
      context.requireUnaltered(runtime.table);
      seqs.push(...stageChanges(runtime, part, context));
    }
    await settle(followAll(runtime, this.#changes, context));
    return { commit: undefined, seqs };
  }

  /**
   * Returns the rows that RETURNING yields; undefined if the statement has no RETURNING.
   * @throws {DatabaseError}
   */
  async #returned(seqs: readonly Value[]): Promise<readonly Batch[] | undefined> {
    const returning = this.#returning;
    if (returning === undefined) return undefined;
    const batches: Batch[] = [];
    const place = { context: this.#context, elsewhere: this.#elsewhere };
    for (const rows of this.#partsReturned(returning, seqs)) {
      await this.#context.pause();
      this.#context.effort.beginRows();
      batches.push(await evaluated(returning.evaluation, rows, place));
    }
    return batches;
  }

  /** Computes the rows of RETURNING again, now that the written rows have their seqs. */
  async #renewed(
    first: readonly Batch[] | undefined,
    { seqs }: Applied,
  ): Promise<Iterable<Batch> | undefined> {
    const returning = this.#returning;
    if (returning === undefined || first === undefined || !this.#wantsSeqs) return first;
    if (this.#elsewhere !== undefined && returning.readsAgain) return await this.#returned(seqs);
    return this.#renewedHere(returning, first, seqs);
  }

  *#renewedHere(
    returning: Returning,
    first: readonly Batch[],
    seqs: readonly Value[],
  ): Generator<Batch> {
    let index = 0;
    for (const rows of this.#partsReturned(returning, seqs)) {
      const known = defined(
        first[index],
        "change writer: RETURNING was divided into different batches on retry",
      );
      yield returning.renew(known, rows, this.#context);
      index += 1;
    }
  }

  *#partsReturned(returning: Returning, seqs: readonly Value[]): Generator<Batch> {
    let from = 0;
    for (const part of parts(this.#changes)) {
      yield returnedRows(returning, part, seqs.slice(from, from + part.length));
      from += part.length;
    }
  }

  #stage(staged: StagedCommit, changes: readonly RowChange[]): void {
    this.#context.requireUnaltered(this.#runtime.table);
    this.#requireParents(changes);
    for (const { operation } of changes) this.#operations.add(operation);
    for (const write of writesOf(this.#runtime, changes, this.#context)) staged.add(write);
    this.#measure(changes);
  }

  #requireParents(changes: readonly RowChange[]): void {
    const { table } = this.#runtime;
    if (table.foreignKeys === undefined) return;
    const context = this.#context;
    const owner = ownerOf(context.principal, table);
    requireParents(table, writtenIn(changes), { claims: this.#claims, context, owner });
  }

  #measure(changes: readonly RowChange[]): void {
    const context = this.#context;
    const meter = context.storageMeter;
    if (meter === undefined) return;
    const growth = growthOf(this.#runtime, changes, { context });
    if (growth.owner === SHARED_OWNER) return;
    this.#growth = { ...growth, bytes: growth.bytes + (this.#growth?.bytes ?? 0) };
    // Other changes made by the statement may free space, but never more than the owner uses now.
    if (this.#isBlind) meter.requireBelow(this.#growth.bytes);
  }
}

/** Divides changes into portions, each of which is evaluated or staged between two pauses. */
function* parts(changes: readonly RowChange[]): Iterable<readonly RowChange[]> {
  for (let from = 0; from < changes.length; from += ROWS_PER_STEP) {
    yield changes.slice(from, from + ROWS_PER_STEP);
  }
}
