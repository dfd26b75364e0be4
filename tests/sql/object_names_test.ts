/**
 * Tests types such as OID and REGCLASS beyond the cases shared with PostgreSQL: hidden names,
 * restarts, live queries, COPY, stored columns, and long or faulty input.
 */
import { afterEach, beforeEach, expect, test } from "bun:test";
import { ResultFollower } from "../support/result_follower.ts";
import { TestEngine } from "../support/sql_engine.ts";

let engine: TestEngine;

beforeEach(async () => {
  engine = await TestEngine.open();
  await engine.run(
    `CREATE NAMESPACE app; CREATE USER sam INTERNAL ROLE service; CREATE USER alice INTERNAL;
     CREATE TABLE app.open (id INT PRIMARY KEY, v TEXT) WITH (ACCESS_LEVEL = 'PUBLIC');
     CREATE TABLE app.closed (id INT PRIMARY KEY) PARTITION BY RANGE (id);
     CREATE TABLE app.low PARTITION OF app.closed FOR VALUES FROM (0) TO (10);
     CREATE TABLE app.high PARTITION OF app.closed FOR VALUES FROM (10) TO (20) PARTITION BY LIST (id);
     CREATE TABLE app.ten PARTITION OF app.high FOR VALUES IN (10);
     CREATE VIEW app.looking AS SELECT id FROM app.closed;
     CREATE VIEW app.looking_twice AS SELECT id FROM app.looking;
     CREATE SEQUENCE app.counting;
     INSERT INTO app.closed VALUES (1), (10)`,
  );
});
afterEach(() => engine[Symbol.asyncDispose]());

test("a name or an OID that the caller may not see is unknown", async () => {
  const hidden = ["closed", "low", "ten", "looking", "looking_twice", "counting"];
  const oids: string[] = [];
  for (const name of hidden) {
    const [row] = await engine.rows(`SELECT 'app.${name}'::regclass::oid::text`);
    oids.push(String(row?.[0]));
  }
  for (const user of ["alice", "sam"]) {
    engine.userId = user;
    for (const [at, name] of hidden.entries()) {
      const isSeen = user === "sam" && name !== "counting";
      const shown = isSeen ? `app.${name}` : null;
      const [row] = await engine.rows(
        `SELECT to_regclass('app.${name}')::text, ${String(oids[at])}::oid::regclass::text`,
      );
      // A caller with the role `service` may also use sequences.
      if (user === "sam" && name === "counting") continue;
      expect(row).toEqual([shown, shown ?? oids[at]]);
    }
  }
  engine.userId = "alice";
  expect(await engine.failure("SELECT 'app.closed'::regclass")).toBe(
    (await engine.failure("SELECT 'app.nothing'::regclass")).replace("nothing", "closed"),
  );
  expect(
    await engine.rows(
      `SELECT (SELECT count(*) FROM pg_partition_tree(${String(oids[0])})), (SELECT count(*) FROM pg_partition_ancestors(${String(oids[2])})), pg_partition_root(${String(oids[1])}) IS NULL`,
    ),
  ).toEqual([[0, 0, true]]);
  expect(
    await engine.rows(
      "SELECT to_regrole('alice')::text, to_regrole('sam'), to_regnamespace('app')::text, to_regnamespace('nothing')",
    ),
  ).toEqual([["alice", null, "app", null]]);
});

test("an OID stays the same after a rename and a restart", async () => {
  const oids = "SELECT 'app.open'::regclass::oid::text, 'app.ten'::regclass::oid::text";
  const [before] = await engine.rows(oids);
  await engine.run("ALTER TABLE app.open RENAME TO shown");
  await engine.restart();
  expect(await engine.rows(oids.replace("open", "shown"))).toEqual([before ?? []]);
  expect(await engine.rows(`SELECT ${String(before?.[0])}::oid::regclass::text`)).toEqual([
    ["app.shown"],
  ]);
  await engine.run("DROP TABLE app.shown; CREATE TABLE app.shown (id INT PRIMARY KEY)");
  const [after] = await engine.rows(oids.replace("open", "shown"));
  expect(after?.[0]).not.toBe(before?.[0]);
});

