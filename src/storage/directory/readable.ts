/**
 * What a disk that fails means for a file that should be there: damage in it, and in nothing else.
 */
import { DiskError, UnreadableError } from "../../base/errors.ts";

/**
 * Reads a listed file; that it is missing, or that the disk cannot read it, is damage.
 *
 * @param offset Where in the file, if it is not read as a whole.
 * @throws {UnreadableError} And what `read` throws.
 */
export function readable<T>(path: string, read: () => T, offset = 0): T {
  try {
    return read();
  } catch (error) {
    if (!(error instanceof DiskError) || (error.code !== "ENOENT" && error.code !== "EIO")) {
      throw error;
    }
    throw new UnreadableError(path, error.code, offset);
  }
}
