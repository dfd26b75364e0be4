/** Hashes, compares and copies undecoded UTF-8 strings four bytes at a time. */
import { HASH_FACTOR, HASH_SEED } from "../base/hash_salt.ts";

/** A buffer of strings, with the views through which they are hashed, compared and copied. */
export interface TextSource {
  readonly bytes: Buffer;
  readonly view: DataView;
}

export interface ByteRange {
  readonly start: number;
  readonly end: number;
}

export function textSourceOf(bytes: Uint8Array): TextSource {
  const { buffer, byteLength, byteOffset } = bytes;
  const isBuffer = bytes instanceof Buffer;
  return {
    bytes: isBuffer ? bytes : Buffer.from(buffer, byteOffset, byteLength),
    view: new DataView(buffer, byteOffset, byteLength),
  };
}

/** A constant of the final mix of MurmurHash3 (Austin Appleby). */
const LAST_MIX = 0xc2b2ae35 | 0;

/** Returns the hash of a string. The hash differs from process to process. */
export function hashText({ view }: TextSource, start: number, end: number): number {
  let hash = HASH_SEED ^ (end - start);
  let at = start;
  for (; at + 4 <= end; at += 4) {
    hash = Math.imul(hash ^ view.getInt32(at, true), HASH_FACTOR);
    hash ^= hash >>> 15;
  }
  for (; at < end; at += 1) {
    hash = Math.imul(hash ^ view.getUint8(at), HASH_FACTOR);
    hash ^= hash >>> 15;
  }
  hash = Math.imul(hash ^ (hash >>> 13), LAST_MIX);
  return hash ^ (hash >>> 16);
}

/** Hashes consecutive strings. `offsets` has one more entry than there are strings. */
export function hashTexts(source: TextSource, offsets: Uint32Array, into: Int32Array): void {
  for (let row = 0; row < into.length; row += 1) {
    const start = offsets[row] ?? 0;
    into[row] = hashText(source, start, offsets[row + 1] ?? start);
  }
}

export function areEqualTexts(
  { view }: TextSource,
  { start, end }: ByteRange,
  other: DataView,
  otherStart: number,
): boolean {
  let from = start;
  let at = otherStart;
  for (; from + 4 <= end; from += 4, at += 4) {
    if (view.getInt32(from, true) !== other.getInt32(at, true)) return false;
  }
  for (; from < end; from += 1, at += 1) {
    if (view.getUint8(from) !== other.getUint8(at)) return false;
  }
  return true;
}

/** Copies bytes to position `at`. The target must have room for them. */
export function copyText(
  { view }: TextSource,
  { start, end }: ByteRange,
  into: DataView,
  at: number,
): void {
  let from = start;
  let to = at;
  for (; from + 4 <= end; from += 4, to += 4) into.setInt32(to, view.getInt32(from, true), true);
  for (; from < end; from += 1, to += 1) into.setUint8(to, view.getUint8(from));
}

/** Compares two strings by code point: returns a negative number, 0 or a positive number. */
export function compareTexts(
  { view }: TextSource,
  { start, end }: ByteRange,
  { view: other }: TextSource,
  otherRange: ByteRange,
): number {
  const { start: otherStart, end: otherEnd } = otherRange;
  const common = Math.min(end - start, otherEnd - otherStart);
  let at = 0;
  for (; at + 4 <= common; at += 4) {
    const difference = view.getUint32(start + at) - other.getUint32(otherStart + at);
    if (difference !== 0) return difference;
  }
  for (; at < common; at += 1) {
    const difference = view.getUint8(start + at) - other.getUint8(otherStart + at);
    if (difference !== 0) return difference;
  }
  return end - start - (otherEnd - otherStart);
}

/** Compares two strings in different buffers by code point. */
export function compareTextBytes(
  bytes: Uint8Array,
  { start, end }: ByteRange,
  other: Uint8Array,
): number {
  const length = Math.min(end - start, other.length);
  for (let i = 0; i < length; i += 1) {
    const difference = (bytes[start + i] ?? 0) - (other[i] ?? 0);
    if (difference !== 0) return difference;
  }
  return end - start - other.length;
}
