/**
 * Verifies that the effects of a catalog call are permanent if and only if the call has returned.
 * The tests use real SQLite files, and simulate a kill by copying the files while the catalog is
 * open.
 */
import { afterAll, expect, test } from "bun:test";
import { DatabaseError } from "../../src/base/errors.ts";
import { silentLog } from "../../src/base/log.ts";
import {
  type CatalogDatabase,
  DEFAULT_NAMESPACE,
  type SegmentRecord,
  type StorageEntry,
  type TableEntry,
  type ViewEntry,
} from "../../src/catalog/mod.ts";
import { allSealed, putSealed } from "../../src/catalog/records.ts";
import { SqliteFile } from "../../src/catalog/sqlite_file.ts";
import { decimalType, TIMESTAMP } from "../../src/types/mod.ts";
import { errorCodeOf } from "../support/error_codes.ts";
import { ManualClock } from "../support/manual_clock.ts";
import {
  FILE,
  freshPath,
  killedCopy,
  openCatalog,
  removeCatalogs,
  seqOf,
  tableEntry,
} from "./catalog_fixture.ts";

afterAll(removeCatalogs);

/** Returns the only view of the catalog. */
function viewOf(catalog: CatalogDatabase): ViewEntry {
  const [view] = catalog.views();
  if (view === undefined) throw new Error("there is no view");
  return view;
}

function viewEntry(change: Partial<ViewEntry>): ViewEntry {
  return {
    viewId: 9,
    namespace: "app",
    name: "v",
    sql: "SELECT 1 AS one",
    searchNamespace: "default",
    columnNames: ["one"],
    tables: [{ tableId: 1, columns: [{ columnId: 1, name: "id" }], used: [1] }],
    views: [],
    createdBy: "root",
    createdAtMs: 1,
    updatedAtMs: 2,
    ...change,
  };
}

const STORAGE: StorageEntry = {
  storageId: "fast",
  name: "fast",
  root: "/mnt/fast",
  key: "k",
  sharedTemplate: "{namespace}/{tableName}",
  userTemplate: "{namespace}/{tableName}/{userId}",
  createdAtMs: 1,
  updatedAtMs: 1,
};

function definitionIdsIn(path: string): readonly unknown[] {
  const file = SqliteFile.open(killedCopy(path), { log: silentLog });
  const rows = file.rows<{ id: number }>("SELECT definition_id AS id FROM table_definitions");
  file.close();
  return rows.map(({ id }) => id);
}

function segmentOf(tableId: number, segmentId: number): SegmentRecord {
  return {
    segmentId,
    tableId,
    minSeq: seqOf(1),
    maxSeq: seqOf(9),
    rowCount: 5,
    bytes: 100,
    deletionGeneration: 0,
    createdAtMs: 7,
    quarantined: false,
  };
}

test("StorageEntries are ordered by id, and no id is used twice", () => {
  const catalog = openCatalog(freshPath());
  for (const storageId of ["b", "a"]) catalog.storages.create({ ...STORAGE, storageId });
  expect(catalog.storages.all().map(({ storageId }) => storageId)).toEqual(["a", "b"]);
  expect(errorCodeOf(() => catalog.storages.create({ ...STORAGE, storageId: "a" }))).toBe(
    "ALREADY_EXISTS",
  );
  expect(catalog.storages.named("c")).toBeUndefined();
  catalog.close();
});

test("CatalogDatabase.continueFrom keeps the key of a storage only if the state before had the same key", () => {
  const catalog = openCatalog(freshPath());
  const home = { storageId: "b", root: "/b", directory: "app/t/1" };
  for (const storageId of ["a", "b", "c"]) catalog.storages.create({ ...STORAGE, storageId });
  const segmentId = catalog.manifest.nextSegmentId();
  catalog.manifest.publish({ addSegments: [{ ...segmentOf(1, segmentId), home }] });
  const { numbers } = catalog.used();
  const same = { ...STORAGE, storageId: "b" };
  const other = { ...STORAGE, storageId: "c", key: "another" };
  const empty = { sequences: [], serviceTokens: [], invitations: [] };
  catalog.continueFrom({ ...empty, numbers, storages: [same, other] });
  expect(catalog.storages.all().map(({ key }) => key)).toEqual(["", "k", ""]);
  expect(catalog.manifest.load().segments).toEqual([segmentOf(1, segmentId)]);
  catalog.close();
});

