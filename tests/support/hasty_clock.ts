/**
 * A clock by which a turn is over at each look, so that work that is done in steps lets others run
 * after every one of them, however fast the machine is; it counts how often.
 */
import { CountingClock } from "./counting_clock.ts";

/** Longer than any turn. */
const MS_PER_LOOK = 10;

export class HastyClock extends CountingClock {
  #lookCount = 0;

  override monotonicMs(): number {
    this.#lookCount += 1;
    return super.monotonicMs() + MS_PER_LOOK * this.#lookCount;
  }
}
