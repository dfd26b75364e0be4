/**
 * Runs a change that causes changes to other rows through ON DELETE or ON UPDATE, and statements
 * with data-modifying WITH parts. The change runs in a transaction of its own, which reads at the
 * newest applied state. A short change begins and commits in one tick, so it never meets a
 * conflict. A long change that meets a conflict is run again; for the last attempt, its tables are
 * closed to other writers. A change that takes longer than a time slice is restarted, and a reader
 * then reads its rows.
 */
import { DatabaseError } from "../../base/errors.ts";
import { BATCH_ROWS_MAX } from "../../base/limits.ts";
import type { Commit } from "../../storage/mod.ts";
import type { DmlOutcome } from "../execute/change/change_writer.ts";
import { checkDeferred } from "../execute/change/followed_references.ts";
import { requireUnbroken } from "../execute/change/references.ts";
import type { RequestLedger } from "../execute/context/request_ledger.ts";
import { SLICE_OVER } from "../execute/context/time_slice.ts";
import { Transaction } from "../execute/context/transaction.ts";
import { Uploads } from "../files/uploads.ts";
import type { SqlEnvironment } from "../ports/environment.ts";
import type { StatementContext } from "../prepare/statement_context.ts";
import type { ReadingPlace } from "../readers/query_readers.ts";
import { READ_HERE } from "../readers/row_stream.ts";

const ATTEMPTS_MAX = 3;

/** A change that has been started, with its context and its outcome. */
interface BegunChange {
  readonly context: StatementContext;
  readonly outcome: DmlOutcome | Promise<DmlOutcome>;
}

/** The place where a change reads its rows. */
export type TogetherPlace =
  | { readonly kind: "here"; readonly mayLeave: boolean }
  | { readonly kind: "reader"; readonly place: ReadingPlace };

export interface TogetherOptions {
  readonly deps: Pick<
    SqlEnvironment,
    "catalog" | "clock" | "limits" | "storageQuota" | "store" | "writeGates"
  >;
  readonly ledger: RequestLedger;
  readonly tableIds: readonly number[];
  readonly uploads: Uploads;
  /** The place where the first attempt of the change reads its rows. */
  readonly first: "here" | "reader";
  /**
   * Whether the statement can be restarted. A COPY cannot be, because its data can be read only
   * once.
   */
  readonly isRepeatable: boolean;
  /** Waits for a reader. Returns undefined if no reader can read the rows of the change. */
  place(): Promise<ReadingPlace | undefined>;
  /**
   * Called when the change has taken longer than a time slice and is about to move to a reader.
   */
  readonly onLong: () => void;
  /** Runs the constraint triggers that were deferred to the commit. */
  readonly runDeferred: (transaction: Transaction) => Promise<void>;
  /** Runs the statement with the definitions and rows that are current in this tick. */
  readonly begin: (transaction: Transaction, at: TogetherPlace) => BegunChange;
}

/**
 * Runs a change, and the changes that its foreign keys cause, as one transaction.
 * @throws {DatabaseError}
 */
export async function changeTogether(options: TogetherOptions): Promise<DmlOutcome> {
  const { ledger, onLong } = options;
  // Triggers may change more tables than the statement names.
  const tableIds = new Set(options.tableIds);
  const noteWritten = (transaction: Transaction): void => {
    for (const tableId of transaction.tableIds) tableIds.add(tableId);
  };
  const { store, writeGates } = options.deps;
  let where: "here" | "reader" | "only here" = options.first;
  for (let attempt = 1; ; ) {
    let open: (() => void) | undefined;
    let place: ReadingPlace | undefined;
    try {
      // Waiting for the reader before closing the gate spares statements that the gate blocks from
      // waiting for the reader as well.
      if (where === "reader") place = await options.place();
      if (attempt === ATTEMPTS_MAX) open = await writeGates.close([...tableIds], ledger);
      return await attempted(
        options,
        place === undefined
          ? { kind: "here", mayLeave: where === "here" }
          : { kind: "reader", place },
        { hasGates: open !== undefined, noteWritten },
      );
    } catch (error) {
      if (error === SLICE_OVER) {
        onLong();
        where = "reader";
        continue;
      }
      if (error === READ_HERE) {
        where = "only here";
        continue;
      }
      const isConflict = error instanceof DatabaseError && error.code === "SERIALIZATION_FAILURE";
      if (!isConflict || attempt === ATTEMPTS_MAX || !options.isRepeatable) throw error;
      attempt += 1;
      // If the change that caused the conflict does not become durable, the conflict disappears.
      await Promise.allSettled([store.durable(store.appliedSeq)]);
    } finally {
      open?.();
      place?.giveBack();
    }
  }
}

