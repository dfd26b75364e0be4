/**
 * Tests backups and restores. A restored database contains everything acknowledged up to the seq of
 * the backup, and nothing above it. Damaged, unfinished and foreign backups change nothing.
 */
import { afterAll, expect, test } from "bun:test";
import {
  appendFileSync,
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { finishRestore } from "../../src/backup/mod.ts";
import { bunDisk } from "../../src/base/bun_disk.ts";
import { crc32 } from "../../src/base/checksum.ts";
import { systemClock } from "../../src/base/clock.ts";
import type { Disk, DiskFile, OpenOptions } from "../../src/base/disk.ts";
import { DiskError } from "../../src/base/errors.ts";
import { type Log, type LogFields, silentLog } from "../../src/base/log.ts";
import { systemRandom } from "../../src/base/random.ts";
import type { FileEntry } from "../../src/catalog/mod.ts";
import type { Database } from "../../src/database.ts";
import { runRestore } from "../../src/maintenance/mod.ts";
import type { SqlResponse } from "../../src/sql/mod.ts";
import { blobPath, readBackupList } from "../../src/storage/files.ts";
import { openDataDirectory } from "../../src/storage/mod.ts";
import { CountingClock } from "../support/counting_clock.ts";
import { openAt, SMALL_FILES } from "../support/database.ts";
import { ForwardingDisk, ForwardingFile } from "../support/forwarding_disk.ts";
import {
  copyOf,
  diskThatAsks,
  diskThatFails,
  freshDirectory,
  maintain,
  OpenDirectory,
  removeDirectories,
  serverOn,
  treeOf,
} from "../support/maintenance.ts";
import { principalFor } from "../support/principal_for.ts";
import { testThoroughly } from "../support/requirements.ts";
import { type ServerProcess, startReadyServer } from "../support/server_process.ts";
import { TestEngine } from "../support/sql_engine.ts";
import { amountOf } from "../support/thoroughness.ts";
import { until } from "../support/until.ts";

afterAll(removeDirectories);

interface Backup {
  readonly path: string;
  readonly seq: number;
}

/** Returns a server that may write backups to `root`. */
async function serverWithRoot(root: string): Promise<ServerProcess> {
  return await startReadyServer({
    config: {
      storage: { wal_segment_bytes: 1 << 20, flush_rows: 400, allowed_roots: [root] },
      limits: { max_row_bytes: 65536 },
    },
  });
}

async function backUp(server: ServerProcess, path: string): Promise<Backup> {
  const [row = []] = await server.rows(`BACKUP DATABASE TO '${path}'`);
  expect(row.slice(1, 3)).toEqual(["backup", "completed"]);
  const seq = Number(/_seq (\d+)$/.exec(String(row[5]))?.[1]);
  expect(seq).toBeGreaterThan(0);
  return { path, seq };
}

interface RestoreRun {
  readonly code: number;
  readonly said: string;
}

async function restore(from: string, to: string, disk: Disk = bunDisk): Promise<RestoreRun> {
  return await runRestoreWith([from, to], disk);
}

async function runRestoreWith(args: readonly string[], disk: Disk = bunDisk): Promise<RestoreRun> {
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

/** Returns rows with their seqs, ordered by id. */
async function contentOf(server: ServerProcess, table: string): Promise<[number, number][]> {
  const rows = await server.rows(`SELECT id, _seq FROM ${table} ORDER BY id`);
  return rows.map(([id, seq]) => [Number(id), Number(seq)]);
}

testThoroughly(
  "a backup made under load contains every commit up to its seq, and no later one",
  async () => {
    const root = freshDirectory();
    await using server = await serverWithRoot(root);
    await server.rows("CREATE SHARED TABLE t (id INT PRIMARY KEY, v TEXT)");
    await server.rows("CREATE USER TABLE mine (id INT PRIMARY KEY, v TEXT)");
    const ledger = new Map<number, number>();
    const load = { isWriting: true };
    let nextId = 0;
    const write = async (table: string): Promise<void> => {
      while (load.isWriting) {
        nextId += 1;
        const id = nextId;
        const text = `INSERT INTO ${table} VALUES (${id}, '${"x".repeat(300)}')`;
        const { body } = await server.sql(text);
        if (table === "t") ledger.set(id, Number(body.results[0]?.last_seq));
      }
    };
    const writers = ["t", "t", "t", "mine"].map(write);
    const backups: Backup[] = [];
    const roundCount = amountOf({ usual: 2, thorough: 4 });
    for (let round = 0; round < roundCount; round += 1) {
      // The number of rows is large enough for a flush even on a slow machine.
      const rowCount = ledger.size + 800 / roundCount;
      await Promise.all([Bun.sleep(250), until(() => ledger.size >= rowCount)]);
      backups.push(await backUp(server, join(root, `b${round}`)));
    }
    load.isWriting = false;
    await Promise.all(writers);
    const highest = Math.max(...ledger.values());
    const [[flushes] = []] = await server.rows(
      "SELECT count(*) FROM system.jobs WHERE job_type = 'flush' AND status = 'completed'",
    );
    expect(Number(flushes)).toBeGreaterThan(0);

    for (const { path, seq } of backups) {
      expect(maintain("verify", [path])).toMatchObject({ code: 0 });
      const target = join(freshDirectory(), "data");
      expect(await restore(path, target)).toMatchObject({ code: 0 });
      expect(maintain("verify", [target])).toMatchObject({ code: 0 });
      await using restored = await serverOn(target);
      const expected = [...ledger].filter(([, written]) => written <= seq);
      expect(await contentOf(restored, "t")).toEqual(expected.toSorted(([a], [b]) => a - b));
      await restored.rows("INSERT INTO t VALUES (1000000, 'new')");
      const [[seqAfter] = []] = await restored.rows("SELECT _seq FROM t WHERE id = 1000000");
      expect(Number(seqAfter)).toBeGreaterThan(highest);
    }
    expect(backups.at(-1)?.seq).toBeGreaterThan(backups[0]?.seq ?? Infinity);
  },
  300_000,
);

test("RESTORE prepares a restore, a restart completes it, and no id is issued twice", async () => {
  const root = freshDirectory();
  await using server = await serverWithRoot(root);
  await server.rows("CREATE SHARED TABLE t (id INT PRIMARY KEY, f FILE)");
  const form = new FormData();
  form.set("sql", `INSERT INTO t VALUES (1, FILE("doc"))`);
  form.set("file:doc", new File(["what was uploaded"], "a.txt"));
  const headers = { Authorization: `Bearer ${server.token}` };
  await fetch(`${server.url}/v1/api/sql`, { method: "POST", headers, body: form });
  const { path } = await backUp(server, join(root, "b"));

  await server.rows("DELETE FROM t");
  await server.rows("CREATE SHARED TABLE later (id INT PRIMARY KEY)");
  const [[laterId] = []] = await server.rows(
    "SELECT table_id FROM system.tables WHERE table_name = 'later'",
  );
  await server.rows("INSERT INTO later VALUES (1)");
  const carol = await server.createUser("carol");
  const [[highest] = []] = await server.rows("SELECT _seq FROM later");
  const [row = []] = await server.rows(`RESTORE DATABASE FROM '${path}'`);
  expect(row.slice(1, 3)).toEqual(["restore", "completed"]);
  expect(await server.rows("SELECT count(*) FROM later")).toEqual([[1]]);
  const again = await server.sql(`RESTORE DATABASE FROM '${path}'`);
  expect(again.body.error?.message).toContain("another restore is waiting");
  await server.restart();

  // Every token is invalid, whether its user was removed or still exists.
  for (const token of [carol, server.token]) {
    expect((await server.sql("SELECT 1", { token })).status).toBe(401);
  }
  server.token = (await server.login("ada")).access_token;
  expect((await server.sql("SELECT * FROM later")).body.error?.code).toBe("TABLE_NOT_FOUND");
  const [[id, reference] = []] = await server.rows("SELECT id, f FROM t");
  expect(id).toBe(1);
  const upload = JSON.parse(String(reference)) as { id: string; sub: string };
  const place = `/v1/files/default/t/${upload.sub}/${upload.id}-a.txt`;
  const file = await server.get(place, { Authorization: `Bearer ${server.token}` });
  expect(await file.text()).toBe("what was uploaded");
  expect(readdirSync(join(server.dataPath, "lost+found", "before-restore-1")).toSorted()).toEqual([
    "catalog.sqlite",
    "files",
    "segments",
    "wal",
  ]);
  await server.rows("CREATE SHARED TABLE fresh (id INT PRIMARY KEY)");
  const [[freshId] = []] = await server.rows(
    "SELECT table_id FROM system.tables WHERE table_name = 'fresh'",
  );
  expect(Number(freshId)).toBeGreaterThan(Number(laterId));
  await server.rows("INSERT INTO t (id) VALUES (2)");
  const [[seq] = []] = await server.rows("SELECT _seq FROM t WHERE id = 2");
  expect(Number(seq)).toBeGreaterThan(Number(highest));
  // In the restored database, the name carol belongs to a different user.
  await server.createUser("carol");
  expect((await server.sql("SELECT 1", { token: carol })).status).toBe(401);
  await server.restart();
  expect(await contentOf(server, "t")).toHaveLength(2);
});

/**
 * Returns a backup with every kind of file. It is made once, for the tests that damage copies of
 * it.
 */
async function fullBackup(): Promise<string> {
  const root = freshDirectory();
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

async function backupCopy(): Promise<string> {
  made ??= fullBackup();
  return copyOf(await made);
}

function filesOf(root: string): string[] {
  return readdirSync(root, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name).slice(root.length + 1))
    .toSorted();
}

test("verify finds damage to any file of a backup, and restore refuses it", async () => {
  const whole = await backupCopy();
  const names = filesOf(whole);
  const kinds = new Set(names.map((name) => name.replaceAll(/.*(?=\.)|.*\//g, "")));
  expect([...kinds].toSorted()).toEqual([
    ".dv",
    ".json",
    ".seg",
    ".sqlite",
    ".txt",
    ".wal",
    "HWM",
    "IDS",
  ]);
  const target = join(freshDirectory(), "data");
  expect(await restore(whole, target)).toMatchObject({ code: 0 });
  const before = treeOf(target, ["LOCK"]);
  for (const name of names) {
    const damages: [string, (path: string) => void][] = [
      ["removed", (path) => rmSync(path)],
      ["longer", (path) => appendFileSync(path, "x")],
      ["shorter", (path) => truncateSync(path, readFileSync(path).length - 1)],
      [
        "flipped",
        (path) => {
          const bytes = readFileSync(path);
          const at = bytes.length >> 1;
          bytes[at] = (bytes[at] ?? 0) ^ 4;
          writeFileSync(path, bytes);
        },
      ],
    ];
    for (const [kind, damage] of damages) {
      const copy = copyOf(whole);
      damage(join(copy, name));
      const isUnlisted = name === "backup.json" && kind === "removed";
      const { code, said } = await restore(copy, target);
      expect(code, `restore with ${name} ${kind}`).not.toBe(0);
      expect(said, `${name} ${kind}`).toContain(copy);
      expect(maintain("verify", [copy]).code, `verify with ${name} ${kind}`).toBe(
        isUnlisted ? 0 : 1,
      );
      expect(treeOf(target, ["LOCK"]), `${name} ${kind}`).toEqual(before);
      rmSync(copy, { recursive: true });
    }
  }
});

test("a prepared restore that is damaged before the restart is refused, and can be cancelled", async () => {
  const root = freshDirectory();
  const dataPath = join(freshDirectory(), "data");
  const database = await databaseOn(dataPath, [root], bunDisk);
  await ask(database, "CREATE SHARED TABLE t (id INT PRIMARY KEY)");
  await ask(database, "INSERT INTO t VALUES (1); STORAGE FLUSH TABLE t; INSERT INTO t VALUES (2)");
  expect((await ask(database, `BACKUP DATABASE TO '${root}/b'`)).error).toBeUndefined();
  await ask(database, "INSERT INTO t VALUES (3)");
  expect((await ask(database, `RESTORE DATABASE FROM '${root}/b'`)).error).toBeUndefined();
  await database.close();
  const staged = join(dataPath, "restore");
  const files = Object.keys(treeOf(staged)).filter((name) => statSync(join(staged, name)).isFile());
  expect(files.length).toBeGreaterThan(6);
  // ORDER only names the user who requested the restore, so damage to it is ignored.
  for (const file of files.filter((name) => name !== "ORDER")) {
    const path = copyOf(dataPath);
    const damaged = join(path, "restore", file);
    const bytes = readFileSync(damaged);
    const middle = bytes.length >> 1;
    bytes[middle] = (bytes[middle] ?? 0) ^ 1;
    writeFileSync(damaged, bytes);
    const refused = await databaseOn(path, [root], bunDisk).catch((error: unknown) => error);
    expect(String(refused), file).toContain(damaged);
    rmSync(join(path, "restore"), { recursive: true });
    const again = await databaseOn(path, [root], bunDisk);
    const { results } = await ask(again, "SELECT id FROM t ORDER BY id");
    expect(results[0]?.rows).toEqual([[1], [2], [3]]);
    await again.close();
  }
  const restored = await databaseOn(dataPath, [root], bunDisk);
  const { results } = await ask(restored, "SELECT id FROM t ORDER BY id");
  expect(results[0]?.rows).toEqual([[1], [2]]);
  await restored.close();
});

test("a directory that is not a backup, or a backup of a newer version, is refused without any change", async () => {
  const backup = await backupCopy();
  const list = join(backup, "backup.json");
  const [body = ""] = readFileSync(list, "utf8").split("\n");
  const newer = body.replace('"format":1', '"format":2');
  writeFileSync(list, `${newer}\n${crc32(Buffer.from(newer)).toString(16).padStart(8, "0")}\n`);
  const target = join(freshDirectory(), "data");
  const cases: [string, string][] = [
    [backup, "has format 2, but this version reads 1"],
    [freshDirectory(), "no backup"],
    ["/nowhere", "there is no such directory"],
  ];
  for (const [source, text] of cases) {
    const { code, said } = await restore(source, target);
    expect([code, said.includes(text)], said).toEqual([2, true]);
    expect(existsSync(target)).toBe(false);
  }
  // This path in a list of files leads out of the backup directory.
  const foul = body.replace('"catalog.sqlite"', '"../catalog.sqlite"');
  writeFileSync(list, `${foul}\n${crc32(Buffer.from(foul)).toString(16).padStart(8, "0")}\n`);
  expect(await restore(backup, target)).toMatchObject({ code: 1 });
  expect(existsSync(target)).toBe(false);
});

test("a server refuses to run on a backup, and repair refuses to change one", async () => {
  const backup = await backupCopy();
  const before = treeOf(backup);
  expect(() => openDataDirectory(bunDisk, backup)).toThrow("it is a backup");
  expect(maintain("repair", [backup])).toMatchObject({ code: 2 });
  expect(treeOf(backup)).toEqual(before);
});

test("a restore that fails at any step is completed by the next attempt", async () => {
  const backup = await backupCopy();
  const source = join(freshDirectory(), "data");
  expect((await restore(backup, source)).code).toBe(0);
  const wanted = async (dataPath: string): Promise<unknown> => {
    await using database = await OpenDirectory.open(dataPath);
    return await database.rows("SELECT id, v FROM t ORDER BY id");
  };
  let failures = 0;
  for (let changes = 0; ; changes += amountOf({ usual: 4, thorough: 1 })) {
    const target = copyOf(source);
    const disk = diskThatFails(target, changes);
    const { code } = await restore(backup, target, disk);
    if (code === 0) break;
    failures += 1;
    // The next start finishes what was staged.
    const directory = openDataDirectory(bunDisk, target);
    finishRestore(directory.paths, { disk: bunDisk, clock: systemClock, log: silentLog });
    directory.release();
    expect(maintain("verify", [target]), `after ${changes} changes`).toMatchObject({ code: 0 });
    expect(existsSync(join(target, "restore"))).toBe(false);
    expect(existsSync(join(target, "restore.new"))).toBe(false);
    expect(await wanted(target)).toEqual([
      [2, "b"],
      [3, "c"],
    ]);
    rmSync(target, { recursive: true });
  }
  expect(failures).toBeGreaterThan(amountOf({ usual: 5, thorough: 20 }));
});

testThoroughly(
  "a server that is killed during a backup leaves a complete backup or none",
  async () => {
    const root = freshDirectory();
    await using server = await serverWithRoot(root);
    await server.rows("CREATE SHARED TABLE t (id INT PRIMARY KEY, v TEXT)");
    for (let batch = 0; batch < 20; batch += 1) {
      const rows = Array.from(
        { length: 100 },
        (_, i) => `(${batch * 100 + i}, '${"y".repeat(9000)}')`,
      );
      await server.rows(`INSERT INTO t VALUES ${rows.join()}`);
    }
    let unfinished = 0;
    for (const delayMs of [0, 3, 8, 15]) {
      const path = join(root, `b${delayMs}`);
      const answer = server.sql(`BACKUP DATABASE TO '${path}'`).catch(() => undefined);
      await until(() => existsSync(path));
      await Bun.sleep(delayMs);
      server.kill("SIGKILL");
      await server.exited();
      await answer;
      const isFinished = existsSync(join(path, "backup.json"));
      if (!isFinished) unfinished += 1;
      const { code } = await restore(path, join(freshDirectory(), "data"));
      expect(code).toBe(isFinished ? 0 : 2);
      await server.start();
      expect(await server.rows("SELECT count(*) FROM t")).toEqual([[2000]]);
      const isBegun = readdirSync(path).length > 0;
      const { body } = await server.sql(`BACKUP DATABASE TO '${path}'`);
      const refusal = isFinished ? "already contains a backup" : "it is not empty";
      expect(body.error?.message ?? "").toContain(isBegun ? refusal : "");
    }
    expect(unfinished).toBeGreaterThan(0);
  },
);

test("BACKUP and RESTORE accept only directories below the allowed roots, and require role dba or system", async () => {
  const root = freshDirectory();
  await using server = await serverWithRoot(root);
  const refused: [path: string, text: string, hint: string][] = [
    [
      "/tmp/elsewhere",
      "not below a directory that the configuration allows",
      `lists them: ${root}`,
    ],
    [root, "one of storage.allowed_roots itself", "choose a directory below it"],
    [`${root}/../out`, "not an absolute path without . and ..", "for instance"],
    ["relative", "not an absolute path without . and ..", "for instance"],
    [`${root}/none/deeper`, `there is no directory ${root}/none`, "create it"],
  ];
  for (const [path, message, hint] of refused) {
    const { body } = await server.sql(`BACKUP DATABASE TO '${path}'`);
    expect(body.error).toMatchObject({
      reason: "invalid_option",
      message: expect.stringContaining(message),
      hint: expect.stringContaining(hint),
    });
  }
  for (const text of ["BACKUP DATABASE TO 's3://b/x'", "RESTORE DATABASE FROM 's3://b/x'"]) {
    expect((await server.sql(text)).body.error?.reason, text).toBe("not_implemented");
  }
  const token = await server.createUser("sam", "service");
  for (const text of [`BACKUP DATABASE TO '${root}/b'`, `RESTORE DATABASE FROM '${root}/b'`]) {
    expect((await server.sql(text, { token })).status).toBe(403);
  }
  expect(readdirSync(root)).toEqual([]);
});

test("BACKUP and RESTORE follow no symbolic link out of the allowed directories or into the data", async () => {
  const root = freshDirectory();
  const elsewhere = freshDirectory();
  const parent = freshDirectory();
  const data = join(parent, "data");
  // The data directory is below an allowed root, but under a name other than the configured one.
  const database = await databaseOn(data, [root, parent, join(root, "alias")], bunDisk);
  symlinkSync(elsewhere, join(root, "out"));
  symlinkSync(data, join(root, "in"));
  symlinkSync(parent, join(root, "alias"));
  await ask(database, "CREATE SHARED TABLE t (id INT PRIMARY KEY)");
  const refused: [string, string][] = [
    [`${root}/out/b`, `leads to ${elsewhere}/b, which is not below a directory`],
    [`${root}/out`, `leads to ${elsewhere}, which is not below a directory`],
    [`${root}/in/b`, "in the data directory"],
    [`${root}/in/segments/b`, "in the data directory"],
    [`${root}/alias/data/segments/b`, "in the data directory"],
    [`${parent}/data`, "in the data directory"],
  ];
  for (const [path, text] of refused) {
    for (const statement of ["BACKUP DATABASE TO", "RESTORE DATABASE FROM"]) {
      const { error } = await ask(database, `${statement} '${path}'`);
      expect([error?.code, error?.message], path).toEqual([
        "INVALID_OPTION",
        expect.stringContaining(text),
      ]);
    }
  }
  // A root may itself be a link, and names next to the data directory are free.
  const { error } = await ask(database, `BACKUP DATABASE TO '${root}/alias/data-b'`);
  expect(error).toBeUndefined();
  expect(readdirSync(elsewhere)).toEqual([]);
  await database.close();
});

/** The real disk, except that it is full for paths below `root` after some writes. */
function fullDisk(root: string, writesBefore: number): Disk {
  let count = 0;
  return diskThatAsks((path, change) => {
    if (change !== "write" || !path.startsWith(root)) return;
    count += 1;
    if (count > writesBefore) throw new DiskError("ENOSPC", path, change);
  });
}

test("a restore that fills the disk leaves the data directory unchanged", async () => {
  const backup = await backupCopy();
  const target = join(freshDirectory(), "data");
  expect((await restore(backup, target)).code).toBe(0);
  const before = treeOf(target, ["LOCK"]);
  for (let writes = 0; writes < 8; writes += 1) {
    const { code, said } = await restore(backup, target, fullDisk(`${target}/restore`, writes));
    expect([code, said.includes("ENOSPC")], said).toEqual([2, true]);
    expect(Object.keys(treeOf(target, ["LOCK"]))).toEqual(Object.keys(before));
  }
  const small = { ...bunDisk, freeBytes: () => 1000 };
  expect((await restore(backup, target, small)).said).toContain("1000 are free");
});

test("RESTORE leaves the reserve free after the copy and the later log", async () => {
  const directory = freshDirectory();
  const backup = join(directory, "b");
  const disk = new RoomyDisk(bunDisk);
  const reserve = 50_000_000;
  const database = await openAt(join(directory, "data"), {
    disk,
    config: [
      SMALL_FILES,
      `storage.min_free_bytes = ${reserve}`,
      `storage.allowed_roots = ${JSON.stringify([directory])}`,
    ].join("\n"),
  });
  await ask(database, "CREATE TABLE t (id INT PRIMARY KEY, v TEXT)");
  await ask(database, `BACKUP DATABASE TO '${backup}'`);
  const { files } = readBackupList(bunDisk, backup);
  const bytes = files.reduce((sum, file) => sum + file.bytes, 0);
  const fill = `INSERT INTO t VALUES (1, repeat('v', 900000))`;
  for (let written = 0; written <= bytes; written += 900_000) {
    await ask(database, fill.replace("(1,", `(${written},`));
  }
  const messageOf = async (sql: string): Promise<string> => {
    const { error, results } = await ask(database, sql);
    return error?.message ?? String(results[0]?.rows?.[0]?.[5]);
  };
  const statement = `RESTORE DATABASE FROM '${backup}'`;
  disk.freeNow = bytes + reserve - 1;
  expect(await messageOf(statement)).toContain(
    `Cannot restore from ${backup}: it needs ${bytes} bytes, and ${reserve} must remain free, but only ${disk.freeNow} are free`,
  );
  disk.freeNow = bytes + reserve;
  const { visibleSeq } = database.store;
  const toPoint = await messageOf(`${statement} TO SEQ ${visibleSeq}`);
  expect(toPoint).toContain(`Cannot restore the log after ${backup}: it needs `);
  expect(toPoint).toContain(
    `bytes, and ${reserve} must remain free, but only ${disk.freeNow} are free`,
  );
  expect(await messageOf(statement)).toContain("prepared");
  await database.close();
});

/** The real disk, with as much free space as a test sets. */
class RoomyDisk extends ForwardingDisk {
  freeNow = 1e12;

  override freeBytes(_path: string): number {
    return this.freeNow;
  }
}

/** Returns a database in this process, with the given disk and log. */
async function databaseOn(
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
function keptLog(): { log: Log; lines: string[] } {
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

async function ask(database: Database, sql: string): Promise<SqlResponse> {
  return await database.sql.execute(principalFor(database, "root"), { sql, params: [] });
}

test("a backup that fills the disk removes its files, and the server continues", async () => {
  const root = freshDirectory();
  const dataPath = join(freshDirectory(), "data");
  const target = join(root, "b");
  for (const writes of [0, 1, 2, 3]) {
    const database = await databaseOn(dataPath, [root], fullDisk(root, writes));
    await ask(database, "CREATE SHARED TABLE IF NOT EXISTS t (id INT PRIMARY KEY)");
    const { error } = await ask(database, `BACKUP DATABASE TO '${target}'`);
    expect(error).toMatchObject({ code: "DISK_FULL" });
    expect(existsSync(target)).toBe(false);
    expect((await ask(database, `INSERT INTO t VALUES (${writes})`)).error).toBeUndefined();
    const jobs = await ask(database, "SELECT status FROM system.jobs WHERE job_type = 'backup'");
    expect(jobs.results[0]?.rows).toEqual([["failed"]]);
    await database.close();
  }
});

test("a backup whose catalog cannot be copied leaves no files, and can be repeated", async () => {
  const root = freshDirectory();
  const dataPath = join(freshDirectory(), "data");
  const target = join(root, "b");
  const disk: Disk = {
    ...bunDisk,
    makeDirectory(path) {
      bunDisk.makeDirectory(path);
      if (path === target) bunDisk.makeDirectory(`${path}/catalog.sqlite`);
    },
  };
  const database = await databaseOn(dataPath, [root], disk);
  for (let attempt = 0; attempt < 2; attempt += 1) {
    const { error } = await ask(database, `BACKUP DATABASE TO '${target}'`);
    expect(error?.code).toBe("STORAGE_UNAVAILABLE");
    expect(readdirSync(root)).toEqual([]);
  }
  await database.close();
});

test("no database can be created inside a backup", async () => {
  const backup = await backupCopy();
  const before = treeOf(backup);
  const source = await backupCopy();
  const { code, said } = await restore(source, join(backup, "files", "data"));
  expect([code, said]).toEqual([2, expect.stringContaining(`inside the backup ${backup}`)]);
  expect(treeOf(backup)).toEqual(before);
});

test("a foreign file named backup.json does not turn its directory into a backup", async () => {
  const root = freshDirectory();
  const outside = join(root, "backup.json");
  writeFileSync(outside, '{ "schedule": "daily" }\n');
  const database = await databaseOn(join(root, "server", "data"), [root], bunDisk);
  const { error } = await ask(database, `BACKUP DATABASE TO '${join(root, "copy")}'`);
  expect(error).toBeUndefined();
  await database.close();
  rmSync(outside);
  mkdirSync(outside);
  const again = await databaseOn(join(root, "other", "data"), [root], bunDisk);
  await again.close();
});

test("no backup can be made inside another one, and verify reports a backup that was moved there", async () => {
  const root = freshDirectory();
  const outer = join(root, "outer");
  const database = await databaseOn(join(freshDirectory(), "data"), [root], bunDisk);
  expect((await ask(database, `BACKUP DATABASE TO '${outer}'`)).error).toBeUndefined();
  const { error } = await ask(database, `BACKUP DATABASE TO '${outer}/segments/inner'`);
  expect(error?.message).toContain(`it is inside the backup ${outer}`);
  expect(existsSync(join(outer, "segments", "inner"))).toBe(false);
  expect(statSync(join(outer, "catalog.sqlite")).mode & 0o777).toBe(0o600);
  await database.close();
  expect(maintain("verify", [outer]).text).not.toContain("is inside");
  const copy = join(freshDirectory(), "inner");
  cpSync(outer, copy, { recursive: true });
  cpSync(copy, join(outer, "files", "inner"), { recursive: true });
  const { code, text } = maintain("verify", [outer]);
  expect([code, text]).toEqual([0, expect.stringContaining(join(outer, "files", "inner"))]);
  expect(text).toContain("another backup is inside this one");
});

test("a backup that is killed leaves no files and releases the files that it held", async () => {
  const root = freshDirectory();
  const dataPath = join(freshDirectory(), "data");
  const target = join(root, "b");
  let onBegun = (): void => {};
  const disk: Disk = {
    ...bunDisk,
    freeBytes(path) {
      if (path === target) onBegun();
      return bunDisk.freeBytes(path);
    },
  };
  const database = await databaseOn(dataPath, [root], disk);
  await ask(database, "CREATE SHARED TABLE t (id INT PRIMARY KEY)");
  for (const id of [1, 2]) {
    await ask(database, `INSERT INTO t VALUES (${id}); STORAGE FLUSH TABLE t`);
  }
  const tableId = database.catalog.table("default", "t")?.tableId ?? 0;
  const segments = join(dataPath, "segments", String(tableId));
  expect(readdirSync(segments)).toHaveLength(2);
  let compacting: Promise<unknown> | undefined;
  onBegun = () => {
    const job = database.jobs.openOf("backup", undefined);
    if (job !== undefined) job.isCancelled = true;
    compacting = database.store.compact(tableId);
  };
  const { results } = await ask(database, `BACKUP DATABASE TO '${target}'`);
  expect(results[0]?.rows?.[0]?.[2]).toBe("cancelled");
  expect(existsSync(target)).toBe(false);
  await compacting;
  // The merged segments are removed after the merge.
  await until(() => readdirSync(segments).length === 1);
  const { error } = await ask(database, `BACKUP DATABASE TO '${target}'`);
  expect(error).toBeUndefined();
  await database.close();
});

function flip(path: string): void {
  const bytes = readFileSync(path);
  const middle = bytes.length >> 1;
  bytes[middle] = (bytes[middle] ?? 0) ^ 4;
  writeFileSync(path, bytes);
}

/**
 * Returns a closed database whose tables `t` and `other` have one segment each; the segment of `t`
 * has a deletion vector.
 */
async function flushedDirectory(root: string): Promise<string> {
  const dataPath = join(freshDirectory(), "data");
  const database = await databaseOn(dataPath, [root], bunDisk);
  for (const table of ["t", "other"]) {
    await ask(database, `CREATE SHARED TABLE ${table} (id INT PRIMARY KEY, v TEXT)`);
    const rows = "SELECT g, 'value ' || g FROM generate_series(1, 500) g";
    await ask(database, `INSERT INTO ${table} ${rows}; STORAGE FLUSH TABLE ${table}`);
  }
  await ask(database, "DELETE FROM t WHERE id = 7; STORAGE FLUSH TABLE t");
  await database.close();
  return dataPath;
}

function pathIn(directory: string, end: string): string {
  return join(directory, readdirSync(directory).find((name) => name.endsWith(end)) ?? "none");
}

test.each([
  ["a damaged segment", ".seg", flip],
  ["a damaged deletion vector", ".dv", flip],
  ["a missing segment", ".seg", (path: string): void => rmSync(path)],
])(
  "no backup is made of %s, which is quarantined, until a repair gives it up",
  async (...given) => {
    const [, end, spoil] = given;
    const root = freshDirectory();
    const dataPath = await flushedDirectory(root);
    const file = pathIn(join(dataPath, "segments", "1"), end);
    spoil(file);
    const target = join(root, "b");
    const { lines, log } = keptLog();
    let database = await databaseOn(dataPath, [root], bunDisk, log);
    // The second attempt finds the path in quarantine.
    for (const text of [file, join(dataPath, "segments", "1")]) {
      const { error } = await ask(database, `BACKUP DATABASE TO '${target}'`);
      expect(error).toMatchObject({ code: "DATA_DAMAGED" });
      expect(error?.message).toContain("of default.t");
      expect(error?.message).toContain(text);
      expect(error?.hint).toContain("drop the table");
      expect(readdirSync(root)).toEqual([]);
    }
    const met = /^error a segment (?:is damaged and was|cannot be read and is) quarantined/;
    expect(lines.filter((line) => met.test(line))).toHaveLength(1);
    await database.close();

    expect(maintain("repair", [dataPath])).toMatchObject({ code: 0 });
    database = await databaseOn(dataPath, [root], bunDisk, log);
    const { error, results } = await ask(database, `BACKUP DATABASE TO '${target}'`);
    expect(error).toBeUndefined();
    expect(String(results[0]?.rows?.[0]?.[5])).toContain(
      "without the rows of default.t that a repair has reported as lost",
    );
    expect(lines.join("\n")).toContain(
      "warn a backup lacks rows that a repair has reported as lost",
    );
    await database.close();
    const verified = maintain("verify", [target]);
    expect(verified).toMatchObject({ code: 0 });
    expect(verified.text).toContain("are lost (table default.t)");
    const restored = join(freshDirectory(), "data");
    expect(await restore(target, restored)).toMatchObject({ code: 0 });
    expect(maintain("verify", [restored])).toMatchObject({ code: 0 });
    database = await databaseOn(restored, [root], bunDisk);
    const read = await ask(database, "SELECT count(*) FROM t");
    expect(read.error?.code).toBe("DATA_DAMAGED");
    expect((await ask(database, "SELECT count(*) FROM other")).results[0]?.rows).toEqual([[500]]);
    await database.close();
  },
);

test("backups are possible again once the table of a damaged segment is dropped", async () => {
  const root = freshDirectory();
  const dataPath = await flushedDirectory(root);
  flip(pathIn(join(dataPath, "segments", "1"), ".seg"));
  const database = await databaseOn(dataPath, [root], bunDisk);
  const statement = `BACKUP DATABASE TO '${join(root, "b")}'`;
  expect((await ask(database, statement)).error?.code).toBe("DATA_DAMAGED");
  expect((await ask(database, "DROP TABLE t")).error).toBeUndefined();
  expect((await ask(database, statement)).error).toBeUndefined();
  await database.close();
});

test("a quarantined segment counts as damage until a repair moves its file", async () => {
  const root = freshDirectory();
  const dataPath = await flushedDirectory(root);
  rmSync(pathIn(join(dataPath, "segments", "2"), ".seg"));
  const database = await databaseOn(dataPath, [root], bunDisk);
  const { error } = await ask(database, "SELECT * FROM other");
  expect(error?.code).toBe("DATA_DAMAGED");
  await database.close();
  expect(maintain("verify", [dataPath])).toMatchObject({ code: 1 });
  const { code, text } = maintain("repair", [dataPath]);
  expect([code, text]).toEqual([
    0,
    expect.stringContaining("lost    table default.other: segment"),
  ]);
  expect(maintain("verify", [dataPath])).toMatchObject({ code: 0 });
});

test("verify of a damaged backup does not recommend a repair", async () => {
  const backup = await backupCopy();
  flip(join(backup, "catalog.sqlite"));
  const { code, text } = maintain("verify", [backup]);
  expect(code).toBe(1);
  expect(text).not.toContain("tidemark repair");
  expect(text).toContain("a backup cannot be repaired: use another one");
});

test("the log names the user of BACKUP and RESTORE, and the audit log records the restore", async () => {
  const root = freshDirectory();
  const dataPath = join(freshDirectory(), "data");
  const { lines, log } = keptLog();
  let database = await databaseOn(dataPath, [root], bunDisk, log);
  const target = `${root}/b`;
  await ask(database, `BACKUP DATABASE TO '${target}'`);
  expect((await ask(database, `BACKUP DATABASE TO '${target}'`)).error).toBeDefined();
  const { results } = await ask(database, `RESTORE DATABASE FROM '${target}'`);
  const cancel = `remove ${dataPath}/restore`;
  const message = String(results[0]?.rows?.[0]?.[5]);
  expect(message).toContain("the next startup continues from _seq");
  expect(message).toContain(`to cancel it before that, ${cancel}`);
  await database.close();
  database = await databaseOn(dataPath, [root], bunDisk, log);
  const about = `"orderedBy":"root","path":"${target}"`;
  const wanted = [
    `info began a backup .*${about}`,
    `info completed a backup .*${about},"seq":\\d+,"bytes":\\d+,"ms":[\\d.]+`,
    `info began a backup .*${about}`,
    `error a backup failed .*${about},"error":"Cannot back up to .*it already contains a backup`,
    `info began a restore .*${about}`,
    `warn prepared a restore, which the next startup will carry out .*${about},"seq":\\d+,"bytes":\\d+,"ms":[\\d.]+,"cancel":"${cancel}"`,
    `warn restored a backup .*"orderedBy":"root","source":"${target}"`,
  ];
  const found = lines.filter((line) => /backup|restore/.test(line));
  expect(found).toHaveLength(wanted.length);
  for (const [index, text] of wanted.entries()) expect(found[index]).toMatch(new RegExp(text));
  const events = await ask(
    database,
    "SELECT actor_user_id, target, outcome FROM system.audit_log WHERE action = 'finish restore'",
  );
  expect(events.results[0]?.rows).toEqual([["root", target, "ok"]]);
  await database.close();
});

test("restore explains its usage and reports wrong arguments before it reads anything", async () => {
  const asked = await runRestoreWith(["--help"]);
  expect(asked).toEqual({ code: 0, said: expect.stringContaining("usage: tidemark restore") });
  const wrong: [args: string[], text: string][] = [
    [[], "name a backup and a data directory\nusage:"],
    [["b", "d", "e"], "name only a backup and a data directory, not e as well"],
    [["b", "d", "--force"], "unknown option --force\nusage:"],
    [["b", "d", "-x"], "unknown option -x"],
    [["b", "d", "--archive"], "name a value after --archive"],
    [["b", "d", "--to-seq", "1", "--to-seq=2"], "name --to-seq only once"],
    [["b", "d", "--archive", "a"], "--archive needs --to-seq or --to-timestamp"],
    [["b", "d", "--to-seq", "1", "--to-timestamp", "2026-01-01"], "name only one point"],
    [
      ["/none", "d", "--to-seq", "abc"],
      'Cannot restore to seq "abc": it must be a number, such as the _seq of a row',
    ],
    [
      ["/none", "d", "--to-seq="],
      'Cannot restore to seq "": it must be a number, such as the _seq of a row',
    ],
    [["/none", "d", "--to-timestamp", "yesterday"], `to "yesterday": it is not a valid time`],
  ];
  for (const [args, text] of wrong) {
    const { code, said } = await runRestoreWith(args);
    expect([code, said]).toEqual([2, expect.stringContaining(text)]);
  }
});

test("restore reports where it moved the former data", async () => {
  const backup = await backupCopy();
  const target = join(freshDirectory(), "data");
  const first = await restore(backup, target);
  expect(first.said).not.toContain("the previous contents are in");
  expect(existsSync(join(target, "lost+found"))).toBe(false);
  const kept = `the previous contents are in ${target}/lost+found/before-restore-1`;
  expect((await restore(backup, target)).said).toContain(kept);
});

test("restore leaves a prepared restore unchanged, and says how to cancel it", async () => {
  const backup = await backupCopy();
  const target = join(freshDirectory(), "data");
  await restore(backup, target);
  const waiting = join(target, "restore");
  cpSync(backup, waiting, { recursive: true });
  const refusal = (hint: string): RestoreRun => ({
    code: 2,
    said: `Cannot restore from ${backup}: another restore is waiting for the next startup; ${hint}`,
  });
  expect(await restore(backup, target)).toEqual(refusal(`to cancel it, remove ${waiting}`));
  // At this point of a restore, the previous content exists in two places.
  writeFileSync(join(waiting, "MOVING"), "");
  expect(await restore(backup, target)).toEqual(
    refusal("it has begun and cannot be cancelled: start the server, which finishes it"),
  );
  expect(existsSync(join(target, "restore.new"))).toBe(false);
  // The backup was complete, but this file is removed as if by a crash.
  rmSync(join(waiting, "backup.json"));
  expect((await restore(backup, target)).code).toBe(0);
  expect(existsSync(waiting)).toBe(false);
});

test("verify reports a prepared restore and whether its copy is intact, and repair only reports it", async () => {
  const backup = await backupCopy();
  const target = join(freshDirectory(), "data");
  await restore(backup, target);
  const waiting = join(target, "restore");
  cpSync(backup, waiting, { recursive: true });
  const note = `note    ${waiting}: a restore is prepared: the next startup will replace everything`;
  const verified = maintain("verify", [target]);
  expect([verified.code, verified.text]).toEqual([0, expect.stringContaining(note)]);
  expect(verified.text).toContain(`to cancel it, remove ${waiting}`);
  expect(maintain("repair", [target])).toMatchObject({
    code: 0,
    text: expect.stringContaining(note),
  });
  const segment = filesOf(waiting).find((name) => name.endsWith(".seg")) ?? "";
  truncateSync(join(waiting, segment), 100);
  const { code, text } = maintain("verify", [target]);
  expect([code, text]).toEqual([1, expect.stringContaining(`damage  ${waiting}/${segment}`)]);
  expect(text).toContain(`it cannot be continued: remove ${waiting} and restore again`);
  // Once this mark exists, startup may change the copy, so its files are not verified.
  writeFileSync(join(waiting, "CHECKED"), "");
  expect(maintain("verify", [target]).code).toBe(0);
});

test("verify and repair leave an interrupted restore to the next start", async () => {
  const backup = await backupCopy();
  const old = join(freshDirectory(), "data");
  await restore(backup, old);
  let refusedCount = 0;
  for (let changes = 0; ; changes += 1) {
    const target = copyOf(old);
    const { code } = await restore(backup, target, diskThatFails(target, changes));
    if (code === 0) break;
    if (!existsSync(join(target, "restore/MOVING"))) continue;
    refusedCount += 1;
    const before = filesOf(target);
    for (const args of [
      ["verify", target],
      ["repair", target, "--accept-loss"],
    ] as const) {
      const [command, ...rest] = args;
      expect(maintain(command, rest)).toMatchObject({
        code: 2,
        told: `Cannot ${command} ${target}: a restore that replaces it is unfinished; start the server to finish the restore`,
      });
    }
    expect(filesOf(target)).toEqual(before);
  }
  expect(refusedCount).toBeGreaterThan(3);
});

/** A disk that counts the queries and syncs of directories between two ticks. */
class CountingDisk extends ForwardingDisk {
  count = 0;

  override sizeOf(path: string): number | undefined {
    this.count += 1;
    return super.sizeOf(path);
  }

  override syncDirectory(path: string): void {
    this.count += 1;
    super.syncDirectory(path);
  }
}

test("a backup of many tables yields to other work between files and directories", async () => {
  const disk = new CountingDisk(bunDisk);
  const clock = new CountingClock();
  const root = freshDirectory();
  await using engine = await TestEngine.open({
    clock,
    disk,
    config: `storage.allowed_roots = [${JSON.stringify(root)}]`,
  });
  const tables = Array.from({ length: 40 }, (_, i) => {
    return `CREATE TABLE t${i} (id INT PRIMARY KEY); INSERT INTO t${i} VALUES (1)`;
  });
  await engine.run(tables.join("; "));
  await engine.run("STORAGE FLUSH ALL");
  const perTurn: number[] = [];
  disk.count = 0;
  clock.onYield = () => {
    perTurn.push(disk.count);
    disk.count = 0;
  };
  await engine.run(`BACKUP DATABASE TO '${join(root, "many")}'`);
  perTurn.push(disk.count);
  expect(Math.max(...perTurn)).toBeLessThan(30);
  expect(perTurn.reduce((sum, each) => sum + each, 0)).toBeGreaterThan(40);
});

/** A disk that reports a request for space, which a backup makes once it knows all of its files. */
class RoomDisk extends ForwardingDisk {
  onAsked: (path: string) => void = () => {};

  override freeBytes(path: string): number {
    this.onAsked(path);
    return super.freeBytes(path);
  }
}

test("a backup reads the list of uploads in steps, as it was when the backup began", async () => {
  const disk = new RoomDisk(bunDisk);
  const clock = new CountingClock();
  const root = freshDirectory();
  const target = join(root, "b");
  await using engine = await TestEngine.open({
    clock,
    disk,
    config: `storage.allowed_roots = [${JSON.stringify(root)}]`,
  });
  const { dataPath } = engine;
  const { catalog } = engine.database;
  const files = Array.from({ length: 3000 }, (_, index) => fileEntry(10_000 + index));
  catalog.files.add(files);
  const last = fileEntry(12_999);
  const late = fileEntry(99_999);
  for (const entry of [last, late]) {
    const path = join(dataPath, blobPath(entry));
    mkdirSync(join(path, ".."), { recursive: true });
    writeFileSync(path, "x");
  }
  let yieldsBefore = 0;
  disk.onAsked = (path) => {
    if (path === target && yieldsBefore === 0) yieldsBefore = clock.yieldCount;
  };
  clock.yieldCount = 0;
  clock.onYield = () => {
    clock.onYield = () => undefined;
    catalog.files.remove([last.fileId]);
    catalog.files.add([late]);
  };
  await engine.run(`BACKUP DATABASE TO '${target}'`);
  expect(yieldsBefore).toBeGreaterThan(4);
  const names = filesOf(target).filter((name) => name.startsWith("files/"));
  expect(names).toEqual([blobPath(last)]);
});

function fileEntry(number: number): FileEntry {
  return {
    fileId: `f${number}`,
    tableId: 1,
    owner: 0,
    columnId: 1,
    keyJson: "[1]",
    sub: "f0001",
    storedName: `s${number}.txt`,
    name: "a.txt",
    mime: "text/plain",
    size: 1,
    sha256: "00",
    createdAtMs: 0,
  };
}

/**
 * The minimum number of bytes of a chunk. Chunks have half a MiB in this test, so less data is
 * needed.
 */
const CHUNK_BYTES_MIN = 1 << 18;

/**
 * A disk that records, at each write of a segment's copy, how far ahead the check of the segment
 * was.
 */
class LeadDisk extends ForwardingDisk {
  readonly leads: number[] = [];
  #checkedBytes = 0;

  override open(path: string, options: OpenOptions): DiskFile {
    const file = super.open(path, options);
    if (!path.endsWith(".seg")) return file;
    return new LeadFile(file, {
      onRead: (count, end) => {
        if (count >= CHUNK_BYTES_MIN) this.#checkedBytes = Math.max(this.#checkedBytes, end);
      },
      onWritten: (end) => this.leads.push(this.#checkedBytes - end),
    });
  }
}

interface FileListener {
  onRead(count: number, end: number): void;
  onWritten(end: number): void;
}

class LeadFile extends ForwardingFile {
  readonly #listener: FileListener;

  constructor(file: DiskFile, listener: FileListener) {
    super(file);
    this.#listener = listener;
  }

  override read(into: Uint8Array, offset: number): number {
    this.#listener.onRead(into.length, offset + into.length);
    return super.read(into, offset);
  }

  override write(bytes: Uint8Array, offset: number): void {
    super.write(bytes, offset);
    this.#listener.onWritten(offset + bytes.length);
  }
}

testThoroughly(
  "a segment is copied right after it is checked, so that it is read from the disk once",
  async () => {
    const root = freshDirectory();
    const disk = new LeadDisk(bunDisk);
    const config = `storage.allowed_roots = [${JSON.stringify(root)}]`;
    await using engine = await TestEngine.open({ config, disk });
    const columns = ["a", "b", "c", "d"];
    const types = columns.map((name) => `${name} DOUBLE`).join(", ");
    const values = columns.map(() => "random()").join(", ");
    await engine.run(`CREATE SHARED TABLE t (id INT PRIMARY KEY, ${types})`);
    await engine.run(`INSERT INTO t SELECT g, ${values} FROM generate_series(1, 200000) g`);
    await engine.run("STORAGE FLUSH TABLE t");
    disk.leads.length = 0;
    await engine.run(`BACKUP DATABASE TO '${join(root, "b")}'`);
    expect(disk.leads.length).toBeGreaterThan(5);
    expect(Math.max(...disk.leads)).toBeLessThan(1 << 20);
  },
);
