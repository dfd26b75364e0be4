/**
 * Tests what the cases shared with PostgreSQL do not cover in partitioned tables: restarts,
 * atomicity, rights, live queries, concurrent writers, and refused statements.
 */
import { afterEach, beforeEach, expect, test } from "bun:test";
import { testThoroughly } from "../../support/requirements.ts";
import { ResultFollower } from "../../support/result_follower.ts";
import { TestEngine } from "../../support/sql_engine.ts";

let engine: TestEngine;

beforeEach(async () => {
  engine = await TestEngine.open({ config: "[limits]\ntransaction_max_bytes = 1048576" });
  await engine.run(
    `CREATE NAMESPACE app;
     CREATE TABLE app.sales (id INT NOT NULL, at DATE NOT NULL, note TEXT, PRIMARY KEY (id, at)) PARTITION BY RANGE (at);
     CREATE TABLE app.jan PARTITION OF app.sales FOR VALUES FROM ('2022-01-01') TO ('2022-02-01');
     CREATE TABLE app.feb PARTITION OF app.sales FOR VALUES FROM ('2022-02-01') TO ('2022-03-01');
     INSERT INTO app.sales VALUES (1, '2022-01-05', 'a'), (2, '2022-02-05', 'b'), (3, '2022-02-06', 'c')`,
  );
});
afterEach(() => engine[Symbol.asyncDispose]());

const ids = async (relation: string): Promise<readonly unknown[]> =>
  (await engine.rows(`SELECT id FROM app.${relation} ORDER BY id`)).map(([id]) => id);

test("a restart keeps partitions, their bounds and what they accept", async () => {
  await engine.run(
    `CREATE TABLE app.rest PARTITION OF app.sales DEFAULT PARTITION BY LIST (id);
     CREATE TABLE app.rest_x PARTITION OF app.rest FOR VALUES IN (9, 10);
     INSERT INTO app.sales VALUES (9, '2030-01-01', 'x'), (10, '2030-01-01', NULL);
     ALTER TABLE app.sales DETACH PARTITION app.feb;
     DROP TABLE app.jan`,
  );
  for (const restarts of [false, true]) {
    if (restarts) await engine.restart();
    expect(await ids("sales")).toEqual([9, 10]);
    expect(await ids("rest_x")).toEqual([9, 10]);
    expect(await ids("feb")).toEqual([2, 3]);
    expect(await engine.failure("INSERT INTO app.sales VALUES (1, '2022-01-05', 'y')")).toStartWith(
      "CHECK_VIOLATION",
    );
    expect(await engine.failure("SELECT 1 FROM app.jan")).toStartWith("TABLE_NOT_FOUND");
  }
});

test("a row finds its partition, and errors name the reason", async () => {
  const { error: none } = await engine.ask("INSERT INTO app.sales VALUES (4, '2023-01-01', '')");
  expect(none?.message).toBe(
    "Cannot write a row to app.sales: the row fits in none of its partitions, because of the " +
      'values of column "at"',
  );
  expect(none?.hint).toContain("PARTITION OF");
  const { error: outside } = await engine.ask("INSERT INTO app.jan VALUES (4, '2022-02-01', '')");
  expect(outside?.message).toBe(
    "Cannot write a row to partition app.jan: its values are outside the bounds of the partition",
  );
  await engine.run("UPDATE app.sales SET at = at + 31 WHERE id = 1");
  expect(await ids("jan")).toEqual([]);
  expect(await ids("feb")).toEqual([1, 2, 3]);
});

test("ATTACH and DETACH are undone with their transaction", async () => {
  await engine.run(
    "BEGIN; ALTER TABLE app.sales DETACH PARTITION app.feb; DELETE FROM app.feb; DROP TABLE app.jan; ROLLBACK",
  );
  expect(await ids("sales")).toEqual([1, 2, 3]);
  expect(await ids("jan")).toEqual([1]);
  await engine.run("ALTER TABLE app.sales DETACH PARTITION app.feb");
  await engine.run("INSERT INTO app.feb VALUES (7, '2021-01-01', 'too old')");
  const attach =
    "ALTER TABLE app.sales ATTACH PARTITION app.feb FOR VALUES FROM ('2022-02-01') TO ('2022-03-01')";
  expect(await engine.failure(attach)).toStartWith("CHECK_VIOLATION");
  expect(await ids("feb")).toEqual([2, 3, 7]);
  expect(await ids("sales")).toEqual([1]);
  await engine.run("DELETE FROM app.feb WHERE id = 7");
  await engine.run(attach);
  expect(await ids("sales")).toEqual([1, 2, 3]);
});

