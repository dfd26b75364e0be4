/**
 * Verifies that every scalar function gives the results of PostgreSQL. The tests are a table of
 * calls, and a function without a case fails the suite.
 */

import { expect, test } from "bun:test";
import { join } from "node:path";
import {
  functionExists,
  functionNames,
  namedForm,
  resolveFunction,
} from "../../../src/sql/functions/registry.ts";
import {
  BIGINT,
  BYTES,
  CIDR,
  DATE,
  type DataType,
  DOUBLE,
  decimalType,
  FLOAT,
  type GeometricKind,
  INET,
  INT,
  JSONB,
  MACADDR8,
  NUMERIC,
  SMALLINT,
  TEXT,
  TIME,
  TIMESTAMP,
  UUID,
} from "../../../src/types/mod.ts";
import { parseSlt } from "../../support/slt.ts";
import {
  CALL,
  callFunction,
  day,
  errorCodeOf,
  type Given,
  INTS,
  ints,
  js,
  jsb,
  num as n,
  nullOf,
  of,
  path,
  query,
  span,
  texts,
  ts,
  tz,
  untyped,
  vec,
  words,
} from "./calls.ts";

function dbl(value: string): Given {
  return of(DOUBLE, value);
}
function bytes(value: string): Given {
  return of(BYTES, value);
}

/**
 * A case: the function, its arguments, the text of the result (null means NULL), and its type if
 * relevant.
 */
type Case = readonly [string, readonly Given[], string | null, string?];

const PAIR: DataType = {
  kind: "row",
  fields: [
    { name: "x", type: INT },
    { name: "y", type: TEXT },
  ],
};

const MATH: readonly Case[] = [
  ["abs", [n("-2.50")], "2.50", "numeric(3,2)"],
  ["abs", [-5], "5", "integer"],
  ["abs", [untyped("-5")], "5", "double precision"],
  ["sign", [n("-2.5")], "-1"],
  ["sign", [dbl("0")], "0", "double precision"],
  ["ceil", [n("2.1")], "3"],
  ["ceil", [n("-2.9")], "-2"],
  ["ceiling", [dbl("-0.5")], "-0", "double precision"],
  ["floor", [n("-2.1")], "-3"],
  ["floor", [7], "7", "integer"],
  ["round", [n("2.5")], "3", "numeric(2,0)"],
  ["round", [n("-2.5")], "-3"],
  ["round", [dbl("2.5")], "2", "double precision"],
  ["round", [n("42.4382"), 2], "42.44", "numeric(5,2)"],
  ["round", [n("42.4382"), 6], "42.438200"],
  ["round", [n("1234.5"), -2], "1200", "numeric(5,0)"],
  ["round", [dbl("2.675"), 2], "2.68", "double precision"],
  ["round", [dbl("0.125"), 2], "0.12"],
  ["round", [1250, -2], "1300", "integer"],
  ["trunc", [n("-42.4382"), 2], "-42.43"],
  ["trunc", [dbl("-2.9")], "-2"],
  ["trunc", [n("99.99"), -1], "90"],
  ["mod", [-7, 3], "-1"],
  ["mod", [n("5.5"), 2], "1.5"],
  ["div", [-7, 2], "-3", "integer"],
  ["div", [n("7.5"), n("2")], "3", "numeric(1,0)"],
  ["gcd", [12, -18], "6"],
  ["lcm", [4, 6], "12"],
  ["gcd", [n("1.5"), n("0.25")], "0.25"],
  ["factorial", [20], "2432902008176640000", "numeric"],
  ["factorial", [33], "8683317618811886495518194401280000000"],
  ["greatest", [1, null, 5], "5", "integer"],
  ["greatest", [1, n("2.5")], "2.5"],
  ["least", ["b", "a", null], "a"],
  ["least", [null, null], null],
  ["width_bucket", [n("5.35"), n("0.024"), n("10.06"), 5], "3", "integer"],
  ["width_bucket", [10, 10, 0, 5], "1"],
  ["width_bucket", [4, ints("{1,3,4,6}")], "3"],
  ["scale", [n("8.4100")], "4"],
  ["min_scale", [n("8.4100")], "2"],
  ["trim_scale", [n("8.4100")], "8.41"],
  ["sqrt", [2], "1.4142135623730951", "double precision"],
  ["cbrt", [27], "3"],
  ["exp", [0], "1"],
  ["ln", [n("2.0")], "0.6931471805599453"],
  ["log", [100], "2"],
  ["log", [2, 64], "6"],
  ["log10", [1000], "3"],
  ["power", [2, 10], "1024"],
  ["pow", [9, n("0.5")], "3.0000000000000000"],
  ["pi", [], "3.141592653589793"],
  ["degrees", [dbl("3.141592653589793")], "180"],
  ["radians", [180], "3.141592653589793"],
  ["sin", [0], "0"],
  ["cos", [0], "1"],
  ["tan", [0], "0"],
  ["cot", [dbl("0.7853981633974483")], "1.0000000000000002"],
  ["cot", [0], "Infinity"],
  ["asin", [1], "1.5707963267948966"],
  ["acos", [1], "0"],
  ["atan", [0], "0"],
  ["atan2", [1, 0], "1.5707963267948966"],
  ["sinh", [0], "0"],
  ["sind", [30], "0.5"],
  ["cosd", [60], "0.5"],
  ["tand", [45], "1"],
  ["cotd", [45], "1"],
  ["asind", [0.5], "30"],
  ["acosd", [0.5], "60"],
  ["atand", [1], "45"],
  ["atan2d", [1, -1], "135"],
  ["cosh", [0], "1"],
  ["tanh", [0], "0"],
  ["asinh", [0], "0"],
  ["acosh", [1], "0"],
  ["atanh", [0], "0"],
  ["random", [], "0.25"],
];

