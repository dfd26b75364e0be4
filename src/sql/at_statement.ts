/**
 * Failures know their statement: what fails below the request does not know its number in the text.
 */
import { DatabaseError } from "../base/errors.ts";

/** The same failure with the number of its statement, from 0; one that has a number keeps it. */
export function atStatement(error: DatabaseError, statementIndex: number): DatabaseError {
  if (error.statementIndex !== undefined) return error;
  const { condition, earliestSeq, hint, message, position } = error;
  return new DatabaseError(condition, message, {
    statementIndex,
    cause: error,
    ...(position === undefined ? {} : { position }),
    ...(hint === undefined ? {} : { hint }),
    ...(earliestSeq === undefined ? {} : { earliestSeq }),
  });
}
