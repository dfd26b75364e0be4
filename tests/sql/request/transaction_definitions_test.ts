/**
 * Tests definitions in transactions: their visibility to the transaction itself and to others, and
 * the state after COMMIT, ROLLBACK and ROLLBACK TO.
 */
import { afterAll, beforeAll, beforeEach, describe, expect, spyOn, test } from "bun:test";
import { DatabaseError } from "../../../src/base/errors.ts";
import { CatalogDatabase } from "../../../src/catalog/mod.ts";
import { laterErrorCodeOf } from "../../support/error_codes.ts";
import { ManualClock } from "../../support/manual_clock.ts";
import { TestEngine } from "../../support/sql_engine.ts";

const clock = new ManualClock();
let engine: TestEngine;
let space = "";
let spaceCount = 0;

beforeAll(async () => {
  engine = await TestEngine.open({ clock });
});
afterAll(() => engine[Symbol.asyncDispose]());

beforeEach(async () => {
  spaceCount += 1;
  space = `s${spaceCount}`;
  await engine.run(`CREATE NAMESPACE ${space}`);
});

/** Runs statements in the current test's namespace. */
function run(sql: string): ReturnType<TestEngine["run"]> {
  return engine.run(`USE NAMESPACE ${space}; ${sql}`);
}

/** Runs statements, and returns the rows of the last statement. */
async function rows(sql: string): Promise<unknown> {
  const results = await run(sql);
  return results.at(-1)?.rows;
}

/** Runs statements, and returns the rows of the last statement that has any. */
async function rowsWithin(sql: string): Promise<unknown> {
  const results = await run(sql);
  return results.findLast((each) => each.rows !== undefined)?.rows;
}

async function failure(sql: string): Promise<{ code: string; message: string }> {
  const { error } = await engine.ask(`USE NAMESPACE ${space}; ${sql}`);
  if (error === undefined) throw new Error(`no error: ${sql}`);
  return { code: error.code, message: error.message };
}

