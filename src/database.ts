/**
 * Builds the layers on top of each other: disk → catalog → store → auth → SQL → live.
 *
 * It knows no protocol. Each layer is handed exactly what it uses; what a lower layer must tell a
 * higher one goes through one callback given here.
 */

import { Auth } from "./auth/mod.ts";
import type { Clock } from "./base/clock.ts";
import type { Disk } from "./base/disk.ts";
import { DatabaseError } from "./base/errors.ts";
import type { Log } from "./base/log.ts";
import type { Random } from "./base/random.ts";
import { RecentLog } from "./base/recent_log.ts";
import {
  CATALOG_FILE,
  type Catalog,
  CatalogDatabase,
  catalogPathOf,
  type TableEntry,
} from "./catalog/mod.ts";
import { authSettingsFrom, type Config, settingsOf } from "./config/mod.ts";
import {
  type ArchiveLag,
  type Archiver,
  archiverOf,
  backupJobsOf,
  finishStagedRestore,
  isRestoreStaged,
  lostSeqsOf,
  nameIncarnation,
  noteLostSeqs,
  noteRestore,
  type PointAdvancer,
  requireArchive,
} from "./copies/mod.ts";
import { liveLimits, sqlLimits, storeOptions } from "./layer_limits.ts";
import { type LiveEngine, LocalLiveEngine } from "./live/mod.ts";
import { isUnborn } from "./maintenance/mod.ts";
import {
  AuditLog,
  type ConnectionAccess,
  type FileAccess,
  homeOf,
  type LiveAccess,
  LocalFileAccess,
  LocalSqlEngine,
  type MetricSample,
  newActivity,
  ownTables,
  SpillSpace,
  type SqlEngine,
  type SqlEnvironment,
  tableDefinition,
  WriteGates,
} from "./sql/mod.ts";
import {
  type BlobStore,
  type DataDirectory,
  type DataPaths,
  dataPathsOf,
  JobList,
  LocalBlobStore,
  LocalStore,
  openDataDirectory,
  refuseForeignDirectory,
  type SegmentWork,
  Storages,
  type Store,
  type StoreCondition,
  type TableDefinition,
} from "./storage/mod.ts";
import { startUpkeep } from "./upkeep.ts";

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
  /** Who brings a backup to a later moment; without it that happens between other work. */
  readonly advance?: PointAdvancer | undefined;
  /** The log or the catalog failed: the process must stop and recover by starting again. */
  readonly onFatal: (cause: unknown) => void;
}

export interface StorageState extends StoreCondition {
  /** Jobs that failed since the start, by kind. */
  readonly failedJobs: ReadonlyMap<string, number>;
}

export interface Database {
  readonly catalog: Catalog;
  readonly store: Store;
  readonly blobs: BlobStore;
  readonly auth: Auth;
  readonly sql: SqlEngine;
  readonly live: LiveEngine;
  readonly jobs: JobList;
  /** How far the archive of the log is behind; undefined when there is none. */
  readonly archiveLag: () => ArchiveLag | undefined;
  /** Whether only deletes and drops are let in, for want of room. */
  readonly isReadOnly: () => boolean;
  /** Room, damage and failures on disk. */
  readonly storageState: () => StorageState;
  /** Whom `system.connections` shows; none until the server listens. */
  connections: ConnectionAccess;
  /** What `/metrics` exports, for `system.stats`; nothing until the server listens. */
  metrics: () => readonly MetricSample[];
  readonly files: FileAccess;
  /** Ends subscriptions, syncs the log, closes all files. */
  close(): Promise<void>;
}

/** Name of a setting of the catalog. */
const DURABILITY = "durability";

/**
 * Opens a data directory and recovers what the last process left.
 *
 * @throws {DatabaseError} STORAGE_UNAVAILABLE if it is in use or of a newer format, or the log cannot
 * be archived where the configuration says.
 * @throws {CorruptionError} If acknowledged data is damaged.
 * @throws {DiskError}
 */
