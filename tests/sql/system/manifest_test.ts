/**
 * Tests SHOW MANIFEST and SHOW STATS FOR TABLE: which rows of each user are in segments, and which
 * are only in memory.
 */
import { expect, test } from "bun:test";
import { TestEngine } from "../../support/sql_engine.ts";

async function rowsOf(
  engine: TestEngine,
  userId: string,
  sql: string,
): Promise<readonly (readonly unknown[])[]> {
  engine.userId = userId;
  const rows = await engine.rows(sql);
  engine.userId = "root";
  return rows;
}

test("SHOW MANIFEST and SHOW STATS count only the caller's flushed rows", async () => {
  await using engine = await TestEngine.open();
  for (const sql of [
    "CREATE USER ann INTERNAL",
    "CREATE USER bob INTERNAL",
    "CREATE USER TABLE mine (id INT PRIMARY KEY)",
    "CREATE SHARED TABLE ours (id INT PRIMARY KEY) WITH (ACCESS_LEVEL = 'PUBLIC')",
    "CREATE SHARED TABLE hidden (id INT PRIMARY KEY)",
    "INSERT INTO ours VALUES (1), (2)",
  ]) {
    await engine.run(sql);
  }
  await rowsOf(engine, "ann", "INSERT INTO mine VALUES (1), (2), (3)");
  await rowsOf(engine, "bob", "INSERT INTO mine VALUES (1)");
  const before = await rowsOf(engine, "ann", "SHOW MANIFEST");
  expect(before.map((row) => row.slice(1, 9))).toEqual([
    ["mine", "ann", 0, 0, null, null, null, "pending_write"],
    ["ours", "shared", 0, 0, 0, null, null, "pending_write"],
  ]);
  await engine.run("STORAGE FLUSH ALL");
  await rowsOf(engine, "ann", "DELETE FROM mine WHERE id = 2");

  const all = await rowsOf(engine, "root", "SHOW MANIFEST");
  expect(all.map((row) => [...row.slice(1, 5), row[8]])).toEqual([
    ["hidden", "shared", 0, 0, "in_sync"],
    ["mine", "all users", 1, 4, "pending_write"],
    ["ours", "shared", 1, 2, "in_sync"],
  ]);
  const [, mine = []] = all;
  const { segments, unflushed_versions: unflushed } = JSON.parse(String(mine[10])) as {
    segments: { rows: number; bytes: number; min_seq: number; max_seq: number; status: string }[];
    unflushed_versions: number;
  };
  expect(unflushed).toBe(1);
  expect(segments).toMatchObject([{ rows: 4, status: "live" }]);
  expect(segments.map((each) => [each.bytes, each.min_seq, each.max_seq])).toEqual([
    [Number(mine[5]), Number(mine[6]), Number(mine[7])],
  ]);
  const [bobs = []] = await rowsOf(engine, "bob", "SHOW MANIFEST");
  expect(bobs.slice(1, 9)).toEqual(["mine", "bob", 1, 1, null, bobs[7], bobs[7], "in_sync"]);
  expect(JSON.parse(String(bobs[10]))).toEqual({ unflushed_versions: 0, segments: [] });

  const [stats = []] = await rowsOf(engine, "ann", "SHOW STATS FOR TABLE mine");
  expect(stats.slice(3, 7)).toEqual([2, 1, 1, null]);
  const [allStats = []] = await rowsOf(engine, "root", "SHOW STATS FOR TABLE mine");
  expect(allStats.slice(3, 6)).toEqual([3, 1, 1]);
});
