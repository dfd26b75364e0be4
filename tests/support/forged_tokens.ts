/**
 * Forges tokens of this server: the attacks on JWTs that tools and advisories list. Some of the
 * tokens are signed with the server's own secret, because the attack must not succeed even then.
 * Every token must be refused, wherever tokens are accepted.
 */
import { createHmac, generateKeyPairSync, sign } from "node:crypto";
import { UnsecuredJWT } from "jose";

/** A token that must be refused, and the attack that it attempts. */
export interface ForgedToken {
  readonly attack: string;
  readonly token: string;
}

export interface Original {
  /** A valid token for user `ada`. */
  readonly token: string;
  readonly secret: Uint8Array | string;
  /** The time on the server's clock, in seconds. */
  readonly nowSeconds: number;
}

type Claims = Readonly<Record<string, unknown>>;

const HEADER = { alg: "HS256", typ: "JWT" };

/**
 * The algorithm `none` in all sixteen combinations of upper and lower case, because some programs
 * refuse only the exact word.
 */
export const NONE_IN_EVERY_CASE: readonly string[] = Array.from({ length: 16 }, (_, bits) =>
  Array.from("none", (letter, at) =>
    ((bits >> at) & 1) === 1 ? letter.toUpperCase() : letter,
  ).join(""),
);

/** Key ids that try to make a server read a different file, run a command or change a query. */
export const HOSTILE_KEY_IDS: readonly unknown[] = [
  "../../../../dev/null",
  "/dev/null",
  "../../etc/passwd",
  "/proc/sys/kernel/randomize_va_space",
  "file:///dev/null",
  "first' UNION SELECT 'x",
  "' OR 1=1 --",
  "|| sleep 10",
  "$(id)",
  "first\u0000",
  "",
  1,
  null,
  ["first"],
  { first: 1 },
];

export function encodedPart(value: unknown): string {
  const text = typeof value === "string" ? value : JSON.stringify(value);
  return Buffer.from(text).toString("base64url");
}

/** Returns a token that has a valid signature, whatever its header and payload. */
export function signedPart(header: unknown, payload: unknown, secret: Uint8Array | string): string {
  const input = `${encodedPart(header)}.${encodedPart(payload)}`;
  return `${input}.${createHmac("sha256", secret).update(input).digest("base64url")}`;
}

/** Returns the claims of a token without verifying it. */
export function claimsOf(token: string): Claims {
  return JSON.parse(Buffer.from(token.split(".")[1] ?? "", "base64url").toString()) as Claims;
}

export function forgedTokens(original: Original): readonly ForgedToken[] {
  return [
    ...withForeignHeaders(original),
    ...signedByOthers(original),
    ...spelledDifferently(original),
    ...withWrongClaims(original),
  ];
}

function withForeignHeaders({ secret, token }: Original): ForgedToken[] {
  const headers: readonly unknown[] = [
    ...NONE_IN_EVERY_CASE.map((alg) => ({ alg })),
    { alg: "" },
    { alg: null },
    {},
    { typ: "JWT" },
    { alg: ["HS256"] },
    { alg: "hs256" },
    { alg: "HS512" },
    { alg: "RS256" },
    { ...HEADER, typ: "JWE" },
    { ...HEADER, typ: "at+jwt" },
    { ...HEADER, cty: "JWT" },
    { ...HEADER, crit: ["exp"] },
    { ...HEADER, crit: ["b64"], b64: false },
    { ...HEADER, b64: false },
    { ...HEADER, jwk: { kty: "oct", k: "AA" } },
    { ...HEADER, jku: "https://evil.example/jwks" },
    { ...HEADER, x5u: "https://evil.example/x" },
    { ...HEADER, x5c: ["AA"] },
    ...HOSTILE_KEY_IDS.map((kid) => ({ alg: "HS256", typ: "JWT", kid })),
    { ...HEADER, zip: "DEF" },
    '{"alg":"none","alg":"HS256"}',
    '{"alg":"HS256","alg":"HS256"}',
    "[]",
    "null",
    '"HS256"',
    "not json",
  ];
  return headers.map((header) => ({
    attack: `header ${JSON.stringify(header)}`,
    token: signedPart(header, claimsOf(token), secret),
  }));
}

