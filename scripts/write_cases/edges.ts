/**
 * Edge cases of reading statements and patterns: smallest integers, parts of SIMILAR TO, numbers
 * and moments read by patterns, negative zero, and values that are refused.
 */
import type { CaseFile } from "./answer.ts";
import { selects } from "./product.ts";

const LEAST = ["-2147483648", "-9223372036854775808"] as const;

const LEAST_INTEGERS: CaseFile = {
  name: "least_integers",
  about: "the smallest INT and BIGINT as literals",
  statements: [
    "CREATE TABLE least (id INT PRIMARY KEY, i INT DEFAULT -2147483648 CHECK (i >= -2147483648), b BIGINT DEFAULT -9223372036854775808)",
    "INSERT INTO least (id) VALUES (1)",
    "INSERT INTO least VALUES (-2147483648, -2147483648, -9223372036854775808)",
    "INSERT INTO least VALUES (-2147483649, 0, 0)",
    "SELECT id, i, b FROM least WHERE id = -2147483648",
    "SELECT id FROM least WHERE i = - 2147483648 AND b = -(9223372036854775808)",
    "SELECT id FROM least WHERE id = -2147483647",
    "SELECT id FROM least WHERE abs(-2147483647) > id",
    "SELECT id FROM least WHERE abs(-2147483648) > id",
    ...selects(
      [
        "#",
        "(#)",
        "pg_typeof(#)",
        "pg_typeof((#))",
        "pg_typeof(+ #)",
        "- (#)",
        "abs(#)",
        "@ #",
        "~ #",
        "to_hex(#)",
        "# - 1",
        "# + 1",
        "1 + #",
        "# / -1",
        "# % -1",
        "# * 2",
        "0 - #",
        "CAST(# AS bigint)",
        "(#)::int",
        "#::bigint",
        "(SELECT #) - 1",
        "# IN (1, #)",
        "# BETWEEN # AND 0",
        "coalesce(#, 1) - 1",
        "greatest(#, 1)",
        "ARRAY[#]",
        "pg_typeof(ARRAY[#])",
        "sign(#)",
      ],
      LEAST,
    ),
    ...LEAST.flatMap((least) => [
      `SELECT x - 1 FROM (VALUES (${least})) v(x)`,
      `SELECT x + 1 FROM (VALUES (${least}), (1)) v(x)`,
      `SELECT CASE WHEN TRUE THEN ${least} ELSE 1 END - 1`,
    ]),
    "SELECT pg_typeof(- -2147483648), pg_typeof(- - -2147483648)",
    ...selects(
      ["repeat('a', #)", "substring('abc' FROM #)", "left('abc', #)", "# << 1", "# # 1"],
      ["-2147483648"],
    ),
    "SELECT pg_typeof(-2147483649), pg_typeof(-02147483648), -(2147483648), - -2147483648",
    "SELECT -2147483648::int",
    "SELECT 1 - 2147483648, pg_typeof(1 - 2147483648), 5 -2147483648",
  ],
};

const PARTED = [
  'a#"(b_d)#"%',
  '#"(b_d)#"%',
  '%#"(b_d)#"%',
  'a#"%#"g',
  'a*#"%#"g*',
  'a|b#"%#"g',
  'a#"%#"x|g',
  'a#"%|ab#"g',
  'a*#"%#"g*#"x',
  'a#"%g',
  "a%g",
  'a#"#"%',
  '#"%#"',
  '%#"d#"%',
  'a{1,2}#"[b-d]+#"%',
  "#%",
  "abc#",
  '[#"a]%',
] as const;

