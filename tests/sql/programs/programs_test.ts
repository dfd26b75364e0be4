/**
 * Tests calls of programs as statements: their results, effects and errors, and how the calls end.
 */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { systemClock } from "../../../src/base/clock.ts";
import { TestEngine } from "../../support/sql_engine.ts";
import { shareOf } from "../../support/thoroughness.ts";
import { until } from "../../support/until.ts";

let engine: TestEngine;

beforeAll(async () => {
  engine = await TestEngine.open();
  await engine.run(
    `CREATE TABLE acc (id INT PRIMARY KEY, bal INT NOT NULL CHECK (bal >= 0));
     INSERT INTO acc VALUES (1, 100), (2, 50);
     CREATE FUNCTION move(a INT, b INT, amount INT) RETURNS INT LANGUAGE plpgsql AS $$
     DECLARE rest INT;
     BEGIN
       UPDATE acc SET bal = bal + amount WHERE id = b;
       UPDATE acc SET bal = bal - amount WHERE id = a RETURNING bal INTO rest;
       IF NOT FOUND THEN
         RAISE EXCEPTION 'no account %', a USING HINT = 'create it';
       END IF;
       RAISE NOTICE 'moved %', amount;
       RETURN rest;
     END $$`,
  );
});
afterAll(() => engine[Symbol.asyncDispose]());

/** Returns the notices of a DO block. */
async function noticesOf(block: string): Promise<readonly string[]> {
  const { error, results } = await engine.ask(`DO $body$ ${block} $body$`);
  if (error !== undefined) throw error;
  return results[0]?.notices ?? [];
}

async function failure(sql: string): Promise<string> {
  const { error } = await engine.ask(sql);
  return error === undefined ? "none" : `${error.code}: ${error.message} | ${error.hint ?? ""}`;
}

/** Opens an engine with programs that practically never end. */
async function withoutEnd(): Promise<TestEngine> {
  const other = await TestEngine.open({ clock: systemClock });
  await other.run(
    `CREATE FUNCTION spread(n INT) RETURNS INT LANGUAGE plpgsql AS $$ BEGIN
       IF n < 2 THEN RETURN n; END IF; RETURN spread(n - 1) + spread(n - 2); END $$;
     CREATE FUNCTION retry(n INT) RETURNS INT LANGUAGE plpgsql AS $$ DECLARE x INT; BEGIN
       EXECUTE 'SELECT retry($1)' INTO x USING n + 1; RETURN x;
       EXCEPTION WHEN OTHERS THEN RETURN retry(n + 1); END $$;
     CREATE FUNCTION counted(n INT) RETURNS BIGINT LANGUAGE plpgsql AS $$ BEGIN
       RETURN (SELECT count(*) FROM generate_series(n, 9000000000)); END $$;
     CREATE FUNCTION short(n INT) RETURNS INT LANGUAGE plpgsql AS $$ BEGIN
       FOR i IN 1..1000 LOOP n := n + 1; END LOOP; RETURN n; END $$;
     CREATE FUNCTION endless() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
       LOOP BEGIN PERFORM 1; EXCEPTION WHEN OTHERS THEN NULL; END; END LOOP; END $$;
     CREATE TABLE watched (id INT PRIMARY KEY);
     CREATE TRIGGER watch BEFORE INSERT ON watched FOR EACH ROW EXECUTE FUNCTION endless()`,
  );
  return other;
}

async function balances(): Promise<unknown> {
  return await engine.rows("SELECT id, bal FROM acc ORDER BY id");
}

