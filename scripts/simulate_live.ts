/**
 * Runs seeded worlds of writers and subscribers around the live engine, and compares every message
 * with what an oracle says it must be: the long form of tests/simulation.
 *
 *     bun scripts/simulate_live.ts [--seeds 2000] [--steps 2000] [--seed 1] [--store model|real|both]
 *                                  [--plant <fault>]
 *
 * Store, clock, chance and sockets are simulated; `real` is the engine's own store on a simulated
 * disk, with flushes, merges and history that goes. In every third world the table is a STREAM
 * table, whose rows expire. Every twentieth seed runs twice and must give
 * the same trace. Prints a line every ten seconds and one at the end, and exits with 1 when a
 * change was missed, sent twice, out of order or wrong, when what a client holds is not the result,
 * when the engine met what cannot be, or when a seed did not repeat. A fault names its seed: the
 * same seed with the same steps is the same world, and the same seeds end with the same trace. With
 * `--plant` a fault lies in the store under the engine or in a socket behind it (the list is in
 * `tests/simulation/live_plants.ts`; `all` takes each in turn), and the exit is 0 only when it is
 * found.
 */
import { AssertionError } from "../src/base/assert.ts";
import { findPlanted, PLANTS } from "../tests/simulation/live_plants.ts";
import { type SimulationReport, StreamViolation } from "../tests/simulation/live_simulation.ts";
import { simulateOverLocalStore, simulateOverModel } from "../tests/simulation/live_worlds.ts";
import { isOneOf, readOptions } from "./support/arguments.ts";

const LINE_MS = 10_000;

/** Of so many seeds, one runs twice. */
const SEEDS_PER_REPEAT = 20;

/** Of so many seeds, one has a table whose rows expire, and when: several times in a world. */
const SEEDS_PER_STREAM = 3;
const TTL_MS = 40;

/** After so many, more say nothing new. */
const FAULTS_MAX = 10;

const SIMULATIONS = { model: simulateOverModel, real: simulateOverLocalStore };

type StoreWord = keyof typeof SIMULATIONS;

const options = readOptions(["seeds", "steps", "seed", "store", "plant"], []);
const seedCount = options.count("seeds", 2000);
const steps = options.count("steps", 2000);
const firstSeed = options.count("seed", 1);
const stores = storesOf(options.text("store") ?? "both");
const plant = options.text("plant");

const startMs = performance.now();
const total = { worlds: 0, repeated: 0, messages: 0, changes: 0, resumes: 0, expired: 0 };
const faults: string[] = [];
const trace = new Bun.CryptoHasher("sha1");
let printedMs = startMs;
/** Failures of what nobody waits for, such as a merge in the background. */
const uncaught: unknown[] = [];
const noteUncaught = (error: unknown): void => {
  uncaught.push(error);
};
process.on("uncaughtException", noteUncaught);
process.on("unhandledRejection", noteUncaught);

let seedsRun = 0;
if (plant === undefined) await runSeeds();
else await runPlanted(plant);

async function runSeeds(): Promise<void> {
  while (seedsRun < seedCount && faults.length < FAULTS_MAX) {
    for (const store of stores) await runSeed(store, firstSeed + seedsRun);
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

async function runPlanted(word: string): Promise<void> {
  if (word !== "all" && !isOneOf(PLANTS, word)) {
    refuse(`Cannot plant "${word}": there are ${PLANTS.join(", ")} and all`);
  }
  for (const each of word === "all" ? PLANTS : [word]) {
    const finding = await findPlanted(each, { seed: firstSeed, steps });
    process.stdout.write(`planted ${each}: ${finding ?? "NOT FOUND"}\n`);
    if (finding === undefined) process.exitCode = 1;
  }
}

async function runSeed(store: StoreWord, seed: number): Promise<void> {
  const where = `seed ${seed} over the ${store} store`;
  try {
    const report = await world(store, seed);
    trace.update(report.trace);
    total.worlds += 1;
    total.messages += report.messages;
    total.changes += report.changes;
    total.resumes += report.resumes;
    total.expired += report.expired;
    if ((seed - firstSeed) % SEEDS_PER_REPEAT !== 0) return;
    total.repeated += 1;
    const again = await world(store, seed);
    if (again.trace !== report.trace) faults.push(`${where}: it gave another trace when repeated`);
  } catch (error) {
    faults.push(`${where}: ${textOf(error)}`);
    uncaught.length = 0;
  }
}

async function world(store: StoreWord, seed: number): Promise<SimulationReport> {
  const isStream = seed % SEEDS_PER_STREAM === 0;
  const report = await SIMULATIONS[store](seed, { steps, ...(isStream ? { ttlMs: TTL_MS } : {}) });
  const failed = uncaught.splice(0);
  if (failed.length > 0) throw failed[0];
  return report;
}

/** A violation says it all; of anything else the place is wanted too. */
function textOf(error: unknown): string {
  if (error instanceof StreamViolation) return error.message;
  if (error instanceof AssertionError) return error.stack ?? error.message;
  return error instanceof Error ? (error.stack ?? error.message) : String(error);
}

function storesOf(word: string): readonly StoreWord[] {
  if (word === "both") return ["model", "real"];
  if (word === "model" || word === "real") return [word];
  return refuse(`Cannot read --store "${word}": there are model, real and both`);
}

function refuse(message: string): never {
  process.stderr.write(`${message}\n`);
  process.exit(2);
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
