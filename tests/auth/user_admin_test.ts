/**
 * Verifies that only the right callers may CREATE, ALTER and DROP users, and only with valid
 * passwords.
 */
import { afterAll, expect, test } from "bun:test";
import { type Auth, type Principal, roleFromWord } from "../../src/auth/mod.ts";
import type { RecentLog } from "../../src/base/recent_log.ts";
import { removeCatalogs } from "../catalog/catalog_fixture.ts";
import { principalFor } from "../support/principal_for.ts";
import { configuredServer, failureOf, LOCAL, PASSWORD } from "./auth_fixture.ts";

afterAll(removeCatalogs);

const CREDENTIALS = { kind: "password", password: "some horse 12" } as const;

function newServer(): { auth: Auth; as: (userId: string) => Principal; log: RecentLog } {
  const { auth, catalog, log } = configuredServer({
    u: "user",
    s: "service",
    d: "dba",
    y: "system",
    z: "system",
  });
  return { auth, as: (userId) => principalFor({ catalog }, userId), log };
}

test("Auth.createUser creates users of each role, but only for permitted callers", async () => {
  const { auth, as } = newServer();
  const codeOf = (
    actor: string,
    userId: string,
    role: "user" | "dba" | "system",
  ): Promise<string | undefined> =>
    failureOf(() => auth.createUser(as(actor), { userId, role, credentials: CREDENTIALS }));

  expect(await codeOf("u", "a", "user")).toBe("PERMISSION_DENIED");
  expect(await codeOf("s", "c", "user")).toBeUndefined();
  expect(await codeOf("s", "a", "dba")).toBe("PERMISSION_DENIED");
  expect(await codeOf("d", "a", "dba")).toBeUndefined();
  expect(await codeOf("d", "b", "system")).toBe("PERMISSION_DENIED");
  expect(await codeOf("y", "b", "system")).toBeUndefined();
  expect(await codeOf("d", "a", "user")).toBe("ALREADY_EXISTS");
  expect(await codeOf("d", "root", "user")).toBe("PERMISSION_DENIED");
  expect(await codeOf("d", "a/b", "user")).toBe("INVALID_NAME");
  for (const name of [
    "ada ",
    " ada",
    "a\u200bda",
    "a\u2060da",
    "ad\ufeffa",
    "\u202eada",
    "ada\u2066",
    "a\u00adda",
    "ada\u00a0b",
    "ada\u3000b",
    "ada\u3164",
    "a\u034fda",
    "ada\ufe0f",
    "ada\ue000",
    "ada\u2028b",
    "ade\u0301",
  ]) {
    expect(await codeOf("d", name, "user"), JSON.stringify(name)).toBe("INVALID_NAME");
  }
  const answer = await auth.login({ user: "a", password: CREDENTIALS.password }, LOCAL);
  expect(answer.user.role).toBe("dba");
});

test("Auth.createUser checks the password, the email address and the OAuth link", async () => {
  const { auth, as } = newServer();
  const d = as("d");
  const create = (
    change: Partial<Parameters<Auth["createUser"]>[1]>,
  ): Promise<string | undefined> =>
    failureOf(() => auth.createUser(d, { userId: "pip", credentials: CREDENTIALS, ...change }));

  expect(await create({ credentials: { kind: "password", password: "short" } })).toBe(
    "WEAK_PASSWORD",
  );
  expect(await create({ credentials: { kind: "password", password: "x".repeat(5000) } })).toBe(
    "WEAK_PASSWORD",
  );
  expect(await create({ email: "x".repeat(321) })).toBe("INVALID_VALUE");
  for (const link of [
    "",
    "{",
    "5",
    "null",
    "{}",
    '{"provider":"g","subject":1}',
    '{"provider":"g","subject":null}',
    '{"provider":1,"subject":"s"}',
    '{"subject":"s"}',
  ]) {
    expect(await create({ credentials: { kind: "oauth", link } }), link).toBe("INVALID_VALUE");
  }
  const link = '{"provider":"g","subject":"s"}';
  expect(await create({ credentials: { kind: "oauth", link } })).toBeUndefined();
  expect(await create({ userId: "bot", credentials: { kind: "internal" } })).toBeUndefined();
  for (const user of ["pip", "bot"]) {
    expect(await failureOf(() => auth.login({ user, password: PASSWORD }, LOCAL))).toBe(
      "unauthorized",
    );
  }
});

