/**
 * Tests the sleeps of a query, both on this thread and on another. The query is restarted after
 * each sleep.
 */
import { expect, test } from "bun:test";
import { HOUR_MS } from "../../../../src/base/clock.ts";
import {
  newLedger,
  type RequestLedger,
} from "../../../../src/sql/execute/context/request_ledger.ts";
import { ASLEEP, Sleeps, type SleepsOptions } from "../../../../src/sql/execute/context/sleeps.ts";
import { ManualClock } from "../../../support/manual_clock.ts";

function made(options: Partial<SleepsOptions> = {}): {
  clock: ManualClock;
  ledger: RequestLedger;
  sleeps: Sleeps;
} {
  const clock = new ManualClock();
  const ledger = newLedger(0, { timeoutMs: 0, timeoutMsDefault: 0, timeoutMsMax: 0 });
  const msMax = (): number => Number.POSITIVE_INFINITY;
  return { clock, ledger, sleeps: new Sleeps({ clock, ledger, msMax, ...options }) };
}

test("Sleeps tells another thread which sleeps are over, and how long they took", async () => {
  const { clock, ledger, sleeps } = made();
  expect(() => sleeps.sleep(300)).toThrow(ASLEEP);
  const over = sleeps.over();
  clock.advance(300);
  await over;
  sleeps.begin();
  sleeps.sleep(300);
  expect(() => sleeps.sleep(50)).toThrow(ASLEEP);
  const { soFar } = sleeps;
  expect(soFar).toEqual({ overCount: 1, sleepMs: 350, msMax: Number.POSITIVE_INFINITY });

  const waits: number[] = [];
  const there = made({ overCount: soFar.overCount, waitUntil: (untilMs) => waits.push(untilMs) });
  there.ledger.sleepMs = soFar.sleepMs;
  for (const ms of [300, 50, 0, 20]) there.sleeps.sleep(ms);
  expect(waits).toEqual([50, 20]);
  sleeps.noteSlept(there.ledger.sleepMs);
  expect(ledger.sleepMs).toBe(420);
});

test("Sleeps refuses more than an hour per request, and ends one at msMax", () => {
  const waits: number[] = [];
  const { ledger, sleeps } = made({
    msMax: () => 1000,
    waitUntil: (untilMs) => waits.push(untilMs),
  });
  sleeps.sleep(HOUR_MS - 1);
  sleeps.sleep(1);
  expect(waits).toEqual([1000, 1]);
  expect(ledger.sleepMs).toBe(HOUR_MS);
  expect(() => sleeps.sleep(1)).toThrow("a request may sleep for at most 3600 s in total");
});
