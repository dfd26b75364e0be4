/**
 * Queries over a few small tables: what an evidence test of a SQL engine asks.
 */
import type { CaseFile } from "./answer.ts";
import { selects } from "./product.ts";

export const FIXTURE: readonly string[] = [
  "CREATE TABLE emp (id INT PRIMARY KEY, name TEXT NOT NULL, dept TEXT, boss INT, pay NUMERIC(8,2), age SMALLINT, hired DATE)",
  "INSERT INTO emp VALUES (1, 'Ada', 'eng', NULL, 100.00, 41, '2019-03-01'), (2, 'Bo', 'eng', 1, 80.50, 29, '2020-06-15'), (3, 'Cy', 'ops', 1, 60.25, NULL, '2020-06-15'), (4, 'Di', 'ops', 3, NULL, 35, NULL), (5, 'Ed', NULL, 3, 60.25, 29, '2022-01-10'), (6, 'Flo', 'law', 2, 0.00, 64, '1999-12-31')",
  "CREATE TABLE dept (code TEXT PRIMARY KEY, title TEXT, floor INT)",
  "INSERT INTO dept VALUES ('eng', 'Engineering', 3), ('ops', 'Operations', 1), ('art', 'Arts', NULL), ('law', NULL, 3)",
  "CREATE TABLE num (k INT PRIMARY KEY, a INT, b BIGINT, c DOUBLE PRECISION, d NUMERIC(10,3))",
  "INSERT INTO num VALUES (1, 1, 10, 1.5, 1.250), (2, 1, 20, -1.5, 2.500), (3, 2, 10, 0, NULL), (4, 2, NULL, 2.25, 0.001), (5, NULL, 30, NULL, -7.125), (6, 3, -30, 100, 99.999), (7, 1, 10, 1.5, 1.250)",
  "CREATE TABLE none (id INT PRIMARY KEY, v TEXT)",
];

