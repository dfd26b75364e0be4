/**
 * Tests foreign keys while rows change: every action between all kinds of tables, over several
 * levels and in cycles, inside and outside transactions, deferred, and under concurrent changes.
 */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import { testThoroughly } from "../../../support/requirements.ts";
import { SeededRandom, seedOf } from "../../../support/seeded_random.ts";
import { TestEngine } from "../../../support/sql_engine.ts";
import { shareOf } from "../../../support/thoroughness.ts";

let engine: TestEngine;
let count = 0;
let p: string;
let c: string;

beforeAll(async () => {
  engine = await TestEngine.open();
  await engine.run(
    "CREATE NAMESPACE app; CREATE USER ann INTERNAL ROLE user;" +
      "CREATE USER ben INTERNAL ROLE user",
  );
});
afterAll(() => engine[Symbol.asyncDispose]());
beforeEach(() => {
  count += 1;
  p = `app.p${count}`;
  c = `app.c${count}`;
  engine.userId = "root";
});

const rows = (sql: string): Promise<readonly (readonly unknown[])[]> => engine.rows(sql);
const code = async (sql: string): Promise<string> =>
  (await engine.failure(sql)).split("@")[0] ?? "";

const RELATIONS = [
  ["SHARED", "SHARED"],
  ["USER", "USER"],
  ["USER", "SHARED"],
] as const;

/** Creates a parent table with two rows and a child table with three. */
async function family(
  [child, parent]: (typeof RELATIONS)[number],
  action: string,
  more = "",
): Promise<void> {
  await engine.run(`CREATE ${parent} TABLE ${p} (id INT PRIMARY KEY, v TEXT);
    CREATE ${child} TABLE ${c} (id INT PRIMARY KEY, pid INT DEFAULT 9 ${more} REFERENCES ${p} ${action});
    INSERT INTO ${p} VALUES (1, 'one'), (2, 'two'), (9, 'nine');
    INSERT INTO ${c} VALUES (10, 1), (11, 2), (12, NULL)`);
}

describe.each(shareOf(RELATIONS, { oneOf: 3 }))(
  "foreign keys from %s to %s are enforced",
  (child, parent) => {
    const relation = [child, parent] as const as (typeof RELATIONS)[number];

    test("a row requires its parent, however it is written", async () => {
      await family(relation, "");
      for (const sql of [
        `INSERT INTO ${c} VALUES (13, 3)`,
        `INSERT INTO ${c} SELECT 13, 3`,
        `INSERT INTO ${c} VALUES (13, 1), (14, 3)`,
        `UPDATE ${c} SET pid = 3 WHERE id = 10`,
        `INSERT INTO ${c} VALUES (10, 3) ON CONFLICT (id) DO UPDATE SET pid = excluded.pid`,
        `BEGIN; INSERT INTO ${c} VALUES (13, 3); COMMIT`,
        `BEGIN; DELETE FROM ${c} WHERE id = 10; DELETE FROM ${p} WHERE id = 1; INSERT INTO ${c} VALUES (13, 1); COMMIT`,
      ]) {
        expect([sql, await code(sql)]).toEqual([sql, "FOREIGN_KEY_VIOLATION"]);
      }
      await engine.run(
        `BEGIN; INSERT INTO ${p} VALUES (3, 'three'); INSERT INTO ${c} VALUES (13, 3); COMMIT`,
      );
      expect(await rows(`SELECT id, pid FROM ${c} ORDER BY id`)).toEqual([
        [10, 1],
        [11, 2],
        [12, null],
        [13, 3],
      ]);
    });

    test.each(["ON DELETE RESTRICT", "ON DELETE NO ACTION", "ON UPDATE CASCADE"])(
      "%s prevents the deletion of a parent",
      async (action) => {
        await family(relation, action);
        const { error } = await engine.ask(`DELETE FROM ${p} WHERE id IN (1, 9)`);
        expect(error?.code).toBe("FOREIGN_KEY_VIOLATION");
        expect(error?.message).toContain(`"c${count}_pid_fkey"`);
        expect(await code(`BEGIN; DELETE FROM ${p} WHERE id = 1; COMMIT`)).toBe(
          "FOREIGN_KEY_VIOLATION",
        );
        expect(await rows(`SELECT id FROM ${p} ORDER BY id`)).toEqual([[1], [2], [9]]);
        await engine.run(`DELETE FROM ${c} WHERE id = 10; DELETE FROM ${p} WHERE id = 1`);
        await engine.run(
          `BEGIN; DELETE FROM ${c} WHERE id = 11; DELETE FROM ${p} WHERE id = 2; COMMIT`,
        );
        expect(await rows(`SELECT id FROM ${p}`)).toEqual([[9]]);
      },
    );

    test.each([
      [
        "ON DELETE CASCADE",
        [
          [11, 2],
          [12, null],
        ],
      ],
      [
        "ON DELETE SET NULL",
        [
          [10, null],
          [11, 2],
          [12, null],
        ],
      ],
      [
        "ON DELETE SET DEFAULT",
        [
          [10, 9],
          [11, 2],
          [12, null],
        ],
      ],
    ])("%s changes referring rows in the same commit", async (action, expected) => {
      await family(relation, action);
      const [result] = await engine.run(`DELETE FROM ${p} WHERE id = 1`);
      expect(result?.rowCount).toBe(1);
      expect(await rows(`SELECT id, pid FROM ${c} ORDER BY id`)).toEqual(expected);
      await engine.run(`BEGIN; DELETE FROM ${p} WHERE id = 2; ROLLBACK`);
      expect(await rows(`SELECT id, pid FROM ${c} ORDER BY id`)).toEqual(expected);
      expect(await rows(`SELECT id FROM ${p} ORDER BY id`)).toEqual([[2], [9]]);
    });

    test("SET DEFAULT requires the row of the default, and SET NULL a nullable column", async () => {
      await family(relation, "ON DELETE SET DEFAULT");
      await engine.run(`DELETE FROM ${p} WHERE id = 9`);
      expect(await code(`DELETE FROM ${p} WHERE id = 1`)).toBe("FOREIGN_KEY_VIOLATION");
      await engine.run(`ALTER TABLE ${c} DROP CONSTRAINT c${count}_pid_fkey,
      ADD FOREIGN KEY (pid) REFERENCES ${p} ON DELETE SET NULL NOT VALID`);
      await engine.run(
        `DELETE FROM ${c} WHERE pid IS NULL; ALTER TABLE ${c} ALTER pid SET NOT NULL`,
      );
      expect(await code(`DELETE FROM ${p} WHERE id = 1`)).toBe("NOT_NULL_VIOLATION");
      expect(await rows(`SELECT count(*) FROM ${p}`)).toEqual([[2]]);
    });
  },
);

