/**
 * What the SQL layer is given once, at start: the layers below it, what those above it answer, and
 * the limits it keeps.
 */
import type { Auth } from "../../auth/mod.ts";
import type { Bugs } from "../../base/bugs.ts";
import type { Clock } from "../../base/clock.ts";
import type { Log } from "../../base/log.ts";
import type { Random } from "../../base/random.ts";
import type { LogLine } from "../../base/recent_log.ts";
import type { Catalog, TableEntry } from "../../catalog/mod.ts";
import type { BlobStore, JobList, Storages, Store, TableDefinition } from "../../storage/mod.ts";
import type { SpillSpace } from "../spill/mod.ts";
import type { Activity } from "./activity.ts";
import type { AuditLog } from "./audit_log.ts";
import type {
  BackupAccess,
  ConnectionAccess,
  LiveAccess,
  MetricSample,
  SettingRow,
} from "./layers_above.ts";
import type { StorageQuota } from "./storage_quota.ts";
import type { WriteGates } from "./write_gates.ts";

/** Bounds of requests and statements; 0 is off where it says so. */
export interface SqlLimits {
  readonly sqlBytesMax: number;
  readonly parametersMax: number;
  readonly parameterBytesMax: number;
  /** 0 is off. */
  readonly resultRowsMax: number;
  /** Default time of a request; 0 is off. */
  readonly timeoutMs: number;
  readonly timeoutMsMax: number;
  readonly requiresWhere: boolean;
  readonly transactionTimeoutMs: number;
  readonly transactionBytesMax: number;
  /** How long the answer to a request with a key is kept. */
  readonly idempotencyTtlMs: number;
  /** The largest total size, in bytes, of the kept answers of one user; 0 means no limit. */
  readonly idempotencyBytesMax: number;
  /** The largest total size, in bytes, of the rows and files of one user; 0 means no limit. */
  readonly storageBytesMax: number;
  readonly queryMemoryBytes: number;
  /** The memory of all statements together; long queries wait while it is exceeded. */
  readonly totalQueryMemoryBytes: number;
  /** A request that took as long or longer is logged; 0 is off. */
  readonly slowQueryMs: number;
  /** Files in one sub-folder of a table. */
  readonly filesPerFolderMax: number;
}

export interface SqlEnvironment {
  readonly catalog: Catalog;
  readonly store: Store;
  readonly blobs: BlobStore;
  readonly jobs: JobList;
  readonly backups: BackupAccess;
  readonly storages: Storages;
  readonly auth: Auth;
  readonly audit: AuditLog;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Log;
  /** Records every bug that ends a request. */
  readonly bugs: Bugs;
  /** The newest lines of the log, oldest first. */
  readonly logLines: () => readonly LogLine[];
  readonly limits: SqlLimits;
  /** Where statements put rows that do not fit their memory. */
  readonly spillSpace: SpillSpace;
  readonly settings: () => readonly SettingRow[];
  readonly version: string;
  /** This server's number in its cluster. */
  readonly nodeId: number;
  /** What runs and ran; one for each engine. */
  readonly activity: Activity;
  /** Of the tables; one for each engine. */
  readonly writeGates: WriteGates;
  /** Present if `limits.storage_bytes_per_user` is set. */
  readonly storageQuota: StorageQuota | undefined;
  /** Asked at each use: the live engine is made after this layer. */
  readonly live: () => LiveAccess;
  /** Asked at each use: the server is made last, and tests have none. */
  readonly connections: () => ConnectionAccess;
  /** Asked at each use, as the connections are. */
  readonly metrics: () => readonly MetricSample[];
  /** How storage sees a table; the flush and history defaults of the configuration are in it. */
  readonly definitionOf: (table: TableEntry) => TableDefinition;
}
