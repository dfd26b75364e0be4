/**
 * Tests how merges separate current versions from history: the segment that each version goes to,
 * the effects of a crash or a concurrent replacement, and the time when separation is due.
 */
import { expect, test } from "bun:test";
import type { LocalStore, LocalStoreOptions } from "../../../src/storage/mod.ts";
import { ManualClock } from "../../support/manual_clock.ts";
import { MemoryManifest } from "../../support/memory_manifest.ts";
import { testThoroughly } from "../../support/requirements.ts";
import { SeededRandom } from "../../support/seeded_random.ts";
import { SimulatedDisk } from "../../support/simulated_disk.ts";
import {
  commit,
  DATA_PATH,
  defineTable,
  openStore,
  readChanges,
  readRows,
} from "../../support/store_fixture.ts";
import { type StoredVersion, storedVersions } from "../../support/stored_versions.ts";

const HOUR_MS = 3_600_000;

const TABLE = {
  ...defineTable(1, [{ kind: "int" }, { kind: "text" }]),
  historyMs: 24 * HOUR_MS,
};

class Opened {
  disk = new SimulatedDisk();
  manifest = new MemoryManifest();
  readonly clock = new ManualClock();

  open(options: Partial<LocalStoreOptions> = {}): Promise<LocalStore> {
    const { clock, disk, manifest } = this;
    return openStore({ disk, manifest, clock, definitions: [TABLE], options });
  }

  versions(): StoredVersion[] {
    return storedVersions(this.disk, this.manifest.load().segments);
  }

  /** Returns the keys of the versions in each kind of segment. */
  keys(): { current: unknown[]; history: unknown[] } {
    const keysOf = (isHistory: boolean): unknown[] =>
      this.versions()
        .filter((version) => version.isHistory === isHistory)
        .map(({ isDeleted, value }) => (isDeleted ? `-${Number(value)}` : value));
    return { current: keysOf(false), history: keysOf(true) };
  }
}

/** Runs all ready work until background work has ended. */
async function settled(): Promise<void> {
  for (let round = 0; round < 100; round += 1) {
    await new Promise((resolve) => setImmediate(resolve));
  }
}

/**
 * Returns a version without its position. A tombstone that was never replaced is returned in the
 * form in which history records it.
 */
function contentOf({ isDeleted, owner, prev, replacedBy, seq, value }: StoredVersion): unknown {
  const isEnded = isDeleted && replacedBy === 0;
  return { isDeleted, owner, prev, replacedBy: isEnded ? seq : replacedBy, seq, value };
}

/** Writes keys 0 to 9 to one segment, then updates 0 to 2 and deletes 3 and 4 in another. */
async function filled(store: LocalStore): Promise<void> {
  const keys = Array.from({ length: 10 }, (_, key) => key);
  await commit(
    store,
    1,
    "insert",
    keys.map((key) => [key, "a"]),
  );
  await store.flush(1);
  await commit(
    store,
    1,
    "update",
    [0, 1, 2].map((key) => [key, "b"]),
  );
  await commit(
    store,
    1,
    "delete",
    [3, 4].map((key) => [key, null]),
  );
  await store.flush(1);
}

test("a merge moves obsolete versions to history, each with the seq that replaced it", async () => {
  const opened = new Opened();
  const store = await opened.open();
  await filled(store);
  const before = opened.versions();
  expect(await store.compact(1)).toEqual({ mergedSegments: 2, discardedVersions: 0 });
  expect(opened.keys()).toEqual({
    current: [5, 6, 7, 8, 9, 0, 1, 2],
    history: [0, 1, 2, 3, 4, "-3", "-4"],
  });
  expect(opened.versions().map(contentOf)).toEqual(before.map(contentOf));
  const names = opened.disk.list(`${DATA_PATH}/segments/1`).map(({ name }) => name);
  expect(names.toSorted()).toEqual(["3.seg", "4.seg"]);
  expect(await store.compact(1)).toEqual({ mergedSegments: 0, discardedVersions: 0 });
  await store.close();
});

test("versions replaced above the flushed seq stay current, and move with the next merge", async () => {
  const opened = new Opened();
  const store = await opened.open();
  await filled(store);
  await commit(store, 1, "update", [[9, "in memory"]]);
  await store.compact(1);
  expect(opened.keys().current).toEqual([5, 6, 7, 8, 9, 0, 1, 2]);
  await store.flush(1);
  await store.compact(1);
  expect(opened.keys()).toEqual({
    current: [5, 6, 7, 8, 0, 1, 2, 9],
    history: [0, 1, 2, 3, 4, 9, "-3", "-4"],
  });
  await store.close();
});

