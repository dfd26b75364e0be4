/** The errors that say why a query is not maintained, or why a change cannot be followed. */

/** Thrown while a query is planned, if the query has to be evaluated again after each change. */
export class NotMaintained extends Error {
  /**
   * Creates the refusal to maintain a query.
   * @param reason Completes "it is evaluated again, because …".
   */
  constructor(reason: string) {
    super(reason);
    this.name = "NotMaintained";
  }
}

/**
 * Thrown while changes are followed, if evaluating the query again costs less or is the only
 * possibility.
 */
export class CannotFollow extends Error {}
