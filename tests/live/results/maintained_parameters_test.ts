/**
 * Tests maintained queries with the same SQL and different parameters. Each subscriber gets the
 * rows for its own parameters, and a change is processed only for the subscribers that it affects.
 */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import { testThoroughly } from "../../support/requirements.ts";
import { shareOf } from "../../support/thoroughness.ts";
import { COMMITS, rowsByKey, Shop } from "./shop.ts";

let shop: Shop;

beforeAll(async () => {
  shop = await Shop.open();
});

beforeEach(() => shop.renew());

afterAll(() => shop.close());

/** Returns the items that a place has in stock. Each subscriber follows one place. */
const IN_STOCK = `SELECT i.id, i.n FROM shop.items i WHERE EXISTS (SELECT 1 FROM shop.stock s
  WHERE s.product_id = i.product_id AND s.place = CASE $1 WHEN 1 THEN 'rome' ELSE 'oslo' END)`;

const QUERIES_WITH_VALUES: readonly (readonly [what: string, sql: string])[] = [
  [
    "joined rows of a user",
    "SELECT o.id, i.n FROM shop.orders o JOIN shop.items i ON i.order_id = o.id WHERE o.user_id = $1",
  ],
  [
    "rows of a user that another table finds",
    "SELECT o.id FROM shop.users u JOIN shop.orders o ON o.user_id = u.id WHERE $1 = u.id AND o.total > 2",
  ],
  [
    "a left join",
    "SELECT o.id, i.id AS i FROM shop.orders o LEFT JOIN shop.items i ON i.order_id = o.id WHERE o.user_id = $1",
  ],
  [
    "EXISTS",
    "SELECT o.id FROM shop.orders o WHERE user_id = $1 AND EXISTS (SELECT 1 FROM shop.items i WHERE i.order_id = o.id)",
  ],
  [
    "EXISTS of a row of the subscriber",
    "SELECT i.id, i.n FROM shop.items i WHERE EXISTS (SELECT 1 FROM shop.orders o WHERE o.id = i.order_id AND o.user_id = $1)",
  ],
  ["EXISTS of a row with a composite key", IN_STOCK],
  [
    "EXISTS of any number of rows of the subscriber",
    "SELECT o.id FROM shop.orders o WHERE EXISTS (SELECT 1 FROM shop.items i WHERE i.order_id = o.id AND i.n = $1)",
  ],
  [
    "IN with a row of the subscriber",
    "SELECT o.id FROM shop.orders o WHERE o.user_id IN (SELECT u.id FROM shop.users u WHERE u.boss = $1) AND o.total > 2",
  ],
  [
    "groups of rows that EXISTS finds",
    `SELECT i.order_id, count(*) AS n FROM shop.items i
     WHERE EXISTS (SELECT 1 FROM shop.orders o WHERE o.id = i.order_id AND o.user_id = $1) GROUP BY i.order_id`,
  ],
  ["groups", "SELECT count(*) AS n, sum(o.total) AS total FROM shop.orders o WHERE o.user_id = $1"],
  ["a window", "SELECT id, total FROM shop.orders WHERE user_id = $1 ORDER BY total DESC LIMIT 2"],
  [
    "a value in the select list",
    "SELECT o.id, o.total + $1 AS more FROM shop.orders o JOIN shop.users u ON u.id = o.user_id WHERE u.id = $1",
  ],
  [
    "a value that finds a row of a join",
    "SELECT o.id FROM shop.orders o LEFT JOIN shop.users u ON u.id = o.user_id AND u.boss = $1 WHERE u.id IS NULL",
  ],
];

describe("a live query follows its own parameters next to others with the same text", () => {
  test.each(shareOf(QUERIES_WITH_VALUES, { oneOf: 8 }))(
    "each subscriber has the rows for its own parameters: %s",
    async (_, sql) => {
      const followers = await shop.followEach(sql, [1, 2, 3, 4, null]);
      for (const [what, commit] of COMMITS) {
        await shop.run(commit);
        for (const [index, [maintained, evaluated]] of followers.entries()) {
          await shop.current(maintained);
          await shop.current(evaluated);
          const shown = [what, index];
          expect([shown, rowsByKey(maintained)]).toEqual([shown, rowsByKey(evaluated)]);
        }
      }
    },
  );
});

