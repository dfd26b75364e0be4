/**
 * Test cases for the geometric types: text forms, operators, functions, casts, columns and
 * restrictions.
 */
import type { CaseFile } from "./answer.ts";

const TEXTS: readonly (readonly [type: string, texts: readonly string[]])[] = [
  [
    "point",
    ["(1,2)", "1,2", " ( 1.50 , -2e3 ) ", "(NaN,Infinity)", "(-inf,+inf)", "(1e-7,1e15)", "(-0,0)"],
  ],
  ["point", ["(1,2", "1 2", "(1,2,3)", "((1,2))", "(1,2) x", "", "(1e400,0)", "(1,)", "[1,2]"]],
  ["lseg", ["[(1,2),(3,4)]", "(1,2),(3,4)", "1,2,3,4", "((1,2),(3,4))", "(1,2,3,4)", "[1,2,3,4]"]],
  [
    "lseg",
    ["[(1,2),(3,4))", "[(1,2),(3,4)", "((1,2),(3,4)", "1,2,3", "[(1,2)]", "(3asdf,2 ,3,4r2)"],
  ],
  ["line", ["{1,-1,0}", "{0,-1,5}", "{ 2 , 0.5 , -3 }", "[(1,2),(3,4)]", "0,0,1,1", "(0,1),(5,1)"]],
  [
    "line",
    ["(2,1),(2,9)", "{0,0,1}", "{1,1}", "{1,1,1", "(1,1),(1,1)", "(1,1),(1,1.0000001)", "{}"],
  ],
  [
    "box",
    ["(1,2),(3,4)", "3,1,2,9", "((1,4),(3,2))", "(1,2,3,4)", "(NaN,1),(2,NaN)", "(0,0),(-0,-0)"],
  ],
  ["box", ["[1,2,3,4)", "(1,2,3,4]", "(2.3,4.5)", "(1,2),(3,4) x", "asdf", "[(1,2),(3,4)]"]],
  [
    "path",
    [
      "[(1,2),(3,4)]",
      "((1,2),(3,4))",
      "(1,2),(3,4)",
      "1,2,3,4,5,6",
      "(1,2,3,4)",
      "[1,2,3,4]",
      "(1,2)",
    ],
  ],
  [
    "path",
    ["[]", "[(,2),(3,4)]", "[(1,2),(3,4)", "(1,2,3,4", "(1,2),(3,4)]", "((1,2),(3,4)]", "[(1,2)]"],
  ],
  [
    "polygon",
    ["((0,0),(1,0),(1,1))", "(0,0),(1,0)", "0,0,1,0,1,1", "(1,2)", "( 0.0 , 1.0 )", "(1,2,3,4)"],
  ],
  ["polygon", ["0.0", "(0.0 0.0", "(0,1,2", "(0,1,2,3", "asdf", "[(0,0),(1,1)]", "((1,2),(3,4)"]],
  [
    "circle",
    ["<(1,2),3>", "((1,2),3)", "(1,2),3", "1,2,3", "<(1,2),0>", "<(100,1),NaN>", "<1,2,3>"],
  ],
  [
    "circle",
    ["<(1,2),-3>", "<(1,2),3", "(3,(1,2),3)", "1,abc,3", "<(1,2)>", "(1,2,3)", "<(1,2),3> x"],
  ],
];

