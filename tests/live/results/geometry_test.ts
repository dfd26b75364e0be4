/**
 * Verifies that live queries deliver geometric values, and evaluate conditions on them, just as
 * the SELECT does after each commit.
 */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Principal } from "../../../src/auth/mod.ts";
import type { Database } from "../../../src/database.ts";
import { openAt, SMALL_FILES } from "../../support/database.ts";
import { principalFor } from "../../support/principal_for.ts";
import { ResultFollower } from "../../support/result_follower.ts";
import { rowsOf } from "../../support/rows_of.ts";

let directory: string;
let database: Database;
let root: Principal;

beforeAll(async () => {
  directory = mkdtempSync(join(tmpdir(), "tidemark-geometry-"));
  await open();
  await run("CREATE NAMESPACE geo");
  await run("CREATE TABLE geo.places (id INT PRIMARY KEY, at POINT, area BOX)");
});

afterAll(async () => {
  await database.close();
  rmSync(directory, { recursive: true, force: true });
});

async function open(): Promise<void> {
  database = await openAt(directory, { config: SMALL_FILES });
  root = principalFor(database, "root");
}

function run(sql: string): Promise<readonly (readonly unknown[])[]> {
  return rowsOf(database, root, sql);
}

/** Two different boxes with the same area count as equal. */
const QUERIES: readonly string[] = [
  "SELECT a.id, b.id AS other, a.at, b.area FROM geo.places a JOIN geo.places b ON b.id = a.id WHERE a.at <@ circle '<(0,0),5>'",
  "SELECT a.id, b.id AS other FROM geo.places a JOIN geo.places b ON a.area = b.area AND a.id < b.id",
  "SELECT id, at FROM geo.places ORDER BY at <-> point '(0,0)', id LIMIT 2",
];

test.each(QUERIES)("a live query has the rows of its SELECT: %s", async (sql) => {
  await run("DELETE FROM geo.places WHERE true");
  await run("INSERT INTO geo.places VALUES (1, '(1,1)', '0,0,2,2'), (2, '(9,9)', '5,5,6,6')");
  const follower = new ResultFollower();
  const spec = { id: "q", sql };
  follower.subscription = database.live.subscribe({ principal: root, spec, sink: follower });
  for (const change of [
    "UPDATE geo.places SET at = at + point '(1,0.5)', area = '7,7,9,9' WHERE id = 1",
    "INSERT INTO geo.places VALUES (3, '-1,0.25', '1,1,3,3'), (4, NULL, NULL)",
    "UPDATE geo.places SET at = '(0,0)', area = '0,0,4,1' WHERE id = 2",
    "DELETE FROM geo.places WHERE id > 2",
  ]) {
    await run(change);
    await follower.reaches(database.store.visibleSeq);
    const rows = await run(sql);
    expect(shown(follower)).toEqual(rows.map((row) => JSON.stringify(row)).toSorted());
  }
  follower.subscription.close();
});

test("geometric values survive a restart", async () => {
  await run("CREATE TABLE geo.kept (id INT PRIMARY KEY, p PATH, g POLYGON, bs BOX[])");
  await run("INSERT INTO geo.kept VALUES (1, '[(1e-300,2)]', '((0,0),(1,0))', '{1,2,3,4;NULL}')");
  const before = await run("SELECT p, g, bs, bs::text FROM geo.kept");
  await database.close();
  await open();
  expect(await run("SELECT p, g, bs, bs::text FROM geo.kept")).toEqual(before);
  expect(before).toEqual([
    ["[(1e-300,2)]", "((0,0),(1,0))", ["(3,4),(1,2)", null], "{(3,4),(1,2);NULL}"],
  ]);
});

function shown({ ack, rows }: ResultFollower): string[] {
  const names = (ack?.schema ?? []).map(({ name }) => name).filter((name) => !name.startsWith("_"));
  return rows.map((row) => JSON.stringify(names.map((name) => row[name] ?? null))).toSorted();
}
