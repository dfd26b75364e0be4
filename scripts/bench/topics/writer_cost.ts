/**
 * Measures what topics cost a writer: the same inserts go into a table that feeds three topics,
 * and into a table that feeds none.
 *
 * It runs in-process and measures only the event loop's processor time. Short slices follow each
 * other in the order fed, plain, plain, fed, so that a drift, for example from a growing memtable,
 * affects both halves alike. Each group of four is one comparison, and the result is the median of
 * all comparisons.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Database } from "../../../src/database.ts";
import { openAt } from "../../../tests/support/database.ts";
import { median } from "../../support/statistics.ts";
import type { Line } from "../compare/jobs.ts";
import { BENCH_PRINCIPAL } from "../compare/text.ts";
import { itemFor } from "../systems/rows.ts";

const TOPICS = ["default.one", "default.two", "default.three"];

/** The number of initial comparisons that warm up the compilers and are not counted. */
const WARM_COMPARISONS = 20;

const GROUPS_PER_SLICE = 6;

/** The number of inserts in flight at once. The log writes them as one group. */
const WRITERS = 64;

const BATCH_MESSAGES = 1000;

/**
 * The maximum time that a consumer waits for a message, in milliseconds. A commit wakes it long
 * before that.
 */
const WAIT_MS = 60_000;

interface CostOptions {
  readonly comparisons: number;
  /** Whether a consumer of each topic reads every message in the slice that inserted it. */
  readonly isRead: boolean;
}

export async function writerCostLines(comparisons: number): Promise<Line[]> {
  const unread = await costOf({ comparisons, isRead: false });
  const read = await costOf({ comparisons: Math.ceil(comparisons / 3), isRead: true });
  const job = "INSERT into a table of three topics: more processor time than without topics";
  return [
    { ...lineOf(job, unread), target: { atMost: 5 } },
    lineOf(`${job}, with the work for a consumer of each`, read),
  ];
}

function lineOf(job: string, ratio: number): Line {
  return { job, unit: "%", isRate: false, values: { Tidemark: Math.max(0, (ratio - 1) * 100) } };
}

async function costOf({ comparisons, isRead }: CostOptions): Promise<number> {
  const directory = mkdtempSync(join(tmpdir(), "tidemark-bench-"));
  const database = await openAt(directory);
  for (const table of ["default.fed", "default.plain"]) {
    await run(database, `CREATE TABLE ${table} (id BIGINT PRIMARY KEY, usr TEXT, body TEXT)`);
  }
  for (const topic of TOPICS) {
    await run(database, `CREATE TOPIC ${topic}`);
    await run(database, `ALTER TOPIC ${topic} ADD SOURCE default.fed ON INSERT`);
  }
  const readers = isRead ? TOPICS.map((topic) => new Reader(database, topic)) : [];
  const ratios: number[] = [];
  let nextId = 0;
  const insert = (table: string): Promise<void> => {
    nextId += 1;
    const { body, id, usr } = itemFor(nextId);
    return run(database, `INSERT INTO default.${table} VALUES (${id}, '${usr}', '${body}')`);
  };
  const slice = async (table: "fed" | "plain"): Promise<number> => {
    const before = process.threadCpuUsage();
    for (let group = 0; group < GROUPS_PER_SLICE; group += 1) {
      await Promise.all(Array.from({ length: WRITERS }, () => insert(table)));
    }
    if (table === "fed") {
      const count = GROUPS_PER_SLICE * WRITERS;
      await Promise.all(readers.map((reader) => reader.take(count)));
    }
    const { system, user } = process.threadCpuUsage(before);
    return system + user;
  };
  for (let count = 0; count < WARM_COMPARISONS + comparisons; count += 1) {
    // The first slice of a comparison finds the machine in a different state from the others, so
    // the two variants take turns in going first.
    const [outer, inner] =
      count % 2 === 0 ? (["fed", "plain"] as const) : (["plain", "fed"] as const);
    const firstUs = await slice(outer);
    const innerUs = (await slice(inner)) + (await slice(inner));
    const outerUs = firstUs + (await slice(outer));
    if (count >= WARM_COMPARISONS) {
      ratios.push(count % 2 === 0 ? outerUs / innerUs : innerUs / outerUs);
    }
  }
  await database.close();
  rmSync(directory, { recursive: true, force: true });
  return median(ratios);
}

/**
 * The only consumer of a group. It acknowledges each batch of messages before it reads the next.
 */
class Reader {
  readonly #database: Database;
  readonly #topicId: number;

  constructor(database: Database, topic: string) {
    this.#database = database;
    this.#topicId = database.topicConsumers.topicIdOf(topic);
  }

  /** Reads `count` messages, and waits for messages that have not been written yet. */
  async take(count: number): Promise<void> {
    const topics = this.#database.topicConsumers;
    const system = { topicId: this.#topicId, partition: 0, group: "bench" };
    for (let left = count; left > 0; ) {
      const { messages } = await topics.consume({
        ...system,
        start: { kind: "earliest" },
        limit: BATCH_MESSAGES,
        waitMs: WAIT_MS,
        userId: BENCH_PRINCIPAL.userId,
      });
      const last = messages.at(-1);
      if (last === undefined) throw new Error("Cannot read a topic: messages are missing");
      await topics.ack({ ...system, upTo: last.offset, offsets: undefined });
      left -= messages.length;
    }
  }
}

async function run(database: Database, sql: string): Promise<void> {
  const { error } = await database.sql.execute(BENCH_PRINCIPAL, { sql, params: [] });
  if (error !== undefined) throw error;
}
