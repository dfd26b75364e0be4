/** Verifies that text is decoded only when it is read. */
import { expect, test } from "bun:test";
import {
  deferredTexts,
  slice,
  take,
  takeLater,
  type Utf8Vector,
  valuesOf,
  vectorFromValues,
} from "../../src/types/mod.ts";

const TEXTS: Utf8Vector = {
  kind: "utf8",
  length: 4,
  bytes: new TextEncoder().encode("abbccc"),
  offsets: Uint32Array.of(0, 1, 3, 3, 6),
  nulls: Uint8Array.of(0, 0, 1, 0),
};

test("deferred texts are decoded once, when one of them is read", () => {
  let madeCount = 0;
  const texts = deferredTexts(4, {
    make: () => {
      madeCount += 1;
      return TEXTS;
    },
    choose: () => undefined,
  });
  const taken = takeLater(texts, { rows: Uint32Array.of(3, 0, 2), count: 2 });
  expect([texts.kind, texts.length, taken.kind, taken.length]).toEqual(["utf8", 4, "utf8", 2]);
  expect(madeCount).toBe(0);
  expect(valuesOf(taken)).toEqual(["ccc", "a"]);
  expect(valuesOf(texts)).toEqual(["a", "bb", null, "ccc"]);
  expect(valuesOf(slice(texts, 1, 3))).toEqual(["bb", null]);
  expect(madeCount).toBe(1);
});

test("a subset of deferred texts can be selected without decoding the others, until all are decoded", () => {
  const asked: number[][] = [];
  const texts = deferredTexts(4, {
    make: () => TEXTS,
    choose: ({ count, rows }) => {
      asked.push([...rows.subarray(0, count)]);
      const taken = take(TEXTS, { rows, count });
      return taken.kind === "utf8" ? taken : undefined;
    },
  });
  expect(valuesOf(take(texts, { rows: Uint32Array.of(2, 3, 9), count: 2 }))).toEqual([null, "ccc"]);
  const later = takeLater(texts, { rows: Uint32Array.of(3, 2, 1), count: 3 });
  expect(asked).toEqual([[2, 3]]);
  expect(valuesOf(take(later, { rows: Uint32Array.of(0, 2), count: 2 }))).toEqual(["ccc", "bb"]);
  expect(asked).toEqual([
    [2, 3],
    [3, 1],
  ]);
  expect(valuesOf(later)).toEqual(["ccc", null, "bb"]);
  expect(valuesOf(texts)).toEqual(["a", "bb", null, "ccc"]);
  const askedCount = asked.length;
  expect(valuesOf(take(texts, { rows: Uint32Array.of(1), count: 1 }))).toEqual(["bb"]);
  expect(asked).toHaveLength(askedCount);
});

test("takeLater selects from other kinds of vectors at once", () => {
  const numbers = vectorFromValues({ kind: "int" }, [1, 2, 3]);
  expect(valuesOf(takeLater(numbers, { rows: Uint32Array.of(2), count: 1 }))).toEqual([3]);
  expect(valuesOf(takeLater(TEXTS, { rows: Uint32Array.of(1), count: 1 }))).toEqual(["bb"]);
});
