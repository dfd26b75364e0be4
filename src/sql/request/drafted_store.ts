/**
 * The store as seen by a transaction that has changed definitions. The tables that the transaction
 * has created, altered or dropped have their new definitions only in this view. All other tables,
 * and all rows, are those of the store.
 *
 * There are two views of the rows. Statements on rows see only the stored rows; they add the rows
 * that the transaction has staged themselves. Statements that change definitions see both, as rows
 * with seqs:
 *
 *     stored rows                    staged rows, in the order in which they were first staged
 *     … ──────────────► snapshot ──► snapshot + 1, snapshot + 2, … ──► the newest seq
 *
 * Rows that such a statement writes, such as the new values of a column, are also staged.
 */
import { assert, defined } from "../../base/assert.ts";
import { DatabaseError } from "../../base/errors.ts";
import type { Seq } from "../../base/seq.ts";
import type { DraftedCatalog } from "../../catalog/mod.ts";
import {
  type Commit,
  computedKey,
  indexColumnsOf,
  type LookupOptions,
  type Scan,
  type ScanOptions,
  SHARED_OWNER,
  type Store,
  shownKey,
  type TableDefinition,
  type TableWrite,
  type WriteBatch,
} from "../../storage/mod.ts";
import { type DataType, type Row, type Value, valueAt } from "../../types/mod.ts";
import type { Transaction } from "../execute/context/transaction.ts";
import { keyTextOf } from "../execute/keys/key_text.ts";
import {
  convertedRow,
  type DraftedTable,
  draftedRow,
  draftedScan,
  NO_SCAN,
  readColumns,
} from "./drafted_columns.ts";
import { keyTextIn, keyTypesOf, seenScan, valuesIn } from "./staged_scan.ts";

/** An upper bound that exceeds the number of rows that any transaction can stage. */
const STAGED_ROWS_MAX = 1_000_000_000;

/** The tables whose definitions the transaction has changed, keyed by id. */
export type DraftedTables = Map<number, DraftedTable>;

export interface DraftedStoreOptions {
  readonly store: Store;
  readonly catalog: DraftedCatalog;
  readonly tables: DraftedTables;
  readonly transaction: Transaction;
  /** Returns a table's definition in the store. */
  readonly storedOf: (tableId: number) => TableDefinition | undefined;
  /**
   * Receives the tables on whose stored rows a change of definitions depends. Absent for
   * statements on rows.
   */
  readonly onInspected?: (tableId: number) => void;
}

/** The contents of an index: for each key, the primary keys of the rows that have this key. */
type KeyHolders = ReadonlyMap<string, readonly Row[]>;

export class DraftedStore implements Store {
  readonly #options: DraftedStoreOptions;
  readonly #store: Store;
  readonly #tables: DraftedTables;
  readonly #transaction: Transaction;
  /** The contents of the indexes that the store does not have. */
  readonly #holders = new Map<string, KeyHolders>();

  constructor(options: DraftedStoreOptions) {
    this.#options = options;
    this.#store = options.store;
    this.#tables = options.tables;
    this.#transaction = options.transaction;
  }

