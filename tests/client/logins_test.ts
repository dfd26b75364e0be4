/**
 * Tests the effect of a login, a logout and an expired token on the client's requests and live
 * queries, even while their responses are in flight.
 */
import { expect, test } from "bun:test";
import { type Client, createClient, type LiveEvent } from "../../src/client/mod.ts";
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

const TOKEN_REFUSALS = ["TOKEN_EXPIRED", "INVALID_CREDENTIALS"];

/** Holds back the responses for paths with the given ending until the test releases them. */
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

/** Logs a client in as a user. The fake server returns a token with the user's name. */
async function logIn(server: FakeServer, client: Client, user: string): Promise<void> {
  const before = server.answer;
  server.answer = () => ok(loginBody(user, user));
  await client.session.login(user, "correct horse 9");
  server.answer = before;
}

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
  // A statement of one user is not repeated as another user.
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
