/**
 * Tests row policies on the real process: every kind of statement with every kind of rule. A
 * canary is in a room to which the caller does not belong. Nothing sent to a caller may contain
 * rows that policies hide, and subscribers lose and gain rows in the very commit that changes
 * their membership.
 */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { SocketClient } from "../support/client.ts";
import { type ServerProcess, startReadyServer } from "../support/server_process.ts";
import { isThorough } from "../support/thoroughness.ts";

const CANARY = "canary91d2ab7760ce";

let server: ServerProcess;
let dan: string;
let eva: string;
let sam: string;
let danFile = "";
let evaFile = "";

/** Several policy rules that all hide the same rows from dan: the rows of room 2. */
const RULES: Readonly<Record<string, string>> = {
  plain: "author = CURRENT_USER() OR room = 1",
  exists:
    "EXISTS (SELECT 1 FROM chat.members m WHERE m.room = room AND m.user_id = CURRENT_USER())",
  list: "room IN (SELECT room FROM chat.members WHERE user_id = CURRENT_USER())",
  scalar:
    "(SELECT max(rank) FROM chat.members m WHERE m.room = room AND m.user_id = CURRENT_USER()) > 0",
  claim:
    "room IN (SELECT room FROM chat.members WHERE user_id = coalesce(CLAIM('sub'), CURRENT_USER()))",
};

beforeAll(async () => {
  server = await startReadyServer();
  dan = await server.createUser("dan");
  eva = await server.createUser("eva");
  sam = await server.createUser("sam", "service");
  await server.rows(
    "CREATE NAMESPACE chat; " +
      "CREATE TABLE chat.members (room INT, user_id TEXT, rank INT DEFAULT 1, PRIMARY KEY (room, user_id)) WITH (ACCESS_LEVEL = 'RESTRICTED'); " +
      "INSERT INTO chat.members VALUES (1, 'dan', 1), (1, 'eva', 2), (2, 'eva', 1)",
  );
  for (const [name, rule] of Object.entries(RULES)) {
    await server.rows(
      `CREATE TABLE chat.${name} (id INT PRIMARY KEY, room INT, author TEXT DEFAULT CURRENT_USER(), body TEXT, doc FILE) WITH (ACCESS_LEVEL = 'RESTRICTED'); ` +
        `CREATE POLICY members ON chat.${name} USING (${rule}); ` +
        `INSERT INTO chat.${name} (id, room, author, body) VALUES (1, 1, 'dan', 'one'), (2, 1, 'eva', 'two'), (3, 2, 'eva', '${CANARY}'), (4, 2, 'eva', '${CANARY} too'); ` +
        `STORAGE FLUSH TABLE chat.${name}; ` +
        `INSERT INTO chat.${name} (id, room, author, body) VALUES (5, 2, 'eva', '${CANARY} again')`,
    );
  }
  await server.rows(
    "CREATE VIEW chat.bodies AS SELECT id, body FROM chat.exists; " +
      "CREATE TABLE chat.replies (id INT PRIMARY KEY, parent INT REFERENCES chat.exists (id)) WITH (ACCESS_LEVEL = 'RESTRICTED'); " +
      "CREATE POLICY every ON chat.replies USING (true); " +
      "CREATE TOPIC chat.news; ALTER TOPIC chat.news ADD SOURCE chat.exists ON INSERT",
  );
  danFile = await uploaded(dan, 1);
  evaFile = await uploaded(eva, 2);
});

afterAll(async () => {
  await server.stop();
});

async function uploaded(token: string, room: number): Promise<string> {
  const form = new FormData();
  const id = room + 10;
  form.set("sql", `INSERT INTO chat.exists (id, room, doc) VALUES (${id}, ${room}, FILE('doc'))`);
  form.set("file:doc", new File([`${CANARY} ${room}`], "a.txt", { type: "text/plain" }));
  const answer = await fetch(`${server.url}/v1/api/sql`, {
    method: "POST",
    headers: { Authorization: `Bearer ${token}` },
    body: form,
  });
  expect(answer.status, await answer.text()).toBe(200);
  const rows = await server.rows(`SELECT doc FROM chat.exists WHERE id = ${id}`, { token });
  const file = JSON.parse(String(rows[0]?.[0])) as { id: string; sub: string };
  return `/v1/files/chat/exists/${file.sub}/${file.id}`;
}

