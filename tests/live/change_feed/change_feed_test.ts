/**
 * Verifies that a feed can pause between two groups, and within a group whose rows take a long
 * time, without any follower missing or repeating a change. The tests use budgets that a single
 * group exhausts, and followers that record the changes they receive.
 */
import { expect, test } from "bun:test";
import type { Seq } from "../../../src/base/seq.ts";
import { ChangeFeed, type SlowGroup } from "../../../src/live/change_feed/change_feed.ts";
import type { SharedMessage } from "../../../src/live/mod.ts";
import type { LivePace, LivePlan } from "../../../src/sql/mod.ts";
import type { ChangeBatch } from "../../../src/storage/mod.ts";
import type { Row } from "../../../src/types/mod.ts";
import { ANN, KnownQueries, MESSAGES, message, messagesTable } from "../../support/live_fixture.ts";
import {
  type GroupMember,
  type Reach,
  type SubscriptionGroup,
  tickOf,
} from "../../support/live_parts.ts";
import { ManualClock } from "../../support/manual_clock.ts";
import { ModelStore } from "../../support/model_store.ts";

const QUERIES = [
  "SELECT * FROM chat.messages",
  "SELECT id, body FROM chat.messages",
  "SELECT * FROM chat.messages WHERE room = 'lobby'",
];

/**
 * Returns a pace that evaluates two rows at a time, and that reports the given duration for each
 * evaluation.
 */
function paceOf(tookMs: () => number): LivePace {
  let nowMs = 0;
  return {
    rows: { rowsMax: 2, note: () => undefined },
    monotonicMs: () => {
      nowMs += tookMs();
      return nowMs;
    },
  };
}

/** A pace of two rows per tick. */
const SLOW: LivePace = paceOf(() => 5);

class Taker implements GroupMember {
  readonly id = "m1";
  readonly ids: number[] = [];
  readonly reaches: Reach[] = [];

  take({ message: sent }: SharedMessage, reach: Reach): void {
    this.reaches.push(reach);
    if (sent.type === "change") for (const row of sent.rows) this.ids.push(Number(row["id"]));
  }

  fail(error: unknown): void {
    throw error;
  }
}

interface Fixture {
  readonly store: ModelStore;
  readonly feed: ChangeFeed<Taker>;
  readonly sql: KnownQueries;
  readonly open: (query: string) => { taker: Taker; group: SubscriptionGroup<Taker> };
  readonly insert: (...rows: Row[]) => void;
  /** The groups that the change feed has moved to feeds of their own because they are slow. */
  readonly slow: SlowGroup<Taker>[];
  readonly newFeed: () => ChangeFeed<Taker>;
}

function fixture(): Fixture {
  const store = new ModelStore(new ManualClock());
  store.defineTable(messagesTable());
  const slow: SlowGroup<Taker>[] = [];
  const newFeed = (): ChangeFeed<Taker> =>
    new ChangeFeed<Taker>({
      store,
      tableId: MESSAGES,
      owner: 1,
      frameBytesMax: 1 << 20,
      reviewOf: () => ({ advance: () => true, plan: undefined }),
      onSlow: (group) => void slow.push(group),
    });
  const feed = newFeed();
  let seenSeq = store.visibleSeq;
  store.onVisible = (_changed, visibleSeq) => {
    feed.mark(seenSeq);
    seenSeq = visibleSeq;
  };
  const sql = new KnownQueries();
  return {
    store,
    feed,
    slow,
    newFeed,
    sql,
    open: (query) => {
      const plan: LivePlan = sql.planLive(ANN, { sql: query, params: [] });
      const group = feed.groupFor(plan, { sql: query });
      const taker = new Taker();
      group.join(taker);
      group.follow(taker);
      return { taker, group };
    },
    insert: (...rows) =>
      void store.write({ tableId: MESSAGES, owner: 1, operation: "insert", rows }),
  };
}

test("Feed pauses between groups, and each group gets each change once", () => {
  const { feed, insert, open, store } = fixture();
  const opened = QUERIES.map(open);
  insert(message(1, "lobby"), message(2, "lobby"), message(3, "lobby"));
  const counts: number[][] = [];
  while (!feed.advance(tickOf(0.1))) counts.push(opened.map(({ taker }) => taker.ids.length));
  expect(counts).toEqual([
    [3, 0, 0],
    [3, 3, 0],
  ]);
  for (const { taker, group } of opened) {
    expect(taker.ids).toEqual([1, 2, 3]);
    expect(feed.positionOf(group)).toBe(store.visibleSeq);
  }
});

test("Feed copies no rows for a group that has all of them", () => {
  const { feed, insert, open, sql, store } = fixture();
  const opened = [1, 2, 3].map((version) => {
    sql.policyVersion = version;
    return open("SELECT * FROM chat.messages WHERE room = 'lobby'");
  });
  insert(message(1, "lobby"), message(2, "hall"), message(3, "lobby"));
  let readCount = 0;
  const changes = store.changes.bind(store);
  store.changes = (...given) => {
    const scan = changes(...given);
    const next = (): ChangeBatch | undefined => {
      const batch = scan.next();
      if (batch === undefined) return undefined;
      const { columns } = batch;
      return Object.defineProperty({ ...batch }, "columns", {
        get() {
          readCount += 1;
          return columns;
        },
      });
    };
    return { next, close: () => scan.close() };
  };
  const readCounts: number[] = [];
  for (let isThere = false; !isThere; readCount = 0) {
    isThere = feed.advance(tickOf(0.1));
    readCounts.push(readCount);
  }
  expect(readCounts).toHaveLength(3);
  expect(readCounts[1]).toBe(readCounts[0]);
  for (const { taker } of opened) expect(taker.ids).toEqual([1, 3]);
});

