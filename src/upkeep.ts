/**
 * What an open database does by itself now and then: looks at the space that is left and at the
 * clock, lets go of what has expired or nobody can name any more, erases what is due, reads for
 * damage, and keeps when users were seen. Nothing here waits, and nobody waits for it; what the
 * disk refuses or a bug ends is tried again.
 */
import type { Auth } from "./auth/mod.ts";
import type { Bugs } from "./base/bugs.ts";
import { type CancelTimer, HOUR_MS } from "./base/clock.ts";
import { isExpected } from "./base/errors.ts";
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
  readonly bugs: Pick<Bugs, "contain">;
  readonly store: LocalStore;
}

/** Records failures. */
type Reports = Pick<UpkeepParts, "bugs" | "log">;

/** Begins at once with what a stop cut short. Returns what ends it. */
export function startUpkeep(parts: UpkeepParts): CancelTimer {
  const { auth, clock, store } = parts;
  const sweep = fileSweep(parts);
  const look = (): void => {
    attempt(parts, "look at the free space", () => store.lookAtSpace());
    attempt(parts, "look at the clock", () => store.lookAtClock());
  };
  look();
  beginErasures(parts);
  let hasEnded = false;
  const isEnded = (): boolean => hasEnded;
  sweepDropped(parts, isEnded);
  const stops = [
    repeatedly(clock, SPACE_LOOK_MS, () => {
      look();
      attempt(parts, "drop what has expired", () => store.dropExpired());
      attempt(parts, "bound the history", () => store.boundHistory());
    }),
    repeatedly(clock, SEEN_MS, () => {
      attempt(parts, "note when users were seen", () => auth.keepSeen());
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
      noteFailed(parts, "remove files that no row names", error);
    } finally {
      isUnderWay = false;
    }
  };
  return {
    begin() {
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
  const { store } = parts;
  sweepDropped(parts, isEnded);
  attempt(parts, "discard history", () => store.discardHistory());
  attempt(parts, "read segments for damage", () => store.scrub());
  beginErasures(parts);
}

function beginErasures(parts: UpkeepParts): void {
  attempt(parts, "erase dropped accounts", () => beginDueErasures(parts));
}

/** Removes the files of dropped tables that a stop, or the disk, kept from going with them. */
function sweepDropped(
  { bugs, log, ...world }: Reports & Pick<UpkeepParts, "blobs" | "catalog" | "clock">,
  isEnded: () => boolean,
): void {
  const sweep = async (): Promise<void> => {
    const count = await sweepDroppedTables(world, isEnded);
    if (count > 0) log.info("removed files of dropped tables", { tables: count });
  };
  void sweep().catch((error: unknown) => {
    noteFailed({ bugs, log }, "remove files of dropped tables", error);
  });
}

/** Does a task that comes again: its failure stops nobody. */
function attempt(reports: Reports, task: string, work: () => void): void {
  try {
    work();
  } catch (error) {
    noteFailed(reports, task, error);
  }
}

/** @throws {StateInDoubtError} */
function noteFailed({ bugs, log }: Reports, task: string, error: unknown): void {
  if (isExpected(error)) log.error(`cannot ${task}; it is tried again`, { error: error.message });
  else bugs.contain(error, `the attempt to ${task}; it is made again`);
}
