/**
 * Rewrites the test cases in `tests/sql/cases/*.slt`: runs every statement from
 * `scripts/write_cases/` in PostgreSQL, and records the results.
 *
 * The statements of each file run in order on a separate database. If Tidemark deliberately
 * returns a different result, `write_cases/differences.ts` gives that result and the reason, and
 * the file contains both results.
 */
import { join } from "node:path";
import { postgresPrograms, startPostgres } from "../tests/support/postgres.ts";
import { sltValues } from "../tests/support/slt.ts";
import { optionalText, readOptions } from "./support/arguments.ts";
import type { Answer, CaseFile } from "./write_cases/answer.ts";
import { ARRAYS_STORED } from "./write_cases/arrays_stored.ts";
import { CHANGES } from "./write_cases/changes.ts";
import { CHANGES_IN_WITH } from "./write_cases/changes_in_with.ts";
import { COLLATIONS } from "./write_cases/collations.ts";
import { COLUMN_PARTS } from "./write_cases/column_parts.ts";
import { conditionsOfState } from "./write_cases/conditions.ts";
import { CURSOR_ROWS } from "./write_cases/cursor_rows.ts";
import { DATE_WORDS } from "./write_cases/date_words.ts";
import { DEFINED_AGGREGATES } from "./write_cases/defined_aggregates.ts";
import { type Difference, differenceOf } from "./write_cases/differences.ts";
import { DOMAINS } from "./write_cases/domains.ts";
import { EDGES } from "./write_cases/edges.ts";
import { ENDLESS } from "./write_cases/endless.ts";
import { ENUMS } from "./write_cases/enums.ts";
import { EXPANDED } from "./write_cases/expanded.ts";
import { GEOMETRY } from "./write_cases/geometry.ts";
import { GROUPED } from "./write_cases/grouped.ts";
import { JSON_DOCUMENTS } from "./write_cases/json_documents.ts";
import { JSON_PARTS } from "./write_cases/json_parts.ts";
import { JSON_PATHS } from "./write_cases/json_paths.ts";
import { KEY_CHANGES } from "./write_cases/key_changes.ts";
import { MATERIALIZED_VIEWS } from "./write_cases/materialized_views.ts";
import { MERGES } from "./write_cases/merges.ts";
import { MOMENTS } from "./write_cases/moments.ts";
import { NESTED } from "./write_cases/nested.ts";
import { NOT_FINITE } from "./write_cases/not_finite.ts";
import { OBJECT_NAMES } from "./write_cases/object_names.ts";
import { PARTITION_INDEXES } from "./write_cases/partition_indexes.ts";
import { PARTITIONS } from "./write_cases/partitions.ts";
import { PATTERNS } from "./write_cases/patterns.ts";
import { PLANNED } from "./write_cases/planned.ts";
import { PLAYED } from "./write_cases/played.ts";
import { askPostgres } from "./write_cases/psql.ts";
import { QUERIES } from "./write_cases/queries.ts";
import { RANGE_TYPES } from "./write_cases/range_types.ts";
import { RANGES } from "./write_cases/ranges.ts";
import { RARER_TYPES } from "./write_cases/rarer_types.ts";
import { ROW_TYPES } from "./write_cases/row_types.ts";
import { ROW_CASES } from "./write_cases/rows.ts";
import { SCALARS } from "./write_cases/scalars.ts";
import { SMALL_WORDS } from "./write_cases/small_words.ts";
import { SQL_FUNCTIONS } from "./write_cases/sql_functions.ts";
import { TEXT_SEARCH } from "./write_cases/text_search.ts";
import { TRIGGERS } from "./write_cases/triggers.ts";
import { VALUES } from "./write_cases/values.ts";
import { VIEWS } from "./write_cases/views.ts";
import { WALK_CASES } from "./write_cases/walks.ts";
import { XML } from "./write_cases/xml.ts";

/**
 * The files that may contain the same statement several times, because its result changes with the
 * rows.
 */
