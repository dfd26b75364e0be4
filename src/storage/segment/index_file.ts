/**
 * Defines the file of one secondary index of one segment, which lists the rows of the segment in
 * index order.
 *
 *     OFFSET SIZE   little-endian
 *          0    8   magic "TIDEIDX1": the digit is the format
 *          8    8   u53 segment id
 *         16    8   u53 table id
 *         24    8   u53 index id
 *         32    4   u32 rows of the segment, n
 *         36    4   u32 bytes with which every text in the first column begins; 0 for other types
 *         40    8   hash64 of everything after the header
 *         48    8   zeros
 *         56    8   hash64 of bytes 0 to 56
 *         64   8n   f64 prefix of each key (`index_order.ts`)
 *      64+8n   4n   u32 row of each key; zeros to a multiple of 8
 *
 * - Rows are sorted by owner, then by key, then by row number. An owner's rows therefore occupy the
 *   same positions here as in the segment.
 * - The prefix of a string omits the bytes that all strings have in common.
 * - The file contains every row of the segment, including replaced rows, tombstones, and rows with
 *   NULL.
 * - The contents depend only on the segment and the definition of the index. Neither of them ever
 *   changes, so a missing or damaged file can be rebuilt.
 */
import { assert } from "../../base/assert.ts";
import { ByteWriter } from "../../base/byte_writer.ts";
import { numberInMagic } from "../../base/bytes.ts";
import { type Hash64, placeSeed, xxHash3 } from "../../base/checksum.ts";
import type { Disk } from "../../base/disk.ts";
import { CorruptionError } from "../../base/errors.ts";
import { HASH_BYTES_MAX, PlaceHash, padded } from "./format.ts";
import { SegmentFile } from "./segment_file.ts";

const MAGIC_NAME = "TIDEIDX";
const FORMAT = 1;
const HEADER_BYTES = 64;
const SEALED_BYTES = 56;

/** The location in checksum seeds; the id of the index takes the place of the column id. */
const HEADER_PLACE = -200;
const BODY_PLACE = -201;

/** The rows of a segment, sorted by owner and key. */
export interface IndexEntries {
  /** The prefix of each key. */
  readonly prefixes: Float64Array;
  /** The row of each key. */
  readonly rows: Uint32Array;
  /** The number of bytes that all strings in the first column have as a common prefix. */
  readonly commonBytes: number;
}

/** The ids that identify an index file. */
export interface IndexFilePlace {
  readonly segmentId: number;
  readonly tableId: number;
  readonly indexId: number;
  readonly rowCount: number;
}

function indexFileBytes(rowCount: number): number {
  return HEADER_BYTES + padded(12 * rowCount);
}

/** Yields the bytes of a file in order. */
export function* indexFilePieces(
  place: IndexFilePlace,
  { commonBytes, prefixes, rows }: IndexEntries,
): Generator<Uint8Array> {
  const { rowCount } = place;
  assert(prefixes.length === rowCount && rows.length === rowCount, "each row has an entry");
  const rest = new Uint8Array(padded(12 * rowCount) - 12 * rowCount);
  const hash = new PlaceHash(placeSeed(place.segmentId, BODY_PLACE, place.indexId));
  const pieces = (): Generator<Uint8Array> => cut([bytesOf(prefixes), bytesOf(rows), rest]);
  for (const piece of pieces()) hash.add(piece);
  yield encodeHeader(place, { commonBytes, bodyHash: hash.hash });
  yield* pieces();
}

/**
 * Opens a file, and verifies all of it.
 *
 * @throws {CorruptionError} If it is damaged or belongs elsewhere.
 * @throws {DiskError} If it is missing or cannot be read.
 */
