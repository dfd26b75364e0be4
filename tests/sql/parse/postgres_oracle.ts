/**
 * PostgreSQL's own parser (libpg-query) as a judge: it makes the same tree of a text and of what
 * our printer makes of our tree.
 */
import { loadModule, parseSync } from "libpg-query";
import { DatabaseError } from "../../../src/base/errors.ts";
import { parseStatements } from "../../../src/sql/parse/parser.ts";
import { statementToSql } from "../../../src/sql/parse/print/print.ts";

await loadModule();

const LEFT_OUT = /location|_len$|_start$|_end$|^row_format$/;
/** Few names stand in all trees, so each is looked at once. */
const leftOut = new Map<string, boolean>();

// A bit of frameOptions: whether BETWEEN was written.
const FRAMEOPTION_BETWEEN = 0x10;

/**
 * PostgreSQL's tree without places, and without how a thing was written that has two forms:
 * `ROW(a, b)` or `(a, b)`, a frame with or without BETWEEN.
 */
export function postgresTree(text: string): string {
  return JSON.stringify(parseSync(text), (key, value: unknown) => {
    if (key === "frameOptions") return Number(value) & ~FRAMEOPTION_BETWEEN;
    return isLeftOut(key) ? undefined : value;
  });
}

function isLeftOut(key: string): boolean {
  const known = leftOut.get(key);
  if (known !== undefined) return known;
  const is = LEFT_OUT.test(key);
  leftOut.set(key, is);
  return is;
}

/** Undefined where PostgreSQL refuses the text. */
export function postgresTreeIfRead(text: string): string | undefined {
  try {
    return postgresTree(text);
  } catch {
    return undefined;
  }
}

/** What our printer makes of our tree, in PostgreSQL's words. */
export function printedForPostgres(text: string): string {
  return parseStatements(text)
    .map((statement) => statementToSql(statement))
    .join("; ")
    .replaceAll(/\b(CREATE|DROP) NAMESPACE\b/g, "$1 SCHEMA");
}

/** Whether our parser refuses a text. @throws Whatever is no refusal. */
export function refuses(text: string): boolean {
  try {
    parseStatements(text);
    return false;
  } catch (error) {
    if (error instanceof DatabaseError) return true;
    throw error;
  }
}
