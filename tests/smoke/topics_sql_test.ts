/**
 * Tests topics on the real process through SQL: definitions, messages, groups and
 * acknowledgements, for each role, with every refusal, and across restarts and kills.
 */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { type ServerProcess, startReadyServer } from "../support/server_process.ts";

let server: ServerProcess;
let service: string;
let uma: string;

beforeAll(async () => {
  server = await startReadyServer();
  service = await server.createUser("sam", "service");
  uma = await server.createUser("uma");
  await server.rows("CREATE NAMESPACE app");
});

afterAll(async () => {
  await server.stop();
});

/** Creates a table, and a topic with the same name that publishes the table's inserts. */
async function feedOf(name: string, options = ""): Promise<void> {
  await server.rows(`
    CREATE TABLE app.${name}_rows (id INT PRIMARY KEY, kind TEXT, note TEXT);
    CREATE TOPIC app.${name} ${options};
    ALTER TOPIC app.${name} ADD SOURCE app.${name}_rows ON INSERT`);
}

async function offsets(sql: string, params?: readonly (string | number)[]): Promise<unknown[]> {
  const rows = await server.rows(sql, {
    token: service,
    ...(params === undefined ? {} : { params }),
  });
  return rows.map(([, , offset]) => offset);
}

test("messages are the changes to all sources in commit order, with the payload of each source", async () => {
  await server.rows(`
    CREATE TABLE app.items (id INT PRIMARY KEY, kind TEXT, n INT);
    CREATE TABLE app.notes (id INT PRIMARY KEY, text TEXT) WITH (TYPE = 'USER');
    CREATE TOPIC app.changes;
    ALTER TOPIC app.changes ADD SOURCE app.items ON INSERT WHERE n > 0;
    ALTER TOPIC app.changes ADD SOURCE app.items ON UPDATE WITH (payload = 'diff');
    ALTER TOPIC app.changes ADD SOURCE app.items ON DELETE WITH (payload = 'key');
    ALTER TOPIC app.changes ADD SOURCE app.notes ON INSERT`);
  await server.rows(`
    INSERT INTO app.items VALUES (1, 'a', 1), (2, 'b', 0), (3, 'c', 3);
    UPDATE app.items SET n = n WHERE id = 1;
    UPDATE app.items SET n = 9 WHERE id = 1;
    DELETE FROM app.items WHERE id = 3`);
  await server.rows("INSERT INTO app.notes VALUES (1, 'mine')", { token: uma });
  const rows = await server.rows("CONSUME FROM app.changes FROM EARLIEST", { token: service });
  const shown = rows.map(([topic, partition, offset, key, payload, , user, op]) => {
    const { _seq, ...body } = JSON.parse(String(payload)) as Record<string, unknown>;
    return [topic, partition, offset, key, user, op, body, typeof _seq];
  });
  const row = { _deleted: false, _table: "app.items" };
  expect(shown).toEqual([
    ["app.changes", 0, 0, "1", null, "Insert", { id: 1, kind: "a", n: 1, ...row }, "number"],
    ["app.changes", 0, 1, "3", null, "Insert", { id: 3, kind: "c", n: 3, ...row }, "number"],
    [
      "app.changes",
      0,
      2,
      "1",
      null,
      "Update",
      { id: 1, ...row, changed: { n: { old: 1, new: 9 } } },
      "number",
    ],
    ["app.changes", 0, 3, "3", null, "Delete", { id: 3 }, "undefined"],
    [
      "app.changes",
      0,
      4,
      "1",
      "uma",
      "Insert",
      { id: 1, text: "mine", _deleted: false, _table: "app.notes" },
      "number",
    ],
  ]);
});

test("a group gets each message once, continues after a restart, and gets unacknowledged messages again", async () => {
  await feedOf("work");
  await server.rows("INSERT INTO app.work_rows (id) VALUES (0), (1), (2), (3), (4)");
  const consume = "CONSUME FROM app.work GROUP 'g' FROM EARLIEST LIMIT 2 NO ACK";
  expect(await offsets(consume)).toEqual([0, 1]);
  expect(await offsets(consume)).toEqual([2, 3]);
  const acked = await server.rows("ACK app.work GROUP 'g' OFFSETS (0, 3)", { token: service });
  expect(acked).toEqual([["app.work", "g", 0, 0]]);
  await server.restart("SIGKILL");
  expect(await offsets("CONSUME FROM app.work GROUP 'g' LIMIT 9 NO ACK")).toEqual([1, 2, 4]);
  expect(
    await server.rows("ACK app.work GROUP $1 UPTO OFFSET $2", { token: service, params: ["g", 4] }),
  ).toEqual([["app.work", "g", 0, 4]]);
  expect(await server.rows("ACK app.work GROUP 'g' UPTO OFFSET 1", { token: service })).toEqual([
    ["app.work", "g", 0, 4],
  ]);
  expect(
    await server.rows(
      "SELECT group_id, partition_id, last_acked_offset FROM system.topic_offsets WHERE topic_id = 'app.work'",
    ),
  ).toEqual([["g", 0, 4]]);
});

