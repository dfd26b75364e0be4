/**
 * Forges tokens of a trusted issuer: the attacks on JWTs and on OpenID Connect that tools and
 * advisories list. Some of the tokens are signed with the issuer's own key, because the attack
 * must not succeed even then. Every token must be refused, wherever tokens are accepted.
 */
import { createPublicKey } from "node:crypto";
import type { JWK } from "jose";
import {
  encodedPart,
  type ForgedToken,
  HOSTILE_KEY_IDS,
  NONE_IN_EVERY_CASE,
  signedPart,
} from "./forged_tokens.ts";
import { publicPart, type SigningIssuer } from "./oidc_provider.ts";

/** The order of the P-256 group. Some programs have treated this number in a signature as 0. */
const ORDER = Buffer.from(
  "ffffffff00000000ffffffffffffffffbce6faada7179e84f3b9cac2fc632551",
  "hex",
);

/**
 * Creates tokens that an attacker could forge without the issuer's help.
 * @param issuer An issuer with an ES256 key, whose tokens the server accepts for audience "db".
 * @param thief An issuer that the server does not trust.
 */
export async function forgedIssuerTokens(
  issuer: SigningIssuer,
  thief: SigningIssuer,
): Promise<readonly ForgedToken[]> {
  const groups = [
    withWrongClaims(issuer),
    withRepeatedNames(issuer),
    withForeignHeaders(issuer),
    withKeysOf(thief, issuer),
    spelledDifferently(issuer),
  ];
  return [...withoutKey(issuer), ...(await Promise.all(groups)).flat()];
}

async function withWrongClaims(issuer: SigningIssuer): Promise<ForgedToken[]> {
  const later = Math.floor(Date.now() / 1000) + 3600;
  const changes: readonly Record<string, unknown>[] = [
    { aud: "other" },
    { aud: "DB" },
    { aud: "db2" },
    { aud: undefined },
    { aud: ["a", "b"] },
    { aud: [["db"]] },
    { aud: { db: true } },
    { aud: [] },
    { iss: "http://LOCALHOST" },
    { iss: "https://evil.example.com" },
    { iss: `${issuer.url}/` },
    { iss: `${issuer.url}.evil.example` },
    { iss: issuer.url.slice(0, -1) },
    { iss: [issuer.url] },
    { iss: undefined },
    { iss: "tidemark" },
    { sub: undefined },
    { sub: null },
    { sub: "" },
    { sub: 1 },
    { sub: ["1"] },
    { sub: "x".repeat(256) },
    { sub: "\ud800" },
    { exp: undefined },
    { exp: null },
    { exp: "2099" },
    { exp: 1e308 },
    { exp: -1 },
    { exp: [later] },
    { iat: undefined },
    { iat: String(later) },
    { iat: later },
    { nbf: later },
    { nbf: "0" },
    { nbf: null },
    { cnf: { jkt: "x" } },
    { events: {} },
    // Makes the token longer than any token that the server reads.
    { filler: "x".repeat(16_384) },
    { filler: "x".repeat(700_000) },
  ];
  return await Promise.all(
    changes.map(async (change) => ({
      attack: `claims ${JSON.stringify(change).slice(0, 80)} of ${Object.keys(change).join()}`,
      token: await issuer.token(change),
    })),
  );
}

async function withRepeatedNames(issuer: SigningIssuer): Promise<ForgedToken[]> {
  const json = JSON.stringify(issuer.claims()).slice(1, -1);
  const payloads = [
    `{${json},"sub":"root"}`,
    `{"sub":"root",${json}}`,
    `{${json},"\\u0073ub":"root"}`,
    `{"aud":"other",${json}}`,
    `{"exp":1,${json}}`,
    "[]",
    "null",
    "{",
  ];
  return await Promise.all(
    payloads.map(async (payload) => ({
      attack: `payload ${payload.slice(0, 40)} … ${payload.slice(-40)}`,
      token: await issuer.signed(payload),
    })),
  );
}

async function withForeignHeaders(issuer: SigningIssuer): Promise<ForgedToken[]> {
  const headers: readonly object[] = [
    { crit: ["exp2"], exp2: 1 },
    { crit: ["b64"], b64: true },
    { b64: true },
    { cty: "JWT" },
    { zip: "DEF" },
    { typ: "logout+jwt" },
    { typ: "dpop+jwt" },
    { typ: "JWE" },
    { kid: undefined },
  ];
  return await Promise.all(
    headers.map(async (header) => ({
      attack: `header ${JSON.stringify(header)}`,
      token: await issuer.token({}, { header }),
    })),
  );
}

