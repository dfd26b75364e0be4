/** Converts sizes in bytes to text with units, and back. */
import { DatabaseError } from "../../base/errors.ts";
import {
  BIGINT,
  bigDecimalOf,
  excerpt,
  isFiniteNumeric,
  NUMERIC,
  numericFromText,
  rescale,
  TEXT,
  textFromNumeric,
  type Value,
  wholeFromBigint,
} from "../../types/mod.ts";
import { functionsNamed, overload } from "./base/define.ts";
import type { ScalarFunction } from "./base/function.ts";

const UNITS = ["bytes", "kB", "MB", "GB", "TB", "PB"] as const;

/** The exclusive upper limit for a size in one unit. A larger size is written in the next unit. */
const UNIT_MAX = 10_240n;

/**
 * Formats a size in the smallest unit that keeps the number below about 10,240, as PostgreSQL
 * does. The last division rounds half away from zero. Earlier divisions truncate, but keep one
 * extra bit for that rounding.
 */
function pretty(size: bigint, digits = size.toString()): string {
  if (absolute(size) < UNIT_MAX) return `${digits} ${UNITS[0]}`;
  let halves = size / 512n;
  let unit = 1;
  while (absolute(halves) >= 2n * UNIT_MAX - 1n && unit < UNITS.length - 1) {
    halves /= 1024n;
    unit += 1;
  }
  const rounded = (halves + (halves < 0n ? -1n : 1n)) / 2n;
  return `${rounded} ${UNITS[unit]}`;
}

function prettyNumeric([value = null]: readonly Value[]): string {
  const digits = textFromNumeric(value as string);
  if (!isFiniteNumeric(value as string)) return `${digits} ${UNITS[0]}`;
  const { unscaled, scale } = bigDecimalOf(value as string);
  return pretty(unscaled / 10n ** BigInt(scale), digits);
}

function absolute(value: bigint): bigint {
  return value < 0n ? -value : value;
}

const SIZE = /^\s*([+-]?(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?)\s*([a-z]*)\s*$/i;

/** The exponents of 1024, keyed by unit in lower case. */
const EXPONENTS: ReadonlyMap<string, number> = new Map([
  ["", 0],
  ["b", 0],
  ...UNITS.map((unit, exponent) => [unit.toLowerCase(), exponent] as const),
]);

function bytesOfSize([text = null]: readonly Value[]): Value {
  const [, digits, unit = ""] = SIZE.exec(text as string) ?? [];
  const exponent = EXPONENTS.get(unit.toLowerCase());
  if (digits === undefined || exponent === undefined) {
    throw new DatabaseError("INVALID_VALUE", `Cannot read ${excerpt(text as string)} as a size`, {
      hint: "write a number and one of the units bytes, kB, MB, GB, TB and PB, as in '10 MB'",
    });
  }
  const { unscaled, scale } = bigDecimalOf(numericFromText(digits) ?? "");
  const bytes = rescale(wholeFromBigint(unscaled * 1024n ** BigInt(exponent)), scale, 0);
  if (BigInt(bytes) === BigInt.asIntN(64, BigInt(bytes))) return bytes;
  throw new DatabaseError(
    "VALUE_OUT_OF_RANGE",
    `Cannot convert the size ${excerpt(text as string)} to bytes: it is too large`,
  );
}

export const SIZE_FUNCTIONS: readonly ScalarFunction[] = [
  ...functionsNamed(
    ["pg_size_pretty"],
    overload([BIGINT], TEXT, ([value = null]) => pretty(BigInt(value as number))),
    overload([NUMERIC], TEXT, prettyNumeric),
  ),
  ...functionsNamed(["pg_size_bytes"], overload([TEXT], BIGINT, bytesOfSize)),
];