test("CatalogDatabase starts with root, the namespaces default and public, and no tables", () => {
  const catalog = openCatalog(freshPath());

  expect(catalog.accounts.users().map(({ userId, role }) => [userId, role])).toEqual([
    ["root", "system"],
  ]);
  expect(catalog.accounts.user("root")?.passwordHash).toBeUndefined();
  expect(catalog.namespaces().map(({ name }) => name)).toEqual(["default", "public"]);
  expect(catalog.tables()).toEqual([]);
  catalog.close();
});

test("CatalogDatabase has the same state on disk as in memory if the process is killed after any change", () => {
  const clock = new ManualClock();
  const path = freshPath();
  const catalog = openCatalog(path, clock);
  const steps: readonly (() => void)[] = [
    () => catalog.createNamespace({ name: "app", owner: "root", options: {}, createdAtMs: 1 }),
    () => catalog.createTable(tableEntry({ namespace: "app" }), seqOf(10)),
    () => catalog.changeTable(tableEntry({ namespace: "app", schemaVersion: 2 }), seqOf(11)),
    () => catalog.createTable(tableEntry({ tableId: catalog.nextTableId(), name: "b" }), seqOf(12)),
    () => catalog.accounts.create({ userId: "ada", role: "dba", authType: "password" }),
    () => catalog.accounts.change("ada", { passwordHash: "h", email: "a@b.c" }),
    () => expect(catalog.accounts.ownerNumber("ext-1", { create: true })).toBeNumber(),
    () => catalog.revocations.revoke("session", clock.nowMs() + 1000),
    () => catalog.files.add([FILE, { ...FILE, fileId: "f2" }]),
    () => catalog.files.remove(["f1"]),
    () => catalog.changeNamespace({ name: "app", owner: "ada", options: { a: 1 }, createdAtMs: 1 }),
    () => catalog.changeSetting("node_bits", "2"),
    () => catalog.dropTable(1, seqOf(13)),
    () => catalog.createView(viewEntry({ viewId: catalog.nextTableId() })),
    () => catalog.changeView({ ...viewOf(catalog), sql: "SELECT 2" }),
    () => catalog.dropViews([viewOf(catalog)]),
    () => catalog.dropNamespace("app"),
    () => catalog.storages.create(STORAGE),
    () => catalog.storages.create({ ...STORAGE, storageId: "a" }),
    () => catalog.storages.change({ ...STORAGE, name: "changed" }),
    () => catalog.storages.drop("a"),
    () => catalog.accounts.drop("ada"),
    () =>
      catalog.accounts.setUp({
        rootPasswordHash: "r",
        dba: { userId: "eve", role: "dba", authType: "password", passwordHash: "p" },
      }),
  ];

  for (const [index, step] of steps.entries()) {
    step();
    clock.advance(7);
    const again = openCatalog(killedCopy(path), clock);
    for (const view of [again, catalog]) expect(view.accounts.user("root")).toBeDefined();
    expect(again.namespaces(), `step ${index}`).toEqual(catalog.namespaces());
    expect(again.views(), `step ${index}`).toEqual(catalog.views());
    expect(again.storages.all(), `step ${index}`).toEqual(catalog.storages.all());
    expect(again.tables(), `step ${index}`).toEqual(catalog.tables());
    expect(again.tableVersions(1), `step ${index}`).toEqual(catalog.tableVersions(1));
    expect(again.accounts.users(), `step ${index}`).toEqual(catalog.accounts.users());
    expect(again.files.all(), `step ${index}`).toEqual(catalog.files.all());
    expect(again.files.entry("f1"), `step ${index}`).toEqual(catalog.files.entry("f1"));
    expect(again.version, `step ${index}`).toBe(catalog.version);
    expect(again.revocations.revocation("session"), `step ${index}`).toEqual(
      catalog.revocations.revocation("session"),
    );
    expect(again.setting("node_bits"), `step ${index}`).toBe(catalog.setting("node_bits"));
    for (const userId of ["root", "ada", "ext-1", "eve"]) {
      expect(again.accounts.ownerNumber(userId), `step ${index}`).toBe(
        catalog.accounts.ownerNumber(userId),
      );
      expect(again.accounts.wasDropped(userId), `step ${index}`).toBe(
        catalog.accounts.wasDropped(userId),
      );
    }
    expect(again.manifest.highestSeq(), `step ${index}`).toBe(catalog.manifest.highestSeq());
    again.close();
  }
  catalog.close();
});

