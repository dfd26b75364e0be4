/**
 * Runs the tests in parallel, and reports at the end which of them were skipped and why, so that a
 * run without Chromium is not mistaken for a complete one.
 *
 * A complete run compiles the server, unless TIDEMARK_TEST_PROGRAM names an executable, and tests
 * that need a server process start that executable. The first tests run while it is compiled, and
 * files with such tests wait for it. A run of selected tests starts the server from a bundle.
 *
 * Tests that iterate over seeds, samples or cases do only part of that work, always the same part.
 * With `--thorough`, they do all of it (`tests/support/thoroughness.ts`), with their files on a
 * disk. Without it, the files of a complete run are in memory if there is enough.
 *
 * The workers skip the slower optimisations of functions, which pay off only in long-running
 * processes and take a quarter of the processor time. They return freed memory to the system only
 * after a second, because returning it at once and requesting it again would take a sixth of the
 * processor time. The servers that tests start have the same settings, except those whose memory a
 * test measures (`AS_FOR_USERS`). The campaigns that measure servers run them without these
 * settings.
 *
 * The test files of a worker share one module registry. This is safe because no test replaces a
 * module. It saves a quarter of the run time, because each of the 300 files would otherwise load
 * the sources again.
 *
 * A run starts the slowest files first, according to `tests/timings/usual.json` or, with
 * `--thorough`, to `thorough.json` next to it, because some files are slow only in a thorough run.
 * With `--update-timings`, it updates the file that it uses.
 *
 * At the end, a run lists the tests that it skipped or shortened, and the command that runs them
 * completely.
 *
 * With `--retry-failed`, up to three files with failed tests run once more, each on its own. If
 * they pass, the run passes, but the summary names the tests, because a test that fails on a busy
 * machine has to be fixed, too. If more files than that fail, the change is at fault.
 *
 * Exits with 0 if the tests pass, and otherwise with the runner's exit code. A signal also ends
 * the runner.
 */
