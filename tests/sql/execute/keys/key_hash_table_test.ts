/**
 * Tests the numbers that a hash table assigns to keys: equal values get the same number, whatever
 * form of vector contains them, and different values get different numbers.
 */
import { describe, expect, test } from "bun:test";
import { mapDistinct } from "../../../../src/sql/execute/evaluate/distinct_values.ts";
import {
  KeyHashTable,
  NO_KEY,
  nullKeysOf,
} from "../../../../src/sql/execute/keys/key_hash_table.ts";
import {
  BIGINT,
  BOOLEAN,
  DOUBLE,
  INT,
  TEXT,
  type Value,
  type Vector,
  valueAt,
  vectorFromValues,
} from "../../../../src/types/mod.ts";

function anyOf(...values: Value[]): Vector {
  return { kind: "any", length: values.length, values };
}

function dictionaryOf(values: readonly Value[], codes: readonly number[]): Vector {
  const { length } = codes;
  return { kind: "dict", length, values, codes: Uint8Array.from(codes), nulls: undefined };
}

describe("KeyHashTable numbers keys", () => {
  test("KeyHashTable numbers int32, double, bigint and NULL alike", () => {
    const index = new KeyHashTable([BIGINT]);
    const ints: Vector = {
      kind: "i32",
      length: 3,
      values: Int32Array.of(7, -1, 7),
      nulls: undefined,
    };
    expect([...index.add([ints], 3)]).toEqual([0, 1, 0]);
    const mixed = anyOf(2n ** 60n, 7, null, -1, 2n ** 60n, null);
    expect([...index.add([mixed], 6)]).toEqual([2, 0, 3, 1, 2, 3]);
    const doubles = vectorFromValues(BIGINT, [2 ** 40, -1, null]);
    expect([...index.find([doubles], 3)]).toEqual([NO_KEY, 1, 3]);
    expect([...index.find([anyOf(2n ** 61n)], 1)]).toEqual([NO_KEY]);
  });

  test("KeyHashTable treats zeros as equal, and NaN as equal to itself but not to NULL", () => {
    const index = new KeyHashTable([DOUBLE]);
    const values = vectorFromValues(DOUBLE, [0, -0, Number.NaN, null, Number.NaN, -0.5]);
    expect([...index.add([values], 6)]).toEqual([0, 0, 1, 2, 1, 3]);
  });

  test("KeyHashTable numbers text in a dictionary like plain strings", () => {
    const index = new KeyHashTable([TEXT, INT]);
    const ones = vectorFromValues(INT, [1, 1, 2]);
    expect([...index.add([anyOf("a", "b", "a"), ones], 3)]).toEqual([0, 1, 2]);
    const dictionary = dictionaryOf(["never", "b", "a"], [2, 1, 2]);
    expect([...index.find([dictionary, ones], 3)]).toEqual([0, 1, 2]);
    expect([...index.find([anyOf("never", "1", ""), ones], 3)]).toEqual([NO_KEY, NO_KEY, NO_KEY]);
  });

  test("KeyHashTable keeps its numbers while it grows", () => {
    const index = new KeyHashTable([INT, BIGINT]);
    const values = Array.from({ length: 5000 }, (_, i) => i);
    const pair = [vectorFromValues(INT, values), vectorFromValues(BIGINT, values)];
    expect([...index.add(pair, 5000)]).toEqual(values);
    expect([...index.find(pair, 5000)]).toEqual(values);
    expect(index.count).toBe(5000);
    expect(index.bytes).toBeGreaterThan(5000 * 16);
  });

  // Verifies that the table numbers known keys, new keys, and keys with the same values in the
  // first two columns as a plain map would, for any number of columns and batches of any size.
  test.each([1, 2, 3, 4])("KeyHashTable numbers keys of %d columns as a map does", (width) => {
    const types = [BIGINT, INT, TEXT, INT].slice(0, width);
    const index = new KeyHashTable(types);
    const known = new Map<string, number>();
    let state = 7 + width;
    const below = (bound: number): number => {
      state = (Math.imul(state, 1_103_515_245) + 12_345) | 0;
      return (state >>> 8) % bound;
    };
    for (let batch = 0; batch < 60; batch += 1) {
      const rowCount = 1 + below(3000);
      const rows = Array.from({ length: rowCount }, () => {
        return [below(30_000) * 2 ** 25, below(5), `text ${below(40)}`, below(3)].slice(0, width);
      });
      const vectors = types.map((type, i) =>
        vectorFromValues(
          type,
          rows.map((row) => row[i] ?? null),
        ),
      );
      const before = rows.map((row) => known.get(row.join()) ?? NO_KEY);
      expect([...index.find(vectors, rowCount)]).toEqual(before);
      const numbers = rows.map((row) => {
        const key = row.join();
        const number = known.get(key) ?? known.size;
        known.set(key, number);
        return number;
      });
      expect([...index.add(vectors, rowCount)]).toEqual(numbers);
    }
    expect(index.count).toBe(known.size);
    const [first = ""] = known.keys();
    expect(valueAt(index.vectorOf(0, 0, 1), 0)).toBe(Number(first.split(",")[0]));
  });

  test("nullKeysOf returns the rows with a NULL in any part", () => {
    expect(nullKeysOf([vectorFromValues(INT, [1, 2])], 2)).toBeUndefined();
    expect([...(nullKeysOf([anyOf(1, null), anyOf(null, 2)], 2) ?? [])]).toEqual([1, 1]);
  });
});

describe("mapDistinct evaluates a function on distinct values", () => {
  test("mapDistinct evaluates each value that occurs once", () => {
    const asked: Value[] = [];
    const isLong = (value: Value): Value => {
      asked.push(value);
      return value === "none" ? null : value === "bb";
    };
    const vector = dictionaryOf(["unused", "a", "none", "bb"], [1, 3, 2, 1]);
    const answer = mapDistinct(vector, BOOLEAN, isLong);
    expect(asked).toEqual(["a", "bb", "none"]);
    expect(answer).toMatchObject({ kind: "bool", length: 4 });
    expect([...(answer?.kind === "bool" ? answer.values : [])]).toEqual([0, 1, 0, 0]);
    expect([...(answer?.kind === "bool" ? (answer.nulls ?? []) : [])]).toEqual([0, 0, 1, 0]);
  });

  test("mapDistinct does not apply to scattered numbers or results that need a bigint", () => {
    const far = vectorFromValues(INT, [1, 2_000_000_000]);
    expect(mapDistinct(far, INT, (value) => value)).toBeUndefined();
    const near = vectorFromValues(INT, [1, 2, 1]);
    expect(mapDistinct(near, BIGINT, () => 2n ** 60n)).toBeUndefined();
    expect(mapDistinct(near, TEXT, String)).toEqual({
      kind: "any",
      length: 3,
      values: ["1", "2", "1"],
    });
  });
});
