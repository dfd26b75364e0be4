/**
 * Tests `/v1/api/auth/…` over HTTP: the order of the checks, cookies, and where tokens are
 * accepted.
 */
import { describe, expect, test } from "bun:test";
import { type TestServer, withServer } from "../../support/http.ts";
import { testThoroughly } from "../../support/requirements.ts";

const SETUP = { user: "ada", password: "correct horse 9", root_password: "battery staple 7" };
const LOGIN = { user: "ada", password: "correct horse 9" };

async function post(
  server: TestServer,
  name: string,
  body: unknown,
  headers: Readonly<Record<string, string>> = {},
): Promise<{ status: number; body: Record<string, unknown>; headers: Headers }> {
  const response = await server.fetch(`/v1/api/auth/${name}`, {
    method: "POST",
    headers: { "Content-Type": "application/json", ...headers },
    body: typeof body === "string" ? body : JSON.stringify(body),
  });
  const answer = (await response.json()) as Record<string, unknown>;
  return { status: response.status, body: answer, headers: response.headers };
}

function text(value: unknown): string {
  expect(value).toBeString();
  return String(value);
}

test("a user can be set up, logged in, shown, refreshed and logged out in this order", async () => {
  await withServer({}, async (server) => {
    const status = async (): Promise<unknown> =>
      await (await server.fetch("/v1/api/auth/status")).json();
    expect(await status()).toMatchObject({ needs_setup: true, oidc_providers: [] });
    expect(await post(server, "login", LOGIN)).toMatchObject({
      status: 428,
      body: { error: "setup_required" },
    });
    expect(await post(server, "setup", SETUP)).toMatchObject({
      status: 200,
      body: { user: { id: "ada", role: "dba", email: null } },
    });
    expect(await status()).toMatchObject({ needs_setup: false });
    const login = await post(server, "login", LOGIN);
    expect(login).toMatchObject({ status: 200, body: { admin_ui_access: true } });
    const bearer = { Authorization: `Bearer ${text(login.body["access_token"])}` };
    const me = await server.fetch("/v1/api/auth/me", { headers: bearer });
    expect(await me.json()).toMatchObject({ user: { id: "ada" }, admin_ui_access: true });
    const refreshed = await post(server, "refresh", { refresh_token: login.body["refresh_token"] });
    expect(refreshed.status).toBe(200);
    expect(refreshed.body["access_token"]).not.toBe(login.body["access_token"]);
    const out = await post(server, "logout", "", bearer);
    expect(out).toMatchObject({ status: 200, body: { message: expect.any(String) } });
    expect((await server.fetch("/v1/api/auth/me", { headers: bearer })).status).toBe(401);
  });
});

test("setup of a configured server returns 409 for every caller and every body", async () => {
  await withServer({}, async (server) => {
    await server.token();
    const type = { "Content-Type": "text/plain" };
    for (const [body, headers] of [
      [SETUP, {}],
      ["{", {}],
      ["", type],
      [SETUP, { "X-Forwarded-For": "192.0.2.1" }],
      [SETUP, { Host: "evil.example" }],
    ] as const) {
      expect(await post(server, "setup", body, headers)).toMatchObject({
        status: 409,
        body: { error: "already_configured" },
      });
    }
  });
});

test.each<[string, unknown, Record<string, string>, string]>([
  ["a forwarded caller", SETUP, { "X-Forwarded-For": "127.0.0.1" }, "403 forbidden"],
  ["a rebound Host", SETUP, { Host: "evil.example" }, "403 host_not_allowed"],
  ["no JSON", "{", {}, "400 invalid_request"],
  ["a missing field", { user: "ada" }, {}, "400 invalid_request"],
  ["a form", "user=ada", { "Content-Type": "text/plain" }, "415 unsupported_media_type"],
  ["a weak password", { ...SETUP, password: "password" }, {}, "400 weak_password"],
  ["root as the first DBA", { ...SETUP, user: "root" }, {}, "400 invalid_user"],
])("set-up with %s is refused and changes nothing", async (_what, body, headers, refused) => {
  await withServer({}, async (server) => {
    const answer = await post(server, "setup", body, headers);
    expect(`${answer.status} ${text(answer.body["error"])}`).toBe(refused);
    if (refused.endsWith("weak_password")) expect(answer.body["field"]).toBe("password");
    expect(server.auth.status().needs_setup).toBe(true);
  });
});

