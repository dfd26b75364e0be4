/**
 * Lists mistakes that people who know MySQL, SQLite, SQL Server, Oracle or PostgreSQL make, and
 * mistakes of newcomers. Each has the text at which its error must point, and the hint.
 */

export type Mistake = readonly [sql: string, at: string, hint: string];

const ALIAS =
  "this is an alias from the select list, which can be used only in ORDER BY and GROUP BY, " +
  "and only as a whole expression; repeat the aliased expression, or select from a subquery " +
  "that defines the alias";

const ALIASES: readonly Mistake[] = [
  ["SELECT k + 1 AS b FROM demo.kv WHERE b > 2", "b > 2", ALIAS],
  ["SELECT count(*) AS kk FROM demo.kv GROUP BY v HAVING kk > 1", "kk > 1", ALIAS],
  ["SELECT k + 1 AS b, b * 2 FROM demo.kv", "b * 2 FROM demo.kv", ALIAS],
  ["SELECT k + 1 AS b FROM demo.kv GROUP BY b + 1", "b + 1", ALIAS],
  ["SELECT k + 1 AS b FROM demo.kv ORDER BY b + 1", "b + 1", ALIAS],
  ["SELECT 1 AS b WHERE b > 2", "b > 2", ALIAS],
];

const VARIABLE =
  "@ computes the absolute value of a number; parameters are written as $1, and their values " +
  "are passed in params";

const VARIABLES: readonly Mistake[] = [
  ["SELECT * FROM demo.kv WHERE k = @key", "key", VARIABLE],
  ["SELECT * FROM demo.kv WHERE k=@kk", "kk", VARIABLE],
  ["SELECT * FROM demo.kv WHERE v = @v", "@v", VARIABLE],
  ["INSERT INTO demo.kv VALUES (@k, 'x')", "k, 'x')", VARIABLE],
];

const NAMES: readonly Mistake[] = [
  ...ALIASES,
  ...VARIABLES,
  [
    "SELECT * FROM notes",
    "notes",
    "did you mean demo.notes? Unqualified names refer to the namespace default, unless USE or the request sets a different one",
  ],
  [
    "INSERT INTO notes (title) VALUES ('a')",
    "notes (title) ",
    "did you mean demo.notes? Unqualified names refer to the namespace default, unless USE or the request sets a different one",
  ],
  [
    "DROP TABLE kv",
    "kv",
    "did you mean demo.kv? Unqualified names refer to the namespace default, unless USE or the request sets a different one",
  ],
  ["SELECT * FROM public.notes", "public.notes", "did you mean demo.notes?"],
  [
    "SELECT * FROM nowhere",
    "nowhere",
    "Unqualified names refer to the namespace default, unless USE or the request sets a " +
      "different one",
  ],
  [
    "SELECT * FROM note",
    "note",
    "did you mean demo.notes? Unqualified names refer to the namespace default, unless USE or the request sets a different one",
  ],
  [
    "SELECT v REGEXP 'x' FROM demo.kv",
    "REGEXP 'x' FROM demo.kv",
    "write name ~ 'pattern', or to ignore case, name ~* 'pattern'",
  ],
  [
    "SELECT v GLOB 'x*' FROM demo.kv",
    "GLOB 'x*' FROM demo.kv",
    "write name LIKE 'pattern%', where % matches any string and _ matches any character",
  ],
  [
    "SELECT 5 XOR 3",
    "XOR 3",
    "write != between conditions, or # between integers for a bitwise XOR",
  ],
  ["SELECT v FROM demo.kv LIMIT 5 10", "10", "write LIMIT count OFFSET start"],
  [
    "SELECT JSON_OBJECT('a', 1)",
    "JSON_OBJECT('a', 1)",
    "write json_build_object('id', 1, 'name', 'Ada')",
  ],
  [
    "SHOW CREATE VIEW demo.v",
    "CREATE VIEW demo.v",
    "write SELECT view_definition FROM information_schema.views",
  ],
  [
    'INSERT INTO demo.kv VALUES (1, {"a":1})',
    '{"a":1})',
    "write parameters as $1, $2, …, and send their values in the same order in params; write JSON " +
      `values as strings: '{"a": 1}'`,
  ],
  ["SELECT * FROM dual", "dual", "To get a single row, use SELECT without FROM"],
  ["SELECT * FROM demo.dbo.notes", ".notes", "a table name has at most two parts: namespace.table"],
  [
    "SELECT id, title",
    "id, title",
    "the query has no FROM; write FROM namespace.table; write strings in single quotes",
  ],
  ["SELECT *", "*", "add FROM, as in SELECT * FROM namespace.table"],
  ["SELECT notes.title", "notes.title", "the query has no FROM; write FROM namespace.table"],
  ["SELECT id, title demo.notes", "demo.notes", "there is no FROM before the table"],
  ["SELECT * demo.notes", "demo.notes", "there is no FROM before the table"],
  [
    "SELECT doc.name FROM demo.notes",
    "doc.name FROM ",
    "to read a field of the column, write doc ->> 'field'",
  ],
  [
    "SELECT * FROM `demo`.`notes`",
    "`demo`.`notes`",
    'put names that need quotes in double quotes: "name"',
  ],
  [
    "SELECT * FROM [demo].[notes]",
    "[demo].[notes]",
    'put names that need quotes in double quotes: "name"',
  ],
  [
    'SELECT * FROM demo.kv WHERE v = "a"',
    '"a"',
    "double quotes enclose names; write strings in single quotes",
  ],
  ["SELECT * FROM demo.kv WHERE v = ‘a’", "‘a’", "put strings in straight single quotes: 'text'"],
  [
    "SELECT * FROM demo.kv WHERE v = “a”",
    "“a”",
    "use straight quotes: single quotes for strings ('text'), double quotes for names",
  ],
  [
    "INSERT INTO demo.kv VALUES (1, a)",
    "a)",
    "the query has no FROM; write FROM namespace.table; write strings in single quotes",
  ],
  [
    "CREATE TABLE demo.t (id INT PRIMARY KEY, order INT)",
    "order INT)",
    'to use it as a name, put it in double quotes: "order"',
  ],
  [
    "CREATE TABLE demo.t (id INT PRIMARY KEY, group TEXT)",
    "group TEXT)",
    'to use it as a name, put it in double quotes: "group"',
  ],
  [
    "CREATE TABLE demo.t (id INT PRIMARY KEY, first-name TEXT)",
    "-name TEXT)",
    'put a name that contains characters other than letters, digits and "_" in double ' +
      'quotes: "a-b"',
  ],
];

