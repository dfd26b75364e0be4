/**
 * Verifies that a commit changes a result as the SQL contract's change matrix specifies: in order,
 * once, and only for the affected subscriptions.
 */
import { expect, test } from "bun:test";
import { unixMsFromSeq } from "../../src/base/seq.ts";
import type { TableWrite } from "../../src/storage/mod.ts";
import type { Row } from "../../src/types/mod.ts";
import {
  ANN,
  BOB,
  type LiveFixture,
  liveFixture,
  MESSAGES,
  message,
  queryTexts,
  RecordingSink,
  settle,
  subscriber,
} from "../support/live_fixture.ts";

const EVERYTHING = "SELECT * FROM chat.messages";
const LOBBY = "SELECT * FROM chat.messages WHERE room = 'lobby'";
const ROOM = "SELECT * FROM chat.messages WHERE room = $1";

function write(operation: TableWrite["operation"], rows: Row[], owner = 1): TableWrite {
  return { tableId: MESSAGES, owner, operation, rows };
}

async function changesAfter(fixture: LiveFixture, sql: string, ...writes: TableWrite[]) {
  const { sink } = fixture.open(sql, null);
  const commit = fixture.store.write(...writes);
  await settle();
  return { changes: sink.changes(), commit };
}

test("matrix 1, 2: an insert is sent if the filter is true, and NULL does not count as true", async () => {
  const fixture = liveFixture();
  const rows = [message(1, "lobby", 3, "hi"), message(2, "hall"), message(3, null)];
  const { changes, commit } = await changesAfter(fixture, LOBBY, write("insert", rows));
  expect(changes).toEqual([
    {
      type: "change",
      subscription_id: "m1",
      change_type: "insert",
      rows: [{ id: 1, room: "lobby", n: 3, body: "hi", _seq: commit.firstSeq }],
      ts: unixMsFromSeq(commit.lastSeq),
      commit_seq: commit.lastSeq,
    },
  ]);
});

test("matrix 3: an update contains the full new row, and the key, _seq and changed values of the old row", async () => {
  const fixture = liveFixture();
  const before = fixture.store.write(write("insert", [message(1, "lobby", 3, "hi")]));
  const rows = [message(1, "lobby", 3, null)];
  const { changes, commit } = await changesAfter(fixture, LOBBY, write("update", rows));
  expect(changes).toEqual([
    {
      type: "change",
      subscription_id: "m1",
      change_type: "update",
      rows: [{ id: 1, room: "lobby", n: 3, body: null, _seq: commit.lastSeq }],
      old_values: [{ id: 1, body: "hi", _seq: before.lastSeq }],
      ts: unixMsFromSeq(commit.lastSeq),
      commit_seq: commit.lastSeq,
    },
  ]);
});

test("matrix 3: an update of columns that are not projected is sent because of its _seq", async () => {
  const fixture = liveFixture();
  const before = fixture.store.write(write("insert", [message(1, "lobby", 3, "hi")]));
  const sql = "SELECT id, body FROM chat.messages";
  const rows = [message(1, "hall", 4, "hi")];
  const { changes, commit } = await changesAfter(fixture, sql, write("update", rows));
  expect(changes[0]).toMatchObject({
    change_type: "update",
    rows: [{ id: 1, body: "hi", _seq: commit.lastSeq }],
    old_values: [{ id: 1, _seq: before.lastSeq }],
  });
});

test("matrix 4, 5, 6: a row that enters is an insert, one that leaves a delete with the new _seq, and others are not sent", async () => {
  const fixture = liveFixture();
  const inserted = [message(1, "hall", 1), message(2, "lobby", 2), message(3, "hall", 3)];
  fixture.store.write(write("insert", inserted));
  const updated = [message(1, "lobby", 1), message(2, "attic", 9), message(3, "attic", 3)];
  const { changes, commit } = await changesAfter(fixture, LOBBY, write("update", updated));
  expect(
    changes.map(({ change_type, rows, old_values }) => [change_type, rows, old_values]),
  ).toEqual([
    ["insert", [{ id: 1, room: "lobby", n: 1, body: "", _seq: commit.firstSeq }], undefined],
    [
      "delete",
      [],
      [{ id: 2, room: "lobby", n: 2, body: "", _seq: commit.firstSeq + 1, _deleted: true }],
    ],
  ]);
});

