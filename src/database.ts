/**
 * Builds the layers on top of each other: disk → catalog → store → auth → SQL → live.
 *
 * It knows no protocol. Each layer is handed exactly what it uses; what a lower layer must tell a
 * higher one goes through one callback given here.
 */

import { Auth } from "./auth/mod.ts";
import { Bugs, containingClock, type OnBug } from "./base/bugs.ts";
import { RecentLog } from "./base/recent_log.ts";
import type { Catalog } from "./catalog/mod.ts";
import { authSettingsFrom, type Config, settingsOf } from "./config/mod.ts";
import { type ArchiveLag, backupJobsOf, noteRestore } from "./copies/mod.ts";
import { copyLimits, liveLimits, sqlLimits } from "./layer_limits.ts";
import { type LiveEngine, LocalLiveEngine } from "./live/mod.ts";
import { type DatabaseParts, type LowerLayers, openLowerLayers } from "./open_layers.ts";
import {
  AuditLog,
  type ConnectionAccess,
  type FileAccess,
  type LiveAccess,
  LocalFileAccess,
  LocalSqlEngine,
  type MetricSample,
  newActivity,
  QueryReaders,
  type ReaderCounts,
  type ReaderSettings,
  SpillSpace,
  type SqlEngine,
  type SqlEnvironment,
  StorageQuota,
  WriteGates,
} from "./sql/mod.ts";
import {
  type BlobStore,
  type DataDirectory,
  type JobList,
  LocalBlobStore,
  type LocalStore,
  type Store,
  type StoreCondition,
} from "./storage/mod.ts";
import { startUpkeep } from "./upkeep.ts";

export interface StorageState extends StoreCondition {
  /** Jobs that failed since the start, by kind. */
  readonly failedJobs: ReadonlyMap<string, number>;
}

export interface Database {
  readonly catalog: Catalog;
  readonly store: Store;
  readonly blobs: BlobStore;
  readonly auth: Auth;
  /** Counts and logs bugs that ended only a request, a subscription, a connection or a job. */
  readonly bugs: Bugs;
  readonly sql: SqlEngine;
  readonly live: LiveEngine;
  readonly jobs: JobList;
  /** How far the archive of the log is behind; undefined when there is none. */
  readonly archiveLag: () => ArchiveLag | undefined;
  /** Whether only deletes and drops are let in, for want of room. */
  readonly isReadOnly: () => boolean;
  /** Room, damage and failures on disk. */
  readonly storageState: () => StorageState;
  /** The threads that read; undefined if every query runs on the event loop. */
  readonly readerCounts: () => ReaderCounts | undefined;
  /** The configuration that `system.settings` shows; replaced when settings are read again. */
  config: Config;
  /** Whom `system.connections` shows; none until the server listens. */
  connections: ConnectionAccess;
  /** What `/metrics` exports, for `system.stats`; nothing until the server listens. */
  metrics: () => readonly MetricSample[];
  readonly files: FileAccess;
  /** Ends subscriptions, syncs the log, closes all files. */
  close(): Promise<void>;
}

/**
 * Opens a data directory and recovers what the last process left.
 *
 * @throws {DatabaseError} STORAGE_UNAVAILABLE if it is in use or of a newer format, or the log
 * cannot be archived where the configuration says.
 * @throws {CorruptionError} If acknowledged data is damaged.
 * @throws {DiskError}
 */