const PARAMETERS: readonly Mistake[] = [
  [
    "SELECT * FROM demo.kv WHERE k = ?",
    "?",
    "write parameters as $1, $2, …, and send their values in the same order in params",
  ],
  [
    "SELECT * FROM demo.kv WHERE k = :id",
    ":id",
    "write parameters as $1, $2, …, and send their values in the same order in params",
  ],
  [
    "SELECT * FROM demo.kv WHERE k = %s",
    "%s",
    "write parameters as $1, $2, …, and send their values in the same order in params",
  ],
  [
    "SELECT * FROM demo.kv WHERE k = ${id}",
    "${id}",
    "write parameters as $1, $2, …, and send their values in the same order in params",
  ],
  [
    "SELECT * FROM demo.kv LIMIT ? OFFSET ?",
    "? OFFSET ?",
    "write parameters as $1, $2, …, and send their values in the same order in params",
  ],
  [
    "INSERT INTO demo.kv VALUES (?, ?)",
    "?, ?)",
    "write parameters as $1, $2, …, and send their values in the same order in params",
  ],
  [
    "INSERT INTO demo.kv VALUES (:k, :v)",
    ":k, :v)",
    "write parameters as $1, $2, …, and send their values in the same order in params",
  ],
  [
    "SET @x = 1",
    "@x = 1",
    "SQL variables are not supported: write the value, or pass it as a parameter, $1",
  ],
];

