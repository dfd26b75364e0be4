/**
 * Checks the catalog without changing it. The check opens a copy. SQLite would change the original
 * if the process that last used it was killed.
 */
import type { Clock } from "../base/clock.ts";
import type { Disk } from "../base/disk.ts";
import { CorruptionError } from "../base/errors.ts";
import type { Log } from "../base/log.ts";
import { CatalogDatabase } from "./catalog_database.ts";
import { catalogPathOf } from "./catalog_path.ts";
import { integrityFaults, refuseForeign } from "./sqlite_file.ts";
import { sqliteWalDamage } from "./sqlite_wal.ts";

export interface CatalogCheckOptions {
  readonly disk: Disk;
  /** The path of the catalog's SQLite file. */
  readonly path: string;
  /**
   * An empty directory, outside the data directory, in which the check creates the copy. The
   * caller removes it afterwards.
   */
  readonly scratch: string;
  readonly clock: Clock;
  readonly log: Log;
}

export interface CatalogCheck {
  readonly damage: readonly CorruptionError[];
  /**
   * Whether only SQLite's write-ahead log is damaged. If so, the copy is in the state before the
   * changes in that log.
   */
  readonly isOnlyLogDamaged: boolean;
  /**
   * The opened copy of the catalog; undefined if it cannot be read. The caller must close it, even
   * if its files have already been removed.
   */
  readonly catalog: CatalogDatabase | undefined;
}

/** The suffixes of the files that belong to an SQLite database. */
const SUFFIXES = ["", "-wal", "-journal"];

/**
 * Checks a catalog file without changing it.
 * @throws {DatabaseError} STORAGE_UNAVAILABLE if the catalog has a newer format.
 * @throws {DiskError} If the file cannot be read or copied.
 */
export function checkCatalog(options: CatalogCheckOptions): CatalogCheck {
  const { disk, path, scratch } = options;
  const byteCount = disk.sizeOf(path);
  if (byteCount === undefined || byteCount === 0) {
    const what = byteCount === undefined ? "the file is missing" : "the file is empty";
    return unreadable([new CorruptionError(path, 0, what)]);
  }
  const misplaced = directoriesAt(disk, path);
  if (misplaced.length > 0) return unreadable(misplaced);
  const foreign = faultOf(path, () => refuseForeign(path));
  if (foreign instanceof CorruptionError) return unreadable([foreign]);
  const copy = catalogPathOf(scratch);
  const logDamage: CorruptionError[] = [];
  for (const suffix of SUFFIXES) {
    if (!disk.exists(`${path}${suffix}`)) continue;
    const bytes = disk.readFile(`${path}${suffix}`);
    const fault = suffix === "-wal" ? sqliteWalDamage(bytes, `${path}-wal`) : undefined;
    if (fault !== undefined) logDamage.push(fault);
    writeCopy(disk, `${copy}${suffix}`, bytes);
  }
  const found = faultOf(path, () => integrityFaults(copy));
  if (found instanceof CorruptionError) return unreadable([...logDamage, found]);
  const damage = [...logDamage, ...found.map((what) => new CorruptionError(path, 0, what))];
  const catalog = faultOf(path, () => openWhole(copy, options));
  if (catalog instanceof CorruptionError) return unreadable([...damage, catalog]);
  return { damage, catalog, isOnlyLogDamaged: found.length === 0 && logDamage.length > 0 };
}

/**
 * Finds directories that have the names of the catalog's files. SQLite would report them only as
 * "disk I/O error".
 */
function directoriesAt(disk: Disk, path: string): CorruptionError[] {
  const paths = SUFFIXES.map((suffix) => `${path}${suffix}`);
  const directory = path.slice(0, path.lastIndexOf("/"));
  const found = disk.list(directory).filter(({ isDirectory }) => isDirectory);
  const names = new Set(found.map(({ name }) => `${directory}/${name}`));
  return paths
    .filter((each) => names.has(each))
    .map((each) => new CorruptionError(each, 0, "the path is a directory, but must be a file"));
}

/**
 * Opens a catalog and reads all of its contents, so that any damage is found.
 * @throws {CorruptionError}
 */
function openWhole(path: string, { clock, log }: CatalogCheckOptions): CatalogDatabase {
  const catalog = CatalogDatabase.open({ path, clock, log });
  try {
    // When the catalog is opened, everything except the file list is read.
    catalog.files.all();
    return catalog;
  } catch (error) {
    catalog.close();
    throw error;
  }
}

function unreadable(damage: readonly CorruptionError[]): CatalogCheck {
  return { damage, catalog: undefined, isOnlyLogDamaged: false };
}

/**
 * Returns the result of `check`. If it finds damage, returns the error with the path of the
 * original file in place of the copy's.
 */
function faultOf<T>(path: string, check: () => T): T | CorruptionError {
  try {
    return check();
  } catch (error) {
    if (!(error instanceof CorruptionError)) throw error;
    return new CorruptionError(path, error.offset, error.what);
  }
}

function writeCopy(disk: Disk, path: string, bytes: Uint8Array): void {
  const file = disk.open(path, { exclusive: true });
  try {
    file.write(bytes, 0);
  } finally {
    file.close();
  }
}
