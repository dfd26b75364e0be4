/**
 * Tests EXPLAIN ANALYZE in readers: it runs where the statement itself would run, and shows the
 * same figures for each node as on the event loop, except for work that readers repeat.
 */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { HeldReaders } from "../../support/held_readers.ts";
import { ManualClock } from "../../support/manual_clock.ts";
import { TestEngine } from "../../support/sql_engine.ts";
import { until } from "../../support/until.ts";

interface PlanNode {
  readonly node: string;
  readonly rows?: number;
  readonly loops?: number;
  readonly partial_rows?: number;
  readonly readers?: readonly { readonly ms: number }[];
  readonly waited_ms?: number;
  readonly children: readonly PlanNode[];
  readonly [detail: string]: unknown;
}

/** The number of rows in the table, large enough to give each reader more than one row group. */
const ROWS = 1000;

let here: TestEngine;
let elsewhere: TestEngine;
let divided: TestEngine;
let readers: HeldReaders;
let clock: ManualClock;

beforeAll(async () => {
  readers = new HeldReaders();
  clock = new ManualClock();
  here = await TestEngine.open({ readsElsewhere: false });
  elsewhere = await TestEngine.open({
    clock,
    config: "server.workers = 1",
    heldReaders: readers,
    readsElsewhere: true,
  });
  divided = await TestEngine.open({ divides: true });
  for (const engine of [here, elsewhere, divided]) {
    await engine.run(
      "CREATE TABLE t (id INT PRIMARY KEY, g INT, v INT) WITH (TYPE = 'SHARED');" +
        "CREATE TABLE k (id INT PRIMARY KEY, name TEXT) WITH (TYPE = 'SHARED');" +
        `INSERT INTO t SELECT i, i % 7, i FROM generate_series(1, ${ROWS}) x(i);` +
        "STORAGE FLUSH TABLE t;" +
        `INSERT INTO t SELECT i, i % 7, i FROM generate_series(${ROWS + 1}, ${2 * ROWS}) x(i);` +
        "INSERT INTO k VALUES (0, 'none'), (1, 'one'), (2, 'two')",
    );
  }
});
afterAll(async () => {
  for (const engine of [here, elsewhere, divided]) await engine[Symbol.asyncDispose]();
});

async function planIn(engine: TestEngine, sql: string): Promise<PlanNode> {
  const [[json] = []] = await engine.rows(`EXPLAIN (ANALYZE, FORMAT JSON) ${sql}`);
  return JSON.parse(String(json)) as PlanNode;
}

function flat(node: PlanNode): PlanNode[] {
  return [node, ...node.children.flatMap(flat)];
}

/**
 * Returns each plan node's name, rows, loops and number of segments read, and whether the node
 * spilled nothing to disk.
 */
function measured(plan: PlanNode): unknown[] {
  return flat(plan).map(({ loops, node, rows, segments_read: read, spilled_bytes: spilled }) => [
    node,
    rows,
    loops,
    read,
    spilled === undefined,
  ]);
}

const STATEMENTS: readonly string[] = [
  "SELECT g, sum(v) FROM t WHERE v > 10 GROUP BY g ORDER BY g LIMIT 3",
  "SELECT count(*) FROM t JOIN k ON k.id = t.g",
  "SELECT v FROM t WHERE g = (SELECT max(id) FROM k) ORDER BY v LIMIT 5",
  "WITH c AS MATERIALIZED (SELECT g, count(*) AS n FROM t GROUP BY g) SELECT 1 FROM c x, c y",
  "SELECT (SELECT name FROM k WHERE k.id = t.g) FROM t WHERE id < 50",
  "SELECT 1 FROM k, LATERAL (SELECT v FROM t WHERE t.id = k.id) AS l",
  "INSERT INTO t SELECT id + 100000, g, v FROM t WHERE v < 30",
  "UPDATE t SET v = v + 0 WHERE g = 3 AND id < 500",
  "DELETE FROM t USING k WHERE t.id = k.id + 100000",
  "SELECT count(*) FROM system.tables JOIN t ON true",
];

