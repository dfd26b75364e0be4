/**
 * Runs the tests as `bun test` does, in parallel, and says at the end which of them were skipped
 * and why, so that nobody takes a run without Chromium for a whole one.
 *
 *     bun scripts/test.ts [arguments of bun test]      npm test -- tests/sql
 *
 * Exits as the runner does. A signal ends the runner, too.
 */
import { SkippedTests } from "./support/skipped_tests.ts";

const TIMEOUT_MS = 30_000;

const skipped = new SkippedTests();

/** Passes a stream on as it comes, and its lines to the collector. */
async function pass(from: ReadableStream<Uint8Array>, to: NodeJS.WriteStream): Promise<void> {
  const decoder = new TextDecoder();
  let rest = "";
  for await (const chunk of from) {
    to.write(chunk);
    const lines = (rest + decoder.decode(chunk, { stream: true })).split("\n");
    rest = lines.pop() ?? "";
    for (const line of lines) skipped.read(line);
  }
}

const colours = process.stderr.isTTY && process.env["NO_COLOR"] === undefined;
const runner = Bun.spawn(
  [process.execPath, "test", "--parallel", `--timeout=${TIMEOUT_MS}`, ...process.argv.slice(2)],
  {
    env: { ...process.env, ...(colours ? { FORCE_COLOR: "1" } : {}) },
    stdin: "ignore",
    stdout: "pipe",
    stderr: "pipe",
  },
);
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) {
  process.on(signal, () => runner.kill(signal));
}
await Promise.all([pass(runner.stdout, process.stdout), pass(runner.stderr, process.stderr)]);
process.exitCode = await runner.exited;
process.stderr.write(skipped.report());
