/**
 * Tests EXPLAIN and EXPLAIN ANALYZE: the plan tree, its access paths, and that callers learn no
 * more than their rights allow.
 */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { systemClock } from "../../../src/base/clock.ts";
import { TestEngine } from "../../support/sql_engine.ts";

interface PlanNode {
  readonly node: string;
  readonly access?: string;
  readonly children: readonly PlanNode[];
  readonly [detail: string]: unknown;
}

let engine: TestEngine;

beforeAll(async () => {
  engine = await TestEngine.open({ clock: systemClock });
  await engine.run(
    "CREATE TABLE t (a INT, b INT, x TEXT, PRIMARY KEY (a, b));" +
      "CREATE TABLE u (id INT PRIMARY KEY, x TEXT) WITH (TYPE='USER');" +
      "INSERT INTO t SELECT g, g % 7, 'x' || g FROM generate_series(1, 300) g;" +
      "INSERT INTO u VALUES (1, 'one'), (2, 'two');" +
      "CREATE USER dora INTERNAL ROLE dba",
  );
});
afterAll(() => engine[Symbol.asyncDispose]());

async function planOf(sql: string, options = "FORMAT JSON"): Promise<PlanNode> {
  const rows = await engine.rows(`EXPLAIN (${options}) ${sql}`);
  expect(rows.length).toBe(1);
  return JSON.parse(String(rows[0]?.[0])) as PlanNode;
}

function flat(node: PlanNode): PlanNode[] {
  return [node, ...node.children.flatMap(flat)];
}

async function nodesOf(sql: string, options?: string): Promise<PlanNode[]> {
  return flat(await planOf(sql, options));
}

