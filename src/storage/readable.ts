/**
 * What a disk that fails means for a file that should be there: damage in it, and in nothing else.
 */
import { DiskError, UnreadableError } from "../base/errors.ts";

/**
 * Reads a listed file; that it is missing, or that the disk cannot read it, is damage.
 *
 * @throws {UnreadableError} And what `read` throws.
 */
export function readable<T>(path: string, read: () => T): T {
  try {
    return read();
  } catch (error) {
    if (!(error instanceof DiskError) || (error.code !== "ENOENT" && error.code !== "EIO")) {
      throw error;
    }
    throw new UnreadableError(path, error.code);
  }
}
