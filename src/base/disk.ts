/**
 * The disk, as the engine sees it: what a simulation must be able to play.
 *
 * Every call is synchronous but those that take long: {@linkcode DiskFile.sync},
 * {@linkcode DiskFile.writeDurably}, {@linkcode Disk.removeSoon} and
 * {@linkcode Disk.syncDirectorySoon}. Nothing is durable before one of the first two has resolved
 * for its file, or `syncNow` has returned, and a name not before one of the syncs of its
 * directory has. What is made is for its owner alone.
 * Implementations: `bun_disk.ts`, and the simulated and recording disks of the tests.
 */

/** An open file. Offsets and lengths are bytes. */
export interface DiskFile {
  readonly path: string;
  size(): number;
  /** Reads up to `into.length` bytes; returns how many there were. @throws {DiskError} */
  read(into: Uint8Array, offset: number): number;
  /** Writes all of `bytes`, completing short writes. @throws {DiskError} */
  write(bytes: Uint8Array, offset: number): void;
  /**
   * Writes all of `bytes` and makes them durable, off the event loop. They must stay as they are
   * until then. Rejects with DiskError: by a "write" that was refused, or by a "sync", after which
   * nobody knows what is there.
   */
  writeDurably(bytes: Uint8Array, offset: number): Promise<void>;
  /** Cuts or extends with zeros. @throws {DiskError} */
  truncate(length: number): void;
  /** Makes data written so far durable (fdatasync), off the event loop. Rejects with DiskError. */
  sync(): Promise<void>;
  /** The same, in place; for start-up and shutdown. @throws {DiskError} */
  syncNow(): void;
  close(): void;
}

/** Bytes of a published file, mapped or read. */
export interface MappedFile {
  /** Aliases the file; read only by agreement. Length 0 once released. */
  readonly bytes: Uint8Array;
  /** Unmaps at once; later reads through old views see length 0. */
  release(): void;
}

export interface DiskEntry {
  name: string;
  isDirectory: boolean;
}

export interface OpenOptions {
  readonly create?: boolean;
  readonly exclusive?: boolean;
  /** The file is read and nothing else; works where the disk may not be written. */
  readonly readOnly?: boolean;
  /**
   * Each write waits for the disk: {@linkcode DiskFile.writeDurably} is one call of the system, and
   * a sync has little left to do. What was written is durable by those two alone, though.
   */
  readonly writesThrough?: boolean;
}

/** A directory tree. Paths are absolute, or relative to the working directory. */
export interface Disk {
  /** @throws {DiskError} ENOENT if missing and not `create`; EEXIST if there and `exclusive`. */
  open(path: string, options: OpenOptions): DiskFile;
  /** Maps a file that never changes again. @throws {DiskError} */
  map(path: string): MappedFile;
  readFile(path: string): Uint8Array;
  /** A file whose bytes are read as they are asked for, and off the event loop. */
  blob(path: string): Blob;
  exists(path: string): boolean;
  /** File length in bytes, or undefined when there is none. */
  sizeOf(path: string): number | undefined;
  list(path: string): DiskEntry[];
  /** Makes a directory and its parents; one that exists is fine. */
  makeDirectory(path: string): void;
  rename(from: string, to: string): void;
  remove(path: string): void;
  /**
   * The same off the event loop: to give back the room of a long file takes long. Rejects with
   * DiskError. Returns undefined when it is gone already.
   */
  removeSoon(path: string): Promise<void> | undefined;
  removeDirectory(path: string): void;
  /** Makes the names in a directory durable. */
  syncDirectory(path: string): void;
  /** The same off the event loop, of the names that are there by now. Rejects with DiskError. */
  syncDirectorySoon(path: string): Promise<void>;
  /** The absolute path of what is there, through no symbolic link. @throws {DiskError} ENOENT */
  realPath(path: string): string;
  /** Free bytes for this process on the file system of `path`. */
  freeBytes(path: string): number;
  /** Size of the file system of `path`. */
  totalBytes(path: string): number;
  /**
   * Takes the exclusive lock on a file for the life of the process.
   * @returns A function that releases it, or undefined when another process holds it.
   */
  lock(path: string): (() => void) | undefined;
  /**
   * Keeps {@linkcode lock} from being taken, and changes no byte: for those who only look. Several
   * may do so at once. A file that is not there is held by nobody, and cannot be kept from anybody.
   * @returns A function that ends it, or undefined when the lock is taken.
   */
  lockShared(path: string): (() => void) | undefined;
}
