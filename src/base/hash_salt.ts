/**
 * Provides random parameters that make the hashes in each process unpredictable. Clients choose
 * the keys to be hashed. If the parameters were known, an attacker could create forty thousand
 * keys with the same hash, and grouping by these keys would block the event loop for seconds.
 *
 * A hash computed with these parameters must not be stored on disk, and must not determine any
 * order that clients can see.
 */
import { systemRandom } from "./random.ts";

/** The random initial state of the hash function. */
export const HASH_SEED: number = randomInt32();

/**
 * The random multiplier of the hash function. It is odd, so that multiplying by it loses no bits,
 * and large, so that it affects the upper bits.
 */
export const HASH_FACTOR: number = (0x85ebca6b ^ (randomInt32() & 0x3ffffffe)) | 0;

function randomInt32(): number {
  return Math.floor(systemRandom.unit() * 2 ** 32) | 0;
}
