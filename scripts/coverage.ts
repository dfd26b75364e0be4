/**
 * Prints how much of a folder's code its tests cover, as lines and functions per file.
 *
 * Only code that runs in the test process counts, so code in a separate server process does not.
 * With `--missing`, it also lists the lines that no test reached. The script exits with 1 if fewer
 * than `--least` percent of the lines were run, or if a test failed.
 */
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { countOption, flag, readOptions, textOption } from "./support/arguments.ts";
import { type Covered, coverageFrom, spansOf, sumOf } from "./support/coverage.ts";

/**
 * The folders of the tests that cover the store and the code that uses the store's files. These
 * tests run in the test process.
 */
const TESTS = "tests/storage,tests/backup,tests/maintenance";

/**
 * The maximum duration of a test, in milliseconds. It is longer than usual, because instrumented
 * code is slow.
 */
const TEST_MS_MAX = 120_000;

const options = readOptions({
  folder: textOption("<folder>", "the folder whose code is measured", "src/storage"),
  least: countOption("the minimum percentage of lines that the tests must run", 95),
  tests: textOption("<folder or file,…>", "the tests that run the code", TESTS),
  missing: flag("lists the lines that no test reached"),
});
const { folder, least: percentMin } = options;
const tests = options.tests.split(",");

const directory = mkdtempSync(join(tmpdir(), "tidemark-coverage-"));
try {
  const code = await runTests();
  const files = coverageFrom(readFileSync(join(directory, "lcov.info"), "utf8")).filter(
    ({ path }) => path.startsWith(`${folder}/`),
  );
  const percent = report(files);
  process.exitCode = code === 0 && percent >= percentMin ? 0 : 1;
} finally {
  rmSync(directory, { recursive: true });
}

async function runTests(): Promise<number> {
  const reporter = ["--coverage-reporter=lcov", `--coverage-dir=${directory}`];
  const child = Bun.spawn(
    [process.execPath, "test", "--timeout", String(TEST_MS_MAX), ...reporter, ...tests],
    { stdin: "ignore", stdout: "ignore", stderr: "pipe" },
  );
  const text = await new Response(child.stderr).text();
  const code = await child.exited;
  if (code !== 0) process.stderr.write(text);
  return code;
}

/**
 * Prints the coverage of each file, starting with the least covered. Returns the percentage of
 * lines that were run.
 */
function report(files: readonly Covered[]): number {
  if (files.length === 0) throw new Error(`Cannot measure ${folder}: no test reached it`);
  for (const file of files.toSorted((left, right) => shareOf(left) - shareOf(right))) {
    say(`${lineOf(file)}  ${file.path.slice(folder.length + 1)}`);
    if (options.missing && file.missing.length > 0) say(`    ${spansOf(file.missing)}`);
  }
  const all = sumOf(files);
  say(`${lineOf(all)}  ${folder} (at least ${percentMin} %)`);
  return 100 * shareOf(all);
}

function shareOf({ lines, linesRun }: Pick<Covered, "lines" | "linesRun">): number {
  return lines === 0 ? 1 : linesRun / lines;
}

function lineOf(file: Omit<Covered, "path" | "missing">): string {
  const { functions, functionsRun, lines, linesRun } = file;
  const percent = (100 * shareOf(file)).toFixed(1).padStart(5);
  const counts = `${linesRun}/${lines}`.padStart(11);
  return `${percent} % of lines ${counts}, functions ${`${functionsRun}/${functions}`.padStart(9)}`;
}

function say(line: string): void {
  process.stdout.write(`${line}\n`);
}
