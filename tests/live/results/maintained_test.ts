/**
 * Tests queries that are maintained from the changes to their tables. After each commit, the rows
 * must equal the result of the SELECT, and have the same keys as in a query that is evaluated
 * again.
 */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Principal } from "../../../src/auth/mod.ts";
import type { Database } from "../../../src/database.ts";
import { SubscriptionError } from "../../../src/live/mod.ts";
import type { SubscriptionSpec, WireRow } from "../../../src/protocol/mod.ts";
import type { SqlParameter } from "../../../src/sql/mod.ts";
import { openAt, SMALL_FILES } from "../../support/database.ts";
import { principalFor } from "../../support/principal_for.ts";
import { testThoroughly } from "../../support/requirements.ts";
import { ResultFollower } from "../../support/result_follower.ts";
import { shareOf } from "../../support/thoroughness.ts";

type Way = "maintained" | "evaluated";

let directory: string;
let database: Database;
let root: Principal;

beforeAll(async () => {
  directory = mkdtempSync(join(tmpdir(), "tidemark-maintained-"));
  database = await openAt(directory, { config: SMALL_FILES });
  root = principalFor(database, "root");
  await run("CREATE NAMESPACE shop");
});

afterAll(async () => {
  await database.close();
  rmSync(directory, { recursive: true, force: true });
});

beforeEach(async () => {
  await run(`DROP VIEW IF EXISTS shop.large;
    DROP TABLE IF EXISTS shop.items; DROP TABLE IF EXISTS shop.orders;
    DROP TABLE IF EXISTS shop.products; DROP TABLE IF EXISTS shop.stock; DROP TABLE IF EXISTS shop.users;
    CREATE SHARED TABLE shop.users (id INT PRIMARY KEY, name TEXT, city TEXT, boss INT);
    CREATE SHARED TABLE shop.orders (id INT PRIMARY KEY, user_id INT, total INT);
    CREATE SHARED TABLE shop.products (id INT PRIMARY KEY, name TEXT NOT NULL, price DECIMAL(10,2));
    CREATE SHARED TABLE shop.items (id INT PRIMARY KEY, order_id INT, product_id INT, n INT, weight DOUBLE);
    CREATE SHARED TABLE shop.stock (product_id INT, place TEXT, n INT, PRIMARY KEY (product_id, place));
    CREATE INDEX users_city ON shop.users (city); CREATE INDEX users_boss ON shop.users (boss, name);
    CREATE INDEX orders_user ON shop.orders (user_id);
    CREATE INDEX items_order ON shop.items (order_id);
    CREATE INDEX items_product ON shop.items (product_id);
    CREATE VIEW shop.large AS SELECT id, user_id FROM shop.orders WHERE total >= 10;
    INSERT INTO shop.users VALUES (1, 'ada', 'rome', NULL), (2, 'bo', 'oslo', 1), (3, 'cy', 'rome', 1), (4, NULL, NULL, 2);
    INSERT INTO shop.orders VALUES (10, 1, 5), (11, 1, 20), (12, 2, 30), (13, NULL, 7), (14, 9, 1);
    INSERT INTO shop.stock VALUES (1, 'rome', 3), (1, 'oslo', 4), (3, 'rome', 0);
    INSERT INTO shop.products VALUES (1, 'pen', 1.50), (2, 'ink', 4.25), (3, 'cup', NULL);
    INSERT INTO shop.items VALUES (100, 10, 1, 2, 0.5), (101, 10, 2, 1, 1.5), (102, 11, 1, 4, 0.5),
      (103, 12, 3, 1, 2.5), (104, 12, 3, 1, 2.5), (105, NULL, 1, NULL, NULL)`);
});

async function run(
  sql: string,
  params: readonly SqlParameter[] = [],
): Promise<readonly (readonly unknown[])[]> {
  const { error, results } = await database.sql.execute(root, { sql, params });
  expect(error).toBeUndefined();
  return results.at(-1)?.rows ?? [];
}

function follow(
  sql: string,
  way: Way | undefined,
  { held, ...given }: Partial<SubscriptionSpec> & { held?: ResultFollower } = {},
): ResultFollower {
  const follower = new ResultFollower(held === undefined ? {} : { held });
  const { options = {} } = given;
  const spec = { id: "q", sql, ...given, options: { ...options, ...(way && { way }) } };
  follower.subscription = database.live.subscribe({ principal: root, spec, sink: follower });
  return follower;
}

async function current(follower: ResultFollower): Promise<ResultFollower> {
  await follower.reaches(database.store.visibleSeq);
  return follower;
}

/** Returns the rows of a follower, without `_seq`, in the order of their keys. */
function rowsByKey({ rows }: ResultFollower): WireRow[] {
  return rows
    .map(({ _seq, ...row }) => row)
    .toSorted((left, right) => (String(left["_key"]) < String(right["_key"]) ? -1 : 1));
}

/** Returns the number of evaluations and of incremental steps that EXPLAIN SUBSCRIBE TO shows. */
async function stepsOf(sql: string, params: readonly SqlParameter[] = []): Promise<number[]> {
  const lines = await run(`EXPLAIN SUBSCRIBE TO ${sql}`, params);
  const line = lines.map(([text]) => String(text)).find((text) => text.includes("so far"));
  return (line?.match(/\d+/g) ?? []).map(Number);
}

const COMMITS: readonly (readonly [what: string, sql: string])[] = [
  ["an insert", "INSERT INTO shop.orders VALUES (20, 3, 15)"],
  ["rows that find it", "INSERT INTO shop.items VALUES (110, 20, 2, 3, 1), (111, 20, 2, 3, 1)"],
  ["an update of a value", "UPDATE shop.users SET name = 'eva' WHERE id = 1"],
  ["a moved key", "UPDATE shop.orders SET user_id = 2 WHERE id = 10"],
  ["a key that becomes NULL", "UPDATE shop.items SET order_id = NULL WHERE id = 102"],
  ["a key that was NULL", "UPDATE shop.orders SET user_id = 4, total = 99 WHERE id = 13"],
  [
    "both sides in one commit",
    `BEGIN; INSERT INTO shop.users VALUES (9, 'ida', 'rome', 3); UPDATE shop.orders SET total = 11 WHERE id = 14;
     INSERT INTO shop.items VALUES (120, 14, 1, 1, 3); DELETE FROM shop.items WHERE id = 100; COMMIT`,
  ],
  [
    "rows that come and go in one commit",
    "BEGIN; INSERT INTO shop.orders VALUES (30, 1, 1); DELETE FROM shop.orders WHERE id = 30; COMMIT",
  ],
  ["duplicates", "INSERT INTO shop.items VALUES (130, 12, 3, 1, 2.5), (131, 12, 3, 1, 2.5)"],
  ["one duplicate less", "DELETE FROM shop.items WHERE id = 130"],
  ["a key of a joined table", "UPDATE shop.users SET boss = 2, city = 'oslo' WHERE id = 3"],
  ["a referenced row that goes", "DELETE FROM shop.users WHERE id = 2"],
  [
    "swapped keys",
    `BEGIN; UPDATE shop.orders SET user_id = 3 WHERE id = 11; UPDATE shop.orders SET user_id = 1 WHERE id = 20;
     UPDATE shop.users SET name = NULL WHERE id IN (1, 3); COMMIT`,
  ],
  [
    "rows of a composite key",
    "INSERT INTO shop.stock VALUES (2, 'rome', 1); DELETE FROM shop.stock WHERE product_id = 1 AND place = 'rome'",
  ],
  ["a price", "UPDATE shop.products SET price = 2 WHERE id = 3"],
  ["many deletes", "DELETE FROM shop.items WHERE n = 1"],
  ["a referenced row that returns", "INSERT INTO shop.users VALUES (2, 'bo', 'oslo', 9)"],
  ["everything", "DELETE FROM shop.items; DELETE FROM shop.orders"],
  ["a new beginning", "INSERT INTO shop.orders VALUES (10, 1, 5), (11, 2, 5)"],
];

