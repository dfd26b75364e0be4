/**
 * Tests CREATE, ALTER and DROP TYPE: the names and labels that are refused, the callers who may
 * run them, and the objects that prevent DROP TYPE. All columns, views and plans that use a type
 * see its new labels. Results that agree with PostgreSQL's are in `tests/sql/cases/enums.slt`.
 */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { TestEngine } from "../../support/sql_engine.ts";

let engine: TestEngine;

beforeAll(async () => {
  engine = await TestEngine.open();
  await engine.run(
    `CREATE NAMESPACE app; CREATE NAMESPACE other;
     CREATE USER ann INTERNAL ROLE user;
     CREATE TYPE app.mood AS ENUM ('sad', 'ok');
     CREATE SHARED TABLE app.people (id INT PRIMARY KEY, m app.mood NOT NULL DEFAULT 'ok'::app.mood)
       WITH (ACCESS_LEVEL = 'PUBLIC');
     INSERT INTO app.people VALUES (1, 'sad')`,
  );
});
afterAll(() => engine[Symbol.asyncDispose]());

async function failure(sql: string, as = "root"): Promise<string> {
  const before = engine.userId;
  engine.userId = as;
  const { error } = await engine.ask(sql);
  engine.userId = before;
  return `${error?.code}: ${error?.message}`;
}

describe("a type with a faulty definition is refused", () => {
  test.each([
    [
      "CREATE TYPE app.mood AS ENUM ('x')",
      "ALREADY_EXISTS: Cannot create type app.mood: it already exists",
    ],
    [
      "CREATE TYPE app.people AS ENUM ('x')",
      "ALREADY_EXISTS: Cannot create type app.people: it already exists",
    ],
    [
      "CREATE SHARED TABLE app.mood (id INT PRIMARY KEY)",
      "ALREADY_EXISTS: Cannot create table app.mood: it already exists",
    ],
    [
      "CREATE SEQUENCE app.mood",
      "ALREADY_EXISTS: Cannot create sequence app.mood: it already exists",
    ],
    [
      "CREATE TYPE app.text AS ENUM ('x')",
      'RESERVED_NAME: Cannot use "text" as a type name: a built-in type has this name',
    ],
    ["CREATE TYPE nowhere.t AS ENUM ('x')", "NAMESPACE_NOT_FOUND: Cannot find namespace nowhere"],
    [
      `CREATE TYPE app.t AS ENUM ('${"ä".repeat(32)}')`,
      "INVALID_DEFINITION: .* a label has at most 63 bytes",
    ],
    [
      `CREATE TYPE app.t AS ENUM (${Array.from({ length: 1001 }, (_, i) => `'l${i}'`).join()})`,
      'LIMIT_EXCEEDED: Cannot define label "l1000": a type can have at most 1000 labels',
    ],
    ["CREATE TYPE app.t AS (a INT, a INT)", 'INVALID_DEFINITION: Cannot define field "a" twice'],
    [
      "CREATE TYPE app.t AS (a EMBEDDING(3)[])",
      "UNSUPPORTED_TYPE: Cannot store values of type embedding\\(3\\)\\[\\]",
    ],
    [
      `CREATE TYPE app.t AS (${Array.from({ length: 1001 }, (_, i) => `f${i} INT`).join()})`,
      'LIMIT_EXCEEDED: Cannot define field "f1000": a type can have at most 1000 fields',
    ],
    [
      "ALTER TYPE app.mood ADD ATTRIBUTE a INT",
      "UNSUPPORTED_FEATURE: Cannot use ALTER TYPE with the fields of a row type",
    ],
    ["CREATE TYPE app.t", "UNSUPPORTED_FEATURE: Cannot use CREATE TYPE of a base type"],
    [
      "ALTER TYPE app.mood SET SCHEMA other",
      "UNSUPPORTED_FEATURE: Cannot use SET SCHEMA of a type",
    ],
    ["ALTER TYPE app.nope ADD VALUE 'x'", 'OBJECT_NOT_FOUND: Cannot find type "app.nope"'],
    [
      "ALTER TYPE app.mood RENAME TO people",
      "ALREADY_EXISTS: Cannot rename type app.people: it already exists",
    ],
    [
      "ALTER TYPE app.mood RENAME TO feeling",
      "DEPENDENT_OBJECTS: Cannot rename type app.mood: its name is used in a DEFAULT, a condition or a query of table app.people",
    ],
    [
      "DROP TYPE app.mood",
      "DEPENDENT_OBJECTS: Cannot drop type app.mood: the type is used by column app.people.m, table app.people",
    ],
    [
      "CREATE SHARED TABLE app.t (id INT PRIMARY KEY, x TEXT DEFAULT 'sad'::app.mood)",
      'INVALID_DEFINITION: Cannot use type "mood" in a stored expression',
    ],
    [
      "SELECT 'sad'::app.moot",
      'UNSUPPORTED_TYPE: Cannot use type "app.moot": there is no such type',
    ],
    [
      "SELECT 'sad'::app.mood(3)",
      'INVALID_DEFINITION: Cannot use type "mood": the type takes no size',
    ],
    [
      "INSERT INTO app.people VALUES (9, 'angry')",
      'INVALID_VALUE: Cannot read "angry" as app.mood: the values of the type are "sad", "ok" \\(column "m"\\)',
    ],
  ])("%s", async (sql, message) => {
    expect(await failure(sql)).toMatch(new RegExp(`^${message}`));
    expect(await engine.rows("SELECT * FROM app.people WHERE m = 'sad'")).toHaveLength(1);
  });

  test("a type is refused to a user without the right", async () => {
    expect(await failure("CREATE TYPE app.t AS ENUM ('x')", "ann")).toMatch(/^PERMISSION_DENIED/);
    expect(await failure("ALTER TYPE app.mood ADD VALUE 'x'", "ann")).toMatch(/^PERMISSION_DENIED/);
    expect(await failure("DROP TYPE app.mood", "ann")).toMatch(/^PERMISSION_DENIED/);
    expect(await failure("SELECT m FROM app.people WHERE m > 'sad'::app.mood", "ann")).toBe(
      "undefined: undefined",
    );
  });
});

