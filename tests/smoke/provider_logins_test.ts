/**
 * Verifies that users can log in through a provider in their browser, that each user gets only
 * their own account, and that nobody else can complete or steal the login. The tests use the real
 * server process, a certified OpenID provider in a separate process, and a browser that follows
 * redirects and keeps cookies.
 */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import type { JWK } from "jose";
import { type Client, createClient } from "../../src/client/mod.ts";
import {
  Browser,
  freePort,
  RealProvider,
  SigningIssuer,
  signingKey,
  type Visit,
} from "../support/oidc_provider.ts";
import { testThoroughly } from "../support/requirements.ts";
import { type Login, type ServerProcess, startReadyServer } from "../support/server_process.ts";

const SECRET = "the secret of the client: +/%&=";

const APP = "https://app.example.com";

const ACCOUNTS = {
  ann: { email: "ann@example.com", email_verified: true, groups: ["staff"], name: "Ann" },
  bob: { email: "bob@example.com", email_verified: false },
  mallory: { email: "victim@example.com", email_verified: false },
  victim: { email: "victim@example.com", email_verified: true },
  zoe: {},
  kim: {},
  lou: {},
  max: {},
  tom: {},
};

let key: JWK;
let provider: RealProvider;
/** A second identity provider, which is malicious. */
let evil: SigningIssuer;
let server: ServerProcess;

/**
 * The port of the server. The test chooses it, because the provider has to know the server's
 * address before the server starts.
 */
const PORT = freePort();

const ADDRESS = `http://127.0.0.1:${PORT}`;

function clientOf(name: string): object {
  return {
    client_id: "db",
    client_secret: SECRET,
    redirect_uris: [`${ADDRESS}/v1/api/auth/oidc/${name}/callback`],
    grant_types: ["authorization_code"],
    response_types: ["code"],
  };
}

beforeAll(async () => {
  key = await signingKey("first");
  provider = await RealProvider.start({
    clients: [clientOf("idp")],
    keys: [key],
    accounts: ACCOUNTS,
  });
  evil = await SigningIssuer.start();
  server = await startReadyServer({
    config: {
      server: { port: PORT },
      oidc: { auto_provision: true, linking: true },
      auth: { guests: true, own_password: true, own_deletion: true },
      security: {},
      "security.cors": { allowed_origins: [APP, "capacitor://localhost"] },
      "oidc.providers.idp": {
        issuer: provider.url,
        client_id: "db",
        client_secret: SECRET,
        label: "Example",
        scopes: ["openid", "email", "profile"],
        claims: ["groups"],
      },
      "oidc.providers.evil": { issuer: evil.url, client_id: "db" },
      "oidc.providers.bearer-only": { issuer: "https://issuer.example.com", audience: "db" },
    },
  });
});

afterAll(async () => {
  await server.stop();
  await provider[Symbol.asyncDispose]();
  evil[Symbol.dispose]();
});

const LOGIN = "/v1/api/auth/oidc/idp/login";

/** Logs an account in on the admin page. */
async function visit(account: string, browser = new Browser()): Promise<Visit> {
  await provider.next({ account });
  return await browser.go(server.url + LOGIN);
}

/** Follows the redirects to the provider and back, stopping before the callback. */
async function callbackOf(account: string, browser: Browser, path = LOGIN): Promise<URL> {
  await provider.next({ account });
  const { url } = await browser.go(server.url + path, /\/callback\?/);
  return url;
}

function errorOf({ url }: Visit): string {
  expect(url.pathname).toBe("/ui/login");
  return url.searchParams.get("error") ?? "";
}

async function refreshed(browser: Browser): Promise<Response> {
  const url = new URL(`${server.url}/v1/api/auth/refresh`);
  return await fetch(url, { method: "POST", headers: { Cookie: browser.cookiesFor(url) } });
}

test("the status lists the providers that offer browser logins", async () => {
  const status = await server.get("/v1/api/auth/status");
  expect(await status.json()).toMatchObject({
    oidc_providers: [
      { name: "idp", label: "Example", login_url: LOGIN },
      { name: "evil", label: "evil", login_url: "/v1/api/auth/oidc/evil/login" },
    ],
  });
});

