/**
 * Provides dead letters as a source of messages: each row of the server's dead-letter table is a
 * message of the topic named by DEAD_LETTER.
 *
 * A dead-letter topic has this table as an additional source that appears in no definition. Its
 * offsets are therefore derived like those of any other topic. The source exists from the topic's
 * creation, but the table contains no rows for it until another topic names it in DEAD_LETTER.
 */
import type { Seq } from "../base/seq.ts";
import type { Catalog, TableEntry, TopicEntry, TopicSource } from "../catalog/mod.ts";
import { type CompiledExpression, DEAD_LETTER_COLUMNS, DEAD_LETTERS_TABLE } from "../sql/mod.ts";
import {
  type AllChangesOptions,
  type HistoryStore,
  SEQ_COLUMN_ID,
  SHARED_OWNER,
  type Store,
} from "../storage/mod.ts";
import { BOOLEAN, type Row, type Value, valueAt, vectorFromValues } from "../types/mod.ts";
import type { OwnerNames } from "./message_reader.ts";

const { tableId: TABLE_ID } = DEAD_LETTERS_TABLE;

/** The id of the dead-letter source. Sources in definitions are numbered from 1. */
const SOURCE_ID = 0;

/** The index of the column that identifies the dead-letter topic. */
const TARGET = 2;

const COLUMN_IDS: readonly number[] = DEAD_LETTER_COLUMNS.map(({ columnId }) => columnId);

/** The store methods used to read dead letters. */
type LetterStore = Pick<Store, "owners" | "scan" | "visibleSeq">;

type TopicCatalog = OwnerNames & Pick<Catalog, "changeTopic" | "tableById" | "topics">;

/** The dead-letter table as the message reader sees it, without the internal id of the topic. */
const ENTRY: TableEntry = {
  tableId: TABLE_ID,
  namespace: "system",
  name: "dead_letters",
  kind: "shared",
  columns: DEAD_LETTER_COLUMNS.filter(({ columnId }) => columnId !== TARGET).map((column) => ({
    columnId: column.columnId,
    name: column.name,
    type: column.type,
    missing: null,
    notNull: false,
    generatedAlways: false,
  })),
  primaryKey: [1],
  checks: [],
  options: {},
  schemaVersion: 1,
  nextColumnId: DEAD_LETTER_COLUMNS.length + 1,
  createdBy: "root",
  createdAtMs: 0,
  updatedAtMs: 0,
};

/** Whether a source is the dead-letter table. */
export function isDeadLetterSource({ tableId }: TopicSource): boolean {
  return tableId === TABLE_ID;
}

/**
 * Returns the condition of a topic's dead-letter source, and the columns that the condition reads.
 */
export function deadLetterCondition(topicId: number): {
  filter: CompiledExpression;
  columnIds: readonly number[];
} {
  const filter: CompiledExpression = {
    type: BOOLEAN,
    evaluate: ({ columns, rowCount }) => {
      const [column] = columns;
      const verdict: Value[] = [];
      for (let row = 0; row < rowCount; row += 1) {
        verdict.push(column !== undefined && Number(valueAt(column, row)) === topicId);
      }
      return vectorFromValues(BOOLEAN, verdict);
    },
  };
  return { filter, columnIds: [TARGET] };
}

/** A view of the catalog that adds the dead-letter source to topics that accept dead letters. */
export class DeadLetterCatalog implements TopicCatalog {
  readonly #catalog: TopicCatalog;
  readonly #withSource = new WeakMap<TopicEntry, TopicEntry>();
  /** Topics that accept dead letters or once did. */
  readonly #targets = new Set<number>();

  constructor(catalog: TopicCatalog, store: LetterStore) {
    this.#catalog = catalog;
    for (const { row } of letters(store)) this.#targets.add(targetOf(row));
  }

