/**
 * Verifies that every operator returns PostgreSQL's results, and refuses operands of any other
 * type. The tests are a table of operations.
 */
import { expect, test } from "bun:test";
import { resolveBinary, resolveLike } from "../../../../src/sql/functions/operator/operators.ts";
import {
  BIGINT,
  BOOLEAN,
  BYTES,
  DATE,
  type DataType,
  DOUBLE,
  decimalType,
  FILE,
  FLOAT,
  INT,
  SMALLINT,
  TEXT,
  TIME,
  typeName,
  UNKNOWN,
  UUID,
} from "../../../../src/types/mod.ts";
import {
  day,
  errorCodeOf,
  type Given,
  INTS,
  js,
  jsb,
  num as n,
  nullOf,
  of,
  operate,
  prefix,
  span,
  TEXTS,
  ts,
  tz,
  untyped,
  VECTOR,
} from "../calls.ts";

type Case = readonly [Given, string, Given, string | null, string?];

const CASES: readonly Case[] = [
  // The following operators work on numbers.
  [7, "/", 2, "3", "integer"],
  [-7, "/", 2, "-3"],
  [-7, "%", 3, "-1"],
  [n("7.0"), "/", 2, "3.5000000000000000", "numeric"],
  [n("0.1"), "+", n("0.2"), "0.3", "numeric(2,1)"],
  [n("1.10"), "*", 2, "2.20", "numeric(13,2)"],
  [n("1.5"), "%", n("0.4"), "0.3"],
  [n("1"), "-", n("0.001"), "0.999"],
  [of(SMALLINT, "1"), "+", of(BIGINT, "2"), "3", "bigint"],
  [of(BIGINT, "9007199254740993"), "+", 1, "9007199254740994"],
  [n("1.5"), "+", of(DOUBLE, "1"), "2.5", "double precision"],
  [of(FLOAT, "0.1"), "+", of(FLOAT, "0.2"), "0.3", "real"],
  [1, "+", of(FLOAT, "0.5"), "1.5", "double precision"],
  [untyped("5"), "+", 1, "6", "integer"],
  [2, "^", 10, "1024", "double precision"],
  [6, "&", 3, "2"],
  [6, "|", 3, "7"],
  [6, "#", 3, "5"],
  [1, "<<", 4, "16"],
  [-16, ">>", 2, "-4"],
  [of(BIGINT, "1"), "<<", 62, "4611686018427387904"],
  // The following operators compare values.
  [1, "<", n("1.5"), "true"],
  [of(BIGINT, "9007199254740993"), "=", of(BIGINT, "9007199254740992"), "false"],
  [of(BIGINT, "9223372036854775807"), ">", of(decimalType(38, 38), "0.5"), "true"],
  [of(FLOAT, "0.1"), "=", of(DOUBLE, "0.1"), "false"],
  ["a", "<", "B", "false"],
  ["\uffff", "<", "😀", "true"],
  [untyped("a"), "=", untyped("a"), "true"],
  [day("2025-01-01"), "=", ts("2025-01-01"), "true"],
  [day("2025-01-02"), ">", untyped("2025-01-01"), "true"],
  [
    of(UUID, "550e8400-e29b-41d4-a716-446655440000"),
    "=",
    untyped("550E8400E29B41D4A716446655440000"),
    "true",
  ],
  [span("1 month"), "=", span("30 days"), "true"],
  [of(TIME, "01:00"), "<", span("2 hours"), "true"],
  [js('{"a":1.0}'), "=", js('{ "a": 1 }'), "true"],
  [true, ">", false, "true"],
  [of(INTS, "{1,2}"), "<", of(INTS, "{1,3}"), "true"],
  [of(BYTES, "\\x01"), "<>", of(BYTES, "\\x02"), "true"],
  [5, "IS DISTINCT FROM", null, "true"],
  [null, "IS NOT DISTINCT FROM", null, "true"],
  [5, "IS NOT DISTINCT FROM", n("5.0"), "true"],
  [5, "=", null, null],
  // The following operators work on text.
  ["a", "||", 1, "a1", "text"],
  [true, "||", "a", "truea"],
  [n("1.50"), "||", untyped("x"), "1.50x"],
  ["a", "||", null, null],
  [of(BYTES, "\\x01"), "||", of(BYTES, "\\x02"), "\\x0102", "bytea"],
  ["a_b", "LIKE", "a\\_b", "true"],
  ["axb", "LIKE", "a\\_b", "false"],
  ["Tide", "ILIKE", "t%E", "true"],
  ["Tide", "NOT LIKE", "t%", "true"],
  ["x😀y", "LIKE", "x_y", "true"],
  ["abc", "SIMILAR TO", "(a|b)%", "true"],
  ["abc", "SIMILAR TO", "b%", "false"],
  ["a.c", "SIMILAR TO", "a.c", "true"],
  ["abc", "SIMILAR TO", "a.c", "false"],
  ["abc", "NOT SIMILAR TO", "a[bx]c", "false"],
  ["abc", "~", "^a.c$", "true"],
  ["ABC", "~*", "b", "true"],
  ["abc", "!~", "z", "true"],
  ["ABC", "!~*", "b", "false"],
  ["tidemark", "^@", "tide", "true"],
  // The following operators work on dates and times.
  [day("2025-01-31"), "+", span("1 month"), "2025-02-28 00:00:00", "timestamp without time zone"],
  [day("2024-01-31"), "+", span("1 month"), "2024-02-29 00:00:00"],
  [day("2025-03-01"), "-", day("2025-02-01"), "28", "integer"],
  [day("2025-01-01"), "+", 1, "2025-01-02", "date"],
  [1, "+", day("2025-01-01"), "2025-01-02"],
  [day("2025-01-01"), "-", 1, "2024-12-31"],
  [day("2025-01-01"), "+", of(TIME, "10:00"), "2025-01-01 10:00:00"],
  [ts("2025-01-02 03:00"), "-", ts("2025-01-01 01:30"), "1 day 01:30:00", "interval"],
  [ts("2025-01-01"), "-", ts("2025-01-02 03:00"), "-1 days -03:00:00"],
  [tz("2025-01-02"), "-", day("2025-01-01"), "1 day"],
  [ts("2025-01-31 10:00"), "+", untyped("1 month"), "2025-02-28 10:00:00"],
  [ts("2025-03-31"), "-", span("1 month 1 day"), "2025-02-27 00:00:00"],
  [span("1 hour"), "/", 4, "00:15:00"],
  [span("1 month"), "*", n("1.5"), "1 mon 15 days"],
  [2, "*", span("1 day"), "2 days"],
  [span("1 day"), "-", span("2 hours"), "1 day -02:00:00"],
  [of(TIME, "23:30"), "+", span("1 hour"), "00:30:00", "time without time zone"],
  [of(TIME, "10:00"), "-", of(TIME, "08:30"), "01:30:00", "interval"],
  [tz("2025-06-01 12:00+00"), "AT TIME ZONE", "Europe/Berlin", "2025-06-01 14:00:00"],
  [ts("2025-06-01 12:00"), "AT TIME ZONE", untyped("UTC"), "2025-06-01 12:00:00+00"],
  // The following operators work on JSON.
  [jsb('{"a":{"b":[1,2]}}'), "->", untyped("a"), '{"b": [1, 2]}', "jsonb"],
  [js('{"a": {"b":[1, 2]}}'), "->", "a", '{"b":[1, 2]}', "json"],
  [jsb("[1,2]"), "->>", 0, "1", "text"],
  [jsb("[1,2]"), "->", -1, "2"],
  [jsb('{"a":null}'), "->>", "a", null],
  [jsb('{"a":null}'), "->", "a", "null"],
  [jsb('{"a":1}'), "->", "b", null],
  [jsb("[1]"), "->", "a", null],
  [js('{"a":{"b":[1,2]}}'), "#>>", untyped("{a,b,1}"), "2"],
  [js('{"a":{"b":[1,2]}}'), "#>", of(TEXTS, "{a,b}"), "[1,2]"],
  [jsb('{"a":1,"b":2}'), "@>", untyped('{"a":1}'), "true"],
  [jsb("[1,[2,3]]"), "@>", jsb("[[3]]"), "true"],
  [jsb("[1,2]"), "@>", jsb("1"), "true"],
  [jsb('{"a":[1]}'), "@>", jsb('{"a":1}'), "false"],
  [jsb('{"a":1}'), "<@", jsb('{"a":1.0,"b":2}'), "true"],
  [jsb('{"a":1}'), "?", "a", "true"],
  [jsb('["a"]'), "?", "a", "true"],
  [jsb('{"a":1}'), "?|", of(TEXTS, "{x,a}"), "true"],
  [jsb('{"a":1}'), "?&", of(TEXTS, "{x,a}"), "false"],
  [jsb('{"a":1}'), "||", jsb('{"b":2,"a":3}'), '{"a": 3, "b": 2}'],
  [jsb("[1]"), "||", jsb("2"), "[1, 2]"],
  [jsb('{"a":1,"b":2}'), "-", "a", '{"b": 2}'],
  [jsb("[1,2,3]"), "-", -1, "[1, 2]"],
  [jsb('{"a":1,"b":2}'), "-", of(TEXTS, "{a,b}"), "{}"],
  [jsb('{"a":{"b":1,"c":2}}'), "#-", of(TEXTS, "{a,b}"), '{"a": {"c": 2}}'],
  [jsb("[1,2]"), "#-", untyped("{-1}"), "[1]"],
  // The following operators work on arrays.
  [of(INTS, "{1,2}"), "||", 3, "{1,2,3}", "integer[]"],
  [0, "||", of(INTS, "{1}"), "{0,1}"],
  [of(INTS, "{1}"), "||", of(INTS, "{2,NULL}"), "{1,2,NULL}"],
  [of(INTS, "{1}"), "||", null, "{1}"],
  [of(INTS, "{1,2}"), "@>", of(INTS, "{2}"), "true"],
  [of(INTS, "{1,NULL}"), "@>", of(INTS, "{NULL}"), "false"],
  [of(INTS, "{1}"), "<@", of(INTS, "{1,2}"), "true"],
  [of(TEXTS, "{a,b}"), "&&", untyped("{b,c}"), "true"],
  // The following operators work on embeddings.
  [of(VECTOR, "[1,0,0]"), "<=>", of(VECTOR, "[0,1,0]"), "1", "double precision"],
  [of(VECTOR, "[1,0,0]"), "<->", untyped("[1,0,2]"), "2"],
  [of(VECTOR, "[1,2,3]"), "<#>", of(VECTOR, "[1,1,1]"), "-6"],
];

