/**
 * Which directories beside the data directory statements may name: those below
 * `storage.allowed_roots`, as the path says and as symbolic links lead.
 */
import { resolve } from "node:path";
import type { Disk } from "../../base/disk.ts";
import { DatabaseError } from "../../base/errors.ts";

/** Absolute, without `.`, `..` and empty parts, which could lead out of a root. */
const PLAIN_PATH = /^(?:\/(?!\.{1,2}(?:\/|$))[^/\0]+)+$/;

export interface AllowedPaths {
  readonly disk: Disk;
  readonly allowedRoots: readonly string[];
  readonly dataPath: string;
}

/**
 * @param action What the path is named for: "back up to".
 * @throws {DatabaseError} INVALID_OPTION
 */
export function requireAllowedPath(
  { allowedRoots, dataPath, disk }: AllowedPaths,
  { action, path }: { action: string; path: string },
): void {
  const refuse = (what: string, hint: string): DatabaseError =>
    new DatabaseError("INVALID_OPTION", `Cannot ${action} "${path}": ${what}`, { hint });
  if (!PLAIN_PATH.test(path)) {
    throw refuse("it is no absolute path without . and ..", "for instance /var/backups/monday");
  }
  const where =
    allowedRoots.length === 0
      ? "storage.allowed_roots of the configuration is empty: name one there, and restart the server"
      : `storage.allowed_roots lists them: ${allowedRoots.join(", ")}`;
  if (!allowedRoots.some((root) => isBelow(path, root))) {
    if (allowedRoots.some((root) => isBelow(`${path}/`, root))) {
      throw refuse("it is one of storage.allowed_roots itself", "name a directory below it");
    }
    throw refuse("it is below no directory that the configuration allows", where);
  }
  const real = realPathOf(disk, path);
  if (!allowedRoots.some((root) => isBelow(real, realPathOf(disk, root)))) {
    throw refuse(`it leads to ${real}, below no directory that the configuration allows`, where);
  }
  const roots = [resolve(dataPath), disk.realPath(dataPath)];
  if (roots.some((root) => [path, real].some((name) => name === root || isBelow(name, root)))) {
    throw refuse("it is in the data directory", "name a directory elsewhere");
  }
}

export function isBelow(path: string, root: string): boolean {
  return path.startsWith(`${root.replace(/\/$/, "")}/`);
}

/** Where a path leads that need not be there yet: what is there of it is resolved. */
export function realPathOf(disk: Disk, path: string): string {
  if (disk.exists(path)) return disk.realPath(path);
  const end = path.lastIndexOf("/");
  if (end <= 0) return path;
  return `${realPathOf(disk, path.slice(0, end)).replace(/\/$/, "")}${path.slice(end)}`;
}