test("labels can be added between others until there is no more room", async () => {
  await engine.run("CREATE TYPE app.dense AS ENUM ('first', 'last')");
  let count = 0;
  let message = "";
  for (; message === ""; count += 1) {
    const { error } = await engine.ask(`ALTER TYPE app.dense ADD VALUE 'l${count}' AFTER 'first'`);
    message = error?.message ?? "";
  }
  expect(count).toBeGreaterThan(50);
  expect(message).toMatch(
    /^Cannot add label "l\d+" in this position: too many labels have been added/,
  );
  await engine.run(
    "ALTER TYPE app.dense ADD VALUE 'end'; ALTER TYPE app.dense ADD VALUE 'begin' BEFORE 'first'",
  );
  const [[range] = []] = await engine.rows("SELECT enum_range(NULL::app.dense)");
  expect((range as string[]).slice(0, 3)).toEqual(["begin", "first", `l${count - 2}`]);
  expect((range as string[]).slice(-3)).toEqual(["l0", "last", "end"]);
});

test("a view and a cached plan know a renamed and an added label", async () => {
  await engine.run(
    `CREATE TYPE app.state AS ENUM ('open', 'closed');
     CREATE SHARED TABLE app.jobs (id INT PRIMARY KEY, s app.state DEFAULT 'open', CHECK (s <> 'open'::app.state OR id > 0));
     CREATE VIEW app.open_jobs AS SELECT id, s FROM app.jobs WHERE s = 'open'::app.state;
     INSERT INTO app.jobs (id) VALUES (1); INSERT INTO app.jobs VALUES (2, 'closed')`,
  );
  const all = "SELECT s FROM app.jobs ORDER BY s";
  expect(await engine.rows(all)).toEqual([["open"], ["closed"]]);
  await engine.run(
    "ALTER TYPE app.state RENAME VALUE 'closed' TO 'done'; ALTER TYPE app.state ADD VALUE 'paused' BEFORE 'done'",
  );
  await engine.run("INSERT INTO app.jobs VALUES (3, 'paused')");
  expect(await engine.rows(all)).toEqual([["open"], ["paused"], ["done"]]);
  expect(await engine.rows("SELECT * FROM app.open_jobs")).toEqual([[1, "open"]]);
});

test("a label that a stored text names cannot be renamed", async () => {
  await engine.run(
    `CREATE TYPE app.tone AS ENUM ('low', 'high');
     CREATE SHARED TABLE app.notes (id INT PRIMARY KEY, t app.tone DEFAULT 'low')`,
  );
  expect(await failure("ALTER TYPE app.tone RENAME VALUE 'low' TO 'deep'")).toBe(
    'DEPENDENT_OBJECTS: Cannot rename label "low" of type app.tone: its name is used in a DEFAULT, a condition or a query of table app.notes',
  );
});

