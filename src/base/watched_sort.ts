/**
 * Sorts lists that may take long to sort. The comparison function checks the time at intervals, and
 * ends the sort by throwing an error.
 */

/** Compares two numbers, which may stand for rows, for example. The result is never 0. */
export type Compare = (left: number, right: number) => number;

/**
 * The number of comparisons between two time checks. This many comparisons take a few milliseconds.
 */
const COMPARED_PER_LOOK = 16_384;

/** Returns the numbers from 0 to `count` - 1 in the order that a comparison function defines. */
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

/** Returns a comparison function with the same result that also calls `checkTime` at intervals. */
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
