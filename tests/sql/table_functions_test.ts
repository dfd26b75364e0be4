/**
 * Tests table functions in FROM and in select lists. The expected results were compared with
 * PostgreSQL 15.
 */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { systemClock } from "../../src/base/clock.ts";
import { TestEngine } from "../support/sql_engine.ts";

let engine: TestEngine;

beforeAll(async () => {
  engine = await TestEngine.open({ clock: systemClock, config: "limits.max_timeout_ms = 30000" });
  await engine.run(
    "CREATE TABLE t (id INT PRIMARY KEY, a TEXT, j JSONB); INSERT INTO t VALUES (1, 'a,b', '[1,2]')," +
      `(2, 'c', '[]'), (3, NULL, NULL), (4, 'd,e', '[{"k":1},{"k":2}]')`,
  );
});
afterAll(() => engine[Symbol.asyncDispose]());

const ANSWERS: readonly (readonly [sql: string, rows: readonly unknown[][]])[] = [
  ["SELECT * FROM generate_series(1, 7, 3)", [[1], [4], [7]]],
  ["SELECT * FROM generate_series(5, 1, -2)", [[5], [3], [1]]],
  ["SELECT * FROM generate_series(5, 1)", []],
  ["SELECT * FROM generate_series(1, NULL)", []],
  ["SELECT * FROM generate_series(1.0, 2.0, 0.5)", [["1.0"], ["1.5"], ["2.0"]]],
  [
    "SELECT * FROM generate_series(9223372036854775806, 9223372036854775807)",
    [["9223372036854775806"], ["9223372036854775807"]],
  ],
  [
    "SELECT x::date::text FROM generate_series('2024-01-31'::timestamp, '2024-04-30', '1 month') x",
    [["2024-01-31"], ["2024-02-29"], ["2024-03-29"], ["2024-04-29"]],
  ],
  [
    "SELECT PG_TYPEOF(x) FROM generate_series('2024-01-31'::date, '2024-01-31'::date, '1 day') x",
    [["timestamp with time zone"]],
  ],
  [
    "SELECT x, n FROM unnest(ARRAY['p', 'q']) WITH ORDINALITY AS u(x, n)",
    [
      ["p", 1],
      ["q", 2],
    ],
  ],
  [
    "SELECT * FROM unnest(ARRAY['p'], ARRAY[1, NULL, 3]) WITH ORDINALITY",
    [
      ["p", 1, 1],
      [null, null, 2],
      [null, 3, 3],
    ],
  ],
  ["SELECT * FROM unnest(NULL::int[])", []],
  ["SELECT * FROM generate_subscripts(ARRAY[5, 6, 7], 1, true)", [[3], [2], [1]]],
  ["SELECT * FROM string_to_table('a,,b', ',', '')", [["a"], [null], ["b"]]],
  ["SELECT * FROM regexp_split_to_table('a1b22c', '[0-9]+')", [["a"], ["b"], ["c"]]],
  ["SELECT * FROM regexp_matches('foobarbaz', 'ba.')", [["{bar}"]]],
  ["SELECT * FROM regexp_matches('foobarbaz', 'b(a)(.)', 'g')", [["{a,r}"], ["{a,z}"]]],
  [
    `SELECT key, value FROM json_each('{"a": 1, "a" : [1 ] }')`,
    [
      ["a", "1"],
      ["a", "[1 ]"],
    ],
  ],
  [
    `SELECT key, value FROM jsonb_each_text('{"b":"x","a":null}')`,
    [
      ["a", null],
      ["b", "x"],
    ],
  ],
  [`SELECT * FROM json_object_keys('{"f1":1,"f2":2}')`, [["f1"], ["f2"]]],
  [
    `SELECT * FROM jsonb_to_recordset('[{"a":1,"b":"x"},{"a":"2","c":3}]') AS x(a INT, b TEXT)`,
    [
      [1, "x"],
      [2, null],
    ],
  ],
  [
    `SELECT * FROM json_to_record('{"a":[1,2],"b":{"c":1}}') AS x(a INT[], b JSON)`,
    [["{1,2}", '{"c":1}']],
  ],
  // A table function may read the preceding FROM items, with or without LATERAL.
  [
    "SELECT id, p FROM t, string_to_table(a, ',') p ORDER BY 1, 2",
    [
      [1, "a"],
      [1, "b"],
      [2, "c"],
      [4, "d"],
      [4, "e"],
    ],
  ],
  [
    "SELECT id, p FROM t LEFT JOIN LATERAL unnest(string_to_array(a, ',')) p ON p <> 'a' ORDER BY 1, 2",
    [
      [1, "b"],
      [2, "c"],
      [3, null],
      [4, "d"],
      [4, "e"],
    ],
  ],
  ["SELECT e->>'k' FROM t, jsonb_array_elements(t.j) AS e WHERE t.id = 4", [["1"], ["2"]]],
  [
    "SELECT id FROM t WHERE EXISTS (SELECT 1 FROM string_to_table(t.a, ',') x WHERE x = 'b')",
    [[1]],
  ],
  ["SELECT x.value FROM json_array_elements('[1]') AS x", [["1"]]],
  ["SELECT * FROM upper('x')", [["X"]]],
  // The following queries call table functions in the select list.
  [
    "SELECT id, generate_series(1, id), generate_series(1, 2) AS g FROM t WHERE id < 3 ORDER BY 1, 3",
    [
      [1, 1, 1],
      [1, null, 2],
      [2, 1, 1],
      [2, 2, 2],
    ],
  ],
  ["SELECT generate_series(1, 3) + 10 AS v ORDER BY v DESC LIMIT 2", [[13], [12]]],
  // All table functions of a select list are expanded together for each input row.
  [
    "SELECT id, generate_series(1, 2) FROM t WHERE id < 3",
    [
      [1, 1],
      [1, 2],
      [2, 1],
      [2, 2],
    ],
  ],
  // A nested call runs before the call that encloses it, together with calls that contain no other
  // call.
  [
    "SELECT generate_series(1, 2), generate_series(1, generate_series(1, 3))",
    [
      [1, 1],
      [2, 1],
      [2, 2],
      [null, 1],
      [null, 2],
      [null, 3],
    ],
  ],
  [
    "SELECT DISTINCT ON (a) a, generate_series(1, 2) FROM (VALUES (1), (1), (2)) v(a) ORDER BY a LIMIT 3",
    [
      [1, 1],
      [1, 2],
      [2, 1],
    ],
  ],
  // All rows expanded from the same sorted row stay together, whatever the sort key is.
  [
    "SELECT bool_and(l = id) FROM (SELECT CASE WHEN g = 2 THEN lag(id) OVER () ELSE id END l, id FROM " +
      "(SELECT id, generate_series(1, 2) g FROM generate_series(1, 200) id ORDER BY random()) x) y",
    [[true]],
  ],
  [
    "SELECT bool_and(r >= l) FROM (SELECT r, lag(r) OVER () l FROM " +
      "(SELECT random() r, generate_series(1, 2) FROM generate_series(1, 200) ORDER BY r) x) y",
    [[true]],
  ],
  ["SELECT id FROM t WHERE id IN (SELECT unnest(ARRAY[t.id, 0]))  AND id < 3", [[1], [2]]],
  ["SELECT ARRAY(SELECT generate_series(1, 3))", [["{1,2,3}"]]],
  ["SELECT unnest(string_to_array(a, ',')) FROM t WHERE id = 3", []],
  [
    "WITH p AS (SELECT unnest(string_to_array(a, ',')) x FROM t) " +
      "SELECT id, (SELECT count(*) FROM p WHERE x < t.a) FROM t WHERE id < 3",
    [
      [1, 1],
      [2, 2],
    ],
  ],
];