export function openIndexFile(
  disk: Disk,
  path: string,
  place: IndexFilePlace,
): IndexEntries & { close(): void } {
  const { rowCount } = place;
  const file = new SegmentFile(disk, path, indexFileBytes(rowCount));
  try {
    const header = decodeHeader(file.read(0, HEADER_BYTES), place);
    if (header === undefined) {
      throw new CorruptionError(path, 0, "this is not the header of this index of this segment");
    }
    file.check({
      offset: HEADER_BYTES,
      byteCount: padded(12 * rowCount),
      seed: placeSeed(place.segmentId, BODY_PLACE, place.indexId),
      hash: header.bodyHash,
      what: "the checksum of the index",
    });
    const { buffer, byteOffset } = file.bytes;
    const at = byteOffset + HEADER_BYTES;
    return {
      prefixes: new Float64Array(buffer, at, rowCount),
      rows: new Uint32Array(buffer, at + 8 * rowCount, rowCount),
      commonBytes: header.commonBytes,
      close: () => file.close(),
    };
  } catch (error) {
    file.close();
    throw error;
  }
}

/** The fields of a header other than the ids that identify the file. */
interface IndexHeader {
  readonly commonBytes: number;
  readonly bodyHash: Hash64;
}

function encodeHeader(place: IndexFilePlace, { bodyHash, commonBytes }: IndexHeader): Uint8Array {
  const writer = new ByteWriter(HEADER_BYTES);
  writer.raw(new TextEncoder().encode(`${MAGIC_NAME}${FORMAT}`));
  writer.u53(place.segmentId);
  writer.u53(place.tableId);
  writer.u53(place.indexId);
  writer.u32(place.rowCount);
  writer.u32(commonBytes);
  writer.u32(bodyHash.low);
  writer.u32(bodyHash.high);
  writer.skip(SEALED_BYTES - writer.length);
  const hash = xxHash3(writer.view(), headerSeed(place));
  writer.u32(hash.low);
  writer.u32(hash.high);
  return writer.copy();
}

/** Reads a header. Returns undefined if the header is damaged or belongs to a different file. */
function decodeHeader(bytes: Uint8Array, place: IndexFilePlace): IndexHeader | undefined {
  const view = new DataView(bytes.buffer, bytes.byteOffset, HEADER_BYTES);
  const { high, low } = xxHash3(bytes.subarray(0, SEALED_BYTES), headerSeed(place));
  const isWhole =
    low === view.getUint32(SEALED_BYTES, true) && high === view.getUint32(SEALED_BYTES + 4, true);
  const header = {
    commonBytes: view.getUint32(36, true),
    bodyHash: { low: view.getUint32(40, true), high: view.getUint32(44, true) },
  };
  const expected = encodeHeader(place, header);
  const isThis = Buffer.compare(bytes, expected) === 0;
  if (!isWhole || !isThis || numberInMagic(bytes, MAGIC_NAME) !== FORMAT) return undefined;
  return header;
}

function headerSeed({ indexId, segmentId }: IndexFilePlace): number {
  return placeSeed(segmentId, HEADER_PLACE, indexId);
}

function bytesOf({ buffer, byteLength, byteOffset }: Float64Array | Uint32Array): Uint8Array {
  return new Uint8Array(buffer, byteOffset, byteLength);
}

/**
 * Divides the concatenation of some byte arrays into pieces that can be hashed one after another.
 */
function* cut(parts: readonly Uint8Array[]): Generator<Uint8Array> {
  let rest: Uint8Array = new Uint8Array(0);
  for (const part of parts) {
    let at = 0;
    if (rest.length > 0) {
      at = Math.min(part.length, HASH_BYTES_MAX - rest.length);
      const joined = new Uint8Array(rest.length + at);
      joined.set(rest);
      joined.set(part.subarray(0, at), rest.length);
      rest = joined;
      if (rest.length < HASH_BYTES_MAX) continue;
      yield rest;
      rest = new Uint8Array(0);
    }
    for (; at + HASH_BYTES_MAX <= part.length; at += HASH_BYTES_MAX) {
      yield part.subarray(at, at + HASH_BYTES_MAX);
    }
    rest = part.slice(at);
  }
  if (rest.length > 0) yield rest;
}
