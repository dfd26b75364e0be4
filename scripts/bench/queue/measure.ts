/**
 * Measures two queues alternately, one with a long history and one without, so that other work on
 * the machine affects both alike.
 */
import { median } from "../../support/statistics.ts";
import { JOBS, type JobName, type Queue } from "./measured_queue.ts";
import { aliveAfter, insertSql, type QueueShape, sqlOf, statementsOf } from "./rounds.ts";

/** The number of initial rounds that warm up compilers and caches and are not counted. */
const WARM_ROUNDS = 4;
const ROUNDS = 9;

/** The maximum number of owners whose rows are written concurrently. */
const WRITERS = 16;

const POINT_READS = 20;
const STARTS = 3;

export type Figures = Readonly<Partial<Record<JobName, number>>>;

/** A queue, and how many rounds of statements each owner has completed. */
export interface Progress {
  readonly queue: Queue;
  readonly shape: QueueShape;
  round: number;
  /** The last seq of each statement since round 1, in order and keyed by owner. */
  readonly lastSeqs: Map<number, number[]>;
}

/**
 * Runs the next round of statements for an owner. If `times` is given, it records how long each
 * statement takes.
 */
export async function runRound(
  { lastSeqs, queue, round, shape }: Progress,
  owner: number,
  times?: Times,
): Promise<void> {
  const target = queue.target(owner);
  const statements = statementsOf(shape, round + 1);
  const texts = statements.map((statement) => sqlOf(statement, target));
  const noted = lastSeqs.get(owner);
  if (times === undefined) {
    const seqs = await queue.run(texts, owner);
    noted?.push(...seqs);
    return;
  }
  for (const [index, text] of texts.entries()) {
    const startMs = performance.now();
    const seqs = await queue.run([text], owner);
    const tookMs = performance.now() - startMs;
    noted?.push(...seqs);
    if (statements[index]?.kind === "delete") times.add("DELETE by range", tookMs);
    if (statements[index]?.kind === "update") times.add("UPDATE of a tenth", tookMs);
  }
}

/** Replaces the contents of a queue with the rows that are live after the given round. */
export async function fillAlike(fresh: Progress, round: number): Promise<void> {
  const { queue, shape } = fresh;
  await queue.renew();
  fresh.round = round;
  const [firstId, lastId] = aliveAfter(shape, round);
  await forOwners(queue.ownerCount, async (owner) => {
    for (let id = firstId; id <= lastId; id += shape.step) {
      const ids = { firstId: id, lastId: Math.min(id + shape.step - 1, lastId) };
      await queue.run([insertSql(ids, queue.target(owner))], owner);
    }
  });
}

/** Runs an action for every owner, several owners at a time. */
export async function forOwners(
  count: number,
  work: (owner: number) => Promise<void>,
): Promise<void> {
  let next = 0;
  const writer = async (): Promise<void> => {
    while (next < count) {
      next += 1;
      await work(next - 1);
    }
  };
  await Promise.all(Array.from({ length: Math.min(WRITERS, count) }, writer));
}

/**
 * Measures both queues alternately, and returns the medians in milliseconds. Reads come first,
 * because the measured writes create history even in the fresh table.
 */
export async function measureByTurns(
  queues: readonly [Progress, Progress],
): Promise<[Figures, Figures]> {
  const all = [new Times(), new Times()] as const;
  for (const measureOnce of [readOnce, writeOnce]) {
    for (const { queue } of queues) await queue.settled();
    for (let turn = 0; turn < WARM_ROUNDS + ROUNDS; turn += 1) {
      for (const [index, progress] of queues.entries()) {
        const times = turn < WARM_ROUNDS ? new Times() : (all[index] ?? all[0]);
        await measureOnce(progress, turn, times);
      }
    }
  }
  for (let start = 0; start < STARTS; start += 1) {
    for (const [index, { queue, shape }] of queues.entries()) {
      if (queue.restart === undefined) continue;
      const sql = `SELECT COUNT(*) FROM ${queue.target(0).table}`;
      await (all[index] ?? all[0]).take("start after a kill", async () => {
        await queue.restart?.();
        await queue.ask(sql, 0);
      });
      requireRows(await queue.ask(`SELECT id FROM ${queue.target(0).table}`, 0), shape.live);
    }
  }
  return [all[0].medians(), all[1].medians()];
}

function ownerOf({ queue }: Progress, turn: number): number {
  return (turn * 7919) % queue.ownerCount;
}

/**
 * Runs a round for every owner, so that all queues keep the same contents. Only one owner's round
 * is timed.
 */
async function writeOnce(progress: Progress, turn: number, times: Times): Promise<void> {
  const { queue, shape } = progress;
  const timed = ownerOf(progress, turn);
  await queue.settled();
  await runRound(progress, timed, times);
  await forOwners(queue.ownerCount, async (owner) => {
    if (owner !== timed) await runRound(progress, owner);
  });
  progress.round += 1;
  requireRows(await queue.snapshot(timed), shape.live);
}

/** Runs each query once on the rows of one owner. */
async function readOnce(progress: Progress, turn: number, times: Times): Promise<void> {
  const { queue, shape } = progress;
  const owner = ownerOf(progress, turn);
  const { owner: ownerId, table } = queue.target(owner);
  const where = ownerId === undefined ? "" : `WHERE owner = ${ownerId}`;
  const and = ownerId === undefined ? "" : `AND owner = ${ownerId}`;
  const [firstId, lastId] = aliveAfter(shape, progress.round);
  await times.take("grouped count", () =>
    queue.ask(`SELECT kind, COUNT(*), SUM(qty) FROM ${table} ${where} GROUP BY kind`, owner),
  );
  await times.take("count(*)", () => queue.ask(`SELECT COUNT(*) FROM ${table} ${where}`, owner));
  for (let read = 0; read < POINT_READS; read += 1) {
    const id = firstId + Math.floor(Math.random() * (lastId - firstId + 1));
    const sql = `SELECT id, kind, qty, body FROM ${table} WHERE id = ${id} ${and}`;
    requireRows(await times.take("read by key", () => queue.ask(sql, owner)), 1);
  }
  const first = `SELECT id, kind, qty, body FROM ${table} ${where} ORDER BY`;
  await times.take("newest 20 by _seq", () =>
    queue.ask(`${first} ${queue.newestColumn} DESC LIMIT 20`, owner),
  );
  await times.take("oldest 20 by key", () => queue.ask(`${first} id LIMIT 20`, owner));
  requireRows(await times.take("snapshot", () => queue.snapshot(owner)), shape.live);
}

function requireRows(found: number, expected: number): void {
  if (found !== expected) throw new Error(`Cannot trust the queue: ${found} rows of ${expected}`);
}

class Times {
  readonly #times = new Map<JobName, number[]>();

  add(job: JobName, ms: number): void {
    const times = this.#times.get(job) ?? [];
    times.push(ms);
    this.#times.set(job, times);
  }

  async take<T>(job: JobName, work: () => Promise<T>): Promise<T> {
    const startMs = performance.now();
    const result = await work();
    this.add(job, performance.now() - startMs);
    return result;
  }

  medians(): Figures {
    return Object.fromEntries(
      JOBS.flatMap((job) => {
        const times = this.#times.get(job);
        return times === undefined ? [] : [[job, median(times)]];
      }),
    );
  }
}
