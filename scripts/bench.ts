/**
 * Measures Tidemark beside PostgreSQL, SQLite, Redis and DuckDB, which it starts itself, on the
 * same machine in the same run, and prints a table.
 *
 *     bun scripts/bench.ts [--only idle,text,background,recovery,insert,bulk,point,snapshot,live,
 *                          storage,scan]
 *                          [--quick] [--rounds 3] [--rows 10000000] [--readme]
 *
 * The load comes from a second process. PostgreSQL and SQLite stand behind a thin front that
 * checks the same bearer token; both sync before they answer. A figure is the median of its rounds;
 * short statements, bulk loads and snapshots have rounds before, for compilers and caches of every
 * place.
 * With `--readme` what was measured also goes into its table in README.md: there is one for live
 * delivery, with the snapshot, and one for the rest. Rows of jobs that `--only` leaves out stay.
 */

import { cpus } from "node:os";
import { startServer } from "../tests/support/server_process.ts";
import { backgroundLines } from "./bench/background_work.ts";
import {
  bulkLines,
  insertLines,
  type JobOptions,
  type Line,
  pointLines,
  snapshotLines,
} from "./bench/jobs.ts";
import { liveLines, USER_COUNT } from "./bench/live_jobs.ts";
import { EARLIER, mergedTable } from "./bench/merged_table.ts";
import { startPlaces } from "./bench/places.ts";
import { recoveryLine } from "./bench/recovery.ts";
import { tableOf } from "./bench/report.ts";
import { scanLines } from "./bench/scans.ts";
import { planLine, textLines } from "./bench/text.ts";
import { readOptions } from "./support/arguments.ts";
import { residentBytes } from "./support/memory.ts";

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
  "storage",
  "scan",
];

/** These start what they measure. */
const ALONE: ReadonlySet<string> = new Set(["idle", "text", "background", "recovery"]);

/** A scan takes milliseconds: with few rounds the median is a cold compiler's. */
const SCAN_ROUNDS = 7;

/** Rounds of planning are short, and the compilers take their time. */
const PLAN_ROUNDS = 5;

const options = readOptions(["only", "rounds", "rows"], ["quick", "readme"]);
const wanted = options.text("only")?.split(",") ?? JOBS;
const unknown = wanted.filter((job) => !JOBS.includes(job));
if (unknown.length > 0)
  throw new Error(`Cannot measure ${unknown.join()}: there are ${JOBS.join()}`);
const isQuick = options.has("quick");
const roundCount = options.count("rounds", isQuick ? 1 : 3);

// Peers hear of the end of this process, so it must end in an orderly way on a signal too.
process.on("SIGINT", () => process.exit(130));
process.on("SIGTERM", () => process.exit(143));

const isLiveWanted = wanted.includes("live");
const lines: Line[] = [];
const followed: Line[] = [];
if (wanted.includes("idle")) lines.push(await idleLine());
if (wanted.includes("text")) {
  lines.push(...(await textLines(roundCount)), await planLine(roundCount * PLAN_ROUNDS));
}
if (wanted.includes("background")) lines.push(...(await backgroundLines(roundCount)));
if (wanted.includes("recovery")) lines.push(await recoveryLine(roundCount));
if (wanted.some((job) => !ALONE.has(job))) await measureBesidePeers();
for (const measured of [lines, followed]) {
  if (measured.length > 0) process.stdout.write(`\n${tableOf(measured)}\n`);
}
if (options.has("readme")) {
  if (lines.length > 0) await writeReadme("bench", tableOf(lines));
  if (followed.length > 0) await writeReadme("bench live", tableOf(followed));
}

async function measureBesidePeers(): Promise<void> {
  await using places = await startPlaces(isLiveWanted ? USER_COUNT : 0);
  const jobOptions: JobOptions = { places, roundCount, seconds: isQuick ? 1 : 3 };

  if (wanted.includes("insert")) lines.push(...(await noted("insert", jobOptions, insertLines)));
  // Reads by key and snapshots read what the bulk job leaves behind.
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
    const rowCount = options.count("rows", isQuick ? 100_000 : 10_000_000);
    lines.push(
      ...(await noted("scan", jobOptions, ({ roundCount: rounds }) =>
        scanLines({ places, roundCount: rounds * SCAN_ROUNDS, rowCount, wanted }),
      )),
    );
  }
}

/** Says on stderr what is being measured, since a whole run takes minutes. */
async function noted(
  name: string,
  jobOptions: JobOptions,
  job: (options: JobOptions) => Promise<Line[]>,
): Promise<Line[]> {
  const startMs = performance.now();
  const measured = await job(jobOptions);
  const seconds = Math.round((performance.now() - startMs) / 1000);
  process.stderr.write(`${name}: ${seconds} s\n${tableOf(measured)}\n`);
  return measured;
}

/** Memory of a server that has nothing to do and nothing to hold. */
async function idleLine(): Promise<Line> {
  await using server = await startServer();
  await Bun.sleep(1000);
  const values = { Tidemark: residentBytes(server.pid) / 2 ** 20 };
  return {
    job: "memory of an idle server",
    unit: "MiB",
    isRate: false,
    values,
    target: { atMost: 120 },
  };
}

/** @param mark What the comments around the table say. */
async function writeReadme(mark: string, measured: string): Promise<void> {
  const text = await Bun.file("README.md").text();
  const date = new Date().toISOString().slice(0, 10);
  const marked = new RegExp(`<!-- ${mark} -->([^]*)<!-- /${mark} -->`);
  const [, before] = marked.exec(text) ?? [];
  if (before === undefined) {
    throw new Error(`Cannot write README.md: it has no place for the table "${mark}"`);
  }
  const table = wanted.length < JOBS.length ? mergedTable(before, measured) : measured;
  const earlier = table.includes(EARLIER) ? `; rows with${EARLIER} are of earlier runs` : "";
  const machine = `${cpus().length} cores, Linux, ${date}, medians of ${roundCount} rounds`;
  const part = `<!-- ${mark} -->\n${machine}${earlier}:\n\n${table}\n<!-- /${mark} -->`;
  await Bun.write(
    "README.md",
    text.replace(marked, () => part),
  );
}
