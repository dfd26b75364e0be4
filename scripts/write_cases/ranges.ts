/** Test cases for ranges and multiranges: text forms, operators, functions, keys and columns. */
import type { CaseFile } from "./answer.ts";

const TEXTS: readonly (readonly [type: string, texts: readonly string[]])[] = [
  [
    "int4range",
    [
      "[1,5)",
      "[1,5]",
      "(1,5)",
      "(1,2)",
      "(,)",
      "[,5]",
      "(3,]",
      " empty ",
      "EMPTY",
      "[5,5]",
      "[5,5)",
    ],
  ],
  [
    "int4range",
    [
      "[5,1]",
      "[1,2147483647]",
      "1,5",
      "[1,5",
      "[1,5) x",
      "emptyx",
      "[a,b)",
      "[1,2,3)",
      "",
      "[ , ]",
    ],
  ],
  ["int8range", ["[-9223372036854775808,9223372036854775807)", "(4294967296,9007199254740993]"]],
  [
    "numrange",
    ["[1.50,2)", "(-0.001,1e3]", "[ 1 , 2 )", "[-infinity,NaN]", "(2.0,2.00]", "[2.0,2.00]"],
  ],
  [
    "daterange",
    ["[2024-02-28,2024-02-29]", "(2024-12-31,]", "[-infinity,infinity]", "(,infinity)"],
  ],
  [
    "tsrange",
    ['["2024-01-01 10:00","2024-01-01 12:30:00.5")', "[2024-01-01,2024-02-01)", '(,"1 BC"]'],
  ],
  ["tstzrange", ['["2024-01-01 10:00+02",)', '["2024-01-01 10:00-08","2024-01-01 10:00-09"]']],
  ["int4multirange", ["{}", "{[1,3),[3,5)}", "{[7,9), [1,3],empty, (2,4) }", "{(,3),[9,)}"]],
  ["int4multirange", ["{[1,3)", "[1,3)", "{[1,3),}", "{[3,1)}", "{[1,3)} x", "{,}"]],
  ["nummultirange", ["{[1.50,2.5],(2.5,3.0]}", "{[1.5,2),(2,3)}"]],
  ["datemultirange", ["{[2024-01-01,2024-01-31],[2024-02-01,2024-02-29]}"]],
];

const CONSTRUCTED: readonly string[] = [
  ...["[]", "[)", "(]", "()"].map(
    (flags) =>
      `SELECT int4range(1, 5, '${flags}'), int8range(1, 5, '${flags}'), numrange(1.0, 5.50, '${flags}'), daterange('2024-01-01', '2024-01-05', '${flags}')`,
  ),
  "SELECT int4range(1, 5), int4range(NULL, 5), int4range(1, NULL), int4range(NULL, NULL), int4range(NULL, NULL, '[]')",
  "SELECT int4range(5, 1)",
  "SELECT int4range(1, 5, NULL)",
  "SELECT int4range(1, 2147483647, '[]')",
  "SELECT int8range(1, 9223372036854775807, '[]')",
  "SELECT numrange(1, 2.50), numrange(1.5, NULL), numrange('1.25', '3')",
  "SELECT tsrange('2024-01-01', '2024-01-02 10:00', '[]'), tstzrange('2024-01-01 10:00+01', '2024-01-02 10:00+01')",
  "SELECT tstzrange(timestamptz '2024-01-01 00:00+00', NULL), daterange(date '2024-01-01', date '2024-01-01' + 3)",
  "SELECT int4multirange(), int4multirange(int4range(1, 3)), int4multirange(int4range(5, 9), int4range(1, 3), int4range(3, 4))",
  "SELECT int4multirange(VARIADIC ARRAY[int4range(1, 3), int4range(2, 9)])",
  "SELECT int4multirange(NULL), int4multirange('empty'::int4range)",
  "SELECT nummultirange(numrange(1.0, 2.0), numrange(2.00, 3.0)), datemultirange(daterange('2024-01-01', NULL))",
  "SELECT multirange(int4range(1, 3)), multirange('empty'::numrange), multirange(tsrange(NULL, NULL))",
  "SELECT int4range(1, 3)::int4multirange, '[1,3)'::text::int4range, int4range(1, 3)::text, int4range(1, 3)::varchar(3)",
  "SELECT int4range(1, 3)::int8range",
  "SELECT '{[1,3)}'::int4multirange::int4range",
  "SELECT pg_typeof(int4range(1, 2)), pg_typeof(lower(int8range(1, 2))), pg_typeof('{}'::tstzmultirange), pg_typeof(ARRAY[numrange(1, 2)])",
  "SELECT int4range '[1,5)' @> 3, numrange '[1,2)', int4multirange '{[1,2)}'",
  "SELECT to_json(int4range(1, 5)), to_jsonb('{[1,2),[5,7)}'::int4multirange), to_json(tsrange('2024-01-01', NULL))",
  "SELECT CASE WHEN true THEN int4range(1, 2) ELSE '[3,4)' END, COALESCE(NULL, int4range(1, 2))",
  "SELECT ROW(int4range(1, 5), numrange(1, 2))::text, ARRAY[int4range(1, 5), NULL, 'empty']",
  `SELECT '{"[1,5)","[7,9]"}'::int4range[], '{"{[1,2)}"}'::int4multirange[]`,
  "SELECT (ARRAY[int4range(1, 5), int4range(2, 3)])[2], int4range(1, 5) = ANY (ARRAY[int4range(1, 5)])",
];

