/**
 * Divides one owner's rows, for reads sorted by a column, into pieces that can be sorted
 * separately: row groups of segments, whose bounds are known before they are sorted, and parts of
 * memtables.
 */
import type { Value } from "../../types/mod.ts";
import { formOf } from "../memtable/convert.ts";
import { liveRowsOfPart, memPartsOf, orderOfPart } from "../memtable/mem_order.ts";
import type { MemPartition } from "../memtable/mem_partition.ts";
import type { Memtable } from "../memtable/memtable.ts";
import type { MemPart } from "../memtable/part_orders.ts";
import { type ColumnOrder, isOrderedKind, type LiveRows } from "../segment/column_order.ts";
import type { RowSpan } from "../segment/reader.ts";
import type { OpenSegment } from "../table/open_segment.ts";
import type { StoredTable } from "../table/table.ts";
import type { VersionCursor } from "../table/version_cursor.ts";
import type { RowFilter } from "./row_source.ts";
import { ownerSpan } from "./segment_scan.ts";

export interface OrderedPiece {
  /**
   * An upper bound on the number of versions to examine. Once sorted, the versions also take up
   * space in the chunk cache.
   */
  readonly rowCount: number;
  /** The lowest and highest value of the column, if known without reading rows. */
  readonly zone: { readonly min: number; readonly max: number } | undefined;
  /** Whether `order` returns without having to sort. */
  isReady(): boolean;
  /**
   * Returns the sorted rows, numbered from 0. Rows of other owners may be included. Returns
   * undefined if the rows turn out not to be sortable, which is remembered for later requests.
   */
  order(): ColumnOrder | undefined;
  valueAt(row: number): Value;
  isCurrent(row: number): boolean;
  /** Moves a cursor to a row, numbered as in the sort order. */
  stand(cursor: VersionCursor, row: number): void;
}

/** Selects the rows to read, and the column that determines their order. */
export type PieceFilter = Pick<RowFilter, "owner" | "after" | "seqMax" | "upTo"> & {
  readonly columnId: number;
};

/**
 * The share of a row group below which only the owner's rows are sorted, rather than the whole
 * group.
 */
const OWN_SHARE_MAX = 0.25;

/**
 * Returns the separately sortable pieces of a table, oldest first; undefined if some rows cannot
 * be sorted.
 */
export function piecesOf(table: StoredTable, filter: PieceFilter): OrderedPiece[] | undefined {
  const { after, columnId, owner, seqMax } = filter;
  const column = table.column(columnId);
  if (column === undefined || !isOrderedKind(column.type)) return undefined;
  // Rows of past states are in history segments, for which no sort orders exist.
  if (table.historyAt(filter.upTo).length > 0) return undefined;
  const pieces: OrderedPiece[] = [];
  for (const segment of table.segments) {
    if (segment.entry.minSeq > seqMax || segment.entry.maxSeq <= after) continue;
    const stored = segment.columnType(columnId);
    // Values in a different stored form may have the same order, but cannot be compared with
    // values in the current form.
    if (stored === undefined || formOf(stored) !== formOf(column.type)) return undefined;
    const groups = segment.guard(() => groupPieces({ segment, table }, filter));
    if (groups === undefined) return undefined;
    pieces.push(...groups);
  }
  for (const memtable of table.memtables()) {
    const partition = memtable.partitions.get(owner);
    if (partition === undefined) continue;
    const parts = memPartsOf(memtable, partition, columnId);
    if (parts === undefined) return undefined;
    const span = {
      start: memtable.indexAfter(partition, after),
      end: memtable.indexAfter(partition, seqMax),
    };
    for (const part of parts) {
      if (memtable.firstAlive(partition, part, filter.upTo) === part.end) continue;
      pieces.push(new MemPiece({ memtable, partition, part, span, filter }));
    }
  }
  return pieces;
}

interface GroupSource {
  readonly segment: OpenSegment;
  readonly table: StoredTable;
}

function groupPieces(source: GroupSource, filter: PieceFilter): OrderedPiece[] | undefined {
  const { orders, reader } = source.segment;
  const span = ownerSpan(reader, filter);
  const pieces: OrderedPiece[] = [];
  if (span.start === span.end) return pieces;
  const last = reader.groupOf(span.end - 1);
  for (let group = reader.groupOf(span.start); group <= last; group += 1) {
    if (!hasLiveRow(source.segment, { group, span, upTo: filter.upTo })) continue;
    if (!orders.has(filter.columnId, group)) return undefined;
    pieces.push(new GroupPiece(source, { group, span, filter }));
  }
  return pieces;
}

function hasLiveRow(
  { livePages, reader }: OpenSegment,
  { group, span, upTo }: { group: number; span: RowSpan; upTo: number },
): boolean {
  const start = Math.max(span.start, reader.groupStart(group));
  const end = Math.min(span.end, reader.groupStart(group + 1));
  return livePages.firstAlive({ start, end }, upTo) < end;
}

