/** Judges the results of a statement in a played script on both sides. */
import { causeOf } from "./listed_differences.ts";
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

/** Matches a change that follows the closing parenthesis of the last WITH entry. */
const CHANGED_WITH = /^\s*with\b[\s\S]*\)\s*(?:insert|update|delete|merge)\b/i;

const VIEW = /^\s*create\s+(?:or\s+replace\s+)?(?:temp\w*\s+)?view\s+("[^"]+"|[\w.]+)/i;

const MADE =
  /^\s*(?:create|alter|drop|insert\s+into|update|delete\s+from|copy|truncate|merge\s+into|comment\s+on|select\b[\s\S]*?\binto)\b(?:\s+(?:or\s+replace|temp|temporary|unlogged|global|local|unique|recursive|foreign\s+data\s+wrapper|foreign\s+table|text\s+search\s+\w+|table|view|materialized\s+view|index|sequence|type|domain|function|aggregate|operator(?:\s+(?:class|family))?|schema|procedure|routine|collation|conversion|constraint|trigger|event\s+trigger|rule|policy|statistics|publication|subscription|server|language|extension|access\s+method|cast|only|if\s+exists|if\s+not\s+exists|concurrently))*\s+("[^"]+"|[\w.]+)/i;

const NAME = String.raw`("[^"]+"|[\w.]+)`;

/**
 * Matches definitions and code blocks, which change the effect of later statements on other
 * objects.
 */
const DEFINES = /^\s*(?:create|alter|do)\b/i;
const SIDE_EFFECTS = [
  String.raw`\btrigger\b[\s\S]*?\bon\s+${NAME}`,
  String.raw`\brule\b[\s\S]*?\bto\s+${NAME}`,
  String.raw`\b(?:insert\s+into|delete\s+from|merge\s+into)\s+${NAME}`,
  String.raw`\bupdate\s+(?:only\s+)?${NAME}\s+(?:as\s+\w+\s+)?set\b`,
  String.raw`\binherits\s*\(\s*${NAME}`,
  String.raw`\binherit\s+${NAME}`,
  String.raw`\bindex\b[\s\S]*?\bon\s+(?:only\s+)?${NAME}`,
  String.raw`\b(?:attach\s+partition|partition\s+of)\s+${NAME}`,
  String.raw`\b(?:create|into)\s+(?:materialized\s+|temp\w*\s+)?(?:table|view)\s+${NAME}`,
  String.raw`\brename\s+to\s+${NAME}`,
  String.raw`\bset\s+schema\s+${NAME}`,
].map((source) => new RegExp(source, "gi"));

const BEGIN = /^\s*(?:begin|start\s+transaction)\b/i;
const COMMIT = /^\s*(?:commit|end)\b/i;
const SETTING = /^\s*set\s+(?!constraints\b)(?:local\s+|session\s+)?([\w.]+)/i;
/** Match the name of a partition, and the name of the table to which it belongs. */
const PART_OF = new RegExp(
  String.raw`^\s*create\s+table\s+(?:if\s+not\s+exists\s+)?${NAME}\s+partition\s+of\s+${NAME}`,
  "i",
);
const ATTACHED = new RegExp(
  String.raw`^\s*alter\s+table\s+(?:only\s+)?${NAME}\s+attach\s+partition\s+${NAME}`,
  "i",
);

