/**
 * Verifies that the engine refuses requests with the codes of the wire contract, counts correctly,
 * discards ended subscriptions, and reacts to changed definitions.
 */
import { expect, test } from "bun:test";
import { HOUR_MS } from "../../src/base/clock.ts";
import { DatabaseError } from "../../src/base/errors.ts";
import { type Log, silentLog } from "../../src/base/log.ts";
import { SubscriptionError } from "../../src/live/mod.ts";
import type { SubscribeOptions } from "../../src/protocol/mod.ts";
import type { TableWrite } from "../../src/storage/mod.ts";
import {
  ANN,
  BOB,
  type LiveFixture,
  liveFixture,
  MESSAGES,
  message,
  messagesTable,
  RecordingSink,
  settle,
  subscriber,
} from "../support/live_fixture.ts";
import { until } from "../support/until.ts";

const EVERYTHING = "SELECT * FROM chat.messages";
const NARROW = "SELECT id, body FROM chat.messages";
const ROOM = "SELECT * FROM chat.messages WHERE room = $1";

function refusal(open: () => unknown): SubscriptionError["response"] {
  try {
    open();
  } catch (error) {
    if (error instanceof SubscriptionError) return error.response;
    throw error;
  }
  throw new Error("it was not refused");
}

test.each<[string, object]>([
  ["batch_size", { batch_size: 0 }],
  ["batch_size", { batch_size: 1.5 }],
  ["batch_size", { batch_size: "5" }],
  ["last_rows", { last_rows: -1 }],
  ["last_rows", { last_rows: true }],
  ["position", { from_seq_id: -1 }],
  ["position", { from_seq_id: 1.5 }],
  ["position", { from_seq_id: "" }],
  ["position", { from_seq_id: "12x" }],
  ["position", { from: {} }],
  ["replay", { replay: "some" }],
  ["object", []],
])("options: an unreadable %s is INVALID_OPTIONS", (what, options) => {
  const fixture = liveFixture();
  const response = refusal(() => fixture.open(EVERYTHING, options));
  expect(response).toMatchObject({ code: "INVALID_OPTIONS", subscription_id: "m1", ended: true });
  expect(response.message).toContain(what);
  expect(fixture.engine.countOfUser("ann")).toBe(0);
});

test("options: null means absent, and a large batch_size means the maximum", () => {
  const fixture = liveFixture({ batchSizeDefault: 3, batchSizeMax: 5 });
  const rows = Array.from({ length: 9 }, (_, id) => message(id, "lobby"));
  fixture.store.write({ tableId: MESSAGES, owner: 1, operation: "insert", rows });
  const absent = { batch_size: null, last_rows: null, from_seq_id: null, from: null, replay: null };
  const plain = fixture.open(EVERYTHING, absent as unknown as SubscribeOptions);
  expect(plain.sink.batches()[0]?.rows).toHaveLength(3);
  const large = fixture.open(EVERYTHING, { batch_size: 1_000_000 });
  expect(large.sink.batches()[0]?.rows).toHaveLength(5);
});

test("the error for a statement that cannot be planned keeps its position and hint", () => {
  const fixture = liveFixture();
  expect(refusal(() => fixture.open("SELEC"))).toMatchObject({
    code: "INVALID_SQL",
    position: 0,
    hint: "write SELECT",
    ended: true,
  });
});

test.each([
  ["UNSUPPORTED_FEATURE", "UNSUPPORTED"],
  ["TABLE_NOT_FOUND", "NOT_FOUND"],
  ["PERMISSION_DENIED", "UNAUTHORIZED"],
  ["INVALID_PARAMETER", "INVALID_PARAMETER"],
  ["COLUMN_NOT_FOUND", "INVALID_SQL"],
  ["DATA_DAMAGED", "SUBSCRIPTION_FAILED"],
] as const)("planning that fails with %s is refused with %s", (errorCode, code) => {
  const fixture = liveFixture();
  fixture.sql.refusal = new DatabaseError(errorCode, "no");
  expect(refusal(() => fixture.open(EVERYTHING))).toMatchObject({ code, ended: true });
});

