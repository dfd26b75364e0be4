/**
 * Scans one owner's rows in a segment, one row group at a time. A group is skipped without being
 * read if its zone maps exclude every requested row, or if it has no live row.
 */
import { assert } from "../../base/assert.ts";
import { BATCH_ROWS_MAX } from "../../base/limits.ts";
import {
  BIGINT,
  BOOLEAN,
  constVector,
  type DataType,
  deferredTexts,
  type Selection,
  slice,
  storedComparatorFor,
  takeLater,
  type Utf8Vector,
  type Value,
  type Vector,
  vectorFromValues,
} from "../../types/mod.ts";
import type { ColumnSpan, KeySpans, ScanBatch } from "../contract/scans.ts";
import { DELETED_COLUMN_ID } from "../contract/system_columns.ts";
import { convertVector, formOf } from "../memtable/convert.ts";
import { ColumnBuffer } from "../segment/column_buffer.ts";
import { placesWithin } from "../segment/column_order.ts";
import { layoutOf } from "../segment/format.ts";
import type { RowSpan, SegmentReader } from "../segment/reader.ts";
import type { OpenSegment } from "../table/open_segment.ts";
import type { StoredTable } from "../table/table.ts";
import { VersionCursor } from "../table/version_cursor.ts";
import { HIDDEN_BATCHES_MAX, NO_ROWS, type RowFilter, type RowSource } from "./row_source.ts";
import { mayMatch } from "./zone_match.ts";

/**
 * The share of a row group below which only the requested rows are decoded, rather than the whole
 * chunk.
 */
const PARTIAL_SHARE_MAX = 0.25;

/**
 * The maximum number of rows in a batch of rows selected through a sort order. Reading one value
 * of such a row takes up to a microsecond.
 */
const CHOSEN_MAX = 1024;

/**
 * The maximum number of bytes decompressed in one step, because decompression blocks the event
 * loop.
 */
const UNPACKED_BYTES_MAX: number = 2 * 1024 * 1024;

export class SegmentScan implements RowSource {
  groupsRead = 0;
  groupsPruned = 0;
  readonly #table: StoredTable;
  readonly #segment: OpenSegment;
  readonly #filter: RowFilter;
  #isOpen = true;
  #group = -1;
  #groupEnd = -1;
  /** The range of the owner's rows in the segment. */
  #span: RowSpan | undefined;
  /** The number of the next row to read. */
  #row = 0;
  #rowEnd = 0;
  /** The maximum number of rows in a batch of the current row group. */
  #batchRowsMax = Infinity;
  #columns: GroupColumns | undefined;
  /** The selected rows of the current row group; undefined if all of its rows are read. */
  #chosen: Uint32Array | undefined;
  #chosenAt = 0;
  readonly #cursor = new VersionCursor();
  /**
   * The buffers into which columns are decoded, by column id; undefined if batches must not share
   * memory.
   */
  readonly #buffers: Map<number, ColumnBuffer> | undefined;

  constructor(table: StoredTable, segment: OpenSegment, filter: RowFilter) {
    this.#buffers = filter.reusesMemory === true ? new Map() : undefined;
    this.#table = table;
    this.#segment = segment;
    this.#filter = filter;
    segment.pin();
  }

