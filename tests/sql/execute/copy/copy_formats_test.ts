/**
 * Tests COPY in all its formats: each value survives a round trip, however the data are split into
 * pieces. COPY refuses damaged data with their position, and stores nothing.
 */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import { askCopyIn, copyFailure, copyIn, copyOut } from "../../../support/copied.ts";
import { testThoroughly } from "../../../support/requirements.ts";
import { TestEngine } from "../../../support/sql_engine.ts";
import { amountOf } from "../../../support/thoroughness.ts";

const FORMATS = ["text", "csv", "ndjson", "binary"] as const;

const COLUMNS =
  "id INT PRIMARY KEY, s SMALLINT, b BIGINT, r REAL, d DOUBLE, n NUMERIC(30,6), t TEXT, " +
  "v VARCHAR(9), o BOOLEAN, y BYTES, j JSON, k JSONB, ts TIMESTAMP, tz TIMESTAMPTZ, dt DATE, " +
  "tm TIME, u UUID, e EMBEDDING(3), ai INT[], at TEXT[], an NUMERIC(5,2)[], iv INTERVAL, " +
  "nr NUMRANGE, tr TSTZRANGE, dm DATEMULTIRANGE, ra INT4RANGE[]";

const ROWS = [
  `(1, -32768, 9223372036854775807, 1.5, -0.1, 123456789012345678901234.123456, 'plain', 'ab', TRUE,
    X'00ff0a', '{"a": [1, "x"]}', '{"b": 2}', '2024-02-29 12:34:56.789012',
    '1999-12-31 23:59:59.999999+00', '0001-01-01', '23:59:59.999999',
    '00112233-4455-6677-8899-aabbccddeeff', '[1,2.5,-3]', '{{1,2},{3,NULL}}',
    '{"a,b",NULL,"NULL","q\\"\\\\ }"}', '{1.25}', '1 year 2 mons -3 days 04:05:06.789',
    '(1.50,NaN]', '["2024-02-29 12:34:56.789012+00",)', '{(,2024-01-01),[2024-02-01,infinity]}', '{"[1,5)",NULL,empty}')`,
  `(2, 32767, -9223372036854775808, -3.4e38, 1e-300, -0.000001, E'tab\\t line\\nfeed\\rreturn \\\\ "quote", comma', '',
    FALSE, X'', 'null', '"x"', '9999-12-31 23:59:59.999999', '1970-01-01 00:00:00+00',
    '9999-12-31', '00:00:00', 'ffffffff-ffff-ffff-ffff-ffffffffffff', '[0,0,0]', '{}', '{""}', NULL, '-00:00:01',
    'empty', '(,)', '{}', '{}')`,
  "(3, 0, 0, 0, 0, 0, '', '\\N', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL)",
  "(4, NULL, 9007199254740993, NULL, NULL, 10000, 'ä€😀', 'ü😀', NULL, NULL, NULL, NULL, '1999-12-31 23:59:59.5', NULL, '2000-01-01', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL)",
  "(5, NULL, NULL, NULL, NULL, NULL, '\\.', '\\', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL)",
  "(6, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL)",
];

let engine: TestEngine;

beforeAll(async () => {
  engine = await TestEngine.open();
  await engine.run(`CREATE NAMESPACE x; CREATE TABLE x.a (${COLUMNS}); CREATE TABLE x.z (${COLUMNS});
    CREATE TABLE x.p (id INT PRIMARY KEY, n INT NOT NULL DEFAULT 7, t TEXT, CHECK (n < 100))`);
  await engine.run(`INSERT INTO x.a VALUES ${ROWS.join(", ")}`);
});

afterAll(async () => {
  await engine[Symbol.asyncDispose]();
});

beforeEach(async () => {
  await engine.run("DELETE FROM x.z WHERE true; DELETE FROM x.p WHERE true");
});

function rowsOf(table: string): Promise<readonly (readonly unknown[])[]> {
  return engine.rows(`SELECT ${NAMES.join(", ")} FROM x.${table} ORDER BY id`);
}

