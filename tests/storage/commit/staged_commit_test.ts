/**
 * Tests a commit that is prepared over many ticks: the effects of concurrent work, and the state
 * after a crash. A large commit brings a memtable of its own, so some tests use one row more than
 * would fit otherwise.
 */
import { describe, expect, test } from "bun:test";
import { ROW_GROUP_ROWS_MAX } from "../../../src/base/limits.ts";
import { dataPathsOf } from "../../../src/storage/files.ts";
import type { LocalStore, StagedCommit, TableWrite } from "../../../src/storage/mod.ts";
import { INT, type Row, TEXT, vectorFromTexts, vectorFromValues } from "../../../src/types/mod.ts";
import { errorCodeOf, laterErrorCodeOf } from "../../support/error_codes.ts";
import { ManualClock } from "../../support/manual_clock.ts";
import { MemoryManifest } from "../../support/memory_manifest.ts";
import { SimulatedDisk } from "../../support/simulated_disk.ts";
import {
  commit,
  DATA_PATH,
  defineTable,
  failNextLogWrite,
  openStore,
  readRows,
} from "../../support/store_fixture.ts";
import { shareOf } from "../../support/thoroughness.ts";

const TABLE = defineTable(1, [{ kind: "int" }, { kind: "text" }]);
const LOG = defineTable(2, [{ kind: "int" }], []);
const MANY: number = ROW_GROUP_ROWS_MAX + 1;

function numbered(count: number, text: string, from = 0): Row[] {
  return Array.from({ length: count }, (_, i): Row => [from + i, text]);
}

function write(operation: TableWrite["operation"], rows: readonly Row[], tableId = 1): TableWrite {
  return { tableId, owner: 0, operation, rows };
}

async function finish(store: LocalStore, staged: StagedCommit): Promise<void> {
  while (!staged.settle()) await new Promise((resolve) => setImmediate(resolve));
  const { lastSeq } = staged.commit();
  await store.durable(lastSeq);
}

function valuesOf(store: LocalStore): unknown[][] {
  return readRows(store, TABLE).map(([, ...row]) => row);
}

/** Compares many rows as text, because printing the differences of rows would take minutes. */
function expectRows(store: LocalStore, rows: readonly (readonly unknown[])[]): void {
  expect(JSON.stringify(valuesOf(store)) === JSON.stringify(rows)).toBe(true);
}

/** The forms in which rows can be passed to a staged commit. */
const FORMS = ["by rows", "by columns", "by columns, over known versions"] as const;

/** Begins a staged commit that receives its rows in the given form. */
function stagedBy(
  form: (typeof FORMS)[number],
  store: LocalStore,
  options: Parameters<LocalStore["stage"]>[0],
): { staged: StagedCommit; add: (given: TableWrite) => void } {
  const staged = store.stage(options);
  const seqs = new Map(
    readRows(store, TABLE, { upTo: store.appliedSeq }).map(([seq, id]) => [id, Number(seq)]),
  );
  const add = (given: TableWrite): void => {
    if (form === "by rows") return staged.add(given);
    const { operation, rows } = given;
    const columns = [INT, TEXT].map((type, at) => {
      const values = rows.map((row) => row[at] ?? null);
      return (
        (type === TEXT ? vectorFromTexts(values) : undefined) ?? vectorFromValues(type, values)
      );
    });
    const byColumns = { ...given, rows: [], batch: { rowCount: rows.length, columns } };
    const isKnown = form === "by columns, over known versions" && operation !== "insert";
    const replacedSeqs = rows.map(([id]) => seqs.get(id ?? null) ?? 0);
    staged.add(isKnown ? { ...byColumns, replacedSeqs } : byColumns);
  };
  return { staged, add };
}

