/**
 * Reads a packed chunk (see `packing.ts`). The blocks that contain the requested rows are
 * decompressed and kept in the chunk cache. The parts of the encoding that belong to these rows
 * are copied into a smaller chunk, the window, which is then read like any other chunk.
 *
 * If the blocks contradict the description of their chunk, the chunk is treated as damaged.
 */
import { assert } from "../../base/assert.ts";
import { CorruptionError } from "../../base/errors.ts";
import { zstdUnpack } from "../../base/zstd.ts";
import type { Selection, Utf8Vector, Value, Vector } from "../../types/mod.ts";
import { Chunk, type ChunkShape } from "./chunk.ts";
import type { ChunkCache } from "./chunk_cache.ts";
import {
  decodeLengths,
  decodeNumber,
  decodeRows,
  decodeValue,
  lengthsOf,
} from "./chunk_decoder.ts";
import type { ColumnBuffer } from "./column_buffer.ts";
import {
  BITS,
  BLOCKS,
  bitAt,
  CONSTANT,
  codeBytes,
  DICTIONARY,
  F32,
  F64,
  I32,
  OFFSET_8,
  OFFSET_16,
  OFFSET_32,
  RUNS,
  SCALED_8,
  SCALED_16,
  SCALED_32,
  TEXT,
  WIDE,
} from "./encodings.ts";
import { padded } from "./format.ts";
import { BLOCK_BYTES, blockCountOf, tableBytes } from "./packing.ts";
import type { SegmentFile } from "./segment_file.ts";

/** A range of rows from `start` (inclusive) to `end` (exclusive). */
interface Rows {
  readonly start: number;
  readonly end: number;
}

/**
 * A part of the encoding to be copied into a window. Positions are byte offsets in the
 * decompressed chunk.
 */
interface EncodedPart {
  readonly from: number;
  readonly byteCount: number;
}

/** Some rows of a packed chunk, copied into memory of their own. */
interface ChunkWindow {
  readonly chunk: Chunk;
  /** The number, within the chunk, of the window's first row. */
  readonly first: number;
}

/** The average distance between selected rows from which each row is looked up separately. */
const ROWS_PER_CHOSEN_MIN = 16;

interface ChunkWindowOptions {
  /** The buffer in which the window of copied rows is built. */
  readonly buffer?: ColumnBuffer | undefined;
  /** Whether to include the strings to which the codes of a dictionary refer. */
  readonly withTexts?: boolean;
}

/**
 * For each encoding with an array of values, the size in bytes of one value in the encoding's
 * first part.
 */
const VALUE_BYTES: ReadonlyMap<number, number> = new Map([
  [F64, 8],
  [F32, 4],
  [I32, 4],
  [OFFSET_8, 1],
  [OFFSET_16, 2],
  [OFFSET_32, 4],
  [SCALED_8, 1],
  [SCALED_16, 2],
  [SCALED_32, 4],
]);

export class PackedChunk {
  readonly #shape: ChunkShape;
  readonly #file: SegmentFile;
  readonly #cache: ChunkCache;
  readonly #cacheKey: number;
  /** The size in bytes of the chunk after decompression. */
  readonly byteCount: number;
  readonly #blockCount: number;
  /** The end of each block, relative to #blocksAt, which is a file offset. */
  readonly #blockEnds: Uint32Array;
  readonly #blocksAt: number;

