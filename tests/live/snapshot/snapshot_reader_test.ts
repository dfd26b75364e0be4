/**
 * Verifies that a snapshot equals the result at its boundary seq, contains each row exactly once,
 * and arrives in batches of the requested size. The engine runs on the model store, and the test
 * writes rows between the batches.
 */
import { expect, test } from "bun:test";
import type { Row } from "../../../src/types/mod.ts";
import {
  type LiveFixture,
  liveFixture,
  MESSAGES,
  message,
  type RecordingSink,
  settle,
} from "../../support/live_fixture.ts";

const EVERYTHING = "SELECT * FROM chat.messages";
const LOBBY = "SELECT * FROM chat.messages WHERE room = 'lobby'";

function insert({ store }: LiveFixture, ...rows: Row[]): void {
  store.write({ tableId: MESSAGES, owner: 1, operation: "insert", rows });
}

function update({ store }: LiveFixture, ...rows: Row[]): void {
  store.write({ tableId: MESSAGES, owner: 1, operation: "update", rows });
}

function remove({ store }: LiveFixture, ...rows: Row[]): void {
  store.write({ tableId: MESSAGES, owner: 1, operation: "delete", rows });
}

function ids(sink: RecordingSink): unknown[] {
  return sink.batches().map(({ rows }) => rows.map((row) => row["id"]));
}

function fill(fixture: LiveFixture, count: number): void {
  for (let id = 1; id <= count; id += 1) {
    insert(fixture, message(id, id % 2 === 0 ? "lobby" : "hall", id, `text ${id}`));
  }
}

test("subscribe sends the ack, a single batch with the boundary as its position, and then ready", () => {
  const fixture = liveFixture();
  insert(fixture, message(1, "lobby", 5, "hello"), message(2, "hall", null, null));
  const { sink, subscription } = fixture.open(EVERYTHING);
  const boundary = fixture.store.visibleSeq;
  expect(sink.messages).toEqual([
    {
      type: "subscription_ack",
      subscription_id: "m1",
      total_rows: 0,
      batch_control: { batch_num: 0, has_more: true, status: "loading", last_seq_id: null },
      schema: [
        { name: "id", data_type: "BigInt", index: 0, flags: ["pk", "nn", "uq"] },
        { name: "room", data_type: "Text", index: 1 },
        { name: "n", data_type: "Int", index: 2 },
        { name: "body", data_type: "Text", index: 3 },
        { name: "_seq", data_type: "BigInt", index: 4, flags: ["nn"] },
      ],
    },
    {
      type: "initial_data_batch",
      subscription_id: "m1",
      rows: [
        { id: 1, room: "lobby", n: 5, body: "hello", _seq: boundary - 1 },
        { id: 2, room: "hall", n: null, body: null, _seq: boundary },
      ],
      batch_control: { batch_num: 0, has_more: false, status: "ready", last_seq_id: boundary },
    },
  ]);
  expect(subscription.state).toBe("following");
  expect(subscription.position).toBe(boundary);
});

test("an empty result is one empty batch with ready", () => {
  const { sink } = liveFixture().open(EVERYTHING);
  expect(sink.batches()).toHaveLength(1);
  expect(sink.batches()[0]?.rows).toEqual([]);
  expect(sink.batches()[0]?.batch_control.status).toBe("ready");
});

test("options null requests only live changes: an ack with the boundary, and no batch", () => {
  const fixture = liveFixture();
  fill(fixture, 3);
  const { sink, subscription } = fixture.open(EVERYTHING, null);
  expect(sink.messages).toHaveLength(1);
  expect(sink.messages[0]).toMatchObject({
    type: "subscription_ack",
    batch_control: {
      batch_num: 0,
      has_more: false,
      status: "ready",
      last_seq_id: fixture.store.visibleSeq,
    },
  });
  expect(subscription.state).toBe("following");
});

