/**
 * Tests the simulated disk itself: the changes that a crash may lose or must keep, and injected
 * faults.
 */
import { expect, test } from "bun:test";
import type { Disk } from "../../src/base/disk.ts";
import { DiskError } from "../../src/base/errors.ts";
import { RecordingDisk } from "./recording_disk.ts";
import { SeededRandom } from "./seeded_random.ts";
import { failNth, SimulatedDisk } from "./simulated_disk.ts";

const SEEDS: readonly number[] = Array.from({ length: 200 }, (_, seed) => seed);

function filled(byte: number, count = 512): Uint8Array {
  return new Uint8Array(count).fill(byte);
}

/** Crashes a disk many times. Returns the different states that are found, as text. */
function outcomes(disk: SimulatedDisk, look: (disk: SimulatedDisk) => string): Set<string> {
  return new Set(
    SEEDS.map((seed) => look(disk.crash({ keep: "some", random: new SeededRandom(seed) }))),
  );
}

/** Returns one character per sector: its byte, or "?" if the sector is torn. */
function sectors(disk: Disk, path: string): string {
  if (!disk.exists(path)) return "gone";
  const bytes = disk.readFile(path);
  let text = "";
  for (let start = 0; start < bytes.length; start += 512) {
    const sector = bytes.subarray(start, start + 512);
    text += sector.every((byte) => byte === sector[0]) ? String(sector[0]) : "?";
  }
  return text;
}

function placesOfMoved(disk: SimulatedDisk): string {
  return `${disk.exists("/a/f")} ${disk.exists("/b/g")}`;
}

/** Returns a disk with one durable file of three sectors of zeros. */
async function diskWithFile(): Promise<SimulatedDisk> {
  const disk = new SimulatedDisk();
  const file = disk.open("/f", { create: true });
  file.write(filled(0, 1536), 0);
  await file.sync();
  disk.syncDirectory("/");
  return disk;
}

test("a synced write in a synced directory survives every crash", async () => {
  const disk = await diskWithFile();
  expect(outcomes(disk, (after) => sectors(after, "/f"))).toEqual(new Set(["000"]));
  expect(sectors(disk.crash({ keep: "none" }), "/f")).toBe("000");
});

test("each sector of unsynced writes is kept or lost independently, and never torn", async () => {
  const disk = await diskWithFile();
  const file = disk.open("/f", {});
  file.write(filled(1, 1024), 0);
  file.write(filled(2, 1024), 512);
  const found = outcomes(disk, (after) => sectors(after, "/f"));
  const expected = ["0", "1"].flatMap((first) =>
    ["0", "1", "2"].flatMap((second) => ["0", "2"].map((third) => first + second + third)),
  );
  expect(found).toEqual(new Set(expected));
  expect(sectors(disk.crash({ keep: "none" }), "/f")).toBe("000");
  expect(sectors(disk.crash({ keep: "all" }), "/f")).toBe("122");
  expect(sectors(disk.restart(), "/f")).toBe("122");
});

test("the length of a file that grows without a sync is kept or lost", async () => {
  const disk = await diskWithFile();
  disk.open("/f", {}).write(filled(5), 1536);
  expect(outcomes(disk, (after) => sectors(after, "/f"))).toEqual(new Set(["000", "0000", "0005"]));
});

test("an unsynced truncation is kept or lost", async () => {
  const disk = await diskWithFile();
  disk.open("/f", {}).truncate(512);
  expect(outcomes(disk, (after) => sectors(after, "/f"))).toEqual(new Set(["0", "000"]));
});

test("sync covers only what was written before it was requested", async () => {
  const disk = await diskWithFile();
  const file = disk.open("/f", {});
  disk.holdsSyncs = true;
  file.write(filled(1), 0);
  const synced = file.sync();
  file.write(filled(2), 512);
  expect(sectors(disk.crash({ keep: "none" }), "/f")).toBe("000");
  disk.releaseSyncs();
  await synced;
  expect(sectors(disk.crash({ keep: "none" }), "/f")).toBe("100");
  expect(disk.syncCount).toBe(2);
});

