/**
 * Tests STREAM tables shared by several users, over the wire. Policies determine the rows that
 * each user sees. When a row expires, subscribers receive a delete with the reason, whether the
 * query is followed row by row or materialised, and despite lost connections and restarts.
 */
import { afterAll, beforeAll, expect, test } from "bun:test";
import type { ChangeMessage } from "../../src/protocol/mod.ts";
import { SocketClient } from "../support/client.ts";
import { testThoroughly } from "../support/requirements.ts";
import { type ServerProcess, startReadyServer } from "../support/server_process.ts";
import { shareOf } from "../support/thoroughness.ts";
import { until } from "../support/until.ts";

let server: ServerProcess;
let dan: string;
let eva: string;

const TABLES = {
  /** All users may read this table, so it is followed row by row. */
  open: "OWNER_COLUMN = 'author'",
  /** Only members may read this table, so its query is materialised. */
  closed: "ACCESS_LEVEL = 'RESTRICTED'",
  slow: "ACCESS_LEVEL = 'RESTRICTED'",
} as const;

/** A time in seconds that no test reaches. */
const LONG_SECONDS = 3600;

const MEMBERS =
  "EXISTS (SELECT 1 FROM chat.members m WHERE m.room = room AND m.user_id = CURRENT_USER())";

beforeAll(async () => {
  server = await startReadyServer();
  dan = await server.createUser("dan");
  eva = await server.createUser("eva");
  await server.rows(
    "CREATE NAMESPACE chat; CREATE TABLE chat.members (room INT, user_id TEXT, PRIMARY KEY (room, user_id)); INSERT INTO chat.members VALUES (1, 'dan'), (1, 'eva'), (2, 'eva'); CREATE TABLE chat.people (id TEXT PRIMARY KEY, name TEXT) WITH (ACCESS_LEVEL = 'PUBLIC'); INSERT INTO chat.people VALUES ('eva', 'Eva')",
  );
  for (const [name, options] of Object.entries(TABLES)) {
    await server.rows(
      `CREATE STREAM TABLE chat.${name} (id INT PRIMARY KEY, room INT, author TEXT DEFAULT CURRENT_USER()) WITH (TTL_SECONDS = ${LONG_SECONDS}, ${options}); CREATE INDEX ON chat.${name} (author)`,
    );
    if (name !== "open")
      await server.rows(`CREATE POLICY members ON chat.${name} USING (${MEMBERS})`);
  }
});
afterAll(() => server.stop());

interface Following {
  readonly socket: SocketClient;
  /** The ids of the rows that the snapshot or the resume delivered. */
  readonly ids: readonly unknown[];
  /** The changes that arrived before all rows were loaded, as happens after a resume. */
  readonly before: readonly ChangeMessage[];
}

async function follow(
  sql: string,
  { from, token }: { from?: number; token: string },
): Promise<Following> {
  const socket = await SocketClient.connect(server.url, { token, query: "?compress=false" });
  await socket.expect("auth_success");
  const options = from === undefined ? {} : { options: { from_seq_id: from } };
  socket.send({ type: "subscribe", subscription: { id: "s", sql, ...options } });
  await socket.expect("subscription_ack");
  const ids: unknown[] = [];
  const before: ChangeMessage[] = [];
  for (;;) {
    const message = await socket.next();
    if (message.type === "change") before.push(message);
    if (message.type !== "initial_data_batch") continue;
    ids.push(...message.rows.map(({ id }) => id));
    if (!message.batch_control.has_more) return { socket, ids, before };
    socket.send({ type: "next_batch", subscription_id: "s" });
  }
}

/** Returns the type of a change, the ids of its rows, and its reason. */
function wordsOf({
  change_type: type,
  old_values: olds = [],
  reason,
  rows,
}: ChangeMessage): string {
  const ids = (type === "delete" ? olds : rows).map(({ id }) => String(id));
  return [type, ...ids, ...(reason === undefined ? [] : [reason])].join(" ");
}

async function change({ socket }: Following): Promise<string> {
  return wordsOf(await socket.expect("change"));
}