  topics(): readonly TopicEntry[] {
    const entries = this.#catalog.topics();
    const named = new Set(entries.map(({ deadLetter }) => deadLetter));
    for (const { name, namespace, topicId } of entries) {
      if (named.has(`${namespace}.${name}`)) this.#targets.add(topicId);
    }
    if (this.#targets.size === 0) return entries;
    return entries.map((entry) =>
      this.#targets.has(entry.topicId) ? this.#entryWithSource(entry) : entry,
    );
  }

  #entryWithSource(entry: TopicEntry): TopicEntry {
    const known = this.#withSource.get(entry);
    if (known !== undefined) return known;
    const source: TopicSource = {
      sourceId: SOURCE_ID,
      tableId: TABLE_ID,
      operation: "insert",
      payload: "full",
      fromSeq: entry.createdSeq,
    };
    const made = { ...entry, sources: [...entry.sources, source] };
    this.#withSource.set(entry, made);
    return made;
  }

  changeTopic(entry: TopicEntry, seq: Seq): void {
    const sources = entry.sources.filter((source) => !isDeadLetterSource(source));
    this.#catalog.changeTopic({ ...entry, sources }, seq);
  }

  tableById(tableId: number): TableEntry | undefined {
    return tableId === TABLE_ID ? ENTRY : this.#catalog.tableById(tableId);
  }

  get accounts(): OwnerNames["accounts"] {
    return this.#catalog.accounts;
  }
}

/** A dead letter that its topic has not discarded. */
export interface StoredLetter {
  readonly owner: number;
  readonly seq: number;
  readonly row: Row;
}

/** Returns the id of the dead-letter topic that a letter belongs to. */
export function targetOf(row: Row): number {
  return Number(row[1]);
}

/** A range of seqs, to select the dead letters written within it. */
export type LetterRange = Pick<AllChangesOptions, "after" | "upTo">;

/**
 * Yields the dead letters written within a range of seqs, including letters deleted since. A step
 * may yield nothing, to let other work run during a long search.
 */
export function* lettersWithin(
  store: Pick<HistoryStore, "changesOfAll">,
  range: LetterRange,
): Generator<{ readonly owner: number; readonly row: Row | undefined }> {
  const scan = store.changesOfAll(TABLE_ID, { ...range, columnIds: COLUMN_IDS });
  try {
    for (let batch = scan.next(); batch !== undefined; batch = scan.next()) {
      const { columns, deleted, owners, rowCount } = batch;
      if (rowCount === 0) yield { owner: SHARED_OWNER, row: undefined };
      for (let index = 0; index < rowCount; index += 1) {
        if (deleted[index] === 1) continue;
        const row = columns.map((column): Value => valueAt(column, index));
        yield { owner: owners[index] ?? SHARED_OWNER, row };
      }
    }
  } finally {
    scan.close();
  }
}

/**
 * Whether a dead letter without an owner may be read. Older versions of the server wrote such
 * letters. Erasing an account deletes the ownerless letters that name it, but their history
 * remains.
 */
export function isUnownedLetterKept(
  store: Pick<Store, "lookup" | "visibleSeq">,
  letterId: string | null,
): boolean {
  const { visibleSeq: upTo } = store;
  const options = { owner: SHARED_OWNER, key: [letterId], upTo, columnIds: [] };
  return store.lookup(TABLE_ID, options) !== undefined;
}

/** Yields all stored dead letters, one owner after another. */
export function* letters(store: LetterStore): Generator<StoredLetter> {
  const upTo = store.visibleSeq;
  for (const owner of store.owners(TABLE_ID)) yield* lettersOf(store, { owner, upTo });
}

function* lettersOf(
  store: LetterStore,
  { owner, upTo }: { owner: number; upTo: Seq },
): Generator<StoredLetter> {
  const columnIds = [...COLUMN_IDS, SEQ_COLUMN_ID];
  const scan = store.scan(TABLE_ID, { owner, upTo, columnIds });
  try {
    for (let batch = scan.next(); batch !== undefined; batch = scan.next()) {
      for (let index = 0; index < batch.rowCount; index += 1) {
        const values = batch.columns.map((column): Value => valueAt(column, index));
        yield { owner, seq: Number(values.pop()), row: values };
      }
    }
  } finally {
    scan.close();
  }
}
