/**
 * Verifies that each pair of types can be cast in exactly the contexts shown in the matrix below,
 * and that the resulting values are correct.
 */
import { expect, test } from "bun:test";
import { DatabaseError } from "../../src/base/errors.ts";
import {
  BIGINT,
  BOOLEAN,
  BYTES,
  type CastMode,
  canCast,
  casterFor,
  castValue,
  commonType,
  DATE,
  DATETIME,
  type DataType,
  DOUBLE,
  decimalType,
  FILE,
  FLOAT,
  INT,
  INTERVAL,
  JSON_TEXT,
  JSONB,
  SMALLINT,
  TEXT,
  TIME,
  TIMESTAMP,
  textFromValue,
  typeName,
  UNKNOWN,
  UUID,
  valueFromText,
} from "../../src/types/mod.ts";

const DECIMAL = decimalType(10, 2);
const VARCHAR: DataType = { kind: "text", lengthMax: 3 };
const VECTOR: DataType = { kind: "embedding", dimensions: 2 };
const INTS: DataType = { kind: "array", element: INT };

/**
 * The types of the matrix below, in order. For each source type (row) and target type (column),
 * the matrix has the casts allowed: `=` or `i` implicit, `a` assignment, `e` explicit, `w`
 * assignment but not explicit, `.` never.
 */
const TYPES: readonly DataType[] = [
  BOOLEAN,
  SMALLINT,
  INT,
  BIGINT,
  DECIMAL,
  FLOAT,
  DOUBLE,
  TEXT,
  JSON_TEXT,
  JSONB,
  TIMESTAMP,
  DATETIME,
  DATE,
  TIME,
  UUID,
  BYTES,
  VECTOR,
  FILE,
  INTERVAL,
  INTS,
];

const MATRIX = `
  = . e . . . . a . . . . . . . . . . . .
  . = i i i i i a . . w w w w . . . . . .
  e a = i i i i a . . w w w w . . . . . .
  . a a = i i i a . . w w w w . . . . . .
  . a a a = i i a . . . . . . . . . . . .
  . a a a a = i a . . . . . . . . . . . .
  . a a a a a = a . . . . . . . . . . . .
  e e e e e e e = a a a a a a a e a . e e
  e e e e e e e a = i . . . . . . . . . .
  e e e e e e e a i = . . . . . . . . . .
  . . . . . . . a . . = i a a . . . . . .
  . . . . . . . a . . a = a a . . . . . .
  . . . . . . . a . . i i = . . . . . . .
  . . . . . . . a . . . . . = . . . . i .
  . . . . . . . a . . . . . . = . . . . .
  . . . . . . . a . . . . . . . = . . . .
  . . . . . . . a . . . . . . . . = . . e
  . . . . . . . a i i . . . . . . . = . .
  . . . . . . . a . . . . . a . . . . = .
  . . . . . . . a . . . . . . . . a . . =
`
  .trim()
  .split("\n")
  .map((line) => line.trim().split(" "));

const ALLOWED: Readonly<Record<string, readonly CastMode[]>> = {
  "=": ["implicit", "assignment", "explicit"],
  i: ["implicit", "assignment", "explicit"],
  a: ["assignment", "explicit"],
  e: ["explicit"],
  w: ["assignment"],
  ".": [],
};

test.each(TYPES.map((from, row) => [typeName(from), from, MATRIX[row] ?? []] as const))(
  "canCast from %s allows each type in the contexts of the matrix",
  (name, from, row) => {
    for (const [column, to] of TYPES.entries()) {
      for (const mode of ["implicit", "assignment", "explicit"] as const) {
        const wanted = (ALLOWED[row[column] ?? "."] ?? []).includes(mode);
        expect(canCast(from, to, mode), `${name} to ${typeName(to)}, ${mode}`).toBe(wanted);
      }
    }
  },
);

test("untyped literals and NULL cast implicitly to every type", () => {
  for (const to of TYPES) expect(canCast(UNKNOWN, to, "implicit"), typeName(to)).toBe(true);
  expect(casterFor(UNKNOWN, TEXT, "implicit")).toBeUndefined();
});

/**
 * The source type, the text, the target type and the mode of each cast, and the text of its
 * result.
 */
