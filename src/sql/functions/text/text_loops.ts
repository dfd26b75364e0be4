/**
 * Implements string functions on columns of undecoded UTF-8, without creating a string for each
 * row. They return the same results as their counterparts for single values.
 */
import { copyText, textSourceOf, type Utf8Vector, type Vector } from "../../../types/mod.ts";

/** Whether a byte is a UTF-8 continuation byte. */
function isContinuation(byte: number): boolean {
  return (byte & 0xc0) === 0x80;
}

/** Returns the number of characters of each string in a column. */
export function lengthsOf(vector: Vector): Vector | undefined {
  if (vector.kind !== "utf8") return undefined;
  const { bytes, length, nulls, offsets } = vector;
  const values = new Int32Array(length);
  for (let row = 0; row < length; row += 1) {
    const start = offsets[row] ?? 0;
    const end = offsets[row + 1] ?? start;
    let count = end - start;
    for (let at = start; at < end; at += 1) if (isContinuation(bytes[at] ?? 0)) count -= 1;
    values[row] = count;
  }
  return { kind: "i32", length, values, nulls };
}

/**
 * Returns the characters of each string in a column from position `start` to position `end`
 * (exclusive), counted from 0.
 */
export function slicesOf(
  vector: Vector,
  { start, end }: { start: number; end: number },
): Vector | undefined {
  if (vector.kind !== "utf8") return undefined;
  const { bytes, length, nulls, offsets } = vector;
  const skipped = Math.max(0, start);
  const passed = Math.max(0, end - skipped);
  const starts = new Uint32Array(length);
  const kept = new Uint32Array(length + 1);
  for (let row = 0; row < length; row += 1) {
    const last = offsets[row + 1] ?? 0;
    const from = skipCharacters(bytes, { start: offsets[row] ?? 0, end: last }, skipped);
    starts[row] = from;
    const to = skipCharacters(bytes, { start: from, end: last }, passed);
    kept[row + 1] = (kept[row] ?? 0) + to - from;
  }
  return gathered(vector, starts, { kept, nulls });
}

function skipCharacters(
  bytes: Uint8Array,
  { start, end }: { start: number; end: number },
  count: number,
): number {
  let at = start;
  for (let skipped = 0; skipped < count && at < end; skipped += 1) {
    at += 1;
    while (at < end && isContinuation(bytes[at] ?? 0)) at += 1;
  }
  return at;
}

function gathered(
  vector: Utf8Vector,
  starts: Uint32Array,
  { kept, nulls }: { kept: Uint32Array; nulls: Uint8Array | undefined },
): Vector {
  const { length } = vector;
  const source = textSourceOf(vector.bytes);
  const into = textSourceOf(Buffer.allocUnsafeSlow(kept[length] ?? 0));
  for (let row = 0; row < length; row += 1) {
    const at = kept[row] ?? 0;
    const start = starts[row] ?? 0;
    copyText(source, { start, end: start + (kept[row + 1] ?? 0) - at }, into.view, at);
  }
  return { kind: "utf8", length, bytes: into.bytes, offsets: kept, nulls };
}

const CASE_BIT = 0x20;

/**
 * Converts the strings of a column to upper or lower case. Returns undefined if any string
 * contains non-ASCII characters.
 */
export function casesOf(vector: Vector, wanted: "upper" | "lower"): Vector | undefined {
  if (vector.kind !== "utf8") return undefined;
  const { bytes, length, nulls, offsets } = vector;
  const start = offsets[0] ?? 0;
  const end = offsets[length] ?? start;
  const first = wanted === "upper" ? 0x61 : 0x41;
  const changed = Buffer.allocUnsafeSlow(end - start);
  let all = 0;
  for (let at = start; at < end; at += 1) {
    const byte = bytes[at] ?? 0;
    all |= byte;
    const isChanged = byte >= first && byte < first + 26;
    changed[at - start] = isChanged ? byte ^ CASE_BIT : byte;
  }
  if (all >= 0x80) return undefined;
  const moved = start === 0 ? offsets : offsets.map((offset) => offset - start);
  return { kind: "utf8", length, bytes: changed, offsets: moved, nulls };
}
