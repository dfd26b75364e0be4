/**
 * Verifies that a growing array keeps all its values while it moves to larger memory, even if
 * values are changed and removed in the meantime, and that no single step of the move takes a long
 * time.
 */
import { describe, expect, test } from "bun:test";
import { Growth } from "../../src/base/growth.ts";
import { SeededRandom } from "../support/seeded_random.ts";

const LARGE = 65_536;

/** An array that counts how many values are copied into it. */
class CountedArray extends Uint32Array {
  static copied = 0;

  override set(from: ArrayLike<number>, offset?: number): void {
    CountedArray.copied += from.length;
    super.set(from, offset);
  }
}

test("a small array is copied when it is full", () => {
  const growth = new Growth<Uint32Array>((capacity) => new Uint32Array(capacity));
  const array = Uint32Array.of(1, 2, 3, 4);
  expect(growth.arrayFor(array, 3, 4)).toBe(array);
  expect([...growth.arrayFor(array, 3, 5)]).toEqual([1, 2, 3, 0, 0, 0, 0, 0]);
  expect(growth.arrayFor(array, 3, 100).length).toBe(100);
  expect(growth.capacityUpTo(array)).toBe(4);
  expect(growth.ownFor(array)).toBe(growth);
});

test("a large array moves in pieces, and is replaced once it is full", () => {
  const growth = new Growth<Uint32Array>((capacity) => new CountedArray(capacity));
  let array: Uint32Array = new Uint32Array(LARGE);
  let largest = 0;
  for (let length = 0; length < 4 * LARGE; length += 1) {
    CountedArray.copied = 0;
    const before = array;
    array = growth.arrayFor(array, length, length + 1);
    largest = Math.max(largest, CountedArray.copied);
    if (length !== LARGE && length !== 2 * LARGE) expect(array).toBe(before);
    array[length] = length + 7;
  }
  expect(array.length).toBe(4 * LARGE);
  expect(array.every((value, index) => value === index + 7)).toBe(true);
  // Between two checks, 4096 values are appended, and at most 5.5 values are moved for each
  // appended value.
  expect(largest).toBeLessThan(23_000);
});

test("adding many values at once works at every stage of a move", () => {
  for (const length of [0, 50_000, 60_000, LARGE]) {
    const growth = new Growth<Uint32Array>((capacity) => new Uint32Array(capacity));
    const array = new Uint32Array(LARGE).fill(9, 0, length);
    growth.arrayFor(array, length, length);
    for (const needed of [LARGE + 1, 3 * LARGE]) {
      const grown = growth.arrayFor(array, length, needed);
      expect(grown.length).toBeGreaterThanOrEqual(needed);
      expect(grown.lastIndexOf(9)).toBe(length - 1);
    }
  }
});

test("large arrays keep their own growth factor", () => {
  const shared = new Growth<Uint32Array>((capacity) => new Uint32Array(capacity));
  const array = new Uint32Array(LARGE);
  const own = shared.ownFor(array);
  expect(own).not.toBe(shared);
  own.arrayFor(array, 60_000, 60_001);
  expect(own.ownFor(array)).toBe(own);
});

describe("an array equals a plain list after random changes and rollbacks", () => {
  test.each([1, 2, 3, 4, 5])("the array equals the list for seed %d", (seed) => {
    const random = new SeededRandom(seed);
    const below = (count: number): number => Math.floor(random.unit() * count);
    const growth = new Growth<Uint32Array>((capacity) => new Uint32Array(capacity));
    let array: Uint32Array = new Uint32Array(LARGE);
    const list: number[] = [];
    while (list.length < 5 * LARGE) {
      const count = 1 + below(below(10) === 0 ? 30_000 : 900);
      array = growth.arrayFor(array, list.length, list.length + count);
      for (let i = 0; i < count; i += 1) {
        const value = below(1e9);
        array[list.length] = value;
        list.push(value);
      }
      const at = below(list.length);
      if (below(3) === 0) {
        const value = below(1e9);
        list[at] = value;
        array[at] = value;
        growth.noteChanged(at, value);
      } else if (below(12) === 0) {
        // The changed range is near the end of the list.
        const from = Math.max(at, list.length - 5000);
        for (let row = from; row < list.length; row += 1) {
          list[row] = row;
          array[row] = row;
        }
        growth.noteChangedFrom(from);
      } else if (below(11) === 0) {
        list.length = Math.max(0, list.length - below(20_000));
      }
    }
    expect(list.findIndex((value, index) => array[index] !== value)).toBe(-1);
  });
});

test("release discards an unfinished move, and a later append keeps all values", () => {
  let roomCount = 0;
  const growth = new Growth<Uint32Array>((capacity) => {
    roomCount += 1;
    return new Uint32Array(capacity);
  });
  const array = new Uint32Array(LARGE).fill(9, 0, 60_000);
  expect(growth.arrayFor(array, 60_000, 60_001)).toBe(array);
  expect(roomCount).toBe(1);
  growth.release();
  array[3] = 5;
  growth.noteChanged(3, 5);
  array[60_000] = 9;
  const grown = growth.arrayFor(array, 60_001, LARGE + 1);
  expect(grown.subarray(0, 60_001)).toEqual(array.subarray(0, 60_001));
  expect(roomCount).toBe(2);
});
