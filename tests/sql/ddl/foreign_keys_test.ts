/**
 * Tests definitions of foreign keys: those that are refused, when existing rows are checked, and
 * how changes to columns and tables affect the keys.
 */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import { TestEngine } from "../../support/sql_engine.ts";

let engine: TestEngine;
let count = 0;
let p: string;
let c: string;

beforeAll(async () => {
  engine = await TestEngine.open();
  await engine.run(
    "CREATE NAMESPACE app; CREATE USER ann INTERNAL ROLE user;" +
      "CREATE USER sam INTERNAL ROLE service",
  );
});
afterAll(() => engine[Symbol.asyncDispose]());
beforeEach(async () => {
  count += 1;
  p = `app.p${count}`;
  c = `app.c${count}`;
  engine.userId = "root";
  await engine.run(`CREATE TABLE ${p} (id INT PRIMARY KEY, v INT); INSERT INTO ${p} VALUES (1, 1)`);
});

const code = async (sql: string): Promise<string> =>
  (await engine.failure(sql)).split("@")[0] ?? "";

/** Returns the foreign keys of a table, and whether each has been validated. */
async function keysOf(table: string): Promise<unknown> {
  return engine.rows(
    `SELECT constraint_name, unique_constraint_name, delete_rule FROM information_schema.referential_constraints WHERE constraint_name LIKE '${table.slice(4)}\\_%' ORDER BY 1`,
  );
}

describe("foreign keys with a faulty definition are refused", () => {
  test.each([
    ["id INT PRIMARY KEY, a INT REFERENCES app.nope", "TABLE_NOT_FOUND"],
    ["id INT PRIMARY KEY, a INT REFERENCES $p (nope)", "COLUMN_NOT_FOUND"],
    ["id INT PRIMARY KEY, FOREIGN KEY (nope) REFERENCES $p", "COLUMN_NOT_FOUND"],
    ["id INT PRIMARY KEY, a INT REFERENCES $p (v)", "INVALID_DEFINITION"],
    ["id INT PRIMARY KEY, a TEXT REFERENCES $p", "INVALID_DEFINITION"],
    [
      "id INT PRIMARY KEY, a INT, u INT UNIQUE, FOREIGN KEY (a) REFERENCES $c (a)",
      "INVALID_DEFINITION",
    ],
    ["id INT PRIMARY KEY, u INT UNIQUE REFERENCES $c (id, u)", "INVALID_DEFINITION"],
    [
      "id INT, u INT UNIQUE, PRIMARY KEY (id), FOREIGN KEY (id) REFERENCES $c (u) ON UPDATE SET NULL",
      "INVALID_DEFINITION",
    ],
    ["id INT PRIMARY KEY REFERENCES $p ON UPDATE SET NULL", "INVALID_DEFINITION"],
    [
      "id INT PRIMARY KEY, u INT UNIQUE, g INT GENERATED ALWAYS AS (u + 1) STORED REFERENCES $c (u) ON UPDATE SET NULL",
      "INVALID_DEFINITION",
    ],
    ["id INT PRIMARY KEY, a INT, FOREIGN KEY (a, id) REFERENCES $p", "INVALID_DEFINITION"],
    ["id INT REFERENCES $p ON DELETE SET NULL, PRIMARY KEY (id)", "INVALID_DEFINITION"],
    [
      "id INT PRIMARY KEY, a INT CONSTRAINT k CHECK (a > 0) CONSTRAINT k REFERENCES $p",
      "ALREADY_EXISTS",
    ],
    ["id INT PRIMARY KEY, a INT REFERENCES $p MATCH PARTIAL", "UNSUPPORTED_FEATURE"],
    ["id INT PRIMARY KEY, a INT REFERENCES $p NOT DEFERRABLE INITIALLY DEFERRED", "INVALID_SQL"],
  ])("(%s) is %s", async (columns, expected) => {
    expect(
      await code(`CREATE TABLE ${c} (${columns.replaceAll("$p", p).replaceAll("$c", c)})`),
    ).toBe(expected);
    expect(
      await engine.rows(`SELECT count(*) FROM system.tables WHERE table_name = 'c${count}'`),
    ).toEqual([[0]]);
  });

  test("foreign keys from SHARED to USER, on STREAM, and to a table that the caller may not alter are refused", async () => {
    await engine.run(
      `CREATE USER TABLE ${p}u (id INT PRIMARY KEY); CREATE TABLE ${p}d (id INT PRIMARY KEY) WITH (ACCESS_LEVEL = 'DBA')`,
    );
    const { error } = await engine.ask(
      `CREATE TABLE ${c} (id INT PRIMARY KEY, a INT REFERENCES ${p}u)`,
    );
    expect(error?.code).toBe("INVALID_DEFINITION");
    expect(error?.message).toContain("belongs to no user");
    expect(
      await code(`CREATE STREAM TABLE ${c} (id INT REFERENCES ${p}) WITH (TTL_SECONDS = 9)`),
    ).toBe("INVALID_DEFINITION");
    engine.userId = "sam";
    expect(await code(`CREATE TABLE ${c} (id INT PRIMARY KEY, a INT REFERENCES ${p}d)`)).toBe(
      "TABLE_NOT_FOUND",
    );
  });
});

