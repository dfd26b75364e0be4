/**
 * Verifies that unfinished WebSocket messages never use more memory of the real process than their
 * sender is allowed, and that a sender who exceeds this limit gets an error.
 */
import { expect, test } from "bun:test";
import { existsSync } from "node:fs";
import { connect, type Socket } from "node:net";
import { startReadyServer } from "../support/server_process.ts";
import { until } from "../support/until.ts";

const MESSAGE_BYTES = 3_900_000;

interface Sender {
  readonly socket: Socket;
  answer: string;
}

/** Connects without a token, and sends part of a message. */
function sendUnfinished(url: string): Sender {
  const { host, hostname, port } = new URL(url);
  const socket = connect(Number(port), hostname);
  const sender: Sender = { socket, answer: "" };
  socket.on("data", (bytes) => {
    sender.answer += bytes.toString("latin1");
  });
  socket.on("error", () => undefined);
  socket.write(
    `GET /v1/ws HTTP/1.1\r\nHost: ${host}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n` +
      "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGlkZW1hcmsgYWJ1c2UhIQ==\r\n\r\n",
  );
  const head = Buffer.alloc(14);
  head[0] = 0x81;
  head[1] = 0x80 | 127;
  head.writeUInt32BE(MESSAGE_BYTES, 6);
  socket.write(head);
  socket.write(Buffer.alloc(MESSAGE_BYTES - 10, " "));
  return sender;
}

test.skipIf(!existsSync("/proc/self/fd"))(
  "callers who hold back the ends of their messages are refused beyond 16 MiB together",
  async () => {
    await using server = await startReadyServer({
      config: {
        websocket: { auth_timeout_secs: 60 },
        // The test sets the limit of a large machine, so that it does not depend on the machine it
        // runs on.
        performance: { memory_bytes: 32 * 2 ** 30 },
      },
    });
    const senders = Array.from({ length: 12 }, () => sendUnfinished(server.url));
    const refused = (): Sender[] =>
      senders.filter(({ answer }) => answer.includes("Too many unfinished or waiting messages"));
    // The limit has room for four of the messages.
    await until(() => refused().length === 8);
    expect(refused()[0]?.answer).toContain(
      "on the connections of this address, they take more than 16777216 bytes; finish sending a message",
    );
    expect(refused()[0]?.answer).toContain("RATE_LIMIT_EXCEEDED");
    await until(() => refused().every(({ socket }) => socket.closed));
    expect(senders.filter(({ socket }) => !socket.closed)).toHaveLength(4);
    for (const { socket } of senders) socket.destroy();
    expect(await server.rows("SELECT 1")).toEqual([[1]]);
  },
);
