/**
 * Tests how joins are planned: their order, their keys, and the conditions under which EXISTS
 * becomes a join.
 */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { systemClock } from "../../../src/base/clock.ts";
import { bestTree, type JoinTree } from "../../../src/sql/plan/join_order.ts";
import { TestEngine } from "../../support/sql_engine.ts";
import { shareOf } from "../../support/thoroughness.ts";

let engine: TestEngine;

beforeAll(async () => {
  engine = await TestEngine.open({ clock: systemClock });
  await engine.run(
    "CREATE TABLE parts (p INT PRIMARY KEY, kind TEXT); CREATE TABLE makers (m INT PRIMARY KEY, name TEXT);" +
      "CREATE TABLE lines (id INT PRIMARY KEY, p INT, m INT, day DATE);" +
      "INSERT INTO parts SELECT g, 'k' || g % 3 FROM generate_series(1, 2000) g;" +
      "INSERT INTO makers SELECT g, 'm' || g FROM generate_series(1, 2000) g;" +
      "INSERT INTO lines SELECT g, g % 2000 + 1, nullif(g % 7, 0), DATE '2024-01-01' + g % 9 " +
      "FROM generate_series(1, 5000) g",
  );
});
afterAll(() => engine[Symbol.asyncDispose]());

async function planText(sql: string): Promise<string> {
  const [entry] = await engine.run(`EXPLAIN ${sql}`);
  return (entry?.rows ?? []).map(([line]) => String(line)).join("\n");
}

async function rowsOf(sql: string): Promise<unknown> {
  return (await engine.run(sql)).at(-1)?.rows;
}

const PRODUCT =
  "FROM parts, makers, lines WHERE parts.p = lines.p AND makers.m = lines.m AND name = 'm3'";

describe("joins are executed in the best order", () => {
  test("relations without a common condition are not joined first", async () => {
    expect(await planText(`SELECT count(*) ${PRODUCT}`)).not.toContain("Nested Loop");
    expect(await rowsOf(`SELECT count(*) ${PRODUCT}`)).toEqual([[714]]);
  });

  test("the smaller side is materialised, whatever the order in the text", async () => {
    for (const from of ["makers JOIN lines USING (m)", "lines JOIN makers USING (m)"]) {
      const lines = (await planText(`SELECT * FROM ${from}`)).split("\n");
      const tables = lines.flatMap((line) => /Table Scan on \w+\.(\w+)/.exec(line)?.[1] ?? []);
      expect(tables, from).toEqual(["lines", "makers"]);
    }
  });

  test("a condition that all branches of an OR share becomes a key", async () => {
    const sql =
      "SELECT count(*) FROM parts, lines WHERE (parts.p = lines.p AND kind = 'k1' AND lines.m = 1)" +
      " OR (parts.p = lines.p AND kind = 'k2' AND lines.m = 2)";
    expect(await planText(sql)).toContain("Hash Join");
    const apart = (kind: string, m: number): string =>
      `(SELECT count(*) FROM parts JOIN lines USING (p) WHERE kind = '${kind}' AND m = ${m})`;
    expect(await rowsOf(sql)).toEqual(await rowsOf(`SELECT ${apart("k1", 1)} + ${apart("k2", 2)}`));
  });

  test("a condition that is never true reads no rows", async () => {
    const sql = "SELECT count(*), max(lines.id) FROM parts, makers, lines WHERE false";
    expect(await planText(sql)).not.toContain("Table Scan");
    expect(await rowsOf(sql)).toEqual([[0, null]]);
  });

  test("a plan is made again after a table has grown", async () => {
    await engine.run("CREATE TABLE g1 (a INT PRIMARY KEY); CREATE TABLE g2 (a INT PRIMARY KEY)");
    const sql = "SELECT count(*) FROM g1 JOIN g2 USING (a)";
    expect(await rowsOf(sql)).toEqual([[0]]);
    await engine.run("INSERT INTO g1 SELECT g FROM generate_series(1, 3000) g");
    await engine.run("INSERT INTO g2 VALUES (7), (9999)");
    expect(await rowsOf(sql)).toEqual([[1]]);
  });
});

