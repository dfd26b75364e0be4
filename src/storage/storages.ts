/**
 * Manages storages: directories outside the data directory in which tables may keep their
 * segments. The log, the catalog and uploaded files stay in the data directory.
 *
 *     <root>/STORAGE    {"storage":"…","key":"…"}, sealed: the storage and the database it belongs to
 *     <root>/LOCK       one process per storage
 *     <root>/segments/<template>/<table id>/<n>.seg  <n>.<generation>.dv
 *     <root>/tmp/  lost+found/    staging; files unlisted on startup or abandoned by a repair
 *
 * Each storage has a staging directory, so every rename stays within one file system. A segment's
 * manifest entry names its storage, so a table may have segments in several storages.
 *
 * - The directory must contain the mark that the catalog records. If it does not, it is not
 *   mounted or belongs to another server: the server then writes nothing there, and trusts no file
 *   that it finds there.
 * - A faulty storage stays out of use until the next startup. Until then, its tables cannot be
 *   used, its segments are left alone, and the log keeps the rows that cannot be flushed.
 * - If a storage refuses the rows of a flush, its tables accept no more rows until a flush
 *   succeeds.
 */
import { dirname } from "node:path";
import { removeTree } from "../base/copy_file.ts";
import { DatabaseError, DiskError } from "../base/errors.ts";
import type { Log } from "../base/log.ts";
import type { Random } from "../base/random.ts";
import type { SegmentEntry, SegmentHome } from "./contract/manifest.ts";
import {
  type AllowedPaths,
  isBelow,
  realPathOf,
  requireAllowedPath,
} from "./directory/allowed_paths.ts";
import { backupAround } from "./directory/backup_list.ts";
import { type DataPaths, dataPathsOf, storagePathsOf } from "./directory/file_names.ts";
import {
  listedFiles,
  moveToLostAndFound,
  nameInLostAndFound,
  unlistedFiles,
} from "./directory/lost_and_found.ts";
import {
  claimSteps,
  isFree,
  isMarked,
  type ListedStorage,
  markSteps,
  pruneBelow,
  removeIfEmpty,
  storageFault,
  unavailable,
  unmark,
} from "./directory/storage_directory.ts";
import { PROBE, probe, type StorageProbe } from "./directory/storage_probe.ts";
import { runNow, runSlowly } from "./directory/sync_steps.ts";
import { refuseNewerSegments } from "./newer_files.ts";

export interface StoragesOptions extends AllowedPaths {
  readonly log: Log;
  readonly random: Pick<Random, "bytes">;
}

interface OpenStorage {
  readonly listed: ListedStorage;
  readonly release: (() => void) | undefined;
  readonly fault: string | undefined;
}

/** The length of a random key in bytes. Keys of this length never collide in practice. */
const KEY_BYTES = 16;

export class Storages {
  /** Called when a storage is found missing while the server is running. */
  onFault: () => void = () => {};
  /** Resolves once all files whose removal the store has begun so far are gone. */
  filesGone: () => Promise<void> = () => Promise.resolve();
  readonly #options: StoragesOptions;
  readonly #open = new Map<string, OpenStorage>();
  /** The storages being created, by id. */
  readonly #begun = new Map<string, Pick<ListedStorage, "root">>();
  /**
   * The roots of dropped storages in which readers may still keep files of dropped tables alive.
   */
  readonly #droppedRoots = new Set<string>();

  constructor(options: StoragesOptions) {
    this.#options = options;
  }

  /**
   * Starts using the storages listed in the catalog. A faulty storage is reported, but does not
   * prevent startup.
   */
  open(all: readonly ListedStorage[]): void {
    const { log } = this.#options;
    for (const listed of all) {
      const opened = this.#opened(listed);
      this.#open.set(listed.storageId, { listed, ...opened });
      if (opened.fault === undefined) continue;
      const { root, storageId } = listed;
      log.error("a storage is unavailable", { storage: storageId, root, what: opened.fault });
    }
  }

  /** Returns the reason why a storage is not in use; undefined if it is in use. */
  faultOf(storageId: string): string | undefined {
    const known = this.#open.get(storageId);
    return known === undefined ? "the catalog does not list it" : known.fault;
  }