describe("effects", () => {
  test("a call by itself changes rows in one commit", async () => {
    const { results } = await engine.ask("SELECT move(1, 2, 30), move(1, 2, 1) AS again");
    expect(results[0]?.rows).toEqual([[70, 69]]);
    expect(results[0]?.notices).toEqual(["NOTICE: moved 30", "NOTICE: moved 1"]);
    expect(await balances()).toEqual([
      [1, 69],
      [2, 81],
    ]);
    await engine.run("SELECT move(2, 1, 31)");
  });

  test("a failing program leaves nothing", async () => {
    const before = await balances();
    expect(await failure("SELECT move(9, 2, 30)")).toBe(
      "RAISE_EXCEPTION: no account 9 | create it; in function default.move(integer, integer, integer) line 7 at RAISE",
    );
    expect(await failure("SELECT move(1, 2, 500)")).toStartWith("CHECK_VIOLATION");
    expect(await failure("SELECT move(1, 2, 10), 1 / 0")).toStartWith("DIVISION_BY_ZERO");
    expect(await balances()).toEqual(before);
  });

  test("a program takes part in the transaction of its caller", async () => {
    const before = await balances();
    await engine.run("BEGIN; SELECT move(1, 2, 10); ROLLBACK");
    expect(await balances()).toEqual(before);
    await engine.run("BEGIN; SELECT move(1, 2, 10); SELECT move(2, 1, 10); COMMIT");
    expect(await balances()).toEqual(before);
  });

  test("a query over a table calls programs that only read", async () => {
    await engine.run(
      `CREATE FUNCTION doubled(k INT) RETURNS BIGINT LANGUAGE plpgsql STABLE AS $$
       BEGIN RETURN (SELECT 2 * sum(bal) FROM acc WHERE id = k); END $$`,
    );
    const sql = "SELECT id, doubled(id) FROM acc WHERE doubled(id) > 50 ORDER BY id";
    expect(await engine.rows(sql)).toEqual([
      [1, 200],
      [2, 100],
    ]);
    expect(await failure("SELECT move(id, 2, 1) FROM acc")).toMatch(
      /^INVALID_OPERATION: Cannot change rows in a function that is called by a query.*on its own/,
    );
  });

  test("a program may define tables, and use them at once", async () => {
    const seen = await noticesOf(
      `DECLARE n INT; BEGIN
         EXECUTE 'CREATE TABLE made (a INT PRIMARY KEY)';
         EXECUTE 'INSERT INTO made VALUES ($1), ($2)' USING 1, 2;
         EXECUTE 'SELECT count(*) FROM made' INTO n;
         RAISE NOTICE '%', n;
       END`,
    );
    expect(seen).toEqual(["NOTICE: 2"]);
    expect(await engine.rows("SELECT a FROM made ORDER BY a")).toEqual([[1], [2]]);
  });
});

describe("a program that writes runs once, whatever statement calls it", () => {
  beforeAll(async () => {
    await engine.run(
      `CREATE TABLE written (n INT);
       CREATE FUNCTION write_one(n INT) RETURNS TEXT LANGUAGE plpgsql AS $$
       BEGIN INSERT INTO written VALUES (n); RETURN 'wrote ' || n; END $$`,
    );
  });

  test.each([
    ["SELECT write_one(1)", [["wrote 1"]]],
    ["DECLARE c CURSOR WITH HOLD FOR SELECT write_one(1); FETCH c", [["wrote 1"]]],
    [
      "DECLARE c SCROLL CURSOR WITH HOLD FOR SELECT write_one(1); FETCH c; FETCH FIRST c",
      [["wrote 1"]],
    ],
    ["SELECT write_one(1) FOR UPDATE", [["wrote 1"]]],
    ["PREPARE p AS SELECT write_one($1); EXECUTE p (1)", [["wrote 1"]]],
    ["EXPLAIN ANALYZE SELECT write_one(1)", undefined],
    ["DO $$ DECLARE t TEXT; BEGIN SELECT write_one(1) INTO t FOR UPDATE; END $$", undefined],
  ])("%s", async (sql, rows) => {
    await engine.run("DELETE FROM written WHERE true");
    const { error, results } = await engine.ask(`${sql}; SELECT n FROM written`);
    expect(error).toBeUndefined();
    expect(results.at(-1)?.rows).toEqual([[1]]);
    if (rows !== undefined) expect(results.at(-2)?.rows).toEqual(rows);
  });

  test("EXPLAIN and a cursor that is refused run no program", async () => {
    await engine.run("DELETE FROM written WHERE true");
    await engine.run("EXPLAIN SELECT write_one(1)");
    expect(await failure("DECLARE c CURSOR FOR SELECT write_one(1)")).toStartWith(
      "TRANSACTION_REQUIRED",
    );
    expect(await engine.rows("SELECT n FROM written")).toEqual([]);
  });
});