describe.each(shareOf(FORMS, { oneOf: 3 }))(
  "a staged commit that is written %s is atomic",
  (form) => {
    test("a staged commit is invisible before it completes, and visible as a whole afterwards", async () => {
      const store = await openStore({ definitions: [TABLE] });
      await commit(store, 1, "insert", numbered(3, "old"));
      const { add, staged } = stagedBy(form, store, { snapshotSeq: store.appliedSeq });
      add(write("update", numbered(2, "new")));
      add(write("delete", [[2, "old"]]));
      add(write("insert", [[9, "nine"]]));
      expect(valuesOf(store)).toEqual(numbered(3, "old") as unknown[][]);
      await finish(store, staged);
      expect(valuesOf(store)).toEqual([
        [0, "new"],
        [1, "new"],
        [9, "nine"],
      ]);
      await store.close();
    });

    test.each([
      ["into an empty memtable", 0],
      ["after the rows of another commit", 1],
    ])(
      "rows of several owners and without values are staged %s, and are found again",
      async (_, others) => {
        const store = await openStore({ definitions: [TABLE] });
        if (others > 0) await commit(store, 1, "insert", [[0, "theirs"]]);
        const { add, staged } = stagedBy(form, store, {});
        add(
          write("insert", [
            [1, null],
            [2, "two"],
            [-9, "ü"],
          ]),
        );
        add({
          ...write("insert", [
            [1, "of another"],
            [3, null],
          ]),
          owner: 7,
        });
        await finish(store, staged);
        await commit(store, 1, "update", [[2, "newer"]]);
        const expected = [
          ...(others > 0 ? [[0, "theirs"]] : []),
          [1, null],
          [-9, "ü"],
          [2, "newer"],
        ];
        expect(valuesOf(store)).toEqual(expected);
        expect(readRows(store, TABLE, { owner: 7 }).map(([, ...row]) => row)).toEqual([
          [1, "of another"],
          [3, null],
        ]);
        expect(errorCodeOf(() => void store.apply({ writes: [write("insert", [[-9, ""]])] }))).toBe(
          "DUPLICATE_KEY",
        );
        await store.flush(1);
        expect(valuesOf(store)).toEqual(expected);
        await store.close();
      },
    );

    test("startup reads the same rows with the same seqs from the log", async () => {
      const disk = new SimulatedDisk();
      const manifest = new MemoryManifest();
      const definitions = [TABLE];
      // With these options, each millisecond has so few seqs that they run out within a time
      // slice.
      const options = { nodeId: 1, nodeBits: 2 };
      const store = await openStore({ disk, manifest, definitions, options });
      await commit(store, 1, "insert", numbered(3000, "old"));
      const { add, staged } = stagedBy(form, store, { snapshotSeq: store.appliedSeq });
      add(write("update", numbered(3000, "new")));
      for (let from = 3000; from < 12_000; from += 3000) {
        add(write("insert", numbered(3000, "a", from)));
      }
      await finish(store, staged);
      const rows = JSON.stringify(readRows(store, TABLE));
      const crashed = disk.crash({ keep: "none" });
      void store.close();
      const again = await openStore({
        disk: crashed,
        manifest: manifest.restart(),
        definitions,
        options,
      });
      expect(JSON.stringify(readRows(again, TABLE)) === rows).toBe(true);
      await again.close();
    });

    test("an abandoned staged commit leaves nothing", async () => {
      const disk = new SimulatedDisk();
      const manifest = new MemoryManifest();
      const store = await openStore({ disk, manifest, definitions: [TABLE] });
      await commit(store, 1, "insert", numbered(3, "old"));
      const { appliedSeq } = store;
      stagedBy(form, store, {}).add(write("update", numbered(3, "new")));
      expect(store.appliedSeq).toBe(appliedSeq);
      await store.close();
      const again = await openStore({ disk, manifest: manifest.restart(), definitions: [TABLE] });
      expect(valuesOf(again)).toEqual(numbered(3, "old") as unknown[][]);
      await again.close();
    });

    test.each([
      ["update", "update"],
      ["update", "delete"],
      ["delete", "update"],
      ["insert", "insert"],
    ] as const)(
      "an %s of a key is refused after an %s of it by another commit",
      async (operation, other) => {
        const store = await openStore({ definitions: [TABLE] });
        await commit(store, 1, "insert", numbered(3, "old"));
        const id = operation === "insert" ? 7 : 1;
        const { add, staged } = stagedBy(form, store, { snapshotSeq: store.appliedSeq });
        add(write(operation, [[id, "new"]]));
        await commit(store, 1, other, [[id, "theirs"]]);
        const before = valuesOf(store);
        expect(await laterErrorCodeOf(async () => finish(store, staged))).toBe(
          "SERIALIZATION_FAILURE",
        );
        expect(valuesOf(store)).toEqual(before);
        await store.close();
      },
    );

    test.each([
      ["update", "update", "stored"],
      ["update", "delete", "in memory"],
      ["delete", "update", "in memory"],
      ["insert", "insert", "stored"],
    ] as const)(
      "an %s of a key is refused after an %s that was flushed in the meantime: %s",
      async (operation, other, place) => {
        const store = await openStore({ definitions: [TABLE] });
        await commit(store, 1, "insert", numbered(3, "old"));
        if (place === "stored") await store.flush(1);
        const id = operation === "insert" ? 7 : 1;
        const { add, staged } = stagedBy(form, store, { snapshotSeq: store.appliedSeq });
        add(write(operation, [[id, "new"]]));
        await commit(store, 1, other, [[id, "theirs"]]);
        await store.flush(1);
        const before = valuesOf(store);
        expect(await laterErrorCodeOf(async () => finish(store, staged))).toBe(
          "SERIALIZATION_FAILURE",
        );
        expect(valuesOf(store)).toEqual(before);
        await store.close();
      },
    );

    test("concurrent flushes of other keys cause no refusal", async () => {
      const store = await openStore({ definitions: [TABLE] });
      await commit(store, 1, "insert", numbered(3, "old"));
      const { add, staged } = stagedBy(form, store, { snapshotSeq: store.appliedSeq });
      add(write("update", numbered(2, "new")));
      add(write("insert", [[9, "nine"]]));
      await commit(store, 1, "update", [[2, "theirs"]]);
      await store.flush(1);
      await finish(store, staged);
      expect(valuesOf(store)).toEqual([
        [2, "theirs"],
        [0, "new"],
        [1, "new"],
        [9, "nine"],
      ]);
      await store.close();
    });

    test("rows committed after the snapshot, before a key was looked up, conflict at once", async () => {
      const store = await openStore({ definitions: [TABLE] });
      await commit(store, 1, "insert", numbered(3, "old"));
      const { add } = stagedBy(form, store, { snapshotSeq: store.appliedSeq });
      await commit(store, 1, "update", [[1, "theirs"]]);
      add(write("update", [[2, "new"]]));
      const adding = async (): Promise<void> => add(write("update", [[1, "new"]]));
      expect(await laterErrorCodeOf(adding)).toBe("SERIALIZATION_FAILURE");
      await store.close();
    });

    test("the same key twice in a staged commit is a duplicate", async () => {
      const store = await openStore({ definitions: [TABLE] });
      const { add } = stagedBy(form, store, {});
      const adding = async (): Promise<void> =>
        add(write("insert", [...numbered(2, "x"), [1, "y"]]));
      expect(await laterErrorCodeOf(adding)).toBe("DUPLICATE_KEY");
      await store.close();
    });

    test("a large staged commit brings its own memtable, and is unaffected by flushes and merges", async () => {
      const disk = new SimulatedDisk();
      const manifest = new MemoryManifest();
      const clock = new ManualClock();
      const store = await openStore({ disk, manifest, clock, definitions: [TABLE] });
      await commit(store, 1, "insert", numbered(MANY, "old"));
      const { add, staged } = stagedBy(form, store, { snapshotSeq: store.appliedSeq });
      for (let from = 0; from < MANY; from += 4096) {
        add(write("update", numbered(Math.min(4096, MANY - from), "new", from)));
        // The version to be replaced moves from the memtable to a segment, and then on to others.
        if (from === 8192) await store.flush(1);
        if (from === 16_384) await commit(store, 1, "insert", [[-1, "theirs"]]);
        if (from === 32_768) {
          await store.flush(1);
          await store.compact(1);
        }
      }
      await finish(store, staged);
      await commit(store, 1, "update", [[5, "newer"]]);
      const expected = [
        [-1, "theirs"],
        ...numbered(MANY, "new").filter(([id]) => id !== 5),
        [5, "newer"],
      ];
      expectRows(store, expected);
      expect(store.liveRowCount(1, 0)).toBe(MANY + 1);

      const crashed = disk.crash({ keep: "none" });
      void store.close();
      const definitions = [TABLE];
      const again = await openStore({
        disk: crashed,
        manifest: manifest.restart(),
        clock,
        definitions,
      });
      expectRows(again, expected);
      await again.flush(1);
      expectRows(again, expected);
      await again.close();
    });

    test("a crash before the last part is durable leaves nothing of a staged commit", async () => {
      const disk = new SimulatedDisk();
      const manifest = new MemoryManifest();
      const clock = new ManualClock();
      const definitions = [TABLE];
      const options = { walSegmentBytes: 1_048_576 };
      const store = await openStore({ disk, manifest, clock, definitions, options });
      await commit(store, 1, "insert", numbered(3, "old"));
      const { add, staged } = stagedBy(form, store, {});
      for (let from = 10; from < MANY; from += 4096) {
        add(write("insert", numbered(4096, "a text that makes several files", from)));
      }
      while (!staged.settle());
      const { lastSeq } = staged.commit();
      disk.holdsSyncs = true;
      void store.durable(lastSeq).catch(() => undefined);
      for (let turn = 0; turn < 5; turn += 1) await new Promise((resolve) => setImmediate(resolve));
      expect(store.visibleSeq).toBeLessThan(lastSeq);
      const crashed = disk.crash({ keep: "all" });
      const again = await openStore({
        disk: crashed,
        manifest: manifest.restart(),
        clock,
        definitions,
        options,
      });
      expect(valuesOf(again)).toEqual(numbered(3, "old") as unknown[][]);
      await commit(again, 1, "insert", [[10, "again"]]);
      expect(valuesOf(again)).toHaveLength(4);
      await again.close();
      disk.holdsSyncs = false;
      disk.releaseSyncs();
      await store.close();
    });

    test("a disk that is full at the third part rolls back all of a staged commit", async () => {
      const disk = new SimulatedDisk();
      const manifest = new MemoryManifest();
      const definitions = [TABLE];
      const options = { walSegmentBytes: 1_048_576 };
      const store = await openStore({ disk, manifest, definitions, options });
      await commit(store, 1, "insert", numbered(3, "old"));
      const { add, staged } = stagedBy(form, store, { snapshotSeq: store.appliedSeq });
      add(write("update", numbered(3, "new")));
      for (let from = 10; from < MANY + 10; from += 4096) {
        add(write("insert", numbered(4096, "a text that makes several files", from)));
      }
      while (!staged.settle());
      let parts = 0;
      disk.faultPlan = (operation, path) => {
        if (operation !== "write" || !path.endsWith(".wal")) return undefined;
        parts += 1;
        return parts === 3 ? { code: "ENOSPC", bytesWritten: 50 } : undefined;
      };
      const { lastSeq } = staged.commit();
      // This commit follows the failed commit in the log, so it is rolled back as well.
      const behind = store.apply({ writes: [write("update", [[1, "newer"]])] });
      const failures = [store.durable(lastSeq), store.durable(behind.lastSeq)].map((durable) =>
        laterErrorCodeOf(() => durable),
      );
      expect(await Promise.all(failures)).toEqual(["DISK_FULL", "DISK_FULL"]);
      disk.faultPlan = undefined;
      expect(valuesOf(store)).toEqual(numbered(3, "old") as unknown[][]);
      await commit(store, 1, "delete", [[2, "old"]]);
      await store.close();
      const again = await openStore({ disk, manifest: manifest.restart(), definitions, options });
      expect(valuesOf(again)).toEqual(numbered(2, "old") as unknown[][]);
      await again.close();
    });

    test("a full disk that rolls back rows that were read in between refuses the rest of the commit", async () => {
      const disk = new SimulatedDisk();
      const store = await openStore({ disk, definitions: [TABLE] });
      await commit(store, 1, "insert", numbered(1, "old"));
      failNextLogWrite(disk, { code: "ENOSPC" });
      const { lastSeq } = store.apply({ writes: [write("insert", [[5, "refused"]])] });
      const { add } = stagedBy(form, store, {});
      add(write("update", [[5, "changed"]]));
      expect(await laterErrorCodeOf(() => store.durable(lastSeq))).toBe("DISK_FULL");
      // This row takes the refused row's position in the memtable.
      await commit(store, 1, "insert", [[6, "other"]]);
      const update = write("update", [[6, "changed"]]);
      expect(errorCodeOf(() => add(update))).toBe("SERIALIZATION_FAILURE");
      expect(valuesOf(store)).toEqual([
        [0, "old"],
        [6, "other"],
      ]);
      await store.close();
    });
  },
);