const SIMILAR: CaseFile = {
  name: "similar",
  about: "SIMILAR TO and SUBSTRING with separators",
  statements: [
    ...PARTED.flatMap((pattern) => [
      `SELECT substring('abcdefg' SIMILAR '${pattern}' ESCAPE '#')`,
      `SELECT substring('abcdefg' FROM '${pattern}' FOR '#')`,
      `SELECT 'abcdefg' SIMILAR TO '${pattern}' ESCAPE '#'`,
      `SELECT substring('aabgdg' SIMILAR '${pattern}' ESCAPE '#')`,
    ]),
    ...['a\\"%\\"c', "\\%", "a\\d%", "a\\", "\\w+"].flatMap((pattern) => [
      `SELECT 'a1c' SIMILAR TO '${pattern}'`,
      `SELECT substring('a1c' SIMILAR '${pattern}' ESCAPE '\\')`,
      `SELECT 'a1c' SIMILAR TO '${pattern}' ESCAPE ''`,
    ]),
    ...["[a\\-c]", "[a\\]c]", "[\\^a]", "[\\d]", "[]a]", "[a-]", "[[:alpha:]\\-]"].map(
      (brackets) =>
        `SELECT string_agg(x, ' ' ORDER BY x) FROM (VALUES ('a'), ('b'), ('d'), ('-'), (']'), ('^'), ('5')) v(x) WHERE x SIMILAR TO '${brackets}'`,
    ),
    "SELECT substring(NULL SIMILAR 'a#\"b' ESCAPE '#')",
    "SELECT substring('abc' SIMILAR NULL ESCAPE '#')",
    "SELECT substring('abc' SIMILAR 'a%' ESCAPE NULL)",
    "SELECT substring('abc' SIMILAR 'a%' ESCAPE '##')",
    "SELECT substring('abc' SIMILAR 'é\"%é\"' ESCAPE 'é')",
    "SELECT substring('abc' SIMILAR 'a%')",
    "SELECT x FROM (VALUES ('abc'), ('xbz')) v(x) WHERE substring(x SIMILAR '_#\"_#\"_' ESCAPE '#') = 'b'",
  ],
};

const INTERVALS_OUT = [
  "interval '-1 day'",
  "interval '-1 year -2 mons -3 days -04:05:06.789'",
  "interval '1 year 2 mons 3 days 04:05:06.789'",
  "interval '-0.001 seconds'",
  "interval '-13 mons'",
  "interval '-100:30:15'",
] as const;

const INTERVAL_PATTERNS =
  "YYYY YYY YY Y Y,YYY CC MM DD DDD Q RM HH HH12 HH24 MI SS MS US FF1 FF3 FF4 FF6 SSSS FMHH24 FMDD FMMS DDth BC".split(
    " ",
  );

const READ_MOMENTS = [
  ["2018-11-02 12:34:56.1", "YYYY-MM-DD HH24:MI:SS.FF#"],
  ["2018-11-02 12:34:56.12345", "YYYY-MM-DD HH24:MI:SS.FF#"],
  ["2018-11-02 12:34:56.987654", "YYYY-MM-DD HH24:MI:SS.FF#"],
  ["2018-11-02 12:34:59.999999", "YYYY-MM-DD HH24:MI:SS.FF#"],
  ["2018-11-02 12:34:56.12345678", "YYYY-MM-DD HH24:MI:SS.FF#"],
] as const;

