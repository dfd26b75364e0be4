/**
 * Tests EXCLUDE constraints: the rows that they reject, in memory and on disk, within a statement
 * and between transactions, and how a constraint is added to a table that has rows.
 */
import { expect, test } from "bun:test";
import { bunDisk } from "../../../src/base/bun_disk.ts";
import { FullDisk } from "../../support/full_disk.ts";
import { testThoroughly } from "../../support/requirements.ts";
import { TestEngine } from "../../support/sql_engine.ts";

const STAYS = `CREATE NAMESPACE app; CREATE EXTENSION IF NOT EXISTS btree_gist;
  CREATE TABLE app.stays (id INT PRIMARY KEY, room INT, during TSRANGE, note TEXT,
    CONSTRAINT no_double EXCLUDE USING gist (during WITH &&, room WITH =))`;

async function opened(sql = STAYS): Promise<TestEngine> {
  const engine = await TestEngine.open();
  await engine.run(sql);
  return engine;
}

/** Returns a range of days in January. */
function days(from: number, to: number, bounds = "[)"): string {
  const day = (of: number): string => `'2024-01-${String(of).padStart(2, "0")}'`;
  return `tsrange(${day(from)}, ${day(to)}, '${bounds}')`;
}

async function codeOf(engine: TestEngine, sql: string): Promise<string | undefined> {
  return (await engine.ask(sql)).error?.code;
}

const VIOLATION = "EXCLUSION_VIOLATION";

test("a range that overlaps another of the same room is refused, on disk as in memory", async () => {
  await using engine = await opened();
  await engine.run(`INSERT INTO app.stays VALUES (1, 1, ${days(3, 5)}), (2, 1, ${days(5, 9)}),
    (3, 2, ${days(1, 20)}), (4, 1, 'empty'), (5, 1, NULL), (6, NULL, ${days(1, 9)})`);
  for (let round = 0; round < 2; round += 1) {
    for (const range of [days(3, 4), days(4, 6), days(1, 30), days(8, 9), days(1, 3, "[]")]) {
      const sql = `INSERT INTO app.stays VALUES (10, 1, ${range})`;
      expect({ range, code: await codeOf(engine, sql) }).toEqual({ range, code: VIOLATION });
    }
    expect(await codeOf(engine, "INSERT INTO app.stays VALUES (10, 2, '(,)')")).toBe(VIOLATION);
    const fitting = `(10, 1, ${days(1, 3)}), (11, 1, ${days(9, 12)}), (12, 3, '(,)'), (13, NULL, '(,)'), (14, 1, 'empty'), (15, 1, NULL)`;
    await engine.run(`INSERT INTO app.stays VALUES ${fitting}`);
    await engine.run("DELETE FROM app.stays WHERE id >= 10");
    await engine.run("STORAGE FLUSH TABLE app.stays");
  }
  const { error } = await engine.ask(`INSERT INTO app.stays VALUES (10, 1, ${days(4, 6)})`);
  expect(error?.message).toContain(
    'key (room, during) = (1, ["2024-01-04 00:00:00","2024-01-06 00:00:00")) overlaps a row under exclusion constraint "no_double"',
  );
  await engine.restart();
  expect(await codeOf(engine, `UPDATE app.stays SET room = 2 WHERE id = 1`)).toBe(VIOLATION);
});

test("rows of one statement are compared at its end", async () => {
  await using engine = await opened();
  const twice = `INSERT INTO app.stays VALUES (1, 1, ${days(1, 30)}), (2, 1, ${days(2, 3)}), (3, 1, ${days(8, 9)})`;
  expect(await codeOf(engine, twice)).toBe(VIOLATION);
  await engine.run(`INSERT INTO app.stays VALUES (1, 1, ${days(1, 3)}), (2, 1, ${days(3, 6)})`);
  // The statement exchanges the ranges of two rows.
  await engine.run(
    `UPDATE app.stays SET during = CASE id WHEN 1 THEN ${days(3, 6)} ELSE ${days(1, 3)} END WHERE true`,
  );
  await engine.run(`UPDATE app.stays SET during = during * ${days(4, 6)} WHERE id = 1`);
  await engine.run(`INSERT INTO app.stays VALUES (3, 1, ${days(3, 4)})`);
  expect(await codeOf(engine, `UPDATE app.stays SET during = ${days(1, 5)} WHERE id = 3`)).toBe(
    VIOLATION,
  );
  expect(await engine.rows("SELECT id FROM app.stays ORDER BY during")).toEqual([[2], [3], [1]]);
});

