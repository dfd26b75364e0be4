/**
 * Verifies that every type reads the text that it writes, reads what PostgreSQL reads, and refuses
 * all other text with the right code.
 */
import { expect, test } from "bun:test";
import { DatabaseError } from "../../src/base/errors.ts";
import {
  BIGINT,
  BOOLEAN,
  BYTES,
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
  outputText,
  SMALLINT,
  TEXT,
  TIME,
  TIMESTAMP,
  textFromValue,
  typeName,
  UUID,
  type Value,
  valueFromText,
} from "../../src/types/mod.ts";
import { shareOf } from "../support/thoroughness.ts";

const VECTOR: DataType = { kind: "embedding", dimensions: 3 };
const INTS: DataType = { kind: "array", element: INT };
const TEXTS: DataType = { kind: "array", element: TEXT };

/** The type, the text that is read, and the text that is written for each value. */
const READ: readonly (readonly [DataType, string, string])[] = [
  [BOOLEAN, " TRUE ", "true"],
  [BOOLEAN, "t", "true"],
  [BOOLEAN, "yes", "true"],
  [BOOLEAN, "on", "true"],
  [BOOLEAN, "1", "true"],
  [BOOLEAN, "off", "false"],
  [BOOLEAN, "n", "false"],
  [SMALLINT, "-32768", "-32768"],
  [INT, " 42 ", "42"],
  [INT, "0x1F", "31"],
  [INT, "1_000", "1000"],
  [INT, "-0", "0"],
  [BIGINT, "9223372036854775807", "9223372036854775807"],
  [BIGINT, "-9223372036854775808", "-9223372036854775808"],
  [FLOAT, "0.1", "0.1"],
  [FLOAT, "16777217", "1.6777216e+07"],
  [FLOAT, "3.4e38", "3.4e+38"],
  [FLOAT, "1e-45", "1e-45"],
  [DOUBLE, "0.1", "0.1"],
  [DOUBLE, "-0", "-0"],
  [DOUBLE, "1e15", "1e+15"],
  [DOUBLE, "123456789012345", "123456789012345"],
  [DOUBLE, "0.0001", "0.0001"],
  [DOUBLE, "0.00001", "1e-05"],
  [DOUBLE, "1e-300", "1e-300"],
  [decimalType(10, 2), "12.345", "12.35"],
  [decimalType(10, 2), "-0.005", "-0.01"],
  [TEXT, " a ", " a "],
  [{ kind: "text", lengthMax: 3 }, "a€😀", "a€😀"],
  [JSON_TEXT, ' {"b":1,  "a":[ ]} ', ' {"b":1,  "a":[ ]} '],
  [JSONB, '{"b":1, "a":2, "b":3}', '{"a": 2, "b": 3}'],
  [TIMESTAMP, "2025-01-01T00:00:00Z", "2025-01-01 00:00:00"],
  [TIMESTAMP, "2025-01-01 02:00+02", "2025-01-01 02:00:00"],
  [TIMESTAMP, "2025-01-01", "2025-01-01 00:00:00"],
  [TIMESTAMP, "2025-01-01 10:11:12.5", "2025-01-01 10:11:12.5"],
  [TIMESTAMP, "2025-01-01 24:00", "2025-01-02 00:00:00"],
  [TIMESTAMP, "epoch", "1970-01-01 00:00:00"],
  [TIMESTAMP, "0001-01-01", "0001-01-01 00:00:00"],
  [TIMESTAMP, "9999-12-31 23:59:59.999999", "9999-12-31 23:59:59.999999"],
  [{ kind: "timestamp", digits: 0 }, "2025-01-01 10:11:12.5", "2025-01-01 10:11:13"],
  [{ kind: "timestamp", digits: 3 }, "2025-01-01 10:11:12.3456", "2025-01-01 10:11:12.346"],
  [DATETIME, "2025-01-01 02:00+02", "2025-01-01 00:00:00+00"],
  [DATETIME, "2025-01-01 02:00:00-05:30", "2025-01-01 07:30:00+00"],
  [DATETIME, "2025-07-01 12:00 Europe/Berlin", "2025-07-01 10:00:00+00"],
  [DATE, "2025-01-31", "2025-01-31"],
  [DATE, "2024-02-29", "2024-02-29"],
  [DATE, "2025-01-31 10:00", "2025-01-31"],
  [TIME, "01:02:03.5", "01:02:03.5"],
  [TIME, "24:00", "24:00:00"],
  [TIME, "10:30", "10:30:00"],
  [UUID, "550E8400-E29B-41D4-A716-446655440000", "550e8400-e29b-41d4-a716-446655440000"],
  [UUID, "{550e8400e29b41d4a716446655440000}", "550e8400-e29b-41d4-a716-446655440000"],
  [UUID, "550e-8400-e29b-41d4-a716-4466-5544-0000", "550e8400-e29b-41d4-a716-446655440000"],
  [BYTES, String.raw`\x00fF`, String.raw`\x00ff`],
  [BYTES, "a\\\\b\\001é", String.raw`\x615c6201c3a9`],
  [VECTOR, "[0.6, 0.8,0]", "[0.6,0.8,0]"],
  [INTERVAL, "1 day 02:00:00", "1 day 02:00:00"],
  [INTS, "{1, NULL ,3}", "{1,NULL,3}"],
  [
    TEXTS,
    String.raw`{a,"b c","NULL",null,"x\"y\\z",""}`,
    String.raw`{a,"b c","NULL",NULL,"x\"y\\z",""}`,
  ],
  [TEXTS, '{ a b , "c" ,\td }', '{"a b",c,d}'],
  [TEXTS, "{}", "{}"],
  [{ kind: "array", element: BOOLEAN }, "{true,f}", "{t,f}"],
];

