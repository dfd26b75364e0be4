/**
 * Keeps connections from using up the file descriptors that the storage needs. When few
 * descriptors are left, the server stops accepting connections until enough of them are free
 * again.
 *
 *     accepting ──few are left──► paused ──twice as many are free──► accepting
 *
 * The runtime has no such limit. Without free descriptors, it would try to accept connections in a
 * busy loop, and statements would fail because they could not open files.
 */
import type { CancelTimer, Clock } from "../../base/clock.ts";
import type { Descriptors } from "../../base/descriptors.ts";
import type { Log } from "../../base/log.ts";

const LOOK_MS = 500;

/**
 * The maximum number of descriptors reserved for files. If the system's limit is low, only a share
 * of it is reserved.
 */
const RESERVED_MAX = 64;
const RESERVED_SHARE = 1 / 8;

export interface AcceptWatchOptions {
  readonly clock: Clock;
  readonly log: Log;
  readonly descriptors: () => Descriptors;
  /** Stops listening and closes idle connections. */
  readonly pause: () => void;
  /** Starts listening again. @throws {Error} If that is impossible. */
  readonly resume: () => void;
}

export class AcceptWatch {
  /** How many times accepting connections was paused. */
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
      const hint = "raise the limit on open files (ulimit -n), or use fewer connections";
      log.error("not accepting new connections: only a few file descriptors are left", {
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
      // Only the first failure is logged. The next check tries to listen again.
      if (!this.#isFailing)
        log.error("cannot resume listening; the server will try again", { reason: String(error) });
      this.#isFailing = true;
      return;
    }
    this.isPaused = false;
    this.#isFailing = false;
    log.info("accepting connections again: file descriptors are available", { ...found });
  }
}
