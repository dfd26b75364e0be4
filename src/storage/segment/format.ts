/**
 * Defines the segment file format, which `writer.ts` and `reader.ts` share.
 *
 * A segment is an immutable series of row versions of one table, sorted by (owner, seq). Rows are
 * divided into row groups. One column of one row group is a chunk (see `encodings.ts`). The
 * partition directory and the key index are sections that are read from the mapped file, so that
 * memory use does not grow with the number of rows.
 *
 *     ┌────────┬─────────────────────────────────────┬──────────┬───────────┬─────────┐
 *     │ header │ chunks of group 0, of group 1, …    │ sections │ directory │ trailer │
 *     │ 64     │ 8-aligned, length a multiple of 8   │ likewise │           │ 64      │
 *     └────────┴─────────────────────────────────────┴──────────┴───────────┴─────────┘
 *
 * All numbers are little-endian; u53 and hash64 are stored as two u32, low half first.
 *
 *     header    OFFSET SIZE
 *                  0    8   magic "TIDESEG6": the digit is the format; older formats are read. A
 *                           file has the oldest format that it fits: 5 with a column of arrays or
 *                           intervals, and 6 if it is a history segment as well; else 4 for a
 *                           history segment, 3 with a packed chunk, and 2
 *                  8    8   u53 segment id
 *                 16    8   u53 table id
 *                 24   32   zeros
 *                 56    8   hash64 of bytes 0 to 56
 *
 *     trailer   OFFSET SIZE
 *                  0    8   u53 segment id
 *                  8    8   u53 offset of the directory
 *                 16    8   u53 its length
 *                 24    8   hash64 of the directory
 *                 32   24   zeros
 *                 56    8   hash64 of bytes 0 to 56
 *
 *     directory OFFSET SIZE
 *                  0    4   u32 rows, 1 or more
 *                  4    4   u32 groups
 *                  8    4   u32 columns, the system columns included
 *                 12    4   u32 owners
 *                 16    4   u32 entries of the key index, 0 for none
 *                 20    4   u32 bytes of the column table
 *                 24    8   f64 lowest seq
 *                 32    8   f64 highest seq
 *                 40   80   5 sections: u53 offset, u53 length
 *                120   …    column table: varint number of key columns, their ids (i32), then for
 *                           each column its id (i32) and type (text, JSON); zeros to 8
 *                      …    groups + 1 u32: first row of each group, and the row count; zeros to 8
 *                      …    chunk entries, 56 each: all columns of group 0, of group 1, …
 *                      …    for each section, hash64 of each of its pages of 64 KiB
 *
 *     chunk     OFFSET SIZE
 *     entry        0    8   u53 offset
 *                  8    4   u32 length
 *                 12    1   encoding
 *                 13    1   1 when null bits come first
 *                 14    1   1 when it is packed (see `packing.ts`)
 *                 15    1   zero
 *                 16    4   u32 NULLs
 *                 20    4   u32 auxiliary, as the encoding defines it
 *                 24    8   f64 smallest value
 *                 32    8   f64 largest value; below the smallest when there is none
 *                 40    8   f64 base, as the encoding defines it
 *                 48    8   hash64 of the chunk
 *
 * A history segment contains only versions that were replaced by newer ones. It has one more system
 * column, with the seq that replaced each row, and it has no deletion vector. A tombstone that was
 * never replaced has its own seq in this column.
 *
 * Every byte is covered by exactly one checksum, which is seeded with the byte's location: segment
 * id, column id and group. For this purpose, a section counts as a column, and a page of a section
 * as a group.
 */
import { assert } from "../../base/assert.ts";
import { ByteWriter } from "../../base/byte_writer.ts";
import { numberInMagic } from "../../base/bytes.ts";
import { type Hash64, placeSeed, xxHash3 } from "../../base/checksum.ts";
import { type DataType, isStringKind, physicalKind } from "../../types/mod.ts";
import { DELETED_COLUMN_ID, SEQ_COLUMN_ID } from "../contract/system_columns.ts";

export const HEADER_BYTES = 64;
export const TRAILER_BYTES = 64;
export const DIRECTORY_FIXED_BYTES = 120;
export const CHUNK_ENTRY_BYTES = 56;
export const PAGE_BYTES = 65536;

