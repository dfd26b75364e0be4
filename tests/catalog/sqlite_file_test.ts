/**
 * Verifies that a damaged, foreign or newer catalog is refused with an error that names the file,
 * and without side effects. The tests damage real files.
 */
import { Database } from "bun:sqlite";
import { afterAll, expect, test } from "bun:test";
import { mkdirSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { CorruptionError, DatabaseError } from "../../src/base/errors.ts";
import { silentLog } from "../../src/base/log.ts";
import { RecentLog } from "../../src/base/recent_log.ts";
import { APPLICATION_ID, FORMAT_VERSION, MIGRATIONS } from "../../src/catalog/migrations.ts";
import { allSealed, putSealed } from "../../src/catalog/records.ts";
import { SqliteFile } from "../../src/catalog/sqlite_file.ts";
import { ManualClock } from "../support/manual_clock.ts";
import { amountOf } from "../support/thoroughness.ts";
import {
  FILE,
  freshPath,
  openCatalog,
  removeCatalogs,
  seqOf,
  tableEntry,
} from "./catalog_fixture.ts";

afterAll(removeCatalogs);

/** Returns the name and bytes of every file in the catalog's directory. */
function directoryOf(path: string): Record<string, string> {
  const directory = dirname(path);
  return Object.fromEntries(
    readdirSync(directory).map((name) => [name, readFileSync(join(directory, name)).toBase64()]),
  );
}

function errorOf(action: () => unknown): unknown {
  try {
    action();
  } catch (error) {
    return error;
  }
  return undefined;
}

test("SqliteFile refuses a catalog of a newer format without changing a byte", () => {
  const path = freshPath();
  openCatalog(path).close();
  const newer = new Database(path);
  newer.run("PRAGMA user_version = 999");
  newer.run("CREATE TABLE later (x)");
  newer.close();
  const before = directoryOf(path);
  const error = errorOf(() => openCatalog(path));

  expect(error).toBeInstanceOf(DatabaseError);
  expect(String(error)).toContain("version 999");
  expect(String(error)).toContain(path);
  expect(directoryOf(path)).toEqual(before);
});

test("SqliteFile logs the upgrade of a catalog, but not its creation", () => {
  const path = freshPath();
  const log = new RecentLog(silentLog, new ManualClock());
  SqliteFile.open(path, { log }).close();
  expect(log.lines).toEqual([]);
  const olderPath = freshPath();
  const older = new Database(olderPath, { create: true });
  older.run(MIGRATIONS[0] ?? "");
  older.run(`PRAGMA application_id = ${APPLICATION_ID}`);
  older.run("PRAGMA user_version = 1");
  older.close();
  SqliteFile.open(olderPath, { log }).close();
  const fields = { path: olderPath, from: 1, version: FORMAT_VERSION };
  expect(log.lines).toMatchObject([{ level: "info", message: "upgraded the catalog", fields }]);
});

test("SqliteFile refuses files that are not catalogs, and names them", () => {
  const garbage = freshPath();
  writeFileSync(garbage, "not a database at all, but long enough to look at ".repeat(100));
  const foreign = freshPath();
  const other = new Database(foreign, { create: true });
  other.run("CREATE TABLE t (x)");
  other.close();

  for (const path of [garbage, foreign]) {
    const before = directoryOf(path);
    const error = errorOf(() => openCatalog(path));
    expect(error).toBeInstanceOf(CorruptionError);
    expect(String(error)).toContain(path);
    expect(directoryOf(path)).toEqual(before);
  }
});

// Verifies that a crash while SQLite is checkpointing its log never prevents the next start. The
// test makes a catalog grow only in the log, and captures its files after each checkpointed page.
test("SqliteFile opens the files that a crash leaves after each page of a checkpoint", () => {
  const path = freshPath();
  const catalog = openCatalog(path);
  catalog.hold()();
  const before = readFileSync(path);
  for (let tableId = 1; tableId <= 40; tableId += 1) {
    const table = tableEntry({ tableId, name: `t${tableId}` });
    catalog.createTable(table, seqOf(tableId));
  }
  const log = readFileSync(`${path}-wal`);
  catalog.hold()();
  const after = readFileSync(path);
  catalog.close();
  const pageBytes = after.readUInt16BE(16);
  expect(after.length).toBeGreaterThan(before.length);

  for (let end = 0; end <= after.length; end += pageBytes) {
    const copy = freshPath();
    writeFileSync(copy, Buffer.concat([after.subarray(0, end), before.subarray(end)]));
    writeFileSync(`${copy}-wal`, log);
    const found = openCatalog(copy);
    expect(found.tables(), `${end} bytes`).toHaveLength(40);
    found.close();
  }
});

test("SqliteFile names the missing directory", () => {
  const path = join(dirname(freshPath()), "none", "catalog.sqlite");
  const error = errorOf(() => openCatalog(path));

  expect(error).toBeInstanceOf(DatabaseError);
  expect(String(error)).toContain(path);
});

test("SqliteFile starts over with an empty file, which a process left that died before its first transaction", () => {
  const path = freshPath();
  writeFileSync(path, "");
  const catalog = openCatalog(path);

  expect(catalog.accounts.user("root")).toBeDefined();
  catalog.close();
});

test("SqliteFile excludes other processes while it is open", () => {
  const path = freshPath();
  const catalog = openCatalog(path);

  expect(errorOf(() => openCatalog(path))).toBeInstanceOf(DatabaseError);
  catalog.close();
  openCatalog(path).close();
});

test("SqliteFile.transaction changes nothing on a full disk, and works again once there is space", () => {
  const path = freshPath();
  const file = SqliteFile.open(path, { log: silentLog });
  const ids = (): string[] => allSealed<{ id: string }>(file, "revocations").map(({ id }) => id);
  const put = (id: string, text: string): void =>
    file.transaction(() => putSealed(file, "revocations", { key: id, value: { id, text } }));
  put("a", "");
  // SQLite reports a full disk if the file would need more pages than this limit.
  file.rows("PRAGMA max_page_count = 40");
  const error = errorOf(() => put("b", "x".repeat(500_000)));

  expect(error).toMatchObject({ code: "DISK_FULL" });
  expect(String(error)).toContain("Cannot change the catalog: the disk is full");
  expect(ids()).toEqual(["a"]);
  put("c", "");
  expect(ids()).toEqual(["a", "c"]);
  file.close();
});

test("SqliteFile creates files that only their owner can read", () => {
  const path = freshPath();
  const catalog = openCatalog(path);
  catalog.revocations.revoke("x", 1);

  for (const file of [path, `${path}-wal`]) expect(statSync(file).mode & 0o777, file).toBe(0o600);
  catalog.close();
});

test("SqliteFile.transaction undoes everything when its work throws", () => {
  const path = freshPath();
  const file = SqliteFile.open(path, { log: silentLog });
  const put = (id: string): void => putSealed(file, "revocations", { key: id, value: { id } });
  expect(() =>
    file.transaction(() => {
      put("a");
      throw new RangeError("no");
    }),
  ).toThrow(RangeError);
  file.transaction(() => put("b"));

  expect(allSealed<{ id: string }>(file, "revocations")).toEqual([{ id: "b" }]);
  file.close();
});

// Verifies that no damaged byte of a row is served. The test damages the bytes of a filled catalog
// one at a time. Opening and reading the catalog must then either fail with an error that names
// the file or give the correct result.
test("CatalogDatabase detects damage to any byte, or gives the correct result", () => {
  const path = freshPath();
  const catalog = openCatalog(path);
  catalog.createNamespace({ name: "app", owner: "root", options: { k: "v" }, createdAtMs: 1 });
  catalog.createTable(tableEntry({ namespace: "app" }), seqOf(10));
  catalog.accounts.create({
    userId: "ada",
    role: "dba",
    authType: "password",
    passwordHash: "hash",
  });
  catalog.files.add([FILE]);
  catalog.revocations.revoke("session", Number.MAX_SAFE_INTEGER);
  const read = (view: typeof catalog): string =>
    JSON.stringify([
      view.files.entry(FILE.fileId),
      view.files.all(),
      view.revocations.isRevoked("session"),
      view.accounts.users(),
      view.tables(),
      view.namespaces(),
      view.accounts.ownerNumber("ada"),
      view.manifest.highestSeq(),
    ]);
  const truth = read(catalog);
  catalog.close();
  const good = readFileSync(path);
  const copy = freshPath();
  let noticed = 0;
  const step = amountOf({ usual: 401, thorough: 41 });
  for (let offset = 100; offset < good.length; offset += step) {
    const damaged = Buffer.from(good);
    damaged[offset] = (damaged[offset] ?? 0) ^ 0x55;
    writeFileSync(copy, damaged);
    rmSync(`${copy}-wal`, { force: true });
    rmSync(`${copy}-shm`, { force: true });
    try {
      const view = openCatalog(copy);
      const seen = read(view);
      view.close();
      expect(seen, `byte ${offset}`).toBe(truth);
    } catch (error) {
      if (!(error instanceof CorruptionError) && !(error instanceof DatabaseError)) throw error;
      expect(String(error), `byte ${offset}`).toContain(copy);
      noticed += 1;
    }
  }
  expect(noticed).toBeGreaterThan(0);
});

test("SqliteFile.open explains the problem if a directory has the path of the catalog", () => {
  const path = freshPath();
  mkdirSync(path);
  expect(() => openCatalog(path)).toThrow(
    expect.objectContaining({
      code: "STORAGE_UNAVAILABLE",
      message: expect.stringContaining(`Cannot use the catalog ${path}: `),
      hint: expect.stringContaining("to list damage, run tidemark verify"),
    }),
  );
});