test.each(READ.map(([type, text, written]) => [typeName(type), text, written, type] as const))(
  "%s reads %p and writes %p, which it reads back",
  (_, text, written, type) => {
    const value = valueFromText(type, text);
    expect(textFromValue(type, value)).toBe(written);
    expect(valueFromText(type, written)).toEqual(value);
  },
);

const REFUSED: readonly (readonly [DataType, string, string])[] = [
  [BOOLEAN, "2", "INVALID_VALUE"],
  [BOOLEAN, "o", "INVALID_VALUE"],
  [INT, "abc", "INVALID_VALUE"],
  [INT, "1.5", "INVALID_VALUE"],
  [INT, "", "INVALID_VALUE"],
  [INT, "2147483648", "VALUE_OUT_OF_RANGE"],
  [SMALLINT, "40000", "VALUE_OUT_OF_RANGE"],
  [BIGINT, "9223372036854775808", "VALUE_OUT_OF_RANGE"],
  [BIGINT, "9".repeat(5000), "VALUE_OUT_OF_RANGE"],
  [DOUBLE, "NaNs", "INVALID_VALUE"],
  [DOUBLE, "Infinite", "INVALID_VALUE"],
  [DOUBLE, "1e400", "VALUE_OUT_OF_RANGE"],
  [DOUBLE, "1e-400", "VALUE_OUT_OF_RANGE"],
  [FLOAT, "1e39", "VALUE_OUT_OF_RANGE"],
  [decimalType(3, 1), "100", "VALUE_OUT_OF_RANGE"],
  [decimalType(3, 1), "x", "INVALID_VALUE"],
  [{ kind: "text", lengthMax: 3 }, "abcd", "VALUE_TOO_LONG"],
  [TEXT, "a\u0000", "INVALID_VALUE"],
  [TEXT, "\ud800", "INVALID_VALUE"],
  [JSON_TEXT, "{bad", "INVALID_VALUE"],
  [JSONB, "01", "INVALID_VALUE"],
  [DATE, "2025-02-30", "VALUE_OUT_OF_RANGE"],
  [DATE, "2025-13-01", "VALUE_OUT_OF_RANGE"],
  [DATE, "0000-01-01", "VALUE_OUT_OF_RANGE"],
  [DATE, "5874898-01-01", "VALUE_OUT_OF_RANGE"],
  [DATE, "infinite", "INVALID_VALUE"],
  [DATE, "today", "INVALID_VALUE"],
  [DATE, "x", "INVALID_VALUE"],
  [TIMESTAMP, "2025-01-01 25:00", "VALUE_OUT_OF_RANGE"],
  [TIMESTAMP, "2025-01-01 10:60", "VALUE_OUT_OF_RANGE"],
  [TIMESTAMP, "294246-12-31 24:00", "VALUE_OUT_OF_RANGE"],
  [DATETIME, "4714-11-24 00:00+01 BC", "VALUE_OUT_OF_RANGE"],
  [DATETIME, "2025-01-01 00:00 Nowhere/None", "INVALID_VALUE"],
  [TIME, "25:00", "VALUE_OUT_OF_RANGE"],
  [TIME, "x", "INVALID_VALUE"],
  [UUID, "x", "INVALID_VALUE"],
  [BYTES, String.raw`\x0`, "INVALID_VALUE"],
  [BYTES, String.raw`\9`, "INVALID_VALUE"],
  [VECTOR, "[1,2]", "DIMENSION_MISMATCH"],
  [VECTOR, "1,2,3", "INVALID_VALUE"],
  [VECTOR, "[1,2,x]", "INVALID_VALUE"],
  [INTERVAL, "soon", "INVALID_VALUE"],
  [INTERVAL, "2025-01-01", "INVALID_VALUE"],
  [INTS, "{1", "INVALID_VALUE"],
  [INTS, "{{1},2}", "INVALID_VALUE"],
  [INTS, "{{1},{}}", "INVALID_VALUE"],
  [INTS, "{1,}", "INVALID_VALUE"],
  [INTS, "{1, }", "INVALID_VALUE"],
  [TEXTS, "{ , a}", "INVALID_VALUE"],
  [FILE, "{}", "INVALID_VALUE"],
];