test("a planning failure that is not the client's fault is logged", () => {
  const causes: unknown[] = [];
  const log: Log = { ...silentLog, error: (_message, fields) => void causes.push(fields) };
  const fixture = liveFixture({}, log);
  fixture.sql.refusal = new DatabaseError("TABLE_NOT_FOUND", "no");
  expect(refusal(() => fixture.open(EVERYTHING)).code).toBe("NOT_FOUND");
  expect(causes).toEqual([]);
  fixture.sql.refusal = new DatabaseError("DATA_DAMAGED", "checksum");
  expect(refusal(() => fixture.open(EVERYTHING)).code).toBe("SUBSCRIPTION_FAILED");
  expect(causes).toEqual([
    {
      sql: "SELECT * FROM chat.messages",
      user: "ann",
      cause: expect.stringMatching(/checksum\n.*at /s),
    },
  ]);
});

test("parameters: numbers keep their digits, and arrays and objects are refused with INVALID_PARAMETER", () => {
  const fixture = liveFixture();
  expect(refusal(() => fixture.open(ROOM, {}, { params: ["a", [1]] }))).toMatchObject({
    code: "INVALID_PARAMETER",
    message: "Cannot bind parameter 2: values of type object are not supported",
  });
  expect(fixture.open(ROOM, {}, { params: ["a", 1, null, true] }).subscription.state).toBe(
    "following",
  );
});

test("limits apply to a user over all connections and to a connection, and ended subscriptions do not count", () => {
  const fixture = liveFixture({ subscriptionsPerUser: 3, subscriptionsPerConnection: 2 });
  const sink = new RecordingSink();
  const first = fixture.open(EVERYTHING, {}, { sink });
  fixture.open(EVERYTHING, {}, { sink, id: "m2" });
  const ofConnection = refusal(() => fixture.open(EVERYTHING, {}, { sink, id: "m3" }));
  expect(ofConnection).toMatchObject({ code: "SUBSCRIPTION_LIMIT_EXCEEDED", ended: true });
  fixture.open(EVERYTHING, {});
  expect(refusal(() => fixture.open(EVERYTHING)).code).toBe("SUBSCRIPTION_LIMIT_EXCEEDED");
  expect(fixture.open(EVERYTHING, {}, { as: BOB }).subscription.state).toBe("following");
  first.subscription.close();
  first.subscription.close();
  expect(fixture.engine.countOfUser("ann")).toBe(2);
  expect(fixture.open(EVERYTHING, {}, { sink }).subscription.state).toBe("following");
});

test("limits: a limit of 0 for a user means no limit", () => {
  const fixture = liveFixture({ subscriptionsPerUser: 0 });
  for (let index = 0; index < 10; index += 1) fixture.open(EVERYTHING, null);
  expect(fixture.engine.countOfUser("ann")).toBe(10);
});

test("close ends a subscription without a message, and no message follows", async () => {
  const fixture = liveFixture();
  const { sink, subscription } = fixture.open(EVERYTHING, null);
  await settle();
  const rows = [message(1, "lobby")];
  fixture.store.write({ tableId: MESSAGES, owner: 1, operation: "insert", rows });
  subscription.close();
  await settle();
  expect(sink.messages).toHaveLength(1);
  expect(subscription.state).toBe("ended");
  expect(fixture.clock.timerCount).toBe(0);
});

test("kill ends one live query with KILLED, and reports whether it exists", () => {
  const fixture = liveFixture();
  const { sink, subscription } = fixture.open(EVERYTHING, null);
  fixture.open(EVERYTHING, null, { id: "m2" });
  const [info] = fixture.engine.subscriptions();
  expect(fixture.engine.kill("none")).toBe(false);
  expect(fixture.engine.kill(info?.liveId ?? "")).toBe(true);
  expect(fixture.engine.kill(info?.liveId ?? "")).toBe(false);
  expect(sink.errors()).toMatchObject([{ code: "KILLED", subscription_id: "m1", ended: true }]);
  expect(subscription.state).toBe("ended");
  expect(fixture.engine.subscriptions()).toHaveLength(1);
});

test("shutdown ends every subscription and refuses new ones", () => {
  const fixture = liveFixture();
  const opened = [fixture.open(EVERYTHING, null), fixture.open(NARROW, {}, { as: BOB })];
  fixture.engine.shutdown();
  for (const { sink } of opened) {
    expect(sink.errors()).toMatchObject([{ code: "SHUTTING_DOWN", ended: true }]);
  }
  expect(refusal(() => fixture.open(EVERYTHING)).code).toBe("SHUTTING_DOWN");
});

