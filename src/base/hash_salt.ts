/**
 * Provides random parameters that make the hashes of each process unpredictable. Clients choose the
 * keys. With known constants, an attacker could make forty thousand keys with the same hash, and
 * grouping by these keys would block the event loop for seconds.
 *
 * No hash that is computed with these parameters may reach the disk or determine a visible order.
 */
import { systemRandom } from "./random.ts";

/** The initial state of a hash. */
export const HASH_SEED: number = randomInt32();

/**
 * The factor is odd, so that multiplication loses no bits, and large, so that it affects the upper
 * bits.
 */
export const HASH_FACTOR: number = (0x85ebca6b ^ (randomInt32() & 0x3ffffffe)) | 0;

function randomInt32(): number {
  return Math.floor(systemRandom.unit() * 2 ** 32) | 0;
}
