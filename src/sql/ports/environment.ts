/**
 * The dependencies that the SQL layer receives at startup: the layers below, the interfaces to the
 * layers above, and the limits of the SQL layer.
 */
import type { Auth } from "../../auth/mod.ts";
import type { Bugs } from "../../base/bugs.ts";
import type { Clock } from "../../base/clock.ts";
import type { Log } from "../../base/log.ts";
import type { Random } from "../../base/random.ts";
import type { LogLine } from "../../base/recent_log.ts";
import type { Catalog, TableEntry } from "../../catalog/mod.ts";
import type {
  BlobStore,
  HistoryStore,
  JobList,
  Storages,
  Store,
  TableDefinition,
} from "../../storage/mod.ts";
import type { Activity } from "../activity/activity.ts";
import type { MemoryGate } from "../admission/memory_gate.ts";
import type { StorageQuota } from "../admission/storage_quota.ts";
import type { WriteGates } from "../admission/write_gates.ts";
import type { AuditLog } from "../own_tables/audit_log.ts";
import type { SpillSpace } from "../spill/mod.ts";
import type {
  BackupAccess,
  ConnectionAccess,
  ExportAccess,
  LiveAccess,
  MemoryPart,
  MetricSample,
  SettingRow,
  TopicAccess,
  WebhookAccess,
} from "./ports.ts";

/** The limits for requests and statements. Where documented, 0 means no limit. */
export interface SqlLimits {
  readonly sqlBytesMax: number;
  readonly parametersMax: number;
  readonly parameterBytesMax: number;
  /** The maximum number of rows in the result of a statement; 0 means no limit. */
  readonly resultRowsMax: number;
  /** The default timeout of a request; 0 means no timeout. */
  readonly timeoutMs: number;
  readonly timeoutMsMax: number;
  readonly requiresWhere: boolean;
  readonly transactionTimeoutMs: number;
  readonly transactionBytesMax: number;
  /** The longest time that may pass between two requests of a transaction. */
  readonly transactionIdleMs: number;
  /** The maximum number of open transactions that span requests; 0 means no limit. */
  readonly transactionsMax: number;
  readonly transactionsPerUser: number;
  /** How long the response to a request with an idempotency key is stored. */
  readonly idempotencyTtlMs: number;
  /** The maximum total size in bytes of the responses stored for a user; 0 means no limit. */
  readonly idempotencyBytesMax: number;
  /** The maximum total size in bytes of a user's rows and files; 0 means no limit. */
  readonly storageBytesMax: number;
  readonly queryMemoryBytes: number;
  /**
   * The memory limit for all statements together. While their memory exceeds it, long queries
   * wait.
   */
  readonly totalQueryMemoryBytes: number;
  /** The limit for the estimated memory of all cached plans, in bytes. */
  readonly planBytes: number;
  /** Requests that take at least this long are logged; 0 disables the log. */
  readonly slowQueryMs: number;
  /** The maximum number of files in a sub-folder of a table's folder. */
  readonly filesPerFolderMax: number;
}

export interface SqlEnvironment {
  readonly catalog: Catalog;
  readonly store: Store;
  /** Provides row versions by their seqs. */
  readonly history: Pick<HistoryStore, "versions">;
  readonly blobs: BlobStore;
  readonly jobs: JobList;
  readonly backups: BackupAccess;
  readonly exports: ExportAccess;
  readonly storages: Storages;
  readonly auth: Auth;
  readonly audit: AuditLog;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Log;
  /** Records every bug that makes a request fail. */
  readonly bugs: Bugs;
  /** The newest lines of the server log, oldest first. */
  readonly logLines: () => readonly LogLine[];
  readonly limits: SqlLimits;
  /** Temporary disk space for rows that do not fit in the memory of their statement. */
  readonly spillSpace: SpillSpace;
  readonly settings: () => readonly SettingRow[];
  readonly version: string;
  /** The number of this server within its cluster. */
  readonly nodeId: number;
  /** The running and past requests. Each engine has one such object. */
  readonly activity: Activity;
  /** The write gates of the tables. Each engine has one such object. */
  readonly writeGates: WriteGates;
  /** The gate at which requests wait while memory is scarce. */
  readonly memoryGate: MemoryGate;
  /**
   * Enforces the storage quota of users; undefined unless `limits.storage_bytes_per_user` is set.
   */
  readonly storageQuota: StorageQuota | undefined;
  /**
   * Returns the live engine. This is a function because the live engine is created after the SQL
   * layer.
   */
  readonly live: () => LiveAccess;
  /**
   * Returns the topics layer. This is a function because the topics layer is created after the SQL
   * layer.
   */
  readonly topics: () => TopicAccess;
  /**
   * Returns the webhooks. This is a function because the webhooks are created after the SQL layer.
   */
  readonly webhooks: () => WebhookAccess;
  /**
   * Returns the connections. This is a function because the server is created last, and most tests
   * have no server.
   */
  readonly connections: () => ConnectionAccess;
  /** Returns the samples of all metrics. This is a function because the server is created last. */
  readonly metrics: () => readonly MetricSample[];
  /** Returns the parts of the process that use memory, each with its current size. */
  readonly memory: () => readonly MemoryPart[];
  /**
   * Returns the definition of a table for the storage layer, with defaults for flush and history
   * applied.
   */
  readonly definitionOf: (table: TableEntry) => TableDefinition;
}
