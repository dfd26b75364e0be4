/**
 * The table from conditions to wire codes, against the rules that the contract states in words.
 */
import { expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import type { Condition } from "../../src/base/condition.ts";
import { endsSubscription, type WireCode, wireErrorOf } from "../../src/protocol/mod.ts";

/** Every condition, read from the type that declares them. */
function conditions(): Condition[] {
  const source = readFileSync(new URL("../../src/base/condition.ts", import.meta.url), "utf8");
  const union = source.slice(source.indexOf("export type Condition ="), source.indexOf(";\n"));
  return [...union.matchAll(/\| "(\w+)"/g)].map((match) => match[1] as Condition);
}

test("wireErrorOf knows every condition, and gives a reason exactly with SQL_EXECUTION_ERROR", () => {
  const all = conditions();
  expect(all.length).toBeGreaterThan(60);
  for (const condition of all) {
    const { code, reason, status, sqlstate } = wireErrorOf(condition);
    expect([condition, reason !== undefined]).toEqual([condition, code === "SQL_EXECUTION_ERROR"]);
    expect(status).toBeGreaterThanOrEqual(400);
    expect(sqlstate).toMatch(/^[0-9A-Z]{5}$/);
  }
});

test("wireErrorOf answers 400, but for the statuses that the contract names", () => {
  const others = conditions()
    .map((condition) => [condition, wireErrorOf(condition).status] as const)
    .filter(([, status]) => status !== 400);
  expect(Object.fromEntries(others)).toEqual({
    PERMISSION_DENIED: 403,
    FILE_NOT_FOUND: 404,
    RESUME_EXPIRED: 410,
    DISK_FULL: 507,
    DATA_DAMAGED: 500,
    SHUTTING_DOWN: 503,
    COMMIT_UNKNOWN: 500,
    IDEMPOTENCY_CONFLICT: 409,
    INTERNAL_ERROR: 500,
  });
});

test.each<[Condition, WireCode, string | undefined]>([
  ["UNSUPPORTED_FEATURE", "SQL_EXECUTION_ERROR", "not_implemented"],
  ["INVALID_QUERY", "INVALID_SQL", undefined],
  ["COLUMN_NOT_FOUND", "INVALID_SQL", undefined],
  ["TABLE_NOT_FOUND", "TABLE_NOT_FOUND", undefined],
  ["DUPLICATE_KEY", "SQL_EXECUTION_ERROR", "duplicate_key"],
  ["TYPE_MISMATCH", "SQL_EXECUTION_ERROR", "type"],
  ["SERIALIZATION_FAILURE", "SQL_EXECUTION_ERROR", "conflict"],
  ["CARDINALITY_VIOLATION", "SQL_EXECUTION_ERROR", "other"],
  ["STATEMENT_TIMEOUT", "QUERY_TIMEOUT", undefined],
  ["DISK_FULL", "STORAGE_FULL", undefined],
  ["DEPENDENT_OBJECTS", "SQL_EXECUTION_ERROR", "dependent_objects"],
  ["USER_NOT_FOUND", "SQL_EXECUTION_ERROR", "user_not_found"],
])("wireErrorOf %s is %s, reason %p", (condition, code, reason) => {
  expect(wireErrorOf(condition)).toMatchObject({ code });
  expect(wireErrorOf(condition).reason).toBe(reason);
});

test("endsSubscription is false for what leaves the connection as it was", () => {
  expect(endsSubscription("AUTH_REQUIRED")).toBe(false);
  expect(endsSubscription("BATCH_FETCH_FAILED")).toBe(false);
  expect(endsSubscription("RATE_LIMIT_EXCEEDED")).toBe(false);
  expect(endsSubscription("INVALID_OPTIONS")).toBe(true);
  expect(endsSubscription("TOKEN_REVOKED")).toBe(true);
});
