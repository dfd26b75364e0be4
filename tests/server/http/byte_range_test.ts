/** Tests the Range and entity tag headers. */
import { expect, test } from "bun:test";
import { hasTag, type RequestedRange, rangeOf } from "../../../src/server/http/byte_range.ts";

test.each<[string | null, number, RequestedRange | string]>([
  [null, 10, "whole"],
  ["bytes=0-0", 10, { first: 0, last: 0 }],
  ["bytes=2-5", 10, { first: 2, last: 5 }],
  ["bytes=5-", 10, { first: 5, last: 9 }],
  ["bytes=9-9", 10, { first: 9, last: 9 }],
  ["bytes=0-99", 10, { first: 0, last: 9 }],
  ["bytes=-3", 10, { first: 7, last: 9 }],
  ["bytes=-99", 10, { first: 0, last: 9 }],
  ["Bytes = 1-2", 10, { first: 1, last: 2 }],
  ["bytes= 1 - 2 ", 10, { first: 1, last: 2 }],
  ["bytes= - 2 ", 10, { first: 8, last: 9 }],
  ["bytes=10-", 10, "unsatisfiable"],
  ["bytes=10-20", 10, "unsatisfiable"],
  ["bytes=-0", 10, "unsatisfiable"],
  ["bytes=0-", 0, "unsatisfiable"],
  ["bytes=5-2", 10, "whole"],
  ["bytes=0-1,3-4", 10, "whole"],
  ["bytes=-", 10, "whole"],
  ["lines=1-2", 10, "whole"],
  ["bytes=a-b", 10, "whole"],
])("rangeOf %p of %d bytes is %p", (header, size, range) => {
  expect(rangeOf(header, size)).toEqual(range as RequestedRange);
});

test("hasTag finds a tag in a list, weak or not, and the wildcard", () => {
  expect(hasTag('"a"', '"a"')).toBe(true);
  expect(hasTag('"b", W/"a"', '"a"')).toBe(true);
  expect(hasTag("*", '"a"')).toBe(true);
  expect(hasTag('"b"', '"a"')).toBe(false);
  expect(hasTag(null, '"a"')).toBe(false);
});
