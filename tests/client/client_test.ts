/**
 * Tests the client against a scripted server: the messages that the client sends, their order, and
 * its reaction to lost connections, expired tokens and expired history.
 */
import { expect, test } from "bun:test";
import {
  type Client,
  ConnectionError,
  createClient,
  type LiveEvent,
  ServerError,
} from "../../src/client/mod.ts";
import {
  type Answer,
  ack,
  batch,
  busy,
  ended,
  expired,
  FakeServer,
  inserted,
  loggedIn,
  loginBody,
  ok,
  startLive,
  told,
} from "./scripted_server.ts";

/** The calls without parameter types. */
interface Loose {
  execute(sql: string, options: object): Promise<unknown>;
  query(sql: string, params: unknown): Promise<unknown>;
  live(sql: string, options: object): unknown;
}

test("query returns rows by column name, with the token of the login", async () => {
  const server = new FakeServer();
  const client = await loggedIn(server);
  const schema = [{ name: "id" }, { name: "text" }];
  server.answer = () =>
    ok({ results: [{ schema, rows: [[7, null]] }], status: "success", took: 1 });
  expect(await client.query("SELECT id, text FROM a.t WHERE id = $1", [7])).toEqual([
    { id: 7, text: null },
  ]);
  const { request } = server.requests.at(-1) ?? {};
  expect(request?.headers["Authorization"]).toBe("Bearer t1");
  expect(JSON.parse(request?.body ?? "")).toEqual({
    sql: "SELECT id, text FROM a.t WHERE id = $1",
    params: [7],
  });
});

test("execute and live send bigints as numbers, and those beyond 2^53 as strings of digits", async () => {
  const server = new FakeServer();
  const client = await loggedIn(server);
  const params = [2n ** 63n - 1n, 7n, 7, "a", null];
  const sent = ["9223372036854775807", 7, 7, "a", null];
  await client.execute("SELECT $1, $2, $3, $4, $5", { params });
  expect(JSON.parse(server.requests.at(-1)?.request.body ?? "")).toMatchObject({ params: sent });
  client.live("SELECT * FROM a.t WHERE id = $1", { params: [7n], onEvent: () => undefined });
  expect(server.socket.welcome()).toMatchObject({ subscription: { params: [7] } });
  client.close();
});

test("execute throws for values that JSON cannot represent, and does not blame the connection", async () => {
  const server = new FakeServer();
  const client = await loggedIn(server);
  const circle: unknown[] = [];
  circle.push(circle);
  const params = circle as never;
  const thrown = await client.execute("SELECT $1", { params }).catch((error: unknown) => error);
  expect(thrown).toBeInstanceOf(TypeError);
});

test("execute throws the server's refusal with the preceding results, even if the refusal arrives late", async () => {
  const server = new FakeServer();
  const client = await loggedIn(server);
  const entry = { row_count: 1, as_user: "ada" };
  const error = { code: "INVALID_SQL", message: "no", position: 9, hint: "yes", statement: 1 };
  for (const status of [400, 200]) {
    server.answer = () => ({ status, body: { results: [entry], status: "error", took: 1, error } });
    const thrown = await client.execute("SELECT 1; SELEC").catch((failure: unknown) => failure);
    expect(thrown).toBeInstanceOf(ServerError);
    expect(thrown).toMatchObject({
      code: "INVALID_SQL",
      position: 9,
      hint: "yes",
      results: [entry],
    });
  }
});

test("execute distinguishes an unreachable server from a refusal", async () => {
  const server = new FakeServer();
  const client = await loggedIn(server);
  server.answer = () => {
    throw new TypeError("Failed to fetch", { cause: new Error("connect ECONNREFUSED") });
  };
  const sql = "INSERT INTO a.t VALUES (1)";
  const thrown = await client.execute(sql).catch((failure: unknown) => failure);
  expect(thrown).toBeInstanceOf(ConnectionError);
  expect(thrown).toMatchObject({
    message:
      "The server at http://db.test:2900 could not be reached or broke off its response: Failed to fetch: connect ECONNREFUSED",
  });
  expect(server.requests.filter(({ path }) => path.endsWith("/sql"))).toHaveLength(1);
});

