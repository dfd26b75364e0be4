/**
 * What is recognised and outside of this version, with the alternative where there is one.
 */
import type { Cursor } from "./cursor.ts";
import { Token } from "./text/lexer.ts";

/** UNIQUE of a column or table. */
export function refuseUnique(cursor: Cursor): never {
  cursor.refuse(
    "UNIQUE",
    "make the columns the (composite) PRIMARY KEY, or keep the value as the key of a SHARED table " +
      "written in the same transaction",
  );
}

/** REFERENCES and FOREIGN KEY. */
export function refuseForeignKey(cursor: Cursor, construct: string): never {
  cursor.refuse(construct, "check with EXISTS in the same transaction");
}

// CREATE INDEX and its kin.
function refuseIndex(cursor: Cursor, construct: string): never {
  cursor.refuse(construct, INDEX_HINT);
}

const RIGHTS = "rights are roles (CREATE USER … ROLE), and ACCESS_LEVEL of a table";
const INDEX_HINT = "lead with key columns: the primary key is the index of a table";
const PAGES = "page by key: WHERE key > last ORDER BY key LIMIT n";
const ONE_TRANSACTION = "send statements that may fail separately as a transaction of their own";
const FRESH_VIEWS = "CREATE VIEW: a view shows the rows at the moment it is read";
const SEQUENCES = "SNOWFLAKE_ID() gives ascending ids";
const PARAMETERS = "send parameters ($1, $2, …) with the statement; plans are kept by themselves";
const LIVE = "live queries deliver changes as they are committed";

const OWN_ROWS =
  "in a USER table, each user sees and writes only their own rows: CREATE USER TABLE";
const COPYING =
  "INSERT takes many rows at once; SELECT returns CSV with the header Accept: text/csv";
const TOPICS = "SUBSCRIBE TO follows a table, and resumes where it stopped";
const ON_CONFLICT = "INSERT INTO t (…) VALUES (…) ON CONFLICT (key) DO UPDATE SET a = EXCLUDED.a";
const NO_PROGRAMS = "a text is a plain sequence of statements; put conditions into the client";
const NO_DIRECTORY = "one directory is one database: divide it with CREATE NAMESPACE";

type Refused = readonly [construct: string, hint?: string];

