/**
 * Verifies that bearer tokens of a trusted issuer are accepted wherever the server accepts bearer
 * tokens, and that each token gives access to the right account. The tests use the real process,
 * and an issuer that signs any token a test requests. Forged tokens are tested in
 * `forged_tokens_test.ts`.
 */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { SocketClient } from "../support/client.ts";
import { SigningIssuer, signingKey } from "../support/oidc_provider.ts";
import { type ServerProcess, startReadyServer } from "../support/server_process.ts";
import { shareOf } from "../support/thoroughness.ts";
import { until } from "../support/until.ts";

let issuer: SigningIssuer;
let server: ServerProcess;

beforeAll(async () => {
  issuer = await SigningIssuer.start(await signingKey("first"));
  server = await startReadyServer({
    config: {
      oidc: { auto_provision: true },
      "oidc.providers.idp": { issuer: issuer.url, audience: "db", claims: ["groups", "org"] },
    },
  });
});

afterAll(async () => {
  await server.stop();
  issuer[Symbol.dispose]();
});

/**
 * Runs a statement with a token. Returns the HTTP status, and the first cell or the error code.
 */
async function answer(token: string, sql = "SELECT CURRENT_USER"): Promise<[number, unknown]> {
  const { body, status } = await server.sql(sql, { token });
  return [status, body.error?.code ?? body.results[0]?.rows?.[0]?.[0]];
}

const REFUSED: [number, string] = [401, "INVALID_CREDENTIALS"];

test("a token of a trusted issuer gives its user an account, on HTTP and on sockets", async () => {
  const token = await issuer.token({
    sub: "anna",
    email: "anna@example.com",
    email_verified: true,
  });
  expect(await answer(token)).toEqual([200, "oidc:idp:anna"]);
  expect(await answer(token, "SELECT CURRENT_ROLE")).toEqual([200, "user"]);
  const me = await server.get("/v1/api/auth/me", { Authorization: `Bearer ${token}` });
  expect(await me.json()).toMatchObject({
    user: { id: "oidc:idp:anna", role: "user", email: "anna@example.com" },
  });
  const byHeader = await SocketClient.connect(server.url, { token, query: "?compress=false" });
  expect(await byHeader.expect("auth_success")).toMatchObject({ user: "oidc:idp:anna" });
  const other = await issuer.token({ sub: "berta" });
  const byMessage = await SocketClient.connect(server.url, { query: "?compress=false" });
  // A message that follows the token waits until the server has verified the token.
  byMessage.send({ type: "authenticate", method: "jwt", token: other });
  byMessage.send({ type: "ping", id: "p" });
  expect(await byMessage.expect("auth_success")).toMatchObject({ user: "oidc:idp:berta" });
  expect(await byMessage.expect("pong")).toMatchObject({ id: "p" });
  byHeader.close();
  byMessage.close();
  const audit = "SELECT action FROM system.audit_log WHERE target = 'oidc:idp:berta'";
  // The server writes the audit entry only after it has sent the response.
  await until(async () => (await server.rows(audit)).length > 0);
  expect(await server.rows(audit)).toEqual([["create user"]]);
});

test("an account is found by its link, and an account without a subject once by its id", async () => {
  await server.rows(`CREATE USER linked OAUTH '{"provider":"idp","subject":"7"}' ROLE service`);
  await server.rows(`CREATE USER "8" OAUTH '{"provider":"idp"}'`);
  await server.rows(`CREATE USER "9" OAUTH '{"provider":"other"}'`);
  await server.rows("CREATE USER ten INTERNAL");
  expect(await answer(await issuer.token({ sub: "7" }), "SELECT CURRENT_ROLE")).toEqual([
    200,
    "service",
  ]);
  expect(await answer(await issuer.token({ sub: "8" }))).toEqual([200, "8"]);
  const links = "SELECT auth_data FROM system.users WHERE user_id = '8'";
  expect(await server.rows(links)).toEqual([['{"provider":"idp","subject":"8"}']]);
  // A token gives no access to an account of a different provider, or of none.
  expect(await answer(await issuer.token({ sub: "9" }))).toEqual([200, "oidc:idp:9"]);
  expect(await answer(await issuer.token({ sub: "ten" }))).toEqual([200, "oidc:idp:ten"]);
});

test("a subject that cannot be part of an id, or resembles another one, gets a separate id", async () => {
  expect(await answer(await issuer.token({ sub: "case" }))).toEqual([200, "oidc:idp:case"]);
  const [, alike] = await answer(await issuer.token({ sub: "CASE" }));
  expect(alike).toMatch(/^oidc:idp:~[0-9a-f]{30}$/);
  const [, path] = await answer(await issuer.token({ sub: "../etc" }));
  expect(path).toMatch(/^oidc:idp:~[0-9a-f]{30}$/);
  expect(path).not.toBe(alike);
  expect((await answer(await issuer.token({ sub: "CASE" })))[1]).toBe(alike);
});

test("a dropped account is not created again by its user's next token", async () => {
  const token = await issuer.token({ sub: "leaver" });
  expect(await answer(token)).toEqual([200, "oidc:idp:leaver"]);
  await server.rows('DROP USER "oidc:idp:leaver"');
  expect(await answer(token)).toEqual(REFUSED);
  expect(await answer(await issuer.token({ sub: "leaver" }))).toEqual(REFUSED);
});

