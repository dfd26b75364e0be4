/**
 * Values of `$1`, `$2`, … as they are sent: JSON has no integers beyond 2^53.
 */

/** An integer beyond 2^53 is a bigint, or its decimal digits. */
export type Parameter = null | boolean | number | bigint | string;

export type SentParameter = Exclude<Parameter, bigint>;

/**
 * A bigint that fits is sent as the number that it is; a larger one as its digits, which are text.
 *
 * @throws {TypeError} If it is no list: some calls take one, others take it among their options.
 * And for a value that JSON makes null, such as undefined or NaN: it would be a NULL that nobody
 * meant.
 */
export function sentParameters(params: readonly Parameter[]): SentParameter[] {
  if (!Array.isArray(params)) {
    throw new TypeError(
      "Cannot send the parameters: they should be a list, as in query(sql, [1]) or execute(sql, { params: [1] })",
    );
  }
  // Holes of the list count, too.
  return Array.from(params, (each, index) => {
    if (typeof each === "bigint") {
      return Number.isSafeInteger(Number(each)) ? Number(each) : String(each);
    }
    if (isSendable(each)) return each;
    throw new TypeError(
      `Cannot send parameter ${index + 1}: it is ${kindOf(each)}, and should be null, a boolean, a finite number, a bigint or text`,
    );
  });
}

/**
 * An option that counts, as it was given.
 *
 * @throws {TypeError} If it counts nothing. JSON makes NaN a null, which stands for no option.
 */
export function countOption<Given extends number | undefined>(name: string, value: Given): Given {
  if (value === undefined || (Number.isSafeInteger(value) && value >= 0)) return value;
  throw new TypeError(
    `Cannot use ${name}: it is ${kindOf(value)}, and should be a whole number, 0 or more`,
  );
}

/** What stands there instead of what should, in words. */
export function kindOf(value: unknown): string {
  if (value === null || value === undefined || typeof value === "number") return String(value);
  return typeof value === "object" ? "an object" : `a ${typeof value}`;
}

/** Objects are: the server names what is wrong with one, and a date is sent as its text. */
function isSendable(value: unknown): boolean {
  if (typeof value === "number") return Number.isFinite(value);
  return !["undefined", "function", "symbol"].includes(typeof value);
}
