/**
 * Runs seeded worlds of writers and subscribers around the live engine, and compares every message
 * with the prediction of an oracle. This is the long version of tests/simulation.
 *
 * The store, the clock, randomness and the sockets are simulated. The world `real` uses the
 * engine's own store on a simulated disk, with flushes, merges and expiring history. In every
 * third world, the table is a STREAM table with rows that expire. In the worlds named `results`, a
 * whole database on a simulated disk follows random queries over several tables, two of them as
 * users under policies and views, with memberships that change. Every twentieth seed runs twice
 * and must produce the same trace. Prints a line every ten seconds and one at the end. Exits with
 * 1 if a change was missed, sent twice, out of order or wrong, if a client's view differs from the
 * result, if the engine reached an impossible state, or if a seed did not repeat. A fault names
 * its seed, and the same seed with the same number of steps reproduces the world. With `--inject`,
 * a fault is injected into the store below the engine or into a socket above it
 * (`tests/simulation/live_injected_faults.ts` lists the faults; `all` injects each in turn), and
 * the exit code is 0 only if the fault is found.
 */

import { countOption, oneOf, optionalOneOf, readOptions } from "../../scripts/support/arguments.ts";
import { AssertionError } from "../../src/base/assert.ts";
import {
  findInjected,
  INJECTED_FAULTS,
  type InjectedFault,
} from "../simulation/live_injected_faults.ts";
import type { SimulationReport } from "../simulation/live_simulation.ts";
import { simulateOverLocalStore, simulateOverModel } from "../simulation/live_worlds.ts";
import { simulateResults } from "../simulation/result_simulation.ts";
import { StreamViolation } from "../simulation/simulated_client.ts";

const LINE_MS = 10_000;

/** One in this many seeds runs twice. */
const SEEDS_PER_REPEAT = 20;

/** One in this many seeds has a table with rows that expire several times within a world. */
const SEEDS_PER_STREAM = 3;
const TTL_MS = 40;

/**
 * The number of faults after which a run ends, because further faults would reveal nothing new.
 */
const FAULTS_MAX = 10;

/**
 * One in this many seeds also has a world of results. Such a world takes as long as ten others.
 */
const SEEDS_PER_RESULTS = 10;

/**
 * The share of the steps that a world of results gets. It is small because such a world plans and
 * evaluates queries.
 */
const RESULT_STEPS = 1 / 10;

const SIMULATIONS = {
  model: simulateOverModel,
  real: simulateOverLocalStore,
  results: async (seed: number, { steps }: { steps: number }): Promise<SimulationReport> => {
    const report = await simulateResults(seed, { steps: Math.ceil(steps * RESULT_STEPS) });
    return { ...report, changes: report.states, expired: 0 };
  },
};

type WorldWord = keyof typeof SIMULATIONS;

const options = readOptions({
  seeds: countOption("worlds of each kind to run", 2000),
  steps: countOption("steps of a world", 2000),
  seed: countOption("the seed of the first world", 1),
  world: oneOf(
    ["model", "real", "results", "all"],
    "rows over a model of the store, rows over the real store, or materialised queries",
    "all",
  ),
  inject: optionalOneOf(
    [...INJECTED_FAULTS, "all"],
    "a fault in the store or behind a socket, which has to be found; all takes each in turn",
  ),
});
const { seeds: seedCount, steps, seed: firstSeed, inject: injected } = options;
const kinds: readonly WorldWord[] =
  options.world === "all" ? ["model", "real", "results"] : [options.world];

const startMs = performance.now();
const total = { worlds: 0, repeated: 0, messages: 0, changes: 0, resumes: 0, expired: 0 };
const faults: string[] = [];
const trace = new Bun.CryptoHasher("sha1");
let printedMs = startMs;
/** Failures of work that no caller waits for, such as a background merge. */
const uncaught: unknown[] = [];
const noteUncaught = (error: unknown): void => {
  uncaught.push(error);
};
process.on("uncaughtException", noteUncaught);
process.on("unhandledRejection", noteUncaught);

let seedsRun = 0;
if (injected === undefined) await runSeeds();
else await runInjected(injected);

async function runSeeds(): Promise<void> {
  while (seedsRun < seedCount && faults.length < FAULTS_MAX) {
    for (const kind of kinds) {
      const isLeftOut = kind === "results" && kinds.length > 1 && seedsRun % SEEDS_PER_RESULTS > 0;
      if (!isLeftOut) await runSeed(kind, firstSeed + seedsRun);
    }
    seedsRun += 1;
    if (performance.now() - printedMs < LINE_MS) continue;
    printedMs = performance.now();
    print();
  }
  print();
  for (const fault of faults) process.stdout.write(`  ${fault}\n`);
  process.stdout.write(`trace of all seeds: ${trace.digest("hex")}\n`);
  process.exitCode = faults.length === 0 ? 0 : 1;
}

async function runInjected(word: InjectedFault | "all"): Promise<void> {
  for (const each of word === "all" ? INJECTED_FAULTS : [word]) {
    const finding = await findInjected(each, { seed: firstSeed, steps });
    process.stdout.write(`injected ${each}: ${finding ?? "NOT FOUND"}\n`);
    if (finding === undefined) process.exitCode = 1;
  }
}

async function runSeed(kind: WorldWord, seed: number): Promise<void> {
  const where = `seed ${seed} of the worlds "${kind}"`;
  try {
    const report = await world(kind, seed);
    trace.update(report.trace);
    total.worlds += 1;
    total.messages += report.messages;
    total.changes += report.changes;
    total.resumes += report.resumes;
    total.expired += report.expired;
    if ((seed - firstSeed) % SEEDS_PER_REPEAT !== 0) return;
    total.repeated += 1;
    const again = await world(kind, seed);
    if (again.trace !== report.trace) faults.push(`${where}: it gave another trace when repeated`);
  } catch (error) {
    faults.push(`${where}: ${textOf(error)}`);
    uncaught.length = 0;
  }
}

async function world(kind: WorldWord, seed: number): Promise<SimulationReport> {
  const isStream = seed % SEEDS_PER_STREAM === 0;
  const report = await SIMULATIONS[kind](seed, { steps, ...(isStream ? { ttlMs: TTL_MS } : {}) });
  const failed = uncaught.splice(0);
  if (failed.length > 0) throw failed[0];
  return report;
}

/** A violation is self-explanatory; for any other error, the stack is printed, too. */
function textOf(error: unknown): string {
  if (error instanceof StreamViolation) return error.message;
  if (error instanceof AssertionError) return error.stack ?? error.message;
  return error instanceof Error ? (error.stack ?? error.message) : String(error);
}

function print(): void {
  const seconds = (performance.now() - startMs) / 1000;
  const { worlds, repeated, messages, changes, resumes, expired } = total;
  process.stdout.write(
    `${seconds.toFixed(1)} s: ${seedsRun} seeds from ${firstSeed}, ${steps} steps each, ${worlds} worlds, ` +
      `${repeated} repeated; ${messages} messages, ${changes} with changes, ${resumes} resumes, ` +
      `${expired} expired; ${faults.length} faults\n`,
  );
}
