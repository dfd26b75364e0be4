/**
 * Tests the facts that the catalog keeps about users: their owner numbers, their token versions
 * and their revoked tokens, even after the users are dropped.
 */
import { afterAll, expect, test } from "bun:test";
import { silentLog } from "../../src/base/log.ts";
import { type CatalogDatabase, DEFAULT_NAMESPACE } from "../../src/catalog/mod.ts";
import { allSealed } from "../../src/catalog/records.ts";
import { SqliteFile } from "../../src/catalog/sqlite_file.ts";
import { errorCodeOf } from "../support/error_codes.ts";
import { ManualClock } from "../support/manual_clock.ts";
import { freshPath, killedCopy, openCatalog, removeCatalogs } from "./catalog_fixture.ts";

afterAll(removeCatalogs);

test("Accounts.ownerNumber gives a new number to a name that is used again after DROP USER", () => {
  const path = freshPath();
  const catalog = openCatalog(path);
  const user = { userId: "sam", role: "user", authType: "internal" } as const;
  catalog.accounts.create(user);
  const first = catalog.accounts.ownerNumber("sam");
  catalog.accounts.drop("sam");

  expect(first).toBeNumber();
  expect(catalog.accounts.ownerNumber("sam")).toBeUndefined();
  expect(catalog.accounts.wasDropped("sam")).toBeTrue();
  catalog.close();
  const again = openCatalog(path);
  again.accounts.create(user);
  expect(again.accounts.ownerNumber("sam")).not.toBe(first ?? 0);
  expect(again.accounts.ownerNumber("sam")).toBeGreaterThan(0);
  expect(again.accounts.ownerName(first ?? 0)).toBe("sam");
  expect(again.accounts.wasDropped("sam")).toBeFalse();
  again.close();
});

test("Accounts.drop leaves the user's namespaces without an owner, even after a restart", () => {
  const path = freshPath();
  const catalog = openCatalog(path);
  const user = { userId: "sam", role: "user", authType: "internal" } as const;
  catalog.accounts.create(user);
  for (const [name, owner] of [
    ["hers", "ada"],
    ["his", "sam"],
    ["more", "sam"],
  ] as const) {
    catalog.createNamespace({ name, owner, options: { depth: 2 }, createdAtMs: 1 });
  }
  const { version } = catalog;
  catalog.accounts.drop("sam");
  const owners = (from: CatalogDatabase): unknown =>
    from.namespaces().map(({ name, owner }) => [name, owner]);

  const expected = [
    [DEFAULT_NAMESPACE, undefined],
    ["hers", "ada"],
    ["his", undefined],
    ["more", undefined],
    ["public", undefined],
  ];
  expect(owners(catalog)).toEqual(expected);
  expect(catalog.version).toBe(version + 1);
  catalog.close();
  const again = openCatalog(path);
  expect(owners(again)).toEqual(expected);
  expect(again.version).toBe(version + 1);
  expect(again.namespace("his")?.options).toEqual({ depth: 2 });
  again.close();
});

test("CatalogDatabase.open removes references to dropped users, and nothing else", () => {
  const path = freshPath();
  const catalog = openCatalog(path);
  for (const userId of ["sam", "ada"]) {
    catalog.accounts.create({ userId, role: "user", authType: "password" });
  }
  catalog.accounts.drop("sam");
  for (const [name, owner] of [
    ["left", "sam"],
    ["also", "sam"],
    ["hers", "ada"],
    ["roots", "root"],
  ] as const) {
    catalog.createNamespace({ name, owner, options: {}, createdAtMs: 1 });
  }
  catalog.close();

  const again = openCatalog(path);
  expect(again.namespace("left")?.owner).toBeUndefined();
  expect(again.namespace("also")?.owner).toBeUndefined();
  expect(again.namespace("hers")?.owner).toBe("ada");
  expect(again.namespace("roots")?.owner).toBe("root");
  const { version } = again;
  again.close();

  const third = openCatalog(path);
  expect(third.namespace("left")?.owner).toBeUndefined();
  expect(third.version).toBe(version);
  third.close();
});

