/**
 * Verifies that JSON text is accepted if and only if JSON.parse accepts it, and that equal JSONB
 * documents have the same canonical form.
 */
import { expect, test } from "bun:test";
import { DatabaseError } from "../../src/base/errors.ts";
import {
  canonicalJson,
  castValue,
  checkJson,
  compareJson,
  groupKeyOf,
  isJsonNumber,
  isJsonString,
  JSON_TEXT,
  JSONB,
  type JsonSlice,
  jsonElements,
  jsonMember,
  jsonMembers,
  jsonPath,
  jsonRoot,
  jsonScalarText,
  jsonTree,
  TEXT,
  textFromJson,
} from "../../src/types/mod.ts";
import { randomFrom, seedOf } from "./random.ts";

function isJson(text: string): boolean {
  try {
    checkJson(text);
    return true;
  } catch {
    return false;
  }
}

function isParsed(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}

function randomJson(random: () => number, depth: number): string {
  const space = random() < 0.3 ? " \n\t"[Math.floor(random() * 3)] : "";
  const kind = Math.floor(random() * (depth > 3 ? 4 : 6));
  const scalars = ["null", "true", '"a\\"\\u00e9€"', "-12.50e+3"];
  if (kind < 4) return `${space}${scalars[kind]}${space}`;
  const count = Math.floor(random() * 4);
  const items = Array.from({ length: count }, () => randomJson(random, depth + 1));
  if (kind === 4) return `[${space}${items.join(",")}]`;
  const members = items.map((item) => `"${"ab€"[Math.floor(random() * 3)]}"${space}:${item}`);
  return `{${space}${members.join(",")}}`;
}

test("checkJson accepts the same text as JSON.parse, even after one character was changed", () => {
  const seed = seedOf();
  const random = randomFrom(seed);
  const characters = '{}[]",:0123456789.-+eEtruefalsn \\u\u0001';
  for (let round = 0; round < 5000; round += 1) {
    const good = randomJson(random, 0);
    expect(isJson(good), good).toBe(true);
    const at = Math.floor(random() * (good.length + 1));
    const other = characters[Math.floor(random() * characters.length)] ?? "";
    const changed = good.slice(0, at) + other + good.slice(at + Math.floor(random() * 2));
    expect(isJson(changed), `seed ${seed}: ${changed}`).toBe(isParsed(changed));
  }
});

test("textFromJson returns canonical text of a tree, which is read back unchanged", () => {
  const random = randomFrom(seedOf() + 1);
  for (let round = 0; round < 3000; round += 1) {
    const text = randomJson(random, 0);
    const canonical = canonicalJson(text);
    expect(canonicalJson(canonical)).toBe(canonical);
    expect(JSON.parse(canonical)).toEqual(JSON.parse(text));
    expect(compareJson(jsonTree(text), jsonTree(canonical))).toBe(0);
    expect(groupKeyOf(JSONB, text)).toBe(groupKeyOf(JSONB, canonical));
  }
});

test.each([
  ['{"b":1, "a":2, "b":3}', '{"a": 2, "b": 3}'],
  ['{"aa":1,"b":2,"é":3,"c":4}', '{"b": 2, "c": 4, "aa": 1, "é": 3}'],
  [
    "[1.50,1e2,1E-2,-0,-0.0,12345678901234567890]",
    "[1.50, 100, 0.01, 0, 0.0, 12345678901234567890]",
  ],
  ['"\\u00e9\\/\\u0001"', '"é/\\u0001"'],
  [" [ ] ", "[]"],
  ["{}", "{}"],
  ["1.0", "1.0"],
])("canonicalJson(%p) returns %p", (text, canonical) => {
  expect(canonicalJson(text)).toBe(canonical);
});

test("nesting is limited to 128 levels", () => {
  const nested = (depth: number): string => "[".repeat(depth) + "]".repeat(depth);
  expect(isJson(nested(128))).toBe(true);
  expect(() => {
    checkJson(nested(129));
  }).toThrow("more than 128 levels deep");
  expect(() => {
    checkJson(nested(1_000_000));
  }).toThrow("more than 128 levels deep");
});

test.each(['"\\u0000"', '"\\ud800"', "1e99999", "1e-99999"])(
  "JSONB refuses %p, which JSON accepts",
  (text) => {
    expect(isJson(text)).toBe(true);
    expect(() => canonicalJson(text)).toThrow(DatabaseError);
  },
);

test("numbers are compared by value, not by digits", () => {
  const order = (left: string, right: string): number =>
    Math.sign(compareJson(jsonTree(left), jsonTree(right)));
  expect(order("1.0", "1")).toBe(0);
  expect(order("10", "9")).toBe(1);
  expect(order("-1e2", "-99.5")).toBe(-1);
  expect(groupKeyOf(JSONB, "[1.0]")).toBe(groupKeyOf(JSONB, "[1]"));
  expect(groupKeyOf(JSONB, "[10]")).not.toBe(groupKeyOf(JSONB, "[1]"));
});

