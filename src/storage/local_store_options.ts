/**
 * What a local store is made of and how it behaves: what its opener says.
 */
import type { Clock } from "../base/clock.ts";
import type { Disk } from "../base/disk.ts";
import { DatabaseError } from "../base/errors.ts";
import type { Log } from "../base/log.ts";
import type { Random } from "../base/random.ts";
import type { SeqGeneratorOptions } from "../base/seq.ts";
import type { SeqTimes } from "../base/seq_times.ts";
import { timeText } from "../base/time_text.ts";
import type { MergeBounds } from "./background/merge_choice.ts";
import type { SegmentWork } from "./background/segment_work.ts";
import type { JobList } from "./contract/job_list.ts";
import type { Manifest } from "./contract/manifest.ts";
import type { TableDefinition } from "./contract/store.ts";
import { type DataDirectory, openDataDirectory } from "./data_directory.ts";
import { Storages } from "./storages.ts";

/** Smallest log file: room for a few frames. */
const WAL_FILE_BYTES_MIN = 4096;

export interface LocalStoreOptions {
  /** This server's number in its cluster, and how many bits of a seq hold it. */
  readonly nodeId: number;
  readonly nodeBits: number;
  /** Whether a commit is answered after (`sync`) or before the disk has it. */
  readonly durability: "sync" | "relaxed";
  /** Size of each log file. */
  readonly walSegmentBytes: number;
  /** Above this, tables that hold the log back are flushed early. */
  readonly walMaxBytes: number;
  /** Encoded bytes of one row. */
  readonly rowBytesMax: number;
  /** Below this much free space the store is read-only but for deletes. */
  readonly minFreeBytes: number;
  /** Room that is kept on the disk until it is full; 0 for none. */
  readonly ballastBytes: number;
  /** Replaced versions in segments may take so much room; 0 for no bound. */
  readonly historyBytesMax?: number;
  /**
   * Rows given by columns that take so many bytes of the log are written in their commit's own
   * turn; fewer suffice in a test.
   */
  readonly earlyWriteBytes?: number;
  /** Bytes of one commit; fewer in a test. */
  readonly commitBytesMax?: number;
  /** So much may a memtable hold before it is flushed early; less in a test. */
  readonly memtableBytesMax?: number;
  /** So much may a start put into one memtable before it begins another; less in a test. */
  readonly replayedBytesMax?: number;
  /** Which segments are merged; those of a test are smaller. */
  readonly mergeBounds?: MergeBounds;
  /** Unpacked parts of segments that this thread keeps; as it was when absent. */
  readonly cacheBytes?: number;
}

export interface LocalStoreParts {
  readonly disk: Disk;
  readonly dataPath: string;
  /** The locked directory, when the caller opened it, who releases it behind the catalog. */
  readonly directory?: DataDirectory;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Log;
  readonly manifest: Manifest;
  /** Every table there is, also those that no catalog knows. Data of others is removed. */
  readonly definitions: readonly TableDefinition[];
  /** Where tables may have their segments beside the data directory, opened; the caller's, too. */
  readonly storages?: Storages | undefined;
  readonly options: LocalStoreOptions;
  /** Maps seqs to clock times; without it, the mapping lives only as long as this process. */
  readonly seqTimes?: SeqTimes | undefined;
  /** Who writes segments; without it the store does, between other work of this thread. */
  readonly segmentWork?: SegmentWork | undefined;
  /** Where flushes and merges can be seen. */
  readonly jobs?: JobList | undefined;
  /** Files of the log from this number on stay, as long as somebody copies them. */
  readonly keepsLogFrom?: (() => number) | undefined;
  /** Called when the log began another file: those before it are whole, and durable. */
  readonly onLogRolled?: (() => void) | undefined;
  /** Called once when the log failed: the process should stop, and recover by starting again. */
  readonly onFatal?: ((cause: unknown) => void) | undefined;
}

/** The parts of a store, with those that it opens itself where the caller has none. */
export interface StoreWithPlaces extends LocalStoreParts {
  readonly directory: DataDirectory;
  readonly storages: Storages;
}

/** Opens the data directory, to be released with the rest of what is in a stack. */
export function openedBy(stack: DisposableStack, parts: LocalStoreParts): DataDirectory {
  const directory = openDataDirectory(parts.disk, parts.dataPath);
  return stack.adopt(directory, (it) => it.release());
}

/** Knows no directory beside that of the data. */
export function noStorages({ disk, dataPath, log, random }: LocalStoreParts): Storages {
  return new Storages({ disk, dataPath, log, random, allowedRoots: [] });
}

/** @throws {DatabaseError} INVALID_OPTION if a log file cannot hold the largest row. */
export function requireFileFitsRow({ walSegmentBytes, rowBytesMax }: LocalStoreOptions): void {
  if (walSegmentBytes >= WAL_FILE_BYTES_MIN && walSegmentBytes >= 2 * rowBytesMax) return;
  throw new DatabaseError(
    "INVALID_OPTION",
    `Cannot open the log: its files have ${walSegmentBytes} bytes, and must have at least ${WAL_FILE_BYTES_MIN}, and twice the ${rowBytesMax} of the largest row`,
  );
}

/** The earlier clock may have been the wrong one, so the message does not ask to set this one. */
export function toldIn(log: Log): NonNullable<SeqGeneratorOptions["onSetBack"]> {
  return ({ fromMs, toMs }) => {
    const what =
      "the system clock went back: rows are dated and expire by it as it is now, and new sequence ids stay ahead of it";
    log.warn(what, { from: timeText(fromMs), to: timeText(toMs) });
  };
}
