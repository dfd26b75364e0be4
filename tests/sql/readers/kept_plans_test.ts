/**
 * Verifies that a reader keeps the newest plans up to a limit on their estimated size, which grows
 * with the length of their SQL.
 */
import { expect, test } from "bun:test";
import { KeptPlans } from "../../../src/sql/readers/kept_plans.ts";
import type { QueryStatement } from "../../support/parsed.ts";
import { testThoroughly } from "../../support/requirements.ts";
import { TestEngine } from "../../support/sql_engine.ts";

function statementOf(textLength: number): QueryStatement {
  const _location = { start: 100, end: 100 + textLength };
  return { type: "select", columns: [], _location };
}

/** Returns the numbers of the plans that were kept, from 0 to 299. */
const kept = (plans: KeptPlans<string>): number[] =>
  Array.from({ length: 300 }, (_, number) => number).filter((number) => plans.has(number));

const keptAfter = (textLength: number): number[] => {
  const plans = new KeptPlans<string>();
  for (let number = 0; number < 300; number += 1) plans.add(number, "p", statementOf(textLength));
  return kept(plans);
};

test("KeptPlans keeps the newest plans, and the fewer the longer their texts are", () => {
  const all = Array.from({ length: 300 }, (_, number) => number);
  expect(keptAfter(10)).toEqual(all);
  const ofMedium = keptAfter(1000);
  const ofLong = keptAfter(10_000);
  expect(ofMedium).toEqual(all.slice(-ofMedium.length));
  expect(ofLong).toEqual(all.slice(-ofLong.length));
  expect(ofLong.length).toBeGreaterThan(1);
  expect(ofLong.length).toBeLessThan(ofMedium.length);
  expect(ofMedium.length).toBeLessThan(300);
});

test("KeptPlans keeps no plan of a very long text, and the other plans stay", () => {
  const plans = new KeptPlans<string>();
  plans.add(1, "p", statementOf(10));
  plans.add(2, "long", statementOf(2 ** 20));
  expect(kept(plans)).toEqual([1]);
  plans.add(1, "grown", statementOf(2 ** 20));
  expect(kept(plans)).toEqual([]);
});

test("KeptPlans.delete frees space, and add replaces a plan", () => {
  const full = keptAfter(10_000).length;
  const plans = new KeptPlans<string>();
  for (let number = 0; number < full; number += 1) plans.add(number, "p", statementOf(10_000));
  plans.delete(3);
  plans.delete(3);
  plans.add(full, "p", statementOf(10_000));
  const rest = Array.from({ length: full + 1 }, (_, number) => number).filter((n) => n !== 3);
  expect(kept(plans)).toEqual(rest);
  plans.add(1, "new", statementOf(10));
  expect(plans.get(1)).toBe("new");
  expect(kept(plans)).toEqual(rest);
});

testThoroughly(
  "a reader knows the plans that the event loop expects, also after a failure",
  async () => {
    await using engine = await TestEngine.open({ readsElsewhere: true });
    await engine.run("CREATE TABLE t (id INT PRIMARY KEY); INSERT INTO t VALUES (1)");
    const outputs = Array.from({ length: 500 }, () => "id + id").join(", ");
    const first = `SELECT id AS first, ${outputs} FROM t`;
    await engine.run(first);
    const { error } = await engine.ask(`SELECT 1 / (id - id), ${outputs} FROM t`);
    expect(error?.code).toBe("DIVISION_BY_ZERO");
    // The limit is reached at about the twelfth plan, so the first one is discarded.
    for (let number = 0; number < 14; number += 1) {
      await engine.run(`SELECT id AS c${number}, ${outputs} FROM t`);
      expect((await engine.rows(first)).flat()).toHaveLength(501);
    }
  },
);
