/**
 * A clock on which a time slice is over at each check. Work in steps therefore yields after every
 * step, however fast the machine is. The clock also counts the yields.
 */
import { CountingClock } from "./counting_clock.ts";

/** The time that passes at each check, in milliseconds. It is longer than any time slice. */
const MS_PER_LOOK = 10;

export class HastyClock extends CountingClock {
  #lookCount = 0;

  override monotonicMs(): number {
    this.#lookCount += 1;
    return super.monotonicMs() + MS_PER_LOOK * this.#lookCount;
  }
}
