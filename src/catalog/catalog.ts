/**
 * Defines the interface of the catalog, which contains names and rules: small amounts of data,
 * written rarely and in transactions.
 *
 * Reads are served from memory, except for the list of uploaded files. A write returns when its
 * SQLite transaction is durable. A write to definitions (namespaces, tables, views …) also
 * increments `version`, which plan caches compare. A write to users, files or storages does not.
 * `catalog_database.ts` implements this interface.
 */
import type { Seq } from "../base/seq.ts";
import type { Whole } from "../types/mod.ts";
import type {
  Erasure,
  InvitationEntry,
  Role,
  ServiceTokenEntry,
  UserEntry,
} from "./account_entries.ts";
import type { DefinedType } from "./defined_types.ts";
import type {
  FileEntry,
  FilesOf,
  FunctionEntry,
  NamespaceEntry,
  SequenceEntry,
  StorageEntry,
  TableEntry,
  TypeEntry,
  ViewEntry,
} from "./entries.ts";
import type { SecretEntries } from "./named_secrets.ts";
import type { RevocationRecord } from "./revocations.ts";
import type { SequenceMark } from "./sequence_numbers.ts";
import type { TopicEntry } from "./topic_entries.ts";

export interface NewUser {
  readonly userId: string;
  readonly role: Role;
  readonly email?: string;
  /** See {@linkcode UserEntry.isEmailUnproven}. */
  readonly isEmailUnproven?: true;
  readonly authType: UserEntry["authType"];
  readonly passwordHash?: string;
  readonly metadata?: string;
  /** See {@linkcode UserEntry.authData}. */
  readonly authData?: string;
}

/**
 * The changes that ALTER USER makes. Absent fields stay unchanged. A change to the password or the
 * role also increments `tokenVersion`.
 */
export interface UserChange {
  readonly role?: Role;
  /** The new email address. It counts as unverified. */
  readonly email?: string;
  /** Whether the new `email` is unproven; see {@linkcode UserEntry.isEmailUnproven}. */
  readonly isEmailUnproven?: true;
  readonly emailVerifiedAtMs?: number;
  readonly loginName?: string;
  readonly authType?: UserEntry["authType"];
  readonly metadata?: string;
  /**
   * The provider links, in the form of {@linkcode UserEntry.authData}; null if the account has
   * none.
   */
  readonly authData?: string | null;
  readonly passwordHash?: string;
  readonly tokenVersion?: number;
  readonly lastLoginAtMs?: number;
}

export interface SetupUsers {
  readonly rootPasswordHash: string;
  readonly dba: NewUser;
}

export interface RevokeOptions {
  /** The id of the refresh token whose use retired the revoked token. */
  readonly successorId?: string;
  /**
   * Whether an id that is already revoked gets the time of this revocation in place of the earlier
   * one.
   */
  readonly isAnew?: boolean;
}

/** Changes to other definitions in the same transaction as a change to a table. */
export interface Dependents {
  /** The views to drop. */
  readonly views?: readonly ViewEntry[];
  /** The views to create. A view with an existing viewId replaces that view. */
  readonly changedViews?: readonly ViewEntry[];
  /** The topics to change. Each replaces the topic with the same topicId. */
  readonly topics?: readonly TopicEntry[];
  /** The sequences to create. A sequence with an existing sequenceId replaces that sequence. */
  readonly sequences?: readonly SequenceEntry[];
  readonly droppedSequences?: readonly SequenceEntry[];
  /** The numbers from which sequences continue, if a restore brings sequences back. */
  readonly marks?: readonly SequenceMark[];
}

/** A private copy of the catalog that a single transaction changes. */
export interface DraftedCatalog extends Catalog {
  /** Whether the draft differs from the catalog. */
  readonly hasChanges: boolean;
  /**
   * Whether the draft has changes other than those to temporary tables. Only such changes have to
   * be published.
   */
  readonly hasLastingChanges: boolean;
  /** Returns a copy of this draft. Later changes to the copy do not affect this draft. */
  copy(): DraftedCatalog;
  /**
   * Refuses to continue if another transaction has changed a definition since the draft was made.
   * @throws {DatabaseError} SERIALIZATION_FAILURE
   */
  requireCurrent(): void;
  /**
   * Applies the draft's changes to a copy of the current catalog, with the seq of the commit.
   *
   * @param adjusted Returns the form in which a table is to be published.
   * @throws {DatabaseError} SERIALIZATION_FAILURE
   */
  prepare(seq: Seq, adjusted: (table: TableEntry) => TableEntry): PreparedDraft;
}

