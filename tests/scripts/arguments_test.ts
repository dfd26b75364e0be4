/**
 * Scripts say how they are used, and run nothing for a word that they do not know.
 */
import { expect, test } from "bun:test";
import { join } from "node:path";

const ROOT = join(import.meta.dir, "../..");

interface Run {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

/** Runs a script to its end, which comes before it begins its work. */
async function run(script: string, ...args: readonly string[]): Promise<Run> {
  const child = Bun.spawn([process.execPath, `scripts/${script}`, ...args], {
    cwd: ROOT,
    stdin: "ignore",
    stdout: "pipe",
    stderr: "pipe",
    timeout: 10_000,
    killSignal: "SIGKILL",
  });
  const [stdout, stderr, code] = await Promise.all([
    new Response(child.stdout).text(),
    new Response(child.stderr).text(),
    child.exited,
  ]);
  return { code, stdout, stderr };
}

test.each(["check.ts", "slt.ts"])("%s prints its header when asked for help", async (script) => {
  for (const word of ["--help", "-h"]) {
    const { code, stdout, stderr } = await run(script, word);
    expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
    expect(stdout).toContain(`\n    bun scripts/${script} `);
  }
});

test.each([
  [["check.ts", "--no-test"], 'Cannot read option "--no-test": there are --no-tests'],
  [["slt.ts", "--all"], 'Cannot read option "--all": there is none but --help'],
  [["slt.ts"], "Cannot begin: name a file or a directory"],
])("%j ends with 2 and one line", async ([script = "", ...args], message) => {
  expect(await run(script, ...args)).toEqual({
    code: 2,
    stdout: "",
    stderr: `${message}. --help says more.\n`,
  });
});
