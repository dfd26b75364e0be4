/**
 * Tests `tidemark repair` on real directories: after a repair, a server starts and never returns a
 * wrong result.
 */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from "node:fs";
import { basename, dirname } from "node:path";
import { bunDisk } from "../../src/base/bun_disk.ts";
import { silentLog } from "../../src/base/log.ts";
import { CatalogDatabase } from "../../src/catalog/mod.ts";
import { AUDIT_TABLE, OWN_TABLES } from "../../src/sql/mod.ts";
import {
  copyOf,
  diskThatFails,
  killedDirectory,
  maintain,
  OpenDirectory,
  removeDirectories,
  serverOn,
  treeOf,
} from "../support/maintenance.ts";
import { ManualClock } from "../support/manual_clock.ts";
import { openSegmentFile } from "../support/segment_files.ts";
import { TestEngine } from "../support/sql_engine.ts";
import { amountOf } from "../support/thoroughness.ts";
import { damage, endOfFrames, fileIn, WAL_1, WAL_2, WAL_3 } from "./damage.ts";

let killed: string;

beforeAll(async () => {
  killed = await killedDirectory();
});

afterAll(removeDirectories);

/** Returns the offset of the compressed text in a segment's second column. */
function offsetOfPacked(file: string): number {
  const reader = openSegmentFile(bunDisk, file, readFileSync(file).length);
  const entry = reader.chunkEntry(2, 0);
  reader.close();
  expect(entry?.isPacked).toBe(true);
  return entry?.offset ?? 0;
}

/**
 * Checks that a database in the directory serves every table except default.first, for which it
 * reports the damage.
 */
async function expectFirstDamagedOnly(path: string): Promise<void> {
  await using database = await OpenDirectory.open(path);
  const read = await database.ask("SELECT count(*) FROM default.first");
  expect(read.error).toMatchObject({ code: "DATA_DAMAGED" });
  expect(read.error?.message).toContain("segments/1/1.seg");
  // Only the lost segment could tell whether a row with this key exists.
  const written = await database.ask("INSERT INTO default.first VALUES (50, 'again')");
  expect(written.error).toMatchObject({ code: "DATA_DAMAGED" });
  expect(await database.rows("SELECT count(*) FROM default.second")).toEqual([[300]]);
  expect(await database.rows("SELECT v FROM default.second WHERE id = 20")).toEqual([["replaced"]]);
  expect(await database.rows("SELECT count(*) FROM default.logged")).toEqual([[400]]);
  await database.rows("INSERT INTO default.second VALUES (1000, 'new')");
  await database.rows("STORAGE FLUSH TABLE default.first");
  await database.rows("DROP TABLE default.first");
  await database.restart();
  expect(await database.rows("SELECT v FROM default.second WHERE id = 1000")).toEqual([["new"]]);
}

function manifestOf(path: string): ReturnType<CatalogDatabase["manifest"]["load"]> {
  const catalog = CatalogDatabase.open({
    path: `${path}/catalog.sqlite`,
    clock: new ManualClock(),
    log: silentLog,
  });
  const state = catalog.manifest.load();
  catalog.close();
  return state;
}

function u53At(bytes: Buffer, offset: number): number {
  return bytes.readUInt32LE(offset) + bytes.readUInt32LE(offset + 4) * 2 ** 32;
}