describe.each(RELATIONS)(
  "foreign keys from %s to a unique index of %s are enforced",
  (child, parent) => {
    /** Creates a parent table with three codes and a child table with three rows. */
    async function coded(action: string): Promise<void> {
      await engine.run(`CREATE ${parent} TABLE ${p} (id INT PRIMARY KEY, code TEXT UNIQUE);
      CREATE ${child} TABLE ${c} (id INT PRIMARY KEY, code TEXT DEFAULT 'z' REFERENCES ${p} (code) ${action});
      INSERT INTO ${p} VALUES (1, 'a'), (2, 'b'), (9, 'z'), (10, NULL);
      INSERT INTO ${c} VALUES (10, 'a'), (11, 'b'), (12, NULL)`);
    }
    const codes = (): Promise<unknown> => rows(`SELECT id, code FROM ${c} ORDER BY id`);
    const BEFORE = [
      [10, "a"],
      [11, "b"],
      [12, null],
    ];

    test.each(["", "ON UPDATE RESTRICT"])(
      "%p prevents the change to a referenced key",
      async (action) => {
        await coded(action);
        expect(await code(`INSERT INTO ${c} VALUES (13, 'q')`)).toBe("FOREIGN_KEY_VIOLATION");
        expect(await code(`UPDATE ${c} SET code = 'q' WHERE id = 10`)).toBe(
          "FOREIGN_KEY_VIOLATION",
        );
        for (const sql of [
          `UPDATE ${p} SET code = 'q' WHERE id = 1`,
          `UPDATE ${p} SET code = NULL WHERE id = 1`,
          `INSERT INTO ${p} VALUES (1, 'q') ON CONFLICT (id) DO UPDATE SET code = excluded.code`,
          `BEGIN; UPDATE ${p} SET code = 'q' WHERE id = 1; COMMIT`,
        ]) {
          const { error } = await engine.ask(sql);
          expect([sql, error?.code]).toEqual([sql, "FOREIGN_KEY_VIOLATION"]);
          expect(error?.message).toContain(
            `Cannot update ${p}: rows of ${c} refer to key (code) = ('a') through foreign key "c${count}_code_fkey"`,
          );
        }
        expect(await code(`DELETE FROM ${p} WHERE id = 1`)).toBe("FOREIGN_KEY_VIOLATION");
        expect(await rows(`SELECT id, code FROM ${p} ORDER BY id`)).toEqual([
          [1, "a"],
          [2, "b"],
          [9, "z"],
          [10, null],
        ]);
        await engine.run(
          `UPDATE ${p} SET code = code; UPDATE ${p} SET code = 'y' WHERE code = 'z'`,
        );
        expect(await codes()).toEqual(BEFORE);
      },
    );

    test("NO ACTION lets a key move to another row, even within one statement", async () => {
      await coded("");
      await engine.run(
        `UPDATE ${p} SET code = CASE code WHEN 'a' THEN 'b' ELSE 'a' END WHERE id < 3`,
      );
      expect(await codes()).toEqual(BEFORE);
      expect(await rows(`SELECT code FROM ${p} WHERE id < 3 ORDER BY id`)).toEqual([["b"], ["a"]]);
    });

    test.each([
      ["ON UPDATE CASCADE", ["q", "b", null]],
      ["ON UPDATE SET NULL", [null, "b", null]],
      ["ON UPDATE SET DEFAULT", ["z", "b", null]],
    ])("%s changes the referring rows", async (action, expected) => {
      await coded(action);
      const [result] = await engine.run(`UPDATE ${p} SET code = 'q' WHERE id = 1`);
      expect(result?.rowCount).toBe(1);
      const changed = expected.map((each, i) => [10 + i, each]);
      expect(await codes()).toEqual(changed);
      await engine.run(`BEGIN; UPDATE ${p} SET code = 'r' WHERE id = 2; ROLLBACK`);
      expect(await codes()).toEqual(changed);
      expect(await code(`DELETE FROM ${p} WHERE id = 2`)).toBe("FOREIGN_KEY_VIOLATION");
      await engine.run(
        `INSERT INTO ${p} VALUES (2, 's') ON CONFLICT (id) DO UPDATE SET code = excluded.code`,
      );
      const next = action === "ON UPDATE CASCADE" ? "s" : expected[0];
      expect(await codes()).toEqual([changed[0], [11, next], [12, null]]);
    });

    test("ON UPDATE CASCADE follows two rows that exchange their keys, and a key that becomes NULL", async () => {
      await coded("ON UPDATE CASCADE ON DELETE CASCADE");
      await engine.run(
        `UPDATE ${p} SET code = CASE code WHEN 'a' THEN 'b' ELSE 'a' END WHERE id < 3`,
      );
      expect(await codes()).toEqual([
        [10, "b"],
        [11, "a"],
        [12, null],
      ]);
      await engine.run(
        `UPDATE ${p} SET code = NULL WHERE id = 1; DELETE FROM ${p} WHERE code = 'a'`,
      );
      expect(await codes()).toEqual([
        [10, null],
        [12, null],
      ]);
    });
  },
);

