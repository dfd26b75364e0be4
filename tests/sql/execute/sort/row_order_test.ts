/**
 * Verifies that sort words order rows as their values do, and that a long sort checks the clock.
 * The tests sort random columns of each form, with NULL, many equal values and the extremes of the
 * types, in both directions, and compare the result with a sort of lists.
 */
import { expect, test } from "bun:test";
import { MaterialisedRows } from "../../../../src/sql/execute/materialised/materialised_rows.ts";
import { MemoryBudget } from "../../../../src/sql/execute/materialised/memory_budget.ts";
import {
  compareByKey,
  type SortOrder,
} from "../../../../src/sql/execute/materialised/sort_order.ts";
import { rowOrder } from "../../../../src/sql/execute/sort/row_order.ts";
import {
  BIGINT,
  BOOLEAN,
  type DataType,
  DOUBLE,
  INT,
  JSONB,
  TEXT,
  type Value,
  vectorFromValues,
} from "../../../../src/types/mod.ts";
import { SeededRandom } from "../../../support/seeded_random.ts";
import { amountOf, shareOf } from "../../../support/thoroughness.ts";

const PIECE = 1000;

const PARTS = ["", "a", "row ", "é", "\uffff", "😀", "\u0000", "the same start, ", "zz"];

type Make = (random: SeededRandom) => Value;

const COLUMNS: readonly (readonly [name: string, type: DataType, make: Make])[] = [
  ["int", INT, (random) => random.below(2 ** 32) - 2 ** 31],
  ["few int", INT, (random) => random.below(7) - 3],
  ["double", DOUBLE, (random) => (random.below(2 ** 31) - 2 ** 30) / (1 + random.below(1e9))],
  ["ends of double", DOUBLE, (random) => ENDS[random.below(ENDS.length)] ?? 0],
  ["bigint", BIGINT, (random) => (random.below(3) === 0 ? bigAt(random) : random.below(1e6))],
  ["boolean", BOOLEAN, (random) => random.below(2) === 1],
  ["text", TEXT, (random) => textAt(random)],
  ["text that begins alike", TEXT, (random) => `https://example.org/${textAt(random)}`],
  ["jsonb", JSONB, (random) => String(random.below(50))],
];

const ENDS = [0, -0, 5e-324, -5e-324, Number.MAX_VALUE, -Number.MAX_VALUE, 1, -1, 2 ** -1030];

function bigAt(random: SeededRandom): Value {
  return (random.below(2) === 0 ? 1n : -1n) * (2n ** 60n + BigInt(random.below(5)));
}

function textAt(random: SeededRandom): string {
  return Array.from({ length: random.below(5) }, () => PARTS[random.below(PARTS.length)]).join("");
}

function heldOf(
  types: readonly DataType[],
  columns: readonly (readonly Value[])[],
): MaterialisedRows {
  const rows = new MaterialisedRows(types, new MemoryBudget(2 ** 30));
  const rowCount = columns[0]?.length ?? 0;
  for (let start = 0; start < rowCount; start += PIECE) {
    const end = Math.min(rowCount, start + PIECE);
    const vectors = types.map((type, i) => {
      return vectorFromValues(type, columns[i]?.slice(start, end) ?? []);
    });
    rows.append(vectors, end - start);
  }
  return rows;
}

test.each(shareOf(COLUMNS, { oneOf: 4 }))("rowOrder sorts by %s", (name, type, make) => {
  for (const rowCount of [0, 1, 255, 256, amountOf({ usual: 2001, thorough: 9001 })]) {
    const random = new SeededRandom(rowCount + name.length);
    const values = Array.from({ length: rowCount }, () =>
      random.below(10) === 0 ? null : make(random),
    );
    const others = Array.from({ length: rowCount }, () => random.below(3));
    const firsts = Array.from({ length: rowCount }, () => random.below(100));
    const rows = heldOf([type, INT], [values, others]);
    for (const isDescending of [false, true]) {
      for (const nullsFirst of [false, true]) {
        const key: SortOrder = { type, isDescending, nullsFirst };
        const other: SortOrder = { type: INT, isDescending: true, nullsFirst: false };
        const numbers = Array.from({ length: rowCount }, (_, row) => row);
        const byKey = (left: number, right: number): number =>
          compareByKey(key, values[left] ?? null, values[right] ?? null);
        const byBoth = (left: number, right: number): number =>
          byKey(left, right) || compareByKey(other, others[left] ?? null, others[right] ?? null);
        const options = { keyStart: 0, context: { checkTime: () => undefined } };
        // Sorting lists keeps equal rows in their original order.
        expect([...rowOrder(rows, [key], options)]).toEqual(numbers.toSorted(byKey));
        expect([...rowOrder(rows, [key, other], options)]).toEqual(numbers.toSorted(byBoth));
        const swapped = heldOf([INT, type, INT], [others, values, firsts]);
        const third: SortOrder = { type: INT, isDescending: false, nullsFirst: false };
        const byAll = (left: number, right: number): number =>
          compareByKey(other, others[left] ?? null, others[right] ?? null) ||
          byKey(left, right) ||
          compareByKey(third, firsts[left] ?? null, firsts[right] ?? null);
        expect([...rowOrder(swapped, [other, key, third], options)]).toEqual(
          numbers.toSorted(byAll),
        );
      }
    }
  }
});

test("rowOrder without a key keeps the order of arrival", () => {
  const rows = heldOf([INT], [[3, 1, 2]]);
  const options = { keyStart: 1, context: { checkTime: () => undefined } };
  expect([...rowOrder(rows, [], options)]).toEqual([0, 1, 2]);
});

test.each(shareOf(COLUMNS, { oneOf: 2 }))(
  "rowOrder by %s checks the clock, and ends when the check throws",
  (_, type, make) => {
    const random = new SeededRandom(5);
    const rows = heldOf([type], [Array.from({ length: 50_000 }, () => make(random))]);
    const key: SortOrder = { type, isDescending: false, nullsFirst: false };
    let lookCount = 0;
    const context = {
      checkTime(): void {
        lookCount += 1;
        if (lookCount === 10) throw new Error("over");
      },
    };
    expect(() => rowOrder(rows, [key], { keyStart: 0, context })).toThrow("over");
    expect(lookCount).toBe(10);
  },
);
