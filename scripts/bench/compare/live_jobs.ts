/**
 * Defines the jobs that measure live delivery, from a write to its followers. Delivery is compared
 * with relays that only route by topic. The jobs also measure what followers cost the server.
 */

import { median, percentile } from "../../support/statistics.ts";
import { measureIdle } from "../idle_memory/measure.ts";
import { insertRequest, type MeasuredSystem } from "../systems/measured_system.ts";
import { bulkStatement, itemFor } from "../systems/rows.ts";
import {
  type JobOptions,
  type Line,
  lineOf,
  type Measurement,
  measure,
  runLoad,
  type Target,
  takeIds,
  warm,
} from "./jobs.ts";
import { writerCostLine } from "./live_cost.ts";

/**
 * The number of users in the reconnect job, and in the job in which each user has rows of their
 * own.
 */
export const USER_COUNT = 1000;

const MISSED_COUNT = 1000;

/** The number of writes per second while clients reconnect. */
const RECONNECT_RATE = 200;

const ROOMS_RATE = 300;

/**
 * How long the runtime may take to return the unused memory of an idle server, in milliseconds.
 */
const SETTLE_MS = 4000;

/**
 * The number of connections and the number of subscriptions on each connection, for a small and a
 * large load. In both, each change matches ten subscriptions.
 */
const ROOMS = { few: [10, 1], many: [1000, 10] } as const;

const RELAY_TARGET: Target = { peer: "Redis", factor: 0.9 };

export async function liveLines(options: JobOptions): Promise<Line[]> {
  return [
    ...(await sameLines(options, { subscriberCount: 1000, rate: 10 })),
    ...(await sameLines(options, { subscriberCount: 5000, rate: 2 })),
    ...(await ownLines(options)),
    ...(await roomLines(options)),
    ...(await reconnectLines(options)),
    ...(await idleLines()),
    await writerCostLine(),
  ];
}

/** Measures the case in which all sockets follow the same query. */
async function sameLines(
  options: JobOptions,
  { subscriberCount, rate }: { subscriberCount: number; rate: number },
): Promise<Line[]> {
  const job = { topic: "same", subscriberCount } as const;
  const capacity = await fanOut(options, { ...job, kind: "capacity", rate: 4 });
  const latency = await fanOut(options, { ...job, kind: "latency", rate });
  const name = `fan-out to ${subscriberCount.toLocaleString("en")} of one query`;
  return [
    {
      ...lineOf(capacity, { job: name, unit: "changes/s", isRate: true, figure: "delivered" }),
      target: RELAY_TARGET,
    },
    ...latencyLines(latency, name, { p99: { peer: "Redis", factor: 1 } }),
    lostLine([...capacity, ...latency], name),
  ];
}

/** Measures the case in which each socket has its own user and follows that user's rows. */
async function ownLines(options: JobOptions): Promise<Line[]> {
  const job = { topic: "own", subscriberCount: USER_COUNT } as const;
  const capacity = await fanOut(options, { ...job, kind: "capacity", rate: 64 });
  const latency = await fanOut(options, { ...job, kind: "latency", rate: 200 });
  const name = "fan-out to 1,000 users of their own rows";
  const beatsRelays: Target = {
    allOf: [
      { anyOf: [{ atLeast: 15_000 }, { peer: "SQLite", factor: 0.7 }] },
      { peer: "PostgreSQL", factor: 4 },
    ],
  };
  return [
    {
      ...lineOf(capacity, { job: name, unit: "changes/s", isRate: true, figure: "delivered" }),
      target: beatsRelays,
    },
    ...latencyLines(latency, name, { p50: { atMost: 2 } }),
    lostLine([...capacity, ...latency], name),
  ];
}

async function fanOut(
  options: JobOptions,
  job: {
    kind: "latency" | "capacity";
    topic: "same" | "own";
    subscriberCount: number;
    rate: number;
  },
): Promise<Measurement[]> {
  const { systems, seconds } = options;
  const all = [systems.tidemark, ...systems.peers, ...systems.relays];
  const jobFor = (system: MeasuredSystem) => ({ ...job, system, seconds, id: takeIds(10_000_000) });
  if (job.kind === "capacity") await warm(options, jobFor, all);
  return measure(options, jobFor, all);
}

function latencyLines(
  results: readonly Measurement[],
  name: string,
  targets: { readonly p50?: Target; readonly p99?: Target },
): Line[] {
  const lines: Line[] = [];
  for (const figure of ["p50", "p99"] as const) {
    const job = `${name}: write → delivered ${figure}`;
    const line = lineOf(results, { job, unit: "ms", isRate: false, figure });
    const target = targets[figure];
    lines.push(target === undefined ? line : { ...line, target });
  }
  return lines;
}

function lostLine(results: readonly Measurement[], name: string): Line {
  const line = { job: `${name}: lost`, unit: "changes", isRate: false, figure: "lost" };
  return { ...lineOf(results, line), target: { atMost: 0 } };
}

