/**
 * Runs the reader campaign once: the load, the failures of readers, and the check of the server
 * afterwards.
 */
import {
  existsSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type Chance, chanceFromSeed } from "../../../scripts/support/chance.ts";
import { mebibytes, residentBytes } from "../../../scripts/support/memory.ts";
import { type ServerProcess, startReadyServer } from "../../support/server_process.ts";
import { FAULT_KINDS, type FaultKind, type ReaderFault } from "./fault_point.ts";
import { bundleWithReaderFaults, STAGE_NAMES } from "./faults.ts";
import { type ProvingQuery, QUERIES } from "./queries.ts";

const WORKERS = 2;
/**
 * The memory limit per row. It lets the ranks of all rows fit into memory, while their sort keys
 * are spilled to temporary files.
 */
const BUDGET_BYTES_PER_ROW = 700;

/**
 * The number of bytes by which the process may have grown once it is idle again. Heaps keep some
 * of their memory.
 */
const MEMORY_BYTES_MAX = 400 * 2 ** 20;
const THREADS_MORE_MAX = 6;

/** The time, in milliseconds, after which a statement counts as hung. */
const STATEMENT_MS_MAX = 60_000;
const QUIET_MS_MAX = 20_000;
const FAULT_PAUSE_MS = 150;

/** The maximum number of rows that fit into the memory of a single statement. */
const ROWS_PER_INSERT = 100_000;

export interface ReadersOptions {
  readonly seconds: number;
  readonly seed: number;
  readonly rowCount: number;
  readonly injected: string | undefined;
}

export interface ReadersReport {
  readonly answered: number;
  /** How many statements failed because of a reader. */
  readonly failed: number;
  readonly written: number;
  readonly faults: ReadonlyMap<FaultKind, number>;
  readonly findings: readonly string[];
}

export async function failReaders(options: ReadersOptions): Promise<ReadersReport> {
  const directory = mkdtempSync(join(tmpdir(), "tidemark-readers-"));
  const control = join(directory, "fault.json");
  try {
    await using server = await startReadyServer({
      env: { READER_FAULT: control },
      command: await bundleWithReaderFaults(join(directory, "program"), options.injected),
      config: {
        server: { workers: WORKERS },
        performance: {
          query_memory_bytes: options.rowCount * BUDGET_BYTES_PER_ROW,
          request_timeout: 20,
        },
      },
    });
    return await new Campaign(server, { ...options, control }).run();
  } finally {
    rmSync(directory, { recursive: true });
  }
}

class Campaign {
  readonly #server: ServerProcess;
  readonly #options: ReadersOptions & { readonly control: string };
  readonly #faults = new Map<FaultKind, number>();
  readonly #findings = new Set<string>();
  readonly #acknowledged: number[] = [];
  #answered = 0;
  #failed = 0;
  #written = 0;
  #isOver = false;

  constructor(server: ServerProcess, options: ReadersOptions & { readonly control: string }) {
    this.#server = server;
    this.#options = options;
  }

