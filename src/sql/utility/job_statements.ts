/**
 * Runs STORAGE FLUSH and COMPACT, BACKUP, RESTORE, EXPORT USER DATA, DROP USER … PURGE and KILL
 * JOB, whose work may outlast the statement.
 *
 * A statement starts its jobs. It returns when all of them have ended or after a few seconds, and
 * reports the state of the jobs at that time. The jobs of one statement run one after another.
 */
import { mayRead, type Principal } from "../../auth/mod.ts";
import type { Clock } from "../../base/clock.ts";
import { DatabaseError } from "../../base/errors.ts";
import type { TableEntry } from "../../catalog/mod.ts";
import {
  flushedText,
  type Job,
  type JobEnd,
  type JobList,
  mergedText,
  runJob,
  type Store,
} from "../../storage/mod.ts";
import { type Row, TEXT } from "../../types/mod.ts";
import { findNamespace, findTable } from "../names/table_names.ts";
import type {
  AstNode,
  BackupStatement,
  KillStatement,
  RestoreStatement,
  StorageTableStatement,
} from "../parse/ast/ast.ts";
import type { SqlEnvironment } from "../ports/environment.ts";
import type { BegunJob } from "../ports/ports.ts";
import type { NameDeps } from "../prepare/binding_deps.ts";
import { type PlainColumn } from "../result/result.ts";
import { type AskedErasure, type ErasureDeps, eraseName } from "./erasure.ts";

/** The time after which a statement returns even if its jobs are still running. */
const ANSWER_MS_MAX = 5000;

export const JOB_COLUMNS: readonly PlainColumn[] = [
  "job_id",
  "job_type",
  "status",
  "namespace_id",
  "table_name",
  "message",
].map((name) => ({ name, type: TEXT }));

/** The maintenance of one table. `run` returns the job's final status. */
interface Maintenance {
  readonly kind: "flush" | "compact";
  readonly run: (store: Store, tableId: number, job: Job) => Promise<JobEnd>;
}

const MAINTENANCE: Readonly<Record<StorageTableStatement["type"], Maintenance>> = {
  "storage flush": {
    kind: "flush",
    run: async (store, tableId, job) => {
      const result = await store.flush(tableId, job);
      if (result.versions === 0) return { status: "skipped", message: "nothing to flush" };
      return { status: "completed", message: flushedText(result) };
    },
  },
  "storage compact": {
    kind: "compact",
    run: async (store, tableId, job) => {
      const { discardedVersions, mergedSegments } = await store.compact(tableId, job);
      if (mergedSegments === 0) return { status: "skipped", message: "nothing to compact" };
      return { status: "completed", message: mergedText(mergedSegments, discardedVersions) };
    },
  },
};

/** The parts of the database that flush and merge tables. */
export interface MaintenanceDeps
  extends NameDeps,
    Pick<SqlEnvironment, "clock" | "jobs" | "store"> {}

/** Returns the tables that a statement flushes or merges. @throws {DatabaseError} */
export function maintainedTables(
  deps: NameDeps,
  node: StorageTableStatement,
  { namespace, principal }: { namespace: string; principal: Principal },
): readonly TableEntry[] {
  const { catalog, systemViews } = deps;
  if (node.table !== undefined) {
    const action = MAINTENANCE[node.type].kind;
    systemViews.refuse(node.table, { namespace, principal, action });
  }
  if (node.namespace !== undefined) findNamespace(catalog, node.namespace.name, node.namespace);
  const tables =
    node.table === undefined
      ? catalog
          .tables()
          .filter(
            (table) =>
              isMeant(table, node) && mayRead(principal, table, catalog.namespace(table.namespace)),
          )
      : [findTable(deps, node.table, { namespace, node: node.table, principal })];
  for (const table of tables) requireNoStream(table, MAINTENANCE[node.type].kind, node);
  return tables;
}

/** Starts a flush or a merge of one or many tables. @returns One job row per table. */
export async function maintainTables(
  deps: MaintenanceDeps,
  node: StorageTableStatement,
  call: { namespace: string; principal: Principal },
): Promise<Row[]> {
  const { clock, jobs, store } = deps;
  const { principal } = call;
  const { kind, run } = MAINTENANCE[node.type];
  const rows: (Row | Begun)[] = [];
  for (const table of maintainedTables(deps, node, call)) {
    const { tableId } = table;
    const open = jobs.openOf(kind, tableId);
    rows.push(
      open === undefined
        ? { table, job: jobs.begin({ kind, tableId, createdBy: principal.userId }) }
        : jobRow(open, table, {
            status: "skipped",
            message: `the same job is already ${open.status}`,
          }),
    );
  }
  const begun = rows.filter((row) => "job" in row);
  void runInTick(begun, (tableId, job) => run(store, tableId, job));
  await settled(clock, begun);
  const [first] = begun;
  // If a statement names a single table, its error is thrown, since the user might overlook it in
  // a row. If several tables are maintained, each error is reported in a row of its own.
  if (node.table !== undefined && first?.job.error !== undefined) throw first.job.error;
  return rows.map((row) => ("job" in row ? jobRow(row.job, row.table) : row));
}

