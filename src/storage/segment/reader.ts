/**
 * Reads a segment file through a memory map (see `format.ts`).
 *
 * - Opening a segment verifies the header, the trailer and the directory, and keeps almost nothing
 *   on the heap. Chunks and pages are verified when first used. A verified chunk takes some 300
 *   bytes.
 * - If bytes are damaged, a CorruptionError is thrown before any of them is used. Properties that
 *   the writer guarantees are asserted once the checksum has been verified.
 * - Vectors and arrays may share the memory of the map. Such views are read-only and valid until
 *   `close`; afterwards their length is 0. Code that shares a reader has to count the references
 *   to it.
 * - Packed chunks have a separate code path, so that they do not slow down the other chunks.
 */
import { assert, defined } from "../../base/assert.ts";
import type { Disk } from "../../base/disk.ts";
import { CorruptionError } from "../../base/errors.ts";
import { ROW_GROUP_ROWS_MAX } from "../../base/limits.ts";
import type { DataType, Row, Selection, Utf8Vector, Value, Vector } from "../../types/mod.ts";
import { DELETED_COLUMN_ID, SEQ_COLUMN_ID } from "../contract/system_columns.ts";
import { Chunk, type ChunkShape } from "./chunk.ts";
import { type ChunkCache, sharedCache } from "./chunk_cache.ts";
import {
  decodeFlags,
  decodeLengths,
  decodeNumber,
  decodeNumbers,
  decodeRows,
  decodeValue,
} from "./chunk_decoder.ts";
import { type Directory, readDirectory } from "./chunk_list.ts";
import { type DecodeOptions, decodeNowOrLater } from "./deferred_numbers.ts";
import { BLOCKS, NONE, TEXT } from "./encodings.ts";
import {
  CHUNK_ENTRY_BYTES,
  type ChunkEntry,
  COMMIT_COLUMN_ID,
  chunkSeed,
  isHistoryFormat,
  PLAIN_FORMAT,
  PREV_COLUMN_ID,
  REPLACING_COLUMN_ID,
  readChunkEntry,
  type Zone,
} from "./format.ts";
import { KeySearch } from "./key_search.ts";
import { PackedChunk } from "./packed_chunk.ts";
import { SegmentFile } from "./segment_file.ts";

/** A range of rows from `start` (inclusive) to `end` (exclusive). */
export interface RowSpan {
  readonly start: number;
  readonly end: number;
}

export class SegmentReader {
  readonly path: string;
  readonly segmentId: number;
  readonly tableId: number;
  readonly rowCount: number;
  readonly groupCount: number;
  readonly minSeq: number;
  readonly maxSeq: number;
  readonly #file: SegmentFile;
  readonly #keys: KeySearch;
  readonly #directory: Directory;
  readonly #cache: ChunkCache;
  readonly #cacheKey: number;
  /** The verified chunks that are not packed, by index. */
  readonly #chunks: (Chunk | undefined)[];
  /** The verified packed chunks, by index. */
  readonly #packed = new Map<number, PackedChunk>();
  #isOpen = true;

  private constructor(file: SegmentFile, cache: ChunkCache) {
    const directory = readDirectory(file);
    this.path = file.path;
    this.segmentId = directory.segmentId;
    this.tableId = directory.tableId;
    this.rowCount = directory.rowCount;
    this.groupCount = directory.groupCount;
    this.minSeq = directory.minSeq;
    this.maxSeq = directory.maxSeq;
    this.#file = file;
    this.#directory = directory;
    this.#keys = new KeySearch(directory, this);
    this.#cache = cache;
    this.#cacheKey = cache.addReader();
    const chunkCount = directory.groupCount * directory.columnIds.length;
    this.#chunks = Array.from({ length: chunkCount });
  }

  /**
   * Opens a published segment file.
   *
   * @param expectedBytes The file length according to the manifest. It is checked before anything
   *   is mapped.
   * @throws {CorruptionError} If the length, header, trailer or directory is damaged.
   * @throws {DiskError} If the file is missing or cannot be read.
   */
  static open(
    disk: Disk,
    path: string,
    expectedBytes: number,
    cache: ChunkCache = sharedCache,
  ): SegmentReader {
    const file = new SegmentFile(disk, path, expectedBytes);
    try {
      return new SegmentReader(file, cache);
    } catch (error) {
      file.close();
      throw error;
    }
  }

