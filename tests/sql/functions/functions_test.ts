/**
 * Verifies that every scalar function returns PostgreSQL's results, and rejects the arguments that
 * PostgreSQL rejects. A function without a case fails the suite.
 */
import { expect, test } from "bun:test";
import { functionNames } from "../../../src/sql/functions/registry.ts";
import { OBJECT_NAME_KINDS, SMALLINT, TEXT } from "../../../src/types/mod.ts";
import { CASES } from "./call_cases.ts";
import {
  bytes,
  CALL,
  callFunction,
  day,
  dbl,
  errorCodeOf,
  type Given,
  ints,
  jsb,
  num as n,
  of,
  span,
  texts,
  ts,
  vec,
} from "./calls.ts";

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

/**
 * Functions without a fixed result: each call returns a different one, or the function needs a
 * catalog or a request.
 */
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
  "pg_partition_root",
  "format_type",
  "obj_description",
  "col_description",
  "pg_get_viewdef",
  "pg_has_role",
  ...["any_column", "column", "function", "schema", "sequence", "table", "type"].map(
    (object) => `has_${object}_privilege`,
  ),
  ...OBJECT_NAME_KINDS.map((kind) => `to_${kind}`),
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
        // An untyped NULL may not match any overload.
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
  "xmlconcat",
  "quote_nullable",
  "coalesce",
  "nullif",
  "int2_sum",
  "int4_sum",
  "int8_sum",
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
  ["regexp_like", ["a", "a\\1"], "UNSUPPORTED_FEATURE"],
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
