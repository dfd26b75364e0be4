/**
 * Evaluates queries that are followed as a whole. An evaluation is an ordinary statement: it begins
 * on the event loop and, if it takes longer than a time slice, is read in another thread.
 */
import { assert } from "../../base/assert.ts";
import type { Seq } from "../../base/seq.ts";
import type { WireCell } from "../../protocol/mod.ts";
import { cancelRequest, newLedger, type RequestLedger } from "../execute/context/request_ledger.ts";
import type {
  LiveRequest,
  ResultEvaluation,
  ResultPlan,
  ResultRows,
  ResultTable,
} from "../ports/engine.ts";
import type { SqlEnvironment } from "../ports/environment.ts";
import type { WholeQuery } from "../prepare/followed_query.ts";
import { type PastStore, requireHistory } from "../prepare/past_seqs.ts";
import { closeRequest } from "./request_end.ts";
import { RequestSettings } from "./request_settings.ts";
import { type StatementDeps, StatementRunner } from "./statement_runner.ts";

export type FollowedRowsDeps = StatementDeps & Pick<SqlEnvironment, "activity" | "log">;

/** Completes a planned query with the functions that evaluate it. */
export function resultPlanOf(
  deps: FollowedRowsDeps,
  query: WholeQuery,
  request: LiveRequest,
): ResultPlan {
  const { changesByTime, fields, fingerprint, keyFields, principal, sort, tables } = query;
  return {
    principal,
    tables,
    changesByTime,
    fields,
    keyFields,
    sort,
    fingerprint,
    viewsChangedMs: query.viewsChangedMs,
    mayRead: (reader) => query.mayRead(reader),
    evaluate: (at) => {
      assert(at === undefined || at <= deps.store.visibleSeq, "an earlier seq is visible");
      return evaluate(deps, query, { request, at });
    },
  };
}

function evaluate(
  deps: FollowedRowsDeps,
  query: WholeQuery,
  { at, request }: { request: LiveRequest; at: Seq | undefined },
): ResultEvaluation {
  const { activity, clock, limits } = deps;
  const ledger = newLedger(clock.monotonicMs(), {
    timeoutMs: undefined,
    timeoutMsDefault: limits.timeoutMs,
    timeoutMsMax: limits.timeoutMsMax,
  });
  const { principal } = query;
  const running = activity.running.begin({ userId: principal.userId, sql: request.sql, ledger });
  const result = (async (): Promise<ResultRows> => {
    try {
      return await rowsOf(deps, query, { ledger, at });
    } finally {
      activity.running.end(running);
      closeRequest(deps, { principal, request, running, ledger });
    }
  })();
  return { result, cancel: () => cancelRequest(ledger, "kill") };
}

async function rowsOf(
  deps: FollowedRowsDeps,
  { namespace, node, prepared, principal, slots, tables, types }: WholeQuery,
  { at, ledger }: { ledger: RequestLedger; at: Seq | undefined },
): Promise<ResultRows> {
  const { store } = deps;
  const runner = new StatementRunner(deps, {
    ledger,
    isStreamed: false,
    settings: new RequestSettings(deps),
    channelFor: () => {
      throw new Error("the rows of a followed query are not streamed");
    },
  });
  let seq: Seq | undefined;
  const { rows } = await runner.run(prepared, {
    principal,
    namespace,
    transaction: undefined,
    parameters: slots,
    files: undefined,
    source: () => ({ node, types }),
    // Each attempt reads the newest state, and the last attempt gives the result.
    atSeq: () => {
      seq = at === undefined ? store.visibleSeq : earlierSeq(store, tables, at);
      return seq;
    },
  });
  // A merge may have discarded history between two time slices of the evaluation.
  if (at !== undefined) earlierSeq(store, tables, at);
  assert(seq !== undefined && rows !== undefined, "a query reads rows at a seq");
  return { seq, rows: rows as readonly (readonly WireCell[])[] };
}

/**
 * Returns the seq of the state that was current at an earlier seq. @throws {DatabaseError}
 * HISTORY_TOO_OLD
 */
function earlierSeq(store: PastStore, tables: readonly ResultTable[], at: Seq): Seq {
  let seq = at;
  for (const { owner, tableId } of tables) {
    seq = Math.min(seq, store.wholeCommitsUpTo(tableId, owner, at)) as Seq;
  }
  for (const table of tables) requireHistory(store, { ...table, seq });
  return seq;
}
