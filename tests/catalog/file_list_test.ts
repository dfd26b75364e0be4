/**
 * Tests the file list: it is read in portions, by table and by owner, and counted without being
 * read.
 */
import { Database } from "bun:sqlite";
import { afterAll, expect, test } from "bun:test";
import { CorruptionError } from "../../src/base/errors.ts";
import { APPLICATION_ID, MIGRATIONS } from "../../src/catalog/migrations.ts";
import type { CatalogDatabase, FileEntry, FilesOf } from "../../src/catalog/mod.ts";
import {
  FILE,
  freshPath,
  openCatalog,
  removeCatalogs,
  seqOf,
  tableEntry,
} from "./catalog_fixture.ts";

afterAll(removeCatalogs);

/**
 * Returns `count` file entries. They alternate between tables 1 and 2, and each owner has three
 * consecutive files.
 */
function entries(count: number): FileEntry[] {
  return Array.from({ length: count }, (_, index) => ({
    ...FILE,
    fileId: `f${1000 + index}`,
    tableId: (index % 2) + 1,
    owner: Math.floor(index / 3),
  }));
}

function idsOf(catalog: CatalogDatabase, of?: FilesOf): string[] {
  return [...catalog.files.portions(of)].flat().map(({ fileId }) => fileId);
}

/** Damages a file's entry so that its checksum no longer matches. */
function damage(path: string, fileId: string): void {
  const database = new Database(path, { readwrite: true });
  database.query("UPDATE files SET checksum = checksum + 1 WHERE file_id = ?1").run(fileId);
  database.close();
}

test("FileList.portions yields every file once, in portions, by id", () => {
  const catalog = openCatalog(freshPath());
  expect(idsOf(catalog)).toEqual([]);
  // These counts lead to no portion, a single portion, and several portions of which the last is
  // full.
  for (const count of [1, 64, 65, 128]) {
    catalog.files.remove(catalog.files.all().map(({ fileId }) => fileId));
    const all = entries(count);
    catalog.files.add(all.toReversed());
    expect([...catalog.files.portions()].flat()).toEqual(all);
    expect([...catalog.files.portions()].every(({ length }) => length <= 64)).toBe(true);
  }
  catalog.close();
});

test("FileList.portions for a table or an owner yields only the files of that table or owner", () => {
  const catalog = openCatalog(freshPath());
  const all = entries(400);
  catalog.files.add(all);
  expect([...catalog.files.portions({ tableId: 2 })].flat()).toEqual(
    all.filter(({ tableId }) => tableId === 2),
  );
  expect(idsOf(catalog, { owner: 7 })).toEqual(["f1021", "f1022", "f1023"]);
  expect(idsOf(catalog, { owner: 7000 })).toEqual([]);
  expect(idsOf(catalog, { tableId: 3 })).toEqual([]);
  catalog.close();
});

test("FileList.portions continues after entries were added or removed during a pause", () => {
  const catalog = openCatalog(freshPath());
  const all = entries(130);
  catalog.files.add(all);
  const seen: string[] = [];
  for (const portion of catalog.files.portions()) {
    seen.push(...portion.map(({ fileId }) => fileId));
    catalog.files.remove([...portion.map(({ fileId }) => fileId), "f1100"]);
  }
  expect(seen).toEqual(all.map(({ fileId }) => fileId).filter((id) => id !== "f1100"));
  expect(catalog.files.count).toBe(0);
  catalog.close();
});

test("FileList.heldPortions lists the files as they were at the time of the hold, and keeps the locks", () => {
  const path = freshPath();
  const catalog = openCatalog(path);
  const all = entries(200);
  catalog.files.add(all);
  const release = catalog.hold();
  const found: FileEntry[] = [];
  for (const portion of catalog.files.heldPortions()) {
    found.push(...portion);
    catalog.files.remove(["f1000", "f1199"]);
    catalog.files.add([{ ...FILE, fileId: "f1150a" }]);
  }
  expect(found).toEqual(all);
  for (const _ of catalog.files.heldPortions()) break;
  // The check needs another process, because SQLite recognises this process's own locks.
  const script = `import { Database } from "bun:sqlite";
    new Database(process.argv[1], { readwrite: true }).run("PRAGMA user_version");`;
  const other = Bun.spawnSync([process.execPath, "-e", script, path]);
  expect(other.stderr.toString()).toContain("locked");
  release();
  expect(idsOf(catalog)).toHaveLength(199);
  catalog.close();
});

