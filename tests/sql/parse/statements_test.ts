/** Verifies that every statement form of the grammar produces the node that `ast.ts` describes. */
import { expect, test } from "bun:test";
import { parseRequest, parseStatements } from "../../../src/sql/parse/parser.ts";
import { literalPosition, literalText } from "../../../src/sql/parse/text/literal_list.ts";
import { literalValuesToRows } from "../../../src/sql/parse/text/literal_nodes.ts";
import { bare, type Json } from "./bare.ts";

type Tree = { readonly [key: string]: Json };

const name = (text: string): Tree => ({ name: text });
const qname = (schema: string, text: string): Tree => ({ schema, name: text });
const ref = (text: string): Tree => ({ type: "ref", name: text });
const integer = (value: number): Tree => ({ type: "integer", value, text: String(value) });
const string = (value: string): Tree => ({ type: "string", value });
const star: Tree = { expr: { type: "ref", name: "*", star: true } };
const table = (text: string): Tree => ({ type: "table", name: name(text) });
const select = (rest: Tree): Tree => ({ type: "select", ...rest });
const one = select({ columns: [{ expr: integer(1) }] });
const option = (key: string, value: Tree): Tree => ({ name: key, value });
const word = (text: string): Tree => ({ type: "identifier", name: text });
const equals = (left: Tree, right: Tree): Tree => ({ type: "binary", op: "=", left, right });

function treeOf(text: string): Json {
  const statements = parseStatements(text);
  expect(statements.length).toBe(1);
  return bare(statements[0]);
}

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

const group: Tree = {
  type: "from group",
  from: [table("b"), { ...table("c"), join: { type: "LEFT JOIN", on: ref("x") } }],
};
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