function shown(given: Given): string {
  return JSON.stringify(given, (_, item: unknown) =>
    typeof item === "bigint" ? item.toString() : item,
  );
}

test.each(CASES.map((each) => [shown(each[0]), each[1], shown(each[2]), each[3], each] as const))(
  "%s %s %s is %p",
  (...[, , , wanted, [left, op, right, , type]]) => {
    const result = operate(left, op, right);
    expect(result.text).toBe(wanted);
    if (type !== undefined) expect(result.type).toBe(type);
  },
);

test.each([
  [1, "/", 0, "DIVISION_BY_ZERO"],
  [n("1.5"), "%", 0, "DIVISION_BY_ZERO"],
  [of(DOUBLE, "1.5"), "/", 0, "DIVISION_BY_ZERO"],
  [2147483647, "+", 1, "VALUE_OUT_OF_RANGE"],
  [of(SMALLINT, "32767"), "*", of(SMALLINT, "2"), "VALUE_OUT_OF_RANGE"],
  [of(BIGINT, "9223372036854775807"), "+", 1, "VALUE_OUT_OF_RANGE"],
  [of(BIGINT, "-9223372036854775808"), "/", -1, "VALUE_OUT_OF_RANGE"],
  [of(DOUBLE, "1e300"), "*", of(DOUBLE, "1e300"), "VALUE_OUT_OF_RANGE"],
  [of(DOUBLE, "1e-300"), "*", of(DOUBLE, "1e-300"), "VALUE_OUT_OF_RANGE"],
  [of(FLOAT, "3e38"), "+", of(FLOAT, "3e38"), "VALUE_OUT_OF_RANGE"],
  [0, "^", -1, "VALUE_OUT_OF_RANGE"],
  [span("1 day"), "/", 0, "DIVISION_BY_ZERO"],
  [day("5874897-12-31"), "+", 1, "VALUE_OUT_OF_RANGE"],
  [ts("294246-12-31"), "+", span("1 day"), "VALUE_OUT_OF_RANGE"],
  ["a", "LIKE", "a\\", "INVALID_VALUE"],
  ["a", "~", "(", "INVALID_VALUE"],
  ["aa", "~", "(a)\\1", "UNSUPPORTED_FEATURE"],
  [untyped("abc"), "+", 1, "INVALID_VALUE"],
  [jsb("1"), "-", "a", "INVALID_VALUE"],
  [jsb("[1]"), "#-", of(TEXTS, "{x}"), "INVALID_VALUE"],
  [of(VECTOR, "[1,2,3]"), "<->", "[1,2]", "DIMENSION_MISMATCH"],
  [1, "+", "1", "TYPE_MISMATCH +"],
  [1, "=", "1", "TYPE_MISMATCH ="],
  [true, "=", 1, "TYPE_MISMATCH ="],
  [1, "||", 2, "TYPE_MISMATCH ||"],
  [of(INTS, "{1}"), "||", "a", "TYPE_MISMATCH ||"],
  [of(UUID, "550e8400-e29b-41d4-a716-446655440000"), "=", "x", "TYPE_MISMATCH ="],
  [1, "LIKE", "1", "TYPE_MISMATCH LIKE"],
  [of(DOUBLE, "1"), "%", of(DOUBLE, "1"), "TYPE_MISMATCH %"],
  [day("2025-01-01"), "+", day("2025-01-01"), "TYPE_MISMATCH +"],
  [1, "->", "a", "TYPE_MISMATCH ->"],
] as readonly (readonly [Given, string, Given, string])[])(
  "%p %s %p raises %s",
  (left, op, right, code) => {
    expect(errorCodeOf(() => operate(left, op, right))).toBe(code);
  },
);