/** Starts a backup or a restore. @returns Its job row. @throws {DatabaseError} INVALID_OPTION */
export async function copyDatabase(
  { backups, clock }: Pick<SqlEnvironment, "backups" | "clock">,
  node: BackupStatement | RestoreStatement,
  userId: string,
): Promise<Row[]> {
  const begun =
    node.type === "backup"
      ? backups.backUp(node.target, userId)
      : backups.restore(node.source, { createdBy: userId, to: node.to });
  return await rowsOf(begun, clock);
}

/** Starts an export of the caller's own data. @returns Its job row. @throws {DatabaseError} */
export async function exportUserData(
  { clock, exports }: Pick<SqlEnvironment, "clock" | "exports">,
  principal: Principal,
): Promise<Row[]> {
  return await rowsOf(exports.begin(principal), clock);
}

/**
 * Returns the result of a statement that starts a single job: a list with the job's row. @throws
 * The job's error.
 */
async function rowsOf({ isNew, job }: BegunJob, clock: Clock): Promise<Row[]> {
  if (!isNew)
    return [
      jobRow(job, undefined, {
        status: "skipped",
        message: `a job of this kind is already ${job.status}`,
      }),
    ];
  await settled(clock, [{ job }]);
  if (job.error !== undefined) throw job.error;
  return [jobRow(job, undefined)];
}

/** Starts the erasure of a dropped account's data. @returns Its job row. */
export async function eraseUser(deps: ErasureDeps, asked: AskedErasure): Promise<Row[]> {
  const begun = eraseName(deps, asked);
  await settled(
    deps.clock,
    begun.map((job) => ({ job })),
  );
  // Errors are shown in the rows instead of thrown: a failed erasure is retried, because the
  // account has already been dropped.
  return begun.map((job) => jobRow(job, undefined));
}

/** Cancels a job for KILL JOB. @throws {DatabaseError} OBJECT_NOT_FOUND, INVALID_OPERATION */
export function killJob(jobs: JobList, { id, _location }: KillStatement): string {
  const job = jobs.find(id);
  if (job === undefined) {
    throw new DatabaseError("OBJECT_NOT_FOUND", `Cannot find job "${id}"`, {
      position: _location.start,
      hint: "SELECT job_id, status FROM system.jobs",
    });
  }
  if (job.isEnded) {
    throw new DatabaseError(
      "INVALID_OPERATION",
      `Cannot kill job ${id}: its status is ${job.status}`,
      {
        position: _location.start,
      },
    );
  }
  job.isCancelled = true;
  return `Job ${id} killed`;
}

/** Returns the row that describes a job when its statement returns. */
function jobRow(
  job: Job,
  table: TableEntry | undefined,
  { message, status }: { status: string; message?: string } = answerOf(job),
): Row {
  return [
    job.jobId,
    job.kind,
    status,
    table?.namespace ?? null,
    table?.name ?? null,
    message ?? null,
  ];
}

/** Waits until the jobs have ended, or until the statement has lasted as long as it may. */
async function settled(clock: Clock, begun: readonly { readonly job: Job }[]): Promise<void> {
  if (begun.every(({ job }) => job.isEnded)) return;
  const late = Promise.withResolvers<void>();
  const cancel = clock.after(ANSWER_MS_MAX, () => late.resolve());
  await Promise.race([late.promise, Promise.all(begun.map(({ job }) => job.ended))]);
  cancel();
}

interface Begun {
  readonly table: TableEntry;
  readonly job: Job;
}

async function runInTick(
  begun: readonly Begun[],
  run: (tableId: number, job: Job) => Promise<JobEnd>,
): Promise<void> {
  for (const { job, table } of begun) {
    if (job.isCancelled) {
      job.end({ status: "cancelled" });
      continue;
    }
    await runJob<JobEnd>(job, async () => {
      const end = await run(table.tableId, job);
      // A cancelled job keeps the data that it published before it was cancelled.
      const isStopped = job.isCancelled && (job.kind === "compact" || end.status === "skipped");
      return isStopped ? { status: "cancelled" } : end;
    });
  }
}

function answerOf({ error, message, status }: Job): { status: string; message?: string } {
  const text = error?.message ?? message;
  return text === undefined ? { status } : { status, message: text };
}

/**
 * Whether a statement with ALL includes a table. STREAM tables are skipped, because the statement
 * cannot name them individually either.
 */
function isMeant(table: TableEntry, { namespace }: StorageTableStatement): boolean {
  if (table.kind === "stream") return false;
  return namespace === undefined || table.namespace === namespace.name;
}

function requireNoStream(table: TableEntry, kind: string, node: AstNode): void {
  if (table.kind !== "stream") return;
  throw new DatabaseError(
    "INVALID_OPERATION",
    `Cannot ${kind} ${table.namespace}.${table.name}: it is a STREAM table`,
    {
      position: node._location.start,
      hint: "rows in a STREAM table expire automatically after TTL_SECONDS",
    },
  );
}
