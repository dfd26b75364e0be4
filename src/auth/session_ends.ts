/**
 * Reports the end of a session in the tick in which it occurs, so that everything that runs on
 * behalf of the session ends with it.
 */

/** The ended session of a user; without a session id, all sessions of the user. */
export interface UserRevocation {
  readonly userId: string;
  readonly sessionId: string | undefined;
}

/** The sessions of any users that a provider has ended. */
export interface ProviderRevocation {
  readonly userId?: undefined;
  readonly isEnded: (sessionId: string) => boolean;
}

export type Revocation = UserRevocation | ProviderRevocation;

/** Returns whether a revocation ends a session of a user. */
export function concerns(
  revocation: Revocation,
  { sessionId, userId }: { readonly userId: string; readonly sessionId: string },
): boolean {
  if (revocation.userId === undefined) return revocation.isEnded(sessionId);
  if (revocation.userId !== userId) return false;
  return revocation.sessionId === undefined || revocation.sessionId === sessionId;
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

  /** Reports the end of all sessions whose ids satisfy a condition. */
  endEvery(isEnded: (sessionId: string) => boolean): void {
    for (const listener of this.#listeners) listener({ isEnded });
  }

  endUser(userId: string): void {
    for (const listener of this.#listeners) listener({ userId, sessionId: undefined });
  }
}
