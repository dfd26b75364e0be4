/** Verifies that a faulty statement is cut down to little more than its fault. */
import { expect, test } from "bun:test";
import { chanceFromSeed } from "../../../scripts/support/chance.ts";
import { queryOf } from "./queries.ts";
import { shrink, textOf } from "./tree.ts";
import { COLUMN_TYPES } from "./values.ts";

const TABLES = ["t1", "t2"].map((name) => ({ name, columns: COLUMN_TYPES }));
const TRIES_MAX = 400;

test.each(["ILIKE", "INTERSECT", "LATERAL", "NULLIF", "generate_series", "PARTITION BY"])(
  "shrink cuts a query in which %s is the fault down to little else",
  async (fault) => {
    let before = 0;
    let after = 0;
    let found = 0;
    for (let seed = 0; found < 10; seed += 1) {
      const { root } = queryOf(TABLES, chanceFromSeed(seed));
      const text = textOf(root);
      if (!text.includes(fault)) continue;
      found += 1;
      let tries = 0;
      const least = await shrink(
        root,
        (candidate) => {
          tries += 1;
          return Promise.resolve(textOf(candidate).includes(fault));
        },
        TRIES_MAX,
      );
      expect(tries).toBeLessThanOrEqual(TRIES_MAX);
      expect(textOf(least)).toInclude(fault);
      before += text.length;
      after += textOf(least).length;
    }
    expect(after).toBeLessThan(before / 3);
  },
);

test("shrink keeps a query of which every part matters", async () => {
  const { root } = queryOf(TABLES, chanceFromSeed(1));
  const least = await shrink(root, () => Promise.resolve(false), TRIES_MAX);
  expect(textOf(least)).toBe(textOf(root));
});
