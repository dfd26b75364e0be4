/** Verifies that different texts have different keys, and that no key is long. */
import { expect, test } from "bun:test";
import { shortKey } from "../../src/base/short_key.ts";

test("shortKey keeps a text of 512 characters, and hashes a longer one", () => {
  const short = "x".repeat(512);
  expect(shortKey(short)).toBe(short);
  const long = shortKey(`${short}x`);
  expect(long).toMatch(/^[\w+/]{43}=$/);
  expect(shortKey(`${short}x`)).toBe(long);
  expect(shortKey(`${short}y`)).not.toBe(long);
  expect(shortKey(`${short}xx`)).not.toBe(long);
});
