/**
 * Verifies that aggregates are exact, both row by row and over vectors, and that empty groups give
 * the values that SQL defines.
 */
import { expect, test } from "bun:test";
import type {
  AggregateForm,
  AggregateState,
  BatchGroups,
} from "../../../../src/sql/functions/aggregate/aggregates.ts";
import {
  isAggregate,
  resolveAggregate,
} from "../../../../src/sql/functions/aggregate/aggregates.ts";
import {
  BIGINT,
  BOOLEAN,
  BYTES,
  canonicalJson,
  DATE,
  type DataType,
  DOUBLE,
  decimalType,
  FLOAT,
  INT,
  INTERVAL,
  JSON_TEXT,
  JSONB,
  jsonTextOf,
  SMALLINT,
  TEXT,
  TIMESTAMP,
  typeName,
  UNKNOWN,
  UUID,
  type Value,
  valuesOf,
  vectorFromValues,
  wholeFromBigint,
} from "../../../../src/types/mod.ts";
import { randomFrom, seedOf } from "../../../types/random.ts";
import { aggregate, errorCodeOf, type Given, of } from "../calls.ts";

const INTS: DataType = { kind: "array", element: INT };
const DOUBLES: DataType = { kind: "array", element: DOUBLE };

function form(name: string, ...types: DataType[]): AggregateForm {
  const found = resolveAggregate(name, types);
  if (found === undefined) throw new Error(`no aggregate ${name}`);
  return found;
}

function rows(...values: readonly Given[]): readonly (readonly Given[])[] {
  return values.map((value) => [value]);
}

function all(type: DataType, ...texts: readonly string[]): readonly (readonly Given[])[] {
  return texts.map((text) => [of(type, text)]);
}

type Case = readonly [
  string,
  readonly DataType[],
  readonly (readonly Given[])[],
  string | null,
  string,
];

