/**
 * The tasks of the project: every script that people start, by kind. `bun task` lists them.
 */
import { join } from "node:path";

export const ROOT: string = join(import.meta.dir, "../..");

/** The kinds of task, in the order of the list. */
export const KINDS = ["build", "check", "test", "campaign", "benchmark", "tool"] as const;

export type Kind = (typeof KINDS)[number];

export interface Task {
  readonly name: string;
  readonly kind: Kind;
  /** The script's path from the root of the project. */
  readonly file: string;
  /** One line for the list of tasks. */
  readonly about: string;
}

export const TASKS: readonly Task[] = [
  ...inFolder("build", "scripts", {
    build: "compiles the server to one file per platform",
    build_ui: "builds the admin page into one file",
    release: "writes the files of a release",
    write_cases: "writes tests/sql/cases again from the answers of PostgreSQL",
    write_client_types: "writes the types that the server delivers with its client",
    write_golden: "writes a data directory of the current formats, to be kept for ever",
    write_reference: "writes docs/reference from the code",
  }),
  ...inFolder("check", "scripts", {
    check: "runs every check of the text, then the tests",
    format: "lays out the sources",
  }),
  ...inFolder("check", "scripts/check", {
    language: "comments, documents and messages are whole sentences",
    layers: "imports point down",
    links: "links in the documents lead somewhere",
    paths: "files and folders that the documents name exist",
    tidy: "each file says why it exists and contains nothing unfinished",
  }),
  ...inFolder("test", "scripts", {
    coverage: "prints how much of a folder its tests run",
    slt: "runs files of SQL cases against a server",
    test: "runs the tests, and says what it skipped",
  }),
  ...inFolder("campaign", "tests/campaigns", {
    abuse: "treats the server as badly as sockets can, beside an ordinary client",
    check_live: "follows changes through disconnects and restarts, and misses none",
    check_topics: "works through topics beside crashes, and does nothing twice",
    account_times: "signs up by free and taken names, and compares the times of the answers",
    crash_states: "opens what losses of power at every step leave on a simulated disk",
    exhaustion: "sends statements that ask for more than the server has",
    fuzz_live: "follows random queries as a whole, and compares each state with the SELECT",
    fuzz_laws: "asks the same in two ways, and compares the answers",
    play_sql: "plays scripts for psql beside PostgreSQL, and counts the answers alike",
    fuzz_sql: "asks PostgreSQL the same random statements, and compares the answers",
    isolation: "tries to read the rows of other users with random statements",
    readers: "fails reader threads while clients read and write",
    simulate_live: "judges every change that subscribers get in simulated worlds",
    torture: "kills the server under load, and compares with what it acknowledged",
  }),
  {
    name: "bench",
    kind: "benchmark",
    file: "scripts/bench/compare.ts",
    about: "speed beside PostgreSQL, SQLite, Redis and DuckDB",
  },
  ...inFolder("benchmark", "scripts/bench", {
    fairness: "how a demanding statement affects others",
    idle_memory: "the memory of a quiet subscription",
    profile: "where the server spends processor time, by function",
    queue: "whether history slows down reads, deletes and starts",
    scale: "whether memory, start and reads grow with the rows on disk",
    soak: "memory and failures under ordinary load, for a long time",
    topics: "what topics cost writers, and how fast one consumer is, beside Redis",
    tpch: "the 22 queries of TPC-H beside DuckDB and PostgreSQL",
    web_analytics: "43 questions about page views beside DuckDB, SQLite and PostgreSQL",
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
