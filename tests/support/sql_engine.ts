/**
 * Runs the SQL engine in-process, over a real catalog and store in a temporary directory, with a
 * clock that the test controls.
 */
import { existsSync, mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Principal } from "../../src/auth/mod.ts";
import type { Clock } from "../../src/base/clock.ts";
import type { Disk } from "../../src/base/disk.ts";
import type { Log } from "../../src/base/log.ts";
import type { Database } from "../../src/database.ts";
import type { SqlParameter, SqlRequest, SqlResponse, StatementResult } from "../../src/sql/mod.ts";
import { openAt, SMALL_FILES } from "./database.ts";
import type { HeldReaders } from "./held_readers.ts";
import { ManualClock } from "./manual_clock.ts";
import { principalFor } from "./principal_for.ts";
import { withArrayTexts } from "./slt_arrays.ts";
import { sparseDisk } from "./sparse_disk.ts";

export interface EngineOptions {
  /** Additional configuration lines. */
  readonly config?: string;
  readonly clock?: Clock;
  readonly disk?: Disk;
  readonly log?: Log;
  /** Whether every query that readers can run goes to a reader on this thread. */
  readonly readsElsewhere?: boolean;
  /** Whether every query that can be divided is divided among three readers on this thread. */
  readonly divides?: boolean;
  /**
   * Whether long queries are read in threads, as in a server. The clock should then be the
   * system's.
   */
  readonly inThreads?: boolean;
  /**
   * Whether readers get statements immediately, before these turn out to be long. Defaults to
   * true.
   */
  readonly takesAll?: boolean;
  /**
   * Controls the readers on this thread: a test can hold them up, make them fail, or refuse to
   * open them.
   */
  readonly heldReaders?: HeldReaders;
}

export type RequestParts = Partial<Omit<SqlRequest, "sql" | "params">> & {
  /**
   * The parameters as plain values. Numbers are sent with the digits that JavaScript prints for
   * them.
   */
  readonly params?: readonly (null | boolean | string | number)[];
};

export class TestEngine implements AsyncDisposable {
  #database: Database;
  readonly #directory: string;
  readonly #open: () => Promise<Database>;
  /** The user who sends the requests from now on. */
  userId = "root";

  private constructor(
    database: Database,
    { directory, open }: { directory: string; open: () => Promise<Database> },
  ) {
    this.#database = database;
    this.#directory = directory;
    this.#open = open;
  }

  get database(): Database {
    return this.#database;
  }

  get dataPath(): string {
    return this.#directory;
  }

  /** Closes the database and opens it again. The contents of memory are restored from the log. */
  async restart(): Promise<void> {
    await this.#database.close();
    await this.reopen();
  }

  /** Opens the database again after a test has closed it. */
  async reopen(): Promise<void> {
    this.#database = await this.#open();
  }

  static async open({
    clock = new ManualClock(),
    config = "",
    disk = sparseDisk,
    ...options
  }: EngineOptions = {}): Promise<TestEngine> {
    const directory = mkdtempSync(join(tmpdir(), "tidemark-"));
    const open = (): Promise<Database> =>
      openAt(directory, { clock, disk, config: `${SMALL_FILES}\n${config}`, ...options });
    return new TestEngine(await open(), { directory, open });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.database.close();
    rmSync(this.#directory, { recursive: true });
  }

  /** Returns the paths of uploaded files, relative to the folder for files. */
  storedFiles(): readonly string[] {
    const root = join(this.#directory, "files");
    if (!existsSync(root)) return [];
    const entries = readdirSync(root, { recursive: true, withFileTypes: true });
    return entries
      .flatMap((entry) => (entry.isFile() ? [join(entry.parentPath, entry.name)] : []))
      .toSorted();
  }

  get principal(): Principal {
    return principalFor(this.database, this.userId);
  }

  async ask(sql: string, { params = [], ...parts }: RequestParts = {}): Promise<SqlResponse> {
    const request = { sql, params: params.map(parameterFrom), ...parts };
    return await this.database.sql.execute(this.principal, request);
  }

  /** Runs statements that must succeed. Returns their result entries. */
  async run(sql: string, parts: RequestParts = {}): Promise<readonly StatementResult[]> {
    const { error, results } = await this.ask(sql, parts);
    if (error !== undefined) throw new Error(`${error.code}: ${error.message}`, { cause: error });
    return results;
  }

  /** Runs statements that must succeed. Returns the rows of the last statement. */
  async rows(sql: string, parts: RequestParts = {}): Promise<readonly (readonly unknown[])[]> {
    return (await this.run(sql, parts)).at(-1)?.rows ?? [];
  }

  /** Returns the rows of the last statement, with arrays in PostgreSQL's form. */
  async printed(sql: string, parts: RequestParts = {}): Promise<readonly (readonly unknown[])[]> {
    const { rows = [], schema = [] } = (await this.run(sql, parts)).at(-1) ?? {};
    return withArrayTexts(rows, schema);
  }

  /**
   * Runs statements that must fail. Returns the error code, the number of the failed statement,
   * counted from 1, and the position of the error.
   */
  async failure(sql: string, parts: RequestParts = {}): Promise<string> {
    const { error, results } = await this.ask(sql, parts);
    if (error === undefined) return `succeeded with ${JSON.stringify(results)}`;
    const { code, position, statementIndex = -1 } = error;
    return `${code}@${statementIndex + 1}${position === undefined ? "" : `:${position}`}`;
  }
}

function parameterFrom(value: null | boolean | string | number): SqlParameter {
  return typeof value === "number" && !Number.isSafeInteger(value)
    ? { number: String(value) }
    : value;
}
