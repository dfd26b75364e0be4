/**
 * Verifies on the real process that JavaScript values sent as parameters come back unchanged, that
 * the client sends lists in the form that the statement requires, and that live queries resume at
 * their position.
 */
import { afterAll, beforeAll, expect, test } from "bun:test";
import {
  type Cell,
  type Client,
  createClient,
  type LiveQuery,
  type Parameter,
  type PositionStorage,
} from "../../src/client/mod.ts";
import {
  ADMIN,
  PASSWORD,
  type ServerProcess,
  startReadyServer,
} from "../support/server_process.ts";
import { shareOf } from "../support/thoroughness.ts";
import { until } from "../support/until.ts";

let server: ServerProcess;
let db: Client;

beforeAll(async () => {
  server = await startReadyServer();
  db = createClient({ url: server.url, auth: { user: ADMIN, password: PASSWORD } });
  await db.execute("CREATE NAMESPACE v");
});

afterAll(async () => {
  db.close();
  await server.stop();
});

const NOON = new Date("2026-11-28T12:00:00.250Z");

const VALUES: [string, Parameter, Cell][] = [
  ["TIMESTAMP", NOON, NOON],
  ["TIMESTAMPTZ", NOON, NOON],
  ["DATETIME", new Date("1969-12-31T23:59:59.999Z"), new Date("1969-12-31T23:59:59.999Z")],
  // In microseconds, this time is too large for a number to represent exactly.
  ["TIMESTAMP", new Date("9999-12-31T23:59:59.999Z"), new Date("9999-12-31T23:59:59.999Z")],
  ["TIMESTAMP", new Date("0001-01-01T00:00:00.001Z"), new Date("0001-01-01T00:00:00.001Z")],
  ["TIMESTAMP", "1969-12-31 23:59:59.999999", new Date(-1)],
  ["TIMESTAMP", "1600-01-01 00:00:00.000001", new Date("1600-01-01T00:00:00.000Z")],
  ["DATE", NOON, new Date("2026-11-28T00:00:00Z")],
  ["DATE", "1969-12-31", new Date(-86_400_000)],
  ["DATE", "infinity", Number.POSITIVE_INFINITY],
  ["DATE", "0044-03-15 BC", new Date("-000043-03-15T00:00:00Z")],
  ["TIMESTAMP", "-infinity", Number.NEGATIVE_INFINITY],
  ["TIMESTAMPTZ", "infinity", Number.POSITIVE_INFINITY],
  ["TIMESTAMP", "0044-03-15 12:00 BC", new Date("-000043-03-15T12:00:00Z")],
  ["TIMESTAMPTZ[]", ["infinity", null, NOON], [Number.POSITIVE_INFINITY, null, NOON]],
  ["INT4RANGE", "(1,5]", "[2,6)"],
  ["NUMRANGE", "(1.50,)", "(1.50,)"],
  ["DATERANGE", "empty", "empty"],
  ["TSRANGE", "[2026-11-28 12:00,infinity)", '["2026-11-28 12:00:00",infinity)'],
  ["INT8MULTIRANGE", "{[5,9),[1,3],[3,4)}", "{[1,4),[5,9)}"],
  ["INT4RANGE[]", ["[1,3)", null, "empty"], ["[1,3)", null, "empty"]],
  ["TIME", "09:05:00", "09:05:00"],
  ["TIME", "23:59:59.000100", "23:59:59.0001"],
  ["TIME", NOON, "12:00:00.25"],
  ["JSON", { a: [1, null, "ü"], b: { c: true } }, { a: [1, null, "ü"], b: { c: true } }],
  ["JSONB", [1, "a", { b: null }], [1, "a", { b: null }]],
  ["JSONB", [], []],
  ["JSON", [[1], [2]], [[1], [2]]],
  ["JSON", '"text"', "text"],
  ["JSON", "null", null],
  ["JSONB", { at: NOON, big: 7n }, { at: NOON.toISOString(), big: 7 }],
  ["BYTES", Uint8Array.of(0, 1, 254, 255), Uint8Array.of(0, 1, 254, 255)],
  ["BYTES", new Uint8Array(0), new Uint8Array(0)],
  ["BYTES", Buffer.from("tide"), new Uint8Array(Buffer.from("tide"))],
  ["BYTES", Uint8Array.of(1, 2, 3).buffer, Uint8Array.of(1, 2, 3)],
  ["BYTES", new DataView(Uint8Array.of(1, 2, 3).buffer, 1, 1), Uint8Array.of(2)],
  ["EMBEDDING(3)", [1, 0.5, -2], [1, 0.5, -2]],
  ["TEXT", new URL("http://a.test/b"), "http://a.test/b"],
  ["TEXT", "2026", "2026"],
  ["BIGINT", 2n ** 60n, "1152921504606846976"],
  ["DOUBLE", 1e300, 1e300],
  ["DECIMAL(10,2)", "1.50", "1.50"],
  ["BOOLEAN", true, true],
  ["INT[]", [1, null, 3], [1, null, 3]],
  [
    "INT[]",
    [
      [1, 2],
      [3, 4],
    ],
    [
      [1, 2],
      [3, 4],
    ],
  ],
  ["BIGINT[]", [2n ** 60n, 1], ["1152921504606846976", 1]],
  [
    "TEXT[]",
    ['with "quotes" and \\', "NULL", "", "{x,y}"],
    ['with "quotes" and \\', "NULL", "", "{x,y}"],
  ],
  ["TIMESTAMPTZ[]", [NOON, null], [NOON, null]],
  ["JSONB[]", [{ a: [1] }, null], [{ a: [1] }, null]],
  [
    "BYTES[]",
    [Uint8Array.of(0, 255), new Uint8Array(0)],
    [Uint8Array.of(0, 255), new Uint8Array(0)],
  ],
  ["TIME[]", ["09:05:00"], ["09:05:00"]],
  ["INTERVAL", "1 day 02:00", "1 day 02:00:00"],
  ["TIMESTAMP", null, null],
  ["BYTES", null, null],
  ["JSON", null, null],
];

