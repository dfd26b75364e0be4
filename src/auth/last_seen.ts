/**
 * Records when each user last used a token, and when each service token was last used.
 *
 * These times may change every second, so they are kept in memory and written to the catalog at
 * intervals. Times not yet written when the process ends are lost, which is acceptable because
 * they are only informational.
 */
import type { Clock } from "../base/clock.ts";
import { DatabaseError } from "../base/errors.ts";
import type { Log } from "../base/log.ts";
import type { Catalog, ServiceTokenEntry, UserEntry } from "../catalog/mod.ts";

export interface LastSeenOptions {
  catalog: Catalog;
  clock: Clock;
  log: Log;
}

/**
 * The maximum number of users whose last-seen times are written in a single transaction. Each
 * transaction runs within one tick.
 */
const TOLD_AT_ONCE_MAX = 1000;

export class LastSeen {
  readonly #options: LastSeenOptions;
  /**
   * The times at which users last used a token, keyed by user id, unless they are already in the
   * catalog.
   */
  readonly #times = new Map<string, number>();
  /** The times at which service tokens were last used, keyed by token name. */
  readonly #tokenTimes = new Map<string, number>();

  constructor(options: LastSeenOptions) {
    this.#options = options;
  }

  note(userId: string): void {
    this.#times.set(userId, this.#options.clock.nowMs());
  }

  /** Records the use of a service token. */
  noteToken(name: string): void {
    this.#tokenTimes.set(name, this.#options.clock.nowMs());
  }

  /**
   * Returns the time at which a service token was last used, in Unix milliseconds; undefined if it
   * has never been used.
   */
  tokenTimeMsOf({ createdAtMs, lastUsedAtMs, name }: ServiceTokenEntry): number | undefined {
    const usedMs = this.#tokenTimes.get(name);
    // A use recorded before this token was created belongs to an earlier token with the same name.
    return usedMs === undefined || usedMs < createdAtMs ? lastUsedAtMs : usedMs;
  }

  /**
   * Returns the time at which a user last used a token, in Unix milliseconds; undefined if the
   * user has never used one.
   */
  timeMsOf({ createdAtMs, deletedAtMs, lastSeenAtMs, userId }: UserEntry): number | undefined {
    const seenMs = deletedAtMs === undefined ? this.#times.get(userId) : undefined;
    // A use recorded before this account was created belongs to an earlier account with the same
    // name.
    return seenMs === undefined || seenMs < createdAtMs ? lastSeenAtMs : seenMs;
  }

  /**
   * Writes the recorded times to the catalog. If the write fails, for example because the disk is
   * full, it is retried the next time. No error is thrown, because no caller waits for the write.
   *
   * @returns Whether more recorded times remain to be written.
   */
  keep(): boolean {
    const { catalog, log } = this.#options;
    const times = new Map(this.#times.entries().take(TOLD_AT_ONCE_MAX));
    const tokenTimes = new Map(this.#tokenTimes);
    const tokens = catalog.serviceTokens.all().flatMap((token): ServiceTokenEntry[] => {
      const lastUsedAtMs = this.tokenTimeMsOf(token);
      if (lastUsedAtMs === undefined || !tokenTimes.has(token.name)) return [];
      return [{ ...token, lastUsedAtMs }];
    });
    try {
      catalog.accounts.noteSeen(times);
      catalog.serviceTokens.note(tokens);
    } catch (error) {
      if (!(error instanceof DatabaseError)) throw error;
      log.warn("cannot record when users were last seen", { error: error.message });
      return false;
    }
    for (const userId of times.keys()) this.#times.delete(userId);
    for (const name of tokenTimes.keys()) this.#tokenTimes.delete(name);
    return this.#times.size > 0;
  }
}
