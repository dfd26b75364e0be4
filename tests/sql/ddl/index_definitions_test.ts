/**
 * Tests CREATE INDEX on existing rows: while other statements write, across a restart, when it is
 * killed, and when duplicates make it fail.
 */
import { expect, test } from "bun:test";
import { systemClock } from "../../../src/base/clock.ts";
import type { Job } from "../../../src/storage/mod.ts";
import { testThoroughly } from "../../support/requirements.ts";
import { TestEngine } from "../../support/sql_engine.ts";
import { until } from "../../support/until.ts";

async function filled(): Promise<TestEngine> {
  const engine = await TestEngine.open({ clock: systemClock });
  await engine.run("CREATE NAMESPACE app");
  await engine.run("CREATE TABLE app.t (id INT PRIMARY KEY, v INT, w TEXT)");
  await engine.run(
    "INSERT INTO app.t SELECT g, g % 5000, 'w' || g FROM generate_series(1, 20000) g",
  );
  await engine.run("STORAGE FLUSH TABLE app.t");
  await engine.run(
    "INSERT INTO app.t SELECT g, g % 5000, 'w' || g FROM generate_series(20001, 30000) g",
  );
  return engine;
}

async function indexNames(engine: TestEngine): Promise<unknown[]> {
  const rows = await engine.rows(
    "SELECT index_name, state FROM system.indexes WHERE table_name = 't' AND NOT is_primary ORDER BY 1",
  );
  return rows.map((row) => row.join(" "));
}

/** Waits until the job that builds an index has started. */
async function running(engine: TestEngine): Promise<Job> {
  for (let looks = 0; looks < 1000; looks += 1) {
    const job = engine.database.jobs.all().find(({ kind }) => kind === "index");
    if (job !== undefined) return job;
    await new Promise((resolve) => setImmediate(resolve));
  }
  throw new Error("No job builds an index");
}

test("an index is built over segments and memory, and is used by reads of both", async () => {
  await using engine = await filled();
  await engine.run("CREATE UNIQUE INDEX ON app.t (w)");
  await engine.run("CREATE INDEX ON app.t (v, id)");
  expect(await indexNames(engine)).toEqual(["t_v_id_idx ready", "t_w_idx ready"]);
  const { store } = engine.database;
  const table = engine.database.catalog.tables().find(({ name }) => name === "t");
  const { indexes = [], tableId = 0 } = table ?? {};
  const [byText, byNumber] = indexes;
  const upTo = store.visibleSeq;
  const read = (indexId: number | undefined, key: (string | number)[]): unknown =>
    store.lookupIndex(tableId, { indexId: indexId ?? 0, owner: 0, key, upTo, columnIds: [1] });
  expect(read(byText?.indexId, ["w777"])).toEqual([[777]]);
  expect(read(byText?.indexId, ["w25000"])).toEqual([[25_000]]);
  expect(read(byNumber?.indexId, [9, 25_009])).toEqual([[25_009]]);
  const listed = store.segments().filter((each) => each.tableId === tableId);
  expect(listed.length).toBeGreaterThan(0);
  await engine.restart();
  const again = engine.database.store;
  const found = again.lookupIndex(tableId, {
    indexId: byText?.indexId ?? 0,
    owner: 0,
    key: ["w25000"],
    upTo: again.visibleSeq,
    columnIds: [1],
  });
  expect(found).toEqual([[25_000]]);
});

test("rows that are written during the build of an index are added to it, and checked", async () => {
  await using engine = await filled();
  const building = engine.ask("CREATE UNIQUE INDEX ON app.t (w)");
  const writes: Promise<unknown>[] = [];
  for (let id = 40_000; id < 40_200; id += 1) {
    writes.push(engine.ask(`INSERT INTO app.t VALUES (${id}, 0, 'new ${id}')`));
  }
  await Promise.all(writes);
  expect((await building).error).toBeUndefined();
  expect((await engine.ask("INSERT INTO app.t VALUES (50000, 0, 'new 40100')")).error?.code).toBe(
    "DUPLICATE_KEY",
  );
  expect((await engine.ask("INSERT INTO app.t VALUES (50000, 0, 'w5')")).error?.code).toBe(
    "DUPLICATE_KEY",
  );
});

test("a duplicate ends the build, and the error names the key", async () => {
  await using engine = await filled();
  const { error } = await engine.ask("CREATE UNIQUE INDEX byv ON app.t (v)");
  expect(error?.code).toBe("DUPLICATE_KEY");
  expect(error?.message).toBe(
    'Cannot create unique index "byv" on app.t: several rows have key (v) = (0)',
  );
  expect(await indexNames(engine)).toEqual([]);
  const rows = await engine.rows(
    "SELECT job_type, status FROM system.jobs WHERE job_type = 'index'",
  );
  expect(rows).toEqual([["index", "failed"]]);
  await engine.run("INSERT INTO app.t VALUES (50000, 0, 'free')");
});

test("a build that is interrupted by a stop is continued at the next start", async () => {
  await using engine = await filled();
  // A real server would end its requests before its database closes. This request outlives the
  // database, which no longer accepts audit entries.
  const asked = engine.ask("CREATE UNIQUE INDEX ON app.t (w)").catch(() => undefined);
  await running(engine);
  await engine.restart();
  await asked;
  await until(async () => (await indexNames(engine)).join() === "t_w_idx ready");
  expect((await engine.ask("INSERT INTO app.t VALUES (50000, 0, 'w5')")).error?.code).toBe(
    "DUPLICATE_KEY",
  );
});