const QUERIES: readonly (readonly [what: string, sql: string])[] = [
  [
    "an inner join",
    "SELECT o.id, u.name FROM shop.orders o JOIN shop.users u ON u.id = o.user_id WHERE o.total > 5",
  ],
  [
    "a chain of joins",
    `SELECT u.name, p.name, i.n * p.price AS price FROM shop.users u JOIN shop.orders o ON o.user_id = u.id
     JOIN shop.items i ON i.order_id = o.id JOIN shop.products p ON p.id = i.product_id`,
  ],
  [
    "a join in WHERE, with an expression",
    "SELECT upper(u.name), o.total + i.n FROM shop.users u, shop.orders o, shop.items i WHERE o.user_id = u.id AND i.order_id = o.id AND (u.city = 'rome' OR i.n > 2)",
  ],
  [
    "a self join",
    "SELECT a.name, b.name FROM shop.users a JOIN shop.users b ON b.boss = a.id WHERE a.id <> b.id",
  ],
  [
    "rows without a key of their own",
    "SELECT i.product_id FROM (SELECT order_id, product_id FROM shop.items) i JOIN shop.orders o ON o.id = i.order_id",
  ],
  ["a view", "SELECT l.id, u.city FROM shop.large l JOIN shop.users u ON u.id = l.user_id"],
  [
    "a left join",
    "SELECT u.id, u.name, o.id AS o, o.total FROM shop.users u LEFT JOIN shop.orders o ON o.user_id = u.id AND o.total > 5",
  ],
  [
    "two left joins and a condition on the missing",
    `SELECT o.id, u.name, i.id AS item FROM shop.orders o LEFT JOIN shop.users u ON u.id = o.user_id
     LEFT JOIN shop.items i ON i.order_id = o.id WHERE u.city IS DISTINCT FROM 'oslo'`,
  ],
  [
    "a left join of a join",
    `SELECT o.id, p.name FROM shop.orders o
     LEFT JOIN (shop.items i JOIN shop.products p ON p.id = i.product_id) ON i.order_id = o.id`,
  ],
  [
    "a right join",
    "SELECT o.id, u.id AS u FROM shop.orders o RIGHT JOIN shop.users u ON u.id = o.user_id",
  ],
  [
    "EXISTS",
    "SELECT id, total FROM shop.orders o WHERE EXISTS (SELECT 1 FROM shop.items i WHERE i.order_id = o.id AND i.n > 1)",
  ],
  [
    "NOT EXISTS",
    "SELECT id, name FROM shop.users u WHERE NOT EXISTS (SELECT 1 FROM shop.orders o WHERE o.user_id = u.id)",
  ],
  [
    "EXISTS over a join",
    `SELECT u.id FROM shop.users u WHERE EXISTS (SELECT 1 FROM shop.orders o JOIN shop.items i ON i.order_id = o.id
     WHERE o.user_id = u.id AND i.product_id = 3)`,
  ],
  [
    "IN",
    "SELECT id, total FROM shop.orders WHERE user_id IN (SELECT id FROM shop.users WHERE city = 'rome')",
  ],
  [
    "NOT IN of what is never NULL",
    "SELECT id, name FROM shop.products WHERE id NOT IN (SELECT id FROM shop.users WHERE city = 'rome')",
  ],
  [
    "a left join with EXISTS",
    `SELECT u.id, o.id AS o FROM shop.users u LEFT JOIN shop.orders o ON o.user_id = u.id
     WHERE EXISTS (SELECT 1 FROM shop.users b WHERE b.boss = u.id)`,
  ],
  [
    "counters",
    "SELECT count(*) AS n, count(user_id) AS u, sum(total), avg(total) FROM shop.orders",
  ],
  [
    "groups",
    "SELECT user_id, count(*) AS n, sum(total) AS total, min(total), max(total), avg(total) FROM shop.orders GROUP BY user_id",
  ],
  [
    "groups with HAVING and an expression",
    "SELECT user_id % 2 AS odd, sum(total) * 10 + count(*) AS score FROM shop.orders GROUP BY user_id % 2 HAVING count(*) > 1",
  ],
  [
    "groups of a join",
    `SELECT p.name, sum(i.n) AS n, sum(i.n * p.price) AS price, bool_or(i.n > 2) AS any, bool_and(i.n > 2) AS all_of
     FROM shop.products p JOIN shop.items i ON i.product_id = p.id GROUP BY p.name`,
  ],
  [
    "groups of a left join",
    "SELECT u.id, u.name, count(o.id) AS orders FROM shop.users u LEFT JOIN shop.orders o ON o.user_id = u.id GROUP BY u.id, u.name",
  ],
  [
    "groups with FILTER",
    "SELECT user_id, count(*) FILTER (WHERE total > 10) AS large, sum(total) FILTER (WHERE total <= 10) FROM shop.orders GROUP BY user_id",
  ],
  [
    "groups without an output for the key",
    "SELECT count(*) FROM shop.items GROUP BY product_id, n",
  ],
  ["DISTINCT", "SELECT DISTINCT n, product_id FROM shop.items"],
  [
    "DISTINCT with constants",
    "SELECT DISTINCT n, 'b' AS b, 7 AS seven, product_id FROM shop.items",
  ],
  [
    "DISTINCT over a join",
    "SELECT DISTINCT u.city FROM shop.users u JOIN shop.orders o ON o.user_id = u.id",
  ],
  ["a window of rows", "SELECT id, total FROM shop.orders ORDER BY total DESC LIMIT 3"],
  [
    "a window behind others",
    "SELECT id, n FROM shop.items ORDER BY n NULLS FIRST LIMIT 2 OFFSET 3",
  ],
  [
    "a window of a join",
    "SELECT u.name, o.total FROM shop.orders o JOIN shop.users u ON u.id = o.user_id ORDER BY o.total DESC, u.name LIMIT 2",
  ],
  [
    "a window of groups",
    "SELECT product_id, sum(n) AS n FROM shop.items GROUP BY product_id ORDER BY n DESC NULLS LAST LIMIT 2",
  ],
  ["a window of different values", "SELECT DISTINCT total FROM shop.orders ORDER BY total LIMIT 2"],
  ["a window of all columns", "SELECT * FROM shop.orders ORDER BY total DESC LIMIT 3"],
  [
    "a join that no index serves",
    "SELECT p.id, i.id AS item FROM shop.products p JOIN shop.items i ON i.n = p.id",
  ],
  [
    "a left join that no index serves",
    "SELECT u.id, o.id AS o FROM shop.users u LEFT JOIN shop.orders o ON o.total = u.id AND o.user_id IS NOT NULL",
  ],
  [
    "NOT EXISTS that no index serves",
    "SELECT id FROM shop.users u WHERE NOT EXISTS (SELECT 1 FROM shop.items i WHERE i.n = u.boss)",
  ],
  [
    "the first column of a key",
    "SELECT p.id, s.place FROM shop.products p JOIN shop.stock s ON s.product_id = p.id",
  ],
  [
    "window functions over partitions",
    `SELECT id, row_number() OVER (PARTITION BY user_id ORDER BY total, id) AS place,
     sum(total) OVER (PARTITION BY user_id) AS all_of FROM shop.orders`,
  ],
  [
    "window functions over a join",
    `SELECT i.id, o.user_id, lag(i.n) OVER (PARTITION BY i.order_id ORDER BY i.id) AS before
     FROM shop.items i JOIN shop.orders o ON o.id = i.order_id`,
  ],
  [
    "window functions over groups",
    "SELECT user_id, total, count(*) AS n, rank() OVER (PARTITION BY user_id ORDER BY total) AS place FROM shop.orders GROUP BY user_id, total",
  ],
  [
    "sums of doubles",
    "SELECT order_id, sum(weight) AS weight, avg(weight) AS mean FROM shop.items GROUP BY order_id",
  ],
  [
    "aggregates of different values and in an order",
    "SELECT order_id, count(DISTINCT n) AS n, string_agg(id::text, ',' ORDER BY id) AS ids FROM shop.items GROUP BY order_id HAVING count(*) > 0",
  ],
  [
    "a window of groups with different values",
    "SELECT order_id, count(DISTINCT n) AS n FROM shop.items GROUP BY order_id ORDER BY n DESC LIMIT 2",
  ],
  [
    "DISTINCT ON",
    "SELECT DISTINCT ON (user_id) user_id, id, total FROM shop.orders ORDER BY user_id, total DESC, id",
  ],
  [
    "the best row of each",
    `SELECT u.id, u.name, l.id AS o, l.total FROM shop.users u
     LEFT JOIN LATERAL (SELECT id, total FROM shop.orders WHERE user_id = u.id ORDER BY total DESC, id LIMIT 1) l ON TRUE`,
  ],
  [
    "the best two rows of each, with a condition",
    `SELECT u.id, l.id AS o FROM shop.users u
     JOIN LATERAL (SELECT id, total FROM shop.orders WHERE user_id = u.id ORDER BY total DESC, id LIMIT 2) l ON l.total > 5`,
  ],
  [
    "LATERAL with a join and an aggregate",
    `SELECT u.id, l.n, l.most FROM shop.users u CROSS JOIN LATERAL
     (SELECT count(*) AS n, max(i.n) AS most FROM shop.orders o JOIN shop.items i ON i.order_id = o.id WHERE o.user_id = u.id) l`,
  ],
  [
    "groups of LATERAL",
    `SELECT l.total, count(*) AS n FROM shop.users u
     CROSS JOIN LATERAL (SELECT total FROM shop.orders WHERE user_id = u.id ORDER BY id LIMIT 1) l GROUP BY l.total`,
  ],
  [
    "queries in expressions",
    `SELECT u.id, (SELECT count(*) FROM shop.orders o WHERE o.user_id = u.id) AS n,
     EXISTS (SELECT 1 FROM shop.users b WHERE b.boss = u.id) AS is_boss FROM shop.users u`,
  ],
  [
    "a query in a condition",
    "SELECT id, name FROM shop.users u WHERE (SELECT sum(total) FROM shop.orders o WHERE o.user_id = u.id) > 10 OR u.city = 'oslo'",
  ],
  [
    "a join with groups",
    `SELECT u.id, g.n, g.total FROM (SELECT user_id, count(*) AS n, sum(total) AS total FROM shop.orders GROUP BY user_id) g
     JOIN shop.users u ON u.id = g.user_id`,
  ],
  [
    "a left join with groups of WITH",
    `WITH g AS (SELECT order_id, sum(n) AS n FROM shop.items GROUP BY order_id)
     SELECT o.id, g.n FROM shop.orders o LEFT JOIN g ON g.order_id = o.id AND g.n > 1`,
  ],
  [
    "groups of a join with groups",
    `SELECT g.n, count(*) AS users FROM shop.users u
     JOIN (SELECT user_id, count(*) AS n FROM shop.orders GROUP BY user_id HAVING count(*) > 0) g ON g.user_id = u.id GROUP BY g.n`,
  ],
  [
    "UNION ALL",
    "SELECT id, total FROM shop.orders WHERE total > 5 UNION ALL SELECT i.order_id, i.n FROM shop.items i JOIN shop.orders o ON o.id = i.order_id",
  ],
  [
    "a full join",
    "SELECT a.id, b.id AS boss_of, b.name FROM shop.users a FULL JOIN shop.users b ON a.id = b.boss",
  ],
  [
    "a full join with conditions",
    "SELECT o.id, u.name FROM shop.orders o FULL JOIN shop.users u ON u.id = o.user_id AND o.total > 5 WHERE coalesce(u.city, 'rome') = 'rome'",
  ],
  [
    "a full join of a join, in a window",
    `SELECT o.id, u.name, p.place FROM (shop.orders o JOIN shop.users u ON u.id = o.user_id)
     FULL JOIN shop.stock p ON p.product_id = u.id ORDER BY p.n DESC NULLS LAST LIMIT 4`,
  ],
  [
    "a full join with USING",
    `SELECT product_id, s.place, i.id, i.n FROM shop.stock s FULL JOIN shop.items i USING (product_id)
     WHERE product_id IS DISTINCT FROM 2`,
  ],
  [
    "a natural full join in a window",
    "SELECT id, u.city, o.total FROM shop.users u NATURAL FULL JOIN shop.orders o ORDER BY id DESC LIMIT 3",
  ],
  [
    "a join by an inequality",
    "SELECT p.id, i.id FROM shop.products p JOIN shop.items i ON i.n > p.id",
  ],
  [
    "a left join by a range, and a table that is found by its key",
    `SELECT o.id, p.name, s.id AS below FROM shop.items i JOIN shop.orders o ON o.id = i.order_id
     LEFT JOIN shop.products p ON p.price BETWEEN i.weight AND o.total LEFT JOIN shop.users s ON s.id < p.id`,
  ],
  [
    "a product",
    "SELECT u.id, p.id, u.name || p.name AS both FROM shop.users u CROSS JOIN shop.products p",
  ],
  [
    "groups of a join by an inequality",
    "SELECT u.id, count(o.id), max(o.total) FROM shop.users u LEFT JOIN shop.orders o ON o.total > u.id * 5 GROUP BY u.id",
  ],
  [
    "EXISTS and NOT EXISTS by inequalities",
    `SELECT id FROM shop.users u WHERE EXISTS (SELECT 1 FROM shop.orders o WHERE o.total > 5 * u.id)
     AND NOT EXISTS (SELECT 1 FROM shop.items i WHERE i.n >= u.id AND i.weight > 2)`,
  ],
  [
    "a full join by an inequality, in a window",
    "SELECT a.id, b.place FROM shop.users a FULL JOIN shop.stock b ON a.id >= b.n ORDER BY a.id DESC, b.place, b.product_id LIMIT 5",
  ],
  [
    "sums of doubles in groups that no index finds",
    "SELECT n, sum(weight), avg(weight), count(*) FROM shop.items GROUP BY n HAVING count(*) > 0",
  ],
  [
    "sums of NUMERIC in groups of a join that no index finds",
    `SELECT p.name, sum(p.price::numeric / 3), avg(i.n::numeric) FROM shop.items i
     JOIN shop.products p ON p.id = i.product_id WHERE i.id > 100 GROUP BY p.name`,
  ],
  [
    "other aggregates in groups of NULL and not NULL, which no index finds",
    "SELECT name, array_agg(id ORDER BY id DESC), count(DISTINCT city) FILTER (WHERE id > 1) FROM shop.users GROUP BY name",
  ],
  [
    "windows over partitions that no index finds",
    `SELECT i.id, rank() OVER w, sum(i.n) OVER (PARTITION BY i.n, o.total ORDER BY i.id ROWS 1 PRECEDING)
     FROM shop.items i JOIN shop.orders o ON o.id = i.order_id WINDOW w AS (PARTITION BY i.n ORDER BY o.total, i.id)`,
  ],
  [
    "windows over groups that no index finds",
    "SELECT n, product_id, count(*), row_number() OVER (PARTITION BY n ORDER BY count(*) DESC, product_id) FROM shop.items GROUP BY n, product_id",
  ],
  [
    "DISTINCT ON that no index serves",
    "SELECT DISTINCT ON (n) n, id, order_id FROM shop.items WHERE product_id IS NOT NULL ORDER BY n, weight DESC, id",
  ],
  [
    "the first groups by a sum of NUMERIC that no index finds",
    "SELECT n, sum(order_id::numeric / 4) AS total FROM shop.items GROUP BY n ORDER BY total DESC NULLS LAST, n LIMIT 2",
  ],
  [
    "UNION of numbers that no index finds",
    "SELECT n, count(DISTINCT product_id) AS products FROM shop.items GROUP BY n UNION SELECT id, id::bigint FROM shop.users",
  ],
  [
    "UNION of groups",
    "SELECT user_id, count(*) AS n FROM shop.orders GROUP BY user_id UNION SELECT id, 1 FROM shop.users",
  ],
  [
    "UNION ALL of groups and windows",
    `SELECT user_id, sum(total) AS n FROM shop.orders GROUP BY user_id HAVING count(*) > 1
     UNION ALL SELECT order_id, max(n) FROM shop.items GROUP BY order_id`,
  ],
  [
    "UNION ALL of counts of all rows",
    `SELECT 'users' AS what, count(*) AS n, max(name) AS last FROM shop.users
     UNION ALL SELECT 'orders', count(*), NULL FROM shop.orders WHERE total > 5
     UNION ALL SELECT 'items', sum(n), min(p.name) FROM shop.items i JOIN shop.products p ON p.id = i.product_id`,
  ],
  [
    "UNION of a number of all rows with other rows, in a window",
    `WITH big AS (SELECT id FROM shop.orders WHERE total > 5)
     SELECT id FROM shop.users UNION SELECT count(*) + 1 FROM big HAVING count(*) > 1 ORDER BY 1 DESC LIMIT 3`,
  ],
  [
    "EXCEPT of groups of computed values",
    "SELECT id % 3 AS k, count(*) AS n FROM shop.users GROUP BY 1 EXCEPT SELECT total % 4, count(*) FROM shop.orders GROUP BY 1",
  ],
  [
    "UNION ALL of kept groups and groups that are computed again",
    `SELECT n % 2 AS k, count(*) AS n FROM shop.items GROUP BY 1
     UNION ALL SELECT order_id, count(DISTINCT n) FROM shop.items GROUP BY order_id UNION ALL SELECT id, total FROM shop.orders`,
  ],
  [
    "EXCEPT of groups",
    "SELECT id, 2 AS n FROM shop.users EXCEPT SELECT user_id, count(*) FROM shop.orders GROUP BY user_id",
  ],
  ["UNION", "SELECT user_id FROM shop.orders UNION SELECT id FROM shop.users WHERE city = 'rome'"],
  [
    "a window of UNION",
    "SELECT user_id FROM shop.orders UNION SELECT id FROM shop.users ORDER BY 1 LIMIT 3",
  ],
  ["INTERSECT", "SELECT id FROM shop.users INTERSECT SELECT user_id FROM shop.orders"],
  ["INTERSECT ALL", "SELECT n FROM shop.items INTERSECT ALL SELECT id FROM shop.users"],
  ["EXCEPT", "SELECT id FROM shop.users EXCEPT SELECT user_id FROM shop.orders"],
  ["EXCEPT ALL", "SELECT n FROM shop.items EXCEPT ALL SELECT product_id::bigint FROM shop.items"],
  [
    "several set operations",
    `WITH big AS (SELECT id FROM shop.orders WHERE total > 5)
     (SELECT id FROM big UNION ALL SELECT order_id FROM shop.items) EXCEPT (SELECT id FROM shop.users INTERSECT SELECT n FROM shop.items)`,
  ],
  [
    "a sum of doubles in an expression",
    "SELECT id, (SELECT sum(weight) FROM shop.items i WHERE i.order_id = o.id) AS weight FROM shop.orders o",
  ],
];

