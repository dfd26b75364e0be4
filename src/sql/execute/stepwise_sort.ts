/**
 * Sorting in pieces, so that a long sort lets others run: pieces that the engine sorts, then merges
 * of two neighbours each. One step takes a few milliseconds.
 */

/** Rows that are sorted at once. */
const PIECE_ROWS = 2048;

/** Rows of a merge between two steps. */
const MERGE_ROWS = 8192;

/**
 * Sorts the numbers below `count`; `compare` says never 0. Each `next` is one step; the last one
 * returns the order.
 */
export function* sortSteps(
  count: number,
  compare: (left: number, right: number) => number,
): Generator<undefined, number[]> {
  let pieces: number[][] = [];
  for (let start = 0; start < count; start += PIECE_ROWS) {
    const length = Math.min(PIECE_ROWS, count - start);
    pieces.push(Array.from({ length }, (_, i) => start + i).toSorted(compare));
    if (start + length < count) yield undefined;
  }
  while (pieces.length > 1) {
    const merged: number[][] = [];
    for (let i = 0; i < pieces.length; i += 2) {
      const left = pieces[i] ?? [];
      const right = pieces[i + 1];
      merged.push(right === undefined ? left : yield* mergeSteps(left, right, compare));
    }
    pieces = merged;
  }
  return pieces[0] ?? [];
}

function* mergeSteps(
  left: readonly number[],
  right: readonly number[],
  compare: (left: number, right: number) => number,
): Generator<undefined, number[]> {
  const merged: number[] = [];
  let leftAt = 0;
  let rightAt = 0;
  while (leftAt < left.length || rightAt < right.length) {
    const l = left[leftAt];
    const r = right[rightAt];
    if (r === undefined || (l !== undefined && compare(l, r) < 0)) {
      merged.push(l ?? 0);
      leftAt += 1;
    } else {
      merged.push(r);
      rightAt += 1;
    }
    if (merged.length % MERGE_ROWS === 0) yield undefined;
  }
  return merged;
}
