/**
 * New files of one table's segments: written and synced under the tmp/ beside their place, then
 * moved there, and only then published. What is not published is removed again.
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
  segmentDirectory,
  segmentRoot,
} from "../directory/file_names.ts";
import type { SegmentSummary } from "../segment/writer.ts";
import type { OpenSegment } from "../table/open_segment.ts";
import type { LocalSegmentFiles } from "../table/segment_files.ts";
import { isFull } from "./background.ts";
import type { SegmentWork } from "./segment_work.ts";

/** What a flush or a merge works with. */
export interface SegmentTools {
  readonly disk: Disk;
  readonly paths: DataPaths;
  readonly clock: Clock;
  readonly manifest: Manifest;
  readonly files: LocalSegmentFiles;
  readonly segmentWork: SegmentWork;
  /** Whether the work should stop at its next step. */
  isCancelled(): boolean;
}

interface DraftFile {
  readonly draft: string;
  readonly path: string;
  readonly home: SegmentHome | undefined;
}

/** The table, and in which storage new segments of it lie. */
interface DraftedTable {
  readonly tableId: number;
  readonly home?: SegmentHome | undefined;
}

/** Bytes that are written in one step. */
const WRITTEN_BYTES_MAX: number = 1024 * 1024;

export class SegmentDrafts {
  /** Resolves at once, or in a later turn when it is time to let others work. */
  readonly pause: () => Promise<void>;
  readonly #tools: SegmentTools;
  readonly #table: DraftedTable;
  readonly #drafts: DraftFile[] = [];
  #mayBeListed = false;

  constructor(tools: SegmentTools, table: DraftedTable) {
    this.#tools = tools;
    this.#table = table;
    this.pause = pauser(tools.clock);
  }

  /**
   * The manifest's entry of a segment that was written, after its deletion vector, if it has one.
   *
   * @throws {DiskError}
   */
  async writeEntry(
    segmentId: number,
    {
      summary,
      deletions,
      upTo,
    }: { summary: SegmentSummary; deletions: DeletionVector; upTo: number },
  ): Promise<SegmentEntry> {
    const deletedCount = await this.finished(deletions.countUpTo(upTo));
    const { bytes, compression, rowCount, minSeq, maxSeq } = summary;
    const entry: SegmentEntry = {
      segmentId,
      tableId: this.#table.tableId,
      minSeq: minSeq as Seq,
      maxSeq: maxSeq as Seq,
      rowCount,
      bytes,
      ...(compression === undefined ? {} : { compression }),
      deletionGeneration: deletedCount === 0 ? 0 : 1,
      createdAtMs: this.#tools.clock.nowMs(),
      quarantined: false,
      ...(this.#table.home === undefined ? {} : { home: this.#table.home }),
    };
    if (deletedCount === 0) return entry;
    return { ...entry, deletionHash: await this.writeDeletions(entry, { deletions, upTo }) };
  }

  /**
   * Writes the deletion vector of the generation that an entry names, as it is up to a seq.
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
   * Gives every file its name, durably; the disk is waited for off the event loop. Where the work
   * is cancelled meanwhile, it leaves off: the table may be gone, and its storage with it.
   *
   * @param segments Those of the table: a directory without any of them is new. @throws {DiskError}
   */
  async moveIntoPlace(segments: readonly OpenSegment[]): Promise<void> {
    const { disk, paths } = this.#tools;
    const directoryOf = (home: SegmentHome | undefined): string =>
      segmentDirectory(paths, { tableId: this.#table.tableId, home });
    const known = new Set(segments.map(({ entry }) => directoryOf(entry.home)));
    const homes = new Map(this.#drafts.map(({ home }) => [directoryOf(home), home]));
    const above: string[] = [];
    for (const [directory, home] of homes) {
      disk.makeDirectory(directory);
      if (known.has(directory)) continue;
      above.push(...directoriesAbove(directory, segmentRoot(paths, home).segments));
    }
    // Also what was there: an attempt before this one may not have made its names durable.
    await this.#syncDirectories(above);
    if (this.#tools.isCancelled()) return;
    for (const { draft, path } of this.#drafts) disk.rename(draft, path);
    await this.#syncDirectories(homes.keys());
  }

  async #syncDirectories(directories: Iterable<string>): Promise<void> {
    for (const directory of directories) {
      if (this.#tools.isCancelled()) return;
      await this.#tools.disk.syncDirectorySoon(directory);
    }
  }

  /**
   * Publishes the files, or a change that lists none of them.
   *
   * @throws {DatabaseError} As the manifest does.
   */
  publish(change: ManifestChange): void {
    this.#mayBeListed = change.addSegments !== undefined && change.addSegments.length > 0;
    try {
      this.#tools.manifest.publish(change);
    } catch (error) {
      if (error instanceof DatabaseError && isFull(error)) this.#mayBeListed = false;
      throw error;
    }
  }

  /** Removes what was written, unless the manifest may list it. */
  discard(): void {
    if (this.#mayBeListed) return;
    for (const { draft, path } of this.#drafts) {
      this.#tools.files.removeFile(draft);
      this.#tools.files.removeFile(path);
    }
  }

  /** Takes over what somebody writes at the path that is returned: a new segment. */
  adopt(name: string): string {
    return this.#adopt(name, this.#table.home);
  }

  #adopt(name: string, home: SegmentHome | undefined): string {
    const { paths } = this.#tools;
    // Beside its place, so that moving it stays within one file system.
    const draft = `${segmentRoot(paths, home).tmp}/${name}`;
    const directory = segmentDirectory(paths, { tableId: this.#table.tableId, home });
    this.#drafts.push({ draft, path: `${directory}/${name}`, home });
    return draft;
  }

  /** Makes the content of an adopted draft durable. @throws {DiskError} */
  async sync(draft: string): Promise<void> {
    const file = this.#tools.disk.open(draft, {});
    try {
      await file.sync();
    } finally {
      file.close();
    }
  }

  /** What steps come to, over as many turns as they take. */
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

/** Those that a directory lies in, the nearest first, up to and with `top`. */
function directoriesAbove(directory: string, top: string): string[] {
  const above: string[] = [];
  for (let path = directory; path !== top; ) {
    path = path.slice(0, path.lastIndexOf("/"));
    above.push(path);
  }
  return above;
}
