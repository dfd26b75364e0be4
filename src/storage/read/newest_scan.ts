/**
 * Reads one owner's live rows from newest to oldest, that is, in descending order of `_seq`.
 * Segments and memtables are read from last to first, and each of them backwards. Blocks and pages
 * without a live row take almost no time.
 *
 * Segments stay pinned until the scan is closed.
 */
import { assert } from "../../base/assert.ts";
import { type Value, vectorFromValues } from "../../types/mod.ts";
import type { OrderedScan, OrderedScanOptions, ScanBatch } from "../contract/scans.ts";
import { SEQ_COLUMN_ID } from "../contract/system_columns.ts";
import { PAGE_MASK } from "../deletions/replacement_pages.ts";
import { BLOCK_ROWS, type Memtable } from "../memtable/memtable.ts";
import type { OpenSegment } from "../table/open_segment.ts";
import type { StoredTable } from "../table/table.ts";
import { VersionCursor } from "../table/version_cursor.ts";
import { DefinitionWatch } from "./definition_watch.ts";
import { columnTypeOf, ownerSpan } from "./segment_scan.ts";

/** The bounds on the seqs of the versions to read. All bounds except `after` are inclusive. */
interface GroupBounds {
  readonly owner: number;
  readonly upTo: number;
  readonly after: number;
  readonly seqMax: number;
}

export class NewestScan implements OrderedScan {
  readonly rowCount: number;
  rowsPassed = 0;
  readonly #table: StoredTable;
  readonly #columnIds: readonly number[];
  readonly #watch: DefinitionWatch;
  readonly #pinned: readonly OpenSegment[];
  readonly #memtables: readonly Memtable[];
  readonly #rows: Generator<void, void>;
  readonly #cursor = new VersionCursor();
  #isOpen = true;

  private constructor(table: StoredTable, options: OrderedScanOptions) {
    const { after = 0, columnIds, max, min, owner, upTo } = options;
    assert(options.isDescending, "newest-row scan: scan direction is not descending");
    this.#table = table;
    this.#columnIds = columnIds;
    this.#watch = new DefinitionWatch(table, columnIds);
    this.#pinned = [...table.segments];
    for (const segment of this.#pinned) segment.pin();
    this.#memtables = table.memtables();
    const bounds = {
      owner,
      upTo,
      after: typeof min === "number" ? Math.max(after, Math.ceil(min) - 1) : after,
      seqMax: typeof max === "number" ? Math.min(upTo, Math.floor(max)) : upTo,
    };
    this.rowCount = versionsOf(table, owner);
    this.#rows = this.#walk(bounds);
  }

  /**
   * Opens a scan from newest to oldest. Returns undefined if some of the rows are in history,
   * which cannot be read backwards.
   */
  static open(table: StoredTable, options: OrderedScanOptions): NewestScan | undefined {
    assert(options.columnId === SEQ_COLUMN_ID, "newest-row scan: order column is not _seq");
    if (table.historyAt(options.upTo).length > 0) return undefined;
    return new NewestScan(table, options);
  }

  next(rowsMax: number): ScanBatch | undefined {
    this.#watch.check();
    const values = this.#columnIds.map((): Value[] => []);
    let rowCount = 0;
    while (rowCount < rowsMax && this.#rows.next().done !== true) {
      for (const [index, columnId] of this.#columnIds.entries()) {
        values[index]?.push(this.#table.valueAt(this.#cursor, columnId));
      }
      rowCount += 1;
    }
    if (rowCount === 0) return undefined;
    const columns = this.#columnIds.map((columnId, index) =>
      vectorFromValues(columnTypeOf(this.#table, columnId), values[index] ?? []),
    );
    return { rowCount, columns };
  }

  skip(rowsMax: number): number | undefined {
    this.#watch.check();
    let count = 0;
    while (count < rowsMax && this.#rows.next().done !== true) count += 1;
    return count === 0 ? undefined : count;
  }

  close(): void {
    if (!this.#isOpen) return;
    this.#isOpen = false;
    this.#rows.return();
    for (const segment of this.#pinned) segment.unpin();
  }

  /** Moves the cursor to each live row in turn. */
  *#walk(bounds: GroupBounds): Generator<void, void> {
    for (const memtable of this.#memtables.toReversed()) {
      for (const row of memtableRows(memtable, bounds)) {
        this.rowsPassed += 1;
        this.#cursor.standInMemtable(memtable, row);
        yield;
      }
    }
    for (const segment of this.#pinned.toReversed()) {
      for (const row of segmentRows(segment, bounds)) {
        this.rowsPassed += 1;
        this.#cursor.standInSegment(segment, row);
        yield;
      }
    }
  }
}

/** Counts the versions of an owner in a table. */
function versionsOf(table: StoredTable, owner: number): number {
  let count = 0;
  for (const segment of table.segments) {
    const rows = segment.guard(() => segment.reader.ownerRange(owner));
    if (rows !== undefined) count += rows.end - rows.start;
  }
  for (const { partitions } of table.memtables()) count += partitions.get(owner)?.count ?? 0;
  return count;
}

/** Yields the live rows of a memtable, newest first. */
function* memtableRows(
  memtable: Memtable,
  { after, owner, seqMax, upTo }: GroupBounds,
): Generator<number, void> {
  const partition = memtable.partitions.get(owner);
  if (partition === undefined) return;
  const { deleted, replacedBy } = memtable;
  const start = memtable.indexAfter(partition, after);
  let end = memtable.indexAfter(partition, seqMax);
  while (end > start) {
    const blockStart = Math.max(start, (end - 1) & ~(BLOCK_ROWS - 1));
    const isBlock = end - blockStart === BLOCK_ROWS;
    const live = isBlock
      ? memtable.liveRowsOf(partition, blockStart / BLOCK_ROWS, upTo)
      : undefined;
    const rows: Uint32Array = live ?? partition.rows.subarray(blockStart, end);
    for (let index = rows.length - 1; index >= 0; index -= 1) {
      const row = rows[index] ?? 0;
      const replacement = replacedBy[row] ?? 0;
      const isReplaced = replacement !== 0 && replacement <= upTo;
      if (!isReplaced && deleted[row] === 0) yield row;
    }
    end = blockStart;
  }
}

/** Yields the live rows of a segment, newest first. */
function* segmentRows(segment: OpenSegment, bounds: GroupBounds): Generator<number, void> {
  const { maxSeq, minSeq } = segment.entry;
  if (minSeq > bounds.seqMax || maxSeq <= bounds.after) return;
  const { livePages, reader } = segment;
  const span = segment.guard(() => ownerSpan(reader, bounds));
  let { end } = span;
  while (end > span.start) {
    const start = Math.max(span.start, (end - 1) & ~PAGE_MASK);
    const part = { start, end };
    const live = segment.guard(() => livePages.aliveRows(part, bounds.upTo));
    const count = live?.length ?? end - start;
    for (let place = count - 1; place >= 0; place -= 1) {
      yield start + (live === undefined ? place : (live[place] ?? 0));
    }
    end = start;
  }
}
