/**
 * Adds the statement to a failure. Code below the request does not know the statement's number in
 * the text, and damage found on disk does not say which statement it fails.
 *
 * A bug fails its own request and no other; the log has its stack and the statements.
 */
import type { Principal } from "../../auth/mod.ts";
import { CorruptionError, DatabaseError, isExpected, withDetails } from "../../base/errors.ts";
import { refusalFor } from "../../storage/mod.ts";
import { bugSql } from "../common/activity.ts";
import type { SqlRequest, SqlResponse } from "../common/engine.ts";
import type { SqlEnvironment } from "../common/environment.ts";
import { parseLimitsOf } from "../common/parameters.ts";

/** A failed request, and the log in which a bug is recorded. */
export interface FailedRequest {
  readonly world: Pick<SqlEnvironment, "bugs" | "limits">;
  readonly principal: Principal;
  readonly request: SqlRequest;
}

/** The error with which a statement is answered. @throws Any error that is no statement failure. */
export function expectedFailure(error: unknown): DatabaseError {
  if (error instanceof DatabaseError) return error;
  // Other damage is not of a table, and the log has yet to be told.
  if (error instanceof CorruptionError && error.isLogged) return refusalFor(error);
  throw error;
}

/**
 * The error with which a statement is answered; a bug becomes INTERNAL_ERROR.
 *
 * @throws Errors of the disk, and errors that leave the state of the store in doubt.
 */
export function failureFrom(error: unknown, failed: FailedRequest): DatabaseError {
  if (isExpected(error)) return expectedFailure(error);
  const { principal, request, world } = failed;
  world.bugs.contain(error, "a request", {
    request: request.origin?.requestId,
    user: principal.userId,
    sql: bugSql(request.sql, parseLimitsOf(world.limits)),
  });
  return new DatabaseError(
    "INTERNAL_ERROR",
    "Cannot run the statement: it hit a bug in the server, see the server's log",
    { cause: error },
  );
}

/** The same failure with the number of its statement, from 0; one that has a number keeps it. */
export function atStatement(error: DatabaseError, statementIndex: number): DatabaseError {
  if (error.statementIndex !== undefined) return error;
  return withDetails(error, { statementIndex });
}

/**
 * The answer to a request whose first statement failed. @throws As {@linkcode failureFrom} does.
 */
export function failedResponse(error: unknown, failed: FailedRequest): SqlResponse {
  return { results: [], error: atStatement(failureFrom(error, failed), 0) };
}