describe("EXPLAIN shows the plans of statements", () => {
  test("a node that reads a table shows how, and other nodes do not", async () => {
    const nodes = await nodesOf(
      "SELECT x, count(*) FROM t WHERE a > 5 GROUP BY x ORDER BY 2 LIMIT 3",
    );
    const [insert, ...below] = await nodesOf("INSERT INTO t SELECT a + 1000, b, x FROM t");
    const isRead = (name: unknown): boolean => name === "Table Scan" || name === "Index Scan";
    const reads = [...nodes, ...below].filter(({ node }) => isRead(node));

    expect(reads.map(({ access }) => access)).toEqual(["index", "scan"]);
    expect(insert?.node).toBe("Insert");
    const others = [...nodes, insert, ...below].filter((node) => !isRead(node?.node));
    expect(others.filter((node) => node !== undefined && "access" in node)).toEqual([]);
    expect(nodes.map(({ node }) => node)).toContain("Aggregate");
  });

  test("an order by an expression that is not selected is shown as the expression", async () => {
    const keysOf = async (sql: string): Promise<unknown[]> =>
      (await nodesOf(sql)).flatMap(({ keys }) => (keys === undefined ? [] : [keys]));

    expect(await keysOf("SELECT a FROM t ORDER BY x DESC, a + b")).toEqual(["x DESC, a + b"]);
    expect(await keysOf("SELECT a FROM t ORDER BY x, a LIMIT 3")).toEqual(["x, a"]);
    expect(await keysOf("SELECT DISTINCT ON (a % 2, x) b FROM t ORDER BY a % 2, x, b")).toEqual([
      "a % 2, x",
      "a % 2, x, b",
    ]);
    expect(await keysOf("SELECT a AS n FROM t ORDER BY n")).toEqual(["n"]);
  });

  test("a name that needs quotes is quoted", async () => {
    await engine.run('CREATE TABLE q (id INT PRIMARY KEY, "a = 1 OR b" INT, "select" TEXT)');
    const [, filter, scan] = await nodesOf(
      `SELECT id FROM q WHERE "a = 1 OR b" = 3 AND "select" = 'it''s'`,
    );
    expect(filter?.["filter"]).toBe(`("a = 1 OR b" = 3) AND ("select" = 'it''s')`);
    expect(scan?.["ranges"]).toBe('"a = 1 OR b" = 3');
    const lines = await engine.rows('EXPLAIN SUBSCRIBE TO q WHERE "a = 1 OR b" = 3');
    expect(lines).toContainEqual(['  index: "a = 1 OR b" = 3, looked up by value']);
  });

  const ACCESS: readonly (readonly [sql: string, access: string, details: object])[] = [
    ["SELECT x FROM t WHERE a = 1 AND b = 2", "key", { key: "a = 1 AND b = 2", estimated_rows: 1 }],
    [
      "SELECT x FROM u WHERE id >= 10 AND id < 20",
      "key_range",
      { ranges: "id >= 10 AND id <= 20" },
    ],
    ["SELECT x FROM t WHERE a >= 10 AND a < 20", "index", { index: "t_pkey (a >= 10 AND a < 20)" }],
    ["SELECT x FROM t WHERE _seq > 5", "seq_range", { ranges: "_seq >= 5" }],
    ["SELECT x FROM t WHERE b = 3", "scan", { ranges: "b = 3", estimated_rows: 100 }],
    ["SELECT x FROM t WHERE x = 'it''s'", "scan", { table: "default.t", estimated_rows: 300 }],
    ["SELECT * FROM generate_series(1, 3)", "function", { call: "generate_series(1, 3)" }],
    ["SELECT * FROM system.users", "function", { table: "system.users" }],
    ["VALUES (1), (2)", "values", { estimated_rows: 2 }],
    ["SELECT 1", "values", { estimated_rows: 1 }],
    ["SELECT * FROM u", "scan", { owner: "root", estimated_rows: 2 }],
  ];
  for (const [sql, access, details] of ACCESS) {
    test(`EXPLAIN of ${sql} shows the access ${access}`, async () => {
      const leaf = (await nodesOf(sql)).at(-1);
      expect(leaf).toMatchObject({ access, ...details });
    });
  }

  test("joins, subqueries, WITH entries and views are part of the tree", async () => {
    const words = async (sql: string): Promise<string[]> =>
      (await nodesOf(sql)).map(({ node }) => node);
    expect(await words("SELECT 1 FROM t a JOIN t b ON a.a = b.b")).toEqual([
      "Project",
      "Hash Join",
      "Table Scan",
      "Table Scan",
    ]);
    expect(await words("SELECT 1 FROM t a LEFT JOIN t b ON a.a < b.b")).toContain("Nested Loop");
    const subquery = await words("SELECT a IN (SELECT b FROM t) FROM t");
    expect(subquery).toEqual(["Project", "Table Scan", "Subquery", "Project", "Table Scan"]);
    const twice = "WITH c AS MATERIALIZED (SELECT a FROM t) SELECT 1 FROM c x, c y";
    expect((await words(twice)).filter((word) => word === "CTE Scan").length).toBe(2);
    expect((await words(twice)).filter((word) => word === "Table Scan").length).toBe(1);
    await engine.run("CREATE OR REPLACE VIEW v AS SELECT x FROM t WHERE a = 1 AND b = 1");
    expect((await nodesOf("SELECT * FROM v")).at(-1)).toMatchObject({ access: "key" });
  });

  test("a chain of UNION compares its rows only once", async () => {
    const sets = async (sql: string): Promise<string[]> =>
      (await nodesOf(sql)).map(({ node }) => node).filter((node) => /^(?:Un|Inter)/.test(node));
    const [a, b] = ["SELECT a FROM t", "SELECT b FROM t"];
    expect(await sets(`${a} UNION ${b} UNION ${a} UNION ${b}`)).toEqual([
      "Union",
      "Union All",
      "Union All",
    ]);
    expect(await sets(`${a} UNION (${b} UNION ${a})`)).toEqual(["Union", "Union All"]);
    expect(await sets(`${a} UNION ${b} UNION ALL ${a}`)).toEqual(["Union All", "Union"]);
    expect(await sets(`${a} UNION (${b} UNION ${a} LIMIT 1)`)).toEqual(["Union", "Union"]);
    expect(await sets(`${a} UNION ${b} INTERSECT (${b} UNION ${a})`)).toEqual([
      "Union",
      "Intersect",
      "Union",
    ]);
    const rows = "SELECT 1 UNION SELECT 1 UNION SELECT 2::BIGINT UNION SELECT 2 UNION ALL SELECT 1";
    expect(await engine.rows(rows)).toEqual([[1], [2], [1]]);
  });

  test("literals and parameters of the caller are shown", async () => {
    const rows = await engine.rows("EXPLAIN SELECT x FROM t WHERE a = $1 AND b > 2 AND x = $2", {
      params: [7, "it's"],
    });
    const text = rows.map(([line]) => line).join("\n");
    expect(text).toContain("(a = 7) AND (b > 2) AND (x = 'it''s')");
    expect(text).toContain(
      "Index Scan on default.t  (access: index; index: t_pkey (a = 7 AND b > 2)",
    );
  });

  test("VERBOSE lists the output columns of each node", async () => {
    const plan = await planOf("SELECT a, x AS y FROM t", "VERBOSE, FORMAT JSON");
    expect(plan["output"]).toEqual(["a", "y"]);
    expect(plan.children[0]?.["output"]).toEqual(["a", "x"]);
  });

  test("nothing runs without ANALYZE", async () => {
    await engine.rows("EXPLAIN DELETE FROM u");
    await engine.rows("EXPLAIN INSERT INTO u VALUES (9, 'x')");
    await engine.rows("EXPLAIN SELECT 1 / 0, PG_TYPEOF(1)");
    expect(await engine.rows("SELECT count(*) FROM u")).toEqual([[2]]);
    expect(await planOf("SELECT 1")).not.toHaveProperty("rows");
  });

  test("ANALYZE measures every node that ran", async () => {
    await engine.run("STORAGE FLUSH TABLE t");
    const sql = "SELECT b, count(*) FROM t WHERE a + 0 > 200 GROUP BY b ORDER BY b LIMIT 2";
    const nodes = await nodesOf(sql, "ANALYZE, FORMAT JSON");
    const rowsOf = Object.fromEntries(nodes.map(({ node, rows }) => [node, rows]));
    expect(rowsOf).toMatchObject({ Limit: 2, Aggregate: 7, Filter: 100, "Table Scan": 300 });
    expect(nodes.at(-1)).toMatchObject({ loops: 1, segments_read: 1, segments_pruned: 0 });
    const pruned = await nodesOf("SELECT * FROM t WHERE b > 100", "ANALYZE, FORMAT JSON");
    expect(pruned.at(-1)).toMatchObject({ rows: 0, segments_read: 0, segments_pruned: 1 });
    for (const { bytes, loops, ms } of nodes) {
      expect([typeof bytes, loops, Number(ms) >= 0]).toEqual(["number", 1, true]);
    }
    const lateral = "SELECT 1 FROM u, LATERAL (SELECT a FROM t WHERE a = u.id AND b = u.id) x";
    const inner = (await nodesOf(lateral, "ANALYZE, FORMAT JSON")).at(-1);
    expect(inner).toMatchObject({ node: "Key Lookup", loops: 2, rows: 2 });
  });

  test("ANALYZE shows durations with three decimals, like every response", async () => {
    for (const sql of ["SELECT a FROM t WHERE b > 2", "UPDATE u SET x = x WHERE id = 1"]) {
      const text = (await engine.rows(`EXPLAIN ANALYZE ${sql}`)).join("\n");
      const [[json] = []] = await engine.rows(`EXPLAIN (ANALYZE, FORMAT JSON) ${sql}`);
      for (const shown of [
        ...text.matchAll(/ ms: ([^;)]*)/g),
        ...String(json).matchAll(/"ms":([^,}]*)/g),
      ]) {
        expect(shown[1]).toMatch(/^\d+\.\d{3}$/);
      }
      expect([text.includes(" ms: "), String(json).includes('"ms":')]).toEqual([true, true]);
    }
  });

  test("ANALYZE runs a change, as part of the transaction if there is one", async () => {
    const insert = "EXPLAIN (ANALYZE, FORMAT JSON) INSERT INTO u VALUES (3, 'three')";
    await engine.run(`BEGIN; ${insert}; ROLLBACK`);
    expect(await engine.rows("SELECT count(*) FROM u")).toEqual([[2]]);
    const update = await planOf("UPDATE u SET x = x || '!' WHERE id < 3", "ANALYZE, FORMAT JSON");
    expect(update).toMatchObject({ node: "Update", table: "default.u", rows: 2, loops: 1 });
    expect(await engine.rows("SELECT x FROM u ORDER BY id")).toEqual([["one!"], ["two!"]]);
    const text = "EXPLAIN ANALYZE SELECT 1 / (a - 1) FROM t";
    expect(await engine.failure(text)).toBe("DIVISION_BY_ZERO@1");
  });

  test("ANALYZE counts only rows that the caller may read, and requires the role dba", async () => {
    engine.userId = "dora";
    try {
      const plan = await nodesOf("SELECT * FROM u", "ANALYZE, FORMAT JSON");
      expect(plan.at(-1)).toMatchObject({ owner: "dora", estimated_rows: 0, rows: 0 });
    } finally {
      engine.userId = "root";
    }
    await engine.run("CREATE USER ann INTERNAL");
    engine.userId = "ann";
    try {
      expect(await engine.failure("EXPLAIN SELECT 1")).toBe("PERMISSION_DENIED@1:0");
      expect(await engine.failure("EXPLAIN ANALYZE DELETE FROM u")).toBe("PERMISSION_DENIED@1:0");
    } finally {
      engine.userId = "root";
    }
  });

  test("EXPLAIN in check mode binds and authorises, but runs nothing", async () => {
    const checked = async (sql: string): Promise<unknown> =>
      (await engine.run(sql, { check: true })).map(({ message, rowCount, schema }) => [
        message,
        rowCount,
        schema?.map(({ name }) => name),
      ]);
    expect(
      await checked("EXPLAIN ANALYZE DELETE FROM u; SELECT x AS y FROM u; DELETE FROM u"),
    ).toEqual([
      ["checked", 0, ["plan"]],
      ["checked", 0, ["y"]],
      ["checked", 0, undefined],
    ]);
    expect(await checked("CREATE VIEW w AS SELECT 1 AS one; SELECT one FROM w")).toEqual([
      ["checked", 0, undefined],
      ["checked", 0, undefined],
    ]);
    expect(await engine.failure("EXPLAIN SELECT nope FROM u", { check: true })).toBe(
      "COLUMN_NOT_FOUND@1:15",
    );
    expect(await engine.rows("SELECT count(*) FROM u")).toEqual([[2]]);
    expect(await engine.failure("TABLE w")).toStartWith("TABLE_NOT_FOUND");
  });
});

