/**
 * Verifies that columns of arrays and intervals have the same values in the memtable, in segments,
 * in history and after a restart from the log, and that a statement finds the same rows in each
 * place.
 */
import { expect, test } from "bun:test";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { TestEngine } from "../support/sql_engine.ts";

const TYPES = ["INT[]", "TEXT[]", "BIGINT[]", "BYTEA[]", "JSONB[]", "NUMERIC(38,2)[]", "INTERVAL"];

const COLUMNS = TYPES.map((type, i) => `c${i} ${type}`).join(", ");

const ROWS: readonly (readonly unknown[])[] = [
  [
    1,
    [1, 2, 3],
    ["a", "b,c", null],
    ["9007199254740993"],
    [[0, 255], []],
    ['{"a": [2], "b": 1}'],
    ["1.50", "-0.05"],
    "1 mon 2 days 03:04:05.000006",
  ],
  [
    2,
    [
      [1, 2],
      [3, 4],
    ],
    [],
    [],
    [],
    [],
    [],
    "-1 days",
  ],
  [3, null, null, null, null, null, null, null],
  [4, [null], [""], [-1], null, ["null", '"1"'], ["99999999999999999999999999.99"], "30 days"],
];

const INSERT = String.raw`INSERT INTO t VALUES
  (1, '{1,2,3}', '{a,"b,c",NULL}', '{9007199254740993}', ARRAY['\x00ff'::bytea, ''], ARRAY['{"b":1,"a":[2]}'::jsonb], '{1.5,-0.05}', '1 mon 2 days 03:04:05.000006'),
  (2, '{{1,2},{3,4}}', '{}', '{}', '{}', '{}', '{}', '-1 day'),
  (3, NULL, NULL, NULL, NULL, NULL, NULL, NULL),
  (4, '{NULL}', '{""}', '{-1}', NULL, '{"null","\"1\""}', '{99999999999999999999999999.99}', '30 days')`;

const QUESTIONS: readonly (readonly [string, unknown])[] = [
  [`SELECT id, ${TYPES.map((_, i) => `c${i}`).join(", ")} FROM t ORDER BY id`, ROWS],
  ["SELECT id FROM t WHERE 3 = ANY (c0) ORDER BY id", [[1], [2]]],
  ["SELECT id FROM t WHERE c0 = '{{1,2},{3,4}}' OR c1 @> '{a}' ORDER BY id", [[1], [2]]],
  ["SELECT id FROM t WHERE c6 > '29 days' ORDER BY c6 DESC, id", [[1], [4]]],
  ["SELECT c6 = '1 mon' FROM t WHERE id = 4", [[true]]],
  [
    "SELECT c0, count(*) FROM t GROUP BY c0 ORDER BY c0",
    [
      [[1, 2, 3], 1],
      [
        [
          [1, 2],
          [3, 4],
        ],
        1,
      ],
      [[null], 1],
      [null, 1],
    ],
  ],
  [
    "SELECT max(c6), min(c6), count(DISTINCT c6) FROM t",
    [["1 mon 2 days 03:04:05.000006", "-1 days", 3]],
  ],
];

async function expectAnswers(engine: TestEngine): Promise<void> {
  for (const [sql, rows] of QUESTIONS) expect(await engine.rows(sql), sql).toEqual(rows as []);
}

test("arrays and intervals are the same wherever a table stores them", async () => {
  await using engine = await TestEngine.open();
  await engine.run(`CREATE TABLE t (id INT PRIMARY KEY, ${COLUMNS})`);
  await engine.run(INSERT);
  await expectAnswers(engine);
  await engine.restart();
  await expectAnswers(engine);
  await engine.run("STORAGE FLUSH TABLE t");
  await expectAnswers(engine);
  // Merging the segments moves replaced versions to history.
  await engine.run("UPDATE t SET c0 = c0 || 9, c6 = c6 * 2 WHERE id IN (1, 3)");
  await engine.run("STORAGE FLUSH TABLE t; UPDATE t SET c0 = '{1,2,3}', c6 = c6 / 2 WHERE id = 1");
  await engine.run(
    "UPDATE t SET c0 = NULL WHERE id = 3; STORAGE FLUSH TABLE t; STORAGE COMPACT TABLE t",
  );
  await expectAnswers(engine);
  await engine.restart();
  await expectAnswers(engine);
  const files = readdirSync(engine.dataPath, { recursive: true, encoding: "utf8" });
  const segments = files.filter((name) => name.endsWith(".seg"));
  const formats = segments.map((name) =>
    readFileSync(join(engine.dataPath, name)).toString("latin1", 0, 8),
  );
  expect(new Set(formats)).toContain("TIDESEG5");
});

test("keys and conditions work on arrays and intervals", async () => {
  await using engine = await TestEngine.open();
  await engine.run(
    "CREATE TABLE t (id INT PRIMARY KEY, a INT[] CHECK (cardinality(a) < 3), w INTERVAL DEFAULT '1 day')",
  );
  await engine.run("INSERT INTO t (id, a) VALUES (1, $1)", { params: ["{1,2}"] });
  expect(await engine.failure("INSERT INTO t (id, a) VALUES (2, '{1,2,3}')")).toStartWith(
    "CHECK_VIOLATION",
  );
  expect(await engine.failure("INSERT INTO t (id, a) VALUES (2, '{{1},{2,3}}')")).toStartWith(
    "INVALID_VALUE",
  );
  expect(await engine.failure("UPDATE t SET a[0] = 1")).toStartWith("VALUE_OUT_OF_RANGE");
  expect(await engine.failure("UPDATE t SET a[1] = 1, a = '{}'")).toStartWith("INVALID_QUERY");
  expect(await engine.failure("UPDATE t SET w[1] = 1")).toStartWith("TYPE_MISMATCH");
  expect(await engine.failure("UPDATE t SET a[3] = 1")).toStartWith("CHECK_VIOLATION");
  expect(await engine.failure("ALTER TABLE t ALTER COLUMN a TYPE DATE")).toStartWith(
    "TYPE_MISMATCH",
  );
  expect(await engine.rows("SELECT id, a, w FROM t")).toEqual([[1, [1, 2], "1 day"]]);
  const types =
    "SELECT column_name, data_type, udt_name FROM information_schema.columns WHERE table_name = 't' AND column_name <> 'id' AND column_name NOT LIKE '\\_%' ORDER BY 1";
  expect(await engine.rows(types)).toEqual([
    ["a", "ARRAY", "_int4"],
    ["w", "interval", "interval"],
  ]);
});
