/**
 * Represents a chunk, that is, one column of one row group in a mapped segment file. Views of its
 * parts are created when first used (see `encodings.ts`).
 */
import { assert } from "../../base/assert.ts";
import {
  BITS,
  bitAt,
  codeBytes,
  DICTIONARY,
  F32,
  F64,
  I32,
  OFFSET_8,
  OFFSET_16,
  OFFSET_32,
  SCALED_8,
  SCALED_16,
  SCALED_32,
  unpackBits,
} from "./encodings.ts";
import { type ChunkEntry, type Layout, padded } from "./format.ts";
import type { Runs } from "./number_decoder.ts";

/** The information needed to read the bytes of a chunk. */
export interface ChunkShape {
  readonly entry: ChunkEntry;
  readonly layout: Layout;
  readonly rowCount: number;
}

/** The array types in which numbers and codes are stored. */
type StoredArray =
  | Uint8Array
  | Uint16Array
  | Uint32Array
  | Int32Array
  | Float32Array
  | Float64Array;

/** Values of varying lengths, stored one after another. */
export interface Blocks {
  readonly offsets: Uint32Array;
  readonly bytes: Buffer;
}

/** The rows from `start` (inclusive) to `end` (exclusive) of a chunk. */
export interface ChunkRows {
  readonly start: number;
  readonly end: number;
}

/** A verified chunk. Its values are read through views of the mapped file. */
export class Chunk {
  readonly entry: ChunkEntry;
  readonly layout: Layout;
  readonly rowCount: number;
  readonly #file: Uint8Array;
  #array: StoredArray | undefined;
  #blocks: Blocks | undefined;
  #runs: Runs | undefined;

  /**
   * Creates a chunk over the bytes of a mapped file.
   * @param file The whole mapped file. The offset in the entry is relative to the start of the
   *   file.
   */
  constructor({ entry, layout, rowCount }: ChunkShape, file: Uint8Array) {
    this.entry = entry;
    this.layout = layout;
    this.rowCount = rowCount;
    this.#file = file;
  }

  /** The first part of the chunk's encoding: numbers, codes, or bits. */
  get array(): StoredArray {
    this.#array ??= this.#viewOfArray();
    return this.#array;
  }

  /** The offsets and bytes of the rows' values or, for a dictionary, of its distinct values. */
  get blocks(): Blocks {
    this.#blocks ??= this.#viewOfBlocks();
    return this.#blocks;
  }

  /** The numbers of a column stored as runs. */
  get runs(): Runs {
    this.#runs ??= this.#viewOfRuns();
    return this.#runs;
  }

  get buffer(): ArrayBufferLike {
    return this.#file.buffer;
  }

  /** The offset in the mapped file where the parts of the encoding begin, after the null bits. */
  get partsAt(): number {
    const { entry, rowCount } = this;
    return entry.offset + (entry.hasNulls ? padded(Math.ceil(rowCount / 8)) : 0);
  }

  isNull(row: number): boolean {
    return this.entry.hasNulls && bitAt(this.#nullBits(), row) === 1;
  }

  /**
   * Returns one byte per row, which is 1 if the row's value is NULL; undefined if no value is
   * NULL.
   */
  nulls({ start, end }: ChunkRows): Uint8Array | undefined {
    return this.entry.hasNulls ? unpackBits(this.#nullBits(), start, end) : undefined;
  }

  #nullBits(): Uint8Array {
    return new Uint8Array(this.#file.buffer, this.entry.offset, Math.ceil(this.rowCount / 8));
  }

  #viewOfArray(): StoredArray {
    const { buffer } = this.#file;
    const { encoding, auxiliary } = this.entry;
    const count = this.rowCount;
    switch (encoding) {
      case F64:
        return new Float64Array(buffer, this.partsAt, count);
      case F32:
        return new Float32Array(buffer, this.partsAt, count);
      case I32:
        return new Int32Array(buffer, this.partsAt, count);
      case OFFSET_8:
      case SCALED_8:
        return new Uint8Array(buffer, this.partsAt, count);
      case OFFSET_16:
      case SCALED_16:
        return new Uint16Array(buffer, this.partsAt, count);
      case OFFSET_32:
      case SCALED_32:
        return new Uint32Array(buffer, this.partsAt, count);
      case BITS:
        return new Uint8Array(buffer, this.partsAt, Math.ceil(count / 8));
      default:
        assert(encoding === DICTIONARY, "column chunk: encoding has no value array");
        if (codeBytes(auxiliary) === 0) return new Uint8Array(count);
        return codeBytes(auxiliary) === 1
          ? new Uint8Array(buffer, this.partsAt, count)
          : new Uint16Array(buffer, this.partsAt, count);
    }
  }

  #viewOfRuns(): Runs {
    const { buffer } = this.#file;
    const { auxiliary: count } = this.entry;
    const startsBytes = padded(count * 4);
    const firstsAt = this.partsAt + startsBytes;
    return {
      starts: new Uint32Array(buffer, this.partsAt, count),
      firsts: new Float64Array(buffer, firstsAt, count),
      steps: new Float64Array(buffer, firstsAt + count * 8, count),
      rowCount: this.rowCount,
    };
  }

  #viewOfBlocks(): Blocks {
    const { buffer } = this.#file;
    const isDictionary = this.entry.encoding === DICTIONARY;
    const count = isDictionary ? this.entry.auxiliary : this.rowCount;
    const codesBytes = isDictionary ? padded(codeBytes(count) * this.rowCount) : 0;
    const offsets = new Uint32Array(buffer, this.partsAt + codesBytes, count + 1);
    const bytesAt = offsets.byteOffset + padded(offsets.byteLength);
    return { offsets, bytes: Buffer.from(buffer, bytesAt, offsets[count] ?? 0) };
  }
}
