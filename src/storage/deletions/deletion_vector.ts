/**
 * Records which rows of a segment have been replaced by newer versions, with the seq of each
 * replacement. A read at seq S hides a row only if its replacement has a seq of S or less.
 *
 * In memory, the rows are divided into pages (`replacement_pages.ts`). On disk:
 *
 *     OFFSET SIZE   little-endian; u53 and hash64 are two u32, low half first
 *          0    8   magic "TIDEDV01": the digits are the format
 *          8    8   u53 segment id
 *         16    4   u32 rows of the segment
 *         20    4   u32 entries, n
 *         24   8n   f64 replacing seq of each entry
 *     24+8n    4n   u32 row of each entry, ascending; zeros up to a multiple of 8 bytes
 *          …    8   hash64 of everything before, seeded with the segment id
 *
 * The manifest contains the same hash. If an intact file of an earlier generation appeared under a
 * newer name, for example after a copy was restored, deleted rows would reappear. Such a file is
 * therefore treated as damaged.
 */
import { assert } from "../../base/assert.ts";
import { ByteReader } from "../../base/byte_reader.ts";
import { ByteWriter } from "../../base/byte_writer.ts";
import { numberInMagic } from "../../base/bytes.ts";
import { type Hash64, placeSeed, xxHash3 } from "../../base/checksum.ts";
import { CorruptionError } from "../../base/errors.ts";
import type { SharedPage } from "../contract/shared_tables.ts";
import type { PreparedReplacements } from "./prepared_replacements.ts";
import {
  bytesOfPage,
  countInPage,
  countOf,
  markInPage,
  mergePage,
  PAGE_BITS,
  PAGE_MASK,
  PAGE_ROWS,
  type Page,
  type PageRange,
  pageOfShare,
  pageUpTo,
  putInPage,
  seqInPage,
  sharedPage,
  takeFromPage,
  visitPage,
} from "./replacement_pages.ts";

/**
 * The format number of the file. In every format, the magic, the segment id and the final hash are
 * at the same offsets.
 */
export const DELETIONS_FORMAT = 1;

export const DELETIONS_MAGIC_NAME = "TIDEDV";

const MAGIC: Uint8Array = new TextEncoder().encode(`${DELETIONS_MAGIC_NAME}0${DELETIONS_FORMAT}`);
const HEADER_BYTES = 24;
const HASH_BYTES = 8;

/** The number of rows that one step of encoding examines. */
const STEP_ROWS: number = 8 * PAGE_ROWS;

export interface DeletionVectorOptions {
  readonly segmentId: number;
  /** The number of rows in the segment. */
  readonly rowCount: number;
}

export class DeletionVector {
  readonly segmentId: number;
  readonly rowCount: number;
  readonly #pages: (Page | undefined)[];
  /**
   * For each page, the version number of the vector at the page's last change; undefined if the
   * page has never changed.
   */
  readonly #changedIn: number[] = [];
  #version = 0;
  #count = 0;
  #highestSeq = 0;

  constructor({ segmentId, rowCount }: DeletionVectorOptions) {
    assert(rowCount < 2 ** 31, "deletion vector: row count does not fit in 31 bits");
    this.segmentId = segmentId;
    this.rowCount = rowCount;
    this.#pages = Array.from({ length: Math.ceil(rowCount / PAGE_ROWS) });
  }

  /** Decodes the bytes of a deletion vector. @throws {CorruptionError} If the bytes are damaged. */
  static decode(bytes: Uint8Array, path: string): DeletionVector {
    const reader = new ByteReader(bytes, { path });
    const magic = reader.raw(MAGIC.length);
    if (!MAGIC.every((byte, index) => magic[index] === byte)) {
      throw new CorruptionError(path, 0, "the file is not a deletion vector");
    }
    const segmentId = reader.u53();
    const rowCount = reader.u32();
    const count = reader.u32();
    const hashAt = bytes.length - HASH_BYTES;
    if (hashAt !== HEADER_BYTES + Math.ceil((count * 12) / 8) * 8) {
      throw new CorruptionError(
        path,
        bytes.length,
        `the file's length does not match its ${count} entries`,
      );
    }
    const hash = xxHash3(bytes.subarray(0, hashAt), placeSeed(segmentId, 0, 0));
    reader.position = hashAt;
    if (reader.u32() !== hash.low || reader.u32() !== hash.high) {
      throw new CorruptionError(path, hashAt, "the checksum does not match");
    }
    // The checksum is correct, so the entries are as `encode` wrote them, and valid.
    const vector = new DeletionVector({ segmentId, rowCount });
    const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    for (let index = 0; index < count; index += 1) {
      const row = view.getUint32(HEADER_BYTES + count * 8 + index * 4, true);
      vector.replace(row, view.getFloat64(HEADER_BYTES + index * 8, true));
    }
    return vector;
  }

