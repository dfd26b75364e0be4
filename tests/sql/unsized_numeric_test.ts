/**
 * Verifies that NUMERIC without a precision holds numbers with any number of digits, each with its
 * own scale, and NaN and the infinities, in memory and on disk.
 */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { TestEngine } from "../support/sql_engine.ts";

let engine: TestEngine;

const VALUES = [
  "0",
  "0.00",
  "1",
  "1.50",
  "-1.5",
  "1.5",
  "123456789012345678901234567890123456789012345678901234567890.5",
  "-0.00000000000000000000000000000000000000000000000000000000012",
  "1e300",
  "NaN",
  "Infinity",
  "-Infinity",
];

beforeAll(async () => {
  engine = await TestEngine.open();
  await engine.run(`CREATE NAMESPACE x; CREATE TABLE x.n (id INT PRIMARY KEY, v NUMERIC);
    CREATE TABLE x.k (v NUMERIC PRIMARY KEY, w NUMERIC UNIQUE)`);
  const rows = VALUES.map((value, i) => `(${i}, '${value}')`).join(", ");
  await engine.run(`INSERT INTO x.n VALUES ${rows}`);
});

afterAll(async () => {
  await engine[Symbol.asyncDispose]();
});

const SHOWN = VALUES.map((value) => (value === "1e300" ? `1${"0".repeat(300)}` : value));

test.each(["in the memtable", "from the log", "in a segment"])(
  "values are read %s",
  async (where) => {
    if (where === "from the log") await engine.restart();
    if (where === "in a segment") await engine.run("STORAGE FLUSH TABLE x.n");
    const rows = await engine.rows("SELECT v FROM x.n ORDER BY id");
    expect(rows.map(([cell]) => cell)).toEqual(SHOWN);
    expect(await engine.rows("SELECT id FROM x.n ORDER BY v, id")).toEqual(
      [11, 4, 7, 0, 1, 2, 3, 5, 6, 8, 10, 9].map((id) => [id]),
    );
    expect(await engine.rows("SELECT id FROM x.n WHERE v = 1.5 ORDER BY id")).toEqual([[3], [5]]);
    expect(await engine.rows("SELECT id FROM x.n WHERE v IN (0, 'NaN') ORDER BY id")).toEqual([
      [0],
      [1],
      [9],
    ]);
    expect(
      await engine.rows(
        "SELECT count(*), min(id) FROM x.n GROUP BY v HAVING count(*) > 1 ORDER BY 2",
      ),
    ).toEqual([
      [2, 0],
      [2, 3],
    ]);
    expect(
      await engine.rows(
        "SELECT a.id, b.id FROM x.n a JOIN x.n b ON a.v = b.v WHERE a.id < b.id ORDER BY 1",
      ),
    ).toEqual([
      [0, 1],
      [3, 5],
    ]);
    expect(await engine.rows("SELECT count(DISTINCT v), min(v), max(v) FROM x.n")).toEqual([
      [10, "-Infinity", "NaN"],
    ]);
  },
);

test("a key treats numbers of different scales as equal, and shows no zeros at their end", async () => {
  await engine.run("INSERT INTO x.k VALUES (1.50, 10), (2, 20.0), (100, 'NaN')");
  const { error } = await engine.ask("INSERT INTO x.k VALUES (1.5, 30)");
  expect(error?.code).toBe("DUPLICATE_KEY");
  const unique = await engine.ask("INSERT INTO x.k VALUES (3, 20.00)");
  expect(unique.error?.code).toBe("DUPLICATE_KEY");
  for (const value of [
    "1.5",
    "1.500",
    "'1.50'",
    "1.5::numeric",
    "1.50::double precision::numeric",
  ]) {
    expect(await engine.rows(`SELECT v, w FROM x.k WHERE v = ${value}`)).toEqual([["1.5", "10"]]);
  }
  await engine.run(
    "STORAGE FLUSH TABLE x.k; INSERT INTO x.k VALUES (2.0, 21) ON CONFLICT (v) DO UPDATE SET w = EXCLUDED.w",
  );
  expect(await engine.rows("SELECT v, w FROM x.k WHERE w = 21.0 OR v = 100.0 ORDER BY v")).toEqual([
    ["2", "21"],
    ["100", "NaN"],
  ]);
  expect(await engine.rows("SELECT v FROM x.k WHERE v > 1.5 AND v < 100.0")).toEqual([["2"]]);
});

