/**
 * Tests a connection's state machine, with every event in every state. The socket and the clock
 * are simulated; the identity component and the live engine are real.
 */
import { afterAll, beforeAll, beforeEach, expect, test } from "bun:test";
import type { ChangeMessage } from "../../../src/protocol/mod.ts";
import type { ConnectionRequest } from "../../../src/server/connections/connection_options.ts";
import { Connections } from "../../../src/server/connections/connections.ts";
import { settle } from "../../support/live_fixture.ts";
import { ManualClock } from "../../support/manual_clock.ts";
import { noBugs } from "../../support/no_bugs.ts";
import { ConnectionFixture, Identity, subscribe } from "./connection_fixture.ts";

function changeOf(seq: number): ChangeMessage {
  return {
    type: "change",
    subscription_id: "m1",
    change_type: "insert",
    rows: [{ id: seq }],
    commit_seq: seq,
  };
}

let identity: Identity;
let token: string;
let fixture: ConnectionFixture;

beforeAll(async () => {
  identity = await Identity.make();
  token = await identity.logIn();
});

afterAll(() => identity.close());

beforeEach(() => {
  fixture = new ConnectionFixture(identity, token);
});

function hoursAgo(hours: number): ManualClock {
  return new ManualClock(new ManualClock().nowMs() - hours * 3_600_000);
}

test("a connection authenticates by message, and again with a newer token of the same user", async () => {
  const { connection, socket, say } = fixture.open();
  expect(connection.state).toBe("unauthenticated");
  const protocol = { serialization: "json", compression: "none" };
  say({ type: "authenticate", method: "jwt", token, protocol });
  expect(connection.state).toBe("authenticated");
  // A new token does not change the protocol of the connection.
  const newer = await identity.logIn();
  say({ type: "authenticate", token: newer, protocol: { serialization: "msgpack" } });
  const success = { type: "auth_success", user: "ada", role: "dba", protocol } as const;
  expect(socket.messages()).toEqual([success, success]);
  fixture.clock.advance(10_000);
  expect(socket.closed).toBeUndefined();
});

test.each<[string, () => Promise<object>, object]>([
  [
    "a wrong token",
    async () => ({ token: "x.y.z" }),
    { code: "INVALID_CREDENTIALS", message: "Authentication failed" },
  ],
  [
    "an expired token",
    async () => ({ token: await identity.logIn({ at: hoursAgo(2) }) }),
    { code: "TOKEN_EXPIRED" },
  ],
  [
    "the token of another user",
    async () => ({ token: await identity.logIn({ user: "root" }) }),
    {
      code: "INVALID_CREDENTIALS",
      message: "A connection cannot change its user: open a separate connection for the other user",
    },
  ],
])("%s does not renew a connection, and ends it", async (_what, fieldsOf, error) => {
  const { connection, socket, say } = fixture.openAuthenticated();
  say(subscribe("m1"));
  await settle();
  socket.drain();
  say({ type: "authenticate", ...(await fieldsOf()) });
  expect(socket.drain()).toMatchObject([{ type: "auth_error", ...error }]);
  expect(socket.closed?.code).toBe(1008);
  expect(connection.principal?.userId).toBe("ada");
});

test("a connection ends a minute after its token has expired, unless a newer token renews it", async () => {
  const as = identity.at(fixture.clock);
  const { connection, socket, say } = fixture.openAuthenticated({ as });
  const renewed = fixture.openAuthenticated({ as });
  say(subscribe("m1"));
  renewed.say(subscribe("m1"));
  await settle();
  // The connection stays open for the token's lifetime of an hour, a leeway of a minute, and a
  // grace period of another minute.
  fixture.clock.advance(3_600_000 + 120_000 - 1);
  for (const each of [connection, renewed.connection]) {
    each.touch();
    each.tick();
  }
  expect(socket.closed).toBeUndefined();
  renewed.say({ type: "authenticate", token: await identity.logIn({ at: fixture.clock }) });
  socket.drain();
  fixture.clock.advance(1);
  connection.tick();
  renewed.connection.tick();
  expect(socket.drain()).toMatchObject([
    { type: "error", code: "TOKEN_EXPIRED", subscription_id: "m1", ended: true },
  ]);
  expect(socket.closed?.code).toBe(1008);
  expect(renewed.socket.closed).toBeUndefined();
});

