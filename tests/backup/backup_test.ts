/**
 * Tests backups. A backup contains everything acknowledged up to its seq, and nothing above it. A
 * backup that fails leaves no files, and a backup holds up no other work.
 */
import { afterAll, expect, test } from "bun:test";
import {
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { bunDisk } from "../../src/base/bun_disk.ts";
import type { Disk, DiskFile, OpenOptions } from "../../src/base/disk.ts";
import type { FileEntry } from "../../src/catalog/mod.ts";
import { blobPath } from "../../src/storage/files.ts";
import { CountingClock } from "../support/counting_clock.ts";
import { ForwardingDisk, ForwardingFile } from "../support/forwarding_disk.ts";
import {
  freshDirectory,
  maintain,
  removeDirectories,
  serverOn,
  treeOf,
} from "../support/maintenance.ts";
import { testThoroughly } from "../support/requirements.ts";
import { TestEngine } from "../support/sql_engine.ts";
import { amountOf } from "../support/thoroughness.ts";
import { until } from "../support/until.ts";
import {
  ask,
  type Backup,
  backUp,
  backupCopy,
  contentOf,
  databaseOn,
  filesOf,
  fullDisk,
  keptLog,
  restore,
  serverWithRoot,
} from "./backups.ts";

afterAll(removeDirectories);

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
      // Waits until there are enough rows for a flush, even on a slow machine.
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
      const refusal = isFinished ? "already contains a backup" : "the directory is not empty";
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
      "not below any directory that the configuration allows",
      `below one of storage.allowed_roots: ${root}`,
    ],
    [root, "one of storage.allowed_roots itself", "choose a directory below it"],
    [`${root}/../out`, "must be absolute, without . or .. segments", "for example"],
    ["relative", "must be absolute, without . or .. segments", "for example"],
    [`${root}/none/deeper`, `there is no directory ${root}/none`, "create this directory"],
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
    [
      `${root}/out/b`,
      `the path leads through a symbolic link to ${elsewhere}/b, which is not below any directory`,
    ],
    [
      `${root}/out`,
      `the path leads through a symbolic link to ${elsewhere}, which is not below any directory`,
    ],
    [`${root}/in/b`, "inside the data directory"],
    [`${root}/in/segments/b`, "inside the data directory"],
    [`${root}/alias/data/segments/b`, "inside the data directory"],
    [`${parent}/data`, "inside the data directory"],
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
  // A backup root may itself be a symbolic link. Names next to the data directory are not in use.
  const { error } = await ask(database, `BACKUP DATABASE TO '${root}/alias/data-b'`);
  expect(error).toBeUndefined();
  expect(readdirSync(elsewhere)).toEqual([]);
  await database.close();
});

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
  expect(error?.message).toContain(`the directory is inside the backup ${outer}`);
  expect(existsSync(join(outer, "segments", "inner"))).toBe(false);
  expect(statSync(join(outer, "catalog.sqlite")).mode & 0o777).toBe(0o600);
  await database.close();
  expect(maintain("verify", [outer]).text).not.toContain("is inside");
  const copy = join(freshDirectory(), "inner");
  cpSync(outer, copy, { recursive: true });
  cpSync(copy, join(outer, "files", "inner"), { recursive: true });
  const { code, text } = maintain("verify", [outer]);
  expect([code, text]).toEqual([0, expect.stringContaining(join(outer, "files", "inner"))]);
  expect(text).toContain("this directory contains a second backup");
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
  expect(message).toContain("the server continues from _seq");
  expect(message).toContain(`to cancel the restore before that, ${cancel}`);
  await database.close();
  database = await databaseOn(dataPath, [root], bunDisk, log);
  const about = `"orderedBy":"root","path":"${target}"`;
  const wanted = [
    `info began a backup .*${about}`,
    `info completed a backup .*${about},"seq":\\d+,"bytes":\\d+,"ms":[\\d.]+`,
    `info began a backup .*${about}`,
    `error a backup failed .*${about},"error":"Cannot back up to .*the directory already contains a backup`,
    `info began a restore .*${about}`,
    `warn prepared a restore; it will be carried out at the next startup .*${about},"seq":\\d+,"bytes":\\d+,"ms":[\\d.]+,"cancel":"${cancel}"`,
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

/** A disk that counts how many times directories are queried and synced between two ticks. */
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

/**
 * A disk that reports each query of the free space. A backup makes such a query once it knows all
 * of its files.
 */
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
 * The minimum size of a chunk, in bytes. Chunks are half a MiB in this test, so that less data is
 * needed.
 */
const CHUNK_BYTES_MIN = 1 << 18;

/**
 * A disk that records, at each write to the copy of a segment, how far the check of the segment is
 * ahead of the copy.
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
