/**
 * Defines the errors for a query that cannot be maintained and for changes that cannot be
 * followed.
 */

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