describe("EXPLAIN ANALYZE measures a query in a reader", () => {
  for (const sql of STATEMENTS) {
    test(`EXPLAIN ANALYZE shows the same in a reader as on the event loop: ${sql}`, async () => {
      const expected = await planIn(here, sql);
      const before = readers.jobCount;
      const actual = await planIn(elsewhere, sql);
      expect(measured(actual)).toEqual(measured(expected));
      expect([expected.readers, actual.readers?.length]).toEqual([[], 1]);
      expect(readers.jobCount).toBe(before + 1);
    });
  }

  test("EXPLAIN ANALYZE as text shows where the statement ran", async () => {
    const sql = "EXPLAIN ANALYZE SELECT sum(v) FROM t";
    expect((await here.rows(sql)).at(-1)).toEqual(["Readers: 0"]);
    const [last] = (await elsewhere.rows(sql)).at(-1) ?? [];
    expect(last).toMatch(/^Readers: 1 {2}\(ms: \d+\.\d{3}\)$/);
    expect((await elsewhere.rows(sql.replace("ANALYZE ", ""))).flat().join()).not.toInclude("Read");
  });

  test("EXPLAIN ANALYZE shows how long the statement waited", async () => {
    readers.hold();
    const first = elsewhere.ask("SELECT max(v) FROM t");
    await until(() => elsewhere.database.readerCounts()?.busy === 1);
    const json = planIn(elsewhere, "SELECT sum(v) FROM t");
    const text = elsewhere.rows(
      "EXPLAIN ANALYZE INSERT INTO t SELECT id, g, v FROM t WHERE id < 0",
    );
    await until(() => elsewhere.database.readerCounts()?.waiting === 2);
    clock.advance(1500);
    readers.release();
    expect((await first).error).toBeUndefined();
    expect(await json).toMatchObject({ readers: [{}], waited_ms: 1500 });
    expect((await text).at(-1)?.[0]).toMatch(
      /^Readers: 1 {2}\(ms: [\d.]+; waited ms: 1500\.000\)$/,
    );
  });

  test("EXPLAIN ANALYZE shows the plan that the statement uses when it begins", async () => {
    await elsewhere.run("CREATE TABLE later (id INT PRIMARY KEY, v INT) WITH (TYPE = 'SHARED')");
    readers.hold();
    const first = elsewhere.ask("SELECT max(v) FROM t");
    await until(() => elsewhere.database.readerCounts()?.busy === 1);
    const plan = planIn(elsewhere, "SELECT * FROM later");
    await until(() => elsewhere.database.readerCounts()?.waiting === 1);
    await elsewhere.run(
      "DROP TABLE later; INSERT INTO k VALUES (100, 'hundred');" +
        "CREATE VIEW later AS SELECT name FROM k",
    );
    readers.release();
    await first;
    expect(flat(await plan).at(-1)).toMatchObject({ table: "default.k", rows: 4 });
    await elsewhere.run("DROP VIEW later; DELETE FROM k WHERE id >= 100");
  });

  test("EXPLAIN ANALYZE of a divided query adds up the readers", async () => {
    const rows = 2 * ROWS;
    const grouped = flat(await planIn(divided, "SELECT g, sum(v) FROM t WHERE v > 0 GROUP BY g"));
    expect(grouped[0]?.readers).toHaveLength(3);
    const byNode = Object.fromEntries(grouped.map((node) => [node.node, node]));
    expect(byNode["Table Scan"]).toMatchObject({ rows, loops: 3, segments_read: 1 });
    expect(byNode["Aggregate"]).toMatchObject({ rows: 7, loops: 1 });
    // The rows are in one segment and one memtable. A reader that gets no rows reports no partial
    // groups.
    expect([7, 14]).toContain(byNode["Aggregate"]?.partial_rows ?? 0);
    const top = flat(await planIn(divided, "SELECT v FROM t ORDER BY v DESC LIMIT 4"));
    expect(top.find(({ node }) => node === "Sort")).toMatchObject({ rows: 4, loops: 1 });
    const join = flat(
      await planIn(divided, "SELECT k.name, count(*) FROM t JOIN k ON k.id = t.g GROUP BY 1"),
    );
    const scans = join.filter(({ node }) => node === "Table Scan");
    expect(scans.map(({ loops, rows: count }) => [count, loops])).toEqual([
      [rows, 3],
      [9, 3],
    ]);
    for (const { ms, node } of [...grouped, ...top, ...join]) {
      expect([node, Number(ms) >= 0]).toEqual([node, true]);
    }
  });

  test("EXPLAIN ANALYZE of a divided query adds the time of the parts to all nodes above them", async () => {
    const [root, ...below] = flat(
      await planIn(divided, "SELECT sum(n) FROM (SELECT g, count(*) AS n FROM t GROUP BY g) AS x"),
    );
    const ms = below.map((node) => Number(node["ms"]));
    expect(Number(root?.["ms"])).toBeGreaterThanOrEqual(Math.max(...ms));
  });

  test("EXPLAIN ANALYZE discards a plan on which the readers no longer agree", async () => {
    const plan = await planIn(divided, "SELECT DISTINCT id FROM t");
    // The parts of this divided query return more rows than may be gathered, so the query is
    // restarted in a single reader.
    const wide = await planIn(divided, "SELECT DISTINCT id, repeat('x', 100) AS x FROM t");
    expect(plan.readers?.length).toBe(3);
    expect(wide.readers).toHaveLength(1);
    expect(flat(wide).at(-1)).toMatchObject({ node: "Table Scan", rows: 2 * ROWS, loops: 1 });
  });
});