const JOINS: CaseFile = {
  name: "joins",
  about: "joins of every kind",
  statements: [
    ...FIXTURE,
    ...selects(
      ["e.name, d.title FROM emp e # dept d ON e.dept = d.code", "e.name, d.floor FROM emp e # dept d ON e.dept = d.code AND d.floor > 1", "e.id, d.code FROM dept d # emp e ON e.dept = d.code WHERE e.id IS NULL OR d.floor = 3", "count(*) FROM emp e # dept d ON e.dept = d.code", "e.name, b.name FROM emp e # emp b ON e.boss = b.id", "e.name, n.v FROM emp e # none n ON n.id = e.id", "n.v, e.name FROM none n # emp e ON n.id = e.id"],
      ["JOIN", "INNER JOIN", "LEFT JOIN", "LEFT OUTER JOIN", "RIGHT JOIN", "FULL JOIN", "FULL OUTER JOIN"],
    ),
    ...selects(["e.name, n.k FROM emp e # num n ON e.id < n.k AND n.a = 1", "e.name, n.k FROM emp e # num n ON e.age > n.b", "e.id, n.k FROM emp e # num n ON e.id = n.a OR e.id = n.k"], ["JOIN", "LEFT JOIN", "RIGHT JOIN"]),
    ...selects(["id, code, title FROM emp # (SELECT code, title, code AS dept FROM dept) d USING (dept)", "dept, id, title FROM emp NATURAL # (SELECT code AS dept, title FROM dept) d"], ["JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN"]),
    "SELECT a.id, b.id FROM emp a CROSS JOIN emp b WHERE a.id < b.id AND a.dept = b.dept", "SELECT count(*) FROM emp, dept, num", "SELECT count(*) FROM emp CROSS JOIN dept CROSS JOIN none", "SELECT e.name, d.title FROM emp e, dept d WHERE e.dept = d.code AND e.age < 40",
    "SELECT e.name, x.c FROM emp e, LATERAL (SELECT count(*) AS c FROM emp s WHERE s.boss = e.id) x", "SELECT e.name, x.name FROM emp e LEFT JOIN LATERAL (SELECT s.name FROM emp s WHERE s.boss = e.id ORDER BY s.pay DESC NULLS LAST LIMIT 1) x ON TRUE", "SELECT e.id, g FROM emp e, generate_series(1, e.id) g WHERE e.id < 4", "SELECT e.id, u.w FROM emp e CROSS JOIN LATERAL unnest(string_to_array(e.name, 'd')) AS u(w)",
    "SELECT a.id FROM (emp a JOIN dept d ON a.dept = d.code) LEFT JOIN num n ON n.k = a.id WHERE n.b > 5", "SELECT a.id, b.id, c.id FROM emp a LEFT JOIN emp b ON a.boss = b.id LEFT JOIN emp c ON b.boss = c.id", "SELECT a.id, c.id FROM emp a LEFT JOIN (emp b JOIN emp c ON b.boss = c.id) ON a.boss = b.id",
    "SELECT cor0.id FROM emp AS cor0 CROSS JOIN none AS cor1", "SELECT ALL + cor0.id * - 2 AS col0 FROM emp cor0", "SELECT DISTINCT - cor0.a FROM num AS cor0 WHERE NOT ( cor0.b ) IS NULL", "SELECT * FROM num cor0 WHERE NOT + a < - b", "SELECT * FROM dept d JOIN none n ON n.v = d.code", "SELECT d.* FROM dept d JOIN emp e ON e.dept = d.code WHERE e.pay > 50",
    ...selects(["count(*) FROM emp e WHERE # (SELECT 1 FROM dept d WHERE d.code = e.dept)", "e.id FROM emp e WHERE # (SELECT 1 FROM dept d WHERE d.code = e.dept AND d.floor = 3)", "e.id FROM emp e WHERE # (SELECT * FROM none)", "e.id FROM emp e WHERE # (SELECT s.id FROM emp s WHERE s.boss = e.id AND s.pay > e.age)"], ["EXISTS", "NOT EXISTS"]),
    ...selects(["id FROM emp WHERE dept # (SELECT code FROM dept WHERE floor = 3)", "id FROM emp WHERE dept # (SELECT title FROM dept)", "id FROM emp WHERE boss # (SELECT id FROM emp WHERE age > 30)", "id FROM emp WHERE age # (SELECT a FROM num)", "id FROM emp WHERE id # (SELECT id FROM none)", "id FROM emp WHERE (dept, age) # (SELECT dept, age FROM emp WHERE id < 3)"], ["IN", "NOT IN"]),
    ...["=", "<>", "<", "<=", ">", ">="].flatMap((op) => selects([`id FROM emp WHERE pay ${op} ANY (SELECT pay FROM emp WHERE dept = #)`, `id FROM emp WHERE pay ${op} ALL (SELECT pay FROM emp WHERE dept = #)`, `id FROM emp WHERE (age, id) ${op} ANY (SELECT age, boss FROM emp WHERE dept = #)`].filter((p) => !p.includes("(age, id)") || op !== ""), ["'eng'", "'ops'", "'none'"])),
    "SELECT id, (SELECT title FROM dept WHERE code = dept) FROM emp", "SELECT id, (SELECT count(*) FROM emp s WHERE s.boss = e.id), (SELECT max(pay) FROM emp s WHERE s.dept = e.dept AND s.id <> e.id) FROM emp e", "SELECT (SELECT id FROM emp)", "SELECT (SELECT id, name FROM emp WHERE id = 1)", "SELECT name FROM emp WHERE pay = (SELECT max(pay) FROM emp)", "SELECT name FROM emp WHERE pay > (SELECT avg(pay) FROM emp s WHERE s.dept = emp.dept)", "SELECT x.n FROM (SELECT count(*) AS n FROM emp) x", "SELECT ARRAY(SELECT id FROM emp WHERE dept = 'eng' ORDER BY id DESC)",
  ],
};

const AGGREGATES = ["count(*)", "count(#)", "count(DISTINCT #)", "sum(#)", "sum(DISTINCT #)", "avg(#)", "avg(DISTINCT #)", "min(#)", "max(#)", "stddev(#)", "stddev_pop(#)", "stddev_samp(#)", "variance(#)", "var_pop(#)", "var_samp(#)", "percentile_disc(0.5) WITHIN GROUP (ORDER BY #)", "percentile_cont(0.25) WITHIN GROUP (ORDER BY #)", "mode() WITHIN GROUP (ORDER BY #)", "array_agg(# ORDER BY k)", "string_agg(#::text, ',' ORDER BY k)", "json_agg(# ORDER BY k)", "jsonb_agg(# ORDER BY k)"] as const;