export async function openDatabase(config: Config, given: DatabaseParts): Promise<Database> {
  const parts = { ...given, log: new RecentLog(given.log, given.clock) };
  const { clock, disk, log, random } = parts;
  const { data_path: dataPath } = config.storage;
  refuseUnfit(config, disk);
  const directory = openDataDirectory(disk, dataPath);
  const restored = finishStagedRestore(parts, directory);
  const { catalog, jwtSecret } = openCatalog(config, parts, directory);
  const definitionOf = definitionsOf(config, catalog);
  const jobs = new JobList(clock);
  const archiver = archiverOf(config.storage, parts, { catalog, directory });
  const opened = { catalog, definitionOf, directory, jobs, archiver };
  const store = await openStore(config, parts, opened);
  beginCommits(config, { catalog, store });
  const blobs = new LocalBlobStore({ disk, dataPath, log, random });
  const audit = new AuditLog({ store, clock, log });
  const auth = await startAuth(config, parts, { audit, catalog, store, jwtSecret });
  if (restored !== undefined) await noteRestore(audit, restored);
  archiver?.start(store);
  const backups = backupJobsOf(config.storage, parts, { catalog, store, blobs, jobs, directory });
  const environment: SqlEnvironment = {
    catalog,
    store,
    blobs,
    jobs,
    auth,
    audit,
    clock,
    random,
    log,
    logLines: () => parts.log.lines,
    limits: sqlLimits(config),
    spillSpace: spillSpace(config, parts, directory),
    settings: settingsOf(config),
    version: parts.version,
    activity: newActivity(clock),
    writeGates: new WriteGates(clock),
    definitionOf,
    backups,
    storages: store.storages,
    live: () => liveAccess(live),
    ...serverAccess(() => database),
  };
  const sql = new LocalSqlEngine(environment);
  const live = liveEngine(config, environment, sql);
  const stopUpkeep = startUpkeep({ auth, blobs, catalog, clock, definitionOf, jobs, log, store });
  const database: Database = {
    catalog,
    store,
    blobs,
    auth,
    sql,
    live,
    jobs,
    archiveLag: () => archiver?.lag,
    ...operatorView(store, jobs),
    ...withoutServer(),
    files: new LocalFileAccess({ blobs, catalog, store }),
    async close() {
      stopUpkeep();
      live.shutdown();
      await endJobs(jobs);
      await archiver?.close();
      await store.close();
      catalog.close();
      backups.close();
    },
  };
  return database;
}

/**
 * A directory of something else, of a newer format, or that has lost its catalog is refused before a
 * byte of it changes, and so is an archive that cannot be written.
 *
 * @throws {CorruptionError} @throws {DatabaseError} STORAGE_UNAVAILABLE
 */
function refuseUnfit({ storage }: Config, disk: Disk): void {
  const { archive_path: archivePath, data_path: dataPath } = storage;
  if (archivePath !== undefined) requireArchive(disk, archivePath);
  const paths = dataPathsOf(dataPath);
  refuseForeignDirectory(disk, paths);
  CatalogDatabase.refuseForeign(catalogPathOf(dataPath));
  requireCatalog(disk, paths);
}

/** What SQL asks of the server, which is made after it. */
function serverAccess(database: () => Database): Pick<SqlEnvironment, "connections" | "metrics"> {
  return { connections: () => database().connections, metrics: () => database().metrics() };
}

function withoutServer(): Pick<Database, "connections" | "metrics"> {
  return { connections: { rows: () => [], kill: () => false }, metrics: () => [] };
}

function operatorView(
  store: LocalStore,
  jobs: JobList,
): Pick<Database, "isReadOnly" | "storageState"> {
  return {
    isReadOnly: () => store.isReadOnly,
    storageState: () => ({ ...store.condition(), failedJobs: jobs.failedCounts }),
  };
}

function spillSpace(
  { performance, storage }: Config,
  { disk, log }: DatabaseParts,
  { paths }: DataDirectory,
): SpillSpace {
  return new SpillSpace({
    disk,
    log,
    directory: paths.tmp,
    bytesMax: performance.query_temporary_bytes,
    minFreeBytes: storage.min_free_bytes,
  });
}

function liveEngine(
  config: Config,
  { catalog, clock, log, random, store }: SqlEnvironment,
  sql: SqlEngine,
): LocalLiveEngine {
  const limits = liveLimits(config);
  return new LocalLiveEngine({ store, sql, definitions: catalog, clock, random, log, limits });
}

function liveAccess(live: LocalLiveEngine): LiveAccess {
  return {
    rows: () => live.subscriptions(),
    match: (plan) => live.match(plan),
    kill: (liveId) => live.kill(liveId),
    tableChanged: (tableId) => live.tableChanged(tableId),
  };
}

/** Nobody copies what is about to be closed, or erases in it. */
async function endJobs(jobs: JobList): Promise<void> {
  jobs.cancelAll();
  const kinds: ReadonlySet<string> = new Set(["backup", "restore", "purge"]);
  const running = jobs.all().filter(({ kind }) => kinds.has(kind));
  await Promise.all(running.map(({ ended }) => ended));
}

/**
 * An empty catalog beside a log and segments would make nothing of them, and hide that theirs is gone.
 *
 * @throws {DatabaseError} STORAGE_UNAVAILABLE
 */