test("CatalogDatabase.version rises with every change to a definition, and with nothing else", () => {
  const catalog = openCatalog(freshPath());
  const versions = [catalog.version];
  const note = (action: () => unknown): void => {
    action();
    versions.push(catalog.version);
  };

  note(() => catalog.createNamespace({ name: "n", owner: undefined, options: {}, createdAtMs: 1 }));
  note(() => catalog.createTable(tableEntry(), seqOf(1)));
  note(() => catalog.changeTable(tableEntry({ options: { flushPolicy: "rows:5" } }), seqOf(2)));
  note(() => catalog.dropTable(1, seqOf(3)));
  note(() => catalog.dropNamespace("n"));
  const first = versions[0] ?? 0;
  expect(versions).toEqual([0, 1, 2, 3, 4, 5].map((step) => first + step));

  catalog.accounts.create({ userId: "u", role: "user", authType: "internal" });
  expect(errorCodeOf(() => catalog.dropNamespace("none"))).toBe("NAMESPACE_NOT_FOUND");
  expect(catalog.version).toBe(first + 5);
  catalog.close();
});

test("CatalogDatabase preserves every kind of value for rows that lack a column", () => {
  const path = freshPath();
  const catalog = openCatalog(path);
  const missing = [
    null,
    true,
    1.5,
    -7,
    123_456_789_012_345_678n,
    "täxt",
    new Uint8Array([0, 255]),
    new Float32Array([1.5, -2]),
    { months: 1, days: -2, micros: 3 },
    [1, null, "x"],
  ];
  const columns = missing.map((value, index) => ({
    columnId: index + 1,
    name: `c${index}`,
    type: index === 0 ? decimalType(10, 2) : TIMESTAMP,
    notNull: false,
    generatedAlways: false,
    missing: value,
  }));
  catalog.createTable(tableEntry({ columns }), seqOf(1));
  const again = openCatalog(killedCopy(path));

  expect(again.tableById(1)?.columns).toEqual(columns);
  expect(again.tableById(1)?.columns[6]?.missing).toBeInstanceOf(Uint8Array);
  again.close();
  catalog.close();
});

test("CatalogDatabase.tableVersions has one entry for each schema version, with the newest options", () => {
  const catalog = openCatalog(freshPath());
  const second: TableEntry = tableEntry({ schemaVersion: 2, name: "renamed" });
  const third: TableEntry = { ...second, options: { flushPolicy: "rows:9" } };

  catalog.createTable(tableEntry(), seqOf(1));
  catalog.changeTable(second, seqOf(2));
  catalog.changeTable(third, seqOf(3));

  expect(catalog.tableVersions(1)).toEqual([tableEntry(), third]);
  expect(catalog.table("default", "notes")).toBeUndefined();
  expect(catalog.table("default", "renamed")).toEqual(third);
  catalog.dropTable(1, seqOf(4));
  expect(catalog.tableVersions(1)).toEqual([]);
  expect(catalog.table("default", "renamed")).toBeUndefined();
  catalog.close();
});

