/**
 * Verifies that a response that does not come from the server, such as a proxy's page, an empty
 * body or other JSON, becomes an error with the status and the likely sender. If the response asks
 * the client to wait, the client waits.
 */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { globalEnvironment } from "../../src/client/environment.ts";
import { type Client, createClient, ServerError } from "../../src/client/mod.ts";
import { secondsFromRetryAfter } from "../../src/client/requests.ts";
import { ManualClock } from "../support/manual_clock.ts";

/** Returns the proxy's response to any request other than a login, which it forwards. */
let answer: () => Response = () => new Response();
let proxy: Bun.Server<undefined>;
const LOGIN = { access_token: "t", refresh_token: "r", user: { id: "ada" }, admin_ui_access: true };

beforeAll(() => {
  proxy = Bun.serve({
    port: 0,
    fetch: ({ url }) => (url.endsWith("/login") ? Response.json(LOGIN) : answer()),
  });
});

afterAll(() => proxy.stop(true));

function proxyUrl(): string {
  return `http://127.0.0.1:${proxy.port}`;
}

async function client(maxRetries = 0): Promise<Client> {
  const made = createClient({ url: proxyUrl(), maxRetries });
  await made.session.login("ada", "x");
  return made;
}

async function failureOf(work: Promise<unknown>): Promise<unknown> {
  return await work.then(
    () => "nothing",
    (error: unknown) => error,
  );
}

const PAGE = { "Content-Type": "text/html; charset=utf-8" };

const BODIES: [string, string | null, Record<string, string>, string][] = [
  ["a page", "<html><h1>Bad Gateway</h1></html>", PAGE, "no JSON (text/html)"],
  ["nothing", null, {}, "nothing"],
  ["null", "null", { "Content-Type": "application/json" }, "null"],
  ["a list", "[1]", {}, "other JSON"],
  ["text", '"no"', {}, "other JSON"],
  ["a number", "7", {}, "other JSON"],
  ["an object", '{"ok":true}', {}, "other JSON"],
  ["half an object", '{"results":', {}, "no JSON (text/plain)"],
];

test.each(BODIES)("after %s, every call fails with the received status", async (...given) => {
  const [, body, headers, kind] = given;
  for (const status of [200, 201, 400, 404, 429, 500, 502, 503, 504]) {
    answer = () => new Response(body, { status, headers });
    const made = await client();
    const calls: Record<string, () => Promise<unknown>> = {
      execute: () => made.execute("INSERT INTO a.t VALUES (1)"),
      query: () => made.query("SELECT 1"),
      refresh: () => made.session.refresh(),
    };
    // These calls only require that the response is an object.
    const isObject = body === '{"ok":true}' && status < 400;
    if (!isObject) calls["status"] = () => made.session.status();
    for (const [name, call] of Object.entries(calls)) {
      const failure = await failureOf(call());
      expect(failure, `${name} ${status}`).toBeInstanceOf(ServerError);
      expect(failure, `${name} ${status}`).toMatchObject({ code: "http_error", status });
      expect((failure as Error).message).toStartWith(
        `The server at ${proxyUrl()} responded with status ${status} and ${kind}, which is not a Tidemark response`,
      );
    }
  }
});

test.each<[string, unknown]>([
  ["results that are not a list", { status: "success", results: {} }],
  ["results of null", { status: "success", results: [null] }],
  ["no results", { status: "success" }],
  ["rows that are none", { status: "success", results: [{ rows: 5 }] }],
  ["rows of no cells", { status: "success", results: [{ rows: [null] }] }],
  ["a schema that is none", { status: "success", results: [{ schema: {} }] }],
  ["fields that are none", { status: "success", results: [{ schema: [null] }] }],
  ["another status", { status: "ok", results: [] }],
])("an answer with %s does not come from the server", async (_name, body) => {
  answer = () => Response.json(body);
  const failure = await failureOf((await client()).query("SELECT 1"));
  expect(failure).toMatchObject({ code: "http_error", status: 200 });
});

