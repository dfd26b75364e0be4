/**
 * A clock that moves only when a test moves it, and counts how often somebody lets others run.
 */
import { ManualClock } from "./manual_clock.ts";

export class CountingClock extends ManualClock {
  yieldCount = 0;

  override yield(): Promise<void> {
    this.yieldCount += 1;
    return super.yield();
  }
}
