/** A disk that becomes full once, at a chosen moment. */
import type { DiskFile, OpenOptions } from "../../src/base/disk.ts";
import { DiskError } from "../../src/base/errors.ts";
import { ForwardingDisk, ForwardingFile } from "./forwarding_disk.ts";

/** A disk whose next write to the log fails once `isFull` is set. */
export class FullDisk extends ForwardingDisk {
  isFull = false;

  override open(path: string, options: OpenOptions): DiskFile {
    const file = this.disk.open(path, options);
    return path.endsWith(".wal") ? new FullFile(file, () => this.#takeFull()) : file;
  }

  #takeFull(): boolean {
    const { isFull } = this;
    this.isFull = false;
    return isFull;
  }
}

class FullFile extends ForwardingFile {
  readonly #takeFull: () => boolean;

  constructor(file: DiskFile, takeFull: () => boolean) {
    super(file);
    this.#takeFull = takeFull;
  }

  override write(bytes: Uint8Array, offset: number): void {
    if (this.#takeFull()) throw new DiskError("ENOSPC", this.path, "write");
    super.write(bytes, offset);
  }
}