  /** Returns the hash at the end of a deletion vector file without verifying it. */
  static hashIn(bytes: Uint8Array, path: string): Hash64 {
    const reader = new ByteReader(bytes, { path });
    reader.position = bytes.length - HASH_BYTES;
    return { low: reader.u32(), high: reader.u32() };
  }

  /**
   * Returns the format of a deletion vector file; undefined if the file is damaged or of another
   * kind.
   */
  static formatOf(bytes: Uint8Array): number | undefined {
    if (bytes.length < HEADER_BYTES + HASH_BYTES) return undefined;
    const reader = new ByteReader(bytes, { path: "" });
    reader.position = MAGIC.length;
    const seed = placeSeed(reader.u53(), 0, 0);
    const hashAt = bytes.length - HASH_BYTES;
    const hash = xxHash3(bytes.subarray(0, hashAt), seed);
    reader.position = hashAt;
    if (reader.u32() !== hash.low || reader.u32() !== hash.high) return undefined;
    return numberInMagic(bytes, DELETIONS_MAGIC_NAME);
  }

  /** The approximate memory of the deletion vector in bytes. */
  get bytes(): number {
    let bytes = 0;
    for (const page of this.#pages) if (page !== undefined) bytes += bytesOfPage(page);
    return bytes;
  }

  /** The number of replaced rows in the segment. */
  get count(): number {
    return this.#count;
  }

  /** An upper bound on the seqs of all replacements so far; 0 if there have been none. */
  get highestSeq(): number {
    return this.#highestSeq;
  }

  /** The version number of the vector. Each change increases it. */
  get version(): number {
    return this.#version;
  }

  /** Returns the pages changed since a given version of the vector. */
  pagesSince(version: number): SharedPage[] {
    const changed: SharedPage[] = [];
    if (version === this.#version) return changed;
    for (const [index, changedIn = 0] of this.#changedIn.entries()) {
      if (changedIn > version) changed.push(sharedPage(index, this.#pages[index]));
    }
    return changed;
  }

  /** Replaces pages of this copy with pages of the original vector. */
  adopt(pages: readonly SharedPage[]): void {
    for (const page of pages) {
      this.#pages[page.index] = pageOfShare(page);
      this.#noteChange(page.index);
    }
  }

  #noteChange(pageIndex: number): void {
    this.#version += 1;
    this.#changedIn[pageIndex] = this.#version;
  }

  /**
   * Returns the version number of the vector at the last change to a page; 0 before the first
   * change.
   */
  pageVersion(pageIndex: number): number {
    return this.#changedIn[pageIndex] ?? 0;
  }

  /** Returns the number of replaced rows in a page. */
  countOfPage(pageIndex: number): number {
    const page = this.#pages[pageIndex];
    return page === undefined ? 0 : countOf(page);
  }

  /**
   * Returns an upper bound on the seqs that replaced rows of a page; 0 if no row has been
   * replaced.
   */
  highestOfPage(pageIndex: number): number {
    return this.#pages[pageIndex]?.highest ?? 0;
  }

  /** Returns the seq of the version that replaced a row; 0 if the row has not been replaced. */
  replacedBy(row: number): number {
    const page = this.#pages[row >>> PAGE_BITS];
    return page === undefined ? 0 : seqInPage(page, row & PAGE_MASK);
  }

  /**
   * Records that a version with seq `seq` replaces a row, which was the newest version of its key.
   */
  replace(row: number, seq: number): void {
    assert(row >= 0 && row < this.rowCount, "deletion vector: row is outside the segment");
    assert(seq > 0, "deletion vector: replacing seq is not positive");
    const pageIndex = row >>> PAGE_BITS;
    const inPage = row & PAGE_MASK;
    assert(this.replacedBy(row) === 0, "deletion vector: row was already replaced");
    this.#pages[pageIndex] = putInPage(this.#pages[pageIndex], inPage, seq);
    this.#noteChange(pageIndex);
    this.#count += 1;
    this.#highestSeq = Math.max(this.#highestSeq, seq);
  }

  /** Records many replacements whose seqs are already known. Takes ownership of their pages. */
  replaceAll(prepared: PreparedReplacements): void {
    for (const [index, page] of prepared.pages) {
      assert(index < this.#pages.length, "deletion vector: row is outside the segment");
      const known = this.#pages[index];
      this.#pages[index] = known === undefined ? page : mergePage(known, page);
      this.#count += countOf(page);
      this.#noteChange(index);
    }
    this.#highestSeq = Math.max(this.#highestSeq, prepared.seqs.most);
  }

  /** Removes a row's replacement because it was rolled back. */
  revert(row: number): void {
    const pageIndex = row >>> PAGE_BITS;
    const inPage = row & PAGE_MASK;
    const page = this.#pages[pageIndex];
    assert(
      page !== undefined && this.replacedBy(row) !== 0,
      "deletion vector: row to be restored was not replaced",
    );
    this.#count -= 1;
    takeFromPage(page, inPage);
    if (countOf(page) === 0) this.#pages[pageIndex] = undefined;
    this.#noteChange(pageIndex);
  }

  /**
   * Whether any row from `start` (inclusive) to `end` (exclusive) was replaced at or before
   * `upTo`.
   */
  hasReplaced(start: number, end: number, upTo: number): boolean {
    let isFound = false;
    this.#visit(start, end, (_row, seq) => {
      isFound = seq <= upTo;
      return isFound;
    });
    return isFound;
  }

  /**
   * Sets the flag to 1 for each row from `start` on that was replaced at or before `upTo`. All
   * other flags keep their values.
   *
   * @param flags One byte per row; `flags[0]` belongs to row `start`.
   * @returns The number of replaced rows.
   */
  markReplaced(start: number, upTo: number, flags: Uint8Array): number {
    let count = 0;
    this.#visitPages(start, start + flags.length, (page, first, range) => {
      count += markInPage(page, range, { flags, at: first - start, upTo });
      return false;
    });
    return count;
  }

