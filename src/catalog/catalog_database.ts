/**
 * Implements {@linkcode Catalog} and the store's manifest in a single SQLite database.
 *
 * Everything except the file list is kept in memory from startup. A write is a transaction that is
 * durable when the call returns; memory and `version` are updated afterwards. The database
 * contains only metadata, never users' rows.
 */
import type { Clock } from "../base/clock.ts";
import { isExpected } from "../base/errors.ts";
import type { Log } from "../base/log.ts";
import type { Seq } from "../base/seq.ts";
import type { Whole } from "../types/mod.ts";
import type { InvitationEntry, ServiceTokenEntry } from "./account_entries.ts";
import { Accounts } from "./accounts.ts";
import type { Catalog, Dependents, PreparedDraft } from "./catalog.ts";
import { CatalogDraft } from "./catalog_draft.ts";
import { type CounterName, Counters } from "./counters.ts";
import type { DefinedType } from "./defined_types.ts";
import { Definitions, type IssuedNumbers } from "./definitions.ts";
import { DraftFile } from "./draft_file.ts";
import { DraftNumbers, LaterNumbers } from "./draft_numbers.ts";
import type {
  FunctionEntry,
  NamespaceEntry,
  SequenceEntry,
  StorageEntry,
  TableEntry,
  TypeEntry,
  ViewEntry,
} from "./entries.ts";
import { FileList } from "./file_list.ts";
import { CatalogJournal, type JournalEntry, replayJournal } from "./journal.ts";
import { ManifestDatabase, removeListed } from "./manifest_database.ts";
import { NamedSecrets } from "./named_secrets.ts";
import { DEFAULT_NAMESPACE, PUBLIC_NAMESPACE } from "./names.ts";
import { allSealed, putSealed, removeSealed, type SealedTable } from "./records.ts";
import { Revocations } from "./revocations.ts";
import { markAfterRestore, type SequenceMark } from "./sequence_numbers.ts";
import { refuseForeign, type SealedChange, SqliteFile } from "./sqlite_file.ts";
import { StorageEntries } from "./storages.ts";
import type { TopicEntry } from "./topic_entries.ts";
import { UndoneDefinitions } from "./undone_definitions.ts";

export interface CatalogDatabaseOptions {
  /** The path of the SQLite database file. Its directory must exist. */
  path: string;
  clock: Clock;
  log: Log;
  /** Whether changes are recorded in a journal, for the archive of the log. */
  keepsJournal?: boolean;
  /**
   * Called if it is unknown whether a change is durable. This may happen even while the catalog is
   * being opened. The process must then stop. The next startup determines whether the change is
   * durable.
   */
  onFatal?: ((cause: unknown) => void) | undefined;
}

/**
 * The numbers that a catalog has issued. A restored catalog that replaces it must not issue them
 * again.
 */
export interface UsedBefore {
  /** The last numbers issued for tables, users, owners, segments and definitions. */
  readonly numbers: readonly (readonly [CounterName, number])[];
  readonly storages: readonly StorageEntry[];
  readonly serviceTokens: readonly ServiceTokenEntry[];
  readonly invitations: readonly InvitationEntry[];
  readonly sequences: readonly { readonly createdAtMs: number; readonly mark: SequenceMark }[];
}

const USED: readonly CounterName[] = [
  "catalog_version",
  "next_table_id",
  "next_definition_id",
  "next_segment_id",
  "next_owner",
  "next_account_id",
];

/**
 * The number of ids to skip if it is unknown which ids have been used. It exceeds the number of
 * ids that could have been issued since a backup.
 */
const UNKNOWN_SPAN = 1_000_000;

export class CatalogDatabase implements Catalog {
  /** The manifest of the store, which is part of the same database. */
  readonly manifest: ManifestDatabase;
  readonly journal: CatalogJournal;
  readonly #file: SqliteFile;
  readonly #log: Log;
  #definitions: Definitions;
  readonly files: FileList;
  readonly accounts: Accounts;
  readonly revocations: Revocations;
  readonly storages: StorageEntries;
  readonly serviceTokens: NamedSecrets<ServiceTokenEntry>;
  readonly invitations: NamedSecrets<InvitationEntry>;
  readonly #settings = new Map<string, string>();
  readonly #counters: Counters;
  readonly #clock: Clock;
  /** Records the seqs of definitions that never took effect. */
  readonly undone: UndoneDefinitions;
  #draftVersions = 0;

