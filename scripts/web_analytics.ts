/**
 * Asks 43 questions about page views of Tidemark, DuckDB, SQLite and PostgreSQL, and compares answers
 * and times.
 *
 *     bun scripts/web_analytics.ts [--rows 1000000] [--seed 1] [--only 1,6,14] [--runs 3]
 *                                  [--without-postgres] [--without-sqlite] [--keep]
 *
 * One table of a hundred columns is made from the seed. Tidemark is the real server, loaded by
 * INSERT, flushed and restarted; its time includes HTTP and JSON. DuckDB runs in this process on one
 * thread, SQLite in this process, PostgreSQL as installed; both are analysed. Printed are medians of
 * `--runs` in milliseconds, engine after engine for each query, so that noise meets all alike.
 * `--rows 20000` is quick. `--keep` leaves Tidemark's directory behind.
 *
 * Ends with 1 when an answer is not DuckDB's or a query is refused.
 */
import { runContest } from "./peers/contest.ts";
import {
  type Engine,
  openDuckDb,
  openPostgres,
  openSqlite,
  openTidemark,
  writeFiles,
} from "./peers/engines.ts";
import { readOptions } from "./support/arguments.ts";
import { viewsOf } from "./web_analytics/data.ts";
import { QUERIES } from "./web_analytics/queries.ts";
import { VIEWS } from "./web_analytics/schema.ts";

const options = readOptions(
  ["rows", "seed", "only", "runs"],
  ["without-postgres", "without-sqlite", "keep"],
);
const startedMs = Date.now();
const engines: Engine[] = [];
try {
  process.exitCode = (await runAll()) ? 0 : 1;
} finally {
  for (const engine of engines) await engine.stop();
}
process.exit();

function progress(text: string): void {
  process.stderr.write(`${((Date.now() - startedMs) / 1000).toFixed(1).padStart(6)} s  ${text}\n`);
}

/** Returns whether every answer was right. */
async function runAll(): Promise<boolean> {
  const only = options.text("only")?.split(",");
  const chosen = QUERIES.filter(({ label }) => only?.includes(label) ?? true);
  if (only !== undefined && chosen.length < only.length) {
    process.stderr.write(`Cannot read --only "${only.join(",")}": queries are numbered 1 to 43\n`);
    return false;
  }
  const rows = viewsOf(options.count("rows", 1_000_000), options.count("seed", 1));
  const files = await writeFiles([VIEWS], rows);
  progress(`made ${files.rowCount} rows`);
  engines.push(await openDuckDb(files));
  progress("DuckDB is loaded");
  if (!options.has("without-sqlite")) {
    engines.push(await openSqlite(files));
    progress("SQLite is loaded");
  }
  if (!options.has("without-postgres")) {
    engines.push(await openPostgres(files));
    progress("PostgreSQL is loaded");
  }
  engines.push(await openTidemark(files, { isKept: options.has("keep"), onProgress: progress }));
  files.remove();
  return runContest(engines, chosen, Math.max(1, options.count("runs", 3)));
}
