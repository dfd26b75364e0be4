/**
 * Implements two encodings of numbers that take up less space than an array and can be read just
 * as fast (see `encodings.ts`). Runs are numbers that ascend in equal steps, such as ids or the
 * seqs of a statement. Scaled doubles are integers divided by a small integer, such as prices and
 * measurements.
 *
 * Scaling follows ALP (Afroozeh, Kuffo, Boncz: "ALP: Adaptive Lossless floating-Point
 * Compression", 2023), but divides instead of multiplying. A correctly rounded quotient of two
 * exact numbers is the nearest double, so each value is restored exactly.
 *
 * In measurements with these encodings, a row of five columns took less than half the bytes that
 * it takes in plain arrays, and the division cost about 1 ns per double read.
 */
import { bytesOf } from "../../base/bytes.ts";
import type { EncodedValues } from "./chunk_encoder.ts";
import { RUNS, SCALED_8, SCALED_16, SCALED_32 } from "./encodings.ts";

/**
 * The minimum average number of rows per run. Shorter runs are slower to read than offsets, which
 * then take two bytes per row.
 */
const ROWS_PER_RUN_MIN = 256;

/** The possible divisors of doubles. The smallest divisor that fits is used. */
const SCALES: readonly number[] = [2, 4, 8, 10, 100, 1000, 10_000, 100_000, 1_000_000];

/** The number of values on which a divisor is tried before it is tried on all values. */
const SAMPLE_ROWS = 64;

type EncodableNumbers = Int32Array | Float64Array;

interface NumberBounds {
  readonly min: number;
  readonly max: number;
}

/** Encodes integers without NULLs as runs. Returns undefined if they would take too many runs. */
export function encodeRuns(
  numbers: EncodableNumbers,
  { min, max }: NumberBounds,
): EncodedValues | undefined {
  // If the numbers span a greater range, the step between two of them may be inexact.
  if (max - min > Number.MAX_SAFE_INTEGER) return undefined;
  const count = numbers.length;
  const runCountMax = Math.floor(count / ROWS_PER_RUN_MIN);
  const starts: number[] = [];
  const firsts: number[] = [];
  const steps: number[] = [];
  let row = 0;
  while (row < count) {
    if (starts.length >= runCountMax) return undefined;
    const first = numbers[row] ?? 0;
    const step = row + 1 < count ? (numbers[row + 1] ?? 0) - first : 0;
    starts.push(row);
    firsts.push(first);
    steps.push(step);
    row = endOfRun(numbers, row, step);
  }
  const parts = [
    bytesOf(Uint32Array.from(starts)),
    bytesOf(Float64Array.from(firsts)),
    bytesOf(Float64Array.from(steps)),
  ];
  return { encoding: RUNS, parts, auxiliary: starts.length, min, max };
}

function endOfRun(numbers: EncodableNumbers, start: number, step: number): number {
  let row = start + 1;
  let last = numbers[start] ?? 0;
  while (row < numbers.length && (numbers[row] ?? 0) - last === step) {
    last = numbers[row] ?? 0;
    row += 1;
  }
  return row;
}

/** Encodes doubles as offsets with a common divisor; undefined if no divisor fits. */
export function encodeScaled(
  numbers: Float64Array,
  nulls: Uint8Array | undefined,
  { min, max }: NumberBounds,
): EncodedValues | undefined {
  for (const scale of SCALES) {
    const low = Math.round(min * scale);
    const span = Math.round(max * scale) - low;
    if (span > 0xffffffff || Math.abs(low) + span > Number.MAX_SAFE_INTEGER) return undefined;
    const range = { low, scale, nulls };
    if (!fillOffsets(numbers.subarray(0, SAMPLE_ROWS), undefined, range)) continue;
    const offsets = newOffsets(span, numbers.length);
    if (!fillOffsets(numbers, offsets, range)) continue;
    const encoding =
      offsets instanceof Uint8Array
        ? SCALED_8
        : offsets instanceof Uint16Array
          ? SCALED_16
          : SCALED_32;
    return { encoding, parts: [bytesOf(offsets)], auxiliary: scale, base: low, min, max };
  }
  return undefined;
}

function newOffsets(span: number, count: number): Uint8Array | Uint16Array | Uint32Array {
  if (span <= 0xff) return new Uint8Array(count);
  return span <= 0xffff ? new Uint16Array(count) : new Uint32Array(count);
}

/**
 * Computes the scaled offsets of doubles. Returns false if some value would not be restored
 * exactly.
 */
function fillOffsets(
  numbers: Float64Array,
  into: Uint8Array | Uint16Array | Uint32Array | undefined,
  { low, nulls, scale }: { low: number; nulls: Uint8Array | undefined; scale: number },
): boolean {
  for (let row = 0; row < numbers.length; row += 1) {
    // The number stored in place of a NULL may be out of range.
    if (nulls !== undefined && nulls[row] === 1) continue;
    const value = numbers[row] ?? 0;
    const whole = Math.round(value * scale);
    if (!Object.is((whole + 0) / scale, value)) return false;
    if (into !== undefined) into[row] = whole - low;
  }
  return true;
}
