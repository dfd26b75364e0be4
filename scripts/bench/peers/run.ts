/**
 * Compares engines: generates the data, loads it into one engine after another, and runs the
 * queries on all of them. All engines are stopped at the end, even after a failure.
 */
import { type Clock, type ContestQuery, runContest } from "./contest.ts";
import {
  type Engine,
  type Files,
  type MadeRow,
  openDuckDb,
  openPostgres,
  openSqlite,
  openTidemark,
  type TableShape,
  writeFiles,
} from "./engines.ts";

/** The command-line option that leaves an engine out. */
type WithoutOption = "without-sqlite" | "without-postgres";

interface OtherEngine {
  readonly option: WithoutOption;
  readonly name: string;
  readonly open: (files: Files) => Promise<Engine>;
}

/** The optional engines, in the order of their columns in the printed table. */
const OTHERS: readonly OtherEngine[] = [
  { option: "without-sqlite", name: "SQLite", open: openSqlite },
  { option: "without-postgres", name: "PostgreSQL", open: openPostgres },
];

export interface PeerRun {
  readonly tables: readonly TableShape[];
  readonly rows: Iterable<MadeRow> | AsyncIterable<MadeRow>;
  readonly queries: readonly ContestQuery[];
  /** How many times each query runs. */
  readonly runs: number;
  readonly clock?: Clock;
  readonly isLeftOut: (option: WithoutOption) => boolean;
  /** Whether to keep Tidemark's data directory after the run. */
  readonly isKept: boolean;
}

/**
 * Runs the comparison and ends the process. The exit code is 1 if a query is refused or its result
 * differs from DuckDB's.
 */
export async function runPeers(run: PeerRun): Promise<never> {
  const engines: Engine[] = [];
  try {
    process.exitCode = (await runAll(run, engines)) ? 0 : 1;
  } finally {
    for (const engine of engines) await engine.stop();
  }
  process.exit();
}

/**
 * Returns the queries named by `--only`, or all queries without that option. Ends the process with
 * exit code 2 if a name is unknown.
 */
export function chosenQueries(
  all: readonly ContestQuery[],
  only: string | undefined,
): readonly ContestQuery[] {
  if (only === undefined) return all;
  const labels = new Set(only.split(","));
  const chosen = all.filter(({ label }) => labels.has(label));
  if (chosen.length === labels.size) return chosen;
  process.stderr.write(`Cannot read --only "${only}": queries are numbered 1 to ${all.length}\n`);
  process.exit(2);
}

async function runAll(
  { clock = "wall", isKept, isLeftOut, queries, rows, runs, tables }: PeerRun,
  engines: Engine[],
): Promise<boolean> {
  const startedMs = Date.now();
  const onProgress = (text: string): void => {
    const seconds = ((Date.now() - startedMs) / 1000).toFixed(1);
    process.stderr.write(`${seconds.padStart(6)} s  ${text}\n`);
  };
  const files: Files = await writeFiles(tables, rows);
  onProgress(`made ${files.rowCount} rows`);
  engines.push(await openDuckDb(files));
  onProgress("DuckDB is loaded");
  for (const { name, open, option } of OTHERS) {
    if (isLeftOut(option)) continue;
    engines.push(await open(files));
    onProgress(`${name} is loaded`);
  }
  engines.push(await openTidemark(files, { isKept, onProgress }));
  files.remove();
  return runContest(engines, queries, { runs, clock });
}
