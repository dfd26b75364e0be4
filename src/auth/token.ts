/**
 * Tokens: HS256 JWTs, made by jose and read by hand.
 *
 * Reading must be synchronous and cheap (an HMAC by Bun takes 0.4 µs, jose 21 µs), and stricter
 * than the standard: there is one algorithm and one issuer, so whatever a token could use to argue
 * about that is refused before its signature is looked at.
 *
 *     base64url(header) . base64url(claims) . base64url(HMAC-SHA256(secret, header . claims))
 *
 *     header   {"alg":"HS256","typ":"JWT"} and nothing else; `typ` may be absent
 *     claims   iss "tidemark", sub, iat, exp, jti, sid, tv, role, email, token_type; nbf may be
 *              there, aud must not; each name once
 *
 * What is cached is only that a text was signed by this server. Whether it is good is asked of
 * `auth.ts`: time at each use, user and revocation whenever any of them changed.
 */
import { timingSafeEqual } from "node:crypto";
import { SignJWT } from "jose";
import type { Clock } from "../base/clock.ts";
import type { Role } from "../catalog/mod.ts";

export type TokenType = "access" | "refresh";

/** What a token of this server says. Times are Unix seconds. */
export interface TokenClaims {
  readonly userId: string;
  readonly issuedAt: number;
  readonly expiresAt: number;
  readonly notBefore: number | undefined;
  readonly tokenId: string;
  /** Login session: shared by all tokens of one login. */
  readonly sessionId: string;
  /** The user's token version at issue. */
  readonly tokenVersion: number;
  readonly role: Role;
  readonly email: string | null;
  readonly tokenType: TokenType;
}

/** Whether the lifetime of a token holds now. */
export type TokenAge = "valid" | "expired" | "early";

/** How far the clocks of two machines may differ, in seconds. */
const LEEWAY_SECONDS = 60;

/** Far above any token of this server, which has some 500 characters. */
const TOKEN_LENGTH_MAX = 4096;

/** Tokens remembered in each of two generations; a full one replaces the other. */
const CACHE_TOKENS_MAX = 8192;

/** How an `Authorization` header begins as nearly all clients write it. */
const USUAL_SCHEME = "Bearer ";

const ISSUER = "tidemark";

export class Tokens {
  readonly #secret: Uint8Array;
  readonly #clock: Clock;
  #recent = new Map<string, TokenClaims>();
  #older = new Map<string, TokenClaims>();
  /** By `Authorization` header: clients send the same one, so nothing is cut out of it again. */
  readonly #byHeader = new Map<string, TokenClaims>();

  constructor({ secret, clock }: { secret: Uint8Array; clock: Clock }) {
    this.#secret = secret;
    this.#clock = clock;
  }

