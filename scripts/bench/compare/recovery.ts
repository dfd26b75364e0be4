/**
 * Measures a startup that has to replay the log. The server is killed once a log file is full of
 * small commits, none of which has been flushed to a segment.
 */
import { readdirSync } from "node:fs";
import { join } from "node:path";
import { type ServerProcess, startReadyServer } from "../../../tests/support/server_process.ts";
import { median } from "../../support/statistics.ts";
import { HttpConnection } from "../systems/http_connection.ts";
import { sqlRequest, TIDEMARK_DEFINITIONS } from "../systems/measured_system.ts";
import { bulkStatement } from "../systems/rows.ts";
import type { Line } from "./jobs.ts";

const LOG_BYTES: number = 64 * 1024 * 1024;
const CLIENTS = 16;
const COMMIT_ROWS = 10;

/** The maximum time from the start of the process to its first response, in seconds. */
const READY_SECONDS_MAX = 2;

export async function recoveryLine(roundCount: number): Promise<Line> {
  const config = {
    storage: { flush_rows: 999_999, flush_interval_secs: 86_399, wal_segment_bytes: LOG_BYTES },
  };
  await using server = await startReadyServer({ config });
  await server.rows(TIDEMARK_DEFINITIONS);
  const rowCount = await fillLog(server);
  const seconds: number[] = [];
  for (let round = 0; round < roundCount; round += 1) {
    server.kill("SIGKILL");
    await server.exited();
    const startMs = performance.now();
    await server.start();
    const [[found] = []] = await server.rows("SELECT COUNT(*) FROM bench.items");
    seconds.push((performance.now() - startMs) / 1000);
    if (found !== rowCount)
      throw new Error(`Cannot trust the start: ${Number(found)} of ${rowCount} rows`);
  }
  const megabytes = LOG_BYTES / 1024 / 1024;
  return {
    job: `start after a kill, ${megabytes} MiB of log`,
    unit: "s",
    isRate: false,
    values: { Tidemark: median(seconds) },
    target: { atMost: READY_SECONDS_MAX },
  };
}

/** Inserts rows until the first log file is full. Returns the number of inserted rows. */
async function fillLog(server: ServerProcess): Promise<number> {
  const firstFile = logFiles(server)[0];
  let rowCount = 0;
  let isFull = false;
  const client = async (): Promise<void> => {
    const connection = await HttpConnection.open(server.url);
    while (!isFull) {
      const statement = bulkStatement("bench.items", rowCount + 1, COMMIT_ROWS);
      rowCount += COMMIT_ROWS;
      const { body, path } = sqlRequest(statement);
      const answer = await connection.post(path, server.token, body);
      if (answer.status !== 200) throw new Error(`Cannot fill: ${answer.status} ${answer.body}`);
      isFull ||= logFiles(server).length > 1;
    }
    connection.close();
  };
  await Promise.all(Array.from({ length: CLIENTS }, client));
  if (logFiles(server)[0] !== firstFile)
    throw new Error("Cannot measure: the server has removed the log");
  return rowCount;
}

function logFiles({ dataPath }: ServerProcess): string[] {
  return readdirSync(join(dataPath, "wal"))
    .filter((name) => name.endsWith(".wal"))
    .toSorted();
}
