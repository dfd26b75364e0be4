/**
 * Manages the definitions of namespaces, tables, views, topics, sequences and types: in memory for
 * reading, and in SQLite for durability.
 *
 * Invariants:
 * - `default` always exists.
 * - While a table exists, all versions of its definition stay in `table_definitions`, each with
 *   the seqs between which it was valid. For a dropped table, the last definition is kept under
 *   each of the table's names, until another table with that name is dropped.
 * - Everything about a table is dropped in one transaction: its definitions, its files, and its
 *   entries in the manifest. If a DROP is refused, nothing changes.
 * - Memory is updated only after the transaction is durable.
 */

import { assert, defined } from "../base/assert.ts";
import type { Clock } from "../base/clock.ts";
import { counted } from "../base/counted.ts";
import { DatabaseError } from "../base/errors.ts";
import type { Seq } from "../base/seq.ts";
import type { Dependents } from "./catalog.ts";
import type { Counters } from "./counters.ts";
import { type DefinedType, DefinedTypes } from "./defined_types.ts";
import type {
  FunctionEntry,
  NamespaceEntry,
  SequenceEntry,
  TableEntry,
  TypeEntry,
  ViewEntry,
} from "./entries.ts";
import type { FileList } from "./file_list.ts";
import type { ManifestDatabase } from "./manifest_database.ts";
import { NamedEntries } from "./named_entries.ts";
import { DEFAULT_NAMESPACE } from "./names.ts";
import { allSealed, putSealed, removeSealed } from "./records.ts";
import { type SequenceMark, SequenceNumbers } from "./sequence_numbers.ts";
import type { SealedFile } from "./sqlite_file.ts";
import { type StoredQueries, storedQueriesOf } from "./stored_queries.ts";
import { type Named, pathOf, TableHistory } from "./table_history.ts";
import { type DefinitionRecord, jsonFromTable } from "./table_records.ts";
import type { TopicEntry } from "./topic_entries.ts";

/** The other parts of the catalog that change together with definitions. */
export interface DefinitionParts {
  readonly counters: Counters;
  readonly files: Pick<FileList, "forget" | "portions" | "storeWithout">;
  readonly manifest: Pick<ManifestDatabase, "forget" | "listedOf" | "remove">;
  readonly numbers: IssuedNumbers;
}

/** The operations on sequence numbers that definitions and statements need. */
export type IssuedNumbers = Pick<
  SequenceNumbers,
  "forget" | "giveBack" | "mark" | "marks" | "next" | "remember" | "set" | "takeBack"
>;

export interface DefinitionsOptions extends Omit<DefinitionParts, "numbers"> {
  readonly clock: Clock;
  readonly file: SealedFile;
  /**
   * The definitions to copy, and the sequence numbers that the copy uses; absent to read the
   * definitions from the file.
   */
  readonly from?: { readonly definitions: Definitions; readonly numbers: IssuedNumbers };
}

/**
 * The number of definitions of dropped tables that each change removes. It exceeds the number that
 * a change can add, so that they do not accumulate.
 */
const REMOVED_PER_CHANGE = 16;

export class Definitions {
  #parts: DefinitionParts;
  readonly #file: SealedFile;
  /** The views and the functions. */
  readonly #views: NamedEntries<ViewEntry>;
  /** Cached until a view or a function changes. */
  #queries: StoredQueries | undefined;
  readonly #topics: NamedEntries<TopicEntry>;
  readonly #sequences: NamedEntries<SequenceEntry>;
  readonly #types: DefinedTypes;
  readonly #namespaces: Map<string, NamespaceEntry> = new Map();
  /** The ids of definitions of dropped tables that are still on disk, but no longer needed. */
  #orphans: readonly number[];
  readonly #tables: TableHistory;
  #sortedNamespaces: readonly NamespaceEntry[] | undefined;
  #nextTableId: number;

