/** Defines the catalog's entries for users, and for the tokens and invitations of users. */

export type Role = "user" | "service" | "dba" | "system";

export interface UserEntry {
  /** The id of the user, which is also a login name of theirs. */
  readonly userId: string;
  /** An additional login name, chosen by a guest who signed up. */
  readonly loginName?: string;
  readonly role: Role;
  readonly email: string | undefined;
  /**
   * The time at which the user proved that they receive mail at the address; absent if they never
   * have.
   */
  readonly emailVerifiedAtMs?: number | undefined;
  /**
   * True if the user chose the email address at sign-up and has not verified it since. Such an
   * address may belong to somebody else. Absent if an administrator set the address.
   */
  readonly isEmailUnproven?: true | undefined;
  /** Data that administrators have attached to the user: the text of a JSON object. */
  readonly metadata?: string;
  readonly authType: "password" | "oauth" | "internal" | "guest";
  /**
   * The argon2id hash of the password; absent if no password has ever been set. Only
   * authentication reads it.
   */
  readonly passwordHash: string | undefined;
  /** The token version. Every event that invalidates all tokens of the user increments it. */
  readonly tokenVersion: number;
  /**
   * The link to a provider (OpenID Connect) as JSON text with the members `provider` and `subject`
   * or, before the first login, `provider` and `user`. Several links form an array. Each link
   * belongs to at most one account.
   */
  readonly authData?: string | undefined;
  readonly lastLoginAtMs: number | undefined;
  /**
   * The time at which a token of the user was last used. It is stored with a delay of a minute, or
   * more if there are very many users.
   */
  readonly lastSeenAtMs?: number;
  readonly createdAtMs: number;
  readonly updatedAtMs: number;
  /** The time of DROP USER; undefined if the user has not been dropped. */
  readonly deletedAtMs: number | undefined;
  /**
   * The time after which a dropped account's data is erased; absent before DROP USER and after the
   * erasure.
   */
  readonly eraseAfterMs?: number | undefined;
}

/** A kind of access that a service token's scopes may include. `write` includes `read`. */
export type TokenRight = "read" | "write" | "define" | "act";

/** A token with which a program acts on behalf of a user. */
export interface ServiceTokenEntry {
  readonly name: string;
  readonly userId: string;
  /** The SHA-256 hash of the token's secret, in base64url. */
  readonly secretHash: string;
  /**
   * The kinds of access that the token grants, within its user's rights; absent if it grants all
   * kinds.
   */
  readonly rights?: readonly TokenRight[];
  /** The namespaces whose objects the token may access; absent if it may access all namespaces. */
  readonly namespaces?: readonly string[];
  readonly expiresAtMs?: number;
  readonly createdBy: string;
  readonly createdAtMs: number;
  /**
   * The time at which the token was last used. It is recorded with a delay of a minute, or more if
   * there are very many users.
   */
  readonly lastUsedAtMs?: number;
}

/** An invitation: a code with which a limited number of people can sign up. */
export interface InvitationEntry {
  readonly name: string;
  /** The SHA-256 hash of the invitation code, in base64url. */
  readonly secretHash: string;
  /** The number of accounts that may be created with the code; absent if there is no limit. */
  readonly usesMax?: number;
  readonly usedCount: number;
  readonly expiresAtMs?: number;
  readonly createdBy: string;
  readonly createdAtMs: number;
}

/** A dropped account that is due to be erased. */
export interface Erasure {
  readonly accountId: number;
  readonly userId: string;
  /** The number that identifies the account as the owner of its rows. */
  readonly owner: number;
  readonly eraseAfterMs: number;
}
