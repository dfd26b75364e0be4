/**
 * Implements a private copy of the catalog, for a transaction that changes definitions. Its
 * changes exist only in memory, and only the transaction sees them. Everything except definitions
 * comes from the catalog itself.
 *
 *     draft ──change──► changed ──prepare──► replayed over the catalog ──publish──► durable
 *                          └──dropped: nothing has happened
 *
 * - The changes are recorded, and replayed at the commit, because a definition takes effect at the
 *   seq of its commit. Rows that other transactions commit before that seq belong to the previous
 *   definition.
 * - If another transaction has changed a definition since the draft was made, the draft cannot be
 *   published.
 */
import { assert } from "../base/assert.ts";
import { DatabaseError } from "../base/errors.ts";
import { SEQ_ZERO, type Seq } from "../base/seq.ts";
import type { Whole } from "../types/mod.ts";
import type { InvitationEntry, ServiceTokenEntry } from "./account_entries.ts";
import type {
  Catalog,
  CatalogAccounts,
  CatalogFiles,
  CatalogRevocations,
  CatalogStorages,
  Dependents,
  DraftedCatalog,
  PreparedDraft,
} from "./catalog.ts";
import type { DefinedType } from "./defined_types.ts";
import type { Definitions } from "./definitions.ts";
import type { DraftNumbers } from "./draft_numbers.ts";
import type {
  FunctionEntry,
  IndexEntry,
  NamespaceEntry,
  SequenceEntry,
  TableEntry,
  TypeEntry,
  ViewEntry,
} from "./entries.ts";
import type { SecretEntries } from "./named_secrets.ts";
import type { SequenceMark } from "./sequence_numbers.ts";
import type { TopicEntry, TopicSource } from "./topic_entries.ts";

/** A recorded change to definitions, which is replayed with the seq of the commit. */
type DraftedChange = (definitions: Definitions, at: At) => void;

/** Functions that replace the placeholder seq in entries with the seq of the commit. */
interface At {
  readonly seq: Seq;
  table(entry: TableEntry): TableEntry;
  view(entry: ViewEntry): ViewEntry;
  others(others: Dependents): Dependents;
}

/** The parts of the catalog that a draft needs. */
export interface DraftSource {
  /** The catalog, which provides everything except definitions. */
  readonly catalog: Catalog;
  /** Returns a copy of the definitions. Changes to the copy are not recorded. */
  copyOf(definitions: Definitions, numbers: DraftNumbers): Definitions;
  /** Returns a version number that no other draft has. */
  newVersion(): number;
  /** Replays recorded changes onto a copy of the catalog's definitions. */
  prepare(seq: Seq, replay: (definitions: Definitions) => void): PreparedDraft;
}

interface DraftState {
  readonly definitions: Definitions;
  readonly numbers: DraftNumbers;
  readonly changes: readonly DraftedChange[];
  /** The placeholder for the seq of the commit, which is not known yet. */
  readonly unplaced: Seq;
  /** The version of the catalog at the time when the first draft of the transaction was made. */
  readonly madeAt: number;
  readonly hasLastingChanges: boolean;
}

export class CatalogDraft implements DraftedCatalog {
  readonly #source: DraftSource;
  readonly #definitions: Definitions;
  readonly #numbers: DraftNumbers;
  readonly #changes: DraftedChange[];
  readonly #unplaced: Seq;
  readonly #madeAt: number;
  #hasLastingChanges: boolean;
  #version: number;

  constructor(source: DraftSource, state: DraftState) {
    this.#source = source;
    this.#definitions = state.definitions;
    this.#numbers = state.numbers;
    this.#changes = [...state.changes];
    this.#unplaced = state.unplaced;
    this.#madeAt = state.madeAt;
    this.#hasLastingChanges = state.hasLastingChanges;
    this.#version = source.newVersion();
  }

  draft(): DraftedCatalog {
    return this.copy();
  }

