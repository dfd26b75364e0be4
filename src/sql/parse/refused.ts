/** Recognises constructs that are not supported, and suggests alternatives. */
import type { Cursor } from "./cursor.ts";
import { Token } from "./text/lexer.ts";

const RIGHTS =
  "rights depend on roles (CREATE USER … ROLE) and on ALTER TABLE … SET ACCESS LEVEL; pg_dump --no-privileges omits it";
const INDEX_HINT = "write CREATE INDEX name ON table_name (column_name)";
const LIVE = "live queries deliver changes as they are committed";

const OWN_ROWS =
  "set ACCESS_LEVEL = 'RESTRICTED' for a SHARED table, and permit rows with CREATE POLICY";
const COPYING = "COPY t FROM STDIN reads rows, and COPY t TO STDOUT writes them: POST /v1/api/copy";
const ON_CONFLICT =
  "write INSERT INTO t (…) VALUES (…) ON CONFLICT (key) DO UPDATE SET name = EXCLUDED.name";
const NO_PROGRAMS = "write DO $$ BEGIN … END $$, or a function with LANGUAGE plpgsql";
const NO_DIRECTORY = "one directory is one database: divide it with CREATE NAMESPACE";

type Refused = readonly [construct: string, hint?: string];

/** Unsupported statements, keyed by their first word. */
export const REFUSED_STATEMENTS: ReadonlyMap<string, Refused> = new Map<string, Refused>([
  ["bulk", ["BULK INSERT", COPYING]],
  ["replace", ["REPLACE INTO", ON_CONFLICT]],
  ["upsert", ["UPSERT", ON_CONFLICT]],
  ["optimize", ["OPTIMIZE TABLE", "STORAGE COMPACT TABLE merges segments"]],
  ["repair", ["REPAIR TABLE", "stop the server and run tidemark repair"]],
  ["check", ["CHECK TABLE", "stop the server and run tidemark verify"]],
  ["unlock", ["UNLOCK TABLES", "there are no locks to release"]],
  ["rename", ["RENAME TABLE", "write ALTER TABLE old_name RENAME TO new_name"]],
  [
    "pragma",
    ["PRAGMA", "DESCRIBE t shows the columns of a table, and SHOW ALL shows the settings"],
  ],
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
  ["help", ["HELP", "SHOW TABLES lists tables, and DESCRIBE t shows the columns of a table"]],
  ["grant", ["GRANT", RIGHTS]],
  ["revoke", ["REVOKE", RIGHTS]],
  ["listen", ["LISTEN", LIVE]],
  ["unlisten", ["UNLISTEN", LIVE]],
  ["notify", ["NOTIFY", "write a row to a STREAM table and subscribe to it"]],
  ["vacuum", ["VACUUM", "STORAGE COMPACT TABLE merges segments"]],
  ["analyze", ["ANALYZE", "statistics are maintained automatically"]],
  ["analyse", ["ANALYSE", "statistics are maintained automatically"]],
  [
    "reindex",
    ["REINDEX", "indexes are always up to date; to rebuild one, use DROP INDEX and CREATE INDEX"],
  ],
  ["cluster", ["CLUSTER", "STORAGE COMPACT TABLE merges segments"]],
  [
    "lock",
    [
      "LOCK TABLE",
      "the first transaction to commit wins; the other client may send its transaction again",
    ],
  ],
  ["load", ["LOAD", COPYING]],
  ["checkpoint", ["CHECKPOINT", "STORAGE FLUSH ALL writes segments"]],
  ["import", ["IMPORT FOREIGN SCHEMA"]],
  ["security", ["SECURITY LABEL"]],
  ["reassign", ["REASSIGN OWNED", "write ALTER NAMESPACE … OWNER TO for each namespace"]],
]);

/** Rejects a statement whose first word is known from another system. */
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
  ["temp", ["TEMP for objects other than tables", "write CREATE TEMP TABLE"]],
  ["temporary", ["TEMPORARY for objects other than tables", "write CREATE TEMPORARY TABLE"]],
  ["global", ["GLOBAL TEMPORARY for objects other than tables", "write CREATE TEMPORARY TABLE"]],
  ["local", ["LOCAL TEMPORARY for objects other than tables", "write CREATE TEMPORARY TABLE"]],
  [
    "unlogged",
    [
      "UNLOGGED for objects other than tables",
      "write CREATE SEQUENCE, since all sequences are logged",
    ],
  ],
  ["foreign", ["FOREIGN objects"]],
  ["external", ["EXTERNAL TABLE"]],
  ["virtual", ["VIRTUAL TABLE"]],
  ["fulltext", ["FULLTEXT INDEX", INDEX_HINT]],
  ["spatial", ["SPATIAL INDEX", INDEX_HINT]],
  ["clustered", ["CLUSTERED INDEX", INDEX_HINT]],
  ["nonclustered", ["NONCLUSTERED INDEX", INDEX_HINT]],
  ["routine", ["ROUTINE", "write CREATE FUNCTION or CREATE PROCEDURE"]],
  ["aggregate", ["AGGREGATE"]],
  ["transform", ["TRANSFORM"]],
  ["event", ["EVENT TRIGGER", LIVE]],
  ["rule", ["RULE", LIVE]],
  ["extension", ["EXTENSION", "omit it: functions are built in"]],
  ["role", ["ROLE", RIGHTS]],
  ["group", ["GROUP", RIGHTS]],
  ["owned", ["OWNED"]],
  ["database", ["DATABASE", "CREATE NAMESPACE"]],
  ["tablespace", ["TABLESPACE", "CREATE STORAGE"]],
  ["operator", ["OPERATOR"]],
  ["cast", ["CAST"]],
  ["conversion", ["CONVERSION", "text is UTF-8"]],
  ["text", ["TEXT SEARCH", "the only configurations are simple and english"]],
  ["language", ["LANGUAGE"]],
  ["server", ["SERVER"]],
  ["publication", ["PUBLICATION", LIVE]],
  ["subscription", ["SUBSCRIPTION", "SUBSCRIBE TO"]],
  ["statistics", ["STATISTICS", "statistics are maintained automatically"]],
  ["access", ["ACCESS METHOD"]],
  ["login", ["LOGIN", "write CREATE USER name WITH PASSWORD '…' ROLE user"]],
  ["system", ["SYSTEM", "settings are keys of the configuration; SHOW ALL lists them"]],
  ["default", ["DEFAULT PRIVILEGES", RIGHTS]],
]);

