/**
 * Verifies that the end of a session at a provider ends the sessions that began with it, and that
 * nobody else can end them. The tests use the real process, certified providers in separate
 * processes, and an issuer that signs any token a test requests.
 */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import type { JWK } from "jose";
import { SocketClient } from "../support/client.ts";
import {
  Browser,
  freePort,
  RealProvider,
  SigningIssuer,
  signingKey,
} from "../support/oidc_provider.ts";
import { type Login, type ServerProcess, startReadyServer } from "../support/server_process.ts";

const PORT = freePort();
const ADDRESS = `http://127.0.0.1:${PORT}`;
const API = "/v1/api/auth/oidc";
const APP = "https://app.example.com";
const SECRET = "the secret of the client";

/** The providers, keyed by the name of their configuration section. */
let providers: Readonly<Record<"all" | "one", RealProvider>>;
let issuer: SigningIssuer;
let otherKey: JWK;
let server: ServerProcess;

type Section = keyof typeof providers;

/**
 * Returns the registration of a client at the provider. The client gets logout tokens that name
 * either a single session or a person, which means all of that person's sessions.
 */
function clientOf(name: string, namesSession: boolean): object {
  return {
    client_id: name,
    client_secret: SECRET,
    redirect_uris: [`${ADDRESS}${API}/${name}/callback`],
    grant_types: ["authorization_code"],
    response_types: ["code"],
    backchannel_logout_uri: `${ADDRESS}${API}/${name}/backchannel_logout`,
    backchannel_logout_session_required: namesSession,
  };
}

beforeAll(async () => {
  const shared = { keys: [await signingKey("first")], accounts: { ann: {}, bob: {} } };
  providers = {
    one: await RealProvider.start({ ...shared, clients: [clientOf("one", true)] }),
    all: await RealProvider.start({ ...shared, clients: [clientOf("all", false)] }),
  };
  issuer = await SigningIssuer.start();
  otherKey = { ...(await signingKey("first", "ES256")) };
  server = await startReadyServer({
    config: {
      server: { port: PORT },
      oidc: { auto_provision: true },
      security: {},
      "security.cors": { allowed_origins: [APP] },
      ...Object.fromEntries(
        Object.entries(providers).map(([name, { url }]) => [
          `oidc.providers.${name}`,
          { issuer: url, client_id: name, client_secret: SECRET },
        ]),
      ),
      "oidc.providers.signing": { issuer: issuer.url, client_id: "db", audience: "db" },
      "oidc.providers.bearer-only": { issuer: "https://issuer.example.com", audience: "db" },
    },
  });
});

afterAll(async () => {
  await server.stop();
  for (const each of Object.values(providers)) await each[Symbol.asyncDispose]();
  issuer[Symbol.dispose]();
});

async function refresh(browser: Browser): Promise<Response> {
  const url = new URL(`${server.url}/v1/api/auth/refresh`);
  return await fetch(url, { method: "POST", headers: { Cookie: browser.cookiesFor(url) } });
}

/** Logs in to the admin page with an account of a provider. Returns the access token. */
async function loggedIn(section: Section, account: string, browser: Browser): Promise<string> {
  await providers[section].next({ account });
  const { url } = await browser.go(`${server.url}${API}/${section}/login`);
  expect(url.pathname).toBe("/ui");
  return ((await (await refresh(browser)).json()) as Login).access_token;
}

/** Ends a browser's session at the provider. */
async function logOutAtProvider(section: Section, browser: Browser): Promise<void> {
  const { url } = providers[section];
  const { response } = await browser.go(`${url}/session/end`);
  const xsrf = /name="xsrf" value="([^"]+)"/.exec(await response.text())?.[1] ?? "";
  const ended = await browser.send(`${url}/session/end/confirm`, { xsrf, logout: "yes" });
  expect(ended.status).toBe(303);
}

async function statusOf(token: string): Promise<number> {
  return (await server.sql("SELECT 1", { token })).status;
}

