/** Tests first-time setup, login, token refresh, logout and users. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { SocketClient } from "../support/client.ts";
import { testThoroughly } from "../support/requirements.ts";
import {
  ADMIN,
  type Login,
  PASSWORD,
  type ServerProcess,
  startReadyServer,
  startServer,
} from "../support/server_process.ts";
import { shareOf } from "../support/thoroughness.ts";

const STATUS = "/v1/api/auth/status";
const SETUP = "/v1/api/auth/setup";
const LOGIN = "/v1/api/auth/login";
const REFRESH = "/v1/api/auth/refresh";
const LOGOUT = "/v1/api/auth/logout";
const ME = "/v1/api/auth/me";

const SETUP_BODY = { user: "ada", password: "correct horse 9", root_password: "battery staple 7" };
const TIME = expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z$/);

async function statusAndError(answer: Response): Promise<[number, string]> {
  const { error = "" } = (await answer.json()) as { error?: string };
  return [answer.status, error];
}

describe("the first account is set up once", () => {
  test("setup is needed until it is done, and happens once", async () => {
    await using server = await startServer();
    expect(await (await server.get(STATUS)).json()).toEqual({
      needs_setup: true,
      message: expect.any(String),
      setup_code_required: false,
      oidc_providers: [],
    });
    expect(await statusAndError(await server.post(LOGIN, { user: "root", password: "x" }))).toEqual(
      [428, "setup_required"],
    );
    const answer = await server.post(SETUP, SETUP_BODY);
    expect(answer.status).toBe(200);
    expect(answer.headers.get("Set-Cookie")).toBeNull();
    expect(await answer.json()).toEqual({
      user: { id: "ada", role: "dba", email: null, created_at: TIME, updated_at: TIME },
      message: expect.any(String),
    });
    expect(await (await server.get(STATUS)).json()).toMatchObject({ needs_setup: false });
    for (const body of [SETUP_BODY, {}, { user: 5 }]) {
      const again = await server.post(SETUP, body);
      expect(await statusAndError(again)).toEqual([409, "already_configured"]);
    }
    expect((await server.login("root", "battery staple 7")).user).toMatchObject({ role: "system" });
  });

  test("setup succeeds for exactly one of 20 concurrent attempts", async () => {
    await using server = await startServer();
    const answers = await Promise.all(
      Array.from({ length: 20 }, (_, index) =>
        server.post(SETUP, { ...SETUP_BODY, user: `dba${index}` }),
      ),
    );
    expect(answers.map(({ status }) => status).toSorted((a, b) => a - b)).toEqual([
      200,
      ...Array.from({ length: 19 }, () => 409),
    ]);
  });

  test("setup refuses invalid requests, and is still needed afterwards", async () => {
    await using server = await startServer();
    const cases: readonly (readonly [change: Record<string, unknown>, error: string])[] = [
      [{ user: undefined }, "invalid_request"],
      [{ password: 5 }, "invalid_request"],
      [{ root_password: undefined }, "invalid_request"],
      [{ user: "root" }, "invalid_user"],
      [{ user: "" }, "invalid_user"],
      [{ user: "a/b" }, "invalid_user"],
      [{ user: "a\nb" }, "invalid_user"],
      [{ user: "x".repeat(129) }, "invalid_user"],
      [{ password: "short" }, "weak_password"],
      [{ password: "password" }, "weak_password"],
      [{ password: "x".repeat(257) }, "weak_password"],
      [{ root_password: "12345678" }, "weak_password"],
    ];
    for (const [change, error] of cases) {
      const answer = await server.post(SETUP, { ...SETUP_BODY, ...change });
      expect(await statusAndError(answer), JSON.stringify(change)).toEqual([400, error]);
    }
    expect(await (await server.get(STATUS)).json()).toMatchObject({ needs_setup: true });
  });

  test("setup through a proxy does not count as local, whatever the header says", async () => {
    await using server = await startServer();
    for (const header of ["X-Forwarded-For", "Forwarded", "X-Real-IP"]) {
      const answer = await server.post(SETUP, SETUP_BODY, { [header]: "127.0.0.1" });
      expect(await statusAndError(answer)).toEqual([403, "forbidden"]);
    }
    const rebound = await server.post(SETUP, SETUP_BODY, { Host: "evil.example" });
    expect(await statusAndError(rebound)).toEqual([403, "host_not_allowed"]);
  });

  test("setup requires the code of the last start if configured, or behind a proxy", async () => {
    const proxied = { server: { public_origin: "https://db.example.com" } };
    for (const config of shareOf([{ auth: { setup_code: true } }, proxied], { oneOf: 2 })) {
      await using server = await startServer({ config });
      const printed = async (): Promise<string> => {
        await server.outputHas(/setup code [A-Z2-9-]+/);
        return /setup code ([A-Z2-9-]+)/.exec(server.output)?.[1] ?? "";
      };
      const status = await server.get(STATUS);
      expect(await status.json()).toMatchObject({ needs_setup: true, setup_code_required: true });
      const old = await printed();
      expect(old).toMatch(/^[A-Z2-9]{4}-[A-Z2-9]{4}-[A-Z2-9]{4}$/);
      await server.restart();
      const code = await printed();
      for (const wrong of [undefined, "", old, `${code}A`]) {
        const answer = await server.post(SETUP, { ...SETUP_BODY, setup_code: wrong });
        expect(await statusAndError(answer)).toEqual([403, "invalid_setup_code"]);
      }
      expect(await (await server.get(STATUS)).json()).toMatchObject({ needs_setup: true });
      const typed = code.toLowerCase().replaceAll("-", " ");
      expect((await server.post(SETUP, { ...SETUP_BODY, setup_code: typed })).status).toBe(200);
      const after = await (await server.get(STATUS)).json();
      expect(after).toMatchObject({ needs_setup: false, setup_code_required: false });
    }
  });

  testThoroughly(
    "setup requires no code if the configuration says so, even behind a proxy",
    async () => {
      const config = {
        auth: { setup_code: false },
        security: { trusted_proxies: ["10.0.0.0/8"] },
      };
      await using server = await startServer({ config });
      expect((await server.post(SETUP, SETUP_BODY)).status).toBe(200);
    },
  );

  testThoroughly("setup is not needed with a configured root password", async () => {
    const env = { TIDEMARK_ROOT_PASSWORD: "battery staple 7" };
    await using server = await startServer({ env });
    expect(await (await server.get(STATUS)).json()).toMatchObject({ needs_setup: false });
    const answer = await server.post(SETUP, SETUP_BODY);
    expect(await statusAndError(answer)).toEqual([409, "already_configured"]);
    server.token = (await server.login("root", "battery staple 7")).access_token;
    const { body } = await server.sql("ALTER USER root SET PASSWORD 'correct horse 9'");
    expect(body.error).toMatchObject({ code: "SQL_EXECUTION_ERROR", reason: "managed_by_config" });
  });
});

describe("a user has a session from the login to the logout", () => {
  let server: ServerProcess;
  beforeAll(async () => {
    server = await startReadyServer({ config: { limits: { login_max_failures: 3 } } });
  });
  afterAll(async () => {
    await server.stop();
  });

  const bearer = (token: string): Record<string, string> => ({ Authorization: `Bearer ${token}` });

  test("a login returns tokens, the user and cookies", async () => {
    const answer = await server.post(LOGIN, { user: ADMIN, password: PASSWORD });
    expect(await answer.json()).toEqual({
      access_token: expect.stringMatching(/^eyJ[\w-]+\.[\w-]+\.[\w-]+$/),
      expires_at: TIME,
      refresh_token: expect.stringMatching(/^eyJ/),
      refresh_expires_at: TIME,
      admin_ui_access: true,
      user: { id: "ada", role: "dba", email: null, created_at: TIME, updated_at: TIME },
    });
    const cookies = answer.headers.getSetCookie().join("\n");
    expect(cookies).toMatch(/tidemark_auth=eyJ.*Path=\//);
    expect(cookies).toMatch(/tidemark_refresh=eyJ.*Path=\/v1\/api\/auth/);
    for (const cookie of answer.headers.getSetCookie()) {
      expect(cookie).toMatch(/HttpOnly/i);
      expect(cookie).toMatch(/SameSite=Strict/i);
      expect(cookie).not.toMatch(/Domain=/i);
    }
  });

  test("a token has exactly the documented claims", async () => {
    const { access_token: token } = await server.login(ADMIN);
    const [, body = ""] = token.split(".");
    const claims = JSON.parse(Buffer.from(body, "base64url").toString()) as Record<string, unknown>;
    // This check comes first, because the matchers below overwrite the matched values.
    expect(Number(claims["exp"]) - Number(claims["iat"])).toBe(24 * 3600);
    expect(claims).toMatchObject({
      iss: "tidemark",
      sub: "ada",
      iat: expect.any(Number),
      exp: expect.any(Number),
      jti: expect.any(String),
      sid: expect.any(String),
      tv: expect.any(Number),
      role: "dba",
      email: null,
      token_type: "access",
    });
  });

  testThoroughly("names and passwords are compared in Unicode form NFC", async () => {
    const [composed, decomposed] = ["jos\u00e9", "jose\u0301"];
    const password = (text: string): string => `ma\u00f1ana \u00e9 1`.normalize(text);
    await server.rows(`CREATE USER '${decomposed}' WITH PASSWORD '${password("NFD")}'`);
    expect(
      await server.rows(`SELECT user_id FROM system.users WHERE user_id = '${composed}'`),
    ).toEqual([[composed]]);
    for (const user of [composed, decomposed]) {
      for (const form of ["NFC", "NFD"]) {
        expect((await server.login(user, password(form))).user.id).toBe(composed);
      }
      expect((await server.login(user, password("NFC").replace(" ", "\u00a0"))).user.id).toBe(
        composed,
      );
    }
    expect(await server.rows(`EXECUTE AS USER '${decomposed}' (SELECT CURRENT_USER)`)).toEqual([
      [composed],
    ]);
    const { body } = await server.sql("CREATE USER 'Jos\u00c9' INTERNAL");
    expect(body.error?.message).toContain("it is too similar to the name of an existing user");
  });

  test("a wrong password and an unknown name get the same response", async () => {
    const wrong = await server.post(LOGIN, { user: ADMIN, password: "wrong password" });
    const unknown = await server.post(LOGIN, { user: "nobody", password: "wrong password" });
    expect(wrong.status).toBe(401);
    expect(await unknown.json()).toEqual(await wrong.json());
    expect(unknown.status).toBe(401);
  });

  test("a user logs in with the name as it was written, quoted or not", async () => {
    await server.rows(`CREATE USER MixEd1 WITH PASSWORD '${PASSWORD}' ROLE 'user'`);
    expect((await server.login("MixEd1")).user).toMatchObject({ id: "MixEd1", role: "user" });
    expect(await server.rows("EXECUTE AS MixEd1 (SELECT CURRENT_USER)")).toEqual([["MixEd1"]]);
    expect((await server.post(LOGIN, { user: "mixed1", password: PASSWORD })).status).toBe(401);
    const { body } = await server.sql("EXECUTE AS USER mixed1 (SELECT 1)");
    expect(body.error).toMatchObject({ reason: "user_not_found", position: 16 });
  });

  test("a name is locked after failures, even for the right password", async () => {
    await server.createUser("lena");
    for (let count = 0; count < 3; count += 1) {
      await server.post(LOGIN, { user: "lena", password: "wrong password" });
    }
    const answer = await server.post(LOGIN, { user: "lena", password: PASSWORD });
    expect(answer.status).toBe(401);
    expect(await answer.json()).toMatchObject({
      error: "account_locked",
      retry_after_seconds: expect.any(Number),
    });
  });

  test.each([
    ["no body", undefined],
    ["no password", { user: "ada" }],
    ["a password of wrong type", { user: "ada", password: 5 }],
    ["a password too long", { user: "ada", password: "x".repeat(5000) }],
    ["a name too long", { user: "x".repeat(129), password: "x" }],
  ])("login with %s is malformed", async (_name, body) => {
    expect(await statusAndError(await server.post(LOGIN, body))).toEqual([400, "invalid_request"]);
  });

  test("refresh replaces both tokens, by body, header or cookie", async () => {
    const first = await server.login(ADMIN);
    const byBody = await server.post(REFRESH, { refresh_token: first.refresh_token });
    const second = (await byBody.json()) as typeof first;
    expect(second.access_token).not.toBe(first.access_token);
    const byHeader = await server.post(REFRESH, {}, bearer(second.refresh_token));
    const third = (await byHeader.json()) as typeof first;
    const cookie = `tidemark_refresh=${third.refresh_token}`;
    const byCookie = await server.post(REFRESH, {}, { Cookie: cookie });
    const fourth = (await byCookie.json()) as typeof first;
    expect(await server.rows("SELECT 1", { token: fourth.access_token })).toEqual([[1]]);
  });

  test("refresh works again after lost responses, until one of the new tokens has been used", async () => {
    const refreshed = async (token: string): Promise<Login> =>
      (await (await server.post(REFRESH, { refresh_token: token })).json()) as Login;
    const { refresh_token: lost } = await server.login(ADMIN);
    await refreshed(lost);
    await server.restart();
    const { refresh_token: kept } = await refreshed(lost);
    const { access_token: token } = await refreshed(kept);
    expect(await server.rows("SELECT 1", { token })).toEqual([[1]]);
    // Other browser tabs may still be sending the old token.
    expect((await server.post(REFRESH, { refresh_token: lost })).status).toBe(200);
  });

  test("refresh refuses an access token, and SQL refuses a refresh token", async () => {
    const login = await server.login(ADMIN);
    const answer = await server.post(REFRESH, { refresh_token: login.access_token });
    expect(await statusAndError(answer)).toEqual([401, "unauthorized"]);
    const { status, body } = await server.sql("SELECT 1", { token: login.refresh_token });
    expect([status, body.error?.code]).toEqual([401, "INVALID_CREDENTIALS"]);
  });

  test("logout ends the session, and leaves other sessions open", async () => {
    const [one, two] = [await server.login(ADMIN), await server.login(ADMIN)];
    const answer = await server.post(LOGOUT, {}, bearer(one.access_token));
    expect(answer.status).toBe(200);
    expect((await server.sql("SELECT 1", { token: one.access_token })).status).toBe(401);
    expect((await server.post(REFRESH, { refresh_token: one.refresh_token })).status).toBe(401);
    expect((await server.sql("SELECT 1", { token: two.access_token })).status).toBe(200);
  });

  test("logout of all ends every session of the user", async () => {
    const token = await server.createUser("mia");
    const other = await server.login("mia");
    await server.post(LOGOUT, { all: true }, bearer(token));
    expect((await server.sql("SELECT 1", { token: other.access_token })).status).toBe(401);
  });

  test("me returns the caller, identified by header or cookie", async () => {
    const { access_token: token } = await server.login(ADMIN);
    const wanted = { user: { id: "ada", role: "dba" }, admin_ui_access: true };
    expect(await (await server.get(ME, bearer(token))).json()).toMatchObject(wanted);
    const byCookie = await server.get(ME, { Cookie: `tidemark_auth=${token}` });
    expect(await byCookie.json()).toMatchObject(wanted);
    expect(await statusAndError(await server.get(ME))).toEqual([401, "unauthorized"]);
  });

  test("a cookie gives access only to the endpoints for browsers", async () => {
    const { access_token: token } = await server.login(ADMIN);
    const headers = { Cookie: `tidemark_auth=${token}` };
    expect((await server.post("/v1/api/sql", { sql: "SELECT 1" }, headers)).status).toBe(401);
  });

  test.each([
    ["a new password", "ALTER USER nina SET PASSWORD 'correct horse 8'"],
    ["a new role", "ALTER USER nina SET ROLE service"],
    ["the end of the account", "DROP USER nina"],
  ])("%s ends all tokens and sockets of a user", async (_name, sql) => {
    await server.rows("DROP USER IF EXISTS nina");
    const token = await server.createUser("nina");
    const socket = await SocketClient.connect(server.url, { token });
    await socket.expect("auth_success");
    await server.rows(sql);
    expect((await server.sql("SELECT 1", { token })).status).toBe(401);
    expect(await socket.closed()).toMatchObject({ code: 1008 });
  });

  test("roles determine who may define objects, and on whose behalf a user may act", async () => {
    const user = await server.createUser("uma");
    const service = await server.createUser("sid", "service");
    const code = async (sql: string, token: string): Promise<string | undefined> => {
      const { body } = await server.sql(sql, { token });
      return body.error?.code;
    };
    expect(await code("CREATE NAMESPACE mine", user)).toBe("PERMISSION_DENIED");
    expect(await code("CREATE NAMESPACE mine", service)).toBe("PERMISSION_DENIED");
    expect(await code("CREATE USER x INTERNAL", user)).toBe("PERMISSION_DENIED");
    expect(await code("EXECUTE AS USER 'sid' (SELECT 1)", user)).toBe("PERMISSION_DENIED");
    expect(await code("EXECUTE AS USER 'uma' (SELECT 1)", service)).toBeUndefined();
    expect(await code("EXECUTE AS USER 'ada' (SELECT 1)", service)).toBe("PERMISSION_DENIED");
    expect(await code("EXECUTE AS USER 'root' (SELECT 1)", server.token)).toBe("PERMISSION_DENIED");
  });

  test("the audit log names the request that caused each event", async () => {
    const body = { user: ADMIN, password: "wrong" };
    await server.post(LOGIN, body, { "X-Request-ID": "mine-7" });
    const named =
      "SELECT action, outcome FROM system.audit_log WHERE details ->> 'request_id' = 'mine-7'";
    // The response to a login does not wait for its audit entry. The server writes entries in
    // order, so once the entry of the new user exists, the entry of the login exists, too.
    await server.createUser("una");
    expect(await server.rows(named)).toEqual([["login", "failed"]]);
  });

  test("no statement reveals a password", async () => {
    await server.createUser("otto");
    const texts = await Promise.all(
      ["SELECT * FROM system.users", "SELECT * FROM system.settings", "SHOW ALL"].map((sql) =>
        server.sql(sql).then(({ body }) => JSON.stringify(body)),
      ),
    );
    for (const text of texts) expect(text).not.toMatch(/\$argon2|correct horse|battery staple/);
    expect(server.output).not.toMatch(/\$argon2|correct horse|battery staple/);
  });
});
