/** Recognises constructs that are not supported, and suggests alternatives. */
import type { Cursor } from "./cursor.ts";
import { Token } from "./text/lexer.ts";

const RIGHTS =
  "rights depend on roles (CREATE USER … ROLE) and on ALTER TABLE … SET ACCESS LEVEL; to dump " +
  "without GRANT, use pg_dump --no-privileges";
const INDEX_HINT = "write CREATE INDEX name ON table_name (column_name)";
const LIVE = "to receive changes as they are committed, use live queries";

const OWN_ROWS =
  "set ACCESS_LEVEL = 'RESTRICTED' on a SHARED table, and allow access to rows with CREATE POLICY";
const COPYING = "send COPY t FROM STDIN or COPY t TO STDOUT to POST /v1/api/copy";
const ON_CONFLICT =
  "write INSERT INTO t (…) VALUES (…) ON CONFLICT (key) DO UPDATE SET name = EXCLUDED.name";
const NO_PROGRAMS = "write DO $$ BEGIN … END $$, or create a function with LANGUAGE plpgsql";
const NO_DIRECTORY =
  "a data directory contains a single database; to divide it, use CREATE NAMESPACE";

type Refused = readonly [construct: string, hint?: string];

/** Unsupported statements, keyed by their first word. */
export const REFUSED_STATEMENTS: ReadonlyMap<string, Refused> = new Map<string, Refused>([
  ["bulk", ["BULK INSERT", COPYING]],
  ["replace", ["REPLACE INTO", ON_CONFLICT]],
  ["upsert", ["UPSERT", ON_CONFLICT]],
  ["optimize", ["OPTIMIZE TABLE", "to merge segments, use STORAGE COMPACT TABLE"]],
  ["repair", ["REPAIR TABLE", "stop the server and run tidemark repair"]],
  ["check", ["CHECK TABLE", "stop the server and run tidemark verify"]],
  ["unlock", ["UNLOCK TABLES", "there are no table locks"]],
  ["rename", ["RENAME TABLE", "write ALTER TABLE old_name RENAME TO new_name"]],
  [
    "pragma",
    ["PRAGMA", "to see the columns of a table, use DESCRIBE t; to see the settings, use SHOW ALL"],
  ],
  ["attach", ["ATTACH", NO_DIRECTORY]],
  ["detach", ["DETACH", NO_DIRECTORY]],
  ["exec", ["EXEC of a procedure", NO_PROGRAMS]],
  ["if", ["IF", NO_PROGRAMS]],
  ["while", ["WHILE", NO_PROGRAMS]],
  ["print", ["PRINT", "to return a string, write SELECT 'text'"]],
  ["deny", ["DENY", RIGHTS]],
  ["go", ["GO", "separate statements with ;"]],
  ["quit", ["quit", "this is a shell command; to leave, close the connection"]],
  ["exit", ["exit", "this is a shell command; to leave, close the connection"]],
  [
    "help",
    ["HELP", "to list tables, use SHOW TABLES; to see the columns of a table, use DESCRIBE t"],
  ],
  ["grant", ["GRANT", RIGHTS]],
  ["revoke", ["REVOKE", RIGHTS]],
  ["listen", ["LISTEN", LIVE]],
  ["unlisten", ["UNLISTEN", LIVE]],
  ["notify", ["NOTIFY", "write a row to a STREAM table to which the receivers subscribe"]],
  ["vacuum", ["VACUUM", "to merge segments, use STORAGE COMPACT TABLE"]],
  ["analyze", ["ANALYZE", "statistics are maintained automatically"]],
  ["analyse", ["ANALYSE", "statistics are maintained automatically"]],
  [
    "reindex",
    ["REINDEX", "indexes are always up to date; to rebuild one, use DROP INDEX and CREATE INDEX"],
  ],
  ["cluster", ["CLUSTER", "to merge segments, use STORAGE COMPACT TABLE"]],
  [
    "lock",
    [
      "LOCK TABLE",
      "table locks are not needed: if two transactions conflict, the first to commit wins, and " +
        "the other can be repeated",
    ],
  ],
  ["load", ["LOAD", COPYING]],
  ["checkpoint", ["CHECKPOINT", "to write segments to disk, use STORAGE FLUSH ALL"]],
  ["import", ["IMPORT FOREIGN SCHEMA"]],
  ["security", ["SECURITY LABEL"]],
  ["reassign", ["REASSIGN OWNED", "write ALTER NAMESPACE … OWNER TO for each namespace"]],
]);

/** Rejects a statement whose first word belongs to a statement of another database system. */
export function refuseStatement(cursor: Cursor): void {
  const entry = REFUSED_STATEMENTS.get(spelling(cursor));
  if (entry !== undefined) cursor.refuse(...entry);
}

/** Hints for DROP only. All other hints apply to CREATE, ALTER and DROP alike. */
const HINTS_OF_DROP = new Map<string, string>([
  ["database", "DROP NAMESPACE"],
  ["tablespace", "DROP STORAGE"],
]);

/**
 * Objects of other systems that CREATE, ALTER and DROP do not support, keyed by the word after
 * CREATE, ALTER or DROP.
 */
