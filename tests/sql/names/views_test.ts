/**
 * Tests views: which views each caller sees, what is fixed when a view is created, and what
 * depends on it. A view never gives a caller access to additional rows.
 */
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { TestEngine } from "../../support/sql_engine.ts";

let engine: TestEngine;

beforeEach(async () => {
  engine = await TestEngine.open();
  await engine.run(
    "CREATE NAMESPACE app; USE app;" +
      "CREATE TABLE u (id INT PRIMARY KEY, b TEXT, c INT) WITH (TYPE='USER');" +
      "CREATE TABLE s (id INT PRIMARY KEY, x INT); INSERT INTO s VALUES (1, 10), (2, 20);" +
      "INSERT INTO u VALUES (1, 'root one', 1), (2, 'root two', 2);" +
      "CREATE USER alice WITH INTERNAL;" +
      "CREATE USER sam WITH INTERNAL ROLE service;" +
      "CREATE VIEW v AS SELECT * FROM u",
  );
});
afterEach(() => engine[Symbol.asyncDispose]());

async function as(userId: string, work: () => Promise<void>): Promise<void> {
  const before = engine.userId;
  engine.userId = userId;
  try {
    await work();
  } finally {
    engine.userId = before;
  }
}

describe("a view needs the rights of its reader", () => {
  test("a view returns the caller's own rows, whoever created it and whoever read it before", async () => {
    const sql = "SELECT b FROM app.v ORDER BY id";
    expect(await engine.rows(sql)).toEqual([["root one"], ["root two"]]);
    await as("alice", async () => {
      expect(await engine.rows(sql)).toEqual([]);
      await engine.run("INSERT INTO app.u VALUES (7, 'alice', 1)");
      expect(await engine.rows(sql)).toEqual([["alice"]]);
    });
    expect(await engine.rows(sql)).toEqual([["root one"], ["root two"]]);
    expect(await engine.rows(`EXECUTE AS USER 'alice' (${sql})`)).toEqual([["alice"]]);
    expect(await engine.rows("EXECUTE AS 'sam' (SELECT count(*) FROM app.v)")).toEqual([[0]]);
  });

  test("a view does not reveal the tombstones of other users", async () => {
    await engine.run("CREATE VIEW app.dead AS SELECT id FROM app.u WHERE _deleted");
    await engine.run("DELETE FROM app.u WHERE id = 2");
    expect(await engine.rows("SELECT * FROM app.dead")).toEqual([[2]]);
    await as("alice", async () => expect(await engine.rows("SELECT * FROM app.dead")).toEqual([]));
  });

  test("a view grants nothing: the caller needs the rights to each of its tables", async () => {
    await engine.run(
      "CREATE VIEW app.p AS SELECT id FROM app.s; CREATE VIEW app.pp AS TABLE app.p",
    );
    await engine.run("CREATE VIEW app.users AS SELECT user_id FROM system.users");
    await as("alice", async () => {
      for (const sql of [
        "SELECT * FROM app.p",
        "SELECT * FROM app.pp",
        "SELECT 1 WHERE EXISTS (SELECT 1 FROM app.pp)",
        "WITH w AS (TABLE app.pp) SELECT * FROM w",
        "INSERT INTO app.u (id) SELECT id FROM app.p",
        "SELECT * FROM app.users",
        "DESCRIBE app.p",
      ]) {
        expect(await engine.failure(sql), sql).toStartWith(
          sql.includes("app.users") ? "PERMISSION_DENIED@1" : "TABLE_NOT_FOUND@1",
        );
      }
      expect(await engine.rows("SELECT table_name FROM information_schema.views")).toEqual([["v"]]);
      expect((await engine.rows("SHOW TABLES IN app")).map((row) => row[1])).toEqual(["u", "v"]);
    });
    await as("sam", async () => {
      expect(await engine.rows("SELECT * FROM app.pp ORDER BY 1")).toEqual([[1], [2]]);
      expect(await engine.failure("SELECT * FROM app.users")).toBe("PERMISSION_DENIED@1");
    });
  });

  test("a view may be created and dropped by role dba and by the owner of the namespace", async () => {
    for (const userId of ["alice", "sam"]) {
      await as(userId, async () => {
        expect(await engine.failure("CREATE VIEW app.n AS SELECT 1")).toBe(
          "PERMISSION_DENIED@1:12",
        );
        expect(await engine.failure("DROP VIEW app.v")).toBe("PERMISSION_DENIED@1:10");
      });
    }
    await engine.run("CREATE NAMESPACE hers AUTHORIZATION alice");
    await as("alice", async () => {
      await engine.run("CREATE VIEW hers.n AS SELECT 1 AS one");
      expect(await engine.failure("CREATE VIEW hers.m AS SELECT * FROM app.s")).toBe(
        "TABLE_NOT_FOUND@1:36",
      );
      const shown = "SELECT table_name, view_definition FROM information_schema.views";
      expect(await engine.rows(shown)).toEqual([
        ["v", null],
        ["n", "SELECT 1 AS one"],
      ]);
      await engine.run("DROP VIEW hers.n");
    });
  });

  test("CURRENT_USER, literals and unqualified names keep their meaning within a view", async () => {
    await engine.run("CREATE VIEW app.me AS SELECT CURRENT_USER AS who, 'x' AS lit, 1.5 AS n");
    await engine.run("USE app; CREATE VIEW default.far AS SELECT count(*) AS n FROM s");
    const sql = "SELECT * FROM app.me, default.far";
    expect(await engine.rows(sql)).toEqual([["root", "x", "1.5", 2]]);
    await as("sam", async () => expect(await engine.rows(sql)).toEqual([["sam", "x", "1.5", 2]]));
  });
});

