/**
 * Compares Tidemark with PostgreSQL, SQLite, Redis and DuckDB on the same machine in the same run,
 * and prints a table. It starts these systems itself.
 *
 * The load comes from a second process. PostgreSQL and SQLite run behind a thin front end that
 * checks the same bearer token, and both sync before they respond. A figure is the median of its
 * rounds. Short statements, bulk loads and snapshots begin with uncounted rounds that warm up the
 * compilers and caches of every server.
 *
 * With `--write`, the figures also replace the rows of their table in docs/performance.md: one
 * table covers live delivery and the snapshot, and another covers the rest. Rows for jobs left out
 * by `--only` stay unchanged. The rows for `live_sql` and `policies` come from a single round and
 * are only printed.
 */

import { cpus } from "node:os";
import { startServer } from "../../tests/support/server_process.ts";
import { flag, optionalCount, readOptions, someOf } from "../support/arguments.ts";
import { residentBytes } from "../support/memory.ts";
import { backgroundLines } from "./compare/background_work.ts";
import {
  bulkLines,
  insertLines,
  type JobOptions,
  type Line,
  pointLines,
  snapshotLines,
} from "./compare/jobs.ts";
import { liveLines, USER_COUNT } from "./compare/live_jobs.ts";
import { EARLIER, mergedTable } from "./compare/merged_table.ts";
import { POLICY_JOBS } from "./compare/policies.ts";
import { recoveryLine } from "./compare/recovery.ts";
import { tableOf } from "./compare/report.ts";
import { scanLines } from "./compare/scans.ts";
import { planLine, textLines } from "./compare/text.ts";
import { LIVE_SQL_JOBS } from "./live_sql/jobs.ts";
import { startSystems } from "./systems/start_systems.ts";

const JOBS = [
  "idle",
  "text",
  "background",
  "recovery",
  "insert",
  "bulk",
  "point",
  "snapshot",
  "live",
  "live_sql",
  "policies",
  "storage",
  "scan",
];

/** The jobs that start their own servers, instead of sharing the servers of the other jobs. */
const ALONE: ReadonlySet<string> = new Set([
  "idle",
  "text",
  "background",
  "recovery",
  "live_sql",
  "policies",
]);

/**
 * How long a freshly started server may take to return the memory that only its startup needed to
 * the system, in milliseconds.
 */
const IDLE_MS = 5000;

/**
 * The number of rounds of a scan. A scan takes only milliseconds, so with fewer rounds, the median
 * would be taken before the code has been compiled.
 */
const SCAN_ROUNDS = 7;

/** The Markdown page whose tables of results `--write` replaces. */
const PAGE = "docs/performance.md";

/**
 * The number of planning rounds. They are short, so it takes several of them to warm up the
 * compilers.
 */
const PLAN_ROUNDS = 5;

const options = readOptions({
  only: someOf(JOBS, "the jobs to measure"),
  quick: flag("runs one round with few rows"),
  rounds: optionalCount("the number of rounds, of which the median counts", "3"),
  rows: optionalCount("the number of rows of a scan", "10,000,000"),
  write: flag("also replaces the rows of these jobs in docs/performance.md"),
});
const wanted: readonly string[] = options.only;
const isQuick = options.quick;
const roundCount = options.rounds ?? (isQuick ? 1 : 3);

const isLiveWanted = wanted.includes("live");
const lines: Line[] = [];
const followed: Line[] = [];
const wholes: Line[] = [];
if (wanted.includes("idle")) lines.push(await idleLine());
if (wanted.includes("text")) {
  lines.push(...(await textLines(roundCount)), await planLine(roundCount * PLAN_ROUNDS));
}
if (wanted.includes("background")) lines.push(...(await backgroundLines(roundCount)));
if (wanted.includes("recovery")) lines.push(await recoveryLine(roundCount));
if (wanted.some((job) => !ALONE.has(job))) await measureBesidePeers();
if (wanted.includes("live_sql")) {
  for (const [name, job] of Object.entries(LIVE_SQL_JOBS)) {
    wholes.push(...(await noted(`live_sql, ${name}`, { isQuick, seconds: isQuick ? 1 : 3 }, job)));
  }
}
if (wanted.includes("policies")) {
  for (const [name, job] of Object.entries(POLICY_JOBS)) {
    wholes.push(...(await noted(`policies, ${name}`, { isQuick }, job)));
  }
}
for (const measured of [lines, followed, wholes]) {
  if (measured.length > 0) process.stdout.write(`\n${tableOf(measured)}\n`);
}
if (options.write) {
  if (lines.length > 0) await writePage("bench", tableOf(lines));
  if (followed.length > 0) await writePage("bench live", tableOf(followed));
}

