/**
 * Runs the 99 queries of TPC-DS on Tidemark and DuckDB, and compares results and processor times.
 *
 * Tables and queries come from a DuckDB database file, because DuckDB's extension `tpcds` contains
 * the generator defined by the specification. These DuckDB statements create the file:
 *
 *     INSTALL tpcds; LOAD tpcds; CALL dsdgen(sf = 0.1);
 *     CREATE TABLE queries AS FROM tpcds_queries();
 *
 * Tidemark is the real server, loaded with INSERT, flushed and restarted; its time includes HTTP
 * and JSON. DuckDB runs in-process on one thread. The output shows the median time of `--runs`
 * runs in milliseconds. Each query runs on one engine after another. `--keep` leaves Tidemark's
 * directory in place.
 *
 * Exits with 1 if a result differs from DuckDB's or a query is refused.
 */

import { DuckDBInstance } from "@duckdb/node-api";
import { countOption, flag, optionalText, readOptions, refuse } from "../support/arguments.ts";
import { type DatabaseFile, openDatabaseFile } from "./peers/database_file.ts";
import { chosenQueries, runPeers } from "./peers/run.ts";

const options = readOptions({
  database: optionalText("<file>", "the file with the tables and the queries"),
  only: optionalText("<numbers>", "the queries to run, as in 1,6,14"),
  runs: countOption("how often each query runs; the median counts", 3),
  keep: flag("keeps Tidemark's directory"),
});

/**
 * The primary keys defined by the specification. The generator creates the tables without them.
 */
const KEYS: Readonly<Record<string, string>> = {
  call_center: "cc_call_center_sk",
  catalog_page: "cp_catalog_page_sk",
  catalog_returns: "cr_item_sk, cr_order_number",
  catalog_sales: "cs_item_sk, cs_order_number",
  customer: "c_customer_sk",
  customer_address: "ca_address_sk",
  customer_demographics: "cd_demo_sk",
  date_dim: "d_date_sk",
  household_demographics: "hd_demo_sk",
  income_band: "ib_income_band_sk",
  inventory: "inv_date_sk, inv_item_sk, inv_warehouse_sk",
  item: "i_item_sk",
  promotion: "p_promo_sk",
  reason: "r_reason_sk",
  ship_mode: "sm_ship_mode_sk",
  store: "s_store_sk",
  store_returns: "sr_item_sk, sr_ticket_number",
  store_sales: "ss_item_sk, ss_ticket_number",
  time_dim: "t_time_sk",
  warehouse: "w_warehouse_sk",
  web_page: "wp_web_page_sk",
  web_returns: "wr_item_sk, wr_order_number",
  web_sales: "ws_item_sk, ws_order_number",
  web_site: "web_site_sk",
};

async function open(path: string | undefined): Promise<DatabaseFile> {
  if (path === undefined) refuse("Give --database <file>: --help says how DuckDB writes it");
  return openDatabaseFile(await DuckDBInstance.create(path, { access_mode: "READ_ONLY" }));
}

const file = await open(options.database);
const queries = (await file.rowsOf("SELECT query_nr, query FROM queries ORDER BY 1")).map(
  ([number, sql]) => ({ label: String(number), sql: String(sql) }),
);
const tables = file.tables.flatMap(({ columns, ...table }) => {
  const key = KEYS[table.name];
  return key === undefined ? [] : [{ ...table, columns: `${columns}, PRIMARY KEY (${key})` }];
});
await runPeers({
  tables,
  rows: file.rowsIn(tables),
  queries: chosenQueries(queries, options.only),
  runs: Math.max(1, options.runs),
  clock: "processor",
  isLeftOut: () => true,
  isKept: options.keep,
});
