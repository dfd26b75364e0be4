/**
 * Limits the number of occurrences of each construct in a statement. The limits are checked during
 * parsing, so the first item beyond a limit is rejected before anything after it is processed.
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

/** The number of occurrences of each construct in the current statement so far. */
export interface StatementCounts {
  /** The number of tables, queries and functions in the current FROM. */
  sources: number;
  allSources: number;
  queries: number;
  /** The number of expression nodes in the statement. */
  parts: number;
}

export function newCounts(): StatementCounts {
  return { sources: 0, allSources: 0, queries: 0, parts: 0 };
}

/** Counts a table, query or function in FROM. @throws {DatabaseError} LIMIT_EXCEEDED */
export function countSource(cursor: Cursor): void {
  const { counts } = cursor;
  counts.sources += 1;
  counts.allSources += 1;
  if (counts.sources > SOURCES_MAX) {
    throw tooMany(cursor, `more than ${SOURCES_MAX} tables in a single FROM clause`, JOIN_HINT);
  }
  if (counts.allSources > STATEMENT_SOURCES_MAX) throw tooMany(cursor, MANY_SOURCES, JOIN_HINT);
}

/** Counts an expression node. @throws {DatabaseError} LIMIT_EXCEEDED */
export function countPart(cursor: Cursor): void {
  const { counts } = cursor;
  counts.parts += 1;
  if (counts.parts > STATEMENT_PARTS_MAX) throw tooManyParts(cursor);
}

/**
 * Creates the error for too many expressions.
 *
 * @param place The position in the SQL; absent if the error does not concern a single position.
 */
export function tooManyParts(place?: ErrorPlace): DatabaseError {
  return tooMany(
    place,
    `more than ${STATEMENT_PARTS_MAX} names, values and operators`,
    "split the statement, or move its values into a table or a single IN list",
  );
}

/** Counts a SELECT or VALUES query. @throws {DatabaseError} LIMIT_EXCEEDED */
export function countQuery(cursor: Cursor): void {
  const { counts } = cursor;
  counts.queries += 1;
  if (counts.queries <= STATEMENT_QUERIES_MAX) return;
  throw tooMany(
    cursor,
    `more than ${STATEMENT_QUERIES_MAX} queries`,
    "move the values into a single list or VALUES clause, or split the statement into several",
  );
}

/**
 * Checks the length of a list of expressions.
 *
 * @param what The name of the items in the message, such as "arguments in one call".
 * @throws {DatabaseError} LIMIT_EXCEEDED
 */
export function requireListed(cursor: Cursor, count: number, what: string): void {
  if (count > LISTED_MAX) throw tooMany(cursor, `more than ${LISTED_MAX} ${what}`);
}

/** Checks the number of statements in a request. @throws {DatabaseError} LIMIT_EXCEEDED */
export function requireStatements(cursor: Cursor, count: number): void {
  if (count <= STATEMENTS_MAX) return;
  throw new DatabaseError(
    "LIMIT_EXCEEDED",
    `Cannot run the request: it contains more than ${STATEMENTS_MAX} statements`,
    {
      position: cursor.start,
      hint: "split the request into several, or insert all rows with a single INSERT",
    },
  );
}

/** The end of an error message, after the words "it has". */
export const MANY_SOURCES: string = `more than ${STATEMENT_SOURCES_MAX} tables in its FROM clauses`;

const JOIN_HINT = "join fewer tables at a time, and store intermediate results in tables";

type ErrorPlace = Pick<Cursor, "start" | "statementIndex">;

function tooMany(place: ErrorPlace | undefined, what: string, hint?: string): DatabaseError {
  return new DatabaseError("LIMIT_EXCEEDED", `Cannot run the statement: it has ${what}`, {
    position: place?.start,
    statementIndex: place?.statementIndex,
    ...(hint === undefined ? {} : { hint }),
  });
}
