/** Tests how much free space a backup requires: at the limit, below it, and without a reserve. */
import { expect, test } from "bun:test";
import { requireFreeSpace } from "../../src/backup/free_space.ts";
import { SimulatedDisk } from "../support/simulated_disk.ts";

test("requireFreeSpace requires space for the bytes and the reserve, and names both", () => {
  const disk = new SimulatedDisk();
  disk.capacityBytes = 150;
  const action = "copy x";
  requireFreeSpace(disk, "/", { action, bytes: 99, minFreeBytes: 50 });
  requireFreeSpace(disk, "/", { action, bytes: 100, minFreeBytes: 50 });
  expect(() => requireFreeSpace(disk, "/", { action, bytes: 101, minFreeBytes: 50 })).toThrow(
    "Cannot copy x: this needs 101 bytes, and at least 50 bytes must remain free, but only 150 are free",
  );
  requireFreeSpace(disk, "/", { action, bytes: 150, minFreeBytes: 0 });
  expect(() => requireFreeSpace(disk, "/", { action, bytes: 151, minFreeBytes: 0 })).toThrow(
    "Cannot copy x: this needs 151 bytes, but only 150 are free",
  );
});
