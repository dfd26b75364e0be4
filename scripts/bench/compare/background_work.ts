/**
 * Measures how a flush and a merge affect a writer: single inserts arrive at a steady rate, and
 * each is timed from the moment it was due, first without background work and then while it runs.
 */
import { type ServerProcess, startReadyServer } from "../../../tests/support/server_process.ts";
import { median, percentile } from "../../support/statistics.ts";
import { HttpConnection } from "../systems/http_connection.ts";
import {
  type MeasuredSystem,
  sqlRequest,
  TIDEMARK_DEFINITIONS,
} from "../systems/measured_system.ts";
import { EVENT_COLUMNS, itemFor } from "../systems/rows.ts";
import type { Line } from "./jobs.ts";

/** The number of inserts due per second, far fewer than the server can process. */
const RATE = 500;

const CLIENTS = 16;

/** How long the inserts run undisturbed before each flush or merge, in milliseconds. */
const QUIET_MS = 3000;

/** The number of rows that one INSERT statement writes while a table is being filled. */
const STATEMENT_ROWS = 200_000;
const SEGMENT_ROWS = 1_000_000;

/**
 * The maximum factor by which a flush or merge may increase the 99th percentile of the insert
 * times.
 */
const TIMES_MAX = 3;

const COLUMNS: string = EVENT_COLUMNS.map(([name, type]) => `${name} ${type}`).join(", ");
const VALUES: string = EVENT_COLUMNS.map(([, , value]) => value).join(", ");

type Work = "quiet" | "flush" | "merge";

export async function backgroundLines(roundCount: number): Promise<Line[]> {
  // The limits are so high that the server flushes only on request.
  const config = { storage: { flush_rows: 999_999, flush_interval_secs: 86_399 } };
  await using server = await startReadyServer({ config });
  await server.rows(TIDEMARK_DEFINITIONS);
  const { token, url } = server;
  const system: MeasuredSystem = { name: "Tidemark", isTidemark: true, url, token, userTokens: [] };
  const inserts = new SteadyInserts(system);
  await inserts.beside(Bun.sleep(QUIET_MS));
  const found: Record<Work, number[]> = { quiet: [], flush: [], merge: [] };
  for (let round = 0; round < roundCount; round += 1) {
    const table = `bench.bulk${round}`;
    await server.rows(`CREATE TABLE ${table} (${COLUMNS}, PRIMARY KEY (id))`);
    found.quiet.push(await inserts.beside(Bun.sleep(QUIET_MS)));
    await fill(server, table, 0);
    found.flush.push(await inserts.beside(server.rows(`STORAGE FLUSH TABLE ${table}`)));
    await fill(server, table, SEGMENT_ROWS);
    await server.rows(`STORAGE FLUSH TABLE ${table}`);
    found.merge.push(await inserts.beside(server.rows(`STORAGE COMPACT TABLE ${table}`)));
    await server.rows(`DROP TABLE ${table}`);
  }
  inserts.close();
  const quiet = median(found.quiet);
  const rows = SEGMENT_ROWS.toLocaleString("en");
  const times = (job: string, values: number[]): Line[] => [
    { job: `${job}: p99`, unit: "ms", isRate: false, values: { Tidemark: median(values) } },
    {
      job: `${job}: p99, against none`,
      unit: "times",
      isRate: false,
      values: { Tidemark: median(values) / quiet },
      target: { atMost: TIMES_MAX },
    },
  ];
  const job = `${RATE} INSERTs a second`;
  return [
    { job: `${job}: p99`, unit: "ms", isRate: false, values: { Tidemark: quiet } },
    ...times(`${job} beside a flush of ${rows} rows`, found.flush),
    ...times(`${job} beside a merge of 2 × ${rows} rows`, found.merge),
  ];
}

async function fill(server: ServerProcess, table: string, above: number): Promise<void> {
  for (let first = above + 1; first <= above + SEGMENT_ROWS; first += STATEMENT_ROWS) {
    const last = first + STATEMENT_ROWS - 1;
    await server.rows(
      `INSERT INTO ${table} SELECT ${VALUES} FROM generate_series(${first}::bigint, ${last}) AS s(n)`,
    );
  }
}

/**
 * Clients that insert rows at a steady rate. They send each row when it is due, even if earlier
 * inserts are still waiting for a response.
 */
class SteadyInserts {
  readonly #system: MeasuredSystem;
  readonly #idle: HttpConnection[] = [];
  #id = 0;

  constructor(system: MeasuredSystem) {
    this.#system = system;
  }

  /**
   * Runs `work`, and returns the 99th percentile of the insert times in the meantime, in
   * milliseconds.
   */
  async beside(work: Promise<unknown>): Promise<number> {
    while (this.#idle.length < CLIENTS) {
      this.#idle.push(await HttpConnection.open(this.#system.url));
    }
    const state = { isWorking: true };
    const ended = work.finally(() => {
      state.isWorking = false;
    });
    const latencies: number[] = [];
    const startMs = performance.now();
    const clients = this.#idle.map(async (connection, client) => {
      for (let turn = client; state.isWorking; turn += CLIENTS) {
        const dueMs = startMs + (turn * 1000) / RATE;
        const waitMs = dueMs - performance.now();
        if (waitMs > 0) await Bun.sleep(waitMs);
        await this.#insert(connection);
        latencies.push(performance.now() - dueMs);
      }
    });
    await Promise.all([ended, ...clients]);
    return percentile(
      latencies.toSorted((left, right) => left - right),
      0.99,
    );
  }

  close(): void {
    for (const connection of this.#idle) connection.close();
  }

  async #insert(connection: HttpConnection): Promise<void> {
    this.#id += 1;
    const { body, id, ts, usr } = itemFor(this.#id);
    const sql = "INSERT INTO bench.items (id, usr, body, ts) VALUES ($1, $2, $3, $4)";
    const request = sqlRequest(sql, [id, usr, body, ts]);
    const answer = await connection.post(request.path, this.#system.token, request.body);
    if (answer.status !== 200) throw new Error(`Cannot insert: ${answer.status} ${answer.body}`);
  }
}
