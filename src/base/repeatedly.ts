/**
 * Work that is done again and again, such as looking at the free space: never two runs at once, and
 * none after it was cancelled.
 */
import type { CancelTimer, Clock } from "./clock.ts";

/** Runs a task again and again, so long after the one before. */
export function repeatedly(clock: Clock, pauseMs: number, task: () => void): CancelTimer {
  let cancel = clock.after(pauseMs, tick);
  function tick(): void {
    task();
    cancel = clock.after(pauseMs, tick);
  }
  return () => cancel();
}
