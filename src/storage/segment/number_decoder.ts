/**
 * Decodes numbers encoded by `number_encoder.ts`: all rows, a range of rows, or a single row.
 */

/**
 * Runs of numbers. Run i begins at row starts[i] with firsts[i] and increases by steps[i] per row.
 */
export interface Runs {
  readonly starts: Uint32Array;
  readonly firsts: Float64Array;
  readonly steps: Float64Array;
  /** The total number of rows that the runs represent. */
  readonly rowCount: number;
}

/** Returns the number of one row from numbers stored in runs. */
export function runValueAt(runs: Runs, row: number): number {
  const index = runOf(runs.starts, row);
  const begin = runs.starts[index] ?? 0;
  return (runs.firsts[index] ?? 0) + (row - begin) * (runs.steps[index] ?? 0);
}

/**
 * Fills an array with the numbers of consecutive rows, starting at row `start`, from numbers
 * stored in runs.
 */
export function fillFromRuns<T extends Int32Array | Float64Array>(
  runs: Runs,
  start: number,
  into: T,
): T {
  const end = start + into.length;
  let row = start;
  for (let index = runOf(runs.starts, start); row < end; index += 1) {
    const begin = runs.starts[index] ?? 0;
    const runEnd = Math.min(end, runs.starts[index + 1] ?? runs.rowCount);
    const run = {
      first: runs.firsts[index] ?? 0,
      step: runs.steps[index] ?? 0,
      begin: row - begin,
    };
    const part = into.subarray(row - start, runEnd - start);
    if (part instanceof Int32Array) fillInt32(part, run);
    else fillFloat64(part, run);
    row = runEnd;
  }
  return into;
}

/** Returns the index of the run that contains a row. */
function runOf(starts: Uint32Array, row: number): number {
  let low = 0;
  let high = starts.length;
  while (high - low > 1) {
    const middle = (low + high) >>> 1;
    if ((starts[middle] ?? 0) <= row) low = middle;
    else high = middle;
  }
  return low;
}

interface RunPart {
  readonly first: number;
  readonly step: number;
  /** The number of rows of the run that precede the requested range. */
  readonly begin: number;
}

// Each array type has a loop of its own, since a polymorphic loop is several times slower.

function fillInt32(into: Int32Array, { begin, first, step }: RunPart): void {
  for (let i = 0; i < into.length; i += 1) into[i] = first + (begin + i) * step;
}

function fillFloat64(into: Float64Array, { begin, first, step }: RunPart): void {
  for (let i = 0; i < into.length; i += 1) into[i] = first + (begin + i) * step;
}

/** The base to be added to each offset, and the divisor of the sum. */
export interface Scale {
  readonly base: number;
  readonly divisor: number;
  /** The largest offset in the chunk. */
  readonly span: number;
}

/** The maximum number of distinct offsets for which a table of quotients is built. */
const QUOTIENTS_MAX = 4096;

/** Decodes scaled offsets into numbers, and fills an array with them. */
export function fillScaled(
  offsets: Uint8Array | Uint16Array | Uint32Array,
  { base, divisor, span }: Scale,
  into: Float64Array,
): Float64Array {
  if (offsets instanceof Uint32Array) {
    divideLongs(offsets, { base, divisor, span }, into);
  } else if (span < QUOTIENTS_MAX && span < offsets.length) {
    const quotients = new Float64Array(span + 1);
    for (let i = 0; i <= span; i += 1) quotients[i] = (base + i) / divisor;
    if (offsets instanceof Uint8Array) lookUpBytes(offsets, quotients, into);
    else lookUpShorts(offsets, quotients, into);
  } else if (offsets instanceof Uint8Array) {
    divideBytes(offsets, { base, divisor, span }, into);
  } else {
    divideShorts(offsets, { base, divisor, span }, into);
  }
  return into;
}

// The offset stored in place of a NULL is arbitrary but valid, usually 0.

function lookUpBytes(offsets: Uint8Array, quotients: Float64Array, into: Float64Array): void {
  for (let i = 0; i < into.length; i += 1) into[i] = quotients[offsets[i] ?? 0] ?? 0;
}

function lookUpShorts(offsets: Uint16Array, quotients: Float64Array, into: Float64Array): void {
  for (let i = 0; i < into.length; i += 1) into[i] = quotients[offsets[i] ?? 0] ?? 0;
}

function divideBytes(offsets: Uint8Array, { base, divisor }: Scale, into: Float64Array): void {
  for (let i = 0; i < into.length; i += 1) into[i] = (base + (offsets[i] ?? 0)) / divisor;
}

function divideShorts(offsets: Uint16Array, { base, divisor }: Scale, into: Float64Array): void {
  for (let i = 0; i < into.length; i += 1) into[i] = (base + (offsets[i] ?? 0)) / divisor;
}

function divideLongs(offsets: Uint32Array, { base, divisor }: Scale, into: Float64Array): void {
  for (let i = 0; i < into.length; i += 1) into[i] = (base + (offsets[i] ?? 0)) / divisor;
}
