/**
 * Detects when the process approaches its memory limit, makes it release memory that it does not
 * need, and reports when it is so close to the limit that no new work should start.
 *
 *     ample ──above 70 %──► short: memory is released repeatedly ──below──► ample
 *                             └──above 85 %──► tight: work waits ──below 80 %──► short
 *
 * - File pages are not counted, because the system reclaims them when necessary.
 * - Releasing memory blocks the event loop for 20 to 100 ms, because all garbage is collected. If
 *   little is freed because the memory is in use, the pause before the next attempt doubles, up to
 *   a maximum.
 * - The pause ends early if memory use has grown considerably. The growth may consist entirely of
 *   garbage, and a load of wide rows can produce so much garbage within half a second that the
 *   process is killed.
 * - Checks at intervals are not sufficient: a long response that the client reads quickly produces
 *   hundreds of megabytes of garbage between two checks. Code that allocates a lot of memory
 *   therefore reports the number of bytes.
 */
import type { CancelTimer, Clock } from "./clock.ts";

export interface MemoryPressureOptions {
  readonly clock: Clock;
  /** The maximum amount of memory that the process may use, in bytes. */
  readonly bytesMax: number;
  /** Returns the memory in use, excluding file pages, in bytes. */
  readonly usedBytes: () => number;
  /** Releases memory whose contents can be recomputed, and collects garbage. */
  readonly giveBack: () => void;
  /** Called when so little memory is left that new work has to wait. */
  readonly onTight: (usedBytes: number) => void;
  /** Whether {@linkcode MemoryPressure.noteAllocated} takes effect even before `start`. */
  readonly isWatched?: boolean;
}

const SHORT_SHARE = 0.7;
const TIGHT_SHARE = 0.85;
const RELAXED_SHARE = 0.8;

/**
 * The interval between checks, in milliseconds. It is shorter while more than `QUICK_SHARE` of the
 * memory is in use.
 */
const LOOK_MS = 500;
const QUICK_LOOK_MS = 50;
const QUICK_SHARE = 0.5;

/** The minimum and maximum pause before memory is released again, in milliseconds. */
const PAUSE_MS_MIN = 500;
const PAUSE_MS_MAX = 16_000;

/**
 * The share of the memory below which an amount counts as little, whether it was freed or newly
 * used.
 */
const LITTLE_SHARE = 0.05;

export class MemoryPressure {
  readonly #options: MemoryPressureOptions;
  #isTight = false;
  #pauseMs = PAUSE_MS_MIN;
  /** The earliest time at which memory may be released again. */
  #nextMs = 0;
  /** The lowest memory use observed since memory was last released, in bytes. */
  #leastBytes = 0;
  #givenBackCount = 0;
  #isWatched: boolean;
  /** The number of bytes allocated since the last check. */
  #allocatedBytes = 0;

  constructor(options: MemoryPressureOptions) {
    this.#options = options;
    this.#isWatched = options.isWatched ?? false;
  }

  /** Whether so little memory is left that no new work should start. */
  get isTight(): boolean {
    return this.#isTight;
  }

  /** The number of times that memory has been released since startup. */
  get givenBackCount(): number {
    return this.#givenBackCount;
  }

  /** Starts checking the memory use periodically. Returns a function that stops the checks. */
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

  /**
   * Records that this many bytes were allocated. Checks the memory use once enough of them have
   * accumulated.
   */
  noteAllocated(bytes: number): void {
    this.#allocatedBytes += bytes;
    const isMuch = this.#allocatedBytes > LITTLE_SHARE * this.#options.bytesMax;
    if (isMuch && this.#isWatched) this.look();
  }

  /** Checks the memory use, and reacts to it. Returns the number of bytes in use. */
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
