/**
 * Sorting that may take long: the comparison looks at the clock now and then, and ends the sort
 * by throwing.
 */

/** Compares two numbers, which stand for rows or the like; never gives 0. */
export type Compare = (left: number, right: number) => number;

/** A few milliseconds, of whatever is compared. */
const COMPARED_PER_LOOK = 16_384;

/** The numbers below `count` in order. */
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

/** The same comparison, which calls `checkTime` from time to time. */
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
