/**
 * Verifies that exactly the effects of catalog calls that have returned are permanent. The tests
 * use real SQLite files, and simulate a kill by copying the files while the catalog is open.
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
  // At first the disk has no free space, then too little, and finally enough.
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

test("Accounts.ownerNumber gives a new number to a name that is used again after DROP USER", () => {
  const path = freshPath();
  const catalog = openCatalog(path);
  const user = { userId: "sam", role: "user", authType: "internal" } as const;
  catalog.accounts.create(user);
  const first = catalog.accounts.ownerNumber("sam");
  catalog.accounts.drop("sam");

  expect(first).toBeNumber();
  expect(catalog.accounts.ownerNumber("sam")).toBeUndefined();
  expect(catalog.accounts.wasDropped("sam")).toBeTrue();
  catalog.close();
  const again = openCatalog(path);
  again.accounts.create(user);
  expect(again.accounts.ownerNumber("sam")).not.toBe(first ?? 0);
  expect(again.accounts.ownerNumber("sam")).toBeGreaterThan(0);
  expect(again.accounts.ownerName(first ?? 0)).toBe("sam");
  expect(again.accounts.wasDropped("sam")).toBeFalse();
  again.close();
});

test("Accounts.drop leaves the user's namespaces without an owner, even after a restart", () => {
  const path = freshPath();
  const catalog = openCatalog(path);
  const user = { userId: "sam", role: "user", authType: "internal" } as const;
  catalog.accounts.create(user);
  for (const [name, owner] of [
    ["hers", "ada"],
    ["his", "sam"],
    ["more", "sam"],
  ] as const) {
    catalog.createNamespace({ name, owner, options: { depth: 2 }, createdAtMs: 1 });
  }
  const { version } = catalog;
  catalog.accounts.drop("sam");
  const owners = (from: CatalogDatabase): unknown =>
    from.namespaces().map(({ name, owner }) => [name, owner]);

  const expected = [
    [DEFAULT_NAMESPACE, undefined],
    ["hers", "ada"],
    ["his", undefined],
    ["more", undefined],
    ["public", undefined],
  ];
  expect(owners(catalog)).toEqual(expected);
  expect(catalog.version).toBe(version + 1);
  catalog.close();
  const again = openCatalog(path);
  expect(owners(again)).toEqual(expected);
  expect(again.version).toBe(version + 1);
  expect(again.namespace("his")?.options).toEqual({ depth: 2 });
  again.close();
});

test("CatalogDatabase.open removes references to dropped users, and nothing else", () => {
  const path = freshPath();
  const catalog = openCatalog(path);
  for (const userId of ["sam", "ada"]) {
    catalog.accounts.create({ userId, role: "user", authType: "password" });
  }
  catalog.accounts.drop("sam");
  for (const [name, owner] of [
    ["left", "sam"],
    ["also", "sam"],
    ["hers", "ada"],
    ["roots", "root"],
  ] as const) {
    catalog.createNamespace({ name, owner, options: {}, createdAtMs: 1 });
  }
  catalog.close();

  const again = openCatalog(path);
  expect(again.namespace("left")?.owner).toBeUndefined();
  expect(again.namespace("also")?.owner).toBeUndefined();
  expect(again.namespace("hers")?.owner).toBe("ada");
  expect(again.namespace("roots")?.owner).toBe("root");
  const { version } = again;
  again.close();

  const third = openCatalog(path);
  expect(third.namespace("left")?.owner).toBeUndefined();
  expect(third.version).toBe(version);
  third.close();
});

test("Accounts.droppedSeq is the seq at which the last account with a name was dropped, even after a restart", () => {
  const path = freshPath();
  const catalog = openCatalog(path);
  let seq = 100;
  catalog.journal.issueSeq = () => {
    seq += 1;
    return seq;
  };
  const user = { userId: "sam", role: "user", authType: "internal" } as const;
  catalog.accounts.create(user);
  expect(catalog.accounts.droppedSeq("sam")).toBe(0);
  catalog.accounts.drop("sam");
  const first = catalog.accounts.droppedSeq("sam");
  catalog.accounts.create(user);
  catalog.accounts.drop("sam");
  const second = catalog.accounts.droppedSeq("sam");

  expect(first).toBeGreaterThan(100);
  expect(second).toBeGreaterThan(first);
  expect(catalog.accounts.droppedSeq("root")).toBe(0);
  catalog.close();
  const again = openCatalog(path);
  expect(again.accounts.droppedSeq("sam")).toBe(second);
  // No commit after a restart may have a lower seq.
  expect(again.manifest.highestSeq()).toBeGreaterThanOrEqual(second);
  again.close();
});

test("Accounts.ownerNumber keeps the rows of an id that wrote before it had an account", () => {
  const catalog = openCatalog(freshPath());

  expect(catalog.accounts.ownerNumber("ext")).toBeUndefined();
  const owner = catalog.accounts.ownerNumber("ext", { create: true });
  catalog.accounts.create({ userId: "ext", role: "user", authType: "internal" });
  expect(catalog.accounts.ownerNumber("ext")).toBe(owner ?? -1);
  expect(catalog.accounts.ownerNumber("ext", { create: true })).toBe(owner ?? -1);
  catalog.close();
});

test("Accounts.change ends all tokens after a new password or role, and only then", () => {
  const catalog = openCatalog(freshPath());
  catalog.accounts.create({ userId: "u", role: "user", authType: "password", passwordHash: "1" });
  const first = catalog.accounts.user("u")?.tokenVersion ?? 0;
  const versionAfter = (change: Parameters<typeof catalog.accounts.change>[1]): number =>
    catalog.accounts.change("u", change).tokenVersion - first;

  expect(versionAfter({ lastLoginAtMs: 5 })).toBe(0);
  expect(versionAfter({ email: "x@y.z" })).toBe(0);
  expect(versionAfter({ role: "user" })).toBe(0);
  expect(versionAfter({ passwordHash: "2" })).toBe(1);
  expect(versionAfter({ role: "dba" })).toBe(2);
  expect(versionAfter({ tokenVersion: first + 3 })).toBe(3);
  catalog.close();
});

test("Accounts.create does not reuse a token version of a dropped account", () => {
  const path = freshPath();
  const catalog = openCatalog(path);
  const user = { userId: "u", role: "user", authType: "internal" } as const;
  const versions: number[] = [];
  for (let round = 0; round < 3; round += 1) {
    versions.push(catalog.accounts.create(user).tokenVersion);
    versions.push(catalog.accounts.change("u", { passwordHash: `${round}` }).tokenVersion);
    catalog.accounts.drop("u");
  }
  catalog.close();
  const again = openCatalog(path);
  versions.push(again.accounts.create(user).tokenVersion);

  expect(versions).toEqual([...new Set(versions)].toSorted((left, right) => left - right));
  expect(again.accounts.users().filter(({ userId }) => userId === "u")).toHaveLength(4);
  again.close();
});

test("Accounts.setUp changes root and creates the DBA together, or does neither", () => {
  const catalog = openCatalog(freshPath());
  const users = {
    rootPasswordHash: "r",
    dba: { userId: "ada", role: "dba", authType: "password", passwordHash: "p" },
  } as const;
  catalog.accounts.create({ userId: "ada", role: "user", authType: "internal" });

  expect(errorCodeOf(() => catalog.accounts.setUp(users))).toBe("ALREADY_EXISTS");
  expect(catalog.accounts.user("root")?.passwordHash).toBeUndefined();
  catalog.accounts.drop("ada");
  catalog.accounts.setUp(users);
  expect(catalog.accounts.user("root")?.passwordHash).toBe("r");
  expect(catalog.accounts.user("ada")?.role).toBe("dba");
  catalog.close();
});

test("Revocations.revoke remembers a token for a day beyond its expiry, and then forgets it", () => {
  const clock = new ManualClock();
  const path = freshPath();
  const catalog = openCatalog(path, clock);
  const dayMs = 24 * 3_600_000;
  catalog.revocations.revoke("a", clock.nowMs() + 1000);
  clock.advance(1000 + dayMs);
  catalog.revocations.revoke("b", clock.nowMs() + 1000);

  expect(catalog.revocations.isRevoked("a")).toBeTrue();
  clock.advance(1);
  catalog.revocations.revoke("b", clock.nowMs() + 5000);
  expect(catalog.revocations.isRevoked("a")).toBeFalse();
  expect(catalog.revocations.isRevoked("b")).toBeTrue();
  catalog.close();
  clock.advance(2 * dayMs);
  const again = openCatalog(path, clock);
  expect(again.revocations.isRevoked("b")).toBeFalse();
  again.close();
});

test("Revocations.revoke removes entries that had already expired when the catalog was opened", () => {
  const clock = new ManualClock();
  const path = freshPath();
  const first = openCatalog(path, clock);
  for (let id = 0; id < 40; id += 1) first.revocations.revoke(`old ${id}`, clock.nowMs() + 1000);
  first.close();
  clock.advance(3 * 24 * 3_600_000);

  const catalog = openCatalog(path, clock);
  // Revoking a token again after its entry has expired creates a new entry.
  for (const id of ["old 39", "a", "b", "c"]) catalog.revocations.revoke(id, clock.nowMs() + 1000);
  const file = SqliteFile.open(killedCopy(path), { log: silentLog });
  expect(allSealed<{ id: string }>(file, "revocations").map(({ id }) => id)).toEqual([
    "a",
    "b",
    "c",
    "old 39",
  ]);
  file.close();
  catalog.close();
});

test("Revocations.revoke keeps the time and the successor of the first call", () => {
  const clock = new ManualClock();
  const path = freshPath();
  const catalog = openCatalog(path, clock);
  const firstMs = clock.nowMs();
  catalog.revocations.revoke("a", firstMs + 1000, { successorId: "b" });
  clock.advance(500);
  catalog.revocations.revoke("a", firstMs + 9000, { successorId: "c" });

  const kept = { id: "a", revokedAtMs: firstMs, expiresAtMs: firstMs + 9000, successorId: "b" };
  expect(catalog.revocations.revocation("a")).toEqual(kept);
  catalog.close();
  const again = openCatalog(path, clock);
  expect(again.revocations.revocation("a")).toEqual(kept);
  again.close();
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

test("the last login of users is recorded in no journal, and survives a restart", () => {
  const path = freshPath();
  const catalog = openCatalog(path);
  const user = catalog.accounts.create({ userId: "ada", role: "user", authType: "password" });
  const { end } = catalog.journal;
  expect(end).toBeGreaterThan(0);
  const seenMs = user.createdAtMs + 1000;
  catalog.accounts.noteSeen(new Map([["ada", seenMs]]));
  expect(catalog.journal.end).toBe(end);
  const again = openCatalog(killedCopy(path));
  expect(again.accounts.user("ada")).toEqual({ ...user, lastSeenAtMs: seenMs });
  expect(again.journal.end).toBe(end);
  again.close();
  catalog.close();
});