describe("a transaction sees the definitions that it has changed", () => {
  test("a table that it creates holds its rows at once, and after the COMMIT", async () => {
    const within = await rowsWithin(
      `BEGIN; CREATE TABLE t (id SERIAL PRIMARY KEY, v TEXT NOT NULL DEFAULT 'x');
       INSERT INTO t (v) VALUES ('a'), ('b'); INSERT INTO t DEFAULT VALUES;
       UPDATE t SET v = upper(v) WHERE id < 3; DELETE FROM t WHERE id = 2;
       SELECT id, v FROM t ORDER BY id; COMMIT`,
    );
    expect(within).toEqual([
      [1, "A"],
      [3, "x"],
    ]);
    expect(await rows("SELECT id, v FROM t ORDER BY id")).toEqual(within);
    expect(await rows("INSERT INTO t (v) VALUES ('c') RETURNING id")).toEqual([[4]]);
  });

  test("columns that it adds to a table with rows have their defaults", async () => {
    await run("CREATE TABLE t (id INT PRIMARY KEY, v INT); INSERT INTO t VALUES (1, 10), (2, 20)");
    const within = await rowsWithin(
      `BEGIN; INSERT INTO t VALUES (3, 30); ALTER TABLE t ADD COLUMN w INT NOT NULL DEFAULT 7;
       UPDATE t SET w = 8 WHERE id = 2; INSERT INTO t VALUES (4, 40, 9);
       SELECT * FROM t ORDER BY id; COMMIT`,
    );
    const all = [
      [1, 10, 7],
      [2, 20, 8],
      [3, 30, 7],
      [4, 40, 9],
    ];
    expect((within as unknown[][]).map((row) => row.slice(0, 3))).toEqual(all);
    expect(await rows("SELECT id, v, w FROM t ORDER BY id")).toEqual(all);
  });

  test("columns that it drops, renames and converts are as it says", async () => {
    await run(
      "CREATE TABLE t (id INT PRIMARY KEY, a TEXT, b INT, c TEXT);" +
        "INSERT INTO t VALUES (1, 'a', 1, '5'), (2, 'b', 2, '6')",
    );
    const within = await rowsWithin(
      `BEGIN; ALTER TABLE t DROP COLUMN a; ALTER TABLE t RENAME COLUMN b TO bb;
       ALTER TABLE t ALTER COLUMN c TYPE INT USING c::int; ALTER TABLE t ALTER COLUMN bb TYPE BIGINT;
       INSERT INTO t (id, bb, c) VALUES (3, 3, 7);
       SELECT id, bb, c + 1 FROM t ORDER BY id; COMMIT`,
    );
    const all = [
      [1, 1, 6],
      [2, 2, 7],
      [3, 3, 8],
    ];
    expect(within).toEqual(all);
    expect(await rows("SELECT id, bb, c + 1 FROM t ORDER BY id")).toEqual(all);
    expect(await rows("UPDATE t SET c = 0 WHERE c = 5 RETURNING id")).toEqual([[1]]);
  });

  test("views, sequences, domains, types, policies and namespaces can be used at once", async () => {
    const within = await rowsWithin(
      `BEGIN; CREATE TYPE mood AS ENUM ('sad', 'glad'); CREATE DOMAIN small AS INT CHECK (VALUE < 10);
       CREATE SEQUENCE n START 5; CREATE TABLE t (id INT PRIMARY KEY DEFAULT nextval('n'), m mood, s small);
       INSERT INTO t (m, s) VALUES ('glad', 3), ('sad', 4);
       CREATE VIEW glad AS SELECT id, s FROM t WHERE m = 'glad';
       CREATE NAMESPACE ${space}x; CREATE TABLE ${space}x.u (id INT PRIMARY KEY);
       INSERT INTO ${space}x.u SELECT id FROM glad; COMMENT ON TABLE t IS 'moods';
       SELECT u.id, s FROM ${space}x.u JOIN glad ON glad.id = u.id; COMMIT`,
    );
    expect(within).toEqual([[5, 3]]);
    expect(await rows(`SELECT u.id, s FROM ${space}x.u JOIN glad ON glad.id = u.id`)).toEqual([
      [5, 3],
    ]);
    expect(await rows("SELECT nextval('n')")).toEqual([[7]]);
    expect((await failure("INSERT INTO t (s) VALUES (11)")).code).toBe("CHECK_VIOLATION");
  });

  test("information_schema lists them, for the transaction alone", async () => {
    const listed = `SELECT table_name FROM information_schema.tables WHERE table_schema = '${space}'`;
    expect(
      await rowsWithin(`BEGIN; CREATE TABLE t (id INT PRIMARY KEY); ${listed}; ROLLBACK`),
    ).toEqual([["t"]]);
    expect(await rows(listed)).toEqual([]);
  });

  test("CREATE TABLE AS and TRUNCATE RESTART IDENTITY take part", async () => {
    await run("CREATE TABLE t (id SERIAL PRIMARY KEY, v INT); INSERT INTO t (v) VALUES (1), (2)");
    await run(
      `BEGIN; CREATE TABLE copy AS SELECT v FROM t; TRUNCATE t RESTART IDENTITY;
       INSERT INTO t (v) SELECT v * 10 FROM copy ORDER BY v; COMMIT`,
    );
    expect(await rows("SELECT id, v FROM t ORDER BY id")).toEqual([
      [1, 10],
      [2, 20],
    ]);
    await run("BEGIN; TRUNCATE t RESTART IDENTITY; INSERT INTO t (v) VALUES (5); ROLLBACK");
    expect(await rows("INSERT INTO t (v) VALUES (30) RETURNING id")).toEqual([[3]]);
  });
});

