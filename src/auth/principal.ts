/**
 * The principal: the authenticated caller, and the user for whom it acts.
 *
 * The identity in `userId`, `role` and `owner` decides which statements may run and which rows are
 * visible. The actor is the user who logged in. Identity and actor differ only inside EXECUTE AS.
 */
import type { Role, TokenRight } from "../catalog/mod.ts";

/** The limits of a service token, within the rights of its user. */
export interface TokenScope {
  readonly tokenName: string;
  /** The kinds of access that the token permits; undefined for all. */
  readonly rights: ReadonlySet<TokenRight> | undefined;
  /** The namespaces whose objects the token permits to use; undefined for all. */
  readonly namespaces: ReadonlySet<string> | undefined;
}

/** The key with which a session signs URLs of files (`file_urls.ts`). */
export interface FileUrlKey {
  /** The session, as it stands in the URL. */
  readonly session: string;
  readonly key: string;
  /** The longest time for which a URL may be valid, in seconds. */
  readonly secondsMax: number;
}

export interface Principal {
  readonly userId: string;
  readonly role: Role;
  /**
   * The account number that owns this user's rows. Undefined for an id that has never written,
   * whose USER tables are empty.
   */
  readonly owner: number | undefined;
  /** The user who logged in. */
  readonly actorId: string;
  readonly actorRole: Role;
  /** True inside EXECUTE AS, where SHARED tables can be written under policies only. */
  readonly isImpersonated: boolean;
  /**
   * The claims of the caller's token by name, for CLAIM(). A claim that is not a string is JSON
   * text. Absent without a token, and inside EXECUTE AS.
   */
  readonly claims?: Readonly<Record<string, string>> | undefined;
  /** The id of the login session, for revocation; empty for internal callers. */
  readonly sessionId: string;
  /**
   * The time from which the token counts as expired, in Unix milliseconds; absent if the token
   * never expires.
   */
  readonly tokenEndMs?: number;
  /**
   * The limits of a service token, which also apply inside EXECUTE AS; absent if there are none.
   */
  readonly tokenScope?: TokenScope;
  /** The key for FILE_URL(). Absent inside EXECUTE AS, and for internal callers. */
  readonly fileUrlKey?: FileUrlKey | undefined;
}
