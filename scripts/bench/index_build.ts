/**
 * Builds indexes over a table with rows, and compares processor times with DuckDB's.
 *
 * Both engines get the same rows: a key, an INT, a BIGINT and a TEXT in no order, each with about a
 * million values or more. Tidemark is the real server, whose rows are in segments. DuckDB runs
 * in-process on one thread. Prints a line for each column.
 *
 * Exits with 1 if an index finds a wrong number of rows, or takes more than three times as long.
 */
import { type DuckDBConnection, DuckDBInstance } from "@duckdb/node-api";
import { type ServerProcess, startReadyServer } from "../../tests/support/server_process.ts";
import { countOption, readOptions } from "../support/arguments.ts";
import { cpuNsOf } from "./compare/process_time.ts";

const { rows: rowCount } = readOptions({
  rows: countOption("the number of rows", 10_000_000),
});

const RATIO_MAX = 3;
const ROWS_PER_INSERT = 500_000;
const TIMEOUT_MS = 600_000;

/** The indexed columns: an expression over the key, and a condition that few rows meet. */
const COLUMNS = {
  v: { value: "CAST((i * 7919) % 1000003 AS INTEGER)", condition: "v = 5" },
  w: { value: "(i * 7919) % 9999991", condition: "w = 5" },
  s: { value: "'name ' || CAST((i * 7919) % 1000003 AS TEXT)", condition: "s = 'name 5'" },
} as const;

const values: string = Object.values(COLUMNS)
  .map(({ value }) => value)
  .join(", ");

const instance = await DuckDBInstance.create(":memory:", { threads: "1" });
const duckDb = await instance.connect();
await using server = await startReadyServer();
await fillDuckDb(duckDb);
await fillTidemark(server);
for (const [name, { condition }] of Object.entries(COLUMNS)) {
  const index = `CREATE INDEX i_${name} ON rows_of_index (${name})`;
  const theirMs = await processorMs(process.pid, () => duckDb.run(index));
  const ownMs = await processorMs(server.pid, () => run(server, index));
  const count = `SELECT count(*) FROM rows_of_index WHERE ${condition}`;
  const theirs = (await duckDb.runAndReadAll(count)).getRowsJson();
  const own = await run(server, count);
  const isEqual = Number(own[0]?.[0]) === Number(theirs[0]?.[0]);
  const ratio = ownMs / theirMs;
  if (!isEqual || ratio > RATIO_MAX) process.exitCode = 1;
  const times = [ownMs, theirMs].map((ms) => ms.toFixed(0).padStart(8)).join(" and ");
  const verdict = isEqual ? "" : "  WRONG ROWS";
  process.stdout.write(`${name}  ${times} ms  ${ratio.toFixed(2)} times${verdict}\n`);
}
duckDb.closeSync();

async function fillDuckDb(connection: DuckDBConnection): Promise<void> {
  await connection.run("CREATE TABLE rows_of_index (i BIGINT, v INTEGER, w BIGINT, s VARCHAR)");
  await connection.run(
    `INSERT INTO rows_of_index SELECT i, ${values} FROM range(${rowCount}) r(i)`,
  );
}

async function fillTidemark(system: ServerProcess): Promise<void> {
  await run(system, "CREATE NAMESPACE bench");
  const columns = "i BIGINT PRIMARY KEY, v INT, w BIGINT, s TEXT";
  await run(system, `CREATE TABLE rows_of_index (${columns}) WITH (TYPE = 'SHARED')`);
  for (let from = 0; from < rowCount; from += ROWS_PER_INSERT) {
    const last = Math.min(rowCount, from + ROWS_PER_INSERT) - 1;
    const source = `generate_series(CAST(${from} AS BIGINT), ${last}) i`;
    await run(system, `INSERT INTO rows_of_index SELECT i, ${values} FROM ${source}`);
  }
  await run(system, "STORAGE FLUSH TABLE rows_of_index");
}

function run(system: ServerProcess, sql: string): Promise<readonly (readonly unknown[])[]> {
  return system.rows(sql, { namespace: "bench", fields: { timeout_ms: TIMEOUT_MS } });
}

/** Returns the processor time that a process uses while some work runs, in milliseconds. */
async function processorMs(pid: number, work: () => Promise<unknown>): Promise<number> {
  const beforeNs = cpuNsOf(pid);
  await work();
  return (cpuNsOf(pid) - beforeNs) / 1e6;
}
