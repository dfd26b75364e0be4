/** Creates request ledgers, for tests of the places where statements wait. */
import { newLedger, type RequestLedger } from "../../src/sql/execute/context/request_ledger.ts";

/** A deadline that never arrives. */
export const NEVER: number = Number.POSITIVE_INFINITY;

/** Returns the ledger of a request that began at time 0 and must end by the deadline. */
export function endingAt(deadlineMs: number): RequestLedger {
  return newLedger(0, { timeoutMs: deadlineMs, timeoutMsDefault: 0, timeoutMsMax: NEVER });
}
