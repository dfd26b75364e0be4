/**
 * Goal: what a feed reads is what its groups read, and a column stays in its place until all groups
 * are told to look again.
 */
import { expect, test } from "bun:test";
import { FeedColumns } from "../../src/live/feed_columns.ts";

test("FeedColumns.add lists a column once, at the place where it first came", () => {
  const columns = new FeedColumns();
  columns.add([3, 1]);
  columns.add([1, 2]);

  expect(columns.ids).toEqual([3, 1, 2]);
});

test("FeedColumns.remove leaves columns in their places, and add finds them there", () => {
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

  expect(() => columns.remove([1])).toThrow("a column that is let go was read");
});

test("FeedColumns.compact waits until more than half of the columns are read by nobody", () => {
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

test("FeedColumns.compact keeps half of the columns as they are", () => {
  const columns = new FeedColumns();
  columns.add([1]);
  columns.add([2]);
  columns.remove([1]);

  expect(columns.compact()).toBe(false);
  expect(columns.ids).toEqual([1, 2]);
});