  /** The format number of the segment file. */
  get format(): number {
    return this.#directory.format;
  }

  /**
   * Whether this is a history segment. If so, `replacingSeqs` returns the seq that replaced each
   * row.
   */
  get isHistory(): boolean {
    return isHistoryFormat(this.format);
  }

  /** The number of owners with rows in the segment. */
  get ownerCount(): number {
    return this.#directory.ownerCount;
  }

  /** The ids of the table columns in the segment. */
  get columnIds(): readonly number[] {
    return this.#directory.types.keys().toArray();
  }

  get keyColumnIds(): readonly number[] {
    return this.#directory.keyColumnIds;
  }

  /**
   * Returns the type with which a column was written; undefined if the column is not in the file.
   */
  columnType(columnId: number): DataType | undefined {
    return this.#directory.types.get(columnId);
  }

  /** Returns the first row of a row group. */
  groupStart(groupIndex: number): number {
    assert(groupIndex <= this.groupCount, "segment reader: row group is out of range");
    return this.#directory.groupStarts[groupIndex] as number;
  }

  groupRows(groupIndex: number): number {
    return this.groupStart(groupIndex + 1) - this.groupStart(groupIndex);
  }

  /** Returns the index of the row group that contains a row. */
  groupOf(row: number): number {
    assert(row >= 0 && row < this.rowCount, "segment reader: row is out of range");
    const starts = this.#directory.groupStarts;
    // The estimate is exact as long as row groups are full. After a group that ended early because
    // of its size, the estimate is too low.
    let low = Math.min(Math.floor(row / ROW_GROUP_ROWS_MAX), this.groupCount - 1);
    if ((starts[low + 1] as number) > row) return low;
    let high = this.groupCount;
    while (high - low > 1) {
      const middle = (low + high) >>> 1;
      if ((starts[middle] as number) <= row) low = middle;
      else high = middle;
    }
    return low;
  }

