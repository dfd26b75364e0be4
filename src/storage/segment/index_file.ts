/**
 * Defines the file of one secondary index of one segment. It lists the rows of the segment in
 * index order.
 *
 *     OFFSET SIZE   little-endian
 *          0   64   header (`index_header.ts`) with magic "TIDEIDX1", n rows, and as its detail the
 *                   bytes with which every text in the first column begins; 0 for other types
 *         64   8n   f64 prefix of each key (`index_order.ts`)
 *      64+8n   4n   u32 row of each key; zeros to a multiple of 8
 *
 * - Rows are sorted by owner, then by key, then by row number. An owner's rows therefore occupy
 *   the same positions here as in the segment.
 * - The prefix of a string omits the bytes that all strings have in common.
 * - The file contains every row of the segment, including replaced rows, tombstones, and rows with
 *   NULL.
 * - The contents depend only on the segment and the definition of the index. Neither ever changes,
 *   so a missing or damaged file can be rebuilt.
 */
import { assert } from "../../base/assert.ts";
import { bytesOf } from "../../base/bytes.ts";
import type { Disk } from "../../base/disk.ts";
import { HASH_BYTES_MAX, PlaceHash, padded } from "./format.ts";
import {
  bodySeed,
  encodeIndexHeader,
  INDEX_HEADER_BYTES,
  type IndexFilePlace,
  type IndexForm,
  openVerified,
} from "./index_header.ts";

const FORM: IndexForm = {
  magicName: "TIDEIDX",
  format: 1,
  headerPlace: -200,
  bodyPlace: -201,
};

/** A segment's rows, sorted by owner and key. */
export interface IndexEntries {
  /** The prefix of each key (`index_order.ts`). */
  readonly prefixes: Float64Array;
  /** The row to which each key belongs. */
  readonly rows: Uint32Array;
  /** The length in bytes of the prefix that all strings in the first column have in common. */
  readonly commonBytes: number;
}

/** Yields the bytes of an index file in order. */
export function* indexFilePieces(
  place: IndexFilePlace,
  { commonBytes, prefixes, rows }: IndexEntries,
): Generator<Uint8Array> {
  const { rowCount } = place;
  assert(
    prefixes.length === rowCount && rows.length === rowCount,
    "index file: number of entries differs from the number of rows",
  );
  const rest = new Uint8Array(padded(12 * rowCount) - 12 * rowCount);
  const hash = new PlaceHash(bodySeed(FORM, place));
  const pieces = (): Generator<Uint8Array> => cut([bytesOf(prefixes), bytesOf(rows), rest]);
  for (const piece of pieces()) hash.add(piece);
  const header = { detail: commonBytes, bodyHash: hash.hash, bodyBytes: 0 };
  yield encodeIndexHeader(FORM, place, header);
  yield* pieces();
}

/**
 * Opens the file of a sorted index, and verifies all of its bytes.
 *
 * @throws {CorruptionError} If the file is damaged or belongs to another segment or index.
 * @throws {DiskError} If the file is missing or cannot be read.
 */
export function openIndexFile(
  disk: Disk,
  path: string,
  place: IndexFilePlace,
): IndexEntries & { close(): void } {
  const { rowCount } = place;
  const bodyBytes = padded(12 * rowCount);
  const { file, header } = openVerified(disk, path, { form: FORM, place, bodyBytes });
  const { buffer, byteOffset } = file.bytes;
  const at = byteOffset + INDEX_HEADER_BYTES;
  return {
    prefixes: new Float64Array(buffer, at, rowCount),
    rows: new Uint32Array(buffer, at + 8 * rowCount, rowCount),
    commonBytes: header.detail,
    close: () => file.close(),
  };
}

/** Divides the concatenation of some byte arrays into pieces that can be hashed one by one. */
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