  /**
   * Counts the rows from `start` (inclusive) to `end` (exclusive) replaced at or before `upTo`.
   */
  countReplaced(start: number, end: number, upTo: number): number {
    let count = 0;
    this.#visitPages(start, end, (page, _first, range) => {
      count += countInPage(page, range, upTo);
      return false;
    });
    return count;
  }

  /** Calls `visit` for every replaced row, in ascending order. */
  visitAll(visit: (row: number, seq: number) => void): void {
    this.#visit(0, this.rowCount, (row, seq) => {
      visit(row, seq);
      return false;
    });
  }

  /**
   * Visits every replaced row as {@linkcode visitAll} does, but in steps of some ten thousand
   * rows. A change made between two steps may or may not be visited.
   */
  *visitSteps(visit: (row: number, seq: number) => void): Generator<void, void> {
    for (let start = 0; start < this.rowCount; start += STEP_ROWS) {
      this.#visit(start, Math.min(start + STEP_ROWS, this.rowCount), (row, seq) => {
        visit(row, seq);
        return false;
      });
      yield;
    }
  }

  /** Returns a copy that contains only the replacements with a seq of at most `upTo`. */
  upTo(upTo: number): DeletionVector {
    const copy = new DeletionVector(this);
    for (const [index, page] of this.#pages.entries()) {
      const kept = page === undefined ? undefined : pageUpTo(page, upTo);
      if (kept === undefined || countOf(kept) === 0) continue;
      copy.#pages[index] = kept;
      copy.#count += countOf(kept);
    }
    copy.#highestSeq = Math.min(upTo, this.#highestSeq);
    return copy;
  }

  encode(): Uint8Array<ArrayBuffer> {
    const steps = this.encodeUpTo(Infinity);
    for (;;) {
      const { done, value } = steps.next();
      if (done === true) return value;
    }
  }

  /**
   * Encodes the replacements up to `upTo` as a file, in steps that each examine some ten thousand
   * rows. Between steps, later replacements may be added or removed, but replacements up to `upTo`
   * must not change.
   */
  *encodeUpTo(upTo: number): Generator<void, Uint8Array<ArrayBuffer>> {
    const count = yield* this.countUpTo(upTo);
    const seqsAt = HEADER_BYTES;
    const rowsAt = seqsAt + count * 8;
    const hashAt = HEADER_BYTES + Math.ceil((count * 12) / 8) * 8;
    const bytes = new Uint8Array(hashAt + HASH_BYTES);
    const head = new ByteWriter(HEADER_BYTES);
    head.raw(MAGIC);
    head.u53(this.segmentId);
    head.u32(this.rowCount);
    head.u32(count);
    bytes.set(head.view());
    // Needs no byte swapping: typed arrays are little-endian on all supported platforms.
    const seqs = new Float64Array(bytes.buffer, seqsAt, count);
    const rows = new Uint32Array(bytes.buffer, rowsAt, count);
    let at = 0;
    for (let start = 0; start < this.rowCount; start += STEP_ROWS) {
      this.#visit(start, Math.min(start + STEP_ROWS, this.rowCount), (row, seq) => {
        if (seq > upTo) return false;
        seqs[at] = seq;
        rows[at] = row;
        at += 1;
        return false;
      });
      yield;
    }
    assert(at === count, "deletion vector: vector changed while it was being encoded");
    const hash = xxHash3(bytes.subarray(0, hashAt), placeSeed(this.segmentId, 0, 0));
    const view = new DataView(bytes.buffer);
    view.setUint32(hashAt, hash.low, true);
    view.setUint32(hashAt + 4, hash.high, true);
    return bytes;
  }

  /** Counts the replacements up to `upTo`, in steps. */
  *countUpTo(upTo: number): Generator<void, number> {
    if (upTo === Infinity) return this.#count;
    let count = 0;
    for (let start = 0; start < this.rowCount; start += STEP_ROWS) {
      count += this.countReplaced(start, Math.min(start + STEP_ROWS, this.rowCount), upTo);
      yield;
    }
    return count;
  }

  /** Checks the invariants of every page. Only tests call this method. */
  checkInvariants(): void {
    let count = 0;
    let lastRow = -1;
    this.visitAll((row) => {
      assert(row > lastRow, "deletion vector: rows are not in ascending order");
      lastRow = row;
      count += 1;
    });
    assert(
      count === this.#count,
      "deletion vector: recorded count differs from the number of entries",
    );
    for (const page of this.#pages) {
      const isSparse = page !== undefined && "rows" in page;
      if (isSparse) assert(countOf(page) > 0, "deletion vector: sparse page is empty");
    }
  }

  /** Calls `visit` for replaced rows in ascending order until `visit` returns true. */
  #visit(start: number, end: number, visit: (row: number, seq: number) => boolean): void {
    this.#visitPages(start, end, (page, first, { from, to }) =>
      visitPage(page, { first, from, to }, visit),
    );
  }

  /**
   * Visits pages until a visit returns true. Each visit receives the page's first row and the
   * range of rows within the page.
   */
  #visitPages(
    start: number,
    end: number,
    visit: (page: Page, first: number, range: PageRange) => boolean,
  ): void {
    for (let first = start & ~PAGE_MASK; first < end; first += PAGE_ROWS) {
      const page = this.#pages[first >>> PAGE_BITS];
      if (page === undefined) continue;
      const range = { from: Math.max(start - first, 0), to: Math.min(end - first, PAGE_ROWS) };
      if (visit(page, first, range)) return;
    }
  }
}