/** Refused statements by their first word. */
const STATEMENTS = new Map<string, Refused>([
  ["copy", ["COPY", COPYING]],
  ["bulk", ["BULK INSERT", COPYING]],
  ["consume", ["CONSUME FROM a topic", TOPICS]],
  ["ack", ["ACK of a topic", TOPICS]],
  ["clear", ["CLEAR TOPIC", TOPICS]],
  ["export", ["EXPORT USER DATA", "SELECT returns CSV with the header Accept: text/csv"]],
  ["replace", ["REPLACE INTO", ON_CONFLICT]],
  ["upsert", ["UPSERT", ON_CONFLICT]],
  ["optimize", ["OPTIMIZE TABLE", "STORAGE COMPACT TABLE merges segments"]],
  ["repair", ["REPAIR TABLE", "stop the server and run tidemark repair"]],
  ["check", ["CHECK TABLE", "stop the server and run tidemark verify"]],
  ["unlock", ["UNLOCK TABLES", "there are no locks to release"]],
  ["rename", ["RENAME TABLE", "create a table and copy the rows: INSERT INTO … SELECT"]],
  ["pragma", ["PRAGMA", "DESCRIBE t shows columns, SHOW ALL the settings"]],
  ["attach", ["ATTACH", NO_DIRECTORY]],
  ["detach", ["DETACH", NO_DIRECTORY]],
  ["exec", ["EXEC of a procedure", NO_PROGRAMS]],
  ["if", ["IF", NO_PROGRAMS]],
  ["while", ["WHILE", NO_PROGRAMS]],
  ["print", ["PRINT", "SELECT 'text' returns the text"]],
  ["deny", ["DENY", RIGHTS]],
  ["go", ["GO", "separate statements with ;"]],
  ["quit", ["quit", "this is a shell command: close the connection"]],
  ["exit", ["exit", "this is a shell command: close the connection"]],
  ["help", ["HELP", "SHOW TABLES lists tables, DESCRIBE t shows the columns of a table"]],
  ["grant", ["GRANT", RIGHTS]],
  ["revoke", ["REVOKE", RIGHTS]],
  ["prepare", ["PREPARE", PARAMETERS]],
  ["execute", ["EXECUTE of a prepared statement", PARAMETERS]],
  ["deallocate", ["DEALLOCATE", PARAMETERS]],
  ["declare", ["DECLARE of a cursor", PAGES]],
  ["fetch", ["FETCH of a cursor", PAGES]],
  ["move", ["MOVE of a cursor", PAGES]],
  ["close", ["CLOSE of a cursor", PAGES]],
  ["do", ["DO", NO_PROGRAMS]],
  ["call", ["CALL of a procedure", NO_PROGRAMS]],
  ["listen", ["LISTEN", LIVE]],
  ["unlisten", ["UNLISTEN", LIVE]],
  ["notify", ["NOTIFY", "write a row to a STREAM table and subscribe to it"]],
  ["savepoint", ["SAVEPOINT", ONE_TRANSACTION]],
  ["release", ["RELEASE SAVEPOINT", ONE_TRANSACTION]],
  ["merge", ["MERGE", ON_CONFLICT]],
  ["truncate", ["TRUNCATE", "DELETE FROM t WHERE true"]],
  ["comment", ["COMMENT ON", "tables and columns have no comments"]],
  ["vacuum", ["VACUUM", "STORAGE COMPACT TABLE merges segments"]],
  ["analyze", ["ANALYZE", "statistics are kept by themselves"]],
  ["analyse", ["ANALYSE", "statistics are kept by themselves"]],
  ["reindex", ["REINDEX", "STORAGE COMPACT TABLE merges segments"]],
  ["cluster", ["CLUSTER", "STORAGE COMPACT TABLE merges segments"]],
  ["lock", ["LOCK TABLE", "the first committer wins; the other may send its transaction again"]],
  ["discard", ["DISCARD", "a request leaves no state behind"]],
  ["reset", ["RESET of a setting", "a setting holds for one request only"]],
  ["load", ["LOAD", COPYING]],
  ["checkpoint", ["CHECKPOINT", "STORAGE FLUSH ALL writes segments"]],
  ["import", ["IMPORT FOREIGN SCHEMA"]],
  ["security", ["SECURITY LABEL"]],
  ["refresh", ["REFRESH MATERIALIZED VIEW", FRESH_VIEWS]],
  ["reassign", ["REASSIGN OWNED", "ALTER NAMESPACE … OWNER TO"]],
]);

/** Refuses a statement that begins with a known word of another system. */
export function refuseStatement(cursor: Cursor): void {
  const entry = STATEMENTS.get(spelling(cursor));
  if (entry !== undefined) cursor.refuse(...entry);
}

/** Hints that hang on the verb, for all others are the same with each. */
const HINTS_OF_DROP = new Map<string, string>([
  ["database", "DROP NAMESPACE"],
  ["tablespace", "DROP STORAGE"],
]);

