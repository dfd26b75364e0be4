/** The settings of a local store, and the parts provided by its creator. */
import type { Clock } from "../base/clock.ts";
import { timeText } from "../base/clock.ts";
import type { Disk } from "../base/disk.ts";
import { DatabaseError } from "../base/errors.ts";
import type { Log } from "../base/log.ts";
import type { Random } from "../base/random.ts";
import type { SeqGeneratorOptions } from "../base/seq.ts";
import type { SeqTimes } from "../base/seq_times.ts";
import type { MergeBounds } from "./background/merge_choice.ts";
import type { SegmentWork } from "./background/segment_work.ts";
import type { JobList } from "./contract/job_list.ts";
import type { Manifest } from "./contract/manifest.ts";
import type { TableDefinition } from "./contract/table_definition.ts";
import { type DataDirectory, openDataDirectory } from "./data_directory.ts";
import { Storages } from "./storages.ts";

/** The minimum size of a log file in bytes, with room for a few frames. */
const WAL_FILE_BYTES_MIN = 4096;

export interface LocalStoreOptions {
  /**
   * The number of this server in its cluster. `nodeBits` is the number of bits that store it in a
   * seq.
   */
  readonly nodeId: number;
  readonly nodeBits: number;
  /** Whether a commit is acknowledged once it is on disk (`sync`) or before (`relaxed`). */
  readonly durability: "sync" | "relaxed";
  /** The size of a log file in bytes. */
  readonly walSegmentBytes: number;
  /**
   * The log size in bytes above which tables are flushed early if their rows keep old log files
   * alive.
   */
  readonly walMaxBytes: number;
  /** The maximum size of one encoded row in bytes. */
  readonly rowBytesMax: number;
  /** The minimum free space in bytes, below which the store accepts only deletes and drops. */
  readonly minFreeBytes: number;
  /**
   * The number of bytes of disk space that are reserved and then freed when the disk is full; 0
   * reserves none.
   */
  readonly ballastBytes: number;
  /** The maximum total size in bytes of replaced versions in segments; 0 for no limit. */
  readonly historyBytesMax?: number;
  /**
   * The number of log bytes from which a columnar insert is written to the log in the tick of its
   * own commit. Tests use a smaller value.
   */
  readonly earlyWriteBytes?: number;
  /** The maximum size of a commit in bytes. Tests use a smaller value. */
  readonly commitBytesMax?: number;
  /** The maximum size in bytes of all memtables together. Tests use a smaller value. */
  readonly memtableBytesMax?: number;
  /** The size in bytes at which recovery starts another memtable. Tests use a smaller value. */
  readonly replayedBytesMax?: number;
  /** Decides which segments are merged. Tests use smaller bounds. */
  readonly mergeBounds?: MergeBounds;
  /**
   * The maximum size in bytes of decompressed segment parts that this thread caches. If undefined,
   * the limit stays as it is.
   */
  readonly cacheBytes?: number;
}

export interface LocalStoreParts {
  readonly disk: Disk;
  readonly dataPath: string;
  /**
   * The locked directory, if the caller opened it. The caller releases it after closing the
   * catalog.
   */
  readonly directory?: DataDirectory;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Log;
  readonly manifest: Manifest;
  /**
   * All existing tables, including tables that no catalog lists. Data of any other table is
   * removed.
   */
  readonly definitions: readonly TableDefinition[];
  /**
   * The opened storages other than the data directory in which tables may have segments. The
   * caller owns them.
   */
  readonly storages?: Storages | undefined;
  readonly options: LocalStoreOptions;
  /** Maps seqs to clock times. If undefined, the mapping lasts only as long as this process. */
  readonly seqTimes?: SeqTimes | undefined;
  /** Writes segments. If undefined, the store writes them in this thread, between other work. */
  readonly segmentWork?: SegmentWork | undefined;
  /** The job list to which the store adds its flushes and merges. */
  readonly jobs?: JobList | undefined;
  /** Returns the number of the first log file to keep while a backup is copying files. */
  readonly keepsLogFrom?: (() => number) | undefined;
  /**
   * Called after the log has begun another file. All earlier files are complete and durable by
   * then.
   */
  readonly onLogRolled?: (() => void) | undefined;
  /** Called once if the log fails. The process should stop, and recover when it is restarted. */
  readonly onFatal?: ((cause: unknown) => void) | undefined;
}

/**
 * The parts of a store, including parts that it opened because the caller did not provide them.
 */
export interface StoreWithPlaces extends LocalStoreParts {
  readonly directory: DataDirectory;
  readonly storages: Storages;
}

/** Opens the data directory, and adds it to a stack that releases it. */
export function openedBy(stack: DisposableStack, parts: LocalStoreParts): DataDirectory {
  const directory = openDataDirectory(parts.disk, parts.dataPath);
  return stack.adopt(directory, (it) => it.release());
}

/** Returns a set of storages with only the data directory. */
export function noStorages({ disk, dataPath, log, random }: LocalStoreParts): Storages {
  return new Storages({ disk, dataPath, log, random, allowedRoots: [] });
}

/**
 * Checks that a log file can hold the largest row.
 *
 * @throws {DatabaseError} INVALID_OPTION if the file is too small.
 */
export function requireFileFitsRow({ walSegmentBytes, rowBytesMax }: LocalStoreOptions): void {
  if (walSegmentBytes >= WAL_FILE_BYTES_MIN && walSegmentBytes >= 2 * rowBytesMax) return;
  throw new DatabaseError(
    "INVALID_OPTION",
    `Cannot open the log: its files have ${walSegmentBytes} bytes, but must have at least ` +
      `${WAL_FILE_BYTES_MIN}, and at least twice the maximum size of a row (${rowBytesMax} bytes)`,
  );
}

/**
 * Returns the handler that logs when the clock is set back. The clock may have been wrong before
 * it was set back, so the message does not ask the operator to correct it.
 */
export function toldIn(log: Log): NonNullable<SeqGeneratorOptions["onSetBack"]> {
  return ({ fromMs, toMs }) => {
    const what =
      "the system clock was set back; timestamps and expiry follow the new time, while new " +
      "_seq values stay ahead of it";
    log.warn(what, { from: timeText(fromMs), to: timeText(toMs) });
  };
}
