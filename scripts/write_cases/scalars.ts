/** Test cases for functions and operators with values at the limits of their ranges. */
import type { CaseFile } from "./answer.ts";
import { selects } from "./product.ts";

const INTS = ["0", "7", "-7", "2147483647", "NULL::int"] as const;
const SMALLS = ["32767::int2", "(-32768)::int2", "NULL::int2"] as const;
const BIGS = ["9223372036854775807", "(-9223372036854775808)", "3::int8", "NULL::int8"] as const;
const DECIMALS = [
  "0.0",
  "2.5",
  "-2.5",
  "1.005",
  "-0.045",
  "12345678.9012",
  "NULL::numeric(9,2)",
] as const;
const DOUBLES = [
  "0::float8",
  "2.5::float8",
  "-3.5::float8",
  "1e10::float8",
  "NULL::float8",
] as const;
const NUMBERS = [...INTS, ...SMALLS, ...BIGS, ...DECIMALS, ...DOUBLES] as const;
const PAIRS = [
  "0",
  "7",
  "-3",
  "9223372036854775807",
  "2.5",
  "-0.5",
  "3::int2",
  "1.5::float8",
  "NULL::int",
] as const;
const TEXTS = [
  "''",
  "'a'",
  "'abc'",
  "'Hello World'",
  "'  pad  '",
  "'héé😀'",
  "NULL::text",
] as const;
const SHORT = ["''", "'abcabc'", "'héé😀x'", "NULL::text"] as const;
const COUNTS = ["0", "2", "-2", "9", "NULL::int"] as const;

const ANGLES = ["0", "30", "-45", "60", "90", "135", "180", "270", "-390", "12.5", "NULL"] as const;
const SINES = ["0", "0.5", "-0.5", "1", "-1", "0.3", "1.5", "NULL"] as const;

const SYNTAX: CaseFile = {
  name: "syntax_of_texts",
  about: "functions on degrees, bits of bytes, sizes, escapes and names",
  statements: [
    ...selects(["sind(#)", "cosd(#)", "atand(#)"], ANGLES),
    ...selects(
      ["tand(#)"],
      ANGLES.filter((angle) => !["90", "270"].includes(angle)),
    ),
    ...selects(["cotd(#)"], ["30", "-45", "60", "90", "135", "270", "NULL"]),
    ...selects(["asind(#)", "acosd(#)"], SINES),
    ...selects(["atan2d(#, 1)", "atan2d(-1, #)"], SINES),
    ...selects(
      ["bit_count(#)", "get_bit(#, 9)", "set_bit(#, 5, 1)", "set_bit(#, 4, 0)", "get_bit(#, 16)"],
      ["'\\x1234'::bytea", "'\\x00'::bytea", "'\\xffff'::bytea", "NULL::bytea"],
    ),
    "SELECT set_bit('\\x12'::bytea, 1, 2)",
    ...selects(
      ["pg_size_pretty(#::bigint)"],
      [
        "0",
        "10239",
        "10240",
        "-10240",
        "1048575",
        "20971519",
        "123456789012",
        "9223372036854775807",
      ],
    ),
    ...selects(
      ["pg_size_bytes(#)"],
      ["'1'", "' 1.5 kB '", "'-3mb'", "'1e3 GB'", "'1 x'", "''", "'2 bytes'", "'1TB'"],
    ),
    ...selects(
      ["unistr(#)"],
      ["'d\\0061t\\+000061'", "'\\u0441\\U0001F600'", "'a\\\\b'", "'\\xyz'", "'\\d83d\\de00'"],
    ),
    ...selects(
      ["parse_ident(#)", "parse_ident(#, false)"],
      ["'a'", "'A.\"B c\"'", "' x . y '", "'a.'", "'1a'", "'a b'", "'\"\".a'"],
    ),
    "SELECT trim(both from 'yxTomxx', 'xyz'), trim(trailing from '  a  '), trim(from ' b ')",
    ...selects(
      ["# LIKE 'a%'::bytea", "# NOT LIKE '_b_'::bytea", "# LIKE 'a\\\\_c'::bytea", "# LIKE '%'"],
      ["'abc'::bytea", "'a_c'::bytea", "''::bytea", "NULL::bytea"],
    ),
  ],
};