/** Pairs of a text and a pattern. */
const MOMENTS_IN: readonly (readonly [string, string])[] = [
  ...READ_MOMENTS.flatMap(([text, pattern]) =>
    ["1", "2", "3", "4", "5", "6"].map((digits) => [text, pattern.replace("#", digits)] as const),
  ),
  ["2011-12-18 11:38 +05", "YYYY-MM-DD HH12:MI TZH"],
  ["2011-12-18 11:38 -05", "YYYY-MM-DD HH12:MI TZH"],
  ["2011-12-18 11:38 +05:20", "YYYY-MM-DD HH12:MI TZH:TZM"],
  ["2011-12-18 11:38 -05:20", "YYYY-MM-DD HH12:MI TZH:TZM"],
  ["2011-12-18 11:38 20", "YYYY-MM-DD HH12:MI TZM"],
  ["2011-12-18 11:38-0520", "YYYY-MM-DD HH24:MITZHTZM"],
  ["2011-12-18 11:38 +16", "YYYY-MM-DD HH12:MI TZH"],
  ["2011-12-18 11:38 +05:60", "YYYY-MM-DD HH12:MI TZH:TZM"],
  ["2011-12-18 11:38 PST", "YYYY-MM-DD HH12:MI TZ"],
  ["2011-12-18 11:38 +05", "YYYY-MM-DD HH12:MI OF"],
  ["2015 366", "YYYY DDD"],
  ["2016 366", "YYYY DDD"],
  ["2016 367", "YYYY DDD"],
  ["2015 000", "YYYY DDD"],
  ["2005 100 02", "YYYY DDD MM"],
  ["100", "DDD"],
  ["2016-13-10", "YYYY-MM-DD"],
  ["2016-02-30", "YYYY-MM-DD"],
  ["2016-02-29", "YYYY-MM-DD"],
  ["2015-02-29", "YYYY-MM-DD"],
  ["2015-01-32", "YYYY-MM-DD"],
  ["2016-06-13 99:99:99", "YYYY-MM-DD HH24:MI:SS"],
  ["2016-06-13 24:00:00", "YYYY-MM-DD HH24:MI:SS"],
  ["2016-06-13 23:59:60", "YYYY-MM-DD HH24:MI:SS"],
  ["2016-06-13 13:00 PM", "YYYY-MM-DD HH24:MI AM"],
  ["2016-06-13 00:00", "YYYY-MM-DD HH12:MI"],
  ["2016-06-13 86399", "YYYY-MM-DD SSSS"],
  ["2016-06-13 86400", "YYYY-MM-DD SSSSS"],
  ["2016-06-13 1000", "YYYY-MM-DD MS"],
  ["2016-06-13 1000000", "YYYY-MM-DD US"],
  ["2016-06-13 -5", "YYYY-MM-DD SS"],
  ["2005 54", "YYYY WW"],
  ["2005 53", "IYYY IW"],
  ["2005 372", "IYYY IDDD"],
  ["2005527", "IYYYIWID"],
  ["2005 3", "YYYY IW"],
  ["2005-03-06 3", "YYYY-MM-DD IW"],
  ["2005 2006", "YYYY YYYY"],
  ["2005 06", "YYYY YY"],
  ["2005 05 06", "YYYY MM MM"],
  ["2005 05 05", "YYYY MM MM"],
  ["2005 1 2", "YYYY DD DD"],
  ["2005-01-01 1 13", "YYYY-MM-DD HH HH24"],
  ["2005 AM PM", "YYYY AM PM"],
  ["2005 Jan 2", "YYYY Mon MM"],
  ["2005 Jan 1", "YYYY Mon MM"],
  ["2005 II 03", "YYYY RM MM"],
  ["2005 BC AD", "YYYY BC AD"],
  ["2005-01-01 12 3 4", "YYYY-MM-DD SS SS SS"],
  ["2005-01-01 1.5 6", "YYYY-MM-DD SS.MS MS"],
  ["20 05", "CC YY"],
  ["21", "CC"],
  ["2451187", "J"],
  ["2016-a1", "YYYY-MM"],
  ["Janu 2005", "Month YYYY"],
  ["290201", "DDMMYY"],
];

const NUMBERS_IN = [
  "'123,000'",
  "'-1,234.56'",
  "'123-'",
  "'<12>'",
  "'$12'",
  "'1 2 3'",
  "'.5'",
  "'12345678'",
] as const;

const READ: CaseFile = {
  name: "read_by_patterns",
  about: "to_char of intervals and texts in patterns, to_number, to_date and to_timestamp",
  statements: [
    ...INTERVAL_PATTERNS.flatMap((pattern) => selects([`to_char(#, '${pattern}')`], INTERVALS_OUT)),
    ...["\\Y", "YYYY\\MM", '\\"YYYY\\"', '"YYYY"YYYY', '"a\\"b" DD', "DD\\", '"f\\oo" DD'].flatMap(
      (pattern) => [`SELECT to_char(timestamp '2022-03-04 05:06:07', '${pattern}')`],
    ),
    ...["9\\9", '99\\"9', '99"a\\"b"9', '"\\\\"99', "99\\", '"x'].flatMap((pattern) => [
      `SELECT to_char(12.5, '${pattern}')`,
      `SELECT to_number('1x2', '${pattern}')`,
    ]),
    ...[
      "999G",
      "999,999",
      "999",
      "S999",
      "999S",
      "SG999",
      "999MI",
      "999PR",
      "9G999D99",
      "FM9,999",
      "L999",
      "99V9",
      "999th",
      "9 9 9",
      "",
    ].flatMap((pattern) => selects([`to_number(#, '${pattern}')`], NUMBERS_IN)),
    ...MOMENTS_IN.flatMap(([text, pattern]) => [
      `SELECT to_timestamp('${text}', '${pattern}')`,
      `SELECT to_date('${text}', '${pattern}')`,
    ]),
  ],
};

const ZERO = "'-0'::float8";

