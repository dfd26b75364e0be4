/**
 * Whole frames as gzip, recognised by their first bytes `1f 8b`.
 *
 * Level 1: at 1 KiB a higher level costs twice the time for a tenth fewer bytes.
 */
import { gunzipSync } from "node:zlib";

/** Smaller payloads are sent as they are. */
export const GZIP_BYTES_MIN = 512;

const GZIP_LEVEL = 1;

/** The gzip form of a payload, or undefined when it is not worth it. */
export function gzipOf(payload: Uint8Array<ArrayBuffer>): Uint8Array | undefined {
  if (payload.length < GZIP_BYTES_MIN) return undefined;
  const packed = Bun.gzipSync(payload, { level: GZIP_LEVEL });
  return packed.length < payload.length ? packed : undefined;
}

export function isGzip(bytes: Uint8Array): boolean {
  return bytes[0] === 0x1f && bytes[1] === 0x8b;
}

export type Gunzipped = Uint8Array | "malformed" | "too large";

/** Unpacks at most `maxBytes`, however small the frame is. */
export function gunzip(bytes: Uint8Array, maxBytes: number): Gunzipped {
  try {
    return gunzipSync(bytes, { maxOutputLength: maxBytes });
  } catch (error) {
    // zlib throws for what the client sent, and in no other case.
    if (error instanceof RangeError) return "too large";
    return "malformed";
  }
}
