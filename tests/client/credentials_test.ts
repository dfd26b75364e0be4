/**
 * Verifies that a client with credentials logs in by itself: once for all waiting requests, again
 * when its token is no longer accepted, and never with refused credentials.
 */
import { expect, test } from "bun:test";
import {
  type Client,
  type Credentials,
  createClient,
  type LiveEvent,
} from "../../src/client/mod.ts";
import { ack, batch, expired, FakeServer, loginBody, ok, told } from "./scripted_server.ts";

const ANSWER = { results: [], status: "success", took: 1 };

/** Returns a token with only the part of a server token that the client reads. */
function tokenOf(user: string, number = 1): string {
  const claims = Buffer.from(JSON.stringify({ sub: user, number })).toString("base64url");
  return `head.${claims}.sign`;
}

function start(auth: Credentials): { server: FakeServer; client: Client } {
  const server = new FakeServer();
  return { server, client: createClient({ url: "http://db.test", environment: server, auth }) };
}

function calls(server: FakeServer): string[] {
  return server.requests.map(({ path, request: { headers } }) =>
    [path.split("/").at(-1), headers["Authorization"]?.slice("Bearer ".length)]
      .filter((each) => each !== undefined)
      .join(" "),
  );
}

function bodyOf(server: FakeServer, index: number): unknown {
  return JSON.parse(server.requests[index]?.request.body ?? "null");
}

/** Makes the server accept only the given tokens. */
function letIn(server: FakeServer, ...tokens: string[]): void {
  const { answer } = server;
  server.answer = (path, request) => {
    if (!path.endsWith("/sql")) return answer(path, request);
    const given = request.headers["Authorization"]?.slice("Bearer ".length) ?? "";
    return tokens.includes(given) ? ok(ANSWER) : expired();
  };
}

test("a fixed token is sent unchanged, and is not renewed when it is refused", async () => {
  let signedOut = 0;
  const server = new FakeServer();
  const client = createClient({
    url: "http://db.test",
    environment: server,
    auth: { token: tokenOf("ada") },
    onSignedOut: () => {
      signedOut += 1;
    },
  });
  await client.execute("SELECT 1");
  expect(calls(server)).toEqual([`sql ${tokenOf("ada")}`]);
  expect(client.session.userId).toBe("ada");
  server.answer = () => expired();
  const failure = await client.execute("SELECT 1").catch((error: unknown) => error);
  expect(failure).toMatchObject({
    code: "unauthorized",
    message: expect.stringContaining("pass a function as auth"),
  });
  expect(signedOut).toBe(1);
});

test("a name and a password log in once for all simultaneous requests that need a token", async () => {
  const { client, server } = start({ user: "ada", password: "x" });
  expect(server.requests).toEqual([]);
  await Promise.all([client.execute("SELECT 1"), client.query("SELECT 2")]);
  expect(calls(server)).toEqual(["login", "sql t1", "sql t1"]);
  expect(bodyOf(server, 0)).toEqual({ user: "ada", password: "x" });
});

test("a name and a password log in again if the refresh token is also refused", async () => {
  const { client, server } = start({ user: "ada", password: "x" });
  await client.execute("SELECT 1");
  server.answer = (path, { headers }) => {
    if (path.endsWith("/refresh")) return { status: 401, body: { error: "unauthorized" } };
    if (path.endsWith("/login")) return ok(loginBody("t2"));
    return headers["Authorization"] === "Bearer t2" ? ok(ANSWER) : expired();
  };
  await client.execute("SELECT 1");
  expect(calls(server)).toEqual(["login", "sql t1", "sql t1", "refresh", "login", "sql t2"]);
  expect((await client.session.refresh()).user.id).toBe("ada");
});

test("a refused name and password are not tried again until a user logs in", async () => {
  const { client, server } = start({ user: "ada", password: "wrong" });
  const { answer } = server;
  server.answer = () => ({ status: 401, body: { error: "invalid_credentials", message: "no" } });
  for (let attempt = 0; attempt < 3; attempt += 1) {
    const failure = await client.execute("SELECT 1").catch((error: unknown) => error);
    expect(failure).toMatchObject({ code: "invalid_credentials", status: 401 });
  }
  const events: LiveEvent[] = [];
  client.live("SELECT 1", { onEvent: (event) => events.push(event) });
  await Bun.sleep(0);
  expect(events.at(-1)).toMatchObject({ status: "ended", error: { code: "invalid_credentials" } });
  expect(calls(server)).toEqual(["login"]);
  expect(server.sockets).toEqual([]);
  server.answer = answer;
  await client.session.login("ada", "right");
  await client.execute("SELECT 1");
  expect(calls(server).slice(1)).toEqual(["login", "sql t1"]);
});