test.each(shareOf(VALUES, { oneOf: 2 }))(
  "a value of %s is stored and returned: %p",
  async (type, given, expected) => {
    await db.execute("DROP TABLE IF EXISTS v.t");
    await db.execute(`CREATE TABLE v.t (id INT PRIMARY KEY, x ${type})`);
    const live = await followed("SELECT id, x FROM v.t");
    const { results } = await db.execute("INSERT INTO v.t VALUES (1, $1) RETURNING x", {
      params: [given],
    });
    expect(results[0]?.rows).toEqual([[expected]]);
    expect(await db.query("SELECT x FROM v.t")).toEqual([{ x: expected }]);
    await until(() => live.rows.length === 1);
    expect(live.rows[0]?.["x"]).toEqual(expected);
    live.close();
  },
);

test("a value as a parameter finds the row that was stored with it", async () => {
  await db.execute("DROP TABLE IF EXISTS v.t");
  await db.execute("CREATE TABLE v.t (id INT PRIMARY KEY, at TIMESTAMP, d DATE, b BYTES, j JSONB)");
  const values = [NOON, NOON, Uint8Array.of(7), { a: 1 }];
  await db.execute("INSERT INTO v.t VALUES (1, $1, $2, $3, $4)", { params: values });
  const sql = "SELECT id FROM v.t WHERE at = $1 AND d = $2 AND b = $3 AND j @> $4";
  expect(await db.query(sql, values)).toEqual([{ id: 1 }]);
  const live = await followed(sql, values);
  expect(live.rows.map(({ id }) => id)).toEqual([1]);
  live.close();
});

const ROOMS = ["a", 'with "quotes" and \\', "NULL", "", "{x,y}", "b c"];