test.each<[string, unknown]>([
  ["no token", { user: { id: "ada" } }],
  ["no user", { access_token: "t" }],
  ["a user without a name", { access_token: "t", user: {} }],
])("a login answered with %s fails", async (_name, body) => {
  const other = Bun.serve({ port: 0, fetch: () => Response.json(body) });
  const { session } = createClient({ url: `http://127.0.0.1:${other.port}` });
  const failure = await failureOf(session.login("ada", "x"));
  expect(failure).toMatchObject({ code: "http_error", status: 200 });
  expect(session.accessToken).toBeUndefined();
  await other.stop(true);
});

test.each<[string, unknown, object]>([
  ["a code that is not a string", { error: { code: 5, message: "no" } }, { code: "http_error" }],
  [
    "no message",
    { error: { code: "INVALID_SQL" } },
    { code: "INVALID_SQL", message: "INVALID_SQL" },
  ],
  ["a plain error", { error: "gone", message: 5 }, { code: "gone", message: "gone" }],
  ["a list of errors", { error: ["no"] }, { code: "http_error" }],
])("a refusal with %s is a refusal", async (_name, body, expected) => {
  answer = () => Response.json(body, { status: 400 });
  const failure = await failureOf((await client()).execute("SELECT 1"));
  expect(failure).toBeInstanceOf(ServerError);
  expect(failure).toMatchObject({ status: 400, ...expected });
});

test.each([429, 503])(
  "the client waits as long as Retry-After asks after %d, with an HTML page and with JSON",
  async (status) => {
    for (const [header, body, seconds] of [
      ["7", "<html>", 7],
      ["90000000", null, 90_000_000],
      [new Date(60_000).toUTCString(), "<html>", 60],
      [new Date(0).toUTCString(), "<html>", 0],
      ["7", '{"error":"busy","message":"later"}', 7],
      ["7", '{"error":"busy","message":"later","retry_after_seconds":3}', 3],
    ] as const) {
      const clock = new ManualClock(0);
      const environment = {
        ...globalEnvironment,
        after: clock.after.bind(clock),
        now: () => clock.nowMs(),
      };
      const made = createClient({ url: proxyUrl(), maxRetries: 1, environment });
      await made.session.login("ada", "x");
      let calls = 0;
      answer = () => {
        calls += 1;
        return calls === 1
          ? new Response(body, { status, headers: { "Retry-After": header } })
          : Response.json({ results: [], status: "success", took: 1 });
      };
      const executed = made.execute("SELECT 1");
      while (clock.timerCount === 0) await new Promise((resolve) => setImmediate(resolve));
      if (seconds > 0) clock.advance(seconds * 1000 - 1);
      expect([calls, clock.timerCount]).toEqual([1, 1]);
      clock.advance(1);
      expect(await executed).toMatchObject({ results: [] });
      expect(calls).toBe(2);
    }
  },
);

test("an error contains the wait, and a gateway without a server is retried like a lost connection", async () => {
  answer = () => new Response("<html>", { status: 503, headers: { "Retry-After": "4" } });
  const failure = await failureOf((await client()).execute("DELETE FROM a.t"));
  expect(failure).toMatchObject({ status: 503, retryAfterSeconds: 4 });
  for (const status of [502, 504]) {
    let calls = 0;
    answer = () => {
      calls += 1;
      return new Response("<html>", { status, headers: { "Retry-After": "0" } });
    };
    expect(await failureOf((await client(2)).query("SELECT 1"))).toMatchObject({ status });
    expect(calls).toBe(3);
  }
});

test.each([
  ["120", 120],
  [" 5 ", 5],
  ["Sun, 06 Nov 1994 08:49:37 GMT", 37],
  ["Sunday, 06-Nov-94 08:49:37 GMT", 37],
  ["Sun Nov  6 08:49:37 1994", 37],
  ["Sun, 06 Nov 1994 08:48:00 GMT", 0],
  ["", undefined],
  ["-5", undefined],
  ["1.5", undefined],
  ["soon", undefined],
  ["Sunny", undefined],
  [null, undefined],
  [undefined, undefined],
])("secondsFromRetryAfter reads %p as %p", (header, seconds) => {
  expect(secondsFromRetryAfter(header, Date.UTC(1994, 10, 6, 8, 49, 0))).toBe(seconds);
});
