/**
 * Verifies that the server never accepts a forged token: in a header of a request, an upgrade, a
 * download or a stream, in a cookie, or in a message. The tests use the real process. It knows the
 * secret with which some of the forged tokens are signed, and trusts the issuer that signs others.
 */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { SocketClient } from "../support/client.ts";
import { forgedIssuerTokens } from "../support/forged_issuer_tokens.ts";
import { type ForgedToken, forgedTokens } from "../support/forged_tokens.ts";
import { SigningIssuer } from "../support/oidc_provider.ts";
import { type ServerProcess, startReadyServer } from "../support/server_process.ts";

const SECRET = "k7Qm2vX9pL4sW8zR1tY6uB3nC5dF0gHj";

/**
 * The maximum length of a header. The runtime refuses longer ones before the server reads a token.
 */
const HEADER_LENGTH_MAX = 8000;

let issuer: SigningIssuer;
let server: ServerProcess;
let filePath: string;

beforeAll(async () => {
  issuer = await SigningIssuer.start();
  server = await startReadyServer({
    config: {
      auth: { jwt_secret: SECRET },
      oidc: { auto_provision: true },
      "oidc.providers.idp": { issuer: issuer.url, audience: "db" },
      limits: { auth_requests_per_sec_per_ip: 0, requests_per_sec_per_ip: 0 },
    },
  });
  await server.createUser("bob");
  await server.rows(
    `CREATE NAMESPACE app;
     CREATE TABLE app.docs (id INT PRIMARY KEY, doc FILE) WITH (TYPE = 'SHARED', ACCESS_LEVEL = 'PUBLIC')`,
  );
  const form = new FormData();
  form.set("sql", "INSERT INTO app.docs VALUES (1, FILE('p'))");
  form.set("file:p", new File(["secret"], "p.txt", { type: "text/plain" }));
  const headers = { Authorization: `Bearer ${server.token}` };
  await fetch(`${server.url}/v1/api/sql`, { method: "POST", headers, body: form });
  const [row] = await server.rows("SELECT doc FROM app.docs");
  const { id, sub } = JSON.parse(String(row?.[0])) as { id: string; sub: string };
  filePath = `/v1/files/app/docs/${sub}/${id}`;
});

afterAll(async () => {
  await server.stop();
  issuer[Symbol.dispose]();
});

type Door = (token: string) => Promise<unknown>;

/** The ways to present a token in a header. */
const HEADER_DOORS: Readonly<Record<string, Door>> = {
  sql: async (token) => (await server.sql("SELECT 1", { token })).status,
  me: async (token) => (await server.get("/v1/api/auth/me", bearer(token))).status,
  "cookie of me": async (token) => (await server.get("/v1/api/auth/me", cookie(token))).status,
  file: async (token) => (await server.get(filePath, bearer(token))).status,
  "cookie of a file": async (token) => (await server.get(filePath, cookie(token))).status,
  stream: async (token) => {
    const sql = encodeURIComponent("SELECT id FROM app.docs");
    const response = await server.get(`/v1/api/live?sql=${sql}`, bearer(token));
    await response.body?.cancel();
    return response.status;
  },
  upgrade: async (token) => {
    const socket = await SocketClient.connect(server.url, { token, query: "?compress=false" });
    const message = await socket.next();
    socket.close();
    return "type" in message && message.type === "auth_error" ? 401 : message;
  },
};

async function byMessage(token: string): Promise<unknown> {
  const socket = await SocketClient.connect(server.url, { query: "?compress=false" });
  socket.send({ type: "authenticate", method: "jwt", token });
  const answer = await socket.next();
  socket.close();
  return "type" in answer && answer.type === "auth_error" ? 401 : answer;
}

function bearer(token: string): Record<string, string> {
  return { Authorization: `Bearer ${token}` };
}

function cookie(token: string): Record<string, string> {
  return { Cookie: `tidemark_auth=${token}` };
}

async function requireRefused(forged: readonly ForgedToken[]): Promise<void> {
  const accepted: unknown[] = [];
  for (const { attack, token } of forged) {
    const isHeader = token.length <= HEADER_LENGTH_MAX && /^[\x21-\x7e]+$/.test(token);
    const doors = isHeader ? { ...HEADER_DOORS, message: byMessage } : { message: byMessage };
    // The server decodes cookie values, so an encoded token in a cookie is not a forgery.
    const usable = Object.entries(doors).filter(
      ([door]) => !(door.startsWith("cookie") && token.includes("%")),
    );
    const found = await Promise.all(
      usable.map(async ([door, present]) => [door, await present(token)] as const),
    );
    for (const [door, status] of found) if (status !== 401) accepted.push({ attack, door, status });
  }
  expect(accepted).toEqual([]);
}

test("every door accepts a token of this server, so that the forged ones are refused for their fault", async () => {
  for (const token of [server.token, await issuer.token()]) {
    for (const [name, door] of Object.entries({ ...HEADER_DOORS, message: byMessage })) {
      const found = await door(token);
      const isCookie = name.startsWith("cookie") && token !== server.token;
      if (name === "upgrade" || name === "message") {
        expect(found, name).toMatchObject({ type: "auth_success" });
      } else if (!isCookie) expect(found, name).toBe(200);
    }
  }
});

test("no door accepts a forged token of this server", async () => {
  const { token } = server;
  // A time in seconds that lies beyond the end of this test.
  const nowSeconds = Math.floor(Date.now() / 1000) + 3600;
  await requireRefused(forgedTokens({ token, secret: SECRET, nowSeconds }));
});

test("a refresh accepts no forged refresh token", async () => {
  const { refresh_token: token } = await server.login("bob");
  const nowSeconds = Math.floor(Date.now() / 1000) + 3600;
  const accepted: string[] = [];
  for (const forged of forgedTokens({ token, secret: SECRET, nowSeconds })) {
    // A forgery that sets a claim to its present value yields the original token.
    if (forged.token === token) continue;
    const body = { refresh_token: forged.token };
    const { status } = await server.post("/v1/api/auth/refresh", body);
    if (![400, 401, 413].includes(status)) accepted.push(`${status} ${forged.attack}`);
  }
  expect(accepted).toEqual([]);
});

test("no door accepts a forged token of a trusted issuer, and nothing is fetched from a stranger", async () => {
  using thief = await SigningIssuer.start();
  await requireRefused(await forgedIssuerTokens(issuer, thief));
  expect(thief.requested).toEqual([]);
  expect(
    await server.rows("SELECT COUNT(*) FROM system.users WHERE user_id = 'oidc:idp:root'"),
  ).toEqual([[0]]);
});
