/**
 * Test cases for features in which scripts written for PostgreSQL once returned different results:
 * fields of a pattern without separators, numbers without digits in to_char, 32-bit numbers
 * between two neighbours, array dimensions, expanded patterns, sizes, and type names.
 */
import type { CaseFile } from "./answer.ts";

const MOMENTS = [
  ["20181102123456", "YYYYMMDDHH24MISS"],
  ["201811021234567", "YYYYMMDDHH24MISSFF1"],
  ["20181102123456123456", "YYYYMMDDHH24MISSFF6"],
  ["05121445482000", "MMDDHH24MISSYYYY"],
  ["1102112233PM", "MMDDHH12MISSPM"],
  ["2005201", "IYYYIDDD"],
  ["200520112", "IYYYIDDDHH24"],
  ["20181102 1234", "YYYYMMDD HH24MI"],
  ["2018110212", "YYYYMMDDHH24MI"],
] as const;

const NUMBER_PATTERNS = [
  "MI9999999999.99",
  "MI99.99",
  "FM9999999999.99",
  "9999999999.00",
  "SG99999999.9",
];

const RANGES = [
  "7038531e-32",
  "82381273e-35",
  "16777217",
  "16777217.0000000000000000001",
  "-16777219",
];

const SUBSCRIPTS = "[1]".repeat(6);

const PATTERNS = [
  ["abc", " a . c ", "x"],
  ["abc", "a b # c\nc", "x"],
  ["a c", "a [ ] c", "x"],
  ["a#c", String.raw`a \# c`, "x"],
  ["a]c", "a []] c", "x"],
  ["ABC", "a b c", "xi"],
  ["abc", "a b c", "xt"],
  ["aa", "a + $", "x"],
] as const;

