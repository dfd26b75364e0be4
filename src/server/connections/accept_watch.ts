/**
 * Keeps connections from taking the descriptors that files need: when few are left, the server
 * accepts no more until there are enough again.
 *
 *     accepting ──few are left──► paused ──twice as many are free──► accepting
 *
 * The runtime has no limit of its own. Without free descriptors it retries accepting in a loop,
 * which occupies a processor, and statements fail because no file can be opened.
 */
import type { CancelTimer, Clock } from "../../base/clock.ts";
import type { Descriptors } from "../../base/descriptors.ts";
import type { Log } from "../../base/log.ts";

const LOOK_MS = 500;

/** The most descriptors kept free for files; a small limit keeps a share of itself free. */
const RESERVED_MAX = 64;
const RESERVED_SHARE = 1 / 8;

export interface AcceptWatchOptions {
  readonly clock: Clock;
  readonly log: Log;
  readonly descriptors: () => Descriptors;
  /** Stops listening and closes idle connections. */
  readonly pause: () => void;
  /** Listens again. @throws {Error} If it cannot. */
  readonly resume: () => void;
}

export class AcceptWatch {
  /** How often accepting was paused. */
  pauseCount = 0;
  isPaused = false;
  readonly #options: AcceptWatchOptions;
  #cancel: CancelTimer | undefined;
  #isFailing = false;

  constructor(options: AcceptWatchOptions) {
    this.#options = options;
    this.#lookLater();
  }

  get descriptors(): Descriptors {
    return this.#options.descriptors();
  }

  stop(): void {
    this.#cancel?.();
  }

  #lookLater(): void {
    this.#cancel = this.#options.clock.after(LOOK_MS, () => {
      this.#look();
      this.#lookLater();
    });
  }

  #look(): void {
    const { log, pause } = this.#options;
    const { max, open } = this.descriptors;
    const reserved = Math.min(RESERVED_MAX, Math.floor(max * RESERVED_SHARE));
    const free = max - open;
    if (!this.isPaused && free < reserved) {
      this.isPaused = true;
      this.pauseCount += 1;
      pause();
      const hint = "raise the limit of open files (ulimit -n), or have fewer connections";
      log.error("few file descriptors are left: no more connections are accepted", {
        open,
        max,
        hint,
      });
    } else if (this.isPaused && free >= 2 * reserved) {
      this.#resume({ max, open });
    }
  }

  #resume(found: Descriptors): void {
    const { log, resume } = this.#options;
    try {
      resume();
    } catch (error) {
      // Safe: the next look tries again.
      if (!this.#isFailing) log.error("cannot listen again", { reason: String(error) });
      this.#isFailing = true;
      return;
    }
    this.isPaused = false;
    this.#isFailing = false;
    log.info("there are file descriptors again: connections are accepted", { ...found });
  }
}
