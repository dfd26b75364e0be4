/**
 * Lists the intended differences from PostgreSQL by cause. `docs/internals/differences.md`
 * contains the same list with the reasons.
 */
import { haveSameRows, type Played } from "./played.ts";

export interface Comparison {
  readonly sql: string;
  readonly ours: Played;
  readonly theirs: Played;
  /** A result that PostgreSQL gives for the same rows in another order, without indexes. */
  readonly other?: Played;
  /** All rows of the cursor that a FETCH reads, as of the declaration of the cursor. */
  readonly declared?: Played | undefined;
}

const NUMBER = /^-?\d+(?:\.\d+)?(?:e[-+]\d+)?$/;

interface ListedDifference {
  readonly cause: string;
  readonly isMet: (comparison: Comparison) => boolean;
}

export const LISTED_DIFFERENCES: readonly ListedDifference[] = [
  {
    cause: "the default namespace is named default",
    isMet: ({ sql, ours, theirs }) =>
      /\bcurrent_schemas?\b|\binformation_schema\./i.test(sql) &&
      haveSameRows(renamed(ours, "default", "tidemark"), renamed(theirs, "public", "postgres")),
  },
  {
    cause: "each side has its own user",
    isMet: ({ sql, ours, theirs }) =>
      /\b(?:session|current)_user\b/i.test(sql) && isRows(ours) && isRows(theirs),
  },
  {
    cause: "CHAR(n) is not padded with blanks",
    isMet: ({ ours, theirs }) =>
      isRows(ours) && isRows(theirs) && haveSameRows(ours.rows, trimmed(theirs.rows)),
  },
  {
    cause: "a view of the catalog shows the text as written, and hidden columns",
    isMet: ({ sql, ours, theirs }) =>
      /\binformation_schema\.(?:views|columns|triggers)\b/i.test(sql) &&
      isRows(ours) &&
      isRows(theirs),
  },
  {
    cause: "an untyped literal has the type text, and the name of a type is text",
    isMet: ({ sql, ours, theirs }) =>
      /\bpg_typeof\b/i.test(sql) &&
      haveSameRows(
        renamed(ours, "text"),
        renamed(theirs, "unknown", "regtype", "character varying"),
      ),
  },
  {
    cause: "an untyped literal has the type text, and the name of a type is text",
    isMet: ({ sql, ours, theirs }) =>
      /\bformat_type\s*\(\s*'(?:varchar|bpchar)'/i.test(sql) &&
      isRows(ours) &&
      isRows(theirs) &&
      haveSameRows(ours.rows, [["text"]]) &&
      /^(?:character(?: varying)?(?:\(\d+\))?|bpchar)$/.test(theirs.rows[0]?.[0] ?? ""),
  },
  {
    cause: "an XID is a number",
    isMet: ({ sql, ours, theirs }) =>
      /'\w*'::xid8?\b/i.test(sql) && ours.kind === "failure" && isRows(theirs),
  },
  {
    cause: "COMBINEFUNC is never called",
    isMet: ({ sql, ours, theirs }) => /\bbalk\(/i.test(sql) && isRows(ours) && isRows(theirs),
  },
  {
    cause: "arithmetic on REAL is done in DOUBLE",
    isMet: ({ sql, ours, theirs }) =>
      /\bsum\s*\(/i.test(sql) &&
      isRows(ours) &&
      isRows(theirs) &&
      haveSameRows(inReals(ours.rows), inReals(theirs.rows)),
  },
  {
    cause: "FLOAT is REAL",
    isMet: ({ sql, ours, theirs }) =>
      /\brtest_vcomp\b/i.test(sql) &&
      isRows(ours) &&
      isRows(theirs) &&
      haveSameRows(inReals(ours.rows), inReals(theirs.rows)),
  },
  {
    cause: "DISABLE TRIGGER ALL keeps foreign keys in force",
    isMet: ({ sql, ours, theirs }) =>
      /\bfrom\s+trigtest2\s*$/i.test(sql) &&
      isRows(ours) &&
      isRows(theirs) &&
      haveSameRows(ours.rows, []) &&
      haveSameRows(theirs.rows, [["1"]]),
  },
  {
    cause: "a function reads the snapshot of its statement",
    isMet: ({ sql, ours, theirs }) =>
      /\bfrom\s+xacttest\s*$/i.test(sql) &&
      isRows(ours) &&
      isRows(theirs) &&
      theirs.rows.some(([a]) => a === "797"),
  },
  {
    cause: "the order of rows leaves the result open",
    isMet: ({ other, ours, theirs }) =>
      other !== undefined &&
      isRows(other) &&
      isRows(ours) &&
      isRows(theirs) &&
      haveSameRows(ours.rows, other.rows) &&
      !haveSameRows(theirs.rows, other.rows),
  },
  {
    cause: "a cursor runs its query when it is declared",
    isMet: ({ declared, ours, theirs }) =>
      declared !== undefined &&
      isRows(declared) &&
      isRows(ours) &&
      isRows(theirs) &&
      haveSameRows(ours.rows, declared.rows),
  },
  {
    cause: "a cursor without ORDER BY has its rows in any order",
    isMet: ({ declared, ours, theirs }) =>
      declared !== undefined &&
      isRows(declared) &&
      isRows(ours) &&
      isRows(theirs) &&
      ours.rows.length === theirs.rows.length &&
      [ours, theirs].every(({ rows }) => isPartOf(rows, declared.rows)),
  },
  {
    cause: "a row is sent as a JSON object",
    isMet: ({ ours, sql, theirs }) =>
      /\breturning\b/i.test(sql) &&
      isRows(ours) &&
      isRows(theirs) &&
      haveSameRows(rowTexts(ours.rows), theirs.rows),
  },
  accepted("digits may be separated by underscores", "42601", /\d_\d/),
  {
    cause: "information_schema lists materialized views",
    isMet: ({ sql, ours, theirs }) =>
      /\binformation_schema\.tables\b/i.test(sql) &&
      isRows(ours) &&
      isRows(theirs) &&
      haveSameRows(
        ours.rows.filter((row) => !row.includes("MATERIALIZED VIEW")),
        theirs.rows,
      ),
  },
  {
    cause: "SQLERRM is a message of this server",
    isMet: ({ ours, sql, theirs }) =>
      /\bexcpt_test4\b/.test(sql) && ours.kind === "rows" && isRows(theirs),
  },
  {
    cause: "a sample consists of other rows",
    isMet: ({ sql, ours, theirs }) =>
      /\btablesample(?!_v)/i.test(sql) && isRows(ours) && isRows(theirs),
  },
  accepted("COPY reads views", "42809", /^\s*copy\b/i),
  accepted("a DEFAULT may be any expression", "42601", /\bdefault\b[^,]*\bin\s*\(/i),
  accepted("an empty ARRAY[] is an array of text", "42P18", /\barray\s*\[\s*\]/i),
  accepted("a new label of an ENUM can be used at once", "55P04"),
  accepted("names of storage parameters ignore case", "22023", /\bwith\s*\(\s*"/i),
  accepted("a temporary table is played as an ordinary table", "42P16", /\btemp/i),
  accepted(
    "a temporary table is played as an ordinary table",
    "42809",
    /^\s*create\s+temp\w*\s+table\s+\S+\s+partition\s+of\b/i,
  ),
  accepted("keys are never deferred", "23505", /^\s*(?:commit|set\s+constraints)\b/i),
  accepted("a statement follows the columns of its tables", "0A000", /^\s*execute\b/i),
  accepted("rows are compared by common types", "42804"),
  accepted("text() takes a row", "42883", /\btext\s*\(\s*row\b/i),
  accepted(
    "functions in SQL call procedures with output parameters",
    "0A000",
    /^\s*create\b[\s\S]*\blanguage\s+sql\b[\s\S]*\bcall\s/i,
  ),
  accepted(
    "the body of a polymorphic function needs no quotes",
    "42P13",
    /^\s*create\b[\s\S]*\bany\w+\b[\s\S]*\b(?:return|begin\s+atomic)\b/i,
  ),
  accepted("a pattern of like_regex is read when it is used", "2201B", /::\s*jsonpath/i),
  refused(
    "a temporary table is played as an ordinary table",
    /^\s*create\s+temp/i,
    /already exists/,
  ),
  refused("a request is not a session", /^/, /this request has not called nextval/),
  refused(
    "a request is not a session",
    /\b(?:lastval|currval|nextval|fetch|close|move)\b/i,
    /\brequest\b|cursor/,
  ),
  refused("a request is not a session", /\b(?:execute|deallocate)\b/i, /prepared/),
  {
    cause: "a request is not a session",
    isMet: ({ sql, ours, theirs }) =>
      /\bpg_advisory_(?:un)?lock/i.test(sql) &&
      isRows(theirs) &&
      (ours.kind === "rows" || ours.message.includes("the session")),
  },
  refused(
    "COMMIT needs a transaction",
    /^\s*(?:commit|end|rollback|abort)\b/i,
    /no transaction is open/,
  ),
  refused("BEGIN ends no transaction", /^\s*(?:begin|start)\b/i, /a transaction is already open/),
  refused("NAME refuses a text that is too long", /\bname_tbl\b/i, /character varying\(63\)/),
  refused("timestamps end in the year 294246", /\b\d{6,}-\d\d-\d\d\b|\/\d{6}\b/, /294246/),
  refused("timestamps begin on 4714-11-24 BC", /\bBC\b/, /4714-11-24 BC/),
  refused("zones have names or offsets", /\b(?:VET|IST|FOO8BAR|PST8PDT)|'\+1:/, /time zone/),
  refused(
    "words such as yesterday cannot be elements of arrays",
    /'yesterday'/,
    /time at which the statement runs/,
  ),
  refused(
    "a sequence is used by each DEFAULT that names it",
    /^\s*drop\s+sequence\b/i,
    /it is used by \d+ DEFAULTs?,/,
  ),
  refused(
    "one part of a statement changes a row",
    /^\s*with\b/i,
    /two parts of the statement change it/,
  ),
  refused("ALTER TYPE runs outside transactions", /^\s*alter\s+type\b/i, /inside a transaction/),
  refused(
    "CREATE SCHEMA holds no definitions",
    /^\s*create\s+schema[\s\S]*\bcreate\b/i,
    /found "CREATE"/i,
  ),
  refused("a temporary table is played as an ordinary table", /\bpg_temp\./i, /pg_temp/),
  refused("a temporary table is played as an ordinary table", /_temp\d*'/i, /READ ONLY/),
  refused("names are printable", /colname with tab/, /printable/),
  refused(
    "names of types begin with a letter",
    /^\s*create\s+(?:type|domain)\b/i,
    /as a type name: .*begin with a letter/,
  ),
  refused(
    "no column has the row type of a table",
    /\b(?:fullname|int8_tbl)\b/i,
    /there is no such type/,
  ),
  refused("X'…' is a string of bytes", /\bx'/i, /pairs of hexadecimal digits/),
  refused("a key has no arrays", /\b(?:unique|partition\s+by)\b/i, /is not allowed there/),
  refused(
    "a partitioned table keeps the column of its key",
    /^\s*drop\s+(?:domain|type)\b[\s\S]*\bcascade\b/i,
    /is part of the partition key/,
  ),
  refused(
    "a namespace is dropped without the partitions of other tables",
    /^\s*drop\s+schema\b/i,
    /is a partition of/,
  ),
  refused("intervals and moments have no rarer ISO forms", /'(?:P[\d.]+e|Y\d)/, /Cannot read/),
];

/** Returns the cause of a listed difference; undefined if the difference is not listed. */
export function causeOf(comparison: Comparison): string | undefined {
  return LISTED_DIFFERENCES.find(({ isMet }) => isMet(comparison))?.cause;
}

/** Returns the entry for a statement that only PostgreSQL refuses. */
function accepted(cause: string, state: string, form = /^/): ListedDifference {
  return {
    cause,
    isMet: ({ sql, ours, theirs }) =>
      isRows(ours) && theirs.kind === "failure" && theirs.code === state && form.test(sql),
  };
}

/** Returns the entry for a statement that only Tidemark refuses. */
function refused(cause: string, form: RegExp, told: RegExp): ListedDifference {
  return {
    cause,
    isMet: ({ sql, ours, theirs }) =>
      ours.kind === "failure" && isRows(theirs) && form.test(sql) && told.test(ours.message),
  };
}

type Rows = (Played & { kind: "rows" })["rows"];

function isRows(played: Played): played is Played & { kind: "rows" } {
  return played.kind === "rows";
}

/**
 * Returns the rows of a result with every name that may differ replaced by the same placeholder.
 */
function renamed(played: Played, ...names: readonly string[]): Rows {
  if (!isRows(played)) return [];
  const form = new RegExp(String.raw`\b(?:${names.join("|")})\b`, "g");
  return played.rows.map((row) => row.map((cell) => cell?.replaceAll(form, "*")));
}

/** Whether each of some rows is one of the given rows, and no row is needed twice. */
function isPartOf(rows: Rows, all: Rows): boolean {
  const left = [...all];
  return rows.every((row) => {
    const at = left.findIndex((each) => haveSameRows([row], [each]));
    if (at < 0) return false;
    left.splice(at, 1);
    return true;
  });
}

/** Returns rows with the text of PostgreSQL in place of each JSON object of plain values. */
function rowTexts(rows: Rows): Rows {
  return rows.map((row) =>
    row.map((cell) => (cell !== undefined && /^\{"[^"]*":/.test(cell) ? rowText(cell) : cell)),
  );
}

function rowText(cell: string): string {
  const fields = Object.values(JSON.parse(cell) as Record<string, unknown>).map((value) => {
    const text = typeof value === "string" ? value : value === null ? "" : JSON.stringify(value);
    return value === "" || /[\s"(),\\]/.test(text)
      ? `"${text.replaceAll(/["\\]/g, (sign) => sign + sign)}"`
      : text;
  });
  return `(${fields.join(",")})`;
}

/** Returns rows without trailing whitespace in cells and array elements. */
function trimmed(rows: Rows): Rows {
  const inArray = (_: string, element: string): string =>
    /^\w+$/.test(element) ? element : `"${element}"`;
  return rows.map((row) =>
    row.map((cell) => cell?.trimEnd().replaceAll(/"([^"\\]*?) +"/g, inArray)),
  );
}

/** Returns rows with numbers rounded to the digits that a REAL is certain to preserve. */
function inReals(rows: Rows): Rows {
  return rows.map((row) =>
    row.map((cell) => (NUMBER.test(cell ?? "") ? Number(cell).toPrecision(6) : cell)),
  );
}