test("a login in the browser creates an account and a session, whose tokens contain the listed claims", async () => {
  const browser = new Browser();
  const { steps, url } = await visit("ann", browser);
  expect(url.pathname).toBe("/ui");
  const authorize = new URL(steps[1] ?? "");
  expect(authorize.searchParams.get("code_challenge_method")).toBe("S256");
  expect(authorize.searchParams.get("scope")).toBe("openid email profile");
  expect(browser.cookie("127.0.0.1", "tidemark_oidc")).toBeUndefined();
  const login = (await (await refreshed(browser)).json()) as Login;
  expect(login).toMatchObject({
    user: { id: "oidc:idp:ann", role: "user", email: "ann@example.com" },
    admin_ui_access: false,
  });
  const claims =
    "SELECT CLAIM('groups'), CLAIM('email'), CLAIM('iss'), CLAIM('sub'), CLAIM('name')";
  const { access_token: token } = login;
  expect(await server.rows(claims, { token })).toEqual([
    ['["staff"]', "ann@example.com", "tidemark", "oidc:idp:ann", null],
  ]);
  await server.rows(
    `CREATE NAMESPACE media;
     CREATE TABLE media.pictures (id INT PRIMARY KEY, picture FILE) WITH (ACCESS_LEVEL = 'RESTRICTED');
     CREATE POLICY staff ON media.pictures FOR SELECT TO user USING (CLAIM('groups')::JSONB ? 'staff')`,
  );
  const form = new FormData();
  form.set("sql", "INSERT INTO media.pictures VALUES (1, FILE('p'))");
  form.set("file:p", new File(["of the staff"], "p.txt", { type: "text/plain" }));
  const headers = { Authorization: `Bearer ${server.token}` };
  await fetch(`${server.url}/v1/api/sql`, { method: "POST", headers, body: form });
  const [[file] = []] = await server.rows("SELECT FILE_URL(picture) FROM media.pictures", {
    token,
  });
  expect(await (await server.get(String(file))).text()).toBe("of the staff");
  const users = "SELECT role, auth_type, metadata FROM system.users WHERE user_id = 'oidc:idp:ann'";
  expect(await server.rows(users)).toEqual([["user", "oauth", '{"groups":["staff"]}']]);
});

test("the cookies of a login are HttpOnly, and only that of the started login is sent across sites", async () => {
  const begun = await server.get(LOGIN);
  expect(begun.status).toBe(302);
  const [cookie = ""] = begun.headers.getSetCookie();
  expect(cookie).toStartWith("tidemark_oidc=");
  expect(cookie).toContain("Path=/v1/api/auth/oidc/idp");
  expect(cookie).toMatch(/HttpOnly/i);
  expect(cookie).toMatch(/SameSite=Lax/i);
  expect(cookie).toMatch(/Max-Age=600/i);
  expect(begun.headers.get("cache-control")).toBe("no-store");
  expect(begun.headers.get("referrer-policy")).toBe("no-referrer");
});

test("a role gives access to the admin page only if an administrator gave it to the linked account", async () => {
  await server.rows(`CREATE USER boss OAUTH '{"provider":"idp","subject":"bob"}' ROLE dba`);
  const browser = new Browser();
  await visit("bob", browser);
  expect(await (await refreshed(browser)).json()).toMatchObject({
    user: { id: "boss", role: "dba" },
    admin_ui_access: true,
  });
});

test("an address that the provider has not verified does not become a claim, and links no account", async () => {
  await server.rows("CREATE USER owner INTERNAL EMAIL 'victim@example.com'");
  const browser = new Browser();
  await visit("mallory", browser);
  const login = (await (await refreshed(browser)).json()) as Login;
  expect(login.user).toMatchObject({ id: "oidc:idp:mallory", email: null });
  const claim = await server.rows("SELECT CLAIM('email')", { token: login.access_token });
  expect(claim).toEqual([[null]]);
});

