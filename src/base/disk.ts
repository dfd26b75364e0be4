/**
 * Defines the disk interface, which simulations also implement.
 *
 * Every call is synchronous except the slow ones: {@linkcode DiskFile.sync}, {@linkcode
 * DiskFile.writeDurably}, {@linkcode Disk.removeSoon} and {@linkcode Disk.syncDirectorySoon}. Data
 * in a file is durable only after `sync` or `writeDurably` has resolved or `syncNow` has returned.
 * A file name is durable only after its directory has been synced. Files and directories are
 * created so that only their owner can access them. The implementations are `bun_disk.ts`, and the
 * simulated and recording disks that the tests use.
 */

/** An open file. Offsets and lengths are in bytes. */
export interface DiskFile {
  readonly path: string;
  size(): number;
  /**
   * Reads up to `into.length` bytes at an offset. Returns the number of bytes read.
   * @throws {DiskError}
   */
  read(into: Uint8Array, offset: number): number;
  /**
   * Writes all of `bytes`, continuing after short writes until everything is written.
   *
   * @throws {DiskError}
   */
  write(bytes: Uint8Array, offset: number): void;
  /**
   * Writes all of `bytes` and makes them durable, outside the event loop. The bytes must not
   * change until the promise has settled. Rejects with a DiskError whose operation is "write" if
   * the write was refused, or "sync" if the contents of the file are now unknown.
   */
  writeDurably(bytes: Uint8Array, offset: number): Promise<void>;
  /** Shortens the file, or extends it with zeros. @throws {DiskError} */
  truncate(length: number): void;
  /**
   * Makes all data written so far durable (fdatasync), outside the event loop. Rejects with a
   * DiskError.
   */
  sync(): Promise<void>;
  /**
   * Makes all data written so far durable like {@linkcode sync}, but synchronously, for startup
   * and shutdown.
   * @throws {DiskError}
   */
  syncNow(): void;
  close(): void;
}

/**
 * The bytes of a file that never changes again. The file has been either mapped or read into
 * memory.
 */
export interface MappedFile {
  /**
   * The bytes of the file itself, not a copy. The caller must not write to them. Once they are
   * released, their length is 0.
   */
  readonly bytes: Uint8Array;
  /** Unmaps the file immediately. From then on, all existing views have length 0. */
  release(): void;
}

export interface DiskEntry {
  name: string;
  isDirectory: boolean;
}

export interface OpenOptions {
  readonly create?: boolean;
  readonly exclusive?: boolean;
  /** Whether the file will only be read. Such a file may be on a read-only file system. */
  readonly readOnly?: boolean;
  /**
   * Whether each write waits for the disk. If so, {@linkcode DiskFile.writeDurably} is a single
   * system call, and a sync has little left to do. Even so, only these two calls guarantee that
   * data is durable.
   */
  readonly writesThrough?: boolean;
}

/** A directory tree. Paths are absolute, or relative to the working directory. */
export interface Disk {
  /**
   * Opens a file.
   *
   * @throws {DiskError} ENOENT if the file is missing and `create` is not set; EEXIST if it exists
   *   and `exclusive` is set.
   */
  open(path: string, options: OpenOptions): DiskFile;
  /** Maps a file that will never change again. @throws {DiskError} */
  map(path: string): MappedFile;
  readFile(path: string): Uint8Array;
  /** Returns a Blob of a file, whose bytes are read on demand, outside the event loop. */
  blob(path: string): Blob;
  exists(path: string): boolean;
  /** Returns the length of a file in bytes, or undefined if it does not exist. */
  sizeOf(path: string): number | undefined;
  list(path: string): DiskEntry[];
  /** Creates a directory and its parents. Has no effect if the directory already exists. */
  makeDirectory(path: string): void;
  rename(from: string, to: string): void;
  remove(path: string): void;
  /**
   * Removes a file outside the event loop, because freeing the blocks of a large file takes a long
   * time. Rejects with a DiskError. Returns undefined if the file does not exist.
   */
  removeSoon(path: string): Promise<void> | undefined;
  removeDirectory(path: string): void;
  /** Makes the current file names in a directory durable. */
  syncDirectory(path: string): void;
  /**
   * Makes the current file names in a directory durable, outside the event loop. Rejects with a
   * DiskError.
   */
  syncDirectorySoon(path: string): Promise<void>;
  /**
   * Returns the absolute path of a file with symbolic links resolved. @throws {DiskError} ENOENT
   */
  realPath(path: string): string;
  /** Returns the number of bytes available to this process on the file system of `path`. */
  freeBytes(path: string): number;
  /** Returns the size in bytes of the file system of `path`. */
  totalBytes(path: string): number;
  /**
   * Acquires the exclusive lock on a file for the lifetime of the process.
   * @returns A function that releases the lock; undefined if another process holds the lock.
   */
  lock(path: string): (() => void) | undefined;
  /**
   * Acquires a shared lock on a file, for a process that only reads. While any process holds it,
   * no other process can acquire {@linkcode lock}. The file is not changed. Several processes may
   * hold the shared lock at the same time. A file that does not exist cannot be locked.
   * @returns A function that releases the lock; undefined if another process holds the exclusive
   *   lock.
   */
  lockShared(path: string): (() => void) | undefined;
}
