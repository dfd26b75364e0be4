/**
 * Represents a token issuer: fetches its discovery document and its keys, and verifies its
 * signatures.
 *
 *     {issuer}/.well-known/openid-configuration ──jwks_uri──► keys ──kid──► signature
 *
 * - Only the keys that the issuer publishes can verify its tokens. Keys, URLs and certificates in
 *   a token's header are ignored.
 * - A token is invalid if a name occurs twice in its header or its claims, or if a header
 *   parameter changes how the rest of the token is interpreted.
 * - Only asymmetric algorithms are accepted, so nobody can sign a token with a published key.
 * - An unknown `kid` triggers another fetch of the keys, so that a key rotation takes effect at
 *   once. Such fetches are at least 30 seconds apart, so that strangers cannot make the server
 *   contact the provider constantly.
 */
import { compactVerify, createLocalJWKSet, errors } from "jose";
import type { Clock } from "../../base/clock.ts";
import type { Log } from "../../base/log.ts";
import { objectWithUniqueNames } from "../../base/unique_names.ts";
import { FreshValue } from "./fresh_value.ts";
import { isPrivate } from "./oidc_settings.ts";
import { ProviderError, type ProviderFetch, type ProviderObject } from "./provider_fetch.ts";

/** The parts of a discovery document that the server uses. */
export interface Discovery {
  readonly authorizationEndpoint: string | undefined;
  readonly tokenEndpoint: string | undefined;
  readonly userInfoEndpoint: string | undefined;
  readonly jwksUri: string;
  /**
   * The methods by which a client may authenticate to the provider; undefined if the discovery
   * document does not list any.
   */
  readonly clientProofs: readonly string[] | undefined;
  /** Whether the response to a login names the issuer, as defined by RFC 9207. */
  readonly namesIssuer: boolean;
}

/** An issuer's keys at a point in time. Each fetch creates a new object. */
export interface IssuerKeys {
  readonly find: ReturnType<typeof createLocalJWKSet>;
}

export interface VerifiedToken {
  readonly payload: ProviderObject;
  readonly keys: IssuerKeys;
}

export interface IssuerOptions {
  readonly url: string;
  readonly clock: Clock;
  readonly log: Log;
  readonly fetch: ProviderFetch;
  readonly freshMs: number;
}

const ALGORITHMS: string[] = [
  "RS256",
  "RS384",
  "RS512",
  "PS256",
  "PS384",
  "PS512",
  "ES256",
  "ES384",
  "ES512",
  "EdDSA",
  "Ed25519",
];

/** The acceptable values of the `typ` header in logout tokens, in lower case. */
export const LOGOUT_TYPES: ReadonlySet<string> = new Set(["jwt", "logout+jwt"]);

/**
 * The types of tokens that identify a user. Tokens of other types have other purposes, such as a
 * logout.
 */
const TYPES: ReadonlySet<string> = new Set(["jwt", "at+jwt", "application/at+jwt"]);

/**
 * The header parameters that change how the rest of a token is interpreted: extensions, an
 * unencoded payload, a nested token, and compression. A user's token needs none of them.
 */
const UNUSABLE_MEMBERS: readonly string[] = ["crit", "b64", "cty", "zip"];

export class Issuer {
  readonly url: string;
  readonly #log: Log;
  readonly #discovery: FreshValue<Discovery>;
  readonly #keys: FreshValue<IssuerKeys>;