/** Pairs of ranges that cover every position of two ranges relative to each other. */
const PAIRS: readonly (readonly [left: string, right: string])[] = [
  ["int4range(1, 5)", "int4range(5, 9)"],
  ["int4range(1, 5)", "int4range(3, 9)"],
  ["int4range(1, 9)", "int4range(3, 5)"],
  ["int4range(1, 5)", "int4range(7, 9)"],
  ["int4range(1, 5)", "int4range(1, 5)"],
  ["int4range(NULL, 5)", "int4range(1, NULL)"],
  ["int4range(1, 5)", "'empty'::int4range"],
  ["'empty'::int4range", "'empty'::int4range"],
  ["numrange(1.0, 2.0, '[]')", "numrange(2.0, 3.00, '(]')"],
  ["numrange(1.0, 2.0, '[)')", "numrange(2.0, 3.00, '(]')"],
  ["numrange(1.0, 2.0, '[]')", "numrange(2.0, 3.00, '[]')"],
  ["numrange(1.0, NULL)", "numrange(1.00, 3.0)"],
  ["int4range(1, 9)", "'{[1,3),[5,7)}'::int4multirange"],
  ["int4range(3, 5)", "'{[1,3),[5,7)}'::int4multirange"],
  ["int4range(9, 12)", "'{[1,3),[5,9)}'::int4multirange"],
  ["int4range(4, 5)", "'{}'::int4multirange"],
  ["'{[1,3),[5,7)}'::int4multirange", "int4range(2, 6)"],
  ["'{[1,3),[5,7)}'::int4multirange", "int4range(7, 9)"],
  ["'{[1,3),[5,7)}'::int4multirange", "'{[2,3),[6,7)}'::int4multirange"],
  ["'{[1,3),[5,7)}'::int4multirange", "'{[3,4),[9,)}'::int4multirange"],
  ["'{(,3)}'::int4multirange", "'{[7,9)}'::int4multirange"],
  ["'{}'::int4multirange", "'{}'::int4multirange"],
  ["'{[1,20),[30,40),[50,)}'::int4multirange", "'{[3,5),[7,9),[15,35),[60,70)}'::int4multirange"],
  ["'{(,3),[5,7),[9,12)}'::int4multirange", "'{[1,2),[6,10),[11,12)}'::int4multirange"],
  ["'{[1,9),[20,29),[40,)}'::int4multirange", "'{[2,3),[4,5),[21,29),[50,60)}'::int4multirange"],
  ["'{[1,3),[5,7)}'::int4multirange", "'{[3,5),[7,9)}'::int4multirange"],
  [
    "'{[1.0,2.0),(2.0,3.0],(5,6)}'::nummultirange",
    "'{[2.00,2.00],[3.00,4),[5.0,6.0]}'::nummultirange",
  ],
];

const SETS: readonly (readonly [left: string, right: string])[] = PAIRS.filter(
  ([left, right]) => left.includes("multi") === right.includes("multi"),
);

