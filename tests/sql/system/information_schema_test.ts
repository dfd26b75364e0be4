/**
 * Verifies that the information_schema views of a large catalog are computed in short pieces of
 * work.
 */
import { expect, test } from "bun:test";
import { informationSchema } from "../../../src/sql/system/information_schema.ts";
import { TestEngine } from "../../support/sql_engine.ts";

const COLUMNS = 500;
const TABLES = 5;

test("the columns of many tables are listed in small portions, in order", async () => {
  await using engine = await TestEngine.open();
  const columns = Array.from({ length: COLUMNS }, (_, i) => `c${i} INT`).join(", ");
  for (let i = 0; i < TABLES; i += 1) {
    await engine.run(`CREATE TABLE wide_${i} (id INT PRIMARY KEY, ${columns})`);
  }
  const views = new Map(informationSchema(engine.database.catalog, new Map()));
  const call = { userId: "root", role: "system", isImpersonated: false, positions: [] } as const;
  const portions = [...(views.get("information_schema.columns")?.rows(call) ?? [])];

  expect(Math.max(...portions.map((rows) => rows.length))).toBeLessThanOrEqual(1024);
  const listed = portions.flat().map((row) => [row[2], row[4]]);
  const wide = listed.filter(([name]) => typeof name === "string" && name.startsWith("wide_"));
  // In every stored table, the two system columns follow the declared ones.
  const expected = Array.from({ length: TABLES }, (_, table) =>
    Array.from({ length: COLUMNS + 3 }, (__, i) => [`wide_${table}`, i + 1]),
  ).flat();
  expect(wide).toEqual(expected);
});
