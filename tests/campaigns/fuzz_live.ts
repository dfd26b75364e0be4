/**
 * Follows random materialised queries on the real server while random commits change their tables,
 * and compares each complete state with the result of the SELECT at the same seq.
 *
 * Followers use JSON and MessagePack, disconnect and resume. In each round, the server is killed
 * and restarted, tables are altered under queries, and rights are granted and revoked. A state that
 * differs, a query that ends without a reason and a follower that does not catch up are findings.
 * Each finding is printed with the seed of its round, and the script exits with 1. With `--inject`,
 * a fault is injected into the server, and the script exits with 1 unless it finds the fault.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import {
  countOption,
  optionalOneOf,
  readOptions,
  seedOption,
} from "../../scripts/support/arguments.ts";
import { findInjected } from "../support/find_injected.ts";
import { ADMIN, startReadyServer } from "../support/server_process.ts";
import { bundleWithFault, PLANTED_FAULTS, type PlantedFault } from "./fuzz_live/planted_faults.ts";
import { READER, Round, type Totals } from "./fuzz_live/round.ts";

const QUERIES_PER_ROUND = 20;

/**
 * The number of findings after which a run ends, because further ones would reveal nothing new. One
 * shows that an injected fault is found.
 */
const FINDINGS_MAX = 20;

const options = readOptions({
  count: countOption("the number of queries to follow", 400),
  bursts: countOption("the number of bursts in a round, each with five commits on average", 40),
  seed: seedOption("the seed of the first round, as a run prints it"),
  inject: optionalOneOf(PLANTED_FAULTS, "injects a fault, and requires that it is found"),
});
const { bursts, count, inject: injected } = options;

if (injected === undefined) {
  process.exitCode = (await run(options.seed)) === 0 ? 0 : 1;
} else {
  await findInjected({ injected: [injected], seed: options.seed }, async (seed) =>
    (await run(seed, injected)) > 0 ? [injected] : [],
  );
}

/** Runs rounds until enough queries were followed. Returns the number of findings. */
async function run(firstSeed: number, fault?: PlantedFault): Promise<number> {
  const startMs = performance.now();
  const totals: Totals = {
    queries: 0,
    maintained: 0,
    followers: 0,
    commits: 0,
    states: 0,
    resumes: 0,
    selects: 0,
    restarts: 0,
    findings: 0,
  };
  const print = (lastSeed: number): void => {
    const seconds = ((performance.now() - startMs) / 1000).toFixed(0);
    process.stdout.write(
      `${seconds} s: seeds ${firstSeed} to ${lastSeed}, ${totals.queries} queries, ` +
        `${totals.maintained} of them maintained, ${totals.followers} followers, ` +
        `${totals.commits} commits, ${totals.states} states, ${totals.resumes} resumes, ` +
        `${totals.restarts} restarts, ${totals.selects} SELECTs: ${totals.findings} findings\n`,
    );
  };
  const report = (finding: string): void => {
    totals.findings += 1;
    if (fault === undefined) process.stdout.write(`${finding}\n`);
  };
  const findingsMax = fault === undefined ? FINDINGS_MAX : 1;
  const isEnough = (): boolean => totals.findings >= findingsMax;
  const folder = mkdtempSync(join(tmpdir(), "tidemark-fuzz-live-"));
  try {
    await using server = await startReadyServer({
      config: {
        limits: { subscriptions_per_user: 0, messages_per_sec: 0 },
        logging: { level: "warn" },
      },
      ...(fault !== undefined && { command: await bundleWithFault(folder, fault) }),
    });
    const tokens = { [ADMIN]: server.token, [READER]: await server.createUser(READER) };
    let seed = firstSeed;
    while (totals.queries < count && !isEnough()) {
      const queryCount = Math.min(QUERIES_PER_ROUND, count - totals.queries);
      const round = { server, tokens, seed, queryCount, burstCount: bursts, isEnough };
      await new Round(round, totals, report).run();
      print(seed);
      seed += 1;
    }
  } finally {
    rmSync(folder, { recursive: true });
  }
  return totals.findings;
}
