/**
 * Runs the 22 queries of TPC-H on Tidemark, DuckDB and PostgreSQL, and compares results and times.
 *
 * The data is generated from the seed, with the distributions defined by the specification.
 * Tidemark is the real server, loaded with INSERT, flushed and restarted; its time includes HTTP
 * and JSON. DuckDB runs in-process on one thread. PostgreSQL runs as installed, with indexes on
 * foreign keys and ANALYZE. The output shows the median time of `--runs` runs in milliseconds.
 * Each query runs on one engine after another, so that noise affects all engines alike. `--sf
 * 0.01` is quick. `--keep` leaves Tidemark's directory in place.
 *
 * Exits with 1 if a result differs from DuckDB's or a query is refused.
 */

import {
  countOption,
  flag,
  optionalText,
  readOptions,
  refuse,
  textOption,
} from "../support/arguments.ts";
import { chosenQueries, runPeers } from "./peers/run.ts";
import { rowsOf } from "./tpch/data.ts";
import { queriesAt } from "./tpch/queries.ts";
import { TABLES } from "./tpch/schema.ts";

const options = readOptions({
  sf: textOption("<scale factor>", "the size of the data; 1 is 6,000,000 line items", "0.1"),
  seed: countOption("the seed from which the data are generated", 1),
  only: optionalText("<numbers>", "the queries to run, as in 1,6,14"),
  runs: countOption("the number of times that each query runs; the median counts", 3),
  "without-postgres": flag("leaves PostgreSQL out"),
  keep: flag("keeps Tidemark's directory"),
});
const scale = Number(options.sf);
// At other scale factors, there are too few suppliers for the four suppliers of a part to be
// different.
if (scale !== 0.01 && !(scale >= 0.025 && scale <= 10)) {
  refuse(`Cannot read --sf "${options.sf}": give 0.01, or 0.025 to 10`);
}
const queries = [...queriesAt(scale)].map(([number, sql]) => ({ label: String(number), sql }));
await runPeers({
  tables: TABLES,
  rows: rowsOf(scale, options.seed),
  queries: chosenQueries(queries, options.only),
  runs: Math.max(1, options.runs),
  isLeftOut: (option) => option === "without-sqlite" || options[option],
  isKept: options.keep,
});