test("createClient refuses an address that is not HTTP, without revealing a password in it", () => {
  for (const [url, shown] of [
    ["127.0.0.1:2900", "127.0.0.1:2900"],
    ["localhost:2900", "localhost:2900"],
    ["ws://db.test", "ws://db.test"],
    ["", ""],
    ["/db", "/db"],
    ["http://", "http://"],
    ["ada:pass/word@db.test", "db.test"],
    ["ftp://ada:p@ss@db.test", "db.test"],
  ] as const) {
    expect(() => createClient({ url }), url).toThrow(
      new TypeError(
        `Cannot use the url "${shown}": it must begin with http:// or https://, like ` +
          '"http://127.0.0.1:2900"',
      ),
    );
  }
  for (const url of ["http://db.test", "https://db.test/under/a/path/", "HTTP://[::1]:2900//"]) {
    expect(() => createClient({ url }), url).not.toThrow();
  }
});

test("createClient and live refuse numeric options that are not numbers", async () => {
  const server = new FakeServer();
  const client = await loggedIn(server);
  for (const [given, what] of [
    [Number.NaN, "NaN"],
    [-1, "-1"],
    [1.5, "1.5"],
    ["3" as unknown as number, "a string"],
  ] as const) {
    const reason = `it is ${what}, but must be a whole number, 0 or more`;
    expect(() => createClient({ url: "http://db.test", maxRetries: given })).toThrow(
      new TypeError(`Cannot use maxRetries: ${reason}`),
    );
    const onEvent = (): void => undefined;
    for (const name of ["lastRows", "batchSize"]) {
      expect(() => client.live("SELECT 1", { onEvent, [name]: given })).toThrow(
        new TypeError(`Cannot use ${name}: ${reason}`),
      );
    }
  }
  expect(server.sockets).toEqual([]);
});

test("a failed request does not reveal the password in the address", async () => {
  const environment = new FakeServer();
  environment.fetch = async (url) => {
    throw new TypeError(`Cannot fetch ${url}`);
  };
  const client = createClient({ url: "http://ada:pass word@db.test/a/", environment });
  const thrown = await client.session.status().catch((failure: unknown) => failure);
  expect(thrown).toBeInstanceOf(ConnectionError);
  expect(thrown).toMatchObject({
    message:
      "The server at http://db.test/a could not be reached or broke off its response: Cannot fetch http://db.test/a/v1/api/auth/status",
  });
});

test("query, execute and live report that parameters must be a list", async () => {
  const server = new FakeServer();
  const client = await loggedIn(server);
  // Code in JavaScript may pass an argument that the types forbid.
  const loose = client as unknown as Loose;
  const message =
    "Cannot send the parameters: they must be a list, as in query(sql, [1]) or execute(sql, { " +
    "params: [1] })";
  for (const given of [{ params: [1] }, { 0: 1 }, 1, null]) {
    for (const call of [
      () => loose.query("SELECT $1", given),
      () => loose.execute("SELECT $1", { params: given }),
    ]) {
      const thrown = await call().catch((failure: unknown) => failure);
      expect(thrown).toEqual(new TypeError(message));
    }
    expect(() => loose.live("SELECT $1", { params: given, onEvent: () => undefined })).toThrow(
      message,
    );
  }
  expect(server.requests.filter(({ path }) => path.endsWith("/sql"))).toEqual([]);
  expect(server.sockets).toEqual([]);
});

