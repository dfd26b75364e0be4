/**
 * Builds the layers on top of each other: disk → catalog → store → auth → SQL → live.
 *
 * It knows no protocol. Each layer is handed exactly what it uses; what a lower layer must tell a
 * higher one goes through one callback given here.
 */
import { Auth } from "./auth/mod.ts";
import { BackupJobs, type BackupJobsOptions } from "./backup_jobs.ts";
import type { CancelTimer, Clock } from "./base/clock.ts";
import type { Disk } from "./base/disk.ts";
import type { Log } from "./base/log.ts";
import type { Random } from "./base/random.ts";
import {
  type Catalog,
  CatalogDatabase,
  type FileEntry,
  flushPolicyFrom,
  type TableEntry,
} from "./catalog/mod.ts";
import { authSettingsFrom, type Config, settingsOf } from "./config.ts";
import { type LiveEngine, LocalLiveEngine } from "./live/mod.ts";
import { finishRestore } from "./restore.ts";
import {
  answersTable,
  type ConnectionAccess,
  isFileLive,
  type LiveAccess,
  LocalSqlEngine,
  newActivity,
  SpillSpace,
  type SqlEngine,
  type SqlEnvironment,
  sweepFiles,
} from "./sql/mod.ts";
import {
  type BlobStore,
  type DataDirectory,
  JobList,
  LocalBlobStore,
  LocalStore,
  openDataDirectory,
  type SegmentJobs,
  type Store,
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
  readonly jobs?: SegmentJobs | undefined;
  /** The log failed: the process must stop and recover by starting again. */
  readonly onFatal: (cause: unknown) => void;
}

export interface Database {
  readonly catalog: Catalog;
  readonly store: Store;
  readonly blobs: BlobStore;
  readonly auth: Auth;
  readonly sql: SqlEngine;
  readonly live: LiveEngine;
  readonly jobs: JobList;
  /** Whom `system.connections` shows; none until the server listens. */
  connections: ConnectionAccess;
  fileIsLive(entry: FileEntry): boolean;
  /** Ends subscriptions, syncs the log, closes all files. */
  close(): Promise<void>;
}

const HOUR_MS = 3_600_000;

/** How often the free space, and what has expired, is looked at while nobody writes. */
const SPACE_LOOK_MS = 10_000;

/**
 * Opens a data directory and recovers what the last process left.
 *
 * @throws {DatabaseError} STORAGE_UNAVAILABLE if it is in use or of a newer format.
 * @throws {CorruptionError} If acknowledged data is damaged.
 * @throws {DiskError}
 */
export async function openDatabase(config: Config, parts: DatabaseParts): Promise<Database> {
  const { clock, disk, log, random } = parts;
  const dataPath = config.storage.data_path;
  // A directory in use, or of a newer format, is refused before a byte of it changes.
  CatalogDatabase.refuseForeign(catalogPath(dataPath));
  const directory = openDataDirectory(disk, dataPath);
  finishStagedRestore(parts, directory);
  const { catalog, jwtSecret } = openCatalog(parts, directory);
  const definitionOf = (table: TableEntry): TableDefinition => tableDefinition(table, config);
  const jobs = new JobList(clock);
  const store = await openStore(config, parts, { catalog, definitionOf, directory, jobs });
  store.onFatal = parts.onFatal;
  const blobs = new LocalBlobStore({ disk, dataPath, random });
  const settings = authSettingsFrom(config, jwtSecret);
  const auth = new Auth({ catalog, clock, random, log, settings });
  try {
    await auth.start();
  } catch (error) {
    await store.close();
    catalog.close();
    throw error;
  }

  const environment: SqlEnvironment = {
    catalog,
    store,
    blobs,
    jobs,
    auth,
    clock,
    random,
    log,
    limits: sqlLimits(config),
    spillSpace: spillSpace(config, parts, directory),
    settings: settingsOf(config),
    version: parts.version,
    activity: newActivity(clock),
    definitionOf,
    backups: backupJobs(config, parts, { catalog, store, blobs, jobs, directory }),
    live: () => liveAccess(live),
    connections: () => database.connections,
  };
  const sql = new LocalSqlEngine(environment);
  const live = new LocalLiveEngine({ store, sql, clock, random, log, limits: liveLimits(config) });
  const stopLooking = repeatedly(clock, SPACE_LOOK_MS, () => {
    store.lookAtSpace();
    store.dropExpired();
  });
  store.lookAtSpace();
  const stopTidying = tidyHourly(environment, store);
  const database: Database = {
    catalog,
    store,
    blobs,
    auth,
    sql,
    live,
    jobs,
    connections: { rows: () => [], kill: () => false },
    fileIsLive: (entry) => isFileLive(entry, { catalog, store }),
    async close() {
      stopTidying();
      stopLooking();
      live.shutdown();
      await endJobs(jobs);
      await store.close();
      catalog.close();
    },
  };
  return database;
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

function liveAccess(live: LocalLiveEngine): LiveAccess {
  return {
    rows: () => live.subscriptions(),
    match: (plan) => live.match(plan),
    kill: (liveId) => live.kill(liveId),
    tableChanged: (tableId) => live.tableChanged(tableId),
  };
}

/** Removes files that nobody can name any more, and begins to discard history that is old enough. */
function tidyHourly(environment: SqlEnvironment, store: LocalStore): CancelTimer {
  const { clock, definitionOf, log } = environment;
  return repeatedly(clock, HOUR_MS, () => {
    const count = sweepFiles(environment, {
      historyMsOf: (table) => definitionOf(table).historyMs,
      nowMs: clock.nowMs(),
    });
    if (count > 0) log.info("removed files that no row names", { count });
    store.discardHistory();
  });
}

function backupJobs(
  { storage }: Config,
  { clock, disk, version }: DatabaseParts,
  {
    directory,
    ...layers
  }: Pick<BackupJobsOptions, "catalog" | "store" | "blobs" | "jobs"> & {
    directory: DataDirectory;
  },
): BackupJobs {
  return new BackupJobs({
    ...layers,
    disk,
    clock,
    version,
    paths: directory.paths,
    minFreeBytes: storage.min_free_bytes,
    allowedRoots: storage.allowed_roots,
  });
}

/** Nobody copies what is about to be closed. */
async function endJobs(jobs: JobList): Promise<void> {
  jobs.cancelAll();
  const copying = jobs.all().filter(({ kind }) => kind === "backup" || kind === "restore");
  await Promise.all(copying.map(({ ended }) => ended));
}

function catalogPath(dataPath: string): string {
  return `${dataPath}/catalog.sqlite`;
}

/** Runs a task again and again, so long after the one before. */
function repeatedly(clock: Clock, pauseMs: number, task: () => void): CancelTimer {
  let cancel = clock.after(pauseMs, tick);
  function tick(): void {
    task();
    cancel = clock.after(pauseMs, tick);
  }
  return () => cancel();
}

/** A restore that RESTORE DATABASE has prepared. */
function finishStagedRestore({ clock, disk, log }: DatabaseParts, directory: DataDirectory): void {
  try {
    finishRestore(directory.paths, { disk, clock, log });
  } catch (error) {
    directory.release();
    throw error;
  }
}

/** What can fail while only the lock of the directory has to be given back. */
function openCatalog(
  { clock, jwtSecret, log }: DatabaseParts,
  directory: DataDirectory,
): { catalog: CatalogDatabase; jwtSecret: Uint8Array } {
  try {
    const secret = jwtSecret();
    const path = catalogPath(directory.paths.root);
    return { catalog: CatalogDatabase.open({ path, clock, log }), jwtSecret: secret };
  } catch (error) {
    directory.release();
    throw error;
  }
}

async function openStore(
  { cluster, limits, storage }: Config,
  { clock, disk, jobs, log, random }: DatabaseParts,
  {
    catalog,
    definitionOf,
    directory,
    jobs: jobList,
  }: {
    catalog: CatalogDatabase;
    definitionOf: (table: TableEntry) => TableDefinition;
    directory: DataDirectory;
    jobs: JobList;
  },
): Promise<LocalStore> {
  try {
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
        answersTable(limits.idempotency_ttl_secs * 1000),
      ],
      jobs,
      jobList,
      options: {
        nodeId: cluster.node_id,
        nodeBits: cluster.node_bits,
        durability: storage.durability,
        walSegmentBytes: storage.wal_segment_bytes,
        walMaxBytes: storage.wal_max_bytes,
        rowBytesMax: limits.max_row_bytes,
        minFreeBytes: storage.min_free_bytes,
        ballastBytes: storage.ballast_bytes,
      },
    });
  } catch (error) {
    catalog.close();
    throw error;
  }
}

