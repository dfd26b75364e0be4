/**
 * Tests CREATE TOPIC, ALTER TOPIC, CLEAR TOPIC and DROP TOPIC, and how changes to tables and
 * namespaces affect topics.
 */
import { afterAll, beforeAll, beforeEach, expect, test } from "bun:test";
import { ModelTopics } from "../../support/model_topics.ts";
import { TestEngine } from "../../support/sql_engine.ts";

let engine: TestEngine;
let topics: ModelTopics;

beforeAll(async () => {
  engine = await TestEngine.open();
  await engine.run(`
    CREATE NAMESPACE app;
    CREATE USER sam INTERNAL ROLE service;
    CREATE USER uma INTERNAL;
    CREATE USER dora INTERNAL ROLE dba;
    CREATE TABLE app.jobs (id INT PRIMARY KEY, kind TEXT, size INT, note TEXT);
    CREATE USER TABLE app.notes (id INT PRIMARY KEY, text TEXT)`);
});
afterAll(() => engine[Symbol.asyncDispose]());
beforeEach(() => {
  engine.userId = "root";
  topics = new ModelTopics();
  engine.database.topics = topics;
});

const topicOf = (name: string) => engine.database.catalog.topic("app", name);
const sourcesOf = (name: string) => topicOf(name)?.sources ?? [];

test("CREATE TOPIC keeps its partitions and options, and IF NOT EXISTS leaves a topic unchanged", async () => {
  const [created] = await engine.run("CREATE TOPIC app.first");
  expect(created?.message).toBe("Topic app.first created");
  expect(topics.changes).toBe(1);
  expect(topicOf("first")).toMatchObject({
    partitions: 1,
    retentionHours: 168,
    retentionBytes: 1024 ** 3,
    sources: [],
    createdBy: "root",
  });
  const [again] = await engine.run("CREATE TOPIC IF NOT EXISTS app.first PARTITIONS 4");
  expect(again?.message).toBe("Topic app.first already exists");
  expect(topicOf("first")?.partitions).toBe(1);
  await engine.run(`
    CREATE TOPIC app.second PARTITIONS 1024
      WITH (RETENTION_HOURS = 2, retention_bytes = '4096', MAX_DELIVERIES = 3, DEAD_LETTER = 'app.first')`);
  expect(topicOf("second")).toMatchObject({
    partitions: 1024,
    retentionHours: 2,
    retentionBytes: 4096,
    maxDeliveries: 3,
    deadLetter: "app.first",
  });
  await engine.run(
    "ALTER TOPIC app.second SET (MAX_DELIVERIES = 0, DEAD_LETTER = '', RETENTION_HOURS = 5)",
  );
  expect(topicOf("second")).toMatchObject({ retentionHours: 5, retentionBytes: 4096 });
  expect(topicOf("second")?.deadLetter).toBeUndefined();
  expect(topicOf("second")?.maxDeliveries).toBeUndefined();
  await engine.run("DROP TOPIC app.second; DROP TOPIC app.first");
});

