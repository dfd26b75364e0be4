/**
 * Records every disk operation in order, along with marks set by a test. This proves that data was
 * written, then synced, and only then acknowledged.
 */
import type { DiskFile, MappedFile, OpenOptions } from "../../src/base/disk.ts";
import { ForwardingDisk, ForwardingFile } from "./forwarding_disk.ts";

export interface DiskEvent {
  readonly kind:
    | "open"
    | "map"
    | "release"
    | "read"
    | "write"
    | "truncate"
    | "syncBegin"
    | "syncEnd"
    | "syncFailed"
    | "close"
    | "makeDirectory"
    | "rename"
    | "remove"
    | "removeDirectory"
    | "syncDirectory"
    | "mark";
  /** The path of the file or, for a mark, its label. */
  readonly path: string;
  /** The new name of a renamed file. */
  readonly to?: string;
  readonly offset?: number;
  readonly byteCount?: number;
}

export class RecordingDisk extends ForwardingDisk {
  readonly events: DiskEvent[] = [];

  /** Records a mark at this point. */
  mark(label: string): void {
    this.events.push({ kind: "mark", path: label });
  }

  /**
   * Returns the index of the first event of a kind, at or after `from`, whose path ends with
   * `pathEnd`; -1 if there is no such event.
   */
  indexOf(kind: DiskEvent["kind"], pathEnd: string, from = 0): number {
    return this.events.findIndex(
      (event, index) => index >= from && event.kind === kind && event.path.endsWith(pathEnd),
    );
  }

  /** Returns the events as lines such as "write wal/1.wal", to explain a failed test. */
  describe(): string[] {
    return this.events.map(
      ({ kind, path, to }) => `${kind} ${path}${to === undefined ? "" : ` ${to}`}`,
    );
  }

  override open(path: string, options: OpenOptions): DiskFile {
    const file = this.disk.open(path, options);
    this.events.push({ kind: "open", path });
    return new RecordingFile(file, this.events);
  }

  override map(path: string): MappedFile {
    const mapped = this.disk.map(path);
    this.events.push({ kind: "map", path });
    return {
      bytes: mapped.bytes,
      release: () => {
        mapped.release();
        this.events.push({ kind: "release", path });
      },
    };
  }

  override readFile(path: string): Uint8Array {
    this.events.push({ kind: "read", path });
    return this.disk.readFile(path);
  }

  override makeDirectory(path: string): void {
    this.disk.makeDirectory(path);
    this.events.push({ kind: "makeDirectory", path });
  }

  override rename(from: string, to: string): void {
    this.disk.rename(from, to);
    this.events.push({ kind: "rename", path: from, to });
  }

  override remove(path: string): void {
    this.disk.remove(path);
    this.events.push({ kind: "remove", path });
  }

  override removeDirectory(path: string): void {
    this.disk.removeDirectory(path);
    this.events.push({ kind: "removeDirectory", path });
  }

  override syncDirectory(path: string): void {
    this.disk.syncDirectory(path);
    this.events.push({ kind: "syncDirectory", path });
  }
}

class RecordingFile extends ForwardingFile {
  readonly #events: DiskEvent[];

  constructor(file: DiskFile, events: DiskEvent[]) {
    super(file);
    this.#events = events;
  }

  override read(into: Uint8Array, offset: number): number {
    const byteCount = this.file.read(into, offset);
    this.#events.push({ kind: "read", path: this.path, offset, byteCount });
    return byteCount;
  }

  override write(bytes: Uint8Array, offset: number): void {
    this.file.write(bytes, offset);
    this.#events.push({ kind: "write", path: this.path, offset, byteCount: bytes.length });
  }

  override truncate(length: number): void {
    this.file.truncate(length);
    this.#events.push({ kind: "truncate", path: this.path, byteCount: length });
  }

  override async sync(): Promise<void> {
    this.#events.push({ kind: "syncBegin", path: this.path });
    try {
      await this.file.sync();
    } catch (error) {
      this.#events.push({ kind: "syncFailed", path: this.path });
      throw error;
    }
    this.#events.push({ kind: "syncEnd", path: this.path });
  }

  override syncNow(): void {
    this.#events.push({ kind: "syncBegin", path: this.path });
    this.file.syncNow();
    this.#events.push({ kind: "syncEnd", path: this.path });
  }

  override close(): void {
    this.file.close();
    this.#events.push({ kind: "close", path: this.path });
  }
}
