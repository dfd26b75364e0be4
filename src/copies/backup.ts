/**
 * Makes a backup of an open database: a directory that holds its state at one moment, and is
 * checked by `tidemark verify` and put back by `restore.ts`.
 *
 *     1 in one turn: the end of the log noted, every file held, that of the catalog as it is then
 *     2 files are copied and synced: the catalog, segments, deletion vectors, uploaded files, the log
 *       up to its end
 *     3 the directories are synced, and backup.json, which lists everything, is written
 *
 * Commits go on all the while, and are not in the backup. What fails, or is cancelled, before step
 * 3 leaves nothing; a crash leaves a directory without backup.json, which is no backup.
 *
 * Segments of other storages are copied to where they would lie without those, so that a backup is
 * whole by itself. A segment is copied behind the check of its checksums, and one that does not
 * hold ends the backup: one that keeps damage would take the place of one from before it. Only what
 * a repair has named as lost is left out.
 */
import type { Clock } from "../base/clock.ts";
import { checksumOfFile, FileCopy, makeDirectoryOf, removeTreeSoon } from "../base/copy_file.ts";
import type { Disk, DiskFile } from "../base/disk.ts";
import { CorruptionError, DatabaseError, UnreadableError } from "../base/errors.ts";
import { pauser } from "../base/pauser.ts";
import { CATALOG_FILE, type CatalogDatabase } from "../catalog/mod.ts";
import { tableNamesOf } from "../sql/mod.ts";
import {
  type BackupFile,
  type BackupList,
  backupAround,
  backupListPath,
  blobPath,
  copyPathsOf,
  type DataPaths,
  dataPathsOf,
  deletionVectorPath,
  isLost,
  requireSoundSegment,
  rewriteNumberFile,
  segmentPath,
  walFilePath,
  writeBackupList,
} from "../storage/files.ts";
import type { BlobStore, Job, LocalStore, SegmentEntry, StoreSnapshot } from "../storage/mod.ts";
import { requireRoom } from "./room.ts";

export interface BackupSource {
  readonly disk: Disk;
  readonly clock: Clock;
  readonly catalog: CatalogDatabase;
  readonly store: LocalStore;
  readonly blobs: BlobStore;
  readonly paths: DataPaths;
  /** The file of the catalog, which stays open as long as the catalog. */
  readonly catalogFile: () => DiskFile;
  readonly version: string;
  /** So much room must be left on the disk of the backup. */
  readonly minFreeBytes: number;
}

/** Of a file that may be there again. */
const UNREADABLE_HINT =
  "look at the disk and restart the server, which tries again; if it is gone, stop the server and run tidemark repair, which gives those rows up, or drop the table";

/** A file of the database, and how many of its bytes the backup has. */
interface Source {
  /** Below the backup, and below the data directory but for segments of other storages. */
  readonly path: string;
  /** Where it is, if that is elsewhere. */
  readonly from?: string;
  readonly bytes: number;
  /** A listed upload that no row names: a crash cut it off. */
  readonly mayBeMissing?: boolean;
  /** The segment whose file it is: checked meanwhile, with its deletion vector. */
  readonly segment?: SegmentEntry;
}

export interface BackupResult {
  readonly list: BackupList;
  /** Names of the tables without rows that a repair named as lost. */
  readonly incompleteTables: readonly string[];
}

/**
 * @param target A path where nothing is, or an empty directory; its parent is there.
 * @throws {DatabaseError} INVALID_OPTION if something is there, DISK_FULL if there is no room,
 * CANCELLED if the job was cancelled, DATA_DAMAGED if what would be copied is damaged.
 * @throws {DiskError}
 */
export async function backUp(
  source: BackupSource,
  target: string,
  job: Job,
): Promise<BackupResult> {
  const { disk } = source;
  prepareTarget(disk, target);
  try {
    using held = new DisposableStack();
    return await new Backup(source, { held, job, target }).run();
  } catch (error) {
    await removeTreeSoon(disk, target);
    throw error;
  }
}

/** @throws {DatabaseError} INVALID_OPTION @throws {DiskError} */
function prepareTarget(disk: Disk, target: string): void {
  const parent = target.slice(0, Math.max(1, target.lastIndexOf("/")));
  if (!disk.exists(parent)) {
    throw new DatabaseError(
      "INVALID_OPTION",
      `Cannot back up to ${target}: there is no directory ${parent}`,
      { hint: "make it, or name a directory in one that is there" },
    );
  }
  const outer = backupAround(disk, parent);
  if (outer !== undefined) throw refused(target, `it lies inside the backup ${outer}`);
  if (!disk.exists(target)) {
    disk.makeDirectory(target);
    disk.syncDirectory(parent);
    return;
  }
  if (disk.sizeOf(target) === undefined || !isDirectory(disk, target)) {
    throw refused(target, "it is a file");
  }
  if (disk.list(target).length === 0) return;
  const what = disk.exists(backupListPath(target))
    ? "it holds a backup already"
    : "it is not empty";
  throw refused(target, what);
}