test("a row added in the tick in which it was read conflicts only with later commits", async () => {
  const other = defineTable(3, [{ kind: "int" }, { kind: "text" }]);
  const store = await openStore({ definitions: [TABLE, other] });
  await commit(store, 3, "insert", [[1, "a"]]);
  const current = { ...write("update", [[1, "mine"]], 3), isCurrent: true };
  const staged = store.stage({ snapshotSeq: store.appliedSeq });
  staged.add(write("insert", [[1, "row"]]));
  await commit(store, 3, "update", [[1, "b"]]);
  staged.add(current);
  await finish(store, staged);
  expect(readRows(store, other).map(([, ...row]) => row)).toEqual([[1, "mine"]]);
  const late = store.stage({ snapshotSeq: store.appliedSeq });
  late.add(current);
  await commit(store, 3, "update", [[1, "c"]]);
  expect(await laterErrorCodeOf(() => finish(store, late))).toBe("SERIALIZATION_FAILURE");
  await store.close();
});

test("rows added after the table was altered are refused before they are looked up", async () => {
  const keyLast = defineTable(1, [{ kind: "int" }, { kind: "int" }], [2]);
  const store = await openStore({ definitions: [keyLast] });
  await commit(store, 1, "insert", [
    [7, 1],
    [7, 2],
    [7, 3],
  ]);
  await commit(store, 1, "delete", [[7, 2]]);
  const staged = store.stage({ snapshotSeq: store.appliedSeq });
  staged.add(write("update", [[8, 1]]));
  // Drops the column before the key. If the next row were looked up by its new columns, its key
  // would be 2, and the row with that key has been deleted.
  store.defineTable({ ...keyLast, columns: keyLast.columns.slice(1) });
  const add = async (): Promise<void> => staged.add(write("update", [[2, 3]]));
  expect(await laterErrorCodeOf(add)).toBe("SERIALIZATION_FAILURE");
  await store.close();
});

