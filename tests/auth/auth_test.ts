/**
 * Tests login, refresh and logout. Ending a session takes effect at once and everywhere, and
 * survives a restart.
 */
import { afterAll, expect, test } from "bun:test";
import type { Auth, Caller, Revocation } from "../../src/auth/mod.ts";
import { DatabaseError } from "../../src/base/errors.ts";
import type { UserEntry } from "../../src/catalog/mod.ts";
import type { LoginBody } from "../../src/protocol/mod.ts";
import { openCatalog, removeCatalogs } from "../catalog/catalog_fixture.ts";
import { principalFor } from "../support/principal_for.ts";
import {
  type AuthFixture,
  addUser,
  audited,
  authOver,
  configuredServer,
  failureOf,
  LOCAL,
  newServer,
  PASSWORD,
  PASSWORD_HASH,
  REMOTE,
} from "./auth_fixture.ts";

afterAll(removeCatalogs);

const RIGHT = { user: "ada", password: PASSWORD };
const WRONG = { user: "ada", password: "wrong horse 9" };

test("Auth.login returns the tokens, the user and the configured lifetimes", async () => {
  const { auth, clock } = configuredServer();
  clock.setWall(Date.parse("2026-11-21T10:00:00.250Z"));
  const answer = await auth.login({ username: "ada", password: PASSWORD }, LOCAL);

  expect(Object.keys(answer).toSorted()).toEqual([
    "access_token",
    "admin_ui_access",
    "expires_at",
    "refresh_expires_at",
    "refresh_token",
    "user",
  ]);
  expect(answer.expires_at).toBe("2026-11-21T11:00:00Z");
  expect(answer.refresh_expires_at).toBe("2026-11-28T10:00:00Z");
  expect(answer.admin_ui_access).toBeTrue();
  expect(answer.user).toMatchObject({ id: "ada", role: "dba", email: null });
  expect(answer.user.created_at).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$/);
  expect(auth.me(answer.access_token, LOCAL)).toEqual({ user: answer.user, admin_ui_access: true });
});

test("Auth.login admits only the roles dba and system to the admin page", async () => {
  const server = configuredServer({ u: "user", s: "service", d: "dba" });
  const hasUi = async (user: string): Promise<boolean> =>
    (await server.auth.login({ user, password: PASSWORD }, LOCAL)).admin_ui_access;

  expect(await Promise.all(["u", "s", "d", "root"].map(hasUi))).toEqual([false, false, true, true]);
});

test("Auth.login refuses malformed bodies", async () => {
  const { auth } = configuredServer();
  const bodies: readonly unknown[] = [
    undefined,
    null,
    [],
    "ada",
    {},
    { user: "ada" },
    { password: PASSWORD },
    { user: 1, password: PASSWORD },
    { user: "ada", password: ["x"] },
    { user: "x".repeat(129), password: PASSWORD },
    { user: "ada", password: "x".repeat(4097) },
  ];
  for (const body of bodies) {
    expect(await failureOf(() => auth.login(body, LOCAL)), JSON.stringify(body)).toBe(
      "invalid_request",
    );
  }
});

test("Auth.login gives the same response whatever the reason for a failure", async () => {
  const server = configuredServer();
  addUser(server, "gone", "user");
  server.catalog.accounts.drop("gone");
  server.catalog.accounts.create({
    userId: "oidc",
    role: "user",
    authType: "oauth",
    authData: "{}",
  });
  const messages = new Set<string>();
  for (const [user, password] of [
    ["ada", "wrong horse 9"],
    ["nobody", PASSWORD],
    ["gone", PASSWORD],
    ["oidc", PASSWORD],
    ["Ada", PASSWORD],
    ["", PASSWORD],
    ["ada", ""],
    ["ada", "x".repeat(4096)],
  ]) {
    const error: unknown = await server.auth.login({ user, password }, LOCAL).catch((e) => e);
    expect(error).toMatchObject({ code: "unauthorized" });
    messages.add(String(error));
  }
  expect(messages.size).toBe(1);
});