describe("after each commit, a live query has the same rows and keys as the SELECT", () => {
  test.each(shareOf(QUERIES, { oneOf: 8 }))(
    "the SELECT and the live query agree on: %s",
    async (_, sql) => {
      const maintained = await current(follow(sql, undefined));
      const evaluated = await current(follow(sql, "evaluated"));
      for (const [what, commit] of [["the beginning", "SELECT 1"] as const, ...COMMITS]) {
        await run(commit);
        await current(maintained);
        await current(evaluated);
        expect([what, rowsByKey(maintained)]).toEqual([what, rowsByKey(evaluated)]);
      }
      const [evaluations = 0, followed = 0] = await stepsOf(sql);
      expect(followed).toBeGreaterThan(evaluations);
    },
  );
});

test("changes are applied without an evaluation", async () => {
  const sql = `SELECT u.city, count(*) AS n FROM shop.users u JOIN shop.orders o ON o.user_id = u.id
    GROUP BY u.city ORDER BY n DESC LIMIT 3`;
  const follower = await current(follow(sql, undefined));
  const [before = 0, followedBefore = 0] = await stepsOf(sql);
  for (let id = 50; id < 60; id += 1) {
    await run(`INSERT INTO shop.orders VALUES (${id}, ${id % 4}, 1)`);
    await current(follower);
  }
  const [after = 0, followed = 0] = await stepsOf(sql);
  expect([before, after]).toEqual([1, 1]);
  // Two of the orders have no customer.
  expect(followed - followedBefore).toBe(8);
});

