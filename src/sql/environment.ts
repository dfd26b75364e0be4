/**
 * What the SQL layer is given once, at start: the layers below it and the limits it keeps.
 */
import type { Auth } from "../auth/mod.ts";
import type { Clock } from "../base/clock.ts";
import type { Log } from "../base/log.ts";
import type { Random } from "../base/random.ts";
import type { Catalog, TableEntry } from "../catalog/mod.ts";
import type { BlobStore, Job, JobList, Store, TableDefinition } from "../storage/mod.ts";

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
  readonly queryMemoryBytes: number;
  /** A request that took as long or longer is logged; 0 is off. */
  readonly slowQueryMs: number;
  /** Files in one sub-folder of a table. */
  readonly filesPerFolderMax: number;
}

/** One row of `system.settings`. */
export interface SettingRow {
  readonly name: string;
  readonly value: string;
  readonly defaultValue: string | undefined;
  readonly source: string;
  readonly category: string;
  readonly description: string;
}

/** One row of `system.live`, from the layer above. */
export interface LiveRow {
  readonly liveId: string;
  readonly connectionId: string;
  readonly subscriptionId: string;
  readonly tableId: number;
  readonly userId: string;
  readonly query: string;
  readonly status: string;
  readonly changes: number;
  readonly lastSeq: number | undefined;
  readonly createdAtMs: number;
  readonly lastUpdateMs: number | undefined;
}

/** What the layer above lets SQL ask and do. */
export interface LiveAccess {
  rows(): readonly LiveRow[];
  /** Returns false when there is none. */
  kill(liveId: string): boolean;
  /** A definition changed or is gone. */
  tableChanged(tableId: number): void;
}

/** What BACKUP and RESTORE begin. Each returns its job, or the same one that is already open. */
export interface BackupAccess {
  /** @throws {DatabaseError} INVALID_OPTION if the path may not be used. */
  backUp(target: string, createdBy: string): BegunJob;
  restore(source: string, createdBy: string): BegunJob;
}

export interface BegunJob {
  readonly job: Job;
  readonly isNew: boolean;
}

export interface SqlEnvironment {
  readonly catalog: Catalog;
  readonly store: Store;
  readonly blobs: BlobStore;
  readonly jobs: JobList;
  readonly backups: BackupAccess;
  readonly auth: Auth;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Log;
  readonly limits: SqlLimits;
  readonly settings: readonly SettingRow[];
  readonly version: string;
  /** Asked at each use: the live engine is made after this layer. */
  readonly live: () => LiveAccess;
  /** How storage sees a table; the flush and history defaults of the configuration are in it. */
  readonly definitionOf: (table: TableEntry) => TableDefinition;
}
