/**
 * Runs SQL cases. All cases in this project are in the sqllogictest format, named after the corpus
 * of SQLite's authors:
 *
 *     [skipif <engine> | onlyif <engine>]
 *     statement ok | statement error [<codes>] [at <n>] | statement count <n>
 *     <SQL, up to an empty line>
 *
 *     query <types> [nosort | rowsort | valuesort] [label]
 *     <SQL>
 *     ----
 *     <values, one a line> | <n> values hashing to <md5>
 *
 * `halt` ends a file. `hash-threshold` states the number of values from which the author hashed
 * them, and has no effect here. `#` begins a comment. A type is `I` for an integer, `T` for text,
 * or `R` for a real with three decimals. Queries with the same label must return the same values.
 * `count` is the number of rows changed or returned.
 *
 * Our own cases also use these extensions:
 *
 * - Two more types: `U` for a value as JSON, that is, text with its quotes and escapes, and `N`
 *   for a number with twelve digits.
 * - The codes that an error may have, separated by `|`, and the statement that raises it, counted
 *   from 1.
 * - Several statements in one request. The record then describes the result of the last one.
 *   `result` lines after it check the n-th result, counted from 1, or the last one if there is no
 *   number:
 *
 *         result [<n>] count <n>
 *         result [<n>] columns <names, with ", " between them>
 *         result [<n>] contains <a part of the result as JSON, where " stands for \\" too>
 *         result [<n>] query <types> [sort]
 *         ----
 *         <values, up to an empty line>
 *
 * - Parts of a request, in lines before its record. A user applies until the next one is named.
 *   The other parts apply to a single request:
 *
 *         user <name> [<password, which must be given at first and after a change>]
 *         params <JSON array>
 *         namespace <name>
 */
import { tableTranslator } from "./slt_tables.ts";

export interface SltUser {
  readonly name: string;
  readonly password: string;
}

/** The parts of a request. The runner fills in any missing parts. */
export interface SltRequest {
  readonly sql: string;
  readonly user?: SltUser;
  readonly params?: readonly unknown[];
  readonly namespace?: string;
}

/** The result of one statement. */
export interface SltResult {
  readonly columns: readonly string[];
  readonly rows: readonly (readonly unknown[])[];
  readonly count: number | undefined;
  /** The whole result as JSON text. */
  readonly text: string;
}

/** The server's response to one request. */
export type SltAnswer =
  | { readonly ok: true; readonly results: readonly SltResult[] }
  | {
      readonly ok: false;
      readonly isUnsupported: boolean;
      readonly message: string;
      /**
       * The error codes that this error may have. There are several if only its wire code is
       * known.
       */
      readonly codes?: readonly string[];
      /** The statement that failed, counted from 1. */
      readonly statement?: number;
    };

export interface SltOptions {
  execute: (request: SltRequest) => Promise<SltAnswer>;
  /** The engine whose cases are to be run. */
  engine?: string;
  /**
   * Runs only every n-th SELECT, starting with the first. All other statements run, including those
   * that return the rows that they change.
   */
  queryOneOf?: number;
  /**
   * Whether the tables in the file have primary keys. If so, statements run without translation.
   */
  hasKeys?: boolean;
}

export interface SltReport {
  passedCount: number;
  /**
   * Cases that are refused because a feature is not available yet. They count neither as passed
   * nor as failed.
   */
  waiting: SltCase[];
  failures: readonly SltFailure[];
}

export interface SltCase {
  readonly line: number;
  readonly sql: string;
}

export interface SltFailure extends SltCase {
  readonly reason: string;
}

type Sort = "nosort" | "rowsort" | "valuesort";

interface Rows {
  readonly types: string;
  readonly sort: Sort;
  readonly label: string | undefined;
  readonly expected: readonly string[];
}

/** The expected form of one result. */
type Check =
  | { readonly kind: "rows"; readonly rows: Rows }
  | { readonly kind: "count"; readonly count: number }
  | { readonly kind: "columns"; readonly columns: string }
  | { readonly kind: "contains"; readonly part: string };

