/**
 * Verifies that only an unchanged token signed by this server is accepted, within its lifetime,
 * and only while its user has not changed. The tests try a list of attacks on the real parser.
 */
import { afterAll, expect, test } from "bun:test";
import { SignJWT } from "jose";
import type { Auth } from "../../src/auth/mod.ts";
import { Tokens } from "../../src/auth/token.ts";
import { removeCatalogs } from "../catalog/catalog_fixture.ts";
import { claimsOf, forgedTokens, otherLetter, signedPart } from "../support/forged_tokens.ts";
import { testThoroughly } from "../support/requirements.ts";
import { SeededRandom, seedOf } from "../support/seeded_random.ts";
import { amountOf } from "../support/thoroughness.ts";
import { configuredServer, failureOf, LOCAL, PASSWORD, SECRET } from "./auth_fixture.ts";

afterAll(removeCatalogs);

const { auth, catalog, clock } = configuredServer({ ada: "dba", bob: "user", eve: "user" });
const session = await auth.login({ user: "ada", password: PASSWORD }, LOCAL);
const goodClaims = claimsOf(session.access_token);

const HEADER = { alg: "HS256", typ: "JWT" };

function withClaims(change: Record<string, unknown>): string {
  return signedPart(HEADER, { ...goodClaims, ...change }, SECRET);
}

function codeOf(token: string, by: Auth = auth): Promise<string | undefined> {
  return failureOf(() => by.authenticate(token, LOCAL));
}

test("Auth.authenticate accepts tokens that the server signed, and the same claims signed by jose", async () => {
  expect(auth.authenticate(session.access_token, LOCAL)).toEqual({
    userId: "ada",
    role: "dba",
    owner: catalog.accounts.ownerNumber("ada"),
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
  const joses = await new SignJWT({ ...goodClaims })
    .setProtectedHeader({ alg: "HS256" })
    .sign(SECRET);
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

test("Auth.authenticate refuses every forged token, even with the right signature", async () => {
  const original = {
    token: session.access_token,
    secret: SECRET,
    nowSeconds: clock.nowMs() / 1000,
  };
  for (const { attack, token } of forgedTokens(original)) {
    expect(await codeOf(token), attack).toBe("INVALID_CREDENTIALS");
  }
  for (const token of ["", ` ${session.access_token}`, `${session.access_token}\n`]) {
    expect(await codeOf(token), JSON.stringify(token)).toBe("INVALID_CREDENTIALS");
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
    const changed = good.slice(0, index) + otherLetter(good[index] ?? "") + good.slice(index + 1);
    expect(tokens.verify(changed), `character ${index}`).toBeUndefined();
  }
});

test("Tokens.verify refuses randomly mutated tokens", () => {
  const tokens = new Tokens({ secret: SECRET, clock });
  const random = new SeededRandom(seedOf(7));
  const good = session.access_token;

  const rounds = amountOf({ usual: 5000, thorough: 200_000 });
  for (let round = 0; round < rounds; round += 1) {
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

testThoroughly(
  "Tokens.verifyHeader returns the same claims for the same header, and drops entries from a full cache",
  () => {
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
  },
);