function requireCatalog(disk: Disk, paths: DataPaths): void {
  const path = catalogPathOf(paths.root);
  if ((disk.sizeOf(path) ?? 0) > 0 || isUnborn(paths, disk)) return;
  // One comes with what was restored.
  if (isRestoreStaged(disk, paths)) return;
  throw new DatabaseError(
    "STORAGE_UNAVAILABLE",
    `Cannot open ${paths.root}: ${CATALOG_FILE} is ${disk.exists(path) ? "empty" : "missing"}, and there is a log or segments that belong to one`,
    { hint: "put back the catalog that belongs to them, or restore a backup" },
  );
}

/** What can fail while only the lock of the directory has to be given back. */
function openCatalog(
  { storage }: Config,
  { clock, jwtSecret, log, random }: DatabaseParts,
  directory: DataDirectory,
): { catalog: CatalogDatabase; jwtSecret: Uint8Array } {
  try {
    const secret = jwtSecret();
    const path = catalogPathOf(directory.paths.root);
    const keepsJournal = storage.archive_path !== undefined;
    const catalog = CatalogDatabase.open({ path, clock, log, keepsJournal });
    nameIncarnation(catalog, random);
    return { catalog, jwtSecret: secret };
  } catch (error) {
    directory.release();
    throw error;
  }
}

async function startAuth(
  config: Config,
  { clock, log, random }: DatabaseParts,
  {
    audit,
    catalog,
    jwtSecret,
    store,
  }: { audit: AuditLog; catalog: CatalogDatabase; store: LocalStore; jwtSecret: Uint8Array },
): Promise<Auth> {
  const settings = authSettingsFrom(config, jwtSecret);
  const auth = new Auth({
    catalog,
    clock,
    random,
    log,
    settings,
    // What it cannot write it tells the log; anything else it throws is a bug, and stops the process.
    onAudit: (event) => void audit.note(event),
  });
  try {
    await auth.start();
    return auth;
  } catch (error) {
    await store.close();
    catalog.close();
    throw error;
  }
}

/** What the catalog and the store have to know of each other before anything is written. */
function beginCommits(
  config: Config,
  { catalog, store }: { catalog: CatalogDatabase; store: LocalStore },
): void {
  catalog.journal.issueSeq = () => store.issueSeq();
  if (wasRelaxed(catalog, config)) {
    // Whatever was answered before the disk had it may have been seen.
    noteLostSeqs(catalog, { after: store.visibleSeq, upTo: store.issueSeq() });
  }
  store.lostSeqs = lostSeqsOf(catalog);
}

/** Whether the last life of the database answered before the disk did; notes it of this one. */
function wasRelaxed(catalog: CatalogDatabase, { storage: { durability } }: Config): boolean {
  const before = catalog.setting(DURABILITY) ?? "sync";
  if (before !== durability) catalog.changeSetting(DURABILITY, durability);
  return before === "relaxed";
}

/** How the store sees a table of the catalog. */
function definitionsOf(
  { storage }: Config,
  catalog: Catalog,
): (table: TableEntry) => TableDefinition {
  return (table) => ({ ...tableDefinition(table, storage), home: homeOf(table, catalog) });
}

/** Those that a restore brought here are taken over first, where that can be. */
function openStorages(
  { storage }: Config,
  parts: Pick<DatabaseParts, "disk" | "log" | "random">,
  catalog: CatalogDatabase,
): Storages {
  const { allowed_roots: allowedRoots, data_path: dataPath } = storage;
  const storages = new Storages({ ...parts, allowedRoots, dataPath });
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
  }: {
    archiver: Archiver | undefined;
    catalog: CatalogDatabase;
    definitionOf: (table: TableEntry) => TableDefinition;
    directory: DataDirectory;
    jobs: JobList;
  },
): Promise<LocalStore> {
  const { limits, storage } = config;
  try {
    const store = await LocalStore.open({
      disk,
      dataPath: storage.data_path,
      directory,
      clock,
      random,
      log,
      manifest: catalog.manifest,
      definitions: [
        ...catalog.tables().map(definitionOf),
        ...ownTables({ answersTtlMs: limits.idempotency_ttl_secs * 1000 }),
      ],
      jobs,
      segmentWork,
      storages: openStorages(config, { disk, log, random }, catalog),
      keepsLogFrom: archiver === undefined ? undefined : () => archiver.neededFrom,
      options: storeOptions(config),
    });
    store.onFatal = onFatal;
    catalog.onFatal = onFatal;
    return store;
  } catch (error) {
    catalog.close();
    throw error;
  }
}