const OPERATORS: readonly string[] = [
  ...PAIRS.map(
    ([l, r]) =>
      `SELECT ${["&&", "@>", "<@", "<<", ">>", "&<", "&>", "-|-"].map((op) => `${l} ${op} ${r}`).join(", ")}`,
  ),
  ...SETS.map(
    ([l, r]) =>
      `SELECT ${["=", "<>", "<", "<=", ">", ">="].map((op) => `${l} ${op} ${r}`).join(", ")}`,
  ),
  ...SETS.flatMap(([l, r]) => ["+", "*", "-"].map((op) => `SELECT ${l} ${op} ${r}`)),
  "SELECT int4range(1, 9) - int4range(3, 5)",
  "SELECT numrange(1.1, 2.2, '[]') - numrange(1.10, 2.20, '()')",
  "SELECT int4range(1, 5) @> 4, int4range(1, 5) @> 5, 1 <@ int4range(1, 5), 0 <@ int4range(NULL, 5), 7 <@ 'empty'::int4range",
  "SELECT numrange(1.0, 2.0, '(]') @> 1.00, numrange(1.0, 2.0, '(]') @> 2.00, 1.5 <@ numrange(1.0, 2.0), 1.5 <@ '{[1.0,1.2],[1.4,2]}'::nummultirange",
  "SELECT '{[1,3),[5,7)}'::int4multirange @> 2, '{[1,3),[5,7)}'::int4multirange @> 4, 5 <@ '{[1,3),[5,7)}'::int4multirange",
  "SELECT tsrange('2024-01-01', '2024-01-02') @> timestamp '2024-01-01 10:00', date '2024-01-05' <@ daterange('2024-01-01', NULL)",
  "SELECT int4range(1, 5) @> NULL::int, NULL::int4range @> 1, int4range(1, 5) && NULL, NULL::int4range + int4range(1, 2)",
  "SELECT int4range(1, 5) @> '[2,3)', '[2,3)' <@ int4range(1, 5), int4range(1, 5) && '(4,)', '[1,5)' = int4range(1, 5)",
  "SELECT int4range(1, 5) + '{[1,2)}'::int4multirange",
  "SELECT int4range(1, 5) && int8range(1, 5)",
  "SELECT int4range(1, 5) @> 'x'::text",
  "SELECT range_contains(int4range(1, 9), int4range(2, 3)), range_adjacent(int4range(1, 3), int4range(3, 4)), range_minus(int4range(1, 9), int4range(5, 12)), range_overlaps_multirange(int4range(1, 3), '{[2,9)}'::int4multirange)",
];

/**
 * The values to use as bounds of each range type. The test cases sort the ranges formed from them.
 */
const BOUNDS: readonly (readonly [range: string, bound: string, values: readonly string[]])[] = [
  ["int4range", "int", ["-2147483648", "-70000", "-1", "0", "63", "64", "2147483646"]],
  [
    "int8range",
    "bigint",
    [
      "-9223372036854775808",
      "-9007199254740993",
      "-1073741825",
      "-1",
      "1073741824",
      "9007199254740993",
    ],
  ],
  ["numrange", "numeric", ["-Infinity", "-100.5", "-99", "-0.001", "0.00", "1.5", "15", "NaN"]],
  ["daterange", "date", ["-infinity", "1969-12-31", "1970-01-01", "2024-02-29", "infinity"]],
  [
    "tsrange",
    "timestamp",
    ["-infinity", "0001-01-01 BC", "1969-12-31 23:59:59.999999", "2024-01-01"],
  ],
];

const SORTED: readonly string[] = BOUNDS.flatMap(([range, bound, values]) => {
  const list = `ARRAY['${values.join("', '")}', NULL]::${bound}[]`;
  const all = `SELECT ${range}(a, b, f) AS r FROM unnest(${list}) a, unnest(${list}) b, unnest(ARRAY['[]', '[)', '(]', '()']) f WHERE a <= b OR a IS NULL OR b IS NULL`;
  return [
    `SELECT DISTINCT r::text COLLATE "C", isempty(r) FROM (${all}) x ORDER BY 1`,
    `SELECT lower(r)::text, upper(r)::text, lower_inc(r), upper_inc(r), count(*) FROM (${all}) x GROUP BY r ORDER BY r DESC`,
    `SELECT range_agg(r) FROM (${all}) x WHERE NOT lower_inf(r) AND NOT upper_inf(r) GROUP BY lower(r) ORDER BY 1`,
  ];
});

