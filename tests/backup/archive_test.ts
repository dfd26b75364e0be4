/**
 * Tests the archive of the log when it is full, missing or belongs to another database. Log files
 * are kept until they have been copied, up to a limit, and every file removed without having been
 * copied is reported.
 */
import { afterAll, expect, test } from "bun:test";
import {
  copyFileSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { dirname, join } from "node:path";
import { archivedFiles, readUnit } from "../../src/backup/archive_units.ts";
import { bunDisk } from "../../src/base/bun_disk.ts";
import { systemClock } from "../../src/base/clock.ts";
import type { Disk } from "../../src/base/disk.ts";
import { DiskError } from "../../src/base/errors.ts";
import { type Log, silentLog } from "../../src/base/log.ts";
import { systemRandom } from "../../src/base/random.ts";
import { RecentLog } from "../../src/base/recent_log.ts";
import type { Database } from "../../src/database.ts";
import { runRestore } from "../../src/maintenance/mod.ts";
import { openAt } from "../support/database.ts";
import {
  copyOf,
  diskThatAsks,
  freshDirectory,
  maintain,
  removeDirectories,
} from "../support/maintenance.ts";
import { principalFor } from "../support/principal_for.ts";
import { testThoroughly } from "../support/requirements.ts";
import { until } from "../support/until.ts";

afterAll(removeDirectories);

function open(
  { archive, data }: { archive: string; data: string },
  {
    config = "",
    disk = bunDisk,
    log = silentLog,
  }: { config?: string; disk?: Disk; log?: Log } = {},
): Promise<Database> {
  return openAt(data, {
    disk,
    log,
    config: [
      "storage.ballast_bytes = 0",
      "storage.wal_segment_bytes = 1048576",
      "storage.wal_max_bytes = 4194304",
      "storage.flush_rows = 50",
      "limits.max_row_bytes = 262144",
      `storage.archive_path = ${JSON.stringify(archive)}`,
      config,
    ].join("\n"),
  });
}

function freshPlace(): { archive: string; data: string } {
  const directory = freshDirectory();
  return { archive: join(directory, "archive"), data: join(directory, "data") };
}

/** Returns the error with which opening a database fails. */
function refusalOf(opening: Promise<Database>): Promise<unknown> {
  return opening.then(
    () => undefined,
    (error: unknown) => error,
  );
}

async function ask(database: Database, sql: string): Promise<readonly (readonly unknown[])[]> {
  const principal = principalFor(database, "root");
  const { error, results } = await database.sql.execute(principal, { sql, params: [] });
  if (error !== undefined) throw error;
  return results.at(-1)?.rows ?? [];
}

/** Fills the given number of log files. If requested, waits until the table is in segments. */
async function fill(
  database: Database,
  fileCount: number,
  { isFlushed = true }: { isFlushed?: boolean } = {},
): Promise<void> {
  await ask(
    database,
    "CREATE SHARED TABLE IF NOT EXISTS t (id BIGINT PRIMARY KEY DEFAULT SNOWFLAKE_ID(), v TEXT)",
  );
  for (let count = 0; count < fileCount * 5; count += 1) {
    await ask(database, `INSERT INTO t (v) VALUES ('${"x".repeat(210_000)}')`);
  }
  if (isFlushed) await ask(database, "STORAGE FLUSH TABLE t");
}

function flip(path: string, offset: number): void {
  const bytes = readFileSync(path);
  bytes[offset] = (bytes[offset] ?? 0) ^ 1;
  writeFileSync(path, bytes);
}

/** Returns the names of the log files in a directory. */
function logsIn(path: string): string[] {
  return readdirSync(path, { recursive: true, encoding: "utf8" })
    .map((name) => name.slice(name.lastIndexOf("/") + 1))
    .filter((name) => name.endsWith(".wal"))
    .toSorted();
}

test("log files wait while the archive is full, and are copied once it has space", async () => {
  const place = freshPlace();
  mkdirSync(place.archive);
  let isFull = true;
  const disk = diskThatAsks((path, change) => {
    if (isFull && path.startsWith(place.archive)) throw new DiskError("ENOSPC", path, change);
  });
  const database = await open(place, { disk });
  await fill(database, 4);
  await until(() => database.archiveLag()?.failure !== undefined);
  expect(database.archiveLag()).toMatchObject({ lostFiles: 0 });
  expect(database.archiveLag()?.failure).toContain("ENOSPC");
  expect(database.archiveLag()?.files).toBeGreaterThan(2);
  expect(logsIn(join(place.data, "wal"))[0]).toBe("0000000001.wal");
  isFull = false;
  // The archiver tries again when the next log file is full.
  await fill(database, 1);
  await until(() => database.archiveLag()?.files === 0);
  expect(database.archiveLag()).toEqual({ files: 0, bytes: 0, lostFiles: 0, failure: undefined });
  expect(logsIn(join(place.data, "wal"))[0]).not.toBe("0000000001.wal");
  expect(logsIn(place.archive).slice(0, 2)).toEqual(["0000000001.wal", "0000000002.wal"]);
  await database.close();
  expect(maintain("verify", [place.data])).toMatchObject({ code: 0 });
});

test("the server refuses to start without an archive directory, and leaves all data unchanged", async () => {
  const place = freshPlace();
  const refusal = `storage.archive_path names ${place.archive}, but there is no such directory`;
  expect(await refusalOf(open(place))).toMatchObject({
    code: "STORAGE_UNAVAILABLE",
    message: expect.stringContaining(refusal),
    hint: expect.stringContaining("create the directory, or remove storage.archive_path"),
  });
  writeFileSync(place.archive, "");
  expect(await refusalOf(open(place))).toMatchObject({
    message: expect.stringContaining("but no file can be written there (ENOTDIR)"),
  });
  rmSync(place.archive);
  mkdirSync(place.archive);
  const disk: Disk = {
    ...bunDisk,
    open(path, options) {
      if (path.startsWith(place.archive)) throw new DiskError("EACCES", path, "open");
      return bunDisk.open(path, options);
    },
  };
  expect(await refusalOf(open(place, { disk }))).toMatchObject({
    message: expect.stringContaining("but no file can be written there (EACCES)"),
    hint: expect.stringContaining("give the server's user write access to the directory"),
  });
  expect(existsSync(place.data)).toBe(false);
  await (await open(place)).close();
  // The check leaves no file behind.
  expect(readdirSync(place.archive)).toHaveLength(1);
});

test("files that wait for a missing archive are copied once it is back", async () => {
  const place = freshPlace();
  const away = `${place.archive}.away`;
  mkdirSync(place.archive);
  let database = await open(place);
  renameSync(place.archive, away);
  await fill(database, 3);
  await until(() => database.archiveLag()?.failure !== undefined);
  expect(database.archiveLag()?.failure).toContain("ENOENT");
  expect(logsIn(join(place.data, "wal"))[0]).toBe("0000000001.wal");
  renameSync(away, place.archive);
  await database.close();
  // Starting the server does not remove any file, either.
  database = await open(place);
  await fill(database, 1);
  await until(() => database.archiveLag()?.files === 0);
  expect(logsIn(place.archive)[0]).toBe("0000000001.wal");
  await database.close();
  // A file that is in the archive is not copied again.
  const count = logsIn(place.archive).length;
  database = await open(place);
  await until(() => database.archiveLag()?.files === 0);
  expect(logsIn(place.archive)).toHaveLength(count);
  await database.close();
});

test("log files wait if an empty directory has replaced the archive, and the log reports this", async () => {
  const place = freshPlace();
  const away = `${place.archive}.away`;
  mkdirSync(place.archive);
  const log = new RecentLog(silentLog, systemClock);
  const database = await open(place, { log });
  await fill(database, 2);
  await until(() => database.archiveLag()?.files === 0);
  const count = logsIn(place.archive).length;
  renameSync(place.archive, away);
  mkdirSync(place.archive);
  await fill(database, 2);
  await until(() => database.archiveLag()?.failure !== undefined);
  expect(database.archiveLag()?.failure).toContain("has disappeared from");
  expect(log.lines.find(({ level }) => level === "error")?.fields).toMatchObject({
    hint: expect.stringContaining("mount or restore the missing directory; or restart the server"),
  });
  expect(readdirSync(place.archive)).toEqual([]);
  rmSync(place.archive, { recursive: true });
  renameSync(away, place.archive);
  await fill(database, 1);
  await until(() => database.archiveLag()?.files === 0);
  expect(database.archiveLag()).toMatchObject({ failure: undefined, lostFiles: 0 });
  const names = logsIn(place.archive);
  expect(names.length).toBeGreaterThan(count);
  expect(names).toEqual(names.map((_, index) => `${String(index + 1).padStart(10, "0")}.wal`));
  await database.close();
});

test("startup reports an archive that lacks earlier changes, but not a new one", async () => {
  const place = freshPlace();
  mkdirSync(place.archive);
  const fresh = new RecentLog(silentLog, systemClock);
  const before = await open(place, { log: fresh });
  await fill(before, 2);
  await until(() => before.archiveLag()?.files === 0);
  await before.close();
  expect(fresh.lines.filter(({ level }) => level === "warn")).toEqual([]);
  rmSync(place.archive, { recursive: true });
  mkdirSync(place.archive);
  const later = new RecentLog(silentLog, systemClock);
  const after = await open(place, { log: later });
  expect(later.lines.map(({ message }) => message)).toContainEqual(
    expect.stringContaining("the log archive starts here"),
  );
  await after.close();
});

test("beyond the bound, the oldest log files are given up and counted", async () => {
  const place = freshPlace();
  const away = `${place.archive}.away`;
  mkdirSync(place.archive);
  const database = await open(place);
  renameSync(place.archive, away);
  await fill(database, 22);
  const lag = database.archiveLag();
  expect(lag?.lostFiles).toBeGreaterThan(0);
  expect(lag?.bytes).toBeLessThanOrEqual(16 << 20);
  renameSync(away, place.archive);
  await fill(database, 1);
  await until(() => database.archiveLag()?.files === 0);
  expect(logsIn(place.archive)[0]).toBe(
    `${String((lag?.lostFiles ?? 0) + 1).padStart(10, "0")}.wal`,
  );
  await database.close();
});

test("files that another copy of the database has archived are not overwritten", async () => {
  const place = freshPlace();
  mkdirSync(place.archive);
  const database = await open(place);
  await fill(database, 2);
  await until(() => database.archiveLag()?.files === 0);
  const [incarnation = ""] = readdirSync(place.archive);
  const root = join(place.archive, incarnation);
  const last = readdirSync(root)
    .filter((name) => name.endsWith(".json"))
    .toSorted()
    .at(-1);
  const foreign = join(root, `${String(Number(last?.slice(0, 10)) + 1).padStart(10, "0")}.json`);
  copyFileSync(join(root, last ?? ""), foreign);
  await fill(database, 2);
  await until(() => database.archiveLag()?.failure !== undefined);
  expect(database.archiveLag()?.failure).toContain(
    "a different copy of this database also writes there",
  );
  expect(existsSync(foreign.replace(".json", ".wal"))).toBe(false);
  await database.close();
  // The copied list in the archive names a different log file, which the next start notices.
  const again = await open(place);
  expect(again.archiveLag()?.failure).toContain("the archived file belongs to file");
  await again.close();
});

/**
 * The real disk, except that syncing a directory fails while `isMet` returns true for the
 * directory's path.
 */
function diskThatSyncsNot(isMet: (path: string) => boolean): Disk {
  return {
    ...bunDisk,
    syncDirectory(path) {
      if (isMet(path)) throw new DiskError("EIO", path, "sync");
      bunDisk.syncDirectory(path);
    },
  };
}

/** Returns the ids of the catalog transactions in an archive, in file order. */
function journalIdsIn(archive: string): number[] {
  const [incarnation = ""] = readdirSync(archive);
  const root = join(archive, incarnation);
  return archivedFiles(bunDisk, root).flatMap((file) =>
    readUnit(bunDisk, root, file).journal.map(({ id }) => id),
  );
}

test("a log file is archived again if its entry in the list could not be made durable", async () => {
  const place = freshPlace();
  mkdirSync(place.archive);
  let isFailing = true;
  const disk = diskThatSyncsNot(
    (path) =>
      isFailing && dirname(path) === place.archive && existsSync(join(path, "0000000001.json")),
  );
  const database = await open(place, { disk });
  await fill(database, 2);
  await until(() => database.archiveLag()?.failure?.includes("EIO") === true);
  expect(logsIn(join(place.data, "wal"))[0]).toBe("0000000001.wal");
  await ask(database, "CREATE SHARED TABLE later (id INT PRIMARY KEY)");
  isFailing = false;
  await fill(database, 1);
  await until(() => database.archiveLag()?.files === 0);
  expect(database.archiveLag()?.failure).toBeUndefined();
  expect(logsIn(place.archive)[0]).toBe("0000000001.wal");
  const ids = journalIdsIn(place.archive);
  expect(ids.length).toBeGreaterThan(1);
  expect(ids).toEqual(ids.map((_, index) => (ids[0] ?? 0) + index));
  await database.close();
});

test("a file found in the archive at startup counts once its name is durable", async () => {
  const place = freshPlace();
  mkdirSync(place.archive);
  const before = await open(place);
  await fill(before, 2);
  await until(() => before.archiveLag()?.files === 0);
  await before.close();
  let isFailing = true;
  const disk = diskThatSyncsNot((path) => isFailing && dirname(path) === place.archive);
  const database = await open(place, { disk });
  expect(database.archiveLag()?.failure).toContain("EIO");
  isFailing = false;
  await fill(database, 1);
  await until(() => database.archiveLag()?.files === 0);
  expect(database.archiveLag()?.failure).toBeUndefined();
  await database.close();
});

testThoroughly(
  "a file that a copy of the database archived under the same number stays unchanged",
  async () => {
    const place = freshPlace();
    mkdirSync(place.archive);
    const database = await open(place);
    await fill(database, 2);
    await until(() => database.archiveLag()?.files === 0);
    const copy = await open({ ...place, data: copyOf(place.data) });
    await fill(copy, 2);
    await until(() => copy.archiveLag()?.files === 0);
    await copy.close();
    const [incarnation = ""] = readdirSync(place.archive);
    const root = join(place.archive, incarnation);
    const filesOf = (): (readonly [string, Uint8Array])[] =>
      readdirSync(root)
        .toSorted()
        .map((name) => [name, readFileSync(join(root, name))] as const);
    const before = filesOf();
    await fill(database, 2);
    await until(() => database.archiveLag()?.failure !== undefined);
    expect(database.archiveLag()?.failure).toContain(
      "a different copy of this database also writes there",
    );
    await database.close();
    expect(filesOf()).toEqual(before);
  },
);

test("the log after a repair is archived separately, and leads from a backup to a point in time", async () => {
  const place = freshPlace();
  const directory = join(place.data, "..");
  const roots = `storage.allowed_roots = ${JSON.stringify([directory])}`;
  mkdirSync(place.archive);
  const before = await open(place, { config: "storage.flush_interval_secs = 86399" });
  // The rows are not flushed, so that the log reaches its maximum size.
  await fill(before, 3, { isFlushed: false });
  await until(() => before.archiveLag()?.files === 0);
  await before.close();
  const old = readdirSync(place.archive);
  const archived = logsIn(place.archive);
  expect(archived.length).toBeGreaterThan(1);
  flip(join(place.data, "wal", archived[0] ?? ""), 500_000);
  expect(maintain("repair", [place.data, "--accept-loss"])).toMatchObject({ code: 0 });

  const after = await open(place, { config: roots });
  const backup = join(directory, "backup");
  await ask(after, `BACKUP DATABASE TO '${backup}'`);
  await fill(after, 4);
  await until(() => after.archiveLag()?.files === 0);
  const seq = after.store.visibleSeq;
  const [[count] = []] = await ask(after, "SELECT count(*) FROM t");
  await fill(after, 4);
  await until(() => after.archiveLag()?.files === 0);
  await after.close();
  const fresh = readdirSync(place.archive).find((name) => !old.includes(name)) ?? "none";
  expect(logsIn(join(place.archive, fresh)).length).toBeGreaterThan(2);
  expect(logsIn(join(place.archive, old[0] ?? ""))).toEqual(archived);

  const target = join(directory, "restored");
  const lines: string[] = [];
  const say = (line: string): void => void lines.push(line);
  const point = ["--archive", place.archive, "--to-seq", String(seq)];
  const code = await runRestore([backup, target, ...point], {
    disk: bunDisk,
    clock: systemClock,
    random: systemRandom,
    log: silentLog,
    say,
    tell: say,
  });
  expect(code, lines.join()).toBe(0);
  const restored = await open({ ...place, data: target });
  expect(await ask(restored, "SELECT count(*) FROM t")).toEqual([[count]]);
  await restored.close();
});

testThoroughly(
  "a repair that gives up catalog changes also leaves the old archive unchanged",
  async () => {
    const place = freshPlace();
    mkdirSync(place.archive);
    const before = await open(place);
    await fill(before, 4);
    await until(() => before.archiveLag()?.files === 0);
    const copy = copyOf(place.data);
    await before.close();
    const wal = join(copy, "catalog.sqlite-wal");
    flip(wal, readFileSync(wal).length - 100);
    expect(maintain("repair", [copy, "--accept-loss"])).toMatchObject({ code: 0 });
    const after = await open({ ...place, data: copy });
    expect(after.archiveLag()?.failure).toBeUndefined();
    expect(readdirSync(place.archive)).toHaveLength(2);
    await after.close();
  },
);

test("only the owner can read the catalog in the archive, even if others may enter the directory", async () => {
  const place = freshPlace();
  mkdirSync(place.archive);
  const before = process.umask(0o022);
  try {
    const database = await open(place);
    await fill(database, 4);
    await until(() => database.archiveLag()?.files === 0);
    await database.close();
  } finally {
    process.umask(before);
  }
  const made = readdirSync(place.archive, { recursive: true, encoding: "utf8" });
  expect(made.length).toBeGreaterThan(4);
  for (const name of made) expect(statSync(join(place.archive, name)).mode & 0o077, name).toBe(0);
});
