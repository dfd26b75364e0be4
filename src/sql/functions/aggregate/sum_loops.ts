/**
 * Implements the loops of sum and avg. Each type of array has its own loop, because a loop that
 * handles two types is several times slower. There are also separate loops for rows with and
 * without groups and NULLs.
 */

export interface SummedRows {
  /** The group of each row; undefined if all rows belong to group 0. */
  readonly numbers: Uint32Array | undefined;
  readonly values: Int32Array | Float64Array;
  /** Contains 1 for each row that is NULL; undefined if no row is NULL. */
  readonly nulls: Uint8Array | undefined;
  readonly count: number;
}

/** Adds the values of the first `count` rows to the sums of their groups. */
export function sumRows(sums: Float64Array, { count, nulls, numbers, values }: SummedRows): void {
  const isInt32 = values instanceof Int32Array;
  if (nulls !== undefined) {
    if (isInt32) presentInt32(sums, values, { count, nulls, numbers });
    else presentFloat64(sums, values, { count, nulls, numbers });
  } else if (numbers === undefined) {
    const sum = sums[0] ?? 0;
    sums[0] = isInt32 ? plainInt32(sum, values, count) : plainFloat64(sum, values, count);
  } else if (isInt32) {
    groupedInt32(sums, numbers, values);
  } else {
    groupedFloat64(sums, numbers, values);
  }
}

/** Returns the largest absolute value among the given numbers. */
export function magnitudeOf(values: Float64Array): number {
  let low = 0;
  let high = 0;
  for (let row = 0; row < values.length; row += 1) {
    const value = values[row] ?? 0;
    if (value > high) high = value;
    if (value < low) low = value;
  }
  return Math.max(high, -low);
}

function plainInt32(start: number, values: Int32Array, count: number): number {
  let sum = start;
  for (let row = 0; row < count; row += 1) sum += values[row] ?? 0;
  return sum;
}

function plainFloat64(start: number, values: Float64Array, count: number): number {
  let sum = start;
  for (let row = 0; row < count; row += 1) sum += values[row] ?? 0;
  return sum;
}

function groupedInt32(sums: Float64Array, numbers: Uint32Array, values: Int32Array): void {
  for (let row = 0; row < numbers.length; row += 1) {
    const group = numbers[row] ?? 0;
    sums[group] = (sums[group] ?? 0) + (values[row] ?? 0);
  }
}

function groupedFloat64(sums: Float64Array, numbers: Uint32Array, values: Float64Array): void {
  for (let row = 0; row < numbers.length; row += 1) {
    const group = numbers[row] ?? 0;
    sums[group] = (sums[group] ?? 0) + (values[row] ?? 0);
  }
}

/** Adds doubles without NULLs to the sums of their groups, and marks these groups. */
export function sumMarked(
  sums: Float64Array,
  marks: Uint8Array,
  { numbers, values }: { numbers: Uint32Array; values: Float64Array },
): void {
  for (let row = 0; row < numbers.length; row += 1) {
    const group = numbers[row] ?? 0;
    marks[group] = 1;
    sums[group] = (sums[group] ?? 0) + (values[row] ?? 0);
  }
}

interface PresentRows {
  readonly numbers: Uint32Array | undefined;
  readonly nulls: Uint8Array;
  readonly count: number;
}

function presentInt32(
  sums: Float64Array,
  values: Int32Array,
  { count, nulls, numbers }: PresentRows,
): void {
  for (let row = 0; row < count; row += 1) {
    if (nulls[row] === 1) continue;
    const group = numbers === undefined ? 0 : (numbers[row] ?? 0);
    sums[group] = (sums[group] ?? 0) + (values[row] ?? 0);
  }
}

function presentFloat64(
  sums: Float64Array,
  values: Float64Array,
  { count, nulls, numbers }: PresentRows,
): void {
  for (let row = 0; row < count; row += 1) {
    if (nulls[row] === 1) continue;
    const group = numbers === undefined ? 0 : (numbers[row] ?? 0);
    sums[group] = (sums[group] ?? 0) + (values[row] ?? 0);
  }
}
