/**
 * Failures know their statement: what fails below the request does not know its number in the text,
 * nor, where it met damage on the disk, that it is a statement that fails.
 *
 * A bug is a failure of its request and of no other: the log has its stack and the statements.
 */
import type { Principal } from "../../auth/mod.ts";
import { CorruptionError, DatabaseError, isExpected, withDetails } from "../../base/errors.ts";
import { refusalFor } from "../../storage/mod.ts";
import { bugSql } from "../common/activity.ts";
import type { SqlRequest, SqlResponse } from "../common/engine.ts";
import type { SqlEnvironment } from "../common/environment.ts";
import { parseLimitsOf } from "../common/parameters.ts";

/** A request that failed, and where that is told. */
export interface FailedRequest {
  readonly world: Pick<SqlEnvironment, "bugs" | "limits">;
  readonly principal: Principal;
  readonly request: SqlRequest;
}

/** An error as a statement answers with it. @throws What is no failure of a statement. */
export function expectedFailure(error: unknown): DatabaseError {
  if (error instanceof DatabaseError) return error;
  // Other damage is not of a table, and the log has yet to be told.
  if (error instanceof CorruptionError && error.isLogged) return refusalFor(error);
  throw error;
}

/**
 * The same, and for a bug INTERNAL_ERROR.
 * @throws Trouble of the disk, and what leaves the state of the store in doubt.
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
    "Cannot run the statement: the server met a bug of its own, see its log",
    { cause: error },
  );
}

/** The same failure with the number of its statement, from 0; one that has a number keeps it. */
export function atStatement(error: DatabaseError, statementIndex: number): DatabaseError {
  if (error.statementIndex !== undefined) return error;
  return withDetails(error, { statementIndex });
}

/** The answer of a request whose first statement failed. @throws As {@linkcode failureFrom}. */
export function failedResponse(error: unknown, failed: FailedRequest): SqlResponse {
  return { results: [], error: atStatement(failureFrom(error, failed), 0) };
}
