/**
 * Verifies that all methods of grouping a batch give the same groups: by a table of values, by
 * positions in a dictionary or in a narrow range of numbers, and by hashing. The test passes
 * random batches with every form of vector through one Grouping, and compares it with a map keyed
 * by the text of the key.
 *
 * To repeat a failure: SEED=<n> bun test tests/sql/execute/keys/grouping_test.ts
 */
import { describe, expect, test } from "bun:test";
import { Grouping } from "../../../../src/sql/execute/keys/grouping.ts";
import { MemoryBudget } from "../../../../src/sql/execute/materialised/memory_budget.ts";
import {
  BIGINT,
  BOOLEAN,
  constVector,
  type DataType,
  DOUBLE,
  INT,
  TEXT,
  type Value,
  type Vector,
  valueAt,
  vectorFromValues,
} from "../../../../src/types/mod.ts";
import { SeededRandom, seedOf } from "../../../support/seeded_random.ts";
import { shareOf } from "../../../support/thoroughness.ts";

const seed = seedOf(20);

function textVector(random: SeededRandom, count: number): Vector {
  const few = random.below(4);
  if (few === 0) return constVector(random.chance(0.5) ? null : "k1", count);
  const values: Value[] = Array.from({ length: few * 90 }, (_, i) => `k${i % (few * 80)}`);
  const Codes = random.chance(0.5) && values.length <= 256 ? Uint8Array : Uint16Array;
  const isWide = random.chance(0.2);
  const picked = Array.from({ length: count }, () => random.below(values.length));
  const nulls = random.chance(0.5)
    ? Uint8Array.from({ length: count }, () => random.below(2))
    : undefined;
  if (random.chance(0.3)) return { kind: "any", length: count, values: picked.map((i) => `k${i}`) };
  const codes = isWide ? Uint32Array.from(picked) : Codes.from(picked);
  return { kind: "dict", length: count, codes, values, nulls };
}

function numberVector(random: SeededRandom, type: DataType, count: number): Vector {
  const base = random.below(3) * 1000 - 1000;
  const span = random.pick([1, 7, 300, 100_000, 4_000_000_000]);
  const isNull = random.chance(0.3);
  const scale = type.kind === "double" ? 0.5 : 1;
  const values = Array.from({ length: count }, (): Value => {
    if (isNull && random.chance(0.2)) return null;
    const value = base + Math.floor(random.unit() * span);
    return (type.kind === "int" ? value | 0 : value) * scale;
  });
  return vectorFromValues(type, values);
}

function randomVector(random: SeededRandom, type: DataType, count: number): Vector {
  if (type.kind === "text") return textVector(random, count);
  if (type.kind !== "boolean") return numberVector(random, type, count);
  const values = Array.from({ length: count }, (): Value => random.pick([true, false, null]));
  return vectorFromValues(type, values);
}

const KEYS: readonly (readonly DataType[])[] = [
  [INT],
  [BIGINT],
  [DOUBLE],
  [TEXT],
  [TEXT, TEXT],
  [INT, TEXT],
  [BOOLEAN, BIGINT, TEXT],
];

describe("Grouping numbers the keys of rows", () => {
  const keys = KEYS.map((types) => [types.map(({ kind }) => kind).join(), types] as const);

  test.each(shareOf(keys, { oneOf: 2 }))(
    `numbers %s as a map by key does (seed ${seed})`,
    (_, types) => {
      const random = new SeededRandom(seed);
      for (let round = 0; round < 12; round += 1) {
        const groups = new Grouping(types, new MemoryBudget(2 ** 30));
        const expected = new Map<string, number>();
        for (let batch = 0; batch < 5; batch += 1) {
          const count = random.pick([1, 3, 63, 64, 500, 5000]);
          const vectors = types.map((type) => randomVector(random, type, count));
          const { groupCount, ids, rowCounts } = groups.groupsOf(vectors, count);
          const counts: number[] = [];
          for (let row = 0; row < count; row += 1) {
            const key = JSON.stringify(vectors.map((vector) => valueAt(vector, row)));
            const id = expected.get(key) ?? expected.size;
            expected.set(key, id);
            expect(ids[row]).toBe(id);
            counts[id] = (counts[id] ?? 0) + 1;
          }
          expect(groupCount).toBe(expected.size);
          for (const [group, rows] of (rowCounts ?? []).entries()) {
            expect(rows).toBe(counts[group] ?? 0);
          }
        }
        for (const [key, number] of expected) {
          expect(
            JSON.stringify(
              types.map((_type, i) => valueAt(groups.keysOf(i, number, number + 1), 0)),
            ),
          ).toBe(key);
        }
      }
    },
  );

  test("newRowsOf returns the rows of new keys, and stores none of them", () => {
    const groups = new Grouping([INT], new MemoryBudget(2 ** 20), { keepsKeys: false });
    const rowsOf = (values: Value[]): number[] => {
      const { count, rows } = groups.newRowsOf([vectorFromValues(INT, values)], values.length);
      return [...rows.subarray(0, count)];
    };
    const many = Array.from({ length: 100 }, (_, i) => i % 10);
    expect(rowsOf([3, 3, null])).toEqual([0, 2]);
    expect(rowsOf(many)).toEqual([0, 1, 2, 4, 5, 6, 7, 8, 9]);
    expect(rowsOf([...many, -5, null])).toEqual([100]);
  });
});
