/**
 * Compresses entire frames with gzip. Receivers recognise compressed frames by their first two
 * bytes, `1f 8b`.
 *
 * Level 1 is used because, for 1 KiB, a higher level takes twice as long and makes the result only
 * a tenth smaller.
 */
import { gunzipSync } from "node:zlib";

/** Smaller payloads are sent uncompressed. */
export const GZIP_BYTES_MIN = 512;

const GZIP_LEVEL = 1;

/** Returns the compressed form of a payload; undefined if compression is not worthwhile. */
export function gzipOf(payload: Uint8Array<ArrayBuffer>): Uint8Array | undefined {
  if (payload.length < GZIP_BYTES_MIN) return undefined;
  const packed = Bun.gzipSync(payload, { level: GZIP_LEVEL });
  return packed.length < payload.length ? packed : undefined;
}

export function isGzip(bytes: Uint8Array): boolean {
  return bytes[0] === 0x1f && bytes[1] === 0x8b;
}

export type Gunzipped = Uint8Array | "malformed" | "too large";

/**
 * Decompresses a frame. The result may have at most `maxBytes` bytes, however small the frame is.
 */
export function gunzip(bytes: Uint8Array, maxBytes: number): Gunzipped {
  try {
    return gunzipSync(bytes, { maxOutputLength: maxBytes });
  } catch (error) {
    // zlib throws a RangeError if the result is too large, and other errors only for invalid
    // input.
    if (error instanceof RangeError) return "too large";
    return "malformed";
  }
}
