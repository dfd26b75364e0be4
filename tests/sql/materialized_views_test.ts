/**
 * Tests materialized views: the rows that a refresh changes, readers' rights, restarts and live
 * queries. `scripts/write_cases/materialized_views.ts` has the cases that PostgreSQL can run.
 */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { ResultFollower } from "../support/result_follower.ts";
import { TestEngine } from "../support/sql_engine.ts";
import { until } from "../support/until.ts";

let engine: TestEngine;

beforeAll(async () => {
  engine = await TestEngine.open();
  await engine.run(
    `CREATE NAMESPACE app;
     CREATE USER ann INTERNAL ROLE user;
     CREATE TABLE app.sales (id INT PRIMARY KEY, kind TEXT, amount NUMERIC)`,
  );
});
afterAll(() => engine[Symbol.asyncDispose]());

async function as<T>(userId: string, work: () => Promise<T>): Promise<T> {
  engine.userId = userId;
  try {
    return await work();
  } finally {
    engine.userId = "root";
  }
}

const failureText = async (sql: string): Promise<string> => {
  const { error } = await engine.ask(sql);
  return error === undefined ? "succeeded" : `${error.code}: ${error.message}`;
};

async function begin(): Promise<void> {
  await engine.run(
    `DROP MATERIALIZED VIEW IF EXISTS app.totals CASCADE;
     DELETE FROM app.sales WHERE TRUE;
     INSERT INTO app.sales VALUES (1, 'x', 2), (2, 'x', 3), (3, 'y', 5);
     CREATE MATERIALIZED VIEW app.totals AS
       SELECT kind, sum(amount) AS total FROM app.sales GROUP BY kind`,
  );
}

const TOTALS = "SELECT kind, total FROM app.totals ORDER BY kind";

test("REFRESH changes only the rows that differ, and a restart keeps the view", async () => {
  await begin();
  await engine.run("CREATE UNIQUE INDEX totals_kind ON app.totals (kind)");
  const seqOf = async (kind: string): Promise<unknown> =>
    (await engine.rows(`SELECT _seq FROM app.totals WHERE kind = '${kind}'`))[0]?.[0];
  const before = await seqOf("y");
  await engine.run("INSERT INTO app.sales VALUES (4, 'x', 10), (5, 'z', 1)");
  expect(await engine.rows(TOTALS)).toEqual([
    ["x", "5"],
    ["y", "5"],
  ]);
  const [refreshed] = await engine.run("REFRESH MATERIALIZED VIEW CONCURRENTLY app.totals");
  expect(refreshed).toMatchObject({ message: "Materialized view app.totals refreshed" });
  expect(refreshed?.lastSeq).toBeNumber();
  const rows = [
    ["x", "15"],
    ["y", "5"],
    ["z", "1"],
  ];
  for (const restarts of [false, true]) {
    if (restarts) await engine.restart();
    expect(await engine.rows(TOTALS)).toEqual(rows);
    expect(await seqOf("y")).toBe(before);
  }
  const [again] = await engine.run("REFRESH MATERIALIZED VIEW app.totals");
  expect(again?.lastSeq ?? null).toBeNull();
  await engine.run("DELETE FROM app.sales WHERE kind = 'x'; REFRESH MATERIALIZED VIEW app.totals");
  expect(await engine.rows(TOTALS)).toEqual(rows.slice(1));
});

