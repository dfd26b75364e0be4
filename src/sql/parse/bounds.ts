/**
 * How much of each construct a statement may hold, asked while it is read: what is refused is
 * refused at the first one too many, before anything is made of those before it.
 */
import { DatabaseError } from "../../base/errors.ts";
import {
  LISTED_MAX,
  SOURCES_MAX,
  STATEMENT_PARTS_MAX,
  STATEMENT_QUERIES_MAX,
  STATEMENT_SOURCES_MAX,
  STATEMENTS_MAX,
} from "../../base/limits.ts";
import type { Cursor } from "./cursor.ts";

/** What the statement that is read holds so far. */
export interface StatementCounts {
  /** Of the FROM at hand. */
  sources: number;
  allSources: number;
  queries: number;
  /** Nodes of expressions. */
  parts: number;
}

export function newCounts(): StatementCounts {
  return { sources: 0, allSources: 0, queries: 0, parts: 0 };
}

/** Reads one whole FROM, with its own count of sources. */
export function withOwnSources<T>({ counts }: Cursor, parse: () => T): T {
  const around = counts.sources;
  counts.sources = 0;
  const parsed = parse();
  counts.sources = around;
  return parsed;
}

/** One more table, query or function stands in FROM. @throws {DatabaseError} LIMIT_EXCEEDED */
export function countSource(cursor: Cursor): void {
  const { counts } = cursor;
  counts.sources += 1;
  counts.allSources += 1;
  if (counts.sources > SOURCES_MAX) {
    throw tooMany(cursor, `more than ${SOURCES_MAX} tables in one FROM`, JOIN_HINT);
  }
  if (counts.allSources > STATEMENT_SOURCES_MAX) {
    throw tooMany(cursor, `more than ${STATEMENT_SOURCES_MAX} tables in all its FROM`, JOIN_HINT);
  }
}

/** One more node of an expression was made. @throws {DatabaseError} LIMIT_EXCEEDED */
export function countPart(cursor: Cursor): void {
  const { counts } = cursor;
  counts.parts += 1;
  if (counts.parts <= STATEMENT_PARTS_MAX) return;
  throw tooMany(
    cursor,
    `more than ${STATEMENT_PARTS_MAX} names, values and operators`,
    "split it, or put its values into a table, or into one list of IN",
  );
}

/** One more SELECT or VALUES begins. @throws {DatabaseError} LIMIT_EXCEEDED */
export function countQuery(cursor: Cursor): void {
  const { counts } = cursor;
  counts.queries += 1;
  if (counts.queries <= STATEMENT_QUERIES_MAX) return;
  throw tooMany(
    cursor,
    `more than ${STATEMENT_QUERIES_MAX} queries`,
    "put the values into one list or one VALUES, or send several statements",
  );
}

/**
 * A list of expressions has so many.
 *
 * @param what Its items, as in "arguments in one call".
 * @throws {DatabaseError} LIMIT_EXCEEDED
 */
export function requireListed(cursor: Cursor, count: number, what: string): void {
  if (count > LISTED_MAX) throw tooMany(cursor, `more than ${LISTED_MAX} ${what}`);
}

/** The text has so many statements. @throws {DatabaseError} LIMIT_EXCEEDED */
export function requireStatements(cursor: Cursor, count: number): void {
  if (count <= STATEMENTS_MAX) return;
  throw new DatabaseError(
    "LIMIT_EXCEEDED",
    `Cannot run the text: it holds more than ${STATEMENTS_MAX} statements`,
    { position: cursor.start, hint: "send them in several requests, or rows in one INSERT" },
  );
}

const JOIN_HINT = "join fewer of them at a time, and put what they have in common into a table";

function tooMany({ start, statementIndex }: Cursor, what: string, hint?: string): DatabaseError {
  return new DatabaseError("LIMIT_EXCEEDED", `Cannot run the statement: it has ${what}`, {
    position: start,
    statementIndex,
    ...(hint === undefined ? {} : { hint }),
  });
}