test("a damaged deletion vector is found before the commit, which leaves nothing", async () => {
  const disk = new SimulatedDisk();
  const manifest = new MemoryManifest();
  const definitions = [TABLE];
  const store = await openStore({ disk, manifest, definitions });
  await commit(store, 1, "insert", numbered(3, "old"));
  await store.flush(1);
  await commit(store, 1, "update", [[1, "new"]]);
  await store.flush(1);
  await store.close();
  disk.damage(`${dataPathsOf(DATA_PATH).segments}/1/1.1.dv`, 7);
  const again = await openStore({ disk, manifest, definitions });
  const { appliedSeq } = again;
  const staged = again.stage({ snapshotSeq: appliedSeq });
  expect(() => staged.add(write("update", [[2, "new"]]))).toThrow(/1\.1\.dv/);
  expect(again.appliedSeq).toBe(appliedSeq);
  await again.close();
});

test("a row that is deleted twice from a table without a key is refused", async () => {
  const store = await openStore({ definitions: [LOG] });
  const { firstSeq } = await commit(store, 2, "insert", [[1], [2]]);
  const removal = { ...write("delete", [[1]], 2), replacedSeqs: [firstSeq] };
  const staged = store.stage({});
  staged.add(removal);
  const { lastSeq } = store.apply({ writes: [removal] });
  await store.durable(lastSeq);
  expect(await laterErrorCodeOf(async () => finish(store, staged))).toBe("SERIALIZATION_FAILURE");
  expect(readRows(store, LOG).map(([, ...row]) => row)).toEqual([[2]]);
  await store.close();
});

