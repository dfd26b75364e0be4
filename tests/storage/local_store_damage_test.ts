/**
 * Tests damage to the store's files. Damaged rows are never read, other tables stay readable, and
 * the store still opens.
 */
import { expect, test } from "bun:test";
import { dataPathsOf, deletionVectorPath, segmentPath } from "../../src/storage/files.ts";
import { SHARED_OWNER, type Store } from "../../src/storage/mod.ts";
import type { Row } from "../../src/types/mod.ts";
import { MemoryManifest } from "../support/memory_manifest.ts";
import { failNth, SimulatedDisk } from "../support/simulated_disk.ts";
import {
  commit,
  conditionOf,
  DATA_PATH,
  defineTable,
  openStore,
  readRows,
} from "../support/store_fixture.ts";

const TABLE = defineTable(1, [{ kind: "int" }, { kind: "text" }]);

const OTHER = defineTable(2, [{ kind: "int" }]);

const PATHS = dataPathsOf(DATA_PATH);

function idsOf(store: Store): unknown[] {
  return readRows(store, TABLE).map(([, id]) => id);
}

test("intact files that were exchanged count as damaged, and are not read as each other", async () => {
  const disk = new SimulatedDisk();
  const manifest = new MemoryManifest();
  const twin = { ...TABLE, tableId: 2, name: "app.t2" };
  const definitions = [TABLE, twin];
  const store = await openStore({ disk, manifest, definitions });
  for (const tableId of [1, 2]) {
    for (const id of [10, 20]) {
      await commit(store, tableId, "insert", [
        [id, "one"],
        [id + 1, "two"],
      ]);
      await store.flush(tableId);
    }
    for (const id of [10, 21]) {
      await commit(store, tableId, "delete", [[id, null]]);
      await store.flush(tableId);
    }
  }
  const segments = manifest.load().segments.filter(({ rowCount }) => rowCount === 2);
  expect(segments.length).toBe(4);
  expect(new Set(segments.map(({ bytes }) => bytes)).size, "of one length").toBe(1);
  await store.close();
  const whole = disk.restart();
  for (const named of [segmentPath, deletionVectorPath]) {
    for (const [at, entry] of segments.entries()) {
      const other = segments[(at + 1) % segments.length] ?? entry;
      const found = whole.restart();
      const path = named(PATHS, entry);
      found.rename(named(PATHS, other), "/kept");
      found.rename(path, named(PATHS, other));
      found.rename("/kept", path);
      const again = await openStore({ disk: found, manifest: manifest.restart(), definitions });
      const table = entry.tableId === 1 ? TABLE : twin;
      expect(() => readRows(again, table), path).toThrow(path);
      await again.close();
    }
  }
  const sound = await openStore({ disk: whole, manifest, definitions });
  for (const table of definitions) {
    expect(readRows(sound, table).map(([, id]) => id)).toEqual([11, 20]);
  }
  await sound.close();
});

/**
 * Returns a segment whose deletion vector is in its second generation, and the contents of the
 * first generation.
 */
async function secondGeneration(): Promise<{
  readonly disk: SimulatedDisk;
  readonly manifest: MemoryManifest;
  readonly older: Uint8Array;
  readonly path: string;
}> {
  const disk = new SimulatedDisk();
  const manifest = new MemoryManifest();
  const store = await openStore({ disk, manifest, definitions: [TABLE] });
  const rows = [1, 2, 3].map((id) => [id, "one"]);
  await commit(store, 1, "insert", rows);
  await store.flush(1);
  const paths: string[] = [];
  const contents: Uint8Array[] = [];
  for (const id of [1, 2]) {
    await commit(store, 1, "delete", [[id, null]]);
    await store.flush(1);
    const path = pathOfFirstVector(manifest);
    paths.push(path);
    contents.push(disk.readFile(path));
  }
  await store.close();
  const [older, newer] = contents;
  const path = paths[1];
  if (older === undefined || newer === undefined || path === undefined) throw new Error("no file");
  expect(paths[0]).not.toBe(path);
  expect(older).not.toEqual(newer);
  return { disk: disk.restart(), manifest: manifest.restart(), older, path };
}

function pathOfFirstVector(manifest: MemoryManifest): string {
  const [entry] = manifest.load().segments;
  if (entry === undefined) throw new Error("there is no segment");
  return deletionVectorPath(PATHS, entry);
}

