/** Test cases for the SEARCH and CYCLE clauses of recursive queries. */
import type { CaseFile } from "./answer.ts";
import { FIXTURE } from "./queries.ts";

const COUNTED = "WITH RECURSIVE t AS (SELECT 1 AS n UNION ALL SELECT n + 1 FROM t WHERE n < 3)";
const ROUND = "WITH RECURSIVE t AS (SELECT 1 AS n UNION ALL SELECT n % 3 + 1 FROM t)";
const TREE =
  "WITH RECURSIVE t AS (SELECT id, name, boss FROM emp WHERE boss IS NULL UNION ALL SELECT e.id, e.name, e.boss FROM emp e JOIN t ON e.boss = t.id)";

const WALKS: CaseFile = {
  name: "walks",
  about: "SEARCH and CYCLE of recursive queries",
  statements: [
    ...FIXTURE,
    `${TREE} SEARCH DEPTH FIRST BY id SET o SELECT id, o::text FROM t ORDER BY o`,
    `${TREE} SEARCH DEPTH FIRST BY name, id SET o SELECT id, o::text FROM t ORDER BY o`,
    `${TREE} SEARCH BREADTH FIRST BY id SET o SELECT id, o::text FROM t ORDER BY o`,
    `${TREE} SEARCH BREADTH FIRST BY name, id SET o SELECT id, o::text FROM t ORDER BY o DESC`,
    `${TREE} CYCLE id SET c USING p SELECT id, c, p::text FROM t ORDER BY p`,
    `${TREE} CYCLE boss SET c TO 'again' DEFAULT 'first' USING p SELECT id, c FROM t ORDER BY id`,
    `${ROUND} CYCLE n SET c USING p SELECT n, c, p::text FROM t`,
    `${ROUND} CYCLE n SET c TO 1 DEFAULT 0 USING p SELECT n, c, array_length(p, 1) FROM t`,
    `${ROUND} SEARCH DEPTH FIRST BY n SET o CYCLE n SET c USING p SELECT n, c, p = o FROM t ORDER BY o`,
    `${ROUND.replace("ALL ", "")} CYCLE n SET c USING p SELECT n, c FROM t`,
    "WITH RECURSIVE t(n, m) AS (SELECT 1, 2 UNION ALL SELECT n % 3 + 1, m FROM t) CYCLE n, m SET c USING p SELECT n, c, p::text FROM t",
    "WITH RECURSIVE t AS (SELECT 1 AS n UNION ALL SELECT x.n % 2 + 1 FROM t AS x WHERE x.n > 0 OR x.n < 0) CYCLE n SET c USING p SELECT * FROM (SELECT n, c FROM t) s",
    "WITH RECURSIVE t AS (VALUES (1) UNION ALL SELECT column1 + 1 FROM t WHERE column1 < 3) SEARCH BREADTH FIRST BY column1 SET o SELECT column1, o::text FROM t",
    "WITH RECURSIVE x(id) AS (VALUES (1) UNION ALL SELECT id + 1 FROM x WHERE id < 3), y(id) AS (VALUES (1) UNION ALL SELECT x.id FROM y JOIN x ON x.id = y.id + 1) CYCLE id SET c USING p SELECT id, c FROM y ORDER BY 1",
    "SELECT k, (WITH RECURSIVE t AS (SELECT k AS n UNION ALL SELECT n % 2 + 1 FROM t) CYCLE n SET c USING p SELECT max(array_length(p, 1)) FROM t) FROM num ORDER BY 1",
    `${COUNTED} SEARCH DEPTH FIRST BY nix SET o SELECT n FROM t`,
    `${COUNTED} SEARCH DEPTH FIRST BY n, n SET o SELECT n FROM t`,
    `${COUNTED} CYCLE n SET c USING c SELECT n FROM t`,
    `${COUNTED} CYCLE n SET c SELECT n FROM t`,
    "WITH t AS (SELECT 1 AS n) SEARCH DEPTH FIRST BY n SET o SELECT n FROM t",
    "WITH RECURSIVE t AS (SELECT 1 AS n) CYCLE n SET c USING p SELECT n FROM t",
    "WITH RECURSIVE t AS (SELECT 1 AS n UNION ALL SELECT 2) CYCLE n SET c USING p SELECT n FROM t",
    "WITH RECURSIVE t AS (SELECT 1 AS n UNION ALL SELECT q.n + 1 FROM (SELECT * FROM t) q WHERE q.n < 3) CYCLE n SET c USING p SELECT n FROM t",
    "WITH RECURSIVE t(n) AS (SELECT 1 UNION ALL (WITH RECURSIVE s(m) AS (SELECT 1 UNION ALL SELECT m + 1 FROM s WHERE m < 2) SELECT n + m FROM t, s WHERE n < 4)) SELECT n, count(*) FROM t GROUP BY n ORDER BY n",
    "WITH RECURSIVE t(n) AS (WITH RECURSIVE s(m) AS (SELECT 1 UNION ALL SELECT m + 1 FROM s WHERE m < 3) SELECT m FROM s UNION ALL SELECT n + 10 FROM t WHERE n < 20) SELECT * FROM t ORDER BY 1",
    "WITH RECURSIVE t(n) AS (SELECT 1 UNION ALL SELECT (WITH RECURSIVE s(m) AS (SELECT n UNION ALL SELECT m + 1 FROM s WHERE m < 10) SELECT max(m) FROM s) + n FROM t WHERE n < 30) SELECT * FROM t",
    "WITH RECURSIVE t(n) AS (SELECT 1 UNION ALL SELECT m + 1 FROM (WITH RECURSIVE s(m) AS (SELECT n FROM t UNION ALL SELECT m + 1 FROM s WHERE m < 5) SELECT m FROM s) q WHERE m < 3) SELECT n, count(*) FROM t GROUP BY n ORDER BY 1",
    "WITH RECURSIVE a AS (WITH RECURSIVE b AS (SELECT 1 AS n UNION ALL SELECT n + 1 FROM b WHERE n < 3) SELECT * FROM b), c AS (SELECT n FROM a UNION ALL SELECT c.n + 10 FROM c, a WHERE c.n = a.n) SELECT * FROM c ORDER BY 1",
    ...["EXCEPT", "EXCEPT ALL"].flatMap((operator) => [
      `SELECT k FROM num ${operator} SELECT 1 ${operator} SELECT 2 ORDER BY 1`,
      `SELECT a FROM num ${operator} SELECT 1 UNION ALL SELECT 7 ${operator} SELECT 7 ORDER BY 1`,
      `SELECT k FROM num${Array.from({ length: 40 }, (_, i) => ` ${operator} SELECT ${i % 3}`).join("")} ORDER BY 1`,
    ]),
    "SELECT depth, breadth FROM (SELECT 1 AS depth, 2 AS breadth) q",
  ],
};

export const WALK_CASES: readonly CaseFile[] = [WALKS];