test("a refresh that fails leaves the rows as they were", async () => {
  await begin();
  await engine.run(
    `CREATE MATERIALIZED VIEW app.parts AS SELECT id % 5 AS part, 10 / amount AS each FROM app.sales;
     CREATE UNIQUE INDEX parts_part ON app.parts (part)`,
  );
  const before = await engine.rows("SELECT part, each FROM app.parts ORDER BY part");
  await engine.run("INSERT INTO app.sales VALUES (6, 'z', 1)");
  expect(await failureText("REFRESH MATERIALIZED VIEW app.parts")).toStartWith("DUPLICATE_KEY");
  await engine.run("UPDATE app.sales SET amount = 0 WHERE id = 6");
  expect(await failureText("REFRESH MATERIALIZED VIEW app.parts")).toStartWith("DIVISION_BY_ZERO");
  expect(await engine.rows("SELECT part, each FROM app.parts ORDER BY part")).toEqual(before);
  await engine.run("DROP MATERIALIZED VIEW app.parts");
  expect(
    await failureText("CREATE MATERIALIZED VIEW app.parts AS SELECT 1 / amount FROM app.sales"),
  ).toStartWith("DIVISION_BY_ZERO");
  expect(await failureText("SELECT * FROM app.parts")).toStartWith("TABLE_NOT_FOUND");
  // The failed view has left nothing behind that depends on the table.
  await engine.run(
    "ALTER TABLE app.sales ADD COLUMN more INT; ALTER TABLE app.sales DROP COLUMN more",
  );
});

test("only REFRESH changes the rows of a materialized view", async () => {
  await begin();
  const fault = "READ_ONLY_OBJECT: Cannot write to app.totals: it is a materialized view";
  for (const sql of [
    "INSERT INTO app.totals VALUES ('a', 1)",
    "UPDATE app.totals SET total = 0 WHERE TRUE",
    "DELETE FROM app.totals WHERE TRUE",
    "TRUNCATE app.totals",
    "MERGE INTO app.totals USING app.sales ON FALSE WHEN NOT MATCHED THEN DO NOTHING",
    "WITH gone AS (DELETE FROM app.totals WHERE TRUE RETURNING kind) SELECT * FROM gone",
  ]) {
    expect([sql, await failureText(sql)]).toEqual([sql, fault]);
  }
  expect(await failureText(`INSERT INTO app."totals (materialized)" VALUES ('a', 1)`)).toStartWith(
    "READ_ONLY_OBJECT",
  );
  expect(await failureText(`DROP VIEW app."totals (materialized)"`)).toStartWith("TABLE_NOT_FOUND");
  expect(await failureText("REFRESH MATERIALIZED VIEW app.sales")).toBe(
    "INVALID_OPERATION: Cannot refresh materialized view app.sales: it is a table",
  );
  expect(
    await failureText("CREATE TABLE app.refers (kind TEXT REFERENCES app.totals (kind))"),
  ).toBe("INVALID_OPERATION: Cannot refer to app.totals: it is a materialized view");
  expect(await failureText("SELECT kind FROM app.totals FOR UPDATE")).toBe(
    "INVALID_OPERATION: Cannot lock rows of app.totals: it is a materialized view",
  );
  expect(await failureText("REFRESH MATERIALIZED VIEW CONCURRENTLY app.totals")).toBe(
    "INVALID_OPERATION: Cannot refresh materialized view app.totals CONCURRENTLY: this requires a unique index on plain columns and without WHERE",
  );
});

test("DROP NAMESPACE … CASCADE drops the materialized views of other namespaces that need it", async () => {
  await engine.run(
    `CREATE NAMESPACE base; CREATE NAMESPACE other;
     CREATE TABLE base.given (id INT PRIMARY KEY);
     CREATE TABLE other.kept (id INT PRIMARY KEY);
     CREATE MATERIALIZED VIEW other.copied AS TABLE base.given;
     CREATE VIEW other.above AS TABLE other.copied;
     CREATE MATERIALIZED VIEW other.highest AS TABLE other.above;
     DROP NAMESPACE base CASCADE`,
  );
  const [left] = await engine.run(
    "SELECT table_name FROM information_schema.tables WHERE table_schema = 'other'",
  );
  expect(left?.rows).toEqual([["kept"]]);
  await engine.run("DROP NAMESPACE other CASCADE");
});

