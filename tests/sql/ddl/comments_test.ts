/**
 * Tests COMMENT ON: the views that show comments, the callers who may set them, and that comments
 * survive changes and a restart without being part of a schema version.
 */
import { expect, test } from "bun:test";
import { TestEngine } from "../../support/sql_engine.ts";

const SETUP = `
  CREATE NAMESPACE app;
  CREATE SEQUENCE app.numbers;
  CREATE TABLE app.teams (id INT PRIMARY KEY);
  CREATE TABLE app.people (id INT PRIMARY KEY, name TEXT CHECK (name <> ''), team INT,
    email TEXT, CONSTRAINT one_email UNIQUE (email),
    CONSTRAINT in_team FOREIGN KEY (team) REFERENCES app.teams (id));
  CREATE INDEX by_team ON app.people (team);
  CREATE VIEW app.names AS SELECT name FROM app.people`;

const COMMENTS = `
  COMMENT ON SCHEMA app IS 'the shop';
  COMMENT ON TABLE app.people IS 'who works here';
  COMMENT ON COLUMN app.people.name IS 'as it''s spoken';
  COMMENT ON VIEW app.names IS 'names only';
  COMMENT ON INDEX app.by_team IS 'for lists';
  COMMENT ON SEQUENCE app.numbers IS 'of invoices';
  COMMENT ON CONSTRAINT people_pkey ON app.people IS 'the key';
  COMMENT ON CONSTRAINT people_name_check ON app.people IS 'not empty';
  COMMENT ON CONSTRAINT one_email ON app.people IS 'for the login';
  COMMENT ON CONSTRAINT in_team ON app.people IS 'teams stay'`;

async function commented(): Promise<TestEngine> {
  const engine = await TestEngine.open();
  await engine.run(SETUP);
  await engine.run(COMMENTS);
  return engine;
}

/** Returns all comments that the system views show, keyed by object. */
async function comments(engine: TestEngine): Promise<readonly (readonly unknown[])[]> {
  return await engine.rows(`
    SELECT 'namespace ' || name, namespace_comment FROM system.namespaces WHERE name = 'app'
    UNION ALL SELECT table_name, table_comment FROM system.tables WHERE namespace_id = 'app'
    UNION ALL SELECT 'column ' || column_name, column_comment FROM system.columns
      WHERE column_comment IS NOT NULL
    UNION ALL SELECT 'index ' || index_name, index_comment FROM system.indexes
      WHERE index_comment IS NOT NULL
    UNION ALL SELECT sequence_name, sequence_comment FROM system.sequences
    UNION ALL SELECT 'constraint ' || (c ->> 'name'), c ->> 'comment' FROM system.schemas s,
      LATERAL json_array_elements(s.constraints) AS k (c)
      WHERE s.is_latest AND s.table_name = 'people' AND c ->> 'comment' IS NOT NULL
    ORDER BY 1`);
}

const ALL = [
  ["column name", "as it's spoken"],
  ["constraint in_team", "teams stay"],
  ["constraint one_email", "for the login"],
  ["constraint people_name_check", "not empty"],
  ["constraint people_pkey", "the key"],
  ["index by_team", "for lists"],
  ["index one_email", "for the login"],
  ["names", "names only"],
  ["namespace app", "the shop"],
  ["numbers", "of invoices"],
  ["people", "who works here"],
  ["teams", null],
];

test("comments are shown, and survive a restart", async () => {
  await using engine = await commented();
  expect(await comments(engine)).toEqual(ALL);
  await engine.restart();
  expect(await comments(engine)).toEqual(ALL);
  const shown = await engine.rows("SHOW TABLES IN app");
  const people = shown.find((row) => row[1] === "people");
  expect(people?.[6]).toBe("who works here");
  const described = await engine.rows("DESCRIBE app.people");
  expect(described.map((row) => row[7])).toContain("as it's spoken");
});

test("comments stay when their objects change, and do not raise the schema version", async () => {
  await using engine = await commented();
  const versions = await engine.rows(
    "SELECT schema_version FROM system.tables WHERE table_name = 'people'",
  );
  expect(versions).toEqual([[1]]);
  await engine.run(
    "ALTER TABLE app.people ADD COLUMN note TEXT; ALTER TABLE app.people RENAME COLUMN email TO mail;" +
      "ALTER TABLE app.people ALTER COLUMN name SET NOT NULL; ALTER SEQUENCE app.numbers CACHE 5;" +
      "CREATE OR REPLACE VIEW app.names AS SELECT name, id FROM app.people;" +
      "ALTER NAMESPACE app OWNER TO root",
  );
  expect(await comments(engine)).toEqual(ALL);
});

