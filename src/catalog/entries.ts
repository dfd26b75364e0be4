/**
 * The entries of the catalog, as plain values. An entry is never changed in place: every definition
 * statement makes a new entry and raises the catalog version, so a reader may keep an entry for the
 * duration of a statement.
 */
import type { DataType, EnumLabel, Value } from "../types/mod.ts";

export type TableKind = "user" | "shared" | "stream";

export type AccessLevel = "PUBLIC" | "PRIVATE" | "RESTRICTED" | "DBA";

export type Role = "user" | "service" | "dba" | "system";

export interface NamespaceEntry {
  readonly name: string;
  /** The user id of the owner. */
  readonly owner: string | undefined;
  readonly options: Readonly<Record<string, string | number | boolean>>;
  /** The text of COMMENT ON; absent if there is none. */
  readonly comment?: string | undefined;
  readonly createdAtMs: number;
}

export interface ColumnEntry {
  readonly columnId: number;
  readonly name: string;
  readonly type: DataType;
  readonly notNull: boolean;
  /** DEFAULT as SQL text; absent if the column has no DEFAULT. */
  readonly defaultSql?: string;
  /** True for GENERATED ALWAYS, which refuses an explicit value. */
  readonly generatedAlways: boolean;
  /**
   * Present if the column is an identity column, whose numbers come from a sequence. Its
   * `defaultSql` is the call of nextval.
   */
  readonly identity?: "always" | "by default";
  /**
   * Whether the column is the hidden key of a table without a primary key; see `declared_keys.ts`.
   */
  readonly isHidden?: true;
  /** The expression of GENERATED ALWAYS AS (…) STORED as SQL text with column names. */
  readonly generatedSql?: string;
  /** The column's value in rows that were written before it was added. */
  readonly missing: Value;
  /** The text of COMMENT ON; absent if there is none. */
  readonly comment?: string | undefined;
}

export interface CheckEntry {
  readonly name: string;
  /** The condition as SQL text with column names. It is rewritten when a column is renamed. */
  readonly sql: string;
  /** The text of COMMENT ON; absent if there is none. */
  readonly comment?: string | undefined;
}

/** The state of an index: see `IndexState` in `storage/`. Only a ready one may be read. */
export type IndexEntryState = "building" | "checking" | "ready";

/** A condition over the columns of a table. */
export interface IndexCondition {
  /** The SQL text with unqualified column names. It is rewritten when a column is renamed. */
  readonly sql: string;
  /** The ids of the columns that the condition reads. */
  readonly reads: readonly number[];
}

/** An immutable expression over the columns of a table. */
export interface IndexExpression extends IndexCondition {
  /** The id of the expression. It comes from the counter of the column ids, so no column has it. */
  readonly columnId: number;
  readonly type: DataType;
}

/**
 * A secondary index or a UNIQUE constraint, which is also an index. An index is sorted in ascending
 * order by every column, with NULL last, and can be read backwards.
 */
export interface IndexEntry {
  /**
   * The id of the index. It comes from the counter of the column ids and is never reused within the
   * table.
   */
  readonly indexId: number;
  /** Unique among the indexes, constraints and keys of the namespace. */
  readonly name: string;
  /**
   * The ids of the key parts, in key order. Each is the id of a column or of one of `expressions`.
   */
  readonly columnIds: readonly number[];
  /** The parts of the key that are expressions. Absent if all are columns. */
  readonly expressions?: readonly IndexExpression[];
  readonly isUnique: boolean;
  /** Whether the index was defined as a UNIQUE constraint. */
  readonly isConstraint: boolean;
  /** Whether the index is the primary key of a table that was created without a primary key. */
  readonly isPrimary?: true;
  /** The columns that became NOT NULL with this primary key, until its build has succeeded. */
  readonly madeNotNull?: readonly number[];
  /** Only rows that meet this condition are in the index. Absent for all rows. */
  readonly where?: IndexCondition;
  readonly state: IndexEntryState;
  /**
   * The seq of the definition that began to refuse duplicates; absent if the table was created with
   * it.
   */
  readonly enforcedSeq?: number;
  /** The text of COMMENT ON; absent if there is none. */
  readonly comment?: string | undefined;
}

export type OnDeleteAction = "cascade" | "no action" | "restrict" | "set default" | "set null";

