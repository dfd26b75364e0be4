/**
 * Defines integers of 16, 32 and 64 bits: their bounds, and how other numbers are converted to
 * them.
 */
import { DatabaseError } from "../base/errors.ts";
import { excerpt } from "./excerpt.ts";
import { type Whole, wholeFromBigint } from "./value.ts";

export type IntegerKind = "smallint" | "int" | "bigint";

const BIGINT_MAX = 2n ** 63n - 1n;
const BIGINT_MIN = -(2n ** 63n);
/**
 * The maximum length of an integer's text. Longer strings are refused before BigInt parses them,
 * because its cost grows with the square of the length.
 */
const DIGITS_MAX = 1000;

const TWO_TO_63 = 2 ** 63;

export function fitsInteger(kind: IntegerKind, value: Whole): boolean {
  if (kind === "int") return value >= -2_147_483_648 && value <= 2_147_483_647;
  if (kind === "smallint") return value >= -32_768 && value <= 32_767;
  return typeof value === "number" || (value >= BIGINT_MIN && value <= BIGINT_MAX);
}

/**
 * Checks that an integer is within the range of its type.
 * @throws {DatabaseError} VALUE_OUT_OF_RANGE
 */
export function fitInteger(kind: IntegerKind, value: Whole): Whole {
  if (fitsInteger(kind, value)) return value;
  throw outOfRange(kind, value.toString());
}

function outOfRange(kind: IntegerKind, text: string): DatabaseError {
  const bits = kind === "smallint" ? 16 : kind === "int" ? 32 : 64;
  const shown = text.length > 40 ? `${text.slice(0, 37)}...` : text;
  const name = kind === "int" ? "integer" : kind;
  return new DatabaseError(
    "VALUE_OUT_OF_RANGE",
    `Cannot represent ${shown} as ${name}: it must fit in ${bits} bits`,
  );
}

/**
 * Parses an integer: decimal digits with an optional sign, or digits after `0x`, `0o` or `0b`.
 * Underscores are allowed between digits.
 */
export function integerFromText(kind: IntegerKind, text: string): Whole {
  const trimmed = text.trim();
  if (/^-?\d{1,15}$/.test(trimmed)) return fitInteger(kind, Number(trimmed) + 0);
  const match = /^([+-]?)(\d+(?:_\d+)*|0x(?:_?[0-9a-f])+|0o(?:_?[0-7])+|0b(?:_?[01])+)$/i.exec(
    trimmed,
  );
  if (match === null) {
    throw new DatabaseError(
      "INVALID_VALUE",
      `Cannot read ${excerpt(text)} as ${kind === "int" ? "integer" : kind}: expected a whole number`,
    );
  }
  const digits = (match[2] ?? "").replaceAll("_", "").toLowerCase();
  if (digits.length > DIGITS_MAX) throw outOfRange(kind, trimmed);
  const magnitude = BigInt(digits);
  return fitInteger(kind, wholeFromBigint(match[1] === "-" ? -magnitude : magnitude));
}

/** Rounds a double to an integer, half to even. @throws {DatabaseError} VALUE_OUT_OF_RANGE */
export function integerFromDouble(kind: IntegerKind, value: number): Whole {
  if (!Number.isFinite(value)) throw outOfRange(kind, value.toString());
  const rounded = roundHalfEven(value);
  if (Number.isSafeInteger(rounded)) return fitInteger(kind, rounded);
  if (rounded < -TWO_TO_63 || rounded >= TWO_TO_63) throw outOfRange(kind, value.toString());
  return fitInteger(kind, wholeFromBigint(BigInt(rounded)));
}

export function roundHalfEven(value: number): number {
  const floor = Math.floor(value);
  const fraction = value - floor;
  if (fraction < 0.5) return floor + 0;
  if (fraction > 0.5) return floor + 1 + 0;
  return (floor % 2 === 0 ? floor : floor + 1) + 0;
}