test("execute and live refuse parameters that JSON would turn into NULL, and statements that are not text", async () => {
  const server = new FakeServer();
  const client = await loggedIn(server);
  const loose = client as unknown as Loose;
  const nothing: unknown[] = ["a"];
  nothing.length = 2;
  const onEvent = (): void => undefined;
  for (const [params, what] of [
    [["a", undefined], "undefined"],
    [nothing, "undefined"],
    [["a", onEvent], "a function"],
    [["a", Symbol("b")], "a symbol"],
  ] as const) {
    const message =
      `Cannot send parameter 2: it is ${what}, but must be null, a boolean, a ` +
      "finite number, a bigint, a string, a Date, bytes (Uint8Array), a list or " +
      "a plain object";
    const thrown = await loose.query("SELECT $1", params).catch((failure: unknown) => failure);
    expect(thrown).toEqual(new TypeError(message));
    expect(() => loose.live("SELECT $1", { params, onEvent })).toThrow(message);
  }
  for (const [sql, what] of [
    [undefined, "undefined"],
    [null, "null"],
    [5, "5"],
    [{ sql: "SELECT 1" }, "an object"],
  ] as const) {
    const message = `Cannot send the statement: it is ${what}, but must be a string`;
    const text = sql as unknown as string;
    const thrown = await loose.execute(text, {}).catch((failure: unknown) => failure);
    expect(thrown).toEqual(new TypeError(message));
    expect(() => loose.live(text, { onEvent })).toThrow(message);
  }
  expect(server.requests.filter(({ path }) => path.endsWith("/sql"))).toEqual([]);
  expect(server.sockets).toEqual([]);
});

test("execute repeats a read and a write with a key after the delay that the server requests", async () => {
  const server = new FakeServer();
  const client = await loggedIn(server);
  const given = server.answer;
  for (const [sql, options] of [
    ["SELECT 1", {}],
    ["INSERT INTO a.t VALUES (1)", { idempotencyKey: "k1" }],
  ] as const) {
    server.requests.length = 0;
    server.answer = () => busy();
    const executed = client.execute(sql, options);
    await Bun.sleep(0);
    server.answer = given;
    expect(server.fire()).toEqual([7000]);
    expect(await executed).toMatchObject({ results: [] });
    const bodies = server.requests.map(({ request }) => JSON.parse(request.body ?? "") as object);
    expect(bodies).toHaveLength(2);
    expect(bodies[1]).toEqual(bodies[0] as object);
    const key = "idempotencyKey" in options ? { idempotency_key: "k1" } : {};
    expect(bodies[0]).toEqual({ sql, ...key });
  }
});

test("execute does not repeat a request after another user has logged in", async () => {
  const server = new FakeServer();
  const client = await loggedIn(server);
  const given = server.answer;
  server.answer = () => busy();
  const executed = client.execute("SELECT 1").catch((failure: unknown) => failure);
  await Bun.sleep(0);
  server.answer = given;
  await logIn(server, client, "bob");
  server.fire();
  expect(await executed).toMatchObject({ code: "unauthorized" });
  expect(server.requests.filter(({ path }) => path.endsWith("/sql"))).toHaveLength(1);
});

test("timeout limits each request, and a read is sent again", async () => {
  const server = new FakeServer();
  const client = createClient({
    url: "http://db.test",
    environment: server,
    timeout: "2s",
    maxRetries: 1,
  });
  await client.session.login("ada", "x");
  expect(server.timers.size).toBe(0);
  server.answer = (_path, { signal }) =>
    new Promise((_resolve, reject) => {
      signal?.addEventListener("abort", () => reject(new Error("aborted")));
    });
  const executed = client.execute("SELECT 1").catch((failure: unknown) => failure);
  const delays: number[] = [];
  for (let tick = 0; tick < 3; tick += 1) {
    await Bun.sleep(0);
    delays.push(...server.fire());
  }
  expect(delays).toEqual([2000, 150, 2000]);
  expect(await executed).toEqual(
    new ConnectionError("The server at http://db.test did not respond within 2000 ms"),
  );
});

const TOKEN_REFUSALS = ["TOKEN_EXPIRED", "INVALID_CREDENTIALS"];

