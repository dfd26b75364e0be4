/** A program of this project, run to its end, which must come soon. */
import { join } from "node:path";

const ROOT = join(import.meta.dir, "../..");

export interface Run {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

/**
 * @param args Of the runtime: its flags, the program below the root, and what that is given.
 * @param env The whole environment; this process's own when absent.
 */
export function runToEnd(
  args: readonly string[],
  env: Record<string, string | undefined> = process.env,
): Promise<Run> {
  return runCommandToEnd([process.execPath, ...args], env);
}

/** @param env The whole environment. */
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