const CASES: readonly Case[] = [
  ["count", [], [[], [], []], "3", "bigint"],
  ["count", [INT], rows(1, null, 3), "2", "bigint"],
  ["sum", [SMALLINT], all(SMALLINT, "1", "2"), "3", "bigint"],
  ["sum", [INT], rows(1, null, 3), "4", "bigint"],
  [
    "sum",
    [BIGINT],
    all(BIGINT, "9223372036854775807", "9223372036854775807"),
    "18446744073709551614",
    "numeric(38,0)",
  ],
  ["sum", [decimalType(10, 2)], all(decimalType(10, 2), "1.10", "2.25"), "3.35", "numeric(38,2)"],
  ["sum", [FLOAT], all(FLOAT, "0.5", "0.25"), "0.75", "double precision"],
  ["sum", [INTERVAL], all(INTERVAL, "1 day", "2 hours"), "1 day 02:00:00", "interval"],
  ["avg", [INT], rows(1, 2, null, 4), "2.3333333333333335", "double precision"],
  [
    "avg",
    [BIGINT],
    all(BIGINT, "9223372036854775807", "9223372036854775805"),
    "9.223372036854776e+18",
    "double precision",
  ],
  [
    "avg",
    [decimalType(10, 2)],
    all(decimalType(10, 2), "1", "2", "2"),
    "1.6666666666666667",
    "numeric",
  ],
  ["avg", [INTERVAL], all(INTERVAL, "1 day", "2 days"), "1 day 12:00:00", "interval"],
  ["min", [INT], rows(3, 1, null), "1", "integer"],
  [
    "max",
    [BIGINT],
    all(BIGINT, "1", "9223372036854775807", "9007199254740991"),
    "9223372036854775807",
    "bigint",
  ],
  ["min", [TEXT], rows("b", "a"), "a", "text"],
  [
    "max",
    [UUID],
    all(UUID, "00000000-0000-0000-0000-000000000001", "00000000-0000-0000-0000-000000000002"),
    "00000000-0000-0000-0000-000000000002",
    "uuid",
  ],
  ["max", [DATE], all(DATE, "2025-01-01", "2024-01-01"), "2025-01-01", "date"],
  ["min", [INTERVAL], all(INTERVAL, "1 month", "29 days"), "29 days", "interval"],
  ["max", [INTS], all(INTS, "{1,2}", "{2}"), "{2}", "integer[]"],
  ["any_value", [INT], rows(null, 7, 8), "7", "integer"],
  ["bool_and", [BOOLEAN], rows(true, null, false), "false", "boolean"],
  ["every", [BOOLEAN], rows(true, true), "true", "boolean"],
  ["bool_or", [BOOLEAN], rows(false, true, false), "true", "boolean"],
  ["bit_and", [INT], rows(6, 3), "2", "integer"],
  ["bit_or", [INT], rows(6, 3), "7", "integer"],
  ["bit_xor", [BIGINT], all(BIGINT, "-1", "9007199254740993"), "-9007199254740994", "bigint"],
  [
    "string_agg",
    [TEXT, UNKNOWN],
    [
      ["a", ","],
      [null, ","],
      ["b", ","],
    ],
    "a,b",
    "text",
  ],
  [
    "string_agg",
    [TEXT, TEXT],
    [
      ["a", "-"],
      ["b", "+"],
      ["c", null],
    ],
    "a+bc",
    "text",
  ],
  [
    "string_agg",
    [BYTES, BYTES],
    [
      [of(BYTES, "\\x01"), of(BYTES, "\\x00")],
      [of(BYTES, "\\x02"), of(BYTES, "\\x00")],
    ],
    "\\x010002",
    "bytea",
  ],
  ["array_agg", [INT], rows(1, null, 2), "{1,NULL,2}", "integer[]"],
  ["json_agg", [INT], rows(1, null), "[1, null]", "json"],
  ["jsonb_agg", [JSON_TEXT], all(JSON_TEXT, '{"b":1,"a":2}'), '[{"a": 2, "b": 1}]', "jsonb"],
  [
    "json_object_agg",
    [TEXT, INT],
    [
      ["a", 1],
      ["b", null],
    ],
    '{ "a" : 1, "b" : null }',
    "json",
  ],
  [
    "jsonb_object_agg",
    [TEXT, INT],
    [
      ["b", 1],
      ["a", 2],
      ["b", 3],
    ],
    '{"a": 2, "b": 3}',
    "jsonb",
  ],
  ["stddev", [INT], rows(2, 4, 4, 4, 5, 5, 7, 9), "2.138089935299395", "double precision"],
  ["stddev_samp", [INT], rows(1), null, "double precision"],
  ["stddev_pop", [INT], rows(2, 4, 4, 4, 5, 5, 7, 9), "2", "double precision"],
  [
    "variance",
    [decimalType(5, 1)],
    all(decimalType(5, 1), "1.5", "2.5"),
    "0.50000000000000000000",
    "numeric",
  ],
  ["var_samp", [DOUBLE], all(DOUBLE, "1.5", "2.5"), "0.5", "double precision"],
  ["var_pop", [INT], rows(1, 1), "0", "double precision"],
  [
    "var_pop",
    [BIGINT],
    all(BIGINT, "9007199254740993", "9007199254740995"),
    "1",
    "double precision",
  ],
  [
    "covar_pop",
    [INT, INT],
    [
      [1, 1],
      [2, 3],
      [null, 5],
    ],
    "0.5",
    "double precision",
  ],
  [
    "covar_samp",
    [INT, INT],
    [
      [1, 1],
      [2, 3],
    ],
    "1",
    "double precision",
  ],
  [
    "corr",
    [INT, INT],
    [
      [1, 1],
      [2, 2],
      [3, 3],
    ],
    "1",
    "double precision",
  ],
  [
    "corr",
    [INT, INT],
    [
      [1, 1],
      [1, 2],
    ],
    null,
    "double precision",
  ],
  [
    "regr_count",
    [INT, INT],
    [
      [1, 1],
      [null, 2],
    ],
    "1",
    "bigint",
  ],
  [
    "regr_avgx",
    [INT, INT],
    [
      [1, 4],
      [2, 6],
    ],
    "5",
    "double precision",
  ],
  [
    "regr_avgy",
    [INT, INT],
    [
      [1, 4],
      [2, 6],
    ],
    "1.5",
    "double precision",
  ],
  [
    "regr_slope",
    [INT, INT],
    [
      [3, 1],
      [5, 2],
      [7, 3],
    ],
    "2",
    "double precision",
  ],
  [
    "regr_intercept",
    [INT, INT],
    [
      [3, 1],
      [5, 2],
      [7, 3],
    ],
    "1",
    "double precision",
  ],
  [
    "regr_r2",
    [INT, INT],
    [
      [3, 1],
      [5, 2],
      [7, 3],
    ],
    "1",
    "double precision",
  ],
  [
    "regr_sxx",
    [INT, INT],
    [
      [3, 1],
      [5, 2],
      [7, 3],
    ],
    "2",
    "double precision",
  ],
  [
    "regr_sxy",
    [INT, INT],
    [
      [3, 1],
      [5, 2],
      [7, 3],
    ],
    "4",
    "double precision",
  ],
  [
    "regr_syy",
    [INT, INT],
    [
      [3, 1],
      [5, 2],
      [7, 3],
    ],
    "8",
    "double precision",
  ],
  ["median", [INT], rows(5, 1, null, 2, 10), "3.5", "double precision"],
  [
    "percentile_cont",
    [DOUBLE, INT],
    [
      [0.25, 1],
      [0.25, 2],
      [0.25, 3],
    ],
    "1.5",
    "double precision",
  ],
  [
    "percentile_cont",
    [DOUBLES, INT],
    [
      [of(DOUBLES, "{0,0.5,NULL}"), 1],
      [of(DOUBLES, "{0,0.5,NULL}"), 3],
    ],
    "{1,2,NULL}",
    "double precision[]",
  ],
  [
    "percentile_cont",
    [DOUBLE, INTERVAL],
    [
      [0.5, of(INTERVAL, "1 day")],
      [0.5, of(INTERVAL, "2 days")],
    ],
    "1 day 12:00:00",
    "interval",
  ],
  [
    "percentile_disc",
    [DOUBLE, TEXT],
    [
      [0.5, "a"],
      [0.5, "b"],
      [0.5, "c"],
    ],
    "b",
    "text",
  ],
  ["mode", [TEXT], rows("b", "a", "a", "b", "b"), "b", "text"],
  ["approx_count_distinct", [TEXT], rows("a", "b", "a", null), "2", "bigint"],
];

