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
 */
export function sentParameters(params: readonly Parameter[]): SentParameter[] {
  if (!Array.isArray(params)) {
    throw new TypeError(
      "Cannot send the parameters: they should be a list, as in query(sql, [1]) or execute(sql, { params: [1] })",
    );
  }
  return params.map((each) => {
    if (typeof each !== "bigint") return each;
    return Number.isSafeInteger(Number(each)) ? Number(each) : String(each);
  });
}
