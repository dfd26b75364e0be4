/**
 * Tells of sessions that end, in the turn in which they do, so that what runs in their name ends
 * with them.
 */

/** What ended: one session of a user, or, without a session id, all of them. */
export interface Revocation {
  readonly userId: string;
  readonly sessionId: string | undefined;
}

export type OnRevoked = (revocation: Revocation) => void;

export class SessionEnds {
  readonly #listeners = new Set<OnRevoked>();

  /** Returns how to stop listening. */
  onRevoked(listener: OnRevoked): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  endSession(userId: string, sessionId: string): void {
    for (const listener of this.#listeners) listener({ userId, sessionId });
  }

  endUser(userId: string): void {
    for (const listener of this.#listeners) listener({ userId, sessionId: undefined });
  }
}
