/**
 * Tests requests that no client library sends: truncated, with malformed headers, or with wrong
 * lengths. The server must respond or disconnect, and must not treat any of them as a bug.
 */

import { afterAll, beforeAll, expect, test } from "bun:test";
import { defined } from "../../src/base/assert.ts";
import { startTestServer, type TestServer } from "../support/http.ts";
import { until } from "../support/until.ts";

let server: TestServer;
let head: string;

beforeAll(async () => {
  server = await startTestServer();
  const token = await server.token();
  head = `Host: localhost\r\nAuthorization: Bearer ${token}\r\nContent-Type: application/json\r\n`;
});

afterAll(async () => {
  await server.close();
});

function runningCount(): number {
  const found = server.server.metrics().find(({ name }) => name.endsWith("_http_requests_running"));
  return Number(defined(found, "the metric must exist").value);
}

/**
 * Sends bytes to the server. Returns the bytes received before either side disconnected. With
 * `hangUp`, the client disconnects as soon as the server has begun to process the request.
 */
async function exchange(text: string, { hangUp }: { hangUp: boolean }): Promise<string> {
  const answered = Promise.withResolvers<void>();
  let received = "";
  const socket = await Bun.connect({
    hostname: "127.0.0.1",
    port: server.server.port,
    socket: {
      data(_socket, bytes) {
        received += bytes.toString();
        answered.resolve();
      },
      close: () => answered.resolve(),
      error: () => answered.resolve(),
    },
  });
  socket.write(text);
  if (hangUp) {
    socket.flush();
    await until(() => runningCount() > 0);
  } else {
    await answered.promise;
  }
  socket.end();
  return received;
}

test.each([
  ["a declared body", "Content-Length: 100\r\n\r\n{"],
  ["a chunked body", 'Transfer-Encoding: chunked\r\n\r\n5\r\n{"sql\r\n'],
  ["nothing of the body", "Content-Length: 100\r\n\r\n"],
])("a client that hangs up after %s causes no harm", async (_what, rest) => {
  for (const path of ["/v1/api/sql", "/v1/api/auth/login"]) {
    await exchange(`POST ${path} HTTP/1.1\r\n${head}${rest}`, { hangUp: true });
    await until(() => runningCount() === 0);
  }
  expect((await server.sql({ sql: "SELECT 1" })).status).toBe(200);
  expect(server.bugs).toEqual([]);
});

test.each([
  ["a logout", "una", (token: string) => server.auth.logout(token, { address: "127.0.0.1" })],
  ["another role", "uri", () => server.catalog.accounts.change("uri", { role: "service" })],
  ["DROP USER", "ute", () => server.catalog.accounts.drop("ute")],
])("a body that is withheld until %s does nothing", async (_what, user, endSession) => {
  const token = await server.token(user);
  const before = server.requests.length;
  let answer = "";
  const answered = Promise.withResolvers<void>();
  const socket = await Bun.connect({
    hostname: "127.0.0.1",
    port: server.server.port,
    socket: {
      data(_socket, bytes) {
        answer += bytes.toString();
        answered.resolve();
      },
      close: () => answered.resolve(),
    },
  });
  const body = '{"sql":"SELECT 1"}';
  const ownHead = `Host: localhost\r\nAuthorization: Bearer ${token}\r\nContent-Length: ${body.length}`;
  socket.write(`POST /v1/api/sql HTTP/1.1\r\n${ownHead}\r\n\r\n${body.slice(0, 3)}`);
  socket.flush();
  await until(() => runningCount() > 0);
  endSession(token);
  socket.write(body.slice(3));
  await answered.promise;
  socket.end();

  expect(answer).toStartWith("HTTP/1.1 401 ");
  expect(answer).toContain('"code":"INVALID_CREDENTIALS"');
  expect(server.requests.length).toBe(before);
  expect(server.bugs).toEqual([]);
});

test.each([
  ["a bad chunk", "POST /v1/api/sql", "Transfer-Encoding: chunked\r\n\r\nZZ\r\n{", 400],
  ["an invalid length", "POST /v1/api/sql", "Content-Length: abc\r\n\r\n{", 400],
  ["two lengths", "POST /v1/api/sql", "Content-Length: 1\r\nContent-Length: 2\r\n\r\n{}", 400],
  [
    "a length together with chunks",
    "POST /v1/api/sql",
    "Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    400,
  ],
  ["a length beyond any size", "POST /v1/api/sql", "Content-Length: 99999999999\r\n\r\n{", 413],
  ["no path", "OPTIONS *", "\r\n", 400],
  ["a dotted path", "GET /v1/../health/live", "\r\n", 200],
  ["a path that is percent-encoded", "GET /%68ealth/live", "\r\n", 404],
])("%s is refused or has only one interpretation", async (_what, line, rest, status) => {
  const answer = await exchange(`${line} HTTP/1.1\r\n${head}${rest}`, { hangUp: false });
  expect(answer).toStartWith(`HTTP/1.1 ${status} `);
  expect(server.bugs).toEqual([]);
});

test("a request for a tunnel is refused with an explanation", async () => {
  const answer = await exchange(`CONNECT example.org:443 HTTP/1.1\r\n${head}\r\n`, {
    hangUp: false,
  });
  expect(answer).toContain('"message":"There is no example.org:443: ');
});

test("a Host header that would shift the path gets 400", async () => {
  for (const host of ["a/health/live?", "a/metrics#", "a b", "a\\b"]) {
    const answer = await exchange(`GET / HTTP/1.1\r\nHost: ${host}\r\n\r\n`, { hangUp: false });
    expect(answer).toStartWith("HTTP/1.1 400 ");
  }
});

test("headers above the limit of the runtime get 431", async () => {
  const answer = await exchange(
    `GET /health HTTP/1.1\r\nHost: localhost\r\nX: ${"y".repeat(40_000)}\r\n\r\n`,
    { hangUp: false },
  );
  expect(answer).toStartWith("HTTP/1.1 431 ");
});
