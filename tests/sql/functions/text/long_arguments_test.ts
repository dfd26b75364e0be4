/**
 * Tests functions with long arguments: sets of so many characters that the function uses a
 * different data structure, long format strings, and encoded bytes.
 */
import { describe, expect, test } from "bun:test";
import { DatabaseError } from "../../../../src/base/errors.ts";
import { resolveFunction } from "../../../../src/sql/functions/registry.ts";
import { BYTES, TEXT } from "../../../../src/types/mod.ts";
import { CALL } from "../calls.ts";

/** Calls a function with strings and bytes as its arguments. */
function called(name: string, values: readonly (string | Uint8Array)[]): unknown {
  const types = values.map((value) => (typeof value === "string" ? TEXT : BYTES));
  const found = resolveFunction(name, types);
  if (found === undefined) throw new Error(`there is a function ${name}`);
  return found.overload.evaluate(values, CALL, types);
}

/** Returns `count` consecutive code points starting at `first`, skipping surrogates. */
function characters(first: number, count: number): string {
  return Array.from({ length: count }, (_, i) => String.fromCodePoint(first + i)).join("");
}

const MANY = characters(0x4e00, 400);
const ASTRAL = characters(0x1f300, 400);

describe.each([
  ["few", "ab😀"],
  ["many", `ab😀${MANY}${ASTRAL}`],
])("a set of %s characters", (_name, set) => {
  test.each([
    ["btrim", "xba😀c"],
    ["ltrim", "xba😀cb😀"],
    ["rtrim", "a😀bxba😀c"],
  ])("%s removes the characters only from the ends", (name, expected) => {
    expect(called(name, ["a😀bxba😀cb😀", set])).toBe(expected);
  });

  test("btrim of only such characters leaves nothing, and does not split surrogate pairs", () => {
    expect(called("btrim", ["😀a😀b", set])).toBe("");
    expect(called("btrim", ["a😁a", set])).toBe("😁");
    expect(called("btrim", ["", set])).toBe("");
  });

  test("translate uses the first of two positions, and removes characters without a replacement", () => {
    expect(called("translate", ["xa😀b", `${set}a`, "😁y"])).toBe("x😁y");
    expect(called("translate", ["aabb", set, "12"])).toBe("1122");
    expect(called("translate", ["😁", set, ""])).toBe("😁");
  });
});

test("translate maps a long text through a long map", () => {
  const text = ASTRAL.repeat(50);
  expect(called("translate", [text, ASTRAL, MANY])).toBe(MANY.repeat(50));
  expect(called("translate", [MANY.repeat(50), MANY, ASTRAL])).toBe(text);
});

test("format accepts the maximum number of specifiers, and is refused with one more", () => {
  expect(called("format", ["%1$s".repeat(32_768), "ab"])).toBe("ab".repeat(32_768));
  expect(() => called("format", [`%%${"%1$s".repeat(32_768)}`, "ab"])).toThrow(
    "Cannot format with this template: it has more than 32768 format specifiers",
  );
});

test("encode writes each byte in the escape format, and decode reads it", () => {
  const bytes = Uint8Array.from({ length: 256 }, (_, i) => i);
  const text = called("encode", [bytes, "escape"]) as string;
  expect(text).toStartWith("\\000\u0001");
  expect(text).toContain("[\\\\]");
  expect(text).toEndWith("\\376\\377");
  expect(called("decode", [text, "escape"])).toEqual(bytes);
});

test.each([
  ["base64", " QU\u00a0J\nD RA=\t= ", "ABCD"],
  ["base64", "", ""],
  ["hex", "41 42\r\n4\u20033", "ABC"],
  ["hex", "4A4b", "JK"],
])("decode %s skips white space in %p", (format, text, expected) => {
  expect(called("decode", [text, format])).toEqual(Uint8Array.from(Buffer.from(expected)));
});

test.each([
  ["base64", "QUJ"],
  ["base64", "QUI=QUI="],
  ["base64", "Q==="],
  ["base64", "===="],
  ["base64", "QU-_"],
  ["hex", "414"],
  ["hex", "4g"],
])("decode refuses text that is not %s: %p", (format, text) => {
  expect(() => called("decode", [text, format])).toThrow(DatabaseError);
});