test("matrix 8, 9: a delete contains the last row and the seq of the deletion, and an insert may follow", async () => {
  const fixture = liveFixture();
  fixture.store.write(write("insert", [message(1, "lobby", 1, "a"), message(2, "hall")]));
  const { sink } = fixture.open("SELECT *, _deleted FROM chat.messages", null);
  const gone = fixture.store.write(write("delete", [message(1, "lobby", 1, "a")]));
  const back = fixture.store.write(write("insert", [message(1, "lobby", 2, "b")]));
  await settle();
  expect(sink.changes().map(({ ts: _ts, ...change }) => change)).toEqual([
    {
      type: "change",
      subscription_id: "m1",
      change_type: "delete",
      rows: [],
      old_values: [{ id: 1, room: "lobby", n: 1, body: "a", _seq: gone.lastSeq, _deleted: true }],
      commit_seq: gone.lastSeq,
    },
    {
      type: "change",
      subscription_id: "m1",
      change_type: "insert",
      rows: [{ id: 1, room: "lobby", n: 2, body: "b", _seq: back.lastSeq, _deleted: false }],
      commit_seq: back.lastSeq,
    },
  ]);
});

test("matrix 13: the change of another owner is never sent", async () => {
  const fixture = liveFixture();
  const { sink } = fixture.open(EVERYTHING, null);
  const other = fixture.open(EVERYTHING, null, { as: BOB });
  fixture.store.write(write("insert", [message(1, "lobby")], 2));
  await settle();
  expect(sink.changes()).toEqual([]);
  expect(other.sink.changes()).toHaveLength(1);
});

test("consecutive changes of one commit and one kind share a message", async () => {
  const fixture = liveFixture();
  fixture.store.write(write("insert", [message(1, "lobby"), message(2, "lobby")]));
  const { sink } = fixture.open(EVERYTHING, null);
  fixture.store.write(
    write("insert", [message(3, "a"), message(4, "b")]),
    write("delete", [message(1, "lobby")]),
    write("insert", [message(5, "c")]),
  );
  fixture.store.write(write("insert", [message(6, "d")]));
  await settle();
  const shape = sink
    .changes()
    .map(({ change_type, rows, old_values }) => [
      change_type,
      rows.map((row) => row["id"]),
      old_values?.map((row) => row["id"]),
    ]);
  expect(shape).toEqual([
    ["insert", [3, 4], undefined],
    ["delete", [], [1]],
    ["insert", [5], undefined],
    ["insert", [6], undefined],
  ]);
});

test("a message holds at most 1000 rows and fits into a frame, and rows stay aligned with old values", async () => {
  const fixture = liveFixture({ frameBytesMax: 100_000 });
  const rows = Array.from({ length: 2500 }, (_, id) => message(id, "lobby", id, "x"));
  fixture.store.write(write("insert", rows));
  const { sink } = fixture.open(EVERYTHING, null);
  const updated = rows.map((row) => message(Number(row[0]), "hall", Number(row[2]), "y"));
  fixture.store.write(write("update", updated));
  await settle();
  let next = 0;
  for (const change of sink.changes()) {
    expect(change.rows.length).toBeLessThanOrEqual(1000);
    expect(JSON.stringify(change).length).toBeLessThanOrEqual(100_000);
    expect(change.old_values?.map((row) => row["id"])).toEqual(change.rows.map((row) => row["id"]));
    for (const row of change.rows) expect(row["id"]).toBe(next++);
  }
  expect(next).toBe(2500);
});

test("a group evaluates a change once, and creates one message for each distinct id", async () => {
  const fixture = liveFixture();
  const opened = ["same", "same", "other"].map((id) => fixture.open(EVERYTHING, null, { id }));
  await settle();
  const readsBefore = fixture.store.changesCount;
  fixture.store.write(write("insert", [message(1, "lobby")]));
  await settle();
  expect(fixture.store.changesCount - readsBefore).toBe(1);
  const [first, second, third] = opened.map(({ sink }) => sink.shared.at(-1));
  expect(first).toBe(second);
  expect(first).not.toBe(third);
  expect(third?.message.subscription_id).toBe("other");
});