/** Follows a query with each set of parameters, both incrementally and by evaluation. */
async function followEach(
  sql: string,
  values: readonly unknown[],
): Promise<(readonly [maintained: ResultFollower, evaluated: ResultFollower])[]> {
  return await Promise.all(
    values.map(async (value) => {
      const params = [value];
      const maintained = await current(follow(sql, undefined, { params }));
      return [maintained, await current(follow(sql, "evaluated", { params }))] as const;
    }),
  );
}

/** The items that a place has in stock. Each subscriber follows one place. */
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
      const followers = await followEach(sql, [1, 2, 3, 4, null]);
      for (const [what, commit] of COMMITS) {
        await run(commit);
        for (const [index, [maintained, evaluated]] of followers.entries()) {
          await current(maintained);
          await current(evaluated);
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
  const followers = await followEach(sql, [1, 2]);
  await run("INSERT INTO shop.items VALUES (150, 12, 1, 7, 1)");
  for (const [maintained] of followers) await current(maintained);
  expect(await stepsOf(sql, [{ number: "1" }])).toEqual([1, 0]);
  expect(await stepsOf(sql, [{ number: "2" }])).toEqual([1, 1]);
});

test("subscribers share the changes that a test of one row for each of them divides", async () => {
  const lines = await run(`EXPLAIN SUBSCRIBE TO ${IN_STOCK}`, [{ number: "1" }]);
  // A plan for one subscriber would find the row of that subscriber by its whole key.
  expect(lines.flat()).toContain("    a change to items: finds stock by index stock_pkey");
});

test("a change to a column that EXISTS does not read is not followed", async () => {
  const [[rome] = []] = await followEach(IN_STOCK, [1]);
  const params = [{ number: "1" }];
  const before = await stepsOf(IN_STOCK, params);
  await run("UPDATE shop.stock SET n = 99 WHERE place = 'rome'");
  if (rome !== undefined) await current(rome);
  expect(await stepsOf(IN_STOCK, params)).toEqual(before);
  await run("DELETE FROM shop.stock WHERE product_id = 1 AND place = 'rome'");
  if (rome !== undefined) await current(rome);
  expect(await stepsOf(IN_STOCK, params)).not.toEqual(before);
});

testThoroughly("only the subscribers whose changes are too many are evaluated again", async () => {
  await run(
    "INSERT INTO shop.items SELECT 1000 + n, NULL, 3, n, 0 FROM generate_series(0, 20000) AS g(n)",
  );
  const [[rome] = [], [oslo] = []] = await followEach(IN_STOCK, [1, 2]);
  await run("INSERT INTO shop.stock VALUES (3, 'oslo', 1)");
  await run("UPDATE shop.items SET n = 77 WHERE id = 1000");
  for (const each of [rome, oslo]) {
    if (each !== undefined) await current(each);
    expect(each?.rows.find(({ id }) => Number(id) === 1000)).toMatchObject({ n: 77 });
  }
  // The place 'oslo' now has all items of product 3; before, it had all items of product 1.
  expect(oslo?.rows.length).toBe(20_006);
  const [evaluationsOfRome] = await stepsOf(IN_STOCK, [{ number: "1" }]);
  const [evaluationsOfOslo] = await stepsOf(IN_STOCK, [{ number: "2" }]);
  expect([evaluationsOfRome, evaluationsOfOslo]).toEqual([1, 2]);
});

test("a value that fails for one subscriber does not affect the subscribers of the same commit", async () => {
  const sql =
    "SELECT o.user_id, max(100 / o.total) AS share FROM shop.orders o WHERE o.user_id = $1 GROUP BY o.user_id";
  const [one, two] = [1, 2].map((user) => follow(sql, undefined, { params: [user] }));
  if (one === undefined || two === undefined) throw new Error("a subscriber is missing");
  await current(one);
  await current(two);
  await run("INSERT INTO shop.orders VALUES (50, 1, 0), (51, 2, 2)");
  await current(two);
  expect(two.rows).toMatchObject([{ user_id: 2, share: 50 }]);
  expect(await stepsOf(sql, [{ number: "2" }])).toEqual([1, 1]);
  expect(current(one)).rejects.toThrow("Cannot divide by zero");
});