test("sync takes effect in a later microtask", async () => {
  const disk = await diskWithFile();
  const file = disk.open("/f", {});
  file.write(filled(1), 0);
  const synced = file.sync();
  expect(sectors(disk.crash({ keep: "none" }), "/f")).toBe("000");
  await synced;
  expect(sectors(disk.crash({ keep: "none" }), "/f")).toBe("100");
});

test("syncDirectorySoon takes effect later, for the names that existed when it began", async () => {
  const disk = new SimulatedDisk();
  disk.holdsSyncs = true;
  disk.open("/early", { create: true }).close();
  const synced = disk.syncDirectorySoon("/");
  disk.open("/late", { create: true }).close();
  expect(disk.crash({ keep: "none" }).exists("/early")).toBe(false);
  disk.releaseSyncs();
  await synced;
  const after = disk.crash({ keep: "none" });
  expect([after.exists("/early"), after.exists("/late")]).toEqual([true, false]);
  disk.syncDirectory("/");
  expect(disk.crash({ keep: "none" }).exists("/late")).toBe(true);
});

test("syncDirectorySoon that fails makes no name durable", async () => {
  const disk = new SimulatedDisk();
  disk.open("/f", { create: true }).close();
  disk.faultPlan = failNth("syncDirectory", 1, { code: "EIO" });
  const failure: unknown = await disk.syncDirectorySoon("/").catch((error: unknown) => error);
  expect(failure).toBeInstanceOf(DiskError);
  expect(disk.crash({ keep: "none" }).exists("/f")).toBe(false);
});

test("a name in a directory that was not synced is present or absent after a crash", async () => {
  const disk = new SimulatedDisk();
  const file = disk.open("/new", { create: true });
  file.write(filled(1), 0);
  await file.sync();
  expect(outcomes(disk, (after) => sectors(after, "/new"))).toEqual(new Set(["gone", "1"]));
  disk.syncDirectory("/");
  expect(outcomes(disk, (after) => sectors(after, "/new"))).toEqual(new Set(["1"]));
  disk.remove("/new");
  expect(outcomes(disk, (after) => sectors(after, "/new"))).toEqual(new Set(["gone", "1"]));
});

test("a move is kept or lost, and leaves the file under one of its names", async () => {
  const disk = await diskWithFile();
  disk.makeDirectory("/a");
  disk.makeDirectory("/b");
  disk.rename("/f", "/a/f");
  disk.syncDirectory("/");
  disk.syncDirectory("/a");
  disk.rename("/a/f", "/b/g");
  expect(outcomes(disk, placesOfMoved)).toEqual(new Set(["true false", "false true"]));

  disk.syncDirectory("/b");
  expect(outcomes(disk, placesOfMoved)).toEqual(new Set(["true true", "false true"]));
  disk.syncDirectory("/a");
  expect(outcomes(disk, placesOfMoved)).toEqual(new Set(["false true"]));
});

test("a directory that was created without a sync takes its files with it when it is lost", () => {
  const disk = new SimulatedDisk();
  disk.makeDirectory("/a/b");
  disk.open("/a/b/f", { create: true });
  disk.syncDirectory("/a/b");
  expect(disk.crash({ keep: "none" }).exists("/a")).toBe(false);
  disk.syncDirectory("/a");
  disk.syncDirectory("/");
  expect(disk.crash({ keep: "none" }).exists("/a/b/f")).toBe(true);
});

test("restart keeps everything, and unsynced data can still be lost afterwards", async () => {
  const disk = await diskWithFile();
  disk.open("/f", {}).write(filled(1), 0);
  disk.makeDirectory("/a");
  disk.rename("/f", "/a/f");
  const restarted = disk.restart();
  expect(sectors(restarted, "/a/f")).toBe("100");
  expect(sectors(restarted.crash({ keep: "none" }), "/f")).toBe("000");
  const file = restarted.open("/a/f", {});
  await file.sync();
  restarted.syncDirectory("/a");
  restarted.syncDirectory("/");
  expect(sectors(restarted.crash({ keep: "none" }), "/a/f")).toBe("100");
  expect(disk.crash({ keep: "none" }).exists("/a")).toBe(false);
});

