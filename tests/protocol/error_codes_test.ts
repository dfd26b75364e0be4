/** Verifies that each error code has the correct code on the wire and the correct HTTP status. */
import { expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import type { ErrorCode } from "../../src/base/error_code.ts";
import { endsSubscription, type WireCode, wireErrorOf } from "../../src/protocol/mod.ts";

/** All error codes, read from the type that declares them. */
function errorCodes(): ErrorCode[] {
  const source = readFileSync(new URL("../../src/base/error_code.ts", import.meta.url), "utf8");
  const union = source.slice(source.indexOf("export type ErrorCode ="), source.indexOf(";\n"));
  return [...union.matchAll(/\| "(\w+)"/g)].map((match) => match[1] as ErrorCode);
}

test("wireErrorOf knows every error code, and gives a reason only with SQL_EXECUTION_ERROR", () => {
  const all = errorCodes();
  expect(all.length).toBeGreaterThan(60);
  for (const errorCode of all) {
    const { code, reason, status, sqlstate } = wireErrorOf(errorCode);
    expect([errorCode, reason !== undefined]).toEqual([errorCode, code === "SQL_EXECUTION_ERROR"]);
    expect(status).toBeGreaterThanOrEqual(400);
    expect(sqlstate).toMatch(/^[0-9A-Z]{5}$/);
  }
});

test("wireErrorOf returns status 400 except for the listed codes", () => {
  const others = errorCodes()
    .map((errorCode) => [errorCode, wireErrorOf(errorCode).status] as const)
    .filter(([, status]) => status !== 400);
  expect(Object.fromEntries(others)).toEqual({
    PERMISSION_DENIED: 403,
    FILE_NOT_FOUND: 404,
    EXPORT_NOT_FOUND: 404,
    RESUME_EXPIRED: 410,
    DISK_FULL: 507,
    DATA_DAMAGED: 500,
    SHUTTING_DOWN: 503,
    TRANSACTION_NOT_FOUND: 404,
    COMMIT_UNKNOWN: 500,
    IDEMPOTENCY_CONFLICT: 409,
    INTERNAL_ERROR: 500,
  });
});

test.each<[ErrorCode, WireCode, string | undefined]>([
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
])("wireErrorOf %s is %s, reason %p", (errorCode, code, reason) => {
  expect(wireErrorOf(errorCode)).toMatchObject({ code });
  expect(wireErrorOf(errorCode).reason).toBe(reason);
});

test("endsSubscription is false for errors that leave the connection unchanged", () => {
  expect(endsSubscription("AUTH_REQUIRED")).toBe(false);
  expect(endsSubscription("BATCH_FETCH_FAILED")).toBe(false);
  expect(endsSubscription("RATE_LIMIT_EXCEEDED")).toBe(false);
  expect(endsSubscription("INVALID_OPTIONS")).toBe(true);
  expect(endsSubscription("TOKEN_REVOKED")).toBe(true);
});