interface ResultCheck {
  /** The number of the statement, counted from 1; undefined for the last result. */
  readonly statement: number | undefined;
  readonly check: Check;
}

/** The parts of a request, except its SQL. */
interface Parts {
  user?: SltUser;
  params?: readonly unknown[];
  namespace?: string;
}

interface SltRecord extends SltCase {
  readonly parts: Parts;
  readonly isQuery: boolean;
  /** The expected error; undefined if the request must succeed. */
  readonly error?: { readonly codes: readonly string[]; readonly statement: number | undefined };
  readonly checks: ResultCheck[];
}

/** Runs every case in a file in order. Each case sees the effects of the cases before it. */
export async function runSlt(text: string, options: SltOptions): Promise<SltReport> {
  const { execute, engine = "postgresql", hasKeys = false, queryOneOf = 1 } = options;
  const failures: SltFailure[] = [];
  const report: SltReport = { passedCount: 0, waiting: [], failures };
  const translate = hasKeys ? (sql: string): string => sql : tableTranslator();
  const hashByLabel = new Map<string, string>();
  let queryCount = 0;
  for (const record of parseSlt(text, engine)) {
    if (record.isQuery && /^select\b/i.test(record.sql)) {
      queryCount += 1;
      if ((queryCount - 1) % queryOneOf !== 0) continue;
    }
    const { error, line, parts, sql } = record;
    const answer = await execute({ ...parts, sql: translate(sql) });
    if (
      !answer.ok &&
      answer.isUnsupported &&
      error?.codes.includes("UNSUPPORTED_FEATURE") !== true
    ) {
      report.waiting.push({ line, sql });
      continue;
    }
    const reason = faultOf(record, answer, hashByLabel);
    if (reason === undefined) report.passedCount += 1;
    else failures.push({ line, sql, reason });
  }
  return report;
}

