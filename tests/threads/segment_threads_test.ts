/**
 * Tests segments written by other threads, with real files. The outcome of a job is reported to
 * this thread as if the job had run here.
 */
import { afterEach, expect, test } from "bun:test";
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { bunDisk } from "../../src/base/bun_disk.ts";
import { systemClock } from "../../src/base/clock.ts";
import { CorruptionError, DatabaseError, DiskError } from "../../src/base/errors.ts";
import type { Log } from "../../src/base/log.ts";
import type { LocalStore, MergeJob } from "../../src/storage/mod.ts";
import { SegmentThreads } from "../../src/threads/mod.ts";
import { MemoryManifest } from "../support/memory_manifest.ts";
import { programMissing, testThoroughly, testUnless } from "../support/requirements.ts";
import { commit, defineTable, openStore, readRows } from "../support/store_fixture.ts";
import { threadEntry } from "../support/thread_entries.ts";
import { until } from "../support/until.ts";

const ENTRY = threadEntry("segment_worker");

const TABLE = defineTable(1, [{ kind: "int" }, { kind: "text" }, { kind: "bigint" }]);

const directories: string[] = [];

afterEach(() => {
  for (const directory of directories.splice(0)) rmSync(directory, { recursive: true });
});

function newDirectory(): string {
  const directory = mkdtempSync(join(tmpdir(), "tidemark-jobs-"));
  directories.push(directory);
  return directory;
}

async function open(dataPath: string, manifest: MemoryManifest): Promise<LocalStore> {
  const segmentWork = new SegmentThreads(systemClock, { entry: ENTRY });
  return openStore({ disk: bunDisk, dataPath, manifest, definitions: [TABLE], segmentWork });
}

/** Writes as many segments as trigger a merge, with rows that replace one another. */
async function fill(store: LocalStore, segmentCount: number): Promise<void> {
  for (let round = 0; round < segmentCount; round += 1) {
    await commit(store, 1, "insert", [[round, `row ${round}`, 2n ** 60n + BigInt(round)]]);
    if (round > 0) await commit(store, 1, "update", [[round - 1, "updated", null]]);
    await store.flush(1);
  }
}

class RecordingLog implements Log {
  readonly errors: string[] = [];
  debug(): void {}
  info(): void {}
  warn(): void {}
  error(message: string): void {
    this.errors.push(message);
  }
}

async function logged(log: RecordingLog, count: number): Promise<void> {
  const deadline = Date.now() + 20_000;
  while (log.errors.length < count) {
    if (Date.now() > deadline) throw new Error(`There are ${log.errors.length} errors`);
    await new Promise((resolve) => setImmediate(resolve));
  }
}

function currentCount(store: LocalStore): number {
  return store.segments().filter(({ kind }) => kind === "current").length;
}

async function mergedTo(store: LocalStore, segments: number): Promise<void> {
  const deadline = Date.now() + 20_000;
  while (currentCount(store) !== segments) {
    if (Date.now() > deadline) throw new Error(`There are ${currentCount(store)} segments`);
    await new Promise((resolve) => setImmediate(resolve));
  }
}

/** Returns a merge job over the segments that a manifest lists. */
function jobFor(directory: string, manifest: MemoryManifest): MergeJob {
  const sources = manifest.load().segments.map((entry) => ({
    path: `${directory}/segments/1/${entry.segmentId}.seg`,
    entry,
  }));
  const { columns, keyColumnIds } = TABLE;
  const current = { segmentId: 99, pendingPath: `${directory}/tmp/99.seg` };
  const past = { segmentId: 98, pendingPath: `${directory}/tmp/98.seg` };
  const limits = { retentionFloorSeq: 0, expiredSeq: 0, settledSeq: 0 };
  const history = { ...limits, replaced: [] };
  const indexes = [] as const;
  const compression = "none" as const;
  const table = { tableId: 1, columns, keyColumnIds, compression };
  return { sources, current, past, indexes, ...table, history };
}