const NAMES = COLUMNS.replace("(30,6)", "")
  .split(", ")
  .map((column) => column.split(" ")[0] ?? "");

/**
 * The distance between damaged bytes. A usual run damages every eleventh byte, with a different
 * first byte for each value.
 */
const STEP = amountOf({ usual: 11, thorough: 1 });

describe.each(FORMATS)("COPY in the format %s reads what it has written", (format) => {
  test("%s keeps the end of a day and the sign of a zero", async () => {
    const columns = "id INT PRIMARY KEY, t TIME, ts TIME[], d DOUBLE, r REAL, ds DOUBLE[]";
    await engine.run("DROP TABLE IF EXISTS x.m; DROP TABLE IF EXISTS x.n");
    await engine.run(`CREATE TABLE x.m (${columns}); CREATE TABLE x.n (${columns})`);
    await engine.run("INSERT INTO x.m VALUES (1, '24:00', '{24:00,00:00}', '-0', '-0', '{-0,0}')");
    const read = (table: string): Promise<readonly (readonly unknown[])[]> =>
      engine.rows(`SELECT t::text, ts::text, d::text, r::text, ds::text FROM x.${table}`);
    const data = await copyOut(engine, `COPY x.m TO STDOUT (FORMAT ${format})`);
    expect(await copyIn(engine, `COPY x.n FROM STDIN (FORMAT ${format})`, data)).toBe(1);
    // JSON cells in responses, and thus in the ndjson format, do not show the sign of zero.
    const [zero, zeros] = format === "ndjson" ? ["0", "{0,0}"] : ["-0", "{-0,0}"];
    expect(await read("n")).toEqual([["24:00:00", "{24:00:00,00:00:00}", zero, zero, zeros]]);
  });

  test("the format keeps dates and timestamps in arrays, and those that are far away or infinite", async () => {
    const columns =
      "id INT PRIMARY KEY, d DATE, t TIMESTAMPTZ, ds DATE[], ts TIMESTAMPTZ[], js JSON[]";
    await engine.run("DROP TABLE IF EXISTS x.m; DROP TABLE IF EXISTS x.n");
    await engine.run(`CREATE TABLE x.m (${columns}); CREATE TABLE x.n (${columns})`);
    await engine.run(`INSERT INTO x.m VALUES
      (1, '5874897-12-31', '294246-12-31 00:00Z', '{2024-02-29,NULL,infinity}', '{"294246-12-31 00:00Z",2024-02-29,infinity}', NULL),
      (2, '4714-11-24 BC', '4714-11-24 00:00+00 BC', '{{0044-03-15 BC},{-infinity}}', '{{"0044-03-15 12:00:00.000001+00 BC"},{NULL}}', '{"[1]","{\\"a\\": 2}","3"}'),
      (3, 'infinity', '-infinity', '{}', '{}', '{}'), (4, NULL, NULL, NULL, NULL, NULL)`);
    const read = (table: string): Promise<readonly (readonly unknown[])[]> =>
      engine.rows(`SELECT id, d, t, ds, ts, js::text FROM x.${table} ORDER BY id`);
    const data = await copyOut(engine, `COPY x.m TO STDOUT (FORMAT ${format})`);
    expect(await copyIn(engine, `COPY x.n FROM STDIN (FORMAT ${format})`, data)).toBe(4);
    expect(await read("n")).toEqual(await read("m"));
  });

  test("the format keeps the values of every type", async () => {
    const data = await copyOut(engine, `COPY x.a TO STDOUT (FORMAT ${format})`);
    expect(await copyIn(engine, `COPY x.z FROM STDIN (FORMAT ${format})`, data)).toBe(ROWS.length);
    expect(await rowsOf("z")).toEqual(await rowsOf("a"));
  });

  test.each([1, 7, 100])(
    "the format gives the same result in pieces of %d bytes",
    async (pieceBytes) => {
      const data = await copyOut(engine, `COPY x.a TO STDOUT (FORMAT ${format})`);
      await copyIn(engine, `COPY x.z FROM STDIN (FORMAT ${format})`, data, { pieceBytes });
      expect(await rowsOf("z")).toEqual(await rowsOf("a"));
    },
  );

  test("an empty table is copied as empty data, which contain no rows", async () => {
    const data = await copyOut(engine, `COPY x.p TO STDOUT (FORMAT ${format})`);
    expect(await copyIn(engine, `COPY x.p FROM STDIN (FORMAT ${format})`, data)).toBe(0);
  });

  test("data that are damaged at any byte are refused with the position, or contain other rows", async () => {
    await engine.run("INSERT INTO x.p VALUES (1, 2, 'three'), (4, 5, NULL), (6, 7, 'a\"b')");
    const data = await copyOut(engine, `COPY x.p TO STDOUT (FORMAT ${format})`);
    await engine.run("DELETE FROM x.p WHERE true");
    for (const [number, byte] of [34, 255].entries()) {
      for (let at = number % STEP; at < data.length; at += STEP) {
        const damaged = Buffer.from(data);
        damaged[at] = byte;
        const { error } = await askCopyIn(
          engine,
          `COPY x.p FROM STDIN (FORMAT ${format})`,
          damaged,
        );
        const { length } = await engine.rows("SELECT id FROM x.p");
        if (error === undefined) {
          await engine.run("DELETE FROM x.p WHERE true");
          continue;
        }
        expect({ at, byte, length, code: error.code }).toEqual({
          at,
          byte,
          length: 0,
          code: error.code,
        });
        expect(error.message).toMatch(/(?:line|row) \d|already exists|must not be NULL/);
      }
    }
  });

  test("ranges that are damaged at any byte are refused with the position, or are other ranges", async () => {
    const columns = "id INT PRIMARY KEY, r INT8RANGE, m NUMMULTIRANGE";
    await engine.run("DROP TABLE IF EXISTS x.m; DROP TABLE IF EXISTS x.n");
    await engine.run(`CREATE TABLE x.m (${columns}); CREATE TABLE x.n (${columns})`);
    await engine.run("INSERT INTO x.m VALUES (1, '[-5,7)', '{(,1.50],(2,3)}'), (2, 'empty', '{}')");
    const data = await copyOut(engine, `COPY x.m TO STDOUT (FORMAT ${format})`);
    for (const [number, byte] of [0, 4, 34, 255].entries()) {
      for (let at = number % STEP; at < data.length; at += STEP) {
        const damaged = Buffer.from(data);
        damaged[at] = byte;
        const { error } = await askCopyIn(
          engine,
          `COPY x.n FROM STDIN (FORMAT ${format})`,
          damaged,
        );
        if (error !== undefined) expect(error.message).toMatch(/(?:line|row) \d|already exists/);
        // Each range, written as text and parsed again, must be the same range.
        const isKept = "r::text::int8range = r AND m::text::nummultirange = m";
        const rows = await engine.rows(`DELETE FROM x.n WHERE true RETURNING ${isKept}`);
        expect(error === undefined ? rows.flat() : rows).not.toContain(false);
      }
    }
  });

  testThoroughly(
    "shapes that are damaged at any byte are refused with the position, or are other shapes",
    async () => {
      const columns = "id INT PRIMARY KEY, b BOX, l LINE, p PATH, c CIRCLE, bs BOX[]";
      await engine.run("DROP TABLE IF EXISTS x.m; DROP TABLE IF EXISTS x.n");
      await engine.run(`CREATE TABLE x.m (${columns}); CREATE TABLE x.n (${columns})`);
      await engine.run(
        "INSERT INTO x.m VALUES (1, '1,2,3,4', '{1,2,3}', '[(0,0),(1,1)]', '<(1,2),3>', '{(1,1),(0,0);NULL}')",
      );
      const data = await copyOut(engine, `COPY x.m TO STDOUT (FORMAT ${format})`);
      for (const [number, byte] of [0, 127, 255].entries()) {
        for (let at = number % STEP; at < data.length; at += STEP) {
          const damaged = Buffer.from(data);
          damaged[at] = byte;
          const { error } = await askCopyIn(
            engine,
            `COPY x.n FROM STDIN (FORMAT ${format})`,
            damaged,
          );
          if (error !== undefined) expect(error.message).toMatch(/(?:line|row) \d|already exists/);
          // Each shape, written as text and parsed again, must be the same shape.
          const kept = ["b::text::box", "l::text::line", "p::text::path", "c::text::circle"].map(
            (text) => `coalesce(${text}::text = ${text.charAt(0)}::text, true)`,
          );
          const rows = await engine.rows(
            `DELETE FROM x.n WHERE true RETURNING ${kept.join(" AND ")}`,
          );
          expect(error === undefined ? rows.flat() : rows).not.toContain(false);
        }
      }
    },
  );

  test("data that are truncated at any byte are refused with the position, or contain fewer rows", async () => {
    await engine.run("INSERT INTO x.p VALUES (12, 34, 'three')");
    const data = await copyOut(engine, `COPY x.p TO STDOUT (FORMAT ${format})`);
    await engine.run("DELETE FROM x.p WHERE true");
    for (let length = 0; length < data.length; length += 1) {
      const part = data.subarray(0, length);
      const { error } = await askCopyIn(engine, `COPY x.p FROM STDIN (FORMAT ${format})`, part);
      const rows = await engine.rows("SELECT id FROM x.p ORDER BY id");
      if (format === "binary") expect(error?.code).toBe("INVALID_VALUE");
      if (error !== undefined) expect({ length, rows }).toEqual({ length, rows: [] });
      await engine.run("DELETE FROM x.p WHERE true");
    }
  });
});

