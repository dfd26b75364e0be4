/**
 * Says when the system clock is far behind the ids: rows are then dated later than they were
 * written, and time stands still for what expires.
 *
 * Ids do not wait for the clock, so nothing else tells an operator.
 */
import { type Clock, HOUR_MS } from "../base/clock.ts";
import type { Log } from "../base/log.ts";
import { timeText } from "../base/time_text.ts";

/** From here on it is no jitter of a time server, nor what a burst of writes has borrowed. */
const BEHIND_MS_MAX = HOUR_MS;

export interface ClockWatchOptions {
  readonly clock: Clock;
  /** The time that ids have. */
  readonly ids: Pick<Clock, "nowMs">;
  readonly log: Log;
}

export class ClockWatch {
  readonly #options: ClockWatchOptions;
  #isBehind = false;

  constructor(options: ClockWatchOptions) {
    this.#options = options;
  }

  /** Looks at the clock: it is said once that it is far behind, and once that it has caught up. */
  look(): void {
    const { clock, ids, log } = this.#options;
    const clockMs = clock.nowMs();
    const idsMs = ids.nowMs();
    const isBehind = idsMs - clockMs > (this.#isBehind ? 0 : BEHIND_MS_MAX);
    if (isBehind === this.#isBehind) return;
    this.#isBehind = isBehind;
    const times = { clock: timeText(clockMs), newestId: timeText(idsMs) };
    if (isBehind) {
      log.warn("the system clock is far behind the newest sequence id: set the clock", times);
    } else {
      log.warn("the system clock has caught up with the newest sequence id", times);
    }
  }
}
