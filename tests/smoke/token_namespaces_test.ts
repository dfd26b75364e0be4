/**
 * Verifies that a token limited to one namespace reveals nothing about objects in another, even if
 * these depend on objects in the token's namespace. The name of each object elsewhere contains
 * "hidden", and the tests search every refusal for that word.
 */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { type ServerProcess, startReadyServer } from "../support/server_process.ts";

let server: ServerProcess;
let token: string;

beforeAll(async () => {
  server = await startReadyServer();
  await server.rows(
    `CREATE NAMESPACE app; CREATE NAMESPACE other;
     CREATE TABLE app.parent (id INT PRIMARY KEY, code INT UNIQUE, n INT, CONSTRAINT positive CHECK (n > 0));
     INSERT INTO app.parent VALUES (1, 1, 1), (2, 2, 2), (3, 3, 3);
     CREATE TABLE other.hidden_child (id INT PRIMARY KEY, parent INT CONSTRAINT hidden_key REFERENCES app.parent);
     CREATE TABLE other.hidden_default (id INT PRIMARY KEY, parent INT DEFAULT 99 CONSTRAINT hidden_default_key REFERENCES app.parent ON DELETE SET DEFAULT);
     CREATE TABLE other.hidden_checked (id INT PRIMARY KEY, parent INT CONSTRAINT hidden_check CHECK (parent IS NOT NULL) REFERENCES app.parent ON DELETE SET NULL);
     CREATE TABLE other.hidden_by_code (id INT PRIMARY KEY, code INT CONSTRAINT hidden_code REFERENCES app.parent (code));
     INSERT INTO other.hidden_child VALUES (1, 1);
     INSERT INTO other.hidden_default VALUES (1, 2);
     INSERT INTO other.hidden_checked VALUES (1, 3);
     INSERT INTO other.hidden_by_code VALUES (1, 1);
     CREATE TABLE other.hidden_parent (id INT PRIMARY KEY);
     CREATE TABLE app.child (id INT PRIMARY KEY, parent INT);
     INSERT INTO app.child VALUES (1, 7);
     ALTER TABLE app.child ADD CONSTRAINT elsewhere FOREIGN KEY (parent) REFERENCES other.hidden_parent NOT VALID;
     CREATE TYPE app.mood AS ENUM ('sad', 'glad');
     CREATE TYPE other.hidden_pair AS (mood app.mood, n INT);
     CREATE TABLE other.hidden_moods (id INT PRIMARY KEY, mood app.mood DEFAULT 'sad'::app.mood);
     CREATE DOMAIN app.size AS INT;
     CREATE TABLE other.hidden_sizes (id INT PRIMARY KEY, size app.size);
     INSERT INTO other.hidden_sizes VALUES (1, NULL), (2, -1);
     CREATE TABLE app.members (room INT, name TEXT, PRIMARY KEY (room, name));
     CREATE TABLE other.hidden_ruled (id INT PRIMARY KEY, room INT) WITH (ACCESS_LEVEL = 'RESTRICTED');
     CREATE POLICY hidden_policy ON other.hidden_ruled USING (EXISTS (SELECT 1 FROM app.members m WHERE m.room = room AND m.name = CURRENT_USER()));
     CREATE TABLE app.base (id INT PRIMARY KEY, n INT, CONSTRAINT small CHECK (n < 10));
     CREATE VIEW app.near AS SELECT id, n FROM app.base;
     CREATE VIEW other.hidden_view AS SELECT id, n FROM app.base;
     CREATE VIEW other.hidden_second AS SELECT id, n FROM app.near;
     CREATE FUNCTION app.seen(mood app.mood) RETURNS SETOF app.base LANGUAGE sql AS 'SELECT * FROM app.base';
     CREATE FUNCTION other.hidden_function(mood app.mood) RETURNS SETOF app.base LANGUAGE sql AS 'SELECT * FROM app.seen(mood)';
     CREATE FUNCTION app.opened() RETURNS BIGINT LANGUAGE sql AS 'SELECT count(*) FROM other.hidden_view';
     CREATE FUNCTION app.called() RETURNS BIGINT LANGUAGE sql AS 'SELECT count(*) FROM other.hidden_function(NULL)';
     CREATE FUNCTION other.hidden_value() RETURNS BIGINT LANGUAGE sql RETURN 1;
     CREATE FUNCTION app.omitted(n BIGINT DEFAULT other.hidden_value()) RETURNS BIGINT LANGUAGE sql RETURN app.opened() + n;
     CREATE SEQUENCE app.counter;
     CREATE TABLE other.hidden_numbers (id BIGINT PRIMARY KEY DEFAULT nextval('app.counter'));
     CREATE TABLE other.hidden_more (id BIGINT PRIMARY KEY DEFAULT nextval('app.counter'));
     CREATE TABLE app.events (id INT PRIMARY KEY, n INT);
     CREATE TOPIC other.hidden_topic; ALTER TOPIC other.hidden_topic ADD SOURCE app.events ON INSERT WHERE n > 1;
     CREATE TOPIC app.letters; ALTER TOPIC other.hidden_topic SET (MAX_DELIVERIES = 3, DEAD_LETTER = 'app.letters');
     CREATE USER definer INTERNAL ROLE dba`,
  );
  const [row = []] = await server.rows(
    "CREATE TOKEN limited FOR USER definer SCOPES (DEFINE, WRITE, READ, NAMESPACE app)",
  );
  token = String(row[1]);
});

