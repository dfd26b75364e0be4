/** Room for a copy: at its bound, below it, and with nothing to keep free. */
import { expect, test } from "bun:test";
import { requireRoom } from "../../src/copies/room.ts";
import { SimulatedDisk } from "../support/simulated_disk.ts";

test("requireRoom wants the bytes and what stays free besides, and says both", () => {
  const disk = new SimulatedDisk();
  disk.capacityBytes = 150;
  const action = "copy x";
  requireRoom(disk, "/", { action, bytes: 99, minFreeBytes: 50 });
  requireRoom(disk, "/", { action, bytes: 100, minFreeBytes: 50 });
  expect(() => requireRoom(disk, "/", { action, bytes: 101, minFreeBytes: 50 })).toThrow(
    "Cannot copy x: it needs 101 bytes, 50 must stay free, and 150 are free",
  );
  requireRoom(disk, "/", { action, bytes: 150, minFreeBytes: 0 });
  expect(() => requireRoom(disk, "/", { action, bytes: 151, minFreeBytes: 0 })).toThrow(
    "Cannot copy x: it needs 151 bytes, and 150 are free",
  );
});