/**
 * Measures the cost of a change that matches ten subscriptions, first when no other subscriptions
 * exist, then when many do.
 */
async function roomLines({ systems, roundCount, seconds }: JobOptions): Promise<Line[]> {
  const system = systems.tidemark;
  const costs: Record<keyof typeof ROOMS, number[]> = { few: [], many: [] };
  let lost = 0;
  for (let round = 0; round < roundCount; round += 1) {
    for (const which of ["few", "many"] as const) {
      const [connectionCount, perConnection] = ROOMS[which];
      const result = await runLoad({
        kind: "rooms",
        system,
        connectionCount,
        perConnection,
        rate: ROOMS_RATE,
        seconds,
        id: takeIds(1_000_000),
        serverPid: systems.server.pid,
      });
      costs[which].push(result["cost"] ?? Number.NaN);
      lost += result["lost"] ?? Number.NaN;
    }
  }
  const few = median(costs.few);
  const many = median(costs.many);
  const job = "change for 10 of 10,000 subscriptions";
  const line = { unit: "µs", isRate: false };
  return [
    { ...line, job: `${job}: processor time`, values: { Tidemark: many } },
    {
      ...line,
      job: "change for 10 of 10 subscriptions: processor time",
      values: { Tidemark: few },
    },
    {
      job: `${job}, against 10 of 10`,
      unit: "times",
      isRate: false,
      values: { Tidemark: many / few },
      target: { atMost: 2 },
    },
    { job: `${job}: lost`, unit: "changes", isRate: false, values: { Tidemark: lost } },
  ];
}

/**
 * Measures a mass reconnect. This process writes rows while a separate process acts as the
 * clients.
 */
async function reconnectLines({ systems, roundCount }: JobOptions): Promise<Line[]> {
  const { tidemark: system, server } = systems;
  const seconds: number[] = [];
  const writes: number[] = [];
  for (let round = 0; round < roundCount; round += 1) {
    const { path, body } = insertRequest(system, "same", itemFor(takeIds(1)));
    const before = await server.post(path, JSON.parse(body), authorization(system));
    const [entry] = ((await before.json()) as { results: { last_seq: number }[] }).results;
    const firstId = takeIds(MISSED_COUNT);
    // The missed changes come in several commits, as they would in practice.
    for (let offset = 0; offset < MISSED_COUNT; offset += 100) {
      await server.rows(bulkStatement("bench.feed", firstId + offset, 100));
    }
    let isOver = false;
    const load = runLoad({
      kind: "reconnect",
      system,
      clientCount: USER_COUNT,
      fromSeq: entry?.last_seq ?? 0,
      missedCount: MISSED_COUNT,
    }).finally(() => {
      isOver = true;
    });
    const took = await writeUntil(systems, () => isOver);
    seconds.push((await load)["seconds"] ?? Number.NaN);
    writes.push(percentile(took, 0.99));
  }
  const job = "1,000 clients reconnect at once, 1,000 changes behind";
  return [
    {
      job: `${job}: all live`,
      unit: "s",
      isRate: false,
      values: { Tidemark: median(seconds) },
      target: { atMost: 10 },
    },
    {
      job: `${job}: INSERT meanwhile p99`,
      unit: "ms",
      isRate: false,
      values: { Tidemark: median(writes) },
      target: { atMost: 50 },
    },
  ];
}

/**
 * Writes rows until a condition is met.
 * @returns The duration of each write in milliseconds, ascending.
 */
async function writeUntil({ tidemark, server }: JobOptions["systems"], isOver: () => boolean) {
  const took: number[] = [];
  while (!isOver()) {
    const { path, body } = insertRequest(tidemark, "same", itemFor(takeIds(1)));
    const startMs = performance.now();
    const answer = await server.post(path, JSON.parse(body), authorization(tidemark));
    if (!answer.ok)
      throw new Error(`Cannot write while clients reconnect: the server answered ${answer.status}`);
    await answer.arrayBuffer();
    const tookMs = performance.now() - startMs;
    took.push(tookMs);
    await Bun.sleep(Math.max(0, 1000 / RECONNECT_RATE - tookMs));
  }
  return took.toSorted((a, b) => a - b);
}

function authorization(system: MeasuredSystem): Record<string, string> {
  return { Authorization: `Bearer ${system.token}` };
}

async function idleLines(): Promise<Line[]> {
  const lines: Line[] = [];
  for (const connectionCount of [5000, 9000]) {
    const { together } = await measureIdle({ connectionCount, settleMs: SETTLE_MS });
    lines.push({
      job: `idle subscription of ${connectionCount.toLocaleString("en")}, beyond a bare socket`,
      unit: "KB",
      isRate: false,
      values: { Tidemark: together / 1000 },
      target: { atMost: 2 },
    });
  }
  return lines;
}