describe("properties are fixed when a view is created", () => {
  test("a view fixes its columns: a new column is hidden, and a renamed one keeps its old name", async () => {
    await engine.run("ALTER TABLE app.u ADD COLUMN d INT DEFAULT 5, RENAME COLUMN b TO bb");
    const [found] = await engine.run("SELECT * FROM app.v WHERE b = 'root one'");
    expect(found?.schema?.map(({ name }) => name)).toEqual(["id", "b", "c"]);
    expect(found?.rows).toEqual([[1, "root one", 1]]);
  });

  test("a view fixes the columns of the views it reads, to which OR REPLACE may add columns", async () => {
    await engine.run("CREATE VIEW app.w AS SELECT * FROM app.v");
    await engine.run("CREATE OR REPLACE VIEW app.v AS SELECT id, b, c, 'new' AS extra FROM app.u");
    expect(await engine.rows("SELECT extra FROM app.v WHERE id = 1")).toEqual([["new"]]);
    const [found] = await engine.run("SELECT * FROM app.w WHERE id = 1");
    expect(found?.schema?.map(({ name }) => name)).toEqual(["id", "b", "c"]);
  });

  test("OR REPLACE must not drop, rename, move or retype a view's own columns", async () => {
    const message = async (query: string): Promise<string | undefined> => {
      const { error } = await engine.ask(`CREATE OR REPLACE VIEW app.v AS ${query}`);
      expect(error?.code).toBe("INVALID_DEFINITION");
      return error?.message;
    };
    const begin = "Cannot replace view app.v: the new query ";
    expect(await message("SELECT id, b FROM app.u")).toBe(
      `${begin}does not return a column 3, which must be "c"`,
    );
    expect(await message("SELECT c, id, b FROM app.u")).toBe(
      `${begin}returns "c" as column 1, which must be "id"`,
    );
    expect(await message("SELECT id, b AS bb, c FROM app.u")).toBe(
      `${begin}returns "bb" as column 2, which must be "b"`,
    );
    expect(await message("SELECT id, b, c::text FROM app.u")).toBe(
      `${begin}returns column "c" as text, but its type must be integer`,
    );
    await message("SELECT id, b::varchar(5), c FROM app.u");
    await engine.run("CREATE OR REPLACE VIEW app.v (id, b, c) AS SELECT id, b, c FROM app.u");
  });

  test("a view fixes the types of views that read it, even the digits of a DECIMAL", async () => {
    await engine.run(
      "CREATE VIEW app.d AS SELECT 1.5 AS n; CREATE VIEW app.e AS SELECT n FROM app.d",
    );
    expect(await engine.failure("CREATE OR REPLACE VIEW app.d AS SELECT 1.55 AS n")).toBe(
      "DEPENDENT_OBJECTS@1:23",
    );
    await engine.run("DROP VIEW app.e; CREATE OR REPLACE VIEW app.d AS SELECT 1.55 AS n");
    expect(await engine.rows("SELECT n FROM app.d")).toEqual([["1.55"]]);
    await engine.run("DROP VIEW app.d");
  });

  test("a view fixes declared digits of a DECIMAL, but not those of a computed one", async () => {
    await engine.run("CREATE TABLE app.p (id INT PRIMARY KEY, n DECIMAL(10, 2))");
    const outcome = async (from: string, to: string): Promise<string> => {
      await engine.run(`CREATE VIEW app.dv AS SELECT ${from} AS n FROM app.p`);
      const { error } = await engine.ask(
        `CREATE OR REPLACE VIEW app.dv AS SELECT ${to} AS n FROM app.p`,
      );
      await engine.run("DROP VIEW app.dv");
      return error?.message ?? "replaced";
    };
    expect(await outcome("n", "n::DECIMAL(5, 1)")).toBe(
      'Cannot replace view app.dv: the new query returns column "n" as numeric(5,1), but its type must be ' +
        "numeric(10,2)",
    );
    for (const [from, to] of [
      ["n", "n * 2"],
      ["n", "sum(n)"],
      ["n * 2", "n"],
      ["n * 2", "n::DECIMAL(20, 4)"],
      ["n::DECIMAL(5, 1)", "n::DECIMAL(6, 1)"],
    ] as const) {
      expect([from, to, await outcome(from, to)]).toEqual([
        from,
        to,
        expect.stringContaining("Cannot"),
      ]);
    }
    for (const [from, to] of [
      ["n", "n::DECIMAL(10, 2)"],
      ["n", "coalesce(n, 0::DECIMAL(10, 2))"],
      ["n * 2", "n / 3"],
      ["n * 2", "1.5"],
      ["1.5", "sum(n)"],
    ] as const) {
      expect([from, to, await outcome(from, to)]).toEqual([from, to, "replaced"]);
    }
    await engine.run("DROP TABLE app.p");
  });

  test("a cached plan follows changes to a view", async () => {
    const sql = "SELECT * FROM app.v WHERE id = 1";
    await engine.rows(sql);
    await engine.run("CREATE OR REPLACE VIEW app.v AS SELECT id, 'x' AS b, c FROM app.u");
    expect(await engine.rows(sql)).toEqual([[1, "x", 1]]);
    await engine.run("DROP VIEW app.v");
    expect(await engine.failure(sql)).toBe("TABLE_NOT_FOUND@1:14");
  });
});

