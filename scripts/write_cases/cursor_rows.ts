/** Test cases for changes of the current row of a cursor, in programs. */
import type { CaseFile } from "./answer.ts";

/** Returns a block that opens a cursor `c` on a query, and then runs statements. */
function block(query: string, statements: string): string {
  return `DO $$ DECLARE c REFCURSOR; n INT; BEGIN OPEN c FOR ${query}; ${statements} END $$`;
}

/** Returns a block with a loop over a bound cursor `c`. */
function loop(query: string, statements: string): string {
  return `DO $$ DECLARE c CURSOR FOR ${query}; r RECORD; BEGIN FOR r IN c LOOP ${statements} END LOOP; END $$`;
}

/** Moves of a cursor, after which the current row is changed. */
const MOVES: readonly string[] = [
  "FETCH FIRST FROM c INTO n",
  "FETCH LAST FROM c INTO n",
  "FETCH ABSOLUTE 2 FROM c INTO n",
  "FETCH ABSOLUTE -2 FROM c INTO n",
  "MOVE FORWARD 3 FROM c",
  "MOVE LAST FROM c; FETCH PRIOR FROM c INTO n",
  "MOVE LAST FROM c; FETCH RELATIVE -2 FROM c INTO n",
  "FETCH ABSOLUTE 9 FROM c INTO n; FETCH PRIOR FROM c INTO n",
  "FETCH c INTO n; FETCH PRIOR FROM c INTO n",
  "MOVE FORWARD ALL FROM c",
];

export const CURSOR_ROWS: CaseFile = {
  name: "cursor_rows",
  about: "changes of the current row of a cursor",
  statements: [
    "CREATE TABLE t (id INT PRIMARY KEY, v INT)",
    "CREATE TABLE plain (v INT, s TEXT)",
    "INSERT INTO t VALUES (1, 10), (2, 20), (3, 30), (4, 40), (5, 50)",
    "INSERT INTO plain VALUES (1, 'a'), (1, 'a'), (2, 'b'), (3, 'c')",
    block("SELECT v FROM t WHERE id > 1", "FETCH c INTO n; DELETE FROM t WHERE CURRENT OF c;"),
    "SELECT * FROM t ORDER BY id",
    block(
      "SELECT v FROM t WHERE id = 3",
      "FETCH c INTO n; UPDATE t SET v = n + 1 WHERE CURRENT OF c;",
    ),
    "SELECT * FROM t ORDER BY id",
    loop("SELECT * FROM plain", "UPDATE plain SET s = s || r.v WHERE CURRENT OF c;"),
    "SELECT * FROM plain ORDER BY v",
    loop(
      "SELECT * FROM plain WHERE v = 1 FOR UPDATE",
      "DELETE FROM plain WHERE CURRENT OF c; EXIT;",
    ),
    "SELECT * FROM plain ORDER BY v",
    loop(
      "SELECT t.v FROM t JOIN plain p ON p.v = t.id WHERE t.id = 3 FOR UPDATE OF p",
      "UPDATE plain SET v = 30 WHERE CURRENT OF c;",
    ),
    "SELECT * FROM plain ORDER BY v",
    block("SELECT v FROM t", "DELETE FROM t WHERE CURRENT OF c;"),
    block("SELECT v FROM t", "MOVE LAST FROM c; MOVE c; DELETE FROM t WHERE CURRENT OF c;"),
    block("SELECT v FROM plain", "FETCH c INTO n; DELETE FROM t WHERE CURRENT OF c;"),
    block("SELECT v FROM t GROUP BY v", "FETCH c INTO n; DELETE FROM t WHERE CURRENT OF c;"),
    block("SELECT DISTINCT v FROM t", "FETCH c INTO n; DELETE FROM t WHERE CURRENT OF c;"),
    block("SELECT t.v FROM t, plain", "FETCH c INTO n; DELETE FROM t WHERE CURRENT OF c;"),
    block(
      "SELECT a.v FROM t a, t b FOR UPDATE",
      "FETCH c INTO n; DELETE FROM t WHERE CURRENT OF c;",
    ),
    ...MOVES.flatMap((move) => [
      block(
        "SELECT id FROM t ORDER BY id",
        `${move}; UPDATE t SET v = v + 100 WHERE CURRENT OF c;`,
      ),
      "SELECT * FROM t ORDER BY id",
    ]),
    "DELETE FROM t WHERE CURRENT OF c",
    "SELECT count(*) FROM t",
  ],
};