const TEXT_CASES: readonly Case[] = [
  ["length", ["a€😀"], "3", "integer"],
  ["length", [bytes("\\x0102")], "2"],
  ["char_length", ["abc"], "3"],
  ["character_length", [""], "0"],
  ["octet_length", ["a€😀"], "8"],
  ["octet_length", [bytes("\\x0102")], "2"],
  ["bit_length", ["abc"], "24"],
  ["lower", ["ÀB"], "àb"],
  ["upper", ["straße"], "STRAßE"],
  ["unistr", ["\\0061b"], "ab"],
  ["parse_ident", ['App."T t"'], '{app,"T t"}'],
  ["initcap", ["hello wORLD it's"], "Hello World It'S"],
  ["concat", ["a", null, 1, true], "a1t"],
  ["concat", [null], ""],
  ["concat_ws", [",", "a", null, n("2.50")], "a,2.50"],
  ["concat_ws", [null, "a"], null],
  ["left", ["tidemark", -4], "tide"],
  ["left", ["😀bc", 1], "😀"],
  ["left", ["abc", -5], ""],
  ["right", ["tidemark", 4], "mark"],
  ["right", ["abc", -1], "bc"],
  ["lpad", ["7", 3, "0"], "007"],
  ["lpad", ["abc", 2], "ab"],
  ["rpad", ["ab", 5, "xy"], "abxyx"],
  ["rpad", ["ab", 5, ""], "ab"],
  ["btrim", ["  a b "], "a b"],
  ["btrim", ["xxaxyx", "xy"], "a"],
  ["trim", [" a "], "a"],
  ["ltrim", ["  a "], "a "],
  ["rtrim", ["a😀😀", "😀"], "a"],
  ["substring", ["tidemark", 2, 3], "ide"],
  ["substring", ["tidemark", 0, 3], "ti"],
  ["substring", ["tidemark", -2, 5], "ti"],
  ["substring", ["tidemark", 5], "mark"],
  ["substring", ["foobar", "o(.)b"], "o"],
  ["substring", ["foobar", "o.b"], "oob"],
  ["substring", ["foobar", "x"], null],
  ["substring", [bytes("\\x010203"), 2, 1], "\\x02"],
  ["substr", ["abcdef", 3], "cdef"],
  ["position", ["de", "tidemark"], "3"],
  ["position", ["x", "tidemark"], "0"],
  ["strpos", ["😀de", "d"], "2"],
  ["overlay", ["abcdef", "XY", 2, 3], "aXYef"],
  ["overlay", ["abcdef", "XY", 2], "aXYdef"],
  ["replace", ["a$b$", "$", "$&"], "a$&b$&"],
  ["replace", ["abc", "", "x"], "abc"],
  ["translate", ["12345", "143", "ax"], "a2x5"],
  ["repeat", ["ab", 3], "ababab"],
  ["repeat", ["ab", -1], ""],
  ["reverse", ["a😀b"], "b😀a"],
  ["split_part", ["a,b,c", ",", -1], "c"],
  ["split_part", ["a,b,c", ",", 2], "b"],
  ["split_part", ["a,b", ",", 5], ""],
  ["is_normalized", ["e\u0301"], "false"],
  ["is_normalized", ["e\u0301", "NFD"], "true"],
  ["starts_with", ["tidemark", "tide"], "true"],
  ["ends_with", ["tidemark", "tide"], "false"],
  ["ascii", ["😀"], "128512"],
  ["ascii", [""], "0"],
  ["chr", [8364], "€"],
  ["to_hex", [-1], "ffffffff"],
  ["to_hex", [of(BIGINT, "-1")], "ffffffffffffffff"],
  ["format", ["%s=%L", "a", "it's"], "a='it''s'"],
  ["format", ["%2$s|%1$5s|%-5s|%%", "a", "b c"], "b c|    a|b c  |%"],
  ["format", ["%I", "a b"], '"a b"'],
  ["quote_ident", ["select"], '"select"'],
  ["quote_ident", ["a b"], '"a b"'],
  ["quote_ident", ["ab"], "ab"],
  ["quote_literal", ["it's \\ ok"], "E'it''s \\\\ ok'"],
  ["quote_literal", [n("1.5")], "'1.5'"],
  ["quote_nullable", [null], "NULL"],
  ["normalize", ["e\u0301"], "é"],
  ["normalize", ["é", "NFD"], "e\u0301"],
];

const PATTERNS: readonly Case[] = [
  ["regexp_like", ["Hello", "hel", "i"], "true"],
  ["regexp_like", ["Hello", "hel"], "false"],
  ["regexp_count", ["abcabc", "b."], "2"],
  ["regexp_count", ["abcabc", "b.", 3], "1"],
  ["regexp_count", ["abc", ""], "4"],
  ["regexp_instr", ["foobar", "o(b..)"], "3"],
  ["regexp_instr", ["foobar", "o(b..)", 1, 1, 1], "7"],
  ["regexp_instr", ["foobar", "o(b..)", 1, 1, 0, "", 1], "4"],
  ["regexp_instr", ["foobar", "x"], "0"],
  ["regexp_substr", ["foobar", "o(b..)", 1, 1, "", 1], "bar"],
  ["regexp_substr", ["foobar", "o", 1, 2], "o"],
  ["regexp_substr", ["foobar", "x"], null],
  ["regexp_match", ["foobarbaz", "(b)(x)?(a.)"], "{b,NULL,ar}", "text[]"],
  ["regexp_match", ["foobarbaz", "b.."], "{bar}"],
  ["regexp_match", ["foo", "x"], null],
  ["regexp_replace", ["foo bar", "(\\w+) (\\w+)", "\\2 \\1"], "bar foo"],
  ["regexp_replace", ["aaa", "a", "b"], "baa"],
  ["regexp_replace", ["aaa", "a", "b", "g"], "bbb"],
  ["regexp_replace", ["AaA", "a", "<\\&>", "gi"], "<A><a><A>"],
  ["regexp_replace", ["abc", "", "X", "g"], "XaXbXcX"],
  ["regexp_replace", ["aaaa", "a", "b", 2, 2], "aaba"],
  ["regexp_replace", ["aaaa", "a", "b", 3, 0], "aabb"],
  ["regexp_split_to_array", ["a, b ,c", "\\s*,\\s*"], "{a,b,c}"],
  ["regexp_split_to_array", ["abc", ""], "{a,b,c}"],
  ["regexp_split_to_array", [",a,", ","], '{"",a,""}'],
];

const BYTES_CASES: readonly Case[] = [
  ["encode", [bytes("\\x00ff41"), "hex"], "00ff41"],
  ["encode", [bytes("\\x00ff41"), "base64"], "AP9B"],
  ["encode", [bytes("\\x00ff415c"), "escape"], "\\000\\377A\\\\"],
  ["decode", ["00ff", "hex"], "\\x00ff"],
  ["decode", ["AP9B", "base64"], "\\x00ff41"],
  ["decode", ["\\000A", "escape"], "\\x0041"],
  ["md5", ["abc"], "900150983cd24fb0d6963f7d28e17f72", "text"],
  ["md5", [bytes("\\x616263")], "900150983cd24fb0d6963f7d28e17f72"],
  ["sha224", [bytes("\\x616263")], "\\x23097d223405d8228642a477bda255b32aadbce4bda0b3f7e36c9da7"],
  [
    "sha256",
    [bytes("\\x616263")],
    "\\xba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad",
  ],
  [
    "sha384",
    [bytes("\\x616263")],
    "\\xcb00753f45a35e8bb5a03d699ac65007272c32ab0eded1631a8b605a43ff5bed8086072ba1e7cc2358baeca134c825a7",
  ],
  [
    "sha512",
    [bytes("\\x616263")],
    "\\xddaf35a193617abacc417349ae20413112e6fa4e89a97ea20a9eeee64b55d39a2192992a274fc1a836ba3c23a3feebbd454d4423643ce80e2a9ac94fa54ca49f",
  ],
  ["get_byte", [bytes("\\x0aff"), 1], "255"],
  ["set_byte", [bytes("\\x0aff"), 0, 1], "\\x01ff"],
  ["get_bit", [bytes("\\x0aff"), 1], "1"],
  ["set_bit", [bytes("\\x0aff"), 0, 1], "\\x0bff"],
  ["bit_count", [bytes("\\x0aff")], "10"],
  ["float4send", [1.5], "\\x3fc00000", "bytea"],
  ["float8send", [1.5], "\\x3ff8000000000000", "bytea"],
  ["pg_size_pretty", [20_480], "20 kB"],
  ["pg_size_bytes", ["20 kB"], "20480"],
  ["convert_to", ["€", "UTF8"], "\\xe282ac"],
  ["convert_from", [bytes("\\xe282ac"), "utf-8"], "€"],
];

