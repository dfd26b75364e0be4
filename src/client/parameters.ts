/**
 * Values of `$1`, `$2`, … as they are sent: JSON has no integers beyond 2^53.
 */

/** An integer beyond 2^53 is a bigint, or its decimal digits. */
export type Parameter = null | boolean | number | bigint | string;

/** With the digits of bigints, which the server reads as it reads a literal. */
export function sentParameters(params: readonly Parameter[]): (null | boolean | number | string)[] {
  return params.map((each) => (typeof each === "bigint" ? String(each) : each));
}