test("a failed statement of a transaction leaves the partitions as they were", async () => {
  const sql =
    "BEGIN; CREATE TABLE app.mar PARTITION OF app.sales FOR VALUES FROM ('2022-03-01') TO ('2022-04-01');" +
    "INSERT INTO app.sales VALUES (5, '2022-03-01', ''); INSERT INTO app.sales VALUES (5, '2022-03-01', ''); COMMIT";
  expect(await engine.failure(sql)).toStartWith("DUPLICATE_KEY");
  expect(await engine.failure("SELECT 1 FROM app.mar")).toStartWith("TABLE_NOT_FOUND");
  expect(await engine.failure("INSERT INTO app.sales VALUES (5, '2022-03-01', '')")).toStartWith(
    "CHECK_VIOLATION",
  );
});

testThoroughly("a partition with more rows than a transaction holds can be dropped", async () => {
  await engine.run(
    "INSERT INTO app.sales SELECT g, '2022-02-10', repeat('x', 200) FROM generate_series(10, 6000) g",
  );
  const { error } = await engine.ask("ALTER TABLE app.sales DETACH PARTITION app.feb");
  expect(error?.code).toBe("TRANSACTION_LIMIT");
  expect(await engine.rows("SELECT count(*) FROM app.feb")).toEqual([[5993]]);
  await engine.run("DROP TABLE app.feb");
  expect(await ids("sales")).toEqual([1]);
});

test("statements that write meanwhile do not leave rows behind", async () => {
  const write = async (from: number): Promise<string | undefined> => {
    for (let id = from; ; id += 1) {
      const { error } = await engine.ask(`INSERT INTO app.sales VALUES (${id}, '2022-02-20', 'w')`);
      if (error !== undefined) return error.code;
    }
  };
  const writers = [write(1000), write(100_000), write(200_000)];
  await engine.run("DROP TABLE app.feb");
  expect(new Set(await Promise.all(writers))).toEqual(new Set(["CHECK_VIOLATION"]));
  expect(await ids("sales")).toEqual([1]);
  expect(await engine.failure("INSERT INTO app.sales VALUES (4, '2022-02-20', '')")).toStartWith(
    "CHECK_VIOLATION",
  );
});

test("policies of the table hold for its partitions", async () => {
  await engine.run(
    `CREATE USER ann INTERNAL ROLE user;
     CREATE TABLE app.notes (who TEXT NOT NULL, n INT NOT NULL) PARTITION BY LIST (n) WITH (ACCESS_LEVEL = 'RESTRICTED');
     CREATE TABLE app.notes1 PARTITION OF app.notes FOR VALUES IN (1, 2);
     CREATE POLICY own ON app.notes FOR ALL USING (who = CURRENT_USER);
     INSERT INTO app.notes VALUES ('ann', 1), ('bob', 1)`,
  );
  engine.userId = "ann";
  expect(await engine.rows("SELECT who, n FROM app.notes1")).toEqual([["ann", 1]]);
  expect(await engine.failure("INSERT INTO app.notes1 VALUES ('bob', 2)")).toStartWith(
    "PERMISSION_DENIED",
  );
  await engine.run("UPDATE app.notes1 SET n = 2");
  expect(await engine.failure("DROP TABLE app.notes1")).toStartWith("PERMISSION_DENIED");
  expect(await engine.failure("SELECT id FROM app.jan")).toStartWith("TABLE_NOT_FOUND");
  engine.userId = "root";
  expect(await engine.rows("SELECT who, n FROM app.notes ORDER BY who")).toEqual([
    ["ann", 2],
    ["bob", 1],
  ]);
});

