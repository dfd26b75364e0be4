/** Tests the steps of `.ci/run`: their output, their counts and their exit code. */
import { expect, test } from "bun:test";
import { join } from "node:path";

const ROOT = join(import.meta.dir, "../..");

/** Matches the closing list of the slowest steps with their durations. */
const SECONDS = /\n== the slowest steps\n((?: +\d+ s {2}.*\n)+)/;

/** Runs steps to completion. Times of day and durations are removed from the output. */
function run(steps: string): { output: string; code: number; timed: readonly string[] } {
  const script = `set -uo pipefail; . .ci/steps.sh\n${steps}\nclose_steps`;
  const ended = Bun.spawnSync(["bash", "-c", script], { cwd: ROOT, stdin: "ignore" });
  const output = ended.stdout.toString().replace(/ \(\d\d:\d\d:\d\d[^)]*\)/g, "");
  const timed = SECONDS.exec(output)?.[1]?.trimEnd().split("\n") ?? [];
  return {
    output: output.replace(SECONDS, ""),
    code: ended.exitCode,
    timed: timed.map((line) => line.replace(/^ +\d+ s {2}/, "")).toSorted(),
  };
}

test("a check counts as passed or failed by its exit code, and the summary repeats the failures", () => {
  const good = run(`check "good" echo fine`);
  expect(good).toEqual({
    code: 0,
    output: "\n== good\nfine\n\n1 passed, 0 failed\n",
    timed: ["good"],
  });
  const bad = run(`check "bad" bash -c 'echo wrong; exit 3'; check "good" echo fine`);
  expect(bad.code).toBe(1);
  expect(bad.output).toEndWith(
    "\n== good\nfine\n\n== what failed\n-- FAILED: bad\nwrong\n\n1 passed, 1 failed\n",
  );
});

test("checks run beside each other up to a limit, and the output of each is printed as a whole", () => {
  // Each of the first two checks waits for the other.
  const { code, output } = run(`
    beside_max=2
    meets() { echo "$1 begins"; : >"$work/$1"; until [ -e "$work/$2" ]; do sleep 0.01; done; echo "$1 ends"; }
    only_two() { [ "$(jobs -rp | wc -l)" -le 2 ]; }
    beside "left" meets left right
    beside "right" meets right left
    beside "third" bash -c 'echo wrong; exit 3'
    only_two || echo "too many"
    check "last" echo alone`);
  expect(code).toBe(1);
  expect(output).toContain("\n== left\nleft begins\nleft ends\n");
  expect(output).toContain("\n== right\nright begins\nright ends\n");
  // The third check may end before the first two.
  expect(output).toContain("\n== third\nwrong\nFAILED: third\n");
  expect(output).toContain("\n\n== last\nalone\n");
  expect(output).not.toContain("too many");
  expect(output).toEndWith("-- FAILED: third\nwrong\n\n3 passed, 1 failed\n");
});

test("the summary lists the slowest tests, slowest first", () => {
  const lines = [
    "tests/a_test.ts:",
    "(pass) quick [1.25ms]",
    "(pass) without a time",
    "(pass) slow [it] [1.50s]",
    "tests/b_test.ts:",
    "(pass) group > middling [900.00ms]",
    "1 tests skipped:",
    "(skip) skipped",
    " 4 pass",
  ].join("\\n");
  const { output } = run(`tests "tests" printf '${lines}\\n'`);
  expect(output).toEndWith(
    "\n== the slowest tests\n" +
      "   1500 ms  tests/a_test.ts: slow [it]\n" +
      "    900 ms  tests/b_test.ts: group > middling\n" +
      "      1 ms  tests/a_test.ts: quick\n\n4 passed, 0 failed\n",
  );
});

test("the summary lists the duration of every step", () => {
  const { timed } = run(`
    check "alone" true
    beside "left" true
    beside "right" false
    tests "tests" printf ' 1 pass\\n'`);
  expect(timed).toEqual(["alone", "left", "right", "tests"]);
});

test("tests are counted from the last totals of the runner, and the summary names second attempts", () => {
  const retried =
    "(pass) one\\n(fail) two\\n 1 pass\\n 1 fail\\n\\nPassed at the second attempt:\\n  tests/a_test.ts: two\\n\\n 2 pass\\n 0 fail\\n";
  const { code, output } = run(`tests "tests" printf '${retried}'`);
  expect(code).toBe(0);
  expect(output).toEndWith(
    "\n== what passed at the second attempt\ntests/a_test.ts: two\n\n2 passed, 0 failed\n",
  );
  const failed = run(`tests "tests" bash -c "printf ' 4 pass\\n 1 fail\\n'; exit 1"`);
  expect([failed.code, failed.output.endsWith("\n4 passed, 1 failed\n")]).toEqual([1, true]);
  const broken = run(`tests "tests" bash -c "exit 2"`);
  expect([broken.code, broken.output.endsWith("\n0 passed, 1 failed\n")]).toEqual([1, true]);
});