test("CatalogDatabase.tableAt returns the table as of each definition, even after a restart", () => {
  const path = freshPath();
  const catalog = openCatalog(path);
  const second = tableEntry({ schemaVersion: 2, columns: tableEntry().columns.slice(0, 1) });
  const third: TableEntry = { ...second, options: { flushPolicy: "rows:9" } };
  const fourth: TableEntry = { ...third, schemaVersion: 3 };
  catalog.createTable(tableEntry(), seqOf(10));
  catalog.changeTable(second, seqOf(20));
  catalog.changeTable(third, seqOf(30));
  catalog.changeTable(fourth, seqOf(40));
  const versions = (of: CatalogDatabase): unknown[] =>
    [9, 10, 19, 20, 39, 40].map((seq) => of.tableAt(1, seqOf(seq))?.schemaVersion);

  expect(versions(catalog)).toEqual([undefined, 1, 1, 2, 2, 3]);
  catalog.close();
  const again = openCatalog(path);
  expect(versions(again)).toEqual([undefined, 1, 1, 2, 2, 3]);
  expect(again.tableAt(1, seqOf(20))).toEqual(third);
  again.close();
});

test("CatalogDatabase.rowRightsSeq is the seq at which the access to a table last changed, even after a restart", () => {
  const path = freshPath();
  const catalog = openCatalog(path);
  const shared = { kind: "shared" as const };
  catalog.createTable(tableEntry(shared), seqOf(1));
  catalog.createTable(tableEntry({ tableId: 2, name: "own", kind: "user" }), seqOf(2));
  const levels = ["RESTRICTED", "PUBLIC", "DBA", "PRIVATE", "RESTRICTED"] as const;
  const opened = levels.map((accessLevel, index) => {
    catalog.changeTable(tableEntry({ ...shared, options: { accessLevel } }), seqOf(10 + index));
    return catalog.rowRightsSeq(1, "ann");
  });
  expect(opened).toEqual([10, 11, 12, 13, 14]);
  catalog.changeTable(tableEntry({ ...shared, schemaVersion: 2 }), seqOf(20));
  expect([1, 2, 3].map((tableId) => catalog.rowRightsSeq(tableId, "ann"))).toEqual([20, 0, 0]);
  catalog.close();
  const again = openCatalog(path);
  expect([1, 2, 3].map((tableId) => again.rowRightsSeq(tableId, "ann"))).toEqual([20, 0, 0]);
  again.dropTable(1, seqOf(30));
  expect(again.rowRightsSeq(1, "ann")).toBe(0);
  again.close();
});

test("CatalogDatabase.tableDroppedSeq is the seq at which the last table with a name was dropped, even after a restart", () => {
  const path = freshPath();
  const catalog = openCatalog(path);
  const droppedSeqs = (of: CatalogDatabase): number[] =>
    ["notes", "other", "none"].map((name) => of.tableDroppedSeq("default", name));
  catalog.createTable(tableEntry(), seqOf(1));
  catalog.createTable(tableEntry({ tableId: 2, name: "other" }), seqOf(2));
  expect(droppedSeqs(catalog)).toEqual([0, 0, 0]);
  catalog.changeTable(tableEntry({ schemaVersion: 2 }), seqOf(3));
  catalog.dropTable(1, seqOf(4));
  catalog.createTable(tableEntry({ tableId: 3 }), seqOf(5));
  catalog.dropTable(3, seqOf(6));
  catalog.createTable(tableEntry({ tableId: 4 }), seqOf(7));

  expect(droppedSeqs(catalog)).toEqual([6, 0, 0]);
  catalog.close();
  const again = openCatalog(path);
  expect(droppedSeqs(again)).toEqual([6, 0, 0]);
  again.close();
});

test("CatalogDatabase.nextTableId never repeats an id, including those of dropped tables", () => {
  const path = freshPath();
  const first = openCatalog(path);
  const tableId = first.nextTableId();
  first.createTable(tableEntry({ tableId }), seqOf(1));
  first.dropTable(tableId, seqOf(2));
  first.close();
  const again = openCatalog(path);

  expect(again.nextTableId()).toBeGreaterThan(tableId);
  again.close();
});