test("of random stays, exactly those are accepted that overlap no other", async () => {
  await using engine = await opened();
  const kept = new Map<number, { room: number; from: number; to: number }>();
  let state = 7;
  const below = (limit: number): number => {
    state = (state * 1_103_515_245 + 12_345) % 2_147_483_648;
    return Math.floor((state / 2_147_483_648) * limit);
  };
  for (let step = 0; step < 400; step += 1) {
    const id = below(40);
    const from = 1 + below(27);
    const stay = { room: below(2), from, to: from + 1 + below(4) };
    if (step % 90 === 89) await engine.run("STORAGE FLUSH TABLE app.stays");
    if (kept.has(id) && below(2) === 0) {
      await engine.run(`DELETE FROM app.stays WHERE id = ${id}`);
      kept.delete(id);
      continue;
    }
    const overlaps = [...kept].some(
      ([other, { from: start, room, to }]) =>
        other !== id && room === stay.room && start < stay.to && stay.from < to,
    );
    const values = `${stay.room}, ${days(stay.from, stay.to)}`;
    const sql = kept.has(id)
      ? `UPDATE app.stays SET (room, during) = (${values}) WHERE id = ${id}`
      : `INSERT INTO app.stays VALUES (${id}, ${values})`;
    expect({ step, code: await codeOf(engine, sql) }).toEqual({
      step,
      code: overlaps ? VIOLATION : undefined,
    });
    if (!overlaps) kept.set(id, stay);
  }
  expect(kept.size).toBeGreaterThan(5);
});

test("transactions that take overlapping ranges are compared at COMMIT", async () => {
  await using engine = await opened();
  const begun = (): ((sql: string) => Promise<string | undefined>) => {
    const { id } = engine.database.sql.openTransaction(engine.principal, { isReadOnly: false });
    return async (sql) => (await engine.ask(sql, { transaction: id })).error?.code;
  };
  const [first, second, third] = [begun(), begun(), begun()];
  expect(await first(`INSERT INTO app.stays VALUES (1, 1, ${days(1, 5)})`)).toBeUndefined();
  expect(await second(`INSERT INTO app.stays VALUES (2, 1, ${days(4, 9)})`)).toBeUndefined();
  expect(await third(`INSERT INTO app.stays VALUES (3, 1, ${days(5, 7)})`)).toBeUndefined();
  expect(await first("COMMIT")).toBeUndefined();
  expect(await second("COMMIT")).toBe("SERIALIZATION_FAILURE");
  expect(await third("COMMIT")).toBeUndefined();
  const own = begun();
  expect(await own(`INSERT INTO app.stays VALUES (4, 1, ${days(6, 8)})`)).toBeUndefined();
  expect(await own("COMMIT")).toBe(VIOLATION);
  const moved = begun();
  await moved(`UPDATE app.stays SET during = ${days(1, 3)} WHERE id = 1`);
  await moved(`INSERT INTO app.stays VALUES (4, 1, ${days(3, 5)})`);
  expect(await moved("COMMIT")).toBeUndefined();
  expect(await engine.rows("SELECT id FROM app.stays ORDER BY during")).toEqual([[1], [4], [3]]);
});

