/**
 * Runs the tests in parallel, and reports at the end which of them were skipped and why, so that a
 * run without Chromium is not taken for a complete one.
 *
 *     bun scripts/test.ts [files, folders and flags of bun test]      npm test -- tests/sql
 *
 * A complete run first compiles the server, and tests that need a server process start that
 * executable. A run of selected tests starts the server from its sources.
 *
 * The test files of a worker share one module registry. This is safe because no test replaces a
 * module, and it saves a quarter of the run, which loading the sources for each of 300 files takes.
 *
 * A complete run starts the slowest files first, by `tests/timings.json`, and writes that file with
 * `--update-timings`.
 *
 * Exits with the code of the runner. A signal also ends the runner.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { SkippedTests } from "./support/skipped_tests.ts";

const TIMEOUT_MS = 30_000;

/** One more than there are processors, because many tests wait for a server or a browser. */
const WORKERS = navigator.hardwareConcurrency + 1;

/** The slowest files start first, so that none of them runs alone at the end. */
const TIMINGS = "--timings=tests/timings.json";

const skipped = new SkippedTests();

/** Forwards a stream as it arrives, and passes its lines to the collector. */
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

/** @returns The path of the executable. @throws If the server does not compile. */
function compileServer(directory: string): string {
  const command = [process.execPath, "scripts/build.ts", "--out", directory];
  const built = Bun.spawnSync(command, { stdout: "ignore", stderr: "inherit" });
  if (!built.success) throw new Error("Cannot run the tests: the server does not compile");
  return join(directory, `tidemark-${process.platform}-${process.arch}`);
}

async function run(args: readonly string[], env: Record<string, string>): Promise<number> {
  const flags = [`--parallel=${WORKERS}`, "--no-isolate", `--timeout=${TIMEOUT_MS}`];
  const runner = Bun.spawn([process.execPath, "test", ...flags, ...args], {
    env: { ...process.env, ...env },
    stdin: "ignore",
    stdout: "pipe",
    stderr: "pipe",
  });
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) {
    process.on(signal, () => runner.kill(signal));
  }
  await Promise.all([pass(runner.stdout, process.stdout), pass(runner.stderr, process.stderr)]);
  return await runner.exited;
}

const args = process.argv.slice(2);
const env: Record<string, string> = {};
if (process.stderr.isTTY && process.env["NO_COLOR"] === undefined) env["FORCE_COLOR"] = "1";
const isWhole = args.every((arg) => arg.startsWith("-"));
const directory = isWhole ? mkdtempSync(join(tmpdir(), "tidemark-tests-")) : undefined;
try {
  if (directory !== undefined) env["TIDEMARK_TEST_PROGRAM"] = compileServer(directory);
  process.exitCode = await run(isWhole ? [TIMINGS, ...args] : args, env);
} finally {
  if (directory !== undefined) rmSync(directory, { recursive: true, force: true });
}
process.stderr.write(skipped.report());
