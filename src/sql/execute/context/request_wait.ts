/**
 * Waits for work that another layer does for a statement, but not longer than the request may take.
 */
import type { Clock } from "../../../base/clock.ts";
import { checkDeadline, type RequestLedger } from "./request_ledger.ts";

/** The maximum delay of a timer, in milliseconds. */
const DELAY_MS_MAX = 2 ** 31 - 1;

/**
 * Returns the result of the work. If the request ends first, the work receives an abort signal, and
 * its result or failure is ignored.
 *
 * @throws {DatabaseError} STATEMENT_TIMEOUT, CANCELLED, SHUTTING_DOWN, and errors of the work
 */
export async function withinRequest<Result>(
  work: (signal: AbortSignal) => Promise<Result>,
  { clock, ledger }: { clock: Clock; ledger: RequestLedger },
): Promise<Result> {
  const leftMs = ledger.deadlineMs - checkDeadline(ledger, clock);
  const controller = new AbortController();
  const { promise: ended, reject } = Promise.withResolvers<never>();
  const end = (): void => {
    controller.abort();
    try {
      checkDeadline(ledger, clock);
    } catch (error) {
      // The caller receives the error.
      reject(error);
    }
  };
  ledger.wake = end;
  const cancelTimer = clock.after(Math.min(leftMs, DELAY_MS_MAX), end);
  try {
    return await Promise.race([work(controller.signal), ended]);
  } finally {
    cancelTimer();
    ledger.wake = undefined;
  }
}
