/**
 * Tests the functions of `db.account` against a scripted server: the requests, the sessions that
 * result, and the refusal of a taken name.
 */
import { expect, test } from "bun:test";
import { createClient, ServerError } from "../../src/client/mod.ts";
import { until } from "../support/until.ts";
import {
  expired,
  FakeServer,
  loggedIn,
  loginBody,
  ok,
  startLive,
  told,
} from "./scripted_server.ts";

function sent(server: FakeServer): unknown[] {
  return server.requests.map(({ path, request }) => [
    path.split("/").at(-1),
    JSON.parse(request.body ?? "{}"),
    request.headers["Authorization"],
  ]);
}

test("account.signUp sends the fields, and logs the user in", async () => {
  const server = new FakeServer();
  const client = createClient({ url: "http://db.test", session: "cookie", environment: server });
  const identity = await client.account.signUp({ user: "ada", password: "x", invitation: "tdi_1" });
  expect(identity?.user.id).toBe("ada");
  expect(client.session.userId).toBe("ada");
  expect(sent(server)).toEqual([
    ["signup", { user: "ada", password: "x", invitation: "tdi_1" }, undefined],
    ["login", { user: "ada", password: "x" }, undefined],
  ]);
});

test("account.signUp with only an email address does not log in", async () => {
  const server = new FakeServer();
  const client = createClient({ url: "http://db.test", environment: server });
  expect(await client.account.signUp({ email: "a@b.example", password: "x" })).toBeUndefined();
  expect(sent(server)).toEqual([["signup", { email: "a@b.example", password: "x" }, undefined]]);
});

test("account.signUp says that the name may be taken if the login fails", async () => {
  const server = new FakeServer();
  const client = createClient({ url: "http://db.test", environment: server });
  server.answer = (path) =>
    path.endsWith("/login")
      ? { status: 401, body: { error: "unauthorized", message: "no" } }
      : ok({ message: "done" });
  const failure = await client.account
    .signUp({ user: "ada", password: "x" })
    .catch((error: unknown) => error);
  expect(failure).toBeInstanceOf(ServerError);
  expect(failure).toMatchObject({ code: "unauthorized", status: 401 });
  expect(String(failure)).toContain("the name may already be taken");
});

test("account.exportData waits for its archive, and returns a URL below the client's address", async () => {
  const server = new FakeServer();
  const client = createClient({
    url: "http://db.test/db",
    environment: server,
    auth: { token: "t1" },
  });
  const rows = [
    ["EX1", "export", "running", null, null, null],
    ["EX1", "running", 1, null, null],
    ["EX1", "completed", 1, "x", "https://other.test/db/v1/exports/ada/EX1?access=a.1.b"],
  ];
  const schemas = [
    ["job_id", "job_type", "status", "namespace_id", "table_name", "message"],
    ["job_id", "status", "created_at", "message", "download_url"],
  ];
  const texts: unknown[] = [];
  server.answer = (path, request) => {
    if (!path.endsWith("/sql")) return ok(loginBody("t1"));
    texts.push((JSON.parse(request.body ?? "{}") as { sql: string }).sql);
    const names = schemas[Math.min(texts.length, 2) - 1] ?? [];
    const schema = names.map((name, index) => ({ name, data_type: "Text", index }));
    const [row = []] = rows.splice(0, 1);
    const entry = { schema, rows: [row], row_count: 1, as_user: "ada" };
    return ok({ status: "success", results: [entry], took: 1 });
  };
  const url = client.account.exportData();
  await until(() => server.timers.size > 0);
  server.fire();
  expect(await url).toBe("http://db.test/db/v1/exports/ada/EX1?access=a.1.b");
  expect(texts).toEqual(["EXPORT USER DATA", "SHOW EXPORT", "SHOW EXPORT"]);
});

test.each([
  [[["EX1", "failed", 1, "the disk is full", null]], /without an archive: the disk is full$/],
  [[["EX2", "completed", 1, null, "/v1/exports/ada/EX2"]], /a newer export has replaced it$/],
  [[["EX1", "cancelled", 1, null, null]], /without an archive: cancelled$/],
])("account.exportData says why there is no archive", async (listed, why) => {
  const server = new FakeServer();
  const client = createClient({
    url: "http://db.test",
    environment: server,
    auth: { token: "t1" },
  });
  server.answer = (path, request) => {
    if (!path.endsWith("/sql")) return ok(loginBody("t1"));
    const isList = (request.body ?? "").includes("SHOW");
    const names = isList
      ? ["job_id", "status", "created_at", "message", "download_url"]
      : ["job_id", "job_type", "status", "namespace_id", "table_name", "message"];
    const rows = isList ? listed : [["EX1", "export", "running", null, null, null]];
    const schema = names.map((name, index) => ({ name, data_type: "Text", index }));
    const entry = { schema, rows, row_count: rows.length, as_user: "ada" };
    return ok({ status: "success", results: [entry], took: 1 });
  };
  const failure = await client.account.exportData().catch((error: unknown) => error);
  expect(failure).toBeInstanceOf(ServerError);
  expect(String(failure)).toMatch(why);
});

