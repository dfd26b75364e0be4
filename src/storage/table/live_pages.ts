/**
 * Keeps track of the live rows of a segment page by page. A live row is neither a tombstone nor
 * replaced by a newer version. A read skips pages without live rows, and the live rows of the
 * other pages are cached. History thus costs a read only some nanoseconds per page of 4,096
 * versions.
 *
 * - The counts and the rows are derived from the deletion vector and stored nowhere else, so they
 *   cannot be out of date after a crash. They are valid until their page changes.
 * - Cached rows apply only to reads at or above every replacement in the page. A replacement above
 *   a read's bound may be rolled back without notice to a reader in another thread, so such a read
 *   does not use the cache.
 */
import type { DeletionVector } from "../deletions/deletion_vector.ts";
import { PAGE_BITS, PAGE_MASK, PAGE_ROWS } from "../deletions/replacement_pages.ts";
import { type ChunkCache, sharedCache } from "../segment/chunk_cache.ts";
import type { LiveRows } from "../segment/column_order.ts";
import type { RowSpan, SegmentReader } from "../segment/reader.ts";

/** The segment whose rows are divided into pages. */
interface PagedRows {
  readonly deletions: Pick<
    DeletionVector,
    "countOfPage" | "highestOfPage" | "markReplaced" | "pageVersion"
  >;
  readonly reader: Pick<
    SegmentReader,
    "deleted" | "groupOf" | "groupRows" | "groupStart" | "hasTombstones" | "rowCount"
  >;
}

const UNKNOWN = -1;

const NO_PLACES = new Uint16Array(0);

export class LivePages {
  /** The number of pages examined so far. Examining a page takes some microseconds. */
  lookCount = 0;
  readonly #rows: PagedRows;
  readonly #rowCount: number;
  readonly #cache: ChunkCache;
  readonly #cacheKey: number;
  /** For each page, the version of the page when its live rows were last counted. */
  readonly #countedIn: Float64Array;
  readonly #counts: Int16Array;
  /** For each page, the version of the page when its live rows were last cached. */
  readonly #listedIn: Float64Array;

  constructor(rows: PagedRows, cache: ChunkCache = sharedCache) {
    const { rowCount } = rows.reader;
    const pageCount = Math.ceil(rowCount / PAGE_ROWS);
    this.#rows = rows;
    this.#rowCount = rowCount;
    this.#cache = cache;
    this.#cacheKey = cache.addReader();
    this.#countedIn = new Float64Array(pageCount).fill(UNKNOWN);
    this.#counts = new Int16Array(pageCount);
    this.#listedIn = new Float64Array(pageCount).fill(UNKNOWN);
  }