test("a connection authenticates by header before any message", () => {
  const { connection, socket } = fixture.open({ request: { bearer: `bearer ${token}` } });
  expect(socket.messages()).toMatchObject([{ type: "auth_success", user: "ada" }]);
  expect(connection.principal?.userId).toBe("ada");
});

test.each<[string, object]>([
  ["a wrong token", { type: "authenticate", token: "x.y.z" }],
  ["another method", { type: "authenticate", method: "basic", token: "x" }],
  ["a token of 17 KiB", { type: "authenticate", token: "x".repeat(17408) }],
])("%s is auth_error and close 1008: there is one attempt", (_what, attempt) => {
  const { connection, socket, say } = fixture.open();
  say(attempt);
  expect(socket.messages()).toEqual([
    { type: "auth_error", message: "Authentication failed", code: "INVALID_CREDENTIALS" },
  ]);
  expect(socket.closed?.code).toBe(1008);
  say({ type: "authenticate", token });
  expect(connection.state).toBe("closing");
  expect(socket.messages().length).toBe(1);
});

test.each<[string, object]>([
  ["a wrong token", { type: "authenticate", token: "x.y.z" }],
  ["another method", { type: "authenticate", method: "basic", token: "x" }],
  ["a token of 17 KiB", { type: "authenticate", token: "x".repeat(17408) }],
])("%s counts against the address, which has to wait after too many", (_what, attempt) => {
  const auth = identity.at(new ManualClock(), 2);
  const codes = Array.from({ length: 11 }, () => {
    const caller = { address: "192.0.2.7", isLocal: false };
    const { socket, say } = fixture.open({ as: auth, request: { caller } });
    say(attempt);
    expect(socket.closed?.code).toBe(1008);
    const [answer] = socket.messages();
    return answer?.type === "auth_error" ? answer.code : answer?.type;
  });
  // The token bucket initially holds five times the rate.
  const expected = Array.from({ length: 10 }, () => "INVALID_CREDENTIALS");
  expect(codes).toEqual([...expected, "RATE_LIMIT_EXCEEDED"]);
});

test("a wrong header gets auth_error and closes with 1008", () => {
  const { socket } = fixture.open({ request: { bearer: "Basic eDp5" } });
  expect(socket.messages()).toMatchObject([{ type: "auth_error", code: "INVALID_CREDENTIALS" }]);
  expect(socket.closed?.code).toBe(1008);
});

test("an expired token is reported as expired", () => {
  const later = new ManualClock();
  later.advance(2 * 3600 * 1000);
  const { socket, say } = fixture.open({ as: identity.at(later) });
  say({ type: "authenticate", token });
  const message = "The token has expired; POST /v1/api/auth/refresh returns a new one";
  expect(socket.messages()).toMatchObject([{ type: "auth_error", code: "TOKEN_EXPIRED", message }]);
  expect(socket.closed?.code).toBe(1008);
});

test("a connection without a token in time gets AUTH_TIMEOUT and closes with 1008", () => {
  const { socket } = fixture.open();
  fixture.clock.advance(9999);
  expect(socket.closed).toBeUndefined();
  fixture.clock.advance(1);
  expect(socket.messages()).toMatchObject([{ type: "auth_error", code: "AUTH_TIMEOUT" }]);
  expect(socket.closed?.code).toBe(1008);
  expect(fixture.clock.timerCount).toBe(0);
});

test("a malformed authenticate gets INVALID_MESSAGE and may be repeated", () => {
  const { socket, say } = fixture.open();
  say({ type: "authenticate" });
  say({ type: "authenticate", token, protocol: { serialization: "xml" } });
  say({ type: "authenticate", token });
  expect(socket.messages()).toMatchObject([
    { type: "error", code: "INVALID_MESSAGE", subscription_id: "protocol", ended: false },
    { type: "error", code: "INVALID_MESSAGE" },
    { type: "auth_success" },
  ]);
});

