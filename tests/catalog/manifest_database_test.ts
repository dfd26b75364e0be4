/**
 * Verifies that a published change becomes durable either completely or not at all, and that no
 * segment id is used twice. The tests use real SQLite files, and simulate a kill by copying the
 * files while the catalog is open.
 */
import { Database } from "bun:sqlite";
import { afterAll, expect, test } from "bun:test";
import type { SegmentRecord, TableStateRecord } from "../../src/catalog/mod.ts";
import type { Manifest, SegmentEntry, TableState } from "../../src/storage/mod.ts";
import {
  freshPath,
  killedCopy,
  openCatalog,
  removeCatalogs,
  seqOf,
  tableEntry,
} from "./catalog_fixture.ts";

afterAll(removeCatalogs);

/**
 * The type `true` if two types have the same fields, including optional fields; otherwise `false`.
 */
type Same<A, B> =
  Required<A> extends Required<B> ? (Required<B> extends Required<A> ? true : false) : false;

test("a manifest in the catalog has every field that the store knows", () => {
  // Without this check, a field declared in only one of the types would compile and its values
  // would be lost.
  const same: readonly [Same<SegmentRecord, SegmentEntry>, Same<TableStateRecord, TableState>] = [
    true,
    true,
  ];
  expect(same).toEqual([true, true]);
});

function segment(segmentId: number, change: Partial<SegmentRecord> = {}): SegmentRecord {
  return {
    segmentId,
    tableId: 1,
    minSeq: seqOf(1),
    maxSeq: seqOf(segmentId * 10),
    rowCount: 5,
    bytes: 100,
    deletionGeneration: 0,
    createdAtMs: 7,
    quarantined: false,
    ...change,
  };
}

function state(tableId: number, flushed: number): TableStateRecord {
  return { tableId, flushedSeq: seqOf(flushed), lowWaterSeq: seqOf(0), lastFlushedAtMs: 3 };
}

test("ManifestDatabase implements the manifest that the store requires", () => {
  const catalog = openCatalog(freshPath());
  const manifest: Manifest = catalog.manifest;

  expect(manifest.load()).toEqual({ segments: [], tables: [] });
  expect(manifest.highestSeq()).toBe(seqOf(0));
  catalog.close();
});

test("ManifestDatabase.publish survives a kill with all its parts", () => {
  const path = freshPath();
  const catalog = openCatalog(path);
  const { manifest } = catalog;
  const ids = [1, 2, 3].map(() => manifest.nextSegmentId());
  const [first = 0, second = 0, third = 0] = ids;
  const deletionHash = { generation: 4, low: 4_000_000_000, high: 1 };
  manifest.publish({ addSegments: [segment(first), segment(second)], tables: [state(1, 20)] });
  manifest.publish({
    addSegments: [segment(third)],
    changeSegments: [segment(second, { deletionGeneration: 4, deletionHash })],
    removeSegmentIds: [first],
    tables: [state(1, 30), state(2, 5)],
    removeTableIds: [9],
  });
  const again = openCatalog(killedCopy(path));

  expect(again.manifest.load()).toEqual({
    segments: [segment(second, { deletionGeneration: 4, deletionHash }), segment(third)],
    tables: [state(1, 30), state(2, 5)],
  });
  expect(again.manifest.load()).toEqual(manifest.load());
  expect(again.manifest.highestSeq()).toBe(seqOf(30));
  again.close();
  catalog.close();
});

test("ManifestDatabase remembers by its file name that a segment was given up", () => {
  const path = freshPath();
  const catalog = openCatalog(path);
  const lost = segment(catalog.manifest.nextSegmentId(), { quarantined: true, isGivenUp: true });
  catalog.manifest.publish({ addSegments: [lost] });
  expect(catalog.manifest.load().segments).toEqual([lost]);
  catalog.close();

  const file = new Database(path, { readonly: true });
  const { body } = file.query<{ body: string }, []>("SELECT body FROM segments").get() ?? {};
  file.close();
  const { isGivenUp: _, ...known } = lost;
  expect(JSON.parse(body ?? "")).toEqual({ ...known, putAside: true });
  const again = openCatalog(path);
  expect(again.manifest.load().segments).toEqual([lost]);
  again.close();
});

test("ManifestDatabase.highestSeq does not fall when segments and tables are removed", () => {
  const path = freshPath();
  const catalog = openCatalog(path);
  const segmentId = catalog.manifest.nextSegmentId();
  catalog.manifest.publish({ addSegments: [segment(segmentId, { maxSeq: seqOf(99) })] });
  catalog.manifest.publish({ removeSegmentIds: [segmentId] });
  catalog.createTable(tableEntry(), seqOf(120));
  catalog.dropTable(1, seqOf(121));
  catalog.close();
  const again = openCatalog(path);

  expect(again.manifest.load().segments).toEqual([]);
  expect(again.manifest.highestSeq()).toBe(seqOf(121));
  again.close();
});

test("ManifestDatabase.nextSegmentId never repeats an id across kills, whether or not the id was published", () => {
  let path = freshPath();
  const seen = new Set<number>();
  for (let round = 0; round < 4; round += 1) {
    const catalog = openCatalog(path);
    for (let count = 0; count < 100; count += 1) {
      const segmentId = catalog.manifest.nextSegmentId();
      expect(seen.has(segmentId)).toBeFalse();
      seen.add(segmentId);
    }
    path = killedCopy(path);
    catalog.close();
  }
  expect(seen.size).toBe(400);
});