export async function openDatabase(config: Config, given: DatabaseParts): Promise<Database> {
  const log = new RecentLog(given.log, given.clock);
  const bugs = new Bugs(log);
  const parts = { ...given, log, onBug: bugs.contain.bind(bugs) };
  const { clock, disk, random } = parts;
  const copies = copyLimits(config);
  // What is open by now is closed in the opposite order, by `close` or when a later step fails.
  await using opened = new AsyncDisposableStack();
  const layers = await openLowerLayers(config, parts, opened);
  const { archiver, behindCatalog, catalog, definitionOf, directory, jobs, store } = layers;
  const blobs = new LocalBlobStore({ disk, dataPath: directory.paths.root, log, random });
  const audit = new AuditLog({ store, clock, log });
  const auth = await startAuth(config, parts, { audit, bugs, ...layers });
  if (layers.restored !== undefined) await noteRestore(audit, layers.restored);
  opened.defer(() => archiver?.close());
  archiver?.start(store);
  const backups = backupJobsOf(copies, parts, { catalog, store, blobs, jobs, directory });
  behindCatalog.defer(() => backups.close());
  opened.defer(() => endJobs(jobs));
  const limits = sqlLimits(config);
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
    bugs,
    logLines: () => parts.log.lines,
    limits,
    spillSpace: spillSpace(config, parts, directory),
    settings: () => settingsOf(database.config),
    version: parts.version,
    nodeId: config.cluster.node_id,
    activity: newActivity(clock),
    writeGates: new WriteGates(clock),
    storageQuota: StorageQuota.of({ catalog, clock, store, bytesMax: limits.storageBytesMax }),
    definitionOf,
    backups,
    storages: store.storages,
    live: () => liveAccess(live),
    ...serverAccess(() => database),
  };
  const readers = queryReaders(config, parts, { ...environment, directory, store });
  // Readers hold files of the store.
  opened.defer(() => readers?.close());
  const sql = new LocalSqlEngine(environment, readers);
  const live = liveEngine(config, environment, sql);
  opened.defer(() => live.shutdown());
  opened.defer(startUpkeep({ auth, blobs, bugs, catalog, clock, definitionOf, jobs, log, store }));
  const closing = opened.move();
  const database: Database = {
    config,
    catalog,
    store,
    blobs,
    auth,
    bugs,
    sql,
    live,
    jobs,
    archiveLag: () => archiver?.lag,
    ...operatorView(store, jobs, readers),
    ...withoutServer(),
    files: new LocalFileAccess({ blobs, catalog, store }),
    close: () => closing.disposeAsync(),
  };
  return database;
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
  readers: QueryReaders | undefined,
): Pick<Database, "isReadOnly" | "readerCounts" | "storageState"> {
  return {
    readerCounts: () => readers?.counts,
    isReadOnly: () => store.isReadOnly,
    storageState: () => ({ ...store.condition(), failedJobs: jobs.failedCounts }),
  };
}

/** Cores up to which each gets a reader; more would only wait for memory. */
const READERS_MAX = 16;

/** The threads for long queries; none where nobody can open them. */
function queryReaders(
  { performance, server, storage }: Config,
  { clock, disk, log, readers, version }: DatabaseParts,
  {
    activity,
    catalog,
    directory,
    limits,
    store,
  }: Pick<SqlEnvironment, "activity" | "catalog" | "limits"> & {
    directory: DataDirectory;
    store: LocalStore;
  },
): QueryReaders | undefined {
  if (readers === undefined) return undefined;
  const { dividing, takesAll } = readers;
  const coreCount = Math.min(navigator.hardwareConcurrency, READERS_MAX);
  const countMax = readers.countMax ?? (server.workers || coreCount);
  const spillOf = (number: number): ReaderSettings["spill"] => ({
    directory: directory.paths.tmp,
    prefix: `spill.reader${number}`,
    bytesMax: performance.query_temporary_bytes,
    minFreeBytes: storage.min_free_bytes,
  });
  const open = readers.open((number) => ({
    limits,
    version,
    cacheBytes: Math.floor(storage.cache_bytes / (2 * countMax)),
    spill: spillOf(number),
  }));
  const cleanUp = (number: number): void => {
    new SpillSpace({ disk, log, ...spillOf(number) }).clear();
  };
  const { sharing } = store;
  const hasMemory = (): boolean => activity.running.heldBytes < limits.totalQueryMemoryBytes;
  const world = { sharing, store, catalog, clock, cleanUp, hasMemory, log };
  return new QueryReaders({ open, countMax, takesAll, dividing, ...world });
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
  { bugs, catalog, clock, log, random, store }: SqlEnvironment,
  sql: SqlEngine,
): LocalLiveEngine {
  const onBug: OnBug = (error, what, fields) => bugs.contain(error, what, fields);
  return new LocalLiveEngine({
    store,
    sql,
    definitions: catalog,
    clock: containingClock(clock, onBug),
    random,
    log,
    onBug,
    limits: liveLimits(config),
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

/** Nobody copies what is about to be closed, or erases in it. */
async function endJobs(jobs: JobList): Promise<void> {
  jobs.cancelAll();
  await jobs.endedAbove();
}

async function startAuth(
  config: Config,
  { clock, log, random }: DatabaseParts,
  {
    audit,
    bugs,
    catalog,
    jwtSecret,
  }: Pick<LowerLayers, "catalog" | "jwtSecret"> & { audit: AuditLog; bugs: Bugs },
): Promise<Auth> {
  const settings = authSettingsFrom(config, jwtSecret);
  const auth = new Auth({
    catalog,
    clock,
    random,
    log,
    settings,
    // The audit log reports failed writes itself. A bug in it must not fail the login.
    onAudit: (event) => {
      audit.note(event).catch((error: unknown) => bugs.contain(error, "an entry of the audit log"));
    },
  });
  await auth.start();
  return auth;
}