/** Parses the cases that apply to an engine. @throws If a line has an unknown form. */
export function parseSlt(text: string, engine: string): SltRecord[] {
  const records: SltRecord[] = [];
  const lines = text.split(/\r?\n/);
  const passwords = new Map<string, string>();
  let isForUs = true;
  let isLastForUs = false;
  let parts: Parts = {};
  for (let index = 0; index < lines.length; index += 1) {
    const full = lines[index] ?? "";
    const words = full.replace(/#.*/, "").trim().split(/\s+/);
    const [word = "", argument = ""] = words;
    const line = index + 1;
    if (word === "" || word === "hash-threshold") continue;
    if (word === "halt" && isForUs) break;
    if (word === "skipif" || word === "onlyif") {
      if ((argument === engine) !== (word === "onlyif")) isForUs = false;
    } else if (word === "user") {
      parts.user = userFrom({ full, line }, passwords);
    } else if (word === "params") {
      parts.params = JSON.parse(restOf(full, 1)) as unknown[];
    } else if (word === "namespace") {
      parts.namespace = argument;
    } else {
      const end = hasBlock(words) ? endOfBlock(lines, line) : index;
      const source = { words, full, block: lines.slice(line, end), line };
      if (word === "result") {
        if (isLastForUs) records.at(-1)?.checks.push(resultCheckFrom(source));
      } else {
        if (isForUs) records.push({ ...recordFrom(source), parts });
        isLastForUs = isForUs;
        isForUs = true;
        parts = parts.user === undefined ? {} : { user: parts.user };
      }
      index = end;
    }
  }
  return records;
}

interface Source {
  readonly words: readonly string[];
  readonly full: string;
  readonly block: readonly string[];
  readonly line: number;
}

/**
 * Whether a line is followed by a block. All records have a block, but among `result` lines, only
 * lines that check rows have one.
 */
function hasBlock(words: readonly string[]): boolean {
  return words[0] !== "result" || words.includes("query");
}

function endOfBlock(lines: readonly string[], start: number): number {
  const end = lines.indexOf("", start);
  return end === -1 ? lines.length : end;
}

/** Returns the rest of a line after its first `wordCount` words. */
function restOf(full: string, wordCount: number): string {
  return full.trim().split(" ").slice(wordCount).join(" ");
}

function userFrom(
  { full, line }: Pick<Source, "full" | "line">,
  passwords: Map<string, string>,
): SltUser {
  const [, name = ""] = full.split(" ");
  const given = restOf(full, 2);
  if (given !== "") passwords.set(name, given);
  const password = passwords.get(name);
  if (password === undefined) throw new Error(`Cannot read line ${line}: it needs a password`);
  return { name, password };
}

function recordFrom(source: Source): Omit<SltRecord, "parts"> {
  const { words, block, line } = source;
  const [word, argument = "", third, fourth, fifth] = words;
  const divider = block.indexOf("----");
  const sql = block.slice(0, divider === -1 ? undefined : divider).join("\n");
  const record = { line, sql, isQuery: word === "query", checks: [] };
  if (word === "statement" && argument === "ok") return record;
  if (word === "statement" && argument === "error") {
    const statement = fourth === "at" ? Number(fifth) : undefined;
    return { ...record, error: { codes: third?.split("|") ?? [], statement } };
  }
  const check = checkFrom(word === "statement" ? words.slice(1) : words, source);
  if (check === undefined || (word !== "statement" && word !== "query")) throw unknownForm(source);
  return { ...record, checks: [{ statement: undefined, check }] };
}

function resultCheckFrom(source: Source): ResultCheck {
  const [, first = ""] = source.words;
  const isNumbered = /^\d+$/.test(first);
  const check = checkFrom(source.words.slice(isNumbered ? 2 : 1), source);
  if (check === undefined) throw unknownForm(source);
  return { statement: isNumbered ? Number(first) : undefined, check };
}

function checkFrom(words: readonly string[], { block, full }: Source): Check | undefined {
  const [word, argument = "", sort = "nosort", label] = words;
  const rest = full.slice(full.indexOf(` ${word} `) + ` ${word} `.length);
  if (word === "count" && /^\d+$/.test(argument)) return { kind: "count", count: Number(argument) };
  if (word === "columns" && argument !== "") return { kind: "columns", columns: rest };
  if (word === "contains" && argument !== "") return { kind: "contains", part: rest };
  const divider = block.indexOf("----");
  if (word !== "query" || !/^[ITRUN]+$/.test(argument) || !isSort(sort) || divider === -1) return;
  return {
    kind: "rows",
    rows: { types: argument, sort, label, expected: block.slice(divider + 1) },
  };
}

function unknownForm({ line, words }: Source): Error {
  return new Error(`Cannot read line ${line}: "${words.join(" ")}" is not a sqllogictest record`);
}

function isSort(word: string): word is Sort {
  return word === "nosort" || word === "rowsort" || word === "valuesort";
}

/** Returns the difference between a result and the expected result; undefined if there is none. */
function faultOf(
  record: SltRecord,
  answer: SltAnswer,
  hashByLabel: Map<string, string>,
): string | undefined {
  if (record.error !== undefined) return errorFault(record.error, answer);
  if (!answer.ok) return answer.message;
  for (const { check, statement } of record.checks) {
    const result = answer.results.at(statement === undefined ? -1 : statement - 1);
    const fault =
      result === undefined ? "there is no result" : resultFault(check, result, hashByLabel);
    if (fault !== undefined) return statement === undefined ? fault : `${statement}: ${fault}`;
  }
  return undefined;
}

function errorFault(
  { codes, statement }: Exclude<SltRecord["error"], undefined>,
  answer: SltAnswer,
): string | undefined {
  if (answer.ok) return "it succeeded, but should fail";
  if (statement !== undefined && answer.statement !== statement) {
    return `statement ${statement} should fail, and ${answer.statement} does: ${answer.message}`;
  }
  if (answer.codes === undefined || codes.length === 0) return undefined;
  if (answer.codes.some((code) => codes.includes(code))) return undefined;
  return `it should fail with ${codes.join(" or ")}, and fails so: ${answer.message}`;
}

function resultFault(
  check: Check,
  result: SltResult,
  hashByLabel: Map<string, string>,
): string | undefined {
  if (check.kind === "rows") return rowsFault(check.rows, result.rows, hashByLabel);
  if (check.kind === "count") {
    const { count } = result;
    return count === check.count
      ? undefined
      : `its count is ${count}, but should be ${check.count}`;
  }
  if (check.kind === "columns") {
    const columns = result.columns.join(", ");
    return columns === check.columns ? undefined : `its columns are ${columns}`;
  }
  const text = result.text.replaceAll('\\"', '"');
  return text.includes(check.part) ? undefined : `${text} does not contain ${check.part}`;
}

function rowsFault(
  query: Rows,
  rows: SltResult["rows"],
  hashByLabel: Map<string, string>,
): string | undefined {
  const wrongRow = rows.find((row) => row.length !== query.types.length);
  if (wrongRow !== undefined) {
    return `a row has ${wrongRow.length} values, but should have ${query.types.length}`;
  }
  const values = sltValues(rows, query.types, query.sort);
  const [summary = ""] = query.expected;
  const [, count, wantedHash] = /^(\d+) values hashing to ([0-9a-f]{32})$/.exec(summary) ?? [];
  const hash = hashOf(values);
  if (query.label !== undefined) {
    const before = hashByLabel.get(query.label) ?? hash;
    hashByLabel.set(query.label, before);
    if (before !== hash) return `it differs from an earlier query labelled ${query.label}`;
  }
  if (wantedHash !== undefined) {
    if (values.length !== Number(count)) return `${values.length} values, but should be ${count}`;
    return hash === wantedHash ? undefined : `other values: ${values.slice(0, 8).join(", ")} …`;
  }
  const got = values.join("\n");
  const wanted = query.expected.join("\n");
  return got === wanted
    ? undefined
    : `got ${JSON.stringify(got)}, wanted ${JSON.stringify(wanted)}`;
}

/** Returns the values of a result in the form used in case files. */
export function sltValues(
  rows: readonly (readonly unknown[])[],
  types: string,
  sort: Sort,
): string[] {
  const texts = rows.map((row) => row.map((cell, i) => printed(cell, types[i] ?? "T")));
  return sorted(texts, sort);
}

/** Formats a value as the corpus does. */
function printed(cell: unknown, type: string): string {
  if (cell === null || cell === undefined) return "NULL";
  if (type === "T") {
    const text = typeof cell === "string" ? cell : JSON.stringify(cell);
    return text === "" ? "(empty)" : text.replace(/[^\x20-\x7e]/g, "@");
  }
  if (type === "U") return JSON.stringify(cell);
  if (type === "N") {
    const value = Number(Number(cell).toPrecision(12));
    return Object.is(value, -0) ? "0" : String(value);
  }
  if (typeof cell === "boolean") return cell ? "1" : "0";
  if (type === "R") return Number(cell).toFixed(3);
  // Integers beyond 2^53 arrive as strings. A fraction is truncated, as in a C cast.
  return typeof cell === "string" ? cell.replace(/\..*/, "") : String(Math.trunc(Number(cell)));
}

function sorted(rows: readonly (readonly string[])[], sort: Sort): string[] {
  if (sort === "valuesort") return rows.flat().toSorted(compareBytes);
  const ordered =
    sort === "nosort" ? rows : rows.toSorted((a, b) => compareBytes(a.join("\0"), b.join("\0")));
  return ordered.flat();
}

function compareBytes(a: string, b: string): number {
  if (a === b) return 0;
  return a < b ? -1 : 1;
}

function hashOf(values: readonly string[]): string {
  const text = values.map((value) => `${value}\n`).join("");
  return new Bun.CryptoHasher("md5").update(text).digest("hex");
}
