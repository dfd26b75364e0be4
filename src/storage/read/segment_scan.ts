/**
 * The rows of one owner in a segment, row group by row group. A group that cannot hold a wanted row
 * is skipped by its zone maps without being read.
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
  takeLater,
  type Utf8Vector,
  type Value,
  type Vector,
  vectorFromValues,
} from "../../types/mod.ts";
import { type ScanBatch } from "../contract/store.ts";
import { DELETED_COLUMN_ID, SEQ_COLUMN_ID } from "../contract/system_columns.ts";
import { convertVector, formOf } from "../memtable/convert.ts";
import { ColumnBuffer } from "../segment/column_buffer.ts";
import { layoutOf } from "../segment/format.ts";
import type { RowSpan, SegmentReader } from "../segment/reader.ts";
import type { OpenSegment } from "../table/open_segment.ts";
import type { StoredTable } from "../table/table.ts";
import { VersionCursor } from "../table/version_cursor.ts";
import { chosenRows } from "./chosen_rows.ts";
import { HIDDEN_BATCHES_MAX, NO_ROWS, type RowFilter, type RowSource } from "./row_source.ts";

/** Below this share of a group, its rows are decoded by themselves and not the whole chunk. */
const PARTIAL_SHARE_MAX = 0.25;

/** Rows of a batch of chosen ones: each cell takes up to a microsecond. */
const CHOSEN_MAX = 1024;