test("after a restart, writers wait for the unique index that a transaction has committed", async () => {
  await using engine = await filled();
  await engine.run("CREATE TABLE app.child (id INT PRIMARY KEY, w TEXT)");
  // A real server would end its requests before its database closes. This request outlives the
  // database.
  const asked = engine
    .ask(
      `BEGIN; ALTER TABLE app.t ADD CONSTRAINT t_w UNIQUE (w);
       ALTER TABLE app.child ADD FOREIGN KEY (w) REFERENCES app.t (w); COMMIT`,
    )
    .catch(() => undefined);
  await until(async () => (await indexNames(engine)).join() === "t_w building");
  await engine.restart();
  expect(await indexNames(engine)).toEqual(["t_w building"]);
  const child = engine.ask("INSERT INTO app.child VALUES (1, 'w5')");
  const written = await engine.ask("INSERT INTO app.t VALUES (50000, 0, 'w5')");
  expect(written.error?.code).toBe("DUPLICATE_KEY");
  expect((await child).error).toBeUndefined();
  expect(await indexNames(engine)).toEqual(["t_w ready"]);
  await asked;
});

testThoroughly(
  "after a restart, writers do not wait for the build of CREATE UNIQUE INDEX",
  async () => {
    await using engine = await filled();
    const asked = engine.ask("CREATE UNIQUE INDEX ON app.t (w)").catch(() => undefined);
    await running(engine);
    await engine.restart();
    expect(await indexNames(engine)).toEqual(["t_w_idx building"]);
    const written = await engine.ask("INSERT INTO app.t VALUES (50000, 0, 'w5')");
    expect(written.error).toBeUndefined();
    await until(async () => (await indexNames(engine)).length === 0);
    await asked;
  },
);

test("a killed build leaves no index", async () => {
  await using engine = await filled();
  const asked = engine.ask("CREATE UNIQUE INDEX ON app.t (w)");
  const killed = await running(engine);
  killed.isCancelled = true;
  expect((await asked).error?.code).toBe("CANCELLED");
  expect(await indexNames(engine)).toEqual([]);
});

test("an index of a USER table covers the rows of each owner separately", async () => {
  await using engine = await TestEngine.open();
  await engine.run("CREATE NAMESPACE app");
  await engine.run("CREATE USER 'ann' INTERNAL ROLE user");
  await engine.run("CREATE USER 'bob' INTERNAL ROLE user");
  await engine.run("CREATE USER TABLE app.n (id INT PRIMARY KEY, title TEXT UNIQUE)");
  for (const user of ["ann", "bob"]) {
    engine.userId = user;
    await engine.run("INSERT INTO app.n VALUES (1, 'same')");
    const { error } = await engine.ask("INSERT INTO app.n VALUES (2, 'same')");
    expect(error?.message).toBe(
      `Cannot insert into app.n: key (title) = ('same') already exists in unique index "n_title_key"`,
    );
  }
});

test("a duplicate among the rows of another user is not shown", async () => {
  await using engine = await TestEngine.open();
  await engine.run("CREATE USER 'ann' INTERNAL ROLE user");
  await engine.run("CREATE USER 'own' INTERNAL ROLE user");
  await engine.run("CREATE NAMESPACE app; ALTER NAMESPACE app OWNER TO own");
  await engine.run("CREATE USER TABLE app.n (title TEXT)");
  engine.userId = "ann";
  await engine.run("INSERT INTO app.n VALUES ('secret'), ('secret')");
  engine.userId = "own";
  for (const [name, sql] of [
    ["n_pkey", "ALTER TABLE app.n ADD PRIMARY KEY (title)"],
    ["byt", "CREATE UNIQUE INDEX byt ON app.n (title)"],
  ]) {
    const { error } = await engine.ask(sql ?? "");
    expect(error?.code).toBe("DUPLICATE_KEY");
    expect(error?.message).toBe(
      `Cannot create unique index "${name}" on app.n: a user has several rows with the same key`,
    );
  }
});

test("an index of a hidden table is reported as missing", async () => {
  await using engine = await TestEngine.open();
  await engine.run("CREATE USER 'ann' INTERNAL ROLE user");
  await engine.run("CREATE USER 'srv' INTERNAL ROLE service");
  await engine.run("CREATE NAMESPACE app");
  await engine.run(
    "CREATE TABLE app.h (id INT PRIMARY KEY, v INT) WITH (ACCESS_LEVEL = 'DBA'); CREATE INDEX h_v ON app.h (v)",
  );
  for (const user of ["ann", "srv"]) {
    engine.userId = user;
    for (const sql of ["DROP INDEX app.X", "ALTER INDEX app.X RENAME TO y"]) {
      const answers = await Promise.all(
        ["h_v", "h_pkey", "none"].map(async (name) => {
          const { error } = await engine.ask(sql.replace("X", name));
          return [error?.code, error?.message.replace(name, "X")];
        }),
      );
      expect(answers[0]).toEqual(answers[2]);
      expect(answers[1]).toEqual(answers[2]);
    }
    const { error, results } = await engine.ask("DROP INDEX IF EXISTS app.h_v");
    expect(error?.code).toBe(user === "ann" ? "PERMISSION_DENIED" : undefined);
    expect(results.map(({ message }) => message)).toEqual(
      user === "ann" ? [] : ["Index app.h_v does not exist"],
    );
  }
  engine.userId = "root";
  await engine.run("DROP INDEX app.h_v");
});

test("a table has at most 64 indexes", async () => {
  await using engine = await TestEngine.open();
  await engine.run("CREATE NAMESPACE app");
  await engine.run("CREATE TABLE app.t (id INT PRIMARY KEY, v INT)");
  for (let count = 0; count < 64; count += 1) await engine.run("CREATE INDEX ON app.t (v)");
  const { error } = await engine.ask("CREATE INDEX ON app.t (v)");
  expect(error?.code).toBe("LIMIT_EXCEEDED");
});
