/**
 * Test cases for statements whose WITH clause changes rows, and for changes that begin with WITH.
 */
import type { CaseFile } from "./answer.ts";

const READ = [
  "SELECT id, a, b FROM t ORDER BY id",
  "SELECT id, a, b FROM u ORDER BY id",
  "SELECT id, t_id FROM child ORDER BY id",
];

/** Follows each of the statements with queries that read all tables. */
function changes(...statements: readonly string[]): string[] {
  return statements.flatMap((sql) => [sql].concat(READ));
}

export const CHANGES_IN_WITH: CaseFile = {
  name: "changes_in_with",
  about: "WITH that changes rows",
  statements: [
    "CREATE TABLE t (id INT PRIMARY KEY, a INT, b TEXT DEFAULT 'none')",
    "CREATE TABLE u (id INT PRIMARY KEY, a INT CHECK (a > -100), b TEXT)",
    "CREATE TABLE child (id INT PRIMARY KEY, t_id INT REFERENCES t ON DELETE CASCADE)",
    "INSERT INTO t VALUES (1, 10, 'one'), (2, 20, 'two'), (3, 30, 'three'), (4, 40, 'four')",
    ...changes(
      "WITH d AS (DELETE FROM t WHERE id = 1 RETURNING *) SELECT * FROM d",
      "WITH d AS (DELETE FROM t WHERE id = 2 RETURNING id, a, b) INSERT INTO u SELECT * FROM d RETURNING *",
      "WITH i AS (INSERT INTO t (id, a) VALUES (5, 50), (6, 60) RETURNING id, a, b) SELECT count(*), sum(a), min(b) FROM i",
      "WITH i AS (INSERT INTO t (id, a) VALUES (7, 70) RETURNING id) SELECT (SELECT count(*) FROM t WHERE id = 7), (SELECT max(id) FROM i)",
      "WITH x AS (UPDATE t SET a = a + 1 RETURNING id, a) SELECT t.id, t.a, x.a FROM t JOIN x ON x.id = t.id ORDER BY t.id",
      "WITH x AS (UPDATE t SET a = a + 1 WHERE id < 5) SELECT sum(a) FROM t",
      "WITH x AS (UPDATE t SET a = a + 1 WHERE id < 5) SELECT * FROM x",
      "WITH x AS (DELETE FROM t WHERE id = 7), y AS (INSERT INTO u VALUES (70, 7, 'y')) SELECT 1",
      "WITH x AS (DELETE FROM t WHERE id = 6 RETURNING id, a, b), y AS (INSERT INTO u SELECT id * 10, a, b FROM x RETURNING id) SELECT x.id, y.id FROM x, y",
      "WITH x (k, v) AS (INSERT INTO t VALUES (8, 80, 'eight') RETURNING id, b) UPDATE u SET b = x.v FROM x WHERE u.id = 2 RETURNING u.id, u.b, x.k",
      "WITH x AS (SELECT id FROM t WHERE a > 40) DELETE FROM u WHERE id IN (SELECT id * 10 FROM x) RETURNING id",
      "WITH x AS (SELECT 9 AS id, 90 AS a) INSERT INTO t (id, a) SELECT id, a FROM x RETURNING *",
      "WITH x AS (SELECT max(a) AS m FROM t) UPDATE t SET a = m FROM x WHERE t.id = 9 RETURNING t.id, t.a",
      "WITH d AS (DELETE FROM t WHERE id = 9 RETURNING id, a, b) INSERT INTO t SELECT id, a * 2, b FROM d RETURNING a",
      "WITH p AS (INSERT INTO t (id, a) VALUES (20, 200) RETURNING id) INSERT INTO child SELECT 1, id FROM p RETURNING *",
      "WITH c AS (INSERT INTO child VALUES (2, 21) RETURNING id) INSERT INTO t (id) VALUES (21) RETURNING id",
      "WITH c AS (INSERT INTO child VALUES (3, 999) RETURNING id) SELECT * FROM c",
      "WITH d AS (DELETE FROM t WHERE id IN (20, 21) RETURNING id) SELECT id, (SELECT count(*) FROM child) FROM d ORDER BY id",
      "WITH i AS (INSERT INTO u VALUES (2, 22, 'again') ON CONFLICT (id) DO UPDATE SET a = EXCLUDED.a RETURNING id, a) SELECT * FROM i",
      "WITH i AS (INSERT INTO u VALUES (2, 0, 'no') ON CONFLICT DO NOTHING RETURNING id) SELECT count(*) FROM i",
      "WITH i AS (INSERT INTO u VALUES (90, -500, 'no')) SELECT 1",
      "WITH i AS (INSERT INTO u VALUES (91, 1, 'yes')), j AS (INSERT INTO u VALUES (92, -500, 'no')) SELECT 1",
      "WITH i AS (INSERT INTO u VALUES (93, 1, 'x')), j AS (INSERT INTO u VALUES (93, 2, 'y')) SELECT 1",
      "WITH x AS (WITH y AS (SELECT 94 AS id) INSERT INTO u (id) SELECT id FROM y RETURNING id) SELECT * FROM x",
      "WITH RECURSIVE n AS (SELECT 30 AS id UNION ALL SELECT id + 1 FROM n WHERE id < 33), i AS (INSERT INTO t (id, a) SELECT id, 0 FROM n RETURNING id) SELECT min(id), max(id), count(*) FROM i",
      "WITH RECURSIVE d AS (DELETE FROM t WHERE id = 30 RETURNING id), r AS (SELECT id FROM d UNION ALL SELECT id + 1 FROM r WHERE id < 32) SELECT id FROM r ORDER BY id",
      "WITH RECURSIVE d AS (DELETE FROM t USING d WHERE t.id = d.id RETURNING t.id) SELECT * FROM d",
      "WITH a AS (SELECT * FROM b), b AS (DELETE FROM t WHERE id = 31 RETURNING id) SELECT * FROM a",
      "WITH RECURSIVE a AS (SELECT * FROM b), b AS (DELETE FROM t WHERE id = 31 RETURNING id) SELECT * FROM a",
      "SELECT * FROM (WITH d AS (DELETE FROM t RETURNING *) SELECT * FROM d) AS x",
      "INSERT INTO u (id) WITH d AS (DELETE FROM t RETURNING id) SELECT id FROM d",
      "WITH x AS (WITH d AS (DELETE FROM t RETURNING id) SELECT id FROM d) SELECT * FROM x",
      "SELECT (WITH d AS (DELETE FROM t RETURNING id) SELECT count(*) FROM d)",
      "WITH d AS (DELETE FROM t WHERE id = 32 RETURNING id) SELECT 1 / (id - 32) FROM d",
      "WITH d AS (DELETE FROM t WHERE id = 32 RETURNING 1 / (id - 32)) SELECT 1",
      "WITH d AS (DELETE FROM t WHERE id = 33 RETURNING *), e AS (SELECT id FROM d UNION ALL SELECT id FROM d) SELECT count(*) FROM e",
      "WITH d AS MATERIALIZED (DELETE FROM t WHERE id = 32 RETURNING id) TABLE d",
      "WITH d AS (DELETE FROM nope RETURNING *) SELECT * FROM d",
      "WITH d AS (DELETE FROM t WHERE id = 3 RETURNING nope) SELECT * FROM d",
      "WITH d (x, y) AS (DELETE FROM t WHERE id = 3 RETURNING id) SELECT * FROM d",
      "WITH d AS (UPDATE t SET b = 'both' RETURNING id), e AS (UPDATE u SET b = 'both' WHERE id IN (SELECT id FROM t)) SELECT count(*) FROM d",
      "WITH d AS (DELETE FROM u RETURNING id), e AS (INSERT INTO t (id, a) SELECT id + 100, 1 FROM d WHERE id > 2 RETURNING id) SELECT d.id, e.id FROM d LEFT JOIN e ON e.id = d.id + 100 ORDER BY d.id",
    ),
  ],
};
