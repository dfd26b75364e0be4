/**
 * Runs the 22 queries of TPC-H on Tidemark, DuckDB and PostgreSQL, and compares answers and times.
 *
 *     bun scripts/tpch.ts [--sf 0.1] [--seed 1] [--only 1,6,14] [--runs 3] [--without-postgres] [--keep]
 *
 * The data is made from the seed by the distributions of the specification. Tidemark is the real
 * server, loaded by INSERT, flushed and restarted; its time includes HTTP and JSON. DuckDB runs in
 * this process on one thread, PostgreSQL as installed, with indexes on foreign keys and ANALYZE.
 * Printed are medians of `--runs` in milliseconds, engine after engine for each query, so that noise
 * meets all alike. `--sf 0.01` is quick. `--keep` leaves Tidemark's directory behind.
 *
 * Ends with 1 when an answer is not DuckDB's or a query is refused.
 */
import { readOptions } from "./support/arguments.ts";
import { differenceOf, type Rows } from "./tpch/answers.ts";
import { type Engine, openDuckDb, openPostgres, openTidemark, writeFiles } from "./tpch/engines.ts";
import { queriesAt } from "./tpch/queries.ts";

interface Measured {
  readonly ms: number;
  readonly rows: Rows;
}

const options = readOptions(["sf", "seed", "only", "runs"], ["without-postgres", "keep"]);
const scale = Number(options.text("sf") ?? "0.1");
// With fewer suppliers the four of a part need not be different ones.
if (scale !== 0.01 && !(scale >= 0.025 && scale <= 10)) {
  process.stderr.write(`Cannot read --sf "${options.text("sf")}": give 0.01, or 0.025 to 10\n`);
  process.exit(2);
}
const runs = Math.max(1, options.count("runs", 3));
const chosen = chosenQueries();
const startedMs = Date.now();
const engines: Engine[] = [];
try {
  process.exitCode = (await runAll()) ? 0 : 1;
} finally {
  for (const engine of engines) await engine.stop();
}
process.exit();

function chosenQueries(): readonly (readonly [number, string])[] {
  const all = [...queriesAt(scale)];
  const only = options.text("only");
  if (only === undefined) return all;
  const numbers = only.split(",").map(Number);
  const unknown = numbers.find((number) => !all.some(([known]) => known === number));
  if (unknown !== undefined) {
    process.stderr.write(`Cannot read --only "${only}": queries are numbered 1 to 22\n`);
    process.exit(2);
  }
  return all.filter(([number]) => numbers.includes(number));
}

function progress(text: string): void {
  process.stderr.write(`${((Date.now() - startedMs) / 1000).toFixed(1).padStart(6)} s  ${text}\n`);
}

/** Returns whether every answer was right. */
async function runAll(): Promise<boolean> {
  const files = await writeFiles(scale, options.count("seed", 1));
  progress(`made ${files.rowCount} rows at scale factor ${scale}`);
  engines.push(await openDuckDb(files));
  progress("DuckDB is loaded");
  if (!options.has("without-postgres")) {
    engines.push(await openPostgres(files));
    progress("PostgreSQL is loaded");
  }
  engines.push(await openTidemark(files, { isKept: options.has("keep"), onProgress: progress }));
  files.remove();

  printLine("query", [...engines.map(({ name }) => `${name} ms`), ...ratioNames()]);
  const totals = engines.map(() => 0);
  let failureCount = 0;
  for (const [number, sql] of chosen) {
    const measured = await measureAll(sql);
    const failures = failuresOf(measured);
    for (const failure of failures) process.stdout.write(`query ${number}: ${failure}\n`);
    failureCount += failures.length;
    const times = measured.map((one) => (one instanceof Error ? Number.NaN : one.ms));
    for (const [index, ms] of times.entries()) totals[index] = (totals[index] ?? 0) + ms;
    printTimes(String(number), times);
  }
  printTimes("total", totals);
  return failureCount === 0;
}

/** Each engine in turn, as often as asked: what disturbs one run then disturbs all engines. */
async function measureAll(sql: string): Promise<(Measured | Error)[]> {
  const times: number[][] = engines.map(() => []);
  const results: (Rows | Error)[] = engines.map(() => []);
  for (let run = 0; run < runs; run += 1) {
    for (const [index, engine] of engines.entries()) {
      if (results[index] instanceof Error) continue;
      const startMs = performance.now();
      try {
        results[index] = await engine.answer(sql);
      } catch (error) {
        results[index] = error instanceof Error ? error : new Error(String(error));
      }
      times[index]?.push(performance.now() - startMs);
    }
  }
  return results.map((rows, index) => {
    return rows instanceof Error ? rows : { rows, ms: medianOf(times[index] ?? []) };
  });
}

function failuresOf(measured: readonly (Measured | Error)[]): string[] {
  const [expected] = measured;
  return measured.flatMap((one, index) => {
    const name = engines[index]?.name ?? "";
    if (one instanceof Error) return [`${name} failed: ${one.message}`];
    if (expected === undefined || expected instanceof Error || index === 0) return [];
    const difference = differenceOf(expected.rows, one.rows);
    return difference === undefined ? [] : [`${name} is wrong: ${difference}`];
  });
}

function medianOf(times: readonly number[]): number {
  const sorted = times.toSorted((a, b) => a - b);
  return sorted[Math.floor(sorted.length / 2)] ?? Number.NaN;
}

function ratioNames(): string[] {
  return engines.slice(0, -1).map(({ name }) => `/ ${name}`);
}

function printTimes(label: string, times: readonly number[]): void {
  const own = times.at(-1) ?? Number.NaN;
  const ratios = times.slice(0, -1).map((ms) => (own / ms).toFixed(2));
  printLine(label, [...times.map((ms) => ms.toFixed(1)), ...ratios]);
}

function printLine(label: string, cells: readonly string[]): void {
  process.stdout.write(`${label.padEnd(6)}${cells.map((cell) => cell.padStart(15)).join("")}\n`);
}
