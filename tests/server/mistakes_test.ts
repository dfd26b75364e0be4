/**
 * Tests mistakes that people make in their first requests. Each response must explain what is
 * wrong and how to send the request correctly.
 */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { SocketClient } from "../support/client.ts";
import { startTestServer, type TestServer } from "../support/http.ts";

let server: TestServer;
let token: string;

beforeAll(async () => {
  server = await startTestServer({ script: () => ({ results: [] }) });
  token = await server.token();
});

afterAll(async () => {
  expect(server.bugs).toEqual([]);
  await server.close();
});

/**
 * Returns the status, code and message of an error response, whichever of the two forms its body
 * has.
 */
async function refused(path: string, init: RequestInit): Promise<[number, string, string]> {
  const answer = await server.fetch(path, init);
  const { error, message } = (await answer.json()) as {
    error: string | { code: string; message: string };
    message: string;
  };
  if (typeof error === "string") return [answer.status, error, message];
  return [answer.status, error.code, error.message];
}

function post(body: string | Uint8Array, headers: Record<string, string> = {}): RequestInit {
  const authorization = `Bearer ${token}`;
  return {
    method: "POST",
    body,
    headers: { "Content-Type": "application/json", Authorization: authorization, ...headers },
  };
}

const TAKES =
  'this endpoint accepts application/json, as {"sql": "SELECT 1"}, or multipart/form-data with a part "sql"';

describe("a body for /v1/api/sql that is not JSON is explained", () => {
  test.each<[string, string]>([
    ["", "it is empty, but must be JSON"],
    [" \n", "it is empty, but must be JSON"],
    [
      "SELECT 1",
      'it is not valid JSON: unexpected character "S" at line 1, column 1; send a statement as {"sql": "SELECT …"}',
    ],
    [
      "sql=SELECT+1",
      'it is not valid JSON: unexpected character "s" at line 1, column 1; the body looks like a web form, but forms are not accepted here',
    ],
    [
      "{'sql':'SELECT 1'}",
      `it is not valid JSON: unexpected character "'" at line 1, column 2; put names and strings in straight double quotes (")`,
    ],
    [
      "{“sql”:1}",
      'it is not valid JSON: unexpected character "“" at line 1, column 2; put names and strings in straight double quotes (")',
    ],
    [
      '{"sql":"SELECT 1",}',
      'it is not valid JSON: unexpected character "}" at line 1, column 19; remove the comma before }',
    ],
    [
      '{"sql":"$1","params":[1, ]}',
      'it is not valid JSON: unexpected character "]" at line 1, column 26; remove the comma before ]',
    ],
    [
      '{"sql":"SELECT 1"}\n{"sql":"SELECT 2"}',
      'it is not valid JSON: unexpected character "{" at line 2, column 1; a request must contain a single JSON value, but there is more text after it',
    ],
    [
      '{"sql":"SELECT\n1"}',
      "it is not valid JSON: unexpected line break at line 1, column 15; in a string, write a line break as \\n and a tab as \\t",
    ],
    [
      '{"check":true,\n  sql:"SELECT 1"}',
      'it is not valid JSON: unexpected character "s" at line 2, column 3; put member names in double quotes',
    ],
    ['{"sql":"SELECT 1"', "it is not valid JSON: it ends too early, at line 1, column 18"],
    [
      '{"sql":"😀", True}',
      'it is not valid JSON: unexpected character "T" at line 1, column 13; put member names in double quotes',
    ],
    ['{"sql":NaN}', 'it is not valid JSON: unexpected character "N" at line 1, column 8'],
    [
      '{"sql":"\u0001"}',
      "it is not valid JSON: unexpected control character U+0001 at line 1, column 9",
    ],
    [
      "[".repeat(300),
      "its JSON is nested more than 128 levels deep, or has more than 10000 parts or 131072 commas",
    ],
    ['"SELECT 1"', "it is a string, but must be a JSON object"],
    ['["SELECT 1"]', "it is an array, but must be a JSON object"],
    ["null", "it is null, but must be a JSON object"],
  ])("%j", async (body, fault) => {
    const message = `Cannot read the body: ${fault}; ${TAKES}`;
    expect(await refused("/v1/api/sql", post(body))).toEqual([400, "INVALID_INPUT", message]);
  });

  test.each([
    [
      "a comma too many behind a long text",
      `{"sql":"${"x".repeat(300_000)}",}`,
      "it is not valid JSON: the error comes after its first 262144 characters",
    ],
    [
      "a word that the search cuts",
      `{"sql":"${"x".repeat(262_129)}",true${" ".repeat(99)}}`,
      "it is not valid JSON: the error comes after its first 262144 characters",
    ],
    [
      "a fault before long parameters",
      `{"sql":'SELECT 1',"params":["${"x".repeat(300_000)}"]}`,
      `it is not valid JSON: unexpected character "'" at line 1, column 8; put names and strings in straight double quotes (")`,
    ],
    [
      "more parameters than any request has",
      `{"sql":"SELECT 1","params":[${"1,".repeat(200_000)}1]}`,
      "its JSON is nested more than 128 levels deep, or has more than 10000 parts or 131072 commas",
    ],
    [
      "many short arrays",
      `[${"[0],".repeat(100_000)}0]`,
      "its JSON is nested more than 128 levels deep, or has more than 10000 parts or 131072 commas",
    ],
  ])("that is long: %s", async (_what, body, fault) => {
    const message = `Cannot read the body: ${fault}; ${TAKES}`;
    expect(await refused("/v1/api/sql", post(body))).toEqual([400, "INVALID_INPUT", message]);
  });

  test("a body that is not UTF-8 is explained", async () => {
    const message = `Cannot read the body: it is not valid UTF-8; ${TAKES}`;
    const answer = await refused("/v1/api/sql", post(Uint8Array.of(0xff, 0xfe, 0x7b, 0)));
    expect(answer).toEqual([400, "INVALID_INPUT", message]);
  });

  test("JSON after a byte order mark is read", async () => {
    const answer = await server.fetch("/v1/api/sql", post('\ufeff{"sql":"SELECT 1"}'));
    expect(answer.status).toBe(200);
  });

  test.each(["application/x-www-form-urlencoded", "text/plain", "application/sql"])(
    "a body with the content type %s is explained",
    async (type) => {
      expect(await refused("/v1/api/sql", post("SELECT 1", { "Content-Type": type }))).toEqual([
        415,
        "UNSUPPORTED_MEDIA_TYPE",
        `Cannot read a body of type "${type}": ${TAKES}; for JSON, send the header Content-Type: application/json`,
      ]);
    },
  );

  test("a login with a body that is not JSON is explained", async () => {
    expect(await refused("/v1/api/auth/login", post('{"user":"a",}'))).toEqual([
      400,
      "invalid_request",
      'Cannot read the body: it is not valid JSON: unexpected character "}" at line 1, column 13; remove the comma before }; this endpoint accepts application/json',
    ]);
  });
});

