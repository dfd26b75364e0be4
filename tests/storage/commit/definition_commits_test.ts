/**
 * Tests commits of rows together with definitions: the rows are in the log before the definitions
 * are in the catalog, and the catalog decides whether both take effect.
 */
import { expect, test } from "bun:test";
import { DatabaseError } from "../../../src/base/errors.ts";
import type { Seq } from "../../../src/base/seq.ts";
import type { LocalStore } from "../../../src/storage/mod.ts";
import { INT, type Row, TEXT } from "../../../src/types/mod.ts";
import { laterErrorCodeOf } from "../../support/error_codes.ts";
import { MemoryManifest } from "../../support/memory_manifest.ts";
import { type CrashOptions, SimulatedDisk } from "../../support/simulated_disk.ts";
import {
  commit,
  defineTable,
  failNextLogWrite,
  openStore,
  readRows,
} from "../../support/store_fixture.ts";

const TABLE = defineTable(1, [INT, TEXT]);
const OTHER = defineTable(2, [INT]);
const DEFINITIONS = [TABLE, OTHER];

function rowsOf(store: LocalStore): Row[] {
  return readRows(store, TABLE).map(([, ...row]) => row);
}

interface TogetherOptions {
  readonly rows: readonly Row[];
  /** Called in place of a change to the catalog. */
  readonly publish?: () => void;
}

/**
 * Commits rows together with definitions, as the SQL layer does. Returns the seq of the commit.
 */
function together(
  store: LocalStore,
  manifest: MemoryManifest,
  { publish = () => {}, rows }: TogetherOptions,
): Promise<Seq> {
  return store.exclusively(() => {
    const seq = store.issueSeq();
    manifest.undone.add(seq);
    const writes = [{ tableId: 1, owner: 0, operation: "insert", rows } as const];
    return store.applyWith(
      { writes },
      {
        seq,
        publish: () => {
          publish();
          manifest.undone.delete(seq);
          manifest.catalogSeq = seq;
        },
      },
    ).lastSeq;
  });
}

/** Recovers a store from the disk and the manifest that a killed process left behind. */
function recovered(
  disk: SimulatedDisk,
  manifest: MemoryManifest,
  crash: CrashOptions = { keep: "all" },
): Promise<LocalStore> {
  return openStore({ disk: disk.crash(crash), manifest, definitions: DEFINITIONS });
}

test("exclusively waits for commits on their way, and runs with all of them visible", async () => {
  const store = await openStore({ definitions: DEFINITIONS });
  const before = store.apply({
    writes: [{ tableId: 1, owner: 0, operation: "insert", rows: [[1, "a"]] }],
  });
  const seen = store.exclusively(() => ({ visible: store.visibleSeq, applied: store.appliedSeq }));
  const during = commit(store, 2, "insert", [[7]]);
  const { applied, visible } = await seen;
  expect(visible).toBe(applied);
  expect(visible).toBeGreaterThanOrEqual(before.lastSeq);
  await during;
  expect(await store.exclusively(() => readRows(store, OTHER).length)).toBe(1);
  await store.close();
});

test("several callers of exclusively run one after another, between commits", async () => {
  const store = await openStore({ definitions: DEFINITIONS });
  const order: number[] = [];
  const all = [1, 2, 3].map((each) => store.exclusively(() => void order.push(each)));
  const commits = Array.from({ length: 20 }, (_, id) => commit(store, 2, "insert", [[id]]));
  await Promise.all([...all, ...commits]);
  expect(order.toSorted((left, right) => left - right)).toEqual([1, 2, 3]);
  expect(readRows(store, OTHER).length).toBe(20);
  await store.close();
});

test("rows and definitions become visible together, and survive a crash together", async () => {
  const disk = new SimulatedDisk();
  const manifest = new MemoryManifest();
  const store = await openStore({ disk, manifest, definitions: DEFINITIONS });
  let isVisible = true;
  await together(store, manifest, {
    rows: [[1, "a"]],
    publish: () => {
      isVisible = rowsOf(store).length > 0;
    },
  });
  expect(isVisible).toBe(false);
  expect(rowsOf(store)).toEqual([[1, "a"]]);
  await commit(store, 1, "insert", [[2, "b"]]);
  const after = await recovered(disk, manifest, { keep: "none" });
  expect(rowsOf(after)).toEqual([
    [1, "a"],
    [2, "b"],
  ]);
  await after.close();
});