class GroupPiece implements OrderedPiece {
  readonly rowCount: number;
  readonly zone: OrderedPiece["zone"];
  readonly #table: StoredTable;
  readonly #segment: OpenSegment;
  readonly #group: number;
  readonly #filter: PieceFilter;
  /** The number, within the segment, of the row that has number 0 in the sort order. */
  readonly #first: number;
  /** The range of requested rows within the segment. */
  readonly #span: RowSpan;
  readonly #isWhole: boolean;
  readonly #hasTombstones: boolean;

  constructor(
    { segment, table }: GroupSource,
    { filter, group, span }: { group: number; span: RowSpan; filter: PieceFilter },
  ) {
    const { reader } = segment;
    const groupStart = reader.groupStart(group);
    const groupRows = reader.groupRows(group);
    this.#table = table;
    this.#segment = segment;
    this.#group = group;
    this.#filter = filter;
    this.#span = {
      start: Math.max(span.start, groupStart),
      end: Math.min(span.end, groupStart + groupRows),
    };
    this.rowCount = this.#span.end - this.#span.start;
    this.zone = reader.zone(filter.columnId, group);
    this.#isWhole = this.rowCount >= groupRows * OWN_SHARE_MAX;
    this.#first = this.#isWhole ? groupStart : this.#span.start;
    this.#hasTombstones = reader.hasTombstones(group);
  }

  isReady(): boolean {
    if (!this.#isWhole) return false;
    return this.#segment.orders.isKnown(this.#filter.columnId, this.#group, this.#live());
  }

  order(): ColumnOrder | undefined {
    const order = this.#segment.guard(() => this.#order());
    if (order === undefined) this.#table.refuseOrder(this.#filter.columnId);
    return order;
  }

  valueAt(row: number): Value {
    return this.#segment.valueAt(this.#filter.columnId, this.#first + row) ?? null;
  }

  isCurrent(row: number): boolean {
    const at = this.#first + row;
    if (at < this.#span.start || at >= this.#span.end) return false;
    const replacement = this.#segment.deletions.replacedBy(at);
    if (replacement !== 0 && replacement <= this.#filter.upTo) return false;
    return !this.#hasTombstones || !this.#segment.isDeletedAt(at);
  }

  stand(cursor: VersionCursor, row: number): void {
    cursor.standInSegment(this.#segment, this.#first + row);
  }

  #order(): ColumnOrder | undefined {
    const { orders, reader } = this.#segment;
    const { columnId } = this.#filter;
    const live = this.#live();
    if (this.#isWhole) return orders.ofGroup(columnId, this.#group, live);
    const groupStart = reader.groupStart(this.#group);
    const { end, start } = this.#span;
    const rows = { start: start - groupStart, end: end - groupStart, live };
    return orders.ofRows(columnId, this.#group, rows);
  }

  #live(): LiveRows {
    const { livePages, reader } = this.#segment;
    const group = this.#group;
    const whole = { start: reader.groupStart(group), end: reader.groupStart(group + 1) };
    return livePages.liveRows(this.#isWhole ? whole : this.#span, this.#filter.upTo);
  }
}

interface MemPieceParts {
  readonly memtable: Memtable;
  readonly partition: MemPartition;
  readonly part: MemPart;
  /** The range of requested rows within the partition's list. */
  readonly span: RowSpan;
  readonly filter: PieceFilter;
}

class MemPiece implements OrderedPiece {
  readonly rowCount: number;
  readonly zone: undefined;
  readonly #parts: MemPieceParts;

  constructor(parts: MemPieceParts) {
    this.#parts = parts;
    this.rowCount = parts.part.end - parts.part.start;
  }

  isReady(): boolean {
    const { part, partition } = this.#parts;
    return partition.orders.orderOf(part)?.isFor(liveRowsOfPart(this.#parts, this.#upTo)) === true;
  }

  order(): ColumnOrder | undefined {
    return orderOfPart(this.#parts, { columnId: this.#parts.filter.columnId, upTo: this.#upTo });
  }

  valueAt(row: number): Value {
    const { filter, memtable } = this.#parts;
    return memtable.column(filter.columnId)?.valueAt(this.#rowAt(row)) ?? null;
  }

  isCurrent(row: number): boolean {
    const { filter, memtable, part, span } = this.#parts;
    const index = part.start + row;
    if (index < span.start || index >= span.end) return false;
    const at = this.#rowAt(row);
    const replacement = memtable.replacedBy[at] ?? 0;
    return (replacement === 0 || replacement > filter.upTo) && memtable.deleted[at] === 0;
  }

  stand(cursor: VersionCursor, row: number): void {
    cursor.standInMemtable(this.#parts.memtable, this.#rowAt(row));
  }

  get #upTo(): number {
    return this.#parts.filter.upTo;
  }

  #rowAt(row: number): number {
    const { partition, part } = this.#parts;
    return partition.rows[part.start + row] ?? 0;
  }
}