test("Accounts.droppedSeq is the seq at which the last account with a name was dropped, even after a restart", () => {
  const path = freshPath();
  const catalog = openCatalog(path);
  let seq = 100;
  catalog.journal.issueSeq = () => {
    seq += 1;
    return seq;
  };
  const user = { userId: "sam", role: "user", authType: "internal" } as const;
  catalog.accounts.create(user);
  expect(catalog.accounts.droppedSeq("sam")).toBe(0);
  catalog.accounts.drop("sam");
  const first = catalog.accounts.droppedSeq("sam");
  catalog.accounts.create(user);
  catalog.accounts.drop("sam");
  const second = catalog.accounts.droppedSeq("sam");

  expect(first).toBeGreaterThan(100);
  expect(second).toBeGreaterThan(first);
  expect(catalog.accounts.droppedSeq("root")).toBe(0);
  catalog.close();
  const again = openCatalog(path);
  expect(again.accounts.droppedSeq("sam")).toBe(second);
  // No commit after a restart may have a lower seq.
  expect(again.manifest.highestSeq()).toBeGreaterThanOrEqual(second);
  again.close();
});

test("Accounts.ownerNumber keeps the rows of an id that wrote before it had an account", () => {
  const catalog = openCatalog(freshPath());

  expect(catalog.accounts.ownerNumber("ext")).toBeUndefined();
  const owner = catalog.accounts.ownerNumber("ext", { create: true });
  catalog.accounts.create({ userId: "ext", role: "user", authType: "internal" });
  expect(catalog.accounts.ownerNumber("ext")).toBe(owner ?? -1);
  expect(catalog.accounts.ownerNumber("ext", { create: true })).toBe(owner ?? -1);
  catalog.close();
});

test("Accounts.change ends all tokens after a new password or role, and only then", () => {
  const catalog = openCatalog(freshPath());
  catalog.accounts.create({ userId: "u", role: "user", authType: "password", passwordHash: "1" });
  const first = catalog.accounts.user("u")?.tokenVersion ?? 0;
  const versionAfter = (change: Parameters<typeof catalog.accounts.change>[1]): number =>
    catalog.accounts.change("u", change).tokenVersion - first;

  expect(versionAfter({ lastLoginAtMs: 5 })).toBe(0);
  expect(versionAfter({ email: "x@y.z" })).toBe(0);
  expect(versionAfter({ role: "user" })).toBe(0);
  expect(versionAfter({ passwordHash: "2" })).toBe(1);
  expect(versionAfter({ role: "dba" })).toBe(2);
  expect(versionAfter({ tokenVersion: first + 3 })).toBe(3);
  catalog.close();
});

test("Accounts.create does not reuse a token version of a dropped account", () => {
  const path = freshPath();
  const catalog = openCatalog(path);
  const user = { userId: "u", role: "user", authType: "internal" } as const;
  const versions: number[] = [];
  for (let round = 0; round < 3; round += 1) {
    versions.push(catalog.accounts.create(user).tokenVersion);
    versions.push(catalog.accounts.change("u", { passwordHash: `${round}` }).tokenVersion);
    catalog.accounts.drop("u");
  }
  catalog.close();
  const again = openCatalog(path);
  versions.push(again.accounts.create(user).tokenVersion);

  expect(versions).toEqual([...new Set(versions)].toSorted((left, right) => left - right));
  expect(again.accounts.users().filter(({ userId }) => userId === "u")).toHaveLength(4);
  again.close();
});

