/** Verifies every naming rule at its limits. */
import { expect, test } from "bun:test";
import { DatabaseError } from "../../src/base/errors.ts";
import {
  checkColumnName,
  checkObjectName,
  checkUserId,
  isReservedNamespace,
} from "../../src/catalog/mod.ts";
import { errorCodeOf } from "../support/error_codes.ts";

test("checkObjectName accepts 1 to 64 letters, digits and _, beginning with a letter", () => {
  for (const name of ["a", "Notes", "a_1", "x".repeat(64)]) {
    expect(
      errorCodeOf(() => checkObjectName("table", name)),
      name,
    ).toBeUndefined();
  }
  for (const kind of ["table", "view", "sequence", "index", "constraint", "policy"] as const) {
    expect(
      errorCodeOf(() => checkObjectName(kind, "_AToB")),
      kind,
    ).toBeUndefined();
  }
  for (const kind of ["namespace", "topic", "type", "storage", "token"] as const) {
    expect(
      errorCodeOf(() => checkObjectName(kind, "_AToB")),
      kind,
    ).toBe("INVALID_NAME");
  }
  for (const name of [
    "",
    "1a",
    "-_a",
    "a-b",
    "a b",
    "ä",
    "a.b",
    "x".repeat(65),
    "a\n",
    "a\u0000",
  ]) {
    expect(
      errorCodeOf(() => checkObjectName("table", name)),
      name,
    ).toBe("INVALID_NAME");
  }
});

test("checkObjectName refuses reserved namespaces in any case, but allows them as other names", () => {
  const reserved =
    "default system information_schema pg_x pg_catalog sys root main sql admin internal tidemark";
  for (const name of reserved.split(" ")) {
    for (const spelling of [name, name.toUpperCase()]) {
      expect(isReservedNamespace(spelling), spelling).toBeTrue();
      expect(errorCodeOf(() => checkObjectName("namespace", spelling))).toBe("RESERVED_NAME");
      expect(errorCodeOf(() => checkObjectName("table", spelling))).toBeUndefined();
    }
  }
  for (const name of ["app", "pg", "systems", "defaults"]) {
    expect(
      errorCodeOf(() => checkObjectName("namespace", name)),
      name,
    ).toBeUndefined();
  }
});

test("checkColumnName also accepts printable Unicode in quotes, but never a leading _", () => {
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
      errorCodeOf(() => checkColumnName(name)),
      name,
    ).toBe(bare as string);
    expect(
      errorCodeOf(() => checkColumnName(name, { isQuoted: true })),
      name,
    ).toBe(quoted as string);
  }
});

test("checkUserId accepts 1 to 128 bytes without control characters, slashes and ..", () => {
  for (const id of ["a", "Ada Lovelace", "a@b.c", "ü".repeat(64), "x".repeat(128), "a.b", "'"]) {
    expect(
      errorCodeOf(() => checkUserId(id)),
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
      errorCodeOf(() => checkUserId(id)),
      id,
    ).toBe("INVALID_NAME");
  }
});

test("checkObjectName reports the position, and keeps its message short", () => {
  try {
    checkObjectName("table", "!".repeat(10_000), { position: 13 });
    expect.unreachable();
  } catch (error) {
    expect(error).toBeInstanceOf(DatabaseError);
    expect(error).toHaveProperty("position", 13);
    expect(String(error).length).toBeLessThan(300);
  }
});