test("an effect and its acknowledgement are one commit, which a kill does not split", async () => {
  await feedOf("pay");
  await server.rows("CREATE TABLE app.paid (id INT PRIMARY KEY)");
  await server.rows("INSERT INTO app.pay_rows (id) VALUES (0), (1)");
  expect(await offsets("CONSUME FROM app.pay GROUP 'g' FROM EARLIEST NO ACK")).toEqual([0, 1]);
  const pay = "BEGIN; INSERT INTO app.paid VALUES ($1); ACK app.pay GROUP 'g' OFFSETS ($2); COMMIT";
  expect((await server.sql(pay, { token: service, params: [0, 0] })).status).toBe(200);
  await server.restart("SIGKILL");
  const again = await server.sql(pay, { token: service, params: [5, 0] });
  expect(again.body.error).toMatchObject({
    code: "SQL_EXECUTION_ERROR",
    reason: "already_acknowledged",
  });
  expect(await server.rows("SELECT id FROM app.paid")).toEqual([[0]]);
  expect(await offsets("CONSUME FROM app.pay GROUP 'g' NO ACK")).toEqual([1]);
});

test("CONSUME without NO ACK acknowledges what it returns", async () => {
  await feedOf("fire");
  await server.rows("INSERT INTO app.fire_rows (id) VALUES (0), (1), (2)");
  expect(await offsets("CONSUME FROM app.fire GROUP 'g' FROM EARLIEST LIMIT 2")).toEqual([0, 1]);
  await server.restart();
  expect(await offsets("CONSUME FROM app.fire GROUP 'g' LIMIT 2")).toEqual([2]);
  expect(await offsets("CONSUME FROM app.fire GROUP 'late'")).toEqual([]);
});

test("a partition contains all changes to a key, and an unknown partition has no messages", async () => {
  await feedOf("wide", "PARTITIONS 4");
  await server.rows(
    `INSERT INTO app.wide_rows (id) VALUES ${Array.from({ length: 40 }, (_, id) => `(${id})`).join(", ")}`,
  );
  const counts: number[] = [];
  for (let partition = 0; partition < 4; partition += 1) {
    const found = await offsets(`CONSUME FROM app.wide PARTITION ${partition} FROM EARLIEST`);
    expect(found).toEqual(found.map((_, index) => index));
    counts.push(found.length);
  }
  expect(counts.reduce((sum, count) => sum + count, 0)).toBe(40);
  expect(counts.every((count) => count > 0)).toBe(true);
  expect(await offsets("CONSUME FROM app.wide PARTITION 4 FROM EARLIEST")).toEqual([]);
});

test("CLEAR TOPIC discards messages, and groups continue after them", async () => {
  await feedOf("clear");
  await server.rows("INSERT INTO app.clear_rows (id) VALUES (0), (1), (2)");
  expect(await offsets("CONSUME FROM app.clear GROUP 'g' FROM EARLIEST LIMIT 1")).toEqual([0]);
  await server.rows("CLEAR TOPIC app.clear");
  await server.rows("INSERT INTO app.clear_rows (id) VALUES (3)");
  expect(await offsets("CONSUME FROM app.clear GROUP 'g'")).toEqual([3]);
  expect(await offsets("CONSUME FROM app.clear FROM EARLIEST")).toEqual([3]);
});