/**
 * The statements that dan sends, each with the rows that he may see. For a statement without rows,
 * the test checks only that the canary is absent.
 */
const STATEMENTS: readonly (readonly [sql: string, rows?: readonly (readonly unknown[])[]])[] = [
  [
    "SELECT id, body FROM {t} WHERE id < 10 ORDER BY id",
    [
      [1, "one"],
      [2, "two"],
    ],
  ],
  ["SELECT body FROM {t} WHERE id = 3", []],
  ["SELECT body FROM {t} WHERE id IN (2, 3, 4)", [["two"]]],
  ["SELECT body FROM {t} WHERE id BETWEEN 3 AND 9", []],
  ["SELECT body FROM {t} WHERE room = 2 OR author = 'eva'", [["two"]]],
  ["SELECT count(*) FROM {t} WHERE id < 10", [[2]]],
  ["SELECT max(body) FROM {t} WHERE id < 10", [["two"]]],
  ["SELECT room, count(*) FROM {t} WHERE id < 10 GROUP BY room", [[1, 2]]],
  ["SELECT body FROM {t} WHERE id < 10 ORDER BY id DESC LIMIT 1", [["two"]]],
  [
    "SELECT a.body, b.body FROM {t} a LEFT JOIN {t} b ON b.id = a.id + 1 AND b.id < 10 WHERE a.id = 2",
    [["two", null]],
  ],
  ["SELECT (SELECT body FROM {t} WHERE id = 3)", [[null]]],
  ["SELECT 1 WHERE EXISTS (SELECT 1 FROM {t} WHERE id = 3)", []],
  ["WITH q AS (SELECT body FROM {t} WHERE id < 10) SELECT count(*) FROM q", [[2]]],
  [
    "SELECT body FROM {t} WHERE id < 10 UNION SELECT 'three' ORDER BY 1",
    [["one"], ["three"], ["two"]],
  ],
  ["SELECT CASE WHEN count(*) > 2 THEN 1 / 0 END FROM {t} WHERE id < 10", [[null]]],
  ["SELECT body::int FROM {t} WHERE id = 3", []],
  ["SELECT 1 / (id - 3) FROM {t} WHERE id < 10", [[0], [-1]]],
  ["SELECT body FROM {t} FOR SYSTEM_TIME AS OF NOW() WHERE id = 3"],
  ["SELECT * FROM changes('{t}', 0)"],
  ["SELECT body, _seq FROM {t} WHERE id > 2 AND id < 10 AND _seq > 0", []],
  ["BEGIN; SELECT body FROM {t} WHERE id = 3; COMMIT", []],
  ["UPDATE {t} SET body = body WHERE id = 3 RETURNING body", []],
  ["UPDATE {t} SET body = 'stolen' WHERE room = 2"],
  ["UPDATE {t} AS a SET body = b.body FROM {t} b WHERE b.id = 3 RETURNING a.body", []],
  ["UPDATE {t} SET room = 2, author = 'eva' WHERE id = 1"],
  ["DELETE FROM {t} WHERE id = 3 RETURNING body", []],
  ["DELETE FROM {t} USING {t} b WHERE b.id = 3 RETURNING b.body", []],
  ["INSERT INTO {t} (id, room, author) VALUES (30, 2, 'eva') RETURNING *"],
  ["INSERT INTO {t} (id, room) VALUES (3, 1) ON CONFLICT (id) DO NOTHING RETURNING body", []],
  [
    "INSERT INTO {t} (id, room) VALUES (3, 1) ON CONFLICT (id) DO UPDATE SET room = 1 RETURNING body",
  ],
  ["INSERT INTO {t} (id, room) VALUES (3, 1)"],
  [
    "MERGE INTO {t} USING (VALUES (3)) AS s (id) ON {t}.id = s.id WHEN MATCHED THEN UPDATE SET room = 1",
  ],
  ["MERGE INTO {t} USING (VALUES (3)) AS s (id) ON {t}.id = s.id WHEN MATCHED THEN DELETE"],
  ["COPY {t} TO STDOUT"],
  ["COPY (SELECT body FROM {t} WHERE id = 3) TO STDOUT"],
  ["TRUNCATE TABLE {t}"],
  ["SHOW STATS FOR TABLE {t}"],
  ["DESCRIBE {t}"],
  ["SHOW POLICIES"],
  ["SELECT * FROM system.tables"],
  ["ALTER POLICY members ON {t} USING (true)"],
  ["CREATE POLICY mine ON {t} USING (true)"],
  ["ALTER TABLE {t} SET (ACCESS_LEVEL = 'PUBLIC')"],
  ["CREATE TABLE chat.copied AS SELECT * FROM {t}"],
  ["EXECUTE AS USER 'eva' (SELECT body FROM {t})"],
  ["SELECT * FROM chat.members"],
  ["INSERT INTO chat.members VALUES (2, 'dan', 1)"],
];

