/**
 * Tests what the cases shared with PostgreSQL do not cover in indexes and constraints of single
 * partitions: restarts, transactions, rights, live queries, the lists of the system, and the
 * statements that are refused.
 */
import { afterEach, beforeEach, expect, test } from "bun:test";
import { ResultFollower } from "../../support/result_follower.ts";
import { TestEngine } from "../../support/sql_engine.ts";

let engine: TestEngine;

beforeEach(async () => {
  engine = await TestEngine.open();
  await engine.run(
    `CREATE NAMESPACE app; CREATE NAMESPACE old;
     CREATE TABLE app.m (id INT NOT NULL, at DATE NOT NULL, v INT, note TEXT) PARTITION BY RANGE (at);
     CREATE TABLE old.m1 PARTITION OF app.m FOR VALUES FROM ('2025-01-01') TO ('2026-01-01');
     CREATE TABLE app.m2 PARTITION OF app.m FOR VALUES FROM ('2026-01-01') TO ('2027-01-01');
     CREATE TABLE app.rest PARTITION OF app.m DEFAULT;
     INSERT INTO app.m VALUES (1, '2025-02-01', 1, 'a'), (2, '2026-02-01', 2, 'a'), (3, '2030-01-01', 3, 'c')`,
  );
});
afterEach(() => engine[Symbol.asyncDispose]());

const indexes = (): Promise<readonly unknown[]> =>
  engine.rows(
    `SELECT namespace_id || '.' || table_name, index_name, is_primary, definition, index_comment
     FROM system.indexes WHERE namespace_id IN ('app', 'old') ORDER BY 1, 2`,
  );

const KEYS = `
  ALTER TABLE ONLY old.m1 ADD CONSTRAINT m1_pkey PRIMARY KEY (id, at);
  ALTER TABLE ONLY app.m ADD CONSTRAINT m_pkey PRIMARY KEY (id, at);
  ALTER TABLE ONLY app.m2 ADD CONSTRAINT m2_pkey PRIMARY KEY (id, at);
  ALTER INDEX app.m_pkey ATTACH PARTITION old.m1_pkey;
  ALTER INDEX app.m_pkey ATTACH PARTITION app.m2_pkey`;

test("a restart keeps the indexes and constraints of partitions", async () => {
  await engine.run(
    `${KEYS};
     CREATE UNIQUE INDEX m1_note ON old.m1 (note) WHERE v > 0;
     COMMENT ON INDEX old.m1_note IS 'once';
     ALTER TABLE app.m2 ADD CONSTRAINT small CHECK (v < 9);
     ALTER TABLE app.m2 ALTER note SET NOT NULL`,
  );
  for (const restarts of [false, true]) {
    if (restarts) await engine.restart();
    expect(await indexes()).toEqual([
      ["app.m", "m_pkey", true, "CREATE UNIQUE INDEX m_pkey ON app.m (id, at)", null],
      ["app.m2", "m2_pkey", true, "CREATE UNIQUE INDEX m2_pkey ON app.m2 (id, at)", null],
      [
        "old.m1",
        "m1_note",
        false,
        "CREATE UNIQUE INDEX m1_note ON old.m1 (note) WHERE v > 0",
        "once",
      ],
      ["old.m1", "m1_pkey", true, "CREATE UNIQUE INDEX m1_pkey ON old.m1 (id, at)", null],
    ]);
    const failures = [
      ["(4, '2025-03-01', 1, 'a')", "DUPLICATE_KEY"],
      ["(4, '2026-03-01', 9, 'x')", "CHECK_VIOLATION"],
      ["(4, '2026-03-01', 1, NULL)", "NOT_NULL_VIOLATION"],
    ] as const;
    for (const [row, code] of failures) {
      expect(await engine.failure(`INSERT INTO app.m VALUES ${row}`)).toStartWith(code);
    }
  }
});