  copy(): CatalogDraft {
    const numbers = this.#numbers.copy();
    return new CatalogDraft(this.#source, {
      definitions: this.#source.copyOf(this.#definitions, numbers),
      numbers,
      changes: this.#changes,
      unplaced: this.#unplaced,
      madeAt: this.#madeAt,
      hasLastingChanges: this.#hasLastingChanges,
    });
  }

  get hasLastingChanges(): boolean {
    return this.#hasLastingChanges;
  }

  get hasChanges(): boolean {
    return this.#changes.length > 0;
  }

  requireCurrent(): void {
    if (this.#source.catalog.version === this.#madeAt) return;
    throw new DatabaseError(
      "SERIALIZATION_FAILURE",
      "Cannot continue the transaction: a concurrent transaction has changed definitions " +
        "since this transaction first did",
      { hint: "run the transaction again" },
    );
  }

  prepare(seq: Seq, adjusted: (table: TableEntry) => TableEntry): PreparedDraft {
    this.requireCurrent();
    const placed = placedAt(seq, this.#unplaced);
    const at = { ...placed, table: (entry: TableEntry) => placed.table(adjusted(entry)) };
    return this.#source.prepare(seq, (definitions) => {
      for (const change of this.#changes) change(definitions, at);
      definitions.changeMarks(this.#numbers.ownMarks());
    });
  }

  /**
   * Applies a change to the draft and records it. @param isLasting Whether the change affects more
   * than temporary objects.
   */
  #change(change: DraftedChange, isLasting = true): void {
    change(this.#definitions, AS_WRITTEN);
    this.#changes.push(change);
    this.#hasLastingChanges ||= isLasting;
    this.#version = this.#source.newVersion();
  }

  /**
   * Makes the draft issue the numbers of new sequences, and of sequences with a new mark. Until
   * the commit, these numbers exist only in memory.
   */
  #adopt({ marks = [], sequences = [] }: Dependents): void {
    const known = new Set(this.#definitions.sequences().map(({ sequenceId }) => sequenceId));
    const marked = new Set(marks.map(({ sequenceId }) => sequenceId));
    for (const sequence of sequences) {
      const { sequenceId } = sequence;
      if (!known.has(sequenceId) || marked.has(sequenceId)) this.#numbers.adopt(sequence);
    }
  }

  get version(): number {
    return this.#version;
  }

  namespace(name: string): NamespaceEntry | undefined {
    return this.#definitions.namespace(name);
  }

  namespaces(): readonly NamespaceEntry[] {
    return this.#definitions.namespaces();
  }

  createNamespace(entry: NamespaceEntry): void {
    this.#change((definitions) => definitions.createNamespace(entry));
  }

  dropNamespace(name: string): void {
    this.#change((definitions) => definitions.dropNamespace(name));
  }

  changeNamespace(entry: NamespaceEntry): void {
    const isSameOwner = this.namespace(entry.name)?.owner === entry.owner;
    this.#change((definitions, { seq }) => {
      const ownerSeq = isSameOwner ? definitions.namespace(entry.name)?.ownerSeq : seq;
      definitions.changeNamespace({ ...entry, ...(ownerSeq !== undefined && { ownerSeq }) });
    });
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
    return this.#source.catalog.nextTableId();
  }

  createTable(entry: TableEntry, _seq: Seq, others: Dependents = {}): void {
    this.#adopt(others);
    this.#change(
      (definitions, at) => definitions.createTable(at.table(entry), at.seq, at.others(others)),
      outlives(entry, others),
    );
  }

  changeTable(entry: TableEntry, _seq: Seq, others: Dependents = {}): void {
    this.#adopt(others);
    this.#change(
      (definitions, at) => definitions.changeTable(at.table(entry), at.seq, at.others(others)),
      outlives(entry, others),
    );
  }

  dropTable(tableId: number, _seq: Seq, others: Dependents = {}): void {
    this.#change(
      (definitions, at) => definitions.dropTable(tableId, at.seq, at.others(others)),
      outlives(this.tableById(tableId), others),
    );
  }

  tableVersions(tableId: number): readonly TableEntry[] {
    return this.#definitions.tableVersions(tableId);
  }

  tableAt(tableId: number, seq: Seq): TableEntry | undefined {
    return this.#source.catalog.tableAt(tableId, seq);
  }

  tableDroppedSeq(namespace: string, name: string): number {
    return this.#source.catalog.tableDroppedSeq(namespace, name);
  }

  deletionAgeMs(tableId: number, seq: Seq): number | undefined {
    return this.#source.catalog.deletionAgeMs(tableId, seq);
  }

  rowRightsSeq(tableId: number, userId: string): number {
    return this.#source.catalog.rowRightsSeq(tableId, userId);
  }

  view(namespace: string, name: string): ViewEntry | undefined {
    return this.#definitions.view(namespace, name);
  }

  viewById(viewId: number): ViewEntry | undefined {
    return this.#definitions.viewById(viewId);
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
    this.#change((definitions, at) => definitions.createView(at.view(entry)), !isOnlyHere(entry));
  }

  changeView(entry: ViewEntry): void {
    this.changeViews([entry]);
  }

  changeViews(entries: readonly ViewEntry[]): void {
    this.#change(
      (definitions, at) => definitions.changeViews(entries.map((each) => at.view(each))),
      !entries.every(isOnlyHere),
    );
  }

  dropViews(entries: readonly ViewEntry[]): void {
    this.#change((definitions) => definitions.dropViews(entries), !entries.every(isOnlyHere));
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

  createTopic(entry: TopicEntry): void {
    this.#change((definitions, { seq }) => definitions.createTopic(entry, seq));
  }

  changeTopic(entry: TopicEntry): void {
    this.#change((definitions, { seq }) => definitions.changeTopic(entry, seq));
  }

  dropTopics(entries: readonly TopicEntry[]): void {
    this.#change((definitions, { seq }) => definitions.dropTopics(entries, seq));
  }

  sequence(namespace: string, name: string): SequenceEntry | undefined {
    return this.#definitions.sequence(namespace, name);
  }

  sequences(): readonly SequenceEntry[] {
    return this.#definitions.sequences();
  }

  createSequence(entry: SequenceEntry): void {
    this.#adopt({ sequences: [entry] });
    this.#change((definitions) => definitions.createSequence(entry), !isOnlyHere(entry));
  }

  changeSequence(entry: SequenceEntry, mark?: SequenceMark): void {
    this.#adopt({ sequences: [entry], marks: mark === undefined ? [] : [mark] });
    this.#change((definitions) => definitions.changeSequence(entry, mark), !isOnlyHere(entry));
  }

  dropSequences(entries: readonly SequenceEntry[]): void {
    this.#change((definitions) => definitions.dropSequences(entries), !entries.every(isOnlyHere));
  }

  nextNumber(sequence: SequenceEntry): Whole {
    return this.#numbers.next(sequence);
  }

  setNumber(sequence: SequenceEntry, value: Whole, isCalled: boolean): void {
    this.#numbers.set(sequence, value, isCalled);
  }

  takeBackNumbers(sequence: SequenceEntry, now: SequenceMark, before: SequenceMark): void {
    this.#numbers.takeBack(sequence, now, before);
  }

  sequenceMark(sequence: SequenceEntry): SequenceMark {
    return this.#numbers.mark(sequence);
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
    this.#change((definitions) => definitions.createTypes(entries));
  }

  changeType(entry: TypeEntry): void {
    assert(
      entry.domain !== undefined,
      "catalog draft: only a domain can be changed in a transaction",
    );
    this.#change((definitions) => definitions.changeType(entry));
  }

  dropTypes(entries: readonly TypeEntry[]): void {
    this.#change((definitions) => definitions.dropTypes(entries));
  }

  get storages(): CatalogStorages {
    return this.#source.catalog.storages;
  }

  get accessVersion(): number {
    return this.#source.catalog.accessVersion;
  }

  get accounts(): CatalogAccounts {
    return this.#source.catalog.accounts;
  }

  get serviceTokens(): SecretEntries<ServiceTokenEntry> {
    return this.#source.catalog.serviceTokens;
  }

  get invitations(): SecretEntries<InvitationEntry> {
    return this.#source.catalog.invitations;
  }

  get revocations(): CatalogRevocations {
    return this.#source.catalog.revocations;
  }

  get files(): CatalogFiles {
    return this.#source.catalog.files;
  }

  close(): void {
    throw new Error("catalog draft: a draft cannot be closed");
  }
}