describe.each(Object.keys(RULES).map((name, number) => [name, number] as const))(
  "with the rule %s",
  (name, number) => {
    // A usual run tries each statement with one of the rules.
    const tried = STATEMENTS.filter(
      (_, index) => isThorough || index % Object.keys(RULES).length === number,
    );

    test.each(tried.map(([sql, rows]) => [sql, rows ?? null] as const))(
      "%s",
      async (form, expected) => {
        const table = `chat.${name}`;
        const contents = "SELECT id, room, author, body FROM {t} WHERE room = 2 ORDER BY id";
        const before = await server.rows(contents.replace("{t}", table));
        const text = form.replaceAll("{t}", table);
        // The test undoes any change that dan makes to his own rows.
        const isChange = /^(?:UPDATE|DELETE|MERGE|INSERT)/.test(text);
        const answer = await server.sql(isChange ? `BEGIN; ${text}; ROLLBACK` : text, {
          token: dan,
        });
        expect(JSON.stringify(answer.body)).not.toContain(CANARY);
        expect(answer.body.error?.code).not.toBe("INTERNAL_ERROR");
        if (expected !== null) {
          expect(answer.body.error).toBeUndefined();
          expect(answer.body.results.flatMap(({ rows = [] }) => rows)).toEqual([...expected]);
        }
        await server.sql(text, { token: dan });
        expect(await server.rows(contents.replace("{t}", table))).toEqual(before);
        await server.rows(
          `DELETE FROM ${table} WHERE id IN (1, 2, 30); INSERT INTO ${table} (id, room, author, body) VALUES (1, 1, 'dan', 'one'), (2, 1, 'eva', 'two')`,
        );
      },
    );

    test("the other member can read the canary, and a service acting for dan cannot", async () => {
      const sql = `SELECT body FROM chat.${name} WHERE id = 3`;
      const seen = await server.rows(sql, { token: eva });
      expect(seen).toEqual([[CANARY]]);
      expect(await server.rows(`EXECUTE AS USER 'dan' (${sql})`, { token: sam })).toEqual([]);
      expect(await server.rows(`EXECUTE AS USER 'eva' (${sql})`, { token: sam })).toEqual(seen);
    });
  },
);

test("a view shows the rows that its reader may see", async () => {
  const sql = "SELECT id FROM chat.bodies WHERE id < 10 ORDER BY id";
  expect(await server.rows(sql, { token: dan })).toEqual([[1], [2]]);
  expect(await server.rows(sql, { token: eva })).toEqual([[1], [2], [3], [4], [5]]);
});

test("a hidden parent of a foreign key appears not to exist", async () => {
  const hidden = await server.sql("INSERT INTO chat.replies VALUES (1, 3)", { token: dan });
  const missing = await server.sql("INSERT INTO chat.replies VALUES (1, 999)", { token: dan });
  expect(missing.body.error?.code).toBe("SQL_EXECUTION_ERROR");
  const said = JSON.stringify(hidden.body.error);
  expect(said).toBe(JSON.stringify(missing.body.error).replace("999", "3"));
  await server.rows("INSERT INTO chat.replies VALUES (1, 2)", { token: dan });
});