test("Auth.createUser refuses the provider and subject of another account until that account is dropped", async () => {
  const { as, auth } = newServer();
  const link = '{"provider":"g","subject":"s"}';
  const create = (userId: string, written: string): Promise<unknown> =>
    auth.createUser(as("d"), { userId, credentials: { kind: "oauth", link: written } });
  await create("pip", link);

  const refused = await create("pim", '{ "subject": "s", "provider": "g" }').catch(
    (error: unknown) => error,
  );
  expect(refused).toMatchObject({
    code: "ALREADY_EXISTS",
    message: "Cannot create user pim: user pip is already linked to this provider and subject",
  });
  await create("pam", '{"provider":"g","subject":"t"}');
  // Links without a subject are distinguished by the ids of their accounts.
  await create("paul", '{"provider":"g"}');
  await create("pete", '{"provider":"g"}');
  auth.dropUser(as("d"), "pip");
  await create("pim", link);
});

test("Auth.alterUser lets all users set their own password, and a dba those of others except role system", async () => {
  const { auth, as } = newServer();
  const codeOf = (actor: string, userId: string): Promise<string | undefined> =>
    failureOf(() => auth.alterUser(as(actor), { userId, password: `fresh horse ${actor}` }));

  expect(await codeOf("u", "u")).toBeUndefined();
  expect(await codeOf("u", "s")).toBe("PERMISSION_DENIED");
  expect(await codeOf("u", "nobody")).toBe("PERMISSION_DENIED");
  expect(await codeOf("s", "u")).toBe("PERMISSION_DENIED");
  expect(await codeOf("d", "u")).toBeUndefined();
  expect(await codeOf("d", "y")).toBe("PERMISSION_DENIED");
  expect(await codeOf("d", "root")).toBe("PERMISSION_DENIED");
  expect(await codeOf("d", "nobody")).toBe("USER_NOT_FOUND");
  expect(await codeOf("y", "root")).toBeUndefined();
  expect(await codeOf("z", "y")).toBeUndefined();
  const weak = { userId: "u", password: "password" };
  expect(await failureOf(() => auth.alterUser(as("u"), weak))).toBe("WEAK_PASSWORD");
  const answer = await auth.login({ user: "u", password: "fresh horse d" }, LOCAL);
  expect(answer.user.id).toBe("u");
});

test("Auth.alterUser unlocks the name if the password changes, and logs the change", async () => {
  const { auth, as, log } = newServer();
  const password = "fresh horse 5";
  for (let attempt = 0; attempt < 5; attempt += 1) {
    await failureOf(() => auth.login({ user: "u", password }, LOCAL));
  }
  expect(await failureOf(() => auth.login({ user: "u", password }, LOCAL))).toBe("account_locked");
  await auth.alterUser(as("d"), { userId: "u", role: "user" });
  expect(await failureOf(() => auth.login({ user: "u", password }, LOCAL))).toBe("account_locked");
  await auth.alterUser(as("d"), { userId: "u", password });
  expect((await auth.login({ user: "u", password }, LOCAL)).user.id).toBe("u");
  await auth.alterUser(as("d"), { userId: "u", role: "service", email: "u@x.org" });

  const told = new Set(["login locked after repeated failures", "user changed"]);
  const lines = log.lines.filter(({ message }) => told.has(message));
  expect(lines.map(({ fields }) => fields)).toEqual([
    { user: "u", address: LOCAL.address },
    { user: "u", changed: "role", role: "user", by: "d" },
    { user: "u", changed: "password", role: undefined, by: "d" },
    { user: "u", changed: "role, email", role: "service", by: "d" },
  ]);
  expect(JSON.stringify(log.lines)).not.toContain(password);
});