test("a columnar insert finds the keys of all memtables that wait for a flush", async () => {
  const store = await openStore({ definitions: [TABLE] });
  await commit(store, 1, "insert", [[5, "in the first"]]);
  for (const key of [2_000_000, 1_000_000]) {
    const staged = store.stage({ snapshotSeq: store.appliedSeq });
    staged.add(write("insert", numbered(MANY, "many", key)));
    expect(staged.settle()).toBe(true);
    staged.commit();
  }
  const insert = (...keys: number[]): string | undefined => {
    const columns = [INT, TEXT].map((type, at) =>
      vectorFromValues(
        type,
        keys.map((key) => [key, "new"][at] ?? null),
      ),
    );
    const batch = { rowCount: keys.length, columns };
    return errorCodeOf(() => store.apply({ writes: [{ ...write("insert", []), batch }] }));
  };
  expect(insert(1_500_000, 2_000_007)).toBe("DUPLICATE_KEY");
  expect(insert(1_500_000, 5)).toBe("DUPLICATE_KEY");
  expect(insert(1_000_007)).toBe("DUPLICATE_KEY");
  expect(insert(1_500_000, 3_000_001)).toBeUndefined();
  expect(insert(1_500_000)).toBe("DUPLICATE_KEY");
  await store.durable(store.appliedSeq);
  expect(store.liveRowCount(1, 0)).toBe(2 * MANY + 3);
  await store.close();
});

