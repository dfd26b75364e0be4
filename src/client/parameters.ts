/**
 * Values of `$1`, `$2`, … as they are sent: JSON has no integers beyond 2^53.
 */

/** An integer beyond 2^53 is a bigint, or its decimal digits. */
export type Parameter = null | boolean | number | bigint | string;

/**
 * A bigint that fits is sent as the number that it is; a larger one as its digits, which are text.
 */
export function sentParameters(params: readonly Parameter[]): (null | boolean | number | string)[] {
  return params.map((each) => {
    if (typeof each !== "bigint") return each;
    return Number.isSafeInteger(Number(each)) ? Number(each) : String(each);
  });
}