test("nextBatch sends one batch for each request, even if the last one is exactly full", () => {
  const fixture = liveFixture();
  fill(fixture, 20);
  const { sink, subscription } = fixture.open(LOBBY, { batch_size: 5 });
  expect(ids(sink)).toEqual([[2, 4, 6, 8, 10]]);
  expect(sink.batches()[0]?.batch_control).toEqual({
    batch_num: 0,
    has_more: true,
    status: "loading",
    last_seq_id: sink.batches()[0]?.rows.at(-1)?.["_seq"] as number,
  });
  expect(subscription.state).toBe("loading");
  subscription.nextBatch();
  expect(ids(sink)[1]).toEqual([12, 14, 16, 18, 20]);
  expect(sink.batches()[1]?.batch_control).toEqual({
    batch_num: 1,
    has_more: false,
    status: "ready",
    last_seq_id: fixture.store.visibleSeq,
  });
  subscription.nextBatch();
  expect(sink.batches()).toHaveLength(2);
});

test("rows that are replaced or deleted during loading appear as they were at the boundary", async () => {
  const fixture = liveFixture();
  fill(fixture, 6);
  const { sink, subscription } = fixture.open(EVERYTHING, { batch_size: 2 });
  update(fixture, message(5, "attic", 500, "new"));
  remove(fixture, message(6, "lobby", 6, "text 6"));
  insert(fixture, message(7, "hall"));
  subscription.nextBatch();
  subscription.nextBatch();
  expect(ids(sink)).toEqual([
    [1, 2],
    [3, 4],
    [5, 6],
  ]);
  expect(sink.batches()[2]?.rows[0]).toMatchObject({ room: "hall", n: 5 });
  await settle();
  expect(sink.changes().map(({ change_type }) => change_type)).toEqual([
    "update",
    "delete",
    "insert",
  ]);
});

test("no change is sent while its snapshot loads", async () => {
  const fixture = liveFixture();
  fill(fixture, 4);
  const { sink } = fixture.open(EVERYTHING, { batch_size: 2 });
  insert(fixture, message(9, "hall"));
  await settle();
  expect(sink.changes()).toEqual([]);
});

test("requests are counted, and at most 16 stay open", async () => {
  const fixture = liveFixture();
  fill(fixture, 40);
  const sink = fixture.open(EVERYTHING, { batch_size: 1 }).sink;
  expect(sink.batches()).toHaveLength(1);
  const blocked = fixture.open(EVERYTHING, { batch_size: 1 }, { id: "m2" });
  blocked.sink.room = 0;
  blocked.subscription.nextBatch();
  for (let request = 0; request < 30; request += 1) blocked.subscription.nextBatch();
  const before = blocked.sink.batches().length;
  blocked.sink.room = Infinity;
  blocked.subscription.drained();
  await settle();
  expect(blocked.sink.batches().length - before).toBe(16);
});

test.each([
  [0, []],
  [1, [20]],
  [3, [18, 19, 20]],
  [20, Array.from({ length: 20 }, (_, index) => index + 1)],
  [1_000_000_000, Array.from({ length: 20 }, (_, index) => index + 1)],
])("last_rows %d sends that many of the newest rows, ascending", (count, expected) => {
  const fixture = liveFixture();
  fill(fixture, 20);
  const { sink } = fixture.open(EVERYTHING, { last_rows: count });
  expect(ids(sink)).toEqual([expected]);
  expect(sink.batches()[0]?.batch_control.last_seq_id).toBe(fixture.store.visibleSeq);
});

test("last_rows counts only matching rows, arrives in batches, and searches far back", () => {
  const fixture = liveFixture();
  for (let id = 1; id <= 20; id += 1) {
    insert(fixture, message(id, id % 2 === 0 ? "lobby" : "hall"));
    fixture.clock.advance(id * 86_400_000);
  }
  const { sink, subscription } = fixture.open(LOBBY, { last_rows: 5, batch_size: 3 });
  subscription.nextBatch();
  expect(ids(sink)).toEqual([
    [12, 14, 16],
    [18, 20],
  ]);
});

