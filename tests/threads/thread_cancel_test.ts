/** Tests the flag that tells another thread to stop its work. */
import { expect, test } from "bun:test";
import { isRaised, watchedFlag } from "../../src/threads/mod.ts";
import { ManualClock } from "../support/manual_clock.ts";

test("watchedFlag is raised soon after the work was cancelled, and stays raised", () => {
  const clock = new ManualClock();
  let isCancelled = false;
  const { flag, stop } = watchedFlag(clock, () => isCancelled);
  clock.advance(1000);
  expect(isRaised(flag)).toBe(false);
  isCancelled = true;
  expect(isRaised(flag)).toBe(false);
  clock.advance(50);
  expect(isRaised(flag)).toBe(true);
  isCancelled = false;
  clock.advance(1000);
  expect(isRaised(flag)).toBe(true);
  stop();
});

test("watchedFlag is raised at once for work that was already cancelled", () => {
  expect(isRaised(watchedFlag(new ManualClock(), () => true).flag)).toBe(true);
});

test("watchedFlag stops checking once it is stopped", () => {
  const clock = new ManualClock();
  let askedCount = 0;
  const { flag, stop } = watchedFlag(clock, () => {
    askedCount += 1;
    return askedCount > 3;
  });
  clock.advance(50);
  expect(askedCount).toBe(2);
  stop();
  clock.advance(1000);
  expect(askedCount).toBe(2);
  expect(isRaised(flag)).toBe(false);
});
