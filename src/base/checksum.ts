/**
 * Computes checksums of stored bytes: CRC-32 for log frames, xxHash3 for segment chunks.
 *
 * In the runtime, both run as fast as memory can be read (64 KiB in about 1 µs), so every byte is
 * checked.
 */

const MASK_32 = 0xffffffffn;

/** A 64-bit hash as two unsigned 32-bit halves, so that callers need no bigint. */
export interface Hash64 {
  readonly low: number;
  readonly high: number;
}

/**
 * Returns the CRC-32 (IEEE) of the bytes as an unsigned number. To continue a checksum, pass the
 * CRC of the preceding bytes as `seed`.
 */
export function crc32(bytes: Uint8Array, seed = 0): number {
  return Bun.hash.crc32(bytes, seed) >>> 0;
}

/** Returns the 64-bit xxHash3. A different 32-bit seed produces an unrelated hash. */
export function xxHash3(bytes: Uint8Array, seed = 0): Hash64 {
  const hash = Bun.hash.xxHash3(bytes, BigInt(seed));
  return { low: Number(hash & MASK_32), high: Number(hash >> 32n) };
}

/**
 * Returns a hash seed that identifies the place where bytes are stored. Intact bytes in the wrong
 * place, for example after a misdirected write, therefore fail the check. The seed has 32 bits
 * because the runtime's xxHash3 uses no more.
 */
export function placeSeed(file: number, column: number, chunk: number): number {
  const place = new Uint8Array(new Float64Array([file, column, chunk]).buffer);
  return Number(Bun.hash.xxHash3(place) & MASK_32);
}
