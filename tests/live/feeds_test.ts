/**
 * Goal: each feed is found by its partition, its table and its query, and by nothing once it is
 * gone.
 */
import { expect, test } from "bun:test";
import { Feeds, type Partition } from "../../src/live/feeds.ts";

const QUICK: Partition = { tableId: 1, owner: 2 };
const SLOW: Partition = { tableId: 1, owner: 2 };
const SLOWER: Partition = { tableId: 1, owner: 2 };
const ELSEWHERE: Partition = { tableId: 3, owner: 2 };

test("Feeds finds shared and slow feeds, and forgets each by itself", () => {
  const feeds = new Feeds<Partition>();
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
  const places = (found: readonly Partition[]): number[] =>
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

test("Feeds keeps two slow feeds of one query, and gives the first to who asks", () => {
  const feeds = new Feeds<Partition>();
  feeds.addSlow(SLOW, "a");
  feeds.addSlow(SLOWER, "a");
  expect(feeds.ofSlow(QUICK, "a")).toBe(SLOW);
  expect(feeds.ofPartition(QUICK)).toHaveLength(2);
  feeds.remove(SLOWER);
  expect(feeds.ofPartition(QUICK).map((feed) => feed === SLOW)).toEqual([true]);
});
