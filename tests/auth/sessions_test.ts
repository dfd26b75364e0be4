/**
 * Tests refreshing tokens and logging out. The end of a session takes effect at once and
 * everywhere, and survives a restart.
 */
import { afterAll, expect, test } from "bun:test";
import type { Auth, Revocation } from "../../src/auth/mod.ts";
import type { LoginBody } from "../../src/protocol/mod.ts";
import { openCatalog, removeCatalogs } from "../catalog/catalog_fixture.ts";
import { principalFor } from "../support/principal_for.ts";
import { authOver, configuredServer, failureOf, LOCAL, PASSWORD } from "./auth_fixture.ts";

afterAll(removeCatalogs);

const RIGHT = { user: "ada", password: PASSWORD };

/** Refreshes twice, so that the refresh token from a login is retired. Returns the last tokens. */
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
