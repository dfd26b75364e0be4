/**
 * Sends requests that no HTTP library would send, byte by byte over a socket. The server responds
 * to each of them, and stays up.
 */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { connect } from "node:net";
import { type ServerProcess, startReadyServer } from "../support/server_process.ts";

/** The maximum time that the test waits for a response, in milliseconds. */
const ANSWER_MS_MAX = 60_000;

let server: ServerProcess;

beforeAll(async () => {
  server = await startReadyServer();
  await server.rows("CREATE TABLE default.t (id INT PRIMARY KEY)");
});

afterAll(async () => {
  expect((await server.get("/health/live")).status).toBe(200);
  expect(server.output).not.toMatch(/stopping because of a bug/);
  await server.stop();
});

/** Sends bytes, and returns everything received until the server closes the connection. */
function exchange(request: string): Promise<string> {
  return new Promise((resolve, reject) => {
    const socket = connect(Number(new URL(server.url).port), "127.0.0.1");
    let answer = "";
    socket.setTimeout(ANSWER_MS_MAX, () => socket.destroy(new Error("No answer in time")));
    socket.on("data", (bytes) => {
      answer += bytes.toString("latin1");
    });
    socket.on("close", () => resolve(answer));
    socket.on("error", reject);
    socket.write(request);
  });
}

function subscribeTo(hostLine: string, version: string): Promise<string> {
  const body = '{"sql":"SUBSCRIBE TO default.t"}';
  return exchange(
    `POST /v1/api/sql HTTP/${version}\r\n${hostLine}Authorization: Bearer ${server.token}\r\n` +
      `Content-Type: application/json\r\nContent-Length: ${body.length}\r\n` +
      `Connection: close\r\n\r\n${body}`,
  );
}

test.each(["a:99999", "[", "%zz", ":", "[::1", "999.999.999.999", ""])(
  "a Host header that is not an address, %p, does not keep a statement from being answered",
  async (host) => {
    const answer = await subscribeTo(`Host: ${host}\r\n`, "1.1");
    expect(answer).toStartWith("HTTP/1.1 200 ");
    expect(answer).toContain("/v1/ws");
  },
);

test("a request without a Host header is routed by its path", async () => {
  expect(await subscribeTo("", "1.0")).toContain(" 200 ");
  expect(await exchange("GET /health/live HTTP/1.0\r\n\r\n")).toContain('{"status":"alive"}');
});
