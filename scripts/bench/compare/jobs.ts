/**
 * Defines the jobs that run over the network. Each job measures all systems, round by round, and
 * computes the figures.
 */
import { join } from "node:path";
import { median } from "../../support/statistics.ts";
import type { MeasuredSystem } from "../systems/measured_system.ts";
import type { MeasuredSystems } from "../systems/start_systems.ts";
import type { LoadJob, LoadResult } from "./load.ts";

export interface JobOptions {
  systems: MeasuredSystems;
  roundCount: number;
  seconds: number;
}

/** A row of the printed table: one figure of one job, for every system. */
export interface Line {
  readonly job: string;
  readonly unit: string;
  /**
   * True if larger figures are better, as for a rate; false if smaller ones are better, as for a
   * duration.
   */
  readonly isRate: boolean;
  /** The median of each system, keyed by the system's name. */
  readonly values: Readonly<Record<string, number>>;
  /** The texts that replace missing values, such as "none in 90 s". */
  readonly notes?: Readonly<Record<string, string>>;
  readonly target?: Target | readonly Target[];
}

/**
 * A target for a figure: it must beat a peer by a factor, or stay within a fixed bound. A row of
 * the table may have several targets.
 */
export type Target =
  | { readonly peer: string; readonly factor: number }
  | { readonly atMost: number }
  | { readonly atLeast: number }
  | { readonly anyOf: readonly Target[] }
  | { readonly allOf: readonly Target[] };

const CLIENTS_MAX = 64;

/** The targets for inserts, keyed by the number of clients. */
const INSERT_TARGETS: ReadonlyMap<number, readonly Target[]> = new Map([
  [16, [{ peer: "PostgreSQL", factor: 1.4 }]],
  [
    CLIENTS_MAX,
    [
      { peer: "PostgreSQL", factor: 2.5 },
      { peer: "SQLite", factor: 0.8 },
    ],
  ],
]);

/** The number of initial rounds that are not counted. */
const WARM_ROUNDS = 3;

/**
 * The number of uncounted rounds of a load. Each round consists of a hundred statements, and the
 * engine compiles the code for a load after about a thousand statements.
 */
const WARM_LOADS = 12;

const LOAD_MS_MAX = 120_000;
const ITEM_COUNT = 100_000;

/** The next unused row id. No id is inserted twice within a run. */
let nextId = 1_000_000_000;

export function takeIds(count: number): number {
  nextId += count;
  return nextId - count;
}

export async function insertLines(options: JobOptions): Promise<Line[]> {
  const lines: Line[] = [];
  const inserting =
    (clientCount: number) =>
    (system: MeasuredSystem): LoadJob => ({
      kind: "insert",
      system,
      clientCount,
      seconds: options.seconds,
      id: takeIds(10_000_000),
    });
  await warm(options, inserting(CLIENTS_MAX));
  for (const clientCount of [1, 16, CLIENTS_MAX]) {
    const results = await measure(options, inserting(clientCount));
    const job = `durable single-row INSERT, ${clientCount} client${clientCount === 1 ? "" : "s"}`;
    lines.push({
      ...lineOf(results, { job, unit: "rows/s", isRate: true, figure: "rate" }),
      target: INSERT_TARGETS.get(clientCount) ?? [],
    });
    lines.push(lineOf(results, { job: `${job}: p99`, unit: "ms", isRate: false, figure: "p99" }));
  }
  return lines;
}

/**
 * Measures bulk inserts. The inserted rows then serve the jobs that read by key or read snapshots.
 */
export async function bulkLines(options: JobOptions): Promise<Line[]> {
  const loading = async (system: MeasuredSystem): Promise<LoadJob> => {
    await empty(options.systems, system);
    return { kind: "bulk", system, id: 1, rowCount: ITEM_COUNT, batchRows: 1000 };
  };
  await measure({ ...options, roundCount: WARM_LOADS }, loading);
  const results = await measure(options, loading);
  const job = "bulk INSERT of 100,000 rows, 1,000 a statement";
  const line = lineOf(results, { job, unit: "rows/s", isRate: true, figure: "rate" });
  return [{ ...line, target: { peer: "SQLite", factor: 1 } }];
}

