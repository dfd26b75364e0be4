/**
 * Checks the one promise that matters most: a subscriber misses no change, gets none twice, and
 * gets them in order, whatever happens to its connection.
 *
 *     bun scripts/check_live.ts [--changes 100000] [--writers 8] [--subscriptions 64]
 *                               [--restarts <n>] [--checkpoints <n>] [--seed <n>]
 *                               [--plant lost|doubled|swapped|altered|boundary|silent_delete|
 *                                        late_resume|view]
 *
 * Independent readers, which share no code with `src/live`, follow subscriptions with filters and
 * projections on the real server while writers write. They speak JSON or MessagePack, with gzip or
 * without, break off and resume at random, and the server itself is stopped and killed in the
 * middle, once for 20,000 changes unless told otherwise. What each should have seen is computed
 * from the writers' acknowledgements alone; now and then the writers stop, and what subscribers
 * hold is compared with a SELECT at the same seq. Exits with 1 when anything is wrong. With
 * `--plant` it damages what one kind of subscription gets, asks for or holds, and exits with 0 only
 * when that is noticed.
 */

import { FOUND_AS, PLANTS } from "./check_live/plants.ts";
import { type CheckReport, checkLive } from "./check_live/run.ts";
import { isOneOf, readOptions } from "./support/arguments.ts";

const options = readOptions(
  ["changes", "writers", "subscriptions", "restarts", "checkpoints", "seed", "plant"],
  [],
);
const changes = options.count("changes", 100_000);
const seed = options.count("seed", Date.now() % 1_000_000);
const writers = options.count("writers", 8);
const subscriptions = options.count("subscriptions", 64);
const restarts = options.count("restarts", Math.max(2, Math.round(changes / 20_000)));
const checkpoints = options.count("checkpoints", Math.max(4, Math.round(changes / 10_000)));
const plant = options.text("plant");
if (plant !== undefined && !isOneOf(PLANTS, plant)) {
  throw new Error(`Cannot plant "${plant}": there are ${PLANTS.join(", ")}`);
}

process.stdout.write(
  `check_live: ${changes} changes, ${writers} writers, ${subscriptions} subscriptions, ` +
    `${restarts} restarts, ${checkpoints} checkpoints, seed ${seed}\n`,
);
const startMs = Date.now();
const report = await checkLive({
  changes,
  writers,
  subscriptions,
  restarts,
  checkpoints,
  seed,
  plant,
  onProgress: print,
});
print(report);
for (const finding of report.findings) process.stdout.write(`  ${finding}\n`);

const counts: Readonly<Record<string, number>> = { ...report.faults };
if (plant === undefined) {
  const isSound = Object.values(counts).every((count) => count === 0);
  process.stdout.write(isSound ? "sound\n" : "NOT SOUND\n");
  process.exitCode = isSound ? 0 : 1;
} else {
  const isFound = FOUND_AS[plant].some((fault) => (counts[fault] ?? 0) > 0);
  process.stdout.write(`planted ${plant}: ${isFound ? "found" : "NOT FOUND"}\n`);
  process.exitCode = isFound ? 0 : 1;
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