/** A FOREIGN KEY. */
export interface ForeignKeyEntry {
  readonly name: string;
  /** The ids of the referencing columns. */
  readonly columnIds: readonly number[];
  /** The referenced table. The key refers to its primary key or to a unique index that is ready. */
  readonly tableId: number;
  /** The ids of the referenced columns, one for each of `columnIds`. */
  readonly referencedIds: readonly number[];
  readonly onDelete: OnDeleteAction;
  /**
   * The action ON UPDATE. It has no effect on a reference to the primary key, which never changes.
   */
  readonly onUpdate: OnDeleteAction;
  /** Whether MATCH FULL applies: the columns must be all NULL or all not NULL. */
  readonly isFull: boolean;
  readonly isDeferrable: boolean;
  /**
   * Whether the constraint is checked at the commit by default. SET CONSTRAINTS may override this.
   */
  readonly isDeferred: boolean;
  /** Whether the rows that existed before the constraint are known to satisfy it. */
  readonly isValidated: boolean;
  /** The position in commit order from which the constraint is in force. */
  readonly sinceSeq: number;
  /** The text of COMMENT ON; absent if there is none. */
  readonly comment?: string | undefined;
}

export interface TableOptions {
  /** The policy's text in the definition, e.g. "rows:1000,interval:60". */
  readonly flushPolicy?: string;
  readonly accessLevel?: AccessLevel;
  readonly storageId?: string;
  readonly ttlSeconds?: number;
  readonly deletedRetentionHours?: number;
  readonly compression?: "auto" | "none" | "zstd";
}

/**
 * A directory beside the data directory. Its members are documented as `ListedStorage` in
 * `storage/`; this adds its name and the location of tables in it.
 */
export interface StorageEntry {
  readonly storageId: string;
  readonly name: string;
  readonly description?: string;
  /** An absolute path; it never changes. */
  readonly root: string;
  /**
   * The key in the directory's marker file, so that no other directory is mistaken for it; "" until
   * the marker is written.
   */
  readonly key: string;
  readonly sharedTemplate: string;
  readonly userTemplate: string;
  readonly createdAtMs: number;
  readonly updatedAtMs: number;
}

export interface TableEntry {
  readonly tableId: number;
  readonly namespace: string;
  readonly name: string;
  readonly kind: TableKind;
  /** The columns in declared order, without dropped columns. */
  readonly columns: readonly ColumnEntry[];
  /** The ids of the key columns, in key order. */
  readonly primaryKey: readonly number[];
  /** The name that CONSTRAINT gave the key; `keyNameOf` returns the default name. */
  readonly keyName?: string;
  /** The comment on the primary key; absent without a comment. */
  readonly keyComment?: string | undefined;
  readonly checks: readonly CheckEntry[];
  readonly foreignKeys?: readonly ForeignKeyEntry[];
  /**
   * Secondary indexes and UNIQUE constraints, in the order of definition. Absent if the table has
   * no index.
   */
  readonly indexes?: readonly IndexEntry[];
  readonly options: TableOptions;
  /**
   * The directory of the table's segments within its storage; absent in the data directory. Fixed
   * at creation.
   */
  readonly storageDirectory?: string;
  /**
   * For a STREAM table whose TTL was changed: rows up to this seq had expired by then, and stay
   * expired.
   */
  readonly expiredSeq?: number;
  /** The text of COMMENT ON; absent if there is none. */
  readonly comment?: string | undefined;
  readonly schemaVersion: number;
  /** The next column id, so that a dropped id is never reused. */
  readonly nextColumnId: number;
  readonly createdBy: string;
  readonly createdAtMs: number;
  readonly updatedAtMs: number;
}

/**
 * A view: a query with a name. Its text uses the names that tables and columns had when the view
 * was created. Columns added to a table later are not in the view.
 */
export interface ViewEntry {
  /** Unique among tables and views. */
  readonly viewId: number;
  readonly namespace: string;
  readonly name: string;
  /** The query as written by the user. */
  readonly sql: string;
  /** The namespace of unqualified names in the text. */
  readonly searchNamespace: string;
  readonly columnNames: readonly string[];
  readonly tables: readonly ViewTable[];
  readonly views: readonly ViewOfView[];
  /** The text of COMMENT ON; absent if there is none. */
  readonly comment?: string | undefined;
  readonly createdBy: string;
  readonly createdAtMs: number;
  readonly updatedAtMs: number;
}

