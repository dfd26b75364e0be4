/**
 * A database opened in this process, on a directory of the caller's: every layer real, under the
 * configuration that the caller adds.
 */

import { bunDisk } from "../../src/base/bun_disk.ts";
import { type Clock, systemClock } from "../../src/base/clock.ts";
import type { Disk } from "../../src/base/disk.ts";
import { type Log, silentLog } from "../../src/base/log.ts";
import { type Random, systemRandom } from "../../src/base/random.ts";
import { parseConfig } from "../../src/config/mod.ts";
import type { PointBringer } from "../../src/copies/backup_jobs.ts";
import { type Database, openDatabase } from "../../src/database.ts";
import type { DatabaseParts, ReaderThreads } from "../../src/open_layers.ts";
import { readerThreads } from "../../src/reader_threads.ts";
import { inProcessReader, type OpenReader } from "../../src/sql/mod.ts";
import type { HeldReaders } from "./held_readers.ts";

export interface OpenOptions {
  /** Further lines of the configuration, each key with its section. */
  readonly config?: string;
  readonly clock?: Clock;
  readonly disk?: Disk;
  readonly log?: Log;
  readonly random?: Random;
  readonly jwtSecret?: () => Uint8Array;
  /** Sends every query that can be read elsewhere to readers, which run in this thread. */
  readonly readsElsewhere?: boolean;
  /** Divides every query that can be divided over three such readers. */
  readonly divides?: boolean;
  /** Long queries are read in threads, as in a server; the clock should be that of the system. */
  readonly inThreads?: boolean;
  /** Whether they are sent statements before these turn out to be long; absent: they are. */
  readonly takesAll?: boolean;
  /** Holds, fails or refuses those readers. */
  readonly heldReaders?: HeldReaders;
  /** Who brings a backup to a point: a thread, as in a server. */
  readonly bringInThread?: PointBringer;
}

/**
 * Lines of the configuration without which most of the time of a start is spent on zeros: every
 * file of the log is written full of them, and the reserve is, too.
 */
export const SMALL_FILES = "storage.ballast_bytes = 0\nstorage.wal_segment_bytes = 4194304";

/** The readers of a test run whose queries do not stay on the event loop. */
const READERS = process.env["TIDEMARK_TEST_READERS"];

/** A failure of the log, after which a server would stop, is thrown. */
export function openAt(
  dataPath: string,
  {
    bringInThread,
    clock = systemClock,
    config = "",
    disk = bunDisk,
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
    readers: inThreads ? { open: readerThreads } : readers,
    onFatal: (cause) => {
      throw cause;
    },
  });
}

/** Each reader runs straight through, so the first would read all if they did not take turns. */
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
