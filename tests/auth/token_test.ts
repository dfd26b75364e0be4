/**
 * Verifies that only an unchanged token that this server signed is accepted, within its lifetime,
 * and only while its user has not changed. The tests try a list of attacks on the real parser.
 */
import { afterAll, expect, test } from "bun:test";
import { createHmac, generateKeyPairSync, sign } from "node:crypto";
import { CompactSign, SignJWT, UnsecuredJWT } from "jose";
import type { Auth } from "../../src/auth/mod.ts";
import { Tokens } from "../../src/auth/token.ts";
import { removeCatalogs } from "../catalog/catalog_fixture.ts";
import { SeededRandom, seedOf } from "../support/seeded_random.ts";
import { configuredServer, failureOf, LOCAL, PASSWORD, SECRET } from "./auth_fixture.ts";

afterAll(removeCatalogs);

const { auth, catalog, clock } = configuredServer({ ada: "dba", bob: "user", eve: "user" });
const session = await auth.login({ user: "ada", password: PASSWORD }, LOCAL);
const [goodHeader = "", goodPayload = "", goodSignature = ""] = session.access_token.split(".");
const goodClaims = JSON.parse(Buffer.from(goodPayload, "base64url").toString()) as Record<
  string,
  unknown
>;

function encode(value: unknown): string {
  const text = typeof value === "string" ? value : JSON.stringify(value);
  return Buffer.from(text).toString("base64url");
}

/** Returns a token with a valid signature over any content. */
function signed(header: unknown, payload: unknown, secret: Uint8Array | string = SECRET): string {
  const input = `${encode(header)}.${encode(payload)}`;
  return `${input}.${createHmac("sha256", secret).update(input).digest("base64url")}`;
}

const HEADER = { alg: "HS256", typ: "JWT" };

function withClaims(change: Record<string, unknown>): string {
  return signed(HEADER, { ...goodClaims, ...change });
}

function without(name: string): string {
  return signed(
    HEADER,
    Object.fromEntries(Object.entries(goodClaims).filter(([key]) => key !== name)),
  );
}

function codeOf(token: string, by: Auth = auth): Promise<string | undefined> {
  return failureOf(() => by.authenticate(token, LOCAL));
}

test("Auth.authenticate accepts tokens that the server signed, and the same claims signed by jose", async () => {
  expect(auth.authenticate(session.access_token, LOCAL)).toEqual({
    userId: "ada",
    role: "dba",
    owner: catalog.ownerNumber("ada"),
    actorId: "ada",
    actorRole: "dba",
    isImpersonated: false,
    claims: { iss: "tidemark", sub: "ada", role: "dba" },
    sessionId: String(goodClaims["sid"]),
    tokenEndMs: (Number(goodClaims["exp"]) + 60) * 1000,
    fileUrlKey: {
      session: expect.any(String),
      key: expect.stringMatching(/^[\w-]{43}$/),
      secondsMax: 7 * 86_400,
    },
  });
  const joses = await new SignJWT(goodClaims).setProtectedHeader({ alg: "HS256" }).sign(SECRET);
  expect(await codeOf(joses)).toBeUndefined();
  expect(await codeOf(withClaims({}))).toBeUndefined();
  expect(await codeOf(withClaims({ extra: { nested: [1, '"a":'] } }))).toBeUndefined();
});

test("Auth.authenticate takes over the claims of a provider, except those that the account defines", async () => {
  const given = { groups: "[1]", email: "ada@example.com" };
  const token = withClaims({ ext: { ...given, iss: "x", sub: "root", role: "system" } });
  expect(auth.authenticate(token, LOCAL).claims).toEqual({
    ...given,
    iss: "tidemark",
    sub: "ada",
    role: "dba",
  });
  for (const ext of [null, "x", 1, [], ["a"], { a: 1 }, { a: null }]) {
    expect(await codeOf(withClaims({ ext })), JSON.stringify(ext)).toBe("INVALID_CREDENTIALS");
  }
});

test("Auth.authenticate refuses foreign headers, even with the right signature", async () => {
  const headers: readonly unknown[] = [
    { alg: "none" },
    { alg: "None" },
    { alg: "NONE" },
    { alg: "" },
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
    { ...HEADER, kid: "../../etc/passwd" },
    { ...HEADER, kid: "' OR 1=1 --" },
    { ...HEADER, kid: "" },
    { ...HEADER, kid: ["a"] },
    { ...HEADER, zip: "DEF" },
    '{"alg":"none","alg":"HS256"}',
    '{"alg":"HS256","alg":"HS256"}',
    "[]",
    "null",
    '"HS256"',
    "not json",
  ];
  for (const header of headers) {
    expect(await codeOf(signed(header, goodClaims)), JSON.stringify(header)).toBe(
      "INVALID_CREDENTIALS",
    );
  }
});

