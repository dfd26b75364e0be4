/**
 * What a disk that fails means for a file that should be there: damage in it, and in nothing else,
 * or that it may not be opened now, which says nothing of its bytes.
 */
import { DatabaseError, DiskError, hasNoDescriptor, UnreadableError } from "../../base/errors.ts";

/** What to do when the process may open no more files. */
export const NO_DESCRIPTOR_HINT =
  "close connections, or raise the limit of open files for the server";

/** What the system says where something else is in the place of a file, or its bytes are gone. */
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
 * Reads a listed file; that it is missing, is no file, or that the disk cannot read it, is damage.
 *
 * @param offset Where in the file, if it is not read as a whole.
 * @throws {UnreadableError} And what `read` throws.
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
 * As {@linkcode readable}, for who answers somebody: a file that the system does not let this
 * process open, or not now, is named.
 *
 * @throws {UnreadableError} @throws {DatabaseError} STORAGE_UNAVAILABLE; and what `read` throws.
 */
export function available<T>(path: string, read: () => T): T {
  try {
    return readable(path, read);
  } catch (error) {
    if (!(error instanceof DiskError)) throw error;
    const { code } = error;
    throw new DatabaseError(
      "STORAGE_UNAVAILABLE",
      `Cannot open ${path}: the system says ${code}; nothing is known to be wrong with its bytes`,
      { hint: hintFor(code), cause: error },
    );
  }
}

function hintFor(code: string): string {
  if (hasNoDescriptor(code)) return NO_DESCRIPTOR_HINT;
  if (code === "EACCES" || code === "EPERM") {
    return "let the user that the server runs as read and write the file; then ask again";
  }
  return "look at the file and its directory; then ask again";
}
