/**
 * Defines `system.queries`, `system.transactions`, `system.advisory_locks` and
 * `system.query_stats`, which list the running statements, the open transactions that span
 * requests, the advisory locks, and all statements since startup.
 */
import { shownMs } from "../../base/clock.ts";
import { BIGINT, BOOLEAN, DATETIME, DOUBLE, TEXT } from "../../types/mod.ts";
import { heldBytesOf, shownSql } from "../activity/activity.ts";
import type { SystemView } from "../bind/bound.ts";
import type { RequestLedger } from "../execute/context/request_ledger.ts";
import type { SqlEnvironment } from "../ports/environment.ts";
import { parseLimitsOf } from "../ports/parameters.ts";
import { ADMIN_ONLY, view } from "./system_view.ts";

type ActivityViewDeps = Pick<SqlEnvironment, "activity" | "clock" | "limits">;

/** Returns the views with their names, "namespace.name". */
export function activityViews(deps: ActivityViewDeps): [string, SystemView][] {
  return [
    ["system.queries", queriesView(deps)],
    ["system.transactions", transactionsView(deps)],
    ["system.advisory_locks", advisoryLocksView(deps)],
    ["system.query_stats", queryStatsView(deps)],
  ];
}

function queriesView({ activity, clock, limits }: ActivityViewDeps): SystemView {
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
      ["bytes_received", BIGINT],
      ["memory_bytes", BIGINT],
    ],
    (call) =>
      activity.running
        .all()
        .map(({ asUser, ledger, queryId, sql, startedAtMs, statements, userId }) => [
          queryId,
          userId,
          asUser,
          // Literals in other users' statements are private, so they are not shown.
          shownSql({ sql, statements }, parseLimitsOf(limits), {
            hasLiterals: userId === call.userId,
          }),
          stateOf(ledger),
          startedAtMs * 1000,
          shownMs(clock.monotonicMs() - ledger.startMs),
          ledger.rowsRead,
          ledger.bytesReceived,
          heldBytesOf(ledger),
        ]),
    ADMIN_ONLY,
  );
}

function transactionsView({ activity, clock }: ActivityViewDeps): SystemView {
  return view(
    [
      ["transaction_id", TEXT],
      ["user_id", TEXT],
      ["state", TEXT],
      ["is_read_only", BOOLEAN],
      ["snapshot_seq", BIGINT],
      ["started_at", DATETIME],
      ["elapsed_ms", DOUBLE],
      ["idle_ms", DOUBLE],
      ["requests", BIGINT],
      ["staged_rows", BIGINT],
      ["staged_bytes", BIGINT],
    ],
    () => {
      const nowMs = clock.monotonicMs();
      return activity.transactions
        .all()
        .map(({ held, ledger, ...it }) => [
          it.id,
          it.userId,
          ledger !== undefined ? "running" : held.isFailed ? "failed" : "idle",
          it.isReadOnly,
          held.snapshotSeq,
          it.startedAtMs * 1000,
          shownMs(nowMs - it.startMs),
          ledger === undefined ? shownMs(nowMs - it.lastUsedMs) : 0,
          it.statementCount,
          held.stagedRowCount,
          held.stagedBytes,
        ]);
    },
    ADMIN_ONLY,
  );
}

function advisoryLocksView({ activity }: ActivityViewDeps): SystemView {
  return view(
    [
      ["key", TEXT],
      ["key_user_id", TEXT],
      ["mode", TEXT],
      ["level", TEXT],
      ["is_granted", BOOLEAN],
      ["user_id", TEXT],
      ["transaction_id", TEXT],
      ["query_id", TEXT],
      ["since", DATETIME],
    ],
    () => {
      const transactions = activity.transactions.all();
      const requests = activity.running.all();
      return activity.advisory.all().map((lock) => {
        const { holder } = lock;
        const transaction = transactions.find(({ held }) => held.current === holder);
        const ledger = transaction === undefined ? holder : transaction.ledger;
        return [
          lock.key.text,
          lock.key.userId ?? null,
          lock.mode,
          lock.isOfSession ? "session" : "transaction",
          lock.isGranted,
          lock.userId,
          transaction?.id ?? null,
          requests.find((each) => each.ledger === ledger)?.queryId ?? null,
          lock.sinceMs * 1000,
        ];
      });
    },
    ADMIN_ONLY,
  );
}

function stateOf({ cancelledBy, isWaiting }: RequestLedger): string {
  if (cancelledBy !== undefined) return "cancelling";
  return isWaiting ? "waiting" : "running";
}

function queryStatsView({ activity, clock }: ActivityViewDeps): SystemView {
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
