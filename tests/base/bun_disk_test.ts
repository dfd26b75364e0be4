/** Tests the implementation of the real disk in a separate directory. */
import { afterAll, expect, test } from "bun:test";
import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { bunDisk, lockByName } from "../../src/base/bun_disk.ts";
import { DiskError } from "../../src/base/errors.ts";
import { fileMissing, testUnless } from "../support/requirements.ts";

const directory = mkdtempSync(join(tmpdir(), "tidemark-disk-"));
afterAll(() => rmSync(directory, { recursive: true }));

function codeOf(action: () => unknown): string {
  try {
    action();
  } catch (error) {
    if (error instanceof DiskError) return error.code;
    throw error;
  }
  return "none";
}

test("open creates a file only on request, and refuses an existing file if exclusive", () => {
  const path = join(directory, "open");
  expect(codeOf(() => bunDisk.open(path, {}))).toBe("ENOENT");
  bunDisk.open(path, { create: true }).close();
  bunDisk.open(path, {}).close();
  expect(codeOf(() => bunDisk.open(path, { create: true, exclusive: true }))).toBe("EEXIST");
});

test("write writes bytes at an offset, and read returns how many it read", async () => {
  const path = join(directory, "write");
  const file = bunDisk.open(path, { create: true });
  file.write(new Uint8Array([1, 2, 3, 4]), 2);
  file.write(new Uint8Array([9]), 3);
  await file.sync();
  file.syncNow();
  const into = new Uint8Array(10);
  expect(file.read(into, 1)).toBe(5);
  expect([...into.subarray(0, 5)]).toEqual([0, 1, 9, 3, 4]);
  expect(file.size()).toBe(6);
  file.truncate(3);
  expect(file.size()).toBe(3);
  file.close();
  file.close();
  expect([...readFileSync(path)]).toEqual([0, 0, 1]);
  expect([...bunDisk.readFile(path)]).toEqual([0, 0, 1]);
});

test.each([true, false])(
  "writeDurably with writesThrough %p writes bytes at an offset",
  async (writesThrough) => {
    const path = join(directory, `durable ${writesThrough}`);
    const file = bunDisk.open(path, { exclusive: true, writesThrough });
    const bytes = new TextEncoder().encode("durable");
    await file.writeDurably(bytes, 5);
    await file.writeDurably(bytes.subarray(0, 3), 0);
    expect(new TextDecoder().decode(bunDisk.readFile(path))).toBe("dur\0\0durable");
    file.close();
  },
);

test("writeDurably reports which write was refused", async () => {
  const path = join(directory, "refused");
  bunDisk.open(path, { exclusive: true }).close();
  const file = bunDisk.open(path, { readOnly: true });
  const refusal = await file.writeDurably(new Uint8Array(1), 0).catch((error: unknown) => error);
  expect(refusal).toMatchObject({ name: "DiskError", code: "EBADF", path, operation: "write" });
  file.close();
});

test("create opens an existing file without truncating it", () => {
  const path = join(directory, "kept");
  writeFileSync(path, "kept");
  const file = bunDisk.open(path, { create: true });
  expect(file.size()).toBe(4);
  file.close();
});

test("map returns the bytes of a file, keeps writes private, and is empty once released", () => {
  const path = join(directory, "map");
  writeFileSync(path, "tide");
  const mapped = bunDisk.map(path);
  const view = mapped.bytes.subarray(1, 3);
  expect(Buffer.from(mapped.bytes).toString()).toBe("tide");
  mapped.bytes[0] = 0;
  expect(readFileSync(path, "utf8")).toBe("tide");
  mapped.release();
  mapped.release();
  expect(view.length).toBe(0);
  expect(mapped.bytes.length).toBe(0);
});

/** A file that no user may write to, not even root. */
const READ_ONLY_FILE = "/sys/kernel/notes";

testUnless(fileMissing(READ_ONLY_FILE))("map shows a file that may only be read, too", () => {
  expect(codeOf(() => bunDisk.open(READ_ONLY_FILE, {}))).not.toBe("none");
  const mapped = bunDisk.map(READ_ONLY_FILE);
  expect(Buffer.from(mapped.bytes)).toEqual(readFileSync(READ_ONLY_FILE));
  mapped.release();
  expect(mapped.bytes.length).toBe(0);
});

test("map returns an empty array for an empty file, and ENOENT for a missing one", () => {
  const path = join(directory, "empty");
  writeFileSync(path, "");
  expect(bunDisk.map(path).bytes.length).toBe(0);
  expect(codeOf(() => bunDisk.map(join(directory, "none")))).toBe("ENOENT");
});

test("map refuses a file that is longer than the longest array", () => {
  const path = join(directory, "long");
  const file = bunDisk.open(path, { create: true });
  file.truncate(2 ** 32 + 1);
  file.close();
  expect(codeOf(() => bunDisk.map(path))).toBe("EFBIG");
  bunDisk.remove(path);
});

