/**
 * What one request may take, and what it has taken so far: kept in one place, because whoever lists
 * a request, ends it or clears up behind it is not who runs its statements.
 *
 * The end of a request is only asked for between steps of its work, so ending one is a mark here.
 */
import type { Clock } from "../../../base/clock.ts";
import { type Condition, DatabaseError } from "../../../base/errors.ts";
import type { TemporaryFiles } from "../../spill/mod.ts";
import type { MemoryBudget } from "../held/memory_budget.ts";

/**
 * Why a request ends before its work is done: somebody asked for that, the user whose rows it reads
 * was dropped, or the server stops.
 */
export type CancelCause = "kill" | "drop" | "shutdown";

/** Times are monotonic milliseconds. */
export interface RequestLedger {
  readonly startMs: number;
  /** When it must end; Infinity for never. Later by each wait for the reader of its rows. */
  deadlineMs: number;
  /** Undefined while it may go on. */
  cancelledBy: CancelCause | undefined;
  /** Rows that were read from tables so far. */
  rowsRead: number;
  /** Of the statement at hand, once it holds something. */
  memory: MemoryBudget | undefined;
  /** Bytes that the statement at hand holds in other threads. */
  bytesElsewhere: number;
  /** Of the statement at hand, once it needs any; what a failure leaves of them goes at its end. */
  temporary: TemporaryFiles | undefined;
  /** How long the request has been asked to sleep in all. */
  sleepMs: number;
  /** Whether the statement at hand waits for its turn to read. */
  isWaiting: boolean;
  /** Ends its wait before the time, whatever it waits for. */
  wake: (() => void) | undefined;
  /** Publishes how far the statement is, where the event loop does not see this ledger. */
  noteProgress?(): void;
}

/** When and why a request ends before its work is done. */
export type RequestEnd = Readonly<Pick<RequestLedger, "cancelledBy" | "deadlineMs">>;

/** How long a request may take, in milliseconds; 0 is without end. */
export interface RequestTime {
  /** What it asks for; undefined for the default. */
  readonly timeoutMs: number | undefined;
  readonly timeoutMsDefault: number;
  readonly timeoutMsMax: number;
}

/** Of a request that begins at `startMs`; nothing of it is taken yet. */
export function newLedger(
  startMs: number,
  { timeoutMs, timeoutMsDefault, timeoutMsMax }: RequestTime,
): RequestLedger {
  const limitMs = Math.min(timeoutMs ?? timeoutMsDefault, timeoutMsMax);
  return {
    startMs,
    deadlineMs: limitMs === 0 ? Number.POSITIVE_INFINITY : startMs + limitMs,
    cancelledBy: undefined,
    rowsRead: 0,
    memory: undefined,
    bytesElsewhere: 0,
    temporary: undefined,
    sleepMs: 0,
    isWaiting: false,
    wake: undefined,
  };
}

/** Has a request end at its next look at the clock, and wakes it for that. */
export function cancelRequest(ledger: RequestLedger, cause: CancelCause): void {
  ledger.cancelledBy ??= cause;
  ledger.wake?.();
}

/** @throws {DatabaseError} CANCELLED, SHUTTING_DOWN */
export function checkCancelled({ cancelledBy }: Pick<RequestEnd, "cancelledBy">): void {
  if (cancelledBy === "kill") {
    throw new DatabaseError("CANCELLED", "Cannot finish the statement: it was cancelled");
  }
  if (cancelledBy === "drop") {
    throw new DatabaseError("CANCELLED", "Cannot finish the statement: its user was dropped");
  }
  if (cancelledBy === "shutdown") {
    throw new DatabaseError("SHUTTING_DOWN", "Cannot finish the statement: the server stops", {
      hint: "send it again once the server is back",
    });
  }
}

/**
 * Returns the current time.
 *
 * @throws {DatabaseError} STATEMENT_TIMEOUT, CANCELLED, SHUTTING_DOWN
 */
export function checkDeadline(ledger: RequestEnd, clock: Clock): number {
  checkCancelled(ledger);
  const nowMs = clock.monotonicMs();
  if (nowMs >= ledger.deadlineMs) {
    throw new DatabaseError("STATEMENT_TIMEOUT", "Cannot finish the statement: its time is over", {
      hint: "narrow the query, or raise timeout_ms, statement_timeout or performance.request_timeout",
    });
  }
  return nowMs;
}

/** Whether an error ends the whole request, whatever its statement does with errors of its rows. */
export function endsRequest({ condition }: DatabaseError): boolean {
  return ENDS.has(condition);
}

const ENDS: ReadonlySet<Condition> = new Set(["STATEMENT_TIMEOUT", "CANCELLED", "SHUTTING_DOWN"]);