describe("the options of COPY have their effect", () => {
  test("HEADER skips the first line, and MATCH compares its names", async () => {
    expect(
      await copyIn(engine, "COPY x.p FROM STDIN (FORMAT csv, HEADER)", 'a,"b\n,"\n1,2,x'),
    ).toBe(1);
    expect(
      await copyIn(engine, "COPY x.p (id, n) FROM STDIN (FORMAT csv, HEADER MATCH)", "id,n\n3,4\n"),
    ).toBe(1);
    expect(
      await copyFailure(
        engine,
        "COPY x.p (id, n) FROM STDIN (FORMAT csv, HEADER MATCH)",
        "id,t\n5,4\n",
      ),
    ).toBe(
      'INVALID_VALUE: Cannot read line 1: found "t" where the name of column "n" was expected',
    );
    expect(String(await copyOut(engine, "COPY x.p (t, id) TO STDOUT (HEADER)"))).toBe(
      "t\tid\nx\t1\n\\N\t3\n",
    );
  });

  test("DELIMITER, QUOTE, ESCAPE and NULL change the characters of the format", async () => {
    const options = "(FORMAT csv, DELIMITER ';', QUOTE '''', ESCAPE '\\', NULL 'nil')";
    await copyIn(engine, `COPY x.p FROM STDIN ${options}`, "1;2;'a\\';b'\n2;3;nil\n3;4;'nil'\n");
    expect(await engine.rows("SELECT t FROM x.p ORDER BY id")).toEqual([["a';b"], [null], ["nil"]]);
    expect(String(await copyOut(engine, `COPY x.p TO STDOUT ${options}`))).toBe(
      "1;2;'a\\';b'\n2;3;nil\n3;4;'nil'\n",
    );
  });

  test("DEFAULT, FORCE_NULL, FORCE_NOT_NULL and FORCE_QUOTE change single columns", async () => {
    await copyIn(
      engine,
      "COPY x.p FROM STDIN (FORMAT csv, DEFAULT 'd', FORCE_NOT_NULL (t))",
      "1,d,\n",
    );
    await copyIn(engine, "COPY x.p FROM STDIN (FORMAT csv, FORCE_NULL (t))", '2,3,""\n');
    await copyIn(engine, "COPY x.p FROM STDIN (FORMAT csv)", '3,3,""\n');
    expect(await engine.rows("SELECT id, n, t FROM x.p ORDER BY id")).toEqual([
      [1, 7, ""],
      [2, 3, null],
      [3, 3, ""],
    ]);
    expect(
      String(await copyOut(engine, "COPY x.p TO STDOUT (FORMAT csv, FORCE_QUOTE (n, t))")),
    ).toBe('1,"7",""\n2,"3",\n3,"3",""\n');
  });

  test("the option forms from before version 9 work", async () => {
    await copyIn(engine, "COPY x.p FROM STDIN WITH DELIMITER AS '|' NULL AS ''", "1|2|\n");
    await copyIn(engine, "COPY x.p FROM STDIN DELIMITERS", "2|2|\n").catch(() => undefined);
    await copyIn(
      engine,
      "COPY x.p FROM STDIN CSV HEADER QUOTE AS '''' FORCE NOT NULL t",
      "h\n3,4,\n",
    );
    expect(await engine.rows("SELECT id, t FROM x.p ORDER BY id")).toEqual([
      [1, null],
      [3, ""],
    ]);
  });

  test.each([
    ["(FORMAT xml)", 'found "xml", expected text, csv, ndjson, binary'],
    ["(DELIMITER ',,')", 'the delimiter is ",,", but must be a single ASCII character'],
    ["(QUOTE '''')", "found an option for the csv format, but the format is text"],
    [
      "(FORMAT binary, HEADER)",
      "found an option for the csv and text formats, but the format is binary",
    ],
    ["(FORMAT csv, FORMAT text)", "found a second FORMAT, but each option is allowed only once"],
    ["(FORMAT csv, QUOTE ',')", "the delimiter and the quote are the same"],
    ["(SPEED 9)", "found the option SPEED, which COPY does not support"],
    ["(ENCODING latin1)", 'the encoding "latin1"'],
  ])("%s are refused", async (options, message) => {
    const { error } = await askCopyIn(engine, `COPY x.p FROM STDIN ${options}`, "");
    expect(error?.message).toContain(message);
  });
});

