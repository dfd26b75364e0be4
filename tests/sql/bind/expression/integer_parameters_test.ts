/**
 * Tests integer parameters where SQL accepts only an INT. The type of such a parameter is BIGINT.
 */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { TestEngine } from "../../../support/sql_engine.ts";

let engine: TestEngine;

beforeAll(async () => {
  engine = await TestEngine.open();
  await engine.run("CREATE TABLE t (id BIGINT PRIMARY KEY); INSERT INTO t VALUES (1)");
});
afterAll(() => engine[Symbol.asyncDispose]());

const ANSWERS: readonly (readonly [expression: string, value: number, answer: unknown])[] = [
  ["left('abcdef', $1)", 2, "ab"],
  ["right('abcdef', $1)", -4, "ef"],
  ["repeat('ab', $1)", 2, "abab"],
  ["lpad('a', $1) || rpad('b', $1, '-')", 2, " ab-"],
  ["substr('abcdef', $1, $1)", 2, "bc"],
  ["substring('abcdef' FROM $1 FOR $1)", 3, "cde"],
  ["overlay('abcdef' PLACING 'x' FROM $1 FOR $1)", 2, "axdef"],
  ["split_part('a,b,c', ',', $1)", -1, "c"],
  ["chr($1)", 65, "A"],
  ["round(1.25::double precision::numeric(5, 2), $1)::text", 1, "1.3"],
  ["trunc(1.29, $1)::text", 1, "1.2"],
  ["make_date(2000 + $1::int, $1, $1)::text", 2, "2002-02-02"],
  ["make_time($1, $1, 1)::text", 2, "02:02:01"],
  ["make_timestamp(2020, $1, 1, 1, 1, 1)::text", 2, "2020-02-01 01:01:01"],
  ["make_interval($1, days => $1)::text", 2, "2 years 2 days"],
  ["width_bucket(5, 0, 10, $1)", 2, 2],
  ["get_byte('\\x0102'::bytea, $1)", 1, 2],
  ["trim_array(ARRAY[1, 2, 3], $1)::text", 2, "{1}"],
  ["array_fill(0, ARRAY[$1])::text", 2, "{0,0}"],
  ["array_length(ARRAY[1, 7], $1)", 1, 2],
  ["regexp_instr('abab', 'b', $1)", 3, 4],
  ["regexp_count('abab', 'b', $1)", 3, 1],
  ["regexp_replace('abab', 'b', 'x', 1, $1)", 2, "abax"],
  ["8 << $1", 2, 32],
  ["(ARRAY[10, 20, 30])[$1]", 2, 20],
  ["(ARRAY[10, 20, 30])[$1:]::text", 2, "{20,30}"],
  ["(SELECT count(*) FROM generate_subscripts(ARRAY[3, 4], $1))", 1, 2],
];

describe("an integer parameter has the type that its place requires", () => {
  test.each([...ANSWERS])("an integer parameter fits %s", async (expression, value, answer) => {
    const [result] = await engine.run(`SELECT ${expression}`, { params: [value] });
    expect(result?.rows).toEqual([[answer]]);
  });

  test.each([...ANSWERS])(
    "an integer parameter beyond INT is out of range in %s",
    async (expression) => {
      const failure = await engine.failure(`SELECT ${expression}`, { params: [2 ** 31] });
      expect(failure).toStartWith("VALUE_OUT_OF_RANGE");
    },
  );

  test("an integer parameter stays BIGINT where BIGINT is accepted", async () => {
    const sql = "SELECT $1, abs($1), $1 + 1, mod(7, $1), 8 | $1";
    const [result] = await engine.run(sql, { params: [2] });
    expect(result?.schema?.map(({ data_type: type }) => type)).toEqual(Array(5).fill("BigInt"));
    const large = await engine.run("SELECT abs($1)", { params: [2 ** 31] });
    expect(large[0]?.rows).toEqual([[2147483648]]);
  });

  test("an integer parameter has its range checked for each value, even with a cached plan", async () => {
    const sql = "SELECT left('abcdef', $1)";
    const answers: unknown[] = [];
    for (const value of [2, -1, "4", null]) {
      answers.push((await engine.run(sql, { params: [value] }))[0]?.rows?.[0]?.[0]);
      const failure = await engine.failure(sql, { params: [2 ** 31] });
      expect(failure).toStartWith("VALUE_OUT_OF_RANGE");
    }
    expect(answers).toEqual(["ab", "abcde", "abcd", null]);
  });

  test("an integer parameter inside an expression is a BIGINT, like a column", async () => {
    expect(await engine.failure("SELECT left('abcdef', $1 + 1)", { params: [1] })).toStartWith(
      "FUNCTION_NOT_FOUND",
    );
    expect(await engine.failure("SELECT left('abcdef', id) FROM t")).toStartWith(
      "FUNCTION_NOT_FOUND",
    );
  });
});
