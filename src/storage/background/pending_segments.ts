/**
 * Writes new segment files for one table. A file is written and synced in its storage's tmp/
 * directory, then moved into place, and only then published. Files that are never published are
 * removed.
 */
import type { Clock } from "../../base/clock.ts";
import type { Disk } from "../../base/disk.ts";
import { DatabaseError } from "../../base/errors.ts";
import { pauser } from "../../base/pauser.ts";
import type { Seq } from "../../base/seq.ts";
import type {
  DeletionHash,
  Manifest,
  ManifestChange,
  SegmentEntry,
  SegmentHome,
} from "../contract/manifest.ts";
import { DeletionVector } from "../deletions/deletion_vector.ts";
import {
  type DataPaths,
  deletionVectorFileName,
  indexFileName,
  segmentDirectory,
  segmentRoot,
} from "../directory/file_names.ts";
import type { SegmentSummary } from "../segment/writer.ts";
import type { IndexOutput } from "../table/index_builder.ts";
import type { OpenSegment } from "../table/open_segment.ts";
import type { LocalSegmentFiles } from "../table/segment_files.ts";
import type { TableIndex } from "../table/table_index.ts";
import { isFull } from "./background.ts";
import type { SegmentWork } from "./segment_work.ts";

/** The parts of the store that flushes and merges use. */
export interface SegmentTools {
  readonly disk: Disk;
  readonly paths: DataPaths;
  readonly clock: Clock;
  readonly manifest: Manifest;
  readonly files: LocalSegmentFiles;
  readonly segmentWork: SegmentWork;
  /** Returns true if the flush or merge should stop at its next step. */
  isCancelled(): boolean;
}

interface PendingFile {
  readonly pendingPath: string;
  readonly path: string;
  readonly home: SegmentHome | undefined;
}

/** The table, and the storage that receives its new segments. */
interface PendingTable {
  readonly tableId: number;
  readonly home?: SegmentHome | undefined;
}

/** The maximum number of bytes of a file written in one step. */
const WRITTEN_BYTES_MAX: number = 1024 * 1024;

export class PendingSegments {
  /** Lets other work run if it should run first. Resolves immediately, or in a later tick. */
  readonly pause: () => Promise<void>;
  readonly #tools: SegmentTools;
  readonly #table: PendingTable;
  readonly #pending: PendingFile[] = [];
  #mayBeListed = false;

  constructor(tools: SegmentTools, table: PendingTable) {
    this.#tools = tools;
    this.#table = table;
    this.pause = pauser(tools.clock);
  }

  /**
   * Returns the outputs for the secondary indexes of a new segment, and tracks their files as
   * pending.
   */
  indexOutputs(segmentId: number, indexes: readonly TableIndex[]): IndexOutput[] {
    return indexes.map(({ order: { columns }, stored: { indexId } }) => ({
      indexId,
      columns,
      pendingPath: this.adopt(indexFileName(segmentId, indexId)),
    }));
  }

  /** Makes the files of secondary indexes durable. @throws {DiskError} */
  async syncIndexes(outputs: readonly IndexOutput[]): Promise<void> {
    for (const { pendingPath } of outputs) await this.sync(pendingPath);
  }