  /**
   * Checks the mark of a storage, before a write and before unreadable files are given up.
   *
   * @throws {DatabaseError} STORAGE_UNAVAILABLE
   */
  requireThere(home: SegmentHome | undefined): void {
    if (home === undefined) return;
    const known = this.#open.get(home.storageId);
    const what =
      known === undefined || known.fault !== undefined
        ? this.faultOf(home.storageId)
        : storageFault(this.#options.disk, known.listed);
    if (what !== undefined) throw unavailable("use", home, what);
  }

  /**
   * Checks the mark of a storage after files were found damaged or were given up. If the mark is
   * missing, the storage has a fault until the next startup. Returns the reason why the storage is
   * not in use; undefined if it is in use.
   */
  noteIfGone({ storageId }: SegmentHome): string | undefined {
    const known = this.#open.get(storageId);
    if (known === undefined || known.fault !== undefined) return this.faultOf(storageId);
    const fault = storageFault(this.#options.disk, known.listed);
    if (fault === undefined) return undefined;
    this.#options.log.error("a storage has become unavailable", {
      storage: storageId,
      what: fault,
    });
    this.#open.set(storageId, { ...known, fault });
    this.onFault();
    return fault;
  }

  /**
   * Whether a file named like a segment file is certain to belong to that segment. It is certain
   * in a storage that is in use or has since been dropped. In any other storage, the file may
   * belong to another server.
   */
  hasOwnFiles(home: SegmentHome): boolean {
    const { root, storageId } = home;
    if (this.#open.get(storageId)?.listed.root === root) return this.noteIfGone(home) === undefined;
    return this.#droppedRoots.has(root) && !isMarked(this.#options.disk, root);
  }

  /**
   * Refuses a directory that cannot become a storage. Changes nothing.
   *
   * @throws {DatabaseError} INVALID_OPTION, STORAGE_UNAVAILABLE
   */
  requireFree({ root, storageId }: Omit<ListedStorage, "key">): void {
    const { disk } = this.#options;
    const action = `create storage ${storageId} in`;
    const refuse = (what: string, hint?: string): DatabaseError =>
      new DatabaseError("INVALID_OPTION", `Cannot ${action} "${root}": ${what}`, { hint });
    const parent = dirname(root);
    try {
      requireAllowedPath(this.#options, { action, path: root });
      this.requireApart({ action, path: root });
      if (!disk.exists(parent)) throw refuse(`there is no directory ${parent}`);
      const backup = backupAround(disk, parent) ?? backupAround(disk, disk.realPath(parent));
      if (backup !== undefined) throw refuse(`the directory is inside the backup ${backup}`);
      if (isFree(disk, root)) return;
      throw disk.exists(storagePathsOf(root).mark)
        ? refuse(
            "the directory is already a storage of this or a different database",
            "choose a different directory; or if SHOW STORAGES lists it on no server, empty it",
          )
        : refuse("the directory is not empty", "choose an empty or new directory");
    } catch (error) {
      if (error instanceof DiskError) throw failed(action, root, error);
      throw error;
    }
  }

  /**
   * Refuses a path that lies in a storage or contains one, both as written and after symbolic
   * links are resolved. Otherwise the next startup would sweep away all files there other than
   * segments.
   *
   * @throws {DatabaseError} INVALID_OPTION
   * @throws {DiskError}
   */
  requireApart({ action, path }: { action: string; path: string }): void {
    const { disk } = this.#options;
    const paths = [path, realPathOf(disk, path)];
    const known = [...this.#open].map(([storageId, { listed }]) => [storageId, listed] as const);
    for (const [storageId, { root }] of [...known, ...this.#begun]) {
      const roots = [root, realPathOf(disk, root)];
      if (!roots.some((own) => paths.some((other) => overlap(own, other)))) continue;
      throw new DatabaseError(
        "INVALID_OPTION",
        `Cannot ${action} "${path}": storage ${storageId} is in ${root}`,
        { hint: "choose a directory that neither contains that directory nor is inside it" },
      );
    }
  }

  /**
   * Durably turns a directory into a storage, and starts using it. The caller then adds it to the
   * catalog.
   *
   * @throws {DatabaseError} ALREADY_EXISTS, INVALID_OPTION, STORAGE_UNAVAILABLE
   */
  async create(wanted: Omit<ListedStorage, "key">): Promise<ListedStorage> {
    const { root, storageId } = wanted;
    if (this.#open.has(storageId) || this.#begun.has(storageId)) {
      const message = `Cannot create storage ${storageId}: it already exists, or is being created`;
      throw new DatabaseError("ALREADY_EXISTS", message);
    }
    this.requireFree(wanted);
    this.#begun.set(storageId, { root });
    try {
      return await this.#create(wanted);
    } finally {
      this.#begun.delete(storageId);
    }
  }

  async #create(wanted: Omit<ListedStorage, "key">): Promise<ListedStorage> {
    const { disk } = this.#options;
    let release: (() => void) | undefined;
    try {
      const key = this.#hex();
      const listed = { ...wanted, key };
      release = await runSlowly(disk, claimSteps(disk, listed));
      if (release === undefined) throw new DiskError("EBUSY", wanted.root, "lock");
      const { fault } = await probe(disk, this.#probeFile(storagePathsOf(wanted.root).tmp));
      if (fault !== undefined) throw new DatabaseError("STORAGE_UNAVAILABLE", fault);
      await runSlowly(disk, markSteps(disk, listed));
      this.#open.set(wanted.storageId, { listed, release, fault: undefined });
      this.#droppedRoots.delete(wanted.root);
      return listed;
    } catch (error) {
      if (release !== undefined) unmark(disk, wanted.root);
      release?.();
      throw failed(`create storage ${wanted.storageId} in`, wanted.root, error);
    }
  }

  /**
   * Writes the mark of a storage that a restore has brought into the catalog, provided that the
   * directory exists, is empty and is allowed.
   */
  adopt(listed: Omit<ListedStorage, "key">): ListedStorage | undefined {
    const { disk } = this.#options;
    const { root, storageId } = listed;
    try {
      requireAllowedPath(this.#options, { action: `adopt storage ${storageId} in`, path: root });
      if (!disk.exists(root) || !isFree(disk, root)) return undefined;
      const adopted = { ...listed, key: this.#hex() };
      runNow(disk, claimSteps(disk, adopted))?.();
      runNow(disk, markSteps(disk, adopted));
      return adopted;
    } catch (error) {
      // Ignoring the error is safe: the storage then has a fault, which reports the same problem.
      if (error instanceof DiskError || error instanceof DatabaseError) return undefined;
      throw error;
    }
  }

  /**
   * Removes the files of a storage that the catalog no longer lists. Files that cannot be removed
   * stay. Files still being read are removed later, if {@linkcode hasOwnFiles} confirms that they
   * still belong to the storage.
   */
  drop(storageId: string): void {
    const known = this.#open.get(storageId);
    this.#open.delete(storageId);
    if (known?.release === undefined) return;
    const { disk } = this.#options;
    const { lock, root } = storagePathsOf(known.listed.root);
    try {
      try {
        if (known.fault === undefined) this.#clear(root);
      } finally {
        // The lock is released even if files remain. Otherwise no storage could be created there
        // until the next startup.
        known.release();
      }
      if (known.fault === undefined) disk.remove(lock);
    } catch (error) {
      if (!(error instanceof DiskError)) throw error;
      this.#noteUntidy(root, error);
    }
  }

  /**
   * Removes the mark of a dropped storage first, and then all of its other files. @throws
   * {DiskError}
   */
  #clear(storageRoot: string): void {
    const { disk } = this.#options;
    const { mark: path, root, tmp } = storagePathsOf(storageRoot);
    this.#droppedRoots.add(root);
    disk.remove(path);
    disk.syncDirectory(root);
    removeTree(disk, tmp);
    this.#tidy(root);
  }

  /**
   * Removes the directories of a dropped storage that contain no files. The root stays, since it
   * may be older than the storage and used for something else.
   *
   * @throws {DiskError}
   */
  #tidy(storageRoot: string): void {
    const { disk } = this.#options;
    const { lostAndFound, root, segments } = storagePathsOf(storageRoot);
    if (disk.exists(lostAndFound)) removeIfEmpty(disk, lostAndFound);
    pruneBelow(disk, segments);
    if (removeIfEmpty(disk, segments)) this.#droppedRoots.delete(root);
  }

  /**
   * Removes empty directories of dropped storages once files have been removed. A directory that
   * already belongs to another storage, or is about to become one, is left alone.
   */
  tidyDropped(): void {
    for (const root of this.#droppedRoots) {
      try {
        this.#tidyLocked(root);
      } catch (error) {
        if (!(error instanceof DiskError)) throw error;
        this.#noteUntidy(root, error);
      }
    }
  }

  /**
   * Removes the empty directories of a dropped storage while holding its lock.
   *
   * @throws {DiskError}
   */
  #tidyLocked(root: string): void {
    const { disk } = this.#options;
    const { lock, segments } = storagePathsOf(root);
    if (!disk.exists(segments)) {
      this.#droppedRoots.delete(root);
      return;
    }
    const release = disk.lock(lock);
    if (release === undefined) return;
    const isOthers = isMarked(disk, root);
    try {
      if (!isOthers) this.#tidy(root);
    } finally {
      release();
    }
    if (!isOthers) disk.remove(lock);
  }

  #noteUntidy(root: string, { message }: DiskError): void {
    this.#options.log.warn("cannot remove the directories of a dropped storage", {
      root,
      error: message,
    });
  }

