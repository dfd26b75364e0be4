/**
 * A clock that moves only when a test moves it, and counts how often somebody lets others run; who
 * wants to know of each is called.
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
