/**
 * Storages: directories beside the data directory in which tables may have their segments. The log,
 * the catalog and uploaded files stay in the data directory.
 *
 *     <root>/STORAGE    {"storage":"…","key":"…"}, sealed: which storage of which database this is
 *     <root>/LOCK       one process per storage
 *     <root>/segments/<template>/<table id>/<n>.seg  <n>.<generation>.dv
 *     <root>/tmp/  lost+found/    staging; what a start found unlisted, or repair gave up
 *
 * Every protocol stays within one file system, as each storage has its own staging. A segment's
 * entry in the manifest says where it lies, so a table may have segments in two places.
 *
 * - Nothing is written, and nobody's word about a segment is believed, in a directory without the
 *   mark that the catalog names: it is not mounted, or another server's.
 * - One that has a fault has it until the next start. Its tables are refused meanwhile and their
 *   segments left alone; the log keeps what they cannot flush.
 * - One that does not take the rows of a flush takes no more until it does.
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

/** Enough that no two storages are ever taken for one. */
const KEY_BYTES = 16;

export class Storages {
  /** Called when a storage is found to be gone while the server runs. */
  onFault: () => void = () => {};
  /** Resolves once every file is gone that the store was to remove so far. */
  filesGone: () => Promise<void> = () => Promise.resolve();
  readonly #options: StoragesOptions;
  readonly #open = new Map<string, OpenStorage>();
  /** Those that are being created. */
  readonly #begun = new Map<string, Pick<ListedStorage, "root">>();
  /** Of storages that were dropped, in which readers may have kept files of dropped tables. */
  readonly #droppedRoots = new Set<string>();

  constructor(options: StoragesOptions) {
    this.#options = options;
  }

  /**
   * Begins to use what the catalog lists. One with a fault is reported, and no reason not to start.
   */
  open(all: readonly ListedStorage[]): void {
    const { log } = this.#options;
    for (const listed of all) {
      const opened = this.#opened(listed);
      this.#open.set(listed.storageId, { listed, ...opened });
      if (opened.fault === undefined) continue;
      const { root, storageId } = listed;
      log.error("storage is not available", { storage: storageId, root, what: opened.fault });
    }
  }

  /** Why a storage is not used; undefined when it is. */
  faultOf(storageId: string): string | undefined {
    const known = this.#open.get(storageId);
    return known === undefined ? "the catalog does not list it" : known.fault;
  }

  /**
   * Looks at the mark, for who is about to write, or to give up what cannot be read.
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
   * Looks at the mark, for who met files that are not as they should be, or gives up some; where it
   * is missing, that is the storage's fault from now on. Returns why the storage is not used.
   */
  noteIfGone({ storageId }: SegmentHome): string | undefined {
    const known = this.#open.get(storageId);
    if (known === undefined || known.fault !== undefined) return this.faultOf(storageId);
    const fault = storageFault(this.#options.disk, known.listed);
    if (fault === undefined) return undefined;
    this.#options.log.error("storage is gone", { storage: storageId, what: fault });
    this.#open.set(storageId, { ...known, fault });
    this.onFault();
    return fault;
  }

  /**
   * Whether what has the names of a segment's files is the segment's own: in a storage that is
   * used, or was dropped since. Elsewhere it may be another's.
   */
  hasOwnFiles(home: SegmentHome): boolean {
    const { root, storageId } = home;
    if (this.#open.get(storageId)?.listed.root === root) return this.noteIfGone(home) === undefined;
    return this.#droppedRoots.has(root) && !isMarked(this.#options.disk, root);
  }

  /**
   * Refuses a directory that cannot become a storage; changes nothing.
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
      if (backup !== undefined) throw refuse(`it lies inside the backup ${backup}`);
      if (isFree(disk, root)) return;
      throw disk.exists(storagePathsOf(root).mark)
        ? refuse(
            "it is a storage already, of this database or another",
            "name another directory, or empty it if SHOW STORAGES of no server lists it",
          )
        : refuse("it is not empty", "name a directory that is empty or not there yet");
    } catch (error) {
      if (error instanceof DiskError) throw failed(action, root, error);
      throw error;
    }
  }

  /**
   * Refuses a path in a storage, or around one, as it says and as symbolic links lead: what is no
   * segment there would be swept away.
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
        `Cannot ${action} "${path}": storage ${storageId} lies in ${root}`,
        { hint: "name a directory apart from it" },
      );
    }
  }

  /**
   * Makes a directory a storage, durably, and begins to use it. The catalog comes to list it then.
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
   * Gives a storage that a restore brought here a mark, if its directory is there, empty and
   * allowed.
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
      // Safe: it has a fault then, which says the same.
      if (error instanceof DiskError || error instanceof DatabaseError) return undefined;
      throw error;
    }
  }

  /**
   * Nobody lists it any more. What cannot be removed is left; files that somebody reads go later,
   * by whoever asks {@linkcode hasOwnFiles}.
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
        // Also where something is left: else nobody could make a storage there before the next
        // start.
        known.release();
      }
      if (known.fault === undefined) disk.remove(lock);
    } catch (error) {
      if (!(error instanceof DiskError)) throw error;
      this.#noteUntidy(root, error);
    }
  }

  /** Removes the mark, and then what else is there. @throws {DiskError} */
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
   * Removes the directories of a dropped storage as far as no files are in them. Its root stays: it
   * may have been there before, and belong to somebody.
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
   * Removes empty directories of dropped storages, for who has just removed files. What may be
   * another's storage by now, or is about to become one, is left alone.
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

  /** @throws {DiskError} */
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
    this.#options.log.warn("cannot tidy a storage that was dropped", { root, error: message });
  }

  /**
   * Moves what the manifest does not list to the lost+found of each storage. A disk that refuses
   * that is no reason not to start: such files are in nobody's way.
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

  /** @throws {DiskError} */
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

  /** Tries a storage, or the data directory; one that is not used is not tried. */
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

  /** Of the file system of a storage, or of the data directory; undefined where it does not say. */
  sizesOf(storageId: string | undefined): StorageSizes | undefined {
    const { dataPath, disk } = this.#options;
    const root = storageId === undefined ? dataPath : this.#open.get(storageId)?.listed.root;
    try {
      if (root === undefined) return undefined;
      const totalBytes = disk.totalBytes(root);
      return { totalBytes, usedBytes: totalBytes - disk.freeBytes(root) };
    } catch (error) {
      // Safe: what is wrong with it is told beside its sizes.
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

/** Whether one path is the other, or lies in it. */
function overlap(left: string, right: string): boolean {
  return left === right || isBelow(left, right) || isBelow(right, left);
}

/** What the disk says, as a failure of the statement. */
function failed(action: string, root: string, error: unknown): unknown {
  if (error instanceof DatabaseError && error.condition !== "STORAGE_UNAVAILABLE") return error;
  if (!(error instanceof DiskError || error instanceof DatabaseError)) return error;
  const condition = "STORAGE_UNAVAILABLE";
  return new DatabaseError(condition, `Cannot ${action} "${root}": ${error.message}`, {
    hint: "the server's user should be able to write, read, list and delete there",
    cause: error,
  });
}
