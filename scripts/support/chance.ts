/**
 * Provides reproducible random numbers from a seed, for scripts that must be able to repeat a run.
 */

export interface Chance {
  /** Returns a random integer from 0 (inclusive) to `bound` (exclusive). */
  below(bound: number): number;
  /** Returns an item of a list, chosen at random. */
  pick<T>(items: readonly T[]): T;
  /** Returns a random string of lower-case letters and digits. */
  text(length: number): string;
}

/**
 * Returns a source of random numbers for one part of a run. Its numbers do not depend on how many
 * numbers other parts have used.
 */
export function chanceOfPart(seed: number, part: string): Chance {
  return chanceFromSeed(Bun.hash.xxHash32(part, seed >>> 0));
}

/**
 * Returns a source of random numbers that uses Mulberry32 (Tommy Ettinger). Its 32 bits of state
 * are enough for choosing operations.
 */
export function chanceFromSeed(seed: number): Chance {
  let state = seed >>> 0;
  function below(bound: number): number {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return Math.floor((((mixed ^ (mixed >>> 14)) >>> 0) / 4294967296) * bound);
  }
  return {
    below,
    pick(items) {
      const item = items[below(items.length)];
      if (item === undefined) throw new Error("Cannot pick: there are no items");
      return item;
    },
    text: (length) => Array.from({ length }, () => below(36).toString(36)).join(""),
  };
}
