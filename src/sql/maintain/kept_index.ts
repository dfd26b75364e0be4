/**
 * Implements an in-memory index for joins and groups that no key or index of the store supports.
 * It lists the primary keys of a table by the values of some columns. The rows themselves are read
 * from the store, which has their versions at each seq.
 *
 *     value of the columns ──► primary keys ──store, at a seq──► rows
 *
 * All queries that need the same index share it. Invariants: every row that has a value at any seq
 * between `#firstSeq` and `#seq` is listed under this value. A list may also contain rows that no
 * longer have the value, so the conditions of the join, or the keys of the group, are tested
 * again.
 */
import { defined } from "../../base/assert.ts";
import { SEQ_ZERO, type Seq } from "../../base/seq.ts";
import { WeakValues } from "../../base/weak_values.ts";
import type { TableEntry } from "../../catalog/mod.ts";
import type { ChangeBatch, ReadStore } from "../../storage/mod.ts";
import { type DataType, type Row, type Vector, valueAt } from "../../types/mod.ts";
import { keyTextOf } from "../execute/keys/key_text.ts";
import { CannotFollow } from "./not_maintained.ts";
import { textOfRow } from "./row_text.ts";

/** The columns that an in-memory index contains. */
export interface KeptColumns {
  /** The ids of the columns whose values are looked up in the index. */
  readonly columnIds: readonly number[];
  /**
   * Whether rows with a NULL in these columns are listed. Such rows form groups, but match nothing
   * in a join.
   */
  readonly hasNulls: boolean;
}

/** The table, the owner and the columns of an in-memory index. */
export interface KeptIndexPlace extends KeptColumns {
  readonly table: TableEntry;
  readonly owner: number;
}

/** A row that an in-memory index lists under a value. */
interface Listed {
  readonly key: Row;
  /** The seq at which the row lost the value; undefined as long as it has the value. */
  goneSeq: number | undefined;
}

/** A row that no longer has the value under which an in-memory index lists it. */
interface Gone {
  readonly seq: number;
  readonly value: string;
  readonly key: string;
}

/**
 * The approximate memory, in bytes, of a listed row, of a value, and of a lost value, excluding
 * their texts.
 */
const ROW_BYTES = 180;
const VALUE_BYTES = 160;
const GONE_BYTES = 80;

/** The number of changed versions beyond which rebuilding the index is faster than updating it. */
const VERSIONS_MAX = 20_000;

/**
 * The minimum number of rows that may stay listed under a value that they no longer have. A
 * quarter of all rows is allowed in addition.
 */
const GONE_MIN = 1000;

export class KeptIndex {
  readonly #store: ReadStore;
  readonly #place: KeptIndexPlace;
  /** The columns to read: the primary key, then the indexed columns. */
  readonly #readIds: readonly number[];
  readonly #keyTypes: readonly DataType[];
  #values = new Map<string, Map<string, Listed>>();
  /**
   * The rows that are still listed under a value that they no longer have, in the order in which
   * they lost it.
   */
  #gone: Gone[] = [];
  #rowCount = 0;
  /** The total length, in characters, of the listed values and keys. */
  #textLength = 0;
  #firstSeq: Seq = SEQ_ZERO;
  /** The seq up to which the index is current; undefined until it is built. */
  #seq: Seq | undefined;
  #building: Promise<boolean> | undefined;
  /** The number of unfinished steps that may still read rows as of earlier seqs. */
  #holdCount = 0;

