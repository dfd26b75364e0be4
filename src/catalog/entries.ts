/**
 * What the catalog holds, as plain values. An entry is never changed in place: every definition
 * statement makes a new entry and moves the catalog version, so a reader may keep one for the
 * length of a statement.
 */
import type { DataType, Value } from "../types/mod.ts";

export type TableKind = "user" | "shared" | "stream";

export type AccessLevel = "PUBLIC" | "PRIVATE" | "RESTRICTED" | "DBA";

export type Role = "user" | "service" | "dba" | "system";

export interface NamespaceEntry {
  readonly name: string;
  /** User id. */
  readonly owner: string | undefined;
  readonly options: Readonly<Record<string, string | number | boolean>>;
  readonly createdAtMs: number;
}

export interface ColumnEntry {
  readonly columnId: number;
  readonly name: string;
  readonly type: DataType;
  readonly notNull: boolean;
  /** DEFAULT as SQL text; absent for none. */
  readonly defaultSql?: string;
  /** GENERATED ALWAYS AS IDENTITY: an explicit value is refused. */
  readonly generatedAlways: boolean;
  /** What rows read that were written before the column was added. */
  readonly missing: Value;
}

export interface CheckEntry {
  readonly name: string;
  /** The condition as SQL text, columns by name. Rewritten when a column is renamed. */
  readonly sql: string;
}

export interface TableOptions {
  /** As given, e.g. "rows:1000,interval:60". */
  readonly flushPolicy?: string;
  readonly accessLevel?: AccessLevel;
  readonly storageId?: string;
  readonly ttlSeconds?: number;
  readonly deletedRetentionHours?: number;
  readonly compression?: "auto" | "none" | "zstd";
}

/**
 * A directory beside the data directory: documented as `ListedStorage` in `storage/`, with what
 * people call it and where in it tables go.
 */
export interface StorageEntry {
  readonly storageId: string;
  readonly name: string;
  readonly description?: string;
  /** An absolute path; it never changes. */
  readonly root: string;
  /** What the mark in the directory says, so that no other is taken for it; "" until it has one. */
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
  /** Declared order, dropped ones left out. */
  readonly columns: readonly ColumnEntry[];
  /** Column ids in key order. */
  readonly primaryKey: readonly number[];
  /** What CONSTRAINT called the key; `keyNameOf` knows what it is called without. */
  readonly keyName?: string;
  readonly checks: readonly CheckEntry[];
  readonly options: TableOptions;
  /**
   * Where in its storage its segments lie; absent in the data directory. Fixed when it is created.
   */
  readonly storageDirectory?: string;
  /**
   * Of a STREAM table whose TTL was changed: rows up to here had expired by then, and stay gone.
   */
  readonly expiredSeq?: number;
  readonly schemaVersion: number;
  /** The next column id, so that a dropped id is never reused. */
  readonly nextColumnId: number;
  readonly createdBy: string;
  readonly createdAtMs: number;
  readonly updatedAtMs: number;
}

/**
 * A view: a query under a name. Its text names tables and their columns as they were called when it
 * was made; columns that a table got later are not in it.
 */
export interface ViewEntry {
  /** Unique among tables and views. */
  readonly viewId: number;
  readonly namespace: string;
  readonly name: string;
  /** The query as it was written. */
  readonly sql: string;
  /** Where unqualified names in the text lead. */
  readonly searchNamespace: string;
  readonly columnNames: readonly string[];
  readonly tables: readonly ViewTable[];
  readonly views: readonly ViewOfView[];
  readonly createdBy: string;
  readonly createdAtMs: number;
  readonly updatedAtMs: number;
}

/** A table that the text of a view names. */
export interface ViewTable {
  readonly tableId: number;
  /** All of its columns at that time, in order. */
  readonly columns: readonly { readonly columnId: number; readonly name: string }[];
  /** Those that the view needs, by id. */
  readonly used: readonly number[];
}

/** Another view that the text of a view names, and its columns at that time. */
interface ViewOfView {
  readonly viewId: number;
  readonly columnNames: readonly string[];
}

export interface UserEntry {
  /** Login name and id. */
  readonly userId: string;
  readonly role: Role;
  readonly email: string | undefined;
  readonly authType: "password" | "oauth" | "internal";
  /** argon2id hash; absent when no password was ever set. Leaves the catalog only towards auth. */
  readonly passwordHash: string | undefined;
  /** Raised by everything that ends all tokens of the user. */
  readonly tokenVersion: number;
  /** JSON text of the OAuth link. */
  readonly authData?: string | undefined;
  readonly lastLoginAtMs: number | undefined;
  /** When a token of the user was last used: a minute behind, and more if very many are about. */
  readonly lastSeenAtMs?: number;
  readonly createdAtMs: number;
  readonly updatedAtMs: number;
  /** Set by DROP USER. */
  readonly deletedAtMs: number | undefined;
  /** From when on what a dropped account owned is erased; absent once it is, and before. */
  readonly eraseAfterMs?: number | undefined;
}

/** What is left of a dropped account, to be erased. */
export interface Erasure {
  readonly accountId: number;
  readonly userId: string;
  /** The number that owns its rows. */
  readonly owner: number;
  readonly eraseAfterMs: number;
}

/** Where the bytes of a FILE cell lie, and which row must still name it. */
export interface FileEntry {
  readonly fileId: string;
  readonly tableId: number;
  readonly owner: number;
  readonly columnId: number;
  /** Primary key of the row, as the layer that lists the file writes it. */
  readonly keyJson: string;
  readonly sub: string;
  readonly storedName: string;
  readonly name: string;
  readonly mime: string;
  readonly size: number;
  readonly sha256: string;
  readonly createdAtMs: number;
}

/** A part of the list of files. */
export type FilesOf = { readonly tableId: number } | { readonly owner: number };