test("a process that is killed before the definitions are durable leaves no row, and none appears later", async () => {
  const disk = new SimulatedDisk();
  const manifest = new MemoryManifest();
  const store = await openStore({ disk, manifest, definitions: DEFINITIONS });
  await commit(store, 1, "insert", [[1, "kept"]]);
  let killed: SimulatedDisk | undefined;
  const refused = laterErrorCodeOf(() =>
    together(store, manifest, {
      rows: [[2, "undone"]],
      publish: () => {
        killed = disk.crash({ keep: "none" });
        throw new DatabaseError("DISK_FULL", "the catalog is full");
      },
    }),
  );
  expect(await refused).toBe("DISK_FULL");
  if (killed === undefined) throw new Error("the rows were not written");
  const next = await openStore({ disk: killed, manifest, definitions: DEFINITIONS });
  expect(rowsOf(next)).toEqual([[1, "kept"]]);
  await commit(next, 1, "insert", [[2, "later"]]);
  // Committing newer definitions must not bring back the rows that recovery has dropped.
  await together(next, manifest, { rows: [[3, "newer"]] });
  const last = await recovered(killed, manifest);
  expect(rowsOf(last)).toEqual([
    [1, "kept"],
    [2, "later"],
    [3, "newer"],
  ]);
  await last.close();
});

test("the rows of a commit are rolled back if the catalog refuses the definitions", async () => {
  const disk = new SimulatedDisk();
  const manifest = new MemoryManifest();
  const store = await openStore({ disk, manifest, definitions: DEFINITIONS });
  const refused = laterErrorCodeOf(() =>
    together(store, manifest, {
      rows: [[1, "a"]],
      publish: () => {
        throw new DatabaseError("DISK_FULL", "the catalog is full");
      },
    }),
  );
  expect(await refused).toBe("DISK_FULL");
  expect(rowsOf(store)).toEqual([]);
  await commit(store, 1, "insert", [[1, "b"]]);
  expect(rowsOf(store)).toEqual([[1, "b"]]);
  const after = await recovered(disk, manifest);
  expect(rowsOf(after)).toEqual([[1, "b"]]);
  await after.close();
});

test("a commit says when the log may have its rows, which is never for a refused one", async () => {
  const store = await openStore({ definitions: DEFINITIONS });
  await commit(store, 1, "insert", [[1, "a"]]);
  const steps: string[] = [];
  const writing = (rows: readonly Row[]): Promise<Seq> =>
    store.exclusively(() => {
      const writes = [{ tableId: 1, owner: 0, operation: "insert", rows } as const];
      const onWriting = (): void => void steps.push("writing");
      const publish = (): void => void steps.push("publish");
      return store.applyWith({ writes }, { seq: store.issueSeq(), onWriting, publish }).lastSeq;
    });
  expect(await laterErrorCodeOf(() => writing([[1, "again"]]))).toBe("DUPLICATE_KEY");
  expect(steps).toEqual([]);
  await writing([[2, "b"]]);
  expect(steps).toEqual(["writing", "publish"]);
  await store.close();
});

test("definitions are not published if the log cannot be written", async () => {
  const disk = new SimulatedDisk();
  const manifest = new MemoryManifest();
  const store = await openStore({ disk, manifest, definitions: DEFINITIONS });
  await commit(store, 1, "insert", [[1, "a"]]);
  failNextLogWrite(disk, { code: "ENOSPC" });
  let isPublished = false;
  const failed = laterErrorCodeOf(() =>
    together(store, manifest, {
      rows: [[2, "b"]],
      publish: () => {
        isPublished = true;
      },
    }),
  );
  expect(await failed).toBe("DISK_FULL");
  expect(isPublished).toBe(false);
  expect(rowsOf(store)).toEqual([[1, "a"]]);
  await store.close();
});

test("a commit with definitions may take several log files", async () => {
  const disk = new SimulatedDisk();
  const manifest = new MemoryManifest();
  const store = await openStore({ disk, manifest, definitions: DEFINITIONS });
  const text = "x".repeat(4000);
  const rows = Array.from({ length: 60 }, (_, id): Row => [id, text]);
  let killed: SimulatedDisk | undefined;
  await together(store, manifest, {
    rows,
    publish: () => {
      killed = disk.crash({ keep: "none" });
    },
  });
  expect(rowsOf(store).length).toBe(60);
  const after = await recovered(disk, manifest);
  expect(rowsOf(after).length).toBe(60);
  await after.close();
  if (killed === undefined) throw new Error("the rows were not written");
  const undone = new MemoryManifest();
  undone.undone.add(manifest.catalogSeq);
  const before = await openStore({ disk: killed, manifest: undone, definitions: DEFINITIONS });
  expect(rowsOf(before)).toEqual([]);
  await before.close();
});

test("a closing store finishes a commit with definitions", async () => {
  const manifest = new MemoryManifest();
  const store = await openStore({ manifest, definitions: DEFINITIONS });
  const made = together(store, manifest, { rows: [[1, "a"]] });
  await made;
  await store.close();
  expect(manifest.undone.size).toBe(0);
});