test.each<[string, string]>([
  ["CREATE TOPIC app.jobs", "ALREADY_EXISTS"],
  ["CREATE TOPIC IF NOT EXISTS app.jobs", "ALREADY_EXISTS"],
  ["CREATE TOPIC app.taken; CREATE TOPIC app.taken", "ALREADY_EXISTS"],
  ["CREATE TABLE app.taken (id INT PRIMARY KEY)", "ALREADY_EXISTS"],
  ["CREATE TABLE IF NOT EXISTS app.taken (id INT PRIMARY KEY)", "ALREADY_EXISTS"],
  ["CREATE VIEW app.taken AS SELECT 1 AS one", "ALREADY_EXISTS"],
  ["CREATE TOPIC nowhere.t", "NAMESPACE_NOT_FOUND"],
  ["CREATE TOPIC system.t", "RESERVED_NAME"],
  [`CREATE TOPIC app."a b"`, "INVALID_NAME"],
  ["CREATE TOPIC app.t PARTITIONS 0", "INVALID_OPTION"],
  ["CREATE TOPIC app.t PARTITIONS 1025", "INVALID_OPTION"],
  ["CREATE TOPIC app.t PARTITIONS -1", "INVALID_SQL"],
  ["CREATE TOPIC app.t WITH (RETENTION_HOURS = 0)", "INVALID_OPTION"],
  ["CREATE TOPIC app.t WITH (RETENTION_HOURS = 87601)", "INVALID_OPTION"],
  ["CREATE TOPIC app.t WITH (RETENTION_HOURS = 1.5)", "INVALID_OPTION"],
  ["CREATE TOPIC app.t WITH (RETENTION_HOURS = 1, retention_hours = 2)", "INVALID_OPTION"],
  ["CREATE TOPIC app.t WITH (RETENTION_BYTES = 'much')", "INVALID_OPTION"],
  ["CREATE TOPIC app.t WITH (COLOUR = 'red')", "INVALID_OPTION"],
  ["CREATE TOPIC app.t WITH (PARTITIONS = 4)", "INVALID_OPTION"],
  ["CREATE TOPIC app.t WITH (MAX_DELIVERIES = 3)", "INVALID_OPTION"],
  ["CREATE TOPIC app.t WITH (DEAD_LETTER = 'app.taken')", "INVALID_OPTION"],
  ["CREATE TOPIC app.t WITH (MAX_DELIVERIES = 1001, DEAD_LETTER = 'app.taken')", "INVALID_OPTION"],
  ["CREATE TOPIC app.t WITH (MAX_DELIVERIES = 3, DEAD_LETTER = 'app.t')", "INVALID_OPTION"],
  ["CREATE TOPIC app.t WITH (MAX_DELIVERIES = 3, DEAD_LETTER = 'app.none')", "OBJECT_NOT_FOUND"],
  ["CREATE TOPIC app.t WITH (MAX_DELIVERIES = 3, DEAD_LETTER = 'taken')", "OBJECT_NOT_FOUND"],
  ["ALTER TOPIC app.none SET (RETENTION_HOURS = 1)", "OBJECT_NOT_FOUND"],
  ["ALTER TOPIC app.taken ADD SOURCE app.none ON INSERT", "TABLE_NOT_FOUND"],
  ["ALTER TOPIC app.taken ADD SOURCE system.users ON INSERT", "READ_ONLY_OBJECT"],
  ["ALTER TOPIC app.taken ADD SOURCE app.jobs ON TRUNCATE", "INVALID_SQL"],
  ["ALTER TOPIC app.taken ADD SOURCE app.jobs ON INSERT WHERE none = 1", "COLUMN_NOT_FOUND"],
  ["ALTER TOPIC app.taken ADD SOURCE app.jobs ON INSERT WHERE kind", "TYPE_MISMATCH"],
  ["ALTER TOPIC app.taken ADD SOURCE app.jobs ON INSERT WHERE size = $1", "INVALID_PARAMETER"],
  [
    "ALTER TOPIC app.taken ADD SOURCE app.jobs ON INSERT WHERE size < random()",
    "INVALID_DEFINITION",
  ],
  [
    "ALTER TOPIC app.taken ADD SOURCE app.jobs ON INSERT WHERE kind = CURRENT_USER",
    "INVALID_DEFINITION",
  ],
  [
    "ALTER TOPIC app.taken ADD SOURCE app.jobs ON INSERT WHERE size IN (SELECT 1)",
    "INVALID_DEFINITION",
  ],
  ["ALTER TOPIC app.taken ADD SOURCE app.jobs ON INSERT WHERE count(*) > 1", "INVALID_QUERY"],
  ["ALTER TOPIC app.taken ADD SOURCE app.jobs ON INSERT WITH (payload = 'all')", "INVALID_OPTION"],
  ["ALTER TOPIC app.taken ADD SOURCE app.jobs ON INSERT WITH (format = 'key')", "INVALID_OPTION"],
  ["ALTER TOPIC app.taken DROP SOURCE app.jobs ON INSERT", "OBJECT_NOT_FOUND"],
  ["CLEAR TOPIC app.none", "OBJECT_NOT_FOUND"],
  ["DROP TOPIC app.none", "OBJECT_NOT_FOUND"],
  ["DROP TOPIC nowhere.t", "NAMESPACE_NOT_FOUND"],
  ["DESCRIBE TOPIC app.none", "OBJECT_NOT_FOUND"],
  ["SHOW TOPICS IN nowhere", "NAMESPACE_NOT_FOUND"],
  ["BEGIN; CREATE TOPIC app.t; COMMIT", "INVALID_TRANSACTION_STATE"],
  ["BEGIN; DROP TOPIC app.taken; COMMIT", "INVALID_TRANSACTION_STATE"],
  ["EXPLAIN DROP TOPIC app.taken", "INVALID_SQL"],
  ["EXECUTE AS USER 'uma' (CLEAR TOPIC app.taken)", "PERMISSION_DENIED"],
])("%s is refused with %s", async (sql, code) => {
  if (topicOf("taken") === undefined) await engine.run("CREATE TOPIC app.taken");
  const params = sql.includes("$1") ? [1] : [];
  expect((await engine.failure(sql, { params })).split("@")[0]).toBe(code);
  expect(topicOf("t")).toBeUndefined();
});

