/**
 * Tests ALTER TABLE on existing columns and constraints: with rows in memory, in segments and
 * after a restart, with other owners' rows, and with subscriptions that continue.
 */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { ManualClock } from "../../support/manual_clock.ts";
import { TestEngine } from "../../support/sql_engine.ts";

let engine: TestEngine;
let count = 0;

beforeAll(async () => {
  engine = await TestEngine.open();
  await engine.run(
    "CREATE NAMESPACE app;" +
      "CREATE USER ann INTERNAL ROLE user;" +
      "CREATE USER ben INTERNAL ROLE user",
  );
});
afterAll(() => engine[Symbol.asyncDispose]());

const WHERE = ["in memory", "in a segment", "after a restart"] as const;

async function filled(where: string, columns: string, rows: string): Promise<string> {
  count += 1;
  const table = `app.t${count}`;
  await engine.run(`CREATE TABLE ${table} (${columns}); INSERT INTO ${table} VALUES ${rows}`);
  if (where === "in a segment") await engine.run(`STORAGE FLUSH TABLE ${table}`);
  return table;
}

/**
 * Alters a table. If `where` names a restart, restarts the database afterwards, which replays the
 * rows from the log.
 */
async function alter(where: string, sql: string): Promise<void> {
  await engine.run(sql);
  if (where === "after a restart") await engine.restart();
}

