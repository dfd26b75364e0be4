/**
 * Defines the interface through which all code gets its random numbers, so that a simulation can
 * be repeated from its seed.
 */

export interface Random {
  /** Returns a new array of unpredictable bytes. */
  bytes(count: number): Uint8Array;
  /** Returns a random number in [0, 1), with 53 random bits. */
  unit(): number;
}

/** The system's cryptographic random source. */
export const systemRandom: Random = {
  bytes: (count) => crypto.getRandomValues(new Uint8Array(count)),
  unit() {
    const [high = 0, low = 0] = crypto.getRandomValues(new Uint32Array(2));
    return ((high >>> 5) * 67108864 + (low >>> 6)) / 9007199254740992;
  },
};
