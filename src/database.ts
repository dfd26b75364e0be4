/**
 * Builds the layers on top of each other: disk → catalog → store → auth → SQL → live.
 *
 * No protocol is served here: `server` serves the protocols on top of the layers created here.
 * Each layer receives only the parts that it uses. A lower layer informs a higher one only through
 * callbacks passed in here.
 */

import { AccountNotices } from "./account_notices.ts";
import { Auth } from "./auth/mod.ts";
import { type ArchiveLag, backupJobsOf, noteRestore } from "./backup/mod.ts";
import { Bugs, containingClock, type OnBug } from "./base/bugs.ts";
import { type CancelTimer, type Clock, HOUR_MS } from "./base/clock.ts";
import { collectAll } from "./base/garbage.ts";
import type { Log } from "./base/log.ts";
import { MemoryPressure } from "./base/memory_pressure.ts";
import { OutboundHosts } from "./base/outbound_hosts.ts";
import { ProcessMemoryGauge } from "./base/process_memory.ts";
import { RecentLog } from "./base/recent_log.ts";
import { repeatedly } from "./base/repeatedly.ts";
import { SeldomLog } from "./base/seldom_log.ts";
import type { Catalog } from "./catalog/mod.ts";
import { authSettingsFrom, type Config, readerCountMax, settingsOf } from "./config/mod.ts";
import { backupLimits, liveLimits, sqlLimits, topicLimits } from "./layer_limits.ts";
import { type LiveEngine, LocalLiveEngine } from "./live/mod.ts";
import { type MemoryUse, memoryParts } from "./memory_parts.ts";
import { type DatabaseParts, type LowerLayers, openLowerLayers } from "./open_layers.ts";
import type { MemoryGivenBack, ServerMemoryUse } from "./server/mod.ts";
import {
  AuditLog,
  activeBytesOf,
  type ConnectionAccess,
  type FileAccess,
  type LiveAccess,
  LocalFileAccess,
  LocalSqlEngine,
  MemoryGate,
  type MemoryPart,
  type MetricSample,
  newActivity,
  QueryReaders,
  type ReaderCounts,
  type ReaderSettings,
  SpillSpace,
  type SqlEngine,
  type SqlEnvironment,
  StorageQuota,
  type TopicAccess,
  UserExports,
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
import {
  DeadLetterCatalog,
  LocalTopics,
  posting,
  type TopicConsumers,
  TopicGroups,
  type TopicLogs,
  Webhooks,
} from "./topics/mod.ts";
import { startUpkeep } from "./upkeep.ts";

export interface StorageState extends StoreCondition {
  /** The number of failed jobs of each kind since startup. */
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
  /** Returns how far the archive lags behind the log; undefined if there is no archive. */
  readonly archiveLag: () => ArchiveLag | undefined;
  /** Returns whether only deletes and drops are accepted, because free space is low. */
  readonly isReadOnly: () => boolean;
  /** Returns the free space, and the damage and failures found on the disk. */
  readonly storageState: () => StorageState;
  /** Returns the reader thread counts; undefined if all queries run on the event loop. */
  readonly readerCounts: () => ReaderCounts | undefined;
  /** The configuration shown by `system.settings`. It is replaced when the settings are reread. */
  config: Config;
  /**
   * Lists the connections for `system.connections`. There are none until the server starts
   * listening.
   */
  connections: ConnectionAccess;
  /** The offsets and messages of topics. */
  readonly topicLogs: TopicLogs;
  /** The topics that statements can access; replaced in tests. */
  topics: TopicAccess;
  readonly topicConsumers: TopicConsumers;
  readonly webhooks: Webhooks;
  /** Returns the memory used by each part of the process. */
  readonly memoryParts: () => readonly MemoryPart[];
  /** Returns how often each way of releasing memory has been used since startup. */
  readonly memoryGivenBack: () => MemoryGivenBack;
  /** Returns how much memory the HTTP server uses; undefined until the server listens. */
  serverMemory: () => ServerMemoryUse | undefined;
  /** The metrics of `/metrics`, for `system.stats`; empty until the server listens. */
  metrics: () => readonly MetricSample[];
  readonly files: FileAccess;
  readonly exports: UserExports;
  /**
   * Watches the memory of the process until the database closes. Only for callers whose process
   * serves only this database and uses the system clock.
   */
  watchMemory(): void;
  /** Ends subscriptions, syncs the log, and closes all files. */
  close(): Promise<void>;
}

/**
 * Opens a data directory and recovers the data left by the last process.
 *
 * @throws {DatabaseError} STORAGE_UNAVAILABLE if it is in use or in a newer format, or if the log
 *   cannot be archived in the configured directory.
 * @throws {CorruptionError} If acknowledged data is damaged.
 * @throws {DiskError}
 */
export async function openDatabase(config: Config, given: DatabaseParts): Promise<Database> {
  const log = new RecentLog(given.log, given.clock);
  const bugs = new Bugs(log);
  const parts = { ...given, log, onBug: bugs.contain.bind(bugs) };
  const { clock, disk, random } = parts;
  const world = { bugs, clock, log, random };
  const memory = new ProcessMemoryGauge(disk);
  const pressure = pressureOn(config, { clock, holders: () => [store, readers], log, memory });
  // The opened resources are closed in reverse order, either by `close` or because a later step
  // fails.
  await using opened = new AsyncDisposableStack();
  const layers = await openLowerLayers(config, parts, opened);
  const { archiver, behindCatalog, catalog, definitionOf, directory, jobs, store } = layers;
  const blobs = new LocalBlobStore({ disk, dataPath: directory.paths.root, log, random });
  const audit = new AuditLog({ store, clock, log });
  const auth = await startAuth(config, parts, { audit, bugs, opened, ...layers });
  if (layers.restored !== undefined) await noteRestore(audit, layers.restored);
  opened.defer(() => archiver?.close());
  archiver?.start(store);
  const backups = backupJobsOf(backupLimits(config), parts, { ...layers, blobs });
  behindCatalog.defer(() => backups.close());
  opened.defer(() => endJobs(jobs));
  const limits = sqlLimits(config);
  const exports = userExports(config, parts, { blobs, catalog, directory, jobs, store });
  const environment: SqlEnvironment = {
    catalog,
    ...storeParts(store),
    blobs,
    jobs,
    auth,
    audit,
    ...world,
    logLines: () => parts.log.lines,
    limits,
    spillSpace: spillSpace(config, parts, directory),
    version: parts.version,
    nodeId: config.cluster.node_id,
    activity: newActivity({ clock, random, limits }),
    ...gatesOf({ catalog, clock, store, limits, pressure }),
    definitionOf,
    backups,
    exports,
    live: () => liveAccess(following.live),
    ...serverAccess(() => database),
  };
  const readers = queryReaders(config, parts, { ...environment, directory, opened, store });
  const sql = new LocalSqlEngine(environment, readers);
  const following = followers(config, { ...environment, store }, { opened, sql });
  opened.defer(startUpkeep({ ...environment, store, topics: () => following.topics }));
  const closing = opened.move();
  const database: Database = {
    config,
    catalog,
    store,
    blobs,
    auth,
    bugs,
    sql,
    ...following,
    jobs,
    archiveLag: () => archiver?.lag,
    ...operatorView(store, jobs, { pressure, readers }),
    memoryParts: () =>
      memoryParts(config, memoryUse({ database, environment, memory, readers, sql, store })),
    ...withoutServer(),
    files: new LocalFileAccess({ blobs, catalog, sql, store }),
    exports,
    watchMemory: () => closing.defer(memoryWatch({ clock, memory, pressure })),
    close: () => closing.disposeAsync(),
  };
  return database;
}

/** The interval between two estimates of how much of the heap is live. */
const SAMPLE_MS = 10_000;

/** Starts watching the memory of the process. Returns a function that stops it. */
function memoryWatch({
  clock,
  memory,
  pressure,
}: {
  clock: Clock;
  memory: ProcessMemoryGauge;
  pressure: MemoryPressure;
}): CancelTimer {
  memory.sample();
  const stops = [pressure.start(), repeatedly(clock, SAMPLE_MS, () => memory.sample())];
  return () => {
    for (const stop of stops) stop();
  };
}

/** Makes all layers release memory when the process runs short of it. */
function pressureOn(
  { performance: { memory_bytes: bytesMax } }: Config,
  {
    clock,
    holders,
    log,
    memory,
  }: {
    clock: Clock;
    log: Log;
    holders: () => readonly ({ giveBackMemory(): void } | undefined)[];
    memory: ProcessMemoryGauge;
  },
): MemoryPressure {
  const giveBack = (): void => {
    for (const holder of holders()) holder?.giveBackMemory();
    collectAll();
  };
  const seldomLog = new SeldomLog(log, clock);
  const onTight = (usedBytes: number): void => {
    seldomLog.warn("almost no memory is left; statements have to wait", { usedBytes, bytesMax });
  };
  const usedBytes = (): number => memory.usedBytes(bytesMax);
  return new MemoryPressure({ clock, bytesMax, usedBytes, giveBack, onTight });
}

/** Returns the parts of the store that SQL uses. */
function storeParts(store: LocalStore): Pick<SqlEnvironment, "history" | "storages" | "store"> {
  return { history: store, storages: store.storages, store };
}

/** Returns the gates at which statements wait for admission. */
function gatesOf({
  catalog,
  clock,
  limits,
  pressure,
  store,
}: Pick<SqlEnvironment, "catalog" | "clock" | "limits"> & {
  pressure: MemoryPressure;
  store: LocalStore;
}): Pick<SqlEnvironment, "memoryGate" | "storageQuota" | "writeGates"> {
  const bytesMax = limits.storageBytesMax;
  return {
    memoryGate: new MemoryGate(clock, pressure),
    storageQuota: StorageQuota.of({ catalog, clock, store, bytesMax }),
    writeGates: new WriteGates(clock),
  };
}

/** Gives SQL access to the entire database, and to the server, which is created later. */
function serverAccess(
  database: () => Database,
): Pick<SqlEnvironment, "connections" | "memory" | "metrics" | "settings" | "topics" | "webhooks"> {
  return {
    connections: () => database().connections,
    memory: () => database().memoryParts(),
    metrics: () => database().metrics(),
    settings: () => settingsOf(database().config),
    topics: () => database().topics,
    webhooks: () => database().webhooks,
  };
}

function withoutServer(): Pick<Database, "connections" | "metrics" | "serverMemory"> {
  return {
    connections: { rows: () => [], kill: () => false },
    metrics: () => [],
    serverMemory: () => undefined,
  };
}

function operatorView(
  store: LocalStore,
  jobs: JobList,
  { pressure, readers }: { pressure: MemoryPressure; readers: QueryReaders | undefined },
): Pick<Database, "isReadOnly" | "memoryGivenBack" | "readerCounts" | "storageState"> {
  return {
    memoryGivenBack: () => ({ collections: pressure.givenBackCount, ...store.givenBack }),
    readerCounts: () => readers?.counts,
    isReadOnly: () => store.isReadOnly,
    storageState: () => ({ ...store.condition(), failedJobs: jobs.failedCounts }),
  };
}

function memoryUse({
  database,
  environment: { activity, limits },
  memory,
  readers,
  sql,
  store,
}: {
  database: Pick<Database, "serverMemory">;
  environment: SqlEnvironment;
  memory: ProcessMemoryGauge;
  readers: QueryReaders | undefined;
  sql: LocalSqlEngine;
  store: LocalStore;
}): MemoryUse {
  return {
    process: memory.read(),
    statementBytes: activeBytesOf(activity),
    plans: { bytes: sql.planBytes, bytesMax: limits.planBytes },
    store: store.memory(),
    readers: readers?.memory ?? { heapBytes: 0, cacheBytes: 0 },
    server: database.serverMemory(),
  };
}

/** The maximum number of readers, at one per core. Any more would only wait for memory. */
const READERS_MAX = 16;

/** Returns the readers for long-running queries; undefined if no threads can be started. */
function queryReaders(
  { performance, server, storage }: Config,
  { clock, disk, log, readers, version }: DatabaseParts,
  {
    activity,
    catalog,
    directory,
    limits,
    memoryGate,
    opened,
    store,
  }: Pick<SqlEnvironment, "activity" | "catalog" | "limits" | "memoryGate"> & {
    directory: DataDirectory;
    opened: AsyncDisposableStack;
    store: LocalStore;
  },
): QueryReaders | undefined {
  if (readers === undefined) return undefined;
  const { dividing, takesAll } = readers;
  const inMemory = readerCountMax(performance.memory_bytes);
  const coreCount = Math.min(navigator.hardwareConcurrency, READERS_MAX, inMemory);
  const countMax = readers.countMax ?? (server.workers || coreCount);
  const spillOf = (number: number): ReaderSettings["spill"] => ({
    directory: directory.paths.tmp,
    prefix: `spill.reader${number}`,
    bytesMax: performance.query_temporary_bytes,
    minFreeBytes: storage.min_free_bytes,
  });
  const open = readers.open((number) => ({
    limits,
    memoryBytes: performance.memory_bytes,
    version,
    cacheBytes: Math.floor(storage.cache_bytes / (2 * countMax)),
    spill: spillOf(number),
  }));
  const cleanUp = (number: number): void => {
    new SpillSpace({ disk, log, ...spillOf(number) }).clear();
  };
  const { sharing } = store;
  const hasMemory = (): boolean =>
    !memoryGate.isClosed && activeBytesOf(activity) < limits.totalQueryMemoryBytes;
  const deps = { sharing, store, catalog, clock, cleanUp, hasMemory, log };
  const made = new QueryReaders({ open, countMax, takesAll, dividing, ...deps });
  // Readers keep files of the store open, so they are closed before the store.
  opened.defer(() => made.close());
  return made;
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

function userExports(
  { files, storage }: Config,
  { clock, disk, log }: DatabaseParts,
  {
    directory: { paths },
    ...layers
  }: Pick<SqlEnvironment, "blobs" | "catalog" | "jobs" | "store"> & { directory: DataDirectory },
): UserExports {
  return new UserExports({
    ...layers,
    clock,
    disk,
    log,
    directory: paths.exports,
    temporary: paths.tmp,
    keepMs: files.export_keep_hours * HOUR_MS,
    minFreeBytes: storage.min_free_bytes,
  });
}

function liveEngine(
  config: Config,
  { bugs, catalog, clock, log, random, store }: SqlEnvironment,
  { opened, sql }: { opened: AsyncDisposableStack; sql: SqlEngine },
): LocalLiveEngine {
  const onBug: OnBug = (error, what, fields) => bugs.contain(error, what, fields);
  const live = new LocalLiveEngine({
    store,
    sql,
    definitions: catalog,
    clock: containingClock(clock, onBug),
    random,
    log,
    onBug,
    limits: liveLimits(config),
  });
  opened.defer(() => live.shutdown());
  return live;
}

/** Returns the layers notified of commits: first live queries, then topics. */
function followers(
  config: Config,
  environment: Omit<SqlEnvironment, "store"> & { store: LocalStore },
  { opened, sql }: { opened: AsyncDisposableStack; sql: SqlEngine },
): Pick<Database, "topicConsumers" | "topicLogs" | "topics" | "webhooks"> & {
  live: LocalLiveEngine;
} {
  const live = liveEngine(config, environment, { opened, sql });
  const { groups, logs } = openTopics(config, environment, { opened, sql });
  const webhooks = openWebhooks(config, environment, { opened, topics: groups });
  return { live, topicLogs: logs, topics: groups, topicConsumers: groups, webhooks };
}

/**
 * Takes over the store's `onVisible` callback from the live engine. Commits are still reported to
 * the live engine first.
 */
function openTopics(
  config: Config,
  { bugs, catalog, clock, log, store }: Omit<SqlEnvironment, "store"> & { store: LocalStore },
  { opened, sql }: { opened: AsyncDisposableStack; sql: SqlEngine },
): { groups: TopicGroups; logs: LocalTopics } {
  const onBug: OnBug = (error, what, fields) => bugs.contain(error, what, fields);
  const seldomLog = new SeldomLog(log, clock);
  const deps = { catalog, clock: containingClock(clock, onBug), log: seldomLog, sql, store };
  const logs = new LocalTopics({ ...deps, catalog: new DeadLetterCatalog(catalog, store) }, onBug);
  opened.defer(() => logs.close());
  const { onVisible } = store;
  store.onVisible = (changed, visibleSeq) => {
    onVisible(changed, visibleSeq);
    logs.noteChanges(changed);
  };
  const groups = new TopicGroups({ ...deps, ...topicLimits(config), logs, onBug });
  opened.defer(() => groups.close());
  return { groups, logs };
}

/** Starts delivering messages to webhooks. */
function openWebhooks(
  config: Config,
  { bugs, catalog, clock, log, random }: SqlEnvironment,
  { opened, topics }: { opened: AsyncDisposableStack; topics: TopicConsumers },
): Webhooks {
  const onBug: OnBug = (error, what, fields) => bugs.contain(error, what, fields);
  const hosts = new OutboundHosts(config.security.webhook_hosts);
  const contained = containingClock(clock, onBug);
  const webhooks = new Webhooks(catalog, {
    clock: contained,
    random,
    log: new SeldomLog(log, clock),
    onBug,
    hosts,
    post: posting({ clock: contained, hosts }),
    topics,
    ...topicLimits(config),
  });
  opened.defer(() => webhooks.close());
  return webhooks;
}

function liveAccess(live: LocalLiveEngine): LiveAccess {
  return {
    rows: () => live.subscriptions(),
    match: (plan) => live.match(plan),
    matchResult: (fingerprint) => live.matchResult(fingerprint),
    kill: (liveId) => live.kill(liveId),
    tableChanged: (tableId) => live.tableChanged(tableId),
    viewChanged: () => live.viewChanged(),
  };
}

/** Ends backups, restores and erasures before the data that they use is closed. */
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
    opened,
  }: Pick<LowerLayers, "catalog" | "jwtSecret"> & {
    audit: AuditLog;
    bugs: Bugs;
    opened: AsyncDisposableStack;
  },
): Promise<Auth> {
  const settings = authSettingsFrom(config, jwtSecret);
  const onBug: OnBug = (error, what, fields) => bugs.contain(error, what, fields);
  const contained = containingClock(clock, onBug);
  const notices = new AccountNotices({ config, clock: contained, random, log, onBug });
  opened.defer(() => notices.close());
  const auth = new Auth({
    catalog,
    clock,
    random,
    log,
    settings,
    // The audit log itself reports failed writes. A bug in it must not make the login fail.
    onAudit: (event) => {
      audit.note(event).catch((error: unknown) => bugs.contain(error, "an entry of the audit log"));
    },
    onNotice: (notice) => notices.add(notice),
  });
  await auth.start();
  return auth;
}
