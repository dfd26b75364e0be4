/**
 * `system.queries` and `system.query_stats`: what runs now, and what ran since the start.
 */
import { shownMs } from "../../base/clock.ts";
import { BIGINT, DATETIME, DOUBLE, TEXT } from "../../types/mod.ts";
import type { SystemView } from "../bind/bound.ts";
import { heldBytesOf, shownSql } from "../common/activity.ts";
import type { SqlEnvironment } from "../common/environment.ts";
import { parseLimitsOf } from "../common/parameters.ts";
import type { RequestLedger } from "../execute/run/request_ledger.ts";
import { ADMIN_ONLY, view } from "./system_view.ts";

type ActivityViewWorld = Pick<SqlEnvironment, "activity" | "clock" | "limits">;

/** The views by "namespace.name". */
export function activityViews(world: ActivityViewWorld): [string, SystemView][] {
  return [
    ["system.queries", queriesView(world)],
    ["system.query_stats", queryStatsView(world)],
  ];
}

function queriesView({ activity, clock, limits }: ActivityViewWorld): SystemView {
  return view(
    [
      ["query_id", TEXT],
      ["user_id", TEXT],
      ["as_user", TEXT],
      ["sql", TEXT],
      ["state", TEXT],
      ["started_at", DATETIME],
      ["elapsed_ms", DOUBLE],
      ["rows_read", BIGINT],
      ["memory_bytes", BIGINT],
    ],
    (call) =>
      activity.running
        .all()
        .map(({ asUser, ledger, queryId, sql, startedAtMs, statements, userId }) => [
          queryId,
          userId,
          asUser,
          // Literals in the statements of other users are private and are not shown.
          shownSql({ sql, statements }, parseLimitsOf(limits), {
            hasLiterals: userId === call.userId,
          }),
          stateOf(ledger),
          startedAtMs * 1000,
          shownMs(clock.monotonicMs() - ledger.startMs),
          ledger.rowsRead,
          heldBytesOf(ledger),
        ]),
    ADMIN_ONLY,
  );
}

function stateOf({ cancelledBy, isWaiting }: RequestLedger): string {
  if (cancelledBy !== undefined) return "cancelling";
  return isWaiting ? "waiting" : "running";
}

function queryStatsView({ activity, clock }: ActivityViewWorld): SystemView {
  return view(
    [
      ["fingerprint", TEXT],
      ["sql", TEXT],
      ["calls", BIGINT],
      ["errors", BIGINT],
      ["rows", BIGINT],
      ["total_ms", DOUBLE],
      ["mean_ms", DOUBLE],
      ["p50_ms", DOUBLE],
      ["p95_ms", DOUBLE],
      ["p99_ms", DOUBLE],
      ["max_ms", DOUBLE],
      ["last_seen", DATETIME],
    ],
    () => {
      const startMs = clock.nowMs() - clock.monotonicMs();
      return activity.stats
        .all()
        .map((stat) => [
          stat.fingerprint,
          stat.sql,
          stat.calls,
          stat.errors,
          stat.rows,
          shownMs(stat.totalMs),
          shownMs(stat.totalMs / stat.calls),
          shownMs(stat.percentile(0.5)),
          shownMs(stat.percentile(0.95)),
          shownMs(stat.percentile(0.99)),
          shownMs(stat.maxMs),
          Math.round(startMs + stat.lastSeenMs) * 1000,
        ]);
    },
    ADMIN_ONLY,
  );
}