export async function pointLines(options: JobOptions): Promise<Line[]> {
  const reading = (system: MeasuredSystem): LoadJob => ({
    kind: "point",
    system,
    clientCount: CLIENTS_MAX,
    seconds: options.seconds,
    id: ITEM_COUNT,
  });
  await warm(options, reading);
  const results = await measure(options, reading);
  const line = { job: "SELECT by key, 64 clients", unit: "reads/s", isRate: true, figure: "rate" };
  const target: Target[] = [
    { peer: "PostgreSQL", factor: 2 },
    { peer: "SQLite", factor: 0.75 },
  ];
  return [{ ...lineOf(results, line), target }];
}

export async function snapshotLines(options: JobOptions): Promise<Line[]> {
  await warm(options, snapshotOf);
  const results = await measure(options, snapshotOf);
  const job = "snapshot of 100,000 rows over WebSocket";
  return [
    lineOf(results, { job, unit: "rows/s", isRate: true, figure: "rate" }),
    {
      ...lineOf(results, { job: `${job}: bytes`, unit: "MB/s", isRate: true, figure: "megabytes" }),
      target: { peer: "SQLite", factor: 1 },
    },
  ];
}

function snapshotOf(system: MeasuredSystem): LoadJob {
  return { kind: "snapshot", system, rowCount: ITEM_COUNT };
}

export interface Measurement {
  readonly name: string;
  readonly result: LoadResult;
}

/**
 * Runs a job on every system before the counted rounds. A server with a just-in-time compiler
 * needs some ten thousand requests before its code is fully compiled, and until then serves half
 * as many requests per second. PostgreSQL and SQLite were compiled ahead of time.
 */
export async function warm(
  options: JobOptions,
  jobFor: (system: MeasuredSystem) => LoadJob | Promise<LoadJob>,
  all?: readonly MeasuredSystem[],
): Promise<void> {
  await measure({ ...options, roundCount: WARM_ROUNDS }, jobFor, all);
}

/** Measures the systems alternately, so that a slow minute of the machine affects all of them. */
export async function measure(
  { systems, roundCount }: JobOptions,
  jobFor: (system: MeasuredSystem) => LoadJob | Promise<LoadJob>,
  all: readonly MeasuredSystem[] = [systems.tidemark, ...systems.peers],
): Promise<Measurement[]> {
  const measurements: Measurement[] = [];
  for (let round = 0; round < roundCount; round += 1) {
    for (const system of all) {
      const job = await jobFor(system);
      measurements.push({ name: system.name, result: await runLoad(job) });
    }
  }
  return measurements;
}

export function lineOf(
  measurements: readonly Measurement[],
  { figure, ...line }: Omit<Line, "values"> & { figure: string },
): Line {
  const names = [...new Set(measurements.map(({ name }) => name))];
  const values = names.map((name) => {
    const own = measurements.filter((measurement) => measurement.name === name);
    const figures = own.map(({ result }) => result[figure] ?? Number.NaN);
    // For lost changes, the maximum counts rather than the median: a single round that lost
    // changes must show.
    return [name, figure === "lost" ? Math.max(...figures) : median(figures)];
  });
  return { ...line, values: Object.fromEntries(values) };
}

/** Runs the load generator in a separate process, for a limited time. */
export async function runLoad(job: LoadJob): Promise<LoadResult> {
  const child = Bun.spawn([process.execPath, join(import.meta.dir, "load.ts")], {
    stdin: new Blob([JSON.stringify(job)]),
    stdout: "pipe",
    stderr: "inherit",
  });
  const timer = setTimeout(() => child.kill("SIGKILL"), LOAD_MS_MAX);
  const [text, code] = await Promise.all([new Response(child.stdout).text(), child.exited]);
  clearTimeout(timer);
  if (code !== 0)
    throw new Error(`Cannot measure ${job.kind} at ${job.system.name}: ended ${code}`);
  return JSON.parse(text) as LoadResult;
}

async function empty({ server }: MeasuredSystems, system: MeasuredSystem): Promise<void> {
  if (system.isTidemark) {
    await server.rows(
      "DROP TABLE bench.items; CREATE TABLE bench.items " +
        "(id BIGINT PRIMARY KEY, usr TEXT, body TEXT, ts BIGINT)",
    );
    return;
  }
  const headers = { Authorization: `Bearer ${system.token}` };
  await fetch(`${system.url}/empty`, { method: "POST", headers });
}