test("a deletion vector of an older generation under the newer file name counts as damage", async () => {
  const { disk, manifest, older, path } = await secondGeneration();
  const file = disk.open(path, {});
  file.truncate(0);
  file.write(older, 0);
  file.close();
  const store = await openStore({ disk, manifest, definitions: [TABLE] });
  const what =
    "the file is a different deletion vector of segment 1: it has 1 replaced rows, but the manifest lists generation 2";
  expect(() => idsOf(store)).toThrow(expect.objectContaining({ path, what }));
  expect(store.segments()[0]?.status).toBe("quarantined");
  await store.close();
});

test.each([
  ["without a hash, as older servers list it", undefined],
  ["with the hash of an earlier generation, as an older server leaves it", 1],
])("a deletion vector that is listed %s is read", async (_what, generation) => {
  const { disk, manifest } = await secondGeneration();
  const listed = generation === undefined ? {} : { deletionHash: { generation, low: 1, high: 2 } };
  const changeSegments = manifest.load().segments.map((entry) => {
    const { deletionHash, ...rest } = entry;
    return deletionHash === undefined ? entry : Object.assign(rest, listed);
  });
  manifest.publish({ changeSegments });
  const store = await openStore({ disk, manifest, definitions: [TABLE] });
  expect(idsOf(store)).toEqual([3]);
  await store.close();
});

test("damage in a segment makes its table fail, quarantines the file, and leaves other tables readable", async () => {
  const disk = new SimulatedDisk();
  const manifest = new MemoryManifest();
  const other = defineTable(2, [{ kind: "int" }, { kind: "text" }]);
  const store = await openStore({ disk, manifest, definitions: [TABLE, other] });
  const rows = Array.from({ length: 500 }, (_, id): Row => [id, `text ${id * 7919}`]);
  await commit(store, 1, "insert", rows);
  await commit(store, 2, "insert", rows);
  await store.flush(1);
  await store.flush(2);
  await store.close();
  const path = `${PATHS.segments}/1/1.seg`;
  for (let at = 70; at < 6000; at += 40) disk.damage(path, at);
  const again = await openStore({ disk, manifest, definitions: [TABLE, other] });
  expect(() => idsOf(again)).toThrow(expect.objectContaining({ path, isLogged: true }));
  expect(again.segments().map(({ status }) => status)).toEqual(["quarantined", "live"]);
  expect(manifest.load().segments[0]?.quarantined).toBe(true);
  expect(await conditionOf(Promise.resolve().then(() => idsOf(again)))).toBe("DATA_DAMAGED");
  expect(readRows(again, other).length).toBe(500);
  await again.close();
});

test.each([
  ["segment", "1.seg"],
  ["deletion vector", "1.1.dv"],
])("startup continues if a %s that the log refers to is damaged", async (_what, name) => {
  const disk = new SimulatedDisk();
  const manifest = new MemoryManifest();
  const other = defineTable(2, [{ kind: "int" }, { kind: "text" }]);
  const definitions = [TABLE, other];
  const store = await openStore({ disk, manifest, definitions });
  const rows = Array.from({ length: 300 }, (_, id): Row => [id, `text ${id * 7919}`]);
  await commit(store, 1, "insert", rows);
  await commit(store, 2, "insert", rows);
  await store.flush(1);
  await commit(store, 1, "update", [[1, "replaced in a segment"]]);
  await store.flush(1);
  await commit(store, 1, "update", [[2, "replaced in the log"]]);
  await store.close();
  for (let at = 8; at < 6000; at += 40) disk.damage(`${PATHS.segments}/1/${name}`, at);
  // The first start finds the damage. The second start already knows about it.
  for (let start = 0; start < 2; start += 1) {
    const again = await openStore({ disk, manifest, definitions });
    expect(manifest.load().segments.map(({ quarantined }) => quarantined)).toEqual([true, false]);
    expect(() => idsOf(again)).toThrow(`${PATHS.segments}/1/1.seg`);
    expect(await conditionOf(Promise.resolve().then(() => idsOf(again)))).toBe("DATA_DAMAGED");
    // A version that is newer than the damaged segment is returned as usual.
    const lookup = { owner: SHARED_OWNER, columnIds: [2], upTo: again.visibleSeq };
    expect(again.lookup(1, { ...lookup, key: [2] })).toEqual(["replaced in the log"]);
    expect(() => again.lookup(1, { ...lookup, key: [3] })).toThrow();
    expect(await conditionOf(commit(again, 1, "insert", [[3, "again"]]))).toBe("DATA_DAMAGED");
    expect(readRows(again, other).length).toBe(300);
    await again.close();
  }
});

