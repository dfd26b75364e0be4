/**
 * The directory of one storage: what makes it that and no other, and when it may become one.
 * `storage/storages.ts` draws it, and says who uses it.
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

/** A storage as the catalog lists it. */
export interface ListedStorage {
  readonly storageId: string;
  /** An absolute path. */
  readonly root: string;
  /** What its mark says; "" until it has one. */
  readonly key: string;
}

/** What a storage without tables has beside its mark. */
const OWN_NAMES: ReadonlySet<string> = new Set(["LOCK", "STORAGE.new", "segments", "tmp"]);

/** Why a directory is not the one of a storage; undefined when it is. Changes nothing. */
export function storageFault(
  disk: Disk,
  { key, root, storageId }: ListedStorage,
): string | undefined {
  if (key === "") {
    return `it came with a restore, and ${root} was no empty directory below storage.allowed_roots when the server started`;
  }
  const path = storagePathsOf(root).mark;
  try {
    if (!disk.exists(root)) return `there is no directory ${root}`;
    if (!disk.exists(path)) {
      return `${root} has no file STORAGE: it is not mounted, or something else is in its place`;
    }
    const { key: found, storage } = JSON.parse(readSealedText(disk, path)) as Partial<
      Record<string, unknown>
    >;
    return found === key && storage === storageId
      ? undefined
      : `${path} names another storage, or another database`;
  } catch (error) {
    if (error instanceof DiskError || error instanceof CorruptionError) return error.message;
    throw error;
  }
}

/** Whether a directory is a storage, of whomever, or may be: the disk does not say. */
export function isMarked(disk: Disk, root: string): boolean {
  try {
    return disk.exists(storagePathsOf(root).mark);
  } catch (error) {
    // Safe: what may be another's is left alone.
    if (error instanceof DiskError) return true;
    throw error;
  }
}

/** @param action Before the name: "read". */
export function unavailable(
  action: string,
  { root, storageId }: Pick<SegmentHome, "root" | "storageId">,
  what: string,
): DatabaseError {
  const hint = `put ${root} in order, and restart the server; STORAGE CHECK ${storageId} says how it is`;
  const message = `Cannot ${action} storage ${storageId}: ${what}`;
  return new DatabaseError("STORAGE_UNAVAILABLE", message, { hint });
}

/**
 * Whether there is nothing in a directory but what a creation that failed has left, or a storage
 * that was dropped before the last of its files had gone: directories without a file.
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
 * Takes the lock, makes the directories and empties the staging; undefined when another process has
 * the lock.
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

/** The last step: from now on it is a storage. */
export function* markSteps(disk: Disk, { key, root, storageId }: ListedStorage): SyncSteps<void> {
  assert(key !== "", "a mark has a key");
  // Also when it was there: an attempt before this one may not have made its name durable.
  yield dirname(root);
  const body = JSON.stringify({ storage: storageId, key });
  yield* sealedTextSteps(disk, storagePathsOf(root).mark, body);
}

/** A creation that failed in its last step leaves no storage. */
export function unmark(disk: Disk, root: string): void {
  const { mark: path } = storagePathsOf(root);
  try {
    if (disk.exists(path)) disk.remove(path);
  } catch (error) {
    // Safe: the next attempt is told that it is there.
    if (!(error instanceof DiskError)) throw error;
  }
}

/** Removes directories in which there is no file. */
export function pruneBelow(disk: Disk, directory: string): void {
  for (const { isDirectory, name } of disk.list(directory)) {
    if (!isDirectory) continue;
    const path = `${directory}/${name}`;
    pruneBelow(disk, path);
    removeIfEmpty(disk, path);
  }
}

/** Returns whether a directory was empty, and so is gone. */
export function removeIfEmpty(disk: Disk, directory: string): boolean {
  if (disk.list(directory).length > 0) return false;
  disk.removeDirectory(directory);
  return true;
}