const MATH: CaseFile = {
  name: "math",
  about: "mathematical functions",
  statements: [
    "SELECT exp(-700::float8) > 0",
    "SELECT exp(-1000::float8)",
    ...selects(
      [
        "abs(#)",
        "sign(#)",
        "ceil(#)",
        "ceiling(#)",
        "floor(#)",
        "round(#)",
        "trunc(#)",
        "-(#)",
        "+(#)",
        "@ (#)",
      ],
      NUMBERS,
    ),
    ...selects(
      ["round(#, #)", "trunc(#, #)"],
      ["1.005", "-12345.6789", "0.5", "NULL::numeric(9,2)"],
      ["0", "1", "2", "-2", "NULL::int"],
    ),
    ...selects(
      ["mod(#, #)", "div(#, #)"],
      ["0", "7", "-7", "7.5", "9223372036854775807", "NULL::int"],
      ["0", "3", "-3", "2.5", "NULL::int"],
    ),
    ...selects(
      ["gcd(#, #)", "lcm(#, #)"],
      ["0", "12", "-18", "2147483647", "NULL::int"],
      ["0", "4", "-6", "NULL::int"],
    ),
    ...selects(["factorial(#)"], ["0", "1", "5", "20", "30", "-1", "NULL::int"]),
    ...selects(
      ["greatest(#, #)", "least(#, #)"],
      ["1", "-2.5", "NULL::int"],
      ["0", "2.5", "3", "NULL::int"],
    ),
    ...selects(["width_bucket(#, 0, 10, 5)"], ["-1", "0", "5", "9.99", "10", "11", "NULL::int"]),
    ...selects(["width_bucket(#, 10, 0, 5)"], ["-1", "0", "5", "10"]),
    ...selects(["width_bucket(#, ARRAY[1, 3, 9])"], ["0", "1", "4", "9", "10"]),
    ...selects(["width_bucket(5, #, 10, 3)"], ["10", "0"]),
    ...selects(["width_bucket(5, 0, 10, #)"], ["0", "-1", "3"]),
    ...selects(
      ["scale(#)", "min_scale(#)", "trim_scale(#)"],
      ["1.500", "0.0", "100.0", "7.25", "NULL::numeric(9,2)"],
    ),
    ...selects(
      ["sqrt(#)", "cbrt(#)", "exp(#)", "ln(#)", "log(#)", "log10(#)"],
      ["0::float8", "1::float8", "2.5::float8", "-1::float8", "100::float8", "NULL::float8"],
    ),
    ...selects(
      ["power(#, #)", "pow(#, #)"],
      ["0::float8", "2::float8", "-2::float8", "NULL::float8"],
      ["0::float8", "3::float8", "-1::float8", "0.5::float8"],
    ),
    ...selects(
      ["# ^ #"],
      ["2", "-2", "0", "2.5::float8", "NULL::int"],
      ["0", "3", "-1", "NULL::int"],
    ),
    ...selects(["log(2.0, #)"], ["8.0", "1.0", "0.0", "-1.0", "NULL::numeric(9,2)"]),
    ...selects(
      [
        "sin(#)",
        "cos(#)",
        "tan(#)",
        "asin(#)",
        "acos(#)",
        "atan(#)",
        "sinh(#)",
        "cosh(#)",
        "tanh(#)",
        "asinh(#)",
        "degrees(#)",
        "radians(#)",
      ],
      ["0::float8", "0.5::float8", "-1::float8", "2::float8", "NULL::float8"],
    ),
    ...selects(
      ["acosh(#)", "atanh(#)", "cot(#)"],
      ["1::float8", "0.5::float8", "2::float8", "NULL::float8"],
    ),
    ...selects(
      ["atan2(#, #)"],
      ["0::float8", "1::float8", "-1::float8"],
      ["1::float8", "-1::float8"],
    ),
    ...selects(["|/ #", "||/ #"], ["0", "16", "27.0", "-8::float8", "NULL::float8"]),
    "SELECT pi()",
    ...selects(["# & #", "# | #"], ["0", "12", "-1", "NULL::int"], ["10", "-8"]),
    ...selects(["# << 2", "# >> 1"], ["0", "12", "-1", "NULL::int"]),
    ...["0", "12", "-1", "NULL::int"].map((value) => `SELECT ${value} # 10`),
    ...selects(["~ #"], ["0", "12", "-1", "9223372036854775807", "3::int2", "NULL::int"]),
  ],
};