test("a feed that is far behind follows all commits without an evaluation", async () => {
  await run(
    `INSERT INTO shop.users SELECT 1000 + n, 'n', 'bonn', 77 FROM generate_series(1, 100) AS g(n)`,
  );
  const sql =
    "SELECT u.city, count(*) AS n FROM shop.users u JOIN shop.orders o ON o.user_id = u.boss GROUP BY u.city";
  const follower = await current(follow(sql, undefined));
  const [before] = await stepsOf(sql);
  const inserts = Array.from({ length: 300 }, (_, n) => {
    return run(`INSERT INTO shop.orders VALUES (${1000 + n}, 77, 1)`);
  });
  await Promise.all(inserts);
  await current(follower);
  expect(follower.rows.find(({ city }) => city === "bonn")).toMatchObject({ n: 30_000 });
  expect((await stepsOf(sql))[0]).toBe(before ?? 0);
});

function nextTurn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}

test("other work runs while many changes are followed, and subscribers come and go meanwhile", async () => {
  const sql =
    "SELECT o.id, i.id AS item, i.n FROM shop.orders o JOIN shop.items i ON i.order_id = o.id WHERE o.user_id = $1";
  const users = [20, 21, 22, 23];
  await run(`INSERT INTO shop.orders SELECT 1000 + n, 20 + n % 4, n FROM generate_series(0, 899) AS g(n);
    INSERT INTO shop.items SELECT 1000 + n, 1000 + n, 1, n, 0 FROM generate_series(0, 899) AS g(n)`);
  const first = await followEach(sql, users.slice(0, 3));
  const [[gone] = [], [kept] = []] = first;
  const changesBefore = kept?.changes.length ?? 0;
  await run("UPDATE shop.items SET n = n + 1 WHERE id >= 1000");
  let turns = 0;
  for (; kept?.changes.length === changesBefore; turns += 1) await nextTurn();
  expect(turns).toBeGreaterThan(10);
  await run("UPDATE shop.items SET n = n + 1 WHERE id >= 1000");
  for (let turn = 0; turn < 6; turn += 1) await nextTurn();
  gone?.subscription?.close();
  const late = follow(sql, undefined, { params: [23] });
  const other = follow(sql, undefined, { params: [22] });
  await run("UPDATE shop.items SET n = n + 1 WHERE id = 1002");
  for (const each of [kept, late, other]) await current(each ?? late);
  for (const [follower, user] of [
    [kept, 21],
    [late, 23],
    [other, 22],
  ] as const) {
    const rows: unknown[][] = (follower?.rows ?? []).map(({ id, item, n }) => [id, item, n]);
    const select = await run(`${sql.replace("$1", String(user))} ORDER BY 1, 2`);
    expect(rows.toSorted(([left], [right]) => Number(left) - Number(right))).toEqual(
      select.map((row) => row.slice()),
    );
  }
});

test.each([
  ["an index", "SELECT 1"],
  ["an index in memory", "DROP INDEX shop.items_order"],
])(
  "other work runs while many partitions found by %s are computed again, and subscribers come and go meanwhile",
  async (_, prepare) => {
    await run(prepare);
    const sql = `SELECT i.id, sum(i.n) OVER (PARTITION BY i.order_id ORDER BY i.id) AS n FROM shop.items i
    JOIN shop.orders o ON o.id = i.order_id WHERE o.user_id = $1`;
    await run(`INSERT INTO shop.orders SELECT 1000 + n, CASE WHEN n < 10 THEN 20 ELSE 21 END, n FROM generate_series(0, 199) AS g(n);
    INSERT INTO shop.items SELECT 1000 + n, 1000 + n % 200, 1, n, 0 FROM generate_series(0, 799) AS g(n)`);
    const [[gone] = [], [kept] = []] = await followEach(sql, [20, 21]);
    // The statement changes a row of each partition.
    const change = "UPDATE shop.items SET n = n + 1 WHERE id BETWEEN 1000 AND 1199";
    const changesBefore = kept?.changes.length ?? 0;
    await run(change);
    let turns = 0;
    for (; kept?.changes.length === changesBefore; turns += 1) await nextTurn();
    expect(turns).toBeGreaterThan(10);
    await run(change);
    for (let turn = 0; turn < 20; turn += 1) await nextTurn();
    gone?.subscription?.close();
    const late = follow(sql, undefined, { params: [21] });
    await run("UPDATE shop.items SET n = 5 WHERE id = 1101");
    for (const each of [kept, late]) {
      const { rows } = await current(each ?? late);
      const select = await run(`${sql.replace("$1", "21")} ORDER BY 1`);
      const values: unknown[][] = rows.map(({ id, n }) => [id, n]);
      expect(values.toSorted(([left], [right]) => Number(left) - Number(right))).toEqual(
        select.map((row) => row.slice()),
      );
    }
  },
);

test("an index finds the new minimum or maximum of a group after a deletion", async () => {
  const sql = "SELECT user_id, min(total), max(total) FROM shop.orders GROUP BY user_id";
  const follower = await current(follow(sql, undefined));
  const evaluated = await current(follow(sql, "evaluated"));
  for (const commit of [
    "INSERT INTO shop.orders VALUES (60, 1, 7), (61, 1, 7), (62, 1, 9), (63, 2, NULL)",
    "DELETE FROM shop.orders WHERE id = 11",
    "UPDATE shop.orders SET total = 8 WHERE id = 62",
    "DELETE FROM shop.orders WHERE id = 10",
    "UPDATE shop.orders SET user_id = 2 WHERE id = 60",
    "DELETE FROM shop.orders WHERE id = 12",
    "DELETE FROM shop.orders WHERE user_id = 2",
  ]) {
    await run(commit);
    await current(follower);
    await current(evaluated);
    expect([commit, rowsByKey(follower)]).toEqual([commit, rowsByKey(evaluated)]);
  }
  expect(await stepsOf(sql)).toEqual([1, 7]);
});

test("a group of equal numbers keeps its key whichever scale it shows", async () => {
  await run(`DROP TABLE IF EXISTS shop.prices;
    CREATE SHARED TABLE shop.prices (id INT PRIMARY KEY, v NUMERIC);
    INSERT INTO shop.prices VALUES (1, 1.50), (2, 1.5), (3, 'NaN'), (4, 100)`);
  const sql = "SELECT v, count(*) AS n FROM shop.prices GROUP BY v";
  const follower = await current(follow(sql, "evaluated"));
  const keysOf = (): Set<unknown> => new Set(follower.rows.map((row) => row["_key"]));
  const keys = keysOf();
  expect(keys.size).toBe(3);
  await run(
    "DELETE FROM shop.prices WHERE id = 1; INSERT INTO shop.prices VALUES (5, 1.500), (6, 'NaN')",
  );
  await current(follower);
  expect(keysOf()).toEqual(keys);
  expect(new Set(follower.rows.map(({ v, n }) => `${Number(v)}: ${Number(n)}`))).toEqual(
    new Set(["1.5: 2", "NaN: 2", "100: 1"]),
  );
  await run("DROP TABLE shop.prices");
});

test("a window is refilled once more rows leave it than its margin holds", async () => {
  const rows = Array.from({ length: 300 }, (_, id) => `(${1000 + id}, 1, ${id})`).join();
  await run(`DELETE FROM shop.orders; INSERT INTO shop.orders VALUES ${rows}`);
  const sql = "SELECT id, total FROM shop.orders ORDER BY total DESC LIMIT 5";
  const maintained = await current(follow(sql, "maintained"));
  for (let id = 1299; id > 1200; id -= 3) {
    await run(`DELETE FROM shop.orders WHERE id > ${id - 3} AND id <= ${id}`);
    await current(maintained);
    const totals = maintained.rows.map((row) => Number(row["total"]));
    const expected = [1, 2, 3, 4, 5].map((behind) => id - 1000 - 2 - behind);
    expect(totals.toSorted((left, right) => right - left)).toEqual(expected);
  }
});

