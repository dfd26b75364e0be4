/**
 * Verifies that the memory of the process is reported as the system measures it, and that garbage
 * is the amount by which the heap exceeds its recent minimum. Figures that the system does not
 * report are absent.
 */
import { expect, test } from "bun:test";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { bunDisk } from "../../src/base/bun_disk.ts";
import { DiskError } from "../../src/base/errors.ts";
import { ProcessMemoryGauge } from "../../src/base/process_memory.ts";
import { testThoroughly } from "../support/requirements.ts";

test("ProcessMemoryGauge reads the memory of mapped files from Linux", () => {
  const gauge = new ProcessMemoryGauge({
    readFile: () => new TextEncoder().encode("VmRSS:\t   90 kB\nRssFile:\t   34567 kB\n"),
  });
  expect(gauge.read().fileBytes).toBe(34_567 * 1024);
});

test("ProcessMemoryGauge works if the file or the line is missing", () => {
  const missing = (path: string): never => {
    throw new DiskError("ENOENT", path, "open");
  };
  expect(new ProcessMemoryGauge({ readFile: missing }).read().fileBytes).toBeUndefined();
  const empty = new ProcessMemoryGauge({ readFile: () => new Uint8Array() });
  expect(empty.read().fileBytes).toBeUndefined();
});

/**
 * Collects the garbage left by earlier tests until a collection no longer makes the heap smaller.
 */
function collectAll(gauge: ProcessMemoryGauge): void {
  let heapBytes = Infinity;
  for (;;) {
    Bun.gc(true);
    const next = gauge.read().heapBytes;
    if (next >= heapBytes) return;
    heapBytes = next;
  }
}

testThoroughly(
  "ProcessMemoryGauge counts growth since the smallest of the last six samples as garbage",
  () => {
    const gauge = new ProcessMemoryGauge(bunDisk);
    collectAll(gauge);
    gauge.sample();
    const before = gauge.read();
    const objects = Array.from({ length: 200_000 }, (_, id) => ({ id, text: `text ${id}` }));
    const grown = gauge.read();
    expect(grown.heapBytes - before.heapBytes).toBeGreaterThan(5_000_000);
    expect(grown.liveBytes).toBeLessThanOrEqual(before.liveBytes);
    Bun.gc(true);
    for (let count = 0; count < 6; count += 1) gauge.sample();
    expect(gauge.read().liveBytes - before.liveBytes).toBeGreaterThan(5_000_000);
    expect(objects).toHaveLength(200_000);
    const array = new Uint8Array(20_000_000);
    Bun.gc(true);
    const { arrayBytes, heapBytes, liveBytes, residentBytes } = gauge.read();
    expect(arrayBytes).toBeGreaterThanOrEqual(array.length);
    expect(liveBytes).toBeLessThanOrEqual(heapBytes);
    expect(heapBytes).toBeLessThan(residentBytes);
  },
);

testThoroughly(
  "ProcessMemoryGauge does not count files as arrays, whether mapped or just unmapped",
  () => {
    const gauge = new ProcessMemoryGauge(bunDisk);
    const folder = mkdtempSync(join(tmpdir(), "tidemark-mapped-"));
    try {
      const path = join(folder, "file");
      writeFileSync(path, new Uint8Array(64_000_000));
      Bun.gc(true);
      const before = gauge.read().arrayBytes;
      const file = bunDisk.map(path);
      expect(Math.abs(gauge.read().arrayBytes - before)).toBeLessThan(1_000_000);
      file.release();
      expect(Math.abs(gauge.read().arrayBytes - before)).toBeLessThan(1_000_000);
    } finally {
      rmSync(folder, { recursive: true, force: true });
    }
  },
);
