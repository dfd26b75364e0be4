/**
 * Tests restores. A restored database equals the database that was backed up, and a restore that
 * is interrupted or refused changes nothing.
 */
import { afterAll, expect, test } from "bun:test";
import { cpSync, existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { finishRestore } from "../../src/backup/mod.ts";
import { bunDisk } from "../../src/base/bun_disk.ts";
import { crc32 } from "../../src/base/checksum.ts";
import { systemClock } from "../../src/base/clock.ts";
import { silentLog } from "../../src/base/log.ts";
import { readBackupList } from "../../src/storage/files.ts";
import { openDataDirectory } from "../../src/storage/mod.ts";
import { openAt, SMALL_FILES } from "../support/database.ts";
import { ForwardingDisk } from "../support/forwarding_disk.ts";
import {
  copyOf,
  diskThatFails,
  freshDirectory,
  maintain,
  OpenDirectory,
  removeDirectories,
  treeOf,
} from "../support/maintenance.ts";
import { amountOf } from "../support/thoroughness.ts";
import {
  ask,
  backUp,
  backupCopy,
  contentOf,
  fullDisk,
  type RestoreRun,
  restore,
  runRestoreWith,
  serverWithRoot,
} from "./backups.ts";

afterAll(removeDirectories);

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
  expect(again.body.error?.message).toContain("a different restore is already waiting");
  await server.restart();

  // Every token is invalid, whether or not its user still exists.
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

test("a directory that is not a backup, or a backup of a newer version, is refused without any change", async () => {
  const backup = await backupCopy();
  const list = join(backup, "backup.json");
  const [body = ""] = readFileSync(list, "utf8").split("\n");
  const newer = body.replace('"format":1', '"format":2');
  writeFileSync(list, `${newer}\n${crc32(Buffer.from(newer)).toString(16).padStart(8, "0")}\n`);
  const target = join(freshDirectory(), "data");
  const cases: [string, string][] = [
    [backup, "has format 2, but this version reads only 1"],
    [freshDirectory(), "no backup"],
    ["/nowhere", "there is no such directory"],
  ];
  for (const [source, text] of cases) {
    const { code, said } = await restore(source, target);
    expect([code, said.includes(text)], said).toEqual([2, true]);
    expect(existsSync(target)).toBe(false);
  }
  // This path in the list of files leads outside the backup directory.
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
    // The next start finishes the staged restore.
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
    `Cannot restore from ${backup}: this needs ${bytes} bytes, and at least ${reserve} bytes must remain free, but only ${disk.freeNow} are free`,
  );
  disk.freeNow = bytes + reserve;
  const { visibleSeq } = database.store;
  const toPoint = await messageOf(`${statement} TO SEQ ${visibleSeq}`);
  expect(toPoint).toContain(`Cannot restore the log after ${backup}: this needs `);
  expect(toPoint).toContain(
    `bytes, and at least ${reserve} bytes must remain free, but only ${disk.freeNow} are free`,
  );
  expect(await messageOf(statement)).toContain("prepared");
  await database.close();
});

/** The real disk, with the amount of free space set by a test. */
class RoomyDisk extends ForwardingDisk {
  freeNow = 1e12;

  override freeBytes(_path: string): number {
    return this.freeNow;
  }
}

test("restore explains its usage and reports wrong arguments before it reads anything", async () => {
  const asked = await runRestoreWith(["--help"]);
  expect(asked).toEqual({ code: 0, said: expect.stringContaining("usage: tidemark restore") });
  const wrong: [args: string[], text: string][] = [
    [[], "specify a backup and a data directory\nusage:"],
    [["b", "d", "e"], "specify only a backup and a data directory, without e"],
    [["b", "d", "--force"], "unknown option --force\nusage:"],
    [["b", "d", "-x"], "unknown option -x"],
    [["b", "d", "--archive"], "specify a value after --archive"],
    [["b", "d", "--to-seq", "1", "--to-seq=2"], "specify --to-seq only once"],
    [["b", "d", "--archive", "a"], "--archive requires --to-seq or --to-timestamp"],
    [["b", "d", "--to-seq", "1", "--to-timestamp", "2026-01-01"], "specify only one point"],
    [
      ["/none", "d", "--to-seq", "abc"],
      'Cannot restore to _seq "abc": it must be a number, such as the _seq of a row',
    ],
    [
      ["/none", "d", "--to-seq="],
      'Cannot restore to _seq "": it must be a number, such as the _seq of a row',
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
  expect(first.said).not.toContain("the previous contents have been moved to");
  expect(existsSync(join(target, "lost+found"))).toBe(false);
  const kept = `the previous contents have been moved to ${target}/lost+found/before-restore-1`;
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
    said: `Cannot restore from ${backup}: a different restore is already waiting for the next startup; ${hint}`,
  });
  expect(await restore(backup, target)).toEqual(
    refusal(`to cancel that restore, remove ${waiting}`),
  );
  // At this point of a restore, the previous content exists in two places.
  writeFileSync(join(waiting, "MOVING"), "");
  expect(await restore(backup, target)).toEqual(
    refusal("the waiting restore has begun and cannot be cancelled; start the server to finish it"),
  );
  expect(existsSync(join(target, "restore.new"))).toBe(false);
  // The backup was complete, but its list of files is removed, as if by a crash.
  rmSync(join(waiting, "backup.json"));
  expect((await restore(backup, target)).code).toBe(0);
  expect(existsSync(waiting)).toBe(false);
});
