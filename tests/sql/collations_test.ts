/**
 * Tests collations: the order and equality of text in every clause, the rules by which expressions
 * derive their collation, definitions, indexes, restarts, and that results are the same with and
 * without an index. `cases/collations.slt` has PostgreSQL's results.
 */
import { expect, test } from "bun:test";
import { SeededRandom } from "../support/seeded_random.ts";
import { TestEngine } from "../support/sql_engine.ts";
import { shareOf } from "../support/thoroughness.ts";

const SETUP = `
  CREATE COLLATION nocase (provider = icu, locale = 'und-u-ks-level2', deterministic = false);
  CREATE COLLATION noaccent (provider = icu, locale = '@colStrength=primary', deterministic = false);
`;

test("a column keeps its collation after a restart and after its collation is renamed", async () => {
  await using engine = await TestEngine.open();
  await engine.run(`${SETUP} CREATE TABLE t (id INT PRIMARY KEY, a TEXT COLLATE "sv-x-icu", b TEXT COLLATE nocase UNIQUE);
    INSERT INTO t VALUES (1, 'ö', 'Ada'), (2, 'z', 'bob'), (3, 'a', 'Cy')`);
  await engine.run("ALTER COLLATION nocase RENAME TO anycase");
  for (const reopen of [false, true]) {
    if (reopen) await engine.restart();
    expect(await engine.rows("SELECT a FROM t ORDER BY a")).toEqual([["a"], ["z"], ["ö"]]);
    expect(await engine.rows("SELECT id FROM t WHERE b = 'BOB'")).toEqual([[2]]);
    expect(await engine.rows("SELECT collation for (b) FROM t LIMIT 1")).toEqual([["anycase"]]);
    const { error } = await engine.ask("INSERT INTO t VALUES (9, 'x', 'ADA')");
    expect(error?.code).toBe("DUPLICATE_KEY");
    const dropped = await engine.ask("DROP COLLATION anycase");
    expect(dropped.error?.code).toBe("DEPENDENT_OBJECTS");
  }
});

test("aggregates with DISTINCT compare their arguments by their collation", async () => {
  await using engine = await TestEngine.open();
  await engine.run(`${SETUP} CREATE TABLE t (id INT PRIMARY KEY, a TEXT COLLATE nocase, b TEXT COLLATE "de-x-icu");
    INSERT INTO t VALUES (1, 'x', 'z'), (2, 'X', 'ä'), (3, 'y', 'b')`);
  expect(
    await engine.rows(`SELECT string_agg(DISTINCT a, ','), string_agg(DISTINCT b, ','),
      string_agg(DISTINCT a COLLATE "C", ',') FROM t`),
  ).toEqual([["x,y", "ä,b,z", "X,x,y"]]);
});

test("NULLIF takes its collation from both operands", async () => {
  await using engine = await TestEngine.open();
  await engine.run(
    `${SETUP} CREATE TABLE t (a TEXT COLLATE nocase); INSERT INTO t VALUES ('x'), ('X')`,
  );
  expect(
    await engine.rows(`SELECT count(DISTINCT nullif(a, 'y')),
      count(DISTINCT nullif(a, 'y' COLLATE "C")), min(collation for (nullif(a, 'y' COLLATE "C"))) FROM t`),
  ).toEqual([[1, 2, '"C"']]);
});

test("a unique index under a nondeterministic collation compares by it", async () => {
  await using engine = await TestEngine.open();
  await engine.run(`${SETUP} CREATE TABLE u (id INT PRIMARY KEY, email TEXT COLLATE nocase, n INT);
    CREATE UNIQUE INDEX u_email ON u (email); INSERT INTO u VALUES (1, 'Straße@x', 0), (2, NULL, 0), (3, NULL, 0)`);
  const { error } = await engine.ask("INSERT INTO u VALUES (4, 'STRAßE@X', 0)");
  expect(error?.code).toBe("DUPLICATE_KEY");
  await engine.run(
    "INSERT INTO u VALUES (4, 'STRAßE@X', 0) ON CONFLICT (email) DO UPDATE SET n = u.n + 1",
  );
  await engine.run("STORAGE FLUSH TABLE u");
  expect(await engine.rows("SELECT id, n FROM u WHERE email = 'straße@x'")).toEqual([[1, 1]]);
  expect(await engine.rows(`SELECT id FROM u WHERE email = 'straße@x' COLLATE "C"`)).toEqual([]);
  expect(await engine.rows("SELECT id FROM u WHERE email COLLATE noaccent = 'strasse@x'")).toEqual([
    [1],
  ]);
  const plan = await engine.rows("EXPLAIN SELECT id FROM u WHERE email = 'straße@x'");
  expect(plan.join("\n")).toContain("index: u_email");
});

