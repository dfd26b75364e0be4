/**
 * Tests DECLARE, FETCH, MOVE and CLOSE: every direction, the lifetime of a cursor, its limits, and
 * the rights it needs.
 */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { TestEngine } from "../../support/sql_engine.ts";

let engine: TestEngine;

beforeAll(async () => {
  engine = await TestEngine.open({ config: "limits.transaction_max_bytes = 1048576" });
  await engine.run(
    "CREATE TABLE t (id INT PRIMARY KEY, v TEXT); INSERT INTO t VALUES (1, 'a'), (2, 'b'), (3, 'c'), (4, 'd');" +
      "CREATE TABLE secret (id INT PRIMARY KEY) WITH (ACCESS_LEVEL = 'DBA');" +
      "CREATE USER sam INTERNAL ROLE user",
  );
});
afterAll(() => engine[Symbol.asyncDispose]());

const DECLARED = "DECLARE c SCROLL CURSOR FOR SELECT id FROM t ORDER BY id";

/**
 * Returns the ids that each statement yields. A statement without rows yields its message instead.
 */
async function fetched(...statements: readonly string[]): Promise<unknown[]> {
  const results = await engine.run(`BEGIN; ${DECLARED}; ${statements.join("; ")}; COMMIT`);
  return results
    .slice(2, -1)
    .map(({ message, rows }) => (rows === undefined ? message : rows.map(([id]) => id)));
}

test("FETCH continues from row to row, and past the last one", async () => {
  const steps = ["FETCH c", "FETCH NEXT FROM c", "FETCH 2 IN c", "FETCH c", "FETCH c"];
  expect(await fetched(...steps)).toEqual([[1], [2], [3, 4], [], []]);
});

test("FETCH moves backward from any position, and before the first row", async () => {
  const steps = ["FETCH ALL c", "FETCH PRIOR c", "FETCH BACKWARD 2 c", "FETCH BACKWARD ALL c"];
  expect(await fetched(...steps)).toEqual([[1, 2, 3, 4], [4], [3, 2], [1]]);
  expect(await fetched("FETCH PRIOR c", "FETCH c", "FETCH -1 c", "FETCH c")).toEqual([
    [],
    [1],
    [],
    [1],
  ]);
});

test("FETCH finds a row by its position", async () => {
  const steps = [
    "FETCH LAST c",
    "FETCH FIRST c",
    "FETCH ABSOLUTE 3 c",
    "FETCH ABSOLUTE -4 c",
    "FETCH RELATIVE 2 c",
    "FETCH RELATIVE -1 c",
    "FETCH RELATIVE 0 c",
    "FETCH FORWARD 0 c",
    "FETCH ABSOLUTE 9 c",
    "FETCH ABSOLUTE 0 c",
    "FETCH FORWARD ALL c",
  ];
  expect(await fetched(...steps)).toEqual([
    [4],
    [1],
    [3],
    [1],
    [3],
    [2],
    [2],
    [2],
    [],
    [],
    [1, 2, 3, 4],
  ]);
});

test("MOVE counts the rows over which it moves", async () => {
  expect(await fetched("MOVE 3 IN c", "FETCH c", "MOVE BACKWARD ALL c", "FETCH c")).toEqual([
    "Moved over 3 row(s)",
    [4],
    "Moved over 3 row(s)",
    [1],
  ]);
});

test("the word for a direction may be the name of a cursor", async () => {
  const text =
    "BEGIN; DECLARE next CURSOR FOR SELECT 1; DECLARE prior CURSOR FOR SELECT 2; FETCH next; FETCH prior; FETCH FROM next; CLOSE ALL; COMMIT";
  const rows = (await engine.run(text)).map((result) => result.rows);
  expect(rows.slice(3, 6)).toEqual([[[1]], [[2]], []]);
});

test("a cursor has the rows at the time of its declaration, with the columns of its query", async () => {
  const [, , , found] = await engine.run(
    "BEGIN; DECLARE c CURSOR FOR SELECT id, v AS name FROM t WHERE id > $1 ORDER BY id DESC; UPDATE t SET v = 'z' WHERE id = 4; FETCH ALL c; UPDATE t SET v = 'd' WHERE id = 4; COMMIT",
    { params: [2] },
  );
  expect(found?.rows).toEqual([
    [4, "d"],
    [3, "c"],
  ]);
  expect(found?.schema?.map(({ name }) => name)).toEqual(["id", "name"]);
});