test("groups of one partition share a single read of all their columns", async () => {
  const fixture = liveFixture();
  const opened = queryTexts()
    .filter((sql) => !sql.includes("12 /") && !sql.includes("$1"))
    .map((sql, index) => fixture.open(sql, null, { id: `q${index}` }));
  await settle();
  const readsBefore = fixture.store.changesCount;
  fixture.store.write(write("insert", [message(1, "lobby", 7, "hi")]));
  await settle();
  expect(fixture.store.changesCount - readsBefore).toBe(1);
  for (const { sink } of opened) expect(sink.changes()).toHaveLength(1);
  expect(opened.map(({ sink }) => sink.changes()[0]?.rows[0])).toContainEqual({
    twice: 14,
    id: 1,
    _seq: fixture.store.visibleSeq,
  });
});

test("a change reaches only the groups of its old and new room", async () => {
  const fixture = liveFixture();
  const rooms = Array.from({ length: 50 }, (_, room) =>
    fixture.open(ROOM, null, { id: `r${room}`, params: [`room ${room}`] }),
  );
  fixture.store.write(write("insert", [message(1, "room 3"), message(2, "room 4")]));
  fixture.store.write(write("update", [message(1, "room 5"), message(2, "nowhere")]));
  await settle();
  const heard = rooms.map(({ sink }) => sink.changes().map(({ change_type }) => change_type));
  expect(heard[3]).toEqual(["insert", "delete"]);
  expect(heard[4]).toEqual(["insert", "delete"]);
  expect(heard[5]).toEqual(["insert"]);
  expect(heard.flat()).toHaveLength(5);
});

test("columns that no group reads are released", async () => {
  const fixture = liveFixture();
  const narrow = fixture.open("SELECT id, body FROM chat.messages", null, { id: "narrow" });
  const wide = fixture.open(EVERYTHING, null, { id: "wide" });
  const twice = fixture.open("SELECT n * 2 AS twice FROM chat.messages WHERE n > 5", null);
  await settle();
  wide.subscription.close();
  narrow.subscription.close();
  fixture.store.write(write("insert", [message(1, "lobby", 9)]));
  await settle();
  expect(twice.sink.changes()[0]?.rows).toEqual([
    { twice: 18, id: 1, _seq: fixture.store.visibleSeq },
  ]);
});

test("a failing group ends without affecting its neighbours or the writer", async () => {
  const fixture = liveFixture();
  const failing = fixture.open("SELECT id FROM chat.messages WHERE 12 / n > 1", null, {
    id: "bad",
  });
  const good = fixture.open(EVERYTHING, null, { id: "good" });
  await settle();
  fixture.store.write(write("insert", [message(1, "lobby", 0)]));
  await settle();
  fixture.store.write(write("insert", [message(2, "lobby", 1)]));
  await settle();
  expect(failing.sink.errors()).toMatchObject([{ code: "CONVERSION_ERROR", ended: true }]);
  expect(failing.subscription.state).toBe("ended");
  expect(good.sink.changes()).toHaveLength(2);
  expect(fixture.engine.subscriptions()).toHaveLength(1);
});

test("a sink that throws ends only its own subscription", async () => {
  const fixture = liveFixture();
  const bad = new RecordingSink();
  const first = fixture.open(EVERYTHING, null, { sink: bad });
  const second = fixture.open(EVERYTHING, null, { as: ANN });
  await settle();
  bad.onSend = () => {
    throw new RangeError("no such format");
  };
  fixture.store.write(write("insert", [message(1, "lobby")]));
  await settle();
  expect(first.subscription.state).toBe("ended");
  expect(bad.errors()).toMatchObject([{ code: "SUBSCRIPTION_FAILED", ended: true }]);
  expect(bad.errors()[0]?.message).not.toContain("no such format");
  expect(second.sink.changes()).toHaveLength(1);
});

test("nothing is delivered within the writer's own call", async () => {
  const fixture = liveFixture();
  const { sink } = fixture.open(EVERYTHING, null);
  fixture.store.write(write("insert", [message(1, "lobby")]));
  expect(sink.changes()).toEqual([]);
  await Promise.resolve();
  await Promise.resolve();
  expect(sink.changes()).toHaveLength(1);
});

