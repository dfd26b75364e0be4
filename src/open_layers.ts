/**
 * Opens the layers below SQL in a data directory: its lock, the catalog and the store, after a
 * restore that waits for it. What is not to be opened is refused before a byte changes.
 */
import type { OnBug } from "./base/bugs.ts";
import type { Clock } from "./base/clock.ts";
import type { Disk } from "./base/disk.ts";
import { DatabaseError } from "./base/errors.ts";
import type { Log } from "./base/log.ts";
import type { Random } from "./base/random.ts";
import {
  CATALOG_FILE,
  type Catalog,
  CatalogDatabase,
  catalogPathOf,
  seqTimesOf,
  type TableEntry,
} from "./catalog/mod.ts";
import type { Config } from "./config/mod.ts";
import {
  type Archiver,
  archiverOf,
  finishRestore,
  isRestoreStaged,
  lostSeqsOf,
  nameIncarnation,
  noteLostSeqs,
  type PointBringer,
  requireArchive,
} from "./copies/mod.ts";
import { copyLimits, sqlLimits, storeOptions, tableDefaults } from "./layer_limits.ts";
import {
  type Dividing,
  homeOf,
  type OpenReader,
  ownTables,
  type ReaderSettings,
  tableDefinition,
} from "./sql/mod.ts";
import { type DataPaths, dataPathsOf, holdsRows, refuseForeignDirectory } from "./storage/files.ts";
import {
  type DataDirectory,
  JobList,
  LocalStore,
  openDataDirectory,
  type SegmentWork,
  Storages,
  type TableDefinition,
} from "./storage/mod.ts";

export interface DatabaseParts {
  readonly disk: Disk;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Log;
  /** Key of every token; asked once the directory is locked. */
  readonly jwtSecret: () => Uint8Array;
  readonly version: string;
  /** Who writes segments; without it the store itself does, between other work. */
  readonly segmentWork?: SegmentWork | undefined;
  /** Opens threads for long queries; without them, these run between other work. */
  readonly readers?: ReaderThreads | undefined;
  /** Who brings a backup to a later moment; without it that happens between other work. */
  readonly bringInThread?: PointBringer | undefined;
  /** The log or the catalog failed: the process must stop and recover by starting again. */
  readonly onFatal: (cause: unknown) => void;
}

/** The threads in which long queries run. */
export interface ReaderThreads {
  open(settings: (number: number) => ReaderSettings): OpenReader;
  /** Whether queries are sent before they turn out to be long; for tests. */
  readonly takesAll?: boolean;
  /** How many there may be, for tests; absent: as the configuration says. */
  readonly countMax?: number;
  /** For tests. */
  readonly dividing?: Partial<Dividing>;
}

/** The same, and where bugs in background work go. */
export interface LayerParts extends DatabaseParts {
  readonly onBug: OnBug;
}

/** What is open below SQL. */
export interface LowerLayers {
  readonly directory: DataDirectory;
  /** The restore that was finished first; undefined if none waited. */
  readonly restored: ReturnType<typeof finishRestore>;
  readonly jwtSecret: Uint8Array;
  readonly catalog: CatalogDatabase;
  /** What is to be closed right after the catalog. */
  readonly behindCatalog: DisposableStack;
  readonly definitionOf: (table: TableEntry) => TableDefinition;
  readonly jobs: JobList;
  /** Who copies the log away, not yet begun. */
  readonly archiver: Archiver | undefined;
  readonly store: LocalStore;
}

/** Name of a setting of the catalog. */
const DURABILITY = "durability";

/**
 * Opens what is below SQL. @param opened Is told how to close each layer, as soon as that is open.
 *
 * @throws {DatabaseError} @throws {CorruptionError} @throws {DiskError}
 */
export async function openLowerLayers(
  config: Config,
  parts: LayerParts,
  opened: AsyncDisposableStack,
): Promise<LowerLayers> {
  const { clock, disk, random } = parts;
  refuseUnfit(config, disk);
  const directory = openDataDirectory(disk, config.storage.data_path);
  opened.defer(() => directory.release());
  const restored = finishRestore(directory.paths, parts);
  const jwtSecret = parts.jwtSecret();
  // Who closes a descriptor of the catalog's file gives up all locks that this process has on it.
  const behindCatalog = opened.use(new DisposableStack());
  const catalog = openCatalog(config, parts, directory);
  opened.defer(() => catalog.close());
  nameIncarnation(catalog, random);
  const definitionOf = definitionsOf(config, catalog);
  const jobs = new JobList(clock, parts);
  const archiver = archiverOf(copyLimits(config), parts, { catalog, directory });
  const storages = openStorages(config, parts, { catalog, opened });
  const below = { catalog, definitionOf, directory, jobs, archiver, storages };
  const store = await openStore(config, parts, below);
  opened.defer(() => store.close());
  catalog.onFull = () => store.noteFullDisk();
  beginCommits(config, { catalog, store });
  return { ...below, restored, jwtSecret, behindCatalog, store };
}