/**
 * The definitions of a transaction, applied to the current catalog and ready to be made durable.
 */
export interface PreparedDraft {
  /** Returns a table in its state after the commit. */
  tableById(tableId: number): TableEntry | undefined;
  /**
   * Durably records that recovery must ignore rows with the seq of these definitions unless
   * `publish` succeeds.
   *
   * @throws {DatabaseError} LIMIT_EXCEEDED if too many publications have failed.
   */
  announce(): void;
  /**
   * Makes the definitions durable and visible, in this tick.
   *
   * @param lastSeq The last seq of the rows committed together with the definitions; absent if
   *   there are none.
   * @throws {DatabaseError}
   */
  publish(lastSeq?: Seq): void;
  /** Undoes `announce`. Must be called if no rows were written after all. */
  withdraw(): void;
}

/**
 * Manages the storages: directories outside the data directory in which tables may keep their
 * segments.
 */
export interface CatalogStorages {
  /**
   * Returns the storage with the given id. Returns undefined for `local`, which is the data
   * directory.
   */
  named(storageId: string): StorageEntry | undefined;
  /** Returns all storages except `local`, ordered by id. */
  all(): readonly StorageEntry[];
  /** Creates a storage. @throws {DatabaseError} ALREADY_EXISTS */
  create(entry: StorageEntry): void;
  /** Replaces the storage with the same id. */
  change(entry: StorageEntry): void;
  /** Drops a storage, which no table may use. */
  drop(storageId: string): void;
}

/** Manages the users, and the numbers that identify the owners of rows. */
export interface CatalogAccounts {
  /** Returns the user with the given id; undefined if the user was dropped. */
  user(userId: string): UserEntry | undefined;
  /** Returns all users, including dropped users, ordered by id. */
  users(): readonly UserEntry[];
  /**
   * Returns whether the newest account with the given name was dropped. If so, no current user has
   * the name.
   */
  wasDropped(userId: string): boolean;
  /**
   * Returns the seq at which the last account with the given name that owned rows was dropped; 0
   * if there was none.
   */
  droppedSeq(userId: string): number;
  /**
   * Returns the user with a login name, which is either a user id or a `loginName`, in Unicode
   * form NFC.
   */
  userByLogin(name: string): UserEntry | undefined;
  /**
   * Returns the user linked to a person at a provider. @param link The text of one provider link.
   */
  userByLink(link: string): UserEntry | undefined;
  /** Returns the users with an email address, whether or not it is verified. Case is ignored. */
  usersByEmail(email: string): readonly UserEntry[];
  /**
   * Returns the user whose login name people would confuse with `name`; undefined if there is
   * none.
   */
  userLike(name: string): UserEntry | undefined;
  /**
   * Creates a user.
   * @throws {DatabaseError} ALREADY_EXISTS if the name is taken, or if it looks like another
   *   user's name.
   */
  create(user: NewUser): UserEntry;
  /**
   * Changes the given properties of a user.
   * @throws {DatabaseError} USER_NOT_FOUND; ALREADY_EXISTS if a login name is taken.
   */
  change(userId: string, change: UserChange): UserEntry;
  /**
   * Records the times at which users were last seen, in Unix milliseconds. Skips users dropped in
   * the meantime.
   */
  noteSeen(times: ReadonlyMap<string, number>): void;
  /**
   * Drops a user. The user's rows are then erased, either immediately or after a delay. The user's
   * namespaces lose their owner, so that a later account with the same name does not own them.
   * @throws {DatabaseError} USER_NOT_FOUND
   */
  drop(userId: string, options?: { erasesNow?: boolean }): void;
  /** Returns the pending erasures of dropped accounts, oldest first. */
  erasures(): readonly Erasure[];
  /** Makes the erasure of all dropped accounts with the given name due immediately. */
  hastenErasure(userId: string): void;
  /**
   * Records that an account's rows have been erased. Removes all data of the account except its
   * name.
   */
  noteErased(accountId: number): void;
  /** Sets root's password and creates the first DBA, in a single transaction. */
  setUp(users: SetupUsers): UserEntry;
  /**
   * Returns the number that permanently identifies a user as the owner of rows. If a name is used
   * again after DROP USER, it gets a new number.
   * @returns Undefined if the user has no number yet and `create` is not set.
   */
  ownerNumber(userId: string, options?: { create?: boolean }): number | undefined;
  /** Returns the id of the user with the given owner number. */
  ownerName(owner: number): string | undefined;
}