const GROUPS: CaseFile = {
  name: "groups",
  about: "aggregates and grouping",
  statements: [
    ...FIXTURE,
    ...selects(AGGREGATES.map((a) => `${a} FROM num`), ["a", "b", "c", "d"]),
    ...selects(AGGREGATES.map((a) => `a, ${a} FROM num GROUP BY a`), ["b", "d"]),
    ...selects(AGGREGATES.map((a) => `${a} FROM num WHERE k > 100`), ["a", "c"]),
    ...selects(["# FROM num", "a, # FROM num GROUP BY a"], ["bit_and(b)", "bit_or(b)", "bit_xor(b)", "bool_and(b > 0)", "bool_or(b > 20)", "every(b > 0)", "min(d) - max(d)", "count(*) FILTER (WHERE b > 10)", "sum(b) FILTER (WHERE c > 0)", "covar_pop(b, c)", "covar_samp(b, c)", "corr(b, c)", "regr_slope(b, c)", "regr_intercept(b, c)", "regr_count(b, c)", "regr_r2(b, c)", "regr_avgx(b, c)", "regr_avgy(b, c)", "regr_sxx(b, c)", "regr_syy(b, c)", "regr_sxy(b, c)", "percentile_cont(ARRAY[0, 0.5, 1]) WITHIN GROUP (ORDER BY c)", "json_object_agg(k, b)", "jsonb_object_agg(k, a)", "string_agg(DISTINCT a::text, '' ORDER BY a::text)", "count(DISTINCT (a, b))", "sum(- a) * + 2", "- count(*)", "count(*) * count(a) + - max(k)"]),
    ...selects(["dept, count(*), sum(pay) FROM emp GROUP BY #", "dept, boss, count(*) FROM emp GROUP BY #", "dept, boss, GROUPING(dept), GROUPING(dept, boss), sum(age) FROM emp GROUP BY #"], ["dept, boss", "ROLLUP (dept, boss)", "CUBE (dept, boss)", "GROUPING SETS ((dept, boss), (dept), ())", "GROUPING SETS ((boss), (dept))", "boss, ROLLUP (dept)"]),
    ...selects(["dept, count(*) FROM emp GROUP BY dept HAVING #"], ["count(*) > 1", "max(pay) > 70", "dept IS NULL", "dept > 'f'", "NULL", "sum(age) IS NULL", "count(*) = (SELECT count(*) FROM emp e WHERE e.dept = emp.dept)"]),
    "SELECT count(*) FROM emp HAVING count(*) > 100", "SELECT 1 FROM emp HAVING TRUE", "SELECT id, name FROM emp GROUP BY id", "SELECT name FROM emp GROUP BY dept", "SELECT sum(count(*)) FROM emp", "SELECT count(*) FROM emp WHERE count(*) > 1", "SELECT dept AS x, count(*) FROM emp GROUP BY x", "SELECT dept, count(*) FROM emp GROUP BY 1 ORDER BY 2 DESC, 1", "SELECT upper(dept), count(*) FROM emp GROUP BY upper(dept)", "SELECT age / 10, count(*) FROM emp GROUP BY age / 10", "SELECT DISTINCT dept FROM emp", "SELECT DISTINCT dept, boss FROM emp", "SELECT ALL dept FROM emp", "SELECT DISTINCT ON (dept) dept, name FROM emp ORDER BY dept, pay DESC NULLS LAST, id", "SELECT count(DISTINCT dept), count(dept), count(ALL dept) FROM emp", "SELECT DISTINCT count(*) FROM emp GROUP BY dept", "SELECT sum(x) FROM (VALUES (9223372036854775807), (1)) v(x)", "SELECT sum(x) FROM (VALUES (32767::int2), (1::int2)) v(x)", "SELECT avg(x) FROM (VALUES (1), (2)) v(x)", "SELECT GROUPING(dept) FROM emp", "SELECT dept FROM emp GROUP BY GROUPING SETS (())", "SELECT count(*) FROM emp GROUP BY ()", "SELECT max(name), min(hired), max(hired), max(dept) FROM emp", "SELECT CAST(sum(a) AS NUMERIC(10,2)) / CAST(count(*) AS INTEGER) FROM num", "SELECT + sum(DISTINCT + a) + - 3 FROM num AS cor0", "SELECT COALESCE(sum(b), 0) FROM num WHERE k > 100", "SELECT NULLIF(count(*), 7) FROM num", "SELECT CASE count(*) WHEN 7 THEN 'seven' END FROM num",
  ],
};

const FRAMES = ["", "ROWS BETWEEN 1 PRECEDING AND 1 FOLLOWING", "ROWS UNBOUNDED PRECEDING", "ROWS BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING", "RANGE BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW", "RANGE BETWEEN 1 PRECEDING AND 1 FOLLOWING", "GROUPS BETWEEN 1 PRECEDING AND CURRENT ROW", "ROWS BETWEEN 2 FOLLOWING AND 3 FOLLOWING", "ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING EXCLUDE CURRENT ROW", "RANGE BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING EXCLUDE TIES", "GROUPS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW EXCLUDE GROUP"] as const;

