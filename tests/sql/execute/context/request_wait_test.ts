/**
 * Verifies that a wait within a request ends together with the request, even if a timer fires
 * early.
 */
import { expect, test } from "bun:test";
import type { CancelTimer } from "../../../../src/base/clock.ts";
import { cancelRequest } from "../../../../src/sql/execute/context/request_ledger.ts";
import { withinRequest } from "../../../../src/sql/execute/context/request_wait.ts";
import { endingAt } from "../../../support/ledgers.ts";
import { ManualClock } from "../../../support/manual_clock.ts";

/** A clock whose timers wait for whole milliseconds and thus fire slightly early. */
class TruncatingClock extends ManualClock {
  override after(delayMs: number, callback: () => void): CancelTimer {
    return super.after(Math.max(1, Math.floor(delayMs)), callback);
  }
}

const never = (): Promise<void> => new Promise(() => undefined);

/** Waits until a promise is rejected, and returns the error code. */
function codeOf(work: Promise<unknown>): Promise<unknown> {
  return work.then(
    () => "no error",
    (error: unknown) => (error as { code: string }).code,
  );
}

test("withinRequest ends at the deadline, even if its timer fires too early", async () => {
  const clock = new TruncatingClock();
  const ledger = endingAt(1000.5);
  let signal: AbortSignal | undefined;
  const work = (given: AbortSignal): Promise<void> => {
    signal = given;
    return never();
  };
  const code = codeOf(withinRequest(work, { clock, ledger }));
  clock.advance(0.25);
  ledger.wake?.();
  clock.advance(1000);
  expect(signal?.aborted).toBe(false);
  clock.advance(1);
  expect(await code).toBe("STATEMENT_TIMEOUT");
  expect(signal?.aborted).toBe(true);
  expect(clock.timerCount).toBe(0);
});

test("withinRequest ends when the request is cancelled, and not earlier", async () => {
  const clock = new ManualClock();
  const ledger = endingAt(0);
  const code = codeOf(withinRequest(never, { clock, ledger }));
  clock.advance(2 ** 32);
  cancelRequest(ledger, "kill");
  expect(await code).toBe("CANCELLED");
  expect(clock.timerCount).toBe(0);
});

test("withinRequest returns the result of its work, and sets no timer for a request that has ended", async () => {
  const clock = new ManualClock();
  expect(await withinRequest(() => Promise.resolve(1), { clock, ledger: endingAt(5) })).toBe(1);
  clock.advance(5);
  expect(await codeOf(withinRequest(never, { clock, ledger: endingAt(5) }))).toBe(
    "STATEMENT_TIMEOUT",
  );
  expect(clock.timerCount).toBe(0);
});
