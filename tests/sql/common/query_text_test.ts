/**
 * What is shown of a statement to others than its author: no string of it, whatever it begins with.
 */
import { expect, test } from "bun:test";
import { textOfKey, textOfStatement } from "../../../src/sql/common/query_text.ts";
import { parseStatements } from "../../../src/sql/parse/parser.ts";

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

test("textOfStatement reads no more of a long list than it shows, and all of the lists beside it", () => {
  const columns = Array.from({ length: 150 }, (_, i) => `c${i}`).join(", ");
  const row = Array.from({ length: 150 }, () => "1 + 1").join(", ");
  const rows = Array.from({ length: 400 }, () => `(${row})`).join(", ");
  const [node] = parseStatements(`INSERT INTO t (${columns}) VALUES ${rows}`);
  if (node?.type !== "insert" || node.insert.type !== "values") throw new Error("no rows");
  const { insert } = node;
  let read = 0;
  const values = new Proxy(insert.values, {
    get(target, name, receiver) {
      if (typeof name === "string" && /^\d+$/.test(name)) read += 1;
      return Reflect.get(target, name, receiver) as unknown;
    },
  });

  const text = textOfStatement({ ...node, insert: { ...insert, values } });

  expect(text).toHaveLength(2000);
  expect(text).toStartWith(`INSERT INTO t (${columns}) VALUES (? + ?, ? + ?`);
  expect(read).toBeLessThan(10);
});

test("textOfStatement reads only the shown part of a long condition or of many queries", () => {
  const condition = Array.from({ length: 20_000 }, (_, i) => `a = ${i}`).join(" AND ");
  const arms = Array.from({ length: 500 }, () => `SELECT ${"1, ".repeat(100)}1`).join(" UNION ");
  for (const text of [`SELECT 1 FROM t WHERE ${condition}`, arms]) {
    const [node] = parseStatements(text);
    if (node === undefined) throw new Error("no statement");
    let read = 0;
    const watched = <T extends object>(part: T): T =>
      new Proxy(part, {
        get(target, name, receiver) {
          read += 1;
          const value: unknown = Reflect.get(target, name, receiver);
          return typeof value === "object" && value !== null ? watched(value) : value;
        },
      });
    const shown = textOfStatement(watched(node));
    expect(shown).toHaveLength(2000);
    expect(shown).toStartWith(text.slice(0, 20).replaceAll(/\d+/g, "?"));
    expect(read).toBeLessThan(200_000);
  }
});