test("live queries follow a table and its partitions", async () => {
  const follow = (sql: string): ResultFollower => {
    const follower = new ResultFollower();
    const spec = { id: "q", sql, options: {} };
    const { live } = engine.database;
    follower.subscription = live.subscribe({ principal: engine.principal, spec, sink: follower });
    return follower;
  };
  const whole = follow("SELECT DISTINCT id, note FROM app.sales");
  const part = follow("SELECT id, note FROM app.feb");
  const shown = async (follower: ResultFollower): Promise<unknown[]> => {
    await follower.reaches(engine.database.store.visibleSeq);
    return follower.rows.map(({ id }) => Number(id)).toSorted((left, right) => left - right);
  };
  expect(await shown(whole)).toEqual([1, 2, 3]);
  expect(await shown(part)).toEqual([2, 3]);
  await engine.run(
    "UPDATE app.sales SET at = '2022-02-20' WHERE id = 1; DELETE FROM app.feb WHERE id = 2",
  );
  expect(await shown(whole)).toEqual([1, 3]);
  expect(await shown(part)).toEqual([1, 3]);
  await engine.run(
    "CREATE TABLE app.mar PARTITION OF app.sales FOR VALUES FROM ('2022-03-01') TO ('2022-04-01')",
  );
  await engine.run("INSERT INTO app.sales VALUES (8, '2022-03-03', '')");
  await engine.run("UPDATE app.sales SET at = '2022-03-04' WHERE id = 3");
  expect(await shown(whole)).toEqual([1, 3, 8]);
  expect(await shown(part)).toEqual([1]);
});

test("a read of one partition reads a part of the table only", async () => {
  const lines = (await engine.rows("EXPLAIN SELECT note FROM app.feb")).map(([line]) =>
    String(line),
  );
  expect(lines.join("\n")).toContain(`"at" >= '2022-02-01'`.replaceAll('"', ""));
});

test("COPY writes to a partition, as a dump does", async () => {
  await engine.run("COPY app.jan (id, at, note) FROM stdin;\n20\t2022-01-20\tcopied\n\\.\n");
  expect(await ids("jan")).toEqual([1, 20]);
  expect(
    await engine.failure("COPY app.jan (id, at, note) FROM stdin;\n21\t2022-05-20\tcopied\n\\.\n"),
  ).toStartWith("CHECK_VIOLATION");
});

test("views that read a partition read its table after DETACH", async () => {
  await engine.run("CREATE VIEW app.seen AS SELECT id FROM app.feb WHERE note <> 'c'");
  expect(await engine.failure("DROP TABLE app.feb")).toStartWith("DEPENDENT_OBJECTS");
  await engine.run("ALTER TABLE app.sales DETACH PARTITION app.feb");
  await engine.run("INSERT INTO app.feb VALUES (50, '1999-01-01', 'old')");
  expect(await ids("seen")).toEqual([2, 50]);
  expect(await engine.failure("DROP TABLE app.feb")).toStartWith("DEPENDENT_OBJECTS");
});

test("a detached table has the constraints and indexes of its former table", async () => {
  await engine.run(
    "CREATE INDEX of_note ON app.sales (note); ALTER TABLE app.sales ADD CHECK (id > 0)",
  );
  await engine.run("ALTER TABLE app.sales DETACH PARTITION app.feb");
  expect(await engine.failure("INSERT INTO app.feb VALUES (2, '2022-02-05', '')")).toStartWith(
    "DUPLICATE_KEY",
  );
  expect(await engine.failure("INSERT INTO app.feb VALUES (-2, '2022-02-05', '')")).toStartWith(
    "CHECK_VIOLATION",
  );
  const indexes = "SELECT index_name FROM system.indexes WHERE table_name = 'feb' ORDER BY 1";
  expect(await engine.rows(indexes)).toEqual([["feb_of_note"], ["feb_pkey"]]);
});

test("lists of tables show partitions as tables", async () => {
  const listed = await engine.rows(
    "SELECT table_name, table_type FROM information_schema.tables WHERE table_schema = 'app' ORDER BY 1",
  );
  expect(listed).toEqual([
    ["feb", "BASE TABLE"],
    ["jan", "BASE TABLE"],
    ["sales", "BASE TABLE"],
  ]);
  expect(await engine.rows("SELECT table_name FROM information_schema.views")).toEqual([]);
});

test("ATTACH computes no generated column anew", async () => {
  await engine.run(
    `CREATE TABLE app.twice (n INT, m INT GENERATED ALWAYS AS (n * 2) STORED) PARTITION BY LIST (n);
     CREATE TABLE app.plain (n INT, m INT) PARTITION BY LIST (n);
     CREATE TABLE app.thrice (n INT, m INT GENERATED ALWAYS AS (n * 3) STORED);
     CREATE TABLE app.given (n INT, m INT);
     INSERT INTO app.thrice (n) VALUES (1);
     INSERT INTO app.given VALUES (1, 7)`,
  );
  const attach = async (parent: string, table: string): Promise<string | undefined> => {
    const sql = `ALTER TABLE app.${parent} ATTACH PARTITION app.${table} FOR VALUES IN (1)`;
    return (await engine.ask(sql)).error?.message;
  };
  expect(await attach("twice", "thrice")).toContain(
    'expressions of the generated column "m" differ',
  );
  expect(await attach("twice", "given")).toContain('"m" is generated in only one of the tables');
  expect(await attach("plain", "thrice")).toContain('"m" is generated in only one of the tables');
  expect(await engine.rows("SELECT n, m FROM app.thrice")).toEqual([[1, 3]]);
});