test("Auth.alterUser lets only a dba change roles and emails, and nobody the role of root", async () => {
  const { auth, as } = newServer();

  expect(await failureOf(() => auth.alterUser(as("u"), { userId: "u", email: "a@b.c" }))).toBe(
    "PERMISSION_DENIED",
  );
  expect(await failureOf(() => auth.alterUser(as("u"), { userId: "u", role: "dba" }))).toBe(
    "PERMISSION_DENIED",
  );
  expect(await failureOf(() => auth.alterUser(as("d"), { userId: "u", role: "system" }))).toBe(
    "PERMISSION_DENIED",
  );
  expect(await failureOf(() => auth.alterUser(as("y"), { userId: "root", role: "user" }))).toBe(
    "INVALID_OPERATION",
  );
  expect((await auth.alterUser(as("d"), { userId: "u", email: "a@b.c" })).email).toBe("a@b.c");
  expect((await auth.alterUser(as("y"), { userId: "u", role: "system" })).role).toBe("system");
});

test("Auth.alterUser checks rights again after hashing the password", async () => {
  const { auth, as } = newServer();
  const change = auth.alterUser(as("d"), { userId: "u", password: "fresh horse 77" });
  await auth.alterUser(as("y"), { userId: "u", role: "system" });

  expect(await failureOf(() => change)).toBe("PERMISSION_DENIED");
});

test.each([
  ["is dropped", ({ auth, as }) => auth.dropUser(as("y"), "d")],
  ["loses the role", ({ auth, as }) => auth.alterUser(as("y"), { userId: "d", role: "user" })],
] satisfies [string, (server: ReturnType<typeof newServer>) => unknown][])(
  "Auth refuses the changes of a dba who %s while a password is hashed, and later ones",
  async (_how, end) => {
    const server = newServer();
    const { auth, as } = server;
    const d = as("d");
    const password = "fresh horse 1";
    const creating = failureOf(() =>
      auth.createUser(d, { userId: "spy", role: "dba", credentials: CREDENTIALS }),
    );
    const altering = failureOf(() => auth.alterUser(d, { userId: "u", password }));
    end(server);

    expect(await creating).toBe("PERMISSION_DENIED");
    expect(await altering).toBe("PERMISSION_DENIED");
    expect(await failureOf(() => auth.dropUser(d, "u"))).toBe("PERMISSION_DENIED");
    expect(await failureOf(() => auth.login({ user: "u", password: PASSWORD }, LOCAL))).toBe(
      undefined,
    );
  },
);

test("Auth.alterUser does not let users set their own password if their sessions end in the meantime", async () => {
  const { auth, as } = newServer();
  const own = failureOf(() => auth.alterUser(as("u"), { userId: "u", password: "thief horse 1" }));
  await auth.alterUser(as("d"), { userId: "u", role: "service" });
  await auth.alterUser(as("d"), { userId: "u", role: "user" });

  expect(await own).toBe("SERIALIZATION_FAILURE");
  expect(await failureOf(() => auth.login({ user: "u", password: PASSWORD }, LOCAL))).toBe(
    undefined,
  );
});

test("Auth.dropUser refuses the caller's own account, root, role system, and callers without the right", async () => {
  const { auth, as } = newServer();
  const codeOf = (actor: string, userId: string): Promise<string | undefined> =>
    failureOf(() => auth.dropUser(as(actor), userId));

  expect(await codeOf("u", "u")).toBe("PERMISSION_DENIED");
  expect(await codeOf("s", "u")).toBe("PERMISSION_DENIED");
  expect(await codeOf("d", "d")).toBe("INVALID_OPERATION");
  expect(await codeOf("d", "y")).toBe("PERMISSION_DENIED");
  expect(await codeOf("d", "nobody")).toBe("USER_NOT_FOUND");
  expect(await codeOf("y", "root")).toBe("INVALID_OPERATION");
  expect(await codeOf("y", "z")).toBeUndefined();
  expect(await codeOf("d", "u")).toBeUndefined();
  expect(await codeOf("d", "u")).toBe("USER_NOT_FOUND");
});

test("roleFromWord reads role names in any case, and reads root as system", () => {
  expect(["user", "SERVICE", "Dba", "system", "ROOT", "admin", ""].map(roleFromWord)).toEqual([
    "user",
    "service",
    "dba",
    "system",
    "system",
    undefined,
    undefined,
  ]);
});
