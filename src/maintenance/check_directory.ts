/**
 * Checks every file in a data directory: catalog → segments → log → uploaded files. The catalog's
 * entries are compared with the files. Nothing is changed; `repair_directory.ts` acts on the
 * result.
 */
import { keptSecretFault } from "../auth/mod.ts";
import type { Clock } from "../base/clock.ts";
import { removeTree } from "../base/copy_file.ts";
import type { Disk } from "../base/disk.ts";
import { CorruptionError } from "../base/errors.ts";
import { silentLog } from "../base/log.ts";
import type { Random } from "../base/random.ts";
import {
  type CatalogCheck,
  type CatalogDatabase,
  catalogPathOf,
  checkCatalog,
} from "../catalog/mod.ts";
import { storedIndexesOf, tableNamesOf } from "../sql/mod.ts";
import {
  type CheckListener,
  checkBlobs,
  checkIndexes,
  checkLog,
  checkSegments,
  type DamagedIndex,
  type DataPaths,
  damageFinding,
  directoryFormat,
  type Finding,
  holdsRows,
  type IndexOutline,
  indexColumnsOf,
  type ListedBlob,
  type LogCheck,
  noteFinding,
  refuseNewerFiles,
  requireFormat,
  storageFault,
} from "../storage/files.ts";
import type { ManifestState } from "../storage/mod.ts";

export interface CheckParts {
  readonly disk: Disk;
  readonly clock: Clock;
  readonly random: Random;
  /** The parent of temporary directories, for example /tmp. */
  readonly temporary: string;
}

/** Receives each finding as soon as it is made, with the name of the affected table. */
export interface DirectoryListener {
  onFinding(finding: Finding, table: string | undefined): void;
  onChecked: CheckListener["onChecked"];
}

interface MissingStorage {
  readonly storageId: string;
  readonly root: string;
  readonly what: string;
}

/** The results of the check that a repair needs. */
export interface DirectoryCheck {
  readonly damageCount: number;
  readonly isFormatDamaged: boolean;
  /** Whether the secret that the server created for itself is damaged. */
  readonly isSecretDamaged: boolean;
  readonly catalog: Pick<CatalogCheck, "damage" | "isOnlyLogDamaged">;
  /** The manifest in the last intact state of the catalog; undefined if it cannot be read. */
  readonly manifest: ManifestState | undefined;
  /** The highest seq in the catalog. */
  readonly catalogSeq: number;
  /** The highest id of an uploaded file, which is a SNOWFLAKE_ID. */
  readonly highestFileId: number;
  readonly damagedSegments: ManifestState["segments"];
  /** Index files that are missing or do not match the rows. */
  readonly damagedIndexes: readonly DamagedIndex[];
  /**
   * The storages whose directories are missing or belong to another database. Their files were not
   * checked.
   */
  readonly missingStorages: readonly MissingStorage[];
  readonly damagedFiles: readonly ListedBlob[];
  readonly log: LogCheck;
  /** The names of the catalog's tables and of the store's own tables, keyed by table id. */
  readonly tableNames: ReadonlyMap<number, string>;
}

const SCRATCH_NAME_BYTES = 8;

/**
 * Checks a directory that the caller has locked.
 *
 * @throws {DatabaseError} STORAGE_UNAVAILABLE if the directory or one of its files has a newer
 *   format: a format unknown to this program is not damage.
 * @throws {DiskError} If something cannot be read for a reason other than damage.
 */
