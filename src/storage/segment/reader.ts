/**
 * Reads a segment file through a map (see `format.ts`).
 *
 * - Opening checks the header, the trailer and the directory, and keeps next to nothing on the
 *   heap. Chunks and pages are checked when they are first touched; of a chunk that was, some 300
 *   bytes are kept.
 * - What damaged bytes can cause is CorruptionError, thrown before anything is believed; what the
 *   writer guarantees is asserted after a checksum held.
 * - Vectors and arrays may alias the map: they are read only, and valid until `close`, after which
 *   they have length 0. Who shares a reader counts the references.
 * - Packed chunks are read apart from the others, which pay nothing for them.
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
  PLAIN_FORMAT,
  PREV_COLUMN_ID,
  readChunkEntry,
  type Zone,
} from "./format.ts";
import { KeySearch } from "./key_search.ts";
import { PackedChunk } from "./packed_chunk.ts";
import { SegmentFile } from "./segment_file.ts";

/** Rows start (inclusive) to end (exclusive). */
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
  /** Chunks whose checksum held, by their index. */
  readonly #chunks: (Chunk | undefined)[];
  /** Likewise those that are packed. */
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
   * Opens a published segment.
   *
   * @param expectedBytes File length by the manifest, checked before anything is mapped.
   * @throws {CorruptionError} If length, header, trailer or directory are not what was written.
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

  /** The format of the file. */
  get format(): number {
    return this.#directory.format;
  }

  /** Owners that have rows here. */
  get ownerCount(): number {
    return this.#directory.ownerCount;
  }

  /** Ids of the table's columns in the file. */
  get columnIds(): readonly number[] {
    return this.#directory.types.keys().toArray();
  }

  get keyColumnIds(): readonly number[] {
    return this.#directory.keyColumnIds;
  }

  /** Type under which a column was written, or undefined when the file lacks it. */
  columnType(columnId: number): DataType | undefined {
    return this.#directory.types.get(columnId);
  }

  /** First row of a group. */
  groupStart(groupIndex: number): number {
    assert(groupIndex <= this.groupCount, "a group is within its segment");
    return this.#directory.groupStarts[groupIndex] as number;
  }

  groupRows(groupIndex: number): number {
    return this.groupStart(groupIndex + 1) - this.groupStart(groupIndex);
  }

  /** The group that holds a row. */
  groupOf(row: number): number {
    assert(row >= 0 && row < this.rowCount, "a row is within its segment");
    const starts = this.#directory.groupStarts;
    // Exact while groups are full, and too low after one that its bytes cut short.
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

  /** The rows of an owner, which ascend by seq; undefined when there are none. */
  ownerRange(owner: number): RowSpan | undefined {
    const { ownerCount, sections, owners, ownerStarts } = this.#directory;
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
    if (owners[low] !== owner) return undefined;
    return this.#rowsOfOwner(low, ownerStarts);
  }

  /** Owner and rows at an index of the partition directory, 0 to `ownerCount` - 1, ascending. */
  ownerAt(index: number): RowSpan & { readonly owner: number } {
    assert(index >= 0 && index < this.ownerCount, "an owner is within its segment");
    const { sections, owners, ownerStarts } = this.#directory;
    sections.owners.touch(index * 8);
    return { owner: owners[index] as number, ...this.#rowsOfOwner(index, ownerStarts) };
  }

  /**
   * A column of a whole row group, SEQ_COLUMN_ID and DELETED_COLUMN_ID included; undefined when the
   * file lacks the column.
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
   * Whether the rows of a column in a group take more time than a look at them: it is packed, and
   * `columnRows` unpacks what it is asked for. Then its checksum holds.
   *
   * @throws {CorruptionError} As `column`.
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
   * Rows of one group, counted from its start: as `column`, without decoding the others. With a
   * buffer, valid until it is used again. Of a packed chunk, nothing is deferred.
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
   * Chosen rows of a packed column of text, counted from `start` in its group; undefined where
   * `columnRows` is less work.
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
   * How many bytes each row of a group has in a column of text or bytes; undefined when the file
   * lacks the column. Of packed texts only where they begin is unpacked.
   *
   * @throws {CorruptionError} As `column`.
   */
  byteLengths(columnId: number, groupIndex: number): Uint32Array | undefined {
    const chunkIndex = this.#chunkIndex(columnId, groupIndex);
    if (chunkIndex === undefined) return undefined;
    const chunk = this.#load(chunkIndex);
    return chunk instanceof Chunk ? decodeLengths(chunk) : chunk.lengths();
  }

  /** Whether the values of a column are held as numbers; false when the file lacks it. */
  isNumeric(columnId: number): boolean {
    if (!this.#directory.columnIndexes.has(columnId)) return false;
    const layout = this.#directory.layoutOf(columnId);
    return layout === "i32" || layout === "f64";
  }

  seqs(groupIndex: number): Float64Array {
    return numbersOf(this.#system(SEQ_COLUMN_ID, groupIndex));
  }

  /** Seqs of the replaced versions, 0 for none. */
  prevs(groupIndex: number): Float64Array {
    return numbersOf(this.#system(PREV_COLUMN_ID, groupIndex));
  }

  /** Last seq of the commit of each version. */
  commitSeqs(groupIndex: number): Float64Array {
    const chunkIndex = this.#systemChunkIndex(COMMIT_COLUMN_ID, groupIndex);
    const { base, max } = this.#entry(chunkIndex);
    // Mostly every row is a commit of its own.
    if (base === 0 && max === 0) return this.seqs(groupIndex);
    return numbersOf(this.#system(COMMIT_COLUMN_ID, groupIndex));
  }

  /** 1 for a tombstone. */
  deleted(groupIndex: number): Uint8Array {
    const vector = this.#system(DELETED_COLUMN_ID, groupIndex);
    assert(vector.kind === "bool", "tombstone flags are booleans");
    return vector.values;
  }

  /** Whether any row of a group is a tombstone, without reading the rows. */
  hasTombstones(groupIndex: number): boolean {
    const entry = this.#entry(this.#systemChunkIndex(DELETED_COLUMN_ID, groupIndex));
    return entry.byteCount > 0 || entry.base === 1;
  }

  /**
   * Bounds of a column of numbers, or of SEQ_COLUMN_ID, without reading the chunk. Undefined when
   * the file lacks the column, it is not of numbers, or its numbers are beyond 2^53.
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
   * Row of the newest version here with a key, tombstones included; -1 when there is none.
   *
   * @param key Values in the order of the key columns.
   */
  findKey(owner: number, key: Row): number {
    return this.#keys.find(owner, key);
  }

  /** No key here that is a single number is above this; Infinity when that is not known. */
  get highestKey(): number {
    return this.#keys.highest;
  }

  /** Row of a version, -1 when it is not here. */
  rowOfSeq(owner: number, seq: number): number {
    if (seq < this.minSeq || seq > this.maxSeq) return -1;
    const range = this.ownerRange(owner);
    if (range === undefined) return -1;
    const row = this.firstRowAtOrAbove(range, seq);
    return row < range.end && this.seqAt(row) === seq ? row : -1;
  }

  /**
   * First row of a span of one owner's rows whose seq is at least `seq`; its end when there is
   * none.
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

  /** Seq of the version that a row replaced, 0 for none. */
  prevAt(row: number): number {
    const groupIndex = this.groupOf(row);
    const chunkIndex = this.#systemChunkIndex(PREV_COLUMN_ID, groupIndex);
    const value = this.#valueIn(chunkIndex, row - this.groupStart(groupIndex));
    return typeof value === "number" ? value : 0;
  }

  commitSeqAt(row: number): number {
    return this.seqAt(row) + this.#numberAt(COMMIT_COLUMN_ID, row);
  }

  isTombstone(row: number): boolean {
    const groupIndex = this.groupOf(row);
    const chunkIndex = this.#systemChunkIndex(DELETED_COLUMN_ID, groupIndex);
    return this.#valueIn(chunkIndex, row - this.groupStart(groupIndex)) === true;
  }

  /** One value, copied; undefined when the file lacks the column. */
  valueAt(columnId: number, row: number): Value | undefined {
    const groupIndex = this.groupOf(row);
    const chunkIndex = this.#chunkIndex(columnId, groupIndex);
    if (chunkIndex === undefined) return undefined;
    return this.#valueIn(chunkIndex, row - this.groupStart(groupIndex));
  }

  /** What is known of a chunk without reading it, for tools; undefined when the file lacks it. */
  chunkEntry(columnId: number, groupIndex: number): ChunkEntry | undefined {
    const chunkIndex = this.#chunkIndex(columnId, groupIndex);
    return chunkIndex === undefined ? undefined : this.#entry(chunkIndex);
  }

  /**
   * Bytes of a packed chunk when it is unpacked; undefined when it is not packed.
   *
   * @throws {CorruptionError} As `column`.
   */
  unpackedBytes(columnId: number, groupIndex: number): number | undefined {
    const chunkIndex = this.#chunkIndex(columnId, groupIndex);
    if (chunkIndex === undefined || !this.#entry(chunkIndex).isPacked) return undefined;
    const chunk = this.#load(chunkIndex);
    return chunk instanceof PackedChunk ? chunk.byteCount : undefined;
  }

  /**
   * Checks every byte of the file that was not checked yet, and that what is packed unpacks.
   *
   * @throws {CorruptionError}
   */
  verify(): void {
    const steps = this.verifySteps();
    while (steps.next().done !== true);
  }

  /**
   * The same in steps of a chunk or a page, for who has other work between them: a chunk's yields
   * where it ends, before which all of the file has been read by then.
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

  /** Unmaps the file. Views that are still held have length 0 from now on. */
  close(): void {
    assert(this.#isOpen, "a segment is closed once");
    this.#isOpen = false;
    this.#cache.removeReader(this.#cacheKey, this.#chunks.length);
    for (const chunk of this.#packed.values()) chunk.release();
    this.#file.close();
  }

  #rowsOfOwner(index: number, ownerStarts: Uint32Array): RowSpan {
    const { sections } = this.#directory;
    sections.ownerStarts.touch(index * 4);
    sections.ownerStarts.touch(index * 4 + 4);
    const start = ownerStarts[index] as number;
    const end = ownerStarts[index + 1] as number;
    assert(start < end, "an owner in the directory has a row");
    return { start, end };
  }

  #chunkIndex(columnId: number, groupIndex: number): number | undefined {
    assert(groupIndex >= 0 && groupIndex < this.groupCount, "a group is within its segment");
    const { columnIds, columnIndexes } = this.#directory;
    const columnIndex = columnIndexes.get(columnId);
    return columnIndex === undefined ? undefined : groupIndex * columnIds.length + columnIndex;
  }

  #systemChunkIndex(columnId: number, groupIndex: number): number {
    return defined(this.#chunkIndex(columnId, groupIndex), "every segment has the system columns");
  }

  #entry(chunkIndex: number): ChunkEntry {
    assert(this.#isOpen, "a closed segment is not read");
    return readChunkEntry(this.#directory.chunkEntries, chunkIndex * CHUNK_ENTRY_BYTES);
  }

  /** A chunk that is not packed and whose checksum held: what is read most, with one look. */
  #known(chunkIndex: number): Chunk | undefined {
    assert(this.#isOpen, "a closed segment is not read");
    return this.#chunks[chunkIndex];
  }

  /** Any chunk, after its checksum held. */
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
      const what = `a chunk is packed, and the file is of format ${this.format}`;
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

  /** A system column in the one form that it is handed out in. */
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
  assert(vector.kind === "f64", "system columns are numbers");
  return vector.values;
}
