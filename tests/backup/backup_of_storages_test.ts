/**
 * Tests backups and restores of tables with segments in a storage, and verification and repair
 * while a storage is damaged or missing.
 */
import { afterAll, afterEach, beforeEach, describe, expect, test } from "bun:test";
import {
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { freshDirectory, maintain, removeDirectories } from "../support/maintenance.ts";
import { TestEngine } from "../support/sql_engine.ts";

afterAll(removeDirectories);

let root: string;
let engine: TestEngine;

beforeEach(async () => {
  root = freshDirectory();
  mkdirSync(join(root, "archive"));
  engine = await TestEngine.open({
    config: `storage.allowed_roots = ["${root}"]\nstorage.archive_path = "${root}/archive"`,
  });
  await engine.run(`CREATE STORAGE fast TYPE filesystem PATH '${root}/fast'`);
  await engine.run("CREATE TABLE t (id INT PRIMARY KEY, v TEXT) WITH (STORAGE_ID = 'fast')");
  await engine.run("CREATE TABLE here (id INT PRIMARY KEY); INSERT INTO here VALUES (1)");
  await engine.run("INSERT INTO t VALUES (1, 'a'), (2, 'b'); STORAGE FLUSH TABLE t");
  await engine.run("UPDATE t SET v = 'c' WHERE id = 1; STORAGE FLUSH TABLE t");
});

afterEach(() => engine[Symbol.asyncDispose]());

const ROWS = "SELECT id, v FROM t ORDER BY id";
const KEPT = [
  [1, "c"],
  [2, "b"],
];

function namesBelow(path: string): string[] {
  const names = readdirSync(path, { recursive: true, encoding: "utf8" });
  return names.filter((name) => /\.(?:seg|dv)$/.test(name)).toSorted();
}

async function placesOf(table: string): Promise<unknown[]> {
  const rows = await engine.rows(
    `SELECT storage_id FROM system.segments WHERE table_name = '${table}'`,
  );
  return rows.flat();
}

describe("backup and restore of tables that are in storages", () => {
  test("a backup contains copies of the segments in all storages, and verify reads these copies", async () => {
    await engine.run(`BACKUP DATABASE TO '${root}/b'`);
    expect(namesBelow(join(root, "b", "segments"))).toEqual(["1/1.1.dv", "1/1.seg", "1/2.seg"]);
    renameSync(join(root, "fast"), join(root, "away"));
    expect(maintain("verify", [join(root, "b")]).code).toBe(0);
    const [segment = ""] = namesBelow(join(root, "b", "segments")).slice(1);
    const path = join(root, "b", "segments", segment);
    const bytes = readFileSync(path);
    bytes[300] = (bytes[300] ?? 0) ^ 0x55;
    writeFileSync(path, bytes);
    expect(maintain("verify", [join(root, "b")]).code).toBe(1);
    renameSync(join(root, "away"), join(root, "fast"));
  });

  test("a backup is restored into the data directory, and new segments go to the storage again", async () => {
    await engine.run(`BACKUP DATABASE TO '${root}/b'`);
    await engine.run("INSERT INTO t VALUES (3, 'later'); STORAGE FLUSH TABLE t");
    await engine.run(`RESTORE DATABASE FROM '${root}/b'`);
    await engine.restart();
    expect(await engine.rows(ROWS)).toEqual(KEPT);
    expect(await placesOf("t")).toEqual(["local", "local"]);
    const told =
      "SELECT fields FROM system.logs WHERE message LIKE 'restored segments of other storages%'";
    expect(JSON.stringify(await engine.rows(told))).toMatch(/fast.*2/);
    expect(namesBelow(join(root, "fast", "segments"))).toEqual([]);
    expect(namesBelow(join(root, "fast", "lost+found"))).toHaveLength(4);
    await engine.run("INSERT INTO t VALUES (4, 'new'); STORAGE FLUSH TABLE t");
    expect(await placesOf("t")).toEqual(["local", "local", "fast"]);
    await engine.restart();
    expect(await engine.rows(ROWS)).toEqual([...KEPT, [4, "new"]]);
  });

  test("a backup that is restored elsewhere does not take the storage from its original database", async () => {
    await engine.run(`BACKUP DATABASE TO '${root}/b'`);
    await using other = await TestEngine.open({
      config: `storage.allowed_roots = ["${root}"]`,
    });
    await other.run(`RESTORE DATABASE FROM '${root}/b'`);
    await other.restart();
    expect(await other.failure(ROWS)).toBe("STORAGE_UNAVAILABLE@1");
    expect((await other.ask(ROWS)).error?.message).toMatch(
      /a restore defined this storage, .* not an empty directory/,
    );
    expect(await other.rows("SELECT id FROM here")).toEqual([[1]]);
    await engine.restart();
    expect(await engine.rows(ROWS)).toEqual(KEPT);
    // From now on, the empty directory that replaced the storage belongs to the other database.
    await engine.database.close();
    renameSync(join(root, "fast"), join(root, "away"));
    mkdirSync(join(root, "fast"));
    await other.restart();
    expect(await other.rows(ROWS)).toEqual(KEPT);
    await other.run("INSERT INTO t VALUES (5, 'there'); STORAGE FLUSH TABLE t");
    expect(namesBelow(join(root, "fast", "segments"))).toHaveLength(1);
    await engine.reopen();
    expect(await engine.failure(ROWS)).toBe("STORAGE_UNAVAILABLE@1");
  });

  test("a restored backup writes nothing to a storage that its server does not allow", async () => {
    mkdirSync(join(root, "copies"));
    await engine.run(`BACKUP DATABASE TO '${root}/copies/b'`);
    await engine.database.close();
    rmSync(join(root, "fast"), { recursive: true });
    mkdirSync(join(root, "fast"));
    await using other = await TestEngine.open({
      config: `storage.allowed_roots = ["${root}/copies"]`,
    });
    await other.run(`RESTORE DATABASE FROM '${root}/copies/b'`);
    await other.restart();
    expect(await other.failure(ROWS)).toBe("STORAGE_UNAVAILABLE@1");
    expect(readdirSync(join(root, "fast"))).toEqual([]);
    await engine.reopen();
  });

  test("a backup is restored to a later point at which more tables use storages", async () => {
    await engine.run(`BACKUP DATABASE TO '${root}/b'`);
    await engine.run(`CREATE STORAGE slow TYPE filesystem PATH '${root}/slow'`);
    await engine.run("CREATE TABLE s (id INT PRIMARY KEY, v TEXT) WITH (STORAGE_ID = 'slow')");
    await engine.run("INSERT INTO s VALUES (1, 's'); STORAGE FLUSH TABLE s");
    await engine.run("INSERT INTO t VALUES (3, 'd'); STORAGE FLUSH TABLE t");
    const [[seq] = []] = await engine.rows("SELECT max(_seq) FROM t");
    await engine.run("INSERT INTO t VALUES (4, 'above')");
    await engine.run(`RESTORE DATABASE FROM '${root}/b' TO SEQ ${Number(seq)}`);
    await engine.restart();
    expect(await engine.rows(ROWS)).toEqual([...KEPT, [3, "d"]]);
    expect(await engine.rows("SELECT v FROM s")).toEqual([["s"]]);
    await engine.run("STORAGE FLUSH TABLE s");
    expect(await placesOf("s")).toEqual(["slow"]);
  });

  test("a backup fails while a storage is missing, and names the storage", async () => {
    await engine.database.close();
    renameSync(join(root, "fast"), join(root, "away"));
    await engine.reopen();
    const backup = `BACKUP DATABASE TO '${root}/b'`;
    expect(await engine.failure(backup)).toStartWith("STORAGE_UNAVAILABLE@1");
    expect((await engine.ask(backup)).error?.message).toMatch(
      /rows of default\.t are in storage fast, which is unavailable/,
    );
    expect(existsSync(join(root, "b"))).toBe(false);
    await engine.run("DROP TABLE t");
    expect((await engine.rows(`BACKUP DATABASE TO '${root}/b'`))[0]?.[2]).toBe("completed");
  });
});

describe("verify and repair examine files in storages", () => {
  beforeEach(() => engine.database.close());
  afterEach(() => engine.reopen());

  test("verify and repair examine storages, and move damaged files to the lost+found directory of the storage", async () => {
    const path = engine.dataPath;
    expect(maintain("verify", [path]).code).toBe(0);
    const segments = join(root, "fast", "segments");
    writeFileSync(join(segments, "default", "99.seg"), "x");
    expect(maintain("verify", [path]).text).toMatch(/note {4}.*99\.seg: the manifest does not/);
    const segment = join(segments, "default", "t", "1", "1.seg");
    const bytes = readFileSync(segment);
    bytes[300] = (bytes[300] ?? 0) ^ 0x55;
    writeFileSync(segment, bytes);
    const found = maintain("verify", [path]);
    expect(found.code).toBe(1);
    expect(found.text).toContain(segment);
    expect(maintain("repair", [path]).code).toBe(0);
    expect(existsSync(segment)).toBe(false);
    expect(namesBelow(join(root, "fast", "lost+found"))).toEqual(["1-1.1.dv", "1-1.seg"]);
    await engine.reopen();
    expect(await engine.failure("SELECT * FROM t")).toStartWith("DATA_DAMAGED@1");
    await engine.database.close();
  });

  test("verify and repair leave the contents of a missing storage alone", async () => {
    const path = engine.dataPath;
    renameSync(join(root, "fast"), join(root, "away"));
    const before = join(freshDirectory(), "before");
    cpSync(path, before, { recursive: true });
    const found = maintain("verify", [path]);
    expect(found.code).toBe(1);
    expect(found.text).toMatch(/damage .*fast at byte 0: storage fast is unavailable: there is no/);
    expect(found.text).toMatch(/1 damaged place,/);
    const asked = maintain("repair", [path]);
    const loss =
      /to lose storage fast: .*; reads and writes of its tables fail until the directory is back$/m;
    expect([asked.code, asked.text]).toEqual([1, expect.stringMatching(loss)]);
    expect(maintain("repair", [path, "--accept-loss"]).code).toBe(0);
    renameSync(join(root, "away"), join(root, "fast"));
    expect(maintain("verify", [path]).code).toBe(0);
    await engine.reopen();
    expect(await engine.rows(ROWS)).toEqual(KEPT);
    await engine.database.close();
    rmSync(before, { recursive: true });
  });
});