test("DROP NAMESPACE drops its types, but not those that other namespaces use", async () => {
  await engine.run(
    `CREATE NAMESPACE gone; CREATE TYPE gone.t AS ENUM ('x');
     CREATE SHARED TABLE other.uses (id INT PRIMARY KEY, t gone.t)`,
  );
  expect(await failure("DROP NAMESPACE gone")).toMatch(/^DEPENDENT_OBJECTS: .* and 1 type$/);
  expect(await failure("DROP NAMESPACE gone CASCADE")).toMatch(
    /^DEPENDENT_OBJECTS: .* objects in other namespaces use its types: column other.uses.t/,
  );
  await engine.run("ALTER TABLE other.uses DROP COLUMN t; DROP NAMESPACE gone CASCADE");
  expect(await engine.rows("SELECT * FROM system.types WHERE namespace_id = 'gone'")).toEqual([]);
});

test("DROP NAMESPACE with CASCADE drops views that use its types, as in PostgreSQL", async () => {
  await engine.run(
    `CREATE NAMESPACE moods; CREATE TYPE moods.mood AS ENUM ('low'); CREATE TYPE moods.span AS RANGE (SUBTYPE = INT);
     CREATE TYPE other.mood AS ENUM ('low');
     CREATE SHARED TABLE other.days (id INT PRIMARY KEY, t TEXT)`,
  );
  await engine.run(
    `CREATE VIEW other.low AS SELECT id FROM other.days WHERE t::moods.mood = 'low'::moods.mood`,
  );
  await engine.run(
    `CREATE VIEW other.of_low AS SELECT id FROM other.low;
     CREATE VIEW other.spans AS SELECT id, moods.span(id, id + 1) @> 1 AS has FROM other.days;
     CREATE VIEW other.own AS SELECT id FROM other.days WHERE t::other.mood = 'low'::other.mood;
     CREATE MATERIALIZED VIEW other.kept AS SELECT id, t::moods.mood AS m FROM other.days`,
  );
  await engine.run("DROP NAMESPACE moods CASCADE");
  const left =
    "SELECT table_name FROM information_schema.tables WHERE table_schema = 'other' ORDER BY 1";
  const names = (await engine.rows(left)).flat();
  expect(names).toContain("own");
  for (const name of ["low", "of_low", "spans", "kept"]) expect(names).not.toContain(name);
  expect(await engine.rows("SELECT * FROM system.types WHERE namespace_id = 'moods'")).toEqual([]);
  await engine.run("DROP VIEW other.own; DROP TYPE other.mood");
});

test("types are listed with their labels and comments, and belong to their namespace", async () => {
  await engine.run(
    "CREATE TYPE other.size AS ENUM ('S', 'L'); COMMENT ON TYPE other.size IS 'of shirts'",
  );
  await engine.run("ALTER TYPE other.size OWNER TO root");
  expect(await engine.rows("SELECT * FROM system.types WHERE namespace_id = 'other'")).toEqual([
    ["other", "size", ["S", "L"], "of shirts", "enum", null, null, null],
  ]);
  await engine.run(
    "CREATE SHARED TABLE other.shirts (id INT PRIMARY KEY, s other.size, ss other.size[])",
  );
  expect(
    await engine.rows(
      "SELECT data_type, udt_schema, udt_name FROM information_schema.columns WHERE table_name = 'shirts' AND column_name LIKE 's%' ORDER BY column_name",
    ),
  ).toEqual([
    ["USER-DEFINED", "other", "size"],
    ["ARRAY", "other", "_size"],
  ]);
  await engine.run("CREATE TABLE other.copied (LIKE other.shirts INCLUDING ALL)");
  await engine.run("INSERT INTO other.copied VALUES (1, 'L', '{S,L}')");
  expect(await engine.rows("SELECT s, ss FROM other.copied")).toEqual([["L", ["S", "L"]]]);
});