test("rows that are replaced while they are merged stay current with their replacement", async () => {
  const opened = new Opened();
  const store = await opened.open();
  await filled(store);
  opened.disk.holdsSyncs = true;
  const merging = store.compact(1);
  while (!opened.disk.exists(`${DATA_PATH}/tmp/4.seg`)) {
    await new Promise((resolve) => setImmediate(resolve));
  }
  opened.disk.holdsSyncs = false;
  await commit(store, 1, "delete", [[8, null]]);
  // The tombstone of key 3 moves to history.
  await commit(store, 1, "insert", [[3, "again"]]);
  const [flushed] = [store.flush(1)];
  opened.disk.releaseSyncs();
  await Promise.all([merging, flushed]);
  await store.close();
  const replaced = opened.versions().find(({ value, isDeleted }) => value === 8 && !isDeleted);
  expect(replaced?.replacedBy).toBeGreaterThan(replaced?.seq ?? 0);
  expect(replaced?.isHistory).toBe(false);
  const ended = opened.versions().filter(({ value }) => value === 3);
  expect(ended.map(({ isDeleted, isHistory }) => [isDeleted, isHistory])).toEqual([
    [false, true],
    [true, true],
    [false, false],
  ]);
  expect(ended[1]?.replacedBy).toBe(ended[1]?.seq ?? 0);
  const again = await opened.open();
  expect(again.liveRowCount(1, 0)).toBe(8);
  await again.close();
});

test("a segment without current versions becomes history as a whole", async () => {
  const opened = new Opened();
  const store = await opened.open();
  const keys = [1, 2, 3];
  await commit(
    store,
    1,
    "insert",
    keys.map((key) => [key, "a"]),
  );
  await commit(
    store,
    1,
    "delete",
    keys.map((key) => [key, null]),
  );
  await store.flush(1);
  await store.compact(1);
  expect(opened.keys()).toEqual({ current: [], history: [1, 2, 3, "-1", "-2", "-3"] });
  expect(opened.disk.list(`${DATA_PATH}/tmp`)).toEqual([]);
  await store.close();
});

test("history ends at the retention floor, and low watermarks reflect this", async () => {
  const opened = new Opened();
  const store = await opened.open();
  await filled(store);
  await store.compact(1);
  const { flushedSeq } = opened.manifest.load().tables[0] ?? { flushedSeq: 0 };
  opened.clock.advance(25 * HOUR_MS);
  await commit(store, 1, "delete", [[9, null]]);
  await store.flush(1);
  expect(Number(store.earliestSeq(1, 0))).toBe(0);
  store.discardHistory();
  await settled();
  expect(opened.keys()).toEqual({ current: [5, 6, 7, 8, 9, 0, 1, 2, "-9"], history: [] });
  expect(Number(store.earliestSeq(1, 0))).toBe(flushedSeq);
  expect(opened.disk.list(`${DATA_PATH}/tmp`)).toEqual([]);
  await store.close();
});

test("history segments count where history takes too much space, and the oldest of them are discarded", async () => {
  const opened = new Opened();
  const store = await opened.open({ historyBytesMax: 1 });
  await filled(store);
  await store.compact(1);
  store.boundHistory();
  await settled();
  // No version replaced within the last hour is discarded.
  expect(opened.keys().history).toHaveLength(7);
  opened.clock.advance(2 * HOUR_MS);
  await commit(store, 1, "delete", [[9, null]]);
  await store.flush(1);
  await store.compact(1);
  store.boundHistory();
  await settled();
  expect(opened.keys()).toEqual({ current: [5, 6, 7, 8, 0, 1, 2], history: [9, "-9"] });
  await store.close();
});

test("damage in a history segment is reported only to readers that need it", async () => {
  const opened = new Opened();
  const store = await opened.open();
  await filled(store);
  await store.compact(1);
  await store.close();
  const entry = opened.manifest.load().segments.find((each) => each.history !== undefined);
  const path = `${DATA_PATH}/segments/1/${entry?.segmentId}.seg`;
  const file = opened.disk.open(path, {});
  file.write(new Uint8Array((entry?.bytes ?? 0) - 128).fill(7), 64);
  file.close();

  const again = await opened.open();
  const rows = readRows(again, TABLE);
  expect(() => readChanges(again, TABLE)).toThrow(`Cannot read ${path}`);
  expect(again.condition().quarantinedSegments).toBe(1);
  expect(() => readRows(again, TABLE, { upTo: Number(rows[0]?.[0]) })).toThrow(/quarantined/);
  expect(readRows(again, TABLE)).toEqual(rows);
  await commit(again, 1, "insert", [[3, "again"]]);
  await commit(again, 1, "update", [[9, "b"]]);
  await again.flush(1);
  await again.compact(1);
  expect(again.segments().map(({ kind, status }) => `${kind} ${status}`)).toEqual([
    "current live",
    "history quarantined",
    "history live",
  ]);
  expect(again.liveRowCount(1, 0)).toBe(9);
  await again.close();
});

