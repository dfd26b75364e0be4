/**
 * Verifies that a client that resumes gets exactly the changes it missed, as specified by the wire
 * contract, or a clear refusal.
 */
import { expect, test } from "bun:test";
import { defined } from "../../../src/base/assert.ts";
import type { Seq } from "../../../src/base/seq.ts";
import { SubscriptionError } from "../../../src/live/mod.ts";
import { RecentReplays } from "../../../src/live/replay/recent_replays.ts";
import { ReplayReader } from "../../../src/live/replay/replay_reader.ts";
import type { LivePlan } from "../../../src/sql/mod.ts";
import type { TableWrite } from "../../../src/storage/mod.ts";
import type { Row } from "../../../src/types/mod.ts";
import {
  ANN,
  type LiveFixture,
  liveFixture,
  MESSAGES,
  message,
  messagesTable,
  RecordingSink,
  settle,
} from "../../support/live_fixture.ts";
import { programFor, tickOf } from "../../support/live_parts.ts";
import { ManualClock } from "../../support/manual_clock.ts";

const EVERYTHING = "SELECT * FROM chat.messages";
const LOBBY = "SELECT * FROM chat.messages WHERE room = 'lobby'";

function write(
  fixture: LiveFixture,
  operation: TableWrite["operation"],
  ...rows: Row[]
): { seq: Seq } {
  const commit = fixture.store.write({ tableId: MESSAGES, owner: 1, operation, rows });
  return { seq: commit.lastSeq };
}

/** Returns a replay reader that delivers only the net effect of all changes above a position. */
function latestReader({ store }: LiveFixture, position: Seq, plan: LivePlan): ReplayReader {
  const program = programFor(plan);
  return new ReplayReader({
    store,
    program: () => program,
    mode: "latest",
    position,
    boundary: store.visibleSeq,
    batchSize: 10,
    frameBytesMax: 1 << 20,
    changesMax: 10,
    recent: new RecentReplays(new ManualClock()),
  });
}

/**
 * Returns a short form of each message that a sink received: a single word with the ids of its
 * rows.
 */
function shape(sink: RecordingSink): string[] {
  return sink.messages.map((sent) => {
    switch (sent.type) {
      case "subscription_ack":
        return `ack ${sent.batch_control.last_seq_id}`;
      case "initial_data_batch":
        return `${sent.batch_control.status} ${sent.rows.map((row) => row["id"]).join(",")}`;
      case "change":
        return `${sent.change_type} ${Number((sent.rows[0] ?? sent.old_values?.[0])?.["id"])}`;
      case "error":
        return `error ${sent.code}`;
    }
  });
}

function expectRefused(open: () => unknown): SubscriptionError["response"] {
  try {
    open();
  } catch (error) {
    if (error instanceof SubscriptionError) return error.response;
    throw error;
  }
  throw new Error("it was not refused");
}

test("replay all: replaced old rows arrive in batches, new ones as changes, and rows that leave as deletes", async () => {
  const fixture = liveFixture();
  write(fixture, "insert", message(1, "lobby"), message(2, "lobby"), message(3, "hall"));
  const position = fixture.store.visibleSeq;
  write(fixture, "insert", message(4, "lobby"));
  write(fixture, "update", message(1, "lobby", 1));
  write(fixture, "update", message(2, "hall"));
  write(fixture, "update", message(3, "lobby"));
  write(fixture, "update", message(4, "lobby", 4));
  write(fixture, "delete", message(1, "lobby", 1));
  write(fixture, "insert", message(5, "hall"));
  write(fixture, "update", message(5, "lobby"));
  const last = write(fixture, "insert", message(6, "lobby"));
  const { sink } = fixture.open(LOBBY, { from_seq_id: position });
  expect(shape(sink)).toEqual([
    `ack ${position}`,
    "loading 4,1",
    "delete 2",
    "loading 3",
    "update 4",
    "delete 1",
    "insert 5",
    "ready 6",
  ]);
  const control = sink.batches().map(({ batch_control }) => batch_control);
  expect(control.map(({ batch_num }) => batch_num)).toEqual([0, 1, 2]);
  expect(control.at(-1)?.last_seq_id).toBe(last.seq);
  write(fixture, "insert", message(7, "lobby"));
  await settle();
  expect(shape(sink).at(-1)).toBe("insert 7");
});

test("replay all: the deletion of a row that the client never saw is not sent", () => {
  const fixture = liveFixture();
  write(fixture, "insert", message(1, "hall"));
  const position = fixture.store.visibleSeq;
  write(fixture, "delete", message(1, "hall"));
  write(fixture, "insert", message(2, "hall"));
  const { sink } = fixture.open(LOBBY, { from_seq_id: position });
  expect(shape(sink)).toEqual([`ack ${position}`, "ready "]);
});