/** Manages the revoked token ids and session ids. */
export interface CatalogRevocations {
  /** Returns whether a token id or session id was revoked. */
  isRevoked(id: string): boolean;
  /**
   * Returns the time at which an id was first revoked, and the successor whose use revoked it;
   * undefined if the id has not been revoked.
   */
  revocation(id: string): RevocationRecord | undefined;
  /**
   * Revokes a token id or session id until `expiresAtMs`.
   * @param options.successorId The id of the token whose use revokes this token.
   */
  revoke(id: string, expiresAtMs: number, options?: RevokeOptions): void;
}

/** Manages the list of uploaded files. */
export interface CatalogFiles {
  entry(fileId: string): FileEntry | undefined;
  /**
   * Returns the entire file list at once, for callers that cannot wait between two portions.
   * Reading each entry takes 20 µs.
   */
  all(): readonly FileEntry[];
  /** The number of uploaded files in the catalog. */
  readonly count: number;
  /**
   * Returns the file list in portions, ordered by id. Each portion is read on demand, so code that
   * runs between two portions may change the later ones.
   */
  portions(of?: FilesOf): Iterable<readonly FileEntry[]>;
  add(entries: readonly FileEntry[]): void;
  remove(fileIds: readonly string[]): void;
}

export interface Catalog {
  /**
   * The version number of the definitions. Every change to namespaces, tables, views or topics
   * increments it.
   */
  readonly version: number;
  /**
   * Returns a private copy of the catalog, for a transaction that changes definitions.
   *
   * @param unplaced A placeholder for the seq of the commit, which is not known yet. No definition
   *   may have this seq.
   */
  draft(unplaced: Seq): DraftedCatalog;

  namespace(name: string): NamespaceEntry | undefined;
  namespaces(): readonly NamespaceEntry[];
  /** Creates a namespace. @throws {DatabaseError} ALREADY_EXISTS */
  createNamespace(entry: NamespaceEntry): void;
  /**
   * Drops a namespace, which must not contain any tables, views, topics or sequences.
   * @throws {DatabaseError} NAMESPACE_NOT_FOUND, DEPENDENT_OBJECTS
   */
  dropNamespace(name: string): void;
  changeNamespace(entry: NamespaceEntry): void;

  table(namespace: string, name: string): TableEntry | undefined;
  tableById(tableId: number): TableEntry | undefined;
  /** Returns all tables, ordered by namespace and name. */
  tables(): readonly TableEntry[];
  nextTableId(): number;
  /**
   * Creates a table, and makes the changes in `others` in the same transaction. `seq` is the seq
   * of the definition.
   * @throws {DatabaseError} ALREADY_EXISTS
   */
  createTable(entry: TableEntry, seq: Seq, others?: Dependents): void;
  /**
   * Replaces the table with the same tableId, and makes the changes in `others` in the same
   * transaction. Earlier schema versions can still be read.
   */
  changeTable(entry: TableEntry, seq: Seq, others?: Dependents): void;
  /**
   * Drops a table, including its segments in the manifest and its files. If it has too many files
   * for one transaction, the caller removes the rest with `files.remove`.
   */
  dropTable(tableId: number, seq: Seq, others?: Dependents): void;
  /** Returns all versions of a table's schema, in ascending order. */
  tableVersions(tableId: number): readonly TableEntry[];
  /** Returns a table as of a seq; undefined if it had not been created by then. */
  tableAt(tableId: number, seq: Seq): TableEntry | undefined;
  /**
   * Returns the age at which the rows of a table expired as of `seq`, in milliseconds; undefined
   * if its rows did not expire then.
   */
  deletionAgeMs(tableId: number, seq: Seq): number | undefined;
  /**
   * Returns the seq at which a table with the given name was last dropped or renamed; 0 if that
   * has never happened.
   */
  tableDroppedSeq(namespace: string, name: string): number;
  /**
   * Returns the seq at which a user's rights to the rows of a table last changed: its ACCESS_LEVEL
   * or its policies changed, its namespace got a new owner, or the user or the owner of a policy
   * got a new role. Returns 0 if that has never happened.
   */
  rowRightsSeq(tableId: number, userId: string): number;

