/**
 * Shares tables with one reader in another thread: describes the rows that a statement may read
 * there, and keeps track of the rows that the reader already has.
 *
 * Invariant: shared data at or below the statement's bound on seqs never changes. A memtable's
 * arrays may be replaced by larger arrays in the meantime, but the shared rows stay in the old
 * arrays. A replacement recorded later has a seq above the bound.
 */
import type { SegmentEntry } from "../contract/manifest.ts";
import type {
  DroppedShares,
  ShareBounds,
  SharedColumn,
  SharedMemtable,
  SharedSegment,
  SharedTable,
} from "../contract/shared_tables.ts";
import type { TableSharing } from "../contract/store.ts";
import type { MemColumn } from "../memtable/mem_column.ts";
import type { Memtable } from "../memtable/memtable.ts";
import type { OpenSegment } from "../table/open_segment.ts";
import { isHistoryAt, type StoredTable } from "../table/table.ts";

interface KnownMemtable {
  readonly id: number;
  readonly table: StoredTable;
  /** The number of the memtable's rows that the reader already has. */
  rowCount: number;
  /** For each column stored in a plain array, the number of values that the reader already has. */
  readonly plainCounts: Map<MemColumn, number>;
}

export interface ShareOptions extends ShareBounds {
  readonly expiredSeqOf: (table: StoredTable) => number;
  readonly pathOf: (entry: SegmentEntry) => string;
}

export class KnownTables implements TableSharing {
  /** For each segment, the version of its deletion vector that the reader already has. */
  readonly #segments = new Map<OpenSegment, number>();
  readonly #memtables = new Map<Memtable, KnownMemtable>();
  #lastId = 0;

  /**
   * Shares a table with the reader.
   *
   * @throws {DatabaseError} DATA_DAMAGED @throws {CorruptionError}
   */
  share(table: StoredTable, options: ShareOptions): SharedTable {
    const { definition } = table;
    const { expiredSeqOf, pathOf, upTo } = options;
    return {
      definition,
      expiredSeq: expiredSeqOf(table),
      segments: table.segments.map((segment) => this.#segment(segment, pathOf)),
      history: historyFor(table, options).map((segment) => this.#segment(segment, pathOf)),
      memtables: table.memtables().flatMap((memtable) => this.#memtable(memtable, table, upTo)),
    };
  }

  /**
   * Returns the segments and memtables that the reader still has although no table uses them, and
   * clears this list.
   */
  takeDropped(): DroppedShares {
    const segmentIds: number[] = [];
    const memtableIds: number[] = [];
    for (const segment of this.#segments.keys()) {
      if (!segment.isDropped) continue;
      this.#segments.delete(segment);
      segmentIds.push(segment.entry.segmentId);
    }
    for (const [memtable, { id, table }] of this.#memtables) {
      if (!table.isDropped && table.memtables().includes(memtable)) continue;
      this.#memtables.delete(memtable);
      memtableIds.push(id);
    }
    return { segmentIds, memtableIds };
  }

  #segment(segment: OpenSegment, pathOf: ShareOptions["pathOf"]): SharedSegment {
    const { entry } = segment;
    const path = pathOf(entry);
    // The reader itself notices the quarantine and reports it.
    if (entry.quarantined) return { entry, path, pages: [] };
    if (segment.isHistory) {
      this.#segments.set(segment, 0);
      return { entry, path, pages: [] };
    }
    const { deletions } = segment;
    const pages = deletions.pagesSince(this.#segments.get(segment) ?? 0);
    this.#segments.set(segment, deletions.version);
    return { entry, path, pages };
  }

  #memtable(memtable: Memtable, table: StoredTable, upTo: number): SharedMemtable[] {
    // A statement may read at an older seq than the previous statement. The reader keeps the rows
    // that it has, and scans omit rows above their bound.
    const knownCount = this.#memtables.get(memtable)?.rowCount ?? 0;
    const rowCount = Math.max(knownCount, rowsUpTo(memtable, upTo));
    if (rowCount === 0) return [];
    const known = this.#known(memtable, table);
    known.rowCount = rowCount;
    const { commitSeqs, deleted, hiddenCount, owners, prevs, replacedBy, seqs } = memtable;
    const columns = memtable.columns.map((column) => sharedColumn(column, rowCount, known));
    const arrays = { owners, seqs, prevs, commitSeqs, replacedBy, deleted };
    return [{ id: known.id, rowCount, hiddenCount, ...arrays, columns }];
  }

  #known(memtable: Memtable, table: StoredTable): KnownMemtable {
    let known = this.#memtables.get(memtable);
    if (known === undefined) {
      this.#lastId += 1;
      known = { id: this.#lastId, table, rowCount: 0, plainCounts: new Map() };
      this.#memtables.set(memtable, known);
    }
    return known;
  }
}

/** Returns the history segments that a statement may need. */
export function historyFor(
  table: StoredTable,
  { pastSeqs, upTo, withTombstones }: ShareBounds,
): readonly OpenSegment[] {
  if (withTombstones) return table.history;
  const seqs = [upTo, ...pastSeqs];
  return table.history.filter(({ entry }) => seqs.some((seq) => isHistoryAt(entry, seq)));
}

function sharedColumn(
  column: MemColumn,
  rowCount: number,
  { plainCounts }: KnownMemtable,
): SharedColumn {
  const { columnId, type } = column;
  const vector = column.vector();
  if (vector.kind !== "any") return { columnId, type, vector, from: 0 };
  const from = Math.min(plainCounts.get(column) ?? 0, rowCount);
  const values = vector.values.slice(from, rowCount);
  plainCounts.set(column, rowCount);
  return { columnId, type, vector: { kind: "any", length: values.length, values }, from };
}

/** Counts a memtable's rows at or below a seq. Seqs ascend with the rows. */
function rowsUpTo({ rowCount, seqs }: Memtable, upTo: number): number {
  if (rowCount === 0 || (seqs[rowCount - 1] ?? 0) <= upTo) return rowCount;
  let low = 0;
  let high = rowCount;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if ((seqs[middle] ?? 0) <= upTo) low = middle + 1;
    else high = middle;
  }
  return low;
}