  /** Returns an owner's rows, which ascend by seq; undefined if there are none. */
  ownerRange(owner: number): RowSpan | undefined {
    return rowsOfOwner(this.#directory, owner);
  }

  /**
   * Returns the owner at an index of the partition directory, from 0 to `ownerCount` - 1, and that
   * owner's rows. Owners are in ascending order.
   */
  ownerAt(index: number): RowSpan & { readonly owner: number } {
    return ownerAt(this.#directory, index);
  }

  /**
   * Returns a column (possibly SEQ_COLUMN_ID or DELETED_COLUMN_ID) of a whole row group; undefined
   * if the column is not in the file.
   *
   * @throws {CorruptionError} If the checksum of the chunk does not match.
   */
  column(columnId: number, groupIndex: number): Vector | undefined {
    if (columnId < 0) return this.#system(columnId, groupIndex);
    const chunkIndex = this.#chunkIndex(columnId, groupIndex);
    if (chunkIndex === undefined) return undefined;
    return this.#wholeChunk(chunkIndex, (chunk) =>
      decodeRows(chunk, { start: 0, end: chunk.rowCount }),
    );
  }

  /**
   * Whether a column is packed in a row group. If so, `columnRows` has to decompress it, which
   * costs more than a view of the mapped file, and its checksum has been verified.
   *
   * @throws {CorruptionError} If the checksum of the chunk does not match.
   */
  isUnpackedInParts(columnId: number, groupIndex: number): boolean {
    const chunkIndex = this.#chunkIndex(columnId, groupIndex);
    if (chunkIndex === undefined || this.#chunks[chunkIndex] !== undefined) return false;
    const { encoding, isPacked } = this.#entry(chunkIndex);
    if (!isPacked || (encoding !== TEXT && encoding !== BLOCKS)) return false;
    this.#load(chunkIndex);
    return true;
  }

  /**
   * Reads rows of one row group, numbered from its start, without decoding the other rows. If a
   * buffer is passed, the result is valid until the buffer is used again. Decoding of rows of a
   * packed chunk is never deferred.
   */
  columnRows(
    columnId: number,
    groupIndex: number,
    { start, end, buffer, isDeferred }: RowSpan & DecodeOptions,
  ): Vector | undefined {
    const chunkIndex = this.#chunkIndex(columnId, groupIndex);
    if (chunkIndex === undefined) return undefined;
    const known = this.#known(chunkIndex);
    const chunk = known ?? this.#load(chunkIndex);
    const range = { start, end };
    if (!(chunk instanceof Chunk)) return chunk.rows(range, buffer);
    return decodeNowOrLater(chunk, range, { buffer, isDeferred });
  }

  /**
   * Reads selected rows of a packed text column. They are numbered from `start` in their row
   * group. Returns undefined if `columnRows` costs less.
   */
  chosenTexts(
    columnId: number,
    groupIndex: number,
    { start, selection }: { readonly start: number; readonly selection: Selection },
  ): Utf8Vector | undefined {
    const chunkIndex = this.#chunkIndex(columnId, groupIndex);
    const chunk = chunkIndex === undefined ? undefined : this.#load(chunkIndex);
    return chunk instanceof PackedChunk ? chunk.texts(start, selection) : undefined;
  }

  /**
   * Returns the size in bytes of each row of a row group in a text or binary column; undefined if
   * the column is not in the file. For packed text, only the offsets are decompressed.
   *
   * @throws {CorruptionError} If the checksum of the chunk does not match.
   */
  byteLengths(columnId: number, groupIndex: number): Uint32Array | undefined {
    const chunkIndex = this.#chunkIndex(columnId, groupIndex);
    if (chunkIndex === undefined) return undefined;
    const chunk = this.#load(chunkIndex);
    return chunk instanceof Chunk ? decodeLengths(chunk) : chunk.lengths();
  }

  /** Whether a column is stored as numbers; false if the column is not in the file. */
  isNumeric(columnId: number): boolean {
    if (!this.#directory.columnIndexes.has(columnId)) return false;
    const layout = this.#directory.layoutOf(columnId);
    return layout === "i32" || layout === "f64";
  }

  seqs(groupIndex: number): Float64Array {
    return numbersOf(this.#system(SEQ_COLUMN_ID, groupIndex));
  }

  /** For each row of a row group, returns the seq of the version that it replaced, or 0. */
  prevs(groupIndex: number): Float64Array {
    return numbersOf(this.#system(PREV_COLUMN_ID, groupIndex));
  }

  /**
   * For each version of a history segment, returns the seq that replaced it. A tombstone may have
   * its own seq.
   */
  replacingSeqs(groupIndex: number): Float64Array {
    return numbersOf(this.#system(REPLACING_COLUMN_ID, groupIndex));
  }

  /** For each version of a row group, returns the last seq of its commit. */
  commitSeqs(groupIndex: number): Float64Array {
    const chunkIndex = this.#systemChunkIndex(COMMIT_COLUMN_ID, groupIndex);
    const { base, max } = this.#entry(chunkIndex);
    // In most groups, every row was committed on its own, so its seq is also the last seq of its
    // commit.
    if (base === 0 && max === 0) return this.seqs(groupIndex);
    return numbersOf(this.#system(COMMIT_COLUMN_ID, groupIndex));
  }

  /** For each row of a row group, returns 1 if it is a tombstone, otherwise 0. */
  deleted(groupIndex: number): Uint8Array {
    const vector = this.#system(DELETED_COLUMN_ID, groupIndex);
    assert(vector.kind === "bool", "segment reader: tombstone column is not boolean");
    return vector.values;
  }

  /** Whether any row of a row group is a tombstone. Determined without reading the rows. */
  hasTombstones(groupIndex: number): boolean {
    const entry = this.#entry(this.#systemChunkIndex(DELETED_COLUMN_ID, groupIndex));
    return entry.byteCount > 0 || entry.base === 1;
  }

  /**
   * Returns the bounds of a numeric column or of SEQ_COLUMN_ID without reading the chunk. Returns
   * undefined if the column is not in the file or not numeric, or if a number exceeds 2^53.
   */
  zone(columnId: number, groupIndex: number): Zone | undefined {
    const chunkIndex = this.#chunkIndex(columnId, groupIndex);
    if (chunkIndex === undefined) return undefined;
    const layout = this.#directory.layoutOf(columnId);
    if (layout !== "i32" && layout !== "f64") return undefined;
    const { min, max, nullCount, encoding } = this.#entry(chunkIndex);
    if (min > max && encoding !== NONE) return undefined;
    return { min, max, nullCount };
  }

  /**
   * Returns the row of a key's newest version at or below `upTo`, including tombstones; -1 if
   * there is none.
   *
   * @param key Values in the order of the key columns.
   */
  findKey(owner: number, key: Row, upTo: number = Infinity): number {
    return this.#keys.find(owner, key, upTo);
  }

  /**
   * An upper bound on all primary keys that consist of a single number; Infinity if none is known.
   */
  get highestKey(): number {
    return this.#keys.highest;
  }

  /** Returns the row of a version; -1 if the version is not in this segment. */
  rowOfSeq(owner: number, seq: number): number {
    if (seq < this.minSeq || seq > this.maxSeq) return -1;
    const range = this.ownerRange(owner);
    if (range === undefined) return -1;
    const row = this.firstRowAtOrAbove(range, seq);
    return row < range.end && this.seqAt(row) === seq ? row : -1;
  }

  /**
   * Returns the first row, within a span of one owner's rows, with a seq of at least `seq`; the
   * end of the span if there is none.
   */
  firstRowAtOrAbove({ start, end }: RowSpan, seq: number): number {
    let low = start;
    let high = end;
    while (low < high) {
      const middle = Math.floor((low + high) / 2);
      if (this.seqAt(middle) < seq) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  seqAt(row: number): number {
    return this.#numberAt(SEQ_COLUMN_ID, row);
  }

  /** Returns the seq of the version that a row replaced, or 0. */
  prevAt(row: number): number {
    const groupIndex = this.groupOf(row);
    const chunkIndex = this.#systemChunkIndex(PREV_COLUMN_ID, groupIndex);
    const value = this.#valueIn(chunkIndex, row - this.groupStart(groupIndex));
    return typeof value === "number" ? value : 0;
  }

  /** Returns the seq of the version that replaced a row of a history segment. */
  replacingSeqAt(row: number): number {
    return this.#numberAt(REPLACING_COLUMN_ID, row);
  }

  commitSeqAt(row: number): number {
    return this.seqAt(row) + this.#numberAt(COMMIT_COLUMN_ID, row);
  }

  isTombstone(row: number): boolean {
    const groupIndex = this.groupOf(row);
    const chunkIndex = this.#systemChunkIndex(DELETED_COLUMN_ID, groupIndex);
    return this.#valueIn(chunkIndex, row - this.groupStart(groupIndex)) === true;
  }

  /** Copies the value of a column in one row; undefined if the column is not in the file. */
  valueAt(columnId: number, row: number): Value | undefined {
    const groupIndex = this.groupOf(row);
    const chunkIndex = this.#chunkIndex(columnId, groupIndex);
    if (chunkIndex === undefined) return undefined;
    return this.#valueIn(chunkIndex, row - this.groupStart(groupIndex));
  }

  /**
   * Describes a chunk without reading it, for use by tools; undefined if the chunk is not in the
   * file.
   */
  chunkEntry(columnId: number, groupIndex: number): ChunkEntry | undefined {
    const chunkIndex = this.#chunkIndex(columnId, groupIndex);
    return chunkIndex === undefined ? undefined : this.#entry(chunkIndex);
  }

  /**
   * Returns the size of a packed chunk after decompression; undefined if the chunk is not packed.
   *
   * @throws {CorruptionError} If the checksum of the chunk does not match.
   */
  unpackedBytes(columnId: number, groupIndex: number): number | undefined {
    const chunkIndex = this.#chunkIndex(columnId, groupIndex);
    if (chunkIndex === undefined || !this.#entry(chunkIndex).isPacked) return undefined;
    const chunk = this.#load(chunkIndex);
    return chunk instanceof PackedChunk ? chunk.byteCount : undefined;
  }

  /**
   * Verifies all bytes of the file that have not been verified yet. This includes decompressing
   * every packed chunk.
   *
   * @throws {CorruptionError}
   */
  verify(): void {
    const steps = this.verifySteps();
    while (steps.next().done !== true);
  }

  /**
   * Verifies the file in steps of one chunk or one page, between which callers can do other work.
   * Each step yields an offset up to which the whole file has been read.
   */
  *verifySteps(): Generator<number> {
    for (let index = 0; index < this.#chunks.length; index += 1) {
      const chunk = this.#load(index);
      if (chunk instanceof PackedChunk) chunk.check();
      const { byteCount, offset } = this.#entry(index);
      yield offset + byteCount;
    }
    for (const section of Object.values(this.#directory.sections)) yield* section.touchSteps();
  }

  /** Unmaps the segment file. From then on, existing views have length 0. */
  close(): void {
    assert(this.#isOpen, "segment reader: segment closed twice");
    this.#isOpen = false;
    this.#cache.removeReader(this.#cacheKey, this.#chunks.length);
    for (const chunk of this.#packed.values()) chunk.release();
    this.#file.close();
  }

  #chunkIndex(columnId: number, groupIndex: number): number | undefined {
    assert(
      groupIndex >= 0 && groupIndex < this.groupCount,
      "segment reader: row group is out of range",
    );
    const { columnIds, columnIndexes } = this.#directory;
    const columnIndex = columnIndexes.get(columnId);
    return columnIndex === undefined ? undefined : groupIndex * columnIds.length + columnIndex;
  }

  #systemChunkIndex(columnId: number, groupIndex: number): number {
    return defined(
      this.#chunkIndex(columnId, groupIndex),
      "segment reader: system column is missing",
    );
  }

  #entry(chunkIndex: number): ChunkEntry {
    assert(this.#isOpen, "segment reader: read after the segment was closed");
    return readChunkEntry(this.#directory.chunkEntries, chunkIndex * CHUNK_ENTRY_BYTES);
  }

  /**
   * Returns a verified chunk that is not packed; undefined for any other chunk. This is by far the
   * most common case, so it takes a single lookup.
   */
  #known(chunkIndex: number): Chunk | undefined {
    assert(this.#isOpen, "segment reader: read after the segment was closed");
    return this.#chunks[chunkIndex];
  }

  /** Returns a chunk, packed or not, verifying it if necessary. */
  #load(chunkIndex: number): Chunk | PackedChunk {
    const known = this.#known(chunkIndex) ?? this.#packed.get(chunkIndex);
    if (known !== undefined) return known;
    const { columnIds } = this.#directory;
    const entry = this.#entry(chunkIndex);
    const groupIndex = Math.floor(chunkIndex / columnIds.length);
    const columnId = columnIds[chunkIndex - groupIndex * columnIds.length] as number;
    this.#file.check({
      offset: entry.offset,
      byteCount: entry.byteCount,
      seed: chunkSeed({ segmentId: this.segmentId, columnId, groupIndex }),
      hash: entry.hash,
      what: `the checksum of column ${columnId} in row group ${groupIndex}`,
    });
    const layout = this.#directory.layoutOf(columnId);
    const rowCount = this.groupRows(groupIndex);
    if (entry.isPacked) return this.#loadPacked(chunkIndex, { entry, layout, rowCount });
    const chunk = new Chunk({ entry, layout, rowCount }, this.#file.bytes);
    this.#chunks[chunkIndex] = chunk;
    return chunk;
  }

  #loadPacked(chunkIndex: number, shape: ChunkShape): PackedChunk {
    if (this.format <= PLAIN_FORMAT) {
      const what = `a chunk is packed, but the file has format ${this.format}, which has no packed chunks`;
      throw new CorruptionError(this.path, shape.entry.offset, what);
    }
    const chunk = new PackedChunk(shape, this.#file, this.#cache);
    this.#packed.set(chunkIndex, chunk);
    return chunk;
  }

  #wholeChunk(chunkIndex: number, decode: (chunk: Chunk) => Vector): Vector {
    const cached = this.#cache.get(this.#cacheKey, chunkIndex);
    if (cached !== undefined) return cached;
    const chunk = this.#load(chunkIndex);
    if (chunk instanceof Chunk) {
      const vector = decode(chunk);
      this.#cache.put(this.#cacheKey, chunkIndex, vector);
      return vector;
    }
    const vector = decode(chunk.whole());
    const isAlias = vector.kind === "utf8" || vector.kind === "dict";
    this.#cache.put(this.#cacheKey, chunkIndex, vector, isAlias ? chunk.byteCount : 0);
    return vector;
  }

  #valueIn(chunkIndex: number, row: number): Value {
    const known = this.#known(chunkIndex);
    if (known !== undefined) return decodeValue(known, row);
    const chunk = this.#load(chunkIndex);
    return chunk instanceof Chunk ? decodeValue(chunk, row) : chunk.value(row);
  }

  /** Converts a system column to the one form in which the reader returns it. */
  #system(columnId: number, groupIndex: number): Vector {
    const chunkIndex = this.#systemChunkIndex(columnId, groupIndex);
    return this.#wholeChunk(chunkIndex, (chunk) => {
      const length = chunk.rowCount;
      if (columnId === DELETED_COLUMN_ID) {
        return { kind: "bool", length, values: decodeFlags(chunk), nulls: undefined };
      }
      const values = decodeNumbers(chunk);
      if (columnId !== COMMIT_COLUMN_ID) return { kind: "f64", length, values, nulls: undefined };
      const seqs = this.seqs(groupIndex);
      const commits = values.map((gap, row) => gap + (seqs[row] as number));
      return { kind: "f64", length, values: commits, nulls: undefined };
    });
  }

  #numberAt(columnId: number, row: number): number {
    const groupIndex = this.groupOf(row);
    const chunkIndex = this.#systemChunkIndex(columnId, groupIndex);
    const place = row - this.groupStart(groupIndex);
    const known = this.#known(chunkIndex);
    if (known !== undefined) return decodeNumber(known, place);
    const chunk = this.#load(chunkIndex);
    return chunk instanceof Chunk ? decodeNumber(chunk, place) : chunk.number(place);
  }
}

function numbersOf(vector: Vector): Float64Array {
  assert(vector.kind === "f64", "segment reader: system column is not numeric");
  return vector.values;
}

/** Returns an owner's rows; undefined if there are none. @throws {CorruptionError} */
function rowsOfOwner(directory: Directory, owner: number): RowSpan | undefined {
  const { ownerCount, sections, owners } = directory;
  let low = 0;
  let high = ownerCount;
  while (low < high) {
    const middle = (low + high) >>> 1;
    sections.owners.touch(middle * 8);
    if ((owners[middle] as number) < owner) low = middle + 1;
    else high = middle;
  }
  if (low === ownerCount) return undefined;
  sections.owners.touch(low * 8);
  return owners[low] === owner ? rowsAt(directory, low) : undefined;
}

/**
 * Returns the owner at an index from 0 to `ownerCount` - 1, and that owner's rows. Owners are in
 * ascending order.
 * @throws {CorruptionError}
 */
function ownerAt(directory: Directory, index: number): RowSpan & { readonly owner: number } {
  const { ownerCount, owners, sections } = directory;
  assert(index >= 0 && index < ownerCount, "segment reader: owner index is out of range");
  sections.owners.touch(index * 8);
  return { owner: owners[index] as number, ...rowsAt(directory, index) };
}

function rowsAt({ ownerStarts, sections }: Directory, index: number): RowSpan {
  sections.ownerStarts.touch(index * 4);
  sections.ownerStarts.touch(index * 4 + 4);
  const start = ownerStarts[index] as number;
  const end = ownerStarts[index + 1] as number;
  assert(start < end, "segment reader: owner in the directory has no rows");
  return { start, end };
}
