/** Sends requests over HTTP: single inserts, reads by key, and bulk inserts. */

import { percentile } from "../../support/statistics.ts";
import { HttpConnection } from "../systems/http_connection.ts";
import {
  bulkRequest,
  insertRequest,
  type MeasuredSystem,
  pointRequest,
  type SystemRequest,
} from "../systems/measured_system.ts";
import { bulkStatement, itemFor } from "../systems/rows.ts";
import type { LoadJob, LoadResult } from "./load.ts";

/**
 * How long requests run before the clock starts, in milliseconds, to warm up compilers and caches
 * on both sides.
 */
const WARM_MS = 300;

/**
 * Runs several clients, each of which sends its next request once it has received the response to
 * the previous one.
 */
export async function runRequests(
  job: Extract<LoadJob, { kind: "insert" | "point" }>,
): Promise<LoadResult> {
  const { system, clientCount, seconds } = job;
  const connections = await Promise.all(
    Array.from({ length: clientCount }, () => HttpConnection.open(system.url)),
  );
  let sentCount = 0;
  const next = (): SystemRequest => {
    sentCount += 1;
    if (job.kind === "insert") return insertRequest(system, "insert", itemFor(job.id + sentCount));
    return pointRequest(system, 1 + ((sentCount * 7919) % job.id));
  };
  const latencies: number[] = [];
  const startMs = performance.now() + WARM_MS;
  const endMs = startMs + seconds * 1000;
  await Promise.all(
    connections.map(async (connection) => {
      for (;;) {
        const sentMs = performance.now();
        if (sentMs >= endMs) return;
        await send(connection, system, next());
        if (sentMs >= startMs) latencies.push(performance.now() - sentMs);
      }
    }),
  );
  const tookMs = performance.now() - startMs;
  for (const connection of connections) connection.close();
  latencies.sort((a, b) => a - b);
  return {
    rate: (latencies.length * 1000) / tookMs,
    p50: percentile(latencies, 0.5),
    p99: percentile(latencies, 0.99),
    sentCount,
  };
}

/** Runs a client that sends one multi-row statement after another. */
export async function runBulk(job: Extract<LoadJob, { kind: "bulk" }>): Promise<LoadResult> {
  const { system, rowCount, batchRows } = job;
  const requests: SystemRequest[] = [];
  for (let first = 0; first < rowCount; first += batchRows) {
    const count = Math.min(batchRows, rowCount - first);
    requests.push(bulkRequest(system, (table) => bulkStatement(table, job.id + first, count)));
  }
  // All statements are generated before the connection is opened. Generating them takes longer
  // than a server keeps an idle connection open.
  const connection = await HttpConnection.open(system.url);
  const startMs = performance.now();
  for (const request of requests) await send(connection, system, request);
  const tookMs = performance.now() - startMs;
  connection.close();
  return { rate: (rowCount * 1000) / tookMs, seconds: tookMs / 1000 };
}

async function send(
  connection: HttpConnection,
  system: MeasuredSystem,
  { path, body }: SystemRequest,
): Promise<void> {
  const answer = await connection.post(path, system.token, body);
  if (answer.status !== 200) {
    throw new Error(`Cannot measure ${system.name}: it answered ${answer.status} ${answer.body}`);
  }
}
