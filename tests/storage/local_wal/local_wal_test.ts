/**
 * Tests the files of the log. Everything that is written can be read back. Whatever happens to the
 * bytes, the next start either finds every acknowledged commit or refuses to open.
 */

import { expect, test } from "bun:test";
import { ByteWriter } from "../../../src/base/byte_writer.ts";
import { CorruptionError } from "../../../src/base/errors.ts";
import { COMMIT_BYTES_MAX } from "../../../src/base/limits.ts";
import { type Log, type LogFields, silentLog } from "../../../src/base/log.ts";
import {
  dataPathsOf,
  decodeWalHeader,
  WAL_HEADER_BYTES,
  walFilePath,
} from "../../../src/storage/files.ts";
import {
  beginFrame,
  decodeFrame,
  encodeWalHeader,
  type Frame,
  onlyTableOf,
  sealFrame,
} from "../../../src/storage/local_wal/format.ts";
import { FrameEncoder } from "../../../src/storage/local_wal/frame_encoder.ts";
import { openHighWater } from "../../../src/storage/local_wal/high_water.ts";
import { decodeWrites, WriteReader } from "../../../src/storage/local_wal/logged_writes.ts";
import type { LocalStore, TableWrite } from "../../../src/storage/mod.ts";
import type { Row, Value } from "../../../src/types/mod.ts";
import { readValue } from "../../../src/types/mod.ts";
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
const PATHS = dataPathsOf(DATA_PATH);
const WAL_1 = walFilePath(PATHS, 1);

function firstFrame(bytes: Uint8Array, fileNumber = 1): Frame | undefined {
  return decodeFrame(bytes, { path: "x", offset: 0, fileNumber });
}

interface TakenRow {
  readonly name: string;
  readonly row: readonly Value[];
}

/**
 * Returns the rows of a frame whose seqs are above the given seq of their table, with the versions
 * that they replace.
 */
function rowsAbove(frame: Frame, skips: Readonly<Record<number, number>>): TakenRow[] {
  const taken: TakenRow[] = [];
  new WriteReader().read(frame, ({ columns, tableId }) => {
    const skipsUpTo = skips[tableId];
    if (skipsUpTo === undefined) return undefined;
    return {
      skipsUpTo,
      takeRow(from, seq, prev) {
        const row = columns.columnIds.map(() => readValue(from));
        taken.push({ name: `${tableId}: ${seq} < ${prev}`, row });
      },
    };
  });
  return taken;
}

function encodeCommit(
  writes: readonly (TableWrite & { seqs: number[]; prevs: number[] })[],
): Uint8Array {
  const encoder = new FrameEncoder({
    fileBytes: 65536,
    rowBytesMax: 4096,
    commitBytesMax: COMMIT_BYTES_MAX,
    isRelaxed: false,
    position: { fileNumber: 1, offset: 64, frameNumber: 0 },
    lastSeq: 0,
  });
  encoder.currentFile = { number: 1, bytes: 65536 };
  encoder.begin(77);
  for (const write of writes) {
    encoder.beginWrite(
      write,
      write.rows[0]?.map((_, index) => ({
        columnId: index + 1,
        name: "c",
        type: index === 1 ? { kind: "decimal", precision: 20, scale: 3 } : { kind: "text" },
        missing: null,
      })) ?? [],
    );
    for (const [index, row] of write.rows.entries()) {
      encoder.addRow(row, write.seqs[index] ?? 0, write.prevs[index] ?? 0);
    }
  }
  encoder.end();
  return new Uint8Array(encoder.takeGroup().bytes);
}

const VALUES: Row = [
  "text",
  2n ** 70n,
  null,
  true,
  false,
  0,
  255,
  256,
  -1,
  2 ** 40,
  0.5,
  -(2n ** 64n),
  "ünï€𝄞",
  "long ".repeat(50),
  new Uint8Array([0, 255]),
  new Float32Array([1.5, -2]),
];

test("the frame of a commit preserves every kind of value, seq, prev, owner and form", () => {
  const rows = [VALUES, VALUES.map(() => null)];
  const write = { tableId: 9, owner: 2 ** 40, operation: "update", rows } as const;
  const bytes = encodeCommit([
    { ...write, seqs: [5000, 5001], prevs: [0, 4000] },
    { ...write, operation: "delete", seqs: [9000, 9005], prevs: [1, 2] },
  ]);
  const frame = firstFrame(bytes);
  if (frame === undefined) throw new Error("the frame is valid");
  expect([frame.kind, frame.firstSeq, frame.lastSeq, frame.catalogSeq]).toEqual([
    "commit",
    5000,
    9005,
    77,
  ]);
  const writes = decodeWrites(frame);
  expect(writes.map(({ seqs, prevs }) => [seqs, prevs])).toEqual([
    [
      [5000, 5001],
      [0, 4000],
    ],
    [
      [9000, 9005],
      [1, 2],
    ],
  ]);
  for (const { tableId, owner, rows: found, forms } of writes) {
    expect([tableId, owner, forms[1], forms[2]]).toEqual([9, 2 ** 40, 3, 0]);
    expect(found).toEqual(rows.map((row) => row.slice()));
  }
});