test("a large commit is evaluated, and later changes are applied incrementally again", async () => {
  const sql = "SELECT user_id, count(*) AS n FROM shop.orders GROUP BY user_id";
  const maintained = await current(follow(sql, "maintained"));
  const rows = Array.from({ length: 3000 }, (_, id) => `(${1000 + id}, ${id % 3}, 1)`).join();
  await run(`INSERT INTO shop.orders VALUES ${rows}`);
  await current(maintained);
  await run("INSERT INTO shop.orders VALUES (9000, 2, 1)");
  await current(maintained);
  const counts = Object.fromEntries(maintained.rows.map(({ n, user_id: of }) => [of, n]));
  expect(counts).toEqual({ null: 1, 0: 1000, 1: 1002, 2: 1002, 9: 1 });
});

test.each([
  ["groups", "SELECT total, count(*) AS n FROM shop.orders GROUP BY total"],
  ["rows of a set operation", "SELECT id FROM shop.orders EXCEPT SELECT n FROM shop.items"],
  [
    "groups in a set operation",
    "SELECT total % 700 AS k, count(*) AS n FROM shop.orders GROUP BY total % 700 UNION ALL SELECT id, n FROM shop.items",
  ],
])("a query that begins with hundreds of %s is maintained", async (_, sql) => {
  const rows = Array.from({ length: 1500 }, (_each, id) => `(${1000 + id}, 1, ${id % 750})`).join();
  await run(`INSERT INTO shop.orders VALUES ${rows}`);
  const maintained = await current(follow(sql, "maintained"));
  for (const change of [
    "UPDATE shop.orders SET total = total + 1 WHERE id BETWEEN 1740 AND 1760",
    "DELETE FROM shop.orders WHERE id IN (1000, 1255, 1256, 1511, 1512, 2499)",
  ]) {
    await run(change);
    await current(maintained);
    const evaluated = await current(follow(sql, "evaluated"));
    expect([change, rowsByKey(maintained)]).toEqual([change, rowsByKey(evaluated)]);
  }
});

test("an index in memory drops the old values of rows, and still finds all rows", async () => {
  const rows = Array.from({ length: 900 }, (_, id) => `(${1000 + id}, ${id}, ${id})`).join();
  await run(`DELETE FROM shop.orders; INSERT INTO shop.orders VALUES ${rows}`);
  const sql = "SELECT u.id, o.id AS o FROM shop.users u JOIN shop.orders o ON o.total = u.id";
  const maintained = await current(follow(sql, "maintained"));
  for (const step of [1, 2, 3, 4, 5, 6, 7]) {
    await run(`UPDATE shop.orders SET total = (total + ${step}) % 900 WHERE id < 1898`);
    await run("UPDATE shop.users SET name = 'x' WHERE id = 3");
    await current(maintained);
    const evaluated = await current(follow(sql, "evaluated"));
    expect([step, rowsByKey(maintained)]).toEqual([step, rowsByKey(evaluated)]);
    evaluated.subscription?.close();
  }
});

test("a join without an equality is evaluated again if its table is large or grows", async () => {
  const sql = "SELECT u.id, o.id AS o FROM shop.users u JOIN shop.orders o ON o.total < u.boss";
  const maintained = await current(follow(sql, undefined));
  const growth = "INSERT INTO shop.orders SELECT g, 1, 9 FROM generate_series(100, 5200) AS g";
  await run(growth);
  await current(maintained);
  const [evaluationsBefore = 0] = await stepsOf(sql);
  await run("UPDATE shop.users SET boss = 6 WHERE id = 1");
  await current(maintained);
  const evaluated = await current(follow(sql, "evaluated"));
  expect(rowsByKey(maintained)).toEqual(rowsByKey(evaluated));
  const [evaluations = 0] = await stepsOf(sql);
  expect(evaluations).toBeGreaterThan(evaluationsBefore);
  maintained.subscription?.close();
  evaluated.subscription?.close();
  const lines = await run(`EXPLAIN SUBSCRIBE TO ${sql} AND o.id > 0`);
  expect(lines.flat().join("\n")).toContain(
    "no key or index finds the rows of shop.orders that a change affects, and the table is too large to be read",
  );
});

test("a change that repeatedly leads to many rows is evaluated instead", async () => {
  await run(`DELETE FROM shop.orders;
    INSERT INTO shop.orders SELECT g, g, 1 FROM generate_series(1, 12000) AS g`);
  const sql =
    "SELECT u.id, o.id AS o FROM shop.users u JOIN shop.orders o ON o.total = u.id AND o.user_id < u.boss";
  const maintained = await current(follow(sql, undefined));
  const [evaluationsBefore = 0] = await stepsOf(sql);
  // The old row and the new row each match all 12,000 orders.
  await run("UPDATE shop.users SET boss = 4 WHERE id = 1");
  await run("UPDATE shop.users SET boss = 3 WHERE id = 1");
  await current(maintained);
  expect(rowsByKey(maintained).map(({ o }) => o)).toEqual([1, 2]);
  const [evaluations = 0] = await stepsOf(sql);
  expect(evaluations).toBeGreaterThan(evaluationsBefore);
  maintained.subscription?.close();
});

test("a join whose index does not fit into the memory for live queries is evaluated again", async () => {
  const config = `${SMALL_FILES}\n[limits]\nlive_state_bytes = 1048576`;
  const small = await openAt(mkdtempSync(join(directory, "small-")), { config });
  const owner = principalFor(small, "root");
  const ask = async (sql: string): Promise<readonly (readonly unknown[])[]> => {
    const { error, results } = await small.sql.execute(owner, { sql, params: [] });
    expect(error).toBeUndefined();
    return results.at(-1)?.rows ?? [];
  };
  await ask(`CREATE NAMESPACE app; CREATE SHARED TABLE app.a (id INT PRIMARY KEY);
    CREATE SHARED TABLE app.b (id INT PRIMARY KEY, n INT); INSERT INTO app.a VALUES (1), (2);
    INSERT INTO app.b SELECT g, g FROM generate_series(1, 2000) AS g`);
  const sql = "SELECT a.id, b.id AS b FROM app.a JOIN app.b ON b.n = a.id";
  const follower = new ResultFollower();
  const spec = { id: "q", sql };
  follower.subscription = small.live.subscribe({ principal: owner, spec, sink: follower });
  for (const commit of ["SELECT 1", "UPDATE app.b SET n = 2 WHERE id = 7"]) {
    await ask(commit);
    await follower.reaches(small.store.visibleSeq);
  }
  const pairs = follower.rows.map(({ b, id }) => `${Number(id)} ${Number(b)}`).toSorted();
  expect(pairs).toEqual(["1 1", "2 2", "2 7"]);
  const lines = (await ask(`EXPLAIN SUBSCRIBE TO ${sql}`)).flat();
  expect(lines).toContain("  so far: 2 evaluations, 0 steps without an evaluation");
  expect(lines).toContain("    a change to a: finds b by an index in memory on (n)");
  await small.close();
});

test("memory for maintained queries includes their texts", async () => {
  const config = `${SMALL_FILES}\n[limits]\nlive_state_bytes = 1048576`;
  const small = await openAt(mkdtempSync(join(directory, "texts-")), { config });
  const owner = principalFor(small, "root");
  const ask = async (sql: string): Promise<readonly (readonly unknown[])[]> => {
    const { error, results } = await small.sql.execute(owner, { sql, params: [] });
    expect(error).toBeUndefined();
    return results.at(-1)?.rows ?? [];
  };
  await ask(`CREATE NAMESPACE app; CREATE SHARED TABLE app.a (id INT PRIMARY KEY, t TEXT);
    CREATE SHARED TABLE app.b (id INT PRIMARY KEY, t TEXT);
    INSERT INTO app.b SELECT g, repeat('x', 2000) || g FROM generate_series(1, 300) AS g`);
  for (const [id, sql] of [
    "SELECT a.id, b.id AS b FROM app.a JOIN app.b ON b.t = a.t",
    "SELECT t FROM app.a EXCEPT SELECT t FROM app.b",
    "SELECT t, count(*) AS n FROM app.b GROUP BY t HAVING count(*) > 5",
  ].entries()) {
    const follower = new ResultFollower();
    const spec = { id: "q", sql };
    follower.subscription = small.live.subscribe({ principal: owner, spec, sink: follower });
    await follower.reaches(small.store.visibleSeq);
    await ask(`UPDATE app.b SET t = 'y' WHERE id = ${id + 1}`);
    await follower.reaches(small.store.visibleSeq);
    const lines = (await ask(`EXPLAIN SUBSCRIBE TO ${sql}`)).flat();
    const steps = lines.filter((line) => String(line).includes("so far"));
    expect([sql, ...steps]).toEqual([
      sql,
      "  so far: 2 evaluations, 0 steps without an evaluation",
    ]);
    follower.subscription.close();
  }
  await small.close();
});