const TIMES: readonly Case[] = [
  ["now", [], "2025-01-02 03:04:05.678901+00", "timestamp with time zone"],
  ["current_timestamp", [], "2025-01-02 03:04:05.678901+00"],
  ["current_timestamp", [3], "2025-01-02 03:04:05.679+00"],
  ["transaction_timestamp", [], "2025-01-02 03:04:05.678901+00"],
  ["statement_timestamp", [], "2025-01-02 03:04:05.678901+00"],
  ["clock_timestamp", [], "2025-01-02 03:04:05.678902+00"],
  ["localtimestamp", [0], "2025-01-02 03:04:06", "timestamp without time zone"],
  ["current_date", [], "2025-01-02", "date"],
  ["current_time", [], "03:04:05.678901+00", "time with time zone"],
  ["localtime", [1], "03:04:05.7"],
  ["date_trunc", ["month", ts("2025-03-15 10:20:30")], "2025-03-01 00:00:00"],
  ["date_trunc", ["week", tz("2025-03-16 10:20:30+00")], "2025-03-10 00:00:00+00"],
  ["date_trunc", ["quarter", day("2025-05-16")], "2025-04-01 00:00:00+00"],
  ["date_trunc", ["century", ts("2025-03-15")], "2001-01-01 00:00:00"],
  ["date_trunc", ["hour", span("3 days 25:10:11")], "3 days 25:00:00"],
  ["date_trunc", ["day", tz("2025-06-01 23:30+00"), "Europe/Berlin"], "2025-06-01 22:00:00+00"],
  [
    "date_bin",
    [span("15 minutes"), ts("2025-01-01 10:38"), ts("2025-01-01")],
    "2025-01-01 10:30:00",
  ],
  ["date_bin", [span("1 hour"), ts("2024-12-31 23:30"), ts("2025-01-01")], "2024-12-31 23:00:00"],
  ["extract", ["isodow", day("2025-03-16")], "7", "double precision"],
  ["extract", ["epoch", ts("1970-01-02 00:00:00.5")], "86400.5"],
  ["extract", ["second", of(TIME, "01:02:03.5")], "3.5"],
  ["extract", ["month", span("14 months")], "2"],
  ["extract", ["timezone", tz("2025-01-01")], "0"],
  ["date_part", ["week", ts("2021-01-03")], "53"],
  ["date_part", ["isoyear", ts("2021-01-03")], "2020"],
  ["date_part", ["doy", ts("2024-12-31")], "366"],
  ["date_part", ["millennium", ts("2001-01-01")], "3"],
  ["date_part", ["microseconds", ts("2025-01-01 00:00:01.5")], "1500000"],
  ["age", [ts("2025-03-15"), ts("2023-12-25")], "1 year 2 mons 21 days"],
  ["age", [ts("2025-01-01")], "1 day"],
  ["age", [ts("2025-01-31"), ts("2025-03-01 12:00")], "-1 mons -1 days -12:00:00"],
  ["make_date", [2024, 2, 29], "2024-02-29"],
  ["make_time", [8, 15, n("23.5")], "08:15:23.5"],
  ["make_timestamp", [2025, 1, 2, 3, 4, n("5.5")], "2025-01-02 03:04:05.5"],
  ["make_timestamptz", [2025, 1, 2, 3, 4, 5], "2025-01-02 03:04:05+00"],
  ["make_timestamptz", [2025, 6, 1, 12, 0, 0, "Europe/Berlin"], "2025-06-01 10:00:00+00"],
  ["make_interval", [1, 2, 1, 3, 4, 5, n("6.5")], "1 year 2 mons 10 days 04:05:06.5"],
  ["make_interval", [], "00:00:00"],
  ["to_timestamp", [dbl("Infinity")], "infinity"],
  ["to_timestamp", [n("1735689600.25")], "2025-01-01 00:00:00.25+00"],
  ["timezone", ["Europe/Berlin", tz("2025-06-01 12:00+00")], "2025-06-01 14:00:00"],
  ["timezone", ["Europe/Berlin", ts("2025-06-01 12:00")], "2025-06-01 10:00:00+00"],
  ["timezone", ["+02", ts("2025-06-01 12:00")], "2025-06-01 14:00:00+00"],
  ["timezone", [span("2 hours"), ts("2025-06-01 12:00")], "2025-06-01 10:00:00+00"],
  ["justify_days", [span("35 days")], "1 mon 5 days"],
  ["justify_hours", [span("27:00:00")], "1 day 03:00:00"],
  ["justify_interval", [span("1 mon -1 hour")], "29 days 23:00:00"],
  ["isfinite", [ts("2025-01-01")], "true"],
  ["isfinite", [day("2025-01-01")], "true"],
  [
    "overlaps",
    [day("2025-01-01"), day("2025-02-01"), day("2025-01-15"), day("2025-03-01")],
    "true",
  ],
  [
    "overlaps",
    [day("2025-01-01"), day("2025-02-01"), day("2025-02-01"), day("2025-03-01")],
    "false",
  ],
  ["overlaps", [ts("2025-01-01"), span("1 day"), ts("2025-01-01 12:00"), span("1 day")], "true"],
  ["overlaps", [ts("2025-01-01"), nullOf(TIMESTAMP), ts("2025-01-02"), ts("2025-01-03")], null],
];

const FORMATS: readonly Case[] = [
  ["to_char", [ts("2025-03-05 14:07:09"), "YYYY-MM-DD HH24:MI"], "2025-03-05 14:07"],
  ["to_char", [ts("2025-03-05 14:07:09"), "FMMonth FMDDth, FMHH12:MI am"], "March 5th, 2:07 pm"],
  [
    "to_char",
    [tz("2025-03-05 14:07:09.123456+00"), "Day|Dy|TZ|OF|MS|US"],
    "Wednesday|Wed|UTC|+00|123|123456",
  ],
  ["to_char", [ts("2021-01-03 00:00"), "IYYY-IW-ID Q WW DDD J"], "2020-53-7 1 01 003 2459218"],
  ["to_char", [span("1 day 26:03:04"), "HH24:MI:SS DD"], "26:03:04 01"],
  ["to_char", [n("-1234.5"), "9,999.99"], "-1,234.50"],
  ["to_char", [12, "S099"], "+012"],
  ["to_char", [n("0.1"), "FM90.99"], "0.1"],
  ["to_char", [-485, "999PR"], "<485>"],
  ["to_char", [485, "FMRN"], "CDLXXXV"],
  ["to_char", [12345, "999"], " ###"],
  ["to_char", [dbl("1234.5"), "9.99EEEE"], " 1.23e+03"],
  ["to_char", [12, "99V9"], " 120"],
  ["to_char", [22, "FM99th"], "22nd"],
  ["to_number", ["12,454.8-", "99G999D9S"], "-12454.8", "numeric(38,1)"],
  ["to_number", ["$1,234", "L9,999"], "1234"],
  ["to_number", ["<12>", "99PR"], "-12"],
  ["to_number", [">12<", "99"], "1"],
  ["to_date", ["05 Dec 2000", "DD Mon YYYY"], "2000-12-05"],
  ["to_date", ["20250315", "YYYYMMDD"], "2025-03-15"],
  ["to_date", ["2025-064", "YYYY-DDD"], "2025-03-05"],
  ["to_date", ["99-1-1", "YY-MM-DD"], "1999-01-01"],
  [
    "to_timestamp",
    ["2025-01-02 03:04:05.678", "YYYY-MM-DD HH24:MI:SS.MS"],
    "2025-01-02 03:04:05.678+00",
  ],
  ["to_timestamp", ["12:30 PM 2025-01-01", "HH12:MI PM YYYY-MM-DD"], "2025-01-01 12:30:00+00"],
];

