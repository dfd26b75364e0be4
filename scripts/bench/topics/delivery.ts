/**
 * Measures the single consumer of a group in Tidemark and in Redis, alternately: how fast it reads
 * messages that are already waiting, and how soon it receives a newly written message.
 */
import { median, percentile } from "../../support/statistics.ts";
import type { Line } from "../compare/jobs.ts";
import { cpuNsOf } from "../compare/process_time.ts";
import type { ConsumerSystem } from "./consumer_system.ts";

const BATCH_MESSAGES = 1000;

/** The number of initial rounds that warm up the compilers and are not counted. */
const WARM_ROUNDS = 3;

const WRITES_PER_SECOND = 200;

/** The number of initial writes that are not counted. */
const WARM_WRITES = 400;

type Values = Readonly<Record<string, number>>;

export interface DeliveryOptions {
  readonly systems: readonly ConsumerSystem[];
  readonly rounds: number;
  readonly messages: number;
  readonly seconds: number;
}

export async function batchLines({ messages, systems, rounds }: DeliveryOptions): Promise<Line[]> {
  const rates = new Map(systems.map(({ name }) => [name, [] as number[]]));
  const costs = new Map(systems.map(({ name }) => [name, [] as number[]]));
  for (let round = 0; round < WARM_ROUNDS + rounds; round += 1) {
    for (const system of systems) {
      await system.fill(messages);
      const cpuNs = cpuNsOf(system.pid);
      const startMs = performance.now();
      await system.take(messages, { batch: BATCH_MESSAGES });
      const tookMs = performance.now() - startMs;
      if (round < WARM_ROUNDS) continue;
      rates.get(system.name)?.push((messages / tookMs) * 1000);
      costs.get(system.name)?.push((cpuNsOf(system.pid) - cpuNs) / 1000 / messages);
    }
  }
  const job = "small messages taken by one consumer, 1,000 a batch";
  return [
    { job, unit: "messages/s", isRate: true, values: medians(rates), target: { atLeast: 100_000 } },
    {
      job: `${job}: processor time of the server`,
      unit: "µs",
      isRate: false,
      values: medians(costs),
    },
  ];
}

export async function latencyLines({ systems, seconds }: DeliveryOptions): Promise<Line[]> {
  const found = new Map<string, Latencies>();
  for (const system of systems) found.set(system.name, await latenciesOf(system, seconds));
  const line = (name: string, of: (latencies: Latencies) => number): Line => ({
    job: `${WRITES_PER_SECOND} messages a second: ${name}`,
    unit: "ms",
    isRate: false,
    values: Object.fromEntries([...found].map(([system, latencies]) => [system, of(latencies)])),
  });
  return [
    {
      ...line("answer to the writer → consumer p50", ({ answer }) => percentile(answer, 0.5)),
      target: { atMost: 2 },
    },
    line("write → consumer p50", ({ write }) => percentile(write, 0.5)),
    line("write → consumer p99", ({ write }) => percentile(write, 0.99)),
  ];
}

/** Delivery times in milliseconds, each list in ascending order. */
interface Latencies {
  /** The times from the start of the write to the delivery. They include the sync. */
  readonly write: readonly number[];
  /**
   * The times from the response to the writer until the delivery; 0 if the consumer received the
   * message before the writer received its response.
   */
  readonly answer: readonly number[];
}

async function latenciesOf(system: ConsumerSystem, seconds: number): Promise<Latencies> {
  const count = WARM_WRITES + seconds * WRITES_PER_SECOND;
  const deliveredMs: number[] = [];
  const taking = system.take(count, {
    batch: BATCH_MESSAGES,
    onBody: (body) => {
      deliveredMs[Number(body)] = performance.now();
    },
  });
  const writtenMs: number[] = [];
  const answeredMs: number[] = [];
  const startMs = performance.now();
  for (let written = 0; written < count; written += 1) {
    const dueMs = startMs + (written * 1000) / WRITES_PER_SECOND;
    const leftMs = dueMs - performance.now();
    if (leftMs > 0) await Bun.sleep(leftMs);
    writtenMs.push(performance.now());
    await system.write(String(written));
    answeredMs.push(performance.now());
  }
  await taking;
  const since = (begunMs: readonly number[]): number[] =>
    begunMs
      .map((begun, index) => Math.max(0, (deliveredMs[index] ?? Number.NaN) - begun))
      .slice(WARM_WRITES)
      .toSorted((left, right) => left - right);
  return { write: since(writtenMs), answer: since(answeredMs) };
}

function medians(measured: ReadonlyMap<string, readonly number[]>): Values {
  return Object.fromEntries([...measured].map(([name, values]) => [name, median(values)]));
}