test("failNth fails only that operation, and a failed write leaves the given number of bytes", async () => {
  const disk = await diskWithFile();
  const file = disk.open("/f", {});
  disk.faultPlan = failNth("write", 2, { code: "EIO", bytesWritten: 512 });
  file.write(filled(1), 0);
  expect(() => file.write(filled(2, 1024), 0)).toThrow("Cannot write /f: EIO");
  file.write(filled(3), 1024);
  expect(sectors(disk, "/f")).toBe("203");
});

test("a failed sync keeps nothing, and the next one does not save earlier writes", async () => {
  const disk = await diskWithFile();
  const file = disk.open("/f", {});
  file.write(filled(1), 0);
  disk.faultPlan = failNth("sync", 1, { code: "EIO" });
  expect(await file.sync().catch(String)).toContain("Cannot sync /f: EIO");
  file.write(filled(2), 512);
  await file.sync();
  expect(outcomes(disk, (after) => sectors(after, "/f"))).toEqual(new Set(["020", "120"]));
});

test("a full disk writes what fits, and has space again once a file is removed", async () => {
  const disk = await diskWithFile();
  disk.capacityBytes = 2048;
  const file = disk.open("/g", { create: true });
  expect(() => file.write(filled(1, 1024), 0)).toThrow("Cannot write /g: ENOSPC");
  expect(sectors(disk, "/g")).toBe("1");
  expect(disk.freeBytes("/")).toBe(0);
  disk.remove("/f");
  file.write(filled(2, 1024), 0);
  expect(sectors(disk, "/g")).toBe("22");
});

test("map is released to length 0, damage is visible everywhere, and lock is exclusive", async () => {
  const disk = await diskWithFile();
  const mapped = disk.map("/f");
  mapped.release();
  expect(mapped.bytes.length).toBe(0);
  disk.damage("/f", 3, 0x10);
  expect(disk.readFile("/f")[3]).toBe(0x10);
  expect(disk.crash({ keep: "none" }).readFile("/f")[3]).toBe(0x10);
  const release = disk.lock("/LOCK");
  expect(disk.lock("/LOCK")).toBeUndefined();
  release?.();
  expect(disk.lock("/LOCK")).toBeDefined();
});

test("RecordingDisk records the order of write, sync and mark", async () => {
  const disk = new RecordingDisk(new SimulatedDisk());
  const file = disk.open("/wal", { create: true });
  file.write(filled(1), 0);
  const synced = file.sync();
  disk.mark("asked");
  await synced;
  disk.mark("answered");
  disk.rename("/wal", "/old");
  expect(disk.describe()).toEqual([
    "open /wal",
    "write /wal",
    "syncBegin /wal",
    "mark asked",
    "syncEnd /wal",
    "mark answered",
    "rename /wal /old",
  ]);
  expect(disk.indexOf("syncEnd", "wal")).toBeLessThan(disk.indexOf("mark", "answered"));
  expect(disk.indexOf("write", "wal", 2)).toBe(-1);
});

test("SeededRandom repeats for the same seed and stays within its bounds", () => {
  const left = new SeededRandom(5);
  const right = new SeededRandom(5);
  for (let step = 0; step < 1000; step += 1) {
    const bound = 1 + (step % 10);
    const number = left.below(bound);
    expect(number).toBe(right.below(bound));
    expect(number >= 0 && number < bound).toBe(true);
  }
  expect(left.shuffle([1, 2, 3, 4]).toSorted((a, b) => a - b)).toEqual([1, 2, 3, 4]);
  expect(new SeededRandom(6).u32()).not.toBe(new SeededRandom(7).u32());
});
