/**
 * Opens the layers below SQL in a data directory (its lock, the catalog and the store), after
 * finishing a pending restore. A directory that must not be opened is refused before a single byte
 * changes.
 */

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
} from "./backup/mod.ts";
import type { OnBug } from "./base/bugs.ts";
import type { Clock } from "./base/clock.ts";
import type { Disk } from "./base/disk.ts";
import { DatabaseError } from "./base/errors.ts";
import type { Log } from "./base/log.ts";
import type { Random } from "./base/random.ts";
import { SEQ_ZERO } from "./base/seq.ts";
import {
  CATALOG_FILE,
  type Catalog,
  CatalogDatabase,
  catalogPathOf,
  seqTimesOf,
  type TableEntry,
} from "./catalog/mod.ts";
import type { Config } from "./config/mod.ts";
import { backupLimits, sqlLimits, storeOptions, tableDefaults } from "./layer_limits.ts";
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
  /** Returns the key that signs all tokens. Called once the directory is locked. */
  readonly jwtSecret: () => Uint8Array;
  readonly version: string;
  /**
   * Writes segments. If absent, the store does this work on the event loop, interleaved with other
   * work.
   */
  readonly segmentWork?: SegmentWork | undefined;
  /**
   * Opens threads for long-running queries. If absent, these queries run on the event loop,
   * interleaved with other work.
   */
  readonly readers?: ReaderThreads | undefined;
  /**
   * Rolls a backup forward to a later point in time. If absent, the event loop does this,
   * interleaved with other work.
   */
  readonly bringInThread?: PointBringer | undefined;
  /**
   * Called if the log or the catalog has failed. The process must then stop, and recovers at the
   * next startup.
   */
  readonly onFatal: (cause: unknown) => void;
}

/** The reader threads, in which long-running queries run. */
export interface ReaderThreads {
  open(settings: (number: number) => ReaderSettings): OpenReader;
  /**
   * Whether queries are sent to reader threads even before they turn out to be long-running. Set
   * only in tests.
   */
  readonly takesAll?: boolean;
  /**
   * The maximum number of threads. Set only in tests; otherwise the configuration determines it.
   */
  readonly countMax?: number;
  /** The rules by which queries are split between threads. Set only in tests. */
  readonly dividing?: Partial<Dividing>;
}

/**
 * The parts from which the layers are built, including the handler for bugs in background work.
 */
export interface LayerParts extends DatabaseParts {
  readonly onBug: OnBug;
}

/** The layers below SQL, once they are open. */
export interface LowerLayers {
  readonly directory: DataDirectory;
  /** The result of the restore that was finished first; undefined if none was pending. */
  readonly restored: ReturnType<typeof finishRestore>;
  readonly jwtSecret: Uint8Array;
  readonly catalog: CatalogDatabase;
  /** The resources to close right after the catalog. */
  readonly behindCatalog: DisposableStack;
  readonly definitionOf: (table: TableEntry) => TableDefinition;
  readonly jobs: JobList;
  /** Copies the log to the archive, once started; undefined if there is no archive. */
  readonly archiver: Archiver | undefined;
  readonly store: LocalStore;
}

/** The catalog setting that stores the durability mode of the last run. */
const DURABILITY = "durability";

/**
 * Opens the layers below SQL.
 * @param opened Collects a function that closes each layer, as soon as the layer is open.
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
  // The resources in this stack are closed after the catalog, because closing a descriptor for the
  // catalog's file releases all locks that this process has on it.
  const behindCatalog = opened.use(new DisposableStack());
  const catalog = openCatalog(config, parts, directory);
  opened.defer(() => catalog.close());
  nameIncarnation(catalog, random);
  const definitionOf = definitionsOf(config, catalog);
  const jobs = new JobList(clock, parts);
  const archiver = archiverOf(backupLimits(config), parts, { catalog, directory });
  const storages = openStorages(config, parts, { catalog, opened });
  const below = { catalog, definitionOf, directory, jobs, archiver, storages };
  const store = await openStore(config, parts, below);
  opened.defer(() => store.close());
  catalog.onFull = () => store.noteFullDisk();
  holdForTopics(catalog, store);
  beginCommits(config, { catalog, store });
  return { ...below, restored, jwtSecret, behindCatalog, store };
}

/** Keeps the entire history of topic sources until the topics report what they need. */
function holdForTopics(catalog: Catalog, store: LocalStore): void {
  for (const { sources } of catalog.topics()) {
    for (const { tableId } of sources) {
      if (catalog.tableById(tableId) !== undefined) store.holdHistory(tableId, SEQ_ZERO);
    }
  }
}

/**
 * Refuses a directory that belongs to another program, has a newer format or lacks its catalog,
 * before a single byte of it changes. Also refuses an archive that cannot be written to.
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
 * Refuses a missing or empty catalog. A new catalog would not list the existing log and segments,
 * and would hide the loss of the original catalog.
 *
 * @throws {DatabaseError} STORAGE_UNAVAILABLE
 */
function requireCatalogFile(disk: Disk, paths: DataPaths): void {
  const path = catalogPathOf(paths.root);
  if ((disk.sizeOf(path) ?? 0) > 0 || !holdsRows(paths, disk)) return;
  // A pending restore brings its own catalog.
  if (isRestoreStaged(disk, paths)) return;
  throw new DatabaseError(
    "STORAGE_UNAVAILABLE",
    `Cannot open ${paths.root}: ${CATALOG_FILE} is ${disk.exists(path) ? "empty" : "missing"}, ` +
      "but is needed for the log and segments in this directory",
    { hint: "restore the catalog of this database, or restore a backup" },
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

/**
 * Before the first write, gives the catalog and the store the information that they need from each
 * other.
 */
function beginCommits(
  config: Config,
  { catalog, store }: { catalog: CatalogDatabase; store: LocalStore },
): void {
  catalog.journal.issueSeq = () => store.issueSeq();
  const before = catalog.setting(DURABILITY) ?? "sync";
  if (before === "relaxed") {
    // Clients may have seen commits that were acknowledged before they were on disk.
    noteLostSeqs(catalog, { after: store.visibleSeq, upTo: store.issueSeq() });
  }
  // The durability mode is stored after the range of lost seqs. Otherwise, an interrupted startup
  // would lose that range.
  const { durability } = config.storage;
  if (before !== durability) catalog.changeSetting(DURABILITY, durability);
  store.lostSeqs = lostSeqsOf(catalog);
}

/** Returns a function that maps a catalog table to its definition in the store. */
function definitionsOf(config: Config, catalog: Catalog): (table: TableEntry) => TableDefinition {
  const defaults = tableDefaults(config);
  return (table) => ({ ...tableDefinition(table, defaults), home: homeOf(table, catalog) });
}

/** Storages that came with a restore are adopted first, if possible. */
function openStorages(
  { storage }: Config,
  { disk, log, random }: DatabaseParts,
  { catalog, opened }: { catalog: CatalogDatabase; opened: AsyncDisposableStack },
): Storages {
  const { allowed_roots: allowedRoots, data_path: dataPath } = storage;
  const storages = new Storages({ disk, log, random, allowedRoots, dataPath });
  opened.defer(() => storages.close());
  for (const entry of catalog.storages.all()) {
    const adopted = entry.key === "" ? storages.adopt(entry) : undefined;
    if (adopted !== undefined) catalog.storages.change({ ...entry, ...adopted });
  }
  storages.open(catalog.storages.all());
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
