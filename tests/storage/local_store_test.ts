/** Tests the guarantees that the store gives its callers, each in a separate test. */
import { expect, test } from "bun:test";
import { SEQ_EPOCH_MS, SEQ_ZERO, type Seq } from "../../src/base/seq.ts";
import { type ChangedPartition, LocalStore, type Store } from "../../src/storage/mod.ts";
import { errorCodeOf, laterErrorCodeOf } from "../support/error_codes.ts";
import { ManualClock } from "../support/manual_clock.ts";
import { MemoryManifest } from "../support/memory_manifest.ts";
import { SimulatedDisk } from "../support/simulated_disk.ts";
import {
  commit,
  DATA_PATH,
  defineTable,
  openStore,
  readChanges,
  readRows,
} from "../support/store_fixture.ts";

const TABLE = defineTable(1, [{ kind: "int" }, { kind: "text" }]);

const OTHER = defineTable(2, [{ kind: "int" }, { kind: "text" }]);

function rowsOf(store: Store, upTo?: number): unknown[][] {
  return readRows(store, TABLE, upTo === undefined ? {} : { upTo }).map(([, ...row]) => row);
}

test("apply takes effect in memory at once, and becomes visible only after the sync", async () => {
  const disk = new SimulatedDisk();
  const store = await openStore({ disk, definitions: [TABLE] });
  disk.holdsSyncs = true;
  const { firstSeq, lastSeq } = store.apply({
    writes: [
      {
        tableId: 1,
        owner: 0,
        operation: "insert",
        rows: [
          [1, "a"],
          [2, "b"],
        ],
      },
    ],
  });
  expect(lastSeq).toBeGreaterThan(firstSeq);
  expect(store.appliedSeq).toBe(lastSeq);
  expect(store.visibleSeq).toBe(SEQ_ZERO);
  expect(rowsOf(store)).toEqual([]);
  expect(rowsOf(store, store.appliedSeq)).toEqual([
    [1, "a"],
    [2, "b"],
  ]);

  const durable = store.durable(lastSeq);
  await new Promise((resolve) => setImmediate(resolve));
  expect(store.visibleSeq).toBe(SEQ_ZERO);
  disk.holdsSyncs = false;
  disk.releaseSyncs();
  await durable;
  expect(store.visibleSeq).toBe(lastSeq);
  expect(rowsOf(store)).toEqual([
    [1, "a"],
    [2, "b"],
  ]);
  await store.close();
});

test("onVisible is called once for each changed partition, before writers get their responses", async () => {
  const store = await openStore({ definitions: [TABLE, OTHER] });
  const events: unknown[] = [];
  store.onVisible = (changed: readonly ChangedPartition[], seq: Seq) => {
    expect(store.visibleSeq).toBe(seq);
    events.push(changed.map(({ tableId, owner }) => `${tableId}/${owner}`));
  };
  const commits = [7, 8, 7].map((owner, index) =>
    store.apply({
      writes: [
        { tableId: 1, owner, operation: "insert", rows: [[index, "a"]] },
        { tableId: 2, owner: 5, operation: "insert", rows: [[index, "b"]] },
      ],
    }),
  );
  await Promise.all(
    commits.map(async ({ lastSeq }) => {
      await store.durable(lastSeq);
      events.push("answered");
    }),
  );
  expect(events).toEqual([["1/7", "2/5", "1/8"], "answered", "answered", "answered"]);
  await store.close();
});