test("Auth.login before setup refuses malformed bodies with 400 and any user with 428", async () => {
  const { auth } = newServer();

  expect(await failureOf(() => auth.login(RIGHT, LOCAL))).toBe("setup_required");
  expect(await failureOf(() => auth.login({}, LOCAL))).toBe("invalid_request");
});

test("Auth.login locks a name after 5 failures, whether or not it exists, even for the right password", async () => {
  for (const user of ["ada", "nobody"]) {
    const { auth, clock } = configuredServer();
    const codes: (string | undefined)[] = [];
    for (let attempt = 0; attempt < 6; attempt += 1) {
      codes.push(await failureOf(() => auth.login({ user, password: "wrong horse" }, LOCAL)));
    }
    codes.push(await failureOf(() => auth.login({ user, password: PASSWORD }, LOCAL)));
    expect(codes).toEqual([...Array(5).fill("unauthorized"), "account_locked", "account_locked"]);
    const elsewhere = await failureOf(() => auth.login({ user, password: PASSWORD }, REMOTE));
    expect(elsewhere).toBe(user === "ada" ? undefined : "unauthorized");
    clock.advance(900_000);
    const after = await failureOf(() => auth.login({ user, password: PASSWORD }, LOCAL));
    expect(after).toBe(user === "ada" ? undefined : "unauthorized");
  }
});

test("Auth.login checks one of 50 parallel guesses and queues one more", async () => {
  const { auth } = configuredServer();
  const guesses = Array.from({ length: 50 }, (_, index) =>
    failureOf(() => auth.login(index < 40 ? WRONG : RIGHT, LOCAL)),
  );
  const codes = await Promise.all(guesses);

  expect(codes.filter((code) => code === "unauthorized")).toHaveLength(2);
  expect(codes.filter((code) => code === "rate_limited")).toHaveLength(48);
});

/** Returns a caller with the n-th address. */
function callerOf(index: number): Caller {
  return { address: `203.${index >> 16}.${(index >> 8) & 255}.${index & 255}`, isLocal: false };
}

test("Auth.login checks two of the guesses that 240 addresses send at once, whether or not the user exists", async () => {
  const { auth } = configuredServer();
  for (const user of ["ada", "nobody"]) {
    const guesses = Array.from({ length: 240 }, (_, index) =>
      failureOf(() => auth.login({ ...WRONG, user }, callerOf(index))),
    );
    const codes = await Promise.all(guesses);
    expect(codes.filter((code) => code === "unauthorized")).toHaveLength(2);
    expect(codes.filter((code) => code === "rate_limited")).toHaveLength(238);
  }
});

test("Auth.login closes a name after 100 failures in an hour, except to a known device", async () => {
  const { auth, clock } = configuredServer();
  const known = callerOf(1000);
  const { refresh_token } = await auth.login(RIGHT, known);
  for (let index = 0; index < 100; index += 1) {
    const guess = failureOf(() => auth.login(WRONG, callerOf(index)));
    // From the 20th attempt on, the server delays each attempt by a second.
    if (index >= 20) while (clock.timerCount === 0) await clock.yield();
    clock.advance(1000);
    expect(await guess).toBe("unauthorized");
  }
  const stranger = callerOf(2000);
  expect(await failureOf(() => auth.login(WRONG, stranger))).toBe("rate_limited");
  expect(await failureOf(() => auth.login(RIGHT, stranger))).toBe("rate_limited");
  expect(await failureOf(() => auth.login({ ...RIGHT, user: "bob" }, stranger))).toBe(
    "unauthorized",
  );
  expect((await auth.login(RIGHT, known)).user.id).toBe("ada");
  expect((await auth.login(RIGHT, stranger, refresh_token)).user.id).toBe("ada");
  // A device is recognised by its session, so the logout makes it unknown.
  auth.logout(refresh_token, known);
  const other = callerOf(3000);
  expect(await failureOf(() => auth.login(RIGHT, other, refresh_token))).toBe("rate_limited");
  clock.advance(3_600_000);
  expect((await auth.login(RIGHT, other)).user.id).toBe("ada");
});

