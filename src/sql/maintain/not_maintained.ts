/**
 * Defines the errors that say why a query is not maintained, or that a change cannot be followed.
 */

/** Thrown during planning if the query has to be evaluated again after each change. */
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
 * Thrown when changes are followed, if evaluating the query again is cheaper or the only
 * possibility.
 */
export class CannotFollow extends Error {}