test("subscriptions lists the user, the query, the position and the volume of each subscription", async () => {
  const fixture = liveFixture();
  fixture.open(EVERYTHING, null);
  await settle();
  fixture.clock.advance(50);
  const rows = [message(1, "lobby"), message(2, "lobby")];
  const commit = fixture.store.write({ tableId: MESSAGES, owner: 1, operation: "insert", rows });
  await settle();
  expect(fixture.engine.subscriptions()).toEqual([
    {
      liveId: expect.stringMatching(/^[0-9a-f]{12}$/),
      subscriptionId: "m1",
      userId: "ann",
      tableIds: [MESSAGES],
      query: EVERYTHING,
      status: "ready",
      changes: 2,
      lastSeq: commit.lastSeq,
      createdAtMs: fixture.clock.nowMs() - 50,
      lastUpdateMs: fixture.clock.nowMs(),
      connectionId: "c1",
      options: null,
      position: fixture.store.visibleSeq,
      lagMs: 0,
      stateBytes: undefined,
      queuedBytes: 0,
      changesPerSecond: 2 / 60,
    },
  ]);
});

test("the rate of changes falls as time passes, and lag counts the unsent changes", async () => {
  const fixture = liveFixture();
  const { sink } = fixture.open(EVERYTHING, null);
  await settle();
  sink.room = 1;
  const write = (id: number): void => {
    const rows = [message(id, "lobby")];
    fixture.store.write({ tableId: MESSAGES, owner: 1, operation: "insert", rows });
  };
  write(1);
  await settle();
  fixture.clock.advance(60_000);
  write(2);
  await settle();
  const [row] = fixture.engine.subscriptions();
  expect(row).toMatchObject({ changes: 1, status: "behind", lagMs: 60_000 });
  expect(row?.changesPerSecond).toBeCloseTo(1 / 60 / Math.E);
});

test.each([
  ["an hour on", HOUR_MS],
  ["a minute back", -60_000],
])("a clock that is set %s changes neither rates nor ages", async (_how, byMs) => {
  const fixture = liveFixture();
  const { clock, engine, store } = fixture;
  fixture.open(EVERYTHING, null);
  store.write({ tableId: MESSAGES, owner: 1, operation: "insert", rows: [message(1, "lobby")] });
  await settle();
  clock.setWall(clock.nowMs() + byMs);
  clock.advance(60_000);
  const [row] = engine.subscriptions();
  expect(row?.changesPerSecond).toBeCloseTo(1 / 60 / Math.E);
  expect(row?.createdAtMs).toBe(clock.nowMs() - 60_000);
  expect(row?.lastUpdateMs).toBe(clock.nowMs() - 60_000);
});

test("a change is delivered rather than replayed to a client that subscribed while the clock was ahead", async () => {
  const fixture = liveFixture();
  const { clock, engine, store } = fixture;
  const startMs = clock.nowMs();
  clock.setWall(startMs + HOUR_MS);
  fixture.open(EVERYTHING, null);
  await settle();
  clock.setWall(startMs);
  clock.advance(5);
  store.write({ tableId: MESSAGES, owner: 1, operation: "insert", rows: [message(1, "lobby")] });
  await settle();
  const { changes, counts } = engine.delivery();
  expect(changes).toBe(1);
  expect(counts.reduce((sum, count) => sum + count)).toBe(1);
});

test("tableChanged: a dropped table ends subscriptions with NOT_FOUND, and a lost right with UNAUTHORIZED", () => {
  const fixture = liveFixture();
  const dropped = fixture.open(EVERYTHING, null);
  fixture.sql.refusal = new DatabaseError("TABLE_NOT_FOUND", "gone");
  fixture.engine.tableChanged(MESSAGES);
  expect(dropped.sink.errors()).toMatchObject([{ code: "NOT_FOUND", ended: true }]);
  fixture.sql.refusal = undefined;
  const denied = fixture.open(EVERYTHING, null);
  fixture.sql.refusal = new DatabaseError("PERMISSION_DENIED", "no");
  fixture.engine.tableChanged(MESSAGES);
  expect(denied.sink.errors()).toMatchObject([{ code: "UNAUTHORIZED", ended: true }]);
  fixture.sql.refusal = undefined;
  const unread = fixture.open(EVERYTHING, null);
  fixture.sql.mayRead = false;
  fixture.engine.tableChanged(MESSAGES);
  expect(unread.sink.errors()).toMatchObject([{ code: "UNAUTHORIZED", ended: true }]);
});

