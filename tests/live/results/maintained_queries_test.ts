/**
 * Tests queries of each form that is maintained from the changes to their tables. After each
 * commit, the rows must equal the result of the SELECT, and have the same keys as in a query that
 * is evaluated again.
 */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import { shareOf } from "../../support/thoroughness.ts";
import { COMMITS, rowsByKey, Shop } from "./shop.ts";

let shop: Shop;

beforeAll(async () => {
  shop = await Shop.open();
});

beforeEach(() => shop.renew());

afterAll(() => shop.close());

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
      const maintained = await shop.current(shop.follow(sql, undefined));
      const evaluated = await shop.current(shop.follow(sql, "evaluated"));
      for (const [what, commit] of [["the beginning", "SELECT 1"] as const, ...COMMITS]) {
        await shop.run(commit);
        await shop.current(maintained);
        await shop.current(evaluated);
        expect([what, rowsByKey(maintained)]).toEqual([what, rowsByKey(evaluated)]);
      }
      const [evaluations = 0, followed = 0] = await shop.stepsOf(sql);
      expect(followed).toBeGreaterThan(evaluations);
    },
  );
});
