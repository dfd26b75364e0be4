/**
 * Runs the tests in parallel, and reports at the end which of them were skipped and why, so that a
 * run without Chromium is not mistaken for a complete one.
 *
 * A complete run first compiles the server, and tests that need a server process start that
 * executable. A run of selected tests starts the server from its sources.
 *
 * Tests that repeat themselves over seeds, samples or cases do part of that work, always the same
 * part. With `--thorough` they do all of it (`tests/support/thoroughness.ts`), on a disk and with
 * the runtime's default settings. Otherwise two measures save a third of the processor time: the
 * files of a complete run are in memory if there is room, and the workers neither return memory to
 * the system at once nor optimise functions at length, which pays off only in long-running
 * processes. The servers that tests start are not affected.
 *
 * The test files of a worker share one module registry. This is safe because no test replaces a
 * module, and it saves a quarter of the run, which loading the sources for each of 300 files takes.
 *
 * A complete run starts the slowest files first, by `tests/timings.json`, and writes that file with
 * `--update-timings`.
 *
 * At its end, a run lists what it skipped or shortened, and the command that runs it.
 *
 * Exits with the code of the runner. A signal also ends the runner.
 */
import { accessSync, chmodSync, constants, mkdtempSync, rmSync, statfsSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { flag, readArguments } from "./support/arguments.ts";
import { SkippedTests } from "./support/skipped_tests.ts";

const TIMEOUT_MS = 30_000;

/** One more than the number of processors, because many tests wait for a server or a browser. */
const WORKERS = navigator.hardwareConcurrency + 1;

/** The slowest files start first, so that none of them runs alone at the end. */
const TIMINGS = "--timings=tests/timings.json";

/** A file system in memory. */
const MEMORY_FOLDER = "/dev/shm";

/** Several times the size of the files that the tests of a complete run have at a time. */
const MEMORY_BYTES_MIN = 4 * 1024 ** 3;

const PREFIX = "tidemark-tests-";

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

/** Makes a folder in which other users, such as PostgreSQL, may have folders. */
function openFolder(parent: string): string {
  const folder = mkdtempSync(join(parent, PREFIX));
  chmodSync(folder, 0o755);
  return folder;
}

/** @returns The folder for temporary files in memory, if the system has one with enough room. */
function memoryFolder(): string | undefined {
  try {
    accessSync(MEMORY_FOLDER, constants.W_OK);
    const { bavail, bsize } = statfsSync(MEMORY_FOLDER);
    return bavail * bsize >= MEMORY_BYTES_MIN ? MEMORY_FOLDER : undefined;
  } catch {
    // Only Linux has this folder, and not every container may write there.
    return undefined;
  }
}

/** Settings for the workers of an ordinary run. */
const QUICK_START: Readonly<Record<string, string>> = {
  BUN_JSC_useFTLJIT: "0",
};

const { options, words: args } = readArguments(
  { thorough: flag("does all of the work that tests repeat over seeds, samples or cases") },
  {
    form: "<file, folder or flag> …",
    about: "what bun test takes; all tests if no file or folder is named",
    countMin: 0,
    arePassedOn: true,
  },
);
const isThorough = options.thorough;
const env: Record<string, string> = isThorough
  ? { TIDEMARK_TEST_THOROUGH: "1" }
  : { ...QUICK_START };
if (process.stderr.isTTY && process.env["NO_COLOR"] === undefined) env["FORCE_COLOR"] = "1";
const isWhole = args.every((arg) => arg.startsWith("-"));
const directories: string[] = [];
try {
  if (isWhole) {
    directories.push(openFolder(tmpdir()));
    env["TIDEMARK_TEST_PROGRAM"] = compileServer(directories[0] ?? "");
    const memory = isThorough ? undefined : memoryFolder();
    // The executable stays outside, because containers do not let files in memory be executed.
    if (memory !== undefined) directories.push(openFolder(memory));
    env["TMPDIR"] = directories.at(-1) ?? "";
  }
  process.exitCode = await run(isWhole ? [TIMINGS, ...args] : args, env);
} finally {
  for (const directory of directories) rmSync(directory, { recursive: true, force: true });
}
process.stderr.write(skipped.report());
if (isWhole && !isThorough) {
  process.stderr.write(
    "\nTests that repeat themselves over seeds, samples or cases did a part of them. " +
      "All of it: npm test -- --thorough\n",
  );
}
