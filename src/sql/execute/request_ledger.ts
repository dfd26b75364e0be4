/**
 * What one request may take, and what it has taken so far: kept in one place, because whoever lists
 * a request, ends it or clears up behind it is not who runs its statements.
 *
 * The end of a request is only asked for between steps of its work, so ending one is a mark here.
 */
import type { Clock } from "../../base/clock.ts";
import { DatabaseError } from "../../base/errors.ts";
import type { TemporaryFiles } from "../spill/mod.ts";
import type { MemoryBudget } from "./run.ts";

/** Times are monotonic milliseconds. */
export interface RequestLedger {
  readonly startMs: number;
  /** When it must end; Infinity for never. Later by each wait for the reader of its rows. */
  deadlineMs: number;
  isCancelled: boolean;
  /** Rows that were read from tables so far. */
  rowsRead: number;
  /** Of the statement at hand, once it holds something. */
  memory: MemoryBudget | undefined;
  /** Of the statement at hand, once it needs any; what a failure leaves of them goes at its end. */
  temporary: TemporaryFiles | undefined;
}

/** @throws {DatabaseError} STATEMENT_TIMEOUT, CANCELLED */
export function checkDeadline({ deadlineMs, isCancelled }: RequestLedger, clock: Clock): void {
  if (isCancelled) {
    throw new DatabaseError("CANCELLED", "Cannot finish the statement: it was cancelled");
  }
  if (clock.monotonicMs() >= deadlineMs) {
    throw new DatabaseError("STATEMENT_TIMEOUT", "Cannot finish the statement: its time is over", {
      hint: "narrow the query, or raise timeout_ms or performance.request_timeout",
    });
  }
}
