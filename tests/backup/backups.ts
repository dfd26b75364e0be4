/**
 * Makes backups, restores them, and opens databases that may make backups, for the backup tests.
 */
import { expect } from "bun:test";
import { mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { bunDisk } from "../../src/base/bun_disk.ts";
import { systemClock } from "../../src/base/clock.ts";
import type { Disk } from "../../src/base/disk.ts";
import { DiskError } from "../../src/base/errors.ts";
import { type Log, type LogFields, silentLog } from "../../src/base/log.ts";
import { systemRandom } from "../../src/base/random.ts";
import type { Database } from "../../src/database.ts";
import { runRestore } from "../../src/maintenance/mod.ts";
import type { SqlResponse } from "../../src/sql/mod.ts";
import { openAt, SMALL_FILES } from "../support/database.ts";
import { copyOf, diskThatAsks } from "../support/maintenance.ts";
import { principalFor } from "../support/principal_for.ts";
import { type ServerProcess, startReadyServer } from "../support/server_process.ts";

export interface Backup {
  readonly path: string;
  readonly seq: number;
}

/** Returns a server that may write backups to `root`. */
export async function serverWithRoot(root: string): Promise<ServerProcess> {
  return await startReadyServer({
    config: {
      storage: { wal_segment_bytes: 1 << 20, flush_rows: 400, allowed_roots: [root] },
      limits: { max_row_bytes: 65536 },
    },
  });
}

export async function backUp(server: ServerProcess, path: string): Promise<Backup> {
  const [row = []] = await server.rows(`BACKUP DATABASE TO '${path}'`);
  expect(row.slice(1, 3)).toEqual(["backup", "completed"]);
  const seq = Number(/_seq (\d+)$/.exec(String(row[5]))?.[1]);
  expect(seq).toBeGreaterThan(0);
  return { path, seq };
}

export interface RestoreRun {
  readonly code: number;
  readonly said: string;
}

export async function restore(from: string, to: string, disk: Disk = bunDisk): Promise<RestoreRun> {
  return await runRestoreWith([from, to], disk);
}

export async function runRestoreWith(
  args: readonly string[],
  disk: Disk = bunDisk,
): Promise<RestoreRun> {
  const lines: string[] = [];
  const say = (line: string): void => void lines.push(line);
  const parts = {
    disk,
    clock: systemClock,
    random: systemRandom,
    log: silentLog,
    say,
    tell: say,
  };
  return { code: await runRestore(args, parts), said: lines.join("\n") };
}

/** Returns a backup with every kind of file. It is removed when this process ends. */
async function fullBackup(): Promise<string> {
  const root = mkdtempSync(join(tmpdir(), "tidemark-backup-"));
  process.on("exit", () => rmSync(root, { recursive: true, force: true }));
  await using server = await serverWithRoot(root);
  await server.rows("CREATE SHARED TABLE t (id INT PRIMARY KEY, v TEXT, f FILE)");
  await server.rows("INSERT INTO t (id, v) VALUES (1, 'a'), (2, 'b'); STORAGE FLUSH TABLE t");
  await server.rows("DELETE FROM t WHERE id = 1; STORAGE FLUSH TABLE t");
  const form = new FormData();
  form.set("sql", `INSERT INTO t VALUES (3, 'c', FILE("doc"))`);
  form.set("file:doc", new File(["what was uploaded"], "a.txt"));
  const headers = { Authorization: `Bearer ${server.token}` };
  await fetch(`${server.url}/v1/api/sql`, { method: "POST", headers, body: form });
  return (await backUp(server, join(root, "b"))).path;
}

let made: Promise<string> | undefined;

/** Returns a copy of a full backup, which a test may damage. The full backup is made only once. */
export async function backupCopy(): Promise<string> {
  made ??= fullBackup();
  return copyOf(await made);
}

export function filesOf(root: string): string[] {
  return readdirSync(root, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name).slice(root.length + 1))
    .toSorted();
}

/** Returns the ids and seqs of a table's rows, ordered by id. */
export async function contentOf(server: ServerProcess, table: string): Promise<[number, number][]> {
  const rows = await server.rows(`SELECT id, _seq FROM ${table} ORDER BY id`);
  return rows.map(([id, seq]) => [Number(id), Number(seq)]);
}

/** The real disk, except that after a number of writes it is full for paths below `root`. */
export function fullDisk(root: string, writesBefore: number): Disk {
  let count = 0;
  return diskThatAsks((path, change) => {
    if (change !== "write" || !path.startsWith(root)) return;
    count += 1;
    if (count > writesBefore) throw new DiskError("ENOSPC", path, change);
  });
}

/** Opens an in-process database with the given disk and log. */
export async function databaseOn(
  dataPath: string,
  roots: readonly string[],
  disk: Disk,
  log?: Log,
): Promise<Database> {
  const allowed = `storage.allowed_roots = ${JSON.stringify(roots)}`;
  const config = `${SMALL_FILES}\n${allowed}`;
  return await openAt(dataPath, { disk, config, ...(log === undefined ? {} : { log }) });
}

/** Returns a log that collects its lines as text. */
export function keptLog(): { log: Log; lines: string[] } {
  const lines: string[] = [];
  const keep =
    (level: string) =>
    (message: string, fields: LogFields = {}): void =>
      void lines.push(`${level} ${message} ${JSON.stringify(fields)}`);
  const log = {
    error: keep("error"),
    warn: keep("warn"),
    info: keep("info"),
    debug: keep("debug"),
  };
  return { log, lines };
}

export async function ask(database: Database, sql: string): Promise<SqlResponse> {
  return await database.sql.execute(principalFor(database, "root"), { sql, params: [] });
}