const ZEROS: CaseFile = {
  name: "negative_zero",
  about: "negative zero in DOUBLE and REAL",
  statements: [
    "CREATE TABLE zeros (id INT PRIMARY KEY, d DOUBLE PRECISION, r REAL)",
    "INSERT INTO zeros VALUES (1, '-0', '-0'), (2, 0, 0), (3, -1, -1)",
    "SELECT id, d::text, r::text FROM zeros",
    "SELECT count(*), count(DISTINCT d), count(DISTINCT r) FROM zeros",
    "SELECT count(*) FROM zeros a JOIN zeros b ON a.d = b.d",
    "SELECT count(*) FROM zeros GROUP BY d ORDER BY d",
    "SELECT id FROM zeros WHERE d = 0 ORDER BY d, id",
    "SELECT id FROM zeros WHERE d IN (0) AND r IN (SELECT 0)",
    "SELECT id, d * -1 = 0, (d * -1)::text FROM zeros",
    ...selects(
      [
        "#::text",
        "(-(#))::text",
        "# || ''",
        "concat(#, 'x')",
        "format('%s', #)",
        "to_json(#)",
        "to_jsonb(#)",
        "ARRAY[#]",
        "# = 0",
        "# < 0",
        "#::numeric",
        "#::int",
        "abs(#)::text",
        "round(#)::text",
        "(# + 0)::text",
        "(0 * #)::text",
        "nullif(#, 0)",
        "# IN (0)",
        "greatest(#, 0) = 0",
      ],
      [ZERO, "-(0::float8)", "(-0.0::float8)", "'-0'::real", "0::float8"],
    ),
    "SELECT '{-0,0}'::float8[]",
  ],
};

const INTERVALS = [
  "5.5 seconds 3 milliseconds",
  "1.5 s 1 us",
  "3 ms 5.5 seconds",
  "1 s 2 ms 3 us",
  "3 ms 5 seconds",
  "00:05:00 1 ms",
  "00:00:01.5 500 ms",
  "00:05:00 1 day",
  "1 day 2 days",
  "1 hour 00:05:00",
  "1 week 1 day",
  "1 mon 1 month",
  "1 decade 1 decades",
  "1-2 1 year",
  "1-2 1 month",
  "1day2hours",
  "1 day 2 hours ago",
  "1 day ago 1 day",
  "1 2",
  "1 day 1.5",
] as const;

const ACCEPTED: CaseFile = {
  name: "refused_values",
  about: "repeated units, options and positions out of range, replaced views",
  statements: [
    ...INTERVALS.map((text) => `SELECT interval '${text}'`),
    ...selects(["regexp_instr('abcabc', 'a.c', 1, 1, #)"], ["-1", "0", "1", "2"]),
    ...selects(["regexp_instr('abcabc', 'a(.)c', 1, 1, 0, 'i', #)"], ["-1", "0", "1", "2"]),
    ...selects(["regexp_substr('abcabc', 'a(.)c', 1, 1, 'i', #)"], ["-1", "0", "1", "2"]),
    ...selects(
      [
        "regexp_instr('abcabc', 'a.c', #)",
        "regexp_instr('abcabc', 'a.c', 1, #)",
        "regexp_substr('abcabc', 'a.c', #)",
        "regexp_substr('abcabc', 'a.c', 1, #)",
        "regexp_count('abcabc', 'a.c', #)",
        "regexp_replace('abcabc', 'a.c', 'x', #)",
        "regexp_replace('abcabc', 'a.c', 'x', 1, #)",
      ],
      ["-1", "0", "2"],
    ),
    "CREATE TABLE base (id INT PRIMARY KEY, a TEXT, b INT)",
    "CREATE VIEW v AS SELECT id, a FROM base",
    "CREATE OR REPLACE VIEW v AS SELECT id FROM base",
    "CREATE OR REPLACE VIEW v AS SELECT a, id FROM base",
    "CREATE OR REPLACE VIEW v AS SELECT id, a AS c FROM base",
    "CREATE OR REPLACE VIEW v AS SELECT id, b AS a FROM base",
    "CREATE OR REPLACE VIEW v AS SELECT id::bigint, a FROM base",
    "CREATE OR REPLACE VIEW v AS SELECT id, a::varchar(5) FROM base",
    "CREATE OR REPLACE VIEW v (x, y) AS SELECT id, a FROM base",
    "CREATE OR REPLACE VIEW v AS SELECT id, upper(a) AS a, b FROM base WHERE b > 0",
    "CREATE OR REPLACE VIEW v AS SELECT id, a FROM base",
    "SELECT * FROM v",
  ],
};

export const EDGES: readonly CaseFile[] = [LEAST_INTEGERS, SIMILAR, READ, ZEROS, ACCEPTED];