  /**
   * Moves files that the manifest does not list to their storage's lost+found/. If the disk
   * refuses, the server still starts, since such files do no harm.
   */
  sweep(paths: DataPaths, entries: readonly SegmentEntry[]): void {
    const { log } = this.#options;
    const listed = listedFiles(paths, entries);
    for (const { fault, listed: storage } of this.#open.values()) {
      if (fault !== undefined) continue;
      const { root } = storage;
      try {
        this.#sweep(root, listed);
      } catch (error) {
        if (!(error instanceof DiskError)) throw error;
        log.warn("cannot sweep a storage", { root, error: error.message });
      }
    }
  }

  /** Moves unlisted files of one storage to its lost+found/. @throws {DiskError} */
  #sweep(storageRoot: string, listed: ReadonlySet<string>): void {
    const { disk, log } = this.#options;
    const { lostAndFound, root, segments } = storagePathsOf(storageRoot);
    let count = 0;
    for (const from of unlistedFiles(disk, segments, listed)) {
      moveToLostAndFound(disk, { lostAndFound }, { from, name: nameInLostAndFound(from) });
      disk.syncDirectory(dirname(from));
      count += 1;
    }
    pruneBelow(disk, segments);
    if (count === 0) return;
    disk.syncDirectory(lostAndFound);
    disk.syncDirectory(root);
    log.warn("moved unlisted segment files to lost+found", { path: segments, count });
  }

  /** Probes a storage or the data directory. A storage that is not in use is skipped. */
  async examine(storageId: string | undefined): Promise<StorageProbe> {
    const { dataPath, disk } = this.#options;
    if (storageId === undefined) return probe(disk, this.#probeFile(dataPathsOf(dataPath).tmp));
    const known = this.#open.get(storageId);
    const fault = this.faultOf(storageId) ?? (known && storageFault(disk, known.listed));
    if (known !== undefined && fault === undefined) {
      return probe(disk, this.#probeFile(storagePathsOf(known.listed.root).tmp));
    }
    return {
      isReadable: false,
      isWritable: false,
      isListable: false,
      isDeletable: false,
      fault,
    };
  }

  /**
   * Returns the total and free space on the file system of a storage or of the data directory;
   * undefined if unknown.
   */
  sizesOf(storageId: string | undefined): StorageSizes | undefined {
    const { dataPath, disk } = this.#options;
    const root = storageId === undefined ? dataPath : this.#open.get(storageId)?.listed.root;
    try {
      if (root === undefined) return undefined;
      const totalBytes = disk.totalBytes(root);
      return { totalBytes, usedBytes: totalBytes - disk.freeBytes(root) };
    } catch (error) {
      // Ignoring the error is safe: the fault is reported alongside the sizes.
      if (error instanceof DiskError) return undefined;
      throw error;
    }
  }

  close(): void {
    for (const { release } of this.#open.values()) release?.();
    this.#open.clear();
  }

  #opened(listed: ListedStorage): Pick<OpenStorage, "fault" | "release"> {
    const { disk } = this.#options;
    const { root } = listed;
    const fault = storageFault(disk, listed);
    if (fault !== undefined) return { fault, release: undefined };
    const { segments } = storagePathsOf(root);
    let release: (() => void) | undefined;
    try {
      refuseNewerSegments(disk, segments);
      release = runNow(disk, claimSteps(disk, listed));
      if (release === undefined) return { fault: "another process is using it", release };
      return { fault: undefined, release };
    } catch (error) {
      if (!(error instanceof DiskError || error instanceof DatabaseError)) throw error;
      release?.();
      return { fault: error.message, release: undefined };
    }
  }

  #probeFile(directory: string): { directory: string; name: string } {
    return { directory, name: `${PROBE}${this.#hex()}` };
  }

  #hex(): string {
    return Buffer.from(this.#options.random.bytes(KEY_BYTES)).toString("hex");
  }
}

export interface StorageSizes {
  readonly totalBytes: number;
  readonly usedBytes: number;
}

/** Whether two paths are the same, or one contains the other. */
function overlap(left: string, right: string): boolean {
  return left === right || isBelow(left, right) || isBelow(right, left);
}

/** Converts a disk error to the error that a statement reports. */
function failed(action: string, root: string, error: unknown): unknown {
  if (error instanceof DatabaseError && error.code !== "STORAGE_UNAVAILABLE") return error;
  if (!(error instanceof DiskError || error instanceof DatabaseError)) return error;
  const condition = "STORAGE_UNAVAILABLE";
  return new DatabaseError(condition, `Cannot ${action} "${root}": ${error.message}`, {
    hint: "the server's user must be able to write, read, list and delete files there",
    cause: error,
  });
}
