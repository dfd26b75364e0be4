/**
 * Tests SUBSCRIBE TO, which returns a working subscription, and EXPLAIN SUBSCRIBE TO, which
 * explains how changes reach it, on the real process.
 */
import { afterAll, beforeAll, expect, test } from "bun:test";
import type { SubscriptionSpec } from "../../src/protocol/mod.ts";
import { SocketClient } from "../support/client.ts";
import { type ServerProcess, startReadyServer } from "../support/server_process.ts";

let server: ServerProcess;
let alice: string;

beforeAll(async () => {
  server = await startReadyServer();
  alice = await server.createUser("alice");
  await server.rows(
    "CREATE NAMESPACE app; CREATE TABLE app.notes (id INT PRIMARY KEY, room TEXT, n INT) WITH (TYPE = 'USER')",
  );
  const rows = Array.from({ length: 9 }, (_, id) => `(${id}, 'r${id % 3}', ${id})`).join(", ");
  await server.rows(`INSERT INTO app.notes VALUES ${rows}`, { token: alice });
});

afterAll(async () => {
  await server.stop();
});

test.each([
  "SUBSCRIBE TO app.notes WHERE n > 2 OPTIONS (last_rows = 4, batch_size = 3)",
  "SUBSCRIBE TO SELECT id, n FROM notes WHERE n > 2 OPTIONS (last_rows = 4)",
])("%s returns the message that a client sends, and the address to send it to", async (sql) => {
  const [row] = await server.rows(sql, { token: alice, namespace: "app" });
  const [status, url, text] = row ?? [];
  expect(status).toBe("active");
  const address = String(url);
  expect(address).toBe(server.webSocketUrl);
  const subscription = JSON.parse(String(text)) as SubscriptionSpec;
  const socket = await SocketClient.connect(address.replace("/v1/ws", ""), { token: alice });
  await socket.expect("auth_success");
  socket.send({ type: "subscribe", subscription });
  await socket.expect("subscription_ack");
  const ids: unknown[] = [];
  for (let hasMore = true; hasMore; ) {
    const batch = await socket.expect("initial_data_batch");
    ids.push(...batch.rows.map(({ id }) => id));
    hasMore = batch.batch_control.has_more;
    if (hasMore) socket.send({ type: "next_batch", subscription_id: subscription.id });
  }
  expect(ids).toEqual([5, 6, 7, 8]);
  socket.close();
});

test("SUBSCRIBE TO passes parameters on", async () => {
  const sql = "SUBSCRIBE TO app.notes WHERE n > $1 AND room <> $2";
  const { body } = await server.sql(sql, { token: alice, params: [6, 'r"0'] });
  const [row] = body.results[0]?.rows ?? [];
  const subscription = JSON.parse(String(row?.[2])) as SubscriptionSpec;
  expect(subscription.params).toEqual([6, 'r"0']);
  const socket = await SocketClient.connect(server.url, { token: alice });
  await socket.expect("auth_success");
  socket.send({ type: "subscribe", subscription });
  await socket.expect("subscription_ack");
  const batch = await socket.expect("initial_data_batch");
  expect(batch.rows.map(({ id }) => id)).toEqual([7, 8]);
  socket.close();
  const without = await server.sql(sql, { token: alice });
  expect(without.body.error?.code).toBe("INVALID_PARAMETER");
});

test.each([
  ["SUBSCRIBE TO app.notes OPTIONS (last_rows = 1, last_rows = 2)", "INVALID_OPTION"],
  ["SUBSCRIBE TO app.notes OPTIONS (last_rows = 'x')", "INVALID_OPTION"],
  ["SUBSCRIBE TO app.notes OPTIONS (batch_size = 0)", "INVALID_OPTION"],
  ["SUBSCRIBE TO app.notes OPTIONS (from = 'x')", "INVALID_OPTION"],
  ["SUBSCRIBE TO app.notes OPTIONS (from_seq_id = 9007199254740993)", "INVALID_OPTION"],
  ["SUBSCRIBE TO app.notes OPTIONS (from_seq_id = '9007199254740992')", "INVALID_OPTION"],
  ["SUBSCRIBE TO app.notes OPTIONS (replay = 'all')", "INVALID_OPTION"],
  ["SUBSCRIBE TO app.notes WHERE random() < 1", "NOT_IMPLEMENTED"],
  ["SUBSCRIBE TO SELECT id FROM app.notes WHERE random() < 1 ORDER BY id", "NOT_IMPLEMENTED"],
  ["SUBSCRIBE TO SELECT id INTO copy FROM app.notes", "INVALID_SQL"],
  ["SUBSCRIBE TO SELECT id FROM app.notes FOR UPDATE", "INVALID_SQL"],
  ["EXPLAIN SUBSCRIBE TO SELECT id FROM app.notes FOR SHARE", "INVALID_SQL"],
  ["SUBSCRIBE TO app.nope", "TABLE_NOT_FOUND"],
])("%s is %s", async (sql, code) => {
  const { body } = await server.sql(sql, { token: alice });
  expect([body.error?.code, body.error?.reason?.toUpperCase()]).toContain(code);
});

