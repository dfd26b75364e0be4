/**
 * Tests `GET /v1/api/live` on the real process: the messages of the WebSocket arrive as
 * server-sent events, with positions from which a client can resume without loss.
 */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { randomBytes } from "node:crypto";
import { connect } from "node:net";
import type { ServerMessage } from "../../src/protocol/mod.ts";
import { EventClient } from "../support/event_client.ts";
import { type ServerProcess, startReadyServer } from "../support/server_process.ts";
import { shareOf } from "../support/thoroughness.ts";
import { until } from "../support/until.ts";

let server: ServerProcess;
let tableCount = 0;
const SEQ = expect.any(Number);

beforeAll(async () => {
  server = await startReadyServer({
    config: {
      websocket: { ping_interval_secs: 1, send_queue_bytes: 65_536 },
      limits: { subscriptions_per_user: 8 },
    },
  });
  await server.rows("CREATE NAMESPACE app");
});

afterAll(async () => {
  await server.stop();
});

async function newTable(): Promise<string> {
  tableCount += 1;
  const table = `app.t${tableCount}`;
  await server.rows(`CREATE SHARED TABLE ${table} (id BIGINT PRIMARY KEY, text TEXT)`);
  return table;
}

function open(
  query: Readonly<Record<string, string>>,
  headers: Readonly<Record<string, string>> = {},
): Promise<EventClient> {
  const all = { Authorization: `Bearer ${server.token}`, ...headers };
  return EventClient.open(server.url, query, all);
}

/** Returns short descriptions of the rows and deletes that arrive until the stream is ready. */
async function loaded(client: EventClient): Promise<string[]> {
  await client.expect("subscription_ack");
  const words: string[] = [];
  for (;;) {
    const next = await client.next();
    if (next === undefined) throw new Error("The stream ended while it was loading");
    words.push(...wordsOf(next.message));
    const { message } = next;
    if (message.type === "initial_data_batch" && !message.batch_control.has_more) return words;
  }
}

function wordsOf(message: ServerMessage): string[] {
  if (message.type === "initial_data_batch")
    return message.rows.map(({ id }) => `row ${Number(id)}`);
  if (message.type !== "change") return [];
  const { change_type: type, rows, old_values: old = [] } = message;
  return (rows.length > 0 ? rows : old).map(({ id }) => `${type} ${Number(id)}`);
}

async function liveCount(): Promise<number> {
  const [row] = await server.rows("SELECT count(*) FROM system.live");
  return Number(row?.[0]);
}

/** Waits until the server has `count` open subscriptions. */
async function liveCountIs(count: number): Promise<void> {
  await until(async () => (await liveCount()) === count);
}

test("a stream contains the ack, all batches, and then changes, each with a position as its id", async () => {
  const table = await newTable();
  const rows = Array.from({ length: 25 }, (_, id) => `(${id}, 'x')`).join(", ");
  await server.rows(`INSERT INTO ${table} VALUES ${rows}`);
  const sql = `SELECT id, text FROM ${table} WHERE id < $1`;
  const client = await open({ sql, params: "[1000]", batch_size: "10" });
  expect(client.response.status).toBe(200);
  expect(client.response.headers.get("content-type")).toBe("text/event-stream");
  expect(client.response.headers.get("cache-control")).toBe("no-cache, no-transform");
  expect(client.response.headers.get("x-accel-buffering")).toBe("no");
  expect(await client.expect("subscription_ack")).toMatchObject({
    type: "subscription_ack",
    subscription_id: "sse",
    batch_control: { status: "loading", has_more: true },
  });
  expect(client.others).toEqual(["retry: 2000"]);
  const seen: string[] = [];
  for (let batch = 0; batch < 3; batch += 1) {
    const message = await client.expect("initial_data_batch");
    expect(message).toMatchObject({
      subscription_id: "sse",
      batch_control: { batch_num: batch, status: batch < 2 ? "loading" : "ready" },
    });
    seen.push(...wordsOf(message));
  }
  expect(seen).toEqual(Array.from({ length: 25 }, (_, id) => `row ${id}`));
  await server.rows(`INSERT INTO ${table} VALUES (100, 'hi'), (2000, 'no')`);
  const change = await client.next();
  expect(change).toEqual({
    event: "change",
    id: expect.stringMatching(/^\d+;[\w-]{16}$/),
    message: {
      type: "change",
      subscription_id: "sse",
      change_type: "insert",
      rows: [{ id: 100, text: "hi", _seq: Number.parseInt(change?.id ?? "", 10) }],
      ts: SEQ,
      commit_seq: SEQ,
    },
  });
  // An event stream is not counted as a WebSocket.
  expect([
    await server.metric("tidemark_event_streams"),
    await server.metric("tidemark_websocket_connections"),
  ]).toEqual([1, 0]);
  client.close();
  await liveCountIs(0);
});

