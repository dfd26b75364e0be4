/**
 * Asks 43 questions about page views of Tidemark, DuckDB, SQLite and PostgreSQL, and compares
 * answers and times.
 *
 *     bun scripts/web_analytics.ts [--rows 1000000] [--seed 1] [--only 1,6,14] [--runs 3]
 *                                  [--without-postgres] [--without-sqlite] [--keep]
 *
 * One table of a hundred columns is made from the seed. Tidemark is the real server, loaded by
 * INSERT, flushed and restarted; its time includes HTTP and JSON. DuckDB runs in this process on
 * one thread, SQLite in this process, PostgreSQL as installed; both are analysed. Printed are
 * medians of `--runs` in milliseconds, engine after engine for each query, so that noise meets all
 * alike. `--rows 20000` is quick. `--keep` leaves Tidemark's directory behind.
 *
 * Ends with 1 when an answer is not DuckDB's or a query is refused.
 */
import { chosenQueries, runPeers } from "./peers/run.ts";
import { readOptions } from "./support/arguments.ts";
import { viewsOf } from "./web_analytics/data.ts";
import { QUERIES } from "./web_analytics/queries.ts";
import { VIEWS } from "./web_analytics/schema.ts";

const options = readOptions(
  ["rows", "seed", "only", "runs"],
  ["without-postgres", "without-sqlite", "keep"],
);
await runPeers({
  tables: [VIEWS],
  rows: viewsOf(options.count("rows", 1_000_000), options.count("seed", 1)),
  queries: chosenQueries(QUERIES, options.text("only")),
  runs: Math.max(1, options.count("runs", 3)),
  isLeftOut: (option) => options.has(option),
  isKept: options.has("keep"),
});