const OPERATORS: readonly Mistake[] = [
  [
    "SELECT * FROM demo.kv WHERE k == 1",
    "= 1",
    "to compare values, write a single =, as in price = 10",
  ],
  ["SELECT * FROM demo.kv WHERE k =< 1", "=< 1", "write price <= 10"],
  [
    "SELECT * FROM demo.kv WHERE k = 1 && v = 'a'",
    "&& v = 'a'",
    "&& tests whether arrays overlap; to combine conditions, use AND",
  ],
  [
    "SELECT * FROM demo.kv WHERE k = 1 || v = 'a'",
    "|| v = 'a'",
    "|| concatenates strings; to combine conditions, use OR",
  ],
  [
    "SELECT * FROM demo.kv WHERE (k = 1) || (v = 'a')",
    "(k = 1) || (v ",
    "|| concatenates strings; to combine conditions, use OR",
  ],
  [
    "SELECT * FROM demo.kv WHERE v <=> 'a'",
    "v <=> 'a'",
    "write name IS NOT DISTINCT FROM other_name",
  ],
  ["SELECT * FROM demo.kv WHERE !(k = 1)", "!(k = 1)", "write NOT before a condition"],
  [
    "SELECT * FROM demo.kv WHERE v REGEXP 'a'",
    "REGEXP 'a'",
    "write name ~ 'pattern', or to ignore case, name ~* 'pattern'",
  ],
  [
    "SELECT * FROM demo.kv WHERE v RLIKE 'a'",
    "RLIKE 'a'",
    "write name ~ 'pattern', or to ignore case, name ~* 'pattern'",
  ],
  [
    "SELECT * FROM demo.kv WHERE k IS 1",
    "1",
    "IS tests only for NULL, TRUE, FALSE or UNKNOWN; to compare values, use = or !=",
  ],
  ["SELECT * FROM demo.kv WHERE k NOT NULL", "NOT NULL", "write name IS NOT NULL"],
  ["SELECT * FROM demo.kv WHERE k IN 1, 2", "1, 2", "write a list in parentheses: id IN (1, 2)"],
  ["SELECT 'a' + 'b'", "'a' + 'b'", "write first_name || last_name"],
  ["SELECT 2 ** 3", "* 3", "write power(width, 2), or width ^ 2"],
  ["SELECT 10 DIV 3", "DIV 3", "for the remainder, write %; for the quotient of integers, write /"],
  [
    "SELECT now() - INTERVAL 1 DAY",
    "INTERVAL 1 DAY",
    "write the amount and its unit in quotes: INTERVAL '1 day'",
  ],
  ["SELECT now() + 1", "now() + 1", "write sent_at + INTERVAL '1 day'"],
  [
    "SELECT * FROM demo.notes WHERE at > 2024-01-01",
    "at > 2024-01-0",
    "write dates in quotes: '2026-01-31'",
  ],
  [
    "SELECT doc:name FROM demo.notes",
    ":name FROM dem",
    "to read a JSON field, write doc ->> 'city'; to cast a value, write value::type",
  ],
];

const CLAUSES: readonly Mistake[] = [
  ["SELECT TOP 10 * FROM demo.kv", "TOP 10 * FROM ", "write LIMIT n at the end of the query"],
  ["SELECT TOP (10) * FROM demo.kv", "TOP (10) * FRO", "write LIMIT n at the end of the query"],
  [
    "SELECT * FROM demo.kv LIMIT 5, 10",
    ", 10",
    "write LIMIT count OFFSET start instead of LIMIT start, count",
  ],
  [
    "SELECT * FROM demo.kv WITH (NOLOCK)",
    "WITH (NOLOCK)",
    "remove it: reads never wait for writers",
  ],
  [
    "SELECT * FROM demo.kv LOCK IN SHARE MODE",
    "LOCK IN SHARE ",
    "remove it: if two transactions conflict, the second one to commit fails",
  ],
  ["SELECT k FROM demo.kv MINUS SELECT 1", "MINUS SELECT 1", "write EXCEPT"],
  [
    "SELECT k FROM demo.kv CROSS APPLY demo.notes",
    "CROSS APPLY de",
    "write CROSS JOIN LATERAL, or LEFT JOIN LATERAL … ON TRUE",
  ],
  [
    "SELECT k FROM demo.kv JOIN demo.notes",
    "",
    "every join except CROSS JOIN needs a condition: ON orders.user_id = users.id, or USING (user_id)",
  ],
  [
    "SELECT k FROM demo.kv ORDER BY k WHERE k = 1",
    "WHERE k = 1",
    "write the clauses in this order: FROM, WHERE, GROUP BY, HAVING, ORDER BY, LIMIT and OFFSET",
  ],
  [
    "SELECT k FROM demo.kv LIMIT 1 ORDER BY k",
    "ORDER BY k",
    "write the clauses in this order: FROM, WHERE, GROUP BY, HAVING, ORDER BY, LIMIT and OFFSET",
  ],
  ["SELECT k FROM demo.kv ORDER k", "k", "write ORDER BY"],
  [
    "SELECT k FROM demo.kv WHERE count(*) > 1",
    "count(*) > 1",
    "move conditions on aggregates to HAVING",
  ],
  ["SELECT k, FROM demo.kv", "FROM demo.kv", "remove the comma before this token"],
  ["SELECT k FROM demo.kv WHERE k IN (1, 2,)", ")", "remove the comma before this token"],
  ["SELECT k FROM demo.kv WHERE k = 1 AND", "", "a condition is missing here"],
  ["SELECT k FROM demo.kv # comment", "# comment", "write comments as -- … or /* … */"],
  ["SELECT k FROM demo.kv // comment", "// comment", "write comments as -- … or /* … */"],
];