export const REFUSED_OBJECTS: ReadonlyMap<string, Refused> = new Map<string, Refused>([
  ["temp", ["TEMP with objects other than tables, views and sequences", "write CREATE TEMP TABLE"]],
  [
    "temporary",
    [
      "TEMPORARY with objects other than tables, views and sequences",
      "write CREATE TEMPORARY TABLE",
    ],
  ],
  [
    "global",
    [
      "GLOBAL TEMPORARY with objects other than tables, views and sequences",
      "write CREATE TEMPORARY TABLE",
    ],
  ],
  [
    "local",
    [
      "LOCAL TEMPORARY with objects other than tables, views and sequences",
      "write CREATE TEMPORARY TABLE",
    ],
  ],
  [
    "unlogged",
    ["UNLOGGED with objects other than tables", "write CREATE SEQUENCE; all sequences are logged"],
  ],
  ["foreign", ["FOREIGN objects"]],
  ["external", ["EXTERNAL TABLE"]],
  ["virtual", ["VIRTUAL TABLE"]],
  ["fulltext", ["FULLTEXT INDEX", INDEX_HINT]],
  ["spatial", ["SPATIAL INDEX", INDEX_HINT]],
  ["clustered", ["CLUSTERED INDEX", INDEX_HINT]],
  ["nonclustered", ["NONCLUSTERED INDEX", INDEX_HINT]],
  ["routine", ["ROUTINE", "write CREATE FUNCTION or CREATE PROCEDURE"]],
  ["transform", ["TRANSFORM"]],
  ["event", ["EVENT TRIGGER", "definitions are recorded in system.audit_log"]],
  ["rule", ["RULE", "write CREATE TRIGGER, or write through a view of one table"]],
  ["extension", ["EXTENSION", "remove it: the functions are built in"]],
  ["role", ["ROLE", RIGHTS]],
  ["group", ["GROUP", RIGHTS]],
  ["owned", ["OWNED"]],
  ["database", ["DATABASE", "CREATE NAMESPACE"]],
  ["tablespace", ["TABLESPACE", "CREATE STORAGE"]],
  ["operator", ["OPERATOR"]],
  ["cast", ["CAST"]],
  ["conversion", ["CONVERSION", "text is always UTF-8"]],
  ["text", ["TEXT SEARCH", "the only text search configurations are simple and english"]],
  ["language", ["LANGUAGE"]],
  ["server", ["SERVER"]],
  ["publication", ["PUBLICATION", LIVE]],
  ["subscription", ["SUBSCRIPTION", "SUBSCRIBE TO"]],
  ["statistics", ["STATISTICS", "statistics are maintained automatically"]],
  ["access", ["ACCESS METHOD"]],
  ["login", ["LOGIN", "write CREATE USER name WITH PASSWORD '…' ROLE user"]],
  ["system", ["SYSTEM", "settings are keys in the configuration; to list them, use SHOW ALL"]],
  ["default", ["DEFAULT PRIVILEGES", RIGHTS]],
]);

/** Rejects CREATE, ALTER or DROP for a kind of object that Tidemark does not have. */
export function refuseObject(cursor: Cursor, verb: "CREATE" | "ALTER" | "DROP"): void {
  const entry = REFUSED_OBJECTS.get(spelling(cursor));
  if (entry === undefined) return;
  const [object, hint] = entry;
  const hintOfDrop = verb === "DROP" ? HINTS_OF_DROP.get(cursor.word) : undefined;
  cursor.refuse(`${verb} ${object}`, hintOfDrop ?? hint);
}

/**
 * Unsupported clauses of `ALTER TABLE t`, by their first words. A longer sequence of words
 * precedes its own prefixes.
 */
const ALTERATIONS: readonly (readonly [words: string, construct: string, hint?: string])[] = [
  ["enable row", "ENABLE ROW LEVEL SECURITY", OWN_ROWS],
  ["disable row", "DISABLE ROW LEVEL SECURITY", OWN_ROWS],
  ["force", "FORCE ROW LEVEL SECURITY", OWN_ROWS],
  ["no force", "NO FORCE ROW LEVEL SECURITY", OWN_ROWS],
  ["enable rule", "ENABLE RULE", LIVE],
  ["disable rule", "DISABLE RULE", LIVE],
  ["owner", "OWNER TO combined with another change", "write OWNER TO in a separate ALTER TABLE"],
  [
    "change",
    "CHANGE of a column",
    "first use RENAME COLUMN a TO b, then ALTER COLUMN b TYPE new_type",
  ],
  [
    "attach",
    "ATTACH PARTITION combined with another change",
    "write ATTACH PARTITION in a separate ALTER TABLE",
  ],
  [
    "detach",
    "DETACH PARTITION combined with another change",
    "write DETACH PARTITION in a separate ALTER TABLE",
  ],
  ["inherit", "INHERIT", "define the same columns in both tables"],
  ["replica", "REPLICA IDENTITY", "changes always contain old_values, without this option"],
  ["cluster", "CLUSTER ON", "rows are always stored in the order of their primary key"],
  ["engine", "ENGINE", "there is only one storage engine"],
  ["convert", "CONVERT TO CHARACTER SET", "text is always UTF-8"],
  ["comment", "COMMENT of a table", "write COMMENT ON TABLE name IS '…'"],
  ["auto_increment", "AUTO_INCREMENT of a table", "write ALTER SEQUENCE … RESTART WITH n"],
  ["drop primary", "DROP PRIMARY KEY", "create a table with the new key, and copy the rows"],
  ["drop index", "DROP INDEX of a table", "write DROP INDEX name"],
  ["drop key", "DROP KEY", "write DROP INDEX name"],
  ["drop foreign", "DROP FOREIGN KEY"],
  ["add index", "ADD INDEX", INDEX_HINT],
  ["add key", "ADD KEY", INDEX_HINT],
  ["add fulltext", "ADD FULLTEXT", INDEX_HINT],
  ["set tablespace", "SET TABLESPACE", "use the table option STORAGE_ID to choose a storage"],
  ["set logged", "SET LOGGED", "all tables are logged"],
  ["set unlogged", "SET UNLOGGED", "all tables are logged"],
  ["set without", "SET WITHOUT"],
];

