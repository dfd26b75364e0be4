/**
 * Verifies that the server refuses, with an error code, input that is malformed, too large, nested
 * too deeply, out of order or forged. Such input never causes a crash, a hang, a stack trace or a
 * partial effect.
 */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { signToken } from "../../scripts/bench/systems/bearer.ts";
import { SocketClient } from "../support/client.ts";
import { type ServerProcess, startReadyServer } from "../support/server_process.ts";

const SECRET = "a secret of these tests, longer than 32 bytes";

let server: ServerProcess;

beforeAll(async () => {
  server = await startReadyServer({ config: { auth: { jwt_secret: SECRET } } });
  await server.rows("CREATE TABLE default.t (id BIGINT PRIMARY KEY, v TEXT)");
});

afterAll(async () => {
  // Whatever the tests sent, the server is still running and nothing was written.
  expect(await server.rows("SELECT COUNT(*) FROM default.t")).toEqual([[0]]);
  expect(server.output).not.toMatch(/panic|assertion|\n\s+at /i);
  await server.stop();
});

interface RawOptions {
  path?: string;
  headers?: Record<string, string>;
  method?: string;
}

async function send(body: string | undefined, options: RawOptions = {}): Promise<[number, string]> {
  const { path = "/v1/api/sql", headers = {}, method = "POST" } = options;
  const answer = await fetch(`${server.url}${path}`, {
    method,
    ...(body === undefined ? {} : { body }),
    headers: {
      "Content-Type": "application/json",
      Authorization: `Bearer ${server.token}`,
      ...headers,
    },
  });
  const text = await answer.text();
  expect(text).not.toMatch(/\bat .*:\d+:\d+|node_modules|\.ts\b/);
  const error = (JSON.parse(text === "" ? "{}" : text) as { error?: unknown }).error;
  const code = typeof error === "string" ? error : (error as { code?: string } | undefined)?.code;
  return [answer.status, code ?? ""];
}

/** Returns the body of a request with one statement. */
function statement(sql: string, fields: Record<string, unknown> = {}): string {
  return JSON.stringify({ sql, ...fields });
}

describe("malformed bodies of /v1/api/sql are refused", () => {
  const insert = "INSERT INTO default.t VALUES (1, 'x')";

  test.each([
    ["nothing", "", "INVALID_INPUT"],
    ["not JSON", "{sql:", "INVALID_INPUT"],
    ["cut off", statement(insert).slice(0, -1), "INVALID_INPUT"],
    ["two documents", `${statement(insert)}${statement(insert)}`, "INVALID_INPUT"],
    ["not an object", "[1]", "INVALID_INPUT"],
    ["null", "null", "INVALID_INPUT"],
    ["a number for sql", '{"sql":1}', "INVALID_INPUT"],
    ["no sql", '{"params":[]}', "INVALID_INPUT"],
    ["params of wrong type", statement(insert, { params: "x" }), "INVALID_INPUT"],
    ["namespace of wrong type", statement(insert, { namespace_id: 5 }), "INVALID_INPUT"],
    ["a timeout below its range", statement(insert, { timeout_ms: 0 }), "INVALID_INPUT"],
    ["a timeout of wrong type", statement(insert, { timeout_ms: "fast" }), "INVALID_INPUT"],
    ["too deep", `{"sql":"SELECT 1","x":${"[".repeat(200)}${"]".repeat(200)}}`, "INVALID_INPUT"],
    ["far too deep", "[".repeat(200_000), "INVALID_INPUT"],
    ["a control character", '{"sql":"SELECT \u0001"}', "INVALID_INPUT"],
  ])("%s", async (_name, body, code) => {
    expect(await send(body)).toEqual([400, code]);
  });

  test("a body that is too large is refused", async () => {
    const body = statement("SELECT 1", { filler: "x".repeat(11 * 1024 * 1024) });
    expect(await send(body)).toEqual([413, "BODY_TOO_LARGE"]);
  });

  test("a body of a type that browsers send across sites is refused", async () => {
    const headers = { "Content-Type": "text/plain" };
    expect(await send(statement(insert), { headers })).toEqual([415, "UNSUPPORTED_MEDIA_TYPE"]);
  });

  test("a body that is compressed is refused, but not as malformed JSON", async () => {
    for (const path of ["/v1/api/sql", "/v1/api/auth/login"]) {
      const answer = await fetch(`${server.url}${path}`, {
        method: "POST",
        body: Bun.gzipSync(Buffer.from(statement(insert))),
        headers: { "Content-Encoding": "gzip", Authorization: `Bearer ${server.token}` },
      });
      expect([answer.status, await answer.text()]).toEqual([
        415,
        expect.stringContaining(
          'Cannot read a body compressed with \\"gzip\\": send it uncompressed',
        ),
      ]);
    }
  });

  test.each(["", " ", "APPLICATION/JSON; charset=utf-8"])(
    'a body of type "%s" is read',
    async (type) => {
      const headers = { "Content-Type": type };
      expect(await send(statement("SELECT 1"), { headers })).toEqual([200, ""]);
      const path = "/v1/api/auth/refresh";
      expect(await send("{}", { path, headers })).toEqual([401, "unauthorized"]);
    },
  );
});

