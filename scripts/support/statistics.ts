/** Computes medians and percentiles of measurements. */

/**
 * Returns the percentile at the fraction `share` of values in ascending order; 0 if there are no
 * values.
 */
export function percentile(ascending: readonly number[], share: number): number {
  const index = Math.min(ascending.length - 1, Math.floor(ascending.length * share));
  return ascending[index] ?? 0;
}

export function median(values: readonly number[]): number {
  return percentile(
    values.toSorted((a, b) => a - b),
    0.5,
  );
}