describe("a request with a wrong member name is explained", () => {
  test.each([
    ["query", "sql"],
    ["statement", "sql"],
    ["q", "sql"],
    ["text", "sql"],
    ["command", "sql"],
    ["SQL", "sql"],
  ])("a request with %s instead of %s is explained", async (name, meant) => {
    const message = `Cannot read "${name}": did you mean "${meant}"?`;
    const answer = await refused("/v1/api/sql", post(JSON.stringify({ [name]: "SELECT 1" })));
    expect(answer).toEqual([400, "INVALID_INPUT", message]);
  });

  test.each([
    ["parameters", "params"],
    ["args", "params"],
    ["values", "params"],
    ["parms", "params"],
    ["namespace", "namespace_id"],
    ["namespaceId", "namespace_id"],
    ["timeout", "timeout_ms"],
    ["timeoutMs", "timeout_ms"],
    ["idempotencyKey", "idempotency_key"],
  ])("a request with %s in place of %s is explained", async (name, meant) => {
    const message = `Cannot read "${name}": did you mean "${meant}"?`;
    const body = JSON.stringify({ sql: "SELECT 1", [name]: 1 });
    expect(await refused("/v1/api/sql", post(body))).toEqual([400, "INVALID_INPUT", message]);
  });

  test("a wrong member is ignored next to the right one, and so is a name that resembles none", async () => {
    const body = JSON.stringify({ sql: "SELECT 1", query: "x", trace: 1 });
    expect((await server.fetch("/v1/api/sql", post(body))).status).toBe(200);
  });

  test("a wrong name in a form is explained", async () => {
    const body = new FormData();
    body.set("query", "SELECT 1");
    const headers = { Authorization: `Bearer ${token}` };
    expect(await refused("/v1/api/sql", { method: "POST", body, headers })).toEqual([
      400,
      "INVALID_INPUT",
      'Cannot read "query": did you mean "sql"?',
    ]);
  });

  test("a wrong name in a login or in the URL of a live query is explained", async () => {
    const login = await refused("/v1/api/auth/login", post('{"email":"a","password":"b"}'));
    expect(login).toEqual([400, "invalid_request", 'Cannot read "email": did you mean "user"?']);
    const headers = { Authorization: `Bearer ${token}` };
    expect(await refused("/v1/api/live?query=SELECT+1", { headers })).toEqual([
      400,
      "INVALID_OPTIONS",
      'Cannot read "query": did you mean "sql"?',
    ]);
  });

  test.each([
    ["logout", { everything: true }, '"everything": did you mean "all"?'],
    ["logout", { all: true, x: 1 }, '"x": expected only "all"'],
    ["logout", { ALL: true }, '"ALL": did you mean "all"?'],
    ["refresh", { token: "t" }, '"token": did you mean "refresh_token"?'],
    [
      "login",
      { username: "a", password: "b", otp: 1 },
      '"otp": expected one of "user", "username", "password"',
    ],
    [
      "login",
      { user: "a", password: "b", ["o".repeat(1000)]: 1 },
      `"${"o".repeat(31)}…${"o".repeat(31)}": expected one of "user", "username", "password"`,
    ],
  ])("none is ignored by %s: %j", async (path, body, fault) => {
    const answer = await refused(`/v1/api/auth/${path}`, post(JSON.stringify(body)));
    expect(answer).toEqual([400, "invalid_request", `Cannot read ${fault}`]);
  });

  test.each([
    ["auth/logout?all=true", "all", "all"],
    ["auth/login?user=a", "user", "user"],
    ["sql?timeout_ms=5", "timeout_ms", "timeout_ms"],
    ["sql?check=true", "check", "check"],
    ["sql?query=SELECT+1", "query", "sql"],
  ])("a wrong name in the URL of %s is explained", async (path, name, member) => {
    expect(await refused(`/v1/api/${path}`, post('{"sql":"SELECT 1"}'))).toEqual([
      400,
      path.startsWith("sql") ? "INVALID_INPUT" : "invalid_request",
      `Cannot read "${name}" in the URL: in this endpoint, "${member}" belongs in the request body`,
    ]);
    expect((await server.fetch("/v1/api/sql?trace=1", post('{"sql":"SELECT 1"}'))).status).toBe(
      200,
    );
  });

  test("a missing or mistyped sql member is explained", async () => {
    expect(await refused("/v1/api/sql", post("{}"))).toEqual([
      400,
      "INVALID_INPUT",
      'Cannot read "sql": expected a string, but it is missing',
    ]);
    expect(await refused("/v1/api/sql", post('{"sql":["SELECT 1"]}'))).toEqual([
      400,
      "INVALID_INPUT",
      'Cannot read "sql": expected a string, but it is an array',
    ]);
  });
});

