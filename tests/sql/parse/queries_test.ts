/** Verifies that every form of a query produces the node that `ast.ts` describes. */
import { expect, test } from "bun:test";
import {
  group,
  integer,
  name,
  one,
  qname,
  ref,
  select,
  star,
  type Tree,
  table,
  treeOf,
} from "./trees.ts";

test.each<[string, Tree]>([
  ["SELECT 1", one],
  ["SELECT FROM t", select({ from: [table("t")] })],
  ["SELECT", select({})],
  ["SELECT LIMIT 1", { ...select({}), limit: { limit: integer(1) } }],
  ["SELECT UNION SELECT", { type: "union", left: select({}), right: select({}) }],
  ["TABLE t", select({ columns: [star], from: [table("t")] })],
  ["VALUES (1), (2)", { type: "values", values: [[integer(1)], [integer(2)]] }],
  [
    "SELECT a FROM t FOR SYSTEM_TIME AS OF 5 AS k",
    select({
      columns: [{ expr: ref("a") }],
      from: [{ type: "table", name: { name: "t", alias: "k" }, systemTime: integer(5) }],
    }),
  ],
  ["SELECT 1 LIMIT ALL", { ...one, limit: {} }],
  ["SELECT 1 LIMIT NULL", { ...one, limit: { limit: { type: "null" } } }],
  ["SELECT 1 FETCH FIRST ROW ONLY", { ...one, limit: { limit: integer(1) } }],
  [
    "SELECT 1 OFFSET 2 ROWS FETCH NEXT 3 ROWS WITH TIES",
    { ...one, limit: { limit: integer(3), offset: integer(2), withTies: true } },
  ],
  [
    "SELECT 1 UNION SELECT 1 INTERSECT SELECT 1 EXCEPT ALL SELECT 1",
    {
      type: "except all",
      left: { type: "union", left: one, right: { type: "intersect", left: one, right: one } },
      right: one,
    },
  ],
  [
    "SELECT 1 UNION SELECT 1 ORDER BY 1 LIMIT 1",
    {
      type: "union",
      left: one,
      right: one,
      orderBy: [{ by: integer(1) }],
      limit: { limit: integer(1) },
    },
  ],
  [
    "((SELECT 1) UNION SELECT 1) ORDER BY 1",
    { type: "union", left: one, right: one, orderBy: [{ by: integer(1) }] },
  ],
  [
    "WITH RECURSIVE a (x) AS (SELECT 1), b AS NOT MATERIALIZED (SELECT 1) SELECT 1",
    {
      type: "with recursive",
      bind: [
        { alias: name("a"), columnNames: [name("x")], statement: one },
        { alias: name("b"), materialized: false, statement: one },
      ],
      in: one,
    },
  ],
  [
    "WITH a AS MATERIALIZED (SELECT 1) DELETE FROM t",
    {
      type: "with",
      bind: [{ alias: name("a"), materialized: true, statement: one }],
      in: { type: "delete", from: name("t") },
    },
  ],
  [
    "SELECT 1 GROUP BY DISTINCT ROLLUP (a)",
    { ...one, groupBy: [{ type: "rollup", groups: [ref("a")] }], groupDistinct: true },
  ],
  ["SELECT 1 GROUP BY ALL a", { ...one, groupBy: [ref("a")] }],
  [
    "SELECT 1 GROUP BY a, (), ROLLUP (a, (b, c)), GROUPING SETS (CUBE (a), ())",
    {
      ...one,
      groupBy: [
        ref("a"),
        { type: "list", expressions: [] },
        { type: "rollup", groups: [ref("a"), { type: "list", expressions: [ref("b"), ref("c")] }] },
        {
          type: "grouping sets",
          groups: [
            { type: "cube", groups: [ref("a")] },
            { type: "list", expressions: [] },
          ],
        },
      ],
    },
  ],
  [
    "SELECT sum(a) OVER (w ROWS 1 PRECEDING EXCLUDE TIES) WINDOW w AS (PARTITION BY b)",
    select({
      columns: [
        {
          expr: {
            type: "call",
            function: name("sum"),
            args: [ref("a")],
            over: {
              base: name("w"),
              frame: {
                mode: "rows",
                start: { type: "preceding", offset: integer(1) },
                end: { type: "current row" },
                exclude: "ties",
              },
            },
          },
        },
      ],
      windows: [{ name: name("w"), window: { partitionBy: [ref("b")] } }],
    }),
  ],
  [
    "SELECT DISTINCT ON (a) a FROM t ORDER BY a USING >, b DESC NULLS FIRST",
    select({
      distinct: [ref("a")],
      columns: [{ expr: ref("a") }],
      from: [table("t")],
      orderBy: [
        { by: ref("a"), order: "DESC" },
        { by: ref("b"), order: "DESC", nulls: "FIRST" },
      ],
    }),
  ],
  [
    "INSERT INTO t DEFAULT VALUES RETURNING *",
    { type: "insert", into: name("t"), insert: { type: "default values" }, returning: [star] },
  ],
  [
    "INSERT INTO t (a) SELECT 1 ON CONFLICT (a) DO UPDATE SET a = excluded.a WHERE b",
    {
      type: "insert",
      into: name("t"),
      columns: [name("a")],
      insert: one,
      onConflict: {
        on: { type: "on expr", exprs: [ref("a")] },
        do: {
          sets: [
            {
              type: "set",
              column: name("a"),
              value: { type: "ref", table: name("excluded"), name: "a" },
            },
          ],
        },
        where: ref("b"),
      },
    },
  ],
  [
    "UPDATE t AS k SET a = DEFAULT, (b, c) = (SELECT 1) FROM u, v WHERE d",
    {
      type: "update",
      table: { name: "t", alias: "k" },
      sets: [
        { type: "set", column: name("a"), value: { type: "default" } },
        { type: "set columns", columns: [name("b"), name("c")], select: one },
      ],
      from: [table("u"), table("v")],
      where: ref("d"),
    },
  ],
  [
    "UPDATE t SET (a, b) = ROW(1, 2)",
    {
      type: "update",
      table: name("t"),
      sets: [
        { type: "set", column: name("a"), value: integer(1) },
        { type: "set", column: name("b"), value: integer(2) },
      ],
    },
  ],
  [
    "DELETE FROM a.t k USING (VALUES (1)) d (x)",
    {
      type: "delete",
      from: { ...qname("a", "t"), alias: "k" },
      using: [
        {
          type: "statement",
          statement: { type: "values", values: [[integer(1)]] },
          alias: "d",
          columnNames: [name("x")],
        },
      ],
    },
  ],
])("parseStatements, %s", (text, expected) => {
  expect(treeOf(text)).toEqual(expected);
});