  private constructor(
    file: SqliteFile,
    { clock, keepsJournal = false, log }: Omit<CatalogDatabaseOptions, "path">,
  ) {
    this.#file = file;
    this.#log = log;
    const counters = new Counters(file);
    this.#counters = counters;
    this.#clock = clock;
    this.undone = new UndoneDefinitions(file);
    // The journal is created first, so that it records every change.
    this.journal = new CatalogJournal({ clock, counters, file, isKept: keepsJournal });
    this.manifest = new ManifestDatabase(file, counters, this.undone);
    this.files = new FileList(file);
    const { manifest } = this;
    this.#definitions = new Definitions({ clock, file, files: this.files, counters, manifest });
    const newSeq = (): number => this.journal.newSeq();
    const storeDropped = (userId: string): (() => void) => this.#storeDropped(userId);
    this.accounts = new Accounts({ file, counters, clock, newSeq, storeDropped });
    this.revocations = new Revocations(file, clock);
    this.storages = new StorageEntries(file);
    this.serviceTokens = new NamedSecrets(file, { table: "service_tokens", what: "token" });
    this.invitations = new NamedSecrets(file, { table: "invitations", what: "invitation" });
    for (const { name, value } of allSealed<{ name: string; value: string }>(file, "settings")) {
      this.#settings.set(name, value);
    }
    // If there is no default namespace, the catalog is new.
    if (this.#definitions.namespace(DEFAULT_NAMESPACE) === undefined) {
      for (const name of [DEFAULT_NAMESPACE, PUBLIC_NAMESPACE]) {
        this.#definitions.createNamespace({
          name,
          owner: undefined,
          options: {},
          createdAtMs: clock.nowMs(),
        });
      }
    }
    this.#disownDropped();
  }

  /** Sets the function that is called when the disk is full. See {@linkcode SqliteFile.onFull}. */
  set onFull(onFull: () => boolean) {
    this.#file.onFull = onFull;
  }

  /**
   * Throws the error with which `open` would refuse a file, but leaves no trace of the attempt.
   *
   * @throws {CorruptionError}
   * @throws {DatabaseError} STORAGE_UNAVAILABLE
   */
  static refuseForeign(path: string): void {
    refuseForeign(path);
  }

  /**
   * Opens or creates the catalog.
   *
   * @throws {CorruptionError} If the file is damaged or is not a catalog.
   * @throws {DatabaseError} STORAGE_UNAVAILABLE if the file has a newer format, or cannot be
   *   opened.
   */
  static open({ path, ...options }: CatalogDatabaseOptions): CatalogDatabase {
    const { log, onFatal } = options;
    const file = SqliteFile.open(path, { log, onFatal });
    try {
      return new CatalogDatabase(file, options);
    } catch (error) {
      file.close();
      throw error;
    }
  }

  /** Replays a journal onto a copy of the catalog. See {@linkcode replayJournal}. */
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
    const before = this.namespace(entry.name);
    const isSameOwner = before?.owner === entry.owner;
    const ownerSeq = isSameOwner ? before?.ownerSeq : this.journal.newSeq();
    this.#definitions.changeNamespace({ ...entry, ...(ownerSeq !== undefined && { ownerSeq }) });
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

  createTable(entry: TableEntry, seq: Seq, others: Dependents = {}): void {
    this.#definitions.createTable(entry, seq, others);
  }

  changeTable(entry: TableEntry, seq: Seq, others: Dependents = {}): void {
    this.#definitions.changeTable(entry, seq, others);
  }

  dropTable(tableId: number, seq: Seq, others: Dependents = {}): void {
    this.#definitions.dropTable(tableId, seq, others);
  }

  view(namespace: string, name: string): ViewEntry | undefined {
    return this.#definitions.view(namespace, name);
  }

  views(): readonly ViewEntry[] {
    return this.#definitions.views();
  }

  storedQueries(): readonly ViewEntry[] {
    return this.#definitions.storedQueries();
  }

  functions(): readonly FunctionEntry[] {
    return this.#definitions.functions();
  }

  functionsNamed(namespace: string, name: string): readonly FunctionEntry[] {
    return this.#definitions.functionsNamed(namespace, name);
  }

  createView(entry: ViewEntry): void {
    this.#definitions.createView(entry);
  }

  viewById(viewId: number): ViewEntry | undefined {
    return this.#definitions.viewById(viewId);
  }

  changeViews(entries: readonly ViewEntry[]): void {
    this.#definitions.changeViews(entries);
  }

  changeView(entry: ViewEntry): void {
    this.#definitions.changeView(entry);
  }

  dropViews(entries: readonly ViewEntry[]): void {
    this.#definitions.dropViews(entries);
  }

  topic(namespace: string, name: string): TopicEntry | undefined {
    return this.#definitions.topic(namespace, name);
  }

  topicById(topicId: number): TopicEntry | undefined {
    return this.#definitions.topicById(topicId);
  }

  topics(): readonly TopicEntry[] {
    return this.#definitions.topics();
  }

  createTopic(entry: TopicEntry, seq: Seq): void {
    this.#definitions.createTopic(entry, seq);
  }

  changeTopic(entry: TopicEntry, seq: Seq): void {
    this.#definitions.changeTopic(entry, seq);
  }

  dropTopics(entries: readonly TopicEntry[], seq: Seq): void {
    this.#definitions.dropTopics(entries, seq);
  }

  sequence(namespace: string, name: string): SequenceEntry | undefined {
    return this.#definitions.sequence(namespace, name);
  }

  sequences(): readonly SequenceEntry[] {
    return this.#definitions.sequences();
  }

  createSequence(entry: SequenceEntry): void {
    this.#definitions.createSequence(entry);
  }

  changeSequence(entry: SequenceEntry, mark?: SequenceMark): void {
    this.#definitions.changeSequence(entry, mark);
  }

  dropSequences(entries: readonly SequenceEntry[]): void {
    this.#definitions.dropSequences(entries);
  }

  type(namespace: string, name: string): TypeEntry | undefined {
    return this.#definitions.type(namespace, name);
  }

  definedType(namespace: string, name: string): DefinedType | undefined {
    return this.#definitions.definedType(namespace, name);
  }

  types(): readonly TypeEntry[] {
    return this.#definitions.types();
  }

  createTypes(entries: readonly TypeEntry[]): void {
    this.#definitions.createTypes(entries);
  }

  changeType(entry: TypeEntry): void {
    this.#definitions.changeType(entry);
  }

  dropTypes(entries: readonly TypeEntry[]): void {
    this.#definitions.dropTypes(entries);
  }

  nextNumber(sequence: SequenceEntry): Whole {
    return this.#definitions.numbers.next(sequence);
  }

  setNumber(sequence: SequenceEntry, value: Whole, isCalled: boolean): void {
    this.#definitions.numbers.set(sequence, value, isCalled);
  }

  takeBackNumbers(sequence: SequenceEntry, now: SequenceMark, before: SequenceMark): void {
    this.#definitions.numbers.takeBack(sequence, now, before);
  }

  sequenceMark(sequence: SequenceEntry): SequenceMark {
    return this.#definitions.numbers.mark(sequence);
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

  deletionAgeMs(tableId: number, seq: Seq): number | undefined {
    return this.#definitions.deletionAgeMs(tableId, seq);
  }

  rowRightsSeq(tableId: number, userId: string): number {
    const table = this.tableById(tableId);
    // A policy applies only while its owner may read every row of the tables that the policy
    // itself reads.
    const { policies = [] } = table ?? {};
    const users = [userId, ...policies.map(({ owner }) => owner)];
    const read = policies.flatMap(({ tables }) => tables.map((each) => each.tableId));
    return Math.max(
      ...users.map((each) => this.accounts.rightsSeq(each)),
      ...[tableId, ...read].map((each) => this.#accessSeq(each)),
    );
  }

  /**
   * Returns the seq at which the set of a table's readers last changed. Changes to the readers'
   * roles do not count.
   */
  #accessSeq(tableId: number): number {
    const { namespace = "" } = this.tableById(tableId) ?? {};
    return Math.max(
      this.#definitions.tableAccessSeq(tableId),
      this.namespace(namespace)?.ownerSeq ?? 0,
    );
  }

  get accessVersion(): number {
    return this.accounts.version + this.revocations.version + this.serviceTokens.version;
  }

  /**
   * Records, within the transaction that drops a user, that the user's namespaces have no owner,
   * and removes the user's service tokens. The returned function updates memory.
   */
  #storeDropped(userId: string): () => void {
    const rememberOwners = this.#definitions.storeWithoutOwner(userId);
    const rememberTokens = this.serviceTokens.storeWithout((token) => token.userId === userId);
    return () => {
      rememberOwners();
      rememberTokens();
    };
  }

  /**
   * Returns the value of a setting that is stored in this database; undefined if it has not been
   * set.
   */
  setting(name: string): string | undefined {
    return this.#settings.get(name);
  }

  /** Returns a private copy of the catalog, for a transaction that changes definitions. */
  draft(unplaced: Seq): CatalogDraft {
    const numbers = new DraftNumbers({
      clock: this.#clock,
      numbers: this.#definitions.numbers,
      sequenceById: (sequenceId) => this.#definitions.sequenceById(sequenceId),
    });
    const copyOf = this.#draftOf.bind(this);
    return new CatalogDraft(
      {
        catalog: this,
        copyOf,
        newVersion: () => {
          this.#draftVersions += 1;
          // The version numbers of drafts are negative, so they always differ from the catalog's
          // versions.
          return -this.#draftVersions;
        },
        prepare: (seq, replay) => this.#prepare(seq, replay),
      },
      {
        definitions: copyOf(this.#definitions, numbers),
        numbers,
        changes: [],
        unplaced,
        hasLastingChanges: false,
        madeAt: this.version,
      },
    );
  }

  #draftOf(definitions: Definitions, numbers: DraftNumbers): Definitions {
    const file = new DraftFile(this.#file);
    const counters = new Counters(file, this.#counters);
    return this.#copied(definitions, { file, numbers, counters });
  }

  /**
   * Copies definitions. The copy shares the catalog's lists of files and segments. It records its
   * changes to them in a draft file.
   */
  #copied(
    definitions: Definitions,
    { counters, file, numbers }: { counters: Counters; file: DraftFile; numbers: IssuedNumbers },
  ): Definitions {
    const { manifest } = this;
    return new Definitions({
      clock: this.#clock,
      file,
      counters,
      files: {
        forget() {},
        portions: (of) => this.files.portions(of),
        storeWithout: (ids) => {
          for (const id of ids) removeSealed(file, "files", id);
        },
      },
      manifest: {
        forget() {},
        listedOf: (tableId) => manifest.listedOf(tableId),
        remove: (listed) => removeListed(file, listed),
      },
      from: { definitions, numbers },
    });
  }

  /**
   * Applies a transaction's changes to a copy of the current definitions, so that the copy can be
   * published.
   */
  #prepare(seq: Seq, replay: (definitions: Definitions) => void): PreparedDraft {
    const file = new DraftFile(this.#file);
    const counters = new Counters(file, this.#counters);
    const numbers = new LaterNumbers(this.#definitions.numbers);
    const definitions = this.#copied(this.#definitions, { counters, file, numbers });
    replay(definitions);
    // Rows in the log name the seq of the definitions under which they were written. Recovery
    // refuses them unless the catalog is at least as new, whatever the definitions concern.
    counters.store("highest_seq", seq);
    counters.raise("highest_seq", seq);
    return {
      tableById: (tableId) => definitions.tableById(tableId),
      announce: () => this.undone.add(seq),
      withdraw: () => this.undone.remove(seq),
      publish: (lastSeq) => {
        const { changes } = file;
        const write = (): void => {
          for (const [table, key, value] of changes) {
            // The cast is safe, because the draft file records only calls to these two functions.
            const into = table as SealedTable;
            if (value === undefined) removeSealed(this.#file, into, key);
            else putSealed(this.#file, into, { key, value });
          }
          this.undone.storeWithout(seq);
        };
        this.journal.stampedWith(lastSeq, () => this.#file.transaction(write));
        this.#adopt({ counters, definitions, file, numbers }, changes);
        this.undone.forget(seq);
      },
    };
  }

  /** Replaces the definitions in memory with a copy. Its changes must already be durable. */
  #adopt(
    copy: {
      counters: Counters;
      definitions: Definitions;
      file: DraftFile;
      numbers: LaterNumbers;
    },
    changes: readonly SealedChange[],
  ): void {
    const { numbers } = this.#definitions;
    const removed = (from: SealedTable): readonly (string | number)[] =>
      changes.flatMap(([table, key, value]) => (table === from && value === undefined ? key : []));
    this.files.forget(removed("files").length);
    this.manifest.forget({
      segmentIds: removed("segments").map(Number),
      tableIds: removed("table_states").map(Number),
    });
    this.#counters.raiseTo(copy.counters);
    copy.numbers.settle();
    copy.file.settle();
    copy.definitions.settle({
      counters: this.#counters,
      files: this.files,
      manifest: this.manifest,
      numbers,
    });
    this.#definitions = copy.definitions;
  }

  changeSetting(name: string, value: string): void {
    this.#file.transaction(() =>
      putSealed(this.#file, "settings", { key: name, value: { name, value } }),
    );
    this.#settings.set(name, value);
  }

  /**
   * Freezes the catalog's file, with all committed changes, until the returned function is called.
   * The catalog remains usable in the meantime. A caller that opens the file to read it must keep
   * it open for as long as the catalog is open.
   *
   * @throws {DatabaseError} DISK_FULL, STORAGE_UNAVAILABLE
   */
  hold(): () => void {
    return this.#file.hold();
  }

  /** Returns the numbers that a restored catalog must not issue again. */
  used(): UsedBefore {
    return {
      numbers: USED.map((name) => [name, this.#counters.get(name)] as const),
      storages: this.storages.all(),
      serviceTokens: this.serviceTokens.all(),
      invitations: this.invitations.all(),
      sequences: this.sequences().map((sequence) => ({
        createdAtMs: sequence.createdAtMs,
        mark: this.sequenceMark(sequence),
      })),
    };
  }

  /**
   * Prepares this catalog, which was restored from a backup, to replace another one: no number in
   * `before` is issued again, and all tokens become invalid. Every segment must be in the data
   * directory. The catalog has to be reopened afterwards.
   *
   * @param before The numbers that the replaced catalog used; undefined if they cannot be read.
   */
  continueFrom(before: UsedBefore | undefined): void {
    const known = new Map<CounterName, number>(before?.numbers);
    const tokenVersion = this.#counters.get("first_token_version") + UNKNOWN_SPAN;
    this.#file.transaction(() => {
      for (const name of USED) {
        const own = this.#counters.get(name);
        this.#counters.store(name, Math.max(own, known.get(name) ?? own + UNKNOWN_SPAN));
      }
      this.accounts.storeTokenVersions(Math.max(tokenVersion, this.#highestTokenVersion()));
      for (const mark of this.#marksAfter(before)) {
        putSealed(this.#file, "sequence_marks", { key: mark.sequenceId, value: mark });
      }
    });
    this.storages.continueFrom(before?.storages ?? []);
    this.serviceTokens.continueFrom(before?.serviceTokens ?? []);
    this.invitations.continueFrom(before?.invitations ?? []);
    this.manifest.leaveStorages();
  }

  #marksAfter(before: UsedBefore | undefined): SequenceMark[] {
    const own = new Map(this.#definitions.numbers.marks().map((mark) => [mark.sequenceId, mark]));
    return this.sequences().flatMap((sequence) => {
      const { createdAtMs, sequenceId } = sequence;
      // The creation time is compared as well, because the same id may belong to a different
      // sequence created after the backup.
      const same = before?.sequences.find(
        (each) => each.mark.sequenceId === sequenceId && each.createdAtMs === createdAtMs,
      );
      const left = before === undefined ? "unknown" : same?.mark;
      return markAfterRestore(sequence, own.get(sequenceId), left) ?? [];
    });
  }

  /**
   * Removes dropped users as owners of namespaces, because earlier versions did not do so in DROP
   * USER.
   */
  #disownDropped(): void {
    for (const { owner } of this.namespaces()) {
      if (owner === undefined || !this.accounts.wasDropped(owner)) continue;
      const store = (): (() => void) => this.#definitions.storeWithoutOwner(owner);
      const remember = this.#file.transaction(store);
      remember();
    }
  }

  #highestTokenVersion(): number {
    return (
      Math.max(...this.accounts.users().map(({ tokenVersion }) => tokenVersion)) + UNKNOWN_SPAN
    );
  }

  close(): void {
    try {
      this.#definitions.numbers.giveBack(this.sequences());
    } catch (error) {
      // The error can be ignored: numbers that cannot be given back only leave a gap.
      if (!isExpected(error)) throw error;
      this.#log.warn("cannot return reserved sequence numbers", {
        error: error.message,
      });
    } finally {
      this.#file.close();
    }
  }
}
