/**
 * The cases of `cases/*.slt`, which `scripts/write_cases.ts` writes: each file in order on a
 * database of its own, in this process. A refusal must have the condition that the case names.
 */
import { expect, test } from "bun:test";
import { readdirSync } from "node:fs";
import { join } from "node:path";
import { runSlt, type SltAnswer } from "../support/slt.ts";
import { HIDDEN_COLUMNS } from "../support/slt_tables.ts";
import { TestEngine } from "../support/sql_engine.ts";

const DIRECTORY: string = join(import.meta.dir, "cases");

async function answerOf(engine: TestEngine, sql: string): Promise<SltAnswer> {
  const { error, results } = await engine.ask(sql);
  if (error !== undefined) {
    const { condition, message } = error;
    const isUnsupported = condition === "UNSUPPORTED_FEATURE";
    return { ok: false, isUnsupported, message: `${condition}: ${message}`, condition };
  }
  const { rows = [], schema = [] } = results[0] ?? {};
  const names = schema.map(({ name }) => name);
  const shown = names.flatMap((column, i) => (HIDDEN_COLUMNS.has(column) ? [] : [i]));
  return { ok: true, names, rows: rows.map((row) => shown.map((i) => row[i])) };
}

for (const file of readdirSync(DIRECTORY).filter((name) => name.endsWith(".slt"))) {
  test(file, async () => {
    await using engine = await TestEngine.open();
    const text = await Bun.file(join(DIRECTORY, file)).text();
    const execute = (sql: string): Promise<SltAnswer> => answerOf(engine, sql);
    const report = await runSlt(text, { execute, engine: "tidemark", hasKeys: true });
    expect(report.failures.slice(0, 10)).toEqual([]);
    expect(report.waiting).toEqual([]);
    expect(report.passedCount).toBeGreaterThan(40);
  }, 60_000);
}
