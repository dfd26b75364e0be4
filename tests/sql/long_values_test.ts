/**
 * Tests functions called on strings of several megabytes. Each call succeeds or is refused
 * quickly, and a query with many of them yields between rows.
 */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { systemClock } from "../../src/base/clock.ts";
import { testThoroughly } from "../support/requirements.ts";
import { TestEngine } from "../support/sql_engine.ts";
import { shareOf } from "../support/thoroughness.ts";

let engine: TestEngine;
beforeAll(async () => {
  engine = await TestEngine.open({ clock: systemClock, inThreads: true });
});
afterAll(() => engine[Symbol.asyncDispose]());

const ANSWERED: readonly (readonly [expression: string, answer: unknown])[] = [
  ["repeat('é', 2000000) ~* '(É|e)*x'", false],
  ["repeat('é', 2000000) SIMILAR TO '(é|b)*'", true],
  ["length(regexp_replace(repeat('ab', 100000), 'b', '', 'g'))", 100_000],
  ["cardinality(string_to_array(repeat('a,', 500000), ','))", 500_001],
  ["jsonb_array_length(('[' || repeat('1,', 500000) || '1]')::jsonb)", 500_001],
  ["jsonb_array_length(('[\"' || repeat(',', 1000000) || '\"]')::jsonb)", 1],
  ["cardinality(('{' || repeat('1,', 500000) || '1}')::int[])", 500_001],
  ["length(repeat('a', 2097152))", 2_097_152],
];

test.each(shareOf(ANSWERED, { oneOf: 3 }))("%s", async (expression, answer) => {
  expect(await engine.rows(`SELECT ${expression}`)).toEqual([[answer]]);
});

const REFUSED: readonly (readonly [expression: string, code: string])[] = [
  ["regexp_replace(repeat('ab', 1000000), '(a|b)*c', '', 'g')", "LIMIT_EXCEEDED"],
  ["regexp_count(repeat('a', 2000000), 'a')", "LIMIT_EXCEEDED"],
  ["string_to_array(repeat('a,', 1000000), ',')", "VALUE_TOO_LONG"],
  ["string_to_array(repeat('a', 2000000), NULL)", "VALUE_TOO_LONG"],
  ["('[' || repeat('1,', 1000000) || '1]')::jsonb", "VALUE_TOO_LONG"],
  ["('{' || repeat('1,', 1000000) || '1}')::int[]", "VALUE_TOO_LONG"],
  ["repeat('a', 2097153)", "VALUE_TOO_LONG"],
];

test.each(shareOf(REFUSED, { oneOf: 2 }))("%s is refused", async (expression, code) => {
  expect(await engine.failure(`SELECT ${expression}`)).toStartWith(`${code}@1`);
});

testThoroughly("operators on multiranges of 100,000 ranges read each range once", async () => {
  const answers: readonly (readonly [expression: string, answer: unknown])[] = [
    ["m @> parts", true],
    ["parts <@ m", true],
    ["m && gaps", false],
    ["length((m - parts)::text)", 3_155_581],
    ["m - m", "{}"],
    ["m * gaps", "{}"],
    ["range_merge(m + gaps)", "[10,1000007)"],
  ];
  const [m, parts, gaps] = [
    "10 * i, 10 * i + 3",
    "10 * i + 1, 10 * i + 2",
    "10 * i + 5, 10 * i + 7",
  ];
  const sql = `SELECT ${answers.map(([expression]) => expression).join(", ")}
    FROM (SELECT range_agg(int4range(${m})) AS m, range_agg(int4range(${parts})) AS parts,
      range_agg(int4range(${gaps})) AS gaps FROM generate_series(1, 100000) AS g (i)) AS made`;
  expect(await engine.rows(sql)).toEqual([answers.map(([, answer]) => answer)]);
});

test("rows with slow calls leave the event loop free, and the statement can time out between two rows", async () => {
  const call = "regexp_replace(repeat('ab', 20000), '(a|b)*' || g || 'c', '', 'g')";
  let turns = 0;
  const others = setInterval(() => {
    turns += 1;
  }, 0);
  const rows = await engine.rows(`SELECT length(${call}) FROM generate_series(1, 40) AS t(g)`);
  clearInterval(others);
  expect(rows).toEqual(Array.from({ length: 40 }, () => [40_000]));
  expect(turns).toBeGreaterThan(10);
  const sql = `SELECT sum(length(${call})) FROM generate_series(1, 100000) AS t(g)`;
  expect(await engine.failure(sql, { timeoutMs: 200 })).toBe("STATEMENT_TIMEOUT@1");
});
