/**
 * Follows random materialised queries on the real server while random commits change their tables,
 * and compares each complete state with the result of the SELECT at the same seq.
 *
 * A round follows many queries over the same tables, so that they share the commits. Followers use
 * JSON and MessagePack, disconnect and resume. The server is killed and restarted, tables are
 * altered while queries on them are followed, and rights are granted and revoked. The findings are
 * states that differ, queries that end without a reason, and followers that do not catch up. After
 * a finding, its query is no longer followed.
 *
 * A query and a commit count as a pair if the state that a follower of the query had at the commit
 * was compared with the SELECT at this commit. If the commit changed no table that the query
 * reads, the SELECT at the most recent commit that changed one has the same rows, and is compared
 * instead. A follower that receives several commits at once has no state at any but the last of
 * them. While the server is killed or a definition changes, a pair counts only if the state has
 * the seq of the commit.
 *
 * Each finding is printed with a command that follows its query alone up to the same commits, and
 * the script exits with 1. If the query alone shows no fault, add further queries of the round
 * with `--only`, because queries share indexes in memory and the server's time. With `--inject`, a
 * fault is injected into the server, and the script exits with 1 unless it finds the fault.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import {
  countOption,
  optionalCounts,
  optionalOneOf,
  readOptions,
  seedOption,
} from "../../scripts/support/arguments.ts";
import { findInjected } from "../support/find_injected.ts";
import { ADMIN, startReadyServer } from "../support/server_process.ts";
import { bundleWithFault, PLANTED_FAULTS, type PlantedFault } from "./fuzz_live/planted_faults.ts";
import { type Finding, READER, Round, type Totals } from "./fuzz_live/round.ts";

/**
 * The number of findings after which a run ends, because further findings would reveal nothing
 * new. If a fault is injected, a single finding is enough.
 */
const FINDINGS_MAX = 20;

/**
 * The settings of the workers in `scripts/test.ts`. Each query runs a few dozen times, and each
 * server lives for a few minutes, so recompiling code to run faster does not pay off.
 */
const QUICK_START = { BUN_JSC_useFTLJIT: "0", MIMALLOC_PURGE_DELAY: "1000" };

const options = readOptions({
  count: countOption("the number of queries to follow", 400),
  queries: countOption("the number of queries in a round", 100),
  bursts: countOption("the number of bursts in a round, each with five commits on average", 40),
  seed: seedOption("the seed of the first round, as a run prints it"),
  only: optionalCounts("runs one round that follows only the queries with these numbers"),
  inject: optionalOneOf(PLANTED_FAULTS, "injects a fault, and requires that it is found"),
});
const { bursts, count, inject: injected, only } = options;

if (injected === undefined) {
  process.exitCode = (await run(options.seed)) === 0 ? 0 : 1;
} else {
  await findInjected({ injected: [injected], seed: options.seed }, async (seed) =>
    (await run(seed, injected)) > 0 ? [injected] : [],
  );
}

/** Runs rounds until enough queries have been followed. Returns the number of findings. */
async function run(firstSeed: number, fault?: PlantedFault): Promise<number> {
  const startMs = performance.now();
  const totals: Totals = {
    queries: 0,
    maintained: 0,
    followers: 0,
    commits: 0,
    followed: 0,
    pairs: 0,
    changedPairs: 0,
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
        `${totals.commits} commits, ${totals.pairs} of ${totals.followed} queries × commits ` +
        `compared, ${totals.changedPairs} of them after a change, ${totals.states} states, ` +
        `${totals.resumes} resumes, ${totals.restarts} restarts, ${totals.selects} SELECTs: ` +
        `${totals.findings} findings\n`,
    );
  };
  const report = ({ burst, query, seed, what }: Finding): void => {
    totals.findings += 1;
    if (fault !== undefined) return;
    const command = `bun task fuzz_live --seed ${seed} --only ${query} --bursts ${burst}`;
    process.stdout.write(`${what}\n  repeat: ${command}\n`);
  };
  const findingsMax = fault === undefined ? FINDINGS_MAX : 1;
  const isEnough = (): boolean => totals.findings >= findingsMax;
  const folder = mkdtempSync(join(tmpdir(), "tidemark-fuzz-live-"));
  try {
    await using server = await startReadyServer({
      config: {
        limits: { subscriptions_per_user: 0, messages_per_sec: 0 },
        logging: { level: "warn" },
        server: { workers: 1 },
      },
      env: QUICK_START,
      ...(fault !== undefined && { command: await bundleWithFault(folder, fault) }),
    });
    const tokens = { [ADMIN]: server.token, [READER]: await server.createUser(READER) };
    const isOver = (): boolean => only !== undefined || totals.queries >= count || isEnough();
    let seed = firstSeed;
    do {
      const queries = only ?? Math.min(options.queries, count - totals.queries);
      const round = { server, tokens, seed, queries, burstCount: bursts, isEnough };
      await new Round(round, totals, report).run();
      print(seed);
      seed += 1;
    } while (!isOver());
  } finally {
    rmSync(folder, { recursive: true });
  }
  return totals.findings;
}