const SEARCH_CASES: readonly Case[] = [
  ["to_tsvector", ["english", "The cats sat"], "'cat':2 'sat':3", "tsvector"],
  ["to_tsvector", ["english", jsb('["cats", "sat"]')], "'cat':1 'sat':3"],
  ["json_to_tsvector", ["english", jsb('{"a": "cats"}'), jsb('"all"')], "'cat':2"],
  [
    "jsonb_to_tsvector",
    ["simple", jsb('{"a": [1, "x"]}'), jsb('["key", "numeric"]')],
    "'1':3 'a':1",
  ],
  ["to_tsquery", ["english", "cats & !dog:*A"], "'cat' & !'dog':*A", "tsquery"],
  ["plainto_tsquery", ["simple", "the cats"], "'the' & 'cats'"],
  ["phraseto_tsquery", ["english", "cat of hats"], "'cat' <2> 'hat'"],
  ["websearch_to_tsquery", ["english", 'cats or "a hat" -dog'], "'cat' | 'hat' & !'dog'"],
  ["ts_rank", [words("cat:1 hat:2"), query("cat")], "0.06079271", "real"],
  ["ts_rank_cd", [words("cat:1 hat:2"), query("cat & hat")], "0.1"],
  ["setweight", [words("cat:1 hat:2"), "B", texts("{hat}")], "'cat':1 'hat':2B"],
  ["strip", [words("cat:1 hat:2")], "'cat' 'hat'"],
  ["length", [words("cat:1 hat:2")], "2"],
  ["ts_delete", [words("cat:1 hat:2"), "cat"], "'hat':2"],
  ["ts_filter", [words("cat:1A hat:2"), texts("{a}")], "'cat':1A"],
  ["ts_headline", ["fat cats", query("fat")], "<b>fat</b> cats"],
  ["ts_lexize", ["english_stem", "cats"], "{cat}"],
  ["tsvector_to_array", [words("hat cat:1")], "{cat,hat}"],
  ["array_to_tsvector", [texts("{hat,cat}")], "'cat' 'hat'"],
  ["numnode", [query("cat & !hat")], "4"],
  ["tsquery_phrase", [query("cat"), query("hat"), 2], "'cat' <2> 'hat'"],
  ["similarity", ["cat", "cats"], "0.5", "real"],
  ["word_similarity", ["cat", "the cats"], "0.75"],
  ["strict_word_similarity", ["cat", "the cats"], "0.5"],
  ["show_trgm", ["cat"], '{"  c"," ca","at ",cat}'],
];

const JSON_CASES: readonly Case[] = [
  ["json_typeof", [js(' {"a":1}')], "object"],
  ["jsonb_typeof", [jsb("null")], "null"],
  ["json_array_length", [js("[1,[2],3]")], "3"],
  ["jsonb_array_length", [untyped("[1,2]")], "2"],
  ["json_extract_path", [js('{"a":{"b": [1]}}'), "a", "b"], "[1]", "json"],
  ["jsonb_extract_path", [jsb('{"a":1}'), "x"], null],
  ["json_extract_path_text", [js('{"a":"x"}'), "a"], "x"],
  ["jsonb_extract_path_text", [jsb('{"a":[true]}'), "a", "0"], "true"],
  ["jsonb_exists", [jsb('{"a":1}'), "a"], "true"],
  ["jsonb_exists", [jsb('["a"]'), "b"], "false"],
  ["json_get", [js('{"a":[10,20]}'), "a", 1], "20", "json"],
  ["json_get", [jsb('{"a":1}'), "b"], null],
  ["json_get_json", [js('{"a":{"b":1}}'), "a"], '{"b":1}'],
  ["json_get_str", [js('{"a":"x"}'), "a"], "x"],
  ["json_get_str", [js('{"a":1}'), "a"], null],
  ["json_get_int", [js('{"a":9007199254740993}'), "a"], "9007199254740993", "bigint"],
  ["json_get_int", [js('{"a":1.5}'), "a"], null],
  ["json_get_int", [js("[1e2]"), 0], "100"],
  ["json_get_float", [js('{"a":1.5}'), "a"], "1.5"],
  ["json_get_bool", [js('{"a":true}'), "a"], "true"],
  ["json_get_bool", [js('{"a":1}'), "a"], null],
  ["json_get_array", [js('{"a":[1,"x"]}'), "a"], '{1,"\\"x\\""}', "json[]"],
  ["json_as_text", [js('{"a":"x"}'), "a"], "x"],
  ["json_as_text", [js('{"a":[1]}'), "a"], "[1]"],
  ["json_contains", [js('{"a":{"b":1}}'), "a", "b"], "true"],
  ["json_contains", [js('{"a":1}'), "b"], "false"],
  ["json_length", [js('{"a":[1,2]}'), "a"], "2"],
  ["json_length", [js('{"a":1,"b":2}')], "2"],
  ["json_length", [js("1")], null],
  ["to_json", ['it\'s "x"'], '"it\'s \\"x\\""', "json"],
  ["to_json", [ints("{1,NULL}")], "[1,null]"],
  ["array_to_json", [ints("{1,NULL}")], "[1,null]", "json"],
  ["row_to_json", [{ type: PAIR, value: { cells: [1, "a"] } }], '{"x":1,"y":"a"}', "json"],
  ["to_json", [n("1.50")], "1.50"],
  ["to_jsonb", [tz("2025-01-01 00:00:00.5+00")], '"2025-01-01T00:00:00.5+00:00"', "jsonb"],
  ["to_jsonb", [js('{"b":1,"a":2}')], '{"a": 2, "b": 1}'],
  ["json_from_scalar", [true], "true"],
  ["json_build_array", [1, "x", null], '[1, "x", null]'],
  ["jsonb_build_array", [true, null], "[true, null]"],
  ["json_build_object", ["a", 1, "b", ints("{1,2}")], '{"a" : 1, "b" : [1,2]}'],
  ["jsonb_build_object", ["k", jsb("[true, null]")], '{"k": [true, null]}'],
  ["json_object", [texts("{a,1,b,NULL}")], '{"a" : "1", "b" : null}'],
  ["json_object", [texts("{a,b}"), texts("{1,2}")], '{"a" : "1", "b" : "2"}'],
  ["jsonb_object", [texts("{b,1,a,2}")], '{"a": "2", "b": "1"}'],
  ["jsonb_set", [untyped('{"a":1}'), untyped("{b}"), untyped("2")], '{"a": 1, "b": 2}'],
  ["jsonb_set", [jsb('{"a":[1,2]}'), texts("{a,-1}"), jsb("9")], '{"a": [1, 9]}'],
  ["jsonb_set", [jsb('{"a":1}'), texts("{b}"), jsb("2"), false], '{"a": 1}'],
  ["jsonb_set", [jsb("{}"), texts("{a,b}"), jsb("1")], "{}"],
  ["jsonb_set", [jsb("[1]"), texts("{5}"), jsb("9")], "[1, 9]"],
  ["jsonb_set_lax", [jsb('{"a":1}'), texts("{a}"), nullOf(JSONB)], '{"a": null}'],
  ["jsonb_set_lax", [jsb('{"a":1}'), texts("{a}"), nullOf(JSONB), true, "delete_key"], "{}"],
  ["jsonb_insert", [jsb("[0,1]"), texts("{1}"), jsb("9")], "[0, 9, 1]"],
  ["jsonb_insert", [jsb("[0,1]"), texts("{1}"), jsb("9"), true], "[0, 1, 9]"],
  ["jsonb_insert", [jsb('{"a":1}'), texts("{b}"), jsb("9")], '{"a": 1, "b": 9}'],
  ["json_strip_nulls", [js('{"a":null, "b":[null,{"c":null}]}')], '{"b":[null,{}]}'],
  ...["", "_tz"].flatMap((zone): Case[] => [
    [`jsonb_path_exists${zone}`, [jsb("[1, 2]"), path("$[*] ? (@ > 1)")], "true"],
    [`jsonb_path_match${zone}`, [jsb("[1, 2]"), path("$[*] > 2")], "false"],
    [`jsonb_path_query_array${zone}`, [jsb("[1, 2]"), path("$[0] + $n"), jsb('{"n":1}')], "[2]"],
    [`jsonb_path_query_first${zone}`, [jsb("[1, 2]"), path("-$[*]")], "-1"],
  ]),
  ["jsonb_strip_nulls", [jsb('{"a":null,"b":[null,{"c":null}]}')], '{"b": [null, {}]}'],
  [
    "jsonb_pretty",
    [jsb('{"a":[],"b":{"c":1}}')],
    '{\n    "a": [\n    ],\n    "b": {\n        "c": 1\n    }\n}',
  ],
];

