/**
 * Finds rows of a table by the key of a secondary index: the only row with a unique key, or all
 * rows with a key.
 */
import { defined } from "../../base/assert.ts";
import { type Row, TEXT } from "../../types/mod.ts";
import type { IndexLookupOptions, StoredIndex } from "../contract/index_reads.ts";
import { type Key, keyOfValues } from "../contract/key.ts";
import type { IndexColumn } from "../contract/key_expressions.ts";
import type { StoredColumn, TableDefinition } from "../contract/table_definition.ts";
import type { MemIndex } from "../memtable/mem_index.ts";
import type { Memtable } from "../memtable/memtable.ts";
import { IndexOrder } from "../segment/index_order.ts";
import type { OpenSegment } from "./open_segment.ts";
import type { StoredTable } from "./table.ts";
import { VersionCursor } from "./version_cursor.ts";

/** One of a table's secondary indexes. */
export interface TableIndex {
  readonly stored: StoredIndex;
  readonly order: IndexOrder;
}

/** Returns the secondary indexes in a table definition. */
export function tableIndexesOf(definition: TableDefinition): TableIndex[] {
  const { columns, indexes = [] } = definition;
  return indexes.map((stored) => ({
    stored,
    order: new IndexOrder(indexColumnsOf(columns, stored), stored.equalNulls),
  }));
}

/** Returns the key parts of an index. */
export function indexColumnsOf(
  columns: readonly StoredColumn[],
  { columnIds, expressions = [] }: Pick<StoredIndex, "columnIds" | "expressions">,
): IndexColumn[] {
  const columnOf = (id: number): StoredColumn => {
    const column = columns.find(({ columnId }) => columnId === id);
    return defined(column, "table index: key column is missing from the table definition");
  };
  return columnIds.map((id): IndexColumn => {
    const computed = expressions.find(({ columnId }) => columnId === id);
    if (computed === undefined) return columnOf(id);
    const { columnId, name, readIds, sql, terms, type } = computed;
    const reads = readIds.map(columnOf);
    if (terms === undefined) {
      return { columnId, name, type, missing: null, expression: { sql, type, reads } };
    }
    return { columnId, name, type: TEXT, missing: null, expression: { sql, type, reads, terms } };
  });
}

/** Returns the ids of the columns that determine an index's keys. */
export function columnsReadBy({ order }: TableIndex): number[] {
  return order.columns.flatMap(
    ({ columnId, expression }) => expression?.reads.map((each) => each.columnId) ?? columnId,
  );
}

/** Whether an index is enforced, that is, refuses new duplicates. */
export function isEnforced({ stored }: TableIndex): boolean {
  return refusesRows(stored) && stored.state !== "building";
}

/**
 * Whether an index refuses rows once all existing rows have been checked, as unique indexes and
 * exclusion constraints do.
 */
export function refusesRows({
  isExclusion,
  isUnique,
}: Pick<StoredIndex, "isExclusion" | "isUnique">): boolean {
  return isUnique || isExclusion === true;
}

export function memIndexOf(memtable: Memtable, { order, stored }: TableIndex): MemIndex {
  return memtable.index(stored.indexId, order);
}

/** The index key of a row being written. */
export interface WrittenKey {
  readonly owner: number;
  readonly key: Key;
  readonly values: Row;
  /**
   * The memtable that already contains the row itself, and the row's number; undefined if no
   * memtable contains the row.
   */
  readonly memtable?: Memtable;
  readonly row?: number;
}

const cursor = new VersionCursor();

/**
 * Finds the live row that has a unique key, other than the row being written. The result is valid
 * until the next search.
 *
 * At the end of any commit, at most one live row had the key. Only the newest row that was live at
 * such a time can still be live, so the search ends there. Rows from before the index was enforced
 * do not end the search.
 *
 * @param expiredSeq The seq up to which rows have expired.
 */
export function holderOf(
  table: StoredTable,
  index: TableIndex,
  { expiredSeq, written }: { expiredSeq: number; written: WrittenKey },
): VersionCursor | undefined {
  const { key, owner } = written;
  const { enforcedSeq = 0 } = index.stored;
  const memtables = table.memtables();
  for (let at = memtables.length - 1; at >= 0; at -= 1) {
    const memtable = defined(memtables[at], "table index: no memtable at this position");
    const rows = memIndexOf(memtable, index);
    rows.catchUp();
    const isOwn = memtable === written.memtable && written.row !== undefined;
    let row = isOwn ? rows.olderOf(written.row ?? 0) : rows.newestOf(owner, key);
    for (; row !== -1; row = rows.olderOf(row)) {
      const seq = memtable.seqs[row] ?? 0;
      if (memtable.replacedBy[row] === 0) {
        if (seq <= expiredSeq) return undefined;
        cursor.standInMemtable(memtable, row);
        return cursor;
      }
      if (seq > enforcedSeq) return undefined;
    }
  }
  for (let at = table.segments.length - 1; at >= 0; at -= 1) {
    const segment = table.segments[at];
    const found = segment === undefined ? "none" : holderIn(segment, index, written);
    if (found === "none") continue;
    return found === "obsolete" || cursor.seq <= expiredSeq ? undefined : cursor;
  }
  return undefined;
}

