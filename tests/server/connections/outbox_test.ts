/**
 * Verifies that an outbox knows when its socket is full without querying the socket for each
 * frame. The tests use a socket that counts these queries and accepts as many bytes as the test
 * specifies.
 */
import { expect, test } from "bun:test";
import { Outbox, type OutboxSocket } from "../../../src/server/connections/outbox.ts";
import { SocketFlusher } from "../../../src/server/connections/socket_flusher.ts";
import { ManualClock } from "../../support/manual_clock.ts";
import { noBugs } from "../../support/no_bugs.ts";

const BUDGET_BYTES = 100;

class NarrowSocket implements OutboxSocket {
  readonly frames: (string | Uint8Array)[] = [];
  backlog = 0;
  /** The number of bytes that the network accepts before the client reads. */
  capacity = Infinity;
  askedCount = 0;
  #corked = 0;
  #isCorked = false;

  /** As in the runtime, corked bytes count as sent until the socket is uncorked. */
  send(frame: string | Uint8Array): number {
    this.frames.push(frame);
    if (this.#isCorked) {
      this.#corked += frame.length;
      return frame.length;
    }
    return this.#take(frame.length) ? frame.length : -1;
  }

  cork(write: () => void): void {
    this.#isCorked = true;
    write();
    this.#isCorked = false;
    this.#take(this.#corked);
    this.#corked = 0;
  }

  getBufferedAmount(): number {
    this.askedCount += 1;
    return this.backlog;
  }

  ping(): number {
    return 0;
  }

  close(): void {}
  terminate(): void {}

  #take(bytes: number): boolean {
    const taken = Math.min(bytes, this.capacity);
    this.capacity -= taken;
    this.backlog += bytes - taken;
    return taken === bytes;
  }
}

function outboxOver(socket: OutboxSocket): Outbox {
  const flusher = new SocketFlusher(new ManualClock(), noBugs);
  const owner = {
    sendFailed: () => {
      throw new Error("a frame was dropped");
    },
  };
  return new Outbox({ socket, parts: { budgetBytes: BUDGET_BYTES, flusher }, owner });
}

test("a socket that accepts each frame completely is never asked for its backlog", async () => {
  const socket = new NarrowSocket();
  const outbox = outboxOver(socket);
  for (let round = 0; round < 20; round += 1) {
    expect(outbox.hold("x".repeat(60))).toBe(true);
    await Promise.resolve();
  }
  expect(socket.frames).toHaveLength(20);
  expect(socket.askedCount).toBe(0);
});

test("the bytes of a frame that the network did not accept count until they have drained", async () => {
  const socket = new NarrowSocket();
  const outbox = outboxOver(socket);
  socket.capacity = 0;
  expect(outbox.hold("x".repeat(60))).toBe(true);
  await Promise.resolve();
  expect(outbox.hold("x".repeat(60))).toBe(false);
  expect(socket.frames).toHaveLength(2);

  socket.backlog = 0;
  socket.capacity = Infinity;
  expect(outbox.hold("x".repeat(60))).toBe(true);
});

test("bytes that remain after uncorking count, although each of their frames was reported as sent", async () => {
  const socket = new NarrowSocket();
  const outbox = outboxOver(socket);
  socket.capacity = 0;
  expect(outbox.hold("x".repeat(40))).toBe(true);
  expect(outbox.hold("x".repeat(40))).toBe(true);
  await Promise.resolve();
  expect(socket.backlog).toBe(80);
  expect(outbox.hold("x".repeat(40))).toBe(false);
});

test("frames that are held together fill the budget without a backlog", () => {
  const socket = new NarrowSocket();
  const outbox = outboxOver(socket);
  expect(outbox.hold("x".repeat(60))).toBe(true);
  socket.capacity = 0;
  expect(outbox.hold("x".repeat(60))).toBe(false);
});

test("text and bytes keep their order when one frame becomes several", async () => {
  const socket = new NarrowSocket();
  const outbox = outboxOver(socket);
  const bytes = Uint8Array.of(1, 2);
  outbox.hold(bytes);
  await Promise.resolve();
  outbox.hold("a");
  outbox.hold(bytes);
  outbox.hold("b");
  outbox.send("c");
  expect(socket.frames).toEqual([bytes, "a", bytes, "b", "c"]);
});