const ARRAYS: readonly Case[] = [
  ["array_length", [ints("{1,2}"), 1], "2"],
  ["array_length", [ints("{}"), 1], null],
  ["array_length", [ints("{1}"), 2], null],
  ["cardinality", [ints("{}")], "0"],
  ["array_ndims", [ints("{1}")], "1"],
  ["array_dims", [ints("{{1,2},{3,4}}")], "[1:2][1:2]"],
  ["array_lower", [ints("{1}"), 1], "1"],
  ["array_upper", [ints("{1,2,3}"), 1], "3"],
  ["array_append", [ints("{1}"), n("2.5")], "{1,2.5}"],
  ["array_append", [nullOf(INTS), 1], "{1}"],
  ["array_prepend", [0, ints("{1}")], "{0,1}"],
  ["array_cat", [ints("{1}"), ints("{2,NULL}")], "{1,2,NULL}"],
  ["array_cat", [nullOf(INTS), ints("{2}")], "{2}"],
  ["array_remove", [ints("{1,2,1}"), 1], "{2}"],
  ["array_remove", [ints("{1,NULL}"), nullOf(INT)], "{1}"],
  ["array_replace", [ints("{1,2,1}"), 1, 9], "{9,2,9}"],
  ["array_position", [texts("{a,b,a}"), "a"], "1"],
  ["array_position", [texts("{a,b,a}"), "a", 2], "3"],
  ["array_position", [texts("{a}"), "x"], null],
  ["array_positions", [texts("{a,b,a}"), untyped("a")], "{1,3}", "integer[]"],
  ["array_to_string", [texts("{a,NULL,c}"), ",", "*"], "a,*,c"],
  ["array_to_string", [texts("{a,NULL,c}"), ","], "a,c"],
  ["string_to_array", ["a,b,,c", ","], '{a,b,"",c}'],
  ["string_to_array", ["a,x", ",", "x"], "{a,NULL}"],
  ["string_to_array", ["abc", null], "{a,b,c}"],
  ["string_to_array", ["", ","], "{}"],
  ["trim_array", [ints("{1,2,3}"), 2], "{1}"],
  ["array_fill", [7, ints("{3}")], "{7,7,7}"],
];

const OTHERS: readonly Case[] = [
  ["coalesce", [null, 3], "3", "integer"],
  ["coalesce", [null, null], null],
  ["nullif", [4, 4], null],
  ["nullif", [4, n("4.0")], null],
  ["nullif", ["a", "b"], "a"],
  ["num_nulls", [1, null, null], "2"],
  ["num_nonnulls", [1, null, null], "1"],
  ["current_user", [], "alice"],
  ["user", [], "alice"],
  ["current_user_id", [], "alice"],
  ["pg_advisory_lock", [5], ""],
  ["pg_advisory_lock_shared", [5], ""],
  ["pg_advisory_xact_lock", [5, 6], ""],
  ["pg_advisory_xact_lock_shared", [5], ""],
  ["pg_try_advisory_lock", [5], "true"],
  ["pg_try_advisory_lock_shared", [5], "true"],
  ["pg_try_advisory_xact_lock", [5], "true"],
  ["pg_try_advisory_xact_lock_shared", [5, 6], "true"],
  ["pg_advisory_unlock", [5], "true"],
  ["pg_advisory_unlock_shared", [5], "true"],
  ["pg_advisory_unlock_all", [], ""],
  ["pg_sleep", [dbl("0")], ""],
  ["session_user", [], "root"],
  ["current_role", [], "user"],
  ["claim", ["sub"], "alice"],
  ["current_namespace", [], "app"],
  ["current_schema", [], "app"],
  ["current_schemas", [false], "{app}"],
  ["current_schemas", [true], "{pg_catalog,app}"],
  ["pg_client_encoding", [], "UTF8"],
  ["getdatabaseencoding", [], "UTF8"],
  ["pg_is_in_recovery", [], "false"],
  ["current_database", [], "tidemark"],
  ["current_catalog", [], "tidemark"],
  ["version", [], "Tidemark 0.1.0"],
  ["sort_key", ["b"], "b"],
  ["pg_typeof", [n("1.5")], "numeric"],
  ["pg_typeof", [null], "text"],
  ["typeof", [of(UUID, "550e8400-e29b-41d4-a716-446655440000")], "uuid"],
  ["seq_time", [0], "2026-01-01 00:00:00+00"],
  ["seq_at", [tz("2026-01-01 00:00:01+00")], "4096000"],
  ["cosine_distance", [vec("[1,0,0]"), vec("[0,1,0]")], "1"],
  ["cosine_distance", [vec("[1,0,0]"), vec("[0,0,0]")], "1"],
  ["cosine_distance", [vec("[1,0,0]"), "[1,0,0]"], "0"],
  ["l2_distance", [vec("[1,2,3]"), untyped("[1,2,5]")], "2", "double precision"],
  ["l1_distance", [vec("[1,2,3]"), vec("[2,4,3]")], "3"],
  ["inner_product", [vec("[1,2,3]"), vec("[2,4,3]")], "19"],
  ["cosine_similarity", [vec("[1,1,0]"), vec("[2,2,0]")], "1"],
  ["vector_dims", [vec("[1,2,3]")], "3"],
  ["vector_norm", [vec("[3,4,0]")], "5"],
];