test.each<[string, Tree]>([
  [
    'CREATE SCHEMA IF NOT EXISTS n AUTHORIZATION "Bob"',
    { type: "create namespace", name: name("n"), ifNotExists: true, authorization: name("Bob") },
  ],
  [
    "ALTER NAMESPACE n SET OPTIONS (A = -1, b = 'x', c = TRUE, d = word)",
    {
      type: "alter namespace",
      name: name("n"),
      options: [
        option("a", integer(-1)),
        option("b", string("x")),
        option("c", { type: "boolean", value: true }),
        option("d", word("word")),
      ],
    },
  ],
  [
    "ALTER NAMESPACE n OWNER TO 'bob'",
    { type: "alter namespace", name: name("n"), owner: name("bob") },
  ],
  [
    "DROP NAMESPACE IF EXISTS n CASCADE",
    { type: "drop namespace", names: [name("n")], ifExists: true, cascade: "cascade" },
  ],
  ["DROP SCHEMA a, b", { type: "drop namespace", names: [name("a"), name("b")] }],
  ["CREATE NAMESPACE default", { type: "create namespace", name: name("default") }],
  ["USE app", { type: "use namespace", name: name("app") }],
  ["USE NAMESPACE default", { type: "use namespace", name: name("default") }],
  ["SET NAMESPACE app", { type: "use namespace", name: name("app") }],
  ["SET search_path TO app", { type: "use namespace", name: name("app") }],
  [
    "CREATE USER TABLE IF NOT EXISTS a.t (id BIGINT AUTO_INCREMENT, b TIMESTAMP(3) DEFAULT now() " +
      "NOT NULL, c INT CONSTRAINT k CHECK (c > 0), d DECIMAL(10,2) GENERATED ALWAYS AS IDENTITY, " +
      "PRIMARY KEY (id, b), CONSTRAINT z CHECK (c < 9)) WITH (TYPE='USER', FLUSH_POLICY='rows:1')",
    {
      type: "create table",
      kind: "user",
      name: qname("a", "t"),
      ifNotExists: true,
      columns: [
        {
          kind: "column",
          name: name("id"),
          dataType: name("bigint"),
          constraints: [{ type: "auto increment" }],
        },
        {
          kind: "column",
          name: name("b"),
          dataType: { name: "timestamp", config: [3] },
          constraints: [
            { type: "default", default: { type: "call", function: name("now"), args: [] } },
            { type: "not null" },
          ],
        },
        {
          kind: "column",
          name: name("c"),
          dataType: name("int"),
          constraints: [
            {
              type: "check",
              constraintName: name("k"),
              expr: { type: "binary", op: ">", left: ref("c"), right: integer(0) },
            },
          ],
        },
        {
          kind: "column",
          name: name("d"),
          dataType: { name: "decimal", config: [10, 2] },
          constraints: [{ type: "add generated", always: "always" }],
        },
      ],
      constraints: [
        { type: "primary key", columns: [name("id"), name("b")] },
        {
          type: "check",
          constraintName: name("z"),
          expr: { type: "binary", op: "<", left: ref("c"), right: integer(9) },
        },
      ],
      options: [option("type", string("USER")), option("flush_policy", string("rows:1"))],
    },
  ],
  [
    "CREATE TABLE t (LIKE u, a INT, LIKE n.v INCLUDING ALL EXCLUDING INDEXES, PRIMARY KEY (a))",
    {
      type: "create table",
      name: name("t"),
      columns: [{ kind: "column", name: name("a"), dataType: name("int") }],
      likes: [
        { type: "like", table: name("u"), after: 0, parts: [] },
        {
          type: "like",
          table: qname("n", "v"),
          after: 1,
          parts: [
            { including: true, part: "all" },
            { including: false, part: "indexes" },
          ],
        },
      ],
      constraints: [{ type: "primary key", columns: [name("a")] }],
    },
  ],
  [
    "DROP STREAM TABLE IF EXISTS a.t, u RESTRICT",
    {
      type: "drop table",
      kind: "stream",
      names: [qname("a", "t"), name("u")],
      ifExists: true,
      cascade: "restrict",
    },
  ],
  [
    "ALTER SHARED TABLE t MODIFY COLUMN a BIGINT NOT NULL, RENAME b TO c, RENAME TO u, RESET (Compression), " +
      "SET ACCESS LEVEL public, SET TBLPROPERTIES (x = 1), ADD PRIMARY KEY (a)",
    {
      type: "alter table",
      kind: "shared",
      table: name("t"),
      changes: [
        { type: "modify column", column: name("a"), dataType: name("bigint"), notNull: true },
        { type: "rename column", column: name("b"), to: name("c") },
        { type: "rename table", to: name("u") },
        { type: "reset options", names: [name("compression")] },
        { type: "set options", options: [option("access_level", word("public"))] },
        { type: "set options", options: [option("x", integer(1))] },
        { type: "add constraint", constraint: { type: "primary key", columns: [name("a")] } },
      ],
    },
  ],
  [
    "CREATE OR REPLACE VIEW v (a) AS SELECT 1",
    {
      type: "create view",
      orReplace: true,
      name: name("v"),
      columnNames: [name("a")],
      query: one,
    },
  ],
  [
    "DROP VIEW IF EXISTS v, w",
    { type: "drop view", names: [name("v"), name("w")], ifExists: true },
  ],
  [
    "CREATE USER IF NOT EXISTS u EMAIL 'e' ROLE dba OAUTH '{}'",
    {
      type: "create user",
      name: name("u"),
      ifNotExists: true,
      oauth: "{}",
      role: name("dba"),
      email: "e",
    },
  ],
  ["CREATE USER 'A b' WITH INTERNAL", { type: "create user", name: name("A b"), internal: true }],
  [
    "ALTER USER CURRENT_USER SET PASSWORD 'p'",
    { type: "alter user", name: { name: "current_user", currentUser: true }, password: "p" },
  ],
  ["ALTER USER u SET ROLE service", { type: "alter user", name: name("u"), role: name("service") }],
  [
    "DROP USER IF EXISTS u PURGE",
    { type: "drop user", name: name("u"), ifExists: true, purge: true },
  ],
  [
    "CREATE STORAGE s TYPE filesystem PATH '/p' Name 'n'",
    {
      type: "create storage",
      name: name("s"),
      storageType: name("filesystem"),
      settings: [
        { name: "path", value: "/p" },
        { name: "name", value: "n" },
      ],
    },
  ],
  [
    "ALTER STORAGE s SET NAME 'a' SET DESCRIPTION 'b'",
    {
      type: "alter storage",
      name: name("s"),
      settings: [
        { name: "name", value: "a" },
        { name: "description", value: "b" },
      ],
    },
  ],
  ["DROP STORAGE IF EXISTS s", { type: "drop storage", name: name("s"), ifExists: true }],
  ["CREATE TOPIC t", { type: "create topic", name: name("t") }],
  [
    "CREATE TOPIC IF NOT EXISTS n.t PARTITIONS 8 WITH (RETENTION_HOURS = 1, DEAD_LETTER = 'n.d')",
    {
      type: "create topic",
      name: qname("n", "t"),
      ifNotExists: true,
      partitions: 8,
      options: [option("retention_hours", integer(1)), option("dead_letter", string("n.d"))],
    },
  ],
  [
    "ALTER TOPIC n.t ADD SOURCE n.a ON INSERT WHERE b = 1 WITH (payload = diff)",
    {
      type: "alter topic",
      name: qname("n", "t"),
      change: {
        type: "add source",
        table: qname("n", "a"),
        operation: "insert",
        where: equals(ref("b"), integer(1)),
        options: [option("payload", word("diff"))],
      },
    },
  ],
  [
    "ALTER TOPIC t ADD SOURCE a ON UPDATE",
    {
      type: "alter topic",
      name: name("t"),
      change: { type: "add source", table: name("a"), operation: "update" },
    },
  ],
  [
    "ALTER TOPIC t DROP SOURCE n.a ON DELETE",
    {
      type: "alter topic",
      name: name("t"),
      change: { type: "drop source", table: qname("n", "a"), operation: "delete" },
    },
  ],
  [
    "ALTER TOPIC t SET (MAX_DELIVERIES = 3)",
    {
      type: "alter topic",
      name: name("t"),
      change: { type: "set options", options: [option("max_deliveries", integer(3))] },
    },
  ],
  ["CLEAR TOPIC n.t", { type: "clear topic", name: qname("n", "t") }],
  ["DROP TOPIC IF EXISTS n.t", { type: "drop topic", name: qname("n", "t"), ifExists: true }],
  ["CONSUME FROM n.t", { type: "consume", topic: qname("n", "t") }],
  [
    "CONSUME FROM t PARTITION 3 GROUP 'g' FROM 7 LIMIT $1 NO ACK",
    {
      type: "consume",
      topic: name("t"),
      partition: integer(3),
      group: string("g"),
      from: integer(7),
      limit: { type: "parameter", name: "$1", index: 1 },
      noAck: true,
    },
  ],
  ["CONSUME FROM t FROM earliest", { type: "consume", topic: name("t"), from: "earliest" }],
  ["CONSUME FROM t FROM LATEST", { type: "consume", topic: name("t"), from: "latest" }],
  [
    "ACK n.t GROUP 'g' UPTO OFFSET 41",
    { type: "ack", topic: qname("n", "t"), group: string("g"), upTo: integer(41) },
  ],
  [
    "ACK t GROUP $2 PARTITION 1 OFFSETS (3, $1)",
    {
      type: "ack",
      topic: name("t"),
      group: { type: "parameter", name: "$2", index: 2 },
      partition: integer(1),
      offsets: [integer(3), { type: "parameter", name: "$1", index: 1 }],
    },
  ],
  ["SHOW TOPICS", { type: "show topics" }],
  ["SHOW TOPICS IN n", { type: "show topics", namespace: name("n") }],
  ["DESCRIBE TOPIC n.t", { type: "describe topic", topic: qname("n", "t") }],
  ["DESC topic", { type: "describe", table: name("topic") }],
  ["DESCRIBE topic HISTORY", { type: "describe", table: name("topic"), history: true }],
  ["KILL CONSUMER 'c1'", { type: "kill", target: "consumer", id: "c1" }],
])("parseStatements, %s", (text, expected) => {
  expect(treeOf(text)).toEqual(expected);
});