test("a changed key is followed through several tables, and back to the first", async () => {
  await engine.run(`CREATE TABLE ${p} (id INT PRIMARY KEY, code BIGINT UNIQUE, up INT);
    CREATE TABLE ${c} (id INT PRIMARY KEY, code INT UNIQUE REFERENCES ${p} (code) ON UPDATE CASCADE);
    CREATE TABLE ${c}d (id INT PRIMARY KEY, code INT REFERENCES ${c} (code) ON UPDATE CASCADE ON DELETE SET NULL);
    ALTER TABLE ${p} ADD FOREIGN KEY (up) REFERENCES ${c} (code) ON UPDATE CASCADE;
    INSERT INTO ${p} VALUES (1, 1, NULL), (2, 2, NULL); INSERT INTO ${c} VALUES (1, 1), (2, 2);
    INSERT INTO ${c}d VALUES (1, 1), (2, 2), (3, 1); UPDATE ${p} SET up = 3 - code`);
  await engine.run(`UPDATE ${p} SET code = code * 10`);
  expect(await rows(`SELECT code FROM ${c}d ORDER BY id`)).toEqual([[10], [20], [10]]);
  expect(await rows(`SELECT code, up FROM ${p} ORDER BY id`)).toEqual([
    [10, 20],
    [20, 10],
  ]);
  // The new value must fit into the columns that reference the key.
  expect(await code(`UPDATE ${p} SET code = 3000000000 WHERE id = 1`)).toBe("VALUE_OUT_OF_RANGE");
  expect(await rows(`SELECT code FROM ${p} ORDER BY id`)).toEqual([[10], [20]]);
});

test("cycles of ON UPDATE CASCADE end, and keep what the statement itself has set", async () => {
  await engine.run(`CREATE TABLE ${p} (id INT PRIMARY KEY, code INT UNIQUE, up INT REFERENCES ${p} (code) ON UPDATE CASCADE);
    INSERT INTO ${p} VALUES (1, 1, NULL), (2, 2, 1), (3, 3, 2), (4, 4, 4)`);
  await engine.run(`UPDATE ${p} SET code = code + 1, up = up + 1`);
  expect(await rows(`SELECT code, up FROM ${p} ORDER BY id`)).toEqual([
    [2, null],
    [3, 2],
    [4, 3],
    [5, 5],
  ]);
  await engine.run(`UPDATE ${p} SET code = code * 100`);
  expect(await rows(`SELECT code, up FROM ${p} ORDER BY id`)).toEqual([
    [200, null],
    [300, 200],
    [400, 300],
    [500, 500],
  ]);
  await engine.run(`CREATE TABLE ${c} (id INT PRIMARY KEY, x INT UNIQUE);
    CREATE TABLE ${c}d (id INT PRIMARY KEY, x INT UNIQUE REFERENCES ${c} (x) ON UPDATE CASCADE);
    INSERT INTO ${c} VALUES (1, 1), (2, 2); INSERT INTO ${c}d VALUES (1, 1), (2, 2);
    ALTER TABLE ${c} ADD FOREIGN KEY (x) REFERENCES ${c}d (x) ON UPDATE CASCADE DEFERRABLE INITIALLY DEFERRED`);
  await engine.run(`UPDATE ${c} SET x = 3 - x`);
  for (const table of [c, `${c}d`]) {
    expect(await rows(`SELECT x FROM ${table} ORDER BY id`)).toEqual([[2], [1]]);
  }
});

