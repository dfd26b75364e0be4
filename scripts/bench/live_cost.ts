/**
 * What the live layer costs a writer whom nobody follows: the same inserts with the store telling
 * the live engine of each commit, and with it telling nobody.
 *
 * Measured in this process, in processor time of the event loop alone: what compilers, collectors
 * and the threads of syncs and flushes take has nothing to do with it, and moved the figure by
 * several percent. Slices of a few milliseconds follow each other in the order told, untold,
 * untold, told, so that what drifts, as a memtable that grows does, is in both halves alike. Each
 * such four are one comparison, and the median of hundreds does not see the few that a collection
 * of garbage or a flush fell into: runs on a busy machine differ by one percent.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Database } from "../../src/database.ts";
import type { OnVisible } from "../../src/storage/mod.ts";
import { openAt } from "../../tests/support/database.ts";
import { median } from "../support/statistics.ts";
import type { Line } from "./jobs.ts";
import { itemFor } from "./rows.ts";
import { BENCH_PRINCIPAL } from "./text.ts";

const COMPARISONS = 400;

/** Before those that count, for the compilers. */
const WARM_COMPARISONS = 20;

const GROUPS_PER_SLICE = 6;

/** Inserts under way at once, which are one group of the log. */
const WRITERS = 64;

export async function writerCostLine(): Promise<Line> {
  const directory = mkdtempSync(join(tmpdir(), "tidemark-bench-"));
  const database = await openAt(directory);
  const { live, store } = database;
  await run(database, "CREATE TABLE default.t (id BIGINT PRIMARY KEY, usr TEXT, body TEXT)");
  await run(database, "CREATE TABLE default.other (id BIGINT PRIMARY KEY)");
  // Somebody follows something, or the engine would not look at all.
  live.subscribe({
    principal: BENCH_PRINCIPAL,
    spec: { id: "other", sql: "SELECT id FROM default.other" },
    sink: { connectionId: "bench", send: () => true, end: () => undefined, queuedBytes: 0 },
  });
  const told = store.onVisible;
  const ratios: number[] = [];
  let nextId = 0;
  const insert = (): Promise<void> => {
    nextId += 1;
    const { body, id, usr } = itemFor(nextId);
    return run(database, `INSERT INTO default.t VALUES (${id}, '${usr}', '${body}')`);
  };
  const slice = async (onVisible: OnVisible): Promise<number> => {
    store.onVisible = onVisible;
    const before = process.threadCpuUsage();
    for (let group = 0; group < GROUPS_PER_SLICE; group += 1) {
      await Promise.all(Array.from({ length: WRITERS }, insert));
    }
    const { system, user } = process.threadCpuUsage(before);
    return system + user;
  };
  for (let count = 0; count < WARM_COMPARISONS + COMPARISONS; count += 1) {
    // Whoever comes first finds another machine, so they take turns at that as well.
    const [outer, inner] = count % 2 === 0 ? [told, ignore] : [ignore, told];
    const firstUs = await slice(outer);
    const innerUs = (await slice(inner)) + (await slice(inner));
    const outerUs = firstUs + (await slice(outer));
    if (count < WARM_COMPARISONS) continue;
    ratios.push(count % 2 === 0 ? outerUs / innerUs : innerUs / outerUs);
  }
  store.onVisible = told;
  await database.close();
  rmSync(directory, { recursive: true, force: true });
  return {
    job: "INSERT that nobody follows: processor time for the live layer",
    unit: "%",
    isRate: false,
    values: { Tidemark: Math.max(0, (median(ratios) - 1) * 100) },
    target: { atMost: 3 },
  };
}

function ignore(): void {}

async function run(database: Database, sql: string): Promise<void> {
  const { error } = await database.sql.execute(BENCH_PRINCIPAL, { sql, params: [] });
  if (error !== undefined) throw error;
}