test("NULL or an empty string as the comment removes a comment", async () => {
  await using engine = await commented();
  await engine.run(
    "COMMENT ON TABLE app.people IS NULL; COMMENT ON COLUMN app.people.name IS '';" +
      "COMMENT ON NAMESPACE app IS NULL; COMMENT ON CONSTRAINT people_pkey ON app.people IS NULL",
  );
  const left = new Map((await comments(engine)).map(([name, text]) => [name, text]));
  expect(left.get("people")).toBeNull();
  expect(left.get("namespace app")).toBeNull();
  expect(left.has("column name")).toBe(false);
  expect(left.has("constraint people_pkey")).toBe(false);
  expect(left.get("constraint in_team")).toBe("teams stay");
});

test.each([
  ["COMMENT ON TABLE app.nothing IS 'x'", "TABLE_NOT_FOUND", "Cannot find table app.nothing"],
  ["COMMENT ON TABLE app.names IS 'x'", "INVALID_OPERATION", "it is a view"],
  ["COMMENT ON VIEW app.people IS 'x'", "INVALID_OPERATION", "it is a table"],
  ["COMMENT ON COLUMN app.people.nam IS 'x'", "COLUMN_NOT_FOUND", 'Cannot find column "nam"'],
  ["COMMENT ON COLUMN app.names.name IS 'x'", "INVALID_OPERATION", "it is a view"],
  ["COMMENT ON INDEX app.by_tea IS 'x'", "OBJECT_NOT_FOUND", "Cannot find index app.by_tea"],
  ["COMMENT ON SEQUENCE app.number IS 'x'", "OBJECT_NOT_FOUND", "Cannot find sequence"],
  [
    "COMMENT ON CONSTRAINT in_teams ON app.people IS 'x'",
    "OBJECT_NOT_FOUND",
    'Cannot find constraint "in_teams"',
  ],
  ["COMMENT ON SCHEMA absent IS 'x'", "NAMESPACE_NOT_FOUND", "absent"],
  ["COMMENT ON TABLE system.users IS 'x'", "READ_ONLY_OBJECT", "it is a system view"],
])("%s is refused, and changes no comment", async (sql, code, message) => {
  await using engine = await commented();
  const { error } = await engine.ask(sql);
  expect(error).toMatchObject({ code, message: expect.stringContaining(message) });
  expect(await comments(engine)).toEqual(ALL);
});

test("a comment that is too long is refused", async () => {
  await using engine = await commented();
  const { error } = await engine.ask(`COMMENT ON VIEW app.names IS '${"x".repeat(10_001)}'`);
  expect(error).toMatchObject({
    code: "INVALID_DEFINITION",
    message: "Cannot store the comment: it has 10001 characters, but the maximum is 10000",
  });
  expect(await comments(engine)).toEqual(ALL);
});

test("only those who may alter an object may comment on it", async () => {
  await using engine = await commented();
  await engine.run(
    "CREATE USER ann INTERNAL; CREATE NAMESPACE own AUTHORIZATION ann; CREATE TABLE own.t (id INT PRIMARY KEY);" +
      "ALTER TABLE app.people SET ACCESS LEVEL public",
  );
  engine.userId = "ann";
  const refused = [
    "TABLE app.people",
    "INDEX app.by_team",
    "VIEW app.names",
    "SEQUENCE app.numbers",
  ];
  for (const object of [...refused, "SCHEMA app", "COLUMN app.people.name"]) {
    const { error } = await engine.ask(`COMMENT ON ${object} IS 'mine'`);
    expect([object, error?.code]).toEqual([object, "PERMISSION_DENIED"]);
  }
  await engine.run("COMMENT ON TABLE own.t IS 'mine'; COMMENT ON SCHEMA own IS 'mine'");
  engine.userId = "root";
  const kept = (await comments(engine)).filter(([name]) => name !== "teams");
  expect(kept).toEqual(ALL.filter(([name]) => name !== "teams"));
});

test("a comment may follow its object in one text", async () => {
  await using engine = await TestEngine.open();
  await engine.run(
    "CREATE TABLE notes (id INT PRIMARY KEY); CREATE INDEX of_id ON notes (id);" +
      "COMMENT ON TABLE notes IS 'short'; COMMENT ON INDEX of_id IS 'by id';" +
      "ALTER TABLE notes ADD COLUMN text TEXT; COMMENT ON COLUMN notes.text IS 'a line'",
  );
  const rows = await engine.rows(
    "SELECT table_comment, column_comment FROM system.tables JOIN system.columns USING (table_name) WHERE table_name = 'notes' AND column_name = 'text'",
  );
  expect(rows).toEqual([["short", "a line"]]);
});