describe("table functions can be used in FROM", () => {
  for (const [sql, rows] of ANSWERS) {
    test(sql, async () => expect(await engine.printed(sql)).toEqual(rows));
  }

  test("EXPLAIN shows where rows are expanded", async () => {
    const plan = await engine.printed(
      "EXPLAIN SELECT id, generate_series(1, 2) FROM t ORDER BY id LIMIT 3",
    );
    expect(plan.flat().map((line) => String(line).trim().split(" ")[0])).toEqual([
      "Limit",
      "Project",
      "Expand",
      "Sort",
      "Project",
      "Table",
    ]);
    expect(plan.join("\n")).toContain("call: generate_series(1, 2)");
  });

  test("a column is named by the function, by an alias, or by the function's own definition", async () => {
    const names = async (sql: string): Promise<unknown> =>
      (await engine.run(sql)).at(-1)?.schema?.map(({ name }) => name);
    expect(await names("SELECT * FROM generate_series(1, 2)")).toEqual(["generate_series"]);
    expect(await names("SELECT * FROM generate_series(1, 2) g")).toEqual(["g"]);
    expect(await names("SELECT * FROM generate_series(1, 2) g(i)")).toEqual(["i"]);
    expect(await names("SELECT * FROM json_array_elements('[]') g")).toEqual(["value"]);
    expect(await names("SELECT * FROM unnest(ARRAY[1], ARRAY[2]) g")).toEqual(["unnest", "unnest"]);
    expect(await names("SELECT * FROM unnest(ARRAY[1]) WITH ORDINALITY g")).toEqual([
      "g",
      "ordinality",
    ]);
  });

  const FAULTS: readonly (readonly [sql: string, failure: string])[] = [
    ["SELECT * FROM generate_series(1, 2, 0)", "VALUE_OUT_OF_RANGE@1"],
    ["SELECT * FROM generate_series(now(), now(), '0 days')", "VALUE_OUT_OF_RANGE@1"],
    ["SELECT * FROM generate_series(1.5::double precision, 2)", "FUNCTION_NOT_FOUND@1:14"],
    ["SELECT * FROM nofn(1)", "FUNCTION_NOT_FOUND@1:14"],
    ["SELECT * FROM json_array_elements('{}')", "INVALID_VALUE@1"],
    [`SELECT * FROM json_object_keys('{"a\\u0000": 1}')`, "INVALID_VALUE@1"],
    [`SELECT * FROM json_each('{"\\ud800": 1}')`, "INVALID_VALUE@1"],
    [`SELECT * FROM json_each_text('{"\\udc00": 1}')`, "INVALID_VALUE@1"],
    ["SELECT * FROM jsonb_to_recordset('[]') x", "INVALID_QUERY@1:14"],
    ["SELECT * FROM unnest(ARRAY[1]) AS x(a INT)", "INVALID_QUERY@1:14"],
    ["SELECT * FROM unnest(ARRAY[1]) AS x(a, b)", "INVALID_QUERY@1:14"],
    ["SELECT id FROM t WHERE generate_series(1, 2) = 1", "INVALID_QUERY@1:23"],
    ["SELECT sum(generate_series(1, 2))", "INVALID_QUERY@1:11"],
    ["SELECT lag(generate_series(1, 2)) OVER ()", "INVALID_QUERY@1:11"],
    ["SELECT CASE WHEN generate_series(1, 2) = 1 THEN 1 END", "INVALID_QUERY@1:17"],
    ["SELECT coalesce(generate_series(1, 2), 1)", "INVALID_QUERY@1:16"],
    ["SELECT generate_series(1, 2) = 1 AND true", "INVALID_QUERY@1:7"],
    ["SELECT NOT (generate_series(1, 2) = 1)", "INVALID_QUERY@1:12"],
    ["SELECT generate_series(1, 2) BETWEEN 1 AND 2", "INVALID_QUERY@1:7"],
    ["INSERT INTO t (id) VALUES (generate_series(8, 9)), (10)", "INVALID_QUERY@1:27"],
  ];
  for (const [sql, failure] of FAULTS) {
    test(`${sql} fails`, async () => expect(await engine.failure(sql)).toBe(failure));
  }

  test.each([
    [
      "SELECT jsonb_each(j).key FROM t",
      "Cannot parse the statement: a function call before a dot must be in parentheses: (jsonb_each(…)).column",
      undefined,
    ],
    [
      "SELECT (jsonb_each(j)).kay FROM t",
      'Cannot find column "kay" in jsonb_each(…): the columns are key and value',
      'did you mean "key"?',
    ],
    [
      "SELECT (j -> 'a').b FROM t",
      'Cannot read column "b" of a value of type jsonb: this type has no columns',
      "to read a field of a JSON value, use -> 'name' or ->> 'name'",
    ],
    [
      "SELECT id FROM t ORDER BY (jsonb_each(j)).*",
      "Cannot use (…).* in ORDER BY: it expands to several columns",
      "use it as an item of the select list, or select a single column, as in (…).c",
    ],
  ])("%s is refused with advice", async (sql, message, hint) => {
    const { error } = await engine.ask(sql);
    expect(error?.message).toBe(message);
    expect(error?.hint).toBe(hint);
  });

  test("one call returns all the columns that a select list reads from it", async () => {
    const sql = `SELECT (jsonb_each('{"a":1,"b":2}')).value, (jsonb_each('{"a":1,"b":2}')).*`;
    const [result] = await engine.run(sql);
    expect(result?.schema?.map(({ name }) => name)).toEqual(["value", "key", "value"]);
    expect((await engine.printed(`EXPLAIN ${sql}`)).join("\n").match(/call: /g)).toHaveLength(1);
  });

  test("an infinite series stops at the deadline or at a LIMIT", async () => {
    const endless = "SELECT count(*) FROM generate_series(1, 9000000000000000)";
    expect(await engine.failure(endless, { timeoutMs: 50 })).toBe("STATEMENT_TIMEOUT@1");
    const first = "SELECT * FROM generate_series(1, 9000000000000000) LIMIT 2";
    expect(await engine.printed(first)).toEqual([[1], [2]]);
  });

  test("INSERT … SELECT with fewer columns fills the first ones", async () => {
    await engine.run("INSERT INTO t SELECT g, 'n' || g FROM generate_series(100, 101) g");
    expect(await engine.printed("SELECT id, a, j FROM t WHERE id >= 100")).toEqual([
      [100, "n100", null],
      [101, "n101", null],
    ]);
    const listed = "INSERT INTO t (id, a) SELECT g FROM generate_series(200, 201) g";
    expect(await engine.failure(listed)).toBe("INVALID_QUERY@1:22");
  });

  test("a live query refuses table functions", async () => {
    for (const sql of [
      "SELECT * FROM generate_series(1, 2)",
      "SELECT unnest(ARRAY[1, 2]) FROM t",
      "SELECT (jsonb_each(j)).key FROM t",
      "SELECT (jsonb_each(j)).* FROM t",
    ]) {
      const plan = (): unknown =>
        engine.database.sql.planLive(engine.principal, { sql, params: [] });
      expect(plan).toThrow("Cannot");
    }
  });
});
