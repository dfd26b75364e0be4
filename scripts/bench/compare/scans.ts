/**
 * Measures scans of millions of rows, and the disk space that the rows occupy. Tidemark is queried
 * over HTTP, after a flush and a restart. DuckDB and SQLite run in-process, on files that were
 * closed and reopened. PostgreSQL is queried over its own protocol. The run fails unless all
 * systems return the same result.
 */
import { Database } from "bun:sqlite";
import { statSync } from "node:fs";
import { join } from "node:path";
import { DuckDBInstance } from "@duckdb/node-api";
import type { ServerProcess } from "../../../tests/support/server_process.ts";
import { median } from "../../support/statistics.ts";
import { sqlRequest } from "../systems/measured_system.ts";
import { EVENT_COLUMNS, SCANS } from "../systems/rows.ts";
import { type MeasuredSystems, startOneReader } from "../systems/start_systems.ts";
import type { Line } from "./jobs.ts";

const ROWS_PER_STATEMENT = 200_000;

/**
 * A slow system takes part only in every seventh round. Its scans take seconds, so it needs no
 * warm-up.
 */
const SLOW_EVERY = 7;

const COLUMNS: string = EVENT_COLUMNS.map(([name, type]) =>
  name === "id" ? "id BIGINT PRIMARY KEY" : `${name} ${type}`,
).join(", ");

const VALUES: string = EVENT_COLUMNS.map(([, , value]) => value).join(", ");

type Cells = readonly (readonly unknown[])[];

/** A system that stores the rows to be scanned. */
interface Scanned {
  readonly name: string;
  /** Whether the system stores rows instead of columns, so that its scans are slow. */
  readonly isSlow?: boolean;
  /**
   * The average size of a row on disk in bytes, including its key and a sequence number; absent
   * for a system whose sizes are not comparable.
   */
  readonly rowBytes?: number;
  run(sql: string): Promise<Cells> | Cells;
}

export interface ScanOptions {
  systems: MeasuredSystems;
  roundCount: number;
  rowCount: number;
  /** The names of the jobs to run: "storage" and "scan". */
  wanted: readonly string[];
}

export async function scanLines(options: ScanOptions): Promise<Line[]> {
  const { systems, roundCount, rowCount, wanted } = options;
  const scanned = [
    await loadTidemark(systems, rowCount),
    await loadPostgres(systems, rowCount),
    loadSqlite(systems, rowCount),
    await loadDuckDb(systems, rowCount),
  ];
  const lines = wanted.includes("storage") ? [sizeLine(scanned, rowCount)] : [];
  if (!wanted.includes("scan")) return lines;
  await using oneReader = await startOneReader(systems.server);
  scanned.push({ name: "Tidemark with one reader", run: (sql) => asked(oneReader, sql) });
  for (const [name, sql] of Object.entries(SCANS)) {
    const timesBySystem = new Map<string, number[]>(scanned.map((system) => [system.name, []]));
    const answers = new Set<string>();
    // The first round warms up compilers and caches, and is not counted.
    for (let round = -1; round < roundCount; round += 1) {
      for (const system of scanned) {
        if (system.isSlow === true && round >= 0 && round % SLOW_EVERY !== 0) continue;
        const startMs = performance.now();
        const cells = await system.run(sql);
        const tookMs = performance.now() - startMs;
        answers.add(answerOf(cells));
        if (round >= 0) timesBySystem.get(system.name)?.push(tookMs);
      }
    }
    if (answers.size !== 1) throw new Error(`Cannot trust ${name}: ${[...answers].join(" | ")}`);
    const values = [...timesBySystem].map(([system, times]) => [system, median(times)]);
    lines.push({
      job: `scan of ${rowCount.toLocaleString("en")} rows, ${name}`,
      unit: "ms",
      isRate: false,
      values: Object.fromEntries(values),
      target: [
        { peer: "DuckDB", factor: 0.5 },
        { peer: "SQLite", factor: name === "Q1" ? 20 : 5 },
        { peer: "PostgreSQL", factor: 5 },
      ],
    });
  }
  return lines;
}

function sizeLine(systems: readonly Scanned[], rowCount: number): Line {
  const sizes = systems.flatMap(({ name, rowBytes }) => {
    return rowBytes === undefined ? [] : [[name, rowBytes] as const];
  });
  return {
    job: `a row on disk with its key and sequence, of ${rowCount.toLocaleString("en")}`,
    unit: "bytes",
    isRate: false,
    values: Object.fromEntries(sizes),
    target: { peer: "DuckDB", factor: 1 / 1.8 },
  };
}

