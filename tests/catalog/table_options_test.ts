/**
 * Verifies every row of the table of CREATE TABLE options: kinds, ranges, allowed words and
 * refusals.
 */
import { expect, test } from "bun:test";
import { DatabaseError } from "../../src/base/errors.ts";
import {
  changedTableOptions,
  deletedAfterMs,
  flushPolicyFrom,
  type OptionSetting,
  resetTableOptions,
  shownKindOf,
  type TableKind,
  tableOptionsFrom,
} from "../../src/catalog/mod.ts";
import { errorCodeOf } from "../support/error_codes.ts";

type Settings = Readonly<Record<string, OptionSetting["value"]>>;

function settings(values: Settings): OptionSetting[] {
  return Object.entries(values).map(([name, value], index) => ({ name, value, position: index }));
}

function conditionOfOptions(prefix: TableKind | undefined, values: Settings): string | undefined {
  return errorCodeOf(() => tableOptionsFrom(prefix, settings(values)));
}

test("flushPolicyFrom reads rows, interval, or both in any order and in any case", () => {
  expect(flushPolicyFrom("rows:1")).toEqual({ rows: 1 });
  expect(flushPolicyFrom("interval:86399")).toEqual({ intervalSeconds: 86_399 });
  expect(flushPolicyFrom("rows:999999,interval:1")).toEqual({ rows: 999_999, intervalSeconds: 1 });
  expect(flushPolicyFrom(" Interval : 60 , ROWS:1000 ")).toEqual({
    rows: 1000,
    intervalSeconds: 60,
  });
});

test("flushPolicyFrom refuses everything else", () => {
  const bad =
    "|rows|rows:|rows:0|rows:1000000|interval:0|interval:86400|rows:-1|rows:1.5|rows:1,rows:2|rows:1,|cols:1|rows:1;interval:1|rows:99999999999999999999";
  for (const text of bad.split("|")) {
    expect(() => flushPolicyFrom(text), text).toThrow(DatabaseError);
  }
});

test("tableOptionsFrom determines the kind from the prefix and TYPE", () => {
  const kindOf = (prefix: TableKind | undefined, values: Settings): TableKind =>
    tableOptionsFrom(prefix, settings(values)).kind;

  expect(kindOf(undefined, {})).toBe("shared");
  expect(kindOf("user", {})).toBe("user");
  expect(kindOf(undefined, { type: "User" })).toBe("user");
  expect(kindOf("shared", { TYPE: "shared" })).toBe("shared");
  expect(kindOf("stream", { TTL_SECONDS: 5 })).toBe("stream");
  expect(conditionOfOptions("user", { TYPE: "SHARED" })).toBe("INVALID_OPTION");
  expect(conditionOfOptions(undefined, { TYPE: "TEMP" })).toBe("INVALID_OPTION");
});

test("tableOptionsFrom accepts each option only for the kinds that support it", () => {
  const options: readonly [Settings, kinds: readonly TableKind[]][] = [
    [{ FLUSH_POLICY: "rows:10" }, ["user", "shared"]],
    [{ STORAGE_ID: "local" }, ["user", "shared"]],
    [{ ACCESS_LEVEL: "public" }, ["shared", "stream"]],
    [{ DELETED_RETENTION_HOURS: 5 }, ["user", "shared"]],
    [{ COMPRESSION: "ZSTD" }, ["user", "shared"]],
    [{ TTL_SECONDS: 60 }, ["stream"]],
  ];
  for (const [option, kinds] of options) {
    for (const kind of ["user", "shared", "stream"] as const) {
      const values: Settings = kind === "stream" ? { TTL_SECONDS: 60, ...option } : option;
      const expected = kinds.includes(kind) ? undefined : "INVALID_OPTION";
      expect(conditionOfOptions(kind, values), `${kind} ${Object.keys(option)[0]}`).toBe(
        expected as string,
      );
    }
  }
});

test("tableOptionsFrom enforces each range at its ends, below and above", () => {
  const ranges: readonly [name: string, kind: TableKind, max: number][] = [
    ["TTL_SECONDS", "stream", 31_536_000],
    ["DELETED_RETENTION_HOURS", "shared", 8760],
  ];
  for (const [name, kind, max] of ranges) {
    for (const value of [1, max, "7"]) {
      expect(conditionOfOptions(kind, { [name]: value }), `${name} ${value}`).toBeUndefined();
    }
    for (const value of [0, max + 1, -1, 1.5, "x", "", true]) {
      expect(conditionOfOptions(kind, { [name]: value }), `${name} ${value}`).toBe(
        "INVALID_OPTION",
      );
    }
  }
});