const TABLES: readonly (readonly [table: string, type: string, values: readonly string[]])[] = [
  ["points", "point", ["0,0", "-10,0", "-3,4", "5.1,34.5", "5,-12", "0.0000001,0", "10,10", "1,1"]],
  [
    "lsegs",
    "lseg",
    [
      "1,2,3,4",
      "0,0,6,6",
      "10,-10,-3,-4",
      "-1e6,200,300,-40",
      "0,0,0,20",
      "11,22,33,22",
      "-2,2,2,-2",
    ],
  ],
  ["lines", "line", ["{0,-1,5}", "{1,0,5}", "{0,3,0}", "{1,-1,0}", "{-0.4,-1,-6}", "{1,1,-3}"]],
  [
    "boxes",
    "box",
    ["2,2,0,0", "1,1,3,3", "-8,2,-2,-10", "2.5,2.5,2.5,3.5", "3,3,3,3", "0,0,2,2.0000003"],
  ],
  [
    "paths",
    "path",
    [
      "[(1,2),(3,4)]",
      "((1,2),(3,4))",
      "[(0,0),(3,0),(4,5),(1,6)]",
      "((1,2),(3,4),(5,0))",
      "[(10,20)]",
      "((10,20))",
    ],
  ],
  [
    "polygons",
    "polygon",
    [
      "(2,0),(2,4),(0,0)",
      "(3,1),(3,3),(1,0)",
      "(1,2),(3,4),(5,6)",
      "(7,8),(5,6),(3,4),(1,2)",
      "(1,2),(7,8),(5,6),(3,-4)",
      "(0,0)",
      "(0,1),(0,1)",
      "(0,0),(2,4),(2,0)",
    ],
  ],
  [
    "circles",
    "circle",
    ["<(5,1),3>", "<(1,2),100>", "<(1,3),5>", "<(1,2),3>", "<(100,200),10>", "<(3,5),0>"],
  ],
];

const TABLE_OF: ReadonlyMap<string, string> = new Map(TABLES.map(([table, type]) => [type, table]));

/** The operators between two values of the same geometric type. */
const SAME: Readonly<Record<string, string>> = {
  point: "~= <> << >> <<| |>> <^ >^ ?- ?| <-> + - *",
  lseg: "= <> < <= > >= ?# ?|| ?-| <-> # ##",
  line: "= ?# ?|| ?-| <-> #",
  box: "= < <= > >= ~= << >> &< &> <<| |>> &<| |&> <^ >^ && ?# @> <@ <-> #",
  path: "= < <= > >= ?# <-> +",
  polygon: "~= << >> &< &> <<| |>> &<| |&> && @> <@ <->",
  circle: "= <> < <= > >= ~= << >> &< &> <<| |>> &<| |&> && @> <@ <->",
};

/** The operators between values of different geometric types. */
const MIXED: readonly (readonly [left: string, operators: string, right: string])[] = [
  ["point", "<-> <@ ##", "line"],
  ["point", "<-> <@ ##", "lseg"],
  ["point", "<-> <@ ##", "box"],
  ["point", "<-> <@", "path"],
  ["point", "<-> <@", "polygon"],
  ["point", "<-> <@", "circle"],
  ["line", "<->", "point"],
  ["lseg", "<->", "point"],
  ["box", "<-> @> + - *", "point"],
  ["path", "<-> @> + - *", "point"],
  ["polygon", "<-> @>", "point"],
  ["circle", "<-> @> + - *", "point"],
  ["line", "<-> ?# ##", "lseg"],
  ["line", "?#", "box"],
  ["lseg", "<-> <@ ?#", "line"],
  ["lseg", "<-> <@ ?# ##", "box"],
  ["box", "<->", "lseg"],
  ["circle", "<->", "polygon"],
  ["polygon", "<->", "circle"],
];

function combined(left: string, operators: string, right: string): string[] {
  const tables = `${TABLE_OF.get(left)} a, ${TABLE_OF.get(right)} b`;
  return operators.split(" ").map((operator) => {
    const result = `coalesce((a.v ${operator} b.v)::text, '-')`;
    return `SELECT a.id, string_agg(${result}, ' ' ORDER BY b.id) FROM ${tables} GROUP BY a.id ORDER BY 1`;
  });
}

const OPERATORS: readonly string[] = [
  ...Object.entries(SAME).flatMap(([type, operators]) => combined(type, operators, type)),
  ...MIXED.flatMap(([left, operators, right]) => combined(left, operators, right)),
  ...["point", "box", "path", "circle"].map(
    (type) => `SELECT a.id, a.v / '(2,-1)' FROM ${TABLE_OF.get(type)} a ORDER BY 1`,
  ),
];