describe("a transaction that does not commit leaves nothing", () => {
  test("ALTER SEQUENCE leaves others their steps, and counts by its own after the COMMIT", async () => {
    await run("CREATE SEQUENCE n");
    const altered = "BEGIN; ALTER SEQUENCE n INCREMENT BY 10";
    await run(`${altered}; SELECT nextval('n'); ROLLBACK`);
    expect(await rows("SELECT nextval('n')")).toEqual([[2]]);
    await run(`${altered}; SELECT nextval('n'); COMMIT`);
    expect(await rows("SELECT nextval('n')")).toEqual([[13]]);
  });

  test("ROLLBACK undoes creations, alterations and drops", async () => {
    await run("CREATE TABLE t (id INT PRIMARY KEY, v INT); INSERT INTO t VALUES (1, 1)");
    await run(
      `BEGIN; CREATE TABLE u (id INT PRIMARY KEY); INSERT INTO u VALUES (1);
       ALTER TABLE t ADD COLUMN w INT DEFAULT 3; ALTER TABLE t DROP COLUMN v; DROP TABLE u;
       CREATE VIEW x AS SELECT w FROM t; DROP TABLE t CASCADE; CREATE TABLE t (other TEXT); ROLLBACK`,
    );
    expect(await rows("SELECT id, v FROM t")).toEqual([[1, 1]]);
    expect((await failure("SELECT * FROM u")).code).toBe("TABLE_NOT_FOUND");
    expect((await failure("SELECT w FROM t")).code).toBe("COLUMN_NOT_FOUND");
    await run("CREATE TABLE u (id INT PRIMARY KEY)");
    expect(await rows("SELECT count(*) FROM u")).toEqual([[0]]);
  });

  test("a failed statement undoes the definitions before it", async () => {
    expect(
      (
        await failure(
          "BEGIN; CREATE TABLE t (id INT PRIMARY KEY); INSERT INTO t VALUES (1), (1); COMMIT",
        )
      ).code,
    ).toBe("DUPLICATE_KEY");
    expect((await failure("SELECT * FROM t")).code).toBe("TABLE_NOT_FOUND");
  });

  test("ROLLBACK TO undoes what followed the savepoint, more than once", async () => {
    const within = await rowsWithin(
      `BEGIN; CREATE TABLE t (id INT PRIMARY KEY, v INT); INSERT INTO t VALUES (1, 1);
       SAVEPOINT a; ALTER TABLE t ADD COLUMN w INT DEFAULT 5; INSERT INTO t VALUES (2, 2, 2);
       CREATE TABLE u (id INT PRIMARY KEY); ROLLBACK TO a;
       ALTER TABLE t DROP COLUMN v; INSERT INTO t VALUES (3); ROLLBACK TO a;
       INSERT INTO t VALUES (4, 4); SELECT id, v FROM t ORDER BY id; COMMIT`,
    );
    const all = [
      [1, 1],
      [4, 4],
    ];
    expect(within).toEqual(all);
    expect(await rows("SELECT id, v FROM t ORDER BY id")).toEqual(all);
    expect((await failure("SELECT * FROM u")).code).toBe("TABLE_NOT_FOUND");
  });

  test("ROLLBACK TO a savepoint before all definitions leaves a transaction of rows", async () => {
    await run("CREATE TABLE t (id INT PRIMARY KEY)");
    await run(
      "BEGIN; INSERT INTO t VALUES (1); SAVEPOINT a; DROP TABLE t; CREATE TABLE t (x TEXT); " +
        "ROLLBACK TO a; INSERT INTO t VALUES (2); COMMIT",
    );
    expect(await rows("SELECT id FROM t ORDER BY id")).toEqual([[1], [2]]);
  });
});