const REPEATING: ReadonlySet<string> = new Set([
  "changes",
  "changes_in_with",
  "cursor_rows",
  "defined_aggregates",
  "definitions",
  "domains",
  "arrays_stored",
  "json_parts",
  "json_paths",
  "key_changes",
  "materialized_views",
  "merges",
  "object_names",
  "partition_indexes",
  "partitions",
  "range_types",
  "ranges",
  "rarer_types",
  "row_types",
  "sql_functions",
  "text_search",
  "triggers",
  "views",
]);

const DIRECTORY: string = join(import.meta.dir, "../tests/sql/cases");

const { only } = readOptions({
  only: optionalText("<file>", "the file of cases to write, without its extension"),
});
const files = [
  ...SCALARS,
  PATTERNS,
  ...VALUES,
  ...MOMENTS,
  ...NESTED,
  ...QUERIES,
  ...GROUPED,
  ...EXPANDED,
  ...PLANNED,
  ...CHANGES,
  CHANGES_IN_WITH,
  COLUMN_PARTS,
  OBJECT_NAMES,
  PARTITIONS,
  PARTITION_INDEXES,
  KEY_CHANGES,
  MATERIALIZED_VIEWS,
  MERGES,
  ROW_TYPES,
  ...ROW_CASES,
  ...WALK_CASES,
  ...EDGES,
  ...JSON_DOCUMENTS,
  ...ARRAYS_STORED,
  CURSOR_ROWS,
  DATE_WORDS,
  DOMAINS,
  ENDLESS,
  ENUMS,
  NOT_FINITE,
  JSON_PARTS,
  JSON_PATHS,
  PLAYED,
  GEOMETRY,
  RANGES,
  RANGE_TYPES,
  RARER_TYPES,
  SMALL_WORDS,
  COLLATIONS,
  SQL_FUNCTIONS,
  DEFINED_AGGREGATES,
  TEXT_SEARCH,
  TRIGGERS,
  VIEWS,
  XML,
].filter(({ name }) => only === undefined || name === only);
const programs = postgresPrograms();
if (programs === undefined) throw new Error("Cannot ask PostgreSQL: it is not installed");
const postgres = await startPostgres();
try {
  for (const file of files) {
    const path = join(DIRECTORY, `${file.name}.slt`);
    const { count, text } = await written(file, programs);
    await Bun.write(path, text);
    process.stdout.write(`${path}: ${count} cases\n`);
  }
} finally {
  await postgres.stop();
}

async function written(
  { about, extension, name, statements }: CaseFile,
  path: string,
): Promise<{ text: string; count: number }> {
  const distinct = REPEATING.has(name) ? statements : [...new Set(statements)];
  const setup = [`CREATE SCHEMA case_${name}`, `SET search_path = case_${name}`];
  if (extension !== undefined) setup.push(`CREATE EXTENSION ${extension}`);
  const answers = await askPostgres(postgres.url, path, [...setup, ...distinct]);
  const head = `# Cases of ${about}. Written by scripts/write_cases.ts from the results of PostgreSQL.\n`;
  const cases = distinct.map((sql, i) => {
    const answer = answers[i + setup.length];
    if (answer === undefined) throw new Error(`Cannot write a case: no answer to ${sql}`);
    return caseText(sql, answer, differenceOf(sql));
  });
  return { text: [head, ...cases].join("\n"), count: distinct.length };
}

function caseText(sql: string, answer: Answer, difference: Difference | undefined): string {
  const theirs = recordText(sql, answer);
  if (difference === undefined) return theirs;
  const ours = recordText(sql, difference.answer);
  return `# ${difference.because}\nskipif tidemark\n${theirs}\nonlyif tidemark\n${ours}`;
}

function recordText(sql: string, answer: Answer): string {
  if (answer.kind === "failure") {
    const allowed = conditionsOfState(answer.state);
    return `statement error ${allowed.join("|")}\n${sql}\n`;
  }
  const { columns, rows } = answer;
  if (columns.length === 0) return `statement ok\n${sql}\n`;
  const types = columns.join("");
  const sort = /\bORDER BY [^()]*$/i.test(sql) ? "nosort" : "rowsort";
  const values = sltValues(rows, types, sort);
  return [`query ${types} ${sort}`, sql, "----", ...values, ""].join("\n");
}
