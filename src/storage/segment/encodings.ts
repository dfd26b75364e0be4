/**
 * Defines the encodings of chunks: how the file stores the values of one column in one row group.
 *
 * A chunk consists of null bits, if there are any, followed by the parts of its encoding. Each
 * part begins at a multiple of 8 and is padded with zeros to a multiple of 8. `n` is the number of
 * rows in the group. There are n null bits, low bit first, which are 1 where the value is NULL. In
 * its place, the parts contain an arbitrary value that is never read. The whole chunk may be
 * packed (see `packing.ts`).
 *
 *     ENCODING     PARTS                                  AUXILIARY   BASE
 *     none                                                                     every row is NULL
 *     constant                                                        value    number or 0/1
 *     f64          f64 × n
 *     f32          f32 × n
 *     i32          i32 × n
 *     offset8      u8  × n                                            added    whole numbers
 *     offset16     u16 × n                                            added    whole numbers
 *     offset32     u32 × n                                            added    whole numbers
 *     dictionary   codes × n │ u32 × (values+1) │ UTF-8   values               text
 *     text         u32 × (n+1) │ UTF-8                                         text
 *     bits         n bits, low bit first                                       booleans
 *     wide         u32 × n for each word, lowest first    words                beyond 2^53
 *     blocks       u32 × (n+1) │ bytes                                         all others
 *     runs         u32 × r │ f64 × r │ f64 × r            runs                 whole numbers
 *     scaled8      u8  × n                                divisor     added    doubles
 *     scaled16     u16 × n                                divisor     added    doubles
 *     scaled32     u32 × n                                divisor     added    doubles
 *
 * Codes are u8 for up to 256 values, u16 for more, and absent for a single value. `wide` numbers
 * are in two's complement with 2 or 4 words. Embeddings are blocks of f32. Arrays and intervals
 * are blocks, each with one value in the format of `types/value_codec.ts`.
 *
 * A run consists of its first row, its first number, and the step from each number to the next.
 * Scaled values are (offset + added) / divisor. Runs and scaled values were introduced in format
 * 2, so a file in format 1 contains neither.
 *
 * f64, i32, text and dictionary codes are laid out like vectors, so vectors of these share the
 * memory of the mapped file. Offsets cost one addition per row, and at least halve the number of
 * bytes that a scan reads.
 */
import { assert } from "../../base/assert.ts";

export const NONE = 0;
export const CONSTANT = 1;
export const F64 = 2;
export const F32 = 3;
export const I32 = 4;
export const OFFSET_8 = 5;
export const OFFSET_16 = 6;
export const OFFSET_32 = 7;
export const DICTIONARY = 8;
export const TEXT = 9;
export const BITS = 10;
export const WIDE = 11;
export const BLOCKS = 12;
export const RUNS = 13;
export const SCALED_8 = 14;
export const SCALED_16 = 15;
export const SCALED_32 = 16;

/** The names of the encodings as shown to users, by encoding number. */
export const ENCODING_NAMES: readonly string[] = [
  "none",
  "constant",
  "f64",
  "f32",
  "i32",
  "offset8",
  "offset16",
  "offset32",
  "dictionary",
  "text",
  "bits",
  "wide",
  "blocks",
  "runs",
  "scaled8",
  "scaled16",
  "scaled32",
];

/**
 * The maximum number of values in a dictionary. A reader decodes a dictionary as a whole and
 * caches it.
 */
export const DICTIONARY_VALUES_MAX = 4096;

/** Returns the size of a dictionary code in bytes. */
export function codeBytes(valueCount: number): 0 | 1 | 2 {
  return valueCount <= 1 ? 0 : valueCount <= 256 ? 1 : 2;
}

/** Packs flags, one byte per row, into one bit per row. */
export function packBits(flags: Uint8Array): Uint8Array {
  const bits = new Uint8Array(Math.ceil(flags.length / 8));
  for (let row = 0; row < flags.length; row += 1) {
    bits[row >> 3] = (bits[row >> 3] ?? 0) | ((flags[row] ?? 0) << (row & 7));
  }
  return bits;
}

/** Unpacks one bit per row into one byte per row, for the rows from `start` to `end`. */
export function unpackBits(bits: Uint8Array, start: number, end: number): Uint8Array {
  const flags = new Uint8Array(end - start);
  let row = start;
  let at = 0;
  for (; row < end && (row & 7) !== 0; row += 1, at += 1) flags[at] = bitAt(bits, row);
  for (; row + 8 <= end; row += 8, at += 8) {
    const byte = bits[row >> 3] ?? 0;
    if (byte === 0) continue;
    flags[at] = byte & 1;
    flags[at + 1] = (byte >> 1) & 1;
    flags[at + 2] = (byte >> 2) & 1;
    flags[at + 3] = (byte >> 3) & 1;
    flags[at + 4] = (byte >> 4) & 1;
    flags[at + 5] = (byte >> 5) & 1;
    flags[at + 6] = (byte >> 6) & 1;
    flags[at + 7] = byte >> 7;
  }
  for (; row < end; row += 1, at += 1) flags[at] = bitAt(bits, row);
  return flags;
}

export function bitAt(bits: Uint8Array, row: number): number {
  return ((bits[row >> 3] ?? 0) >> (row & 7)) & 1;
}

assert(DICTIONARY_VALUES_MAX <= 65536, "column encoding: dictionary codes do not fit in two bytes");