  view(namespace: string, name: string): ViewEntry | undefined;
  /** Returns all views, ordered by namespace and name. */
  views(): readonly ViewEntry[];
  /** Returns all views and functions, and the queries of all materialized views. */
  storedQueries(): readonly ViewEntry[];
  /** Returns all functions, ordered by namespace, name and parameter types. */
  functions(): readonly FunctionEntry[];
  /** Returns the functions with the given name. They differ in the types of their parameters. */
  functionsNamed(namespace: string, name: string): readonly FunctionEntry[];
  /**
   * Creates a view. Its id comes from `nextTableId`.
   * @throws {DatabaseError} ALREADY_EXISTS
   */
  createView(entry: ViewEntry): void;
  viewById(viewId: number): ViewEntry | undefined;
  /** Replaces the view with the same viewId. */
  changeView(entry: ViewEntry): void;
  /** Replaces all given views in a single transaction. */
  changeViews(entries: readonly ViewEntry[]): void;
  /** Drops either all or none of the given views. */
  dropViews(entries: readonly ViewEntry[]): void;

  topic(namespace: string, name: string): TopicEntry | undefined;
  topicById(topicId: number): TopicEntry | undefined;
  /** Returns all topics, ordered by namespace and name. */
  topics(): readonly TopicEntry[];
  /**
   * Creates a topic. Its id comes from `nextTableId`. `seq` is the seq of the definition.
   * @throws {DatabaseError} ALREADY_EXISTS
   */
  createTopic(entry: TopicEntry, seq: Seq): void;
  /** Replaces the topic with the same topicId. */
  changeTopic(entry: TopicEntry, seq: Seq): void;
  /** Drops either all or none of the given topics. */
  dropTopics(entries: readonly TopicEntry[], seq: Seq): void;

  sequence(namespace: string, name: string): SequenceEntry | undefined;
  /** Returns all sequences, ordered by namespace and name. */
  sequences(): readonly SequenceEntry[];
  /**
   * Creates a sequence. Its id comes from `nextTableId`.
   * @throws {DatabaseError} ALREADY_EXISTS
   */
  createSequence(entry: SequenceEntry): void;
  /**
   * Replaces the sequence with the same sequenceId. If `mark` is given, also replaces the
   * sequence's mark, which records the number that it has reached.
   */
  changeSequence(entry: SequenceEntry, mark?: SequenceMark): void;
  /** Drops either all or none of the given sequences. */
  dropSequences(entries: readonly SequenceEntry[]): void;
  /**
   * Returns the next number of a sequence. The same number is never returned twice, even after a
   * crash.
   * @throws {DatabaseError} VALUE_OUT_OF_RANGE at the end of the sequence; DISK_FULL,
   *   STORAGE_UNAVAILABLE
   */
  nextNumber(sequence: SequenceEntry): Whole;
  /**
   * Sets the current number of a sequence, as `setval` does.
   * @throws {DatabaseError} VALUE_OUT_OF_RANGE, DISK_FULL, STORAGE_UNAVAILABLE
   */
  setNumber(sequence: SequenceEntry, value: Whole, isCalled: boolean): void;
  /**
   * Sets a sequence back from `now` to `before`, so that the numbers in between will be issued
   * again. Has no effect if other callers have taken numbers in the meantime, so that the sequence
   * is no longer at `now`.
   * @throws {DatabaseError} DISK_FULL, STORAGE_UNAVAILABLE
   */
  takeBackNumbers(sequence: SequenceEntry, now: SequenceMark, before: SequenceMark): void;
  /** Returns the mark of a sequence, which records the number that the sequence has reached. */
  sequenceMark(sequence: SequenceEntry): SequenceMark;

  type(namespace: string, name: string): TypeEntry | undefined;
  /** Returns the user-defined data type with the given name; undefined if there is none. */
  definedType(namespace: string, name: string): DefinedType | undefined;
  /** Returns all user-defined types, ordered by namespace and name. */
  types(): readonly TypeEntry[];
  /**
   * Creates types, either all or none. Their ids, in ascending order, come from `nextTableId`.
   * @throws {DatabaseError} ALREADY_EXISTS
   */
  createTypes(entries: readonly TypeEntry[]): void;
  /**
   * Replaces the type with the same typeId. Existing enum labels must keep their positions.
   * @throws {DatabaseError} ALREADY_EXISTS
   */
  changeType(entry: TypeEntry): void;
  /** Drops either all or none of the given types. No column may use any of them. */
  dropTypes(entries: readonly TypeEntry[]): void;

  readonly storages: CatalogStorages;

  /**
   * The version number of the accounts, owner numbers and revocations. Every change to them
   * increments it. The result of a token check stays valid while this number is unchanged.
   */
  readonly accessVersion: number;

  readonly accounts: CatalogAccounts;
  readonly serviceTokens: SecretEntries<ServiceTokenEntry>;
  readonly invitations: SecretEntries<InvitationEntry>;
  readonly revocations: CatalogRevocations;
  readonly files: CatalogFiles;

  close(): void;
}