test.each(TOKEN_REFUSALS)(
  "a token refused with %s is refreshed once for all affected requests, which are then repeated",
  async (code) => {
    const server = new FakeServer();
    const client = await loggedIn(server);
    server.answer = (path, { headers }) => {
      if (path.endsWith("/refresh")) return ok(loginBody("t2"));
      return headers["Authorization"] === "Bearer t2"
        ? ok({ results: [], status: "success", took: 1 })
        : expired(code);
    };
    await Promise.all([client.execute("SELECT 1"), client.execute("SELECT 2")]);
    const paths = server.requests.map(({ path }) => path.split("/").at(-1));
    expect(paths).toEqual(["login", "sql", "sql", "refresh", "sql", "sql"]);
    const refresh = server.requests.find(({ path }) => path.endsWith("/refresh"));
    expect(JSON.parse(refresh?.request.body ?? "")).toEqual({ refresh_token: "refresh t1" });
  },
);

test.each(TOKEN_REFUSALS)("a refused refresh after %s signs out", async (code) => {
  const server = new FakeServer();
  let signedOut = 0;
  const client = createClient({
    url: "http://db.test",
    session: "cookie",
    environment: server,
    onSignedOut: () => {
      signedOut += 1;
    },
  });
  await client.session.login("ada", "x");
  server.answer = (path) =>
    path.endsWith("/refresh")
      ? { status: 401, body: { error: "unauthorized", message: "no" } }
      : expired(code);
  const thrown = await client.execute("SELECT 1").catch((failure: unknown) => failure);
  expect(thrown).toMatchObject({ code: "unauthorized" });
  expect(signedOut).toBe(1);
  expect(client.session.accessToken).toBeUndefined();
});

test("live authenticates by message, requests each batch, and delivers rows before changes", async () => {
  const server = new FakeServer();
  const { events, id } = await startLive(server);
  expect(server.socket.received[0]).toMatchObject({ type: "authenticate", token: "t1" });
  server.socket.tell(ack(id), batch(id, [1, 2], 2, true));
  expect(server.socket.received.at(-1)).toEqual({ type: "next_batch", subscription_id: id });
  server.socket.tell(batch(id, [3], 5), inserted(id, 6));
  expect(told(events)).toEqual(["start", "loading", "+1,+2", "+3", "ready", "c6"]);
});

test("live resumes from the last position after a loss, and drops duplicates", async () => {
  const server = new FakeServer();
  const { events, id } = await startLive(server);
  server.socket.tell(ack(id), batch(id, [1], 4), inserted(id, 6));
  const lost = server.socket;
  lost.handlers.onClose(1006);
  expect(server.fire()).toContain(150);
  const message = server.socket.welcome();
  expect(message).toMatchObject({ subscription: { options: { from_seq_id: 6 } } });
  events.length = 0;
  // Messages of an old socket are ignored.
  lost.tell(inserted(id, 7));
  server.socket.tell(ack(id), batch(id, [6, 8], 9), inserted(id, 9, 10));
  expect(told(events)).toEqual(["from 6", "loading", "+8", "ready", "c10"]);
});

test("live continues unaffected when a handler throws", async () => {
  const calm = new FakeServer();
  const { events: expected, id } = await startLive(calm);
  playBatchLossAndChange(calm, id);
  for (const index of expected.keys()) {
    const server = new FakeServer();
    const ofEvent = new Error(`event ${index}`);
    const ofState = new Error("state open");
    const client = createClient({
      url: "http://db.test",
      environment: server,
      onConnection(state) {
        if (state === "open") throw ofState;
      },
    });
    await client.session.login("ada", "x");
    const events: LiveEvent[] = [];
    client.live("SELECT * FROM a.t", {
      onEvent(event) {
        events.push(event);
        if (events.length === index + 1) throw ofEvent;
      },
    });
    server.socket.welcome();
    const thrown = playBatchLossAndChange(server, id);
    expect(told(events), `event ${index}`).toEqual(told(expected));
    // The runtime reports each of these errors exactly once.
    expect(thrown.filter((error) => error === ofEvent)).toHaveLength(1);
    expect(thrown.filter((error) => error === ofState)).toHaveLength(2);
  }
});

/**
 * Plays a batch, a lost connection and a change, and lets handlers throw.
 * @returns The errors that were each thrown in a separate tick.
 */