test("a batch ends when its frame is full, and the rest follows on request", () => {
  const fixture = liveFixture({ frameBytesMax: 10_000 });
  for (let id = 1; id <= 5; id += 1) insert(fixture, message(id, "hall", 0, "x".repeat(3000)));
  insert(fixture, message(6, "hall", 0, "y".repeat(20_000)));
  insert(fixture, message(7, "hall", 0, ""));
  const { sink, subscription } = fixture.open(EVERYTHING);
  for (let request = 0; request < 5; request += 1) subscription.nextBatch();
  expect(ids(sink)).toEqual([[1, 2], [3, 4], [5], [6], [7]]);
  for (const batch of sink.batches().filter(({ rows }) => rows.length > 1)) {
    expect(JSON.stringify(batch).length).toBeLessThanOrEqual(10_000);
  }
});

test("a filter protects the projection from rows that it excludes, and never sees an invisible row", async () => {
  const fixture = liveFixture();
  insert(fixture, message(1, "hall", 0), message(2, "hall", 4), message(3, "hall", null));
  const { sink } = fixture.open("SELECT id, 12 / n AS ratio FROM chat.messages WHERE n <> 0");
  expect(sink.batches()[0]?.rows).toEqual([
    { id: 2, ratio: 3, _seq: fixture.store.visibleSeq - 1 },
  ]);
  insert(fixture, message(4, "hall", 0));
  update(fixture, message(1, "hall", 0, "again"));
  await settle();
  expect(sink.errors()).toEqual([]);
  expect(sink.changes()).toEqual([]);
});

test("an expression that fails on a row of the snapshot ends the subscription", () => {
  const fixture = liveFixture();
  insert(fixture, message(1, "hall", 0));
  const { sink, subscription } = fixture.open("SELECT id FROM chat.messages WHERE 12 / n > 1");
  expect(sink.errors()).toEqual([
    {
      type: "error",
      subscription_id: "m1",
      code: "CONVERSION_ERROR",
      message: "Cannot divide by zero",
      ended: true,
    },
  ]);
  expect(subscription.state).toBe("ended");
  expect(fixture.engine.subscriptions()).toEqual([]);
  expect(fixture.clock.timerCount).toBe(0);
});

test("a snapshot whose versions have been discarded ends with RESUME_EXPIRED", () => {
  const fixture = liveFixture();
  fill(fixture, 6);
  const { sink, subscription } = fixture.open(EVERYTHING, { batch_size: 2 });
  update(fixture, message(6, "hall"));
  fixture.store.discard(MESSAGES, 1, fixture.store.visibleSeq);
  subscription.nextBatch();
  expect(sink.errors()[0]).toMatchObject({
    code: "RESUME_EXPIRED",
    earliest_seq: fixture.store.visibleSeq,
  });
});

test("a loading subscription ends with SUBSCRIPTION_FAILED if it requests nothing in time", () => {
  const fixture = liveFixture({ loadingTimeoutMs: 1000 });
  fill(fixture, 6);
  const { sink, subscription } = fixture.open(EVERYTHING, { batch_size: 2 });
  fixture.clock.advance(999);
  subscription.nextBatch();
  fixture.clock.advance(999);
  expect(subscription.state).toBe("loading");
  fixture.clock.advance(1);
  expect(subscription.state).toBe("ended");
  expect(sink.errors()[0]?.code).toBe("SUBSCRIPTION_FAILED");
});

test("every scan of a snapshot is closed in the end", () => {
  const fixture = liveFixture();
  fill(fixture, 30);
  fixture.open(EVERYTHING, { batch_size: 4 }).subscription.nextBatch();
  fixture.open(LOBBY, { last_rows: 3 });
  expect(fixture.store.openScanCount).toBe(0);
});
