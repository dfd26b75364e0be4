/**
 * Verifies that a user who does not finish a large body delays only their own large bodies, and
 * only as long as the connection lasts. The tests send requests byte by byte to a server that has
 * room for one and a half large bodies per user.
 */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { connect, type Socket } from "node:net";
import { type ServerProcess, startReadyServer } from "../support/server_process.ts";

const BODY_BYTES = 2 << 20;
const BODY = `${'{"sql":"SELECT 7 AS seven"'.padEnd(BODY_BYTES - 1)}}`;

/**
 * The number of requests by other users. While the server answers them, it would also have
 * answered a request that did not have to wait.
 */
const OTHERS = 5;

let server: ServerProcess;
let ann: string;
let bob: string;

beforeAll(async () => {
  server = await startReadyServer({
    config: {
      limits: { max_body_bytes: 3 << 20 },
      files: { max_size_bytes: 1 << 20, max_request_bytes: 3 << 20 },
      // The test sets the limits of a large machine, so that it does not depend on the machine it
      // runs on.
      performance: { memory_bytes: 32 * 2 ** 30 },
    },
  });
  ann = await server.createUser("ann");
  bob = await server.createUser("bob");
});

afterAll(async () => {
  expect(server.output).not.toMatch(/stopping because of a bug/);
  await server.stop();
});

/** A request whose body the test sends piece by piece. */
class Sent {
  readonly #socket: Socket;
  readonly answer: Promise<string>;
  isAnswered = false;

  constructor(token: string, length: string, path = "/v1/api/sql") {
    const socket = connect(Number(new URL(server.url).port), "127.0.0.1");
    this.#socket = socket;
    this.answer = new Promise((resolve) => {
      let text = "";
      socket.on("data", (bytes) => {
        this.isAnswered = true;
        text += bytes.toString("latin1");
      });
      socket.on("error", () => socket.destroy());
      socket.on("close", () => resolve(text));
    });
    socket.write(
      `POST ${path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n` +
        `Authorization: Bearer ${token}\r\nConnection: close\r\n${length}\r\n\r\n`,
    );
  }

  /**
   * Resolves once the operating system has accepted the bytes. This may never happen if the server
   * does not read the body.
   */
  send(text: string): Promise<void> {
    return new Promise((resolve) => this.#socket.write(text, () => resolve()));
  }

  leave(): void {
    this.#socket.destroy();
  }
}

const declared = `Content-Length: ${BODY_BYTES}`;
const chunked = "Transfer-Encoding: chunked";
const chunk = (text: string): string => `${text.length.toString(16)}\r\n${text}\r\n`;

/** Starts a request by ann with a large body, and sends more than half of the body. */
async function heldBack(): Promise<Sent> {
  const request = new Sent(ann, declared);
  await request.send(BODY.slice(0, BODY_BYTES - 10));
  // The server reads the header of the large request before it answers another user's later one.
  expect(await small(bob)).toBe(200);
  return request;
}

async function small(token: string): Promise<number> {
  const { status } = await server.post("/v1/api/sql", { sql: "SELECT 1" }, bearer(token));
  return status;
}

function bearer(token: string): Record<string, string> {
  return { Authorization: `Bearer ${token}` };
}

test.each([
  ["declared", declared, BODY],
  ["not declared", chunked, `${chunk(BODY)}0\r\n\r\n`],
])("a large body whose size is %s waits for one of the same user", async (_, length, body) => {
  const first = await heldBack();
  const second = new Sent(ann, length);
  void second.send(body);
  for (let other = 0; other < OTHERS; other += 1) {
    const large = new Sent(bob, declared);
    void large.send(BODY);
    expect(await large.answer).toContain('"seven"');
    expect(await small(ann)).toBe(200);
  }
  expect(second.isAnswered).toBe(false);

  await first.send(BODY.slice(BODY_BYTES - 10));
  for (const request of [first, second]) expect(await request.answer).toContain('"seven"');
});

test("a large body that waits continues when the client of the preceding one has disconnected", async () => {
  const first = await heldBack();
  const second = new Sent(ann, declared);
  void second.send(BODY);
  expect(await small(ann)).toBe(200);
  first.leave();
  expect(await second.answer).toContain('"seven"');
});

/**
 * Returns requests whose bodies never arrive. Their declared sizes still count towards the limit.
 */
function heads(count: number, path: string, headers: string): Sent[] {
  return Array.from({ length: count }, () => new Sent(ann, headers, path));
}

test("a user may leave 128 MiB of short bodies unfinished, and further requests are refused and closed", async () => {
  const bytes = 1_048_000;
  const count = Math.floor((128 << 20) / bytes);
  const kept = heads(count, "/v1/api/sql", `Content-Length: ${bytes}`);
  expect(await small(ann)).toBe(200);
  const answers = await Promise.all(
    heads(3, "/v1/api/sql", `Content-Length: ${bytes}`).map(({ answer }) => answer),
  );
  for (const answer of answers) {
    expect(answer).toMatch(/^HTTP\/1.1 429 [^]*\r\nRetry-After: 5\r\n[^]*RATE_LIMIT_EXCEEDED/);
  }
  expect(kept.some(({ isAnswered }) => isAnswered)).toBe(false);
  expect(await small(ann)).toBe(200);
  expect(await small(bob)).toBe(200);
  for (const request of kept) request.leave();
});

test("bodies of undeclared size count as a megabyte each", async () => {
  const kept = heads(128, "/v1/api/sql", chunked);
  expect(await small(ann)).toBe(200);
  const [last] = heads(1, "/v1/api/sql", chunked);
  expect(await last?.answer).toMatch(/^HTTP\/1.1 429 [^]*RATE_LIMIT_EXCEEDED/);
  expect(kept.some(({ isAnswered }) => isAnswered)).toBe(false);
  for (const request of kept) request.leave();
});

test("an address may leave 16 MiB of bodies unfinished before a login", async () => {
  const login = "/v1/api/auth/login";
  const kept = heads(256, login, "Content-Length: 65536");
  expect(await small(ann)).toBe(200);
  const [last] = heads(1, login, "Content-Length: 65536");
  expect(await last?.answer).toMatch(/^HTTP\/1.1 429 [^]*requests in progress from this address/);
  expect(kept.some(({ isAnswered }) => isAnswered)).toBe(false);
  expect(await small(ann)).toBe(200);
  for (const request of kept) request.leave();
});

test("a body that is refused for its size delays no other", async () => {
  const tooLarge = new Sent(ann, `Content-Length: ${4 << 20}`);
  expect(await tooLarge.answer).toContain(" 413 ");
  const next = new Sent(ann, declared);
  void next.send(BODY);
  expect(await next.answer).toContain('"seven"');
});