  /**
   * Opens a packed chunk, and checks the table of its blocks.
   * @throws {CorruptionError} If the blocks do not fit the chunk although its checksum is correct.
   */
  constructor(shape: ChunkShape, file: SegmentFile, cache: ChunkCache) {
    const { byteCount, offset } = shape.entry;
    const { buffer } = file.bytes;
    this.#shape = shape;
    this.#file = file;
    this.#cache = cache;
    this.#cacheKey = cache.addReader();
    this.byteCount = byteCount < 8 ? 0 : new DataView(buffer, offset, 4).getUint32(0, true);
    this.#blockCount = blockCountOf(this.byteCount);
    const headBytes = tableBytes(this.#blockCount);
    this.#blocksAt = offset + headBytes;
    const hasTable = this.#blockCount > 0 && headBytes <= byteCount;
    this.#blockEnds = new Uint32Array(buffer, offset + 4, hasTable ? this.#blockCount : 0);
    if (!hasTable || !this.#fits(byteCount - headBytes)) {
      const what = `the blocks of a packed chunk do not fit its ${this.byteCount} bytes`;
      throw new CorruptionError(file.path, offset, what);
    }
  }

  /**
   * Reads the value of a row.
   *
   * @throws {CorruptionError} If a block is damaged. The same applies to all methods below.
   */
  value(row: number): Value {
    assert(row >= 0 && row < this.#shape.rowCount, "packed chunk: row is out of range");
    const { chunk, first } = this.#window({ start: row, end: row + 1 }, { withTexts: false });
    if (chunk.entry.encoding !== DICTIONARY) return decodeValue(chunk, row - first);
    return chunk.isNull(row - first) ? null : this.#dictionaryText(chunk.array[row - first] ?? 0);
  }

  /** Reads the number of one row in a numeric chunk. */
  number(row: number): number {
    const { chunk, first } = this.#window({ start: row, end: row + 1 });
    return decodeNumber(chunk, row - first);
  }

  /** Decodes rows into a vector that never shares the file's memory. */
  rows({ start, end }: Rows, buffer?: ColumnBuffer): Vector {
    assert(start >= 0 && end <= this.#shape.rowCount, "packed chunk: row range is out of bounds");
    const { chunk, first } = this.#window({ start, end }, { buffer });
    return decodeRows(chunk, { start: start - first, end: end - first }, buffer);
  }

  /**
   * Reads the text of selected rows, numbered from `start`. Returns undefined if the rows are so
   * close together that reading all of them with `rows` costs less.
   */
  texts(start: number, { count, rows }: Selection): Utf8Vector | undefined {
    const { entry, rowCount } = this.#shape;
    assert(entry.encoding === TEXT, "packed chunk: chunk does not contain text");
    const last = rows[count - 1] ?? 0;
    assert(start + last < rowCount, "packed chunk: row range is out of bounds");
    if (count * ROWS_PER_CHOSEN_MIN > last - (rows[0] ?? 0)) return undefined;
    const at = this.#partsAt;
    const textAt = at + padded((rowCount + 1) * 4);
    const froms = new Uint32Array(count);
    const offsets = new Uint32Array(count + 1);
    for (let i = 0; i < count; i += 1) {
      const offsetAt = at + (start + (rows[i] ?? 0)) * 4;
      const from = this.#u32(offsetAt);
      froms[i] = from;
      offsets[i + 1] = (offsets[i] ?? 0) + this.#u32(offsetAt + 4) - from;
    }
    const bytes = Buffer.allocUnsafeSlow(offsets[count] ?? 0);
    const nulls = entry.hasNulls ? new Uint8Array(count) : undefined;
    for (let i = 0; i < count; i += 1) {
      const byteCount = (offsets[i + 1] ?? 0) - (offsets[i] ?? 0);
      this.#copy({ from: textAt + (froms[i] ?? 0), byteCount }, bytes, offsets[i] ?? 0);
      if (nulls !== undefined) nulls[i] = this.#bit(start + (rows[i] ?? 0));
    }
    return { kind: "utf8", length: count, bytes, offsets, nulls };
  }

  /** Returns the size in bytes of each row in a chunk of text or bytes. */
  lengths(): Uint32Array {
    const { entry, rowCount } = this.#shape;
    if (entry.encoding !== TEXT && entry.encoding !== BLOCKS) return decodeLengths(this.whole());
    const offsets = new Uint32Array(rowCount + 1);
    const bytes = new Uint8Array(offsets.buffer);
    this.#copy({ from: this.#partsAt, byteCount: bytes.length }, bytes, 0);
    return lengthsOf(offsets);
  }

  /** Returns the decompressed chunk, in memory of its own. */
  whole(): Chunk {
    const bytes = new Uint8Array(this.byteCount);
    for (let index = 0; index < this.#blockCount; index += 1) {
      bytes.set(this.#cached(index) ?? this.#unpacked(index), index * BLOCK_BYTES);
    }
    return this.#chunkOf(bytes, this.#shape.rowCount);
  }

  /** Verifies the chunk by decompressing every block. Nothing is cached. */
  check(): void {
    for (let index = 0; index < this.#blockCount; index += 1) this.#unpacked(index);
  }

  /** Removes the blocks of this chunk from the cache. */
  release(): void {
    this.#cache.removeReader(this.#cacheKey, this.#blockCount);
  }

  /**
   * Whether the number of blocks matches the size of the chunk, and the last block ends where the
   * chunk does.
   */
  #fits(blocksBytes: number): boolean {
    let last = 0;
    for (const end of this.#blockEnds) {
      if (end <= last) return false;
      last = end;
    }
    return last <= blocksBytes && blocksBytes - last < 8;
  }

  #window(
    { start, end }: Rows,
    { buffer, withTexts = true }: ChunkWindowOptions = {},
  ): ChunkWindow {
    const { entry, rowCount } = this.#shape;
    // A chunk has few runs, so they are copied as a whole. Bits have to start at a byte boundary.
    const first = entry.encoding === RUNS ? 0 : start - (start % 8);
    const last = entry.encoding === RUNS ? rowCount : end;
    const parts = entry.hasNulls ? [bitsPart(0, first, last)] : [];
    const values = this.#valueParts({ start: first, end: last }, withTexts);
    const bytes = this.#gathered([...parts, ...values], buffer);
    const isLong = entry.encoding === TEXT || entry.encoding === BLOCKS;
    if (isLong) {
      const offsetsAt = entry.hasNulls ? padded(Math.ceil((last - first) / 8)) : 0;
      startFromZero(new Uint32Array(bytes.buffer, offsetsAt, last - first + 1));
    }
    return { chunk: this.#chunkOf(bytes, last - first), first };
  }

  /** Returns the parts of the encoding to copy for some rows, in the order of the encoding. */
  #valueParts(rows: Rows, withTexts: boolean): EncodedPart[] {
    const { entry, rowCount } = this.#shape;
    const at = this.#partsAt;
    const { auxiliary, encoding } = entry;
    const { start, end } = rows;
    const width = VALUE_BYTES.get(encoding);
    if (width !== undefined) return [arrayPart(at, rows, width)];
    switch (encoding) {
      case CONSTANT:
        return [];
      case BITS:
        return [bitsPart(at, start, end)];
      case RUNS:
        return [{ from: at, byteCount: this.byteCount - at }];
      case WIDE: {
        const planeBytes = padded(rowCount * 4);
        return Array.from({ length: auxiliary }, (_, word) =>
          arrayPart(at + word * planeBytes, rows, 4),
        );
      }
      case DICTIONARY: {
        const codes = arrayPart(at, rows, codeBytes(auxiliary));
        const valuesAt = this.#dictionaryAt;
        const rest = { from: valuesAt, byteCount: this.byteCount - valuesAt };
        return withTexts ? [codes, rest] : [codes];
      }
      default: {
        assert(encoding === TEXT || encoding === BLOCKS, "packed chunk: encoding cannot be packed");
        const textAt = at + padded((rowCount + 1) * 4);
        const from = this.#u32(at + start * 4);
        const byteCount = this.#u32(at + end * 4) - from;
        return [arrayPart(at, { start, end: end + 1 }, 4), { from: textAt + from, byteCount }];
      }
    }
  }

  /** The offset of the first part of the encoding, after the null bits. */
  get #partsAt(): number {
    const { entry, rowCount } = this.#shape;
    return entry.hasNulls ? padded(Math.ceil(rowCount / 8)) : 0;
  }

  /** The offset at which the string offsets of a dictionary begin. */
  get #dictionaryAt(): number {
    const { entry, rowCount } = this.#shape;
    return this.#partsAt + padded(codeBytes(entry.auxiliary) * rowCount);
  }

  /** Reads one string from a dictionary without reading the other strings. */
  #dictionaryText(code: number): string {
    const at = this.#dictionaryAt;
    const textsAt = at + padded((this.#shape.entry.auxiliary + 1) * 4);
    const from = this.#u32(at + code * 4);
    const part = { from: textsAt + from, byteCount: this.#u32(at + code * 4 + 4) - from };
    const bytes = this.#gathered([part]);
    return Buffer.from(bytes.buffer, 0, part.byteCount).toString("utf8");
  }

  #chunkOf(bytes: Uint8Array, rowCount: number): Chunk {
    const { entry, layout } = this.#shape;
    const own = { ...entry, offset: 0, byteCount: bytes.length, isPacked: false };
    return new Chunk({ entry: own, layout, rowCount }, bytes);
  }

  /** Joins parts of the decompressed chunk. Each part begins at a multiple of 8 in the result. */
  #gathered(parts: readonly EncodedPart[], buffer?: ColumnBuffer): Uint8Array {
    let byteCount = 0;
    for (const part of parts) byteCount += padded(part.byteCount);
    const bytes = buffer?.bytes(byteCount) ?? new Uint8Array(byteCount);
    let at = 0;
    for (const part of parts) {
      this.#copy(part, bytes, at);
      at += padded(part.byteCount);
    }
    return bytes;
  }

  #copy({ from, byteCount }: EncodedPart, into: Uint8Array, at: number): void {
    const end = from + byteCount;
    assert(end <= this.byteCount, "packed chunk: byte range is out of bounds");
    for (let next = from; next < end; ) {
      const index = Math.floor(next / BLOCK_BYTES);
      const inBlock = next - index * BLOCK_BYTES;
      const count = Math.min(end - next, BLOCK_BYTES - inBlock);
      into.set(this.#block(index).subarray(inBlock, inBlock + count), at + next - from);
      next += count;
    }
  }

  /** Reads a u32, such as a block offset. Its offset must be a multiple of 4. */
  #u32(at: number): number {
    assert(at + 4 <= this.byteCount, "packed chunk: offset is out of bounds");
    const block = this.#block(Math.floor(at / BLOCK_BYTES));
    const { buffer, byteOffset } = block;
    return new DataView(buffer, byteOffset + (at % BLOCK_BYTES), 4).getUint32(0, true);
  }

