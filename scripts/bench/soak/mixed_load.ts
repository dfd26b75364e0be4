/**
 * Generates the load of ordinary use. Short changes replace several rows at a steady rate, so that
 * the number of live rows stays the same. One grouped query follows another. Followers connect,
 * load a table, follow its changes for a while, and leave.
 */
import { median, percentile } from "../../support/statistics.ts";
import { RefusedStatement, type SoakTarget } from "./target.ts";

export interface MixedReport {
  /** The number of changes that received a response. */
  readonly changeCount: number;
  readonly queryCount: number;
  readonly followerCount: number;
  readonly messageCount: number;
  /** The errors of statements and followers, in order of arrival. */
  readonly failures: readonly string[];
  readonly changeMs: { readonly median: number; readonly p99: number };
  readonly queryMs: { readonly median: number };
}

const TABLES = ["messages", "jobs", "readings"];
const ROWS_PER_TABLE = 10_000;

const CHANGES_PER_SECOND = 80;
const ROWS_PER_CHANGE = 20;

/**
 * The maximum number of changes that await a response. At this number, the load sends no more
 * changes until a response arrives.
 */
const UNDER_WAY_MAX = 64;

const FOLLOWER_COUNT = 10;
const FOLLOWER_MS_MIN = 2000;
const FOLLOWER_MS_MAX = 20_000;

/**
 * The maximum number of recorded durations. Only the latest are kept, so that a long run needs no
 * more memory than a short one.
 */
const TIMES_MAX = 20_000;

/** A table and the range of its live ids, from `first` (inclusive) to `next` (exclusive). */
interface LoadedTable {
  readonly table: string;
  readonly sqlName: string;
  first: number;
  next: number;
}

export class MixedLoad {
  readonly #target: SoakTarget;
  readonly #tables: readonly LoadedTable[];
  readonly #failures: string[] = [];
  readonly #changeMs: number[] = [];
  readonly #queryMs: number[] = [];
  #changeCount = 0;
  #queryCount = 0;
  #followerCount = 0;
  #messageCount = 0;
  #ends = false;

  constructor(target: SoakTarget) {
    this.#target = target;
    this.#tables = TABLES.map((table) => {
      return { table, sqlName: target.nameOf(table), first: 0, next: 0 };
    });
  }

  get report(): MixedReport {
    return {
      changeCount: this.#changeCount,
      queryCount: this.#queryCount,
      followerCount: this.#followerCount,
      messageCount: this.#messageCount,
      failures: this.#failures,
      changeMs: {
        median: median(this.#changeMs),
        p99: percentile(
          this.#changeMs.toSorted((a, b) => a - b),
          0.99,
        ),
      },
      queryMs: { median: median(this.#queryMs) },
    };
  }

  /** Creates the tables with all their rows. */
  async prepare(): Promise<void> {
    for (const loaded of this.#tables) {
      await this.#target.makeTable(loaded.table);
      while (loaded.next < ROWS_PER_TABLE) {
        await this.#target.change(loaded.table, insertOf(loaded, 500));
      }
    }
  }

  /** Runs the load for the given time, and waits until everything in progress has ended. */
  async run(durationMs: number): Promise<void> {
    const endMs = performance.now() + durationMs;
    const followers = Array.from({ length: FOLLOWER_COUNT }, (_, index) => this.#follow(index));
    const queries = this.#queryOnAndOn();
    await this.#changeUntil(endMs);
    this.#ends = true;
    await Promise.all([...followers, queries]);
  }

  async #changeUntil(endMs: number): Promise<void> {
    const startMs = performance.now();
    const underWay = new Set<Promise<void>>();
    for (let sent = 0; performance.now() < endMs; sent += 1) {
      await Bun.sleep(startMs + (1000 * sent) / CHANGES_PER_SECOND - performance.now());
      if (underWay.size >= UNDER_WAY_MAX) await Promise.race(underWay);
      const change = this.#change(sent).finally(() => underWay.delete(change));
      underWay.add(change);
    }
    await Promise.all(underWay);
  }

  async #change(index: number): Promise<void> {
    const loaded = this.#tables[index % TABLES.length];
    if (loaded === undefined) return;
    const kind = Math.floor(index / TABLES.length) % 3;
    const sql = [insertOf, updateOf, deleteOf][kind]?.(loaded, ROWS_PER_CHANGE) ?? "";
    const startMs = performance.now();
    const isDone = await this.#attempt(() => this.#target.change(loaded.table, sql));
    if (!isDone) return;
    this.#changeMs[this.#changeCount % TIMES_MAX] = performance.now() - startMs;
    this.#changeCount += 1;
  }

  async #queryOnAndOn(): Promise<void> {
    while (!this.#ends) {
      const loaded = this.#tables[this.#queryCount % TABLES.length];
      const startMs = performance.now();
      const isDone = await this.#attempt(async () => {
        await this.#target.query(
          "SELECT room, count(*), count(DISTINCT author), max(id), min(body), avg(length(body)) " +
            `FROM ${loaded?.sqlName} GROUP BY room ORDER BY 2 DESC, 1 LIMIT 20`,
        );
      });
      if (isDone) this.#queryMs[this.#queryCount % TIMES_MAX] = performance.now() - startMs;
      this.#queryCount += 1;
    }
  }

  async #follow(index: number): Promise<void> {
    for (let round = 0; !this.#ends; round += 1) {
      const loaded = this.#tables[(index + round) % TABLES.length];
      await this.#attempt(async () => {
        const follower = await this.#target.follow(loaded?.table ?? "");
        this.#followerCount += 1;
        const spreadMs = FOLLOWER_MS_MAX - FOLLOWER_MS_MIN;
        const leavesMs = performance.now() + FOLLOWER_MS_MIN + spreadMs * Math.random();
        while (!this.#ends && performance.now() < leavesMs) await Bun.sleep(100);
        this.#messageCount += follower.messageCount;
        follower.close();
      });
    }
  }

  /** Runs an action, and records its error if it fails. Returns whether it succeeded. */
  async #attempt(act: () => Promise<void>): Promise<boolean> {
    try {
      await act();
      return true;
    } catch (error) {
      this.#failures.push(error instanceof RefusedStatement ? error.message : String(error));
      // The attempt fails immediately if the server refuses the request or has ended. Without a
      // pause, the loop would spin.
      await Bun.sleep(100);
      return false;
    }
  }
}

function insertOf(loaded: LoadedTable, count: number): string {
  const rows = Array.from({ length: count }, (_, index) => {
    const id = loaded.next + index;
    return `(${id}, ${id % 200}, 'author ${id % 1000}', 'message ${id} ${textOf(id)}')`;
  });
  loaded.next += count;
  return `INSERT INTO ${loaded.sqlName} (id, room, author, body) VALUES ${rows.join(", ")}`;
}

/** Returns an UPDATE of several rows chosen at random. */
function updateOf({ first, next, sqlName }: LoadedTable, count: number): string {
  const step = Math.floor((next - first) / count);
  const offset = Math.floor(step * Math.random());
  const ids = Array.from({ length: count }, (_, index) => first + offset + index * step);
  return `UPDATE ${sqlName} SET body = 'changed ${next} ${textOf(next)}' WHERE id IN (${ids.join(", ")})`;
}

function deleteOf(loaded: LoadedTable, count: number): string {
  const ids = Array.from({ length: count }, (_, index) => loaded.first + index);
  loaded.first += count;
  return `DELETE FROM ${loaded.sqlName} WHERE id IN (${ids.join(", ")})`;
}

function textOf(number: number): string {
  return Bun.hash(String(number)).toString(36).repeat(3);
}