describe("repair changes only damaged directories", () => {
  test("repair leaves an intact directory unchanged", () => {
    const path = copyOf(killed);
    const before = treeOf(path, ["LOCK"]);
    const { code, text } = maintain("repair", [path]);
    expect(text).toContain("is sound, and nothing was changed");
    expect(code).toBe(0);
    expect(treeOf(path, ["LOCK"])).toEqual(before);
  });

  test.each([
    ["a damaged segment", ".seg", (file: string) => damage(file, 300)],
    ["a damaged deletion vector", ".dv", (file: string) => damage(file, 30)],
    ["a missing segment", ".seg", (file: string) => rmSync(file)],
    ["a missing deletion vector", ".dv", (file: string) => rmSync(file)],
    ["a segment that is too short", ".seg", (file: string) => truncateSync(file, 100)],
  ])("takes %s out of use, and the other tables are whole", async (_what, end, spoil) => {
    const path = copyOf(killed);
    const file = fileIn(`${path}/segments/1`, end);
    const [segmentId = ""] = basename(file).split(".");
    spoil(file);
    const { code, text } = maintain("repair", [path]);
    expect(code).toBe(0);
    const lost = `lost    table default.first: segment ${segmentId}, with 300 row versions from _seq `;
    expect(text.split("\n").filter((line) => line.startsWith(lost))).toHaveLength(1);
    // The repair has moved every file of the segment out of its directory, and has lost no byte.
    const left = readdirSync(`${path}/segments/1`);
    expect(left.filter((name) => name.startsWith(`${segmentId}.`))).toEqual([]);
    expect(readdirSync(`${path}/lost+found`).length).toBeGreaterThan(0);
    const again = maintain("verify", [path]);
    expect(again.code).toBe(0);
    expect(again.lines[0]).toMatch(
      /^note .*quarantined: 300 row versions .*\(table default\.first\)/,
    );
    await expectFirstDamagedOnly(path);
  });

  test("repair removes a segment with a damaged packed chunk from use", async () => {
    const path = copyOf(killed);
    const file = fileIn(`${path}/segments/2`, ".seg");
    const offset = offsetOfPacked(file);
    damage(file, offset + 20);
    const found = maintain("verify", [path]);
    expect(found.code).toBe(1);
    expect(found.text).toContain(`byte ${offset}: the checksum of column 2 in row group 0`);
    const { code, text } = maintain("repair", [path]);
    expect(code).toBe(0);
    expect(text).toMatch(/^lost {4}table default\.second: segment \d+, with 300 row versions/m);
    expect(maintain("verify", [path]).code).toBe(0);
    await using database = await OpenDirectory.open(path);
    const read = await database.ask("SELECT count(*) FROM default.second");
    expect(read.error).toMatchObject({ code: "DATA_DAMAGED" });
    expect(await database.rows("SELECT count(*) FROM default.first")).toEqual([[300]]);
  });

  // Without a repair, the table of the audit log would never accept an event again, because no
  // client can drop it.
  test.each(["that nobody has met", "that a server has quarantined"])(
    "repair lets the audit log continue without its damaged part, %s",
    async (how) => {
      await using engine = await TestEngine.open();
      await engine.run("CREATE NAMESPACE lost; CREATE USER ann WITH PASSWORD 'Correct-horse-9'");
      await engine.database.store.flush(AUDIT_TABLE.tableId);
      await engine.database.close();
      const segments = `${engine.dataPath}/segments/${AUDIT_TABLE.tableId}`;
      damage(fileIn(segments, ".seg"), 300);
      const events = "SELECT action, target FROM system.audit_log ORDER BY audit_id";
      if (how.includes("server")) {
        await engine.reopen();
        expect(await engine.failure(events)).toContain("DATA_DAMAGED");
        await engine.database.close();
      }
      const { code, text } = maintain("repair", [engine.dataPath]);
      expect(text).toMatch(
        /^lost {4}system\.audit_log: segment 1, with \d+ versions of events; the audit log continues without them/m,
      );
      expect(code).toBe(0);
      expect(readdirSync(segments)).toEqual([]);
      expect(readdirSync(`${engine.dataPath}/lost+found`)).toHaveLength(1);
      expect(maintain("verify", [engine.dataPath]).text).toMatch(/0 damaged places, 0 notes$/);
      await engine.reopen();
      await engine.run("CREATE NAMESPACE kept");
      expect(await engine.rows(events)).toEqual([["create namespace", "kept"]]);
    },
  );

  test("repair rebuilds the number files, and new ids are above those that were issued", () => {
    const path = copyOf(killed);
    const idsBefore = readFileSync(`${path}/wal/IDS`).readUInt32LE(20);
    writeFileSync(`${path}/wal/HWM`, Buffer.alloc(32, 7));
    writeFileSync(`${path}/wal/IDS`, Buffer.alloc(40, 7));
    expect(maintain("verify", [path]).code).toBe(1);
    expect(maintain("repair", [path]).code).toBe(0);
    expect(maintain("verify", [path]).code).toBe(0);
    expect(readFileSync(`${path}/wal/IDS`).readUInt32LE(20)).toBeGreaterThanOrEqual(idsBefore);
  });

  test.each([
    ["a directory", (path: string): void => mkdirSync(path)],
    ["a link to itself", (path: string): void => symlinkSync(basename(path), path)],
  ])("moves %s aside that is in the place of a number file", (_, put) => {
    for (const name of ["HWM", "IDS"]) {
      const path = copyOf(killed);
      rmSync(`${path}/wal/${name}`);
      put(`${path}/wal/${name}`);
      expect(maintain("verify", [path]).code).toBe(1);
      const { code, text } = maintain("repair", [path]);
      expect([code, text]).toEqual([0, expect.stringContaining(`lost+found/${name}`)]);
      expect(maintain("verify", [path]).code).toBe(0);
    }
  });

  test.each([
    ["of another length", (path: string) => writeFileSync(path, "short"), "the file has 5 bytes"],
    [
      "that has changed",
      (path: string) => damage(path, 7),
      "the checksum of the file does not match",
    ],
  ])("moves a secret %s aside: no server starts with it", async (_what, spoil, fault) => {
    const path = copyOf(killed);
    spoil(`${path}/jwt_secret`);
    const damaged = readFileSync(`${path}/jwt_secret`);
    const found = maintain("verify", [path]);
    expect([found.code, found.text]).toEqual([
      1,
      expect.stringContaining(`${path}/jwt_secret at byte 0: ${fault}`),
    ]);
    const { code, text } = maintain("repair", [path]);
    expect(code).toBe(0);
    expect(text).toMatch(/^lost {4}the secret that signs tokens, so all users must log in again/m);
    expect([...readFileSync(`${path}/lost+found/jwt_secret`)]).toEqual([...damaged]);
    expect(maintain("verify", [path]).code).toBe(0);
    await using server = await serverOn(path);
    expect(await server.rows("SELECT 1")).toEqual([[1]]);
  });

  test("repair leaves a directory with a damaged catalog unchanged, and advises what to do", () => {
    const path = copyOf(killed);
    rmSync(`${path}/catalog.sqlite-wal`);
    damage(`${path}/catalog.sqlite`, 20);
    damage(fileIn(`${path}/segments/1`, ".seg"), 300);
    const before = treeOf(path, ["LOCK"]);
    const { code, text } = maintain("repair", [path, "--accept-loss"]);
    expect(text).toMatch(
      /Cannot repair .*catalog\.sqlite: .*restore the whole directory from a backup/,
    );
    expect(text).toContain("was not repaired, and nothing was changed");
    expect(code).toBe(1);
    expect(treeOf(path, ["LOCK"])).toEqual(before);
  });
});