  sign(claims: TokenClaims): Promise<string> {
    const payload = {
      iss: ISSUER,
      sub: claims.userId,
      iat: claims.issuedAt,
      exp: claims.expiresAt,
      jti: claims.tokenId,
      sid: claims.sessionId,
      tv: claims.tokenVersion,
      role: claims.role,
      email: claims.email,
      token_type: claims.tokenType,
    };
    return new SignJWT(payload).setProtectedHeader({ alg: "HS256", typ: "JWT" }).sign(this.#secret);
  }

  /**
   * Reads a token that this server signed.
   *
   * @returns Its claims, whatever their times; undefined when it is anything else.
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
   * The same for the token of an `Authorization` header; undefined, too, when there is none in it.
   */
  verifyHeader(header: string): TokenClaims | undefined {
    const known = this.#byHeader.get(header);
    if (known !== undefined) return known;
    const token = bearerTokenIn(header);
    const claims = token === undefined ? undefined : this.verify(token);
    if (claims === undefined) return undefined;
    // Only the usual form: any number of spaces would make as many headers of one token.
    if (header.length === USUAL_SCHEME.length + (token?.length ?? 0)) {
      if (this.#byHeader.size >= CACHE_TOKENS_MAX) this.#byHeader.clear();
      this.#byHeader.set(header, claims);
    }
    return claims;
  }

  /** @param nowMs By the clock on the wall. */
  age(claims: TokenClaims, nowMs: number = this.#clock.nowMs()): TokenAge {
    const now = nowMs / 1000;
    if (claims.issuedAt > now + LEEWAY_SECONDS) return "early";
    if (claims.notBefore !== undefined && claims.notBefore > now + LEEWAY_SECONDS) return "early";
    return now >= claims.expiresAt + LEEWAY_SECONDS ? "expired" : "valid";
  }

  #read(token: string): TokenClaims | undefined {
    if (token.length > TOKEN_LENGTH_MAX) return undefined;
    const parts = token.split(".");
    const [header, payload, signature] = parts;
    if (parts.length !== 3 || header === undefined || payload === undefined) return undefined;
    const given = bytesFromBase64Url(signature ?? "");
    if (given === undefined || !isOurHeader(header)) return undefined;
    const made = new Bun.CryptoHasher("sha256", this.#secret)
      .update(`${header}.${payload}`)
      .digest();
    if (given.length !== made.length || !timingSafeEqual(given, made)) return undefined;
    return claimsFrom(payload);
  }
}

/** The token of an `Authorization` header; the form that nearly all clients send is read first. */
function bearerTokenIn(header: string): string | undefined {
  if (header.startsWith(USUAL_SCHEME) && header.lastIndexOf(" ") === USUAL_SCHEME.length - 1) {
    return header.slice(USUAL_SCHEME.length);
  }
  return /^bearer +(\S+)$/i.exec(header)?.[1];
}

function isOurHeader(segment: string): boolean {
  const header = flatObjectFrom(segment);
  if (header === undefined || header["alg"] !== "HS256") return false;
  return Object.keys(header).every(
    (name) => name === "alg" || (name === "typ" && header["typ"] === "JWT"),
  );
}

function claimsFrom(segment: string): TokenClaims | undefined {
  const claims = flatObjectFrom(segment);
  if (claims === undefined || claims["iss"] !== ISSUER || "aud" in claims) return undefined;
  const { sub, iat, exp, nbf, jti, sid, tv, role, email, token_type: tokenType } = claims;
  if (!isFilledText(sub) || !isFilledText(jti) || !isFilledText(sid)) return undefined;
  if (!isCount(iat) || !isCount(exp) || !isCount(tv)) return undefined;
  if (nbf !== undefined && !isCount(nbf)) return undefined;
  if (!isRole(role) || (email !== null && typeof email !== "string")) return undefined;
  if (tokenType !== "access" && tokenType !== "refresh") return undefined;
  return {
    userId: sub,
    issuedAt: iat,
    expiresAt: exp,
    notBefore: nbf,
    tokenId: jti,
    sessionId: sid,
    tokenVersion: tv,
    role,
    email,
    tokenType,
  };
}

/** A JSON object whose names are all different. */
function flatObjectFrom(segment: string): Record<string, unknown> | undefined {
  const bytes = bytesFromBase64Url(segment);
  if (bytes === undefined) return undefined;
  let value: unknown;
  let text: string;
  try {
    text = new TextDecoder("utf-8", { fatal: true }).decode(bytes);
    value = JSON.parse(text);
  } catch {
    // Not UTF-8 or not JSON: not a token, which the caller says.
    return undefined;
  }
  if (typeof value !== "object" || value === null || Array.isArray(value)) return undefined;
  if (topLevelNameCount(text) !== Object.keys(value).length) return undefined;
  return value as Record<string, unknown>;
}

/** How many names the outermost object of a valid JSON text has, repeated ones counted. */
function topLevelNameCount(json: string): number {
  let depth = 0;
  let count = 0;
  for (const [token] of json.matchAll(/"(?:[^"\\]|\\.)*"|[{}[\]:]/g)) {
    if (token === "{" || token === "[") depth += 1;
    else if (token === "}" || token === "]") depth -= 1;
    else if (token === ":" && depth === 1) count += 1;
  }
  return count;
}

/** Decodes canonical base64url without padding, so that a token has one spelling only. */
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

function isRole(value: unknown): value is Role {
  return value === "user" || value === "service" || value === "dba" || value === "system";
}