/** What is unpacked at once, about: it takes some 2 ms, and the event loop waits for it. */
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
  /** Rows of the segment. */
  #span: RowSpan | undefined;
  /** Next row, and the end of the rows in the current group. */
  #row = 0;
  #rowEnd = 0;
  /** Rows of a batch of the current group. */
  #batchRowsMax = Infinity;
  #columns: GroupColumns | undefined;
  /** Of the current group, if others are not looked at; and how many of them were read. */
  #chosen: Uint32Array | undefined;
  #chosenAt = 0;
  readonly #cursor = new VersionCursor();
  /** By column; undefined when batches must not share memory. */
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
    let hiddenCount = 0;
    for (;;) {
      if (this.#chosen !== undefined) {
        const batch = this.#chosenBatch(this.#chosen, limit);
        if (batch !== undefined) return batch;
        this.#row = this.#rowEnd;
        this.#chosen = undefined;
      }
      while (this.#row < this.#rowEnd) {
        const start = this.#row;
        const end = Math.min(start + limit, start + this.#batchRowsMax, this.#rowEnd);
        this.#row = end;
        const batch = this.#batch(start, end);
        if (batch !== undefined) return batch;
        this.#skipHidden();
        hiddenCount += 1;
        if (this.#filter.mayBeEmpty && hiddenCount >= HIDDEN_BATCHES_MAX) return NO_ROWS;
      }
      if (!this.#nextGroup()) return undefined;
    }
  }

  /**
   * Behind rows that are not current there are often more: a batch of them at once, if wanted one
   * by one.
   */
  #skipHidden(): void {
    const start = this.#row;
    const end = Math.min(start + BATCH_ROWS_MAX, this.#rowEnd);
    const kept = start < end ? this.#current(start, end) : undefined;
    if (kept !== undefined) this.#row = start + (kept[0] ?? end - start);
  }

  /** Finds the owner's rows within the bounds on seq. */
  #start(): void {
    const { reader } = this.#segment;
    const { start, end } = ownerSpan(reader, this.#filter);
    this.#span = { start, end };
    if (start === end) return;
    this.#group = reader.groupOf(start) - 1;
    this.#groupEnd = reader.groupOf(end - 1);
  }

  #nextGroup(): boolean {
    const { reader } = this.#segment;
    const span = this.#span ?? { start: 0, end: 0 };
    if (span.start === span.end) return false;
    while (this.#group < this.#groupEnd) {
      this.#group += 1;
      if (this.#filter.share?.claimsNext() === false) continue;
      if (!this.#mayMatch(this.#group)) {
        this.groupsPruned += 1;
        continue;
      }
      this.groupsRead += 1;
      const groupStart = reader.groupStart(this.#group);
      const groupEnd = groupStart + reader.groupRows(this.#group);
      this.#row = Math.max(span.start, groupStart);
      this.#rowEnd = Math.min(span.end, groupEnd);
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

  #mayMatch(group: number): boolean {
    const { reader } = this.#segment;
    for (const { columnId, min, max } of this.#filter.ranges) {
      if (columnId !== SEQ_COLUMN_ID && this.#segment.columnType(columnId) === undefined) {
        if (!isWithin(this.#table.column(columnId)?.missing ?? null, min, max)) return false;
        continue;
      }
      // A DECIMAL that has more digits now than the file has is compared by nobody.
      if (!this.#isStoredAsDefined(columnId)) continue;
      const zone = reader.zone(columnId, group);
      if (zone !== undefined && (zone.max < min || zone.min > max)) return false;
    }
    return true;
  }

  /** Whether the rows of the group are found by their order. */
  #chooseRows(): boolean {
    const { keySpans } = this.#filter;
    if (keySpans === undefined) return false;
    const places = { segment: this.#segment, table: this.#table };
    const span = { group: this.#group, start: this.#row, end: this.#rowEnd };
    this.#chosen = chosenRows(places, keySpans, span);
    this.#chosenAt = 0;
    return this.#chosen !== undefined;
  }

  /** Rows that are few and far between are read cell by cell. */
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

  #isStoredAsDefined(columnId: number): boolean {
    const now = this.#table.column(columnId)?.type;
    const then = this.#segment.columnType(columnId);
    return now === undefined || then === undefined || formOf(now) === formOf(then);
  }

  /** Rows of the segment, within the current group, that are current. */
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

  /** Those of the rows that are current, counted from `start`; undefined when all are. */
  #current(start: number, end: number): Uint32Array | undefined {
    const { reader, deletions } = this.#segment;
    const { withTombstones, upTo } = this.#filter;
    const group = this.#group;
    const checksTombstones = !withTombstones && reader.hasTombstones(group);
    if (!checksTombstones && !deletions.hasReplaced(start, end, upTo)) return undefined;
    const groupStart = reader.groupStart(group);
    const isHidden = checksTombstones
      ? reader.deleted(group).slice(start - groupStart, end - groupStart)
      : new Uint8Array(end - start);
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

/** The rows of an owner whose seqs are above `after` and up to `seqMax`. */
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

/** The type of a column, or of a system column. */
export function columnTypeOf(table: StoredTable, columnId: number): DataType {
  return table.column(columnId)?.type ?? (columnId === DELETED_COLUMN_ID ? BOOLEAN : BIGINT);
}

/** How many rows of a group are read at a time, so that not too much of them is unpacked. */
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

/** Wanted rows, counted from the start of their group. */
export interface GroupRows {
  readonly group: number;
  readonly start: number;
  readonly end: number;
  /** Where columns are decoded to. */
  readonly buffers?: Map<number, ColumnBuffer> | undefined;
  /** Whether numbers are decoded there only once they are looked at. */
  readonly isDeferred?: boolean;
}

/** The columns of the wanted rows of one row group, each decoded once and only if asked for. */
export class GroupColumns {
  readonly #table: StoredTable;
  readonly #segment: OpenSegment;
  readonly #group: number;
  /** Wanted rows, counted from the start of the group. */
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

  /** Rows of a column, counted from the start of the group, within the wanted ones. */
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

  /** Numbers are decoded as fast as they would be read from a cache that everything passes. */
  #numbers(columnId: number, start: number, end: number): Vector {
    const span = { start, end, buffer: this.#bufferOf(columnId), isDeferred: this.#isDeferred };
    const stored = this.#segment.reader.columnRows(columnId, this.#group, span);
    const column = this.#table.column(columnId);
    const storedType = this.#segment.columnType(columnId);
    assert(stored !== undefined && storedType !== undefined, "the file has the column");
    return column === undefined ? stored : convertVector(stored, storedType, column.type);
  }

  /** Where a column is decoded to, unless batches must not share memory. */
  #bufferOf(columnId: number): ColumnBuffer | undefined {
    if (this.#buffers === undefined) return undefined;
    let buffer = this.#buffers.get(columnId);
    if (buffer === undefined) {
      buffer = new ColumnBuffer();
      this.#buffers.set(columnId, buffer);
    }
    return buffer;
  }

  /** Packed rows, of this batch alone, since that takes its time; texts once they are looked at. */
  #unpacked(columnId: number, start: number, end: number): Vector {
    const segment = this.#segment;
    const group = this.#group;
    const storedType = segment.columnType(columnId);
    assert(storedType !== undefined, "the file has the column");
    const make = (): Vector => {
      const span = { start, end, buffer: this.#bufferOf(columnId) };
      const rows = segment.guard(() => segment.reader.columnRows(columnId, group, span));
      assert(rows !== undefined, "the file has the column");
      return rows;
    };
    const makeTexts = (): Utf8Vector => {
      const texts = make();
      assert(texts.kind === "utf8", "packed text is UTF-8");
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

function isWithin(value: Value, min: number, max: number): boolean {
  if (value === null) return false;
  if (typeof value !== "number") return true;
  return value >= min && value <= max;
}
