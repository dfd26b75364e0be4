/**
 * Handles the directory of a storage: the file that marks it, and the conditions under which a
 * directory may become a storage. For its layout and use, see `storage/storages.ts`.
 */
import { dirname } from "node:path";
import { assert } from "../../base/assert.ts";
import { removeTree } from "../../base/copy_file.ts";
import type { Disk } from "../../base/disk.ts";
import { CorruptionError, DatabaseError, DiskError } from "../../base/errors.ts";
import type { SegmentHome } from "../contract/manifest.ts";
import { storagePathsOf } from "./file_names.ts";
import { readSealedText, sealedTextSteps } from "./sealed_text.ts";
import { PROBE } from "./storage_probe.ts";
import type { SyncSteps } from "./sync_steps.ts";

/** A storage listed in the catalog. */
export interface ListedStorage {
  readonly storageId: string;
  /** The absolute path of the storage. */
  readonly root: string;
  /** The key in the storage's mark; "" if it has no mark yet. */
  readonly key: string;
}

/** The names, apart from the mark, that may exist in a storage without tables. */
const OWN_NAMES: ReadonlySet<string> = new Set(["LOCK", "STORAGE.new", "segments", "tmp"]);

/**
 * Returns the reason why a directory cannot be used as the given storage; undefined if it can be
 * used. Changes nothing.
 */
export function storageFault(
  disk: Disk,
  { key, root, storageId }: ListedStorage,
): string | undefined {
  if (key === "") {
    return (
      `a restore defined this storage, but when the server started, ${root} was not an empty ` +
      "directory below storage.allowed_roots"
    );
  }
  const path = storagePathsOf(root).mark;
  try {
    if (!disk.exists(root)) return `there is no directory ${root}`;
    if (!disk.exists(path)) {
      return (
        `${root} contains no file named STORAGE, so the storage is not mounted, or the directory ` +
        "is a different one"
      );
    }
    const { key: found, storage } = JSON.parse(readSealedText(disk, path)) as Partial<
      Record<string, unknown>
    >;
    return found === key && storage === storageId
      ? undefined
      : `${path} belongs to a different storage or database`;
  } catch (error) {
    if (error instanceof DiskError || error instanceof CorruptionError) return error.message;
    throw error;
  }
}

/** Whether a directory is marked as a storage. Also true if the disk reports an error. */
export function isMarked(disk: Disk, root: string): boolean {
  try {
    return disk.exists(storagePathsOf(root).mark);
  } catch (error) {
    // Treating the directory as marked is safe: a directory that may belong to another server is
    // left alone.
    if (error instanceof DiskError) return true;
    throw error;
  }
}

/**
 * Returns the error for a storage that cannot be used.
 *
 * @param action The failed action, such as "read".
 */
export function unavailable(
  action: string,
  { root, storageId }: Pick<SegmentHome, "root" | "storageId">,
  what: string,
): DatabaseError {
  const hint =
    `repair ${root} and restart the server; to see the state of the storage, run STORAGE CHECK ` +
    storageId;
  const message = `Cannot ${action} storage ${storageId}: ${what}`;
  return new DatabaseError("STORAGE_UNAVAILABLE", message, { hint });
}

/**
 * Whether a directory is free for a new storage. It may contain empty directories, the leftovers
 * of a failed creation, and the leftovers of a dropped storage whose last files were not removed.
 */
export function isFree(disk: Disk, root: string): boolean {
  if (!disk.exists(root)) return true;
  const { segments, tmp } = storagePathsOf(root);
  const namesIn = (path: string): string[] =>
    disk.exists(path) ? disk.list(path).map(({ name }) => name) : [];
  return (
    namesIn(root).every((name) => OWN_NAMES.has(name)) &&
    namesIn(tmp).every((name) => name.startsWith(PROBE)) &&
    (!disk.exists(segments) || !hasFileBelow(disk, segments))
  );
}

function hasFileBelow(disk: Disk, directory: string): boolean {
  return disk
    .list(directory)
    .some(({ isDirectory, name }) => !isDirectory || hasFileBelow(disk, `${directory}/${name}`));
}

/**
 * Takes the lock of a storage, creates the subdirectories, and empties the staging directory.
 * Returns undefined if another process holds the lock.
 */
export function* claimSteps(
  disk: Disk,
  { root }: ListedStorage,
): SyncSteps<(() => void) | undefined> {
  const { lock, segments, tmp } = storagePathsOf(root);
  disk.makeDirectory(segments);
  const release = disk.lock(lock);
  if (release === undefined) return undefined;
  try {
    removeTree(disk, tmp);
    disk.makeDirectory(tmp);
    yield root;
    return release;
  } catch (error) {
    release();
    throw error;
  }
}

/** Writes the mark of a storage. This last step turns the directory into a storage. */
export function* markSteps(disk: Disk, { key, root, storageId }: ListedStorage): SyncSteps<void> {
  assert(key !== "", "storage mark: storage key is empty");
  // Existing directories are included, because an earlier attempt may have failed before their
  // names were durable.
  yield dirname(root);
  const body = JSON.stringify({ storage: storageId, key });
  yield* sealedTextSteps(disk, storagePathsOf(root).mark, body);
}

/** Removes the mark of a storage when the last step of its creation has failed. */
export function unmark(disk: Disk, root: string): void {
  const { mark: path } = storagePathsOf(root);
  try {
    if (disk.exists(path)) disk.remove(path);
  } catch (error) {
    // Ignoring the error is safe: the next attempt reports that the storage already exists.
    if (!(error instanceof DiskError)) throw error;
  }
}

/** Removes all directories below `directory` that contain no files. */
export function pruneBelow(disk: Disk, directory: string): void {
  for (const { isDirectory, name } of disk.list(directory)) {
    if (!isDirectory) continue;
    const path = `${directory}/${name}`;
    pruneBelow(disk, path);
    removeIfEmpty(disk, path);
  }
}

/** Removes a directory if it is empty. Returns whether it was empty. */
export function removeIfEmpty(disk: Disk, directory: string): boolean {
  if (disk.list(directory).length > 0) return false;
  disk.removeDirectory(directory);
  return true;
}