export function checkDirectory(
  paths: DataPaths,
  parts: CheckParts,
  listener: DirectoryListener,
): DirectoryCheck {
  const { clock, disk, random, temporary } = parts;
  const isFormatDamaged = directoryFormat(disk, paths) === undefined;
  if (!isFormatDamaged) requireFormat(disk, paths);
  refuseNewerFiles(disk, paths);
  const name = Buffer.from(random.bytes(SCRATCH_NAME_BYTES)).toString("hex");
  const scratch = `${temporary}/tidemark-check-${name}`;
  disk.makeDirectory(scratch);
  let copy: CatalogDatabase | undefined;
  try {
    const path = catalogPathOf(paths.root);
    const catalog = isUnborn(paths, disk)
      ? { damage: [], catalog: undefined, isOnlyLogDamaged: false }
      : checkCatalog({ disk, path, scratch, clock, log: silentLog });
    copy = catalog.catalog;
    // Removes the names of files that are still open, so that nothing is left behind if the
    // process ends during the rest of the check, which takes a long time.
    removeTree(disk, scratch);
    return checkFiles(paths, { disk, catalog, isFormatDamaged }, listener);
  } finally {
    copy?.close();
    removeTree(disk, scratch);
  }
}

/** Returns whether the first startup ended before it took its first step, creating a catalog. */
function isUnborn(paths: DataPaths, disk: Disk): boolean {
  return (disk.sizeOf(catalogPathOf(paths.root)) ?? 0) === 0 && !holdsRows(paths, disk);
}

function checkFiles(
  paths: DataPaths,
  {
    disk,
    catalog: { catalog, damage, isOnlyLogDamaged },
    isFormatDamaged,
  }: { disk: Disk; catalog: CatalogCheck; isFormatDamaged: boolean },
  listener: DirectoryListener,
): DirectoryCheck {
  const tableNames = tableNamesOf(catalog);
  let damageCount = 0;
  const files: CheckListener = {
    onChecked: (path, byteCount) => listener.onChecked(path, byteCount),
    onFinding(finding) {
      if (finding.kind === "damage") damageCount += 1;
      listener.onFinding(finding, tableNames.get(finding.tableId ?? 0));
    },
  };
  if (isFormatDamaged) {
    const fault = new CorruptionError(
      paths.format,
      0,
      "the file is missing or does not contain a format number",
    );
    files.onFinding(damageFinding(fault));
  }
  const secretFault = keptSecretFault(disk, paths.root);
  if (secretFault !== undefined) files.onFinding(damageFinding(secretFault));
  for (const fault of damage) files.onFinding(damageFinding(fault));
  const catalogPath = catalogPathOf(paths.root);
  files.onChecked(catalogPath, disk.sizeOf(catalogPath) ?? 0);
  const manifest = catalog?.manifest.load();
  // The files of a dropped table no longer exist. The next sweep removes the list's remaining
  // entries for the table.
  const listedFiles = catalog?.files.all().filter(({ tableId }) => tableNames.has(tableId)) ?? [];
  if (damage.length > 0 && manifest === undefined) {
    const what = "not checked, because only the catalog lists the segments and uploaded files";
    files.onFinding(noteFinding(paths.segments, what));
  }
  const missingStorages = missingOf(paths, { catalog, disk }, files);
  const segmentParts = { catalog, disk, manifest, missingStorages, tableNames };
  const damagedSegments = checkSegmentsOf(paths, segmentParts, files);
  const damagedIndexes = checkIndexesOf(paths, segmentParts, { damagedSegments, files });
  const catalogSeq = catalog?.manifest.highestSeq();
  const firstLogFile = manifest?.firstLogFile;
  const undoneSeqs = catalog?.manifest.undoneSeqs();
  const log = checkLog({ disk, paths, firstLogFile, catalogSeq, undoneSeqs }, files);
  const segments = manifest?.segments ?? [];
  const damagedFiles =
    catalog === undefined
      ? []
      : checkBlobs({ disk, paths, blobs: listedFiles, segments, firstLogFile }, files);
  return {
    damageCount,
    isFormatDamaged,
    isSecretDamaged: secretFault !== undefined,
    catalog: { damage, isOnlyLogDamaged },
    manifest,
    catalogSeq: catalogSeq ?? 0,
    highestFileId: listedFiles.reduce((highest, { fileId }) => Math.max(highest, +fileId), 0),
    damagedSegments,
    damagedIndexes,
    missingStorages,
    damagedFiles,
    log,
    tableNames,
  };
}

