/**
 * Casts, literals, logic, dates, JSON and arrays.
 */
import type { CaseFile } from "./answer.ts";
import { selects } from "./product.ts";

const BOOLS = ["TRUE", "FALSE", "NULL::boolean"] as const;

const LOGIC: CaseFile = {
  name: "logic",
  about: "three values of logic, NULL and conditions",
  statements: [
    ...selects(["# AND #", "# OR #", "# = #", "# <> #", "# < #", "NOT # OR #", "# IS DISTINCT FROM #", "# IS NOT DISTINCT FROM #"], BOOLS, BOOLS),
    ...selects(["NOT #", "# IS NULL", "# IS NOT NULL", "# IS TRUE", "# IS NOT TRUE", "# IS FALSE", "# IS NOT FALSE", "# IS UNKNOWN", "# IS NOT UNKNOWN", "NOT ( # ) IS NULL", "NOT ( # IS NULL )"], BOOLS),
    ...selects(["# BETWEEN 2 AND 4", "# NOT BETWEEN 2 AND 4", "# BETWEEN 4 AND 2", "# BETWEEN SYMMETRIC 4 AND 2", "# BETWEEN NULL AND 4", "# NOT BETWEEN NULL AND 4"], ["1", "2", "3", "5", "2.5", "NULL::int"]),
    ...selects(["# IN (1, 2, 3)", "# NOT IN (1, 2, 3)", "# IN (1, NULL)", "# NOT IN (1, NULL)", "# IN (NULL)"], ["1", "4", "2.0", "NULL::int"]),
    ...selects(["NULLIF(#, #)", "COALESCE(#, #)", "COALESCE(NULL, #, #)"], ["1", "2.5", "NULL::int"], ["1", "2.5", "NULL::int"]),
    ...selects(["CASE # WHEN 1 THEN 'one' WHEN 2 THEN 'two' ELSE 'many' END", "CASE WHEN # > 1 THEN 1 WHEN # IS NULL THEN 0 END", "CASE # WHEN NULL THEN 'null' ELSE 'other' END", "CASE WHEN # = 1 THEN NULL ELSE 2 END"], ["1", "2", "3", "NULL::int"]),
    ...selects(["num_nulls(#, #, NULL)", "num_nonnulls(#, #, NULL)"], ["1", "NULL::int"], ["'a'", "NULL::text"]),
    ...selects(["(#, #) = (1, 2)", "(#, #) < (1, 2)", "(#, #) <> (1, 2)", "(#, #) >= (1, 2)", "(#, #) IN ((1, 2), (3, 4))", "(#, #) IS NULL", "(#, #) IS NOT NULL", "(#, #) IS DISTINCT FROM (1, 2)"], ["1", "3", "NULL::int"], ["2", "0", "NULL::int"]),
    ...selects(["# = ANY (ARRAY[1, 2])", "# = ALL (ARRAY[1, 1])", "# > ALL (ARRAY[1, NULL])", "# <> ANY (ARRAY[1, NULL])", "# = ANY ('{}'::int[])", "# = ALL ('{}'::int[])"], ["1", "3", "NULL::int"]),
    "SELECT 'a' < 'B', 'a' < 'b', 'é' > 'z', '' < 'a', 'a' < 'ab', 'Z' < 'a'", "SELECT 1 WHERE NULL", "SELECT 1 WHERE NOT NULL", "SELECT 1 WHERE NULL IS NULL",
  ],
};

const TARGETS = ["boolean", "int2", "int4", "int8", "numeric(6,2)", "float8", "text", "varchar(3)", "date", "timestamp", "time", "uuid", "jsonb", "interval", "bytea"] as const;
const LITERALS = ["'1'", "'0'", "'t'", "' 42 '", "'-7'", "'3.149'", "'1e2'", "'abc'", "''", "'2024-02-29'", "'2024-02-30'", "'2024-02-29 12:34:56.789'", "'12:34'", "'[1, 2]'", "'1 day'", "'99999999999'", "'\\x41'", "'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'", "NULL"] as const;
const TYPED = ["1", "0", "-7", "2.5", "3.149::float8", "40000", "3000000000", "TRUE", "'abc'::text", "DATE '2024-02-29'", "TIMESTAMP '2024-02-29 12:34:56'", "TIME '12:34:56'", "INTERVAL '1 day'", "'[1]'::jsonb", "'\"x\"'::jsonb", "'7'::jsonb", "'true'::jsonb"] as const;