test("a service may not define topics, and a user may not even list them", async () => {
  engine.userId = "sam";
  for (const sql of [
    "CREATE TOPIC app.t",
    "ALTER TOPIC app.taken SET (RETENTION_HOURS = 1)",
    "CLEAR TOPIC app.taken",
    "DROP TOPIC app.taken",
    "DROP TOPIC IF EXISTS app.none",
    "KILL CONSUMER 'c'",
    "SELECT * FROM system.topics",
  ]) {
    expect([sql, (await engine.failure(sql)).split("@")[0]]).toEqual([sql, "PERMISSION_DENIED"]);
  }
  expect((await engine.rows("SHOW TOPICS IN app")).map(([topicId]) => topicId)).toEqual([
    "app.taken",
  ]);
  engine.userId = "uma";
  for (const sql of ["SHOW TOPICS", "DESCRIBE TOPIC app.taken", "CONSUME FROM app.taken"]) {
    expect([sql, (await engine.failure(sql)).split("@")[0]]).toEqual([sql, "PERMISSION_DENIED"]);
  }
  engine.userId = "dora";
  await engine.run("CREATE TOPIC app.t; DROP TOPIC app.t");
});

test("ALTER TOPIC adds and drops sources, and keeps dropped ones with the seqs of both changes", async () => {
  await engine.run(`
    CREATE TOPIC app.feed;
    ALTER TOPIC app.feed ADD SOURCE app.jobs ON INSERT WHERE kind = 'mail' AND size > 3;
    ALTER TOPIC app.feed ADD SOURCE app.jobs ON DELETE WITH (payload = 'KEY');
    ALTER TOPIC app.feed ADD SOURCE app.notes ON UPDATE WITH (PAYLOAD = diff)`);
  const [insert, remove, update] = sourcesOf("feed");
  expect(insert).toMatchObject({ sourceId: 1, operation: "insert", payload: "full" });
  expect(insert?.where).toBe("kind = 'mail' AND size > 3");
  expect(remove).toMatchObject({ sourceId: 2, operation: "delete", payload: "key" });
  expect(update).toMatchObject({ sourceId: 3, operation: "update", payload: "diff" });
  expect(insert?.fromSeq).toBeGreaterThan(topicOf("feed")?.createdSeq ?? Infinity);
  expect(await engine.failure("ALTER TOPIC app.feed ADD SOURCE app.jobs ON INSERT")).toStartWith(
    "ALREADY_EXISTS",
  );
  await engine.run(`
    ALTER TOPIC app.feed DROP SOURCE app.jobs ON INSERT;
    ALTER TOPIC app.feed ADD SOURCE app.jobs ON INSERT`);
  const [dropped, , , added] = sourcesOf("feed");
  expect(dropped?.toSeq).toBeGreaterThan(dropped?.fromSeq ?? Infinity);
  expect(added).toMatchObject({ sourceId: 4, operation: "insert" });
  expect(added?.fromSeq).toBeGreaterThan(dropped?.toSeq ?? Infinity);
  const described = await engine.rows("DESCRIBE TOPIC app.feed");
  expect(described.map((row) => row.slice(0, 4))).toEqual([
    ["app.jobs", "insert", "kind = 'mail' AND size > 3", "full"],
    ["app.jobs", "delete", null, "key"],
    ["app.notes", "update", null, "diff"],
    ["app.jobs", "insert", null, "full"],
  ]);
  const [topic] = await engine.rows(
    "SELECT topic_id, partitions, retention_seconds, routes FROM system.topics WHERE name = 'feed'",
  );
  expect(topic?.slice(0, 3)).toEqual(["app.feed", 1, 604_800]);
  expect(JSON.parse(String(topic?.[3]))).toEqual([
    { table: "app.jobs", on: "delete", payload: "key" },
    { table: "app.notes", on: "update", payload: "diff" },
    { table: "app.jobs", on: "insert", payload: "full" },
  ]);
  await engine.run("DROP TOPIC app.feed");
});

