/**
 * A second opinion about queries: DuckDB, over copies of the rows that PostgreSQL has.
 *
 * `DIALECT` lists what is rewritten for it. Where it answers otherwise than both others, one of
 * `OTHER_MEANING` must say why. What it refuses, and what is about JSON, it has no opinion of.
 */
import { DuckDBInstance } from "@duckdb/node-api";
import { cellFromDuckDb } from "./cells.ts";

/** A table as it is copied: every cell as PostgreSQL writes it. */
export interface Copy {
  readonly name: string;
  readonly columns: readonly { readonly name: string; readonly type: string }[];
  readonly rows: readonly (readonly (string | null)[])[];
}

export interface SecondOpinion {
  /** Puts tables and views in the place of all that there were. */
  copy(tables: readonly Copy[], views: ReadonlyMap<string, string>): Promise<void>;
  /** The rows of a query; undefined when it has no opinion. */
  rows(sql: string, types: readonly WireType[]): Promise<readonly string[] | undefined>;
  close(): void;
}

type WireType = string | Readonly<Record<string, unknown>>;

/** What takes longer it has no opinion of. */
const STATEMENT_MS_MAX = 10_000;

const SETTINGS = [
  "SET default_null_order = 'postgres'",
  "SET integer_division = true",
  "SET TimeZone = 'UTC'",
  "CREATE MACRO octet_length(x) AS strlen(x)",
  "CREATE MACRO every(x) AS bool_and(x)",
];

/** The same, as DuckDB writes it. */
const DIALECT: readonly (readonly [RegExp, string])[] = [
  [/'\\xff01'::bytea/g, "'\\xFF\\x01'::blob"],
  [/'\\x'::bytea/g, "''::blob"],
  // No character escapes there unless one is named.
  [/LIKE ('[^']*\\[^']*')/g, "LIKE $1 ESCAPE '\\'"],
];

/** What DuckDB answers otherwise than PostgreSQL, and Tidemark with it: a pattern, and why. */
const OTHER_MEANING: readonly (readonly [where: RegExp, because: string])[] = [
  [/array_agg|ARRAY\[/, "lists are written [1, 2] and not {1,2}"],
  [/::varchar\(2\)/, "a cast to VARCHAR(n) cuts nothing off"],
  [/concat\(/, "a boolean in concat is true and not t"],
  [
    /\), ?\(|\) (?:=|<|>=|<>) \(|\)\) IN|\) NOT IN/,
    "rows are values there: one with a NULL in it can be compared",
  ],
  [
    /date_trunc\([^()]*(?:\([^()]*\)[^()]*)*\) (?:!=|<>) |'[^']*' (?:!=|<>) date_trunc\(/,
    "what no truncated moment can be is unequal to every one, to NULL as well",
  ],
  [/string_to_array/, "the parts of an empty text are one there"],
  [/ntile\(\(?[a-z]/, "each row is asked for the number of buckets, not the first of a partition"],
  [/every\(.*?\) FILTER/, "the macro that stands for every knows no FILTER"],
  [
    /(?:floor|ceil|ceiling)\([^()]*\) (?:=|<>|!=|<|>|<=|>=) '[\d.]+'|'[\d.]+' (?:=|<>|!=|<|>|<=|>=) (?:floor|ceil|ceiling)\(/,
    "a text beside a whole DECIMAL is rounded to a whole number first",
  ],
  [
    /(?:floor|ceil|ceiling)\([^()]*\) (?:NOT )?IN \([^()]*'-?[\d.]+'/,
    "a text in the list of a whole DECIMAL is rounded to a whole number first",
  ],
  [/\br [-+*/] |[-+*/] q\d+\.r\b/, "FLOAT with a whole number is FLOAT there, and may be Infinity"],
  [
    /round\(-?[\d.]+, \d\)|COALESCE\(\(sum\((?:round|trunc|floor|ceil|ceiling)\(/,
    "a literal beside a rounded DECIMAL takes the scale of that",
  ],
  [/string_agg\(DISTINCT .*'\+'\)/, "distinct values come unsorted where no order is asked for"],
];

/** Why DuckDB may answer a query otherwise; undefined when nothing is known. */
export function otherMeaningOf(sql: string): string | undefined {
  return OTHER_MEANING.find(([where]) => where.test(sql))?.[1];
}

export async function openSecondOpinion(): Promise<SecondOpinion> {
  const instance = await DuckDBInstance.create(":memory:", { threads: "1" });
  const connection = await instance.connect();
  for (const setting of SETTINGS) await connection.run(setting);
  const old: string[] = [];
  let json = jsonIn([]);
  return {
    async copy(tables, views) {
      for (const drop of old.splice(0).toReversed()) await connection.run(drop);
      json = jsonIn(tables);
      for (const { columns, name, rows } of tables) {
        const definition = columns.map((column) => `${column.name} ${typeOf(column.type)}`);
        await connection.run(`CREATE TABLE ${name} (${definition.join(", ")})`);
        old.push(`DROP TABLE ${name}`);
        const lines = rows.map((row) => {
          return `(${row.map((cell, i) => literalOf(cell, columns[i]?.type ?? "")).join(", ")})`;
        });
        if (lines.length > 0) await connection.run(`INSERT INTO ${name} VALUES ${lines.join(",")}`);
      }
      // A query over a view that it has not is refused like any that it cannot run.
      for (const [name, sql] of views) {
        if (json.test(sql)) continue;
        const isMade = await connection.run(translated(sql)).catch(ignoreRefusal);
        if (isMade !== undefined) old.push(`DROP VIEW ${name}`);
      }
    },
    async rows(sql, types) {
      if (json.test(sql) || types.includes("Json")) return undefined;
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

/** Another database's refusal is no opinion; what is no refusal is a fault of this script. */
function ignoreRefusal(error: unknown): undefined {
  if (error instanceof Error && / Error: /.test(error.message)) return undefined;
  throw error;
}

/** Finds whatever names JSON, which is text there: it has another order and other operators. */
function jsonIn(tables: readonly Copy[]): RegExp {
  const columns = tables.flatMap((table) => table.columns);
  const names = columns.filter(({ type }) => type === "JSONB").map(({ name }) => name);
  return new RegExp(["json", ...names.map((name) => `\\b${name}\\b`)].join("|"));
}

function translated(sql: string): string {
  return DIALECT.reduce((text, [from, to]) => text.replace(from, to), sql);
}

function typeOf(type: string): string {
  return type === "BYTEA" ? "BLOB" : type === "JSONB" ? "JSON" : type;
}

function literalOf(cell: string | null, type: string): string {
  if (cell === null) return "NULL";
  if (type !== "BYTEA") return `'${cell.replaceAll("'", "''")}'`;
  return `'${cell.slice(2).replaceAll(/../g, "\\x$&")}'::blob`;
}
