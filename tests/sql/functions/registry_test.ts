/**
 * Verifies that the registry of functions chooses the overload that PostgreSQL chooses, and knows
 * the volatility and the named arguments of each function.
 */
import { expect, test } from "bun:test";
import { join } from "node:path";
import {
  functionExists,
  functionNames,
  namedForm,
  resolveFunction,
} from "../../../src/sql/functions/registry.ts";
import {
  DATE,
  type DataType,
  decimalType,
  FLOAT,
  INT,
  TEXT,
  TIMESTAMP,
} from "../../../src/types/mod.ts";
import { parseSlt } from "../../support/slt.ts";

test("namedForm lists the parameters of functions that accept named arguments", () => {
  expect(namedForm("make_interval")?.parameterNames).toEqual([
    "years",
    "months",
    "weeks",
    "days",
    "hours",
    "mins",
    "secs",
  ]);
  expect(namedForm("abs")).toBeUndefined();
});

test("each function has the expected volatility", () => {
  const volatilityOf = (name: string): string | undefined =>
    resolveFunction(name, [])?.overload.volatility;
  expect(volatilityOf("now")).toBe("stable");
  expect(volatilityOf("current_user")).toBe("stable");
  expect(volatilityOf("random")).toBe("volatile");
  expect(volatilityOf("snowflake_id")).toBe("volatile");
  expect(volatilityOf("clock_timestamp")).toBe("volatile");
  expect(volatilityOf("pi")).toBe("immutable");
});

test("resolveFunction prefers exact types, then the nearest cast", () => {
  const resultOf = (name: string, ...types: DataType[]): string | undefined =>
    resolveFunction(name, types)?.result.kind;
  expect(resultOf("date_trunc", TEXT, TIMESTAMP)).toBe("timestamp");
  expect(resultOf("date_trunc", TEXT, DATE)).toBe("datetime");
  expect(resultOf("abs", FLOAT)).toBe("float");
  expect(resultOf("round", decimalType(5, 2), INT)).toBe("numeric");
  expect(resolveFunction("round", [decimalType(5, 2), INT], [undefined, 1])?.result).toEqual(
    decimalType(5, 1),
  );
  expect(resultOf("to_char", INT, TEXT)).toBe("text");
  expect(functionExists("abs")).toBe(true);
  expect(functionExists("nofn")).toBe(false);
});

test("every function has a case in cases/functions.slt", async () => {
  const cases = await Bun.file(join(import.meta.dir, "../cases/functions.slt")).text();
  const text = parseSlt(cases, "tidemark")
    .map(({ sql }) => sql.toLowerCase())
    .join("\n");
  const missing = functionNames().filter((name) => !new RegExp(`\\b${name}\\b`).test(text));
  expect(missing).toEqual([]);
});
