/**
 * Repeatedly kills the real server while four writers write, files are uploaded, tables are
 * flushed and compacted, and definitions change. It then restarts the server on the same data, and
 * compares the data with the acknowledged writes.
 *
 * Prints a line a minute and one at the end, and exits with 1 if anything was lost, invented or
 * torn, or if a seq was issued twice. With `--inject`, it damages the data that it reads back,
 * ends once it finds the damage, and exits with 0 only in that case. SIGKILL cannot reveal a
 * missing fsync; tests in `tests/smoke` prove the order of write, sync and response.
 */
import {
  countOption,
  flag,
  optionalOneOf,
  readOptions,
  seedOption,
} from "../../scripts/support/arguments.ts";
import { KILL_POINTS } from "./torture/kill_points.ts";
import { faultCountOf, INJECTED_FAULTS, type TortureReport, torture } from "./torture/run.ts";

const options = readOptions({
  kills: countOption("how often the server is killed at random moments", 100),
  points: countOption("instead kills it this often at each named point of the disk protocols", 0),
  "one-of": countOption("tries one of this many named points; the seed decides which", 1),
  long: flag("does both by turns; Ctrl-C ends the run in order"),
  minutes: countOption("how long --long takes", 240),
  seed: seedOption(),
  inject: optionalOneOf(INJECTED_FAULTS, "a fault in what is read back, which has to be found"),
});
const { seed, points: rounds, inject: injected } = options;
const oneOf = Math.max(1, options["one-of"]);
const points = KILL_POINTS.filter((_, index) => index % oneOf === seed % oneOf);
const killCount = rounds > 0 ? rounds * points.length : options.kills;
const minutes = options.long ? options.minutes : undefined;

const wanted = minutes === undefined ? `${killCount} kills` : `${minutes} minutes`;
process.stdout.write(`torture: ${wanted}, seed ${seed}\n`);
let isStopped = false;
process.once("SIGINT", () => {
  isStopped = true;
  process.stdout.write("The run ends after this kill. Press Ctrl-C again to end it at once.\n");
});
const startMs = Date.now();
const report = await torture({
  killCount,
  rounds,
  points,
  minutes,
  seed,
  injected,
  onMinute: print,
  isEnough: () => isStopped,
});
print(report);
for (const finding of report.findings) process.stdout.write(`  ${finding}\n`);

for (const name of report.unreached) process.stdout.write(`  no server reached: ${name}\n`);

const faultCount = faultCountOf(report);
if (injected === undefined) {
  if (faultCount > 0) process.stdout.write(`the data is kept in ${report.directory}\n`);
  process.exitCode = faultCount === 0 ? 0 : 1;
} else {
  process.stdout.write(`injected ${injected}: ${faultCount > 0 ? "found" : "NOT FOUND"}\n`);
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