test("rows up to a seq of their table are skipped, and the others stay unchanged", () => {
  const rows = [VALUES, VALUES.map(() => null), VALUES];
  const write = { tableId: 9, owner: 3, operation: "update", rows } as const;
  const bytes = encodeCommit([
    { ...write, seqs: [10, 11, 12], prevs: [0, 4, 0] },
    { ...write, tableId: 4, seqs: [13, 20, 21], prevs: [0, 0, 7] },
    { ...write, seqs: [22, 23, 30], prevs: [1, 2, 3] },
  ]);
  const frame = firstFrame(bytes);
  if (frame === undefined) throw new Error("the frame is valid");
  expect(rowsAbove(frame, { 9: 9, 4: 9 }).map(({ name }) => name)).toEqual([
    "9: 10 < 0",
    "9: 11 < 4",
    "9: 12 < 0",
    "4: 13 < 0",
    "4: 20 < 0",
    "4: 21 < 7",
    "9: 22 < 1",
    "9: 23 < 2",
    "9: 30 < 3",
  ]);
  expect(rowsAbove(frame, { 9: 22, 4: 9 }).map(({ name }) => name)).toEqual([
    "4: 13 < 0",
    "4: 20 < 0",
    "4: 21 < 7",
    "9: 23 < 2",
    "9: 30 < 3",
  ]);
  expect(rowsAbove(frame, { 9: 11 }).map(({ name }) => name)).toEqual([
    "9: 12 < 0",
    "9: 22 < 1",
    "9: 23 < 2",
    "9: 30 < 3",
  ]);
  expect(rowsAbove(frame, { 9: 30, 4: 21 })).toEqual([]);
  const [last] = rowsAbove(frame, { 9: 23, 4: 21 });
  expect(last).toEqual({ name: "9: 30 < 3", row: VALUES.slice() });
});

test("onlyTableOf returns the table of a frame whose rows belong to a single write", () => {
  const row = ["a", "b"];
  const write = { tableId: 9, owner: 3, operation: "insert" } as const;
  const one = { ...write, rows: [row, row, row], seqs: [10, 11, 12], prevs: [0, 5, 0] };
  const other = { ...write, tableId: 4, rows: [row], seqs: [13], prevs: [0] };
  const tableOf = (...writes: Parameters<typeof encodeCommit>[0][number][]): unknown => {
    const frame = firstFrame(encodeCommit(writes));
    return frame === undefined ? "no frame" : onlyTableOf(frame);
  };
  expect(tableOf(one)).toBe(9);
  expect(tableOf(other)).toBe(4);
  expect(tableOf(one, other)).toBeUndefined();
  // Seqs in a gap may belong to another write, so the frame has to be decoded.
  expect(tableOf({ ...one, seqs: [10, 11, 14] })).toBeUndefined();
});

test("a frame with any single byte damaged is invalid", () => {
  const write = { tableId: 1, owner: 0, operation: "insert", rows: [[1, "abc"]] } as const;
  const good = encodeCommit([{ ...write, seqs: [10], prevs: [0] }]);
  expect(firstFrame(good)).toBeDefined();
  for (let offset = 0; offset < good.length; offset += 1) {
    for (const mask of [0x01, 0x80, 0xff]) {
      const damaged = new Uint8Array(good);
      damaged[offset] = (damaged[offset] ?? 0) ^ mask;
      expect(firstFrame(damaged), `byte ${offset}`).toBeUndefined();
    }
  }
  expect(firstFrame(good, 2), "a frame of another file").toBeUndefined();
  for (let length = 0; length < good.length; length += 1) {
    expect(firstFrame(good.slice(0, length)), `cut to ${length}`).toBeUndefined();
  }
});

test("a log file whose header has any single byte damaged is refused", () => {
  const header = { fileNumber: 7, baseSeq: 2 ** 45 };
  const good = encodeWalHeader(header);
  expect(decodeWalHeader(good, "x")).toEqual(header);
  for (let offset = 0; offset < WAL_HEADER_BYTES; offset += 1) {
    const damaged = new Uint8Array(good);
    damaged[offset] = (damaged[offset] ?? 0) ^ 0x10;
    expect(() => decodeWalHeader(damaged, "x"), `byte ${offset}`).toThrow(CorruptionError);
  }
});