test("Auth.authenticate refuses tokens that are unsigned or signed by anyone else", async () => {
  const rsa = generateKeyPairSync("rsa", { modulusLength: 2048 });
  const ec = generateKeyPairSync("ec", { namedCurve: "P-256" });
  const publicPem = rsa.publicKey.export({ type: "spki", format: "pem" });
  const input = `${goodHeader}.${goodPayload}`;
  const es256 = `${encode({ alg: "ES256", typ: "JWT" })}.${goodPayload}`;
  const rs256 = `${encode({ alg: "RS256", typ: "JWT" })}.${goodPayload}`;
  const tokens = [
    new UnsecuredJWT(goodClaims).encode(),
    `${encode({ alg: "none" })}.${goodPayload}.`,
    `${encode({ alg: "none" })}.${goodPayload}.${goodSignature}`,
    signed(HEADER, goodClaims, publicPem),
    signed(HEADER, goodClaims, "secret"),
    signed(HEADER, goodClaims, ""),
    `${rs256}.${sign("sha256", Buffer.from(rs256), rsa.privateKey).toString("base64url")}`,
    `${es256}.${sign("sha256", Buffer.from(es256), ec.privateKey).toString("base64url")}`,
    `${es256}.${Buffer.alloc(64).toString("base64url")}`,
    `${input}.${Buffer.alloc(32).toString("base64url")}`,
    `${input}.${createHmac("sha512", SECRET).update(input).digest("base64url")}`,
    await new CompactSign(new TextEncoder().encode(JSON.stringify(goodClaims)))
      .setProtectedHeader({ alg: "HS512" })
      .sign(new Uint8Array(64)),
  ];
  for (const token of tokens) expect(await codeOf(token), token).toBe("INVALID_CREDENTIALS");
});

test("Auth.authenticate refuses a token that is spelled differently", async () => {
  const good = session.access_token;
  const input = `${goodHeader}.${goodPayload}`;
  const lastBits = goodSignature.slice(0, -1) + nextLetter(goodSignature.at(-1) ?? "A");
  const tokens = [
    "",
    ".",
    "..",
    "a.b.c",
    input,
    `${input}.`,
    `${good}.`,
    `.${good}`,
    `${good}.${goodSignature}`,
    `${good}.a.b`,
    `${good}=`,
    `${good} `,
    ` ${good}`,
    `${good}\n`,
    good.slice(0, -1),
    `${good}A`,
    `${input}.${lastBits}`,
    `${input}.${goodSignature.replace(/^./, "+")}`,
    good.toUpperCase(),
    good.replaceAll(".", "%2e"),
    "a".repeat(1_000_000),
    `${goodHeader}.${"A".repeat(1_000_000)}.${goodSignature}`,
    signed(HEADER, `${JSON.stringify(goodClaims).slice(0, -1)},"role":"system"}`),
    signed(HEADER, `${JSON.stringify(goodClaims).slice(0, -1)},"sub":"root"}`),
    signed(HEADER, "[]"),
    signed(HEADER, "null"),
    signed(HEADER, "{"),
    signed(HEADER, Buffer.from([0xff, 0xfe]).toString("latin1")),
  ];
  for (const token of tokens) {
    expect(await codeOf(token), token.slice(0, 100)).toBe("INVALID_CREDENTIALS");
  }
});

test("Auth.authenticate refuses each missing or wrong claim, even with the right signature", async () => {
  for (const name of Object.keys(goodClaims)) {
    expect(await codeOf(without(name)), `without ${name}`).toBe("INVALID_CREDENTIALS");
  }
  const nowSeconds = clock.nowMs() / 1000;
  const changes: readonly Record<string, unknown>[] = [
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
    { token_type: "Access" },
    { token_type: null },
    { sub: "bob", role: "dba" },
    { sub: "root" },
  ];
  for (const change of changes) {
    expect(await codeOf(withClaims(change)), JSON.stringify(change)).toBe("INVALID_CREDENTIALS");
  }
});