const FUNCTIONS: readonly string[] = [
  ...[
    "int4range(1, 5)",
    "int4range(NULL, 5)",
    "numrange(1.50, NULL, '(]')",
    "'empty'::numrange",
    "daterange('2024-01-01', '2024-01-31', '[]')",
    "'{[1,3),[5,7)}'::int4multirange",
    "'{}'::int4multirange",
    "'{(,3),[5,)}'::int8multirange",
    "NULL::int4range",
  ].map(
    (r) =>
      `SELECT lower(${r}), upper(${r}), isempty(${r}), lower_inc(${r}), upper_inc(${r}), lower_inf(${r}), upper_inf(${r})`,
  ),
  "SELECT lower('ABC'), upper('abc')",
  "SELECT upper(int4range(1, 5)) - lower(int4range(1, 5)), upper(tsrange('2024-01-01', '2024-01-03')) - lower(tsrange('2024-01-01', '2024-01-03'))",
  "SELECT range_merge(int4range(1, 3), int4range(7, 9)), range_merge(int4range(1, 3), 'empty'), range_merge('{[1,3),[7,9)}'::int4multirange), range_merge('{}'::int4multirange)",
  "SELECT * FROM unnest('{[1,3),[5,7)}'::int4multirange) AS r",
  "SELECT r, lower(r) FROM unnest('{[1.50,3),(5,)}'::nummultirange) WITH ORDINALITY AS t (r, n) ORDER BY n DESC",
  "SELECT unnest('{[1,3),[5,7)}'::int4multirange), unnest(ARRAY[1, 2])",
];