test.each([
  ["SELECT 1; SUBSCRIBE TO app.nope", "app.nope"],
  ["SUBSCRIBE TO app.notes WHERE nope > 1", "nope > 1"],
  ["SELECT 1; SUBSCRIBE TO SELECT id FROM app.notes WHERE nope > 1", "nope > 1"],
  ["EXPLAIN SUBSCRIBE TO app.notes WHERE nope > 1", "nope > 1"],
  ["SELECT 1; SUBSCRIBE TO app.notes WHERE random() < 1", "random() < 1"],
])("%s is refused with the position of the fault", async (sql, at) => {
  const { body } = await server.sql(sql);
  expect(sql.slice(body.error?.position)).toStartWith(at);
});

async function explained(sql: string): Promise<string[]> {
  const rows = await server.rows(`EXPLAIN SUBSCRIBE TO ${sql}`);
  return rows.map(([line]) => String(line).trim());
}

test("EXPLAIN SUBSCRIBE TO shows the group, index, predicate and cost", async () => {
  await server.rows(
    "CREATE SHARED TABLE app.board (id INT PRIMARY KEY, room TEXT, n INT) WITH (ACCESS_LEVEL = 'PUBLIC')",
  );
  const sql = "SELECT n FROM app.board WHERE room = 'a' AND n > 2";
  expect(await explained(sql)).toEqual([
    "Live query on app.board",
    "rows: shared by all users",
    "columns read: id, room, n",
    "filter: room = 'a' AND n > 2",
    'index: room = "a", looked up by value',
    "group: shared by 0 open subscriptions, evaluated once for all",
    "cost: a change with this value is tested against 1 of 1 group, 0 of them unindexed",
  ]);
  const socket = await SocketClient.connect(server.url, { token: server.token });
  await socket.expect("auth_success");
  const open: Record<string, string> = {
    s1: sql,
    s2: sql,
    other: "SELECT n FROM app.board WHERE room = 'b'",
    same: "SELECT id FROM app.board WHERE room = 'a'",
    whole: "SELECT * FROM app.board",
  };
  for (const [id, query] of Object.entries(open)) {
    socket.send({ type: "subscribe", subscription: { id, sql: query, options: null } });
    await socket.expect("subscription_ack");
  }
  const busy = await explained(sql);
  expect(busy.slice(-2)).toEqual([
    "group: shared by 2 open subscriptions, evaluated once for all",
    "cost: a change with this value is tested against 3 of 4 groups, 1 of them unindexed",
  ]);
  const without = await explained("app.board WHERE n > 2");
  expect(without.slice(-3)).toEqual([
    "index: none, so every change to these rows is tested",
    "group: shared by 0 open subscriptions, evaluated once for all",
    "cost: a change is tested against 2 of 5 groups, 2 of them unindexed",
  ]);
  socket.close();
  const { body } = await server.sql("EXPLAIN SUBSCRIBE TO app.board", { token: alice });
  expect(body.error?.code).toBe("PERMISSION_DENIED");
});

test.each([
  [["127.0.0.1"], "wss"],
  [["10.0.0.1"], "ws"],
])(
  "SUBSCRIBE TO behind a TLS proxy, where %j is trusted, returns a URL with %s://",
  async (trusted, scheme) => {
    await using proxied = await startReadyServer({
      config: { auth: { setup_code: false }, security: { trusted_proxies: trusted } },
    });
    const headers = { Authorization: `Bearer ${proxied.token}`, "X-Forwarded-Proto": "https" };
    const answer = await proxied.post(
      "/v1/api/sql",
      { sql: "SUBSCRIBE TO system.tables" },
      headers,
    );
    const { results } = (await answer.json()) as { results: { rows: string[][] }[] };
    expect(results[0]?.rows[0]?.[1]).toBe(proxied.webSocketUrl.replace("ws:", `${scheme}:`));
  },
);
