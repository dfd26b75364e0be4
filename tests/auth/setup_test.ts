/**
 * Verifies that setup happens only once, only from an allowed place and only with valid passwords,
 * and that these conditions are checked in this order.
 */
import { afterAll, expect, test } from "bun:test";
import { removeCatalogs } from "../catalog/catalog_fixture.ts";
import { principalFor } from "../support/principal_for.ts";
import { authOver, failureOf, LOCAL, newServer, REMOTE } from "./auth_fixture.ts";

afterAll(removeCatalogs);

const BODY = { user: "ada", password: "correct horse 9", root_password: "battery staple 7" };

test("Auth.setup creates the DBA and sets the password of root, so that both can log in", async () => {
  const { auth, clock } = newServer();
  clock.setWall(Date.parse("2026-11-21T10:00:00Z"));
  expect(auth.status()).toEqual({
    needs_setup: true,
    message: "The server needs first-time setup",
    setup_code_required: false,
    oidc_providers: [],
  });
  const answer = await auth.setup({ ...BODY, email: "ada@example.com" }, LOCAL);

  expect(answer.user).toEqual({
    id: "ada",
    role: "dba",
    email: "ada@example.com",
    created_at: "2026-11-21T10:00:00Z",
    updated_at: "2026-11-21T10:00:00Z",
  });
  expect(answer.message).toBe("Setup complete; you can now log in as ada");
  expect(auth.status().needs_setup).toBeFalse();
  const { password, root_password } = BODY;
  expect((await auth.login({ user: "ada", password }, LOCAL)).user.role).toBe("dba");
  expect((await auth.login({ user: "root", password: root_password }, LOCAL)).user.role).toBe(
    "system",
  );
});

test("Auth.setup lets exactly one of 50 parallel callers win", async () => {
  const { auth, catalog } = newServer();
  const calls = Array.from({ length: 50 }, (_, index) =>
    failureOf(() => auth.setup({ ...BODY, user: `dba${index}` }, LOCAL)),
  );
  const codes = await Promise.all(calls);

  expect(codes.filter((code) => code === undefined)).toHaveLength(1);
  expect(codes.filter((code) => code === "already_configured")).toHaveLength(49);
  expect(catalog.accounts.users()).toHaveLength(2);
});

test("Auth.setup answers 409 before any other error, whatever the caller and the body", async () => {
  const { auth } = newServer();
  await auth.setup(BODY, LOCAL);

  for (const caller of [LOCAL, REMOTE, { ...LOCAL, isHostAllowed: false }]) {
    for (const body of [BODY, {}, undefined, { ...BODY, password: "x" }]) {
      expect(await failureOf(() => auth.setup(body, caller))).toBe("already_configured");
    }
  }
});

test("Auth.setup checks the rate, then the place, then the body", async () => {
  const { auth } = newServer({ attemptsPerSecond: 1 });
  const codes: (string | undefined)[] = [];
  for (let attempt = 0; attempt < 6; attempt += 1) {
    codes.push(await failureOf(() => auth.setup(undefined, REMOTE)));
  }

  expect(codes).toEqual([...Array(5).fill("forbidden"), "rate_limited"]);
  const rebound = { ...LOCAL, isHostAllowed: false };
  expect(await failureOf(() => auth.setup(undefined, rebound))).toBe("host_not_allowed");
  expect(await failureOf(() => auth.setup(undefined, LOCAL))).toBe("invalid_request");
});

test("Auth.setup works from another machine if the configuration allows it", async () => {
  const { auth } = newServer({ allowRemoteSetup: true });

  expect(
    await failureOf(() => auth.setup(BODY, { ...REMOTE, isHostAllowed: false })),
  ).toBeUndefined();
});

test("Auth.setup refuses bad fields, and names the weak password", async () => {
  const { auth, catalog } = newServer();
  catalog.accounts.create({ userId: "taken", role: "user", authType: "internal" });
  const table: readonly [change: Record<string, unknown>, code: string, field?: string][] = [
    [{ user: undefined }, "invalid_request"],
    [{ password: undefined }, "invalid_request"],
    [{ root_password: 5 }, "invalid_request"],
    [{ email: 5 }, "invalid_request"],
    [{ email: "x".repeat(321) }, "invalid_request"],
    [{ user: "" }, "invalid_user"],
    [{ user: "root" }, "invalid_user"],
    [{ user: "a/b" }, "invalid_user"],
    [{ user: "ada\u200b" }, "invalid_user"],
    [{ user: "\u202eada" }, "invalid_user"],
    [{ user: "ada " }, "invalid_user"],
    [{ user: "a..b" }, "invalid_user"],
    [{ user: "x".repeat(129) }, "invalid_user"],
    [{ password: "short" }, "weak_password", "password"],
    [{ password: "password1" }, "weak_password", "password"],
    [{ user: "ada.lovelace", password: "ada.lovelace" }, "weak_password", "password"],
    [{ root_password: "12345678" }, "weak_password", "root_password"],
    [{ root_password: "x".repeat(1025) }, "weak_password", "root_password"],
    [{ user: "taken" }, "user_exists"],
  ];
  for (const [change, code, field] of table) {
    const error: unknown = await auth.setup({ ...BODY, ...change }, LOCAL).catch((e) => e);
    expect(error, JSON.stringify(change)).toMatchObject({ code });
    expect((error as { field?: string }).field, JSON.stringify(change)).toBe(field as string);
  }
  expect(auth.status().needs_setup).toBeTrue();
  expect(
    await failureOf(() =>
      auth.setup({ ...BODY, user: undefined, username: "ada", email: null }, LOCAL),
    ),
  ).toBeUndefined();
});

test("Auth.start with a configured root password requires no setup", async () => {
  const server = newServer({ rootPassword: "battery staple 7" });
  await server.auth.start();

  expect(server.auth.status().needs_setup).toBeFalse();
  expect(await failureOf(() => server.auth.setup(BODY, LOCAL))).toBe("already_configured");
  const root = { user: "root", password: "battery staple 7" };
  const { access_token } = await server.auth.login(root, LOCAL);
  await server.auth.start();
  expect(server.auth.authenticate(access_token, LOCAL).role).toBe("system");
  const principal = principalFor(server, "root");
  const change = { userId: "root", password: "some other horse" };
  expect(await failureOf(() => server.auth.alterUser(principal, change))).toBe("MANAGED_BY_CONFIG");

  const later = authOver(server, { rootPassword: "another staple 8" });
  await later.start();
  expect(await failureOf(() => later.authenticate(access_token, LOCAL))).toBe(
    "INVALID_CREDENTIALS",
  );
  expect(await failureOf(() => later.login(root, LOCAL))).toBe("unauthorized");
  const without = authOver(server);
  await without.start();
  const still = { user: "root", password: "another staple 8" };
  expect(await failureOf(() => without.login(still, LOCAL))).toBeUndefined();
});

test("Auth.start refuses a weak configured root password without revealing it", async () => {
  const { auth } = newServer({ rootPassword: "password1" });
  const error: unknown = await auth.start().catch((e) => e);

  expect(error).toMatchObject({ code: "WEAK_PASSWORD" });
  expect(String(error)).not.toContain("password1");
});
