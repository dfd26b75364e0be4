/**
 * Repeatable randomness for tests of values.
 */

/** The seed of this run; set SEED to repeat one. */
export function seedOf(): number {
  return Number(process.env["SEED"] ?? "20260101");
}

/** Numbers from 0 (inclusive) to 1 (exclusive); mulberry32. */
export function randomFrom(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296;
  };
}
