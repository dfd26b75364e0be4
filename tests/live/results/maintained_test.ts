/**
 * Tests that a query is maintained from the changes to its tables, even where equal values differ
 * in their digits or signs. The plan of a query that cannot be maintained gives the reason.
 */
import { afterAll, beforeAll, beforeEach, expect, test } from "bun:test";
import { SubscriptionError } from "../../../src/live/mod.ts";
import type { SubscriptionSpec } from "../../../src/protocol/mod.ts";
import { ResultFollower } from "../../support/result_follower.ts";
import { rowsByKey, Shop } from "./shop.ts";

let shop: Shop;

beforeAll(async () => {
  shop = await Shop.open();
});

beforeEach(() => shop.renew());

afterAll(() => shop.close());

test("changes are applied without an evaluation", async () => {
  const sql = `SELECT u.city, count(*) AS n FROM shop.users u JOIN shop.orders o ON o.user_id = u.id
    GROUP BY u.city ORDER BY n DESC LIMIT 3`;
  const follower = await shop.current(shop.follow(sql, undefined));
  const [before = 0, followedBefore = 0] = await shop.stepsOf(sql);
  for (let id = 50; id < 60; id += 1) {
    await shop.run(`INSERT INTO shop.orders VALUES (${id}, ${id % 4}, 1)`);
    await shop.current(follower);
  }
  const [after = 0, followed = 0] = await shop.stepsOf(sql);
  expect([before, after]).toEqual([1, 1]);
  // Only eight of the ten orders have a customer.
  expect(followed - followedBefore).toBe(8);
});

test("a feed that is far behind follows all commits without an evaluation", async () => {
  await shop.run(
    `INSERT INTO shop.users SELECT 1000 + n, 'n', 'bonn', 77 FROM generate_series(1, 100) AS g(n)`,
  );
  const sql =
    "SELECT u.city, count(*) AS n FROM shop.users u JOIN shop.orders o ON o.user_id = u.boss GROUP BY u.city";
  const follower = await shop.current(shop.follow(sql, undefined));
  const [before] = await shop.stepsOf(sql);
  const inserts = Array.from({ length: 300 }, (_, n) => {
    return shop.run(`INSERT INTO shop.orders VALUES (${1000 + n}, 77, 1)`);
  });
  await Promise.all(inserts);
  await shop.current(follower);
  expect(follower.rows.find(({ city }) => city === "bonn")).toMatchObject({ n: 30_000 });
  expect((await shop.stepsOf(sql))[0]).toBe(before ?? 0);
});

test("an index finds the new minimum or maximum of a group after a deletion", async () => {
  const sql = "SELECT user_id, min(total), max(total) FROM shop.orders GROUP BY user_id";
  const follower = await shop.current(shop.follow(sql, undefined));
  const evaluated = await shop.current(shop.follow(sql, "evaluated"));
  for (const commit of [
    "INSERT INTO shop.orders VALUES (60, 1, 7), (61, 1, 7), (62, 1, 9), (63, 2, NULL)",
    "DELETE FROM shop.orders WHERE id = 11",
    "UPDATE shop.orders SET total = 8 WHERE id = 62",
    "DELETE FROM shop.orders WHERE id = 10",
    "UPDATE shop.orders SET user_id = 2 WHERE id = 60",
    "DELETE FROM shop.orders WHERE id = 12",
    "DELETE FROM shop.orders WHERE user_id = 2",
  ]) {
    await shop.run(commit);
    await shop.current(follower);
    await shop.current(evaluated);
    expect([commit, rowsByKey(follower)]).toEqual([commit, rowsByKey(evaluated)]);
  }
  expect(await shop.stepsOf(sql)).toEqual([1, 7]);
});

test("a group of equal numbers keeps its key whichever scale it shows", async () => {
  await shop.run(`DROP TABLE IF EXISTS shop.prices;
    CREATE SHARED TABLE shop.prices (id INT PRIMARY KEY, v NUMERIC);
    INSERT INTO shop.prices VALUES (1, 1.50), (2, 1.5), (3, 'NaN'), (4, 100)`);
  const sql = "SELECT v, count(*) AS n FROM shop.prices GROUP BY v";
  const follower = await shop.current(shop.follow(sql, "evaluated"));
  const keysOf = (): Set<unknown> => new Set(follower.rows.map((row) => row["_key"]));
  const keys = keysOf();
  expect(keys.size).toBe(3);
  await shop.run(
    "DELETE FROM shop.prices WHERE id = 1; INSERT INTO shop.prices VALUES (5, 1.500), (6, 'NaN')",
  );
  await shop.current(follower);
  expect(keysOf()).toEqual(keys);
  expect(new Set(follower.rows.map(({ v, n }) => `${Number(v)}: ${Number(n)}`))).toEqual(
    new Set(["1.5: 2", "NaN: 2", "100: 1"]),
  );
  await shop.run("DROP TABLE shop.prices");
});