function playBatchLossAndChange(server: FakeServer, id: string): unknown[] {
  const thrown: unknown[] = [];
  const fire = (): void => {
    for (const timer of [...server.timers].toSorted((a, b) => a.delayMs - b.delayMs)) {
      // In a healthy client, none of these timers is due yet except the reconnect timer.
      if (timer.delayMs >= 10_000) continue;
      server.timers.delete(timer);
      try {
        timer.callback();
      } catch (error) {
        thrown.push(error);
      }
    }
  };
  server.socket.tell(ack(id), batch(id, [1, 2], 2, true));
  expect(server.socket.received.at(-1)).toEqual({ type: "next_batch", subscription_id: id });
  server.socket.tell(batch(id, [3], 5), inserted(id, 6));
  server.socket.handlers.onClose(1006);
  fire();
  expect(server.socket.welcome()).toMatchObject({ subscription: { options: { from_seq_id: 6 } } });
  server.socket.tell(ack(id), batch(id, [], 9), inserted(id, 10));
  fire();
  return thrown;
}

test("live resumes a quiet table from the position in the heartbeat, and abandons a dead connection", async () => {
  const server = new FakeServer();
  const { events, id } = await startLive(server);
  server.socket.tell(ack(id), batch(id, [], 4));
  expect(server.fire()).toEqual([20_000]);
  server.socket.tell({ type: "pong", id: "heartbeat", positions: { [id]: 50 } });
  expect(server.fire()).toEqual([20_000]);
  // The second ping gets no response.
  expect(server.fire()).toEqual([10_000]);
  expect(server.socket.isClosed).toBe(true);
  expect(told(events).at(-1)).toBe("offline");
  server.fire();
  expect(server.socket.welcome()).toMatchObject({ subscription: { options: { from_seq_id: 50 } } });
});

test("live recovers from a socket that does not respond before it is open or accepted", async () => {
  const server = new FakeServer();
  const client = await loggedIn(server);
  client.live("SELECT * FROM a.t", { onEvent: () => undefined });
  expect(server.fire()).toEqual([20_000]);
  expect(server.socket.isClosed).toBe(true);
  expect(server.fire()).toEqual([150]);
  server.socket.handlers.onOpen();
  expect(server.fire()).toEqual([20_000]);
  expect(server.fire()).toEqual([300]);
  expect(server.socket.welcome()).toMatchObject({ type: "subscribe" });
});

test("live keeps waiting for the pong while other messages arrive", async () => {
  const server = new FakeServer();
  const { id } = await startLive(server);
  server.socket.tell(ack(id), batch(id, [], 4));
  expect(server.fire()).toEqual([20_000]);
  server.socket.tell(inserted(id, 5));
  expect(server.fire()).toEqual([10_000]);
  expect(server.socket.isClosed).toBe(false);
  expect(server.fire()).toEqual([10_000]);
  expect(server.socket.isClosed).toBe(true);
});

test("live starts again if history has expired, and ends after a refusal", async () => {
  const server = new FakeServer();
  const { client, events, id } = await startLive(server);
  server.socket.tell(ack(id), batch(id, [1], 4), ended(id, "RESUME_EXPIRED"));
  const again = server.socket.received.at(-1);
  expect(again).toMatchObject({ type: "subscribe", subscription: { id, options: {} } });
  expect(JSON.stringify(again)).not.toContain("from_seq_id");
  server.socket.tell(ack(id), batch(id, [1, 2], 9), ended(id, "NOT_FOUND"));
  expect(told(events).slice(-5)).toEqual(["start", "loading", "+1,+2", "ready", "ended"]);
  expect(server.socket.isClosed).toBe(true);
  client.close();
});

test("live waits longer after each failure, and refreshes the token after a refusal", async () => {
  const server = new FakeServer();
  const client = await loggedIn(server);
  client.live("SELECT * FROM a.t", { onEvent: () => undefined });
  const delays: number[] = [];
  for (let attempt = 0; attempt < 10; attempt += 1) {
    server.socket.handlers.onClose(1006);
    delays.push(...server.fire());
  }
  expect(delays).toEqual([150, 300, 600, 1200, 2400, 4800, 9600, 19_200, 22_500, 22_500]);
  server.answer = () => ok(loginBody("t3"));
  server.socket.handlers.onOpen();
  server.socket.tell({ type: "auth_error", message: "no", code: "TOKEN_EXPIRED" });
  await Bun.sleep(0);
  server.fire();
  server.socket.handlers.onOpen();
  expect(server.socket.received).toEqual([expect.objectContaining({ token: "t3" })]);
});