describe("objects that depend on a view are protected", () => {
  test("a table, column or view that is needed stays, or the views are dropped too", async () => {
    await engine.run("CREATE VIEW app.w AS SELECT id, (SELECT max(x) FROM app.s) AS m FROM app.v");
    expect(await engine.failure("DROP TABLE app.u")).toBe("DEPENDENT_OBJECTS@1:0");
    expect(await engine.failure("DROP TABLE app.s")).toBe("DEPENDENT_OBJECTS@1:0");
    expect(await engine.failure("DROP VIEW app.v")).toBe("DEPENDENT_OBJECTS@1:0");
    expect(await engine.failure("ALTER TABLE app.s DROP COLUMN x")).toStartWith(
      "DEPENDENT_OBJECTS",
    );
    await engine.run("ALTER TABLE app.s DROP COLUMN x CASCADE");
    expect(await engine.failure("TABLE app.w")).toStartWith("TABLE_NOT_FOUND");
    await engine.run("DROP VIEW app.v; DROP TABLE app.u");
  });

  test("a column that no view needs is dropped", async () => {
    await engine.run("CREATE VIEW app.w AS SELECT id FROM app.s; ALTER TABLE app.s DROP COLUMN x");
    expect(await engine.rows("SELECT * FROM app.w ORDER BY 1")).toEqual([[1], [2]]);
  });

  test("DROP NAMESPACE drops views in other namespaces, or is refused", async () => {
    await engine.run("CREATE VIEW default.w AS SELECT * FROM app.v");
    expect(await engine.failure("DROP NAMESPACE app")).toBe("DEPENDENT_OBJECTS@1:15");
    await engine.run("DROP NAMESPACE app CASCADE");
    expect((await engine.rows("SHOW TABLES")).filter((row) => row[3] !== "SYSTEM")).toEqual([]);
  });
});

