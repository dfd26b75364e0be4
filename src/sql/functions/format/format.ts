/**
 * Implements to_char, to_number, to_date and to_timestamp, which convert values to and from text
 * according to a pattern.
 */
import {
  DATE,
  DATETIME,
  type DataType,
  DOUBLE,
  decimalFromText,
  decimalOf,
  decimalType,
  doubleFromNumeric,
  INTERVAL,
  type Interval,
  isFiniteNumeric,
  isFiniteTimestamp,
  isInteger,
  joinTimestamp,
  TEXT,
  TIMESTAMP,
  textFromDecimal,
  textFromNumeric,
  type Value,
  type Whole,
} from "../../../types/mod.ts";
import { functionsNamed, overload } from "../base/define.ts";
import type { Overload, ScalarFunction } from "../base/function.ts";
import { TO_TIMESTAMP_OF_EPOCH } from "../time/datetime_make.ts";
import { formatMoment } from "./format_datetime.ts";
import { type Moment, momentOfInterval, momentOfTimestamp } from "./format_moment.ts";
import { formatDouble, formatNumber } from "./format_number.ts";
import { momentFromFormat } from "./format_parse.ts";
import { numberFromFormat, numberScale } from "./number_reader.ts";

function ofMoment(type: DataType, read: (value: Value) => Moment): Overload {
  return overload([type, TEXT], TEXT, ([value = null, pattern = null]) =>
    // PostgreSQL also returns NULL for an empty pattern and for infinity.
    pattern === "" || isInfinite(value) ? null : formatMoment(read(value), pattern as string),
  );
}

function isInfinite(value: Value): boolean {
  return typeof value === "bigint" && !isFiniteTimestamp(value);
}

/**
 * The overload of to_char for numbers. It formats all digits of an exact number, but only as many
 * digits of a FLOAT or DOUBLE as the type preserves.
 */
const OF_NUMBER: Overload = overload(["numeric", TEXT], TEXT, (values, _, types) => {
  const [value = null, pattern = null] = values;
  const type = types[0] ?? DOUBLE;
  if (type.kind === "numeric") return formatNumeric(value as string, pattern as string);
  const isExact = isInteger(type) || type.kind === "decimal";
  if (!isExact) {
    const digitsMax = type.kind === "float" ? FLOAT_DIGITS : DOUBLE_DIGITS;
    return formatDouble(value as number, { pattern: pattern as string, digitsMax });
  }
  const { scale } = decimalOf(type);
  const text = textFromDecimal(value as Whole, type.kind === "decimal" ? scale : 0);
  return formatNumber(text, pattern as string);
});

function formatNumeric(value: string, pattern: string): string {
  if (isFiniteNumeric(value)) return formatNumber(textFromNumeric(value), pattern);
  return formatDouble(doubleFromNumeric(value), { pattern, digitsMax: Number.POSITIVE_INFINITY });
}

/** The number of decimal digits that every FLOAT preserves. */
const FLOAT_DIGITS = 6;
const DOUBLE_DIGITS = 15;

/** The overload of to_number. A constant pattern determines the scale of the result. */
const TO_NUMBER: Overload = {
  ...overload([TEXT, TEXT], decimalType(38, 10), () => null),
  specialise: (_, constants) => {
    const pattern = constants[1];
    const scale = typeof pattern === "string" ? numberScale(pattern) : 10;
    return {
      result: decimalType(38, scale),
      evaluate: ([text = null, format = null]) => {
        if (format === "") return null;
        const digits = numberFromFormat(text as string, format as string);
        return decimalFromText(digits, 38, scale) ?? 0;
      },
    };
  },
};

export const FORMAT_FUNCTIONS: readonly ScalarFunction[] = [
  ...functionsNamed(
    ["to_char"],
    ofMoment(DATETIME, (value) => momentOfTimestamp(value as Whole, { hasZone: true })),
    ofMoment(TIMESTAMP, (value) => momentOfTimestamp(value as Whole, { hasZone: false })),
    ofMoment(INTERVAL, (value) => momentOfInterval(value as Interval)),
    OF_NUMBER,
  ),
  ...functionsNamed(["to_number"], TO_NUMBER),
  ...functionsNamed(
    ["to_date"],
    overload([TEXT, TEXT], DATE, ([text = null, pattern = null]) => {
      return momentFromFormat(text as string, pattern as string).days;
    }),
  ),
  ...functionsNamed(
    ["to_timestamp"],
    TO_TIMESTAMP_OF_EPOCH,
    overload([TEXT, TEXT], DATETIME, ([text = null, pattern = null]) => {
      const { days, micros, offsetMicros } = momentFromFormat(text as string, pattern as string);
      return joinTimestamp(days, micros - offsetMicros);
    }),
  ),
];