const CASTS: CaseFile = {
  name: "casts",
  about: "casts from text and between types",
  statements: [
    ...TARGETS.flatMap((type) => selects([`#::${type}`], LITERALS)),
    ...TARGETS.flatMap((type) => selects([`CAST(# AS ${type})`], TYPED)),
    ...selects(["#::int4", "#::int8", "#::int2"], ["2.5", "3.5", "-2.5", "2.5::float8", "3.5::float8", "-2.5::float8", "2147483647.4", "2147483647.5", "1e10::float8"]),
    ...selects(["#::numeric(4,1)", "#::numeric(3,3)", "#::real"], ["1", "12.345", "999.94", "999.95", "0.1234", "-0.05"]),
    "SELECT BOOLEAN 'yes', BOOLEAN 'off', INT '5', DATE '2024-01-01', INTERVAL '2 hours'", "SELECT INT4 '3.5'", "SELECT 1::nosuch", "SELECT CAST(1 AS nosuch)",
    ...selects(["'#'::boolean"], ["true", "yes", "on", "1", "t", "y", "tru", "false", "no", "off", "0", "f", "of", "o", "2", "TRUE"]),
    ...selects(["'#'::uuid"], ["A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11", "{a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11}", "a0eebc999c0b4ef8bb6d6bb9bd380a11", "a0eebc99", "g0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"]),
    ...selects(["'#'::interval"], ["1 year 2 months", "3 days 04:05:06", "-1 day", "1 week", "P1Y2M3DT4H", "1.5 hours", "2 days ago", "x", "1", "1 mon -1 day", "00:00:00"]),
    ...selects(["'#'::timestamp"], ["2024-01-01", "2024-01-01T10:11:12", "2024-01-01 10:11:12.123456", "2024-01-01 24:00:00", "2024-13-01", "2024-01-01 25:00", "epoch", "2024-01-01 10:00+05"]),
    ...selects(["'#'::timestamptz"], ["2024-01-01 10:00+05", "2024-01-01 10:00Z", "2024-06-01 00:00:00-03:30", "2024-01-01"]),
    ...selects(["'#'::time"], ["00:00", "23:59:59.999999", "24:00:00", "25:00", "12:60", "04:05 PM"]),
    ...selects(["'#'::date"], ["2024-12-31", "20241231", "2024-1-5", "0001-01-01", "9999-12-31", "2023-02-29", "x"]),
  ],
};

const STAMPS = ["TIMESTAMP '2024-02-29 23:59:59.5'", "TIMESTAMP '1999-12-31 00:00:00'", "NULL::timestamp"] as const;
const FIELDS = ["microseconds", "milliseconds", "second", "minute", "hour", "day", "dow", "isodow", "doy", "week", "month", "quarter", "year", "isoyear", "decade", "century", "millennium", "epoch"] as const;