test("ADD CONSTRAINT checks the rows, and NOT VALID leaves this to VALIDATE CONSTRAINT", async () => {
  await engine.run(
    `CREATE TABLE ${c} (id INT PRIMARY KEY, a INT); INSERT INTO ${c} VALUES (1, 1), (2, 7), (3, NULL)`,
  );
  const add = `ALTER TABLE ${c} ADD CONSTRAINT c${count}_k FOREIGN KEY (a) REFERENCES ${p}`;
  expect(await code(add)).toBe("FOREIGN_KEY_VIOLATION");
  expect(await keysOf(c)).toEqual([]);
  await engine.run(`INSERT INTO ${c} VALUES (4, 9)`);
  await engine.run(`${add} NOT VALID`);
  expect(await keysOf(c)).toEqual([[`c${count}_k`, `p${count}_pkey`, "NO ACTION"]]);
  expect(await code(`INSERT INTO ${c} VALUES (5, 9)`)).toBe("FOREIGN_KEY_VIOLATION");
  // A row that was not checked keeps its dangling reference until it is changed.
  await engine.run(`UPDATE ${c} SET a = 7 WHERE id = 2`);
  const validate = `ALTER TABLE ${c} VALIDATE CONSTRAINT c${count}_k`;
  expect(await code(validate)).toBe("FOREIGN_KEY_VIOLATION");
  await engine.run(`DELETE FROM ${c} WHERE a > 1; ${validate}; ${validate}`);
  expect(await code(`ALTER TABLE ${c} VALIDATE CONSTRAINT nope`)).toBe("OBJECT_NOT_FOUND");
  await engine.restart();
  expect(await code(`DELETE FROM ${p}`)).toBe("FOREIGN_KEY_VIOLATION");
  await engine.run(`ALTER TABLE ${c} DROP CONSTRAINT c${count}_k; DELETE FROM ${p}`);
});

test("columns and tables with foreign keys can be renamed, dropped and retyped only as permitted", async () => {
  await engine.run(`CREATE TABLE ${c} (id INT PRIMARY KEY, a INT REFERENCES ${p} ON DELETE CASCADE, b INT REFERENCES ${p});
    INSERT INTO ${c} VALUES (1, 1, NULL)`);
  await engine.run(`ALTER TABLE ${p} RENAME id TO pid; ALTER TABLE ${c} RENAME a TO parent`);
  await engine.run(`ALTER TABLE ${c} ALTER parent TYPE BIGINT, DROP COLUMN b`);
  expect(await keysOf(c)).toEqual([[`c${count}_a_fkey`, `p${count}_pkey`, "CASCADE"]]);
  expect(await code(`DROP TABLE ${p}`)).toBe("DEPENDENT_OBJECTS");
  expect(
    await engine.rows(
      `SELECT constraint_type FROM information_schema.table_constraints WHERE table_name = 'c${count}' ORDER BY 1`,
    ),
  ).toEqual([["FOREIGN KEY"], ["PRIMARY KEY"]]);
  await engine.run(`DROP TABLE ${p} CASCADE`);
  expect(await keysOf(c)).toEqual([]);
  await engine.run(`INSERT INTO ${c} VALUES (2, 99)`);
});