test("the information schema lists the constraints of each partition", async () => {
  await engine.run(`${KEYS}; ALTER TABLE app.m2 ADD CONSTRAINT small CHECK (v < 9)`);
  const listed = await engine.rows(
    `SELECT table_schema || '.' || table_name, constraint_name, constraint_type FROM information_schema.table_constraints
     WHERE table_schema IN ('app', 'old') ORDER BY 1, 2`,
  );
  expect(listed).toEqual([
    ["app.m", "m_pkey", "PRIMARY KEY"],
    ["app.m2", "m2_pkey", "PRIMARY KEY"],
    ["app.m2", "small", "CHECK"],
    ["old.m1", "m1_pkey", "PRIMARY KEY"],
  ]);
  const columns = await engine.rows(
    `SELECT column_name FROM information_schema.key_column_usage
     WHERE table_name = 'm1' ORDER BY ordinal_position`,
  );
  expect(columns).toEqual([["id"], ["at"]]);
});

test("a transaction undoes indexes and constraints of partitions", async () => {
  await engine.run(`BEGIN; ${KEYS}; ALTER TABLE old.m1 ADD CHECK (v < 9); ROLLBACK`);
  expect(await indexes()).toEqual([]);
  await engine.run("INSERT INTO app.m VALUES (1, '2025-02-01', 20, 'b')");
  expect(await engine.failure(KEYS)).toStartWith("DUPLICATE_KEY");
  await engine.run("DELETE FROM app.m WHERE v = 20");
  await engine.run(`BEGIN; ${KEYS}; INSERT INTO app.m VALUES (5, '2025-03-01', 1, ''); COMMIT`);
  expect(await engine.failure("INSERT INTO app.m VALUES (5, '2025-03-01', 1, '')")).toStartWith(
    "DUPLICATE_KEY",
  );
});

test("dropping a partition drops its indexes and checks", async () => {
  await engine.run(
    `CREATE UNIQUE INDEX m1_note ON old.m1 (note); CREATE INDEX m2_v ON app.m2 (v);
     ALTER TABLE app.m2 ADD CHECK (v < 9);
     DROP TABLE old.m1; DROP TABLE app.m2;
     INSERT INTO app.m VALUES (6, '2025-03-01', 90, 'a'), (7, '2026-03-01', 90, 'a'), (8, '2025-03-01', 1, 'a')`,
  );
  expect(await indexes()).toEqual([]);
});

test("a detached table keeps the names of its indexes and its constraints", async () => {
  await engine.run(
    `${KEYS}; CREATE INDEX m_v ON app.m (v); CREATE UNIQUE INDEX m1_note ON old.m1 (note);
     ALTER TABLE old.m1 ADD CONSTRAINT small CHECK (v < 9); ALTER TABLE old.m1 ALTER v SET NOT NULL;
     ALTER TABLE app.m DETACH PARTITION old.m1`,
  );
  for (const restarts of [false, true]) {
    if (restarts) await engine.restart();
    const found = await engine.rows(
      "SELECT index_name, is_primary, definition FROM system.indexes WHERE table_name = 'm1' ORDER BY 1",
    );
    expect(found).toEqual([
      ["m1_note", false, "CREATE UNIQUE INDEX m1_note ON old.m1 (note)"],
      ["m1_pkey", true, "CREATE UNIQUE INDEX m1_pkey ON old.m1 (id, at)"],
      ["m1_v", false, "CREATE INDEX m1_v ON old.m1 (v)"],
    ]);
    const failures = [
      ["(1, '2025-02-01', 1, 'x')", "DUPLICATE_KEY"],
      ["(4, '2025-03-01', 1, 'a')", "DUPLICATE_KEY"],
      ["(4, '2025-03-01', 9, 'x')", "CHECK_VIOLATION"],
      ["(4, '2025-03-01', NULL, 'x')", "NOT_NULL_VIOLATION"],
    ] as const;
    for (const [row, code] of failures) {
      expect(await engine.failure(`INSERT INTO old.m1 VALUES ${row}`)).toStartWith(code);
    }
  }
});

