/** Verifies that every other statement form produces the node described in `ast.ts`. */
import { expect, test } from "bun:test";
import {
  equals,
  integer,
  name,
  one,
  option,
  qname,
  ref,
  select,
  star,
  string,
  type Tree,
  table,
  treeOf,
  word,
} from "./trees.ts";

test.each<[string, Tree]>([
  [
    'CREATE SCHEMA IF NOT EXISTS n AUTHORIZATION "Bob"',
    { type: "create namespace", name: name("n"), ifNotExists: true, authorization: name("Bob") },
  ],
  [
    "CREATE SCHEMA AUTHORIZATION bob CREATE SEQUENCE s CREATE SEQUENCE bob.t",
    {
      type: "create namespace",
      name: name("bob"),
      authorization: name("bob"),
      elements: [
        { type: "create sequence", name: name("s"), options: [] },
        { type: "create sequence", name: qname("bob", "t"), options: [] },
      ],
    },
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
