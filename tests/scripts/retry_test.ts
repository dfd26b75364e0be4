/**
 * Verifies that the test script reruns files with failed tests once. The tests use the real
 * runner.
 */
import { afterEach, beforeEach, expect, test } from "bun:test";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { FailedTests } from "../../scripts/support/failed_tests.ts";

const HEAD =
  'import { expect, test } from "bun:test"; import { existsSync, writeFileSync } from "node:fs";';
const PASSES = `${HEAD} test("passes", () => {}); test("too", () => {});`;
const FAILS = `${HEAD} test("fails", () => { throw new Error("no"); }); test("passes", () => {});`;

/** A test file that fails the first time it runs, and passes the second time. */
const PASSES_LATER = `${HEAD} test("passes later", () => {
  const mark = import.meta.path + ".ran";
  const hasRun = existsSync(mark);
  writeFileSync(mark, "");
  expect(hasRun).toBe(true);
});`;

let directory: string;

beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), "tidemark-retry-"));
});

afterEach(() => {
  rmSync(directory, { recursive: true, force: true });
});

/** Runs tests with the project's script. Returns the end of the output, and the exit code. */
async function run(
  files: Readonly<Record<string, string>>,
  flags: readonly string[] = ["--retry-failed"],
): Promise<{ output: string; figures: string; code: number }> {
  mkdirSync(join(directory, "tests"));
  for (const [name, text] of Object.entries(files)) {
    writeFileSync(join(directory, "tests", `${name}_test.ts`), text);
  }
  const script = join(import.meta.dir, "../../scripts/test.ts");
  const child = Bun.spawn([process.execPath, script, ...flags, "./tests"], {
    cwd: directory,
    env: { ...process.env, NO_COLOR: "1" },
    stdin: "ignore",
    stdout: "ignore",
    stderr: "pipe",
  });
  const output = await new Response(child.stderr).text();
  const figures = output.match(/^ *\d+ (?:pass|fail)$/gm)?.slice(-2) ?? [];
  return {
    output,
    figures: figures.map((line) => line.trim()).join(", "),
    code: await child.exited,
  };
}

test("a test that passes at the second attempt counts as passed, and is named at the end", async () => {
  const { code, figures, output } = await run({ a: PASSES, b: PASSES_LATER });
  expect([code, figures]).toEqual([0, "3 pass, 0 fail"]);
  const [, list = ""] = output.split("\nPassed at the second attempt:\n");
  expect(list.split("\n\n")[0]).toBe("  tests/b_test.ts: passes later");
});

test("a test that fails twice fails the run, even next to one that passes later", async () => {
  const { code, figures, output } = await run({ a: FAILS, b: PASSES_LATER });
  expect([code, figures]).toEqual([1, "2 pass, 1 fail"]);
  expect(output).toContain("Passed at the second attempt:\n  tests/b_test.ts: passes later\n");
});

test("failures in three files are retried, and failures in four files are not", async () => {
  const three = { a: PASSES_LATER, b: PASSES_LATER, c: PASSES_LATER };
  const many = await run({ ...three, d: PASSES_LATER });
  expect([many.code, many.figures]).toEqual([1, "0 pass, 4 fail"]);
  expect(many.output).not.toContain("Once more");
  rmSync(join(directory, "tests"), { recursive: true });
  const few = await run(three);
  expect([few.code, few.figures]).toEqual([0, "3 pass, 0 fail"]);
});

test("a file that cannot be loaded is not retried, and neither is a test without the flag", async () => {
  const broken = await run({ a: 'import "./missing.ts";', b: PASSES_LATER });
  expect(broken.code).toBe(1);
  expect(broken.output).not.toContain("Once more");
  rmSync(join(directory, "tests"), { recursive: true });
  const plain = await run({ a: PASSES_LATER }, []);
  expect([plain.code, plain.output.includes("Once more")]).toEqual([1, false]);
});

test("FailedTests reads coloured lines, and each failure once", () => {
  const failed = new FailedTests();
  const lines = [
    "tests/a_test.ts:",
    "(fail) one [1.25ms]",
    "\u001b[0m\u001b[31m✗\u001b[0m\u001b[0m \u001b[1mtwo\u001b[0m \u001b[2m[1.00s]\u001b[0m",
    "tests/b_test.ts:",
    "(pass) three [1.00ms]",
    "2 tests failed:",
    "(fail) one [1.25ms]",
    "(fail) two [1.00s]",
    " 1 pass",
    " 2 fail",
  ];
  for (const line of lines) failed.read(line);
  expect([...failed.byFile]).toEqual([["tests/a_test.ts", ["one", "two"]]]);
  expect([failed.passCount, failed.failCount, failed.isComplete]).toEqual([1, 2, true]);
});
