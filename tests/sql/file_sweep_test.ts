/**
 * Files that no retained version of a row names are removed, and no others.
 */
import { afterEach, expect, test } from "bun:test";
import { cpSync, mkdtempSync, readdirSync, rmSync, truncateSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Database } from "../../src/database.ts";
import { isFileLive } from "../../src/sql/mod.ts";
import { openAt, SMALL_FILES } from "../support/database.ts";
import { ManualClock } from "../support/manual_clock.ts";

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
  const { error } = await database.sql.execute(database.auth.principalFor("root"), {
    sql,
    params: [],
    ...(file === undefined ? {} : { files }),
  });
  expect(error).toBeUndefined();
}

function storedFiles(directory: string): string[] {
  return readdirSync(join(directory, "files"), { recursive: true, encoding: "utf8" }).filter(
    (name) => name.endsWith(".txt"),
  );
}

test("sweepFiles keeps what a row or the history names, and removes the rest", async () => {
  const clock = new ManualClock();
  const { database, directory } = await open(clock);
  await run(database, "CREATE TABLE doc (id INT PRIMARY KEY, f FILE)");
  await run(database, "INSERT INTO doc VALUES (1, FILE('f'))", "kept");
  await run(database, "INSERT INTO doc VALUES (2, FILE('f'))", "gone");
  expect(storedFiles(directory)).toHaveLength(2);

  clock.advance(HOUR_MS);
  await run(database, "DELETE FROM doc WHERE id = 2");
  clock.advance(1.5 * HOUR_MS);
  expect(storedFiles(directory), "the deleted row is still in the history").toHaveLength(2);

  clock.advance(2 * HOUR_MS);
  const [entry] = database.catalog.files();
  expect(database.catalog.files()).toHaveLength(1);
  expect(storedFiles(directory).map((path) => path.split("/").at(-1))).toEqual([
    entry?.storedName ?? "",
  ]);
  expect(entry !== undefined && isFileLive(entry, database)).toBe(true);
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
  expect(database.catalog.files()).toHaveLength(1);
  // What a server that is killed before the backup ends leaves behind.
  const killed = freshDirectory();
  cpSync(directory, killed, { recursive: true });
  release();
  await database.close();
  expect(storedFiles(directory)).toHaveLength(1);
  expect(storedFiles(killed)).toHaveLength(2);
  const again = await open(clock, killed);
  expect(storedFiles(killed)).toEqual(storedFiles(directory));
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
  clock.advance(10 * HOUR_MS);
  clock.advance(10 * HOUR_MS);
  expect(storedFiles(directory)).toHaveLength(1);
  expect(again.database.catalog.files()).toHaveLength(1);
  await again.database.close();
});
