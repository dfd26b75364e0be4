/**
 * Verifies that the text of a statement contains no strings when it is shown to anyone but its
 * author, however the statement begins.
 */
import { expect, test } from "bun:test";
import { bulkShapeOf, textOfKey, textOfStatement } from "../../../src/sql/activity/query_text.ts";
import { statementsIn } from "../../support/parsed.ts";

test.each([
  ["SELECT a FROM t WHERE b = \u0001 AND c = \u0003", "SELECT a FROM t WHERE b = ? AND c = ?"],
  ["SELECT a, 7 FROM t WHERE b = $1", "SELECT a, 7 FROM t WHERE b = $1"],
  ["SELECT 'secret' FROM t WHERE b = $1", "SELECT ? FROM t WHERE b = $1"],
  ["SELECT E'sec\\'ret', x'5ec2e7' FROM t", "SELECT ?, ? FROM t"],
  ["SELECT $$secret$$, $1 FROM t", "SELECT ?, $1 FROM t"],
  ["SELECT $1, $tag$secret$tag$ FROM t", "SELECT $1, ? FROM t"],
])("textOfKey masks the strings in %j", (key, text) => {
  expect(textOfKey(key)).toBe(text);
});

test("textOfKey shortens text that is too long to be shown, with and without a string", () => {
  const columns = Array.from({ length: 1000 }, (_, i) => `c${i}`).join(", ");
  expect(textOfKey(`SELECT ${columns}`)).toBe(`SELECT ${columns}`.slice(0, 2000));
  expect(textOfKey(`SELECT 'a', ${columns}`)).toBe(`SELECT ?, ${columns}`.slice(0, 2000));
});

test("textOfStatement reads only the shown part of a long list, and all of the other lists", () => {
  const columns = Array.from({ length: 150 }, (_, i) => `c${i}`).join(", ");
  const row = Array.from({ length: 150 }, () => "1 + 1").join(", ");
  const rows = Array.from({ length: 400 }, () => `(${row})`).join(", ");
  const [node] = statementsIn(`INSERT INTO t (${columns}) VALUES ${rows}`);
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
    const [node] = statementsIn(text);
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

/** More literals than the server replaces by parameters in one statement. */
const MANY = 80;

test("a statement counts as one, however many items its lists have", () => {
  const text = (count: number): string => {
    const items = Array.from({ length: count }, (_, i) => i);
    const [statement] = statementsIn(
      `SELECT a FROM (VALUES ${items.map((i) => `(${i})`).join(", ")}) q WHERE a IN (${items.join(", ")}) OR a = ANY(ARRAY[${items.join(", ")}])`,
    );
    return statement === undefined ? "" : textOfStatement(statement);
  };
  expect(text(MANY)).toBe(text(50 * MANY));
  expect(text(MANY)).not.toContain("79");
});

test("bulkShapeOf is the same for loads of the same text, and differs for every other text", () => {
  const load = (count: number, tail = ""): string =>
    `INSERT INTO t (id, s) VALUES ${Array.from({ length: count }, (_, i) => `(${i}, 'é${count}')`).join(", ")}${tail}`;
  const texts = [
    load(MANY),
    load(3 * MANY),
    load(MANY, " ON CONFLICT DO NOTHING"),
    load(MANY, " ON CONFLICT (id) DO UPDATE SET s = 'a'"),
    load(MANY, " RETURNING id"),
    load(MANY).replace("(id, s)", ""),
    load(MANY).replace("INTO t", "INTO other"),
    load(MANY).replaceAll(", '", ", 1, '"),
  ];
  const shapes = new Map<string, string>();
  for (const text of texts) {
    for (const sql of [text, `SELECT 1; ${text}; SELECT 2`]) {
      const statement = statementsIn(sql).find(({ type }) => type === "insert");
      if (statement === undefined) throw new Error("the text holds an INSERT");
      const shape = bulkShapeOf(statement, sql) ?? "";
      expect(shapes.get(shape) ?? textOfStatement(statement)).toBe(textOfStatement(statement));
      expect(shape).not.toContain("é");
      shapes.set(shape, textOfStatement(statement));
    }
  }
  expect(shapes.size).toBe(texts.length - 1);
  const [short] = statementsIn("INSERT INTO t (id) VALUES (1)");
  expect(short === undefined ? "" : bulkShapeOf(short, "")).toBeUndefined();
});
