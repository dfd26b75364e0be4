/**
 * Opens and removes the files of segments, and quarantines a segment in which damage was met.
 */
import type { Clock } from "../../base/clock.ts";
import type { Disk } from "../../base/disk.ts";
import { CorruptionError, DatabaseError, DiskError, UnreadableError } from "../../base/errors.ts";
import type { Log } from "../../base/log.ts";
import { SeldomLog } from "../../base/seldom_log.ts";
import type { Manifest, SegmentEntry, SegmentHome } from "../contract/manifest.ts";
import { DeletionVector } from "../deletions/deletion_vector.ts";
import { type DataPaths, deletionVectorPath, segmentPath } from "../directory/file_names.ts";
import { Holds } from "../directory/holds.ts";
import { available } from "../directory/readable.ts";
import { unavailable } from "../directory/storage_directory.ts";
import type { SegmentReader } from "../segment/reader.ts";
import { openListedSegment, readListedDeletions } from "./listed_files.ts";
import type { OpenSegment, SegmentFiles } from "./open_segment.ts";

/** What is asked of the storages in which segments lie: see `storage/storages.ts`. */
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
  /** What nobody holds and nobody lists. */
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
    // What has that name now may be another's; its own files go once its storage is back.
    if (home !== undefined && !this.#options.storages.hasOwnFiles(home)) return;
    this.removeFile(this.segmentPath(entry));
    if (entry.deletionGeneration > 0) this.removeFile(this.deletionVectorPath(entry));
  }

  onDamage(segment: OpenSegment, damage: CorruptionError): void {
    const { manifest, log } = this.#options;
    // Of a segment that is quarantined, the log was told then.
    damage.isLogged = true;
    if (segment.entry.quarantined) return;
    const { segmentId, tableId } = segment.entry;
    // Whatever lies in the place of a storage says nothing of the storage's own files.
    if (this.#noteIfGone(segment.entry) !== undefined) return;
    const isForGood = !(damage instanceof UnreadableError);
    const did = isForGood
      ? "damaged segment, quarantined"
      : "segment cannot be read, quarantined until the next start";
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
   * Quarantines what was unreadable so far: the log is about to forget what was to be noted in it.
   *
   * @throws {DatabaseError} As the manifest does; STORAGE_UNAVAILABLE if its storage is not there.
   */
  quarantineForGood(segment: OpenSegment, damage: CorruptionError): void {
    this.#options.storages.requireThere(segment.entry.home);
    const { manifest, log } = this.#options;
    const { segmentId, tableId } = segment.entry;
    log.error("segment still cannot be read when its table is flushed, quarantined for good", {
      segment: segmentId,
      table: tableId,
      path: damage.path,
      what: damage.what,
      missed: segment.missedCount,
    });
    segment.quarantine({ isForGood: true });
    manifest.publish({ changeSegments: [segment.entry] });
  }

  /**
   * For who is about to change the segments of a table.
   *
   * @throws {DatabaseError} STORAGE_UNAVAILABLE if where they go, or where one of them is, is not
   * there.
   */
  requireThere(home: SegmentHome | undefined, segments: readonly OpenSegment[]): void {
    const homes = new Map([home, ...segments.map(({ entry }) => entry.home)].map(byStorage));
    for (const each of homes.values()) this.#options.storages.requireThere(each);
  }

  segmentPath(entry: SegmentEntry): string {
    return segmentPath(this.#options.paths, entry);
  }

  deletionVectorPath(entry: SegmentEntry): string {
    return deletionVectorPath(this.#options.paths, entry);
  }

  /**
   * Keeps every file of a segment where it is, also when nobody lists it any more, until the
   * function that is returned is called.
   */
  hold(): () => void {
    return this.#holds.hold();
  }

  /** Removes a file that no manifest entry names any more, now or some time later. */
  removeFile(path: string): void {
    this.#holds.whenFree(() => {
      this.#toRemove.push(path);
      this.#removal ??= this.#removeNext();
    });
  }

  /** Resolves once every file is gone that was to be removed so far. */
  async settled(): Promise<void> {
    await this.#removal;
  }

  /**
   * Looks for the storage of a segment; returns why it is not used, or undefined if it is or has
   * none.
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

  /** One at a time: all at once would take the threads that the syncs of commits need. */
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
    // Safe: the next start moves what is not listed to lost+found.
    this.#options.log.warn("cannot remove a file", { path, code: error.code });
  }
}

function byStorage(home: SegmentHome | undefined): [string | undefined, SegmentHome | undefined] {
  return [home?.storageId, home];
}