test("a cursor ends with its transaction, and one WITH HOLD with the request", async () => {
  expect(await engine.failure(`BEGIN; ${DECLARED}; COMMIT; FETCH c`)).toBe("OBJECT_NOT_FOUND@4:79");
  const held = "DECLARE h CURSOR WITH HOLD FOR SELECT id FROM t ORDER BY id";
  expect(await engine.rows(`BEGIN; ${held}; COMMIT; FETCH 2 h`)).toEqual([[1], [2]]);
  expect(await engine.rows(`${held}; FETCH 2 h`)).toEqual([[1], [2]]);
  expect(await engine.failure("FETCH h")).toBe("OBJECT_NOT_FOUND@1:6");
  expect(await engine.failure(`BEGIN; ${held}; ROLLBACK; FETCH h`)).toStartWith("OBJECT_NOT_FOUND");
});

test("a cursor ends when the transaction returns to a savepoint before its declaration", async () => {
  const text = `BEGIN; DECLARE a CURSOR FOR SELECT 7; SAVEPOINT s; ${DECLARED}; ROLLBACK TO s`;
  expect(await engine.rows(`${text}; FETCH a; COMMIT`)).toEqual([]);
  const results = await engine.run(`${text}; FETCH a; COMMIT`);
  expect(results[5]?.rows).toEqual([[7]]);
  expect(await engine.failure(`${text}; FETCH c; COMMIT`)).toStartWith("OBJECT_NOT_FOUND");
});

test("a transaction of several requests keeps its cursors", async () => {
  const { id } = engine.database.sql.openTransaction(engine.principal, { isReadOnly: false });
  const parts = { transaction: id };
  await engine.run(DECLARED, parts);
  expect(await engine.rows("FETCH 3 c", parts)).toEqual([[1], [2], [3]]);
  expect(await engine.rows("FETCH c", parts)).toEqual([[4]]);
  await engine.run("CLOSE c", parts);
  expect(await engine.failure("FETCH c", parts)).toBe("OBJECT_NOT_FOUND@1:6");
  const idempotency = undefined;
  await engine.database.sql.endTransaction(engine.principal, {
    id,
    statement: "ROLLBACK",
    idempotency,
  });
});

test.each([
  [DECLARED, "TRANSACTION_REQUIRED@1:0"],
  [`BEGIN; ${DECLARED}; ${DECLARED}`, "ALREADY_EXISTS@3:73"],
  ["BEGIN; CLOSE c", "OBJECT_NOT_FOUND@2:13"],
  ["BEGIN; DECLARE c NO SCROLL CURSOR FOR SELECT 1; FETCH PRIOR c", "INVALID_OPERATION@3:60"],
  ["BEGIN; DECLARE c CURSOR FOR SELECT * FROM missing", "TABLE_NOT_FOUND@2:42"],
  ["BEGIN; DECLARE c CURSOR FOR DELETE FROM t", "UNSUPPORTED_FEATURE@2:28"],
  ["BEGIN; DECLARE c BINARY CURSOR FOR SELECT 1", "UNSUPPORTED_FEATURE@2:17"],
  [
    "BEGIN; DECLARE c CURSOR FOR SELECT repeat('x', 500000) FROM generate_series(1, 3)",
    "TRANSACTION_LIMIT@2:15",
  ],
])("%s fails with %s", async (sql, failure) => {
  expect(await engine.failure(sql)).toBe(failure);
});

test("NO SCROLL allows every forward movement", async () => {
  const text =
    "BEGIN; DECLARE c NO SCROLL CURSOR FOR SELECT id FROM t ORDER BY id; FETCH c; FETCH ABSOLUTE 3 c; FETCH ALL c; COMMIT";
  const rows = (await engine.run(text)).map((result) => result.rows);
  expect(rows.slice(2, 5)).toEqual([[[1]], [[3]], [[4]]]);
});

test("DECLARE requires the rights of its query", async () => {
  engine.userId = "sam";
  try {
    const sql = "DECLARE c CURSOR WITH HOLD FOR SELECT * FROM secret";
    expect(await engine.failure(sql)).toStartWith("TABLE_NOT_FOUND");
  } finally {
    engine.userId = "root";
  }
});

test("a cursor that locks rows reads each row once, and only forward", async () => {
  const declared = "DECLARE k CURSOR FOR SELECT id FROM t ORDER BY id FOR UPDATE; FETCH 2 k";
  const failure = async (move: string): Promise<string | undefined> =>
    (await engine.ask(`BEGIN; ${declared}; ${move}; ROLLBACK`)).error?.message;
  expect(await failure("FETCH PRIOR k")).toBe('Cannot move cursor "k" backward: it locks rows');
  expect(await failure("FETCH RELATIVE 0 FROM k")).toBe(
    'Cannot move cursor "k" to the same row again: it locks rows',
  );
  expect(await failure("MOVE RELATIVE 0 FROM k; FETCH k")).toBeUndefined();
  for (const word of ["SCROLL CURSOR", "INSENSITIVE CURSOR", "CURSOR WITH HOLD"]) {
    expect(await engine.failure(`DECLARE k ${word} FOR SELECT id FROM t FOR SHARE`)).toContain(
      "UNSUPPORTED_FEATURE",
    );
  }
});