/** The maximum size of a segment in bytes, which is the largest file that the runtime can map. */
export const SEGMENT_BYTES_MAX: number = 2 ** 32;

/** The number of bytes in a header or trailer before its own hash. */
const SEALED_BYTES = 56;

/**
 * The newest format number. The header has the same layout in every format, which makes a newer
 * file distinguishable from a damaged file.
 */
export const SEGMENT_FORMAT = 6;

/** The format of a history segment with a column of arrays or intervals. */
export const VALUES_HISTORY_FORMAT = 6;

/** The format of a file with a column of arrays or intervals, packed or not. */
export const VALUES_FORMAT = 5;

/** The format number of a history segment. */
export const HISTORY_FORMAT = 4;

/** The format number of a file with a packed chunk. */
export const PACKED_FORMAT = 3;

/**
 * The format of a file that is neither a history segment nor has packed chunks. Programs that do
 * not know the newer formats can read it, too.
 */
export const PLAIN_FORMAT = 2;

/** Whether a format number denotes a history segment. */
export function isHistoryFormat(format: number): boolean {
  return format === HISTORY_FORMAT || format === VALUES_HISTORY_FORMAT;
}

const MAGIC_NAME = "TIDESEG";

/**
 * The oldest format that can be read. The formats after it, up to SEGMENT_FORMAT, only add
 * encodings.
 */
const OLDEST_FORMAT = 1;

/** The id of the column with the seq of the version that each row replaced, or 0. */
export const PREV_COLUMN_ID = -3;
/**
 * The id of the column with the difference between the commit's last seq and the row's seq,
 * usually 0.
 */
export const COMMIT_COLUMN_ID = -4;
export const SYSTEM_COLUMN_IDS: readonly number[] = [
  SEQ_COLUMN_ID,
  DELETED_COLUMN_ID,
  PREV_COLUMN_ID,
  COMMIT_COLUMN_ID,
];

/**
 * The id of the column with the seq that replaced each row. Only history segments have this column.
 */
export const REPLACING_COLUMN_ID = -5;
export const HISTORY_COLUMN_IDS: readonly number[] = [...SYSTEM_COLUMN_IDS, REPLACING_COLUMN_ID];

/**
 * Numbers used in place of column ids in the checksum seeds of parts of the file that are not
 * chunks.
 */
const HEADER_PLACE = -100;
const TRAILER_PLACE = -101;
const DIRECTORY_PLACE = -102;
const SECTION_PLACE = -110;

/** The sections, in the order in which they are stored. */
export const SECTION_NAMES = [
  /** One f64 per entry, ascending: the owners with rows in the segment. */
  "owners",
  /** One u32 per entry: the first row of each owner, followed by the row count. */
  "ownerStarts",
  /** One u32 per entry, ascending: the hashes of (owner, key). */
  "keyHashes",
  /**
   * One u32 per entry: the row to which each hash belongs. Among equal hashes, rows are in
   * descending order.
   */
  "keyRows",
  /** The Bloom filter for the keys, in blocks of 64 bytes; see `key_places.ts`. */
  "keyFilter",
] as const;

export type SectionName = (typeof SECTION_NAMES)[number];

/** The layout of a column's values, which determines how its chunks are decoded into vectors. */
export type Layout = "bool" | "i32" | "f64" | "text" | "bytes" | "embedding" | "values";

export function layoutOf(type: DataType): Layout {
  const kind = physicalKind(type);
  if (kind !== "any") return kind;
  switch (type.kind) {
    case "bytes":
    case "embedding":
      return type.kind;
    case "interval":
    case "array":
    case "row":
      return "values";
    default:
      assert(
        isStringKind(type.kind),
        "segment format: text encoding for a column that is not a string",
      );
      return "text";
  }
}

/** An entry of the chunk directory, without its offset and checksum. */
export interface ChunkHeader {
  readonly encoding: number;
  readonly hasNulls: boolean;
  readonly nullCount: number;
  /** A number whose meaning depends on the chunk's encoding. */
  readonly auxiliary: number;
  readonly min: number;
  readonly max: number;
  readonly base: number;
}

/** The position and size of a chunk in the file. */
export interface ChunkEntry extends ChunkHeader {
  readonly offset: number;
  readonly byteCount: number;
  readonly isPacked: boolean;
  readonly hash: Hash64;
}

