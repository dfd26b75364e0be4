/**
 * Adds the number of the failed statement to an error. Code below the request layer does not know
 * this number, and damage on disk does not belong to a particular statement.
 *
 * A bug ends only its own request; the log contains the stack trace and the statements.
 */
import type { Principal } from "../../auth/mod.ts";
import { CorruptionError, DatabaseError, isExpected, withDetails } from "../../base/errors.ts";
import { refusalFor } from "../../storage/mod.ts";
import { bugSql } from "../activity/activity.ts";
import type { SqlRequest, SqlResponse } from "../ports/engine.ts";
import type { SqlEnvironment } from "../ports/environment.ts";
import { parseLimitsOf } from "../ports/parameters.ts";

/** A failed request, and the dependencies for reporting its failure. */
export interface FailedRequest {
  readonly deps: Pick<SqlEnvironment, "bugs" | "limits">;
  readonly principal: Principal;
  readonly request: SqlRequest;
}

/**
 * Returns the error to put in the response for a statement.
 * @throws any error that is not an error of the statement
 */
export function expectedFailure(error: unknown): DatabaseError {
  if (error instanceof DatabaseError) return error;
  // Damage that is not assigned to a table has not been logged yet, so it is thrown further.
  if (error instanceof CorruptionError && error.isLogged) return refusalFor(error);
  throw error;
}

/**
 * Returns the error to put in the response for a statement. A bug becomes INTERNAL_ERROR.
 *
 * @throws disk errors, and errors that leave the state of the store in doubt
 */
export function failureFrom(error: unknown, failed: FailedRequest): DatabaseError {
  if (isExpected(error)) return expectedFailure(error);
  const { principal, request, deps } = failed;
  deps.bugs.contain(error, "a request", {
    request: request.origin?.requestId,
    user: principal.userId,
    sql: bugSql(request.sql, parseLimitsOf(deps.limits)),
  });
  return new DatabaseError(
    "INTERNAL_ERROR",
    "Cannot run the statement: it failed because of a bug in the server; the server's log has " +
      "the details",
    { cause: error },
  );
}

/** Adds the number of the statement, counted from 0, to an error that has none yet. */
export function atStatement(error: DatabaseError, statementIndex: number): DatabaseError {
  if (error.statementIndex !== undefined) return error;
  return withDetails(error, { statementIndex });
}

/**
 * Returns the response to a request whose first statement failed.
 *
 * @throws the errors of {@linkcode failureFrom}
 */
export function failedResponse(error: unknown, failed: FailedRequest): SqlResponse {
  return { results: [], error: atStatement(failureFrom(error, failed), 0) };
}