test("the high-water file keeps the last seq when the slot being written is torn", () => {
  const disk = new SimulatedDisk();
  disk.makeDirectory(PATHS.wal);
  const { file } = openHighWater(disk, PATHS.highWater);
  for (const seq of [10, 20, 30]) file.write(seq);
  file.close();
  expect(openHighWater(disk, PATHS.highWater).value).toBe(30);
  for (let offset = 16; offset < 32; offset += 1) {
    const torn = disk.restart();
    torn.damage(PATHS.highWater, offset);
    expect(openHighWater(torn, PATHS.highWater).value, `byte ${offset}`).toBe(20);
  }
});

/** Returns a store with three acknowledged commits, each in a group of its own, and its disk. */
async function threeCommits(): Promise<{
  disk: SimulatedDisk;
  store: LocalStore;
  offsets: number[];
}> {
  const disk = new SimulatedDisk();
  const store = await openStore({ disk, definitions: [TABLE] });
  for (const id of [1, 2, 3]) await commit(store, 1, "insert", [[id, `row ${id}`]]);
  const bytes = disk.readFile(WAL_1);
  const offsets = [WAL_HEADER_BYTES];
  for (;;) {
    const frame = decodeFrame(bytes, { path: WAL_1, offset: offsets.at(-1) ?? 0, fileNumber: 1 });
    if (frame === undefined) break;
    offsets.push(frame.offset + frame.length);
  }
  expect(offsets.length).toBe(4);
  return { disk, store, offsets };
}

function reopen(disk: SimulatedDisk, log: Log = silentLog): Promise<LocalStore> {
  return openStore({ disk, log, definitions: [TABLE] });
}

function idsOf(store: LocalStore): unknown[] {
  return readRows(store, TABLE).map(([, id]) => id);
}

test("damage in the middle of the log is refused with the file and the offset of the frame", async () => {
  const { disk, store, offsets } = await threeCommits();
  for (const [index, frameStart] of offsets.slice(0, 2).entries()) {
    for (let byte = frameStart; byte < (offsets[index + 1] ?? 0); byte += 7) {
      const damaged = disk.restart();
      damaged.damage(WAL_1, byte);
      const error: unknown = await reopen(damaged).catch((reason: unknown) => reason);
      expect(error).toBeInstanceOf(CorruptionError);
      if (error instanceof CorruptionError) {
        expect([error.path, error.offset]).toEqual([WAL_1, frameStart]);
      }
    }
  }
  await store.close();
});

test("damage in the last acknowledged frame is refused, because the high-water file records it", async () => {
  const { disk, store, offsets } = await threeCommits();
  const [, , third = 0, end = 0] = offsets;
  for (let byte = third; byte < end; byte += 1) {
    const damaged = disk.restart();
    damaged.damage(WAL_1, byte);
    expect(await reopen(damaged).catch((reason: unknown) => reason)).toBeInstanceOf(
      CorruptionError,
    );
  }
  await store.close();
});

test("a torn last frame is truncated and logged with its offset, and the log continues there", async () => {
  const { disk, store } = await threeCommits();
  disk.holdsSyncs = true;
  const torn = store.apply({
    writes: [{ tableId: 1, owner: 0, operation: "insert", rows: [[4, "x".repeat(2000)]] }],
  });
  store.durable(torn.lastSeq).catch(() => {});
  await new Promise((resolve) => setImmediate(resolve));
  const crashed = disk.restart();
  const start = crashed.readFile(WAL_1).findLastIndex((byte) => byte !== 0) - 1000;
  crashed.damage(WAL_1, start);

  const lines: [string, LogFields | undefined][] = [];
  const log = {
    ...silentLog,
    warn: (message: string, fields?: LogFields) => lines.push([message, fields]),
  };
  const again = await reopen(crashed, log);
  expect(idsOf(again)).toEqual([1, 2, 3]);
  expect(lines[0]?.[0]).toBe("truncated a partly written group at the end of the log");
  expect(lines[0]?.[1]?.["path"]).toBe(WAL_1);
  await commit(again, 1, "insert", [[5, "after"]]);
  const third = await reopen(crashed.crash({ keep: "none" }));
  expect(idsOf(third)).toEqual([1, 2, 3, 5]);
  disk.holdsSyncs = false;
  disk.releaseSyncs();
  await Promise.all([store, again, third].map((each) => each.close()));
});

