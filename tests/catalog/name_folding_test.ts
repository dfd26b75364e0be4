/**
 * Verifies that names that people confuse with each other fold to the same text, and that other
 * names do not.
 */
import { afterAll, expect, test } from "bun:test";
import { foldedUserName } from "../../src/catalog/name_folding.ts";
import { freshPath, openCatalog, removeCatalogs } from "./catalog_fixture.ts";

afterAll(removeCatalogs);

test.each([
  ["Ada", "ada"],
  ["ADA", "ada"],
  ["\u0410da", "ada"],
  ["\u0430\u0501\u0430", "ada"],
  ["r\u043e\u03bft", "root"],
  ["\uff41\uff44\uff41", "ada"],
  ["\u0406van", "ivan"],
  ["\u039dina", "nina"],
  ["ﬁn", "fin"],
  ["e\u0301va", "\u00e9va"],
])("the name %s is folded to %s", (name, folded) => {
  expect(foldedUserName(name)).toBe(folded);
});

test("names with different letters, marks and digits stay distinct", () => {
  const names = [
    "eva",
    "\u00e9va",
    "eve",
    "иван",
    "мария",
    "γιώργος",
    "user1",
    "userl",
    "李",
    "o",
    "0",
  ];
  expect(new Set(names.map(foldedUserName)).size).toBe(names.length);
});

test("a name that resembles that of a user is refused until that user is dropped, even after a restart", () => {
  const path = freshPath();
  let catalog = openCatalog(path);
  const create = (userId: string): void => {
    catalog.accounts.create({ userId, role: "user", authType: "internal" });
  };
  create("ann");
  catalog.accounts.create({ userId: "guest-1", role: "user", authType: "guest" });
  catalog.accounts.change("guest-1", { loginName: "Bob" });
  for (let start = 0; start < 2; start += 1) {
    expect(() => create("Ann")).toThrow("it is too similar to the name of an existing user");
    expect(() => create("\u0430nn")).toThrow("it is too similar to the name of an existing user");
    expect(() => create("bob")).toThrow("it is too similar to the name of an existing user");
    expect(() => create("Bob")).toThrow("it already exists");
    expect(() => catalog.accounts.change("guest-1", { loginName: "ANN" })).toThrow("too similar");
    expect(catalog.accounts.userByLogin("Bob")?.userId).toBe("guest-1");
    expect(catalog.accounts.userByLogin("bob")).toBeUndefined();
    catalog.close();
    catalog = openCatalog(path);
  }
  catalog.accounts.drop("ann");
  catalog.accounts.drop("guest-1");
  expect(catalog.accounts.userByLogin("Bob")).toBeUndefined();
  create("Ann");
  create("BOB");
  catalog.close();
});

test("Accounts.usersByEmail finds the users with an address, in any case, until they change it", () => {
  const catalog = openCatalog(freshPath());
  for (const userId of ["a", "b"]) {
    catalog.accounts.create({ userId, role: "user", authType: "internal", email: "X@example.com" });
  }
  const found = (email: string): string[] =>
    catalog.accounts.usersByEmail(email).map(({ userId }) => userId);
  expect(found("x@EXAMPLE.com")).toEqual(["a", "b"]);
  catalog.accounts.change("a", { email: "y@example.com" });
  catalog.accounts.drop("b");
  expect([found("x@example.com"), found("y@example.com")]).toEqual([[], ["a"]]);
  catalog.accounts.change("a", { emailVerifiedAtMs: 5 });
  expect(catalog.accounts.usersByEmail("y@example.com")[0]?.emailVerifiedAtMs).toBe(5);
  catalog.accounts.change("a", { email: "z@example.com" });
  expect(catalog.accounts.user("a")?.emailVerifiedAtMs).toBeUndefined();
  catalog.close();
});