const NETWORK_CASES: readonly Case[] = [
  ["abbrev", [of(CIDR, "10.1.0.0/16")], "10.1/16", "text"],
  ["broadcast", [of(INET, "10.1.2.3/24")], "10.1.2.255/24", "inet"],
  ["family", [of(INET, "::1")], "6", "integer"],
  ["host", [of(INET, "10.1.2.3/24")], "10.1.2.3", "text"],
  ["hostmask", [of(INET, "10.1.2.3/20")], "0.0.15.255", "inet"],
  ["inet_merge", [of(INET, "10.1.2.3/24"), of(INET, "10.1.9.1")], "10.1.0.0/20", "cidr"],
  ["inet_same_family", [of(INET, "10.1.2.3"), of(INET, "::1")], "false"],
  ["masklen", [of(INET, "10.1.2.3/24")], "24", "integer"],
  ["netmask", [of(INET, "10.1.2.3/20")], "255.255.240.0", "inet"],
  ["network", [of(INET, "10.1.2.3/24")], "10.1.2.0/24", "cidr"],
  ["set_masklen", [of(CIDR, "10.1.2.0/24"), 16], "10.1.0.0/16", "cidr"],
  ["macaddr8_set7bit", [of(MACADDR8, "00:34:56:ab:cd:ef:00:01")], "02:34:56:ab:cd:ef:00:01"],
];

const INT_RANGE: DataType = { kind: "range", bound: INT };
const INT_MULTIRANGE: DataType = { kind: "multirange", bound: INT };
const NUMBER_RANGE: DataType = { kind: "range", bound: NUMERIC };
const MOMENT_RANGE: DataType = { kind: "range", bound: TIMESTAMP };

const RANGE_CASES: readonly Case[] = [
  ["int4range", [1, 5, "(]"], "[2,6)", "int4range"],
  ["int8range", [1, null], "[1,)", "int8range"],
  ["numrange", [n("1.50"), 2], "[1.50,2)", "numrange"],
  ["daterange", [untyped("2024-01-01"), untyped("2024-01-02"), "[]"], "[2024-01-01,2024-01-03)"],
  ["tsrange", [untyped("2024-01-01"), null], '["2024-01-01 00:00:00",)', "tsrange"],
  ["tstzrange", [null, untyped("2024-01-01")], '(,"2024-01-01 00:00:00+00")', "tstzrange"],
  ["int4multirange", [of(INT_RANGE, "[5,7)"), of(INT_RANGE, "[1,6)")], "{[1,7)}"],
  ["int8multirange", [], "{}", "int8multirange"],
  ["nummultirange", [of(NUMBER_RANGE, "[1,2]"), of(NUMBER_RANGE, "(2,3]")], "{[1,3]}"],
  ["datemultirange", [untyped("[2024-01-01,2024-01-01]")], "{[2024-01-01,2024-01-02)}"],
  ["tsmultirange", [of(MOMENT_RANGE, "empty")], "{}", "tsmultirange"],
  ["tstzmultirange", [untyped("(,)")], "{(,)}", "tstzmultirange"],
  ["lower", [of(INT_RANGE, "(1,5]")], "2", "integer"],
  ["upper", [of(INT_MULTIRANGE, "{[1,2),[7,)}")], null, "integer"],
  ["isempty", [of(NUMBER_RANGE, "(1,1)")], "true", "boolean"],
  ["lower_inc", [of(NUMBER_RANGE, "(1,2)")], "false"],
  ["upper_inc", [of(NUMBER_RANGE, "(1,2]")], "true"],
  ["lower_inf", [of(INT_MULTIRANGE, "{(,2),[7,9)}")], "true"],
  ["upper_inf", [of(INT_MULTIRANGE, "{}")], "false"],
  ["multirange", [of(INT_RANGE, "[1,5)")], "{[1,5)}", "int4multirange"],
  ["range_merge", [of(INT_RANGE, "[1,2)"), of(INT_RANGE, "[7,9)")], "[1,9)", "int4range"],
];

/** The numbers of PostgreSQL. */
const HASHES: readonly Case[] = [
  ["hashtext", ["a"], "1075015857"],
  ["hashtextextended", ["a", 7], "6761863715122467050"],
  ["hashint2", [of(SMALLINT, "7")], "-978793473"],
  ["hashint2extended", [of(SMALLINT, "7"), 1], "-3604598377573523768"],
  ["hashint4", [-7], "-82204417"],
  ["hashint4extended", [7, 0], "-3288951424994980865"],
  ["hashint8", [of(BIGINT, "5000000000")], "-694934712"],
  ["hashint8extended", [of(BIGINT, "-5000000000"), 3], "5112412090131384660"],
  ["hashfloat4", [of(FLOAT, "1.5")], "630860146"],
  ["hashfloat4extended", [of(FLOAT, "1.5"), 1], "3331962287256816647"],
  ["hashfloat8", [dbl("NaN")], "-1275764840"],
  ["hashfloat8extended", [dbl("0.1"), -1], "497474359275273223"],
  ["uuid_hash", [of(UUID, "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11")], "1154666245"],
  [
    "uuid_hash_extended",
    [of(UUID, "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"), 2],
    "8544098317360673571",
  ],
];

const PATH_TEXT = "((0,0),(3,0),(3,4))";
const shape = (kind: GeometricKind, text: string): Given => of({ kind }, text);

