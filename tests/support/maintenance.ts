/**
 * Provides a data directory with every kind of file, as a killed server leaves it. Also runs the
 * two commands that check and repair such directories in-process.
 */
import { createHash } from "node:crypto";
import {
  cpSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { bunDisk } from "../../src/base/bun_disk.ts";
import { type Clock, systemClock } from "../../src/base/clock.ts";
import type { Disk, DiskFile } from "../../src/base/disk.ts";
import { DiskError } from "../../src/base/errors.ts";
import { systemRandom } from "../../src/base/random.ts";
import type { Database } from "../../src/database.ts";
import { runMaintenance } from "../../src/maintenance/mod.ts";
import type { SqlResponse } from "../../src/sql/mod.ts";
import { openAt } from "./database.ts";
import { ForwardingFile } from "./forwarding_disk.ts";
import { principalFor } from "./principal_for.ts";
import { ServerProcess, startReadyServer } from "./server_process.ts";

/** The configuration of the server, with the smallest log files, so that there are several. */
const CONFIG = {
  storage: { wal_segment_bytes: 1 << 20, flush_rows: 900_000 },
  limits: { max_row_bytes: 65536 },
};

/** The settings of `CONFIG` as configuration lines, for a database opened in-process. */
const DIRECTORY_CONFIG: string = [
  "storage.ballast_bytes = 0",
  `storage.wal_segment_bytes = ${CONFIG.storage.wal_segment_bytes}`,
  `storage.flush_rows = ${CONFIG.storage.flush_rows}`,
  `limits.max_row_bytes = ${CONFIG.limits.max_row_bytes}`,
].join("\n");

const directories: string[] = [];

/**
 * Removes all directories that a test file has created. Every test file that uses these
 * directories must call this in `afterAll`.
 */
export function removeDirectories(): void {
  for (const directory of directories.splice(0))
    rmSync(directory, { recursive: true, force: true });
}

export function freshDirectory(): string {
  const directory = mkdtempSync(join(tmpdir(), "tidemark-maintenance-"));
  directories.push(directory);
  return directory;
}

let killed: Promise<string> | undefined;

/**
 * Returns the path of a data directory that tests read and copy. The directory is created once,
 * and removed when this process ends. It has two tables of 300 rows each, `default.first` (id 1)
 * and `default.second` (id 2), whose chunks are packed. Each has two segments, the older of which
 * has a deletion vector, and rows in the log that replace rows of both segments. `default.logged`
 * (id 3) has 400 rows that exist only in three log files. `default.files` (id 4) names an uploaded
 * file.
 */
export function killedDirectory(): Promise<string> {
  killed ??= makeKilledDirectory();
  return killed;
}

async function makeKilledDirectory(): Promise<string> {
  await using server = await startReadyServer({ config: CONFIG });
  for (const table of ["default.first", "default.second"]) {
    const options = table === "default.second" ? " WITH (COMPRESSION = 'zstd')" : "";
    await server.rows(`CREATE SHARED TABLE ${table} (id INT PRIMARY KEY, v TEXT)${options}`);
    await server.rows(`INSERT INTO ${table} VALUES ${rowsText(0, 300, 20)}`);
    await server.rows(`STORAGE FLUSH TABLE ${table}`);
    await server.rows(`DELETE FROM ${table} WHERE id < 10`);
    await server.rows(`INSERT INTO ${table} VALUES ${rowsText(300, 310, 20)}`);
    await server.rows(`STORAGE FLUSH TABLE ${table}`);
    await server.rows(`UPDATE ${table} SET v = 'replaced' WHERE id IN (20, 300)`);
  }
  await server.rows("CREATE SHARED TABLE default.logged (id INT PRIMARY KEY, v TEXT)");
  for (let start = 0; start < 400; start += 50) {
    await server.rows(`INSERT INTO default.logged VALUES ${rowsText(start, start + 50, 6000)}`);
  }
  await server.rows("CREATE SHARED TABLE default.files (id INT PRIMARY KEY, f FILE)");
  const form = new FormData();
  form.set("sql", `INSERT INTO default.files VALUES (1, FILE("doc"))`);
  form.set("file:doc", new File(["what was uploaded ".repeat(50)], "a.txt"));
  const answer = await fetch(`${server.url}/v1/api/sql`, {
    method: "POST",
    headers: { Authorization: `Bearer ${server.token}` },
    body: form,
  });
  if (!answer.ok) throw new Error(await answer.text());
  server.kill("SIGKILL");
  await server.exited();
  const directory = mkdtempSync(join(tmpdir(), "tidemark-killed-"));
  process.on("exit", () => rmSync(directory, { recursive: true, force: true }));
  const copy = join(directory, "data");
  cpSync(server.dataPath, copy, { recursive: true });
  return copy;
}

function rowsText(start: number, end: number, length: number): string {
  return Array.from(
    { length: end - start },
    (_, index) => `(${start + index}, '${String(start + index).padStart(length, "x")}')`,
  ).join();
}

/** Copies a data directory to a new one on which a server can be started. */
export function copyOf(dataPath: string): string {
  const copy = join(freshDirectory(), "data");
  cpSync(dataPath, copy, { recursive: true });
  return copy;
}

/** Starts a server on a copy made by `copyOf`, and logs the administrator in. */
export async function serverOn(dataPath: string): Promise<ServerProcess> {
  const server = new ServerProcess(join(dataPath, ".."), { config: CONFIG });
  directories.splice(directories.indexOf(server.directory), 1);
  await server.start();
  server.token = (await server.login("ada")).access_token;
  return server;
}

/** A data directory opened in-process, with the configuration of its server. */
export class OpenDirectory {
  readonly #path: string;
  #database: Database;

  private constructor(path: string, database: Database) {
    this.#path = path;
    this.#database = database;
  }

  static async open(path: string): Promise<OpenDirectory> {
    return new OpenDirectory(path, await openAt(path, { config: DIRECTORY_CONFIG }));
  }

  async ask(sql: string): Promise<SqlResponse> {
    const { catalog, sql: engine } = this.#database;
    return await engine.execute(principalFor({ catalog }, "root"), { sql, params: [] });
  }

  /** Runs statements that must succeed. Returns the rows of the last one. */
  async rows(sql: string): Promise<readonly (readonly unknown[])[]> {
    const { error, results } = await this.ask(sql);
    if (error !== undefined) throw error;
    return results.at(-1)?.rows ?? [];
  }

  async restart(): Promise<void> {
    await this.#database.close();
    this.#database = await openAt(this.#path, { config: DIRECTORY_CONFIG });
  }

  /** Returns a copy of the directory as it would be if the process were killed now. */
  async killed(): Promise<OpenDirectory> {
    return await OpenDirectory.open(copyOf(this.#path));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#database.close();
  }
}

export interface MaintenanceRun {
  readonly code: number;
  /** The lines that the command prints as its result. */
  readonly lines: readonly string[];
  readonly text: string;
  /** The lines in which the command describes what it does. */
  readonly told: string;
}

/** Runs `tidemark <command> <args>`. */
export function maintain(
  command: "verify" | "repair",
  args: readonly string[],
  {
    clock = systemClock,
    disk = bunDisk,
    temporary = freshDirectory(),
  }: { clock?: Clock; disk?: Disk; temporary?: string } = {},
): MaintenanceRun {
  const lines: string[] = [];
  const told: string[] = [];
  const code = runMaintenance(command, args, {
    disk,
    clock,
    random: systemRandom,
    temporary,
    say: (line) => lines.push(line),
    tell: (line) => told.push(line),
  });
  return { code, lines, text: lines.join("\n"), told: told.join("\n") };
}

type Change = "write" | "truncate" | "rename";

class AskingFile extends ForwardingFile {
  readonly #ask: (path: string, change: Change) => void;

  constructor(file: DiskFile, ask: (path: string, change: Change) => void) {
    super(file);
    this.#ask = ask;
  }

  override write(bytes: Uint8Array, offset: number): void {
    this.#ask(this.path, "write");
    super.write(bytes, offset);
  }

  override truncate(length: number): void {
    this.#ask(this.path, "truncate");
    super.truncate(length);
  }
}

/**
 * Returns the real disk with a hook: `ask` is called before each change to a file, and may throw.
 */
export function diskThatAsks(ask: (path: string, change: Change) => void): Disk {
  return {
    ...bunDisk,
    open(path, options) {
      return new AskingFile(bunDisk.open(path, options), ask);
    },
    rename(from, to) {
      ask(from, "rename");
      bunDisk.rename(from, to);
    },
  };
}

/**
 * Returns the real disk with a limit: after the first `changesBefore` changes below `root`, all
 * further changes there fail.
 */
export function diskThatFails(root: string, changesBefore: number): Disk {
  let count = 0;
  return diskThatAsks((path, change) => {
    if (!path.startsWith(root)) return;
    count += 1;
    if (count > changesBefore) throw new DiskError("EIO", path, change);
  });
}

/**
 * Returns every file and directory below `root` with its bytes, times and mode, except those in
 * `leftOut`.
 */
export function treeOf(root: string, leftOut: readonly string[] = []): Record<string, string> {
  const names = readdirSync(root, { recursive: true, encoding: "utf8" }).toSorted();
  const tree: Record<string, string> = {};
  for (const name of names) {
    if (leftOut.includes(name)) continue;
    const path = join(root, name);
    const stat = statSync(path);
    const bytes = stat.isDirectory() ? "" : readFileSync(path);
    const hash = createHash("sha256").update(bytes).digest("hex");
    tree[name] = `${hash} ${stat.mode} ${stat.mtimeMs}`;
  }
  return tree;
}

/** Flips a bit in the middle of a file. */
export function flip(path: string): void {
  const bytes = readFileSync(path);
  const at = bytes.length >> 1;
  bytes[at] = (bytes[at] ?? 0) ^ 4;
  writeFileSync(path, bytes);
}
