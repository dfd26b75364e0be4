/**
 * Lists the project's tasks, which are the scripts that people start, by kind. `bun task` prints
 * the list.
 */
import { join } from "node:path";

export const ROOT: string = join(import.meta.dir, "../..");

/** The kinds of tasks, in the order in which `bun task` lists them. */
export const KINDS = ["build", "check", "test", "campaign", "benchmark", "tool"] as const;

export type Kind = (typeof KINDS)[number];

export interface Task {
  readonly name: string;
  readonly kind: Kind;
  /** The path of the task's script, relative to the root of the project. */
  readonly file: string;
  /** A one-line description of the task. */
  readonly about: string;
}

export const TASKS: readonly Task[] = [
  ...inFolder("build", "scripts", {
    build: "compiles the server into a single file per platform",
    build_ui: "builds the admin page into one file",
    release: "writes the files of a release",
    write_cases: "rewrites tests/sql/cases from the results of PostgreSQL",
    write_client_types: "writes the types that the server delivers with its client",
    write_golden: "writes a data directory in the current formats, for permanent use in tests",
    write_reference: "writes docs/reference from the code",
  }),
  ...inFolder("check", "scripts", {
    check: "runs all checks of the sources, and then the tests",
    format: "formats the sources",
  }),
  ...inFolder("check", "scripts/check", {
    language: "checks that comments, documents and messages consist of whole sentences",
    layers: "checks that imports point down",
    links: "checks that links in the documents are valid",
    paths: "checks that files and folders named in the documents exist",
    tidy: "checks that each file has a header and contains nothing unfinished",
  }),
  ...inFolder("test", "scripts", {
    coverage: "prints how much of a folder its tests cover",
    slt: "runs files of SQL cases against a server",
    test: "runs the tests, and lists the skipped ones",
  }),
  ...inFolder("campaign", "tests/campaigns", {
    abuse: "attacks the server with hostile sockets while an ordinary client works",
    check_live: "follows changes through disconnects and restarts, and checks that none is missed",
    check_topics: "consumes topics through crashes, and checks that no effect is applied twice",
    account_times: "checks that response times do not reveal which accounts exist",
    crash_states: "opens the states that power losses leave on a simulated disk",
    exhaustion: "sends statements that try to exhaust the server's resources",
    fuzz_live: "follows random materialised queries, and compares each state with the SELECT",
    fuzz_laws: "asks each question in two ways, and compares the results",
    play_sql: "plays psql scripts here and on PostgreSQL, and counts equal results",
    fuzz_sql: "sends random statements to Tidemark and PostgreSQL, and compares the results",
    isolation: "tries to read other users' rows with random statements",
    readers: "makes reader threads fail while clients read and write",
    simulate_live: "checks every change that subscribers receive in simulations",
    torture: "kills the server under load, and compares its data with the acknowledged writes",
  }),
  {
    name: "bench",
    kind: "benchmark",
    file: "scripts/bench/compare.ts",
    about: "compares the speed with PostgreSQL, SQLite, Redis and DuckDB",
  },
  ...inFolder("benchmark", "scripts/bench", {
    fairness: "measures how a demanding statement affects others",
    idle_memory: "measures the memory of an idle subscription",
    index_build: "builds indexes over 10,000,000 rows, and compares the processor time with DuckDB",
    profile: "shows which functions the server spends processor time on",
    queue: "measures whether history slows down reads, deletes and startup",
    scale: "measures whether memory, startup and reads grow with the rows on disk",
    soak: "measures memory and failures under ordinary load, for a long time",
    topics:
      "measures how much topics slow down writers, and how fast a single consumer is, compared " +
      "with Redis",
    tpcds: "runs the 99 queries of TPC-DS, and compares the processor time with DuckDB",
    tpch: "runs the 22 queries of TPC-H, compared with DuckDB and PostgreSQL",
    web_analytics: "runs 43 queries about page views, compared with DuckDB, SQLite and PostgreSQL",
  }),
  ...inFolder("tool", "scripts", {
    demo: "shows what Tidemark does on a running server",
    dump_segment: "prints a segment file or a deletion vector",
    dump_wal: "prints the frames of log files",
  }),
];

function inFolder(kind: Kind, folder: string, tasks: Readonly<Record<string, string>>): Task[] {
  return Object.entries(tasks).map(([name, about]) => {
    return { name, kind, file: `${folder}/${name}.ts`, about };
  });
}
