/**
 * Goal: every rule about names, at its edges.
 */
import { expect, test } from "bun:test";
import { DatabaseError } from "../../src/base/errors.ts";
import {
  checkColumnName,
  checkObjectName,
  checkUserId,
  isReservedNamespace,
} from "../../src/catalog/mod.ts";
import { conditionOf } from "../support/conditions.ts";

test("checkObjectName takes 1 to 64 letters, digits and _, beginning with a letter", () => {
  for (const name of ["a", "Notes", "a_1", "x".repeat(64)]) {
    expect(
      conditionOf(() => checkObjectName("table", name)),
      name,
    ).toBeUndefined();
  }
  for (const name of ["", "1a", "_a", "a-b", "a b", "ä", "a.b", "x".repeat(65), "a\n", "a\u0000"]) {
    expect(
      conditionOf(() => checkObjectName("table", name)),
      name,
    ).toBe("INVALID_NAME");
  }
});

test("checkObjectName refuses reserved namespaces in any case, and only as namespaces", () => {
  const reserved =
    "default system information_schema pg_x pg_catalog sys root main sql admin internal tidemark";
  for (const name of reserved.split(" ")) {
    for (const spelling of [name, name.toUpperCase()]) {
      expect(isReservedNamespace(spelling), spelling).toBeTrue();
      expect(conditionOf(() => checkObjectName("namespace", spelling))).toBe("RESERVED_NAME");
      expect(conditionOf(() => checkObjectName("table", spelling))).toBeUndefined();
    }
  }
  for (const name of ["app", "pg", "systems", "defaults"]) {
    expect(
      conditionOf(() => checkObjectName("namespace", name)),
      name,
    ).toBeUndefined();
  }
});

test("checkColumnName widens to printable Unicode when quoted, and never to a leading _", () => {
  const table: readonly [name: string, bare: string | undefined, quoted: string | undefined][] = [
    ["id", undefined, undefined],
    ["größe 1", "INVALID_NAME", undefined],
    ["名前", "INVALID_NAME", undefined],
    ["a\u200db", "INVALID_NAME", undefined],
    ["1st", "INVALID_NAME", undefined],
    ["", "INVALID_NAME", "INVALID_NAME"],
    ["a\tb", "INVALID_NAME", "INVALID_NAME"],
    ["a\u202eb", "INVALID_NAME", "INVALID_NAME"],
    ["a\ud800", "INVALID_NAME", "INVALID_NAME"],
    ["n".repeat(64), undefined, undefined],
    ["n".repeat(65), "INVALID_NAME", "INVALID_NAME"],
    ["_seq", "RESERVED_NAME", "RESERVED_NAME"],
    ["_mine", "RESERVED_NAME", "RESERVED_NAME"],
  ];
  for (const [name, bare, quoted] of table) {
    expect(
      conditionOf(() => checkColumnName(name)),
      name,
    ).toBe(bare as string);
    expect(
      conditionOf(() => checkColumnName(name, { isQuoted: true })),
      name,
    ).toBe(quoted as string);
  }
});

test("checkUserId takes 1 to 128 bytes without control characters, slashes and ..", () => {
  for (const id of ["a", "Ada Lovelace", "a@b.c", "ü".repeat(64), "x".repeat(128), "a.b", "'"]) {
    expect(
      conditionOf(() => checkUserId(id)),
      id,
    ).toBeUndefined();
  }
  for (const id of [
    "",
    "x".repeat(129),
    "ü".repeat(65),
    "a/b",
    "a\\b",
    "a..b",
    "a\u0000",
    "a\n",
    "\ud800",
  ]) {
    expect(
      conditionOf(() => checkUserId(id)),
      id,
    ).toBe("INVALID_NAME");
  }
});

test("checkObjectName says where, and does not flood its message", () => {
  try {
    checkObjectName("table", "!".repeat(10_000), { position: 13 });
    expect.unreachable();
  } catch (error) {
    expect(error).toBeInstanceOf(DatabaseError);
    expect(error).toHaveProperty("position", 13);
    expect(String(error).length).toBeLessThan(300);
  }
});