const DATES: CaseFile = {
  name: "dates",
  about: "date and time",
  statements: [
    ...FIELDS.flatMap((field) => selects([`EXTRACT(${field} FROM #)`, `date_part('${field}', #)`], STAMPS)),
    ...FIELDS.flatMap((field) => selects([`EXTRACT(${field} FROM #)`], ["DATE '2021-01-03'", "INTERVAL '1 year 2 months 3 days 04:05:06.7'"])),
    ...["microseconds", "second", "minute", "hour", "day", "week", "month", "quarter", "year", "decade", "century", "millennium", "fortnight"].flatMap((field) => selects([`date_trunc('${field}', #)`], [...STAMPS, "TIMESTAMPTZ '2024-05-17 12:00:00+02'"])),
    ...["day", "month", "hour"].flatMap((field) => selects([`date_trunc('${field}', INTERVAL '1 year 14 months 40 days 30:15:10')`, `date_trunc('${field}', TIMESTAMPTZ '2024-05-17 23:30:00+00', 'Europe/Berlin')`], ["0"])),
    ...selects(["# + INTERVAL '1 month'", "# - INTERVAL '1 month'", "# + INTERVAL '1 day 2 hours'", "# - INTERVAL '1 year'"], ["TIMESTAMP '2024-01-31 10:00:00'", "DATE '2024-03-31'", "TIMESTAMPTZ '2024-02-29 00:00:00+00'", "NULL::date"]),
    ...selects(["# - #", "age(#, #)"], ["TIMESTAMP '2024-03-01 12:00:00'", "TIMESTAMP '2023-12-31 23:00:00'"], ["TIMESTAMP '2024-02-29 11:30:00'", "TIMESTAMP '2020-01-01 00:00:00'"]),
    ...selects(["DATE '2024-02-28' + #", "DATE '2024-03-01' - #"], ["0", "1", "366", "-60", "NULL::int"]),
    ...selects(["DATE '2024-03-01' - DATE #", "DATE '2024-03-01' < DATE #", "DATE '2024-03-01' = DATE #"], ["'2024-02-01'", "'2024-03-01'", "'2025-03-01'"]),
    ...selects(["DATE '2024-01-01' + TIME #", "TIMESTAMP '2024-01-01 00:00' + TIME #::interval"].slice(0, 1), ["'00:00'", "'12:34:56.789'"]),
    ...selects(["INTERVAL '1 day 02:00:00' * #", "INTERVAL '1 month' * #"], ["2", "0.5", "-1", "0", "1.5::float8"]),
    ...selects(["INTERVAL '1 day 02:00:00' / #", "INTERVAL '1 month' / #"], ["2", "0.5", "-1", "0"]),
    ...selects(["# + INTERVAL '1 day'", "# - INTERVAL '36 hours'", "- (#)", "justify_days(#)", "justify_hours(#)", "justify_interval(#)", "(#)::text"], ["INTERVAL '1 month 35 days'", "INTERVAL '50 hours'", "INTERVAL '-1 day'", "NULL::interval"]),
    ...selects(["# = #", "# < #"], ["INTERVAL '30 days'", "INTERVAL '24 hours'"], ["INTERVAL '1 month'", "INTERVAL '1 day'"]),
    ...selects(["make_date(2024, #, 29)", "make_date(2023, #, 29)"], ["1", "2", "13", "0"]),
    ...selects(["make_time(#, 30, 15.5)", "make_timestamp(2024, 1, 2, #, 4, 5.25)", "make_timestamptz(2024, 1, 2, #, 4, 5)"], ["0", "23", "24", "-1"]),
    "SELECT make_interval(years => 1, months => 2, weeks => 1, days => 3, hours => 4, mins => 5, secs => 6.5)", "SELECT make_interval()", "SELECT make_interval(days => -1)",
    ...selects(["date_bin('15 minutes', TIMESTAMP #, TIMESTAMP '2024-01-01 00:00:00')", "date_bin('1 day', TIMESTAMP #, TIMESTAMP '2024-01-01 12:00:00')"], ["'2024-01-01 10:37:00'", "'2023-12-31 23:59:00'"]),
    "SELECT date_bin('1 month', TIMESTAMP '2024-01-01', TIMESTAMP '2024-01-01')", "SELECT date_bin('0 days', TIMESTAMP '2024-01-01', TIMESTAMP '2024-01-01')",
    ...selects(["to_timestamp(#)"], ["0", "1700000000.5", "-1", "NULL::float8"]),
    ...selects(["to_char(TIMESTAMP '2024-03-05 15:07:09.123456', #)"], ["'YYYY-MM-DD HH24:MI:SS'", "'Mon DD, YYYY'", "'FMMonth FMDD'", "'Day'", "'FMDay'", "'Dy'", "'HH12:MI AM'", "'MS US'", "'Q IW IYYY'", "'DDD D ID J'", "'YY Y'", "'\"at\" HH24'", "'MONTH'", "'month|'", "'CC'", "'SSSS'", "'FMDDth'", "''", "NULL::text"]),
    ...selects(["to_char(INTERVAL '1 day 15:07:09', #)"], ["'HH24:MI:SS'", "'DD HH'"]),
    ...selects(["to_date(#, 'YYYY-MM-DD')", "to_date(#, 'DD Mon YYYY')", "to_timestamp(#, 'YYYY-MM-DD HH24:MI:SS')"], ["'2024-02-29'", "'05 Mar 2024'", "'2024-02-29 10:11:12'", "'2024-02-30'", "'x'", "NULL::text"]),
    ...selects(["TIMESTAMP '2024-07-01 12:00:00' AT TIME ZONE #", "TIMESTAMPTZ '2024-01-01 12:00:00+00' AT TIME ZONE #", "timezone(#, TIMESTAMP '2024-07-01 12:00:00')"], ["'UTC'", "'Europe/Berlin'", "'America/New_York'", "'+02'", "'nowhere'"]),
    ...selects(["(DATE '2024-01-01', DATE '2024-02-01') OVERLAPS (DATE #, DATE '2024-03-01')"], ["'2024-01-31'", "'2024-02-01'", "'2024-02-02'"]),
    ...selects(["isfinite(#)"], ["DATE '2024-01-01'", "TIMESTAMP '2024-01-01'", "INTERVAL '1 day'", "NULL::date"]),
  ],
};

