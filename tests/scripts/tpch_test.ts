/** Tests the TPC-H data and the comparison of results, which the TPC-H script relies on. */
import { describe, expect, test } from "bun:test";
import { differenceOf } from "../../scripts/bench/peers/answers.ts";
import { type Made, rowsOf, type TableName } from "../../scripts/bench/tpch/data.ts";
import { queriesAt } from "../../scripts/bench/tpch/queries.ts";
import { TABLES } from "../../scripts/bench/tpch/schema.ts";

const made: readonly Made[] = [...rowsOf(0.01, 1)];

function rowsIn(name: TableName): (readonly (string | number)[])[] {
  return made.flatMap(({ row, table }) => (table === name ? [row] : []));
}

describe("the TPC-H generator follows the specification", () => {
  test("TPC-H data is the same for the same seed, and different for another one", () => {
    const first = (seed: number): readonly Made[] => [...rowsOf(0.01, seed).take(500)];
    expect(first(1)).toEqual(made.slice(0, 500));
    expect(first(2)).not.toEqual(made.slice(0, 500));
  });

  test("TPC-H data has the sizes of the specification", () => {
    const sizes = TABLES.filter(({ name }) => name !== "lineitem").map(({ name }) => [
      name,
      rowsIn(name).length,
    ]);
    expect(Object.fromEntries(sizes)).toEqual({
      region: 5,
      nation: 25,
      supplier: 100,
      part: 2000,
      partsupp: 8000,
      customer: 1500,
      orders: 15_000,
    });
    expect(Math.round(rowsIn("lineitem").length / 15_000)).toBe(4);
  });

  test("TPC-H lines refer to pairs in partsupp, and orders refer to customers that may order", () => {
    const pairs = new Set(rowsIn("partsupp").map(([part, supplier]) => `${part}/${supplier}`));
    expect(pairs.size).toBe(8000);
    const isPair = ([, part, supplier]: readonly unknown[]): boolean =>
      pairs.has(`${String(part)}/${String(supplier)}`);
    expect(rowsIn("lineitem").every(isPair)).toBe(true);
    expect(rowsIn("orders").some(([, customer]) => Number(customer) % 3 === 0)).toBe(false);
  });

  test("there are 22 queries", () => {
    expect([...queriesAt(0.1).keys()]).toEqual(Array.from({ length: 22 }, (_, i) => i + 1));
  });
});

describe("differenceOf compares two results", () => {
  test("differenceOf accepts rounded numbers, numbers as text, and equal rows in any order", () => {
    expect(differenceOf([["1.50", "a"]], [[1.500001, "a"]])).toBeUndefined();
    expect(differenceOf([["x"], ["y"]], [["y"], ["x"]])).toBeUndefined();
    expect(differenceOf([["1995-01-02"]], [[new Date("1995-01-02")]])).toBeUndefined();
  });

  test("differenceOf describes the difference", () => {
    expect(differenceOf([["1.5"]], [[1.6]])).toBe("row 1: (1.6) instead of (1.5)");
    expect(differenceOf([[null]], [[0]])).toBe("row 1: (0) instead of (NULL)");
    expect(differenceOf([[1]], [])).toBe("0 rows instead of 1");
  });
});
