/** Test cases for MERGE statements. */
import type { CaseFile } from "./answer.ts";

const WHOLE = "SELECT id, a, b, d FROM t ORDER BY id";

/** Follows each of the statements with a query that reads the target table. */
function merges(...statements: readonly string[]): string[] {
  return statements.flatMap((sql) => [sql, WHOLE]);
}

export const MERGES: CaseFile = {
  name: "merges",
  about: "MERGE",
  statements: [
    "CREATE TABLE t (id INT PRIMARY KEY, a INT CHECK (a < 1000), b TEXT DEFAULT 'none', d INT NOT NULL DEFAULT 7)",
    "CREATE TABLE s (k INT, x INT, y TEXT)",
    "CREATE TABLE pair (p INT, q TEXT, v NUMERIC(5,1), PRIMARY KEY (p, q))",
    "INSERT INTO t VALUES (1, 10, 'one', 1), (2, 20, 'two', 2), (3, 30, 'three', 3), (4, NULL, NULL, 4)",
    "INSERT INTO s VALUES (1, 100, 'eins'), (3, 300, 'drei'), (5, 500, 'fünf'), (6, NULL, NULL)",
    ...merges(
      "MERGE INTO t USING s ON t.id = s.k WHEN MATCHED THEN UPDATE SET a = s.x, b = s.y WHEN NOT MATCHED THEN INSERT (id, a, b) VALUES (s.k, s.x, s.y)",
      "MERGE INTO t USING s ON t.id = s.k WHEN MATCHED AND s.x > 200 THEN DELETE WHEN MATCHED THEN DO NOTHING",
      "MERGE INTO t USING s ON id = k WHEN NOT MATCHED THEN INSERT VALUES (k, x, y, 0)",
      "MERGE INTO t AS x USING (SELECT k, count(*) AS n FROM s GROUP BY k) AS c ON x.id = c.k WHEN MATCHED THEN UPDATE SET d = c.n + x.d",
      "MERGE INTO t USING (VALUES (1, 'a'), (7, 'b'), (8, 'c')) AS v (k, w) ON t.id = v.k WHEN MATCHED THEN UPDATE SET b = v.w WHEN NOT MATCHED AND v.k = 7 THEN INSERT (id, b) VALUES (v.k, v.w) WHEN NOT MATCHED THEN DO NOTHING",
      "MERGE INTO t USING s ON t.id = s.k WHEN MATCHED AND t.a IS NULL THEN UPDATE SET a = -1 WHEN MATCHED AND t.id = 1 THEN DELETE WHEN MATCHED THEN UPDATE SET (a, b) = (0, DEFAULT)",
      "MERGE INTO t USING s ON t.id = s.k WHEN NOT MATCHED THEN INSERT (id, d) VALUES (s.k, DEFAULT)",
      "MERGE INTO t USING (SELECT 9 AS k) AS n ON t.id = n.k WHEN NOT MATCHED THEN INSERT (id) VALUES (n.k)",
      "MERGE INTO t USING (VALUES (20), (20)) AS v (k) ON t.id = v.k WHEN NOT MATCHED THEN INSERT (id) VALUES (k)",
      "MERGE INTO t USING (VALUES (9), (9)) AS v (k) ON t.id = v.k WHEN MATCHED THEN UPDATE SET a = 1",
      "MERGE INTO t USING (VALUES (9), (9)) AS v (k) ON t.id = v.k WHEN MATCHED THEN DELETE",
      "MERGE INTO t USING (VALUES (9), (9)) AS v (k) ON t.id = v.k WHEN MATCHED THEN DO NOTHING",
      "MERGE INTO t USING (VALUES (9, 1), (9, 2)) AS v (k, n) ON t.id = v.k WHEN MATCHED AND v.n = 2 THEN UPDATE SET a = v.n",
      "MERGE INTO t USING s ON t.id = s.k WHEN MATCHED THEN UPDATE SET a = 5000",
      "MERGE INTO t USING s ON t.id = s.k WHEN MATCHED THEN UPDATE SET d = NULL",
      "MERGE INTO t USING s ON t.id = s.k WHEN MATCHED THEN UPDATE SET a = 1 / (t.id - t.id)",
      "MERGE INTO t USING s ON t.id = s.k AND t.id < 0 WHEN MATCHED THEN UPDATE SET a = 1 / (s.k - s.k)",
      "MERGE INTO t USING s ON FALSE WHEN NOT MATCHED AND s.k = 6 THEN INSERT (id, b) VALUES (60, 'sixty')",
      "MERGE INTO t USING s ON TRUE WHEN MATCHED AND t.id = 60 AND s.k = 5 THEN UPDATE SET a = s.x WHEN NOT MATCHED THEN DO NOTHING",
      "MERGE INTO t USING t AS o ON t.id = o.id + 1 WHEN MATCHED THEN UPDATE SET d = o.d",
      "MERGE INTO t USING s JOIN (VALUES (5, 'join')) AS j (k, w) ON s.k = j.k ON t.id = s.k WHEN MATCHED THEN UPDATE SET b = j.w || s.k",
      "MERGE INTO t USING s LEFT JOIN t AS other ON other.id = s.k ON t.id = s.k WHEN MATCHED THEN UPDATE SET b = coalesce(other.b, 'null') || '!'",
      "WITH c AS (SELECT k, x FROM s WHERE k > 3) MERGE INTO t USING c ON t.id = c.k WHEN MATCHED THEN UPDATE SET a = c.k * 10 WHEN NOT MATCHED THEN INSERT (id, a) VALUES (c.k, c.x)",
      "MERGE INTO t USING s ON t.id = s.k WHEN MATCHED THEN UPDATE SET b = (SELECT max(y) FROM s AS i WHERE i.k <= t.id)",
      "MERGE INTO t USING s ON t.id = s.k WHEN MATCHED AND EXISTS (SELECT 1 FROM s AS i WHERE i.k > t.id) THEN DELETE WHEN NOT MATCHED THEN INSERT DEFAULT VALUES",
      "MERGE INTO t USING (SELECT 1 WHERE FALSE) AS e ON TRUE WHEN NOT MATCHED THEN INSERT (id) VALUES (77)",
      "MERGE INTO t USING s ON t.id = s.k WHEN MATCHED THEN UPDATE SET nope = 1",
      "MERGE INTO t USING s ON t.id = s.nope WHEN MATCHED THEN DELETE",
      "MERGE INTO t USING s ON t.id = s.k WHEN NOT MATCHED THEN INSERT (id, a) VALUES (s.k)",
      "MERGE INTO t USING s ON t.id = s.k WHEN NOT MATCHED THEN INSERT (id) VALUES (t.id)",
      "MERGE INTO t USING s ON t.id = s.k WHEN NOT MATCHED AND t.id = 1 THEN DO NOTHING",
      "MERGE INTO t USING s ON t.id = s.k WHEN MATCHED THEN DELETE WHEN MATCHED THEN DO NOTHING",
      "MERGE INTO t USING s ON t.id = s.k WHEN NOT MATCHED THEN DO NOTHING WHEN NOT MATCHED AND s.k = 1 THEN INSERT (id) VALUES (1)",
      "MERGE INTO t USING s ON t.id = s.k WHEN NOT MATCHED THEN DELETE",
      "MERGE INTO t USING s ON t.id = s.k WHEN MATCHED THEN INSERT (id) VALUES (1)",
      "MERGE INTO t USING s ON t.id = s.k",
      "MERGE INTO t USING s WHEN MATCHED THEN DELETE",
      "MERGE INTO t USING t ON TRUE WHEN MATCHED THEN DELETE",
      "MERGE INTO nope USING s ON TRUE WHEN MATCHED THEN DELETE",
      "MERGE INTO t USING s ON t.id = s.k WHEN NOT MATCHED THEN INSERT (id, id) VALUES (1, 2)",
      "MERGE INTO t USING (SELECT generate_series(100, 140) AS k) AS g ON t.id = g.k WHEN NOT MATCHED AND g.k % 2 = 0 THEN INSERT (id, a) VALUES (g.k, g.k % 7)",
      "MERGE INTO t USING (SELECT generate_series(100, 140) AS k) AS g ON t.id = g.k WHEN MATCHED AND g.k % 3 = 0 THEN DELETE WHEN MATCHED AND a > 3 THEN UPDATE SET a = a * 2 WHEN NOT MATCHED AND g.k % 5 = 0 THEN INSERT VALUES (g.k, 0, 'new', 5)",
    ),
    "INSERT INTO pair VALUES (1, 'x', 1.5), (1, 'y', 2.5)",
    "MERGE INTO pair USING (VALUES (1, 'x', 9), (2, 'x', 3.25)) AS v (p, q, v) ON pair.p = v.p AND pair.q = v.q WHEN MATCHED THEN UPDATE SET v = pair.v + v.v WHEN NOT MATCHED THEN INSERT VALUES (v.p, v.q, v.v)",
    "SELECT p, q, v FROM pair ORDER BY p, q",
    "MERGE INTO pair USING (SELECT 1 AS p) AS o ON pair.p = o.p WHEN MATCHED AND q = 'y' THEN DELETE",
    "SELECT p, q, v FROM pair ORDER BY p, q, v",
    "MERGE INTO s USING (VALUES (1, 'same'), (6, 'six'), (9, 'nine')) AS v (k, w) ON s.k = v.k WHEN MATCHED AND s.k = 1 THEN DELETE WHEN MATCHED THEN UPDATE SET y = v.w WHEN NOT MATCHED THEN INSERT VALUES (v.k, 90, v.w)",
    "SELECT k, x, y FROM s ORDER BY k",
    "MERGE INTO s USING (VALUES (9), (9)) AS v (k) ON s.k = v.k WHEN MATCHED THEN UPDATE SET x = 1",
  ],
};