test("removeSoon removes a file after the current tick, and rejects if the file does not exist", async () => {
  const path = join(directory, "soon");
  bunDisk.open(path, { create: true }).close();
  await bunDisk.removeSoon(path);
  expect(bunDisk.exists(path)).toBe(false);
  const error: unknown = await bunDisk.removeSoon(path)?.catch((failure: unknown) => failure);
  expect(error).toBeInstanceOf(DiskError);
  expect(error).toMatchObject({ code: "ENOENT", path });
});

test("syncDirectorySoon resolves after the current tick, and rejects if the directory does not exist", async () => {
  const order: string[] = [];
  const synced = bunDisk.syncDirectorySoon(directory).then(() => order.push("synced"));
  order.push("asked");
  await synced;
  expect(order).toEqual(["asked", "synced"]);
  const path = join(directory, "nowhere");
  const error: unknown = await bunDisk.syncDirectorySoon(path).catch((failure: unknown) => failure);
  expect(error).toBeInstanceOf(DiskError);
  expect(error).toMatchObject({ code: "ENOENT", path });
});

test("directories are created with their parents, listed, renamed and removed", () => {
  const deep = join(directory, "a", "b");
  bunDisk.makeDirectory(deep);
  bunDisk.makeDirectory(deep);
  writeFileSync(join(deep, "x"), "1");
  bunDisk.rename(join(deep, "x"), join(directory, "a", "y"));
  bunDisk.syncDirectory(join(directory, "a"));
  const entries = bunDisk.list(join(directory, "a"));
  expect(entries.toSorted((left, right) => (left.name < right.name ? -1 : 1))).toEqual([
    { name: "b", isDirectory: true },
    { name: "y", isDirectory: false },
  ]);
  expect(codeOf(() => bunDisk.removeDirectory(join(directory, "a")))).toBe("ENOTEMPTY");
  bunDisk.removeDirectory(deep);
  expect(bunDisk.sizeOf(join(directory, "a", "y"))).toBe(1);
  bunDisk.remove(join(directory, "a", "y"));
  expect(bunDisk.exists(join(directory, "a", "y"))).toBe(false);
  expect(bunDisk.sizeOf(join(directory, "a", "y"))).toBeUndefined();
  expect(codeOf(() => bunDisk.remove(join(directory, "a", "y")))).toBe("ENOENT");
  expect(bunDisk.freeBytes(directory)).toBeGreaterThan(0);
  expect(bunDisk.totalBytes(directory)).toBeGreaterThan(bunDisk.freeBytes(directory));
});

test("lock has one holder at a time, and can be taken again once released", () => {
  const path = join(directory, "LOCK");
  const release = bunDisk.lock(path);
  expect(release).toBeDefined();
  expect(bunDisk.lock(path)).toBeUndefined();
  release?.();
  const again = bunDisk.lock(path);
  expect(again).toBeDefined();
  again?.();
});

test("lockShared blocks an exclusive lock, changes nothing, and may have many holders", () => {
  const path = join(directory, "LOCK.shared");
  bunDisk.lockShared(path)?.();
  expect(bunDisk.exists(path)).toBe(false);
  bunDisk.lock(path)?.();
  const before = bunDisk.readFile(path);
  const first = bunDisk.lockShared(path);
  const second = bunDisk.lockShared(path);
  expect(second).toBeDefined();
  expect(bunDisk.lock(path)).toBeUndefined();
  first?.();
  expect(bunDisk.lock(path)).toBeUndefined();
  second?.();
  expect(bunDisk.readFile(path)).toEqual(before);
  const release = bunDisk.lock(path);
  expect(bunDisk.lockShared(path)).toBeUndefined();
  release?.();
});

test("open with readOnly allows reading and refuses writing", () => {
  const path = join(directory, "read-only");
  writeFileSync(path, "abc", { mode: 0o400 });
  const file = bunDisk.open(path, { readOnly: true });
  expect(file.size()).toBe(3);
  expect(() => file.write(new Uint8Array(1), 0)).toThrow(DiskError);
  file.close();
});

test("lockByName respects a running process and takes over from one that has ended", () => {
  const path = join(directory, "NAME");
  const release = lockByName(path);
  expect(release).toBeDefined();
  expect(lockByName(path)).toBeUndefined();
  release?.();
  // This number exceeds every process id that Linux assigns.
  writeFileSync(`${path}.pid`, "4194999\n");
  const again = lockByName(path);
  expect(again).toBeDefined();
  again?.();
});

test("created files are accessible only to their owner, whatever the umask", () => {
  const before = process.umask(0);
  try {
    const inner = join(directory, "outer", "inner");
    bunDisk.makeDirectory(inner);
    const file = join(inner, "file");
    bunDisk.open(file, { create: true }).close();
    const locked = join(inner, "LOCK");
    bunDisk.lock(locked)?.();
    for (const path of [inner, join(directory, "outer")]) {
      expect(statSync(path).mode & 0o777, path).toBe(0o700);
    }
    for (const path of [file, locked]) expect(statSync(path).mode & 0o777, path).toBe(0o600);
  } finally {
    process.umask(before);
  }
});
