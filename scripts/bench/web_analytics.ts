/**
 * Runs 43 queries about page views on Tidemark, DuckDB, SQLite and PostgreSQL, and compares
 * results and times.
 *
 * A single table of a hundred columns is generated from the seed. Tidemark is the real server,
 * loaded with INSERT, flushed and restarted; its time includes HTTP and JSON. DuckDB runs
 * in-process on one thread, SQLite in-process, and PostgreSQL as installed; the last two are
 * analysed. The output shows the median time of `--runs` runs in milliseconds. Each query runs on
 * one engine after another, so that noise affects all engines alike. `--rows 20000` is quick.
 * `--keep` leaves Tidemark's directory in place.
 *
 * Exits with 1 if a result differs from DuckDB's or a query is refused.
 */

import { countOption, flag, optionalText, readOptions } from "../support/arguments.ts";
import { chosenQueries, runPeers } from "./peers/run.ts";
import { viewsOf } from "./web_analytics/data.ts";
import { QUERIES } from "./web_analytics/queries.ts";
import { VIEWS } from "./web_analytics/schema.ts";

const options = readOptions({
  rows: countOption("page views", 1_000_000),
  seed: countOption("the seed from which the data are generated", 1),
  only: optionalText("<numbers>", "the questions to ask, as in 1,6,14"),
  runs: countOption("the number of times that each query runs; the median counts", 3),
  "without-postgres": flag("leaves PostgreSQL out"),
  "without-sqlite": flag("leaves SQLite out"),
  keep: flag("keeps Tidemark's directory"),
});
await runPeers({
  tables: [VIEWS],
  rows: viewsOf(options.rows, options.seed),
  queries: chosenQueries(QUERIES, options.only),
  runs: Math.max(1, options.runs),
  isLeftOut: (option) => options[option],
  isKept: options.keep,
});
