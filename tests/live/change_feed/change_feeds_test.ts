/**
 * Verifies that each feed is found by its partition, table and query until it has ended.
 */
import { expect, test } from "bun:test";
import { ChangeFeeds, type PartitionKey } from "../../../src/live/change_feed/change_feeds.ts";

const QUICK: PartitionKey = { tableId: 1, owner: 2 };
const SLOW: PartitionKey = { tableId: 1, owner: 2 };
const SLOWER: PartitionKey = { tableId: 1, owner: 2 };
const ELSEWHERE: PartitionKey = { tableId: 3, owner: 2 };

test("Feeds finds shared and slow feeds, and forgets each separately", () => {
  const feeds = new ChangeFeeds<PartitionKey>();
  expect([feeds.isEmpty, feeds.shared(QUICK), [...feeds.slow(QUICK)]]).toEqual([
    true,
    undefined,
    [],
  ]);
  feeds.addShared(QUICK);
  feeds.addSlow(SLOW, "a");
  feeds.addSlow(SLOWER, "b");
  feeds.addSlow(ELSEWHERE, "a");
  expect(feeds.shared(SLOW)).toBe(QUICK);
  expect(feeds.ofSlow(QUICK, "b")).toBe(SLOWER);
  expect(feeds.ofSlow(ELSEWHERE, "b")).toBeUndefined();
  const places = (found: readonly PartitionKey[]): number[] =>
    found.map((feed) => [QUICK, SLOW, SLOWER, ELSEWHERE].indexOf(feed));
  expect(places(feeds.ofPartition(QUICK))).toEqual([0, 1, 2]);
  expect(places(feeds.ofTable(1))).toEqual([0, 1, 2]);
  expect(places(feeds.all())).toEqual([0, 1, 2, 3]);
  feeds.remove(SLOW);
  expect(places(feeds.all())).toEqual([0, 2, 3]);
  feeds.remove(QUICK);
  expect([feeds.shared(QUICK), places(feeds.ofPartition(QUICK))]).toEqual([undefined, [2]]);
  feeds.remove(ELSEWHERE);
  feeds.remove(SLOWER);
  expect([feeds.isEmpty, feeds.all()]).toEqual([true, []]);
});

test("Feeds keeps two slow feeds of one query, and finds the first one", () => {
  const feeds = new ChangeFeeds<PartitionKey>();
  feeds.addSlow(SLOW, "a");
  feeds.addSlow(SLOWER, "a");
  expect(feeds.ofSlow(QUICK, "a")).toBe(SLOW);
  expect(feeds.ofPartition(QUICK)).toHaveLength(2);
  feeds.remove(SLOWER);
  expect(feeds.ofPartition(QUICK).map((feed) => feed === SLOW)).toEqual([true]);
});