describe("COPY reads and writes rows", () => {
  test("copied rows get defaults for absent columns, and generated ids", async () => {
    await engine.run("CREATE TABLE x.g (id BIGINT PRIMARY KEY DEFAULT SNOWFLAKE_ID(), n INT)");
    expect(await copyIn(engine, "COPY x.g (n) FROM STDIN", "1\n2\n")).toBe(2);
    expect(await engine.rows("SELECT COUNT(DISTINCT id), SUM(n) FROM x.g")).toEqual([[2, 3]]);
  });

  test("COPY of a whole table neither writes nor reads its generated columns", async () => {
    await engine.run(
      "CREATE TABLE x.made (id INT PRIMARY KEY, twice INT GENERATED ALWAYS AS (id * 2) STORED, n INT)",
    );
    expect(await copyIn(engine, "COPY x.made FROM STDIN", "1\t5\n2\t6\n")).toBe(2);
    expect(await engine.rows("SELECT id, twice, n FROM x.made ORDER BY id")).toEqual([
      [1, 2, 5],
      [2, 4, 6],
    ]);
    const data = await copyOut(engine, "COPY x.made TO STDOUT (FORMAT csv, HEADER)");
    expect(Buffer.from(data).toString()).toBe("id,n\n1,5\n2,6\n");
  });

  test("copied rows are refused with their line, column and value, and nothing is stored", async () => {
    const many = Array.from({ length: 3000 }, (_, i) => `${i},1,x\n`).join("");
    const copy = "COPY x.p FROM STDIN (FORMAT csv)";
    expect(await copyFailure(engine, copy, `${many}3000,y,\n`)).toBe(
      'INVALID_VALUE: Cannot read "y" as integer: expected a whole number (line 3001, column "n")',
    );
    expect(await copyFailure(engine, copy, `${many}3000,,\n`)).toBe(
      'NOT_NULL_VIOLATION: Cannot write a row to x.p: column "n" must not be NULL (line 3001)',
    );
    expect(await copyFailure(engine, copy, `${many}3000,100,\n`)).toContain("(line 3001)");
    expect(await copyFailure(engine, copy, `${many}3000,1\n`)).toBe(
      'INVALID_VALUE: Cannot read line 3001: found no cell for column "t"',
    );
    expect(await copyFailure(engine, copy, `${many}3000,1,2,3\n`)).toBe(
      "INVALID_VALUE: Cannot read line 3001: found 4 cells instead of 3",
    );
    expect(await copyFailure(engine, copy, `${many}"3000`)).toBe(
      "INVALID_VALUE: Cannot read line 3001: a quoted cell is not closed",
    );
    expect(await copyFailure(engine, copy, `${many}7,1,x\n`)).toContain(
      "key (id) = (7) already exists",
    );
    expect(await engine.rows("SELECT COUNT(*) FROM x.p")).toEqual([[0]]);
  });

  test("copied rows that are not valid UTF-8 or contain NUL are refused", async () => {
    const copy = "COPY x.p FROM STDIN (FORMAT csv)";
    expect(await copyFailure(engine, copy, Buffer.from([49, 44, 50, 44, 255]))).toBe(
      'INVALID_VALUE: Cannot read line 1, column "t": the text is not valid UTF-8',
    );
    expect(await copyFailure(engine, copy, "1,2,a\u0000")).toContain("NUL");
    expect(await copyFailure(engine, "COPY x.p FROM STDIN", "1\t2\t\\xff\n")).toContain(
      "not valid UTF-8",
    );
  });

  test("copied rows with an existing key are errors, or skipped, or updated", async () => {
    await engine.run("INSERT INTO x.p VALUES (1, 2, 'old')");
    const copy = (option: string): string =>
      `COPY x.p FROM STDIN (FORMAT csv, ON_CONFLICT ${option})`;
    expect(await copyFailure(engine, copy("error"), "1,3,new\n")).toContain("already exists");
    expect(await copyIn(engine, copy("nothing"), "1,3,new\n2,3,new\n")).toBe(1);
    expect(await copyIn(engine, copy("update"), "1,4,newer\n3,3,new\n")).toBe(2);
    expect(await engine.rows("SELECT id, n, t FROM x.p ORDER BY id")).toEqual([
      [1, 4, "newer"],
      [2, 3, "new"],
      [3, 3, "new"],
    ]);
    await copyIn(
      engine,
      "COPY x.p (id, t) FROM STDIN (FORMAT csv, ON_CONFLICT update)",
      "1,newest\n",
    );
    expect(await engine.rows("SELECT n, t FROM x.p WHERE id = 1")).toEqual([[4, "newest"]]);
  });

  test("copied rows with faulty values are skipped and counted on request", async () => {
    const copy = "COPY x.p FROM STDIN (FORMAT csv, ON_ERROR ignore)";
    const { results } = await askCopyIn(engine, copy, "1,2,a\nx,2,b\n3,2x,c\n4,5,d\n");
    expect(results[0]?.rowCount).toBe(2);
    expect(results[0]?.notices).toEqual([
      "Skipped 2 row(s) that contain a value that cannot be stored in its column",
    ]);
    expect(await engine.rows("SELECT id, t FROM x.p ORDER BY id")).toEqual([
      [1, "a"],
      [4, "d"],
    ]);
    expect(await copyFailure(engine, copy, "7,x,a\n5,,a\n")).toContain("(line 2)");
  });

  test("copied JSON rows may have their members in any order, but only known ones", async () => {
    const copy = "COPY x.p FROM STDIN (FORMAT ndjson)";
    await copyIn(
      engine,
      copy,
      '{"t":"a","id":1}\n\n { "id" : 2 , "n" : 3 , "\\u0074" : null } \r\n',
    );
    expect(await engine.rows("SELECT id, n, t FROM x.p ORDER BY id")).toEqual([
      [1, 7, "a"],
      [2, 3, null],
    ]);
    expect(await copyFailure(engine, copy, '{"id":3,"q":1}')).toBe(
      'INVALID_VALUE: Cannot read line 1: found the member "q", but there is no such column',
    );
    expect(await copyFailure(engine, copy, '{"id":3,"id":4}')).toContain(
      'found the member "id" twice',
    );
    expect(await copyFailure(engine, copy, '{"id":3} x')).toContain(
      'found "x", expected the end of the line',
    );
    expect(await copyFailure(engine, copy, "[1]")).toContain("expected {");
    expect(await copyFailure(engine, copy, '{"id":"a')).toContain("the end of a string");
  });

  test("copied rows after the end marker of the format text are refused", async () => {
    expect(await copyIn(engine, "COPY x.p (id) FROM STDIN", "1\n\\.\n")).toBe(1);
    expect(await copyFailure(engine, "COPY x.p (id) FROM STDIN", "2\n\\.\n3\n")).toContain(
      "after the end marker",
    );
  });
});