test("a table without a primary key has no key to publish", async () => {
  await engine.run(
    "CREATE STREAM TABLE app.typing (who TEXT) WITH (TTL_SECONDS = 60); CREATE TOPIC app.t",
  );
  expect(
    await engine.failure(
      "ALTER TOPIC app.t ADD SOURCE app.typing ON INSERT WITH (payload = 'key')",
    ),
  ).toStartWith("INVALID_OPTION");
  await engine.run("DROP TABLE app.typing; DROP TOPIC app.t");
});

test("CLEAR TOPIC and DROP TOPIC return a job that has ended, and are audited", async () => {
  await engine.run("CREATE TOPIC app.gone");
  const before = topicOf("gone")?.clearedSeq;
  const [cleared] = await engine.rows("CLEAR TOPIC app.gone");
  expect(cleared?.slice(1)).toEqual([
    "clear",
    "completed",
    "app",
    "gone",
    "topic app.gone cleared",
  ]);
  expect(before).toBe(0);
  expect(topicOf("gone")?.clearedSeq).toBeGreaterThan(topicOf("gone")?.createdSeq ?? Infinity);
  const [dropped] = await engine.rows("USE app; DROP TOPIC gone");
  expect(dropped?.slice(1)).toEqual([
    "clear",
    "completed",
    "app",
    "gone",
    "topic app.gone dropped",
  ]);
  expect(topicOf("gone")).toBeUndefined();
  const [missing] = await engine.rows("DROP TOPIC IF EXISTS app.gone");
  expect(missing).toEqual([
    null,
    "clear",
    "skipped",
    "app",
    "gone",
    "topic app.gone does not exist",
  ]);
  const jobs = await engine.rows(
    "SELECT job_id, status, parameters FROM system.jobs WHERE job_type = 'clear' AND job_id = $1",
    { params: [String(dropped?.[0])] },
  );
  expect(jobs).toEqual([[String(dropped?.[0]), "completed", '{"topic":"app.gone"}']]);
  const audited = await engine.rows(
    "SELECT action, outcome FROM system.audit_log WHERE target = 'app.gone' ORDER BY audit_id",
  );
  expect(audited).toEqual([
    ["create topic", "ok"],
    ["clear topic", "ok"],
    ["drop topic", "ok"],
    ["drop topic", "ok"],
  ]);
});

