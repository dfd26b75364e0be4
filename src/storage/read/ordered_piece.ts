/**
 * The rows of one owner in the order of a column, in pieces that are in order by themselves: the
 * row groups of segments, whose bounds are known before they are put in order, and parts of
 * memtables.
 */
import type { Value } from "../../types/mod.ts";
import { formOf } from "../memtable/convert.ts";
import { memPartsOf, orderOfPart } from "../memtable/mem_order.ts";
import type { MemPartition, Memtable } from "../memtable/memtable.ts";
import type { MemPart } from "../memtable/part_orders.ts";
import { type ColumnOrder, isOrderedKind } from "../segment/column_order.ts";
import type { RowSpan } from "../segment/reader.ts";
import type { OpenSegment } from "../table/open_segment.ts";
import type { StoredTable } from "../table/table.ts";
import type { VersionCursor } from "../table/version_cursor.ts";
import type { RowFilter } from "./row_source.ts";
import { ownerSpan } from "./segment_scan.ts";

export interface OrderedPiece {
  /**
   * Versions that are looked through at most, and take room in the cache of chunks once in order.
   */
  readonly rowCount: number;
  /** Bounds of the values, where they are known without a look at the rows. */
  readonly zone: { readonly min: number; readonly max: number } | undefined;
  /** Whether `order` takes no time. */
  isReady(): boolean;
  /**
   * Rows count from 0 in it; some may be of others. Undefined where they turn out to have none, of
   * which the next one who asks for pieces knows.
   */
  order(): ColumnOrder | undefined;
  valueAt(row: number): Value;
  isCurrent(row: number): boolean;
  /** Has a cursor stand on a row. */
  stand(cursor: VersionCursor, row: number): void;
}

/** Which rows, in the order of which column. */
export type PieceFilter = Pick<RowFilter, "owner" | "after" | "seqMax" | "upTo"> & {
  readonly columnId: number;
};

/** Below this share of a group its rows are put in order by themselves, and not the whole group. */
const OWN_SHARE_MAX = 0.25;

/** All pieces of a table, oldest first; undefined where some rows cannot be put in order. */
export function piecesOf(table: StoredTable, filter: PieceFilter): OrderedPiece[] | undefined {
  const { after, columnId, owner, seqMax } = filter;
  const column = table.column(columnId);
  if (column === undefined || !isOrderedKind(column.type)) return undefined;
  const pieces: OrderedPiece[] = [];
  for (const segment of table.segments) {
    if (segment.entry.minSeq > seqMax || segment.entry.maxSeq <= after) continue;
    const stored = segment.columnType(columnId);
    // Values that look different by now are in the same order, and compared by nobody.
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
    pieces.push(...parts.map((part) => new MemPiece({ memtable, partition, part, span, filter })));
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
    if (!orders.has(filter.columnId, group)) return undefined;
    pieces.push(new GroupPiece(source, { group, span, filter }));
  }
  return pieces;
}

class GroupPiece implements OrderedPiece {
  readonly rowCount: number;
  readonly zone: OrderedPiece["zone"];
  readonly #table: StoredTable;
  readonly #segment: OpenSegment;
  readonly #group: number;
  readonly #filter: PieceFilter;
  /** Row of the segment from which the rows of the order count. */
  readonly #first: number;
  /** Rows of the segment that are asked for. */
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
    return this.#isWhole && this.#segment.orders.isKnown(this.#filter.columnId, this.#group);
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
    if (this.#isWhole) return orders.ofGroup(columnId, this.#group);
    const groupStart = reader.groupStart(this.#group);
    const { end, start } = this.#span;
    const rows = { start: start - groupStart, end: end - groupStart };
    return orders.ofRows(columnId, this.#group, rows);
  }
}

interface MemPieceParts {
  readonly memtable: Memtable;
  readonly partition: MemPartition;
  readonly part: MemPart;
  /** Rows of the partition's list that are asked for. */
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
    return partition.orders.orderOf(part) !== undefined;
  }

  order(): ColumnOrder | undefined {
    return orderOfPart(this.#parts, this.#parts.filter.columnId);
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

  #rowAt(row: number): number {
    const { partition, part } = this.#parts;
    return partition.rows[part.start + row] ?? 0;
  }
}
