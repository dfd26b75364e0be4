/**
 * Implements the real disk; no other file calls the operating system's file functions.
 *
 * - Files are mapped privately (`shared: false`), so that no write through a view can change them,
 *   and released by `transfer(0)`, which unmaps a file immediately and leaves every view with
 *   length 0. The runtime nevertheless opens mapped files for writing. A file that may only be
 *   read, for example in a backup on a read-only file system, is therefore read into memory
 *   instead of being mapped.
 * - If a file is opened with O_DSYNC, Linux makes each write durable before the write returns. The
 *   event loop neither copies the bytes nor waits, and only one other thread has to be woken. An
 *   error may come from the write or from the sync. An error that reports a full disk is
 *   attributed to the write, because a caller that overwrites the range and syncs it knows its
 *   contents again. On other systems O_DSYNC may leave the bytes in the drive's own cache, so a
 *   sync follows.
 * - `sync` uses the callback form of fdatasync: the promise API of `fs` takes twice as long at the
 *   median and ten times as long at the 99th percentile.
 * - Every file and directory it creates is accessible only to its owner, regardless of the umask.
 *   Files may contain rows and password hashes, and not every program that uses this disk sets a
 *   umask.
 * - The lock is flock(2), which the system releases however the process ends. If libc cannot be
 *   loaded, the lock is a file that contains a process id.
 */
import {
  closeSync,
  constants,
  existsSync,
  fdatasync,
  fdatasyncSync,
  fstatSync,
  fsync,
  fsyncSync,
  ftruncateSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  readSync,
  realpathSync,
  renameSync,
  rmdirSync,
  statfsSync,
  statSync,
  unlink,
  unlinkSync,
  write,
  writeSync,
} from "node:fs";
import { descriptorGauge } from "./descriptors.ts";
import type { Disk, DiskEntry, DiskFile, MappedFile } from "./disk.ts";
import { DiskError } from "./errors.ts";
import { loadFromLibc } from "./libc.ts";
import { countMapped } from "./memory_usage.ts";

/**
 * The maximum length of an array in the runtime, in bytes. Creating an array that is one byte
 * longer fails with "Out of memory".
 */
const MAP_BYTES_MAX: number = 2 ** 32;

/** The error codes that report that a read-only file cannot be opened for writing. */
const READ_ONLY_CODES: ReadonlySet<string> = new Set(["EROFS", "EACCES", "EPERM"]);

/**
 * The number of descriptors that must be free for each thread to start. Threads were observed to
 * use only three.
 */
const THREAD_DESCRIPTORS = 16;

/**
 * The open flag that makes each write durable before it returns; 0 on systems where this is
 * unreliable.
 */
const WRITE_THROUGH: number = process.platform === "linux" ? constants.O_DSYNC : 0;

const FILE_MODE = 0o600;
const DIRECTORY_MODE = 0o700;

const LOCK_SHARED_NONBLOCKING = 1 | 4;
const LOCK_EXCLUSIVE_NONBLOCKING = 2 | 4;

class BunDiskFile implements DiskFile {
  readonly path: string;
  readonly #descriptor: number;
  /** Whether each write to this file is durable once it has returned. */
  readonly #writesThrough: boolean;
  #isOpen = true;

  constructor(path: string, descriptor: number, writesThrough: boolean) {
    this.path = path;
    this.#descriptor = descriptor;
    this.#writesThrough = writesThrough;
  }