test("a dead-letter topic cannot be dropped while another topic uses it", async () => {
  await engine.run(`
    CREATE NAMESPACE other;
    CREATE TOPIC other.dead;
    CREATE TOPIC app.work WITH (MAX_DELIVERIES = 2, DEAD_LETTER = 'other.dead')`);
  expect(await engine.failure("DROP TOPIC other.dead")).toStartWith("DEPENDENT_OBJECTS");
  expect(await engine.failure("DROP NAMESPACE other CASCADE")).toStartWith("DEPENDENT_OBJECTS");
  await engine.run("DROP TOPIC app.work; DROP NAMESPACE other CASCADE");
  expect(engine.database.catalog.namespace("other")).toBeUndefined();
});

test("a text may define a topic and then use it", async () => {
  await engine.run(`
    CREATE TABLE app.once (id INT PRIMARY KEY);
    CREATE TOPIC app.t;
    ALTER TOPIC app.t ADD SOURCE app.once ON INSERT;
    DESCRIBE TOPIC app.t;
    CLEAR TOPIC app.t;
    DROP TOPIC app.t;
    CREATE TOPIC app.t;
    DROP TOPIC app.t;
    DROP TABLE app.once`);
  expect(topicOf("t")).toBeUndefined();
});

test("RENAME COLUMN preserves the meaning of a condition, even if two names are exchanged", async () => {
  await engine.run(`
    CREATE TABLE app.pairs (id INT PRIMARY KEY, a INT, b INT, "A B" INT);
    CREATE TOPIC app.t;
    ALTER TOPIC app.t ADD SOURCE app.pairs ON INSERT WHERE a > 1 AND pairs.b < a AND "A B" = 0`);
  const tableId = engine.database.catalog.table("app", "pairs")?.tableId ?? -1;
  await engine.run('ALTER TABLE app.pairs RENAME COLUMN a TO "From"');
  expect(sourcesOf("t")[0]?.where).toBe(`"From" > 1 AND pairs.b < "From" AND "A B" = 0`);
  expect(topics.held).toEqual([tableId]);
  expect(topics.released).toEqual([tableId]);
  await engine.run(`
    ALTER TABLE app.pairs RENAME COLUMN "From" TO c, RENAME COLUMN b TO a, RENAME COLUMN c TO b`);
  expect(sourcesOf("t")[0]?.where).toBe(`b > 1 AND a < b AND "A B" = 0`);
  await engine.restart();
  engine.database.topics = topics;
  expect(sourcesOf("t")[0]?.where).toBe(`b > 1 AND a < b AND "A B" = 0`);
  await engine.run("DROP TOPIC app.t; DROP TABLE app.pairs");
});

test("a column that a condition reads is dropped only with CASCADE, together with its source", async () => {
  await engine.run(`
    CREATE TABLE app.wide (id INT PRIMARY KEY, a INT, b SMALLINT, c INT);
    CREATE TOPIC app.t;
    ALTER TOPIC app.t ADD SOURCE app.wide ON INSERT WHERE a > 1;
    ALTER TOPIC app.t ADD SOURCE app.wide ON UPDATE WHERE b > 1`);
  expect(await engine.failure("ALTER TABLE app.wide DROP COLUMN a")).toStartWith(
    "DEPENDENT_OBJECTS",
  );
  expect(
    await engine.failure("ALTER TABLE app.wide DROP COLUMN a, DROP COLUMN c CASCADE"),
  ).toStartWith("DEPENDENT_OBJECTS");
  await engine.run("ALTER TABLE app.wide DROP COLUMN c, ALTER COLUMN b TYPE BIGINT");
  expect(sourcesOf("t").map(({ toSeq }) => toSeq)).toEqual([undefined, undefined]);
  await engine.run("ALTER TABLE app.wide DROP COLUMN a CASCADE");
  const [ended, kept] = sourcesOf("t");
  expect(ended?.toSeq).toBeGreaterThan(0);
  expect(ended?.where).toBe("a > 1");
  expect(kept?.toSeq).toBeUndefined();
  await engine.run("ALTER TABLE app.wide RENAME COLUMN b TO a");
  expect(sourcesOf("t").map(({ where }) => where)).toEqual(["a > 1", "a > 1"]);
  expect(sourcesOf("t")[0]?.toSeq).toBe(ended?.toSeq);
  await engine.run("DROP TOPIC app.t; DROP TABLE app.wide");
});

