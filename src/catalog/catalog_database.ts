/**
 * The catalog in one SQLite database: {@linkcode Catalog}, and the manifest of the store.
 *
 * Everything but the file list is held in memory from the start. A write is one transaction that
 * is durable when the call returns; memory, and `version`, follow it. Metadata only: never a row
 * of a user.
 */
import type { Clock } from "../base/clock.ts";
import type { Log } from "../base/log.ts";
import type { Seq } from "../base/seq.ts";
import { Accounts } from "./accounts.ts";
import type { Catalog, NewUser, SetupUsers, UserChange } from "./catalog.ts";
import { type CounterName, Counters } from "./counters.ts";
import { Definitions } from "./definitions.ts";
import type {
  Erasure,
  FileEntry,
  FilesOf,
  NamespaceEntry,
  StorageEntry,
  TableEntry,
  UserEntry,
  ViewEntry,
} from "./entries.ts";
import { FileList } from "./file_list.ts";
import { CatalogJournal, type JournalEntry, replayJournal } from "./journal.ts";
import { ManifestDatabase } from "./manifest_database.ts";
import { DEFAULT_NAMESPACE } from "./names.ts";
import { allSealed, putSealed } from "./records.ts";
import { Revocations } from "./revocations.ts";
import { refuseForeign, SqliteFile } from "./sqlite_file.ts";
import { Storages } from "./storages.ts";

export interface CatalogDatabaseOptions {
  /** The SQLite file; its directory must exist. */
  path: string;
  clock: Clock;
  log: Log;
  /** Whether what changes is written down for an archive. */
  keepsJournal?: boolean;
  /**
   * Called when it is unknown whether a change is durable, already while the catalog opens: the
   * process must stop, and start again to see.
   */
  onFatal?: ((cause: unknown) => void) | undefined;
}

/** What a state of the catalog has used, for one that takes its place. */
export interface UsedBefore {
  /** Given out up to now: of tables, users, owners, segments, definitions. */
  readonly numbers: readonly (readonly [CounterName, number])[];
  readonly storages: readonly StorageEntry[];
}

const USED: readonly CounterName[] = [
  "catalog_version",
  "next_table_id",
  "next_definition_id",
  "next_segment_id",
  "next_owner",
  "next_account_id",
];

/** More than were ever given out between a backup and the loss of what came after it. */
const UNKNOWN_SPAN = 1_000_000;

export class CatalogDatabase implements Catalog {
  /** What the store keeps here. */
  readonly manifest: ManifestDatabase;
  readonly journal: CatalogJournal;
  readonly #file: SqliteFile;
  readonly #definitions: Definitions;
  readonly #files: FileList;
  readonly #accounts: Accounts;
  readonly #revocations: Revocations;
  readonly #storages: Storages;
  readonly #settings = new Map<string, string>();
  readonly #counters: Counters;