/** Matches the name of a savepoint or prepared statement. */
const SAVEPOINT = /^\s*(?:savepoint|prepare)\s+(\w+)/i;
const CAST = /^\s*create\s+cast\s*\(\s*([\w\s]+?)\s+as\s+([\w\s]+?)\s*\)/i;
const OPERATOR = /^\s*create\s+operator\s+([^\s\w("]+)/i;

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

/**
 * Judges statements, and remembers which objects are missing or outdated because a statement was
 * omitted.
 */
export class Judge {
  /** The names of objects that an omitted statement would have created or changed. */
  readonly #omitted = new Set<string>();
  /** The types between which an omitted statement would have created a cast. */
  readonly #casts: (readonly string[])[] = [];
  /** The operators that an omitted statement would have created. */
  readonly #operators = new Set<string>();
  /** The tables and views that each view reads, and the table of each partition. */
  readonly #views = new Map<string, readonly string[]>();
  /** The words that occur in omitted definitions. */
  readonly #definitionWords = new Set<string>();
  /** Whether a change was omitted since the last BEGIN. */
  #hasOmittedChange = false;

  judge(sql: string, ours: Played, theirs: Played): Verdict {
    this.#noteView(sql);
    if (BEGIN.test(sql)) this.#hasOmittedChange = false;
    const verdict = this.#verdict(sql, ours, theirs);
    if (verdict === "omitted" && !isQuery(sql)) this.#hasOmittedChange = true;
    // A result that depends on an omitted object may also be different.
    const isSure = isQuery(sql) || (verdict === "alike" && !this.#namesOmitted(sql));
    if (!isSure) this.#noteOmitted(sql);
    return verdict;
  }

  /**
   * Remembers which tables a view or a partition reads, because a change to the view or the
   * partition changes these tables.
   */
  #noteView(sql: string): void {
    const [, part, whole] = PART_OF.exec(sql) ?? [];
    if (part !== undefined && whole !== undefined) this.#views.set(bare(part), [bare(whole)]);
    const [, over, attached] = ATTACHED.exec(sql) ?? [];
    if (over !== undefined && attached !== undefined) this.#views.set(bare(attached), [bare(over)]);
    const view = VIEW.exec(sql)?.[1];
    if (view === undefined) return;
    const read = [...sql.matchAll(/\b(?:from|join)\s+("[^"]+"|[\w.]+)/gi)];
    this.#views.set(
      bare(view),
      read.map(([, name = ""]) => bare(name)),
    );
  }

  /**
   * Returns the tables and views below a view, which include the view itself if it is recursive.
   */
  #tablesOf(view: string, found = new Set<string>()): ReadonlySet<string> {
    for (const name of this.#views.get(view) ?? []) {
      if (found.has(name)) continue;
      found.add(name);
      this.#tablesOf(name, found);
    }
    return found;
  }

  /** Remembers the setting of a SET statement that only PostgreSQL ran. */
  omitSetting(sql: string): void {
    const name = SETTING.exec(sql)?.[1];
    if (name !== undefined) this.#omitted.add(bare(name));
  }

  #noteOmitted(sql: string): void {
    const made = MADE.exec(sql)?.[1];
    if (made !== undefined) {
      this.#omitted.add(bare(made));
      for (const table of this.#tablesOf(bare(made))) this.#omitted.add(table);
    }
    const savepoint = SAVEPOINT.exec(sql)?.[1];
    if (savepoint !== undefined) this.#omitted.add(bare(savepoint));
    const cast = CAST.exec(sql);
    if (cast !== null) this.#casts.push(wordsOf(`${cast[1] ?? ""} ${cast[2] ?? ""}`));
    const operator = OPERATOR.exec(sql)?.[1];
    if (operator !== undefined) this.#operators.add(operator);
    if (!DEFINES.test(sql) && !CHANGED_WITH.test(sql)) return;
    for (const word of wordsOf(sql)) this.#definitionWords.add(word);
    for (const form of SIDE_EFFECTS) {
      for (const [, name] of sql.matchAll(form)) {
        if (name === undefined) continue;
        this.#omitted.add(bare(name));
        for (const table of this.#tablesOf(bare(name))) this.#omitted.add(table);
      }
    }
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
    if (this.#namesOmitted(sql)) return true;
    if (ours.kind === "failure") {
      return (
        isOmission(ours) ||
        OMITTED_SUBJECTS.some((subject) => subject.test(sql)) ||
        (ours.code === "dependent_objects" && this.#namesOmitted(ours.message))
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
    const isUsed = theirs.code === "2BP01";
    return (
      isUsed &&
      wordsOf(sql)
        .slice(2)
        .some((word) => this.#definitionWords.has(word))
    );
  }

  #namesOmitted(sql: string): boolean {
    const words = wordsOf(sql);
    if (words.some((word) => this.#omitted.has(word))) return true;
    // A function whose parameters and result have the types of a cast may use it.
    const mayCast = DEFINES.test(sql) && !CAST.test(sql);
    if (mayCast && this.#casts.some((types) => types.every((type) => words.includes(type)))) {
      return true;
    }
    if ([...this.#operators].some((operator) => sql.includes(operator))) return true;
    if (/^\s*(?:alter|drop)\s+index\b/i.test(sql) && this.#isIndexOfOmitted(sql)) return true;
    return /\binformation_schema\./i.test(sql) && this.#isPatternOfOmitted(sql);
  }

  /** Whether a name looks like the name of an index on an omitted table. */
  #isIndexOfOmitted(sql: string): boolean {
    const names = [...this.#omitted];
    return wordsOf(sql).some((word) => names.some((name) => word.startsWith(`${name}_`)));
  }

  /** Whether a catalog query lists objects by a pattern that matches an omitted object. */
  #isPatternOfOmitted(sql: string): boolean {
    const patterns = [...sql.matchAll(/\blike\s+e?'([^']*)'/gi)].map(([, pattern = ""]) => {
      const source = pattern.replaceAll(/\\+_|%|_/g, (sign) => {
        return sign === "%" ? ".*" : sign === "_" ? "." : "_";
      });
      return new RegExp(`^${source}$`);
    });
    return patterns.some((pattern) => [...this.#omitted].some((name) => pattern.test(name)));
  }
}

function wordsOf(sql: string): string[] {
  return (sql.match(/"[^"]+"|[A-Za-z_]\w*/g) ?? []).map((word) => bare(word));
}

/**
 * Returns whether a failure is due to a feature or a range of values that Tidemark does not
 * support.
 */
function isOmission({ code, message }: { code: string; message: string }): boolean {
  return OMISSIONS.has(code) || DOCUMENTED_LIMITS.some((limit) => limit.test(message));
}

function bare(name: string): string {
  return (name.split(".").at(-1) ?? name).replaceAll('"', "").toLowerCase();
}
