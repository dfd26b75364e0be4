/**
 * The catalog, as the layers above see it: names and rules, small, transactional, rarely written.
 *
 * Reads are answered from memory, but for the list of uploaded files. A write returns when its
 * SQLite transaction is durable. Those of definitions (namespaces, tables, views) then raise
 * `version`, which plan caches compare; those of users, files and storages do not.
 * `catalog_database.ts` implements this.
 */
import type { Seq } from "../base/seq.ts";
import type {
  Erasure,
  FileEntry,
  FilesOf,
  NamespaceEntry,
  Role,
  StorageEntry,
  TableEntry,
  UserEntry,
  ViewEntry,
} from "./entries.ts";

export interface NewUser {
  readonly userId: string;
  readonly role: Role;
  readonly email?: string;
  readonly authType: "password" | "oauth" | "internal";
  readonly passwordHash?: string;
  /** JSON text of the OAuth link. */
  readonly authData?: string;
}

/** What ALTER USER changes; absent fields stay. Changing password or role raises tokenVersion. */
export interface UserChange {
  readonly role?: Role;
  readonly email?: string;
  readonly passwordHash?: string;
  readonly tokenVersion?: number;
  readonly lastLoginAtMs?: number;
}

export interface SetupUsers {
  readonly rootPasswordHash: string;
  readonly dba: NewUser;
}

export interface Catalog {
  /** Raised by every definition: a change of namespaces, tables or views. */
  readonly version: number;

  namespace(name: string): NamespaceEntry | undefined;
  namespaces(): readonly NamespaceEntry[];
  /** @throws {DatabaseError} ALREADY_EXISTS */
  createNamespace(entry: NamespaceEntry): void;
  /**
   * The namespace must hold no table and no view.
   * @throws {DatabaseError} NAMESPACE_NOT_FOUND, DEPENDENT_OBJECTS
   */
  dropNamespace(name: string): void;
  changeNamespace(entry: NamespaceEntry): void;

  table(namespace: string, name: string): TableEntry | undefined;
  tableById(tableId: number): TableEntry | undefined;
  /** Ordered by namespace and name. */
  tables(): readonly TableEntry[];
  nextTableId(): number;
  /**
   * `seq` is the position of the definition in commit order.
   * @throws {DatabaseError} ALREADY_EXISTS
   */
  createTable(entry: TableEntry, seq: Seq): void;
  /**
   * Replaces the entry with the same tableId; earlier schema versions stay readable. Goes together
   * with the removal of `views`, which need what is no longer there.
   */
  changeTable(entry: TableEntry, seq: Seq, views?: readonly ViewEntry[]): void;
  /**
   * With all that it lists of the table: its segments in the manifest, and its files, but for those
   * that are too many for one transaction. They are left to `removeFiles`.
   */
  dropTable(tableId: number, seq: Seq, views?: readonly ViewEntry[]): void;
  /** Every version of a table's schema, ascending. */
  tableVersions(tableId: number): readonly TableEntry[];
  /** A table as it was at a position in commit order; undefined before it was created. */
  tableAt(tableId: number, seq: Seq): TableEntry | undefined;
  /** Where in commit order the last table of a name was dropped; 0 when none ever was. */
  tableDroppedSeq(namespace: string, name: string): number;
  /** Where in commit order the ACCESS_LEVEL of a table last let more people read; 0 for never. */
  tableOpenedSeq(tableId: number): number;

  view(namespace: string, name: string): ViewEntry | undefined;
  /** Ordered by namespace and name. */
  views(): readonly ViewEntry[];
  /** Its id comes from `nextTableId`. @throws {DatabaseError} ALREADY_EXISTS */
  createView(entry: ViewEntry): void;
  /** Replaces the entry with the same viewId. */
  changeView(entry: ViewEntry): void;
  /** All of them, or none. */
  dropViews(entries: readonly ViewEntry[]): void;

  /** Undefined also for `local`, which is the data directory. */
  storage(storageId: string): StorageEntry | undefined;
  /** Ordered by id, without `local`. */
  storages(): readonly StorageEntry[];
  /** @throws {DatabaseError} ALREADY_EXISTS */
  createStorage(entry: StorageEntry): void;
  /** Replaces the entry with the same id. */
  changeStorage(entry: StorageEntry): void;
  /** No table is in it any more. */
  dropStorage(storageId: string): void;

  /**
   * Grows with every change of an account, of the numbers that own rows, and of what is revoked:
   * what was found out about a token holds for as long as it stays the same.
   */
  readonly accessVersion: number;

  /** Undropped users only. */
  user(userId: string): UserEntry | undefined;
  /** Dropped ones included, ordered by id. */
  users(): readonly UserEntry[];
  /** Whether the newest account of this name was dropped, so that the name is nobody. */
  wasDropped(userId: string): boolean;
  /**
   * Where in commit order the last owner of rows of this name was dropped; 0 when none ever was.
   */
  userDroppedSeq(userId: string): number;
  /** @throws {DatabaseError} ALREADY_EXISTS */
  createUser(user: NewUser): UserEntry;
  /** @throws {DatabaseError} USER_NOT_FOUND */
  changeUser(userId: string, change: UserChange): UserEntry;
  /** When users were last seen, in Unix milliseconds; whoever is dropped by now is passed over. */
  noteSeen(times: ReadonlyMap<string, number>): void;
  /**
   * Its rows are erased after a time, or from now on. Its namespaces are nobody's, so that a later
   * account of the name does not get them. @throws {DatabaseError} USER_NOT_FOUND
   */
  dropUser(userId: string, options?: { erasesNow?: boolean }): void;
  /** Of dropped accounts, oldest first. */
  erasures(): readonly Erasure[];
  /** The dropped accounts of a name are to be erased from now on. */
  hastenErasure(userId: string): void;
  /** Nothing is left of what a dropped account owned, nor of who it was but its name. */
  noteErased(accountId: number): void;
  /** Root's password and the first DBA in one transaction. */
  setUp(users: SetupUsers): UserEntry;
  /**
   * The number that owns a user's rows, for ever. A name used again after DROP USER gets a new one.
   * @returns undefined when the id has none yet and `create` is not set.
   */
  ownerNumber(userId: string, options?: { create?: boolean }): number | undefined;
  /** The user id behind an owner number. */
  ownerName(owner: number): string | undefined;

  /** Whether a token id or session id was revoked. */
  isRevoked(id: string): boolean;
  /** When an id was first revoked, in Unix milliseconds; undefined when it was not. */
  revokedAtMs(id: string): number | undefined;
  /** Remembers a revoked token or session id until `expiresAtMs`. */
  revoke(id: string, expiresAtMs: number): void;

  file(fileId: string): FileEntry | undefined;
  /** All of them at once, for who cannot wait between portions: 20 µs each. */
  files(): readonly FileEntry[];
  /** How many files are listed. */
  readonly fileCount: number;
  /**
   * The list in portions that are read as they are asked for, by id: others may run in between, and
   * change what is still to come.
   */
  filePortions(of?: FilesOf): Iterable<readonly FileEntry[]>;
  addFiles(entries: readonly FileEntry[]): void;
  removeFiles(fileIds: readonly string[]): void;

  close(): void;
}