const CHANGES: readonly Mistake[] = [
  [
    "REPLACE INTO demo.kv VALUES (1, 'a')",
    "REPLACE INTO d",
    "write INSERT INTO t (…) VALUES (…) ON CONFLICT (key) DO UPDATE SET name = EXCLUDED.name",
  ],
  [
    "INSERT IGNORE INTO demo.kv VALUES (1, 'a')",
    "IGNORE INTO de",
    "write INSERT INTO t (…) VALUES (…) ON CONFLICT (key) DO NOTHING",
  ],
  [
    "INSERT OR REPLACE INTO demo.kv VALUES (1, 'a')",
    "OR REPLACE INT",
    "write INSERT INTO t (…) VALUES (…) ON CONFLICT (key) DO UPDATE SET name = EXCLUDED.name",
  ],
  [
    "INSERT INTO demo.kv VALUES (1, 'a') ON DUPLICATE KEY UPDATE v = 'b'",
    "DUPLICATE KEY ",
    "write ON CONFLICT (key) DO UPDATE SET name = EXCLUDED.name",
  ],
  [
    "INSERT INTO demo.kv SET k = 1, v = 'a'",
    "SET k = 1, v =",
    "write INSERT INTO t (id, name) VALUES (1, 'Ada')",
  ],
  ["INSERT demo.kv VALUES (1, 'a')", "demo.kv VALUES", "write INSERT INTO"],
  [
    "INSERT INTO demo.kv (k, v) VALUES 1, 'a'",
    "VALUES 1, 'a'",
    "write each row in parentheses: VALUES (1, 'Ada')",
  ],
  [
    "INSERT INTO demo.kv (k, v) VALUES (1, 'it's')",
    "')",
    "to include a quote in a string, write it twice: 'it''s'",
  ],
  ["UPDATE demo.kv SET v = 'a', WHERE k = 1", "WHERE k = 1", "remove the comma before this token"],
  [
    "UPDATE demo.kv SET v = 'a' WHERE k = 1 LIMIT 1",
    "LIMIT 1",
    "select the rows by key: WHERE id IN (SELECT id FROM t … LIMIT n)",
  ],
  [
    "UPDATE demo.kv a JOIN demo.notes b ON a.k = b.id SET v = 'x'",
    "JOIN demo.note",
    "write UPDATE t SET … FROM other WHERE t.id = other.id",
  ],
  ["DELETE demo.kv WHERE k = 1", "demo.kv WHERE ", "write DELETE FROM t WHERE …"],
  [
    "DELETE FROM demo.kv k JOIN demo.notes n ON n.id = k.k",
    "JOIN demo.note",
    "write DELETE FROM t USING other WHERE t.id = other.id",
  ],
];

