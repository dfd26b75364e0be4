/**
 * Tests the check that current and history segments are consistent. It finds no fault in files
 * written by a store, whatever happened to it, and finds each injected fault.
 *
 * To reproduce a failure: SEED=<n> bun test tests/storage/check/check_history_test.ts
 */
import { expect, test } from "bun:test";
import { defined } from "../../../src/base/assert.ts";
import type { Seq } from "../../../src/base/seq.ts";
import {
  checkSegments,
  dataPathsOf,
  deletionVectorPath,
  type Finding,
  segmentPath,
} from "../../../src/storage/files.ts";
import type { SegmentEntry } from "../../../src/storage/mod.ts";
import { INT, TEXT, vectorFromValues } from "../../../src/types/mod.ts";
import { encodeSegment } from "../../support/encoded_segment.ts";
import { ManualClock } from "../../support/manual_clock.ts";
import { MemoryManifest } from "../../support/memory_manifest.ts";
import { SeededRandom, seedOf } from "../../support/seeded_random.ts";
import {
  hashOfDeletions,
  listedDeletionCount,
  listedHistory,
  noDeletions,
  openSegmentFile,
} from "../../support/segment_files.ts";
import { SimulatedDisk } from "../../support/simulated_disk.ts";
import {
  commit,
  DATA_PATH,
  defineTable,
  openStore,
  SMALL_MERGES,
} from "../../support/store_fixture.ts";
import { amountOf } from "../../support/thoroughness.ts";

const HOUR_MS = 3_600_000;
const PATHS = dataPathsOf(DATA_PATH);
const TABLE = { ...defineTable(1, [INT, TEXT]), historyMs: 24 * HOUR_MS };

interface Directory {
  readonly disk: SimulatedDisk;
  readonly manifest: MemoryManifest;
}

function findingsIn({ disk, manifest }: Directory): { damaged: SegmentEntry[]; what: string[] } {
  const { segments: entries, tables: states } = manifest.load();
  const findings: Finding[] = [];
  const damaged = checkSegments(
    {
      disk,
      paths: PATHS,
      entries,
      tableIds: new Set([1]),
      states,
      lastingTableIds: new Set([1]),
      erasedOwners: new Set(),
      storageRoots: [],
    },
    { onFinding: (finding) => findings.push(finding), onChecked: () => {} },
  );
  return { damaged, what: findings.map(({ what }) => what) };
}

/**
 * Writes a history in which two owners' keys are randomly inserted, changed, deleted, inserted
 * again, flushed and merged.
 */
async function written(random: SeededRandom, steps: number): Promise<Directory> {
  const disk = new SimulatedDisk();
  const manifest = new MemoryManifest();
  const clock = new ManualClock();
  const options = { mergeBounds: SMALL_MERGES };
  const store = await openStore({ disk, manifest, clock, definitions: [TABLE], options });
  for (let step = 0; step < steps; step += 1) {
    clock.advance(random.chance(0.05) ? 5 * HOUR_MS : 1);
    const owner = random.between(1, 2);
    const key = random.below(12);
    const columnIds = [1];
    const bounds = { owner, upTo: store.appliedSeq, columnIds };
    const isLive = store.lookup(1, { ...bounds, key: [key] }) !== undefined;
    const operation = isLive ? random.pick(["update", "delete"] as const) : "insert";
    await commit(store, 1, operation, [[key, `${step}`]], owner);
    if (random.chance(0.1)) await store.flush(1);
    if (random.chance(0.02)) await store.compact(1);
    if (random.chance(0.02)) store.discardHistory();
  }
  await store.flush(1);
  await store.close();
  return { disk, manifest };
}

test("the check finds nothing in files that a store writes", async () => {
  const random = new SeededRandom(seedOf(7));
  for (let round = 0; round < amountOf({ usual: 2, thorough: 20 }); round += 1) {
    const directory = await written(random, 300);
    const { segments } = directory.manifest.load();
    expect(segments.some(({ history }) => history !== undefined)).toBe(true);
    expect(findingsIn(directory), `round ${round}`).toEqual({ damaged: [], what: [] });
  }
});

interface Row {
  readonly owner: number;
  readonly seq: number;
  readonly prev: number;
  readonly isDeleted: boolean;
  readonly key: number;
  replacedBy: number;
}

/**
 * For two owners, updates key 1, deletes key 2 and keeps key 3. All replaced versions are in
 * history.
 */
