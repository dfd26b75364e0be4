/**
 * A clock by which a time slice is over at each check, so that work in steps yields after every
 * step, however fast the machine is. It counts the steps.
 */
import { CountingClock } from "./counting_clock.ts";

/** The time that passes at each check, longer than any time slice. */
const MS_PER_LOOK = 10;

export class HastyClock extends CountingClock {
  #lookCount = 0;

  override monotonicMs(): number {
    this.#lookCount += 1;
    return super.monotonicMs() + MS_PER_LOOK * this.#lookCount;
  }
}
