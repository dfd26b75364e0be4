/**
 * Implements access tokens and similar tokens: JWTs signed with HS256, using the runtime's HMAC.
 *
 * Verification is synchronous, so that a request can be processed in the tick in which it arrives.
 * It is also stricter than the standard: only one algorithm and one issuer are accepted, and a
 * token with any other header is refused before its signature is checked.
 *
 *     base64url(header) . base64url(claims) . base64url(HMAC-SHA256(secret, header . claims))
 *
 *     header   {"alg":"HS256","typ":"JWT"} and nothing else; `typ` may be absent
 *     claims   iss "tidemark", sub, iat, exp, jti, sid, tv, role, email, token_type; nbf, prev and
 *              ext may be there, aud must not; each name once
 *
 * The cache records only that this server signed a token. `auth.ts` decides whether the token is
 * valid: it checks the expiry on every request, but the user and the revocations only after an
 * account has changed.
 */
import { timingSafeEqual } from "node:crypto";
import type { Clock } from "../base/clock.ts";
import { objectWithUniqueNames } from "../base/unique_names.ts";
import type { Role, UserEntry } from "../catalog/mod.ts";

/**
 * The purpose of a token. The types `reset` and `verify` belong to one-time links and grant no
 * other access.
 */
export type TokenType = "access" | "refresh" | "reset" | "verify";

/** The claims of a token issued by this server. All times are in Unix seconds. */
export interface TokenClaims {
  readonly userId: string;
  readonly issuedAt: number;
  readonly expiresAt: number;
  readonly notBefore: number | undefined;
  readonly tokenId: string;
  /** The id of the refresh token that was exchanged for this token; undefined after a login. */
  readonly parentId: string | undefined;
  /** The id of the login session. All tokens of a session contain the same id. */
  readonly sessionId: string;
  /** The user's token version at the time when the token was issued. */
  readonly tokenVersion: number;
  readonly role: Role;
  /** The user's email address, or null if {@linkcode provenEmailOf} returns none. */
  readonly email: string | null;
  readonly tokenType: TokenType;
  /** The claims from the provider that identified the user; undefined after any other login. */
  readonly external?: ExternalClaims | undefined;
}

/**
 * The claims from a provider, keyed by name. A claim that is not a string is represented by its
 * JSON text.
 */
export type ExternalClaims = Readonly<Record<string, string>>;

/**
 * The position of the current time relative to the lifetime of a token: within, after or before
 * it.
 */
export type TokenAge = "valid" | "expired" | "early";

/** The clock skew allowed between two machines, in seconds. */
const LEEWAY_SECONDS = 60;

/**
 * The maximum length of a token. This server's own tokens are far shorter: about 500 characters.
 */
const TOKEN_LENGTH_MAX = 4096;

/**
 * The number of tokens in each of the cache's two generations. When the newer generation is full,
 * it replaces the older one.
 */
const CACHE_TOKENS_MAX = 8192;

/** The beginning of an `Authorization` header in the spelling that nearly all clients use. */
const USUAL_SCHEME = "Bearer ";

const ISSUER = "tidemark";

const HEADER: string = segmentFrom({ alg: "HS256", typ: "JWT" });

export class Tokens {
  readonly #secret: Uint8Array;
  readonly #clock: Clock;
  #recent = new Map<string, TokenClaims>();
  #older = new Map<string, TokenClaims>();
  /**
   * The verified claims, keyed by the complete `Authorization` header. Clients send the same
   * header again and again, and looking up the whole header avoids creating a substring.
   */
  readonly #byHeader = new Map<string, TokenClaims>();

  constructor({ secret, clock }: { secret: Uint8Array; clock: Clock }) {
    this.#secret = secret;
    this.#clock = clock;
  }