test.each([
  ["SELECT a < b FROM t", "TYPE_MISMATCH"],
  ["SELECT a = b FROM t", "TYPE_MISMATCH"],
  ["SELECT a || b FROM t ORDER BY 1", "TYPE_MISMATCH"],
  ["SELECT a FROM t UNION SELECT b FROM t", "TYPE_MISMATCH"],
  ["SELECT DISTINCT a || b FROM t", "TYPE_MISMATCH"],
  ["CREATE TABLE v AS SELECT a || b AS c FROM t", "TYPE_MISMATCH"],
  [`SELECT a COLLATE "C" < b COLLATE "POSIX" FROM t`, "TYPE_MISMATCH"],
  [`SELECT string_agg(a COLLATE "C", b COLLATE "POSIX") FROM t`, "TYPE_MISMATCH"],
  [`SELECT 1 COLLATE "C"`, "TYPE_MISMATCH"],
  [`CREATE TABLE v (a INT COLLATE "C")`, "TYPE_MISMATCH"],
  [`SELECT 'a' COLLATE "xx-x-icu"`, "OBJECT_NOT_FOUND"],
  ["SELECT 'a' COLLATE missing", "OBJECT_NOT_FOUND"],
  ["SELECT a LIKE 'x' COLLATE nocase FROM t", "UNSUPPORTED_FEATURE"],
  ["SELECT 'a' COLLATE nocase ~ 'x'", "UNSUPPORTED_FEATURE"],
  ["SELECT replace('a' COLLATE nocase, 'x', 'y')", "UNSUPPORTED_FEATURE"],
  ["CREATE TABLE v (a TEXT COLLATE nocase PRIMARY KEY)", "UNSUPPORTED_FEATURE"],
  ["CREATE TABLE v (a TEXT COLLATE nocase REFERENCES w (a))", "UNSUPPORTED_FEATURE"],
  ["CREATE INDEX ON t (a COLLATE nocase)", "UNSUPPORTED_FEATURE"],
  ["ALTER TABLE w ALTER COLUMN a TYPE text COLLATE nocase", "DEPENDENT_OBJECTS"],
  [
    "CREATE COLLATION v (provider = icu, locale = 'sv', deterministic = false)",
    "UNSUPPORTED_FEATURE",
  ],
  ["CREATE COLLATION v (provider = icu, locale = 'und-u-kb')", "UNSUPPORTED_FEATURE"],
  ["CREATE COLLATION v (provider = icu)", "INVALID_DEFINITION"],
  ["CREATE COLLATION v (locale = 'de_DE')", "UNSUPPORTED_FEATURE"],
  [`CREATE COLLATION v FROM "default"`, "INVALID_DEFINITION"],
  ["CREATE COLLATION nocase (provider = icu, locale = 'de')", "ALREADY_EXISTS"],
  ["DROP TYPE nocase", "INVALID_OPERATION"],
  ["DROP COLLATION e", "INVALID_OPERATION"],
])("%s is refused", async (sql, code) => {
  await using engine = await TestEngine.open();
  await engine.run(`${SETUP} CREATE TYPE e AS ENUM ('x'); CREATE TABLE w (a TEXT UNIQUE);
    CREATE TABLE t (a TEXT COLLATE "de-x-icu", b TEXT COLLATE "sv-x-icu");
    INSERT INTO t VALUES ('a', 'b'), ('c', 'd')`);
  const { error } = await engine.ask(sql);
  expect<string | undefined>(error?.code, error?.message).toBe(code);
});

/** Strings of which many are equal under some collations and different under others. */
const LETTERS = ["a", "A", "á", "ä", "b", "B", "z", "ö", "1", "10", "-", " ", "ß", "ss", "SS"];

const QUERIES = [
  "SELECT x FROM t WHERE x = $1 ORDER BY x, id",
  "SELECT x FROM t WHERE x < $1 ORDER BY x, id",
  "SELECT x FROM t WHERE x >= $1 ORDER BY x DESC, id LIMIT 5",
  "SELECT x FROM t WHERE x BETWEEN $1 AND $1 || 'z' ORDER BY x, id",
  "SELECT id FROM t WHERE x IN ($1, 'b', 'ä') ORDER BY id",
  `SELECT id FROM t WHERE x COLLATE "C" = $1 ORDER BY id`,
  `SELECT id FROM t WHERE x = $1 COLLATE nocase ORDER BY id`,
  "SELECT id FROM t WHERE x COLLATE noaccent = $1 ORDER BY id",
  `SELECT x FROM t ORDER BY x COLLATE "C" LIMIT 7`,
  `SELECT x FROM t ORDER BY x COLLATE "sv-x-icu", id LIMIT 7`,
  "SELECT min(x), max(x) FROM t WHERE id > 3",
  "SELECT count(*), count(DISTINCT x) FROM t",
  "SELECT a.id, b.id FROM t a JOIN t b ON a.x = b.x WHERE a.id < 9 ORDER BY 1, 2",
  "SELECT id FROM t WHERE x IN (SELECT x FROM t WHERE id % 3 = 0) ORDER BY id",
];

const COLLATIONS = ["nocase", '"de-x-icu"', '"und-x-icu"', '"C"'];

test("queries have the same results with and without indexes, in memory and in segments", async () => {
  await using engine = await TestEngine.open();
  await engine.run(SETUP);
  const random = new SeededRandom(129);
  const pick = (): string => LETTERS[random.below(LETTERS.length)] ?? "";
  for (const collation of shareOf(COLLATIONS, { oneOf: 3 })) {
    const values = Array.from({ length: 60 }, (_, id) => `(${id}, '${pick()}${pick()}')`);
    for (const [table, index] of [
      ["t", ""],
      ["indexed", "CREATE INDEX ON indexed (x);"],
    ]) {
      await engine.run(`CREATE TABLE ${table} (id INT PRIMARY KEY, x TEXT COLLATE ${collation}); ${index}
        INSERT INTO ${table} VALUES ${values.slice(0, 40).join(", ")}; STORAGE FLUSH TABLE ${table};
        INSERT INTO ${table} VALUES ${values.slice(40).join(", ")}`);
    }
    for (const sql of QUERIES) {
      for (const value of ["a", "AA", "ss", "äb", "ß"]) {
        const params = sql.includes("$1") ? [value] : [];
        const plain = await engine.rows(sql, { params });
        const indexed = await engine.rows(sql.replaceAll(/\bt\b/g, "indexed"), { params });
        expect(indexed, `${collation}: ${sql} with ${value}`).toEqual(plain);
        if (params.length === 0) break;
      }
    }
    await engine.run("DROP TABLE t; DROP TABLE indexed");
  }
});