/** Searches a segment. If the row with the key is live, moves the cursor to it. */
function holderIn(
  segment: OpenSegment,
  index: TableIndex,
  { owner, values }: WrittenKey,
): "live" | "obsolete" | "none" {
  const { enforcedSeq = 0 } = index.stored;
  const span = segment.rowsOf(owner);
  if (span === undefined) return "none";
  const keys = segment.index(index);
  for (let place = keys.placeOf(span, values, true) - 1; place >= span.start; place -= 1) {
    if (!keys.isKeyAt(place, values)) return "none";
    const row = keys.rowAt(place);
    if (segment.isDeletedAt(row)) continue;
    const replacedBy = segment.replacedByAt(row);
    if (replacedBy === 0) {
      cursor.standInSegment(segment, row);
      return "live";
    }
    // A row that its own commit replaced was never live.
    const wasLive = replacedBy > segment.guard(() => segment.reader.commitSeqAt(row));
    if (wasLive && segment.seqAt(row) > enforcedSeq) return "obsolete";
  }
  return "none";
}

/** Selects the rows with a given key. */
interface KeyedRead {
  readonly owner: number;
  /** One value per index column, none of them NULL. */
  readonly key: Row;
  readonly upTo: number;
  /** The seq up to which rows have expired. */
  readonly expiredSeq: number;
  readonly versionsMax: number;
}

/** Implements `IndexReads.lookupIndex`. Rows with a seq of at most `expiredSeq` have expired. */
export function lookupIndex(
  table: StoredTable,
  options: IndexLookupOptions,
  expiredSeq: number,
): Row[] | undefined {
  const { columnIds, indexId, upTo, versionsMax = Number.POSITIVE_INFINITY } = options;
  const index = table.readyIndex(indexId);
  if (index === undefined || table.historyAt(upTo).length > 0) return undefined;
  const { enforcedSeq = 0, isUnique } = index.stored;
  // Before the index was enforced, several live rows may have had the same key.
  const isSingle = isUnique && upTo >= enforcedSeq;
  const rows: Row[] = [];
  const versions = rowsWithKey(table, index, { ...options, expiredSeq, versionsMax });
  for (let next = versions.next(); ; next = versions.next()) {
    if (next.done === true) return next.value ? rows : undefined;
    const version = next.value;
    rows.push(columnIds.map((columnId) => table.valueAt(version, columnId)));
    if (isSingle) return rows;
  }
}

/**
 * Moves a cursor to each live row with a key, newest first. The cursor is valid until the next row
 * is requested. Returns false if the search stopped because too many versions have the key.
 */
function* rowsWithKey(
  table: StoredTable,
  index: TableIndex,
  { expiredSeq, key: values, owner, upTo, versionsMax }: KeyedRead,
): Generator<VersionCursor, boolean> {
  const found = new VersionCursor();
  let visitedCount = 0;
  const key = keyOfValues(index.order.formOf(values));
  for (const memtable of table.memtables().toReversed()) {
    const rows = memIndexOf(memtable, index);
    rows.catchUp();
    for (let row = rows.newestOf(owner, key); row !== -1; row = rows.olderOf(row)) {
      visitedCount += 1;
      if (visitedCount > versionsMax) return false;
      const seq = memtable.seqs[row] ?? 0;
      const replacedBy = memtable.replacedBy[row] ?? 0;
      if (seq > upTo || seq <= expiredSeq || (replacedBy !== 0 && replacedBy <= upTo)) continue;
      found.standInMemtable(memtable, row);
      yield found;
    }
  }
  for (const segment of table.segments.toReversed()) {
    if (segment.entry.minSeq > upTo) continue;
    const span = segment.rowsOf(owner);
    if (span === undefined) continue;
    const keys = segment.index(index);
    for (let place = keys.placeOf(span, values, false); place < span.end; place += 1) {
      if (!keys.isKeyAt(place, values)) break;
      visitedCount += 1;
      if (visitedCount > versionsMax) return false;
      const row = keys.rowAt(place);
      if (!isLiveAt(segment, row, { expiredSeq, upTo })) continue;
      found.standInSegment(segment, row);
      yield found;
    }
  }
  return true;
}

/** Whether a row of a segment is live at a seq. */
export function isLiveAt(
  segment: OpenSegment,
  row: number,
  { expiredSeq, upTo }: { expiredSeq: number; upTo: number },
): boolean {
  const replacedBy = segment.replacedByAt(row);
  if (replacedBy !== 0 && replacedBy <= upTo) return false;
  if (segment.isDeletedAt(row)) return false;
  const { maxSeq, minSeq } = segment.entry;
  if (maxSeq <= upTo && minSeq > expiredSeq) return true;
  const seq = segment.seqAt(row);
  return seq <= upTo && seq > expiredSeq;
}
