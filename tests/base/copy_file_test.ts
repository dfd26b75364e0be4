/**
 * Verifies that a copied file has the same contents as the original, and that each part is durable
 * before the copy counts as finished.
 */
import { expect, test } from "bun:test";
import { crc32 } from "../../src/base/checksum.ts";
import { copyFile } from "../../src/base/copy_file.ts";
import { SimulatedDisk } from "../support/simulated_disk.ts";

const MIB = 1024 * 1024;

test.each([0, 1, MIB, 2.5 * MIB])("a copy of %p bytes survives a power cut", async (byteCount) => {
  const disk = new SimulatedDisk();
  const bytes = new Uint8Array(byteCount).map((_, index) => index % 251);
  const file = disk.open("/from", { create: true });
  file.write(bytes, 0);
  const reported: number[] = [];
  const copied = await copyFile("/from", "/to", {
    disk,
    pause: () => Promise.resolve(),
    onCopied: (count) => reported.push(count),
  });
  expect(copied).toEqual({ bytes: byteCount, crc: crc32(bytes) });
  expect(Math.max(0, ...reported)).toBeLessThanOrEqual(MIB);
  disk.syncDirectory("/");
  expect(disk.crash({ keep: "none" }).readFile("/to")).toEqual(bytes);
});