describe("a logout at the provider ends sessions of this server", () => {
  test("a logout token ends the session that began with it, with its sockets, and no other", async () => {
    const [here, there] = [new Browser(), new Browser()];
    const first = await loggedIn("one", "ann", here);
    const second = await loggedIn("one", "ann", there);
    const socket = await SocketClient.connect(server.url, { token: first });
    await socket.expect("auth_success");
    await logOutAtProvider("one", here);
    expect(await statusOf(first)).toBe(401);
    expect((await refresh(here)).status).toBe(401);
    expect((await socket.closed()).code).toBe(1008);
    expect(await statusOf(second)).toBe(200);
    expect((await refresh(there)).status).toBe(200);
    const audit =
      "SELECT target, outcome FROM system.audit_log WHERE action = 'logout' AND actor_user_id = 'one'";
    expect(await server.rows(audit)).toEqual([["oidc:one:ann", "ok"]]);
    const again = await loggedIn("one", "ann", here);
    expect(await statusOf(again)).toBe(200);
  });

  test("a logout token that names no session ends all sessions of the person, even after a kill", async () => {
    const [here, there, elsewhere] = [new Browser(), new Browser(), new Browser()];
    const tokens = [await loggedIn("all", "bob", here), await loggedIn("all", "bob", there)];
    const other = await loggedIn("all", "ann", elsewhere);
    await logOutAtProvider("all", here);
    await server.restart("SIGKILL");
    for (const token of tokens) expect(await statusOf(token)).toBe(401);
    expect((await refresh(there)).status).toBe(401);
    expect(await statusOf(other)).toBe(200);
    expect(await statusOf(await loggedIn("all", "bob", there))).toBe(200);
  });

  test("a logout token ends the unused code of an application", async () => {
    const verifier = "v".repeat(64);
    const challenge = new Bun.CryptoHasher("sha256").update(verifier).digest("base64url");
    const query = new URLSearchParams({ return_to: `${APP}/`, challenge });
    const codeIn = async (browser: Browser): Promise<string> => {
      await providers.one.next({ account: "ann" });
      const path = `${API}/one/login?${query.toString()}`;
      const { url } = await browser.go(server.url + path, /app\.example\.com/);
      return url.hash.slice("#tidemark_code=".length);
    };
    const exchanged = async (code: string): Promise<Response> =>
      await server.post(`${API}/token`, { code, verifier });
    const [here, there] = [new Browser(), new Browser()];
    const [ended, standing] = [await codeIn(here), await codeIn(there)];
    await logOutAtProvider("one", here);
    const refused = await exchanged(ended);
    expect([refused.status, await refused.json()]).toEqual([
      403,
      expect.objectContaining({ error: "invalid_code" }),
    ]);
    expect((await exchanged(standing)).status).toBe(200);
    expect((await exchanged(await codeIn(here))).status).toBe(200);
  });

  test("a withdrawn consent leaves sessions open, but the next login fails", async () => {
    const browser = new Browser();
    const token = await loggedIn("one", "bob", browser);
    await providers.one.next({ deny: true });
    const { url } = await new Browser().go(`${server.url}${API}/one/login`);
    expect(url.searchParams.get("error")).toBe("denied");
    expect(await statusOf(token)).toBe(200);
    await logOutAtProvider("one", browser);
    expect(await statusOf(token)).toBe(401);
  });
});

const EVENTS = { "http://schemas.openid.net/event/backchannel-logout": {} };

let count = 0;

/**
 * Returns the claims of a logout token, with the given changes. A change to undefined removes a
 * claim.
 */
function logoutClaims(change: Readonly<Record<string, unknown>> = {}): Record<string, unknown> {
  count += 1;
  return { jti: `t${count}`, sub: "carl", events: EVENTS, ...change };
}

async function send(token: string, section = "signing"): Promise<Response> {
  return await fetch(`${server.url}${API}/${section}/backchannel_logout`, {
    method: "POST",
    body: new URLSearchParams({ logout_token: token }),
  });
}

test("a logout token ends the bearer tokens of its person that were issued before", async () => {
  const header = { typ: "logout+jwt" };
  const before = await issuer.token({ sub: "carl", sid: "s1" });
  const other = await issuer.token({ sub: "carl", sid: "s2" });
  const stranger = await issuer.token({ sub: "dora" });
  for (const token of [before, other, stranger]) expect(await statusOf(token)).toBe(200);
  const ended = await send(await issuer.token(logoutClaims({ sid: "s1" }), { header }));
  expect(ended.status).toBe(200);
  expect(ended.headers.get("cache-control")).toBe("no-store");
  expect([await statusOf(before), await statusOf(other)]).toEqual([401, 200]);
  expect((await send(await issuer.token(logoutClaims(), { header }))).status).toBe(200);
  expect(await statusOf(other)).toBe(401);
  expect(await statusOf(stranger)).toBe(200);
  const iat = Math.floor(Date.now() / 1000) + 5;
  expect(await statusOf(await issuer.token({ sub: "carl", iat }))).toBe(200);
});