test("a change is not processed for subscribers that it does not concern", async () => {
  const sql =
    "SELECT o.id, i.n FROM shop.orders o JOIN shop.items i ON i.order_id = o.id WHERE o.user_id = $1";
  const followers = await shop.followEach(sql, [1, 2]);
  await shop.run("INSERT INTO shop.items VALUES (150, 12, 1, 7, 1)");
  for (const [maintained] of followers) await shop.current(maintained);
  expect(await shop.stepsOf(sql, [{ number: "1" }])).toEqual([1, 0]);
  expect(await shop.stepsOf(sql, [{ number: "2" }])).toEqual([1, 1]);
});

test("subscribers share the changes that a test of one row for each of them divides", async () => {
  const lines = await shop.run(`EXPLAIN SUBSCRIBE TO ${IN_STOCK}`, [{ number: "1" }]);
  // A plan for a single subscriber would find that subscriber's row by its entire key.
  expect(lines.flat()).toContain("    a change to items: finds stock by index stock_pkey");
});

test("a change to a column that EXISTS does not read is not followed", async () => {
  const [[rome] = []] = await shop.followEach(IN_STOCK, [1]);
  const params = [{ number: "1" }];
  const before = await shop.stepsOf(IN_STOCK, params);
  await shop.run("UPDATE shop.stock SET n = 99 WHERE place = 'rome'");
  if (rome !== undefined) await shop.current(rome);
  expect(await shop.stepsOf(IN_STOCK, params)).toEqual(before);
  await shop.run("DELETE FROM shop.stock WHERE product_id = 1 AND place = 'rome'");
  if (rome !== undefined) await shop.current(rome);
  expect(await shop.stepsOf(IN_STOCK, params)).not.toEqual(before);
});

testThoroughly("only the subscribers whose changes are too many are evaluated again", async () => {
  await shop.run(
    "INSERT INTO shop.items SELECT 1000 + n, NULL, 3, n, 0 FROM generate_series(0, 20000) AS g(n)",
  );
  const [[rome] = [], [oslo] = []] = await shop.followEach(IN_STOCK, [1, 2]);
  await shop.run("INSERT INTO shop.stock VALUES (3, 'oslo', 1)");
  await shop.run("UPDATE shop.items SET n = 77 WHERE id = 1000");
  for (const each of [rome, oslo]) {
    if (each !== undefined) await shop.current(each);
    expect(each?.rows.find(({ id }) => Number(id) === 1000)).toMatchObject({ n: 77 });
  }
  // The place 'oslo' now has all items of product 3. Previously, it had all items of product 1.
  expect(oslo?.rows.length).toBe(20_006);
  const [evaluationsOfRome] = await shop.stepsOf(IN_STOCK, [{ number: "1" }]);
  const [evaluationsOfOslo] = await shop.stepsOf(IN_STOCK, [{ number: "2" }]);
  expect([evaluationsOfRome, evaluationsOfOslo]).toEqual([1, 2]);
});

test("a value that fails for one subscriber does not affect the subscribers of the same commit", async () => {
  const sql =
    "SELECT o.user_id, max(100 / o.total) AS share FROM shop.orders o WHERE o.user_id = $1 GROUP BY o.user_id";
  const [one, two] = [1, 2].map((user) => shop.follow(sql, undefined, { params: [user] }));
  if (one === undefined || two === undefined) throw new Error("a subscriber is missing");
  await shop.current(one);
  await shop.current(two);
  await shop.run("INSERT INTO shop.orders VALUES (50, 1, 0), (51, 2, 2)");
  await shop.current(two);
  expect(two.rows).toMatchObject([{ user_id: 2, share: 50 }]);
  expect(await shop.stepsOf(sql, [{ number: "2" }])).toEqual([1, 1]);
  expect(shop.current(one)).rejects.toThrow("Cannot divide by zero");
});

function nextTurn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}

