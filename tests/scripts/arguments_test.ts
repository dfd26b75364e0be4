/**
 * Scripts say how they are used, and run nothing for a word that they do not know.
 */
import { expect, test } from "bun:test";
import { runToEnd } from "../support/run_to_end.ts";

test.each(["check.ts", "slt.ts", "build_ui.ts", "write_golden.ts"])(
  "%s prints its header when asked for help",
  async (script) => {
    for (const word of ["--help", "-h"]) {
      const { code, stdout, stderr } = await runToEnd([`scripts/${script}`, word]);
      expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
      expect(stdout).toMatch(new RegExp(`\\n    bun scripts/${script}(?: |\\n)`));
    }
  },
);

test.each([
  [["check.ts", "--no-test"], 'Cannot read option "--no-test": there are --no-tests'],
  [["slt.ts", "--all"], 'Cannot read option "--all": there is none but --help'],
  [["slt.ts"], "Cannot begin: name a file or a directory"],
  [["build_ui.ts", "--out"], 'Cannot read option "--out": there is none but --help'],
  [["write_golden.ts"], "Cannot begin: name the number of its format"],
])("%j ends with 2 and one line", async ([script = "", ...args], message) => {
  expect(await runToEnd([`scripts/${script}`, ...args])).toEqual({
    code: 2,
    stdout: "",
    stderr: `${message}. --help says more.\n`,
  });
});

test.each([
  [["dump_wal.ts", "--rows"]],
  [["dump_wal.ts"]],
  [["dump_segment.ts", "--rows"]],
  [["dump_segment.ts", "x.seg", "--rows", "1", "y.seg"]],
])(
  "%j ends with 2 and its usage, which is what it prints when asked",
  async ([script = "", ...args]) => {
    const [asked, misused] = await Promise.all([
      runToEnd([`scripts/${script}`, "-h"]),
      runToEnd([`scripts/${script}`, ...args]),
    ]);
    expect(asked).toMatchObject({ code: 0, stderr: "" });
    expect(asked.stdout).toContain(`usage: bun scripts/${script} `);
    expect(misused).toEqual({ code: 2, stdout: "", stderr: asked.stdout });
  },
);