describe("repair of a damaged log needs --accept-loss", () => {
  test("repair of a damaged log reports what would be lost, and does nothing without --accept-loss", () => {
    const path = copyOf(killed);
    damage(`${path}/${WAL_2}`, 5000);
    damage(`${path}/segments/1/1.seg`, 300);
    const before = treeOf(path, ["LOCK"]);
    const { code, text } = maintain("repair", [path]);
    expect(text).toMatch(
      /^to lose .*0002\.wal from byte \d+: commits after _seq \d+, the last one that remains in the log, up to _seq \d+$/m,
    );
    expect(text).toMatch(/^to lose table default\.logged: \d+ row versions/m);
    expect(text).toContain("pass --accept-loss");
    expect(code).toBe(1);
    expect(treeOf(path, ["LOCK"])).toEqual(before);
  });

  test.each([
    ["damage in the middle", (path: string) => damage(`${path}/${WAL_2}`, 5000), [1, 399]],
    ["damage to the header of a file", (path: string) => damage(`${path}/${WAL_2}`, 20), [1, 399]],
    ["a file that is missing", (path: string) => rmSync(`${path}/${WAL_2}`), [1, 399]],
    [
      "damage to the last commit",
      (path: string) => damage(`${path}/${WAL_3}`, endOfFrames(`${path}/${WAL_3}`) - 10),
      [350, 400],
    ],
    ["damage to the first file", (path: string) => damage(`${path}/${WAL_1}`, 20), [0, 0]],
    ["a first file that is missing", (path: string) => rmSync(`${path}/${WAL_1}`), [0, 0]],
    [
      "all files missing",
      (path: string) => {
        for (const file of [WAL_1, WAL_2, WAL_3]) rmSync(`${path}/${file}`);
      },
      [0, 0],
    ],
  ])("cuts it at %s, and no seq comes again", async (_what, spoil, [atLeast = 0, atMost = 0]) => {
    const path = copyOf(killed);
    const highWater = readFileSync(`${path}/wal/HWM`);
    const acknowledged = Math.max(u53At(highWater, 0), u53At(highWater, 16));
    spoil(path);
    const damaged = treeOf(path);
    expect(maintain("repair", [path]).code).toBe(1);
    const { code, lines } = maintain("repair", [path, "--accept-loss"]);
    expect(code).toBe(0);
    expect(maintain("verify", [path])).toMatchObject({ code: 0 });
    // The repair keeps all data that it removes: damaged files unchanged, and a damaged part of a
    // file as a copy.
    for (const line of lines.filter((text) => text.startsWith("kept "))) {
      const kept = line.slice("kept ".length).trim();
      const name = kept.slice(kept.lastIndexOf("/") + 1);
      expect(existsSync(kept), kept).toBe(true);
      if (/^\d+\.wal$/.test(name)) {
        const now = treeOf(dirname(kept))[name]?.split(" ")[0];
        expect(damaged[`wal/${name}`]).toStartWith(now ?? "none");
      }
    }

    await using database = await OpenDirectory.open(path);
    for (const table of ["default.first", "default.second"]) {
      // These rows are in segments, so they do not depend on the log.
      expect(await database.rows(`SELECT count(*) FROM ${table}`)).toEqual([[300]]);
    }
    const [[count] = []] = await database.rows("SELECT count(*) FROM default.logged");
    expect(Number(count)).toBeGreaterThanOrEqual(atLeast);
    expect(Number(count)).toBeLessThanOrEqual(atMost);
    const { results } = await database.ask("INSERT INTO default.logged VALUES (9999, 'new')");
    expect(Number(results[0]?.lastSeq)).toBeGreaterThan(acknowledged);
    await using later = await database.killed();
    expect(await later.rows("SELECT v FROM default.logged WHERE id = 9999")).toEqual([["new"]]);
    const after = await later.rows("SELECT count(*) FROM default.logged");
    expect(after).toEqual([[Number(count) + 1]]);
  });

  test("repair of a damaged log names the tables that keep rows from after the cut", async () => {
    await using engine = await TestEngine.open();
    await engine.run("CREATE SHARED TABLE a (id INT PRIMARY KEY)");
    await engine.run("CREATE SHARED TABLE b (id INT PRIMARY KEY, v TEXT)");
    await engine.run(`INSERT INTO b VALUES (1, '${"x".repeat(5000)}')`);
    await engine.run("BEGIN; INSERT INTO a VALUES (2); INSERT INTO b VALUES (2, 'half'); COMMIT");
    await engine.run("STORAGE FLUSH TABLE a");
    await engine.database.close();
    const seqs = manifestOf(engine.dataPath).segments.map(({ maxSeq }) => maxSeq);
    damage(`${engine.dataPath}/${WAL_1}`, 3000);
    const line = `table default.a: its segments contain rows written after the cut, up to _seq ${seqs[0]}`;
    for (const [args, code] of [
      [[], 1],
      [["--accept-loss"], 0],
    ] as const) {
      const found = maintain("repair", [engine.dataPath, ...args]);
      expect(found.code).toBe(code);
      expect(found.text).toContain(`keeps   ${line}`);
      expect(found.text).not.toContain("keeps   table default.b");
    }
    await engine.reopen();
    expect(await engine.rows("SELECT id FROM a")).toEqual([[2]]);
    expect(await engine.rows("SELECT id FROM b")).toEqual([]);
  });

  test("repair of a damaged log lets no client resume from before the cut", () => {
    const path = copyOf(killed);
    damage(`${path}/${WAL_2}`, 5000);
    expect(maintain("repair", [path, "--accept-loss"]).code).toBe(0);
    const { tables } = manifestOf(path);
    const highWater = readFileSync(`${path}/wal/HWM`);
    const own = OWN_TABLES.map(({ tableId }) => tableId);
    expect(new Set(tables.map(({ tableId }) => tableId))).toEqual(new Set([1, 2, 3, 4, ...own]));
    for (const { lowWaterSeq } of tables) {
      expect(Number(lowWaterSeq)).toBe(u53At(highWater, 0));
    }
  });

  // Verifies that a repair that was interrupted at any point can be repeated, and never reuses a
  // seq. The test makes the disk fail at each write in turn. The newest seqs are only in intact
  // frames after the damage.
  test("repair starts over if it was stopped before it changed the disk", () => {
    const path = copyOf(killed);
    writeFileSync(`${path}/wal/HWM`, "");
    damage(`${path}/${WAL_2}`, 5000);
    damage(`${path}/segments/1/1.seg`, 300);
    const highWater = readFileSync(`${killed}/wal/HWM`);
    const newest = Math.max(u53At(highWater, 0), u53At(highWater, 16));
    // The clock is set in the past, so it cannot yield a seq above those in the log.
    const clock = new ManualClock();
    let stopCount = 0;
    for (; stopCount < 100; stopCount += amountOf({ usual: 6, thorough: 1 })) {
      const copy = copyOf(path);
      const disk = diskThatFails(copy, stopCount);
      const { code } = maintain("repair", [copy, "--accept-loss"], { clock, disk });
      if (code !== 0) {
        const again = maintain("repair", [copy, "--accept-loss"], { clock });
        expect(again.code, `${stopCount}: ${again.text}`).toBe(0);
      }
      expect(maintain("verify", [copy]).code, `${stopCount}`).toBe(0);
      const floor = u53At(readFileSync(`${copy}/wal/HWM`), 0);
      expect(floor, `${stopCount}`).toBeGreaterThanOrEqual(newest);
      const { segments, tables } = manifestOf(copy);
      expect(segments.filter(({ quarantined }) => quarantined)).toHaveLength(1);
      for (const { lowWaterSeq } of tables) expect(Number(lowWaterSeq)).toBe(floor);
      if (code === 0) break;
    }
    expect(stopCount).toBeGreaterThan(10);
    expect(stopCount).toBeLessThan(100);
  });

  test("repair gives up changes after damage in the catalog's own log, and keeps a copy", () => {
    const path = copyOf(killed);
    const file = `${path}/catalog.sqlite-wal`;
    const bytes = readFileSync(file);
    damage(file, bytes.length - 100);
    const { code, text } = maintain("repair", [path]);
    expect(text).toMatch(/^to lose .*catalog\.sqlite-wal from byte \d+/m);
    expect(code).toBe(1);
    const done = maintain("repair", [path, "--accept-loss"]);
    expect(done.code).toBe(0);
    expect(readFileSync(`${path}/lost+found/catalog.sqlite-wal`).length).toBe(bytes.length);
    expect(maintain("verify", [path]).code).toBe(0);
  });
});
