/**
 * Checks the most important promise: a subscriber misses no change, receives none twice, and
 * receives them in order, whatever happens to its connection.
 *
 * Independent readers, which share no code with `src/live`, follow subscriptions with filters and
 * projections on the real server while writers write. They speak JSON or MessagePack, with or
 * without gzip, and they disconnect and resume at random. The server itself is stopped and killed
 * during the run, by default once per 20,000 changes. The events that each reader should have seen
 * are computed only from the responses to the writers. At intervals, the writers stop, and the
 * subscribers' views are compared with a SELECT at the same seq. Exits with 1 if anything is
 * wrong. With `--inject`, it damages the messages, the requests or the stored rows of additional
 * subscriptions, and exits with 0 only if it reports these subscriptions and no others.
 */

import {
  countOption,
  optionalCount,
  optionalOneOf,
  readOptions,
  seedOption,
} from "../../scripts/support/arguments.ts";
import { findInjected } from "../support/find_injected.ts";
import { INJECTED_FAULTS, type InjectedFault } from "./check_live/injected_faults.ts";
import { type CheckReport, checkLive } from "./check_live/run.ts";

const options = readOptions({
  changes: countOption("the number of changes that the writers make", 100_000),
  writers: countOption("the number of clients that write", 8),
  subscriptions: countOption("the number of subscriptions", 64),
  restarts: optionalCount("the number of stops and kills of the server", "one per 20,000 changes"),
  checkpoints: optionalCount("comparisons of all views with SELECT", "one for 10,000 changes"),
  seed: seedOption(),
  inject: optionalOneOf(
    [...INJECTED_FAULTS, "all"],
    "damages additional subscriptions, and requires that the damage is noticed; all injects every fault in one run",
  ),
});
const { changes, writers, subscriptions, seed, inject: injected } = options;
const restarts = options.restarts ?? Math.max(2, Math.round(changes / 20_000));
const checkpoints = options.checkpoints ?? Math.max(4, Math.round(changes / 10_000));

const startMs = Date.now();

if (injected === undefined) {
  const report = await run(seed, []);
  process.stdout.write(isSound(report) ? "sound\n" : "NOT SOUND\n");
  process.exitCode = isSound(report) ? 0 : 1;
} else {
  const all = injected === "all" ? INJECTED_FAULTS : [injected];
  await findInjected({ injected: all, seed }, async (seedOfRun, sought) => {
    const report = await run(seedOfRun, sought);
    if (!isSound(report)) throw new Error("The run found faults where none was injected");
    return report.noticed;
  });
}

/** Returns whether the subscriptions without an injected fault are free of faults. */
function isSound({ faults }: CheckReport): boolean {
  return Object.values(faults).every((count) => count === 0);
}

/** Runs the check once, and prints its report. */
async function run(seedOfRun: number, sought: readonly InjectedFault[]): Promise<CheckReport> {
  process.stdout.write(
    `check_live: ${changes} changes, ${writers} writers, ${subscriptions} subscriptions, ` +
      `${restarts} restarts, ${checkpoints} checkpoints, seed ${seedOfRun}\n`,
  );
  const report = await checkLive({
    changes,
    writers,
    subscriptions,
    restarts,
    checkpoints,
    seed: seedOfRun,
    injected: sought,
    onProgress: print,
  });
  print(report);
  for (const finding of report.findings) process.stdout.write(`  ${finding}\n`);
  return report;
}

function print(it: CheckReport): void {
  const { faults } = it;
  const seconds = ((Date.now() - startMs) / 1000).toFixed(0);
  process.stdout.write(
    `${seconds} s: ${it.written} changes written, ${it.delivered} delivered, ${it.snapshotRows} ` +
      `rows loaded, ${it.reconnects} reconnects, ${it.restarts.SIGKILL} kills and ` +
      `${it.restarts.SIGTERM} stops of the server under ${it.outages} subscriptions, ` +
      `${it.comparedViews} views compared; missed ${faults.missed}, doubled ${faults.doubled}, ` +
      `out of order ${faults.outOfOrder}, rows above the boundary ${faults.aboveBoundary}, ` +
      `unlike SELECT ${faults.unlike}, wrong ${faults.wrong}\n`,
  );
}
