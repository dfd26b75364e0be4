/**
 * The entries of the catalog, as plain values. An entry is never changed in place: every definition
 * statement creates a new entry and raises the catalog version, so a reader may keep an entry for
 * the duration of a statement.
 */
import type {
  DataType,
  DomainRules,
  DomainType,
  EnumLabel,
  TermKind,
  Value,
} from "../types/mod.ts";

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
  /** The type of the values. For a column with a domain, it is the domain's base type. */
  readonly type: DataType;
  /** The domain whose conditions every value meets; absent if the column has none. */
  readonly domain?: DomainType;
  readonly notNull: boolean;
  /** The DEFAULT as SQL text; absent if the column has none. */
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

/**
 * The state of an index, as in `IndexState` of `storage/`. Only an index that is ready may be read.
 */
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
  /**
   * The id of the expression. It comes from the same counter as column ids, so it differs from all
   * of them.
   */
  readonly columnId: number;
  readonly type: DataType;
  /** Set in an inverted index, all parts of which are expressions: the kind of its terms. */
  readonly terms?: TermKind;
}

/**
 * A secondary index or a UNIQUE constraint, which is also an index. An index is sorted in ascending
 * order by every column, with NULL last, and can be read backwards. An inverted index lists the
 * rows that have each term of its parts instead.
 */