test("a request counts batch_size versions, whether they are rows or changes", () => {
  const fixture = liveFixture();
  for (let id = 1; id <= 6; id += 1) write(fixture, "insert", message(id, "lobby"));
  const position = fixture.store.visibleSeq;
  for (let id = 1; id <= 6; id += 1) write(fixture, "delete", message(id, "lobby"));
  write(fixture, "insert", message(7, "lobby"));
  write(fixture, "insert", message(8, "lobby"));
  const { sink, subscription } = fixture.open(LOBBY, { from_seq_id: position, batch_size: 4 });
  const first = [`ack ${position}`, "delete 1", "delete 2", "delete 3", "delete 4", "loading "];
  expect(shape(sink)).toEqual(first);
  subscription.nextBatch();
  expect(shape(sink)).toEqual([...first, "delete 5", "delete 6", "ready 7,8"]);
});

test("after replayChangesMax changes, the replay ends and the rest arrives as live changes", async () => {
  const fixture = liveFixture({ replayChangesMax: 2 });
  for (let id = 1; id <= 5; id += 1) write(fixture, "insert", message(id, "lobby"));
  const position = fixture.store.visibleSeq;
  write(fixture, "insert", message(6, "lobby"));
  write(fixture, "delete", message(1, "lobby"));
  const second = write(fixture, "delete", message(2, "lobby"));
  const third = write(fixture, "update", message(3, "lobby", 3));
  write(fixture, "delete", message(4, "lobby"));
  write(fixture, "update", message(5, "lobby", 5));
  const { sink } = fixture.open(LOBBY, { from_seq_id: position });
  await settle();
  expect(shape(sink)).toEqual([
    `ack ${position}`,
    "loading 6",
    "delete 1",
    "delete 2",
    "ready 3",
    "delete 4",
    "update 5",
  ]);
  expect(second.seq).toBeLessThan(third.seq);
  expect(sink.batches().at(-1)?.batch_control.last_seq_id).toBe(third.seq);
});

test("replayChangesMax 0 ends the replay before the first change", async () => {
  const fixture = liveFixture({ replayChangesMax: 0 });
  write(fixture, "insert", message(1, "lobby"));
  const position = fixture.store.visibleSeq;
  write(fixture, "delete", message(1, "lobby"));
  const { sink } = fixture.open(LOBBY, { from_seq_id: position });
  await settle();
  expect(shape(sink)).toEqual([`ack ${position}`, "ready ", "delete 1"]);
  expect(sink.batches()[0]?.batch_control.last_seq_id).toBe(position);
});

test("replay latest: each key arrives as one row or one delete, at its newest version", () => {
  const fixture = liveFixture();
  for (let id = 1; id <= 5; id += 1) {
    write(fixture, "insert", message(id, id === 5 ? "hall" : "lobby", id));
  }
  const position = fixture.store.visibleSeq;
  write(fixture, "update", message(1, "lobby", 10));
  write(fixture, "update", message(1, "lobby", 11));
  write(fixture, "update", message(2, "hall", 20));
  write(fixture, "update", message(2, "attic", 21));
  write(fixture, "delete", message(3, "lobby", 3));
  write(fixture, "insert", message(3, "lobby", 30));
  const gone = write(fixture, "delete", message(3, "lobby", 30));
  write(fixture, "update", message(5, "attic", 50));
  write(fixture, "delete", message(5, "attic", 50));
  write(fixture, "insert", message(6, "lobby", 60));
  write(fixture, "delete", message(6, "lobby", 60));
  write(fixture, "insert", message(7, "lobby", 70));
  const { sink } = fixture.open(LOBBY, { from_seq_id: position, replay: "latest" });
  expect(shape(sink)).toEqual([
    `ack ${position}`,
    "loading 1",
    "delete 2",
    "delete 3",
    "delete 6",
    "ready 7",
  ]);
  expect(sink.changes()[1]?.old_values).toEqual([
    { id: 3, room: "lobby", n: 30, body: "", _seq: gone.seq, _deleted: true },
  ]);
});

test.each(["all", "latest"] as const)(
  "replay %s: expired versions are skipped, even as predecessors of versions that have not expired",
  (replay) => {
    const fixture = liveFixture();
    fixture.store.defineTable({ ...messagesTable(), ttlMs: 1000 });
    write(fixture, "insert", message(1, "lobby"));
    const position = fixture.store.visibleSeq;
    for (const id of [2, 3]) write(fixture, "insert", message(id, "hall"));
    fixture.clock.advance(900);
    write(fixture, "delete", message(2, "hall"));
    write(fixture, "insert", message(4, "lobby"));
    fixture.clock.advance(200);
    write(fixture, "insert", message(3, "lobby"));
    const { sink } = fixture.open(LOBBY, { from_seq_id: position, replay });
    expect(shape(sink)).toEqual([`ack ${position}`, "ready 4,3"]);
  },
);