test("a guest becomes a user through its token, and its live queries continue", async () => {
  const server = new FakeServer();
  const { client, events, id } = await startLive(server);
  const { answer } = server;
  let release: (() => void) | undefined;
  server.answer = async (path, request) => {
    if (path.endsWith("/refresh")) return expired("unauthorized");
    if (path.endsWith("/login")) await new Promise<void>((resolve) => void (release = resolve));
    return path.endsWith("/login") ? ok(loginBody("t2")) : await answer(path, request);
  };
  const signedUp = client.account.signUp({ user: "eve", password: "x" });
  // The server ends the guest's session before it responds to the login.
  server.socket.tell({
    type: "error",
    subscription_id: id,
    code: "TOKEN_REVOKED",
    message: "no",
    ended: true,
  });
  await Bun.sleep(0);
  release?.();
  expect((await signedUp)?.user.id).toBe("ada");
  expect(sent(server).at(-2)).toEqual(["signup", { user: "eve", password: "x" }, "Bearer t1"]);
  await Bun.sleep(0);
  server.fire();
  server.socket.welcome();
  expect(server.socket.received[0]).toMatchObject({ type: "authenticate", token: "t2" });
  expect(told(events)).not.toContain("ended");
});

test("requests during the sign-up of a guest are repeated with the token of the user", async () => {
  const server = new FakeServer();
  const client = await loggedIn(server);
  const login = Promise.withResolvers<void>();
  server.answer = async (path, { headers }) => {
    if (path.endsWith("/refresh")) return expired("unauthorized");
    if (path.endsWith("/login")) await login.promise;
    if (path.endsWith("/login")) return ok(loginBody("t2"));
    if (path.endsWith("/signup")) return ok({ message: "done" });
    if (headers["Authorization"] === "Bearer t1") return expired("INVALID_CREDENTIALS");
    return ok({ results: [], status: "success", took: 1 });
  };
  const signedUp = client.account.signUp({ user: "eve", password: "x" });
  const query = client.query("SELECT 1");
  await Bun.sleep(0);
  login.resolve();
  await signedUp;
  expect(await query).toEqual([]);
  const tokens = server.requests
    .filter(({ path }) => path.endsWith("/sql"))
    .map(({ request }) => request.headers["Authorization"]);
  expect(tokens).toEqual(["Bearer t1", "Bearer t2"]);
  expect(server.requests.some(({ path }) => path.endsWith("/refresh"))).toBe(false);
});

test("a request is not repeated if another user has logged in meanwhile", async () => {
  const server = new FakeServer();
  const client = await loggedIn(server);
  server.answer = (path) =>
    path.endsWith("/login") ? ok(loginBody("b", "bob")) : expired("INVALID_CREDENTIALS");
  const query = client.query("SELECT 1").catch((error: unknown) => error);
  await client.session.login("bob", "x");
  expect(await query).toMatchObject({ code: "unauthorized" });
  expect(server.requests.filter(({ path }) => path.endsWith("/sql"))).toHaveLength(1);
});

test("account.beginAsGuest and account.changePassword start the sessions in their responses", async () => {
  const server = new FakeServer();
  const client = createClient({ url: "http://db.test", environment: server });
  server.answer = (path) =>
    ok(path.endsWith("/guest") ? loginBody("g", "guest-1") : loginBody("p", "guest-1"));
  expect((await client.account.beginAsGuest()).user.id).toBe("guest-1");
  expect(client.session.accessToken).toBe("g");
  await client.account.changePassword("old", "new");
  expect(client.session.accessToken).toBe("p");
  expect(sent(server)).toEqual([
    ["guest", {}, undefined],
    ["password", { password: "old", new_password: "new" }, "Bearer g"],
  ]);
});

test("account.deleteAccount ends the session without another request", async () => {
  const server = new FakeServer();
  const { client, events } = await startLive(server);
  server.answer = () => ok({ message: "gone" });
  await client.account.deleteAccount("x");
  expect(client.session.accessToken).toBeUndefined();
  expect(told(events).at(-1)).toBe("ended");
  expect(sent(server).at(-1)).toEqual(["delete", { password: "x" }, "Bearer t1"]);
});

test("the functions for links send their fields, and the token only where it is needed", async () => {
  const server = new FakeServer();
  const client = await loggedIn(server);
  server.requests.length = 0;
  server.answer = () => ok({ message: "ok" });
  await client.account.sendResetLink("ada");
  await client.account.resetPassword("t", "x");
  await client.account.sendVerifyLink();
  await client.account.changeEmail("x", "a@b.example");
  await client.account.verifyEmail("v");
  expect(sent(server)).toEqual([
    ["reset_link", { user: "ada" }, undefined],
    ["reset", { token: "t", password: "x" }, undefined],
    ["verify_link", {}, "Bearer t1"],
    ["email", { password: "x", email: "a@b.example" }, "Bearer t1"],
    ["verify", { token: "v" }, undefined],
  ]);
});

test.each<[string, (account: ReturnType<typeof createClient>["account"]) => unknown]>([
  ["Cannot use user", (account) => account.signUp({ user: 5 } as unknown as { password: string })],
  ["the new password", (account) => account.changePassword("x", 5 as unknown as string)],
  ["the address", (account) => account.changeEmail("x", "")],
  ["the token", (account) => account.verifyEmail("")],
])("a wrong argument is refused before anything is sent: %s", async (part, call) => {
  const server = new FakeServer();
  const { account } = createClient({ url: "http://db.test", environment: server });
  const failure = await (async () => call(account))().catch((error: unknown) => error);
  expect(failure).toBeInstanceOf(TypeError);
  expect(String(failure)).toContain(part);
  expect(server.requests).toEqual([]);
});
