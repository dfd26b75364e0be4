/**
 * Checks the one promise that matters most: a subscriber misses no change, gets none twice, and
 * gets them in order, whatever happens to its connection.
 *
 *     bun scripts/check_live.ts [--changes 100000] [--seed <n>]
 *                               [--plant lost|doubled|swapped|altered|boundary|silent_delete]
 *
 * An independent reader, which shares no code with `src/live`, follows sixteen subscriptions with
 * filters and projections on the real server while four writers write, and breaks off and resumes
 * at random. What it should have seen is computed from the writers' acknowledgements alone. Exits
 * with 1 when anything is wrong. With `--plant` it damages one frame by itself, and exits with 0
 * only when that is noticed.
 */

import { FOUND_AS, isPlant, PLANTS } from "./check_live/plants.ts";
import { type CheckReport, checkLive } from "./check_live/run.ts";
import { readOptions } from "./support/arguments.ts";

const options = readOptions(["changes", "seed", "plant"], []);
const changes = options.count("changes", 100_000);
const seed = options.count("seed", Date.now() % 1_000_000);
const plant = options.text("plant");
if (plant !== undefined && !isPlant(plant)) {
  throw new Error(`Cannot plant "${plant}": there are ${PLANTS.join(", ")}`);
}

process.stdout.write(`check_live: ${changes} changes, 16 subscriptions, seed ${seed}\n`);
const startMs = Date.now();
const report = await checkLive({ changes, seed, plant, onProgress: print });
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

function print({ written, delivered, snapshotRows, reconnects, faults }: CheckReport): void {
  const seconds = ((Date.now() - startMs) / 1000).toFixed(0);
  process.stdout.write(
    `${seconds} s: ${written} changes written, ${delivered} delivered, ${snapshotRows} rows ` +
      `loaded, ${reconnects} reconnects; missed ${faults.missed}, doubled ${faults.doubled}, ` +
      `out of order ${faults.outOfOrder}, rows above the boundary ${faults.aboveBoundary}, ` +
      `wrong ${faults.wrong}\n`,
  );
}