/** Rejects an ALTER TABLE action that only other systems support. */
export function refuseAlteration(cursor: Cursor): void {
  refuseWords(cursor, ALTERATIONS);
}

/** Unsupported clauses of `ALTER INDEX i`, by their first words. */
const INDEX_ALTERATIONS: readonly (readonly [words: string, construct: string, hint?: string])[] = [
  ["set", "ALTER INDEX … SET", "indexes have no options"],
  ["reset", "ALTER INDEX … RESET", "indexes have no options"],
  ["alter", "ALTER INDEX … ALTER COLUMN", "statistics are maintained automatically"],
];

export function refuseIndexAlteration(cursor: Cursor): void {
  refuseWords(cursor, INDEX_ALTERATIONS);
}

/** Unsupported forms of SHOW, by the words after SHOW. */
const SHOWN: readonly (readonly [words: string, construct: string, hint?: string])[] = [
  ["create view", "SHOW CREATE VIEW", "write SELECT view_definition FROM information_schema.views"],
  [
    "create",
    "SHOW CREATE TABLE",
    "to see the columns of a table, use DESCRIBE t; to see its options, use SHOW TABLES",
  ],
  ["databases", "SHOW DATABASES", "to list the namespaces, use SHOW NAMESPACES"],
  ["full", "SHOW FULL", "SHOW TABLES and SHOW COLUMNS FROM t already show everything"],
  ["fields", "SHOW FIELDS", "write SHOW COLUMNS FROM t"],
  ["index", "SHOW INDEX", "to list the indexes, run SELECT * FROM system.indexes"],
  ["indexes", "SHOW INDEXES", "to list the indexes, run SELECT * FROM system.indexes"],
  ["keys", "SHOW KEYS", "to list the indexes, run SELECT * FROM system.indexes"],
  ["table status", "SHOW TABLE STATUS", "write SHOW STATS FOR TABLE t"],
  ["users", "SHOW USERS", "to list the users, run SELECT * FROM system.users"],
  ["roles", "SHOW ROLES", "to list the users with their roles, run SELECT * FROM system.users"],
  [
    "grants",
    "SHOW GRANTS",
    "to see your role, run SELECT CURRENT_ROLE; to see the access level of a table, use SHOW " +
      "TABLES",
  ],
  ["views", "SHOW VIEWS", "use SHOW TABLES, which also lists views"],
  [
    "processlist",
    "SHOW PROCESSLIST",
    "to list running statements, run SELECT * FROM system.queries",
  ],
  ["queries", "SHOW QUERIES", "to list running statements, run SELECT * FROM system.queries"],
  ["variables", "SHOW VARIABLES", "to list the settings, use SHOW ALL"],
  ["status", "SHOW STATUS", "to see the state of the server, run SELECT * FROM system.stats"],
  [
    "triggers",
    "SHOW TRIGGERS",
    "to list the triggers, run SELECT * FROM information_schema.triggers",
  ],
  ["warnings", "SHOW WARNINGS", "errors and notices are part of the response"],
  ["errors", "SHOW ERRORS", "errors and notices are part of the response"],
  ["engines", "SHOW ENGINES", "there is only one storage engine"],
];

/** Rejects a form of SHOW that only other systems support. */
export function refuseShown(cursor: Cursor): void {
  refuseWords(cursor, SHOWN);
}

function refuseWords(
  cursor: Cursor,
  list: readonly (readonly [words: string, construct: string, hint?: string])[],
): void {
  const found = list.find(([words]) =>
    words.split(" ").every((word, count) => spelling(cursor, count) === word),
  );
  if (found !== undefined) cursor.refuse(found[1], found[2]);
}

/** Returns a word of the SQL in lower case, even if it is not a keyword. */
function spelling(cursor: Cursor, count = 0): string {
  if (cursor.kindAhead(count) !== Token.word) return "";
  return cursor.nameText(cursor.token + count);
}