test("DROP TABLE ends the sources of its topics once their offsets are durable", async () => {
  await engine.run(`
    CREATE TABLE app.one (id INT PRIMARY KEY);
    CREATE TABLE app.two (id INT PRIMARY KEY);
    CREATE TABLE app.three (id INT PRIMARY KEY);
    CREATE TOPIC app.t;
    ALTER TOPIC app.t ADD SOURCE app.one ON INSERT;
    ALTER TOPIC app.t ADD SOURCE app.two ON INSERT`);
  const ids = ["one", "two"].map(
    (name) => engine.database.catalog.table("app", name)?.tableId ?? -1,
  );
  const stillThere: boolean[] = [];
  topics.whileHolding = async () => {
    stillThere.push(engine.database.catalog.table("app", "one") !== undefined);
  };
  const changes = topics.changes;
  await engine.run("DROP TABLE app.three, app.one, app.two");
  expect(topics.held).toEqual(ids);
  expect(topics.released).toEqual(ids);
  expect(stillThere).toEqual([true, true]);
  expect(topics.changes).toBeGreaterThan(changes);
  expect(sourcesOf("t").map(({ toSeq }) => toSeq !== undefined)).toEqual([true, true]);
  expect((await engine.rows("DESCRIBE TOPIC app.t")).map(([table]) => table)).toEqual([null, null]);
  await engine.run("DROP TOPIC app.t");
});

test("DROP TABLE checks again after it has waited, because another request may drop the table first", async () => {
  await engine.run(`
    CREATE TABLE app.race (id INT PRIMARY KEY);
    CREATE TOPIC app.t;
    ALTER TOPIC app.t ADD SOURCE app.race ON INSERT`);
  let isFirst = true;
  topics.whileHolding = async () => {
    if (!isFirst) return;
    isFirst = false;
    await engine.run("DROP TABLE app.race");
  };
  expect(await engine.failure("DROP TABLE app.race")).toStartWith("TABLE_NOT_FOUND");
  expect(topics.released.length).toBe(topics.held.length);
  await engine.run("DROP TOPIC app.t");
});

test("counting continues after a change to a source table was refused", async () => {
  await engine.run(`
    CREATE TABLE app.full (id INT PRIMARY KEY, a INT);
    INSERT INTO app.full VALUES (1, -1);
    CREATE TOPIC app.t;
    ALTER TOPIC app.t ADD SOURCE app.full ON INSERT`);
  expect(await engine.failure("ALTER TABLE app.full ADD CHECK (a > 0)")).toStartWith(
    "CHECK_VIOLATION",
  );
  topics.whileHolding = async () => {
    await engine.run("INSERT INTO app.full VALUES (2, NULL)");
  };
  expect(await engine.failure("ALTER TABLE app.full ALTER COLUMN a SET NOT NULL")).toStartWith(
    "NOT_NULL_VIOLATION",
  );
  expect(topics.released).toEqual(topics.held);
  await engine.run("DROP TOPIC app.t; DROP TABLE app.full");
});

test("DROP NAMESPACE counts topics, and drops them only with CASCADE", async () => {
  await engine.run(`
    CREATE NAMESPACE short;
    CREATE TABLE short.t (id INT PRIMARY KEY);
    CREATE TOPIC short.own;
    CREATE TOPIC app.other;
    ALTER TOPIC app.other ADD SOURCE short.t ON INSERT`);
  const { error } = await engine.ask("DROP NAMESPACE short");
  expect(error?.code).toBe("DEPENDENT_OBJECTS");
  expect(error?.message).toContain("1 table and 0 views and 1 topic");
  await engine.run("DROP NAMESPACE short CASCADE");
  expect(engine.database.catalog.topic("short", "own")).toBeUndefined();
  expect(sourcesOf("other")[0]?.toSeq).toBeGreaterThan(0);
  expect(topics.released).toEqual(topics.held);
  await engine.run("DROP TOPIC app.other");
});