test("deferred foreign keys to a unique index are checked at the commit", async () => {
  await engine.run(`CREATE TABLE ${p} (id INT PRIMARY KEY, a INT, b INT, UNIQUE (a, b));
    CREATE TABLE ${c} (id INT PRIMARY KEY, b INT, a INT,
      FOREIGN KEY (b, a) REFERENCES ${p} (b, a) DEFERRABLE INITIALLY DEFERRED);
    BEGIN; INSERT INTO ${c} VALUES (1, 7, 1); INSERT INTO ${p} VALUES (1, 1, 7), (2, 2, 7); COMMIT`);
  const moves = `UPDATE ${p} SET a = 3 WHERE id = 1`;
  expect(await code(`BEGIN; ${moves}; COMMIT`)).toBe("FOREIGN_KEY_VIOLATION");
  expect(await code(moves)).toBe("FOREIGN_KEY_VIOLATION");
  await engine.run(`BEGIN; ${moves}; UPDATE ${p} SET a = 1 WHERE id = 2; COMMIT`);
  await engine.run(`BEGIN; UPDATE ${p} SET a = 9 WHERE id = 2; UPDATE ${c} SET a = 9; COMMIT`);
  expect(await rows(`SELECT b, a FROM ${c}`)).toEqual([[7, 9]]);
});

test("long changes to unique keys change referring rows, and a long INSERT finds its parents", async () => {
  await engine.run(`CREATE TABLE ${p} (id INT PRIMARY KEY, code TEXT UNIQUE);
    CREATE TABLE ${c} (id INT PRIMARY KEY, code TEXT REFERENCES ${p} (code) ON UPDATE CASCADE);
    INSERT INTO ${p} SELECT g, 'k' || g FROM generate_series(1, 3000) x(g);
    INSERT INTO ${c} SELECT g, 'k' || (1 + g % 3000) FROM generate_series(1, 9000) x(g); STORAGE FLUSH TABLE ${p}`);
  expect(
    await code(`INSERT INTO ${c} SELECT g, 'k' || g FROM generate_series(9001, 15000) x(g)`),
  ).toBe("FOREIGN_KEY_VIOLATION");
  await engine.run(`UPDATE ${p} SET code = 'n' || id WHERE id > 500`);
  expect(
    await rows(
      `SELECT count(*) FILTER (WHERE code LIKE 'k%'), count(*) FILTER (WHERE code LIKE 'n%') FROM ${c}`,
    ),
  ).toEqual([[1500, 7500]]);
  expect(
    await rows(
      `SELECT count(*) FROM ${c} x WHERE NOT EXISTS (SELECT 1 FROM ${p} y WHERE y.code = x.code)`,
    ),
  ).toEqual([[0]]);
});

test("rows of every user follow a shared parent, and rows of one user follow only their own", async () => {
  await engine.run(`CREATE SHARED TABLE ${p} (id INT PRIMARY KEY) WITH (ACCESS_LEVEL = 'PUBLIC');
    CREATE USER TABLE ${c} (id INT PRIMARY KEY, pid INT REFERENCES ${p} ON DELETE CASCADE);
    CREATE USER TABLE ${c}x (id INT PRIMARY KEY, cid INT REFERENCES ${c} ON DELETE CASCADE);
    INSERT INTO ${p} VALUES (1), (2)`);
  for (const user of ["ann", "ben"]) {
    engine.userId = user;
    await engine.run(
      `INSERT INTO ${c} VALUES (1, 1), (2, 2); INSERT INTO ${c}x VALUES (5, 1), (6, 2)`,
    );
  }
  engine.userId = "ann";
  await engine.run(`DELETE FROM ${c} WHERE id = 2`);
  expect(await rows(`SELECT id FROM ${c}x`)).toEqual([[5]]);
  engine.userId = "root";
  await engine.run(`DELETE FROM ${p} WHERE id = 1`);
  engine.userId = "ann";
  expect(await rows(`SELECT id FROM ${c}x`)).toEqual([]);
  engine.userId = "ben";
  expect(await rows(`SELECT id FROM ${c}`)).toEqual([[2]]);
  expect(await rows(`SELECT id FROM ${c}x`)).toEqual([[6]]);
});

