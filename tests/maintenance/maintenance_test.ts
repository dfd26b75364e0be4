/**
 * Tests `tidemark verify` and `tidemark repair` on real directories: they find damage anywhere, a
 * check changes no byte, and after a repair a server starts and never returns a wrong result.
 */
import { Database } from "bun:sqlite";
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
import { basename, dirname, join } from "node:path";
import { bunDisk } from "../../src/base/bun_disk.ts";
import type { Disk } from "../../src/base/disk.ts";
import { silentLog } from "../../src/base/log.ts";
import { CatalogDatabase } from "../../src/catalog/mod.ts";
import { AUDIT_TABLE, OWN_TABLES } from "../../src/sql/mod.ts";
import {
  copyOf,
  diskThatFails,
  freshDirectory,
  killedDirectory,
  maintain,
  OpenDirectory,
  removeDirectories,
  serverOn,
  treeOf,
} from "../support/maintenance.ts";
import { ManualClock } from "../support/manual_clock.ts";
import { testThoroughly } from "../support/requirements.ts";
import { headerOfFormat, openSegmentFile, withoutLastDeletion } from "../support/segment_files.ts";
import { TestEngine } from "../support/sql_engine.ts";
import { amountOf, shareOf } from "../support/thoroughness.ts";

const WAL_1 = "wal/0000000001.wal";
const WAL_2 = "wal/0000000002.wal";
const WAL_3 = "wal/0000000003.wal";

let killed: string;

beforeAll(async () => {
  killed = await killedDirectory();
});

afterAll(removeDirectories);

function damage(path: string, offset: number, mask = 0x55): void {
  const bytes = readFileSync(path);
  bytes[offset] = (bytes[offset] ?? 0) ^ mask;
  writeFileSync(path, bytes);
}

/** Returns a function that yields the path of a file with this name in a data directory. */
function at(name: string): (path: string) => string {
  return (path) => `${path}/${name}`;
}

/**
 * Returns a function that yields the path of the first file below a folder whose name has this
 * ending.
 */
function below(folder: string, end: string): (path: string) => string {
  return (path) => fileIn(`${path}/${folder}`, end);
}

/** Returns the first file below a directory whose name has this ending. */
function fileIn(directory: string, end: string): string {
  const names = readdirSync(directory, { recursive: true, encoding: "utf8" }).toSorted();
  return join(directory, names.find((name) => name.endsWith(end)) ?? "none");
}

/** Returns the offset at which the frames of a log file end; zeros follow. */
function endOfFrames(path: string): number {
  const bytes = readFileSync(path);
  let end = bytes.length;
  while (bytes[end - 1] === 0) end -= 1;
  return end;
}