test("replay latest: a long walk back takes many ticks and finds the matching version", () => {
  const fixture = liveFixture();
  const { sql, store } = fixture;
  const insert = (row: Row, operation: TableWrite["operation"]): Seq =>
    store.write({ tableId: MESSAGES, owner: 1, operation, rows: [row] }).lastSeq;
  const position = insert(message(9, "hall"), "insert");
  insert(message(1, "lobby"), "insert");
  insert(message(2, "hall"), "insert");
  for (let n = 0; n < 200; n += 1) {
    for (const id of [1, 2]) insert(message(id, "hall", n), "update");
  }
  const reader = latestReader(fixture, position, sql.planLive(ANN, { sql: LOBBY, params: [] }));
  const deleted: unknown[] = [];
  let turnCount = 0;
  for (let isOver = false; !isOver; turnCount += 1) {
    const changesCount = store.changesCount;
    const step = reader.next(tickOf(80));
    expect(store.changesCount - changesCount).toBeLessThan(80);
    if (step?.kind === "change") deleted.push(...step.pending.oldValues.map((row) => row["id"]));
    isOver = step?.kind === "batch" && step.isLast;
  }
  expect(deleted).toEqual([1]);
  expect(turnCount).toBeGreaterThan(20);
});

test("replay latest: the batches before its newest version do not search a key with many versions again", () => {
  const fixture = liveFixture();
  const position = write(fixture, "insert", message(1, "lobby")).seq;
  const versionCount = 4000;
  for (let n = 1; n <= versionCount; n += 1) write(fixture, "update", message(1, "lobby", n));
  const plan = fixture.sql.planLive(ANN, { sql: LOBBY, params: [] });
  const reader = latestReader(fixture, position, plan);
  const step = reader.next(tickOf(10 * versionCount));
  expect(step).toMatchObject({ kind: "batch", rows: [{ id: 1, n: versionCount }], isLast: true });
  expect(fixture.store.scannedCount).toBe(versionCount);
});

test("replay latest: versions are evaluated once, however many ticks a preceding walk takes", () => {
  const fixture = liveFixture();
  const position = write(fixture, "insert", message(9, "hall")).seq;
  for (let n = 0; n < 200; n += 1) {
    write(fixture, n === 0 ? "insert" : "update", message(1, "hall", n));
  }
  for (let id = 10; id < 210; id += 1) write(fixture, "insert", message(id, "lobby"));
  const plan = fixture.sql.planLive(ANN, { sql: LOBBY, params: [] });
  const filter = defined(plan.filter, "the query must have a filter");
  let evaluatedCount = 0;
  const evaluate: typeof filter.evaluate = (batch) => {
    evaluatedCount += batch.rowCount;
    return filter.evaluate(batch);
  };
  const reader = latestReader(fixture, position, { ...plan, filter: { ...filter, evaluate } });
  let turnCount = 0;
  for (let isOver = false; !isOver; turnCount += 1) {
    const step = reader.next(tickOf(40));
    isOver = step?.kind === "batch";
  }
  expect(turnCount).toBeGreaterThan(50);
  // The bound is the sum of the steps of the backward search (200), the rows (200), and one
  // evaluation of the search's first version in each tick.
  expect(evaluatedCount).toBeLessThan(200 + 200 + turnCount);
});

test("replay latest: a client has no position before it has received everything", () => {
  const fixture = liveFixture();
  write(fixture, "insert", message(1, "lobby"), message(2, "lobby"));
  const position = fixture.store.visibleSeq;
  write(fixture, "update", message(2, "lobby", 2));
  const last = write(fixture, "update", message(1, "lobby", 1));
  const options = { from_seq_id: position, replay: "latest", batch_size: 1 } as const;
  const { sink, subscription } = fixture.open(LOBBY, options);
  subscription.nextBatch();
  expect(sink.batches().map(({ batch_control }) => batch_control.last_seq_id)).toEqual([
    position,
    last.seq,
  ]);
});

test("position 0 replays the whole history if it is complete, and otherwise sends a snapshot", () => {
  const fixture = liveFixture();
  write(fixture, "insert", message(1, "lobby"));
  write(fixture, "update", message(1, "lobby", 1));
  write(fixture, "delete", message(1, "lobby", 1));
  write(fixture, "insert", message(2, "lobby"));
  const whole = fixture.open(LOBBY, { from_seq_id: 0 });
  expect(shape(whole.sink)).toEqual(["ack 0", "loading 1", "update 1", "delete 1", "ready 2"]);
  fixture.store.discard(MESSAGES, 1, (fixture.store.visibleSeq - 1) as Seq);
  const partial = fixture.open(LOBBY, { from_seq_id: "0" }, { id: "m2" });
  expect(shape(partial.sink)).toEqual(["ack null", "ready 2"]);
});