test("before authentication, ping is served and every other message gets AUTH_REQUIRED", () => {
  const { socket, say } = fixture.open();
  say({ type: "ping", id: "p1" });
  say({ type: "ping" });
  say(subscribe("m1"));
  say({ type: "next_batch" });
  say({ type: "unsubscribe", subscription_id: "m1" });
  expect(socket.messages()).toMatchObject([
    { type: "pong", id: "p1", positions: {} },
    { type: "error", code: "AUTH_REQUIRED", subscription_id: "subscribe", ended: false },
    { type: "error", code: "AUTH_REQUIRED", subscription_id: "protocol", ended: false },
    { type: "error", code: "AUTH_REQUIRED", subscription_id: "protocol", ended: false },
  ]);
  expect(socket.closed).toBeUndefined();
});

test.each<[string, object | string, string, string]>([
  ["text that is not JSON", "{", "INVALID_MESSAGE", "protocol"],
  ["no type", {}, "INVALID_MESSAGE", "protocol"],
  ["an unknown type", { type: "hello" }, "INVALID_MESSAGE", "protocol"],
  ["a list", "[]", "INVALID_MESSAGE", "protocol"],
  ["no subscription", { type: "subscribe" }, "INVALID_MESSAGE", "protocol"],
  ["no id", { type: "subscribe", subscription: {} }, "INVALID_MESSAGE", "protocol"],
  ["no sql", { type: "subscribe", subscription: { id: "a" } }, "INVALID_MESSAGE", "protocol"],
  ["a blank id", subscribe(" "), "INVALID_SUBSCRIPTION_ID", "invalid_subscription"],
  ["a long id", subscribe("x".repeat(129)), "INVALID_SUBSCRIPTION_ID", "invalid_subscription"],
  [
    "a long id of punctuation",
    subscribe("🌊".repeat(129)),
    "INVALID_SUBSCRIPTION_ID",
    "invalid_subscription",
  ],
  ["bad options", subscribe("a", { batch_size: 0 }), "INVALID_OPTIONS", "a"],
  ["a bad position", subscribe("a", { from_seq_id: "1.5" }), "INVALID_OPTIONS", "a"],
  ["an unknown replay", subscribe("a", { replay: "some" }), "INVALID_OPTIONS", "a"],
  ["bad SQL", subscribe("a", {}, "SELEKT"), "INVALID_SQL", "a"],
  ["64 KiB of SQL", subscribe("a", {}, "x".repeat(65537)), "INVALID_SQL", "a"],
  [
    "a bad parameter",
    { type: "subscribe", subscription: { id: "a", sql: "x", params: "x" } },
    "INVALID_PARAMETER",
    "a",
  ],
  [
    "parameters that are not a list",
    { type: "subscribe", subscription: { id: "a", sql: "x", params: {} } },
    "INVALID_PARAMETER",
    "a",
  ],
  [
    "a namespace that is not text",
    { type: "subscribe", subscription: { id: "a", sql: "x", namespace_id: 1 } },
    "INVALID_OPTIONS",
    "a",
  ],
  ["next_batch without a subscription", { type: "next_batch" }, "BATCH_FETCH_FAILED", "protocol"],
  [
    "next_batch of an unknown subscription",
    { type: "next_batch", subscription_id: "x" },
    "BATCH_FETCH_FAILED",
    "x",
  ],
  ["a bad next_batch", { type: "next_batch", subscription_id: 1 }, "INVALID_MESSAGE", "protocol"],
  ["a bad unsubscribe", { type: "unsubscribe" }, "INVALID_MESSAGE", "protocol"],
  ["a bad ping", { type: "ping", id: 1 }, "INVALID_MESSAGE", "protocol"],
  ["a long ping", { type: "ping", id: "x".repeat(65) }, "INVALID_MESSAGE", "protocol"],
  [
    "a long ping of punctuation",
    { type: "ping", id: "🌊".repeat(65) },
    "INVALID_MESSAGE",
    "protocol",
  ],
])("%s: the connection stays open", (_what, said, code, subscriptionId) => {
  const { connection, socket } = fixture.openAuthenticated();
  connection.receive(typeof said === "string" ? said : JSON.stringify(said));
  expect(socket.messages()).toMatchObject([
    { type: "error", code, subscription_id: subscriptionId },
  ]);
  expect(connection.state).toBe("authenticated");
});

test.each(["x", "é", "🌊"])("ids may have the maximum number of characters, even of %s", (sign) => {
  const { socket, say } = fixture.openAuthenticated();
  const [id, ping] = [sign.repeat(128), sign.repeat(64)];
  say(subscribe(id, null));
  say({ type: "ping", id: ping });
  expect(socket.messages()).toMatchObject([
    { type: "subscription_ack", subscription_id: id },
    { type: "pong", id: ping },
  ]);
});

