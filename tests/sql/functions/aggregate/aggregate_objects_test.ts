/**
 * Verifies that an aggregated JSON object contains its members in canonical order. The tests use
 * random keys, many of them repeated.
 */
import { expect, test } from "bun:test";
import { JsonbObjectState } from "../../../../src/sql/functions/aggregate/aggregate_objects.ts";
import { resolveAggregate } from "../../../../src/sql/functions/aggregate/aggregates.ts";
import {
  canonicalJson,
  type DataType,
  INT,
  JSON_TEXT,
  JSONB,
  TEXT,
} from "../../../../src/types/mod.ts";
import { SeededRandom } from "../../../support/seeded_random.ts";

const CHARACTERS = ["a", "b", "é", "\u{1F600}", "\uFFFD", '"', "\\", "\n"];

const COUNTS = [1, 2, 513, 20_000];

function objectState(): JsonbObjectState {
  return new JsonbObjectState({
    readKey: (key) => JSON.stringify(key),
    readValue: (value) => JSON.stringify(value),
  });
}

function keysOf(count: number): string[] {
  const random = new SeededRandom(count);
  const character = (): string => CHARACTERS[random.below(CHARACTERS.length)] ?? "";
  return Array.from({ length: count }, () =>
    Array.from({ length: random.below(6) }, character).join(""),
  );
}

/** Returns the expected JSON object, built only from the text of its members. */
function expectedOf(keys: readonly string[]): string {
  return canonicalJson(`{${keys.map((key, i) => `${JSON.stringify(key)}: ${i}`).join(",")}}`);
}

test.each(COUNTS)("JsonbObjectState with %p members returns the canonical object", (count) => {
  const keys = keysOf(count);
  const state = objectState();
  for (const [i, key] of keys.entries()) state.add(1, key, i);
  const expected = expectedOf(keys);
  expect(state.finish(1)).toBe(expected);
  expect(state.finish(0)).toBeNull();
  state.add(1, "later", 7);
  expect(state.finish(1)).toBe(canonicalJson(`{"later": 7, ${expected.slice(1)}`));
});

test("JsonbObjectState checks the clock while it builds a large object", () => {
  const state = objectState();
  for (const [i, key] of keysOf(20_000).entries()) state.add(0, key, i);
  let lookCount = 0;
  state.finish(0, () => {
    lookCount += 1;
  });
  expect(lookCount).toBeGreaterThan(5);
});

test("jsonb_object_agg writes each value as JSONB does", () => {
  const valueOf = (type: DataType, value: string): unknown => {
    const state = resolveAggregate("jsonb_object_agg", [INT, type])?.create();
    state?.add(0, 1, value);
    return state?.finish(0);
  };
  expect(valueOf(TEXT, 'a "b" \u2028')).toBe('{"1": "a \\"b\\" \u2028"}');
  expect(valueOf(JSON_TEXT, '"a"  ')).toBe('{"1": "a"}');
  expect(valueOf(JSON_TEXT, '{"b" :1.50,"a":"\\u0041"}')).toBe('{"1": {"a": "A", "b": 1.50}}');
  expect(valueOf(JSONB, '["x", null]')).toBe('{"1": ["x", null]}');
  expect(() => valueOf(TEXT, "a\u0000")).toThrow("Cannot convert the JSON string to JSONB");
});