describe("a token that is refused ends nothing", () => {
  const seconds = Math.floor(Date.now() / 1000);
  test.each([
    ["for another client", { aud: "another" }],
    ["of another issuer", { iss: "https://issuer.example.com" }],
    ["with a nonce, as an ID token has", { nonce: "n" }],
    ["without the event", { events: undefined }],
    ["with another event", { events: { "http://example.com/event": {} } }],
    ["with an event that is not an object", { events: { [Object.keys(EVENTS)[0] ?? ""]: true } }],
    ["of nobody", { sub: undefined }],
    ["for a session whose id is too long", { sid: "x".repeat(256) }],
    ["for a session whose id is empty", { sid: "" }],
    ["for a session whose id is not a string", { sid: 7 }],
    ["without an id", { jti: undefined }],
    ["that has expired", { exp: seconds - 3600 }],
    ["that never expires", { exp: undefined }],
    ["from the future", { iat: seconds + 3600, exp: seconds + 7200 }],
  ])("%s", async (_what, change) => {
    const standing = await issuer.token({ sub: "erik" });
    expect(await statusOf(standing)).toBe(200);
    const answer = await send(await issuer.token(logoutClaims({ sub: "erik", ...change })));
    expect(answer.status).toBe(400);
    expect(await answer.text()).toContain("The logout token is not valid");
    expect(await statusOf(standing)).toBe(200);
  });

  test("a logout token with a signature by another key, of another type, or of no form is refused", async () => {
    const standing = await issuer.token({ sub: "erik" });
    const claims = (): Record<string, unknown> => logoutClaims({ sub: "erik" });
    const forged = await issuer.token(claims(), { key: otherKey });
    const access = await issuer.token(claims(), { header: { typ: "at+jwt" } });
    const [, payload = ""] = (await issuer.token(claims())).split(".");
    const none = Buffer.from('{"alg":"none","kid":"first"}').toString("base64url");
    for (const token of [forged, access, `${none}.${payload}.`, "", "a.b.c", standing]) {
      expect((await send(token)).status, token).toBe(400);
    }
    expect(await statusOf(standing)).toBe(200);
  });

  test("a logout token that was used before is refused", async () => {
    const token = await issuer.token(logoutClaims({ sub: "fritz" }));
    expect((await send(token)).status).toBe(200);
    expect((await send(token)).status).toBe(400);
  });

  test("a logout token for another provider, or for none, is refused", async () => {
    const token = await issuer.token(logoutClaims());
    expect((await send(token, "one")).status).toBe(400);
    expect((await send(token, "bearer-only")).status).toBe(404);
    expect((await send(token, "nobody")).status).toBe(404);
  });

  test("a logout token in a body of another form is refused", async () => {
    const url = `${server.url}${API}/signing/backchannel_logout`;
    const logout_token = await issuer.token(logoutClaims());
    const asJson = await fetch(url, {
      method: "POST",
      headers: { "Content-Type": "application/json" },
      body: JSON.stringify({ logout_token }),
    });
    expect(asJson.status).toBe(415);
    expect(await asJson.text()).toContain("application/x-www-form-urlencoded");
    expect((await server.get(`${API}/signing/backchannel_logout`)).status).toBe(405);
  });
});

test("a provider whose keys cannot be fetched is asked to try again", async () => {
  const dead = await SigningIssuer.start();
  dead[Symbol.dispose]();
  const own = await startReadyServer({
    config: { oidc: {}, "oidc.providers.dead": { issuer: dead.url, client_id: "db" } },
  });
  try {
    const answer = await fetch(`${own.url}${API}/dead/backchannel_logout`, {
      method: "POST",
      body: new URLSearchParams({ logout_token: await dead.token(logoutClaims()) }),
    });
    expect(answer.status).toBe(503);
  } finally {
    await own.stop();
  }
});
