/** Tests `/v1/ws` over real sockets: the upgrade, frames and formats, and close codes. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { Packr } from "msgpackr";
import { SocketClient } from "../support/client.ts";
import { startTestServer, type TestServer } from "../support/http.ts";
import { MESSAGES, message, settle } from "../support/live_fixture.ts";

const SELECT = "SELECT * FROM chat.messages";

let server: TestServer;

beforeAll(async () => {
  server = await startTestServer({
    config: { limits: { max_message_size: 4096 } },
  });
  await server.token();
});

afterAll(async () => {
  expect(server.bugs).toEqual([]);
  await server.close();
});

/** Creates a user for a single test, so that tests do not see each other's rows. */
async function user(userId: string): Promise<{ token: string; owner: number }> {
  const token = await server.token(userId);
  return { token, owner: server.catalog.accounts.ownerNumber(userId, { create: true }) ?? 0 };
}

function insert(owner: number, ids: readonly number[], body = "x".repeat(100)): void {
  const rows = ids.map((id) => message(id, "lobby", 0, body));
  server.store.write({ tableId: MESSAGES, owner, operation: "insert", rows });
}

test("a client authenticates, subscribes, loads rows and follows changes", async () => {
  const { token, owner } = await user("u1");
  insert(owner, [1, 2, 3]);
  const client = await SocketClient.connect(server.url);
  expect(await client.authenticate(token)).toEqual({
    type: "auth_success",
    user: "u1",
    role: "user",
    protocol: { serialization: "json", compression: "gzip" },
  });
  client.send({
    type: "subscribe",
    subscription: { id: "m1", sql: SELECT, options: { batch_size: 2 } },
  });
  const ack = await client.expect("subscription_ack");
  expect(ack).toMatchObject({ total_rows: 0, batch_control: { batch_num: 0, status: "loading" } });
  expect(ack.schema.map(({ name }) => name)).toEqual(["id", "room", "n", "body", "_seq"]);
  const first = await client.expect("initial_data_batch");
  expect(first.rows.map(({ id }) => id)).toEqual([1, 2]);
  client.send({ type: "next_batch" });
  const second = await client.expect("initial_data_batch");
  expect(second).toMatchObject({ rows: [{ id: 3 }], batch_control: { status: "ready" } });
  insert(owner, [4]);
  expect(await client.expect("change")).toMatchObject({ change_type: "insert", rows: [{ id: 4 }] });
  client.close();
});

test("a client that sends a header is authenticated without a message", async () => {
  const { token } = await user("u2");
  const client = await SocketClient.connect(server.url, { token });
  expect(await client.expect("auth_success")).toMatchObject({ user: "u2" });
  client.close();
  const refused = await SocketClient.connect(server.url, { token: "x.y.z" });
  expect(await refused.expect("auth_error")).toMatchObject({ code: "INVALID_CREDENTIALS" });
  expect((await refused.closed()).code).toBe(1008);
});

test.each<[string, string, { isText: boolean; isGzip: boolean }]>([
  ["JSON, gzip by default", "", { isText: false, isGzip: true }],
  ["compress=false", "?compress=false", { isText: true, isGzip: false }],
  ["compress=NO", "?compress=NO", { isText: true, isGzip: false }],
  ["compression=none", "?compression=none", { isText: true, isGzip: false }],
  ["compress=maybe", "?compress=maybe", { isText: false, isGzip: true }],
  ["MessagePack", "?serialization=msgpack", { isText: false, isGzip: true }],
  [
    "MessagePack, compress=0",
    "?serialization=msgpack&compress=0",
    { isText: false, isGzip: false },
  ],
])("data frames under %s", async (_what, query, form) => {
  const { token, owner } = await user(`format${query.replaceAll(/\W/g, "")}`);
  insert(owner, [1, 2, 3, 4, 5, 6, 7, 8, 9, 10]);
  const client = await SocketClient.connect(server.url, { query });
  await client.authenticate(token);
  client.send({ type: "subscribe", subscription: { id: "m1", sql: SELECT } });
  await client.expect("subscription_ack");
  const { rows } = await client.expect("initial_data_batch");
  expect(rows.map(({ id }) => id)).toEqual([1, 2, 3, 4, 5, 6, 7, 8, 9, 10]);
  expect(rows[0]).toMatchObject({ _seq: expect.any(Number) });
  expect(client.frames[0]).toMatchObject({ isText: true });
  expect(client.frames[2]).toMatchObject(form);
  client.send({ type: "ping", id: "p" });
  await client.expect("pong");
  expect(client.frames.at(-1)).toMatchObject({ isText: true });
  client.close();
});