test("last_rows and batch_size may be any whole number, as in a message", async () => {
  const table = await newTable();
  const client = await open({
    sql: `SELECT * FROM ${table}`,
    last_rows: "9".repeat(20),
    batch_size: "9".repeat(20),
  });
  expect(client.response.status).toBe(200);
  expect(await loaded(client)).toEqual([]);
  client.close();
  await liveCountIs(0);
});

test("Last-Event-ID resumes a stream, and overrides from_seq_id and live only", async () => {
  const table = await newTable();
  const sql = `SELECT id FROM ${table}`;
  await server.rows(`INSERT INTO ${table} VALUES (1, 'a'), (2, 'b')`);
  const first = await open({ sql });
  expect(await loaded(first)).toEqual(["row 1", "row 2"]);
  await server.rows(`INSERT INTO ${table} VALUES (3, 'c')`);
  await first.expect("change");
  first.close();
  await server.rows(`DELETE FROM ${table} WHERE id = 1`);
  await server.rows(`INSERT INTO ${table} VALUES (4, 'd')`);
  const last = { "Last-Event-ID": first.lastId };
  for (const query of [{ sql }, { sql, from_seq_id: "0" }, { sql, snapshot: "false" }]) {
    const again = await open(query, last);
    expect(await loaded(again)).toEqual(["delete 1", "row 4"]);
    again.close();
  }
  const fromStart = await open({ sql, from_seq_id: "0", replay: "latest" });
  const net = await loaded(fromStart);
  expect(net.filter((word) => word.startsWith("row"))).toEqual(["row 2", "row 3", "row 4"]);
  fromStart.close();
  const live = await open({ sql, snapshot: "false" });
  expect(await live.expect("subscription_ack")).toMatchObject({
    batch_control: { status: "ready", has_more: false },
  });
  await server.rows(`INSERT INTO ${table} VALUES (5, 'e')`);
  expect(wordsOf(await live.expect("change"))).toEqual(["insert 5"]);
  live.close();
});

test("a delete within a net replay has no id, so a client that disconnects there loses nothing", async () => {
  const table = await newTable();
  const sql = `SELECT id FROM ${table}`;
  await server.rows(`INSERT INTO ${table} VALUES (1, 'a'), (2, 'b')`);
  const first = await open({ sql });
  await loaded(first);
  const { lastId } = first;
  first.close();
  await server.rows(`DELETE FROM ${table} WHERE id = 1`);
  await server.rows(`INSERT INTO ${table} VALUES (3, 'c')`);
  const net = await open({ sql, replay: "latest" }, { "Last-Event-ID": lastId });
  await net.expect("subscription_ack");
  const removed = await net.next();
  expect(removed).toMatchObject({ event: "change", id: undefined });
  expect(net.lastId).toBe(lastId);
  await net.expect("initial_data_batch");
  expect(Number.parseInt(net.lastId, 10)).toBeGreaterThan(Number.parseInt(lastId, 10));
  net.close();
});

test("a client that does not read fills its queue, and later gets everything in order", async () => {
  const table = await newTable();
  await liveCountIs(0);
  const sql = encodeURIComponent(`SELECT id, text FROM ${table}`);
  const socket = connect(Number(new URL(server.url).port), "127.0.0.1");
  let text = "";
  socket.on("data", (bytes) => {
    text += bytes.toString("latin1");
  });
  socket.write(
    `GET /v1/api/live?sql=${sql} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${server.token}\r\n\r\n`,
  );
  await liveCountIs(1);
  await until(() => text.includes('"ready"'));
  socket.pause();
  const body = "x".repeat(20_000);
  const rows = (from: number): string =>
    Array.from({ length: 50 }, (_, i) => `(${from + i}, '${body}')`).join(", ");
  for (let id = 0; id < 1000; id += 50) {
    await server.rows(`INSERT INTO ${table} VALUES ${rows(id)}`);
  }
  const [row] = await server.rows(
    "SELECT transport, subscriptions, queued_bytes FROM system.connections WHERE transport = 'sse'",
  );
  expect(row?.slice(0, 2)).toEqual(["sse", 1]);
  // The queue, including the message that filled it, is far smaller than the 20 MB that were
  // written.
  expect(Number(row?.[2])).toBeGreaterThan(0);
  expect(Number(row?.[2])).toBeLessThan(2_000_000);
  const [live] = await server.rows("SELECT status, queued > 0 FROM system.live");
  expect(live).toEqual(["behind", true]);
  socket.resume();
  await until(() => /"id":999\D/.test(text));
  const ids = [...text.matchAll(/"id":(\d+)/g)].map(([, id]) => Number(id));
  expect(ids).toEqual(Array.from({ length: 1000 }, (_, id) => id));
  socket.destroy();
  await liveCountIs(0);
});

