/**
 * Ends a request, whether it succeeded or failed: releases its resources, and logs it if it was
 * slow.
 */

import type { Principal } from "../../auth/mod.ts";
import { shownMs } from "../../base/clock.ts";
import { collectAfterTurn } from "../../base/garbage.ts";
import { type RunningRequest, slowSql } from "../activity/activity.ts";
import type { RequestLedger } from "../execute/context/request_ledger.ts";
import type { SqlRequest } from "../ports/engine.ts";
import type { SqlEnvironment } from "../ports/environment.ts";
import { parseLimitsOf } from "../ports/parameters.ts";

interface EndedRequest {
  readonly principal: Principal;
  readonly request: Pick<SqlRequest, "origin" | "sql">;
  readonly ledger: RequestLedger;
  /** Set if the request is in the list of running requests. */
  readonly running?: RunningRequest | undefined;
}

type ClosingDeps = Pick<SqlEnvironment, "activity" | "clock" | "limits" | "log">;

/**
 * Releases the resources of a request, however the request ended. Returns the time at which it
 * ended.
 */
export function closeRequest(deps: ClosingDeps, ended: EndedRequest): number {
  const { activity, clock, limits } = deps;
  const atMs = clock.monotonicMs();
  const { memory, startMs, temporary } = ended.ledger;
  temporary?.close();
  activity.advisory.release(ended.ledger);
  if (memory?.wasLarge === true) collectAfterTurn(clock);
  const { slowQueryMs } = limits;
  if (slowQueryMs !== 0 && atMs - startMs >= slowQueryMs) {
    logSlow(deps, ended, shownMs(atMs - startMs));
  }
  return atMs;
}

/**
 * Logs a slow request. Its statements are printed from their syntax trees, so that passwords are
 * masked.
 */
function logSlow(
  { limits: sqlLimits, log }: ClosingDeps,
  { principal: { userId }, request: { origin, sql }, running }: EndedRequest,
  tookMs: number,
): void {
  const shown = slowSql({ sql, statements: running?.statements }, parseLimitsOf(sqlLimits));
  if (shown === undefined) return;
  log.warn("slow query", {
    ms: tookMs,
    user: userId,
    request: origin?.requestId,
    sql: shown,
  });
}
