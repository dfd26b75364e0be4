/**
 * Defines the types that both sides have, and values that provoke faults: a few distinct values
 * that collide, and extreme values.
 */
import type { Chance } from "../../../scripts/support/chance.ts";

/** The sort of an expression. Expressions of the same sort may replace each other. */
export type Sort =
  | "int"
  | "decimal"
  | "float"
  | "text"
  | "bool"
  | "date"
  | "timestamp"
  | "timestamptz"
  | "time"
  | "uuid"
  | "bytes"
  | "jsonb"
  | "interval"
  | "ints"
  | "inet"
  | "bits"
  | "range"
  | "ranges";

export const SORTS: readonly Sort[] = [
  "int",
  "decimal",
  "float",
  "text",
  "bool",
  "date",
  "timestamp",
  "timestamptz",
  "time",
  "uuid",
  "bytes",
  "jsonb",
  "interval",
  "ints",
  "inet",
  "bits",
  "range",
  "ranges",
];

export interface Column {
  readonly name: string;
  readonly sort: Sort;
}

export interface ColumnType extends Column {
  /** The name of the column's type in both systems. */
  readonly type: string;
}

/**
 * The columns of all tables. Columns with the same name always have the same type, so that USING
 * and NATURAL find matching columns.
 */
export const COLUMN_TYPES: readonly ColumnType[] = [
  { name: "s", sort: "int", type: "SMALLINT" },
  { name: "i", sort: "int", type: "INT" },
  { name: "j", sort: "int", type: "INT" },
  { name: "l", sort: "int", type: "BIGINT" },
  { name: "m", sort: "decimal", type: "NUMERIC(10,2)" },
  { name: "n", sort: "decimal", type: "NUMERIC(18,5)" },
  { name: "r", sort: "float", type: "REAL" },
  { name: "d", sort: "float", type: "DOUBLE PRECISION" },
  { name: "t", sort: "text", type: "TEXT" },
  { name: "u", sort: "text", type: "TEXT" },
  { name: "v", sort: "text", type: "VARCHAR(5)" },
  { name: "b", sort: "bool", type: "BOOLEAN" },
  { name: "c", sort: "bool", type: "BOOLEAN" },
  { name: "dt", sort: "date", type: "DATE" },
  { name: "ts", sort: "timestamp", type: "TIMESTAMP" },
  { name: "tz", sort: "timestamptz", type: "TIMESTAMPTZ" },
  { name: "tm", sort: "time", type: "TIME" },
  { name: "uu", sort: "uuid", type: "UUID" },
  { name: "y", sort: "bytes", type: "BYTEA" },
  { name: "jb", sort: "jsonb", type: "JSONB" },
  { name: "nu", sort: "decimal", type: "NUMERIC" },
  { name: "iv", sort: "interval", type: "INTERVAL" },
  { name: "ar", sort: "ints", type: "INT[]" },
  { name: "ip", sort: "inet", type: "INET" },
  { name: "bi", sort: "bits", type: "BIT VARYING(8)" },
  { name: "nr", sort: "range", type: "NUMRANGE" },
  { name: "mr", sort: "ranges", type: "NUMMULTIRANGE" },
];

const TYPE_NAMES: Readonly<Record<Sort, string>> = {
  int: "int",
  decimal: "numeric(12,3)",
  float: "float8",
  text: "text",
  bool: "boolean",
  date: "date",
  timestamp: "timestamp",
  timestamptz: "timestamptz",
  time: "time",
  uuid: "uuid",
  bytes: "bytea",
  jsonb: "jsonb",
  interval: "interval",
  ints: "int[]",
  inet: "inet",
  bits: "varbit",
  range: "numrange",
  ranges: "nummultirange",
};

export function typeNameOf(sort: Sort): string {
  return TYPE_NAMES[sort];
}

