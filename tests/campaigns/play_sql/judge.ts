/** Judges the results of both sides for a statement of a played script. */
import { haveSameRows, type Played } from "./played.ts";

export type Verdict = "alike" | "omitted" | "refused" | "accepted" | "wrong";
export type Counts = Record<Verdict, number>;

/** Statements about PostgreSQL's own catalog, plans, accounts and maintenance. */
const NOT_PLAYED = new RegExp(
  [
    // The tables and views of the catalog, and the functions that describe its objects.
    String.raw`\bpg_(?:aggregate|am|amop|amproc|attrdef|attribute|auth_members|authid|cast|class|collation|constraint|conversion|cursors|database|db_role_setting|default_acl|depend|description|enum|event_trigger|extension|foreign_\w+|get_\w+|index|indexes|inherits|init_privs|language|largeobject\w*|locks|matviews|namespace|opclass|operator|opfamily|partitioned_table|policies|policy|prepared_\w+|proc|publication\w*|range|relation\w*|replication\w*|rewrite|roles|rules|seclabel\w*|sequence|sequences|settings|shdepend|shdescription|stat\w*|subscription\w*|tables|tablespace|total_\w+|transform|trigger|ts_\w+|type|user_mapping\w*|views)\b`,
    String.raw`^\s*(?:explain|vacuum|analyze|show|reindex|cluster|grant|revoke|lock|load|listen|notify|checkpoint|discard|security|alter\s+(?:database|system|role|user|group)|(?:create|drop)\s+(?:role|user|group|database|tablespace))\b`,
  ].join("|"),
  "i",
);
/** The codes and reasons of errors about features that Tidemark does not have. */
const OMISSIONS: ReadonlySet<string> = new Set([
  "UNSUPPORTED_FEATURE",
  "not_implemented",
  "invalid_option",
  // The statement that caused the transaction to fail was already counted.
  "transaction_failed",
]);

/** Messages about limits of types that docs/sql.md lists. */
const DOCUMENTED_LIMITS = [
  /is not between 1 and 38|beyond the range of the type|must fit in 32 bits/,
  // docs/not-yet.md lists the types that PostgreSQL has and Tidemark lacks.
  /Cannot use type "(?:point|lseg|line|box|path|polygon|circle|oid|reg\w+|txid_snapshot|pg_\w+|xid8?|cid|tid|xml|char|\w*range|int2vector|oidvector|any\w*|record)": there is no such type/,
];

const QUERY = /^\s*(?:\(\s*)*(?:select|with|values|table)\b/i;
const CHANGE = /\b(?:insert|update|delete|merge)\b|\binto\b/i;

const MADE =
  /^\s*(?:create|alter|drop|insert\s+into|update|delete\s+from|copy|truncate|merge\s+into|comment\s+on|select\b[\s\S]*?\binto)\b(?:\s+(?:or\s+replace|temp|temporary|unlogged|global|local|unique|recursive|foreign\s+data\s+wrapper|foreign\s+table|text\s+search\s+\w+|table|view|materialized\s+view|index|sequence|type|domain|function|aggregate|operator(?:\s+(?:class|family))?|schema|procedure|routine|collation|conversion|constraint|trigger|event\s+trigger|rule|policy|statistics|publication|subscription|server|language|extension|access\s+method|cast|only|if\s+exists|if\s+not\s+exists|concurrently))*\s+("[^"]+"|[\w.]+)/i;

const NAME = String.raw`("[^"]+"|[\w.]+)`;

/** Definitions that change the effect of later statements on other objects. */
const SIDE_EFFECTS = [
  String.raw`\btrigger\b[\s\S]*?\bon\s+${NAME}`,
  String.raw`\brule\b[\s\S]*?\bto\s+${NAME}`,
  String.raw`\brule\b[\s\S]*?\b(?:insert\s+into|update|delete\s+from)\s+${NAME}`,
  String.raw`\binherits\s*\(\s*${NAME}`,
  String.raw`\binherit\s+${NAME}`,
  String.raw`\bindex\b[\s\S]*?\bon\s+(?:only\s+)?${NAME}`,
].map((source) => new RegExp(String.raw`^\s*(?:create|alter)\b[\s\S]*?${source}`, "i"));

export function isPlayed(sql: string): boolean {
  return !NOT_PLAYED.test(sql);
}

/** Returns whether a statement only reads. */
export function isQuery(sql: string): boolean {
  return QUERY.test(sql) && !CHANGE.test(sql);
}

export function noCounts(): Counts {
  return { alike: 0, omitted: 0, refused: 0, accepted: 0, wrong: 0 };
}

/**
 * Judges statements, and remembers the objects that are missing or outdated because a statement was
 * omitted.
 */
export class Judge {
  /** Names of objects that an omitted statement would have created or changed. */
  readonly #omitted = new Set<string>();

  judge(sql: string, ours: Played, theirs: Played): Verdict {
    const verdict = this.#verdict(sql, ours, theirs);
    // A result that derives from such an object differs as well.
    const isSure = isQuery(sql) || (verdict === "alike" && !this.#namesOmitted(sql));
    const made = isSure ? [] : [MADE, ...SIDE_EFFECTS];
    for (const form of made) {
      const name = form.exec(sql)?.[1];
      if (name !== undefined) this.#omitted.add(bare(name));
    }
    return verdict;
  }

  #verdict(sql: string, ours: Played, theirs: Played): Verdict {
    if (ours.kind === "failure") {
      if (theirs.kind === "failure") return "alike";
      return isOmission(ours) || this.#namesOmitted(sql) ? "omitted" : "refused";
    }
    if (theirs.kind === "failure") return this.#namesOmitted(sql) ? "omitted" : "accepted";
    const hasRows = QUERY.test(sql) || /\breturning\b|^copy\b|^fetch\b/i.test(sql);
    if (!hasRows || haveSameRows(ours.rows, theirs.rows)) return "alike";
    return this.#namesOmitted(sql) ? "omitted" : "wrong";
  }

  #namesOmitted(sql: string): boolean {
    const words = sql.match(/"[^"]+"|[A-Za-z_][\w.]*/g) ?? [];
    return words.some((word) => this.#omitted.has(bare(word)));
  }
}

/** Returns whether a failure is due to a feature or a value range that Tidemark does not have. */
function isOmission({ code, message }: { code: string; message: string }): boolean {
  return OMISSIONS.has(code) || DOCUMENTED_LIMITS.some((limit) => limit.test(message));
}

function bare(name: string): string {
  return (name.split(".").at(-1) ?? name).replaceAll('"', "").toLowerCase();
}
