/**
 * Measures what the live layer costs a writer whose rows no subscription follows. It runs the same
 * inserts once with the store notifying the live engine of each commit, and once without.
 *
 * It runs in-process and measures only the event loop's processor time. The compilers, the
 * collector and the threads that sync and flush are not counted: they are unrelated to this cost,
 * and they affected the figure by several percent. Slices of a few milliseconds follow each other
 * in the order notified, not notified, not notified, notified, so that a drift, for example from a
 * growing memtable, affects both halves alike. Each group of four is one comparison. The median of
 * hundreds of comparisons is not affected by the few in which a garbage collection or a flush ran.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Database } from "../../../src/database.ts";
import type { OnVisible } from "../../../src/storage/mod.ts";
import { openAt } from "../../../tests/support/database.ts";
import { median } from "../../support/statistics.ts";
import { itemFor } from "../systems/rows.ts";
import type { Line } from "./jobs.ts";
import { BENCH_PRINCIPAL } from "./text.ts";

const COMPARISONS = 400;

/** The number of initial comparisons that warm up the compilers and are not counted. */
const WARM_COMPARISONS = 20;

const GROUPS_PER_SLICE = 6;

/** The number of inserts in flight at once. The log writes them as one group. */
const WRITERS = 64;

export async function writerCostLine(): Promise<Line> {
  const directory = mkdtempSync(join(tmpdir(), "tidemark-bench-"));
  const database = await openAt(directory);
  const { live, store } = database;
  await run(database, "CREATE TABLE default.t (id BIGINT PRIMARY KEY, usr TEXT, body TEXT)");
  await run(database, "CREATE TABLE default.other (id BIGINT PRIMARY KEY)");
  // An unrelated subscription must exist, because the engine does nothing at all without any
  // subscription.
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
    // The first slice of a comparison finds the machine in a different state from the others, so
    // the two variants take turns in going first.
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