/** Rejects CREATE, ALTER or DROP for a kind of object that does not exist here. */
export function refuseObject(cursor: Cursor, verb: "CREATE" | "ALTER" | "DROP"): void {
  const isTemporary = cursor.is("temp") || cursor.is("temporary");
  if (isTemporary && cursor.isAhead(1, "view")) {
    cursor.refuse(`${verb} ${cursor.word.toUpperCase()} VIEW`, "use WITH, or CREATE VIEW");
  }
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
  ["owner", "OWNER TO beside another change", "write OWNER TO as a separate statement"],
  [
    "change",
    "CHANGE of a column",
    "write RENAME COLUMN a TO b, and then ALTER COLUMN b TYPE new_type",
  ],
  ["attach", "ATTACH PARTITION beside another change", "write it as a separate statement"],
  ["detach", "DETACH PARTITION beside another change", "write it as a separate statement"],
  ["inherit", "INHERIT", "repeat the columns in both tables"],
  ["replica", "REPLICA IDENTITY", "changes contain old_values without this option"],
  ["cluster", "CLUSTER ON", "rows are stored by their primary key"],
  ["engine", "ENGINE", "there is one storage engine"],
  ["convert", "CONVERT TO CHARACTER SET", "text is UTF-8"],
  ["comment", "COMMENT of a table", "write COMMENT ON TABLE name IS '…'"],
  ["auto_increment", "AUTO_INCREMENT of a table", "write ALTER SEQUENCE … RESTART WITH n"],
  ["drop primary", "DROP PRIMARY KEY", "create a table with the new key and copy the rows"],
  ["drop index", "DROP INDEX of a table", "write DROP INDEX name"],
  ["drop key", "DROP KEY", "write DROP INDEX name"],
  ["drop foreign", "DROP FOREIGN KEY"],
  ["add index", "ADD INDEX", INDEX_HINT],
  ["add key", "ADD KEY", INDEX_HINT],
  ["add fulltext", "ADD FULLTEXT", INDEX_HINT],
  ["set tablespace", "SET TABLESPACE", "the option STORAGE_ID selects a storage"],
  ["set logged", "SET LOGGED", "every table is logged"],
  ["set unlogged", "SET UNLOGGED", "every table is logged"],
  ["set without", "SET WITHOUT"],
];

/** Rejects a change to a table that only other systems support. */
export function refuseAlteration(cursor: Cursor): void {
  refuseWords(cursor, ALTERATIONS);
}

/** Unsupported clauses of `ALTER INDEX i`, by their first words. */
const INDEX_ALTERATIONS: readonly (readonly [words: string, construct: string, hint?: string])[] = [
  ["attach", "ATTACH PARTITION", "partitioning by user is built in: CREATE USER TABLE"],
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
    "DESCRIBE t shows the columns of a table, and SHOW TABLES shows its options",
  ],
  ["databases", "SHOW DATABASES", "SHOW NAMESPACES lists namespaces"],
  ["full", "SHOW FULL", "SHOW TABLES and SHOW COLUMNS FROM t show everything"],
  ["fields", "SHOW FIELDS", "write SHOW COLUMNS FROM t"],
  ["index", "SHOW INDEX", "SELECT * FROM system.indexes lists the indexes"],
  ["indexes", "SHOW INDEXES", "SELECT * FROM system.indexes lists the indexes"],
  ["keys", "SHOW KEYS", "SELECT * FROM system.indexes lists the indexes"],
  ["table status", "SHOW TABLE STATUS", "write SHOW STATS FOR TABLE t"],
  ["users", "SHOW USERS", "SELECT * FROM system.users lists the users"],
  ["roles", "SHOW ROLES", "SELECT * FROM system.users lists users with their roles"],
  [
    "grants",
    "SHOW GRANTS",
    "SELECT CURRENT_ROLE returns the role; SHOW TABLES shows the access level of a table",
  ],
  ["views", "SHOW VIEWS", "SHOW TABLES also lists views"],
  ["processlist", "SHOW PROCESSLIST", "SELECT * FROM system.queries lists running statements"],
  ["queries", "SHOW QUERIES", "SELECT * FROM system.queries lists running statements"],
  ["variables", "SHOW VARIABLES", "SHOW ALL lists the settings"],
  ["status", "SHOW STATUS", "SELECT * FROM system.stats describes the server"],
  ["triggers", "SHOW TRIGGERS", "SELECT * FROM information_schema.triggers lists them"],
  ["warnings", "SHOW WARNINGS", "the response contains errors and notices"],
  ["errors", "SHOW ERRORS", "the response contains errors and notices"],
  ["engines", "SHOW ENGINES", "there is one storage engine"],
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
