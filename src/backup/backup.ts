/**
 * Creates a backup of an open database. A backup is a directory that contains the state of the
 * database at one moment; `tidemark verify` checks it, and `restore.ts` restores it.
 *
 *     1 in one tick: note the end of the log, and hold every file, including the catalog
 *     2 copy and sync files: the catalog, segments, deletion vectors, uploads, and the log
 *       up to its end
 *     3 sync the directories, and write backup.json, which lists everything
 *
 * Commits continue in the meantime and are not in the backup. If a backup fails or is cancelled
 * before step 3, everything it wrote is removed. A crash leaves a directory without backup.json,
 * which is not a backup.
 *
 * Segments in other storages are copied to the data directory of the backup, so that the backup is
 * self-contained. Each segment is verified before it is copied, and a damaged segment makes the
 * backup fail, because otherwise a damaged backup could replace an older, intact one. Only data
 * that a repair has declared lost is omitted.
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
  indexPath,
  isLost,
  requireSoundSegment,
  rewriteNumberFile,
  segmentPath,
  walFilePath,
  writeBackupList,
} from "../storage/files.ts";
import type { BlobStore, Job, LocalStore, SegmentEntry, StoreSnapshot } from "../storage/mod.ts";
import { requireFreeSpace } from "./free_space.ts";

export interface BackupSource {
  readonly disk: Disk;
  readonly clock: Clock;
  readonly catalog: CatalogDatabase;
  readonly store: LocalStore;
  readonly blobs: BlobStore;
  readonly paths: DataPaths;
  /** Returns the catalog's file, which stays open as long as the catalog does. */
  readonly catalogFile: () => DiskFile;
  readonly version: string;
  /** The number of bytes that must remain free on the disk that receives the backup. */
  readonly minFreeBytes: number;
}

/** The hint in the error for a file that cannot be read now, but may be readable later. */
const UNREADABLE_HINT =
  "check the disk and restart the server, which then tries again; if the file is lost, stop " +
  "the server and run tidemark repair, which discards the lost rows, or drop the table";

/** A file of the database, and the number of its bytes that belong to the backup. */
interface CopySource {
  /**
   * The path of the file within the backup. Except for segments in other storages, it is also the
   * path within the data directory.
   */
  readonly path: string;
  /** The path of the source file; absent if the source is at `path` within the data directory. */
  readonly from?: string;
  readonly bytes: number;
  /**
   * Whether the file may be missing. After a crash, the catalog may list an uploaded file to which
   * no row refers.
   */
  readonly mayBeMissing?: boolean;
  /**
   * The segment that the file contains, if any. It is verified before it is copied, together with
   * its deletion vector.
   */
  readonly segment?: SegmentEntry;
}

export interface BackupResult {
  readonly list: BackupList;
  /** The names of the tables for which a repair has declared rows lost. */
  readonly incompleteTables: readonly string[];
}

/**
 * Copies the database to a directory while the server runs.
 * @param target A path that does not exist, or an empty directory. Its parent must exist.
 * @throws {DatabaseError} INVALID_OPTION if the target is in use, DISK_FULL if there is no space,
 *   CANCELLED if the job was cancelled, DATA_DAMAGED if data to be copied is damaged.
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

/**
 * Creates the directory for a backup. If it already exists, it must be empty.
 * @throws {DatabaseError} INVALID_OPTION
 * @throws {DiskError}
 */
function prepareTarget(disk: Disk, target: string): void {
  const parent = target.slice(0, Math.max(1, target.lastIndexOf("/")));
  if (!disk.exists(parent)) {
    throw new DatabaseError(
      "INVALID_OPTION",
      `Cannot back up to ${target}: there is no directory ${parent}`,
      { hint: "create this directory, or choose a directory inside an existing one" },
    );
  }
  const outer = backupAround(disk, parent);
  if (outer !== undefined) throw refused(target, `the directory is inside the backup ${outer}`);
  if (!disk.exists(target)) {
    disk.makeDirectory(target);
    disk.syncDirectory(parent);
    return;
  }
  if (disk.sizeOf(target) === undefined || !isDirectory(disk, target)) {
    throw refused(target, "the path is a file");
  }
  if (disk.list(target).length === 0) return;
  const what = disk.exists(backupListPath(target))
    ? "the directory already contains a backup"
    : "the directory is not empty";
  throw refused(target, what);
}

function isDirectory(disk: Disk, path: string): boolean {
  const name = path.slice(path.lastIndexOf("/") + 1);
  const parent = path.slice(0, Math.max(1, path.lastIndexOf("/")));
  return disk.list(parent).some((entry) => entry.name === name && entry.isDirectory);
}