function checkSegmentsOf(
  paths: DataPaths,
  {
    catalog,
    disk,
    manifest,
    missingStorages,
    tableNames,
  }: Pick<DirectoryCheck, "manifest" | "missingStorages" | "tableNames"> & {
    readonly catalog: CatalogDatabase | undefined;
    readonly disk: Disk;
  },
  files: CheckListener,
): DirectoryCheck["damagedSegments"] {
  if (manifest === undefined) return [];
  const options = {
    disk,
    paths,
    entries: manifest.segments,
    tableIds: new Set(tableNames.keys()),
    states: manifest.tables,
    lastingTableIds: lastingTablesOf(catalog),
    erasedOwners: new Set(catalog?.accounts.erasures().map(({ owner }) => owner)),
    storageRoots: storageRootsOf(paths, catalog, missingStorages),
  };
  return checkSegments(options, files);
}

/** Checks the indexes of intact segments in available storages. */
function checkIndexesOf(
  paths: DataPaths,
  {
    catalog,
    disk,
    manifest,
    missingStorages,
  }: Pick<DirectoryCheck, "manifest" | "missingStorages"> & {
    readonly catalog: CatalogDatabase | undefined;
    readonly disk: Disk;
  },
  {
    damagedSegments,
    files,
  }: { damagedSegments: DirectoryCheck["damagedSegments"]; files: CheckListener },
): readonly DamagedIndex[] {
  const missing = new Set(missingStorages.map(({ storageId }) => storageId));
  const entries = (manifest?.segments ?? []).filter(
    (entry) =>
      !damagedSegments.includes(entry) &&
      (entry.home === undefined || paths.holdsAll === true || !missing.has(entry.home.storageId)),
  );
  const indexesOf = (tableId: number): IndexOutline[] => {
    const table = catalog?.tableById(tableId);
    const stored = table === undefined ? [] : (storedIndexesOf(table) ?? []);
    return stored.map((index) => ({
      indexId: index.indexId,
      columns: indexColumnsOf(table?.columns ?? [], index),
    }));
  };
  return checkIndexes({ disk, paths, entries, indexesOf }, files);
}

/**
 * Returns the unavailable storages. A storage that came with a restore is not included: the next
 * startup adopts it, and it contains no older data.
 */
function missingOf(
  { holdsAll }: DataPaths,
  { catalog, disk }: { catalog: CatalogDatabase | undefined; disk: Disk },
  files: CheckListener,
): MissingStorage[] {
  if (holdsAll === true) return [];
  const missing: MissingStorage[] = [];
  for (const storage of catalog?.storages.all() ?? []) {
    const { key, root, storageId } = storage;
    const what = key === "" ? undefined : storageFault(disk, storage);
    if (what === undefined) continue;
    missing.push({ storageId, root, what });
    const fault = new CorruptionError(root, 0, `storage ${storageId} is unavailable: ${what}`);
    files.onFinding(damageFinding(fault));
  }
  return missing;
}

/** Returns the catalog's tables other than STREAM tables. */
function lastingTablesOf(catalog: CatalogDatabase | undefined): ReadonlySet<number> {
  const lasting = (catalog?.tables() ?? []).filter(({ kind }) => kind !== "stream");
  return new Set(lasting.map(({ tableId }) => tableId));
}

/** Returns the roots of the available storages; empty for a backup, which is self-contained. */
function storageRootsOf(
  { holdsAll }: DataPaths,
  catalog: CatalogDatabase | undefined,
  missing: readonly MissingStorage[],
): string[] {
  if (holdsAll === true) return [];
  const isThere = ({ key, root }: { key: string; root: string }): boolean =>
    key !== "" && missing.every((other) => other.root !== root);
  return (catalog?.storages.all() ?? []).filter(isThere).map(({ root }) => root);
}