test.each(CASES.map((each) => [each[0], each[1].map(typeName).join(", "), each[3], each] as const))(
  "%s(%s) is %p",
  (...[, , wanted, [name, types, given, , type]]) => {
    const result = aggregate(name, types, given);
    expect(result.text).toBe(wanted);
    expect(result.type).toBe(type);
  },
);

test.each([...new Set(CASES.map(([name]) => name))])(
  "%s over no rows is NULL, or 0 as a count",
  (name) => {
    const types = CASES.find(([other]) => other === name)?.[1] ?? [];
    const isCount = /count/.test(name);
    expect(aggregate(name, types, []).text).toBe(isCount ? "0" : null);
  },
);

test("isAggregate recognizes aggregates, and resolveAggregate refuses unsupported types", () => {
  expect(isAggregate("sum")).toBe(true);
  expect(isAggregate("lower")).toBe(false);
  expect(resolveAggregate("sum", [TEXT])).toBeUndefined();
  expect(resolveAggregate("min", [BOOLEAN])).toBeUndefined();
  expect(resolveAggregate("min", [JSONB])).toBeUndefined();
  expect(resolveAggregate("bool_and", [INT])).toBeUndefined();
  expect(resolveAggregate("sum", [INT, INT])).toBeUndefined();
  expect(resolveAggregate("array_agg", [INTS])?.result).toEqual(INTS);
  expect(resolveAggregate("string_agg", [INT, TEXT])).toBeUndefined();
  expect(form("percentile_cont", DOUBLE, INT).isOrderedSet).toBe(true);
  expect(form("max", INT).ignoresRepeats).toBe(true);
});

test("sums beyond the range of their type are refused", () => {
  expect(errorCodeOf(() => aggregate("sum", [DOUBLE], all(DOUBLE, "1e308", "1e308")))).toBe(
    "VALUE_OUT_OF_RANGE",
  );
  expect(errorCodeOf(() => aggregate("json_object_agg", [TEXT, INT], [[null, 1]]))).toBe(
    "INVALID_VALUE",
  );
  expect(errorCodeOf(() => aggregate("percentile_disc", [DOUBLE, INT], [[2, 1]]))).toBe(
    "VALUE_OUT_OF_RANGE",
  );
});

