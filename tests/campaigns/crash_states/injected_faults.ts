/**
 * Injects storage protocol faults between the engine and its disk: one of the engine's requests is
 * not carried out, or is carried out too early. Merge faults are injected into the merge jobs. The
 * campaign can be trusted because it finds each of these faults.
 */
import { crc32 } from "../../../src/base/checksum.ts";
import type { Disk, DiskFile } from "../../../src/base/disk.ts";
import type { Seq } from "../../../src/base/seq.ts";
import type {
  FlushJob,
  FlushOutcome,
  IndexJob,
  MergeJob,
  MergeOutcome,
  SegmentWork,
} from "../../../src/storage/mod.ts";
import { forgeIndexAt } from "../../support/forged_index.ts";
import { ForwardingDisk, ForwardingFile } from "../../support/forwarding_disk.ts";
import { workInThisThread } from "../../support/segment_work.ts";

export const INJECTED_FAULTS = [
  /** The log reports bytes as durable before they are. */
  "early_ack",
  /** Directory entries are not made durable. */
  "no_directory_sync",
  /** A log file is removed as soon as the next one is started. */
  "log_removed_early",
  /** Log frames are accepted whatever their checksum. */
  "no_checksum",
  "segment_not_synced",
  "deletions_not_synced",
  /** Ids are issued before their reservation is durable. */
  "ids_not_synced",
  /**
   * A sequence number is issued before its reservation is durable, and is therefore issued again
   * later.
   */
  "number_twice",
  /** The last transaction of the manifest is not durable. */
  "manifest_not_synced",
  /** A merge moves a current row to history. */
  "live_row_in_history",
  /** A merge leaves out all rows of an owner. */
  "owner_skipped",
  /** A merge writes a sorted index that contains one row twice and lacks another. */
  "index_wrong_after_merge",
  /** In the manifest, the highest seq that replaced a history row is one too low. */
  "history_bound_low",
] as const;

export type InjectedFault = (typeof INJECTED_FAULTS)[number];

/** For each fault, the files whose syncs have no effect. */
const UNSYNCED: Partial<Record<InjectedFault, RegExp>> = {
  early_ack: /\.wal$/,
  segment_not_synced: /\.seg$/,
  deletions_not_synced: /\.dv$/,
  ids_not_synced: /\/IDS$/,
};

/** A disk with a single injected fault. */
export class FaultyDisk extends ForwardingDisk {
  readonly #injected: InjectedFault;

  constructor(disk: Disk, injected: InjectedFault) {
    super(disk);
    this.#injected = injected;
  }

  override open(path: string, options: { create?: boolean; exclusive?: boolean }): DiskFile {
    const file = this.disk.open(path, options);
    const isUnsynced = UNSYNCED[this.#injected]?.test(path) ?? false;
    return isUnsynced ? new UnsyncedFile(file) : file;
  }

  override readFile(path: string): Uint8Array {
    const bytes = this.disk.readFile(path);
    if (this.#injected === "no_checksum" && path.endsWith(".wal")) believeFrames(bytes);
    return bytes;
  }

  override rename(from: string, to: string): void {
    this.disk.rename(from, to);
    if (this.#injected !== "log_removed_early") return;
    const number = /^(.*\/)(\d{10})\.wal$/.exec(to);
    const before = `${number?.[1]}${String(Number(number?.[2]) - 1).padStart(10, "0")}.wal`;
    if (number !== null && this.disk.exists(before)) this.disk.remove(before);
  }

  override syncDirectory(path: string): void {
    if (this.#injected !== "no_directory_sync") this.disk.syncDirectory(path);
  }
}

class UnsyncedFile extends ForwardingFile {
  override sync(): Promise<void> {
    return Promise.resolve();
  }

  override syncNow(): void {
    // With the injected fault, no sync takes place here.
  }
}

/** Runs merges with a single injected fault. */
export class FaultyWork implements SegmentWork {
  readonly heapBytes = 0;
  readonly #injected: InjectedFault;
  readonly #disk: Disk;
  readonly #work: SegmentWork;

  constructor(injected: InjectedFault, parts: Parameters<typeof workInThisThread>[0]) {
    this.#injected = injected;
    this.#disk = parts.disk;
    this.#work = workInThisThread(parts);
  }

  flush(job: FlushJob, isCancelled: () => boolean): Promise<FlushOutcome | undefined> {
    return this.#work.flush(job, isCancelled);
  }

  index(job: IndexJob, isCancelled: () => boolean): Promise<boolean> {
    return this.#work.index(job, isCancelled);
  }

  close(): void {
    this.#work.close();
  }

  async merge(job: MergeJob, isCancelled: () => boolean): Promise<MergeOutcome | undefined> {
    const outcome = await this.#work.merge(this.#faulty(job), isCancelled);
    if (this.#injected === "index_wrong_after_merge") forgeIndexes(this.#disk, job, outcome);
    const { past } = outcome ?? {};
    if (this.#injected !== "history_bound_low" || past?.history === undefined) return outcome;
    const highestReplacingSeq = (past.history.highestReplacingSeq - 1) as Seq;
    const history = { ...past.history, highestReplacingSeq };
    return outcome && { ...outcome, past: { ...past, history } };
  }

  #faulty(job: MergeJob): MergeJob {
    const { current, history } = job;
    if (current === undefined) return job;
    if (this.#injected === "owner_skipped")
      return { ...job, history: { ...history, erasedOwner: 0 } };
    if (this.#injected !== "live_row_in_history") return job;
    return { ...job, history: { ...history, replaced: history.replaced.map(withLiveRow(job)) } };
  }
}

/** Replaces the first row of each sorted index with the second. */
function forgeIndexes(disk: Disk, job: MergeJob, outcome: MergeOutcome | undefined): void {
  const { rowCount = 0 } = outcome?.current ?? {};
  if (job.current === undefined || rowCount < 2) return;
  const { segmentId } = job.current;
  for (const { columns, indexId, pendingPath } of job.indexes) {
    if (columns.some(({ expression }) => expression?.terms !== undefined)) continue;
    const place = { segmentId, tableId: job.tableId, indexId, rowCount };
    forgeIndexAt({ disk, path: pendingPath, place }, ({ rows }) => {
      rows[0] = rows[1] ?? 0;
    });
  }
}

type Replaced = MergeJob["history"]["replaced"][number];

/** Moves the first current row of each source to history, as if another row had replaced it. */
function withLiveRow({ history, sources }: MergeJob): (of: Replaced, source: number) => Replaced {
  return ({ rows, seqs }, source) => {
    const live = rows.findIndex((row, index) => row !== index);
    const row = live === -1 ? rows.length : live;
    const entry = sources[source]?.entry;
    // A segment refuses a row that is its own replacement.
    if (entry === undefined || row >= entry.rowCount || entry.maxSeq === history.settledSeq) {
      return { rows, seqs };
    }
    return {
      rows: Uint32Array.of(...rows.subarray(0, row), row, ...rows.subarray(row)),
      seqs: Float64Array.of(...seqs.subarray(0, row), history.settledSeq, ...seqs.subarray(row)),
    };
  };
}

/** Gives every frame in a log file, whole or torn, a matching checksum. */
function believeFrames(bytes: Uint8Array): void {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  for (let at = 64; at + 48 <= bytes.length; ) {
    const length = view.getUint32(at + 4, true);
    const isFrame = view.getUint32(at + 8, true) === view.getUint32(8, true);
    if (!isFrame || length < 48 || at + length > bytes.length) return;
    view.setUint32(at, crc32(bytes.subarray(at + 4, at + length)), true);
    at += length;
  }
}
