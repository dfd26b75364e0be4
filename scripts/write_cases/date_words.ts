/**
 * Dates in words, abbreviations of time zones, and types as functions.
 */
import type { CaseFile } from "./answer.ts";

const DATES = [
  "2015/01/01",
  "2015/1/9",
  "19990108",
  "January 8, 1999",
  "Jan 8 1999",
  "jan-08-1999",
  "JAN/08/1999",
  "Jan. 8, 1999",
  "8 January 1999",
  "08-Jan-1999",
  "8-jan-1999",
  "1999-Jan-08",
  "1999 Jan 8",
  "Friday January 8 1999",
  "Fri, Jan 8, 1999",
  "Sept 30 2020",
  "June 31 2020",
  "J2451187",
  "1999-01-08 AD",
  "January 8, 1999 AD",
  "epoch",
  "Feb 29 2020",
  "Foo 8 1999",
  "1999/13/01",
  "January 1999",
  "8 1999 January 2",
] as const;

const TIMESTAMPS = [
  "2015/01/01 10:20",
  "January 8, 1999 04:05:06",
  "January 8, 1999 04:05:06 PST",
  "Thu Jan 08 04:05:06 1999",
  "Fri Jan 08 04:05:06.789 1999 PST",
  "08-Jan-1999 04:05:06 PM",
  "19990108 040506",
  "1999-01-08 04:05:06 CEST",
  "1999-07-08 04:05:06 EST",
  "1999-07-08 04:05:06 EDT",
  "1999-07-08 04:05:06 CET",
  "1999-07-08 04:05:06 MST",
  "1999-07-08 04:05:06 IST",
  "1999-07-08 04:05:06 JST",
  "1999-07-08 04:05:06 NST",
  "1999-07-08 04:05:06 ACST",
  "1999-07-08 04:05:06 AEDT",
  "1999-07-08 04:05:06 NZDT",
  "1999-07-08 04:05:06 HST",
  "1999-07-08 04:05:06 AKST",
  "1999-07-08 04:05:06 BST",
  "1999-07-08 04:05:06 MSK",
  "1999-07-08 04:05:06 ADT",
  "1999-07-08 04:05:06 UT",
  "1999-07-08 04:05:06 zulu",
  "1999-07-08 04:05:06 America/New_York",
  "1999-07-08 04:05:06 XYZT",
] as const;

const OTHERS: readonly string[] = [
  "SELECT '040506'::time, '0405'::time, 'allballs'::time, '04:05 PM'::time",
  "SELECT timestamp '2026-07-01 12:00' AT TIME ZONE 'PST', timestamptz '2026-07-01 12:00Z' AT TIME ZONE 'CET', timestamptz '2026-07-01 12:00Z' AT TIME ZONE 'Europe/Berlin'",
  "SELECT date('2020-01-31'), date(timestamp '2020-01-31 23:00'), date('January 31, 2020')",
  "SELECT text(1.50), text(true), text('x'), text(date '2020-01-01'), text(ARRAY[1,2])",
  "SELECT float8('1.5'), float8(1), float4('0.1'), float8(numeric '2.50')",
  "SELECT int4(1.5), int4('7'), int8(2), int2(3), int4(true), int4(2.5::float8)",
  "SELECT bool('yes'), bool(0), bool(1)",
  "SELECT \"timestamp\"(date '2020-01-31'), timestamptz(date '2020-01-31'), \"interval\"('1 day'), \"time\"(timestamp '2020-01-31 10:11:12')",
  "SELECT uuid('550E8400-e29b-41d4-a716-446655440000'), jsonb('{\"b\":1,\"a\":2}'), json('[1]'), bytea('\\x00ff')",
  "SELECT int4('x')",
  "SELECT int4(1, 2)",
  "SELECT int4()",
  "SELECT date(1)",
  "SELECT date(d), count(*) FROM (VALUES (timestamp '2020-01-31 01:00'), (timestamp '2020-01-31 02:00')) v(d) GROUP BY date(d) ORDER BY date(d)",
];

export const DATE_WORDS: CaseFile = {
  name: "date_words",
  about: "dates in words, abbreviations of zones, and types as functions",
  statements: [
    ...DATES.map((text) => `SELECT '${text}'::date`),
    ...TIMESTAMPS.flatMap((text) => [
      `SELECT '${text}'::timestamp`,
      `SELECT '${text}'::timestamptz`,
    ]),
    ...OTHERS,
  ],
};
