/**
 * Verifies that expressions and calls that differ in one part have different equivalence keys. A
 * long list of expressions therefore need not be compared pair by pair.
 */
import { expect, test } from "bun:test";
import { StatementBinding } from "../../../src/sql/bind/binding.ts";
import type { BoundSelect } from "../../../src/sql/bind/bound.ts";
import { formOfList } from "../../../src/sql/bind/equivalence.ts";
import { bindInSteps, bindQuery } from "../../../src/sql/bind/query/select_binder.ts";
import { formOfCall } from "../../../src/sql/bind/query/window_walk.ts";
import { everyRow } from "../../../src/sql/bind/row_rights.ts";
import { queryIn } from "../../support/parsed.ts";

function bound(sql: string): BoundSelect {
  const source = {
    namespace: "default",
    table: () => {
      throw new Error("the query reads no table");
    },
    partsOf: () => undefined,
    systemView: () => undefined,
    view: () => undefined,
    functions: () => [],
  };
  const statement = new StatementBinding([]);
  return bindQuery(queryIn(sql), {
    statement,
    source,
    rights: everyRow(() => undefined),
    bindInSteps,
    isOutermost: true,
  });
}

test("formOfCall distinguishes calls over windows", () => {
  const windows = [
    "ORDER BY x + 1",
    "ORDER BY x + 2",
    "PARTITION BY x + 1",
    "ORDER BY x ROWS 1 PRECEDING",
    "ORDER BY x ROWS 2 PRECEDING",
    "ORDER BY x ROWS BETWEEN CURRENT ROW AND 2 FOLLOWING",
  ];
  const calls = windows.map((window) => `sum(x) OVER (${window})`).join(", ");
  const forms = bound(`SELECT ${calls} FROM (SELECT 1 AS x) t`).windows.map(formOfCall);
  expect(new Set(forms).size).toBe(windows.length);
});

test("formOfList distinguishes IN lists", () => {
  const lists = ["x IN (1, 2)", "x IN (1, 3)", "x IN (1, 2, 3)", "x + 1 IN (1, 2)"];
  const { outputs } = bound(`SELECT ${lists.join(", ")} FROM (SELECT 1 AS x) t`);
  const forms = outputs.map(({ expression }) => formOfList([expression]));
  expect(new Set(forms).size).toBe(lists.length);
});
