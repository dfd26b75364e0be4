/**
 * Defines where a client can keep the refresh token between requests. The place determines how
 * long a session lasts:
 *
 *     memory    until the page is reloaded or the program ends
 *     storage   until a logout, across reloads, in all tabs that share the storage
 *     cookie    the same, but no script can read the token: for pages that the server delivers
 *
 * The token is never cached outside its place, so that tabs that share a storage always use the
 * most recent one.
 */
import { type PositionStorage, storageFor } from "./positions.ts";

export type SessionPlace = "cookie" | "memory" | "storage";

export interface RefreshTokenPlace {
  /**
   * Reads the stored refresh token.
   * @returns Undefined if there is no token. For a cookie, always undefined, because scripts
   *   cannot read it.
   */
  read(): string | undefined;
  write(token: string | undefined): void;
}

interface PlaceOptions {
  /**
   * The address of the server, which is part of the storage key because an origin's storage may
   * contain tokens for several servers.
   */
  readonly url: string;
  readonly storage: PositionStorage | undefined;
}

/**
 * Returns the place where the refresh token is kept.
 * @throws {TypeError} If the token is to be kept in a storage and the runtime has none.
 */
export function refreshTokenPlace(
  kind: SessionPlace,
  { storage: given, url }: PlaceOptions,
): RefreshTokenPlace {
  if (kind === "cookie") return { read: () => undefined, write: () => undefined };
  if (kind === "memory") {
    let kept: string | undefined;
    return {
      read: () => kept,
      write(token) {
        kept = token;
      },
    };
  }
  const storage = storageFor(given, 'session: "storage"');
  const key = `tidemark.refresh_token ${url}`;
  return {
    read: () => storage.getItem(key) ?? undefined,
    write: (token) => (token === undefined ? storage.removeItem(key) : storage.setItem(key, token)),
  };
}