test("cookies have the right names, paths, attributes and expiry, and Secure only over https", async () => {
  const config = {
    security: {
      trusted_proxies: ["127.0.0.1"],
      allowed_hosts: [],
      metrics_allow: [],
      cors: { allowed_origins: [], allow_credentials: false, max_age: 0 },
    },
  };
  await withServer({ config }, async (server) => {
    await server.token();
    const plain = await post(server, "login", LOGIN);
    const cookies = plain.headers.getSetCookie();
    const expires = new Date(text(plain.body["expires_at"])).toUTCString();
    expect(cookies).toEqual([
      `tidemark_auth=${text(plain.body["access_token"])}; Path=/; Expires=${expires}; HttpOnly; SameSite=Strict`,
      expect.stringMatching(
        /^tidemark_refresh=[^;]+; Path=\/v1\/api\/auth; Expires=[^;]+; HttpOnly; SameSite=Strict$/,
      ),
    ]);
    const forwarded = { "X-Forwarded-For": "192.0.2.1", "X-Forwarded-Proto": "https" };
    const secure = await post(server, "login", LOGIN, forwarded);
    for (const cookie of secure.headers.getSetCookie()) expect(cookie).toContain("; Secure; ");
    const out = await post(server, "logout", "{}", { Cookie: cookies.join("; ") });
    for (const cookie of out.headers.getSetCookie()) {
      expect(cookie).toContain("=; Path=");
      expect(cookie).toContain("Expires=Thu, 01 Jan 1970 00:00:00 GMT");
    }
  });
});

test("me and refresh prefer the header to the cookie; other endpoints accept no cookie", async () => {
  await withServer({}, async (server) => {
    await server.token();
    const { body } = await post(server, "login", LOGIN);
    const cookie = `tidemark_auth=${text(body["access_token"])}; tidemark_refresh=${text(body["refresh_token"])}`;
    const me = async (headers: Record<string, string>): Promise<number> =>
      (await server.fetch("/v1/api/auth/me", { headers })).status;
    expect(await me({ Cookie: `other=1; ${cookie}` })).toBe(200);
    expect(await me({ Cookie: cookie, Authorization: "Bearer x.y.z" })).toBe(401);
    expect(await me({ Cookie: "tidemark_auth=" })).toBe(401);
    expect(await me({})).toBe(401);
    expect((await post(server, "refresh", "", { Cookie: cookie })).status).toBe(200);
    const access = `Bearer ${text(body["access_token"])}`;
    expect((await post(server, "refresh", "", { Authorization: access })).status).toBe(401);
    expect((await post(server, "refresh", { refresh_token: 1 })).status).toBe(400);
    const sql = await server.fetch("/v1/api/sql", {
      method: "POST",
      headers: { Cookie: cookie },
      body: "{}",
    });
    expect(sql.status).toBe(401);
    expect((await server.fetch("/metrics", { headers: { Cookie: cookie } })).status).toBe(401);
  });
});

test("bodies are read up to 64 KiB, in which the longest passwords fit", async () => {
  await withServer({}, async (server) => {
    await server.token();
    const longest = "\\u00e9".repeat(4096);
    const escaped = `{"user":"ada","password":"${longest}"}`.padEnd(49_000);
    expect(await post(server, "login", escaped)).toMatchObject({ status: 401 });
    for (const name of ["login", "refresh", "logout"]) {
      const large = await post(server, name, JSON.stringify({ x: "x".repeat(65_536) }));
      expect(large).toMatchObject({
        status: 413,
        body: { error: "BODY_TOO_LARGE", max_bytes: 65_536 },
      });
    }
  });
});

