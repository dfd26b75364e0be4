/**
 * What is shown of a statement to others than its author: no string of it, whatever it begins with.
 */
import { expect, test } from "bun:test";
import { textOfKey } from "../../../src/sql/common/query_text.ts";

test.each([
  ["SELECT a FROM t WHERE b = \u0001 AND c = \u0003", "SELECT a FROM t WHERE b = ? AND c = ?"],
  ["SELECT a, 7 FROM t WHERE b = $1", "SELECT a, 7 FROM t WHERE b = $1"],
  ["SELECT 'secret' FROM t WHERE b = $1", "SELECT ? FROM t WHERE b = $1"],
  ["SELECT E'sec\\'ret', x'5ec2e7' FROM t", "SELECT ?, ? FROM t"],
  ["SELECT $$secret$$, $1 FROM t", "SELECT ?, $1 FROM t"],
  ["SELECT $1, $tag$secret$tag$ FROM t", "SELECT $1, ? FROM t"],
])("textOfKey(%j)", (key, text) => {
  expect(textOfKey(key)).toBe(text);
});

test("textOfKey cuts what is too long to be shown, with and without a string", () => {
  const columns = Array.from({ length: 1000 }, (_, i) => `c${i}`).join(", ");
  expect(textOfKey(`SELECT ${columns}`)).toBe(`SELECT ${columns}`.slice(0, 2000));
  expect(textOfKey(`SELECT 'a', ${columns}`)).toBe(`SELECT ?, ${columns}`.slice(0, 2000));
});
