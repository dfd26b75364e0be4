/**
 * Verifies that large rows are read a few at a time and small rows many at a time, so that a
 * socket that accepts one message causes about one message's worth of reading. The tests use rows
 * of 20 KB, sockets that accept one message at a time, and a store that counts the versions read.
 */
import { expect, test } from "bun:test";
import { ReadSize } from "../../../src/live/program/read_size.ts";
import type { SubscribeOptions } from "../../../src/protocol/mod.ts";
import type { ChangeScan } from "../../../src/storage/mod.ts";
import {
  ANN,
  fixtureOver,
  KnownQueries,
  LIMITS,
  type LiveFixture,
  MESSAGES,
  message,
  messagesTable,
  RecordingSink,
  settle,
} from "../../support/live_fixture.ts";
import { feedOver, type GroupMember, tickOf } from "../../support/live_parts.ts";
import { ManualClock } from "../../support/manual_clock.ts";
import { ModelStore } from "../../support/model_store.ts";

const EVERYTHING = "SELECT * FROM chat.messages";
const ROWS = 300;
const LARGE = "x".repeat(20_000);
const FRAME_BYTES_MAX = 65_536;

test("ReadSize starts with few rows, at most doubles, and shrinks at once", () => {
  const size = new ReadSize();
  const asked = { rowsMax: 256, frameBytesMax: 8 << 20 };
  expect(size.rowsOf(asked)).toBe(64);
  size.note(64, 64 * 100);
  expect(size.rowsOf(asked)).toBe(128);
  size.note(128, 128 * 100);
  size.note(256, 256 * 100);
  expect(size.rowsOf(asked)).toBe(256);
  size.note(256, 256 * 100_000);
  expect(size.rowsOf(asked)).toBe(10);
  size.note(10, 10 * (2 << 20));
  expect(size.rowsOf(asked)).toBe(1);
});

test("ReadSize never exceeds what one frame may hold", () => {
  const size = new ReadSize();
  size.note(1, 16_384);
  expect(size.rowsOf({ rowsMax: 256, frameBytesMax: FRAME_BYTES_MAX })).toBe(4);
  expect(size.rowsOf({ rowsMax: 3, frameBytesMax: FRAME_BYTES_MAX })).toBe(3);
});

interface Counted {
  readonly fixture: LiveFixture;
  /** Returns the number of versions read since the last call of this function. */
  readonly readCount: () => number;
}

/** Returns a store that counts the versions it reads and has batches of the requested size. */
function countedFixture(): Counted {
  const clock = new ManualClock();
  const store = new ModelStore(clock, { batchRows: 1024 });
  store.defineTable(messagesTable());
  const fixture = fixtureOver(store, clock, { frameBytesMax: FRAME_BYTES_MAX });
  let count = 0;
  const changesOf = store.changes.bind(store);
  store.changes = (...asked): ChangeScan => {
    const scan = changesOf(...asked);
    const next: ChangeScan["next"] = () => {
      const batch = scan.next();
      count += batch?.rowCount ?? 0;
      return batch;
    };
    return { next, close: () => scan.close() };
  };
  const readCount = (): number => {
    const before = count;
    count = 0;
    return before;
  };
  return { fixture, readCount };
}

function insert({ store }: LiveFixture, body = LARGE): void {
  const rows = Array.from({ length: ROWS }, (_, id) => message(id, "lobby", 0, body));
  store.write({ tableId: MESSAGES, owner: 1, operation: "insert", rows });
}

test.each<[string, SubscribeOptions | null]>([
  ["catches up", null],
  ["replays all", { from_seq_id: 0, batch_size: 10_000 }],
])(
  "a slow reader of large rows that %s reads little more than it is sent",
  async (_what, options) => {
    const { fixture, readCount } = countedFixture();
    const sink = new RecordingSink();
    sink.room = 1;
    if (options !== null) insert(fixture);
    const { subscription } = fixture.open(EVERYTHING, options, { sink });
    if (options === null) insert(fixture);
    let sentCount = 0;
    let messageCount = 0;
    readCount();
    for (let tick = 0; tick < 2 * ROWS && sentCount < ROWS; tick += 1) {
      sink.room = 1;
      subscription.nextBatch();
      subscription.drained();
      await settle();
      for (const sent of sink.drain()) {
        if (!("rows" in sent)) continue;
        sentCount += sent.rows.length;
        messageCount += 1;
      }
    }
    expect(sentCount).toBe(ROWS);
    expect(messageCount).toBeGreaterThan(ROWS / 4);
    // A frame has room for three of these rows.
    expect(readCount()).toBeLessThan(3 * ROWS);
  },
);

class Taker implements GroupMember {
  readonly id = "m1";
  count = 0;

  take(_message: unknown, { count }: { count: number }): void {
    this.count += count;
  }

  fail(error: unknown): void {
    throw error;
  }
}

test("Feed reads large rows a few at a time, and charges their bytes", () => {
  const { fixture, readCount } = countedFixture();
  const { store } = fixture;
  const feed = feedOver<Taker>({
    store,
    tableId: MESSAGES,
    owner: 1,
    frameBytesMax: LIMITS.frameBytesMax,
    reviewOf: () => ({ advance: () => true, plan: undefined }),
  });
  const group = feed.groupFor(new KnownQueries().planLive(ANN, { sql: EVERYTHING, params: [] }), {
    sql: EVERYTHING,
  });
  const taker = new Taker();
  group.join(taker);
  group.follow(taker);
  const before = store.visibleSeq;
  insert(fixture);
  feed.mark(before);
  const counts: number[] = [];
  while (!feed.advance(tickOf(1000))) counts.push(readCount());
  expect(taker.count).toBe(ROWS);
  // A tick has a thousand work units, which correspond to about a megabyte, or 52 rows. The first
  // read is excluded, because the size of a row is not known at that point.
  expect(Math.max(...counts.slice(1)) * LARGE.length).toBeLessThan(1.2e6);
  expect(Math.min(...counts) * LARGE.length).toBeGreaterThan(0.5e6);
});