test("cascades proceed level by level in a chain of tables and in a tree", async () => {
  await engine.run(`CREATE TABLE ${p} (id INT PRIMARY KEY);
    CREATE TABLE ${c} (id INT PRIMARY KEY, pid INT REFERENCES ${p} ON DELETE CASCADE);
    CREATE TABLE ${c}d (id INT PRIMARY KEY, cid INT REFERENCES ${c} ON DELETE CASCADE);
    CREATE TABLE ${c}e (id INT PRIMARY KEY REFERENCES ${c}d ON DELETE CASCADE, up INT REFERENCES ${c}e ON DELETE SET NULL);
    INSERT INTO ${p} VALUES (1), (2);
    INSERT INTO ${c} SELECT g, 1 + g % 2 FROM generate_series(1, 10) x(g);
    INSERT INTO ${c}d SELECT g, 1 + g % 10 FROM generate_series(1, 100) x(g);
    INSERT INTO ${c}e SELECT g, CASE WHEN g > 1 THEN g / 2 END FROM generate_series(1, 100) x(g)`);
  const [result] = await engine.run(`DELETE FROM ${p} WHERE id = 1`);
  const goneIn = async (table: string): Promise<[number, number]> => {
    const [[first, last] = []] = await rows(
      `SELECT min(_seq), max(_seq) FROM ${table} WHERE _deleted`,
    );
    return [Number(first), Number(last)];
  };
  // A subscriber receives the deleted parent before the rows that were deleted with it, all in one
  // commit.
  const order = [await goneIn(p), await goneIn(c), await goneIn(`${c}d`)].flat();
  expect(order).toEqual(order.toSorted((left, right) => left - right));
  expect(Number(result?.lastSeq)).toBeGreaterThanOrEqual(order.at(-1) ?? 0);
  for (const [table, left] of [
    [p, 1],
    [c, 5],
    [`${c}d`, 50],
    [`${c}e`, 50],
  ] as const) {
    expect([table, await rows(`SELECT count(*) FROM ${table}`)]).toEqual([table, [[left]]]);
  }
  expect(
    await rows(
      `SELECT count(*) FROM ${c}e e WHERE up IS NOT NULL AND NOT EXISTS (SELECT 1 FROM ${c}e u WHERE u.id = e.up)`,
    ),
  ).toEqual([[0]]);
});

test("a table that refers to itself supports rows of one statement, cycles, and a whole tree", async () => {
  await engine.run(
    `CREATE TABLE ${p} (id INT PRIMARY KEY, up INT REFERENCES ${p} ON DELETE CASCADE)`,
  );
  await engine.run(`INSERT INTO ${p} VALUES (1, 1), (2, 3), (3, 2), (4, 1)`);
  expect(await code(`INSERT INTO ${p} VALUES (5, 6)`)).toBe("FOREIGN_KEY_VIOLATION");
  await engine.run(`DELETE FROM ${p} WHERE id = 2`);
  expect(await rows(`SELECT id FROM ${p} ORDER BY id`)).toEqual([[1], [4]]);
  await engine.run(`CREATE TABLE ${c} (id INT PRIMARY KEY, up INT REFERENCES ${c});
    INSERT INTO ${c} VALUES (1, NULL), (2, 1), (3, 2)`);
  expect(await code(`DELETE FROM ${c} WHERE id < 3`)).toBe("FOREIGN_KEY_VIOLATION");
  await engine.run(`DELETE FROM ${c}`);
  expect(await rows(`SELECT count(*) FROM ${c}`)).toEqual([[0]]);
});

test("a key may have several columns, with MATCH SIMPLE and MATCH FULL", async () => {
  await engine.run(`CREATE TABLE ${p} (a INT, b TEXT, PRIMARY KEY (a, b)); INSERT INTO ${p} VALUES (1, 'x');
    CREATE TABLE ${c} (id INT PRIMARY KEY, b TEXT, a BIGINT, CONSTRAINT k FOREIGN KEY (b, a) REFERENCES ${p} (b, a) ON DELETE SET NULL);
    CREATE TABLE ${c}f (id INT PRIMARY KEY, a INT, b TEXT, FOREIGN KEY (a, b) REFERENCES ${p} MATCH FULL)`);
  await engine.run(`INSERT INTO ${c} VALUES (1, 'x', 1), (2, 'y', NULL)`);
  expect(await code(`INSERT INTO ${c} VALUES (3, 'y', 1)`)).toBe("FOREIGN_KEY_VIOLATION");
  expect(await code(`INSERT INTO ${c}f VALUES (3, 1, NULL)`)).toBe("FOREIGN_KEY_VIOLATION");
  await engine.run(`INSERT INTO ${c}f VALUES (1, NULL, NULL); DELETE FROM ${p}`);
  expect(await rows(`SELECT id, b, a FROM ${c} ORDER BY id`)).toEqual([
    [1, null, null],
    [2, "y", null],
  ]);
});