describe("a login fails and opens no session", () => {
  test("a login fails if the user does not consent or no longer does, while existing sessions continue", async () => {
    const earlier = new Browser();
    await visit("ann", earlier);
    await provider.next({ deny: true });
    const browser = new Browser();
    expect(errorOf(await browser.go(server.url + LOGIN))).toBe("denied");
    expect((await refreshed(browser)).status).toBe(401);
    expect((await refreshed(earlier)).status).toBe(200);
  });

  test("a login fails if another browser sends the callback", async () => {
    const url = await callbackOf("ann", new Browser());
    const other = new Browser();
    expect(errorOf(await other.go(url.href))).toBe("state_mismatch");
    // The callback is refused even if the other browser has started a login of its own.
    await callbackOf("bob", other);
    expect(errorOf(await other.go(url.href))).toBe("state_mismatch");
    expect((await refreshed(other)).status).toBe(401);
  });

  test.each<[string, (url: URL) => void, string]>([
    ["without a state", (url) => url.searchParams.delete("state"), "state_mismatch"],
    ["with another state", (url) => url.searchParams.set("state", "x"), "state_mismatch"],
    ["without an issuer", (url) => url.searchParams.delete("iss"), "state_mismatch"],
    ["with another issuer", (url) => url.searchParams.set("iss", "https://x.y"), "state_mismatch"],
    ["without a code", (url) => url.searchParams.delete("code"), "exchange_failed"],
    ["with another code", (url) => url.searchParams.set("code", "x"), "exchange_failed"],
    ["with an unknown error", (url) => url.searchParams.set("error", "x"), "exchange_failed"],
  ])("if the callback comes %s", async (_what, change, failure) => {
    const browser = new Browser();
    const url = await callbackOf("ann", browser);
    change(url);
    expect(errorOf(await browser.go(url.href))).toBe(failure);
    expect((await refreshed(browser)).status).toBe(401);
  });

  test("a login fails if the code is used again", async () => {
    const browser = new Browser();
    const url = await callbackOf("ann", browser);
    const cookie = browser.cookiesFor(url);
    const again = (): Promise<Response> =>
      fetch(url, { headers: { Cookie: cookie }, redirect: "manual" });
    expect((await again()).headers.get("location")).toBe("/ui");
    const second = await again();
    expect(second.headers.get("location")).toBe("/ui/login?error=exchange_failed");
    expect(second.headers.getSetCookie().join()).not.toContain("tidemark_auth");
  });

  test("a login fails if its cookie was changed", async () => {
    const browser = new Browser();
    const url = await callbackOf("ann", browser);
    const [text = "", signature = ""] = (browser.cookie("127.0.0.1", "tidemark_oidc") ?? "").split(
      ".",
    );
    const login = JSON.parse(Buffer.from(text, "base64url").toString()) as object;
    const other = Buffer.from(JSON.stringify({ ...login, returnTo: "https://evil.example" }));
    for (const value of [
      `${other.toString("base64url")}.${signature}`,
      `${text}.`,
      text,
      "",
      ".",
    ]) {
      const headers = { Cookie: `tidemark_oidc=${value}` };
      const answer = await fetch(url, { headers, redirect: "manual" });
      expect(answer.headers.get("location"), value.slice(-20)).toBe(
        "/ui/login?error=state_mismatch",
      );
    }
  });

  test("a login fails if a hostile provider answers in place of the chosen one (mix-up)", async () => {
    // The browser starts a login at the provider "evil", which forwards it to the honest provider.
    const browser = new Browser();
    evil.discovery = {
      authorization_endpoint: `${evil.url}/auth`,
      token_endpoint: `${evil.url}/token`,
    };
    const stolen: string[] = [];
    let state = "";
    evil.answer = (path) => {
      if (path === "/auth") {
        const query = new URLSearchParams({
          response_type: "code",
          client_id: "db",
          scope: "openid",
          state,
          nonce: "n",
          redirect_uri: `${ADDRESS}/v1/api/auth/oidc/idp/callback`,
          code_challenge: "x".repeat(43),
          code_challenge_method: "S256",
        });
        return Response.redirect(`${provider.url}/auth?${query.toString()}`);
      }
      if (path !== "/token") return undefined;
      stolen.push(path);
      return Response.json({});
    };
    await provider.next({ account: "ann" });
    const begun = await browser.go(`${server.url}/v1/api/auth/oidc/evil/login`, /\/auth\?/);
    state = begun.url.searchParams.get("state") ?? "";
    const { url } = await browser.go(begun.url.href, /\/callback\?/);
    expect(url.pathname).toBe("/v1/api/auth/oidc/idp/callback");
    expect(errorOf(await browser.go(url.href))).toBe("state_mismatch");
    // Nor does the callback of the malicious provider get the honest provider's code.
    const own = new URL(`${server.url}/v1/api/auth/oidc/evil/callback${url.search}`);
    expect(errorOf(await browser.go(own.href))).toBe("state_mismatch");
    expect(stolen).toEqual([]);
    evil.answer = undefined;
  });

  test.each<[string, Record<string, unknown>]>([
    ["is for another client", { aud: "other" }],
    ["is also for others, without saying who asked", { aud: ["db", "other"] }],
    ["says that another client asked", { aud: ["db", "other"], azp: "other" }],
    ["belongs to another login", { nonce: "other" }],
    ["belongs to no login", { nonce: undefined }],
    ["is from another issuer", { iss: "https://evil.example.com" }],
    ["has expired", { exp: 1 }],
  ])("if the ID token %s", async (_what, change) => {
    const browser = new Browser();
    evil.discovery = {
      authorization_endpoint: `${evil.url}/auth`,
      token_endpoint: `${evil.url}/token`,
    };
    const begun = await browser.go(`${server.url}/v1/api/auth/oidc/evil/login`, /\/auth\?/);
    const { searchParams } = begun.url;
    const idToken = await evil.token({ nonce: searchParams.get("nonce"), ...change });
    evil.answer = (path) => (path === "/token" ? Response.json({ id_token: idToken }) : undefined);
    const callback = `${server.url}/v1/api/auth/oidc/evil/callback?code=c&state=${searchParams.get("state")}`;
    expect(errorOf(await browser.go(callback))).toBe("token_invalid");
    evil.answer = undefined;
  });

  testThoroughly(
    "a login fails while the provider is unreachable, but existing sessions continue",
    async () => {
      const browser = new Browser();
      await visit("ann", browser);
      const { access_token: token } = (await (await refreshed(browser)).json()) as Login;
      const key2 = await signingKey("second");
      const late = new Browser();
      const callback = await callbackOf("ann", late);
      await provider[Symbol.asyncDispose]();
      expect(errorOf(await late.go(callback.href))).toBe("exchange_failed");
      expect(await server.rows("SELECT CURRENT_USER", { token })).toEqual([["oidc:idp:ann"]]);
      expect((await refreshed(browser)).status).toBe(200);
      // The provider is restarted with different keys.
      const { port } = provider;
      provider = await RealProvider.start({
        clients: [clientOf("idp")],
        keys: [key2],
        accounts: ACCOUNTS,
        port,
      });
      expect((await visit("ann")).url.pathname).toBe("/ui");
    },
  );
});

