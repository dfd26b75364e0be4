/** Opens and removes the files of segments, and quarantines damaged segments. */
import type { Clock } from "../../base/clock.ts";
import type { Disk } from "../../base/disk.ts";
import { CorruptionError, DatabaseError, DiskError, UnreadableError } from "../../base/errors.ts";
import type { Log } from "../../base/log.ts";
import { SeldomLog } from "../../base/seldom_log.ts";
import type { Manifest, SegmentEntry, SegmentHome } from "../contract/manifest.ts";
import { DeletionVector } from "../deletions/deletion_vector.ts";
import {
  type DataPaths,
  deletionVectorPath,
  indexPath,
  segmentPath,
} from "../directory/file_names.ts";
import { Holds } from "../directory/holds.ts";
import { available } from "../directory/readable.ts";
import { unavailable } from "../directory/storage_directory.ts";
import type { SegmentReader } from "../segment/reader.ts";
import {
  type IndexOpener,
  openListedIndex,
  openListedSegment,
  readListedDeletions,
} from "./listed_files.ts";
import type { OpenSegment, SegmentFiles } from "./open_segment.ts";

/** The operations of the storages that concern segments; see `storage/storages.ts`. */
export interface StorageFaults {
  faultOf(storageId: string): string | undefined;
  requireThere(home: SegmentHome | undefined): void;
  noteIfGone(home: SegmentHome): string | undefined;
  hasOwnFiles(home: SegmentHome): boolean;
  tidyDropped(): void;
}

export interface SegmentFilesOptions {
  readonly disk: Disk;
  readonly paths: DataPaths;
  readonly clock: Clock;
  readonly log: Log;
  readonly manifest: Manifest;
  readonly storages: StorageFaults;
}

export class LocalSegmentFiles implements SegmentFiles {
  readonly #options: SegmentFilesOptions;
  readonly #holds = new Holds();
  readonly #seldomLog: SeldomLog;
  /**
   * The paths of files to remove. No manifest entry lists them, and nothing holds them in place.
   */
  readonly #toRemove: string[] = [];
  #removal: Promise<void> | undefined;

  constructor(options: SegmentFilesOptions) {
    this.#options = options;
    this.#seldomLog = new SeldomLog(options.log, options.clock);
  }