test.each<[string, Tree]>([
  ["BEGIN", { type: "begin" }],
  [
    "BEGIN WORK ISOLATION LEVEL SNAPSHOT, READ ONLY",
    { type: "begin", isolationLevel: "snapshot", writeable: "read only" },
  ],
  [
    "START TRANSACTION READ WRITE ISOLATION LEVEL READ COMMITTED",
    { type: "start transaction", isolationLevel: "read committed", writeable: "read write" },
  ],
  ["COMMIT TRANSACTION", { type: "commit" }],
  ["END", { type: "commit" }],
  ["ROLLBACK WORK", { type: "rollback" }],
  ["ABORT", { type: "rollback" }],
  ["SAVEPOINT a", { type: "savepoint", name: { name: "a" } }],
  ["RELEASE SAVEPOINT a", { type: "release savepoint", name: { name: "a" } }],
  ["RELEASE a", { type: "release savepoint", name: { name: "a" } }],
  ['ROLLBACK WORK TO SAVEPOINT "A"', { type: "rollback to", name: { name: "A" } }],
  ["ROLLBACK TO a", { type: "rollback to", name: { name: "a" } }],
  ["EXECUTE AS USER 'U 1' (SELECT 1)", { type: "execute as", user: name("U 1"), statement: one }],
  [
    "EXECUTE AS bob (DROP TABLE t);",
    {
      type: "execute as",
      user: name("bob"),
      statement: { type: "drop table", names: [name("t")] },
    },
  ],
  [
    "EXPLAIN ANALYZE SELECT 1",
    { type: "explain", analyze: true, verbose: false, format: "text", statement: one },
  ],
  [
    "EXPLAIN (FORMAT JSON, ANALYZE false, VERBOSE) DELETE FROM t",
    {
      type: "explain",
      analyze: false,
      verbose: true,
      format: "json",
      statement: { type: "delete", from: name("t") },
    },
  ],
  [
    "EXPLAIN (SELECT 1)",
    { type: "explain", analyze: false, verbose: false, format: "text", statement: one },
  ],
  [
    "EXPLAIN VERBOSE EXECUTE AS USER 'U 1' (SELECT 1)",
    {
      type: "explain",
      analyze: false,
      verbose: true,
      format: "text",
      user: name("U 1"),
      statement: one,
    },
  ],
  [
    "EXPLAIN SUBSCRIBE TO t OPTIONS (last_rows = 5)",
    {
      type: "explain subscribe",
      subscribe: {
        type: "subscribe",
        query: select({ columns: [star], from: [table("t")] }),
        options: [option("last_rows", integer(5))],
      },
    },
  ],
  ["SHOW NAMESPACES", { type: "show namespaces" }],
  ["SHOW SCHEMAS", { type: "show namespaces" }],
  ["SHOW TABLES", { type: "show tables" }],
  ["SHOW TABLES FROM NAMESPACE app", { type: "show tables", namespace: name("app") }],
  ["SHOW TABLES IN default", { type: "show tables", namespace: name("default") }],
  ["SHOW COLUMNS FROM a.t", { type: "show columns", table: qname("a", "t") }],
  ["SHOW STORAGES", { type: "show storages" }],
  ["SHOW MANIFEST", { type: "show manifest" }],
  ["SHOW STATS FOR TABLE t", { type: "show stats", table: name("t") }],
  ["SHOW ALL", { type: "show all" }],
  ["SHOW limits.max_sql_bytes", { type: "show", variable: name("limits.max_sql_bytes") }],
  [
    "DESCRIBE TABLE default.t HISTORY",
    { type: "describe", table: qname("default", "t"), history: true },
  ],
  ["DESC t", { type: "describe", table: name("t") }],
  [
    "SET LOCAL statement_timeout = 5",
    {
      type: "set",
      variable: name("statement_timeout"),
      scope: "local",
      set: { type: "value", value: integer(5) },
    },
  ],
  ["SET x TO DEFAULT", { type: "set", variable: name("x"), set: { type: "default" } }],
  [
    "SET SESSION x = y",
    { type: "set", variable: name("x"), scope: "session", set: { type: "identifier", name: "y" } },
  ],
  ["SET TIME ZONE 'UTC'", { type: "set timezone", to: { type: "value", value: "UTC" } }],
  ["STORAGE FLUSH TABLE a.t", { type: "storage flush", table: qname("a", "t") }],
  ["STORAGE FLUSH ALL", { type: "storage flush" }],
  ["STORAGE COMPACT ALL IN NAMESPACE app", { type: "storage compact", namespace: name("app") }],
  ["STORAGE CHECK s EXTENDED", { type: "storage check", name: name("s"), extended: true }],
  ["KILL JOB 'x'", { type: "kill", target: "job", id: "x" }],
  ["KILL QUERY 'x'", { type: "kill", target: "query", id: "x" }],
  ["KILL LIVE QUERY 'x'", { type: "kill", target: "live query", id: "x" }],
  ["KILL CONNECTION 'x'", { type: "kill", target: "connection", id: "x" }],
  [
    "SUBSCRIBE TO t WHERE a = 1 OPTIONS (last_rows = 5, from = 7)",
    {
      type: "subscribe",
      query: select({
        columns: [star],
        from: [table("t")],
        where: equals(ref("a"), integer(1)),
      }),
      options: [option("last_rows", integer(5)), option("from", integer(7))],
    },
  ],
  [
    "SUBSCRIBE TO SELECT 1 FROM t OPTIONS (batch_size = 5)",
    {
      type: "subscribe",
      query: { ...one, from: [table("t")] },
      options: [option("batch_size", integer(5))],
    },
  ],
  ["BACKUP DATABASE TO 'd'", { type: "backup", target: "d" }],
  ["EXPORT USER DATA", { type: "export user data" }],
  ["SHOW EXPORT", { type: "show export" }],
  [
    "RESTORE DATABASE FROM 'd' TO SEQ 9007199254740993",
    { type: "restore", source: "d", to: { type: "seq", text: "9007199254740993" } },
  ],
  [
    "RESTORE DATABASE FROM 'd' TO TIMESTAMP 'x'",
    { type: "restore", source: "d", to: { type: "timestamp", value: "x" } },
  ],
])("parseStatements, %s", (text, expected) => {
  expect(treeOf(text)).toEqual(expected);
});