test("a position at earliest_seq is served, and one below it is refused with RESUME_EXPIRED and earliest_seq", () => {
  const fixture = liveFixture();
  const first = write(fixture, "insert", message(1, "lobby"));
  const second = write(fixture, "update", message(1, "lobby", 1));
  write(fixture, "update", message(1, "lobby", 2));
  fixture.store.discard(MESSAGES, 1, second.seq);
  const served = fixture.open(LOBBY, { from_seq_id: second.seq });
  expect(shape(served.sink)).toEqual([`ack ${second.seq}`, "ready 1"]);
  expect(expectRefused(() => fixture.open(LOBBY, { from_seq_id: first.seq }))).toEqual({
    type: "error",
    subscription_id: "m1",
    code: "RESUME_EXPIRED",
    message:
      `The changes up to _seq ${second.seq} are no longer kept; subscribe without from_seq_id ` +
      "to load the current rows",
    ended: true,
    earliest_seq: second.seq,
  });
});

test("a position at the newest id is served, and one above it is refused with INVALID_RESUME", () => {
  const fixture = liveFixture();
  const { seq } = write(fixture, "insert", message(1, "lobby"));
  expect(shape(fixture.open(LOBBY, { from_seq_id: seq }).sink)).toEqual([`ack ${seq}`, "ready "]);
  const digits = ["9".repeat(30), "9".repeat(400)];
  for (const position of [seq + 1, String(seq + 1), ...digits, 2 ** 60]) {
    const refusal = expectRefused(() => fixture.open(LOBBY, { from_seq_id: position }));
    expect(refusal).toMatchObject({ code: "INVALID_RESUME", ended: true });
  }
});

test("from is read if from_seq_id is absent, and both override last_rows", () => {
  const fixture = liveFixture();
  const { seq } = write(fixture, "insert", message(1, "lobby"));
  write(fixture, "insert", message(2, "lobby"));
  const options = { from: String(seq), from_seq_id: null, last_rows: 50 };
  expect(shape(fixture.open(LOBBY, options).sink)).toEqual([`ack ${seq}`, "ready 2"]);
  const both = { from: 0, from_seq_id: seq };
  expect(shape(fixture.open(LOBBY, both).sink)).toEqual([`ack ${seq}`, "ready 2"]);
});

test("changes made during a replay are delivered after it", async () => {
  const fixture = liveFixture();
  write(fixture, "insert", message(1, "lobby"), message(2, "lobby"));
  const position = fixture.store.visibleSeq;
  for (let id = 3; id <= 6; id += 1) write(fixture, "insert", message(id, "lobby"));
  const { sink, subscription } = fixture.open(LOBBY, { from_seq_id: position, batch_size: 2 });
  write(fixture, "delete", message(3, "lobby"));
  write(fixture, "delete", message(6, "lobby"));
  await settle();
  subscription.nextBatch();
  await settle();
  expect(shape(sink)).toEqual([
    `ack ${position}`,
    "loading 3,4",
    "ready 5,6",
    "delete 3",
    "delete 6",
  ]);
});

test("a socket that fills up during a replay loses and repeats nothing", async () => {
  const fixture = liveFixture();
  for (let id = 1; id <= 9; id += 1) write(fixture, "insert", message(id, "lobby"));
  const position = fixture.store.visibleSeq;
  for (let id = 1; id <= 9; id += 1) {
    write(fixture, id % 3 === 0 ? "delete" : "update", message(id, "lobby", 1));
  }
  const sink = new RecordingSink();
  sink.room = 1;
  const { subscription } = fixture.open(EVERYTHING, { from_seq_id: position }, { sink });
  for (let round = 0; round < 12; round += 1) {
    await settle();
    sink.room = 1;
    subscription.drained();
  }
  expect(shape(sink)).toEqual([
    `ack ${position}`,
    "loading 1,2",
    "delete 3",
    "loading 4,5",
    "delete 6",
    "loading 7,8",
    "delete 9",
    "ready ",
  ]);
  expect(subscription.position).toBe(fixture.store.visibleSeq);
});

test("a replay ends with RESUME_EXPIRED if its history expires while it loads", () => {
  const fixture = liveFixture();
  write(fixture, "insert", message(1, "lobby"), message(2, "lobby"));
  const position = fixture.store.visibleSeq;
  for (let n = 0; n < 4; n += 1) write(fixture, "update", message(1, "lobby", n));
  const options = { from_seq_id: position, batch_size: 1 };
  const { sink, subscription } = fixture.open(LOBBY, options);
  fixture.store.discard(MESSAGES, 1, fixture.store.visibleSeq);
  subscription.nextBatch();
  expect(sink.errors()).toMatchObject([{ code: "RESUME_EXPIRED", ended: true }]);
});