describe("a definition checks the rows that the transaction sees", () => {
  test.each([
    ["SET NOT NULL", "ALTER TABLE t ALTER COLUMN v SET NOT NULL", "NOT_NULL_VIOLATION"],
    ["a CHECK", "ALTER TABLE t ADD CONSTRAINT c CHECK (v IS NOT NULL)", "CHECK_VIOLATION"],
    ["a UNIQUE constraint", "ALTER TABLE t ADD CONSTRAINT q UNIQUE (u)", "DUPLICATE_KEY"],
    ["a unique index", "CREATE UNIQUE INDEX q ON t (u)", "DUPLICATE_KEY"],
    [
      "a foreign key",
      "ALTER TABLE t ADD CONSTRAINT f FOREIGN KEY (u) REFERENCES p (id)",
      "FOREIGN_KEY_VIOLATION",
    ],
  ])("%s", async (_what, definition, code) => {
    await run(
      "CREATE TABLE p (id INT PRIMARY KEY); INSERT INTO p VALUES (1);" +
        "CREATE TABLE t (id INT PRIMARY KEY, v INT, u INT); INSERT INTO t VALUES (1, NULL, 5), (2, 2, 5)",
    );
    expect((await failure(`BEGIN; ${definition}; COMMIT`)).code).toBe(code);
    // The transaction first corrects the rows that would violate the constraint.
    await run(
      `BEGIN; UPDATE t SET v = id, u = NULL WHERE id = 1; INSERT INTO p VALUES (5); ${definition}; COMMIT`,
    );
    const broken = "INSERT INTO t VALUES (3, NULL, 9), (4, NULL, 9)";
    expect((await failure(broken)).code).toBe(code);
    // In this case, the transaction itself inserts the rows that violate the constraint.
    await run("CREATE TABLE o (id INT PRIMARY KEY)");
    expect(
      (
        await failure(
          `BEGIN; DROP TABLE t; CREATE TABLE t (id INT PRIMARY KEY, v INT, u INT); ${broken}; ${definition}; COMMIT`,
        )
      ).code,
    ).toBe(code);
  });

  test("a unique index of the transaction refuses rows at once, and afterwards", async () => {
    await run("CREATE TABLE t (id INT PRIMARY KEY, u INT); INSERT INTO t VALUES (1, 1), (2, 2)");
    expect(
      (await failure("BEGIN; CREATE UNIQUE INDEX q ON t (u); INSERT INTO t VALUES (3, 2); COMMIT"))
        .code,
    ).toBe("DUPLICATE_KEY");
    await run(
      "BEGIN; CREATE UNIQUE INDEX q ON t (u); INSERT INTO t VALUES (3, 3) ON CONFLICT (u) DO NOTHING;" +
        "INSERT INTO t VALUES (4, 2) ON CONFLICT (u) DO UPDATE SET u = 20; COMMIT",
    );
    expect(await rows("SELECT id, u FROM t ORDER BY id")).toEqual([
      [1, 1],
      [2, 20],
      [3, 3],
    ]);
    expect((await failure("INSERT INTO t VALUES (5, 3)")).code).toBe("DUPLICATE_KEY");
    const state = `SELECT state FROM system.indexes WHERE index_name = 'q' AND namespace_id = '${space}'`;
    expect(await rows(state)).toEqual([["ready"]]);
  });
});

