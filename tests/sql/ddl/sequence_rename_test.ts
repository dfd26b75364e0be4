/**
 * Tests ALTER SEQUENCE … RENAME TO: the DEFAULT of its column is updated, and the sequence goes on
 * counting.
 */
import { expect, test } from "bun:test";
import { TestEngine } from "../../support/sql_engine.ts";

test("a renamed sequence continues to count, for its column and for nextval", async () => {
  await using engine = await TestEngine.open();
  const failureText = async (sql: string): Promise<string> => {
    const { error } = await engine.ask(sql);
    return error === undefined ? "succeeded" : `${error.code}: ${error.message}`;
  };
  await engine.run(
    "CREATE NAMESPACE app; CREATE SEQUENCE app.free START WITH 10; CREATE TABLE app.t (id SERIAL PRIMARY KEY, n INT DEFAULT nextval('app.free') + 1, v INT);" +
      "INSERT INTO app.t (v) VALUES (1)",
  );
  const [answer] = await engine.run('ALTER SEQUENCE app.t_id_seq RENAME TO "Odd_name"');
  expect(answer?.message).toBe("Sequence app.t_id_seq renamed to Odd_name");
  await engine.run("ALTER SEQUENCE app.free RENAME TO bound; INSERT INTO app.t (v) VALUES (2)");
  await engine.restart();
  await engine.run("INSERT INTO app.t (v) VALUES (3)");
  const rows = await engine.rows("SELECT v, id, n FROM app.t ORDER BY v");
  expect(rows.map(([v]) => v)).toEqual([1, 2, 3]);
  const [first, second, third] = rows.map(([, id, n]) => [Number(id), Number(n)]);
  expect([first, second]).toEqual([
    [1, 11],
    [2, 12],
  ]);
  // A restart may leave gaps in the numbers.
  expect(third?.[0]).toBeGreaterThan(2);
  expect(third?.[1]).toBeGreaterThan(12);
  expect(await failureText("SELECT nextval('app.free')")).toStartWith("OBJECT_NOT_FOUND");
  expect(await engine.rows("SELECT nextval('app.bound') > 12")).toEqual([[true]]);

  expect(await failureText("ALTER SEQUENCE app.bound RENAME TO t")).toStartWith("ALREADY_EXISTS");
  expect(await failureText("ALTER SEQUENCE app.gone RENAME TO x")).toStartWith("OBJECT_NOT_FOUND");
  expect((await engine.run("ALTER SEQUENCE IF EXISTS app.gone RENAME TO x"))[0]?.message).toBe(
    "Sequence app.gone does not exist",
  );
  await engine.run("CREATE TABLE app.other (a INT DEFAULT nextval('app.bound'))");
  expect(await failureText("ALTER SEQUENCE app.bound RENAME TO b")).toBe(
    "UNSUPPORTED_FEATURE: Cannot rename sequence app.bound: the DEFAULTs of 2 tables use it, but only a sequence used by at most one table can be renamed",
  );
  await engine.run("DROP TABLE app.other");
  await engine.run("ALTER SEQUENCE app.bound RENAME TO b; CREATE SEQUENCE app.bound");
  expect(await engine.rows("SELECT nextval('app.bound')")).toEqual([[1]]);
});

test("ALTER TABLE … RENAME TO renames a sequence, a view or an index, as in PostgreSQL", async () => {
  await using engine = await TestEngine.open();
  await engine.run(
    `CREATE NAMESPACE app; CREATE TABLE app.rooms (id BIGSERIAL PRIMARY KEY, v INT);
     CREATE INDEX by_v ON app.rooms (v); CREATE VIEW app.all_rooms AS SELECT id FROM app.rooms;
     ALTER TABLE app.rooms RENAME TO channels;
     ALTER TABLE app.rooms_id_seq RENAME TO channels_id_seq;
     ALTER TABLE app.by_v RENAME TO channels_v;
     ALTER TABLE IF EXISTS app.all_rooms RENAME TO all_channels;
     INSERT INTO app.channels (v) VALUES (7)`,
  );
  expect(await engine.rows("SELECT nextval('app.channels_id_seq')")).toEqual([[2]]);
  expect(
    await engine.rows("SELECT index_name FROM system.indexes WHERE table_name = 'channels'"),
  ).toEqual([["rooms_pkey"], ["channels_v"]]);
  expect(
    await engine.rows("SELECT table_name FROM information_schema.views WHERE table_schema = 'app'"),
  ).toEqual([["all_channels"]]);
  expect(await engine.failure("ALTER TABLE app.gone RENAME TO x")).toStartWith("TABLE_NOT_FOUND");
  expect(await engine.failure("ALTER TABLE app.all_channels RENAME TO channels")).toStartWith(
    "ALREADY_EXISTS",
  );
});