test("the tenth invalid message within a minute closes with 1008, and a later one does not", () => {
  const { connection, socket } = fixture.openAuthenticated();
  for (let count = 0; count < 9; count += 1) connection.receive("{");
  fixture.clock.advance(60_000);
  connection.receive("{");
  expect(socket.closed).toBeUndefined();
  for (let count = 0; count < 8; count += 1) connection.receive("{");
  expect(socket.closed).toBeUndefined();
  connection.receive("{");
  expect(socket.closed?.code).toBe(1008);
});

test("messages above the rate limit are refused with the time to wait, and not processed", () => {
  const { socket, say } = fixture.open({ config: { limits: { messages_per_sec: 3 } } });
  for (let id = 0; id < 4; id += 1) say({ type: "ping", id: `p${id}` });
  expect(socket.drain()).toMatchObject([
    { type: "pong", id: "p0" },
    { type: "pong", id: "p1" },
    { type: "pong", id: "p2" },
    {
      type: "error",
      code: "RATE_LIMIT_EXCEEDED",
      subscription_id: "rate_limit",
      ended: false,
      retry_after_ms: 334,
    },
  ]);
  fixture.clock.advance(334);
  say({ type: "ping", id: "later" });
  expect(socket.messages()).toMatchObject([{ type: "pong", id: "later" }]);
});

test("messages wait while the server is busy, in order and without loss", async () => {
  const { connection, socket, say } = fixture.openAuthenticated({
    config: { limits: { messages_per_sec: 0 } },
  });
  // Another connection of the same user has used up the user's message allowance.
  const busy = {
    serveNow: () => fixture.clock.advance(10),
    serveWaiting: () => false,
    failed() {},
  };
  fixture.slices.serve(busy, "");
  for (let id = 0; id < 3; id += 1) say({ type: "ping", id: `p${id}` });
  expect(socket.messages()).toEqual([]);
  await settle();
  expect(socket.drain()).toMatchObject([{ id: "p0" }, { id: "p1" }, { id: "p2" }]);
  // The queue is full, so the server refuses the next message, but keeps the connection open.
  fixture.clock.advance(20);
  fixture.slices.serve(busy, "");
  for (let id = 0; id < 1025; id += 1) say({ type: "ping", id: `q${id}` });
  expect(socket.drain()).toMatchObject([
    { code: "RATE_LIMIT_EXCEEDED", ended: false, retry_after_ms: 1000 },
  ]);
  expect(connection.state).toBe("authenticated");
  for (let tick = 0; tick < 2000 && socket.messages().length < 1024; tick += 1) await settle();
  expect(socket.drain().map((it) => (it.type === "pong" ? it.id : it.type))).toEqual(
    Array.from({ length: 1024 }, (_, id) => `q${id}`),
  );
});

test("a client subscribes, loads batch by batch, and follows changes", async () => {
  await fixture.insert(1, 5);
  const { socket, say } = fixture.openAuthenticated();
  say(subscribe("m1", { batch_size: 2 }));
  say({ type: "next_batch" });
  say({ type: "next_batch", subscription_id: "m1", last_seq_id: "7" });
  await settle();
  const loaded = socket.drain();
  expect(loaded.map(({ type }) => type)).toEqual([
    "subscription_ack",
    "initial_data_batch",
    "initial_data_batch",
    "initial_data_batch",
  ]);
  expect(loaded.at(-1)).toMatchObject({ batch_control: { batch_num: 2, status: "ready" } });
  await fixture.insert(6, 1);
  const changes = socket.drain();
  expect(changes).toMatchObject([{ type: "change", change_type: "insert", rows: [{ id: 6 }] }]);
  say({ type: "ping", id: "p1" });
  const [pong] = socket.drain();
  expect(pong).toMatchObject({ type: "pong", positions: { m1: expect.any(Number) } });
  say({ type: "next_batch", subscription_id: "m1" });
  say({ type: "unsubscribe", subscription_id: "m1" });
  say({ type: "unsubscribe", subscription_id: "nobody" });
  await fixture.insert(7, 1);
  expect(socket.drain()).toEqual([]);
  expect(fixture.live.countOfUser("ada")).toBe(0);
});

