/**
 * Compares COPY with a real PostgreSQL. Each database reads the other's output in every format
 * that both support, and pg_dump scripts load unchanged.
 */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { join } from "node:path";
import { copyIn, copyOut } from "../support/copied.ts";
import { type Postgres, postgresPrograms, startPostgres } from "../support/postgres.ts";
import { describeUnless } from "../support/requirements.ts";
import { TestEngine } from "../support/sql_engine.ts";

const programs = postgresPrograms();
const missing =
  programs === undefined
    ? "PostgreSQL is not installed (Debian: apt-get install postgresql)"
    : undefined;

const COLUMNS =
  "id INT PRIMARY KEY, s SMALLINT, b BIGINT, r REAL, d DOUBLE PRECISION, n NUMERIC(30,6), t TEXT, " +
  "v VARCHAR(9), o BOOLEAN, y BYTEA, j JSON, k JSONB, ts TIMESTAMP, tz TIMESTAMPTZ, dt DATE, " +
  "tm TIME, u UUID, ai INT[], at TEXT[], iv INTERVAL, " +
  "nr NUMRANGE, tr TSTZRANGE, dm DATEMULTIRANGE, ra INT4RANGE[]";

const ROWS = [
  `(1, -32768, 9223372036854775807, 1.5, -0.1, 123456789012345678901234.123456, 'plain', 'ab', TRUE,
    '\\x00ff0a', '{"a": [1, "x"]}', '{"b": 2}', '2024-02-29 12:34:56.789012',
    '1999-12-31 23:59:59.999999+00', '0001-01-01', '23:59:59.999999',
    '00112233-4455-6677-8899-aabbccddeeff', '{{1,2},{3,NULL}}', '{"a,b",NULL,"NULL","q\\"\\\\ }"}',
    '1 year 2 mons -3 days 04:05:06.789',
    '(1.50,NaN]', '["2024-02-29 12:34:56.789012+00",)', '{(,2024-01-01),[2024-02-01,infinity]}', '{"[1,5)",NULL,empty}')`,
  `(2, 32767, -9223372036854775808, -3.5, 1e-300, -0.000001, E'tab\\t line\\nfeed\\rreturn \\\\ "quote", comma', '',
    FALSE, '', 'null', '"x"', '9999-12-31 23:59:59.999999', '1970-01-01 00:00:00+00',
    '9999-12-31', '00:00:00', 'ffffffff-ffff-ffff-ffff-ffffffffffff',
    '{}', '{""}', '-00:00:01', 'empty', '(,)', '{}', '{}')`,
  "(3, 0, 0, 0, 0, 0, '', '\\N', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL)",
  "(4, NULL, 9007199254740993, NULL, NULL, 10000, 'ä€😀', '\\.', NULL, NULL, NULL, NULL, NULL, NULL, '2000-01-01', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL)",
  `(6, NULL, NULL, NULL, NULL, 0.5, NULL, NULL, NULL, NULL, NULL, NULL, 'infinity', '-infinity',
    'infinity', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL)`,
  `(7, NULL, NULL, NULL, NULL, 0.5, NULL, NULL, NULL, NULL, NULL, NULL, '0044-03-15 12:00 BC',
    '0001-01-01 00:00+00 BC', '0044-03-15 BC', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL)`,
  "(5, NULL, NULL, NULL, NULL, 0.5, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL)",
];