describe("variables", () => {
  test.each([
    ["DECLARE a INT[] := '{1,2}'; BEGIN a[3] := 5; RAISE NOTICE '%', a; END", "{1,2,5}"],
    ["DECLARE r acc; BEGIN r.id := 7; RAISE NOTICE '%', r; END", "(7,)"],
    ["DECLARE r RECORD; BEGIN SELECT 1 AS x INTO r; RAISE NOTICE '%', r.x + 1; END", "2"],
    ["DECLARE b acc.bal%TYPE := '12'; c b%TYPE; BEGIN c := b; RAISE NOTICE '%', c; END", "12"],
    [
      "<<l>> DECLARE i INT := 1; BEGIN DECLARE i INT := 2; BEGIN RAISE NOTICE '%', l.i; END; END",
      "1",
    ],
    [
      "DECLARE t TEXT; n INT; BEGIN SELECT 'a', 2 INTO t, n; RAISE NOTICE '% %% %', t, n; END",
      "a % 2",
    ],
    [
      "DECLARE x INT; y INT; BEGIN FOREACH x, y IN ARRAY ARRAY[ROW(1, 2)] LOOP RAISE NOTICE '%', y; END LOOP; END",
      "2",
    ],
    [
      "DECLARE i INT; BEGIN FOR i IN REVERSE 9..1 BY 4 LOOP CONTINUE WHEN i = 9; RAISE NOTICE '%', i; EXIT; END LOOP; END",
      "5",
    ],
    [
      "DECLARE c CURSOR (k INT) FOR SELECT id FROM acc WHERE id > k; n INT; BEGIN OPEN c(1); FETCH c INTO n; RAISE NOTICE '%', n; CLOSE c; END",
      "2",
    ],
    ["BEGIN CASE 3 WHEN 1, 2 THEN NULL; WHEN 3 THEN RAISE NOTICE 'three'; END CASE; END", "three"],
    [
      "DECLARE n BIGINT; BEGIN UPDATE acc SET bal = bal WHERE id = 1; GET DIAGNOSTICS n = ROW_COUNT; RAISE NOTICE '%', n; END",
      "1",
    ],
  ])("%s", async (block, text) => {
    expect(await noticesOf(block)).toEqual([`NOTICE: ${text}`]);
  });

  test("a name that is also a column is refused, unless the body chooses", async () => {
    const body = "DECLARE id INT := 1; n INT; BEGIN SELECT count(*) INTO n FROM acc WHERE id = id;";
    expect(await failure(`DO $$ ${body} END $$`)).toStartWith("AMBIGUOUS_COLUMN");
    const said = `${body} RAISE NOTICE '%', n; END`;
    expect(await noticesOf(`#variable_conflict use_column\n${said}`)).toEqual(["NOTICE: 2"]);
    expect(await noticesOf(`#variable_conflict use_variable\n${said}`)).toEqual(["NOTICE: 2"]);
  });

  test("output parameters, polymorphic types and records", async () => {
    await engine.run(
      `CREATE FUNCTION pair_of(a INT, OUT x INT, OUT y TEXT) LANGUAGE plpgsql AS $$
       BEGIN $2 := a + 1; y := 'y' || a; END $$;
       CREATE FUNCTION first_of(a ANYARRAY) RETURNS ANYELEMENT LANGUAGE plpgsql AS $$
       DECLARE one ALIAS FOR $1; BEGIN RETURN one[1]; END $$;
       CREATE FUNCTION few() RETURNS SETOF RECORD LANGUAGE plpgsql AS $$
       BEGIN RETURN QUERY SELECT 1, 'a'::TEXT; RETURN QUERY EXECUTE 'SELECT $1, $2' USING 2, 'b'::TEXT; END $$`,
    );
    expect(await engine.rows("SELECT * FROM pair_of(1)")).toEqual([[2, "y1"]]);
    expect(await engine.rows("SELECT (pair_of(2)).y")).toEqual([["y2"]]);
    expect(await engine.rows("SELECT first_of(ARRAY['q']), first_of(ARRAY[4])")).toEqual([
      ["q", 4],
    ]);
    expect(await engine.rows("SELECT * FROM few() AS s (n INT, t TEXT)")).toEqual([
      [1, "a"],
      [2, "b"],
    ]);
  });
});

describe("handlers", () => {
  test("undo what their block has changed", async () => {
    const before = await balances();
    const seen = await noticesOf(
      `BEGIN
         BEGIN
           UPDATE acc SET bal = 0 WHERE id = 2;
           INSERT INTO acc VALUES (1, 1);
         EXCEPTION WHEN unique_violation THEN RAISE NOTICE '%', SQLSTATE;
         END;
         BEGIN
           PERFORM 1 / (SELECT 0);
         EXCEPTION WHEN no_data_found OR division_by_zero THEN RAISE NOTICE 'divided';
         END;
         RAISE NOTICE '%', (SELECT bal FROM acc WHERE id = 2);
       END`,
    );
    expect(seen).toEqual(["NOTICE: 23505", "NOTICE: divided", "NOTICE: 50"]);
    expect(await balances()).toEqual(before);
  });

  test.each([
    ["INSERT INTO acc VALUES (7, NULL)", "not_null_violation"],
    ["INSERT INTO acc VALUES (7, -1)", "check_violation"],
    ["PERFORM nope FROM acc", "undefined_column"],
    ["PERFORM 1 FROM nope", "undefined_table"],
    ["PERFORM nope(1)", "undefined_function"],
    ["PERFORM 'x'::INT", "invalid_text_representation"],
    ["RAISE EXCEPTION 'x'", "raise_exception"],
    ["RAISE unique_violation", "unique_violation"],
    ["RAISE EXCEPTION USING ERRCODE = '22012'", "division_by_zero"],
    ["RAISE SQLSTATE 'U0001'", "SQLSTATE 'U0001'"],
    ["ASSERT false", "assert_failure"],
    ["PERFORM 2147483647 + 1", "numeric_value_out_of_range"],
  ])("catch %s as %s", async (statement, condition) => {
    const block = `BEGIN ${statement}; EXCEPTION WHEN ${condition} THEN RAISE NOTICE 'caught'; END`;
    expect(await noticesOf(block)).toEqual(["NOTICE: caught"]);
  });

  test("OTHERS leaves out a failed assertion", async () => {
    const block = "BEGIN ASSERT false, 'wrong'; EXCEPTION WHEN OTHERS THEN NULL; END";
    expect(await failure(`DO $$ ${block} $$`)).toStartWith("RAISE_EXCEPTION: wrong");
  });
});

