/**
 * Tests that an issuer's keys are fetched when needed, but not too often. An issuer that is slow,
 * unreachable or hostile causes little delay and cost, and keys that are already known remain
 * valid. The tests use an Auth with a manual clock, and an issuer with responses defined by each
 * test.
 */
import { afterEach, expect, test } from "bun:test";
import { type Auth, type OidcSettings } from "../../src/auth/mod.ts";
import { NO_PROVIDERS } from "../support/http.ts";
import type { ManualClock } from "../support/manual_clock.ts";
import { publicPart, SigningIssuer, signingKey } from "../support/oidc_provider.ts";
import { until } from "../support/until.ts";
import { configuredServer, failureOf, LOCAL } from "./auth_fixture.ts";

const FRESH_MS = 3_600_000;

let stack = new AsyncDisposableStack();

afterEach(async () => {
  await stack.disposeAsync();
  stack = new AsyncDisposableStack();
});

interface Fixture {
  readonly auth: Auth;
  readonly clock: ManualClock;
  readonly issuer: SigningIssuer;
}

async function trusting(change: Partial<OidcSettings> = {}): Promise<Fixture> {
  const issuer = stack.use(await SigningIssuer.start());
  const oidc = {
    ...NO_PROVIDERS,
    trustedIssuers: [issuer.url],
    autoProvisions: true,
    keysFreshSeconds: FRESH_MS / 1000,
    ...change,
  };
  const { auth, clock } = configuredServer({}, { oidc });
  // The issuer dates tokens by the machine's clock, so the manual clock must show the same time.
  clock.setWall(Date.now());
  return { auth, clock, issuer };
}

/** Returns "ok" if the token is accepted, or the error code with which it is refused. */
async function outcome(auth: Auth, token: string): Promise<string> {
  const failure = await failureOf(async () => {
    await auth.checkExternal(`Bearer ${token}`);
    auth.authenticate(token, LOCAL);
  });
  return failure ?? "ok";
}

/**
 * Advances the clock, and sets its wall time to the machine's time, by which tokens are issued.
 */
function later(clock: ManualClock, ms: number): void {
  clock.advance(ms);
  clock.setWall(Date.now());
}

test("many simultaneous tokens cause a single fetch of the discovery document and the keys", async () => {
  const { auth, issuer } = await trusting();
  const tokens = await Promise.all(Array.from({ length: 30 }, (_, n) => issuer.token({ n })));
  const outcomes = await Promise.all(tokens.map((token) => outcome(auth, token)));
  expect(new Set(outcomes)).toEqual(new Set(["ok"]));
  expect(issuer.requested).toEqual(["/.well-known/openid-configuration", "/jwks"]);
  expect(auth.checkExternal(`Bearer ${tokens[0]}`)).toBeUndefined();
});

test("a new key is found at once, although unknown keys cause a fetch at most every 30 seconds", async () => {
  const { auth, clock, issuer } = await trusting();
  expect(await outcome(auth, await issuer.token())).toBe("ok");
  const second = await signingKey("second", "ES256");
  issuer.keySet = { keys: [publicPart(issuer.key), publicPart(second)] };
  expect(await outcome(auth, await issuer.token({ n: 1 }, { key: second }))).toBe("ok");
  const before = issuer.requested.length;
  for (let n = 0; n < 20; n += 1) {
    const token = await issuer.token({ n }, { key: await signingKey(`unknown${n}`, "ES256") });
    expect(await outcome(auth, token)).toBe("INVALID_CREDENTIALS");
  }
  expect(issuer.requested.length).toBe(before);
  later(clock, 30_000);
  const third = await signingKey("third", "ES256");
  issuer.keySet = { keys: [publicPart(third)] };
  expect(await outcome(auth, await issuer.token({ n: 2 }, { key: third }))).toBe("ok");
  expect(issuer.requested.length).toBe(before + 1);
});

test("a token becomes invalid with its key, even if it was accepted before", async () => {
  const { auth, clock, issuer } = await trusting();
  const token = await issuer.token();
  expect(await outcome(auth, token)).toBe("ok");
  issuer.keySet = { keys: [publicPart(await signingKey("second", "ES256"))] };
  expect(await outcome(auth, token)).toBe("ok");
  later(clock, FRESH_MS);
  expect(await outcome(auth, await issuer.token({ n: 1 }))).toBe("INVALID_CREDENTIALS");
  expect(await outcome(auth, token)).toBe("INVALID_CREDENTIALS");
});