const CASTS: readonly (readonly [DataType, string, DataType, CastMode, string])[] = [
  [BOOLEAN, "true", INT, "explicit", "1"],
  [INT, "0", BOOLEAN, "explicit", "false"],
  [INT, "-7", BOOLEAN, "explicit", "true"],
  [BOOLEAN, "true", TEXT, "assignment", "true"],
  [INT, "7", DECIMAL, "implicit", "7.00"],
  [BIGINT, "9007199254740993", DOUBLE, "implicit", "9.007199254740992e+15"],
  [BIGINT, "16777217", FLOAT, "implicit", "1.6777216e+07"],
  [BIGINT, "32767", SMALLINT, "assignment", "32767"],
  [DECIMAL, "2.50", INT, "explicit", "3"],
  [DECIMAL, "-2.50", INT, "explicit", "-3"],
  [DECIMAL, "2.49", INT, "assignment", "2"],
  [DOUBLE, "2.5", INT, "explicit", "2"],
  [DOUBLE, "3.5", INT, "explicit", "4"],
  [DOUBLE, "-2.5", INT, "explicit", "-2"],
  [DOUBLE, "0.1", FLOAT, "assignment", "0.1"],
  [DOUBLE, "12.345", DECIMAL, "assignment", "12.35"],
  [FLOAT, "0.1", DOUBLE, "implicit", "0.10000000149011612"],
  [FLOAT, "0.1", DECIMAL, "assignment", "0.10"],
  [DECIMAL, "0.10", DOUBLE, "implicit", "0.1"],
  [DECIMAL, "12.35", decimalType(10, 1), "assignment", "12.4"],
  [TEXT, "abcd", VARCHAR, "explicit", "abc"],
  [TEXT, "a😀cd", VARCHAR, "explicit", "a😀c"],
  [UNKNOWN, "abcd", VARCHAR, "explicit", "abc"],
  [INT, "12345", VARCHAR, "explicit", "123"],
  [TEXT, "42", INT, "explicit", "42"],
  [TEXT, "2025-01-31", DATE, "assignment", "2025-01-31"],
  [TEXT, '{"b":1, "a":2}', JSONB, "assignment", '{"a": 2, "b": 1}'],
  [TEXT, '{"b":1, "a":2}', JSON_TEXT, "assignment", '{"b":1, "a":2}'],
  [TEXT, "[1,2]", VECTOR, "assignment", "[1,2]"],
  [JSON_TEXT, '{"b":1,"a":2}', JSONB, "implicit", '{"a": 2, "b": 1}'],
  [JSON_TEXT, " 42 ", INT, "explicit", "42"],
  [JSON_TEXT, "2.5", INT, "explicit", "3"],
  [JSONB, "12345678901234567890123", decimalType(38, 0), "explicit", "12345678901234567890123"],
  [JSONB, "true", BOOLEAN, "explicit", "true"],
  [JSONB, '"a\\nb"', TEXT, "explicit", '"a\\nb"'],
  [JSONB, "[1, 2]", TEXT, "explicit", "[1, 2]"],
  [JSONB, '"a"', TEXT, "assignment", '"a"'],
  [TIMESTAMP, "2025-01-31 10:00", DATE, "assignment", "2025-01-31"],
  [TIMESTAMP, "2025-01-31 10:00", TIME, "assignment", "10:00:00"],
  [
    TIMESTAMP,
    "2025-01-31 10:00:00.6",
    { kind: "timestamp", digits: 0 },
    "explicit",
    "2025-01-31 10:00:01",
  ],
  [DATE, "2025-01-31", TIMESTAMP, "implicit", "2025-01-31 00:00:00"],
  [DATE, "2025-01-31", DATETIME, "implicit", "2025-01-31 00:00:00+00"],
  [DATETIME, "2025-01-31 10:00+02", TIMESTAMP, "assignment", "2025-01-31 08:00:00"],
  [TIME, "10:00", INTERVAL, "implicit", "10:00:00"],
  [INTERVAL, "2 days 25:00", TIME, "assignment", "01:00:00"],
  [INTERVAL, "-1 hour", TIME, "assignment", "23:00:00"],
  [BIGINT, "1735689600000000", TIMESTAMP, "assignment", "2025-01-01 00:00:00"],
  [BIGINT, "1735689600000000", DATETIME, "assignment", "2025-01-01 00:00:00+00"],
  [INT, "20089", DATE, "assignment", "2025-01-01"],
  [BIGINT, "3723500000", TIME, "assignment", "01:02:03.5"],
  [INTS, "{1,NULL}", { kind: "array", element: TEXT }, "assignment", "{1,NULL}"],
  [INTS, "{1,2}", VECTOR, "assignment", "[1,2]"],
  [VECTOR, "[0.1,2]", { kind: "array", element: DOUBLE }, "explicit", "{0.1,2}"],
  [
    UUID,
    "550e8400-e29b-41d4-a716-446655440000",
    TEXT,
    "assignment",
    "550e8400-e29b-41d4-a716-446655440000",
  ],
  [BYTES, "\\x00ff", TEXT, "assignment", "\\x00ff"],
];

test.each(
  CASTS.map(([from, text, to, mode, written]) => {
    return [typeName(from), text, typeName(to), written, { from, to, mode }] as const;
  }),
)("%s %p as %s is %p", (...[, text, , written, options]) => {
  const value = valueFromText(options.from, text);
  expect(textFromValue(options.to, castValue(value, options))).toBe(written);
});

