/**
 * Runs a task of the project, or lists all of them.
 *
 *     bun task                      lists the tasks
 *     bun task torture --help       describes a task and its options
 *     bun task torture --kills 10
 *
 * `npm run task -- torture --kills 10` does the same on a machine without Bun. A task receives the
 * arguments after its name, the terminal, and every signal, and its exit code becomes the exit
 * code of this script.
 */
import { spawn } from "node:child_process";
import { constants } from "node:os";
import { nearestOf } from "./support/nearest.ts";
import { KINDS, type Kind, ROOT, TASKS, type Task } from "./support/tasks.ts";

const HEADINGS: Readonly<Record<Kind, string>> = {
  build: "Build",
  check: "Check",
  test: "Test",
  campaign: "Campaigns: long attacks that the server has to survive",
  benchmark: "Benchmarks",
  tool: "Tools",
};

function list(): string {
  const width = Math.max(...TASKS.map(({ name }) => name.length));
  const parts = KINDS.map((kind) => {
    const tasks = TASKS.filter((task) => task.kind === kind);
    const lines = tasks.map(({ name, about }) => `  ${name.padEnd(width)}  ${about}`);
    return `${HEADINGS[kind]}\n${lines.join("\n")}\n`;
  });
  return `${parts.join("\n")}\nbun task <name> --help describes a task and lists its options.\n`;
}

/**
 * Runs a task to completion, and returns its exit code: 128 + n after signal n. The task leads a
 * process session of its own. Otherwise, a terminal would send Ctrl-C to the task as well, and the
 * task would take this second signal to mean "at once, without a clean shutdown".
 */
async function run(task: Task, args: readonly string[]): Promise<number> {
  const ended = Promise.withResolvers<number>();
  const child = spawn(process.execPath, [task.file, ...args], {
    cwd: ROOT,
    stdio: "inherit",
    detached: process.platform !== "win32",
  });
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) {
    process.on(signal, () => child.kill(signal));
  }
  child.on("error", ended.reject);
  child.on("exit", (code, signal) => {
    ended.resolve(signal === null ? (code ?? 1) : 128 + constants.signals[signal]);
  });
  return await ended.promise;
}

const [name, ...args] = process.argv.slice(2);
const task = TASKS.find((each) => each.name === name);
if (task !== undefined) {
  process.exitCode = await run(task, args);
} else if (name === undefined || name === "--help" || name === "-h") {
  process.stdout.write(list());
} else {
  const nearest = nearestOf(
    name,
    TASKS.map((each) => each.name),
  );
  const advice = nearest === undefined ? ";" : `; did you mean "${nearest}"?`;
  process.stderr.write(`Cannot run "${name}": there is no such task${advice} bun task lists all\n`);
  process.exitCode = 2;
}