test("CatalogDatabase repeats a change that a full disk refused, once space was freed", () => {
  const path = freshPath();
  const catalog = openCatalog(path);
  catalog.createTable(tableEntry(), seqOf(1));
  const { manifest } = catalog;
  const remove = manifest.remove.bind(manifest);
  manifest.remove = () => {
    throw new DatabaseError("DISK_FULL", "Cannot change the catalog: the disk is full");
  };
  let askedCount = 0;
  catalog.onFull = () => {
    askedCount += 1;
    if (askedCount === 1) return false;
    if (askedCount === 3) manifest.remove = remove;
    return true;
  };
  // At first, the disk has no free space, then too little space, and finally enough.
  for (const asked of [1, 2]) {
    expect(errorCodeOf(() => catalog.dropTable(1, seqOf(2)))).toBe("DISK_FULL");
    expect(askedCount).toBe(asked);
    expect(catalog.tableById(1)).toBeDefined();
  }
  catalog.dropTable(1, seqOf(3));
  expect(openCatalog(killedCopy(path)).tableById(1)).toBeUndefined();
});

test("CatalogDatabase.dropTable also removes files and segments, and changes nothing if it is refused", () => {
  const path = freshPath();
  const catalog = openCatalog(path);
  const { manifest } = catalog;
  catalog.createTable(tableEntry(), seqOf(1));
  catalog.createTable(tableEntry({ tableId: 2, name: "other" }), seqOf(2));
  catalog.changeTable(tableEntry({ schemaVersion: 2 }), seqOf(3));
  manifest.publish({
    addSegments: [1, 2].map((tableId) => segmentOf(tableId, manifest.nextSegmentId())),
    tables: [1, 2].map((tableId) => ({
      tableId,
      flushedSeq: seqOf(9),
      lowWaterSeq: seqOf(0),
      lastFlushedAtMs: 3,
    })),
  });
  catalog.files.add([FILE, { ...FILE, fileId: "f2", tableId: 2 }]);
  const before = manifest.load();

  const remove = manifest.remove.bind(manifest);
  manifest.remove = () => {
    throw new DatabaseError("DISK_FULL", "Cannot change the catalog: the disk is full");
  };
  expect(errorCodeOf(() => catalog.dropTable(1, seqOf(10)))).toBe("DISK_FULL");
  expect([catalog.table(DEFAULT_NAMESPACE, "notes")?.schemaVersion, manifest.load()]).toEqual([
    2,
    before,
  ]);
  expect(catalog.files.all()).toHaveLength(2);
  expect(definitionIdsIn(path)).toEqual([1, 2, 3]);

  manifest.remove = remove;
  catalog.dropTable(1, seqOf(11));
  const killed = openCatalog(killedCopy(path));
  for (const each of [catalog, killed]) {
    expect(each.tableById(1)).toBeUndefined();
    expect(each.files.all().map(({ tableId }) => tableId)).toEqual([2]);
    const { segments, tables } = each.manifest.load();
    expect([...segments, ...tables].map(({ tableId }) => tableId)).toEqual([2, 2]);
    each.close();
  }
  // The last definition of a dropped table records when it was dropped.
  expect(definitionIdsIn(path)).toEqual([2, 3]);
});

test("CatalogDatabase knows when the last table with a name was dropped, and keeps only one definition for that", () => {
  const path = freshPath();
  const catalog = openCatalog(path);
  for (let round = 1; round < 6; round += 1) {
    const tableId = catalog.nextTableId();
    catalog.createTable(tableEntry({ tableId, name: "again" }), seqOf(10 * round));
    const altered = tableEntry({ tableId, name: "again", schemaVersion: 2 });
    catalog.changeTable(altered, seqOf(10 * round + 1));
    catalog.dropTable(tableId, seqOf(10 * round + 2));
  }
  const { namespace } = tableEntry();
  expect(catalog.tableDroppedSeq(namespace, "again")).toBe(52);
  expect(definitionIdsIn(path)).toHaveLength(1);
  catalog.close();
  const reopened = openCatalog(path);
  expect(reopened.tableDroppedSeq(namespace, "again")).toBe(52);
  expect(reopened.tableDroppedSeq(namespace, "never")).toBe(0);
  reopened.close();
});

