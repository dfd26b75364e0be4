/**
 * Who is connected under which login session, so that ending a session ends its sockets at once.
 */

/** Why sockets end: one session of a user, or, without a session id, all of them. */
export interface Revocation {
  readonly userId: string;
  readonly sessionId: string | undefined;
}

export type OnRevoked = (revocation: Revocation) => void;

export class Connections {
  readonly #bySession = new Map<string, Set<() => void>>();
  readonly #sessionsByUser = new Map<string, Set<string>>();
  readonly #listeners = new Set<OnRevoked>();

  /** Calls `end`, once, when the session is revoked. Returns how to stop that. */
  track(session: { userId: string; sessionId: string }, end: () => void): () => void {
    const { userId, sessionId } = session;
    const ends = this.#bySession.get(sessionId) ?? new Set();
    const sessions = this.#sessionsByUser.get(userId) ?? new Set();
    // A function of its own for each call, so that one `end` may be tracked twice.
    const entry = (): void => end();
    this.#bySession.set(sessionId, ends.add(entry));
    this.#sessionsByUser.set(userId, sessions.add(sessionId));
    return () => {
      ends.delete(entry);
      if (ends.size > 0 || this.#bySession.get(sessionId) !== ends) return;
      this.#bySession.delete(sessionId);
      sessions.delete(sessionId);
      if (sessions.size === 0 && this.#sessionsByUser.get(userId) === sessions) {
        this.#sessionsByUser.delete(userId);
      }
    };
  }

  /** Returns how to stop listening. */
  onRevoked(listener: OnRevoked): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  endSession(userId: string, sessionId: string): void {
    this.#end(sessionId);
    const sessions = this.#sessionsByUser.get(userId);
    if (sessions?.delete(sessionId) === true && sessions.size === 0) {
      this.#sessionsByUser.delete(userId);
    }
    for (const listener of this.#listeners) listener({ userId, sessionId });
  }

  endUser(userId: string): void {
    const sessions = this.#sessionsByUser.get(userId) ?? new Set();
    this.#sessionsByUser.delete(userId);
    for (const sessionId of sessions) this.#end(sessionId);
    for (const listener of this.#listeners) listener({ userId, sessionId: undefined });
  }

  #end(sessionId: string): void {
    const ends = this.#bySession.get(sessionId);
    this.#bySession.delete(sessionId);
    for (const end of ends ?? []) end();
  }
}
