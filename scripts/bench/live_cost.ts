/**
 * What the live layer costs a writer whom nobody follows: the same inserts with the store telling
 * the live engine of each commit, and with it telling nobody. Measured in this process, in
 * processor time, in short turns one after the other, so that a slow minute meets both.
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

const TURN_PAIRS = 60;
const INSERTS_PER_TURN = 2048;

/** Inserts under way at once. */
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
  const turn = async (onVisible: OnVisible): Promise<number> => {
    store.onVisible = onVisible;
    const before = process.cpuUsage();
    for (let done = 0; done < INSERTS_PER_TURN; done += WRITERS) {
      const inserts = Array.from({ length: WRITERS }, () => {
        nextId += 1;
        const { body, id, usr } = itemFor(nextId);
        return run(database, `INSERT INTO default.t VALUES (${id}, '${usr}', '${body}')`);
      });
      await Promise.all(inserts);
    }
    const { system, user } = process.cpuUsage(before);
    return system + user;
  };
  for (let pair = 0; pair < TURN_PAIRS; pair += 1) {
    // Whoever comes second finds another machine, so they take turns at that as well.
    const [first, second] = pair % 2 === 0 ? [told, ignore] : [ignore, told];
    const [firstUs, secondUs] = [await turn(first), await turn(second)];
    // The first are for the compilers.
    if (pair < 4) continue;
    ratios.push(pair % 2 === 0 ? firstUs / secondUs : secondUs / firstUs);
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
