/**
 * Provides databases with an archive of their log, and the command that restores them, for tests
 * of point-in-time restores.
 */
import { expect } from "bun:test";
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { bringInThread, type PointBringer } from "../../src/backup/mod.ts";
import { bunDisk } from "../../src/base/bun_disk.ts";
import { systemClock } from "../../src/base/clock.ts";
import { silentLog } from "../../src/base/log.ts";
import { systemRandom } from "../../src/base/random.ts";
import type { Database } from "../../src/database.ts";
import { runRestore } from "../../src/maintenance/mod.ts";
import type { SqlResponse } from "../../src/sql/mod.ts";
import { openAt } from "../support/database.ts";
import { freshDirectory } from "../support/maintenance.ts";
import { principalFor } from "../support/principal_for.ts";
import { until } from "../support/until.ts";

export interface Place {
  readonly data: string;
  /** The directory that contains the backups. */
  readonly root: string;
  readonly archive: string;
}

interface OpenOptions {
  readonly data?: string;
  readonly archives?: boolean;
  readonly bringInThread?: PointBringer;
}

export function freshPlace(): Place {
  const directory = freshDirectory();
  const place = {
    data: join(directory, "data"),
    root: join(directory, "backups"),
    archive: join(directory, "archive"),
  };
  mkdirSync(place.root);
  mkdirSync(place.archive);
  return place;
}

export function open(
  place: Place,
  {
    bringInThread: bring = (work) => bringInThread(systemClock, work),
    data = place.data,
    archives = true,
  }: OpenOptions = {},
): Promise<Database> {
  return openAt(data, {
    bringInThread: bring,
    config: [
      "storage.ballast_bytes = 0",
      "storage.wal_segment_bytes = 1048576",
      "storage.wal_max_bytes = 4194304",
      "storage.flush_rows = 2000",
      "limits.max_row_bytes = 65536",
      `storage.allowed_roots = ${JSON.stringify([place.root])}`,
      archives ? `storage.archive_path = ${JSON.stringify(place.archive)}` : "",
    ].join("\n"),
  });
}

export async function ask(database: Database, sql: string, as = "root"): Promise<SqlResponse> {
  return await database.sql.execute(principalFor(database, as), { sql, params: [] });
}

export async function rows(
  database: Database,
  sql: string,
  as = "root",
): Promise<readonly unknown[]> {
  const { error, results } = await ask(database, sql, as);
  if (error !== undefined) throw error;
  return results.at(-1)?.rows ?? [];
}

export async function backUp(database: Database, path: string): Promise<number> {
  const [row] = (await rows(database, `BACKUP DATABASE TO '${path}'`)) as unknown[][];
  expect(row?.slice(1, 3)).toEqual(["backup", "completed"]);
  return Number(/_seq (\d+)$/.exec(String(row?.[5]))?.[1]);
}

/** Runs `tidemark restore`. */
export async function restore(
  args: readonly string[],
  { heldBytesMax }: { heldBytesMax?: number } = {},
): Promise<{ code: number; said: string }> {
  const lines: string[] = [];
  const say = (line: string): void => void lines.push(line);
  const code = await runRestore(args, {
    disk: bunDisk,
    clock: systemClock,
    random: systemRandom,
    log: silentLog,
    say,
    tell: say,
    ...(heldBytesMax === undefined ? {} : { heldBytesMax }),
  });
  return { code, said: lines.join("\n") };
}

export async function archived(database: Database): Promise<void> {
  await until(() => database.archiveLag()?.files === 0);
}