describe("an event stream ends with a message", () => {
  test.each<[string, (user: string) => Promise<unknown>, string]>([
    ["when its user is dropped", (user) => server.rows(`DROP USER ${user}`), "TOKEN_REVOKED"],
    [
      "when its live query is killed",
      async (user) => {
        const [row] = await server.rows("SELECT live_id FROM system.live WHERE user_id = $1", {
          params: [user],
        });
        await server.rows(`KILL LIVE QUERY '${String(row?.[0])}'`);
      },
      "KILLED",
    ],
    [
      "when its connection is killed",
      async (user) => {
        const ids = "SELECT connection_id FROM system.connections WHERE user_id = $1";
        const [row] = await server.rows(ids, { params: [user] });
        await server.rows(`KILL CONNECTION '${String(row?.[0])}'`);
      },
      "KILLED",
    ],
    ["when its table is dropped", () => server.rows(`DROP TABLE app.t${tableCount}`), "NOT_FOUND"],
    ["when the server stops", () => server.restart("SIGTERM"), "SHUTTING_DOWN"],
  ])("%s", async (_when, act, code) => {
    const table = await newTable();
    const user = `user${tableCount}`;
    const token = await server.createUser(user, "dba");
    const client = await open(
      { sql: `SELECT * FROM ${table}` },
      { Authorization: `Bearer ${token}` },
    );
    await loaded(client);
    const acted = act(user);
    expect(await client.expect("subscription_error")).toMatchObject({
      type: "error",
      subscription_id: "sse",
      code,
      ended: true,
    });
    expect(await client.next()).toBeUndefined();
    await acted;
    expect(await server.rows("SELECT 1 FROM system.connections")).toEqual([]);
  });
});

test.each([
  ["gzip", "gzip"],
  ["identity", null],
])(
  "a stream is compressed with %s if the client accepts it, and a change can be read at once",
  async (accepted, coding) => {
    const table = await newTable();
    const client = await open({ sql: `SELECT id FROM ${table}` }, { "Accept-Encoding": accepted });
    expect(client.response.headers.get("content-encoding")).toBe(coding);
    expect(client.response.headers.get("vary")).toContain("Accept-Encoding");
    await loaded(client);
    const [row] = await server.rows("SELECT compression FROM system.connections");
    expect(row).toEqual([coding ?? "none"]);
    for (let id = 0; id < 3; id += 1) {
      await server.rows(`INSERT INTO ${table} (id) VALUES (${id})`);
      expect(wordsOf(await client.expect("change"))).toEqual([`insert ${id}`]);
    }
    client.close();
    await liveCountIs(0);
  },
);

const ENDS = [
  ["its user is dropped", "DROP USER $u", "identity"],
  ["its connection is killed", "KILL CONNECTION '$c'", "identity"],
  ["its connection is killed, which is packed", "KILL CONNECTION '$c'", "gzip"],
] as const;

test.each(shareOf(ENDS, { oneOf: 3 }))(
  "a stream whose client does not read ends when %s",
  async (_when, statement, accepted) => {
    const table = await newTable();
    const user = `user${tableCount}`;
    const token = await server.createUser(user, "dba");
    // Even compressed, these rows exceed the system's buffers.
    for (let id = 0; id < 30; id += 1) {
      const params = [id, randomBytes(360_000).toString("base64")];
      await server.rows(`INSERT INTO ${table} VALUES ($1, $2)`, { params });
    }
    const sql = encodeURIComponent(`SELECT * FROM ${table}`);
    const socket = connect(Number(new URL(server.url).port), "127.0.0.1").pause();
    socket.write(
      `GET /v1/api/live?sql=${sql} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${token}\r\nAccept-Encoding: ${accepted}\r\n\r\n`,
    );
    const full =
      "SELECT connection_id FROM system.connections WHERE user_id = $1 AND queued_bytes > 0";
    let connectionId: string | undefined;
    await until(async () => {
      const [row] = await server.rows(full, { params: [user] });
      connectionId = row === undefined ? undefined : String(row[0]);
      return row !== undefined;
    });
    await server.rows(statement.replace("$u", user).replace("$c", connectionId ?? ""));

    // The gauge of open event streams, which count towards the connection limit, returns to zero.
    await until(async () => (await server.metric("tidemark_event_streams")) === 0);
    expect(await server.rows("SELECT 1 FROM system.connections")).toEqual([]);
    socket.destroy();
  },
);