describe("other requests during a transaction with definitions", () => {
  /**
   * Opens a transaction in the current test's namespace. Returns functions to run statements in it
   * and to end it.
   */
  function opened(): {
    run: (sql: string) => ReturnType<TestEngine["run"]>;
    failure: (sql: string) => Promise<string>;
    end: (statement: "COMMIT" | "ROLLBACK") => Promise<string>;
  } {
    const { sql } = engine.database;
    const request = { isReadOnly: false, namespace: space };
    const { id } = sql.openTransaction(engine.principal, request);
    return {
      run: (text) => engine.run(text, { transaction: id }),
      failure: (text) => engine.failure(text, { transaction: id }),
      end: async (statement) => {
        try {
          return (await sql.endTransaction(engine.principal, { id, statement })).state;
        } catch (error) {
          if (error instanceof DatabaseError) return error.code;
          throw error;
        }
      },
    };
  }

  test("see nothing before the COMMIT, and continue to write", async () => {
    await run("CREATE TABLE t (id INT PRIMARY KEY, v INT); INSERT INTO t VALUES (1, 1)");
    const tx = opened();
    await tx.run("ALTER TABLE t ADD COLUMN w INT DEFAULT 5; CREATE INDEX i ON t (v)");
    await tx.run("UPDATE t SET w = 6 WHERE id = 1; ALTER TABLE t DROP COLUMN v");
    await run("INSERT INTO t VALUES (2, 2)");
    expect(await rows("SELECT id, v FROM t ORDER BY id")).toEqual([
      [1, 1],
      [2, 2],
    ]);
    expect((await failure("SELECT w FROM t")).code).toBe("COLUMN_NOT_FOUND");
    expect(await tx.end("COMMIT")).toBe("committed");
    expect(await rows("SELECT id, w FROM t ORDER BY id")).toEqual([
      [1, 6],
      [2, 5],
    ]);
    expect((await failure("SELECT v FROM t")).code).toBe("COLUMN_NOT_FOUND");
  });

  test("make the transaction fail if they change a definition first", async () => {
    await run("CREATE TABLE t (id INT PRIMARY KEY)");
    const tx = opened();
    await tx.run("ALTER TABLE t ADD COLUMN a INT");
    await run("CREATE TABLE other (id INT PRIMARY KEY)");
    expect(await tx.failure("INSERT INTO t VALUES (1, 1)")).toStartWith("SERIALIZATION_FAILURE");
    expect(await tx.end("ROLLBACK")).toBe("rolled back");
    const late = opened();
    await late.run("ALTER TABLE t ADD COLUMN b INT");
    await run("DROP TABLE other");
    expect(await late.end("COMMIT")).toBe("SERIALIZATION_FAILURE");
    expect((await failure("SELECT b FROM t")).code).toBe("COLUMN_NOT_FOUND");
  });

  test("make it fail if they write rows that a definition has checked, and only then", async () => {
    await run("CREATE TABLE t (id INT PRIMARY KEY, v INT); INSERT INTO t VALUES (1, 1)");
    const checked = opened();
    await checked.run("ALTER TABLE t ALTER COLUMN v SET NOT NULL");
    await run("INSERT INTO t VALUES (2, NULL)");
    expect(await checked.end("COMMIT")).toBe("SERIALIZATION_FAILURE");
    const unchecked = opened();
    await unchecked.run("ALTER TABLE t ALTER COLUMN v SET DEFAULT 9; CREATE INDEX i ON t (v)");
    await run("INSERT INTO t (id) VALUES (3)");
    expect(await unchecked.end("COMMIT")).toBe("committed");
    await run("INSERT INTO t (id) VALUES (4)");
    expect(await rows("SELECT v FROM t ORDER BY id")).toEqual([[1], [null], [null], [9]]);
  });

  test("conflict over rows as ever, and the store keeps the columns of the table", async () => {
    await run("CREATE TABLE t (id INT PRIMARY KEY, v TEXT); INSERT INTO t VALUES (1, 'kept')");
    const tx = opened();
    await tx.run("ALTER TABLE t DROP COLUMN v; ALTER TABLE t ADD COLUMN w INT DEFAULT 1");
    await tx.run("UPDATE t SET w = 2 WHERE id = 1; CREATE TABLE u (id INT PRIMARY KEY)");
    await run("INSERT INTO t VALUES (2, 'two'); UPDATE t SET v = 'mine' WHERE id = 1");
    expect(await tx.end("COMMIT")).toBe("SERIALIZATION_FAILURE");
    expect(await rows("SELECT id, v FROM t ORDER BY id")).toEqual([
      [1, "mine"],
      [2, "two"],
    ]);
    await run("CREATE TABLE u (id INT PRIMARY KEY)");
  });

  test("wait with definitions for nothing: of two transactions, the second to commit fails", async () => {
    const first = opened();
    const second = opened();
    await first.run("CREATE TABLE a (id INT PRIMARY KEY); INSERT INTO a VALUES (1)");
    await second.run("CREATE TABLE b (id INT PRIMARY KEY); INSERT INTO b VALUES (1)");
    expect(await second.end("COMMIT")).toBe("committed");
    expect(await first.end("COMMIT")).toBe("SERIALIZATION_FAILURE");
    expect((await failure("SELECT * FROM a")).code).toBe("TABLE_NOT_FOUND");
    expect(await rows("SELECT id FROM b")).toEqual([[1]]);
  });
});

