/**
 * Verifies that every client call reports a bad argument immediately, suggests what to write
 * instead, and sends nothing.
 */
import { expect, test } from "bun:test";
import { type Client, createClient } from "../../src/client/mod.ts";
import { FakeServer, loggedIn } from "./scripted_server.ts";

/** The client's calls without parameter types, as JavaScript code sees them. */
type Loose = Record<string, (...given: unknown[]) => unknown>;

async function failureOf(call: () => unknown): Promise<unknown> {
  try {
    return await call();
  } catch (error) {
    return error;
  }
}

const onEvent = (): void => undefined;
const create = createClient as unknown as (...given: unknown[]) => unknown;
const url = "http://db.test";

const CALLS: [string, (client: Loose, session: Loose) => unknown, RegExp | string][] = [
  [
    "execute with a list",
    ({ execute }) => execute?.("SELECT $1", [1]),
    "Cannot execute: the options are a list, but must be an object; write execute(sql, { " +
      "params: [1] })",
  ],
  [
    "execute with null",
    ({ execute }) => execute?.("SELECT 1", null),
    "Cannot execute: the options are null, but must be an object; write execute(sql, { params: " +
      "[1] })",
  ],
  [
    "execute with text",
    ({ execute }) => execute?.("SELECT 1", "a"),
    /the options are a string, but must be an object/,
  ],
  [
    "execute with an unknown option",
    ({ execute }) => execute?.("SELECT 1", { param: [1] }),
    'Cannot execute: there is no option "param"; did you mean params? The options are params, files, namespace, idempotencyKey, signal, as in execute(sql, { params: [1] })',
  ],
  [
    "execute with an option of the wire",
    ({ execute }) => execute?.("SELECT 1", { idempotency_key: "a" }),
    /there is no option "idempotency_key"; did you mean idempotencyKey\?/,
  ],
  [
    "execute with an option that resembles no other",
    ({ execute }) => execute?.("SELECT 1", { toString: 1 }),
    /there is no option "toString"; The options are/,
  ],
  [
    "execute with a namespace",
    ({ execute }) => execute?.("SELECT 1", { namespace: 5 }),
    "Cannot use namespace: it is 5, but must be a string",
  ],
  [
    "execute with an empty key",
    ({ execute }) => execute?.("SELECT 1", { idempotencyKey: "" }),
    "Cannot use idempotencyKey: it is a string, but must be a non-empty string",
  ],
  [
    "execute with a controller",
    ({ execute }) => execute?.("SELECT 1", { signal: new AbortController() }),
    "Cannot use signal: it is an instance of AbortController, but must be an AbortSignal",
  ],
  [
    "execute with a file that is none",
    ({ execute }) => execute?.("SELECT 1", { files: { photo: "a.png" } }),
    "Cannot use files: it is an object, but must be an object of files, as in { photo: " +
      "input.files[0] }",
  ],
  [
    "query with params among its options",
    ({ query }) => query?.("SELECT $1", [1], { params: [1] }),
    /^Cannot query: there is no option "params"/,
  ],
  [
    "query with a list of options",
    ({ query }) => query?.("SELECT 1", [], [1]),
    /the options are a list/,
  ],
  [
    "live without a handler",
    ({ live }) => live?.("SELECT 1", { params: [1] }),
    "Cannot follow the query: there is no handler; write live(sql, { params: [1], onRows: " +
      "(rows) => show(rows) }), or pass onEvent, which receives each change",
  ],
  ["live without options", ({ live }) => live?.("SELECT 1"), /there is no handler/],
  ["live with a list", ({ live }) => live?.("SELECT 1", [1]), /the options are a list/],
  ["live with a function", ({ live }) => live?.("SELECT 1", onEvent), /the options are a function/],
  [
    "live with an unknown option",
    ({ live }) => live?.("SELECT 1", { onevent: onEvent }),
    /there is no option "onevent"; did you mean onEvent\?/,
  ],
  [
    "live with a handler that is not a function",
    ({ live }) => live?.("SELECT 1", { onRows: "show" }),
    "Cannot use onRows: it is a string, but must be a function",
  ],
  [
    "live with an invalid position",
    ({ live }) => live?.("SELECT 1", { onEvent, from: "7" }),
    "Cannot use from: it is a string, but must be a whole number of at least 0",
  ],
  [
    "live with an empty resumeKey",
    ({ live }) => live?.("SELECT 1", { onEvent, resumeKey: "" }),
    /^Cannot use resumeKey: it is a string, but must be a non-empty string/,
  ],
  [
    "live with a resumeKey and nowhere to keep the position",
    ({ live }) => live?.("SELECT 1", { onEvent, resumeKey: "a" }),
    /^Cannot use resumeKey: it needs a storage, .*createClient\(\{ url, storage \}\)/,
  ],
  [
    "live with an order of the wrong type",
    ({ live }) => live?.("SELECT 1", { onEvent, orderBy: ["id"] }),
    /^Cannot use orderBy: it is a list, but must be a string such as "sent_at DESC, id"/,
  ],
  [
    "live with an order that is not a list of columns",
    ({ live }) => live?.("SELECT 1", { onEvent, orderBy: "id DOWN" }),
    /^Cannot use orderBy: "id DOWN" is not a column/,
  ],
  [
    "live with onRows but without rows",
    ({ live }) => live?.("SELECT 1", { onRows: onEvent, keepRows: false }),
    /^Cannot follow the query: onRows needs all rows, but keepRows is false; remove keepRows, or use onEvent/,
  ],
  [
    "interrupt without a time",
    ({ interrupt }) => interrupt?.(),
    /^Cannot use the duration: it is undefined/,
  ],
  [
    "interrupt for text",
    ({ interrupt }) => interrupt?.("5s"),
    /^Cannot use the duration: it is a string/,
  ],
  ["login with an object", (_, { login }) => login?.({ user: "a" }), /write session\.login\("ada"/],
  ["login without a password", (_, { login }) => login?.("ada"), /write session\.login\("ada"/],
  [
    "setup with other names",
    (_, { setup }) => setup?.({ user: "a", password: "b", rootPassword: "c" }),
    /there is no option "rootPassword"; did you mean root_password\?/,
  ],
  ["setup with nothing", (_, { setup }) => setup?.(), /write session\.setup\(/],
  [
    "post of text",
    (_, { post }) => post?.("/v1/api/sql", "SELECT 1"),
    /^Cannot use the body: it is a string/,
  ],
  [
    "post to nowhere",
    (_, { post }) => post?.(undefined, {}),
    /^Cannot use the path: it is undefined/,
  ],
  ["post with a list", (_, { post }) => post?.("/v1/api/sql", {}, []), /the options are a list/],
  [
    "createClient without options",
    () => create(),
    /^Cannot create a client: the options are undefined/,
  ],
  [
    "createClient with a URL",
    () => create(url),
    /the options are a string, .* write createClient\(\{ url:/,
  ],
  [
    "createClient with an unknown option",
    () => create({ url, token: "t" }),
    /there is no option "token"/,
  ],
  ["createClient with another case", () => create({ URL: url }), /did you mean url\?/],
  [
    "createClient with a session of its own",
    () => create({ url, session: "localStorage" }),
    'Cannot use session: it is a string, but must be "cookie" or "memory" or "storage"',
  ],
  [
    "createClient with a handler",
    () => create({ url, onConnection: true }),
    /^Cannot use onConnection/,
  ],
  [
    "createClient with a number of time",
    () => create({ url, timeout: 10 }),
    /^Cannot use the duration "10"/,
  ],
  [
    "createClient with values",
    () => create({ url, values: "js" }),
    /must be "javascript" or "wire"/,
  ],
  [
    "createClient with a storage",
    () => create({ url, storage: {} }),
    /must be an object like localStorage/,
  ],
  [
    "createClient with auth of text",
    () => create({ url, auth: "t" }),
    /^Cannot log in with the option auth: the option is a string; write/,
  ],
  [
    "createClient with empty auth",
    () => create({ url, auth: {} }),
    /either a token, or a user and a password/,
  ],
  [
    "createClient with a user alone",
    () => create({ url, auth: { user: "a" } }),
    /either a token, or a user/,
  ],
  [
    "createClient with everything",
    () => create({ url, auth: { token: "t", user: "a", password: "b" } }),
    /either a token, or a user and a password/,
  ],
  [
    "createClient with another name",
    () => create({ url, auth: { username: "a" } }),
    /there is no option "username"; did you mean/,
  ],
  [
    "createClient with an empty token",
    () => create({ url, auth: { token: "" } }),
    /^Cannot use token/,
  ],
];

test.each(CALLS)("%s throws a TypeError at the call", async (_name, call, message) => {
  const server = new FakeServer();
  const client: Client = await loggedIn(server);
  const { session } = client;
  const loose = Object.fromEntries(
    ["login", "setup", "post"].map((name) => {
      const method = Reflect.get(session, name) as (...given: unknown[]) => unknown;
      return [name, method.bind(session)];
    }),
  );
  const failure = await failureOf(() => call(client as unknown as Loose, loose));
  expect(failure).toBeInstanceOf(TypeError);
  if (typeof message === "string") expect((failure as Error).message).toBe(message);
  else expect((failure as Error).message).toMatch(message);
  expect(server.requests.map(({ path }) => path)).toEqual(["/v1/api/auth/login"]);
  expect(server.sockets).toEqual([]);
});

test("an option that is undefined counts as omitted", async () => {
  const server = new FakeServer();
  const client = (await loggedIn(server)) as unknown as Loose;
  await client["execute"]?.("SELECT 1", { params: undefined, signal: undefined });
  client["live"]?.("SELECT 1", { onEvent, lastRows: undefined, from: undefined });
  expect(server.sockets).toHaveLength(1);
});