/** Aggregates the same rows one by one and as vectors, and checks that both results are equal. */
function bothWays(
  aggregateForm: AggregateForm,
  type: DataType,
  batches: readonly { groups: Uint32Array | undefined; values: Value[] }[],
): { byRow: Value[]; byVector: Value[]; vectorCount: number } {
  const byRow = aggregateForm.create();
  const byVector = aggregateForm.create();
  let vectorCount = 0;
  let groupCount = 1;
  for (const { groups, values } of batches) {
    for (const [row, value] of values.entries()) {
      const group = groups?.[row] ?? 0;
      groupCount = Math.max(groupCount, group + 1);
      byRow.add(group, value);
    }
    const vector = vectorFromValues(type, values);
    if (byVector.addVector?.(batchGroups(groups), vector, values.length) === true) vectorCount += 1;
    else for (const [row, value] of values.entries()) byVector.add(groups?.[row] ?? 0, value);
  }
  const finish = (state: AggregateState): Value[] =>
    Array.from({ length: groupCount + 1 }, (_, group) => state.finish(group));
  return { byRow: finish(byRow), byVector: finish(byVector), vectorCount };
}

/**
 * Returns the groups of a batch. They include the number of rows in each group only if the batch
 * has an even number of rows.
 */
function batchGroups(ids: Uint32Array | undefined): BatchGroups | undefined {
  if (ids === undefined) return undefined;
  const groupCount = Math.max(0, ...ids) + 1;
  if (ids.length % 2 === 1) return { ids, groupCount, rowCounts: undefined };
  const rowCounts = new Uint32Array(groupCount);
  for (const group of ids) rowCounts[group] = (rowCounts[group] ?? 0) + 1;
  return { ids, groupCount, rowCounts };
}

const seed = seedOf();

test.each([
  ["sum", INT],
  ["sum", BIGINT],
  ["sum", decimalType(38, 2)],
  ["avg", INT],
  ["avg", BIGINT],
  ["min", INT],
  ["max", BIGINT],
  ["min", DATE],
  ["max", TIMESTAMP],
  ["count", INT],
  ["count", TEXT],
  ["min", TEXT],
  ["bool_or", BOOLEAN],
  ["sum", DOUBLE],
  ["avg", DOUBLE],
  ["max", DOUBLE],
] as const)("%s of %p adds vectors as it adds rows", (name, type) => {
  const random = randomFrom(seed);
  const valueOf = (): Value => {
    if (random() < 0.1) return null;
    if (type.kind === "text") return String(Math.floor(random() * 1000));
    if (type.kind === "boolean") return random() < 0.5;
    if (type.kind === "double") return Math.floor(random() * 1000) / 8;
    if (type.kind === "int" || type.kind === "date") return Math.floor(random() * 4e9) - 2e9;
    const huge = BigInt(Math.floor(random() * 2 ** 53)) * (random() < 0.2 ? 1000n : 1n);
    return wholeFromBigint(random() < 0.5 ? huge : -huge);
  };
  const batches = Array.from({ length: 30 }, (_, batch) => {
    const values = Array.from({ length: 200 }, valueOf);
    const groups =
      batch % 3 === 0 ? undefined : Uint32Array.from(values, () => Math.floor(random() * 40));
    return { groups, values };
  });
  const { byRow, byVector, vectorCount } = bothWays(form(name, type), type, batches);
  expect(byVector, `seed ${seed}`).toEqual(byRow);
  const hasLoop = type.kind === "int" || type.kind === "double" || type.kind === "date";
  if (hasLoop) expect(vectorCount).toBe(batches.length);
});

test("sum of BIGINT is exact where doubles are not", () => {
  const random = randomFrom(seed + 1);
  let expected = 0n;
  const state = form("sum", BIGINT).create();
  for (let row = 0; row < 5000; row += 1) {
    const value = BigInt(Math.floor(random() * 2 ** 53)) * 1000n + 7n;
    expected += value;
    state.add(0, wholeFromBigint(value));
  }
  expect(state.finish(0)).toBe(expected);
  const vector = vectorFromValues(
    BIGINT,
    Array.from({ length: 4096 }, () => Number.MAX_SAFE_INTEGER),
  );
  expect(state.addVector?.(undefined, vector, 4096)).toBe(true);
  expect(state.finish(0)).toBe(expected + 4096n * BigInt(Number.MAX_SAFE_INTEGER));
});

