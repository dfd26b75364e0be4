/** Verifies which statements of a script count as statements about plans. */
import { expect, test } from "bun:test";
import { PlanFunctions } from "./plan_functions.ts";

test("a function that runs EXPLAIN, and each call of it, is about plans", () => {
  const plans = new PlanFunctions();
  expect(plans.isAboutPlans("SELECT * FROM rows_of('SELECT 1')")).toBe(false);
  const body = "$$ BEGIN RETURN QUERY EXECUTE format('explain %s', $1); END $$";
  expect(plans.isAboutPlans(`create function rows_of(text) returns setof text as ${body}`)).toBe(
    true,
  );
  expect(plans.isAboutPlans("SELECT * FROM Rows_Of ('SELECT 1')")).toBe(true);
  expect(plans.isAboutPlans("DROP TABLE rows_of")).toBe(false);
  expect(plans.isAboutPlans("SELECT * FROM my_rows_of(1)")).toBe(false);
  expect(plans.isAboutPlans("CREATE FUNCTION two() RETURNS INT AS 'SELECT 2'")).toBe(false);
});
