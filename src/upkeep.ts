/**
 * What an open database does by itself now and then: looks at the space that is left and at the
 * clock, lets go of what has expired or nobody can name any more, erases what is due, reads for
 * damage, and keeps when users were seen. Nothing here waits, and nobody waits for it; what the
 * disk refuses is tried again.
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

/** What is looked after, and with what. */
export interface UpkeepParts
  extends Pick<SqlEnvironment, "blobs" | "catalog" | "clock" | "definitionOf" | "jobs" | "log"> {
  readonly auth: Auth;
  readonly store: LocalStore;
}

/** Begins at once with what a stop cut short. Returns what ends it. */
export function startUpkeep(parts: UpkeepParts): CancelTimer {
  const { auth, clock, log, store } = parts;
  const sweep = fileSweep(parts);
  attempt(log, "look at the free space", () => store.lookAtSpace());
  store.lookAtClock();
  beginDueErasures(parts);
  let hasEnded = false;
  const isEnded = (): boolean => hasEnded;
  sweepDropped(parts, isEnded);
  const stops = [
    repeatedly(clock, SPACE_LOOK_MS, () => {
      attempt(log, "look at the free space", () => store.lookAtSpace());
      store.lookAtClock();
      attempt(log, "drop what has expired", () => store.dropExpired());
      store.boundHistory();
    }),
    repeatedly(clock, SEEN_MS, () => {
      attempt(log, "note when users were seen", () => auth.keepSeen());
    }),
    repeatedly(clock, HOUR_MS, () => {
      sweep.begin();
      tidy(parts, isEnded);
    }),
  ];
  return () => {
    hasEnded = true;
    sweep.end();
    for (const stop of stops) stop();
    let hasMore = true;
    while (hasMore) hasMore = auth.keepSeen();
  };
}

/**
 * Removes files that no row names: in turns of its own, one sweep at a time, and none after `end`.
 */
function fileSweep(parts: UpkeepParts): { begin(): void; end(): void } {
  const { clock, definitionOf, log } = parts;
  let isEnded = false;
  let isUnderWay = false;
  const run = async (): Promise<void> => {
    isUnderWay = true;
    try {
      const count = await sweepFiles(parts, {
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
function tidy(parts: UpkeepParts, isEnded: () => boolean): void {
  const { log, store } = parts;
  sweepDropped(parts, isEnded);
  attempt(log, "discard history", () => store.discardHistory());
  attempt(log, "read segments for damage", () => store.scrub());
  beginDueErasures(parts);
}

/** Removes the files of dropped tables that a stop, or the disk, kept from going with them. */
function sweepDropped(
  { log, ...world }: Pick<UpkeepParts, "blobs" | "catalog" | "clock" | "log">,
  isEnded: () => boolean,
): void {
  const sweep = async (): Promise<void> => {
    const count = await sweepDroppedTables(world, isEnded);
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
