/**
 * Verifies that the live connection renews its token before the server would close it, keeps its
 * socket, and retries while the server cannot be reached.
 */
import { expect, test } from "bun:test";
import { createClient, type LiveEvent } from "../../src/client/mod.ts";
import { ended, FakeServer, loggedIn, loginBody, ok, type Timer, told } from "./scripted_server.ts";

/** Returns a token with readable claims that was issued at `atMs` and is valid for an hour. */
function hourToken(name: string, atMs: number): string {
  const claims = { sub: "ada", jti: name, iat: atMs / 1000, exp: atMs / 1000 + 3600 };
  return `x.${Buffer.from(JSON.stringify(claims)).toString("base64url")}.x`;
}

/** Returns the timer that renews the token; undefined if there is none. */
function renewalOf(server: FakeServer): Timer | undefined {
  return [...server.timers].find(({ delayMs }) => delayMs > 60_000);
}

async function startRenewable(server: FakeServer): Promise<LiveEvent[]> {
  const events: LiveEvent[] = [];
  server.nowMs = 1_800_000_000_000;
  server.answer = () => ok(loginBody(hourToken("first", 1_700_000_000_000)));
  const client = await loggedIn(server);
  client.live("SELECT * FROM a.t", { onEvent: (event) => events.push(event) });
  server.socket.welcome();
  return events;
}

test("live renews its token in time, and the socket and its queries continue", async () => {
  const server = new FakeServer();
  const events = await startRenewable(server);
  // The client's and the server's clocks differ, so the lifetime is counted from the receipt of
  // the token.
  expect(renewalOf(server)?.delayMs).toBe(55 * 60_000);
  const newer = hourToken("newer", 1_700_003_300_000);
  server.answer = () => ok(loginBody(newer));
  const before = server.socket.received.length;
  renewalOf(server)?.callback();
  await Bun.sleep(0);
  expect(server.socket.received.slice(before)).toMatchObject([
    { type: "authenticate", token: newer },
  ]);
  server.socket.tell({ type: "auth_success", user: "ada", role: "dba", protocol: {} });
  expect(server.socket.received).toHaveLength(before + 1);
  expect(server.sockets).toHaveLength(1);
  expect(renewalOf(server)?.delayMs).toBe(55 * 60_000);
  expect(told(events)).not.toContain("offline");
});

test("live retries a renewal while the server cannot be reached", async () => {
  const server = new FakeServer();
  await startRenewable(server);
  server.nowMs += 55 * 60_000;
  server.answer = () => Promise.reject(new Error("no network"));
  const timer = renewalOf(server);
  for (const waitMs of [150, 300]) {
    server.timers.clear();
    timer?.callback();
    await Bun.sleep(0);
    expect([...server.timers].map(({ delayMs }) => delayMs)).toEqual([waitMs]);
  }
  expect(server.socket.isClosed).toBe(false);
});

test("live does not renew a token that cannot be renewed, and gets a new one after TOKEN_EXPIRED", async () => {
  const server = new FakeServer();
  const events: LiveEvent[] = [];
  const client = createClient({
    url: "http://db.test",
    auth: { token: hourToken("only", 1_700_000_000_000) },
    environment: server,
  });
  client.live("SELECT * FROM a.t", { onEvent: (event) => events.push(event) });
  server.socket.welcome();
  expect(renewalOf(server)).toBeUndefined();
  server.socket.tell(ended("live-1", "TOKEN_EXPIRED"));
  await Bun.sleep(0);
  expect(server.socket.isClosed).toBe(true);
});