  sign(claims: TokenClaims): string {
    const payload = segmentFrom({
      iss: ISSUER,
      sub: claims.userId,
      iat: claims.issuedAt,
      exp: claims.expiresAt,
      jti: claims.tokenId,
      ...(claims.parentId === undefined ? {} : { prev: claims.parentId }),
      sid: claims.sessionId,
      tv: claims.tokenVersion,
      role: claims.role,
      email: claims.email,
      token_type: claims.tokenType,
      ...(claims.external === undefined ? {} : { ext: claims.external }),
    });
    return `${HEADER}.${payload}.${this.#signatureOf(HEADER, payload).toString("base64url")}`;
  }

  /**
   * Verifies a token signed by this server.
   *
   * @returns The claims, even if the token has expired or is not valid yet; undefined for any
   *   other string.
   */
  verify(token: string): TokenClaims | undefined {
    const recent = this.#recent.get(token);
    if (recent !== undefined) return recent;
    const claims = this.#older.get(token) ?? this.#read(token);
    if (claims === undefined) return undefined;
    if (this.#recent.size >= CACHE_TOKENS_MAX) {
      this.#older = this.#recent;
      this.#recent = new Map();
    }
    this.#recent.set(token, claims);
    return claims;
  }

  /**
   * Verifies the token in an `Authorization` header. Returns undefined if the header contains no
   * token signed by this server.
   */
  verifyHeader(header: string): TokenClaims | undefined {
    const known = this.#byHeader.get(header);
    if (known !== undefined) return known;
    const token = bearerTokenIn(header);
    const claims = token === undefined ? undefined : this.verify(token);
    if (claims === undefined) return undefined;
    // Only headers in the usual form are cached. Otherwise, a single token with varying spacing
    // could fill the cache.
    if (header.length === USUAL_SCHEME.length + (token?.length ?? 0)) {
      if (this.#byHeader.size >= CACHE_TOKENS_MAX) this.#byHeader.clear();
      this.#byHeader.set(header, claims);
    }
    return claims;
  }

  /**
   * Returns whether a token is valid, expired or not yet valid.
   *
   * @param nowMs The time on the wall clock.
   */
  age(claims: TokenClaims, nowMs: number = this.#clock.nowMs()): TokenAge {
    const now = nowMs / 1000;
    if (claims.issuedAt > now + LEEWAY_SECONDS) return "early";
    if (claims.notBefore !== undefined && claims.notBefore > now + LEEWAY_SECONDS) return "early";
    return nowMs >= this.endMs(claims) ? "expired" : "valid";
  }

  /** Returns the time from which a token is no longer accepted, in Unix milliseconds. */
  endMs({ expiresAt }: TokenClaims): number {
    return (expiresAt + LEEWAY_SECONDS) * 1000;
  }

  #read(token: string): TokenClaims | undefined {
    if (token.length > TOKEN_LENGTH_MAX) return undefined;
    const parts = token.split(".");
    const [header, payload, signature] = parts;
    if (parts.length !== 3 || header === undefined || payload === undefined) return undefined;
    const given = bytesFromBase64Url(signature ?? "");
    if (given === undefined || !isOurHeader(header)) return undefined;
    const made = this.#signatureOf(header, payload);
    if (given.length !== made.length || !timingSafeEqual(given, made)) return undefined;
    return claimsFrom(payload);
  }

  #signatureOf(header: string, payload: string): Buffer {
    return new Bun.CryptoHasher("sha256", this.#secret).update(`${header}.${payload}`).digest();
  }
}

/**
 * Returns the email address that a user's tokens may contain; null if the address is not proven.
 * Policies compare this claim with addresses in rows. If an address that was merely entered at
 * sign-up were enough, anyone could gain access to the rows of the address's real owner.
 */
export function provenEmailOf({ email, isEmailUnproven }: UserEntry): string | null {
  return isEmailUnproven === true ? null : (email ?? null);
}

/**
 * Returns the claims that SQL can read. The other claims identify the token and its session.
 *
 * No claim from a provider replaces an account's own claim, except the email address, which the
 * provider has verified.
 *
 * @param issuer The issuer of the token, if it is not this server.
 */
