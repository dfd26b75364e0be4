/**
 * Tests the small files that contain a growing number: which of their bytes count as damage, and
 * how a repair changes them.
 */
import { expect, test } from "bun:test";
import { DiskError } from "../../../src/base/errors.ts";
import { rewriteNumberFile } from "../../../src/storage/files.ts";
import { checkNumberFile, openHighWater } from "../../../src/storage/local_wal/high_water.ts";
import { SimulatedDisk } from "../../support/simulated_disk.ts";

const PATH = "/HWM";

/** Returns a disk with a file to which `numberCount` numbers have been written: 1001, 1002, … */
function diskAfter(numberCount: number): SimulatedDisk {
  const disk = new SimulatedDisk();
  const { file } = openHighWater(disk, PATH);
  for (let count = 1; count <= numberCount; count += 1) file.write(1000 + count);
  file.close();
  return disk;
}

test.each([
  [0, 0],
  [1, 1001],
  [2, 1002],
  [3, 1003],
])("checkNumberFile finds nothing wrong after %d numbers", (numberCount, value) => {
  expect(checkNumberFile(diskAfter(numberCount), PATH)).toEqual({ value, damage: [] });
});

test("checkNumberFile finds damage to any byte, and still returns a number", () => {
  for (let offset = 0; offset < 32; offset += 1) {
    const disk = diskAfter(3);
    disk.damage(PATH, offset);
    const { value, damage } = checkNumberFile(disk, PATH);
    expect(damage.map((fault) => fault.offset)).toEqual([offset < 16 ? 0 : 16]);
    // The third number is in the second slot.
    expect(value).toBe(offset < 16 ? 1003 : 1002);
  }
});

test("checkNumberFile finds a file that is missing, too short or too long", () => {
  expect(checkNumberFile(new SimulatedDisk(), PATH).damage).toHaveLength(1);
  for (const length of [1, 15, 16, 31, 33]) {
    const disk = diskAfter(2);
    disk.open(PATH, {}).truncate(length);
    expect(checkNumberFile(disk, PATH).damage.length, `${length} bytes`).toBeGreaterThan(0);
  }
});

test("rewriteNumberFile makes any file valid", () => {
  for (const spoil of [
    (disk: SimulatedDisk) => disk.remove(PATH),
    (disk: SimulatedDisk) => disk.damage(PATH, 20),
    (disk: SimulatedDisk) => disk.open(PATH, {}).truncate(7),
    (disk: SimulatedDisk) => disk.open(PATH, {}).truncate(70),
  ]) {
    const disk = diskAfter(3);
    spoil(disk);
    rewriteNumberFile(disk, PATH, 5000);
    expect(checkNumberFile(disk, PATH)).toEqual({ value: 5000, damage: [] });
    expect(openHighWater(disk, PATH).value).toBe(5000);
  }
});

test("write keeps the last good number if one write fails and the next is torn", () => {
  const disk = diskAfter(3);
  const { file } = openHighWater(disk, PATH);
  disk.faultPlan = (operation) => (operation === "write" ? { code: "EIO" } : undefined);
  expect(() => file.write(1004)).toThrow(DiskError);
  disk.faultPlan = undefined;
  file.write(1005);
  // Tears the slot of the last write. This is the first slot, because the third number is in the
  // second slot.
  disk.damage(PATH, 3);
  expect(checkNumberFile(disk, PATH).value).toBe(1003);
});
