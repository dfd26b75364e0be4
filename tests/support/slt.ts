/**
 * Runs cases in sqllogictest form, which SQLite's public-domain corpus uses:
 *
 *     [skipif <engine> | onlyif <engine>]
 *     statement ok | statement error [<conditions>]
 *     <SQL, up to an empty line>
 *
 *     query <types> [nosort | rowsort | valuesort] [label]
 *     <SQL>
 *     ----
 *     <values, one a line> | <n> values hashing to <md5>
 *
 * `halt` ends a file, `hash-threshold` says when its author hashed and changes nothing here, `#`
 * begins a comment. A type is `I` integer, `T` text or `R` real with three decimals. Queries that
 * share a label give the same values.
 *
 * Our own cases have two more types, `U` for text with its quotes and escapes and `N` for a number
 * of twelve digits, and name the conditions that an error may have, with `|` between them.
 */
import { tableTranslator } from "./slt_tables.ts";

/** What the server said to one statement. */
export type SltAnswer =
  | { readonly ok: true; readonly names: readonly string[]; readonly rows: readonly unknown[][] }
  | {
      readonly ok: false;
      readonly isUnsupported: boolean;
      readonly message: string;
      /** Absent where only its wire code is known. */
      readonly condition?: string;
    };

export interface SltOptions {
  execute: (sql: string) => Promise<SltAnswer>;
  /** The engine whose cases are meant for us. */
  engine?: string;
  /** Asks the first and then every so many-th query; all statements are run. */
  queryOneOf?: number;
  /** Whether the tables of the file have keys, so that its statements can stay as they are. */
  hasKeys?: boolean;
}

