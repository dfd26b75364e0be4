/**
 * Verifies that a query divided among several readers has the same result as on the event loop.
 * The tables have random rows with NULLs in all columns, in memory and in several segments,
 * including replaced and deleted rows.
 */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { SeededRandom } from "../../support/seeded_random.ts";
import { TestEngine } from "../../support/sql_engine.ts";
import { isThorough } from "../../support/thoroughness.ts";

let here: TestEngine;
let divided: TestEngine;

beforeAll(async () => {
  here = await TestEngine.open({ readsElsewhere: false });
  divided = await TestEngine.open({ divides: true });
});

afterAll(async () => {
  await here[Symbol.asyncDispose]();
  await divided[Symbol.asyncDispose]();
});

async function change(sql: string): Promise<void> {
  await here.run(sql);
  await divided.run(sql);
}

/**
 * Runs SQL on both engines. The results must be the same, in any order unless the SQL sorts the
 * rows.
 */
async function both(sql: string): Promise<readonly (readonly unknown[])[]> {
  const isSorted = sql.includes(" ORDER BY ");
  const told = ({ error, results }: Awaited<ReturnType<TestEngine["ask"]>>): unknown => {
    const rows = results.at(-1)?.rows?.map((row) => JSON.stringify(row));
    return [
      error?.code,
      error?.message,
      isSorted ? rows : rows?.toSorted(),
      results.at(-1)?.schema,
    ];
  };
  const expected = await here.ask(sql);
  const actual = await divided.ask(sql);
  expect([sql, told(actual)]).toEqual([sql, told(expected)]);
  return expected.results.at(-1)?.rows ?? [];
}

const AGGREGATES = [
  "count(*)",
  "count(n)",
  "sum(n)",
  "sum(big)",
  "sum(exact)",
  "sum(x)",
  "sum(n * INTERVAL '1 minute')",
  "avg(n)",
  "avg(big)",
  "avg(exact)",
  "avg(x)",
  "min(s)",
  "max(s)",
  "min(big)",
  "max(exact)",
  "min(t)",
  "max(d)",
  "stddev(n)",
  "var_pop(big)",
  "variance(exact)",
  "round(stddev_samp(x)::NUMERIC, 9)",
  "round(var_pop(x)::NUMERIC, 9)",
  "bool_and(b)",
  "bool_or(b)",
  "every(n > 0)",
  "bit_or(n)",
  "bit_xor(big)",
  "count(*) FILTER (WHERE b)",
  "sum(big) FILTER (WHERE n % 3 = 0)",
  "avg(exact) FILTER (WHERE s LIKE 'a%')",
] as const;

const READS: readonly string[] = [
  `SELECT ${AGGREGATES.join(", ")} FROM d.t`,
  `SELECT s, ${AGGREGATES.join(", ")} FROM d.t GROUP BY s`,
  `SELECT b, n % 4, ${AGGREGATES.join(", ")} FROM d.t WHERE n > 3 GROUP BY b, n % 4`,
  `SELECT n, ${AGGREGATES.join(", ")} FROM d.t WHERE false GROUP BY n`,
  `SELECT ${AGGREGATES.join(", ")} FROM d.t WHERE id < 0`,
  "SELECT count(DISTINCT n), sum(DISTINCT n), count(*), avg(exact) FROM d.t",
  "SELECT s, count(DISTINCT exact) FROM d.t GROUP BY s ORDER BY s NULLS FIRST",
  "SELECT s, count(DISTINCT n), count(DISTINCT b) FROM d.t GROUP BY s ORDER BY s",
  "SELECT count(DISTINCT n) FILTER (WHERE b) FROM d.t",
  "SELECT DISTINCT s, b FROM d.t ORDER BY s, b",
  "SELECT DISTINCT n FROM d.t",
  "SELECT DISTINCT ON (s) s, id FROM d.t ORDER BY s, id",
  "SELECT s, b, grouping(s, b), count(*), sum(exact) FROM d.t GROUP BY ROLLUP (s, b)",
  "SELECT s, n, count(*) FROM d.t GROUP BY GROUPING SETS ((s), (n), ())",
  "SELECT count(*) FROM d.t WHERE id < 0 GROUP BY ROLLUP (s)",
  "SELECT id, n, big, exact, s, b, t FROM d.t ORDER BY exact DESC NULLS LAST, id LIMIT 7",
  "SELECT id, s FROM d.t WHERE n > 5 ORDER BY s, id LIMIT 5 OFFSET 3",
  "SELECT id FROM d.t ORDER BY id LIMIT 0",
  "SELECT id, n FROM d.t ORDER BY _seq DESC LIMIT 8",
  "SELECT s, sum(n) AS total FROM d.t GROUP BY s HAVING count(*) > 3 ORDER BY total DESC, s LIMIT 3",
  "SELECT sum(total), max(total) FROM (SELECT n, sum(big) AS total FROM d.t GROUP BY n) AS g",
  "SELECT k.name, count(*), sum(t.exact) FROM d.t JOIN d.k ON k.id = t.n GROUP BY k.name ORDER BY 1",
  "SELECT k.name, count(t.id) FROM d.t LEFT JOIN d.k ON k.id = t.n GROUP BY k.name ORDER BY 1",
  "SELECT k.name, count(t.id) FROM d.k LEFT JOIN d.t ON k.id = t.n GROUP BY k.name ORDER BY 1",
  "SELECT count(*) FROM d.t FULL JOIN d.k ON k.id = t.n",
  "SELECT count(*), sum(a.big) FROM d.t a JOIN d.t b ON a.id = b.id + 1",
  "SELECT count(*) FROM d.t WHERE EXISTS (SELECT 1 FROM d.k WHERE k.id = t.n)",
  "SELECT count(*), min(id) FROM d.t WHERE n NOT IN (SELECT id FROM d.k WHERE id < 5)",
  "SELECT count(*) FROM d.t WHERE exact > (SELECT avg(exact) FROM d.t)",
  "SELECT count(*) FROM d.t WHERE n = (SELECT max(i.n) FROM d.t i WHERE i.s = t.s)",
  "SELECT s, count(*) FROM d.t GROUP BY s UNION ALL SELECT name, id FROM d.k",
  "WITH g AS (SELECT n, count(*) AS c FROM d.t GROUP BY n) SELECT a.n, b.c FROM g a JOIN g b ON a.n = b.n + 1",
  "SELECT count(*) FROM d.t, LATERAL (SELECT name FROM d.k WHERE k.id = t.n LIMIT 1) AS l",
  "SELECT string_agg(s, ',' ORDER BY id), array_agg(id ORDER BY id), count(*) FROM d.t",
  "SELECT s, stddev(n), var_pop(exact), corr(n, id) FROM d.t GROUP BY s ORDER BY s",
  "SELECT median(n), percentile_cont(0.5) WITHIN GROUP (ORDER BY x) FROM d.t",
  "SELECT s, rank() OVER (ORDER BY sum(n) DESC, s) FROM d.t GROUP BY s ORDER BY 1",
  "SELECT id, n, s, x, count(*) FROM d.t GROUP BY id, n, s, x",
  "SELECT sum(10 / (n - 4)) FROM d.t",
  "SELECT sum(big * 4000000000) FROM d.t",
  "SELECT count(*) FROM d.t WHERE random() >= 0",
  "SELECT g, count(*) FROM d.t, generate_series(1, n) AS x(g) GROUP BY g ORDER BY g",
  "SELECT count(*), sum(id) FROM d.t WHERE id IN (3, 5, 70)",
  "SELECT count(*) FROM d.t WHERE id = 17",
  "SELECT count(*), max(_seq) IS NULL FROM d.t WHERE _seq > 0",
  "SELECT count(*) FROM (SELECT s FROM d.t LIMIT 9) AS few",
];