test("apply accepts no row of a batch if one of its rows is refused", async () => {
  const store = await openStore({ definitions: [TABLE, OTHER] });
  await commit(store, 1, "insert", [[1, "a"]]);
  const before = store.appliedSeq;
  const refused = (): unknown =>
    store.apply({
      writes: [
        { tableId: 1, owner: 0, operation: "update", rows: [[1, "changed"]] },
        {
          tableId: 1,
          owner: 0,
          operation: "insert",
          rows: [
            [2, "b"],
            [1, "twice"],
          ],
        },
      ],
    });
  expect(await laterErrorCodeOf(refused)).toBe("DUPLICATE_KEY");
  expect(store.appliedSeq).toBe(before);
  expect(rowsOf(store, store.appliedSeq)).toEqual([[1, "a"]]);
  // The key of the rolled-back row can be inserted again, and the row that it replaced can be
  // replaced anew.
  await commit(store, 1, "insert", [[2, "c"]]);
  await commit(store, 1, "update", [[1, "d"]]);
  expect(rowsOf(store)).toEqual([
    [2, "c"],
    [1, "d"],
  ]);
  await store.close();
});

test("apply refuses a duplicate key within a batch, a memtable and a segment, but not across owners", async () => {
  const store = await openStore({ definitions: [TABLE] });
  const insert =
    (owner: number, ...keys: number[]) =>
    () =>
      commit(
        store,
        1,
        "insert",
        keys.map((key) => [key, "x"]),
        owner,
      );
  expect(await laterErrorCodeOf(insert(1, 5, 5))).toBe("DUPLICATE_KEY");
  await insert(1, 5)();
  expect(await laterErrorCodeOf(insert(1, 5))).toBe("DUPLICATE_KEY");
  await store.flush(1);
  expect(await laterErrorCodeOf(insert(1, 5))).toBe("DUPLICATE_KEY");
  expect(await laterErrorCodeOf(insert(2, 5))).toBeUndefined();
  await store.close();
});

test("apply names the existing key", async () => {
  const store = await openStore({ definitions: [TABLE] });
  await commit(store, 1, "insert", [[5, "x"]]);
  expect(() =>
    store.apply({ writes: [{ tableId: 1, owner: 0, operation: "insert", rows: [[5, "y"]] }] }),
  ).toThrow("Cannot insert into app.t1: key (c1) = (5) already exists");
  await store.close();
});

test("an insert over a tombstone follows the tombstone as its prev, without an old row", async () => {
  const store = await openStore({ definitions: [TABLE] });
  const inserted = await commit(store, 1, "insert", [[1, "a"]]);
  const deleted = await commit(store, 1, "delete", [[1, "a"]]);
  await store.flush(1);
  const again = await commit(store, 1, "insert", [[1, "b"]]);
  expect(
    readChanges(store, TABLE).map(({ seq, prev, isDeleted, old }) => [seq, prev, isDeleted, old]),
  ).toEqual([
    [inserted.lastSeq, 0, false, undefined],
    [deleted.lastSeq, inserted.lastSeq, true, [1, "a"]],
    [again.lastSeq, deleted.lastSeq, false, undefined],
  ]);
  await store.close();
});

test("a transaction fails only on a key that changed after its snapshot", async () => {
  const store = await openStore({ definitions: [TABLE] });
  await commit(store, 1, "insert", [
    [1, "a"],
    [2, "b"],
    [3, "c"],
  ]);
  const snapshotSeq = store.visibleSeq;
  await commit(store, 1, "update", [[1, "A"]]);
  await commit(store, 1, "delete", [[2, "b"]]);
  const writes = (operation: "insert" | "update", id: number) => () =>
    store.apply({ writes: [{ tableId: 1, owner: 0, operation, rows: [[id, "t"]] }], snapshotSeq });
  expect(await laterErrorCodeOf(writes("update", 1))).toBe("SERIALIZATION_FAILURE");
  expect(await laterErrorCodeOf(writes("update", 2))).toBe("SERIALIZATION_FAILURE");
  expect(await laterErrorCodeOf(writes("insert", 2))).toBe("SERIALIZATION_FAILURE");
  expect(await laterErrorCodeOf(writes("update", 3))).toBeUndefined();
  await store.close();
});

