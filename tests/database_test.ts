/**
 * Lists the cases in which `openDatabase` refuses to open a directory, and verifies that it does
 * so before it changes a single byte. Also checks the state that a failed attempt leaves behind.
 */
import { afterAll, expect, test } from "bun:test";
import { mkdirSync, readFileSync, rmSync, truncateSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { bunDisk } from "../src/base/bun_disk.ts";
import { systemClock } from "../src/base/clock.ts";
import { DiskError } from "../src/base/errors.ts";
import { silentLog } from "../src/base/log.ts";
import { systemRandom } from "../src/base/random.ts";
import { CatalogDatabase } from "../src/catalog/mod.ts";
import type { Database } from "../src/database.ts";
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

test("openDatabase refuses a directory whose catalog is missing, and leaves it unchanged", async () => {
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
      `Cannot open ${path}: catalog.sqlite is ${what}, but is needed for the log and ` +
        "segments in this directory",
    );
    expect(treeOf(path)).toEqual(before);
  }
  expect(maintain("verify", [path]).code).toBe(1);
});

test("openDatabase refuses a directory of another program, and leaves it unchanged", async () => {
  for (const name of ["tmp", "segments", "wal", "files", "restore", "restore.new", "ballast"]) {
    const path = freshDirectory();
    mkdirSync(join(path, name));
    writeFileSync(join(path, name, "mine"), "x");
    const before = treeOf(path);
    const refusal: unknown = await openAt(path).catch((error: unknown) => error);
    expect(String(refusal)).toContain(`Cannot open ${path}: it contains`);
    expect(String(refusal)).toContain("but no format.json");
    expect(treeOf(path)).toEqual(before);
  }
});

test("openDatabase ignores foreign directories, and refuses a file in place of the directory", async () => {
  const path = freshDirectory();
  writeFileSync(join(path, "notes.txt"), "x");
  mkdirSync(join(path, "lost+found"));
  const database = await openAt(path);
  await database.close();
  expect(readFileSync(join(path, "notes.txt"), "utf8")).toBe("x");
  const file = join(path, "notes.txt");
  const refusal: unknown = await openAt(file).catch((error: unknown) => error);
  expect(String(refusal)).toEndWith(`Cannot open ${file}: the path is a file, not a directory`);
});