test("a file can be read by those who see its row", async () => {
  const read = async (path: string, token: string): Promise<number> =>
    (await server.get(path, { Authorization: `Bearer ${token}` })).status;
  expect(await read(danFile, dan)).toBe(200);
  expect(await read(danFile, eva)).toBe(200);
  expect(await read(evaFile, eva)).toBe(200);
  expect(await read(evaFile, dan)).toBe(404);
  expect(await read(evaFile, sam)).toBe(404);
});

test("a signed URL of a file follows the membership of the user who signed it", async () => {
  const rows = await server.rows("SELECT FILE_URL(doc) FROM chat.exists WHERE id = 11", {
    token: dan,
  });
  const read = async (): Promise<number> => (await server.get(String(rows[0]?.[0]))).status;
  expect(await read()).toBe(200);
  await server.rows("DELETE FROM chat.members WHERE room = 1 AND user_id = 'dan'");
  expect(await read()).toBe(404);
  await server.rows("INSERT INTO chat.members VALUES (1, 'dan', 1)");
  expect(await read()).toBe(200);
});

test("a topic of a table with policies is only for callers who see all its rows", async () => {
  const { body } = await server.sql("CONSUME FROM chat.news FROM EARLIEST LIMIT 10", {
    token: sam,
  });
  expect(body.status).toBe("error");
  expect(JSON.stringify(body)).not.toContain(CANARY);
});

test.each(["DBA", "RESTRICTED"])(
  "a topic of a table that a consumer may not read reveals nothing: %s",
  async (level) => {
    const name = `chat.only_${level.toLowerCase()}`;
    await server.rows(
      `CREATE TABLE ${name} (id INT PRIMARY KEY, body TEXT) WITH (ACCESS_LEVEL = '${level}'); ` +
        `CREATE TOPIC ${name}_news; ALTER TOPIC ${name}_news ADD SOURCE ${name} ON INSERT; ` +
        `INSERT INTO ${name} VALUES (1, '${CANARY}')`,
    );
    const consume = `CONSUME FROM ${name}_news FROM EARLIEST LIMIT 10`;
    const { body } = await server.sql(consume, { token: sam });
    expect(body.error?.code).toBe("PERMISSION_DENIED");
    expect(body.error?.message).toContain("may not read");
    expect(body.error?.message).not.toContain(`${name} `);
    const read = await server.rows(consume);
    expect(JSON.stringify(read)).toContain(CANARY);
  },
);

const QUERIES: readonly (readonly [name: string, sql: string])[] = [
  ["one table, a plain rule", "SELECT id, body FROM chat.plain"],
  ["one table, EXISTS", "SELECT id, body FROM chat.exists WHERE id < 10"],
  ["one table, IN", "SELECT id, body FROM chat.list WHERE body <> ''"],
  [
    "a join",
    "SELECT a.id, a.body FROM chat.exists a LEFT JOIN chat.list b ON b.id = a.id WHERE a.id < 10",
  ],
  ["a view", "SELECT id, body FROM chat.bodies WHERE id < 10"],
  ["groups", "SELECT room AS id, count(*)::text AS body FROM chat.list GROUP BY room"],
];

/**
 * Returns short descriptions of a subscription's messages until it is ready or, with `changes`,
 * until that many changes have arrived.
 */
async function told(client: SocketClient, changes?: number): Promise<string[]> {
  const words: string[] = [];
  let left = changes ?? 0;
  for (;;) {
    const message = await client.next();
    if (message.type === "initial_data_batch") {
      words.push(...message.rows.map(({ id }) => `row ${String(id)}`));
      if (!message.batch_control.has_more) return words.toSorted();
      client.send({ type: "next_batch", subscription_id: message.subscription_id });
    }
    if (message.type === "change") {
      const { change_type: type, rows, old_values: old = [] } = message;
      const changed = rows.length > 0 ? rows : old;
      words.push(...changed.map(({ id }) => `${type} ${String(id)}`));
      left -= changed.length;
      if (left <= 0) return words.toSorted();
    }
  }
}