const OBJECTS = new Map<string, Refused>([
  ["temp", ["TEMP TABLE", "use WITH, or a USER table"]],
  ["temporary", ["TEMPORARY TABLE", "use WITH, or a USER table"]],
  ["unlogged", ["UNLOGGED TABLE", "a STREAM table keeps rows only for a limited time"]],
  ["global", ["GLOBAL TEMPORARY TABLE", "use WITH, or a USER table"]],
  ["local", ["LOCAL TEMPORARY TABLE", "use WITH, or a USER table"]],
  ["foreign", ["FOREIGN objects"]],
  ["external", ["EXTERNAL TABLE"]],
  ["virtual", ["VIRTUAL TABLE"]],
  ["materialized", ["MATERIALIZED VIEW", FRESH_VIEWS]],
  ["recursive", ["RECURSIVE VIEW", "CREATE VIEW … AS WITH RECURSIVE …"]],
  ["fulltext", ["FULLTEXT INDEX", INDEX_HINT]],
  ["spatial", ["SPATIAL INDEX", INDEX_HINT]],
  ["clustered", ["CLUSTERED INDEX", INDEX_HINT]],
  ["nonclustered", ["NONCLUSTERED INDEX", INDEX_HINT]],
  ["sequence", ["SEQUENCE", SEQUENCES]],
  ["function", ["FUNCTION", LIVE]],
  ["procedure", ["PROCEDURE", LIVE]],
  ["routine", ["ROUTINE", LIVE]],
  ["aggregate", ["AGGREGATE"]],
  ["trigger", ["TRIGGER", LIVE]],
  ["constraint", ["CONSTRAINT TRIGGER", LIVE]],
  ["event", ["EVENT TRIGGER", LIVE]],
  ["rule", ["RULE", LIVE]],
  ["type", ["TYPE", "write the CHECK on the column: TEXT CHECK (a IN ('x', 'y'))"]],
  ["domain", ["DOMAIN", "write the CHECK on the column"]],
  ["extension", ["EXTENSION", "functions are built in: gen_random_uuid(), sha256() and others"]],
  ["role", ["ROLE", RIGHTS]],
  ["group", ["GROUP", RIGHTS]],
  ["owned", ["OWNED"]],
  ["database", ["DATABASE", "CREATE NAMESPACE"]],
  ["tablespace", ["TABLESPACE", "CREATE STORAGE"]],
  ["operator", ["OPERATOR"]],
  ["cast", ["CAST"]],
  ["collation", ["COLLATION"]],
  ["language", ["LANGUAGE"]],
  ["server", ["SERVER"]],
  ["publication", ["PUBLICATION", LIVE]],
  ["subscription", ["SUBSCRIPTION", "SUBSCRIBE TO"]],
  ["statistics", ["STATISTICS", "statistics are kept by themselves"]],
  ["access", ["ACCESS METHOD"]],
  ["policy", ["POLICY", OWN_ROWS]],
  ["topic", ["TOPIC", TOPICS]],
  ["login", ["LOGIN", "CREATE USER name WITH PASSWORD '…' ROLE user"]],
  ["system", ["SYSTEM", "settings are keys of the configuration; SHOW ALL lists them"]],
  ["default", ["DEFAULT PRIVILEGES", RIGHTS]],
]);

/** Refuses CREATE, ALTER or DROP of an object that there is not. */
export function refuseObject(cursor: Cursor, verb: "CREATE" | "ALTER" | "DROP"): void {
  if (cursor.is("index") || (cursor.is("unique") && cursor.isAhead(1, "index"))) {
    const construct = cursor.is("unique") ? `${verb} UNIQUE INDEX` : `${verb} INDEX`;
    if (cursor.is("unique")) refuseUnique(cursor);
    refuseIndex(cursor, construct);
  }
  const isTemporary = cursor.is("temp") || cursor.is("temporary");
  if (isTemporary && cursor.isAhead(1, "view")) {
    cursor.refuse(`${verb} ${cursor.word.toUpperCase()} VIEW`, "use WITH, or CREATE VIEW");
  }
  const entry = OBJECTS.get(spelling(cursor));
  if (entry === undefined) return;
  const [object, hint] = entry;
  const hintOfDrop = verb === "DROP" ? HINTS_OF_DROP.get(cursor.word) : undefined;
  cursor.refuse(`${verb} ${object}`, hintOfDrop ?? hint);
}