describe("a unique index that is built after the COMMIT", () => {
  /** Runs a transaction that creates an index, and calls `during` before the index is built. */
  async function built(definitions: string, during: () => void | Promise<void>): Promise<void> {
    const { store } = engine.database;
    const build = store.buildIndex.bind(store);
    const spy = spyOn(store, "buildIndex");
    spy.mockImplementationOnce(async (...call) => {
      await during();
      return await build(...call);
    });
    try {
      await run(`BEGIN; ${definitions}; COMMIT`);
      expect(spy).toHaveBeenCalled();
    } finally {
      spy.mockRestore();
    }
  }

  test("is built although the request that commits it is killed", async () => {
    await run("CREATE TABLE t (id INT PRIMARY KEY, u INT); INSERT INTO t VALUES (1, 1)");
    await built("ALTER TABLE t ADD CONSTRAINT q UNIQUE (u)", async () => {
      const commit = `sql LIKE 'USE NAMESPACE ${space}; BEGIN%'`;
      const [id] = (
        await engine.rows(`SELECT query_id FROM system.queries WHERE ${commit}`)
      ).flat();
      await run(`KILL QUERY '${String(id)}'`);
      clock.advance(10_000);
    });
    expect((await failure("INSERT INTO t VALUES (2, 1)")).code).toBe("DUPLICATE_KEY");
  });

  test("lets writers of tables that refer to it wait", async () => {
    await run("CREATE TABLE t (id INT PRIMARY KEY, u INT); INSERT INTO t VALUES (1, 1)");
    let written: Promise<unknown> | undefined;
    const definitions =
      "ALTER TABLE t ADD CONSTRAINT q UNIQUE (u); CREATE TABLE c (u INT PRIMARY KEY REFERENCES t (u))";
    await built(definitions, () => {
      written = engine.ask(`INSERT INTO ${space}.c VALUES (1)`);
    });
    expect(await written).not.toHaveProperty("error");
    expect(await rows("SELECT u FROM c")).toEqual([[1]]);
  });
});

test.each([
  "CREATE VIEW made AS SELECT id FROM t",
  "CREATE FUNCTION made() RETURNS INT LANGUAGE sql AS 'SELECT 1'",
  "CREATE SEQUENCE made",
  "CREATE TYPE made AS ENUM ('one')",
  "CREATE DOMAIN made AS INT",
  "CREATE NAMESPACE made",
])("the rows of a commit with no definition but %s survive a restart", async (definition) => {
  await using own = await TestEngine.open();
  await own.run("CREATE TABLE t (id INT PRIMARY KEY)");
  await own.run(`BEGIN; ${definition}; INSERT INTO t VALUES (1); COMMIT`);
  await own.restart();
  expect(await own.rows("SELECT id FROM t")).toEqual([[1]]);
  expect(await own.failure(definition)).toStartWith("ALREADY_EXISTS");
});

test("a commit of definitions and rows survives a restart, and an open one leaves nothing", async () => {
  await run(
    `CREATE TABLE t (id INT PRIMARY KEY, v INT); INSERT INTO t VALUES (1, 1);
     BEGIN; ALTER TABLE t ADD COLUMN w INT DEFAULT 4; UPDATE t SET v = 2; CREATE SEQUENCE n;
     SELECT nextval('n'); CREATE TABLE u AS SELECT w FROM t; COMMIT`,
  );
  const { sql } = engine.database;
  const { id } = sql.openTransaction(engine.principal, { isReadOnly: false, namespace: space });
  await engine.run("DROP TABLE u; CREATE TABLE x (id INT PRIMARY KEY)", { transaction: id });
  await engine.restart();
  expect(await rows("SELECT id, v, w, (SELECT u.w FROM u) FROM t")).toEqual([[1, 2, 4, 4]]);
  expect(await rows("SELECT nextval('n')")).toEqual([[2]]);
  await run("CREATE TABLE x (id INT PRIMARY KEY)");
  expect(await rows("SELECT * FROM x")).toEqual([]);
});

test("rows that the log already has do not return at a start if the catalog refuses the definitions", async () => {
  await run("CREATE TABLE t (id INT PRIMARY KEY); INSERT INTO t VALUES (1)");
  const { catalog } = engine.database;
  if (!(catalog instanceof CatalogDatabase)) throw new Error("the catalog is a database");
  const publication = spyOn(catalog.undone, "storeWithout");
  publication.mockImplementationOnce(() => {
    throw new DatabaseError("STORAGE_UNAVAILABLE", "the catalog refuses the change");
  });
  try {
    const refused = "BEGIN; CREATE TABLE u (id INT PRIMARY KEY); INSERT INTO t VALUES (2); COMMIT";
    expect((await failure(refused)).code).toBe("STORAGE_UNAVAILABLE");
  } finally {
    publication.mockRestore();
  }
  // Publishing newer definitions must not bring back the rows of the failed commit.
  await run("CREATE TABLE u (id INT PRIMARY KEY); INSERT INTO t VALUES (3)");
  await engine.restart();
  expect(await rows("SELECT id FROM t ORDER BY id")).toEqual([[1], [3]]);
});

