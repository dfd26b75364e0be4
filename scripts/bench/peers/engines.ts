/**
 * Defines the engines compared on analytic queries, and how each of them is loaded and queried.
 *
 * All have the same tables and primary keys. PostgreSQL also has its customary indexes on foreign
 * keys, and its statistics. DuckDB has one thread. SQLite reads a file that has been analysed.
 */
import { Database } from "bun:sqlite";
import { createReadStream, mkdtempSync, rmSync } from "node:fs";
import { chmod } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { createInterface } from "node:readline";
import { DuckDBInstance } from "@duckdb/node-api";
import { startPostgres } from "../../../tests/support/postgres.ts";
import { type ServerProcess, startReadyServer } from "../../../tests/support/server_process.ts";
import { cpuNsOf } from "../compare/process_time.ts";
import type { Rows } from "./answers.ts";

export interface TableShape {
  readonly name: string;
  /** The column definitions, as they appear between the parentheses of CREATE TABLE. */
  readonly columns: string;
  /** The foreign-key columns. PostgreSQL gets an index on each, as is customary. */
  readonly foreign: readonly string[];
  /** The zero-based positions of the columns whose values are written without quotes. */
  readonly numeric: ReadonlySet<number>;
}

/** The cell that represents NULL in the data files. */
export const NULL_CELL = "NULL";

/**
 * A generated row of a table: numbers, and strings without vertical bars, quotes or backslashes.
 */
export interface MadeRow {
  readonly table: string;
  readonly row: readonly (string | number)[];
}

export interface Engine {
  readonly name: string;
  /**
   * Runs a query and returns its rows.
   * @throws If the engine refuses the query or does not finish in time.
   */
  answer(sql: string): Promise<Rows>;
  /**
   * Returns the processor time that the engine's process has used so far; undefined if the engine
   * has several processes.
   */
  processorMs(): number | undefined;
  stop(): Promise<void>;
}

/** The data files of the tables, with one row per line and vertical bars between the cells. */
export interface Files {
  readonly directory: string;
  readonly tables: readonly TableShape[];
  readonly rowCount: number;
  pathOf(table: string): string;
  remove(): void;
}

const INSERT_CELLS_MAX = 32_000;
const TIMEOUT_MS = 120_000;
const BUFFER_BYTES = 1 << 20;

/** Writes the rows of each table to a file, because several engines load them. */
export async function writeFiles(
  tables: readonly TableShape[],
  rows: Iterable<MadeRow> | AsyncIterable<MadeRow>,
): Promise<Files> {
  const directory = mkdtempSync(join(tmpdir(), "tidemark-peers-"));
  // PostgreSQL runs as a different user, who must be able to read the files.
  await chmod(directory, 0o755);
  const pathOf = (table: string): string => join(directory, `${table}.tbl`);
  const writers = new Map(
    tables.map(({ name }) => [
      name,
      Bun.file(pathOf(name)).writer({ highWaterMark: BUFFER_BYTES }),
    ]),
  );
  let rowCount = 0;
  for await (const { row, table } of rows) {
    await writers.get(table)?.write(`${row.join("|")}\n`);
    rowCount += 1;
  }
  for (const writer of writers.values()) await writer.end();
  const remove = (): void => rmSync(directory, { recursive: true, force: true });
  process.on("exit", remove);
  return { directory, tables, rowCount, pathOf, remove };
}

export async function openDuckDb(files: Files): Promise<Engine> {
  const instance = await DuckDBInstance.create(":memory:", { threads: "1" });
  const connection = await instance.connect();
  for (const { columns, name } of files.tables) {
    await connection.run(`CREATE TABLE ${name} (${columns})`);
    await connection.run(
      `COPY ${name} FROM '${files.pathOf(name)}' (DELIMITER '|', HEADER false, NULLSTR '${NULL_CELL}')`,
    );
  }
  return {
    name: "DuckDB",
    async answer(sql) {
      const reader = await connection.runAndReadAll(sql);
      return reader.getRowsJson();
    },
    processorMs: () => cpuNsOf(process.pid) / 1e6,
    async stop() {
      connection.closeSync();
    },
  };
}

export async function openPostgres(files: Files): Promise<Engine> {
  const postgres = await startPostgres();
  const sql = new Bun.SQL(postgres.url, { max: 1 });
  for (const { columns, foreign, name } of files.tables) {
    await sql.unsafe(`CREATE TABLE ${name} (${columns})`);
    await sql.unsafe(`COPY ${name} FROM '${files.pathOf(name)}' WITH (DELIMITER '|')`);
    for (const key of foreign) await sql.unsafe(`CREATE INDEX ON ${name} (${key})`);
  }
  await sql.unsafe("VACUUM ANALYZE");
  await sql.unsafe(`SET statement_timeout = ${TIMEOUT_MS}`);
  return {
    name: "PostgreSQL",
    async answer(text) {
      return (await sql.unsafe(text).values()) as Rows;
    },
    processorMs: () => undefined,
    async stop() {
      await sql.close();
      await postgres.stop();
    },
  };
}