describe.each(WHERE)("altered rows are read correctly %s", (where) => {
  test("a widened integer accepts larger values, even in keys", async () => {
    const table = await filled(where, "id SMALLINT PRIMARY KEY, v INT", "(1, 10), (2, NULL)");
    await alter(where, `ALTER TABLE ${table} ALTER v TYPE BIGINT, MODIFY COLUMN id INT`);
    await engine.run(`INSERT INTO ${table} VALUES (100000, 9007199254740993)`);
    await engine.run(`UPDATE ${table} SET v = 5000000000 WHERE id = 1`);
    expect(await engine.rows(`SELECT id, v FROM ${table} ORDER BY id`)).toEqual([
      [1, 5000000000],
      [2, null],
      [100000, "9007199254740993"],
    ]);
    expect(await engine.failure(`INSERT INTO ${table} VALUES (2, 1)`)).toBe("DUPLICATE_KEY@1");
    expect(await engine.rows(`SELECT sum(v) FROM ${table} WHERE v < 6000000000`)).toEqual([
      ["5000000000"],
    ]);
  });

  test("a DECIMAL gets more digits, and its old values are read, compared and summed as before", async () => {
    const columns = "id INT PRIMARY KEY, m DECIMAL(5,1) DEFAULT 0.5 CHECK (m >= 0)";
    const table = await filled(where, columns, "(1, 12.3), (2, 0)");
    await alter(where, `ALTER TABLE ${table} ALTER COLUMN m SET DATA TYPE DECIMAL(9,3)`);
    await engine.run(
      `INSERT INTO ${table} (id) VALUES (3); INSERT INTO ${table} VALUES (4, 1.125)`,
    );
    expect(await engine.rows(`SELECT m FROM ${table} ORDER BY m`)).toEqual([
      ["0.000"],
      ["0.500"],
      ["1.125"],
      ["12.300"],
    ]);
    expect(await engine.rows(`SELECT id FROM ${table} WHERE m = 12.3`)).toEqual([[1]]);
    expect(await engine.rows(`SELECT sum(m) FROM ${table} WHERE m > 12`)).toEqual([["12.300"]]);
  });

  test("VARCHAR becomes longer or TEXT, and FLOAT becomes DOUBLE", async () => {
    const table = await filled(
      where,
      "id VARCHAR(3) PRIMARY KEY, f FLOAT, v VARCHAR(2)",
      "('a', 0.1, 'x')",
    );
    await alter(where, `ALTER TABLE ${table} ALTER id TYPE VARCHAR(8), ALTER v TYPE TEXT`);
    await alter(where, `ALTER TABLE ${table} ALTER f TYPE DOUBLE`);
    await engine.run(`INSERT INTO ${table} VALUES ('longer', 0.1, 'much longer')`);
    expect(await engine.rows(`SELECT id, f, v FROM ${table} ORDER BY id`)).toEqual([
      ["a", 0.10000000149011612, "x"],
      ["longer", 0.1, "much longer"],
    ]);
    expect(await engine.failure(`INSERT INTO ${table} VALUES ('a')`)).toBe("DUPLICATE_KEY@1");
  });

  test("JSON becomes JSONB, and JSON again", async () => {
    const table = await filled(
      where,
      "id INT PRIMARY KEY, j JSON",
      `(1, '{"b": 1,  "a":2, "b":3}'), (2, NULL)`,
    );
    await alter(where, `ALTER TABLE ${table} ALTER j TYPE JSONB`);
    await engine.run(`INSERT INTO ${table} VALUES (3, '{"a":2,"b":3}')`);
    const asJsonb = [
      [1, '{"a": 2, "b": 3}'],
      [2, null],
      [3, '{"a": 2, "b": 3}'],
    ];
    expect(await engine.rows(`SELECT id, j FROM ${table} ORDER BY id`)).toEqual(asJsonb);
    expect(await engine.rows(`SELECT count(*) FROM ${table} GROUP BY j ORDER BY 1`)).toEqual([
      [1],
      [2],
    ]);
    await alter(where, `ALTER TABLE ${table} ALTER j TYPE JSON`);
    await engine.run(`INSERT INTO ${table} VALUES (4, '[1,2]')`);
    // A cast to JSON returns the stored text of a value, so the document is unchanged.
    const documents = [...asJsonb, [4, "[1, 2]"]];
    const cast = `SELECT id, j::jsonb FROM ${table} ORDER BY id`;
    expect(await engine.rows(cast)).toEqual(documents);
    expect(await engine.rows(`SELECT j FROM ${table} WHERE id = 4`)).toEqual([["[1,2]"]]);
    await engine.run(`STORAGE FLUSH TABLE ${table}; STORAGE COMPACT TABLE ${table}`);
    expect(await engine.rows(cast)).toEqual(documents);
  });

  test("SET NOT NULL checks every row, and then applies to new ones", async () => {
    const table = await filled(where, "id INT PRIMARY KEY, v INT", "(1, 10), (2, NULL)");
    const sql = `ALTER TABLE ${table} ALTER COLUMN v SET NOT NULL`;
    expect(await engine.failure(sql)).toStartWith("NOT_NULL_VIOLATION@1:");
    await engine.run(`DELETE FROM ${table} WHERE id = 2`);
    await alter(where, sql);
    expect(await engine.failure(`INSERT INTO ${table} VALUES (3, NULL)`)).toBe(
      "NOT_NULL_VIOLATION@1",
    );
    await alter(where, `ALTER TABLE ${table} MODIFY v INT NULL`);
    await engine.run(`INSERT INTO ${table} VALUES (3, NULL)`);
  });

  test("ADD CHECK checks every row, including columns that the statement adds and widens", async () => {
    const table = await filled(where, "id INT PRIMARY KEY, v INT", "(1, 10), (2, NULL)");
    expect(await engine.failure(`ALTER TABLE ${table} ADD CHECK (v > 10)`)).toStartWith(
      "CHECK_VIOLATION@1:",
    );
    expect(
      await engine.failure(
        `ALTER TABLE ${table} ADD COLUMN n INT DEFAULT 3, ADD CHECK (n > id + 1)`,
      ),
    ).toStartWith("CHECK_VIOLATION@1:");
    await alter(
      where,
      `ALTER TABLE ${table} ALTER v TYPE BIGINT, ADD COLUMN n INT DEFAULT 4 CHECK (n > id), ` +
        `ADD CONSTRAINT big CHECK (v * 1000000000 > n), ADD CHECK (v < 99)`,
    );
    for (const values of ["(4, 100, 9)", "(4, -1, 9)", "(4, 1, 3)"]) {
      expect(await engine.failure(`INSERT INTO ${table} VALUES ${values}`)).toBe(
        "CHECK_VIOLATION@1",
      );
    }
    const name = table.slice("app.".length);
    expect(await engine.failure(`ALTER TABLE ${table} DROP CONSTRAINT ${name}_pkey`)).toStartWith(
      "INVALID_OPERATION@1:",
    );
    await alter(
      where,
      `ALTER TABLE ${table} DROP CONSTRAINT big, DROP CONSTRAINT ${name}_v_check,` +
        `DROP CONSTRAINT IF EXISTS nope, DROP CONSTRAINT ${name}_n_check`,
    );
    await engine.run(`INSERT INTO ${table} VALUES (4, 100, 3), (5, -1, 9)`);
  });

  test("SET DEFAULT and DROP DEFAULT apply only to later rows", async () => {
    const table = await filled(where, "id INT PRIMARY KEY, v INT DEFAULT 1, w TEXT", "(1)");
    await alter(
      where,
      `ALTER TABLE ${table} ALTER v SET DEFAULT 1 + 1, ALTER w SET DEFAULT CURRENT_USER`,
    );
    await engine.run(`INSERT INTO ${table} (id) VALUES (2)`);
    await alter(where, `ALTER TABLE ${table} ALTER v DROP DEFAULT, ALTER w DROP DEFAULT`);
    await engine.run(`INSERT INTO ${table} (id) VALUES (3)`);
    expect(await engine.rows(`SELECT id, v, w FROM ${table} ORDER BY id`)).toEqual([
      [1, 1, null],
      [2, 2, "root"],
      [3, null, null],
    ]);
  });
});