test("live reconnects at once when the network returns, and listens only while it waits", async () => {
  const listeners = new Set<() => void>();
  class Page extends FakeServer {
    whenOnline(callback: () => void): () => void {
      listeners.add(callback);
      return () => listeners.delete(callback);
    }
  }
  const server = new Page();
  const { client, id } = await startLive(server);
  server.socket.tell(ack(id), batch(id, [1], 1));
  expect(listeners.size).toBe(0);
  for (let losses = 1; losses <= 8; losses += 1) {
    server.socket.handlers.onClose(1006);
    expect(listeners.size).toBe(1);
    for (const listener of listeners) listener();
    expect(server.sockets).toHaveLength(losses + 1);
    // The wait timer is gone as well; the remaining timer watches the new socket.
    expect([...server.timers].map(({ delayMs }) => delayMs)).toEqual([20_000]);
    expect(listeners.size).toBe(0);
  }
  server.socket.handlers.onClose(1006);
  client.close();
  expect(listeners.size).toBe(0);
  expect(server.timers.size).toBe(0);
});

test("queries share a socket, which the last query closes", async () => {
  const server = new FakeServer();
  const { client, id } = await startLive(server);
  const second = client.live("SELECT * FROM a.u", { onEvent: () => undefined });
  expect(server.sockets).toHaveLength(1);
  second.close();
  expect(server.socket.received.at(-1)?.type).toBe("unsubscribe");
  expect(server.socket.isClosed).toBe(false);
  client.close();
  expect(server.socket.isClosed).toBe(true);
  // Further messages are ignored, and the client does not retry.
  server.socket.tell(inserted(id, 99));
  expect(server.fire()).toEqual([]);
  expect(server.sockets).toHaveLength(1);
});

/** Holds back the responses for paths with this ending until the test releases them. */
function hold(server: FakeServer, end: string): (answer: Answer) => Promise<void> {
  const before = server.answer;
  const waiting: ((answer: Answer) => void)[] = [];
  server.answer = (path, request) =>
    path.endsWith(end)
      ? new Promise<Answer>((resolve) => {
          waiting.push(resolve);
        })
      : before(path, request);
  return async (answer) => {
    server.answer = before;
    for (const resolve of waiting) resolve(answer);
    await Bun.sleep(0);
  };
}

function refused(): Answer {
  return { status: 401, body: { error: "unauthorized", message: "no" } };
}

/** Logs a client in as a user, for whom the fake server returns a token of the same name. */
async function logIn(server: FakeServer, client: Client, user: string): Promise<void> {
  const before = server.answer;
  server.answer = () => ok(loginBody(user, user));
  await client.session.login(user, "correct horse 9");
  server.answer = before;
}

test("a logout ends every live query before the server is notified, and does not count as a lost session", async () => {
  const server = new FakeServer();
  const events: LiveEvent[] = [];
  let signedOut = 0;
  const client = createClient({
    url: "http://db.test",
    session: "cookie",
    environment: server,
    onSignedOut: () => {
      signedOut += 1;
    },
  });
  await client.session.login("ada", "x");
  client.live("SELECT * FROM a.t", { onEvent: (event) => events.push(event) });
  server.socket.welcome();
  const answer = hold(server, "/logout");
  const loggedOut = client.session.logout();
  expect(told(events).at(-1)).toBe("ended");
  expect(server.socket.isClosed).toBe(true);
  // Messages to the socket of a session that has ended are ignored.
  server.socket.tell(ended("live-1", "TOKEN_REVOKED"));
  server.socket.handlers.onClose(1008);
  await answer(ok({ message: "bye" }));
  await loggedOut;
  expect(server.fire()).toEqual([]);
  expect(signedOut).toBe(0);
  expect(server.requests.map(({ path }) => path.split("/").at(-1))).toEqual(["login", "logout"]);
});