test.each(REFUSED.map(([type, text, code]) => [typeName(type), text, code, type] as const))(
  "%s refuses %p with %s",
  (_, text, code, type) => {
    let thrown: unknown;
    try {
      valueFromText(type, text);
    } catch (error) {
      thrown = error;
    }
    expect(thrown).toBeInstanceOf(DatabaseError);
    expect((thrown as DatabaseError).code).toBe(code as DatabaseError["code"]);
  },
);

test("a long text is refused quickly, whatever it repeats", () => {
  const plain = [BOOLEAN, INT, DOUBLE, FLOAT, JSONB, DATE, DATETIME, TIME, UUID, VECTOR];
  const begun = ["", "1.", "P", "{a", '{"', "[", "2025-01-01 00:00:00"];
  const types = [...plain, INTERVAL, INTS, TEXTS, decimalType(38, 2)];
  for (const type of shareOf(types, { oneOf: 3 })) {
    for (const start of begun) {
      for (const repeated of ["1", " ", "a ", "1 ", "1.", "-", "\\", '",', "1_"]) {
        // An algorithm that tries every split would take a minute for some of these strings, and
        // the test would fail.
        const text = `${start}${repeated.repeat(50_000)}!`;
        expect(() => valueFromText(type, text), typeName(type)).toThrow(DatabaseError);
      }
    }
  }
});

test("words that denote a moment use the time of the statement", () => {
  const now = 1_735_740_000_000_000;
  const read = (type: DataType, text: string): Value => valueFromText(type, text, now);
  expect(textFromValue(TIMESTAMP, read(TIMESTAMP, "now"))).toBe("2025-01-01 14:00:00");
  expect(textFromValue(DATE, read(DATE, "today"))).toBe("2025-01-01");
  expect(textFromValue(DATE, read(DATE, "tomorrow"))).toBe("2025-01-02");
  expect(textFromValue(DATETIME, read(DATETIME, "yesterday"))).toBe("2024-12-31 00:00:00+00");
  expect(textFromValue(TIME, read(TIME, "now"))).toBe("14:00:00");
});

test("outputText writes booleans as t and f", () => {
  expect(outputText(BOOLEAN, true)).toBe("t");
  expect(outputText(BOOLEAN, false)).toBe("f");
  expect(outputText(INT, 1)).toBe("1");
});

test("floats are written with the shortest digits that read back as the same number", () => {
  for (const text of [
    "0.1",
    "1.17549435e-38",
    "3.4028235e+38",
    "1e-45",
    "16777216",
    "0.3",
    "123456.7",
  ]) {
    const value = valueFromText(FLOAT, text);
    const written = textFromValue(FLOAT, value);
    expect(Math.fround(Number(written))).toBe(value as number);
    expect(written.length).toBeLessThanOrEqual(text.length + 5);
  }
});
