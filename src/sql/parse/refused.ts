/**
 * What is recognised and outside of this version, with the alternative where there is one.
 */
import type { Cursor } from "./cursor.ts";

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
  cursor.refuse(construct, "lead with key columns: the primary key is the index of a table");
}

const RIGHTS = "rights are roles (CREATE USER … ROLE), and ACCESS_LEVEL of a table";
const SEQUENCES = "SNOWFLAKE_ID() gives ascending ids";
const PARAMETERS = "send parameters ($1, $2, …) with the statement; plans are kept by themselves";
const LIVE = "live queries deliver changes as they are committed";

const STATEMENTS = new Map<string, readonly [construct: string, hint?: string]>([
  ["grant", ["GRANT", RIGHTS]],
  ["revoke", ["REVOKE", RIGHTS]],
  ["prepare", ["PREPARE", PARAMETERS]],
  ["execute", ["EXECUTE of a prepared statement", PARAMETERS]],
  ["deallocate", ["DEALLOCATE", PARAMETERS]],
  ["declare", ["DECLARE of a cursor", "page by key: WHERE key > last ORDER BY key LIMIT n"]],
  ["fetch", ["FETCH of a cursor", "page by key: WHERE key > last ORDER BY key LIMIT n"]],
  ["move", ["MOVE of a cursor"]],
  ["close", ["CLOSE of a cursor"]],
  ["do", ["DO", "run the statements in one request"]],
  ["call", ["CALL of a procedure", "run the statements in one request"]],
  ["listen", ["LISTEN", LIVE]],
  ["unlisten", ["UNLISTEN", LIVE]],
  ["notify", ["NOTIFY", "write a row to a STREAM table and subscribe to it"]],
  ["savepoint", ["SAVEPOINT"]],
  ["release", ["RELEASE SAVEPOINT"]],
  ["merge", ["MERGE", "INSERT … ON CONFLICT … DO UPDATE"]],
  ["truncate", ["TRUNCATE", "DELETE FROM the table"]],
  ["comment", ["COMMENT ON"]],
  ["vacuum", ["VACUUM", "STORAGE COMPACT TABLE merges segments"]],
  ["analyze", ["ANALYZE", "statistics are kept by themselves"]],
  ["analyse", ["ANALYSE", "statistics are kept by themselves"]],
  ["reindex", ["REINDEX"]],
  ["cluster", ["CLUSTER"]],
  ["lock", ["LOCK TABLE", "the first committer wins; the other may send its transaction again"]],
  ["discard", ["DISCARD"]],
  ["reset", ["RESET of a setting", "a setting holds for one request only"]],
  ["load", ["LOAD"]],
  ["checkpoint", ["CHECKPOINT", "STORAGE FLUSH ALL writes segments"]],
  ["import", ["IMPORT FOREIGN SCHEMA"]],
  ["security", ["SECURITY LABEL"]],
  ["refresh", ["REFRESH MATERIALIZED VIEW"]],
  ["reassign", ["REASSIGN OWNED", "ALTER NAMESPACE … OWNER TO"]],
]);

/** Refuses a statement that begins with a known word of another system. */
export function refuseStatement(cursor: Cursor): void {
  const entry = STATEMENTS.get(cursor.word);
  if (entry !== undefined) cursor.refuse(...entry);
}

/** Hints that hang on the verb, for all others are the same with each. */
const HINTS_OF_DROP = new Map<string, string>([
  ["database", "DROP NAMESPACE"],
  ["tablespace", "DROP STORAGE"],
]);

const OBJECTS = new Map<string, readonly [construct: string, hint?: string]>([
  ["temp", ["TEMP TABLE", "use WITH, or a USER table"]],
  ["temporary", ["TEMPORARY TABLE", "use WITH, or a USER table"]],
  ["unlogged", ["UNLOGGED TABLE", "a STREAM table keeps rows for a time only"]],
  ["global", ["GLOBAL TEMPORARY TABLE"]],
  ["local", ["LOCAL TEMPORARY TABLE"]],
  ["foreign", ["FOREIGN objects"]],
  ["external", ["EXTERNAL TABLE"]],
  ["virtual", ["VIRTUAL TABLE"]],
  ["materialized", ["MATERIALIZED VIEW"]],
  ["recursive", ["RECURSIVE VIEW", "CREATE VIEW … AS WITH RECURSIVE …"]],
  ["sequence", ["SEQUENCE", SEQUENCES]],
  ["function", ["FUNCTION", LIVE]],
  ["procedure", ["PROCEDURE", LIVE]],
  ["routine", ["ROUTINE", LIVE]],
  ["aggregate", ["AGGREGATE"]],
  ["trigger", ["TRIGGER", LIVE]],
  ["constraint", ["CONSTRAINT TRIGGER", LIVE]],
  ["event", ["EVENT TRIGGER", LIVE]],
  ["rule", ["RULE", LIVE]],
  ["type", ["TYPE"]],
  ["domain", ["DOMAIN", "write the CHECK on the column"]],
  ["extension", ["EXTENSION"]],
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
  const entry = OBJECTS.get(cursor.word);
  if (entry === undefined) return;
  const [object, hint] = entry;
  const hintOfDrop = verb === "DROP" ? HINTS_OF_DROP.get(cursor.word) : undefined;
  cursor.refuse(`${verb} ${object}`, hintOfDrop ?? hint);
}
