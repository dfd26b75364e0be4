/**
 * Measures topics: what they cost a writer; how fast a consumer takes messages and how soon it
 * receives a new one, compared with a consumer group of a Redis stream that syncs before it
 * responds; and the memory of waiting consumers.
 *
 *     cost      processor time of INSERTs into a table of three topics, against one of none
 *     batch     messages that are there already, 1,000 at a time
 *     latency   200 messages a second, from the write, which includes its sync, to the consumer
 *     waits     4,000 requests that wait, and 4,000 sockets; the memory that a process takes or
 *               returns by itself would hide fewer
 *
 * The writer and the consumer of a job run in-process, and each system is a separate process. On a
 * machine that also does other work, only processor time and memory are meaningful. With
 * `--strict`, the script exits with 1 if a target is missed.
 */
import { countOption, flag, readOptions, someOf } from "../support/arguments.ts";
import type { Line } from "./compare/jobs.ts";
import { tableOf } from "./compare/report.ts";
import type { ConsumerSystem } from "./topics/consumer_system.ts";
import { batchLines, latencyLines } from "./topics/delivery.ts";
import { RedisConsumer } from "./topics/redis_consumer.ts";
import { TidemarkConsumer } from "./topics/tidemark_consumer.ts";
import { waitLines } from "./topics/waits.ts";
import { writerCostLines } from "./topics/writer_cost.ts";

const JOBS = ["cost", "batch", "latency", "waits"];

const options = readOptions({
  only: someOf(JOBS, "the jobs to measure"),
  rounds: countOption("the number of rounds of batches, of which the median counts", 5),
  messages: countOption("the number of messages in a round", 100_000),
  seconds: countOption("how long single messages are written", 10),
  comparisons: countOption("the number of comparisons of the cost of a writer", 300),
  "settle-ms": countOption("how long the memory settles before each measurement", 7000),
  strict: flag("exits with 1 if a target is missed"),
});
const wanted: readonly string[] = options.only;
const lines: Line[] = [];
if (wanted.includes("cost")) await noted("cost", () => writerCostLines(options.comparisons));
if (wanted.includes("batch") || wanted.includes("latency")) await measureBesideRedis();
if (wanted.includes("waits")) await noted("waits", () => waitLines(options["settle-ms"]));
const table = tableOf(lines);
process.stdout.write(`${table}\n`);
process.exit(options.strict && table.includes("MISSED") ? 1 : 0);

async function measureBesideRedis(): Promise<void> {
  const systems: ConsumerSystem[] = [await TidemarkConsumer.start()];
  const redis = await RedisConsumer.start();
  if (redis !== undefined) systems.push(redis);
  const { messages, rounds, seconds } = options;
  const given = { systems, messages, rounds, seconds };
  if (wanted.includes("batch")) await noted("batch", () => batchLines(given));
  if (wanted.includes("latency")) await noted("latency", () => latencyLines(given));
  for (const system of systems) await system.stop();
}

/** Prints on stderr which job has ended, because an entire run takes minutes. */
async function noted(name: string, job: () => Promise<Line[]>): Promise<void> {
  const startMs = performance.now();
  const measured = await job();
  const seconds = Math.round((performance.now() - startMs) / 1000);
  process.stderr.write(`${name}: ${seconds} s\n${tableOf(measured)}\n`);
  lines.push(...measured);
}