describe("a request with invalid SQL is refused", () => {
  const nested = (depth: number): string => `SELECT ${"(".repeat(depth)}1${")".repeat(depth)}`;
  test.each([
    ["nothing", "", "EMPTY_SQL"],
    ["only semicolons", " ;; -- none", "EMPTY_SQL"],
    ["an open quote", "SELECT 'x", "BATCH_PARSE_ERROR"],
    ["an open comment", "SELECT 1 /* x", "BATCH_PARSE_ERROR"],
    ["a word that is none", "SELEC 1", "INVALID_SQL"],
    [
      "a second statement that is none",
      "INSERT INTO default.t VALUES (1,'x'); SELEC",
      "INVALID_SQL",
    ],
    ["a token too much", "SELECT 1 1 1", "INVALID_SQL"],
    ["an unknown column", "SELECT nope FROM default.t", "INVALID_SQL"],
    ["an unknown function", "SELECT nope(1)", "INVALID_SQL"],
    ["an unknown table", "SELECT 1 FROM default.nope", "TABLE_NOT_FOUND"],
    ["an unknown namespace", "CREATE TABLE nope.t (id INT PRIMARY KEY)", "NAMESPACE_NOT_FOUND"],
    ["parentheses 10,000 deep", nested(10_000), "INVALID_SQL"],
    ["NOT 10,000 deep", `SELECT ${"NOT ".repeat(10_000)}TRUE`, "INVALID_SQL"],
    ["minus 10,000 deep", `SELECT ${"- ".repeat(10_000)}1`, "INVALID_SQL"],
    ["CASE 5,000 deep", `SELECT ${"CASE WHEN TRUE THEN ".repeat(5000)}1`, "INVALID_SQL"],
    ["more than a megabyte", `SELECT '${"x".repeat(1_100_000)}'`, "INVALID_SQL"],
    ["division by zero", "SELECT 1/0", "SQL_EXECUTION_ERROR"],
    ["a number out of range", "SELECT 2147483647 + 1", "SQL_EXECUTION_ERROR"],
    ["an open transaction", "BEGIN; INSERT INTO default.t VALUES (1,'x')", "SQL_EXECUTION_ERROR"],
    ["a commit of nothing", "COMMIT", "SQL_EXECUTION_ERROR"],
    [
      "a failure inside a transaction",
      "BEGIN; INSERT INTO default.t VALUES (1,'x'); SELECT 1/0; COMMIT",
      "SQL_EXECUTION_ERROR",
    ],
    [
      "a row of two equal keys",
      "INSERT INTO default.t VALUES (1,'x'),(1,'y')",
      "SQL_EXECUTION_ERROR",
    ],
  ])("%s", async (_name, sql, code) => {
    expect(await send(statement(sql))).toEqual([400, code]);
  });

  test("10,000 additions in a row do not count as nesting", async () => {
    const sql = `SELECT ${"1 + ".repeat(10_000)}1`;
    const [status] = await send(statement(sql));
    expect([200, 400]).toContain(status);
  });
});