test("Feed.positionOf distinguishes groups that are further ahead within a batch", () => {
  const { feed, insert, open, store } = fixture();
  const [first, second] = QUERIES.map(open);
  const before = store.visibleSeq;
  insert(message(1, "lobby"));
  expect(feed.advance(tickOf(0.1))).toBe(false);
  expect(first && feed.positionOf(first.group)).toBe(store.visibleSeq);
  expect(second && feed.positionOf(second.group)).toBe(before);
});

test("Feed starts a group without followers at its own position in the middle of a batch", () => {
  const { feed, insert, open } = fixture();
  const [first, second] = QUERIES.map(open);
  if (first === undefined || second === undefined) throw new Error("both are open");
  insert(message(1, "lobby"));
  expect(feed.advance(tickOf(0.1))).toBe(false);
  first.group.unfollow(first.taker);
  first.group.follow(first.taker);
  while (!feed.advance(tickOf(0.1)));
  expect(first.taker.ids).toEqual([1, 1]);
  expect(second.taker.ids).toEqual([1]);
});

test("Feed delivers each change once to a group even while other groups come and go", () => {
  const { feed, insert, open } = fixture();
  const opened = [open("SELECT * FROM chat.messages")];
  const tell = (id: number): void => {
    insert(message(id, "lobby"));
    while (!feed.advance(tickOf(0.1)));
  };
  tell(1);
  opened.push(open("SELECT * FROM chat.messages WHERE room = 'lobby'"));
  tell(2);
  opened.push(open("SELECT id, body FROM chat.messages"));
  tell(3);
  for (const { group, taker } of opened.slice(1)) group.unfollow(taker);
  tell(4);
  expect(opened.map(({ taker }) => taker.ids)).toEqual([[1, 2, 3, 4], [2, 3], [3]]);
});

test("Feed delivers the matching changes to the only group with a condition", () => {
  const { feed, insert, open } = fixture();
  const { taker } = open("SELECT * FROM chat.messages WHERE room = 'lobby'");
  insert(message(1, "hall"), message(2, "lobby"));
  expect(feed.advance(tickOf(100))).toBe(true);
  expect(taker.ids).toEqual([2]);
});

test("Feed pauses within a group whose rows take long", () => {
  const { feed, insert, open, sql } = fixture();
  sql.pace = SLOW;
  const { taker, group } = open("SELECT * FROM chat.messages");
  insert(...[1, 2, 3, 4, 5].map((id) => message(id, "lobby")));
  const counts: number[] = [];
  while (!feed.advance(tickOf(100))) {
    counts.push(taker.ids.length);
    expect(taker.reaches.at(-1)?.lastSeq).toBe(feed.positionOf(group));
  }
  expect(counts).toEqual([2, 4]);
  expect(taker.ids).toEqual([1, 2, 3, 4, 5]);
});

test("Feed releases a group that is slow three times in a row to a feed of its own", () => {
  const { feed, insert, newFeed, open, slow, sql, store } = fixture();
  sql.pace = SLOW;
  const { taker: late, group } = open("SELECT * FROM chat.messages");
  sql.pace = undefined;
  const { taker: quick } = open("SELECT id, body FROM chat.messages");
  const ids = [1, 2, 3, 4, 5, 6, 7, 8, 9];
  insert(...ids.map((id) => message(id, "lobby")));
  const ticks: number[][] = [];
  do ticks.push([late.ids.length, quick.ids.length]);
  while (!feed.advance(tickOf(100)));
  expect(ticks).toEqual([
    [0, 0],
    [2, 0],
    [3, 0],
    [5, 3],
  ]);
  expect([late.ids.length, quick.ids]).toEqual([5, ids]);
  expect(slow.map(({ position }) => position)).toEqual([late.reaches.at(-1)?.lastSeq as Seq]);
  const own = newFeed();
  for (const each of slow) own.adopt(each);
  expect([own.isSlow, feed.isSlow, feed.groups.size, group.feed === own]).toEqual([
    true,
    false,
    1,
    true,
  ]);
  while (!own.advance(tickOf(100)));
  expect(late.ids).toEqual(ids);
  expect(own.positionOf(group)).toBe(store.visibleSeq);
  // The group loses its last follower, so the feed has no groups left.
  group.unfollow(late);
  group.leave(late);
  expect(own.isEmpty).toBe(true);
});

test.each([
  { what: "alone", open: 1, slowRows: [9] },
  { what: "slow now and then", open: 2, slowRows: [4, 1, 4, 1, 4] },
  // Sending a message costs a quarter of a work unit.
  { what: "quick, and has many followers", open: 2, slowRows: [1, 1, 1, 1], others: 5000 },
])("Feed keeps a group that is $what", ({ open: count, others = 0, slowRows }) => {
  const { feed, insert, open, slow, sql } = fixture();
  sql.pace = paceOf(() => (isSlow ? 5 : 0));
  const { taker } = open("SELECT * FROM chat.messages");
  for (let other = 0; other < others; other += 1) open("SELECT * FROM chat.messages");
  sql.pace = undefined;
  if (count > 1) open("SELECT id, body FROM chat.messages");
  let isSlow = false;
  let id = 0;
  for (const rows of slowRows) {
    isSlow = rows > 1;
    insert(...Array.from({ length: rows }, () => message((id += 1), "lobby")));
    while (!feed.advance(tickOf(100)));
  }
  expect(slow).toEqual([]);
  expect(taker.ids).toHaveLength(id);
});
