/**
 * Tests threads that cannot be started: the caller is told of the failure, and nothing is thrown.
 */
import { afterEach, expect, test } from "bun:test";
import { existsSync } from "node:fs";
import { startThread } from "../../src/threads/mod.ts";

const { Worker: realWorker } = globalThis;

afterEach(() => {
  globalThis.Worker = realWorker;
});

/** Makes starting a thread fail, as it does when the system refuses to create one. */
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

test("startThread returns undefined if the system cannot start more threads", () => {
  failWith(new TypeError("Failed to spawn worker thread"));
  expect(start()).toBeUndefined();
});

test("startThread passes on unexpected errors", () => {
  failWith(new RangeError("a bug"));
  expect(start).toThrow("a bug");
});

test.skipIf(!existsSync("/proc/self/fd"))(
  "startThread counts the descriptors of threads that are about to open theirs",
  async () => {
    const script = new URL("../support/many_threads.ts", import.meta.url).pathname;
    const child = Bun.spawn(
      ["bash", "-c", 'ulimit -n 64; exec "$@"', "bash", process.execPath, script],
      { stdout: "pipe", stderr: "pipe" },
    );
    const [output, errors, code] = await Promise.all([
      new Response(child.stdout).text(),
      new Response(child.stderr).text(),
      child.exited,
    ]);
    expect({ errors, code }).toEqual({ errors: "", code: 0 });
    expect(Number(output)).toBeGreaterThan(0);
    expect(Number(output)).toBeLessThan(20);
  },
);
