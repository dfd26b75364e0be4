/**
 * Packs chunks, that is, compresses their bytes in the file. Packing does not change the encoding
 * of a chunk; its directory entry says whether it is packed. Packed chunks were introduced in
 * format 3, so files in older formats contain none.
 *
 * The encoded bytes are divided into blocks of 16 KiB; the last block may be shorter. Each block
 * is a separate Zstandard frame, so a few rows can be read without unpacking other blocks.
 *
 *     packed    OFFSET SIZE
 *     chunk        0    4   u32 bytes of the chunk when unpacked, 1 or more
 *                  4  4×b   u32 for each block: its end, counted from the end of this table
 *                      …    blocks, one after the other; zeros to 8
 *
 * As for any other chunk, the checksum covers the bytes in the file.
 *
 * With COMPRESSION = 'auto', text, JSON, bytes and arrays are packed if they have at least 100
 * bytes per value and 64 KiB per chunk, and shrink to less than 60 %. Numbers and short text stay
 * mapped. Packing slows down writes, first scans, and reads by key, but hardly affects scans
 * served from the cache.
 */

import { zstdPack } from "../../base/zstd.ts";
import type { Compression } from "../contract/table_definition.ts";
import type { EncodedChunk } from "./chunk_encoder.ts";
import { BLOCKS, TEXT } from "./encodings.ts";
import { type Layout, padded } from "./format.ts";

/**
 * The size in bytes of a block before compression. Larger blocks would compress only slightly
 * better and take longer to decompress.
 */
export const BLOCK_BYTES = 16384;

/**
 * The minimum size in bytes of a chunk to be packed. Packing a smaller chunk is not worthwhile,
 * since it is likely to be merged soon.
 */
export const AUTO_CHUNK_BYTES_MIN: number = 64 * 1024;

/**
 * The minimum average size in bytes of the values in a chunk to be packed, including their
 * offsets. Scans and aggregations read large numbers of shorter values.
 */
export const AUTO_VALUE_BYTES_MIN = 100;

/** The maximum ratio of packed to original size at which packing pays off. */
export const AUTO_SHARE_MAX = 0.6;

/**
 * The number of blocks, spread over the chunk, that are packed as a sample to find out whether
 * packing pays off.
 */
const SAMPLE_BLOCKS = 4;

/**
 * The minimum number of blocks for taking a sample. A chunk with fewer blocks is packed without a
 * sample.
 */
const SAMPLED_BLOCKS_MIN = 32;

/** A chunk, and the properties that determine whether it is packed. */
export interface PackedCandidate {
  readonly chunk: EncodedChunk;
  readonly layout: Layout;
  readonly rowCount: number;
}

/**
 * Packs the bytes of a chunk. Returns undefined if the chunk is to stay unpacked. Each step
 * between yields takes well below a millisecond.
 */
export function* packedBytes(
  { chunk, layout, rowCount }: PackedCandidate,
  compression: Compression,
): Generator<void, Uint8Array | undefined> {
  const { bytes, header } = chunk;
  if (compression === "none" || bytes.length === 0) return undefined;
  const isAuto = compression === "auto";
  if (isAuto && !isLong(chunk, layout, rowCount - header.nullCount)) return undefined;
  const byteCountMax = isAuto ? Math.floor(bytes.length * AUTO_SHARE_MAX) : bytes.length - 8;
  const blocks: Uint8Array[] = [];
  for (let at = 0; at < bytes.length; at += BLOCK_BYTES) {
    blocks.push(bytes.subarray(at, at + BLOCK_BYTES));
  }
  if (isAuto && !mayShrink(blocks)) return undefined;
  const frames: Uint8Array[] = [];
  let byteCount = tableBytes(blocks.length);
  for (const block of blocks) {
    const frame = zstdPack(block);
    frames.push(frame);
    byteCount += frame.length;
    if (padded(byteCount) > byteCountMax) return undefined;
    yield;
  }
  return assembled(bytes.length, frames, byteCount);
}

/** Returns the size in bytes of the table that precedes the blocks of a packed chunk. */
export function tableBytes(blockCount: number): number {
  return 4 + 4 * blockCount;
}

export function blockCountOf(byteCount: number): number {
  return Math.ceil(byteCount / BLOCK_BYTES);
}

/**
 * Whether the values of a chunk are long enough for packing. Values in dictionaries are already
 * compact. Embeddings and numbers hardly shrink, and are scanned often.
 */
function isLong({ bytes, header }: EncodedChunk, layout: Layout, valueCount: number): boolean {
  const isText = header.encoding === TEXT;
  const isBytes = header.encoding === BLOCKS && layout !== "embedding";
  if (!isText && !isBytes) return false;
  return bytes.length >= AUTO_CHUNK_BYTES_MIN && bytes.length >= valueCount * AUTO_VALUE_BYTES_MIN;
}

function mayShrink(blocks: readonly Uint8Array[]): boolean {
  if (blocks.length < SAMPLED_BLOCKS_MIN) return true;
  let byteCount = 0;
  let packedCount = 0;
  for (let sample = 0; sample < SAMPLE_BLOCKS; sample += 1) {
    // Takes the middle block of each quarter, since offsets come first and the last block may be
    // short.
    const block = blocks[Math.floor(((sample + 0.5) * blocks.length) / SAMPLE_BLOCKS)];
    if (block === undefined) continue;
    byteCount += block.length;
    packedCount += zstdPack(block).length;
  }
  return packedCount <= byteCount * AUTO_SHARE_MAX;
}

function assembled(
  unpackedBytes: number,
  frames: readonly Uint8Array[],
  byteCount: number,
): Uint8Array {
  const bytes = new Uint8Array(padded(byteCount));
  const view = new DataView(bytes.buffer);
  view.setUint32(0, unpackedBytes, true);
  const blocksAt = tableBytes(frames.length);
  let at = blocksAt;
  for (const [index, frame] of frames.entries()) {
    bytes.set(frame, at);
    at += frame.length;
    view.setUint32(4 + 4 * index, at - blocksAt, true);
  }
  return bytes;
}