describe("a page from another origin cannot use the cookies of its browser", () => {
  const cors = { allowed_origins: ["https://app.example"], allow_credentials: true, max_age: 0 };
  const security = { trusted_proxies: [], allowed_hosts: [], metrics_allow: [], cors };
  const foreign = { Origin: "http://127.0.0.1:1" };

  async function loggedIn(server: TestServer): Promise<{ cookie: string; bearer: string }> {
    await server.token();
    const { body, headers } = await post(server, "login", LOGIN);
    const cookies = headers.getSetCookie().map((it) => it.slice(0, it.indexOf(";")));
    return { cookie: cookies.join("; "), bearer: `Bearer ${text(body["access_token"])}` };
  }

  test("a page from another origin gets no new tokens for the cookie of its browser", async () => {
    await withServer({ config: { security } }, async (server) => {
      const { cookie: Cookie } = await loggedIn(server);
      const status = async (headers: Record<string, string>): Promise<number> =>
        (await post(server, "refresh", "", { Cookie, ...headers })).status;
      expect(await status(foreign)).toBe(401);
      expect(await status({ Origin: "null" })).toBe(401);
      expect(await status({ ...foreign, "Sec-Fetch-Site": "same-site" })).toBe(401);
      expect(await status({})).toBe(200);
      expect(await status({ Origin: server.url })).toBe(200);
      expect(await status({ Origin: "https://app.example" })).toBe(200);
      expect(await status({ ...foreign, "Sec-Fetch-Site": "same-origin" })).toBe(200);
    });
    const any = { ...cors, allowed_origins: ["*"], allow_credentials: false };
    await withServer({ config: { security: { ...security, cors: any } } }, async (server) => {
      const { cookie: Cookie } = await loggedIn(server);
      expect((await post(server, "refresh", "", { Cookie, ...foreign })).status).toBe(401);
    });
  });

  testThoroughly("a page from another origin cannot set up the server", async () => {
    await withServer({ config: { security } }, async (server) => {
      // Browsers send a body without a content type to another origin without a preflight request.
      const setUp = async (headers: Record<string, string>): Promise<unknown> => {
        const body = new TextEncoder().encode(JSON.stringify(SETUP));
        const request = { method: "POST", headers, body };
        const response = await server.fetch("/v1/api/auth/setup", request);
        return [response.status, ((await response.json()) as { error?: string }).error];
      };
      expect(await setUp(foreign)).toEqual([403, "forbidden"]);
      expect(await setUp({ Origin: "null" })).toEqual([403, "forbidden"]);
      expect(await setUp({ ...foreign, "Sec-Fetch-Site": "cross-site" })).toEqual([
        403,
        "forbidden",
      ]);
      expect(await setUp({ Origin: "https://app.example" })).toEqual([200, undefined]);
      expect(await setUp(foreign)).toEqual([409, "already_configured"]);
    });
    const proxied = { ...foreign, "Sec-Fetch-Site": "same-origin" };
    for (const headersOf of [(url: string) => ({ Origin: url }), () => proxied]) {
      await withServer({}, async (server) => {
        expect((await post(server, "setup", SETUP, headersOf(server.url))).status).toBe(200);
      });
    }
  });

  test("a page from another origin gets no cookies, neither from a login nor from a refresh", async () => {
    await withServer({ config: { security } }, async (server) => {
      await server.token();
      const cookieCounts = async (headers: Record<string, string>): Promise<number[]> => {
        const login = await post(server, "login", LOGIN, headers);
        const { refresh_token } = login.body;
        const refreshed = await post(server, "refresh", { refresh_token }, headers);
        expect([login.status, refreshed.status]).toEqual([200, 200]);
        return [login, refreshed].map((answer) => answer.headers.getSetCookie().length);
      };
      expect(await cookieCounts(foreign)).toEqual([0, 0]);
      expect(await cookieCounts({})).toEqual([2, 2]);
      expect(await cookieCounts({ Origin: "https://app.example" })).toEqual([2, 2]);
    });
  });

  test("a page from another origin cannot end a session by cookie, but by a token that it has", async () => {
    await withServer({ config: { security } }, async (server) => {
      const { bearer, cookie: Cookie } = await loggedIn(server);
      const me = async (): Promise<number> =>
        (await server.fetch("/v1/api/auth/me", { headers: { Authorization: bearer } })).status;
      const refused = await post(server, "logout", "", { Cookie, ...foreign });
      expect([refused.status, refused.headers.getSetCookie()]).toEqual([200, []]);
      expect(await me()).toBe(200);
      await post(server, "logout", "", { Authorization: bearer, ...foreign });
      expect(await me()).toBe(401);
    });
  });
});

test("a field of the wrong type is refused, and no session ends", async () => {
  await withServer({}, async (server) => {
    const Authorization = `Bearer ${await server.token()}`;
    for (const [name, body] of [
      ["logout", { all: "true" }],
      ["logout", { all: 1 }],
      ["logout", { all: [] }],
      ["logout", "[]"],
      ["logout", "{"],
      ["refresh", { refresh_token: 1 }],
      ["refresh", { refresh_token: {} }],
      ["refresh", "x"],
    ] as const) {
      const refused = await post(server, name, body, { Authorization });
      expect([refused.status, refused.body["error"]], `${name} ${JSON.stringify(body)}`).toEqual([
        400,
        "invalid_request",
      ]);
    }
    const me = (): Promise<Response> =>
      server.fetch("/v1/api/auth/me", { headers: { Authorization } });
    expect((await me()).status).toBe(200);
    expect((await post(server, "logout", { all: null }, { Authorization })).status).toBe(200);
    expect((await me()).status).toBe(401);
  });
});

test("a page from another origin cannot use the cookie for me or for a stream", async () => {
  await withServer({}, async (server) => {
    const Cookie = `tidemark_auth=${await server.token()}`;
    const live = "/v1/api/live?sql=SELECT%201";
    for (const path of ["/v1/api/auth/me", live]) {
      for (const from of [
        { Origin: "https://evil.example" },
        { "Sec-Fetch-Site": "cross-site" },
        { "Sec-Fetch-Site": "same-site" },
      ]) {
        const refused = await server.fetch(path, { headers: { Cookie, ...from } });
        expect(refused.status, `${path} ${JSON.stringify(from)}`).toBe(401);
      }
      for (const from of [{}, { Origin: server.url }, { "Sec-Fetch-Site": "same-origin" }]) {
        const answer = await server.fetch(path, { headers: { Cookie, ...from } });
        expect(answer.status, `${path} ${JSON.stringify(from)}`).not.toBe(401);
      }
    }
  });
});

test("a wrong password gets 401 without a challenge, whoever the user is", async () => {
  await withServer({}, async (server) => {
    await server.token();
    const wrong = await post(server, "login", { user: "ada", password: "not it at all" });
    const nobody = await post(server, "login", { user: "nobody", password: "not it at all" });
    expect(wrong).toMatchObject({ status: 401, body: { error: "unauthorized" } });
    expect(nobody.body).toEqual(wrong.body);
    expect(wrong.headers.get("www-authenticate")).toBeNull();
  });
});
