/**
 * A disk that leaves holes for the zeros at the end of new files, in place of writing them. A file
 * with a hole is read like a file of zeros. Opening a database spends a third of its time writing
 * zeros to log files, and tests open thousands of databases.
 */
import { bunDisk } from "../../src/base/bun_disk.ts";
import type { Disk } from "../../src/base/disk.ts";
import { ForwardingFile } from "./forwarding_disk.ts";

/** The minimum length of zeros that become a hole, in bytes. */
const HOLE_BYTES_MIN = 64 * 1024;

/** Zeros to compare with. No writer of zeros writes more at once. */
const ZEROS: Uint8Array = new Uint8Array(1024 * 1024);

class SparseFile extends ForwardingFile {
  override write(bytes: Uint8Array, offset: number): void {
    if (areZeros(bytes) && offset >= this.size()) this.truncate(offset + bytes.length);
    else this.file.write(bytes, offset);
  }

  override writeDurably(bytes: Uint8Array, offset: number): Promise<void> {
    return this.file.writeDurably(bytes, offset);
  }
}

function areZeros(bytes: Uint8Array): boolean {
  if (bytes.length < HOLE_BYTES_MIN || bytes.length > ZEROS.length || bytes[0] !== 0) return false;
  return Buffer.compare(bytes, ZEROS.subarray(0, bytes.length)) === 0;
}

/** The disk of this machine, with holes in new files. */
export const sparseDisk: Disk = {
  ...bunDisk,
  open(path, options) {
    const file = bunDisk.open(path, options);
    return options.exclusive === true ? new SparseFile(file) : file;
  },
};