test("dropTable removes as many files as fit into a short transaction, and leaves the others", () => {
  const catalog = openCatalog(freshPath());
  catalog.createTable(tableEntry(), seqOf(1));
  catalog.files.add(entries(400));
  catalog.dropTable(1, seqOf(2));
  expect([...catalog.files.portions({ tableId: 1 })].flat()).toHaveLength(200 - 64);
  expect(catalog.files.count).toBe(400 - 64);
  catalog.close();
});

test("FileList.count stays correct as files are listed, even after a restart", () => {
  const path = freshPath();
  const catalog = openCatalog(path);
  catalog.createTable(tableEntry(), seqOf(1));
  catalog.createTable(tableEntry({ tableId: 2, name: "other" }), seqOf(2));
  const counts = [catalog.files.count];
  const note = (action: () => void): void => {
    action();
    counts.push(catalog.files.count);
  };
  note(() => catalog.files.add(entries(10)));
  note(() => catalog.files.add(entries(11)));
  note(() => catalog.files.remove(["f1001", "none"]));
  note(() => catalog.dropTable(1, seqOf(3)));
  expect(counts).toEqual([0, 10, 11, 10, 4]);
  expect(catalog.files.all()).toHaveLength(4);
  catalog.close();
  const again = openCatalog(path);
  expect(again.files.count).toBe(4);
  again.close();
});

test("a damaged entry affects only requests that read it", () => {
  const path = freshPath();
  const catalog = openCatalog(path);
  catalog.createTable(tableEntry(), seqOf(1));
  catalog.files.add(entries(12));
  catalog.close();
  // This file belongs to table 2 and owner 3.
  damage(path, "f1011");
  const again = openCatalog(path);
  expect(again.files.count).toBe(12);
  expect(idsOf(again, { owner: 2 })).toHaveLength(3);
  expect(() => idsOf(again, { owner: 3 })).toThrow(CorruptionError);
  expect(() => idsOf(again)).toThrow(CorruptionError);
  again.dropTable(1, seqOf(2));
  expect(again.files.count).toBe(6);
  again.close();
});

test("files of a table and of an owner are looked up, not scanned for", () => {
  const path = freshPath();
  openCatalog(path).close();
  const database = new Database(path, { readwrite: true });
  for (const [column, index] of [
    ["owner", "files_of_owners"],
    ["table_id", "files_of_tables"],
  ] as const) {
    const [step] = database
      .query(
        `EXPLAIN QUERY PLAN SELECT body FROM files WHERE file_id > '' AND ${column} = 1 ORDER BY file_id`,
      )
      .all();
    expect(step).toMatchObject({
      detail: `SEARCH files USING INDEX ${index} (${column}=? AND file_id>?)`,
    });
  }
  database.close();
});

test("a catalog of the previous format is upgraded with its files, even if an entry is damaged", () => {
  const path = freshPath();
  openCatalog(path).close();
  const from = freshPath();
  const older = new Database(from, { create: true });
  for (const step of MIGRATIONS.slice(0, 3)) older.run(step);
  older.run(`PRAGMA application_id = ${APPLICATION_ID}`);
  older.run("PRAGMA user_version = 3");
  const catalog = openCatalog(path);
  catalog.files.add(entries(6));
  catalog.close();
  const newer = new Database(path, { readwrite: true });
  for (const table of ["accounts", "counters", "files", "namespaces", "owners", "settings"]) {
    const columns = table === "files" ? "file_id, body, checksum" : "*";
    const into = older.query(`INSERT INTO ${table} VALUES (?1, ?2, ?3)`);
    for (const row of newer.query(`SELECT ${columns} FROM ${table}`).values()) {
      into.run(...(row as [string | number, string, number]));
    }
  }
  older.run("UPDATE files SET body = replace(body, '{', '[') WHERE file_id = 'f1005'");
  older.close();
  newer.close();

  const upgraded = openCatalog(from);
  expect(upgraded.files.count).toBe(6);
  expect(idsOf(upgraded, { owner: 0 })).toEqual(["f1000", "f1001", "f1002"]);
  expect(idsOf(upgraded, { tableId: 1 })).toEqual(["f1000", "f1002", "f1004"]);
  expect(() => upgraded.files.all()).toThrow(CorruptionError);
  upgraded.close();
});