describe("a request with invalid parameters is refused", () => {
  const sql = "SELECT $1::BIGINT, $2::TEXT";
  test.each([
    ["too few", sql, [1], "INVALID_PARAMETER"],
    ["too many", sql, [1, "x", 2], "INVALID_PARAMETER"],
    ["none", sql, undefined, "INVALID_PARAMETER"],
    ["a gap", "SELECT $1, $3", [1, 2, 3], "INVALID_PARAMETER"],
    ["number zero", "SELECT $0", [1], undefined],
    ["an array", sql, [[1], "x"], "SQL_EXECUTION_ERROR"],
    ["an object", sql, [{ a: 1 }, "x"], "SQL_EXECUTION_ERROR"],
    ["one too long", sql, [1, "x".repeat(600_000)], "INVALID_PARAMETER"],
    ["too many of them", "SELECT 1", Array.from({ length: 40_000 }, () => 1), "INVALID_PARAMETER"],
    ["of wrong type", sql, ["x", "y"], "SQL_EXECUTION_ERROR"],
    ["beyond 64 bits", sql, ["99999999999999999999", "y"], "SQL_EXECUTION_ERROR"],
    ["with two statements", "SELECT $1; SELECT $1", [1], "PARAMS_WITH_BATCH"],
    ["for a name", "SELECT 1 FROM $1", ["default.t"], "INVALID_SQL"],
  ])("%s", async (_name, text, params, code) => {
    const [status, got] = await send(statement(text, params === undefined ? {} : { params }));
    expect(status).toBe(400);
    if (code !== undefined) expect(got).toBe(code);
  });
});

describe("a request with an invalid token is refused", () => {
  const nowSeconds = Math.floor(Date.now() / 1000);

  function claims(change: Record<string, unknown> = {}): Record<string, unknown> {
    const [, body = ""] = server.token.split(".");
    const good = JSON.parse(Buffer.from(body, "base64url").toString()) as Record<string, unknown>;
    return { ...good, ...change };
  }
  function unsigned(header: Record<string, unknown>): string {
    return [header, claims()]
      .map((part) => Buffer.from(JSON.stringify(part)).toString("base64url"))
      .join(".");
  }

  const cases: readonly (readonly [name: string, token: () => string, code?: string])[] = [
    ["that is none", () => "nonsense"],
    ["of two parts", () => server.token.split(".").slice(0, 2).join(".")],
    ["of four parts", () => `${server.token}.x`],
    ["without its signature", () => server.token.replace(/[^.]*$/, "")],
    [
      "with one bit changed",
      () => server.token.replace(/.$/, (last) => (last === "A" ? "Q" : "A")),
    ],
    [
      "with another payload",
      () => server.token.replace(/\.[^.]*\./, `.${unsigned({}).split(".")[1]}x.`),
    ],
    [
      "signed with another secret",
      () => signToken(claims(), "another secret of more than 32 bytes"),
    ],
    ["of algorithm none", () => `${unsigned({ alg: "none", typ: "JWT" })}.`],
    ["of algorithm NONE", () => `${unsigned({ alg: "NONE" })}.`],
    ["of no algorithm", () => `${unsigned({})}.`],
    ["of another issuer", () => signToken(claims({ iss: "https://evil.example" }), SECRET)],
    ["of a list of issuers", () => signToken(claims({ iss: ["tidemark"] }), SECRET)],
    ["of nobody", () => signToken(claims({ sub: "" }), SECRET)],
    ["of an unknown user", () => signToken(claims({ sub: "ghost" }), SECRET)],
    ["of another case", () => signToken(claims({ sub: "ADA" }), SECRET)],
    ["with a raised role", () => signToken(claims({ role: "system" }), SECRET)],
    ["of an older version", () => signToken(claims({ tv: -1 }), SECRET)],
    ["without a version", () => signToken(claims({ tv: undefined }), SECRET)],
    ["without an end", () => signToken(claims({ exp: undefined }), SECRET)],
    ["that ends in a word", () => signToken(claims({ exp: "never" }), SECRET)],
    ["of the future", () => signToken(claims({ iat: nowSeconds + 9000 }), SECRET)],
    ["not yet valid", () => signToken(claims({ nbf: nowSeconds + 9000 }), SECRET)],
    ["to refresh with", () => signToken(claims({ token_type: "refresh" }), SECRET)],
    ["of no type", () => signToken(claims({ token_type: undefined }), SECRET)],
    ["of a megabyte", () => `${server.token}${"x".repeat(10_000)}`],
    [
      "that has ended",
      () => signToken(claims({ exp: nowSeconds - 90, iat: nowSeconds - 900 }), SECRET),
      "TOKEN_EXPIRED",
    ],
  ];

  test.each(cases)(
    "a request with a token %s is refused",
    async (_name, token, code = "INVALID_CREDENTIALS") => {
      const headers = { Authorization: `Bearer ${token()}` };
      expect(await send(statement("SELECT 1"), { headers })).toEqual([401, code]);
    },
  );

  test("an expired token is refused with the endpoint that returns a new one", async () => {
    const expired = signToken(claims({ exp: nowSeconds - 90, iat: nowSeconds - 900 }), SECRET);
    const answer = await fetch(`${server.url}/v1/api/sql`, {
      method: "POST",
      headers: { "Content-Type": "application/json", Authorization: `Bearer ${expired}` },
      body: statement("SELECT 1"),
    });
    expect(await answer.json()).toMatchObject({
      error: {
        message:
          'The token has expired; POST /v1/api/auth/refresh with {"refresh_token": "…"} ' +
          'returns a new one, and so does POST /v1/api/auth/login with {"user": "…", ' +
          '"password": "…"}',
      },
    });
  });

  test("a valid token is accepted, so that the cases above are refused for their fault", async () => {
    const headers = { Authorization: `Bearer ${signToken(claims(), SECRET)}` };
    expect(await send(statement("SELECT 1"), { headers })).toEqual([200, ""]);
  });

  test.each([
    ["no header", {}, "MISSING_AUTHORIZATION"],
    ["another scheme", { Authorization: "Basic YTpi" }, "INVALID_CREDENTIALS"],
    ["no token", { Authorization: "Bearer" }, "INVALID_CREDENTIALS"],
  ])("a request with %s is refused", async (_name, headers, code) => {
    const answer = await fetch(`${server.url}/v1/api/sql`, {
      method: "POST",
      headers: { "Content-Type": "application/json", ...(headers as Record<string, string>) },
      body: statement("SELECT 1"),
    });
    expect(answer.status).toBe(401);
    expect(answer.headers.get("WWW-Authenticate")).toBe("Bearer");
    expect(await answer.json()).toMatchObject({ status: "error", results: [], error: { code } });
  });

  test("a token in the URL is ignored", async () => {
    const path = `/v1/api/sql?token=${server.token}&access_token=${server.token}`;
    const answer = await fetch(`${server.url}${path}`, {
      method: "POST",
      headers: { "Content-Type": "application/json" },
      body: statement("SELECT 1"),
    });
    expect(answer.status).toBe(401);
  });
});