test("a transaction can write a key that changed after its snapshot, if it read the row in the same tick", async () => {
  const store = await openStore({ definitions: [TABLE] });
  await commit(store, 1, "insert", [[1, "a"]]);
  const snapshotSeq = store.visibleSeq;
  await commit(store, 1, "update", [[1, "A"]]);
  const rows = [[1, "t"]];
  const write = { tableId: 1, owner: 0, operation: "update", rows } as const;
  expect(errorCodeOf(() => store.apply({ writes: [write], snapshotSeq }))).toBe(
    "SERIALIZATION_FAILURE",
  );
  const { lastSeq } = store.apply({ writes: [{ ...write, isCurrent: true }], snapshotSeq });
  await store.durable(lastSeq);
  expect(rowsOf(store)).toEqual([[1, "t"]]);
  await store.close();
});

test("a transaction may write the same key several times", async () => {
  const store = await openStore({ definitions: [TABLE] });
  const { lastSeq } = store.apply({
    snapshotSeq: store.visibleSeq,
    writes: [
      { tableId: 1, owner: 0, operation: "insert", rows: [[1, "a"]] },
      { tableId: 1, owner: 0, operation: "update", rows: [[1, "b"]] },
      { tableId: 1, owner: 0, operation: "delete", rows: [[1, "b"]] },
      { tableId: 1, owner: 0, operation: "insert", rows: [[1, "c"]] },
    ],
  });
  await store.durable(lastSeq);
  expect(rowsOf(store)).toEqual([[1, "c"]]);
  expect(readChanges(store, TABLE).every(({ commitSeq }) => commitSeq === lastSeq)).toBe(true);
  await store.close();
});

test("scan reads any earlier seq, before and after a flush", async () => {
  const store = await openStore({ definitions: [TABLE] });
  const states: [number, unknown[][]][] = [[0, []]];
  const note = (): unknown => states.push([store.visibleSeq, rowsOf(store)]);
  await commit(store, 1, "insert", [
    [1, "a"],
    [2, "b"],
  ]);
  note();
  await commit(store, 1, "update", [[1, "c"]]);
  note();
  await store.flush(1);
  await commit(store, 1, "delete", [[2, "b"]]);
  note();
  await commit(store, 1, "update", [[1, "d"]]);
  note();
  const check = (): void => {
    for (const [seq, rows] of states) expect(rowsOf(store, seq)).toEqual(rows);
  };
  check();
  await store.flush(1);
  check();
  expect(states.at(-1)?.[1]).toEqual([[1, "d"]]);
  await store.close();
});

test("a scan continues over the rows it opened with while they are flushed and replaced", async () => {
  const store = await openStore({ definitions: [TABLE] });
  await commit(store, 1, "insert", [
    [1, "a"],
    [2, "b"],
    [3, "c"],
  ]);
  const scan = store.scan(1, { owner: 0, upTo: store.visibleSeq, columnIds: [1], batchRows: 1 });
  expect(scan.next()?.rowCount).toBe(1);
  await store.flush(1);
  await commit(store, 1, "delete", [
    [2, "b"],
    [3, "c"],
  ]);
  expect(scan.next()?.rowCount).toBe(1);
  expect(scan.next()?.rowCount).toBe(1);
  expect(scan.next()).toBeUndefined();
  scan.close();
  await store.close();
});

test("lookup finds the version of a key at a seq without a scan", async () => {
  const store = await openStore({ definitions: [TABLE] });
  const first = await commit(store, 1, "insert", [[1, "a"]]);
  await store.flush(1);
  const second = await commit(store, 1, "update", [[1, "b"]]);
  const third = await commit(store, 1, "delete", [[1, "b"]]);
  const at = (seq: number, id = 1): unknown =>
    store.lookup(1, { owner: 0, key: [id], upTo: seq as Seq, columnIds: [2, -1] });
  expect(at(first.firstSeq - 1)).toBeUndefined();
  expect(at(first.lastSeq)).toEqual(["a", first.lastSeq]);
  expect(at(second.lastSeq)).toEqual(["b", second.lastSeq]);
  expect(at(third.lastSeq)).toBeUndefined();
  expect(at(third.lastSeq, 9)).toBeUndefined();
  await store.close();
});

