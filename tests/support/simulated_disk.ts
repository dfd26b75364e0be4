/**
 * A disk in memory that can lose power.
 *
 * For every file, the disk keeps the durable bytes and, in order, the later changes. For every
 * directory, it keeps the names in the same way. `crash` creates a new disk in a state that may be
 * found after power returns:
 *
 * - A sector of 512 bytes is never torn, but each sector independently holds the state of the last
 *   sync or any later state: writes may be lost, split and reordered. The same applies to the file
 *   length.
 * - A name that was created, moved or removed without `syncDirectory` is present or not,
 *   independently of other names. A move is a single event, but once its target directory is
 *   synced, the old name may reappear.
 * - A failed sync makes nothing durable, and the next successful sync does not make the earlier
 *   writes durable (Linux behaves this way): only a crash reveals their outcome.
 *
 * The disk on which `crash` was called continues unharmed, so a single run can be crashed at every
 * step.
 */
import { assert, defined } from "../../src/base/assert.ts";
import type { Disk, DiskEntry, DiskFile, MappedFile, OpenOptions } from "../../src/base/disk.ts";
import { DiskError } from "../../src/base/errors.ts";
import {
  type CrashOptions,
  cloneDirectory,
  copyDirectory,
  SimulatedDirectory,
  SimulatedInode,
} from "./simulated_nodes.ts";

/** The capacity of a disk without a limit. */
export const UNLIMITED_BYTES: number = 2 ** 40;

export const DISK_OPERATIONS = [
  "open",
  "map",
  "read",
  "write",
  "truncate",
  "sync",
  "list",
  "makeDirectory",
  "rename",
  "remove",
  "syncDirectory",
] as const;

export type DiskOperation = (typeof DISK_OPERATIONS)[number];

/** The error with which an operation of the disk fails. */
export interface Fault {
  readonly code: "EIO" | "ENOSPC" | "EMFILE" | "EACCES";
  /** The number of bytes that a failed write still puts into the file. Defaults to 0. */
  readonly bytesWritten?: number;
}

export type FaultPlan = (operation: DiskOperation, path: string) => Fault | undefined;

/** Makes a disk fail as planned. Returns a function that tells whether the disk has failed yet. */
export function failsOnce(disk: SimulatedDisk, plan: FaultPlan): () => boolean {
  let isMet = false;
  disk.faultPlan = (...args) => {
    const fault = plan(...args);
    isMet ||= fault !== undefined;
    return fault;
  };
  return () => isMet;
}

/** Returns a plan that fails the nth operation of a kind once. `nth` counts from 1. */
export function failNth(operation: DiskOperation, nth: number, fault: Fault): FaultPlan {
  let count = 0;
  return (each) => {
    if (each !== operation) return undefined;
    count += 1;
    return count === nth ? fault : undefined;
  };
}

/** A volume of unlimited size unless `capacityBytes` is set. */
export class SimulatedDisk implements Disk {
  /** Called before each operation. The operation proceeds if it returns undefined. */
  faultPlan: FaultPlan | undefined;
  /** The maximum total size of all files in bytes. Writes beyond it fail with ENOSPC. */
  capacityBytes: number = UNLIMITED_BYTES;
  /** Directories that are separate file systems: nothing can be moved into or out of them. */
  readonly mounts: readonly string[];
  /** While true, syncs off the event loop wait for {@linkcode releaseSyncs}. */
  holdsSyncs = false;
  /** The number of file syncs requested so far. */
  syncCount = 0;
  /** The number of operations so far. */
  operationCount = 0;
  readonly #root: SimulatedDirectory;
  readonly #locks = new Set<string>();
  #heldSyncs: (() => void)[] = [];

  constructor(root: SimulatedDirectory = new SimulatedDirectory(), mounts: readonly string[] = []) {
    this.#root = root;
    this.mounts = mounts;
  }

  open(path: string, options: OpenOptions): DiskFile {
    this.#begin("open", path);
    const { parent, name } = this.#parentOf(path, "open");
    const found = parent.get(name);
    if (found instanceof SimulatedDirectory) throw new DiskError("EISDIR", path, "open");
    if (found !== undefined) {
      if (options.exclusive === true) throw new DiskError("EEXIST", path, "open");
      return new SimulatedFile(this, path, found);
    }
    if (options.create !== true && options.exclusive !== true) {
      throw new DiskError("ENOENT", path, "open");
    }
    const inode = new SimulatedInode();
    parent.link(name, inode);
    return new SimulatedFile(this, path, inode);
  }

  map(path: string): MappedFile {
    this.#begin("map", path);
    const bytes = this.#inodeAt(path, "map").copy();
    return {
      bytes,
      release() {
        if (bytes.byteLength > 0) bytes.buffer.transfer(0);
      },
    };
  }

  readFile(path: string): Uint8Array {
    this.#begin("read", path);
    return this.#inodeAt(path, "read").copy();
  }

