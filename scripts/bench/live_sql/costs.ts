/**
 * Measures the cost of changes to tables that materialised queries read. The server's processor
 * time per change is compared with the time for the same changes when other queries follow them,
 * or with changes to other tables.
 */

import type { ServerProcess } from "../../../tests/support/server_process.ts";
import { median, percentile } from "../../support/statistics.ts";
import { cpuNsOf } from "../compare/process_time.ts";
import { settled } from "../idle_memory/measure.ts";
import { type Followers, followTidemark, type Subscribed } from "./tidemark_followers.ts";

/**
 * How long changes run before they are counted, in seconds. Compilers and caches are cold at
 * first.
 */
const WARM_SECONDS = 1;

const SHARED = " WITH (TYPE = 'SHARED', ACCESS_LEVEL = 'PUBLIC')";

/** The number of rows per INSERT while a table is being filled. */
const FILL_ROWS = 50_000;

export interface Changes {
  readonly rate: number;
  readonly seconds: number;
  /** Returns the statement for the n-th change. */
  readonly changeOf: (index: number) => Subscribed;
}

export interface Cost {
  /** The processor time per change, in microseconds. */
  readonly cpuUs: number;
  readonly p50: number;
  readonly p99: number;
  /**
   * The number of changes made per second. It is lower than the requested rate if the server could
   * not keep up.
   */
  readonly rate: number;
}

/**
 * Creates a table in the namespace "bench", and fills it from a series of numbers. The expressions
 * for the columns refer to each number as `n`.
 */
export async function fill(
  server: ServerProcess,
  {
    columns,
    count,
    name,
    values,
  }: { name: string; columns: string; values: string; count: number },
): Promise<void> {
  const run = (sql: string) => server.rows(sql, { namespace: "bench" });
  await run(`DROP TABLE IF EXISTS ${name}; CREATE TABLE ${name} (${columns})${SHARED}`);
  for (let first = 0; first < count; first += FILL_ROWS) {
    const last = Math.min(count, first + FILL_ROWS) - 1;
    await run(
      `INSERT INTO ${name} SELECT ${values} FROM generate_series(${first}, ${last}) AS g(n)`,
    );
  }
  await run(`STORAGE FLUSH TABLE ${name}`);
}

/**
 * Writes at a fixed rate, and measures the server's processor time and the delay of the responses.
 */
async function costOf(server: ServerProcess, { changeOf, rate, seconds }: Changes): Promise<Cost> {
  const pending = new Set<Promise<void>>();
  const took: number[] = [];
  const write = async (index: number): Promise<void> => {
    const { params = [], sql } = changeOf(index);
    const startMs = performance.now();
    await written(server, { sql, params });
    took.push(performance.now() - startMs);
  };
  const warmCount = WARM_SECONDS * rate;
  const count = warmCount + rate * seconds;
  const startMs = performance.now();
  let startNs = 0;
  let warmMs = startMs;
  for (let index = 0; index < count; index += 1) {
    await Bun.sleep(Math.max(0, startMs + (index * 1000) / rate - performance.now()));
    if (index === warmCount) {
      startNs = cpuNsOf(server.pid);
      warmMs = performance.now();
      took.length = 0;
    }
    // If the server cannot keep up, the writer slows down instead of letting requests pile up.
    if (pending.size >= IN_FLIGHT_MAX) await Promise.race(pending);
    const writing = write(index).finally(() => pending.delete(writing));
    pending.add(writing);
  }
  await Promise.all(pending);
  const sorted = took.toSorted((left, right) => left - right);
  return {
    cpuUs: (cpuNsOf(server.pid) - startNs) / 1000 / (count - warmCount),
    p50: percentile(sorted, 0.5),
    p99: percentile(sorted, 0.99),
    rate: ((count - warmCount) * 1000) / (performance.now() - warmMs),
  };
}

const IN_FLIGHT_MAX = 64;

/**
 * Makes a change, and repeats it after a conflict with another transaction that changed the same
 * row.
 */
async function written(server: ServerProcess, { params = [], sql }: Subscribed): Promise<void> {
  for (;;) {
    const { body } = await server.sql(sql, { namespace: "bench", params });
    if (body.error === undefined) return;
    if (body.error.reason !== "conflict")
      throw new Error(`Cannot run ${sql}: ${body.error.message}`);
  }
}

/**
 * Measures the cost of changes while a query has followers. Disconnects the followers afterwards.
 */
export async function costUnder(
  server: ServerProcess,
  followers: { count: number; queryOf: (index: number) => Subscribed },
  changes: Changes,
): Promise<Cost & { readonly messages: number }> {
  const opened = await follow(server, followers);
  const cost = await costOf(server, changes);
  const messages = opened.changeCount;
  opened.close();
  return { ...cost, messages };
}

export async function follow(
  server: ServerProcess,
  { count, queryOf }: { count: number; queryOf: (index: number) => Subscribed },
): Promise<Followers> {
  const socketCount = Math.max(1, Math.ceil(count / SUBSCRIPTIONS_PER_SOCKET));
  return await followTidemark(server, { count, socketCount, queryOf, onRows: () => undefined });
}

const SUBSCRIPTIONS_PER_SOCKET = 500;

interface FollowerBytes {
  /** The memory of the entire process, including unused gaps in its heap. */
  readonly all: number;
  /** The memory of the live objects only. */
  readonly objects: number;
}

/**
 * Returns the memory per follower, in bytes. The number of followers doubles in several steps, and
 * the median of the steps counts, because the runtime may return 20 MB of earlier work to the
 * system during any of them. The server must preload `collectPath`.
 */
export async function bytesOfFollower(
  server: ServerProcess,
  { count, queryOf }: { count: number; queryOf: (index: number) => Subscribed },
): Promise<FollowerBytes> {
  const opened = [await follow(server, { count, queryOf })];
  const part = count / MEMORY_STEPS;
  const all: number[] = [];
  let last = await settled(server, { settleMs: SETTLE_MS });
  const firstObjects = last.heap.heapSize;
  for (let first = count; first < 2 * count; first += part) {
    opened.push(await follow(server, { count: part, queryOf: (index) => queryOf(first + index) }));
    const next = await settled(server, { settleMs: SETTLE_MS });
    all.push((next.pss - last.pss) / part);
    last = next;
  }
  for (const followers of opened) followers.close();
  return { all: median(all), objects: (last.heap.heapSize - firstObjects) / count };
}

const MEMORY_STEPS = 5;

const SETTLE_MS = 2000;

/**
 * Measures the cost of INSERTs into some tables, alone and during a large commit to another table
 * that has followers.
 */
export async function besideBulk(
  server: ServerProcess,
  { bulk, changes }: { bulk: string; changes: Changes },
): Promise<{ alone: Cost; beside: Cost }> {
  const alone = await costOf(server, changes);
  const loading = Bun.sleep(WARM_SECONDS * 1000).then(() =>
    server.rows(bulk, { namespace: "bench" }),
  );
  const beside = await costOf(server, changes);
  await loading;
  return { alone, beside };
}
