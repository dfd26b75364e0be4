/** Judges the results of a statement in a played script on both sides. */
import { causeOf } from "./listed_differences.ts";
import { CHANGED_WITH, type LeftObjects, OmittedObjects } from "./omitted_objects.ts";
import { haveSameRows, type Played } from "./played.ts";

export type Verdict = "alike" | "omitted" | "listed" | "refused" | "accepted" | "wrong";
export type Counts = Record<Verdict, number>;

/** Matches statements about PostgreSQL's own catalog, plans, accounts and maintenance. */
const NOT_PLAYED = new RegExp(
  [
    // The catalog's tables and views, and the functions that describe catalog objects.
    String.raw`\bpg_(?:aggregate|am|amop|amproc|attrdef|attribute|auth_members|authid|cast|class|collation|constraint|conversion|cursors|database|db_role_setting|default_acl|depend|description|enum|event_trigger|extension|foreign_\w+|get_\w+|index|indexes|inherits|init_privs|language|largeobject\w*|locks|matviews|namespace|opclass|operator|opfamily|partitioned_table|policies|policy|prepared_\w+|proc|publication\w*|range|relation\w*|replication\w*|rewrite|roles|rules|seclabel\w*|sequence|sequence_parameters|sequences|settings|shdepend|shdescription|stat\w*|subscription\w*|tables|tablespace|total_\w+|transform|trigger|ts_\w+|type|user_mapping\w*|views)\b`,
    String.raw`^\s*(?:explain|vacuum|analyze|show|reindex|cluster|grant|revoke|lock|load|listen|notify|checkpoint|discard|security|alter\s+(?:database|system|role|user|group)|(?:create|drop)\s+(?:role|user|group|database|tablespace))\b`,
  ].join("|"),
  "i",
);
/** The codes and reasons of errors about features that Tidemark does not have. */
const OMISSIONS: ReadonlySet<string> = new Set([
  "UNSUPPORTED_FEATURE",
  "not_implemented",
  "invalid_option",
  // A statement in a failed transaction is refused only because an earlier statement failed, and
  // that failure has been counted.
  "transaction_failed",
]);

/** Matches messages about limits of types that docs/sql.md documents. */
const DOCUMENTED_LIMITS = [
  /is not between 1 and 38|beyond the range of the type|must fit in 32 bits/,
  // The types that PostgreSQL has and Tidemark lacks, as listed in docs/not-yet.md.
  /Cannot use type "(?:point|lseg|line|box|path|polygon|circle|reg(?:oper|operator|dictionary)|txid_snapshot|pg_\w+|cid|tid|char|\w*range|int2vector|oidvector|any\w*|record)": there is no such type/,
  /Cannot find column "(?:\w+\.)?(?:ctid|oid|[cx]m(?:in|ax))"/,
];