// Verifies that a file that is temporarily missing makes its table unavailable for the rest of the
// process, but loses no row. The file is missing when it is first read. In the meantime, one of
// its rows, which had been replaced before, is replaced again.
test.each(["ENOENT", "EIO"])(
  "a segment that could not be read because of %s is intact after a restart",
  async (code) => {
    const disk = new SimulatedDisk();
    const manifest = new MemoryManifest();
    const definitions = [TABLE];
    const path = `${PATHS.segments}/1/1.seg`;
    const store = await openStore({ disk, manifest, definitions });
    await commit(store, 1, "insert", [
      [1, "first"],
      [2, "first"],
    ]);
    await store.flush(1);
    await commit(store, 1, "update", [[1, "before"]]);
    await store.flush(1);
    await store.close();

    const again = await openStore({ disk, manifest, definitions });
    if (code === "ENOENT") disk.rename(path, `${path}.away`);
    else disk.faultPlan = (_operation, touched) => (touched === path ? { code: "EIO" } : undefined);
    expect(() => idsOf(again)).toThrow(code);
    if (code === "ENOENT") disk.rename(`${path}.away`, path);
    disk.faultPlan = undefined;
    expect(() => idsOf(again)).toThrow("could not be read and is quarantined");
    expect(again.segments().map(({ status }) => status)).toEqual(["quarantined", "live"]);
    expect(await conditionOf(commit(again, 1, "insert", [[2, "again"]]))).toBe("DATA_DAMAGED");
    await commit(again, 1, "update", [[1, "after"]]);
    await again.flush(1);
    await again.close();

    const last = await openStore({ disk, manifest, definitions });
    expect(readRows(last, TABLE).map(([, ...row]) => row)).toEqual([
      [2, "first"],
      [1, "after"],
    ]);
    expect(last.segments().map(({ status }) => status)).toEqual(["live", "live", "live"]);
    await last.close();
  },
);

// Verifies that a rolled-back replacement does not hide a row permanently if the row's segment
// could not be read at the time of the rollback. The test makes both the log and the segment fail
// after an update.
test("a segment with recorded replacements that were rolled back meanwhile stays quarantined", async () => {
  const disk = new SimulatedDisk();
  const manifest = new MemoryManifest();
  const definitions = [TABLE];
  const path = `${PATHS.segments}/1/1.seg`;
  const store = await openStore({ disk, manifest, definitions });
  await commit(store, 1, "insert", [
    [1, "first"],
    [2, "first"],
  ]);
  await store.flush(1);
  await commit(store, 1, "insert", [[3, "first"]]);
  const { lastSeq } = store.apply({
    writes: [{ tableId: 1, owner: SHARED_OWNER, operation: "update", rows: [[1, "taken back"]] }],
  });
  const durable = conditionOf(store.durable(lastSeq));
  const fullOnce = failNth("write", 1, { code: "ENOSPC" });
  disk.faultPlan = (operation, touched) =>
    operation === "read" && touched === path ? { code: "EIO" } : fullOnce(operation, touched);
  expect(() => idsOf(store)).toThrow("the disk reports EIO");
  expect(await durable).toBe("DISK_FULL");
  disk.faultPlan = undefined;
  await commit(store, 1, "update", [[3, "later"]]);
  await store.flush(1);
  await store.close();

  const last = await openStore({ disk, manifest, definitions });
  expect(last.segments()[0]?.status).toBe("quarantined");
  expect(() => idsOf(last)).toThrow("is damaged and quarantined");
  await last.close();
});