test("rows whose floats differ only within an array or by the sign of zero differ", async () => {
  await run(`DROP TABLE IF EXISTS shop.floats;
    CREATE SHARED TABLE shop.floats (id INT PRIMARY KEY, g INT, d DOUBLE, list DOUBLE[]);
    INSERT INTO shop.floats VALUES (1, 1, 0, ARRAY['NaN'::DOUBLE]), (2, 2, 1, NULL)`);
  const queries = [
    "SELECT list FROM shop.floats UNION ALL SELECT list FROM shop.floats",
    "SELECT DISTINCT ON (g) g, list, id FROM shop.floats ORDER BY g, id",
    "SELECT g, d, count(*) AS n FROM shop.floats GROUP BY g, d",
  ];
  const followers = queries.map((sql) => ({ sql, follower: follow(sql, "maintained") }));
  for (const value of [
    "list = ARRAY['Infinity'::DOUBLE]",
    "list = ARRAY[NULL::DOUBLE]",
    "list = ARRAY['-Infinity'::DOUBLE]",
    "list = ARRAY[0::DOUBLE]",
    "list = ARRAY['-0'::DOUBLE]",
    "d = '-0'",
    "d = 0",
  ]) {
    await run(`UPDATE shop.floats SET ${value} WHERE id = 1`);
    for (const { follower, sql } of followers) {
      const followed = (await current(follower)).rows.map(({ _key, _seq, ...row }) => {
        return cellsText(Object.values(row));
      });
      const selected = (await run(sql)).map((row) => cellsText(row));
      expect([value, sql, followed.toSorted()]).toEqual([value, sql, selected.toSorted()]);
    }
  }
  for (const { follower } of followers) follower.subscription?.close();
  await run("DROP TABLE shop.floats");
});

/** Returns cells as a client sees them: JSON has one zero, and writes other floats as strings. */
function cellsText(cells: readonly unknown[]): string {
  return JSON.stringify(cells, (_, cell: unknown) =>
    typeof cell === "number" && !Number.isFinite(cell) ? String(cell) : cell,
  );
}

test("a zero that changes its sign is sent where the SELECT shows it, and conditions see it", async () => {
  await run(`DROP TABLE IF EXISTS shop.floats;
    CREATE SHARED TABLE shop.floats (id INT PRIMARY KEY, d DOUBLE);
    INSERT INTO shop.floats VALUES (1, 0), (2, 'NaN')`);
  const queries = [
    "SELECT a.id, a.d FROM shop.floats a JOIN shop.floats b ON b.id = a.id",
    "SELECT a.id, a.d::TEXT AS d FROM shop.floats a JOIN shop.floats b ON b.id = a.id",
    "SELECT a.id FROM shop.floats a WHERE EXISTS (SELECT 1 FROM shop.floats b WHERE b.id = a.id AND b.d::TEXT = '-0')",
  ];
  for (const way of ["maintained", "evaluated"] as const) {
    await run("UPDATE shop.floats SET d = 0 WHERE id = 1");
    const followers = queries.map((sql) => ({ sql, follower: follow(sql, way) }));
    for (const { follower } of followers) await current(follower);
    for (const value of ["d = '-0'", "d = 0", "d = 'NaN'", "d = '-0'"]) {
      await run(`UPDATE shop.floats SET ${value} WHERE id = 1`);
      for (const { follower, sql } of followers) {
        const followed = (await current(follower)).rows.map(({ _key, _seq, ...row }) => {
          return JSON.stringify(Object.values(row).slice(0, 2));
        });
        const selected = (await run(sql)).map((row) => JSON.stringify(row));
        const shown = sql.includes("EXISTS")
          ? followed.map((row) => JSON.stringify((JSON.parse(row) as unknown[]).slice(0, 1)))
          : followed;
        expect([way, value, sql, shown.toSorted()]).toEqual([way, value, sql, selected.toSorted()]);
      }
    }
    // JSON has one zero, so only the changes to and from NaN are sent.
    expect(followers[0]?.follower.changes.length).toBe(2);
    expect(followers[1]?.follower.changes.length).toBe(4);
    for (const { follower } of followers) follower.subscription?.close();
  }
  await run("DROP TABLE shop.floats");
});

test("min and max of NUMERIC show the digits of the SELECT", async () => {
  await run(`DROP TABLE IF EXISTS shop.digits;
    CREATE SHARED TABLE shop.digits (id INT PRIMARY KEY, g INT, v NUMERIC);
    INSERT INTO shop.digits VALUES (1, 1, 1.0), (2, 1, 1.00), (3, 2, 1.000)`);
  const sql = "SELECT g, min(v) AS least, max(v) AS most FROM shop.digits GROUP BY g ORDER BY g";
  const follower = await current(follow(sql, "maintained"));
  for (const change of [
    "UPDATE shop.digits SET v = 1.0000 WHERE id = 1",
    "UPDATE shop.digits SET g = 1 WHERE id = 3",
    "DELETE FROM shop.digits WHERE id = 2",
    "INSERT INTO shop.digits VALUES (4, 2, 1), (5, 2, 1.0)",
  ]) {
    await run(change);
    const followed = rowsByKey(await current(follower)).map(({ g, least, most }) => [
      g,
      least,
      most,
    ]);
    const selected = (await run(sql)).map((row) => row.slice());
    const rows: unknown[] = followed;
    expect({ change, rows }).toEqual({ change, rows: selected });
  }
  follower.subscription?.close();
  await run("DROP TABLE shop.digits");
});

test("an index in memory finds a row once although its key changes the sign of zero", async () => {
  await run(`DROP TABLE IF EXISTS shop.places; DELETE FROM shop.orders;
    CREATE SHARED TABLE shop.places (id DOUBLE PRIMARY KEY, g INT);
    INSERT INTO shop.places VALUES (0, 1); INSERT INTO shop.orders VALUES (1, 1, 1), (2, 2, 2)`);
  const sql =
    "SELECT count(*) AS n, sum(o.total) AS s FROM shop.orders o JOIN shop.places p ON p.g = o.total";
  const maintained = follow(sql, "maintained");
  const evaluated = follow(sql, "evaluated");
  for (const [zero, total] of [
    ["'-0'", 1],
    ["0", 2],
    ["'-0'", 1],
  ] as const) {
    await current(maintained);
    await run(`BEGIN; DELETE FROM shop.places; INSERT INTO shop.places VALUES (${zero}, 1);
      UPDATE shop.orders SET total = ${total} WHERE id = 2; COMMIT`);
    expect(rowsByKey(await current(maintained))).toEqual(rowsByKey(await current(evaluated)));
  }
  for (const follower of [maintained, evaluated]) follower.subscription?.close();
  await run("DROP TABLE shop.places");
});

test("memory for maintained queries is counted although no row of the result changes", async () => {
  const config = `${SMALL_FILES}\n[limits]\nlive_state_bytes = 1048576`;
  const small = await openAt(mkdtempSync(join(directory, "hidden-")), { config });
  const owner = principalFor(small, "root");
  const ask = async (sql: string): Promise<readonly (readonly unknown[])[]> => {
    const { error, results } = await small.sql.execute(owner, { sql, params: [] });
    expect(error).toBeUndefined();
    return results.at(-1)?.rows ?? [];
  };
  await ask(`CREATE NAMESPACE app; CREATE SHARED TABLE app.b (id INT PRIMARY KEY, n INT)`);
  const sql = "SELECT n, count(*) AS c FROM app.b GROUP BY n HAVING count(*) > 5";
  const follower = new ResultFollower();
  const spec = { id: "q", sql };
  follower.subscription = small.live.subscribe({ principal: owner, spec, sink: follower });
  for (let start = 1; start < 2000; start += 400) {
    await ask(`INSERT INTO app.b SELECT g, g FROM generate_series(${start}, ${start + 399}) AS g`);
    await follower.reaches(small.store.visibleSeq);
  }
  const [[bytes] = []] = await ask("SELECT state_bytes FROM system.live");
  expect(Number(bytes)).toBe(0);
  await small.close();
});