  size(): number {
    return attempt("stat", this.path, () => fstatSync(this.#descriptor).size);
  }

  read(into: Uint8Array, offset: number): number {
    return attempt("read", this.path, () => {
      let done = 0;
      while (done < into.length) {
        const count = readSync(this.#descriptor, into, done, into.length - done, offset + done);
        if (count === 0) break;
        done += count;
      }
      return done;
    });
  }

  write(bytes: Uint8Array, offset: number): void {
    attempt("write", this.path, () => {
      let done = 0;
      while (done < bytes.length) {
        const left = bytes.length - done;
        const count = writeSync(this.#descriptor, bytes, done, left, offset + done);
        if (count === 0) throw new DiskError("EIO", this.path, "write");
        done += count;
      }
    });
  }

  async writeDurably(bytes: Uint8Array, offset: number): Promise<void> {
    let done = 0;
    while (done < bytes.length) {
      const count = await this.#writeSoon(bytes.subarray(done), offset + done);
      if (count === 0) throw new DiskError("EIO", this.path, "write");
      done += count;
    }
    if (!this.#writesThrough) await this.sync();
  }

  /** Performs a single write outside the event loop. Returns the number of bytes written. */
  #writeSoon(bytes: Uint8Array, offset: number): Promise<number> {
    return new Promise((resolve, reject) => {
      write(this.#descriptor, bytes, 0, bytes.length, offset, (error, count) => {
        if (error === null) resolve(count);
        else reject(diskError(error, this.path, "write"));
      });
    });
  }

  truncate(length: number): void {
    attempt("truncate", this.path, () => ftruncateSync(this.#descriptor, length));
  }

  sync(): Promise<void> {
    return new Promise((resolve, reject) => {
      fdatasync(this.#descriptor, (error) => {
        if (error === null) resolve();
        else reject(diskError(error, this.path, "sync"));
      });
    });
  }

  syncNow(): void {
    attempt("sync", this.path, () => fdatasyncSync(this.#descriptor));
  }

  close(): void {
    if (!this.#isOpen) return;
    this.#isOpen = false;
    attempt("close", this.path, () => closeSync(this.#descriptor));
  }
}

/** The disk of this machine. */
export const bunDisk: Disk = {
  open(path, { create = false, exclusive = false, readOnly = false, writesThrough = false }) {
    const missing = exclusive
      ? constants.O_CREAT | constants.O_EXCL
      : create
        ? constants.O_CREAT
        : 0;
    const access = readOnly ? constants.O_RDONLY : constants.O_RDWR;
    const through = writesThrough ? WRITE_THROUGH : 0;
    return attempt("open", path, () => {
      const descriptor = openSync(path, access | missing | through, FILE_MODE);
      return new BunDiskFile(path, descriptor, through !== 0);
    });
  },
  map: (path) => attempt("map", path, () => mapFile(path)),
  readFile: (path) =>
    attempt("read", path, () => {
      const { buffer, byteLength, byteOffset } = readFileSync(path);
      return new Uint8Array(buffer, byteOffset, byteLength);
    }),
  blob: (path) => Bun.file(path),
  exists: (path) => existsSync(path),
  sizeOf: (path) => attempt("stat", path, () => statSync(path, { throwIfNoEntry: false })?.size),
  list: (path) =>
    attempt("list", path, () =>
      readdirSync(path, { withFileTypes: true }).map(
        (entry): DiskEntry => ({ name: entry.name, isDirectory: entry.isDirectory() }),
      ),
    ),
  makeDirectory(path) {
    attempt("make", path, () => mkdirSync(path, { recursive: true, mode: DIRECTORY_MODE }));
  },
  rename(from, to) {
    attempt("rename", from, () => renameSync(from, to));
  },
  remove(path) {
    attempt("remove", path, () => unlinkSync(path));
  },
  removeSoon: (path) =>
    new Promise((resolve, reject) => {
      unlink(path, (error) => {
        if (error === null) resolve();
        else reject(diskError(error, path, "remove"));
      });
    }),
  removeDirectory(path) {
    attempt("remove", path, () => rmdirSync(path));
  },
  syncDirectory(path) {
    attempt("sync", path, () => {
      const descriptor = openSync(path, "r");
      try {
        fsyncSync(descriptor);
      } finally {
        closeSync(descriptor);
      }
    });
  },
  async syncDirectorySoon(path) {
    const descriptor = attempt("sync", path, () => openSync(path, "r"));
    try {
      await new Promise<void>((resolve, reject) => {
        fsync(descriptor, (error) => {
          if (error === null) resolve();
          else reject(diskError(error, path, "sync"));
        });
      });
    } finally {
      closeSync(descriptor);
    }
  },
  realPath: (path) => attempt("resolve", path, () => realpathSync(path)),
  freeBytes: (path) =>
    attempt("stat", path, () => {
      const { bavail, bsize } = statfsSync(path);
      return bavail * bsize;
    }),
  totalBytes: (path) =>
    attempt("stat", path, () => {
      const { blocks, bsize } = statfsSync(path);
      return blocks * bsize;
    }),
  lock: (path) => attempt("lock", path, () => lockFile(path)),
  lockShared: (path) => attempt("lock", path, () => lockFileShared(path)),
};

/**
 * A gauge that counts the process's open descriptors. It is created on first use; undefined if the
 * system offers no such count.
 */
let gauge: ReturnType<typeof descriptorGauge> | undefined;

/**
 * Returns whether enough descriptors are free to start this many more threads. If a starting
 * thread finds no free descriptor, the runtime ends the process. The descriptors are counted
 * rather than opened for a trial, because a trial would take descriptors away from threads that
 * are just starting.
 */
export function hasDescriptorsForThreads(count: number): boolean {
  const needed = count * THREAD_DESCRIPTORS;
  try {
    gauge ??= descriptorGauge(bunDisk);
  } catch (error) {
    // The error means that no descriptor was free. A thread would also need one, so the answer is
    // no.
    if (error instanceof DiskError) return false;
    throw error;
  }
  if (gauge === undefined) return canOpen(needed);
  const { max, open } = gauge();
  return max - open >= needed;
}

/**
 * Returns whether this many descriptors can be opened. Only systems that do not report the number
 * of open descriptors need this.
 */
function canOpen(needed: number): boolean {
  const opened: number[] = [];
  try {
    while (opened.length < needed) opened.push(openSync(process.execPath, "r"));
    return true;
  } catch {
    // A thread that opened files would encounter the same error, so the answer is no.
    return false;
  } finally {
    for (const descriptor of opened) closeSync(descriptor);
  }
}

function mapFile(path: string): MappedFile {
  const { size } = statSync(path);
  // The system refuses to map zero bytes.
  if (size === 0) return { bytes: new Uint8Array(0), release() {} };
  if (size > MAP_BYTES_MAX) throw new DiskError("EFBIG", path, "map");
  const bytes = mapped(path) ?? contentOf(path, size);
  return {
    bytes,
    release() {
      if (bytes.byteLength > 0) bytes.buffer.transfer(0);
    },
  };
}

/** Maps a file. Returns undefined if the file is read-only. */
function mapped(path: string): Uint8Array<ArrayBuffer> | undefined {
  try {
    const bytes = Bun.mmap(path, { shared: false });
    countMapped(bytes);
    return bytes;
  } catch (error) {
    if (READ_ONLY_CODES.has(codeOf(error))) return undefined;
    throw error;
  }
}

function contentOf(path: string, size: number): Uint8Array<ArrayBuffer> {
  const bytes = new Uint8Array(size);
  const file = bunDisk.open(path, { readOnly: true });
  try {
    return bytes.subarray(0, file.read(bytes, 0));
  } finally {
    file.close();
  }
}

type Flock = (descriptor: number, operation: number) => number;

function lockFile(path: string): (() => void) | undefined {
  const flock = loadFlock();
  if (flock === undefined) return lockByName(path);
  const descriptor = openSync(path, "a+", FILE_MODE);
  if (flock(descriptor, LOCK_EXCLUSIVE_NONBLOCKING) !== 0) {
    closeSync(descriptor);
    return undefined;
  }
  ftruncateSync(descriptor, 0);
  // The process id only informs people who look into the directory. The actual lock is the flock.
  writeSync(descriptor, `${process.pid}\n`);
  return () => closeSync(descriptor);
}

function lockFileShared(path: string): (() => void) | undefined {
  const flock = loadFlock();
  if (flock === undefined) return isLockedByName(path) ? undefined : () => {};
  if (!existsSync(path)) return () => {};
  const descriptor = openSync(path, "r");
  if (flock(descriptor, LOCK_SHARED_NONBLOCKING) !== 0) {
    closeSync(descriptor);
    return undefined;
  }
  return () => closeSync(descriptor);
}

function loadFlock(): Flock | undefined {
  return loadFromLibc({ flock: { args: ["i32", "i32"], returns: "i32" } })?.flock;
}

/**
 * Acquires the lock by creating a file that must not exist yet. If the file exists, but the
 * process that created it has ended, the lock is taken over.
 */
export function lockByName(path: string): (() => void) | undefined {
  const name = `${path}.pid`;
  for (;;) {
    try {
      const descriptor = openSync(name, "wx", FILE_MODE);
      writeSync(descriptor, `${process.pid}\n`);
      closeSync(descriptor);
      return () => unlinkSync(name);
    } catch (error) {
      if (codeOf(error) !== "EEXIST") throw error;
      if (isLockedByName(path)) return undefined;
      unlinkSync(name);
    }
  }
}

function isLockedByName(path: string): boolean {
  const name = `${path}.pid`;
  return existsSync(name) && isRunning(Number.parseInt(readFileSync(name, "utf8"), 10));
}

function isRunning(processId: number): boolean {
  // A lock file without a number was left by a process that ended while it was writing the file.
  if (!(processId > 0)) return false;
  try {
    process.kill(processId, 0);
    return true;
  } catch (error) {
    // EPERM means that the process exists and belongs to another user.
    return codeOf(error) === "EPERM";
  }
}

function attempt<T>(operation: string, path: string, action: () => T): T {
  try {
    return action();
  } catch (error) {
    throw diskError(error, path, operation);
  }
}

function diskError(error: unknown, path: string, operation: string): DiskError {
  if (error instanceof DiskError) return error;
  const code = codeOf(error);
  // When a quota is exceeded, the system refuses a write as if the disk were full. After a failed
  // sync, however, the outcome is unknown.
  const isFull = code === "EDQUOT" && operation !== "sync";
  return new DiskError(isFull ? "ENOSPC" : code, path, operation, error);
}

function codeOf(error: unknown): string {
  const hasCode = typeof error === "object" && error !== null && "code" in error;
  return hasCode && typeof error.code === "string" ? error.code : "EIO";
}