const NUMBERS_OUT = ["0", "1234.567", "-1234.5", "0.05", "1000000", "NULL::numeric(9,2)"] as const;

const FORMATS: CaseFile = {
  name: "formats",
  about: "to_char and to_number of numbers",
  statements: [
    ...["999", "9999.99", "0000.00", "FM9999.99", "FM0000.00", "9,999.9", "S9999", "9999MI", "9999PR", "$9,999.99", "99V99", "9.99EEEE", "RN", "FMRN", "L999", "9999.", ".99", "SG999", "999D99", "9G999", "PL999", "000999", "FM999,999,999", ""].flatMap((format) => selects([`to_char(#, '${format}')`], NUMBERS_OUT)),
    ...selects(["to_number(#, '9,999.99')", "to_number(#, 'S999')", "to_number(#, '999D99')"], ["'1,234.56'", "'-12'", "'12.5'", "'abc'", "NULL::text"]),
    ...selects(["to_char(#, '999')"], ["7", "-7", "1234", "7.5::float8", "9223372036854775807"]),
  ],
};

const DOCUMENTS = ["'{\"a\": 1, \"b\": {\"c\": [1, 2, null]}, \"d\": null}'::jsonb", "'[1, \"x\", {\"a\": 2}]'::jsonb", "'\"s\"'::jsonb", "'null'::jsonb", "NULL::jsonb"] as const;

const JSON_CASES: CaseFile = {
  name: "json",
  about: "JSON operators and functions",
  statements: [
    ...selects(["# -> 'a'", "# ->> 'a'", "# -> 0", "# ->> -1", "# @> '{\"a\": 1}'", "# <@ '{\"a\": 1}'", "# ? 'a'", "# ?| ARRAY['z', 'a']", "# ?& ARRAY['a', 'b']", "jsonb_typeof(#)", "jsonb_pretty(#)", "jsonb_strip_nulls(#)", "(#)::text", "# = '[1, \"x\", {\"a\": 2}]'::jsonb", "jsonb_extract_path(#, 'b', 'c')", "jsonb_extract_path_text(#, 'b', 'c', '1')", "to_jsonb(#)", "jsonb_exists(#, 'a')"], DOCUMENTS),
    ...DOCUMENTS.flatMap((d) => [`SELECT ${d} #> '{b,c}'`, `SELECT ${d} #>> '{b,c,0}'`, `SELECT ${d} #- '{b,c}'`, `SELECT ${d} - 'a'`, `SELECT ${d} - 0`, `SELECT ${d} || '{"z": 1}'`, `SELECT '[0]' || ${d}`]),
    ...DOCUMENTS.slice(0, 2).flatMap((d) => [`SELECT jsonb_set(${d}, '{a}', '9')`, `SELECT jsonb_set(${d}, '{0}', '9')`, `SELECT jsonb_set(${d}, '{q}', '9', false)`, `SELECT jsonb_insert(${d}, '{1}', '9')`, `SELECT jsonb_insert(${d}, '{1}', '9', true)`, `SELECT jsonb_set_lax(${d}, '{a}', NULL)`]),
    ...selects(["jsonb_array_length(#)"], ["'[1, 2]'::jsonb", "'[]'::jsonb", "'{}'::jsonb", "NULL::jsonb"]),
    ...selects(["to_jsonb(#)", "to_json(#)"], ["1", "2.50", "'a\"b'::text", "TRUE", "NULL::int", "ARRAY[1, 2]", "DATE '2024-01-01'"]),
    "SELECT json_build_object('a', 1, 'b', NULL, 'c', 'x')", "SELECT jsonb_build_object('b', 1, 'a', ARRAY[1,2])", "SELECT json_build_array(1, 'a', NULL, TRUE)", "SELECT jsonb_build_array()", "SELECT jsonb_object('{a,1,b,2}')", "SELECT jsonb_object('{a,b}', '{1,2}')", "SELECT json_build_object('a')", "SELECT json_build_object(NULL, 1)",
    ...selects(["#::jsonb"], ["'{'", "''", "'1'", "'\"\\u0041\"'", "'{\"a\":1,\"a\":2}'", "'[1,]'", "'nul'", "'1e2'", "'1.50'", "' [ ] '"]),
    ...selects(["#::json"], ["'{\"a\":1,\"a\":2}'", "'[1,  2]'", "'x'"]),
    ...selects(["('7'::jsonb)::#", "('\"7\"'::jsonb)::#", "('true'::jsonb)::#"], ["int", "text", "boolean", "numeric", "float8"]),
    ...["jsonb_array_elements('[1, \"a\", null]')", "jsonb_array_elements_text('[1, \"a\", null]')", "jsonb_each('{\"a\": 1, \"b\": \"x\"}')", "jsonb_each_text('{\"a\": 1, \"b\": null}')", "jsonb_object_keys('{\"b\": 1, \"a\": 2}')", "json_array_elements('[1, [2]]')", "json_each_text('{\"a\": \"x\"}')", "json_object_keys('{\"a\": 1}')", "jsonb_to_recordset('[{\"a\": 1, \"b\": \"x\"}, {\"a\": null}]') AS x(a int, b text)"].map((f) => `SELECT * FROM ${f}`),
    "SELECT * FROM jsonb_array_elements('{}')", "SELECT * FROM jsonb_each('[1]')",
    ...selects(["'#'::jsonb < '[1]'::jsonb"], ["1", "null", "\"a\"", "{}", "[]", "[0]", "[1, 2]", "true"]),
  ],
};

