/**
 * Verifies that a feed reads the columns that its groups need. A column keeps its position in the
 * feed until all groups have to look up their positions again.
 */
import { expect, test } from "bun:test";
import { FeedColumns } from "../../../src/live/change_feed/followed_groups.ts";

test("FeedColumns.add lists a column once, at its first position", () => {
  const columns = new FeedColumns();
  columns.add([3, 1]);
  columns.add([1, 2]);

  expect(columns.ids).toEqual([3, 1, 2]);
});

test("FeedColumns.remove leaves columns in their positions, and add finds them there", () => {
  const columns = new FeedColumns();
  columns.add([3, 1]);
  columns.add([1]);
  columns.remove([3, 1]);
  expect(columns.ids).toEqual([3, 1]);

  columns.add([3]);
  expect(columns.ids).toEqual([3, 1]);
});

test("FeedColumns.remove throws for a column that no group reads", () => {
  const columns = new FeedColumns();
  columns.add([1]);
  columns.remove([1]);

  expect(() => columns.remove([1])).toThrow("change feed: released column has no remaining uses");
});

test("FeedColumns.compact waits until more than half of the columns have no reader", () => {
  const columns = new FeedColumns();
  columns.add([1, 2]);
  columns.add([3, 4, 5]);
  columns.remove([1, 2]);
  expect(columns.compact()).toBe(false);
  columns.add([4]);
  columns.remove([3, 4, 5]);

  expect(columns.compact()).toBe(true);
  expect(columns.ids).toEqual([4]);
});

test("FeedColumns.compact leaves half of the columns unchanged", () => {
  const columns = new FeedColumns();
  columns.add([1]);
  columns.add([2]);
  columns.remove([1]);

  expect(columns.compact()).toBe(false);
  expect(columns.ids).toEqual([1, 2]);
});
