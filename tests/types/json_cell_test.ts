/**
 * Verifies the exact JSON text of a cell of each type, and that parameters keep every digit.
 */
import { expect, test } from "bun:test";
import {
  BIGINT,
  BOOLEAN,
  BYTES,
  cellMakerFor,
  DATE,
  DATETIME,
  type DataType,
  DOUBLE,
  dataTypeWord,
  decimalType,
  FILE,
  FLOAT,
  INT,
  INTERVAL,
  isCellIdentity,
  JSON_TEXT,
  JSONB,
  SMALLINT,
  TEXT,
  TIME,
  TIMESTAMP,
  typeName,
  UNKNOWN,
  UUID,
  valueFromParameter,
  valueFromText,
} from "../../src/types/mod.ts";

const VECTOR: DataType = { kind: "embedding", dimensions: 2 };

const CELLS: readonly (readonly [DataType, string, string, unknown])[] = [
  [BOOLEAN, "true", "true", "Boolean"],
  [SMALLINT, "7", "7", "SmallInt"],
  [INT, "-7", "-7", "Int"],
  [BIGINT, "9007199254740991", "9007199254740991", "BigInt"],
  [BIGINT, "9007199254740992", '"9007199254740992"', "BigInt"],
  [BIGINT, "9007199254740993", '"9007199254740993"', "BigInt"],
  [BIGINT, "-9223372036854775808", '"-9223372036854775808"', "BigInt"],
  [FLOAT, "0.1", "0.1", "Float"],
  [FLOAT, "16777216", "16777216", "Float"],
  [DOUBLE, "0.1", "0.1", "Double"],
  [decimalType(10, 2), "12.345", '"12.35"', { Decimal: { precision: 10, scale: 2 } }],
  [decimalType(10, 2), "-0.05", '"-0.05"', { Decimal: { precision: 10, scale: 2 } }],
  [TEXT, 'a"b', '"a\\"b"', "Text"],
  [JSON_TEXT, '{"a": [1]}', '"{\\"a\\": [1]}"', "Json"],
  [JSONB, '{"b":1,"a":2}', '"{\\"a\\": 2, \\"b\\": 1}"', "Json"],
  [TIMESTAMP, "2025-01-01T00:00:00Z", "1735689600000000", "Timestamp"],
  [TIMESTAMP, "0001-01-01", '"-62135596800000000"', "Timestamp"],
  [DATETIME, "2025-01-01 02:00+02", "1735689600000000", "DateTime"],
  [DATE, "2025-01-01", "20089", "Date"],
  [TIME, "01:02:03.5", "3723500000", "Time"],
  [UUID, "550E8400-E29B-41D4-A716-446655440000", '"550e8400-e29b-41d4-a716-446655440000"', "Uuid"],
  [BYTES, "\\x00ff", "[0,255]", "Bytes"],
  [VECTOR, "[0.6,1]", "[0.6,1]", { Embedding: 2 }],
  [INTERVAL, "1 day 01:30:00", '"1 day 01:30:00"', "Text"],
  [{ kind: "array", element: INT }, "{1,NULL,3}", "[1,null,3]", { Array: "Int" }],
  [{ kind: "array", element: INT }, "{{1,2},{3,4}}", "[[1,2],[3,4]]", { Array: "Int" }],
  [
    { kind: "array", element: BIGINT },
    "{9007199254740993}",
    '["9007199254740993"]',
    { Array: "BigInt" },
  ],
  [{ kind: "array", element: BYTES }, "{a,NULL}", "[[97],null]", { Array: "Bytes" }],
  [
    { kind: "array", element: decimalType(4, 1) },
    "{1}",
    '["1.0"]',
    { Array: { Decimal: { precision: 4, scale: 1 } } },
  ],
];

test.each(
  CELLS.map(([type, text, json, word]) => [typeName(type), text, json, word, type] as const),
)("%s %p is the cell %s of type %p", (...[, text, json, word, type]) => {
  const value = valueFromText(type, text);
  const cellFromValue = cellMakerFor(type);
  expect(JSON.stringify(cellFromValue(value))).toBe(json);
  expect(cellFromValue(null)).toBeNull();
  expect(dataTypeWord(type)).toEqual(word as string);
  if (isCellIdentity(type)) expect(cellFromValue(value)).toBe(value);
});

test("FILE and untyped NULL also have type names", () => {
  expect(dataTypeWord(FILE)).toBe("File");
  expect(dataTypeWord(UNKNOWN)).toBe("Text");
  expect(isCellIdentity(INT)).toBe(true);
  expect(isCellIdentity(BIGINT)).toBe(false);
});

test.each([
  [null, UNKNOWN, null],
  [true, BOOLEAN, true],
  ["2025-01-01", UNKNOWN, "2025-01-01"],
  [41, BIGINT, 41],
  [-0, BIGINT, 0],
  [{ number: "41" }, BIGINT, 41],
  [{ number: "-0" }, BIGINT, 0],
  [{ number: "9007199254740993" }, BIGINT, 9_007_199_254_740_993n],
  [{ number: "9223372036854775807" }, BIGINT, 9_223_372_036_854_775_807n],
  [{ number: "9223372036854775808" }, DOUBLE, 9_223_372_036_854_775_808],
  [{ number: "12.35" }, DOUBLE, 12.35],
  [{ number: "1e3" }, DOUBLE, 1000],
] as const)("valueFromParameter(%p) has type %p and value %p", (parameter, type, value) => {
  const typed = valueFromParameter(parameter);
  expect(typed.type).toEqual(type);
  expect(Object.is(typed.value, value)).toBe(true);
});

test.each([[{ number: "1e400" }], ["a\u0000"], ["\udc00"]] as const)(
  "valueFromParameter(%p) is refused",
  (parameter) => {
    expect(() => valueFromParameter(parameter)).toThrow("as a parameter");
  },
);