const EXISTENCES: readonly (readonly [condition: string, form: string, count: number])[] = [
  ["EXISTS (SELECT 1 FROM lines l WHERE l.p = parts.p)", "semi", 2000],
  ["EXISTS (SELECT 1 FROM lines l WHERE l.p = parts.p AND l.m <> parts.p)", "semi", 2000],
  ["NOT EXISTS (SELECT 1 FROM lines l WHERE l.m = parts.p)", "anti", 1994],
  [
    "NOT EXISTS (SELECT 1 FROM lines l WHERE l.m = parts.p AND l.id <= parts.p AND l.id <> 3)",
    "anti",
    1995,
  ],
  ["EXISTS (SELECT 1 FROM makers WHERE m = nullif(parts.p, 5) AND name <> kind)", "semi", 1999],
  // These EXISTS conditions become joins although they could raise an error, because the parts
  // that may fail refer only to inner rows or to a key.
  [
    "EXISTS (SELECT 1 FROM lines l WHERE l.p = parts.p AND l.day > '2024-01-07' AND l.m < parts.p)",
    "semi",
    950,
  ],
  [
    "NOT EXISTS (SELECT 1 FROM lines l WHERE l.p = parts.p AND l.id + 1 > 2500 AND l.m < parts.p)",
    "anti",
    218,
  ],
  ["EXISTS (SELECT 1 FROM makers WHERE m = parts.p + 1 AND name LIKE '%9' AND m > p)", "semi", 200],
  [
    "NOT EXISTS (SELECT 1 FROM lines l WHERE l.p = parts.p - 7 AND length('k' || l.m) > 1 AND l.m > parts.p - 9)",
    "anti",
    1993,
  ],
  [
    "EXISTS (SELECT 1 FROM lines l WHERE l.p = parts.p AND l.m <> 1 AND 6 / (l.m - 1) > parts.p % 2)",
    "semi",
    1857,
  ],
  [
    "EXISTS (SELECT 1 FROM lines l WHERE 60 / (parts.p - l.p + l.m - 1) > parts.p % 20 AND l.p = parts.p AND l.m > 2 AND l.m <> parts.p)",
    "semi",
    1728,
  ],
];

describe("EXISTS is executed as a join", () => {
  test.each([...shareOf(EXISTENCES, { oneOf: 4 })])(
    "%s becomes a %s join",
    async (condition, form, count) => {
      const sql = `SELECT count(*) FROM parts WHERE ${condition}`;
      // Outside WHERE, the subquery is not planned as a join, and is evaluated even for rows
      // without a match.
      const asked = `SELECT sum(CASE WHEN ${condition} THEN 1 ELSE 0 END) FROM parts`;
      expect(await planText(asked)).not.toContain(form);
      expect(await rowsOf(sql)).toEqual(await rowsOf(asked));
      expect(await rowsOf(sql)).toEqual([[count]]);
    },
  );

  test("EXISTS computes the key of an outer row only where the remaining conditions on that row hold", async () => {
    const keyed = (divisor: string): string =>
      `EXISTS (SELECT 1 FROM lines l WHERE parts.p > 9 AND l.p = 2000 / (${divisor}) AND l.m > parts.p % 7)`;
    // Computing the key of row 5 raises an error.
    const some = "parts.p % 10 = 5";
    const asked = keyed("CASE WHEN parts.p > 9 THEN parts.p / 9 END");
    const counts = `SELECT sum(CASE WHEN ${asked} THEN 1 ELSE 0 END)::int FROM parts WHERE ${some}`;
    const [[count = 0] = []] = (await rowsOf(counts)) as number[][];
    expect(count).toBeGreaterThan(0);
    const sql = `SELECT count(*) FROM parts WHERE ${some} AND ${keyed("parts.p / 9")}`;
    expect(await planText(sql)).toContain("semi");
    expect(await rowsOf(sql)).toEqual([[count]]);
    expect(await rowsOf(sql.replace("EXISTS", "NOT EXISTS"))).toEqual([[200 - count]]);
  });

  test("EXISTS raises an error of an inner row only for an outer row", async () => {
    const condition =
      "EXISTS (SELECT 1 FROM lines l WHERE l.p = parts.p AND l.m <> parts.p AND 1 / (l.id - 1) > 0)";
    const sql = `SELECT count(*) FROM parts WHERE ${condition}`;
    expect(await planText(sql)).toContain("semi");
    expect(await engine.failure(sql)).toStartWith("DIVISION_BY_ZERO");
    expect(await rowsOf(`${sql} AND p > 9000`)).toEqual([[0]]);
    expect(
      await rowsOf(sql.replace("parts WHERE", "makers, parts WHERE m = p AND m > 9000 AND")),
    ).toEqual([[0]]);
  });

  test("EXISTS becomes the same join with parameters", async () => {
    const sql =
      "SELECT count(*) FROM parts WHERE EXISTS (SELECT 1 FROM lines l WHERE l.p = parts.p AND l.m <> parts.p AND l.day > $1 AND l.id > $2::numeric)";
    const params = ["2024-01-07", 1000];
    const [plan] = await engine.run(`EXPLAIN ${sql}`, { params });
    expect(JSON.stringify(plan?.rows)).toContain("semi");
    const asked = sql.replace("$1", "'2024-01-07'").replace("$2::numeric", "1000");
    const [result] = await engine.run(sql, { params });
    expect(await rowsOf(asked)).toEqual(result?.rows);
  });

  test("EXISTS stays a subquery if text of both sides is computed for each pair", async () => {
    const sql =
      "SELECT count(*) FROM parts WHERE EXISTS (SELECT 1 FROM makers WHERE m = p AND repeat(name, p) LIKE kind || '%')";
    expect(await planText(sql)).not.toContain("semi");
    expect(await rowsOf(sql)).toEqual([[0]]);
  });

  test("EXISTS stays a subquery if few rows each look one up by its key", async () => {
    const sql =
      "SELECT p FROM parts WHERE p = 5 AND EXISTS (SELECT 1 FROM lines l WHERE l.id = parts.p AND l.m >= parts.p)";
    expect(await planText(sql)).not.toContain("semi");
    expect(await rowsOf(sql)).toEqual([[5]]);
  });
});