  constructor({ clock, counters, file, files, from, manifest }: DefinitionsOptions) {
    this.#file = file;
    const copied = from?.definitions;
    this.#types = new DefinedTypes(file, copied === undefined ? undefined : copied.#types);
    this.#tables = new TableHistory(this.#types, copied === undefined ? undefined : copied.#tables);
    this.#views = new NamedEntries(file, {
      table: "views",
      idOf: ({ viewId }) => viewId,
      from: copied === undefined ? undefined : copied.#views,
      read: (entry) => this.#types.currentQuery(entry),
    });
    this.#topics = new NamedEntries(file, {
      table: "topics",
      idOf: ({ topicId }) => topicId,
      from: copied === undefined ? undefined : copied.#topics,
    });
    this.#sequences = new NamedEntries(file, {
      table: "sequences",
      idOf: ({ sequenceId }) => sequenceId,
      from: copied === undefined ? undefined : copied.#sequences,
    });
    const numbers =
      from?.numbers ??
      new SequenceNumbers({
        clock,
        marks: { store: (marks) => file.transaction(() => this.#putMarks(marks)) },
        known: allSealed<SequenceMark>(file, "sequence_marks"),
      });
    this.#parts = { counters, files, manifest, numbers };
    this.#nextTableId =
      (copied === undefined ? undefined : copied.#nextTableId) ?? counters.get("next_table_id");
    if (copied !== undefined) {
      this.#namespaces = new Map(copied.#namespaces);
      this.#sortedNamespaces = copied.#sortedNamespaces;
      this.#orphans = copied.#orphans;
      return;
    }
    for (const entry of allSealed<NamespaceEntry>(file, "namespaces")) {
      this.#namespaces.set(entry.name, entry);
    }
    const records = allSealed<DefinitionRecord>(file, "table_definitions");
    this.#orphans = this.#tables.read(records);
    for (const { definitionId } of records) {
      counters.raise("next_definition_id", definitionId + 1);
    }
  }

  get numbers(): IssuedNumbers {
    return this.#parts.numbers;
  }

  /**
   * Makes a copy, whose changes have become durable, the catalog's own definitions. From now on,
   * it uses the given parts of the catalog.
   */
  settle(parts: DefinitionParts): void {
    this.#parts = parts;
  }

  get version(): number {
    return this.#counters.get("catalog_version");
  }

  namespace(name: string): NamespaceEntry | undefined {
    return this.#namespaces.get(name);
  }

  namespaces(): readonly NamespaceEntry[] {
    this.#sortedNamespaces ??= [...this.#namespaces.values()].toSorted((left, right) =>
      left.name < right.name ? -1 : 1,
    );
    return this.#sortedNamespaces;
  }

  createNamespace(entry: NamespaceEntry): void {
    if (this.#namespaces.has(entry.name)) {
      throw new DatabaseError(
        "ALREADY_EXISTS",
        `Cannot create namespace ${entry.name}: it already exists`,
      );
    }
    this.#putNamespace(entry);
  }

  changeNamespace(entry: NamespaceEntry): void {
    this.#namespaceOrThrow(entry.name, "change");
    this.#putNamespace(entry);
  }

  /**
   * Removes a user as the owner of namespaces, within the current transaction. The caller must
   * call the returned function once the transaction is durable, to update memory.
   */
  storeWithoutOwner(userId: string): () => void {
    const left: NamespaceEntry[] = [];
    for (const entry of this.namespaces()) {
      if (entry.owner === userId) left.push({ ...entry, owner: undefined });
    }
    const version = this.version + 1;
    for (const entry of left) this.#storeNamespace(entry);
    if (left.length > 0) this.#counters.store("catalog_version", version);
    return () => {
      if (left.length === 0) return;
      for (const entry of left) this.#rememberNamespace(entry);
      this.#counters.raise("catalog_version", version);
    };
  }

  dropNamespace(name: string): void {
    this.#namespaceOrThrow(name, "drop");
    assert(name !== DEFAULT_NAMESPACE, "catalog: cannot drop the default namespace");
    const tableCount = this.#tables.countIn(name);
    const others = [...this.#views.all(), ...this.topics(), ...this.sequences(), ...this.types()];
    const held = tableCount + others.filter(({ namespace }) => namespace === name).length;
    if (held > 0) {
      throw new DatabaseError(
        "DEPENDENT_OBJECTS",
        `Cannot drop namespace ${name}: it still contains ${counted(held, "object")}, such as ` +
          "tables, views, functions, topics, sequences or types",
        { hint: "to drop them as well, use CASCADE" },
      );
    }
    this.#change(() => removeSealed(this.#file, "namespaces", name));
    this.#namespaces.delete(name);
    this.#sortedNamespaces = undefined;
  }

  table(namespace: string, name: string): TableEntry | undefined {
    return this.#tables.named(namespace, name);
  }

  tableById(tableId: number): TableEntry | undefined {
    return this.#tables.byId(tableId);
  }

  tables(): readonly TableEntry[] {
    return this.#tables.all();
  }

  tableVersions(tableId: number): readonly TableEntry[] {
    return this.#tables.versionsOf(tableId);
  }

  tableAt(tableId: number, seq: Seq): TableEntry | undefined {
    return this.#tables.at(tableId, seq);
  }

  tableDroppedSeq(namespace: string, name: string): number {
    return this.#tables.droppedSeq(namespace, name);
  }

  /**
   * Returns the age at which the rows of a table expired as of a seq, in milliseconds; undefined
   * if its rows did not expire then.
   */
  deletionAgeMs(tableId: number, seq: Seq): number | undefined {
    return this.#tables.deletionAgeMs(tableId, seq);
  }

  /**
   * Returns the seq at which a table's ACCESS_LEVEL or policies last changed; 0 if they never
   * have.
   */
  tableAccessSeq(tableId: number): number {
    return this.#tables.accessSeq(tableId);
  }

  /**
   * Returns an id that no row on disk contains. It becomes durable together with the table that
   * uses it.
   */
  nextTableId(): number {
    const tableId = this.#nextTableId;
    this.#nextTableId += 1;
    return tableId;
  }

  createTable(entry: TableEntry, seq: Seq, others: Dependents): void {
    assert(this.tableById(entry.tableId) === undefined, "catalog: table id is already in use");
    this.#namespaceOrThrow(entry.namespace, `create table ${entry.name} in`);
    this.#refuseTaken(entry, "create");
    this.#refuseTakenSequences(others);
    const record = this.#newRecord(entry, seq);
    const dependents = this.#dependents(others);
    this.#change(() => {
      this.#counters.store("next_table_id", entry.tableId + 1);
      this.#put(record);
      dependents.store();
    }, seq);
    this.#noteId(entry.tableId);
    this.#remember(record);
    dependents.remember();
  }

  changeTable(entry: TableEntry, seq: Seq, others: Dependents): void {
    const before = defined(this.tableById(entry.tableId), "catalog: table not found");
    assert(entry.schemaVersion >= before.schemaVersion, "catalog: schema version would decrease");
    if (before.name !== entry.name || before.namespace !== entry.namespace) {
      this.#refuseTaken(entry, "rename");
    }
    this.#refuseTakenSequences(others);
    const record = this.#newRecord(entry, seq);
    const dependents = this.#dependents(others);
    this.#change(() => {
      dependents.store();
      this.#endDefinition(entry.tableId, seq);
      this.#put(record);
    }, seq);
    dependents.remember();
    this.#remember(record);
  }

  dropTable(tableId: number, seq: Seq, others: Dependents): void {
    const entry = defined(this.tableById(tableId), "catalog: table not found");
    const ended = { ...this.#tables.recordOf(tableId), toSeq: seq };
    const outdated = this.#tables.outdatedBy(entry);
    // Only the first portion of the table's files is removed from the list here. Reading an entry
    // takes up to 20 µs, and removing it takes longer. The caller removes the rest.
    const [files = []] = this.#files.portions({ tableId });
    const fileIds = files.map(({ fileId }) => fileId);
    const listed = this.#manifest.listedOf(tableId);
    const dependents = this.#dependents(others);
    this.#change(() => {
      dependents.store();
      this.#put(ended);
      for (const id of outdated) removeSealed(this.#file, "table_definitions", id);
      this.#files.storeWithout(fileIds);
      this.#manifest.remove(listed);
    }, seq);
    dependents.remember();
    this.#files.forget(fileIds.length);
    this.#manifest.forget(listed);
    this.#tables.forget(entry, ended);
  }

  view(namespace: string, name: string): ViewEntry | undefined {
    const entry = this.#views.named(namespace, name);
    return entry?.routine === undefined ? entry : undefined;
  }

  viewById(viewId: number): ViewEntry | undefined {
    return this.#views.byId(viewId);
  }

  views(): readonly ViewEntry[] {
    return this.#storedQueries().views;
  }

  storedQueries(): readonly ViewEntry[] {
    return this.#views.all();
  }

  functions(): readonly FunctionEntry[] {
    return this.#storedQueries().functions;
  }

  functionsNamed(namespace: string, name: string): readonly FunctionEntry[] {
    return this.#storedQueries().named.get(pathOf({ namespace, name })) ?? [];
  }

  #storedQueries(): StoredQueries {
    const all = this.#views.all();
    if (this.#queries?.all !== all) this.#queries = storedQueriesOf(all);
    return this.#queries;
  }

  createView(entry: ViewEntry): void {
    this.#namespaceOrThrow(entry.namespace, `create view ${entry.name} in`);
    this.#refuseTaken(entry, "create");
    this.#change(() => {
      this.#counters.store("next_table_id", entry.viewId + 1);
      this.#views.put(entry);
    });
    this.#noteId(entry.viewId);
    this.#views.remember(entry);
  }

  changeView(entry: ViewEntry): void {
    this.changeViews([entry]);
  }

  changeViews(entries: readonly ViewEntry[]): void {
    for (const entry of entries) {
      const before = defined(this.#views.byId(entry.viewId), "catalog: view not found");
      if (before.name !== entry.name) this.#refuseTaken(entry, "rename");
    }
    this.#change(() => {
      for (const entry of entries) this.#views.put(entry);
    });
    for (const entry of entries) this.#views.remember(entry);
  }

  dropViews(entries: readonly ViewEntry[]): void {
    if (entries.length === 0) return;
    this.#change(() => this.#views.remove(entries));
    this.#views.forget(entries);
  }

  topic(namespace: string, name: string): TopicEntry | undefined {
    return this.#topics.named(namespace, name);
  }

  topicById(topicId: number): TopicEntry | undefined {
    return this.#topics.byId(topicId);
  }

  topics(): readonly TopicEntry[] {
    return this.#topics.all();
  }

  createTopic(entry: TopicEntry, seq: Seq): void {
    const { topicId } = entry;
    this.#namespaceOrThrow(entry.namespace, `create topic ${entry.name} in`);
    this.#refuseTaken(entry, "create");
    this.#change(() => {
      this.#counters.store("next_table_id", topicId + 1);
      this.#topics.put(entry);
    }, seq);
    this.#noteId(topicId);
    this.#topics.remember(entry);
  }

  changeTopic(entry: TopicEntry, seq: Seq): void {
    const before = defined(this.#topics.byId(entry.topicId), "catalog: topic not found");
    assert(
      entry.partitions === before.partitions,
      "catalog: number of topic partitions cannot change",
    );
    assert(
      entry.clearedSeq >= before.clearedSeq,
      "catalog: the cleared seq of a topic would decrease",
    );
    this.#change(() => this.#topics.put(entry), seq);
    this.#topics.remember(entry);
  }

  dropTopics(entries: readonly TopicEntry[], seq: Seq): void {
    if (entries.length === 0) return;
    this.#change(() => this.#topics.remove(entries), seq);
    this.#topics.forget(entries);
  }

  sequence(namespace: string, name: string): SequenceEntry | undefined {
    return this.#sequences.named(namespace, name);
  }

  sequenceById(sequenceId: number): SequenceEntry | undefined {
    return this.#sequences.byId(sequenceId);
  }

  sequences(): readonly SequenceEntry[] {
    return this.#sequences.all();
  }

  createSequence(entry: SequenceEntry): void {
    this.#namespaceOrThrow(entry.namespace, `create sequence ${entry.name} in`);
    this.#refuseTaken(entry, "create");
    const dependents = this.#dependents({ sequences: [entry] });
    this.#change(dependents.store);
    dependents.remember();
  }

  changeSequence(entry: SequenceEntry, mark: SequenceMark | undefined): void {
    assert(this.#sequences.byId(entry.sequenceId) !== undefined, "catalog: sequence not found");
    const marks = mark === undefined ? [] : [mark];
    const dependents = this.#dependents({ sequences: [entry], marks });
    this.#change(dependents.store);
    dependents.remember();
  }

  dropSequences(entries: readonly SequenceEntry[]): void {
    if (entries.length === 0) return;
    const dependents = this.#dependents({ droppedSequences: entries });
    this.#change(dependents.store);
    dependents.remember();
  }

  type(namespace: string, name: string): TypeEntry | undefined {
    return this.#types.entries.named(namespace, name);
  }

  definedType(namespace: string, name: string): DefinedType | undefined {
    return this.#types.named(namespace, name);
  }

  types(): readonly TypeEntry[] {
    return this.#types.entries.all();
  }

  createTypes(entries: readonly TypeEntry[]): void {
    const lastId = Math.max(...entries.map(({ typeId }) => typeId));
    for (const entry of entries) {
      this.#namespaceOrThrow(entry.namespace, `create type ${entry.name} in`);
      this.#refuseTaken(entry, "create");
    }
    this.#change(() => {
      this.#counters.store("next_table_id", lastId + 1);
      for (const entry of entries) this.#types.entries.put(entry);
    });
    this.#noteId(lastId);
    for (const entry of entries) this.#types.remember(entry);
  }

  changeType(entry: TypeEntry): void {
    const before = defined(this.#types.entries.byId(entry.typeId), "catalog: type not found");
    if (before.name !== entry.name || before.namespace !== entry.namespace) {
      this.#refuseTaken(entry, "rename");
    }
    this.#change(() => this.#types.entries.put(entry));
    this.#types.entries.forget([before]);
    this.#types.remember(entry);
    if (entry.domain !== undefined) this.#tables.renewUsersOf(entry.typeId);
  }

  dropTypes(entries: readonly TypeEntry[]): void {
    if (entries.length === 0) return;
    this.#change(() => this.#types.entries.remove(entries));
    this.#types.forget(entries);
  }

  #putMarks(marks: readonly SequenceMark[]): void {
    for (const mark of marks) {
      putSealed(this.#file, "sequence_marks", { key: mark.sequenceId, value: mark });
    }
  }

  /**
   * Returns two functions for changes to views, topics and sequences. The first writes the entries
   * within a transaction, and the second updates memory once the transaction is durable.
   */
  #dependents({
    changedViews = [],
    droppedSequences = [],
    marks = [],
    sequences = [],
    topics = [],
    views = [],
  }: Dependents): { store: () => void; remember: () => void } {
    // Unused reserved numbers are given back, so that a sequence with changed options continues
    // after the last number it issued.
    this.numbers.giveBack(
      sequences.flatMap(({ sequenceId }) => this.#sequences.byId(sequenceId) ?? []),
    );
    const store = (): void => {
      this.#views.remove(views);
      for (const view of changedViews) {
        this.#counters.store("next_table_id", view.viewId + 1);
        this.#views.put(view);
      }
      for (const topic of topics) this.#topics.put(topic);
      for (const sequence of sequences) {
        this.#counters.store("next_table_id", sequence.sequenceId + 1);
        this.#sequences.put(sequence);
      }
      this.#putMarks(marks);
      this.#sequences.remove(droppedSequences);
      for (const { sequenceId } of droppedSequences) {
        removeSealed(this.#file, "sequence_marks", sequenceId);
      }
    };
    const remember = (): void => {
      this.#views.forget(views);
      for (const view of changedViews) {
        this.#noteId(view.viewId);
        this.#views.remember(view);
      }
      for (const topic of topics) this.#topics.remember(topic);
      for (const sequence of sequences) {
        this.#noteId(sequence.sequenceId);
        this.#sequences.remember(sequence);
      }
      for (const mark of marks) this.numbers.remember(mark);
      this.#sequences.forget(droppedSequences);
      for (const { sequenceId } of droppedSequences) this.numbers.forget(sequenceId);
    };
    return { store, remember };
  }

  /**
   * Records that the id of a table, or of another object with an id from the same counter, has
   * become durable.
   */
  #noteId(id: number): void {
    this.#counters.raise("next_table_id", id + 1);
    this.#nextTableId = Math.max(this.#nextTableId, id + 1);
  }

  #refuseTakenSequences({ sequences = [] }: Dependents): void {
    for (const sequence of sequences) {
      if (this.#sequences.byId(sequence.sequenceId) === undefined) {
        this.#refuseTaken(sequence, "create");
      }
    }
  }

  #putNamespace(entry: NamespaceEntry): void {
    this.#change(() => this.#storeNamespace(entry), entry.ownerSeq);
    this.#rememberNamespace(entry);
  }

  #storeNamespace(entry: NamespaceEntry): void {
    putSealed(this.#file, "namespaces", { key: entry.name, value: entry });
  }

  #rememberNamespace(entry: NamespaceEntry): void {
    this.#namespaces.set(entry.name, entry);
    this.#sortedNamespaces = undefined;
  }

  get #counters(): Counters {
    return this.#parts.counters;
  }

  get #files(): DefinitionParts["files"] {
    return this.#parts.files;
  }

  get #manifest(): DefinitionParts["manifest"] {
    return this.#parts.manifest;
  }

  /** Stores the numbers that sequences have reached. */
  changeMarks(marks: readonly SequenceMark[]): void {
    if (marks.length === 0) return;
    this.#change(() => this.#putMarks(marks));
    for (const mark of marks) this.numbers.remember(mark);
  }

  /** Runs a transaction that is durable at its end, and increments the catalog version. */
  #change(work: () => void, seq = 0): void {
    const version = this.version + 1;
    const orphans = this.#orphans.slice(0, REMOVED_PER_CHANGE);
    this.#file.transaction(() => {
      work();
      for (const id of orphans) removeSealed(this.#file, "table_definitions", id);
      this.#counters.store("catalog_version", version);
      this.#counters.store("highest_seq", seq);
    });
    this.#orphans = this.#orphans.slice(orphans.length);
    this.#counters.raise("catalog_version", version);
    this.#counters.raise("highest_seq", seq);
  }

  #newRecord(entry: TableEntry, seq: Seq): DefinitionRecord {
    const definitionId = this.#counters.get("next_definition_id");
    return { definitionId, fromSeq: seq, table: jsonFromTable(entry) };
  }

  #put(record: DefinitionRecord): void {
    this.#counters.store("next_definition_id", record.definitionId + 1);
    putSealed(this.#file, "table_definitions", { key: record.definitionId, value: record });
  }

  #endDefinition(tableId: number, seq: Seq): void {
    this.#put({ ...this.#tables.recordOf(tableId), toSeq: seq });
  }

  #remember(record: DefinitionRecord): void {
    this.#counters.raise("next_definition_id", record.definitionId + 1);
    this.#tables.remember(record);
  }

  /**
   * Refuses a name that is already in use. Tables, views, topics, sequences and types share one
   * set of names.
   */
  #refuseTaken({ name, namespace }: Named, action: "create" | "rename"): void {
    const taken =
      this.table(namespace, name) ??
      this.view(namespace, name) ??
      this.topic(namespace, name) ??
      this.sequence(namespace, name) ??
      this.type(namespace, name);
    if (taken === undefined) return;
    throw new DatabaseError(
      "ALREADY_EXISTS",
      `Cannot ${action} ${namespace}.${name}: it already exists`,
    );
  }

  #namespaceOrThrow(name: string, action: string): void {
    if (this.#namespaces.has(name)) return;
    throw new DatabaseError(
      "NAMESPACE_NOT_FOUND",
      `Cannot ${action} namespace ${name}: there is no such namespace`,
    );
  }
}