test("a part of a segment that the disk cannot read counts as damage in that segment, with its position", async () => {
  const disk = new SimulatedDisk();
  const definitions = [TABLE, OTHER];
  const path = `${PATHS.segments}/1/1.seg`;
  const store = await openStore({ disk, definitions });
  await commit(store, 1, "insert", [[1, "a"]]);
  await commit(store, 2, "insert", [[1]]);
  await store.flush(1);
  // Opens the segment file, but reads no chunk of it.
  const key = { owner: SHARED_OWNER, key: [2], columnIds: [2], upTo: store.visibleSeq };
  expect(store.lookup(1, key)).toBeUndefined();
  disk.faultPlan = (operation, touched) =>
    operation === "read" && touched === path ? { code: "EIO" } : undefined;
  expect(() => idsOf(store)).toThrow(/1\.seg at byte [1-9][0-9]*: the disk reports EIO/);
  disk.faultPlan = undefined;
  expect(() => idsOf(store)).toThrow("could not be read and is quarantined");
  expect(readRows(store, OTHER).length).toBe(1);
  await store.close();
});

// Verifies that a segment that recovery could not read loses no more rows than a segment that a
// statement could not read. Only the log says that a row of the segment was replaced. The disk can
// read the segment again before the flush that lets the log drop this record, during that flush,
// or not even then.
test.each([
  ["before the next start", "live"],
  ["before the flush", "live"],
  ["never", "quarantined"],
] as const)(
  "a segment that recovery could not read and that returns %s is %s",
  async (when, status) => {
    const disk = new SimulatedDisk();
    const manifest = new MemoryManifest();
    const definitions = [TABLE, OTHER];
    const path = `${PATHS.segments}/1/1.seg`;
    const store = await openStore({ disk, manifest, definitions });
    for (const id of [1, 2, 3]) await commit(store, 1, "insert", [[id, "old"]]);
    await store.flush(1);
    await commit(store, 1, "update", [[1, "new"]]);
    await commit(store, 1, "delete", [[2, ""]]);
    await commit(store, 2, "insert", [[1]]);
    await store.close();

    // The segment file opens, but its rows cannot be read.
    let readCount = 0;
    disk.faultPlan = (operation, touched) => {
      if (operation !== "read" || touched !== path) return undefined;
      readCount += 1;
      return readCount > 4 ? { code: "EIO" } : undefined;
    };
    const again = await openStore({ disk, manifest, definitions });
    expect(readCount, "recovery met the fault").toBeGreaterThan(4);
    expect(readRows(again, OTHER).length).toBe(1);
    expect(() => idsOf(again)).toThrow("could not be read and is quarantined");
    if (when === "before the flush") disk.faultPlan = undefined;
    if (when !== "before the next start") await again.flush(1);
    await again.close();

    disk.faultPlan = undefined;
    const last = await openStore({ disk, manifest, definitions });
    expect(last.segments()[0]?.status).toBe(status);
    const rows = (): unknown[] => readRows(last, TABLE).map(([, ...row]) => row);
    if (status === "quarantined") expect(rows).toThrow("is damaged and quarantined");
    else
      expect(rows()).toEqual([
        [3, "old"],
        [1, "new"],
      ]);
    await last.close();
  },
);

test("a damaged segment does not prevent a store from opening, even if the log replaces its rows", async () => {
  for (const file of ["1.seg", "1.1.dv"]) {
    const disk = new SimulatedDisk();
    const manifest = new MemoryManifest();
    const definitions = [TABLE, OTHER];
    const store = await openStore({ disk, manifest, definitions });
    for (const id of [1, 2, 3]) await commit(store, 1, "insert", [[id, "old"]]);
    await store.flush(1);
    await commit(store, 1, "update", [[1, "new"]]);
    await store.flush(1);
    await commit(store, 1, "update", [[2, "new"]]);
    await commit(store, 2, "insert", [[1]]);
    await store.close();
    disk.damage(`${PATHS.segments}/1/${file}`, 7);
    // The first start finds the damage. The second start already knows about it.
    for (let start = 1; start <= 2; start += 1) {
      const again = await openStore({ disk, manifest, definitions });
      expect(readRows(again, OTHER).length).toBe(1);
      expect(() => readRows(again, TABLE)).toThrow(/damaged/);
      await commit(again, 2, "update", [[1]]);
      await again.flush(1);
      await again.flush(2);
      expect(manifest.load().segments.find(({ segmentId }) => segmentId === 1)?.quarantined).toBe(
        true,
      );
      await again.close();
    }
  }
});
