/**
 * Verifies that scripts explain their options, and refuse to run if they do not recognise an
 * argument.
 */
import { describe, expect, test } from "bun:test";
import { readdirSync } from "node:fs";
import { countOption, flag, helpText, oneOf } from "../../scripts/support/arguments.ts";
import { nearestOf } from "../../scripts/support/nearest.ts";
import { KINDS, TASKS } from "../../scripts/support/tasks.ts";
import { runToEnd } from "../support/run_to_end.ts";
import { isThorough, shareOf } from "../support/thoroughness.ts";

/** The folders in which each script is a task. Modules shared by scripts are in subfolders. */
const FOLDERS = ["scripts", "scripts/bench", "scripts/check", "tests/campaigns"];

test("every script is a task, except the entry of the tasks itself", () => {
  const files = FOLDERS.flatMap((folder) =>
    readdirSync(folder)
      .filter((name) => name.endsWith(".ts"))
      .map((name) => `${folder}/${name}`),
  );
  const named = ["scripts/task.ts", ...TASKS.map(({ file }) => file)];
  expect(named.toSorted()).toEqual(files.toSorted());
  expect(new Set(TASKS.map(({ name }) => name)).size).toBe(TASKS.length);
});

/**
 * The tasks that this run starts. Starting a task takes 0.1 to 0.2 seconds, so a normal run starts
 * only one task of each kind.
 */
const TRIED = isThorough
  ? TASKS
  : KINDS.flatMap((kind) => TASKS.find((task) => task.kind === kind) ?? []);

describe.each(TRIED.map(({ name }) => name))("%s", (name) => {
  test("the task explains itself", async () => {
    const { code, stdout, stderr } = await runToEnd(["scripts/task.ts", name, "--help"]);
    expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
    expect(stdout).toMatch(new RegExp(`^[A-Z][^]+\\n\\nusage: bun task ${name}\\b`));
    expect(stdout).toMatch(/\n {2}--help +prints this\n$/);
  });
});

const REFUSED: readonly (readonly [words: readonly string[], message: string])[] = [
  [["check.ts", "--no-test"], 'Cannot read option "--no-test": did you mean --no-tests?'],
  [["check.ts", "--all"], 'Cannot read option "--all": there is --no-tests'],
  [["check.ts", "all"], 'Cannot read "all": this script takes only options'],
  [["slt.ts", "--all"], 'Cannot read option "--all": the only option is --help'],
  [["slt.ts"], "Cannot start the script: specify a file or a directory."],
  [["build_ui.ts", "--out"], 'Cannot read option "--out": the only option is --help'],
  [["write_golden.ts", "7", "8"], 'Cannot read "8": unexpected argument. For more, use --help.'],
  [["dump_wal.ts"], "Cannot start the script: specify a file in <data_path>/wal."],
  [
    ["dump_segment.ts", "x.seg", "--rows", "few"],
    'Cannot read --rows "few": it must be a whole number',
  ],
  [["dump_segment.ts", "x.seg", "--rows"], "Cannot read --rows: it needs a value, <count>"],
  [
    ["../tests/campaigns/abuse.ts", "--only", "silent,kind"],
    'Cannot read --only "silent,kind": it must be silent,storm,',
  ],
  [
    ["../tests/campaigns/fuzz_live.ts", "--only", "1,b"],
    'Cannot read --only "1,b": it must be whole numbers, separated by commas',
  ],
  [
    ["../tests/campaigns/torture.ts", "--inject", "none"],
    'Cannot read --inject "none": it must be lost|invented|altered|reused|upload',
  ],
];

test.each(shareOf(REFUSED, { oneOf: 5 }))(
  "%j exits with 2 and prints one line",
  async ([script = "", ...args], message) => {
    const { code, stdout, stderr } = await runToEnd([`scripts/${script}`, ...args]);
    expect({ code, stdout }).toEqual({ code: 2, stdout: "" });
    expect(stderr).toStartWith(message);
    expect(stderr).toMatch(/^[^\n]+[.?] For more, use --help\.\n$/);
  },
);

test("helpText gives each option a line with its default value", () => {
  const forms = {
    kills: countOption("how often", 1000),
    long: flag("goes on"),
    inject: oneOf(["lost", "doubled", "altered", "invented"], "a fault", "lost"),
  };
  const words = { form: "<file> …", about: "what to read", countMin: 0 };
  expect(helpText("bun task x", forms, words)).toBe(`usage: bun task x [options] <file> …

  <file> …         what to read
  --kills <count>  how often (1,000)
  --long           goes on
  --inject lost|doubled|altered|invented
                   a fault (lost)
  --help           prints this
`);
});

test.each([
  ["tortur", "torture"],
  ["soka", undefined],
  ["fuzz", "fuzz_sql"],
  ["fuzzsql", "fuzz_sql"],
  ["zzz", undefined],
])("nearestOf %p is %p", (word, nearest) => {
  const names = TASKS.map(({ name }) => name);
  expect(nearestOf(word, names)).toBe(nearest);
});