async function small(): Promise<Directory & { current: SegmentEntry; history: SegmentEntry }> {
  const disk = new SimulatedDisk();
  const manifest = new MemoryManifest();
  const store = await openStore({ disk, manifest, definitions: [TABLE] });
  for (const owner of [1, 2]) {
    const rows = [1, 2, 3].map((key): [number, string] => [key, "a"]);
    await commit(store, 1, "insert", rows, owner);
    await commit(store, 1, "update", [[1, "b"]], owner);
    await commit(store, 1, "delete", [[2, "b"]], owner);
  }
  await store.flush(1);
  await store.compact(1);
  await store.close();
  const { segments } = manifest.load();
  const entryOf = (isHistory: boolean): SegmentEntry =>
    defined(
      segments.find(({ history }) => (history !== undefined) === isHistory),
      "there must be one of each kind",
    );
  const [current, history] = [entryOf(false), entryOf(true)];
  expect([current.rowCount, history.rowCount]).toEqual([4, 6]);
  expect(findingsIn({ disk, manifest }).what).toEqual([]);
  return { disk, manifest, current, history };
}

function rowsOf(disk: SimulatedDisk, entry: SegmentEntry): Row[] {
  const reader = openSegmentFile(disk, segmentPath(PATHS, entry), entry.bytes);
  const rows: Row[] = [];
  for (let index = 0; index < reader.ownerCount; index += 1) {
    const { end, owner, start } = reader.ownerAt(index);
    for (let row = start; row < end; row += 1) {
      rows.push({
        owner,
        seq: reader.seqAt(row),
        prev: reader.prevAt(row),
        isDeleted: reader.isTombstone(row),
        key: Number(reader.valueAt(1, row)),
        replacedBy: reader.isHistory ? reader.replacingSeqAt(row) : 0,
      });
    }
  }
  reader.close();
  return rows;
}

/**
 * Replaces a segment with a segment that has different rows. All bytes of the new file are valid.
 */
function rewrite({ disk, manifest }: Directory, entry: SegmentEntry, rows: readonly Row[]): void {
  const all = rows.toSorted((a, b) => a.owner - b.owner || a.seq - b.seq);
  const numbers = (of: (row: Row) => number): Float64Array => Float64Array.from(all, of);
  const isHistory = entry.history !== undefined;
  const bytes = encodeSegment({
    segmentId: entry.segmentId,
    tableId: 1,
    keyColumnIds: [1],
    columns: [
      {
        columnId: 1,
        type: INT,
        vector: vectorFromValues(
          INT,
          Array.from(all, ({ key }) => key),
        ),
      },
      {
        columnId: 2,
        type: TEXT,
        vector: vectorFromValues(
          TEXT,
          Array.from(all, () => "x"),
        ),
      },
    ],
    owners: numbers(({ owner }) => owner),
    seqs: numbers(({ seq }) => seq),
    prevs: numbers(({ prev }) => prev),
    commitSeqs: numbers(({ seq }) => seq),
    deleted: Uint8Array.from(all, ({ isDeleted }) => (isDeleted ? 1 : 0)),
    isHistory,
    replacingSeqs: isHistory ? numbers(({ replacedBy }) => replacedBy) : undefined,
  });
  const path = segmentPath(PATHS, entry);
  const file = disk.open(path, { create: true });
  file.truncate(0);
  file.write(bytes, 0);
  file.close();
  const reader = openSegmentFile(disk, path, bytes.length);
  const history = listedHistory(reader);
  const { maxSeq, minSeq, rowCount } = reader;
  reader.close();
  const listed = { minSeq: minSeq as Seq, maxSeq: maxSeq as Seq, rowCount, bytes: bytes.length };
  const changed = { ...entry, ...listed, ...(history === undefined ? {} : { history }) };
  manifest.publish({ changeSegments: [changed] });
}

// A merge that mistook a current row for a replaced row would leave such files behind.
test.each(["the next one", "the flushed one"])(
  "the check finds a current row in history, as if replaced by %s",
  async (what) => {
    const directory = await small();
    const { current, disk, history, manifest } = directory;
    const rows = rowsOf(disk, current);
    const live = defined(
      rows.find(({ key }) => key === 3),
      "the row must exist",
    );
    const { flushedSeq } = defined(manifest.load().tables[0], "the table must have been flushed");
    const replacedBy = what === "the flushed one" ? flushedSeq : live.seq + 1;
    rewrite(
      directory,
      current,
      rows.filter((row) => row !== live),
    );
    rewrite(directory, history, [...rowsOf(disk, history), { ...live, replacedBy }]);
    const found = findingsIn(directory);
    expect(found.what).toHaveLength(1);
    expect(found.what[0]).toMatch(/^version \d+ of owner 1 was replaced by version \d+, which /);
    expect(found.damaged.map(({ segmentId }) => segmentId)).toEqual([history.segmentId]);
  },
);

