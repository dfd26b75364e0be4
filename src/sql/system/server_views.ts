/**
 * The views about the server as a whole: `system.stats`, `system.memory`, `system.logs` and
 * `system.audit_log`. Except for the audit log, their contents begin at startup.
 */

import { residentBytes } from "../../base/memory_usage.ts";
import { BIGINT, DATETIME, JSON_TEXT, type Row, TEXT } from "../../types/mod.ts";
import type { SystemView } from "../bind/bound.ts";
import type { AuditLog } from "../own_tables/audit_log.ts";
import type { SqlEnvironment } from "../ports/environment.ts";
import { ADMIN_ONLY, view } from "./system_view.ts";

type StatsDeps = Pick<
  SqlEnvironment,
  "catalog" | "clock" | "connections" | "jobs" | "live" | "metrics" | "nodeId" | "version"
>;

/** Returns the views with their names, "namespace.name". */
export function serverViews(
  deps: StatsDeps & Pick<SqlEnvironment, "audit" | "logLines" | "memory">,
): [string, SystemView][] {
  return [
    ["system.stats", statsView(deps)],
    ["system.memory", memoryView(deps.memory)],
    ["system.logs", logsView(deps.logLines)],
    ["system.audit_log", auditView(deps.audit)],
  ];
}

function statsView(deps: StatsDeps): SystemView {
  const { clock, metrics, nodeId, version } = deps;
  const startMs = clock.monotonicMs();
  const startCpu = process.cpuUsage();
  return view(
    [
      ["metric_name", TEXT],
      ["metric_value", TEXT],
      ["unit", TEXT],
      ["description", TEXT],
    ],
    () => {
      const seconds = (clock.monotonicMs() - startMs) / 1000;
      const { system, user } = process.cpuUsage(startCpu);
      const cpuSeconds = (system + user) / 1_000_000;
      return [
        ...countsOf(deps),
        row("memory_rss_bytes", residentBytes(), "bytes", "resident memory of the server process"),
        row(
          "cpu_usage_percent",
          seconds === 0 ? "0.0" : ((cpuSeconds / seconds) * 100).toFixed(1),
          "percent",
          "CPU time as a share of a single core, averaged since startup",
        ),
        row("server_version", version),
        row("server_uptime_seconds", seconds.toFixed(3), "seconds"),
        row("node_id", nodeId),
        ...metrics().map(({ description, name, value }) =>
          row(name, value, undefined, description),
        ),
      ];
    },
    ADMIN_ONLY,
  );
}

function countsOf({ catalog, connections, jobs, live }: StatsDeps): Row[] {
  const all = jobs.all();
  const withStatus = (status: string): number => all.filter((job) => job.status === status).length;
  const accounts = catalog.accounts.users().filter(({ deletedAtMs }) => deletedAtMs === undefined);
  return [
    row("active_connections", connections().rows().length),
    row("active_subscriptions", live().rows().length),
    row("total_users", accounts.length, undefined, "users, excluding deleted ones"),
    row("total_namespaces", catalog.namespaces().length),
    row("total_tables", catalog.tables().length),
    row("total_storages", catalog.storages.all().length + 1),
    row("total_jobs", all.length, undefined, "jobs in progress and jobs that ended recently"),
    row("jobs_running", withStatus("running")),
    row("jobs_queued", withStatus("queued")),
    row("jobs_failed", withStatus("failed")),
  ];
}

function row(name: string, value: number | string, unit?: string, description?: string): Row {
  return [name, String(value), unit ?? null, description ?? null];
}

/**
 * Creates the view system.memory. Its first row is the resident memory of the process. The other
 * rows show how that memory is used.
 */
function memoryView(memory: SqlEnvironment["memory"]): SystemView {
  return view(
    [
      ["part", TEXT],
      ["used_bytes", BIGINT],
      ["allowed_bytes", BIGINT],
      ["description", TEXT],
    ],
    () =>
      memory().map(({ allowedBytes, description, part, usedBytes }) => [
        part,
        usedBytes,
        allowedBytes ?? null,
        description,
      ]),
    ADMIN_ONLY,
  );
}

function auditView(audit: AuditLog): SystemView {
  return view(
    [
      ["audit_id", BIGINT],
      ["timestamp", DATETIME],
      ["actor_user_id", TEXT],
      ["action", TEXT],
      ["target", TEXT],
      ["outcome", TEXT],
      ["details", JSON_TEXT],
      ["ip_address", TEXT],
      ["subject_user_id", TEXT],
    ],
    () => audit.rows(),
    ADMIN_ONLY,
  );
}

/** Shows the newest log lines, except lines at debug level. */
function logsView(logLines: SqlEnvironment["logLines"]): SystemView {
  return view(
    [
      ["timestamp", DATETIME],
      ["level", TEXT],
      ["target", TEXT],
      ["message", TEXT],
      ["fields", JSON_TEXT],
    ],
    () =>
      logLines().map(({ fields, level, message, timeMs }) => [
        timeMs * 1000,
        level,
        null,
        message,
        Object.keys(fields).length === 0 ? null : JSON.stringify(fields),
      ]),
    ADMIN_ONLY,
  );
}