/** Refused clauses after `ALTER TABLE t`, by their first words; longer sequences come first. */
const ALTERATIONS: readonly (readonly [words: string, construct: string, hint?: string])[] = [
  ["enable row", "ENABLE ROW LEVEL SECURITY", OWN_ROWS],
  ["disable row", "DISABLE ROW LEVEL SECURITY", OWN_ROWS],
  ["force", "FORCE ROW LEVEL SECURITY", OWN_ROWS],
  ["no force", "NO FORCE ROW LEVEL SECURITY", OWN_ROWS],
  ["enable", "ENABLE of a trigger or rule", LIVE],
  ["disable", "DISABLE of a trigger or rule", LIVE],
  ["owner", "OWNER TO of a table", "a namespace has an owner: ALTER NAMESPACE … OWNER TO"],
  ["change", "CHANGE of a column", "RENAME COLUMN a TO b, ALTER COLUMN b TYPE new_type"],
  ["attach", "ATTACH PARTITION", "partitioning by user is built in: CREATE USER TABLE"],
  ["detach", "DETACH PARTITION", "partitioning by user is built in: CREATE USER TABLE"],
  ["inherit", "INHERIT", "repeat the columns in both tables"],
  ["replica", "REPLICA IDENTITY", "changes carry old_values without it"],
  ["validate", "VALIDATE CONSTRAINT", "a constraint is checked when it is added"],
  ["cluster", "CLUSTER ON", "rows are stored by their primary key"],
  ["engine", "ENGINE", "there is one storage engine"],
  ["convert", "CONVERT TO CHARACTER SET", "text is UTF-8"],
  ["comment", "COMMENT of a table", "tables and columns have no comments"],
  ["auto_increment", "AUTO_INCREMENT of a table", SEQUENCES],
  ["drop primary", "DROP PRIMARY KEY", "create a table with the new key and copy the rows"],
  ["drop index", "DROP INDEX", INDEX_HINT],
  ["drop key", "DROP KEY", INDEX_HINT],
  ["drop foreign", "DROP FOREIGN KEY"],
  ["add index", "ADD INDEX", INDEX_HINT],
  ["add key", "ADD KEY", INDEX_HINT],
  ["add fulltext", "ADD FULLTEXT", INDEX_HINT],
  ["set tablespace", "SET TABLESPACE", "the option STORAGE_ID names a storage"],
  ["set logged", "SET LOGGED", "every table is logged"],
  ["set unlogged", "SET UNLOGGED", "a STREAM table keeps rows only for a limited time"],
  ["set without", "SET WITHOUT"],
];

/** Refuses a change of a table that only other systems support. */
export function refuseAlteration(cursor: Cursor): void {
  refuseWords(cursor, ALTERATIONS);
}

/** Refused forms of SHOW, by the words after it. */
const SHOWN: readonly (readonly [words: string, construct: string, hint?: string])[] = [
  ["create view", "SHOW CREATE VIEW", "SELECT view_definition FROM information_schema.views"],
  ["create", "SHOW CREATE TABLE", "DESCRIBE t shows its columns, SHOW TABLES its options"],
  ["databases", "SHOW DATABASES", "SHOW NAMESPACES lists namespaces"],
  ["full", "SHOW FULL", "SHOW TABLES and SHOW COLUMNS FROM t show everything"],
  ["fields", "SHOW FIELDS", "SHOW COLUMNS FROM t"],
  ["index", "SHOW INDEX", "DESCRIBE t shows the primary key, which is its index"],
  ["indexes", "SHOW INDEXES", "DESCRIBE t shows the primary key, which is its index"],
  ["keys", "SHOW KEYS", "DESCRIBE t shows the primary key, which is its index"],
  ["table status", "SHOW TABLE STATUS", "SHOW STATS FOR TABLE t"],
  ["users", "SHOW USERS", "SELECT * FROM system.users lists them"],
  ["roles", "SHOW ROLES", "SELECT * FROM system.users lists users with their roles"],
  [
    "grants",
    "SHOW GRANTS",
    "SELECT CURRENT_ROLE returns the role; SHOW TABLES shows the access level of a table",
  ],
  ["views", "SHOW VIEWS", "SHOW TABLES lists views, too"],
  ["processlist", "SHOW PROCESSLIST", "SELECT * FROM system.queries lists running statements"],
  ["queries", "SHOW QUERIES", "SELECT * FROM system.queries lists running statements"],
  ["variables", "SHOW VARIABLES", "SHOW ALL lists the settings"],
  ["status", "SHOW STATUS", "SELECT * FROM system.stats describes the server"],
  ["server_version", "SHOW server_version", "SELECT version()"],
  ["search_path", "SHOW search_path", "SELECT CURRENT_NAMESPACE() gives the current namespace"],
  ["functions", "SHOW FUNCTIONS"],
  ["triggers", "SHOW TRIGGERS", LIVE],
  ["warnings", "SHOW WARNINGS", "the response contains errors and notices"],
  ["errors", "SHOW ERRORS", "the response contains errors and notices"],
  ["engines", "SHOW ENGINES", "there is one storage engine"],
  ["export", "SHOW EXPORT", "SELECT returns CSV with the header Accept: text/csv"],
];

/** Refuses a form of SHOW that only other systems support. */
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

/** The word as written, in lower case, even if the grammar does not know it. */
function spelling(cursor: Cursor, count = 0): string {
  if (cursor.kindAhead(count) !== Token.word) return "";
  return cursor.nameText(cursor.token + count);
}