/** Sums of halves and quarters are exact, so they are the same in any order. */
const VALUES = `SELECT g, nullif(g * 7 % 13, 5), nullif((g * 31 % 97) * 90071992547409::BIGINT, 0),
  CASE WHEN g % 11 = 3 THEN NULL ELSE ((g * 37 % 1009) * 123456789012.25)::DECIMAL(30,2) END,
  (g * 17 % 64) / 4.0, CASE WHEN g % 9 < 2 THEN NULL ELSE chr(97 + g % 5) || g % 3 END,
  nullif(g % 4, 1) > 1, TIMESTAMP '2026-01-01' + (g * 53 % 1000) * INTERVAL '1 hour',
  DATE '2026-01-01' + g * 13 % 300 FROM generate_series`;

describe("readers that divide a query return the same as the event loop", () => {
  test("divided queries return the same after random changes", async () => {
    await change(`CREATE NAMESPACE d; CREATE TABLE d.t (id INT PRIMARY KEY, n INT, big BIGINT,
      exact DECIMAL(30,2), x DOUBLE, s TEXT, b BOOLEAN, t TIMESTAMP, d DATE)
      WITH (TYPE = 'SHARED')`);
    await change(
      "CREATE TABLE d.k (id INT PRIMARY KEY, name TEXT) WITH (TYPE = 'SHARED'); INSERT INTO d.k VALUES (0, 'none'), (1, 'one'), (3, 'three'), (7, NULL), (20, 'twenty')",
    );
    for (const read of READS) await both(read);
    const random = new SeededRandom(5);
    const below = (count: number): number => Math.floor(random.unit() * count);
    for (let round = 0; round < 5; round += 1) {
      const first = 1 + round * 1000;
      await change(`INSERT INTO d.t ${VALUES}(${first}, ${first + 50 + below(300)}) AS v(g)`);
      if (round < 4) await change("STORAGE FLUSH TABLE d.t");
      await change(`DELETE FROM d.t WHERE id % ${5 + below(10)} = 0`);
      await change(`UPDATE d.t SET n = NULL, big = big + 1 WHERE id % ${7 + below(10)} = 1`);
      // A usual run tries an eighth of the queries after each round.
      const reads = READS.filter((_, index) => isThorough || (index + round) % 8 === 0);
      for (const read of reads) await both(read);
    }
  });

  test("divided queries leave a reader to a query that finds none free", async () => {
    await change("CREATE TABLE d.many (id INT PRIMARY KEY) WITH (TYPE = 'SHARED')");
    await change("INSERT INTO d.many SELECT g FROM generate_series(1, 5000) AS v(g)");
    const before = divided.database.readerCounts()?.queries ?? 0;
    const sums = ["count(*)", "sum(id)", "max(id)"];
    const answers = await Promise.all(sums.map((sum) => divided.rows(`SELECT ${sum} FROM d.many`)));
    expect(answers.flat(2)).toEqual([5000, 12_502_500, 5000]);
    expect(divided.database.readerCounts()).toMatchObject({
      open: 3,
      busy: 0,
      waiting: 0,
      queries: before + sums.length,
    });
  });
});