test("live starts again, without a position, when another user logs in", async () => {
  const server = new FakeServer();
  const { client, events, id } = await startLive(server);
  server.socket.tell(ack(id), batch(id, [1], 4));
  const first = server.socket;
  await logIn(server, client, "bob");
  expect(first.isClosed).toBe(true);
  const message = server.socket.welcome();
  expect(server.socket.received[0]).toMatchObject({ type: "authenticate", token: "bob" });
  expect(JSON.stringify(message)).not.toContain("from_seq_id");
  first.tell(inserted(id, 7));
  server.socket.tell(ack(id), batch(id, [1], 4));
  const once = ["start", "loading", "+1", "ready"];
  expect(told(events)).toEqual([...once, "offline", ...once]);
});

test("live starts again when another page of the browser has logged in as another user", async () => {
  const server = new FakeServer();
  const { client, id } = await startLive(server);
  server.socket.tell(ack(id), batch(id, [1], 4));
  server.answer = (path) => (path.endsWith("/refresh") ? ok(loginBody("bob", "bob")) : expired());
  // One user's statement is not repeated as another user.
  const thrown = await client.execute("DELETE FROM a.t").catch((failure: unknown) => failure);
  expect(thrown).toMatchObject({ code: "unauthorized" });
  expect(server.requests.filter(({ path }) => path.endsWith("/sql"))).toHaveLength(1);
  expect(JSON.stringify(server.socket.welcome())).not.toContain("from_seq_id");
  expect(server.socket.received[0]).toMatchObject({ token: "bob" });
});

test("live keeps its socket and its position when the same user logs in again", async () => {
  const server = new FakeServer();
  const { client, id } = await startLive(server);
  server.socket.tell(ack(id), batch(id, [1], 4));
  await logIn(server, client, "ada");
  expect(server.sockets).toHaveLength(1);
  server.socket.handlers.onClose(1006);
  server.fire();
  expect(server.socket.welcome()).toMatchObject({ subscription: { options: { from_seq_id: 4 } } });
  expect(server.socket.received[0]).toMatchObject({ token: "ada" });
});

test.each<[string, Answer]>([
  ["succeeds", ok(loginBody("late"))],
  ["is refused", refused()],
])(
  "a refresh that %s late changes nothing in a newer login, nor after a logout",
  async (_how, late) => {
    const server = new FakeServer();
    let signedOut = 0;
    const client = createClient({
      url: "http://db.test",
      environment: server,
      onSignedOut: () => {
        signedOut += 1;
      },
    });
    await client.session.login("ada", "x");
    for (const next of ["bob", undefined]) {
      const answer = hold(server, "/refresh");
      const refreshed = client.session.refresh().catch((failure: unknown) => failure);
      if (next === undefined) await client.session.logout();
      else await logIn(server, client, next);
      await answer(late);
      expect(await refreshed).toMatchObject({ code: "unauthorized", status: 401 });
      expect(client.session.accessToken).toBe(next);
    }
    expect(signedOut).toBe(0);
  },
);

test("the last of two login calls wins, whichever response arrives first", async () => {
  const server = new FakeServer();
  const client = await loggedIn(server);
  const answer = hold(server, "/login");
  const first = client.session.login("ada", "x").catch((failure: unknown) => failure);
  await Bun.sleep(0);
  await logIn(server, client, "bob");
  await answer(ok(loginBody("late")));
  expect(await first).toMatchObject({ code: "unauthorized" });
  expect(client.session.accessToken).toBe("bob");
});

test("a login whose response arrives after a logout is ignored", async () => {
  const server = new FakeServer();
  const client = await loggedIn(server);
  const answer = hold(server, "/login");
  const late = client.session.login("bob", "x").catch((failure: unknown) => failure);
  await Bun.sleep(0);
  await client.session.logout();
  await answer(ok(loginBody("late")));
  expect(await late).toMatchObject({ code: "unauthorized" });
  expect(client.session.accessToken).toBeUndefined();
});

