/**
 * Verifies that a backup releases all the files that it protects from removal, however early it
 * fails. Otherwise, log files and segments would fill the disk, and SQLite's log would grow until
 * a restart.
 */
import { afterAll, expect, test } from "bun:test";
import { readdirSync, statSync } from "node:fs";
import { join } from "node:path";
import { bunDisk } from "../../src/base/bun_disk.ts";
import type { Disk } from "../../src/base/disk.ts";
import { DiskError } from "../../src/base/errors.ts";
import type { FileEntry } from "../../src/catalog/mod.ts";
import { freshDirectory, removeDirectories } from "../support/maintenance.ts";
import { ManualClock } from "../support/manual_clock.ts";
import { TestEngine } from "../support/sql_engine.ts";
import { until } from "../support/until.ts";

afterAll(removeDirectories);

/** The number of bytes to write, which is more than SQLite leaves in its log. */
const LOG_BYTES: number = 5 << 20;

const LONG_ENTRY: FileEntry = {
  fileId: "1",
  tableId: 1,
  owner: 0,
  columnId: 1,
  keyJson: "[1]",
  sub: "f0001",
  storedName: "1-a.txt",
  name: "x".repeat(LOG_BYTES),
  mime: "text/plain",
  size: 1,
  sha256: "",
  createdAtMs: 0,
};

function engineOn(root: string, disk: Disk, clock = new ManualClock()): Promise<TestEngine> {
  const config = `storage.allowed_roots = [${JSON.stringify(root)}]`;
  return TestEngine.open({ clock, config, disk });
}

test("a backup that fails to open the catalog does not keep SQLite from checkpointing its log", async () => {
  const root = freshDirectory();
  let isScarce = true;
  const disk: Disk = {
    ...bunDisk,
    open(path, options) {
      if (isScarce && path.endsWith("/catalog.sqlite")) throw new DiskError("EMFILE", path, "open");
      return bunDisk.open(path, options);
    },
  };
  await using engine = await engineOn(root, disk);
  const target = join(root, "b");
  expect(await engine.failure(`BACKUP DATABASE TO '${target}'`)).toBe("STORAGE_UNAVAILABLE@1");
  engine.database.catalog.files.add([LONG_ENTRY]);
  expect(statSync(join(engine.dataPath, "catalog.sqlite")).size).toBeGreaterThan(LOG_BYTES);
  isScarce = false;
  await engine.run(`BACKUP DATABASE TO '${target}'`);
});

test("a restore to a point that fails early releases segments and log files", async () => {
  const root = freshDirectory();
  const clock = new ManualClock();
  let onCopied = (): void => {};
  const disk: Disk = {
    ...bunDisk,
    remove(path) {
      if (path.endsWith("/restore.new/backup.json")) onCopied();
      bunDisk.remove(path);
    },
  };
  await using engine = await engineOn(root, disk, clock);
  const { store } = engine.database;
  const base = join(root, "base");
  await engine.run("CREATE SHARED TABLE t (id INT PRIMARY KEY)");
  await engine.run(`BACKUP DATABASE TO '${base}'`);
  for (const id of [1, 2]) {
    await engine.run(`INSERT INTO t VALUES (${id}); STORAGE FLUSH TABLE t`);
  }
  const wallMs = clock.nowMs();
  // The clock is so far ahead that no seq is left for the end of the log.
  onCopied = () => clock.setWall(Date.UTC(2200, 0));
  const { error } = await engine.ask(`RESTORE DATABASE FROM '${base}' TO SEQ ${store.visibleSeq}`);
  clock.setWall(wallMs);
  expect(error?.message).toContain("Cannot issue a _seq");
  const tableId = engine.database.catalog.table("default", "t")?.tableId ?? 0;
  const segments = join(engine.dataPath, "segments", String(tableId));
  expect(readdirSync(segments)).toHaveLength(2);
  await store.compact(tableId);
  // The segments that have been merged are removed after the merge.
  await until(() => readdirSync(segments).length === 1);
});