/**
 * Sums and averages are rounded before they are compared, because their last digits depend on the
 * order of addition.
 */
function answerOf(cells: Cells): string {
  return JSON.stringify(
    cells.map((row) =>
      row.map((cell) => (Number.isNaN(Number(cell)) ? cell : Number(cell).toPrecision(9))),
    ),
  );
}

async function loadTidemark({ server }: MeasuredSystems, rowCount: number): Promise<Scanned> {
  await server.rows(`CREATE TABLE bench.events (${COLUMNS})`);
  for (let first = 1; first <= rowCount; first += ROWS_PER_STATEMENT) {
    const last = Math.min(rowCount, first + ROWS_PER_STATEMENT - 1);
    await server.rows(
      `INSERT INTO bench.events SELECT ${VALUES} FROM generate_series(${first}::bigint, ${last}) AS s(n)`,
    );
  }
  await server.rows("STORAGE FLUSH TABLE bench.events");
  await untilFlushed(server, rowCount);
  await server.restart();
  const [size] = await server.rows(
    "SELECT SUM(size_bytes) FROM system.segments WHERE table_name = 'events'",
  );
  const rowBytes = Number(size?.[0]) / rowCount;
  return { name: "Tidemark", rowBytes, run: (sql) => asked(server, sql) };
}

async function asked(server: ServerProcess, sql: string): Promise<Cells> {
  const { path, body } = sqlRequest(sql.replace("events", "bench.events"));
  const headers = { Authorization: `Bearer ${server.token}` };
  const answer = await server.post(path, JSON.parse(body), headers);
  const { results, error } = (await answer.json()) as {
    results: { rows: Cells }[];
    error?: { message: string };
  };
  if (error !== undefined) throw new Error(`Cannot scan: ${error.message}`);
  return results[0]?.rows ?? [];
}

const FLUSH_MS_MAX = 60_000;

async function untilFlushed(server: MeasuredSystems["server"], rowCount: number): Promise<void> {
  const deadlineMs = Date.now() + FLUSH_MS_MAX;
  for (;;) {
    const [row] = await server.rows(
      "SELECT SUM(row_count) FROM system.segments WHERE table_name = 'events'",
    );
    if (Number(row?.[0]) >= rowCount) return;
    if (Date.now() > deadlineMs) throw new Error("Cannot measure: the flush does not end");
    await Bun.sleep(100);
  }
}

async function loadPostgres({ postgresUrl }: MeasuredSystems, rowCount: number): Promise<Scanned> {
  const sql = new Bun.SQL(postgresUrl, { max: 1 });
  await sql.unsafe(`CREATE TABLE events (${COLUMNS})`);
  await sql.unsafe(
    `INSERT INTO events SELECT ${VALUES} FROM generate_series(1::bigint, ${rowCount}) AS s(n)`,
  );
  await sql.unsafe("VACUUM ANALYZE events");
  return {
    name: "PostgreSQL",
    isSlow: true,
    run: async (text) => (await sql.unsafe(text).values()) as Cells,
  };
}

function loadSqlite({ directory }: MeasuredSystems, rowCount: number): Scanned {
  const path = join(directory, "scan.db");
  const writer = new Database(path);
  writer.run("PRAGMA journal_mode = WAL");
  writer.run(`CREATE TABLE events (${COLUMNS})`);
  writer.run(
    "WITH RECURSIVE s(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM s WHERE n < ?) " +
      `INSERT INTO events SELECT ${VALUES} FROM s`,
    [rowCount],
  );
  writer.close();
  const db = new Database(path);
  return { name: "SQLite", isSlow: true, run: (text) => db.query(text).values() };
}

/** Loads the events with an additional `seq` column, because every table of Tidemark stores one. */
async function loadDuckDb({ directory }: MeasuredSystems, rowCount: number): Promise<Scanned> {
  const path = join(directory, "scan.duckdb");
  const writing = await DuckDBInstance.create(path);
  const writer = await writing.connect();
  await writer.run(`CREATE TABLE events (${COLUMNS}, seq BIGINT)`);
  await writer.run(
    `INSERT INTO events SELECT ${VALUES}, 100000000000000 + n FROM range(1, ${rowCount + 1}) s(n)`,
  );
  await writer.run("CHECKPOINT");
  writer.closeSync();
  writing.closeSync();
  const instance = await DuckDBInstance.create(path);
  const connection = await instance.connect();
  return {
    name: "DuckDB",
    rowBytes: statSync(path).size / rowCount,
    async run(text) {
      const reader = await connection.runAndReadAll(text);
      return reader.getRowsJson();
    },
  };
}
