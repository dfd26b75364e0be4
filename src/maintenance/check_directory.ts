/**
 * Checks every file of a data directory: catalog → segments → log → uploaded files. What the
 * catalog says is compared with what is there. Nothing is changed; `repair_directory.ts` acts on
 * the result.
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
  type FileEntry,
} from "../catalog/mod.ts";
import { tableNamesOf } from "../sql/mod.ts";
import {
  type CheckListener,
  checkBlobs,
  checkLog,
  checkSegments,
  type DataPaths,
  damageFinding,
  directoryFormat,
  type Finding,
  holdsRows,
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
  /** Where directories for a while are made, e.g. /tmp. */
  readonly temporary: string;
}

/** Hears each finding as it is met, with the name of the table that it is about. */
export interface DirectoryListener {
  onFinding(finding: Finding, table: string | undefined): void;
  onChecked: CheckListener["onChecked"];
}

interface MissingStorage {
  readonly storageId: string;
  readonly root: string;
  readonly what: string;
}

/** What a check found, for who repairs it. */
export interface DirectoryCheck {
  readonly damageCount: number;
  readonly isFormatDamaged: boolean;
  /** Of the secret that the server made for itself. */
  readonly isSecretDamaged: boolean;
  readonly catalog: Pick<CatalogCheck, "damage" | "isOnlyLogDamaged">;
  /** Of the catalog's last whole state; undefined when it cannot be read. */
  readonly manifest: ManifestState | undefined;
  /** Highest seq that the catalog knows. */
  readonly catalogSeq: number;
  /** Highest id of an uploaded file, which is a SNOWFLAKE_ID. */
  readonly highestFileId: number;
  readonly damagedSegments: ManifestState["segments"];
  /** Storages whose directories are not there, or another's: nothing in them was looked at. */
  readonly missingStorages: readonly MissingStorage[];
  readonly damagedFiles: readonly FileEntry[];
  readonly log: LogCheck;
  /** Names of the tables that the catalog knows, and of the store's own, by id. */
  readonly tableNames: ReadonlyMap<number, string>;
}

const SCRATCH_NAME_BYTES = 8;

/**
 * Whose lock is held is for the caller to see to.
 *
 * @throws {DatabaseError} STORAGE_UNAVAILABLE if the directory or a file of it is of a newer
 * format: what this program does not know is not damage.
 * @throws {DiskError} If something cannot be read for another reason than damage.
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
    // What is open needs no name: whatever ends the process during the long part leaves nothing.
    removeTree(disk, scratch);
    return checkFiles(paths, { disk, catalog, isFormatDamaged }, listener);
  } finally {
    copy?.close();
    removeTree(disk, scratch);
  }
}

/** Whether the first start was stopped before it made a catalog, which comes before everything. */
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
    const fault = new CorruptionError(paths.format, 0, "it is missing, or does not name a format");
    files.onFinding(damageFinding(fault));
  }
  const secretFault = keptSecretFault(disk, paths.root);
  if (secretFault !== undefined) files.onFinding(damageFinding(secretFault));
  for (const fault of damage) files.onFinding(damageFinding(fault));
  const catalogPath = catalogPathOf(paths.root);
  files.onChecked(catalogPath, disk.sizeOf(catalogPath) ?? 0);
  const manifest = catalog?.manifest.load();
  // A table that was dropped takes its files along; what is listed of it goes with the next sweep.
  const listedFiles = catalog?.files().filter(({ tableId }) => tableNames.has(tableId)) ?? [];
  if (damage.length > 0 && manifest === undefined) {
    const what = "not checked: only the catalog says which segments and uploaded files there are";
    files.onFinding(noteFinding(paths.segments, what));
  }
  const missingStorages = missingOf(paths, { catalog, disk }, files);
  const damagedSegments =
    manifest === undefined
      ? []
      : checkSegments(
          {
            disk,
            paths,
            entries: manifest.segments,
            tableIds: new Set(tableNames.keys()),
            storageRoots: storageRootsOf(paths, catalog, missingStorages),
          },
          files,
        );
  const catalogSeq = catalog?.manifest.highestSeq();
  const firstLogFile = manifest?.firstLogFile;
  const log = checkLog({ disk, paths, firstLogFile, catalogSeq }, files);
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
    missingStorages,
    damagedFiles,
    log,
    tableNames,
  };
}

/** One that a restore brought here is taken over by the next start, and holds nothing before. */
function missingOf(
  { holdsAll }: DataPaths,
  { catalog, disk }: { catalog: CatalogDatabase | undefined; disk: Disk },
  files: CheckListener,
): MissingStorage[] {
  if (holdsAll === true) return [];
  const missing: MissingStorage[] = [];
  for (const storage of catalog?.storages() ?? []) {
    const { key, root, storageId } = storage;
    const what = key === "" ? undefined : storageFault(disk, storage);
    if (what === undefined) continue;
    missing.push({ storageId, root, what });
    const fault = new CorruptionError(root, 0, `storage ${storageId} is not available: ${what}`);
    files.onFinding(damageFinding(fault));
  }
  return missing;
}

/** Roots of storages that are there; none of a backup, which has everything itself. */
function storageRootsOf(
  { holdsAll }: DataPaths,
  catalog: CatalogDatabase | undefined,
  missing: readonly MissingStorage[],
): string[] {
  if (holdsAll === true) return [];
  const isThere = ({ key, root }: { key: string; root: string }): boolean =>
    key !== "" && missing.every((other) => other.root !== root);
  return (catalog?.storages() ?? []).filter(isThere).map(({ root }) => root);
}