const f: Tree = { type: "call", function: name("f"), args: [] };

test.each<[string, readonly Tree[]]>([
  ["a JOIN b ON x", [table("a"), { ...table("b"), join: { type: "INNER JOIN", on: ref("x") } }]],
  [
    "a FULL OUTER JOIN b USING (x)",
    [table("a"), { ...table("b"), join: { type: "FULL JOIN", using: [name("x")] } }],
  ],
  [
    "a NATURAL RIGHT JOIN b",
    [table("a"), { ...table("b"), join: { type: "RIGHT JOIN", natural: true } }],
  ],
  [
    "a JOIN (b LEFT JOIN c ON x) ON y",
    [table("a"), { ...group, join: { type: "INNER JOIN", on: ref("y") } }],
  ],
  [
    "a JOIN b LEFT JOIN c ON x ON y",
    [table("a"), { ...group, join: { type: "INNER JOIN", on: ref("y") } }],
  ],
  ["(b LEFT JOIN c ON x)", group["from"] as readonly Tree[]],
  ["(a)", [table("a")]],
  ["(SELECT 1)", [{ type: "statement", statement: one }]],
  [
    "((SELECT 1) UNION SELECT 1) k",
    [{ type: "statement", statement: { type: "union", left: one, right: one }, alias: "k" }],
  ],
  [
    "((SELECT 1) k CROSS JOIN a)",
    [
      { type: "statement", statement: one, alias: "k" },
      { ...table("a"), join: { type: "CROSS JOIN" } },
    ],
  ],
  ["LATERAL (SELECT 1) k", [{ type: "statement", statement: one, alias: "k", lateral: true }]],
  ["LATERAL f() k", [{ ...f, lateral: true, alias: name("k") }]],
  ["n.f()", [{ ...f, function: qname("n", "f") }]],
  [
    "f() WITH ORDINALITY AS k (a, b)",
    [{ ...f, withOrdinality: true, alias: { name: "k", columns: [name("a"), name("b")] } }],
  ],
  [
    "f() AS k (a int)",
    [
      {
        ...f,
        alias: name("k"),
        columnDefinitions: [{ name: name("a"), dataType: name("int") }],
      },
    ],
  ],
  ["f() AS (a int)", [{ ...f, columnDefinitions: [{ name: name("a"), dataType: name("int") }] }]],
])("parseStatements, FROM %s", (text, from) => {
  expect(treeOf(`SELECT 1 FROM ${text}`)).toEqual({ ...one, from });
});