const QUERIES = [
  ["row by row", "open", "SELECT id, author FROM chat.open"],
  ["materialised", "closed", "SELECT id, author FROM chat.closed"],
  [
    "with another key",
    "closed",
    "SELECT author, id AS number, id FROM chat.closed ORDER BY author",
  ],
  ["evaluated", "open", "SELECT id, row_number() OVER (ORDER BY id) > 0 AS some FROM chat.open"],
  [
    "a join",
    "closed",
    "SELECT c.id, p.name FROM chat.closed c JOIN chat.people p ON p.id = c.author",
  ],
] as const;

/**
 * Sets the TTL of a table's rows, so that they expire only when the test is ready for it, however
 * slow the machine is.
 */
async function setTtl(table: string, seconds: number): Promise<void> {
  await server.rows(`ALTER TABLE chat.${table} SET (TTL_SECONDS = ${seconds})`);
}

/** Waits until all rows of a table have expired. */
async function untilEmpty(table: string): Promise<void> {
  await until(async () => (await server.rows(`SELECT id FROM chat.${table}`)).length === 0);
}

test.each(shareOf(QUERIES, { oneOf: 4 }))(
  "expiry arrives as a delete with its reason: %s",
  async (_, table, sql) => {
    const following = await follow(sql, { token: eva });
    expect(following.ids).toEqual([]);
    await server.rows(`INSERT INTO chat.${table} (id, room) VALUES (1, 1), (2, 2)`, { token: eva });
    expect(await change(following)).toBe("insert 1 2");
    await server.rows(`DELETE FROM chat.${table} WHERE id = 1`, { token: eva });
    expect(await change(following)).toBe("delete 1");
    await setTtl(table, 1);
    expect(await change(following)).toBe("delete 2 expired");
    expect(await server.rows(`SELECT id FROM chat.${table}`)).toEqual([]);
    await setTtl(table, LONG_SECONDS);
    following.socket.close();
  },
);

test.each(shareOf(QUERIES, { oneOf: 4 }))(
  "a resume reports rows that expired meanwhile: %s",
  async (_, table, sql) => {
    const written = `INSERT INTO chat.${table} (id, room) VALUES (3, 1) RETURNING _seq`;
    const [[from] = []] = await server.rows(written, { token: eva });
    const first = await follow(sql, { token: eva });
    expect(first.ids).toEqual([3]);
    first.socket.close();
    await setTtl(table, 1);
    await untilEmpty(table);
    // A delete has the reason that applied when the row was deleted, whatever the TTL is now.
    await setTtl(table, LONG_SECONDS);
    const second = await follow(sql, { token: eva, from: Number(from) });
    expect(second.ids).toEqual([]);
    expect(second.before.map(wordsOf)).toEqual(["delete 3 expired"]);
    await server.rows(`INSERT INTO chat.${table} (id, room) VALUES (4, 1)`, { token: eva });
    expect(await change(second)).toBe("insert 4");
    await setTtl(table, 1);
    expect(await change(second)).toBe("delete 4 expired");
    await setTtl(table, LONG_SECONDS);
    second.socket.close();
  },
);

testThoroughly(
  "rows that expire while the server is down are gone, and subscribers that resume are notified",
  async () => {
    await setTtl("open", 1);
    const written = "INSERT INTO chat.open (id, room) VALUES (5, 1) RETURNING _seq";
    const [[from] = []] = await server.rows(written, { token: eva });
    await server.restart("SIGKILL");
    await untilEmpty("open");
    const sql = "SELECT id, author FROM chat.open";
    const resumed = await follow(sql, { token: eva, from: Number(from) });
    expect(resumed.before.map(wordsOf)).toEqual(["delete 5 expired"]);
    resumed.socket.close();
    await setTtl("open", LONG_SECONDS);
  },
);

testThoroughly("a TTL that has changed since changes no reason, also after a restart", async () => {
  const sql = "SELECT id, author FROM chat.open";
  const written = "INSERT INTO chat.open (id, room) VALUES (20, 1), (21, 1) RETURNING _seq";
  const [[from] = []] = await server.rows(written, { token: eva });
  await server.rows("DELETE FROM chat.open WHERE id = 20", { token: eva });
  await setTtl("open", 1);
  await untilEmpty("open");
  await setTtl("open", LONG_SECONDS);
  for (const isRestarted of [false, true]) {
    if (isRestarted) await server.restart("SIGKILL");
    const resumed = await follow(sql, { token: eva, from: Number(from) - 1 });
    expect(resumed.before.map(wordsOf).filter((words) => words.startsWith("delete"))).toEqual([
      "delete 20",
      "delete 21 expired",
    ]);
    resumed.socket.close();
  }
});

