/**
 * Checksums of stored bytes: CRC-32 for log frames, xxHash3 for chunks of segments.
 *
 * Both run at memory speed in the runtime (64 KiB in about 1 us), so every byte is checked.
 */

const MASK_32 = 0xffffffffn;

/** 64 bits as two unsigned halves, so that no caller needs a bigint. */
export interface Hash64 {
  readonly low: number;
  readonly high: number;
}

/** CRC-32 (IEEE) as an unsigned number; `seed` is the CRC of the bytes before these. */
export function crc32(bytes: Uint8Array, seed = 0): number {
  return Bun.hash.crc32(bytes, seed) >>> 0;
}

/** xxHash3 with 64 bits. A different seed (32 bits) gives an unrelated hash. */
export function xxHash3(bytes: Uint8Array, seed = 0): Hash64 {
  const hash = Bun.hash.xxHash3(bytes, BigInt(seed));
  return { low: Number(hash & MASK_32), high: Number(hash >> 32n) };
}

/**
 * A seed that names the place of some bytes, so that bytes which are intact but in the wrong
 * place (a misdirected read or write) do not pass. It has 32 bits because the runtime's xxHash3
 * looks at no more.
 */
export function placeSeed(file: number, column: number, chunk: number): number {
  const place = new Uint8Array(new Float64Array([file, column, chunk]).buffer);
  return Number(Bun.hash.xxHash3(place) & MASK_32);
}
