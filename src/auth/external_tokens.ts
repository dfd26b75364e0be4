/**
 * Verifies bearer tokens from trusted issuers.
 *
 * Requests are authenticated synchronously. Verifying the signature of an external token takes
 * longer, and the issuer's keys may have to be fetched first. The server therefore calls `check`
 * first, which stores the verified token, so that `find` can return it:
 *
 *     check(token) ──nothing to wait for──► find(token)
 *                  └──keys, signature──► stored ──► find(token)
 *
 * Invariants:
 * - `find` returns a token only if its issuer signed it for this server. The caller checks the
 *   token's times.
 * - A token is verified again after its issuer's keys have been fetched again, so it becomes
 *   invalid together with its key.
 * - Tokens are stored by their full text, so a token with a different signature is a different
 *   token. The session id is derived only from the part that the signature covers, because some
 *   signatures have two spellings, and a logout has to end both.
 */
import { decodeJwt } from "jose";
import { putNewest } from "../base/newest.ts";
import { AuthError } from "./auth_error.ts";
import type { IssuerKeys, VerifiedToken } from "./oidc/issuer.ts";
import { ProviderError, type ProviderObject } from "./oidc/provider_fetch.ts";
import type { Provider, Providers } from "./oidc/providers.ts";
import {
  type ExternalIdentity,
  identityFrom,
  isFor,
  type TokenTimes,
  timesFrom,
} from "./oidc/token_claims.ts";
import { boundedTimes, providerPart } from "./provider_sessions.ts";
import { isOwnToken } from "./token.ts";

/** A token that a trusted issuer signed for this server. */
export interface ExternalToken {
  readonly identity: ExternalIdentity;
  readonly times: TokenTimes;
  readonly sessionId: string;
}

interface Verified {
  readonly token: ExternalToken;
  readonly provider: Provider;
  readonly keys: IssuerKeys;
}

/** The maximum length of a token. Tokens that list many groups are several kilobytes long. */
const TOKEN_LENGTH_MAX = 16_384;

/** The maximum number of stored tokens. This many take up a few megabytes. */
const REMEMBERED_MAX = 4096;

export class ExternalTokens {
  readonly #providers: Providers;
  readonly #verified = new Map<string, Verified>();

  constructor({ providers }: { providers: Providers }) {
    this.#providers = providers;
  }

  /** Whether the server trusts any token issuer other than itself. */
  get trustsOthers(): boolean {
    return !this.#providers.isEmpty;
  }

  /**
   * Verifies a token if it may come from a trusted issuer. Returns undefined if no verification is
   * pending. The promise rejects only if the issuer's keys cannot be fetched.
   *
   * @throws {AuthError} AUTHENTICATION_ERROR
   */
  check(token: string): Promise<void> | undefined {
    if (!this.trustsOthers || !mayBeExternal(token)) return undefined;
    const key = hashOf(token);
    const known = this.#verified.get(key);
    if (known?.provider.keys.isCurrent(known.keys) === true) return undefined;
    const provider = this.#providers.ofIssuer(issuerIn(token) ?? "");
    return provider === undefined ? undefined : this.#verify(provider, { token, key });
  }

  /** Returns the verified form of a token; undefined if `check` has not verified it. */
  find(token: string): ExternalToken | undefined {
    if (this.#verified.size === 0 || !mayBeExternal(token)) return undefined;
    return this.#verified.get(hashOf(token))?.token;
  }

  async #verify(provider: Provider, { key, token }: { token: string; key: string }): Promise<void> {
    const verified = await verifiedBy(provider, token);
    const { keys, payload } = verified ?? {};
    const found = payload === undefined ? undefined : acceptedToken(provider, { token, payload });
    if (keys === undefined || found === undefined) {
      this.#verified.delete(key);
      return;
    }
    putNewest(this.#verified, [key, { token: found, provider, keys }], REMEMBERED_MAX);
  }
}

async function verifiedBy({ keys }: Provider, token: string): Promise<VerifiedToken | undefined> {
  try {
    return await keys.verified(token);
  } catch (error) {
    if (!(error instanceof ProviderError)) throw error;
    throw new AuthError(
      "AUTHENTICATION_ERROR",
      "The token cannot be verified because its issuer's keys cannot be fetched; try again later",
      { retryAfterSeconds: RETRY_SECONDS },
    );
  }
}

/**
 * The number of seconds after which a client may try again if an issuer's keys cannot be fetched.
 */
const RETRY_SECONDS = 10;

function mayBeExternal(token: string): boolean {
  return token.startsWith("eyJ") && token.length <= TOKEN_LENGTH_MAX && !isOwnToken(token);
}

function acceptedToken(
  provider: Provider,
  { payload, token }: { token: string; payload: ProviderObject },
): ExternalToken | undefined {
  const { audience } = provider.settings ?? {};
  const times = timesFrom(payload);
  const identity = identityFrom(payload, provider);
  const isAcceptable =
    payload["iss"] === provider.issuer &&
    (audience === undefined || isFor(payload, audience)) &&
    // A token bound to a key of its holder is refused, because this server does not verify that
    // the sender holds the key.
    payload["cnf"] === undefined &&
    // A token with an `events` claim reports a logout or an account change; it is not a bearer
    // token.
    payload["events"] === undefined;
  if (!isAcceptable || times === undefined || identity === undefined) return undefined;
  const signedPart = token.slice(0, token.lastIndexOf("."));
  const ends = providerPart(identity, Math.floor(times.issuedAt * 1000));
  return {
    identity,
    times: boundedTimes(times),
    sessionId: EXTERNAL_SESSION + hashOf(signedPart) + ends,
  };
}

/**
 * The prefix of the session ids for external tokens. No login session's id starts with it, because
 * those ids contain no space.
 */
const EXTERNAL_SESSION = "external ";

/** Returns whether a session id belongs to a token from an external issuer. */
export function isExternalSession(sessionId: string): boolean {
  return sessionId.startsWith(EXTERNAL_SESSION);
}

function issuerIn(token: string): string | undefined {
  try {
    return decodeJwt(token).iss;
  } catch {
    // A string that is not a token has no issuer. The caller refuses it.
    return undefined;
  }
}

function hashOf(text: string): string {
  return new Bun.CryptoHasher("sha256").update(text).digest().toString("base64url");
}
