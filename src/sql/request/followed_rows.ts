/**
 * Evaluates queries that are followed as a whole. An evaluation is an ordinary statement: it begins
 * on the event loop, and one that takes longer than a time slice is read in another thread.
 */
import { assert } from "../../base/assert.ts";
import type { Seq } from "../../base/seq.ts";
import type { WireCell } from "../../protocol/mod.ts";
import { cancelRequest, newLedger, type RequestLedger } from "../execute/context/request_ledger.ts";
import type { LiveRequest, ResultEvaluation, ResultPlan, ResultRows } from "../ports/engine.ts";
import type { SqlEnvironment } from "../ports/environment.ts";
import type { WholeQuery } from "../prepare/followed_query.ts";
import { closeRequest } from "./request_end.ts";
import { RequestSettings } from "./request_settings.ts";
import { type StatementDeps, StatementRunner } from "./statement_runner.ts";

export type FollowedRowsDeps = StatementDeps & Pick<SqlEnvironment, "activity" | "log">;

/** Completes a planned query with the means to evaluate it. */
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
    mayRead: (reader) => query.mayRead(reader),
    evaluate: () => evaluate(deps, query, request),
  };
}

function evaluate(
  deps: FollowedRowsDeps,
  query: WholeQuery,
  request: LiveRequest,
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
      return await rowsOf(deps, query, ledger);
    } finally {
      activity.running.end(running);
      closeRequest(deps, { principal, request, running, ledger });
    }
  })();
  return { result, cancel: () => cancelRequest(ledger, "kill") };
}

async function rowsOf(
  deps: FollowedRowsDeps,
  { namespace, node, prepared, principal, slots, types }: WholeQuery,
  ledger: RequestLedger,
): Promise<ResultRows> {
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
    // Each attempt reads the newest state, and the last one is the answer.
    atSeq: () => {
      seq = deps.store.visibleSeq;
      return seq;
    },
  });
  assert(seq !== undefined && rows !== undefined, "a query reads rows at a seq");
  return { seq, rows: rows as readonly (readonly WireCell[])[] };
}