test("rows of every owner are checked", async () => {
  await engine.run("CREATE USER TABLE app.own (id INT PRIMARY KEY, v INT)");
  await engine.run("EXECUTE AS USER 'ann' (INSERT INTO app.own VALUES (1, 1))");
  await engine.run("EXECUTE AS USER 'ben' (INSERT INTO app.own VALUES (1, NULL))");
  const notNull = "ALTER TABLE app.own ALTER v SET NOT NULL";
  expect(await engine.failure(notNull)).toStartWith("NOT_NULL_VIOLATION");
  await engine.run("STORAGE FLUSH TABLE app.own");
  expect(await engine.failure(notNull)).toStartWith("NOT_NULL_VIOLATION");
  expect(await engine.failure("ALTER TABLE app.own ADD CHECK (v IS NOT NULL)")).toStartWith(
    "CHECK_VIOLATION",
  );
  await engine.run("EXECUTE AS USER 'ben' (UPDATE app.own SET v = 2)");
  await engine.run(notNull);
});

const REFUSED: readonly (readonly [string, string])[] = [
  ["ALTER nope SET NOT NULL", "COLUMN_NOT_FOUND"],
  ["ALTER _seq SET DEFAULT 1", "SYSTEM_COLUMN"],
  ["RENAME _deleted TO gone", "SYSTEM_COLUMN"],
  ["DROP COLUMN IF EXISTS _seq", "SYSTEM_COLUMN"],
  ["ALTER id DROP NOT NULL", "INVALID_OPERATION"],
  ["ALTER id TYPE SMALLINT", "UNSUPPORTED_FEATURE"],
  ["ALTER v TYPE TEXT", "INVALID_DEFINITION"],
  ["ALTER v TYPE SERIAL", "INVALID_DEFINITION"],
  ["ALTER w TYPE INT", "TYPE_MISMATCH"],
  ["ALTER k TYPE DECIMAL(9,3)", "UNSUPPORTED_FEATURE"],
  ["ALTER v TYPE nope", "UNSUPPORTED_TYPE"],
  ["ALTER v SET DEFAULT 'x'", "INVALID_DEFINITION"],
  ["ALTER v SET DEFAULT id", "INVALID_DEFINITION"],
  ["ALTER g SET DEFAULT 5", "INVALID_OPERATION"],
  ["ALTER g DROP DEFAULT", "INVALID_OPERATION"],
  ["ADD CONSTRAINT c CHECK (v > 1)", "ALREADY_EXISTS"],
  ["ADD CHECK (nope > 1)", "COLUMN_NOT_FOUND"],
  ["ADD CHECK (random() > v)", "INVALID_DEFINITION"],
  ["ADD CHECK (v IN (SELECT 1))", "INVALID_DEFINITION"],
  ["ADD PRIMARY KEY (v)", "INVALID_DEFINITION"],
  ["ADD UNIQUE (nope)", "COLUMN_NOT_FOUND"],
  ["DROP CONSTRAINT nope", "OBJECT_NOT_FOUND"],
  ["RENAME TO refusing", "ALREADY_EXISTS"],
  ["SET SCHEMA other", "UNSUPPORTED_FEATURE"],
  ["ALTER v SET NOT NULL, ALTER m TYPE DATE", "TYPE_MISMATCH"],
];

describe("ALTER TABLE statements with a fault are refused", () => {
  const COLUMNS =
    "id INT, k DECIMAL(5,2), v INT, w VARCHAR(5), m DECIMAL(5,2), " +
    "g BIGINT GENERATED ALWAYS AS IDENTITY, PRIMARY KEY (id, k), CONSTRAINT c CHECK (v > 0)";
  test.each(REFUSED)("ALTER TABLE … %s is refused with %s", async (action, code) => {
    await engine.run(`CREATE TABLE IF NOT EXISTS app.refusing (${COLUMNS})`);
    const before = await engine.rows("DESCRIBE app.refusing");
    expect(await engine.failure(`ALTER TABLE app.refusing ${action}`)).toStartWith(code);
    expect(await engine.rows("DESCRIBE app.refusing")).toEqual(before);
  });
});

