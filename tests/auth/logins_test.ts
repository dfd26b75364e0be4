/**
 * Tests logins. The response to a failed login is the same whatever the reason, and guesses are
 * limited by name and by address.
 */
import { afterAll, expect, test } from "bun:test";
import type { Caller } from "../../src/auth/mod.ts";
import { DatabaseError } from "../../src/base/errors.ts";
import type { UserEntry } from "../../src/catalog/mod.ts";
import { removeCatalogs } from "../catalog/catalog_fixture.ts";
import {
  addUser,
  configuredServer,
  failureOf,
  LOCAL,
  newServer,
  PASSWORD,
  REMOTE,
} from "./auth_fixture.ts";

afterAll(removeCatalogs);

const RIGHT = { user: "ada", password: PASSWORD };

const WRONG = { user: "ada", password: "wrong horse 9" };

/** Returns a caller with the n-th address. */
function callerOf(index: number): Caller {
  return { address: `203.${index >> 16}.${(index >> 8) & 255}.${index & 255}`, isLocal: false };
}

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
    // From the 20th attempt onwards, the server delays each attempt by a second.
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
