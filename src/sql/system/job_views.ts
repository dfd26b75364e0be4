/**
 * Defines `system.jobs` and `system.my_jobs`, which list jobs that are running or ended recently.
 */
import type { Job } from "../../storage/mod.ts";
import { DATETIME, DOUBLE, INT, JSON_TEXT, type Row, TEXT } from "../../types/mod.ts";
import type { SystemView } from "../bind/bound.ts";
import type { SqlEnvironment } from "../ports/environment.ts";
import { ADMIN_ONLY, type ColumnList, microsOf, OPEN, view } from "./system_view.ts";

const COLUMNS: ColumnList = [
  ["job_id", TEXT],
  ["job_type", TEXT],
  ["status", TEXT],
  ["namespace_id", TEXT],
  ["table_name", TEXT],
  ["parameters", JSON_TEXT],
  ["message", TEXT],
  ["error", TEXT],
  ["progress", DOUBLE],
  ["retry_count", INT],
  ["max_retries", INT],
  ["created_by", TEXT],
  ["created_at", DATETIME],
  ["started_at", DATETIME],
  ["finished_at", DATETIME],
  ["updated_at", DATETIME],
  ["node_id", INT],
];

type JobViewDeps = Pick<SqlEnvironment, "catalog" | "jobs" | "nodeId">;

export function jobViews(deps: JobViewDeps): [string, SystemView][] {
  const { jobs } = deps;
  const rowsOf = (list: readonly Job[]): Row[] => list.map((job) => jobRow(job, deps));
  return [
    ["system.jobs", view(COLUMNS, () => rowsOf(jobs.all()), ADMIN_ONLY)],
    [
      "system.my_jobs",
      view(
        COLUMNS,
        ({ userId }) => rowsOf(jobs.all().filter(({ createdBy }) => createdBy === userId)),
        OPEN,
      ),
    ],
  ];
}

function jobRow(job: Job, { catalog, nodeId }: JobViewDeps): Row {
  const table = job.tableId === undefined ? undefined : catalog.tableById(job.tableId);
  return [
    job.jobId,
    job.kind,
    job.status,
    table?.namespace ?? null,
    table?.name ?? null,
    job.parameters === undefined ? null : JSON.stringify(job.parameters),
    job.message ?? null,
    job.error?.message ?? null,
    job.progress ?? null,
    // The number of retries is always 0: a failed job is not retried under the same id, and the
    // next attempt is a new job.
    0,
    0,
    job.createdBy ?? null,
    job.createdAtMs * 1000,
    microsOf(job.startedAtMs),
    microsOf(job.finishedAtMs),
    job.updatedAtMs * 1000,
    nodeId,
  ];
}
