/**
 * The end of a request, whichever way it went: what it holds is given back, and a slow one is told
 * of in the log.
 */

import type { Principal } from "../../auth/mod.ts";
import { shownMs } from "../../base/clock.ts";
import { collectAfterTurn } from "../../base/garbage.ts";
import { type RunningRequest, slowSql } from "../common/activity.ts";
import type { SqlRequest } from "../common/engine.ts";
import type { SqlEnvironment } from "../common/environment.ts";
import { parseLimitsOf } from "../common/parameters.ts";
import type { RequestLedger } from "../execute/run/request_ledger.ts";

interface EndedRequest {
  readonly principal: Principal;
  readonly request: SqlRequest;
  readonly ledger: RequestLedger;
  /** Set if the request was listed. */
  readonly running?: RunningRequest | undefined;
}

type ClosingWorld = Pick<SqlEnvironment, "clock" | "limits" | "log">;

/** Gives back what a request holds, however it ended. Returns when that was. */
export function closeRequest(world: ClosingWorld, ended: EndedRequest): number {
  const { clock, limits } = world;
  const atMs = clock.monotonicMs();
  const { memory, startMs, temporary } = ended.ledger;
  temporary?.close();
  if (memory?.wasLarge === true) collectAfterTurn(clock);
  const { slowQueryMs } = limits;
  if (slowQueryMs !== 0 && atMs - startMs >= slowQueryMs) {
    logSlow(world, ended, shownMs(atMs - startMs));
  }
  return atMs;
}

/** Prints the statements anew, so that no password gets into the log. */
function logSlow(
  { limits: sqlLimits, log }: ClosingWorld,
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
