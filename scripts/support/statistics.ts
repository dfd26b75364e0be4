/**
 * The few figures a measurement is summed up by.
 */

/** The value below which the given share of ascending values lies; 0 without values. */
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
