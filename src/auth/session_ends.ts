/**
 * Reports the end of a session in the tick in which it occurs, so that everything running on
 * behalf of the session ends with it. It also reports the end of an account, so that objects that
 * run with the rights of its user, such as policies and views, are checked again.
 */

/** The end of a user's session or, if no session id is given, of all the user's sessions. */
export interface UserRevocation {
  readonly userId: string;
  readonly sessionId: string | undefined;
}

/** Sessions ended by a provider, which does not report the names of their users. */
export interface ProviderRevocation {
  readonly userId?: undefined;
  readonly isEnded: (sessionId: string) => boolean;
}

export type Revocation = UserRevocation | ProviderRevocation;

/** Returns whether a revocation ends a given session of a user. */
export function concerns(
  revocation: Revocation,
  { sessionId, userId }: { readonly userId: string; readonly sessionId: string },
): boolean {
  if (revocation.userId === undefined) return revocation.isEnded(sessionId);
  if (revocation.userId !== userId) return false;
  return revocation.sessionId === undefined || revocation.sessionId === sessionId;
}

export type OnRevoked = (revocation: Revocation) => void;

export type OnDropped = (userId: string) => void;

export class SessionEnds {
  readonly #listeners = new Set<OnRevoked>();
  readonly #dropListeners = new Set<OnDropped>();

  /** Adds a listener for revoked sessions. Returns a function that removes the listener. */
  onRevoked(listener: OnRevoked): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /** Adds a listener for dropped users. Returns a function that removes the listener. */
  onDropped(listener: OnDropped): () => void {
    this.#dropListeners.add(listener);
    return () => this.#dropListeners.delete(listener);
  }

  endSession(userId: string, sessionId: string): void {
    for (const listener of this.#listeners) listener({ userId, sessionId });
  }

  /** Reports the end of all sessions whose ids satisfy `isEnded`. */
  endEvery(isEnded: (sessionId: string) => boolean): void {
    for (const listener of this.#listeners) listener({ isEnded });
  }

  endUser(userId: string): void {
    for (const listener of this.#listeners) listener({ userId, sessionId: undefined });
  }

  /** Ends all sessions of a user, and reports that the user was dropped. */
  endAccount(userId: string): void {
    this.endUser(userId);
    for (const listener of this.#dropListeners) listener(userId);
  }
}