describe("constraints can be deferred to the commit", () => {
  beforeEach(async () => {
    await engine.run(`CREATE TABLE ${p} (id INT PRIMARY KEY, cid INT);
      CREATE TABLE ${c} (id INT PRIMARY KEY, pid INT NOT NULL, CONSTRAINT up FOREIGN KEY (pid) REFERENCES ${p} DEFERRABLE INITIALLY DEFERRED);
      ALTER TABLE ${p} ADD CONSTRAINT down FOREIGN KEY (cid) REFERENCES ${c} DEFERRABLE INITIALLY IMMEDIATE`);
  });

  test("rows that refer to each other can be written in one transaction with deferred constraints", async () => {
    await engine.run(
      `BEGIN; INSERT INTO ${c} VALUES (1, 5); INSERT INTO ${p} VALUES (5, 1); COMMIT`,
    );
    expect(await code(`BEGIN; INSERT INTO ${c} VALUES (2, 6); COMMIT`)).toBe(
      "FOREIGN_KEY_VIOLATION",
    );
    expect(await code(`INSERT INTO ${c} VALUES (2, 6)`)).toBe("FOREIGN_KEY_VIOLATION");
    expect(await code(`BEGIN; INSERT INTO ${p} VALUES (6, 2); COMMIT`)).toBe(
      "FOREIGN_KEY_VIOLATION",
    );
    await engine.run(
      `BEGIN; SET CONSTRAINTS down DEFERRED; INSERT INTO ${p} VALUES (6, 2); INSERT INTO ${c} VALUES (2, 6); COMMIT`,
    );
    expect(await rows(`SELECT id FROM ${c} ORDER BY id`)).toEqual([[1], [2]]);
  });

  test("SET CONSTRAINTS … IMMEDIATE checks at once", async () => {
    expect(
      await code(`BEGIN; INSERT INTO ${c} VALUES (1, 5); SET CONSTRAINTS ALL IMMEDIATE; COMMIT`),
    ).toBe("FOREIGN_KEY_VIOLATION");
    expect(await code(`BEGIN; SET CONSTRAINTS nope DEFERRED; COMMIT`)).toBe("OBJECT_NOT_FOUND");
    expect(await code("SET CONSTRAINTS ALL DEFERRED")).toBe("TRANSACTION_REQUIRED");
    expect(await code("SET CONSTRAINTS nope IMMEDIATE")).toBe("OBJECT_NOT_FOUND");
  });

  test("a parent may be deleted and inserted again before the commit", async () => {
    await engine.run(
      `BEGIN; INSERT INTO ${p} VALUES (5, NULL); INSERT INTO ${c} VALUES (1, 5); COMMIT`,
    );
    expect(await code(`BEGIN; DELETE FROM ${p} WHERE id = 5; COMMIT`)).toBe(
      "FOREIGN_KEY_VIOLATION",
    );
    await engine.run(
      `BEGIN; DELETE FROM ${p} WHERE id = 5; INSERT INTO ${p} VALUES (5, 1); COMMIT`,
    );
    expect(await rows(`SELECT id, cid FROM ${p}`)).toEqual([[5, 1]]);
  });
});

test("long changes find their parents and change referring rows", async () => {
  await engine.run(`CREATE TABLE ${p} (id INT PRIMARY KEY);
    CREATE TABLE ${c} (id INT PRIMARY KEY, pid INT REFERENCES ${p} ON DELETE CASCADE);
    INSERT INTO ${p} SELECT g FROM generate_series(1, 3000) x(g);
    INSERT INTO ${c} SELECT g, 1 + g % 3000 FROM generate_series(1, 9000) x(g)`);
  expect(await code(`INSERT INTO ${c} SELECT g, g FROM generate_series(9001, 15000) x(g)`)).toBe(
    "FOREIGN_KEY_VIOLATION",
  );
  await engine.run(`DELETE FROM ${p} WHERE id > 500`);
  expect(await rows(`SELECT count(*) FROM ${c}`)).toEqual([[1500]]);
});