test("the name has no namespace if it is the current one", async () => {
  const sql = "SELECT tableoid::regclass::text FROM app.closed ORDER BY id";
  expect(await engine.rows(sql)).toEqual([["app.low"], ["app.ten"]]);
  expect(await engine.rows(sql, { namespace: "app" })).toEqual([["low"], ["ten"]]);
});

test("live queries follow tableoid, and refuse names that are looked up", async () => {
  const follower = new ResultFollower();
  const spec = {
    id: "q",
    sql: "SELECT tableoid::bigint AS t, count(*) AS n FROM app.closed GROUP BY tableoid",
    options: {},
  };
  const { live } = engine.database;
  follower.subscription = live.subscribe({ principal: engine.principal, spec, sink: follower });
  const counts = async (): Promise<unknown[]> => {
    await follower.reaches(engine.database.store.visibleSeq);
    return follower.rows.map(({ n }) => Number(n)).toSorted((left, right) => left - right);
  };
  expect(await counts()).toEqual([1, 1]);
  await engine.run("INSERT INTO app.closed VALUES (2), (3)");
  expect(await counts()).toEqual([1, 3]);
});

test("tables store OIDs and log positions, but no names", async () => {
  await engine.run(
    `CREATE TABLE app.marks (o OID PRIMARY KEY, l PG_LSN, x XID8[]);
     INSERT INTO app.marks VALUES (4294967295, 'A/B', '{1,-1}'), (7, NULL, NULL)`,
  );
  await engine.restart();
  expect(await engine.rows("SELECT o, l, x FROM app.marks ORDER BY o")).toEqual([
    ["7", null, null],
    ["4294967295", "A/B", ["1", "18446744073709551615"]],
  ]);
  expect(await engine.rows("SELECT l FROM app.marks WHERE o = $1", { params: [7] })).toEqual([
    [null],
  ]);
  for (const sql of [
    "CREATE TABLE app.t (id INT PRIMARY KEY, r REGCLASS)",
    "CREATE TABLE app.t (id INT PRIMARY KEY, r REGTYPE[])",
    "CREATE TABLE app.t AS SELECT id, tableoid::regclass AS r FROM app.open",
    "CREATE MATERIALIZED VIEW app.t AS SELECT id, tableoid::regclass AS r FROM app.open",
    "ALTER TABLE app.open ADD COLUMN r REGCLASS",
  ]) {
    expect(await engine.failure(sql)).toStartWith("UNSUPPORTED_TYPE");
  }
});

test("a long or faulty name is refused or unknown", async () => {
  const long = "a".repeat(100_000);
  expect(await engine.failure(`SELECT '${long}'::regclass`)).toStartWith("INVALID_NAME");
  for (const text of ["int, text", "int) (", "int::text", "int COLLATE x", "(select 1)", ""]) {
    expect(await engine.rows("SELECT to_regtype($1)::text", { params: [text] })).toEqual([[null]]);
  }
  expect(await engine.failure("SELECT ARRAY['app.open']::text[]::regclass[]")).toStartWith(
    "UNSUPPORTED_FEATURE",
  );
  expect(await engine.failure("SELECT regoper('+')")).toStartWith("UNSUPPORTED_FEATURE");
});

