/**
 * What the layers above tell SQL and let it do: subscriptions, connections, backups, metrics and
 * settings. SQL says here what it asks; `database.ts` hands it what answers.
 */
import type { Job } from "../../storage/mod.ts";
import type { RestoreStatement } from "../parse/ast/ast.ts";
import type { LivePlan } from "./engine.ts";

/** One row of `system.settings`. */
export interface SettingRow {
  readonly name: string;
  readonly value: string;
  readonly defaultValue: string | undefined;
  readonly source: string;
  readonly category: string;
  readonly description: string;
}

/** What SHOW tells of a setting. */
export type ShownSetting = Pick<SettingRow, "name" | "value" | "category" | "description">;

/** One row of `system.live`, from the layer above. */
export interface LiveRow {
  readonly liveId: string;
  readonly connectionId: string;
  readonly subscriptionId: string;
  readonly tableId: number;
  readonly userId: string;
  readonly query: string;
  /** As the client gave them: undefined for none, null for live only. */
  readonly options: object | null | undefined;
  readonly status: string;
  readonly changes: number;
  readonly lastSeq: number | undefined;
  /** Everything up to here has been sent. */
  readonly position: number | undefined;
  /** How much older its position is than the newest commit that anyone can read. */
  readonly lagMs: number | undefined;
  /** Bytes that wait for the network in the queue of its connection. */
  readonly queuedBytes: number;
  /** Of the last minute, about. */
  readonly changesPerSecond: number;
  readonly createdAtMs: number;
  readonly lastUpdateMs: number | undefined;
}

/** Where a live query would stand among those that are open, for EXPLAIN SUBSCRIBE TO. */
export interface LiveMatch {
  /** Open subscriptions that would share its evaluation. */
  readonly subscriptions: number;
  /** Groups that follow its partition, itself included. */
  readonly groups: number;
  /** Those that every change is tested against. */
  readonly unindexedGroups: number;
  /** Those that a change with its value is tested against. */
  readonly testedGroups: number;
}

/** What the layer above lets SQL ask and do. */
export interface LiveAccess {
  rows(): readonly LiveRow[];
  match(plan: LivePlan): LiveMatch;
  /** Returns false when there is none. */
  kill(liveId: string): boolean;
  /** A definition changed or is gone. */
  tableChanged(tableId: number): void;
}

/** What BACKUP and RESTORE begin. Each returns its job, or the same one that is already open. */
export interface BackupAccess {
  /** @throws {DatabaseError} INVALID_OPTION if the path may not be used. */
  backUp(target: string, createdBy: string): BegunJob;
  /** @param options.to Absent: the moment of the backup. @throws {DatabaseError} likewise. */
  restore(source: string, options: { createdBy: string; to: RestoreStatement["to"] }): BegunJob;
}

export interface BegunJob {
  readonly job: Job;
  readonly isNew: boolean;
}

/** One row of `system.connections`: a socket, or a stream of events, of somebody who is known. */
export interface ConnectionRow {
  readonly connectionId: string;
  readonly userId: string;
  readonly role: string;
  readonly transport: "websocket" | "sse";
  readonly clientAddress: string;
  readonly serialization: string;
  readonly compression: string;
  readonly subscriptions: number;
  readonly bytesIn: number;
  readonly bytesOut: number;
  readonly queuedBytes: number;
  readonly openedAtMs: number;
  readonly lastSeenAtMs: number;
}

/** What the server lets SQL ask and do. */
export interface ConnectionAccess {
  rows(): readonly ConnectionRow[];
  /** Returns false when there is none. */
  kill(connectionId: string): boolean;
}

/** One number of `/metrics`, for `system.stats`. */
export interface MetricSample {
  /** With its labels, as it is exported. */
  readonly name: string;
  readonly value: string;
  readonly description: string | undefined;
}
