/**
 * Decides whether a campaign on the real server notices an injected fault.
 *
 * A fault may have no opportunity to show: a resume that skips nothing misses nothing, and two
 * messages of one row may never arrive together. A run without an opportunity proves nothing, so
 * another one with the next seed follows it.
 */

/** The maximum number of runs. A fault that none of them notices counts as not found. */
const RUNS_MAX = 8;

/**
 * Runs a campaign until one run notices the injected fault. Prints the outcome and sets the exit
 * code: 0 if the fault was found, else 1.
 */
export async function findInjected(
  { injected, seed }: { injected: string; seed: number },
  isNoticed: (seed: number) => Promise<boolean>,
): Promise<void> {
  for (let run = 0; run < RUNS_MAX; run += 1) {
    if (await isNoticed(seed + run)) {
      process.stdout.write(`injected ${injected}: found\n`);
      return;
    }
    process.stdout.write(`injected ${injected}: not noticed in run ${run + 1} of ${RUNS_MAX}\n`);
  }
  process.stdout.write(`injected ${injected}: NOT FOUND\n`);
  process.exitCode = 1;
}
