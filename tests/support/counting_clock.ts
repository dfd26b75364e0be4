/**
 * A clock that advances only when a test advances it. It counts how often work yields to others,
 * and calls a listener each time.
 */
import { ManualClock } from "./manual_clock.ts";

export class CountingClock extends ManualClock {
  yieldCount = 0;
  onYield: () => void = () => undefined;

  override yield(): Promise<void> {
    this.yieldCount += 1;
    this.onYield();
    return super.yield();
  }
}