test("position follows the visible seq in a quiet partition, and is never ahead of it", async () => {
  const fixture = liveFixture();
  const { subscription } = fixture.open(EVERYTHING, null);
  await settle();
  const other = fixture.store.write(write("insert", [message(1, "lobby")], 2));
  expect(subscription.position).toBe(other.lastSeq);
  const own = fixture.store.write(write("insert", [message(1, "lobby")]));
  expect(subscription.position).toBe(other.lastSeq);
  await settle();
  expect(subscription.position).toBe(own.lastSeq);
});

test("a subscription opened while its feed is behind gets each change above its boundary once", async () => {
  const fixture = liveFixture();
  const early = fixture.open(EVERYTHING, null);
  await settle();
  fixture.store.write(write("insert", [message(1, "lobby")]));
  const late = fixture.open(EVERYTHING, {});
  fixture.store.write(write("insert", [message(2, "lobby")]));
  await settle();
  expect(early.sink.changes().flatMap(({ rows }) => rows.map((row) => row["id"]))).toEqual([1, 2]);
  expect(late.sink.batches()[0]?.rows).toHaveLength(1);
  expect(late.sink.changes().flatMap(({ rows }) => rows.map((row) => row["id"]))).toEqual([2]);
});

test("a connection with full backpressure pauses all its subscriptions, which later continue from their positions", async () => {
  const fixture = liveFixture();
  const sink = new RecordingSink();
  const one = fixture.open(EVERYTHING, null, { sink, id: "one" });
  const two = fixture.open(LOBBY, null, { sink, id: "two" });
  const free = fixture.open(EVERYTHING, null, { as: ANN, id: "free" });
  await settle();
  sink.drain();
  sink.room = 1;
  for (let id = 1; id <= 30; id += 1) fixture.store.write(write("insert", [message(id, "lobby")]));
  await settle();
  expect(sink.changes()).toHaveLength(1);
  expect(free.sink.changes()).toHaveLength(30);
  expect(
    fixture.engine
      .subscriptions()
      .map(({ status }) => status)
      .toSorted(),
  ).toEqual(["behind", "behind", "ready"]);
  sink.room = 4;
  one.subscription.drained();
  await settle();
  expect(sink.changes()).toHaveLength(5);
  sink.room = Infinity;
  two.subscription.drained();
  await settle();
  for (const id of ["one", "two"]) {
    const seen = sink.changes().filter((change) => change.subscription_id === id);
    expect(seen.flatMap(({ rows }) => rows.map((row) => row["id"]))).toEqual(
      Array.from({ length: 30 }, (_, index) => index + 1),
    );
  }
  expect(one.subscription.position).toBe(fixture.store.visibleSeq);
});

test("a subscription that is behind ends with RESUME_EXPIRED when its history expires", async () => {
  const fixture = liveFixture();
  const { sink, subscription } = fixture.open(EVERYTHING, null);
  await settle();
  sink.room = 0;
  fixture.store.write(write("insert", [message(1, "lobby")]));
  await settle();
  fixture.store.write(write("update", [message(1, "hall")]));
  fixture.store.write(write("update", [message(1, "attic")]));
  await settle();
  fixture.store.discard(MESSAGES, 1, fixture.store.visibleSeq);
  sink.room = Infinity;
  subscription.drained();
  await settle();
  expect(sink.errors()).toMatchObject([
    { code: "RESUME_EXPIRED", ended: true, earliest_seq: fixture.store.visibleSeq },
  ]);
});

test("a burst far above the budget of a tick is delivered completely and in order", async () => {
  const fixture = liveFixture();
  const opened = Array.from({ length: 40 }, (_, index) =>
    fixture.open(EVERYTHING, null, { as: subscriber(`user ${index}`, 1), id: `s${index % 3}` }),
  );
  await settle();
  for (let id = 0; id < 300; id += 1) fixture.store.write(write("insert", [message(id, "lobby")]));
  for (let round = 0; round < 20; round += 1) await settle();
  for (const { sink } of opened) {
    const seen = sink.changes().flatMap(({ rows }) => rows.map((row) => row["id"]));
    expect(seen).toEqual(Array.from({ length: 300 }, (_, id) => id));
  }
  expect(fixture.store.openScanCount).toBe(0);
});
