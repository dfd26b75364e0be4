/**
 * The state machine of a connection, on a simulated socket and clock: the real identity, the real
 * live engine, and every event in every state.
 */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Auth, type Caller } from "../../src/auth/mod.ts";
import { silentLog } from "../../src/base/log.ts";
import { CatalogDatabase } from "../../src/catalog/mod.ts";
import type { LiveEngine } from "../../src/live/mod.ts";
import type { ServerMessage } from "../../src/protocol/mod.ts";
import { Connection, type ConnectionRequest, type Socket } from "../../src/server/connection.ts";
import { Connections } from "../../src/server/connections.ts";
import { authSettings, type ConfigChange, serverConfig } from "../support/http.ts";
import { fixtureOver, MESSAGES, message, messagesTable, settle } from "../support/live_fixture.ts";
import { ManualClock } from "../support/manual_clock.ts";
import { ModelStore } from "../support/model_store.ts";
import { SeededRandom } from "../support/seeded_random.ts";

const LOCAL: Caller = { address: "127.0.0.1", isLocal: true };

/** A socket that keeps what it is sent; what is beyond `capacity` waits until `take`. */
class SimulatedSocket implements Socket {
  readonly frames: (string | Uint8Array)[] = [];
  closed: { code: number; reason: string } | undefined;
  isTerminated = false;
  pingCount = 0;
  /** Bytes that the network takes at once. */
  capacity = Infinity;
  /** Drops everything from now on, as the runtime does above its own limit. */
  isDropping = false;
  #buffered = 0;