describe("a login that begins on a page of an application", () => {
  const verifier = "v".repeat(64);
  const challenge = new Bun.CryptoHasher("sha256").update(verifier).digest("base64url");
  const query = new URLSearchParams({ return_to: `${APP}/done?x=1`, challenge });
  const path = `${LOGIN}?${query.toString()}`;

  async function codeFor(account: string): Promise<string> {
    await provider.next({ account });
    const { url } = await new Browser().go(server.url + path, /app\.example\.com/);
    expect(url.href).toStartWith(`${APP}/done?x=1#tidemark_code=`);
    return url.hash.slice("#tidemark_code=".length);
  }

  function exchanged(code: string, given = verifier): Promise<Response> {
    return server.post("/v1/api/auth/oidc/token", { code, verifier: given });
  }

  test("a page of an application gets a code, which its verifier turns into a session once", async () => {
    const code = await codeFor("ann");
    const first = await exchanged(code);
    expect(first.status).toBe(200);
    const { access_token: token } = (await first.json()) as Login;
    expect(await server.rows("SELECT CURRENT_USER", { token })).toEqual([["oidc:idp:ann"]]);
    const second = await exchanged(code);
    expect([second.status, await second.json()]).toEqual([
      403,
      expect.objectContaining({ error: "invalid_code" }),
    ]);
  });

  test("a page without the verifier cannot use a code, and the attempt invalidates the code", async () => {
    const code = await codeFor("ann");
    expect((await exchanged(code, "w".repeat(64))).status).toBe(403);
    expect((await exchanged(code)).status).toBe(403);
  });

  test("a page of an application learns of a failure in its URL fragment", async () => {
    await provider.next({ deny: true });
    const { url } = await new Browser().go(server.url + path, /app\.example\.com/);
    expect(url.hash).toBe("#tidemark_error=denied");
  });

  test.each([
    ["https://evil.example.com/", challenge, 403],
    ["https://app.example.com.evil.test/", challenge, 403],
    ["https://app.example.com@evil.test/", challenge, 400],
    ["https:\\\\evil.test", challenge, 400],
    ["//evil.test", challenge, 400],
    ["/", challenge, 400],
    ["/uix", challenge, 400],
    ["/ui\r\nSet-Cookie: a=b", challenge, 400],
    ["javascript:alert(1)", challenge, 400],
    [`${APP}/#x`, challenge, 400],
    [`${APP}/${"x".repeat(1024)}`, challenge, 400],
    [`${APP}/`, "", 400],
    [`${APP}/`, "short", 400],
    [`${APP}/`, `${challenge}=`, 400],
    ["capacitor://localhost/x", challenge, 302],
    [`${ADDRESS}/app`, challenge, 302],
    ["/ui?a=b", "", 302],
  ])("return_to %s", async (returnTo, given, status) => {
    const asked = new URLSearchParams({ return_to: returnTo, challenge: given });
    expect((await server.get(`${LOGIN}?${asked.toString()}`)).status).toBe(status);
  });

  test("a page links an account with a password to a provider, and the account can then log in both ways", async () => {
    const token = await server.createUser("lina");
    const link = async (
      fields: object,
      headers: Record<string, string>,
    ): Promise<[number, unknown]> => {
      const answer = await server.post("/v1/api/auth/oidc/link", { verifier, ...fields }, headers);
      const body = (await answer.json()) as { error?: string; message: string };
      return [answer.status, body.error ?? body.message];
    };
    const as = (bearer: string): Record<string, string> => ({ Authorization: `Bearer ${bearer}` });
    const password = "correct horse 9";
    const code = await codeFor("victim");
    expect(await link({ code, password: "wrong" }, as(token))).toEqual([401, "unauthorized"]);
    expect(await link({ code: "x", password }, as(token))).toEqual([403, "invalid_code"]);
    expect(await link({ code, password }, as(token))).toEqual([
      200,
      "The account is linked to Example",
    ]);
    const login = (await (await exchanged(await codeFor("victim"))).json()) as Login;
    expect(login.user.id).toBe("lina");
    expect((await server.login("lina")).user.id).toBe("lina");
    // A login at the provider can belong to only one account.
    const other = await server.createUser("luis");
    expect(await link({ code: await codeFor("victim"), password }, as(other))).toEqual([
      409,
      "user_exists",
    ]);
    expect((await link({ code: "x" }, {}))[0]).toBe(401);
    expect(await link({ code: "x" }, as(login.access_token))).toEqual([400, "invalid_request"]);
  });

  test("an account has several logins, which its user lists and removes", async () => {
    const as = (bearer: string): Record<string, string> => ({ Authorization: `Bearer ${bearer}` });
    const call = async (
      action: "link" | "unlink",
      body: object,
      token: string,
    ): Promise<[number, unknown]> => {
      const answer = await server.post(`/v1/api/auth/oidc/${action}`, body, as(token));
      const { error, message } = (await answer.json()) as { error?: string; message: string };
      return [answer.status, error ?? message];
    };
    const linksOf = async (token: string): Promise<unknown> =>
      await (await server.get("/v1/api/auth/oidc/links", as(token))).json();
    const loginOf = async (account: string): Promise<Login> =>
      (await (await exchanged(await codeFor(account))).json()) as Login;

    await server.rows(`CREATE USER many OAUTH '{"provider": "idp", "subject": "kim"}'`);
    const first = await loginOf("kim");
    expect(first.user.id).toBe("many");
    const token = first.access_token;
    // If the account has no password, a login at an already linked provider is enough to link
    // another.
    const code = await codeFor("lou");
    expect(await call("link", { code, verifier }, token)).toEqual([400, "invalid_request"]);
    const foreign = { own_code: await codeFor("ann"), own_verifier: verifier };
    expect(await call("link", { code, verifier, ...foreign }, token)).toEqual([
      403,
      "invalid_code",
    ]);
    const own = { own_code: await codeFor("kim"), own_verifier: verifier };
    const further = { code: await codeFor("lou"), verifier, ...own };
    expect((await call("link", further, token))[0]).toBe(200);
    const second = await loginOf("lou");
    expect(second.user.id).toBe("many");
    expect(await linksOf(token)).toEqual({
      links: [
        { provider: "idp", subject: "kim", label: "Example" },
        { provider: "idp", subject: "lou", label: "Example" },
      ],
    });
    expect(await server.rows("SELECT auth_data FROM system.users WHERE user_id = 'many'")).toEqual([
      ['[{"provider":"idp","subject":"kim"},{"provider":"idp","subject":"lou"}]'],
    ]);
    await server.restart("SIGKILL");
    expect(await call("unlink", { provider: "idp", subject: "eve" }, token)).toEqual([
      400,
      "invalid_request",
    ]);
    expect((await call("unlink", { provider: "idp", subject: "lou" }, token))[0]).toBe(200);
    // The sessions that began through the removed link end. Sessions of the other link continue.
    expect((await server.sql("SELECT 1", { token: second.access_token })).status).toBe(401);
    expect((await server.sql("SELECT 1", { token })).status).toBe(200);
    expect(await call("unlink", { provider: "idp", subject: "kim" }, token)).toEqual([
      403,
      "forbidden",
    ]);
  });

  test("a user without a password deletes the account after a new login", async () => {
    const loginOf = async (account: string): Promise<Login> =>
      (await (await exchanged(await codeFor(account))).json()) as Login;
    const remove = async (token: string, body: object = {}): Promise<[number, unknown]> => {
      const headers = { Authorization: `Bearer ${token}` };
      const answer = await server.post("/v1/api/auth/delete", body, headers);
      return [answer.status, ((await answer.json()) as { error?: string }).error];
    };
    const { access_token: first, user } = await loginOf("max");
    expect(await remove(first)).toEqual([200, undefined]);
    expect((await server.sql("SELECT 1", { token: first })).status).toBe(401);
    // A new login at the provider does not bring the deleted account back.
    const back = await exchanged(await codeFor("max"));
    expect(await back.json()).toMatchObject({ error: "unknown_user" });
    await server.rows(`CREATE USER "${user.id}" OAUTH '{"provider": "idp", "subject": "max"}'`);
  });

  test("administrators add and drop links", async () => {
    const refused = async (sql: string): Promise<[string | undefined, string | undefined]> => {
      const { error } = (await server.sql(sql)).body;
      return [error?.code, error?.message];
    };
    await server.rows("CREATE USER worker INTERNAL");
    const link = `'{"provider": "idp", "subject": "lou"}'`;
    await server.rows(`ALTER USER worker ADD OAUTH ${link}`);
    const login = (await (await exchanged(await codeFor("lou"))).json()) as Login;
    expect(login.user.id).toBe("worker");
    expect((await refused(`ALTER USER lina ADD OAUTH ${link}`))[1]).toContain(
      "user worker is already linked to this provider and subject",
    );
    expect((await refused("ALTER USER worker ADD OAUTH 'x'"))[1]).toContain(
      "Cannot alter user worker: OAUTH must be a JSON object",
    );
    expect((await refused(`ALTER USER lina DROP OAUTH ${link}`))[1]).toContain(
      "the account has no link to this provider and subject",
    );
    for (let count = 1; count < 10; count += 1) {
      await server.rows(
        `ALTER USER worker ADD OAUTH '{"provider": "idp", "subject": "other ${count}"}'`,
      );
    }
    const eleventh = `ALTER USER worker ADD OAUTH '{"provider": "idp", "subject": "one more"}'`;
    expect((await refused(eleventh))[1]).toContain("an account can have at most 10 links");
    await server.rows(`ALTER USER worker DROP OAUTH ${link}`);
    expect((await server.sql("SELECT 1", { token: login.access_token })).status).toBe(401);
  });

  test("a page gives a guest a login, and the guest keeps its id", async () => {
    const guest = (await (await server.post("/v1/api/auth/guest", {})).json()) as Login;
    await server.rows(`DROP USER "oidc:idp:mallory"`);
    const code = await codeFor("mallory");
    const headers = { Authorization: `Bearer ${guest.access_token}` };
    const answer = await server.post("/v1/api/auth/oidc/link", { code, verifier }, headers);
    expect(answer.status).toBe(200);
    const login = (await (await exchanged(await codeFor("mallory"))).json()) as Login;
    expect(login.user.id).toBe(guest.user.id);
  });
});