test("a commit of definitions and rows is refused if the catalog would have to forget an earlier failed one", async () => {
  await run("CREATE TABLE t (id INT PRIMARY KEY)");
  const { catalog, store } = engine.database;
  if (!(catalog instanceof CatalogDatabase)) throw new Error("the catalog is a database");
  const { undone } = catalog;
  const listed = Array.from({ length: 1000 - undone.seqs.size }, () => store.issueSeq());
  for (const seq of listed) undone.add(seq);
  try {
    const both = "BEGIN; CREATE TABLE u (id INT PRIMARY KEY); INSERT INTO t VALUES (1); COMMIT";
    const refused = await failure(both);
    expect(refused.code).toBe("LIMIT_EXCEEDED");
    expect(refused.message).toContain(
      "Cannot commit definitions together with rows: 1000 such commits have failed",
    );
    expect(undone.seqs.size).toBe(1000);
    expect(await rows("SELECT id FROM t")).toEqual([]);
    await run("BEGIN; CREATE TABLE u (id INT PRIMARY KEY); COMMIT; INSERT INTO t VALUES (1)");
    expect(await rows("SELECT id FROM t")).toEqual([[1]]);
  } finally {
    for (const seq of listed) undone.remove(seq);
  }
});

test("a unique index that the transaction drops no longer refuses its rows, unless it fails", async () => {
  const unique = "UNIQUE NULLS NOT DISTINCT (u)";
  await run(`CREATE TABLE t (id INT PRIMARY KEY, u INT, CONSTRAINT q ${unique}, v INT)`);
  await run("INSERT INTO t VALUES (1, 1, 1), (2, NULL, 2)");
  const dropped = "BEGIN; ALTER TABLE t DROP CONSTRAINT q; INSERT INTO t VALUES (3, 1, 3)";
  // The catalog refuses the commit, so the index of the dropped constraint still exists.
  const { catalog } = engine.database;
  if (!(catalog instanceof CatalogDatabase)) throw new Error("the catalog is a database");
  const publication = spyOn(catalog.undone, "storeWithout").mockImplementationOnce(() => {
    throw new DatabaseError("STORAGE_UNAVAILABLE", "the catalog refuses the change");
  });
  expect((await failure(`${dropped}; COMMIT`)).code).toBe("STORAGE_UNAVAILABLE");
  publication.mockRestore();
  expect((await failure("INSERT INTO t VALUES (3, 1, 3)")).code).toBe("DUPLICATE_KEY");
  await run(`${dropped}; UPDATE t SET u = 1; COMMIT`);
  expect(await rows("SELECT u, count(*) FROM t GROUP BY u")).toEqual([[1, 3]]);
  await run("DELETE FROM t WHERE id <> 2");
  await run(`ALTER TABLE t ADD CONSTRAINT q ${unique}; UPDATE t SET u = NULL`);
  await run("BEGIN; ALTER TABLE t DROP COLUMN u; INSERT INTO t VALUES (4, 4), (5, 5); COMMIT");
  expect(await rows("SELECT id, v FROM t ORDER BY id")).toEqual([
    [2, 2],
    [4, 4],
    [5, 5],
  ]);
});