/** How storage sees a table; options it does not set come from the configuration. */
function tableDefinition(table: TableEntry, { storage }: Config): TableDefinition {
  const { deletedRetentionHours, flushPolicy, ttlSeconds } = table.options;
  const policy = flushPolicy === undefined ? undefined : flushPolicyFrom(flushPolicy);
  const rowsMax = policy === undefined ? storage.flush_rows : policy.rows;
  const intervalSeconds =
    policy === undefined ? storage.flush_interval_secs : policy.intervalSeconds;
  return {
    tableId: table.tableId,
    name: `${table.namespace}.${table.name}`,
    columns: table.columns.map(({ columnId, missing, name, type }) => ({
      columnId,
      name,
      type,
      missing,
    })),
    keyColumnIds: table.primaryKey,
    flush: {
      rowsMax: rowsMax ?? Number.POSITIVE_INFINITY,
      ageMsMax: (intervalSeconds ?? Number.POSITIVE_INFINITY) * 1000,
    },
    historyMs: (deletedRetentionHours ?? storage.history_hours) * HOUR_MS,
    ttlMs: ttlSeconds === undefined ? undefined : ttlSeconds * 1000,
    expiredSeq: table.expiredSeq,
  };
}

function sqlLimits({ files, limits, logging, performance }: Config): SqlEnvironment["limits"] {
  return {
    sqlBytesMax: limits.max_sql_bytes,
    parametersMax: limits.max_parameters,
    parameterBytesMax: limits.max_parameter_bytes,
    resultRowsMax: limits.max_result_rows,
    timeoutMs: performance.request_timeout * 1000,
    timeoutMsMax: limits.max_timeout_ms,
    requiresWhere: limits.require_where,
    transactionTimeoutMs: limits.transaction_timeout_secs * 1000,
    transactionBytesMax: limits.transaction_max_bytes,
    idempotencyTtlMs: limits.idempotency_ttl_secs * 1000,
    queryMemoryBytes: performance.query_memory_bytes,
    slowQueryMs: logging.slow_query_threshold_ms,
    filesPerFolderMax: files.max_files_per_folder,
  };
}

function liveLimits({
  limits,
  websocket,
}: Config): ConstructorParameters<typeof LocalLiveEngine>[0]["limits"] {
  return {
    subscriptionsPerUser: limits.subscriptions_per_user,
    subscriptionsPerConnection: limits.subscriptions_per_connection,
    batchSizeDefault: websocket.default_batch_size,
    batchSizeMax: websocket.max_batch_size,
    frameBytesMax: websocket.max_frame_bytes,
    loadingTimeoutMs: websocket.loading_timeout_secs * 1000,
    replayChangesMax: websocket.replay_changes,
  };
}
