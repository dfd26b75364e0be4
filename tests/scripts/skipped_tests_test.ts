/** Tests the report on skipped tests with real output of the test runner. */
import { afterEach, beforeEach, expect, test } from "bun:test";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { LEFT_TO_THOROUGH, SkippedTests } from "../../scripts/support/skipped_tests.ts";

const REQUIREMENTS = join(import.meta.dir, "../support/requirements.ts");

let directory: string;

beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), "tidemark-skipped-"));
});

afterEach(() => {
  rmSync(directory, { recursive: true, force: true });
});

async function run(
  files: Readonly<Record<string, string>>,
): Promise<[output: string, code: number]> {
  mkdirSync(join(directory, "tests"));
  for (const [name, text] of Object.entries(files)) {
    writeFileSync(join(directory, "tests", name), text);
  }
  const script = join(import.meta.dir, "../../scripts/test.ts");
  const child = Bun.spawn([process.execPath, script, "./tests"], {
    cwd: directory,
    stdin: "ignore",
    stdout: "ignore",
    stderr: "pipe",
  });
  return [await new Response(child.stderr).text(), await child.exited];
}

test("a run names each reason once, with the number of skipped tests and their files", async () => {
  const head = `import { describeUnless, programMissing, testUnless } from "${REQUIREMENTS}";
    import { test } from "bun:test";
    const missing = programMissing("no-such-program", "no-such-package");`;
  const [output, code] = await run({
    "a_test.ts": `${head}
      test("runs", () => {});
      testUnless(missing)("one", () => { throw new Error("it ran"); });`,
    "b_test.ts": `${head}
      testUnless(undefined)("runs", () => {});
      describeUnless(missing)("group", () => { test("x", () => {}); test("y", () => {}); });`,
    "c_test.ts": `${head} test.skip("of its own accord", () => {}); test("runs", () => {});`,
  });
  expect(code).toBe(0);
  const report = output.slice(output.indexOf("Skipped "));
  const [table = "", files = ""] = report.split(
    "Once nothing is missing, run them with: npm test -- ",
  );
  expect(files.trim().split(" ").toSorted()).toEqual(
    ["a", "b", "c"].map((name) => `tests/${name}_test.ts`),
  );
  expect(table.split("\n").toSorted()).toEqual(
    [
      "Skipped 4 tests:",
      "    3  no-such-program is not installed (Debian: apt-get install no-such-package)",
      "       tests/a_test.ts tests/b_test.ts",
      "    1  no reason given",
      "       tests/c_test.ts",
      "",
    ].toSorted(),
  );
});

test("a run that skips nothing reports nothing, and a failing one fails", async () => {
  const [output, code] = await run({
    "a_test.ts": `import { test } from "bun:test"; test("f", () => { throw new Error("no"); });`,
  });
  expect([output.includes("Skipped"), code]).toEqual([false, 1]);
});

test("SkippedTests also reads coloured lines", () => {
  const skipped = new SkippedTests();
  skipped.read("tests/a_test.ts:");
  skipped.read("(skip) one // skipped: it rains");
  skipped.read("\u001b[0m\u001b[33m»\u001b[0m\u001b[2m two // skipped: it rains\u001b[0m");
  skipped.read("2 tests skipped:");
  skipped.read("(skip) one // skipped: it rains");
  expect(skipped.report()).toBe(
    "\nSkipped 2 tests:\n    2  it rains\n       tests/a_test.ts\n" +
      "Once nothing is missing, run them with: npm test -- tests/a_test.ts\n",
  );
});

test("SkippedTests lists the tests that are left to a thorough run apart from the others", () => {
  const skipped = new SkippedTests();
  skipped.read("tests/b_test.ts:");
  skipped.read(`(skip) one // skipped: ${LEFT_TO_THOROUGH}`);
  skipped.read("tests/a_test.ts:");
  skipped.read(`(skip) two // skipped: ${LEFT_TO_THOROUGH}`);
  skipped.read("(skip) three // skipped: it rains");
  expect(skipped.report()).toBe(
    "\nSkipped 1 test:\n    1  it rains\n       tests/a_test.ts\n" +
      "Once nothing is missing, run them with: npm test -- tests/a_test.ts\n" +
      "\nLeft 2 tests to a thorough run. " +
      "Run them with: npm test -- --thorough tests/a_test.ts tests/b_test.ts\n",
  );
});