  openReader(entry: SegmentEntry): SegmentReader {
    const path = this.segmentPath(entry);
    const open = (): SegmentReader => openListedSegment(this.#options.disk, path, { entry });
    return this.#opened(entry, path, open);
  }

  readDeletions(entry: SegmentEntry): DeletionVector {
    if (entry.deletionGeneration === 0) return new DeletionVector(entry);
    const path = this.deletionVectorPath(entry);
    const read = (): DeletionVector =>
      readListedDeletions(this.#options.disk, path, entry).deletions;
    return this.#opened(entry, path, read);
  }

  remove(entry: SegmentEntry): void {
    const { home } = entry;
    // A file with this segment's file name may by now belong to another server. The segment's own
    // file is removed once its storage is available again.
    if (home !== undefined && !this.#options.storages.hasOwnFiles(home)) return;
    this.removeFile(this.segmentPath(entry));
    if (entry.deletionGeneration > 0) this.removeFile(this.deletionVectorPath(entry));
    for (const indexId of entry.indexIds ?? []) this.removeFile(this.indexPath(entry, indexId));
  }

  openIndex<Entries>(
    entry: SegmentEntry,
    indexId: number,
    open: IndexOpener<Entries>,
  ): Entries | undefined {
    if (entry.indexIds?.includes(indexId) !== true) return undefined;
    const path = this.indexPath(entry, indexId);
    try {
      return openListedIndex(this.#options.disk, path, { entry, indexId, open });
    } catch (error) {
      // Ignoring the damage is safe: the index is rebuilt from the segment's rows.
      if (!(error instanceof CorruptionError)) throw error;
      this.#options.log.error(
        "an index file is damaged; the index is being rebuilt from the rows",
        {
          path,
          what: error.what,
        },
      );
      return undefined;
    }
  }

  onDamage(segment: OpenSegment, damage: CorruptionError): void {
    const { manifest, log } = this.#options;
    // The damage was already logged when the segment was quarantined.
    damage.isLogged = true;
    if (segment.entry.quarantined) return;
    const { segmentId, tableId } = segment.entry;
    // If the storage has been replaced by foreign files, the segment's own file is not damaged.
    if (this.#noteIfGone(segment.entry) !== undefined) return;
    const isForGood = !(damage instanceof UnreadableError);
    const did = isForGood
      ? "a segment is damaged, and has been quarantined"
      : "a segment cannot be read, and is quarantined until the next startup";
    log.error(did, {
      segment: segmentId,
      table: tableId,
      path: damage.path,
      offset: damage.offset,
      what: damage.what,
    });
    segment.quarantine({ isForGood });
    if (isForGood) manifest.publish({ changeSegments: [segment.entry] });
  }

  /**
   * Permanently quarantines a segment that has only been unreadable so far, because the log is
   * about to drop replacements that could not be recorded in it.
   *
   * @throws {DatabaseError} The errors of the manifest; STORAGE_UNAVAILABLE if the segment's
   *   storage is missing.
   */
  quarantineForGood(segment: OpenSegment, damage: CorruptionError): void {
    this.#options.storages.requireThere(segment.entry.home);
    const { manifest, log } = this.#options;
    const { segmentId, tableId } = segment.entry;
    log.error(
      "a segment was still unreadable when its table was flushed, and was quarantined permanently",
      {
        segment: segmentId,
        table: tableId,
        path: damage.path,
        what: damage.what,
        missed: segment.missedCount,
      },
    );
    segment.quarantine({ isForGood: true });
    manifest.publish({ changeSegments: [segment.entry] });
  }

  /**
   * Checks that a table's storages are available. Must be called before the table's segments are
   * changed.
   *
   * @throws {DatabaseError} STORAGE_UNAVAILABLE if the storage of new segments, or of an existing
   *   segment, is missing.
   */
  requireThere(home: SegmentHome | undefined, segments: readonly OpenSegment[]): void {
    const homes = new Map([home, ...segments.map(({ entry }) => entry.home)].map(byStorage));
    for (const each of homes.values()) this.#options.storages.requireThere(each);
  }

  segmentPath(entry: SegmentEntry): string {
    return segmentPath(this.#options.paths, entry);
  }

  indexPath(entry: SegmentEntry, indexId: number): string {
    return indexPath(this.#options.paths, entry, indexId);
  }

  deletionVectorPath(entry: SegmentEntry): string {
    return deletionVectorPath(this.#options.paths, entry);
  }

  /**
   * Holds every segment file in place, even once it is unlisted, until the returned function is
   * called.
   */
  hold(): () => void {
    return this.#holds.hold();
  }

  /**
   * Removes a file that no manifest entry lists: immediately or, while files are held in place,
   * later.
   */
  removeFile(path: string): void {
    this.#holds.whenFree(() => {
      this.#toRemove.push(path);
      this.#removal ??= this.#removeNext();
    });
  }

  /** Resolves once all files whose removal has been requested so far are gone. */
  async settled(): Promise<void> {
    await this.#removal;
  }

  /**
   * Checks a segment's storage. Returns the reason why the storage is not in use; undefined if it
   * is in use, or if the segment is in the data directory.
   */
  #noteIfGone({ home }: SegmentEntry): string | undefined {
    return home === undefined ? undefined : this.#options.storages.noteIfGone(home);
  }

  #opened<T>(entry: SegmentEntry, path: string, open: () => T): T {
    try {
      return available(path, open);
    } catch (error) {
      const { home } = entry;
      const fault = error instanceof CorruptionError ? this.#noteIfGone(entry) : undefined;
      if (home !== undefined && fault !== undefined) throw unavailable("read", home, fault);
      if (error instanceof DatabaseError) {
        this.#seldomLog.error("cannot open the files of segments", { error: error.message });
      }
      throw error;
    }
  }

  /**
   * Removes the next file. Files are removed one at a time, because simultaneous removals would
   * occupy the threads that commits need for their syncs.
   */
  #removeNext(): Promise<void> | undefined {
    for (let path = this.#toRemove.shift(); path !== undefined; path = this.#toRemove.shift()) {
      const removal = this.#remove(path);
      if (removal !== undefined) return removal.then(() => this.#removeNext());
    }
    this.#removal = undefined;
    this.#options.storages.tidyDropped();
    return undefined;
  }

  #remove(path: string): Promise<void> | undefined {
    const { disk } = this.#options;
    try {
      if (!disk.exists(path)) return undefined;
      return disk.removeSoon(path)?.catch((error: unknown) => this.#noteKept(path, error));
    } catch (error) {
      this.#noteKept(path, error);
      return undefined;
    }
  }

  #noteKept(path: string, error: unknown): void {
    if (!(error instanceof DiskError)) throw error;
    // Ignoring the error is safe: the next startup moves unlisted files to lost+found.
    this.#options.log.warn("cannot remove a file", { path, code: error.code });
  }
}

function byStorage(home: SegmentHome | undefined): [string | undefined, SegmentHome | undefined] {
  return [home?.storageId, home];
}