const LITERALS: Readonly<Record<Sort, readonly string[]>> = {
  int: ["0", "1", "2", "3", "-1", "7", "10", "100", "-5", "4"],
  decimal: ["0.00", "1.50", "2.25", "-1.50", "10.00", "99.99", "0.01", "3.0"],
  float: [
    "0.5::float8",
    "1e0::float8",
    "-2.25::float8",
    "2.5::real::float8",
    "0::float8",
    "3.75::float8",
  ],
  text: ["'a'", "'b'", "'ab'", "''", "'A'", "'a%'", "'x_y'", "'€'", "'zz'", "'10'"],
  bool: ["TRUE", "FALSE"],
  date: ["DATE '2024-02-29'", "DATE '2023-01-31'", "DATE '1969-12-31'", "DATE '2024-03-01'"],
  timestamp: [
    "TIMESTAMP '2024-02-29 12:30:00'",
    "TIMESTAMP '1969-12-31 23:59:59.999999'",
    "TIMESTAMP '2024-02-29 00:00:00'",
    "TIMESTAMP '2023-01-31 08:00:00.5'",
  ],
  timestamptz: [
    "TIMESTAMPTZ '2024-02-29 12:30:00+02'",
    "TIMESTAMPTZ '2024-02-29 10:30:00+00'",
    "TIMESTAMPTZ '1970-01-01 00:00:00+00'",
  ],
  time: ["TIME '00:00:00'", "TIME '12:30:00'", "TIME '23:59:59.999999'"],
  uuid: [
    "'00000000-0000-0000-0000-000000000001'::uuid",
    "'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'::uuid",
    "'ffffffff-ffff-ffff-ffff-ffffffffffff'::uuid",
  ],
  bytes: ["'\\x00'::bytea", "'\\xff01'::bytea", "'\\x'::bytea"],
  jsonb: [
    `'{"a": 1}'::jsonb`,
    `'{"a": 1, "b": [1, 2, null]}'::jsonb`,
    "'[1, 2]'::jsonb",
    "'null'::jsonb",
    `'"a"'::jsonb`,
    "'2.50'::jsonb",
  ],
  interval: [
    "'1 day'::interval",
    "'24 hours'::interval",
    "'1 month -1 day'::interval",
    "'-00:00:00.5'::interval",
    "'0'::interval",
  ],
  ints: ["ARRAY[1, 2]", "ARRAY[2, NULL, 1]", "'{}'::int[]", "ARRAY[1]"],
  inet: ["'10.0.0.1'::inet", "'10.0.0.0/8'::inet", "'::1'::inet", "'192.168.1.5/24'::inet"],
  bits: ["B'101'", "B''::varbit", "B'1010'", "B'0000'"],
  range: [
    "numrange(1, 3)",
    "numrange(1.0, 3.00)",
    "numrange(2, 5, '(]')",
    "numrange(NULL, 2)",
    "'empty'::numrange",
    "'[3,3]'::numrange",
  ],
  ranges: ["'{[1,2),[3,5]}'::nummultirange", "'{}'::nummultirange", "'{(,1.50)}'::nummultirange"],
};

/**
 * Extreme values. They are only stored in cells, because inside an expression they would soon
 * cause an overflow.
 */
const EDGES: Readonly<Record<string, readonly string[]>> = {
  SMALLINT: ["32767", "-32768"],
  INT: ["2147483647", "-2147483648"],
  BIGINT: ["9223372036854775807", "-9223372036854775808", "9007199254740993", "4294967296"],
  REAL: ["3.4e38", "1e-30", "0.1"],
  "DOUBLE PRECISION": ["1e300", "-0.1", "123456789.125"],
  "NUMERIC(10,2)": ["99999999.99", "-0.01"],
  "NUMERIC(18,5)": ["1234567890123.12345"],
  NUMERIC: ["1.5", "1.50", "-1.500", "12345678901234567890123456789012345678901", "1e-20", "NULL"],
};

export function literalOf(sort: Sort, chance: Chance): string {
  return chance.pick(LITERALS[sort]);
}

/**
 * Returns a value for a cell: often NULL, usually one of a few values, sometimes an extreme value
 * of the type.
 */
export function cellOf({ sort, type }: ColumnType, chance: Chance): string {
  const kind = chance.below(20);
  if (kind < 5) return "NULL";
  const edges = EDGES[type];
  return kind === 5 && edges !== undefined ? chance.pick(edges) : literalOf(sort, chance);
}
