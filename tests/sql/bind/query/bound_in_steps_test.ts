/** Tests queries with lists so long that binding them takes more than a tick of the event loop. */
import { expect, test } from "bun:test";
import { HastyClock } from "../../../support/hasty_clock.ts";
import { TestEngine } from "../../../support/sql_engine.ts";

const COUNT = 2048;

/** Binds a statement without running it. Returns how often the binder yields to other work. */
async function yieldsOf(sql: string): Promise<number> {
  const clock = new HastyClock();
  await using engine = await TestEngine.open({ clock });
  await engine.run("CREATE TABLE t (id INT PRIMARY KEY, v INT)");
  clock.yieldCount = 0;
  await engine.run(sql, { check: true });
  return clock.yieldCount;
}

function each(text: (index: number) => string, count = COUNT): string {
  return Array.from({ length: count }, (_, index) => text(index)).join(", ");
}

test.each([
  ["outputs", `SELECT ${each((i) => `sum(id + ${i})`)} FROM t`],
  ["outputs of a query in FROM", `SELECT 1 FROM (SELECT ${each((i) => `id + ${i}`)} FROM t) q`],
  ["outputs behind WITH", `WITH w AS (SELECT 1) SELECT ${each((i) => `id + ${i}`)} FROM t`],
  ["ORDER BY", `SELECT id FROM t ORDER BY ${each((i) => `id + ${i}`)}`],
  ["GROUP BY", `SELECT 1 FROM t GROUP BY ${each((i) => `id + ${i}`)}`],
  ["GROUPING SETS", `SELECT 1 FROM t GROUP BY GROUPING SETS (${each((i) => `(id + ${i})`)})`],
  ["DISTINCT ON", `SELECT DISTINCT ON (${each((i) => `id + ${i}`)}) id FROM t`],
  [
    "sides of UNION ALL",
    Array.from({ length: 20 }, () => `SELECT ${each((i) => `id + ${i}`, 100)} FROM t`).join(
      " UNION ALL ",
    ),
  ],
  [
    "a query that is inserted",
    `INSERT INTO t SELECT 1, 2 FROM (SELECT ${each((i) => `id + ${i}`)} FROM t) q`,
  ],
])("a long query is bound in steps: %s", async (_name, sql) => {
  const few = await yieldsOf("SELECT 1 FROM t");
  expect(await yieldsOf(sql)).toBeGreaterThanOrEqual(few + 2);
});

test("a long query whose table is altered between two steps is bound again", async () => {
  const clock = new HastyClock();
  await using engine = await TestEngine.open({ clock });
  await engine.run("CREATE TABLE t (id INT PRIMARY KEY, v INT); INSERT INTO t VALUES (1, 2)");
  let altered: Promise<unknown> | undefined;
  let yieldCount = 0;
  clock.onYield = () => {
    yieldCount += 1;
    // The binder yields for the first time before it binds the query.
    if (yieldCount === 2) altered = engine.run("ALTER TABLE t RENAME COLUMN v TO w");
  };

  expect(await engine.failure(`SELECT ${each((i) => `v + ${i}`)} FROM t`)).toStartWith(
    "COLUMN_NOT_FOUND@1",
  );
  await altered;
});
