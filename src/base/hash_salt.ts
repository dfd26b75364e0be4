/**
 * What makes the hashes of a process its own. Keys are what anybody writes: with constants that
 * everybody knows, forty thousand of them can be made that share one hash, and to group by those
 * holds the event loop for seconds.
 *
 * Nothing that is hashed with these may reach the disk, or an order that somebody sees.
 */
import { systemRandom } from "./random.ts";

/** What a hash begins with. */
export const HASH_SEED: number = randomInt32();

/** Odd, so that a product with it loses nothing, and large, so that it reaches the upper bits. */
export const HASH_FACTOR: number = (0x85ebca6b ^ (randomInt32() & 0x3ffffffe)) | 0;

function randomInt32(): number {
  return Math.floor(systemRandom.unit() * 2 ** 32) | 0;
}