describe("a request with wrong parameters is explained", () => {
  test.each<[unknown, string, string]>([
    [
      { id: 1 },
      "INVALID_INPUT",
      'Cannot read "params": it is an object, but must be an array of the values for $1, $2, …',
    ],
  ])("%j", async (params, code, message) => {
    const body = JSON.stringify({ sql: "SELECT $1", params });
    expect(await refused("/v1/api/sql", post(body))).toEqual([400, code, message]);
  });

  test("a list of parameters that is too long is explained", async () => {
    const list = ["a".repeat(530_000)];
    const body = JSON.stringify({ sql: "SELECT $1, $2", params: [0, list] });
    expect(await refused("/v1/api/sql", post(body))).toEqual([
      400,
      "INVALID_PARAMETER",
      "Cannot bind parameter 2: it is longer than 524288 bytes",
    ]);
  });
});

describe("a request with a wrong token is explained", () => {
  const LOGIN = 'POST /v1/api/auth/login with {"user": "…", "password": "…"}';
  const SEND = `send the header Authorization: Bearer <token>; ${LOGIN} returns the token as access_token`;
  const sql = '{"sql":"SELECT 1"}';
  const json = { "Content-Type": "application/json" };

  test("a token that is missing or in the URL is explained", async () => {
    const init = { method: "POST", body: sql, headers: json };
    expect(await refused("/v1/api/sql", init)).toEqual([
      401,
      "MISSING_AUTHORIZATION",
      `The request has no token: ${SEND}`,
    ]);
    for (const name of ["token", "access_token"]) {
      expect(await refused(`/v1/api/sql?x=1&${name}=${token}`, init)).toEqual([
        401,
        "MISSING_AUTHORIZATION",
        `The request has no Authorization header, and tokens in the URL are ignored: ${SEND}`,
      ]);
    }
  });

  test("an EventSource without a token gets advice about the cookie", async () => {
    const cookie =
      "; an EventSource cannot send headers, so the page must first log in to get the tidemark_auth cookie";
    expect(await refused(`/v1/api/live?sql=SELECT+1&token=${token}`, {})).toEqual([
      401,
      "MISSING_AUTHORIZATION",
      `The request has no Authorization header, and tokens in the URL are ignored: ${SEND}${cookie}`,
    ]);
  });

  test("a token with another scheme, or without one, is explained", async () => {
    for (const scheme of ["Basic", "Token", "JWT"]) {
      const Authorization = `${scheme} ${token}`;
      expect(await refused("/v1/api/sql", post(sql, { Authorization }))).toEqual([
        401,
        "INVALID_CREDENTIALS",
        `The Authorization header has the scheme ${scheme}, which is not supported: ${SEND}`,
      ]);
    }
    for (const Authorization of [token, "correct horse"]) {
      expect(await refused("/v1/api/sql", post(sql, { Authorization }))).toEqual([
        401,
        "INVALID_CREDENTIALS",
        `The Authorization header does not begin with Bearer: ${SEND}`,
      ]);
    }
  });

  test("a token that is not valid is explained", async () => {
    expect(await refused("/v1/api/sql", post(sql, { Authorization: "Bearer x" }))).toEqual([
      401,
      "INVALID_CREDENTIALS",
      `The token is not valid; get a new access_token from ${LOGIN}`,
    ]);
  });
});

