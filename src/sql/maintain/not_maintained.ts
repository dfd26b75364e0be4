/**
 * Defines the errors for a query that cannot be maintained and for changes that cannot be
 * followed.
 */
import { DatabaseError } from "../../base/errors.ts";

/**
 * Thrown during planning if a query cannot be maintained and has to be evaluated again after each
 * change.
 */
export class NotMaintained extends Error {
  /**
   * Creates the error.
   * @param reason Completes the sentence "it is evaluated again, because …".
   */
  constructor(reason: string) {
    super(reason);
    this.name = "NotMaintained";
  }
}

/**
 * Thrown while changes are being followed, if evaluating the query again is cheaper or the only
 * possibility.
 */
export class CannotFollow extends Error {}

/**
 * Whether an error means that changes cannot be followed and the query must be evaluated again.
 * The evaluation then finds the rows or reports the error.
 */
export function isRefusal(error: unknown): boolean {
  return error instanceof CannotFollow || error instanceof DatabaseError;
}