test("Auth.authenticate allows a leeway of 60 seconds, and distinguishes an expired token from a bad one", async () => {
  const now = clock.nowMs() / 1000;

  expect(await codeOf(withClaims({ iat: now + 60, nbf: now + 60 }))).toBeUndefined();
  expect(await codeOf(withClaims({ exp: now - 59 }))).toBeUndefined();
  expect(await codeOf(withClaims({ exp: now - 60 }))).toBe("TOKEN_EXPIRED");
  expect(await codeOf(withClaims({ exp: 0 }))).toBe("TOKEN_EXPIRED");
  expect(await codeOf(withClaims({ exp: 0, token_type: "refresh" }))).toBe("INVALID_CREDENTIALS");
  expect(await codeOf(withClaims({ exp: 0, sub: "nobody" }))).toBe("INVALID_CREDENTIALS");
});

test("Auth.authenticate checks the time of a token at each use, even if the token is cached", async () => {
  const server = configuredServer();
  const { access_token } = await server.auth.login({ user: "ada", password: PASSWORD }, LOCAL);
  for (let use = 0; use < 3; use += 1) server.auth.authenticate(access_token, LOCAL);
  server.clock.advance(3_659_000);
  expect(await codeOf(access_token, server.auth)).toBeUndefined();
  server.clock.advance(1000);

  expect(await codeOf(access_token, server.auth)).toBe("TOKEN_EXPIRED");
});

test("Auth.authenticateHeader checks time and session at each use, even if the header is cached", async () => {
  const { auth: own, clock: time } = configuredServer();
  const logIn = async (): Promise<string> => {
    const { access_token } = await own.login({ user: "ada", password: PASSWORD }, LOCAL);
    return `Bearer ${access_token}`;
  };
  const code = (header: string): Promise<string | undefined> =>
    failureOf(() => own.authenticateHeader(header, LOCAL));
  const [first, second] = [await logIn(), await logIn()];
  for (const header of [first, first, second, second]) expect(await code(header)).toBeUndefined();

  own.logout(first.slice("Bearer ".length), LOCAL);
  expect([await code(first), await code(second)]).toEqual(["INVALID_CREDENTIALS", undefined]);
  time.advance(3_660_000);
  expect(await code(second)).toBe("TOKEN_EXPIRED");
});

test("Auth.authenticate refuses tokens signed with another secret", async () => {
  const other = configuredServer({ ada: "dba" }, { jwtSecret: new Uint8Array(32).fill(7) });

  expect(await codeOf(session.access_token, other.auth)).toBe("INVALID_CREDENTIALS");
});

test("Tokens.verify refuses a token that differs in a single character", () => {
  const tokens = new Tokens({ secret: SECRET, clock });
  const good = session.access_token;
  expect(tokens.verify(good)).toBeDefined();

  for (let index = 0; index < good.length; index += 1) {
    const changed = good.slice(0, index) + nextLetter(good[index] ?? "") + good.slice(index + 1);
    expect(tokens.verify(changed), `character ${index}`).toBeUndefined();
  }
});

test("Tokens.verify refuses randomly mutated tokens", () => {
  const tokens = new Tokens({ secret: SECRET, clock });
  const random = new SeededRandom(seedOf(7));
  const good = session.access_token;

  for (let round = 0; round < 20_000; round += 1) {
    const at = random.below(good.length);
    const length = random.below(4);
    const bytes = Buffer.from(random.bytes(random.below(4))).toString("base64url");
    const mutated = good.slice(0, at) + bytes + good.slice(at + length);
    if (mutated === good) continue;
    expect(tokens.verify(mutated), `seed ${random.seed}, round ${round}`).toBeUndefined();
  }
});

test("Tokens.verify returns the same claims from its cache, which drops the oldest entries", async () => {
  const tokens = new Tokens({ secret: SECRET, clock });
  const first = tokens.verify(session.access_token);

  expect(tokens.verify(session.access_token)).toBe(first);
  for (let index = 0; index < 17_000; index += 1) {
    tokens.verify(withClaims({ jti: `t${index}` }));
  }
  const again = tokens.verify(session.access_token);
  expect(again).toEqual(first);
  expect(again).not.toBe(first);
});

test("Tokens.verifyHeader returns the same claims for the same header, and drops entries from a full cache", () => {
  const tokens = new Tokens({ secret: SECRET, clock });
  const header = `Bearer ${session.access_token}`;
  const first = tokens.verifyHeader(header);
  expect(first).toEqual(tokens.verify(session.access_token));

  expect(tokens.verifyHeader(header)).toBe(first);
  for (let index = 0; index < 17_000; index += 1) {
    tokens.verifyHeader(`Bearer ${withClaims({ jti: `t${index}` })}`);
  }
  const again = tokens.verifyHeader(header);
  expect(again).toEqual(first);
  expect(again).not.toBe(first);
});

/** Returns a different letter of the base64url alphabet; a dot becomes a letter. */
function nextLetter(letter: string): string {
  return letter === "A" ? "B" : "A";
}