  async run(): Promise<ReadersReport> {
    const { rowCount, seconds, seed } = this.#options;
    const server = this.#server;
    await server.rows(
      "CREATE NAMESPACE r; CREATE SHARED TABLE r.t (id INT PRIMARY KEY, a INT, b INT, s TEXT);" +
        "CREATE SHARED TABLE r.log (id INT PRIMARY KEY)",
    );
    for (let first = 1; first <= rowCount; first += ROWS_PER_INSERT) {
      const last = Math.min(rowCount, first + ROWS_PER_INSERT - 1);
      await server.rows(
        `INSERT INTO r.t SELECT g, 0, 0, 'text ' || g FROM generate_series(${first}, ${last}) x(g)`,
        { fields: { timeout_ms: 120_000 } },
      );
    }
    await this.#proveAll();
    await Promise.all([this.#proveAll(), this.#proveAll()]);
    const before = { bytes: residentBytes(server.pid), threads: threadsOf(server.pid) };
    const clients = [
      ...[1, 2, 3].map((number) => this.#read(chanceFromSeed(seed + number))),
      ...[1, 2].map((number) => this.#write(number, chanceFromSeed(seed - number))),
      this.#fail(chanceFromSeed(seed)),
    ];
    await Bun.sleep(seconds * 1000);
    this.#isOver = true;
    await Promise.all(clients);
    rmSync(this.#options.control, { force: true });
    if (server.condition === "running") {
      await this.#lookAtRest(before).catch((error: unknown) =>
        this.#hold(`at rest: ${String(error)}`),
      );
    } else {
      this.#hold(`the server ${server.condition}: ${server.output.slice(-2000)}`);
    }
    return {
      answered: this.#answered,
      failed: this.#failed,
      written: this.#written,
      faults: this.#faults,
      findings: [...this.#findings],
    };
  }

  #hold(finding: string): void {
    if (this.#findings.size < 20) this.#findings.add(finding);
  }

  get #faultCount(): number {
    return [...this.#faults.values()].reduce((sum, count) => sum + count, 0);
  }

  async #read(chance: Chance): Promise<void> {
    while (!this.#isOver) await this.#prove(chance.pick(QUERIES));
  }

  async #proveAll(): Promise<void> {
    for (const query of QUERIES) await this.#prove(query);
  }

  async #prove(query: ProvingQuery): Promise<void> {
    const { isTooMuch = false, sql, timeoutMs } = query;
    const fields = timeoutMs === undefined ? {} : { timeout_ms: timeoutMs };
    const answer = await this.#ask(sql, fields);
    if (answer === undefined) return;
    const { error, results } = answer;
    if (error === undefined) {
      const wrong = query.contradiction(
        results.findLast(({ rows }) => rows !== undefined)?.rows ?? [],
      );
      if (wrong === undefined) this.#answered += 1;
      else this.#hold(`wrong: ${sql}: ${wrong}`);
      return;
    }
    if (timeoutMs !== undefined && error.code === "QUERY_TIMEOUT") this.#answered += 1;
    else if (isTooMuch && error.reason === "memory") this.#answered += 1;
    else this.#noteFailure(sql, error);
  }

  /** Counts a failed statement. A failed reader may cause at most one failed statement. */
  #noteFailure(sql: string, { code, message }: { code: string; message: string }): void {
    this.#failed += 1;
    const isOfReader = code === "INTERNAL_ERROR" || code === "QUERY_TIMEOUT";
    if (!isOfReader) this.#hold(`refused with ${code} "${message}": ${sql}`);
    else if (this.#failed > this.#faultCount) {
      this.#hold(`${this.#failed} statements failed by ${this.#faultCount} readers: ${sql}`);
    }
  }

  async #ask(
    sql: string,
    fields: Readonly<Record<string, unknown>> = {},
  ): Promise<Awaited<ReturnType<ServerProcess["sql"]>>["body"] | undefined> {
    const late = Promise.withResolvers<undefined>();
    const timer = setTimeout(() => {
      this.#hold(`no answer in ${STATEMENT_MS_MAX / 1000} s: ${sql}`);
      late.resolve(undefined);
    }, STATEMENT_MS_MAX);
    try {
      return await Promise.race([
        this.#server.sql(sql, { fields }).then(({ body }) => body),
        late.promise,
      ]);
    } catch (error) {
      this.#hold(`no answer to ${sql}: ${String(error)}`);
      this.#isOver = true;
      return undefined;
    } finally {
      clearTimeout(timer);
    }
  }

  async #write(number: number, chance: Chance): Promise<void> {
    const { rowCount } = this.#options;
    for (let count = 0; !this.#isOver; count += 1) {
      const id = number * 10_000_000 + count;
      const [from, to] = [chance.below(rowCount), chance.below(rowCount)];
      const sql =
        `BEGIN; INSERT INTO r.log VALUES (${id}); UPDATE r.t SET a = a + 1 WHERE id = ${from + 1};` +
        `UPDATE r.t SET b = b + 1 WHERE id = ${to + 1}; COMMIT`;
      const answer = await this.#ask(sql);
      if (answer?.error === undefined) {
        this.#acknowledged.push(id);
        this.#written += 1;
      } else if (answer.error.reason !== "conflict") {
        // On a busy machine, the statements of a transaction may take longer than a tick and move
        // to a reader.
        this.#noteFailure(sql, answer.error);
      }
      if (number === 1 && count % 40 === 39) await this.#ask("STORAGE FLUSH TABLE r.t");
      if (number === 2 && count % 80 === 79) await this.#ask("STORAGE COMPACT TABLE r.t");
      // The pause leaves some processor time for the readers.
      await Bun.sleep(20);
    }
  }