test.each([
  ["-", 5, "-5"],
  ["-", n("-0.05"), "0.05"],
  ["-", of(DOUBLE, "0"), "-0"],
  ["-", span("1 day 02:00"), "-1 days -02:00:00"],
  ["-", untyped("5"), "-5"],
  ["+", n("1.50"), "1.50"],
  ["~", 5, "-6"],
  ["@", -5, "5"],
  ["|/", 25, "5"],
  ["||/", 27, "3"],
  ["NOT", true, "false"],
  ["NOT", nullOf(BOOLEAN), null],
] as readonly (readonly [string, Given, string | null])[])("%s %p is %p", (op, operand, wanted) => {
  expect(prefix(op, operand).text).toBe(wanted);
});

test.each([
  ["-", of(SMALLINT, "-32768"), "VALUE_OUT_OF_RANGE"],
  ["|/", -1, "VALUE_OUT_OF_RANGE"],
  ["-", "a", "TYPE_MISMATCH -"],
  ["~", n("1.5"), "TYPE_MISMATCH ~"],
] as readonly (readonly [string, Given, string])[])("%s %p raises %s", (op, operand, code) => {
  expect(errorCodeOf(() => prefix(op, operand))).toBe(code);
});

test("LIKE accepts a different escape character, or none", () => {
  const like = (text: string, pattern: string, escape: string): unknown =>
    resolveLike("LIKE", [TEXT, TEXT, TEXT])?.evaluate([text, pattern, escape]);
  expect(like("50%", "50!%", "!")).toBe(true);
  expect(like("50x", "50!%", "!")).toBe(false);
  expect(like("a\\b", "a\\b", "")).toBe(true);
  expect(like("a\\%", "a\\%", "")).toBe(true);
  expect(errorCodeOf(() => like("a", "a", "ab"))).toBe("INVALID_VALUE");
  const alternating = resolveLike("LIKE", [TEXT, TEXT, TEXT]);
  expect(alternating?.evaluate(["%", "!%", "!"])).toBe(true);
  expect(alternating?.evaluate(["!x", "!%", "\\"])).toBe(true);
});

