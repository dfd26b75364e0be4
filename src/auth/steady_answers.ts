/**
 * Answers that take equally long whatever they find out.
 *
 * A sign-up whose name is free writes to the disk, and one whose name is taken does not. If the
 * answer came when the work is done, its time would tell strangers which accounts exist. It comes
 * at a fixed time after the beginning instead.
 */
import type { Clock } from "../base/clock.ts";

/** Longer than a transaction of the catalog takes on a busy disk. */
const STEADY_MS = 100;

/** Does some short work, and returns its result {@linkcode STEADY_MS} after its beginning. */
export async function steadily<T>(clock: Clock, work: () => T): Promise<T> {
  // The timer starts first: one that started after the work would end a fraction of a millisecond
  // apart, which many repetitions reveal.
  const passed = new Promise<void>((resolve) => void clock.after(STEADY_MS, resolve));
  try {
    return work();
  } finally {
    await passed;
  }
}