import {
  accessSync,
  chmodSync,
  constants,
  mkdtempSync,
  readFileSync,
  renameSync,
  rmSync,
  statfsSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { flag, readArguments } from "./support/arguments.ts";
import { FailedTests } from "./support/failed_tests.ts";
import { SkippedTests } from "./support/skipped_tests.ts";

/**
 * The time limit of a test, in milliseconds. A test that takes longer counts as hung. No test is
 * this slow on an idle machine, but the machine may be busy.
 */
const TIMEOUT_MS = 120_000;

/**
 * The number of worker processes: three more than the number of processors, because many tests wait
 * for a server, a browser or a certain time.
 */
const WORKERS = navigator.hardwareConcurrency + 3;

/** The environment variable that contains the path of the server's executable. */
const PROGRAM = "TIDEMARK_TEST_PROGRAM";

/**
 * The folder of the files that record how long test files take. The slowest files start first, so
 * that no single slow file prolongs the run.
 */
const TIMINGS = "tests/timings";

/** The folder at which Linux mounts an in-memory file system. */
const MEMORY_FOLDER = "/dev/shm";

/**
 * The minimum free space for in-memory files, in bytes. It is several times the size of the files
 * that exist at any one time during a complete run.
 */
const MEMORY_BYTES_MIN = 4 * 1024 ** 3;

const PREFIX = "tidemark-tests-";

const SIGNALS = ["SIGINT", "SIGTERM", "SIGHUP"] as const;

/** The maximum number of files with failed tests that a run retries. */
const RETRIED_FILES_MAX = 3;

/** A consumer of the test runner's output, which receives it line by line. */
interface LineReader {
  read(line: string): void;
}

/** Forwards a stream of output as it arrives, and passes its lines to the readers. */
async function pass(
  from: ReadableStream<Uint8Array>,
  to: NodeJS.WriteStream,
  readers: readonly LineReader[],
): Promise<void> {
  const decoder = new TextDecoder();
  let rest = "";
  for await (const chunk of from) {
    to.write(chunk);
    const lines = (rest + decoder.decode(chunk, { stream: true })).split("\n");
    rest = lines.pop() ?? "";
    for (const line of lines) for (const reader of readers) reader.read(line);
  }
}

/** Whether a signal has ended the run. */
let isStopped = false;

/**
 * Compiles the server, so that every test can start it quickly. The executable appears at its path
 * once it is complete.
 *
 * @throws If the server does not compile.
 */
async function compileServer(program: string): Promise<void> {
  const folder = `${program}.pending`;
  const command = [process.execPath, "scripts/build.ts", "--out", folder];
  const building = Bun.spawn(command, { stdin: "ignore", stdout: "ignore", stderr: "inherit" });
  for (const signal of SIGNALS) process.once(signal, () => building.kill(signal));
  const code = await building.exited;
  if (isStopped) return;
  if (code !== 0) throw new Error("Cannot run the tests: the server does not compile");
  renameSync(join(folder, `tidemark-${process.platform}-${process.arch}`), program);
}

/**
 * Runs `bun test`.
 *
 * @param compiling The compilation of the server, without which the tests cannot end.
 * @returns Its exit code.
 * @throws If the server does not compile.
 */
async function run(
  args: readonly string[],
  env: Readonly<Record<string, string>>,
  readers: readonly LineReader[],
  compiling: Promise<void> = Promise.resolve(),
): Promise<number> {
  const runner = Bun.spawn([process.execPath, "test", `--timeout=${TIMEOUT_MS}`, ...args], {
    env: { ...process.env, ...env },
    stdin: "ignore",
    stdout: "pipe",
    stderr: "pipe",
  });
  const stop = (signal: NodeJS.Signals): void => {
    isStopped = true;
    runner.kill(signal);
  };
  for (const signal of SIGNALS) process.on(signal, stop);
  compiling.catch(() => stop("SIGTERM"));
  await Promise.all([
    compiling,
    pass(runner.stdout, process.stdout, readers),
    pass(runner.stderr, process.stderr, readers),
  ]);
  const code = await runner.exited;
  for (const signal of SIGNALS) process.off(signal, stop);
  return code;
}

/**
 * Reruns each file with failed tests once, on its own, unless there are too many such files.
 * Prints the totals of both attempts in the runner's format.
 *
 * @returns The exit code.
 */
async function retried(
  first: FailedTests,
  code: number,
  env: Readonly<Record<string, string>>,
): Promise<number> {
  const files = [...first.byFile];
  if (isStopped || !first.isComplete || files.length > RETRIED_FILES_MAX) return code;
  let failCount = 0;
  const passed: string[] = [];
  for (const [file, names] of files) {
    process.stderr.write(`\nRunning once more, alone: ${file}\n`);
    const second = new FailedTests();
    const again = await run([`./${file}`], env, [second]);
    if (isStopped) return code;
    if (again === 0) passed.push(...names.map((name) => `${file}: ${name}`));
    else failCount += Math.max(1, second.failCount);
  }
  if (passed.length > 0) {
    process.stderr.write(`\nPassed at the second attempt:\n  ${passed.join("\n  ")}\n`);
  }
  const passCount = first.passCount + first.failCount - failCount;
  process.stderr.write(`\n ${passCount} pass\n ${failCount} fail\n`);
  return failCount === 0 ? 0 : code;
}

/**
 * Creates a temporary folder in which other system users, such as PostgreSQL's, may create
 * folders.
 */
function openFolder(parent: string): string {
  const folder = mkdtempSync(join(parent, PREFIX));
  chmodSync(folder, 0o755);
  return folder;
}

/**
 * Finds a folder in memory for temporary files, which makes the tests faster.
 * @returns Undefined if the system has no such folder with enough space.
 */
function memoryFolder(): string | undefined {
  try {
    accessSync(MEMORY_FOLDER, constants.W_OK);
    const { bavail, bsize } = statfsSync(MEMORY_FOLDER);
    return bavail * bsize >= MEMORY_BYTES_MIN ? MEMORY_FOLDER : undefined;
  } catch {
    // Only Linux has an in-memory folder, and not every container may write to it.
    return undefined;
  }
}

/** Reports which test files do only part of their work, and the command that does all of it. */
function reportOfParts(): string {
  const files = [...new Bun.Glob("tests/**/*_test.ts").scanSync()].filter((file) =>
    /\b(?:amountOf|shareOf)\(/.test(readFileSync(file, "utf8")),
  );
  return (
    `\n${files.length} files tested only a part of their seeds, samples or cases. ` +
    `Try all with: npm test -- --thorough ${files.toSorted().join(" ")}\n`
  );
}

/** Environment variables that make the tests' processes start faster. */
const QUICK_START: Readonly<Record<string, string>> = {
  BUN_JSC_useFTLJIT: "0",
  MIMALLOC_PURGE_DELAY: "1000",
};

const { options, words: args } = readArguments(
  {
    thorough: flag("tests all seeds, samples and cases"),
    "retry-failed": flag("runs up to three files in which tests failed once more, each alone"),
  },
  {
    form: "<file, folder or flag> …",
    about: "the arguments of bun test; runs all tests if no file or folder is named",
    countMin: 0,
    arePassedOn: true,
  },
);
const isThorough = options.thorough;
const skipped = new SkippedTests();
const failed = new FailedTests();
const env: Record<string, string> = { ...QUICK_START };
if (isThorough) env["TIDEMARK_TEST_THOROUGH"] = "1";
if (process.stderr.isTTY && process.env["NO_COLOR"] === undefined) env["FORCE_COLOR"] = "1";
const isWhole = args.every((arg) => arg.startsWith("-"));
const directories: string[] = [];
let compiling: Promise<void> | undefined;
try {
  if (isWhole) {
    directories.push(openFolder(tmpdir()));
    const program = join(directories[0] ?? "", "tidemark");
    env[PROGRAM] = process.env[PROGRAM] ?? program;
    if (env[PROGRAM] === program) compiling = compileServer(program);
    const memory = isThorough ? undefined : memoryFolder();
    // The executable stays on disk, because containers do not allow files in memory to be
    // executed.
    if (memory !== undefined) directories.push(openFolder(memory));
    env["TMPDIR"] = directories.at(-1) ?? "";
  }
  const timings = `--timings=${TIMINGS}/${isThorough ? "thorough" : "usual"}.json`;
  const parallel = [`--parallel=${WORKERS}`, "--no-isolate", timings];
  const code = await run([...parallel, ...args], env, [skipped, failed], compiling);
  const mayRetry = code !== 0 && options["retry-failed"];
  process.exitCode = mayRetry ? await retried(failed, code, env) : code;
} finally {
  for (const directory of directories) rmSync(directory, { recursive: true, force: true });
}
process.stderr.write(skipped.report());
if (isWhole && !isThorough) process.stderr.write(reportOfParts());