test("rows whose floats differ only within an array or by the sign of zero differ", async () => {
  await shop.run(`DROP TABLE IF EXISTS shop.floats;
    CREATE SHARED TABLE shop.floats (id INT PRIMARY KEY, g INT, d DOUBLE, list DOUBLE[]);
    INSERT INTO shop.floats VALUES (1, 1, 0, ARRAY['NaN'::DOUBLE]), (2, 2, 1, NULL)`);
  const queries = [
    "SELECT list FROM shop.floats UNION ALL SELECT list FROM shop.floats",
    "SELECT DISTINCT ON (g) g, list, id FROM shop.floats ORDER BY g, id",
    "SELECT g, d, count(*) AS n FROM shop.floats GROUP BY g, d",
  ];
  const followers = queries.map((sql) => ({ sql, follower: shop.follow(sql, "maintained") }));
  for (const value of [
    "list = ARRAY['Infinity'::DOUBLE]",
    "list = ARRAY[NULL::DOUBLE]",
    "list = ARRAY['-Infinity'::DOUBLE]",
    "list = ARRAY[0::DOUBLE]",
    "list = ARRAY['-0'::DOUBLE]",
    "d = '-0'",
    "d = 0",
  ]) {
    await shop.run(`UPDATE shop.floats SET ${value} WHERE id = 1`);
    for (const { follower, sql } of followers) {
      const followed = (await shop.current(follower)).rows.map(({ _key, _seq, ...row }) => {
        return cellsText(Object.values(row));
      });
      const selected = (await shop.run(sql)).map((row) => cellsText(row));
      expect([value, sql, followed.toSorted()]).toEqual([value, sql, selected.toSorted()]);
    }
  }
  for (const { follower } of followers) follower.subscription?.close();
  await shop.run("DROP TABLE shop.floats");
});

/** Returns cells as JSON clients see them: zero has no sign, and special floats are strings. */
function cellsText(cells: readonly unknown[]): string {
  return JSON.stringify(cells, (_, cell: unknown) =>
    typeof cell === "number" && !Number.isFinite(cell) ? String(cell) : cell,
  );
}

test("a zero that changes its sign is sent where the SELECT shows it, and conditions see it", async () => {
  await shop.run(`DROP TABLE IF EXISTS shop.floats;
    CREATE SHARED TABLE shop.floats (id INT PRIMARY KEY, d DOUBLE);
    INSERT INTO shop.floats VALUES (1, 0), (2, 'NaN')`);
  const queries = [
    "SELECT a.id, a.d FROM shop.floats a JOIN shop.floats b ON b.id = a.id",
    "SELECT a.id, a.d::TEXT AS d FROM shop.floats a JOIN shop.floats b ON b.id = a.id",
    "SELECT a.id FROM shop.floats a WHERE EXISTS (SELECT 1 FROM shop.floats b WHERE b.id = a.id AND b.d::TEXT = '-0')",
  ];
  for (const way of ["maintained", "evaluated"] as const) {
    await shop.run("UPDATE shop.floats SET d = 0 WHERE id = 1");
    const followers = queries.map((sql) => ({ sql, follower: shop.follow(sql, way) }));
    for (const { follower } of followers) await shop.current(follower);
    for (const value of ["d = '-0'", "d = 0", "d = 'NaN'", "d = '-0'"]) {
      await shop.run(`UPDATE shop.floats SET ${value} WHERE id = 1`);
      for (const { follower, sql } of followers) {
        const followed = (await shop.current(follower)).rows.map(({ _key, _seq, ...row }) => {
          return JSON.stringify(Object.values(row).slice(0, 2));
        });
        const selected = (await shop.run(sql)).map((row) => JSON.stringify(row));
        const shown = sql.includes("EXISTS")
          ? followed.map((row) => JSON.stringify((JSON.parse(row) as unknown[]).slice(0, 1)))
          : followed;
        expect([way, value, sql, shown.toSorted()]).toEqual([way, value, sql, selected.toSorted()]);
      }
    }
    // JSON does not distinguish between 0 and -0, so only the changes to and from NaN are sent.
    expect(followers[0]?.follower.changes.length).toBe(2);
    expect(followers[1]?.follower.changes.length).toBe(4);
    for (const { follower } of followers) follower.subscription?.close();
  }
  await shop.run("DROP TABLE shop.floats");
});