const QUERY = /^\s*(?:\(\s*)*(?:select|with|values|table)\b/i;
const CHANGE = /\b(?:insert|update|delete|merge)\b|\binto\b/i;

const BEGIN = /^\s*(?:begin|start\s+transaction)\b/i;
const COMMIT = /^\s*(?:commit|end)\b/i;
/** Match statements that need a missing type without naming it. */
const OMITTED_SUBJECTS = [
  // Matches ranges and multiranges.
  /\b(?:int4|int8|num|date|ts|tstz|text|float\w*|int\w*)_?(?:multi)?range\w*\s*\(|::\w*range\b/i,
  // Matches large objects, tables as XML, and cursors used as values.
  /\blo_\w+\s*\(|\b(?:table|query|schema|database)_to_xml\w*|\brefcursor\b|\bcursor_to_xml\w*/i,
  // Matches catalog views about foreign data and functions.
  /\binformation_schema\.(?:foreign|user_mapping|routine|parameters|column_column)\w*/i,
  // Matches psql variables that psql's own commands set.
  /:'LAST_ERROR_MESSAGE'/,
  // Matches code in another language.
  /^\s*do\s+(?:language\s+\w+\s+)?\$/i,
  // Matches functions about PostgreSQL's own processes, catalog and files.
  /\b(?:pg_(?:log_backend|collation_for|timezone_names|settings_get)\w*|format_type|gin_clean_pending_list|tsvectorout|cash_words|timeofday)\b/i,
];

export function isPlayed(sql: string): boolean {
  return !NOT_PLAYED.test(sql);
}

/** Returns whether a statement only reads. */
export function isQuery(sql: string): boolean {
  return QUERY.test(sql) && !CHANGE.test(sql);
}

export function noCounts(): Counts {
  return { alike: 0, omitted: 0, listed: 0, refused: 0, accepted: 0, wrong: 0 };
}

/** Judges the statements of a play in the order in which they run. */
export class Judge {
  readonly #omitted = new OmittedObjects();
  /** Whether a change was omitted since the last BEGIN. */
  #hasOmittedChange = false;

  judge(sql: string, ours: Played, theirs: Played): Verdict {
    if (BEGIN.test(sql)) this.#hasOmittedChange = false;
    const verdict = this.#verdict(sql, ours, theirs);
    if (verdict === "omitted" && !isQuery(sql)) this.#hasOmittedChange = true;
    const isDone = ours.kind === "rows" && theirs.kind === "rows";
    if (!isQuery(sql)) this.#omitted.note(sql, { isDone, isAlike: verdict === "alike" });
    return verdict;
  }

  /** Remembers the setting of a SET statement that only PostgreSQL ran. */
  omitSetting(sql: string): void {
    this.#omitted.noteSetting(sql);
  }

  /** Remembers that a cursor is at different rows on the two sides. */
  omitCursor(name: string): void {
    this.#omitted.noteName(name);
  }

  /**
   * Ends a script. Later scripts know nothing of its settings and temporary objects.
   *
   * @param left The objects that now exist on either side.
   */
  endScript(left: LeftObjects): void {
    this.#hasOmittedChange = false;
    this.#omitted.endScript(left);
  }

  #verdict(sql: string, ours: Played, theirs: Played): Verdict {
    if (ours.kind === "failure" && theirs.kind === "failure") return "alike";
    // A SELECT … INTO, and a change after WITH, return only the number of rows.
    const counts = /^\s*select\b[\s\S]*\binto\b/i.test(sql) || CHANGED_WITH.test(sql);
    const hasRows = (QUERY.test(sql) && !counts) || /\breturning\b|^copy\b|^fetch\b/i.test(sql);
    if (ours.kind === "rows" && theirs.kind === "rows") {
      if (!hasRows || haveSameRows(ours.rows, theirs.rows)) return "alike";
    }
    if (this.#isOmitted(sql, ours, theirs)) return "omitted";
    if (causeOf({ sql, ours, theirs }) !== undefined) return "listed";
    if (ours.kind === "failure") return "refused";
    return theirs.kind === "failure" ? "accepted" : "wrong";
  }

  /** Whether a difference is due to a feature that Tidemark does not have. */
  #isOmitted(sql: string, ours: Played, theirs: Played): boolean {
    if (this.#omitted.isNamedIn(sql)) return true;
    if (ours.kind === "failure") {
      return (
        isOmission(ours) ||
        OMITTED_SUBJECTS.some((subject) => subject.test(sql)) ||
        (ours.code === "dependent_objects" && this.#omitted.isNamedIn(ours.message))
      );
    }
    if (theirs.kind !== "failure") return false;
    // A statement in a failed transaction is refused only because an earlier statement failed, and
    // that failure has been counted.
    if (theirs.code === "25P02") return true;
    // COMMIT checks deferred constraints.
    if (this.#hasOmittedChange && COMMIT.test(sql)) return true;
    // PostgreSQL may refuse to drop the object because another object depends on it. That object
    // may have been omitted on Tidemark.
    return theirs.code === "2BP01" && this.#omitted.mayDependOnDropped(sql);
  }
}

/**
 * Returns whether a failure is due to a feature or a range of values that Tidemark does not
 * support.
 */
function isOmission({ code, message }: { code: string; message: string }): boolean {
  return OMISSIONS.has(code) || DOCUMENTED_LIMITS.some((limit) => limit.test(message));
}