test("comparisons cast both sides to one type", () => {
  const operandsOf = (left: DataType, right: DataType): string[] | undefined =>
    resolveBinary("=", left, right)?.operands.map(typeName);
  expect(operandsOf(INT, BIGINT)).toEqual(["bigint", "bigint"]);
  expect(operandsOf(UNKNOWN, DATE)).toEqual(["date", "date"]);
  expect(operandsOf({ kind: "text", lengthMax: 3 }, { kind: "text", lengthMax: 3 })).toEqual([
    "text",
    "text",
  ]);
  expect(operandsOf(BIGINT, decimalType(38, 38))).toEqual(["numeric(57,38)", "numeric(57,38)"]);
  expect(operandsOf(FILE, FILE)).toEqual(["jsonb", "jsonb"]);
  expect(operandsOf(INT, FLOAT)).toEqual(["double precision", "double precision"]);
});

test("LIKE agrees with a plain matcher on random patterns", () => {
  const matches = (text: string, pattern: string): boolean => {
    if (pattern === "") return text === "";
    const [first = "", ...rest] = pattern;
    const others = rest.join("");
    if (first === "%") {
      return Array.from({ length: text.length + 1 }, (_, at) => at).some((at) =>
        matches(text.slice(at), others),
      );
    }
    return text !== "" && (first === "_" || first === text[0]) && matches(text.slice(1), others);
  };
  const form = resolveLike("LIKE", [TEXT, TEXT]);
  let state = 12_345;
  const pick = (items: string): string => {
    state = (Math.imul(state, 1_103_515_245) + 12_345) >>> 0;
    return items[(state >>> 16) % items.length] ?? "";
  };
  for (let round = 0; round < 5000; round += 1) {
    const pattern = Array.from({ length: round % 6 }, () => pick("ab%_%")).join("");
    const text = Array.from({ length: round % 7 }, () => pick("ab")).join("");
    expect(form?.evaluate([text, pattern]), `${text} LIKE ${pattern}`).toBe(matches(text, pattern));
  }
});