test("lists are accepted if a statement takes arrays", async () => {
  await db.execute("DROP TABLE IF EXISTS v.t");
  await db.execute("CREATE TABLE v.t (id INT PRIMARY KEY, room TEXT, at TIMESTAMP)");
  for (const [index, room] of ROOMS.entries()) {
    await db.execute("INSERT INTO v.t VALUES ($1, $2, $3)", {
      params: [index, room, new Date(index)],
    });
  }
  const idsOf = async (where: string, params: Parameter[]): Promise<unknown> =>
    (await db.query(`SELECT id FROM v.t WHERE ${where} ORDER BY id`, params)).map(({ id }) => id);
  expect(await idsOf("id = ANY($1)", [[1, 3n, null]])).toEqual([1, 3]);
  expect(await idsOf("id = ANY($1)", [[]])).toEqual([]);
  expect(await idsOf("id = ANY (($1))", [[1]])).toEqual([1]);
  expect(await idsOf("id <> ALL ( $1 )", [[0, 1, 2]])).toEqual([3, 4, 5]);
  expect(await idsOf("room = any ($1::text[])", [ROOMS.slice(1, 5)])).toEqual([1, 2, 3, 4]);
  expect(await idsOf("at = ANY($1)", [[new Date(1), new Date(5)]])).toEqual([1, 5]);
  expect(await idsOf("id = ANY(CAST($2 AS INT[])) AND room = $1", ["a", [0, 1]])).toEqual([0]);
  expect(await idsOf("id IN (SELECT * FROM unnest($1::int[]))", [[2, 5]])).toEqual([2, 5]);
  expect(await idsOf("id < cardinality($1)", [[true, false]])).toEqual([0, 1]);
  expect(await idsOf("id + 1152921504606846975 = ANY($1)", [[2n ** 60n]])).toEqual([1]);
  expect(await idsOf("room = ANY($1::varchar(3) [])", [["a", "b c"]])).toEqual([0, 5]);
  const bytes = "SELECT $1::bytea[] = ARRAY['ab'::bytea, NULL] AS same";
  expect(await db.query(bytes, [[Buffer.from("ab"), null]])).toEqual([{ same: true }]);
  // A parameter next to an array is not an array itself.
  const near = "SELECT $1 AS array UNION ALL SELECT $1::text || (ARRAY['c'])[1]";
  expect(await db.query(near, [["b"]])).toEqual([{ array: '["b"]' }, { array: '["b"]c' }]);
  // Brackets in strings, names and comments do not make a parameter an array.
  const quiet = "SELECT $1::jsonb AS j, 'ANY($1)' AS \"ANY($1)\" -- = ANY($1)";
  expect(await db.query(quiet, [[1]])).toEqual([{ j: [1], "ANY($1)": "ANY($1)" }]);
  const live = await followed("SELECT id FROM v.t WHERE room = ANY($1)", [["a", "b c"]]);
  expect(live.rows.map(({ id }) => id)).toEqual([0, 5]);
  live.close();
});

test.each<[string, Parameter[], RegExp]>([
  [
    "SELECT $1::timestamp",
    [1_795_000_000_000],
    /^Cannot send parameter 1: it is a number, but the statement expects TIMESTAMP; send a Date, such as new Date\(ms\), or an ISO string/,
  ],
  ["SELECT CAST($1 AS DATE)", [5n], /it is a number, but the statement expects DATE/],
  ["SELECT $2 :: time", ["a", 5], /^Cannot send parameter 2: .* expects TIME;/],
  [
    "SELECT 1 IN ($1)",
    [[1, 2]],
    /^Cannot send parameter 1: it is a list, but IN \(\$1\) compares with a single value; write = ANY\(\$1\)/,
  ],
  ["SELECT $1", [new Date(Number.NaN)], /^Cannot send parameter 1: it is an invalid Date/],
  ["SELECT $1", [{ a: Number.NaN }], /^Cannot send "a" of parameter 1: it is/],
  [
    "SELECT $1",
    [[{ a: 2n ** 60n }]],
    /^Cannot send "a" of item 1 of parameter 1: JSON cannot represent 1152921504606846976; send a string/,
  ],
  ["SELECT $1", [new Map()], /^Cannot send parameter 1: it is an instance of Map, but must be/],
  ["SELECT $1", [/a/], /it is an instance of RegExp/],
  ["SELECT 1 = ANY($1)", [[1, undefined]], /^Cannot send item 2 of parameter 1: it is undefined/],
])("%s refuses values that it cannot convert", async (sql, params, message) => {
  const failure = await db.query(sql, params).catch((error: unknown) => error);
  expect(failure).toBeInstanceOf(TypeError);
  expect((failure as Error).message).toMatch(message);
});

test("the results before a failure are also converted", async () => {
  const failure = await db
    .execute("SELECT TIMESTAMP '1970-01-01 00:00:01' AS t; SELECT 1/0")
    .catch((error: unknown) => error);
  expect(failure).toMatchObject({
    code: "SQL_EXECUTION_ERROR",
    status: 400,
    statement: 1,
    results: [{ rows: [[new Date(1000)]] }],
  });
});

test("a number for a date is refused because of a cast, not because of a name", async () => {
  expect(await db.query("SELECT $1 AS date, $1 AS time", [5])).toEqual([{ date: 5, time: 5 }]);
  const parts = "SELECT $1::text || '$1::date' AS \"CAST($1 AS DATE)\" -- $1::time";
  expect(await db.query(parts, [5])).toEqual([{ "CAST($1 AS DATE)": "5$1::date" }]);
});

