/**
 * Verifies that each string has one number, whatever form it arrives in and however many strings
 * there are, and that the interner returns the original string for each number.
 */
import { describe, expect, test } from "bun:test";
import { HashSlots } from "../../../../src/sql/execute/keys/hash_slots.ts";
import { TextInterner } from "../../../../src/sql/execute/keys/text_interner.ts";
import { take, type Value, type Vector, valueAt, valuesOf } from "../../../../src/types/mod.ts";
import { SeededRandom, seedOf } from "../../../support/seeded_random.ts";

function utf8Of(texts: readonly (string | null)[]): Vector {
  const bytes = Buffer.from(texts.map((text) => text ?? "").join(""), "utf8");
  const offsets = new Uint32Array(texts.length + 1);
  for (const [row, text] of texts.entries()) {
    offsets[row + 1] = (offsets[row] ?? 0) + Buffer.byteLength(text ?? "");
  }
  const nulls = Uint8Array.from(texts, (text) => (text === null ? 1 : 0));
  return { kind: "utf8", length: texts.length, bytes, offsets, nulls };
}

function anyOf(values: readonly Value[]): Vector {
  return { kind: "any", length: values.length, values };
}

const seed = seedOf(31);

describe(`TextInterner numbers strings (seed ${seed})`, () => {
  test("TextInterner agrees with a map for every form of vector", () => {
    const random = new SeededRandom(seed);
    const table = new TextInterner();
    const expected = new Map<string | null, number>();
    const one = (): string | null => {
      if (random.below(50) === 0) return null;
      return ["", "é", "😀", "a", "long "][random.below(5)]?.repeat(random.below(9)) ?? "";
    };
    for (let round = 0; round < 40; round += 1) {
      const values = Array.from({ length: 300 }, () => {
        const text = one();
        return text === null || random.below(2) === 0 ? text : `${text}${random.below(20_000)}`;
      });
      const distinct = [...new Set(values)];
      const dictionary: Vector = {
        kind: "dict",
        length: values.length,
        codes: Uint16Array.from(values, (value) => distinct.indexOf(value)),
        values: ["never", ...distinct].slice(1),
        nulls: undefined,
      };
      const vector = [anyOf(values), utf8Of(values), dictionary][round % 3] ?? anyOf(values);
      const numbers = table.idsOf(vector, values.length, true);
      for (const [row, value] of values.entries()) {
        const number = expected.get(value) ?? expected.size;
        expected.set(value, number);
        expect(numbers[row]).toBe(number);
      }
    }
    expect(table.count).toBe(expected.size);
    expect(expected.size).toBeGreaterThan(4096);
    const all = [...expected.keys()];
    expect(valuesOf(table.rangeOf(4000, 4200))).toEqual(all.slice(4000, 4200));
    expect(valuesOf(table.rangeOf(4096, 4200))).toEqual(all.slice(4096, 4200));
    const picked = Float64Array.from({ length: 500 }, () => random.below(all.length));
    expect(valuesOf(table.vectorOf(picked))).toEqual([...picked].map((i) => all[i] ?? null));
    expect([...table.idsOf(anyOf(["unknown", all[7] ?? ""]), 2, false)]).toEqual([-1, 7]);
  });

  test("TextInterner numbers values that were taken from an array like other strings", () => {
    const table = new TextInterner();
    const page = ["a", null, "b", "a"];
    const takenAt = (...at: readonly number[]): Vector => {
      const values = at.map((position) => page[position] ?? null);
      return {
        kind: "any",
        length: at.length,
        values,
        origin: { values: page, codes: Uint32Array.from(at) },
      };
    };
    expect([...table.idsOf(takenAt(2, 3), 2, false)]).toEqual([-1, -1]);
    expect([...table.idsOf(takenAt(3, 1, 3, 0), 4, true)]).toEqual([0, 1, 0, 0]);
    const rest = take(takenAt(0, 2, 1), { rows: Uint32Array.of(1, 2, 0), count: 2 });
    expect([...table.idsOf(rest, 2, true)]).toEqual([2, 1]);
    expect([...table.idsOf(anyOf(["b", null, "a"]), 3, false)]).toEqual([2, 1, 0]);
  });

  test("TextInterner.lookup does not add an unknown NULL", () => {
    const table = new TextInterner();
    expect([...table.idsOf(anyOf([null, "a"]), 2, false)]).toEqual([-1, -1]);
    expect([...table.idsOf(anyOf(["a", null]), 2, true)]).toEqual([0, 1]);
    expect([...table.idsOf(utf8Of([null, "", "a"]), 3, false)]).toEqual([1, -1, 0]);
    expect(valueAt(table.rangeOf(0, 2), 1)).toBeNull();
  });

  test("TextInterner stores a string longer than the initial size of a page", () => {
    const table = new TextInterner();
    const long = "ü".repeat(20_000);
    expect([...table.idsOf(anyOf(["a", long, long]), 3, true)]).toEqual([0, 1, 1]);
    expect(valuesOf(table.rangeOf(0, 2))).toEqual(["a", long]);
  });
});

describe("HashSlots finds keys by their hash", () => {
  test.each([
    ["spread", (i: number) => Math.imul(i + 1, 0x9e3779b1) | 0],
    ["of few high bits", (i: number) => (i << 2) | 0],
    ["of few values", (i: number) => i % 7],
  ])("finds all numbers, hashes %s", (_, hashOf) => {
    const slots = new HashSlots();
    const count = hashOf(9) === 2 ? 9000 : 60_000;
    /**
     * Returns the slot of a number in the hash table, or the empty slot where the search for it
     * ends.
     */
    const placeOf = (i: number): number => {
      const { slots: pairs } = slots;
      const mask = pairs.length - 1;
      let slot = (hashOf(i) << 1) & mask;
      while (pairs[slot + 1] !== 0 && pairs[slot + 1] !== i + 1) slot = (slot + 2) & mask;
      return slot;
    };
    for (let i = 0; i < count; i += 1) slots.addAt(placeOf(i), hashOf(i), i);
    for (let i = 0; i < count; i += 97) expect(slots.slots[placeOf(i)]).toBe(hashOf(i));
    expect(slots.slots[placeOf(count) + 1]).toBe(0);
    const numbers = new Int32Array(count);
    const hashes = new Int32Array(count);
    for (let i = 0; i < count; i += 1) hashes[i] = hashOf(i);
    slots.guess(hashes, numbers);
    for (let i = 0; i < count; i += 97) {
      const number = numbers[i] ?? -1;
      if (number !== -1) expect(hashOf(number)).toBe(hashOf(i));
    }
    expect(numbers.some((number) => number !== -1)).toBe(true);
  });
});