test("a source survives the renaming of its column, and a topic keeps its offsets when the table is dropped", async () => {
  await server.rows(`
    CREATE TABLE app.left_rows (id INT PRIMARY KEY, kind TEXT);
    CREATE TABLE app.right_rows (id INT PRIMARY KEY);
    CREATE TOPIC app.both;
    ALTER TOPIC app.both ADD SOURCE app.left_rows ON INSERT WHERE kind = 'x';
    ALTER TOPIC app.both ADD SOURCE app.right_rows ON INSERT`);
  await server.rows(`
    INSERT INTO app.left_rows VALUES (1, 'x'), (2, 'y');
    ALTER TABLE app.left_rows RENAME COLUMN kind TO "Kind";
    INSERT INTO app.left_rows VALUES (3, 'x');
    INSERT INTO app.right_rows VALUES (1);
    INSERT INTO app.left_rows VALUES (4, 'x')`);
  expect(await offsets("CONSUME FROM app.both FROM EARLIEST")).toEqual([0, 1, 2, 3]);
  await server.rows("DROP TABLE app.right_rows; INSERT INTO app.left_rows VALUES (5, 'x')");
  expect(await offsets("CONSUME FROM app.both FROM EARLIEST")).toEqual([0, 1, 3, 4]);
  await server.restart("SIGKILL");
  expect(await offsets("CONSUME FROM app.both FROM EARLIEST")).toEqual([0, 1, 3, 4]);
  const [[status] = []] = await server.rows(
    "SELECT status FROM system.topics WHERE topic_id = 'app.both'",
  );
  expect(status).not.toBe("ok");
});

test.each<[string, number, string, string?]>([
  ["CONSUME FROM app.none", 400, "object_not_found"],
  ["ACK app.none GROUP 'g' UPTO OFFSET 0", 400, "object_not_found"],
  ["ACK app.bad GROUP 'g' UPTO OFFSET 7", 400, "numeric_range"],
  ["ACK app.bad GROUP 'g' PARTITION 1 UPTO OFFSET 0", 400, "numeric_range"],
  ["ACK app.bad GROUP 'g' OFFSETS (7)", 400, "numeric_range"],
  ["ACK app.bad GROUP 'never' OFFSETS (0)", 400, "object_not_found"],
  ["ACK app.bad GROUP '' UPTO OFFSET 0", 400, "type"],
  ["CREATE TOPIC app.bad", 400, "already_exists"],
  ["CREATE TOPIC app.new PARTITIONS 0", 400, "invalid_option"],
  ["CREATE TOPIC app.new WITH (COLOUR = 'red')", 400, "invalid_option"],
  ["ALTER TOPIC app.bad ADD SOURCE app.bad_rows ON INSERT", 400, "already_exists"],
  ["ALTER TOPIC app.bad DROP SOURCE app.bad_rows ON DELETE", 400, "object_not_found"],
  ["DROP TOPIC app.none", 400, "object_not_found"],
  ["KILL CONSUMER 'none'", 400, "object_not_found"],
])("%s answers %i with reason %s", async (sql, status, reason) => {
  const isThere = await server.rows("SELECT 1 FROM system.topics WHERE topic_id = 'app.bad'");
  if (isThere.length === 0) {
    await feedOf("bad");
    await server.rows("INSERT INTO app.bad_rows (id) VALUES (0)");
    await server.rows("CONSUME FROM app.bad GROUP 'g' FROM EARLIEST NO ACK");
  }
  const answer = await server.sql(sql);
  expect([answer.status, answer.body.error?.reason]).toEqual([status, reason]);
});

test.each([
  ["uma", "CONSUME FROM app.work"],
  ["uma", "ACK app.work GROUP 'g' UPTO OFFSET 0"],
  ["uma", "SHOW TOPICS"],
  ["uma", "DESCRIBE TOPIC app.work"],
  ["sam", "CREATE TOPIC app.x"],
  ["sam", "ALTER TOPIC app.work SET (RETENTION_HOURS = 1)"],
  ["sam", "CLEAR TOPIC app.work"],
  ["sam", "DROP TOPIC app.work"],
  ["sam", "KILL CONSUMER 'c'"],
  ["sam", "SELECT * FROM system.topics"],
])("%s may not run %s", async (user, sql) => {
  const answer = await server.sql(sql, { token: user === "uma" ? uma : service });
  expect([answer.status, answer.body.error?.code]).toEqual([403, "PERMISSION_DENIED"]);
});

test("system.topic_consumers shows a consumer with its claims, and KILL CONSUMER frees them", async () => {
  await feedOf("kill");
  await server.rows("INSERT INTO app.kill_rows (id) VALUES (0), (1)");
  expect(await offsets("CONSUME FROM app.kill GROUP 'g' FROM EARLIEST NO ACK")).toEqual([0, 1]);
  expect(await offsets("CONSUME FROM app.kill GROUP 'g' NO ACK")).toEqual([]);
  const [[id, claims] = []] = await server.rows(
    "SELECT consumer_id, claims FROM system.topic_consumers WHERE topic_id = 'app.kill'",
  );
  expect(claims).toBe(2);
  await server.rows(`KILL CONSUMER '${String(id)}'`);
  expect(await offsets("CONSUME FROM app.kill GROUP 'g' NO ACK")).toEqual([0, 1]);
});
