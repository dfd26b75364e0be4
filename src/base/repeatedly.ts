/**
 * Runs work periodically, for example a check of the free disk space. Two runs never overlap, and
 * no run starts after a cancellation.
 */
import type { CancelTimer, Clock } from "./clock.ts";

/**
 * Runs a task repeatedly, with a pause after each run. Returns a function that cancels further
 * runs.
 */
export function repeatedly(clock: Clock, pauseMs: number, task: () => void): CancelTimer {
  let cancel = clock.after(pauseMs, tick);
  function tick(): void {
    task();
    cancel = clock.after(pauseMs, tick);
  }
  return () => cancel();
}