test("tableOptionsFrom refuses unknown, repeated and missing options, and reports the position", () => {
  expect(conditionOfOptions("shared", { FLUSH: "rows:1" })).toBe("INVALID_OPTION");
  expect(conditionOfOptions("shared", { FLUSH_POLICY: "rows:1", flush_policy: "rows:2" })).toBe(
    "INVALID_OPTION",
  );
  expect(conditionOfOptions("stream", {})).toBe("INVALID_OPTION");
  expect(conditionOfOptions("shared", { ACCESS_LEVEL: "SECRET" })).toBe("INVALID_OPTION");
  try {
    tableOptionsFrom("shared", settings({ COMPRESSION: "none", NOPE: 1 }));
    expect.unreachable();
  } catch (error) {
    expect(error).toHaveProperty("position", 1);
  }
});

test("tableOptionsFrom spells words as the catalog does", () => {
  const values = { access_level: "dba", Compression: "NONE", flush_policy: "rows:5" };

  expect(tableOptionsFrom("shared", settings(values)).options).toEqual({
    accessLevel: "DBA",
    compression: "none",
    flushPolicy: "rows:5",
  });
});

test("tableOptionsFrom turns a STREAM table with an access level into a SHARED table with expiry", () => {
  const shared = { kind: "shared", options: { accessLevel: "PUBLIC", ttlSeconds: 5 } } as const;
  const own = { kind: "stream", options: { ttlSeconds: 5 } } as const;
  const values = { TTL_SECONDS: 5, ACCESS_LEVEL: "public" };

  expect(tableOptionsFrom("stream", settings(values))).toEqual(shared);
  expect(tableOptionsFrom("stream", settings({ TTL_SECONDS: 5 }))).toEqual(own);
  expect(conditionOfOptions("stream", { ACCESS_LEVEL: "PUBLIC" })).toBe("INVALID_OPTION");
  expect([shared, own].map(shownKindOf)).toEqual(["STREAM", "STREAM"]);
  expect(shownKindOf({ kind: "shared", options: {} })).toBe("SHARED");
  expect(shownKindOf({ kind: "user", options: {} })).toBe("USER");
  expect([shared, own].map(deletedAfterMs)).toEqual([5000, undefined]);
});

test("a STREAM table with an access level also has the options of SHARED tables", () => {
  const table = { kind: "shared", options: { accessLevel: "PUBLIC", ttlSeconds: 5 } } as const;
  const values = { TTL_SECONDS: 9, ACCESS_LEVEL: "dba", FLUSH_POLICY: "rows:7" };

  expect(changedTableOptions(table, settings(values))).toEqual({
    accessLevel: "DBA",
    flushPolicy: "rows:7",
    ttlSeconds: 9,
  });
  expect(resetTableOptions(table, [{ name: "ACCESS_LEVEL" }])).toEqual({ ttlSeconds: 5 });
  expect(() => resetTableOptions(table, [{ name: "TTL_SECONDS" }])).toThrow(DatabaseError);
  const own = { kind: "stream", options: { ttlSeconds: 5 } } as const;
  try {
    changedTableOptions(own, settings({ ACCESS_LEVEL: "PUBLIC" }));
    expect.unreachable();
  } catch (error) {
    expect(error).toHaveProperty("hint", expect.stringContaining("ACCESS_LEVEL"));
  }
});

test("changedTableOptions and resetTableOptions keep options that are not named", () => {
  const options = { accessLevel: "PUBLIC", flushPolicy: "rows:5" } as const;
  const current = { kind: "shared", options } as const;
  const bare = { kind: "shared", options: {} } as const;
  const stream = { kind: "stream", options: { ttlSeconds: 5 } } as const;

  expect(changedTableOptions(current, settings({ COMPRESSION: "none" }))).toEqual({
    ...options,
    compression: "none",
  });
  expect(resetTableOptions(current, [{ name: "access_level" }])).toEqual({
    flushPolicy: "rows:5",
  });
  expect(() => changedTableOptions(bare, settings({ TYPE: "USER" }))).toThrow("TYPE");
  expect(() => changedTableOptions(bare, settings({ TTL_SECONDS: 5 }))).toThrow("TTL_SECONDS");
  expect(() => resetTableOptions(bare, [{ name: "TTL_SECONDS" }])).toThrow(DatabaseError);
  expect(() => resetTableOptions(stream, [{ name: "TTL_SECONDS" }])).toThrow(DatabaseError);
});