test("min and max of NUMERIC show the digits of the SELECT", async () => {
  await shop.run(`DROP TABLE IF EXISTS shop.digits;
    CREATE SHARED TABLE shop.digits (id INT PRIMARY KEY, g INT, v NUMERIC);
    INSERT INTO shop.digits VALUES (1, 1, 1.0), (2, 1, 1.00), (3, 2, 1.000)`);
  const sql = "SELECT g, min(v) AS least, max(v) AS most FROM shop.digits GROUP BY g ORDER BY g";
  const follower = await shop.current(shop.follow(sql, "maintained"));
  for (const change of [
    "UPDATE shop.digits SET v = 1.0000 WHERE id = 1",
    "UPDATE shop.digits SET g = 1 WHERE id = 3",
    "DELETE FROM shop.digits WHERE id = 2",
    "INSERT INTO shop.digits VALUES (4, 2, 1), (5, 2, 1.0)",
  ]) {
    await shop.run(change);
    const followed = rowsByKey(await shop.current(follower)).map(({ g, least, most }) => [
      g,
      least,
      most,
    ]);
    const selected = (await shop.run(sql)).map((row) => row.slice());
    const rows: unknown[] = followed;
    expect({ change, rows }).toEqual({ change, rows: selected });
  }
  follower.subscription?.close();
  await shop.run("DROP TABLE shop.digits");
});

test("an index in memory finds a row once although its key changes the sign of zero", async () => {
  await shop.run(`DROP TABLE IF EXISTS shop.places; DELETE FROM shop.orders;
    CREATE SHARED TABLE shop.places (id DOUBLE PRIMARY KEY, g INT);
    INSERT INTO shop.places VALUES (0, 1); INSERT INTO shop.orders VALUES (1, 1, 1), (2, 2, 2)`);
  const sql =
    "SELECT count(*) AS n, sum(o.total) AS s FROM shop.orders o JOIN shop.places p ON p.g = o.total";
  const maintained = shop.follow(sql, "maintained");
  const evaluated = shop.follow(sql, "evaluated");
  for (const [zero, total] of [
    ["'-0'", 1],
    ["0", 2],
    ["'-0'", 1],
  ] as const) {
    await shop.current(maintained);
    await shop.run(`BEGIN; DELETE FROM shop.places; INSERT INTO shop.places VALUES (${zero}, 1);
      UPDATE shop.orders SET total = ${total} WHERE id = 2; COMMIT`);
    expect(rowsByKey(await shop.current(maintained))).toEqual(
      rowsByKey(await shop.current(evaluated)),
    );
  }
  for (const follower of [maintained, evaluated]) follower.subscription?.close();
  await shop.run("DROP TABLE shop.places");
});

test("a client that resumes may be served by the other method", async () => {
  const sql = "SELECT u.name, o.total FROM shop.users u JOIN shop.orders o ON o.user_id = u.id";
  const held = await shop.current(shop.follow(sql, "maintained"));
  held.subscription?.close();
  await shop.run(
    "UPDATE shop.orders SET total = 6 WHERE id = 10; DELETE FROM shop.orders WHERE id = 11",
  );
  const options = { from_seq_id: held.seq ?? 0 };
  const back = await shop.current(shop.follow(sql, "evaluated", { held, options }));
  expect(rowsByKey(back)).toEqual(rowsByKey(await shop.current(shop.follow(sql, "evaluated"))));
});

test.each([
  [
    "SELECT sum(weight) FROM shop.items",
    "the query has sum of an inexact type, and all rows form a single group or partition",
  ],
  [
    "SELECT count(*) FROM shop.users a FULL JOIN shop.users b ON a.id = b.boss",
    "the query has a full join",
  ],
  [
    "SELECT id FROM shop.users UNION ALL SELECT sum(weight) FROM shop.items",
    "a branch of the set operation may return different rows when it is evaluated again",
  ],
  [
    "SELECT row_number() OVER (ORDER BY id) FROM shop.users",
    "the query has window functions, and all rows form a single group or partition",
  ],
  [
    "SELECT n % 2, sum(weight) FROM shop.items GROUP BY 1",
    "the query has sum of an inexact type, and no key or index can find the rows of a group or partition",
  ],
  ["SELECT id FROM shop.users ORDER BY id OFFSET 2", "the query has OFFSET without LIMIT"],
  [
    "SELECT id FROM shop.users LIMIT 1",
    "the query has LIMIT, but its sort order does not distinguish all rows",
  ],
])("%s is refused with the way maintained, and names the reason", (sql, reason) => {
  let refusal: unknown;
  try {
    shop.follow(sql, "maintained");
  } catch (error) {
    refusal = error;
  }
  expect(refusal).toBeInstanceOf(SubscriptionError);
  expect(refusal instanceof SubscriptionError && refusal.response).toMatchObject({
    code: "UNSUPPORTED",
    message: `Cannot maintain the result: ${reason}`,
  });
});

test.each([
  ["SELECT count(*) FROM shop.users", { way: "fast" }],
  ["SELECT id FROM shop.users", { way: "evaluated" }],
])("%s with %j is refused as INVALID_OPTIONS", (sql, options) => {
  const spec = { id: "q", sql, options } as unknown as SubscriptionSpec;
  const subscribe = (): unknown =>
    shop.database.live.subscribe({ principal: shop.root, spec, sink: new ResultFollower() });
  expect(subscribe).toThrow("way");
});