const ARITHMETIC: CaseFile = {
  name: "arithmetic",
  about: "arithmetic and comparison of every pair of number types",
  statements: [
    ...selects(["# + #", "# - #", "# * #", "# / #", "# % #"], PAIRS, PAIRS),
    ...selects(
      ["# = #", "# <> #", "# < #", "# <= #", "# > #", "# >= #", "# IS DISTINCT FROM #"],
      ["7", "-3.0", "3::int2", "1.5::float8", "NULL::int"],
      ["7.0", "-3", "3", "1.5", "NULL::int"],
    ),
    ...selects(
      ["# - - #", "# + + #", "- # * + #", "+ - #", "- - # / - #"],
      ["7", "-2", "2.5", "NULL::int"],
      ["3", "-4"],
    ),
    ...selects(
      [
        "2147483647 + #",
        "(-2147483648) - #",
        "32767::int2 + #::int2",
        "2147483647 * #",
        "9223372036854775807 + #",
      ],
      ["0", "1"],
    ),
    "SELECT -(-2147483648)::int4",
    "SELECT abs((-2147483648)::int4)",
    "SELECT (-9223372036854775808) / -1",
    "SELECT (-32768)::int2 / (-1)::int2",
    "SELECT 5 / 2, -5 / 2, 5 / -2, 5 % -3, -5 % 3",
    "SELECT 1.0 / 3 * 3",
    "SELECT 10 / 4 * 4.0",
    "SELECT 0.1 + 0.2",
    "SELECT 0.1::float8 + 0.2::float8",
    "SELECT 1e3 + 1, 1e-3 * 2",
  ],
};