test("a transaction that defines a table or a constraint is compared as well", async () => {
  await using engine = await opened();
  const made = `BEGIN; CREATE TABLE app.made (id INT PRIMARY KEY, r INT4RANGE, EXCLUDE USING gist (r WITH &&));
    INSERT INTO app.made VALUES (1, '[1,5)'), (2, '[%,9)'); COMMIT`;
  expect(await codeOf(engine, made.replace("%", "4"))).toBe(VIOLATION);
  await engine.run(made.replace("%", "5"));
  expect(await codeOf(engine, "INSERT INTO app.made VALUES (3, '[0,2)')")).toBe(VIOLATION);
  await engine.run(`BEGIN; ALTER TABLE app.made DROP CONSTRAINT made_r_excl;
    INSERT INTO app.made VALUES (3, '[0,2)'); COMMIT`);
  const added = "ALTER TABLE app.made ADD EXCLUDE USING gist (r WITH &&)";
  expect(await codeOf(engine, `BEGIN; ${added}; COMMIT`)).toBe("UNSUPPORTED_FEATURE");
  await engine.run(`DELETE FROM app.made WHERE id = 3; ${added}`);
  expect(await codeOf(engine, "INSERT INTO app.made VALUES (3, '[0,2)')")).toBe(VIOLATION);
  const migration = `BEGIN; CREATE TABLE app.later (id INT PRIMARY KEY, r INT4RANGE);
    INSERT INTO app.later VALUES (1, '[1,5)'), (2, '[%,9)');
    ALTER TABLE app.later ADD EXCLUDE USING gist (r WITH &&); COMMIT`;
  expect(await codeOf(engine, migration.replace("%", "4"))).toBe(VIOLATION);
  await engine.run(migration.replace("%", "5"));
  expect(await codeOf(engine, "INSERT INTO app.later VALUES (3, '[0,2)')")).toBe(VIOLATION);
  await engine.run("CREATE TABLE app.copy (LIKE app.later INCLUDING ALL)");
  await engine.run("INSERT INTO app.copy VALUES (1, '[1,5)'), (2, 'empty'), (3, 'empty')");
  expect(await codeOf(engine, "INSERT INTO app.copy VALUES (4, '[0,2)')")).toBe(VIOLATION);
});

test("expressions and conditions decide what is compared", async () => {
  await using engine = await opened(`CREATE NAMESPACE app;
    CREATE TABLE app.shifts (id INT PRIMARY KEY, person TEXT, begins DATE, ends DATE, cancelled BOOLEAN DEFAULT FALSE,
      EXCLUDE USING gist (person WITH =, daterange(begins, ends, '[]') WITH &&) WHERE (NOT cancelled))`);
  await engine.run("INSERT INTO app.shifts VALUES (1, 'ann', '2024-01-01', '2024-01-05')");
  const overlapping = "'ann', '2024-01-05', '2024-01-07'";
  expect(await codeOf(engine, `INSERT INTO app.shifts VALUES (2, ${overlapping})`)).toBe(VIOLATION);
  await engine.run(`INSERT INTO app.shifts VALUES (2, ${overlapping}, TRUE)`);
  const revived = "UPDATE app.shifts SET cancelled = FALSE WHERE id = 2";
  expect(await codeOf(engine, revived)).toBe(VIOLATION);
  await engine.run(`UPDATE app.shifts SET cancelled = TRUE WHERE id = 1; ${revived}`);
  const [[definition] = []] = await engine.rows(
    "SELECT definition FROM system.indexes WHERE index_name LIKE 'shifts%excl'",
  );
  expect(definition).toBe(
    "ALTER TABLE app.shifts ADD CONSTRAINT shifts_person_daterange_excl EXCLUDE USING gist (person WITH =, (daterange(begins, ends, '[]')) WITH &&) WHERE (NOT cancelled)",
  );
});

test("a constraint is added to a table with rows only if none of them overlap", async () => {
  await using engine = await opened(`CREATE NAMESPACE app;
    CREATE TABLE app.stays (id INT PRIMARY KEY, room INT, during TSRANGE);
    INSERT INTO app.stays VALUES (1, 1, ${days(1, 9)}), (2, 1, ${days(2, 3)}), (4, 1, 'empty')`);
  await engine.run("STORAGE FLUSH TABLE app.stays");
  await engine.run(`INSERT INTO app.stays VALUES (3, 2, ${days(2, 3)}), (5, 1, 'empty')`);
  const add =
    "ALTER TABLE app.stays ADD CONSTRAINT apart EXCLUDE USING gist (room WITH =, during WITH &&)";
  expect(await codeOf(engine, add)).toBe(VIOLATION);
  await engine.run(`UPDATE app.stays SET during = ${days(9, 12)} WHERE id = 2; ${add}`);
  const overlap = `INSERT INTO app.stays VALUES (6, 1, ${days(11, 13)})`;
  expect(await codeOf(engine, overlap)).toBe(VIOLATION);
  await engine.run(`ALTER TABLE app.stays DROP CONSTRAINT apart; ${overlap}`);
});