async function measureBesidePeers(): Promise<void> {
  await using systems = await startSystems(isLiveWanted ? USER_COUNT : 0);
  const jobOptions: JobOptions = { systems, roundCount, seconds: isQuick ? 1 : 3 };

  if (wanted.includes("insert")) lines.push(...(await noted("insert", jobOptions, insertLines)));
  // The jobs that read by key, read snapshots or follow changes use the rows that the bulk job
  // inserts.
  if (["bulk", "point", "snapshot", "live"].some((job) => wanted.includes(job))) {
    const bulk = await noted("bulk", jobOptions, bulkLines);
    if (wanted.includes("bulk")) lines.push(...bulk);
  }
  if (wanted.includes("point")) lines.push(...(await noted("point", jobOptions, pointLines)));
  if (isLiveWanted || wanted.includes("snapshot")) {
    followed.push(...(await noted("snapshot", jobOptions, snapshotLines)));
  }
  if (isLiveWanted) followed.push(...(await noted("live", jobOptions, liveLines)));
  if (wanted.includes("scan") || wanted.includes("storage")) {
    const rowCount = options.rows ?? (isQuick ? 100_000 : 10_000_000);
    lines.push(
      ...(await noted("scan", jobOptions, ({ roundCount: rounds }) =>
        scanLines({ systems, roundCount: rounds * SCAN_ROUNDS, rowCount, wanted }),
      )),
    );
  }
}

/** Prints on stderr which job is running, because an entire run takes minutes. */
async function noted<Options>(
  name: string,
  jobOptions: Options,
  job: (options: Options) => Promise<Line[]>,
): Promise<Line[]> {
  const startMs = performance.now();
  const measured = await job(jobOptions);
  const seconds = Math.round((performance.now() - startMs) / 1000);
  process.stderr.write(`${name}: ${seconds} s\n${tableOf(measured)}\n`);
  return measured;
}

/** Measures the memory of an idle server whose database is empty. */
async function idleLine(): Promise<Line> {
  await using server = await startServer();
  await Bun.sleep(IDLE_MS);
  const values = { Tidemark: residentBytes(server.pid) / 2 ** 20 };
  return {
    job: "memory of an idle server",
    unit: "MiB",
    isRate: false,
    values,
    target: { atMost: 60 },
  };
}

/**
 * Replaces a table of results in the documentation page.
 * @param mark The marker that the comments before and after the table contain.
 */
async function writePage(mark: string, measured: string): Promise<void> {
  const text = await Bun.file(PAGE).text();
  const date = new Date().toISOString().slice(0, 10);
  const marked = new RegExp(`<!-- ${mark} -->([^]*)<!-- /${mark} -->`);
  const [, before] = marked.exec(text) ?? [];
  if (before === undefined) {
    throw new Error(`Cannot write ${PAGE}: it has no comments that mark the table "${mark}"`);
  }
  const table = wanted.length < JOBS.length ? mergedTable(before, measured) : measured;
  const earlier = table.includes(EARLIER) ? `; rows with${EARLIER} come from earlier runs` : "";
  const machine = `${cpus().length} cores, Linux, ${date}, medians of ${roundCount} rounds`;
  const part = `<!-- ${mark} -->\n${machine}${earlier}:\n\n${table}\n<!-- /${mark} -->`;
  await Bun.write(
    PAGE,
    text.replace(marked, () => part),
  );
}