const GEOMETRY_CASES: readonly Case[] = [
  ["point", [dbl("1"), dbl("-2.5")], "(1,-2.5)", "point"],
  ["lseg", [shape("point", "1,2"), shape("point", "3,4")], "[(1,2),(3,4)]", "lseg"],
  ["line", [shape("point", "0,0"), shape("point", "1,2")], "{2,-1,0}", "line"],
  ["box", [shape("point", "0,4"), shape("point", "3,0")], "(3,4),(0,0)", "box"],
  ["path", [shape("polygon", PATH_TEXT)], PATH_TEXT, "path"],
  ["polygon", [shape("box", "0,0,1,2")], "((0,0),(0,2),(1,2),(1,0))", "polygon"],
  ["circle", [shape("point", "1,2"), dbl("3")], "<(1,2),3>", "circle"],
  ["area", [shape("path", PATH_TEXT)], "6", "double precision"],
  ["area", [shape("path", "[(0,0),(1,1)]")], null],
  ["bound_box", [shape("box", "0,0,1,1"), shape("box", "5,-1,4,0")], "(5,1),(0,-1)", "box"],
  ["center", [shape("box", "0,0,2,3")], "(1,1.5)", "point"],
  ["box_center", [shape("box", "0,0,2,3")], "(1,1.5)"],
  ["circle_center", [shape("circle", "1,2,3")], "(1,2)"],
  ["lseg_center", [shape("lseg", "0,0,2,4")], "(1,2)"],
  ["poly_center", [shape("polygon", PATH_TEXT)], "(2,1.3333333333333333)"],
  ["diagonal", [shape("box", "0,0,2,3")], "[(2,3),(0,0)]", "lseg"],
  ["diameter", [shape("circle", "1,2,3")], "6"],
  ["height", [shape("box", "0,0,2,3")], "3"],
  ["width", [shape("box", "0,0,2,3")], "2"],
  ["radius", [shape("circle", "1,2,3")], "3"],
  ["isclosed", [shape("path", PATH_TEXT)], "true"],
  ["isopen", [shape("path", PATH_TEXT)], "false"],
  ["ishorizontal", [shape("lseg", "0,1,5,1.0000001")], "true"],
  ["isvertical", [shape("point", "1,0"), shape("point", "2,9")], "false"],
  ["isparallel", [shape("line", "{1,-1,0}"), shape("line", "{2,-2,5}")], "true"],
  ["isperp", [shape("line", "{1,-1,0}"), shape("line", "{1,1,0}")], "true"],
  ["length", [shape("path", PATH_TEXT)], "12", "double precision"],
  ["npoints", [shape("polygon", PATH_TEXT)], "3", "integer"],
  ["pclose", [shape("path", "[(0,0),(1,1)]")], "((0,0),(1,1))"],
  ["popen", [shape("path", PATH_TEXT)], "[(0,0),(3,0),(3,4)]"],
  ["slope", [shape("point", "0,0"), shape("point", "2,1")], "0.5"],
];

const CASES: readonly Case[] = [
  ...GEOMETRY_CASES,
  ...HASHES,
  ...RANGE_CASES,
  ...NETWORK_CASES,
  ...MATH,
  ...SEARCH_CASES,
  ...TEXT_CASES,
  ...PATTERNS,
  ...BYTES_CASES,
  ...TIMES,
  ...FORMATS,
  ...JSON_CASES,
  ...ARRAYS,
  ...OTHERS,
];

function shown(args: readonly Given[]): string {
  return args
    .map((arg) =>
      JSON.stringify(arg, (_, item: unknown) =>
        typeof item === "bigint" ? item.toString() : item,
      ),
    )
    .join(", ");
}

test.each(CASES.map((each) => [each[0], shown(each[1]), each[2], each] as const))(
  "%s(%s) is %p",
  (name, _, wanted, [, args, , type]) => {
    const result = callFunction(name, ...args);
    expect(result.text).toBe(wanted);
    if (type !== undefined) expect(result.type).toBe(type);
  },
);

/** The functions whose result differs at each call, or that need a catalog or a request. */
const STATEFUL_NAMES = [
  "current_setting",
  "pg_trigger_depth",
  "file_url",
  "set_config",
  "enum_first",
  "enum_last",
  "enum_range",
  "currval",
  "lastval",
  "nextval",
  "pg_get_serial_sequence",
  "setval",
  "snowflake_id",
  "uuid_v7",
  "uuidv7",
  "gen_random_uuid",
  "uuid_generate_v4",
  "uuid_v4",
  "uuidv4",
  "ulid",
];

test("every function has a case", () => {
  const covered = new Set([...CASES.map(([name]) => name), ...STATEFUL_NAMES]);
  expect(functionNames().filter((name) => !covered.has(name))).toEqual([]);
});

test("a NULL argument gives NULL, unless the function handles NULL itself", () => {
  for (const [name, args] of CASES) {
    for (const index of args.keys()) {
      const withNull = args.map((arg, at) => (at === index ? null : arg));
      const types = withNull.map((arg) => (arg === null ? ({ kind: "unknown" } as const) : TEXT));
      expect(types.length).toBe(args.length);
      let result: string | null = null;
      try {
        result = callFunction(name, ...withNull).text;
      } catch {
        // An untyped NULL may match no overload.
        continue;
      }
      const seesNull = SEEING_NULL.has(name);
      if (!seesNull) expect(result, `${name} argument ${index}`).toBeNull();
    }
  }
});

const SEEING_NULL = new Set([
  "greatest",
  "least",
  "concat",
  "concat_ws",
  "format",
  "quote_nullable",
  "coalesce",
  "nullif",
  "num_nulls",
  "num_nonnulls",
  "int4range",
  "int8range",
  "numrange",
  "daterange",
  "tsrange",
  "tstzrange",
  "pg_typeof",
  "typeof",
  "overlaps",
  "json_build_array",
  "jsonb_build_array",
  "json_build_object",
  "jsonb_build_object",
  "jsonb_set_lax",
  "array_append",
  "array_prepend",
  "array_cat",
  "array_remove",
  "array_replace",
  "array_position",
  "array_positions",
  "array_to_string",
  "string_to_array",
  "array_fill",
]);