test("an attached table brings its partitions, and keeps them after a restart", async () => {
  await engine.run(
    `CREATE TABLE app.m3 (note TEXT, v INT NOT NULL, id INT NOT NULL, at DATE NOT NULL) PARTITION BY LIST (id);
     CREATE TABLE app.m3a PARTITION OF app.m3 FOR VALUES IN (1, 2);
     ALTER TABLE app.m3a ADD CONSTRAINT small CHECK (v < 9);
     ALTER TABLE app.m3a ALTER note SET DEFAULT 'own';
     CREATE INDEX m3_v ON app.m3 (v);
     INSERT INTO app.m3 VALUES ('x', 8, 1, '2027-01-01');
     CREATE INDEX m_v ON app.m (v);
     ALTER TABLE app.m ATTACH PARTITION app.m3 FOR VALUES FROM ('2027-01-01') TO ('2028-01-01')`,
  );
  for (const restarts of [false, true]) {
    if (restarts) await engine.restart();
    const found = await engine.rows("SELECT note, v, tableoid::regclass FROM app.m WHERE v = 8");
    expect(found).toEqual([["x", 8, "app.m3a"]]);
    const failures = [
      ["m VALUES (1, '2027-03-01', 9, 'a')", "CHECK_VIOLATION"],
      ["m3 VALUES ('a', NULL, 1, '2027-03-01')", "NOT_NULL_VIOLATION"],
      ["m VALUES (3, '2027-03-01', 1, 'a')", "CHECK_VIOLATION"],
    ] as const;
    for (const [row, code] of failures) {
      expect(await engine.failure(`INSERT INTO app.${row}`)).toStartWith(code);
    }
    expect(await engine.failure("DROP INDEX app.m3_v")).toStartWith("DEPENDENT_OBJECTS");
    const [made] = await engine.rows(
      "INSERT INTO app.m3a (v, id, at) VALUES (1, 2, '2027-05-05') RETURNING note",
    );
    expect(made).toEqual(["own"]);
  }
});

test("ATTACH is undone with its transaction, together with the parts of the table", async () => {
  await engine.run(
    `CREATE TABLE app.m3 (id INT NOT NULL, at DATE NOT NULL, v INT CHECK (v < 9), note TEXT UNIQUE);
     INSERT INTO app.m3 VALUES (1, '2027-01-01', 8, 'x');
     BEGIN;
     ALTER TABLE app.m ATTACH PARTITION app.m3 FOR VALUES FROM ('2027-01-01') TO ('2028-01-01');
     ROLLBACK;
     INSERT INTO app.m VALUES (2, '2027-01-01', 10, 'x')`,
  );
  expect(await engine.failure("INSERT INTO app.m3 VALUES (2, '2027-01-01', 8, 'x')")).toStartWith(
    "DUPLICATE_KEY",
  );
});

test("dropping a column drops the indexes of partitions that contain it", async () => {
  await engine.run("CREATE INDEX m1_v ON old.m1 (v); CREATE INDEX m1_id ON old.m1 (id)");
  await engine.run("ALTER TABLE app.m DROP COLUMN v");
  const found = await engine.rows(
    "SELECT index_name FROM system.indexes WHERE namespace_id IN ('app', 'old')",
  );
  expect(found).toEqual([["m1_id"]]);
});

test("indexes of several partitions share one index of the table", async () => {
  await engine.run(
    `CREATE INDEX m1_v ON old.m1 (v); CREATE INDEX m2_v ON app.m2 (v); CREATE INDEX rest_v ON app.rest (v)`,
  );
  expect(engine.database.catalog.table("app", "m")?.indexes).toHaveLength(1);
  await engine.run("DROP INDEX old.m1_v, app.m2_v");
  expect(engine.database.catalog.table("app", "m")?.indexes).toHaveLength(1);
  await engine.run("DROP INDEX app.rest_v");
  expect(engine.database.catalog.table("app", "m")?.indexes).toEqual([]);
});