test("more bytes than a statement may hold are refused, unless their rows are skipped", async () => {
  await using small = await TestEngine.open({
    config: "[performance]\nquery_memory_bytes = 1048576",
  });
  await small.run("CREATE NAMESPACE x; CREATE TABLE x.p (id INT PRIMARY KEY, t TEXT)");
  const rows = (prefix: string): string =>
    Array.from({ length: 30_000 }, (_, i) => `${prefix}${i},${"x".repeat(50)}\n`).join("");
  const options = { pieceBytes: 65_536 };
  const copy = "COPY x.p FROM STDIN (FORMAT csv, ON_ERROR ignore)";
  expect((await askCopyIn(small, copy, rows(""), options)).error?.code).toBe("MEMORY_EXCEEDED");
  expect(await small.rows("SELECT COUNT(*) FROM x.p")).toEqual([[0]]);
  expect(await copyIn(small, copy, `${rows("q")}7,kept\n`, options)).toBe(1);
});

describe("COPY may be one of several statements in a request", () => {
  test("the data of COPY follow the statement, up to their end marker", async () => {
    const results = await engine
      .run(
        "SET client_encoding = 'UTF8'; COPY x.p (id, t) FROM stdin;\n1\tit's; $$\n2\t\\N\n\\.\n\n\nSELECT id, t FROM x.p ORDER BY id",
      )
      .catch(
        async () =>
          await engine.run(
            "COPY x.p (id, t) FROM stdin;\n1\tit's; $$\n2\t\\N\n\\.\n\n\nSELECT id, t FROM x.p ORDER BY id",
          ),
      );
    expect(results.at(-1)?.rows).toEqual([
      [1, "it's; $$"],
      [2, null],
    ]);
  });

  test("a transaction contains the rows of COPY", async () => {
    await engine.ask(
      "BEGIN; COPY x.p (id) FROM stdin;\n1\n\\.\nCOPY x.p (id) FROM stdin;\n1\n\\.\nCOMMIT",
    );
    expect(await engine.rows("SELECT id FROM x.p")).toEqual([]);
    await engine.run(
      "BEGIN; COPY x.p (id) FROM stdin;\n1\n\\.\nINSERT INTO x.p (id) VALUES (2); COMMIT",
    );
    expect(await engine.rows("SELECT id FROM x.p ORDER BY id")).toEqual([[1], [2]]);
  });

  test("the lines for psql around a dump are skipped", async () => {
    const dump = "\\restrict Ab9\n\nCOPY x.p (id) FROM stdin;\n1\n\\.\n\n\\unrestrict Ab9\n\n";
    expect(await engine.run(dump)).toHaveLength(1);
    expect(await engine.failure("\\connect x\nSELECT 1")).toBe("INVALID_SQL@1:0");
    expect(await engine.failure("SELECT 1 \\restrict x")).toBe("INVALID_SQL@1:9");
  });

  test("data without an end marker, and a COPY without data, are refused", async () => {
    expect(await engine.failure("COPY x.p FROM stdin;\n1\t2\t3\n")).toBe("BATCH_PARSE_ERROR@1:19");
    expect(await engine.failure("COPY x.p FROM stdin; SELECT 1")).toBe("INVALID_INPUT@1:0");
    expect(await engine.failure("COPY x.p TO STDOUT")).toBe("INVALID_INPUT@1:0");
  });
});