export const PLAYED: CaseFile = {
  name: "played",
  about: "kinds of statements in which scripts written for PostgreSQL found different results",
  statements: [
    "CREATE TABLE sizes (id INT PRIMARY KEY, nu NUMERIC, n NUMERIC(18,5))",
    "INSERT INTO sizes VALUES (1, 1e-20, 1.5), (2, 12345678901234567890123456789012345678901, 1.5), (3, 1.50, 1.5), (4, 7, NULL)",
    "SELECT id, nullif(nu, n)::text, nullif(nu, n) IS NULL FROM sizes ORDER BY id",
    "SELECT id, nullif(n, nu) FROM sizes ORDER BY id",
    "SELECT id, nullif('1.505', n)::text, nullif('1.5', n)::text, nullif('1e40', n)::text FROM sizes ORDER BY id",
    "SELECT nullif(n, '1.505'), nullif(n, '1.5'), nullif(id, nu), nullif(nu, id) FROM sizes ORDER BY id",
    "UPDATE sizes SET nu = nullif(nu, n)",
    "SELECT id, nu::text FROM sizes ORDER BY id",
    "CREATE TABLE old_form (a INT) WITHOUT OIDS",
    "INSERT INTO old_form VALUES (1)",
    ...MOMENTS.map(
      ([text, pattern]) => `SELECT to_timestamp('${text}', '${pattern}')::timestamp::text`,
    ),
    ...NUMBER_PATTERNS.flatMap((pattern) =>
      ["inf", "-inf", "nan"].flatMap((value) =>
        ["numeric", "float8", "float4"].map(
          (type) => `SELECT to_char('${value}'::${type}, '${pattern}')`,
        ),
      ),
    ),
    "SELECT to_char('inf'::float8, 'RN'), to_char('nan'::float8, 'FMRN')",
    "SELECT to_char('12345678901'::float8, 'FM9999999999D9999900000000000000000')",
    "SELECT to_char('12345678901'::float8, 'FM999D99')",
    ...RANGES.map((text) => `SELECT float4send('${text}'::float4)::text, '${text}'::float4::text`),
    `SELECT (ARRAY[[[[[[5]]]]]])${SUBSCRIPTS}`,
    `SELECT (ARRAY[1])${SUBSCRIPTS}[1]`,
    "SELECT array_fill(1, ARRAY[2, 2], '{}')",
    "SELECT array_fill(1, ARRAY[2, 2], ARRAY[1, 1, 1])",
    "SELECT array_fill(1, ARRAY[2, 2], ARRAY[1, 1])",
    "SELECT array_agg(NULL::int[]) FROM generate_series(1, 2)",
    "SELECT array_agg('{}'::int[]) FROM generate_series(1, 2)",
    "SELECT array_agg(ARRAY[a]) FROM generate_series(1, 2) AS g (a)",
    "SELECT array_agg(NULL::int) FROM generate_series(1, 2)",
    "SELECT ARRAY(SELECT NULL::int[] FROM generate_series(1, 2))",
    "SELECT ARRAY(SELECT ARRAY[a] FROM generate_series(1, 2) AS g (a))",
    ...PATTERNS.map(
      ([text, pattern, flags]) => `SELECT regexp_like('${text}', '${pattern}', '${flags}')`,
    ),
    "SELECT regexp_replace('a b c', '(?x) a \\s b', 'x')",
    String.raw`SELECT 'A' ~ '\x41', 'A' ~ '\x0041', 'Ā' ~ '\x100', 'a' ~ '[\x61b]'`,
    String.raw`SELECT 'a' ~ '\x7fffffff'`,
    String.raw`SELECT 'a' ~ '\xg'`,
    "SELECT jsonb_path_query('\"1000000-01-01\"', '$.datetime() > \"2020-01-01 12:00:00\".datetime()')",
    "SELECT pg_size_pretty(10::numeric), pg_size_pretty(10.5), pg_size_pretty(-10240::numeric), pg_size_pretty(1000000000000000000000::numeric)",
    "SELECT pg_size_pretty(10239.9), pg_size_pretty(10485247::numeric), pg_size_pretty(10485248.7)",
    "SELECT pg_size_bytes('99 PB'), pg_size_bytes('-99 PB'), pg_size_bytes('1.5 GB'), pg_size_bytes('1e6 MB'), pg_size_bytes('.0005 kB')",
    "SELECT pg_size_bytes('8192 PB')",
    "SELECT pg_typeof(0.0), pg_typeof(1::numeric(5,2)), pg_typeof('a'::varchar(5)), pg_typeof(ARRAY[1.2, 55.5]), pg_typeof(B'1'), pg_typeof('1'::varbit(3)), pg_typeof(now()::timestamp(3)), pg_typeof(now()::timestamptz(3))",
    // A procedure may be named by all its types, or by those of its inputs.
    "CREATE PROCEDURE p10(OUT a INT, IN b INT, IN c INT) LANGUAGE SQL AS 'SELECT 1'",
    "CREATE PROCEDURE p10(a INT, b INT, c INT) LANGUAGE SQL AS 'SELECT 1'",
    "DROP PROCEDURE p10(INT, INT, INT)",
    "DROP PROCEDURE p10(OUT INT, INT, INT)",
    "DROP PROCEDURE p10(INT, INT, INT)",
    "CREATE FUNCTION returned() RETURNS BOOLEAN BEGIN ATOMIC ;;RETURN false;; END",
    "SELECT returned()",
    "CREATE TABLE fruits (id INT PRIMARY KEY, fruit TEXT, a INT)",
    "CREATE UNIQUE INDEX fruit_index ON fruits (a) WHERE fruit LIKE '%x'",
    "CREATE INDEX IF NOT EXISTS ON fruits (a)",
    "CREATE INDEX fruit_ranges ON fruits USING brin (a) INCLUDE (fruit)",
    "CREATE INDEX fruit_hashes ON fruits USING hash (a) WITH (fillfactor = 9)",
    "INSERT INTO fruits AS t VALUES (23, 'Bx', 1) ON CONFLICT (id) WHERE t.fruit = 'i' DO NOTHING",
    "INSERT INTO fruits AS t VALUES (24, 'Bx', 1) ON CONFLICT (a) WHERE t.fruit LIKE '%x' DO NOTHING",
    "SELECT * FROM fruits",
    "SELECT sum(a) OVER (ORDER BY a::NUMERIC RANGE BETWEEN 1 PRECEDING AND 1.1::FLOAT8 FOLLOWING) FROM fruits",
    "SELECT sum(a) OVER (ORDER BY a::FLOAT8 RANGE BETWEEN 1 PRECEDING AND 1.1 FOLLOWING) FROM fruits",
    `SELECT jsonb_set_lax('{"a": 1, "b": 2}', '{b}', NULL, null_value_treatment => 'delete_key')`,
    `SELECT jsonb_set(jsonb_in => '{"a": 1}', path => '{c}', replacement => '2', create_if_missing => false)`,
    `SELECT jsonb_insert('{"a": [0]}', '{a, 0}', '5', insert_after => true)`,
  ],
};
