/**
 * The erasure of dropped accounts: rows, history, files and kept answers, in all tables.
 *
 *     DROP USER ──► dropped ──30 days, PURGE, or the name is used again──► due ──job──► erased
 *
 * - From DROP USER on nobody can read what the account owned: its owner number is retired for ever.
 *   This file only gives the disk back, so it may take its time.
 * - That an erasure is due is in the catalog before its job begins, and that it is done after the
 *   last row is gone. A job that a crash, KILL or damage cuts short begins again at the next start
 *   or within an hour; what it has removed by then stays removed.
 * - A restore to a point after an erasure has the rows of its backup: the erasure is due again.
 * - Log files hold what was written until they are used again, and a backup holds it for good.
 */
import { isExpected } from "../../base/errors.ts";
import { pauser } from "../../base/pauser.ts";
import type { Erasure, TableEntry } from "../../catalog/mod.ts";
import { type Job, type JobEnd, runJob } from "../../storage/mod.ts";
import { ANSWERS_TABLE } from "../common/answers_table.ts";
import type { SqlEnvironment } from "../common/environment.ts";

/** What erasing needs of its surroundings. */
export type ErasureWorld = Pick<
  SqlEnvironment,
  "blobs" | "catalog" | "clock" | "jobs" | "log" | "store"
>;

/** Begins the jobs of all erasures that are due and not under way. */
export function beginDueErasures(world: ErasureWorld): void {
  const nowMs = world.clock.nowMs();
  for (const erasure of world.catalog.erasures()) {
    if (erasure.eraseAfterMs <= nowMs) beginErasure(world, erasure);
  }
}

/** Whose accounts are erased, and who asked for it. */
export interface AskedErasure {
  readonly userId: string;
  readonly createdBy: string;
}

/** Erases the dropped accounts of a name now. @returns Their jobs. */
export function eraseName(
  world: ErasureWorld,
  { userId, createdBy }: AskedErasure,
): readonly Job[] {
  const { catalog } = world;
  catalog.hastenErasure(userId);
  return catalog
    .erasures()
    .filter((erasure) => erasure.userId === userId)
    .map((erasure) => beginErasure(world, erasure, createdBy));
}

/** The job that erases an account: one that is under way, or a new one. */
function beginErasure(world: ErasureWorld, erasure: Erasure, createdBy?: string): Job {
  const { accountId, userId } = erasure;
  const open = world.jobs
    .all()
    .find(
      (job) => job.kind === "purge" && !job.isEnded && job.parameters?.["account"] === accountId,
    );
  if (open !== undefined) return open;
  const job = world.jobs.begin({
    kind: "purge",
    parameters: { user_id: userId, account: accountId },
    ...(createdBy === undefined ? {} : { createdBy }),
  });
  void run(world, erasure, job);
  return job;
}

async function run(world: ErasureWorld, erasure: Erasure, job: Job): Promise<void> {
  const { error } = await runJob(job, () => {
    job.start();
    return erase(world, erasure, job);
  });
  if (error === undefined) return;
  world.log.error("cannot erase a dropped account", {
    user: erasure.userId,
    error: error.message,
  });
}

/** @throws The failure of the first table that failed, once all others are erased. */
async function erase(
  world: ErasureWorld,
  { accountId, owner, userId }: Erasure,
  job: Job,
): Promise<JobEnd> {
  const { catalog, log, store } = world;
  const tables = catalog.tables().filter(({ kind }) => kind !== "shared");
  const tableIds = [...tables.map(({ tableId }) => tableId), ANSWERS_TABLE.tableId];
  const failures: Error[] = [];
  let versions = 0;
  for (const [done, tableId] of tableIds.entries()) {
    if (job.isCancelled) return { status: "cancelled", message: "it begins again within an hour" };
    if (isThere(catalog.tableById(tableId), tableId)) {
      try {
        versions += await store.erase(tableId, owner, job);
      } catch (error) {
        // What one table cannot do, damaged as it may be, keeps nothing from going in the others.
        if (!isExpected(error)) throw error;
        failures.push(error);
      }
    }
    job.advance((done + 1) / (tableIds.length + 1), `${done + 1} of ${tableIds.length} tables`);
  }
  if (job.isCancelled) return { status: "cancelled", message: "it begins again within an hour" };
  const files = await removeFiles(world, owner);
  const [failure] = failures;
  if (failure !== undefined) throw failure;
  catalog.noteErased(accountId);
  log.info("account erased", { user: userId, versions, files });
  return {
    status: "completed",
    message: `${versions} row version(s) and ${files} file(s) of ${userId} erased`,
  };
}

/** A table may be dropped while the job waits for the one before it. */
function isThere(table: TableEntry | undefined, tableId: number): boolean {
  return table !== undefined || tableId === ANSWERS_TABLE.tableId;
}

/** Also files that no list names: a restore can bring back some that were removed. */
async function removeFiles(
  { blobs, catalog, clock }: ErasureWorld,
  owner: number,
): Promise<number> {
  await blobs.removeOwner(owner);
  const pause = pauser(clock);
  let count = 0;
  for (const portion of catalog.filePortions({ owner })) {
    catalog.removeFiles(portion.map(({ fileId }) => fileId));
    count += portion.length;
    await pause();
  }
  return count;
}
