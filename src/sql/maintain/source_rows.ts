/**
 * Reads the rows of a source that have a given key as of a seq. It finds them by the primary key,
 * an index of the store, or an in-memory index.
 */
import { defined } from "../../base/assert.ts";
import type { Seq } from "../../base/seq.ts";
import type { ReadStore } from "../../storage/mod.ts";
import { type Row, valueAt } from "../../types/mod.ts";
import type { SourceAccess } from "./join_routes.ts";
import type { KeptColumns, KeptIndex, KeptIndexes } from "./kept_index.ts";
import { CannotFollow } from "./not_maintained.ts";
import type { SourcePlace } from "./tuple_space.ts";

/** The number of rows requested in one read of an index. */
const ROWS_PER_READ = 256;

/**
 * The maximum number of rows that a step reads in total. Looking up a row takes about 4 µs, and
 * the event loop is blocked during the step.
 */
const ROWS_MAX = 20_000;

/** The maximum number of rows in a table that a join without an equality may read completely. */
export const SCANNED_ROWS_MAX = 5000;

/**
 * The maximum number of row pairs that a step tests for joins without an equality. Each test takes
 * about 0.3 µs.
 */
const SCANNED_PAIRS_MAX = 400_000;

export interface SourceKey {
  readonly access: Pick<SourceAccess, "index" | "isScan" | "kept">;
  /**
   * The values of the key. Rows with a NULL key are found only by an in-memory index for groups.
   */
  readonly key: Row;
  readonly upTo: Seq;
}

export interface SourceRowsOptions {
  readonly store: ReadStore;
  readonly places: readonly SourcePlace[];
  /** The owner of the rows in each source. */
  readonly owners: readonly number[];
  readonly indexes: KeptIndexes;
}

export class SourceRows {
  readonly #options: SourceRowsOptions;
  readonly #kept = new Map<string, KeptIndex>();
  /** The number of rows that the current step has read. */
  #rowsRead = 0;
  /** The number of row pairs that the current step has tested for joins that read all rows. */
  #pairsTested = 0;
  /**
   * The rows of the sources that the current step has read completely, keyed by source and seq.
   */
  readonly #allRows = new Map<string, readonly Row[]>();

  constructor(options: SourceRowsOptions) {
    this.#options = options;
  }

  /** The in-memory indexes that the current step uses. */
  get kept(): readonly KeptIndex[] {
    return [...new Set(this.#kept.values())];
  }

  /** Returns the in-memory index on the given columns of a source. */
  keptIndex(source: number, { columnIds, hasNulls }: KeptColumns): KeptIndex {
    const key = JSON.stringify([source, columnIds, hasNulls]);
    const known = this.#kept.get(key);
    if (known !== undefined) return known;
    const { indexes, owners, places } = this.#options;
    const { table } = defined(
      places[source],
      "maintained join: source has no place in the tuple",
    ).source;
    const index = indexes.indexOf({ table, owner: owners[source] ?? 0, columnIds, hasNulls });
    this.#kept.set(key, index);
    return index;
  }

  /** Resets the counts of rows and pairs, which are limited for each step. */
  beginStep(): void {
    this.#rowsRead = 0;
    this.#pairsTested = 0;
    this.#allRows.clear();
  }

  /** Drops the rows that were kept for the current step. */
  endStep(): void {
    this.#allRows.clear();
  }

  /**
   * Returns the rows that have the key as of `upTo`.
   *
   * @throws {CannotFollow} if the index no longer covers that seq, or the step has read too many
   *   rows
   * @throws {DatabaseError}
   */
  find(source: number, { access, key, upTo }: SourceKey): readonly Row[] {
    const { owners, places, store } = this.#options;
    const place = defined(places[source], "maintained join: source has no place in the tuple");
    const { tableId } = place.source.table;
    const { columnIds } = place;
    const owner = owners[source] ?? 0;
    const { index, isScan, kept } = access;
    if (isScan) {
      const rows = this.#all(source, upTo);
      this.#pairsTested += rows.length;
      if (this.#pairsTested > SCANNED_PAIRS_MAX) throw new CannotFollow();
      return rows;
    }
    if (kept !== undefined) {
      const rows: Row[] = [];
      for (const own of this.keptIndex(source, kept).find(key, upTo)) {
        const row = store.lookup(tableId, { owner, key: own, upTo, columnIds });
        if (row !== undefined) rows.push(row);
        this.#countRows(1);
      }
      return rows;
    }
    if (index === undefined) {
      this.#countRows(1);
      const row = store.lookup(tableId, { owner, key, upTo, columnIds });
      return row === undefined ? [] : [row];
    }
    const { indexId } = index;
    if (key.length < index.columnIds.length) {
      return this.#scan(tableId, { indexId, owner, key, upTo, columnIds });
    }
    const rows = store.lookupIndex(tableId, { indexId, owner, key, upTo, columnIds });
    if (rows === undefined) throw new CannotFollow();
    this.#countRows(rows.length);
    return rows;
  }

  /** Returns all rows of a source, which the step reads only once. @throws {CannotFollow} */
  #all(source: number, upTo: Seq): readonly Row[] {
    const text = `${source} ${upTo}`;
    const known = this.#allRows.get(text);
    if (known !== undefined) return known;
    const { owners, places, store } = this.#options;
    const { columnIds, source: place } = defined(
      places[source],
      "maintained join: source has no place in the tuple",
    );
    const { tableId } = place.table;
    const owner = owners[source] ?? 0;
    if (store.liveRowCount(tableId, owner) > SCANNED_ROWS_MAX) throw new CannotFollow();
    const scan = store.scan(tableId, { owner, upTo, columnIds, mayBeEmpty: true });
    const rows: Row[] = [];
    try {
      for (let batch = scan.next(); batch !== undefined; batch = scan.next()) {
        for (let row = 0; row < batch.rowCount; row += 1) {
          rows.push(batch.columns.map((column) => valueAt(column, row)));
        }
        this.#countRows(batch.rowCount);
      }
    } finally {
      scan.close();
    }
    this.#allRows.set(text, rows);
    return rows;
  }

  /** Counts rows towards the limit of the step. @throws {CannotFollow} if the limit is exceeded */
  #countRows(count: number): void {
    this.#rowsRead += count;
    if (this.#rowsRead > ROWS_MAX) throw new CannotFollow();
  }

  #scan(
    tableId: number,
    { key, ...options }: Parameters<ReadStore["lookupIndex"]>[1],
  ): readonly Row[] {
    const bound = { values: key, isInclusive: true };
    const spans = [{ min: bound, max: bound }];
    const scan = this.#options.store.scanIndex(tableId, { ...options, spans, isDescending: false });
    if (scan === undefined) throw new CannotFollow();
    const rows: Row[] = [];
    try {
      for (;;) {
        const batch = scan.next(ROWS_PER_READ);
        if (batch === undefined) return rows;
        for (let row = 0; row < batch.rowCount; row += 1) {
          rows.push(batch.columns.map((column) => valueAt(column, row)));
        }
        this.#countRows(batch.rowCount);
      }
    } finally {
      scan.close();
    }
  }
}