/**
 * Returns tokens that the thief signs with its own key. Their headers contain that key or point to
 * it.
 */
async function withKeysOf(thief: SigningIssuer, issuer: SigningIssuer): Promise<ForgedToken[]> {
  const url = `${thief.url}/jwks`;
  const headers: readonly object[] = [
    { jwk: publicPart(thief.key) },
    { jwk: publicPart(thief.key), kid: "first" },
    { jku: url },
    { jku: url, kid: "first" },
    { jku: `${issuer.url}@${new URL(url).host}/jwks` },
    { x5u: url },
    { x5c: ["MIIB"] },
    { kid: url },
    ...HOSTILE_KEY_IDS.map((kid) => ({ kid })),
  ];
  return await Promise.all(
    headers.map(async (header) => ({
      attack: `key of ${JSON.stringify(header)}`,
      token: await issuer.token({}, { header, key: thief.key }),
    })),
  );
}

/** Returns tokens for which an attacker needs no private key. */
function withoutKey(issuer: SigningIssuer): ForgedToken[] {
  const claims = issuer.claims();
  const payload = encodedPart(claims);
  const headerOf = (value: object): string => encodedPart({ kid: "first", ...value });
  const none = NONE_IN_EVERY_CASE.flatMap((alg) => [
    { attack: `alg ${alg}`, token: `${headerOf({ alg })}.${payload}.` },
    { attack: `alg ${alg}, signed`, token: `${headerOf({ alg })}.${payload}.AA` },
  ]);
  // Tries HMAC with the public key as the secret, in each form in which attackers find that key.
  const confused = formsOfKey(issuer.key).map((secret, index) => ({
    attack: `HS256 with form ${index} of the public key`,
    token: signedPart({ alg: "HS256", typ: "JWT", kid: "first" }, claims, secret),
  }));
  const input = `${headerOf({ alg: "ES256", typ: "JWT" })}.${payload}`;
  const [zero, one] = [Buffer.alloc(32), Buffer.alloc(32)];
  one[31] = 1;
  const pairs = [zero, one, ORDER].flatMap((r) => [zero, one, ORDER].map((s) => [r, s] as const));
  const signatures = [
    ...pairs.map(([r, s]) => Buffer.concat([r, s])),
    Buffer.from("3006020100020100", "hex"),
    Buffer.alloc(0),
    Buffer.alloc(1),
    Buffer.alloc(128),
  ];
  const psychic = signatures.map((signature) => ({
    attack: `ES256 with signature ${signature.toString("hex")}`,
    token: `${input}.${signature.toString("base64url")}`,
  }));
  return [...none, ...confused, ...psychic];
}

function formsOfKey(key: JWK): readonly (string | Uint8Array)[] {
  const shared = publicPart(key);
  const published = createPublicKey({ key: shared, format: "jwk" });
  const pem = published.export({ type: "spki", format: "pem" });
  const der = published.export({ type: "spki", format: "der" });
  return [pem, pem.trimEnd(), der, JSON.stringify(shared), String(key.x), ""];
}

async function spelledDifferently(issuer: SigningIssuer): Promise<ForgedToken[]> {
  const good = await issuer.token();
  const [head = "", body = "", signature = ""] = good.split(".");
  const moved = encodedPart(issuer.claims({ sub: "root" }));
  const nested = await issuer.signed(good, { cty: "JWT" });
  const texts = [
    "eyJ",
    "eyJ.eyJ.x",
    "eyJhbGciOiJSUzI1NiJ9.bm90IGpzb24.x",
    `${head}.${body}`,
    `${head}.${body}.`,
    `${head}.${body}.${signature.slice(0, -6)}`,
    `${head}.${moved}.${signature}`,
    `${good}.x`,
    `x.${good}`,
    `${encodedPart({ alg: "RSA-OAEP", enc: "A256GCM", kid: "first" })}..AA.${body}.${signature}`,
    `${encodedPart('{"alg":"none","alg":"ES256","kid":"first"}')}.${body}.${signature}`,
    nested,
  ];
  return texts.map((token) => ({ attack: `spelling ${token.slice(0, 80)}`, token }));
}
