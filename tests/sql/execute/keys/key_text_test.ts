/** Tests which keys have the same text form, and which do not. */
import { expect, test } from "bun:test";
import { keyTextOf } from "../../../../src/sql/execute/keys/key_text.ts";
import { BIGINT, DOUBLE, INT, type Row, TEXT } from "../../../../src/types/mod.ts";

test("keyTextOf differs if the same values are distributed differently over the columns", () => {
  const types = [TEXT, TEXT];
  const keys: Row[] = [
    ["ab", "c"],
    ["a", "bc"],
    ["", "abc"],
    ["1:a", "b"],
    ["n", ""],
    [null, "n"],
    ["", null],
    [null, ""],
    [null, null],
  ];
  expect(new Set(keys.map((key) => keyTextOf(types, key))).size).toBe(keys.length);
});

test("keyTextOf is the same for equal values in any form, and for NULLs", () => {
  expect(keyTextOf([BIGINT], [5n])).toBe(keyTextOf([BIGINT], [5]));
  expect(keyTextOf([DOUBLE], [-0])).toBe(keyTextOf([DOUBLE], [0]));
  expect(keyTextOf([INT, TEXT], [1, null])).toBe(keyTextOf([INT, TEXT], [1, null]));
});
