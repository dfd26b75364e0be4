/**
 * Tests NULLS NOT DISTINCT in unique constraints and indexes: in memory and in segments, with
 * every statement that writes rows, with ON CONFLICT, in definitions that copy it, and after a
 * restart.
 */
import { expect, test } from "bun:test";
import { TestEngine } from "../../support/sql_engine.ts";

async function opened(): Promise<TestEngine> {
  const engine = await TestEngine.open();
  await engine.run(
    `CREATE NAMESPACE app;
     CREATE TABLE app.places (id INT PRIMARY KEY, team TEXT, rank INT,
       CONSTRAINT place UNIQUE NULLS NOT DISTINCT (team, rank))`,
  );
  return engine;
}

/** Returns the error code of a statement, or "" if the statement succeeds. */
async function codeOf(engine: TestEngine, sql: string): Promise<string> {
  return (await engine.ask(sql)).error?.code ?? "";
}

const EQUAL_KEYS: readonly (readonly [where: string, flushes: boolean, restarts: boolean])[] = [
  ["in memory", false, false],
  ["in a segment", true, false],
  ["after a restart", false, true],
  ["in a segment after a restart", true, true],
];

test.each(EQUAL_KEYS)("equal NULLs are refused %s", async (_where, flushes, restarts) => {
  await using engine = await opened();
  await engine.run("INSERT INTO app.places VALUES (1, 'red', NULL), (2, '', 1), (3, NULL, NULL)");
  if (flushes) await engine.run("STORAGE FLUSH TABLE app.places");
  if (restarts) await engine.restart();
  const { error } = await engine.ask("INSERT INTO app.places VALUES (4, 'red', NULL)");
  expect(error?.code).toBe("DUPLICATE_KEY");
  expect(error?.message).toBe(
    "Cannot insert into app.places: key (team, rank) = ('red', NULL) already exists in unique index \"place\"",
  );
  expect(await codeOf(engine, "INSERT INTO app.places VALUES (4, NULL, NULL)")).toBe(
    "DUPLICATE_KEY",
  );
  expect(await codeOf(engine, "UPDATE app.places SET team = NULL WHERE id = 1")).toBe(
    "DUPLICATE_KEY",
  );
  // An empty string does not conflict with NULL.
  await engine.run("INSERT INTO app.places VALUES (4, NULL, 1), (5, '', NULL)");
  await engine.run("DELETE FROM app.places WHERE id = 3");
  await engine.run("INSERT INTO app.places VALUES (6, NULL, NULL)");
});

test("equal NULLs are refused within a statement, in bulk, and in a transaction", async () => {
  await using engine = await opened();
  expect(await codeOf(engine, "INSERT INTO app.places VALUES (1, NULL, 1), (2, NULL, 1)")).toBe(
    "DUPLICATE_KEY",
  );
  const many = (from: number, team: string): string =>
    `INSERT INTO app.places SELECT g, ${team}, g % 1000 FROM generate_series(${from}, ${from + 999}) g`;
  await engine.run(many(1, "NULL"));
  expect(await codeOf(engine, many(1001, "NULL"))).toBe("DUPLICATE_KEY");
  await engine.run("STORAGE FLUSH TABLE app.places");
  expect(await codeOf(engine, many(1001, "NULL"))).toBe("DUPLICATE_KEY");
  await engine.run(many(1001, "'a'"));
  const staged = "BEGIN; INSERT INTO app.places VALUES (5000, 'b', NULL);";
  expect(await codeOf(engine, `${staged} INSERT INTO app.places VALUES (5001, 'b', NULL)`)).toBe(
    "DUPLICATE_KEY",
  );
  expect(await codeOf(engine, `${staged} INSERT INTO app.places VALUES (5001, NULL, 7)`)).toBe(
    "DUPLICATE_KEY",
  );
});

test("ON CONFLICT finds the row with equal NULLs", async () => {
  await using engine = await opened();
  await engine.run("INSERT INTO app.places VALUES (1, NULL, 1)");
  await engine.run("INSERT INTO app.places VALUES (2, NULL, 1) ON CONFLICT DO NOTHING");
  await engine.run(
    `INSERT INTO app.places VALUES (3, NULL, 1) ON CONFLICT (team, rank) DO UPDATE SET team = 'red'`,
  );
  await engine.run(
    `BEGIN; INSERT INTO app.places VALUES (4, NULL, 4);
     INSERT INTO app.places VALUES (5, NULL, 4) ON CONFLICT ON CONSTRAINT place DO UPDATE SET rank = 5;
     COMMIT`,
  );
  expect(await engine.rows("SELECT id, team, rank FROM app.places ORDER BY id")).toEqual([
    [1, "red", 1],
    [4, null, 5],
  ]);
});

test("an index over rows with equal NULLs cannot be built", async () => {
  await using engine = await TestEngine.open();
  await engine.run(
    "CREATE NAMESPACE app; CREATE TABLE app.t (id INT PRIMARY KEY, v TEXT);" +
      "INSERT INTO app.t VALUES (1, ''), (2, NULL); STORAGE FLUSH TABLE app.t;" +
      "INSERT INTO app.t VALUES (3, NULL)",
  );
  const create = "CREATE UNIQUE INDEX t_v ON app.t (v) NULLS NOT DISTINCT";
  const { error } = await engine.ask(create);
  expect(error?.message).toBe(
    'Cannot create unique index "t_v" on app.t: several rows have key (v) = (NULL)',
  );
  await engine.run(`DELETE FROM app.t WHERE id = 2; ${create}`);
  expect(await codeOf(engine, "INSERT INTO app.t VALUES (4, NULL)")).toBe("DUPLICATE_KEY");
  expect(await engine.rows("SELECT id FROM app.t WHERE v IS NULL")).toEqual([[3]]);
  expect(await engine.rows("SELECT id FROM app.t WHERE v = ''")).toEqual([[1]]);
  expect(await codeOf(engine, `${create.replace("t_v", "u")} WHERE id > 1`)).toBe(
    "UNSUPPORTED_FEATURE",
  );
});

test("definitions show and copy NULLS NOT DISTINCT", async () => {
  await using engine = await opened();
  await engine.run(
    `CREATE UNIQUE INDEX by_rank ON app.places (rank) NULLS NOT DISTINCT;
     CREATE TABLE app.copy (LIKE app.places INCLUDING ALL, u INT UNIQUE NULLS DISTINCT);
     ALTER TABLE app.copy ADD CONSTRAINT one_u UNIQUE NULLS NOT DISTINCT (u, rank)`,
  );
  expect(
    await engine.rows(
      "SELECT constraint_name, nulls_distinct FROM information_schema.table_constraints WHERE table_name = 'copy' ORDER BY 1",
    ),
  ).toEqual([
    ["copy_pkey", null],
    ["copy_team_rank_key", "NO"],
    ["copy_u_key", "YES"],
    ["one_u", "NO"],
  ]);
  expect(
    await engine.rows(
      "SELECT definition FROM system.indexes WHERE definition LIKE '%(rank)%' ORDER BY 1",
    ),
  ).toEqual([
    ["CREATE UNIQUE INDEX by_rank ON app.places (rank) NULLS NOT DISTINCT"],
    ["CREATE UNIQUE INDEX copy_rank_idx ON app.copy (rank) NULLS NOT DISTINCT"],
  ]);
});