test("the client begins and finishes a login, and links an account", async () => {
  const client = (auth?: { user: string; password: string }): Client =>
    createClient({ url: server.url, ...(auth === undefined ? {} : { auth }) });
  const db = client();
  expect(await db.account.providers()).toContainEqual({ name: "idp", label: "Example" });
  const page = async (account: string): Promise<[string, { verifier: string }]> => {
    await provider.next({ account });
    const { url, verifier } = await db.account.beginProviderLogin("idp", { returnTo: `${APP}/in` });
    const { url: end } = await new Browser().go(url, /app\.example\.com/);
    return [end.href, { verifier }];
  };
  const identity = await db.account.finishProviderLogin(...(await page("ann")));
  expect(identity).toMatchObject({ user: { id: "oidc:idp:ann" }, mayAdminister: false });
  expect(await db.query("SELECT CURRENT_USER AS me")).toEqual([{ me: "oidc:idp:ann" }]);
  expect(await db.account.finishProviderLogin(`${APP}/in#other`)).toBeUndefined();
  const [url] = await page("ann");
  const failureOf = (address: string): Promise<unknown> =>
    db.account.finishProviderLogin(address).catch((error: unknown) => error);
  expect(await failureOf(url)).toMatchObject({ code: "invalid_code" });
  const denied = `${APP}/in#tidemark_error=denied`;
  expect(await failureOf(denied)).toMatchObject({ code: "denied", status: 401 });
  await server.createUser("lea");
  const password = "correct horse 9";
  const lea = client({ user: "lea", password });
  const [end, { verifier }] = await page("zoe");
  expect(await lea.account.linkProviderLogin(end, { verifier, password })).toBeTrue();
  expect(await db.account.finishProviderLogin(...(await page("zoe")))).toMatchObject({
    user: { id: "lea" },
  });
  const zoe = { provider: "idp", subject: "zoe", label: "Example" };
  expect(await lea.account.providerLinks()).toEqual([zoe]);
  await lea.account.unlinkProvider(zoe, password);
  expect(await lea.account.providerLinks()).toEqual([]);
});