test("a number of milliseconds is stored as a number, and refused as a moment", async () => {
  await db.execute("DROP TABLE IF EXISTS v.t");
  const columns =
    "id INT PRIMARY KEY, at TIMESTAMP, tz TIMESTAMPTZ, n BIGINT, x DOUBLE, t TEXT, d DECIMAL(20,1)";
  await db.execute(`CREATE TABLE v.t (${columns})`);
  const ms = 1_795_000_000_000;
  const stored = "INSERT INTO v.t (id, n, x, t, d) VALUES (1, $1, $2, $3, $4)";
  await db.execute(stored, { params: [ms, ms, ms, BigInt(ms)] });
  const row = { n: ms, x: ms, t: String(ms), d: `${ms}.0` };
  expect(await db.query("SELECT n, x, t, d FROM v.t")).toEqual([row]);
  await db.execute("UPDATE v.t SET n = $1, x = $1 WHERE n = $1", { params: [ms] });
  // As part of a larger expression, the parameter remains a number.
  const sum = "INSERT INTO v.t (id, n, t) VALUES (2, $1 + 1, pg_typeof($1)), (3, abs($1), '')";
  await db.execute(sum, { params: [ms] });
  expect(await db.query("SELECT n, t FROM v.t WHERE id > 1 ORDER BY id")).toEqual([
    { n: ms + 1, t: "bigint" },
    { n: ms, t: "" },
  ]);
  for (const sql of [
    "INSERT INTO v.t (id, at) VALUES (9, $1)",
    "insert into v.t (id, at) values (8, now()), (9, $1) returning id",
    "INSERT INTO v.t (tz, id) VALUES ($1, 9) ON CONFLICT (id) DO NOTHING",
    "UPDATE v.t SET at = $1 WHERE id = 1",
    'UPDATE v.t SET n = 1, "at" = $1',
    "INSERT INTO v.t (id) VALUES (1) ON CONFLICT (id) DO UPDATE SET at = $1",
  ]) {
    for (const given of [ms, BigInt(ms)]) {
      const failure = await db.execute(sql, { params: [given] }).catch((error: unknown) => error);
      expect((failure as Error).message, sql).toMatch(/1795000000000.* as a timestamp/);
    }
  }
  // The client also accepts a time in microseconds, the form that the wire uses.
  await db.execute("UPDATE v.t SET at = $1 WHERE id = 1", { params: [ms * 1000] });
  expect(await db.query("SELECT at FROM v.t WHERE id = 1")).toEqual([{ at: new Date(ms) }]);
});

test('values: "wire" leaves all cells unconverted', async () => {
  const wire = createClient({
    url: server.url,
    auth: async () => server.token,
    values: "wire",
  });
  const sql = "SELECT $1::timestamp AS t, $1::date AS d, $2::jsonb AS j, $3::bytea AS b";
  expect(await wire.query(sql, [new Date(1), { a: 1 }, Uint8Array.of(1)])).toEqual([
    { t: 1000, d: 0, j: '{"a": 1}', b: [1] },
  ]);
});

test("resumeKey continues in the next run of the program, including the changes in between", async () => {
  const kept = new Map<string, string>();
  const storage: PositionStorage = {
    getItem: (key) => kept.get(key) ?? null,
    setItem: (key, value) => void kept.set(key, value),
    removeItem: (key) => void kept.delete(key),
  };
  await db.execute("DROP TABLE IF EXISTS v.t");
  await db.execute("CREATE TABLE v.t (id INT PRIMARY KEY)");
  const told: unknown[] = [];
  for (const [before, expected] of [
    [1, [1]],
    [2, [2]],
    [3, [3]],
  ] as const) {
    await db.execute("INSERT INTO v.t VALUES ($1)", { params: [before] });
    told.length = 0;
    const program = createClient({ url: server.url, auth: { token: server.token }, storage });
    const live = program.live("SELECT id FROM v.t", {
      resumeKey: "t",
      onEvent: (event) => {
        if (event.type === "rows") told.push(...event.rows.map(({ id }) => id));
      },
    });
    await until(() => live.status === "ready");
    expect(told).toEqual([...expected]);
    program.close();
  }
});

/** Opens a live query and waits for its rows. */
async function followed(sql: string, params: readonly Parameter[] = []): Promise<LiveQuery> {
  const errors: Error[] = [];
  const live = db.live(sql, { params, onRows: () => {}, onError: (error) => errors.push(error) });
  await until(() => live.status === "ready" || errors.length > 0);
  expect(errors).toEqual([]);
  return live;
}