  /** Returns the manifest entry for a written segment without a deletion vector. */
  entryOf(
    segmentId: number,
    summary: SegmentSummary,
    indexes: readonly IndexOutput[] = [],
  ): SegmentEntry {
    const { bytes, compression, history, rowCount, minSeq, maxSeq } = summary;
    return {
      segmentId,
      tableId: this.#table.tableId,
      minSeq: minSeq as Seq,
      maxSeq: maxSeq as Seq,
      rowCount,
      bytes,
      ...(compression === undefined ? {} : { compression }),
      deletionGeneration: 0,
      ...(indexes.length === 0 ? {} : { indexIds: indexes.map(({ indexId }) => indexId) }),
      createdAtMs: this.#tools.clock.nowMs(),
      quarantined: false,
      ...(this.#table.home === undefined ? {} : { home: this.#table.home }),
      ...(history === undefined ? {} : { history }),
    };
  }

  /**
   * Returns the manifest entry for a written segment with current versions. If the segment has a
   * deletion vector, it is written first.
   *
   * @throws {DiskError}
   */
  async writeEntry(
    segmentId: number,
    {
      summary,
      deletions,
      indexes,
      upTo,
    }: {
      summary: SegmentSummary;
      deletions: DeletionVector;
      indexes: readonly IndexOutput[];
      upTo: number;
    },
  ): Promise<SegmentEntry> {
    const deletedCount = await this.finished(deletions.countUpTo(upTo));
    const entry = this.entryOf(segmentId, summary, indexes);
    if (deletedCount === 0) return entry;
    const listed = { ...entry, deletionGeneration: 1 };
    return { ...listed, deletionHash: await this.writeDeletions(listed, { deletions, upTo }) };
  }

  /**
   * Writes the deletion vector under the generation named in an entry, with its state up to a seq.
   *
   * @throws {DiskError}
   */
  async writeDeletions(
    entry: SegmentEntry,
    { deletions, upTo }: { deletions: DeletionVector; upTo: number },
  ): Promise<DeletionHash> {
    const bytes = await this.finished(deletions.encodeUpTo(upTo));
    const generation = entry.deletionGeneration;
    const name = deletionVectorFileName(entry.segmentId, generation);
    const file = this.#open(name, entry.home);
    try {
      for (let at = 0; at < bytes.length; at += WRITTEN_BYTES_MAX) {
        await file.writeDurably(bytes.subarray(at, at + WRITTEN_BYTES_MAX), at);
      }
    } finally {
      file.close();
    }
    return { generation, ...DeletionVector.hashIn(bytes, name) };
  }

  /**
   * Durably renames every file into place. Waiting for the disk does not block the event loop. If
   * the work is cancelled, returns early, because the table and its storage may no longer exist.
   *
   * @param segments The table's segments. A directory that contains none of them is new.
   * @throws {DiskError}
   */
  async moveIntoPlace(segments: readonly OpenSegment[]): Promise<void> {
    const { disk, paths } = this.#tools;
    const directoryOf = (home: SegmentHome | undefined): string =>
      segmentDirectory(paths, { tableId: this.#table.tableId, home });
    const known = new Set(segments.map(({ entry }) => directoryOf(entry.home)));
    const homes = new Map(this.#pending.map(({ home }) => [directoryOf(home), home]));
    const above: string[] = [];
    for (const [directory, home] of homes) {
      disk.makeDirectory(directory);
      if (known.has(directory)) continue;
      above.push(...directoriesAbove(directory, segmentRoot(paths, home).segments));
    }
    // Existing directories are synced as well: an earlier attempt may have created them and then
    // failed before their names were durable.
    await this.#syncDirectories(above);
    if (this.#tools.isCancelled()) return;
    for (const { pendingPath, path } of this.#pending) disk.rename(pendingPath, path);
    await this.#syncDirectories(homes.keys());
  }

  async #syncDirectories(directories: Iterable<string>): Promise<void> {
    for (const directory of directories) {
      if (this.#tools.isCancelled()) return;
      await this.#tools.disk.syncDirectorySoon(directory);
    }
  }

  /**
   * Publishes the pending files, or a change to the manifest that lists no files.
   * @throws {DatabaseError} Any error of the manifest.
   */
  publish(change: ManifestChange): void {
    const { addSegments = [], changeSegments = [] } = change;
    this.#mayBeListed = addSegments.length + changeSegments.length > 0;
    try {
      this.#tools.manifest.publish(change);
    } catch (error) {
      if (error instanceof DatabaseError && isFull(error)) this.#mayBeListed = false;
      throw error;
    }
  }

  /** Removes the written files, unless the manifest may list them. */
  discard(): void {
    if (this.#mayBeListed) return;
    for (const { pendingPath, path } of this.#pending) {
      this.#tools.files.removeFile(pendingPath);
      this.#tools.files.removeFile(path);
    }
  }

  /**
   * Returns the path for a new segment file that other code writes, and tracks the file as
   * pending.
   */
  adopt(name: string): string {
    return this.#adopt(name, this.#table.home);
  }

  #adopt(name: string, home: SegmentHome | undefined): string {
    const { paths } = this.#tools;
    // The tmp directory is in the storage where the file ends up, so the move stays within one
    // file system.
    const pendingPath = `${segmentRoot(paths, home).tmp}/${name}`;
    const directory = segmentDirectory(paths, { tableId: this.#table.tableId, home });
    this.#pending.push({ pendingPath, path: `${directory}/${name}`, home });
    return pendingPath;
  }

  /**
   * Stops tracking a pending file and removes it, because it is not needed or was never written.
   */
  forget(pendingPath: string): void {
    const at = this.#pending.findIndex((each) => each.pendingPath === pendingPath);
    this.#pending.splice(at, 1);
    this.#tools.files.removeFile(pendingPath);
  }

  /** Makes a pending file durable. @throws {DiskError} */
  async sync(pendingPath: string): Promise<void> {
    const file = this.#tools.disk.open(pendingPath, {});
    try {
      await file.sync();
    } finally {
      file.close();
    }
  }

  /** Runs steps over as many ticks as they need, and returns their result. */
  async finished<T>(steps: Generator<void, T>): Promise<T> {
    for (;;) {
      const { done, value } = steps.next();
      if (done === true) return value;
      await this.pause();
    }
  }

  #open(name: string, home: SegmentHome | undefined): ReturnType<Disk["open"]> {
    const file = this.#tools.disk.open(this.#adopt(name, home), {
      create: true,
      writesThrough: true,
    });
    file.truncate(0);
    return file;
  }
}

/** Returns the directories above `directory`, nearest first, up to and including `top`. */
function directoriesAbove(directory: string, top: string): string[] {
  const above: string[] = [];
  for (let path = directory; path !== top; ) {
    path = path.slice(0, path.lastIndexOf("/"));
    above.push(path);
  }
  return above;
}
