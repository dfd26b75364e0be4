/**
 * Verifies that a secret is recognised by its form alone, and that no typing error turns one
 * secret into another.
 */
import { expect, test } from "bun:test";
import { hashOfSecret, isSecret, newSecret } from "../../src/auth/secret_text.ts";
import { SeededRandom } from "../support/seeded_random.ts";

const secret = newSecret("tdm_", new SeededRandom(7));

test("newSecret returns a different 42 characters each time, beginning with the kind", () => {
  const random = new SeededRandom(1);
  const made = Array.from({ length: 1000 }, () => newSecret("tdm_", random));
  expect(new Set(made).size).toBe(1000);
  for (const each of made) {
    expect(each).toMatch(/^tdm_[0-9A-Za-z]{38}$/);
    expect(isSecret("tdm_", each)).toBe(true);
  }
  const digits = new Set(made.map((each) => each.slice(4, 36)).join(""));
  expect(digits.size).toBe(62);
});

test("isSecret refuses a secret of another kind, or with any character changed, missing or added", () => {
  for (let index = 0; index < secret.length; index += 1) {
    const other = secret[index] === "a" ? "b" : "a";
    const changed = secret.slice(0, index) + other + secret.slice(index + 1);
    expect(isSecret("tdm_", changed), changed).toBe(false);
    expect(isSecret("tdm_", secret.slice(0, index) + secret.slice(index + 1))).toBe(false);
  }
  expect(isSecret("tdm_", `${secret}0`)).toBe(false);
  expect(isSecret("tdi_", secret)).toBe(false);
  expect(isSecret("tdm_", "")).toBe(false);
});

test("hashOfSecret returns the SHA-256 in base64url", () => {
  expect(hashOfSecret("abc")).toBe("ungWv48Bz-pBQUDeXa4iI7ADYaOWF3qctBD_YfIAFa0");
});
