/**
 * Verifies that the log begins where the manifest says. An acknowledged row is never silently
 * lost, neither through a missing file nor through a catalog that is older or cannot be written.
 */
import { expect, test } from "bun:test";
import { DatabaseError } from "../../../src/base/errors.ts";
import type { Row } from "../../../src/types/mod.ts";
import { ManualClock } from "../../support/manual_clock.ts";
import { MemoryManifest } from "../../support/memory_manifest.ts";
import { SimulatedDisk } from "../../support/simulated_disk.ts";
import {
  commit,
  DATA_PATH,
  defineTable,
  openStore,
  readRows,
} from "../../support/store_fixture.ts";

const TABLE = defineTable(1, [{ kind: "int" }, { kind: "text" }]);
const OTHER = defineTable(2, [{ kind: "int" }, { kind: "text" }]);
const definitions = [TABLE, OTHER];
const options = { walSegmentBytes: 16384, rowBytesMax: 8192 };

/** Writes rows that fill several log files. The second table's rows are in the first file. */
async function written(): Promise<{ disk: SimulatedDisk; manifest: MemoryManifest }> {
  const disk = new SimulatedDisk();
  const manifest = new MemoryManifest();
  const store = await openStore({ disk, manifest, definitions, options });
  await commit(store, 2, "insert", [[1, "early"]]);
  for (let id = 0; id < 20; id += 1) await commit(store, 1, "insert", [[id, "x".repeat(4000)]]);
  await store.close();
  return { disk, manifest };
}

function logFiles(disk: SimulatedDisk): string[] {
  return disk
    .list(`${DATA_PATH}/wal`)
    .map(({ name }) => `${DATA_PATH}/wal/${name}`)
    .filter((path) => path.endsWith(".wal"))
    .toSorted();
}

/** Returns the error message with which a store refuses to open. */
async function refusal(disk: SimulatedDisk, manifest: MemoryManifest): Promise<string> {
  const parts = { disk, manifest, definitions, options };
  return openStore(parts).then(
    () => "it opens",
    (error: unknown) => String(error),
  );
}

test("LocalStore.open refuses to open if the first file of the log is missing, and names the file", async () => {
  const { disk, manifest } = await written();
  const [first = ""] = logFiles(disk);
  disk.remove(first);
  expect(await refusal(disk, manifest)).toContain(
    `Cannot read ${first} at byte 0: the file is missing`,
  );
});

test("LocalStore.open refuses to open if the whole log is missing", async () => {
  const { disk, manifest } = await written();
  for (const path of disk.list(`${DATA_PATH}/wal`)) disk.remove(`${DATA_PATH}/wal/${path.name}`);
  expect(await refusal(disk, manifest)).toContain("the file is missing, as is the rest of the log");
});

test("LocalStore.open refuses a manifest from before files were released, and moves nothing", async () => {
  const { disk, manifest } = await written();
  const before = manifest.restart();
  const store = await openStore({ disk, manifest, definitions, options });
  await store.flush(1);
  await store.flush(2);
  await store.close();
  expect(await refusal(disk, before)).toContain("or the catalog is older than the log");
  expect(disk.exists(`${DATA_PATH}/lost+found`)).toBeFalse();
  const again = await openStore({ disk, manifest, definitions, options });
  expect(readRows(again, OTHER).map(([, id]) => id)).toEqual([1]);
  expect(readRows(again, TABLE)).toHaveLength(20);
  await again.close();
});

// Files that are released together lose their names one by one, until the directory is synced.
test("LocalStore.open ignores a log file from before the beginning, and removes it", async () => {
  for (const isTableDropped of [false, true]) {
    const { disk, manifest } = await written();
    const store = await openStore({ disk, manifest, definitions, options });
    const [, second = ""] = logFiles(disk);
    const bytes = disk.readFile(second);
    await store.flush(1);
    await store.flush(2);
    await store.close();
    expect(logFiles(disk)).not.toContain(second);
    const file = disk.open(second, { create: true });
    file.write(bytes, 0);
    file.close();

    const known = isTableDropped ? [TABLE] : definitions;
    const again = await openStore({ disk, manifest, definitions: known, options });
    expect(readRows(again, TABLE)).toHaveLength(20);
    expect(logFiles(disk)).not.toContain(second);
    await again.close();
  }
});

test("LocalStore.open removes no log file when it refuses a log that is older than the catalog", async () => {
  const { disk, manifest } = await written();
  const store = await openStore({ disk, manifest, definitions, options });
  const old = new Map(logFiles(disk).map((path) => [path, disk.readFile(path)]));
  await store.flush(1);
  await store.flush(2);
  await commit(store, 1, "insert", [[100, "x".repeat(8000)]]);
  await commit(store, 1, "insert", [[101, "x".repeat(8000)]]);
  await store.flush(1);
  await store.close();
  for (const path of [...logFiles(disk), `${DATA_PATH}/wal/HWM`]) disk.remove(path);
  const earlier = [...old].slice(0, 2);
  for (const [path, bytes] of earlier) disk.open(path, { create: true }).write(bytes, 0);
  expect(await refusal(disk, manifest)).toContain("the file is missing, as is the rest of the log");
  expect(logFiles(disk)).toEqual(earlier.map(([path]) => path));
});

test("a flush and a merge that the manifest refuses are repeated, and lose nothing", async () => {
  const disk = new SimulatedDisk();
  const clock = new ManualClock();
  const manifest = new MemoryManifest();
  const store = await openStore({ disk, clock, manifest, definitions, options });
  const refuse = (): never => {
    throw new DatabaseError("DISK_FULL", "Cannot change the catalog: the disk is full");
  };
  for (let round = 0; round < 12; round += 1) {
    const rows: Row[] = Array.from({ length: 10 }, (_, i) => [round * 10 + i, "x"]);
    await commit(store, 1, "insert", rows);
    manifest.onPublish = refuse;
    expect(await store.flush(1).catch((error: unknown) => error)).toBeInstanceOf(DatabaseError);
    manifest.onPublish = () => {};
    await store.flush(1);
    // The flush may be followed by a merge, which the manifest refuses in the same way.
    manifest.onPublish = refuse;
    for (let turn = 0; turn < 20; turn += 1) {
      await new Promise((resolve) => setImmediate(resolve));
    }
    manifest.onPublish = () => {};
  }
  expect(readRows(store, TABLE)).toHaveLength(120);
  await store.close();
  const again = await openStore({ disk, manifest, definitions, options });
  expect(readRows(again, TABLE)).toHaveLength(120);
  await again.close();
});

test("LocalStore.open removes the empty directories of dropped tables", async () => {
  const { disk, manifest } = await written();
  const store = await openStore({ disk, manifest, definitions, options });
  await store.flush(1);
  await store.flush(2);
  store.dropTable(2);
  await store.close();
  const again = await openStore({ disk, manifest, definitions: [TABLE], options });
  expect(disk.list(`${DATA_PATH}/segments`).map(({ name }) => name)).toEqual(["1"]);
  await again.close();
});