export interface SltReport {
  passedCount: number;
  /** Refused as not available yet: neither right nor wrong. */
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

type SltRecord =
  | (SltCase & {
      readonly kind: "statement";
      readonly isErrorExpected: boolean;
      readonly conditions: readonly string[];
    })
  | (SltCase & {
      readonly kind: "query";
      readonly types: string;
      readonly sort: Sort;
      readonly label: string | undefined;
      readonly expected: readonly string[];
    });

/** Runs every case of a file in order. Cases see the effects of those before them. */
export async function runSlt(text: string, options: SltOptions): Promise<SltReport> {
  const { execute, engine = "postgresql", hasKeys = false, queryOneOf = 1 } = options;
  const failures: SltFailure[] = [];
  const report: SltReport = { passedCount: 0, waiting: [], failures };
  const translate = hasKeys ? (sql: string): string => sql : tableTranslator();
  const valuesByLabel = new Map<string, string>();
  let queryCount = 0;
  for (const record of parseSlt(text, engine)) {
    if (record.kind === "query") {
      queryCount += 1;
      if ((queryCount - 1) % queryOneOf !== 0) continue;
    }
    const answer = await execute(translate(record.sql));
    const { line, sql } = record;
    if (!answer.ok && answer.isUnsupported && !isExpected(record)) {
      report.waiting.push({ line, sql });
      continue;
    }
    const reason =
      record.kind === "query"
        ? queryFault(record, answer, valuesByLabel)
        : statementFault(record, answer);
    if (reason === undefined) report.passedCount += 1;
    else failures.push({ line, sql, reason });
  }
  return report;
}

/** Reads the cases that are meant for an engine. @throws On a form it does not know. */
export function parseSlt(text: string, engine: string): SltRecord[] {
  const records: SltRecord[] = [];
  const lines = text.split(/\r?\n/);
  let isForUs = true;
  for (let index = 0; index < lines.length; index += 1) {
    const words = (lines[index] ?? "").replace(/#.*/, "").trim().split(/\s+/);
    const [word = "", argument] = words;
    if (word === "" || word === "hash-threshold") continue;
    if (word === "halt" && isForUs) break;
    if (word === "skipif" || word === "onlyif") {
      if ((argument === engine) !== (word === "onlyif")) isForUs = false;
      continue;
    }
    const line = index + 1;
    const end = endOfBlock(lines, line);
    const block = lines.slice(line, end);
    if (isForUs) records.push(recordFrom({ words, block, line }));
    isForUs = true;
    index = end;
  }
  return records;
}

function endOfBlock(lines: readonly string[], start: number): number {
  const end = lines.indexOf("", start);
  return end === -1 ? lines.length : end;
}

function recordFrom(source: { words: string[]; block: string[]; line: number }): SltRecord {
  const { words, block, line } = source;
  const [word, argument = "", sort = "nosort", label] = words;
  const divider = block.indexOf("----");
  const sql = block.slice(0, divider === -1 ? undefined : divider).join("\n");
  if (word === "statement" && (argument === "ok" || argument === "error")) {
    const conditions = words[2]?.split("|") ?? [];
    return { kind: "statement", line, sql, isErrorExpected: argument === "error", conditions };
  }
  if (word === "query" && /^[ITRUN]+$/.test(argument) && isSort(sort) && divider !== -1) {
    const expected = block.slice(divider + 1);
    return { kind: "query", line, sql, types: argument, sort, label, expected };
  }
  throw new Error(`Cannot read line ${line}: "${words.join(" ")}" is no sqllogictest record`);
}

function isSort(word: string): word is Sort {
  return word === "nosort" || word === "rowsort" || word === "valuesort";
}

/** Whether a refusal because something is not available is what the case asks for. */
function isExpected(record: SltRecord): boolean {
  return record.kind === "statement" && record.conditions.includes("UNSUPPORTED_FEATURE");
}

function statementFault(
  { conditions, isErrorExpected }: Extract<SltRecord, { kind: "statement" }>,
  answer: SltAnswer,
): string | undefined {
  if (answer.ok) return isErrorExpected ? "it succeeded, and should fail" : undefined;
  if (!isErrorExpected) return answer.message;
  const { condition } = answer;
  if (condition === undefined || conditions.length === 0) return undefined;
  if (conditions.includes(condition)) return undefined;
  return `it should fail with ${conditions.join(" or ")}, and fails so: ${answer.message}`;
}

function queryFault(
  query: Extract<SltRecord, { kind: "query" }>,
  answer: SltAnswer,
  valuesByLabel: Map<string, string>,
): string | undefined {
  if (!answer.ok) return answer.message;
  const wrongRow = answer.rows.find((row) => row.length !== query.types.length);
  if (wrongRow !== undefined) {
    return `a row has ${wrongRow.length} values, and should have ${query.types.length}`;
  }
  const values = sltValues(answer.rows, query.types, query.sort);
  const [summary = ""] = query.expected;
  const [, count, wantedHash] = /^(\d+) values hashing to ([0-9a-f]{32})$/.exec(summary) ?? [];
  const hash = hashOf(values);
  if (query.label !== undefined) {
    const before = valuesByLabel.get(query.label) ?? hash;
    valuesByLabel.set(query.label, before);
    if (before !== hash) return `it differs from an earlier query labelled ${query.label}`;
  }
  if (wantedHash !== undefined) {
    if (values.length !== Number(count)) return `${values.length} values, and should be ${count}`;
    return hash === wantedHash ? undefined : `other values: ${values.slice(0, 8).join(", ")} …`;
  }
  const got = values.join("\n");
  const wanted = query.expected.join("\n");
  return got === wanted
    ? undefined
    : `got ${JSON.stringify(got)}, wanted ${JSON.stringify(wanted)}`;
}

/** The values of an answer, as a case lists them. */
export function sltValues(
  rows: readonly (readonly unknown[])[],
  types: string,
  sort: Sort,
): string[] {
  const texts = rows.map((row) => row.map((cell, i) => printed(cell, types[i] ?? "T")));
  return sorted(texts, sort);
}

/** A value as the corpus prints it. */
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
  // Integers beyond 2^53 come as text; a fraction is cut off, as a C cast does.
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