test("an index finds equal numbers of different scales, and returns each with its own", async () => {
  await engine.run(`CREATE TABLE x.i (id INT PRIMARY KEY, v NUMERIC(10,2), w NUMERIC(65,30));
    INSERT INTO x.i SELECT g, g % 100, g FROM generate_series(1, 3000) g; STORAGE FLUSH TABLE x.i;
    ALTER TABLE x.i ALTER COLUMN v TYPE NUMERIC;
    INSERT INTO x.i VALUES (5001, 7, 1), (5002, 7.125, 2), (5003, 7.126, 3), (5004, 'NaN', 4);
    CREATE INDEX ON x.i (v); CREATE INDEX ON x.i (w); CREATE INDEX ON x.i ((v + w));
    INSERT INTO x.i VALUES (5005, 7.0000, 5), (5006, '-Infinity', 6), (5007, NULL, 7)`);
  for (const where of ["in memory", "from the log", "in segments"]) {
    if (where === "from the log") await engine.restart();
    if (where === "in segments") {
      await engine.run("STORAGE FLUSH TABLE x.i; STORAGE COMPACT TABLE x.i");
    }
    const plan = await engine.rows("EXPLAIN SELECT id FROM x.i WHERE v = 7.0");
    expect(JSON.stringify(plan)).toContain("i_v_idx");
    expect(await engine.rows("SELECT v FROM x.i WHERE v = 7.0 AND id > 2900 ORDER BY id")).toEqual(
      ["7.00", "7", "7.0000"].map((value) => [value]),
    );
    expect(await engine.rows("SELECT id FROM x.i WHERE v > 7.00 AND v < 8 ORDER BY v")).toEqual([
      [5002],
      [5003],
    ]);
    expect(await engine.rows("SELECT id FROM x.i WHERE v IN ('NaN', 7.125) ORDER BY v")).toEqual([
      [5002],
      [5004],
    ]);
    expect(await engine.rows("SELECT min(v), max(v) FROM x.i")).toEqual([["-Infinity", "NaN"]]);
    expect(await engine.rows("SELECT v FROM x.i ORDER BY v DESC LIMIT 3")).toEqual([
      [null],
      ["NaN"],
      ["99.00"],
    ]);
    expect(await engine.rows("SELECT id FROM x.i WHERE w = 2 ORDER BY id")).toEqual([[2], [5002]]);
    expect(await engine.rows("SELECT id FROM x.i WHERE v + w = 9.1250")).toEqual([[5002]]);
  }
});

test("a UNIQUE number keeps its scale, and no equal number can be added", async () => {
  await engine.run(`CREATE TABLE x.u (id INT PRIMARY KEY, v NUMERIC UNIQUE);
    INSERT INTO x.u VALUES (1, 1.234), (2, 1.2350), (3, 1.2351)`);
  for (const where of ["in memory", "in segments"]) {
    if (where === "in segments") await engine.run("STORAGE FLUSH TABLE x.u");
    const { error } = await engine.ask("INSERT INTO x.u VALUES (4, 1.235)");
    expect(error?.code).toBe("DUPLICATE_KEY");
    expect(await engine.rows("SELECT id, v FROM x.u WHERE v = 1.235")).toEqual([[2, "1.2350"]]);
  }
  const both = await engine.ask("INSERT INTO x.u VALUES (5, 7.0), (6, 7.00)");
  expect(both.error?.code).toBe("DUPLICATE_KEY");
  await engine.run(`INSERT INTO x.u VALUES (4, 1.236);
    INSERT INTO x.u VALUES (5, 1.23400) ON CONFLICT (v) DO UPDATE SET v = EXCLUDED.v`);
  expect(await engine.rows("SELECT id, v FROM x.u ORDER BY v")).toEqual([
    [1, "1.23400"],
    [2, "1.2350"],
    [3, "1.2351"],
    [4, "1.236"],
  ]);
});

test("a foreign key refers to an equal number of another scale", async () => {
  await engine.run(`CREATE TABLE x.parent (v NUMERIC PRIMARY KEY, u NUMERIC UNIQUE);
    CREATE TABLE x.child (id INT PRIMARY KEY, v NUMERIC REFERENCES x.parent,
      u NUMERIC REFERENCES x.parent (u));
    CREATE INDEX ON x.child (v);
    INSERT INTO x.parent VALUES (1.50, 2.50); INSERT INTO x.child VALUES (1, 1.500, 2.5)`);
  const { error } = await engine.ask("DELETE FROM x.parent");
  expect(error?.code).toBe("FOREIGN_KEY_VIOLATION");
  expect(
    await engine.rows("SELECT c.v, p.u FROM x.child c JOIN x.parent p ON c.v = p.v AND c.u = p.u"),
  ).toEqual([["1.500", "2.50"]]);
});

