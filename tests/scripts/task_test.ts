/** Verifies that `bun task` lists the tasks, runs a task, and stops it in an orderly way. */
import { expect, test } from "bun:test";
import { TASKS } from "../../scripts/support/tasks.ts";
import { runToEnd } from "../support/run_to_end.ts";

test.each([[[]], [["--help"]]])("task %j lists every task once", async (args) => {
  const { code, stdout, stderr } = await runToEnd(["scripts/task.ts", ...args]);
  expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
  const named = [...stdout.matchAll(/^ {2}(\w+) {2,}\S/gm)].map(([, name]) => name);
  expect(named).toEqual(TASKS.map(({ name }) => name));
});

test.each([
  ["tortur", 'Cannot run "tortur": there is no such task; did you mean "torture"?'],
  ["zzz", 'Cannot run "zzz": there is no such task;'],
])("task %s suggests the nearest task, and exits with 2", async (name, message) => {
  const { code, stdout, stderr } = await runToEnd(["scripts/task.ts", name]);
  expect({ code, stdout }).toEqual({ code: 2, stdout: "" });
  expect(stderr).toBe(`${message} bun task lists all\n`);
});

test("task passes on arguments, output and the exit code", async () => {
  const { code, stderr } = await runToEnd(["scripts/task.ts", "slt", "--all"]);
  expect({ code, stderr }).toEqual({
    code: 2,
    stderr: 'Cannot read option "--all": the only option is --help. For more, use --help.\n',
  });
});

test("task passes a signal on, and the task stops its server before it exits", async () => {
  const child = Bun.spawn(
    [process.execPath, "scripts/task.ts", "torture", "--kills", "1000", "--seed", "1"],
    { stdin: "ignore", stdout: "pipe", stderr: "ignore" },
  );
  const reader = child.stdout.getReader();
  await reader.read();
  child.kill("SIGTERM");
  expect(await child.exited).toBe(143);
  // The pipe closes once every process that holds it open has exited.
  for (;;) if ((await reader.read()).done) break;
});