  private constructor(file: SqliteFile, clock: Clock, keepsJournal: boolean) {
    this.#file = file;
    const counters = new Counters(file);
    this.#counters = counters;
    // Before anything changes.
    this.journal = new CatalogJournal({ clock, counters, file, isKept: keepsJournal });
    this.manifest = new ManifestDatabase(file, counters);
    this.#files = new FileList(file);
    const { manifest } = this;
    this.#definitions = new Definitions({ file, files: this.#files, counters, manifest });
    const newSeq = (): number => this.journal.newSeq();
    this.#accounts = new Accounts({ file, counters, clock, newSeq });
    this.#revocations = new Revocations(file, clock);
    this.#storages = new Storages(file);
    for (const { name, value } of allSealed<{ name: string; value: string }>(file, "settings")) {
      this.#settings.set(name, value);
    }
    if (this.#definitions.namespace(DEFAULT_NAMESPACE) === undefined) {
      this.#definitions.createNamespace({
        name: DEFAULT_NAMESPACE,
        owner: undefined,
        options: {},
        createdAtMs: clock.nowMs(),
      });
    }
    this.#disownDropped();
  }

  /** As {@linkcode SqliteFile.onFull}. */
  set onFull(onFull: () => boolean) {
    this.#file.onFull = onFull;
  }

  /**
   * Refuses what `open` would refuse for its format, without leaving a trace.
   *
   * @throws {CorruptionError} @throws {DatabaseError} STORAGE_UNAVAILABLE
   */
  static refuseForeign(path: string): void {
    refuseForeign(path);
  }

  /**
   * Opens or makes the catalog.
   *
   * @throws {CorruptionError} If the file is damaged or is no catalog.
   * @throws {DatabaseError} STORAGE_UNAVAILABLE if it is of a newer format, or cannot be opened.
   */
  static open({
    path,
    clock,
    log,
    keepsJournal = false,
    onFatal,
  }: CatalogDatabaseOptions): CatalogDatabase {
    const file = SqliteFile.open(path, { log, onFatal });
    try {
      return new CatalogDatabase(file, clock, keepsJournal);
    } catch (error) {
      file.close();
      throw error;
    }
  }

  /** See {@linkcode replayJournal}. */
  static replay(
    path: string,
    entries: readonly JournalEntry[],
    options: { log: Log; seq: number },
  ): void {
    replayJournal(path, entries, options);
  }

  get version(): number {
    return this.#definitions.version;
  }

  namespace(name: string): NamespaceEntry | undefined {
    return this.#definitions.namespace(name);
  }

  namespaces(): readonly NamespaceEntry[] {
    return this.#definitions.namespaces();
  }

  createNamespace(entry: NamespaceEntry): void {
    this.#definitions.createNamespace(entry);
  }

  dropNamespace(name: string): void {
    this.#definitions.dropNamespace(name);
  }

  changeNamespace(entry: NamespaceEntry): void {
    this.#definitions.changeNamespace(entry);
  }

  table(namespace: string, name: string): TableEntry | undefined {
    return this.#definitions.table(namespace, name);
  }

  tableById(tableId: number): TableEntry | undefined {
    return this.#definitions.tableById(tableId);
  }

  tables(): readonly TableEntry[] {
    return this.#definitions.tables();
  }

  nextTableId(): number {
    return this.#definitions.nextTableId();
  }

  createTable(entry: TableEntry, seq: Seq): void {
    this.#definitions.createTable(entry, seq);
  }

  changeTable(entry: TableEntry, seq: Seq, views: readonly ViewEntry[] = []): void {
    this.#definitions.changeTable(entry, seq, views);
  }

  dropTable(tableId: number, seq: Seq, views: readonly ViewEntry[] = []): void {
    this.#definitions.dropTable(tableId, seq, views);
  }

  view(namespace: string, name: string): ViewEntry | undefined {
    return this.#definitions.view(namespace, name);
  }

  views(): readonly ViewEntry[] {
    return this.#definitions.views();
  }

  createView(entry: ViewEntry): void {
    this.#definitions.createView(entry);
  }

  changeView(entry: ViewEntry): void {
    this.#definitions.changeView(entry);
  }

  dropViews(entries: readonly ViewEntry[]): void {
    this.#definitions.dropViews(entries);
  }

  tableVersions(tableId: number): readonly TableEntry[] {
    return this.#definitions.tableVersions(tableId);
  }

  tableAt(tableId: number, seq: Seq): TableEntry | undefined {
    return this.#definitions.tableAt(tableId, seq);
  }

  tableDroppedSeq(namespace: string, name: string): number {
    return this.#definitions.tableDroppedSeq(namespace, name);
  }

  tableOpenedSeq(tableId: number): number {
    return this.#definitions.tableOpenedSeq(tableId);
  }

  storage(storageId: string): StorageEntry | undefined {
    return this.#storages.named(storageId);
  }

  storages(): readonly StorageEntry[] {
    return this.#storages.all();
  }

  createStorage(entry: StorageEntry): void {
    this.#storages.create(entry);
  }

  changeStorage(entry: StorageEntry): void {
    this.#storages.change(entry);
  }

  dropStorage(storageId: string): void {
    this.#storages.drop(storageId);
  }

  get accessVersion(): number {
    return this.#accounts.version + this.#revocations.version;
  }

  user(userId: string): UserEntry | undefined {
    return this.#accounts.user(userId);
  }

  users(): readonly UserEntry[] {
    return this.#accounts.users();
  }

  wasDropped(userId: string): boolean {
    return this.#accounts.wasDropped(userId);
  }

  userDroppedSeq(userId: string): number {
    return this.#accounts.droppedSeq(userId);
  }

  createUser(user: NewUser): UserEntry {
    return this.#accounts.create(user);
  }

  changeUser(userId: string, change: UserChange): UserEntry {
    return this.#accounts.change(userId, change);
  }

  noteSeen(times: ReadonlyMap<string, number>): void {
    this.#accounts.noteSeen(times);
  }

  dropUser(userId: string, options?: { erasesNow?: boolean }): void {
    const storeAlso = (): (() => void) => this.#definitions.storeWithoutOwner(userId);
    this.#accounts.drop(userId, { ...options, storeAlso });
  }

  erasures(): readonly Erasure[] {
    return this.#accounts.erasures();
  }

  hastenErasure(userId: string): void {
    this.#accounts.hastenErasure(userId);
  }

  noteErased(accountId: number): void {
    this.#accounts.noteErased(accountId);
  }

  setUp(users: SetupUsers): UserEntry {
    return this.#accounts.setUp(users);
  }

  ownerNumber(userId: string, options?: { create?: boolean }): number | undefined {
    return this.#accounts.ownerNumber(userId, options);
  }

  ownerName(owner: number): string | undefined {
    return this.#accounts.ownerName(owner);
  }

  isRevoked(id: string): boolean {
    return this.#revocations.revokedAtMs(id) !== undefined;
  }

  revokedAtMs(id: string): number | undefined {
    return this.#revocations.revokedAtMs(id);
  }

  revoke(id: string, expiresAtMs: number): void {
    this.#revocations.revoke(id, expiresAtMs);
  }

  file(fileId: string): FileEntry | undefined {
    return this.#files.entry(fileId);
  }

  files(): readonly FileEntry[] {
    return this.#files.all();
  }

  get fileCount(): number {
    return this.#files.count;
  }

  filePortions(of?: FilesOf): Iterable<readonly FileEntry[]> {
    return this.#files.portions(of);
  }

  /**
   * Uploaded files as they were listed when the catalog was held, in portions by id; whoever reads
   * them does so before that hold ends, and leaves the loop that takes them.
   *
   * @throws {CorruptionError} @throws {DatabaseError} STORAGE_UNAVAILABLE
   */
  heldFilePortions(): Iterable<readonly FileEntry[]> {
    return this.#files.heldPortions();
  }

  addFiles(entries: readonly FileEntry[]): void {
    this.#files.add(entries);
  }

  removeFiles(fileIds: readonly string[]): void {
    this.#files.remove(fileIds);
  }

  /** What an earlier run of this database left for the next, by name. */
  setting(name: string): string | undefined {
    return this.#settings.get(name);
  }

  changeSetting(name: string, value: string): void {
    this.#file.transaction(() =>
      putSealed(this.#file, "settings", { key: name, value: { name, value } }),
    );
    this.#settings.set(name, value);
  }

  /**
   * Keeps the file of the catalog as it is, with everything that was committed, until the function
   * that is returned is called; the catalog goes on meanwhile. Who reads the file keeps it open for
   * as long as the catalog is.
   *
   * @throws {DatabaseError} DISK_FULL, STORAGE_UNAVAILABLE
   */
  hold(): () => void {
    return this.#file.hold();
  }

  /** What a state that replaces this one must not use again. */
  used(): UsedBefore {
    return {
      numbers: USED.map((name) => [name, this.#counters.get(name)] as const),
      storages: this.storages(),
    };
  }

  /**
   * Makes an earlier state go on as a new one: no number is given out again that `used` has, and
   * every token ends. Open the catalog again after it. Every segment lies in the data directory by
   * then.
   *
   * @param before What the state that this one replaces used; undefined when that cannot be read.
   */
  continueFrom(before: UsedBefore | undefined): void {
    const known = new Map<CounterName, number>(before?.numbers);
    const tokenVersion = this.#counters.get("first_token_version") + UNKNOWN_SPAN;
    this.#file.transaction(() => {
      for (const name of USED) {
        const own = this.#counters.get(name);
        this.#counters.store(name, Math.max(own, known.get(name) ?? own + UNKNOWN_SPAN));
      }
      this.#accounts.storeTokenVersions(Math.max(tokenVersion, this.#highestTokenVersion()));
    });
    this.#storages.continueFrom(before?.storages ?? []);
    this.manifest.leaveStorages();
  }

  /** A catalog may come from a version in which DROP USER left namespaces to the name. */
  #disownDropped(): void {
    for (const { owner } of this.namespaces()) {
      if (owner === undefined || !this.#accounts.wasDropped(owner)) continue;
      const store = (): (() => void) => this.#definitions.storeWithoutOwner(owner);
      const remember = this.#file.transaction(store);
      remember();
    }
  }

  #highestTokenVersion(): number {
    return Math.max(...this.users().map(({ tokenVersion }) => tokenVersion)) + UNKNOWN_SPAN;
  }

  close(): void {
    this.#file.close();
  }
}