test.each(QUERIES)(
  "subscribers of %s see the rows of their current memberships",
  async (name, sql) => {
    const client = await SocketClient.connect(server.url, { token: dan });
    client.send({ type: "subscribe", subscription: { id: "s", sql } });
    const first = await told(client);
    expect(first).toEqual(name === "groups" ? ["row 1"] : ["row 1", "row 2"]);
    if (name === "one table, a plain rule") {
      await server.rows("UPDATE chat.plain SET author = 'dan' WHERE id = 3");
      expect(await told(client, 1)).toEqual(["insert 3"]);
      await server.rows("UPDATE chat.plain SET author = 'eva' WHERE id = 3");
      expect(await told(client, 1)).toEqual(["delete 3"]);
      client.close();
      return;
    }
    await server.rows("INSERT INTO chat.members VALUES (2, 'dan', 1)");
    const gained = name === "groups" ? ["insert 2"] : ["insert 3", "insert 4", "insert 5"];
    expect(await told(client, gained.length)).toEqual(gained);
    await server.rows("DELETE FROM chat.members WHERE room = 2 AND user_id = 'dan'");
    expect(await told(client, gained.length)).toEqual(
      gained.map((word) => word.replace("insert", "delete")),
    );
    client.close();
  },
);

test("a subscription ends, or cannot be resumed, after a policy has changed", async () => {
  await server.rows(
    "CREATE TABLE chat.board (id INT PRIMARY KEY, body TEXT) WITH (ACCESS_LEVEL = 'RESTRICTED'); " +
      "CREATE POLICY small ON chat.board FOR SELECT USING (id < 10); " +
      `INSERT INTO chat.board VALUES (1, 'a'), (20, '${CANARY}')`,
  );
  const client = await SocketClient.connect(server.url, { token: dan });
  client.send({
    type: "subscribe",
    subscription: { id: "s", sql: "SELECT id, body FROM chat.board" },
  });
  expect(await told(client)).toEqual(["row 1"]);
  const resumeAt = Number((await server.rows("SELECT max(_seq) FROM chat.board"))[0]?.[0]);
  await server.rows("ALTER POLICY small ON chat.board USING (id = 7)");
  await server.rows("INSERT INTO chat.board VALUES (2, 'hidden by now')");
  let text = "";
  while (!text.includes("SCHEMA_CHANGED")) text = JSON.stringify(await client.next());
  expect(client.frames.map(({ message }) => JSON.stringify(message)).join()).not.toContain(
    "hidden by now",
  );
  const options = { from_seq_id: resumeAt };
  client.send({
    type: "subscribe",
    subscription: { id: "r", sql: "SELECT id, body FROM chat.board", options },
  });
  expect(JSON.stringify(await client.next())).toContain("RESUME_EXPIRED");
  client.close();
});

test.each(["ALTER USER {u} SET ROLE user", "DROP USER {u}"])(
  "a subscription ends when the policy's owner loses the right to it: %s",
  async (form) => {
    const owner = form.startsWith("ALTER") ? "olga" : "oleg";
    const token = await server.createUser(owner, "dba");
    const table = `chat.of_${owner}`;
    await server.rows(
      `CREATE TABLE ${table} (id INT PRIMARY KEY) WITH (ACCESS_LEVEL = 'RESTRICTED'); INSERT INTO ${table} VALUES (1)`,
    );
    await server.rows(`CREATE POLICY p ON ${table} FOR SELECT USING (true)`, { token });
    const sql = `SELECT id FROM ${table}`;
    const client = await SocketClient.connect(server.url, { token: dan });
    client.send({ type: "subscribe", subscription: { id: "s", sql } });
    expect(await told(client)).toEqual(["row 1"]);
    expect(await server.rows(sql, { token: dan })).toEqual([[1]]);
    await server.rows(form.replace("{u}", owner));
    await server.rows(`INSERT INTO ${table} VALUES (2)`);
    expect(await server.rows(sql, { token: dan })).toEqual([]);
    expect(JSON.stringify(await client.next())).toContain("SCHEMA_CHANGED");
    client.close();
  },
);