testThoroughly("a large statement is compared like a small one", async () => {
  await using engine = await opened(`CREATE NAMESPACE app;
    CREATE TABLE app.slots (id INT PRIMARY KEY, r INT8RANGE, EXCLUDE USING gist (r WITH &&))`);
  const insert = (from: number, to: number, r: string): string =>
    `INSERT INTO app.slots SELECT g, ${r} FROM generate_series(${from}, ${to}) g`;
  await engine.run(insert(1, 6000, "int8range(g, g + 1)"));
  expect(await codeOf(engine, insert(10_000, 16_000, "int8range(g - 4001, g - 4000)"))).toBe(
    VIOLATION,
  );
  expect(await codeOf(engine, insert(10_000, 16_000, "int8range(g, g + 2)"))).toBe(VIOLATION);
  // The statement moves the range of each row to the range of the next row.
  await engine.run("UPDATE app.slots SET r = int8range(lower(r) + 1, upper(r) + 1) WHERE true");
  await engine.run(insert(10_000, 16_000, "int8range(g, g + 1)"));
  expect(await engine.rows("SELECT count(*), min(lower(r)) FROM app.slots")).toEqual([[12_001, 2]]);
});

const SLOTS = `CREATE NAMESPACE app;
  CREATE TABLE app.slots (id INT PRIMARY KEY, r INT4RANGE, CONSTRAINT apart EXCLUDE USING gist (r WITH &&))`;

test("a deleted range does not hide a longer one that replaced it", async () => {
  await using engine = await opened(SLOTS);
  const flush = "STORAGE FLUSH TABLE app.slots";
  const replace =
    "BEGIN; DELETE FROM app.slots WHERE id = 1; INSERT INTO app.slots VALUES (2, '[0,100)'); COMMIT";
  for (const between of [[], [flush]]) {
    for (const after of [[], [flush]]) {
      const steps = ["INSERT INTO app.slots VALUES (1, '[50,60)')", ...between, replace, ...after];
      for (const step of steps) await engine.run(step);
      for (const r of ["[70,80)", "[50,60)", "[99,)", "(,1)"]) {
        const code = await codeOf(engine, `INSERT INTO app.slots VALUES (3, '${r}')`);
        expect({ steps, r, code }).toEqual({ steps, r, code: VIOLATION });
      }
      await engine.run("DELETE FROM app.slots WHERE true");
    }
  }
});

test("a range that was deleted before the constraint existed hides no other one", async () => {
  await using engine = await opened(SLOTS);
  await engine.run(`ALTER TABLE app.slots DROP CONSTRAINT apart;
    INSERT INTO app.slots VALUES (1, '[0,100)'), (2, '[50,60)')`);
  await engine.run("STORAGE FLUSH TABLE app.slots");
  await engine.run(`DELETE FROM app.slots WHERE id = 2;
    ALTER TABLE app.slots ADD CONSTRAINT apart EXCLUDE USING gist (r WITH &&)`);
  for (let round = 0; round < 2; round += 1) {
    expect(await codeOf(engine, "INSERT INTO app.slots VALUES (3, '[70,80)')")).toBe(VIOLATION);
    await engine.restart();
  }
});

testThoroughly(
  "thousands of ranges change their keys, or are replaced by others, in one commit",
  async () => {
    await using engine = await opened(SLOTS);
    const rows = "SELECT g, int4range(g, g + 1) FROM generate_series(1, 3000) g";
    await engine.run(`INSERT INTO app.slots ${rows}`);
    await engine.run("UPDATE app.slots SET id = id + 10000 WHERE true");
    await engine.run(
      `BEGIN; DELETE FROM app.slots WHERE true; INSERT INTO app.slots ${rows}; COMMIT`,
    );
    expect(await codeOf(engine, "INSERT INTO app.slots VALUES (0, '[9,10)')")).toBe(VIOLATION);
    expect(await engine.rows("SELECT count(*) FROM app.slots")).toEqual([[3000]]);
  },
);

