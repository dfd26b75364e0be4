/** Verifies that a file is removed if and only if no retained row version refers to it. */
import { afterEach, expect, test } from "bun:test";
import { cpSync, mkdtempSync, readdirSync, rmSync, truncateSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { FileEntry } from "../../../src/catalog/mod.ts";
import type { Database } from "../../../src/database.ts";
import { isFileLive, sweepFiles } from "../../../src/sql/mod.ts";
import { CountingClock } from "../../support/counting_clock.ts";
import { openAt, SMALL_FILES } from "../../support/database.ts";
import { ManualClock } from "../../support/manual_clock.ts";
import { principalFor } from "../../support/principal_for.ts";
import { until } from "../../support/until.ts";

const HOUR_MS = 3_600_000;
const directories: string[] = [];

afterEach(() => {
  for (const directory of directories.splice(0)) rmSync(directory, { recursive: true });
});

function freshDirectory(): string {
  const directory = mkdtempSync(join(tmpdir(), "tidemark-"));
  directories.push(directory);
  return directory;
}

async function open(
  clock: ManualClock,
  directory: string = freshDirectory(),
): Promise<{ database: Database; directory: string }> {
  const database = await openAt(directory, {
    clock,
    config: `${SMALL_FILES}\nstorage.history_hours = 2`,
  });
  return { database, directory };
}

async function run(database: Database, sql: string, file?: string): Promise<void> {
  const bytes = new TextEncoder().encode(file);
  const files = new Map([["f", { name: "note.txt", mime: "text/plain", bytes }]]);
  const { error } = await database.sql.execute(principalFor(database, "root"), {
    sql,
    params: [],
    ...(file === undefined ? {} : { files }),
  });
  expect(error).toBeUndefined();
}

/** Advances the clock hour by hour, as time passes on an idle server. */
async function pass(clock: ManualClock, hours: number): Promise<void> {
  for (let rest = hours; rest > 0; rest -= 1) {
    clock.advance(Math.min(rest, 1) * HOUR_MS);
    await clock.yield();
  }
}

function storedFiles(directory: string): string[] {
  return readdirSync(join(directory, "files"), { recursive: true, encoding: "utf8" }).filter(
    (name) => name.endsWith(".txt"),
  );
}

test("sweepFiles keeps files that a row or the history names, and removes all others", async () => {
  const clock = new ManualClock();
  const { database, directory } = await open(clock);
  await run(database, "CREATE TABLE doc (id INT PRIMARY KEY, f FILE)");
  await run(database, "INSERT INTO doc VALUES (1, FILE('f'))", "kept");
  await run(database, "INSERT INTO doc VALUES (2, FILE('f'))", "gone");
  expect(storedFiles(directory)).toHaveLength(2);

  await pass(clock, 1);
  await run(database, "DELETE FROM doc WHERE id = 2");
  await pass(clock, 1.5);
  expect(storedFiles(directory), "the deleted row is still in the history").toHaveLength(2);

  await pass(clock, 2);
  const [entry] = database.catalog.files.all();
  expect(database.catalog.files.all()).toHaveLength(1);
  expect(storedFiles(directory).map((path) => path.split("/").at(-1))).toEqual([
    entry?.storedName ?? "",
  ]);
  expect(entry !== undefined && isFileLive(entry, database)).toBe(true);
  await database.close();
});

test("isFileLive finds the row of a file by a key of any type", async () => {
  const { database } = await open(new ManualClock());
  const keys = [
    ["BIGINT", "9223372036854775807"],
    ["BYTES", "'\\x00ff'::bytes"],
    ["TEXT", "'é\"'"],
    ["BOOLEAN", "true"],
    ["DOUBLE", "-0.1"],
    ["TIMESTAMP", "TIMESTAMP '9999-12-31 23:59:59.999999'"],
  ] as const;
  for (const [type, key] of keys) {
    await run(database, `CREATE TABLE of_${type} (id ${type} PRIMARY KEY, f FILE)`);
    await run(database, `INSERT INTO of_${type} VALUES (${key}, FILE('f'))`, type);
  }
  const entries = database.catalog.files.all();
  expect(entries).toHaveLength(keys.length);
  for (const entry of entries) expect(isFileLive(entry, database), entry.keyJson).toBe(true);
  // An older server that did not know this form of reference would remove the file.
  expect(entries.slice(0, 3).map(({ keyJson }) => keyJson)).toEqual([
    '[{"whole":"9223372036854775807"}]',
    '[{"hex":"00ff"}]',
    '["é\\""]',
  ]);
  await database.close();
});

test("a start removes the files of a table that was dropped while a backup held them", async () => {
  const clock = new ManualClock();
  const { database, directory } = await open(clock);
  await run(database, "CREATE TABLE doc (id INT PRIMARY KEY, f FILE)");
  await run(database, "CREATE TABLE other (id INT PRIMARY KEY, f FILE)");
  await run(database, "INSERT INTO doc VALUES (1, FILE('f'))", "of doc");
  await run(database, "INSERT INTO other VALUES (1, FILE('f'))", "of other");
  const release = database.blobs.hold();
  await run(database, "DROP TABLE doc");
  expect(database.catalog.files.all()).toHaveLength(1);
  // If a server is killed before the backup ends, these files remain.
  const killed = freshDirectory();
  cpSync(directory, killed, { recursive: true });
  release();
  await until(() => storedFiles(directory).length === 1);
  await database.close();
  expect(storedFiles(killed)).toHaveLength(2);
  const again = await open(clock, killed);
  const kept = storedFiles(directory);
  // The remaining files are removed after startup.
  await until(() => Bun.deepEquals(storedFiles(killed), kept));
  await again.database.close();
});

test("sweepFiles keeps the files of rows that cannot be read", async () => {
  const clock = new ManualClock();
  const { database, directory } = await open(clock);
  await run(database, "CREATE TABLE doc (id INT PRIMARY KEY, f FILE)");
  await run(database, "INSERT INTO doc VALUES (1, FILE('f'))", "judged by nobody");
  await run(database, "STORAGE FLUSH TABLE doc");
  await database.close();
  const name = readdirSync(join(directory, "segments/1")).find((file) => file.endsWith(".seg"));
  truncateSync(join(directory, "segments/1", name ?? "none"), 10);

  const again = await open(clock, directory);
  await pass(clock, 20);
  expect(storedFiles(directory)).toHaveLength(1);
  expect(again.database.catalog.files.all()).toHaveLength(1);
  await again.database.close();
});

test("sweepFiles yields to other work, and leaves the remaining files once it is ended", async () => {
  const clock = new CountingClock();
  const { database } = await open(clock);
  const { blobs, catalog, store } = database;
  const entryOf = (fileId: string): FileEntry => ({
    fileId,
    storedName: `${fileId}.txt`,
    tableId: 99,
    owner: 1,
    columnId: 1,
    keyJson: "[1]",
    sub: "f0001",
    name: "note.txt",
    mime: "text/plain",
    size: 1,
    sha256: "00",
    createdAtMs: clock.nowMs(),
  });
  catalog.files.add(Array.from({ length: 1000 }, (_, index) => entryOf(String(1000 + index))));
  let isEnded = false;
  const sweep = (): Promise<number> =>
    sweepFiles(
      { blobs, catalog, clock, store },
      { historyMsOf: () => 0, nowMs: clock.nowMs(), isEnded: () => isEnded },
    );
  const ended = sweep();
  isEnded = true;
  const count = await ended;
  expect(count).toBeWithin(1, 1000);
  expect(catalog.files.count).toBe(1000 - count);

  isEnded = false;
  const { yieldCount } = clock;
  expect(await sweep()).toBe(1000 - count);
  expect(clock.yieldCount).toBeGreaterThan(yieldCount);
  expect(catalog.files.count).toBe(0);
  await database.close();
});

/**
 * Makes the catalog list `count` additional files for a table, although their contents do not
 * exist.
 */
function listFiles({ catalog }: Database, { count, name }: { count: number; name: string }): void {
  const { tableId = 0 } = catalog.table("default", name) ?? {};
  const entryOf = (fileId: string): FileEntry => ({
    fileId,
    storedName: `${fileId}.txt`,
    tableId,
    owner: 0,
    columnId: 2,
    keyJson: "[1]",
    sub: "f0001",
    name: "note.txt",
    mime: "text/plain",
    size: 1,
    sha256: "00",
    createdAtMs: 0,
  });
  catalog.files.add(Array.from({ length: count }, (_, index) => entryOf(`${name}${1000 + index}`)));
}

test("DROP TABLE removes a large number of files in slices, and the next start continues", async () => {
  const clock = new CountingClock();
  const { database, directory } = await open(clock);
  await run(database, "CREATE TABLE doc (id INT PRIMARY KEY, f FILE)");
  await run(database, "CREATE TABLE other (id INT PRIMARY KEY, f FILE)");
  await run(database, "INSERT INTO doc VALUES (1, FILE('f'))", "of doc");
  await run(database, "INSERT INTO other VALUES (1, FILE('f'))", "of other");
  listFiles(database, { count: 3000, name: "doc" });
  listFiles(database, { count: 10, name: "other" });
  const killed = freshDirectory();
  const counts = [database.catalog.files.count];
  clock.onYield = () => {
    counts.push(database.catalog.files.count);
    if (counts.length === 3) cpSync(directory, killed, { recursive: true });
  };
  await run(database, "DROP TABLE doc");
  clock.onYield = () => undefined;
  const steps = counts.map((count, index) => (counts[index - 1] ?? count) - count);
  expect(Math.max(...steps)).toBeLessThan(1000);
  expect(database.catalog.files.count).toBe(11);
  expect(storedFiles(directory)).toHaveLength(1);
  await database.close();

  expect(storedFiles(killed)).toHaveLength(2);
  const again = await open(clock, killed);
  const { catalog } = again.database;
  expect(catalog.table("default", "doc")).toBeUndefined();
  await until(() => catalog.files.count === 11 && storedFiles(killed).length === 1);
  await again.database.close();
});

async function killDrop(database: Database): Promise<void> {
  const { results } = await database.sql.execute(principalFor(database, "root"), {
    sql: "SELECT query_id FROM system.queries WHERE sql LIKE 'DROP%'",
    params: [],
  });
  await run(database, `KILL QUERY '${String(results[0]?.rows?.[0]?.[0])}'`);
}

test("DROP TABLE that is killed leaves the remaining files to the hourly sweep", async () => {
  const clock = new CountingClock();
  const { database, directory } = await open(clock);
  await run(database, "CREATE TABLE doc (id INT PRIMARY KEY, f FILE)");
  await run(database, "INSERT INTO doc VALUES (1, FILE('f'))", "of doc");
  listFiles(database, { count: 3000, name: "doc" });
  const kills: Promise<void>[] = [];
  clock.onYield = () => {
    clock.onYield = () => undefined;
    kills.push(killDrop(database));
  };
  await run(database, "DROP TABLE doc");
  await Promise.all(kills);
  expect(kills).toHaveLength(1);
  expect(database.catalog.table("default", "doc")).toBeUndefined();
  expect(database.catalog.files.count).toBeWithin(1, 3000);
  expect(storedFiles(directory)).toHaveLength(1);
  await pass(clock, 1);
  await until(() => database.catalog.files.count === 0 && storedFiles(directory).length === 0);
  await database.close();
});