const FUNCTIONS: readonly string[] = [
  "SELECT id, @-@ v, length(v), @@ v, ?- v, ?| v, isvertical(v), ishorizontal(v), point(v), v[0], v[1], v[2] FROM lsegs ORDER BY id",
  "SELECT id, ?- v, ?| v, isvertical(v), ishorizontal(v), v[0], v[1], v[2], v[3] FROM lines ORDER BY id",
  "SELECT id, area(v), width(v), height(v), center(v), diagonal(v), @@ v, v[0], v[1], v[1][0], (v[1])[0], v[-1] FROM boxes ORDER BY id",
  "SELECT id, v::point, v::lseg, v::polygon, v::circle, point(v), lseg(v), polygon(v), circle(v) FROM boxes ORDER BY id",
  "SELECT id, area(v), @-@ v, length(v), # v, npoints(v), isopen(v), isclosed(v), popen(v), pclose(v), polygon(pclose(v)) FROM paths ORDER BY id",
  "SELECT id, # v, npoints(v), @@ v, poly_center(v), v::path, v::box, v::circle, v::point, path(v), box(v), circle(v), point(v) FROM polygons ORDER BY id",
  "SELECT id, area(v), radius(v), diameter(v), center(v), circle_center(v), @@ v, v::point, v::box, point(v), box(v) FROM circles ORDER BY id",
  "SELECT id, v[0], v[1], v[2], v::box, box(v), circle(v, 2.5), point(v[0], v[1]) FROM points ORDER BY id",
  "SELECT a.id, b.id, slope(a.v, b.v), box(a.v, b.v), lseg(a.v, b.v), ishorizontal(a.v, b.v), isvertical(a.v, b.v) FROM points a, points b WHERE b.id < 3 ORDER BY 1, 2",
  "SELECT a.id, b.id, line(a.v, b.v) FROM points a JOIN points b ON a.v <> b.v WHERE b.id < 4 ORDER BY 1, 2",
  "SELECT a.id, b.id, bound_box(a.v, b.v) FROM boxes a, boxes b WHERE b.id < 3 ORDER BY 1, 2",
  "SELECT a.id, b.id, isparallel(a.v, b.v), isperp(a.v, b.v) FROM lines a, lines b WHERE b.id < 3 ORDER BY 1, 2",
  "SELECT a.id, b.id, isparallel(a.v, b.v), isperp(a.v, b.v) FROM lsegs a, lsegs b WHERE b.id < 3 ORDER BY 1, 2",
  "SELECT id, polygon(4, v), npoints(v::polygon) FROM circles WHERE radius(v) > 0 ORDER BY id",
  "SELECT polygon(1, '<(0,0),1>'), 1",
  "SELECT polygon(circle '<(0,0),0>')",
  "SELECT path '[(0,0),(1,1)]'::polygon",
  "SELECT line(point '(1,1)', point '(1,1)')",
  "SELECT point('(1,2)'), box('1,2,3,4'), lseg('1,2,3,4'), line('{1,2,3}'), path('[(1,2)]'), polygon('(1,2)'), circle('1,2,3')",
  "SELECT point(1, 2), point(1.5, '-2'), point(NULL, 1), circle('(1,2)', 3)",
  "SELECT point '(1e300,0)' * point '(1e300,0)'",
  "SELECT point '(1,1)' / point '(0,0)'",
  "SELECT point '(1e-300,0)' * point '(1e-300,0)'",
  "SELECT point '(1e308,0)' <-> point '(-1e308,0)'",
  "SELECT point '(NaN,0)' <-> point '(1,0)', point '(Infinity,0)' <-> point '(NaN,0)', point '(NaN,0)' ~= point '(NaN,0)', point '(NaN,1)' << point '(NaN,1)'",
  "SELECT point '(3,4)' <-> '(0,0)', box '(0,0),(1,1)' @> '(0,0),(0.5,0.5)', path '[(0,0),(1,1)]' @> '(0.5,0.5)', box '(0,0),(1,1)' * '(2,0)'",
  "SELECT '(3,4)' <-> point '(0,0)', '(0.5,0.5)' <@ box '(0,0),(1,1)'",
  "SELECT point '(1,2)' <@ '(0,0),(3,3)'",
  "SELECT point '(1,2)' = point '(1,2)'",
  "SELECT box '(0,0),(1,1)' <> box '(0,0),(1,1)'",
  "SELECT point '(1,2)' < point '(1,2)'",
  "SELECT box '(0,0),(1,1)' IN ('(5,5),(6,6)', '(1,1),(3,3)'), lseg '0,0,1,1' NOT IN ('0,0,1,1', '1,1,2,2'), circle '<(0,0),1>' IN (NULL, '<(5,5),1>')",
  "SELECT point '(1,2)' IN ('(1,2)', '(3,4)')",
  "SELECT box '0,0,1,1' IS DISTINCT FROM '2,2,3,3', box '0,0,1,1' IS NOT DISTINCT FROM NULL, NULLIF(box '0,0,1,1', '0,0,2,2'), NULLIF(box '0,0,1,1', '5,5,6,6')",
  "SELECT CASE circle '<(0,0),1>' WHEN '<(9,9),1>' THEN 'as large' ELSE 'other' END",
  "SELECT box '0,0,1,1' = ANY (ARRAY[box '0,0,2,2', box '5,5,6,6']), box '0,0,1,1' < ALL (ARRAY[box '0,0,2,2', NULL])",
  "SELECT point '(1,2)'::text, '(1,2)'::text::point, point '(1,2)'::varchar(3), concat(box '1,2,3,4', '!')",
  "SELECT to_json(point '(1,2)'), json_build_object('p', point '(1,2)'), array_to_string(ARRAY[point '(1,2)', NULL], ';', '?')",
  "SELECT pg_typeof(point '(1,2)'), pg_typeof(ARRAY[box '1,2,3,4']), pg_typeof(circle '1,2,3')",
  "SELECT COALESCE(NULL, point '(1,2)'), CASE WHEN true THEN path '[(1,2)]' END",
  "SELECT ARRAY[point '(1,2)', NULL, '(3,4)'], ARRAY[box '1,2,3,4', NULL, '5,6,7,8']::text, ARRAY[[box '1,2,3,4'], [box '5,6,7,8']]::text, ARRAY[polygon '(1,2)']",
  "SELECT '{\"(1,2)\",\"(3,4)\"}'::point[], '{(1,2),(3,4);(5,6),(7,8)}'::box[]::text, '{(1,2),(3,4);NULL;\"5,6,7,8\"}'::box[]::text, '{{(1,2),(3,4)};{(5,6),(7,8)}}'::box[]::text",
  "SELECT '{(1,2),(3,4)}'::point[]",
  "SELECT ('{(1,2),(3,4);(5,6),(7,8)}'::box[])[2], (ARRAY[point '(1,2)'])[1][0], ((ARRAY[point '(1,2)'])[1])[1]",
  "SELECT b, area(b) FROM unnest('{(1,2),(3,4);(5,6),(7,9)}'::box[]) AS u(b)",
];

