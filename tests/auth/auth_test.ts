/**
 * Tests that callers are identified by their tokens, that they act on behalf of others only if
 * permitted, and that the audit log and the catalog record both.
 */
import { afterAll, expect, test } from "bun:test";
import type { Auth } from "../../src/auth/mod.ts";
import type { UserEntry } from "../../src/catalog/mod.ts";
import type { LoginBody } from "../../src/protocol/mod.ts";
import { removeCatalogs } from "../catalog/catalog_fixture.ts";
import { principalFor } from "../support/principal_for.ts";
import {
  type AuthFixture,
  addUser,
  audited,
  configuredServer,
  failureOf,
  LOCAL,
  PASSWORD,
  PASSWORD_HASH,
  REMOTE,
} from "./auth_fixture.ts";

afterAll(removeCatalogs);

const RIGHT = { user: "ada", password: PASSWORD };

/** Refreshes twice, so that the refresh token from a login is retired. Returns the last tokens. */
async function retire(auth: Auth, { refresh_token }: LoginBody): Promise<LoginBody> {
  const next = await auth.refresh(refresh_token, LOCAL);
  return await auth.refresh(next.refresh_token, LOCAL);
}

function claimsIn(token: string): { jti: string; sid: string } {
  return JSON.parse(Buffer.from(token.split(".")[1] ?? "", "base64url").toString()) as {
    jti: string;
    sid: string;
  };
}

test("Auth.authenticateHeader requires the scheme Bearer, in upper or lower case", async () => {
  const { auth } = configuredServer();
  const { access_token } = await auth.login(RIGHT, LOCAL);
  const codeOf = (header: string | null | undefined): Promise<string | undefined> =>
    failureOf(() => auth.authenticateHeader(header, LOCAL));

  for (const scheme of ["Bearer", "bearer", "BEARER"]) {
    expect(await codeOf(`${scheme} ${access_token}`), scheme).toBeUndefined();
    // When the token is used for the second time, its session is already known.
    expect(await codeOf(`${scheme} ${access_token}`), scheme).toBeUndefined();
    const whole = failureOf(() => auth.authenticate(`${scheme} ${access_token}`, LOCAL));
    expect(await whole, scheme).toBe("INVALID_CREDENTIALS");
  }
  for (const header of [null, undefined, ""]) {
    expect(await codeOf(header)).toBe("MISSING_AUTHORIZATION");
  }
  for (const header of [
    "Bearer",
    "Bearer ",
    access_token,
    `Basic ${access_token}`,
    `Bearer ${access_token} x`,
    `Bearer${access_token}`,
    `Bearer "${access_token}"`,
  ]) {
    expect(await codeOf(header), header).toBe("INVALID_CREDENTIALS");
    const isBearer = /^Bearer(?: |$)/.test(header);
    expect(() => auth.authenticateHeader(header, LOCAL), header).toThrow(
      isBearer ? "The token is not valid" : "send the header Authorization: Bearer <token>",
    );
  }
});

test("Auth.authenticateHeader counts other schemes as failed attempts", async () => {
  const { auth } = configuredServer({ ada: "dba" }, { attemptsPerSecond: 1 });
  const codes: (string | undefined)[] = [];
  for (let index = 0; index < 6; index += 1) {
    codes.push(await failureOf(() => auth.authenticateHeader("Basic eDp5", REMOTE)));
  }
  const expected = Array.from({ length: 5 }, () => "INVALID_CREDENTIALS");
  expect(codes).toEqual([...expected, "RATE_LIMIT_EXCEEDED"]);
});

test("Auth refuses a token as soon as anything has ended it", async () => {
  const endings: Record<string, (it: AuthFixture, token: string) => void> = {
    "a logout": ({ auth }, token) => auth.logout(token, LOCAL),
    "another role": ({ catalog }) => void catalog.accounts.change("ada", { role: "user" }),
    "a revoked token": ({ catalog, clock }, token) =>
      catalog.revocations.revoke(claimsIn(token).jti, clock.nowMs() + 3_600_000),
    "a revoked session": ({ catalog, clock }, token) =>
      catalog.revocations.revoke(claimsIn(token).sid, clock.nowMs() + 3_600_000),
    "DROP USER": ({ catalog }) => catalog.accounts.drop("ada"),
    "another account of the name": (server) => {
      server.catalog.accounts.drop("ada");
      addUser(server, "ada", "dba");
    },
    "a logout of all": ({ auth }, token) => auth.logout(token, LOCAL, { all: true }),
    "another password": ({ catalog }) =>
      void catalog.accounts.change("ada", { passwordHash: PASSWORD_HASH }),
    "its time": ({ clock }) => clock.advance(3_600_000 + 61_000),
  };
  for (const [name, end] of Object.entries(endings)) {
    const server = configuredServer();
    const { access_token: token } = await server.auth.login(RIGHT, LOCAL);
    for (let use = 0; use < 3; use += 1) {
      expect(server.auth.authenticate(token, LOCAL).userId).toBe("ada");
    }
    const known = server.auth.authenticate(token, LOCAL);
    server.auth.requireStanding(known, LOCAL);
    end(server, token);
    const lost = await failureOf(() => server.auth.requireStanding(known, LOCAL));
    expect(`${name}: ${lost}`).toBe(
      `${name}: ${name === "its time" ? undefined : "INVALID_CREDENTIALS"}`,
    );
    const refusal = await failureOf(() => server.auth.authenticate(token, LOCAL));
    expect(`${name}: ${refusal}`).toBe(
      `${name}: ${name === "its time" ? "TOKEN_EXPIRED" : "INVALID_CREDENTIALS"}`,
    );
  }
});

