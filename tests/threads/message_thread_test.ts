/**
 * Threads that cannot be started: who asks for one is told, and nothing is thrown.
 */
import { afterEach, expect, test } from "bun:test";
import { startThread } from "../../src/threads/message_thread.ts";

const { Worker: realWorker } = globalThis;

afterEach(() => {
  globalThis.Worker = realWorker;
});

/** Has the runtime fail to start a thread, as it does where the system refuses one. */
function failWith(error: Error): void {
  globalThis.Worker = new Proxy(realWorker, {
    construct() {
      throw error;
    },
  });
}

function start(): unknown {
  return startThread(new URL("file:///none.ts"), {
    onMessage: () => undefined,
    onFailure: () => undefined,
  });
}

test("startThread returns undefined where the system starts no more threads", () => {
  failWith(new TypeError("Failed to spawn worker thread"));
  expect(start()).toBeUndefined();
});

test("startThread passes on what it does not expect", () => {
  failWith(new RangeError("a bug"));
  expect(start).toThrow("a bug");
});
