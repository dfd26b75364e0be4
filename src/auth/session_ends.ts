/**
 * Reports the end of a session in the tick in which it occurs, so that everything that runs on
 * behalf of the session ends with it.
 */

/** The ended session of a user; without a session id, all sessions of the user. */
export interface Revocation {
  readonly userId: string;
  readonly sessionId: string | undefined;
}

export type OnRevoked = (revocation: Revocation) => void;

export class SessionEnds {
  readonly #listeners = new Set<OnRevoked>();

  /** Adds a listener. Returns a function that removes it. */
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
