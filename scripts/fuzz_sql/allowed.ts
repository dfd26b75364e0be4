/**
 * Where Tidemark may answer otherwise than PostgreSQL, and why. Nothing else is passed over.
 *
 * What the statements stay away from, because there is nothing to compare:
 *
 * - NaN and infinity, which Tidemark does not have;
 * - SELECT *, which shows `_seq` and `_deleted` and orders rows by the first;
 * - alternatives in regular expressions: the first that fits is taken, not the longest;
 * - FULL JOIN by anything but equalities, which only Tidemark takes;
 * - grouping sets over expressions: one that is constant in the end stays in a set without it
 *   there;
 * - which of two rows decides an UPDATE that meets both, and whether an upsert that changes nothing
 *   touches its row.
 *
 * The other side sorts text by code points and has the zone UTC, as Tidemark always does.
 */

interface AllowedRefusal {
  /** What PostgreSQL says. */
  readonly message: RegExp;
  /** Of which statements; absent for any. */
  readonly sql?: RegExp;
  readonly because: string;
}

/** What PostgreSQL refuses and Tidemark may answer. */
const ALLOWED_REFUSALS: readonly AllowedRefusal[] = [
  {
    message: /^non-integer constant in/,
    because: "ordering or grouping by a constant is refused there, though not by a parameter",
  },
  {
    message: /^in an aggregate with DISTINCT, ORDER BY/,
    because:
      "an order of distinct values by anything else does no harm: the first of a kind decides",
  },
  {
    message: /^cannot fetch row before WindowObject's mark position$/,
    because: "an error of its own, by its code: first_value over a frame that excludes ties",
  },
  {
    message: /^canceling statement due to statement timeout$/,
    because: "it chose a plan that would take hours: it says nothing of such a statement",
  },
  {
    message: /^more than one row returned by a subquery used as an expression$/,
    sql: /\b(?:min|max)\(.* WITH TIES$/s,
    because:
      "a fault of its own: it takes min and max from the first row in order, and WITH TIES all rows like it",
  },
  {
    message: /is not unique$/,
    because: "a literal without a type takes that of the other side, or is TEXT",
  },
];

/** Whether a refusal of a statement is one of those. */
export function isAllowedRefusal(refusal: string, sql: string): boolean {
  return ALLOWED_REFUSALS.some((allowed) => {
    return allowed.message.test(refusal) && (allowed.sql?.test(sql) ?? true);
  });
}

/**
 * Conditions that hang on which values were computed: no order of evaluation is promised, so one
 * side may fail for a value that the other never computes.
 */
export const OF_VALUES: ReadonlySet<string> = new Set([
  "VALUE_OUT_OF_RANGE",
  "DIVISION_BY_ZERO",
  "INVALID_VALUE",
]);

/**
 * Digits by which FLOAT and DOUBLE are compared: a sum of FLOAT is rounded to 32 bits at each step
 * there, other sums are taken in another order, and averages of integers and EXTRACT are DOUBLE
 * here and NUMERIC there.
 */
export const BINARY_DIGITS = 6;

/** Digits by which DECIMAL is compared: quotients and averages have 16 decimals, and a result
 * column has one scale. */
export const DECIMAL_DIGITS = 13;
