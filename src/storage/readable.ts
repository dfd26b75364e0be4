/**
 * What a disk that fails means for a file that should be there: damage in it, and in nothing else.
 */
import { CorruptionError, DiskError } from "../base/errors.ts";

/** Reads a listed file; that it is missing, or that the disk cannot read it, is damage. */
export function readable<T>(path: string, read: () => T): T {
  try {
    return read();
  } catch (error) {
    if (!(error instanceof DiskError) || (error.code !== "ENOENT" && error.code !== "EIO")) {
      throw error;
    }
    throw new CorruptionError(path, 0, `the disk says ${error.code}`);
  }
}