describe("foreign keys may refer to a unique index", () => {
  beforeEach(async () => {
    await engine.run(`CREATE UNIQUE INDEX p${count}_v ON ${p} (v);
      CREATE TABLE ${c} (id INT PRIMARY KEY, v INT REFERENCES ${p} (v)); INSERT INTO ${c} VALUES (1, 1)`);
  });

  test("a foreign key prevents its index from being dropped, except with CASCADE", async () => {
    expect(await keysOf(c)).toEqual([[`c${count}_v_fkey`, `p${count}_v`, "NO ACTION"]]);
    for (const sql of [`DROP INDEX ${p}_v`, `ALTER TABLE ${p} DROP COLUMN v`]) {
      const { error } = await engine.ask(sql);
      expect([sql, error?.code]).toEqual([sql, "DEPENDENT_OBJECTS"]);
      expect(error?.message).toContain(`including "c${count}_v_fkey" on ${c}`);
    }
    await engine.restart();
    expect(await code(`INSERT INTO ${c} VALUES (2, 2)`)).toBe("FOREIGN_KEY_VIOLATION");
    expect(await code(`UPDATE ${p} SET v = 2`)).toBe("FOREIGN_KEY_VIOLATION");
    await engine.run(`CREATE UNIQUE INDEX p${count}_w ON ${p} (v)`);
    expect(await code(`DROP INDEX ${p}_w, ${p}_v`)).toBe("DEPENDENT_OBJECTS");
    await engine.run(`DROP INDEX ${p}_w`);
    await engine.run(`DROP INDEX ${p}_v CASCADE`);
    expect(await keysOf(c)).toEqual([]);
    await engine.run(`INSERT INTO ${c} VALUES (2, 2); UPDATE ${p} SET v = 2`);
  });

  test("a foreign key needs only one of several indexes over the same columns", async () => {
    await engine.run(
      `ALTER TABLE ${p} ADD CONSTRAINT p${count}_second UNIQUE (v); DROP INDEX ${p}_v`,
    );
    expect(await keysOf(c)).toEqual([[`c${count}_v_fkey`, `p${count}_second`, "NO ACTION"]]);
    expect(await code(`INSERT INTO ${c} VALUES (2, 2)`)).toBe("FOREIGN_KEY_VIOLATION");
    const drop = `ALTER TABLE ${p} DROP CONSTRAINT p${count}_second`;
    expect(await code(drop)).toBe("DEPENDENT_OBJECTS");
    expect(await code(`${drop} RESTRICT`)).toBe("DEPENDENT_OBJECTS");
    await engine.run(`${drop} CASCADE, ADD w INT`);
    expect(await keysOf(c)).toEqual([]);
    await engine.run(`INSERT INTO ${c} VALUES (2, 2)`);
  });

  test("a foreign key is dropped with its column, even in the same table", async () => {
    await engine.run(`ALTER TABLE ${p} ADD up INT REFERENCES ${p} (v)`);
    expect(await code(`UPDATE ${p} SET up = 7`)).toBe("FOREIGN_KEY_VIOLATION");
    await engine.run(`ALTER TABLE ${p} DROP COLUMN v CASCADE`);
    expect([await keysOf(c), await keysOf(p)]).toEqual([[], []]);
    await engine.run(`UPDATE ${p} SET up = 7; INSERT INTO ${c} VALUES (2, 2)`);
  });

  test("a foreign key is validated, and fixes the type of its columns", async () => {
    const add = `ALTER TABLE ${c} ADD CONSTRAINT c${count}_k FOREIGN KEY (id) REFERENCES ${p} (v)`;
    await engine.run(`INSERT INTO ${p} VALUES (2, 3); INSERT INTO ${c} VALUES (2, NULL)`);
    expect(await code(add)).toBe("FOREIGN_KEY_VIOLATION");
    await engine.run(`UPDATE ${p} SET v = 2 WHERE id = 2; ${add}`);
    await engine.run(`ALTER TABLE ${p} ALTER v TYPE BIGINT`);
    expect(await code(`INSERT INTO ${c} VALUES (7, 2)`)).toBe("FOREIGN_KEY_VIOLATION");
    expect(
      await engine.rows(
        `SELECT column_name, position_in_unique_constraint FROM information_schema.key_column_usage WHERE constraint_name = 'c${count}_k'`,
      ),
    ).toEqual([["id", 1]]);
  });
});

test("tables that refer to each other are dropped together, and a namespace with its references", async () => {
  await engine.run(`CREATE TABLE ${c} (id INT PRIMARY KEY, a INT REFERENCES ${p});
    ALTER TABLE ${p} ADD COLUMN b INT REFERENCES ${c}`);
  await engine.run(`DROP TABLE ${p}, ${c}`);
  await engine.run(`CREATE NAMESPACE n${count}; CREATE TABLE n${count}.p (id INT PRIMARY KEY);
    CREATE TABLE ${c} (id INT PRIMARY KEY, a INT REFERENCES n${count}.p); DROP NAMESPACE n${count} CASCADE`);
  await engine.run(`INSERT INTO ${c} VALUES (1, 5)`);
});