const STORED: readonly string[] = [
  "CREATE TABLE stays (id INT PRIMARY KEY, room INT NOT NULL, during TSRANGE, nights INT4RANGE DEFAULT '[1,3)', price NUMRANGE, closed DATEMULTIRANGE, many INT4RANGE[])",
  "INSERT INTO stays VALUES (1, 1, '[2024-01-01 14:00,2024-01-03 10:00)', '[1,3]', '[1.50,2.5)', '{[2024-01-01,2024-01-05)}', '{\"[1,2)\"}')",
  "INSERT INTO stays (id, room, during, price) VALUES (2, 1, tsrange('2024-01-03 10:00', NULL), '[1.5,2.50)'), (3, 2, 'empty', 'empty'), (4, 2, NULL, NULL), (5, 3, '(,)', '(1.5,)')",
  "INSERT INTO stays (id, room, nights) VALUES (6, 3, '[4,1)')",
  "INSERT INTO stays (id, room, nights) VALUES (6, 3, int8range(1, 4))",
  "SELECT * FROM stays ORDER BY id",
  "SELECT id, price FROM stays ORDER BY price DESC, id",
  "SELECT id, during FROM stays ORDER BY during NULLS FIRST, id",
  "SELECT price, count(*) FROM stays GROUP BY price HAVING price = '[1.500,2.5)'",
  "SELECT count(DISTINCT price), count(DISTINCT nights) FROM stays",
  "SELECT a.id, b.id FROM stays a JOIN stays b ON a.price = b.price WHERE a.id < b.id ORDER BY 1, 2",
  "SELECT a.id, b.id FROM stays a JOIN stays b ON a.room = b.room AND a.during && b.during AND a.id < b.id ORDER BY 1, 2",
  "SELECT id FROM stays WHERE during @> timestamp '2024-01-02 00:00' ORDER BY id",
  "SELECT id FROM stays WHERE price IN ('[1.5,2.5)', 'empty') ORDER BY id",
  "SELECT id FROM stays WHERE price BETWEEN '[1.5,2)' AND '[1.5,3)' ORDER BY id",
  "SELECT range_agg(nights), range_intersect_agg(nights) FROM stays",
  "SELECT room, range_agg(during) FROM stays GROUP BY room ORDER BY room",
  "SELECT range_agg(price), range_intersect_agg(price) FROM stays WHERE id <> 3",
  "SELECT range_agg(during), range_intersect_agg(during) FROM stays WHERE id > 9",
  "SELECT range_agg(closed), range_intersect_agg(closed) FROM stays",
  "SELECT range_agg(nights) FILTER (WHERE id > 2), range_agg(nights) OVER (ORDER BY id) FROM stays GROUP BY id, nights ORDER BY id",
  "SELECT min(nights) FROM stays",
  "CREATE INDEX ON stays (nights)",
  "CREATE INDEX ON stays (price, id)",
  "SELECT id FROM stays WHERE nights = '[1,3]' ORDER BY id",
  "SELECT id FROM stays WHERE price = '[1.500,2.5)' ORDER BY id",
  "UPDATE stays SET nights = nights * '[2,)', price = numrange(lower(price), 9.90) WHERE id <= 2",
  "SELECT id, nights, price FROM stays WHERE id <= 2 ORDER BY id",
  "SELECT price FROM stays UNION SELECT numrange(1.50, 9.9) ORDER BY 1",
  "SELECT DISTINCT nights FROM stays ORDER BY nights",
  "CREATE TABLE slots (slot NUMRANGE PRIMARY KEY, note TEXT, days DATEMULTIRANGE UNIQUE)",
  "INSERT INTO slots VALUES ('[1,2)', 'a', '{}'), ('[2,3)', 'b', NULL)",
  "INSERT INTO slots VALUES ('[1.0,2.0)', 'c', NULL)",
  "INSERT INTO slots VALUES ('[4,5)', 'c', '{}')",
  "INSERT INTO slots VALUES ('[1.0,2)', 'd', NULL) ON CONFLICT (slot) DO UPDATE SET note = EXCLUDED.note",
  "SELECT note FROM slots WHERE slot = '[1.00,2)'",
  'SELECT note FROM slots WHERE slot = ANY (\'{"[1,2)","[2.0,3)"}\'::numrange[]) ORDER BY note',
  "SELECT s.note, t.note FROM slots s JOIN slots t ON t.slot = s.slot ORDER BY 1",
  "ALTER TABLE slots ADD COLUMN span INT8RANGE NOT NULL DEFAULT int8range(1, 5), ADD CHECK (NOT isempty(span))",
  "UPDATE slots SET span = 'empty' WHERE note = 'b'",
  "SELECT note, span FROM slots ORDER BY note",
  "CREATE TABLE apart (id INT PRIMARY KEY, room INT, r NUMRANGE, gone BOOLEAN DEFAULT FALSE, EXCLUDE USING gist (room WITH =, r WITH &&) WHERE (NOT gone))",
  "INSERT INTO apart VALUES (1, 1, '[1,5)'), (2, 1, '[5,9]'), (3, 2, '[1,9]'), (4, 1, 'empty'), (5, 1, 'empty'), (6, NULL, '(,)'), (7, NULL, '(,)'), (8, 1, '(,)', TRUE)",
  "INSERT INTO apart VALUES (9, 1, '[9.0,10)')",
  "INSERT INTO apart VALUES (9, 1, '(9.0,10)'), (10, 2, '[0,1)'), (11, 2, '[0.5,0.6]')",
  "INSERT INTO apart VALUES (9, 1, '(9.0,10)'), (10, 2, '[0,1)')",
  "UPDATE apart SET gone = FALSE WHERE id = 8",
  "UPDATE apart SET r = r * '[2,)' WHERE room = 1",
  "UPDATE apart SET room = 2 WHERE id = 1",
  "SELECT id, room, r FROM apart ORDER BY room, r, id",
  "CREATE TABLE tagged (id INT PRIMARY KEY, r INT4RANGE, length INT GENERATED ALWAYS AS (upper(r) - lower(r)) STORED)",
  "INSERT INTO tagged (id, r) VALUES (1, '[3,9]')",
  "SELECT * FROM tagged",
];

export const RANGES: CaseFile = {
  name: "ranges",
  about: "ranges and multiranges",
  extension: "btree_gist",
  statements: [
    ...TEXTS.flatMap(([type, texts]) => texts.map((text) => `SELECT '${text}'::${type}`)),
    ...CONSTRUCTED,
    ...OPERATORS,
    ...FUNCTIONS,
    ...SORTED,
    ...STORED,
  ],
};