  send(frame: string | Uint8Array): number {
    if (this.isDropping) return 0;
    this.frames.push(frame);
    const bytes = typeof frame === "string" ? Buffer.byteLength(frame) : frame.length;
    if (this.#buffered + bytes <= this.capacity) return bytes;
    this.#buffered += bytes;
    return -1;
  }

  getBufferedAmount(): number {
    return this.#buffered;
  }

  ping(): number {
    this.pingCount += 1;
    return 1;
  }

  close(code: number, reason: string): void {
    this.closed ??= { code, reason };
  }

  terminate(): void {
    this.isTerminated = true;
  }

  /** The client reads: everything that waited has gone. */
  take(): void {
    this.#buffered = 0;
  }

  messages(): ServerMessage[] {
    return this.frames
      .filter((frame) => typeof frame === "string")
      .map((frame) => JSON.parse(frame) as ServerMessage);
  }

  /** Messages since the last call. */
  drain(): ServerMessage[] {
    const messages = this.messages();
    this.frames.length = 0;
    return messages;
  }
}

function subscribe(
  id: string,
  options?: object | null,
  sql = "SELECT * FROM chat.messages",
): object {
  const subscription = { id, sql, ...(options === undefined ? {} : { options }) };
  return { type: "subscribe", subscription };
}

interface OpenOptions {
  config?: ConfigChange;
  request?: Partial<ConnectionRequest>;
  as?: Auth;
}

describe("Connection", () => {
  let directory: string;
  let catalog: CatalogDatabase;
  let auth: Auth;
  let token: string;
  let owner: number;
  let clock: ManualClock;
  let store: ModelStore;
  let live: LiveEngine;

  // Passwords are slow on purpose: identity is made once, on a clock of its own.
  beforeAll(async () => {
    directory = mkdtempSync(join(tmpdir(), "tidemark-connection-"));
    const path = join(directory, "catalog.sqlite");
    catalog = CatalogDatabase.open({ path, clock: new ManualClock(), log: silentLog });
    auth = authAt(new ManualClock());
    const setup = { user: "ada", password: "correct horse 9", root_password: "battery staple 7" };
    await auth.setup(setup, LOCAL);
    owner = catalog.ownerNumber("ada", { create: true }) ?? 0;
    token = await logIn();
  });

  afterAll(() => {
    catalog.close();
    rmSync(directory, { recursive: true, force: true });
  });

  beforeEach(() => {
    clock = new ManualClock();
    store = new ModelStore(clock);
    store.defineTable(messagesTable());
    live = fixtureOver(store, clock).engine;
  });

  function authAt(authClock: ManualClock): Auth {
    const random = new SeededRandom(1);
    const settings = authSettings();
    return new Auth({ catalog, clock: authClock, random, log: silentLog, settings });
  }

  async function logIn(): Promise<string> {
    const login = await auth.login({ user: "ada", password: "correct horse 9" }, LOCAL);
    return login.access_token;
  }

  function open({ config = {}, request = {}, as = auth }: OpenOptions = {}): {
    connection: Connection;
    socket: SimulatedSocket;
    say: (message: object) => void;
  } {
    const socket = new SimulatedSocket();
    const connection = new Connection({
      connectionId: "c1",
      socket,
      request: {
        caller: LOCAL,
        bearer: undefined,
        format: { serialization: "json", isGzipOn: false },
        isGzipForbidden: false,
        ...request,
      },
      config: serverConfig(config),
      auth: as,
      live,
      clock,
      log: silentLog,
    });
    connection.open();
    return { connection, socket, say: (it) => connection.receive(JSON.stringify(it)) };
  }

  function openAuthenticated(options: OpenOptions = {}): ReturnType<typeof open> {
    const opened = open(options);
    opened.say({ type: "authenticate", token });
    expect(opened.socket.drain()).toMatchObject([{ type: "auth_success", user: "ada" }]);
    return opened;
  }

  async function insert(from: number, count: number, body = ""): Promise<void> {
    for (let id = from; id < from + count; id += 1) {
      const rows = [message(id, "lobby", 0, body)];
      store.write({ tableId: MESSAGES, owner, operation: "insert", rows });
    }
    await settle();
  }

  test("authenticates by message, and answers it again with what is in force", () => {
    const { connection, socket, say } = open();
    expect(connection.state).toBe("unauthenticated");
    const protocol = { serialization: "json", compression: "none" };
    say({ type: "authenticate", method: "jwt", token, protocol });
    expect(connection.state).toBe("authenticated");
    say({ type: "authenticate", token: 7, protocol: "anything" });
    const success = { type: "auth_success", user: "ada", role: "dba", protocol } as const;
    expect(socket.messages()).toEqual([success, success]);
    clock.advance(10_000);
    expect(socket.closed).toBeUndefined();
  });

  test("authenticates by header before anything is said", () => {
    const { connection, socket } = open({ request: { bearer: `bearer ${token}` } });
    expect(socket.messages()).toMatchObject([{ type: "auth_success", user: "ada" }]);
    expect(connection.principal?.userId).toBe("ada");
  });

  test.each<[string, object]>([
    ["a wrong token", { type: "authenticate", token: "x.y.z" }],
    ["another method", { type: "authenticate", method: "basic", token: "x" }],
    ["a token of 17 KiB", { type: "authenticate", token: "x".repeat(17408) }],
  ])("%s is auth_error and close 1008: there is one attempt", (_what, attempt) => {
    const { connection, socket, say } = open();
    say(attempt);
    expect(socket.messages()).toEqual([
      { type: "auth_error", message: "Authentication failed", code: "INVALID_CREDENTIALS" },
    ]);
    expect(socket.closed?.code).toBe(1008);
    say({ type: "authenticate", token });
    expect(connection.state).toBe("closing");
    expect(socket.messages().length).toBe(1);
  });

  test("a wrong header is auth_error and close 1008", () => {
    const { socket } = open({ request: { bearer: "Basic eDp5" } });
    expect(socket.messages()).toMatchObject([{ type: "auth_error", code: "INVALID_CREDENTIALS" }]);
    expect(socket.closed?.code).toBe(1008);
  });

  test("an expired token says so", () => {
    const later = new ManualClock();
    later.advance(2 * 3600 * 1000);
    const { socket, say } = open({ as: authAt(later) });
    say({ type: "authenticate", token });
    expect(socket.messages()).toMatchObject([{ type: "auth_error", code: "TOKEN_EXPIRED" }]);
    expect(socket.closed?.code).toBe(1008);
  });

  test("no token in time is AUTH_TIMEOUT and close 1008", () => {
    const { socket } = open();
    clock.advance(2999);
    expect(socket.closed).toBeUndefined();
    clock.advance(1);
    expect(socket.messages()).toMatchObject([{ type: "auth_error", code: "AUTH_TIMEOUT" }]);
    expect(socket.closed?.code).toBe(1008);
    expect(clock.timerCount).toBe(0);
  });

  test("a malformed authenticate is INVALID_MESSAGE and may be repeated", () => {
    const { socket, say } = open();
    say({ type: "authenticate" });
    say({ type: "authenticate", token, protocol: { serialization: "xml" } });
    say({ type: "authenticate", token });
    expect(socket.messages()).toMatchObject([
      { type: "error", code: "INVALID_MESSAGE", subscription_id: "protocol", ended: false },
      { type: "error", code: "INVALID_MESSAGE" },
      { type: "auth_success" },
    ]);
  });

  test("before authentication ping is served and the rest is AUTH_REQUIRED", () => {
    const { socket, say } = open();
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
    ["bad options", subscribe("a", { batch_size: 0 }), "INVALID_OPTIONS", "a"],
    ["a bad position", subscribe("a", { from_seq_id: "1.5" }), "INVALID_OPTIONS", "a"],
    ["an unknown replay", subscribe("a", { replay: "some" }), "INVALID_OPTIONS", "a"],
    ["bad SQL", subscribe("a", {}, "SELEKT"), "INVALID_SQL", "a"],
    ["64 KiB of SQL", subscribe("a", {}, "x".repeat(65537)), "INVALID_SQL", "a"],
    [
      "a bad parameter",
      { type: "subscribe", subscription: { id: "a", sql: "x", params: [[1]] } },
      "INVALID_PARAMETER",
      "a",
    ],
    [
      "parameters that are no list",
      { type: "subscribe", subscription: { id: "a", sql: "x", params: {} } },
      "INVALID_PARAMETER",
      "a",
    ],
    [
      "a namespace that is no text",
      { type: "subscribe", subscription: { id: "a", sql: "x", namespace_id: 1 } },
      "INVALID_OPTIONS",
      "a",
    ],
    ["next_batch of nothing", { type: "next_batch" }, "BATCH_FETCH_FAILED", "protocol"],
    [
      "next_batch of nobody",
      { type: "next_batch", subscription_id: "x" },
      "BATCH_FETCH_FAILED",
      "x",
    ],
    ["a bad next_batch", { type: "next_batch", subscription_id: 1 }, "INVALID_MESSAGE", "protocol"],
    ["a bad unsubscribe", { type: "unsubscribe" }, "INVALID_MESSAGE", "protocol"],
    ["a bad ping", { type: "ping", id: 1 }, "INVALID_MESSAGE", "protocol"],
    ["a long ping", { type: "ping", id: "x".repeat(65) }, "INVALID_MESSAGE", "protocol"],
  ])("%s: the connection stays open", (_what, said, code, subscriptionId) => {
    const { connection, socket } = openAuthenticated();
    connection.receive(typeof said === "string" ? said : JSON.stringify(said));
    expect(socket.messages()).toMatchObject([
      { type: "error", code, subscription_id: subscriptionId },
    ]);
    expect(connection.state).toBe("authenticated");
  });

  test("the tenth invalid message within a minute closes 1008, not one that comes later", () => {
    const { connection, socket } = openAuthenticated();
    for (let count = 0; count < 9; count += 1) connection.receive("{");
    clock.advance(60_000);
    connection.receive("{");
    expect(socket.closed).toBeUndefined();
    for (let count = 0; count < 8; count += 1) connection.receive("{");
    expect(socket.closed).toBeUndefined();
    connection.receive("{");
    expect(socket.closed?.code).toBe(1008);
  });

  test("messages above the rate are refused with the time to wait, and not processed", () => {
    const { socket, say } = open({ config: { limits: { messages_per_sec: 3 } } });
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
    clock.advance(334);
    say({ type: "ping", id: "later" });
    expect(socket.messages()).toMatchObject([{ type: "pong", id: "later" }]);
  });

  test("subscribes, loads batch by batch, and follows", async () => {
    await insert(1, 5);
    const { socket, say } = openAuthenticated();
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
    await insert(6, 1);
    const changes = socket.drain();
    expect(changes).toMatchObject([{ type: "change", change_type: "insert", rows: [{ id: 6 }] }]);
    say({ type: "ping", id: "p1" });
    const [pong] = socket.drain();
    expect(pong).toMatchObject({ type: "pong", positions: { m1: expect.any(Number) } });
    say({ type: "next_batch", subscription_id: "m1" });
    say({ type: "unsubscribe", subscription_id: "m1" });
    say({ type: "unsubscribe", subscription_id: "nobody" });
    await insert(7, 1);
    expect(socket.drain()).toEqual([]);
    expect(live.countOfUser("ada")).toBe(0);
  });

  test("an id in use ends the old subscription, whether or not the new one is accepted", async () => {
    const { socket, say } = openAuthenticated();
    say(subscribe("m1"));
    say(subscribe("m1", {}, "SELEKT"));
    await settle();
    expect(socket.drain().at(-1)).toMatchObject({ code: "INVALID_SQL", ended: true });
    expect(live.countOfUser("ada")).toBe(0);
    await insert(1, 1);
    expect(socket.drain()).toEqual([]);
    say({ type: "next_batch", subscription_id: "m1" });
    expect(socket.drain()).toMatchObject([{ code: "BATCH_FETCH_FAILED" }]);
  });

  test("next_batch without id is ambiguous while several load", async () => {
    await insert(1, 5);
    const { socket, say } = openAuthenticated();
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

  test("limits of subscriptions per connection and per user", () => {
    const limits = { subscriptions_per_connection: 2, subscriptions_per_user: 3 };
    const first = openAuthenticated({ config: { limits } });
    for (const id of ["a", "b", "c"]) first.say(subscribe(id));
    expect(first.socket.messages().at(-1)).toMatchObject({
      code: "SUBSCRIPTION_LIMIT_EXCEEDED",
      subscription_id: "c",
      ended: true,
    });
    // An id in use makes room for itself.
    first.socket.drain();
    first.say(subscribe("b"));
    expect(first.socket.messages()[0]).toMatchObject({ type: "subscription_ack" });
    const second = openAuthenticated({ config: { limits } });
    second.say(subscribe("a"));
    second.say(subscribe("b"));
    expect(second.socket.messages().at(-1)).toMatchObject({ code: "SUBSCRIPTION_LIMIT_EXCEEDED" });
  });

  test("a full socket pauses subscriptions and client messages, and nothing is lost", async () => {
    const { connection, socket, say } = openAuthenticated({
      config: { websocket: { send_queue_bytes: 65536 } },
    });
    say(subscribe("m1"));
    await settle();
    socket.drain();
    socket.capacity = 0;
    await insert(1, 200, "x".repeat(10_000));
    const sentWhileFull = socket.frames.length;
    expect(sentWhileFull).toBeLessThan(50);
    expect(socket.getBufferedAmount()).toBeLessThan(65536 + 20_000 + 1_100_000);
    say({ type: "ping", id: "waits" });
    expect(socket.messages().some(({ type }) => type === "pong")).toBe(false);
    for (let turn = 0; turn < 300 && socket.getBufferedAmount() > 0; turn += 1) {
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

  test("a client that sends without reading is closed when too much waits", () => {
    const { connection, socket, say } = openAuthenticated({
      config: { websocket: { send_queue_bytes: 65536 } },
    });
    socket.capacity = 0;
    for (let count = 0; count < 2000 && connection.state !== "closing"; count += 1) {
      say({ type: "ping", id: "x".repeat(60) });
      clock.advance(2);
    }
    say({ type: "ping", id: "more" });
    while (connection.state !== "closing") say({ type: "ping", id: "y".repeat(60) });
    expect(socket.closed).toMatchObject({ code: 1008 });
    expect(socket.getBufferedAmount()).toBeLessThan(70_000);
  });

  test("a message that the socket drops closes the connection with 1011", async () => {
    const { socket, say } = openAuthenticated();
    say(subscribe("m1"));
    await settle();
    socket.isDropping = true;
    await insert(1, 1);
    expect(socket.closed?.code).toBe(1011);
    expect(live.countOfUser("ada")).toBe(0);
  });

  test("tick pings, and closes 1000 after a silent minute", () => {
    const { connection, socket } = openAuthenticated();
    clock.advance(19_999);
    connection.tick();
    expect(socket.pingCount).toBe(0);
    clock.advance(1);
    connection.tick();
    expect(socket.pingCount).toBe(1);
    connection.touch();
    clock.advance(59_999);
    connection.tick();
    expect(socket.closed).toBeUndefined();
    clock.advance(1);
    connection.tick();
    expect(socket.closed?.code).toBe(1000);
  });

  test("a revoked session ends its connections with TOKEN_REVOKED and 1008", async () => {
    const connections = new Connections(clock);
    const stop = auth.onRevoked((revocation) => connections.revoke(revocation));
    const [first, other] = [await logIn(), await logIn()];
    const { connection, socket, say } = open({ request: { bearer: `Bearer ${first}` } });
    const untouched = open({ request: { bearer: `Bearer ${other}` } });
    connections.add(connection);
    connections.add(untouched.connection);
    say(subscribe("m1"));
    await settle();
    socket.drain();
    auth.logout(first);
    expect(socket.messages()).toMatchObject([
      { type: "error", code: "TOKEN_REVOKED", subscription_id: "m1", ended: true },
    ]);
    expect(socket.closed?.code).toBe(1008);
    expect(untouched.socket.closed).toBeUndefined();
    auth.logout(other);
    expect(untouched.socket.messages().at(-1)).toMatchObject({
      code: "TOKEN_REVOKED",
      subscription_id: "protocol",
    });
    expect(untouched.socket.closed?.code).toBe(1008);
    stop();
  });

  test("shutdown sends what is queued, then closes 1001", () => {
    const { connection, socket, say } = openAuthenticated();
    say(subscribe("m1"));
    socket.drain();
    socket.capacity = 0;
    live.shutdown();
    connection.shutDown();
    expect(socket.drain()).toMatchObject([{ code: "SHUTTING_DOWN", subscription_id: "m1" }]);
    expect(socket.closed).toBeUndefined();
    socket.take();
    connection.drained();
    expect(socket.closed?.code).toBe(1001);
  });

  test("shutdown of a connection that never reads ends by force", async () => {
    const connections = new Connections(clock);
    const { connection, socket, say } = openAuthenticated();
    connections.add(connection);
    socket.capacity = 0;
    say({ type: "ping", id: "p" });
    const done = connections.shutDown();
    for (let round = 0; round < 6; round += 1) {
      clock.advance(1000);
      await settle();
    }
    await done;
    expect(socket.isTerminated).toBe(true);
  });

  test("whatever arrives in closing is ignored", async () => {
    const { connection, socket, say } = openAuthenticated();
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
    await insert(1, 1);
    expect(socket.drain()).toEqual([]);
    expect(socket.closed?.code).toBe(1008);
    expect(live.countOfUser("ada")).toBe(0);
  });

  test("a gone socket leaves nothing behind", async () => {
    const { connection, say } = openAuthenticated();
    say(subscribe("m1"));
    connection.closed();
    expect(live.countOfUser("ada")).toBe(0);
    const waiting = open();
    waiting.connection.closed();
    clock.advance(5000);
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
      "a member left out stays",
      { format: { serialization: "msgpack", isGzipOn: false } },
      { compression: "gzip" },
      { serialization: "msgpack", compression: "gzip" },
    ],
  ])("protocol: %s", (_what, request, protocol, inForce) => {
    const { socket, say } = open({ request });
    say({ type: "authenticate", token, ...(protocol === undefined ? {} : { protocol }) });
    expect(socket.messages()).toMatchObject([{ type: "auth_success", protocol: inForce }]);
  });
});