test("scan skips row groups that their zone maps exclude", async () => {
  const store = await openStore({ definitions: [TABLE] });
  await commit(store, 1, "insert", [
    [1, "a"],
    [2, "b"],
  ]);
  await store.flush(1);
  await commit(store, 1, "insert", [[11, "c"]]);
  await store.flush(1);
  const scan = store.scan(1, {
    owner: 0,
    upTo: store.visibleSeq,
    columnIds: [1],
    ranges: [{ columnId: 1, min: 10, max: Infinity }],
  });
  let rowCount = 0;
  for (let batch = scan.next(); batch !== undefined; batch = scan.next())
    rowCount += batch.rowCount;
  expect([rowCount, scan.groupsRead, scan.groupsPruned]).toEqual([1, 1, 1]);
  scan.close();
  await store.close();
});

test("defineTable adds, drops and widens columns of existing rows", async () => {
  const disk = new SimulatedDisk();
  const manifest = new MemoryManifest();
  const decimal = defineTable(1, [{ kind: "int" }, { kind: "decimal", precision: 9, scale: 1 }]);
  const store = await openStore({ disk, manifest, definitions: [decimal] });
  await commit(store, 1, "insert", [[1, 15]]);
  await store.flush(1);
  await commit(store, 1, "insert", [[2, 25]]);
  const [id, amount] = decimal.columns;
  if (id === undefined || amount === undefined) throw new Error("the table has two columns");
  const changed = {
    ...decimal,
    columns: [
      { ...id, type: { kind: "bigint" } as const },
      { ...amount, type: { kind: "decimal", precision: 12, scale: 3 } as const },
      { columnId: 3, name: "c3", type: { kind: "text" } as const, missing: "new" },
    ],
  };
  store.defineTable(changed);
  await commit(store, 1, "insert", [[2 ** 40, 3500, "own"]]);
  const expected = [
    [1, 1500, "new"],
    [2, 2500, "new"],
    [2 ** 40, 3500, "own"],
  ];
  const read = (from: Store): unknown => readRows(from, changed).map(([, ...row]) => row);
  expect(read(store)).toEqual(expected);
  const key = { owner: 0, key: [1], upTo: store.visibleSeq, columnIds: [2, 3] };
  expect(store.lookup(1, key)).toEqual([1500, "new"]);

  const recovered = await openStore({
    disk: disk.crash({ keep: "none" }),
    manifest: manifest.restart(),
    definitions: [changed],
  });
  expect(read(recovered)).toEqual(expected);
  await store.close();
});

test("dropTable makes a table unreadable at once, and removes its files after the last reader", async () => {
  const disk = new SimulatedDisk();
  const manifest = new MemoryManifest();
  const store = await openStore({ disk, manifest, definitions: [TABLE, OTHER] });
  await commit(store, 1, "insert", [[1, "a"]]);
  await store.flush(1);
  const scan = store.scan(1, { owner: 0, upTo: store.visibleSeq, columnIds: [1] });
  manifest.forget(1);
  store.dropTable(1);
  expect(await laterErrorCodeOf(() => rowsOf(store))).toBe("TABLE_NOT_FOUND");
  expect(disk.list(`${DATA_PATH}/segments/1`).length).toBe(1);
  expect(scan.next()?.rowCount).toBe(1);
  scan.close();
  expect(disk.list(`${DATA_PATH}/segments/1`)).toEqual([]);
  await store.close();
});

test("recovery skips the rows of a table that the catalog no longer contains", async () => {
  const disk = new SimulatedDisk();
  const manifest = new MemoryManifest();
  const store = await openStore({ disk, manifest, definitions: [TABLE, OTHER] });
  await commit(store, 1, "insert", [[1, "a"]]);
  await store.flush(1);
  await commit(store, 1, "insert", [[2, "b"]]);
  await commit(store, 2, "insert", [[1, "kept"]]);
  await store.close();
  const again = await openStore({ disk, manifest, definitions: [OTHER] });
  expect(manifest.load().segments).toEqual([]);
  expect(again.segments()).toEqual([]);
  expect(readRows(again, OTHER).map(([, ...row]) => row)).toEqual([[1, "kept"]]);
  // The file was not deleted, although the catalog says that it is no longer needed.
  expect(disk.list(`${DATA_PATH}/lost+found`).map(({ name }) => name)).toEqual(["1-1.seg"]);
  await again.close();
});