/** The maximum number of bytes hashed in one call. Few chunks are longer. */
export const HASH_BYTES_MAX: number = 1 << 20;

/**
 * Computes the checksum of bytes, seeded with their location. Long input is hashed in pieces, each
 * seeded with the previous hash, so a reader never needs more than one piece in memory.
 */
export class PlaceHash {
  #hash: Hash64;

  constructor(seed: number) {
    this.#hash = { low: seed, high: 0 };
  }

  /**
   * Adds the next piece to the checksum. Every piece except the last must have HASH_BYTES_MAX
   * bytes.
   */
  add(piece: Uint8Array): void {
    assert(piece.length <= HASH_BYTES_MAX, "segment hash: piece exceeds HASH_BYTES_MAX bytes");
    this.#hash = xxHash3(piece, (this.#hash.low ^ this.#hash.high) >>> 0);
  }

  get hash(): Hash64 {
    return this.#hash;
  }
}

export function hashAt(seed: number, bytes: Uint8Array): Hash64 {
  const hash = new PlaceHash(seed);
  for (let start = 0; start < bytes.length; start += HASH_BYTES_MAX) {
    hash.add(bytes.subarray(start, start + HASH_BYTES_MAX));
  }
  return hash.hash;
}

/** The location of a chunk, as used in its checksum seed. */
export interface ChunkPlace {
  readonly segmentId: number;
  readonly columnId: number;
  readonly groupIndex: number;
}

export function chunkSeed({ segmentId, columnId, groupIndex }: ChunkPlace): number {
  return placeSeed(segmentId, columnId, groupIndex);
}

export function directorySeed(segmentId: number): number {
  return placeSeed(segmentId, DIRECTORY_PLACE, 0);
}

export interface SectionPage {
  readonly segmentId: number;
  readonly section: SectionName;
  readonly pageIndex: number;
}

export function pageSeed({ segmentId, section, pageIndex }: SectionPage): number {
  return placeSeed(segmentId, SECTION_PLACE - SECTION_NAMES.indexOf(section), pageIndex);
}

/** The fields of a segment header. */
export interface Header {
  readonly format: number;
  readonly segmentId: number;
  readonly tableId: number;
}

export function encodeHeader({ format, segmentId, tableId }: Header): Uint8Array {
  const writer = new ByteWriter(HEADER_BYTES);
  writer.raw(new TextEncoder().encode(`${MAGIC_NAME}${format}`));
  writer.u53(segmentId);
  writer.u53(tableId);
  return seal(writer, placeSeed(segmentId, HEADER_PLACE, 0));
}

export interface Trailer {
  readonly segmentId: number;
  readonly directoryOffset: number;
  readonly directoryBytes: number;
  readonly directoryHash: Hash64;
}

export function encodeTrailer(trailer: Trailer): Uint8Array {
  const writer = new ByteWriter(TRAILER_BYTES);
  writer.u53(trailer.segmentId);
  writer.u53(trailer.directoryOffset);
  writer.u53(trailer.directoryBytes);
  writer.u32(trailer.directoryHash.low);
  writer.u32(trailer.directoryHash.high);
  return seal(writer, placeSeed(trailer.segmentId, TRAILER_PLACE, 0));
}

function seal(writer: ByteWriter, seed: number): Uint8Array {
  writer.skip(SEALED_BYTES - writer.length);
  const hash = xxHash3(writer.view(), seed);
  writer.u32(hash.low);
  writer.u32(hash.high);
  return writer.copy();
}

/** Reads two u32 as a single integer; undefined if it exceeds 53 bits. */
function u53At(view: DataView, offset: number): number | undefined {
  const high = view.getUint32(offset + 4, true);
  return high >= 2097152 ? undefined : high * 4294967296 + view.getUint32(offset, true);
}

/** Reads a segment header; undefined if it is damaged or not a segment header. */
export function decodeHeader(bytes: Uint8Array): Header | undefined {
  const view = new DataView(bytes.buffer, bytes.byteOffset, HEADER_BYTES);
  const segmentId = u53At(view, 8);
  const tableId = u53At(view, 16);
  if (segmentId === undefined || tableId === undefined) return undefined;
  if (!isSealed(bytes, placeSeed(segmentId, HEADER_PLACE, 0))) return undefined;
  const format = numberInMagic(bytes, MAGIC_NAME) ?? 0;
  const isRead = format >= OLDEST_FORMAT && format <= SEGMENT_FORMAT;
  return isRead ? { format, segmentId, tableId } : undefined;
}

