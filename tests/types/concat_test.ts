/**
 * Verifies that concatenated vectors contain the values of all inputs, whatever their kinds. The
 * tests split random values of every type into random parts of random kinds.
 */
import { expect, test } from "bun:test";
import { concat, slice, TEXT, type Value, type Vector, valuesOf } from "../../src/types/mod.ts";
import {
  COLUMN_TYPES,
  NULL_SHAPES,
  randomValues,
  randomVector,
  SHAPES,
} from "../support/random_segment.ts";
import { SeededRandom } from "../support/seeded_random.ts";

test.each(COLUMN_TYPES.map((type) => [type.kind, type] as const))(
  "concat keeps the values of %s",
  (_kind, type) => {
    const random = new SeededRandom(11);
    for (let round = 0; round < 60; round += 1) {
      const expected: Value[] = [];
      const parts: Vector[] = [];
      for (let part = 0; part < 1 + random.below(5); part += 1) {
        const shape = random.pick(SHAPES);
        const nulls = random.pick(NULL_SHAPES);
        const values = randomValues(random, type, { shape, nulls, count: 1 + random.below(30) });
        const start = random.below(values.length);
        const end = start + random.below(values.length - start + 1);
        parts.push(slice(randomVector(random, type, [...values]), start, end));
        expected.push(...values.slice(start, end));
      }
      const all = concat(type, parts);
      expect(all.length, `round ${round}`).toBe(expected.length);
      expect(valuesOf(all), `round ${round}`).toEqual(expected);
    }
  },
);

function codes(values: readonly string[], ...rows: readonly number[]): Vector {
  const length = rows.length;
  return { kind: "dict", length, codes: Uint8Array.from(rows), values, nulls: undefined };
}

test("dictionaries become one that contains each string once, and strings stay bytes", () => {
  const both = concat(TEXT, [codes(["ebb", "flow"], 0, 1), codes(["neap", "ebb"], 0, 1, 1)]);
  expect(both).toMatchObject({ kind: "dict", values: ["ebb", "flow", "neap"] });
  const texts: Vector = {
    kind: "utf8",
    length: 1,
    bytes: Buffer.from("spring"),
    offsets: Uint32Array.of(0, 6),
    nulls: undefined,
  };
  const mixed = concat(TEXT, [texts, both]);
  expect(mixed.kind).toBe("utf8");
  expect(valuesOf(mixed)).toEqual(["spring", "ebb", "flow", "neap", "ebb", "ebb"]);
});

test("a dictionary may contain NULL", () => {
  const holed: Vector = {
    kind: "dict",
    length: 2,
    codes: Uint8Array.of(0, 1),
    values: ["ebb", null],
    nulls: undefined,
  };
  expect(valuesOf(concat(TEXT, [holed, codes(["flow"], 0)]))).toEqual(["ebb", null, "flow"]);
});

test("more than 256 and more than 65,536 strings get wider codes", () => {
  for (const [count, codeBytes] of [
    [200, 2],
    [40_000, 4],
  ] as const) {
    const [low, high] = [0, count].map((first): Vector => {
      const values = Array.from({ length: count }, (_, index) => `text ${first + index}`);
      const all = Uint32Array.from(values.keys());
      return { kind: "dict", length: count, codes: all, values, nulls: undefined };
    });
    const joined = low === undefined || high === undefined ? undefined : concat(TEXT, [low, high]);
    expect(joined?.kind === "dict" && joined.codes.BYTES_PER_ELEMENT).toBe(codeBytes);
    expect(joined === undefined ? [] : valuesOf(joined).slice(count - 1, count + 1)).toEqual([
      `text ${count - 1}`,
      `text ${count}`,
    ]);
  }
});