  async #fail(chance: Chance): Promise<void> {
    const { control } = this.#options;
    while (!this.#isOver) {
      const kind = chance.pick(FAULT_KINDS);
      const fault: ReaderFault = { stage: chance.pick(STAGE_NAMES), kind };
      this.#faults.set(kind, (this.#faults.get(kind) ?? 0) + 1);
      writeFileSync(`${control}.new`, JSON.stringify(fault));
      renameSync(`${control}.new`, control);
      // Only a reader that has just started plans a statement anew, so a stage of planning may be
      // reached late.
      for (let wait = 0; wait < 10 && existsSync(control) && !this.#isOver; wait += 1) {
        await Bun.sleep(FAULT_PAUSE_MS);
      }
      await Bun.sleep(chance.below(2 * FAULT_PAUSE_MS));
    }
  }

  async #lookAtRest(before: { readonly bytes: number; readonly threads: number }): Promise<void> {
    const server = this.#server;
    await this.#untilQuiet("a statement is listed, or a reader is busy", async () => {
      const [[listed] = []] = await server.rows(
        "SELECT count(*) FROM system.queries WHERE sql NOT LIKE '%system.%'",
      );
      return listed === 0 && (await server.metric("tidemark_readers_busy")) === 0;
    });
    const failedBefore = this.#failed;
    await this.#proveAll();
    if (this.#failed > failedBefore) this.#hold("a query fails although no reader does");
    const queries = await server.metric("tidemark_queries_in_readers_total");
    const waited = await server.metric("tidemark_statements_waited_total");
    await Promise.all([this.#prove(QUERIES[6] ?? never()), this.#prove(QUERIES[6] ?? never())]);
    const begun = (await server.metric("tidemark_queries_in_readers_total")) - queries;
    const late = (await server.metric("tidemark_statements_waited_total")) - waited;
    if (begun < 2 || late > 0) this.#hold(`of ${WORKERS} readers ${2 - late} can be used`);
    await this.#lookForWrites();
    await this.#lookForFiles();
    await this.#untilQuiet("too many threads are left", async () => {
      return threadsOf(server.pid) <= before.threads + THREADS_MORE_MAX;
    });
    await this.#untilQuiet("too much memory is still in use", async () => {
      return residentBytes(server.pid) <= before.bytes + MEMORY_BYTES_MAX;
    });
    process.stdout.write(
      `memory ${mebibytes(before.bytes)} → ${mebibytes(residentBytes(server.pid))} MiB, ` +
        `threads ${before.threads} → ${threadsOf(server.pid)}\n`,
    );
  }

  async #lookForWrites(): Promise<void> {
    const rows = await this.#server.rows("SELECT id FROM r.log");
    const there = new Set(rows.map(([id]) => Number(id)));
    const lost = this.#acknowledged.filter((id) => !there.has(id));
    if (lost.length > 0) this.#hold(`${lost.length} acknowledged writes are gone`);
    const [[sum] = []] = await this.#server.rows("SELECT sum(a) FROM r.t");
    if (Number(sum) < this.#written) this.#hold(`${String(sum)} of ${this.#written} updates`);
  }

  async #lookForFiles(): Promise<void> {
    const server = this.#server;
    await server.rows("STORAGE FLUSH TABLE r.t; STORAGE COMPACT TABLE r.t");
    const [[tableId] = []] = await server.rows(
      "SELECT table_id FROM system.tables WHERE table_name = 't' AND namespace_id = 'r'",
    );
    const folder = `segments/${String(tableId)}`;
    await this.#untilQuiet("files of replaced segments are left", async () => {
      const listed = await server.rows(
        "SELECT segment_id FROM system.segments WHERE namespace_id = 'r' AND table_name = 't'",
      );
      const names = listed.map(([segmentId]) => `${String(segmentId)}.seg`);
      const there = readdirSync(join(server.dataPath, folder)).filter((name) =>
        name.endsWith(".seg"),
      );
      const mapped = readFileSync(`/proc/${server.pid}/maps`, "utf8").split("\n");
      return (
        there.every((name) => names.includes(name)) &&
        mapped.every(
          (line) =>
            !line.includes(`/${folder}/`) ||
            names.some((name) => line.includes(`/${folder}/${name}`)),
        )
      );
    });
    await this.#untilQuiet("temporary files are left", async () => {
      return readdirSync(join(server.dataPath, "tmp")).length === 0;
    });
  }

  async #untilQuiet(otherwise: string, isQuiet: () => Promise<boolean>): Promise<void> {
    const endMs = performance.now() + QUIET_MS_MAX;
    while (!(await isQuiet())) {
      if (performance.now() > endMs)
        return this.#hold(`not in ${QUIET_MS_MAX / 1000} s: ${otherwise}`);
      await Bun.sleep(100);
    }
  }
}

function threadsOf(pid: number): number {
  return readdirSync(`/proc/${pid}/task`).length;
}

function never(): never {
  throw new Error("The list of queries is shorter than it was");
}