describe("a request with a wrong method is explained", () => {
  test.each([
    [
      "GET",
      "/v1/api/sql",
      "POST",
      `curl -H 'Authorization: Bearer <token>' -H 'Content-Type: application/json' -d '{"sql":"SELECT 1"}'`,
    ],
    [
      "GET",
      "/v1/api/auth/login",
      "POST",
      `curl -H 'Content-Type: application/json' -d '{"user":"…","password":"…"}'`,
    ],
    ["POST", "/health", "GET", "curl"],
    ["POST", "/v1/api/auth/me", "GET", "curl -H 'Authorization: Bearer <token>'"],
  ])("a request with method %s on %s is explained", async (method, path, right, call) => {
    const answer = await server.fetch(path, { method });
    expect(answer.headers.get("allow")).toStartWith(right);
    expect([answer.status, await answer.json()]).toEqual([
      405,
      {
        error: "method_not_allowed",
        message: `${method} is not allowed here: ${path} accepts only ${right}, as in ${call} '${server.url}${path}'`,
      },
    ]);
  });

  test("a wrong method on the paths of live queries is explained", async () => {
    expect((await refused("/v1/api/live", { method: "POST" }))[2]).toEndWith(
      `accepts only GET, as in curl -H 'Authorization: Bearer <token>' '${server.url}/v1/api/live?sql=…'`,
    );
    expect((await refused("/v1/ws", { method: "POST" }))[2]).toEndWith(
      `accepts only GET, as in new WebSocket('${server.url.replace("http", "ws")}/v1/ws')`,
    );
  });
});

test.each([
  ["/api/sql", "POST /v1/api/sql"],
  ["/sql", "POST /v1/api/sql"],
  ["/v1/sql", "POST /v1/api/sql"],
  ["/v1/query", "POST /v1/api/sql"],
  ["/api/query", "POST /v1/api/sql"],
  ["/api/v1/sql", "POST /v1/api/sql"],
  ["/v2/api/sql", "POST /v1/api/sql"],
  ["/v1/api/sql/", "POST /v1/api/sql"],
  ["/V1/API/SQL", "POST /v1/api/sql"],
  ["/v1/api/sqll", "POST /v1/api/sql"],
  ["/login", "POST /v1/api/auth/login"],
  ["/api/login", "POST /v1/api/auth/login"],
  ["/auth/login", "POST /v1/api/auth/login"],
  ["/v1/api/auth/logn", "POST /v1/api/auth/login"],
  ["/ws", "GET /v1/ws"],
  ["/websocket", "GET /v1/ws"],
  ["/live", "GET /v1/api/live"],
  ["/health/", "GET /health"],
  ["/healthz", "GET /health"],
  ["/swagger.json", "GET /v1/openapi.json"],
  ["/files/a/b/c/d", "GET /v1/files/{namespace}/{table}/{sub}/{stored_name}"],
])("the path %s suggests %s", async (path, nearest) => {
  for (const method of ["GET", "POST"]) {
    expect(await refused(path, { method })).toEqual([
      404,
      "not_found",
      `There is no ${path}: did you mean ${nearest}?`,
    ]);
  }
});