test("seqs and ids ascend across restarts, even if the clock goes back", async () => {
  const disk = new SimulatedDisk();
  const manifest = new MemoryManifest();
  const store = await openStore({ disk, manifest, definitions: [TABLE] });
  const id = store.snowflakeId();
  expect(store.snowflakeId()).toBeGreaterThan(id);
  const { lastSeq } = await commit(store, 1, "insert", [[1, "a"]]);
  const lastId = store.snowflakeId();
  const issued = store.issueSeq();
  expect(issued).toBeGreaterThan(lastSeq);
  manifest.catalogSeq = issued;

  const back = new ManualClock(SEQ_EPOCH_MS + 1_800_000);
  const crashed = disk.crash({ keep: "none" });
  const again = await openStore({
    disk: crashed,
    manifest: manifest.restart(),
    clock: back,
    definitions: [TABLE],
  });
  expect(again.snowflakeId()).toBeGreaterThan(lastId);
  expect(again.issueSeq()).toBeGreaterThan(issued);
  const next = await commit(again, 1, "insert", [[2, "b"]]);
  expect(next.firstSeq).toBeGreaterThan(issued);
  await again.close();
  await store.close();
});

test("LocalStore.open refuses a catalog that is older than the log", async () => {
  const disk = new SimulatedDisk();
  const manifest = new MemoryManifest();
  const older = manifest.restart();
  const store = await openStore({ disk, manifest, definitions: [TABLE] });
  manifest.catalogSeq = store.issueSeq();
  store.defineTable(OTHER);
  await commit(store, 2, "insert", [[1, "a"]]);
  await store.close();
  const opening = (): unknown => openStore({ disk, manifest: older, definitions: [TABLE] });
  expect(await laterErrorCodeOf(opening)).toBe("STORAGE_UNAVAILABLE");
  const again = await openStore({ disk, manifest, definitions: [TABLE, OTHER] });
  expect(readRows(again, OTHER).length).toBe(1);
  await again.close();
});

test("LocalStore.open changes nothing in the manifest if it is refused", async () => {
  const disk = new SimulatedDisk();
  const manifest = new MemoryManifest();
  const store = await openStore({ disk, manifest, definitions: [TABLE] });
  await commit(store, 1, "insert", [[1, "a"]]);
  await store.flush(1);
  const older = manifest.restart();
  manifest.catalogSeq = store.issueSeq();
  store.defineTable(OTHER);
  await commit(store, 2, "insert", [[1, "b"]]);
  await store.close();
  // The first table has no definition, although the manifest lists its segment.
  const opening = (): unknown => openStore({ disk, manifest: older, definitions: [OTHER] });
  expect(await laterErrorCodeOf(opening)).toBe("STORAGE_UNAVAILABLE");
  expect(older.load()).toEqual(manifest.load());
});

test("snowflakeId never repeats an id, not even one without a durable row", async () => {
  let disk = new SimulatedDisk();
  let last = 0;
  for (let life = 0; life < 4; life += 1) {
    // Each process starts at the same clock time, right after a power loss.
    const store = await openStore({ disk, definitions: [TABLE] });
    for (let count = 0; count < 5000; count += 1) {
      const id = store.snowflakeId();
      expect(id).toBeGreaterThan(last);
      last = id;
    }
    expect(store.visibleSeq).toBe(SEQ_ZERO);
    disk = disk.crash({ keep: "none" });
    await store.close();
  }
});

