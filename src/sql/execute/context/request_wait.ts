/**
 * Waits for work that another layer does for a statement, but not beyond the request's deadline.
 */
import type { CancelTimer, Clock } from "../../../base/clock.ts";
import { checkDeadline, type RequestLedger } from "./request_ledger.ts";

/** The maximum delay of a timer, in milliseconds. */
const DELAY_MS_MAX = 2 ** 31 - 1;

/**
 * Returns the result of the given work. If the request ends first, the work receives an abort
 * signal, and its result or error is ignored.
 *
 * @throws {DatabaseError} STATEMENT_TIMEOUT, CANCELLED, SHUTTING_DOWN, and errors of the work
 */
export async function withinRequest<Result>(
  work: (signal: AbortSignal) => Promise<Result>,
  { clock, ledger }: { clock: Clock; ledger: RequestLedger },
): Promise<Result> {
  const controller = new AbortController();
  const { promise: ended, reject } = Promise.withResolvers<never>();
  let cancelTimer: CancelTimer | undefined;
  /** Ends the wait if the request has ended. Otherwise, waits for the request's deadline again. */
  const look = (): void => {
    cancelTimer?.();
    try {
      const leftMs = ledger.deadlineMs - checkDeadline(ledger, clock);
      cancelTimer = clock.after(Math.min(leftMs, DELAY_MS_MAX), look);
    } catch (error) {
      // The error of the ended request is passed to the caller rather than thrown here.
      controller.abort();
      reject(error);
    }
  };
  checkDeadline(ledger, clock);
  look();
  ledger.wake = look;
  try {
    return await Promise.race([work(controller.signal), ended]);
  } finally {
    cancelTimer?.();
    ledger.wake = undefined;
  }
}