const DEFINITIONS: readonly Mistake[] = [
  [
    "CREATE TABLE demo.t (id TEXT PRIMARY KEY AUTO_INCREMENT)",
    "TEXT PRIMARY K",
    "write id BIGINT PRIMARY KEY GENERATED BY DEFAULT AS IDENTITY",
  ],
  [
    "CREATE TABLE demo.t (id INTEGER PRIMARY KEY AUTOINCREMENT)",
    "AUTOINCREMENT)",
    "write id BIGINT PRIMARY KEY AUTO_INCREMENT, or DEFAULT SNOWFLAKE_ID()",
  ],
  [
    "CREATE TABLE demo.t (id INT IDENTITY(1,1) PRIMARY KEY)",
    "IDENTITY(1,1) ",
    "write id BIGINT PRIMARY KEY AUTO_INCREMENT, or DEFAULT SNOWFLAKE_ID()",
  ],
  [
    "CREATE TABLE demo.t (id UUID PRIMARY KEY AUTO_INCREMENT)",
    "UUID PRIMARY K",
    "write id UUID PRIMARY KEY DEFAULT gen_random_uuid()",
  ],
  [
    "CREATE TABLE demo.t (id INT UNSIGNED PRIMARY KEY)",
    "UNSIGNED PRIMA",
    "remove it: all integers are signed; use BIGINT for values that need an unsigned INT",
  ],
  ["CREATE TABLE demo.t (id INT(11) PRIMARY KEY)", "INT(11) PRIMAR", "write INT without a size"],
  [
    "CREATE TABLE demo.t (id INT PRIMARY KEY, s ENUM('a', 'b'))",
    "ENUM('a', 'b')",
    "write TEXT CHECK (state IN ('open', 'closed'))",
  ],
  [
    "CREATE TABLE demo.t (id INT PRIMARY KEY, s NVARCHAR(MAX))",
    "MAX))",
    "write TEXT, which has no length limit",
  ],
  ["CREATE TABLE demo.t (id INT PRIMARY KEY, s VARCHAR2(20))", "VARCHAR2(20))", "write TEXT"],
  ["CREATE TABLE demo.t (id INT PRIMARY KEY, s DATETIME2)", "DATETIME2)", "write TIMESTAMP"],
  ["CREATE TABLE demo.t (id INT PRIMARY KEY, s TEXT) ENGINE=InnoDB", "ENGINE=InnoDB", "omit it"],
  [
    "CREATE TABLE demo.t (id INT PRIMARY KEY, s TEXT, INDEX (s))",
    "INDEX (s))",
    "write UNIQUE (email), or a separate statement: CREATE INDEX ON users (email)",
  ],
  [
    "SELECT * FROM demo.kv FORCE INDEX (k)",
    "FORCE INDEX (k)",
    "remove it: the server chooses the index",
  ],
  [
    "CREATE TABLE demo.t (id INT PRIMARY KEY, s ARRAY<TEXT>)",
    "ARRAY<TEXT>)",
    "write INT[] for an array of integers, or JSONB for a document",
  ],
  [
    "CREATE TABLE demo.t (id INT PRIMARY KEY, s MAP<TEXT, INT>)",
    "<TEXT, INT>)",
    "write INT[] for an array of integers, or JSONB for a document",
  ],
  [
    "CREATE TABLE demo.t (id INT PRIMARY KEY, s LIST)",
    "LIST)",
    "write INT[] for an array of integers",
  ],
  [
    "CREATE TABLE demo.t (id INT PRIMARY KEY, s INT AS (id + 1))",
    "AS (id",
    "write total INT GENERATED ALWAYS AS (price * amount) STORED",
  ],
  ["CREATE TABLE demo.t (id INT PRIMARY KEY, s TEXT,)", ")", "remove the comma before this token"],
  [
    "CREATE TABLE demo.t (id PRIMARY KEY)",
    "id PRIMARY KEY",
    "write a type after the column name: id BIGINT",
  ],
  [
    "CREATE TABLE IF NOT EXIST demo.t (id INT PRIMARY KEY)",
    "IF NOT EXIST d",
    "write IF EXISTS, or IF NOT EXISTS",
  ],
  ["SELECT 'demo.kw'::regclass", "", "to_regclass(name) returns NULL for an unknown name"],
  ["SELECT '+'::regoper", "regoper", "write TEXT with the name"],
  ["SELECT CAST(k AS UNSIGNED) FROM demo.kv", "UNSIGNED) FROM", "write BIGINT"],
  ["CREATE USER bob IDENTIFIED BY 'correct horse 9'", "IDENTIFIED BY ", "write PASSWORD '…'"],
  [
    'CREATE USER bob PASSWORD "correct horse 9"',
    '"correct horse',
    "write strings in single quotes: 'text'",
  ],
  [
    "ALTER USER bob WITH PASSWORD 'correct horse 9'",
    "WITH PASSWORD ",
    "write ALTER USER name SET PASSWORD '…'",
  ],
];