test("ranges are found in order after commits that the log could not store", async () => {
  const disk = new FullDisk(bunDisk);
  await using engine = await TestEngine.open({ disk });
  await engine.run(`${SLOTS}; INSERT INTO app.slots VALUES (1, '[5,9)')`);
  disk.isFull = true;
  const failed = await Promise.all([
    codeOf(engine, "INSERT INTO app.slots VALUES (2, '[0,1)')"),
    codeOf(engine, "INSERT INTO app.slots VALUES (3, '[20,30)')"),
  ]);
  expect(failed).toEqual(["DISK_FULL", "DISK_FULL"]);
  await engine.run("INSERT INTO app.slots VALUES (4, NULL)");
  expect(await codeOf(engine, "INSERT INTO app.slots VALUES (5, '[1,6)')")).toBe(VIOLATION);
});

test("rows of different users are not compared, neither by a statement nor by a build", async () => {
  await using engine = await opened(`CREATE NAMESPACE app; CREATE USER ann PASSWORD 'ann-secret-1';
    CREATE USER TABLE app.own (id INT PRIMARY KEY, r INT4RANGE, CONSTRAINT apart EXCLUDE USING gist (r WITH &&))`);
  const insert = "INSERT INTO app.own VALUES (1, '[1,5)')";
  await engine.run(insert);
  engine.userId = "ann";
  await engine.run(insert);
  const second = "INSERT INTO app.own VALUES (2, '[4,9)')";
  expect(await codeOf(engine, second)).toBe(VIOLATION);
  engine.userId = "root";
  await engine.run("ALTER TABLE app.own DROP CONSTRAINT apart");
  const add = "ALTER TABLE app.own ADD CONSTRAINT apart EXCLUDE USING gist (r WITH &&)";
  await engine.run(add);
  await engine.run("ALTER TABLE app.own DROP CONSTRAINT apart");
  engine.userId = "ann";
  await engine.run(second);
  engine.userId = "root";
  const { error } = await engine.ask(add);
  expect(error?.code).toBe(VIOLATION);
  // The message does not reveal another user's ranges.
  expect(error?.message).toContain("one of a user's rows overlaps another row");
});

test("other forms of EXCLUDE are refused by name", async () => {
  await using engine = await opened();
  const refused = async (parts: string): Promise<string | undefined> =>
    (
      await engine.ask(
        `CREATE TABLE app.x (id INT PRIMARY KEY, a INT, b BOX, m INT4MULTIRANGE, EXCLUDE ${parts})`,
      )
    ).error?.message;
  expect(await refused("(a WITH =)")).toContain("EXCLUDE with the index method btree");
  expect(await refused("USING gist (a WITH <>)")).toContain("EXCLUDE with the operator");
  expect(await refused("USING gist (b WITH &&)")).toContain("EXCLUDE with values of type box");
  expect(await refused("USING gist (a WITH =)")).toContain("it compares 0 ranges using &&");
  expect(await refused("USING gist (a WITH &&)")).toContain("the type of this element is integer");
  expect(await refused("USING gist (m WITH &&)")).toContain(
    "the type of this element is int4multirange",
  );
});

test("statements that cannot handle an EXCLUDE constraint tell what to do", async () => {
  await using engine = await opened();
  const hintOf = async (sql: string): Promise<string | undefined> => {
    const { error } = await engine.ask(sql);
    return `${error?.code}: ${error?.hint}`;
  };
  expect(
    await hintOf(
      "INSERT INTO app.stays (id) VALUES (1) ON CONFLICT ON CONSTRAINT no_double DO NOTHING",
    ),
  ).toBe(
    "UNSUPPORTED_FEATURE: omit ON CONFLICT, and handle the error with the reason exclusion in the application",
  );
  expect(await hintOf("DROP INDEX app.no_double")).toBe(
    "DEPENDENT_OBJECTS: use ALTER TABLE app.stays DROP CONSTRAINT no_double",
  );
  await engine.run(
    "ALTER TABLE app.stays ADD EXCLUDE USING gist (tsrange(lower(during), NULL) WITH &&)",
  );
  expect(await hintOf("ALTER TABLE app.stays ALTER COLUMN during TYPE TEXT")).toBe(
    "DEPENDENT_OBJECTS: drop the constraint first, then create it again",
  );
  expect(await hintOf("ALTER TABLE app.stays ADD EXCLUDE USING gist (room WITH &&)")).toBe(
    "INVALID_DEFINITION: compare a range, such as tsrange(starts, ends), WITH &&",
  );
});