test("Auth.login leaves issued tokens valid when it locks a name", async () => {
  const { auth } = configuredServer();
  const { access_token } = await auth.login(RIGHT, LOCAL);
  for (let attempt = 0; attempt < 5; attempt += 1) await failureOf(() => auth.login(WRONG, LOCAL));

  expect(await failureOf(() => auth.login(RIGHT, LOCAL))).toBe("account_locked");
  expect(auth.authenticate(access_token, LOCAL).userId).toBe("ada");
});

test("after failures from many addresses, Auth.login delays logins under that name by one second", async () => {
  const { auth, clock } = configuredServer();
  for (let index = 0; index < 20; index += 1) {
    await failureOf(() => auth.login(WRONG, { address: `10.0.0.${index}`, isLocal: false }));
  }
  let isDone = false;
  const login = auth.login(RIGHT, LOCAL).then((answer) => {
    isDone = true;
    return answer;
  });
  while (clock.timerCount === 0) await clock.yield();
  clock.advance(999);
  for (let turn = 0; turn < 20; turn += 1) await clock.yield();

  expect(isDone).toBeFalse();
  clock.advance(1);
  expect((await login).user.id).toBe("ada");
});

test("Auth limits login attempts by address, except for those from this machine", async () => {
  const { auth } = configuredServer({ ada: "dba" }, { attemptsPerSecond: 1 });
  const attempt = (): Promise<string | undefined> =>
    failureOf(() => auth.refresh("nonsense", REMOTE));
  const codes = [
    await attempt(),
    await attempt(),
    await attempt(),
    await attempt(),
    await attempt(),
  ];

  expect(codes).toEqual(Array(5).fill("unauthorized"));
  expect(await attempt()).toBe("rate_limited");
  expect(await failureOf(() => auth.login(RIGHT, REMOTE))).toBe("rate_limited");
  expect(await failureOf(() => auth.authenticate("nonsense", REMOTE))).toBe("RATE_LIMIT_EXCEEDED");
  const { access_token } = await auth.login(RIGHT, LOCAL);
  expect(await failureOf(() => auth.authenticate(access_token, REMOTE))).toBeUndefined();
  expect(await failureOf(() => auth.authenticate("nonsense", LOCAL))).toBe("INVALID_CREDENTIALS");
});