test("a store whose segments another thread merges reads as before, even after a restart", async () => {
  const dataPath = newDirectory();
  const manifest = new MemoryManifest();
  const store = await open(dataPath, manifest);
  await fill(store, 7);
  expect(store.stats(1).segments).toBe(7);
  await commit(store, 1, "insert", [[7, "row 7", null]]);
  const before = readRows(store, TABLE, { withTombstones: true });
  await store.flush(1);
  await mergedTo(store, 1);
  expect(readRows(store, TABLE, { withTombstones: true })).toEqual(before);
  await store.close();
  const again = await open(dataPath, manifest);
  expect(readRows(again, TABLE, { withTombstones: true })).toEqual(before);
  await again.close();
});

testThoroughly("jobs wait in a queue, and a runner that was closed starts again", async () => {
  const directory = newDirectory();
  const manifest = new MemoryManifest();
  const store = await open(directory, manifest);
  await fill(store, 3);
  const job = jobFor(directory, manifest);
  const segmentWork = new SegmentThreads(systemClock, { entry: ENTRY });
  const outcomes = await Promise.all([
    segmentWork.merge(job, () => false),
    segmentWork.merge(
      { ...job, current: { segmentId: 99, pendingPath: `${directory}/tmp/100.seg` } },
      () => false,
    ),
    segmentWork.merge(job, () => true),
  ]);
  expect(outcomes.map((outcome) => outcome?.current?.rowCount)).toEqual([5, 5, undefined]);
  expect(outcomes[0]?.newRows.map((rows) => Array.from(rows))).toEqual([[0], [1, 2], [3, 4]]);
  segmentWork.close();
  const afterwards = await segmentWork.merge(job, () => false);
  expect(afterwards?.current?.rowCount).toBe(5);
  segmentWork.close();
  await store.close();
});

test("damage and disk errors of the other thread are reported on this one, and the thread continues", async () => {
  const directory = newDirectory();
  const manifest = new MemoryManifest();
  const store = await open(directory, manifest);
  await fill(store, 2);
  await store.close();
  const job = jobFor(directory, manifest);
  const [first, second] = job.sources;
  if (first === undefined || second === undefined) throw new Error("There should be two segments");
  const segmentWork = new SegmentThreads(systemClock, { entry: ENTRY });
  const failure = (changed: Partial<MergeJob>): Promise<unknown> =>
    segmentWork.merge({ ...job, ...changed }, () => false).catch((error: unknown) => error);

  const bytes = readFileSync(second.path);
  bytes[bytes.length - 60] = (bytes.at(-60) ?? 0) ^ 1;
  writeFileSync(second.path, bytes);
  const damage = await failure({});
  expect(damage).toBeInstanceOf(CorruptionError);
  expect((damage as CorruptionError).path).toBe(second.path);

  const missing = await failure({ sources: [{ ...first, path: `${directory}/none.seg` }] });
  expect(missing).toBeInstanceOf(CorruptionError);
  expect((missing as Error).message).toContain("ENOENT");

  const nowhere = { segmentId: 99, pendingPath: `${directory}/no/such/place.seg` };
  const noPlace = await failure({ sources: [first], current: nowhere });
  expect(noPlace).toBeInstanceOf(DiskError);
  expect((noPlace as DiskError).code).toBe("ENOENT");

  const whole = await segmentWork.merge({ ...job, sources: [first] }, () => false);
  expect(whole?.current?.rowCount).toBe(1);
  segmentWork.close();
});

