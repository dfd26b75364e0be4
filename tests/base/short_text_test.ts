/** Tests shortening texts for display. */
import { expect, test } from "bun:test";
import { beginningOf, endOf, withoutMiddle } from "../../src/base/short_text.ts";

test("beginningOf and endOf do not split a character", () => {
  expect([0, 1, 2, 3, 4, 9].map((length) => beginningOf("a😀b", length))).toEqual([
    "",
    "a",
    "a",
    "a😀",
    "a😀b",
    "a😀b",
  ]);
  expect([0, 1, 2, 3, 4, 9].map((length) => endOf("a😀b", length))).toEqual([
    "",
    "b",
    "b",
    "😀b",
    "a😀b",
    "a😀b",
  ]);
});

test("withoutMiddle shortens only text that is longer than the given length", () => {
  expect(withoutMiddle("abcdefg", 7)).toBe("abcdefg");
  expect(withoutMiddle("abcdefgh", 7)).toBe("abc…fgh");
  expect(withoutMiddle("abcdefgh", 6)).toBe("ab…gh");
  expect(withoutMiddle("ab😀😀😀gh", 7)).toBe("ab…gh");
});