  blob(path: string): Blob {
    return new Blob([new Uint8Array(this.readFile(path))]);
  }

  exists(path: string): boolean {
    return this.#nodeAt(path) !== undefined;
  }

  sizeOf(path: string): number | undefined {
    const node = this.#nodeAt(path);
    return node instanceof SimulatedInode ? node.size : undefined;
  }

  list(path: string): DiskEntry[] {
    this.#begin("list", path);
    return this.#directoryAt(path, "list").entries();
  }

  makeDirectory(path: string): void {
    this.#begin("makeDirectory", path);
    let directory = this.#root;
    for (const name of partsOf(path)) {
      const found = directory.get(name);
      if (found instanceof SimulatedInode) throw new DiskError("ENOTDIR", path, "make");
      const next = found ?? new SimulatedDirectory();
      if (found === undefined) directory.link(name, next);
      directory = next;
    }
  }

  rename(from: string, to: string): void {
    this.#begin("rename", from);
    if (this.#mountOf(from) !== this.#mountOf(to)) throw new DiskError("EXDEV", from, "rename");
    const source = this.#parentOf(from, "rename");
    const target = this.#parentOf(to, "rename");
    if (source.parent.get(source.name) === undefined) {
      throw new DiskError("ENOENT", from, "rename");
    }
    target.parent.receive(target.name, { from: source.parent, name: source.name });
  }

  remove(path: string): void {
    this.#begin("remove", path);
    this.#inodeAt(path, "remove");
    const { parent, name } = this.#parentOf(path, "remove");
    parent.unlink(name);
  }

  /** Removes the file synchronously, so that simulations are reproducible. */
  removeSoon(path: string): undefined {
    this.remove(path);
  }

  removeDirectory(path: string): void {
    this.#begin("remove", path);
    if (this.#directoryAt(path, "remove").entries().length > 0) {
      throw new DiskError("ENOTEMPTY", path, "remove");
    }
    const { parent, name } = this.#parentOf(path, "remove");
    parent.unlink(name);
  }

  syncDirectory(path: string): void {
    this.#begin("syncDirectory", path);
    this.#directoryAt(path, "sync").sync();
  }

  /**
   * Syncs a directory off the event loop. The sync covers the names that exist at the time of the
   * call, but takes effect later.
   */
  async syncDirectorySoon(path: string): Promise<void> {
    this.#begin("syncDirectory", path);
    const directory = this.#directoryAt(path, "sync");
    const covered = directory.changes;
    await this.#heldTurn();
    directory.sync(covered);
  }

  /** Returns the path itself, because this disk has no symbolic links. */
  realPath(path: string): string {
    if (this.#nodeAt(path) === undefined) throw new DiskError("ENOENT", path, "resolve");
    return path;
  }

  freeBytes(_path: string): number {
    if (this.capacityBytes === UNLIMITED_BYTES) return UNLIMITED_BYTES;
    return Math.max(0, this.capacityBytes - this.#root.byteCount());
  }

  totalBytes(_path: string): number {
    return this.capacityBytes;
  }

  /** Returns the total size of all files in bytes. */
  byteCount(): number {
    return this.#root.byteCount();
  }

  lock(path: string): (() => void) | undefined {
    if (this.#locks.has(path)) return undefined;
    this.open(path, { create: true }).close();
    this.#locks.add(path);
    return () => {
      this.#locks.delete(path);
    };
  }

  lockShared(path: string): (() => void) | undefined {
    return this.#locks.has(path) ? undefined : () => {};
  }

  /**
   * Returns a disk in a state that may be found after a power loss at this moment. The original
   * disk is not changed.
   */
  crash(options: CrashOptions): SimulatedDisk {
    const disk = new SimulatedDisk(copyDirectory(this.#root, options), this.mounts);
    disk.capacityBytes = this.capacityBytes;
    return disk;
  }

  /**
   * Returns the disk as the next process finds it if the current process is killed at this moment.
   * Everything is present, but a later crash can still lose unsynced changes.
   */
  restart(): SimulatedDisk {
    const disk = new SimulatedDisk(cloneDirectory(this.#root), this.mounts);
    disk.capacityBytes = this.capacityBytes;
    return disk;
  }

  /** Lets the waiting syncs finish, in the order in which they were requested. */
  releaseSyncs(): void {
    const held = this.#heldSyncs;
    this.#heldSyncs = [];
    for (const release of held) release();
  }

  /** Damages a stored byte, both in the current contents and in the durable contents. */
  damage(path: string, offset: number, mask = 0xff): void {
    this.#inodeAt(path, "damage").damage(offset, mask);
  }

  /**
   * Counts an operation on a file, and lets the fault plan make the operation fail. Called only by
   * files.
   */
  begin(operation: DiskOperation, path: string): Fault | undefined {
    this.operationCount += 1;
    return this.faultPlan?.(operation, path);
  }

  /** Resolves once a sync of a file may take effect. Called only by files. */
  syncTurn(): Promise<void> {
    this.syncCount += 1;
    return this.#heldTurn();
  }

  #heldTurn(): Promise<void> {
    if (!this.holdsSyncs) return Promise.resolve();
    return new Promise((resolve) => this.#heldSyncs.push(resolve));
  }

  #begin(operation: DiskOperation, path: string): void {
    const fault = this.begin(operation, path);
    if (fault !== undefined) throw new DiskError(fault.code, path, operation);
  }

  #mountOf(path: string): string | undefined {
    return this.mounts.find((mount) => path.startsWith(`${mount}/`));
  }

  #nodeAt(path: string): SimulatedInode | SimulatedDirectory | undefined {
    let node: SimulatedInode | SimulatedDirectory | undefined = this.#root;
    for (const name of partsOf(path)) {
      if (!(node instanceof SimulatedDirectory)) return undefined;
      node = node.get(name);
    }
    return node;
  }

  #inodeAt(path: string, operation: string): SimulatedInode {
    const node = this.#nodeAt(path);
    if (node === undefined) throw new DiskError("ENOENT", path, operation);
    if (node instanceof SimulatedDirectory) throw new DiskError("EISDIR", path, operation);
    return node;
  }

  #directoryAt(path: string, operation: string): SimulatedDirectory {
    const node = this.#nodeAt(path);
    if (node === undefined) throw new DiskError("ENOENT", path, operation);
    if (node instanceof SimulatedInode) throw new DiskError("ENOTDIR", path, operation);
    return node;
  }

  #parentOf(path: string, operation: string): { parent: SimulatedDirectory; name: string } {
    const parts = partsOf(path);
    const name = defined(parts.pop(), "only the root may lack a parent");
    return { parent: this.#directoryAt(parts.join("/"), operation), name };
  }
}

class SimulatedFile implements DiskFile {
  readonly path: string;
  readonly #disk: SimulatedDisk;
  readonly #inode: SimulatedInode;
  #isOpen = true;

  constructor(disk: SimulatedDisk, path: string, inode: SimulatedInode) {
    this.#disk = disk;
    this.path = path;
    this.#inode = inode;
  }

  size(): number {
    return this.#inode.size;
  }

  read(into: Uint8Array, offset: number): number {
    this.#begin("read");
    return this.#inode.read(into, offset);
  }

  write(bytes: Uint8Array, offset: number): void {
    assert(this.#isOpen, "only an open file may be written");
    const room = this.#disk.freeBytes(this.path) + Math.max(0, this.#inode.size - offset);
    const full: Fault | undefined =
      bytes.length > room ? { code: "ENOSPC", bytesWritten: room } : undefined;
    const fault = this.#disk.begin("write", this.path) ?? full;
    if (fault === undefined) {
      this.#inode.write(bytes, offset);
      return;
    }
    const written = Math.min(fault.bytesWritten ?? 0, bytes.length);
    if (written > 0) this.#inode.write(bytes.subarray(0, written), offset);
    throw new DiskError(fault.code, this.path, "write");
  }

  async writeDurably(bytes: Uint8Array, offset: number): Promise<void> {
    this.write(bytes, offset);
    await this.sync();
  }

  truncate(length: number): void {
    this.#begin("truncate");
    if (length - this.#inode.size > this.#disk.freeBytes(this.path)) {
      throw new DiskError("ENOSPC", this.path, "truncate");
    }
    this.#inode.truncate(length);
  }

  async sync(): Promise<void> {
    assert(this.#isOpen, "only an open file may be synced");
    const fault = this.#disk.begin("sync", this.path);
    const covered = this.#inode.changeCount;
    await this.#disk.syncTurn();
    this.#settle(fault, covered);
  }

  syncNow(): void {
    const fault = this.#disk.begin("sync", this.path);
    this.#disk.syncCount += 1;
    this.#settle(fault, this.#inode.changeCount);
  }

  close(): void {
    this.#isOpen = false;
  }

  #settle(fault: Fault | undefined, covered: number): void {
    this.#inode.sync(covered, fault === undefined);
    if (fault !== undefined) throw new DiskError(fault.code, this.path, "sync");
  }

  #begin(operation: DiskOperation): void {
    assert(this.#isOpen, "only an open file may be used");
    const fault = this.#disk.begin(operation, this.path);
    if (fault !== undefined) throw new DiskError(fault.code, this.path, operation);
  }
}

function partsOf(path: string): string[] {
  const parts: string[] = [];
  for (const part of path.split("/")) {
    if (part === "..") parts.pop();
    else if (part !== "" && part !== ".") parts.push(part);
  }
  return parts;
}

export type { CrashOptions } from "./simulated_nodes.ts";
