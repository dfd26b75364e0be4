/**
 * Verifies that searching the text of a document for contained JSON gives the same result as
 * comparing the parsed documents. The tests compare random documents with a straightforward
 * implementation, and try texts too large or too deeply nested to be parsed.
 */
import { expect, test } from "bun:test";
import { jsonContainsAtTop, remembered } from "../../../../src/sql/functions/json/json_math.ts";
import { canonicalJson, jsonTree } from "../../../../src/types/mod.ts";
import { SeededRandom } from "../../../support/seeded_random.ts";

const KEYS = ["a", "bb", 'c"c', "é", "d\\d"];

function documentFrom(random: SeededRandom, depth: number): unknown {
  const kind = random.below(depth === 0 ? 4 : 6);
  if (kind === 0) return random.below(3);
  if (kind === 1) return random.below(2) === 0 ? null : random.below(2) === 0;
  if (kind < 4) return KEYS[random.below(KEYS.length)];
  const parts = Array.from({ length: random.below(4) }, () => documentFrom(random, depth - 1));
  if (kind === 4) return parts;
  return Object.fromEntries(parts.map((part) => [KEYS[random.below(KEYS.length)], part]));
}

function holds(outer: unknown, inner: unknown): boolean {
  if (Array.isArray(inner)) {
    return (
      Array.isArray(outer) &&
      inner.every((item) => outer.some((each: unknown) => holds(each, item)))
    );
  }
  if (typeof inner !== "object" || inner === null) return outer === inner;
  if (typeof outer !== "object" || outer === null || Array.isArray(outer)) return false;
  const held = new Map<string, unknown>(Object.entries(outer));
  return Object.entries(inner).every(
    ([key, value]) => held.has(key) && holds(held.get(key), value),
  );
}

test("jsonContainsAtTop agrees with the parts of random documents", () => {
  let heldCount = 0;
  for (let seed = 1; seed <= 4000; seed += 1) {
    const random = new SeededRandom(seed);
    const [outer, inner] = [documentFrom(random, 3), documentFrom(random, 2)];
    const isScalar = typeof inner !== "object" || inner === null;
    const wanted =
      isScalar && Array.isArray(outer) ? outer.some((item) => item === inner) : holds(outer, inner);
    for (const text of [JSON.stringify(outer), canonicalJson(JSON.stringify(outer))]) {
      expect(jsonContainsAtTop(text, jsonTree(JSON.stringify(inner)))).toBe(wanted);
    }
    heldCount += wanted ? 1 : 0;
  }
  expect(heldCount).toBeGreaterThan(200);
});

test.each([
  ['{"n": 1.50}', '{"n": 1.5}', true],
  ["[1, 2.0]", "2", true],
  ["[[1]]", "1", false],
  ["[[1]]", "[[1]]", true],
  ["[]", "{}", false],
  ["{}", "[]", false],
  ["[1]", "[]", true],
  ['{"a": 1, "a": 2}', '{"a": 2}', true],
  ['{"a": 1, "a": 2}', '{"a": 1}', false],
])("jsonContainsAtTop: %s @> %s is %p", (outer, inner, isHeld) => {
  expect(jsonContainsAtTop(outer, jsonTree(inner))).toBe(isHeld);
});

test("jsonContainsAtTop reads only the requested parts, or a tree if there are many", () => {
  const outer = `{"a": 1, "z": "\\ud800"}`;
  expect(() => jsonTree(outer)).toThrow("surrogate");
  expect(jsonContainsAtTop(outer, jsonTree('{"a": 1}'))).toBe(true);
  const numbers = (count: number): string =>
    JSON.stringify({ a: Array.from({ length: count }, (_, i) => i) });
  const more = `{"a": ${JSON.stringify(Array.from({ length: 30 }, (_, i) => i))}, "z": "\\ud800"}`;
  expect(jsonContainsAtTop(more, jsonTree(numbers(14)))).toBe(true);
  expect(() => jsonContainsAtTop(more, jsonTree(numbers(15)))).toThrow("surrogate");
});

test("remembered builds the tree of a text once as long as the text stays the same", () => {
  const treeOf = remembered(jsonTree);
  const first = treeOf("[1]");
  expect(treeOf("[1]")).toBe(first);
  expect(treeOf("[2]")).toEqual(jsonTree("[2]"));
});
