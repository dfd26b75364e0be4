/**
 * Uses PostgreSQL's own parser (libpg-query) as an oracle. It must produce the same tree for an
 * SQL text as for the text that our printer makes of our own tree.
 */
import { loadModule, parseSync } from "libpg-query";
import { DatabaseError } from "../../../src/base/errors.ts";
import { parseStatements } from "../../../src/sql/parse/parser.ts";
import { statementToSql } from "../../../src/sql/parse/print/print.ts";

await loadModule();

const LEFT_OUT = /location|_len$|_start$|_end$|^row_format$/;
/** Caches whether each field name is left out of trees. All trees use the same few names. */
const leftOut = new Map<string, boolean>();

// The bit of `frameOptions` that records whether a window frame was written with BETWEEN.
const FRAMEOPTION_BETWEEN = 0x10;

/**
 * Returns PostgreSQL's tree without positions. If a construct has two spellings, such as `ROW(a,
 * b)` and `(a, b)`, or a frame with and without BETWEEN, the tree does not show which of them was
 * used.
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

/** Returns PostgreSQL's tree; undefined if PostgreSQL rejects the text. */
export function postgresTreeIfRead(text: string): string | undefined {
  try {
    return postgresTree(text);
  } catch {
    return undefined;
  }
}

/** Returns PostgreSQL's tree for the text that our printer makes of our tree. */
export function printedForPostgres(text: string): string {
  return parseStatements(text)
    .map((statement) => statementToSql(statement))
    .join("; ")
    .replaceAll(/\b(CREATE|DROP) NAMESPACE\b/g, "$1 SCHEMA");
}

/** Returns whether our parser rejects a text. @throws any error that is not a refusal */
export function refuses(text: string): boolean {
  try {
    parseStatements(text);
    return false;
  } catch (error) {
    if (error instanceof DatabaseError) return true;
    throw error;
  }
}