describe("CREATE TYPE can define row types", () => {
  test("a row type is listed with its fields, and prevents dropping the types of its fields", async () => {
    await engine.run("CREATE TYPE other.colour AS ENUM ('red', 'blue')");
    await engine.run("CREATE TYPE other.paint AS (c other.colour, litres NUMERIC(5, 1))");
    expect(
      await engine.rows(
        "SELECT labels, type_kind, fields FROM system.types WHERE type_name = 'paint'",
      ),
    ).toEqual([[null, "row", ["c other.colour", "litres numeric(5,1)"]]]);
    expect(await failure("DROP TYPE other.colour")).toMatch(/the type is used by type other.paint/);
    await engine.run(
      "CREATE TABLE other.cans (id INT PRIMARY KEY, p other.paint, ps other.paint[])",
    );
    await engine.run(
      "INSERT INTO other.cans VALUES (1, '(red,2.55)', ARRAY[ROW('blue', 1)::other.paint])",
    );
    await engine.run("ALTER TYPE other.colour RENAME VALUE 'red' TO 'crimson'");
    await engine.run("ALTER TYPE other.paint RENAME TO coat");
    expect(await engine.rows("SELECT p::text, ps::text, p FROM other.cans")).toEqual([
      ["(crimson,2.6)", '{"(blue,1.0)"}', '{"c":"crimson","litres":2.6}'],
    ]);
    expect(await failure("DROP TYPE other.coat")).toMatch(
      /column other.cans.p, column other.cans.ps/,
    );
    expect(await failure("CREATE INDEX ON other.cans (p)")).toMatch(
      /its type, other.coat, is not allowed there/,
    );
    await engine.run("DROP TABLE other.cans");
    await engine.run("DROP TYPE other.coat, other.colour");
  });

  test("a row type may have fields of domains, which json_populate_record checks", async () => {
    await engine.run("CREATE DOMAIN other.positive AS INT NOT NULL CHECK (VALUE > 0)");
    await engine.run("CREATE TYPE other.counted AS (n other.positive, t TEXT)");
    const populated = (document: string): string =>
      `SELECT n, t FROM jsonb_populate_record(NULL::other.counted, '${document}')`;
    expect(await engine.rows(populated('{"n": 3, "t": "x"}'))).toEqual([[3, "x"]]);
    expect(await failure(populated('{"n": 0}'))).toMatch(/^CHECK_VIOLATION/);
    expect(await failure(populated("{}"))).toMatch(/^NOT_NULL_VIOLATION/);
    expect(await failure("SELECT ROW(0, 'x')::other.counted")).toMatch(/^CHECK_VIOLATION/);
    expect(await failure("SELECT (jsonb_populate_record(NULL::other.counted, '{}')).t")).toMatch(
      /^UNSUPPORTED_FEATURE/,
    );
    expect(await failure("DROP DOMAIN other.positive")).toMatch(
      /the type is used by type other.counted/,
    );
    await engine.run("DROP TYPE other.counted");
    await engine.run("DROP DOMAIN other.positive");
  });
});

test("domains of elements and fields follow ALTER DOMAIN and restarts, also in USER tables", async () => {
  await engine.run(
    `CREATE DOMAIN app.even AS INT CHECK (VALUE % 2 = 0);
     CREATE TYPE app.pair AS (a app.even, b app.even);
     CREATE USER TABLE app.pairs (id INT PRIMARY KEY, list app.even[], p app.pair)`,
  );
  await engine.run("INSERT INTO app.pairs VALUES (1, '{2,4}', '(6,8)')");
  const insert = "INSERT INTO app.pairs VALUES (2, '{1}', '(1,1)')";
  expect(await failure("UPDATE app.pairs SET list[2] = 3")).toBe(
    "CHECK_VIOLATION: Cannot convert the value to domain app.even: it violates the check " +
      '"even_check" (column "list" of app.pairs)',
  );
  expect(await failure("ALTER DOMAIN app.even ADD CHECK (VALUE < 9)")).toBe(
    "UNSUPPORTED_FEATURE: Cannot add a condition to domain app.even: values in column " +
      '"list" of app.pairs contain values of the domain, and are not checked again',
  );
  expect(await failure("ALTER TABLE app.pairs ALTER COLUMN list TYPE INT[]")).toMatch(
    /^UNSUPPORTED_FEATURE: .* its values contain values of domains/,
  );
  expect(await failure("CREATE DOMAIN app.evens AS app.even[]; SELECT NULL::app.evens[]")).toMatch(
    /^UNSUPPORTED_FEATURE: Cannot use an array of domain app.evens/,
  );
  expect(
    await failure("CREATE FUNCTION app.f(x app.even[]) RETURNS INT LANGUAGE sql RETURN 1"),
  ).toMatch(/^UNSUPPORTED_FEATURE: Cannot use domain app.even in a function/);
  await engine.restart();
  expect(await failure(insert)).toMatch(/^CHECK_VIOLATION/);
  expect(await failure("DROP DOMAIN app.even")).toMatch(/column app.pairs.list/);
  await engine.run("ALTER DOMAIN app.even DROP CONSTRAINT even_check");
  await engine.run(insert);
  expect(await engine.rows("SELECT list, (p).a FROM app.pairs ORDER BY id")).toEqual([
    [[2, 4], 6],
    [[1], 1],
  ]);
  await engine.run("DROP TABLE app.pairs; DROP TYPE app.pair; DROP DOMAIN app.evens, app.even");
});