test("Auth.authenticateHeader requires the scheme Bearer, in upper or lower case", async () => {
  const { auth } = configuredServer();
  const { access_token } = await auth.login(RIGHT, LOCAL);
  const codeOf = (header: string | null | undefined): Promise<string | undefined> =>
    failureOf(() => auth.authenticateHeader(header, LOCAL));

  for (const scheme of ["Bearer", "bearer", "BEARER"]) {
    expect(await codeOf(`${scheme} ${access_token}`), scheme).toBeUndefined();
    // At the second use of the token, the session of the token is already known.
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

/** Refreshes twice, so that the refresh token of a login is retired. Returns the last tokens. */
async function retire(auth: Auth, { refresh_token }: LoginBody): Promise<LoginBody> {
  const next = await auth.refresh(refresh_token, LOCAL);
  return await auth.refresh(next.refresh_token, LOCAL);
}

test("Auth.refresh returns new tokens for the same session", async () => {
  const { auth, clock } = configuredServer();
  const first = await auth.login(RIGHT, LOCAL);
  clock.advance(5000);
  const second = await auth.refresh(first.refresh_token, LOCAL);

  expect(second.access_token).not.toBe(first.access_token);
  expect(second.refresh_token).not.toBe(first.refresh_token);
  expect(auth.authenticate(second.access_token, LOCAL).sessionId).toBe(
    auth.authenticate(first.access_token, LOCAL).sessionId,
  );
});

test("Auth.refresh accepts a token whose response was lost until its successor has been used", async () => {
  const { auth, clock } = configuredServer();
  const first = await auth.login(RIGHT, LOCAL);
  for (let lost = 0; lost < 3; lost += 1) {
    await auth.refresh(first.refresh_token, LOCAL);
    clock.advance(3_600_000);
  }
  const second = await auth.refresh(first.refresh_token, LOCAL);
  clock.advance(3_600_000);
  const third = await auth.refresh(second.refresh_token, LOCAL);
  clock.advance(30_000);
  expect(await failureOf(() => auth.refresh(first.refresh_token, LOCAL))).toBeUndefined();
  clock.advance(1);
  expect(await failureOf(() => auth.refresh(first.refresh_token, LOCAL))).toBe("unauthorized");
  expect(await failureOf(() => auth.refresh(third.refresh_token, LOCAL))).toBe("unauthorized");
});

test("Auth.refresh revokes the session if a token gets a second successor, because one of the two was stolen", async () => {
  const server = configuredServer();
  const first = await server.auth.login(RIGHT, LOCAL);
  const own = await server.auth.refresh(first.refresh_token, LOCAL);
  const stolen = await server.auth.refresh(first.refresh_token, LOCAL);
  const next = await server.auth.refresh(own.refresh_token, LOCAL);
  expect(await failureOf(() => server.auth.refresh(stolen.refresh_token, LOCAL))).toBeUndefined();
  server.clock.advance(30_001);
  server.catalog.close();
  const catalog = openCatalog(server.path, server.clock);
  const auth = authOver({ catalog, clock: server.clock });
  expect(await failureOf(() => auth.refresh(stolen.refresh_token, LOCAL))).toBe("unauthorized");
  expect(await failureOf(() => auth.refresh(next.refresh_token, LOCAL))).toBe("unauthorized");
  expect(await failureOf(() => auth.authenticate(own.access_token, LOCAL))).toBe(
    "INVALID_CREDENTIALS",
  );
  catalog.close();
});

test.each([
  ["an hour on", 3_600_000],
  ["a minute back", -60_000],
])(
  "Auth.refresh accepts a retired token for the same time even if the clock is set %s",
  async (_how, byMs) => {
    const { auth, clock } = configuredServer();
    const first = await auth.login(RIGHT, LOCAL);
    await retire(auth, first);
    clock.setWall(clock.nowMs() + byMs);
    clock.advance(30_000);
    expect(await failureOf(() => auth.refresh(first.refresh_token, LOCAL))).toBeUndefined();
    clock.advance(1);
    expect(await failureOf(() => auth.refresh(first.refresh_token, LOCAL))).toBe("unauthorized");
  },
);

test("Auth.refresh treats a retired token as stolen, and revokes the whole session", async () => {
  const server = configuredServer();
  const { auth, catalog, clock } = server;
  const first = await auth.login(RIGHT, LOCAL);
  const other = await auth.login(RIGHT, LOCAL);
  const second = await retire(auth, first);
  const { sessionId } = auth.authenticate(second.access_token, LOCAL);
  const revoked: Revocation[] = [];
  auth.onRevoked((revocation) => revoked.push(revocation));
  clock.advance(30_001);

  expect(await failureOf(() => auth.refresh(first.refresh_token, LOCAL))).toBe("unauthorized");
  expect(revoked).toEqual([{ userId: "ada", sessionId }]);
  for (const by of [auth, authOver({ catalog, clock })]) {
    expect(await failureOf(() => by.authenticate(second.access_token, LOCAL))).toBe(
      "INVALID_CREDENTIALS",
    );
    expect(await failureOf(() => by.refresh(second.refresh_token, LOCAL))).toBe("unauthorized");
    expect(by.authenticate(other.access_token, LOCAL).userId).toBe("ada");
  }
});

test("Auth.refresh recognizes a retired token after a restart", async () => {
  const server = configuredServer();
  const first = await server.auth.login(RIGHT, LOCAL);
  await retire(server.auth, first);
  server.catalog.close();
  server.clock.advance(30_001);
  const catalog = openCatalog(server.path, server.clock);
  const auth = authOver({ catalog, clock: server.clock });

  expect(await failureOf(() => auth.refresh(first.refresh_token, LOCAL))).toBe("unauthorized");
  expect(await failureOf(() => auth.authenticate(first.access_token, LOCAL))).toBe(
    "INVALID_CREDENTIALS",
  );
  catalog.close();
});

test("Auth.refresh accepts only refresh tokens, which are accepted nowhere else", async () => {
  const { auth, clock } = configuredServer();
  const { access_token, refresh_token } = await auth.login(RIGHT, LOCAL);

  expect(await failureOf(() => auth.refresh(access_token, LOCAL))).toBe("unauthorized");
  expect(await failureOf(() => auth.refresh(undefined, LOCAL))).toBe("unauthorized");
  expect(await failureOf(() => auth.authenticate(refresh_token, LOCAL))).toBe(
    "INVALID_CREDENTIALS",
  );
  expect(await failureOf(() => auth.me(refresh_token, LOCAL))).toBe("unauthorized");
  clock.advance((7 * 24 * 3600 + 60) * 1000);
  expect(await failureOf(() => auth.refresh(refresh_token, LOCAL))).toBe("unauthorized");
});

test('Auth.logout ends one session, or every session with "all", and does not report bad tokens', async () => {
  const { auth } = configuredServer();
  const first = await auth.login(RIGHT, LOCAL);
  const second = await auth.login(RIGHT, LOCAL);
  const third = await auth.login(RIGHT, LOCAL);
  const codeOf = (token: string): Promise<string | undefined> =>
    failureOf(() => auth.authenticate(token, LOCAL));
  auth.logout(undefined, LOCAL);
  auth.logout("nonsense", LOCAL, { all: true });
  auth.logout(first.refresh_token, LOCAL);

  expect(await codeOf(first.access_token)).toBe("INVALID_CREDENTIALS");
  expect(await failureOf(() => auth.me(first.access_token, LOCAL))).toBe("unauthorized");
  expect(await codeOf(second.access_token)).toBeUndefined();
  auth.logout(second.access_token, LOCAL, { all: true });
  expect(await codeOf(third.access_token)).toBe("INVALID_CREDENTIALS");
  expect(await failureOf(() => auth.refresh(third.refresh_token, LOCAL))).toBe("unauthorized");
  const fourth = await auth.login(RIGHT, LOCAL);
  expect(await codeOf(fourth.access_token)).toBeUndefined();
});

test("Auth.onRevoked reports an ended session, or all sessions of a user, within the same tick", async () => {
  const { auth } = configuredServer({ ada: "dba", bob: "user" });
  const revoked: Revocation[] = [];
  auth.onRevoked((revocation) => revoked.push(revocation));
  const sessionOf = async (user: string): Promise<[string, string | undefined]> => {
    const { access_token } = await auth.login({ user, password: PASSWORD }, LOCAL);
    return [access_token, auth.authenticate(access_token, LOCAL).sessionId];
  };
  const [first, firstId] = await sessionOf("ada");
  const [second, secondId] = await sessionOf("ada");
  await sessionOf("bob");
  expect(revoked).toEqual([]);

  auth.logout(first, LOCAL);
  expect(revoked).toEqual([{ userId: "ada", sessionId: firstId }]);
  auth.logout(second, LOCAL, { all: true });
  expect(revoked.slice(1)).toEqual([
    { userId: "ada", sessionId: secondId },
    { userId: "ada", sessionId: undefined },
  ]);
});

test("Auth.onRevoked stops reporting on request", async () => {
  const { auth } = configuredServer();
  const calls: Revocation[] = [];
  const stop = auth.onRevoked((revocation) => calls.push(revocation));
  const { access_token } = await auth.login(RIGHT, LOCAL);
  stop();
  stop();
  auth.logout(access_token, LOCAL, { all: true });

  expect(calls).toEqual([]);
});

test("Auth ends tokens and sockets after a new password, a new role or DROP USER", async () => {
  for (const change of ["password", "role", "drop"] as const) {
    const { auth, catalog } = configuredServer({ ada: "dba", bob: "user" });
    const bob = { user: "bob", password: PASSWORD };
    const { access_token, refresh_token } = await auth.login(bob, LOCAL);
    const revoked: Revocation[] = [];
    auth.onRevoked((revocation) => revoked.push(revocation));
    const ada = principalFor({ catalog }, "ada");
    if (change === "drop") auth.dropUser(ada, "bob");
    else if (change === "role") await auth.alterUser(ada, { userId: "bob", role: "service" });
    else await auth.alterUser(ada, { userId: "bob", password: "another horse 8" });

    expect(revoked, change).toEqual([{ userId: "bob", sessionId: undefined }]);
    expect(await failureOf(() => auth.authenticate(access_token, LOCAL)), change).toBe(
      "INVALID_CREDENTIALS",
    );
    expect(await failureOf(() => auth.refresh(refresh_token, LOCAL)), change).toBe("unauthorized");
  }
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

test("Auth retries recording the last login of users after a full disk", async () => {
  const { auth, catalog, clock } = configuredServer();
  const { access_token: token } = await auth.login(RIGHT, LOCAL);
  auth.authenticate(token, LOCAL);
  const noteSeen = catalog.accounts.noteSeen.bind(catalog.accounts);
  catalog.accounts.noteSeen = () => {
    throw new DatabaseError("DISK_FULL", "Cannot change the catalog: the disk is full");
  };
  const seenMs = clock.nowMs();
  auth.keepSeen();
  expect(catalog.accounts.user("ada")?.lastSeenAtMs).toBeUndefined();
  catalog.accounts.noteSeen = noteSeen;
  auth.keepSeen();
  expect(catalog.accounts.user("ada")?.lastSeenAtMs).toBe(seenMs);
});

test("Auth does not mark a new user as seen because of an earlier user with the same name", async () => {
  const { auth, catalog, clock } = configuredServer();
  const { access_token: token } = await auth.login(RIGHT, LOCAL);
  auth.authenticate(token, LOCAL);
  catalog.accounts.drop("ada");
  clock.advance(1000);
  const user = catalog.accounts.create({ userId: "ada", role: "user", authType: "password" });
  expect(auth.lastSeenMs(user)).toBeUndefined();
  auth.keepSeen();
  expect(catalog.accounts.user("ada")?.lastSeenAtMs).toBeUndefined();
});

test("Auth.login works on a full disk, although the time of the login cannot be recorded", async () => {
  const { auth, catalog } = configuredServer();
  const before = catalog.accounts.user("ada");
  let code: "DISK_FULL" | "STORAGE_UNAVAILABLE" = "DISK_FULL";
  catalog.accounts.change = () => {
    throw new DatabaseError(code, "Cannot change the catalog");
  };
  const { access_token: token } = await auth.login(RIGHT, LOCAL);
  expect(auth.authenticate(token, LOCAL).userId).toBe("ada");
  expect(catalog.accounts.user("ada")).toEqual(before as UserEntry);
  code = "STORAGE_UNAVAILABLE";
  expect(await failureOf(() => auth.login(RIGHT, LOCAL))).toBe(code);
});

function claimsIn(token: string): { jti: string; sid: string } {
  return JSON.parse(Buffer.from(token.split(".")[1] ?? "", "base64url").toString()) as {
    jti: string;
    sid: string;
  };
}