test("LocalStore.open refuses a directory in use, and a newer format without changing a byte", async () => {
  const disk = new SimulatedDisk();
  const store = await openStore({ disk, definitions: [TABLE] });
  expect(await laterErrorCodeOf(() => openStore({ disk, definitions: [TABLE] }))).toBe(
    "STORAGE_UNAVAILABLE",
  );
  await store.close();

  const file = disk.open(`${DATA_PATH}/format.json`, {});
  file.truncate(0);
  file.write(Buffer.from('{"format":2}\n'), 0);
  file.close();
  let changeCount = 0;
  disk.faultPlan = (operation) => {
    if (!["read", "list", "map"].includes(operation)) changeCount += 1;
    return undefined;
  };
  expect(await laterErrorCodeOf(() => openStore({ disk, definitions: [TABLE] }))).toBe(
    "STORAGE_UNAVAILABLE",
  );
  expect(changeCount).toBe(0);
});

test("liveRowCount follows commits as they become visible", async () => {
  const disk = new SimulatedDisk();
  const store = await openStore({ disk, definitions: [TABLE] });
  await commit(
    store,
    1,
    "insert",
    [
      [1, "a"],
      [2, "b"],
    ],
    1,
  );
  await commit(store, 1, "insert", [[1, "a"]], 2);
  const counts = (): number[] => [undefined, 1, 2].map((owner) => store.liveRowCount(1, owner));
  expect(counts()).toEqual([3, 2, 1]);
  disk.holdsSyncs = true;
  const pending = commit(store, 1, "delete", [[2, "b"]], 1);
  expect(counts()).toEqual([3, 2, 1]);
  disk.holdsSyncs = false;
  await new Promise((resolve) => setImmediate(resolve));
  disk.releaseSyncs();
  await pending;
  expect(counts()).toEqual([2, 1, 1]);
  await commit(store, 1, "update", [[1, "c"]], 1);
  await store.flush(1);
  expect(counts()).toEqual([2, 1, 1]);
  await store.close();
});

test("relaxed durability answers before the sync", async () => {
  const disk = new SimulatedDisk();
  const store = await openStore({
    disk,
    definitions: [TABLE],
    options: { durability: "relaxed" },
  });
  disk.holdsSyncs = true;
  await commit(store, 1, "insert", [[1, "a"]]);
  await commit(store, 1, "insert", [[2, "b"]]);
  expect(rowsOf(store)).toEqual([
    [1, "a"],
    [2, "b"],
  ]);
  disk.holdsSyncs = false;
  disk.releaseSyncs();
  await store.close();
  expect(store).toBeInstanceOf(LocalStore);
});

test("apply refuses a row that is too large, a table that does not exist, and a delete without a key", async () => {
  const keyless = defineTable(3, [{ kind: "text" }], []);
  const store = await openStore({ definitions: [TABLE, keyless] });
  const write = (tableId: number, operation: "insert" | "delete", row: unknown[]) => () =>
    store.apply({ writes: [{ tableId, owner: 0, operation, rows: [row as never] }] });
  expect(await laterErrorCodeOf(write(1, "insert", [1, "x".repeat(9000)]))).toBe("ROW_TOO_LARGE");
  expect(await laterErrorCodeOf(write(9, "insert", [1, "x"]))).toBe("TABLE_NOT_FOUND");
  expect(await laterErrorCodeOf(write(3, "delete", ["x"]))).toBe("UNSUPPORTED_FEATURE");
  expect(store.appliedSeq).toBe(SEQ_ZERO);
  await store.close();
});

test("apply returns the seq of each row on request", async () => {
  const store = await openStore({ definitions: [TABLE, OTHER] });
  const { seqs, firstSeq, lastSeq } = store.apply({
    wantsSeqs: true,
    writes: [
      { tableId: 1, owner: 0, operation: "insert", rows: [[1, "a"]] },
      { tableId: 2, owner: 0, operation: "insert", rows: [[1, "a"]] },
      { tableId: 1, owner: 0, operation: "insert", rows: [[2, "b"]] },
    ],
  });
  expect([...(seqs ?? [])]).toEqual([firstSeq, firstSeq + 1, lastSeq]);
  await store.close();
});
