/**
 * Cancels work in another thread through a number in shared memory, because a busy thread reads no
 * messages.
 */
import type { CancelTimer, Clock } from "../base/clock.ts";

/** The interval, in milliseconds, between checks for cancellation by the caller. */
const LOOK_MS = 50;

/** A number in shared memory that becomes non-zero once the work is cancelled. */
export type CancelFlag = Int32Array<SharedArrayBuffer>;

/** Whether cancellation has been requested. Called in the thread that does the work. */
export function isRaised(flag: CancelFlag): boolean {
  return Atomics.load(flag, 0) !== 0;
}

/**
 * Returns a flag that is raised soon after cancellation is requested, unless `stop` is called
 * first.
 */
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