const TEXT: CaseFile = {
  name: "text",
  about: "functions on text and bytes",
  statements: [
    ...selects(
      [
        "length(#)",
        "char_length(#)",
        "character_length(#)",
        "octet_length(#)",
        "bit_length(#)",
        "lower(#)",
        "upper(#)",
        "initcap(#)",
        "btrim(#)",
        "ltrim(#)",
        "rtrim(#)",
        "trim(#)",
        "reverse(#)",
        "ascii(#)",
        "md5(#)",
        "quote_ident(#)",
        "quote_literal(#)",
        "quote_nullable(#)",
      ],
      TEXTS,
    ),
    ...selects(
      ["left(#, #)", "right(#, #)", "repeat(#, #)", "lpad(#, #)", "rpad(#, #)"],
      SHORT,
      COUNTS,
    ),
    ...selects(
      [
        "lpad(#, #, 'xy')",
        "rpad(#, #, 'xy')",
        "lpad(#, #, '')",
        "substr(#, #)",
        "substring(# FROM #)",
        "substring(# FROM # FOR 2)",
        "substr(#, #, 3)",
      ],
      SHORT,
      COUNTS,
    ),
    ...selects(
      [
        "substring(# FROM 2 FOR -1)",
        "substring(# FROM -2 FOR 4)",
        "substring(# FROM 'b.')",
        "substring(# FROM '(b)c')",
      ],
      SHORT,
    ),
    ...selects(["strpos(#, #)", "POSITION(# IN #)", "starts_with(#, #)", "# ^@ #"], SHORT, [
      "''",
      "'abc'",
      "'é'",
      "'zz'",
      "NULL::text",
    ]),
    ...selects(
      ["replace(#, 'b', #)", "translate(#, 'abc', #)", "split_part(#, 'b', 1) || #"],
      SHORT,
      ["''", "'X'", "'XYZW'", "NULL::text"],
    ),
    ...selects(["split_part('a,b,c', ',', #)"], ["1", "2", "3", "4", "-1", "-4", "0", "NULL::int"]),
    ...selects(
      [
        "OVERLAY(# PLACING 'ZZ' FROM 2)",
        "OVERLAY(# PLACING 'ZZ' FROM 2 FOR 3)",
        "OVERLAY(# PLACING '' FROM 1 FOR 1)",
      ],
      SHORT,
    ),
    ...selects(["chr(#)", "to_hex(#)"], ["65", "233", "128512", "1", "NULL::int"]),
    "SELECT chr(0)",
    "SELECT chr(-1)",
    "SELECT to_hex(-1)",
    "SELECT to_hex(9223372036854775807)",
    ...selects(
      ["concat(#, #)", "# || #", "concat_ws('-', #, #)"],
      ["''", "'a'", "1", "2.50", "TRUE", "NULL::text"],
      ["'b'", "NULL::text"],
    ),
    "SELECT concat()",
    "SELECT concat(NULL)",
    "SELECT concat_ws(NULL, 'a', 'b')",
    "SELECT concat_ws(',', NULL, NULL)",
    "SELECT 'a' || NULL",
    "SELECT 1 || 'a' || 2.5",
    ...selects(
      [
        "TRIM(BOTH # FROM 'xyxabcyx')",
        "TRIM(LEADING # FROM 'xyxabcyx')",
        "TRIM(TRAILING # FROM 'xyxabcyx')",
        "btrim('xyxabcyx', #)",
        "ltrim('xyxabcyx', #)",
        "rtrim('xyxabcyx', #)",
      ],
      ["'x'", "'xy'", "''", "'z'", "NULL::text"],
    ),
    ...selects(
      ["format(#, 'a b', NULL, 3)"],
      [
        "'%s'",
        "'%I'",
        "'%L'",
        "'%s %s %s'",
        "'%2$s|%1$L'",
        "'%%'",
        "'%10s|'",
        "'%-10s|'",
        "NULL::text",
        "'%s %s %s %s'",
        "'%y'",
      ],
    ),
    ...selects(
      ["normalize(#)", "normalize(#, NFD)", "normalize(#, NFKC)"],
      ["'abc'", "'é'", "'ﬁ'", "NULL::text"],
    ),
    ...selects(
      ["encode('\\x00ff10'::bytea, #)", "encode('\\x41'::bytea, #)"],
      ["'hex'", "'base64'", "'escape'", "NULL::text", "'zip'"],
    ),
    ...selects(["decode(#, 'hex')"], ["'00ff'", "''", "'0g'", "'123'", "NULL::text"]),
    ...selects(["decode(#, 'base64')"], ["'QUJD'", "''", "'QQ=='", "NULL::text"]),
    ...selects(
      [
        "sha224(#)",
        "sha256(#)",
        "sha384(#)",
        "sha512(#)",
        "md5(#)",
        "length(#)",
        "octet_length(#)",
      ],
      ["'\\x'::bytea", "'\\x616263'::bytea", "NULL::bytea"],
    ),
    ...selects(
      ["get_byte('\\x010203'::bytea, #)", "set_byte('\\x010203'::bytea, #, 255)"],
      ["0", "2", "3", "-1", "NULL::int"],
    ),
    ...selects(
      [
        "btrim('\\x000102000100'::bytea, #)",
        "ltrim('\\x000102000100'::bytea, #)",
        "rtrim('\\x000102000100'::bytea, #)",
        "trim(# FROM '\\x000102'::bytea)",
        "overlay('\\x0102030405'::bytea PLACING # FROM 2)",
        "overlay('\\x0102030405'::bytea PLACING # FROM 2 FOR 3)",
        "overlay('\\x0102030405'::bytea PLACING # FROM 0)",
      ],
      ["'\\x00'::bytea", "'\\x0001'::bytea", "'\\x'::bytea", "NULL::bytea"],
    ),
    ...selects(["'abc'::#", "'a'::# LIKE '_'"], ["name", "bpchar"]),
    ...selects(
      ["convert_from(#, 'UTF8')", "convert_from(#, 'utf-8')"],
      ["'\\x616263'::bytea", "'\\xff'::bytea", "NULL::bytea"],
    ),
    ...selects(["convert_to(#, 'UTF8')"], SHORT),
    ...selects(
      [
        "substring('\\x0102030405'::bytea FROM #)",
        "substring('\\x0102030405'::bytea FROM # FOR 2)",
      ],
      ["0", "1", "3", "9"],
    ),
  ],
};

export const SCALARS: readonly CaseFile[] = [MATH, ARITHMETIC, TEXT, SYNTAX];