test("openDatabase names the process that uses the directory, unless it opens the directory read-only", async () => {
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

test("a database holds the lock of its directory until its catalog is closed", async () => {
  const path = freshDirectory();
  const database = await openAt(path, { config: SMALL_FILES });
  const { catalog } = database;
  if (!(catalog instanceof CatalogDatabase)) throw new Error("the catalog is a file");
  const isLocked = (): boolean => {
    const release = bunDisk.lock(join(path, "LOCK"));
    release?.();
    return release === undefined;
  };
  const wasLocked: boolean[] = [];
  const close = catalog.close.bind(catalog);
  Object.assign(catalog, {
    close: (): void => {
      wasLocked.push(isLocked());
      close();
      wasLocked.push(isLocked());
    },
  });
  await database.close();
  expect(wasLocked).toEqual([true, true]);
  expect(isLocked()).toBe(false);
});

test("openDatabase creates a catalog if the first start stopped before it had one", async () => {
  const path = freshDirectory();
  writeFileSync(join(path, "format.json"), '{"format":1}\n');
  for (const name of ["wal", "segments", "tmp"]) mkdirSync(join(path, name));
  const database = await openAt(path, { config: SMALL_FILES });
  await database.close();
  expect(maintain("verify", [path]).code).toBe(0);
});

/** A dependency whose nth call fails while a database is being opened. */
type FailingPart = "clock" | "disk" | "log" | "random";

interface Failing<T> {
  readonly part: T;
  /** Whether the failing call has been made. */
  hasFailed(): boolean;
  /** Lets all further calls succeed. */
  end(): void;
}

/**
 * Wraps a dependency so that all calls are forwarded except the nth, counted from 0, which fails.
 */
function failingAt<T extends object>(part: T, nth: number, error: Error): Failing<T> {
  let callCount = 0;
  let hasEnded = false;
  const get = (target: T, name: string | symbol): unknown => {
    const value: unknown = Reflect.get(target, name, target);
    if (typeof value !== "function") return value;
    return (...given: unknown[]): unknown => {
      if (!hasEnded) callCount += 1;
      if (!hasEnded && callCount === nth + 1) throw error;
      return Reflect.apply(value, target, given);
    };
  };
  return {
    part: new Proxy(part, { get }),
    hasFailed: () => callCount > nth,
    end: () => {
      hasEnded = true;
    },
  };
}

/**
 * Returns the directory of a process that acknowledged writes too early, with one of its storages
 * missing.
 */
async function unluckyDirectory(): Promise<{ path: string; config: string }> {
  const path = freshDirectory();
  const root = freshDirectory();
  const config = `storage.durability = "relaxed"\nstorage.allowed_roots = [${JSON.stringify(root)}]\n${SMALL_FILES}`;
  const database = await openAt(path, { config });
  const make = `CREATE STORAGE gone TYPE filesystem PATH '${root}/gone'; CREATE TABLE t (id INT PRIMARY KEY); INSERT INTO t VALUES (1)`;
  const { error } = await database.sql.execute(principalFor(database, "root"), {
    sql: make,
    params: [],
  });
  expect(error).toBeUndefined();
  await database.close();
  rmSync(join(root, "gone"), { recursive: true });
  return { path, config };
}

const PARTS: Readonly<Record<FailingPart, object>> = {
  clock: systemClock,
  disk: bunDisk,
  log: silentLog,
  random: systemRandom,
};

/**
 * Opens a directory repeatedly, each time with a later failing call, until it opens. Returns the
 * number of failures.
 */
async function failuresOf(
  name: FailingPart,
  { config, path }: { config: string; path: string },
): Promise<number> {
  for (let failureCount = 0, nth = 0; ; nth += 1) {
    const failing = failingAt(PARTS[name], nth, new DiskError("EIO", path, "open"));
    const opened = await openAt(path, { config, [name]: failing.part }).catch(
      (error: unknown) => error,
    );
    failing.end();
    if (opened instanceof Error) {
      // If the previous attempt had left a file open or a lock behind, this attempt would report
      // it instead.
      expect(String(opened), `${name} ${nth}`).toContain("EIO");
      failureCount += 1;
    } else {
      await (opened as Database).close();
      if (!failing.hasFailed()) return failureCount;
    }
  }
}

// Each step of opening a directory calls at least one of these dependencies.
test.each(["clock", "disk", "log", "random"] as const)(
  "openDatabase can open the directory again, whichever call of its %s fails",
  async (name) => {
    const fresh = { path: freshDirectory(), config: SMALL_FILES };
    const failureCount =
      (await failuresOf(name, fresh)) + (await failuresOf(name, await unluckyDirectory()));
    expect(failureCount).toBeGreaterThan(0);
  },
);

test("openDatabase can open the directory again after a start without a secret", async () => {
  const path = freshDirectory();
  const jwtSecret = (): never => {
    throw new DiskError("EACCES", path, "open");
  };
  const refusal: unknown = await openAt(path, { config: SMALL_FILES, jwtSecret }).catch(
    (error: unknown) => error,
  );
  expect(String(refusal)).toContain("EACCES");
  const database = await openAt(path, { config: SMALL_FILES });
  await database.close();
});

test("openDatabase records which writes relaxed durability may have lost, even after an interrupted start", async () => {
  for (let nth = 0, hasFailed = true; hasFailed; nth += 1) {
    const path = freshDirectory();
    const relaxed = await openAt(path, {
      config: `storage.durability = "relaxed"\n${SMALL_FILES}`,
    });
    const { visibleSeq } = relaxed.store;
    await relaxed.close();
    const failing = failingAt(systemClock, nth, new DiskError("EIO", path, "open"));
    const cutOff = await openAt(path, { config: SMALL_FILES, clock: failing.part }).catch(
      (error: unknown) => error,
    );
    failing.end();
    hasFailed = cutOff instanceof Error;
    const database = cutOff instanceof Error ? await openAt(path, { config: SMALL_FILES }) : cutOff;
    expect((database as Database).store.wasLost(visibleSeq + 1), `call ${nth}`).toBe(true);
    await (database as Database).close();
  }
});
