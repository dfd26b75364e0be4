/**
 * Scans one owner's rows in a history segment that were current at a seq. At the newest seq,
 * history contributes no rows, except for tombstones, which are returned on request.
 *
 * - A row group in which all rows had already been replaced at that seq is skipped without being
 *   read.
 * - A tombstone that was never replaced is recorded as its own replacement. It is current unless
 *   its key was inserted again. The segment does not record that, so the key is looked up.
 */

import { takeLater } from "../../types/mod.ts";
import type { ScanBatch } from "../contract/scans.ts";
import { REPLACING_COLUMN_ID } from "../segment/format.ts";
import type { RowSpan } from "../segment/reader.ts";
import type { OpenSegment } from "../table/open_segment.ts";
import { hasVersion } from "../table/past_versions.ts";
import { isHistoryAt, type StoredTable } from "../table/table.ts";
import { VersionCursor } from "../table/version_cursor.ts";
import { HIDDEN_BATCHES_MAX, NO_ROWS, type RowFilter, type RowSource } from "./row_source.ts";
import { GroupColumns, ownerSpan, rowsAtOnce } from "./segment_scan.ts";
import { mayMatch } from "./zone_match.ts";

/**
 * The maximum number of tombstones in a batch. Looking up the key of each tombstone takes some
 * microseconds.
 */
const TOMBSTONES_MAX = 1024;

/** Returns the history segments that may have rows for a scan. */
export function historyFor({ history }: StoredTable, filter: RowFilter): OpenSegment[] {
  const { after, seqMax, upTo, withTombstones } = filter;
  return history.filter(({ entry }) => {
    if (entry.minSeq > seqMax || entry.maxSeq <= after) return false;
    return withTombstones || isHistoryAt(entry, upTo);
  });
}

export class HistoryScan implements RowSource {
  groupsRead = 0;
  groupsPruned = 0;
  readonly #table: StoredTable;
  readonly #segment: OpenSegment;
  readonly #filter: RowFilter;
  readonly #cursor = new VersionCursor();
  #isOpen = true;
  /** The range of the owner's rows in the segment. */
  #span: RowSpan | undefined;
  #group = -1;
  /** The number of the next row to read. */
  #row = 0;
  #rowEnd = 0;
  #batchRowsMax = Infinity;
  #columns: GroupColumns | undefined;

  constructor(table: StoredTable, segment: OpenSegment, filter: RowFilter) {
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
    const { mayBeEmpty, withTombstones } = this.#filter;
    const rowsMax = withTombstones ? Math.min(limit, TOMBSTONES_MAX) : limit;
    const hiddenMax = withTombstones ? 1 : HIDDEN_BATCHES_MAX;
    let hiddenCount = 0;
    for (;;) {
      while (this.#row < this.#rowEnd) {
        const start = this.#row;
        const end = Math.min(start + rowsMax, start + this.#batchRowsMax, this.#rowEnd);
        this.#row = end;
        const batch = this.#batch(start, end);
        if (batch !== undefined) return batch;
        hiddenCount += 1;
        if (mayBeEmpty && hiddenCount >= hiddenMax) return NO_ROWS;
      }
      if (!this.#nextGroup()) return undefined;
    }
  }

  #nextGroup(): boolean {
    const { reader } = this.#segment;
    this.#span ??= ownerSpan(reader, this.#filter);
    const { end, start } = this.#span;
    if (start === end) return false;
    const last = reader.groupOf(end - 1);
    if (this.#group === -1) this.#group = reader.groupOf(start) - 1;
    while (this.#group < last) {
      this.#group += 1;
      if (this.#filter.share?.claimsNext() === false) continue;
      if (!this.#mayHaveRows(this.#group)) {
        this.groupsPruned += 1;
        continue;
      }
      this.groupsRead += 1;
      const groupStart = reader.groupStart(this.#group);
      this.#row = Math.max(start, groupStart);
      this.#rowEnd = Math.min(end, groupStart + reader.groupRows(this.#group));
      this.#batchRowsMax = rowsAtOnce(reader, this.#group, this.#filter.columnIds);
      this.#columns = new GroupColumns(this.#table, this.#segment, {
        group: this.#group,
        start: this.#row - groupStart,
        end: this.#rowEnd - groupStart,
      });
      return true;
    }
    return false;
  }

  #mayHaveRows(group: number): boolean {
    const { ranges, upTo, withTombstones } = this.#filter;
    const { reader } = this.#segment;
    const replacing = reader.zone(REPLACING_COLUMN_ID, group);
    const isOver = replacing !== undefined && replacing.max <= upTo;
    if (isOver && !(withTombstones && reader.hasTombstones(group))) return false;
    return mayMatch({ segment: this.#segment, table: this.#table }, ranges, group);
  }

  /** Returns the current rows from `start` to `end`, which lie within one row group. */
  #batch(start: number, end: number): ScanBatch | undefined {
    const columns = this.#columns;
    const kept = this.#current(start, end);
    if (columns === undefined || kept.length === 0) return undefined;
    const from = start - this.#segment.reader.groupStart(this.#group);
    const selection = { rows: kept, count: kept.length };
    const vectors = this.#filter.columnIds.map((id) =>
      takeLater(columns.rows(id, from, from + end - start), selection),
    );
    return { rowCount: kept.length, columns: vectors };
  }

  /** Returns the numbers of the current rows from `start` to `end`, counted from `start`. */
  #current(start: number, end: number): Uint32Array {
    const { reader } = this.#segment;
    const { upTo, withTombstones } = this.#filter;
    const group = this.#group;
    const from = start - reader.groupStart(group);
    const replacing = reader.replacingSeqs(group);
    const deleted = reader.hasTombstones(group) ? reader.deleted(group) : undefined;
    const kept = new Uint32Array(end - start);
    let count = 0;
    for (let index = 0; index < kept.length; index += 1) {
      const isDeleted = deleted?.[from + index] === 1;
      if (isDeleted && !withTombstones) continue;
      const isReplaced = (replacing[from + index] ?? 0) <= upTo;
      if (isReplaced && !(isDeleted && this.#isLast(start + index))) continue;
      kept[count] = index;
      count += 1;
    }
    return kept.subarray(0, count);
  }

  /** Whether a tombstone is the newest version of its key up to the scan's bound. */
  #isLast(row: number): boolean {
    const table = this.#table;
    const cursor = this.#cursor;
    cursor.standInSegment(this.#segment, row);
    const { replacedBy, seq: after } = cursor;
    if (replacedBy !== after) return false;
    if (table.keyPositions.length === 0) return true;
    const { owner, upTo } = this.#filter;
    return !hasVersion(table, { owner, key: table.keyAt(cursor) }, { after, upTo });
  }
}