test("a transaction may drop a table to which its rows have referred, and keeps it after ROLLBACK TO", async () => {
  await run("CREATE TABLE p (id INT PRIMARY KEY); INSERT INTO p VALUES (1), (2)");
  await run("CREATE TABLE c (id INT PRIMARY KEY, p INT REFERENCES p (id))");
  const rowsOf = "INSERT INTO c VALUES (1, 1); SAVEPOINT s; DROP TABLE p CASCADE";
  const { sql } = engine.database;
  const { id } = sql.openTransaction(engine.principal, { isReadOnly: false, namespace: space });
  await engine.run(`${rowsOf}; ROLLBACK TO s`, { transaction: id });
  await run("DELETE FROM p WHERE id = 1");
  const ended = sql.endTransaction(engine.principal, { id, statement: "COMMIT" });
  // The claim on the parent row has been restored.
  expect(await laterErrorCodeOf(() => ended)).toBe("SERIALIZATION_FAILURE");
  await run(`INSERT INTO p VALUES (1); BEGIN; ${rowsOf}; INSERT INTO c VALUES (2, 9); COMMIT`);
  expect(await rows("SELECT id, p FROM c ORDER BY id")).toEqual([
    [1, 1],
    [2, 9],
  ]);
});

test("a unique index of the transaction finds equal NULLs if they are not distinct", async () => {
  await run("CREATE TABLE t (id INT PRIMARY KEY, u INT); INSERT INTO t VALUES (1, NULL), (2, 2)");
  const index = "CREATE UNIQUE INDEX q ON t (u) NULLS NOT DISTINCT";
  const twice = "INSERT INTO t VALUES (3, NULL)";
  expect((await failure(`BEGIN; ${twice}; ${index}; COMMIT`)).code).toBe("DUPLICATE_KEY");
  expect((await failure(`BEGIN; ${index}; ${twice}; COMMIT`)).code).toBe("DUPLICATE_KEY");
  await run(`BEGIN; UPDATE t SET u = 1 WHERE id = 1; ${index}; ${twice}; COMMIT`);
  expect((await failure("INSERT INTO t VALUES (4, NULL)")).code).toBe("DUPLICATE_KEY");
});

test("a transaction may drop or alter a table whose rows it has locked", async () => {
  await run("CREATE TABLE a (id INT PRIMARY KEY); CREATE TABLE b (id INT PRIMARY KEY)");
  await run("INSERT INTO a VALUES (1); INSERT INTO b VALUES (1)");
  await run(
    `BEGIN; SELECT * FROM a FOR UPDATE; SELECT * FROM b FOR UPDATE; DROP TABLE a;
     ALTER TABLE b ADD COLUMN v INT DEFAULT 2; COMMIT`,
  );
  expect((await failure("SELECT * FROM a")).code).toBe("TABLE_NOT_FOUND");
  expect(await rows("SELECT id, v FROM b")).toEqual([[1, 2]]);
});

test("the sources of a topic follow a table that the transaction alters or drops", async () => {
  await run(
    `CREATE TABLE t (id INT PRIMARY KEY, v INT); CREATE TOPIC x;
     ALTER TOPIC x ADD SOURCE t ON INSERT WHERE v > 1`,
  );
  await run(
    "BEGIN; ALTER TABLE t RENAME COLUMN v TO w; INSERT INTO t VALUES (1, 1), (2, 2); COMMIT",
  );
  const consumed = async (group: string): Promise<string[]> => {
    const messages = await rows(`CONSUME FROM x GROUP '${group}' FROM EARLIEST NO ACK`);
    return (messages as unknown[][]).map((message) => String(message[4]));
  };
  expect(await consumed("a")).toEqual([expect.stringContaining('"w":2')]);
  await run("BEGIN; INSERT INTO t VALUES (3, 3); DROP TABLE t; COMMIT");
  // The messages about a dropped table can no longer be read, but the topic continues to exist.
  expect(await consumed("b")).toEqual([]);
});

test("a READ ONLY transaction refuses definitions", async () => {
  expect((await failure("BEGIN READ ONLY; CREATE TABLE t (id INT PRIMARY KEY); COMMIT")).code).toBe(
    "INVALID_OPERATION",
  );
});

test.each([
  "ALTER TYPE mood ADD VALUE 'new'",
  "CREATE TOPIC x",
  "CREATE INDEX CONCURRENTLY i ON t (id)",
])("a transaction refuses %s", async (definition) => {
  await run("CREATE TYPE mood AS ENUM ('sad'); CREATE TABLE t (id INT PRIMARY KEY)");
  expect((await failure(`BEGIN; ${definition}; COMMIT`)).code).toBe("INVALID_TRANSACTION_STATE");
});
