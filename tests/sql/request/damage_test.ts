/** Tests the response to a request whose statement hits damage on disk. */
import { afterEach, beforeEach, expect, test } from "bun:test";
import { readdirSync, truncateSync } from "node:fs";
import { join } from "node:path";
import { TestEngine } from "../../support/sql_engine.ts";

let engine: TestEngine;

beforeEach(async () => {
  engine = await TestEngine.open();
  await engine.run(
    "CREATE TABLE hurt (id INT PRIMARY KEY); CREATE TABLE whole (id INT PRIMARY KEY)",
  );
  await engine.run("INSERT INTO hurt VALUES (1); STORAGE FLUSH TABLE hurt");
  const { catalog } = engine.database;
  const { tableId = 0 } = catalog.table("default", "hurt") ?? {};
  await engine.database.close();
  const folder = join(engine.dataPath, "segments", String(tableId));
  for (const name of readdirSync(folder)) truncateSync(join(folder, name), 100);
  await engine.reopen();
});

afterEach(async () => {
  await engine[Symbol.asyncDispose]();
});

// The first statement hits the damage itself. Later statements find that the segment is
// quarantined.
test.each(["SELECT count(*) FROM hurt", "SELECT * FROM hurt WHERE id = 1"])(
  "damage that %s meets is an error of its statement, and those before it have ended",
  async (query) => {
    for (let time = 1; time <= 2; time += 1) {
      const response = await engine.ask(`INSERT INTO whole VALUES (${time}); ${query}`);
      expect(response.results.length).toBe(1);
      expect(response.error).toMatchObject({
        code: "DATA_DAMAGED",
        statementIndex: 1,
        hint: "rows of other tables can still be read; restore a backup, or drop the table",
      });
    }
  },
);

test("SHOW STATS of a damaged table shows what is known, and SHOW MANIFEST shows the damage", async () => {
  for (let time = 1; time <= 2; time += 1) {
    const [stats = []] = await engine.rows("SHOW STATS FOR TABLE hurt");
    const [name, , , rows, , segments, bytes] = stats;
    expect([name, rows, segments]).toEqual(["hurt", null, 1]);
    expect(Number(bytes)).toBeGreaterThan(0);
  }
  const manifest = await engine.rows("SHOW MANIFEST");
  const hurt = manifest.find((row) => row[1] === "hurt") ?? [];
  expect(hurt[8]).toBe("error");
  expect(JSON.parse(String(hurt[10]))).toMatchObject({ segments: [{ status: "quarantined" }] });
});

test("SHOW STATS counts live rows while only a history segment is damaged", async () => {
  await engine.run(
    "CREATE TABLE past (id INT PRIMARY KEY, n INT); INSERT INTO past VALUES (1, 1), (2, 2), (3, 3)",
  );
  await engine.run("STORAGE FLUSH TABLE past");
  await engine.run("UPDATE past SET n = 9 WHERE id < 3; DELETE FROM past WHERE id = 3");
  await engine.run("STORAGE FLUSH TABLE past; STORAGE COMPACT TABLE past");
  const kinds = await engine.rows(
    "SELECT segment_id, kind FROM system.segments WHERE table_name = 'past' ORDER BY kind",
  );
  expect(kinds.map(([, kind]) => kind)).toEqual(["current", "history"]);
  const { tableId = 0 } = engine.database.catalog.table("default", "past") ?? {};
  await engine.database.close();
  const folder = join(engine.dataPath, "segments", String(tableId));
  const files = readdirSync(folder).toSorted();
  truncateSync(join(folder, files.at(-1) ?? ""), 100);
  await engine.reopen();
  const { store } = engine.database;
  expect(() => store.flushedStats(tableId, 0)).toThrow("the file has 100 bytes");
  const [stats = []] = await engine.rows("SHOW STATS FOR TABLE past");
  expect([stats[3], stats[5]]).toEqual([2, 2]);
  expect(await engine.rows("SELECT status FROM system.segments WHERE kind = 'history'")).toEqual([
    ["quarantined"],
  ]);
});
