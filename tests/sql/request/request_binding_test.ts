/**
 * Tests statements with so many rows that binding them takes more than a tick of the event loop.
 */
import { expect, test } from "bun:test";
import { HastyClock } from "../../support/hasty_clock.ts";
import { TestEngine } from "../../support/sql_engine.ts";

const ROWS = 2048;

/** A configuration without a time limit, because the clock in these tests runs fast. */
const UNTIMED = "performance.request_timeout = 0";

/** The number of rows bound between two checks of the clock. */
const ROWS_PER_LOOK = 256;

/** Returns an INSERT with rows of expressions rather than plain literals. */
function insertOf(last: string): string {
  const rows = Array.from({ length: ROWS - 1 }, (_, i) => `(${i}, ${i} + 1, lower('A${i}'))`);
  return `INSERT INTO t (id, v, x) VALUES ${[...rows, last].join(", ")}`;
}

async function openTable(clock: HastyClock): Promise<TestEngine> {
  const engine = await TestEngine.open({ clock, config: UNTIMED });
  await engine.run("CREATE TABLE t (id INT PRIMARY KEY, v INT, x TEXT)");
  return engine;
}

test("RequestBinding.bind yields to other work, and reports the fault of the last of many rows", async () => {
  const clock = new HastyClock();
  await using engine = await openTable(clock);
  const sql = insertOf("(-1, lower('a'), 'x')");
  clock.yieldCount = 0;

  expect(await engine.failure(sql)).toBe(`TYPE_MISMATCH@1:${sql.lastIndexOf("lower")}`);
  expect(clock.yieldCount).toBeGreaterThanOrEqual(ROWS / ROWS_PER_LOOK);
  expect(await engine.rows("SELECT count(*) FROM t")).toEqual([[0]]);
});

test("RequestBinding.bind binds each of many rows as written, and DEFAULT by its column", async () => {
  await using engine = await openTable(new HastyClock());
  await engine.run("ALTER TABLE t ADD COLUMN d INT DEFAULT 7");
  await engine.run(insertOf("(-1, DEFAULT, upper('last'))"));

  expect(
    await engine.rows("SELECT count(*), sum(v - id - 1), count(DISTINCT x), min(d) FROM t"),
  ).toEqual([[ROWS, 0, ROWS, 7]]);
  expect(await engine.rows("SELECT v, x FROM t WHERE id IN (-1, 1600) ORDER BY id")).toEqual([
    [null, "LAST"],
    [1601, "a1600"],
  ]);
  expect(await engine.failure(insertOf("(-2, 1 / 0, 'x')"))).toStartWith("DUPLICATE_KEY@1");
});

test("RequestBinding.renewed binds statements again if a definition has changed between two steps", async () => {
  const clock = new HastyClock();
  await using engine = await openTable(clock);
  let altered: Promise<unknown> | undefined;
  let yieldCount = 0;
  clock.onYield = () => {
    yieldCount += 1;
    // The first yield comes before the statement is bound.
    if (yieldCount === 2) altered = engine.run("ALTER TABLE t RENAME COLUMN v TO w");
  };

  expect(await engine.failure(insertOf("(-1, 2, 'x')"))).toStartWith("COLUMN_NOT_FOUND@1");
  await altered;
  expect(await engine.rows("SELECT count(w) FROM t")).toEqual([[0]]);
});

test("RequestBinding.renew of many rows yields, if an earlier statement created the table", async () => {
  const clock = new HastyClock();
  await using engine = await TestEngine.open({ clock, config: UNTIMED });
  const made = "CREATE TABLE t (id INT PRIMARY KEY, v INT, x TEXT);";
  const sql = `${made} ${insertOf("(-1, lower('a'), 'x')")}`;
  clock.yieldCount = 0;

  expect(await engine.failure(sql)).toBe(`TYPE_MISMATCH@2:${sql.lastIndexOf("lower")}`);
  expect(clock.yieldCount).toBeGreaterThanOrEqual(ROWS / ROWS_PER_LOOK);
  await engine.run(insertOf("(-1, 2, 'x')"));
  expect(await engine.rows("SELECT count(*) FROM t")).toEqual([[ROWS]]);
});