test("a primary key that is added to a table counts equal numbers as one", async () => {
  await engine.run(`CREATE TABLE x.added (v NUMERIC); INSERT INTO x.added VALUES (1.50), (1.25);
    ALTER TABLE x.added ADD PRIMARY KEY (v)`);
  const { error } = await engine.ask("INSERT INTO x.added VALUES (1.5)");
  expect(error?.code).toBe("DUPLICATE_KEY");
  expect(await engine.rows("SELECT v FROM x.added WHERE v = 1.5")).toEqual([["1.50"]]);
});

test.each([
  ["1.10 + 2", "3.10"],
  ["1e30 * 1e-30", "1.000000000000000000000000000000"],
  ["10 / 4.0", "2.5000000000000000"],
  ["1e40 / 3", "3333333333333333333333333333333333333333"],
  ["-7.5 % 2", "-1.5"],
  ["2.0 ^ 0.5", "1.4142135623730950"],
  ["2.5 ^ -3", "0.0640000000000000"],
  ["'Infinity'::numeric - 'Infinity'", "NaN"],
  ["'-Infinity'::numeric * 0", "NaN"],
  ["1 / 'Infinity'::numeric", "0"],
  ["sqrt(2.0)", "1.414213562373095"],
  ["exp(1.0)", "2.7182818284590452"],
  ["ln(2.0)", "0.6931471805599453"],
  ["log(100.0)", "2.0000000000000000"],
  ["log(2.0, 64.0)", "6.0000000000000000"],
  ["factorial(40)", "815915283247897734345611269596115894272000000000"],
  ["gcd(1.5::numeric, 0.25)", "0.25"],
  ["lcm(1.5::numeric, 0.25)", "1.50"],
  ["div(1e40, 7)", "1428571428571428571428571428571428571428"],
  ["round(1e40 + 0.55, 1)", "10000000000000000000000000000000000000000.6"],
  ["trunc(-1.29::text::numeric, 1)", "-1.2"],
  ["ceil(1.2::text::numeric)", "2"],
  ["floor(-1.2::text::numeric)", "-2"],
  ["trim_scale(1.500::text::numeric)", "1.5"],
  ["sign('-Infinity'::numeric)", "-1"],
  ["greatest(1.10, 1.1::text::numeric)", "1.10"],
  ["ARRAY[1.1] || ARRAY[2]", ["1.1", "2"]],
  ["(SELECT sum(x) FROM (VALUES (1.5), (2.25), (3)) t (x))", "6.75"],
  ["(SELECT avg(x) FROM (VALUES (1.5), (2.25), (3)) t (x))", "2.2500000000000000"],
  ["(SELECT stddev(x) FROM (VALUES (1.5), (2.25), (3)) t (x))", "0.75000000000000000000"],
  ["(SELECT var_pop(x) FROM (VALUES (1), ('NaN'::numeric)) t (x))", "NaN"],
  [
    "to_char(12345678901234567890123456789.5::text::numeric, 'FM999G999G999G999G999G999G999G999G999G990D9')",
    "12,345,678,901,234,567,890,123,456,789.5",
  ],
  ["to_char(1.2345e-30::text::numeric, '9.99EEEE')", " 1.23e-30"],
  ["to_jsonb(1.10::text::numeric)", "1.10"],
  ["to_jsonb('NaN'::numeric)", '"NaN"'],
  ["12.50::text::numeric::int", 13],
  ["1e20::text::numeric::float8", 100000000000000000000],
])("%s is %p", async (expression, wanted) => {
  expect(await engine.rows(`SELECT ${expression}`)).toEqual([[wanted]]);
});

test.each([
  ["1e131072::text::numeric", "VALUE_OUT_OF_RANGE"],
  ["'1e-16384'::text::numeric", "VALUE_OUT_OF_RANGE"],
  ["1.0 / 0::text::numeric", "DIVISION_BY_ZERO"],
  ["'NaN'::numeric::int", "VALUE_OUT_OF_RANGE"],
  ["'NaN'::numeric(5,2)", "UNSUPPORTED_FEATURE"],
  ["'NaN'::text::numeric::numeric(5,2)", "VALUE_OUT_OF_RANGE"],
  ["'1.5x'::text::numeric", "INVALID_VALUE"],
  ["12345::text::numeric(1000,998)", "VALUE_OUT_OF_RANGE"],
  ["1::numeric(1001)", "INVALID_DEFINITION"],
  ["factorial(32178)", "VALUE_OUT_OF_RANGE"],
  ["sqrt(-1.0)", "VALUE_OUT_OF_RANGE"],
  ["ln(0.0)", "VALUE_OUT_OF_RANGE"],
  ["exp(1e5)", "VALUE_OUT_OF_RANGE"],
  ["0.0 ^ -1", "VALUE_OUT_OF_RANGE"],
  ["(-8.0) ^ 0.5", "VALUE_OUT_OF_RANGE"],
])("%s is refused with %s", async (expression, code) => {
  const { error } = await engine.ask(`SELECT ${expression}`);
  expect(error?.code).toBe(code as never);
});

