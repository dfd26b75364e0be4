/**
 * Tests `tidemark verify` on real directories: it finds damage anywhere, and changes no byte.
 */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { mkdirSync, readFileSync, rmSync, truncateSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { silentLog } from "../../src/base/log.ts";
import { CatalogDatabase } from "../../src/catalog/mod.ts";
import {
  copyOf,
  freshDirectory,
  killedDirectory,
  maintain,
  removeDirectories,
  serverOn,
  treeOf,
} from "../support/maintenance.ts";
import { ManualClock } from "../support/manual_clock.ts";
import { testThoroughly } from "../support/requirements.ts";
import { withoutLastDeletion } from "../support/segment_files.ts";
import { TestEngine } from "../support/sql_engine.ts";
import { amountOf, shareOf } from "../support/thoroughness.ts";
import { at, below, damage, endOfFrames, fileIn, WAL_1, WAL_2, WAL_3 } from "./damage.ts";

let killed: string;

beforeAll(async () => {
  killed = await killedDirectory();
});

afterAll(removeDirectories);

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

describe("verify reports damage and changes nothing", () => {
  test("verify accepts a killed server's directory, and changes no byte", () => {
    const before = treeOf(killed);
    const { code, text, told } = maintain("verify", [killed]);
    expect({ code, told }).toEqual({ code: 0, told: "" });
    expect(text).toMatch(/is sound: \d+ files, [\d.]+ MB checked; 0 damaged places, 0 notes$/);
    expect(treeOf(killed)).toEqual(before);
    // The data directory has the files that the fixture describes, so the tests below damage the
    // intended files.
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

  // Verifies that no damaged byte goes unnoticed. The test damages sampled bytes one at a time in
  // each kind of file that checksums cover completely.
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
    expect(lines[0]).toContain(
      `it has ${earlier.count} replaced rows, but the manifest lists generation`,
    );
  });

  test("verify detects damage to the catalog unless the catalog still reads the same", () => {
    const path = copyOf(killed);
    const file = `${path}/catalog.sqlite`;
    // After an orderly shutdown, this one file contains the entire catalog.
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
      const what = `${path}/${name} at byte 0: the path is a directory, but must be a file`;
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
    // These bytes are the beginning of a frame that was never completed or acknowledged.
    bytes.copy(bytes, end, 64, 64 + 40);
    writeFileSync(last, bytes);
    writeFileSync(`${path}/segments/1/999.seg`, "left by a crash");
    writeFileSync(join(dirname(fileIn(`${path}/files`, ".txt")), "9-stray.txt"), "stray");
    const { code, lines } = maintain("verify", [path]);
    expect(lines).toHaveLength(4);
    expect(lines[0]).toMatch(/^note .*999\.seg: the manifest does not list this file/);
    expect(lines[1]).toMatch(
      /^note .*0003\.wal: a partly written commit group from byte \d+ to \d+/,
    );
    expect(lines[2]).toMatch(/^note .*9-stray\.txt: the catalog does not list this file/);
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
    expect(cutOff.lines[0]).toMatch(
      /^note .*77-b\.txt: the file is listed but missing, because a crash interrupted/,
    );
    expect(cutOff.code).toBe(0);
    rmSync(fileIn(`${path}/files`, ".txt"));
    const gone = maintain("verify", [path]);
    expect(gone.lines[0]).toMatch(
      /^damage .*-a\.txt at byte 0: the file is missing \(table default\.files\)/,
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
      expect(gone.lines[0]).toMatch(/^damage .*-a\.txt at byte 0: the file is missing/);
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
      /^damage .*catalog\.sqlite at byte 0: the file is empty/,
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