export interface IndexEntry {
  /**
   * The id of the index. It comes from the counter of the column ids and is never reused within the
   * table.
   */
  readonly indexId: number;
  /** The name, which is unique among the indexes, constraints and keys of the namespace. */
  readonly name: string;
  /**
   * The ids of the key parts, in key order. Each is the id of a column or of an entry of
   * `expressions`.
   */
  readonly columnIds: readonly number[];
  /** The parts of the key that are expressions; absent if all parts are columns. */
  readonly expressions?: readonly IndexExpression[];
  readonly isUnique: boolean;
  /** Whether the index was defined as a UNIQUE constraint. */
  readonly isConstraint: boolean;
  /** Whether the index is the primary key of a table that was created without a primary key. */
  readonly isPrimary?: true;
  /** The columns that this primary key made NOT NULL, until its build has succeeded. */
  readonly madeNotNull?: readonly number[];
  /** The condition that rows of the index satisfy; absent if the index contains all rows. */
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

/** A foreign key constraint. */
export interface ForeignKeyEntry {
  readonly name: string;
  /** The ids of the referencing columns. */
  readonly columnIds: readonly number[];
  /** The referenced table. The key refers to its primary key or to a unique index that is ready. */
  readonly tableId: number;
  /** The ids of the referenced columns, in the order of `columnIds`. */
  readonly referencedIds: readonly number[];
  readonly onDelete: OnDeleteAction;
  /**
   * The action of ON UPDATE. It has no effect on a reference to the primary key, which never
   * changes.
   */
  readonly onUpdate: OnDeleteAction;
  /** Whether MATCH FULL applies: either all columns are NULL or none is. */
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

/** The roles whose rights to rows depend on policies. Higher roles have all rows. */
export type PolicyRole = "user" | "service";

export type PolicyCommand = "all" | "select" | "insert" | "update" | "delete";

/**
 * A rule of a SHARED table of ACCESS_LEVEL 'RESTRICTED': the rows that its roles may read or write.
 * If a command has several policies, a row is permitted if at least one of them permits it. The
 * texts use the names that tables and columns had when they were written.
 */
export interface PolicyEntry {
  /** The name, which is unique among the policies of the table. */
  readonly name: string;
  readonly command: PolicyCommand;
  /** The roles to which the policy applies; absent for both roles. */
  readonly roles?: readonly PolicyRole[];
  /** The condition on stored rows, as SQL text; absent if the policy applies to new rows only. */
  readonly using?: string;
  /** The condition on new rows; absent if `using` applies to them, too. */
  readonly check?: string;
  /** The namespace of unqualified names in the texts. */
  readonly searchNamespace: string;
  /**
   * The table itself, followed by the tables that the texts read, with their names at that time.
   */
  readonly tables: readonly PolicyTable[];
  /** The user with whose rights the policy reads other tables. */
  readonly owner: string;
  readonly createdAtMs: number;
  readonly updatedAtMs: number;
}

/** A table that the texts of a policy refer to. */
export interface PolicyTable {
  readonly tableId: number;
  /** The names of the table in the texts. */
  readonly namespace: string;
  readonly name: string;
  /** All columns of the table at that time, in order. */
  readonly columns: readonly { readonly columnId: number; readonly name: string }[];
  /** The ids of the columns that the texts read. */
  readonly used: readonly number[];
}

export interface TableOptions {
  /** The flush policy as text, e.g. "rows:1000,interval:60". */
  readonly flushPolicy?: string;
  readonly accessLevel?: AccessLevel;
  readonly storageId?: string;
  readonly ttlSeconds?: number;
  readonly deletedRetentionHours?: number;
  readonly compression?: "auto" | "none" | "zstd";
}

/**
 * A directory beside the data directory. Most members are documented in `ListedStorage` of
 * `storage/`; the others are the name of the storage and the location of tables in it.
 */
export interface StorageEntry {
  readonly storageId: string;
  readonly name: string;
  readonly description?: string;
  /** An absolute path; it never changes. */
  readonly root: string;
  /**
   * The key in the marker file of the directory, by which the directory is recognised; "" until the
   * marker is written.
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
  /**
   * The name that CONSTRAINT gave to the key; without one, `keyNameOf` returns the default name.
   */
  readonly keyName?: string;
  /** The comment on the primary key; absent if there is none. */
  readonly keyComment?: string | undefined;
  readonly checks: readonly CheckEntry[];
  readonly foreignKeys?: readonly ForeignKeyEntry[];
  /** The policies in the order of their definition. Absent if the table has none. */
  readonly policies?: readonly PolicyEntry[];
  /**
   * Secondary indexes and UNIQUE constraints, in the order of definition. Absent if the table has
   * no index.
   */
  readonly indexes?: readonly IndexEntry[];
  readonly options: TableOptions;
  /**
   * The directory of the table's segments within its storage; absent if they are in the data
   * directory. It is fixed when the table is created.
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
  /** The next column id. Ids of dropped columns are never reused. */
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
  /** The id, which is unique among tables and views. */
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
  /** The seq of the newest definition; absent in an entry of an earlier version. */
  readonly changedSeq?: number;
}

/** A table to which the text of a view refers. */
export interface ViewTable {
  readonly tableId: number;
  /** The name of the table in the view's text; absent if it is still the name of the table. */
  readonly renamedFrom?: string;
  /** All columns that the table had at that time, in order. */
  readonly columns: readonly { readonly columnId: number; readonly name: string }[];
  /** The ids of columns that the view needs. */
  readonly used: readonly number[];
}

/** Another view to which the text of a view refers, with the columns that it had at that time. */
interface ViewOfView {
  readonly viewId: number;
  /** The name of the view in the text; absent as long as the view has that name. */
  readonly renamedFrom?: string;
  readonly columnNames: readonly string[];
}

/** A sequence. Its numbers are decimal strings, because JSON numbers cannot represent 64 bits. */
export interface SequenceEntry {
  /** The id, which is unique among tables, views, topics and sequences. */
  readonly sequenceId: number;
  readonly namespace: string;
  readonly name: string;
  readonly type: "smallint" | "int" | "bigint";
  readonly increment: string;
  readonly minimum: string;
  readonly maximum: string;
  readonly start: string;
  readonly cycles: boolean;
  /** The minimum number of numbers that are reserved at once (CACHE). */
  readonly cache: number;
  /** The column that owns the sequence. Dropping the column drops the sequence. */
  readonly ownedBy?: SequenceOwner;
  /** The text of COMMENT ON; absent if there is none. */
  readonly comment?: string | undefined;
  readonly createdBy: string;
  readonly createdAtMs: number;
  readonly updatedAtMs: number;
}

/** An enum type, whose values on disk are the positions of its labels, or a domain. */
export interface TypeEntry {
  /** The id, which is unique among tables, views, topics, sequences and types. */
  readonly typeId: number;
  readonly namespace: string;
  readonly name: string;
  /** The labels of an enum type in order. */
  readonly labels: readonly EnumLabel[];
  /** The rules of a domain; absent for other types. */
  readonly domain?: DomainRules;
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
  /** The id, which is unique within the topic. */
  readonly sourceId: number;
  readonly tableId: number;
  readonly operation: TopicOperation;
  /**
   * A condition as SQL text with column names, which is evaluated on the new row or, for a delete,
   * on the last values. It is rewritten when a column is renamed. If absent, every change matches.
   */
  readonly where?: string;
  readonly payload: TopicPayload;
  /**
   * The seq of the definition that added the source (exclusive): only later changes become
   * messages.
   */
  readonly fromSeq: number;
  /**
   * The seq of the definition that dropped the source (inclusive); absent while the source is in
   * force.
   */
  readonly toSeq?: number;
}

/** The delivery of a topic's messages to a server over HTTP. */
export interface WebhookEntry {
  /**
   * The seq of the webhook's definition, which is never reused. The webhook's position in the topic
   * is stored under this id.
   */
  readonly webhookId: number;
  /** The name, which is unique among the webhooks of all topics. */
  readonly name: string;
  readonly url: string;
  /**
   * The key for signing requests. Outside the catalog, only the component that signs can see it;
   * all others see only whether there is one. If it is absent, requests are not signed.
   */
  readonly secret?: string;
  /** True if a message waits until earlier messages with its key are delivered. */
  readonly isOrdered: boolean;
  /**
   * The start position: "created" means messages that are committed after the webhook's creation,
   * and "earliest" means all messages that the topic keeps.
   */
  readonly start: "created" | "earliest";
  /** The time within which the receiver has to respond to a request, in seconds. */
  readonly timeoutSecs: number;
  /** The maximum number of concurrent requests. */
  readonly concurrency: number;
  readonly createdBy: string;
  readonly createdAtMs: number;
}

/** A topic: a named position in the changes of its source tables. */
export interface TopicEntry {
  /** The id, which is unique among tables, views and topics. */
  readonly topicId: number;
  readonly namespace: string;
  readonly name: string;
  /** The number of partitions, which is fixed at creation. */
  readonly partitions: number;
  readonly retentionHours: number;
  readonly retentionBytes: number;
  /**
   * The number of unsuccessful deliveries after which a message becomes a dead letter. If absent,
   * messages never do.
   */
  readonly maxDeliveries?: number;
  /** The dead-letter topic, as "namespace.name". */
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
  /** The next source id. Ids of dropped sources are never reused. */
  readonly nextSourceId: number;
  /** The webhooks in order of creation; absent if the topic has no webhooks. */
  readonly webhooks?: readonly WebhookEntry[];
  readonly createdBy: string;
  readonly createdAtMs: number;
  readonly updatedAtMs: number;
}

export interface UserEntry {
  /** The id, which is also a login name. */
  readonly userId: string;
  /** An additional login name: that of a guest who has become a user. */
  readonly loginName?: string;
  readonly role: Role;
  readonly email: string | undefined;
  /** The time at which the user proved to receive mail at the address; absent if never. */
  readonly emailVerifiedAtMs?: number | undefined;
  /**
   * True if the user chose the address at sign-up and has not verified it since. Such an address
   * may belong to anybody. Absent if an administrator set the address.
   */
  readonly isEmailUnproven?: true | undefined;
  /** The JSON text of an object that administrators set. */
  readonly metadata?: string;
  readonly authType: "password" | "oauth" | "internal" | "guest";
  /** The argon2id hash; absent if no password was ever set. Only authentication reads it. */
  readonly passwordHash: string | undefined;
  /** The token version. Every event that ends all tokens of the user increments it. */
  readonly tokenVersion: number;
  /** The OAuth link as JSON text. */
  readonly authData?: string | undefined;
  readonly lastLoginAtMs: number | undefined;
  /**
   * The last time at which a token of the user was used. It is stored with a delay of a minute, or
   * more if there are very many users.
   */
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
  /** The rights of the user that the token also has; absent for all. */
  readonly rights?: readonly TokenRight[];
  /** The namespaces whose objects the token may use; absent for all. */
  readonly namespaces?: readonly string[];
  readonly expiresAtMs?: number;
  readonly createdBy: string;
  readonly createdAtMs: number;
  /**
   * The time of the last use, which is recorded with a delay of a minute, or more with very many
   * users.
   */
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