/**
 * Returns the format stated in a segment's header; undefined if the header is damaged or missing.
 */
export function segmentFormatOf(header: Uint8Array): number | undefined {
  if (header.length < HEADER_BYTES) return undefined;
  const view = new DataView(header.buffer, header.byteOffset, HEADER_BYTES);
  const segmentId = u53At(view, 8);
  if (segmentId === undefined) return undefined;
  if (!isSealed(header, placeSeed(segmentId, HEADER_PLACE, 0))) return undefined;
  return numberInMagic(header, MAGIC_NAME);
}

/** Reads a segment's trailer; undefined if the trailer is damaged. */
export function decodeTrailer(bytes: Uint8Array): Trailer | undefined {
  const view = new DataView(bytes.buffer, bytes.byteOffset, TRAILER_BYTES);
  const segmentId = u53At(view, 0);
  const directoryOffset = u53At(view, 8);
  const directoryBytes = u53At(view, 16);
  if (segmentId === undefined || directoryOffset === undefined) return undefined;
  if (directoryBytes === undefined) return undefined;
  if (!isSealed(bytes, placeSeed(segmentId, TRAILER_PLACE, 0))) return undefined;
  const directoryHash = { low: view.getUint32(24, true), high: view.getUint32(28, true) };
  return { segmentId, directoryOffset, directoryBytes, directoryHash };
}

function isSealed(bytes: Uint8Array, seed: number): boolean {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const { low, high } = xxHash3(bytes.subarray(0, SEALED_BYTES), seed);
  return (
    low === view.getUint32(SEALED_BYTES, true) && high === view.getUint32(SEALED_BYTES + 4, true)
  );
}

export function writeChunkEntry(writer: ByteWriter, entry: ChunkEntry): void {
  writer.u53(entry.offset);
  writer.u32(entry.byteCount);
  writer.u8(entry.encoding);
  writer.u8(entry.hasNulls ? 1 : 0);
  writer.u8(entry.isPacked ? 1 : 0);
  writer.u8(0);
  writer.u32(entry.nullCount);
  writer.u32(entry.auxiliary);
  writer.f64(entry.min);
  writer.f64(entry.max);
  writer.f64(entry.base);
  writer.u32(entry.hash.low);
  writer.u32(entry.hash.high);
}

/** Reads the chunk entry at an offset of a verified directory. */
export function readChunkEntry(view: DataView, at: number): ChunkEntry {
  return {
    offset: view.getUint32(at + 4, true) * 4294967296 + view.getUint32(at, true),
    byteCount: view.getUint32(at + 8, true),
    encoding: view.getUint8(at + 12),
    hasNulls: view.getUint8(at + 13) === 1,
    isPacked: view.getUint8(at + 14) === 1,
    nullCount: view.getUint32(at + 16, true),
    auxiliary: view.getUint32(at + 20, true),
    min: view.getFloat64(at + 24, true),
    max: view.getFloat64(at + 32, true),
    base: view.getFloat64(at + 40, true),
    hash: { low: view.getUint32(at + 48, true), high: view.getUint32(at + 52, true) },
  };
}

/** Rounds a number of bytes up to a multiple of 8. */
export function padded(byteCount: number): number {
  return Math.ceil(byteCount / 8) * 8;
}

// Typed arrays over a mapped file require this alignment.
assert(HEADER_BYTES % 8 === 0, "segment format: chunks are not 8-byte aligned");
assert(DIRECTORY_FIXED_BYTES % 8 === 0, "segment format: column table is not 8-byte aligned");
assert(CHUNK_ENTRY_BYTES % 8 === 0, "segment format: chunk entries are not 8-byte aligned");
assert(PAGE_BYTES <= HASH_BYTES_MAX, "segment format: page is larger than one hashed piece");

/** The bounds of the values in a numeric chunk. If all values are NULL, `min` is above `max`. */
export interface Zone {
  readonly min: number;
  readonly max: number;
  readonly nullCount: number;
}