test("a MessagePack client may send binary, gzip and text", async () => {
  const { token } = await user("u3");
  const client = await SocketClient.connect(server.url);
  const protocol = { serialization: "msgpack", compression: "none" };
  client.send({ type: "authenticate", token, protocol });
  expect(await client.expect("auth_success")).toMatchObject({ protocol });
  const ping = new Uint8Array(new Packr({ useRecords: false }).pack({ type: "ping", id: "b" }));
  client.sendRaw(ping);
  client.sendRaw(Bun.gzipSync(ping));
  client.send({ type: "ping", id: "t" });
  expect([await client.next(), await client.next(), await client.next()]).toMatchObject([
    { type: "pong", id: "b" },
    { type: "pong", id: "b" },
    { type: "pong", id: "t" },
  ]);
  client.close();
});

test("a message up to the limit is served, one above it gets an error, and one above four times the limit closes with 1009", async () => {
  const { token } = await user("u4");
  const client = await SocketClient.connect(server.url, { token });
  await client.expect("auth_success");
  const padded = (length: number): string => {
    const empty = JSON.stringify({ type: "ping", id: "p", pad: "" });
    return JSON.stringify({ type: "ping", id: "p", pad: "x".repeat(length - empty.length) });
  };
  client.sendRaw(padded(4096));
  await client.expect("pong");
  client.sendRaw(padded(4097));
  expect(await client.expect("error")).toMatchObject({ code: "MESSAGE_TOO_LARGE", ended: false });
  client.sendRaw(padded(16384));
  expect(await client.expect("error")).toMatchObject({ code: "MESSAGE_TOO_LARGE" });
  client.sendRaw(padded(16385));
  expect((await client.closed()).code).toBe(1009);
});

test("revoking a session closes its sockets with 1008", async () => {
  const { token } = await user("u5");
  const client = await SocketClient.connect(server.url, { token });
  await client.expect("auth_success");
  const headers = { Authorization: `Bearer ${token}` };
  await server.fetch("/v1/api/auth/logout", { method: "POST", headers });
  expect(await client.expect("error")).toMatchObject({ code: "TOKEN_REVOKED", ended: true });
  expect((await client.closed()).code).toBe(1008);
});

test("the server's own origin and an absent one may connect, and another may not", async () => {
  const upgrade = async (headers: Record<string, string>): Promise<number> => {
    const handshake = {
      Connection: "Upgrade",
      Upgrade: "websocket",
      "Sec-WebSocket-Version": "13",
      "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ==",
    };
    return (await server.fetch("/v1/ws", { headers: { ...handshake, ...headers } })).status;
  };
  expect(await upgrade({ Origin: "http://evil.example" })).toBe(403);
  expect(await upgrade({ Origin: "null" })).toBe(403);
  expect(await upgrade({ Origin: server.url.replace(/\d$/, "") })).toBe(403);
  const own = await SocketClient.connect(server.url, { headers: { Origin: server.url } });
  own.close();
});

test("the connections of one address are limited without affecting others", async () => {
  const security = {
    trusted_proxies: ["127.0.0.1"],
    allowed_hosts: [],
    metrics_allow: [],
    cors: { allowed_origins: [], allow_credentials: false, max_age: 0 },
  };
  const config = { limits: { connections_per_ip: 1 }, security };
  const small = await startTestServer({ config });
  const from = (address: string): Record<string, string> => ({ "X-Forwarded-For": address });
  const first = await SocketClient.connect(small.url, { headers: from("192.0.2.1") });
  const refused = await small.fetch("/v1/ws", { headers: from("192.0.2.1") });
  expect([refused.status, await refused.json()]).toMatchObject([
    503,
    {
      error: "TOO_MANY_CONNECTIONS",
      message: "Too many connections from this address: the server accepts at most 1 per address",
      retry_after_seconds: 5,
    },
  ]);
  const other = await SocketClient.connect(small.url, { headers: from("192.0.2.2") });
  for (const client of [first, other]) {
    client.close();
    await client.closed();
  }
  await small.close();
});

