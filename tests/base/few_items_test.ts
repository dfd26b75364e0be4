/** Tests sets that usually contain a single item. */
import { expect, test } from "bun:test";
import { FewItems } from "../../src/base/few_items.ts";

const [one, two, three] = [{ name: "one" }, { name: "two" }, { name: "three" }];

test("FewItems contains each added item once, until the item is removed", () => {
  const items = new FewItems<object>();
  const steps = [[...items]];
  for (const item of [one, one, two, three]) {
    items.add(item);
    steps.push([...items]);
  }
  items.delete(one);
  steps.push([...items]);
  items.delete(three);
  items.delete(one);
  items.delete(two);
  steps.push([...items]);
  items.add(one);
  steps.push([...items]);
  expect(steps).toEqual([[], [one], [one], [one, two], [one, two, three], [two, three], [], [one]]);
  expect(items.size).toBe(1);
  items.delete(two);
  items.delete(one);
  expect(items.size).toBe(0);
});

test("an iteration over FewItems continues while items are removed", () => {
  const items = new FewItems<object>();
  for (const item of [one, two, three]) items.add(item);
  const visited: object[] = [];
  for (const item of items) {
    visited.push(item);
    items.delete(item);
  }
  expect([visited, items.size]).toEqual([[one, two, three], 0]);
});
