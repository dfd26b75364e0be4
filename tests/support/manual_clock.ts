/** A clock that advances only when a test advances it. */
import { assert } from "../../src/base/assert.ts";
import type { CancelTimer, Clock } from "../../src/base/clock.ts";
import { SEQ_EPOCH_MS } from "../../src/base/seq.ts";

interface Timer {
  readonly atMs: number;
  readonly order: number;
  readonly callback: () => void;
}

/** A clock that starts an hour after the epoch of seqs, so that seqs are small but not zero. */
export class ManualClock implements Clock {
  #nowMs: number;
  #monotonicMs = 0;
  #timers: Timer[] = [];
  #order = 0;

  constructor(nowMs: number = SEQ_EPOCH_MS + 3_600_000) {
    this.#nowMs = nowMs;
  }

  nowMs(): number {
    return this.#nowMs;
  }

  monotonicMs(): number {
    return this.#monotonicMs;
  }

  after(delayMs: number, callback: () => void): CancelTimer {
    const timer = { atMs: this.#monotonicMs + Math.max(0, delayMs), order: this.#order, callback };
    this.#order += 1;
    this.#timers.push(timer);
    return () => {
      this.#timers = this.#timers.filter((other) => other !== timer);
    };
  }

  yield(): Promise<void> {
    return new Promise((resolve) => setImmediate(resolve));
  }

  /** The number of timers that have not fired yet. */
  get timerCount(): number {
    return this.#timers.length;
  }

  /** Advances both clocks and fires the timers that fall due, in order, each at its own time. */
  advance(ms: number): void {
    assert(ms >= 0, "the time must not go back");
    const untilMs = this.#monotonicMs + ms;
    for (;;) {
      const timer = this.#earliest();
      if (timer === undefined || timer.atMs > untilMs) break;
      this.#timers = this.#timers.filter((other) => other !== timer);
      this.#move(timer.atMs - this.#monotonicMs);
      timer.callback();
    }
    this.#move(untilMs - this.#monotonicMs);
  }

  /** Sets only the wall clock, forward or back, as an operator or a time server does. */
  setWall(nowMs: number): void {
    this.#nowMs = nowMs;
  }

  #earliest(): Timer | undefined {
    let first: Timer | undefined;
    for (const timer of this.#timers) {
      const isEarlier = first === undefined || timer.atMs < first.atMs;
      if (isEarlier || (timer.atMs === first?.atMs && timer.order < first.order)) first = timer;
    }
    return first;
  }

  #move(ms: number): void {
    this.#nowMs += ms;
    this.#monotonicMs += ms;
  }
}