test("a message that is not a subscribe ends no subscription, and a subscribe with bad fields ends its id", async () => {
  const { socket, say } = fixture.openAuthenticated();
  say(subscribe("m1"));
  say({ type: "subscribe", subscription: { id: "m1" } });
  await settle();
  const refused = { code: "INVALID_MESSAGE", subscription_id: "protocol", ended: false };
  expect(socket.drain().at(-1)).toMatchObject(refused);
  expect(fixture.live.countOfUser("ada")).toBe(1);
  await fixture.insert(1, 1);
  expect(socket.drain()).toMatchObject([{ type: "change", subscription_id: "m1" }]);
  say({ type: "subscribe", subscription: { id: "m1", sql: "x", params: {} } });
  expect(socket.drain()).toMatchObject([
    { code: "INVALID_PARAMETER", subscription_id: "m1", ended: true },
  ]);
  expect(fixture.live.countOfUser("ada")).toBe(0);
});

test("an id in use ends the old subscription, whether or not the new one is accepted", async () => {
  const { socket, say } = fixture.openAuthenticated();
  say(subscribe("m1"));
  say(subscribe("m1", {}, "SELEKT"));
  await settle();
  expect(socket.drain().at(-1)).toMatchObject({ code: "INVALID_SQL", ended: true });
  expect(fixture.live.countOfUser("ada")).toBe(0);
  await fixture.insert(1, 1);
  expect(socket.drain()).toEqual([]);
  say({ type: "next_batch", subscription_id: "m1" });
  expect(socket.drain()).toMatchObject([{ code: "BATCH_FETCH_FAILED" }]);
});

test("next_batch without an id is ambiguous while several subscriptions load", async () => {
  await fixture.insert(1, 5);
  const { socket, say } = fixture.openAuthenticated();
  say(subscribe("m1", { batch_size: 1 }));
  say(subscribe("m2", { batch_size: 1 }));
  await settle();
  socket.drain();
  say({ type: "next_batch" });
  expect(socket.drain()).toMatchObject([
    { code: "AMBIGUOUS_SUBSCRIPTION", subscription_id: "protocol", ended: false },
  ]);
  say({ type: "unsubscribe", subscription_id: "m1" });
  say({ type: "next_batch" });
  await settle();
  expect(socket.drain()).toMatchObject([{ type: "initial_data_batch", subscription_id: "m2" }]);
});

test("subscriptions are limited for each connection and each user", () => {
  const limits = { subscriptionsPerConnection: 2, subscriptionsPerUser: 3 };
  const limited = new ConnectionFixture(identity, token, limits);
  const first = limited.openAuthenticated();
  for (const id of ["a", "b", "c"]) first.say(subscribe(id));
  expect(first.socket.messages().at(-1)).toMatchObject({
    code: "SUBSCRIPTION_LIMIT_EXCEEDED",
    subscription_id: "c",
    ended: true,
  });
  // A subscription that reuses an id replaces the earlier one, so the limit is not exceeded.
  first.socket.drain();
  first.say(subscribe("b"));
  expect(first.socket.messages()[0]).toMatchObject({ type: "subscription_ack" });
  const second = limited.openAuthenticated();
  second.say(subscribe("a"));
  second.say(subscribe("b"));
  expect(second.socket.messages().at(-1)).toMatchObject({ code: "SUBSCRIPTION_LIMIT_EXCEEDED" });
});

test("a full socket pauses subscriptions and client messages, and nothing is lost", async () => {
  const { connection, socket, say } = fixture.openAuthenticated({
    config: { websocket: { send_queue_bytes: 65536 } },
  });
  say(subscribe("m1"));
  await settle();
  socket.drain();
  socket.capacity = 0;
  await fixture.insert(1, 200, "x".repeat(10_000));
  const sentWhileFull = socket.frames.length;
  expect(sentWhileFull).toBeLessThan(50);
  expect(socket.getBufferedAmount()).toBeLessThan(65536 + 20_000 + 1_100_000);
  say({ type: "ping", id: "waits" });
  expect(socket.messages().some(({ type }) => type === "pong")).toBe(false);
  for (let tick = 0; tick < 300 && socket.getBufferedAmount() > 0; tick += 1) {
    socket.take();
    connection.drained();
    await settle();
  }
  const ids = socket
    .messages()
    .flatMap((it) => (it.type === "change" ? it.rows.map(({ id }) => id) : []));
  expect(ids).toEqual(Array.from({ length: 200 }, (_, index) => index + 1));
  expect(socket.messages().some(({ type }) => type === "pong")).toBe(true);
});

