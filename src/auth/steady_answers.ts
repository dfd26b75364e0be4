/**
 * Gives responses that take equally long whatever their result.
 *
 * A sign-up whose name is free writes to the disk, and one whose name is taken does not. If the
 * response came when the work is done, its time would reveal to strangers which accounts exist. It
 * comes at a fixed time after the beginning instead.
 */
import type { Clock } from "../base/clock.ts";

/** The time of a response, longer than a transaction of the catalog takes on a busy disk. */
const STEADY_MS = 100;

/** Performs short work, and returns its result {@linkcode STEADY_MS} after the beginning. */
export async function steadily<T>(clock: Clock, work: () => T): Promise<T> {
  // The timer starts first. A timer that started after the work would end a fraction of a
  // millisecond later, which many repetitions reveal.
  const passed = new Promise<void>((resolve) => void clock.after(STEADY_MS, resolve));
  try {
    return work();
  } finally {
    await passed;
  }
}