test("tableChanged: another table under the same name ends subscriptions with NOT_FOUND", () => {
  const fixture = liveFixture();
  const { sink } = fixture.open(EVERYTHING, null);
  fixture.sql.tableId = MESSAGES + 1;
  fixture.engine.tableChanged(MESSAGES);
  expect(sink.errors()).toMatchObject([{ code: "NOT_FOUND", ended: true }]);
});

test("tableChanged: a change to a column that a query names ends the query with SCHEMA_CHANGED", () => {
  const fixture = liveFixture();
  const { sink } = fixture.open(NARROW, null);
  fixture.sql.refusal = new DatabaseError("COLUMN_NOT_FOUND", "no body");
  fixture.engine.tableChanged(MESSAGES);
  expect(sink.errors()).toMatchObject([
    { code: "SCHEMA_CHANGED", message: "Table chat.messages has been altered; subscribe again" },
  ]);
});

test("tableChanged: a surviving query is not affected, and is planned once for each reader", async () => {
  const fixture = liveFixture();
  const opened = [ANN, subscriber("eve", 1), subscriber("eve", 1)].map((as) =>
    fixture.open(EVERYTHING, null, { as }),
  );
  await settle();
  const plannedBefore = fixture.sql.plannedCount;
  fixture.sql.schemaVersion = 2;
  fixture.engine.tableChanged(MESSAGES);
  expect(fixture.sql.plannedCount - plannedBefore).toBe(2);
  const rows = [message(1, "lobby")];
  fixture.store.write({ tableId: MESSAGES, owner: 1, operation: "insert", rows });
  const late = fixture.open(EVERYTHING, null, { as: ANN });
  await settle();
  const readsBefore = fixture.store.changesCount;
  fixture.store.write({ tableId: MESSAGES, owner: 1, operation: "delete", rows });
  await settle();
  expect(fixture.store.changesCount - readsBefore).toBe(1);
  for (const { sink } of opened) expect(sink.changes()).toHaveLength(2);
  expect(late.sink.changes()).toHaveLength(1);
  expect(late.sink.shared.at(-1)).toBe(opened[0]?.sink.shared.at(-1) as never);
});

test("tableChanged: a column that is added during a snapshot does not affect the snapshot", () => {
  const fixture = liveFixture();
  const rows = Array.from({ length: 4 }, (_, id) => message(id, "lobby", id, `text ${id}`));
  fixture.store.write({ tableId: MESSAGES, owner: 1, operation: "insert", rows });
  const { sink, subscription } = fixture.open(NARROW, { batch_size: 2 });
  const table = messagesTable();
  const added = { columnId: 9, name: "added", type: { kind: "int" } as const, missing: 1 };
  fixture.store.defineTable({ ...table, columns: [added, ...table.columns] });
  fixture.sql.schemaVersion = 2;
  fixture.engine.tableChanged(MESSAGES);
  subscription.nextBatch();
  expect(sink.batches().flatMap(({ rows: sent }) => sent.map((row) => row["body"]))).toEqual([
    "text 0",
    "text 1",
    "text 2",
    "text 3",
  ]);
});

/**
 * Opens followers of different rooms, and returns them. There are more than the engine replans in
 * one tick.
 */
function manyRooms(fixture: LiveFixture): RecordingSink[] {
  return Array.from({ length: 100 }, (_, index) => {
    const params = [`room ${index}`];
    return fixture.open(ROOM, null, { id: `m${index}`, params }).sink;
  });
}