  /** Reads the bit of a row in the first part of the encoding. */
  #bit(row: number): number {
    return bitAt(this.#block(Math.floor(row / 8 / BLOCK_BYTES)), row % (8 * BLOCK_BYTES));
  }

  #block(index: number): Uint8Array {
    const cached = this.#cached(index);
    if (cached !== undefined) return cached;
    const block = this.#unpacked(index);
    this.#cache.putBytes(this.#cacheKey, index, block);
    return block;
  }

  #cached(index: number): Uint8Array | undefined {
    return this.#cache.bytes(this.#cacheKey, index);
  }

  #unpacked(index: number): Uint8Array {
    const start = this.#blocksAt + (index === 0 ? 0 : (this.#blockEnds[index - 1] ?? 0));
    const end = this.#blocksAt + (this.#blockEnds[index] ?? 0);
    const byteCount = Math.min(BLOCK_BYTES, this.byteCount - index * BLOCK_BYTES);
    const block = zstdUnpack(this.#file.bytes.subarray(start, end), byteCount);
    if (block !== undefined) return block;
    const what = `block ${index} of a packed chunk does not unpack to ${byteCount} bytes`;
    throw new CorruptionError(this.#file.path, start, what);
  }
}

function arrayPart(at: number, { start, end }: Rows, width: number): EncodedPart {
  return { from: at + start * width, byteCount: (end - start) * width };
}

/**
 * Returns the part of the encoding with the bits of some rows. The first row's number must be a
 * multiple of 8.
 */
function bitsPart(at: number, start: number, end: number): EncodedPart {
  return { from: at + start / 8, byteCount: Math.ceil((end - start) / 8) };
}

function startFromZero(offsets: Uint32Array): void {
  const start = offsets[0] ?? 0;
  if (start === 0) return;
  for (let index = 0; index < offsets.length; index += 1) {
    offsets[index] = (offsets[index] ?? 0) - start;
  }
}