test("the check finds an owner whose history a merge has skipped", async () => {
  const directory = await small();
  const { disk, history } = directory;
  rewrite(
    directory,
    history,
    rowsOf(disk, history).filter(({ owner }) => owner === 2),
  );
  const { damaged, what } = findingsIn(directory);
  expect(what).toHaveLength(1);
  expect(what[0]).toMatch(/^version \d+ of owner 1 replaces version \d+, which is missing$/);
  // The version is missing from one segment, but another segment refers to it.
  expect(damaged).toEqual([]);
});

test("the check does not miss versions discarded by the low watermark of their owner", async () => {
  const directory = await small();
  const { disk, history, manifest } = directory;
  rewrite(
    directory,
    history,
    rowsOf(disk, history).filter(({ owner }) => owner === 2),
  );
  const [state] = manifest.load().tables;
  const known = defined(state, "the table must have been flushed");
  manifest.publish({ tables: [{ ...known, ownerLowWaters: [[1, known.flushedSeq]] }] });
  expect(findingsIn(directory)).toEqual({ damaged: [], what: [] });
});

test.each(["highestReplacingSeq", "lowestReplacingSeq"] as const)(
  "the check finds a %s that is one too low",
  async (bound) => {
    const directory = await small();
    const { history, manifest } = directory;
    const bounds = defined(history.history, "the segment must be history");
    const changed = { ...history, history: { ...bounds, [bound]: (bounds[bound] - 1) as Seq } };
    manifest.publish({ changeSegments: [changed] });
    const { damaged, what } = findingsIn(directory);
    expect(what).toHaveLength(1);
    expect(damaged.map(({ segmentId }) => segmentId)).toEqual([history.segmentId]);
  },
);

test("the check finds unlisted history", async () => {
  const { disk, manifest, current, history } = await small();
  manifest.publish({ removeSegmentIds: [history.segmentId] });
  const live = defined(
    rowsOf(disk, current).find(({ prev }) => prev !== 0),
    "a row must have been updated",
  );
  const { damaged, what } = findingsIn({ disk, manifest });
  expect(damaged).toEqual([]);
  expect(what).toContain(
    `version ${live.seq} of owner ${live.owner} replaces version ${live.prev}, which is missing`,
  );
});

test("the check finds a version that is in two segments", async () => {
  const directory = await small();
  const { current, disk, history } = directory;
  const [doubled] = rowsOf(disk, history);
  rewrite(directory, current, [
    ...rowsOf(disk, current),
    defined(doubled, "the history must have rows"),
  ]);
  const { what } = findingsIn(directory);
  expect(what).toContainEqual(expect.stringMatching(/is also in segment \d+$/));
});

test("the check finds a seq of a replacement that is off by one, or above the flushed seq", async () => {
  for (const change of [1, -1, 2 ** 40]) {
    const directory = await small();
    const { disk, history } = directory;
    const rows = rowsOf(disk, history);
    const replaced = defined(
      rows.find(({ isDeleted, key }) => key === 1 && !isDeleted),
      "the row must exist",
    );
    replaced.replacedBy += change;
    rewrite(directory, history, rows);
    const { damaged } = findingsIn(directory);
    expect(
      damaged.map(({ segmentId }) => segmentId),
      `${change}`,
    ).toEqual([history.segmentId]);
  }
});

test("the check finds a deletion vector that lacks a replacement, by comparison with history", async () => {
  const directory = await small();
  const { disk, manifest } = directory;
  const options = { definitions: [TABLE] };
  const store = await openStore({ ...directory, ...options });
  await commit(store, 1, "update", [[3, "later"]], 1);
  await store.flush(1);
  await store.close();
  expect(findingsIn(directory).what).toEqual([]);
  const entry = defined(
    manifest.load().segments.find(({ deletionGeneration }) => deletionGeneration > 0),
    "the segment must have a deletion vector",
  );
  const path = deletionVectorPath(PATHS, entry);
  expect(listedDeletionCount(disk, path, entry)).toBe(1);
  const bytes = noDeletions(entry).encode();
  const file = disk.open(path, {});
  file.truncate(0);
  file.write(bytes, 0);
  file.close();
  const deletionHash = { generation: 1, ...hashOfDeletions(bytes, path) };
  manifest.publish({ changeSegments: [{ ...entry, deletionHash }] });
  const { what } = findingsIn(directory);
  expect(what).toHaveLength(1);
  expect(what[0]).toMatch(
    /^version \d+ of owner 1 replaces version \d+, which is recorded as current$/,
  );
});
