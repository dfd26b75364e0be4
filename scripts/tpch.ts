/**
 * Runs the 22 queries of TPC-H on Tidemark, DuckDB and PostgreSQL, and compares answers and times.
 *
 *     bun scripts/tpch.ts [--sf 0.1] [--seed 1] [--only 1,6,14] [--runs 3] [--without-postgres] [--keep]
 *
 * The data is made from the seed by the distributions of the specification. Tidemark is the real
 * server, loaded by INSERT, flushed and restarted; its time includes HTTP and JSON. DuckDB runs in
 * this process on one thread, PostgreSQL as installed, with indexes on foreign keys and ANALYZE.
 * Printed are medians of `--runs` in milliseconds, engine after engine for each query, so that noise
 * meets all alike. `--sf 0.01` is quick. `--keep` leaves Tidemark's directory behind.
 *
 * Ends with 1 when an answer is not DuckDB's or a query is refused.
 */

import { runContest } from "./peers/contest.ts";
import {
  type Engine,
  openDuckDb,
  openPostgres,
  openTidemark,
  writeFiles,
} from "./peers/engines.ts";
import { readOptions } from "./support/arguments.ts";
import { rowsOf } from "./tpch/data.ts";
import { queriesAt } from "./tpch/queries.ts";
import { TABLES } from "./tpch/schema.ts";

const options = readOptions(["sf", "seed", "only", "runs"], ["without-postgres", "keep"]);
const scale = Number(options.text("sf") ?? "0.1");
// With fewer suppliers the four of a part need not be different ones.
if (scale !== 0.01 && !(scale >= 0.025 && scale <= 10)) {
  process.stderr.write(`Cannot read --sf "${options.text("sf")}": give 0.01, or 0.025 to 10\n`);
  process.exit(2);
}
const runs = Math.max(1, options.count("runs", 3));
const chosen = chosenQueries();
const startedMs = Date.now();
const engines: Engine[] = [];
try {
  process.exitCode = (await runAll()) ? 0 : 1;
} finally {
  for (const engine of engines) await engine.stop();
}
process.exit();

function chosenQueries(): readonly (readonly [number, string])[] {
  const all = [...queriesAt(scale)];
  const only = options.text("only");
  if (only === undefined) return all;
  const numbers = only.split(",").map(Number);
  const unknown = numbers.find((number) => !all.some(([known]) => known === number));
  if (unknown !== undefined) {
    process.stderr.write(`Cannot read --only "${only}": queries are numbered 1 to 22\n`);
    process.exit(2);
  }
  return all.filter(([number]) => numbers.includes(number));
}

function progress(text: string): void {
  process.stderr.write(`${((Date.now() - startedMs) / 1000).toFixed(1).padStart(6)} s  ${text}\n`);
}

/** Returns whether every answer was right. */
async function runAll(): Promise<boolean> {
  const files = await writeFiles(TABLES, rowsOf(scale, options.count("seed", 1)));
  progress(`made ${files.rowCount} rows at scale factor ${scale}`);
  engines.push(await openDuckDb(files));
  progress("DuckDB is loaded");
  if (!options.has("without-postgres")) {
    engines.push(await openPostgres(files));
    progress("PostgreSQL is loaded");
  }
  engines.push(await openTidemark(files, { isKept: options.has("keep"), onProgress: progress }));
  files.remove();

  const queries = chosen.map(([number, sql]) => ({ label: String(number), sql }));
  return runContest(engines, queries, runs);
}