describe("verify reports damage and changes nothing", () => {
  test("verify accepts a killed server's directory, and changes no byte", () => {
    const before = treeOf(killed);
    const { code, text, told } = maintain("verify", [killed]);
    expect({ code, told }).toEqual({ code: 0, told: "" });
    expect(text).toMatch(/is sound: \d+ files, [\d.]+ MB checked; 0 damaged places, 0 notes$/);
    expect(treeOf(killed)).toEqual(before);
    // The files match the fixture's description, so that the tests below damage the intended ones.
    for (const name of ["catalog.sqlite-wal", WAL_1, WAL_2, WAL_3]) {
      expect(before[name], name).toBeDefined();
    }
  });

  test("verify changes no byte of a damaged directory either", () => {
    const path = copyOf(killed);
    damage(fileIn(`${path}/segments/1`, ".seg"), 300);
    damage(`${path}/${WAL_2}`, 5000);
    const before = treeOf(path);
    expect(maintain("verify", [path]).code).toBe(1);
    expect(treeOf(path)).toEqual(before);
  });

  // Verifies that no damaged byte goes unnoticed. The test damages sampled bytes one at a time, in
  // the written part of each kind of file whose bytes are all covered by a checksum.
  test.each([
    ["format.json", at("format.json"), 20],
    ["the catalog's log", at("catalog.sqlite-wal"), 60],
    ["the first log file", at(WAL_1), 40],
    ["a log file in the middle", at(WAL_2), 40],
    ["the last log file", at(WAL_3), 40],
    ["the high-water file", at("wal/HWM"), 32],
    ["the reserved ids", at("wal/IDS"), 32],
    ["a segment", below("segments/1", ".seg"), 80],
    ["a packed segment", below("segments/2", ".seg"), 80],
    ["a deletion vector", below("segments/1", ".dv"), 40],
    ["an uploaded file", below("files", ".txt"), 40],
  ])("notices damage to %s, whichever byte it is", (_what, fileOf, thorough) => {
    const sampleCount = amountOf({ usual: Math.ceil(thorough / 15), thorough });
    const path = copyOf(killed);
    const file = fileOf(path);
    const good = readFileSync(file);
    const length = file.endsWith(".wal") ? endOfFrames(file) : good.length;
    const unnoticed: number[] = [];
    for (let sample = 0; sample < sampleCount; sample += 1) {
      const offset = Math.floor((sample * length) / sampleCount);
      const bad = Buffer.from(good);
      bad[offset] = (bad[offset] ?? 0) ^ (1 + (sample % 255));
      writeFileSync(file, bad);
      if (maintain("verify", [path]).code === 0) unnoticed.push(offset);
    }
    expect(unnoticed).toEqual([]);
  });

  const CUT = [
    ["format.json", at("format.json")],
    ["the first log file", at(WAL_1)],
    ["the last log file", at(WAL_3)],
    ["the high-water file", at("wal/HWM")],
    ["the reserved ids", at("wal/IDS")],
    ["a segment", below("segments/1", ".seg")],
    ["a packed segment", below("segments/2", ".seg")],
    ["a deletion vector", below("segments/1", ".dv")],
    ["an uploaded file", below("files", ".txt")],
  ] as const;

  test.each(shareOf(CUT, { oneOf: 3 }))("notices that %s is too short", (_what, fileOf) => {
    const path = copyOf(killed);
    const file = fileOf(path);
    const good = readFileSync(file);
    const length = file.endsWith(".wal") ? endOfFrames(file) : good.length;
    for (const cut of [1, length >> 1, length - 1]) {
      writeFileSync(file, good.subarray(0, cut));
      expect(maintain("verify", [path]).code, `cut at ${cut}`).toBe(1);
    }
  });

  test("verify detects an intact deletion vector of an earlier generation", () => {
    const path = copyOf(killed);
    const file = below("segments/1", ".dv")(path);
    const earlier = withoutLastDeletion(readFileSync(file), file);
    writeFileSync(file, earlier.bytes);
    const { code, lines } = maintain("verify", [path]);
    expect(code).toBe(1);
    expect(lines[0]).toMatch(/^damage {2}/);
    expect(lines[0]).toContain(`with ${earlier.count} replaced rows, not generation`);
  });

  test("verify detects damage to the catalog unless the catalog still reads the same", () => {
    const path = copyOf(killed);
    const file = `${path}/catalog.sqlite`;
    // Everything is in this one file, as after an orderly shutdown.
    CatalogDatabase.open({ path: file, clock: new ManualClock(), log: silentLog }).close();
    const good = readFileSync(file);
    const truth = contentOf(file);
    const wrong: number[] = [];
    let noticedCount = 0;
    const sampleCount = amountOf({ usual: 15, thorough: 150 });
    for (let sample = 0; sample < sampleCount; sample += 1) {
      const offset = Math.floor((sample * good.length) / sampleCount);
      const bad = Buffer.from(good);
      bad[offset] = (bad[offset] ?? 0) ^ 0x55;
      writeFileSync(file, bad);
      if (maintain("verify", [path]).code !== 0) noticedCount += 1;
      else if (contentOf(file) !== truth) wrong.push(offset);
    }
    expect(wrong).toEqual([]);
    expect(noticedCount).toBeGreaterThan(sampleCount / 15);
  });

  const MISSING = [
    ["a segment", below("segments/1", ".seg"), "(table default.first)"],
    ["a deletion vector", below("segments/2", ".dv"), "(table default.second)"],
    ["an uploaded file", below("files", ".txt"), "(table default.files)"],
    ["the catalog", at("catalog.sqlite"), "catalog.sqlite"],
    ["the high-water file", at("wal/HWM"), "wal/HWM"],
    ["the last log file", at(WAL_3), WAL_2],
    ["a log file in the middle", at(WAL_2), WAL_1],
    ["the first log file", at(WAL_1), WAL_1],
  ] as const;

  test.each(shareOf(MISSING, { oneOf: 2 }))("names %s that is missing", (_what, fileOf, named) => {
    const path = copyOf(killed);
    rmSync(fileOf(path));
    const { code, lines } = maintain("verify", [path]);
    expect(code).toBe(1);
    expect(lines[0]).toMatch(/^damage {2}/);
    expect(lines[0]).toContain(named);
  });

  test.each(["catalog.sqlite", "catalog.sqlite-wal"])(
    "verify reports a directory in the place of %s as damage, and repair advises a backup",
    (name) => {
      const path = copyOf(killed);
      rmSync(`${path}/${name}`, { force: true });
      mkdirSync(`${path}/${name}`);
      const { code, lines } = maintain("verify", [path]);
      const what = `${path}/${name} at byte 0: it is a directory, but must be a file`;
      expect([code, lines[0]]).toEqual([1, `damage  ${what}`]);
      const repaired = maintain("repair", [path]);
      expect(repaired.code).toBe(1);
      expect(repaired.text).toContain("backup");
    },
  );

  test("verify reports a torn tail and unlisted files, which are not damage", () => {
    const path = copyOf(killed);
    const last = `${path}/${WAL_3}`;
    const bytes = readFileSync(last);
    const end = Math.ceil(endOfFrames(last) / 8) * 8;
    // The beginning of a frame that was never completed or acknowledged.
    bytes.copy(bytes, end, 64, 64 + 40);
    writeFileSync(last, bytes);
    writeFileSync(`${path}/segments/1/999.seg`, "left by a crash");
    writeFileSync(join(dirname(fileIn(`${path}/files`, ".txt")), "9-stray.txt"), "stray");
    const { code, lines } = maintain("verify", [path]);
    expect(lines).toHaveLength(4);
    expect(lines[0]).toMatch(/^note .*999\.seg: the manifest does not list it/);
    expect(lines[1]).toMatch(/^note .*0003\.wal: a torn group from byte \d+ to \d+/);
    expect(lines[2]).toMatch(/^note .*9-stray\.txt: the catalog does not list it/);
    expect(lines[3]).toMatch(/is sound: .*0 damaged places, 3 notes$/);
    expect(code).toBe(0);
  });

  test("verify distinguishes an upload that a crash interrupted from one whose bytes are missing", () => {
    const path = copyOf(killed);
    const catalog = CatalogDatabase.open({
      path: `${path}/catalog.sqlite`,
      clock: new ManualClock(),
      log: silentLog,
    });
    const [entry] = catalog.files.all();
    if (entry === undefined) throw new Error("the fixture has an uploaded file");
    catalog.files.add([{ ...entry, fileId: "77", storedName: "77-b.txt" }]);
    catalog.close();
    const cutOff = maintain("verify", [path]);
    expect(cutOff.lines[0]).toMatch(/^note .*77-b\.txt: listed but missing: a crash interrupted/);
    expect(cutOff.code).toBe(0);
    rmSync(fileIn(`${path}/files`, ".txt"));
    const gone = maintain("verify", [path]);
    expect(gone.lines[0]).toMatch(
      /^damage .*-a\.txt at byte 0: it is missing \(table default\.files\)/,
    );
    expect(gone.code).toBe(1);
  });

  testThoroughly(
    "verify finds the row in a segment whose bytes are missing, but ignores dropped tables",
    async () => {
      const path = copyOf(killed);
      const copies: string[] = [];
      {
        await using server = await serverOn(path);
        for (const sql of ["STORAGE FLUSH TABLE default.files", "DROP TABLE default.files"]) {
          await server.rows(sql);
          server.kill("SIGTERM");
          await server.exited();
          copies.push(copyOf(path));
          await server.start();
          server.token = (await server.login("ada")).access_token;
        }
      }
      const [flushed = "", dropped = ""] = copies;
      rmSync(fileIn(`${flushed}/files`, ".txt"));
      const gone = maintain("verify", [flushed]);
      expect(gone.lines[0]).toMatch(/^damage .*-a\.txt at byte 0: it is missing/);
      expect(gone.code).toBe(1);
      expect(maintain("verify", [dropped]).code).toBe(0);
    },
  );

  test("verify finds damage to the records of idempotency keys, which no catalog lists", async () => {
    await using engine = await TestEngine.open();
    await engine.run("CREATE TABLE t (id INT PRIMARY KEY)");
    await engine.ask("INSERT INTO t VALUES (1)", { idempotency: { key: "k", digest: "d" } });
    await engine.database.store.flush(0xffff_ffff);
    await engine.database.close();
    const path = copyOf(engine.dataPath);
    await engine.reopen();
    const sound = maintain("verify", [path]);
    expect([sound.code, sound.lines.length, sound.text.includes("0 notes")]).toEqual([0, 1, true]);
    const segment = fileIn(`${path}/segments/4294967295`, ".seg");
    const bytes = readFileSync(segment);
    writeFileSync(segment, bytes.fill(0x55, bytes.length >> 2));
    const damaged = maintain("verify", [path]);
    expect(damaged.lines[0]).toMatch(/^damage .*\(table system\.idempotent_answers\)/);
    expect(damaged.code).toBe(1);
    expect(maintain("repair", [path]).text).toContain("table system.idempotent_answers: segment 1");
    expect(maintain("verify", [path]).code).toBe(0);
  });

  test("verify reports an empty catalog, unless the first start stopped before it created one", () => {
    const path = copyOf(killed);
    rmSync(`${path}/catalog.sqlite-wal`);
    truncateSync(`${path}/catalog.sqlite`, 0);
    expect(maintain("verify", [path]).text).toMatch(
      /^damage .*catalog\.sqlite at byte 0: it is empty/,
    );

    const unborn = freshDirectory();
    writeFileSync(`${unborn}/format.json`, '{"format":1}\n');
    mkdirSync(`${unborn}/wal`);
    expect(maintain("verify", [unborn])).toMatchObject({ code: 0 });
    expect(maintain("repair", [unborn])).toMatchObject({ code: 0 });
  });

  test("verify reports its progress every few seconds", () => {
    const clock = new ManualClock();
    let nowMs = 0;
    clock.monotonicMs = () => (nowMs += 1000);
    const { told } = maintain("verify", [killed], { clock });
    expect(told.split("\n").length).toBeGreaterThan(1);
    expect(told).toMatch(/^checked \d+ files?, [\d.]+ MB, now \//);
  });
});

test.each(["verify", "repair"] as const)("%s explains its usage on request", (command) => {
  for (const args of [["--help"], ["-h"], [killed, "--help"]]) {
    const { code, told, text } = maintain(command, args);
    expect({ code, told }).toEqual({ code: 0, told: "" });
    expect(text).toStartWith(`usage: tidemark ${command} <data_path>`);
  }
});

describe.each(["verify", "repair"] as const)(
  "%s exits with 2 and changes nothing if its arguments or its directory are wrong",
  (command) => {
    function expectRefusal(args: readonly string[], message: string | RegExp): void {
      const { code, lines, told } = maintain(command, args);
      expect(told).toMatch(message);
      expect({ code, lines }).toEqual({ code: 2, lines: [] });
    }

    test("no path, two paths or an unknown option is refused", () => {
      expectRefusal([], `Cannot ${command}: name the data directory\nusage: tidemark ${command}`);
      expectRefusal([""], "name the data directory");
      expectRefusal([killed, "/tmp"], "name only one data directory, not /tmp as well");
      expectRefusal([killed, "--force"], "unknown option --force");
      if (command === "verify") expectRefusal([killed, "--accept-loss"], "unknown option");
    });

    test("a missing path, a file or a directory of another program is refused", () => {
      const directory = freshDirectory();
      const missing = join(directory, "missing");
      expectRefusal([missing], `Cannot ${command} ${missing}: there is no such directory`);
      expect(existsSync(missing)).toBe(false);
      const file = join(directory, "file");
      writeFileSync(file, "x");
      expectRefusal([file], /it is a file, not a directory/);
      const other = join(directory, "other");
      mkdirSync(other);
      writeFileSync(join(other, "precious.txt"), "x");
      expectRefusal([other], /it is not a data directory/);
      expect(readdirSync(other)).toEqual(["precious.txt"]);
    });

    test("a directory or a catalog of a newer format is refused", () => {
      const path = copyOf(killed);
      writeFileSync(`${path}/format.json`, '{"format":2}\n');
      const before = treeOf(path);
      expectRefusal([path], /it has format 2, but this version reads 1/);
      expect(treeOf(path)).toEqual(before);

      const other = copyOf(killed);
      const catalog = new Database(`${other}/catalog.sqlite`);
      catalog.run("PRAGMA user_version = 99");
      catalog.run("PRAGMA wal_checkpoint(TRUNCATE)");
      catalog.close();
      const tree = treeOf(other, ["LOCK"]);
      expectRefusal([other], /version 99.*; start the newer version of Tidemark/);
      expect(treeOf(other, ["LOCK"])).toEqual(tree);
    });

    test("a segment of a newer format is reported, but not as damage", () => {
      const path = copyOf(killed);
      const file = `${path}/segments/1/1.seg`;
      const bytes = readFileSync(file);
      bytes.set(headerOfFormat(9));
      writeFileSync(file, bytes);
      const before = treeOf(path);
      expectRefusal([path], /1\.seg: it has format 9, but this version reads 6; start the newer/);
      expect(treeOf(path)).toEqual(before);
    });

    test("a directory that another process uses is refused", () => {
      const path = copyOf(killed);
      const release = bunDisk.lock(`${path}/LOCK`);
      const before = treeOf(path);
      const holder = `another process is using it (pid ${process.pid}); stop the server that runs on`;
      expectRefusal([path], holder);
      expect(treeOf(path)).toEqual(before);
      // A server may not have written its process id yet, or the text is not a process id.
      for (const text of ["", "17", "-1\n", "0\n", "17\n18\n"]) {
        writeFileSync(`${path}/LOCK`, text);
        expectRefusal([path], "another process is using it; stop the server");
      }
      release?.();
    });
  },
);

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
    const lost = `lost    table default.first: segment ${segmentId}, 300 row versions from seq `;
    expect(text.split("\n").filter((line) => line.startsWith(lost))).toHaveLength(1);
    // No file of the segment remains in its directory, but every byte is kept elsewhere.
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
    expect(text).toMatch(/^lost {4}table default\.second: segment \d+, 300 row versions/m);
    expect(maintain("verify", [path]).code).toBe(0);
    await using database = await OpenDirectory.open(path);
    const read = await database.ask("SELECT count(*) FROM default.second");
    expect(read.error).toMatchObject({ code: "DATA_DAMAGED" });
    expect(await database.rows("SELECT count(*) FROM default.first")).toEqual([[300]]);
  });

  // No client can drop the table of the audit log, so without a repair the table would never accept
  // an event again.
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
        /^lost {4}system\.audit_log: segment 1, \d+ versions of events; it continues without them/m,
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
    ["of another length", (path: string) => writeFileSync(path, "short"), "it has 5 bytes"],
    ["that has changed", (path: string) => damage(path, 7), "its checksum does not match"],
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
    expect(text).toMatch(/^lost {4}the secret that signs tokens: all users must log in again/m);
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
    expect(text).toMatch(/Cannot repair .*catalog\.sqlite: .*put back a backup/);
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
      /^to lose .*0002\.wal from byte \d+: commits after seq \d+, which is the last that remains in the log, up to seq \d+$/m,
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
    // The removed parts are kept: whole files unchanged, and the rest of a file as a copy.
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
    const line = `table default.a: its segments have rows from after the cut, up to seq ${seqs[0]}`;
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

  // Verifies that a repair that stops at any point can be repeated, and forgets no seq. The test
  // makes the disk fail at each change in turn. The newest seqs are only in intact frames after the
  // damage.
  test("repair starts over if it was stopped before it changed the disk", () => {
    const path = copyOf(killed);
    writeFileSync(`${path}/wal/HWM`, "");
    damage(`${path}/${WAL_2}`, 5000);
    damage(`${path}/segments/1/1.seg`, 300);
    const highWater = readFileSync(`${killed}/wal/HWM`);
    const newest = Math.max(u53At(highWater, 0), u53At(highWater, 16));
    // The clock is in the past, so no new seq would be above the seqs in the log.
    const clock = new ManualClock();
    let stopCount = 0;
    for (; stopCount < 100; stopCount += amountOf({ usual: 3, thorough: 1 })) {
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

/**
 * Checks that a database on the directory serves every table except default.first, for which it
 * reports the damage.
 */
/** Returns the offset of the packed text in a segment's second column. */
function offsetOfPacked(file: string): number {
  const reader = openSegmentFile(bunDisk, file, readFileSync(file).length);
  const entry = reader.chunkEntry(2, 0);
  reader.close();
  expect(entry?.isPacked).toBe(true);
  return entry?.offset ?? 0;
}

async function expectFirstDamagedOnly(path: string): Promise<void> {
  await using database = await OpenDirectory.open(path);
  const read = await database.ask("SELECT count(*) FROM default.first");
  expect(read.error).toMatchObject({ code: "DATA_DAMAGED" });
  expect(read.error?.message).toContain("segments/1/1.seg");
  // Only the lost segment could show whether a row with this key exists.
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

function contentOf(path: string): string {
  const copy = join(freshDirectory(), "catalog.sqlite");
  writeFileSync(copy, readFileSync(path));
  const catalog = CatalogDatabase.open({ path: copy, clock: new ManualClock(), log: silentLog });
  const content = [
    catalog.tables(),
    catalog.accounts.users(),
    catalog.files.all(),
    catalog.namespaces(),
    catalog.manifest.load(),
    catalog.manifest.highestSeq(),
  ];
  catalog.close();
  return JSON.stringify(content);
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

test.each(["verify", "repair"] as const)(
  "%s writes nothing to the temporary directory while it reads segments and the log",
  (command) => {
    const temporary = freshDirectory();
    const left = new Map<string, string[]>();
    const disk: Disk = {
      ...bunDisk,
      open(path, options) {
        const kind = /\.(?:seg|wal)$/.exec(path)?.[0];
        if (kind !== undefined) left.set(kind, readdirSync(temporary));
        return bunDisk.open(path, options);
      },
    };
    const run = maintain(command, [copyOf(killed)], { disk, temporary });
    expect(run).toMatchObject({ code: 0 });
    expect(left.get(".seg")).toEqual([]);
    expect(left.get(".wal")).toEqual([]);
  },
);
