/** Runs a script in Node to completion. */
export async function runNode(...args: readonly string[]): Promise<{
  stdout: string;
  stderr: string;
}> {
  const child = Bun.spawn(["node", ...args], { stdout: "pipe", stderr: "pipe" });
  const [stdout, stderr] = await Promise.all([
    new Response(child.stdout).text(),
    new Response(child.stderr).text(),
    child.exited,
  ]);
  return { stdout, stderr };
}