test("every subscription of a full socket continues once the socket has drained", async () => {
  const { connection, socket, say } = fixture.openAuthenticated({
    config: { websocket: { send_queue_bytes: 65536 } },
  });
  const names = ["m1", "m2", "m3"];
  for (const name of names) say(subscribe(name));
  await settle();
  socket.drain();
  socket.capacity = 0;
  await fixture.insert(1, 50, "x".repeat(10_000));
  for (let tick = 0; tick < 300 && socket.getBufferedAmount() > 0; tick += 1) {
    socket.take();
    connection.drained();
    await settle();
  }
  for (const name of names) {
    const ids = socket
      .messages()
      .flatMap((it) =>
        it.type === "change" && it.subscription_id === name ? it.rows.map(({ id }) => id) : [],
      );
    expect(ids).toEqual(Array.from({ length: 50 }, (_, index) => index + 1));
  }
});

test("the messages of one tick are sent in one write, in order", async () => {
  const { connection, socket, say } = fixture.openAuthenticated();
  say(subscribe("m1"));
  await settle();
  socket.drain();
  const corksBefore = socket.corkCount;
  for (let id = 1; id <= 5; id += 1) {
    connection.send({ message: changeOf(id), encoded: [] });
  }
  expect(socket.frames).toEqual([]);
  await settle();
  expect(socket.corkCount).toBe(corksBefore + 1);
  // A control message never overtakes data.
  connection.send({ message: changeOf(6), encoded: [] });
  say({ type: "ping", id: "p" });
  const ids = socket.messages().map((it) => (it.type === "change" ? it.commit_seq : it.type));
  expect(ids).toEqual([1, 2, 3, 4, 5, 6, "pong"]);
});

test("a client that sends without reading is closed once too much data waits", () => {
  const { connection, socket, say } = fixture.openAuthenticated({
    config: { websocket: { send_queue_bytes: 65536 } },
  });
  socket.capacity = 0;
  for (let count = 0; count < 2000 && connection.state !== "closing"; count += 1) {
    say({ type: "ping", id: "x".repeat(60) });
    fixture.clock.advance(2);
  }
  say({ type: "ping", id: "more" });
  while (connection.state !== "closing") say({ type: "ping", id: "y".repeat(60) });
  expect(socket.closed).toMatchObject({ code: 1008 });
  expect(socket.getBufferedAmount()).toBeLessThan(70_000);
});

test("a message that the socket drops closes the connection with 1011", async () => {
  const { socket, say } = fixture.openAuthenticated();
  say(subscribe("m1"));
  await settle();
  socket.isDropping = true;
  await fixture.insert(1, 1);
  expect(socket.closed?.code).toBe(1011);
  expect(fixture.live.countOfUser("ada")).toBe(0);
});

test("tick sends pings, and closes with 1000 after a minute of silence", () => {
  const { connection, socket } = fixture.openAuthenticated();
  fixture.clock.advance(19_999);
  connection.tick();
  expect(socket.pingCount).toBe(0);
  fixture.clock.advance(1);
  connection.tick();
  expect(socket.pingCount).toBe(1);
  connection.touch();
  fixture.clock.advance(59_999);
  connection.tick();
  expect(socket.closed).toBeUndefined();
  fixture.clock.advance(1);
  connection.tick();
  expect(socket.closed?.code).toBe(1000);
});

test("a revoked session ends its connections with TOKEN_REVOKED and 1008", async () => {
  const connections = new Connections(fixture.clock, noBugs);
  const stop = identity.auth.onRevoked((revocation) => connections.revoke(revocation));
  const [first, other] = [await identity.logIn(), await identity.logIn()];
  const { connection, socket, say } = fixture.open({ request: { bearer: `Bearer ${first}` } });
  const untouched = fixture.open({ request: { bearer: `Bearer ${other}` } });
  connections.add(connection);
  connections.add(untouched.connection);
  say(subscribe("m1"));
  await settle();
  socket.drain();
  identity.auth.logout(first, { address: "127.0.0.1" });
  expect(socket.messages()).toMatchObject([
    { type: "error", code: "TOKEN_REVOKED", subscription_id: "m1", ended: true },
  ]);
  expect(socket.closed?.code).toBe(1008);
  expect(untouched.socket.closed).toBeUndefined();
  identity.auth.logout(other, { address: "127.0.0.1" });
  expect(untouched.socket.messages().at(-1)).toMatchObject({
    code: "TOKEN_REVOKED",
    subscription_id: "protocol",
  });
  expect(untouched.socket.closed?.code).toBe(1008);
  stop();
});

