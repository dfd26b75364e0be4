/**
 * Verifies that a merge through a heap yields all items of all inputs in order, however long the
 * inputs are.
 */
import { expect, test } from "bun:test";
import { MergeHeap } from "../../src/base/merge_heap.ts";
import { SeededRandom } from "../support/seeded_random.ts";

interface Input {
  readonly items: readonly number[];
  at: number;
}

function merged(lists: readonly (readonly number[])[]): number[] {
  const itemOf = ({ at, items }: Input): number => items[at] ?? Number.NaN;
  const heap = new MergeHeap<Input>((left, right) => itemOf(left) < itemOf(right));
  for (const items of lists) if (items.length > 0) heap.push({ items, at: 0 });
  const found: number[] = [];
  for (let { first } = heap; first !== undefined; { first } = heap) {
    found.push(itemOf(first));
    first.at += 1;
    if (first.at === first.items.length) heap.removeFirst();
    else heap.restoreFirst();
  }
  return found;
}

test("MergeHeap merges sorted inputs", () => {
  const random = new SeededRandom(1);
  for (let inputCount = 0; inputCount < 20; inputCount += 1) {
    const lists = Array.from({ length: inputCount }, () =>
      Array.from({ length: random.below(30) }, () => random.below(100)).toSorted((a, b) => a - b),
    );
    expect(merged(lists)).toEqual(lists.flat().toSorted((a, b) => a - b));
  }
});

test("MergeHeap is empty after it is cleared, and accepts new inputs", () => {
  const heap = new MergeHeap<number>((left, right) => left < right);
  heap.push(2);
  heap.push(1);
  heap.clear();
  expect(heap.first).toBeUndefined();
  heap.removeFirst();
  heap.restoreFirst();
  heap.push(3);
  expect(heap.first).toBe(3);
});
