/**
 * Verifies that queries that join or group by a key are maintained for every type of key, and have
 * the same rows as the SELECT after each commit.
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
import { shareOf } from "../../support/thoroughness.ts";

let directory: string;
let database: Database;
let root: Principal;

beforeAll(async () => {
  directory = mkdtempSync(join(tmpdir(), "tidemark-keys-"));
  database = await openAt(directory, { config: SMALL_FILES });
  root = principalFor(database, "root");
  await run("CREATE NAMESPACE shop");
});

afterAll(async () => {
  await database.close();
  rmSync(directory, { recursive: true, force: true });
});

function run(sql: string): Promise<readonly (readonly unknown[])[]> {
  return rowsOf(database, root, sql);
}

/** Follows a query, and asserts that it is maintained. */
function follow(sql: string): ResultFollower {
  const follower = new ResultFollower();
  const spec = { id: "q", sql, options: { way: "maintained" as const } };
  follower.subscription = database.live.subscribe({ principal: root, spec, sink: follower });
  return follower;
}

function cellsOf({ ack, rows }: ResultFollower, width: number): string[] {
  const names = (ack?.schema ?? []).slice(0, width).map(({ name }) => name);
  return rows.map((row) => JSON.stringify(names.map((name) => row[name] ?? null))).toSorted();
}

/** Types of keys, each with two values and a second spelling of the first value. */
const TYPES: readonly (readonly [type: string, one: string, two: string, same: string])[] = [
  ["INET", "'10.0.0.1'", "'10.0.0.0/8'", "'10.0.0.1/32'"],
  ["CIDR", "'10.0.0.0/8'", "'10.1.0.0/16'", "'10/8'"],
  ["MACADDR", "'08:00:2b:01:02:03'", "'08:00:2b:01:02:04'", "'08002b:010203'"],
  ["MACADDR8", "'08:00:2b:01:02:03:04:05'", "'08:00:2b:01:02:03:04:06'", "'0800.2b01.0203.0405'"],
  ["BIT(4)", "B'0101'", "B'1101'", "'0101'"],
  ["BIT VARYING(8)", "B'01'", "B'010'", "'01'"],
  ["MONEY", "'1.50'", "'99999999999999.99'", "'$1.5'"],
  ["TIMETZ", "'10:00:00+01'", "'09:00:00+00'", "'10:00+01:00'"],
  ["INT4RANGE", "'[1,5)'", "'empty'", "'[1,4]'"],
  ["TSTZMULTIRANGE", "'{[2024-01-01 00:00+00,)}'", "'{}'", "'{[2024-01-01 01:00+01,)}'"],
  ["BYTEA", "'\\x0102'", "'\\x01'", "'\\x0102'"],
];

test.each(shareOf(TYPES, { oneOf: 2 }))(
  "a key of type %s joins and groups the same in a live query as in a SELECT",
  async (type, one, two, same) => {
    await run(`DROP TABLE IF EXISTS shop.a; DROP TABLE IF EXISTS shop.b;
    CREATE SHARED TABLE shop.a (id INT PRIMARY KEY, k ${type});
    CREATE SHARED TABLE shop.b (id INT PRIMARY KEY, k ${type}); CREATE INDEX ON shop.b (k);
    INSERT INTO shop.a VALUES (1, ${one}), (2, ${two}), (3, NULL)`);
    const queries: readonly (readonly [sql: string, width: number])[] = [
      ["SELECT a.id, b.id AS other FROM shop.a JOIN shop.b ON b.k = a.k", 2],
      ["SELECT k, count(*) AS n FROM shop.b GROUP BY k", 2],
      ["SELECT DISTINCT k FROM shop.b", 1],
      ["SELECT k FROM shop.a EXCEPT SELECT k FROM shop.b", 1],
      ["SELECT id, row_number() OVER (PARTITION BY k ORDER BY id) AS n FROM shop.b", 2],
    ];
    const followers = queries.map(([sql]) => follow(sql));
    for (const change of [
      `INSERT INTO shop.b VALUES (10, ${same}), (11, ${two}), (12, ${one})`,
      `UPDATE shop.b SET k = ${two} WHERE id = 10`,
      `UPDATE shop.a SET k = ${one} WHERE id = 3`,
      "DELETE FROM shop.b WHERE id IN (11, 12)",
      "UPDATE shop.b SET k = NULL",
    ]) {
      await run(change);
      for (const [index, [sql, width]] of queries.entries()) {
        const follower = followers[index];
        if (follower === undefined) continue;
        await follower.reaches(database.store.visibleSeq);
        const rows = await run(sql);
        expect(cellsOf(follower, width)).toEqual(rows.map((row) => JSON.stringify(row)).toSorted());
      }
    }
    for (const { subscription } of followers) subscription?.close();
  },
);
