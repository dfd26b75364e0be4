/**
 * `system.stats` and `system.logs`: the server as a whole, since it was started; and
 * `system.audit_log`.
 */
import { BIGINT, DATETIME, JSON_TEXT, type Row, TEXT } from "../../types/mod.ts";
import type { SystemView } from "../bind/bound.ts";
import type { AuditLog } from "../common/audit_log.ts";
import type { SqlEnvironment } from "../common/environment.ts";
import { ADMIN_ONLY, view } from "./system_view.ts";

type StatsWorld = Pick<
  SqlEnvironment,
  "catalog" | "clock" | "connections" | "jobs" | "live" | "metrics" | "nodeId" | "version"
>;

/** The views by "namespace.name". */
export function serverViews(
  world: StatsWorld & Pick<SqlEnvironment, "audit" | "logLines">,
): [string, SystemView][] {
  return [
    ["system.stats", statsView(world)],
    ["system.logs", logsView(world.logLines)],
    ["system.audit_log", auditView(world.audit)],
  ];
}

function statsView(world: StatsWorld): SystemView {
  const { clock, metrics, nodeId, version } = world;
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
        ...countsOf(world),
        row("memory_rss_bytes", process.memoryUsage.rss(), "bytes", "memory of the process"),
        row(
          "cpu_usage_percent",
          seconds === 0 ? "0.0" : ((cpuSeconds / seconds) * 100).toFixed(1),
          "percent",
          "of one processor, on average since the start",
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

function countsOf({ catalog, connections, jobs, live }: StatsWorld): Row[] {
  const all = jobs.all();
  const withStatus = (status: string): number => all.filter((job) => job.status === status).length;
  const accounts = catalog.users().filter(({ deletedAtMs }) => deletedAtMs === undefined);
  return [
    row("active_connections", connections().rows().length),
    row("active_subscriptions", live().rows().length),
    row("total_users", accounts.length, undefined, "dropped ones left out"),
    row("total_namespaces", catalog.namespaces().length),
    row("total_tables", catalog.tables().length),
    row("total_storages", catalog.storages().length + 1),
    row("total_jobs", all.length, undefined, "under way, and the newest that have ended"),
    row("jobs_running", withStatus("running")),
    row("jobs_queued", withStatus("queued")),
    row("jobs_failed", withStatus("failed")),
  ];
}

function row(name: string, value: number | string, unit?: string, description?: string): Row {
  return [name, String(value), unit ?? null, description ?? null];
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

/** The newest lines, those of level debug left out. */
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