/** Returns whether a view or sequence ends with the transaction. */
function isOnlyHere({ isTemporary }: { readonly isTemporary?: true | undefined }): boolean {
  return isTemporary === true;
}

/** Returns whether a change to a table and other definitions outlives the transaction. */
function outlives(
  entry: TableEntry | undefined,
  { changedViews = [], topics = [], views = [] }: Dependents,
): boolean {
  // Sequences do not count, because the sequences of a temporary table belong to its columns.
  return entry?.isTemporary !== true || [...changedViews, ...topics, ...views].length > 0;
}

/**
 * Leaves entries unchanged. Within the transaction, they keep the placeholder seq with which they
 * were written.
 */
const AS_WRITTEN: At = {
  seq: SEQ_ZERO,
  table: (entry) => entry,
  view: (entry) => entry,
  others: (others) => others,
};

function placedAt(seq: Seq, unplaced: Seq): At {
  const placeholder: number | undefined = unplaced;
  const moved = <T extends number | undefined>(at: T): T | Seq => (at === placeholder ? seq : at);
  const view = (entry: ViewEntry): ViewEntry => {
    const changedSeq = moved(entry.changedSeq);
    return changedSeq === undefined ? entry : { ...entry, changedSeq };
  };
  const source = (each: TopicSource): TopicSource => {
    const toSeq = moved(each.toSeq);
    return toSeq === undefined ? each : { ...each, toSeq };
  };
  const index = (each: IndexEntry): IndexEntry => {
    const enforcedSeq = moved(each.enforcedSeq);
    return enforcedSeq === undefined ? each : { ...each, enforcedSeq };
  };
  return {
    seq,
    view,
    table: ({ foreignKeys, indexes, ...rest }) => ({
      ...rest,
      ...(foreignKeys && {
        foreignKeys: foreignKeys.map((key) => ({ ...key, sinceSeq: moved(key.sinceSeq) })),
      }),
      ...(indexes && { indexes: indexes.map(index) }),
    }),
    others: ({ changedViews = [], topics = [], ...rest }) => ({
      ...rest,
      changedViews: changedViews.map(view),
      topics: topics.map((topic) => ({ ...topic, sources: topic.sources.map(source) })),
    }),
  };
}
