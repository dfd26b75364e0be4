/**
 * Verifies that live queries over defined range types, user-defined aggregates and functions over
 * rows have the rows of the SELECT after each commit, and after a resume on a restarted server.
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

async function open(): Promise<void> {
  database = await openAt(directory, { config: SMALL_FILES });
  root = principalFor(database, "root");
}

beforeAll(async () => {
  directory = mkdtempSync(join(tmpdir(), "tidemark-defined-"));
  await open();
  await run("CREATE NAMESPACE o; CREATE TYPE o.span AS RANGE (SUBTYPE = INT)");
  await run(
    `CREATE SHARED TABLE o.a (id INT PRIMARY KEY, k INT, s o.span);
     CREATE SHARED TABLE o.b (id INT PRIMARY KEY, s o.span); CREATE INDEX ON o.b (s);
     CREATE FUNCTION o.merged(a o.span, b o.span) RETURNS o.span LANGUAGE sql RETURN range_merge(a, b);
     CREATE FUNCTION o.plus(a BIGINT, b INT) RETURNS BIGINT LANGUAGE plpgsql IMMUTABLE AS
       $$ BEGIN RETURN a + coalesce(b, 0); END $$;
     CREATE FUNCTION o.known(a BIGINT, b INT) RETURNS BIGINT LANGUAGE plpgsql STABLE AS
       $$ BEGIN RETURN a + (SELECT count(*) FROM o.b WHERE id = b); END $$;
     CREATE FUNCTION o.mine(a TEXT, b INT) RETURNS TEXT LANGUAGE sql RETURN a || b || CURRENT_USER;
     CREATE FUNCTION o.twice(a INT) RETURNS SETOF INT LANGUAGE sql IMMUTABLE AS 'SELECT g FROM generate_series(1, a) g'`,
  );
  await run(
    `CREATE AGGREGATE o.cover(o.span) (SFUNC = o.merged, STYPE = o.span);
     CREATE AGGREGATE o.total(INT) (SFUNC = o.plus, STYPE = BIGINT, INITCOND = '0');
     CREATE AGGREGATE o.known_of(INT) (SFUNC = o.known, STYPE = BIGINT, INITCOND = '0');
     CREATE AGGREGATE o.mine_of(INT) (SFUNC = o.mine, STYPE = TEXT, INITCOND = '');
     CREATE FUNCTION o.label(a o.a) RETURNS TEXT LANGUAGE sql AS $$ SELECT 'x' || a.k $$`,
  );
});

afterAll(async () => {
  await database.close();
  rmSync(directory, { recursive: true, force: true });
});

function run(sql: string): Promise<readonly (readonly unknown[])[]> {
  return rowsOf(database, root, sql);
}

function follow(sql: string, held?: ResultFollower, as = root): ResultFollower {
  const follower = new ResultFollower(held === undefined ? {} : { held });
  const options = held?.seq === undefined ? {} : { from_seq_id: held.seq };
  const spec = { id: "q", sql, options };
  follower.subscription = database.live.subscribe({ principal: as, spec, sink: follower });
  return follower;
}

async function compare(sql: string, follower: ResultFollower, what: string): Promise<void> {
  await follower.reaches(database.store.visibleSeq);
  const rows = await run(sql);
  const names = (follower.ack?.schema ?? []).slice(0, rows[0]?.length).map(({ name }) => name);
  const shown = follower.rows.map((row) => JSON.stringify(names.map((name) => row[name] ?? null)));
  const selected = rows.map((row) => JSON.stringify(row));
  expect([sql, what, shown.toSorted()]).toEqual([sql, what, selected.toSorted()]);
}

const QUERIES: readonly string[] = [
  "SELECT s, count(*) AS n FROM o.a GROUP BY s",
  "SELECT DISTINCT s FROM o.a ORDER BY s",
  "SELECT a.id, b.id AS o FROM o.a AS a JOIN o.b AS b ON b.s = a.s",
  "SELECT a.id, b.id AS o FROM o.a AS a JOIN o.b AS b ON a.s && b.s",
  "SELECT s FROM o.a EXCEPT SELECT s FROM o.b",
  "SELECT id, row_number() OVER (PARTITION BY s ORDER BY id) AS n FROM o.a",
  "SELECT id, s FROM o.a WHERE s @> 2 ORDER BY s DESC, id LIMIT 3",
  "SELECT k, o.cover(s) AS n FROM o.a GROUP BY k",
  "SELECT k, o.total(id) AS n FROM o.a GROUP BY k",
  "SELECT id, o.total(id) OVER (PARTITION BY k ORDER BY id) AS n FROM o.a",
  "SELECT a.id, t.x FROM o.a AS a, o.twice(a.k) AS t(x)",
  "SELECT id, o.label(a) AS l FROM o.a AS a",
  "SELECT k, string_agg(o.label(a), ',' ORDER BY id) AS l FROM o.a AS a GROUP BY k",
];

test("live queries follow defined types, aggregates and functions, also after a restart", async () => {
  await run("INSERT INTO o.a VALUES (1, 1, '[1,3)'), (2, 1, '[5,7)'), (3, 2, '[1,3)')");
  await run("INSERT INTO o.b VALUES (1, '[1,3)')");
  const followed = QUERIES.map((sql) => ({ sql, follower: follow(sql) }));
  for (const change of [
    "INSERT INTO o.a VALUES (4, 2, '[2,9)'), (5, NULL, NULL)",
    "UPDATE o.a SET s = '[1,3)' WHERE id = 2",
    "INSERT INTO o.b VALUES (2, '[2,9)'), (3, 'empty')",
    "DELETE FROM o.a WHERE id = 1",
    "UPDATE o.a SET s = 'empty', k = 3 WHERE id = 4",
  ]) {
    await run(change);
    for (const { follower, sql } of followed) await compare(sql, follower, change);
  }
  for (const { follower } of followed) follower.subscription?.close();
  await run("DELETE FROM o.a WHERE id = 3; UPDATE o.a SET s = '[100,200)' WHERE id = 5");
  await database.close();
  await open();
  const resumed = followed.map(({ follower, sql }) => ({ sql, follower: follow(sql, follower) }));
  for (const { follower, sql } of resumed) await compare(sql, follower, "the restart");
  await run("INSERT INTO o.a VALUES (6, 1, '[100,200)')");
  for (const { follower, sql } of resumed) await compare(sql, follower, "a later commit");
  for (const { follower } of resumed) follower.subscription?.close();
});

test("an aggregate whose function reads the caller has a result for each user", async () => {
  const sql = "SELECT o.mine_of(id) AS m FROM o.b WHERE id = 1";
  await run("CREATE USER eve WITH PASSWORD 'beware 42 crabs' ROLE 'user'");
  await run("ALTER TABLE o.b SET ACCESS LEVEL PUBLIC");
  await run("INSERT INTO o.b VALUES (1, NULL) ON CONFLICT (id) DO NOTHING");
  const [own, other] = [follow(sql), follow(sql, undefined, principalFor(database, "eve"))];
  for (const follower of [own, other]) await follower.reaches(database.store.visibleSeq);
  expect([own.rows, other.rows]).toMatchObject([[{ m: "1root" }], [{ m: "1eve" }]]);
});

test.each([
  [
    "SELECT k, o.known_of(id) FROM o.a GROUP BY k",
    "Cannot subscribe with function o.known: it runs as a program, and the server does not know which tables a program reads",
  ],
  [
    "SELECT id, o.known_of(id) OVER (ORDER BY id) FROM o.a",
    "Cannot subscribe with function o.known: it runs as a program, and the server does not know which tables a program reads",
  ],
  [
    "SELECT id, o.plus(id, k) FROM o.a",
    "Cannot subscribe with function o.plus: it runs as a program, and the server does not know which tables a program reads",
  ],
  [
    "SELECT id FROM o.a TABLESAMPLE SYSTEM (50)",
    "Cannot subscribe to a query with TABLESAMPLE: another sample would have other rows",
  ],
])("%s is refused", (sql, message) => {
  expect(() => follow(sql)).toThrow(message);
});
