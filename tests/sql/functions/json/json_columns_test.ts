/**
 * Verifies that a test of a column of documents gives the same result as a test of each document,
 * and parses only the documents that contain the bytes sought. The tests compare both on random
 * documents, as JSON in several spellings and as JSONB, and count the parses.
 */
import { expect, test } from "bun:test";
import { soughtBytes, testRowsWith } from "../../../../src/sql/functions/json/json_columns.ts";
import { jsonContainsAtTop } from "../../../../src/sql/functions/json/json_math.ts";
import { resolveBinary } from "../../../../src/sql/functions/operator/operators.ts";
import {
  canonicalJson,
  JSON_TEXT,
  JSONB,
  jsonTree,
  type Utf8Vector,
  valuesOf,
} from "../../../../src/types/mod.ts";
import { SeededRandom } from "../../../support/seeded_random.ts";

const KEYS = ["a", "bb", 'c"c', "é", "d\\d", "\n"];
const NUMBERS = ["1", "1.0", "1e0", "10e-1", "0.5", "5E-1", "-0", "0", "10", "-1.50", "-15e-1"];

/** Returns a document in one of the spellings that clients use. */
function written(random: SeededRandom, depth: number): string {
  const space = random.below(3) === 0 ? " " : "";
  const kind = random.below(depth === 0 ? 4 : 7);
  if (kind === 0) return random.below(2) === 0 ? "null" : "true";
  if (kind === 1) return NUMBERS[random.below(NUMBERS.length)] ?? "0";
  if (kind < 4) return name(random);
  const parts = Array.from({ length: random.below(4) }, () => written(random, depth - 1));
  if (kind === 4) return `[${space}${parts.join(`,${space}`)}]`;
  return `{${parts.map((part) => `${name(random)}${space}:${space}${part}`).join(`${space},`)}}`;
}

/** Returns a string in which characters are occasionally escaped. */
function name(random: SeededRandom): string {
  const text = KEYS[random.below(KEYS.length)] ?? "";
  if (random.below(4) > 0) return JSON.stringify(text);
  const codes = text.split("").map((each) => each.charCodeAt(0).toString(16).padStart(4, "0"));
  return `"${codes.map((code) => `\\u${code}`).join("")}"`;
}

function textColumn(texts: readonly (string | null)[]): Utf8Vector {
  const parts = texts.map((text) => Buffer.from(text ?? ""));
  const offsets = new Uint32Array(texts.length + 1);
  for (const [i, part] of parts.entries()) offsets[i + 1] = (offsets[i] ?? 0) + part.length;
  const nulls = Uint8Array.from(texts, (text) => (text === null ? 1 : 0));
  return { kind: "utf8", length: texts.length, bytes: Buffer.concat(parts), offsets, nulls };
}

test("@> gives the same result for a column of JSON or JSONB as for each document", () => {
  let heldCount = 0;
  for (let seed = 1; seed <= 300; seed += 1) {
    const random = new SeededRandom(seed);
    const texts = Array.from({ length: 40 }, () => written(random, 3));
    const inner = canonicalJson(written(random, 2));
    const wanted = texts.map((text) => jsonContainsAtTop(canonicalJson(text), jsonTree(inner)));
    for (const [type, documents] of [
      [JSON_TEXT, texts],
      [JSONB, texts.map(canonicalJson)],
    ] as const) {
      const form = resolveBinary("@>", type, JSONB);
      const column = textColumn([...documents, null]);
      const answers = form?.evaluateVector?.(column, [null, inner], 0);
      if (answers !== undefined) expect(valuesOf(answers), inner).toEqual([...wanted, null]);
      expect(
        documents.map((text) => form?.evaluate([text, inner])),
        inner,
      ).toEqual(wanted);
    }
    heldCount += wanted.filter((isHeld) => isHeld).length;
  }
  expect(heldCount).toBeGreaterThan(300);
});

test("@> and the operators on keys do not convert JSON documents to JSONB", () => {
  expect(resolveBinary("@>", JSON_TEXT, JSONB)?.operands[0]).toBe(JSON_TEXT);
  expect(resolveBinary("<@", JSONB, JSON_TEXT)?.operands[1]).toBe(JSON_TEXT);
  for (const op of ["?", "?|", "?&"]) {
    const keys = op === "?" ? { kind: "text" } : { kind: "array", element: { kind: "text" } };
    expect(resolveBinary(op, JSON_TEXT, keys as typeof JSON_TEXT)?.operands[0]).toBe(JSON_TEXT);
  }
});

test.each([
  [true, '{"a": 1}', ['{"a": 1}', '{"a": 1.0, "b": 2}', '{"a": 10}', '{"a": 2}', '{"b": 1}'], 3],
  [true, '{"a": "x"}', ['{"a": "x"}', '{"b": {"a": "x"}}', '{"a": "y"}', '{"c": "x"}'], 2],
  [true, '{"a": 1.50}', ['{"a": 1.5}', '{"a": 1.500}', '{"a": 1}'], 2],
  [false, '{"a": "x"}', ['{"a":"x"}', '{ "\\u0061" : "x" }', '{"a":"y"}', '{"b":"x"}'], 2],
  [false, '{"a": 1}', ['{"a":1e0}', '{"b":1}'], 1],
  [false, '["\\""]', ['["\\""]', '["x"]'], 1],
])(
  "testRowsWith examines only rows with the bytes: canonical %p, %s",
  (isCanonical, inner, texts, lookCount) => {
    const tree = jsonTree(inner);
    const sought = soughtBytes(tree, isCanonical);
    const looked: string[] = [];
    const answers =
      sought &&
      testRowsWith(textColumn(texts), sought, (text) => {
        looked.push(text);
        return jsonContainsAtTop(text, tree);
      });
    expect(looked).toEqual(texts.slice(0, lookCount));
    expect(answers && valuesOf(answers)).toEqual(
      texts.map((text) => jsonContainsAtTop(text, tree)),
    );
  },
);

test("soughtBytes returns nothing for a number in JSON", () => {
  expect(soughtBytes(jsonTree("1"), false)).toBeUndefined();
  expect(soughtBytes(jsonTree("1"), true)?.pieces.map(String)).toEqual(["1"]);
});