test.each(["memory", "cookie"] as const)(
  "a refused login does not affect an earlier one that is not answered yet, in %s",
  async (keepIn) => {
    const server = new FakeServer();
    const client = createClient({ url: "http://db.test", session: keepIn, environment: server });
    const late = Promise.withResolvers<Answer>();
    server.answer = (_path, { body }) =>
      body?.includes("ada") === true ? late.promise : refused();
    const first = client.session.login("ada", "x");
    const second = client.session.login("bob", "wrong").catch((failure: unknown) => failure);
    await Bun.sleep(0);
    late.resolve(ok(loginBody("t1")));
    expect(await first).toMatchObject({ user: { id: "ada" } });
    expect(await second).toMatchObject({ code: "unauthorized" });
    expect(client.session.accessToken).toBe("t1");
  },
);

test("in a browser, a login waits for an earlier refresh, because the browser keeps the last cookie", async () => {
  const server = new FakeServer();
  const client = createClient({ url: "http://db.test", session: "cookie", environment: server });
  const answer = hold(server, "/refresh");
  const refreshed = client.session.refresh();
  const loggedInAs = client.session.login("ada", "x");
  expect(server.requests.map(({ path }) => path.split("/").at(-1))).toEqual(["refresh"]);
  await answer(ok(loginBody("t0")));
  await refreshed;
  await loggedInAs;
  expect(client.session.accessToken).toBe("t1");
});

test("live connects once even if its queries changed while the token was refreshed", async () => {
  const server = new FakeServer();
  const client = await loggedIn(server);
  const first = client.live("SELECT * FROM a.t", { onEvent: () => undefined });
  server.socket.welcome();
  const answer = hold(server, "/refresh");
  server.socket.handlers.onClose(1008);
  first.close();
  client.live("SELECT * FROM a.u", { onEvent: () => undefined });
  await answer(ok(loginBody("t2")));
  server.socket.welcome();
  // Only the heartbeat timer remains, because no call waits for a connection.
  expect(server.fire()).toEqual([20_000]);
  expect(server.sockets).toHaveLength(2);
});

test("live continues with the token of a login that happened during a refresh", async () => {
  const server = new FakeServer();
  const { client, events, id } = await startLive(server);
  server.socket.tell(ack(id), batch(id, [1], 4));
  const answer = hold(server, "/refresh");
  server.socket.handlers.onClose(1008);
  await logIn(server, client, "ada");
  await answer(refused());
  expect(server.fire()).toEqual([150]);
  expect(server.socket.welcome()).toMatchObject({ subscription: { options: { from_seq_id: 4 } } });
  expect(told(events)).not.toContain("ended");
});

test("live waits longer each time for capacity that it had before, and ends if it never had any", async () => {
  const server = new FakeServer();
  const { client, events, id } = await startLive(server);
  server.socket.tell(ack(id), batch(id, [1], 4));
  server.socket.handlers.onClose(1006);
  server.fire();
  server.socket.welcome();
  const full = ended(id, "SUBSCRIPTION_LIMIT_EXCEEDED");
  for (const delayMs of [150, 300, 600]) {
    server.socket.tell(full);
    expect(server.fire()).toContain(delayMs);
    expect(server.socket.received.at(-1)).toMatchObject({
      type: "subscribe",
      subscription: { id, options: { from_seq_id: 4 } },
    });
    // The heartbeat timer fired at the same time.
    server.socket.tell({ type: "pong", id: "heartbeat", positions: {} });
  }
  server.socket.tell(ack(id), batch(id, [5], 6), full);
  expect(told(events).slice(-5)).toEqual(["from 4", "loading", "+5", "ready", "offline"]);
  expect(server.fire()).toContain(150);
  const second: LiveEvent[] = [];
  client.live("SELECT * FROM a.u", { onEvent: (event) => second.push(event) });
  server.socket.tell(ended("live-2", "SUBSCRIPTION_LIMIT_EXCEEDED"));
  expect(told(second)).toEqual(["ended"]);
  server.socket.tell(full);
  client.close();
  expect(server.fire()).toEqual([]);
});
