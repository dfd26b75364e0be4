/**
 * Opens a database in-process, in the caller's directory. Every layer is real, and the caller may
 * add configuration.
 */

import type { PointBringer } from "../../src/backup/mod.ts";
import { type Clock, systemClock } from "../../src/base/clock.ts";
import type { Disk } from "../../src/base/disk.ts";
import { type Log, silentLog } from "../../src/base/log.ts";
import { type Random, systemRandom } from "../../src/base/random.ts";
import { parseConfig } from "../../src/config/mod.ts";
import { type Database, openDatabase } from "../../src/database.ts";
import type { DatabaseParts, ReaderThreads } from "../../src/open_layers.ts";
import { readerThreads } from "../../src/reader_threads.ts";
import { inProcessReader, type OpenReader } from "../../src/sql/mod.ts";
import type { HeldReaders } from "./held_readers.ts";
import { sparseDisk } from "./sparse_disk.ts";
import { threadEntry } from "./thread_entries.ts";

export interface OpenOptions {
  /** Additional configuration lines. Each key includes its section. */
  readonly config?: string;
  readonly clock?: Clock;
  readonly disk?: Disk;
  readonly log?: Log;
  readonly random?: Random;
  readonly jwtSecret?: () => Uint8Array;
  /** Whether every query that readers can run goes to readers on this thread. */
  readonly readsElsewhere?: boolean;
  /** Whether every query that can be divided is divided among three readers on this thread. */
  readonly divides?: boolean;
  /**
   * Whether long queries are read in threads, as in a server. The clock should then be the
   * system's.
   */
  readonly inThreads?: boolean;
  /**
   * Whether readers get statements immediately, before these turn out to be long. Defaults to
   * true.
   */
  readonly takesAll?: boolean;
  /**
   * Controls the readers on this thread: a test can hold them up, make them fail, or refuse to
   * open them.
   */
  readonly heldReaders?: HeldReaders;
  /**
   * Brings a restored backup forward to a point in time in a separate thread, as a server does.
   */
  readonly bringInThread?: PointBringer;
}

/**
 * Configuration lines that keep files small. Otherwise, opening a database spends most of its time
 * writing zeros to log files and the ballast.
 */
export const SMALL_FILES = "storage.ballast_bytes = 0\nstorage.wal_segment_bytes = 4194304";

/** Set if the queries of a test run are to run off the event loop. */
const READERS = process.env["TIDEMARK_TEST_READERS"];

/** Opens a database. Throws an error if the log fails, whereas a server would stop. */
export function openAt(
  dataPath: string,
  {
    bringInThread,
    clock = systemClock,
    config = "",
    disk = sparseDisk,
    jwtSecret = () => new Uint8Array(32).fill(7),
    log = silentLog,
    random = systemRandom,
    divides = READERS === "divided",
    inThreads = false,
    heldReaders,
    takesAll = true,
    readsElsewhere = divides || READERS === "all",
  }: OpenOptions = {},
): Promise<Database> {
  const readers = readsElsewhere
    ? readersHere({ clock, disk, random }, { divides, heldReaders, takesAll })
    : undefined;
  const toml = `storage.data_path = ${JSON.stringify(dataPath)}\n${config}`;
  return openDatabase(parseConfig(toml, "test.toml", {}).config, {
    disk,
    clock,
    random,
    log,
    jwtSecret,
    version: "0.0.0",
    bringInThread,
    readers: inThreads
      ? { open: (settings) => readerThreads(settings, threadEntry("reader_thread")) }
      : readers,
    onFatal: (cause) => {
      throw cause;
    },
  });
}

/**
 * The settings that make readers take turns. A reader on this thread runs without interruption, so
 * otherwise the first reader would read everything.
 */
const DIVIDING = { rowsEach: 0, msMin: 0, runsMin: 0, isInTurn: true, gatheredBytesMax: 64 * 1024 };

function readersHere(
  parts: Pick<DatabaseParts, "clock" | "disk" | "random">,
  {
    divides,
    heldReaders,
    takesAll,
  }: { divides: boolean; heldReaders: HeldReaders | undefined; takesAll: boolean },
): ReaderThreads {
  return {
    open: (settings) => {
      const open: OpenReader = (number, events) =>
        inProcessReader({ ...parts, settings: settings(number) })(number, events);
      return heldReaders?.wrap(open) ?? open;
    },
    takesAll,
    ...(divides && { countMax: 3, dividing: DIVIDING }),
  };
}