test("other work runs while many changes are followed, and subscribers come and go meanwhile", async () => {
  const sql =
    "SELECT o.id, i.id AS item, i.n FROM shop.orders o JOIN shop.items i ON i.order_id = o.id WHERE o.user_id = $1";
  const users = [20, 21, 22, 23];
  await shop.run(`INSERT INTO shop.orders SELECT 1000 + n, 20 + n % 4, n FROM generate_series(0, 899) AS g(n);
    INSERT INTO shop.items SELECT 1000 + n, 1000 + n, 1, n, 0 FROM generate_series(0, 899) AS g(n)`);
  const first = await shop.followEach(sql, users.slice(0, 3));
  const [[gone] = [], [kept] = []] = first;
  const changesBefore = kept?.changes.length ?? 0;
  await shop.run("UPDATE shop.items SET n = n + 1 WHERE id >= 1000");
  let turns = 0;
  for (; kept?.changes.length === changesBefore; turns += 1) await nextTurn();
  expect(turns).toBeGreaterThan(10);
  await shop.run("UPDATE shop.items SET n = n + 1 WHERE id >= 1000");
  for (let turn = 0; turn < 6; turn += 1) await nextTurn();
  gone?.subscription?.close();
  const late = shop.follow(sql, undefined, { params: [23] });
  const other = shop.follow(sql, undefined, { params: [22] });
  await shop.run("UPDATE shop.items SET n = n + 1 WHERE id = 1002");
  for (const each of [kept, late, other]) await shop.current(each ?? late);
  for (const [follower, user] of [
    [kept, 21],
    [late, 23],
    [other, 22],
  ] as const) {
    const rows: unknown[][] = (follower?.rows ?? []).map(({ id, item, n }) => [id, item, n]);
    const select = await shop.run(`${sql.replace("$1", String(user))} ORDER BY 1, 2`);
    expect(rows.toSorted(([left], [right]) => Number(left) - Number(right))).toEqual(
      select.map((row) => row.slice()),
    );
  }
});

const FOUND_BY = [
  ["an index", "SELECT 1"],
  ["an index in memory", "DROP INDEX shop.items_order"],
] as const;

test.each(shareOf(FOUND_BY, { oneOf: 2 }))(
  "other work runs while many partitions found by %s are computed again, and subscribers come and go meanwhile",
  async (_, prepare) => {
    await shop.run(prepare);
    const sql = `SELECT i.id, sum(i.n) OVER (PARTITION BY i.order_id ORDER BY i.id) AS n FROM shop.items i
    JOIN shop.orders o ON o.id = i.order_id WHERE o.user_id = $1`;
    await shop.run(`INSERT INTO shop.orders SELECT 1000 + n, CASE WHEN n < 10 THEN 20 ELSE 21 END, n FROM generate_series(0, 199) AS g(n);
    INSERT INTO shop.items SELECT 1000 + n, 1000 + n % 200, 1, n, 0 FROM generate_series(0, 799) AS g(n)`);
    const [[gone] = [], [kept] = []] = await shop.followEach(sql, [20, 21]);
    // The statement changes items of both users.
    const change = "UPDATE shop.items SET n = n + 1 WHERE id BETWEEN 1000 AND 1199";
    const changesBefore = kept?.changes.length ?? 0;
    await shop.run(change);
    let turns = 0;
    for (; kept?.changes.length === changesBefore; turns += 1) await nextTurn();
    expect(turns).toBeGreaterThan(10);
    await shop.run(change);
    for (let turn = 0; turn < 20; turn += 1) await nextTurn();
    gone?.subscription?.close();
    const late = shop.follow(sql, undefined, { params: [21] });
    await shop.run("UPDATE shop.items SET n = 5 WHERE id = 1101");
    for (const each of [kept, late]) {
      const { rows } = await shop.current(each ?? late);
      const select = await shop.run(`${sql.replace("$1", "21")} ORDER BY 1`);
      const values: unknown[][] = rows.map(({ id, n }) => [id, n]);
      expect(values.toSorted(([left], [right]) => Number(left) - Number(right))).toEqual(
        select.map((row) => row.slice()),
      );
    }
  },
);