function signedByOthers({ secret, token }: Original): ForgedToken[] {
  const [header = "", payload = "", signature = ""] = token.split(".");
  const claims = claimsOf(token);
  const rsa = generateKeyPairSync("rsa", { modulusLength: 2048 });
  const ec = generateKeyPairSync("ec", { namedCurve: "P-256" });
  const publicPem = rsa.publicKey.export({ type: "spki", format: "pem" });
  const input = `${header}.${payload}`;
  const es256 = `${encodedPart({ alg: "ES256", typ: "JWT" })}.${payload}`;
  const rs256 = `${encodedPart({ alg: "RS256", typ: "JWT" })}.${payload}`;
  const nested = encodedPart({ alg: "HS256", cty: "JWT" });
  const attacks: Record<string, string> = {
    "an unsecured token": new UnsecuredJWT({ ...claims }).encode(),
    "none without a signature": `${encodedPart({ alg: "none" })}.${payload}.`,
    "none with the old signature": `${encodedPart({ alg: "none" })}.${payload}.${signature}`,
    "HS256 with a public key": signedPart(HEADER, claims, publicPem),
    "HS256 with a guessed secret": signedPart(HEADER, claims, "secret"),
    "HS256 with an empty secret": signedPart(HEADER, claims, ""),
    "HS256 with a zero byte": signedPart(HEADER, claims, "\0"),
    "RS256 of a stranger": `${rs256}.${sign("sha256", Buffer.from(rs256), rsa.privateKey).toString("base64url")}`,
    "ES256 of a stranger": `${es256}.${sign("sha256", Buffer.from(es256), ec.privateKey).toString("base64url")}`,
    "ES256 with r and s of 0": `${es256}.${Buffer.alloc(64).toString("base64url")}`,
    "HS256 with zeros": `${input}.${Buffer.alloc(32).toString("base64url")}`,
    "HS512 for HS256": `${input}.${createHmac("sha512", secret).update(input).digest("base64url")}`,
    "a token in a token": signedPart(nested, token, secret),
    "five parts, as of an encrypted token": `${encodedPart({ alg: "dir", enc: "A256GCM" })}..AA.${payload}.${signature}`,
  };
  return Object.entries(attacks).map(([attack, forged]) => ({ attack, token: forged }));
}

function spelledDifferently({ secret, token }: Original): ForgedToken[] {
  const [header = "", payload = "", signature = ""] = token.split(".");
  const input = `${header}.${payload}`;
  const lastBits = signature.slice(0, -1) + otherLetter(signature.at(-1) ?? "A");
  const json = JSON.stringify(claimsOf(token)).slice(0, -1);
  const texts = [
    ".",
    "..",
    "a.b.c",
    input,
    `${input}.`,
    `${token}.`,
    `.${token}`,
    `${token}.${signature}`,
    `${token}.a.b`,
    `${token}=`,
    `${token} x`,
    token.slice(0, -1),
    `${token}A`,
    `${input}.${lastBits}`,
    `${input}.${signature.replace(/^./, "+")}`,
    token.toUpperCase(),
    token.replaceAll(".", "%2e"),
    "a".repeat(1_000_000),
    `${header}.${"A".repeat(1_000_000)}.${signature}`,
    signedPart(HEADER, `${json},"role":"system"}`, secret),
    signedPart(HEADER, `${json},"sub":"root"}`, secret),
    signedPart(HEADER, "[]", secret),
    signedPart(HEADER, "null", secret),
    signedPart(HEADER, "{", secret),
    signedPart(HEADER, Buffer.from([0xff, 0xfe]).toString("latin1"), secret),
  ];
  return texts.map((text) => ({ attack: `spelling ${text.slice(0, 80)}`, token: text }));
}

function withWrongClaims({ nowSeconds, secret, token }: Original): ForgedToken[] {
  const claims = claimsOf(token);
  const changes: readonly Claims[] = [
    // JSON omits a member whose value is undefined, so each of these changes removes a claim.
    ...Object.keys(claims).map((name) => ({ [name]: undefined })),
    { iss: "tidemark2" },
    { iss: "Tidemark" },
    { iss: ["tidemark"] },
    { iss: "" },
    { aud: "tidemark" },
    { aud: [] },
    { sub: "" },
    { sub: "Ada" },
    { sub: "аda" },
    { sub: "ada " },
    { sub: "nobody" },
    { sub: ["ada"] },
    { sub: null },
    { sub: 1 },
    { exp: "9999999999" },
    { exp: 1e308 },
    { exp: -1 },
    { exp: null },
    { exp: nowSeconds + 0.5 },
    { iat: "1" },
    { iat: nowSeconds + 61 },
    { nbf: nowSeconds + 61 },
    { nbf: "0" },
    { jti: "" },
    { jti: null },
    { sid: "" },
    { tv: "1" },
    { tv: -1 },
    { tv: 2 },
    { tv: null },
    { role: "system" },
    { role: "root" },
    { role: "user" },
    { role: ["dba"] },
    { email: 5 },
    { token_type: "refresh" },
    { token_type: "reset" },
    { token_type: "verify" },
    { token_type: "Access" },
    { token_type: null },
    { sub: "bob", role: "dba" },
    { sub: "root" },
  ];
  return changes.map((change) => {
    const [name = ""] = Object.keys(change);
    const attack = change[name] === undefined ? `no ${name}` : JSON.stringify(change);
    return { attack, token: signedPart(HEADER, { ...claims, ...change }, secret) };
  });
}

/** Returns a different letter of the base64url alphabet. A dot is replaced with a letter. */
export function otherLetter(letter: string): string {
  return letter === "A" ? "B" : "A";
}