test("a view reads with the rights of the user who refreshes it, and is read by its access level", async () => {
  await begin();
  const sql = "SELECT kind, total FROM app.totals";
  expect(await as("ann", () => failureText(sql))).toStartWith("TABLE_NOT_FOUND");
  await engine.run("ALTER MATERIALIZED VIEW app.totals SET ACCESS LEVEL PUBLIC");
  expect(await as("ann", () => engine.rows(sql))).toHaveLength(2);
  expect(await as("ann", () => failureText("SELECT * FROM app.sales"))).toStartWith(
    "TABLE_NOT_FOUND",
  );
  for (const refused of [
    "REFRESH MATERIALIZED VIEW app.totals",
    "DROP MATERIALIZED VIEW app.totals",
    "CREATE MATERIALIZED VIEW app.own AS SELECT 1 AS one",
  ]) {
    expect(await as("ann", () => failureText(refused))).toStartWith("PERMISSION_DENIED");
  }
  const listed =
    "SELECT view_name, is_populated, definition IS NULL FROM system.materialized_views";
  expect(await as("ann", () => engine.rows(listed))).toEqual([["totals", true, true]]);
  expect(await engine.rows(listed)).toEqual([["totals", true, false]]);
  expect(
    await engine.rows(
      "SELECT table_type, is_insertable_into FROM information_schema.tables WHERE table_name = 'totals'",
    ),
  ).toEqual([["MATERIALIZED VIEW", "NO"]]);
});

test("a view within a transaction appears with the COMMIT, and not after ROLLBACK", async () => {
  await begin();
  const made =
    "CREATE MATERIALIZED VIEW app.most AS SELECT max(total) AS m FROM app.totals; SELECT m FROM app.most";
  const undone = await engine.run(`BEGIN; ${made}; ROLLBACK`);
  expect(undone[2]?.rows?.map(([most]) => most)).toEqual(["5"]);
  expect(await failureText("SELECT * FROM app.most")).toStartWith("TABLE_NOT_FOUND");
  await engine.run(
    `BEGIN; ${made}; INSERT INTO app.sales VALUES (9, 'y', 90);
     REFRESH MATERIALIZED VIEW app.totals; REFRESH MATERIALIZED VIEW app.most; COMMIT`,
  );
  expect(await engine.rows("SELECT m FROM app.most")).toEqual([["95"]]);
  await engine.run("BEGIN; REFRESH MATERIALIZED VIEW app.most WITH NO DATA; ROLLBACK");
  expect(await engine.rows("SELECT m FROM app.most")).toEqual([["95"]]);
});

test("a live query gets one commit with the difference, and ends when the view loses its rows", async () => {
  await begin();
  const follower = new ResultFollower();
  const spec = { id: "q", sql: `${TOTALS} LIMIT 10`, namespace_id: "app" };
  const { principal } = engine;
  follower.subscription = engine.database.live.subscribe({ principal, spec, sink: follower });
  await until(() => follower.isComplete);
  await engine.run("INSERT INTO app.sales VALUES (4, 'x', 10), (5, 'z', 1)");
  const [{ lastSeq } = {}] = await engine.run("REFRESH MATERIALIZED VIEW app.totals");
  await follower.reaches(lastSeq ?? 0);
  const texts = follower.rows.map(({ kind, total }) => `${String(kind)} ${String(total)}`);
  expect(texts.toSorted()).toEqual(["x 15", "y 5", "z 1"]);
  const seqs = new Set(follower.changes.map((change) => change.commit_seq));
  expect(seqs.size).toBe(1);
  const counts = follower.changes.map(
    ({ change_type: type, old_values: olds = [], rows }) =>
      `${type} ${type === "delete" ? olds.length : rows.length}`,
  );
  expect(counts.toSorted()).toEqual(["delete 1", "insert 2"]);
  await engine.run("REFRESH MATERIALIZED VIEW app.totals WITH NO DATA");
  await until(() => follower.failure !== undefined);
  expect(follower.failure?.message).toContain("subscribe again");
});
