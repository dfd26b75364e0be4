/**
 * Defines the OpenID Connect settings: the issuers whose tokens the server accepts, and how it
 * treats their users. The server trusts no issuer, and contacts no host, that the settings do not
 * name.
 */
import { isLoopbackHost } from "../../base/ip_address.ts";
import type { Role } from "../../catalog/mod.ts";

/** An `oidc.providers.<name>` section of the configuration. */
export interface ProviderSettings {
  readonly name: string;
  readonly issuer: string;
  /**
   * This server's client id at the provider; undefined if the provider is not used for browser
   * logins.
   */
  readonly clientId: string | undefined;
  readonly clientSecret: string | undefined;
  /** The audience that a bearer token must name; undefined if any audience is accepted. */
  readonly audience: string | undefined;
  /**
   * The token claim that identifies the account of a user whose account link contains no subject
   * yet.
   */
  readonly userClaim: string;
  /** The provider's name as displayed on the login page. */
  readonly label: string;
  readonly scopes: readonly string[];
  /** The names of the token claims that the SQL function CLAIM() returns. */
  readonly claims: readonly string[];
}

export interface OidcSettings {
  readonly providers: readonly ProviderSettings[];
  /**
   * The issuers that have no configuration section of their own. Their tokens are accepted for any
   * audience.
   */
  readonly trustedIssuers: readonly string[];
  /** Whether an account is created for a user whom the server does not know yet. */
  readonly autoProvisions: boolean;
  /** The role of accounts that are created at a login. */
  readonly defaultRole: Role;
  /** Whether users may link their existing account to a provider. */
  readonly mayLink: boolean;
  /** How long an issuer's keys are used before they are fetched again, in seconds. */
  readonly keysFreshSeconds: number;
}

/**
 * Returns whether `text` can identify an issuer: an https URL, or an http URL of this machine,
 * where nobody can intercept the connection.
 */
export function isIssuer(text: string): boolean {
  const url = URL.parse(text);
  if (url === null || url.search !== "" || url.hash !== "") return false;
  return url.username === "" && url.password === "" && isPrivate(url);
}

/** Returns whether nobody can intercept or change data sent to a URL. */
export function isPrivate({ hostname, protocol }: URL): boolean {
  return protocol === "https:" || (protocol === "http:" && isLoopbackHost(hostname));
}
