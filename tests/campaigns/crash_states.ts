/**
 * Opens the real engine on thousands of disks in states that a power loss may leave behind, and
 * compares the contents of each with the changes that were passed to the engine.
 *
 * Sequences of commits, flushes, merges, expirations and definitions run on a simulated disk. For
 * each sector and each file name separately, the disk keeps none, some or all of the bytes that
 * were not synced, and it is full at times. Prints a line every ten seconds and one at the end.
 * Exits with 1 if any data was lost, invented, altered, torn or refused, or if an id was issued
 * twice. With `--inject`, a protocol fault is injected between the engine and its disk
 * (`crash_states/injected_faults.ts` lists the faults; `all` injects each in turn), and the exit
 * code is 0 only if the fault is found. A finding names its seed, which reproduces the same
 * sequence.
 *
 * A tenth of the disks test topics: their offsets, acknowledgements and effects.
 */

import {
  countOption,
  optionalOneOf,
  readOptions,
  seedOption,
} from "../../scripts/support/arguments.ts";
import { INJECTED_FAULTS, type InjectedFault } from "./crash_states/injected_faults.ts";
import { type CrashReport, crashStates } from "./crash_states/run.ts";
import { TOPIC_FAULTS, type TopicFault, topicStates } from "./crash_states/topic_stories.ts";

const LINE_MS = 10_000;

/** One in this many simulated disks tests topics. */
const TOPIC_SHARE = 10;

const {
  states: stateCount,
  seed,
  inject: injected,
} = readOptions({
  states: countOption("the number of disks to open", 20_000),
  seed: seedOption(),
  inject: optionalOneOf(
    [...INJECTED_FAULTS, ...TOPIC_FAULTS, "all"],
    "injects a fault between the engine and its disk, and requires that it is found; all injects each in turn",
  ),
});

if (injected === undefined) {
  const findings = [...(await run(undefined)), ...(await runTopics(undefined))];
  process.exitCode = findings.length === 0 ? 0 : 1;
} else {
  const all = [...INJECTED_FAULTS, ...TOPIC_FAULTS];
  for (const each of injected === "all" ? all : [injected]) {
    const findings = isTopicFault(each) ? await runTopics(each) : await run(each);
    const isFound = findings.length > 0;
    process.stdout.write(`injected ${each}: ${isFound ? "found" : "NOT FOUND"}\n`);
    if (!isFound) process.exitCode = 1;
  }
}

async function run(fault: InjectedFault | undefined): Promise<readonly string[]> {
  const startMs = Date.now();
  let printedMs = startMs;
  const report = await crashStates({ stateCount, seed, injected: fault }, (soFar) => {
    if (Date.now() - printedMs < LINE_MS) return;
    printedMs = Date.now();
    print(soFar, startMs);
  });
  print(report, startMs);
  for (const finding of report.findings) process.stdout.write(`  ${finding}\n`);
  return report.findings;
}

async function runTopics(fault: TopicFault | undefined): Promise<readonly string[]> {
  const startMs = Date.now();
  const report = await topicStates({
    stateCount: Math.ceil(stateCount / TOPIC_SHARE),
    seed,
    injected: fault,
  });
  const { acknowledged, findings, messages, states } = report;
  const seconds = (Date.now() - startMs) / 1000;
  process.stdout.write(
    `${seconds.toFixed(1)} s: ${states} crash states of topics, from seed ${seed}; ` +
      `${messages} messages delivered, ${acknowledged} acknowledged; ${findings.length} found\n`,
  );
  for (const finding of findings) process.stdout.write(`  ${finding}\n`);
  return findings;
}

function isTopicFault(fault: InjectedFault | TopicFault): fault is TopicFault {
  return TOPIC_FAULTS.some((each) => each === fault);
}

function print(report: CrashReport, startMs: number): void {
  const seconds = Math.max(Date.now() - startMs, 1) / 1000;
  process.stdout.write(
    `${seconds.toFixed(1)} s: ${report.states} crash states, ` +
      `${Math.round(report.states / seconds)} a second, from seed ${seed}; ` +
      `${report.acknowledged} commits acknowledged, ${report.takenBack} rolled back, ${report.flushes} flushes, ` +
      `${report.merges} merges, ${report.parted} of them with history, ${report.expired} expired segments, ${report.definitions} definitions; ${report.findings.length} found\n`,
  );
}
