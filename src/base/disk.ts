/**
 * Defines the interface of the disk, which simulations implement as well.
 *
 * Every call is synchronous except those that take long: {@linkcode DiskFile.sync}, {@linkcode
 * DiskFile.writeDurably}, {@linkcode Disk.removeSoon} and {@linkcode Disk.syncDirectorySoon}. A
 * file's data is durable only after one of the first two has resolved or `syncNow` has returned,
 * and a name only after a sync of its directory. Only the owner may access the files and
 * directories that it creates. Implementations: `bun_disk.ts`, and the tests' simulated and
 * recording disks.
 */

/** An open file. Offsets and lengths are bytes. */
export interface DiskFile {
  readonly path: string;
  size(): number;
  /** Reads up to `into.length` bytes. Returns the number of bytes read. @throws {DiskError} */
  read(into: Uint8Array, offset: number): number;
  /** Writes all of `bytes`, and completes short writes. @throws {DiskError} */
  write(bytes: Uint8Array, offset: number): void;
  /**
   * Writes all of `bytes` and makes them durable, off the event loop. The bytes must not change
   * until then. Rejects with a DiskError: operation "write" if the write was refused, or "sync",
   * after which the contents of the file are unknown.
   */
  writeDurably(bytes: Uint8Array, offset: number): Promise<void>;
  /** Shortens the file, or extends it with zeros. @throws {DiskError} */
  truncate(length: number): void;
  /**
   * Makes data written so far durable (fdatasync), off the event loop. Rejects with a DiskError.
   */
  sync(): Promise<void>;
  /**
   * Syncs as {@linkcode sync} does, but synchronously, for startup and shutdown.
   * @throws {DiskError}
   */
  syncNow(): void;
  close(): void;
}

/** The bytes of a published file, mapped or read. */
export interface MappedFile {
  /**
   * The file's bytes, without a copy. The caller must not write to them. Their length is 0 once
   * they are released.
   */
  readonly bytes: Uint8Array;
  /** Unmaps the file immediately. Views that were taken before then have length 0. */
  release(): void;
}

export interface DiskEntry {
  name: string;
  isDirectory: boolean;
}

export interface OpenOptions {
  readonly create?: boolean;
  readonly exclusive?: boolean;
  /** True if the file is only read. Such a file may be on a read-only disk. */
  readonly readOnly?: boolean;
  /**
   * True if each write waits for the disk: {@linkcode DiskFile.writeDurably} is then one system
   * call, and a sync has little left to do. Data is still guaranteed durable only by those two
   * calls.
   */
  readonly writesThrough?: boolean;
}

/** A directory tree. Paths are absolute, or relative to the working directory. */
export interface Disk {
  /**
   * Opens a file. @throws {DiskError} ENOENT if the file is missing and `create` is not set; EEXIST
   * if it exists and `exclusive` is set.
   */
  open(path: string, options: OpenOptions): DiskFile;
  /** Maps a file that never changes again. @throws {DiskError} */
  map(path: string): MappedFile;
  readFile(path: string): Uint8Array;
  /** Returns a file whose bytes are read on demand, off the event loop. */
  blob(path: string): Blob;
  exists(path: string): boolean;
  /** Returns the length of a file in bytes, or undefined if it does not exist. */
  sizeOf(path: string): number | undefined;
  list(path: string): DiskEntry[];
  /** Creates a directory and its parents. An existing directory is accepted. */
  makeDirectory(path: string): void;
  rename(from: string, to: string): void;
  remove(path: string): void;
  /**
   * Removes a file off the event loop, since freeing the blocks of a large file takes a long time.
   * Rejects with a DiskError. Returns undefined if the file does not exist.
   */
  removeSoon(path: string): Promise<void> | undefined;
  removeDirectory(path: string): void;
  /** Makes the names in a directory durable. */
  syncDirectory(path: string): void;
  /**
   * Makes the names that now exist in a directory durable, off the event loop. Rejects with a
   * DiskError.
   */
  syncDirectorySoon(path: string): Promise<void>;
  /** Returns the absolute path without symbolic links. @throws {DiskError} ENOENT */
  realPath(path: string): string;
  /** Returns the bytes available to this process on the file system of `path`. */
  freeBytes(path: string): number;
  /** Returns the size in bytes of the file system of `path`. */
  totalBytes(path: string): number;
  /**
   * Acquires the exclusive lock on a file for the lifetime of the process.
   * @returns A function that releases it, or undefined if another process has the lock.
   */
  lock(path: string): (() => void) | undefined;
  /**
   * Prevents others from acquiring {@linkcode lock}, without changing a byte, for read-only users.
   * Several processes may have this lock at the same time. A file that does not exist is not locked
   * and cannot be locked.
   * @returns A function that releases it, or undefined if the lock is taken.
   */
  lockShared(path: string): (() => void) | undefined;
}
