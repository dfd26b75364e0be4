/**
 * Generates reproducible random numbers: the same seed gives the same run.
 *
 * The generator is sfc32 (Chris Doty-Humphrey, PractRand). It is small and fast, and passes the
 * usual test batteries.
 */
import { assert } from "../../src/base/assert.ts";
import type { Random } from "../../src/base/random.ts";

export class SeededRandom implements Random {
  readonly seed: number;
  #a: number;
  #b: number;
  #c: number;
  #counter = 1;

  constructor(seed: number) {
    this.seed = seed;
    this.#a = 0;
    this.#b = seed | 0;
    this.#c = Math.floor(seed / 4294967296) | 0;
    for (let round = 0; round < 12; round += 1) this.u32();
  }

  /** Returns 32 random bits. */
  u32(): number {
    const sum = (this.#a + this.#b + this.#counter) | 0;
    this.#counter = (this.#counter + 1) | 0;
    this.#a = this.#b ^ (this.#b >>> 9);
    this.#b = (this.#c + (this.#c << 3)) | 0;
    this.#c = (this.#c << 21) | (this.#c >>> 11);
    this.#c = (this.#c + sum) | 0;
    return sum >>> 0;
  }

  unit(): number {
    return ((this.u32() >>> 5) * 67108864 + (this.u32() >>> 6)) / 9007199254740992;
  }

  bytes(count: number): Uint8Array {
    return Uint8Array.from({ length: count }, () => this.u32() & 255);
  }

  /** Returns a whole number from 0 to `bound` - 1. */
  below(bound: number): number {
    assert(bound >= 1, "the bound must be positive");
    return Math.floor(this.unit() * bound);
  }

  /** Returns a whole number from `min` to `max`, both inclusive. */
  between(min: number, max: number): number {
    return min + this.below(max - min + 1);
  }

  /** Returns true with the given probability. */
  chance(probability: number): boolean {
    return this.unit() < probability;
  }

  pick<T>(items: readonly T[]): T {
    return items[this.below(items.length)] as T;
  }

  /** Returns a new array with the items in random order. */
  shuffle<T>(items: readonly T[]): T[] {
    const shuffled = [...items];
    for (let last = shuffled.length - 1; last > 0; last -= 1) {
      const other = this.below(last + 1);
      const item = shuffled[last] as T;
      shuffled[last] = shuffled[other] as T;
      shuffled[other] = item;
    }
    return shuffled;
  }
}

/** Returns the seed for a run: the environment variable SEED if set, otherwise `fallback`. */
export function seedOf(fallback: number): number {
  const text = process.env["SEED"];
  return text === undefined ? fallback : Number(text);
}