test("rows of inner joins have the seq of their last change, whenever the subscription began", async () => {
  const sql = `SELECT o.id, u.name FROM shop.orders o JOIN shop.users u ON u.id = o.user_id
    WHERE EXISTS (SELECT 1 FROM shop.items i WHERE i.order_id = o.id) ORDER BY o.id LIMIT 9`;
  const early = await current(follow(sql, "maintained"));
  const inserted = await seqOf("INSERT INTO shop.orders VALUES (40, 1, 1)");
  const shown = await seqOf("INSERT INTO shop.items VALUES (140, 40, 1, 1, 1)");
  const renamed = await seqOf("UPDATE shop.users SET name = 'io' WHERE id = 2");
  await current(early);
  const late = await current(follow(sql, "evaluated"));
  expect(shown).toBeGreaterThan(inserted);
  expect(seqsOf(early)).toMatchObject({ 12: renamed, 40: shown });
  expect(seqsOf(late)).toMatchObject({ 12: renamed, 40: inserted });
  expect(early.ack?.schema.map(({ name }) => name)).toEqual(["id", "name", "id_2", "_key", "_seq"]);
});

/** Runs a change, and returns the seq of its commit. */
async function seqOf(change: string): Promise<number> {
  const { results } = await database.sql.execute(root, { sql: change, params: [] });
  return Number(results.at(-1)?.lastSeq);
}

/** Returns the seqs of a follower's rows, by their first column. */
function seqsOf({ ack, rows }: ResultFollower): Record<string, unknown> {
  const [first] = ack?.schema ?? [];
  return Object.fromEntries(rows.map((row) => [String(row[first?.name ?? ""]), row["_seq"]]));
}

test.each([
  ["SELECT user_id, count(*) AS n FROM shop.orders GROUP BY user_id", "groups"],
  [
    "SELECT user_id, sum(total) AS n FROM shop.orders GROUP BY user_id ORDER BY n DESC, user_id LIMIT 9",
    "a window",
  ],
  [
    "SELECT user_id, string_agg(id::TEXT, ',' ORDER BY id) FROM shop.orders GROUP BY user_id",
    "computed groups",
  ],
  [
    "SELECT u.id, count(o.id) FROM shop.users u LEFT JOIN shop.orders o ON o.user_id = u.id GROUP BY u.id",
    "an outer join",
  ],
  [
    "SELECT u.id, (SELECT count(*) FROM shop.orders o WHERE o.user_id = u.id) FROM shop.users u",
    "a query for each row",
  ],
])(
  "%s: a row has the seq of the commit that changed it, also among several commits",
  async (sql) => {
    const follower = await current(follow(sql, "maintained"));
    const added = await seqOf("INSERT INTO shop.orders VALUES (50, 1, 1)");
    const removed = await seqOf("DELETE FROM shop.orders WHERE id = 12");
    const other = await seqOf("INSERT INTO shop.orders VALUES (51, 3, 1)");
    await current(follower);
    expect([added, removed, other]).toEqual([added, removed, other].toSorted((a, b) => a - b));
    const seqs = seqsOf(follower);
    expect(seqs).toMatchObject({ 1: added, 3: other });
    // A group without any rows left is absent, so its seq is that of the removal.
    expect(seqs["2"] ?? removed).toBe(removed);
    for (const { commit_seq: seq } of follower.changes)
      expect([added, removed, other]).toContain(Number(seq));
  },
);

test("rows that need no key have the seq of the commit that brought them", async () => {
  const distinct = await current(follow("SELECT DISTINCT city FROM shop.users", "maintained"));
  const union = await current(
    follow("SELECT city FROM shop.users UNION SELECT place FROM shop.stock", "maintained"),
  );
  const bonn = await seqOf("INSERT INTO shop.users VALUES (60, 'jo', 'bonn', NULL)");
  const kiel = await seqOf("INSERT INTO shop.users VALUES (61, 'li', 'kiel', NULL)");
  expect(seqsOf(await current(distinct))).toMatchObject({ bonn, kiel });
  expect(seqsOf(await current(union))).toMatchObject({ bonn, kiel });
});

test("first rows of groups have the seq of the newest row in the group, in both ways", async () => {
  const sql = "SELECT user_id, count(*) AS n FROM shop.orders GROUP BY user_id";
  const added = await seqOf("INSERT INTO shop.orders VALUES (70, 1, 1)");
  const changed = await seqOf("UPDATE shop.orders SET total = 8 WHERE id = 12");
  for (const way of ["maintained", "evaluated"] as const) {
    const follower = await current(follow(sql, way));
    expect(seqsOf(follower)).toMatchObject({ 1: added, 2: changed });
    follower.subscription?.close();
  }
});

test("rows that a resume brings are newer than the position, even if a row was only removed", async () => {
  const sql = "SELECT user_id, count(*) AS n FROM shop.orders GROUP BY user_id";
  const held = await current(follow(sql, "maintained"));
  const position = Number(held.seq);
  held.subscription?.close();
  const removed = await seqOf("DELETE FROM shop.orders WHERE id = 10");
  const back = await current(
    follow(sql, "maintained", { held, options: { from_seq_id: position } }),
  );
  expect(rowsByKey(back)).toEqual(rowsByKey(await current(follow(sql, "evaluated"))));
  expect(seqsOf(back)).toMatchObject({ 1: removed });
  expect(position).toBeLessThan(removed);
});

test("first rows without a seq of their own have that of the last commit in their tables", async () => {
  const sql = "SELECT city FROM shop.users EXCEPT SELECT place FROM shop.stock";
  const last = await seqOf("INSERT INTO shop.users VALUES (80, 'al', 'bern', NULL)");
  await run("INSERT INTO shop.items VALUES (180, 10, 1, 1, 1)");
  for (const way of ["maintained", "evaluated"] as const) {
    const follower = await current(follow(sql, way));
    expect(seqsOf(follower)).toMatchObject({ bern: last });
    follower.subscription?.close();
  }
});

test("a client that resumes may be served by the other method", async () => {
  const sql = "SELECT u.name, o.total FROM shop.users u JOIN shop.orders o ON o.user_id = u.id";
  const held = await current(follow(sql, "maintained"));
  held.subscription?.close();
  await run(
    "UPDATE shop.orders SET total = 6 WHERE id = 10; DELETE FROM shop.orders WHERE id = 11",
  );
  const options = { from_seq_id: held.seq ?? 0 };
  const back = await current(follow(sql, "evaluated", { held, options }));
  expect(rowsByKey(back)).toEqual(rowsByKey(await current(follow(sql, "evaluated"))));
});

test.each([
  [
    "SELECT sum(weight) FROM shop.items",
    "it has sum of a type that is not exact, and all rows form one group or partition",
  ],
  [
    "SELECT count(*) FROM shop.users a FULL JOIN shop.users b ON a.id = b.boss",
    "it has a full join",
  ],
  [
    "SELECT id FROM shop.users UNION ALL SELECT sum(weight) FROM shop.items",
    "a block of its set operation has rows that may differ",
  ],
  [
    "SELECT row_number() OVER (ORDER BY id) FROM shop.users",
    "it has window functions, and all rows form one group or partition",
  ],
  [
    "SELECT n % 2, sum(weight) FROM shop.items GROUP BY 1",
    "it has sum of a type that is not exact, and no column finds the rows of one group or partition",
  ],
  ["SELECT id FROM shop.users ORDER BY id OFFSET 2", "it has OFFSET without LIMIT"],
  ["SELECT id FROM shop.users LIMIT 1", "its LIMIT has no order that distinguishes all rows"],
])("%s is refused with the way maintained, and names the reason", (sql, reason) => {
  let refusal: unknown;
  try {
    follow(sql, "maintained");
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
    database.live.subscribe({ principal: root, spec, sink: new ResultFollower() });
  expect(subscribe).toThrow("way");
});