test("parseStatements splits at semicolons and skips empty statements", () => {
  const text = ";; SELECT 1;\nSELECT 'a;b' /* ; */ -- ;\n ;; ";
  const ranges = parseStatements(text).map(({ _location }) =>
    text.slice(_location.start, _location.end),
  );
  expect(ranges).toEqual(["SELECT 1", "SELECT 'a;b'"]);
});

test("parseStatements keeps the texts that the catalog stores", () => {
  const [create, view, subscribe, subscribeTable] = parseStatements(
    "CREATE TABLE t (a INT DEFAULT (1 + 2) CHECK ( a > 0 )); CREATE VIEW v AS SELECT 1 ;" +
      "SUBSCRIBE TO SELECT a FROM t OPTIONS (from = 1); SUBSCRIBE TO n.t WHERE a;",
  );
  const constraints = create?.type === "create table" ? create.columns[0]?.constraints : [];
  expect(constraints?.map((one_) => ("source" in one_ ? one_.source : ""))).toEqual([
    "(1 + 2)",
    "a > 0",
  ]);
  expect(view?.type === "create view" && view.source).toBe("SELECT 1");
  expect(subscribe?.type === "subscribe" && subscribe.source).toBe("SELECT a FROM t");
  expect(subscribeTable?.type === "subscribe" && subscribeTable.source).toBe(
    "SELECT * FROM n.t WHERE a",
  );
});

