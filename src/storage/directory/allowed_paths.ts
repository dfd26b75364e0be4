/**
 * Decides which directories outside the data directory statements may use. A path must lie below
 * one of the `storage.allowed_roots`, both as written and after its symbolic links are resolved.
 */
import { resolve } from "node:path";
import type { Disk } from "../../base/disk.ts";
import { DatabaseError } from "../../base/errors.ts";

/**
 * Matches an absolute path without `.`, `..` or empty segments. A path with `..` could lead out of
 * its root.
 */
const PLAIN_PATH = /^(?:\/(?!\.{1,2}(?:\/|$))[^/\0]+)+$/;

export interface AllowedPaths {
  readonly disk: Disk;
  readonly allowedRoots: readonly string[];
  readonly dataPath: string;
}

/**
 * Checks that a statement may use a path.
 * @param action The action for which the path is used, such as "back up to".
 * @throws {DatabaseError} INVALID_OPTION if the path is not allowed.
 */
export function requireAllowedPath(
  { allowedRoots, dataPath, disk }: AllowedPaths,
  { action, path }: { action: string; path: string },
): void {
  const refuse = (what: string, hint: string): DatabaseError =>
    new DatabaseError("INVALID_OPTION", `Cannot ${action} "${path}": ${what}`, { hint });
  if (!PLAIN_PATH.test(path)) {
    throw refuse(
      "the path must be absolute, without . or .. segments",
      "choose, for example, /var/backups/monday",
    );
  }
  const where =
    allowedRoots.length === 0
      ? "storage.allowed_roots in the configuration is empty; add a directory to it, and restart " +
        "the server"
      : `choose a directory below one of storage.allowed_roots: ${allowedRoots.join(", ")}`;
  if (!allowedRoots.some((root) => isBelow(path, root))) {
    if (allowedRoots.some((root) => isBelow(`${path}/`, root))) {
      throw refuse(
        "the path is one of storage.allowed_roots itself",
        "choose a directory below it",
      );
    }
    throw refuse("the path is not below any directory that the configuration allows", where);
  }
  const real = realPathOf(disk, path);
  if (!allowedRoots.some((root) => isBelow(real, realPathOf(disk, root)))) {
    throw refuse(
      `the path leads through a symbolic link to ${real}, which is not below any directory ` +
        "that the configuration allows",
      where,
    );
  }
  const roots = [resolve(dataPath), disk.realPath(dataPath)];
  if (roots.some((root) => [path, real].some((name) => name === root || isBelow(name, root)))) {
    throw refuse("the path is inside the data directory", "choose a directory elsewhere");
  }
}

export function isBelow(path: string, root: string): boolean {
  return path.startsWith(`${root.replace(/\/$/, "")}/`);
}

/**
 * Resolves the symbolic links in a path. If only a leading part of the path exists, that part is
 * resolved.
 */
export function realPathOf(disk: Disk, path: string): string {
  if (disk.exists(path)) return disk.realPath(path);
  const end = path.lastIndexOf("/");
  if (end <= 0) return path;
  return `${realPathOf(disk, path.slice(0, end)).replace(/\/$/, "")}${path.slice(end)}`;
}
