/**
 * Tests CREATE TYPE … AS RANGE: faulty definitions, names, rights, and the use of range types in
 * stored SQL, functions, live queries, readers and after a restart. Results that agree with
 * PostgreSQL's are in `tests/sql/cases/range_types.slt`.
 */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { ResultFollower } from "../../support/result_follower.ts";
import { TestEngine } from "../../support/sql_engine.ts";

let engine: TestEngine;

beforeAll(async () => {
  engine = await TestEngine.open();
  await engine.run(
    `CREATE NAMESPACE app; CREATE NAMESPACE other;
     CREATE USER ann INTERNAL ROLE user;
     CREATE DOMAIN app.positive AS INT CHECK (VALUE > 0);
     CREATE TYPE app.floatrange AS RANGE (subtype = DOUBLE PRECISION);
     CREATE TABLE app.held (id INT PRIMARY KEY, r app.floatrange)`,
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

describe("a range type with a faulty definition is refused", () => {
  test.each([
    ["()", "INVALID_SQL: .*"],
    ["(subtype = INT, colour = red)", 'INVALID_DEFINITION: .* there is no attribute "colour"'],
    ['(collation = "C")', 'INVALID_DEFINITION: .* "subtype" is missing'],
    ["(subtype = INT, subtype = INT)", 'INVALID_DEFINITION: .* "subtype" occurs twice'],
    ["(subtype = INT, canonical = f)", "UNSUPPORTED_FEATURE: .* with CANONICAL"],
    ["(subtype = POINT)", "UNSUPPORTED_TYPE: .* its values have no order"],
    ["(subtype = app.positive)", "UNSUPPORTED_FEATURE: .* its conditions would not be checked"],
    [
      '(subtype = TEXT, collation = "de-x-icu")',
      "UNSUPPORTED_FEATURE: .* a collation that does not compare code points",
    ],
    ["(subtype = INT, subtype_opclass = text_ops)", "UNSUPPORTED_FEATURE: .* class text_ops"],
    ["(subtype = INT, subtype_diff = nope)", "FUNCTION_NOT_FOUND: .* nope\\(integer, integer\\)"],
    ["(subtype = INT, multirange_type_name = int)", "RESERVED_NAME: .*"],
    ["(subtype = INT, multirange_type_name = app.held)", "ALREADY_EXISTS: .* app.held: .*"],
    ["(subtype = INT, multirange_type_name = app.t)", "ALREADY_EXISTS: .* a name of its own"],
    ["(subtype = INT, multirange_type_name = nowhere.t)", "NAMESPACE_NOT_FOUND: .*"],
  ])("CREATE TYPE app.t AS RANGE %s", async (attributes, message) => {
    const sql = `CREATE TYPE app.t AS RANGE ${attributes}`;
    expect(await failure(sql)).toMatch(new RegExp(`^${message}`));
    expect(await engine.rows("SELECT 1 FROM system.types WHERE type_name = 't'")).toEqual([]);
  });

  test("the right is needed in both namespaces", async () => {
    expect(await failure("CREATE TYPE app.t AS RANGE (subtype = INT)", "ann")).toMatch(
      /^PERMISSION_DENIED/,
    );
  });
});

test("a range type and its multirange type are listed, and belong together", async () => {
  await engine.run(
    "CREATE TYPE app.span AS RANGE (subtype = NUMERIC(9, 2), multirange_type_name = other.spans)",
  );
  expect(
    await engine.rows(
      "SELECT namespace_id, type_name, type_kind, base_type FROM system.types WHERE type_name LIKE 'span%'",
    ),
  ).toEqual([
    ["app", "span", "range", "numeric"],
    ["other", "spans", "multirange", "numeric"],
  ]);
  expect(await failure("DROP TYPE other.spans CASCADE")).toBe(
    "DEPENDENT_OBJECTS: Cannot drop type other.spans: it is the multirange type of app.span",
  );
  expect(await failure("DROP NAMESPACE other CASCADE")).toMatch(/use its types: type app.span/);
  expect(await failure("ALTER TYPE app.span ADD VALUE 'x'")).toMatch(
    /it is a range type, not an enum type/,
  );
  await engine.run(
    "CREATE TABLE app.spanned (id INT PRIMARY KEY, s app.span, m other.spans[]);" +
      "INSERT INTO app.spanned VALUES (1, '[1.50,2)', ARRAY['{[1,2)}'::other.spans])",
  );
  expect(
    await engine.rows(
      "SELECT data_type, udt_schema, udt_name FROM information_schema.columns WHERE table_name = 'spanned' AND ordinal_position <= 3 ORDER BY ordinal_position",
    ),
  ).toEqual([
    ["integer", "pg_catalog", "int4"],
    ["USER-DEFINED", "app", "span"],
    ["ARRAY", "other", "_spans"],
  ]);
  expect(await failure("DROP TYPE app.span")).toMatch(/used by column app.spanned.s, .*spanned.m/);
  await engine.run("DROP TYPE app.span CASCADE");
  expect(
    await engine.rows(
      "SELECT column_name FROM information_schema.columns WHERE table_name = 'spanned' AND column_name IN ('s', 'm')",
    ),
  ).toEqual([]);
  expect(await engine.rows("SELECT 1 FROM system.types WHERE type_name LIKE 'span%'")).toEqual([]);
  await engine.run("DROP TABLE app.spanned");
});

test("a domain under a range type gets no conditions, and ranges over arrays are no keys", async () => {
  await engine.run(
    `CREATE DOMAIN app.plain AS INT;
     CREATE TYPE app.plainrange AS RANGE (subtype = app.plain);
     CREATE TYPE app.listrange AS RANGE (subtype = INT[])`,
  );
  expect(await failure("ALTER DOMAIN app.plain ADD CHECK (VALUE > 0)")).toMatch(
    /^UNSUPPORTED_FEATURE: .* the range type app.plainrange has it as its subtype/,
  );
  expect(await failure("ALTER DOMAIN app.plain SET NOT NULL")).toMatch(/^UNSUPPORTED_FEATURE/);
  expect(await failure("CREATE TABLE app.bad (r app.listrange PRIMARY KEY)")).toMatch(
    /^INVALID_DEFINITION: .* its type, app.listrange, is not allowed there/,
  );
  await engine.run("DROP DOMAIN app.plain CASCADE; DROP TYPE app.listrange");
});

test("renaming the types renames their constructors, and keeps the values", async () => {
  await engine.run(
    `CREATE TYPE app.steprange AS RANGE (subtype = INT);
     CREATE TABLE app.steps (id INT PRIMARY KEY, r app.steprange, m app.stepmultirange);
     INSERT INTO app.steps VALUES (1, app.steprange(1, 3), app.stepmultirange(app.steprange(1, 3)))`,
  );
  await engine.run("ALTER TYPE app.steprange RENAME TO pace");
  await engine.run("ALTER TYPE app.stepmultirange RENAME TO paces");
  expect(
    await engine.rows("SELECT r, m, pg_typeof(r), pg_typeof(m), r = app.pace(1, 3) FROM app.steps"),
  ).toEqual([["[1,3)", "{[1,3)}", "app.pace", "app.paces", true]]);
  expect(await failure("SELECT app.steprange(1, 3)")).toMatch(/^FUNCTION_NOT_FOUND/);
  expect(await failure("SELECT r && int4range(1, 3) FROM app.steps")).toMatch(/app.pace/);
  await engine.run("DROP TYPE app.pace CASCADE; DROP TABLE app.steps");
});

test("stored SQL and functions construct ranges of the types that they know", async () => {
  await engine.run(
    `CREATE TABLE app.lengths (id INT PRIMARY KEY, low DOUBLE PRECISION,
       r app.floatrange DEFAULT app.floatrange(0, 1),
       cut app.floatrange GENERATED ALWAYS AS (r * app.floatrange(low, NULL)) STORED,
       CHECK (r && app.floatrange(-10, 10)));
     CREATE INDEX ON app.lengths ((r + app.floatrange(0, 1)));
     CREATE VIEW app.cuts AS SELECT id, app.floatrange(low, upper(r)) AS f FROM app.lengths;
     CREATE FUNCTION app.wide(x app.floatrange) RETURNS app.floatmultirange LANGUAGE sql
       AS 'SELECT app.floatmultirange(x, app.floatrange(50, 60))';
     INSERT INTO app.lengths (id, low) VALUES (1, 0.5)`,
  );
  expect(await engine.rows("SELECT r, cut, app.wide(r) FROM app.lengths")).toEqual([
    ["[0,1)", "[0.5,1)", "{[0,1),[50,60)}"],
  ]);
  expect(await engine.rows("SELECT f FROM app.cuts")).toEqual([["[0.5,1)"]]);
  expect(await failure("INSERT INTO app.lengths VALUES (2, 0, '[20,30)')")).toMatch(
    /^CHECK_VIOLATION/,
  );
  expect(
    await failure(
      "CREATE TABLE app.bad (id INT PRIMARY KEY, CHECK (NOT isempty(app.floatrange(id, 9))))",
    ),
  ).toMatch(/^INVALID_DEFINITION: Cannot use type "floatrange" in a stored expression/);
  expect(await failure("ALTER TYPE app.floatrange RENAME TO fr")).toMatch(/^DEPENDENT_OBJECTS/);
  await engine.run("DROP FUNCTION app.wide; DROP VIEW app.cuts; DROP TABLE app.lengths");
});

test("range types are read again after a restart, with the names and the order that they had", async () => {
  await using own = await TestEngine.open();
  await own.run(
    `CREATE TYPE mood AS ENUM ('sad', 'ok');
     CREATE TYPE moodrange AS RANGE (subtype = mood, multirange_type_name = moods);
     CREATE TYPE nested AS RANGE (subtype = moodrange);
     ALTER TYPE moods RENAME TO tempers;
     CREATE TABLE felt (id INT PRIMARY KEY, r moodrange UNIQUE, t tempers, n nested);
     INSERT INTO felt VALUES (1, '[sad,ok]', '{[ok,ok]}', '["[sad,ok)",]'), (2, '[ok,)', '{}', 'empty')`,
  );
  await own.restart();
  await own.run("ALTER TYPE mood ADD VALUE 'fine' BEFORE 'ok'");
  await own.run(
    "UPDATE felt SET r = r - '[ok,)', t = tempers(moodrange('fine', 'ok')) WHERE id = 1",
  );
  expect(
    await own.rows("SELECT r, t, n, pg_typeof(t), r @> 'fine'::mood FROM felt ORDER BY id"),
  ).toEqual([
    ["[sad,ok)", "{[fine,ok)}", '["[sad,ok)",)', "tempers", true],
    ["[ok,)", "{}", "empty", "tempers", false],
  ]);
  expect(await own.rows("SELECT id FROM felt WHERE r = moodrange('sad', 'ok')")).toEqual([[1]]);
});

test("a transaction defines a range type and uses it", async () => {
  await engine.run(
    `BEGIN; CREATE TYPE app.drafted AS RANGE (subtype = DATE);
     CREATE TABLE app.drafts (id INT PRIMARY KEY, r app.drafted);
     INSERT INTO app.drafts VALUES (1, app.drafted('2024-01-01', '2024-02-01')); COMMIT`,
  );
  expect(await engine.rows("SELECT upper(r)::text FROM app.drafts")).toEqual([["2024-02-01"]]);
});

test("a live query over an entire result may name types and construct ranges", async () => {
  await engine.run(
    `CREATE TYPE app.mood AS ENUM ('sad', 'ok');
     CREATE TABLE app.rides (id INT PRIMARY KEY, r app.floatrange, m app.mood);
     INSERT INTO app.rides VALUES (1, '[0,1)', 'sad'), (2, '[1,3)', 'ok')`,
  );
  const sink = new ResultFollower();
  const sql =
    "SELECT m, count(*) AS n, range_agg(r * app.floatrange(0, 2)) AS r FROM app.rides " +
    "WHERE r && app.floatrange(0, 2) AND m >= 'sad'::app.mood GROUP BY m ORDER BY m";
  sink.subscription = engine.database.live.subscribe({
    principal: engine.principal,
    spec: { id: "q", sql },
    sink,
  });
  await engine.run("INSERT INTO app.rides VALUES (3, '[1.5,9)', 'sad'), (4, '[2,9)', 'ok')");
  await sink.reaches(engine.database.store.visibleSeq);
  expect(sink.rows).toMatchObject([
    { m: "sad", n: 2, r: "{[0,1),[1.5,2)}" },
    { m: "ok", n: 1, r: "{[1,2)}" },
  ]);
  sink.subscription.close();
  await engine.run("DROP TABLE app.rides; DROP TYPE app.mood");
});

test("a namespace keeps its types while functions in other namespaces use them", async () => {
  await engine.run(
    `CREATE NAMESPACE kept; CREATE TYPE kept.span AS RANGE (subtype = INT);
     CREATE AGGREGATE other.cover(kept.span) (SFUNC = range_union, STYPE = kept.span)`,
  );
  expect(await failure("DROP NAMESPACE kept CASCADE")).toBe(
    "DEPENDENT_OBJECTS: Cannot drop namespace kept: objects in other namespaces use its types: " +
      "function other.cover(kept.span)",
  );
  await engine.run("DROP AGGREGATE other.cover(kept.span); DROP NAMESPACE kept CASCADE");
});
