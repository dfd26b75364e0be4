/**
 * Opens the real engine on thousands of disks as a loss of power may leave them, and compares what
 * is there with what it was told.
 *
 *     bun scripts/crash_states.ts [--states 20000] [--seed <n>] [--plant <fault>]
 *
 * Stories of commits, flushes, merges, expiry and definitions run on a simulated disk that keeps
 * none, some or all of what was not synced, sector by sector and name by name, and is full at
 * times. Prints a line every ten seconds and one at the end, and exits with 1 when anything was
 * lost, invented, altered, torn, given an id twice, or refused. With `--plant` a fault of the
 * protocol lies between the engine and its disk (the list is in `crash_states/plants.ts`; `all`
 * takes each in turn), and the exit is 0 only when it is found. A finding names its seed: the same
 * seed tells the same story.
 */

import { PLANTS, type Plant } from "./crash_states/plants.ts";
import { type CrashReport, crashStates } from "./crash_states/run.ts";
import { isOneOf, readOptions } from "./support/arguments.ts";

const LINE_MS = 10_000;

const options = readOptions(["states", "seed", "plant"], []);
const seed = options.count("seed", Date.now() % 1_000_000);
const stateCount = options.count("states", 20_000);
const plant = options.text("plant");
if (plant !== undefined && plant !== "all" && !isOneOf(PLANTS, plant)) {
  throw new Error(`Cannot plant "${plant}": there are ${PLANTS.join(", ")} and all`);
}

if (plant === undefined) {
  const findings = await run(undefined);
  process.exitCode = findings.length === 0 ? 0 : 1;
} else {
  for (const each of plant === "all" ? PLANTS : [plant]) {
    const isFound = (await run(each)).length > 0;
    process.stdout.write(`planted ${each}: ${isFound ? "found" : "NOT FOUND"}\n`);
    if (!isFound) process.exitCode = 1;
  }
}

async function run(fault: Plant | undefined): Promise<readonly string[]> {
  const startMs = Date.now();
  let printedMs = startMs;
  const report = await crashStates({ stateCount, seed, plant: fault }, (soFar) => {
    if (Date.now() - printedMs < LINE_MS) return;
    printedMs = Date.now();
    print(soFar, startMs);
  });
  print(report, startMs);
  for (const finding of report.findings) process.stdout.write(`  ${finding}\n`);
  return report.findings;
}

function print(report: CrashReport, startMs: number): void {
  const seconds = Math.max(Date.now() - startMs, 1) / 1000;
  process.stdout.write(
    `${seconds.toFixed(1)} s: ${report.states} crash states, ` +
      `${Math.round(report.states / seconds)} a second, from seed ${seed}; ` +
      `${report.acknowledged} commits acknowledged, ${report.takenBack} taken back, ${report.flushes} flushes, ` +
      `${report.merges} merges, ${report.expired} expired segments, ${report.definitions} definitions; ${report.findings.length} found\n`,
  );
}
