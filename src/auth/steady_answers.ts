/**
 * Delays responses so that all of them take the same time, regardless of their result.
 *
 * A sign-up writes to the disk if its name is free, but not if the name is taken. If the response
 * were sent as soon as the work was done, its duration would reveal to strangers which accounts
 * exist. The response is therefore sent at a fixed time after the work began.
 */
import type { Clock } from "../base/clock.ts";

/**
 * The duration of every delayed response, in milliseconds. A catalog transaction takes less time
 * even on a busy disk.
 */
const STEADY_MS = 100;

/** Performs a short task, and returns its result {@linkcode STEADY_MS} after the task began. */
export async function steadily<T>(clock: Clock, work: () => T): Promise<T> {
  // The timer is started before the work. A timer started afterwards would fire a fraction of a
  // millisecond later if the work took longer, and an attacker could measure this with many
  // repetitions.
  const passed = new Promise<void>((resolve) => void clock.after(STEADY_MS, resolve));
  try {
    return work();
  } finally {
    await passed;
  }
}