const WINDOWS: CaseFile = {
  name: "windows",
  about: "window functions and frames",
  statements: [
    ...FIXTURE,
    ...selects(["k, # OVER (ORDER BY k) FROM num", "k, # OVER (PARTITION BY a ORDER BY k) FROM num", "k, # OVER (PARTITION BY a ORDER BY k DESC) FROM num WHERE k < 6"], ["row_number()", "rank()", "dense_rank()", "percent_rank()", "cume_dist()", "ntile(3)", "lag(b)", "lag(b, 2)", "lag(b, 1, 0::bigint)", "lead(b)", "lead(b, 2)", "lead(k, 1, -1)", "first_value(b)", "last_value(b)", "nth_value(b, 2)", "sum(b)", "count(*)", "count(b)", "avg(c)", "min(c)", "max(d)", "array_agg(k)", "string_agg(k::text, '')", "bool_and(b > 0)", "sum(b) FILTER (WHERE b > 0)"]),
    ...selects(["k, # OVER (ORDER BY a) FROM num", "k, # OVER (ORDER BY a NULLS FIRST) FROM num"], ["rank()", "dense_rank()", "percent_rank()", "cume_dist()", "sum(k)", "count(*)"]),
    ...FRAMES.flatMap((frame) => selects([`k, sum(k) OVER (ORDER BY k ${frame}) FROM num`, `k, count(*) OVER (PARTITION BY b ORDER BY k ${frame}) FROM num`, `k, min(c) OVER (ORDER BY k DESC ${frame}), first_value(k) OVER (ORDER BY k ${frame}), last_value(k) OVER (ORDER BY k ${frame}) FROM num`], ["0"])),
    "SELECT k, sum(k) OVER w, rank() OVER w FROM num WINDOW w AS (PARTITION BY a ORDER BY k)", "SELECT k, sum(sum(k)) OVER (ORDER BY k) FROM num GROUP BY k", "SELECT a, rank() OVER (ORDER BY count(*) DESC) FROM num GROUP BY a", "SELECT * FROM (SELECT k, row_number() OVER (PARTITION BY a ORDER BY k) AS r FROM num) q WHERE r = 1", "SELECT k FROM num WHERE row_number() OVER () = 1", "SELECT k, ntile(0) OVER () FROM num", "SELECT k, nth_value(k, 0) OVER () FROM num", "SELECT sum(k) OVER (ORDER BY k ROWS BETWEEN CURRENT ROW AND 1 PRECEDING) FROM num", "SELECT sum(k) OVER (ORDER BY k ROWS -1 PRECEDING) FROM num", "SELECT sum(k) OVER nowhere FROM num", "SELECT id, sum(pay) OVER (ORDER BY hired RANGE BETWEEN INTERVAL '1 year' PRECEDING AND CURRENT ROW) FROM emp WHERE hired IS NOT NULL", "SELECT rank() FROM num", "SELECT count(DISTINCT a) OVER () FROM num",
  ],
};