test("a torn group is truncated even if a later frame of it is intact, and never reappears", async () => {
  const { disk, store } = await threeCommits();
  disk.holdsSyncs = true;
  // The first commit is being written. The other two commits form the next group.
  const applied = [4, 5, 6].map((id) =>
    store.apply({
      writes: [{ tableId: 1, owner: 0, operation: "insert", rows: [[id, "same size"]] }],
    }),
  );
  for (const { lastSeq } of applied) store.durable(lastSeq).catch(() => {});
  await new Promise((resolve) => setImmediate(resolve));
  const crashed = disk.restart();
  const bytes = crashed.readFile(WAL_1);
  let offset = WAL_HEADER_BYTES;
  for (let frame = 0; frame < 3; frame += 1) {
    offset += decodeFrame(bytes, { path: WAL_1, offset, fileNumber: 1 })?.length ?? 0;
  }
  crashed.damage(WAL_1, offset + 60);
  const again = await reopen(crashed);
  expect(idsOf(again)).toEqual([1, 2, 3]);
  // The new frame has the same size as the damaged frame, so it ends exactly where the intact
  // frame of the torn group began.
  await commit(again, 1, "insert", [[7, "same size"]]);
  const third = await reopen(crashed.crash({ keep: "none" }));
  expect(idsOf(third)).toEqual([1, 2, 3, 7]);
  disk.holdsSyncs = false;
  disk.releaseSyncs();
  await Promise.all([store, again, third].map((each) => each.close()));
});

test("a missing log file is refused", async () => {
  const disk = new SimulatedDisk();
  const manifest = new MemoryManifest();
  const options = { walSegmentBytes: 16384, rowBytesMax: 4096 };
  const store = await openStore({ disk, manifest, definitions: [TABLE], options });
  for (let id = 0; id < 30; id += 1) await commit(store, 1, "insert", [[id, "x".repeat(2000)]]);
  await store.close();
  expect(disk.list(PATHS.wal).length).toBeGreaterThan(3);
  for (const missing of [2, 3]) {
    const other = disk.restart();
    other.remove(walFilePath(PATHS, missing));
    const opening = openStore({ disk: other, manifest, definitions: [TABLE], options });
    expect(await opening.catch((reason: unknown) => reason)).toBeInstanceOf(CorruptionError);
  }
});

test("a commit larger than a log file spans several, and is read back completely", async () => {
  const disk = new SimulatedDisk();
  const options = { walSegmentBytes: 16384, rowBytesMax: 4096 };
  const store = await openStore({ disk, definitions: [TABLE], options });
  await commit(store, 1, "insert", [[0, "before"]]);
  const rows = Array.from({ length: 40 }, (_, index): Row => [index + 1, "y".repeat(1000)]);
  await commit(store, 1, "insert", rows);
  expect(disk.list(PATHS.wal).length).toBeGreaterThan(3);
  const whole = await openStore({
    disk: disk.crash({ keep: "none" }),
    definitions: [TABLE],
    options,
  });
  expect(idsOf(whole).length).toBe(41);

  await Promise.all([store, whole].map((each) => each.close()));
});

test("a part of a commit keeps the files with the preceding parts, even after a restart", async () => {
  const disk = new SimulatedDisk();
  const manifest = new MemoryManifest();
  const other = defineTable(2, [{ kind: "int" }, { kind: "text" }]);
  const options = { walSegmentBytes: 16384, rowBytesMax: 4096 };
  const definitions = [TABLE, other];
  const first = await openStore({ disk, manifest, definitions, options });
  // The rows of table 1 fill the first log file. The row of table 2 is in the last part of the
  // commit.
  const rows = Array.from({ length: 12 }, (_, id): Row => [id, "y".repeat(2000)]);
  const { lastSeq } = first.apply({
    writes: [
      { tableId: 1, owner: 0, operation: "insert", rows },
      { tableId: 2, owner: 0, operation: "insert", rows: [[1, "in the last part"]] },
    ],
  });
  await first.durable(lastSeq);
  await first.close();
  const second = await openStore({ disk, manifest, definitions, options });
  await second.flush(1);
  await second.close();
  const third = await openStore({ disk, manifest, definitions, options });
  expect(readRows(third, other).map(([, ...row]) => row)).toEqual([[1, "in the last part"]]);
  expect(idsOf(third).length).toBe(12);
  await third.close();
});

