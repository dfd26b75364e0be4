/**
 * Failures know their statement: what fails below the request does not know its number in the text,
 * nor, where it met damage on the disk, that it is a statement that fails.
 */
import { CorruptionError, DatabaseError, withDetails } from "../../base/errors.ts";
import { refusalFor } from "../../storage/mod.ts";
import type { SqlResponse } from "../common/engine.ts";

/** An error as a statement answers with it. @throws What is no expected failure. */
export function failureFrom(error: unknown): DatabaseError {
  if (error instanceof DatabaseError) return error;
  // Other damage is not of a table, and the log has yet to be told.
  if (error instanceof CorruptionError && error.isLogged) return refusalFor(error);
  throw error;
}

/** The same failure with the number of its statement, from 0; one that has a number keeps it. */
export function atStatement(error: DatabaseError, statementIndex: number): DatabaseError {
  if (error.statementIndex !== undefined) return error;
  return withDetails(error, { statementIndex });
}

/** The answer of a request whose first statement failed. @throws What is no expected failure. */
export function failedResponse(error: unknown): SqlResponse {
  return { results: [], error: atStatement(failureFrom(error), 0) };
}
