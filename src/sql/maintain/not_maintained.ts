/** Why a query is not maintained, or why a change of one cannot be followed. */

/** Thrown while a query is planned: it has to be evaluated again after each change. */
export class NotMaintained extends Error {
  /** @param reason Completes "it is evaluated again, because …". */
  constructor(reason: string) {
    super(reason);
    this.name = "NotMaintained";
  }
}

/** Thrown while changes are followed: evaluating the query again takes less, or is the only way. */
export class CannotFollow extends Error {}