test("Auth.requireStanding accepts callers who are unaffected by changes to other users", async () => {
  const server = configuredServer({ ada: "dba", bob: "user" });
  const { access_token: token } = await server.auth.login(RIGHT, LOCAL);
  const known = server.auth.authenticate(token, LOCAL);
  server.catalog.accounts.drop("bob");
  addUser(server, "bob", "service");
  expect(server.auth.authenticate(token, LOCAL)).not.toBe(known);
  server.auth.requireStanding(known, LOCAL);
});

test("Auth: a dropped user's token is not valid for the next user of that name", async () => {
  const server = configuredServer({ ada: "dba", bob: "user" });
  const { access_token } = await server.auth.login({ user: "bob", password: PASSWORD }, LOCAL);
  server.auth.dropUser(principalFor(server, "ada"), "bob");
  addUser(server, "bob", "user");

  expect(await failureOf(() => server.auth.authenticate(access_token, LOCAL))).toBe(
    "INVALID_CREDENTIALS",
  );
});

test("Auth.executeAs follows the permission matrix and never grants more than the role user", async () => {
  const server = configuredServer({
    u: "user",
    v: "user",
    s: "service",
    t: "service",
    d: "dba",
    e: "dba",
    y: "system",
  });
  const { auth, catalog } = server;
  addUser(server, "gone", "user");
  catalog.accounts.drop("gone");
  const may: Readonly<Record<string, readonly string[]>> = {
    u: ["u"],
    s: ["u", "v", "s", "t"],
    d: ["u", "v", "s", "t", "d", "e"],
    y: ["u", "v", "s", "t", "d", "e", "y", "root"],
  };
  for (const [actor, targets] of Object.entries(may)) {
    for (const target of ["u", "v", "s", "t", "d", "e", "y", "root"]) {
      const code = await failureOf(() => auth.executeAs(principalFor({ catalog }, actor), target));
      const expected = targets.includes(target) ? undefined : "PERMISSION_DENIED";
      expect(code, `${actor} as ${target}`).toBe(expected as string);
    }
  }
  expect(auth.executeAs(principalFor({ catalog }, "d"), "s")).toEqual({
    userId: "s",
    role: "user",
    owner: catalog.accounts.ownerNumber("s"),
    actorId: "d",
    actorRole: "dba",
    isImpersonated: true,
    sessionId: "",
  });
  const service = principalFor({ catalog }, "s");
  for (const nobody of ["gone", "never seen", "U"]) {
    expect(await failureOf(() => auth.executeAs(service, nobody))).toBe("USER_NOT_FOUND");
    // A user must not learn which names exist.
    const user = principalFor({ catalog }, "u");
    expect(await failureOf(() => auth.executeAs(user, nobody))).toBe("PERMISSION_DENIED");
  }
  expect(await failureOf(() => auth.executeAs(service, "a/b"))).toBe("INVALID_NAME");
  const inside = auth.executeAs(principalFor({ catalog }, "y"), "u");
  expect(await failureOf(() => auth.executeAs(inside, "u"))).toBe("PERMISSION_DENIED");
});

test("Auth names the request that caused each event", async () => {
  audited.length = 0;
  const { auth, clock } = configuredServer();
  const by = (requestId: string): typeof LOCAL => ({ ...LOCAL, requestId });
  await failureOf(() => auth.login({ user: "ada", password: "wrong" }, by("a")));
  const first = await auth.login(RIGHT, by("b"));
  await retire(auth, first);
  clock.advance(30_001);
  await failureOf(() => auth.refresh(first.refresh_token, by("d")));
  auth.logout((await auth.login(RIGHT, by("e"))).access_token, by("f"));
  expect(audited.map(({ action, details }) => [action, details?.["request_id"]])).toEqual([
    ["login", "a"],
    ["login", "b"],
    ["revoke session", "d"],
    ["login", "e"],
    ["logout", "f"],
  ]);
});

