/**
 * Estimates the memory of a plan and its compiled expressions from the length of its statement, so
 * that caches of plans can be limited in bytes.
 *
 * The constants were derived from heap sizes after a garbage collection, on 2026-11-30: a read by
 * key takes 11 KB; a list of 100 computed outputs with 1,724 characters, 100 KB; a filter of 2,821
 * characters, 253 KB; a list of 1,000 outputs with 17,924 characters, 1.1 MB.
 */

const PLAN_BYTES: number = 8 * 1024;
const CHARACTER_BYTES = 96;

/**
 * The largest share of a cache that a single plan may take, so that it does not evict everything
 * else.
 */
const SHARE_MAX = 1 / 4;

/**
 * Returns the estimated memory of a cached plan in bytes.
 *
 * @param textLength The number of characters of the statement, not counting lifted literals.
 */
export function planBytesOf(textLength: number): number {
  return PLAN_BYTES + CHARACTER_BYTES * textLength;
}

/** Whether a plan is small enough to be kept in a plan cache. */
export function fitsCache(planBytes: number, { bytesMax }: { bytesMax: number }): boolean {
  return planBytes <= SHARE_MAX * bytesMax;
}