test("kinds are ordered as in PostgreSQL", () => {
  const ascending = [
    "[]",
    "null",
    '"b"',
    "2",
    "false",
    "true",
    "[1]",
    "[0,0]",
    "{}",
    '{"a":1}',
    '{"b":0}',
  ];
  for (const [index, left] of ascending.entries()) {
    for (const [other, right] of ascending.entries()) {
      const order = Math.sign(compareJson(jsonTree(left), jsonTree(right)));
      expect(order, `${left} and ${right}`).toBe(Math.sign(index - other));
    }
  }
});

function texts(text: string, slices: readonly JsonSlice[]): string[] {
  return slices.map(({ start, end }) => text.slice(start, end));
}

test("members and elements are slices of the text", () => {
  const text = ' {"a" : [1, {"x":"]}"} ,"s"], "b\\u0063": -1.5e3 , "a": null}';
  const root = jsonRoot(text);
  expect(jsonMembers(text, root).map(({ key }) => key)).toEqual(["a", "bc", "a"]);
  const [first] = jsonMembers(text, root);
  expect(first === undefined ? [] : texts(text, jsonElements(text, first.value))).toEqual([
    "1",
    '{"x":"]}"}',
    '"s"',
  ]);
  const last = jsonMember(text, root, "a");
  expect(last === undefined ? undefined : jsonScalarText(text, last)).toBeUndefined();
  const escaped = jsonMember(text, root, "bc");
  expect(escaped === undefined ? undefined : jsonScalarText(text, escaped)).toBe("-1.5e3");
});

test("jsonPath follows keys and indexes, even from the end, and stops where nothing exists", () => {
  const text = '{"a":{"b":[1,2,"x"]}}';
  const at = (...path: string[]): string | undefined => {
    const slice = jsonPath(text, path);
    return slice === undefined ? undefined : jsonScalarText(text, slice);
  };
  expect(at("a", "b", "1")).toBe("2");
  expect(at("a", "b", "-1")).toBe("x");
  expect(at("a", "b", "3")).toBeUndefined();
  expect(at("a", "b", "x")).toBeUndefined();
  expect(at("a", "c", "d")).toBeUndefined();
});

test("textFromJson escapes only characters that JSON must escape", () => {
  expect(textFromJson('a"\\\n\u0001é😀\u007f')).toBe('"a\\"\\\\\\n\\u0001é😀\u007f"');
});

test.each(["\\u0000", "a\\ud800", "\\udc00\\ud800"])(
  "jsonScalarText refuses %p, which JSON may contain but text may not; a cast shows the escapes",
  (escapes) => {
    const text = `"${escapes}"`;
    checkJson(text);
    expect(() => jsonScalarText(text, jsonRoot(text))).toThrow("to text");
    const toText = { from: JSON_TEXT, to: TEXT, mode: "explicit" } as const;
    expect(castValue(text, toText)).toBe(text);
  },
);

test("jsonScalarText reads both halves of a surrogate pair", () => {
  const text = '"\\ud83d\\ude00"';
  expect(jsonScalarText(text, jsonRoot(text))).toBe("😀");
});

test.each([
  ["1", "1", true],
  ["1e0", "1", true],
  ["10E-1", "1.00", true],
  ["-0", "0", true],
  ["0e5", "0.0", true],
  ["1", "-1", false],
  ["1e1", "1", false],
  ["9007199254740993", "9007199254740992", false],
  ["0.1000000000000000000001", "0.1", false],
  ["1e999999999999999999", "1", false],
  ["1e-400", "0", false],
])("isJsonNumber: %s and %s are equal: %p", (written, wanted, isEqual) => {
  expect(isJsonNumber(written, jsonRoot(written), wanted)).toBe(isEqual);
});

test.each([
  ['"a"', "a", true],
  ['"\\u0061"', "a", true],
  ['"\\n"', "\\n", false],
  ['"\\\\n"', "\\n", true],
  ['"ab"', "a", false],
  ['"a"', "ab", false],
])("isJsonString: %s stands for %s: %p", (written, wanted, isEqual) => {
  expect(isJsonString(written, jsonRoot(written), wanted)).toBe(isEqual);
});

test.each([
  '{"params":[1.0]}',
  ' { "sql" : "x" , "params" : [ 1.0 , "]" ] , "z" : 1 } ',
  '{"params":[1.0],"params":[2.0]}',
  '{"params":[1.0],"par\\u0061ms":[2.0,{"params":[3.0]}]}',
  '{"z":{"params":[3.0]},"y":"params","x":["params",{"params":4.0}],"params":[1.0]}',
  '{"a\\"b":"\\\\","params":["{\\"params\\":[5.0]}",1.0,"\\\\"],"é":{}}',
  '{"params":null}',
  '{"Params":[1.0],"param":[2.0],"paramsx":[3.0],"\\"params":[4.0]}',
])("jsonMember of %s returns what JSON.parse reads as the member", (text) => {
  const { params } = JSON.parse(text) as { params?: unknown };
  const own = jsonMember(text, { start: 0, end: text.length }, "params");
  expect(own && JSON.parse(text.slice(own.start, own.end))).toEqual(params);
});
