/**
 * Kills the real server again and again while four writers write, files are uploaded, tables are
 * flushed and compacted and definitions change, starts it again on the same data, and compares what
 * is there with what was acknowledged.
 *
 *     bun scripts/torture.ts [--kills 100] [--seed <n>] [--plant lost|invented|altered|reused|upload]
 *     bun scripts/torture.ts --points 3      each named point of the disk protocols, three times
 *     bun scripts/torture.ts --long [--minutes 240]      both by turns; Ctrl-C ends it in order
 *
 * Prints a line a minute and one at the end, and exits with 1 when anything was lost, invented,
 * torn or given a sequence id twice. With `--plant` it damages what it reads back by itself, and
 * exits with 0 only when it finds that. SIGKILL cannot show a missing fsync: `tests/smoke` proves
 * the order of write, sync and answer.
 */
import { isOneOf, readOptions } from "./support/arguments.ts";
import { KILL_POINTS } from "./torture/kill_points.ts";
import { PLANTS, type TortureReport, torture } from "./torture/run.ts";

const options = readOptions(["kills", "points", "seed", "plant", "minutes"], ["long"]);
const seed = options.count("seed", Date.now() % 1_000_000);
const rounds = options.count("points", 0);
const killCount = rounds > 0 ? rounds * KILL_POINTS.length : options.count("kills", 100);
const minutes = options.has("long") ? options.count("minutes", 240) : undefined;
const plant = options.text("plant");
if (plant !== undefined && !isOneOf(PLANTS, plant)) {
  throw new Error(`Cannot plant "${plant}": there are ${PLANTS.join(", ")}`);
}

const wanted = minutes === undefined ? `${killCount} kills` : `${minutes} minutes`;
process.stdout.write(`torture: ${wanted}, seed ${seed}\n`);
let isStopped = false;
process.once("SIGINT", () => {
  isStopped = true;
  process.stdout.write("ends after this kill; once more for at once\n");
});
const startMs = Date.now();
const report = await torture({
  killCount,
  rounds,
  minutes,
  seed,
  plant,
  onMinute: print,
  isEnough: () => isStopped,
});
print(report);
for (const finding of report.findings) process.stdout.write(`  ${finding}\n`);

for (const name of report.unreached) process.stdout.write(`  no server came by: ${name}\n`);

const { defined, files, invented, lost, reused, torn, unreached } = report;
const faultCount = lost + invented + torn + reused + defined + files + unreached.length;
if (plant === undefined) {
  if (faultCount > 0) process.stdout.write(`the data is kept in ${report.directory}\n`);
  process.exitCode = faultCount === 0 ? 0 : 1;
} else {
  process.stdout.write(`planted ${plant}: ${faultCount > 0 ? "found" : "NOT FOUND"}\n`);
  process.exitCode = faultCount > 0 ? 0 : 1;
}

function print(state: TortureReport): void {
  const ageMinutes = ((Date.now() - startMs) / 60_000).toFixed(1);
  process.stdout.write(
    `${ageMinutes} min: ${state.kills} kills, ${state.acknowledged} commits acknowledged, ` +
      `${state.rowsRead} rows compared; lost ${state.lost}, invented ${state.invented}, ` +
      `torn ${state.torn}, _seq reused ${state.reused}, definitions wrong ${state.defined}, files wrong ${state.files}; ` +
      `refused ${state.refused}; start after a kill: median ${state.startMsMedian} ms, ` +
      `longest ${state.startMsMax} ms\n`,
  );
}
