/**
 * A disk that forwards every call to another disk. Subclasses change or observe a few operations.
 */
import type { Disk, DiskEntry, DiskFile, MappedFile, OpenOptions } from "../../src/base/disk.ts";

export class ForwardingDisk implements Disk {
  protected readonly disk: Disk;

  constructor(disk: Disk) {
    this.disk = disk;
  }

  open(path: string, options: OpenOptions): DiskFile {
    return this.disk.open(path, options);
  }

  map(path: string): MappedFile {
    return this.disk.map(path);
  }

  readFile(path: string): Uint8Array {
    return this.disk.readFile(path);
  }

  blob(path: string): Blob {
    return this.disk.blob(path);
  }

  exists(path: string): boolean {
    return this.disk.exists(path);
  }

  sizeOf(path: string): number | undefined {
    return this.disk.sizeOf(path);
  }

  list(path: string): DiskEntry[] {
    return this.disk.list(path);
  }

  makeDirectory(path: string): void {
    this.disk.makeDirectory(path);
  }

  rename(from: string, to: string): void {
    this.disk.rename(from, to);
  }

  remove(path: string): void {
    this.disk.remove(path);
  }

  /** Removes the file synchronously, so that simulations are reproducible. */
  removeSoon(path: string): Promise<void> | undefined {
    this.remove(path);
    return undefined;
  }

  removeDirectory(path: string): void {
    this.disk.removeDirectory(path);
  }

  syncDirectory(path: string): void {
    this.disk.syncDirectory(path);
  }

  /** Syncs the directory synchronously, so that simulations are reproducible. */
  async syncDirectorySoon(path: string): Promise<void> {
    this.syncDirectory(path);
  }

  realPath(path: string): string {
    return this.disk.realPath(path);
  }

  freeBytes(path: string): number {
    return this.disk.freeBytes(path);
  }

  totalBytes(path: string): number {
    return this.disk.totalBytes(path);
  }

  lock(path: string): (() => void) | undefined {
    return this.disk.lock(path);
  }

  lockShared(path: string): (() => void) | undefined {
    return this.disk.lockShared(path);
  }
}

/** A file that forwards every call to another file. */
export class ForwardingFile implements DiskFile {
  readonly path: string;
  protected readonly file: DiskFile;

  constructor(file: DiskFile) {
    this.path = file.path;
    this.file = file;
  }

  size(): number {
    return this.file.size();
  }

  read(into: Uint8Array, offset: number): number {
    return this.file.read(into, offset);
  }

  write(bytes: Uint8Array, offset: number): void {
    this.file.write(bytes, offset);
  }

  /**
   * Makes the two calls that this method combines, so that a subclass that overrides either call
   * sees it.
   */
  async writeDurably(bytes: Uint8Array, offset: number): Promise<void> {
    this.write(bytes, offset);
    await this.sync();
  }

  truncate(length: number): void {
    this.file.truncate(length);
  }

  sync(): Promise<void> {
    return this.file.sync();
  }

  syncNow(): void {
    this.file.syncNow();
  }

  close(): void {
    this.file.close();
  }
}