const FUNCTIONS: readonly Mistake[] = [
  ["SELECT IFNULL(v, 'a') FROM demo.kv", "IFNULL(v, 'a')", "write COALESCE(name, 'unknown')"],
  ["SELECT NVL(v, 'a') FROM demo.kv", "NVL(v, 'a') FR", "write COALESCE(name, 'unknown')"],
  [
    "SELECT ISNULL(v) FROM demo.kv",
    "ISNULL(v) FROM",
    "write name IS NULL, or COALESCE(name, 'unknown')",
  ],
  [
    "SELECT GROUP_CONCAT(v) FROM demo.kv",
    "GROUP_CONCAT(v",
    "write string_agg(name, ',' ORDER BY name)",
  ],
  [
    "SELECT GROUP_CONCAT(DISTINCT v) FROM demo.kv",
    "GROUP_CONCAT(D",
    "write string_agg(name, ',' ORDER BY name)",
  ],
  [
    "SELECT GROUP_CONCAT(v SEPARATOR ', ') FROM demo.kv",
    "SEPARATOR ', '",
    "write string_agg(name, ', ' ORDER BY name)",
  ],
  [
    "SELECT DATEDIFF(now(), now())",
    "DATEDIFF(now()",
    "write DATE '2026-02-01' - DATE '2026-01-31', or age(ended_at, started_at)",
  ],
  ["SELECT DATE_ADD(now(), '1 day')", "DATE_ADD(now()", "write sent_at + INTERVAL '1 day'"],
  [
    "SELECT STRFTIME('%Y', now())",
    "STRFTIME('%Y',",
    "write to_char(sent_at, 'YYYY-MM-DD HH24:MI:SS')",
  ],
  [
    "SELECT DATE_FORMAT(now(), '%Y')",
    "DATE_FORMAT(no",
    "write to_char(sent_at, 'YYYY-MM-DD HH24:MI:SS')",
  ],
  ["SELECT GETDATE()", "GETDATE()", "write now(), or CURRENT_DATE"],
  [
    "SELECT JSON_EXTRACT(doc, '$.a') FROM demo.notes",
    "JSON_EXTRACT(d",
    "write doc ->> 'city', or doc #>> '{address,city}'",
  ],
  ["SELECT UUID()", "UUID()", "write gen_random_uuid()"],
  [
    "SELECT LEN(v) FROM demo.kv",
    "LEN(v) FROM de",
    "write length(name), or octet_length(name) for bytes",
  ],
  [
    "SELECT CHARINDEX('a', v) FROM demo.kv",
    "CHARINDEX('a',",
    "write position('x' IN name), or strpos(name, 'x')",
  ],
  ["SELECT LAST_INSERT_ID()", "LAST_INSERT_ID", "write INSERT INTO … RETURNING id"],
  ["SELECT TRY_CAST(v AS INT) FROM demo.kv", "TRY_CAST(v AS ", "write CAST(code AS INT)"],
  [
    "SELECT IF(k = 1, 'a', 'b') FROM demo.kv",
    "IF(k = 1, 'a',",
    "write CASE WHEN price > 10 THEN 'high' ELSE 'low' END",
  ],
  ["SELECT CURRENT_DATE()", "()", "remove the parentheses"],
];