function isDirectory(disk: Disk, path: string): boolean {
  const name = path.slice(path.lastIndexOf("/") + 1);
  const parent = path.slice(0, Math.max(1, path.lastIndexOf("/")));
  return disk.list(parent).some((entry) => entry.name === name && entry.isDirectory);
}

function refused(target: string, what: string): DatabaseError {
  return new DatabaseError("INVALID_OPTION", `Cannot back up to ${target}: ${what}`, {
    hint: "name a directory that is not there yet",
  });
}

class Backup {
  readonly #source: BackupSource;
  readonly #target: string;
  readonly #job: Job;
  readonly #snapshot: StoreSnapshot;
  readonly #releaseCatalog: () => void;
  readonly #catalogBytes: number;
  readonly #createdAtMs: number;
  readonly #tableNames: ReadonlyMap<number, string>;
  readonly #incompleteTables = new Set<string>();
  readonly #files: BackupFile[] = [];
  readonly #directories: string[];
  readonly #pause: () => Promise<void>;
  #copiedBytes = 0;
  #totalBytes = 0;

  /**
   * All of step 1: this and the snapshot of the store are one turn.
   * @param parts.held Lets go of what is held, also of what was held before this throws.
   */
  constructor(
    source: BackupSource,
    { held, job, target }: { held: DisposableStack; job: Job; target: string },
  ) {
    const { blobs, catalog, clock, store } = source;
    this.#source = source;
    this.#target = target;
    this.#job = job;
    this.#directories = [target];
    this.#pause = pauser(clock);
    this.#createdAtMs = clock.nowMs();
    this.#releaseCatalog = catalog.hold();
    held.defer(this.#releaseCatalog);
    this.#catalogBytes = source.catalogFile().size();
    this.#tableNames = tableNamesOf(catalog);
    const snapshot = store.snapshot();
    held.defer(() => snapshot.release());
    this.#snapshot = snapshot;
    held.defer(blobs.hold());
  }

  async run(): Promise<BackupResult> {
    const { disk, version } = this.#source;
    const sources = await this.#sources();
    this.#totalBytes = sources.reduce((sum, { bytes }) => sum + bytes, 0);
    this.#requireRoom();
    for (const name of ["wal", "segments", "files"]) {
      disk.makeDirectory(`${this.#target}/${name}`);
      this.#directories.push(`${this.#target}/${name}`);
    }
    for (const source of sources) await this.#copy(source);
    this.#writeNumbers();
    // The deepest first, so that no name is durable before what it leads to.
    for (const directory of this.#directories.toReversed()) {
      await disk.syncDirectorySoon(directory);
      await this.#pause();
    }
    const list = {
      version,
      seq: this.#snapshot.seq,
      createdAtMs: this.#createdAtMs,
      files: this.#files,
    };
    this.#requireWanted();
    writeBackupList(disk, this.#target, list);
    return { list, incompleteTables: [...this.#incompleteTables] };
  }

  /** Of what is held: asked the disk for over turns, as they may be 100,000. */
  async #sources(): Promise<Source[]> {
    const { catalog, disk, paths } = this.#source;
    const { logEnd, logFiles, segments } = this.#snapshot;
    const below = (path: string): string => path.slice(paths.root.length + 1);
    const lengthOf = (path: string): number => disk.sizeOf(path) ?? 0;
    const sources: Source[] = [
      // The first one, since the log of SQLite grows until it is copied.
      { path: CATALOG_FILE, bytes: this.#catalogBytes },
      { path: below(paths.format), bytes: lengthOf(paths.format) },
    ];
    const copyPaths = copyPathsOf(paths.root);
    for (const entry of segments) {
      await this.#pause();
      this.#requireStorage(entry);
      if (isLost(disk, paths, entry)) {
        this.#incompleteTables.add(this.#nameOf(entry));
        continue;
      }
      this.#requireUsable(entry);
      const path = below(segmentPath(copyPaths, entry));
      const from = segmentPath(paths, entry);
      sources.push({ path, from, bytes: entry.bytes, segment: entry });
      if (entry.deletionGeneration === 0) continue;
      const vectorPath = below(deletionVectorPath(copyPaths, entry));
      const vectorFrom = deletionVectorPath(paths, entry);
      sources.push({ path: vectorPath, from: vectorFrom, bytes: lengthOf(vectorFrom) });
    }
    for (const portion of catalog.heldFilePortions()) {
      this.#requireWanted();
      await this.#pause();
      for (const file of portion) {
        sources.push({ path: blobPath(file), bytes: file.size, mayBeMissing: true });
      }
    }
    for (const number of logFiles) {
      const path = walFilePath(paths, number);
      const isLast = number === logFiles.at(-1);
      // The last one is full of zeros behind its end, and written on.
      sources.push({ path: below(path), bytes: isLast ? logEnd : lengthOf(path) });
    }
    return sources;
  }

  #requireRoom(): void {
    const { disk, minFreeBytes } = this.#source;
    const action = `back up to ${this.#target}`;
    requireRoom(disk, this.#target, { action, bytes: this.#totalBytes, minFreeBytes });
  }

  async #copy(source: Source): Promise<void> {
    const { disk, paths } = this.#source;
    const { bytes, mayBeMissing = false, path, segment } = source;
    this.#requireWanted();
    const from = source.from ?? `${paths.root}/${path}`;
    if (mayBeMissing && !disk.exists(from)) return;
    this.#directories.push(...makeDirectoryOf(disk, this.#target, path));
    const isCatalog = path === CATALOG_FILE;
    const copy = new FileCopy(from, `${this.#target}/${path}`, {
      disk,
      ...(isCatalog ? { source: this.#source.catalogFile() } : {}),
      upTo: bytes,
      pause: this.#pause,
      onCopied: (count) => this.#note(count),
    });
    try {
      if (segment !== undefined) await this.#check(segment, copy);
      this.#files.push({ path, ...(await copy.finish()) });
    } finally {
      copy.close();
    }
    if (isCatalog) this.#releaseCatalog();
  }

  /** Has the copy follow, so that the disk is read once. @throws {DatabaseError} DATA_DAMAGED */
  async #check(entry: SegmentEntry, copy: FileCopy): Promise<void> {
    const { disk, paths, store } = this.#source;
    const pause = async (readBytes: number): Promise<void> => {
      this.#requireWanted();
      await copy.advance(readBytes);
      await this.#pause();
    };
    try {
      await requireSoundSegment(disk, paths, { entry, pause });
    } catch (error) {
      if (!(error instanceof CorruptionError)) throw error;
      store.noteDamage(entry, error);
      this.#requireStorage(entry);
      const { offset, path, what } = error;
      if (error instanceof UnreadableError) {
        throw this.#refused(entry, `${path} cannot be read: ${what}`, UNREADABLE_HINT);
      }
      throw this.#damaged(entry, `${path} is damaged at byte ${offset}: ${what}`);
    }
  }

  /** @throws {DatabaseError} STORAGE_UNAVAILABLE if the storage of a segment is not there. */
  #requireStorage(entry: SegmentEntry): void {
    const { home } = entry;
    const what = home && this.#source.store.storages.faultOf(home.storageId);
    if (home === undefined || what === undefined) return;
    throw new DatabaseError(
      "STORAGE_UNAVAILABLE",
      `Cannot back up to ${this.#target}: rows of ${this.#nameOf(entry)} lie in storage ${home.storageId}, which is not available: ${what}`,
      { hint: `put ${home.root} back and restart the server, or drop the table` },
    );
  }

  /** What is quarantined is damaged, or lacks rows that were written since. */
  #requireUsable(entry: SegmentEntry): void {
    if (!entry.quarantined) return;
    const path = segmentPath(this.#source.paths, entry);
    throw this.#damaged(entry, `${path} is quarantined`);
  }

  #damaged(entry: SegmentEntry, what: string): DatabaseError {
    const { root } = this.#source.paths;
    const hint = `keep older backups; stop the server, copy ${root}, and run tidemark repair, which gives those rows up, or drop the table: then there can be backups again`;
    return this.#refused(entry, what, hint);
  }

  #refused(entry: SegmentEntry, what: string, hint: string): DatabaseError {
    const message = `Cannot back up to ${this.#target}: of ${this.#nameOf(entry)}, ${what}`;
    return new DatabaseError("DATA_DAMAGED", message, { hint });
  }

  #nameOf({ tableId }: SegmentEntry): string {
    return this.#tableNames.get(tableId) ?? `table ${tableId}`;
  }

  #note(count: number): void {
    this.#copiedBytes += count;
    this.#requireWanted();
    const share = this.#totalBytes === 0 ? 0 : this.#copiedBytes / this.#totalBytes;
    this.#job.advance(share, `${this.#copiedBytes} of ${this.#totalBytes} bytes copied`);
  }

  #requireWanted(): void {
    if (!this.#job.isCancelled) return;
    throw new DatabaseError("CANCELLED", `Cannot back up to ${this.#target}: the job was killed`);
  }

  /** How far the log must reach, and up to where ids are taken, at the moment of the backup. */
  #writeNumbers(): void {
    const { disk } = this.#source;
    const { highWater, ids } = dataPathsOf(this.#target);
    const { reservedIds, seq } = this.#snapshot;
    rewriteNumberFile(disk, highWater, seq);
    rewriteNumberFile(disk, ids, reservedIds);
    for (const path of [highWater, ids]) {
      const below = path.slice(this.#target.length + 1);
      this.#files.push({ path: below, ...checksumOfFile(disk, path) });
    }
  }
}