test("an alteration that changes no value creates no version", async () => {
  await engine.run(
    "CREATE TABLE app.same (id INT PRIMARY KEY, v VARCHAR(3) NOT NULL DEFAULT 'x', n INT)",
  );
  const [entry] = await engine.run(
    "ALTER TABLE app.same ALTER v TYPE VARCHAR(3), ALTER v SET NOT NULL, ALTER v SET DEFAULT 'x', " +
      "ALTER n DROP DEFAULT, ALTER n DROP NOT NULL, DROP CONSTRAINT IF EXISTS nope",
  );
  expect(entry?.message).toBe("Table app.same not changed; it is still at schema version 1");
  const [changed] = await engine.run(
    "ALTER TABLE app.same ALTER n SET NOT NULL, ALTER n TYPE BIGINT",
  );
  expect(changed?.message).toBe("Table app.same altered to schema version 2");
});

test("a constraint that a later action removes is not enforced", async () => {
  await engine.run(
    "CREATE TABLE app.back (id INT PRIMARY KEY, v INT); INSERT INTO app.back VALUES (1)",
  );
  await engine.run("ALTER TABLE app.back ALTER v SET NOT NULL, DROP COLUMN v");
  await engine.run(
    "ALTER TABLE app.back ADD CONSTRAINT c CHECK (id > 5), DROP CONSTRAINT c, ADD COLUMN x INT",
  );
  expect(
    await engine.failure("ALTER TABLE app.back ADD COLUMN y INT, ALTER y SET NOT NULL"),
  ).toStartWith("NOT_NULL_VIOLATION");
});

describe("concurrent statements are correct during an alteration", () => {
  test("rows written during the check must also satisfy the constraint", async () => {
    const clock = new ManualClock();
    await using paused = await TestEngine.open({ clock });
    await paused.run("CREATE TABLE t (id INT PRIMARY KEY, v INT); INSERT INTO t VALUES (1, 1)");
    // Each time slice ends immediately, so the check of the rows yields between its steps.
    const monotonicMs = clock.monotonicMs.bind(clock);
    clock.monotonicMs = () => {
      clock.advance(10);
      return monotonicMs();
    };
    const failing = paused.failure("ALTER TABLE t ALTER v SET NOT NULL");
    await paused.run("INSERT INTO t VALUES (2, NULL)");
    expect(await failing).toStartWith("NOT_NULL_VIOLATION");
    await paused.run("DELETE FROM t WHERE id = 2");
    const altering = paused.run("ALTER TABLE t ALTER v SET NOT NULL");
    await paused.run("ALTER TABLE t ADD COLUMN w INT DEFAULT 5");
    await altering;
    expect(await paused.failure("INSERT INTO t VALUES (3, NULL)")).toBe("NOT_NULL_VIOLATION@1");
    expect(await paused.rows("SELECT id, v, w FROM t")).toEqual([[1, 1, 5]]);
    // A running query ends if the values of a column that it reads have changed.
    await paused.run("CREATE TABLE m (id INT PRIMARY KEY, m DECIMAL(5,1))");
    // The table has so many segments that the query is still running when the column is changed.
    for (let id = 1; id <= 20; id += 1) {
      await paused.run(`INSERT INTO m VALUES (${id}, ${id}); STORAGE FLUSH TABLE m`);
    }
    const reading = paused.ask("SELECT id, m FROM m");
    const untouched = paused.ask("SELECT id FROM m");
    await paused.run("ALTER TABLE m ALTER m TYPE DECIMAL(9,3)");
    expect((await reading).error?.code).toBe("SERIALIZATION_FAILURE");
    expect((await untouched).results[0]?.rowCount).toBe(20);
  });

  test("an alteration within a transaction checks the rows that the transaction has written", async () => {
    await engine.run("CREATE TABLE app.tx (id INT PRIMARY KEY, v INT)");
    const { error } = await engine.ask(
      "BEGIN; INSERT INTO app.tx VALUES (1); ALTER TABLE app.tx ALTER v SET NOT NULL; COMMIT",
    );
    expect(error?.code).toBe("NOT_NULL_VIOLATION");
  });
});

test("columns are added together with other changes, in the order of the text", async () => {
  const table = await filled("in memory", "id INT PRIMARY KEY, a INT", "(1, 2)");
  await engine.run(
    `ALTER TABLE ${table} ADD COLUMN b INT DEFAULT 3 CHECK (b > 0), ADD COLUMN IF NOT EXISTS B INT, ` +
      "RENAME COLUMN a TO c, ADD COLUMN a INT DEFAULT 4",
  );
  expect(await engine.rows(`SELECT id, c, b, a FROM ${table}`)).toEqual([[1, 2, 3, 4]]);
  const sql = `ALTER TABLE ${table} ADD COLUMN d INT, ADD COLUMN D INT`;
  expect(await engine.failure(sql)).toBe(`ALREADY_EXISTS@1:${sql.indexOf("D INT")}`);
  expect(await engine.failure(`INSERT INTO ${table} VALUES (2, 1, 0, 1)`)).toStartWith(
    "CHECK_VIOLATION",
  );
});
