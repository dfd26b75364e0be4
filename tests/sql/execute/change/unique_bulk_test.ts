/**
 * Verifies that a large INSERT, whose keys are compared in bulk, finds each duplicate wherever the
 * existing row is stored, and refuses no other key. The tests put a single duplicate in each
 * place, among keys with equal prefixes.
 */
import { expect, test } from "bun:test";
import { systemClock } from "../../../../src/base/clock.ts";
import { TestEngine } from "../../../support/sql_engine.ts";
import { shareOf } from "../../../support/thoroughness.ts";

const TEXT = "'a common beginning ' || i";

const KEYS: readonly (readonly [type: string, keyOf: string])[] = [
  ["TEXT", TEXT],
  ["TEXT", "md5(i::text)"],
  ["TEXT", "repeat('é', 5) || i % 100 || '-' || i"],
  ["INT", "i * 7 - 5000"],
  ["BIGINT", "9007199254740993 + i"],
  ["DOUBLE", "i / -16.0"],
  ["UUID", "md5(i::text)::uuid"],
];

test.each(shareOf(KEYS, { oneOf: 6 }))("a duplicate %s, %s, is found", async (type, keyOf) => {
  await using engine = await TestEngine.open({ clock: systemClock });
  await engine.run(
    `CREATE TABLE t (id SERIAL PRIMARY KEY, k ${type} UNIQUE, n INT); CREATE UNIQUE INDEX t_n ON t (n, k)`,
  );
  const insert = (rows: string): string =>
    `INSERT INTO t (k, n) SELECT CASE WHEN i % 50 = 3 THEN NULL ELSE ${keyOf} END, i FROM (${rows}) v (i)`;
  const range = (from: number, to: number): string =>
    `SELECT i FROM generate_series(${from}, ${to}) i`;
  for (const from of [1, 1001, 2001]) {
    await engine.run(`${insert(range(from, from + 999))}; STORAGE FLUSH TABLE t`);
  }
  await engine.run(insert(range(3001, 3500)));
  await engine.run("DELETE FROM t WHERE n IN (10, 1010, 3010)");
  for (const held of [700, 1700, 2999, 3400]) {
    const rows = `${range(4001, 4600)} UNION ALL SELECT ${held}`;
    expect(await engine.failure(insert(rows))).toStartWith("DUPLICATE_KEY");
    expect(await engine.failure(`BEGIN; ${insert(rows)}; COMMIT`)).toStartWith("DUPLICATE_KEY");
  }
  const twice = `${range(4001, 4600)} UNION ALL SELECT 4500`;
  expect(await engine.failure(insert(twice))).toStartWith("DUPLICATE_KEY");
  // NULLs, and keys of deleted rows, do not conflict.
  await engine.run(insert(`${range(4001, 4600)} UNION ALL VALUES (3), (10), (1010), (3010)`));
  await engine.run("UPDATE t SET n = n + 1 WHERE id > 0");
  expect(await engine.rows("SELECT count(*), count(DISTINCT k) FROM t")).toEqual([[4101, 4018]]);
});

test("owners of a USER table do not share keys", async () => {
  await using engine = await TestEngine.open({ clock: systemClock });
  await engine.run(`CREATE USER TABLE u (id INT PRIMARY KEY, k TEXT UNIQUE);
    CREATE USER ada INTERNAL ROLE 'user'`);
  const insert = (from: number, to: number): string =>
    `INSERT INTO u SELECT i + ${from}, ${TEXT} FROM generate_series(${from}, ${to}) i`;
  await engine.run(`${insert(1, 500)}; STORAGE FLUSH TABLE u`);
  await engine.run(`EXECUTE AS USER 'ada' (${insert(1, 500)})`);
  expect(await engine.failure(`EXECUTE AS USER 'ada' (${insert(400, 900)})`)).toStartWith(
    "DUPLICATE_KEY",
  );
  await engine.run(`EXECUTE AS USER 'ada' (${insert(501, 900)})`);
});