export function publicClaims(
  { email, external, role, userId }: Pick<TokenClaims, "email" | "external" | "role" | "userId">,
  issuer: string = ISSUER,
): Record<string, string> {
  return { ...(email === null ? {} : { email }), ...external, iss: issuer, sub: userId, role };
}

/** Returns whether `text` looks like a token issued by this server. */
export function isOwnToken(text: string): boolean {
  return text.startsWith(`${HEADER}.`);
}

function segmentFrom(value: object): string {
  return Buffer.from(JSON.stringify(value)).toString("base64url");
}

/**
 * Returns the token in an `Authorization` header. The usual spelling of the header is tried first.
 */
export function bearerTokenIn(header: string): string | undefined {
  if (header.startsWith(USUAL_SCHEME) && header.lastIndexOf(" ") === USUAL_SCHEME.length - 1) {
    return header.slice(USUAL_SCHEME.length);
  }
  return /^bearer +(\S+)$/i.exec(header)?.[1];
}

function isOurHeader(segment: string): boolean {
  const header = objectFrom(segment);
  if (header === undefined || header["alg"] !== "HS256") return false;
  return Object.keys(header).every(
    (name) => name === "alg" || (name === "typ" && header["typ"] === "JWT"),
  );
}

function claimsFrom(segment: string): TokenClaims | undefined {
  const claims = objectFrom(segment);
  if (claims === undefined || claims["iss"] !== ISSUER || "aud" in claims) return undefined;
  const { sub, iat, exp, nbf, jti, prev, sid, tv, role, email, token_type: tokenType } = claims;
  if (!isFilledText(sub) || !isFilledText(jti) || !isFilledText(sid)) return undefined;
  if (!isCount(iat) || !isCount(exp) || !isCount(tv)) return undefined;
  if (nbf !== undefined && !isCount(nbf)) return undefined;
  if (prev !== undefined && !isFilledText(prev)) return undefined;
  if (!isRole(role) || (email !== null && typeof email !== "string")) return undefined;
  const external = externalClaimsIn(claims);
  if (!isTokenType(tokenType) || external === "malformed") return undefined;
  return {
    userId: sub,
    issuedAt: iat,
    expiresAt: exp,
    notBefore: nbf,
    tokenId: jti,
    parentId: prev,
    sessionId: sid,
    tokenVersion: tv,
    role,
    email,
    tokenType,
    ...(external === undefined ? {} : { external }),
  };
}

function externalClaimsIn({
  ext,
}: Readonly<Record<string, unknown>>): ExternalClaims | undefined | "malformed" {
  if (ext === undefined) return undefined;
  if (typeof ext !== "object" || ext === null || Array.isArray(ext)) return "malformed";
  const isText = Object.values(ext).every((claim) => typeof claim === "string");
  return isText ? (ext as ExternalClaims) : "malformed";
}

function objectFrom(segment: string): Readonly<Record<string, unknown>> | undefined {
  const bytes = bytesFromBase64Url(segment);
  return bytes === undefined ? undefined : objectWithUniqueNames(bytes);
}

/**
 * Decodes base64url. Only the canonical encoding without padding is accepted, so that each token
 * has exactly one valid text.
 */
function bytesFromBase64Url(text: string): Uint8Array | undefined {
  if (!/^[A-Za-z0-9_-]+$/.test(text)) return undefined;
  const bytes = Buffer.from(text, "base64url");
  return bytes.toString("base64url") === text ? bytes : undefined;
}

function isFilledText(value: unknown): value is string {
  return typeof value === "string" && value !== "";
}

function isCount(value: unknown): value is number {
  return typeof value === "number" && Number.isSafeInteger(value) && value >= 0;
}

function isTokenType(value: unknown): value is TokenType {
  return value === "access" || value === "refresh" || value === "reset" || value === "verify";
}

function isRole(value: unknown): value is Role {
  return value === "user" || value === "service" || value === "dba" || value === "system";
}