test("DROP TYPE … CASCADE drops no column if a function or a key would keep the type in use", async () => {
  await engine.run(
    `CREATE TYPE app.size AS ENUM ('s', 'm');
     CREATE SHARED TABLE app.shirts (id INT PRIMARY KEY, size app.size);
     CREATE SHARED TABLE app.sizes (size app.size PRIMARY KEY, cm INT);
     CREATE FUNCTION app.next_size(x app.size) RETURNS app.size LANGUAGE sql AS 'SELECT x'`,
  );
  expect(await failure("DROP TYPE app.size CASCADE")).toBe(
    'INVALID_OPERATION: Cannot drop column "size": it is part of the primary key',
  );
  await engine.run("DROP TABLE app.sizes");
  expect(await failure("DROP TYPE app.size CASCADE")).toBe(
    "UNSUPPORTED_FEATURE: Cannot drop type app.size with CASCADE: 1 object would still use " +
      "the type after its columns are dropped, including function app.next_size(app.size)",
  );
  expect(await engine.rows("SELECT size FROM app.shirts")).toEqual([]);
  await engine.run("DROP FUNCTION app.next_size");
  await engine.run("DROP TYPE app.size CASCADE");
  expect(await engine.rows("SELECT * FROM app.shirts")).toEqual([]);
  await engine.run("DROP TABLE app.shirts");
});

describe("DO blocks may contain a definition", () => {
  test.each([
    "DO $$ BEGIN CREATE TYPE app.once AS ENUM ('a'); EXCEPTION WHEN duplicate_object THEN null; END $$",
    "DO 'BEGIN CREATE TYPE app.once AS ENUM(''a''); EXCEPTION WHEN duplicate_object THEN null; END'",
    "DO $x$\nBEGIN\n CREATE TYPE app.once AS ENUM ('a');\nEXCEPTION\n WHEN duplicate_object OR duplicate_table THEN NULL;\nEND;\n$x$",
    "DO $$ BEGIN CREATE SHARED TABLE app.people (id INT PRIMARY KEY); EXCEPTION WHEN duplicate_table THEN null; END $$",
    "DO $$ BEGIN ALTER TABLE app.people ADD CONSTRAINT people_pkey CHECK (id > 0); EXCEPTION WHEN duplicate_object THEN null; END $$",
  ])("passes over what exists already: %s", async (sql) => {
    expect(await failure(sql)).toBe("undefined: undefined");
    expect(await failure(sql)).toBe("undefined: undefined");
  });

  test.each([
    ["DO $$ BEGIN SELECT 1; END $$", /^INVALID_SQL: .* the query has no destination for its rows/],
    ["DO LANGUAGE sql $$ SELECT 1 $$", /^UNSUPPORTED_FEATURE: Cannot use DO with LANGUAGE sql/],
    ["DO 1", /^INVALID_SQL/],
    [
      "DO $$ BEGIN CREATE TYPE app.x AS ENUM ('a', 'a'); EXCEPTION WHEN duplicate_object THEN null; END $$",
      /^undefined/,
    ],
    [
      "DO $$ BEGIN CREATE TYPE nowhere.x AS ENUM ('a'); EXCEPTION WHEN duplicate_object THEN null; END $$",
      /^NAMESPACE_NOT_FOUND/,
    ],
  ])("refuses what it cannot run: %s", async (sql, message) => {
    expect(await failure(sql)).toMatch(message);
    expect(await engine.rows("SELECT count(*) FROM app.people")).toEqual([[1]]);
  });
});
