/** Generates reproducible random numbers for tests of values. */

/** Returns the seed of this test run. Set SEED to repeat a run. */
export function seedOf(): number {
  return Number(process.env["SEED"] ?? "20260101");
}

/** Returns a generator of numbers from 0 (inclusive) to 1 (exclusive), using mulberry32. */
export function randomFrom(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296;
  };
}