describe("malformed paths of requests are refused", () => {
  test.each([
    ["/nope", 404, "not_found"],
    ["/v1/api/sql/", 404, "not_found"],
    ["/v1/api/../../etc/passwd", 404, "not_found"],
    ["/ui/../../package.json", 404, undefined],
    ["/v1/files/default/t/../../catalog.sqlite", undefined, undefined],
    ["/v1/files/default/t/f0001/..%2f..%2f..%2fcatalog.sqlite", undefined, undefined],
    ["/v1/files/default/t/%2e%2e/x", undefined, undefined],
    ["/v1/files/default/t/f0001/%00", undefined, undefined],
    [`/${"x".repeat(7000)}`, 404, undefined],
  ])("%s", async (path, status, code) => {
    const [gotStatus, gotCode] = await send(undefined, { path, method: "GET" });
    expect(gotStatus).toBeGreaterThanOrEqual(400);
    expect(gotStatus).toBeLessThan(500);
    if (status !== undefined) expect(gotStatus).toBe(status);
    if (code !== undefined) expect(gotCode).toBe(code);
  });

  test("a path requested with a wrong method names the right one", async () => {
    const answer = await server.get("/v1/api/sql", { Authorization: `Bearer ${server.token}` });
    expect(answer.status).toBe(405);
    expect(answer.headers.get("Allow")).toContain("POST");
    expect(await answer.json()).toMatchObject({ error: "method_not_allowed" });
  });
});