export async function openSqlite(files: Files): Promise<Engine> {
  const db = new Database(join(mkdtempSync(join(tmpdir(), "tidemark-sqlite-")), "peer.db"));
  const directory = dirname(db.filename);
  const remove = (): void => rmSync(directory, { recursive: true, force: true });
  process.on("exit", remove);
  db.run("PRAGMA journal_mode = OFF");
  db.run("PRAGMA synchronous = OFF");
  db.run("PRAGMA cache_size = -1000000");
  for (const table of files.tables) await fillSqlite(db, files, table);
  db.run("ANALYZE");
  return {
    name: "SQLite",
    async answer(sql) {
      return db.query(sql).values();
    },
    processorMs: () => cpuNsOf(process.pid) / 1e6,
    async stop() {
      db.close();
      remove();
    },
  };
}

async function fillSqlite(db: Database, files: Files, table: TableShape): Promise<void> {
  const { columns, name, numeric } = table;
  db.run(`CREATE TABLE ${name} (${columns})`);
  let insert: ReturnType<typeof db.query> | undefined;
  db.run("BEGIN");
  for await (const line of createInterface({ input: createReadStream(files.pathOf(name)) })) {
    const cells = line.split("|").map((cell, i) => (numeric.has(i) ? Number(cell) : cell));
    insert ??= db.query(`INSERT INTO ${name} VALUES (${cells.map(() => "?").join(",")})`);
    insert.run(...cells);
  }
  db.run("COMMIT");
}

/** Loads the tables with INSERT, moves everything into segments, and restarts the process. */
export async function openTidemark(
  files: Files,
  { isKept, onProgress }: { isKept: boolean; onProgress: (text: string) => void },
): Promise<Engine> {
  const server = await startReadyServer();
  try {
    await server.rows("CREATE NAMESPACE peers");
    for (const { columns, name } of files.tables) {
      const options = "WITH (TYPE = 'SHARED', ACCESS_LEVEL = 'PUBLIC')";
      await server.rows(`CREATE TABLE peers.${name} (${columns}) ${options}`);
      await insertAll(server, files, name);
      await server.rows(`STORAGE FLUSH TABLE peers.${name}`);
      onProgress(`Tidemark has ${name}`);
    }
    await server.restart();
    if (isKept) {
      server.keepDirectory();
      onProgress(`kept ${server.directory}, token ${server.token}`);
    }
  } catch (error) {
    await server.stop();
    throw error;
  }
  return {
    name: "Tidemark",
    async answer(sql) {
      const fields = { timeout_ms: TIMEOUT_MS };
      const { body } = await server.sql(sql, { namespace: "peers", fields });
      const entry = body.results.at(-1);
      if (body.error !== undefined || entry === undefined) throw new Error(body.error?.message);
      const isDate = entry.schema?.map(({ data_type: type }) => type === "Date") ?? [];
      return (entry.rows ?? []).map((row) =>
        row.map((cell, position) => (isDate[position] === true ? dateFromDays(cell) : cell)),
      );
    },
    processorMs: () => cpuNsOf(server.pid) / 1e6,
    async stop() {
      if (isKept) {
        server.kill("SIGTERM");
        await server.exited();
      } else {
        await server.stop();
      }
    },
  };
}

/** Converts a DATE, which arrives as days since 1970. */
function dateFromDays(cell: unknown): unknown {
  return typeof cell === "number" ? new Date(cell * 86_400_000) : cell;
}

async function insertAll(server: ServerProcess, files: Files, table: string): Promise<void> {
  const numeric = files.tables.find(({ name }) => name === table)?.numeric ?? new Set<number>();
  let rows: string[] = [];
  const insert = async (): Promise<void> => {
    if (rows.length > 0) await server.rows(`INSERT INTO peers.${table} VALUES ${rows.join(",")}`);
    rows = [];
  };
  for await (const line of createInterface({ input: createReadStream(files.pathOf(table)) })) {
    const cells = line.split("|").map((cell, position) => {
      return numeric.has(position) || cell === NULL_CELL ? cell : `'${cell.replaceAll("'", "''")}'`;
    });
    rows.push(`(${cells.join(",")})`);
    if (rows.length * cells.length >= INSERT_CELLS_MAX) await insert();
  }
  await insert();
}
