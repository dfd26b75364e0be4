/**
 * Defines the clock interface. Code reads the time only through this interface, so that the entire
 * engine can run in a simulation.
 *
 * This is the only file that reads the system clock and sets system timers.
 */

export const HOUR_MS = 3_600_000;

/** Cancels a timer. Calling it again, or after the timer has fired, has no effect. */
export type CancelTimer = () => void;

export interface Clock {
  /**
   * Returns the wall-clock time in milliseconds since 1970-01-01T00:00:00Z. It may jump in either
   * direction.
   */
  nowMs(): number;
  /**
   * Returns the number of milliseconds since an arbitrary moment, possibly with a fraction. The
   * value never decreases.
   */
  monotonicMs(): number;
  /**
   * Runs `callback` once, at least `delayMs` from now. The timer does not keep the process alive.
   */
  after(delayMs: number, callback: () => void): CancelTimer;
  /** Lets other work run on the event loop. The promise resolves in a later tick. */
  yield(): Promise<void>;
}

/**
 * Converts a time on the monotonic clock to wall-clock time, based on the current setting of the
 * wall clock.
 */
export function wallMsAt(clock: Pick<Clock, "monotonicMs" | "nowMs">, monotonicMs: number): number {
  return Math.round(clock.nowMs() - clock.monotonicMs() + monotonicMs);
}

/** Rounds a duration to at most three decimal places, for display. */
export function shownMs(ms: number): number {
  return Math.round(ms * 1000) / 1000;
}

/**
 * Keeps the process alive although no socket is listening. The timers of a clock do not keep it
 * alive.
 */
export function keepAlive(): CancelTimer {
  const timer = setInterval(() => undefined, HOUR_MS);
  return () => clearInterval(timer);
}

/** The system's clock. */
export const systemClock: Clock = {
  nowMs: () => Date.now(),
  monotonicMs: () => performance.now(),
  after(delayMs, callback) {
    // The delay is rounded up, because a system timer would ignore the fraction of a millisecond
    // and fire too early.
    const timer = setTimeout(callback, Math.ceil(delayMs));
    timer.unref();
    return () => clearTimeout(timer);
  },
  yield: () => new Promise((resolve) => setImmediate(resolve)),
};

/** Formats a time for messages and the log: ISO 8601 in UTC, with milliseconds. */
export function timeText(unixMs: number): string {
  return new Date(unixMs).toISOString();
}