test("log files are recycled once every table is flushed, and stale frames in them never count", async () => {
  const disk = new SimulatedDisk();
  const manifest = new MemoryManifest();
  const options = { walSegmentBytes: 16384, rowBytesMax: 4096, walMaxBytes: 3 * 16384 };
  let store = await openStore({ disk, manifest, definitions: [TABLE], options });
  for (let round = 0; round < 6; round += 1) {
    for (let id = 0; id < 12; id += 1) {
      await commit(store, 1, "insert", [[round * 100 + id, "x".repeat(2000)]]);
    }
    await store.flush(1);
    await store.close();
    store = await openStore({ disk, manifest, definitions: [TABLE], options });
    expect(idsOf(store).length).toBe((round + 1) * 12);
    expect(disk.list(PATHS.wal).length).toBeLessThanOrEqual(3);
  }
  await store.close();
});

test("log files that a flush releases together are all reused without filling them with zeros", async () => {
  const disk = new SimulatedDisk();
  const options = { walSegmentBytes: 16384, rowBytesMax: 4096 };
  const store = await openStore({ disk, definitions: [TABLE], options });
  let id = 0;
  const fillFiles = async (count: number): Promise<void> => {
    const end = lastNumber() + count;
    while (lastNumber() < end) await commit(store, 1, "insert", [[id++, "x".repeat(2000)]]);
  };
  const lastNumber = (): number => Math.max(...numbersIn(disk));
  await fillFiles(4);
  await store.flush(1);
  expect(numbersIn(disk)).toEqual([5]);
  let sparesWritten = 0;
  disk.faultPlan = (operation, path) => {
    if (operation === "write" && path.startsWith(PATHS.tmp)) sparesWritten += 1;
    return undefined;
  };
  await fillFiles(4);
  // The only write to each spare file is its header.
  expect(sparesWritten).toBe(4);
  expect(numbersIn(disk)).toEqual([5, 6, 7, 8, 9]);
  disk.faultPlan = undefined;
  await store.close();
  expect(disk.list(PATHS.tmp)).toEqual([]);
});

test("a disk with little space gets back all spare log files except one", async () => {
  const disk = new SimulatedDisk();
  const options = { walSegmentBytes: 16384, rowBytesMax: 4096 };
  const store = await openStore({ disk, definitions: [TABLE], options });
  for (let id = 0; id < 30; id += 1) await commit(store, 1, "insert", [[id, "x".repeat(2000)]]);
  await store.flush(1);
  expect(disk.list(PATHS.tmp).length).toBeGreaterThan(2);
  disk.capacityBytes = disk.byteCount() + 8 * 16384;
  await commit(store, 1, "insert", [[100, "x"]]);
  await store.flush(1);
  expect(disk.list(PATHS.tmp).length).toBe(1);
  await store.close();
});

test("the next log file is created in the first pause after a quarter of the current one", async () => {
  const disk = new SimulatedDisk();
  const clock = new ManualClock();
  const options = { walSegmentBytes: 16384, rowBytesMax: 4096 };
  const store = await openStore({ disk, clock, definitions: [TABLE], options });
  const spares = async (): Promise<number> => {
    for (let turn = 0; turn < 10; turn += 1) await clock.yield();
    return disk.list(PATHS.tmp).length;
  };
  await commit(store, 1, "insert", [[1, "x".repeat(2000)]]);
  clock.advance(1000);
  expect(await spares()).toBe(0);
  await commit(store, 1, "insert", [[2, "x".repeat(2000)]]);
  await commit(store, 1, "insert", [[3, "x".repeat(500)]]);
  clock.advance(60);
  await commit(store, 1, "insert", [[4, "x"]]);
  clock.advance(60);
  // The log file has been written to since, so the wait for a pause starts over.
  expect(await spares()).toBe(0);
  clock.advance(100);
  expect(await spares()).toBe(1);
  await store.close();
});

function numbersIn(disk: SimulatedDisk): number[] {
  const numbers = disk.list(PATHS.wal).map(({ name }) => Number.parseInt(name, 10));
  return numbers.filter((number) => number > 0).toSorted((left, right) => left - right);
}

test("sealFrame pads to 8 bytes, and the checksum covers the padding", () => {
  for (let size = 0; size < 9; size += 1) {
    const bytes = new ByteWriter();
    const start = beginFrame(bytes);
    bytes.skip(size);
    sealFrame(bytes, start, {
      kind: "part",
      fileNumber: 1,
      frameNumber: 0,
      durableFrames: 0,
      firstSeq: 1,
      lastSeq: 1,
      catalogSeq: 0,
    });
    expect(bytes.length % 8).toBe(0);
    expect(firstFrame(bytes.copy())?.body.length).toBe(size);
  }
});