const COLUMNS: readonly string[] = [
  "CREATE TABLE places (id INT PRIMARY KEY, at POINT NOT NULL, area POLYGON, tags BOX[], CHECK (at <@ box '(-180,-90),(180,90)'))",
  "INSERT INTO places VALUES (1, '(13.4,52.5)', '((13,52),(14,52),(14,53),(13,53))', '{(0,0),(1,1);(2,2),(3,3)}'), (2, point(2.35, 48.85), NULL, '{}'), (3, '-0.12,51.5', box '(-1,51),(0,52)', NULL)",
  "INSERT INTO places (id, at) VALUES (4, '(200,0)')",
  "INSERT INTO places (id, at) VALUES (4, NULL)",
  "INSERT INTO places (id, at) VALUES (4, '1,2,3')",
  "INSERT INTO places (id, at) VALUES (4, box '(1,2),(3,4)')",
  "SELECT id, at, area, tags::text FROM places ORDER BY id",
  "SELECT id, at <-> '(10,50)' AS away FROM places ORDER BY at <-> point '(10,50)' LIMIT 2",
  "SELECT id FROM places ORDER BY at <-> '(0,0)' DESC LIMIT 1 OFFSET 1",
  "SELECT id FROM places WHERE at <@ circle '<(10,50),5>' ORDER BY id",
  "SELECT id FROM places WHERE area @> at ORDER BY id",
  "SELECT p.id, q.id FROM places p LEFT JOIN places q ON p.area @> q.at ORDER BY 1, 2",
  "UPDATE places SET at = at + point '(1,1)', area = NULL WHERE id <> 2 RETURNING id, at, area",
  "SELECT count(at), count(area), count(*) FROM places",
  "SELECT array_agg(at ORDER BY id), string_agg(at::text, ' ' ORDER BY id) FROM places",
  "SELECT at FROM places GROUP BY at",
  "SELECT DISTINCT at FROM places",
  "SELECT DISTINCT ON (at) id FROM places",
  "SELECT id FROM places ORDER BY at",
  "SELECT count(DISTINCT at) FROM places",
  "SELECT at FROM places UNION SELECT at FROM places",
  "SELECT at FROM places EXCEPT SELECT at FROM places",
  "SELECT count(*) FROM (SELECT at FROM places UNION ALL SELECT at FROM places) AS u",
  "SELECT row_number() OVER (PARTITION BY at) FROM places",
  "SELECT rank() OVER (ORDER BY at) FROM places",
  "SELECT first_value(at) OVER (ORDER BY id DESC) FROM places ORDER BY id",
  "SELECT min(at) FROM places",
  "SELECT greatest(at, at) FROM places",
  "SELECT tags = tags FROM places",
  "SELECT array_position(tags, '(1,1),(0,0)') FROM places WHERE id = 1",
  "SELECT array_length(tags, 1), array_append(tags, '9,9,8,8')::text, (tags || box '1,1,0,0')::text FROM places ORDER BY id",
  "SELECT ROW(at, 1) = ROW(at, 1) FROM places",
  "SELECT at[0]::numeric(6,2), sum(at[1]) OVER () > 0, at::text FROM places ORDER BY at[0]",
  "SELECT at::text, count(*) FROM places GROUP BY at::text ORDER BY 1",
  "CREATE TABLE keyed (p POINT PRIMARY KEY)",
  "CREATE TABLE keyed (id INT PRIMARY KEY, p BOX UNIQUE)",
  "CREATE INDEX ON places (at)",
  "ALTER TABLE places ADD COLUMN round CIRCLE DEFAULT '<(0,0),1>'",
  "SELECT id, round, at <@ round FROM places ORDER BY id",
  "DELETE FROM places WHERE at[0] > 5",
  "SELECT id FROM places ORDER BY id",
];

export const GEOMETRY: CaseFile = {
  name: "geometry",
  about: "geometric types",
  statements: [
    ...TEXTS.flatMap(([type, texts]) => texts.map((text) => `SELECT '${text}'::${type}`)),
    ...TABLES.flatMap(([table, type, values]) => [
      `CREATE TABLE ${table} (id INT PRIMARY KEY, v ${type})`,
      `INSERT INTO ${table} VALUES ${values.map((value, i) => `(${i + 1}, '${value}')`).join(", ")}`,
    ]),
    ...OPERATORS,
    ...FUNCTIONS,
    ...COLUMNS,
  ],
};
