/**
 * When tokens of users were last used.
 *
 * It is noted each second in which a token is used, so it is kept in memory, and the catalog is
 * told now and then: what it was not told of when the process ends is lost, as the time of a look
 * is no promise to anybody.
 */
import type { Clock } from "../base/clock.ts";
import { DatabaseError } from "../base/errors.ts";
import type { Log } from "../base/log.ts";
import type { Catalog, UserEntry } from "../catalog/mod.ts";

export interface LastSeenOptions {
  catalog: Catalog;
  clock: Clock;
  log: Log;
}

/** Users of whom the catalog is told in one transaction, which is one turn of the event loop. */
const TOLD_AT_ONCE_MAX = 1000;

export class LastSeen {
  readonly #options: LastSeenOptions;
  /** Those that the catalog was not told of yet. */
  readonly #times = new Map<string, number>();

  constructor(options: LastSeenOptions) {
    this.#options = options;
  }

  note(userId: string): void {
    this.#times.set(userId, this.#options.clock.nowMs());
  }

  /** Undefined for never. */
  timeMsOf({ createdAtMs, deletedAtMs, lastSeenAtMs, userId }: UserEntry): number | undefined {
    const seenMs = deletedAtMs === undefined ? this.#times.get(userId) : undefined;
    // Before it was created another account had its name.
    return seenMs === undefined || seenMs < createdAtMs ? lastSeenAtMs : seenMs;
  }

  /**
   * Tells the catalog. What it cannot write, on a full disk for one, is tried again the next time:
   * nobody asked for it.
   *
   * @returns Whether there are more that it can be told at once.
   */
  keep(): boolean {
    const { catalog, log } = this.#options;
    const times = new Map(this.#times.entries().take(TOLD_AT_ONCE_MAX));
    try {
      catalog.noteSeen(times);
    } catch (error) {
      if (!(error instanceof DatabaseError)) throw error;
      log.warn("cannot keep when users were last seen", { error: error.message });
      return false;
    }
    for (const userId of times.keys()) this.#times.delete(userId);
    return this.#times.size > 0;
  }
}
