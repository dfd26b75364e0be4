/**
 * Erases the data of dropped accounts: rows, history, files, exports, stored responses and dead
 * letters.
 *
 *     DROP USER ──► dropped ──30 days, PURGE, or the name is used again──► due ──job──► erased
 *
 * - After DROP USER no one can read the account's data, because its owner number is never reused.
 *   Erasure only frees disk space, so it need not be fast.
 * - The catalog records an erasure as due before its job begins, and as done after the last row
 *   has been removed. A job interrupted by a crash, KILL or damage starts again on the next
 *   startup or within an hour. Everything removed by then stays removed.
 * - Restoring to a point after an erasure brings back the rows in the backup, so the erasure
 *   becomes due again.
 * - Log files keep the data until they are reused, and backups keep it permanently.
 */
import { counted } from "../../base/counted.ts";
import { isExpected } from "../../base/errors.ts";
import { pauser } from "../../base/pauser.ts";
import type { Erasure, TableEntry } from "../../catalog/mod.ts";
import { type Job, type JobEnd, runJob } from "../../storage/mod.ts";
import { ANSWERS_TABLE } from "../own_tables/answers_table.ts";
import { DEAD_LETTERS_TABLE, deleteUnownedLetters } from "../own_tables/dead_letters_table.ts";
import type { SqlEnvironment } from "../ports/environment.ts";

/**
 * Internal tables that contain accounts' rows. Dead letters come last: once the messages have been
 * erased, no new dead letter can be created from them.
 */
const OWN_TABLE_IDS: readonly number[] = [ANSWERS_TABLE.tableId, DEAD_LETTERS_TABLE.tableId];

/** The parts of the database from which an erasure removes data. */
export type ErasureDeps = Pick<
  SqlEnvironment,
  "blobs" | "catalog" | "clock" | "exports" | "jobs" | "log" | "store" | "topics"
>;

/** Starts a job for each due erasure that is not already running. */
export function beginDueErasures(deps: ErasureDeps): void {
  const nowMs = deps.clock.nowMs();
  for (const erasure of deps.catalog.accounts.erasures()) {
    if (erasure.eraseAfterMs <= nowMs) beginErasure(deps, erasure);
  }
}

/** The name of the accounts to be erased, and the user who requested the erasure. */
export interface AskedErasure {
  readonly userId: string;
  readonly createdBy: string;
}

/**
 * Immediately starts the erasure of all dropped accounts that had the given name. Returns the
 * jobs.
 */
export function eraseName(deps: ErasureDeps, { userId, createdBy }: AskedErasure): readonly Job[] {
  const { catalog } = deps;
  catalog.accounts.hastenErasure(userId);
  return catalog.accounts
    .erasures()
    .filter((erasure) => erasure.userId === userId)
    .map((erasure) => beginErasure(deps, erasure, createdBy));
}

/** Returns the job that erases an account, starting it if it is not already running. */
function beginErasure(deps: ErasureDeps, erasure: Erasure, createdBy?: string): Job {
  const { accountId, userId } = erasure;
  const open = deps.jobs
    .all()
    .find(
      (job) => job.kind === "purge" && !job.isEnded && job.parameters?.["account"] === accountId,
    );
  if (open !== undefined) return open;
  const job = deps.jobs.begin({
    kind: "purge",
    parameters: { user_id: userId, account: accountId },
    ...(createdBy === undefined ? {} : { createdBy }),
  });
  void run(deps, erasure, job);
  return job;
}

async function run(deps: ErasureDeps, erasure: Erasure, job: Job): Promise<void> {
  const { error } = await runJob(job, () => {
    job.start();
    return erase(deps, erasure, job);
  });
  if (error === undefined) return;
  deps.log.error("cannot erase a deleted account", {
    user: erasure.userId,
    error: error.message,
  });
}

/**
 * Erases an account, table by table.
 *
 * @throws The error of the first table that failed, once all other tables have been erased.
 */
async function erase(
  deps: ErasureDeps,
  { accountId, owner, userId }: Erasure,
  job: Job,
): Promise<JobEnd> {
  const { catalog, log } = deps;
  const tables = catalog.tables().filter(({ kind }) => kind !== "shared");
  const tableIds = [...tables.map(({ tableId }) => tableId), ...OWN_TABLE_IDS];
  const failures: Error[] = [];
  let versions = 0;
  for (const [done, tableId] of tableIds.entries()) {
    if (job.isCancelled)
      return { status: "cancelled", message: "the erasure starts again within an hour" };
    if (isThere(catalog.tableById(tableId), tableId)) {
      try {
        versions += await eraseFrom(deps, tableId, { owner, job });
      } catch (error) {
        // A failure in one table, such as damage, does not stop the erasure of the other tables.
        if (!isExpected(error)) throw error;
        failures.push(error);
      }
    }
    job.advance((done + 1) / (tableIds.length + 1), `${done + 1} of ${tableIds.length} tables`);
  }
  if (job.isCancelled)
    return { status: "cancelled", message: "the erasure starts again within an hour" };
  versions += await deleteUnownedLetters(deps.store, userId);
  await deps.exports.removeOwner(owner);
  const files = await removeFiles(deps, owner);
  const [failure] = failures;
  if (failure !== undefined) throw failure;
  catalog.accounts.noteErased(accountId);
  log.info("account erased", { user: userId, versions, files });
  return {
    status: "completed",
    message: `${counted(versions, "row version")} and ${counted(files, "file")} of ${userId} erased`,
  };
}

/**
 * Erases an account's rows from one table. The offsets of the messages that remain do not change.
 */
async function eraseFrom(
  { store, topics }: ErasureDeps,
  tableId: number,
  { job, owner }: { job: Job; owner: number },
): Promise<number> {
  // All assigned offsets must be stored first. After a crash, offsets that were not stored would
  // be assigned again, and the count would lack the erased rows.
  const release = await topics().holdOffsets(tableId);
  try {
    return await store.erase(tableId, owner, job);
  } finally {
    release();
  }
}

/**
 * Whether a table still exists. A table may be dropped while the job is erasing rows from another.
 */
function isThere(table: TableEntry | undefined, tableId: number): boolean {
  return table !== undefined || OWN_TABLE_IDS.includes(tableId);
}

/**
 * Removes files even if the catalog does not list them, because a restore can bring removed files
 * back.
 */
async function removeFiles({ blobs, catalog, clock }: ErasureDeps, owner: number): Promise<number> {
  await blobs.removeOwner(owner);
  const pause = pauser(clock);
  let count = 0;
  for (const portion of catalog.files.portions({ owner })) {
    catalog.files.remove(portion.map(({ fileId }) => fileId));
    count += portion.length;
    await pause();
  }
  return count;
}