test("a NUMERIC of a size beyond 38 digits, or with a negative scale, rounds to it", async () => {
  await engine.run(`CREATE TABLE x.s (id INT PRIMARY KEY, a NUMERIC(60,10), b NUMERIC(3,-6), c NUMERIC(3,6));
    INSERT INTO x.s VALUES (1, 12345678901234567890123456789012345678901234567.5, 123456789, 0.0001235)`);
  expect(await engine.rows("SELECT a, b, c FROM x.s")).toEqual([
    ["12345678901234567890123456789012345678901234567.5000000000", "123000000", "0.000124"],
  ]);
});

test("a DECIMAL column compared with a NUMERIC finds the same rows as PostgreSQL", async () => {
  await engine.run(`CREATE TABLE x.d (id INT PRIMARY KEY, d NUMERIC(10,2));
    INSERT INTO x.d VALUES (1, 1.00), (2, 1.01), (3, -1.00)`);
  const ids = async (condition: string): Promise<unknown> =>
    (await engine.rows(`SELECT id FROM x.d WHERE ${condition} ORDER BY id`)).flat();
  expect(await ids("d < '1.005'::text::numeric")).toEqual([1, 3]);
  expect(await ids("d <= '1.00'::text::numeric")).toEqual([1, 3]);
  expect(await ids("d = '1.001'::text::numeric")).toEqual([]);
  expect(await ids("d <> '1.001'::text::numeric")).toEqual([1, 2, 3]);
  expect(await ids("'-1.001'::text::numeric < d")).toEqual([1, 2, 3]);
  expect(await ids("d < 'NaN'::numeric AND d > '-Infinity'::numeric")).toEqual([1, 2, 3]);
  expect(await ids("d > (SELECT avg(d) FROM x.d)")).toEqual([1, 2]);
});

test("a series ends before the first number that no NUMERIC holds", async () => {
  const rows = await engine.rows(
    "SELECT g / 10::numeric ^ 131071 FROM generate_series(8 * 10::numeric ^ 131071, 9 * 10::numeric ^ 131071, 10::numeric ^ 131071) g",
  );
  expect(rows.map(([cell]) => String(cell).slice(0, 1))).toEqual(["8", "9"]);
});

test.each([
  ["sum(CASE WHEN id = 1 THEN d ELSE 0 END)", "1.00"],
  ["sum(d - coalesce(nullif(d, 1.01), 0.5))", "0.51"],
  [
    "avg(CASE WHEN id = 1 THEN d * 2 WHEN id = 2 THEN NULL ELSE 0.125 END)",
    "1.06250000000000000000",
  ],
  ["sum(CASE WHEN id > 1 THEN d::text::numeric END)", "0.01"],
])("%s of parts with different scales is exact", async (expression, wanted) => {
  expect(await engine.rows(`SELECT ${expression} FROM x.d`)).toEqual([[wanted]]);
});

test("a DECIMAL column becomes a NUMERIC without a size, and keeps its rows", async () => {
  await engine.run(`CREATE TABLE x.a (id INT PRIMARY KEY, v NUMERIC(10,2), w NUMERIC(5) UNIQUE);
    INSERT INTO x.a VALUES (1, 1.50, 7), (2, NULL, 8); STORAGE FLUSH TABLE x.a;
    INSERT INTO x.a VALUES (3, 2.25, 9); ALTER TABLE x.a ALTER COLUMN v TYPE NUMERIC;
    INSERT INTO x.a VALUES (4, 1e-30, 10)`);
  for (const where of ["in memory", "from the log", "in segments"]) {
    if (where === "from the log") await engine.restart();
    if (where === "in segments") {
      await engine.run("STORAGE FLUSH TABLE x.a; STORAGE COMPACT TABLE x.a");
    }
    expect(await engine.rows("SELECT id, v FROM x.a ORDER BY v, id")).toEqual([
      [4, "0.000000000000000000000000000001"],
      [1, "1.50"],
      [3, "2.25"],
      [2, null],
    ]);
  }
  const { error } = await engine.ask("ALTER TABLE x.a ALTER COLUMN w TYPE NUMERIC");
  expect(error?.code).toBe("UNSUPPORTED_FEATURE");
});
