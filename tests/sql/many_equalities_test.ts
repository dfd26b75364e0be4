/**
 * Verifies that an OR of many equalities becomes a single membership test with the same meaning.
 * The tests examine the plan, and compare random ORs with equivalent ones on expressions that are
 * not columns.
 */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { systemClock } from "../../src/base/clock.ts";
import { SeededRandom } from "../support/seeded_random.ts";
import { TestEngine } from "../support/sql_engine.ts";
import { amountOf } from "../support/thoroughness.ts";

let engine: TestEngine;

beforeAll(async () => {
  engine = await TestEngine.open({ clock: systemClock });
  await engine.run(
    "CREATE TABLE t (id INT PRIMARY KEY, a BIGINT, b TEXT, d DECIMAL(8,2));" +
      "INSERT INTO t SELECT g, nullif(g % 40, 7), nullif('w' || g % 30, 'w5'), g % 25 / 4.0" +
      " FROM generate_series(1, 3000) g; STORAGE FLUSH TABLE t",
  );
});
afterAll(() => engine[Symbol.asyncDispose]());

async function planOf(condition: string): Promise<string> {
  const rows = await engine.rows(`EXPLAIN SELECT id FROM t WHERE ${condition}`);
  return rows.join("\n");
}

test("many equalities of a column become one membership test, next to other conditions", async () => {
  const plan = await planOf("a = 1 OR b > 'x' OR a = 2 OR 3 = a OR a = 4 OR b = 'w1'");
  expect(plan).toContain("(a IN (1, 2, 3, 4)) OR (b > 'x') OR (b = 'w1')");
});

test("few equalities, and equalities of several columns, stay unchanged", async () => {
  expect(await planOf("a = 1 OR a = 2 OR b = 'w1' OR b = 'w2'")).not.toContain(" IN ");
});

test("keys that are combined with OR are looked up", async () => {
  const ids = Array.from({ length: 12 }, (_, i) => `id = ${i * 7}`).join(" OR ");
  expect(await planOf(ids)).toContain("any of 12");
});

test.each([
  "SELECT (a, b) IN ($) FROM t",
  "SELECT count(CASE WHEN (a, b) NOT IN ($) THEN 1 END) FROM t",
  "SELECT count(*) FROM t WHERE id = 1 OR (a, b) IN ($)",
  "SELECT count(*) FROM t x LEFT JOIN t y ON y.id = x.id AND (y.a, y.b) IN ($)",
  "SELECT a FROM t GROUP BY a HAVING (a, min(b)) IN ($)",
])("a list of rows is one look-up a row outside of WHERE too: %s", async (sql) => {
  const rows = Array.from({ length: 200 }, (_, i) => `(${i % 50}, 'w${i % 37}')`).join(", ");
  const hidden = sql.replace("(a, b)", "(a + 0, b || '')").replace("(y.a, y.b)", "(y.a + 0, y.b)");
  const asked = async (text: string): Promise<unknown> =>
    await engine.rows(`${text.replace("$", () => rows)} ORDER BY 1`);
  const plan = await engine.rows(`EXPLAIN VERBOSE ${sql.replace("$", () => rows)}`);
  expect(plan.join()).not.toContain(" OR (a = ");
  expect(await asked(sql)).toEqual(await asked(hidden.replace("(a, min(b))", "(a + 0, min(b))")));
});

test("30,000 equalities need one lookup for each row", async () => {
  const terms = Array.from({ length: 30_000 }, (_, i) => `a = ${i + 10}`).join(" OR ");
  const rows = await engine.rows(`SELECT count(*) FROM t WHERE ${terms}`);
  expect(rows).toEqual(await engine.rows("SELECT count(*) FROM t WHERE a >= 10"));
});

const ROUNDS = amountOf({ usual: 4, thorough: 60 });

test("an OR of equalities has the same result as one over expressions", async () => {
  const random = new SeededRandom(11);
  for (let round = 0; round < ROUNDS; round += 1) {
    const terms = Array.from({ length: 4 + random.below(12) }, () =>
      random.pick([
        () => `a = ${random.below(45)}`,
        () => `${random.below(45)} = a`,
        () => "a = NULL",
        () => `a = ${random.below(9)}.0`,
        () => `b = 'w${random.below(35)}'`,
        () => `d = ${random.below(7)}.${random.pick(["25", "5", "0"])}`,
        () => `id < ${random.below(30)}`,
      ])(),
    );
    const condition = terms.join(random.chance(0.8) ? " OR " : " AND ");
    const hidden = condition
      .replaceAll(/\ba\b/g, "(a + 0)")
      .replaceAll(/\bb\b/g, "(b || '')")
      .replaceAll(/\bd\b/g, "(d + 0)");
    for (const form of ["$", "NOT ($)", "($) IS NULL"]) {
      const [ours, plain] = [condition, hidden].map((each) => form.replace("$", () => each));
      expect(await engine.rows(`SELECT id FROM t WHERE ${ours} ORDER BY 1`), condition).toEqual(
        await engine.rows(`SELECT id FROM t WHERE ${plain} ORDER BY 1`),
      );
    }
  }
});
