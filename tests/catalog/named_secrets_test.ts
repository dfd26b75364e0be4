/**
 * Verifies that service tokens and invitations survive restarts, and that dropped tokens and
 * invitations do not reappear.
 */
import { afterAll, expect, test } from "bun:test";
import type { ServiceTokenEntry } from "../../src/catalog/mod.ts";
import { ManualClock } from "../support/manual_clock.ts";
import { freshPath, openCatalog, removeCatalogs } from "./catalog_fixture.ts";

afterAll(removeCatalogs);

function token(name: string, userId = "root", secretHash = `hash of ${name}`): ServiceTokenEntry {
  return { name, userId, secretHash, createdBy: "root", createdAtMs: 1 };
}

test("a token is found by its name and its hash, even after a restart, until it is dropped", () => {
  const path = freshPath();
  let catalog = openCatalog(path);
  const before = catalog.accessVersion;
  catalog.serviceTokens.create(token("b"));
  catalog.serviceTokens.create(token("a"));
  expect(catalog.accessVersion).toBe(before + 2);
  expect(() => catalog.serviceTokens.create(token("a"))).toThrow("token a: it already exists");
  catalog.close();
  catalog = openCatalog(path);
  const { serviceTokens } = catalog;
  expect(serviceTokens.all().map(({ name }) => name)).toEqual(["a", "b"]);
  expect(serviceTokens.named("a")).toEqual(token("a"));
  expect(serviceTokens.byHash("hash of a")).toEqual(token("a"));
  const { accessVersion } = catalog;
  serviceTokens.drop("a");
  expect(catalog.accessVersion).toBe(accessVersion + 1);
  expect([serviceTokens.named("a"), serviceTokens.byHash("hash of a")]).toEqual([
    undefined,
    undefined,
  ]);
  catalog.close();
  catalog = openCatalog(path);
  expect(catalog.serviceTokens.all()).toEqual([token("b")]);
  catalog.close();
});

test("the last use of a token is kept, but not that of an earlier token with the same name", () => {
  const path = freshPath();
  let catalog = openCatalog(path);
  catalog.serviceTokens.create(token("a"));
  catalog.serviceTokens.create(token("b"));
  const used = ["a", "b"].map((name) => Object.assign(token(name), { lastUsedAtMs: 5 }));
  catalog.serviceTokens.drop("b");
  catalog.serviceTokens.create(token("b", "root", "another hash"));
  const { accessVersion } = catalog;
  catalog.serviceTokens.note(used);
  // Using a token changes no rights, so cached results of earlier checks stay valid.
  expect(catalog.accessVersion).toBe(accessVersion);
  catalog.close();
  catalog = openCatalog(path);
  expect(catalog.serviceTokens.all().map(({ lastUsedAtMs }) => lastUsedAtMs)).toEqual([
    5,
    undefined,
  ]);
  catalog.close();
});

test("the tokens of a user are removed in the transaction that drops the user", () => {
  const path = freshPath();
  let catalog = openCatalog(path, new ManualClock());
  catalog.accounts.create({ userId: "ann", role: "user", authType: "internal" });
  catalog.serviceTokens.create(token("hers", "ann"));
  catalog.serviceTokens.create(token("roots"));
  catalog.accounts.drop("ann");
  expect(catalog.serviceTokens.byHash("hash of hers")).toBeUndefined();
  catalog.close();
  catalog = openCatalog(path);
  expect(catalog.serviceTokens.all().map(({ name }) => name)).toEqual(["roots"]);
  catalog.close();
});

test.each([
  ["lists", true, ["kept"]],
  ["cannot be read", false, []],
])(
  "a restore keeps only secrets that the replaced state had, if that %s",
  (_what, isRead, left) => {
    const path = freshPath();
    let catalog = openCatalog(path);
    for (const name of ["kept", "dropped_later"]) {
      catalog.serviceTokens.create(token(name));
      const { createdAtMs, createdBy, secretHash } = token(name);
      catalog.invitations.create({ name, secretHash, usedCount: 0, createdBy, createdAtMs });
    }
    const used = catalog.used();
    const serviceTokens = used.serviceTokens.filter(({ name }) => name === "kept");
    const invitations = used.invitations.filter(({ name }) => name === "kept");
    catalog.continueFrom(isRead ? { ...used, serviceTokens, invitations } : undefined);
    catalog.close();
    catalog = openCatalog(path);
    expect(catalog.serviceTokens.all().map(({ name }) => name)).toEqual([...left]);
    expect(catalog.invitations.all().map(({ name }) => name)).toEqual([...left]);
    catalog.close();
  },
);