afterAll(async () => {
  await server.stop();
});

test.each([
  "DELETE FROM app.parent WHERE id = 1",
  "DELETE FROM app.parent WHERE id = 2",
  "DELETE FROM app.parent WHERE id = 3",
  "UPDATE app.parent SET code = 5 WHERE id = 1",
  "MERGE INTO app.parent p USING (VALUES (1)) AS s (id) ON p.id = s.id WHEN MATCHED THEN DELETE",
  "TRUNCATE app.parent",
  "TRUNCATE app.parent CASCADE",
  "DROP TABLE app.parent",
  "DROP TABLE app.parent CASCADE",
  "ALTER TABLE app.parent DROP COLUMN code",
  "ALTER TABLE app.parent DROP COLUMN code CASCADE",
  "ALTER TABLE app.parent DROP CONSTRAINT parent_code_key",
  "ALTER TABLE app.parent ALTER COLUMN id TYPE BIGINT",
  "ALTER TABLE app.parent ALTER COLUMN code TYPE TEXT",
  "ALTER TABLE app.parent RENAME COLUMN code TO other_code",
  "ALTER TABLE app.parent SET (TTL_SECONDS = 3)",
  "ALTER TABLE app.child VALIDATE CONSTRAINT elsewhere",
  "INSERT INTO app.child VALUES (2, 8)",
  "UPDATE app.child SET parent = 9",
  "COPY app.child FROM STDIN",
  "DROP TYPE app.mood",
  "DROP TYPE app.mood CASCADE",
  "ALTER TYPE app.mood RENAME TO humour",
  "ALTER TYPE app.mood RENAME VALUE 'sad' TO 'blue'",
  "DROP DOMAIN app.size",
  "DROP DOMAIN app.size CASCADE",
  "DROP TYPE app.size",
  "ALTER DOMAIN app.size RENAME TO width",
  "ALTER DOMAIN app.size SET NOT NULL",
  "ALTER DOMAIN app.size ADD CHECK (VALUE > 0)",
  "DROP TABLE app.members",
  "DROP TABLE app.members CASCADE",
  "ALTER TABLE app.members DROP COLUMN room",
  "ALTER TABLE app.members ALTER COLUMN name TYPE VARCHAR(20)",
  "ALTER TABLE app.members RENAME COLUMN name TO who",
  "ALTER TABLE app.members RENAME TO people",
  "ALTER TABLE app.base ALTER COLUMN n TYPE TEXT",
  "ALTER TABLE app.base RENAME COLUMN n TO m",
  "ALTER TABLE app.base RENAME TO basis",
  "ALTER TABLE app.base DROP COLUMN n",
  "DROP TABLE app.base",
  "DROP VIEW app.near",
  "CREATE OR REPLACE VIEW app.near AS SELECT id, n::TEXT AS n FROM app.base",
  "CREATE OR REPLACE VIEW app.near AS SELECT id FROM app.base",
  "ALTER VIEW app.near RENAME TO nearby",
  "SELECT other.nothing(1)",
  "SELECT app.opened()",
  "SELECT app.called()",
  "SELECT app.omitted()",
  "CREATE TABLE app.more (id INT PRIMARY KEY, n BIGINT DEFAULT app.omitted())",
  "SHOW FUNCTIONS",
  "SELECT * FROM information_schema.routines",
  "DROP FUNCTION app.seen",
  "DROP FUNCTION app.seen CASCADE",
  "ALTER FUNCTION app.seen RENAME TO looked",
  "DROP SEQUENCE app.counter",
  "ALTER SEQUENCE app.counter RENAME TO tally",
  "ALTER SEQUENCE app.counter OWNED BY app.base.id",
  "ALTER TABLE app.events DROP COLUMN n",
  "ALTER TABLE app.events RENAME COLUMN n TO m",
  "ALTER TABLE app.events ALTER COLUMN n TYPE TEXT",
  "DROP TABLE app.events",
  "DROP TOPIC app.letters",
  "DROP NAMESPACE app",
  "DROP NAMESPACE app CASCADE",
  "DESCRIBE app.child",
  "SHOW TABLES",
  "SHOW POLICIES",
  "SELECT * FROM information_schema.referential_constraints",
  "SELECT * FROM information_schema.table_constraints",
  "SELECT * FROM information_schema.key_column_usage",
  "SELECT * FROM information_schema.constraint_column_usage",
  "SELECT * FROM information_schema.tables",
  "SELECT * FROM information_schema.columns",
  "EXPLAIN INSERT INTO app.child VALUES (2, 8)",
  "EXPLAIN DELETE FROM app.parent WHERE id = 1",
])("a token for one namespace hears nothing of another: %s", async (sql) => {
  const { body } = await server.sql(`BEGIN; ${sql}; ROLLBACK`, { token });
  const whole = await server.sql(sql, { token });
  const said = `${JSON.stringify(body)} ${JSON.stringify(whole.body)}`;
  expect(said).not.toContain("hidden");
  expect(whole.body.error?.code).not.toBe("INTERNAL_ERROR");
});

test("a function of another namespace is refused as no function is", async () => {
  for (const form of ["SELECT $f('sad')", "DROP FUNCTION $f", "DESCRIBE FUNCTION $f"]) {
    const said = await Promise.all(
      ["other.hidden_function", "other.hidden_nothing"].map(async (name) => {
        const { body } = await server.sql(form.replace("$f", name), { token });
        return JSON.stringify(body.error).replaceAll(name, "");
      }),
    );
    expect(said[0]).toBe(said[1]);
  }
});

test("a foreign key to a table of another namespace is refused as one to no table is", async () => {
  for (const form of [
    "ALTER TABLE app.child ADD FOREIGN KEY (id) REFERENCES $t",
    "CREATE TABLE app.more (id INT PRIMARY KEY REFERENCES $t)",
  ]) {
    const said = await Promise.all(
      ["other.hidden_parent", "other.hidden_nothing"].map(async (name) => {
        const { body } = await server.sql(form.replace("$t", name), { token });
        return JSON.stringify(body.error).replaceAll(name, "");
      }),
    );
    expect(said[0]).toBe(said[1]);
  }
});