test("count(*) counts rows of each group without looking at a vector", () => {
  const state = form("count").create();
  expect(state.addVector?.(undefined, undefined, 5)).toBe(true);
  expect(state.addVector?.(batchGroups(Uint32Array.from([0, 2, 2])), undefined, 3)).toBe(true);
  state.add(1);
  expect([0, 1, 2, 3].map((group) => state.finish(group))).toEqual([6, 1, 2, 0]);
});

test("approximate aggregates stay within two percent of the exact result", () => {
  const distinct = form("approx_count_distinct", INT).create();
  const percentile = form("approx_percentile", DOUBLE, DOUBLE).create();
  const count = 100_000;
  for (let value = 1; value <= count; value += 1) {
    distinct.add(0, value);
    distinct.add(0, value);
    percentile.add(0, value, 0.9);
    percentile.add(1, -value, 0.5);
  }
  percentile.add(2, 0, 0.5);
  const near = (actual: Value, wanted: number): boolean =>
    Math.abs(Number(actual) - wanted) <= Math.abs(wanted) * 0.02;
  expect(near(distinct.finish(0), count)).toBe(true);
  expect(near(percentile.finish(0), 0.9 * count)).toBe(true);
  expect(near(percentile.finish(1), -0.5 * count)).toBe(true);
  expect(percentile.finish(2)).toBe(0);
});

// Verifies that the result of an aggregate is the same whether it is requested alone or together
// with others.
test.each([
  ["count", [1, 2, 3]],
  ["sum", [1, 2, 3]],
  ["avg", [1, 2, 4]],
  ["sum", [Number.MAX_SAFE_INTEGER, -5, 7]],
  ["avg", [Number.MAX_SAFE_INTEGER, Number.MAX_SAFE_INTEGER, 7]],
] as const)("finishRange of %s over %j returns the same as finish", (name, values) => {
  const state = form(name, INT).create();
  const groupOf = (row: number): number => [1, 3, 1][row] ?? 0;
  for (const [row, value] of values.entries()) state.add(groupOf(row), value);
  state.add(2, null);
  const groupCount = 40;
  const expected = Array.from({ length: groupCount }, (_, group) => state.finish(group));
  const range = state.finishRange?.(0, groupCount);
  // Sums beyond the range of a double have to be requested one by one.
  const isHuge = values[0] + values[2] > Number.MAX_SAFE_INTEGER;
  expect(range === undefined).toBe(isHuge && name !== "count");
  if (range !== undefined) expect(valuesOf(range)).toEqual(expected);
});

test.each([
  [INT, (row: number): Value => (row % 3 === 0 ? null : row)],
  [BOOLEAN, (row: number): Value => row % 2 === 0],
  [TEXT, (row: number): Value => `"${row}"\n\u{1f600}`],
  [DOUBLE, (row: number): Value => row * 1e300],
  [JSON_TEXT, (row: number): Value => `{"bb":1e2, "a" : [${row},1.50],"a":2}`],
  [JSONB, (row: number): Value => `{"a": ${row}}`],
] as const)(
  "json_agg and jsonb_agg of many values of %j are those of their whole text",
  (type, valueAt) => {
    const plain = form("json_agg", type).create();
    const canonical = form("jsonb_agg", type).create();
    const texts: string[] = [];
    for (let row = 0; row < 2050; row += 1) {
      const value = valueAt(row);
      texts.push(jsonTextOf(type, value));
      plain.add(0, value);
      canonical.add(0, value);
      // A window function reads the results of its groups while rows are still being added.
      if (![0, 1022, 1023, 1024, 2047, 2048, 2049].includes(row)) continue;
      expect(plain.finish(0), `after ${row}`).toBe(`[${texts.join(", ")}]`);
      expect(canonical.finish(0), `after ${row}`).toBe(canonicalJson(`[${texts.join(", ")}]`));
    }
    expect([plain.finish(1), canonical.finish(1)]).toEqual([null, null]);
  },
);

test("jsonb_agg refuses values that JSONB cannot represent", () => {
  const ofJson = (written: string) => (): unknown =>
    aggregate("jsonb_agg", [JSON_TEXT], [[of(JSON_TEXT, written)]]);
  expect(errorCodeOf(ofJson('"\\u0000"'))).toBe("INVALID_VALUE");
  expect(errorCodeOf(ofJson("1e999999"))).toBe("VALUE_OUT_OF_RANGE");
});
