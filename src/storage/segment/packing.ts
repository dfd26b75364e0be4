/**
 * Packed chunks: a chunk whose bytes are compressed in the file. Its encoding stays what it is, and
 * its entry says that it is packed. Of format 3; a file of an older format has none.
 *
 * The bytes that the encoding made are cut into blocks of 16 KiB, the last one shorter, and each
 * block is a frame of Zstandard of its own: a few rows are read without unpacking the others.
 *
 *     packed    OFFSET SIZE
 *     chunk        0    4   u32 bytes of the chunk when unpacked, 1 or more
 *                  4  4×b   u32 for each block: where it ends, counted from the end of this table
 *                      …    blocks, one after the other; zeros to 8
 *
 * The checksum of a packed chunk is over what lies in the file, as of any other.
 *
 * With COMPRESSION = 'auto' text, JSON and bytes are packed where they have 100 bytes a value and
 * 64 KiB a chunk, and less than 60 % is left. A row with 120 bytes of text takes 52 instead of
 * 133; numbers and short text stay mapped. It costs 5 ns a byte to write, 2 to scan first, 0.3
 * from the cache, and 60 to 100 µs for a read by key.
 */

import { zstdPack } from "../../base/zstd.ts";
import type { Compression } from "../contract/store.ts";
import type { EncodedChunk } from "./chunk_encoder.ts";
import { BLOCKS, TEXT } from "./encodings.ts";
import { type Layout, padded } from "./format.ts";

/** One takes 20 us to unpack. With four times as many bytes text would be a twelfth smaller. */
export const BLOCK_BYTES = 16384;

/** A smaller chunk is hardly worth a look: many such are merged soon. */
export const AUTO_CHUNK_BYTES_MIN: number = 64 * 1024;

/** Shorter values are scanned, grouped and compared in great numbers. With their offsets. */
export const AUTO_VALUE_BYTES_MIN = 100;

/** What is left must be below this. */
export const AUTO_SHARE_MAX = 0.6;

/** Blocks over the whole chunk that are packed first, to see whether the others are worth it. */
const SAMPLE_BLOCKS = 4;

/** Chunks with fewer are packed at once. */
const SAMPLED_BLOCKS_MIN = 32;

/** What decides whether a chunk is packed. */
export interface PackedCandidate {
  readonly chunk: EncodedChunk;
  readonly layout: Layout;
  readonly rowCount: number;
}

/**
 * The bytes of a chunk as they lie in the file, packed; undefined if it stays as it is. Yields
 * between steps well below a millisecond.
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

/** Length of what comes before the blocks. */
export function tableBytes(blockCount: number): number {
  return 4 + 4 * blockCount;
}

export function blockCountOf(byteCount: number): number {
  return Math.ceil(byteCount / BLOCK_BYTES);
}

/** Dictionaries are short already, and embeddings and numbers hardly shrink and are scanned. */
function isLong({ bytes, header }: EncodedChunk, layout: Layout, valueCount: number): boolean {
  const isText = header.encoding === TEXT;
  const isBytes = header.encoding === BLOCKS && layout === "bytes";
  if (!isText && !isBytes) return false;
  return bytes.length >= AUTO_CHUNK_BYTES_MIN && bytes.length >= valueCount * AUTO_VALUE_BYTES_MIN;
}

function mayShrink(blocks: readonly Uint8Array[]): boolean {
  if (blocks.length < SAMPLED_BLOCKS_MIN) return true;
  let byteCount = 0;
  let packedCount = 0;
  for (let sample = 0; sample < SAMPLE_BLOCKS; sample += 1) {
    // In the middle of each quarter: offsets come first, and the last block may be short.
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