test("a credentials function is called when a token is needed, and again when its token is no longer accepted", async () => {
  let asked = 0;
  const { client, server } = start(async () => {
    asked += 1;
    return tokenOf("ada", asked);
  });
  letIn(server, tokenOf("ada", 2));
  await Promise.all([client.execute("SELECT 1"), client.execute("SELECT 2")]);
  expect(asked).toBe(2);
  server.answer = (path) => ok(path.endsWith("/me") ? loginBody("") : ANSWER);
  expect((await client.session.refresh()).mayAdminister).toBe(true);
  expect(calls(server).at(-1)).toBe(`me ${tokenOf("ada", 3)}`);
});

test.each<[string, unknown, string]>([
  ["undefined", undefined, "returned undefined, but must return an access token as a string"],
  ["an object", { token: "t" }, "returned an object, but must return"],
  ["an empty string", "", "returned an empty string, but must return"],
])("a function that gives %s is told what to give", async (_name, given, message) => {
  const { client, server } = start(async () => given as string);
  const failure = await client.execute("SELECT 1").catch((error: unknown) => error);
  expect(failure).toMatchObject({
    code: "unauthorized",
    message: expect.stringContaining(message),
  });
  expect(server.requests).toEqual([]);
});

test("the call throws the error of a credentials function, and the next call tries the function again", async () => {
  let asked = 0;
  const { client, server } = start(() => {
    asked += 1;
    if (asked === 1) throw new Error("the token office is closed");
    return "t";
  });
  const failure = await client.execute("SELECT 1").catch((error: unknown) => error);
  expect(failure).toEqual(new Error("the token office is closed"));
  await client.execute("SELECT 1");
  expect(calls(server)).toEqual(["sql t"]);
});

test("live gets its token before it opens a socket, and a new token when the first one is refused", async () => {
  let asked = 0;
  const { client, server } = start(async () => {
    asked += 1;
    return tokenOf("ada", asked);
  });
  const events: LiveEvent[] = [];
  client.live("SELECT 1", { onEvent: (event) => events.push(event) });
  // React mounts a component like this, closing the first query before it has a socket.
  client.live("SELECT 2", { onEvent: () => undefined }).close();
  expect(server.sockets).toEqual([]);
  await Bun.sleep(0);
  expect(server.sockets).toHaveLength(1);
  server.socket.handlers.onOpen();
  expect(server.socket.received[0]).toMatchObject({ token: tokenOf("ada", 1) });
  server.socket.tell({ type: "auth_error", message: "no", code: "TOKEN_EXPIRED" });
  await Bun.sleep(0);
  server.fire();
  expect(server.socket.welcome()).toMatchObject({ type: "subscribe" });
  expect(server.socket.received[0]).toMatchObject({ token: tokenOf("ada", 2) });
  expect(told(events).at(-1)).toBe("offline");
});

test("a token of another user restarts every live query, without the earlier rows", async () => {
  let user = "ada";
  const { client, server } = start(() => tokenOf(user));
  const rows: number[] = [];
  client.live("SELECT 1", { onRows: (list) => rows.push(list.length) });
  await Bun.sleep(0);
  server.socket.welcome();
  server.socket.tell(ack("live-1"), batch("live-1", [1, 2], 5));
  user = "bob";
  await client.session.renew();
  expect(rows).toEqual([2, 0]);
  expect(JSON.stringify(server.socket.welcome())).not.toContain("from_seq_id");
});

test("credentials do not log in again after a logout", async () => {
  const { client, server } = start({ user: "ada", password: "x" });
  await client.execute("SELECT 1");
  await client.session.logout();
  const failure = await client.execute("SELECT 1").catch((error: unknown) => error);
  expect(failure).toMatchObject({ code: "unauthorized", message: "No user is logged in" });
  expect(calls(server)).toEqual(["login", "sql t1", "logout t1"]);
});