describe("EXPLAIN of EXECUTE AS shows the plan for the other user", () => {
  beforeAll(async () => {
    await engine.run(
      "CREATE USER dan WITH INTERNAL; CREATE USER sam WITH INTERNAL ROLE service;" +
        "CREATE TABLE members (room INT, member TEXT, PRIMARY KEY (room, member));" +
        "INSERT INTO members VALUES (1, 'dan');" +
        "CREATE TABLE posts (id INT PRIMARY KEY, room INT, author TEXT, body TEXT) WITH (ACCESS_LEVEL = 'RESTRICTED');" +
        "INSERT INTO posts SELECT g, g % 5, 'dan', 'p' || g FROM generate_series(1, 200) g;" +
        "CREATE POLICY authors ON posts FOR UPDATE USING (author = CURRENT_USER());" +
        "CREATE POLICY readers ON posts FOR SELECT USING (author = CURRENT_USER() AND room > 0)",
    );
  });

  async function linesOf(sql: string): Promise<string> {
    return (await engine.rows(sql)).join("\n");
  }

  test("EXPLAIN EXECUTE AS shows the policy conditions that apply to the user as filters", async () => {
    const query = "SELECT body FROM posts WHERE id < 50";
    const own = await linesOf(`EXPLAIN ${query}`);
    expect(own).not.toContain("author");
    const others = await linesOf(`EXPLAIN EXECUTE AS USER 'dan' (${query})`);
    expect(others).toMatch(/filter: .*author = current_user\(\).*/i);
    expect(others).toContain("room > 0");
    const change = await linesOf("EXPLAIN EXECUTE AS USER dan (UPDATE posts SET body = 'x')");
    expect(change).toMatch(/author = current_user\(\)/i);
  });

  test("EXPLAIN EXECUTE AS shows a policy by membership as a part of the plan", async () => {
    await engine.run(
      "ALTER POLICY readers ON posts USING (EXISTS (SELECT 1 FROM members m WHERE m.room = room AND m.member = CURRENT_USER()))",
    );
    const text = await linesOf("EXPLAIN EXECUTE AS USER 'dan' (SELECT body FROM posts)");
    expect(text).toContain("members");
    const key = await linesOf(
      "EXPLAIN EXECUTE AS USER 'dan' (SELECT body FROM posts WHERE id = 1)",
    );
    expect(key).toContain("members");
  });

  test("EXPLAIN ANALYZE EXECUTE AS runs the statement with the rights of the user", async () => {
    const query = "SELECT body FROM posts";
    const [[json] = []] = await engine.rows(
      `EXPLAIN (ANALYZE, FORMAT JSON) EXECUTE AS USER 'dan' (${query})`,
    );
    const seen = await engine.rows(`EXECUTE AS USER 'dan' (${query})`);
    expect(seen.length).toBe(40);
    expect((JSON.parse(String(json)) as { rows: number }).rows).toBe(seen.length);
    const failure = await engine.failure("EXPLAIN EXECUTE AS USER 'dan' (SELECT 1 FROM members)");
    expect(failure).toStartWith("TABLE_NOT_FOUND");
    expect(await engine.failure("EXPLAIN EXECUTE AS USER 'nobody' (SELECT 1)")).toStartWith(
      "USER_NOT_FOUND",
    );
  });

  test.each(["dan", "sam"])("EXPLAIN EXECUTE AS is refused to %s, as EXPLAIN is", async (user) => {
    engine.userId = user;
    try {
      const failure = await engine.failure(
        "EXPLAIN EXECUTE AS USER 'dan' (SELECT body FROM posts)",
      );
      expect(failure).toStartWith("PERMISSION_DENIED");
    } finally {
      engine.userId = "root";
    }
  });

  test("EXPLAIN EXECUTE AS is audited like EXECUTE AS", async () => {
    await engine.run("EXPLAIN EXECUTE AS USER 'dan' (SELECT count(*) FROM posts WHERE id = 77)");
    const rows = await engine.rows(
      "SELECT DISTINCT actor_user_id, target FROM system.audit_log WHERE action = 'execute as' AND outcome = 'ok'",
    );
    expect(rows).toEqual([["root", "dan"]]);
  });
});