  constructor(store: ReadStore, place: KeptIndexPlace) {
    this.#store = store;
    this.#place = place;
    const { columns, primaryKey } = place.table;
    this.#readIds = [...primaryKey, ...place.columnIds];
    this.#keyTypes = primaryKey.map((id) => {
      return defined(
        columns.find(({ columnId }) => columnId === id),
        "maintained index: key column is missing from the table",
      ).type;
    });
  }

  /** The approximate memory of the index, in bytes. */
  get bytes(): number {
    const listed = this.#rowCount * ROW_BYTES + this.#values.size * VALUE_BYTES;
    return listed + this.#gone.length * GONE_BYTES + this.#textLength;
  }

  /** The names of the columns that the index contains. */
  get columnNames(): string {
    const { columnIds, table } = this.#place;
    const { columns } = table;
    return columnIds
      .flatMap((id) => columns.find(({ columnId }) => columnId === id)?.name ?? [])
      .join(", ");
  }

  /**
   * Builds the index if it does not exist yet. Concurrent callers share one build.
   *
   * @param options.admits Whether the index may use this many bytes.
   * @returns false if the index may not use the memory that it needs.
   */
  async build(options: {
    readonly admits: (bytes: number) => boolean;
    readonly pause: () => Promise<void>;
  }): Promise<boolean> {
    if (this.#seq !== undefined && this.#catchesUp(this.#store.visibleSeq)) return true;
    this.#building ??= this.#build(options);
    try {
      return await this.#building;
    } finally {
      this.#building = undefined;
    }
  }

  /**
   * Keeps rows listed under values that they no longer have, until the returned function is
   * called.
   */
  hold(): () => void {
    this.#holdCount += 1;
    return () => {
      this.#holdCount -= 1;
    };
  }

  /**
   * Returns the primary keys of all rows that have a value at a seq, and possibly of further rows.
   *
   * @throws {CannotFollow} if the index does not cover this seq
   * @throws {DatabaseError}
   */
  find(value: Row, upTo: Seq): Iterable<Row> {
    const isThere = this.#seq !== undefined && upTo >= this.#firstSeq && this.#catchesUp(upTo);
    if (!isThere) throw new CannotFollow();
    const listed = this.#values.get(textOfRow(value));
    return listed === undefined ? [] : keysOf(listed.values(), upTo);
  }

  async #build({ admits, pause }: Parameters<KeptIndex["build"]>[0]): Promise<boolean> {
    const { owner, table } = this.#place;
    const expected = this.#store.liveRowCount(table.tableId, owner);
    if (!admits(expected * ROW_BYTES)) return false;
    this.#clear();
    const upTo = this.#store.visibleSeq;
    const scan = this.#store.scan(table.tableId, {
      owner,
      upTo,
      columnIds: this.#readIds,
      mayBeEmpty: true,
    });
    try {
      for (let batch = scan.next(); batch !== undefined; batch = scan.next()) {
        for (let row = 0; row < batch.rowCount; row += 1) {
          this.#add(rowAt(batch.columns, row));
        }
        if (!admits(this.bytes)) {
          this.#clear();
          return false;
        }
        await pause();
      }
    } finally {
      scan.close();
    }
    this.#firstSeq = upTo;
    this.#seq = upTo;
    return true;
  }

  #clear(): void {
    this.#values = new Map();
    this.#gone = [];
    this.#rowCount = 0;
    this.#textLength = 0;
    this.#seq = undefined;
  }

  /**
   * Updates the index with the changes up to a seq. Returns false if there are too many changes.
   * @throws {DatabaseError}
   */
  #catchesUp(upTo: Seq): boolean {
    const after = defined(this.#seq, "maintained index: built index has no seq");
    if (upTo <= after) return true;
    const { owner, table } = this.#place;
    const scan = this.#store.changes(table.tableId, {
      owner,
      after,
      upTo,
      columnIds: this.#readIds,
    });
    let count = 0;
    try {
      for (let batch = scan.next(); batch !== undefined; batch = scan.next()) {
        count += batch.rowCount;
        if (count > VERSIONS_MAX) {
          this.#clear();
          return false;
        }
        for (let row = 0; row < batch.rowCount; row += 1) this.#follow(batch, row);
      }
    } finally {
      scan.close();
    }
    this.#seq = upTo;
    this.#forgetGone();
    return true;
  }

  #follow({ columns, deleted, hasOld, oldColumns, seqs }: ChangeBatch, row: number): void {
    const old = hasOld[row] === 1 ? rowAt(oldColumns, row) : undefined;
    const now = deleted[row] === 1 ? undefined : rowAt(columns, row);
    if (old !== undefined && now !== undefined && textOfRow(old) === textOfRow(now)) return;
    if (old !== undefined) this.#lose(old, seqs[row] ?? 0);
    if (now !== undefined) this.#add(now);
  }

  #add(row: Row): void {
    const { key, value } = this.#partsOf(row);
    if (!this.#place.hasNulls && value.includes(null)) return;
    const text = textOfRow(value);
    const listed = this.#values.get(text) ?? new Map<string, Listed>();
    if (listed.size === 0) {
      this.#values.set(text, listed);
      this.#textLength += text.length;
    }
    const keyText = keyTextOf(this.#keyTypes, key);
    const known = listed.get(keyText);
    if (known !== undefined) {
      known.goneSeq = undefined;
      return;
    }
    listed.set(keyText, { key, goneSeq: undefined });
    this.#rowCount += 1;
    this.#textLength += keyText.length;
  }

  #lose(row: Row, seq: number): void {
    const { key, value } = this.#partsOf(row);
    const text = textOfRow(value);
    const keyText = keyTextOf(this.#keyTypes, key);
    const known = this.#values.get(text)?.get(keyText);
    if (known === undefined) return;
    known.goneSeq = seq;
    this.#gone.push({ seq, value: text, key: keyText });
  }

  /**
   * Drops the rows that lost their value longest ago, once there are many such rows. Queries that
   * still follow earlier changes then have to start again.
   */
  #forgetGone(): void {
    const allowed = GONE_MIN + (this.#rowCount >> 2);
    if (this.#holdCount > 0 || this.#gone.length <= 2 * allowed) return;
    const forgotten = this.#gone.splice(0, this.#gone.length - allowed);
    for (const { key, seq, value } of forgotten) {
      this.#firstSeq = seq as Seq;
      const listed = this.#values.get(value);
      if (listed?.get(key)?.goneSeq !== seq) continue;
      listed.delete(key);
      this.#rowCount -= 1;
      this.#textLength -= key.length;
      if (listed.size > 0) continue;
      this.#values.delete(value);
      this.#textLength -= value.length;
    }
  }

  #partsOf(row: Row): { readonly key: Row; readonly value: Row } {
    const { length } = this.#place.table.primaryKey;
    return { key: row.slice(0, length), value: row.slice(length) };
  }
}

function rowAt(columns: readonly Vector[], row: number): Row {
  return columns.map((column) => valueAt(column, row));
}

function* keysOf(listed: Iterable<Listed>, upTo: Seq): Generator<Row> {
  for (const { goneSeq, key } of listed) if (goneSeq === undefined || goneSeq > upTo) yield key;
}

/**
 * Keeps the in-memory indexes on the tables of a store. An index exists as long as there are
 * queries that use it.
 */
export class KeptIndexes {
  readonly #store: ReadStore;
  readonly #indexes = new WeakValues<KeptIndex>();

  constructor(store: ReadStore) {
    this.#store = store;
  }

  /**
   * Returns the index on the given columns, creating it if necessary. It lists no rows until it is
   * built.
   */
  indexOf(place: KeptIndexPlace): KeptIndex {
    const { columnIds, hasNulls, owner, table } = place;
    const key = JSON.stringify([table.tableId, table.schemaVersion, owner, columnIds, hasNulls]);
    const known = this.#indexes.get(key);
    if (known !== undefined) return known;
    const index = new KeptIndex(this.#store, place);
    this.#indexes.set(key, index);
    return index;
  }
}
