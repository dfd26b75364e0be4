/**
 * Sorting in pieces, so that a long sort lets others run: pieces that the engine sorts, then merges
 * of two neighbours each. One step takes a few milliseconds.
 *
 * Rows go to and fro between two arrays of numbers of 32 bits: lists of JavaScript's own, one for
 * each merge, left several times as much behind for the collector.
 */
import { assert } from "./assert.ts";

/** Rows that are sorted at once. */
const PIECE_ROWS = 2048;

/** Rows of a merge between two steps. */
const MERGE_ROWS = 8192;

type Compare = (left: number, right: number) => number;

/** Two sorted neighbours: the rows from `start` to `middle`, and from there to `end`. */
interface Neighbours {
  readonly start: number;
  readonly middle: number;
  readonly end: number;
}

/**
 * Sorts the numbers below `count`; `compare` says never 0. Each `next` is one step; the last one
 * returns the order.
 */
export function* sortSteps(count: number, compare: Compare): Generator<undefined, Uint32Array> {
  assert(count <= 2 ** 32, "numbers of rows fit 32 bits");
  let from = new Uint32Array(count);
  for (let start = 0; start < count; start += PIECE_ROWS) {
    const length = Math.min(PIECE_ROWS, count - start);
    from.set(Array.from({ length }, (_, i) => start + i).toSorted(compare), start);
    if (start + length < count) yield undefined;
  }
  if (count <= PIECE_ROWS) return from;
  let into = new Uint32Array(count);
  for (let width = PIECE_ROWS; width < count; width *= 2) {
    for (let start = 0; start < count; start += 2 * width) {
      const middle = Math.min(count, start + width);
      const end = Math.min(count, middle + width);
      yield* mergeNeighbours(from, into, { neighbours: { start, middle, end }, compare });
    }
    [from, into] = [into, from];
  }
  return from;
}

function* mergeNeighbours(
  from: Uint32Array,
  into: Uint32Array,
  { compare, neighbours: { end, middle, start } }: { compare: Compare; neighbours: Neighbours },
): Generator<undefined, void> {
  let leftAt = start;
  let rightAt = middle;
  for (let at = start; at < end; at += 1) {
    const left = from[leftAt] ?? 0;
    const right = from[rightAt] ?? 0;
    if (rightAt >= end || (leftAt < middle && compare(left, right) < 0)) {
      into[at] = left;
      leftAt += 1;
    } else {
      into[at] = right;
      rightAt += 1;
    }
    if ((at + 1) % MERGE_ROWS === 0) yield undefined;
  }
}
