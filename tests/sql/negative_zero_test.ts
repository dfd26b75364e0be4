/** Verifies that negative zero in DOUBLE and REAL equals positive zero and keeps its sign. */
import { expect, test } from "bun:test";
import { TestEngine } from "../support/sql_engine.ts";

test("a zero keeps its sign in memory, in the log, in segments and in merged segments", async () => {
  await using engine = await TestEngine.open();
  await engine.run(
    "CREATE NAMESPACE app; CREATE TABLE app.z (id INT PRIMARY KEY, d DOUBLE, r REAL, whole DOUBLE);" +
      "CREATE TABLE app.same (id INT PRIMARY KEY, d DOUBLE);" +
      "INSERT INTO app.z VALUES (1, '-0', '-0', '-0'), (2, 0, 0, 1), (3, 1.5, 1.5, 2);" +
      "INSERT INTO app.same SELECT n, CASE WHEN n % 2 = 0 THEN '-0'::float8 ELSE 0 END FROM generate_series(1, 600) s(n)",
  );
  const rows = [
    [1, "-0", "-0", "-0"],
    [2, "0", "0", "1"],
    [3, "1.5", "1.5", "2"],
  ];
  const expectSigns = async (): Promise<void> => {
    expect(
      await engine.rows("SELECT id, d::text, r::text, whole::text FROM app.z ORDER BY id"),
    ).toEqual(rows);
    expect(
      await engine.rows(
        "SELECT t, count(*) FROM (SELECT d::text FROM app.same) s(t) GROUP BY t ORDER BY t",
      ),
    ).toEqual([
      ["-0", 300],
      ["0", 300],
    ]);
    expect(await engine.rows("SELECT count(*), count(DISTINCT d) FROM app.same")).toEqual([
      [600, 1],
    ]);
  };
  await expectSigns();
  await engine.restart();
  await expectSigns();
  await engine.run("STORAGE FLUSH TABLE app.z; STORAGE FLUSH TABLE app.same");
  await expectSigns();
  await engine.run("STORAGE COMPACT TABLE app.z; STORAGE COMPACT TABLE app.same");
  await engine.restart();
  await expectSigns();
});

test("both zeros are the same key, in memory and in a segment", async () => {
  await using engine = await TestEngine.open();
  await engine.run(
    "CREATE NAMESPACE app; CREATE TABLE app.k (d DOUBLE PRIMARY KEY); INSERT INTO app.k VALUES ('-0'), (5)",
  );
  expect(await engine.failure("INSERT INTO app.k VALUES (0)")).toStartWith("DUPLICATE_KEY");
  await engine.run("STORAGE FLUSH TABLE app.k");
  expect(await engine.failure("INSERT INTO app.k VALUES (0)")).toStartWith("DUPLICATE_KEY");
  expect(await engine.rows("SELECT d::text FROM app.k WHERE d = 0")).toEqual([["-0"]]);
  await engine.run("DELETE FROM app.k WHERE d = 0; INSERT INTO app.k VALUES (0)");
  expect(await engine.rows("SELECT d::text FROM app.k WHERE d = '-0'")).toEqual([["0"]]);
});