describe("procedures", () => {
  test("CALL returns the outputs, and a body stores them in variables", async () => {
    await engine.run(
      `CREATE PROCEDURE put(k INT, INOUT total BIGINT, OUT said TEXT) LANGUAGE plpgsql AS $$
       BEGIN
         INSERT INTO acc VALUES (k, total);
         SELECT sum(bal) INTO total FROM acc;
         said := 'put ' || k;
       END $$;
       CREATE PROCEDURE drop_acc(k INT) LANGUAGE sql AS $$
         UPDATE acc SET bal = 0 WHERE id = k; DELETE FROM acc WHERE id = k $$`,
    );
    expect(await engine.rows("CALL put(3, 5, NULL)")).toEqual([[155, "put 3"]]);
    const seen = await noticesOf(
      `DECLARE t BIGINT := 7; s TEXT;
       BEGIN CALL put(4, t, s); RAISE NOTICE '% %', t, s; CALL drop_acc(3); CALL drop_acc(4); END`,
    );
    expect(seen).toEqual(["NOTICE: 162 put 4"]);
    expect(await balances()).toEqual([
      [1, 100],
      [2, 50],
    ]);
    expect(await failure("SELECT put(1, 2)")).toMatch(/is a procedure; use CALL \| write CALL/);
    expect(await failure("CALL move(1, 2, 3)")).toMatch(/it is a function/);
    expect(await failure("CALL nope()")).toStartWith("FUNCTION_NOT_FOUND");
    const refused = await failure("DO $$ BEGIN CALL put(5, 1 + 1, NULL); END $$");
    expect(refused).toMatch(/receives an output, so it must be a variable/);
    await engine.run("DROP PROCEDURE put; DROP PROCEDURE drop_acc(INT)");
  });
});

describe("ends", () => {
  test("an endless loop ends with its time limit, and no handler stops that", async () => {
    await using other = await TestEngine.open({ clock: systemClock });
    const body =
      "BEGIN LOOP BEGIN LOOP NULL; END LOOP; EXCEPTION WHEN OTHERS THEN NULL; END; END LOOP; END";
    const { error } = await other.ask(`DO $$ ${body} $$`, { timeoutMs: 50 });
    expect(error?.code).toBe("STATEMENT_TIMEOUT");
  });

  const ENDLESS = [
    "SELECT spread(60)",
    "SELECT retry(1)",
    "DO $$ BEGIN LOOP BEGIN LOOP NULL; END LOOP; EXCEPTION WHEN OTHERS THEN NULL; END; END LOOP; END $$",
    "INSERT INTO watched VALUES (1)",
  ];

  test.each(shareOf(ENDLESS, { oneOf: 2 }))("KILL QUERY and the time limit end %s", async (sql) => {
    await using other = await withoutEnd();
    expect((await other.ask(sql, { timeoutMs: 50 })).error?.code).toBe("STATEMENT_TIMEOUT");
    const asked = other.ask(sql, { timeoutMs: 30_000 });
    let id: unknown;
    await until(async () => {
      const running = await other.rows("SELECT query_id, sql FROM system.queries");
      id = running.find((row) => !String(row[1]).includes("system.queries"))?.[0];
      return id !== undefined;
    });
    await other.run(`KILL QUERY '${String(id)}'`);
    expect((await asked).error?.code).toBe("CANCELLED");
    expect(await other.rows("SELECT * FROM watched")).toEqual([]);
  });

  const GREEDY = [
    "SELECT spread(60 + x) FROM generate_series(1, 2) AS g(x)",
    "SELECT counted(x) FROM generate_series(1, 2) AS g(x)",
    "INSERT INTO watched SELECT sum(short(x)) FROM generate_series(1, 100000) AS g(x)",
  ];

  test.each(shareOf(GREEDY, { oneOf: 3 }))(
    "%s stops before other work has to wait for long",
    async (sql) => {
      await using other = await withoutEnd();
      expect((await other.ask(sql, { timeoutMs: 30_000 })).error?.code).toBe("LIMIT_EXCEEDED");
    },
  );

  test("the notices of a program have a limited length", async () => {
    const notices = await noticesOf(
      "BEGIN FOR i IN 1..50 LOOP RAISE NOTICE '%', repeat('x', 300000); END LOOP; END",
    );
    expect(notices.length).toBe(5);
    expect(notices.at(-1)).toBe("46 more notice(s)");
  });

  test("a recursion without end is refused", async () => {
    await engine.run(
      `CREATE FUNCTION deep(n INT) RETURNS INT LANGUAGE plpgsql AS $$
       BEGIN RETURN deep(n + 1); END $$`,
    );
    expect(await failure("SELECT deep(1)")).toStartWith("LIMIT_EXCEEDED: Cannot call function");
    expect(await failure("SELECT deep(id) FROM acc")).toStartWith("LIMIT_EXCEEDED");
  });

  test("a body may not end the transaction", async () => {
    expect(await failure("DO $$ BEGIN COMMIT; END $$")).toMatch(/^UNSUPPORTED_FEATURE.*EXCEPTION/);
    expect(await failure("DO $$ BEGIN EXECUTE 'COMMIT'; END $$")).toStartWith(
      "UNSUPPORTED_FEATURE",
    );
  });
});