/** A table that a view's text refers to. */
export interface ViewTable {
  readonly tableId: number;
  /** The name of the table in the view's text; absent as long as the table has that name. */
  readonly renamedFrom?: string;
  /** All columns of the table at that time, in order. */
  readonly columns: readonly { readonly columnId: number; readonly name: string }[];
  /** The ids of columns that the view needs. */
  readonly used: readonly number[];
}

/** Another view that a view's text refers to, and its columns at that time. */
interface ViewOfView {
  readonly viewId: number;
  readonly columnNames: readonly string[];
}

/** A sequence. Its numbers are decimal strings, because JSON numbers cannot represent 64 bits. */
export interface SequenceEntry {
  /** Unique among tables, views, topics and sequences. */
  readonly sequenceId: number;
  readonly namespace: string;
  readonly name: string;
  readonly type: "smallint" | "int" | "bigint";
  readonly increment: string;
  readonly minimum: string;
  readonly maximum: string;
  readonly start: string;
  readonly cycles: boolean;
  /** The minimum count of numbers that are reserved at a time (CACHE). */
  readonly cache: number;
  /** The column that owns the sequence. Dropping the column drops the sequence. */
  readonly ownedBy?: SequenceOwner;
  /** The text of COMMENT ON; absent if there is none. */
  readonly comment?: string | undefined;
  readonly createdBy: string;
  readonly createdAtMs: number;
  readonly updatedAtMs: number;
}

/** An enum type. Its values on disk are the positions of its labels. */
export interface TypeEntry {
  /** Unique among tables, views, topics, sequences and types. */
  readonly typeId: number;
  readonly namespace: string;
  readonly name: string;
  /** The labels in their order. */
  readonly labels: readonly EnumLabel[];
  /** The text of COMMENT ON; absent if there is none. */
  readonly comment?: string | undefined;
  readonly createdBy: string;
  readonly createdAtMs: number;
  readonly updatedAtMs: number;
}

export interface SequenceOwner {
  readonly tableId: number;
  readonly columnId: number;
}

/** The kind of change that produces a message. */
export type TopicOperation = "insert" | "update" | "delete";

/**
 * The contents of a message:
 *
 * - key: the columns of the primary key.
 * - full: the row; for a delete, its last values.
 * - diff: the columns of the primary key, and the old and new values of changed columns.
 */
export type TopicPayload = "key" | "full" | "diff";

/** One operation on one table whose changes become messages of a topic. */
export interface TopicSource {
  /** Unique within the topic. */
  readonly sourceId: number;
  readonly tableId: number;
  readonly operation: TopicOperation;
  /**
   * A condition as SQL text with column names, evaluated on the new row, or for a delete on the
   * last values. Rewritten when a column is renamed. If absent, every change matches.
   */
  readonly where?: string;
  readonly payload: TopicPayload;
  /** The seq of the definition that added the source, exclusive: later changes become messages. */
  readonly fromSeq: number;
  /**
   * The seq of the definition that dropped the source, inclusive. Absent as long as it is in force.
   */
  readonly toSeq?: number;
}

/** The delivery of a topic's messages to a server over HTTP. */
export interface WebhookEntry {
  /**
   * The seq of the webhook's definition, so never reused: its position in the topic is stored under
   * it.
   */
  readonly webhookId: number;
  /** Unique among the webhooks of all topics. */
  readonly name: string;
  readonly url: string;
  /**
   * The key for signing requests. Outside the catalog only its presence is visible, except to the
   * part that signs. If absent, requests are not signed.
   */
  readonly secret?: string;
  /** True if a message waits until earlier messages with its key are delivered. */
  readonly isOrdered: boolean;
  /** "created": messages committed since its creation; "earliest": all that the topic keeps. */
  readonly start: "created" | "earliest";
  /** The time that the receiver may take to answer a request, in seconds. */
  readonly timeoutSecs: number;
  /** The number of concurrent requests. */
  readonly concurrency: number;
  readonly createdBy: string;
  readonly createdAtMs: number;
}