test("FILE_URL opens a file that policies permit by the claims of the token", async () => {
  await server.rows(
    `CREATE NAMESPACE media;
     CREATE TABLE media.pictures (id INT PRIMARY KEY, team TEXT, picture FILE) WITH (ACCESS_LEVEL = 'RESTRICTED');
     CREATE POLICY own_teams ON media.pictures FOR SELECT TO user
       USING (CLAIM('groups')::JSONB ? team AND CLAIM('iss') = '${issuer.url}')`,
  );
  const form = new FormData();
  form.set("sql", "INSERT INTO media.pictures VALUES (1, 'blue', FILE('p'))");
  form.set("file:p", new File(["of the blue team"], "p.txt", { type: "text/plain" }));
  const headers = { Authorization: `Bearer ${server.token}` };
  const stored = await fetch(`${server.url}/v1/api/sql`, { method: "POST", headers, body: form });
  expect(await stored.json()).toMatchObject({ status: "success" });
  const token = await issuer.token({ sub: "finn", groups: ["blue"] });
  const [status, url] = await answer(token, "SELECT FILE_URL(picture) FROM media.pictures");
  expect(status).toBe(200);
  expect(await (await server.get(String(url))).text()).toBe("of the blue team");
  // The claims in a signed URL cannot be replaced by claims that were not signed.
  const [, path = "", access = ""] = /^(.*[?]access=)(.*)$/.exec(String(url)) ?? [];
  const [session = "", ...signed] = access.split(".");
  const parts = JSON.parse(Buffer.from(session, "base64url").toString()) as unknown[];
  for (const claims of [{ iss: issuer.url, groups: '["blue", "red"]' }, { groups: 1 }, 1, null]) {
    const forged = Buffer.from(JSON.stringify([...parts.slice(0, 5), claims]));
    const changed = [forged.toString("base64url"), ...signed].join(".");
    expect((await server.get(path + changed)).status).toBe(401);
  }
});

test("CLAIM() returns the listed claims and a verified address, but never the role in the token", async () => {
  const claims =
    "SELECT CLAIM('groups'), CLAIM('org'), CLAIM('role'), CLAIM('email'), CLAIM('iss'), CLAIM('sub'), CLAIM('secret')";
  const given = {
    groups: ["a", "b"],
    org: "x",
    role: "dba",
    secret: "s",
    email: "cora@example.com",
  };
  const verified = await issuer.token({ ...given, sub: "cora", email_verified: true });
  const [row] = await server.rows(claims, { token: verified });
  expect(row).toEqual([
    '["a","b"]',
    "x",
    "user",
    "cora@example.com",
    issuer.url,
    "oidc:idp:cora",
    null,
  ]);
  for (const isVerified of [false, "true", 1, null, undefined]) {
    const sub = `dora${String(isVerified)}`;
    const unproven = await issuer.token({ ...given, sub, email_verified: isVerified });
    const [found = []] = await server.rows(claims, { token: unproven });
    expect(found[3], sub).toBeNull();
    const emails = `SELECT email FROM system.users WHERE user_id = 'oidc:idp:${sub}'`;
    expect(await server.rows(emails), sub).toEqual([[null]]);
  }
});

test("a logout ends the session of an external token, and the socket that it opened", async () => {
  const token = await issuer.token({ sub: "eva" });
  const socket = await SocketClient.connect(server.url, { token, query: "?compress=false" });
  await socket.expect("auth_success");
  const headers = { Authorization: `Bearer ${token}` };
  expect((await server.post("/v1/api/auth/logout", {}, headers)).status).toBe(200);
  expect(await socket.expect("error")).toMatchObject({ code: "TOKEN_REVOKED" });
  expect(await answer(token)).toEqual(REFUSED);
  expect(await answer(await issuer.token({ sub: "eva", n: 2 }))).toEqual([200, "oidc:idp:eva"]);
});

test("a token that has expired is refused, with tolerance for differences between clocks", async () => {
  const now = Math.floor(Date.now() / 1000);
  const age = (seconds: number): Promise<string> =>
    issuer.token({ iat: now - 3600, exp: now - seconds });
  expect(await answer(await age(30))).toEqual([200, "oidc:idp:1"]);
  expect(await answer(await age(120))).toEqual([401, "TOKEN_EXPIRED"]);
  expect(await answer(await issuer.token({ iat: now + 30 }))).toEqual([200, "oidc:idp:1"]);
});

const ALGORITHMS = ["ES256", "RS384", "RS512", "PS256", "ES384", "ES512", "EdDSA"];

test("a token may be signed with any algorithm that has a private key", async () => {
  const issuers = await Promise.all(
    shareOf(ALGORITHMS, { oneOf: 3 }).map(async (alg) =>
      SigningIssuer.start(await signingKey("k", alg)),
    ),
  );
  await using trusting = await startReadyServer({
    config: {
      auth: { jwt_trusted_issuers: issuers.map(({ url }) => url) },
      oidc: { auto_provision: true },
    },
  });
  for (const each of issuers) {
    const token = await each.token({ aud: "anybody" });
    const { host } = new URL(each.url);
    expect(await trusting.rows("SELECT CURRENT_USER", { token })).toEqual([[`oidc:${host}:1`]]);
    each[Symbol.dispose]();
  }
  expect(trusting.output).toContain(
    "tokens that these issuers issued for other applications are accepted",
  );
});

test("without oidc.auto_provision, an unknown user is refused like any wrong token", async () => {
  await using closed = await startReadyServer({
    config: { "oidc.providers.idp": { issuer: issuer.url, audience: "db" } },
  });
  const { body, status } = await closed.sql("SELECT 1", { token: await issuer.token() });
  expect([status, body.error?.code]).toEqual([401, "INVALID_CREDENTIALS"]);
  expect(await closed.rows("SELECT COUNT(*) FROM system.users WHERE auth_type = 'oauth'")).toEqual([
    [0],
  ]);
});