test("policies determine who reads, follows and writes the rows", async () => {
  await server.rows("INSERT INTO chat.slow (id, room) VALUES (1, 1), (2, 2)", { token: eva });
  expect(await server.rows("SELECT id FROM chat.slow", { token: dan })).toEqual([[1]]);
  const { body } = await server.sql("INSERT INTO chat.slow (id, room) VALUES (3, 2)", {
    token: dan,
  });
  expect(body.error?.code).toBe("PERMISSION_DENIED");
  const stolen = "UPDATE chat.open SET room = 9 WHERE id = 7 RETURNING id";
  await server.rows("INSERT INTO chat.open (id, room) VALUES (7, 1)", { token: eva });
  expect(await server.rows(stolen, { token: dan })).toEqual([]);

  const following = await follow("SELECT id FROM chat.slow", { token: dan });
  expect(following.ids).toEqual([1]);
  await server.rows("INSERT INTO chat.members VALUES (2, 'dan')");
  expect(await change(following)).toBe("insert 2");
  await server.rows("DELETE FROM chat.members WHERE user_id = 'dan'");
  const gone = await change(following);
  expect(gone.split(" ").toSorted()).toEqual(["1", "2", "delete"]);
  expect(await server.rows("SELECT id FROM chat.slow", { token: dan })).toEqual([]);
  // A resume from an earlier position delivers only the deletes.
  const from = Number((await server.rows("SELECT max(_seq) FROM chat.slow"))[0]?.[0]);
  const again = await follow("SELECT id FROM chat.slow", { token: dan, from });
  expect(again.ids).toEqual([]);
  following.socket.close();
  again.socket.close();
  await server.rows("INSERT INTO chat.members VALUES (1, 'dan')");
});

test("a file in such a table can be read by those who see its row, until the row expires", async () => {
  await server.rows(
    `CREATE STREAM TABLE chat.shown (id INT PRIMARY KEY, room INT, doc FILE) WITH (TTL_SECONDS = 3600, ACCESS_LEVEL = 'RESTRICTED'); CREATE POLICY members ON chat.shown USING (${MEMBERS})`,
  );
  const form = new FormData();
  form.set("sql", "INSERT INTO chat.shown VALUES (1, 2, FILE('doc')) RETURNING doc");
  form.set("file:doc", new File(["of room 2"], "a.txt", { type: "text/plain" }));
  const headers = { Authorization: `Bearer ${eva}` };
  const answer = await fetch(`${server.url}/v1/api/sql`, { method: "POST", headers, body: form });
  expect(answer.status, await answer.clone().text()).toBe(200);
  const rows = await server.rows("SELECT doc FROM chat.shown", { token: eva });
  const file = JSON.parse(String(rows[0]?.[0])) as { id: string; sub: string };
  const path = `/v1/files/chat/shown/${file.sub}/${file.id}`;
  const read = async (token: string): Promise<number> =>
    (await server.get(path, { Authorization: `Bearer ${token}` })).status;
  expect(await read(eva)).toBe(200);
  expect(await read(dan)).toBe(404);
  await server.rows("ALTER TABLE chat.shown SET (TTL_SECONDS = 1)");
  await until(async () => (await read(eva)) === 404);
});

test("a topic delivers the expiry of a row as a deletion", async () => {
  await server.rows(
    "CREATE STREAM TABLE chat.steps (id INT PRIMARY KEY) WITH (TTL_SECONDS = 1, ACCESS_LEVEL = 'PUBLIC'); CREATE TOPIC chat.gone; ALTER TOPIC chat.gone ADD SOURCE chat.steps ON DELETE; INSERT INTO chat.steps VALUES (11)",
  );
  const consume = "CONSUME FROM chat.gone FROM EARLIEST LIMIT 10";
  await until(async () => (await server.rows(consume)).length === 1);
  expect(JSON.stringify(await server.rows(consume))).toContain("11");
});
