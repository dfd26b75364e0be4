/**
 * Decides whether a campaign on the real server notices injected faults.
 *
 * A fault may get no opportunity to show: a resume that skips nothing misses nothing, and two
 * messages for the same row may never arrive together. A run without such an opportunity proves
 * nothing, so the campaign runs again with the next seed.
 */

/** The maximum number of runs. A fault that no run notices counts as not found. */
const RUNS_MAX = 8;

/** Runs a campaign once with injected faults. Returns the faults that it noticed. */
export type InjectedRun<Fault extends string> = (
  seed: number,
  injected: readonly Fault[],
) => Promise<readonly Fault[]>;

/**
 * Runs a campaign until all injected faults have been noticed. Each run has only the faults that
 * no earlier run noticed. Prints the outcome and sets the exit code: 0 if all faults were found,
 * otherwise 1.
 */
export async function findInjected<Fault extends string>(
  { injected, seed }: { injected: readonly Fault[]; seed: number },
  run: InjectedRun<Fault>,
): Promise<void> {
  let sought = injected;
  for (let runCount = 0; runCount < RUNS_MAX && sought.length > 0; runCount += 1) {
    const noticed = new Set(await run(seed + runCount, sought));
    for (const fault of noticed) process.stdout.write(`injected ${fault}: found\n`);
    sought = sought.filter((fault) => !noticed.has(fault));
    for (const fault of sought) {
      process.stdout.write(
        `injected ${fault}: not noticed in run ${runCount + 1} of ${RUNS_MAX}\n`,
      );
    }
  }
  for (const fault of sought) {
    process.stdout.write(`injected ${fault}: NOT FOUND\n`);
    process.exitCode = 1;
  }
}
