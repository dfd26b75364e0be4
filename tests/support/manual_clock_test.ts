/**
 * Tests the manual clock: timers fire in order and at their own time, unless they are cancelled.
 */
import { expect, test } from "bun:test";
import { ManualClock } from "./manual_clock.ts";

test("advance fires due timers in order, at their own time", () => {
  const clock = new ManualClock(1000);
  const fired: string[] = [];
  clock.after(20, () => fired.push(`b ${clock.nowMs()}`));
  clock.after(10, () => {
    fired.push(`a ${clock.nowMs()}`);
    clock.after(5, () => fired.push(`c ${clock.nowMs()}`));
  });
  const cancel = clock.after(12, () => fired.push("never"));
  clock.after(30, () => fired.push("later"));
  cancel();
  clock.advance(25);
  expect(fired).toEqual(["a 1010", "c 1015", "b 1020"]);
  expect(clock.nowMs()).toBe(1025);
  expect(clock.monotonicMs()).toBe(25);
  expect(clock.timerCount).toBe(1);
});

test("setWall moves only the wall clock, not the monotonic clock or timers", () => {
  const clock = new ManualClock(1000);
  let fired = false;
  clock.after(10, () => {
    fired = true;
  });
  clock.setWall(0);
  clock.advance(9);
  expect(fired).toBe(false);
  expect(clock.nowMs()).toBe(9);
  expect(clock.monotonicMs()).toBe(9);
});