const REFUSED: readonly (readonly [DataType, string, DataType, CastMode, string])[] = [
  [INT, "40000", SMALLINT, "assignment", "VALUE_OUT_OF_RANGE"],
  [DOUBLE, "1e19", BIGINT, "assignment", "VALUE_OUT_OF_RANGE"],
  [DOUBLE, "1e39", FLOAT, "assignment", "VALUE_OUT_OF_RANGE"],
  [INT, "100000000", DECIMAL, "implicit", "VALUE_OUT_OF_RANGE"],
  [TEXT, "abcd", VARCHAR, "assignment", "VALUE_TOO_LONG"],
  [UNKNOWN, "abcd", VARCHAR, "assignment", "VALUE_TOO_LONG"],
  [TEXT, "abc", INT, "explicit", "INVALID_VALUE"],
  [TEXT, "1", INT, "assignment", "TYPE_MISMATCH"],
  [INT, "1", BOOLEAN, "assignment", "TYPE_MISMATCH"],
  [INT, "1", TEXT, "implicit", "TYPE_MISMATCH"],
  [INTS, "{1,2,3}", VECTOR, "assignment", "DIMENSION_MISMATCH"],
  [INTS, "{1,NULL}", VECTOR, "assignment", "INVALID_VALUE"],
  [{ kind: "embedding", dimensions: 3 }, "[1,2,3]", VECTOR, "assignment", "DIMENSION_MISMATCH"],
  [JSONB, '"x"', INT, "explicit", "INVALID_VALUE"],
  [JSONB, "1e30", INT, "explicit", "VALUE_OUT_OF_RANGE"],
  [BIGINT, "9223372036854775807", TIMESTAMP, "assignment", "VALUE_OUT_OF_RANGE"],
  [INT, "-1", TIME, "assignment", "VALUE_OUT_OF_RANGE"],
  [BIGINT, "86400000001", TIME, "assignment", "VALUE_OUT_OF_RANGE"],
  [INT, "3000000", DATE, "assignment", "VALUE_OUT_OF_RANGE"],
];

test.each(
  REFUSED.map(([from, text, to, mode, code]) => {
    return [typeName(from), text, typeName(to), code, { from, to, mode }] as const;
  }),
)("%s %p as %s is refused with %s", (...[, text, , code, options]) => {
  const value = valueFromText(options.from, text);
  let thrown: unknown;
  try {
    castValue(value, options);
  } catch (error) {
    thrown = error;
  }
  expect(thrown).toBeInstanceOf(DatabaseError);
  expect((thrown as DatabaseError).code).toBe(code as DatabaseError["code"]);
});

test("JSON null becomes NULL as a number and a boolean", () => {
  expect(castValue("null", { from: JSONB, to: INT, mode: "explicit" })).toBeNull();
  expect(castValue("null", { from: JSONB, to: BOOLEAN, mode: "explicit" })).toBeNull();
});

test("casterFor is undefined if values stay unchanged", () => {
  expect(casterFor(INT, BIGINT, "implicit")).toBeUndefined();
  expect(casterFor(INT, DOUBLE, "implicit")).toBeUndefined();
  expect(casterFor(VARCHAR, TEXT, "implicit")).toBeUndefined();
  expect(casterFor(decimalType(5, 2), decimalType(8, 2), "implicit")).toBeUndefined();
  expect(casterFor(BIGINT, DOUBLE, "implicit")).toBeDefined();
  expect(casterFor(TIMESTAMP, { kind: "timestamp", digits: 3 }, "assignment")).toBeDefined();
  expect(() => casterFor(TEXT, FILE, "explicit")).toThrow("Cannot cast text to file");
});

test("a literal that names a moment requires the time of the statement", () => {
  const options = { from: UNKNOWN, to: DATE, mode: "implicit" } as const;
  expect(castValue("today", { ...options, nowMicros: 0 })).toBe(0);
  expect(() => castValue("today", options)).toThrow("now()");
});

const UNIFIED: readonly (readonly [readonly DataType[], string | undefined])[] = [
  [[UNKNOWN, UNKNOWN], "text"],
  [[UNKNOWN, INT], "integer"],
  [[SMALLINT, BIGINT, INT], "bigint"],
  [[INT, decimalType(2, 1)], "numeric"],
  [[decimalType(3, 0), decimalType(4, 4)], "numeric"],
  [[decimalType(38, 0), decimalType(4, 4)], "numeric"],
  [[BIGINT, FLOAT], "real"],
  [[decimalType(5, 2), FLOAT], "real"],
  [[FLOAT, DOUBLE], "double precision"],
  [[VARCHAR, VARCHAR], "character varying(3)"],
  [[VARCHAR, TEXT], "text"],
  [[DATE, TIMESTAMP], "timestamp without time zone"],
  [[DATE, TIMESTAMP, DATETIME], "timestamp with time zone"],
  [[JSON_TEXT, JSONB], "jsonb"],
  [[FILE, JSON_TEXT], "json"],
  [[INTS, { kind: "array", element: BIGINT }], "bigint[]"],
  [[VECTOR, VECTOR], "embedding(2)"],
  [[VECTOR, { kind: "embedding", dimensions: 3 }], undefined],
  [[INT, TEXT], undefined],
  [[BOOLEAN, INT], undefined],
  [[DATE, TIME], undefined],
  [[UUID, TEXT], undefined],
];

test.each(UNIFIED.map(([types, name]) => [types.map(typeName).join(", "), name, types] as const))(
  "the common type of %s is %p",
  (_, name, types) => {
    const common = commonType(types);
    expect(common === undefined ? undefined : typeName(common)).toBe(name);
    if (common === undefined) return;
    for (const type of types) expect(canCast(type, common, "implicit")).toBe(true);
  },
);
