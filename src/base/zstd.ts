/**
 * Zstandard (RFC 8878) for blocks of a few KiB, at its fastest level: that packs small blocks of text
 * and JSON as well as higher ones do, at one and a half times their speed.
 *
 * A frame says how many bytes it holds, in one of two ways, since blocks are short:
 *
 *     frame   OFFSET SIZE
 *                0    4   28 b5 2f fd
 *                4    1   0x20: one byte of length follows; 0x60: two, of the length less 256
 *                5  1, 2   length
 *                      …   compressed bytes
 */
import { assert } from "./assert.ts";

const LEVEL = 1;

const HEAD_BYTES = 7;
const ONE_BYTE_LENGTH = 0x20;
const TWO_BYTE_LENGTH = 0x60;

/** Longest block. */
const BLOCK_BYTES_MAX = 65_536;

/** Packs 1 to BLOCK_BYTES_MAX bytes. */
export function zstdPack(bytes: Uint8Array): Uint8Array {
  assert(bytes.length > 0 && bytes.length <= BLOCK_BYTES_MAX, "a block is short");
  return Bun.zstdCompressSync(bytes, { level: LEVEL });
}

/**
 * Unpacks what is known to have been so many bytes; undefined when it is something else. What the
 * frame says of its length is looked at first, so that no more memory is taken than for those.
 */
export function zstdUnpack(packed: Uint8Array, byteCount: number): Uint8Array | undefined {
  if (lengthIn(packed) !== byteCount) return undefined;
  try {
    const bytes = Bun.zstdDecompressSync(packed);
    return bytes.length === byteCount ? bytes : undefined;
  } catch {
    // Safe: it throws for what the packed bytes are, and in no other case.
    return undefined;
  }
}

function lengthIn(packed: Uint8Array): number | undefined {
  if (packed.length < HEAD_BYTES) return undefined;
  const low = packed[5] ?? 0;
  if (packed[4] === ONE_BYTE_LENGTH) return low;
  return packed[4] === TWO_BYTE_LENGTH ? 256 + low + 256 * (packed[6] ?? 0) : undefined;
}
