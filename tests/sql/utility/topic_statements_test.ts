/**
 * Tests CONSUME, ACK, KILL CONSUMER and the system views of topics: their requests to the topics
 * layer, their results, and their refusals.
 */
import { afterAll, beforeAll, beforeEach, expect, test } from "bun:test";
import { ManualClock } from "../../support/manual_clock.ts";
import { ModelTopics } from "../../support/model_topics.ts";
import { TestEngine } from "../../support/sql_engine.ts";
import { until } from "../../support/until.ts";

let engine: TestEngine;
let topics: ModelTopics;
let topicId: number;

beforeAll(async () => {
  engine = await TestEngine.open();
  engine.database.topics = new ModelTopics();
  await engine.run(`
    CREATE NAMESPACE app;
    CREATE USER sam INTERNAL ROLE service;
    CREATE TOPIC app.feed PARTITIONS 2`);
  topicId = engine.database.catalog.topic("app", "feed")?.topicId ?? -1;
});
afterAll(() => engine[Symbol.asyncDispose]());
beforeEach(() => {
  engine.userId = "root";
  topics = new ModelTopics();
  engine.database.topics = topics;
});

const COLUMNS = [
  "topic_id",
  "partition_id",
  "offset",
  "key",
  "payload",
  "timestamp_ms",
  "user_id",
  "op",
  "deliveries",
];

test("CONSUME without a group returns messages and acknowledges nothing", async () => {
  engine.userId = "sam";
  topics.publish(topicId, { payload: '{"id":1}', user: "uma", op: "Delete" });
  topics.publish(topicId, { key: null, deliveries: 3 });
  const [result] = await engine.run("CONSUME FROM app.feed FROM EARLIEST");
  expect(result?.schema?.map(({ name }) => name)).toEqual(COLUMNS);
  expect(result?.rowCount).toBe(2);
  expect(result?.rows).toEqual([
    ["app.feed", 0, 0, "0", '{"id":1}', 1000, "uma", "Delete", 1],
    ["app.feed", 0, 1, null, "{}", 1001, null, "Insert", 3],
  ]);
  expect(await engine.rows("CONSUME FROM app.feed FROM EARLIEST")).toHaveLength(2);
  expect(await engine.rows("CONSUME FROM app.feed FROM 1")).toHaveLength(1);
  expect(await engine.rows("CONSUME FROM app.feed FROM 9")).toEqual([]);
  expect(await engine.rows("CONSUME FROM app.feed")).toEqual([]);
  expect(await engine.rows("CONSUME FROM app.feed FROM LATEST")).toEqual([]);
  expect(await engine.rows("CONSUME FROM app.feed PARTITION 1 FROM EARLIEST")).toEqual([]);
  expect(await engine.rows("CONSUME FROM app.feed PARTITION 99 FROM EARLIEST")).toEqual([]);
  expect(
    await engine.rows("CONSUME FROM feed FROM EARLIEST LIMIT 1", { namespace: "app" }),
  ).toHaveLength(1);
});

test("CONSUME for a group acknowledges the messages that it returns, except with NO ACK", async () => {
  for (let count = 0; count < 5; count += 1) topics.publish(topicId);
  const offsets = async (sql: string, params: readonly (string | number)[] = []) =>
    (await engine.rows(sql, { params })).map(([, , offset]) => offset);
  expect(await offsets("CONSUME FROM app.feed GROUP 'g' FROM EARLIEST LIMIT 2 NO ACK")).toEqual([
    0, 1,
  ]);
  expect(topics.isAcked({ topicId, group: "g", offset: 0 })).toBe(false);
  expect(await offsets("CONSUME FROM app.feed GROUP 'g' FROM EARLIEST LIMIT 2")).toEqual([0, 1]);
  expect(topics.isAcked({ topicId, group: "g", offset: 1 })).toBe(true);
  expect(
    await offsets("CONSUME FROM app.feed PARTITION $1 GROUP $2 FROM $3 LIMIT $4", [0, "g", 0, 2]),
  ).toEqual([2, 3]);
  expect(await offsets("CONSUME FROM app.feed GROUP 'h' FROM EARLIEST LIMIT 1")).toEqual([0]);
  expect(topics.openAcks).toBe(0);
});

