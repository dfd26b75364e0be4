/**
 * Puts ordinary load on the real server for a long time, and reports its memory use.
 *
 * The load consists of 80 changes of 20 rows a second to three tables of 10,000 rows, one grouped
 * query after another, and ten followers that connect and leave. `--only bulk` loads rows of 60
 * bytes instead. `--limit` limits the memory of the server (`soak/memory_limit.ts`). `--peers`
 * puts PostgreSQL and SQLite behind their front ends under the same load, one after the other.
 * `--compiled` uses the executable in dist/ instead of the sources. `--only answers` starts a
 * server for each run, with 256 MiB if no limit is given, and reads several responses of 100 MB
 * from it at a time.
 *
 * Exits with 1 if a statement failed or the server ended.
 */

import { countOption, flag, oneOf, readOptions } from "../support/arguments.ts";
import { mebibytes } from "../support/memory.ts";
import { loadInBulk } from "./soak/bulk_load.ts";
import { readLongAnswers } from "./soak/long_answers.ts";
import { MixedLoad } from "./soak/mixed_load.ts";
import { startPeer } from "./soak/peers.ts";
import { Watch } from "./soak/resident.ts";
import { processorMs, type SoakTarget } from "./soak/target.ts";
import { startTidemark } from "./soak/tidemark.ts";

const FAILURES_SHOWN = 5;

const options = readOptions({
  only: oneOf(
    ["mixed", "bulk", "answers"],
    "mixed load, many rows at once, or long responses",
    "mixed",
  ),
  minutes: countOption("how long the mixed load lasts", 20),
  rows: countOption("the number of rows of the bulk load", 3_000_000),
  runs: countOption("the number of server starts for long responses", 10),
  "at-once": countOption("the number of long responses that are read at a time", 4),
  limit: countOption("the memory limit of the server in bytes; 0 means no limit", 0),
  peers: flag("puts the same load on PostgreSQL and SQLite"),
  compiled: flag("runs the executable in dist/ instead of the sources"),
});
const { only, minutes, rows: rowCount, limit: limitBytes } = options;
const program = options.compiled ? [`dist/tidemark-${process.platform}-${process.arch}`] : [];
const command = program.length === 0 ? {} : { command: program };
if (only === "answers") process.exit((await soakAnswers()) === 0 ? 0 : 1);
let failureCount = await soak(() => startTidemark(limitBytes, command));
if (options.peers) {
  failureCount += await soak(() => startPeer("postgres"));
  failureCount += await soak(() => startPeer("sqlite"));
}
process.exit(failureCount === 0 ? 0 : 1);

async function soak(start: () => Promise<SoakTarget>): Promise<number> {
  await using target = await start();
  const watch = new Watch(() => target.pids());
  const failures = only === "bulk" ? await soakBulk(target, watch) : await soakMixed(target, watch);
  watch.close();
  const { median, most, slope } = watch.report;
  const trend = slope === undefined ? "" : `, ${(slope / 2 ** 20).toFixed(2)} MiB a minute`;
  print(`  resident ${mebibytes(median)} MiB at the median, ${mebibytes(most)} at most${trend}`);
  for (const [atMs, bytes] of watch.byMinute) {
    print(`    ${(atMs / 60_000).toFixed(0).padStart(4)} min  ${mebibytes(bytes)} MiB`);
  }
  for (const failure of failures.slice(0, FAILURES_SHOWN)) print(`  FAILED: ${failure}`);
  return failures.length;
}

async function soakMixed(target: SoakTarget, watch: Watch): Promise<readonly string[]> {
  const load = new MixedLoad(target);
  await load.prepare();
  watch.begin();
  const [startMs, usedMs] = [performance.now(), processorMs(target.pids())];
  await load.run(60_000 * minutes);
  const { changeCount, changeMs, failures, followerCount, messageCount, queryCount, queryMs } =
    load.report;
  const seconds = (performance.now() - startMs) / 1000;
  const used = processorMs(target.pids()) - usedMs;
  print(
    `${target.name}: ${(changeCount / seconds).toFixed(1)} changes a second ` +
      `(${changeMs.median.toFixed(1)} ms, p99 ${changeMs.p99.toFixed(1)}), ` +
      `${(queryCount / seconds).toFixed(1)} queries (${queryMs.median.toFixed(1)} ms), ` +
      `${followerCount} followers, ${messageCount} messages, ${failures.length} failures; ` +
      `processor ${((100 * used) / 1000 / seconds).toFixed(0)} %, ` +
      `${(used / (changeCount + queryCount)).toFixed(2)} ms a statement`,
  );
  return failures;
}

async function soakBulk(target: SoakTarget, watch: Watch): Promise<readonly string[]> {
  watch.begin();
  const [startMs, usedMs] = [performance.now(), processorMs(target.pids())];
  const { failures, statementCount } = await loadInBulk(target, rowCount);
  const seconds = (performance.now() - startMs) / 1000;
  const used = processorMs(target.pids()) - usedMs;
  print(
    `${target.name}: ${rowCount} rows in ${seconds.toFixed(1)} s, ` +
      `${statementCount} statements, ${failures.length} failures; ` +
      `processor ${(used / 1000).toFixed(1)} s, ${((1000 * used) / rowCount).toFixed(2)} µs a row`,
  );
  return failures;
}

/** Returns the number of runs in which the server was killed. */
async function soakAnswers(): Promise<number> {
  const runCount = options.runs;
  const given = {
    answerBytes: 100_000_000,
    atOnce: options["at-once"],
    limitBytes: limitBytes === 0 ? 256 * 2 ** 20 : limitBytes,
  };
  let killedCount = 0;
  for (let run = 1; run <= runCount; run += 1) {
    const { codes, completeCount, heldBytes, isAlive, tookMs } = await readLongAnswers(
      given,
      command,
    );
    if (!isAlive) killedCount += 1;
    print(
      `run ${run}: ${isAlive ? "alive" : "KILLED"}, ${completeCount} answers in ` +
        `${(tookMs / 1000).toFixed(1)} s, ${mebibytes(heldBytes)} MiB at most` +
        (codes.length === 0 ? "" : `, refused: ${codes.join(", ")}`),
    );
  }
  print(
    `the server died in ${killedCount} of ${runCount} runs, at ${given.atOnce} responses at a time`,
  );
  return killedCount;
}

function print(line: string): void {
  process.stdout.write(`${line}\n`);
}
