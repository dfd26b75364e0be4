/**
 * Segment file format, shared by `writer.ts` and `reader.ts`.
 *
 * A segment is an immutable run of row versions of one table, sorted by (owner, seq). Rows are cut
 * into row groups; one column of one row group is one chunk (see `encodings.ts`). What leads to
 * rows (the owners, the key index) lies in sections that are read in the mapped file, so that
 * memory does not grow with rows.
 *
 *     ┌────────┬─────────────────────────────────────┬──────────┬───────────┬─────────┐
 *     │ header │ chunks of group 0, of group 1, …    │ sections │ directory │ trailer │
 *     │ 64     │ 8-aligned, length a multiple of 8   │ likewise │           │ 64      │
 *     └────────┴─────────────────────────────────────┴──────────┴───────────┴─────────┘
 *
 * All numbers are little-endian; u53 and hash64 are two u32, low half first.
 *
 *     header    OFFSET SIZE
 *                  0    8   magic "TIDESEG3": the digit is the format; older ones are read. A file
 *                           without a packed chunk is written as format 2, which it then is
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
 *                 20    4   u32 what the encoding says it is
 *                 24    8   f64 smallest value
 *                 32    8   f64 largest value; below the smallest when there is none
 *                 40    8   f64 base: what the encoding says it is
 *                 48    8   hash64 of the chunk
 *
 * Every byte is under exactly one checksum, seeded with its place: segment id, column id, group. A
 * section counts as a column, its page as a group.
 */
import { assert } from "../../base/assert.ts";
import { ByteWriter } from "../../base/byte_writer.ts";
import { numberInMagic } from "../../base/bytes.ts";
import { type Hash64, placeSeed, xxHash3 } from "../../base/checksum.ts";
import { type DataType, isNumeric, physicalKind } from "../../types/mod.ts";
import { DELETED_COLUMN_ID, SEQ_COLUMN_ID } from "../contract/system_columns.ts";

export const HEADER_BYTES = 64;
export const TRAILER_BYTES = 64;
export const DIRECTORY_FIXED_BYTES = 120;
export const CHUNK_ENTRY_BYTES = 56;
export const PAGE_BYTES = 65536;

/** Longest segment: what the runtime can map. */
export const SEGMENT_BYTES_MAX: number = 2 ** 32;

/** Bytes of a header or trailer before its own hash. */
const SEALED_BYTES = 56;

/** The header stays as it is in every format, so that a newer one is told from a damaged one. */
export const SEGMENT_FORMAT = 3;

/** What a file without packed chunks is: who reads no newer format reads it, too. */
export const PLAIN_FORMAT = 2;

const MAGIC_NAME = "TIDESEG";

/** Files of this format and all up to SEGMENT_FORMAT are read: later ones only add forms. */
const OLDEST_FORMAT = 1;

/** Columns that every segment has beside those of its table. */
export const PREV_COLUMN_ID = -3;
/** Holds commit seq − seq, which is small and mostly 0. */
export const COMMIT_COLUMN_ID = -4;
export const SYSTEM_COLUMN_IDS: readonly number[] = [
  SEQ_COLUMN_ID,
  DELETED_COLUMN_ID,
  PREV_COLUMN_ID,
  COMMIT_COLUMN_ID,
];

/** Places of what is not a chunk, among the column ids of seeds. */
const HEADER_PLACE = -100;
const TRAILER_PLACE = -101;
const DIRECTORY_PLACE = -102;
const SECTION_PLACE = -110;

/** The sections, in file order. */
export const SECTION_NAMES = [
  /** f64 a entry, ascending: the owners that have rows here. */
  "owners",
  /** u32 an entry, and one more: first row of each owner, then the row count. */
  "ownerStarts",
  /** u32 an entry, ascending: hashes of (owner, key). */
  "keyHashes",
  /** u32 an entry: the row of each hash; equal hashes by descending row. */
  "keyRows",
  /** 64 bytes a block, see `key_places.ts`. */
  "keyFilter",
] as const;

export type SectionName = (typeof SECTION_NAMES)[number];

/** How a column's chunks are turned into vectors. */
export type Layout = "bool" | "i32" | "f64" | "text" | "bytes" | "embedding";

export function layoutOf(type: DataType): Layout {
  const kind = physicalKind(type);
  if (kind !== "any") return kind;
  switch (type.kind) {
    case "bytes":
    case "embedding":
      return type.kind;
    default:
      assert(type.kind !== "interval", "no column is an interval");
      assert(type.kind !== "array", "no column is an array");
      assert(!isNumeric(type), "numbers have a layout of their own");
      return "text";
  }
}

/** One entry of the chunk directory, but for its place and checksum. */
export interface ChunkHeader {
  readonly encoding: number;
  readonly hasNulls: boolean;
  readonly nullCount: number;
  /** What the encoding says it is. */
  readonly auxiliary: number;
  readonly min: number;
  readonly max: number;
  readonly base: number;
}

/** A chunk as it lies in the file. */
export interface ChunkEntry extends ChunkHeader {
  readonly offset: number;
  readonly byteCount: number;
  readonly isPacked: boolean;
  readonly hash: Hash64;
}

/** Bytes whose checksum is taken in one go; a chunk is seldom longer. */
export const HASH_BYTES_MAX: number = 1 << 20;

/**
 * Checksum of some bytes at their place. Long ones are hashed in pieces, each seeded with the hash
 * before, so that a reader never needs more than one piece in memory.
 */
export class PlaceHash {
  #hash: Hash64;

  constructor(seed: number) {
    this.#hash = { low: seed, high: 0 };
  }

  /** Adds the next piece: HASH_BYTES_MAX bytes, or the rest. */
  add(piece: Uint8Array): void {
    assert(piece.length <= HASH_BYTES_MAX, "a piece fits its bound");
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

/** Where a chunk is, for its seed. */
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

/** What a header says. */
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

/** Reads two u32 as a whole number; undefined when it is beyond 53 bits. */
function u53At(view: DataView, offset: number): number | undefined {
  const high = view.getUint32(offset + 4, true);
  return high >= 2097152 ? undefined : high * 4294967296 + view.getUint32(offset, true);
}

/** A header, or undefined when it is damaged or of another kind. */
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

/** The format of a segment by its header; undefined when that is damaged, or no header. */
export function segmentFormatOf(header: Uint8Array): number | undefined {
  if (header.length < HEADER_BYTES) return undefined;
  const view = new DataView(header.buffer, header.byteOffset, HEADER_BYTES);
  const segmentId = u53At(view, 8);
  if (segmentId === undefined) return undefined;
  if (!isSealed(header, placeSeed(segmentId, HEADER_PLACE, 0))) return undefined;
  return numberInMagic(header, MAGIC_NAME);
}

/** A trailer, or undefined when it is damaged. */
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

/** The entry at an offset of a verified directory. */
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

/** The next multiple of 8. */
export function padded(byteCount: number): number {
  return Math.ceil(byteCount / 8) * 8;
}

// Typed arrays over a mapped file need their alignment.
assert(HEADER_BYTES % 8 === 0, "chunks begin 8-aligned");
assert(DIRECTORY_FIXED_BYTES % 8 === 0, "the column table begins 8-aligned");
assert(CHUNK_ENTRY_BYTES % 8 === 0, "chunk entries are 8-aligned");
assert(PAGE_BYTES <= HASH_BYTES_MAX, "a page is hashed in one go");

/** Bounds of the values of a chunk of numbers; `min` is above `max` when all are NULL. */
export interface Zone {
  readonly min: number;
  readonly max: number;
  readonly nullCount: number;
}
