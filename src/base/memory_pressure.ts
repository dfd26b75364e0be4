/**
 * Notices when the process approaches its memory limit, makes it release memory that it does not
 * need, and reports when it is so close that no further work should begin.
 *
 *     ample ──above 70 %──► short: memory is released repeatedly ──below──► ample
 *                             └──above 85 %──► tight: work waits ──below 80 %──► short
 *
 * - File pages are not counted: the system reclaims them by itself.
 * - Releasing memory occupies the event loop for 20 to 100 ms, because all garbage is collected. If
 *   this frees little, because the memory is in use, the pause until the next time doubles, up to a
 *   bound.
 * - The pause ends early once memory use has grown considerably: the growth may all be garbage, and
 *   a load of wide rows can produce so much garbage within half a second that the process is
 *   killed.
 * - Checking at intervals is not enough: a long response that is read fast produces hundreds of
 *   megabytes of garbage between two checks. Code that allocates much memory therefore reports the
 *   bytes.
 */
import type { CancelTimer, Clock } from "./clock.ts";

export interface MemoryPressureOptions {
  readonly clock: Clock;
  /** The maximum memory of the process in bytes. */
  readonly bytesMax: number;
  /** Returns the memory in use, without file pages. */
  readonly usedBytes: () => number;
  /** Releases memory whose contents can be recomputed, and collects garbage. */
  readonly giveBack: () => void;
  /** Called when work begins to wait. */
  readonly onTight: (usedBytes: number) => void;
  /** True if {@linkcode MemoryPressure.noteAllocated} has an effect without `start`. */
  readonly isWatched?: boolean;
}

const SHORT_SHARE = 0.7;
const TIGHT_SHARE = 0.85;
const RELAXED_SHARE = 0.8;

/**
 * The interval between checks. It is shorter once much memory is used, because usage may grow fast.
 */
const LOOK_MS = 500;
const QUICK_LOOK_MS = 50;
const QUICK_SHARE = 0.5;

/** The bounds of the pause before memory is released again. */
const PAUSE_MS_MIN = 500;
const PAUSE_MS_MAX = 16_000;

/**
 * The fraction of the memory below which an amount counts as little, whether it is released or
 * added.
 */
const LITTLE_SHARE = 0.05;

export class MemoryPressure {
  readonly #options: MemoryPressureOptions;
  #isTight = false;
  #pauseMs = PAUSE_MS_MIN;
  /** The earliest time at which memory may be released again. */
  #nextMs = 0;
  /** The minimum memory in use since memory was last released. */
  #leastBytes = 0;
  #givenBackCount = 0;
  #isWatched: boolean;
  /** The bytes that were allocated since the last check. */
  #allocatedBytes = 0;

  constructor(options: MemoryPressureOptions) {
    this.#options = options;
    this.#isWatched = options.isWatched ?? false;
  }

  /** True if no further work should begin. */
  get isTight(): boolean {
    return this.#isTight;
  }

  /** The number of times that memory was released. */
  get givenBackCount(): number {
    return this.#givenBackCount;
  }

  /** Checks periodically. Returns a function that ends the checks. */
  start(): CancelTimer {
    const { bytesMax, clock } = this.#options;
    this.#isWatched = true;
    let cancel: CancelTimer;
    const look = (): void => {
      const isMuch = this.look() > QUICK_SHARE * bytesMax;
      cancel = clock.after(isMuch ? QUICK_LOOK_MS : LOOK_MS, look);
    };
    look();
    return () => {
      this.#isWatched = false;
      cancel();
    };
  }

  /** Records that this many bytes were allocated, and checks once they add up. */
  noteAllocated(bytes: number): void {
    this.#allocatedBytes += bytes;
    const isMuch = this.#allocatedBytes > LITTLE_SHARE * this.#options.bytesMax;
    if (isMuch && this.#isWatched) this.look();
  }

  /** Checks the memory in use. Returns it, in bytes. */
  look(): number {
    const { bytesMax, clock, giveBack, onTight, usedBytes } = this.#options;
    const little = LITTLE_SHARE * bytesMax;
    this.#allocatedBytes = 0;
    let used = usedBytes();
    this.#leastBytes = Math.min(this.#leastBytes, used);
    if (used <= SHORT_SHARE * bytesMax) {
      this.#pauseMs = PAUSE_MS_MIN;
    } else if (clock.monotonicMs() >= this.#nextMs || used - this.#leastBytes > little) {
      const before = used;
      giveBack();
      this.#givenBackCount += 1;
      used = usedBytes();
      this.#leastBytes = used;
      const isLittle = before - used < little;
      this.#pauseMs = isLittle ? Math.min(2 * this.#pauseMs, PAUSE_MS_MAX) : PAUSE_MS_MIN;
      this.#nextMs = clock.monotonicMs() + this.#pauseMs;
    }
    const share = this.#isTight ? RELAXED_SHARE : TIGHT_SHARE;
    const wasTight = this.#isTight;
    this.#isTight = used > share * bytesMax;
    if (this.#isTight && !wasTight) onTight(used);
    return used;
  }
}