const SETS: CaseFile = {
  name: "sets",
  about: "set operations, VALUES, WITH, ORDER BY and LIMIT",
  statements: [
    ...FIXTURE,
    ...selects(["a FROM num # SELECT k FROM num", "dept FROM emp # SELECT code FROM dept", "a, b FROM num # SELECT a, b FROM num WHERE k < 3", "NULL # SELECT 1", "1 # SELECT 2.5", "'1' # SELECT 'a'", "id FROM none # SELECT k FROM num"], ["UNION", "UNION ALL", "UNION DISTINCT", "EXCEPT", "EXCEPT ALL", "INTERSECT", "INTERSECT ALL"]),
    "SELECT 1 UNION SELECT 2 INTERSECT SELECT 2", "(SELECT 1 UNION SELECT 2) INTERSECT SELECT 2", "SELECT 1 EXCEPT SELECT 1 UNION SELECT 3", "SELECT 1, 2 UNION SELECT 1", "SELECT 1 UNION SELECT 'a'", "SELECT a FROM num UNION SELECT k FROM num ORDER BY 1 DESC LIMIT 2", "SELECT a AS x FROM num UNION SELECT k FROM num ORDER BY x LIMIT 3 OFFSET 1", "SELECT a FROM num UNION SELECT k FROM num ORDER BY k", "(SELECT k FROM num ORDER BY k DESC LIMIT 2) UNION ALL (SELECT k FROM num ORDER BY k LIMIT 1) ORDER BY 1",
    "VALUES (1, 'a'), (2, NULL)", "VALUES (1), (2.5)", "VALUES (1, 2), (3)", "VALUES (3), (1), (2) ORDER BY 1 LIMIT 2", "SELECT * FROM (VALUES (1, 'x')) v(a, b)", "SELECT column1, column2 FROM (VALUES (1, 2)) v", "TABLE dept",
    ...selects(["k, a FROM num ORDER BY #"], ["a, k", "a DESC, k", "a NULLS FIRST, k", "a DESC NULLS LAST, k DESC", "- k", "2, 1", "k + a, k", "abs(k - 4), k", "CASE WHEN a = 1 THEN 0 ELSE 1 END, k", "b DESC, c, k", "k USING >", "7", "nowhere", "(SELECT max(k) FROM num n WHERE n.a = num.a), k"]),
    ...selects(["k FROM num ORDER BY k #"], ["LIMIT 2", "LIMIT 0", "LIMIT ALL", "LIMIT NULL", "OFFSET 5", "LIMIT 2 OFFSET 3", "OFFSET 3 LIMIT 2", "OFFSET 3 ROWS", "FETCH FIRST 2 ROWS ONLY", "FETCH FIRST ROW ONLY", "OFFSET 2 ROWS FETCH NEXT 1 ROW ONLY", "LIMIT 1 + 1", "LIMIT -1", "OFFSET -1", "LIMIT (SELECT 2)", "LIMIT 100 OFFSET 100", "LIMIT 2.5", "LIMIT 'x'", "LIMIT k"]),
    "SELECT a FROM num ORDER BY a FETCH FIRST 1 ROW WITH TIES", "SELECT a FROM num FETCH FIRST 1 ROW WITH TIES",
    "WITH c AS (SELECT 1 AS x) SELECT * FROM c", "WITH c(y) AS (SELECT 1) SELECT y + 1 FROM c", "WITH a AS (SELECT k FROM num), b AS (SELECT k * 2 AS k FROM a WHERE k < 3) SELECT a.k, b.k FROM a JOIN b USING (k)", "WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r WHERE n < 5) SELECT sum(n), count(*) FROM r", "WITH RECURSIVE t AS (SELECT id, boss, 0 AS depth FROM emp WHERE boss IS NULL UNION ALL SELECT e.id, e.boss, t.depth + 1 FROM emp e JOIN t ON e.boss = t.id) SELECT id, depth FROM t", "WITH RECURSIVE r(n) AS (SELECT 1 UNION SELECT (n * 2) % 7 FROM r) SELECT n FROM r", "WITH RECURSIVE r AS (SELECT 1 AS n UNION ALL SELECT count(*)::int FROM r) SELECT * FROM r", "WITH c AS MATERIALIZED (SELECT 1 AS x), d AS NOT MATERIALIZED (SELECT 2 AS x) SELECT * FROM c, d", "WITH c AS (SELECT 1), c AS (SELECT 2) SELECT 1", "WITH emp AS (SELECT 7 AS id) SELECT id FROM emp", "WITH c(a, b) AS (SELECT 1) SELECT * FROM c", "SELECT (WITH c AS (SELECT e.id * 2 AS x) SELECT max(x) FROM c) FROM emp e", "SELECT id, (WITH c AS (SELECT e.age AS x) SELECT (SELECT max(x) FROM c)) FROM emp e", "SELECT * FROM (WITH c AS (SELECT 3 AS x) SELECT * FROM c) q", "WITH c AS (SELECT k FROM num ORDER BY k LIMIT 2) SELECT count(*) FROM c x, c y",
    "CREATE VIEW rich AS SELECT id, name, pay FROM emp WHERE pay > 60", "SELECT * FROM rich", "SELECT name FROM rich WHERE id < 3", "SELECT count(*), max(pay) FROM rich", "CREATE VIEW rich AS SELECT 1", "CREATE OR REPLACE VIEW rich AS SELECT id, name, pay FROM emp WHERE pay > 70", "SELECT r.name, d.title FROM rich r LEFT JOIN emp e ON e.id = r.id LEFT JOIN dept d ON d.code = e.dept", "CREATE VIEW heads(dept, n) AS SELECT dept, count(*) FROM emp GROUP BY dept", "SELECT * FROM heads WHERE n > 1", "CREATE VIEW both_of AS SELECT r.name, h.n FROM rich r, heads h", "SELECT count(*) FROM both_of", "DROP VIEW rich", "DROP VIEW both_of", "DROP VIEW rich, heads", "SELECT * FROM rich", "DROP VIEW IF EXISTS rich", "DROP VIEW rich",
  ],
};

export const QUERIES: readonly CaseFile[] = [JOINS, GROUPS, WINDOWS, SETS];
