/**
 * Tests the load generator's response parser, because an error in it would distort measurements.
 */
import { expect, test } from "bun:test";
import { answerFrom, HttpConnection } from "../../scripts/bench/systems/http_connection.ts";

test.each([
  ["by length", 'HTTP/1.1 200 OK\r\nContent-Length: 7\r\n\r\n{"a":1}'],
  [
    "by chunks",
    'HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n3\r\n{"a\r\n4\r\n":1}\r\n0\r\n\r\n',
  ],
])("answerFrom waits for the complete body if it ends %s", (_name, text) => {
  const bytes = Buffer.from(text);
  for (let length = 0; length < bytes.length; length += 1) {
    expect(answerFrom(bytes.subarray(0, length)), `${length} bytes`).toBeUndefined();
  }
  expect(answerFrom(bytes)).toEqual({ status: 200, body: '{"a":1}' });
});

test("HttpConnection sends one request after the other on one connection", async () => {
  using server = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    async fetch(request) {
      const { length } = await request.text();
      return Response.json([request.headers.get("Authorization"), length], { status: 201 });
    },
  });
  const connection = await HttpConnection.open(server.url.href);
  const large = "x".repeat(3_000_000);
  for (const body of ["one", large, "three"]) {
    const answer = await connection.post("/path", "t", body);
    expect(answer).toEqual({ status: 201, body: JSON.stringify(["Bearer t", body.length]) });
  }
  connection.close();
});