test("COLLATE of a key that changes no bounds is accepted", async () => {
  await engine.run(
    `CREATE TABLE app.r (c TEXT COLLATE "en-x-icu") PARTITION BY RANGE (c COLLATE "en-x-icu");
     CREATE TABLE app.r1 PARTITION OF app.r FOR VALUES FROM ('a') TO ('b');
     CREATE TABLE app.l (c TEXT COLLATE "en-x-icu") PARTITION BY LIST (c COLLATE "C");
     CREATE TABLE app.l1 PARTITION OF app.l FOR VALUES IN ('a');
     INSERT INTO app.r VALUES ('A');
     INSERT INTO app.l VALUES ('a')`,
  );
  expect(await engine.rows("SELECT c FROM app.r1")).toEqual([["A"]]);
  expect(await engine.rows("SELECT c FROM app.l1")).toEqual([["a"]]);
});

const REFUSED: readonly (readonly [sql: string, code: string, words: string])[] = [
  [
    "CREATE USER TABLE app.own (id INT PRIMARY KEY) PARTITION BY HASH (id)",
    "UNSUPPORTED_FEATURE",
    "only SHARED tables",
  ],
  [
    "CREATE STREAM TABLE app.own (id INT) PARTITION BY HASH (id) WITH (TTL_SECONDS = 5)",
    "UNSUPPORTED_FEATURE",
    "only SHARED tables",
  ],
  ["ALTER TABLE app.jan ADD COLUMN x INT", "UNSUPPORTED_FEATURE", "it is a partition"],
  ["CREATE UNIQUE INDEX ON app.sales (id)", "INVALID_DEFINITION", "partition key at"],
  ["ALTER TABLE app.sales ADD UNIQUE (id)", "INVALID_DEFINITION", "partition key at"],
  ["DROP VIEW app.jan", "INVALID_OPERATION", "it is a table"],
  ["CREATE OR REPLACE VIEW app.jan AS SELECT 1", "ALREADY_EXISTS", "already exists"],
  [
    "ALTER TABLE app.sales ATTACH PARTITION app.jan DEFAULT",
    "INVALID_OPERATION",
    "it is already a partition",
  ],
  [
    "CREATE TABLE app.x PARTITION OF app.sales (note REFERENCES app.sales) DEFAULT",
    "UNSUPPORTED_FEATURE",
    "a single partition",
  ],
  [
    "CREATE TABLE app.f (id INT, f FILE) PARTITION BY LIST (f)",
    "INVALID_DEFINITION",
    "have no order",
  ],
  [
    "CREATE TABLE app.f (id INT, at TIMESTAMP) PARTITION BY RANGE ((at + random() * INTERVAL '1 s'))",
    "INVALID_DEFINITION",
    "not immutable",
  ],
  [
    "CREATE TABLE app.f (c TEXT COLLATE app.loose) PARTITION BY HASH (c)",
    "UNSUPPORTED_FEATURE",
    "nondeterministic",
  ],
  [
    "CREATE TABLE app.f (c TEXT COLLATE app.loose) PARTITION BY LIST (lower(c))",
    "UNSUPPORTED_FEATURE",
    "nondeterministic",
  ],
  [
    "CREATE TABLE app.f (c TEXT) PARTITION BY LIST (c COLLATE app.loose)",
    "UNSUPPORTED_FEATURE",
    "a collation that differs from the column's collation",
  ],
  [
    'CREATE TABLE app.f (c TEXT COLLATE "en-x-icu") PARTITION BY RANGE (c COLLATE "C")',
    "UNSUPPORTED_FEATURE",
    "a collation that differs from the column's collation",
  ],
];

test.each(REFUSED)("%s is refused", async (sql, code, words) => {
  await engine.run(
    "CREATE COLLATION app.loose (provider = icu, locale = 'und-u-ks-level2', deterministic = false)",
  );
  const { error } = await engine.ask(sql);
  expect(error?.code ?? "", error?.message).toBe(code);
  expect(error?.message).toContain(words);
});
