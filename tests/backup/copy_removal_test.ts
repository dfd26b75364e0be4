/**
 * Tests the removal of the remains of a copy that was killed or cut off by a crash. They may be as
 * large as the database, so they are removed off the event loop.
 */
import { afterAll, expect, test } from "bun:test";
import { existsSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { bunDisk } from "../../src/base/bun_disk.ts";
import type { DiskFile, OpenOptions } from "../../src/base/disk.ts";
import { ForwardingDisk } from "../support/forwarding_disk.ts";
import { freshDirectory, removeDirectories } from "../support/maintenance.ts";
import { TestEngine } from "../support/sql_engine.ts";

afterAll(removeDirectories);

/** Forwards to the real disk, records removals, and reports new files. */
class NotingDisk extends ForwardingDisk {
  onMade: (path: string) => void = () => {};
  /** The files removed synchronously, on the event loop. */
  atOnce: string[] = [];
  soon: string[] = [];

  override open(path: string, options: OpenOptions): DiskFile {
    if (options.create === true) this.onMade(path);
    return super.open(path, options);
  }

  override remove(path: string): void {
    this.atOnce.push(path);
    super.remove(path);
  }

  override removeSoon(path: string): Promise<void> | undefined {
    this.soon.push(path);
    return this.disk.removeSoon(path);
  }

  /** Whether files below a path were removed, all of them off the event loop. */
  wasClearedSoon(path: string): boolean {
    const isBelow = (each: string): boolean => each.startsWith(`${path}/`);
    return this.soon.some(isBelow) && !this.atOnce.some(isBelow);
  }
}

async function engineOn(disk: NotingDisk, root: string): Promise<TestEngine> {
  const config = `storage.allowed_roots = [${JSON.stringify(root)}]`;
  const engine = await TestEngine.open({ config, disk });
  await engine.run("CREATE SHARED TABLE t (id INT PRIMARY KEY); INSERT INTO t VALUES (1)");
  await engine.run("STORAGE FLUSH TABLE t");
  return engine;
}

/** Kills the running backup or restore once it writes segments to a directory. */
function killAtSegments(
  { disk, engine, kind }: { disk: NotingDisk; engine: TestEngine; kind: "backup" | "restore" },
  directory: string,
): void {
  disk.onMade = (path) => {
    const job = engine.database.jobs.openOf(kind, undefined);
    if (job !== undefined && path.startsWith(`${directory}/segments/`)) job.isCancelled = true;
  };
}

test("the files of a killed backup are removed off the event loop", async () => {
  const root = freshDirectory();
  const disk = new NotingDisk(bunDisk);
  await using engine = await engineOn(disk, root);
  const target = join(root, "b");
  killAtSegments({ disk, engine, kind: "backup" }, target);
  const [[, , status] = []] = await engine.rows(`BACKUP DATABASE TO '${target}'`);
  expect(status).toBe("cancelled");
  expect(existsSync(target)).toBe(false);
  expect(disk.wasClearedSoon(target)).toBe(true);
});

test("the files of a killed or interrupted restore are removed off the event loop", async () => {
  const root = freshDirectory();
  const disk = new NotingDisk(bunDisk);
  await using engine = await engineOn(disk, root);
  const base = join(root, "base");
  await engine.run(`BACKUP DATABASE TO '${base}'`);
  const pending = join(engine.dataPath, "restore.new");
  killAtSegments({ disk, engine, kind: "restore" }, pending);
  const [[, , status] = []] = await engine.rows(`RESTORE DATABASE FROM '${base}'`);
  expect(status).toBe("cancelled");
  expect(existsSync(pending)).toBe(false);
  expect(disk.wasClearedSoon(pending)).toBe(true);

  disk.onMade = () => {};
  disk.soon = [];
  const staged = join(engine.dataPath, "restore");
  for (const left of [pending, staged]) {
    mkdirSync(left);
    writeFileSync(join(left, "left"), "x");
  }
  await engine.run(`RESTORE DATABASE FROM '${base}'`);
  expect(existsSync(join(staged, "backup.json"))).toBe(true);
  for (const left of [pending, staged]) {
    expect(existsSync(join(left, "left"))).toBe(false);
    expect(disk.wasClearedSoon(left), left).toBe(true);
  }
});