test("parseStatements records the position of every node", () => {
  const text = "SELECT a.b, (1 + x) * 2 FROM n.t AS k WHERE f(y) = 'z'";
  const [node] = parseStatements(text);
  const found: string[] = [];
  const visit = (value: unknown): void => {
    if (typeof value !== "object" || value === null) return;
    if ("_location" in value) {
      const { start, end } = value._location as { start: number; end: number };
      found.push(text.slice(start, end));
    } else if ("name" in value || "type" in value) {
      found.push("a node without place");
    }
    for (const [key, inner] of Object.entries(value)) if (key !== "_location") visit(inner);
  };
  visit(node);
  expect(found).not.toContain("a node without place");
  for (const part of ["a.b", "(1 + x) * 2", "1 + x", "n.t AS k", "f(y) = 'z'", "f(y)", "'z'"]) {
    expect(found).toContain(part);
  }
});

test("parseStatements turns long VALUES lists into one compact node with exact cells", () => {
  const rows = Array.from({ length: 33 }, (_, row) => `(${row}, -1.50, E'a\\n')`).join(",");
  const [statement] = parseStatements(`INSERT INTO t VALUES ${rows}, (NULL, TRUE, DEFAULT)`);
  const values = statement?.type === "insert" ? statement.insert : undefined;
  expect(values?.type).toBe("literal values");
  if (values?.type !== "literal values") return;
  expect([values.rowCount, values.columnCount]).toEqual([34, 3]);
  expect([...values.kinds.slice(0, 3), ...values.kinds.slice(-3)]).toEqual([4, 5, 7, 0, 3, 1]);
  expect([3, 4, 5].map((cell) => literalText(values, cell))).toEqual(["1", "-1.50", "a\n"]);
  expect(literalPosition(values, 0)).toBe("INSERT INTO t VALUES (".length);
});