test("Accounts.setUp changes root and creates the DBA together, or does neither", () => {
  const catalog = openCatalog(freshPath());
  const users = {
    rootPasswordHash: "r",
    dba: { userId: "ada", role: "dba", authType: "password", passwordHash: "p" },
  } as const;
  catalog.accounts.create({ userId: "ada", role: "user", authType: "internal" });

  expect(errorCodeOf(() => catalog.accounts.setUp(users))).toBe("ALREADY_EXISTS");
  expect(catalog.accounts.user("root")?.passwordHash).toBeUndefined();
  catalog.accounts.drop("ada");
  catalog.accounts.setUp(users);
  expect(catalog.accounts.user("root")?.passwordHash).toBe("r");
  expect(catalog.accounts.user("ada")?.role).toBe("dba");
  catalog.close();
});

test("Revocations.revoke remembers a token for a day beyond its expiry, and then forgets it", () => {
  const clock = new ManualClock();
  const path = freshPath();
  const catalog = openCatalog(path, clock);
  const dayMs = 24 * 3_600_000;
  catalog.revocations.revoke("a", clock.nowMs() + 1000);
  clock.advance(1000 + dayMs);
  catalog.revocations.revoke("b", clock.nowMs() + 1000);

  expect(catalog.revocations.isRevoked("a")).toBeTrue();
  clock.advance(1);
  catalog.revocations.revoke("b", clock.nowMs() + 5000);
  expect(catalog.revocations.isRevoked("a")).toBeFalse();
  expect(catalog.revocations.isRevoked("b")).toBeTrue();
  catalog.close();
  clock.advance(2 * dayMs);
  const again = openCatalog(path, clock);
  expect(again.revocations.isRevoked("b")).toBeFalse();
  again.close();
});

test("Revocations.revoke removes entries that had already expired when the catalog was opened", () => {
  const clock = new ManualClock();
  const path = freshPath();
  const first = openCatalog(path, clock);
  for (let id = 0; id < 40; id += 1) first.revocations.revoke(`old ${id}`, clock.nowMs() + 1000);
  first.close();
  clock.advance(3 * 24 * 3_600_000);

  const catalog = openCatalog(path, clock);
  // Revoking a token again after its entry has expired creates a new entry.
  for (const id of ["old 39", "a", "b", "c"]) catalog.revocations.revoke(id, clock.nowMs() + 1000);
  const file = SqliteFile.open(killedCopy(path), { log: silentLog });
  expect(allSealed<{ id: string }>(file, "revocations").map(({ id }) => id)).toEqual([
    "a",
    "b",
    "c",
    "old 39",
  ]);
  file.close();
  catalog.close();
});

test("Revocations.revoke keeps the time and the successor of the first call", () => {
  const clock = new ManualClock();
  const path = freshPath();
  const catalog = openCatalog(path, clock);
  const firstMs = clock.nowMs();
  catalog.revocations.revoke("a", firstMs + 1000, { successorId: "b" });
  clock.advance(500);
  catalog.revocations.revoke("a", firstMs + 9000, { successorId: "c" });

  const kept = { id: "a", revokedAtMs: firstMs, expiresAtMs: firstMs + 9000, successorId: "b" };
  expect(catalog.revocations.revocation("a")).toEqual(kept);
  catalog.close();
  const again = openCatalog(path, clock);
  expect(again.revocations.revocation("a")).toEqual(kept);
  again.close();
});

test("the last login of users is recorded in no journal, and survives a restart", () => {
  const path = freshPath();
  const catalog = openCatalog(path);
  const user = catalog.accounts.create({ userId: "ada", role: "user", authType: "password" });
  const { end } = catalog.journal;
  expect(end).toBeGreaterThan(0);
  const seenMs = user.createdAtMs + 1000;
  catalog.accounts.noteSeen(new Map([["ada", seenMs]]));
  expect(catalog.journal.end).toBe(end);
  const again = openCatalog(killedCopy(path));
  expect(again.accounts.user("ada")).toEqual({ ...user, lastSeenAtMs: seenMs });
  expect(again.journal.end).toBe(end);
  again.close();
  catalog.close();
});
