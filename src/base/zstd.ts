/**
 * Compresses blocks of a few KiB with Zstandard (RFC 8878) at its fastest level. For small blocks
 * of text and JSON, this level compresses as well as higher levels, at one and a half times their
 * speed.
 *
 * A frame states its uncompressed length in one of two ways, and consists of a single block,
 * because the input is short:
 *
 *     frame   OFFSET SIZE
 *                0    4   28 b5 2f fd
 *                4    1   0x20: one byte of length follows; 0x60: two, of the length less 256
 *                5  1, 2   length
 *                …    3   u24: 1 for the last block, twice its kind, eight times its size
 *                      …   the one byte of a block of equal bytes, or all bytes of the block
 */
import { assert } from "./assert.ts";

const LEVEL = 1;

const MAGIC = 0xfd2fb528;
const ONE_BYTE_LENGTH = 0x20;
const TWO_BYTE_LENGTH = 0x60;
const BLOCK_HEAD_BYTES = 3;
/** The type of a block whose bytes are all equal, so that it stores only one of them. */
const REPEATED = 1;

/** The maximum number of uncompressed bytes in a block. */
const BLOCK_BYTES_MAX = 65_536;

/**
 * Compresses up to {@linkcode BLOCK_BYTES_MAX} bytes, but at least one, into a frame with a single
 * block.
 */
export function zstdPack(bytes: Uint8Array): Uint8Array {
  assert(
    bytes.length > 0 && bytes.length <= BLOCK_BYTES_MAX,
    "zstd: block is empty or exceeds the maximum block size",
  );
  return Bun.zstdCompressSync(bytes, { level: LEVEL });
}

/**
 * Decompresses bytes to a known length. Returns undefined if the input is invalid. Before
 * decompressing, this function checks that the input is a single frame with a single block of that
 * length. Otherwise, additional frames or blocks would be decompressed in full before the error
 * was detected.
 */
export function zstdUnpack(packed: Uint8Array, byteCount: number): Uint8Array | undefined {
  if (!isOneBlock(packed, byteCount)) return undefined;
  try {
    const bytes = Bun.zstdDecompressSync(packed);
    return bytes.length === byteCount ? bytes : undefined;
  } catch {
    // Decompression throws only if its input is invalid.
    return undefined;
  }
}

function isOneBlock(packed: Uint8Array, byteCount: number): boolean {
  const blockAt = packed[4] === ONE_BYTE_LENGTH ? 6 : 7;
  if (packed.length < blockAt + BLOCK_HEAD_BYTES) return false;
  const head = new DataView(packed.buffer, packed.byteOffset, blockAt + BLOCK_HEAD_BYTES);
  if (head.getUint32(0, true) !== MAGIC || lengthIn(head) !== byteCount) return false;
  const block = head.getUint16(blockAt, true) + head.getUint8(blockAt + 2) * 65_536;
  const isLast = (block & 1) === 1;
  const size = ((block >>> 1) & 3) === REPEATED ? 1 : block >>> 3;
  return isLast && blockAt + BLOCK_HEAD_BYTES + size === packed.length;
}

function lengthIn(head: DataView): number | undefined {
  const form = head.getUint8(4);
  if (form === ONE_BYTE_LENGTH) return head.getUint8(5);
  return form === TWO_BYTE_LENGTH ? 256 + head.getUint16(5, true) : undefined;
}