testThoroughly(
  "the client links a further login of an account without a password, and deletes the account",
  async () => {
    const db = createClient({ url: server.url });
    const page = async (account: string): Promise<{ url: string; verifier: string }> => {
      await provider.next({ account });
      const begun = await db.account.beginProviderLogin("idp", { returnTo: `${APP}/in` });
      const { url } = await new Browser().go(begun.url, /app\.example\.com/);
      return { url: url.href, verifier: begun.verifier };
    };
    const first = await page("max");
    await db.account.finishProviderLogin(first.url, { verifier: first.verifier });
    const own = await page("max");
    const { url, verifier } = await page("tom");
    expect(await db.account.linkProviderLogin(url, { verifier, own })).toBeTrue();
    const subjects = (await db.account.providerLinks()).map(({ subject }) => subject);
    expect(subjects).toEqual(["max", "tom"]);
    const deletion = await page("tom");
    expect(await db.account.deleteByProviderLogin(`${APP}/in`)).toBeFalse();
    expect(
      await db.account.deleteByProviderLogin(deletion.url, { verifier: deletion.verifier }),
    ).toBeTrue();
    const { url: late, verifier: lateVerifier } = await page("max");
    expect(
      await db.account
        .finishProviderLogin(late, { verifier: lateVerifier })
        .catch((error: unknown) => error),
    ).toMatchObject({ code: "unknown_user" });
  },
);

test("unknown providers, and those without browser logins, are not found", async () => {
  for (const path of [
    "nobody/login",
    "bearer-only/login",
    "a/b/login",
    "nobody/callback",
    "/login",
  ]) {
    const answer = await server.get(`/v1/api/auth/oidc/${path}`);
    expect([answer.status, await answer.json()], path).toEqual([
      404,
      expect.objectContaining({ error: "not_found" }),
    ]);
  }
});

test("the bodies of token and link requests are checked", async () => {
  for (const path of ["token", "link"]) {
    for (const body of [
      {},
      { code: 1, verifier: "x" },
      { code: "x" },
      { code: "x", verifier: "y", z: 1 },
    ]) {
      const headers = { Authorization: `Bearer ${server.token}` };
      const withPassword = path === "link" ? { ...body, password: "correct horse 9" } : body;
      const answer = await server.post(`/v1/api/auth/oidc/${path}`, withPassword, headers);
      expect(answer.status, `${path} ${JSON.stringify(body)}`).toBe(400);
    }
  }
});
