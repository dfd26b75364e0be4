/**
 * What a request answers whose statement meets damage on the disk.
 */
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

// The first to meet it, and those that come to a quarantined segment.
test.each(["SELECT count(*) FROM hurt", "SELECT * FROM hurt WHERE id = 1"])(
  "damage that %s meets is an error of its statement, and those before it have ended",
  async (query) => {
    for (let time = 1; time <= 2; time += 1) {
      const response = await engine.ask(`INSERT INTO whole VALUES (${time}); ${query}`);
      expect(response.results.length).toBe(1);
      expect(response.error).toMatchObject({
        condition: "DATA_DAMAGED",
        statementIndex: 1,
        hint: "rows of other tables can be read; put back a backup, or drop the table",
      });
    }
  },
);

test("SHOW STATS of a damaged table says what is known, and SHOW MANIFEST that it is damaged", async () => {
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