test.each(["/nope", `/${"x/".repeat(3000)}`])("the path %s is near no other", async (path) => {
  const message = `There is no ${path}: GET /v1/openapi.json lists the endpoints`;
  expect(await refused(path, {})).toEqual([404, "not_found", message]);
});

describe("a wrong message on a WebSocket is explained", () => {
  const TYPES =
    "the types are authenticate, subscribe, next_batch, unsubscribe, ping, consume, credit, topic_ack, nack, stop";

  test.each([
    ["{}", `Cannot read the message: it has no "type": ${TYPES}`],
    [
      '{"action":"subscribe"}',
      `Cannot read the message: it has no "type": ${TYPES}; "action": did you mean "type"?`,
    ],
    ['{"type":5}', `Cannot read the message: "type" is a number, but must be a string; ${TYPES}`],
    [
      '{"type":"subscrib"}',
      `Cannot read the message: there is no message type "subscrib"; ${TYPES}; did you mean subscribe?`,
    ],
    [
      '{"type":"Subscribe"}',
      `Cannot read the message: there is no message type "Subscribe"; ${TYPES}; did you mean subscribe?`,
    ],
    [
      '{"type":"listen"}',
      `Cannot read the message: there is no message type "listen"; ${TYPES}; did you mean subscribe?`,
    ],
    [
      '{"type":"auth"}',
      `Cannot read the message: there is no message type "auth"; ${TYPES}; did you mean authenticate?`,
    ],
    [
      '{"type":"query"}',
      `Cannot read the message: there is no message type "query"; ${TYPES}; to run statements, use POST /v1/api/sql`,
    ],
    ['{"type":"zzzzz"}', `Cannot read the message: there is no message type "zzzzz"; ${TYPES}`],
    [
      "[1]",
      'Cannot read the message: it is an array, but must be an object such as {"type": "ping", "id": "1"}',
    ],
    [
      "hello",
      'Cannot read the message: it is not valid JSON: unexpected character "h" at line 1, column 1',
    ],
    [
      '{"type":"ping",}',
      'Cannot read the message: it is not valid JSON: unexpected character "}" at line 1, column 16; remove the comma before }',
    ],
    [
      '{"type":"subscribe","id":"a","sql":"x"}',
      'Cannot read the subscribe message: "subscription" is missing, but must be an object such as {"id": "a", "sql": "SELECT …"}',
    ],
    [
      '{"type":"subscribe","subscription":{"id":5}}',
      'Cannot read the subscribe message: "subscription.id" is a number, but must be a string',
    ],
    [
      '{"type":"subscribe","subscription":{"id":"a","query":"x"}}',
      'Cannot read subscribe: "query": did you mean "sql"?',
    ],
    [
      '{"type":"unsubscribe","id":"a"}',
      'Cannot read the unsubscribe message: "subscription_id" is missing, but must be a string',
    ],
  ])("the message %s is explained", async (text, message) => {
    const socket = await SocketClient.connect(server.url, { token });
    await socket.expect("auth_success");
    socket.sendRaw(text);
    expect(await socket.expect("error")).toMatchObject({ code: "INVALID_MESSAGE", message });
    socket.close();
  });

  test("a message before authenticate is explained", async () => {
    const socket = await SocketClient.connect(server.url);
    socket.send({ type: "subscribe", subscription: { id: "a", sql: "SELECT 1" } });
    expect(await socket.expect("error")).toMatchObject({
      code: "AUTH_REQUIRED",
      message:
        'Authenticate first: send {"type": "authenticate", "token": "<token>"}, or open the connection with the header Authorization: Bearer <token>; POST /v1/api/auth/login returns a token as access_token',
    });
    socket.close();
  });
});
