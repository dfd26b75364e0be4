/**
 * The ids of server-sent events, which a browser's EventSource sends back when it reconnects.
 *
 *     4713;k3Jf9vQ0yZ1xW2aB;9Hc1…
 *     │    │                └ the claims of the caller, if the query reads claims
 *     │    └ the user who has received the rows up to the position
 *     └ the position
 *
 * A page may stay open while its browser logs in as another user. The rows of that page belong to
 * the first user, so the second user must not continue from the page's position. A client that
 * chooses the position itself sends only the position.
 */

/** The user and the token claims for whom the events of a stream were selected. */
export interface EventReader {
  readonly userId: string;
  /** The token claims that the query reads; undefined if it reads none. */
  readonly claims: string | undefined;
}

/** The parts of an event id. A part is undefined if the id lacks it. */
export interface EventId {
  readonly position: string | undefined;
  readonly user: string | undefined;
  readonly claims: string | undefined;
}

/**
 * The number of characters that identify a user. They encode 96 bits of a digest, so collisions
 * between users are practically impossible.
 */
const USER_CHARS = 16;

/**
 * Returns the part of an event id after the position. It is the same in all event ids that a
 * reader receives.
 */
export function eventIdEnd({ claims, userId }: EventReader): string {
  const user = eventUser(userId);
  return claims === undefined ? `;${user}` : `;${user};${claims}`;
}

/** Returns the part of an event id that identifies a user. */
export function eventUser(userId: string): string {
  return new Bun.CryptoHasher("sha256").update(userId).digest("base64url").slice(0, USER_CHARS);
}

export function eventIdFrom(text: string): EventId {
  const [position, user, claims] = text.split(";");
  return { position: position === "" ? undefined : position, user, claims };
}