describe("view definitions with a fault are refused", () => {
  const FAULTS: readonly (readonly [sql: string, failure: string])[] = [
    ["CREATE VIEW app.v AS SELECT 1", "ALREADY_EXISTS@1:12"],
    ["CREATE VIEW app.s AS SELECT 1", "ALREADY_EXISTS@1:12"],
    ["CREATE TABLE app.v (id INT PRIMARY KEY)", "ALREADY_EXISTS@1:13"],
    ["CREATE VIEW nope.v AS SELECT 1", "NAMESPACE_NOT_FOUND@1:12"],
    ['CREATE VIEW app."x-" AS SELECT 1', "INVALID_NAME@1:12"],
    ["CREATE VIEW app.p AS SELECT $1", "INVALID_DEFINITION@1:0"],
    ["CREATE VIEW app.p AS SELECT 1, 2", "INVALID_DEFINITION@1:12"],
    ["CREATE VIEW app.p (a, b) AS SELECT 1", "INVALID_DEFINITION@1:12"],
    ["CREATE VIEW app.p AS SELECT * FROM app.p", "TABLE_NOT_FOUND@1:35"],
    ["CREATE OR REPLACE VIEW app.v AS SELECT * FROM app.v", "INVALID_DEFINITION@1:23"],
    ["MERGE INTO app.v USING app.s ON false WHEN MATCHED THEN DELETE", "READ_ONLY_OBJECT@1:11"],
    ["DROP TABLE app.v", "INVALID_OPERATION@1:11"],
    ["DROP TABLE IF EXISTS app.v", "INVALID_OPERATION@1:21"],
    ["DROP VIEW app.s", "INVALID_OPERATION@1:10"],
    ["DROP VIEW app.nope", "TABLE_NOT_FOUND@1:10"],
    ["ALTER TABLE app.v ADD COLUMN z INT", "INVALID_OPERATION@1:12"],
    ["STORAGE FLUSH TABLE app.v", "INVALID_OPERATION@1:20"],
    ["BEGIN READ ONLY; CREATE VIEW app.z AS SELECT 1; COMMIT", "INVALID_OPERATION@2:17"],
    ["EXECUTE AS 'alice' (CREATE VIEW app.z AS SELECT 1)", "PERMISSION_DENIED@1:20"],
  ];
  for (const [sql, failure] of FAULTS) {
    test(sql, async () => expect(await engine.failure(sql)).toBe(failure));
  }

  test("a fault within a view is reported at the view's name in the request", async () => {
    await engine.run("CREATE VIEW app.two AS SELECT (SELECT id FROM app.u) AS one");
    expect(await engine.failure("SELECT one FROM app.two")).toStartWith("CARDINALITY_VIOLATION@1");
  });

  test("a renamed view keeps its rows, its readers and its rights", async () => {
    await engine.run(
      "CREATE VIEW app.r1 AS SELECT id FROM app.s; CREATE VIEW app.r2 AS SELECT id + 10 AS id FROM app.r1",
    );
    await engine.run("ALTER VIEW app.r1 RENAME TO first_one");
    expect(await engine.rows("SELECT id FROM app.first_one ORDER BY id")).toEqual([[1], [2]]);
    expect(await engine.failure("SELECT id FROM app.r1")).toStartWith("TABLE_NOT_FOUND");
    expect(await engine.rows("SELECT id FROM app.r2 ORDER BY id")).toEqual([[11], [12]]);
    await engine.run("CREATE VIEW app.r1 AS SELECT 7 AS id; ALTER VIEW app.first_one RENAME TO r3");
    expect(await engine.rows("SELECT id FROM app.r2 ORDER BY id")).toEqual([[11], [12]]);
    await engine.restart();
    expect(await engine.rows("SELECT id FROM app.r2 ORDER BY id")).toEqual([[11], [12]]);
    expect(await engine.failure("ALTER VIEW app.r3 RENAME TO r2")).toBe("ALREADY_EXISTS@1:28");
    expect(await engine.failure("ALTER VIEW app.r3 RENAME TO s")).toBe("ALREADY_EXISTS@1:28");
    expect(await engine.failure("ALTER VIEW app.s RENAME TO r4")).toBe("INVALID_OPERATION@1:11");
    expect(await engine.failure("ALTER VIEW app.r9 RENAME TO r4")).toBe("TABLE_NOT_FOUND@1:11");
    await engine.run("ALTER VIEW IF EXISTS app.r9 RENAME TO r4");
    expect(await engine.failure("DROP VIEW app.r3")).toStartWith("DEPENDENT_OBJECTS");
    await engine.run("DROP VIEW app.r3 CASCADE; DROP VIEW app.r1");
  });

  test("views that double one another are refused at a limit, before memory runs out", async () => {
    await engine.run("CREATE VIEW app.d0 AS SELECT id FROM app.s");
    for (let i = 1; i <= 7; i += 1) {
      await engine.run(
        `CREATE VIEW app.d${i} AS SELECT a.id FROM app.d${i - 1} a JOIN app.d${i - 1} b ON a.id = b.id`,
      );
    }
    expect(await engine.rows("SELECT count(*) FROM app.d5")).toEqual([[2]]);
    const tooMany = "CREATE VIEW app.d9 AS SELECT a.id FROM app.d7 a, app.d7 b";
    expect(await engine.failure(tooMany)).toStartWith("LIMIT_EXCEEDED@1");
  });

  test("views that are nested too deeply are refused at a limit", async () => {
    await engine.run("CREATE VIEW app.n1 AS SELECT 1 AS a");
    let failure = "";
    for (let i = 2; i <= 40 && failure === ""; i += 1) {
      const { error } = await engine.ask(`CREATE VIEW app.n${i} AS SELECT * FROM app.n${i - 1}`);
      if (error !== undefined) failure = `${error.code} at ${i}`;
    }
    expect(failure).toBe("LIMIT_EXCEEDED at 34");
  });
});

describe("a view may contain a long list", () => {
  const numbers = Array.from({ length: 5000 }, (_, index) => index);

  test("a view over a long list has the rows of its query", async () => {
    const inList = `SELECT id FROM app.s WHERE id IN (${numbers.join(", ")}) ORDER BY id`;
    const inArray = `SELECT id FROM app.s WHERE id = ANY (ARRAY[${numbers.join(", ")}]) ORDER BY id`;
    const ofValues = `VALUES ${numbers.map((number) => `(${number})`).join(", ")}`;
    await engine.run(`CREATE VIEW app.a AS ${inList}; CREATE VIEW app.b AS ${inArray}`);
    await engine.run(`CREATE VIEW app.c AS ${ofValues}`);
    for (let time = 0; time < 2; time += 1) {
      expect(await engine.rows("SELECT * FROM app.a")).toEqual([[1], [2]]);
      expect(await engine.rows("SELECT * FROM app.b")).toEqual([[1], [2]]);
      expect(await engine.rows("SELECT count(*) FROM app.c")).toEqual([[5000]]);
    }
  });
});
