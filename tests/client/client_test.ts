/**
 * Tests the requests of the client against a scripted server: the values that they send, their
 * failures, and their retries.
 */
import { expect, test } from "bun:test";
import { ConnectionError, createClient, ServerError } from "../../src/client/mod.ts";
import { busy, FakeServer, loggedIn, ok } from "./scripted_server.ts";

/** The client's calls without parameter types. */
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
      "The server at http://db.test:2900 could not be reached, or interrupted its response: " +
      "Failed to fetch: connect ECONNREFUSED",
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
        `Cannot use the url "${shown}": it must begin with http:// or https://, as in ` +
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
    const reason = `it is ${what}, but must be a whole number of at least 0`;
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
      "The server at http://db.test/a could not be reached, or interrupted its response: " +
      "Cannot fetch http://db.test/a/v1/api/auth/status",
  });
});

test("query, execute and live report that parameters must be a list", async () => {
  const server = new FakeServer();
  const client = await loggedIn(server);
  // JavaScript code may pass an argument that the types forbid.
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