test("two transactions cannot leave a row without its parent", async () => {
  await engine.run(`CREATE TABLE ${p} (id INT PRIMARY KEY);
    CREATE TABLE ${c} (id INT PRIMARY KEY, pid INT REFERENCES ${p});
    INSERT INTO ${p} SELECT g FROM generate_series(1, 60) x(g)`);
  // Each delete waits in its transaction while another client inserts a row, and each insert waits
  // while another client deletes one.
  const wait = "SELECT count(*) FROM generate_series(1, 20000) x(g);";
  const texts = Array.from({ length: 60 }, (_, i) => [
    `BEGIN; DELETE FROM ${p} WHERE id = ${i + 1}; ${i % 2 === 0 ? wait : ""} COMMIT`,
    `BEGIN; INSERT INTO ${c} VALUES (${i}, ${i + 1}); ${i % 2 === 1 ? wait : ""} COMMIT`,
    `INSERT INTO ${c} VALUES (${i + 100}, ${i + 1})`,
    `DELETE FROM ${p} WHERE id = ${((i + 30) % 60) + 1}`,
  ]).flat();
  const answers = await Promise.all(texts.map((sql) => engine.ask(sql)));
  const codes = new Set(answers.map(({ error }) => error?.code ?? "none"));
  codes.delete("none");
  codes.delete("FOREIGN_KEY_VIOLATION");
  codes.delete("SERIALIZATION_FAILURE");
  expect([...codes]).toEqual([]);
  expect(
    await rows(
      `SELECT count(*) FROM ${c} WHERE NOT EXISTS (SELECT 1 FROM ${p} p WHERE p.id = pid)`,
    ),
  ).toEqual([[0]]);
});

testThoroughly("two transactions cannot leave a row without its unique key", async () => {
  await engine.run(`CREATE TABLE ${p} (id INT PRIMARY KEY, code INT UNIQUE);
    CREATE TABLE ${c} (id INT PRIMARY KEY, code INT REFERENCES ${p} (code));
    INSERT INTO ${p} SELECT g, g FROM generate_series(1, 60) x(g)`);
  const wait = "SELECT count(*) FROM generate_series(1, 20000) x(g);";
  const texts = Array.from({ length: 60 }, (_, i) => [
    `BEGIN; UPDATE ${p} SET code = code + 1000 WHERE id = ${i + 1}; ${i % 2 === 0 ? wait : ""} COMMIT`,
    `BEGIN; INSERT INTO ${c} VALUES (${i}, ${i + 1}); ${i % 2 === 1 ? wait : ""} COMMIT`,
  ]).flat();
  const answers = await Promise.all(texts.map((sql) => engine.ask(sql)));
  const seen = new Set(answers.map(({ error }) => error?.code ?? "none"));
  expect([...seen].toSorted()).toEqual(["SERIALIZATION_FAILURE", "none"]);
  expect(
    await rows(
      `SELECT count(*) FROM ${c} x WHERE NOT EXISTS (SELECT 1 FROM ${p} y WHERE y.code = x.code)`,
    ),
  ).toEqual([[0]]);
});

test("an index over the referring columns finds the rows, in memory and in a segment", async () => {
  await engine.run(`CREATE TABLE ${p} (a INT, b INT, PRIMARY KEY (a, b));
    CREATE TABLE ${c} (id INT PRIMARY KEY, b INT, a INT, FOREIGN KEY (a, b) REFERENCES ${p} ON DELETE CASCADE);
    CREATE INDEX ON ${c} (b, a);
    INSERT INTO ${p} SELECT g / 10, g % 10 FROM generate_series(0, 99) x(g);
    INSERT INTO ${c} SELECT g, g % 10, g / 10 % 10 FROM generate_series(0, 999) x(g);
    STORAGE FLUSH TABLE ${c}; INSERT INTO ${c} VALUES (1000, 3, 7), (1001, 7, 3)`);
  await engine.run(`UPDATE ${c} SET a = 7 WHERE id = 13; DELETE FROM ${p} WHERE a = 7 AND b = 3`);
  expect(await rows(`SELECT count(*), count(*) FILTER (WHERE a = 7 AND b = 3) FROM ${c}`)).toEqual([
    [990, 0],
  ]);
});

test("an index that begins with the referring columns finds the rows, whatever its other columns are", async () => {
  await engine.run(`CREATE TABLE ${p} (a INT, b INT, PRIMARY KEY (a, b));
    CREATE TABLE ${c} (id INT PRIMARY KEY, n TEXT, b INT, a INT, FOREIGN KEY (a, b) REFERENCES ${p} ON DELETE CASCADE);
    CREATE INDEX ON ${c} (b, a, n);
    INSERT INTO ${p} SELECT g / 10, g % 10 FROM generate_series(0, 99) x(g);
    INSERT INTO ${c} SELECT g, 'n' || g, g % 10, g / 10 % 10 FROM generate_series(0, 999) x(g);
    STORAGE FLUSH TABLE ${c}; INSERT INTO ${c} VALUES (1000, NULL, 3, 7), (1001, 'x', 7, 3)`);
  await engine.run(`UPDATE ${c} SET a = 7 WHERE id = 13`);
  await engine.run(`DELETE FROM ${p} WHERE a = 7 AND b = 3`);
  expect(await rows(`SELECT count(*), count(*) FILTER (WHERE a = 7 AND b = 3) FROM ${c}`)).toEqual([
    [990, 0],
  ]);
});