test("Auth reports logins, logouts, stolen sessions, and the failure that locks a name", async () => {
  audited.length = 0;
  const { auth, clock } = configuredServer();
  for (let tries = 0; tries < 6; tries += 1) {
    await failureOf(() => auth.login({ user: "ada", password: "wrong" }, REMOTE));
  }
  await failureOf(() => auth.login({ user: "nobody", password: "wrong" }, LOCAL));
  const first = await auth.login(RIGHT, LOCAL);
  await retire(auth, first);
  clock.advance(30_001);
  await failureOf(() => auth.refresh(first.refresh_token, LOCAL));
  auth.logout(first.access_token, LOCAL);
  auth.logout((await auth.login(RIGHT, LOCAL)).access_token, LOCAL, { all: true });
  const told = audited.map(({ action, actor, address, details, outcome }) =>
    [action, actor, outcome, address, details?.["locked"] === true].join(" "),
  );
  const failed = "login ada failed 203.0.113.7";
  expect(told).toEqual([
    ...Array.from({ length: 4 }, () => `${failed} false`),
    `${failed} true`,
    "login nobody failed 127.0.0.1 false",
    "login ada ok 127.0.0.1 false",
    "revoke session ada ok 127.0.0.1 false",
    "login ada ok 127.0.0.1 false",
    "logout ada ok 127.0.0.1 false",
  ]);
  expect(JSON.stringify(audited)).not.toContain("wrong");
});

test("Auth remembers the senders of failed logins until they are forgiven", async () => {
  const { auth, clock } = configuredServer();
  const fail = (): Promise<unknown> =>
    failureOf(() => auth.login({ user: "ada", password: "wrong" }, REMOTE));
  await fail();
  await fail();
  expect(auth.loginTroubles().get("ada")).toEqual({ failures: 2, lockedForMs: 0 });
  for (let tries = 0; tries < 3; tries += 1) await fail();
  clock.advance(100_000);
  expect(auth.loginTroubles().get("ada")).toEqual({ failures: 5, lockedForMs: 800_000 });
  clock.advance(800_000);
  expect(auth.loginTroubles().size).toBe(0);
});

test("Auth records in the catalog when tokens were used, without changing users", async () => {
  const { auth, catalog, clock } = configuredServer({ ada: "dba", bob: "user" });
  const { access_token: token } = await auth.login(RIGHT, LOCAL);
  const before = catalog.accounts.user("ada");
  clock.advance(5000);
  auth.authenticate(token, LOCAL);
  const seenMs = clock.nowMs();
  clock.advance(5000);
  const lastSeen = (): number | undefined =>
    catalog.accounts
      .users()
      .flatMap((user) => (user.userId === "ada" ? [auth.lastSeenMs(user)] : []))[0];
  expect(lastSeen()).toBe(seenMs);
  auth.keepSeen();
  expect(lastSeen()).toBe(seenMs);
  expect(catalog.accounts.user("ada")).toEqual({ ...before, lastSeenAtMs: seenMs } as UserEntry);
  expect(catalog.accounts.user("bob")?.lastSeenAtMs).toBeUndefined();
  expect(auth.authenticate(token, LOCAL).userId).toBe("ada");
  catalog.accounts.drop("ada");
  auth.keepSeen();
});

test("Auth knows the last use of a token to within a second, whichever way the clock is set", async () => {
  const { auth, catalog, clock } = configuredServer();
  const { access_token: token } = await auth.login(RIGHT, LOCAL);
  const seenAfter = (ms: number): number | undefined => {
    clock.setWall(startMs + ms);
    auth.authenticate(token, LOCAL);
    return catalog.accounts
      .users()
      .flatMap((user) => (user.userId === "ada" ? [auth.lastSeenMs(user)] : []))[0];
  };
  clock.advance(60_000);
  const startMs = clock.nowMs();
  expect(seenAfter(0)).toBe(startMs);
  expect(seenAfter(999)).toBe(startMs);
  expect(seenAfter(1000)).toBe(startMs + 1000);
  expect(seenAfter(1500)).toBe(startMs + 1000);
  expect(seenAfter(2001)).toBe(startMs + 2001);
  expect(seenAfter(1002)).toBe(startMs + 2001);
  expect(seenAfter(1001)).toBe(startMs + 1001);
});
