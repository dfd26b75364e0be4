/**
 * What an open database does by itself now and then: looks at the space that is left and at the
 * clock, lets go of what has expired or nobody can name any more, erases what is due, reads for damage,
 * and keeps when users were seen. Nothing here waits, and nobody waits for it; what the disk refuses is tried again.
 */
import type { Auth } from "./auth/mod.ts";
import { type CancelTimer, HOUR_MS } from "./base/clock.ts";
import { isExpected } from "./base/errors.ts";
import type { Log } from "./base/log.ts";
import { repeatedly } from "./base/repeatedly.ts";
import {
  beginDueErasures,
  type SqlEnvironment,
  sweepDroppedTables,
  sweepFiles,
} from "./sql/mod.ts";
import type { LocalStore } from "./storage/mod.ts";

/** How often the free space, the clock and what has expired are looked at while nobody writes. */
const SPACE_LOOK_MS = 10_000;

/** How often the catalog is told when users were last seen. */
const SEEN_MS = 60_000;

/** Begins at once with what a stop cut short. Returns what ends it. */
export function startUpkeep(
  environment: SqlEnvironment,
  { auth, store }: { auth: Auth; store: LocalStore },
): CancelTimer {
  const { clock, log } = environment;
  const sweep = fileSweep(environment);
  attempt(log, "look at the free space", () => store.lookAtSpace());
  store.lookAtClock();
  beginDueErasures(environment);
  sweepDropped(environment);
  const stops = [
    repeatedly(clock, SPACE_LOOK_MS, () => {
      attempt(log, "look at the free space", () => store.lookAtSpace());
      store.lookAtClock();
      attempt(log, "drop what has expired", () => store.dropExpired());
      attempt(log, "bound the history", () => store.boundHistory());
    }),
    repeatedly(clock, SEEN_MS, () => {
      attempt(log, "note when users were seen", () => auth.keepSeen());
    }),
    repeatedly(clock, HOUR_MS, () => {
      sweep.begin();
      tidy(environment, store);
    }),
  ];
  return () => {
    sweep.end();
    for (const stop of stops) stop();
    let hasMore = true;
    while (hasMore) hasMore = auth.keepSeen();
  };
}

/** Removes files that no row names: in turns of its own, one sweep at a time, and none after `end`. */
function fileSweep(environment: SqlEnvironment): { begin(): void; end(): void } {
  const { clock, definitionOf, log } = environment;
  let isEnded = false;
  let isUnderWay = false;
  const run = async (): Promise<void> => {
    isUnderWay = true;
    try {
      const count = await sweepFiles(environment, {
        historyMsOf: (table) => definitionOf(table).historyMs,
        nowMs: clock.nowMs(),
        isEnded: () => isEnded,
      });
      if (count > 0) log.info("removed files that no row names", { count });
    } catch (error) {
      noteRefused(log, "remove files that no row names", error);
    } finally {
      isUnderWay = false;
    }
  };
  return {
    begin() {
      // What it fails with is a bug, and stops the process.
      if (!isUnderWay) void run();
    },
    end() {
      isEnded = true;
    },
  };
}

/**
 * Discards history that is old enough, reads a part of the segments for damage, erases dropped
 * accounts.
 */
function tidy(environment: SqlEnvironment, store: LocalStore): void {
  const { log } = environment;
  sweepDropped(environment);
  attempt(log, "discard history", () => store.discardHistory());
  attempt(log, "read segments for damage", () => store.scrub());
  beginDueErasures(environment);
}

/** Removes the files of dropped tables that a stop, or the disk, kept from going with them. */
function sweepDropped(environment: SqlEnvironment): void {
  const { log } = environment;
  const sweep = async (): Promise<void> => {
    const count = await sweepDroppedTables(environment);
    if (count > 0) log.info("removed files of dropped tables", { tables: count });
  };
  // What else it fails with is a bug, and stops the process.
  void sweep().catch((error: unknown) => {
    noteRefused(log, "remove files of dropped tables", error);
  });
}

/** Does a task that comes again: what the disk or the catalog refuses now stops nobody. */
function attempt(log: Log, task: string, work: () => void): void {
  try {
    work();
  } catch (error) {
    noteRefused(log, task, error);
  }
}

/** @throws What is a bug. */
function noteRefused(log: Log, task: string, error: unknown): void {
  if (!isExpected(error)) throw error;
  log.error(`cannot ${task}; it is tried again`, { error: error.message });
}
