/**
 * Defines the hash functions of PostgreSQL that applications call, such as `hashtext`, which turns
 * a name into the key of an advisory lock. They return the same numbers as PostgreSQL, so that
 * programs on both servers agree on the keys.
 *
 * The algorithm is Bob Jenkins' lookup3, which reads twelve bytes at a time into three words.
 */
import {
  BIGINT,
  type DataType,
  DOUBLE,
  FLOAT,
  INT,
  SMALLINT,
  TEXT,
  UUID,
  type Value,
  type Whole,
  wholeFromBigint,
} from "../../types/mod.ts";
import { functionsNamed, overload } from "./base/define.ts";
import type { ScalarFunction } from "./base/function.ts";

/** The two 32-bit words of a hash. Functions without a seed return the lower one. */
export interface Hash {
  readonly high: number;
  readonly low: number;
}

/** The seed of functions without one. */
export const NO_SEED = 0n;
const ENCODER = new TextEncoder();

function rotated(word: number, bits: number): number {
  return (word << bits) | (word >>> (32 - bits));
}

class Words {
  #a: number;
  #b: number;
  #c: number;

  constructor(length: number, seed: bigint) {
    this.#a = (0x9e37_79b9 + length + 3_923_095) | 0;
    this.#b = this.#a;
    this.#c = this.#a;
    if (seed === NO_SEED) return;
    this.add(Number(BigInt.asIntN(32, seed >> 32n)), Number(BigInt.asIntN(32, seed)), 0);
    this.mix();
  }

  add(a: number, b: number, c: number): void {
    this.#a = (this.#a + a) | 0;
    this.#b = (this.#b + b) | 0;
    this.#c = (this.#c + c) | 0;
  }

  mix(): void {
    let [a, b, c] = [this.#a, this.#b, this.#c];
    a = (a - c) ^ rotated(c, 4);
    c = (c + b) | 0;
    b = (b - a) ^ rotated(a, 6);
    a = (a + c) | 0;
    c = (c - b) ^ rotated(b, 8);
    b = (b + a) | 0;
    a = (a - c) ^ rotated(c, 16);
    c = (c + b) | 0;
    b = (b - a) ^ rotated(a, 19);
    a = (a + c) | 0;
    c = (c - b) ^ rotated(b, 4);
    b = (b + a) | 0;
    this.#a = a;
    this.#b = b;
    this.#c = c;
  }

  finish(): Hash {
    let [a, b, c] = [this.#a, this.#b, this.#c];
    c = ((c ^ b) - rotated(b, 14)) | 0;
    a = ((a ^ c) - rotated(c, 11)) | 0;
    b = ((b ^ a) - rotated(a, 25)) | 0;
    c = ((c ^ b) - rotated(b, 16)) | 0;
    a = ((a ^ c) - rotated(c, 4)) | 0;
    b = ((b ^ a) - rotated(a, 14)) | 0;
    c = ((c ^ b) - rotated(b, 24)) | 0;
    return { high: b, low: c };
  }
}

export function hashOfBytes(bytes: Uint8Array, seed: bigint): Hash {
  const words = new Words(bytes.length, seed);
  const wordAt = (at: number): number =>
    (bytes[at] ?? 0) |
    ((bytes[at + 1] ?? 0) << 8) |
    ((bytes[at + 2] ?? 0) << 16) |
    ((bytes[at + 3] ?? 0) << 24);
  let at = 0;
  for (; bytes.length - at >= 12; at += 12) {
    words.add(wordAt(at), wordAt(at + 4), wordAt(at + 8));
    words.mix();
  }
  // The lowest byte of the last word is reserved for the length of the input.
  words.add(wordAt(at), wordAt(at + 4), wordAt(at + 8) << 8);
  return words.finish();
}

export function hashOfWord(word: number, seed: bigint): Hash {
  const words = new Words(4, seed);
  words.add(word, 0, 0);
  return words.finish();
}

/** Hashes an integer so that equal numbers of all integer types have equal hashes. */
export function hashOfWhole(value: Whole, seed: bigint): Hash {
  const whole = BigInt(value);
  const low = Number(BigInt.asIntN(32, whole));
  const high = Number(BigInt.asIntN(32, whole >> 32n));
  return hashOfWord(low ^ (whole >= 0n ? high : ~high), seed);
}

/** Hashes a number so that equal numbers have equal hashes. The hash of zero is the seed. */
export function hashOfDouble(value: number, seed: bigint): Hash {
  if (value === 0) {
    return { high: Number(BigInt.asIntN(32, seed >> 32n)), low: Number(BigInt.asIntN(32, seed)) };
  }
  const bytes = new DataView(new ArrayBuffer(8));
  // A NaN may have a sign, which must not matter.
  if (Number.isNaN(value)) bytes.setUint32(4, 0x7ff80000, true);
  else bytes.setFloat64(0, value, true);
  return hashOfBytes(new Uint8Array(bytes.buffer), seed);
}

export function hashOfText(value: string, seed: bigint): Hash {
  return hashOfBytes(ENCODER.encode(value), seed);
}

export function hashOfUuid(value: string, seed: bigint): Hash {
  return hashOfBytes(Buffer.from(value.replaceAll("-", ""), "hex"), seed);
}

/** Returns both words of a hash as one signed number. */
export function bigHashOf({ high, low }: Hash): bigint {
  return (BigInt(high) << 32n) | BigInt(low >>> 0);
}

/**
 * Defines two functions: one without a seed that returns an INT, and one with a seed that returns
 * a BIGINT.
 */
export function hashing(
  names: readonly [plain: string, seeded: string],
  type: DataType,
  hashOf: (value: Value, seed: bigint) => Hash,
): ScalarFunction[] {
  const [plain, seeded] = names;
  return [
    ...functionsNamed(
      [plain],
      overload([type], INT, ([value = null]) => hashOf(value, NO_SEED).low),
    ),
    ...functionsNamed(
      [seeded],
      overload([type, BIGINT], BIGINT, ([value = null, seed = null]) => {
        return wholeFromBigint(bigHashOf(hashOf(value, BigInt(seed as Whole))));
      }),
    ),
  ];
}

export const HASH_FUNCTIONS: readonly ScalarFunction[] = [
  ...hashing(["hashtext", "hashtextextended"], TEXT, (value, seed) =>
    hashOfText(value as string, seed),
  ),
  ...hashing(["hashint2", "hashint2extended"], SMALLINT, (value, seed) =>
    hashOfWord(value as number, seed),
  ),
  ...hashing(["hashint4", "hashint4extended"], INT, (value, seed) =>
    hashOfWord(value as number, seed),
  ),
  ...hashing(["hashint8", "hashint8extended"], BIGINT, (value, seed) =>
    hashOfWhole(value as Whole, seed),
  ),
  ...hashing(["hashfloat4", "hashfloat4extended"], FLOAT, (value, seed) =>
    hashOfDouble(value as number, seed),
  ),
  ...hashing(["hashfloat8", "hashfloat8extended"], DOUBLE, (value, seed) =>
    hashOfDouble(value as number, seed),
  ),
  ...hashing(["uuid_hash", "uuid_hash_extended"], UUID, (value, seed) =>
    hashOfUuid(value as string, seed),
  ),
];
