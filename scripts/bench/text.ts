/**
 * What a statement costs besides its work: from a text with new literals to its plan, and through
 * an empty table to its result. Measured in this process, since HTTP costs more than that.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Principal } from "../../src/auth/mod.ts";
import { bunDisk } from "../../src/base/bun_disk.ts";
import { systemClock } from "../../src/base/clock.ts";
import { silentLog } from "../../src/base/log.ts";
import { systemRandom } from "../../src/base/random.ts";
import { parseConfig } from "../../src/config.ts";
import { openDatabase } from "../../src/database.ts";
import type { Line } from "./jobs.ts";
import { median } from "./statistics.ts";

const STATEMENTS_PER_ROUND = 50_000;

const PRINCIPAL: Principal = {
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
  const text = `[storage]\ndata_path = ${JSON.stringify(directory)}`;
  const { config } = parseConfig(text, "config.toml", {});
  const database = await openDatabase(config, {
    disk: bunDisk,
    clock: systemClock,
    random: systemRandom,
    log: silentLog,
    jwtSecret: () => systemRandom.bytes(32),
    version: "0.0.0",
    onFatal: (cause) => {
      throw new Error("Cannot measure: the log failed", { cause });
    },
  });
  const run = async (sql: string): Promise<void> => {
    const { error } = await database.sql.execute(PRINCIPAL, { sql, params: [] });
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