test("TRUNCATE empties tables that refer to each other only together", async () => {
  await engine.run(`CREATE TABLE ${p} (id INT PRIMARY KEY, up INT REFERENCES ${p});
    CREATE TABLE ${c} (id INT PRIMARY KEY, pid INT REFERENCES ${p} ON DELETE CASCADE);
    INSERT INTO ${p} VALUES (1, NULL), (2, 1); INSERT INTO ${c} VALUES (1, 2)`);
  expect(await code(`TRUNCATE ${p}`)).toBe("DEPENDENT_OBJECTS");
  await engine.run(`TRUNCATE ${p}, ${c}`);
  expect(await rows(`SELECT id FROM ${p} UNION ALL SELECT id FROM ${c}`)).toEqual([]);
  await engine.run(
    `INSERT INTO ${p} VALUES (1, NULL); INSERT INTO ${c} VALUES (1, 1); TRUNCATE ${c}`,
  );
  expect(await rows(`SELECT count(*) FROM ${p}`)).toEqual([[1]]);
});

test("random deletions and insertions by many clients leave no orphan", async () => {
  const random = new SeededRandom(seedOf(1));
  await engine.run(`CREATE TABLE ${p} (id INT PRIMARY KEY);
    CREATE TABLE ${c} (id INT PRIMARY KEY, pid INT REFERENCES ${p} ON DELETE CASCADE);
    CREATE TABLE ${c}d (id INT PRIMARY KEY, cid INT REFERENCES ${c} ON DELETE SET NULL,
      pid INT REFERENCES ${p} DEFERRABLE INITIALLY DEFERRED);
    CREATE TABLE ${p}u (id INT PRIMARY KEY, code INT UNIQUE);
    CREATE TABLE ${c}u (id INT PRIMARY KEY, code INT REFERENCES ${p}u (code) ON UPDATE CASCADE);
    CREATE TABLE ${c}v (id INT PRIMARY KEY, code INT REFERENCES ${p}u (code) ON UPDATE SET NULL ON DELETE CASCADE,
      held INT REFERENCES ${p}u (code) DEFERRABLE INITIALLY DEFERRED)`);
  const id = (): number => random.between(1, 12);
  const one = (): string =>
    random.pick([
      `INSERT INTO ${p} VALUES (${id()})`,
      `INSERT INTO ${c} VALUES (${id()}, ${id()})`,
      `INSERT INTO ${c}d VALUES (${id()}, ${id()}, ${id()})`,
      `UPDATE ${c} SET pid = ${id()} WHERE id = ${id()}`,
      `DELETE FROM ${p} WHERE id = ${id()}`,
      `DELETE FROM ${c} WHERE id BETWEEN ${id()} AND ${id()}`,
      `DELETE FROM ${c}d WHERE id > ${id()}`,
      `INSERT INTO ${p}u VALUES (${id()}, ${id()})`,
      `INSERT INTO ${p}u VALUES (${id()}, ${id()}) ON CONFLICT (id) DO UPDATE SET code = excluded.code`,
      `UPDATE ${p}u SET code = ${id()} WHERE id = ${id()}`,
      `DELETE FROM ${p}u WHERE id = ${id()}`,
      `INSERT INTO ${c}u VALUES (${id()}, ${id()})`,
      `UPDATE ${c}u SET code = ${id()} WHERE id = ${id()}`,
      `INSERT INTO ${c}v VALUES (${id()}, ${id()}, ${id()})`,
      `DELETE FROM ${c}v WHERE id > ${id()}`,
      `DELETE FROM ${c}u WHERE id > ${id()}`,
    ]);
  const text = (): string => {
    if (random.chance(0.5)) return one();
    const body = Array.from({ length: random.between(1, 4) }, one);
    return `BEGIN; ${body.join("; ")}; COMMIT`;
  };
  const seen = new Set<string>();
  for (let round = 0; round < 30; round += 1) {
    const answers = await Promise.all(Array.from({ length: 8 }, () => engine.ask(text())));
    for (const { error } of answers) seen.add(error?.code ?? "done");
    for (const [child, column, parent, key] of [
      [c, "pid", p, "id"],
      [`${c}d`, "cid", c, "id"],
      [`${c}d`, "pid", p, "id"],
      [`${c}u`, "code", `${p}u`, "code"],
      [`${c}v`, "code", `${p}u`, "code"],
      [`${c}v`, "held", `${p}u`, "code"],
    ]) {
      const orphans = `SELECT count(*) FROM ${child} x WHERE ${column} IS NOT NULL AND NOT EXISTS (SELECT 1 FROM ${parent} y WHERE y.${key} = x.${column})`;
      expect([round, child, column, await rows(orphans)]).toEqual([round, child, column, [[0]]]);
    }
  }
  expect(seen).toContain("FOREIGN_KEY_VIOLATION");
  for (const known of ["done", "DUPLICATE_KEY", "FOREIGN_KEY_VIOLATION", "SERIALIZATION_FAILURE"]) {
    seen.delete(known);
  }
  expect([...seen]).toEqual([]);
});