const LISTS = ["ARRAY[1, 2, 3]", "ARRAY[1, NULL, 1]", "'{}'::int[]", "NULL::int[]"] as const;

const ARRAYS: CaseFile = {
  name: "arrays",
  about: "arrays",
  statements: [
    ...selects(["array_length(#, 1)", "array_length(#, 2)", "cardinality(#)", "array_ndims(#)", "array_lower(#, 1)", "array_upper(#, 1)", "array_append(#, 9)", "array_prepend(9, #)", "array_cat(#, ARRAY[7])", "array_remove(#, 1)", "array_remove(#, NULL)", "array_replace(#, 1, 8)", "array_position(#, 1)", "array_positions(#, 1)", "array_to_string(#, ',')", "array_to_string(#, ',', '*')", "(#)[1]", "(#)[0]", "(#)[4]", "(#)[2:3]", "(#)[:2]", "(#)[2:]", "# || 5", "5 || #", "# || ARRAY[6, 7]", "# = ARRAY[1, 2, 3]", "# < ARRAY[1, 3]", "# @> ARRAY[1]", "# <@ ARRAY[1, 2, 3, 4]", "# && ARRAY[3, 9]", "(#)::text", "(#)::text[]"], LISTS),
    ...selects(["trim_array(ARRAY[1, 2, 3], #)"], ["0", "1", "3", "4", "-1"]),
    ...selects(["string_to_array(#, ',')", "string_to_array(#, ',', 'b')", "string_to_array(#, NULL)", "string_to_array(#, '')"], ["'a,b,,c'", "''", "NULL::text"]),
    "SELECT array_fill(7, ARRAY[3])", "SELECT ARRAY[1, 2.5]", "SELECT ARRAY['a', NULL]", "SELECT ARRAY[]::text[]", "SELECT ARRAY(SELECT g FROM generate_series(3, 1, -1) g)", "SELECT ARRAY[1, 'x']", "SELECT '{1,2'::int[]", "SELECT '{a,\"b c\",NULL}'::text[]", "SELECT '{1,x}'::int[]",
    ...["generate_series(1, 5, 2)", "generate_series(5, 1)", "generate_series(5, 1, -2)", "generate_series(1, 3, 0)", "generate_series(1.0, 2.0, 0.5)", "generate_series(NULL, 3)", "generate_series(TIMESTAMP '2024-01-30', TIMESTAMP '2024-03-01', INTERVAL '1 month')", "unnest(ARRAY[1, NULL, 3])", "unnest(ARRAY[1, 2], ARRAY['a']) AS u(x, y)", "unnest('{}'::int[])", "generate_subscripts(ARRAY['a', 'b'], 1)", "string_to_table('a,b', ',')", "unnest(ARRAY['x', 'y']) WITH ORDINALITY AS u(v, n)"].map((f) => `SELECT * FROM ${f}`),
    "SELECT generate_series(1, 3)", "SELECT generate_series(1, 2), 'x'", "SELECT unnest(ARRAY[1, 2]), unnest(ARRAY['a', 'b', 'c'])",
  ],
};

export const VALUES: readonly CaseFile[] = [LOGIC, CASTS, DATES, FORMATS, JSON_CASES, ARRAYS];
