/**
 * Asks DuckDB for a second opinion on queries, over copies of PostgreSQL's rows.
 *
 * `DIALECT` lists the rewrites of statements for DuckDB. If DuckDB's result differs from the
 * results of both Tidemark and PostgreSQL, `OTHER_MEANING` must give the reason. DuckDB has no
 * opinion on queries that it refuses, or on queries over JSON.
 */
import { DuckDBInstance } from "@duckdb/node-api";
import { cellFromDuckDb } from "./cells.ts";

/** A table to copy, with every cell as PostgreSQL prints it. */
export interface Copy {
  readonly name: string;
  readonly columns: readonly { readonly name: string; readonly type: string }[];
  readonly rows: readonly (readonly (string | null)[])[];
}

export interface SecondOpinion {
  /** Replaces all tables and views in DuckDB with the given tables and views. */
  copy(tables: readonly Copy[], views: ReadonlyMap<string, string>): Promise<void>;
  /** Returns the rows of a query; undefined if DuckDB has no opinion. */
  rows(sql: string, types: readonly WireType[]): Promise<readonly string[] | undefined>;
  close(): void;
}

type WireType = string | Readonly<Record<string, unknown>>;

/**
 * The time limit of a query, in milliseconds. If a query takes longer, DuckDB has no opinion on
 * it.
 */
const STATEMENT_MS_MAX = 10_000;

const SETTINGS = [
  "SET default_null_order = 'postgres'",
  "SET integer_division = true",
  "SET TimeZone = 'UTC'",
  "CREATE MACRO octet_length(x) AS strlen(x)",
  "CREATE MACRO every(x) AS bool_and(x)",
];

/** Patterns, each with its replacement in DuckDB's dialect. */
const DIALECT: readonly (readonly [RegExp, string])[] = [
  [/'\\xff01'::bytea/g, "'\\xFF\\x01'::blob"],
  [/'\\x'::bytea/g, "''::blob"],
  // In DuckDB, LIKE has no escape character unless the query specifies one.
  [/LIKE ('[^']*\\[^']*')/g, "LIKE $1 ESCAPE '\\'"],
];

/**
 * Patterns for queries whose results in DuckDB differ from those in PostgreSQL and Tidemark, each
 * with the reason.
 */
