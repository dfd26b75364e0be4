/**
 * Implements the type MONEY: an amount in cents, stored as a 64-bit integer and shown as
 * `-$1,234.50`.
 */
import { DatabaseError } from "../base/errors.ts";
import { excerpt } from "./excerpt.ts";
import { type Whole, wholeFromBigint } from "./value.ts";

const CENTS_MAX = 2n ** 63n - 1n;
const CENTS_MIN = -(2n ** 63n);

/** Matches digits, optionally with parentheses, a sign and `$` around them, in any order. */
const FORM = /^\s*(\()?\s*(-)?\s*\$?\s*(-)?\s*([\d,]*)(?:\.(\d*))?\s*(\))?\s*(-)?\s*\$?\s*$/;

/**
 * Parses an amount of money, rounding it to whole cents.
 *
 * @throws {DatabaseError} INVALID_VALUE
 */
export function moneyFromText(text: string): Whole {
  const match = FORM.exec(text);
  const [, open, before, after, whole = "", fraction = "", close, behind] = match ?? [];
  const digits = whole.replaceAll(",", "");
  if (
    match === null ||
    (digits === "" && fraction === "") ||
    (close !== undefined) > (open !== undefined)
  ) {
    throw new DatabaseError(
      "INVALID_VALUE",
      `Cannot read ${excerpt(text)} as money: expected an amount such as 12.34 or $1,234.50`,
    );
  }
  const isNegative = [open, before, after, behind].some((sign) => sign !== undefined);
  const cents = BigInt(`${digits}${fraction.slice(0, 2).padEnd(2, "0")}`);
  const rounded = cents + ((fraction[2] ?? "0") >= "5" ? 1n : 0n);
  return checkedMoney(isNegative ? -rounded : rounded, text);
}

/**
 * Checks that an amount is within the range of MONEY.
 * @throws {DatabaseError} VALUE_OUT_OF_RANGE
 */
export function checkedMoney(cents: bigint, text?: string): Whole {
  if (cents >= CENTS_MIN && cents <= CENTS_MAX) return wholeFromBigint(cents);
  throw new DatabaseError(
    "VALUE_OUT_OF_RANGE",
    `Cannot represent ${text === undefined ? "the amount" : excerpt(text)} as money: it is ` +
      "outside the range from -92233720368547758.08 to 92233720368547758.07",
  );
}

/** Rounds a possibly fractional number of cents to an amount. @throws {DatabaseError} */
export function moneyOfCents(cents: number): Whole {
  if (!Number.isFinite(cents)) return checkedMoney(CENTS_MAX + 1n);
  return checkedMoney(BigInt(roundHalfEven(cents)));
}

/** Rounds as floating-point hardware does: a half goes to the nearest even integer. */
function roundHalfEven(value: number): number {
  const below = Math.floor(value);
  const rest = value - below;
  if (rest !== 0.5) return Math.round(value);
  return below % 2 === 0 ? below : below + 1;
}

export function textFromMoney(cents: Whole): string {
  const isNegative = cents < 0;
  const digits = cents.toString().replace("-", "").padStart(3, "0");
  const whole = digits.slice(0, -2).replaceAll(/\B(?=(?:\d{3})+$)/g, ",");
  return `${isNegative ? "-" : ""}$${whole}.${digits.slice(-2)}`;
}
