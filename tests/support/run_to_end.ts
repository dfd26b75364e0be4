/** Runs a program of this project to completion, which must not take long. */
import { join } from "node:path";

const ROOT = join(import.meta.dir, "../..");

/** Much longer than any of these programs takes, because the machine may be busy. */
const RUN_MS_MAX = 60_000;

export interface Run {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

/**
 * Runs a program of this project to completion.
 * @param args The flags of the runtime, the program's path relative to the root, and the program's
 *   arguments.
 * @param env The whole environment; by default, that of this process.
 */
export function runToEnd(
  args: readonly string[],
  env: Record<string, string | undefined> = process.env,
): Promise<Run> {
  return runCommandToEnd([process.execPath, ...args], env);
}

/** Runs a command to completion. @param env The whole environment. */
export async function runCommandToEnd(
  command: readonly string[],
  env: Record<string, string | undefined>,
): Promise<Run> {
  const child = Bun.spawn([...command], {
    cwd: ROOT,
    env,
    stdin: "ignore",
    stdout: "pipe",
    stderr: "pipe",
    timeout: RUN_MS_MAX,
    killSignal: "SIGKILL",
  });
  const [stdout, stderr, code] = await Promise.all([
    new Response(child.stdout).text(),
    new Response(child.stderr).text(),
    child.exited,
  ]);
  return { code, stdout, stderr };
}