  next(limit: number): ScanBatch | undefined {
    if (!this.#isOpen) return undefined;
    return this.#segment.guard(() => this.#next(limit));
  }

  close(): void {
    if (!this.#isOpen) return;
    this.#isOpen = false;
    this.#columns = undefined;
    this.#segment.unpin();
  }

  #next(limit: number): ScanBatch | undefined {
    if (this.#span === undefined) this.#start();
    const { livePages } = this.#segment;
    const looksBefore = livePages.lookCount;
    let hiddenCount = 0;
    for (;;) {
      if (this.#chosen !== undefined) {
        const batch = this.#chosenBatch(this.#chosen, limit);
        if (batch !== undefined) return batch;
        this.#row = this.#rowEnd;
        this.#chosen = undefined;
      }
      while (this.#row < this.#rowEnd) {
        const start = this.#firstAlive(this.#row, this.#rowEnd);
        const end = Math.min(start + limit, start + this.#batchRowsMax, this.#rowEnd);
        this.#row = end;
        if (start === end) break;
        const batch = this.#batch(start, end);
        if (batch !== undefined) return batch;
        this.#skipHidden();
        hiddenCount += 1;
        if (this.#isLong(hiddenCount + livePages.lookCount - looksBefore)) return NO_ROWS;
      }
      if (!this.#nextGroup()) return undefined;
      if (this.#isLong(hiddenCount + livePages.lookCount - looksBefore)) return NO_ROWS;
    }
  }

  /**
   * Whether the scan should let other work run, because many batches without a current row have
   * been examined.
   */
  #isLong(hiddenCount: number): boolean {
    return this.#filter.mayBeEmpty && hiddenCount >= HIDDEN_BATCHES_MAX;
  }

  /**
   * Skips rows that are not current. Such rows often come in long runs, so up to a batch of them
   * is skipped per call, even if the caller requests one row at a time.
   */
  #skipHidden(): void {
    const start = this.#firstAlive(this.#row, this.#rowEnd);
    this.#row = start;
    const end = Math.min(start + BATCH_ROWS_MAX, this.#rowEnd);
    const kept = start < end ? this.#current(start, end) : undefined;
    if (kept !== undefined) this.#row = start + (kept[0] ?? end - start);
  }

  /** Finds the rows of the owner whose seqs are within the scan's bounds. */
  #start(): void {
    const { reader } = this.#segment;
    const { start, end } = ownerSpan(reader, this.#filter);
    this.#span = { start, end };
    if (start === end) return;
    this.#group = reader.groupOf(start) - 1;
    this.#groupEnd = reader.groupOf(end - 1);
  }

  /**
   * Moves to the next row group, which may have no requested row. Returns false if no group is
   * left.
   */
  #nextGroup(): boolean {
    const { reader } = this.#segment;
    const span = this.#span ?? { start: 0, end: 0 };
    if (span.start === span.end) return false;
    const places = { segment: this.#segment, table: this.#table };
    while (this.#group < this.#groupEnd) {
      this.#group += 1;
      if (this.#filter.share?.claimsNext() === false) continue;
      if (!mayMatch(places, this.#filter.ranges, this.#group)) {
        this.groupsPruned += 1;
        continue;
      }
      const groupStart = reader.groupStart(this.#group);
      const groupEnd = groupStart + reader.groupRows(this.#group);
      this.#rowEnd = Math.min(span.end, groupEnd);
      this.#row = this.#firstAlive(Math.max(span.start, groupStart), this.#rowEnd);
      if (this.#row === this.#rowEnd) {
        this.groupsPruned += 1;
        return true;
      }
      this.groupsRead += 1;
      if (this.#chooseRows()) return true;
      this.#batchRowsMax = rowsAtOnce(reader, this.#group, this.#filter.columnIds);
      this.#columns = new GroupColumns(this.#table, this.#segment, {
        group: this.#group,
        start: this.#row - groupStart,
        end: this.#rowEnd - groupStart,
        buffers: this.#buffers,
        isDeferred: this.#filter.defersNumbers === true,
      });
      return true;
    }
    return false;
  }

  /**
   * Skips pages of the deletion vector without a live row. Returns the first row beyond them that
   * may be live.
   */
  #firstAlive(start: number, end: number): number {
    const { upTo, withTombstones } = this.#filter;
    return withTombstones ? start : this.#segment.livePages.firstAlive({ start, end }, upTo);
  }

  /** Selects rows through the row group's sort order. Returns false if that is not possible. */
  #chooseRows(): boolean {
    const { keySpans, upTo, withTombstones } = this.#filter;
    if (keySpans === undefined || withTombstones) return false;
    const places = { segment: this.#segment, table: this.#table };
    const span = { group: this.#group, start: this.#row, end: this.#rowEnd, upTo };
    this.#chosen = chosenRows(places, keySpans, span);
    this.#chosenAt = 0;
    return this.#chosen !== undefined;
  }

  /** Reads the selected rows of a row group value by value, since they are far apart. */
  #chosenBatch(chosen: Uint32Array, limit: number): ScanBatch | undefined {
    while (this.#chosenAt < chosen.length) {
      const rows = chosen.subarray(this.#chosenAt, this.#chosenAt + Math.min(limit, CHOSEN_MAX));
      this.#chosenAt += rows.length;
      const current = [...rows].filter((row) => this.#isCurrent(row));
      if (current.length === 0) continue;
      const columns = this.#filter.columnIds.map((columnId) => {
        const values = current.map((row) => {
          this.#cursor.standInSegment(this.#segment, row);
          return this.#table.valueAt(this.#cursor, columnId);
        });
        return vectorFromValues(columnTypeOf(this.#table, columnId), values);
      });
      return { rowCount: current.length, columns };
    }
    return undefined;
  }

  #isCurrent(row: number): boolean {
    const { deletions, reader } = this.#segment;
    const { upTo, withTombstones } = this.#filter;
    const replacement = deletions.replacedBy(row);
    if (replacement !== 0 && replacement <= upTo) return false;
    return withTombstones || !reader.hasTombstones(this.#group) || !reader.isTombstone(row);
  }

  /** Returns the current rows from `start` to `end`, which lie within the current row group. */
  #batch(start: number, end: number): ScanBatch | undefined {
    const columns = this.#columns;
    if (columns === undefined) return undefined;
    const from = start - this.#segment.reader.groupStart(this.#group);
    const to = from + end - start;
    const kept = this.#current(start, end);
    if (kept === undefined) {
      const vectors = this.#filter.columnIds.map((id) => columns.rows(id, from, to));
      return { rowCount: end - start, columns: vectors };
    }
    if (kept.length === 0) return undefined;
    const selection = { rows: kept, count: kept.length };
    const vectors = this.#filter.columnIds.map((id) =>
      takeLater(columns.rows(id, from, to), selection),
    );
    return { rowCount: kept.length, columns: vectors };
  }

  /**
   * Returns the numbers of the current rows from `start` to `end`, counted from `start`; undefined
   * if all rows are current.
   */
  #current(start: number, end: number): Uint32Array | undefined {
    const { deletions, livePages } = this.#segment;
    const { withTombstones, upTo } = this.#filter;
    if (!withTombstones) return livePages.aliveRows({ start, end }, upTo);
    if (!deletions.hasReplaced(start, end, upTo)) return undefined;
    const isHidden = new Uint8Array(end - start);
    deletions.markReplaced(start, upTo, isHidden);
    const kept = new Uint32Array(end - start);
    let count = 0;
    for (let index = 0; index < isHidden.length; index += 1) {
      kept[count] = index;
      count += 1 - (isHidden[index] ?? 0);
    }
    return count === end - start ? undefined : kept.subarray(0, count);
  }
}

/** Returns the range of an owner's rows with seqs above `after` and at most `seqMax`. */
export function ownerSpan(
  reader: SegmentReader,
  { owner, after, seqMax }: Pick<RowFilter, "owner" | "after" | "seqMax">,
): RowSpan {
  const range = reader.ownerRange(owner);
  if (range === undefined) return { start: 0, end: 0 };
  const start = after < reader.minSeq ? range.start : reader.firstRowAtOrAbove(range, after + 1);
  const end = seqMax >= reader.maxSeq ? range.end : reader.firstRowAtOrAbove(range, seqMax + 1);
  return start < end ? { start, end } : { start: 0, end: 0 };
}

/** Returns the type of a table column or a system column. */
export function columnTypeOf(table: StoredTable, columnId: number): DataType {
  return table.column(columnId)?.type ?? (columnId === DELETED_COLUMN_ID ? BOOLEAN : BIGINT);
}

/**
 * Returns how many rows of a row group to read at a time, so as not to decompress too many bytes
 * per step.
 */
export function rowsAtOnce(
  reader: SegmentReader,
  group: number,
  columnIds: readonly number[],
): number {
  let byteCount = 0;
  for (const columnId of columnIds) {
    if (columnId < 0 || !reader.isUnpackedInParts(columnId, group)) continue;
    byteCount += reader.unpackedBytes(columnId, group) ?? 0;
  }
  if (byteCount === 0) return Infinity;
  return Math.max(1, Math.floor((UNPACKED_BYTES_MAX / byteCount) * reader.groupRows(group)));
}

/** A range of requested rows, numbered from the start of their row group. */
export interface GroupRows {
  readonly group: number;
  readonly start: number;
  readonly end: number;
  /** The buffers into which the columns of a segment are decoded. */
  readonly buffers?: Map<number, ColumnBuffer> | undefined;
  /** Whether numbers are decoded into the buffers only when first accessed. */
  readonly isDeferred?: boolean;
}

/**
 * The columns of one row group, restricted to the requested rows. Each column is decoded once,
 * when it is first accessed.
 */
export class GroupColumns {
  readonly #table: StoredTable;
  readonly #segment: OpenSegment;
  readonly #group: number;
  /** The first requested row, numbered from the start of the row group. */
  readonly #start: number;
  readonly #end: number;
  readonly #isPartial: boolean;
  readonly #vectors = new Map<number, Vector>();
  readonly #buffers: Map<number, ColumnBuffer> | undefined;
  readonly #isDeferred: boolean;

  constructor(
    table: StoredTable,
    segment: OpenSegment,
    { buffers, group, isDeferred = false, start, end }: GroupRows,
  ) {
    this.#buffers = buffers;
    this.#isDeferred = isDeferred;
    this.#table = table;
    this.#segment = segment;
    this.#group = group;
    this.#start = start;
    this.#end = end;
    this.#isPartial = end - start < segment.reader.groupRows(group) * PARTIAL_SHARE_MAX;
  }

  /**
   * Returns a range of a column's rows, numbered from the start of the row group. They must be
   * among the requested rows.
   */
  rows(columnId: number, from: number, to: number): Vector {
    if (this.#buffers !== undefined && columnId > 0 && this.#segment.reader.isNumeric(columnId)) {
      return this.#numbers(columnId, from, to);
    }
    let vector = this.#vectors.get(columnId);
    if (vector === undefined) {
      if (columnId > 0 && this.#segment.reader.isUnpackedInParts(columnId, this.#group)) {
        return this.#unpacked(columnId, from, to);
      }
      vector = this.#load(columnId);
      this.#vectors.set(columnId, vector);
    }
    const offset = this.#isPartial ? this.#start : 0;
    if (from === offset && to - offset === vector.length) return vector;
    return slice(vector, from - offset, to - offset);
  }

  /**
   * Decodes numbers without the cache, which would make no scan faster if every scan went through
   * it.
   */
  #numbers(columnId: number, start: number, end: number): Vector {
    const span = { start, end, buffer: this.#bufferOf(columnId), isDeferred: this.#isDeferred };
    const stored = this.#segment.reader.columnRows(columnId, this.#group, span);
    const column = this.#table.column(columnId);
    const storedType = this.#segment.columnType(columnId);
    assert(
      stored !== undefined && storedType !== undefined,
      "segment scan: column is missing from the segment file",
    );
    return column === undefined ? stored : convertVector(stored, storedType, column.type);
  }

  /** Returns the decoding buffer for a column; undefined if batches must not share memory. */
  #bufferOf(columnId: number): ColumnBuffer | undefined {
    if (this.#buffers === undefined) return undefined;
    let buffer = this.#buffers.get(columnId);
    if (buffer === undefined) {
      buffer = new ColumnBuffer();
      this.#buffers.set(columnId, buffer);
    }
    return buffer;
  }

  /**
   * Decompresses only the rows of this batch, because decompression takes time. Text is
   * decompressed when first accessed.
   */
  #unpacked(columnId: number, start: number, end: number): Vector {
    const segment = this.#segment;
    const group = this.#group;
    const storedType = segment.columnType(columnId);
    assert(storedType !== undefined, "segment scan: column is missing from the segment file");
    const make = (): Vector => {
      const span = { start, end, buffer: this.#bufferOf(columnId) };
      const rows = segment.guard(() => segment.reader.columnRows(columnId, group, span));
      assert(rows !== undefined, "segment scan: column is missing from the segment file");
      return rows;
    };
    const makeTexts = (): Utf8Vector => {
      const texts = make();
      assert(texts.kind === "utf8", "segment scan: packed text is not a UTF-8 vector");
      return texts;
    };
    const choose = (selection: Selection): Utf8Vector | undefined =>
      segment.guard(() => segment.reader.chosenTexts(columnId, group, { start, selection }));
    const isText = layoutOf(storedType) === "text";
    const stored = isText ? deferredTexts(end - start, { make: makeTexts, choose }) : make();
    const column = this.#table.column(columnId);
    return column === undefined ? stored : convertVector(stored, storedType, column.type);
  }

  #load(columnId: number): Vector {
    const { reader } = this.#segment;
    const group = this.#group;
    const column = this.#table.column(columnId);
    const isPartial = this.#isPartial && columnId > 0;
    const stored = isPartial
      ? reader.columnRows(columnId, group, { start: this.#start, end: this.#end })
      : reader.column(columnId, group);
    const rowCount = this.#isPartial ? this.#end - this.#start : reader.groupRows(group);
    if (stored === undefined) return constVector(column?.missing ?? null, rowCount);
    const wanted = this.#isPartial && !isPartial ? slice(stored, this.#start, this.#end) : stored;
    const storedType = this.#segment.columnType(columnId);
    if (column === undefined || storedType === undefined) return wanted;
    return convertVector(wanted, storedType, column.type);
  }
}

/**
 * The maximum share of rows that may be selected through a sort order. Reading one selected row
 * takes as long as scanning 16 rows.
 */
const CHOSEN_SHARE_MAX: number = 1 / 16;

/**
 * The minimum share of a row group that the owner's requested rows must make up for the group's
 * sort order to be used. The order covers all owners, so below this share all requested rows are
 * examined instead.
 */
const GROUP_SHARE_MIN = 0.25;

/**
 * Returns the rows within a span of one row group whose values lie within given ranges of a
 * column, in ascending order. The function uses the group's sort order instead of examining every
 * row. Returns undefined if too many rows match, or if the group has no order.
 *
 * If more than a sixteenth of a group matches, the group is scanned as usual. A text column has no
 * zone map, so each of its groups is sorted once. Orders are not computed if they would fill more
 * than half of the cache.
 */
function chosenRows(
  { segment, table }: { segment: OpenSegment; table: StoredTable },
  { columnId, spans }: KeySpans,
  { end, group, start, upTo }: RowSpan & { readonly group: number; readonly upTo: number },
): Uint32Array | undefined {
  const { livePages, orders, reader } = segment;
  const groupRows = reader.groupRows(group);
  if (end - start < groupRows * GROUP_SHARE_MIN) return undefined;
  const type = table.column(columnId)?.type;
  const stored = segment.columnType(columnId);
  if (type === undefined || stored === undefined || formOf(stored) !== formOf(type)) {
    return undefined;
  }
  const zone = reader.zone(columnId, group);
  const whole = { start: reader.groupStart(group), end: reader.groupStart(group + 1) };
  const live = livePages.liveRows(whole, upTo);
  // With many replaced rows, the zone map gives a poor estimate, since most replaced values are
  // outside the range of the live values.
  const isDense = live.hiddenCount < groupRows / 2;
  if (isDense && zone !== undefined && expectedShare(zone, spans) > CHOSEN_SHARE_MAX) {
    return undefined;
  }
  if (!orders.has(columnId, group)) return undefined;
  const order = orders.ofGroup(columnId, group, live);
  if (order === undefined) {
    table.refuseOrder(columnId);
    return undefined;
  }
  const groupStart = reader.groupStart(group);
  const valueAt = (place: number): Value =>
    order.numberAt(place) ?? segment.valueAt(columnId, groupStart + order.rowAt(place)) ?? null;
  const rows = new Set<number>();
  const compare = storedComparatorFor(type);
  for (const span of spans) {
    const places = placesWithin(order, span, { compare, valueAt });
    if (rows.size + places.end - places.start > groupRows * CHOSEN_SHARE_MAX) return undefined;
    for (let place = places.start; place < places.end; place += 1) {
      const row = groupStart + order.rowAt(place);
      if (row >= start && row < end) rows.add(row);
    }
  }
  return Uint32Array.from(rows).toSorted();
}

/**
 * Estimates the share of a row group's numbers that lies within the ranges, assuming evenly
 * distributed numbers.
 */
function expectedShare(
  zone: { readonly min: number; readonly max: number },
  spans: readonly ColumnSpan[],
): number {
  const width = zone.max - zone.min;
  if (width <= 0) return 1;
  let share = 0;
  for (const { max = zone.max, min = zone.min } of spans) {
    const low = Math.max(Number(min), zone.min);
    share += Math.max(0, Math.min(Number(max), zone.max) - low) / width;
  }
  return share;
}
