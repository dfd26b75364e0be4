/**
 * Runs the recurring tasks of an open database. They check the memory, the free space and the
 * clock, remove expired rows and files that can no longer be referenced, erase dropped accounts,
 * scan segments for damage, and save when users were last seen. Nothing here waits, and no caller
 * waits for it. A task that ends with a disk error or a bug is tried again.
 */
import type { Auth } from "./auth/mod.ts";
import type { Bugs } from "./base/bugs.ts";
import { type CancelTimer, HOUR_MS } from "./base/clock.ts";
import { isExpected } from "./base/errors.ts";
import { repeatedly } from "./base/repeatedly.ts";
import {
  beginDueErasures,
  ExpirySweep,
  resumeIndexBuilds,
  type SqlEnvironment,
  sweepDroppedTables,
  sweepFiles,
} from "./sql/mod.ts";
import type { LocalStore } from "./storage/mod.ts";

/**
 * How often free space, the clock and expiry are checked while there are no writes, in
 * milliseconds.
 */
const SPACE_LOOK_MS = 10_000;

/**
 * How often expired rows are deleted. Even with the shortest TTL, one second, a row stays for at
 * most two seconds.
 */
const EXPIRY_MS = 1000;

/** How often the catalog records when users were last seen. */
const SEEN_MS = 60_000;

/** The parts of the database that maintenance tasks work on. */
export interface UpkeepParts
  extends Pick<
    SqlEnvironment,
    | "blobs"
    | "catalog"
    | "clock"
    | "definitionOf"
    | "exports"
    | "jobs"
    | "log"
    | "topics"
    | "writeGates"
  > {
  readonly auth: Auth;
  readonly bugs: Pick<Bugs, "contain">;
  readonly store: LocalStore;
}

/** The destinations to which failures are reported. */
type Reports = Pick<UpkeepParts, "bugs" | "log">;

/**
 * Starts the recurring tasks, and immediately resumes the tasks that a shutdown interrupted.
 * Before returning, closes the write gates of tables whose committed unique indexes have not been
 * built yet. Returns a function that stops the tasks.
 */
export function startUpkeep(parts: UpkeepParts): CancelTimer {
  const { auth, clock, store } = parts;
  const sweep = fileSweep(parts);
  const expiry = new ExpirySweep(parts);
  const deleteExpired = (): void => {
    void expiry.run().catch((error: unknown) => noteFailed(parts, "delete expired rows", error));
  };
  const look = (): void => {
    attempt(parts, "check the free space", () => store.lookAtSpace());
    attempt(parts, "check the clock", () => store.lookAtClock());
  };
  look();
  deleteExpired();
  beginErasures(parts);
  resumeIndexBuilds(parts);
  let hasEnded = false;
  const isEnded = (): boolean => hasEnded;
  sweepDropped(parts, isEnded);
  const stops = [
    repeatedly(clock, SPACE_LOOK_MS, () => {
      look();
      attempt(parts, "drop expired entries", () => store.dropExpired());
      attempt(parts, "limit the history", () => store.boundHistory());
    }),
    repeatedly(clock, EXPIRY_MS, deleteExpired),
    repeatedly(clock, SEEN_MS, () => {
      attempt(parts, "record when users were seen", () => auth.keepSeen());
    }),
    repeatedly(clock, HOUR_MS, () => {
      sweep.begin();
      attempt(parts, "drop idle guests", () => auth.dropIdleGuests());
      tidy(parts, isEnded);
    }),
  ];
  return () => {
    hasEnded = true;
    sweep.end();
    expiry.end();
    for (const stop of stops) stop();
    let hasMore = true;
    while (hasMore) hasMore = auth.keepSeen();
  };
}

/**
 * Returns a sweep that removes files that no row references, in time slices. Only one sweep runs
 * at a time, and none starts after `end`.
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
      if (count > 0) log.info("removed files that no row references", { count });
    } catch (error) {
      noteFailed(parts, "remove files that no row references", error);
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
 * Discards history that is old enough, scans a part of the segments for damage, and erases dropped
 * accounts.
 */
function tidy(parts: UpkeepParts, isEnded: () => boolean): void {
  const { store } = parts;
  sweepDropped(parts, isEnded);
  sweepExports(parts);
  attempt(parts, "discard history", () => store.discardHistory());
  attempt(parts, "check segments for damage", () => store.scrub());
  beginErasures(parts);
}

function beginErasures(parts: UpkeepParts): void {
  attempt(parts, "erase dropped accounts", () => beginDueErasures(parts));
}

/** Removes the files of dropped tables that a shutdown or a disk failure left behind. */
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

/** Removes archives of exports that can no longer be downloaded. */
function sweepExports({ bugs, exports, log }: Reports & Pick<UpkeepParts, "exports">): void {
  const sweep = async (): Promise<void> => {
    const count = await exports.removeExpired();
    if (count > 0) log.info("removed expired exports", { count });
  };
  void sweep().catch((error: unknown) => {
    noteFailed({ bugs, log }, "remove expired exports", error);
  });
}

/** Runs a recurring task. Its failure does not affect the other tasks. */
function attempt(reports: Reports, task: string, work: () => void): void {
  try {
    work();
  } catch (error) {
    noteFailed(reports, task, error);
  }
}

/** Records the failure of a recurring task. @throws {StateInDoubtError} */
function noteFailed({ bugs, log }: Reports, task: string, error: unknown): void {
  if (isExpected(error))
    log.error(`cannot ${task}; the server will try again`, { error: error.message });
  else bugs.contain(error, `the attempt to ${task}; the server will try again`);
}