test("a function shows nobody the rows of others", async () => {
  await using other = await TestEngine.open();
  await other.run(
    `CREATE USER 'alice' INTERNAL ROLE user;
     CREATE USER 'bob' INTERNAL ROLE user;
     CREATE NAMESPACE app; CREATE USER TABLE app.notes (id INT PRIMARY KEY, body TEXT);
     CREATE FUNCTION app.add(i INT, t TEXT) RETURNS BIGINT LANGUAGE plpgsql AS $$
     BEGIN
       INSERT INTO app.notes VALUES (i, t);
       RETURN (SELECT count(*) FROM app.notes);
     END $$;
     CREATE TABLE app.secrets (n INT PRIMARY KEY) WITH (ACCESS_LEVEL = 'DBA');
     CREATE FUNCTION app.secret() RETURNS INT LANGUAGE plpgsql AS $$
     BEGIN RETURN (SELECT n FROM app.secrets); END $$`,
  );
  for (const userId of ["alice", "bob"]) {
    other.userId = userId;
    expect(await other.rows("SELECT app.add(1, 'x')")).toEqual([[1]]);
    expect((await other.ask("SELECT app.secret()")).error?.code).toBe("TABLE_NOT_FOUND");
  }
});

test("programs survive a restart, and are described", async () => {
  await using other = await TestEngine.open();
  await other.run(
    `CREATE FUNCTION next_odd(n INT) RETURNS INT LANGUAGE plpgsql IMMUTABLE STRICT AS $$
     BEGIN
       RETURN n + 1 + n % 2;
     END $$;
     CREATE PROCEDURE nothing() LANGUAGE plpgsql AS $$ BEGIN NULL; END $$`,
  );
  await other.restart();
  expect(await other.rows("SELECT next_odd(3), next_odd(NULL)")).toEqual([[5, null]]);
  await other.run("CALL nothing()");
  const [[definition]] = (await other.rows("DESCRIBE FUNCTION next_odd")) as [[string]];
  await other.run("DROP FUNCTION next_odd(INT)");
  await other.run(definition);
  expect(await other.rows("SELECT next_odd(4)")).toEqual([[5]]);
  const listed =
    "SELECT routine_name, routine_type, external_language FROM information_schema.routines";
  expect(await other.rows(`${listed} ORDER BY 1`)).toEqual([
    ["next_odd", "FUNCTION", "PLPGSQL"],
    ["nothing", "PROCEDURE", "PLPGSQL"],
  ]);
});

test.each([
  "CREATE TABLE c (n INT CHECK (doubled(n) > 0))",
  "CREATE TABLE c (n INT DEFAULT doubled(1))",
  "CREATE INDEX ON acc (doubled(id))",
])("a stored expression refuses a program: %s", async (sql) => {
  expect(await failure(sql)).toMatch(
    /^UNSUPPORTED_FEATURE.*the body of the function is not a single SQL query/,
  );
});
