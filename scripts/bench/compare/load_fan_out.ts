/**
 * Measures the delivery of writes to the sockets that follow them: the delay at a fixed rate, and
 * the highest rate. In the job "same", all sockets follow the same query. In the job "own", each
 * socket has its own user, and each user has rows of their own.
 */

import { percentile } from "../../support/statistics.ts";
import { HttpConnection } from "../systems/http_connection.ts";
import { followMessage, insertRequest, type MeasuredSystem } from "../systems/measured_system.ts";
import { itemFor } from "../systems/rows.ts";
import type { LoadJob, LoadResult } from "./load.ts";
import { openFollowers } from "./load_socket.ts";

type FanOutJob = Extract<LoadJob, { kind: "latency" | "capacity" }>;

/**
 * How long to wait after the last write for rows that have not been delivered yet, in
 * milliseconds.
 */
const STRAGGLERS_MS_MAX = 5000;

/**
 * The number of connections used for writes at a fixed rate. At any time, few of them have a write
 * in flight.
 */
const PACED_CONNECTIONS = 32;

/**
 * Writes at a fixed rate, and measures the time from the start of each write to each of its
 * deliveries.
 */
export async function fanOutLatency(job: FanOutJob): Promise<LoadResult> {
  const sentMsById = new Map<number, number>();
  const latencies: number[] = [];
  let lastText = "";
  let lastIds: readonly number[] = [];
  const field = await openField(job, (text) => {
    // A thousand sockets receive the same message. It is parsed only once, to leave the processor
    // to the server.
    if (text !== lastText) {
      lastText = text;
      lastIds = idsIn(text);
    }
    for (const id of lastIds) {
      const sentMs = sentMsById.get(id);
      if (sentMs !== undefined) latencies.push(performance.now() - sentMs);
    }
  });
  const idle = await openConnections(job.system, PACED_CONNECTIONS);
  const writes: Promise<void>[] = [];
  const startMs = performance.now();
  const writeCount = Math.round(job.rate * job.seconds);
  for (let index = 0; index < writeCount; index += 1) {
    await Bun.sleep(Math.max(0, startMs + (index * 1000) / job.rate - performance.now()));
    const connection = idle.pop();
    // A write that finds no free connection is skipped. If the server cannot keep up, the
    // latencies of the other writes show it.
    if (connection === undefined) continue;
    sentMsById.set(job.id + index, performance.now());
    writes.push(field.write(connection, index).then(() => void idle.push(connection)));
  }
  await Promise.all(writes);
  const expected = sentMsById.size * field.followersPerWrite;
  await arrivalOf(() => latencies.length, expected);
  latencies.sort((a, b) => a - b);
  return {
    p50: percentile(latencies, 0.5),
    p99: percentile(latencies, 0.99),
    lost: expected - latencies.length,
  };
}

/** Keeps a fixed number of writes in flight, and counts the deliveries. */
export async function fanOutCapacity(job: FanOutJob): Promise<LoadResult> {
  let deliveredCount = 0;
  let lastMs = 0;
  let singleLength = 0;
  const field = await openField(job, (text) => {
    // Most messages carry a single row, so only messages longer than that are parsed.
    singleLength ||= text.length;
    deliveredCount += text.length < singleLength * 1.5 ? 1 : idsIn(text).length;
    lastMs = performance.now();
  });
  const connections = await openConnections(job.system, job.rate);
  let writeCount = 0;
  const startMs = performance.now();
  const endMs = startMs + job.seconds * 1000;
  await Promise.all(
    connections.map(async (connection) => {
      while (performance.now() < endMs) {
        writeCount += 1;
        await field.write(connection, writeCount);
      }
    }),
  );
  const expected = writeCount * field.followersPerWrite;
  await arrivalOf(() => deliveredCount, expected);
  const tookMs = lastMs - startMs;
  return {
    delivered: (deliveredCount * 1000) / tookMs,
    writes: (writeCount * 1000) / tookMs,
    lost: expected - deliveredCount,
  };
}

interface Field {
  readonly followersPerWrite: number;
  /** Writes the n-th row and waits for the response. */
  write(connection: HttpConnection, index: number): Promise<void>;
}

async function openField(job: FanOutJob, onMessage: (text: string) => void): Promise<Field> {
  const { system, topic, subscriberCount } = job;
  const tokenOf = (index: number): string =>
    topic === "same" ? system.token : (system.userTokens[index % subscriberCount] ?? "");
  await openFollowers(subscriberCount, (index) => ({
    system,
    token: tokenOf(index),
    messages: [followMessage(system, topic)],
    onMessage,
  }));
  return {
    followersPerWrite: topic === "same" ? subscriberCount : 1,
    async write(connection, index) {
      // The prime 7919 does not divide the number of users, so these steps visit all users in
      // mixed order.
      const token = tokenOf((index * 7919) % subscriberCount);
      const { path, body } = insertRequest(system, topic, itemFor(job.id + index));
      const answer = await connection.post(path, token, body);
      if (answer.status !== 200) {
        throw new Error(
          `Cannot measure ${system.name}: it answered ${answer.status} ${answer.body}`,
        );
      }
    },
  };
}

function openConnections(system: MeasuredSystem, count: number): Promise<HttpConnection[]> {
  return Promise.all(Array.from({ length: count }, () => HttpConnection.open(system.url)));
}

/**
 * Returns the keys of the rows in a message. A message of Tidemark contains `rows`; a message of
 * another system is itself the row.
 */
function idsIn(text: string): number[] {
  const message = JSON.parse(text) as { rows?: { id: number }[]; id?: number };
  if (message.rows !== undefined) return message.rows.map(({ id }) => id);
  return message.id === undefined ? [] : [message.id];
}

/**
 * Waits until the expected number of rows has been delivered, or until the time limit for
 * stragglers has passed.
 */
export async function arrivalOf(count: () => number, expected: number): Promise<void> {
  const deadlineMs = performance.now() + STRAGGLERS_MS_MAX;
  while (count() < expected && performance.now() < deadlineMs) await Bun.sleep(5);
}