test.each([
  ["sqrt", [-1], "VALUE_OUT_OF_RANGE"],
  ["to_timestamp", [dbl("NaN")], "VALUE_OUT_OF_RANGE"],
  ["ln", [0], "VALUE_OUT_OF_RANGE"],
  ["log", [1, 2], "DIVISION_BY_ZERO"],
  ["power", [0, -1], "VALUE_OUT_OF_RANGE"],
  ["power", [-8, n("0.5")], "VALUE_OUT_OF_RANGE"],
  ["exp", [1000], "VALUE_OUT_OF_RANGE"],
  ["asin", [2], "VALUE_OUT_OF_RANGE"],
  ["factorial", [32_178], "VALUE_OUT_OF_RANGE"],
  ["factorial", [-1], "VALUE_OUT_OF_RANGE"],
  ["div", [1, 0], "DIVISION_BY_ZERO"],
  ["mod", [n("1.5"), 0], "DIVISION_BY_ZERO"],
  ["abs", [of(SMALLINT, "-32768")], "VALUE_OUT_OF_RANGE"],
  ["lcm", [2147483647, 2147483646], "VALUE_OUT_OF_RANGE"],
  ["width_bucket", [1, 2, 2, 5], "VALUE_OUT_OF_RANGE"],
  ["substring", ["abc", 1, -1], "VALUE_OUT_OF_RANGE"],
  ["split_part", ["a", ",", 0], "VALUE_OUT_OF_RANGE"],
  ["repeat", ["abcdefgh", 2147483647], "VALUE_TOO_LONG"],
  ["lpad", ["a", 2147483647], "VALUE_TOO_LONG"],
  ["chr", [0], "VALUE_OUT_OF_RANGE"],
  ["format", ["%s"], "INVALID_VALUE"],
  ["format", ["%z", "a"], "INVALID_VALUE"],
  ["normalize", ["a", "NFX"], "INVALID_VALUE"],
  ["regexp_like", ["a", "("], "INVALID_VALUE"],
  ["regexp_like", ["a", "(a)\\1"], "UNSUPPORTED_FEATURE"],
  ["regexp_like", ["a", "a", "z"], "INVALID_VALUE"],
  ["encode", [bytes("\\x00"), "rot13"], "INVALID_VALUE"],
  ["decode", ["0", "hex"], "INVALID_VALUE"],
  ["get_byte", [bytes("\\x00"), 1], "VALUE_OUT_OF_RANGE"],
  ["convert_from", [bytes("\\xff"), "UTF8"], "INVALID_VALUE"],
  ["date_trunc", ["fortnight", ts("2025-01-01")], "INVALID_VALUE"],
  ["extract", ["hour", day("2025-01-01")], "INVALID_VALUE"],
  ["date_bin", [span("1 month"), ts("2025-01-01"), ts("2025-01-01")], "VALUE_OUT_OF_RANGE"],
  ["make_date", [2025, 2, 30], "VALUE_OUT_OF_RANGE"],
  ["make_time", [25, 0, 0], "VALUE_OUT_OF_RANGE"],
  ["timezone", ["Nowhere", ts("2025-01-01")], "INVALID_VALUE"],
  ["to_date", ["2025-02-30", "YYYY-MM-DD"], "VALUE_OUT_OF_RANGE"],
  ["to_date", ["abc", "YYYY"], "INVALID_VALUE"],
  ["to_number", ["x", "9"], "INVALID_VALUE"],
  ["to_number", ["1", "S9S"], "INVALID_VALUE"],
  ["to_char", [1, "S9PL"], "INVALID_VALUE"],
  ["to_char", [1, "S9S"], "INVALID_VALUE"],
  ["to_char", [1, "PL9S"], "INVALID_VALUE"],
  ["to_char", [1, "9PR9"], "INVALID_VALUE"],
  ["to_char", [1, "S9PR"], "INVALID_VALUE"],
  ["to_char", [1, "9MIPR"], "INVALID_VALUE"],
  ["to_char", [1, "9V9.9"], "INVALID_VALUE"],
  ["to_char", [1, "9.9V9"], "INVALID_VALUE"],
  ["to_char", [1, "9.9.9"], "INVALID_VALUE"],
  ["to_char", [1, "FM9EEEE"], "INVALID_VALUE"],
  ["to_char", [1, "S9EEEE"], "INVALID_VALUE"],
  ["to_char", [1, "9EEEE9"], "INVALID_VALUE"],
  ["to_char", [1, "9EEEEEEEE"], "INVALID_VALUE"],
  ["to_char", [1, "9V9EEEE"], "INVALID_VALUE"],
  ["to_char", [1, "RNEEEE"], "INVALID_VALUE"],
  ["to_char", [1, "9EEEETH"], "INVALID_VALUE"],
  ["jsonb_array_length", [jsb("{}")], "INVALID_VALUE"],
  ["json_build_object", ["a"], "INVALID_VALUE"],
  ["json_build_object", [null, 1], "INVALID_VALUE"],
  ["jsonb_set", [jsb("1"), texts("{a}"), jsb("1")], "INVALID_VALUE"],
  ["jsonb_insert", [jsb('{"a":1}'), texts("{a}"), jsb("1")], "INVALID_VALUE"],
  ["trim_array", [ints("{1}"), 2], "VALUE_OUT_OF_RANGE"],
  ["l2_distance", [vec("[1,2,3]"), "[1,2]"], "DIMENSION_MISMATCH"],
  ["upper", [5], "FUNCTION_NOT_FOUND upper"],
  ["length", [], "FUNCTION_NOT_FOUND length"],
  ["nofn", [1], "FUNCTION_NOT_FOUND nofn"],
  ["vector_dims", ["[1,2]"], "FUNCTION_NOT_FOUND vector_dims"],
] as readonly (readonly [string, readonly Given[], string])[])(
  "%s(%p) raises %s",
  (name, args, code) => {
    expect(errorCodeOf(() => callFunction(name, ...args))).toBe(code);
  },
);

test("to_number searches for the end of a bracket only once", () => {
  expect(errorCodeOf(() => callFunction("to_number", "<".repeat(500_000), "9"))).toBe(
    "INVALID_VALUE",
  );
});

test("ids have their documented forms, and snowflake ids ascend", () => {
  expect(callFunction("ulid").text).toMatch(/^[0-9A-HJKMNP-TV-Z]{26}$/);
  expect(callFunction("uuid_v7").text).toMatch(
    /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/,
  );
  expect(callFunction("gen_random_uuid").text).toMatch(
    /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/,
  );
  const first = callFunction("snowflake_id");
  expect(first.type).toBe("bigint");
  expect(Number(callFunction("snowflake_id").value)).toBeGreaterThan(Number(first.value));
});

test("uuid_v7 begins with the milliseconds of the clock", () => {
  const hex = (callFunction("uuidv7").text ?? "").replaceAll("-", "").slice(0, 12);
  expect(Number.parseInt(hex, 16)).toBe(Math.floor(CALL.clockMicros() / 1000));
});

test("namedForm lists the parameters of functions that accept named arguments", () => {
  expect(namedForm("make_interval")?.parameterNames).toEqual([
    "years",
    "months",
    "weeks",
    "days",
    "hours",
    "mins",
    "secs",
  ]);
  expect(namedForm("abs")).toBeUndefined();
});

test("each function has the expected volatility", () => {
  const volatilityOf = (name: string): string | undefined =>
    resolveFunction(name, [])?.overload.volatility;
  expect(volatilityOf("now")).toBe("stable");
  expect(volatilityOf("current_user")).toBe("stable");
  expect(volatilityOf("random")).toBe("volatile");
  expect(volatilityOf("snowflake_id")).toBe("volatile");
  expect(volatilityOf("clock_timestamp")).toBe("volatile");
  expect(volatilityOf("pi")).toBe("immutable");
});

test("resolveFunction prefers exact types, then the nearest cast", () => {
  const resultOf = (name: string, ...types: DataType[]): string | undefined =>
    resolveFunction(name, types)?.result.kind;
  expect(resultOf("date_trunc", TEXT, TIMESTAMP)).toBe("timestamp");
  expect(resultOf("date_trunc", TEXT, DATE)).toBe("datetime");
  expect(resultOf("abs", FLOAT)).toBe("float");
  expect(resultOf("round", decimalType(5, 2), INT)).toBe("numeric");
  expect(resolveFunction("round", [decimalType(5, 2), INT], [undefined, 1])?.result).toEqual(
    decimalType(5, 1),
  );
  expect(resultOf("to_char", INT, TEXT)).toBe("text");
  expect(functionExists("abs")).toBe(true);
  expect(functionExists("nofn")).toBe(false);
});

test("every function has a case in cases/functions.slt", async () => {
  const cases = await Bun.file(join(import.meta.dir, "../cases/functions.slt")).text();
  const text = parseSlt(cases, "tidemark")
    .map(({ sql }) => sql.toLowerCase())
    .join("\n");
  const missing = functionNames().filter((name) => !new RegExp(`\\b${name}\\b`).test(text));
  expect(missing).toEqual([]);
});
