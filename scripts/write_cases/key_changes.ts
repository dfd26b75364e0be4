/** Test cases for changes to the primary keys of rows. */
import type { CaseFile } from "./answer.ts";

const PARENTS = "SELECT id, name FROM parent ORDER BY id";
const CHILDREN = "SELECT p, n, v FROM child ORDER BY p, n";
const NOTES = "SELECT id, p, d FROM note ORDER BY id";

/** Follows each of the statements with queries that read all tables. */
function followed(...statements: readonly string[]): string[] {
  return statements.flatMap((sql) => [sql, PARENTS, CHILDREN, NOTES]);
}

export const KEY_CHANGES: CaseFile = {
  name: "key_changes",
  about: "changes to primary keys",
  statements: [
    "CREATE TABLE parent (id INT PRIMARY KEY, name TEXT UNIQUE)",
    "CREATE TABLE child (p INT REFERENCES parent ON UPDATE CASCADE ON DELETE CASCADE, n INT, v TEXT, PRIMARY KEY (p, n))",
    "CREATE TABLE note (id INT PRIMARY KEY, p INT REFERENCES parent ON UPDATE SET NULL, d INT DEFAULT 1 REFERENCES parent ON UPDATE SET DEFAULT)",
    "CREATE TABLE strict (id INT PRIMARY KEY, p INT REFERENCES parent)",
    "INSERT INTO parent VALUES (1, 'a'), (2, 'b'), (3, 'c'), (9, 'i')",
    "INSERT INTO child VALUES (2, 1, 'x'), (2, 2, 'y'), (3, 1, 'z')",
    "INSERT INTO note VALUES (1, 2, 3), (2, 3, 2), (3, NULL, NULL)",
    "INSERT INTO strict VALUES (1, 9)",
    ...followed(
      "UPDATE parent SET id = 20 WHERE id = 2 RETURNING id, name",
      "UPDATE parent SET id = 3 WHERE id = 20",
      "UPDATE parent SET id = NULL WHERE id = 3",
      "UPDATE parent SET id = 10 WHERE id = 9",
      "UPDATE parent SET id = id, name = upper(name) WHERE id = 9",
      "UPDATE parent SET id = id + 100 WHERE id < 9",
      "UPDATE child SET n = n + 10 WHERE v = 'x' RETURNING *",
      "UPDATE child SET p = 101, n = 7 WHERE v = 'z'",
      "UPDATE child SET p = 5 WHERE v = 'z'",
      "UPDATE child SET (p, n) = (SELECT 103, 8) FROM parent WHERE parent.id = child.p AND v = 'z'",
      "UPDATE note SET id = CASE id WHEN 1 THEN 4 ELSE 5 END WHERE id < 3",
      "INSERT INTO parent VALUES (50, 'i') ON CONFLICT (name) DO UPDATE SET id = EXCLUDED.id WHERE parent.name = 'never'",
      "INSERT INTO parent VALUES (50, 'B') ON CONFLICT (name) DO UPDATE SET id = EXCLUDED.id",
      "INSERT INTO parent VALUES (60, 'B') ON CONFLICT (name) DO UPDATE SET id = EXCLUDED.id RETURNING *",
      "MERGE INTO note USING (VALUES (4), (5)) AS s (k) ON note.id = s.k WHEN MATCHED THEN UPDATE SET id = s.k + 2",
      "WITH moved AS (UPDATE note SET id = 8 WHERE id = 6 RETURNING id) UPDATE note SET id = 9 WHERE id IN (SELECT id + 9 FROM moved UNION SELECT 7)",
      "DELETE FROM parent WHERE id = 60",
    ),
    "CREATE TABLE fallback (id INT PRIMARY KEY, p INT DEFAULT 0 REFERENCES parent ON DELETE SET DEFAULT ON UPDATE SET DEFAULT)",
    "INSERT INTO parent VALUES (0, 'zero'), (4, 'four')",
    "INSERT INTO fallback VALUES (1, 4)",
    "DELETE FROM parent WHERE id = 4",
    "SELECT * FROM fallback",
    "DELETE FROM parent WHERE id = 0",
    "UPDATE parent SET id = 5 WHERE id = 0",
    "DELETE FROM parent WHERE id < 5",
    "SELECT * FROM fallback",
    "CREATE TABLE shifted (id INT PRIMARY KEY)",
    "CREATE TABLE kept (p INT REFERENCES shifted)",
    "INSERT INTO shifted VALUES (12), (11)",
    "UPDATE shifted SET id = id + 1",
    "INSERT INTO kept VALUES (13)",
    "UPDATE shifted SET id = id + 1",
    "UPDATE shifted SET id = id + 1",
    "SELECT id FROM shifted ORDER BY id",
    "CREATE TABLE version (v TEXT NOT NULL, CONSTRAINT version_pkc PRIMARY KEY (v))",
    "INSERT INTO version VALUES ('a1')",
    "UPDATE version SET v = 'b2' WHERE version.v = 'a1'",
    "SELECT v FROM version",
    "CREATE VIEW named AS SELECT id AS number, name FROM parent WHERE id > 100 WITH CHECK OPTION",
    "UPDATE named SET number = 200 WHERE name = 'c'",
    "UPDATE named SET number = 2 WHERE name = 'c'",
    "SELECT number, name FROM named ORDER BY number",
    "CREATE TABLE tree (id INT PRIMARY KEY, up INT REFERENCES tree ON UPDATE CASCADE)",
    "INSERT INTO tree VALUES (1, NULL), (2, 1), (3, 1), (4, 2)",
    "UPDATE tree SET id = id + 10",
    "SELECT id, up FROM tree ORDER BY id",
  ],
};