describeUnless(missing)("beside PostgreSQL", () => {
  let engine: TestEngine;
  let postgres: Postgres;

  beforeAll(async () => {
    engine = await TestEngine.open();
    postgres = await startPostgres();
    psql("SET timezone = 'UTC'");
    psql("ALTER ROLE bench SET timezone = 'UTC'");
    psql(`CREATE SCHEMA x; CREATE TABLE x.a (${COLUMNS}); CREATE TABLE x.z (${COLUMNS});
      INSERT INTO x.a VALUES ${ROWS.join(", ")}`);
    await engine.run(`CREATE NAMESPACE x; CREATE TABLE x.a (${COLUMNS}); CREATE TABLE x.z (${COLUMNS});
      INSERT INTO x.a VALUES ${ROWS.join(", ")}`);
  });

  afterAll(async () => {
    await postgres.stop();
    await engine[Symbol.asyncDispose]();
  });

  /** Runs a command in psql with the given input, and returns its output. */
  function psql(command: string, input: Uint8Array = new Uint8Array(0)): Buffer {
    const ran = Bun.spawnSync(
      [
        join(programs ?? "", "psql"),
        postgres.url,
        "-X",
        "-q",
        "-v",
        "ON_ERROR_STOP=1",
        "-c",
        command,
      ],
      { stdin: input },
    );
    if (!ran.success) throw new Error(ran.stderr.toString());
    return ran.stdout;
  }

  function dump(...options: string[]): string {
    const ran = Bun.spawnSync([
      join(programs ?? "", "pg_dump"),
      postgres.url,
      "-n",
      "x",
      ...options,
    ]);
    if (!ran.success) throw new Error(ran.stderr.toString());
    return ran.stdout.toString();
  }

  test.each(["text", "csv", "binary"])("%s can be copied in both directions", async (format) => {
    await engine.run("DELETE FROM x.z WHERE true");
    psql("DELETE FROM x.z");
    const ours = await copyOut(engine, `COPY x.a TO STDOUT (FORMAT ${format})`);
    psql(`COPY x.z FROM STDIN (FORMAT ${format})`, ours);
    const theirs = psql(`COPY x.a TO STDOUT (FORMAT ${format})`);
    expect(psql(`COPY x.z TO STDOUT (FORMAT ${format})`)).toEqual(theirs);
    await copyIn(engine, `COPY x.z FROM STDIN (FORMAT ${format})`, theirs);
    expect(await copyOut(engine, `COPY x.z TO STDOUT (FORMAT ${format})`)).toEqual(ours);
    // PostgreSQL quotes the end marker only in a row with a single cell.
    const text = String(ours).replace(String.raw`"\."`, String.raw`\.`);
    if (format !== "binary") expect(text).toBe(String(theirs));
  });

  test.each(["text", "csv", "binary"])("XML can be copied as %s", async (format) => {
    const columns = "id INT PRIMARY KEY, x XML, xs XML[]";
    const rows = `(1, '<a k="1">é,\\</a>', ARRAY[xml '<b/>', NULL, 'c "d"']), (2, NULL, '{}'),
      (3, '<?xml version="1.0"?><a/>', NULL), (4, '<?xml version="1.1" standalone="yes"?><a/>', NULL)`;
    for (const run of [psql, (sql: string) => engine.run(sql)]) {
      await run("DROP TABLE IF EXISTS x.m");
      await run("DROP TABLE IF EXISTS x.n");
      await run(`CREATE TABLE x.m (${columns})`);
      await run(`CREATE TABLE x.n (${columns})`);
      await run(`INSERT INTO x.m VALUES ${rows}`);
    }
    const theirs = psql(`COPY x.m TO STDOUT (FORMAT ${format})`);
    expect(await copyOut(engine, `COPY x.m TO STDOUT (FORMAT ${format})`)).toEqual(theirs);
    expect(await copyIn(engine, `COPY x.n FROM STDIN (FORMAT ${format})`, theirs)).toBe(4);
    expect(await copyOut(engine, `COPY x.n TO STDOUT (FORMAT ${format})`)).toEqual(theirs);
    psql("DROP TABLE x.m, x.n");
  });

  test.each(["text", "csv", "binary"])("shapes can be copied as %s", async (format) => {
    const columns =
      "id INT PRIMARY KEY, p POINT, s LSEG, l LINE, b BOX, h PATH, g POLYGON, c CIRCLE, bs BOX[], ps POINT[]";
    const create = `DROP TABLE IF EXISTS x.shapes; CREATE TABLE x.shapes (${columns});`;
    const rows = `INSERT INTO x.shapes VALUES (1, '(0.1,-2e300)', '1,2,3,4', '{1,-1,0.5}', '4,3,2,1',
        '[(1,2),(3,4)]', '1,2,3,4,5,6', '<(1,2),0.3>', '{(1,1),(0,0);NULL}', '{"(1,2)",NULL}'),
      (2, '(NaN,Infinity)', NULL, NULL, NULL, '((1,2))', '(0,0)', '<(-0,0),NaN>', '{}', '{{"(1,2)"},{"(3,4)"}}')`;
    psql(create + rows);
    await engine.run(create + rows);
    const ours = await copyOut(engine, `COPY x.shapes TO STDOUT (FORMAT ${format})`);
    const theirs = psql(`COPY x.shapes TO STDOUT (FORMAT ${format})`);
    expect(ours.equals(theirs)).toBe(true);
    await engine.run("DELETE FROM x.shapes WHERE true");
    await copyIn(engine, `COPY x.shapes FROM STDIN (FORMAT ${format})`, theirs);
    expect(await copyOut(engine, `COPY x.shapes TO STDOUT (FORMAT ${format})`)).toEqual(ours);
    psql("DROP TABLE x.shapes");
  });

  test("the data of a dump load unchanged", async () => {
    await engine.run("DELETE FROM x.z WHERE true; DELETE FROM x.a WHERE true");
    for (const line of dump("--data-only").split(/^--$/m)) {
      const copies = line.slice(Math.max(0, line.indexOf("COPY ")));
      if (copies.startsWith("COPY ")) await engine.run(copies);
    }
    const out = "COPY x.a TO STDOUT";
    expect(String(await copyOut(engine, out))).toBe(String(psql(out)));
  });
});
