/**
 * Functions with long arguments: sets with more characters than a Map is used for, templates, and
 * encoded bytes.
 */
import { describe, expect, test } from "bun:test";
import { DatabaseError } from "../../../../src/base/errors.ts";
import { resolveFunction } from "../../../../src/sql/functions/registry.ts";
import { BYTES, TEXT } from "../../../../src/types/mod.ts";
import { CALL } from "../calls.ts";

/** Calls a function on strings and bytes. */
function called(name: string, values: readonly (string | Uint8Array)[]): unknown {
  const types = values.map((value) => (typeof value === "string" ? TEXT : BYTES));
  const found = resolveFunction(name, types);
  if (found === undefined) throw new Error(`there is a function ${name}`);
  return found.overload.evaluate(values, CALL, types);
}

/** Returns consecutive code points, beginning with the first, without surrogates. */
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
  ])("%s removes them from the ends only", (name, expected) => {
    expect(called(name, ["a😀bxba😀cb😀", set])).toBe(expected);
  });

  test("btrim of nothing else leaves nothing, and half a pair is no character of it", () => {
    expect(called("btrim", ["😀a😀b", set])).toBe("");
    expect(called("btrim", ["a😁a", set])).toBe("😁");
    expect(called("btrim", ["", set])).toBe("");
  });

  test("translate takes the first of two places, and removes what has no target", () => {
    expect(called("translate", ["xa😀b", `${set}a`, "😁y"])).toBe("x😁y");
    expect(called("translate", ["aabb", set, "12"])).toBe("1122");
    expect(called("translate", ["😁", set, ""])).toBe("😁");
  });
});

test("translate maps a long text with a long map", () => {
  const text = ASTRAL.repeat(50);
  expect(called("translate", [text, ASTRAL, MANY])).toBe(MANY.repeat(50));
  expect(called("translate", [MANY.repeat(50), MANY, ASTRAL])).toBe(text);
});

test("format has as many specifiers as it may, and is refused with one more", () => {
  expect(called("format", ["%1$s".repeat(32_768), "ab"])).toBe("ab".repeat(32_768));
  expect(() => called("format", [`%%${"%1$s".repeat(32_768)}`, "ab"])).toThrow(
    "Cannot format with a template that has more than 32768 specifiers",
  );
});

test("encode writes each byte in the escape form, and decode reads it", () => {
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
])("decode %s passes by white space: %p", (format, text, expected) => {
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
])("decode refuses what is not %s: %p", (format, text) => {
  expect(() => called("decode", [text, format])).toThrow(DatabaseError);
});
