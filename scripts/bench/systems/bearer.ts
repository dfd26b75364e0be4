/**
 * Creates and checks bearer tokens for the benchmarks. The tokens have the same form as
 * Tidemark's. The peers' front ends also check them as Tidemark does, first by signature and then
 * from a cache.
 */

interface Claims {
  readonly sub: string;
  readonly exp: number;
}

/** Reads a token's claims without verifying its signature. */
export function claimsOf(token: string): Readonly<Record<string, unknown>> {
  const body = Buffer.from(token.split(".")[1] ?? "", "base64url").toString();
  return JSON.parse(body) as Record<string, unknown>;
}

/** Returns a token with the given claims, signed with HS256. */
export function signToken(claims: Readonly<Record<string, unknown>>, secret: string): string {
  const text = [{ alg: "HS256", typ: "JWT" }, claims]
    .map((part) => Buffer.from(JSON.stringify(part)).toString("base64url"))
    .join(".");
  return `${text}.${signatureOf(text, secret)}`;
}

export class TokenCheck {
  readonly #secret: string;
  readonly #known = new Map<string, Claims>();

  constructor(secret: string) {
    this.#secret = secret;
  }

  /** Returns the user named in an Authorization header; undefined if the token is not valid. */
  userOf(header: string | null): string | undefined {
    if (header === null || !header.startsWith("Bearer ")) return undefined;
    const token = header.slice(7);
    const claims = this.#known.get(token) ?? this.#verify(token);
    return claims !== undefined && claims.exp * 1000 > Date.now() ? claims.sub : undefined;
  }

  #verify(token: string): Claims | undefined {
    const end = token.lastIndexOf(".");
    if (signatureOf(token.slice(0, end), this.#secret) !== token.slice(end + 1)) return undefined;
    const { sub, exp } = claimsOf(token);
    if (typeof sub !== "string" || typeof exp !== "number") return undefined;
    const claims = { sub, exp };
    this.#known.set(token, claims);
    return claims;
  }
}

function signatureOf(text: string, secret: string): string {
  return new Bun.CryptoHasher("sha256", secret).update(text).digest("base64url");
}