/**
 * A directory of something else, of a newer format, or that has lost its catalog is refused before
 * a byte of it changes, and so is an archive that cannot be written.
 *
 * @throws {CorruptionError} @throws {DatabaseError} STORAGE_UNAVAILABLE
 */
function refuseUnfit({ storage }: Config, disk: Disk): void {
  const { archive_path: archivePath, data_path: dataPath } = storage;
  if (archivePath !== undefined) requireArchive(disk, archivePath);
  const paths = dataPathsOf(dataPath);
  refuseForeignDirectory(disk, paths);
  CatalogDatabase.refuseForeign(catalogPathOf(dataPath));
  requireCatalogFile(disk, paths);
}

/**
 * An empty catalog beside a log and segments would make nothing of them, and hide that theirs is
 * gone.
 *
 * @throws {DatabaseError} STORAGE_UNAVAILABLE
 */
function requireCatalogFile(disk: Disk, paths: DataPaths): void {
  const path = catalogPathOf(paths.root);
  if ((disk.sizeOf(path) ?? 0) > 0 || !holdsRows(paths, disk)) return;
  // One comes with what was restored.
  if (isRestoreStaged(disk, paths)) return;
  throw new DatabaseError(
    "STORAGE_UNAVAILABLE",
    `Cannot open ${paths.root}: ${CATALOG_FILE} is ${disk.exists(path) ? "empty" : "missing"}, and there is a log or segments that belong to one`,
    { hint: "put back the catalog that belongs to them, or restore a backup" },
  );
}

function openCatalog(
  { storage }: Config,
  { clock, log, onFatal }: DatabaseParts,
  { paths }: DataDirectory,
): CatalogDatabase {
  const path = catalogPathOf(paths.root);
  const keepsJournal = storage.archive_path !== undefined;
  return CatalogDatabase.open({ path, clock, log, keepsJournal, onFatal });
}

/** What the catalog and the store have to know of each other before anything is written. */
function beginCommits(
  config: Config,
  { catalog, store }: { catalog: CatalogDatabase; store: LocalStore },
): void {
  catalog.journal.issueSeq = () => store.issueSeq();
  const before = catalog.setting(DURABILITY) ?? "sync";
  if (before === "relaxed") {
    // Whatever was answered before the disk had it may have been seen.
    noteLostSeqs(catalog, { after: store.visibleSeq, upTo: store.issueSeq() });
  }
  // Behind that, as a start that is cut off in between would else forget that there is a gap.
  const { durability } = config.storage;
  if (before !== durability) catalog.changeSetting(DURABILITY, durability);
  store.lostSeqs = lostSeqsOf(catalog);
}

/** How the store sees a table of the catalog. */
function definitionsOf(config: Config, catalog: Catalog): (table: TableEntry) => TableDefinition {
  const defaults = tableDefaults(config);
  return (table) => ({ ...tableDefinition(table, defaults), home: homeOf(table, catalog) });
}

/** Those that a restore brought here are taken over first, where that can be. */
function openStorages(
  { storage }: Config,
  { disk, log, random }: DatabaseParts,
  { catalog, opened }: { catalog: CatalogDatabase; opened: AsyncDisposableStack },
): Storages {
  const { allowed_roots: allowedRoots, data_path: dataPath } = storage;
  const storages = new Storages({ disk, log, random, allowedRoots, dataPath });
  opened.defer(() => storages.close());
  for (const entry of catalog.storages()) {
    const adopted = entry.key === "" ? storages.adopt(entry) : undefined;
    if (adopted !== undefined) catalog.changeStorage({ ...entry, ...adopted });
  }
  storages.open(catalog.storages());
  return storages;
}

async function openStore(
  config: Config,
  { clock, disk, log, onFatal, random, segmentWork }: DatabaseParts,
  {
    catalog,
    definitionOf,
    directory,
    jobs,
    archiver,
    storages,
  }: Pick<LowerLayers, "archiver" | "catalog" | "definitionOf" | "directory" | "jobs"> & {
    storages: Storages;
  },
): Promise<LocalStore> {
  const { storage } = config;
  return await LocalStore.open({
    disk,
    dataPath: storage.data_path,
    directory,
    clock,
    random,
    log,
    manifest: catalog.manifest,
    definitions: [
      ...catalog.tables().map(definitionOf),
      ...ownTables({ answersTtlMs: sqlLimits(config).idempotencyTtlMs }),
    ],
    jobs,
    segmentWork,
    storages,
    keepsLogFrom: archiver === undefined ? undefined : () => archiver.neededFrom,
    onLogRolled: () => archiver?.noteRolled(),
    onFatal,
    seqTimes: seqTimesOf(catalog),
    options: storeOptions(config),
  });
}