test("tableChanged: many queries are reviewed in turn, and a query that will end receives nothing written later", async () => {
  const fixture = liveFixture();
  const sinks = manyRooms(fixture);
  await settle();
  const plannedBefore = fixture.sql.plannedCount;
  fixture.sql.mayRead = false;
  fixture.engine.tableChanged(MESSAGES);
  const toldCount = sinks.filter((sink) => sink.errors().length > 0).length;
  expect(toldCount).toBeGreaterThan(0);
  expect(toldCount).toBeLessThan(50);
  const rows = sinks.map((_, index) => message(index, `room ${index}`));
  fixture.store.write({ tableId: MESSAGES, owner: 1, operation: "insert", rows });
  await until(() => sinks.every((sink) => sink.errors().length > 0));
  expect(sinks.flatMap((sink) => sink.errors()).map(({ code }) => code)).toEqual(
    sinks.map(() => "UNAUTHORIZED"),
  );
  expect(sinks.flatMap((sink) => sink.changes())).toEqual([]);
  expect(fixture.sql.plannedCount - plannedBefore).toBe(sinks.length);
  expect(fixture.engine.subscriptions()).toEqual([]);
});

test("tableChanged: no subscription continues separately or joins a group before its review", async () => {
  const fixture = liveFixture({ subscriptionsPerUser: 0 });
  const rooms = Array.from({ length: 100 }, (_, index) => `room ${index}`);
  // All sockets are full, so no feed reads changes for their subscriptions.
  const opened = rooms.map((room) => {
    const sink = new RecordingSink();
    sink.room = 1;
    return fixture.open(ROOM, null, { id: room, params: [room], sink });
  });
  await settle();
  fixture.sql.refusal = new DatabaseError("PERMISSION_DENIED", "no longer");
  fixture.engine.tableChanged(MESSAGES);
  const rows = rooms.map((room, index) => message(index, room));
  fixture.store.write({ tableId: MESSAGES, owner: 1, operation: "insert", rows });
  for (const { sink, subscription } of opened) {
    sink.room = Infinity;
    subscription.drained();
  }
  expect(() => fixture.open(ROOM, null, { id: "late", params: ["room 99"] })).toThrow(
    SubscriptionError,
  );
  await until(() => opened.every(({ sink }) => sink.errors().length > 0));
  expect(opened.flatMap(({ sink }) => sink.changes())).toEqual([]);
});

test("tableChanged: the members of one group are reviewed in turn, and each is notified once", async () => {
  const fixture = liveFixture({ subscriptionsPerUser: 0 });
  const sinks = Array.from({ length: 400 }, () => fixture.open(EVERYTHING, null).sink);
  await settle();
  fixture.sql.refusal = new DatabaseError("TABLE_NOT_FOUND", "gone");
  fixture.engine.tableChanged(MESSAGES);
  const toldCount = sinks.filter((sink) => sink.errors().length > 0).length;
  expect(toldCount).toBeLessThan(200);
  await until(() => sinks.every((sink) => sink.errors().length > 0));
  expect(sinks.flatMap((sink) => sink.errors())).toHaveLength(sinks.length);
});

test("tableChanged: a subscription that survives a change over several ticks misses and repeats nothing", async () => {
  const fixture = liveFixture({ subscriptionsPerUser: 0 });
  const sinks = manyRooms(fixture);
  const rows = sinks.map((_, index) => message(index, `room ${index}`));
  const write = (operation: TableWrite["operation"]): void =>
    void fixture.store.write({ tableId: MESSAGES, owner: 1, operation, rows });
  await settle();
  write("insert");
  const loading = fixture.open(EVERYTHING, { batch_size: 1 });
  const snapshot = fixture.open(NARROW, { batch_size: 60 });
  fixture.sql.schemaVersion = 2;
  fixture.engine.tableChanged(MESSAGES);
  // The definition changes a second time before the engine has reviewed the first change. In the
  // meantime, a subscription is closed and opened again.
  fixture.engine.tableChanged(MESSAGES);
  write("delete");
  snapshot.subscription.nextBatch();
  loading.subscription.close();
  const late = fixture.open(ROOM, null, { id: "late", params: ["room 99"] });
  write("insert");
  const heard = (type: string): number =>
    snapshot.sink
      .changes()
      .filter((change) => change.change_type === type)
      .reduce((sum, { old_values: old = [], rows: sent }) => sum + sent.length + old.length, 0);
  await until(() => late.sink.changes().length === 1 && heard("insert") === rows.length);
  expect(heard("delete")).toBe(rows.length);
  for (const sink of sinks) {
    expect(sink.changes().map(({ change_type: type }) => type)).toEqual([
      "insert",
      "delete",
      "insert",
    ]);
    expect(sink.errors()).toEqual([]);
  }
  expect(snapshot.sink.batches().flatMap((batch) => batch.rows)).toHaveLength(sinks.length);
});
