/**
 * Uses PostgreSQL's own parser (libpg-query) as an oracle. It must produce the same tree for a
 * text and for what our printer makes of our tree.
 */
import { loadModule, parseSync } from "libpg-query";
import { DatabaseError } from "../../../src/base/errors.ts";
import { parseStatements } from "../../../src/sql/parse/parser.ts";
import { statementToSql } from "../../../src/sql/parse/print/print.ts";

await loadModule();

const LEFT_OUT = /location|_len$|_start$|_end$|^row_format$/;
/** All trees use the same few names, so the decision for each name is cached. */
const leftOut = new Map<string, boolean>();

// A bit of frameOptions that records whether BETWEEN was written.
const FRAMEOPTION_BETWEEN = 0x10;

/**
 * Returns PostgreSQL's tree without positions. Where a construct has two spellings, the tree does
 * not show which was used: `ROW(a, b)` or `(a, b)`, a frame with or without BETWEEN.
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

/** Returns PostgreSQL's tree for the output of our printer for our tree. */
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