test("the rights to an index of a partition are those to its table", async () => {
  await engine.run(
    `CREATE USER ann INTERNAL ROLE user;
     ALTER TABLE app.m SET (ACCESS_LEVEL = 'PUBLIC');
     CREATE INDEX m1_v ON old.m1 (v)`,
  );
  engine.userId = "ann";
  for (const sql of [
    "CREATE INDEX ON old.m1 (id)",
    "DROP INDEX old.m1_v",
    "ALTER INDEX old.m1_v RENAME TO x",
    "COMMENT ON INDEX old.m1_v IS 'x'",
    "ALTER TABLE old.m1 ADD CHECK (v > 0)",
  ]) {
    expect([sql, (await engine.ask(sql)).error?.code]).toEqual([sql, "PERMISSION_DENIED"]);
  }
});

test("a live query of a partition continues after a new index", async () => {
  const follower = new ResultFollower();
  const spec = { id: "q", sql: "SELECT id, note FROM old.m1", options: {} };
  const { live } = engine.database;
  follower.subscription = live.subscribe({ principal: engine.principal, spec, sink: follower });
  await follower.reaches(engine.database.store.visibleSeq);
  expect(follower.rows).toHaveLength(1);
  await engine.run(
    "CREATE UNIQUE INDEX m1_note ON old.m1 (note); INSERT INTO app.m VALUES (9, '2025-05-05', 1, 'n')",
  );
  await follower.reaches(engine.database.store.visibleSeq);
  expect(follower.rows).toHaveLength(2);
});

const REFUSED: readonly (readonly [sql: string, code: string, words: string])[] = [
  ["CREATE UNIQUE INDEX ON app.rest (note)", "UNSUPPORTED_FEATURE", "DEFAULT partition"],
  ["ALTER TABLE app.m2 RENAME COLUMN v TO w", "UNSUPPORTED_FEATURE", "it is a partition"],
  [
    "ALTER TABLE app.m2 ADD FOREIGN KEY (v) REFERENCES app.m (v)",
    "UNSUPPORTED_FEATURE",
    "it is a partition",
  ],
  [
    "CREATE INDEX m_v ON app.m (v); ALTER INDEX app.m_v ATTACH PARTITION app.m_v",
    "INVALID_OPERATION",
    "not an index of a partition of the same table",
  ],
  [
    "ALTER TABLE app.m2 ADD CHECK (v > 0); ALTER TABLE app.m ALTER v TYPE TEXT",
    "DEPENDENT_OBJECTS",
    'constraint "m2_v_check" of a single partition',
  ],
];

test.each(REFUSED)("%s is refused", async (sql, code, words) => {
  const { error } = await engine.ask(`USE app; ${sql}`);
  expect(error?.code ?? "", error?.message).toBe(code);
  expect(error?.message).toContain(words);
});

test("a partition cannot have another primary key than its table", async () => {
  await engine.run(
    `CREATE TABLE app.keyed (a INT, b INT, PRIMARY KEY (a, b)) PARTITION BY RANGE (a);
     CREATE TABLE app.k1 PARTITION OF app.keyed FOR VALUES FROM (0) TO (10);
     CREATE TABLE app.apart (a INT PRIMARY KEY, b INT NOT NULL)`,
  );
  const refusal = async (sql: string): Promise<string | undefined> =>
    (await engine.ask(sql)).error?.message;
  const refused = "Cannot add a primary key to app.";
  const failures = [
    [
      "CREATE TABLE app.k2 PARTITION OF app.keyed (b PRIMARY KEY) FOR VALUES FROM (10) TO (20)",
      "k2",
    ],
    ["ALTER TABLE app.k1 ADD PRIMARY KEY (a)", "k1"],
    ["ALTER TABLE app.keyed ATTACH PARTITION app.apart FOR VALUES FROM (20) TO (30)", "apart"],
  ] as const;
  for (const [sql, name] of failures) {
    expect(await refusal(sql)).toBe(`${refused}${name}: the partition already has one`);
  }
  // A dump defines the key of the table again for each of its partitions.
  await engine.run("ALTER TABLE app.k1 ADD CONSTRAINT k1_pkey PRIMARY KEY (a, b)");
  expect(await refusal("ALTER TABLE app.k1 ADD PRIMARY KEY (a, b)")).toBe(
    `${refused}k1: the partition already has one`,
  );
});
