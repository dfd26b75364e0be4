/**
 * Runs the 22 queries of TPC-H on Tidemark, DuckDB and PostgreSQL, and compares answers and times.
 *
 *     bun scripts/tpch.ts [--sf 0.1] [--seed 1] [--only 1,6,14] [--runs 3] [--without-postgres] [--keep]
 *
 * The data is made from the seed by the distributions of the specification. Tidemark is the real
 * server, loaded by INSERT, flushed and restarted; its time includes HTTP and JSON. DuckDB runs in
 * this process on one thread, PostgreSQL as installed, with indexes on foreign keys and ANALYZE.
 * Printed are medians of `--runs` in milliseconds, engine after engine for each query, so that
 * noise meets all alike. `--sf 0.01` is quick. `--keep` leaves Tidemark's directory behind.
 *
 * Ends with 1 when an answer is not DuckDB's or a query is refused.
 */
import { chosenQueries, runPeers } from "./peers/run.ts";
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
const queries = [...queriesAt(scale)].map(([number, sql]) => ({ label: String(number), sql }));
await runPeers({
  tables: TABLES,
  rows: rowsOf(scale, options.count("seed", 1)),
  queries: chosenQueries(queries, options.text("only")),
  runs: Math.max(1, options.count("runs", 3)),
  isLeftOut: (option) => option === "without-sqlite" || options.has(option),
  isKept: options.has("keep"),
});
