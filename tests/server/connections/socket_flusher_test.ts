/**
 * Verifies that the server writes a change for many sockets in slices, and appends later changes
 * in order for sockets that are still waiting. The test controls the ticks of the clock.
 */
import { expect, test } from "bun:test";
import type { Clock } from "../../../src/base/clock.ts";
import { Outbox, type OutboxSocket } from "../../../src/server/connections/outbox.ts";
import { SocketFlusher } from "../../../src/server/connections/socket_flusher.ts";
import { ManualClock } from "../../support/manual_clock.ts";
import { noBugs } from "../../support/no_bugs.ts";

const SOCKETS = 1000;

class CountingSocket implements OutboxSocket {
  readonly frames: (string | Uint8Array)[] = [];
  writes = 0;
  #isCorked = false;

  send(frame: string | Uint8Array): number {
    this.frames.push(frame);
    if (!this.#isCorked) this.writes += 1;
    return frame.length;
  }

  cork(write: () => void): void {
    this.#isCorked = true;
    write();
    this.#isCorked = false;
    this.writes += 1;
  }

  getBufferedAmount(): number {
    return 0;
  }

  ping(): number {
    return 0;
  }

  close(): void {}
  terminate(): void {}
}

function fieldOf(count: number): {
  sockets: CountingSocket[];
  sendAll: (frame: string) => void;
  giveTurn: () => Promise<boolean>;
} {
  const ticks: (() => void)[] = [];
  const clock: Clock = Object.assign(new ManualClock(), {
    yield: () => new Promise<void>((resolve) => ticks.push(resolve)),
  });
  const parts = { budgetBytes: 1_000_000, flusher: new SocketFlusher(clock, noBugs) };
  const sockets = Array.from({ length: count }, () => new CountingSocket());
  const owner = {
    sendFailed: () => {
      throw new Error("a frame was dropped");
    },
  };
  const outboxes = sockets.map((socket) => new Outbox({ socket, parts, owner }));
  return {
    sockets,
    sendAll: (frame) => {
      for (const outbox of outboxes) expect(outbox.hold(frame)).toBe(true);
    },
    giveTurn: async () => {
      const tick = ticks.shift();
      tick?.();
      await Promise.resolve();
      await Promise.resolve();
      return tick !== undefined;
    },
  };
}

test("frames of later changes share the write to sockets that are still waiting", async () => {
  const { giveTurn, sendAll, sockets } = fieldOf(SOCKETS);
  sendAll("a");
  await Promise.resolve();
  const early = sockets.filter(({ frames }) => frames.length > 0).length;
  // At first, the change goes to only a few sockets, because the response to its author comes
  // next.
  expect(early).toBe(32);

  sendAll("b");
  while (await giveTurn()) continue;

  for (const { frames } of sockets) expect(frames).toEqual(["a", "b"]);
  const writeCount = sockets.reduce((sum, { writes }) => sum + writes, 0);
  expect(writeCount).toBe(SOCKETS + early);
});

test("a socket that receives several changes keeps its order and its place", async () => {
  const { giveTurn, sendAll, sockets } = fieldOf(SOCKETS);
  const sent: string[] = [];
  for (let round = 0; round < 50; round += 1) {
    sent.push(String(round));
    sendAll(String(round));
    await giveTurn();
  }
  while (await giveTurn()) continue;

  for (const { frames } of sockets) expect(frames).toEqual(sent);
});
