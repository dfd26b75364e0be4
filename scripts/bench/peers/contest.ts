/**
 * Runs the same queries on several engines, compares each result with that of the first engine,
 * and prints median times in milliseconds. The last engine is Tidemark; its time is compared with
 * the others.
 */
import { median } from "../../support/statistics.ts";
import { differenceOf, type Rows } from "./answers.ts";
import type { Engine } from "./engines.ts";

export interface ContestQuery {
  readonly label: string;
  readonly sql: string;
  /** The SQL for engines that need a different wording of the query, keyed by engine name. */
  readonly wordings?: Readonly<Record<string, string>>;
}

/**
 * The kind of time to measure: wall-clock time, or the processor time of the engine's process,
 * which other work on the machine affects less.
 */
export type Clock = "wall" | "processor";

interface ContestOptions {
  /** How many times each query runs. */
  readonly runs: number;
  readonly clock: Clock;
}

interface Measured {
  readonly ms: number;
  readonly rows: Rows;
}

/**
 * Runs all queries on all engines, and prints the times. Returns true if every result was correct.
 */
export async function runContest(
  engines: readonly Engine[],
  queries: readonly ContestQuery[],
  options: ContestOptions,
): Promise<boolean> {
  const ratioNames = engines.slice(0, -1).map(({ name }) => `/ ${name}`);
  printLine("query", [...engines.map(({ name }) => `${name} ms`), ...ratioNames]);
  const totals = engines.map(() => 0);
  let failureCount = 0;
  for (const query of queries) {
    const measured = await measureAll(engines, query, options);
    const failures = failuresOf(engines, measured);
    for (const failure of failures) process.stdout.write(`query ${query.label}: ${failure}\n`);
    failureCount += failures.length;
    const times = measured.map((one) => (one instanceof Error ? Number.NaN : one.ms));
    for (const [index, ms] of times.entries()) totals[index] = (totals[index] ?? 0) + ms;
    printTimes(query.label, times);
  }
  printTimes("total", totals);
  return failureCount === 0;
}

/** Measures the engines alternately, once per round, so that a disturbance affects all of them. */
async function measureAll(
  engines: readonly Engine[],
  { sql, wordings }: ContestQuery,
  { clock, runs }: ContestOptions,
): Promise<(Measured | Error)[]> {
  const times: number[][] = engines.map(() => []);
  const results: (Rows | Error)[] = engines.map(() => []);
  for (let run = 0; run < runs; run += 1) {
    for (const [index, engine] of engines.entries()) {
      if (results[index] instanceof Error) continue;
      const text = wordings?.[engine.name] ?? sql;
      const startMs = nowOf(engine, clock);
      try {
        results[index] = await engine.answer(text);
      } catch (error) {
        results[index] = error instanceof Error ? error : new Error(String(error));
      }
      times[index]?.push(nowOf(engine, clock) - startMs);
    }
  }
  return results.map((rows, index) => {
    return rows instanceof Error ? rows : { rows, ms: median(times[index] ?? []) };
  });
}

function nowOf(engine: Engine, clock: Clock): number {
  return clock === "wall" ? performance.now() : (engine.processorMs() ?? Number.NaN);
}

function failuresOf(engines: readonly Engine[], measured: readonly (Measured | Error)[]): string[] {
  const [expected] = measured;
  return measured.flatMap((one, index) => {
    const name = engines[index]?.name ?? "";
    if (one instanceof Error) return [`${name} failed: ${one.message}`];
    if (expected === undefined || expected instanceof Error || index === 0) return [];
    const difference = differenceOf(expected.rows, one.rows);
    return difference === undefined ? [] : [`${name} is wrong: ${difference}`];
  });
}

function printTimes(label: string, times: readonly number[]): void {
  const own = times.at(-1) ?? Number.NaN;
  const ratios = times.slice(0, -1).map((ms) => (own / ms).toFixed(2));
  printLine(label, [...times.map((ms) => ms.toFixed(1)), ...ratios]);
}

function printLine(label: string, cells: readonly string[]): void {
  process.stdout.write(`${label.padEnd(6)}${cells.map((cell) => cell.padStart(15)).join("")}\n`);
}
