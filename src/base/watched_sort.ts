/**
 * Sorts lists that may take a long time to sort. The comparison function checks the time at
 * intervals, and aborts the sort by throwing an error.
 */

/**
 * Compares two numbers that stand for the items to sort, for example row numbers. The result is
 * never 0.
 */
export type Compare = (left: number, right: number) => number;

/** The number of comparisons between two checks of the time. This many take a few milliseconds. */
const COMPARED_PER_LOOK = 16_384;

/** Returns the numbers from 0 to `count` - 1, sorted with a comparison function. */
export function sortedNumbers(
  count: number,
  compare: Compare,
  checkTime: () => void,
): Uint32Array<ArrayBuffer> {
  return numbersBelow(count).toSorted(watched(compare, checkTime));
}

export function numbersBelow(count: number): Uint32Array<ArrayBuffer> {
  const numbers = new Uint32Array(count);
  for (let number = 0; number < count; number += 1) numbers[number] = number;
  return numbers;
}

/** Wraps a comparison function so that it also calls `checkTime` at intervals. */
export function watched(compare: Compare, checkTime: () => void): Compare {
  let leftCount = COMPARED_PER_LOOK;
  return (left, right) => {
    leftCount -= 1;
    if (leftCount === 0) {
      leftCount = COMPARED_PER_LOOK;
      checkTime();
    }
    return compare(left, right);
  };
}