describe("before it begins, a stream is refused", () => {
  test.each<[Record<string, string>, number, string]>([
    [{}, 400, "INVALID_SQL"],
    [{ sql: "DELETE FROM app.t1" }, 400, "INVALID_SQL"],
    [{ sql: "SELECT * FROM app.t1 WHERE RANDOM() < 1" }, 400, "UNSUPPORTED"],
    [{ sql: "SELECT * FROM app.t1", batch_size: "0" }, 400, "INVALID_OPTIONS"],
    [{ sql: "SELECT * FROM app.t1", last_rows: "many" }, 400, "INVALID_OPTIONS"],
    [{ sql: "SELECT * FROM app.t1", from_seq_id: "x", replay: "all" }, 400, "INVALID_OPTIONS"],
    [{ sql: "SELECT * FROM app.t1", replay: "some" }, 400, "INVALID_OPTIONS"],
    [{ sql: "SELECT * FROM app.t1", from_seq_id: "9007199254740991" }, 400, "INVALID_RESUME"],
    [{ sql: "SELECT * FROM app.t1 WHERE id = $1" }, 400, "INVALID_PARAMETER"],
    [{ sql: "SELECT * FROM app.t1 WHERE id = $1", params: "[[1]]" }, 400, "INVALID_SQL"],
    [{ sql: "SELECT * FROM app.t1 WHERE id = $1", params: "1" }, 400, "INVALID_PARAMETER"],
    [{ sql: "SELECT * FROM app.t1 WHERE id = $1", params: "[1" }, 400, "INVALID_PARAMETER"],
    [{ sql: "SELECT * FROM app.nope" }, 404, "NOT_FOUND"],
  ])("%j is %d %s", async (query, status, code) => {
    const { response } = await open(query);
    expect(response.status).toBe(status);
    const body: unknown = await response.json();
    expect(body).toMatchObject({ status: "error", results: [], error: { code } });
  });

  test("a stream is refused without a valid token, without the right, or over the limit, and a cookie suffices", async () => {
    const table = await newTable();
    const sql = `SELECT * FROM ${table}`;
    for (const [headers, code] of [
      [{}, "MISSING_AUTHORIZATION"],
      [{ Authorization: "Bearer nonsense" }, "INVALID_CREDENTIALS"],
      [{ Cookie: "tidemark_auth=nonsense" }, "INVALID_CREDENTIALS"],
    ] as const) {
      const { response } = await EventClient.open(server.url, { sql }, headers);
      expect(response.status).toBe(401);
      expect(await response.json()).toMatchObject({ error: { code } });
    }
    const plain = await server.createUser("plain");
    const refused = await open({ sql }, { Authorization: `Bearer ${plain}` });
    expect(refused.response.status).toBe(404);
    expect(await refused.response.json()).toMatchObject({ error: { code: "NOT_FOUND" } });
    const streams: EventClient[] = [];
    for (let i = 0; i < 8; i += 1) {
      const cookie = { Cookie: `tidemark_auth=${server.token}` };
      const client = await EventClient.open(server.url, { sql }, cookie);
      expect(await loaded(client)).toEqual([]);
      streams.push(client);
    }
    const over = await open({ sql });
    expect(over.response.status).toBe(429);
    expect(over.response.headers.get("Retry-After")).toBe("5");
    expect(await over.response.json()).toMatchObject({
      error: { code: "SUBSCRIPTION_LIMIT_EXCEEDED", retry_after_seconds: 5 },
    });
    for (const client of streams) client.close();
    await liveCountIs(0);
  });

  test("HEAD opens no stream", async () => {
    const table = await newTable();
    const response = await fetch(`${server.url}/v1/api/live?sql=SELECT+*+FROM+${table}`, {
      method: "HEAD",
      headers: { Authorization: `Bearer ${server.token}` },
    });
    expect(response.status).toBe(200);
    expect(response.headers.get("content-type")).toBe("text/event-stream");
    expect(await liveCount()).toBe(0);
  });

  test.each([
    ["SELEC", 400],
    ["SELECT id FROM app.none_such", 404],
    ["SELECT user_id FROM system.users LIMIT 1 FOR UPDATE", 400],
  ])("HEAD of %s has the same headers as GET: %p", async (sql, status) => {
    const statusOf = async (method: string): Promise<number> => {
      const headers = { Authorization: `Bearer ${server.token}` };
      const url = `${server.url}/v1/api/live?sql=${encodeURIComponent(sql)}`;
      return (await fetch(url, { method, headers })).status;
    };
    expect([await statusOf("HEAD"), await statusOf("GET")]).toEqual([status, status]);
  });
});

test("a quiet stream receives signs at intervals that the server is alive", async () => {
  const table = await newTable();
  const client = await open({ sql: `SELECT * FROM ${table}` });
  await loaded(client);
  await client.expectComment();
  await server.rows(`INSERT INTO ${table} VALUES (1, 'a')`);
  await client.expect("change");
  client.close();
});