  constructor({ clock, fetch, freshMs, log, url }: IssuerOptions) {
    this.url = url;
    this.#log = log;
    const onFailure = (error: unknown): void => {
      log.warn("cannot fetch the discovery document or the keys of a provider", {
        issuer: url,
        error: String(error),
      });
    };
    const shared = { clock, freshMs, onFailure };
    const discoveryUrl = `${url.replace(/\/$/, "")}/.well-known/openid-configuration`;
    this.#discovery = new FreshValue({
      ...shared,
      load: async () => discoveryFrom(await fetch(discoveryUrl, { method: "GET" }), url),
    });
    this.#keys = new FreshValue({
      ...shared,
      load: async () => {
        const { jwksUri } = await this.#discovery.get();
        return keysFrom(await fetch(jwksUri, { method: "GET" }));
      },
    });
  }

  /**
   * Returns the issuer's discovery document. Fetches it first if the cached one is not fresh.
   * @throws {ProviderError}
   */
  discovery(): Promise<Discovery> {
    return this.#discovery.get();
  }

  /**
   * Returns whether the keys with which a token was verified are still the issuer's current keys.
   */
  isCurrent(keys: IssuerKeys): boolean {
    return this.#keys.current === keys;
  }

  /**
   * Verifies only the type and the signature of a token.
   *
   * @returns Undefined if the issuer did not sign the token.
   * @throws {ProviderError} If the keys cannot be fetched.
   */
  async verified(
    token: string,
    types: ReadonlySet<string> = TYPES,
  ): Promise<VerifiedToken | undefined> {
    if (!hasUsableHeader(token, types)) return undefined;
    const keys = await this.#keys.get();
    try {
      return await this.#verifiedBy(keys, token);
    } catch (error) {
      if (!(error instanceof errors.JWKSNoMatchingKey)) return this.#refused(error);
    }
    const renewed = await this.#keys.renewed();
    if (renewed === keys) return undefined;
    try {
      return await this.#verifiedBy(renewed, token);
    } catch (error) {
      return this.#refused(error);
    }
  }

  async #verifiedBy(keys: IssuerKeys, token: string): Promise<VerifiedToken | undefined> {
    const { payload } = await compactVerify(token, keys.find, { algorithms: ALGORITHMS });
    const claims = objectWithUniqueNames(payload);
    return claims === undefined ? undefined : { payload: claims, keys };
  }

  /**
   * Logs why a token could not be verified, for example because its signature is wrong or the
   * runtime cannot use its key. The caller refuses the token.
   */
  #refused(error: unknown): undefined {
    this.#log.debug("rejected a token from a provider", { issuer: this.url, error: String(error) });
  }
}

function hasUsableHeader(token: string, types: ReadonlySet<string>): boolean {
  const [segment = ""] = token.split(".", 1);
  const header = objectWithUniqueNames(Buffer.from(segment, "base64url"));
  if (header === undefined || UNUSABLE_MEMBERS.some((name) => name in header)) return false;
  const { kid, typ = "JWT" } = header;
  return typeof kid === "string" && typeof typ === "string" && types.has(typ.toLowerCase());
}

/**
 * Extracts the fields that the server uses from a discovery document.
 * @throws {ProviderError}
 */
function discoveryFrom(document: ProviderObject, issuer: string): Discovery {
  if (document["issuer"] !== issuer) {
    throw new ProviderError(`the discovery document of ${issuer} names a different issuer`);
  }
  const endpoint = (name: string): string | undefined => {
    const value = document[name];
    if (value === undefined) return undefined;
    const url = typeof value === "string" ? URL.parse(value) : null;
    const isAllowed =
      url !== null && isPrivate(url) && (url.protocol === "https:" || issuer.startsWith("http:"));
    if (isAllowed) return url.href;
    throw new ProviderError(`the discovery document of ${issuer} has no usable ${name}`);
  };
  const jwksUri = endpoint("jwks_uri");
  if (jwksUri === undefined) {
    throw new ProviderError(`the discovery document of ${issuer} has no jwks_uri`);
  }
  const proofs = document["token_endpoint_auth_methods_supported"];
  return {
    authorizationEndpoint: endpoint("authorization_endpoint"),
    tokenEndpoint: endpoint("token_endpoint"),
    userInfoEndpoint: endpoint("userinfo_endpoint"),
    jwksUri,
    clientProofs: Array.isArray(proofs) ? proofs.map(String) : undefined,
    namesIssuer: document["authorization_response_iss_parameter_supported"] === true,
  };
}

/** Extracts the public keys from an issuer's key document. @throws {ProviderError} */
function keysFrom(document: ProviderObject): IssuerKeys {
  const { keys } = document;
  if (!Array.isArray(keys)) throw new ProviderError("the provider's key set contains no keys");
  try {
    return { find: createLocalJWKSet({ keys }) };
  } catch (error) {
    throw new ProviderError(`the provider's key set is not valid: ${String(error)}`);
  }
}