test("functions that ask for privileges answer from roles, owners, access levels and policies", async () => {
  await engine.run(`CREATE USER olga INTERNAL; CREATE NAMESPACE hers AUTHORIZATION olga;
    CREATE TABLE hers.secret (id INT PRIMARY KEY) WITH (ACCESS_LEVEL = 'DBA');
    CREATE USER TABLE app.notes (id INT PRIMARY KEY);
    CREATE STREAM TABLE app.seen (id INT PRIMARY KEY) WITH (TTL_SECONDS = 9);
    CREATE TABLE app.ruled (id INT PRIMARY KEY) WITH (ACCESS_LEVEL = 'RESTRICTED');
    CREATE POLICY reads ON app.ruled FOR SELECT TO user USING (true);
    CREATE POLICY adds ON app.ruled FOR INSERT TO user WITH CHECK (true)`);
  const all = ["SELECT", "INSERT", "UPDATE", "DELETE", "TRIGGER", "REFERENCES"];
  const asked = async (user: string, table: string): Promise<string[]> => {
    const calls = all.map((each) => `has_table_privilege('${user}', '${table}', '${each}')`);
    const [row = []] = await engine.rows(`SELECT ${calls.join(", ")}`);
    return all.filter((_, at) => row[at] === true);
  };
  expect(await asked("alice", "app.open")).toEqual(["SELECT", "REFERENCES"]);
  expect(await asked("public", "app.open")).toEqual(["SELECT", "REFERENCES"]);
  expect(await asked("sam", "app.open")).toEqual(all);
  expect(await asked("alice", "app.closed")).toEqual([]);
  expect(await asked("alice", "app.looking")).toEqual([]);
  expect(await asked("sam", "app.looking")).toEqual(["SELECT", "INSERT", "UPDATE", "DELETE"]);
  expect(await asked("alice", "app.notes")).toEqual(all.filter((each) => each !== "TRIGGER"));
  expect(await asked("alice", "app.ruled")).toEqual(["SELECT", "INSERT", "REFERENCES"]);
  expect(await asked("olga", "hers.secret")).toEqual(all);
  expect(await asked("sam", "hers.secret")).toEqual([]);
  expect(await asked("root", "app.seen")).toEqual(all.filter((each) => each !== "UPDATE"));
  const others = await engine.rows(`SELECT has_schema_privilege('olga', 'hers', 'CREATE'),
    has_schema_privilege('alice', 'hers', 'CREATE'), pg_has_role('sam', 'service', 'USAGE'),
    pg_has_role('sam', 'dba', 'MEMBER'), pg_has_role('sam', 'alice', 'MEMBER'),
    has_table_privilege('app.open', 'SELECT WITH GRANT OPTION')`);
  expect(others).toEqual([[true, false, true, false, false, false]]);
});

test("only users who may inspect the server ask for the privileges of others", async () => {
  engine.userId = "alice";
  expect(await engine.rows("SELECT has_table_privilege('app.open', 'INSERT')")).toEqual([[false]]);
  const own = "SELECT has_table_privilege('alice', 'app.open', 'SELECT')";
  expect(await engine.rows(own)).toEqual([[true]]);
  for (const user of ["sam", "nobody"]) {
    const sql = `SELECT has_table_privilege('${user}', 'app.open', 'SELECT')`;
    expect(await engine.failure(sql)).toStartWith("USER_NOT_FOUND");
  }
  const hidden = "SELECT has_table_privilege('app.closed', 'SELECT')";
  expect(await engine.failure(hidden)).toStartWith("TABLE_NOT_FOUND");
});

test("definitions and comments of objects that the caller may not see are NULL", async () => {
  await engine.run(
    "COMMENT ON TABLE app.closed IS 'hidden'; COMMENT ON COLUMN app.closed.id IS 'a number'",
  );
  const [row] = await engine.rows(
    "SELECT 'app.closed'::regclass::oid::text, 'app.looking'::regclass::oid::text",
  );
  const [table, view] = (row ?? []).map(String);
  const sql = `SELECT obj_description(${table}), col_description(${table}, 1), pg_get_viewdef(${view})`;
  expect(await engine.rows(sql)).toEqual([["hidden", "a number", "SELECT id FROM app.closed"]]);
  engine.userId = "sam";
  expect(await engine.rows(sql)).toEqual([["hidden", "a number", null]]);
  engine.userId = "alice";
  expect(await engine.rows(sql)).toEqual([[null, null, null]]);
});