test("the end of a revoked connection is a single write, however many subscriptions it has", () => {
  const { connection, socket, say } = fixture.openAuthenticated();
  for (const id of ["m1", "m2", "m3"]) say(subscribe(id));
  socket.drain();
  const corksBefore = socket.corkCount;
  connection.revoke();
  expect(socket.corkCount).toBe(corksBefore + 1);
  const ended = ["m1", "m2", "m3"].map((id) => ({ code: "TOKEN_REVOKED", subscription_id: id }));
  expect(socket.drain()).toMatchObject(ended);
  expect(socket.closed?.code).toBe(1008);
});

test("shutdown sends queued messages, then closes with 1001", () => {
  const { connection, socket, say } = fixture.openAuthenticated();
  say(subscribe("m1"));
  socket.drain();
  socket.capacity = 0;
  fixture.live.shutdown();
  connection.shutDown();
  expect(socket.drain()).toMatchObject([{ code: "SHUTTING_DOWN", subscription_id: "m1" }]);
  expect(socket.closed).toBeUndefined();
  socket.take();
  connection.drained();
  expect(socket.closed?.code).toBe(1001);
});

test("shutdown closes a connection that never reads by force", async () => {
  const connections = new Connections(fixture.clock, noBugs);
  const { connection, socket, say } = fixture.openAuthenticated();
  connections.add(connection);
  socket.capacity = 0;
  say({ type: "ping", id: "p" });
  const done = connections.shutDown("websocket");
  for (let round = 0; round < 6; round += 1) {
    fixture.clock.advance(1000);
    await settle();
  }
  await done;
  expect(socket.isTerminated).toBe(true);
});

test("messages that arrive while closing are ignored", async () => {
  const { connection, socket, say } = fixture.openAuthenticated();
  say(subscribe("m1"));
  await settle();
  connection.revoke();
  socket.drain();
  say({ type: "ping", id: "p" });
  say(subscribe("m2"));
  connection.drained();
  connection.tick();
  connection.revoke();
  connection.shutDown();
  connection.closed();
  await fixture.insert(1, 1);
  expect(socket.drain()).toEqual([]);
  expect(socket.closed?.code).toBe(1008);
  expect(fixture.live.countOfUser("ada")).toBe(0);
});

test("a closed socket leaves nothing behind", async () => {
  const { connection, say } = fixture.openAuthenticated();
  say(subscribe("m1"));
  connection.closed();
  expect(fixture.live.countOfUser("ada")).toBe(0);
  const waiting = fixture.open();
  waiting.connection.closed();
  fixture.clock.advance(5000);
  expect(waiting.socket.messages()).toEqual([]);
});

test.each<[string, Partial<ConnectionRequest>, object | undefined, object]>([
  [
    "json and gzip by default",
    { format: { serialization: "json", isGzipOn: true } },
    undefined,
    { serialization: "json", compression: "gzip" },
  ],
  [
    "the message overrides the query",
    { format: { serialization: "json", isGzipOn: true } },
    { serialization: "msgpack", compression: "none" },
    { serialization: "msgpack", compression: "none" },
  ],
  [
    "compress=false wins",
    { isGzipForbidden: true },
    { compression: "gzip" },
    { serialization: "json", compression: "none" },
  ],
  [
    "an absent member keeps its value",
    { format: { serialization: "msgpack", isGzipOn: false } },
    { compression: "gzip" },
    { serialization: "msgpack", compression: "gzip" },
  ],
])("protocol: %s", (_what, request, protocol, inForce) => {
  const { socket, say } = fixture.open({ request });
  say({ type: "authenticate", token, ...(protocol === undefined ? {} : { protocol }) });
  expect(socket.messages()).toMatchObject([{ type: "auth_success", protocol: inForce }]);
});