test("the total number of connections is limited", async () => {
  const small = await startTestServer({ config: { performance: { max_connections: 1 } } });
  const first = await SocketClient.connect(small.url);
  const refused = await small.fetch("/v1/ws");
  expect([refused.status, await refused.json()]).toMatchObject([
    503,
    {
      error: "TOO_MANY_CONNECTIONS",
      message: "Too many connections: the server accepts at most 1",
      retry_after_seconds: 5,
    },
  ]);
  expect(refused.headers.get("retry-after")).toBe("5");
  first.close();
  await first.closed();
  await small.close();
});

test("shutdown ends subscriptions and closes with 1001", async () => {
  const stopping = await startTestServer();
  const token = await stopping.token("u6");
  const client = await SocketClient.connect(stopping.url, { token });
  await client.expect("auth_success");
  client.send({ type: "subscribe", subscription: { id: "m1", sql: SELECT } });
  await client.expect("subscription_ack");
  await client.expect("initial_data_batch");
  await settle();
  const closing = stopping.close();
  expect(await client.expect("error")).toMatchObject({ code: "SHUTTING_DOWN", ended: true });
  expect((await client.closed()).code).toBe(1001);
  await closing;
  expect(stopping.bugs).toEqual([]);
});

test("a client that stops reading gets everything in order when it reads again", async () => {
  const slow = await startTestServer({ config: { websocket: { send_queue_bytes: 65536 } } });
  const token = await slow.token("u7");
  const owner = slow.catalog.accounts.ownerNumber("u7", { create: true }) ?? 0;
  const client = await SocketClient.connect(slow.url, { token, query: "?compress=false" });
  await client.expect("auth_success");
  client.send({ type: "subscribe", subscription: { id: "m1", sql: SELECT } });
  await client.expect("subscription_ack");
  await client.expect("initial_data_batch");
  const body = "y".repeat(50_000);
  for (let id = 1; id <= 300; id += 1) {
    const rows = [message(id, "lobby", 0, body)];
    slow.store.write({ tableId: MESSAGES, owner, operation: "insert", rows });
  }
  const ids: unknown[] = [];
  while (ids.length < 300) {
    const { rows } = await client.expect("change");
    ids.push(...rows.map(({ id }) => id));
  }
  expect(ids).toEqual(Array.from({ length: 300 }, (_, index) => index + 1));
  client.close();
  await slow.close();
});

test("messages after a single row above the frame size are not dropped", async () => {
  const limits = { send_queue_bytes: 65_536, max_frame_bytes: 65_536 };
  const slow = await startTestServer({ config: { websocket: limits } });
  const token = await slow.token("u8");
  const owner = slow.catalog.accounts.ownerNumber("u8", { create: true }) ?? 0;
  const client = await SocketClient.connect(slow.url, { token, query: "?compress=false" });
  await client.expect("auth_success");
  const ids = Array.from({ length: 20 }, (_, index) => `m${index}`);
  for (const id of ids) {
    client.send({ type: "subscribe", subscription: { id, sql: SELECT, options: null } });
    await client.expect("subscription_ack");
  }
  await settle();
  // The row is larger than the network accepts before the client reads, and the client runs on the
  // same event loop as the server.
  const rows = [message(1, "lobby", 0, "z".repeat(12_000_000))];
  slow.store.write({ tableId: MESSAGES, owner, operation: "insert", rows });
  for (let tick = 0; tick < 20; tick += 1) await Promise.resolve();
  const closing = slow.close();
  await client.expect("change");
  for (const id of ids) {
    const ended = await client.expect("error");
    expect(ended).toMatchObject({ code: "SHUTTING_DOWN", subscription_id: id });
  }
  expect((await client.closed()).code).toBe(1001);
  await closing;
});
