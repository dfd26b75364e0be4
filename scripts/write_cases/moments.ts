/** Test cases for dates and times, and for values formatted with a pattern. */
import type { CaseFile } from "./answer.ts";
import { selects } from "./product.ts";

const STAMPS = [
  "TIMESTAMP '2024-02-29 23:59:59.5'",
  "TIMESTAMP '1999-12-31 00:00:00'",
  "NULL::timestamp",
] as const;
const FIELDS = [
  "microseconds",
  "milliseconds",
  "second",
  "minute",
  "hour",
  "day",
  "dow",
  "isodow",
  "doy",
  "week",
  "month",
  "quarter",
  "year",
  "isoyear",
  "decade",
  "century",
  "millennium",
  "epoch",
] as const;

const DATES: CaseFile = {
  name: "dates",
  about: "date and time",
  statements: [
    ...FIELDS.flatMap((field) =>
      selects([`EXTRACT(${field} FROM #)`, `date_part('${field}', #)`], STAMPS),
    ),
    ...FIELDS.flatMap((field) =>
      selects(
        [`EXTRACT(${field} FROM #)`],
        ["DATE '2021-01-03'", "INTERVAL '1 year 2 months 3 days 04:05:06.7'"],
      ),
    ),
    ...[
      "microseconds",
      "second",
      "minute",
      "hour",
      "day",
      "week",
      "month",
      "quarter",
      "year",
      "decade",
      "century",
      "millennium",
      "fortnight",
    ].flatMap((field) =>
      selects([`date_trunc('${field}', #)`], [...STAMPS, "TIMESTAMPTZ '2024-05-17 12:00:00+02'"]),
    ),
    ...["day", "month", "hour"].flatMap((field) =>
      selects(
        [
          `date_trunc('${field}', INTERVAL '1 year 14 months 40 days 30:15:10')`,
          `date_trunc('${field}', TIMESTAMPTZ '2024-05-17 23:30:00+00', 'Europe/Berlin')`,
        ],
        ["0"],
      ),
    ),
    ...selects(
      [
        "# + INTERVAL '1 month'",
        "# - INTERVAL '1 month'",
        "# + INTERVAL '1 day 2 hours'",
        "# - INTERVAL '1 year'",
      ],
      [
        "TIMESTAMP '2024-01-31 10:00:00'",
        "DATE '2024-03-31'",
        "TIMESTAMPTZ '2024-02-29 00:00:00+00'",
        "NULL::date",
      ],
    ),
    ...selects(
      ["# - #", "age(#, #)"],
      ["TIMESTAMP '2024-03-01 12:00:00'", "TIMESTAMP '2023-12-31 23:00:00'"],
      ["TIMESTAMP '2024-02-29 11:30:00'", "TIMESTAMP '2020-01-01 00:00:00'"],
    ),
    ...selects(
      ["DATE '2024-02-28' + #", "DATE '2024-03-01' - #"],
      ["0", "1", "366", "-60", "NULL::int"],
    ),
    ...selects(
      ["DATE '2024-03-01' - DATE #", "DATE '2024-03-01' < DATE #", "DATE '2024-03-01' = DATE #"],
      ["'2024-02-01'", "'2024-03-01'", "'2025-03-01'"],
    ),
    ...selects(
      ["DATE '2024-01-01' + TIME #", "TIMESTAMP '2024-01-01 00:00' + TIME #::interval"].slice(0, 1),
      ["'00:00'", "'12:34:56.789'"],
    ),
    ...selects(
      ["INTERVAL '1 day 02:00:00' * #", "INTERVAL '1 month' * #"],
      ["2", "0.5", "-1", "0", "1.5::float8"],
    ),
    ...selects(
      ["INTERVAL '1 day 02:00:00' / #", "INTERVAL '1 month' / #"],
      ["2", "0.5", "-1", "0"],
    ),
    ...selects(
      [
        "# + INTERVAL '1 day'",
        "# - INTERVAL '36 hours'",
        "- (#)",
        "justify_days(#)",
        "justify_hours(#)",
        "justify_interval(#)",
        "(#)::text",
      ],
      ["INTERVAL '1 month 35 days'", "INTERVAL '50 hours'", "INTERVAL '-1 day'", "NULL::interval"],
    ),
    ...selects(
      ["# = #", "# < #"],
      ["INTERVAL '30 days'", "INTERVAL '24 hours'"],
      ["INTERVAL '1 month'", "INTERVAL '1 day'"],
    ),
    ...selects(["make_date(2024, #, 29)", "make_date(2023, #, 29)"], ["1", "2", "13", "0"]),
    ...selects(
      [
        "make_time(#, 30, 15.5)",
        "make_timestamp(2024, 1, 2, #, 4, 5.25)",
        "make_timestamptz(2024, 1, 2, #, 4, 5)",
      ],
      ["0", "23", "24", "-1"],
    ),
    "SELECT make_interval(years => 1, months => 2, weeks => 1, days => 3, hours => 4, mins => 5, secs => 6.5)",
    "SELECT INTERVAL '1' DAY, INTERVAL '1.5' HOUR, INTERVAL '90' MINUTE, INTERVAL '3' MONTH, INTERVAL '5' YEAR",
    "SELECT INTERVAL '1-2' YEAR TO MONTH, INTERVAL '1 2:03' DAY TO MINUTE, INTERVAL '1 5' DAY TO HOUR, INTERVAL '1:30' HOUR TO MINUTE, INTERVAL '1:30' MINUTE TO SECOND, INTERVAL '10:20:30' HOUR TO MINUTE",
    "SELECT INTERVAL '1.6789' SECOND(2), INTERVAL(0) '1.6 seconds', CAST('2 3:04:05.678' AS INTERVAL DAY TO SECOND(1)), '36:00'::interval DAY",
    ...selects(
      ["INTERVAL '1 year 14 months 3 days 04:05:06.789' #", "'-26:03:04.5'::text::interval #"],
      ["YEAR", "MONTH", "DAY", "HOUR", "MINUTE", "SECOND", "DAY TO HOUR", "SECOND(1)"],
    ),
    "SELECT x::interval DAY TO HOUR FROM (VALUES ('1 day 02:03'), (NULL), ('5')) v(x)",
    "SELECT INTERVAL 'x' DAY",
    "SELECT INTERVAL '1 5' DAY",
    "SELECT INTERVAL '1 1 1' HOUR",
    "SELECT INTERVAL '99:59' MINUTE TO SECOND",
    "SELECT INTERVAL 'ago'",
    "SELECT INTERVAL '1' YEAR TO DAY",
    "SELECT INTERVAL '1 day 1 day'",
    "SELECT INTERVAL '1 hour 02:00'",
    "SELECT INTERVAL 'P0001-02-03T04:05:06', INTERVAL 'P1-2-3', INTERVAL 'PT10:11:12.5'",
    "SELECT TIMESTAMP '2024-01-01 12:00' AT TIME ZONE INTERVAL '2 hours', TIMESTAMPTZ '2024-01-01 12:00+00' AT TIME ZONE INTERVAL '-02:30'",
    "SELECT TIMESTAMP '2024-01-01 12:00' AT TIME ZONE INTERVAL '1 month'",
    "SELECT TIMESTAMP '2024-01-01 12:00' AT TIME ZONE INTERVAL '-1.9 seconds'",
    "SELECT '2024-01-01 00:00' AT TIME ZONE 'Europe/Paris'",
    "SELECT make_interval()",
    "SELECT make_interval(days => -1)",
    "SELECT make_interval(days := 3, hours => 2)",
    "SELECT make_interval(1, months := 2)",
    "SELECT make_interval(days := 3, 4)",
    ...selects(
      [
        "date_bin('15 minutes', TIMESTAMP #, TIMESTAMP '2024-01-01 00:00:00')",
        "date_bin('1 day', TIMESTAMP #, TIMESTAMP '2024-01-01 12:00:00')",
      ],
      ["'2024-01-01 10:37:00'", "'2023-12-31 23:59:00'"],
    ),
    "SELECT date_bin('1 month', TIMESTAMP '2024-01-01', TIMESTAMP '2024-01-01')",
    ...selects(
      ["make_timestamptz(2024, 7, 1, 12, 0, 0, #)"],
      ["'+02'", "'-03:30'", "'Europe/Berlin'", "'UTC'"],
    ),
    ...selects(
      [
        "date_trunc('hour', TIMESTAMPTZ #, 'Europe/Berlin')",
        "date_trunc('minute', TIMESTAMPTZ #, 'Europe/Berlin')",
        "date_trunc('day', TIMESTAMPTZ #, 'Europe/Berlin')",
      ],
      ["'2024-10-27 00:30:10+00'", "'2024-10-27 01:30:10+00'", "'2024-03-31 01:30:10+00'"],
    ),
    "SELECT date_bin('0 days', TIMESTAMP '2024-01-01', TIMESTAMP '2024-01-01')",
    ...selects(["to_timestamp(#)"], ["0", "1700000000.5", "-1", "NULL::float8"]),
    ...selects(
      ["to_char(TIMESTAMP '2024-03-05 15:07:09.123456', #)"],
      [
        "'YYYY-MM-DD HH24:MI:SS'",
        "'Mon DD, YYYY'",
        "'FMMonth FMDD'",
        "'TMMonth TMDD TMDay|TMMon|TMday|'",
        "'Day'",
        "'FMDay'",
        "'Dy'",
        "'HH12:MI AM'",
        "'MS US'",
        "'Q IW IYYY'",
        "'DDD D ID J'",
        "'YY Y'",
        "'\"at\" HH24'",
        "'MONTH'",
        "'month|'",
        "'CC'",
        "'SSSS'",
        "'FMDDth'",
        "''",
        "NULL::text",
      ],
    ),
    ...selects(["to_char(INTERVAL '1 day 15:07:09', #)"], ["'HH24:MI:SS'", "'DD HH'"]),
    ...selects(
      [
        "to_date(#, 'YYYY-MM-DD')",
        "to_date(#, 'DD Mon YYYY')",
        "to_timestamp(#, 'YYYY-MM-DD HH24:MI:SS')",
      ],
      [
        "'2024-02-29'",
        "'05 Mar 2024'",
        "'2024-02-29 10:11:12'",
        "'2024-02-30'",
        "'x'",
        "NULL::text",
      ],
    ),
    ...selects(
      [
        "TIMESTAMP '2024-07-01 12:00:00' AT TIME ZONE #",
        "TIMESTAMPTZ '2024-01-01 12:00:00+00' AT TIME ZONE #",
        "timezone(#, TIMESTAMP '2024-07-01 12:00:00')",
      ],
      ["'UTC'", "'Europe/Berlin'", "'America/New_York'", "'+02'", "'nowhere'"],
    ),
    ...selects(
      ["(DATE '2024-01-01', DATE '2024-02-01') OVERLAPS (DATE #, DATE '2024-03-01')"],
      ["'2024-01-31'", "'2024-02-01'", "'2024-02-02'"],
    ),
    ...selects(
      ["isfinite(#)"],
      ["DATE '2024-01-01'", "TIMESTAMP '2024-01-01'", "INTERVAL '1 day'", "NULL::date"],
    ),
  ],
};