test("a thread that dies during a job fails that job, and the next job gets another thread", async () => {
  const directory = newDirectory();
  const manifest = new MemoryManifest();
  const log = new RecordingLog();
  const entry = new URL("../support/dying_worker.ts", import.meta.url);
  const segmentWork = new SegmentThreads(systemClock, { entry });
  const parts = { disk: bunDisk, manifest, log, definitions: [TABLE], segmentWork };
  const store = await openStore({ ...parts, dataPath: directory });
  await fill(store, 8);
  await logged(log, 1);
  const before = readRows(store, TABLE, { withTombstones: true });
  expect(store.stats(1).segments).toBe(8);
  // Each further flush triggers the merge again, and its thread dies in a different way.
  for (const round of [8, 9]) {
    await commit(store, 1, "insert", [[round, "more", null]]);
    await store.flush(1);
    await logged(log, round - 6);
  }
  expect(log.errors).toEqual(Array.from({ length: 3 }, () => "cannot merge segments"));
  // The temporary files of a failed job are removed shortly afterwards.
  await until(() => readdirSync(`${directory}/tmp`).length === 0);
  expect(readRows(store, TABLE, { withTombstones: true }).length).toBe(before.length + 2);
  await store.close();
  const again = await open(directory, manifest);
  await commit(again, 1, "insert", [[10, "more", null]]);
  await again.flush(1);
  await mergedTo(again, 4);
  await again.close();
});

test("flushes and merges have a thread each, and share one if memory is scarce", async () => {
  const answers = `self.onmessage = ({ data }) => self.postMessage({
    kind: data.work.kind, outcome: data.garbageBytesMax, heapBytes: 7 });`;
  const entry = new URL(URL.createObjectURL(new Blob([answers], { type: "text/javascript" })));
  const merge = jobFor("", new MemoryManifest());
  const { columns: _columns, current: _current, ...outline } = merge;
  const none = new Float64Array(0);
  const numbers = { owners: none, seqs: none, prevs: none, commitSeqs: none };
  const rows = { columns: [], rowCount: 0, ...numbers, deleted: new Uint8Array(0) };
  const flush = { ...outline, segmentId: 1, pendingPath: "", rows };
  const seen: unknown[] = [];
  for (const isSingle of [false, true]) {
    const threads = new SegmentThreads(systemClock, { entry, garbageBytesMax: 5, isSingle });
    const outcomes: unknown[] = await Promise.all([
      threads.flush(flush, () => false),
      threads.merge(merge, () => false),
    ]);
    seen.push(outcomes, threads.heapBytes);
    threads.close();
    seen.push(threads.heapBytes);
  }
  expect(seen).toEqual([[5, 5], 14, 0, [5, 5], 7, 0]);
});

test("a thread that cannot start fails its job", async () => {
  const directory = newDirectory();
  const manifest = new MemoryManifest();
  const store = await open(directory, manifest);
  await fill(store, 2);
  await store.close();
  const entry = new URL("../support/no_such_worker.ts", import.meta.url);
  const segmentWork = new SegmentThreads(systemClock, { entry });
  const failure = segmentWork.merge(jobFor(directory, manifest), () => false);
  expect(await failure.catch((error: unknown) => error)).toBeInstanceOf(DatabaseError);
  segmentWork.close();
});

testUnless(programMissing("prlimit", "util-linux"))(
  "a thread that would find no descriptor is not started, and the process continues",
  () => {
    const source = new URL("../../src", import.meta.url).pathname;
    const text = `
      import { openSync } from "node:fs";
      import { systemClock } from "${source}/base/clock.ts";
      import { SegmentThreads } from "${source}/threads/segment_threads.ts";
      const threads = new SegmentThreads(systemClock, { entry: new URL("${ENTRY.href}") });
      try {
        for (;;) openSync("/dev/null", "r");
      } catch {}
      await threads.flush({}, () => false).catch((error) => console.log(error.code));
      process.exit(7);`;
    const command = ["prlimit", "--nofile=100:100", process.execPath, "-e", text];
    const { exitCode, stdout } = Bun.spawnSync(command);
    expect([exitCode, stdout.toString()]).toEqual([7, "STORAGE_UNAVAILABLE\n"]);
  },
);