const SIBLINGS: readonly Mistake[] = [
  [
    "SELECT * FROM users",
    "users",
    "did you mean system.users? Unqualified names refer to the namespace default, unless USE or the request sets a different one",
  ],
  [
    "SELECT * FROM tables",
    "tables",
    "did you mean system.tables or information_schema.tables? Unqualified names refer to the namespace default, unless USE or the request sets a different one",
  ],
  [
    "SELECT * FROM sqlite_master",
    "sqlite_master",
    "Tables and views are listed in information_schema.tables",
  ],
  [
    "SELECT count(*) FROM pg_stat_activity",
    "pg_stat_activ",
    "Running statements are in system.queries, connections in system.connections",
  ],
  ["SELECT 1 FROM pg_catalog.pg_indexes", "pg_catalog.pg", "Indexes are listed in system.indexes"],
  [
    "SELECT relname FROM pg_catalog.pg_class",
    "pg_catalog.pg",
    "Tables and views are listed in information_schema.tables",
  ],
  [
    "INSERT INTO demo.kv VALUES (1, 'x') ON CONFLICT (k) DO NOTHING RETURNING xmax = 0",
    "xmax = 0",
    "rows have no such column; to see whether an upsert inserted a row, use MERGE with RETURNING " +
      "merge_action()",
  ],
  [
    "SELECT pg_total_relation_size('demo.kv')",
    "pg_total_relation_",
    "write SELECT sum(size_bytes) FROM system.segments WHERE table_name = 'articles'",
  ],
  ["SELECT now() - interval $1", "interval $1", "write $1::interval"],
  ["SELECT * FROM $1", "$1", "a parameter is a value; write the name of the table in the SQL"],
  ["SELECT auth.uid()", "auth.uid()", "write CURRENT_USER"],
  [
    "SELECT cron.schedule('* * * * *', 'SELECT 1')",
    "cron.schedule(",
    "the server has no timer; let a program run the statement, with a token of CREATE TOKEN",
  ],
  ["SELECT digest('a', 'sha256')", "digest('a'", "write sha256(data), or md5(text)"],
  ["UPDATE demo.notes SET titel = 'x'", "titel = ", 'did you mean "title"?'],
  ["INSERT INTO demo.notes (titel) VALUES ('x')", "titel) ", 'did you mean "title"?'],
  ["CREATE TABLE demo.t (id INTT)", "INTT)", "write int"],
  [
    "SELECT k FROM demo.kv WHERE k = 1 FOR SYSTEM_TIME AS OF now()",
    "FOR SYSTEM",
    "write it directly after the name of the table: FROM app.articles FOR SYSTEM_TIME AS OF now()",
  ],
  [
    "SELECT * FROM 'demo.kv'",
    "'demo.kv'",
    "write names without quotes, or in double quotes: namespace.table",
  ],
  [
    "SHOW TABLES FROM demo LIKE 'k%'",
    "LIKE 'k%'",
    "SELECT table_name FROM information_schema.tables WHERE table_name LIKE '…'",
  ],
  ["SELECT * FROM demo.kv WHERE EXISTS SELECT 1", "SELECT 1", "write a query in parentheses"],
  ["SELECT CAST('a' INT)", "INT)", "write CAST(code AS INT)"],
  ["SELECT EXTRACT(YEAR, now())", ", now())", "write EXTRACT(YEAR FROM sent_at)"],
  ["SELECT DATEADD(day, 1, now())", "DATEADD(day, 1", "write sent_at + INTERVAL '1 day'"],
  ["SELECT count()", "count()", "write count(*), or count(name)"],
  ["SELECT 1 < 2 < 3", "< 3", "write a < b AND b < c"],
  [
    "SELECT point '(1,2)' = point '(1,2)'",
    "point '(1,2)' = ",
    "to test whether two shapes are the same, write a ~= b",
  ],
  [
    "SELECT 1 FROM demo.kv GROUP BY point(1, 2)",
    "point(1, 2)",
    "use a number, such as p[0] or p <-> point '(0,0)', or the text form, p::text",
  ],
  ["INSERT INTO TABLE demo.kv VALUES (1, 'a')", "TABLE demo.kv ", "omit TABLE"],
  ["UPDATE FROM demo.kv SET v = 'a'", "FROM demo.kv S", "write UPDATE t SET price = 1"],
  [
    "UPDATE demo.kv AS x SET x.v = 'a'",
    "x.v = 'a'",
    'if "v" is a column, write it without the name of its table',
  ],
  ["CREATE TABLE demo.t (id INT PRIMARY, v TEXT)", ", v TEXT)", "write PRIMARY KEY"],
  ["CREATE TABLE demo.t (id INT KEY, v TEXT)", "KEY, v TEXT)", "write PRIMARY KEY"],
  ["CREATE TABLE demo.t (id INT PRIMARY KEY v TEXT)", "v TEXT)", "a comma is missing here"],
  ["CREATE TABLE demo.t (id: INT PRIMARY KEY)", ": INT PRIMARY ", "write the name without a colon"],
  [
    "CREATE TABLE #tmp (id INT)",
    "#tmp (id INT)",
    "write CREATE TEMPORARY TABLE in a transaction; the table is dropped when the " +
      "transaction ends",
  ],
  [
    "CREATE VIEW IF NOT EXISTS demo.v AS SELECT 1",
    "IF NOT EXISTS ",
    "write CREATE OR REPLACE VIEW",
  ],
  ["CREATE OR ALTER VIEW demo.v AS SELECT 1", "OR ALTER VIEW ", "write CREATE OR REPLACE VIEW"],
  ["SET statement_timeout 5000", "5000", "write SET name = value"],
  ["EXPLAIN demo.kv", "demo.kv", "to see the columns of a table, run DESCRIBE t"],
];

export const MISTAKES: readonly Mistake[] = [
  ...NAMES,
  ...PARAMETERS,
  ...OPERATORS,
  ...CLAUSES,
  ...CHANGES,
  ...DEFINITIONS,
  ...FUNCTIONS,
  ...SIBLINGS,
];