function refused(target: string, what: string): DatabaseError {
  return new DatabaseError("INVALID_OPTION", `Cannot back up to ${target}: ${what}`, {
    hint: "choose a directory that does not exist yet",
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
   * Prepares the backup in a single tick: takes the snapshot of the store and protects every file.
   * @param parts.held Collects the functions that release the protected files, even if this
   *   constructor throws.
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
    this.#requireFreeSpace();
    for (const name of ["wal", "segments", "files"]) {
      disk.makeDirectory(`${this.#target}/${name}`);
      this.#directories.push(`${this.#target}/${name}`);
    }
    for (const source of sources) await this.#copy(source);
    this.#writeNumbers();
    // The deepest directories are synced first, so that no name becomes durable before the
    // directory to which it refers.
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

  /**
   * Lists the files to copy. This takes several ticks, because there may be as many as 100,000
   * files.
   */
  async #sources(): Promise<CopySource[]> {
    const { catalog, disk, paths } = this.#source;
    const { logEnd, logFiles, segments } = this.#snapshot;
    const below = (path: string): string => path.slice(paths.root.length + 1);
    const lengthOf = (path: string): number => disk.sizeOf(path) ?? 0;
    const sources: CopySource[] = [
      // The catalog is copied first, because SQLite's write-ahead log keeps growing until this
      // copy is complete.
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
      for (const indexId of entry.indexIds ?? []) {
        const indexFrom = indexPath(paths, entry, indexId);
        // The file of an index may be missing, because the index can be rebuilt from the rows.
        if (!disk.exists(indexFrom)) continue;
        const indexBelow = below(indexPath(copyPaths, entry, indexId));
        sources.push({ path: indexBelow, from: indexFrom, bytes: lengthOf(indexFrom) });
      }
      if (entry.deletionGeneration === 0) continue;
      const vectorPath = below(deletionVectorPath(copyPaths, entry));
      const vectorFrom = deletionVectorPath(paths, entry);
      sources.push({ path: vectorPath, from: vectorFrom, bytes: lengthOf(vectorFrom) });
    }
    for (const portion of catalog.files.heldPortions()) {
      this.#requireWanted();
      await this.#pause();
      for (const file of portion) {
        sources.push({ path: blobPath(file), bytes: file.size, mayBeMissing: true });
      }
    }
    for (const number of logFiles) {
      const path = walFilePath(paths, number);
      const isLast = number === logFiles.at(-1);
      // The last log file is still being written. It contains only zeros after its end.
      sources.push({ path: below(path), bytes: isLast ? logEnd : lengthOf(path) });
    }
    return sources;
  }

  #requireFreeSpace(): void {
    const { disk, minFreeBytes } = this.#source;
    const action = `back up to ${this.#target}`;
    requireFreeSpace(disk, this.#target, { action, bytes: this.#totalBytes, minFreeBytes });
  }

  async #copy(source: CopySource): Promise<void> {
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

  /**
   * Verifies a segment just before it is copied, so that the disk is read only once.
   *
   * @throws {DatabaseError} DATA_DAMAGED
   */
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

  /**
   * Refuses a segment whose storage is unavailable.
   * @throws {DatabaseError} STORAGE_UNAVAILABLE
   */
  #requireStorage(entry: SegmentEntry): void {
    const { home } = entry;
    const what = home && this.#source.store.storages.faultOf(home.storageId);
    if (home === undefined || what === undefined) return;
    throw new DatabaseError(
      "STORAGE_UNAVAILABLE",
      `Cannot back up to ${this.#target}: rows of ${this.#nameOf(entry)} are in storage ` +
        `${home.storageId}, which is unavailable: ${what}`,
      { hint: `restore ${home.root} and restart the server, or drop the table` },
    );
  }

  /** Refuses a quarantined segment. It is damaged, or lacks later replacements of its rows. */
  #requireUsable(entry: SegmentEntry): void {
    if (!entry.quarantined) return;
    const path = segmentPath(this.#source.paths, entry);
    throw this.#damaged(entry, `${path} is quarantined`);
  }

  #damaged(entry: SegmentEntry, what: string): DatabaseError {
    const { root } = this.#source.paths;
    const hint =
      `keep older backups; to make backups possible again, stop the server, copy ${root}, ` +
      "and run tidemark repair, which discards the lost rows, or drop the table";
    return this.#refused(entry, what, hint);
  }

  #refused(entry: SegmentEntry, what: string, hint: string): DatabaseError {
    const message =
      `Cannot back up to ${this.#target}: a file of ${this.#nameOf(entry)} is damaged or ` +
      `unreadable: ${what}`;
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

  /**
   * Writes two number files that a restore needs: the seq at the end of the backup's log, and the
   * highest ids in use.
   */
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
