/**
 * Time comes in through this interface, so that the whole engine runs in a simulation.
 *
 * The one file that reads the system's clock and sets its timers.
 */

export const HOUR_MS = 3_600_000;

/** Cancels a timer; doing so twice, or after it fired, changes nothing. */
export type CancelTimer = () => void;

export interface Clock {
  /** Milliseconds since 1970-01-01T00:00:00Z; may jump either way. */
  nowMs(): number;
  /** Milliseconds from an arbitrary start; never goes back. May have a fraction. */
  monotonicMs(): number;
  /** Runs `callback` once, `delayMs` from now. Does not keep the process alive. */
  after(delayMs: number, callback: () => void): CancelTimer;
  /** Lets other work run: resolves in a later turn of the event loop. */
  yield(): Promise<void>;
}

/** What the wall clock, as it is set now, would have said at a time of the monotonic clock. */
export function wallMsAt(clock: Pick<Clock, "monotonicMs" | "nowMs">, monotonicMs: number): number {
  return Math.round(clock.nowMs() - clock.monotonicMs() + monotonicMs);
}

/** Rounds a duration for display: milliseconds with at most three decimals. */
export function shownMs(ms: number): number {
  return Math.round(ms * 1000) / 1000;
}

/** Keeps the process alive while no socket is listening; timers of a clock do not. */
export function keepAlive(): CancelTimer {
  const timer = setInterval(() => undefined, HOUR_MS);
  return () => clearInterval(timer);
}

/** The system's clock. */
export const systemClock: Clock = {
  nowMs: () => Date.now(),
  monotonicMs: () => performance.now(),
  after(delayMs, callback) {
    const timer = setTimeout(callback, delayMs);
    timer.unref();
    return () => clearTimeout(timer);
  },
  yield: () => new Promise((resolve) => setImmediate(resolve)),
};