function leavesOf(tree: JoinTree): number[] {
  return tree.kind === "leaf" ? [tree.index] : [...leavesOf(tree.left), ...leavesOf(tree.right)];
}

test("a chain of many tables, written in any order, creates no cross product", async () => {
  const numbers = Array.from({ length: 24 }, (_, i) => i);
  const tables = numbers.map((i) => `lines t${(i * 7) % 24}`).join(", ");
  const links = numbers.slice(1).map((i) => `t${i}.id = t${i - 1}.p`);
  const sql = `SELECT t23.id FROM ${tables} WHERE ${links.toReversed().join(" AND ")} AND t0.id = 5`;
  expect(await planText(sql)).not.toContain("Nested Loop");
  expect(await rowsOf(sql)).toEqual([[5 + 23]]);
});

describe("bestTree chooses the order of joins", () => {
  test("bestTree streams the largest relation past the others", () => {
    const edges = [
      { left: 0, right: 2, share: 1 / 100 },
      { left: 1, right: 2, share: 1 / 50 },
    ];
    const tree = bestTree({ rows: [100, 50, 100_000], edges });
    expect(leavesOf(tree)[0]).toBe(2);
  });

  test("bestTree contains every relation once, connected or not", () => {
    const tree = bestTree({ rows: [5, 6, 7, 8], edges: [{ left: 0, right: 3, share: 0.1 }] });
    expect(leavesOf(tree).toSorted((a, b) => a - b)).toEqual([0, 1, 2, 3]);
  });

  test("bestTree joins many relations that share a condition, starting with the smallest", () => {
    // A chain of joins whose neighbours are far apart in the SQL, and a relation that no join
    // condition connects.
    const chain = Array.from({ length: 40 }, (_, i) => (i * 17) % 40);
    const edges = chain.slice(1).map((right, i) => ({ left: chain[i] ?? 0, right, share: 0.1 }));
    const rows = Array.from({ length: 41 }, (_, i) => (i === 20 ? 1 : 10));
    const tree = bestTree({ rows, edges });
    expect(leavesOf(tree).toSorted((a, b) => a - b)).toEqual(rows.map((_, i) => i));
    const products = pairsOf(tree).filter(
      ([one, other]) =>
        !edges.some(
          ({ left, right }) =>
            (one.includes(left) && other.includes(right)) ||
            (one.includes(right) && other.includes(left)),
        ),
    );
    expect(products.flat().toSorted((a, b) => a.length - b.length)).toEqual([
      [40],
      expect.any(Array),
    ]);
  });
});

/** Returns the relations on the left and right side of each join in a tree. */
function pairsOf(tree: JoinTree): [number[], number[]][] {
  if (tree.kind === "leaf") return [];
  const own: [number[], number[]] = [leavesOf(tree.left), leavesOf(tree.right)];
  return [own, ...pairsOf(tree.left), ...pairsOf(tree.right)];
}
