/**
 * Implements the measured consumer with a Redis stream and a consumer group. Redis syncs its log
 * before it responds.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type Redis, startRedis } from "../systems/redis_peer.ts";
import type { ConsumerSystem, OnBody } from "./consumer_system.ts";

/** The number of commands that reach Redis as one write, and thus share one sync. */
const COMMANDS_AT_ONCE = 1000;

const WAIT_MS = 30_000;

export class RedisConsumer implements ConsumerSystem {
  readonly name = "Redis";
  readonly #directory: string;
  readonly #redis: Redis;
  readonly #writer: Bun.RedisClient;
  readonly #reader: Bun.RedisClient;
  #nextId = 1;

  private constructor(directory: string, redis: Redis) {
    this.#directory = directory;
    this.#redis = redis;
    this.#writer = new Bun.RedisClient(redis.url);
    this.#reader = new Bun.RedisClient(redis.url);
  }

  /** Starts a Redis server. Returns undefined if Redis is not installed. */
  static async start(): Promise<RedisConsumer | undefined> {
    const directory = mkdtempSync(join(tmpdir(), "tidemark-bench-"));
    const redis = await startRedis(directory);
    if (redis === undefined) {
      rmSync(directory, { recursive: true });
      return undefined;
    }
    const consumer = new RedisConsumer(directory, redis);
    await consumer.#writer.send("XGROUP", ["CREATE", "jobs", "bench", "0", "MKSTREAM"]);
    return consumer;
  }

  get pid(): number {
    return this.#redis.pid;
  }

  async fill(count: number): Promise<void> {
    for (let left = count; left > 0; left -= COMMANDS_AT_ONCE) {
      const length = Math.min(left, COMMANDS_AT_ONCE);
      await Promise.all(Array.from({ length }, () => this.write(`job ${this.#nextId}`)));
    }
  }

  async write(body: string): Promise<void> {
    const id = this.#nextId;
    this.#nextId += 1;
    await this.#writer.send("XADD", ["jobs", "*", "id", String(id), "body", body]);
  }

  async take(count: number, { batch, onBody }: { batch: number; onBody?: OnBody }): Promise<void> {
    const wait = ["COUNT", String(batch), "BLOCK", String(WAIT_MS)];
    const asked = ["GROUP", "bench", "one", ...wait, "STREAMS", "jobs", ">"];
    let acking: Promise<unknown> = Promise.resolve();
    for (let left = count; left > 0; ) {
      const entries = entriesOf(await this.#reader.send("XREADGROUP", asked));
      for (const [, fields] of entries) onBody?.(fields[3] ?? "");
      left -= entries.length;
      await acking;
      acking = this.#writer.send("XACK", ["jobs", "bench", ...entries.map(([id]) => id)]);
    }
    await acking;
  }

  async stop(): Promise<void> {
    this.#writer.close();
    this.#reader.close();
    await this.#redis.stop();
    rmSync(this.#directory, { recursive: true, force: true });
  }
}

type Entry = readonly [id: string, fields: readonly string[]];

/** Parses the response to XREADGROUP, in which the entries are grouped by stream name. */
function entriesOf(answer: unknown): readonly Entry[] {
  const { jobs } = (answer ?? {}) as { readonly jobs?: readonly Entry[] };
  if (jobs === undefined) throw new Error("Cannot read a stream: messages are missing");
  return jobs;
}
