/**
 * Three scans over a million rows: all rows by group, a tenth of the rows by group, and a sum over
 * a tenth. Tidemark is asked over HTTP, after a flush and a restart; DuckDB and SQLite run in this
 * process, PostgreSQL answers over its own protocol. All give the same answer, or the run fails.
 */
import { Database } from "bun:sqlite";
import { join } from "node:path";
import { DuckDBInstance } from "@duckdb/node-api";
import { median } from "../support/statistics.ts";
import type { Line } from "./jobs.ts";
import { sqlRequest } from "./place.ts";
import type { Places } from "./places.ts";
import { EVENT_COLUMNS, eventValues, SCANS } from "./rows.ts";

const ROWS_PER_STATEMENT = 1000;

const COLUMNS: string = EVENT_COLUMNS.map(([name, type]) =>
  name === "id" ? "id BIGINT PRIMARY KEY" : `${name} ${type}`,
).join(", ");

const VALUES: string = EVENT_COLUMNS.map(([, , value]) => value).join(", ");

type Cells = readonly (readonly unknown[])[];

/** One system that holds the rows. */
interface Scanned {
  readonly name: string;
  run(sql: string): Promise<Cells> | Cells;
}

export interface ScanOptions {
  places: Places;
  roundCount: number;
  rowCount: number;
}

export async function scanLines({ places, roundCount, rowCount }: ScanOptions): Promise<Line[]> {
  const systems = [
    await loadTidemark(places, rowCount),
    await loadPostgres(places, rowCount),
    loadSqlite(places, rowCount),
    await loadDuckDb(rowCount),
  ];
  const lines: Line[] = [];
  for (const [name, sql] of Object.entries(SCANS)) {
    const timesBySystem = new Map<string, number[]>(systems.map((system) => [system.name, []]));
    const answers = new Set<string>();
    // The first round warms compilers and caches, and is not counted.
    for (let round = -1; round < roundCount; round += 1) {
      for (const system of systems) {
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
      target: { peer: "SQLite", factor: 5 },
    });
  }
  return lines;
}

/** Sums and averages in different orders differ in the last digits. */
function answerOf(cells: Cells): string {
  return JSON.stringify(
    cells.map((row) =>
      row.map((cell) => (Number.isNaN(Number(cell)) ? cell : Number(cell).toPrecision(9))),
    ),
  );
}

async function loadTidemark({ server }: Places, rowCount: number): Promise<Scanned> {
  await server.rows(`CREATE TABLE bench.events (${COLUMNS})`);
  for (let first = 1; first <= rowCount; first += ROWS_PER_STATEMENT) {
    const count = Math.min(ROWS_PER_STATEMENT, rowCount - first + 1);
    const values = Array.from({ length: count }, (_, place) => eventValues(first + place));
    await server.rows(`INSERT INTO bench.events VALUES ${values.join(", ")}`);
  }
  await server.rows("STORAGE FLUSH TABLE bench.events");
  await untilFlushed(server, rowCount);
  await server.restart();
  return {
    name: "Tidemark",
    async run(sql) {
      const { path, body } = sqlRequest(sql.replace("events", "bench.events"));
      const headers = { Authorization: `Bearer ${server.token}` };
      const answer = await server.post(path, JSON.parse(body), headers);
      const { results, error } = (await answer.json()) as {
        results: { rows: Cells }[];
        error?: { message: string };
      };
      if (error !== undefined) throw new Error(`Cannot scan: ${error.message}`);
      return results[0]?.rows ?? [];
    },
  };
}

const FLUSH_MS_MAX = 60_000;

async function untilFlushed(server: Places["server"], rowCount: number): Promise<void> {
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

async function loadPostgres({ postgresUrl }: Places, rowCount: number): Promise<Scanned> {
  const sql = new Bun.SQL(postgresUrl, { max: 1 });
  await sql.unsafe(`CREATE TABLE events (${COLUMNS})`);
  await sql.unsafe(
    `INSERT INTO events SELECT ${VALUES} FROM generate_series(1::bigint, ${rowCount}) AS s(n)`,
  );
  await sql.unsafe("VACUUM ANALYZE events");
  return { name: "PostgreSQL", run: async (text) => (await sql.unsafe(text).values()) as Cells };
}

function loadSqlite({ directory }: Places, rowCount: number): Scanned {
  const db = new Database(join(directory, "scan.db"));
  db.run("PRAGMA journal_mode = WAL");
  db.run(`CREATE TABLE events (${COLUMNS})`);
  db.run(
    "WITH RECURSIVE s(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM s WHERE n < ?) " +
      `INSERT INTO events SELECT ${VALUES} FROM s`,
    [rowCount],
  );
  return { name: "SQLite", run: (text) => db.query(text).values() };
}

async function loadDuckDb(rowCount: number): Promise<Scanned> {
  const instance = await DuckDBInstance.create(":memory:");
  const connection = await instance.connect();
  await connection.run(`CREATE TABLE events (${COLUMNS})`);
  await connection.run(`INSERT INTO events SELECT ${VALUES} FROM range(1, ${rowCount + 1}) s(n)`);
  return {
    name: "DuckDB",
    async run(text) {
      const reader = await connection.runAndReadAll(text);
      return reader.getRowsJson();
    },
  };
}
