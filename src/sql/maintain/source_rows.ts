/** Reads the rows of a source that have a given key, as they were at a seq. */
import { defined } from "../../base/assert.ts";
import type { Seq } from "../../base/seq.ts";
import type { ReadStore } from "../../storage/mod.ts";
import { type Row, valueAt } from "../../types/mod.ts";
import type { SourceAccess } from "./join_routes.ts";
import { CannotFollow } from "./not_maintained.ts";
import type { SourcePlace } from "./tuple_space.ts";

/** The number of rows that one read of an index requests. */
const ROWS_PER_READ = 256;

export interface SourceKey {
  readonly access: Pick<SourceAccess, "index">;
  /** The values of the key, none of which is NULL. */
  readonly key: Row;
  readonly upTo: Seq;
}

export class SourceRows {
  readonly #store: ReadStore;
  readonly #places: readonly SourcePlace[];
  readonly #owners: readonly number[];

  constructor({
    owners,
    places,
    store,
  }: {
    store: ReadStore;
    places: readonly SourcePlace[];
    owners: readonly number[];
  }) {
    this.#store = store;
    this.#places = places;
    this.#owners = owners;
  }

  /**
   * Returns the rows with a key.
   *
   * @throws {CannotFollow} If the index does not have the rows of this seq. @throws {DatabaseError}
   */
  find(source: number, { access, key, upTo }: SourceKey): readonly Row[] {
    const place = defined(this.#places[source], "each source has places");
    const { tableId } = place.source.table;
    const { columnIds } = place;
    const owner = this.#owners[source] ?? 0;
    const { index } = access;
    if (index === undefined) {
      const row = this.#store.lookup(tableId, { owner, key, upTo, columnIds });
      return row === undefined ? [] : [row];
    }
    const { indexId } = index;
    if (key.length < index.columnIds.length) {
      return this.#scan(tableId, { indexId, owner, key, upTo, columnIds });
    }
    const rows = this.#store.lookupIndex(tableId, { indexId, owner, key, upTo, columnIds });
    if (rows === undefined) throw new CannotFollow();
    return rows;
  }

  #scan(
    tableId: number,
    { key, ...options }: Parameters<ReadStore["lookupIndex"]>[1],
  ): readonly Row[] {
    const bound = { values: key, isInclusive: true };
    const spans = [{ min: bound, max: bound }];
    const scan = this.#store.scanIndex(tableId, { ...options, spans, isDescending: false });
    if (scan === undefined) throw new CannotFollow();
    const rows: Row[] = [];
    try {
      for (;;) {
        const batch = scan.next(ROWS_PER_READ);
        if (batch === undefined) return rows;
        for (let row = 0; row < batch.rowCount; row += 1) {
          rows.push(batch.columns.map((column) => valueAt(column, row)));
        }
      }
    } finally {
      scan.close();
    }
  }
}