const OTHER_MEANING: readonly (readonly [where: RegExp, because: string])[] = [
  [/array_agg|ARRAY\[/, "DuckDB writes lists as [1, 2] and not as {1,2}"],
  [/::varchar\(2\)/, "a cast to VARCHAR(n) does not truncate in DuckDB"],
  [/concat\(/, "DuckDB writes a boolean in concat as true and not as t"],
  [
    /\), ?\(|\) (?:=|<|>=|<>) \(|\)\) IN|\) NOT IN/,
    "DuckDB's rows are values: a row that contains a NULL can be compared",
  ],
  [
    /date_trunc\([^()]*(?:\([^()]*\)[^()]*)*\) (?:!=|<>) |'[^']*' (?:!=|<>) date_trunc\(/,
    "DuckDB finds a moment that is not truncated unequal to every date_trunc, even to NULL",
  ],
  [/string_to_array/, "DuckDB splits an empty text into one part"],
  [
    /ntile\(\(?[a-z]/,
    "DuckDB reads the number of buckets from each row, not from the first of a partition",
  ],
  [/every\(.*?\) FILTER/, "DuckDB has a macro instead of every, and it takes no FILTER"],
  [
    /(?:floor|ceil|ceiling)\([^()]*\) (?:=|<>|!=|<|>|<=|>=) '[\d.]+'|'[\d.]+' (?:=|<>|!=|<|>|<=|>=) (?:floor|ceil|ceiling)\(/,
    "DuckDB first rounds a text that it compares with a whole DECIMAL",
  ],
  [
    /(?:floor|ceil|ceiling)\([^()]*\) (?:NOT )?IN \([^()]*'-?[\d.]+'/,
    "DuckDB first rounds a text in a list that it compares with a whole DECIMAL",
  ],
  [
    /\br [-+*/] |[-+*/] q\d+\.r\b/,
    "FLOAT with a whole number is FLOAT in DuckDB, and may be Infinity",
  ],
  [
    /round\(-?[\d.]+, \d\)|COALESCE\(\(sum\((?:round|trunc|floor|ceil|ceiling)\(/,
    "in DuckDB a literal beside a rounded DECIMAL takes its scale",
  ],
  [
    /string_agg\(DISTINCT .*'\+'\)/,
    "DuckDB does not sort distinct values unless the query orders them",
  ],
];

/**
 * Returns the reason why DuckDB's result of a query may differ; undefined if no reason is known.
 */
export function otherMeaningOf(sql: string): string | undefined {
  return OTHER_MEANING.find(([where]) => where.test(sql))?.[1];
}

export async function openSecondOpinion(): Promise<SecondOpinion> {
  const instance = await DuckDBInstance.create(":memory:", { threads: "1" });
  const connection = await instance.connect();
  for (const setting of SETTINGS) await connection.run(setting);
  const old: string[] = [];
  let missing = missingIn([]);
  return {
    async copy(tables, views) {
      for (const drop of old.splice(0).toReversed()) await connection.run(drop);
      missing = missingIn(tables);
      for (const { columns, name, rows } of tables) {
        const definition = columns.map((column) => `${column.name} ${typeOf(column.type)}`);
        await connection.run(`CREATE TABLE ${name} (${definition.join(", ")})`);
        old.push(`DROP TABLE ${name}`);
        const lines = rows.map((row) => {
          return `(${row.map((cell, i) => literalOf(cell, columns[i]?.type ?? "")).join(", ")})`;
        });
        if (lines.length > 0) await connection.run(`INSERT INTO ${name} VALUES ${lines.join(",")}`);
      }
      // DuckDB may lack a view. A query over such a view is refused like any other query that
      // DuckDB cannot run.
      for (const [name, sql] of views) {
        if (missing.test(sql)) continue;
        const isMade = await connection.run(translated(sql)).catch(ignoreRefusal);
        if (isMade !== undefined) old.push(`DROP VIEW ${name}`);
      }
    },
    async rows(sql, types) {
      if (missing.test(sql) || types.some(isMissing)) return undefined;
      const timer = setTimeout(() => connection.interrupt(), STATEMENT_MS_MAX);
      const reader = await connection.runAndReadAll(translated(sql)).catch(ignoreRefusal);
      clearTimeout(timer);
      return reader
        ?.getRowsJson()
        .map((row) => row.map((cell, i) => cellFromDuckDb(cell, types[i] ?? "Text")).join(" | "));
    },
    close() {
      connection.closeSync();
      instance.closeSync();
    },
  };
}

/**
 * Returns undefined, meaning no opinion, if DuckDB refused a query. Any other error is a fault of
 * the script and is rethrown.
 */
function ignoreRefusal(error: unknown): undefined {
  if (error instanceof Error && / Error: /.test(error.message)) return undefined;
  throw error;
}

/**
 * Matches types that DuckDB lacks, or whose meaning, text form or order is different in DuckDB.
 */
const MISSING_TYPES = /^(?:JSONB|NUMERIC|INTERVAL|INT\[\]|INET|BIT VARYING|NUMRANGE|NUMMULTIRANGE)/;

/** Matches calls and literals of the types that DuckDB lacks. */
const MISSING_WORDS = String.raw`json|::interval|make_interval|inet|masklen|range|\bB'|varbit|\barray\b|::int\[\]|::numeric\b(?!\()`;

/**
 * Whether DuckDB lacks the type of a result column. A NUMERIC without a size is reported with
 * precision 0.
 */
function isMissing(type: WireType): boolean {
  if (typeof type === "string") return type === "Json";
  const size = "Decimal" in type ? type["Decimal"] : undefined;
  return size === undefined || JSON.stringify(size) === '{"precision":0,"scale":0}';
}

/** Returns a pattern that matches every name of a column whose type DuckDB lacks. */
function missingIn(tables: readonly Copy[]): RegExp {
  const columns = tables.flatMap((table) => table.columns);
  const names = columns.filter(({ type }) => MISSING_TYPES.test(type)).map(({ name }) => name);
  const sources = [MISSING_WORDS, ...names.map((name) => String.raw`\b${name}\b`)];
  return new RegExp(sources.join("|"), "i");
}

function translated(sql: string): string {
  return DIALECT.reduce((text, [from, to]) => text.replace(from, to), sql);
}

function typeOf(type: string): string {
  return type === "BYTEA" ? "BLOB" : MISSING_TYPES.test(type) ? "VARCHAR" : type;
}

function literalOf(cell: string | null, type: string): string {
  if (cell === null) return "NULL";
  if (type !== "BYTEA") return `'${cell.replaceAll("'", "''")}'`;
  return `'${cell.slice(2).replaceAll(/../g, "\\x$&")}'::blob`;
}
