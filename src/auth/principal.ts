/**
 * Defines the principal: the authenticated caller, and the user on whose behalf the caller acts.
 *
 * The identity in `userId`, `role` and `owner` determines which statements may run and which rows
 * are visible. The actor is the user who logged in. The identity and the actor differ only inside
 * EXECUTE AS.
 */
import type { Role, TokenRight } from "../catalog/mod.ts";

/** The scopes of a service token, which restrict the rights of its user. */
export interface TokenScope {
  readonly tokenName: string;
  /** The kinds of access that the token permits; undefined if it permits all kinds. */
  readonly rights: ReadonlySet<TokenRight> | undefined;
  /**
   * The namespaces whose objects the token may access; undefined if it may access all namespaces.
   */
  readonly namespaces: ReadonlySet<string> | undefined;
}

/** The key with which a session signs file URLs (`file_urls.ts`). */
export interface FileUrlKey {
  /** The session that signs, in the form in which it appears in the URL. */
  readonly session: string;
  readonly key: string;
  /**
   * The base path below which a proxy offers the server to the caller; absent if it is the root.
   */
  readonly basePath?: string;
  /** The maximum lifetime of a signed URL, in seconds. */
  readonly secondsMax: number;
}

export interface Principal {
  readonly userId: string;
  readonly role: Role;
  /**
   * The account number that owns this user's rows. Undefined for a user who has never written a
   * row, whose USER tables are therefore empty.
   */
  readonly owner: number | undefined;
  /**
   * The user who logged in. Inside EXECUTE AS, this differs from the user on whose behalf the
   * caller acts.
   */
  readonly actorId: string;
  readonly actorRole: Role;
  /**
   * Whether the principal acts inside EXECUTE AS. If so, it can write to SHARED tables only where
   * policies permit it.
   */
  readonly isImpersonated: boolean;
  /**
   * The claims of the caller's token, keyed by name, for CLAIM(). A claim that is not a string is
   * represented by its JSON text. Absent if there is no token, and inside EXECUTE AS.
   */
  readonly claims?: Readonly<Record<string, string>> | undefined;
  /** The id of the login session, which can be revoked; empty for internal callers. */
  readonly sessionId: string;
  /** The time at which the token expires, in Unix milliseconds; absent if it does not expire. */
  readonly tokenEndMs?: number;
  /**
   * The limits of a service token, which also apply inside EXECUTE AS; absent if the caller's token
   * has no limits.
   */
  readonly tokenScope?: TokenScope;
  /**
   * The key that signs the URLs returned by FILE_URL(). Absent inside EXECUTE AS, and for internal
   * callers.
   */
  readonly fileUrlKey?: FileUrlKey | undefined;
}