const NUMBERS_OUT = ["0", "1234.567", "-1234.5", "0.05", "1000000", "NULL::numeric(9,2)"] as const;

const FORMATS: CaseFile = {
  name: "formats",
  about: "to_char and to_number of numbers",
  statements: [
    "SELECT to_date('17th May 2024', 'DDth Mon YYYY'), to_date('1ST 02 2024', 'DDTH MM YYYY'), to_timestamp('2024 3rd', 'YYYY DDth')",
    ...[
      "999",
      "9999.99",
      "0000.00",
      "FM9999.99",
      "FM0000.00",
      "9,999.9",
      "S9999",
      "9999MI",
      "9999PR",
      "$9,999.99",
      "99V99",
      "9.99EEEE",
      "RN",
      "FMRN",
      "L999",
      "9999.",
      ".99",
      "SG999",
      "999D99",
      "9G999",
      "PL999",
      "000999",
      "FM999,999,999",
      "",
    ].flatMap((format) => selects([`to_char(#, '${format}')`], NUMBERS_OUT)),
    ...selects(
      ["to_number(#, '9,999.99')", "to_number(#, 'S999')", "to_number(#, '999D99')"],
      ["'1,234.56'", "'-12'", "'12.5'", "'abc'", "NULL::text"],
    ),
    ...selects(["to_char(#, '999')"], ["7", "-7", "1234", "7.5::float8", "9223372036854775807"]),
  ],
};

export const MOMENTS: readonly CaseFile[] = [DATES, FORMATS];
