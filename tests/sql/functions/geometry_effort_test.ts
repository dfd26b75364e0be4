/**
 * Verifies that operations on shapes with very many points are refused before they can block other
 * work.
 */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { testThoroughly } from "../../support/requirements.ts";
import { TestEngine } from "../../support/sql_engine.ts";
import { shareOf } from "../../support/thoroughness.ts";

let engine: TestEngine;

beforeAll(async () => {
  engine = await TestEngine.open();
});

afterAll(async () => {
  await engine[Symbol.asyncDispose]();
});

const round = (points: number, x: number): string => `polygon(${points}, circle '<(${x},0),1>')`;

const REFUSED = [
  `SELECT ${round(2500, 0)} && ${round(2500, 0.5)}`,
  `SELECT ${round(2500, 0)} <-> ${round(2500, 0.5)}`,
  `SELECT ${round(2500, 0)} @> ${round(2500, 0)}`,
  `SELECT ${round(2500, 0)}::path ?# ${round(2500, 0.5)}::path`,
  `SELECT polygon(pclose(path('((0,0)${",(0,0)".repeat(2500)},(1,1))'))) ~= polygon(pclose(path('((0,0)${",(0,0)".repeat(2499)},(2,2),(1,1))')))`,
];

test.each(shareOf(REFUSED, { oneOf: 3 }))(
  "a call that compares too many edges is refused: case %#",
  async (sql) => {
    const { error } = await engine.ask(sql);
    expect(error?.code).toBe("LIMIT_EXCEEDED");
    expect(error?.hint).toBe("use shapes with fewer points");
  },
);

testThoroughly("shapes of some hundred points are compared", async () => {
  const [row] = await engine.rows(
    `SELECT ${round(300, 0)} && ${round(300, 0.5)}, ${round(300, 0)} @> ${round(300, 0)},
      ${round(300, 0)} ~= ${round(300, 0)}, ${round(300, 0)} <-> ${round(300, 4)}`,
  );
  expect(row).toEqual([true, true, true, 2]);
});