test("CatalogDatabase removes leftover definitions of dropped tables", () => {
  const path = freshPath();
  const first = openCatalog(path);
  first.createTable(tableEntry(), seqOf(1));
  first.close();
  const file = SqliteFile.open(path, { log: silentLog });
  const [record] = allSealed<{ table: TableEntry }>(file, "table_definitions");
  file.transaction(() => {
    for (let id = 2; id < 22; id += 1) {
      const table = { ...record?.table, tableId: id };
      const value = { definitionId: id, fromSeq: 1, toSeq: 2, table };
      putSealed(file, "table_definitions", { key: id, value });
    }
  });
  file.close();

  const catalog = openCatalog(path);
  for (let id = 30; id < 33; id += 1) {
    catalog.createNamespace({ name: `n${id}`, owner: undefined, options: {}, createdAtMs: 1 });
  }
  expect(definitionIdsIn(path)).toEqual([1, 2]);
  catalog.close();
});

test("CatalogDatabase refuses names that are taken, missing or in use", () => {
  const catalog = openCatalog(freshPath());
  const namespace = { name: "app", owner: undefined, options: {}, createdAtMs: 1 };
  catalog.createNamespace(namespace);
  catalog.createTable(tableEntry({ namespace: "app" }), seqOf(1));
  catalog.createTable(tableEntry({ tableId: 2, namespace: "app", name: "other" }), seqOf(2));

  expect(errorCodeOf(() => catalog.createNamespace(namespace))).toBe("ALREADY_EXISTS");
  expect(errorCodeOf(() => catalog.dropNamespace("app"))).toBe("DEPENDENT_OBJECTS");
  expect(errorCodeOf(() => catalog.changeNamespace({ ...namespace, name: "x" }))).toBe(
    "NAMESPACE_NOT_FOUND",
  );
  const taken = tableEntry({ tableId: 9, namespace: "app" });
  expect(errorCodeOf(() => catalog.createTable(taken, seqOf(3)))).toBe("ALREADY_EXISTS");
  const renamed = tableEntry({ tableId: 2, namespace: "app", name: "notes" });
  expect(errorCodeOf(() => catalog.changeTable(renamed, seqOf(3)))).toBe("ALREADY_EXISTS");
  const lost = tableEntry({ tableId: 9, namespace: "none" });
  expect(errorCodeOf(() => catalog.createTable(lost, seqOf(3)))).toBe("NAMESPACE_NOT_FOUND");
  expect(errorCodeOf(() => catalog.accounts.change("x", {}))).toBe("USER_NOT_FOUND");
  expect(errorCodeOf(() => catalog.accounts.drop("x"))).toBe("USER_NOT_FOUND");
  const root = { userId: "root", role: "user", authType: "password" } as const;
  expect(errorCodeOf(() => catalog.accounts.create(root))).toBe("ALREADY_EXISTS");
  expect(catalog.tables().map(({ name }) => name)).toEqual(["notes", "other"]);
  catalog.close();
});

test("tables and views share names and ids, and a change drops views together with the objects they need", () => {
  const path = freshPath();
  const catalog = openCatalog(path);
  catalog.createNamespace({ name: "app", owner: undefined, options: {}, createdAtMs: 1 });
  catalog.createTable(tableEntry({ namespace: "app", name: "t" }), seqOf(1));
  const viewId = catalog.nextTableId();
  catalog.createView(viewEntry({ viewId }));

  expect(catalog.nextTableId()).toBeGreaterThan(viewId);
  expect(errorCodeOf(() => catalog.createView(viewEntry({ viewId: 99, name: "t" })))).toBe(
    "ALREADY_EXISTS",
  );
  const taken = tableEntry({ tableId: 98, namespace: "app", name: "v" });
  expect(errorCodeOf(() => catalog.createTable(taken, seqOf(2)))).toBe("ALREADY_EXISTS");
  const before = catalog.version;
  catalog.dropTable(1, seqOf(3), { views: [viewOf(catalog)] });
  expect(catalog.version).toBe(before + 1);
  expect(catalog.view("app", "v")).toBeUndefined();
  catalog.close();
  const again = openCatalog(path);
  expect(again.views()).toEqual([]);
  again.close();
});