test("COMPACT merges history, and discards the part below the retention floor", async () => {
  const opened = new Opened();
  const store = await opened.open();
  await filled(store);
  await store.compact(1);
  opened.clock.advance(25 * HOUR_MS);
  await commit(store, 1, "delete", [[9, null]]);
  await store.flush(1);
  const { discardedVersions, mergedSegments } = await store.compact(1);
  // Two current segments remain, followed by two history segments.
  expect([discardedVersions, mergedSegments]).toEqual([7, 4]);
  expect(opened.keys()).toEqual({ current: [5, 6, 7, 8, 0, 1, 2], history: [9, "-9"] });
  expect(opened.manifest.load().segments).toHaveLength(2);
  await store.close();
});

test("an erased owner also disappears from history", async () => {
  const opened = new Opened();
  const store = await opened.open();
  for (const owner of [1, 2]) {
    await commit(store, 1, "insert", [[owner, "a"]], owner);
    await commit(store, 1, "update", [[owner, "b"]], owner);
  }
  await store.flush(1);
  await store.compact(1);
  expect(opened.keys()).toEqual({ current: [1, 2], history: [1, 2] });
  expect(await store.erase(1, 1)).toBe(2);
  expect(opened.keys()).toEqual({ current: [2], history: [2] });
  await store.close();
});

testThoroughly(
  "a crash during a merge that splits history neither loses nor duplicates versions",
  async () => {
    const versionsOf = (opened: Opened): unknown[] =>
      opened.versions().map(({ owner, prev, seq }) => ({ owner, prev, seq }));
    let crashes = 0;
    for (let at = 0; ; at += 1) {
      const opened = new Opened();
      const store = await opened.open();
      await filled(store);
      const before = versionsOf(opened);
      let operations = 0;
      let crashed: SimulatedDisk | undefined;
      let manifest: MemoryManifest | undefined;
      opened.disk.faultPlan = () => {
        if (operations === at && crashed === undefined) {
          crashed = opened.disk.crash({ keep: "some", random: new SeededRandom(at) });
          manifest = opened.manifest.restart();
        }
        operations += 1;
        return undefined;
      };
      await store.compact(1);
      await store.close();
      if (crashed === undefined || manifest === undefined) break;
      crashes += 1;
      opened.disk = crashed;
      opened.manifest = manifest;
      const again = await opened.open();
      expect(versionsOf(opened), `operation ${at}`).toEqual(before);
      expect(again.liveRowCount(1, 0), `operation ${at}`).toBe(8);
      await again.close();
    }
    expect(crashes).toBeGreaterThan(10);
  },
);

test("a segment is separated once three tenths of it are obsolete, and history is merged", async () => {
  const opened = new Opened();
  const mergeBounds = {
    fanIn: 4,
    runMax: 8,
    rowsMax: 100_000,
    bytesMax: 1 << 30,
    smallRowsMax: 12,
    smallBytesMax: 4096,
  };
  const store = await opened.open({ mergeBounds });
  const keys = Array.from({ length: 200 }, (_, key) => key);
  const rowsOf = (from: number, to: number): [number, string][] =>
    keys.slice(from, to).map((key) => [key, "a"]);
  await commit(store, 1, "insert", rowsOf(0, 200));
  await store.flush(1);
  await commit(store, 1, "delete", rowsOf(0, 59));
  await store.flush(1);
  await settled();
  expect(opened.keys().history).toEqual(keys.slice(0, 59).map((key) => `-${key}`));
  await commit(store, 1, "delete", rowsOf(59, 60));
  await store.flush(1);
  await settled();
  expect(opened.keys().current).toEqual([...keys.slice(60), "-59"]);
  for (let key = 60; key < 180; key += 40) {
    await commit(store, 1, "delete", rowsOf(key, key + 40));
    await store.flush(1);
    await settled();
  }
  const listed = opened.manifest.load().segments;
  const history = listed.filter((entry) => entry.history !== undefined);
  expect(history.map(({ rowCount }) => rowCount).toSorted((left, right) => left - right)).toEqual([
    40, 40, 40, 239,
  ]);
  const versions = opened.versions();
  expect(versions.map(({ seq }) => seq)).toEqual([...new Set(versions.map(({ seq }) => seq))]);
  expect(versions).toHaveLength(200 + 180);
  await store.close();
});