test("ACK returns the last offset up to which a group has acknowledged everything", async () => {
  for (let count = 0; count < 5; count += 1) topics.publish(topicId);
  const [result] = await engine.run("ACK app.feed GROUP 'g' OFFSETS (2, 1, 2)");
  expect(result?.schema?.map(({ name }) => name)).toEqual([
    "topic",
    "group_id",
    "partition",
    "committed_offset",
  ]);
  expect(result?.rows).toEqual([["app.feed", "g", 0, null]]);
  expect(await engine.rows("ACK app.feed GROUP 'g' UPTO OFFSET 0")).toEqual([
    ["app.feed", "g", 0, 2],
  ]);
  expect(await engine.rows("ACK app.feed GROUP 'g' UPTO OFFSET 0")).toEqual([
    ["app.feed", "g", 0, 2],
  ]);
  expect(
    await engine.rows("ACK app.feed GROUP $1 PARTITION $2 OFFSETS ($3, $4)", {
      params: ["g", 0, 3, "4"],
    }),
  ).toEqual([["app.feed", "g", 0, 4]]);
  expect(topics.openAcks).toBe(0);
});

test.each<[string, string, (string | number | boolean | null)[]?]>([
  ["CONSUME FROM app.none", "OBJECT_NOT_FOUND"],
  ["CONSUME FROM nowhere.feed", "OBJECT_NOT_FOUND"],
  ["CONSUME FROM app.feed PARTITION 'a'", "INVALID_SQL"],
  ["CONSUME FROM app.feed GROUP g", "INVALID_SQL"],
  ["CONSUME FROM app.feed GROUP ''", "INVALID_VALUE"],
  [`CONSUME FROM app.feed GROUP '${"é".repeat(65)}'`, "INVALID_VALUE"],
  ["CONSUME FROM app.feed GROUP $1", "INVALID_PARAMETER", [7]],
  ["CONSUME FROM app.feed GROUP $1", "INVALID_PARAMETER", [null]],
  ["CONSUME FROM app.feed LIMIT $2 GROUP $1", "INVALID_SQL", ["g", 1]],
  ["CONSUME FROM app.feed LIMIT $2", "INVALID_PARAMETER", ["g", 1]],
  ["CONSUME FROM app.feed LIMIT 0", "VALUE_OUT_OF_RANGE"],
  ["CONSUME FROM app.feed LIMIT 10001", "VALUE_OUT_OF_RANGE"],
  ["CONSUME FROM app.feed LIMIT 1 + 1", "INVALID_SQL"],
  ["CONSUME FROM app.feed LIMIT $1", "INVALID_PARAMETER", [1.5]],
  ["CONSUME FROM app.feed LIMIT $1", "INVALID_PARAMETER", [true]],
  ["CONSUME FROM app.feed LIMIT $1", "VALUE_OUT_OF_RANGE", [-1]],
  ["CONSUME FROM app.feed FROM -1", "VALUE_OUT_OF_RANGE"],
  ["CONSUME FROM app.feed FROM 9007199254740993", "VALUE_OUT_OF_RANGE"],
  ["CONSUME FROM app.feed FROM NEWEST", "INVALID_SQL"],
  ["CONSUME app.feed", "INVALID_SQL"],
  ["ACK app.none GROUP 'g' UPTO OFFSET 1", "OBJECT_NOT_FOUND"],
  ["ACK app.feed UPTO OFFSET 1", "INVALID_SQL"],
  ["ACK app.feed GROUP 'g'", "INVALID_SQL"],
  ["ACK app.feed GROUP 'g' OFFSETS ()", "INVALID_SQL"],
  ["ACK app.feed GROUP 'g' OFFSETS (1.5)", "INVALID_SQL"],
  ["ACK app.feed GROUP 'g' OFFSETS (99)", "VALUE_OUT_OF_RANGE"],
  ["ACK app.feed GROUP 'g' UPTO OFFSET 99", "VALUE_OUT_OF_RANGE"],
  ["ACK app.feed GROUP 'g' PARTITION 2 UPTO OFFSET 0", "VALUE_OUT_OF_RANGE"],
  ["KILL CONSUMER 'none'", "OBJECT_NOT_FOUND"],
  ["EXPLAIN CONSUME FROM app.feed", "INVALID_SQL"],
  ["EXECUTE AS USER 'sam' (ACK app.feed GROUP 'g' UPTO OFFSET 0)", "PERMISSION_DENIED"],
  ["BEGIN; CONSUME FROM app.feed; COMMIT", "INVALID_TRANSACTION_STATE"],
  ["SELECT 1; ACK app.feed GROUP $1 UPTO OFFSET 0", "PARAMS_WITH_BATCH", ["g"]],
])("%s is refused with %s", async (sql, code, params = []) => {
  topics.publish(topicId);
  expect((await engine.failure(sql, { params })).split("@")[0]).toBe(code);
  expect(topics.openAcks).toBe(0);
});