test("a key with the same id but other numbers does not verify old tokens", async () => {
  const { auth, clock, issuer } = await trusting();
  const token = await issuer.token();
  expect(await outcome(auth, token)).toBe("ok");
  issuer.keySet = { keys: [publicPart(await signingKey("first", "ES256"))] };
  later(clock, FRESH_MS);
  expect(await outcome(auth, token)).toBe("INVALID_CREDENTIALS");
});

test.each<[string, () => Response]>([
  [
    "10 MB of keys",
    () =>
      Response.json({
        keys: Array.from({ length: 40_000 }, (_, n) => ({
          kty: "RSA",
          kid: `k${n}`,
          n: "x".repeat(230),
        })),
      }),
  ],
  [
    "endless bytes",
    () =>
      new Response(
        new ReadableStream({ pull: (to) => to.enqueue(new Uint8Array(65_536).fill(32)) }),
      ),
  ],
  ["no JSON", () => new Response("<html>")],
  ["no keys", () => Response.json({})],
  ["keys that are text", () => Response.json({ keys: "x" })],
  ["keys that are not objects", () => Response.json({ keys: [1] })],
  ["a failure", () => new Response("", { status: 500 })],
  ["a redirect", () => Response.redirect("http://127.0.0.1:1/jwks")],
])("an issuer that answers %s makes tokens wait, and the old keys serve", async (_what, answer) => {
  const { auth, clock, issuer } = await trusting();
  issuer.answer = (path) => (path === "/jwks" ? answer() : undefined);
  const token = await issuer.token();
  expect(await outcome(auth, token)).toBe("AUTHENTICATION_ERROR");
  // After a failed fetch, no other fetch begins for ten seconds.
  const { length } = issuer.requested;
  expect(await outcome(auth, token)).toBe("AUTHENTICATION_ERROR");
  expect(issuer.requested.length).toBe(length);
  issuer.answer = undefined;
  later(clock, 10_000);
  expect(await outcome(auth, token)).toBe("ok");
  issuer.answer = (path) => (path === "/jwks" ? answer() : undefined);
  later(clock, FRESH_MS);
  expect(await outcome(auth, await issuer.token({ n: 1 }))).toBe("ok");
  expect(await outcome(auth, token)).toBe("ok");
  later(clock, FRESH_MS);
  expect(await outcome(auth, await issuer.token({ n: 2 }))).toBe("AUTHENTICATION_ERROR");
});

test("an issuer that never answers delays its own tokens by five seconds, and other tokens not at all", async () => {
  const { auth, clock, issuer } = await trusting();
  issuer.answer = () => new Promise<Response>(() => undefined);
  const token = await issuer.token();
  const waiting = outcome(auth, token);
  await until(() => issuer.requested.length === 1);
  clock.advance(5000);
  expect(await waiting).toBe("AUTHENTICATION_ERROR");
  expect(await outcome(auth, await issuer.token({ n: 1 }))).toBe("AUTHENTICATION_ERROR");
  expect(issuer.requested.length).toBe(1);
});

test("a fetch is abandoned if the body arrives too slowly", async () => {
  const { auth, clock, issuer } = await trusting();
  issuer.answer = () =>
    new Response(new ReadableStream({ start: (to) => to.enqueue(new TextEncoder().encode("{")) }));
  const waiting = outcome(auth, await issuer.token());
  await until(() => issuer.requested.length === 1);
  clock.advance(5000);
  expect(await waiting).toBe("AUTHENTICATION_ERROR");
});

test("an unreachable issuer does not affect the tokens of this server", async () => {
  const { auth, issuer } = await trusting();
  const token = await issuer.token();
  issuer[Symbol.dispose]();
  expect(await outcome(auth, token)).toBe("AUTHENTICATION_ERROR");
  const login = await auth.login({ user: "root", password: "correct horse 9" }, LOCAL);
  expect(auth.checkExternal(`Bearer ${login.access_token}`)).toBeUndefined();
  expect(auth.authenticate(login.access_token, LOCAL).userId).toBe("root");
});