/** A topic: a named position in the changes of its source tables. */
export interface TopicEntry {
  /** Unique among tables, views and topics. */
  readonly topicId: number;
  readonly namespace: string;
  readonly name: string;
  /** The number of partitions, which is fixed at creation. */
  readonly partitions: number;
  readonly retentionHours: number;
  readonly retentionBytes: number;
  /**
   * After this many unsuccessful deliveries, a message is a dead letter. If absent, messages never
   * become dead letters.
   */
  readonly maxDeliveries?: number;
  /** The "namespace.name" of the dead-letter topic. */
  readonly deadLetter?: string;
  readonly createdSeq: number;
  /**
   * Changes up to this seq are no longer delivered, because of CLEAR TOPIC. They keep their
   * offsets.
   */
  readonly clearedSeq: number;
  /**
   * The sources, including dropped ones as long as the topic has messages from them. No two sources
   * in force have the same table and operation.
   */
  readonly sources: readonly TopicSource[];
  /** The next source id, so that a dropped id is never reused. */
  readonly nextSourceId: number;
  /** The webhooks in order of creation; absent if the topic has no webhooks. */
  readonly webhooks?: readonly WebhookEntry[];
  readonly createdBy: string;
  readonly createdAtMs: number;
  readonly updatedAtMs: number;
}

export interface UserEntry {
  /** The login name, which is also the id. */
  readonly userId: string;
  readonly role: Role;
  readonly email: string | undefined;
  readonly authType: "password" | "oauth" | "internal";
  /**
   * The argon2id hash; absent if no password was ever set. It leaves the catalog only for
   * authentication.
   */
  readonly passwordHash: string | undefined;
  /** A number that every event that ends all of the user's tokens increments. */
  readonly tokenVersion: number;
  /** JSON text of the OAuth link. */
  readonly authData?: string | undefined;
  readonly lastLoginAtMs: number | undefined;
  /** The last use of a token of the user. Delayed by a minute, or more with very many users. */
  readonly lastSeenAtMs?: number;
  readonly createdAtMs: number;
  readonly updatedAtMs: number;
  /** The time of DROP USER. */
  readonly deletedAtMs: number | undefined;
  /**
   * The time after which a dropped account's data is erased; absent before the drop and after the
   * erasure.
   */
  readonly eraseAfterMs?: number | undefined;
}

/** A kind of access that the scopes of a service token list. `write` includes `read`. */
export type TokenRight = "read" | "write" | "define" | "act";

/** A token of a program that acts as a user. */
export interface ServiceTokenEntry {
  readonly name: string;
  readonly userId: string;
  /** The SHA-256 of the secret in base64url. */
  readonly secretHash: string;
  /** What the token may do of what its user may do; absent for everything. */
  readonly rights?: readonly TokenRight[];
  /** The namespaces whose objects the token may use; absent for all. */
  readonly namespaces?: readonly string[];
  readonly expiresAtMs?: number;
  readonly createdBy: string;
  readonly createdAtMs: number;
  /** The last use. Delayed by a minute, or more with very many users. */
  readonly lastUsedAtMs?: number;
}

/** A code that permits a number of people to sign up. */
export interface InvitationEntry {
  readonly name: string;
  /** The SHA-256 of the code in base64url. */
  readonly secretHash: string;
  /** The number of accounts that the code permits; absent for any number. */
  readonly usesMax?: number;
  readonly usedCount: number;
  readonly expiresAtMs?: number;
  readonly createdBy: string;
  readonly createdAtMs: number;
}

/** A dropped account whose erasure is pending. */
export interface Erasure {
  readonly accountId: number;
  readonly userId: string;
  /** The number that owns the account's rows. */
  readonly owner: number;
  readonly eraseAfterMs: number;
}

/** The location of the bytes of a FILE cell, and the row that must still refer to it. */
export interface FileEntry {
  readonly fileId: string;
  readonly tableId: number;
  readonly owner: number;
  readonly columnId: number;
  /** The primary key of the row, in the format of the layer that lists the file. */
  readonly keyJson: string;
  readonly sub: string;
  readonly storedName: string;
  readonly name: string;
  readonly mime: string;
  readonly size: number;
  readonly sha256: string;
  readonly createdAtMs: number;
}

/** Selects a part of the file list. */
export type FilesOf = { readonly tableId: number } | { readonly owner: number };