test("a commit that an owner began before being erased is refused", async () => {
  const store = await openStore({ definitions: [TABLE] });
  const mine: TableWrite = {
    ...write("insert", numbered(3, "mine")),
    owner: 5,
  };
  const theirs: TableWrite = {
    ...write("insert", numbered(2, "theirs")),
    owner: 6,
  };
  await store.durable(store.apply({ writes: [mine, theirs] }).lastSeq);
  const staged = store.stage({});
  staged.add({ ...mine, rows: numbered(3, "later", 10) });
  expect(await store.erase(1, 5)).toBeGreaterThan(0);
  expect(await laterErrorCodeOf(async () => finish(store, staged))).toBe("PERMISSION_DENIED");
  const late = { ...mine, rows: numbered(1, "late", 20) };
  expect(errorCodeOf(() => store.apply({ writes: [late] }))).toBe("PERMISSION_DENIED");
  await store.durable(store.apply({ writes: [{ ...theirs, rows: [[7, "more"]] }] }).lastSeq);
  expect(store.owners(1)).toEqual([6]);
  await store.close();
});

/** Rows of 4 KB, enough to exceed the limit and to fill several small log files. */
const WIDE: readonly Row[] = numbered(50, "x".repeat(4000));

test.each([
  ["prepared over many turns", (store: LocalStore) => store.stage({}).add(write("insert", WIDE))],
  ["of one turn", (store: LocalStore) => void store.apply({ writes: [write("insert", WIDE)] })],
  [
    "of one turn and given by columns",
    (store: LocalStore) => {
      const columns = [INT, TEXT].map((type, at) =>
        vectorFromValues(
          type,
          WIDE.map((row) => row[at] ?? null),
        ),
      );
      const batch = { columns, rowCount: WIDE.length };
      store.apply({ writes: [{ ...write("insert", []), batch }] });
    },
  ],
])("a commit %s that is larger than allowed is refused, and leaves nothing", async (_, make) => {
  const disk = new SimulatedDisk();
  const manifest = new MemoryManifest();
  const options = { walSegmentBytes: 32_768, rowBytesMax: 8192, commitBytesMax: 100_000 };
  const parts = { disk, manifest, definitions: [TABLE], options };
  const store = await openStore(parts);
  await commit(store, 1, "insert", [[0, "before"]]);
  expect(errorCodeOf(() => make(store))).toBe("DUPLICATE_KEY");
  await commit(store, 1, "delete", [[0, "before"]]);
  expect(errorCodeOf(() => make(store))).toBe("LIMIT_EXCEEDED");
  expect(valuesOf(store)).toEqual([]);
  await commit(store, 1, "insert", WIDE.slice(0, 20));
  await store.close();
  const reopened = await openStore(parts);
  expectRows(reopened, WIDE.slice(0, 20));
  await reopened.close();
});

test("a few long rows stay in the current memtable", async () => {
  const options = { walSegmentBytes: 4 << 20, rowBytesMax: 2 << 20 };
  const store = await openStore({ definitions: [TABLE], options });
  await commit(store, 1, "insert", [[99, "before"]]);
  const staged = store.stage({});
  const long = numbered(17, "x".repeat(1 << 20));
  staged.add(write("insert", long));
  await finish(store, staged);
  await commit(store, 1, "update", [[99, "after"]]);
  expectRows(store, [...long, [99, "after"]]);
  await store.flush(1);
  // The row of the earlier commit is in a separate segment.
  expect(store.segments()[0]?.rowCount).toBe(1);
  expectRows(store, [...long, [99, "after"]]);
  await store.close();
});

test("startup puts a large commit to one table into several memtables, each with whole commits", async () => {
  const parts = { disk: new SimulatedDisk(), manifest: new MemoryManifest(), definitions: [TABLE] };
  const options = { walSegmentBytes: 32_768, rowBytesMax: 8192, replayedBytesMax: 100_000 };
  const store = await openStore({ ...parts, options });
  for (let from = 0; from < 90; from += 30) {
    await commit(store, 1, "insert", numbered(30, "x".repeat(4000), from));
  }
  await commit(store, 1, "update", [[0, "newest"]]);
  const expected = [[0, "newest"], ...numbered(90, "x".repeat(4000)).slice(1)];
  await store.close();
  const reopened = await openStore({ ...parts, options });
  const sorted = (of: LocalStore): Row[] =>
    (valuesOf(of) as Row[]).toSorted((left, right) => Number(left[0]) - Number(right[0]));
  expect(JSON.stringify(sorted(reopened)) === JSON.stringify(expected)).toBe(true);
  await reopened.flush(1);
  expect(reopened.segments().map(({ rowCount }) => rowCount)).toEqual([30, 30, 30, 1]);
  await reopened.close();
  const again = await openStore({ ...parts, options });
  expect(JSON.stringify(sorted(again)) === JSON.stringify(expected)).toBe(true);
  await again.close();
});