  /**
   * Returns the first row of a span that is in a page with a live row; the end of the span if
   * there is none.
   */
  firstAlive({ end, start }: RowSpan, upTo: number): number {
    let row = start;
    while (row < end) {
      if (this.#countIn(row >>> PAGE_BITS, upTo) !== 0) return row;
      row = this.endOfPage(row);
    }
    return end;
  }

  /** Returns the end of the page that contains a row. */
  endOfPage(row: number): number {
    return Math.min(this.#rowCount, (row | PAGE_MASK) + 1);
  }

  /** Counts the rows of a span that are live at `upTo`. */
  countAlive({ end, start }: RowSpan, upTo: number): number {
    let count = 0;
    for (let row = start; row < end; ) {
      const part = { start: row, end: Math.min(end, this.endOfPage(row)) };
      const known = this.#isPage(part) ? this.#countIn(row >>> PAGE_BITS, upTo) : undefined;
      if (known !== undefined) count += known;
      else count += zerosIn(this.#hiddenFlags(part, upTo));
      row = part.end;
    }
    return count;
  }

  /** Counts all rows, live or not, in the pages that contain a live row. */
  rowsInLivePages(upTo: number): number {
    let count = 0;
    for (let row = 0; row < this.#rowCount; row = this.endOfPage(row)) {
      if (this.#countIn(row >>> PAGE_BITS, upTo) !== 0) count += this.endOfPage(row) - row;
    }
    return count;
  }

  /**
   * Returns the rows of a span that are live at `upTo`, numbered from the start of the span;
   * undefined if all rows are live.
   */
  aliveRows({ end, start }: RowSpan, upTo: number): Uint32Array | undefined {
    let kept: Uint32Array | undefined;
    let count = 0;
    for (let row = start; row < end; ) {
      const part = { start: row, end: Math.min(end, this.endOfPage(row)) };
      const rowCount = part.end - row;
      const from = row - start;
      const places = this.#aliveIn(part, upTo);
      row = part.end;
      if (places === undefined && kept === undefined) {
        count += rowCount;
        continue;
      }
      if (kept === undefined) {
        kept = new Uint32Array(end - start);
        for (let index = 0; index < count; index += 1) kept[index] = index;
      }
      const placeCount = places?.length ?? rowCount;
      for (let index = 0; index < placeCount; index += 1) {
        kept[count + index] = from + (places === undefined ? index : (places[index] ?? 0));
      }
      count += placeCount;
    }
    return kept?.subarray(0, count);
  }

  /** Returns the rows that a read at `upTo` may need, for a span within a row group. */
  liveRows(span: RowSpan, upTo: number): LiveRows {
    return {
      upTo,
      hiddenCount: this.#replacedIn(span),
      rows: () => {
        const rows = this.aliveRows(span, upTo);
        return rows === undefined ? undefined : Uint16Array.from(rows);
      },
    };
  }

  /** Drops the cached rows, because the file is being closed. */
  release(): void {
    this.#cache.removeReader(this.#cacheKey, this.#listedIn.length);
  }

  /** Counts the replaced rows in the pages that a span overlaps. */
  #replacedIn({ end, start }: RowSpan): number {
    let count = 0;
    for (let page = start >>> PAGE_BITS; page << PAGE_BITS < end; page += 1) {
      count += this.#rows.deletions.countOfPage(page);
    }
    return count;
  }

  #isPage({ end, start }: RowSpan): boolean {
    return (start & PAGE_MASK) === 0 && end === this.endOfPage(start);
  }

  /** Counts the live rows of a page; undefined if a row in it was replaced above `upTo`. */
  #countIn(page: number, upTo: number): number | undefined {
    const { deletions } = this.#rows;
    if (deletions.highestOfPage(page) > upTo) return undefined;
    const version = deletions.pageVersion(page);
    if (this.#countedIn[page] !== version) {
      const span = this.#spanOf(page);
      const isWhole = !this.#mayHide(span);
      const count = isWhole ? span.end - span.start : zerosIn(this.#hiddenFlags(span, upTo));
      this.#counts[page] = count;
      this.#countedIn[page] = version;
    }
    return this.#counts[page] ?? 0;
  }

  /**
   * Returns the live rows in a part of a page, numbered from the start of the part; undefined if
   * all rows are live.
   */
  #aliveIn(part: RowSpan, upTo: number): Uint16Array | undefined {
    const rowCount = part.end - part.start;
    const page = part.start >>> PAGE_BITS;
    const count = this.#isPage(part) ? this.#countIn(page, upTo) : undefined;
    if (count === rowCount) return undefined;
    if (count === 0) return NO_PLACES;
    if (count === undefined) {
      if (!this.#mayHide(part)) return undefined;
      const rows = rowsWithout(this.#hiddenFlags(part, upTo));
      return rows.length === rowCount ? undefined : rows;
    }
    const version = this.#rows.deletions.pageVersion(page);
    if (this.#listedIn[page] === version) {
      const bytes = this.#cache.bytes(this.#cacheKey, page);
      if (bytes !== undefined) return new Uint16Array(bytes.buffer, bytes.byteOffset, count);
    }
    const rows = rowsWithout(this.#hiddenFlags(part, upTo));
    this.#cache.putBytes(this.#cacheKey, page, new Uint8Array(rows.buffer));
    this.#listedIn[page] = version;
    return rows;
  }

  /**
   * Whether a page may contain a replaced row, or one of its row groups may contain a tombstone.
   */
  #mayHide({ end, start }: RowSpan): boolean {
    const { deletions, reader } = this.#rows;
    if (deletions.countOfPage(start >>> PAGE_BITS) > 0) return true;
    for (let group = reader.groupOf(start); group <= reader.groupOf(end - 1); group += 1) {
      if (reader.hasTombstones(group)) return true;
    }
    return false;
  }

  /**
   * Returns a flag for each row in a part of a page: 1 if the row is a tombstone or was replaced
   * at or below `upTo`.
   */
  #hiddenFlags({ end, start }: RowSpan, upTo: number): Uint8Array {
    this.lookCount += 1;
    const { deletions, reader } = this.#rows;
    const flags = new Uint8Array(end - start);
    for (let group = reader.groupOf(start); group <= reader.groupOf(end - 1); group += 1) {
      if (!reader.hasTombstones(group)) continue;
      const groupStart = reader.groupStart(group);
      const from = Math.max(start, groupStart);
      const to = Math.min(end, groupStart + reader.groupRows(group));
      flags.set(reader.deleted(group).subarray(from - groupStart, to - groupStart), from - start);
    }
    deletions.markReplaced(start, upTo, flags);
    return flags;
  }

  #spanOf(page: number): RowSpan {
    const start = page << PAGE_BITS;
    return { start, end: this.endOfPage(start) };
  }
}

function zerosIn(flags: Uint8Array): number {
  let count = 0;
  // An indexed loop is several times faster here than an iterator.
  for (let row = 0; row < flags.length; row += 1) count += 1 - (flags[row] ?? 0);
  return count;
}

/** Returns the indexes of all zero flags, in a new array. */
function rowsWithout(flags: Uint8Array): Uint16Array {
  const rows = new Uint16Array(flags.length);
  let count = 0;
  for (let row = 0; row < flags.length; row += 1) {
    rows[count] = row;
    count += 1 - (flags[row] ?? 0);
  }
  return rows.slice(0, count);
}
