/**
 * Scripts say how they are used, and run nothing for a word that they do not know.
 */
import { expect, test } from "bun:test";
import { runToEnd } from "../support/run_to_end.ts";

test.each(["check.ts", "slt.ts"])("%s prints its header when asked for help", async (script) => {
  for (const word of ["--help", "-h"]) {
    const { code, stdout, stderr } = await runToEnd([`scripts/${script}`, word]);
    expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
    expect(stdout).toContain(`\n    bun scripts/${script} `);
  }
});

test.each([
  [["check.ts", "--no-test"], 'Cannot read option "--no-test": there are --no-tests'],
  [["slt.ts", "--all"], 'Cannot read option "--all": there is none but --help'],
  [["slt.ts"], "Cannot begin: name a file or a directory"],
])("%j ends with 2 and one line", async ([script = "", ...args], message) => {
  expect(await runToEnd([`scripts/${script}`, ...args])).toEqual({
    code: 2,
    stdout: "",
    stderr: `${message}. --help says more.\n`,
  });
});
