/**
 * What `openDatabase` refuses before a byte of the directory changes.
 */
import { afterAll, expect, test } from "bun:test";
import { mkdirSync, readFileSync, rmSync, truncateSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { bunDisk } from "../src/base/bun_disk.ts";
import { openAt, SMALL_FILES } from "./support/database.ts";
import { freshDirectory, maintain, removeDirectories, treeOf } from "./support/maintenance.ts";
import { principalFor } from "./support/principal_for.ts";

afterAll(removeDirectories);

async function filledDirectory(): Promise<string> {
  const path = freshDirectory();
  const database = await openAt(path, { config: SMALL_FILES });
  const request = {
    sql: "CREATE TABLE t (id INT PRIMARY KEY); INSERT INTO t VALUES (1)",
    params: [],
  };
  await database.sql.execute(principalFor(database, "root"), request);
  await database.close();
  return path;
}

test("openDatabase refuses a directory whose catalog is gone, and leaves it as it is", async () => {
  const path = await filledDirectory();
  for (const name of ["catalog.sqlite-wal", "catalog.sqlite-shm", "jwt_secret"]) {
    rmSync(join(path, name), { force: true });
  }
  truncateSync(join(path, "catalog.sqlite"), 0);
  for (const what of ["empty", "missing"]) {
    if (what === "missing") rmSync(join(path, "catalog.sqlite"));
    const before = treeOf(path);
    const refusal: unknown = await openAt(path, { config: SMALL_FILES }).catch(
      (error: unknown) => error,
    );
    expect(String(refusal)).toContain(
      `Cannot open ${path}: catalog.sqlite is ${what}, and there is a log or segments that belong to one`,
    );
    expect(treeOf(path)).toEqual(before);
  }
  expect(maintain("verify", [path]).code).toBe(1);
});

test("openDatabase refuses a directory of something else, and leaves it as it is", async () => {
  for (const name of ["tmp", "segments", "wal", "files", "restore", "restore.new", "ballast"]) {
    const path = freshDirectory();
    mkdirSync(join(path, name));
    writeFileSync(join(path, name, "mine"), "x");
    const before = treeOf(path);
    const refusal: unknown = await openAt(path).catch((error: unknown) => error);
    expect(String(refusal)).toContain(`Cannot open ${path}: it has`);
    expect(String(refusal)).toContain("but no format.json");
    expect(treeOf(path)).toEqual(before);
  }
});

test("openDatabase goes on beside files of others, and refuses a file", async () => {
  const path = freshDirectory();
  writeFileSync(join(path, "notes.txt"), "x");
  mkdirSync(join(path, "lost+found"));
  const database = await openAt(path);
  await database.close();
  expect(readFileSync(join(path, "notes.txt"), "utf8")).toBe("x");
  const file = join(path, "notes.txt");
  const refusal: unknown = await openAt(file).catch((error: unknown) => error);
  expect(String(refusal)).toEndWith(`Cannot open ${file}: it is a file, and not a directory`);
});

test("openDatabase names the process that uses the directory, unless it only looks", async () => {
  const path = await filledDirectory();
  const refusal = async (): Promise<string> =>
    String(await openAt(path, { config: SMALL_FILES }).catch((error: unknown) => error));
  const release = bunDisk.lock(join(path, "LOCK"));
  expect(await refusal()).toEndWith(
    `Cannot open ${path}: another process is using it (pid ${process.pid})`,
  );
  release?.();
  const endLook = bunDisk.lockShared(join(path, "LOCK"));
  expect(await refusal()).toEndWith(`Cannot open ${path}: another process is using it`);
  endLook?.();
});

test("openDatabase makes a catalog where a first start was stopped before it did", async () => {
  const path = freshDirectory();
  writeFileSync(join(path, "format.json"), '{"format":1}\n');
  for (const name of ["wal", "segments", "tmp"]) mkdirSync(join(path, name));
  const database = await openAt(path, { config: SMALL_FILES });
  await database.close();
  expect(maintain("verify", [path]).code).toBe(0);
});