test.each<[string, Record<string, unknown>]>([
  ["names another issuer", { issuer: "https://other.example.com" }],
  ["names the issuer with a slash more", { issuer: "SELF/" }],
  ["has no keys", { jwks_uri: undefined }],
  ["has keys without TLS on another machine", { jwks_uri: "http://192.0.2.1/jwks" }],
  ["has keys in a file", { jwks_uri: "file:///etc/passwd" }],
  ["has keys that are no URL", { jwks_uri: 5 }],
])("a discovery document is refused that %s", async (_what, change) => {
  const { auth, issuer } = await trusting();
  const self = (value: unknown): unknown => (value === "SELF/" ? `${issuer.url}/` : value);
  issuer.discovery = Object.fromEntries(Object.entries(change).map(([k, v]) => [k, self(v)]));
  expect(await outcome(auth, await issuer.token())).toBe("AUTHENTICATION_ERROR");
  expect(issuer.requested).toEqual(["/.well-known/openid-configuration"]);
});

test("an issuer that is not trusted is never contacted", async () => {
  const { auth } = await trusting();
  using stranger = await SigningIssuer.start();
  expect(await outcome(auth, await stranger.token())).toBe("INVALID_CREDENTIALS");
  expect(stranger.requested).toEqual([]);
});

test("accounts that are created for unknown users count towards the limit for sign-ups", async () => {
  const { auth, issuer } = await trusting();
  const outcomes: string[] = [];
  const remote = { address: "203.0.113.9", isLocal: false };
  for (let n = 0; n < 101; n += 1) {
    const token = await issuer.token({ sub: `user${n}` });
    await auth.checkExternal(`Bearer ${token}`);
    outcomes.push((await failureOf(() => auth.authenticate(token, remote))) ?? "ok");
  }
  expect(outcomes.slice(0, 100)).toEqual(Array.from({ length: 100 }, () => "ok"));
  expect(outcomes[100]).toBe("RATE_LIMIT_EXCEEDED");
});

const DAY_MS = 86_400_000;

/**
 * Returns two tokens for different people. According to their issuer, they are valid for a year.
 */
async function yearTokens({ issuer }: Fixture): Promise<readonly [string, string]> {
  const exp = Math.floor(Date.now() / 1000) + 365 * 86_400;
  return await Promise.all([issuer.token({ sub: "ann", exp }), issuer.token({ sub: "bo", exp })]);
}

function sectionOf({ url }: SigningIssuer): OidcSettings["providers"][number] {
  return {
    name: "idp",
    issuer: url,
    clientId: "db",
    clientSecret: "secret",
    audience: "db",
    userClaim: "sub",
    label: "idp",
    scopes: ["openid"],
    claims: [],
  };
}

test("the logout of a person ends a token of the provider for as long as such a token is accepted", async () => {
  const issuer = stack.use(await SigningIssuer.start());
  const fixture = { ...(await trusting({ providers: [sectionOf(issuer)] })), issuer };
  const { auth, clock } = fixture;
  const [ended, other] = await yearTokens(fixture);
  expect([await outcome(auth, ended), await outcome(auth, other)]).toEqual(["ok", "ok"]);
  const logOut = async (sub: string): Promise<void> => {
    const iat = Math.floor(clock.nowMs() / 1000);
    const events = { "http://schemas.openid.net/event/backchannel-logout": {} };
    const claims = { sub, iat, exp: iat + 60, jti: `${sub} ${iat}`, events };
    const token = await issuer.token(claims, { header: { typ: "logout+jwt" } });
    expect(await auth.providerLogouts.end("idp", token, LOCAL)).toBe(true);
  };
  await logOut("ann");
  clock.setWall(clock.nowMs() + 29 * DAY_MS);
  // Each new revocation also removes earlier revocations that have expired.
  await logOut("cy");
  expect([await outcome(auth, ended), await outcome(auth, other)]).toEqual([
    "INVALID_CREDENTIALS",
    "ok",
  ]);
});

test("a token of a provider is accepted for 30 days, even if it is meant for longer", async () => {
  const fixture = await trusting();
  const { auth, clock } = fixture;
  const [token] = await yearTokens(fixture);
  clock.setWall(clock.nowMs() + 30 * DAY_MS);
  expect(await outcome(auth, token)).toBe("ok");
  clock.setWall(clock.nowMs() + 61_000);
  expect(await outcome(auth, token)).toBe("TOKEN_EXPIRED");
});
