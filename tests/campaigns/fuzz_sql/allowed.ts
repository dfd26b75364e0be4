/**
 * Lists the cases in which Tidemark's result may differ from PostgreSQL's, and the reasons. No
 * other difference is allowed.
 *
 * The random statements avoid the following, because there is nothing to compare:
 *
 * - SELECT *, which also returns `_seq` and `_deleted`;
 * - alternatives in regular expressions: Tidemark takes the first alternative that matches, not
 *   the longest;
 * - FULL JOIN on anything but equalities, which only Tidemark accepts;
 * - grouping sets over expressions: if an expression turns out to be constant, PostgreSQL keeps
 *   its value in a set without it;
 * - an UPDATE in which two rows match the same row, and an upsert that changes nothing: PostgreSQL
 *   may choose either row, and touches the upserted row.
 *
 * The PostgreSQL side sorts text by code point and has the time zone UTC, as Tidemark always does.
 */

interface AllowedRefusal {
  /** Matches PostgreSQL's message. */
  readonly message: RegExp;
  /** Matches the statements to which the entry applies; absent for any statement. */
  readonly sql?: RegExp;
  readonly because: string;
}

/** PostgreSQL's refusals of statements that Tidemark may run. */
const ALLOWED_REFUSALS: readonly AllowedRefusal[] = [
  {
    message: /^non-integer constant in/,
    because: "PostgreSQL refuses to order or group by a constant, but accepts a parameter",
  },
  {
    message: /^in an aggregate with DISTINCT, ORDER BY/,
    because:
      "distinct values may be ordered by another expression: the first of each value decides",
  },
  {
    message: /^cannot fetch row before WindowObject's mark position$/,
    because:
      "PostgreSQL's own code raises this error for first_value over a frame that excludes ties",
  },
  {
    message: /^canceling statement due to statement timeout$/,
    because: "PostgreSQL chose a plan that would take hours, so it has no answer",
  },
  {
    message: /^more than one row returned by a subquery used as an expression$/,
    sql: /\b(?:min|max)\(.* WITH TIES$/s,
    because:
      "a fault of PostgreSQL: it reads min and max from the first row, and WITH TIES returns its ties too",
  },
  {
    message: /is not unique$/,
    because: "a literal without a type takes the type of the other operand, or is TEXT",
  },
];

/** Returns whether a refusal of a statement is allowed. */
export function isAllowedRefusal(refusal: string, sql: string): boolean {
  return ALLOWED_REFUSALS.some((allowed) => {
    return allowed.message.test(refusal) && (allowed.sql?.test(sql) ?? true);
  });
}

/**
 * Errors that depend on which values were computed. SQL guarantees no evaluation order, so one
 * side may fail for a value that the other side never computes.
 */
export const OF_VALUES: ReadonlySet<string> = new Set([
  "VALUE_OUT_OF_RANGE",
  "DIVISION_BY_ZERO",
  "INVALID_VALUE",
]);

/**
 * The number of digits that are compared in FLOAT and DOUBLE values. PostgreSQL rounds a sum of
 * FLOAT to 32 bits at each step and adds in a different order. Averages of integers and EXTRACT
 * are DOUBLE in Tidemark and NUMERIC in PostgreSQL.
 */
export const BINARY_DIGITS = 6;

/**
 * The number of digits that are compared in DECIMAL values. Quotients and averages have 16 decimal
 * places, and a result column has a single scale.
 */
export const DECIMAL_DIGITS = 13;
