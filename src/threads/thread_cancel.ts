/**
 * How work in another thread is told to stop: through a number in shared memory, since work that is
 * under way reads no message.
 */
import type { CancelTimer, Clock } from "../base/clock.ts";

/** How often it is asked whether the work should go on. */
const LOOK_MS = 50;

/** One number, which is no longer 0 once the work is cancelled. */
export type CancelFlag = Int32Array<SharedArrayBuffer>;

/** For the thread that works. */
export function isRaised(flag: CancelFlag): boolean {
  return Atomics.load(flag, 0) !== 0;
}

/** A flag that is raised soon after somebody asked to stop, until `stop` is called. */
export function watchedFlag(
  clock: Clock,
  isCancelled: () => boolean,
): { readonly flag: CancelFlag; readonly stop: CancelTimer } {
  const flag = new Int32Array(new SharedArrayBuffer(Int32Array.BYTES_PER_ELEMENT));
  let cancelTimer: CancelTimer | undefined;
  const look = (): void => {
    if (isCancelled()) Atomics.store(flag, 0, 1);
    else cancelTimer = clock.after(LOOK_MS, look);
  };
  look();
  return { flag, stop: () => cancelTimer?.() };
}
