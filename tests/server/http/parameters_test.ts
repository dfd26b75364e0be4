/**
 * Verifies that parameters decoded directly from a message have the same form as those parsed from
 * text.
 */
import { expect, test } from "bun:test";
import { checkedValues } from "../../../src/server/http/parameters.ts";

test("lists and objects in a binary message become JSON with all digits", () => {
  const decoded = [[1, 2n ** 60n, null, "a"], { a: [1.5, true] }, 7, "text"];
  const limits = { max_parameters: 9, max_parameter_bytes: 40 };
  expect(checkedValues(decoded, limits)).toEqual([
    { json: '[1,1152921504606846976,null,"a"]' },
    { json: '{"a":[1.5,true]}' },
    7,
    "text",
  ]);
  expect(() => checkedValues([1, [Number.NaN]], limits)).toThrow(
    "Cannot bind parameter 2: it is not a finite number",
  );
  expect(() => checkedValues([["a".repeat(40)]], limits)).toThrow(
    "Cannot bind parameter 1: it is longer than 40 bytes",
  );
});