test("limits.max_result_rows limits the messages of one CONSUME", async () => {
  await using small = await TestEngine.open({ config: "[limits]\nmax_result_rows = 3" });
  const model = new ModelTopics();
  small.database.topics = model;
  await small.run("CREATE TOPIC feed");
  const id = small.database.catalog.topic("default", "feed")?.topicId ?? -1;
  for (let count = 0; count < 5; count += 1) model.publish(id);
  expect(await small.rows("CONSUME FROM feed FROM EARLIEST")).toHaveLength(3);
  expect(await small.failure("CONSUME FROM feed FROM EARLIEST LIMIT 4")).toStartWith(
    "VALUE_OUT_OF_RANGE",
  );
});

test("check mode of CONSUME and ACK reports faults, but has no effect", async () => {
  topics.publish(topicId);
  const [checked] = await engine.run("ACK app.feed GROUP 'g' UPTO OFFSET 0", { check: true });
  expect(checked?.message).toBe("checked");
  expect(topics.isAcked({ topicId, group: "g", offset: 0 })).toBe(false);
  expect((await engine.ask("CONSUME FROM app.none", { check: true })).error?.code).toBe(
    "OBJECT_NOT_FOUND",
  );
});

test("the system views list topics, groups and consumers, which KILL CONSUMER ends", async () => {
  for (let count = 0; count < 3; count += 1) topics.publish(topicId);
  await engine.run("CONSUME FROM app.feed GROUP 'g' FROM EARLIEST LIMIT 2");
  const [topic] = await engine.rows(`
    SELECT topic_id, messages, message_bytes, held_versions, held_bytes, status, max_deliveries
    FROM system.topics`);
  expect(topic).toEqual([
    "app.feed",
    3,
    20,
    3,
    300,
    "2 messages of table app.gone cannot be read; it was dropped",
    null,
  ]);
  expect(await engine.rows("SELECT * FROM system.topic_offsets")).toEqual([
    ["app.feed", "g", 0, 1, 7_000_000],
  ]);
  expect(await engine.rows("SELECT * FROM system.topic_consumers")).toEqual([
    ["Cg", "app.feed", "g", 0, "root", 4, 40, 2, 1, 9_000_000],
  ]);
  const [killed] = await engine.run("KILL CONSUMER 'Cg'");
  expect(killed?.message).toBe("Consumer Cg killed");
  expect(await engine.rows("SELECT * FROM system.topic_consumers")).toEqual([]);
});

test("CONSUME ends at its time limit and with KILL QUERY, and notifies the topics layer", async () => {
  const clock = new ManualClock();
  await using own = await TestEngine.open({ clock });
  const model = new ModelTopics();
  own.database.topics = model;
  await own.run("CREATE TOPIC feed");
  const signals: (AbortSignal | undefined)[] = [];
  model.whileConsuming = (signal) => {
    signals.push(signal);
    return new Promise(() => undefined);
  };
  const late = own.ask("CONSUME FROM feed FROM EARLIEST", { timeoutMs: 500 });
  await until(() => signals.length === 1);
  clock.advance(500);
  expect((await late).error?.code).toBe("STATEMENT_TIMEOUT");
  expect(signals[0]?.aborted).toBe(true);
  const killed = own.ask("CONSUME FROM feed GROUP 'g'");
  await until(() => signals.length === 2);
  const [[queryId] = []] = await own.rows(
    "SELECT query_id FROM system.queries WHERE sql LIKE 'CONSUME%'",
  );
  await own.run(`KILL QUERY '${String(queryId)}'`);
  expect((await killed).error?.code).toBe("CANCELLED");
  expect(signals[1]?.aborted).toBe(true);
});
