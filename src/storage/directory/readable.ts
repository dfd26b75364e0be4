/**
 * Interprets disk errors for a file that should exist. Such an error means either that the file is
 * damaged or that it cannot be opened at present. In the latter case, its content may be intact.
 */
import { DatabaseError, DiskError, hasNoDescriptor, UnreadableError } from "../../base/errors.ts";

/** The hint for users when the process has run out of file descriptors. */
export const NO_DESCRIPTOR_HINT = "close connections, or raise the server's limit on open files";

/** The system error codes for a path that is not a file, or a file whose content is lost. */
const DAMAGE_CODES: ReadonlySet<string> = new Set([
  "ENOENT",
  "ENOTDIR",
  "EISDIR",
  "ELOOP",
  "EIO",
  "EBADMSG",
  "ENODATA",
  "EUCLEAN",
]);

/**
 * Reads a listed file. It counts as damaged if it is missing, is not a file, or cannot be read
 * from the disk.
 *
 * @param offset The offset within the file, if only a part is read.
 * @throws {UnreadableError} @throws Any error of `read`.
 */
export function readable<T>(path: string, read: () => T, offset = 0): T {
  try {
    return read();
  } catch (error) {
    if (!(error instanceof DiskError) || !DAMAGE_CODES.has(error.code)) throw error;
    throw new UnreadableError(path, error.code, offset);
  }
}

/**
 * Reads a listed file like {@linkcode readable}, but throws errors that can be shown to users. If
 * the system does not let this process open the file, even if only for now, the error names the
 * file.
 *
 * @throws {UnreadableError} @throws {DatabaseError} STORAGE_UNAVAILABLE @throws Any error of
 *   `read`.
 */
export function available<T>(path: string, read: () => T): T {
  try {
    return readable(path, read);
  } catch (error) {
    if (!(error instanceof DiskError)) throw error;
    const { code } = error;
    throw new DatabaseError(
      "STORAGE_UNAVAILABLE",
      `Cannot open ${path}: the system reports ${code}; the content of the file may well be ` +
        "undamaged",
      { hint: hintFor(code), cause: error },
    );
  }
}

function hintFor(code: string): string {
  if (hasNoDescriptor(code)) return NO_DESCRIPTOR_HINT;
  if (code === "EACCES" || code === "EPERM") {
    return "give the server's user read and write access to the file, then try again";
  }
  return "check the file and its directory, then try again";
}