/** The conditions under which one attempt at a change runs. */
interface TogetherAttempt {
  /** Whether the tables are closed to all other writers. */
  readonly hasGates: boolean;
  /** Called at the end of the attempt, to record the tables to which it has written. */
  readonly noteWritten: (transaction: Transaction) => void;
}

/**
 * Makes an attempt at a change. A short change reads its rows and commits in the tick of the call.
 */
async function attempted(
  options: TogetherOptions,
  at: TogetherPlace,
  attempt: TogetherAttempt,
): Promise<DmlOutcome> {
  const { clock, limits, storageQuota, store } = options.deps;
  const transaction = new Transaction({
    // A reader thread may read only durable data.
    snapshotSeq: at.kind === "reader" ? store.visibleSeq : store.appliedSeq,
    nowMicros: clock.nowMs() * 1000,
    isReadOnly: false,
    startedAtMs: clock.monotonicMs(),
    timeoutMs: limits.transactionTimeoutMs,
    bytesMax: limits.transactionBytesMax,
    isMetered: storageQuota !== undefined,
  });
  try {
    return await begunIn(transaction, at, { ...options, ...attempt });
  } finally {
    attempt.noteWritten(transaction);
  }
}

/** Runs the statement and the triggers deferred to the commit, and then commits. */
async function begunIn(
  transaction: Transaction,
  at: TogetherPlace,
  options: TogetherOptions & TogetherAttempt,
): Promise<DmlOutcome> {
  const { storageQuota, writeGates } = options.deps;
  const { context, outcome } = options.begin(transaction, at);
  const committing = { context, options, transaction };
  if (outcome instanceof Promise || transaction.hasDeferred) {
    const ended = await outcome;
    await options.runDeferred(transaction);
    // Triggers may have written to tables that were closed to other writers in the meantime.
    const closed = (): boolean => !options.hasGates && writeGates.areClosed(transaction.tableIds);
    while (closed()) await writeGates.opened(transaction.tableIds, options.ledger);
    return await committedLater(ended, committing);
  }
  const isShort = transaction.keyCount <= BATCH_ROWS_MAX && storageQuota === undefined;
  return isShort ? committed(outcome, committing) : await committedLater(outcome, committing);
}

interface Committing {
  readonly context: StatementContext;
  readonly options: TogetherOptions;
  readonly transaction: Transaction;
}

/** Commits the change in the current tick. */
function committed(outcome: DmlOutcome, { context, options, transaction }: Committing): DmlOutcome {
  const { store } = options.deps;
  requireReferences(transaction, context);
  const writes = [...transaction.writes()];
  if (writes.length === 0) return outcome;
  const { snapshotSeq } = transaction;
  const commit = made(options, transaction, () => store.apply({ writes, snapshotSeq }));
  return withCommit(outcome, commit);
}

/**
 * Commits the change in a later tick. If there are many rows, the commit is prepared over several
 * ticks.
 */
async function committedLater(outcome: DmlOutcome, committing: Committing): Promise<DmlOutcome> {
  const { context, options, transaction } = committing;
  const { catalog, storageQuota, store } = options.deps;
  await storageQuota?.prepare(transaction.growths, options.ledger);
  transaction.requireUnaltered(catalog);
  if (transaction.keyCount <= BATCH_ROWS_MAX) return committed(outcome, committing);
  const staged = store.stage({ snapshotSeq: transaction.snapshotSeq });
  for (const write of transaction.writes()) {
    await context.pause();
    staged.add(write);
  }
  while (!staged.settle()) await context.pause();
  transaction.requireUnaltered(catalog);
  requireReferences(transaction, context);
  if (staged.rowCount === 0) return outcome;
  return withCommit(
    outcome,
    made(options, transaction, () => staged.commit()),
  );
}

function requireReferences(transaction: Transaction, context: StatementContext): void {
  checkDeferred(context);
  requireUnbroken(transaction.claims, context);
}

function made(
  { deps, uploads }: TogetherOptions,
  transaction: Transaction,
  make: () => Commit,
): Commit {
  const { clock, storageQuota } = deps;
  const makeAll = (): Commit => {
    if (uploads !== Uploads.none) uploads.list(clock.nowMs());
    return make();
  };
  return storageQuota === undefined ? makeAll() : storageQuota.charge(transaction.growths, makeAll);
}

function withCommit(outcome: DmlOutcome, commit: Commit): DmlOutcome {
  return { ...outcome, applied: { ...outcome.applied, commit } };
}
