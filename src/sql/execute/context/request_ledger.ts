/**
 * Records the limits of a request, and the resources that it has used so far. Both are in one
 * object because the code that lists, ends or cleans up after requests is separate from the code
 * that runs their statements.
 *
 * To end a request, other code sets a mark in this object, which the request checks between two
 * steps of work.
 */
import type { Clock } from "../../../base/clock.ts";
import { DatabaseError, type ErrorCode } from "../../../base/errors.ts";
import type { TemporaryFiles } from "../../spill/mod.ts";
import type { MemoryBudget } from "../materialised/memory_budget.ts";
import { TakenNumbers } from "./taken_numbers.ts";

/**
 * The reason why a request ends early: it was killed, the user whose rows it reads was dropped,
 * its transaction must end, or the server is stopping.
 */
export type CancelCause = "kill" | "drop" | "transaction" | "shutdown";

export interface RequestLedger {
  readonly startMs: number;
  /**
   * The time at which the request must end; Infinity if there is no limit. The deadline is
   * postponed while the server waits for a client to read rows.
   */
  deadlineMs: number;
  /** The reason why the request was ended; undefined while it may continue. */
  cancelledBy: CancelCause | undefined;
  /** The number of rows read from tables so far. */
  rowsRead: number;
  /** The number of bytes that the client has sent for a COPY so far. */
  bytesReceived: number;
  /** The memory budget of the current statement; undefined until the statement uses memory. */
  memory: MemoryBudget | undefined;
  /** The memory that the current statement uses in other threads, in bytes. */
  bytesElsewhere: number;
  /**
   * The temporary files of the current statement. They are created on demand and removed at its
   * end, even after a failure.
   */
  temporary: TemporaryFiles | undefined;
  /** The numbers that the request has taken from sequences. */
  readonly numbers: TakenNumbers;
  /** The total duration for which the request has asked to sleep, in milliseconds. */
  sleepMs: number;
  /** Whether the current statement is queued for a reader or an advisory lock. */
  isWaiting: boolean;
  /**
   * Ends the request's current wait early, whatever the request is waiting for; undefined if the
   * request is not waiting.
   */
  wake: (() => void) | undefined;
  /**
   * Publishes the progress of the statement to the event loop. Present only if the ledger belongs
   * to another thread.
   */
  noteProgress?(): void;
}

/** The deadline of a request, and the reason if the request was ended early. */
export type RequestEnd = Readonly<Pick<RequestLedger, "cancelledBy" | "deadlineMs">>;

/** The time limit of a request, in milliseconds; 0 means no limit. */
export interface RequestTime {
  /** The time limit that the client requested; undefined for the default. */
  readonly timeoutMs: number | undefined;
  readonly timeoutMsDefault: number;
  readonly timeoutMsMax: number;
}

/** Creates the ledger of a request that begins at `startMs`. */
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
    bytesReceived: 0,
    memory: undefined,
    bytesElsewhere: 0,
    temporary: undefined,
    numbers: new TakenNumbers(),
    sleepMs: 0,
    isWaiting: false,
    wake: undefined,
  };
}

/**
 * Marks a request so that it ends at its next time check. If the request is waiting, it is woken
 * up.
 */
export function cancelRequest(ledger: RequestLedger, cause: CancelCause): void {
  ledger.cancelledBy ??= cause;
  ledger.wake?.();
}

/**
 * Throws if the request has been ended.
 * @throws {DatabaseError} CANCELLED, SHUTTING_DOWN
 */
export function checkCancelled({ cancelledBy }: Pick<RequestEnd, "cancelledBy">): void {
  if (cancelledBy === "kill") {
    throw new DatabaseError("CANCELLED", "Cannot finish the statement: it was cancelled");
  }
  if (cancelledBy === "drop") {
    throw new DatabaseError("CANCELLED", "Cannot finish the statement: its user has been deleted");
  }
  if (cancelledBy === "transaction") {
    throw new DatabaseError(
      "CANCELLED",
      "Cannot finish the statement: its transaction has been ended",
      {
        hint: "begin a new transaction, and repeat the statements in it",
      },
    );
  }
  if (cancelledBy === "shutdown") {
    throw new DatabaseError(
      "SHUTTING_DOWN",
      "Cannot finish the statement: the server is shutting down",
      {
        hint: "retry the statement once the server is back up",
      },
    );
  }
}

/**
 * Throws if the request has to end; otherwise returns the current time.
 *
 * @throws {DatabaseError} STATEMENT_TIMEOUT, CANCELLED, SHUTTING_DOWN
 */
export function checkDeadline(ledger: RequestEnd, clock: Clock): number {
  checkCancelled(ledger);
  const nowMs = clock.monotonicMs();
  if (nowMs >= ledger.deadlineMs) {
    throw new DatabaseError(
      "STATEMENT_TIMEOUT",
      "Cannot finish the statement: its time limit has passed",
      {
        hint:
          "make the query read fewer rows, or raise timeout_ms, statement_timeout or " +
          "performance.request_timeout",
      },
    );
  }
  return nowMs;
}

/**
 * Whether an error ends the entire request, even if the statement tolerates errors in its rows.
 */
export function endsRequest({ code }: DatabaseError): boolean {
  return ENDS.has(code);
}

const ENDS: ReadonlySet<ErrorCode> = new Set(["STATEMENT_TIMEOUT", "CANCELLED", "SHUTTING_DOWN"]);
