/**
 * What a statement costs besides its work: from a text with new literals to its plan, and through
 * an empty table to its result. Measured in this process, since HTTP costs more than that.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Principal } from "../../src/auth/mod.ts";
import { openAt } from "../../tests/support/database.ts";
import { median } from "../support/statistics.ts";
import type { Line } from "./jobs.ts";

const STATEMENTS_PER_ROUND = 50_000;

/** Who runs what is measured in this process. */
export const BENCH_PRINCIPAL: Principal = {
  userId: "bench",
  role: "dba",
  owner: undefined,
  actorId: "bench",
  actorRole: "dba",
  isImpersonated: false,
  sessionId: "",
};

export async function textLine(roundCount: number): Promise<Line> {
  const directory = mkdtempSync(join(tmpdir(), "tidemark-bench-"));
  const database = await openAt(directory);
  const run = async (sql: string): Promise<void> => {
    const { error } = await database.sql.execute(BENCH_PRINCIPAL, { sql, params: [] });
    if (error !== undefined) throw error;
  };
  await run("CREATE TABLE default.t (id BIGINT PRIMARY KEY, usr TEXT, body TEXT, ts BIGINT)");
  const microseconds: number[] = [];
  // The first round is for the compilers.
  for (let round = -1; round < roundCount; round += 1) {
    const startNs = Bun.nanoseconds();
    for (let n = 0; n < STATEMENTS_PER_ROUND; n += 1) {
      await run(`SELECT id, usr, body, ts FROM default.t WHERE id = ${n} AND usr <> 'u${n}'`);
    }
    if (round >= 0) microseconds.push((Bun.nanoseconds() - startNs) / 1000 / STATEMENTS_PER_ROUND);
  }
  await database.close();
  rmSync(directory, { recursive: true, force: true });
  return {
    job: "statement with new literals, from text to an empty result",
    unit: "µs",
    isRate: false,
    values: { Tidemark: median(microseconds) },
    target: { atMost: 20 },
  };
}