describe("malformed WebSocket frames are refused", () => {
  async function connected(): Promise<SocketClient> {
    const socket = await SocketClient.connect(server.url, { token: server.token });
    await socket.expect("auth_success");
    return socket;
  }

  test.each([
    ["nothing", "", "INVALID_MESSAGE"],
    ["not JSON", "{", "INVALID_MESSAGE"],
    ["a number", "1", "INVALID_MESSAGE"],
    ["null", "null", "INVALID_MESSAGE"],
    ["a list", "[]", "INVALID_MESSAGE"],
    ["no type", "{}", "INVALID_MESSAGE"],
    ["an unknown type", '{"type":"nope"}', "INVALID_MESSAGE"],
    ["no subscription", '{"type":"subscribe"}', "INVALID_MESSAGE"],
    ["a number for one", '{"type":"subscribe","subscription":5}', "INVALID_MESSAGE"],
    ["no sql", '{"type":"subscribe","subscription":{"id":"a"}}', "INVALID_MESSAGE"],
    [
      "a blank id",
      '{"type":"subscribe","subscription":{"id":" ","sql":"x"}}',
      "INVALID_SUBSCRIPTION_ID",
    ],
    ["no SQL in sql", '{"type":"subscribe","subscription":{"id":"a","sql":"x"}}', "INVALID_SQL"],
    ["no subscription to end", '{"type":"unsubscribe"}', "INVALID_MESSAGE"],
    ["nothing to continue", '{"type":"next_batch"}', "BATCH_FETCH_FAILED"],
    ["far too deep", "[".repeat(100_000), "INVALID_MESSAGE"],
    ["larger than a message", `{"type":"${"x".repeat(1_200_000)}"}`, "MESSAGE_TOO_LARGE"],
    ["binary", Uint8Array.of(1, 2, 3), "UNSUPPORTED_DATA"],
  ])("%s", async (_name, frame, code) => {
    const socket = await connected();
    socket.sendRaw(frame);
    expect(await socket.expect("error")).toMatchObject({ code });
    // The connection must still work.
    socket.send({ type: "ping", id: "p" });
    expect(await socket.expect("pong")).toMatchObject({ id: "p" });
    socket.close();
  });

  test.each([
    ["batch_size 0", { batch_size: 0 }],
    ["batch_size in words", { batch_size: "many" }],
    ["last_rows below 0", { last_rows: -1 }],
    ["a position below 0", { from_seq_id: -1 }],
    ["a position in words", { from_seq_id: "soon" }],
    ["a fraction of a position", { from_seq_id: 1.5 }],
    ["an unknown replay", { replay: "some", from_seq_id: 0 }],
  ])("subscribe with %s is refused", async (_name, options) => {
    const socket = await connected();
    const subscription = { id: "s", sql: "SELECT * FROM default.t", options };
    socket.send({ type: "subscribe", subscription });
    expect(await socket.expect("error")).toMatchObject({
      subscription_id: "s",
      code: "INVALID_OPTIONS",
      ended: true,
    });
    socket.close();
  });

  test.each([Number.MAX_SAFE_INTEGER, "9007199254740991", "99999999999999999999"])(
    "subscribe from a position in the future is refused: %p",
    async (position) => {
      const socket = await connected();
      const options = { from_seq_id: position };
      const subscription = { id: "s", sql: "SELECT * FROM default.t", options };
      socket.send({ type: "subscribe", subscription });
      expect(await socket.expect("error")).toMatchObject({ code: "INVALID_RESUME", ended: true });
      socket.close();
    },
  );

  test("subscribe before authenticate is refused, and the connection stays", async () => {
    const socket = await SocketClient.connect(server.url);
    socket.send({ type: "subscribe", subscription: { id: "s", sql: "SELECT * FROM default.t" } });
    expect(await socket.expect("error")).toMatchObject({ code: "AUTH_REQUIRED", ended: false });
    expect(await socket.authenticate(server.token)).toMatchObject({ user: "ada", role: "dba" });
    socket.close();
  });

  test("the tenth invalid message closes the connection with 1008", async () => {
    const socket = await connected();
    for (let count = 0; count < 10; count += 1) socket.sendRaw("{");
    expect(await socket.closed()).toMatchObject({ code: 1008 });
  });

  test("a message far larger than allowed closes the connection with 1009", async () => {
    const socket = await connected();
    socket.sendRaw("x".repeat(5 * 1024 * 1024));
    expect(await socket.closed()).toMatchObject({ code: 1009 });
  });

  test.each([
    ["nonsense", "nonsense"],
    ["a refresh token", ""],
  ])("authenticate with %s closes the connection with 1008", async (name, given) => {
    const token = name === "a refresh token" ? (await server.login("ada")).refresh_token : given;
    const socket = await SocketClient.connect(server.url);
    socket.send({ type: "authenticate", method: "jwt", token });
    expect(await socket.expect("auth_error")).toMatchObject({ code: "INVALID_CREDENTIALS" });
    expect(await socket.closed()).toMatchObject({ code: 1008 });
  });
});