  /**
   * Whether this store serves a statement that changes definitions, which sees staged rows as if
   * they were stored.
   */
  get #isForDefinitions(): boolean {
    return this.#options.onInspected !== undefined;
  }

  get visibleSeq(): Seq {
    return this.#isForDefinitions ? this.#stagedSeq(STAGED_ROWS_MAX) : this.#store.visibleSeq;
  }

  get appliedSeq(): Seq {
    return this.#isForDefinitions ? this.#stagedSeq(STAGED_ROWS_MAX) : this.#store.appliedSeq;
  }

  /**
   * Returns the seq under which a staged row is seen.
   *
   * @param place The position of the row in the order of staging, from 0.
   */
  #stagedSeq(place: number): Seq {
    return (this.#transaction.snapshotSeq + 1 + place) as Seq;
  }

  /** Returns the seq up to which stored rows are read. */
  #storedUpTo(upTo: Seq): Seq {
    return this.#isForDefinitions ? (Math.min(upTo, this.#transaction.snapshotSeq) as Seq) : upTo;
  }

  get onVisible(): Store["onVisible"] {
    return this.#store.onVisible;
  }

  requireFreeSpace(): void {
    this.#store.requireFreeSpace();
  }

  /** Returns the seq that represents the position of the future commit. */
  issueSeq(): Seq {
    return this.#transaction.snapshotSeq;
  }

  snowflakeId(): number {
    return this.#store.snowflakeId();
  }

  defineTable(definition: TableDefinition): void {
    const { tableId } = definition;
    const { catalog, storedOf } = this.#options;
    const known = this.#tables.get(tableId);
    const stored = known === undefined ? storedOf(tableId) : known.stored;
    const before = known?.definition ?? stored;
    if (stored !== undefined) requireNoNewExclusion(definition, stored);
    this.#tables.set(tableId, { definition, stored });
    this.#holders.clear();
    if (before === undefined) return;
    const columnIds = definition.columns.map(({ columnId }) => columnId);
    const columns = readColumns(columnIds, { from: before, to: definition });
    // A staged row has its values in the order of the earlier definition.
    const sources = columns.sources.map((source, i) => {
      const at = before.columns.findIndex(({ columnId }) => columnId === columnIds[i]);
      return source.at === undefined ? source : { ...source, at };
    });
    const entry = catalog.tableById(tableId);
    this.#transaction.redefine(tableId, {
      schemaVersion: defined(entry, "draft store: redefined table not found").schemaVersion,
      convert: (row) => convertedRow(row, { ...columns, sources }),
      keyTextOf: (row) => keyTextIn(definition, row),
    });
  }

  dropTable(tableId: number): void {
    const known = this.#tables.get(tableId);
    const stored = known === undefined ? this.#options.storedOf(tableId) : known.stored;
    this.#tables.set(tableId, { definition: undefined, stored });
    this.#transaction.dropTable(tableId);
  }

  /**
   * Returns the new and the stored definition of a table; undefined if the transaction has not
   * changed its definition.
   */
  #drafted(
    tableId: number,
  ):
    | { readonly definition: TableDefinition; readonly stored: TableDefinition | undefined }
    | undefined {
    const drafted = this.#tables.get(tableId);
    if (drafted === undefined) return undefined;
    const { definition, stored } = drafted;
    if (definition !== undefined) return { definition, stored };
    throw new DatabaseError("TABLE_NOT_FOUND", `Cannot open table ${tableId}: it has been dropped`);
  }

  #definitionOf(tableId: number): TableDefinition {
    const found = this.#drafted(tableId)?.definition ?? this.#options.storedOf(tableId);
    return defined(found, "draft store: table not found");
  }

  #inspect(tableId: number): void {
    if (this.#tables.get(tableId)?.stored !== undefined || !this.#tables.has(tableId)) {
      this.#options.onInspected?.(tableId);
    }
  }

  scan(tableId: number, options: ScanOptions): Scan {
    if (!this.#isForDefinitions) return this.#storedScan(tableId, options);
    this.#inspect(tableId);
    const staged = this.#transaction.stagedOf(tableId, options.owner);
    const upTo = this.#storedUpTo(options.upTo);
    const seqMax = Math.min(options.seqMax ?? upTo, upTo) as Seq;
    const stored = { ...options, upTo, seqMax };
    if (staged === undefined) return this.#storedScan(tableId, stored);
    const definition = this.#definitionOf(tableId);
    const columnIds = [...options.columnIds, ...definition.keyColumnIds];
    return seenScan(this.#storedScan(tableId, { ...stored, columnIds }), {
      definition,
      options,
      staged,
      snapshotSeq: this.#transaction.snapshotSeq,
    });
  }

  #storedScan(tableId: number, options: ScanOptions): Scan {
    const drafted = this.#drafted(tableId);
    if (drafted === undefined) return this.#store.scan(tableId, options);
    const { definition, stored } = drafted;
    return stored === undefined
      ? NO_SCAN
      : draftedScan(this.#store, { definition, stored }, options);
  }

  scanOrdered(
    tableId: number,
    options: Parameters<Store["scanOrdered"]>[1],
  ): ReturnType<Store["scanOrdered"]> {
    return this.#tables.has(tableId) ? undefined : this.#store.scanOrdered(tableId, options);
  }

  scanIndex(
    tableId: number,
    options: Parameters<Store["scanIndex"]>[1],
  ): ReturnType<Store["scanIndex"]> {
    return this.#tables.has(tableId) ? undefined : this.#store.scanIndex(tableId, options);
  }

  scanChosen(
    tableId: number,
    options: Parameters<Store["scanChosen"]>[1],
  ): ReturnType<Store["scanChosen"]> {
    return this.#tables.has(tableId) ? undefined : this.#store.scanChosen(tableId, options);
  }

  lookup(tableId: number, options: LookupOptions): Row | undefined {
    if (this.#isForDefinitions) {
      this.#inspect(tableId);
      const definition = this.#definitionOf(tableId);
      const text = keyTextOf(keyTypesOf(definition), options.key);
      const mine = this.#transaction.stagedOf(tableId, options.owner)?.get(text);
      if (mine !== undefined) {
        return mine.isDeleted ? undefined : valuesIn(definition, mine.row, options.columnIds);
      }
    }
    return this.#storedRow(tableId, { ...options, upTo: this.#storedUpTo(options.upTo) });
  }

  #storedRow(tableId: number, options: LookupOptions): Row | undefined {
    const drafted = this.#drafted(tableId);
    if (drafted === undefined) return this.#store.lookup(tableId, options);
    const { definition, stored } = drafted;
    return stored && draftedRow(this.#store, { definition, stored }, options);
  }

  lookupIndex(
    tableId: number,
    options: Parameters<Store["lookupIndex"]>[1],
  ): readonly Row[] | undefined {
    const { columnIds, indexId, key, owner, upTo } = options;
    if (!this.#isForDefinitions && !this.#tables.has(tableId)) {
      return this.#store.lookupIndex(tableId, options);
    }
    const name = `${tableId}/${indexId}/${owner}/${upTo}`;
    let holders = this.#holders.get(name);
    if (holders === undefined) {
      holders = this.#holdersIn(tableId, { indexId, owner, upTo });
      this.#holders.set(name, holders);
    }
    const types = this.#keyOf(tableId, indexId).types;
    const rows: Row[] = [];
    for (const primary of holders.get(keyTextOf(types, key)) ?? []) {
      const row = this.lookup(tableId, { owner, key: primary, upTo, columnIds });
      if (row !== undefined) rows.push(row);
    }
    return rows;
  }

  /**
   * Returns the types of the columns of an index key, and a function that computes the key of a
   * row.
   */
  #keyOf(
    tableId: number,
    indexId: number,
  ): { readonly types: readonly DataType[]; readonly keyOf: (row: Row) => Row | undefined } {
    const { columns, indexes = [] } = this.#definitionOf(tableId);
    const index = defined(
      indexes.find((each) => each.indexId === indexId),
      "draft store: index not found",
    );
    const parts = indexColumnsOf(columns, index);
    const placeOf = (id: number): number => columns.findIndex(({ columnId }) => columnId === id);
    return {
      types: parts.map(({ type }) => type),
      keyOf: (row) => {
        const key = parts.map(({ columnId, expression }): Value => {
          if (expression === undefined) return row[placeOf(columnId)] ?? null;
          const read = expression.reads.map((each) => row[placeOf(each.columnId)] ?? null);
          return computedKey(expression, read);
        });
        return index.equalNulls !== true && key.includes(null) ? undefined : key;
      },
    };
  }

  #holdersIn(
    tableId: number,
    { indexId, owner, upTo }: { indexId: number; owner: number; upTo: Seq },
  ): KeyHolders {
    const holders = new Map<string, Row[]>();
    const { keyOf, types } = this.#keyOf(tableId, indexId);
    const definition = this.#definitionOf(tableId);
    for (const row of this.#rowsOf(tableId, owner, upTo)) {
      const key = keyOf(row);
      if (key === undefined) continue;
      const text = keyTextOf(types, key);
      const primary = valuesIn(definition, row, definition.keyColumnIds);
      const known = holders.get(text);
      if (known === undefined) holders.set(text, [primary]);
      else known.push(primary);
    }
    return holders;
  }

  *#rowsOf(tableId: number, owner: number, upTo: Seq): Generator<Row> {
    const columnIds = this.#definitionOf(tableId).columns.map(({ columnId }) => columnId);
    const scan = this.scan(tableId, { owner, upTo, columnIds });
    try {
      for (let batch = scan.next(); batch !== undefined; batch = scan.next()) {
        const { columns, rowCount } = batch;
        for (let row = 0; row < rowCount; row += 1) {
          yield columns.map((column) => valueAt(column, row));
        }
      }
    } finally {
      scan.close();
    }
  }

  async buildIndex(): Promise<boolean> {
    // The index is built only after the transaction has committed.
    return true;
  }

  /**
   * Checks that the rows have no duplicates in a unique index that the transaction has defined.
   * @throws {DatabaseError} DUPLICATE_KEY
   */
  async checkIndex(tableId: number, indexId: number): Promise<boolean> {
    const { indexes = [], name } = this.#definitionOf(tableId);
    const index = defined(
      indexes.find((each) => each.indexId === indexId),
      "draft store: index not found",
    );
    // Only a table created by the transaction can have a new exclusion constraint, so the commit
    // compares all of its rows.
    if (index.isExclusion === true) return true;
    const { keyOf, types } = this.#keyOf(tableId, indexId);
    for (const owner of this.owners(tableId)) {
      const found = new Set<string>();
      for (const row of this.#rowsOf(tableId, owner, this.appliedSeq)) {
        const key = keyOf(row);
        if (key === undefined) continue;
        const text = keyTextOf(types, key);
        if (found.has(text)) {
          const parts = indexColumnsOf(this.#definitionOf(tableId).columns, index);
          const shown =
            owner === SHARED_OWNER
              ? `several rows have ${shownKey(parts, key)}`
              : "a user has several rows with the same key";
          throw new DatabaseError(
            "DUPLICATE_KEY",
            `Cannot create unique index "${index.name}" on ${name}: ${shown}`,
            { hint: "change or delete these rows, except for one of them" },
          );
        }
        found.add(text);
      }
    }
    return true;
  }

  /** Stages the rows that a change of definitions rewrites. */
  apply({ writes }: WriteBatch): Commit {
    assert(this.#isForDefinitions, "draft store: write outside a schema change");
    let firstSeq = Number.POSITIVE_INFINITY;
    let lastSeq = 0;
    for (const write of writes) {
      const places = this.#stage(write);
      for (const place of places) {
        firstSeq = Math.min(firstSeq, this.#stagedSeq(place));
        lastSeq = Math.max(lastSeq, this.#stagedSeq(place));
      }
    }
    return { firstSeq: firstSeq as Seq, lastSeq: lastSeq as Seq };
  }

  /** Stages the rows of a write. Returns the position of each row in the order of staging. */
  #stage({ operation, owner, rows, tableId }: TableWrite): readonly number[] {
    assert(operation === "update", "draft store: schema change must only update");
    const definition = this.#definitionOf(tableId);
    const table = defined(this.#options.catalog.tableById(tableId), "draft store: table not found");
    const columnIds = definition.columns.map(({ columnId }) => columnId);
    const upTo = this.#transaction.snapshotSeq;
    const texts = rows.map((row) => {
      const text = keyTextIn(definition, row);
      const mine = this.#transaction.stagedOf(tableId, owner)?.get(text);
      const key = valuesIn(definition, row, definition.keyColumnIds);
      const stored =
        mine === undefined
          ? this.#storedRow(tableId, { owner, key, upTo, columnIds })
          : mine.stored;
      const to = { table, owner, isRewrite: true };
      this.#transaction.stage(to, text, { row, isDeleted: false, stored });
      return text;
    });
    this.#holders.clear();
    const wanted = new Set(texts);
    const staged = this.#transaction.stagedOf(tableId, owner)?.keys() ?? [];
    return [...staged].flatMap((text, place) => (wanted.has(text) ? place : []));
  }

  async durable(seq: Seq): Promise<void> {
    if (!this.#isForDefinitions) await this.#store.durable(seq);
  }

  owners(tableId: number): readonly number[] {
    const drafted = this.#drafted(tableId);
    const isStored = drafted === undefined || drafted.stored !== undefined;
    const stored = isStored ? this.#store.owners(tableId) : [];
    if (!this.#isForDefinitions) return stored;
    this.#inspect(tableId);
    const owners = new Set([...stored, ...this.#transaction.ownersOf(tableId)]);
    return [...owners].toSorted((left, right) => left - right);
  }

  liveRowCount(tableId: number, owner: number | undefined): number {
    const drafted = this.#drafted(tableId);
    const isStored = drafted === undefined || drafted.stored !== undefined;
    const stored = isStored ? this.#store.liveRowCount(tableId, owner) : 0;
    if (!this.#isForDefinitions) return stored;
    let count = stored;
    for (const each of owner === undefined ? this.#transaction.ownersOf(tableId) : [owner]) {
      for (const row of this.#transaction.stagedOf(tableId, each)?.values() ?? []) {
        count += (row.isDeleted ? 0 : 1) - (row.stored === undefined ? 0 : 1);
      }
    }
    // A change of definitions may be allowed only as long as the table is empty, so the commit
    // must know that the table was inspected.
    if (count === 0) this.#inspect(tableId);
    return count;
  }

  #isStored(tableId: number): boolean {
    const drafted = this.#drafted(tableId);
    return drafted === undefined || drafted.stored !== undefined;
  }

  distinctValues(tableId: number, columnId: number): number | undefined {
    return this.#tables.has(tableId) ? undefined : this.#store.distinctValues(tableId, columnId);
  }

  expiredSeq(tableId: number): number {
    return this.#isStored(tableId) ? this.#store.expiredSeq(tableId) : 0;
  }

  earliestSeq(tableId: number, owner: number): Seq {
    this.#refusePast(tableId);
    return this.#store.earliestSeq(tableId, owner);
  }

  changes(tableId: number, options: Parameters<Store["changes"]>[1]): ReturnType<Store["changes"]> {
    this.#refusePast(tableId);
    return this.#store.changes(tableId, options);
  }

  wholeCommitsUpTo(tableId: number, owner: number, upTo: Seq): Seq {
    this.#refusePast(tableId);
    return this.#store.wholeCommitsUpTo(tableId, owner, upTo);
  }

  lastCommitUpTo(tableId: number, owner: number, upTo: Seq): Seq {
    this.#refusePast(tableId);
    return this.#store.lastCommitUpTo(tableId, owner, upTo);
  }

  /**
   * Refuses to read earlier states of a table that the transaction has changed.
   * @throws {DatabaseError} UNSUPPORTED_FEATURE
   */
  #refusePast(tableId: number): void {
    const drafted = this.#drafted(tableId);
    if (drafted === undefined) return;
    throw new DatabaseError(
      "UNSUPPORTED_FEATURE",
      `Cannot read an earlier state of ${drafted.definition.name}: this transaction has ` +
        "created or altered the table",
      { hint: "read the earlier state before the transaction begins, or after it has ended" },
    );
  }

  stats(tableId: number): ReturnType<Store["stats"]> {
    if (this.#isStored(tableId)) return this.#store.stats(tableId);
    return {
      liveRows: 0,
      unflushedVersions: 0,
      segments: 0,
      bytes: 0,
      memoryBytes: 0,
      minSeq: 0,
      maxSeq: 0,
      lastFlushedAtMs: undefined,
    };
  }

  flushedStats(tableId: number, owner: number | undefined): ReturnType<Store["flushedStats"]> {
    if (this.#isStored(tableId)) return this.#store.flushedStats(tableId, owner);
    return {
      segments: 0,
      versions: 0,
      minSeq: 0,
      maxSeq: 0,
      unflushedVersions: 0,
      lastFlushedAtMs: undefined,
      isDamaged: false,
      isCountable: true,
    };
  }

  segments(): ReturnType<Store["segments"]> {
    return this.#store.segments();
  }

  commitMs(seq: number): number {
    return this.#store.commitMs(seq);
  }

  lastSeqUpTo(unixMs: number): number {
    return this.#store.lastSeqUpTo(unixMs);
  }

  agedSeq(ageMs: number): number {
    return this.#store.agedSeq(ageMs);
  }

  wasLost(seq: number): boolean {
    return this.#store.wasLost(seq);
  }

  stage(): never {
    throw outside("a staged commit");
  }

  exclusively(): never {
    throw outside("a commit");
  }

  applyWith(): never {
    throw outside("a commit");
  }

  flush(): never {
    throw outside("a flush");
  }

  compact(): never {
    throw outside("a merge");
  }

  erase(): never {
    throw outside("an erasure");
  }

  close(): never {
    throw outside("the end of the store");
  }
}

function outside(what: string): Error {
  return new Error(`draft store: ${what} is not possible within a transaction`);
}

/**
 * Refuses a new exclusion constraint on a table with stored rows. The constraint would be built
 * after the commit, when overlapping ranges could no longer be rejected.
 *
 * @throws {DatabaseError} UNSUPPORTED_FEATURE
 */
function requireNoNewExclusion(definition: TableDefinition, stored: TableDefinition): void {
  const known = new Set(stored.indexes?.map(({ indexId }) => indexId));
  const added = definition.indexes?.find(
    ({ indexId, isExclusion }) => isExclusion === true && !known.has(indexId),
  );
  if (added === undefined) return;
  throw new DatabaseError(
    "UNSUPPORTED_FEATURE",
    `Cannot add EXCLUDE constraint "${added.name}" to ${definition.name} in this transaction: ` +
      "the table already existed before it",
    { hint: "add the constraint outside a transaction" },
  );
}