test.each([
  ["an expression among the cells", "(1 + 1, 2)", ""],
  ["a shorter row", "(1)", ""],
  ["an ORDER BY behind", "(1, 2)", " ORDER BY 1"],
])("parseStatements, VALUES with %s stays ordinary", (_, row, tail) => {
  const rows = Array.from({ length: 40 }, () => "(1, 2)").join(", ");
  const [statement] = parseStatements(`INSERT INTO t VALUES ${rows}, ${row}${tail}`);
  expect(statement?.type === "insert" && statement.insert.type).toBe("values");
});

test.each([
  ["longer than the others", "x".repeat(200), "a"],
  ["shorter than the others", "", "x".repeat(50)],
])("parseStatements keeps every cell where the first row is %s", (_, first, other) => {
  const texts = [first, ...Array.from({ length: 9000 }, (__, row) => `${other}${row}`)];
  const rows = texts.map((text, row) => `(${row}, '${text}')`);
  const [statement] = parseStatements(`INSERT INTO t VALUES ${rows.join(", ")}`);
  const values = statement?.type === "insert" ? statement.insert : undefined;
  if (values?.type !== "literal values") throw new Error("the list is compact");
  expect([values.rowCount, values.columnCount]).toEqual([9001, 2]);
  const read = texts.map((_text, row) => literalText(values, 2 * row + 1));
  expect(read).toEqual(texts);
});

test("parseRequest reads a list from the UTF-8 that the caller supplies", () => {
  const list = Array.from({ length: 40 }, (_, row) => `(${row}, 'a', '${row}')`).join(", ");
  const text = `INSERT INTO t VALUES ${list}`;
  const padded = Buffer.from(`  ${text}  `);
  const { statements } = parseRequest(text, undefined, padded.subarray(2, -2));
  expect(bare(statements)).toEqual(bare(parseRequest(text).statements));
});

test("literalValuesToRows returns the same rows as an ordinary list", () => {
  const rows = Array.from({ length: 40 }, (_, row) => `(${row}, -1.50, 'a', NULL, TRUE, DEFAULT)`);
  const [long] = parseStatements(`INSERT INTO t VALUES ${rows.join(", ")}`);
  const [short] = parseStatements(`VALUES ${rows.join(", ")}`);
  const values = long?.type === "insert" ? long.insert : undefined;
  if (values?.type !== "literal values") throw new Error("the list is compact");
  expect(bare(literalValuesToRows(values))).toEqual(bare(short));
});
